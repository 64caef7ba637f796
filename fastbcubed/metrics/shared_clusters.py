"""The Omega index: agreement of pairs of items on the number of clusters they share, beyond chance.

Pairs that share one cluster are counted by cluster. Only pairs that share two or more on one side
are looked at, one pair of cells at a time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import MAX_PAIRS
from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.errors import TooMuchWorkError
from fastbcubed.overlap.item_sets import Signatures, signatures
from fastbcubed.overlap.sharing import Sides, Totals
from fastbcubed.runtime.grouping import number

Counts = NDArray[np.int64]


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
            f" larger one, more than max_pairs={max_pairs:.2g}. Leave it out, or pass max_pairs={work:.2g}"
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
    """Group what is in clusters on both sides into cells anew: less tells them apart."""
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
    size = kernels.item_pairs.count_blocks(true.offsets, pred.offsets)
    keys, members = np.empty(size, np.int64), np.empty(size, np.int64)
    kernels.item_pairs.list_blocks(
        true.offsets, true.codes, pred.offsets, pred.codes, pred.n_clusters, keys, members
    )
    return Groups.of(keys, members)


def _count_shared(side: Signatures, groups: Groups, n: Counts, all_pairs: int) -> list[int]:
    """Count the pairs of items that share t clusters of a side, for t = 0, 1, ..."""
    sets = side.sets
    in_set = _add_up(side.codes, n, len(sets))
    pairs = np.zeros(max(2, int(sets.counts.max(initial=0)) + 1), np.int64)
    kernels.item_pairs.count_shared(sets.offsets, sets.codes, in_set, *groups, pairs)
    counts: list[int] = pairs.tolist()
    sizes = _add_up(sets.codes, in_set[sets.rows()], sets.n_clusters)
    counts[1] = pairs_in(sizes) - sum(t * count for t, count in enumerate(counts))
    counts[0] = all_pairs - sum(counts)
    return counts


def _count_both(cells: Sides, blocks: Groups) -> tuple[int, int]:
    """Count the pairs of items that share clusters on both sides, and those that share as many."""
    true, pred = cells.truth, cells.prediction
    sums = np.zeros(3, np.int64)
    kernels.item_pairs.compare_shared(
        true.offsets, true.codes, pred.offsets, pred.codes, cells.n, *blocks, pred.n_clusters, sums
    )
    # a pair that shares t and s clusters is in t s overlaps, and one that shares one and one in one
    product, same, several = sums.tolist()
    one = pairs_in(cells.overlaps.sizes.n) - product
    return one + several, one + same
