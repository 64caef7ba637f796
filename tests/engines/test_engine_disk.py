"""The disk engine against the memory engine: same scores, summary, coverage and errors, whatever is spilled."""

import errno
import gc
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import LIMIT, SETTINGS, SPILLS, assert_same, both
from effort import covering, pairwise
from growth import growth
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, pairs, weights

import fastbcubed as fb
from fastbcubed.cells import dense
from fastbcubed.cells import shards as disk
from fastbcubed.engines import disk as sharded
from fastbcubed.errors import (
    AlignmentError,
    DuplicateItemError,
    EmptyInputError,
    FileFormatError,
    NotKeptError,
    NullError,
    OptionError,
    OverlapError,
    PairingError,
    SpillError,
    WeightError,
)
from fastbcubed.metrics import counterparts
from fastbcubed.runtime import memory_budget, spill


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
    metrics = ["precision", "recall", "f1", "mean_f1", "jaccard_distance", "bcubed"]
    assert_same(*both(*pair, metrics=metrics, **options))


@pytest.mark.cases(1)
@SETTINGS
@given(pairs(max_size=60, unmatched=False), st.data())
def test_rows_that_correspond(many_shards, pair, data):
    true = list(pair.truth.values())
    pred = [pair.prediction[item] for item in pair.truth]
    weight = data.draw(weights(len(true)))
    assert_same(*both(true, pred, weight=weight, metrics=["pointwise", "bcubed", "pairs", "matching"][:2]))


@pytest.mark.cases(1, 4)
@pytest.mark.parametrize("unmatched", ["drop", "outside", "singleton"])
@pytest.mark.parametrize("weighted", [False, True])
def test_few_clusters(many_shards, weighted, unmatched, monkeypatch):
    """Rows of pairs that repeat are stored once for each block of rows, and scored as all others are."""
    for name, value in {"MOST_SLOTS": 0, "OFTEN": 2, "ROWS_PER_PAIR": 1, "LEAST_SHARE": 0.3}.items():
        monkeypatch.setattr(dense, name, value)
    stored = []
    put = disk.Spool.put
    monkeypatch.setattr(
        disk.Spool, "put", lambda self, *args: (stored.append(self.dtype), put(self, *args))[1]
    )
    rng = np.random.default_rng(4)
    true, pred = rng.integers(0, 4, 900), np.where(rng.random(900) < 0.1, rng.integers(9, 300, 900), 2)
    items = rng.permutation(900)
    truth = dict(zip(items[:700].tolist(), true[:700].tolist(), strict=True))
    prediction = dict(zip(items[200:].tolist(), pred[200:].tolist(), strict=True))
    weight = {k: float(w) for k, w in enumerate(rng.uniform(1, 9, 900))} if weighted else None
    for pair in ((truth, prediction), (list(truth.values()), list(prediction.values()))):
        own = weight if isinstance(pair[0], dict) or weight is None else list(weight.values())[:700]
        stored.clear()
        assert_same(*both(*pair, weight=own, unmatched=unmatched))
        assert any(
            "n" in dtype.names and "true" in dtype.names and "fn" not in dtype.names for dtype in stored
        )


def rows_with_faults(n=600, seed=3):
    """Make two tables: nulls, noise, repeated rows, items of one side, one large cluster on either side."""
    rng = np.random.default_rng(seed)
    item = rng.permutation(n)
    true, pred = rng.integers(0, 150, n), rng.integers(0, 150, n)
    true[rng.random(n) < 0.4], pred[rng.random(n) < 0.4] = 7, 9
    weight = rng.uniform(0.5, 2, n)

    def table(items, labels):
        null = rng.random(items.size) < 0.05
        labels = np.where(rng.random(items.size) < 0.05, -1, labels)
        columns = {"item": items, "cluster": pa.array(labels, mask=null), "w": weight[items]}
        whole = pa.table(columns)
        return pa.concat_tables([whole, whole.slice(0, 20)])

    return table(item[:500], true[item[:500]]), table(item[100:], pred[item[100:]])


@pytest.mark.cases(1)
@pairwise(
    many_shards=SPILLS, text=[False, True], policy=POLICIES[:4], nulls=["singleton", "drop"],
    indirect=["many_shards"],
)  # fmt: skip
def test_faults_by_policy(many_shards, text, policy, nulls, tmp_path):
    weight = "w" if text else None
    tables = rows_with_faults()
    if text:
        names = ["item", "cluster"]
        tables = tuple(
            pa.table({k: t[k].cast(pa.string()) if k in names else t[k] for k in t.column_names})
            for t in tables
        )
    paths = [str(tmp_path / f"{name}.parquet") for name in ("truth", "prediction")]
    for table, path in zip(tables, paths, strict=True):
        pq.write_table(table, path, row_group_size=97)
    noise = "-1" if text else -1
    options = {"nulls": nulls, "noise": noise, "duplicates": "drop", "unmatched": policy, "weight": weight}
    assert_same(*both(*paths, **options))
    assert_same(*both(*tables, **options))


@pytest.mark.cases(0)
def test_one_table_of_files(many_shards, tmp_path):
    """Nulls say that a side lacks the item; folders give a column; an item column is checked for repeats."""
    rng = np.random.default_rng(0)
    for k in range(3):
        folder = tmp_path / f"part={k}"
        folder.mkdir()
        n = 200
        columns = {
            "id": np.arange(n) + k * n,
            "t": pa.array(rng.integers(0, 90, n), mask=rng.random(n) < 0.1),
            "p": pa.array(rng.integers(0, 90, n), mask=rng.random(n) < 0.1),
            "w": rng.uniform(1, 2, n),
        }
        pq.write_table(pa.table(columns), folder / "rows.parquet", row_group_size=64)
    axes = [["drop", "singleton", "outside"], [None, "w"], [{}, {"item": "id"}]]
    for row in covering(axes):
        policy, weight, items = (axis[k] for axis, k in zip(axes, row, strict=True))
        assert_same(
            *both("t", "p", table=str(tmp_path), nulls="drop", unmatched=policy, weight=weight, **items)
        )
    assert_same(*both("part", "p", table=str(tmp_path), nulls="drop"))


@pytest.mark.parametrize("kind", ["one row group", "many", "Arrow IPC", "stream"])
def test_files(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(sharded, "block_rows", lambda *_: 300)
    rng = np.random.default_rng(1)
    table = pa.table({"t": rng.integers(0, 400, 2000), "p": rng.integers(0, 400, 2000)})
    path = str(tmp_path / "rows")
    if kind in ("one row group", "many"):
        pq.write_table(table, path, row_group_size=5000 if kind == "one row group" else 130)
    else:
        opener = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        with opener(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=170)
    assert_same(*both("t", "p", table=path))


@pytest.mark.cases(1)
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_same_bits_for_any_number_of_threads(threads, many_shards):
    rng = np.random.default_rng(2)
    true, pred = rng.integers(0, 300, 3000), rng.integers(0, 300, 3000)
    weight = rng.uniform(1, 2, 3000) * 10.0 ** rng.integers(-9, 9, 3000)

    def scores(n):
        ev = fb.evaluate(
            true, pred, weight=weight, engine="disk", memory_limit=LIMIT, threads=n, keep="scores"
        )
        return dict(ev.overall)

    assert scores(threads) == scores(1)


def test_colliding_keys_are_hashed_again(monkeypatch, many_shards):
    """The first hash function is made to give equal keys to different names; the second one is right."""
    from fastbcubed.inputs import id_columns

    right = id_columns.write_both

    def wrong(parts, seed, pool):
        keys, second = right(parts, seed, pool)
        return (keys & 3, second) if seed == 0 else (keys, second)

    monkeypatch.setattr(id_columns, "write_both", wrong)
    names = [f"c{k % 37}" for k in range(200)]
    truth = dict(zip([f"i{k}" for k in range(200)], names, strict=True))
    on_disk = fb.evaluate(truth, dict(reversed(truth.items())), engine="disk", memory_limit=LIMIT)
    assert on_disk.overall["f1"] == 1.0 and on_disk.summary["true"]["clusters"] == 37


# -- What is kept, what is refused ------------------------------------------------------------------


def test_what_is_kept():
    labels = [0, 0, 1, 1, 2]
    ev = fb.evaluate(labels, [0, 0, 1, 2, 2], engine="disk", keep="scores")
    assert ev.engine == "disk" and ev.summary["true"]["clusters"] == 3
    assert not ev.definition["overlapping"] and "Evaluation of 5 items" in repr(ev)
    for ask in (lambda: ev.metric("mcc"), lambda: ev.clusters("true"), lambda: ev.slices("true_size")):
        with pytest.raises(NotKeptError):
            ask()
    ev = fb.evaluate(labels, [0, 0, 1, 2, 2], engine="disk")
    assert ev.metric("mcc") == pytest.approx(fb.evaluate(labels, [0, 0, 1, 2, 2]).metric("mcc"))
    with pytest.raises(NotKeptError, match='keep="items"'):
        ev.items()
    assert "Evaluation of 5 items" in repr(ev)
    assert '"f1"' in ev.to_json()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "gpu"}, 'engine must be "memory", "disk" or "spark"'),
        (
            {"engine": "disk", "overlapping": True},
            "overlapping clusterings can only be scored in memory, since the items of a cluster may .* omit engine",
        ),
        (
            {"engine": "disk", "memory_limit": 1000},
            "memory_limit is 1,000 bytes, but the disk engine needs at least",
        ),
        (
            {"engine": "disk", "memory_limit": 1},
            "memory_limit is 1 bytes, but the disk engine needs at least 64 MiB",
        ),
        ({"memory_limit": "0.5"}, "memory_limit must be a number of bytes"),
        ({"engine": "disk", "memory_limit": "2 potatoes"}, "memory_limit must be a number of bytes"),
        ({"memory_limit": 0}, "memory_limit must be a number of bytes"),
        ({"engine": "disk", "weighting": "inner"}, "weighting"),
    ],
)
def test_refused(options, message):
    with pytest.raises(OptionError, match=message):
        fb.evaluate([0, 0, 1], [0, 1, 1], **options)


@pytest.mark.slow
def test_the_engine_is_chosen_by_size(tmp_path):
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table({"t": np.arange(1000) % 9, "p": np.arange(1000) % 7}), path)
    assert fb.evaluate("t", "p", table=path).engine == "memory"
    assert fb.evaluate("t", "p", table=path, engine="memory").engine == "memory"
    big = str(tmp_path / "big.parquet")
    n = 1_500_000
    pq.write_table(pa.table({"t": np.arange(n) // 3, "p": np.arange(n) // 4}), big)
    assert fb.evaluate("t", "p", table=big, memory_limit=LIMIT).engine == "disk"


@pytest.mark.cases(1)
def test_errors_are_those_of_the_memory_engine(many_shards):
    truth = {"item": [f"i{k}" for k in range(50)], "cluster": [k // 2 for k in range(50)]}
    other = {"item": [*truth["item"][10:], "x", "y"], "cluster": [k // 3 for k in range(42)]}

    def raised(a, b, **options):
        found = []
        for engine in ("disk", "memory"):
            with pytest.raises(fb.errors.FastBCubedError) as caught:
                fb.evaluate(a, b, engine=engine, **options)
            found.append(caught.value)
        assert type(found[0]) is type(found[1])
        return [str(error) for error in found]

    on_disk, in_memory = raised(pa.table(truth), pa.table(other), unmatched="raise")
    assert "10 of 50 items of the truth are missing from the prediction" in on_disk
    assert on_disk.split("(first")[0] == in_memory.split("(first")[0]
    twice = pa.table({name: values + values[:3] for name, values in truth.items()})
    on_disk, _ = raised(twice, pa.table(other))
    assert "repeat an earlier row" in on_disk and "'i" in on_disk
    moved = pa.table({"item": truth["item"] + ["i3"], "cluster": truth["cluster"] + [77]})
    on_disk, _ = raised(moved, pa.table(other))
    assert "'i3'" in on_disk
    strangers = {"item": [f"j{k}" for k in range(5)], "cluster": [1] * 5}
    on_disk, _ = raised(pa.table(truth), pa.table(strangers))
    assert "no item of the truth is in the prediction" in on_disk and "'i0'" in on_disk
    assert "Check that both item columns write the same ids" in on_disk
    upper = [item.upper() for item in truth["item"]]
    for written, how in (
        ([f" {item}\t" for item in truth["item"]], "match without surrounding spaces: write"),
        (pa.array(upper).dictionary_encode(), "match in lower case: write"),
        ([f" {item}" for item in upper], "match in lower case, without surrounding spaces: write"),
    ):
        for error in raised(pa.table(truth), pa.table({**truth, "item": written})):
            assert "Ids such as 'i" in error and how in error
    pairs = {"source": ["a"] * 50, "id": truth["item"], "cluster": truth["cluster"]}
    for error in raised(pa.table(pairs), pa.table({**pairs, "source": ["A"] * 50}), item=["source", "id"]):
        assert "would match in lower case" in error
    nulls = pa.table({"item": truth["item"], "cluster": pa.array([None, *truth["cluster"][1:]])})
    on_disk, _ = raised(nulls, pa.table(other))
    assert "'i0'" in on_disk and 'nulls="singleton"' in on_disk
    raised(pa.table(truth), pa.table({"item": list(range(50)), "cluster": truth["cluster"]}))
    weight = {"weight": {item: 1.0 for item in truth["item"][:40]}}
    raised(pa.table(truth), pa.table(truth), **weight)
    raised(pa.table(truth), pa.table(truth), weight=dict.fromkeys(truth["item"], -1.0))
    raised(pa.table(truth).slice(0, 0), pa.table(other))
    for kind in (AlignmentError, DuplicateItemError, EmptyInputError, NullError, OverlapError, WeightError):
        assert issubclass(kind, fb.errors.FastBCubedError)


# -- Faults -----------------------------------------------------------------------------------------


def spill_files(directory):
    """Return this process's open files of a directory, which have no name."""
    found = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{entry}")
        except OSError:
            continue
        if target.startswith(f"{directory}/"):
            found.append(target)
    return found


@pytest.mark.parametrize("many_shards", ["some spilled"], indirect=True)
def test_nothing_is_left_behind(many_shards, tmp_path):
    rng = np.random.default_rng(0)
    true, pred = rng.integers(0, 99, 900), rng.integers(0, 99, 900)
    ev = fb.evaluate(true, pred, engine="disk", spill_dir=tmp_path)
    assert not list(tmp_path.iterdir())
    assert ev.contingency.n_cells > 99  # still there, mapped
    del ev
    gc.collect()
    assert not spill_files(tmp_path)
    with pytest.raises(fb.errors.MetricError):
        fb.evaluate(true, pred, engine="disk", spill_dir=tmp_path, metrics=lambda tp, fp, fn, tn: 1 / "a")
    gc.collect()
    assert not list(tmp_path.iterdir()) and not spill_files(tmp_path)


def test_a_full_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(disk.Layout, "of", lambda *given: disk.Layout(2, 0, 0))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(SpillError, match=r"the disk of .* is full .*spill_dir="):
        fb.evaluate(np.arange(500) // 3, np.arange(500) // 4, engine="disk", spill_dir=tmp_path)
    assert not list(tmp_path.iterdir())


def test_too_little_disk_is_said_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setattr(disk.Layout, "of", lambda *given: disk.Layout(2, 0, 0))
    monkeypatch.setattr(spill.Spill, "free", lambda self: spill.LEAVE_FREE + 100)
    with pytest.raises(SpillError, match="would be spilled to"):
        fb.evaluate(np.arange(500) // 3, np.arange(500) // 4, engine="disk", spill_dir=tmp_path)


def test_directories_that_cannot_serve(tmp_path, monkeypatch):
    monkeypatch.setattr(disk.Layout, "of", lambda *given: disk.Layout(2, 0, 0))
    with pytest.raises(SpillError, match="spill_dir="):
        fb.evaluate([0, 0, 1], [0, 1, 1], engine="disk", spill_dir=tmp_path / "absent")
    monkeypatch.setattr(spill, "_is_in_memory", lambda directory: True)
    with pytest.raises(OptionError, match="is in memory"):
        fb.evaluate([0, 0, 1], [0, 1, 1], engine="disk")
    fb.evaluate([0, 0, 1], [0, 1, 1], engine="disk", spill_dir=tmp_path)  # named on purpose


def test_a_file_that_changes_or_breaks(tmp_path, monkeypatch):
    monkeypatch.setattr(sharded, "block_rows", lambda *_: 100)
    path = tmp_path / "rows.parquet"
    table = pa.table({"t": np.arange(5000) // 3, "p": np.arange(5000) // 4})
    pq.write_table(table, path, row_group_size=1000, write_page_checksum=True, compression="none")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=r"rows.parquet"):
        fb.evaluate("t", "p", table=str(path), engine="disk")
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileFormatError, match="truncated"):
        fb.evaluate("t", "p", table=str(path), engine="disk")


@pytest.mark.process
@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.weekly), True])
def test_memory_stays_below_the_limit(weighted, tmp_path):
    """3e6 rows in one row group take about 400 MB in the memory engine."""
    n = 3_000_000
    rng = np.random.default_rng(0)
    columns = {"t": rng.integers(0, n // 2, n), "p": rng.integers(0, n // 2, n)}
    if weighted:
        columns["w"] = rng.uniform(1, 2, n)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=n)
    before = f"""
        options = dict(table={str(path)!r}, weight={"w" if weighted else None!r}, engine="disk",
                       memory_limit="64MiB", keep="scores")
        fb.evaluate("t", "p", **dict(options, table=dict(t=[0, 1], p=[0, 0], w=[1.0, 2.0])))
    """
    assert growth(before, 'fb.evaluate("t", "p", **options)') < 64 + 256


# -- Limits -----------------------------------------------------------------------------------------


def test_limits(monkeypatch, tmp_path):
    assert memory_budget.memory_limit(5) == 5
    assert memory_budget.memory_limit("1.5 KiB") == 1536 and memory_budget.memory_limit("2gb") == 2 * 10**9
    assert memory_budget.memory_limit("7") == 7
    assert 0 < memory_budget.memory_limit(None) <= memory_budget.available_memory()
    for wrong in (True, -1, 0, "", "GiB", "1e9", [1], 2.5):
        with pytest.raises(OptionError):
            memory_budget.memory_limit(wrong)
    for most, used in memory_budget.GROUPS:
        group = tmp_path / most
        group.mkdir()
        (group / most).write_text("1000\n")
        (group / used).write_text("700\n")
        (group / "memory.stat").write_text("anon 400\nfile 300\ncache 300\n")
        assert memory_budget._left_in(group) == 600
        (group / most).write_text("max\n")
        assert memory_budget._left_in(group) is None


# -- What memory and disk have in common ------------------------------------------------------------


@pytest.mark.cases(0)
def test_groups_and_files_without_rows(many_shards, tmp_path):
    """Spark writes such files for partitions that have no rows."""
    rng = np.random.default_rng(4)
    table = pa.table({"item": np.arange(200), "t": rng.integers(0, 90, 200), "p": rng.integers(0, 90, 200)})
    folders = [tmp_path / name for name in ("parquet", "arrow")]
    for folder, suffix in zip(folders, ("parquet", "arrow"), strict=True):
        folder.mkdir()
        for k, rows in enumerate((table[:0], table[:90], table[:0], table[90:], table[:0])):
            path = folder / f"{k}.{suffix}"
            if suffix == "parquet":
                with pq.ParquetWriter(path, table.schema) as writer:
                    for part in (rows[:0], rows[:50], rows[:0], rows[50:]):
                        writer.write_table(part)
            else:
                with pa.ipc.new_file(path, table.schema) as writer:
                    writer.write_table(rows)
    for folder in folders:
        assert_same(*both("t", "p", table=str(folder)))
        assert_same(*both(str(folder), str(folder), item="item", cluster=("t", "p"), keep="items"))
    with pytest.raises(EmptyInputError, match="there are no rows in"):
        fb.evaluate("t", "p", table=str(folders[0] / "0.parquet"), engine="disk")


def test_a_family_does_without_scores_whose_search_is_given_up(monkeypatch):
    monkeypatch.setattr(counterparts, "LIMIT", 100)
    monkeypatch.setattr(counterparts, "PATIENCE", 10)
    pair = np.repeat(np.arange(20), 20), np.tile(np.arange(20), 20)
    for metrics in ("matching", "all", ["matching", "f1"]):
        found = both(*pair, metrics=metrics)
        assert_same(*found)
        assert "matching_accuracy" in found[0].not_computed
        assert [metric.name for metric in found[0].metrics] == [metric.name for metric in found[1].metrics]
    for metrics in ("matching_accuracy", ["f1", "matching_accuracy"]):
        with pytest.raises(PairingError, match="takes too long"):
            fb.evaluate(*pair, metrics=metrics, engine="disk")


def test_all_scores_with_weights():
    """Those that need the weight of each item are among them; ELM has two names."""
    sides, weight = ([0, 0, 1], [0, 1, 1]), [1.0, 2.0, 3.0]
    found = both(*sides, weight=weight, metrics="all")
    assert_same(*found)
    # matrices by weight: {1, 2} | {3} against {1} | {2, 3}: tp of the items 1, 2, 3; tp + fp 1, 5, 5
    assert found[0].overall["precision"] == pytest.approx((1 * 1 / 1 + 2 * 2 / 5 + 3 * 3 / 5) / 6)
    # the first is alone in the prediction; in their cluster, the others have none of their own true cluster
    assert found[0].overall["elm_precision"] == 1 / 6
    names = ["extended_elm_precision", "extended_elm_f1"]
    assert_same(*both(*sides, weight=weight, metrics=names))


def needy(monkeypatch, free: int) -> tuple[np.ndarray, np.ndarray]:
    """Return clusterings of 500 rows in 167 cells, all to be spilled to a disk that pretends to have this room."""
    monkeypatch.setattr(disk.Layout, "of", lambda *given: disk.Layout(2, 0, 0))
    monkeypatch.setattr(spill, "LEAVE_FREE", 0)
    monkeypatch.setattr(spill.Spill, "free", lambda self: free)
    return np.arange(500) // 3, np.arange(500) // 3


def test_scores_are_kept_where_the_disk_has_no_room_for_cells(monkeypatch, tmp_path):
    true, pred = needy(monkeypatch, 7300)  # the 167 cells take 7,348 bytes, after the rows
    monkeypatch.setattr(disk.Layout, "spill_of_rows", lambda *given: 0)
    options = {"engine": "disk", "spill_dir": tmp_path}
    ev = fb.evaluate(true, pred, **options)
    assert ev.f1 == 1 and not ev.has_clusters
    note = next(note for note in ev.warnings if note["code"] == "cells-not-kept")
    assert note["level"] == "note" and "lacks 8 KiB of space" in note["message"]
    (unchecked,) = (note["message"] for note in ev.warnings if note["code"] == "not-checked")
    assert "these checks need cells, and the disk had no room for them." in unchecked
    with pytest.raises(NotKeptError, match="cells were not kept"):
        ev.clusters("pred")
    assert fb.evaluate(true, pred, keep="scores", **options).overall == ev.overall
    for asked in ({"keep": "cells"}, {"out": tmp_path / "out"}, {"repairs": 3, "out": tmp_path / "out"}):
        with pytest.raises(SpillError, match=r'would be spilled .*keep="scores" keeps no cells'):
            fb.evaluate(true, pred, **options, **asked)


def test_cells_are_kept_where_the_disk_has_room(monkeypatch, tmp_path):
    true, pred = needy(monkeypatch, 9000)  # less than where every row is a cell of its own
    ev = fb.evaluate(true, pred, engine="disk", spill_dir=tmp_path)
    assert ev.has_clusters and "cells-not-kept" not in {note["code"] for note in ev.warnings}


def test_scores_that_need_all_cells_are_not_given_up(monkeypatch, tmp_path):
    true, pred = needy(monkeypatch, 7300)
    monkeypatch.setattr(disk.Layout, "spill_of_rows", lambda *given: 0)
    with pytest.raises(SpillError, match="keeps no cells"):
        fb.evaluate(true, pred, engine="disk", spill_dir=tmp_path, metrics="purity")


def test_too_many_cells_are_noticed_with_the_first_shard(monkeypatch, tmp_path):
    needy(monkeypatch, 2 << 20)  # rows take 1.6 MB, and as many cells 3.2
    true = np.arange(100_000) // 3
    assert fb.evaluate(true, true, engine="disk", spill_dir=tmp_path, keep="scores").f1 == 1
    with pytest.raises(SpillError, match="about 3 MiB would be spilled"):
        fb.evaluate(true, np.arange(true.size), engine="disk", spill_dir=tmp_path, keep="scores")


def test_the_error_before_the_work_names_what_each_keep_takes(monkeypatch, tmp_path):
    true, pred = needy(monkeypatch, 100)
    monkeypatch.setattr(spill, "readable", lambda size: f"{size} bytes")
    monkeypatch.setattr(sharded, "readable", lambda size: f"{size} bytes")
    with pytest.raises(SpillError) as error:
        fb.evaluate(true, pred, engine="disk", spill_dir=tmp_path)
    assert "about 8000 bytes would be spilled" in str(error.value)
    # 500 rows of 16, in 500 cells of 32 on their way, kept in 52 each, and passed back in 92
    assert (
        'keep="scores" takes 8000 bytes to 24000 bytes, keep="cells" up to 50000 bytes, keep="items" up to 96000 bytes'
        in str(error.value)
    )
