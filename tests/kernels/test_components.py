"""Components and the cells that connect them, beyond the number of nodes and cells that a kernel takes at once."""

from __future__ import annotations

import numpy as np
import pytest

from fastbcubed.kernels.components import find_cells, join_alike, join_pairs, number_components, pair_clusters
from fastbcubed.kernels.partition import RUN


def numbers_of(parents: np.ndarray) -> np.ndarray:
    """Return the numbers of components in order of their first node, node by node."""
    found: dict[int, int] = {}
    numbers = np.full(parents.size, -1)
    for node, parent in enumerate(parents.tolist()):
        while parent >= 0 and parents[parent] != parent:
            parent = int(parents[parent])
        if parent >= 0:
            numbers[node] = found.setdefault(parent, len(found))
    return numbers


@pytest.mark.parametrize("n_pairs", [0, 40, 1500, 6000])
def test_components_are_numbered_by_their_first_node(n_pairs: int) -> None:
    rng = np.random.default_rng(n_pairs)
    parents = np.where(rng.random(3 * RUN + 7) < 0.6, np.arange(3 * RUN + 7), -1).astype(np.int32)
    nodes = np.flatnonzero(parents >= 0).astype(np.int32)
    join_pairs(rng.choice(nodes, n_pairs), rng.choice(nodes, n_pairs), parents)
    expected = numbers_of(parents)
    assert number_components(parents) == expected.max() + 1
    np.testing.assert_array_equal(parents, expected)


def test_cells_whose_clusters_differ_are_found_across_runs_of_cells() -> None:
    rng, n = np.random.default_rng(1), 2 * RUN + 5
    cells = np.zeros(n, [("fp", "f8"), ("weight", "f8"), ("fn", "f8"), ("true", "i4"), ("n", "i4")])
    cells["true"], cells["weight"] = rng.permutation(n), rng.integers(0, 4, n)
    cells["fp"], cells["fn"] = rng.integers(0, 2, n), rng.integers(0, 2, n)
    pred = rng.integers(50, 50 + n // 2, n).astype(np.int32)
    wanted, linked = rng.random(n) < 0.1, np.zeros(n, np.bool_)
    places, codes, merged, left, right = np.empty((5, n), np.int32)
    n_found, n_merged, *alone = find_cells(cells, wanted, linked, places, codes, merged)

    differ = (cells["fp"] != 0) | (cells["fn"] != 0) | wanted[cells["true"]]
    np.testing.assert_array_equal(places[:n_found], np.flatnonzero(differ))
    np.testing.assert_array_equal(codes[:n_found], cells["true"][differ])
    np.testing.assert_array_equal(np.flatnonzero(linked), np.sort(cells["true"][differ]))
    own = cells["weight"][~differ]
    assert alone == [np.count_nonzero(own), (own**2).sum(), (own**4).sum(), 3.0]

    n_pairs = pair_clusters(places, codes, pred, merged[:n_merged], 50, np.full(n, -1, np.int32), left, right)
    first: dict[int, int] = {}
    expected = []
    for cell in np.flatnonzero(cells["fp"] != 0):
        true = int(cells["true"][cell])
        if first.setdefault(int(pred[cell]), true) != true:
            expected.append((first[int(pred[cell])], true))
    assert list(zip(left[:n_pairs].tolist(), right[:n_pairs].tolist(), strict=True)) == expected


def test_rows_are_joined_by_pairs_of_items_with_one_code() -> None:
    rng, n_items, n_rows = np.random.default_rng(3), 3000, 2000
    pairs = np.empty(5000, [("left", "i4"), ("right", "i4")])
    pairs["left"], pairs["right"] = rng.integers(0, n_items, (2, 5000))
    nodes = np.full(n_items, -1, np.int32).astype([("code", "i4"), ("row", "i4")])
    nodes["row"][rng.permutation(n_items)[:n_rows]] = np.arange(n_rows)
    nodes["code"] = np.where(nodes["row"] < 0, -1, rng.integers(-1, 40, n_items))
    ends = [(nodes[left].tolist(), nodes[right].tolist()) for left, right in pairs.tolist()]
    alike = [(a, b) for (code, a), (other, b) in ends if code == other >= 0]
    clusters = [{row} for row in range(n_rows)]
    for a, b in alike:
        if clusters[a] is not clusters[b]:
            clusters[a] |= clusters[b]
            for row in clusters[b]:
                clusters[row] = clusters[a]

    parents = np.arange(n_rows, dtype=np.int32)
    found = join_alike(pairs, nodes, parents)
    assert found == (len(alike), sum(code < 0 or other < 0 for (code, _), (other, _) in ends))
    number_components(parents)
    firsts = {parents[min(cluster)]: min(cluster) for cluster in clusters}
    assert [firsts[number] for number in parents] == [min(cluster) for cluster in clusters]
