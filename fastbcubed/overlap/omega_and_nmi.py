"""Sums for the Omega index and overlapping mutual information: pairs by number of shared clusters, and entropies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import MAX_PAIRS, Contingency
from fastbcubed.errors import TooMuchWorkError, arg
from fastbcubed.overlap.cover import Cover
from fastbcubed.overlap.extended_bcubed import Sides, Totals
from fastbcubed.overlap.item_sets import Signatures, signatures
from fastbcubed.overlap.memberships import Memberships
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Codes, Counts, Floats


class Groups(NamedTuple):
    """Cells to be paired within groups; a group is a cluster, or a true and a predicted cluster."""

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
        """The number of pairs of members of the same group."""
        return pairs_in(np.diff(self.bounds))


class SharedClusters(NamedTuple):
    """Counts of pairs of items by the number of clusters that they share on each side."""

    all_pairs: float
    same: float  #: number of pairs that share as many true as predicted clusters
    expected: float  #: the number of such pairs expected by chance, times all_pairs


class PairsOfSide(NamedTuple):
    """Numbers of pairs of items that share t clusters of a side, with an entry for each unit and possible t."""

    unit: Counts
    t: Counts
    pairs: Floats

    def totals(self, n: int) -> Floats:
        """Return the number of pairs that share t clusters, for t below n."""
        return np.bincount(self.t, self.pairs, n).astype(np.float64, copy=False)

    def by_unit(self, n_units: int, worth: Floats | None = None) -> Floats:
        """Return the number of pairs of each unit or, if `worth` is given, the sum over its pairs of worth[t]."""
        values = self.pairs if worth is None else self.pairs * worth[self.t]
        return np.bincount(self.unit, values, n_units).astype(np.float64, copy=False)


class PairsByUnit(NamedTuple):
    """Pairs of items that share a cluster on some side, by unit. Shape (n_units,) each."""

    agreeing: Floats  #: pairs that share clusters on both sides; pairs that share equally many count twice
    true: Floats  #: pairs that share true clusters
    pred: Floats
    #: these pairs, each counted once per pair of any unit that shares as many clusters of the other side
    true_by_chance: Floats
    pred_by_chance: Floats

    def fields(
        self, items: float, agreeing: float, true: float, pred: float, t_by_chance: float, s_by_chance: float
    ) -> SharedClusters:
        """Return the sums over all pairs, given totals over units; the number of items comes first.

        A product of two totals is replaced by its linearization at the totals of these units, which has the same
        derivatives.
        """
        every = items * (items - 1) / 2
        t, s = every - true, every - pred  # pairs that share no true, and no predicted, cluster
        shared = t_by_chance + s_by_chance - float(self.true_by_chance.sum())
        return SharedClusters(every, t + s - every + agreeing, t * s + shared)


class _Distinct(NamedTuple):
    """Items by their distinct sets of clusters on each side, cells of equal sets, and groups of cells to pair."""

    true: Signatures
    pred: Signatures
    cells: Sides
    firsts: Counts  #: the first of the original cells that each cell consists of
    groups: tuple[Groups, Groups]
    blocks: Groups

    @classmethod
    def of(cls, sides: Sides, max_pairs: float) -> _Distinct:
        """Group the cells; raise TooMuchWorkError if there are more than `max_pairs` pairs."""
        ranked = [_ranked(*each) for each in zip((sides.truth, sides.prediction), sides.sizes, strict=True)]
        true, pred = (signatures(side, sides.pool) for side in ranked)
        cells, firsts = _cells(true, pred, sides)
        groups = _in_larger(true.sets), _in_larger(pred.sets)
        blocks = _in_both(cells)
        work = sum(each.n_pairs for each in (*groups, blocks))
        if work > max_pairs:
            raise TooMuchWorkError(
                f"Omega would have to compare {work:.2g} pairs of cells that share more than one cluster, "
                f"more than {arg('max_pairs', max_pairs)}. Leave it out, or pass {arg('max_pairs', work)} "
                f"or more and wait: about {work / 1e8:.0f} seconds."
            )
        return cls(true, pred, cells, firsts, groups, blocks)


def shared_clusters(sides: Sides, max_pairs: float = MAX_PAIRS) -> SharedClusters:
    """Count pairs of items by the number of clusters that they share; items may be in no cluster.

    Two cells are compared within a cluster, or within a true and a predicted cluster, only if they are also in a larger
    cluster. The run time is proportional to the number of these pairs plus the number of memberships. Raises
    TooMuchWorkError if there are more than `max_pairs` pairs.
    """
    found, n_items = _Distinct.of(sides, max_pairs), int(sides.n.sum())
    all_pairs = n_items * (n_items - 1) // 2
    own = zip((found.true, found.pred), found.groups, strict=True)
    t, s = (_count_shared(*each, sides.n, all_pairs) for each in own)
    cells, rows = found.cells, np.zeros(len(found.cells.truth), np.int64)
    # A pair that shares t true and s predicted clusters is in t * s overlaps
    product, same, several = _compare(cells, found.blocks, rows, 1)[0].tolist()
    one = pairs_in(cells.overlaps.sizes.n) - product
    none = t[0] + s[0] - all_pairs + one + several
    return SharedClusters(all_pairs, none + one + same, sum(a * b for a, b in zip(t, s, strict=False)))


def shared_clusters_by_unit(sides: Sides, units: Codes, n_units: int, max_pairs: float) -> PairsByUnit:
    """Count the pairs of `shared_clusters` by unit; `units` are those of the cells, and each cluster is in one unit."""
    found = _Distinct.of(sides, max_pairs)
    true, pred = (
        _count_by_unit(side, groups, sides.n, units, n_units)
        for side, groups in zip((found.true, found.pred), found.groups, strict=True)
    )
    most = 1 + max(int(each.t.max(initial=0)) for each in (true, pred))
    t, s = (each.totals(most) for each in (true, pred))
    cells, rows = found.cells, np.asarray(units[found.firsts], np.int64)
    product, same, several = _compare(cells, found.blocks, rows, n_units).T.astype(np.float64)
    overlaps = cells.overlaps
    unit_of = np.zeros(cells.truth.n_clusters, np.int64)
    unit_of[cells.truth.codes] = rows[cells.truth.rows()]
    n = overlaps.sizes.n.astype(np.float64)
    one = np.bincount(unit_of[overlaps.true], n * (n - 1) / 2, n_units) - product
    by_chance = true.by_unit(n_units, s), pred.by_unit(n_units, t)
    return PairsByUnit(2 * one + several + same, true.by_unit(n_units), pred.by_unit(n_units), *by_chance)


def _count_by_unit(side: Signatures, groups: Groups, n: Counts, units: Codes, n_units: int) -> PairsOfSide:
    """Count the pairs of items that share clusters of a side, by unit and by number of shared clusters."""
    sets, there = side.sets, side.codes >= 0
    of_set = np.zeros(len(sets), np.int64)
    of_set[side.codes[there]] = units[there]
    most = np.zeros(n_units, np.int64)
    np.maximum.at(most, of_set, sets.counts)
    starts = np.concatenate([[0], np.cumsum(most + 1)])
    unit = np.repeat(np.arange(n_units), most + 1)
    t = np.arange(starts[-1]) - starts[unit]
    in_set = _add_up(side.codes, n, len(sets))
    pairs = _several(side, groups, in_set, starts[of_set], int(starts[-1])).astype(np.float64)
    sizes = _add_up(sets.codes, in_set[sets.rows()], sets.n_clusters)
    of_cluster = np.zeros(sizes.size, np.int64)
    of_cluster[sets.codes] = of_set[sets.rows()]
    within = np.bincount(of_cluster, sizes * (sizes - 1.0) / 2, n_units)
    pairs[t == 1] = (within - np.bincount(unit, pairs * t, n_units))[unit[t == 1]]
    return PairsOfSide(unit, t, pairs)


def pairs_in(sizes: Counts) -> int:
    """Return the total number of pairs in groups of these sizes, exactly."""
    distinct, counts = np.unique(sizes, return_counts=True)
    return sum(n * (n - 1) // 2 * count for n, count in zip(distinct.tolist(), counts.tolist(), strict=True))


def _ranked(side: Memberships, sizes: Totals) -> Memberships:
    """Return memberships with clusters renumbered in order of size, without clusters of fewer than two items."""
    order = np.argsort(sizes.n, kind="stable")
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.arange(order.size)
    cells = side.rows()
    cells[sizes.n[side.codes] < 2] = -1
    return Memberships.from_rows(cells, ranks[side.codes], len(side), side.n_clusters)


def _cells(true: Signatures, pred: Signatures, sides: Sides) -> tuple[Sides, Counts]:
    """Merge cells whose items are in clusters on both sides and have equal codes; also return the first of each."""
    in_both = np.flatnonzero((true.codes >= 0) & (pred.codes >= 0))
    t, p = true.codes[in_both], pred.codes[in_both]
    cells = number(t * len(pred.sets) + p, sides.pool)
    n = _add_up(cells.codes, sides.n[in_both], cells.firsts.size)
    sets = true.sets.take(t[cells.firsts]), pred.sets.take(p[cells.firsts])
    return Sides(*sets, n, None, sides.pool), in_both[cells.firsts]


def _add_up(codes: NDArray[np.integer], counts: Counts, size: int) -> Counts:
    sums = np.zeros(size, np.int64)
    kernels.sums.count_by_code(codes, counts, sums)
    return sums


def _in_larger(sets: Memberships) -> Groups:
    """Group the sets of clusters by cluster, leaving out the last and largest cluster of each set."""
    inner = np.ones(sets.codes.size, np.bool_)
    inner[sets.offsets[1:][sets.counts > 0] - 1] = False
    return Groups.of(sets.codes[inner].astype(np.int64), sets.rows()[inner])


def _in_both(cells: Sides) -> Groups:
    """Group the cells by true and predicted cluster, leaving out the pair of each cell's largest clusters."""
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
    most = max(2, int(sets.counts.max(initial=0)) + 1)
    counts: list[int] = _several(side, groups, in_set, np.zeros(len(sets), np.int64), most).tolist()
    sizes = _add_up(sets.codes, in_set[sets.rows()], sets.n_clusters)
    counts[1] = pairs_in(sizes) - sum(t * count for t, count in enumerate(counts))
    counts[0] = all_pairs - sum(counts)
    return counts


def _several(side: Signatures, groups: Groups, in_set: Counts, rows: Counts, size: int) -> Counts:
    """Count the pairs of items that share t >= 2 clusters; the counts of a set's unit begin at its entry in `rows`."""
    sets, pairs = side.sets, np.zeros(size, np.int64)
    kernels.overlap.count_shared(sets.offsets, sets.codes, in_set, rows, *groups, pairs)
    return pairs


def _compare(cells: Sides, blocks: Groups, rows: Counts, n_rows: int) -> Counts:
    """Return the sums of `compare_shared` by row; `rows` are the rows of the cells. Shape (n_rows, 3)."""
    true, pred = cells.truth, cells.prediction
    sums = np.zeros((n_rows, 3), np.int64)
    kernels.overlap.compare_shared(
        true.offsets, true.codes, pred.offsets, pred.codes, cells.n, rows, *blocks, pred.n_clusters, sums
    )
    return sums


def sides_of(contingency: Contingency, pool: Pool) -> Sides:
    """Return the cells with their clusters, of a cover or of a partition."""
    if isinstance(contingency, Cover):
        return contingency.sides
    offsets = np.arange(contingency.n_cells + 1)
    (true, n_true), (pred, n_pred) = contingency.codes("true"), contingency.codes("pred")
    truth = Memberships(offsets, true.astype(np.int64), n_true)
    prediction = Memberships(offsets, pred.astype(np.int64), n_pred)
    weight = np.ascontiguousarray(contingency.tp) if contingency.weighted else None
    return Sides(truth, prediction, contingency.n.astype(np.int64), weight, pool)


class Left(NamedTuple):
    """Sums over the clusters X of a side, in bits: of H(X), and of the least H(X|Y) over clusters Y of the other."""

    clusters: float
    whole: float
    least: float
    shares: float  #: sum of H(X|Y) / H(X), which is taken as 1 for a cluster of all items


class Entropies(NamedTuple):
    """The terms of the sums in `Left`, by cluster; 0 for a cluster without items."""

    whole: Floats
    least: Floats
    shares: Floats

    @classmethod
    def of(cls, sizes: Counts, whole: Floats, least: Floats) -> Entropies:
        """Return the terms for clusters of these sizes."""
        shares = np.divide(least, whole, out=(sizes > 0).astype(np.float64), where=whole > 0)
        return cls(whole, least, shares)


def entropies_by_cluster(sides: Sides, n: float) -> tuple[Entropies, Entropies]:
    """Return the entropies of the clusters of each side for a total of n items."""
    overlaps, sizes = sides.overlaps, [each.n for each in sides.sizes]
    whole = [_entropy(each, n) for each in sizes]
    least = [each.copy() for each in whole]
    kernels.overlap.least_entropies(overlaps.bounds, overlaps.pred, overlaps.sizes.n, *sizes, n, *least)
    true, pred = map(Entropies.of, sizes, whole, least)
    return true, pred


def _entropy(sizes: NDArray[np.int64], n: float) -> Floats:
    """Return the entropy of membership in each cluster, in bits; 0 for a cluster of no items or of all items."""
    p = sizes / n
    proper = (sizes > 0) & (sizes < n)
    inside = np.log2(p, out=np.zeros(p.size), where=proper)
    outside = np.log1p(-p, out=np.zeros(p.size), where=proper) / np.log(2.0)
    return -p * inside - (1.0 - p) * outside
