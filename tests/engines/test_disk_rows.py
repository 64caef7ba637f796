"""Slices and items of the disk engine against those of the memory engine."""

import gc
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import LIMIT, SETTINGS, SPILLS, assert_same, both
from documents import of_section, parts
from documents import table as slices_of
from effort import pairwise
from growth import growth
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, pairs, weights

import fastbcubed as fb
from fastbcubed.align.stash import Stash
from fastbcubed.engines import disk
from fastbcubed.errors import (
    ColumnError,
    DuplicateItemError,
    EvaluationWarning,
    OptionError,
    SliceError,
)
from fastbcubed.results.table import listed
from fastbcubed.runtime.threads import Pool


def assert_equal_tables(found, expected):
    assert found.column_names == expected.column_names
    assert found.num_rows == expected.num_rows
    for name in expected.column_names:
        values, wanted = found[name].to_pylist(), expected[name].to_pylist()
        if pa.types.is_floating(expected[name].type):
            values, wanted = (
                [np.nan if value is None else value for value in column] for column in (values, wanted)
            )
            np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=1e-12, err_msg=name)
        else:
            assert values == wanted, name


def assert_same_rows(on_disk, in_memory):
    """Slices asked for are the same, and so is every item, whatever the order."""
    assert list(on_disk.sliced) == list(in_memory.sliced)
    for name, expected in in_memory.sliced.items():
        assert_equal_tables(on_disk.sliced[name], expected)
    if on_disk.has_items:
        found, expected = on_disk.items(), in_memory.items()
        assert set(found["item"].to_pylist()) == set(expected["item"].to_pylist())
        by_id = [
            table.take(np.argsort([repr(item) for item in table["item"].to_pylist()], kind="stable"))
            for table in (found, expected)
        ]
        assert_equal_tables(*by_id)


def tables_of(pair, data):
    """Make tables of a pair, with attributes that have nulls and a name in common."""
    values = st.sampled_from(["a", "b", "ü", None])

    def table(side, name):
        other = data.draw(st.lists(st.integers(0, 2), min_size=len(side), max_size=len(side)))
        both_have = data.draw(st.lists(values, min_size=len(side), max_size=len(side)))
        columns = {"item": list(side), "cluster": list(side.values()), name: other, "both": both_have}
        return pa.table({key: _array(key, values) for key, values in columns.items()})

    return table(pair.truth, "year"), table(pair.prediction, "run")


def _array(name, values):
    unsigned = name in ("item", "cluster") and any(isinstance(v, int) and v >= 2**63 for v in values)
    return pa.array(values, pa.uint64() if unsigned else pa.string() if name == "both" else None)


@pytest.mark.cases(1)
@SETTINGS
@given(
    pairs(max_size=30),
    st.sampled_from(POLICIES),
    st.sampled_from(["pointwise", "outer"]),
    st.data(),
)
def test_joined_by_item(many_shards, pair, policy, weighting, data):
    weight = data.draw(weights(len(pair.items), zeros=weighting == "outer"))
    options = {"unmatched": policy, "weighting": weighting}
    if weight is not None:
        options["weight"] = dict(zip(pair.items, weight, strict=True))
    slices = ["year", "run", ("truth.both", "prediction.both"), ("true_size", "year"), "pred_size"]
    assert_same_rows(*both(*tables_of(pair, data), slices=slices, keep="items", **options))


@pytest.mark.cases(1)
@SETTINGS
@given(pairs(max_size=60, unmatched=False), st.data())
def test_rows_that_correspond(many_shards, pair, data):
    true = list(pair.truth.values())
    pred = [pair.prediction[item] for item in pair.truth]
    weight = data.draw(weights(len(true)))
    year = np.arange(len(true)) % 3
    options = {"weight": weight, "attributes": {"year": year}, "slices": [("year", "true_size"), "pred_size"]}
    on_disk, in_memory = both(true, pred, keep="items", **options)
    assert_same_rows(on_disk, in_memory)
    assert on_disk.items()["item"].to_pylist() == list(range(len(true)))
    for key in ("year", ("pred_size", "true_size")):
        assert_equal_tables(on_disk.slices(key), in_memory.slices(key))


def people(n=700, seed=0):
    """Make two tables of files: nulls, repeated rows, one large cluster, attributes."""
    rng = np.random.default_rng(seed)
    item = np.array([f"person {k}" for k in rng.permutation(n)])
    true, pred = rng.integers(0, 170, n), rng.integers(0, 170, n)
    true[rng.random(n) < 0.4], pred[rng.random(n) < 0.4] = 7, 9

    def table(rows, labels):
        columns = {
            "item": item[rows],
            "cluster": pa.array(labels[rows], mask=rng.random(rows.size) < 0.05),
            "w": 1 + rows % 7 / 7,
            "country": pa.array(rng.choice(["at", "ch", "de"], rows.size)).dictionary_encode(),
            "born": pa.array(rng.integers(1900, 1905, rows.size), mask=rng.random(rows.size) < 0.1),
        }
        whole = pa.table(columns)
        return pa.concat_tables([whole, whole.slice(0, 20)])

    return table(np.arange(500), true), table(np.arange(100, n), pred)


def write(table, path, **options):
    pq.write_table(table, path, **options)
    return str(path)


@pytest.mark.cases(0)
@pairwise(many_shards=SPILLS, policy=POLICIES[:4], nulls=["singleton", "drop"], indirect=["many_shards"])
def test_files(many_shards, policy, nulls, tmp_path):
    weight = "w" if nulls == "singleton" else None
    truth, prediction = (
        write(table, tmp_path / f"{name}.parquet", row_group_size=97)
        for name, table in zip(("truth", "prediction"), people(), strict=True)
    )
    extra = {"item": [f"person {k}" for k in range(600)], "height": [150 + k % 4 for k in range(600)]}
    options = {"unmatched": policy, "nulls": nulls, "weight": weight, "duplicates": "drop"}
    slices = [
        ("truth.country", "prediction.born"),
        ("height", "truth.born"),
        {"odd": extra["item"][101:300:2], "some": ["person 150"]},
    ]
    on_disk, in_memory = both(truth, prediction, attributes=extra, slices=slices, keep="items", **options)
    assert_same_rows(on_disk, in_memory)
    for key in ("prediction.country", ("height", "pred_size")):
        assert_equal_tables(on_disk.slices(key), in_memory.slices(key))
    assert (
        on_disk.item("person 150")["members"]["tp"]["n_items"]
        == (in_memory.item("person 150")["members"]["tp"]["n_items"])
    )


@pytest.mark.cases(0)
@pairwise(
    many_shards=SPILLS,
    item=[None, "id"],
    unmatched=["drop", "singleton", "outside"],
    indirect=["many_shards"],
)
def test_one_table(many_shards, item, unmatched, tmp_path):
    rng = np.random.default_rng(3)
    n = 600
    columns = {
        "id": rng.permutation(n) + 2**60,
        "t": pa.array(rng.integers(0, 90, n), mask=rng.random(n) < 0.1),
        "p": pa.array(rng.integers(0, 90, n), mask=rng.random(n) < 0.1),
        "w": rng.uniform(1, 2, n),
        "place": rng.choice(["x", "y"], n),
    }
    path = write(pa.table(columns), tmp_path / "rows.parquet", row_group_size=64)
    options = {"table": path, "weight": "w", "slices": ["place", ("place", "true_size")], "keep": "items"}
    options["nulls"] = "drop"  # a null says that the side lacks the item
    if item:
        options["item"] = item
    mask = rng.random(n) < 0.5
    options["slices"].append({"half": mask})
    assert_same_rows(*both("t", "p", unmatched=unmatched, **options))


@pytest.mark.slow
def test_slices_by_size_alone(many_shards):
    rng = np.random.default_rng(8)
    true, pred = rng.integers(0, 90, 400), rng.integers(0, 60, 400)
    for slices in ("true_size", ["pred_size", ("true_size", "pred_size")]):
        assert_same_rows(*both(true, pred, slices=slices))
        tables = [{"item": rng.permutation(400), "cluster": labels} for labels in (true, pred)]
        assert_same_rows(*both(*map(pa.table, tables), slices=slices, weight=dict.fromkeys(range(400), 2.0)))


@pytest.mark.cases(1)
def test_scores_with_true_negatives(many_shards):
    rng = np.random.default_rng(5)
    true, pred = rng.integers(0, 40, 400), rng.integers(0, 40, 400)
    weight = 10.0 ** rng.uniform(-6, 6, 400)
    options = {
        "attributes": {"k": rng.integers(0, 4, 400)}, "slices": "k",
        "metrics": ["accuracy", "mcc", "specificity", "mean_f1", "bcubed_f1", "pointwise_ari"],
    }  # fmt: skip
    for own in (None, weight):
        assert_same_rows(*both(true, pred, weight=own, **options))


@pytest.fixture
def many_runs(monkeypatch):
    """Slices go to disk as soon as there are some, in many runs of few slices, of which few are merged at once."""
    from fastbcubed.results import slice_sums

    for name, value in {
        "LEAST_WAITING": 3000,
        "WAITING_SHARE": 1 << 40,
        "CHUNK": 3000,
        "RUNS_AT_ONCE": 3,
        "FEW": 20,
    }.items():
        monkeypatch.setattr(slice_sums, name, value)
    monkeypatch.setattr(disk, "block_rows", lambda *_: 60)


KEYS = {
    "text": lambda k: [f"n{x}" if x % 10 else None for x in k],
    "integers": lambda k: [None if x % 9 == 0 else int(x) - 40 for x in k],
    "floats": lambda k: [None if x % 9 == 0 else float("nan") if x % 7 == 0 else x / 4 for x in k],
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("crossed", [False, True])
def test_slices_that_are_merged_from_runs_on_disk(kind, crossed, many_runs):
    rng, n = np.random.default_rng(6), 600
    true, pred = rng.integers(0, 200, n), rng.integers(0, 200, n)
    weight = 10.0 ** rng.uniform(-15, 15, n)
    attributes = {"name": KEYS[kind](rng.integers(0, 120, n)), "other": rng.integers(0, 3, n)}
    key = ("other", "name") if crossed else "name"
    found, expected = both(true, pred, weight=weight, attributes=attributes, slices=[key])
    assert_same_rows(found, expected)
    (table,), (whole,) = found.sliced.values(), expected.sliced.values()
    assert table.is_large and len(table) == table.num_rows == len(whole)
    for order_by, limit in (("loss", 7), ("f1", 30), ("n_items", 1), ("loss", 0)):  # most tie
        assert_equal_tables(*(ev.slices(key, order_by=order_by, limit=limit) for ev in (found, expected)))
    assert "rows, the first 10 shown" in repr(table) and repr(table).count("\n") < 20


@pytest.mark.slow
def test_no_more_slices_are_held_than_fit(many_runs, monkeypatch):
    """However many there are: those that wait, and two chunks of each run that is merged."""
    from fastbcubed.results import slice_sums

    most, merged = [0], slice_sums.merged

    def counted(runs):
        runs = list(runs)
        assert len(runs) <= slice_sums.RUNS_AT_ONCE
        for part in merged(runs):
            most[0] = max(most[0], part.nbytes)
            yield part

    monkeypatch.setattr(slice_sums, "merged", counted)
    held, add = [0], slice_sums.SliceSums.add

    def watched(self, part):
        add(self, part)
        held[0] = max(held[0], self.held - part.nbytes)

    monkeypatch.setattr(slice_sums.SliceSums, "add", watched)
    n = 2000
    attributes = {"name": [f"the name {k:06}" for k in np.random.default_rng(0).permutation(n)]}
    labels = np.arange(n) // 3
    ev = fb.evaluate(
        labels, labels // 2, attributes=attributes, slices="name", engine="disk", memory_limit=LIMIT
    )
    assert ev.sliced["name"].num_rows == n and ev.sliced["name"].is_large
    assert 0 < most[0] <= 3 * 2 * slice_sums.CHUNK + 500 and held[0] <= slice_sums.LEAST_WAITING


@pytest.mark.slow
def test_many_slices_are_refused_whole_and_listed_written_and_loaded_in_part(
    many_runs, tmp_path, monkeypatch
):
    from fastbcubed.results import save, slices

    monkeypatch.setattr(save, "SLICES_IN_MANIFEST", 20)
    monkeypatch.setattr(slices, "IN_JSON", 20)
    n = 900
    rng = np.random.default_rng(1)
    name = [f"the name {k:06}" for k in rng.integers(0, 300, n)]
    given = (rng.integers(0, 99, n), rng.integers(0, 99, n))
    options = {"attributes": {"name": name}, "slices": ["name", "true_size"]}
    ev = fb.evaluate(*given, **options, engine="disk", memory_limit=LIMIT, out=tmp_path)
    table, whole = ev.sliced["name"], fb.evaluate(*given, **options).sliced["name"]
    for own in (ev, fb.load(tmp_path), fb.load(tmp_path, check=False)):
        assert own.sliced["name"].is_large and not own.sliced["true_size"].is_large
        assert_equal_tables(own.slices("name", limit=5), listed(whole, ev.metrics, "loss", 5))
        assert_equal_tables(own.slices("name"), whole)
        content = own.to_dict(limit=20)
        assert len(content["slices"]["name"]) == 20 and content["n_slices"] == {"name": len(whole)}
        assert len(own.to_dict(limit=None)["slices"]["name"]) == len(whole)
    assert ev.report().html
    table._limit = table.nbytes
    with pytest.raises(
        OptionError, match=r"slices by 'name' would take .*memory_limit is .*limit=100.* at least 1 MiB"
    ):
        table.to_pandas()
    with pytest.raises(OptionError, match="slices by 'name'"):
        ev.to_dict(limit=None)
    assert (
        ev.slices("name", limit=3).num_rows == 3
        and table["n_items"].to_pylist() == whole["n_items"].to_pylist()
    )
    assert ev.check(f"f1>=0@name={name[0]}")["passed"].to_pylist() == [True]
    with pytest.raises(SliceError, match=f"there are {len(whole)} by name"):
        ev.check("f1>=0@name=none")
    monkeypatch.setattr(save, "VALUE_BYTES", 1 << 20)
    least = r"JSON of \d+ slices would take .* at least \d+ MiB suffices, or pass limit=4096"
    with pytest.raises(OptionError, match=least):
        ev.to_json(limit=None)
    assert len(json.loads(ev.to_json(limit=2))["slices"]["name"]) == 2


@pytest.mark.slow
def test_many_slices_of_a_diff_are_shown_and_written_in_part(many_runs, tmp_path, capsys, monkeypatch):
    """Whole, they have no room here; text, JSON, page, terminal and files do without."""
    from fastbcubed.cli.output import Terminal, print_document
    from fastbcubed.diff_runs import diff_result
    from fastbcubed.results import save

    n, rng = 900, np.random.default_rng(1)
    options = {
        "attributes": {"name": [f"the name {k:06}" for k in rng.integers(0, 300, n)]},
        "slices": "name",
    }
    given = rng.integers(0, 99, n), rng.integers(0, 99, n)
    whole = fb.diff(*given, **options)
    d = fb.diff(*given, **options, engine="disk", memory_limit=LIMIT)
    table = d.sliced["name"]
    table._limit = table.nbytes
    with pytest.raises(OptionError, match="slices by 'name'"):
        table.to_pandas()
    found, expected = (of_section(each.report().content, "slices") for each in (d, whole))
    n = whole.sliced["name"].num_rows
    title = "By name: the {} most changed of " + f"{n} slices"
    assert parts(found, "Heading")[0]["title"] == parts(expected, "Heading")[0]["title"] == title.format(20)
    names = [row["name"] for row in slices_of(found)]
    assert names == [row["name"] for row in slices_of(expected)]
    print_document(d, Terminal(), 3)
    out = capsys.readouterr().out
    assert title.format(3) in out and names[0] in out
    monkeypatch.setattr(diff_result, "IN_JSON", 20)
    monkeypatch.setattr(save, "SLICES_IN_MANIFEST", 20)
    assert d.to_dict()["n_slices"] == {"name": n} and len(d.to_dict()["slices"]["name"]) == 20
    d.save(tmp_path, keep="cells")
    assert fb.load(tmp_path).slices("name", limit=1)["name"].to_pylist() == names[:1]


@pytest.mark.cases(0)
def test_the_same_bits_for_any_number_of_threads(many_shards):
    rng = np.random.default_rng(2)
    true, pred = rng.integers(0, 300, 3000), rng.integers(0, 300, 3000)
    weight = rng.uniform(1, 2, 3000) * 10.0 ** rng.integers(-9, 9, 3000)

    def sliced(threads):
        ev = fb.evaluate(
            true, pred, weight=weight, attributes={"k": true % 7}, slices="k", engine="disk",
            memory_limit=LIMIT, threads=threads,
        )  # fmt: skip
        return ev.sliced["k"]

    assert sliced(1).equals(sliced(4))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")
def test_saved_and_loaded(many_shards, tmp_path):
    truth, prediction = people()
    options = {"nulls": "drop", "duplicates": "drop", "slices": "truth.born", "weight": "w"}
    in_memory = fb.evaluate(truth, prediction, **options)
    on_disk = fb.evaluate(truth, prediction, engine="disk", keep="items", out=tmp_path / "a", **options)
    loaded = fb.load(tmp_path / "a")
    assert dict(loaded.overall) == dict(on_disk.overall)
    assert_same_rows(loaded, in_memory)
    for side in ("true", "pred"):
        for limit in (None, 7):
            expected = in_memory.clusters(side, limit=limit)
            assert_equal_tables(loaded.clusters(side, limit=limit), expected)
            assert_equal_tables(on_disk.clusters(side, limit=limit), expected)
    on_disk.save(tmp_path / "b")
    assert_same_rows(fb.load(tmp_path / "b"), in_memory)
    on_disk.save(tmp_path / "a")  # over itself
    assert_same_rows(fb.load(tmp_path / "a"), in_memory)


@pytest.mark.parametrize("many_shards", ["some spilled"], indirect=True)
def test_nothing_is_left_behind(many_shards, tmp_path):
    rng = np.random.default_rng(0)
    true, pred = rng.integers(0, 99, 900), rng.integers(0, 99, 900)
    ev = fb.evaluate(true, pred, engine="disk", spill_dir=tmp_path, keep="items", slices="true_size")
    assert not list(tmp_path.iterdir())
    assert ev.items(limit=3).num_rows == 3
    del ev
    gc.collect()
    out = tmp_path / "out"
    out.mkdir()
    (out / "items.parquet").write_text("earlier")
    with pytest.raises(fb.errors.FastBCubedError):
        fb.evaluate(
            true, pred, engine="disk", spill_dir=tmp_path, out=out, keep="items",
            slices={"none": [10**9]},
        )  # fmt: skip
    assert [path.name for path in out.iterdir()] == ["items.parquet"]
    assert (out / "items.parquet").read_text() == "earlier"


@pytest.mark.parametrize(
    ("slices", "error", "message"),
    [
        ("nonsense", ColumnError, "there is no attribute 'nonsense'"),
        ("both", ColumnError, "both sides have an attribute 'both'"),
        ({"VIP": ["stranger", "a"]}, SliceError, "1 of 2 items of 'VIP' are not in the evaluation .*'stranger'"),
        ({"VIP": [True, False]}, SliceError, "the mask of 'VIP' has 2 values; it needs one for each of the 3"),
        ({"VIP": [False, False, False]}, SliceError, "no scored item"),
        ({"VIP": []}, SliceError, "no scored item"),
    ],
)  # fmt: skip
def test_slices_that_cannot_be(slices, error, message):
    truth = {"item": ["a", "b", "c"], "cluster": [1, 1, 2], "both": [1, 2, 3]}
    prediction = {"item": ["c", "b", "a"], "cluster": [1, 1, 2], "both": [1, 2, 3]}
    for engine in ("memory", "disk"):
        with pytest.raises(error, match=message):
            fb.evaluate(pa.table(truth), pa.table(prediction), slices=slices, engine=engine)


def test_columns_that_no_slice_needs_may_be_missing_from_a_file(tmp_path):
    deep = tmp_path / "year=1" / "month=2"
    deep.mkdir(parents=True)
    part = {"item": [1, 2], "cluster": [1, 1], "country": ["at", "de"], "note": ["x", "y"]}
    pq.write_table(pa.table(part), deep / "a.parquet")
    pq.write_table(pa.table({**part, "item": [3, 4]}).drop_columns("note"), tmp_path / "year=1" / "z.parquet")
    other = pa.table({"item": [1, 2, 3, 4], "cluster": [1, 2, 3, 3]})
    for key in ("country", "truth.country", fb.bins("year", 1)):
        ev = fb.evaluate(tmp_path, other, slices=key, engine="disk")
        (table,) = ev.sliced.values()
        assert sum(table["n_items"].to_pylist()) == 4
    with pytest.raises(ColumnError, match="lacks the column 'note' of"):
        fb.evaluate(tmp_path, other, slices="note", engine="disk")


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_column_that_only_some_files_have_is_not_written_with_the_items(engine, tmp_path):
    """It cannot be read in one way; what nobody asked for does not stop the run, and is named."""
    part = {"item": [1, 2], "cluster": [1, 1], "note": ["x", "y"], "country": ["at", "de"]}
    rows = tmp_path / "rows"
    rows.mkdir()
    pq.write_table(pa.table(part), rows / "a.parquet")
    pq.write_table(pa.table({**part, "item": [3, 4]}).drop_columns("note"), rows / "b.parquet")
    other = pa.table({"item": [1, 2, 3, 4], "cluster": [1, 1, 2, 2]})
    with pytest.warns(EvaluationWarning, match=r"1 column was not .*b.parquet lacks the column 'note' of"):
        ev = fb.evaluate(rows, other, slices="country", keep="items", engine=engine, out=tmp_path / "out")
    assert ev.precision == 1 and list(ev.kept.left_out) == ["truth.note"]
    loaded = fb.load(tmp_path / "out")
    assert loaded.slices("country")["n_items"].to_pylist() == [2, 2]
    with pytest.raises(ColumnError, match="lacks the column 'note' of"):
        loaded.slices("note")


def test_attributes_that_cannot_be(tmp_path):
    truth = pa.table({"item": ["a", "b", "c"], "cluster": [1, 1, 2]})
    path = write(truth, tmp_path / "t.parquet")
    twice = {"item": ["a", "a"], "k": [1, 2]}
    with pytest.raises(DuplicateItemError, match="repeat an item"):
        fb.evaluate(path, path, attributes=twice, slices="k", engine="disk")
    pair = write(pa.table({"t": [1, 2], "p": [1, 1]}), tmp_path / "pair.parquet")
    with pytest.raises(OptionError, match="attributes= needs item ids"):
        fb.evaluate("t", "p", table=pair, attributes={"k": [1, 2]}, slices="k", engine="disk")


@pytest.mark.process
@pytest.mark.cases(0, 1)
@pytest.mark.parametrize("kind", ["one table", "two tables"])
def test_memory_stays_below_the_limit(kind, tmp_path):
    """2e6 items with names, labels, weights and attributes; about 500 MB in the memory engine."""
    n = 2_000_000
    rng = np.random.default_rng(0)
    names = pa.array(np.char.add("item number ", rng.permutation(n).astype(str)))
    columns = {
        "item": names, "t": rng.integers(0, n // 2, n), "p": rng.integers(0, n // 2, n),
        "w": rng.uniform(1, 2, n), "k": rng.integers(0, 50, n),
    }  # fmt: skip
    whole = pa.table(columns)
    if kind == "one table":
        path = write(whole.drop_columns("item"), tmp_path / "rows.parquet", row_group_size=n)
        call = f'fb.evaluate("t", "p", table={path!r}'
    else:
        truth = write(whole.drop_columns("p"), tmp_path / "t.parquet", row_group_size=n)
        prediction = write(whole.select(["item", "p"]), tmp_path / "p.parquet", row_group_size=n)
        call = f'fb.evaluate({truth!r}, {prediction!r}, item="item", cluster=("t", "p")'
    before = """
        options = dict(engine="disk", memory_limit="64MiB", keep="items", slices=["k", "true_size"])
        fb.evaluate([0, 1], [0, 0], weight=[1.0, 2.0], attributes=dict(k=[1, 2]), **options)
    """
    measured = f"""
        ev = {call}, weight="w", out={str(tmp_path / "out")!r}, **options)
        assert ev.has_items and ev.sliced["k"].num_rows == 50
    """
    assert growth(before, measured) < 64 + 256


def test_shards_are_joined_whatever_thread_comes_first(many_shards, monkeypatch):
    """A thread may get a shard early, and run late: what it joins is read by then, and so is what others join."""
    in_order = Pool.map

    def last_first(self, function, *given, stage="", rows=None):
        if stage == "join by item":
            given, rows = [each[::-1] for each in given], rows[::-1]
        return in_order(self, function, *given, stage=stage, rows=rows)

    monkeypatch.setattr(Pool, "map", last_first)
    clusters = {item: item // 3 for item in range(100)}
    for threads in (1, 2):
        assert_same(*both(clusters, clusters, unmatched="singleton", threads=threads))


@pytest.mark.cases(0)
def test_integers_are_made_of_keys_and_not_carried(many_shards, monkeypatch):
    items, labels = np.arange(400), np.arange(400) // 3
    truth, prediction = (pa.table({"item": items, "cluster": each}) for each in (labels, labels // 2))
    expected = fb.evaluate(truth, prediction, engine="memory")
    monkeypatch.setattr(Stash, "read", None)  # what brings the columns of a shard together
    found = fb.evaluate(truth, prediction, engine="disk", memory_limit=LIMIT, keep="items")
    assert_same_rows(found, expected)
    texts = truth.set_column(0, "item", truth["item"].cast(pa.string()))
    with pytest.raises(TypeError):
        fb.evaluate(texts, texts, engine="disk", memory_limit=LIMIT, keep="items")
