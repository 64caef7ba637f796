"""The clusters of each item, against dictionaries: rows in order and not, in one part and in several."""

from __future__ import annotations

import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from fastbcubed.overlap.item_sets import item_sets
from fastbcubed.runtime.threads import Pool

few = examples(150)


def clusters_of(found, item: int) -> list[int]:
    return [] if found.codes[item] < 0 else found.sets.of(found.codes[item]).tolist()


def check(keys, clusters, n_clusters, weight, part_rows, threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastbcubed.overlap.item_sets.PART_ROWS", part_rows)
        found = item_sets(keys, clusters, n_clusters, weight, Pool(threads))
    firsts, held, repeated, reweighted = {}, {}, 0, 0
    for row, (key, cluster) in enumerate(zip(keys.tolist(), clusters.tolist(), strict=True)):
        first = firsts.setdefault(key, row)
        mine = held.setdefault(key, set())
        repeated += cluster in mine
        mine |= {cluster} - {-1}
        reweighted += weight is not None and repr(weight[row]) != repr(weight[first])
    assert found.firsts.tolist() == list(firsts.values())
    assert [clusters_of(found, e) for e in range(len(held))] == [sorted(each) for each in held.values()]
    assert (found.n_repeated, found.n_reweighted) == (repeated, reweighted)
    numbers = {}  # sets of one cluster have its code; larger ones are numbered by their first item
    for each in map(tuple, map(sorted, held.values())):
        if len(each) > 1:
            numbers.setdefault(each, n_clusters + len(numbers))
    codes = [-1 if not each else numbers.get(tuple(sorted(each)), min(each)) for each in held.values()]
    assert found.codes.tolist() == codes
    assert len(found.sets) == n_clusters + len(numbers)


@few
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 300),
    n_items=st.integers(1, 120),
    n_clusters=st.integers(1, 30),
    lacking=st.booleans(),
    in_order=st.booleans(),
    weights=st.sampled_from([None, [1.0], [1.0, 2.0, np.nan]]),
    part_rows=st.sampled_from([1, 5, 40, 10**6]),
    threads=st.integers(1, 3),
)
def test_items_and_their_clusters(
    seed, n_rows, n_items, n_clusters, lacking, in_order, weights, part_rows, threads
):
    rng = np.random.default_rng(seed)
    keys = rng.integers(-(2**63), 2**63, n_items)[rng.integers(0, n_items, n_rows)]
    keys = np.sort(keys) if in_order else keys
    clusters = rng.integers(-1 if lacking else 0, n_clusters, n_rows)
    weight = None if weights is None else rng.choice(weights, n_rows)
    check(keys, clusters, n_clusters, weight, part_rows, threads)


@pytest.mark.parametrize("in_order", [False, True])
def test_an_item_in_very_many_clusters(in_order):
    rng = np.random.default_rng(3)
    n = 640
    keys = np.concatenate([np.zeros(n, np.int64), rng.integers(-5, 5, n)])
    keys = np.sort(keys) if in_order else rng.permutation(keys)
    check(keys, rng.integers(-1, n, 2 * n), n, None, 16, 2)


def test_rows_without_items_are_items():
    clusters = np.array([1, -1, 0, 1])
    found = item_sets(None, clusters, 2, None, Pool(1))
    assert [clusters_of(found, e) for e in range(4)] == [[1], [], [0], [1]]
    assert found.firsts.tolist() == [0, 1, 2, 3]


def test_sets_whose_hashes_are_equal_are_told_apart(monkeypatch):
    from fastbcubed.kernels import memberships as compiled

    hashed, seeds = compiled.hash_sets, []

    def collide(codes, starts, start, stop, seed, out):
        seeds.append(seed)
        hashed(codes, starts, start, stop, seed, out)
        if seed == 0:
            out[start:stop] = 7

    monkeypatch.setattr(compiled, "hash_sets", collide)
    keys, clusters = np.array([5, 3, 5, 3, 9, 9]), np.array([0, 1, 2, 2, 2, 0])
    check(keys, clusters, 3, None, 10**6, 1)
    assert seeds == [0, 1]
