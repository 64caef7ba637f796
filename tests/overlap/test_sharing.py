"""What cells and clusters share, against dense tables: clusters large and small, keys in one part and in many."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from strategies_overlap import memberships_of

from fastbcubed.kernels.overlap import AHEAD, MEMBERS_AT_ONCE
from fastbcubed.overlap.extended_bcubed import Sides
from fastbcubed.overlap.memberships import Memberships
from fastbcubed.runtime.threads import Pool

N_CELLS = 2 * MEMBERS_AT_ONCE + AHEAD


def random_sets(rng, n_clusters: int, most: int) -> list[list[int]]:
    return [rng.choice(n_clusters, rng.integers(1, most + 1), replace=False).tolist() for _ in range(N_CELLS)]


#: By name: clusters of a side, and those of each cell.
SIDES = {
    "small": lambda rng: (N_CELLS, random_sets(rng, N_CELLS, 2)),
    "large": lambda rng: (5, random_sets(rng, 5, 3)),
    "giant": lambda rng: (200, [[0, *(1 + k for k in each)] for each in random_sets(rng, 199, 3)]),
    "many": lambda rng: (40, random_sets(rng, 40, 14)),
    "one": lambda rng: (1, [[0]] * N_CELLS),
    "one_with_empty": lambda rng: (90, [[77]] * N_CELLS),
}


def sides_of(truth: str, prediction: str, *, weighted: bool, threads: int, seed: int = 0) -> Sides:
    rng = np.random.default_rng(seed)
    (n_true, true), (n_pred, pred) = SIDES[truth](rng), SIDES[prediction](rng)
    n = rng.integers(1, 5, N_CELLS)
    weight = rng.integers(1, 1000, N_CELLS) / 64 if weighted else None  # sums of these are exact
    return Sides(memberships_of(true, n_true), memberships_of(pred, n_pred), n, weight, Pool(threads))


def dense(side: Memberships) -> np.ndarray:
    """Return which cell is in which cluster."""
    table = np.zeros((len(side), side.n_clusters), np.int64)
    table[side.rows(), side.codes] = 1
    return table


@pytest.mark.cases(4, 30)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("prediction", SIDES)
@pytest.mark.parametrize("truth", SIDES)
def test_what_true_clusters_share_with_all_predicted_ones_of_a_cell(truth, prediction, weighted):
    sides = sides_of(truth, prediction, weighted=weighted, threads=2)
    true, pred = dense(sides.truth), dense(sides.prediction)

    def expected(each):
        """Add up by cell and true cluster, without the items of the cell itself."""
        every = (pred @ (true.T @ (each[:, None] * pred)).T)[sides.truth.rows(), sides.truth.codes]
        return every - (each * pred.sum(axis=1))[sides.truth.rows()]

    assert sides.common.sizes.n.tolist() == expected(sides.n).tolist()
    if weighted:
        assert sides.common.sizes.weight.tolist() == expected(sides.weight).tolist()
    items = sides.n @ true, sides.n @ pred, true.T @ (sides.n[:, None] * pred)
    same = (items[0][:, None] == items[2]) & (items[1] == items[2]) & (items[2] > 0)
    first = np.where(same.any(axis=1), same.argmax(axis=1), -1)  # copies of a true cluster have the same one
    of_pred = [*(first[same[:, j]].max(initial=-1) for j in range(same.shape[1]))]
    assert sides.same.tolist() == [*first, *of_pred]


@pytest.mark.cases(1)
@pytest.mark.parametrize("bits", [0, 3, 7])
@pytest.mark.parametrize("side", SIDES)
def test_pairs_of_clusters_that_several_cells_have(monkeypatch, side, bits):
    monkeypatch.setattr("fastbcubed.overlap.extended_bcubed.part_bits", lambda n: bits)
    monkeypatch.setattr("fastbcubed.overlap.extended_bcubed.PER_CLUSTER", 0)  # however many
    sides = sides_of(side, "many", weighted=False, threads=2)
    close, n_true = sides.close, sides.truth.n_clusters
    listed = []
    for true, pred in zip(
        map(sides.truth.of, range(N_CELLS)), map(sides.prediction.of, range(N_CELLS)), strict=True
    ):
        row = [each.tolist() for each in (true, pred + n_true) if each.size <= close.narrow]
        listed.append([pair for each in row for pair in combinations(each, 2)])
    pairs = [pair for each in listed for pair in each]
    times = Counter(pairs)
    assert [group >= 0 for group in close.groups.tolist()] == [times[pair] > 1 for pair in pairs]
    members: dict[int, set] = {}
    for group, pair in zip(close.groups.tolist(), pairs, strict=True):
        members.setdefault(group, set()).add(pair)
    assert all(len(each) == 1 for group, each in members.items() if group >= 0)
    cell_of = {start: cell for cell, start in enumerate(sides.rows.starts.tolist())}
    for group in range(close.group_bounds.size - 1):
        (pair,) = members[group]
        found = close.members[close.group_bounds[group] : close.group_bounds[group + 1]].tolist()
        assert [cell_of[row] for row in found] == [cell for cell, each in enumerate(listed) if pair in each]


@pytest.mark.cases(2)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_threads_do_not_change_a_bit(side, weighted):
    found = []
    for threads in (1, 3):
        sides = sides_of(side, "small", weighted=weighted, threads=threads)
        found.append(
            [
                *(each.tolist() for each in sides._members()),
                *(each.tobytes() for each in sides.shares(N_CELLS)),
            ]
        )
    assert found[0] == found[1]


def test_cells_are_found_by_pairs_of_clusters_only_where_that_saves_visits():
    rng = np.random.default_rng(0)
    n_pairs = {}
    for n_clusters in (8, 4 * N_CELLS):
        sets = [rng.choice(n_clusters, 4, replace=False).tolist() for _ in range(N_CELLS)]
        side = memberships_of(sets, n_clusters)
        close = Sides(side, side, np.ones(N_CELLS, np.int64), None, Pool(1)).close
        n_pairs[n_clusters] = close.groups.size
        assert close.wide == (n_clusters == 8)
    assert n_pairs == {8: 0, 4 * N_CELLS: N_CELLS * 2 * 6}


@pytest.mark.cases(0)
@pytest.mark.parametrize("many", ["true", "predicted"])
@pytest.mark.parametrize("n_clusters", [2**15 - 1, 2**15 + 1])
def test_cells_share_as_many_clusters_as_there_are(n_clusters, many):
    """The first two cells share all clusters but one of a side, whose number does not fit in 16 bits, and one."""
    sets = [range(n_clusters), range(1, n_clusters), [0]]
    side, other = (memberships_of(list(map(list, own)), n) for own, n in ((sets, n_clusters), ([[0]] * 3, 1)))
    pair = (side, other) if many == "true" else (other, side)
    sides = Sides(*pair, np.ones(3, np.int64), None, Pool(1))
    assert sides._found()[1].itemsize == (4 if n_clusters < 2**15 else 8)
    parts, mates = sides.shares(3)
    share = 1 / (n_clusters - 1)
    of_many, of_one = [[1 + share, 1 - share], [share, 1 - share], [1, 0]], [[2, 0], [1, 1], [1, 1]]
    ends = (of_one, of_many) if many == "true" else (of_many, of_one)
    np.testing.assert_allclose(parts, np.hstack(ends), rtol=1e-12)
    n_mates = ([3, 3, 3], [3, 2, 2]) if many == "true" else ([3, 2, 2], [3, 3, 3])
    np.testing.assert_array_equal(mates, np.transpose(n_mates))
