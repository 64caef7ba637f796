"""Scores made for clusters that overlap: the Omega index, and overlapping mutual information."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum, inf
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import MAX_PAIRS, Contingency
from fastbcubed.errors import TooMuchWorkError, arg
from fastbcubed.inputs.memberships import Memberships
from fastbcubed.metrics.score import Family
from fastbcubed.overlap.cover import Cover
from fastbcubed.overlap.item_sets import Signatures, signatures
from fastbcubed.overlap.mates import Sides, Totals
from fastbcubed.runtime.codes import number
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Counts, Floats


class Groups(NamedTuple):
    """Cells to pair within their group, which is a cluster, or a true and a predicted one."""

    keys: Counts
    bounds: Counts
    members: Counts

    @classmethod
    def of(cls, keys: Counts, members: Counts) -> Groups:
        """Group the members by key."""
        order = np.argsort(keys, kind="stable")
        distinct, first = np.unique(keys[order], return_index=True)
        return cls(distinct, np.append(first, keys.size), members[order])

    @property
    def n_pairs(self) -> int:
        """How many pairs of members the groups have."""
        return pairs_in(np.diff(self.bounds))


def agreement(sides: Sides, max_pairs: float = MAX_PAIRS) -> float:
    """Return how far pairs of items agree on the number of clusters they share, beyond chance.

    Cells are paired within a cluster, or within a true and a predicted one, only if they are in a larger
    cluster, too. Cost is the number of these pairs, and linear in the memberships. Raise TooMuchWorkError if
    there are more than `max_pairs`. Items may be in no cluster.
    """
    pool, n_items = sides.pool, int(sides.n.sum())
    ranked = [_ranked(*each) for each in zip((sides.truth, sides.prediction), sides.sizes, strict=True)]
    true, pred = (signatures(side, pool) for side in ranked)
    cells = _cells(true, pred, sides)
    groups = [_in_larger(each.sets) for each in (true, pred)]
    blocks = _in_both(cells)
    work = sum(each.n_pairs for each in (*groups, blocks))
    if work > max_pairs:
        raise TooMuchWorkError(
            f"Omega would have to compare {work:.2g} pairs of cells that are in one cluster and also in a"
            f" larger one, more than {arg('max_pairs', max_pairs)}. Leave it out, or pass {arg('max_pairs', work)}"
            f" or more and wait: about {work / 1e8:.0f} seconds."
        )
    all_pairs = n_items * (n_items - 1) // 2
    t, s = (_count_shared(*each, sides.n, all_pairs) for each in zip((true, pred), groups, strict=True))
    both, same = _count_both(cells, blocks)
    same += t[0] + s[0] - all_pairs + both  # those that share none
    expected = sum(a * b for a, b in zip(t, s, strict=False))
    if expected == all_pairs**2:
        return float(same == all_pairs)
    return (same * all_pairs - expected) / (all_pairs**2 - expected)


def pairs_in(sizes: Counts) -> int:
    """Add up how many pairs there are in groups of these sizes, exactly."""
    distinct, counts = np.unique(sizes, return_counts=True)
    return sum(n * (n - 1) // 2 * count for n, count in zip(distinct.tolist(), counts.tolist(), strict=True))


def _ranked(side: Memberships, sizes: Totals) -> Memberships:
    """Give the clusters of two items and more codes that ascend with size; others hold no pair."""
    order = np.argsort(sizes.n, kind="stable")
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.arange(order.size)
    cells = side.rows()
    cells[sizes.n[side.codes] < 2] = -1
    return Memberships.from_rows(cells, ranks[side.codes], len(side), side.n_clusters)


def _cells(true: Signatures, pred: Signatures, sides: Sides) -> Sides:
    """Group items in clusters on both sides into cells again, by fewer distinctions."""
    in_both = np.flatnonzero((true.codes >= 0) & (pred.codes >= 0))
    t, p = true.codes[in_both], pred.codes[in_both]
    cells = number(t * len(pred.sets) + p, sides.pool)
    n = _add_up(cells.codes, sides.n[in_both], cells.firsts.size)
    return Sides(true.sets.take(t[cells.firsts]), pred.sets.take(p[cells.firsts]), n, None, sides.pool)


def _add_up(codes: NDArray[np.integer], counts: Counts, size: int) -> Counts:
    sums = np.zeros(size, np.int64)
    kernels.sums.count_by_code(codes, counts, sums)
    return sums


def _in_larger(sets: Memberships) -> Groups:
    """Group the sets of clusters by cluster, each but by its last, the largest."""
    inner = np.ones(sets.codes.size, np.bool_)
    inner[sets.offsets[1:][sets.counts > 0] - 1] = False
    return Groups.of(sets.codes[inner].astype(np.int64), sets.rows()[inner])


def _in_both(cells: Sides) -> Groups:
    """Group the cells by true and predicted cluster, each but by the largest of both sides."""
    true, pred = cells.truth, cells.prediction
    size = kernels.overlap.count_blocks(true.offsets, pred.offsets)
    keys, members = np.empty(size, np.int64), np.empty(size, np.int64)
    kernels.overlap.list_blocks(
        true.offsets, true.codes, pred.offsets, pred.codes, pred.n_clusters, keys, members
    )
    return Groups.of(keys, members)


def _count_shared(side: Signatures, groups: Groups, n: Counts, all_pairs: int) -> list[int]:
    """Count the pairs of items that share t clusters of a side, for t = 0, 1, ..."""
    sets = side.sets
    in_set = _add_up(side.codes, n, len(sets))
    pairs = np.zeros(max(2, int(sets.counts.max(initial=0)) + 1), np.int64)
    kernels.overlap.count_shared(sets.offsets, sets.codes, in_set, *groups, pairs)
    counts: list[int] = pairs.tolist()
    sizes = _add_up(sets.codes, in_set[sets.rows()], sets.n_clusters)
    counts[1] = pairs_in(sizes) - sum(t * count for t, count in enumerate(counts))
    counts[0] = all_pairs - sum(counts)
    return counts


def _count_both(cells: Sides, blocks: Groups) -> tuple[int, int]:
    """Count the pairs of items that share clusters on both sides, and those that share as many."""
    true, pred = cells.truth, cells.prediction
    sums = np.zeros(3, np.int64)
    kernels.overlap.compare_shared(
        true.offsets, true.codes, pred.offsets, pred.codes, cells.n, *blocks, pred.n_clusters, sums
    )
    # a pair that shares t and s clusters is in t s overlaps, and one that shares one and one in one
    product, same, several = sums.tolist()
    one = pairs_in(cells.overlaps.sizes.n) - product
    return one + several, one + same


Minimum = Literal["overlapping", "all"]
TOLD = "with H(X|Y) the least entropy of a cluster X given one cluster Y that shares an item with it"


def sides_of(contingency: Contingency, pool: Pool) -> Sides:
    """Return the cells with their clusters: of a cover, or of a partition, where each has one."""
    if isinstance(contingency, Cover):
        return contingency.sides
    offsets = np.arange(contingency.n_cells + 1)
    (true, n_true), (pred, n_pred) = contingency.codes("true"), contingency.codes("pred")
    truth = Memberships(offsets, true.astype(np.int64), n_true)
    prediction = Memberships(offsets, pred.astype(np.int64), n_pred)
    weight = np.ascontiguousarray(contingency.tp) if contingency.weighted else None
    return Sides(truth, prediction, contingency.n.astype(np.int64), weight, pool)


def of_sides(score: Callable[[Sides], float], contingency: Contingency, pool: Pool) -> float:
    """Return a score of the cells and their clusters."""
    return score(contingency.once(sides_of, pool))


overlap = Family(
    "overlap", low=0.0, high=1.0, best="higher", unweighted_only=True, labelled_only=True, on_covers=True
)


@overlap.of_cells(
    "(O - E) / (1 - E), with O the share of pairs that share as many true as predicted clusters, and E the sum over"
    " k of the shares of pairs that share k true and k predicted ones",
    low=-inf,
    source="Collins and Dent 1988",
    example="""
    >>> omega(list("aabb"), [1, 1, 1, 2])  # 3 of 6 pairs agree; expected (2 * 3 + 4 * 3) / 6**2
    0.0
    """,
)
def omega(contingency: Contingency, pool: Pool) -> float:
    """Agreement of pairs of items on the number of clusters they share, beyond chance."""
    return agreement(contingency.once(sides_of, pool), contingency.max_pairs)


@overlap.of_cells(
    f"1 - (mean over true clusters of H(X|Y) / H(X) + the same over predicted ones) / 2, {TOLD}; 0/0 is 1",
    by=of_sides,
    source="Lancichinetti et al. 2009",
    example="""
    >>> score = onmi_lfk(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # 1 - ((1.5 - 0.8113) / 1 + (1.5 - 1) / 0.8113) / 2
    0.3475
    """,
)
def onmi_lfk(sides: Sides, minimum: Minimum = "overlapping") -> float:
    """Overlapping normalized mutual information (LFK): mean information of a cluster's best counterpart about it.

    A cluster without entropy, of all items, counts as one of which nothing is told: two identical
    clusterings of one such cluster get 0.
    """
    lost = []
    for whole, least in _entropies(sides, minimum):
        shares = np.divide(least, whole, out=np.ones(whole.size), where=whole > 0)
        lost.append(fsum(shares) / shares.size)
    return 1.0 - (lost[0] + lost[1]) / 2


@overlap.of_cells(
    "half the sum over clusters of both sides of H(X) - H(X|Y), over the larger of the sums of H(X) of either side,"
    f" {TOLD}; 0/0 is 1 for identical clusterings, else 0",
    by=of_sides,
    source="McDaid et al. 2011",
    example="""
    >>> score = onmi_max(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # (1 + 0.8113 - 1.5) / 1
    0.3113
    """,
)
def onmi_max(sides: Sides, minimum: Minimum = "overlapping") -> float:
    """Overlapping mutual information over the larger of the entropies of both sides."""
    return _normalized(sides, minimum, max)


@overlap.of_cells(
    "half the sum over clusters of both sides of H(X) - H(X|Y), over the mean of the sums of H(X) of either side,"
    f" {TOLD}; 0/0 is 1 for identical clusterings, else 0",
    by=of_sides,
    source="McDaid et al. 2011",
    example="""
    >>> score = onmi_mean(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # (1 + 0.8113 - 1.5) / ((1 + 0.8113) / 2)
    0.3437
    """,
)
def onmi_mean(sides: Sides, minimum: Minimum = "overlapping") -> float:
    """Overlapping mutual information over the mean of the entropies of both sides."""
    return _normalized(sides, minimum, lambda a, b: (a + b) / 2)


def _normalized(sides: Sides, minimum: Minimum, norm: Callable[[float, float], float]) -> float:
    both = _entropies(sides, minimum)
    (true, true_least), (pred, pred_least) = ((fsum(h), fsum(least)) for h, least in both)
    whole = norm(true, pred)
    if whole == 0:
        return float(both[0][0].size == both[1][0].size)  # clusters of all items alone
    return ((true - true_least) + (pred - pred_least)) / 2 / whole


def _entropies(sides: Sides, minimum: Minimum) -> list[tuple[Floats, Floats]]:
    """Return H(X) and the least H(X|Y) of the clusters of each side, in bits."""
    overlaps, n = sides.overlaps, int(sides.n.sum())
    sizes = [each.n for each in sides.sizes]
    whole = [_entropy(each, n) for each in sizes]
    least = [each.copy() for each in whole]
    kernels.overlap.least_entropies(
        overlaps.bounds, overlaps.pred, overlaps.sizes.n, *sizes, n, minimum == "all", *least
    )
    kept = [each > 0 for each in sizes]
    return [(h[k], rest[k]) for h, rest, k in zip(whole, least, kept, strict=True)]


def _entropy(sizes: NDArray[np.int64], n: int) -> Floats:
    """Return the entropy of membership in each cluster, in bits; 0 for one of no or of all items."""
    p = sizes / n
    proper = (sizes > 0) & (sizes < n)
    inside = np.log2(p, out=np.zeros(p.size), where=proper)
    outside = np.log1p(-p, out=np.zeros(p.size), where=proper) / np.log(2.0)
    return -p * inside - (1.0 - p) * outside
