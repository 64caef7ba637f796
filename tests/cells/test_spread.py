"""Predicted clusters that are spread over all shards: same figures as in memory, whatever the shards."""

import numpy as np
import pytest
from both_engines import SPILLS, assert_same, both
from effort import pairwise

import fastbcubed as fb
from fastbcubed.align.apply_policies import starts_of_runs
from fastbcubed.cells.partitioned import mixed_keys
from fastbcubed.cells.shards import Spread, pred_codes


def test_stand_ins():
    spread = Spread.of(np.array([7, -3]), 5, 1)
    assert (spread.keys.tolist(), spread.ways, spread.first) == ([-3, 7], 32, 5 - 64)
    true, pred = np.arange(1000), np.resize([7, 8, -3, 100], 1000)
    found = spread.stand_ins(true, pred)
    assert ((found == pred) == np.isin(pred, [8, 100])).all()
    assert set(found[pred == -3]) <= set(range(-59, -27)) and set(found[pred == 7]) <= set(range(-27, 5))
    assert len(set(found[pred == 7])) > 16  # of the 32, by the true key
    again = spread.stand_ins(true[::-1], pred[::-1])[::-1]
    assert (again == found).all()
    clusters = spread.clusters(mixed_keys([*range(-60, 8), 100]))
    assert clusters.tolist() == [-1, *[0] * 32, *[1] * 32, -1, -1, -1, -1]
    assert spread.is_taken(np.array([6, -59])) and not spread.is_taken(np.array([5, -60]))


def test_stand_ins_at_the_ends_of_64_bits():
    spread = Spread.of(np.array([0, 1]), -(2**63) + 3, 1)
    found = spread.stand_ins(np.arange(500), np.arange(500) % 2)
    assert (spread.clusters(mixed_keys(found)) == np.arange(500) % 2).all()
    assert {k > 0 for k in found.tolist()} == {True, False}  # they go round
    assert spread.is_taken(found) and not spread.is_taken(np.array([0, 1]))


def test_nothing_is_spread_where_all_is_in_one_shard():
    spread = Spread.of(np.array([7]), 5, 0)
    pred = np.array([7, 8])
    assert not spread and spread.stand_ins(pred, pred) is pred and not spread.is_taken(pred)


def test_codes():
    assert pred_codes(np.array([-1, 0, -1, 1, 0]), 7).tolist() == [7, 0, 8, 1, 0]


SHAPES = {
    "all in one": (lambda n: np.arange(n), lambda n: np.zeros(n, int)),
    "in two": (lambda n: np.arange(n) // 2, lambda n: np.arange(n) % 2),
    "half": (lambda n: np.arange(n) // 3, lambda n: np.where(np.arange(n) % 2, -5, np.arange(n))),
    "one on both sides": (lambda n: np.zeros(n, int), lambda n: np.zeros(n, int)),
    "half on both sides": (lambda n: np.arange(n) % 9 * (np.arange(n) % 2), lambda n: np.arange(n) % 7 // 3),
}


@pytest.mark.cases(0)
@pairwise(
    shape=list(SHAPES), text=[False, True], weighted=[False, True], many_shards=SPILLS,
    indirect=["many_shards"],
)  # fmt: skip
def test_large_predicted_clusters(shape, text, weighted, many_shards):
    n = 700
    true, pred = (make(n) for make in SHAPES[shape])
    if text:
        true, pred = true.astype(str), pred.astype(str)
    weight = np.random.default_rng(0).uniform(0.5, 2, n) if weighted else None
    found = both(true, pred, weight=weight, slices=["true_size", "pred_size"], keep="items")
    assert_same(*found)
    for side in ("true", "pred"):
        tables = [ev.clusters(side).to_pandas() for ev in found]
        assert tables[0].shape == tables[1].shape
        for name in ("n_items", "weight", "precision"):
            assert tables[0][name].tolist() == pytest.approx(tables[1][name].tolist(), rel=1e-12)
    for by in ("true_size", "pred_size"):
        slices = [ev.slices(by).to_pydict() for ev in found]
        assert slices[0].keys() == slices[1].keys() and slices[0][by] == slices[1][by]
        assert slices[0]["f1"] == pytest.approx(slices[1]["f1"], rel=1e-12)


@pytest.mark.cases(1)
@pytest.mark.parametrize("policy", ["drop", "singleton", "outside"])
def test_items_of_one_side(policy, many_shards):
    rng = np.random.default_rng(1)
    truth = {k: int(rng.integers(0, 200)) for k in range(500)}
    prediction = {k: int(rng.integers(0, 3)) for k in range(300, 900)}
    found = both(truth, prediction, unmatched=policy, slices="pred_size", metrics=["pointwise", "bcubed"])
    assert_same(*found)
    slices = [ev.slices("pred_size").to_pydict() for ev in found]
    assert slices[0]["pred_size"] == slices[1]["pred_size"]
    assert slices[0]["n_items"] == slices[1]["n_items"]
    assert slices[0]["precision"] == pytest.approx(slices[1]["precision"], rel=1e-12)


@pytest.mark.cases(0)
def test_a_stand_in_that_is_a_label(many_shards):
    """All is begun again with other stand-ins."""
    start = next(starts_of_runs())
    pred = np.zeros(400, int)
    pred[-1] = start - 1 - 64 + 5  # one of the 64 stand-ins of cluster 0, in four shards
    true = np.arange(400) // 2
    assert_same(*both(true, pred))
    assert both(true, pred)[0].summary["pred"]["clusters"] == 2


@pytest.mark.cases(0)
def test_the_files_that_are_written(many_shards, tmp_path):
    rng = np.random.default_rng(2)
    true, pred = rng.integers(0, 300, 900), np.where(rng.random(900) < 0.5, 3, rng.integers(0, 300, 900))
    saved = []
    for engine, limit in (("disk", "64MiB"), ("memory", None)):
        fb.evaluate(true, pred, engine=engine, memory_limit=limit, out=tmp_path / engine)
        ev = fb.load(tmp_path / engine)
        saved.append((ev.clusters("pred"), ev.overall))
    assert saved[0][0]["n_items"].to_pylist() == saved[1][0]["n_items"].to_pylist()
    assert dict(saved[0][1]) == pytest.approx(dict(saved[1][1]), rel=1e-12)
