"""Sums for the Omega index and overlapping mutual information: pairs by shared clusters, entropies of clusters."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import MAX_PAIRS, Contingency
from fastbcubed.errors import TooMuchWorkError, arg
from fastbcubed.inputs.layouts import Memberships
from fastbcubed.overlap.cover import Cover
from fastbcubed.overlap.extended_bcubed import Sides, Totals
from fastbcubed.overlap.item_sets import Signatures, signatures
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Counts, Floats

Minimum = Literal["overlapping", "all"]


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


class SharedClusters(NamedTuple):
    """Pairs of items by the number of clusters that they share on either side."""

    all_pairs: int
    same: int  #: pairs that share as many true as predicted clusters
    expected: int  #: all_pairs times the number of these by chance


def shared_clusters(sides: Sides, max_pairs: float = MAX_PAIRS) -> SharedClusters:
    """Count pairs of items by the number of clusters that they share.

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
    return SharedClusters(all_pairs, same, sum(a * b for a, b in zip(t, s, strict=False)))


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


class Left(NamedTuple):
    """H(X) of the clusters X of a side, and the least H(X|Y) given a cluster Y of the other side, in bits."""

    whole: Floats
    least: Floats


def entropies_of_clusters(sides: Sides, minimum: Minimum = "overlapping") -> tuple[Left, Left]:
    """Return the entropies of the clusters of each side; the least are over clusters that overlap, or over all."""
    overlaps, n = sides.overlaps, int(sides.n.sum())
    sizes = [each.n for each in sides.sizes]
    whole = [_entropy(each, n) for each in sizes]
    least = [each.copy() for each in whole]
    kernels.overlap.least_entropies(
        overlaps.bounds, overlaps.pred, overlaps.sizes.n, *sizes, n, minimum == "all", *least
    )
    kept = [each > 0 for each in sizes]
    true, pred = (Left(h[k], rest[k]) for h, rest, k in zip(whole, least, kept, strict=True))
    return true, pred


def _entropy(sizes: NDArray[np.int64], n: int) -> Floats:
    """Return the entropy of membership in each cluster, in bits; 0 for one of no or of all items."""
    p = sizes / n
    proper = (sizes > 0) & (sizes < n)
    inside = np.log2(p, out=np.zeros(p.size), where=proper)
    outside = np.log1p(-p, out=np.zeros(p.size), where=proper) / np.log(2.0)
    return -p * inside - (1.0 - p) * outside
