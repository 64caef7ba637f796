"""Paired errors of many items, whose cells take several blocks, against NumPy's sums and SciPy's components."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from asking_compare import deltas
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import fastbcubed as fb
from fastbcubed.cells import shards
from fastbcubed.results import influences, unit_cells
from fastbcubed.runtime import threads as pool

SCORES = ["precision", "recall", "mean_f1", "jaccard_distance", "f1"]
SCORES += ["split_jaccard_distance", "merge_jaccard_distance"]
N_CLUSTERS = 100_000


def clusterings():
    """Return a truth of small clusters, three runs that each move items next door, and weights."""
    rng = np.random.default_rng(31)
    true = np.repeat(np.arange(N_CLUSTERS), rng.geometric(0.4, N_CLUSTERS))
    rng.shuffle(true)
    runs = {
        name: np.where(rng.random(true.size) < share, true // 8 * 8 + rng.integers(0, 8, true.size), true)
        for name, share in (("old", 0.1), ("new", 0.08), ("other", 0.2))
    }
    return true, runs, rng.uniform(1, 100, true.size)


def weight_of(labels, weight):
    """Return for each item the weight of all that share its label."""
    _, codes = np.unique(labels, return_inverse=True)
    return np.bincount(codes, weight)[codes]


def connected(*clusterings):
    """Return the component of each item: clusters are nodes, and an item links those that it is in."""
    nodes = [labels + k * N_CLUSTERS for k, labels in enumerate(clusterings)]
    start = np.tile(nodes[0], len(nodes) - 1)
    links = coo_array(
        (np.ones(start.size), (start, np.concatenate(nodes[1:]))), (N_CLUSTERS * len(nodes),) * 2
    )
    _, found = connected_components(links, directed=False)
    _, unit = np.unique(found[nodes[0]], return_inverse=True)
    return unit


def moves(true, pred, weight, unit):
    """Return scores, and by unit the sums of share * (s - S), of an F by its slopes."""
    share = weight / weight.sum()
    cell, own, other = (weight_of(labels, weight) for labels in (true * N_CLUSTERS + pred, pred, true))
    p, r = cell / own, cell / other
    by_item = {
        "precision": p,
        "recall": r,
        "mean_f1": 2 * p * r / (p + r),
        "jaccard_distance": 1 - cell / (own + other - cell),
        "split_jaccard_distance": (other - cell) / (own + other - cell),
        "merge_jaccard_distance": (own - cell) / (own + other - cell),
    }
    values = {score: share @ each for score, each in by_item.items()}
    sums = {score: np.bincount(unit, share * (each - values[score])) for score, each in by_item.items()}
    p, r = values["precision"], values["recall"]
    values["f1"] = 2 * p * r / (p + r)
    sums["f1"] = values["f1"] ** 2 / 2 * (sums["precision"] / p**2 + sums["recall"] / r**2)
    return values, sums


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_errors_of_many_items(engine, monkeypatch):
    monkeypatch.setattr(unit_cells, "ROOM", 1000)
    monkeypatch.setattr(influences, "RANGES_AT_ONCE", 3)
    true, runs, weight = clusterings()
    unit = connected(true, *runs.values())
    n = unit.max() + 1
    found = {name: moves(true, pred, weight, unit) for name, pred in runs.items()}
    items = np.arange(true.size)
    sides = [pa.table({"item": items, "cluster": each}) for each in (true, *runs.values())]
    options = {} if engine == "memory" else {"memory_limit": shards.SMALLEST_LIMIT}
    cmp = fb.compare(
        sides[0].append_column("w", pa.array(weight)), dict(zip(runs, sides[1:], strict=True)),
        weight="w", metrics=SCORES, engine=engine, **options,
    )  # fmt: skip
    assert cmp.units.n == n
    (old, of_old) = found["old"]
    for (name, score), row in deltas(cmp).items():
        new, of_new = found[name]
        se = np.sqrt(n / (n - 1) * np.sum((of_new[score] - of_old[score]) ** 2))
        assert row["delta"] == pytest.approx(new[score] - old[score], rel=1e-9)
        assert row["se"] == pytest.approx(se, rel=1e-9), (name, score)


@pytest.mark.slow
def test_errors_have_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(influences, "RANGES_AT_ONCE", 1)
    true, runs, weight = clusterings()
    found = []
    for threads in (1, 4):
        monkeypatch.setattr(pool, "available_threads", lambda threads=threads: threads)
        cmp = fb.compare(true, runs, weight=weight, metrics=SCORES)
        found.append((cmp.deltas()["se"].to_pylist(), cmp.units))
    assert found[0] == found[1]


@pytest.mark.slow
def test_units_that_are_alone_count_like_others():
    """A bootstrap draws every true cluster, so that none is set aside: the errors are those without it."""
    true, runs, weight = clusterings()
    found = [fb.compare(true, runs, weight=weight, metrics=SCORES, bootstrap=n) for n in (0, 80)]
    one, other = (cmp.deltas()["se"].to_numpy() for cmp in found)
    np.testing.assert_allclose(one, other, rtol=1e-12)
    assert found[0].units.n == found[1].units.n
    np.testing.assert_allclose(found[0].units[1:], found[1].units[1:], rtol=1e-12)
