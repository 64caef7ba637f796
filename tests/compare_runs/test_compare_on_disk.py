"""Comparisons by the disk engine, in many shards, beside those by the memory engine, which they have to equal."""

from __future__ import annotations

import math
import re

import hypothesis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from asking_compare import has_errors
from both_engines import LIMIT, SETTINGS, assert_same
from effort import pairwise
from hypothesis import given
from hypothesis import strategies as st
from strategies_compare import comparisons

import fastbcubed as fb
from fastbcubed.errors import (
    AlignmentError,
    EmptyInputError,
    FastBCubedError,
    NotKeptError,
    OptionError,
    WeightError,
)

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")

SPILLED = ["all in memory", "all spilled", "some spilled"]
METRICS = ["precision", "recall", "f1", "mean_f1", "jaccard_index", "over_merge_rate", "purity"]


def both(*args, **options):
    """Compare with either engine; reject what both refuse with the same words."""
    options = {"metrics": METRICS, **options}
    try:
        in_memory = fb.compare(*args, engine="memory", **options)
    except FastBCubedError as error:
        with pytest.raises(type(error)):
            fb.compare(*args, engine="disk", memory_limit=LIMIT, **options)
        hypothesis.reject()
    return fb.compare(*args, engine="disk", memory_limit=LIMIT, **options), in_memory


def assert_equal(table, expected, *, close=1e-12):
    assert table.column_names == expected.column_names
    for name in expected.column_names:
        own, other = table[name].to_pylist(), expected[name].to_pylist()
        if pa.types.is_floating(expected[name].type):
            own, other = ([np.nan if v is None else v for v in values] for values in (own, other))
            assert own == pytest.approx(other, rel=close, abs=close, nan_ok=True), name
        else:
            assert own == other, name


def assert_same_comparison(on_disk, in_memory):
    for name in in_memory:
        assert on_disk[name].engine == "disk"
        assert_same(on_disk[name], in_memory[name])
    assert_equal(on_disk.scores(), in_memory.scores())
    assert_equal(on_disk.coverage(), in_memory.coverage())
    if not has_errors(on_disk):
        with pytest.raises(NotKeptError, match="policies have created singleton true clusters"):
            on_disk.units  # noqa: B018
        return
    assert_equal(
        on_disk.deltas().drop_columns(["holds"]), in_memory.deltas().drop_columns(["holds"]), close=1e-9
    )
    assert on_disk.units == pytest.approx(in_memory.units, nan_ok=True)


def by_cluster(cmp):
    """Return what became of each true cluster that has a label, by label."""
    return {row.pop("cluster"): row for row in cmp.clusters(order_by=None).to_pylist()}


@pytest.mark.cases(1)
@SETTINGS
@given(case=comparisons(40, least_runs=2))
def test_runs_on_common_items(many_shards, case):
    try:
        on_disk, in_memory = both(case.truth, case.runs, weight=case.weight, **case.options)
    except OptionError as error:
        assert "that the truth lacks" in str(error)
        further = [set(run) - set(case.truth) for run in case.runs.values()]
        assert any(further)
        hypothesis.reject()
    assert_same_comparison(on_disk, in_memory)


def tables(truth, runs):
    def table(clustering):
        return pa.table({"item": list(clustering), "cluster": list(clustering.values())})

    return table(truth), {name: table(run) for name, run in runs.items()}


@pytest.mark.cases(0)
@pairwise(
    many_shards=SPILLED, ids=[int, str], labels=[int, "c{}".format],
    order=[["all", "odd", "even"], ["even", "odd", "all"]],
    indirect=["many_shards"],
)  # fmt: skip
def test_clusters_and_slices(many_shards, ids, labels, order):
    """Runs that lack different items: one that is narrowed later is aligned again, whichever comes first."""
    generator = np.random.default_rng(1)
    items, country = np.arange(300), generator.integers(0, 3, 300)
    truth = {ids(i): labels(i // 3) for i in items}
    runs = {
        name: {
            ids(i): labels(c) for i, c in zip(items, generator.integers(0, 150, 300), strict=True) if keeps(i)
        }
        for name, keeps in (("all", lambda i: True), ("odd", lambda i: i % 7), ("even", lambda i: i % 5))
    }
    runs["odd"] |= {ids(1000 + i): labels(i) for i in range(30)}
    attributes = {"item": list(map(ids, items)), "country": country}
    how = {"attributes": attributes, "slices": "country"}
    on_disk, in_memory = both(*tables(truth, {name: runs[name] for name in order}), **how)
    assert_same_comparison(on_disk, in_memory)
    assert in_memory.n_items == sum(1 for i in items if i % 7 and i % 5)
    found, expected = by_cluster(on_disk), by_cluster(in_memory)
    assert found.keys() == expected.keys()
    for label, row in expected.items():
        assert found[label] == pytest.approx(row), label
    assert_equal(on_disk.slices("country", deltas=False), in_memory.slices("country", deltas=False))


@pytest.mark.cases(0)
@pairwise(
    many_shards=SPILLED, nulls=["singleton", "drop"], labels=[int, "c{}".format],
    unmatched=["drop", "outside", {"truth": "drop", "prediction": "outside"}], align=["common", "each"],
    indirect=["many_shards"],
)  # fmt: skip
def test_nulls_noise_and_repeated_rows(many_shards, nulls, unmatched, labels, align):
    generator = np.random.default_rng(5)

    def table(n_rows, first=0):
        items = np.arange(first, first + n_rows)
        codes = (items // 2 + generator.integers(0, 2, n_rows)) % 40
        nothing = generator.random(n_rows) < 0.1
        label = [None if lacks else labels(code) for lacks, code in zip(nothing, codes, strict=True)]
        whole = pa.table({"item": items, "cluster": label})
        again = generator.permutation(np.append(np.arange(n_rows), generator.integers(0, n_rows, 20)))
        return whole.take(pa.array(again))

    runs = {"a": table(90), "b": table(80, 20), "c": table(85, 5)}
    how = {"nulls": nulls, "unmatched": unmatched, "duplicates": "drop", "noise": labels(7)}
    on_disk, in_memory = both(table(100), runs, align=align, **how)
    assert_same_comparison(on_disk, in_memory)


def files(tmp_path, truth, runs):
    paths = {}
    for name, table in {"truth": truth, **runs}.items():
        paths[name] = tmp_path / f"{name}.parquet"
        pq.write_table(table, paths[name], row_group_size=50)
    return paths.pop("truth"), paths


@pytest.mark.cases(0)
def test_files_that_all_runs_share(many_shards, tmp_path):
    generator = np.random.default_rng(2)
    clusterings = [dict(enumerate(generator.integers(0, 90, 200).tolist())) for _ in range(4)]
    truth, runs = tables(clusterings[0], dict(zip("abc", clusterings[1:], strict=True)))
    paths = files(tmp_path, truth, runs)
    on_disk, in_memory = both(*paths)
    assert_same_comparison(on_disk, in_memory)
    assert on_disk._true_numbers is None  # the codes of true clusters are the same


@pytest.mark.slow
@pairwise(
    many_shards=SPILLED, align=["common", "each"], items=[True, False], from_file=[True, False],
    indirect=["many_shards"],
)  # fmt: skip
def test_columns_of_one_table(many_shards, tmp_path, items, align, from_file):
    """Nulls say that a run lacks the item; weights are those of the table."""
    generator = np.random.default_rng(3)

    def column(missing):
        values = generator.integers(0, 60, 150)
        return pa.array(values, mask=generator.random(150) < missing)

    columns = {
        "t": column(0.1),
        "a": column(0.2),
        "b": column(0.0),
        "c": column(0.1),
        "w": generator.random(150),
    }
    if items:
        columns["item"] = np.arange(150)
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=40)
    runs = {"x": "a", "y": "b", "z": "c"}
    table = tmp_path / "rows.parquet" if from_file else pa.table(columns)
    on_disk, in_memory = both("t", runs, table=table, weight="w", align=align, nulls="drop")
    assert_same_comparison(on_disk, in_memory)


def test_arrays(many_shards):
    generator = np.random.default_rng(4)
    truth, a, b = generator.integers(0, 40, (3, 100))
    on_disk, in_memory = both(truth, {"a": a, "b": b}, weight=generator.random(100), noise=3)
    assert_same_comparison(on_disk, in_memory)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_what_passes_by_once_is_read_once(engine):
    """A reader that is the truth, or the table of all runs, serves all runs."""
    truth, runs = tables({1: 1, 2: 1, 3: 2}, {"a": {1: 1, 2: 1, 3: 1}, "b": {1: 1, 2: 2, 3: 3}})
    expected = fb.compare(truth, runs).scores().to_pylist()
    runs["b"] = runs["b"].to_reader()
    assert fb.compare(truth.to_reader(), runs, engine=engine).scores().to_pylist() == expected
    table = pa.table({"t": [1, 1, 2], "p": [1, 1, 1], "q": [1, 2, 3], "w": [1.0, 2.0, 4.0]})
    by_column = fb.compare("t", {"a": "p", "b": "q"}, table=table.to_reader(), engine=engine)
    assert by_column.scores().to_pylist() == expected
    weighted = [
        fb.compare("t", {"a": "p", "b": "q"}, table=each, weight="w", engine=engine).scores().to_pylist()
        for each in (table, table.to_reader())
    ]
    assert weighted[0] == weighted[1] and weighted[0][0]["weight"] == 7


@pytest.mark.cases(0)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_what_raises(engine):
    truth = pa.table({"item": list("abcd"), "cluster": [1, 1, 2, 2]})

    def run(items, **others):
        return pa.table({"item": list(items), "cluster": list(range(len(items))), **others})

    def compare(*runs, **options):
        return fb.compare(truth, dict(zip(("old", "new"), runs, strict=True)), engine=engine, **options)

    with pytest.raises(
        EmptyInputError, match=r"no item of the truth is scored in every run \(items scored: old 2, new 2\)"
    ):
        compare(run("ab"), run("cd"))
    with pytest.raises(EmptyInputError, match="no item of the truth is in the prediction"):
        compare(run("ab"), run("xy"))
    with pytest.raises(AlignmentError, match="1 of 4 items of the truth are missing"):
        compare(run("abcd"), run("abc"), unmatched="raise")
    with pytest.raises(
        WeightError, match=re.escape("items have different weights in the runs 'old' and 'new'")
    ):
        compare(run("abc", w=[1.0, 2.0, 3.0]), run("abc", w=[1.0, 2.0, 4.0]), weight="w")
    weighed = compare(run("abc", w=[1.0, 2.0, 3.0]), run("acd", w=[1.0, 3.0, 4.0]), weight="w")
    assert weighed.scores()["weight"].to_pylist() == [4.0, 4.0]


def test_further_items_are_refused_on_disk():
    truth, runs = {1: 1, 2: 1}, {"old": {1: 1, 2: 2, 3: 3}, "new": {1: 1, 2: 1}}
    assert fb.compare(truth, runs, unmatched="singleton").n_items == 2
    with pytest.raises(OptionError, match="'old' has 1 item that the truth lacks and that would be"):
        fb.compare(truth, runs, unmatched="singleton", engine="disk")


@pytest.mark.slow
@SETTINGS
@given(case=comparisons(30, least_runs=2, align=("common",)), seed=st.integers(0, 3))
def test_order_of_rows(many_shards, case, seed):
    """Whatever the order of rows in the runs and in the truth."""
    generator = np.random.default_rng(seed)

    def shuffled(clustering):
        items = list(clustering)
        return {items[k]: clustering[items[k]] for k in generator.permutation(len(items))}

    options = {**case.options, "unmatched": "drop", "weight": case.weight}
    runs = {name: shuffled(run) for name, run in case.runs.items()}
    on_disk, in_memory = both(shuffled(case.truth), runs, **options)
    assert_same_comparison(on_disk, in_memory)


def test_true_clusters_that_policies_make_are_not_taken_for_each_other(tmp_path):
    """c and d are alone in the truth; each run has one of them more than the other, in its first row."""
    truth = pa.table({"item": ["a", "b"], "cluster": ["x", "x"]})
    runs = {
        "p": pa.table({"item": ["c", "a", "b", "e"], "cluster": [1, 1, 2, 3]}),
        "q": pa.table({"item": ["d", "b", "a", "c"], "cluster": [1, 2, 2, 2]}),
    }
    for name, table in {"truth": truth, **runs}.items():
        pq.write_table(table, tmp_path / name)
    paths = {name: tmp_path / name for name in runs}
    options = {"unmatched": "singleton", "align": "each"}
    whole = fb.compare(truth, runs, **options).clusters().to_pylist()
    assert sorted(str(row["cluster"]) for row in whole) == ["None", "x"]  # c, which both have, has no name
    found = fb.compare(tmp_path / "truth", paths, engine="disk", **options).clusters().to_pylist()
    assert found == [row for row in whole if row["cluster"] is not None]


def test_relations_of_one_connection_of_duckdb():
    """A connection has one open result at a time."""
    duckdb = pytest.importorskip("duckdb")
    truth = pa.table({"item": [1, 2, 3], "cluster": [1, 1, 2]})
    run = pa.table({"item": [1, 2, 3], "cluster": [1, 2, 2]})
    connection = duckdb.connect()
    relations = [connection.from_arrow(table) for table in (truth, run, truth)]
    found = fb.compare(relations[0], {"old": relations[1], "new": relations[2]}, engine="disk")
    assert found.scores().to_pylist() == fb.compare(truth, {"old": run, "new": truth}).scores().to_pylist()


@pytest.mark.slow
def test_scores_without_errors_are_named_with_their_reason():
    """Pairs of weighted items take each item, which are not kept on disk; other scores have errors there, too."""
    items = range(24)
    truth, runs = (
        {i: i // 2 for i in items},
        {"a": {i: i // 4 for i in items}, "b": {i: i // 3 for i in items}},
    )
    options = {"weight": {i: 1.0 + i % 3 for i in items}, "metrics": ["f1", "pair_f1", "rand"]}
    on_disk, in_memory = (fb.compare(truth, runs, engine=engine, **options) for engine in ("disk", "memory"))
    known = {row["score"]: not math.isnan(row["se"]) for row in on_disk.deltas().to_pylist()}
    assert known == {"f1": True, "pair_f1": False, "rand": False}
    why = (
        "No interval is known for pair_f1 and rand: they need the weight of each item; compare with "
        'engine="memory" to compute them.'
    )
    assert why in " ".join(repr(on_disk).split()) and why.split(":")[0] in on_disk.report().html
    assert "No interval is known" not in repr(in_memory)
    by_parts = fb.compare(truth, runs, unit="true_cluster", **options)
    assert "for pair_f1 and rand: clusters whose items are in several units belong to no unit" in " ".join(
        repr(by_parts).split()
    )
