"""Scores that take the weight of each item, on the disk engine: ELM, and pairs of items."""

import math
import warnings
from fractions import Fraction

import naive
import naive_families
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import HALF, LIMIT, SETTINGS, assert_same, both
from growth import growth
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, pairs, weights
from test_disk_clusters import assert_same_clusters
from test_disk_rows import assert_same_rows, tables_of
from worked import PAIRS

import fastbcubed as fb
from fastbcubed.cells import cell_parts, dense
from fastbcubed.errors import EvaluationWarning, MetricError, NotKeptError, WeightError
from fastbcubed.results import cluster_ranges as cluster_tables

ELM = ["elm_precision", "elm_recall", "elm_f1", "elm_mean_f1"]


@pytest.fixture
def many_shards(many_shards, monkeypatch):
    """Cut what is done shard by shard of rows into many blocks, too."""
    monkeypatch.setattr(cell_parts, "ROWS_AT_ONCE", 5)
    monkeypatch.setattr(cell_parts, "CELLS_AT_ONCE", 3)
    monkeypatch.setattr(cell_parts, "LEAST", 4)


def on_disk(*sides, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        return fb.evaluate(*sides, engine="disk", memory_limit=LIMIT, **options)


def assert_close(found, expected, name):
    expected = Fraction(expected)
    assert math.isfinite(found), name
    assert abs(Fraction(found) - expected) <= 1e-12 * max(1, abs(expected)), (name, found, float(expected))


# -- Against the twins ------------------------------------------------------------------------------


@pytest.mark.cases(1)
@SETTINGS
@given(pairs(max_size=14), st.sampled_from(POLICIES), st.sampled_from(["pointwise", "outer"]), st.data())
def test_elm(many_shards, pair, policy, weighting, data):
    weight = data.draw(weights(len(pair.items), zeros=weighting == "outer"))
    by_item = None if weight is None else dict(zip(pair.items, weight, strict=True))
    how = {"unmatched": policy, "weighting": weighting}
    keep = data.draw(st.sampled_from(["scores", "cells", "items"]))
    try:
        twin = naive.evaluate(*pair, by_item, **how)
    except ValueError:  # all scored items weigh 0
        with pytest.raises(WeightError):
            on_disk(*pair, weight=by_item, metrics=ELM, **how)
        return
    found = on_disk(*pair, weight=by_item, metrics=[*ELM, "f1"], keep=keep, **how).overall
    for name in ELM:
        assert_close(found[name], twin.mean(name), name)


def with_singletons(pair):
    """Give items that a side lacks a cluster of their own there."""
    items = {*pair.truth, *pair.prediction}
    return [side | {item: ("alone", item) for item in items - side.keys()} for side in pair]


@pytest.mark.cases(1)
@SETTINGS
@given(pairs(max_size=14), st.sampled_from(["drop", "singleton"]), st.data())
def test_pairs_of_items(many_shards, pair, policy, data):
    weight = data.draw(weights(len(pair.items)))
    by_item = None if weight is None else dict(zip(pair.items, weight, strict=True))
    found = on_disk(*pair, weight=by_item, metrics="pairs", unmatched=policy).overall
    sides = tuple(pair)[:2] if policy == "drop" else with_singletons(pair)
    for name in PAIRS:
        assert_close(found[name], naive_families.score(name, *sides, by_item), name)


# -- Against the memory engine ----------------------------------------------------------------------


@pytest.mark.cases(1)
@SETTINGS
@given(pairs(max_size=30), st.sampled_from(POLICIES), st.data())
def test_slices_and_items(many_shards, pair, policy, data):
    weight = data.draw(weights(len(pair.items)).filter(bool))
    options = {
        "unmatched": policy,
        "weight": dict(zip(pair.items, weight, strict=True)),
        "metrics": [*ELM, "f1"],
    }
    slices = ["year", ("truth.both", "prediction.both"), ("true_size", "year")]
    found, expected = both(*tables_of(pair, data), slices=slices, keep="items", **options)
    assert_same(found, expected)
    assert_same_rows(found, expected)


@pytest.mark.cases(1)
@pytest.mark.parametrize("ranges", ["small", "one"])
@HALF
@given(pair=pairs(max_size=30), policy=st.sampled_from(POLICIES), data=st.data())
def test_clusters(many_shards, ranges, monkeypatch, pair, policy, data):
    if ranges == "small":
        monkeypatch.setattr(cluster_tables, "CELL_BYTES", LIMIT // 4 // 5)
        monkeypatch.setattr(cluster_tables, "BATCH", 7)
    n = len(pair.items)
    weight = data.draw(st.lists(st.integers(1, 4).map(float), min_size=n, max_size=n))
    options = {
        "unmatched": policy,
        "weight": dict(zip(pair.items, weight, strict=True)),
        "metrics": ["f1", *ELM],
    }
    found, expected = both(*pair, **options)
    for side in ("true", "pred"):
        assert_same_clusters(found, expected, side, data.draw(st.sampled_from(["f1", "weight"])))


@pytest.fixture(scope="module")
def heavy():
    """Items of large clusters and small ones, with weights over twelve orders of magnitude, in both containers."""
    rng, n = np.random.default_rng(8), 900
    true, pred = rng.integers(0, 200, n), rng.integers(0, 200, n)
    true[rng.random(n) < 0.4], pred[rng.random(n) < 0.4] = 7, 9
    same = rng.random(n) < 0.4
    pred[same] = true[same] + 1000
    return {"t": true, "p": pred, "w": 10.0 ** rng.uniform(-6, 6, n), "k": rng.integers(0, 4, n)}


@pytest.mark.cases(1)
@pytest.mark.parametrize("text", [False, True])
def test_large_clusters(many_shards, heavy, text, tmp_path):
    sides = [np.char.add("x", heavy[name].astype(str)) if text else heavy[name] for name in "tp"]
    options = {
        "weight": heavy["w"],
        "metrics": ["elm", "pairs", "pointwise", "bcubed"],
        "attributes": {"k": heavy["k"]},
    }
    found, expected = both(*sides, slices=["k", "pred_size"], keep="items", **options)
    assert_same(found, expected)
    assert_same_rows(found, expected)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)  # a large component has most of the weight
        errors, of_memory = found.errors, expected.errors
    for name, error in of_memory.items():
        assert errors[name] == pytest.approx(error, rel=1e-9, nan_ok=True), name
    for which in ("found", "expected"):
        (found if which == "found" else expected).save(tmp_path / which, keep="cells")
    loaded, again = (fb.load(tmp_path / which) for which in ("found", "expected"))
    assert loaded.overall == found.overall
    value = loaded.metric("pair_f1")
    assert value == pytest.approx(again.metric("pair_f1"), rel=1e-12)


def test_rows_of_pairs_that_repeat(heavy, monkeypatch):
    """Rows are not condensed where the weight of each is needed."""
    for name, value in {"MOST_SLOTS": 1 << 20, "ROWS_PER_SLOT": 1}.items():
        monkeypatch.setattr(dense, name, value)
    rng = np.random.default_rng(1)
    sides = rng.integers(0, 4, 900), rng.integers(0, 4, 900)
    for metrics in (["elm_f1"], ["pair_f1"], ["f1"]):
        assert_same(*both(*sides, weight=heavy["w"], metrics=metrics))


@pytest.mark.slow
@pytest.mark.parametrize("many_shards", ["some spilled"], indirect=True)
def test_the_same_bits_for_any_number_of_threads(many_shards, heavy):
    def scores(threads):
        how = {
            "metrics": ["elm", "pairs"],
            "attributes": {"k": heavy["k"]},
            "slices": "k",
            "threads": threads,
        }
        ev = on_disk(heavy["t"], heavy["p"], weight=heavy["w"], **how)
        clusters = ev.clusters("true").to_pandas()
        return (
            ev.overall,
            ev.slices("k").to_arrow().to_pydict(),
            clusters[["weight", *ELM]].to_numpy().tolist(),
        )

    assert scores(1) == scores(2) == scores(4)


@pytest.mark.parametrize("metrics", [["precision", "mean_f1"], ["bcubed", "matching"]])
def test_other_scores_are_worked_out_as_before(heavy, metrics):
    plain = on_disk(heavy["t"], heavy["p"], weight=heavy["w"], metrics=metrics).overall
    beside = on_disk(heavy["t"], heavy["p"], weight=heavy["w"], metrics=[*metrics, "elm", "pairs"]).overall
    assert {name: beside[name] for name in plain} == pytest.approx(plain, rel=1e-14)


@pytest.mark.cases(1)
@pytest.mark.parametrize("n_clusters", [1, 3, 40])
@pytest.mark.parametrize("policy", ["raise", "singleton"])
def test_pairs_of_few_clusters_weigh_as_in_memory(many_shards, n_clusters, policy):
    """Rows of the same two clusters are stored as one, whatever is asked of them; some have no cluster."""
    rng = np.random.default_rng(n_clusters)
    true, pred = rng.integers(0, n_clusters, (2, 900))
    both_have = {"item": np.arange(900), "w": 10.0 ** rng.integers(-6, 6, 900)}
    sides = [pa.table({**both_have, "cluster": side}) for side in (true, pred)]
    if policy == "singleton":
        sides = [sides[0].slice(0, 850), sides[1].slice(40)]
    how = {"metrics": ["pairs", "bcubed"], "weight": "w", "unmatched": policy, "keep": "items"}
    on_disk, in_memory = both(*sides, **how)
    assert_same(on_disk, in_memory)
    told = [ev.items(limit=None).to_pandas().set_index("item").sort_index() for ev in (on_disk, in_memory)]
    figures = ["weight", "tp", "fp", "fn", "bcubed_precision", "bcubed_recall"]
    assert told[0].index.equals(told[1].index)
    np.testing.assert_allclose(*(each[figures].to_numpy() for each in told), rtol=1e-12, atol=1e-9)


@pytest.mark.slow
def test_several_runs(many_shards, heavy):
    ids = np.arange(900)
    sides = [pa.table({"item": ids, "cluster": heavy[name]}) for name in "tp"]
    runs = {"first": sides[1], "second": pa.table({"item": ids[30:], "cluster": heavy["p"][30:] // 2})}
    weight = pa.table({"item": ids, "weight": heavy["w"]})

    def compared(**options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvaluationWarning)
            found = fb.compare(
                sides[0], runs, weight=weight, metrics=["elm_precision", "pair_f1", "f1"], **options
            )
            return found.deltas().to_pandas(), found.clusters("true", limit=5).to_pandas()

    for found, expected in zip(
        compared(engine="disk", memory_limit=LIMIT), compared(engine="memory"), strict=True
    ):
        assert list(found) == list(expected)
        if (
            "score" in expected
        ):  # errors of pairs take the weight of each item, which this engine does not keep
            assert found["se"].isna().equals(found["score"] == "pair_f1")
            found, expected = (side[found["score"] != "pair_f1"] for side in (found, expected))
        for name in expected.select_dtypes("float"):
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-12, err_msg=name)


# -- By hand ----------------------------------------------------------------------------------------


def test_three_items():
    """Truth {1, 2, 3}, prediction {1, 2}, {3}, weights 1, 2, 3."""
    found = on_disk([0, 0, 0], [0, 0, 1], weight=[1.0, 2.0, 3.0], metrics=["elm", "pairs"]).overall
    assert found["elm_precision"] == 1
    assert found["elm_recall"] == pytest.approx((1 * 2 / 5 + 2 * 1 / 4 + 3 * 0) / 6, rel=1e-15)
    assert found["elm_mean_f1"] == pytest.approx((1 * 4 / 7 + 2 * 2 / 5 + 3 * 0) / 6, rel=1e-15)
    counts = {"pair_tp": 1 * 2, "pair_fp": 0, "pair_fn": 1 * 3 + 2 * 3, "pair_tn": 0}
    assert {name: found[name] for name in counts} == counts


def test_one_heavy_item():
    """What is left of a cell without its heaviest item keeps all digits."""
    found = on_disk(
        [0, 0, 0], [0, 0, 0], weight=[1e15, 1e-10, 2e-10], metrics=["pair_tp", "elm_precision"]
    ).overall
    assert found["pair_tp"] == pytest.approx(1e15 * 3e-10 + 2e-20, rel=1e-14)
    assert found["elm_precision"] == 1
    found = on_disk([0, 0, 0], [0, 0, 1], weight=[1e15, 1e-10, 2e-10], metrics="elm_recall").overall
    expected = (1e15 * (1 / 3) + 1e-10 * (1e15 / (1e15 + 2e-10))) / (1e15 + 3e-10)
    assert found["elm_recall"] == pytest.approx(expected, rel=1e-14)


# -- What is chosen, kept, and held -----------------------------------------------------------------


@pytest.mark.slow
def test_the_engine_is_chosen_by_size(tmp_path):
    n, path = 1_500_000, str(tmp_path / "big.parquet")
    pq.write_table(
        pa.table({"t": np.arange(n) // 3, "p": np.arange(n) // 4, "w": 1 + np.arange(n) % 3}), path
    )
    options = {"table": path, "weight": "w", "metrics": ["elm_f1", "pair_f1"]}
    chosen = fb.evaluate("t", "p", memory_limit=LIMIT, **options)
    assert chosen.engine == "disk"
    assert_same(chosen, fb.evaluate("t", "p", engine="memory", **options))


def test_scores_that_come_later():
    sides, weight = ([0, 0, 1], [0, 1, 1]), [1.0, 2.0, 3.0]
    kept = on_disk(*sides, weight=weight, keep="items")
    expected = fb.evaluate(*sides, weight=weight)
    for name in ("elm_recall", "pair_f1"):
        assert kept.metric(name) == pytest.approx(expected.metric(name), rel=1e-15)
    with pytest.raises(NotKeptError, match="elm_recall needs the weight of each item"):
        on_disk(*sides, weight=weight).metric("elm_recall")
    with pytest.raises(MetricError, match=r'To have the score, name it in metrics= .*, or .* keep="items";'):
        on_disk([0, 0, 1], [0, 0, 1], weight=weight).metric("pair_f1")
    named = on_disk([0, 0, 1], [0, 0, 1], weight=weight, metrics=["pair_f1"])
    assert named.metric("pair_f1") == named.metric("pair_recall") == 1


@pytest.mark.process
@pytest.mark.slow
def test_the_memory_limit(tmp_path):
    """Rows that are cells of their own are the most that a shard may hold."""
    rng, n = np.random.default_rng(0), 5_000_000
    columns = {"t": rng.permutation(n) // 2, "p": rng.permutation(n) // 2, "w": rng.random(n) + 0.5}
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table(columns), path, row_group_size=1 << 20)
    options = "weight='w', metrics=['elm', 'pairs'], slices='pred_size', engine='disk', memory_limit='64MiB'"
    before = f"fb.evaluate('t', 'p', table={{'t': [0, 1], 'p': [0, 0], 'w': [1, 2]}}, {options})"
    assert growth(before, f"fb.evaluate('t', 'p', table={path!r}, {options})") < 64 + 256


def test_tables_that_were_joined_are_let_go():
    """A result does not hold a table of weights or attributes that its rows have, as both are held as a whole."""
    items = np.arange(9)
    truth, prediction = (pa.table({"item": items, "cluster": items // k}) for k in (2, 3))
    joined = {
        "weight": pa.table({"item": items, "weight": items + 1.0}),
        "attributes": pa.table({"item": items, "kind": items % 2}),
    }
    ev = on_disk(truth, prediction, **joined, slices="kind", keep="items")
    assert (ev.origin.pair.weight_table, ev.origin.pair.attribute_table) == (None, None)
    assert ev.slices("kind")["weight"].to_pylist() == [25.0, 20.0]  # 1 + 3 + 5 + 7 + 9 and 2 + 4 + 6 + 8
    assert_same(ev, fb.evaluate(truth, prediction, **joined, slices="kind", keep="items"))
