"""Two overlapping clusterings as a cover: its cells, identical clusters, and losses by cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.align.rows import Alignment, align
from fastbcubed.cells.contingency import CELL, MAX_PAIRS, SIDES, Contingency, ScoredRows, add_up
from fastbcubed.errors import TooMuchWorkError, Word, arg
from fastbcubed.inputs.arrays import from_numpy
from fastbcubed.inputs.pair import Pair
from fastbcubed.overlap.extended_bcubed import Shares, Sides
from fastbcubed.overlap.item_sets import Gathered, gather
from fastbcubed.overlap.memberships import Memberships
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_partitions import (
    NO_ROWS,
    PART_ROWS,
    offsets,
    part_bits,
    part_blocks,
    row_blocks,
    slots_for,
    take,
)
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Floats, Int64s


class Covered(NamedTuple):
    """Two overlapping clusterings, as returned by `build_cover`.

    `alignment` aligns the items by their sets of clusters, `coverage` counts rows of memberships, `grouped` has the
    cell of each item, and `names` has the labels of each side's clusters.
    """

    alignment: Alignment
    coverage: Coverage
    cover: Cover
    grouped: Grouped
    names: dict[str, ClusterNames]


class ClusterNames:
    """The original labels of the clusters of one side; null for clusters that a policy made."""

    def __init__(self, gathered: Gathered, clusters: Int64s, n_made: int) -> None:
        rows = np.concatenate([gathered.label_rows, np.full(n_made, -1)])
        self._rows, self._labels = rows[clusters], gathered.labels

    def __call__(self, codes: Int64s) -> pa.Array:
        """Return the labels of the given clusters."""
        return self._labels.take_or_null(self._rows[codes])


def build_cover(pair: Pair, policies: Policies, pool: Pool, *, weighting: str, max_pairs: float) -> Covered:
    """Gather, align and group the items of two overlapping clusterings, and score their cells.

    The pair must have one row per membership.
    """
    true, pred = gather(pair.first, policies, pool)
    alignment = align(
        true.clustering,
        pred.clustering,
        replace(policies, noise=None, nulls="drop", duplicates="raise"),
        pool,
        weight_table=pair.weight_table,
        outer=weighting == "outer",
    )
    coverage = replace(
        alignment.coverage,
        n_null=true.n_null + pred.n_null,
        n_noise=true.n_noise + pred.n_noise,
        n_duplicates=true.n_duplicates + pred.n_duplicates,
    )
    true_codes, pred_codes = _codes(true, pred, alignment, pool)
    only_true = (
        np.flatnonzero((pred_codes < 0) & (true_codes >= 0)) if policies.truth == "singleton" else NO_ROWS
    )
    only_pred = (
        np.flatnonzero((true_codes < 0) & (pred_codes >= 0))
        if policies.prediction == "singleton"
        else NO_ROWS
    )
    true_sets = _made_alone(true.sets, true_codes, only_pred)
    pred_sets = _made_alone(pred.sets, pred_codes, only_true)
    grouped = group(true_sets, pred_sets, true_codes, pred_codes, pool)
    names = {
        "true": ClusterNames(true, grouped.true_clusters, only_pred.size),
        "pred": ClusterNames(pred, grouped.pred_clusters, only_true.size),
    }
    del true, pred, true_codes, pred_codes, true_sets, pred_sets  # not needed after grouping
    mass = grouped.mass(alignment.weight)
    scored = grouped.scored
    cover = Cover(
        grouped.truth,
        grouped.prediction,
        grouped.n,
        mass,
        n_scored=grouped.n_scored,
        rows=ScoredRows(lambda: scored, alignment.weight, scored.size),
        weighting=weighting,
        outside=policies.prediction == "outside",
        max_pairs=max_pairs,
        pool=pool,
        label=lambda side, codes: names[side](codes).to_pylist(),
    )
    if policies.prediction == "drop":
        cover.unlabelled_mates()  # computed now, while threads are available
    return Covered(alignment, coverage, cover, grouped, names)


def _codes(true: Gathered, pred: Gathered, alignment: Alignment, pool: Pool) -> tuple[Int64s, Int64s]:
    """Return the set of each aligned item on both sides, -1 where a side does not have the item."""
    if alignment.coverage.n_common == len(alignment):
        return alignment.true_keys, alignment.pred_keys
    rows = alignment.true_rows, alignment.pred_rows
    return take(true.set_codes, rows[0], pool), take(pred.set_codes, rows[1], pool)


def _made_alone(sets: Memberships, codes: Int64s, items: Int64s) -> Memberships:
    """Give each of the items a set of its own with one new cluster; `codes` is changed in place.

    The new sets and clusters are numbered after the existing ones.
    """
    if not items.size:
        return sets
    codes[items] = len(sets) + np.arange(items.size)
    made = np.arange(sets.n_clusters, sets.n_clusters + items.size).astype(sets.codes.dtype)
    offsets = np.concatenate([sets.offsets, sets.codes.size + 1 + np.arange(items.size)])
    return Memberships(offsets, np.concatenate([sets.codes, made]), sets.n_clusters + items.size)


class ItemCells(NamedTuple):
    """Cells of items by their sets of clusters on both sides."""

    cell: Int64s  #: the cell of each item, -1 where a side lacks it; shape (n_items,)
    true: Int64s  #: the true set of each cell; shape (n_cells,), like the arrays below
    pred: Int64s  #: the predicted set of each cell
    n: Int64s  #: the number of items of each cell


def item_cells(sets: Memberships, true: Int64s, pred: Int64s, n_pred: int, pool: Pool) -> ItemCells:
    """Assign numbers to pairs of a true and a predicted set, in order of the true set's first cluster, then of the set.

    Items are partitioned by their true set; each part is sorted and numbered within the cache. `sets` are the true
    sets, and `n_pred` is the number of predicted ones. `true` and `pred` (n_items,) are -1 where a side does not have
    the item.
    """
    if not len(sets):
        none = np.empty(0, np.int64)
        return ItemCells(np.full(true.size, -1), none, none, none)
    wide = np.int32 if max(true.size, len(sets), n_pred) < 2**31 else np.int64
    ranks, by_rank = _ranked(sets, wide)
    shift = max(0, (len(sets) - 1).bit_length() - part_bits(true.size, PART_ROWS))
    records, bounds = _partitioned(true, pred, ranks, shift, pool)
    del ranks
    cells = buffers.empty((len(records), 3), wide)
    largest = int(np.diff(bounds).max())

    def group(first: int, last: int) -> int:
        with pool.workspace(
            ("group", wide, shift),
            lambda: (np.empty((1 << shift) + 1, wide), np.empty(largest, wide), slots_for(largest, wide)),
            lambda space: space[1].size >= largest,
        ) as space:
            return kernels.memberships.group_parts(records, bounds, first, last, shift, space, cells)

    cuts = part_blocks(bounds.size - 1)
    counts = pool.map(group, *zip(*cuts, strict=True), stage="group items")
    *bases, n_cells = accumulate(counts, initial=0)
    found = ItemCells(
        buffers.empty(true.size, np.int64), *(buffers.empty(int(n_cells), np.int64) for _ in range(3))
    )
    if len(records) < true.size:
        found.cell.fill(-1)

    def write(cut: tuple[int, int], base: int, n: int) -> None:
        start, stop = bounds[cut[0]], bounds[cut[1]]
        kernels.memberships.number_items(records[start:stop], base, found.cell)
        own = slice(base, base + n)
        kernels.memberships.list_cells(
            cells[start : start + n], by_rank, found.true[own], found.pred[own], found.n[own]
        )

    pool.map(write, cuts, bases, counts, stage="number cells")
    return found


def _ranked(sets: Memberships, wide: type[np.integer]) -> tuple[Codes, Codes]:
    """Return the rank of each set, by its first cluster and then by number, and the sets in order of rank."""
    counts = np.zeros(sets.n_clusters, np.int64)
    kernels.memberships.count_firsts(sets.offsets, sets.codes, counts)
    ranks, by_rank = buffers.empty(len(sets), wide), buffers.empty(len(sets), wide)
    kernels.memberships.rank_sets(sets.offsets, sets.codes, np.cumsum(counts) - counts, ranks, by_rank)
    return ranks, by_rank


def _partitioned(true: Int64s, pred: Int64s, ranks: Codes, shift: int, pool: Pool) -> tuple[Codes, Int64s]:
    """Sort the items of both sides by part of their rank; return (rank, predicted set, item) and where parts begin."""
    starts, stops = zip(*row_blocks(true.size, 1 << 16), strict=True)
    counts = np.zeros((len(starts), (max(0, ranks.size - 1) >> shift) + 1), np.int64)
    keys = buffers.empty(true.size, ranks.dtype)
    pool.map(
        lambda a, b, out: kernels.memberships.rank_items(true, pred, a, b, ranks, shift, keys, out),
        starts, stops, counts, stage="rank items",
    )  # fmt: skip
    bounds, places = offsets(counts)
    records = buffers.empty((int(bounds[-1]), 3), ranks.dtype)
    pool.map(
        lambda a, b, to: kernels.memberships.scatter_items(keys, pred, a, b, shift, to, records),
        starts, stops, places, stage="partition items by clusters",
    )  # fmt: skip
    return records, bounds


#: Number of cells whose scores are computed by one call.
CELLS_AT_ONCE = 1 << 16
#: Number of clusters named in a message.
TO_BLAME = 3


@dataclass(frozen=True, eq=False)
class Grouped:
    """Items grouped into cells."""

    #: clusters of each cell, numbered by first appearance; the cells of one side follow the `n_scored` cells of both
    truth: Memberships
    prediction: Memberships
    cell: Int64s  #: the cell of each item, -1 for an item in none; shape (n_items,)
    n: Int64s  #: number of items of each cell; shape (n_cells,)
    n_scored: int  #: number of cells whose items are on both sides
    #: the original number of each renumbered cluster
    true_clusters: Int64s
    pred_clusters: Int64s

    @property
    def scored(self) -> Int64s:
        """The cell of each scored item, -1 for other items. Shape (n_items,)."""
        if len(self.truth) == self.n_scored:
            return self.cell
        return np.where(self.cell < self.n_scored, self.cell, -1)

    def mass(self, weight: Floats | None) -> Floats | None:
        """Return the weight of each cell from the weights of items; None if items have no weights. Shape (n_cells,)."""
        if weight is None:
            return None
        return np.add(*add_up(self.cell, len(self.truth), weight, np.ones(self.cell.size)))


def group(
    true_sets: Memberships,
    pred_sets: Memberships,
    true_codes: Int64s,
    pred_codes: Int64s,
    pool: Pool,
) -> Grouped:
    """Group items by their sets of clusters on both sides.

    Cells are ordered by their first true cluster, so that cells that share clusters are close to each other in
    memory.

    Shapes: `true_codes`, `pred_codes` (n_items,).
    """
    cell, true, pred, n = item_cells(true_sets, true_codes, pred_codes, len(pred_sets), pool)
    n_scored = n.size
    truth, prediction = true_sets.take(true, pool), pred_sets.take(pred, pool)
    del true, pred
    alone = np.flatnonzero((true_codes < 0) & (pred_codes >= 0))
    if alone.size:
        kinds, which, times = np.unique(pred_codes[alone], return_inverse=True, return_counts=True)
        cell[alone] = n_scored + which
        n = np.concatenate([n, times])
        truth = _joined(
            truth, Memberships(np.zeros(kinds.size + 1, np.int64), truth.codes[:0], truth.n_clusters)
        )
        prediction = _joined(prediction, pred_sets.take(kinds))
    (truth, true_clusters), (prediction, pred_clusters) = pool.map(
        _renumbered, (truth, prediction), stage="number clusters"
    )
    return Grouped(truth, prediction, cell, n, n_scored, true_clusters, pred_clusters)


def _joined(a: Memberships, b: Memberships) -> Memberships:
    offsets = np.concatenate([a.offsets, a.offsets[-1] + b.offsets[1:]])
    return Memberships(offsets, np.concatenate([a.codes, b.codes]), a.n_clusters)


def _first(side: Memberships, n: int) -> Memberships:
    if n == len(side):
        return side
    return Memberships(side.offsets[: n + 1], side.codes[: side.offsets[n]], side.n_clusters)


def _renumbered(side: Memberships) -> tuple[Memberships, Int64s]:
    """Renumber clusters by first appearance, dropping those without items; also return the old numbers."""
    codes, firsts = buffers.empty(side.codes.size, side.codes.dtype), np.empty(side.n_clusters, np.int64)
    numbers = np.full(side.n_clusters, -1, side.codes.dtype)
    n = kernels.memberships.number_small(side.codes, 0, numbers, codes, firsts)
    kernels.memberships.sort_rows(side.offsets, codes)
    return Memberships(side.offsets, codes, n), side.codes[firsts[:n]].astype(np.int64)


#: Columns of saved cells: hits and misses of an item among other cells, and its mates.
PARTS = ("pred_hits", "pred_misses", "true_hits", "true_misses")
MATES = ("pred_mates", "true_mates")


class Cover(Contingency):
    """The cells of two overlapping clusterings, and the hits and misses of their items.

    Attributes are those of a contingency, except that a cell may have any number of clusters on each side. `fp` and
    `fn` are proportional: for an item, the weight of wrong mates divided by the weight of right mates, times the weight
    of the item's cell.
    """

    overlapping = True

    def __init__(
        self,
        truth: Memberships,
        prediction: Memberships,
        n: Int64s,
        weight: Floats | None,
        *,
        n_scored: int,
        rows: ScoredRows | None = None,
        weighting: str = "pointwise",
        outside: bool = False,
        max_pairs: float = MAX_PAIRS,
        pool: Pool | None = None,
        label: Any = None,
        shares: Shares | None = None,
    ) -> None:
        """Store the cells; `shares` are computed if not given."""
        #: clusters on both sides, items and weight of all cells: those of both sides, then prediction-only ones
        self.every = (truth, prediction, n, weight)
        self.truth, self.prediction = (_first(side, n_scored) for side in (truth, prediction))
        self.weighting, self.outside, self.max_pairs = weighting, outside, max_pairs
        self._pool = pool or Pool(1)
        self._matrices: dict[Any, tuple[Floats, Floats, Floats]] = {}
        if shares is None:
            self._refuse_too_much(max_pairs, label)
            shares = self.sides.shares(n_scored)
        self.shares = shares
        cells = buffers.empty(n_scored, CELL)  # allocated only after computing shares, which frees memory
        sizes = truth.n_clusters, prediction.n_clusters
        super().__init__(
            cells, lambda: np.zeros(n_scored, np.int64), sizes, weighted=weight is not None,
            weighting=weighting, outside=outside, rows=rows,
        )  # fmt: skip
        self._pool.map(self._fill, *zip(*blocks(n_scored, CELLS_AT_ONCE), strict=True), stage="score cells")

    def _fill(self, start: int, stop: int) -> None:
        offsets, outer = (self.truth.offsets, self.prediction.offsets), self.weighting == "outer"
        kernels.memberships.fill_cells(
            start, stop, *self.every[2:], offsets, self.shares.parts, outer, self.cells
        )

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("sides", None)  # holds the pool of threads
        return {**state, "_pool": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _pool=Pool(1))

    @cached_property
    def sides(self) -> Sides:
        """The cells that count, with their clusters: prediction-only cells are included if they are false positives."""
        return self._sides(self.outside)

    def _sides(self, outside: bool) -> Sides:
        truth, prediction, n, weight = self.every
        if self.weighting == "outer":
            weight = None
        n_scored = len(self.truth)
        if outside or n_scored == n.size:
            return Sides(truth, prediction, n, weight, self._pool)
        weight = None if weight is None else weight[:n_scored]
        return Sides(self.truth, self.prediction, n[:n_scored], weight, self._pool)

    def proportions(
        self, others: Floats, cells: Int64s | slice = slice(None)
    ) -> tuple[Floats, Floats, Floats]:
        """Return tp, fp and fn of items of some cells, up to a factor; `others` are the weights of the items' cells."""
        hit_pred, miss_pred, hit_true, miss_true = self.sums(others, cells)
        alike = np.divide(hit_pred, hit_true, out=np.ones(hit_pred.size), where=hit_true > 0)
        return hit_pred, miss_pred, miss_true * alike

    among_others = proportions

    def sums(
        self, others: Floats, cells: Int64s | slice = slice(None)
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Return hits and misses on the predicted side, then on the true side, for the arguments of `proportions`."""
        own_g, own_c = (side.counts[cells].astype(np.float64) for side in (self.prediction, self.truth))
        least = np.minimum(own_g, own_c)
        hit_pred, miss_pred, hit_true, miss_true = self.shares.parts[cells].T
        hit_pred = hit_pred + others * (least / own_g)
        miss_pred = miss_pred + others * ((own_g - least) / own_g)
        hit_true = hit_true + others * (least / own_c)
        miss_true = miss_true + others * ((own_c - least) / own_c)
        return hit_pred, miss_pred, hit_true, miss_true

    def matrix_of_matches(self, similarity: str, *, within_pair: bool) -> tuple[Floats, Floats, Floats]:
        """Return tp, fp and fn of each cell, up to a factor, such that their rates are those of CICE-BCubed.

        A shared cluster is multiplied by its similarity to its best match among all clusters or, if `within_pair`,
        among those that contain both items.
        """
        key = similarity, within_pair
        if key not in self._matrices:
            hits = self.sides.matches(self.n_cells, within_pair, *likeness(self.sides, similarity))
            hit_pred, miss_pred, hit_true, miss_true = self.sums(np.ascontiguousarray(self.tp))
            fp = np.maximum(hit_pred + miss_pred - hits[:, 0], 0.0)
            fn = np.maximum(hit_true + miss_true - hits[:, 1], 0.0)
            fp[(miss_pred == 0) & self._are_exact("pred")] = 0.0  # removes rounding errors
            fn[(miss_true == 0) & self._are_exact("true")] = 0.0
            self._matrices[key] = hits[:, 0].copy(), fp, fn * (hits[:, 0] / hits[:, 1])
        return self._matrices[key]

    def _are_exact(self, side: str) -> NDArray[np.bool_]:
        """Return a mask of the cells whose clusters on a side are all identical to clusters of the other side."""
        members, same = self.members(side), self._of_side(self.sides.same, side)
        return np.logical_and.reduceat(same[members.codes] >= 0, members.offsets[:-1])

    def _refuse_too_much(self, max_pairs: float, label: Any) -> None:
        visits = self.sides.visits
        if visits.total <= max_pairs:
            return
        named = []
        for side, counts in (("true", visits.true), ("pred", visits.pred)):
            worst = np.argsort(-counts, kind="stable")[:TO_BLAME]
            names = [str(code) for code in worst] if label is None else label(side, worst)
            named += [
                (
                    int(counts[code]),
                    f"{Word('predicted cluster' if side == 'pred' else 'true cluster')} {name}",
                )
                for code, name in zip(worst, names, strict=True)
            ]
        blamed = [f"{name}: {n:.2g}" for n, name in sorted(named, key=lambda each: -each[0])[:TO_BLAME]]
        raise TooMuchWorkError(
            f"{visits.total:.2g} pairs of cells with common clusters would have to be compared, more than "
            f"{arg('max_pairs', max_pairs)} ({'; '.join(blamed)}). Leave such clusters out, or pass "
            f"{arg('max_pairs', 1.05 * visits.total)} or more and wait: about {visits.total / 2e8:.0f} "
            "seconds per core."
        )

    def batches(self) -> Iterator[dict[str, Any]]:
        """Yield all cells as columns of the table in which they are saved; prediction-only ones come last."""
        truth, prediction, n, weight = self.every
        lacking = np.arange(n.size) >= self.n_cells
        columns: dict[str, Any] = {
            "true_clusters": pa.LargeListArray.from_arrays(truth.offsets, truth.codes),
            "pred_clusters": pa.LargeListArray.from_arrays(prediction.offsets, prediction.codes),
            "n": n,
            "weight": n.astype(np.float64) if weight is None else weight,
        }
        for name, values in zip((*PARTS, *MATES), (*self.shares.parts.T, *self.shares.mates.T), strict=True):
            whole = np.zeros(n.size, values.dtype)
            whole[: self.n_cells] = values
            columns[name] = from_numpy(whole, lacking)
        yield columns

    # Figures by cluster

    def members(self, side: str) -> Memberships:
        """Return the clusters of each scored cell on one side."""
        return self.truth if side == "true" else self.prediction

    def memberships(self, side: str) -> tuple[NDArray[np.integer], int, Int64s]:
        """Return each membership's code on one side, the number of codes, and each membership's scored cell."""
        members = self.members(side)
        return members.codes, members.n_clusters, members.rows()

    def _count(self, side: str) -> Int64s:
        if self.sides.n.size == self.n_cells:
            return self.sides.sizes[0 if side == "true" else 1].n
        codes, n_clusters, cells = self.memberships(side)
        return np.bincount(codes, self.n[cells], n_clusters).astype(np.int64)

    def _weigh(self, side: str) -> Floats:
        codes, n_clusters, cells = self.memberships(side)
        weight = np.ascontiguousarray(self.weight)[cells]
        return np.add(*add_up(codes, n_clusters, weight, np.ones(weight.size)))

    @cached_property
    def n_exact(self) -> int:
        """The number of clusters that are identical on both sides."""
        return int(np.count_nonzero(self.exact("true")))

    def exact(self, side: str) -> NDArray[np.bool_]:
        """Return a mask of the clusters of a side that are identical to one of the other side, paired one to one."""
        return self._of_side(self.sides.exact, side)

    def _of_side(self, clusters: NDArray[Any], side: str) -> NDArray[Any]:
        n_true = self.truth.n_clusters
        return clusters[:n_true] if side == "true" else clusters[n_true:]

    @cached_property
    def charges(self) -> dict[str, Floats]:
        """The loss charged to each cluster: loss of precision to predicted clusters, loss of recall to true clusters.

        The loss of a pair of items is divided equally among the clusters of the side that both items share. The sum
        over all clusters is the loss of all items. This library defines the charges.
        """
        n = self.n_cells
        lost = self.sides.charges(n)
        hit_pred, miss_pred, hit_true, miss_true = self.sums(np.ascontiguousarray(self.tp))
        mates = {"true": hit_true + miss_true, "pred": hit_pred + miss_pred}
        counts = np.column_stack([self.truth.counts, self.prediction.counts])
        is_true = np.repeat(np.tile([True, False], n), counts.reshape(-1))
        found = {}
        for side, own in zip(SIDES, (lost[is_true], lost[~is_true]), strict=True):
            cells = self.members(side).rows()
            share = self.weight[cells] / self.total_weight / mates[side][cells]
            found[side] = _by_cluster(self, side, own * share)
        return found

    def n_met(self, side: str) -> Int64s:
        """Return the number of clusters of the other side that share items with each cluster."""
        table = self.sides.overlaps
        codes = table.true if side == "true" else table.pred
        return np.bincount(codes, minlength=self.members(side).n_clusters)

    def mates(self, side: str) -> NDArray[np.integer]:
        """Return the number of mates on this side of an item of each cell, counting the item itself."""
        return self.shares.mates[:, 1 if side == "true" else 0]

    def unlabelled_mates(self) -> tuple[Int64s, Floats, Int64s] | None:
        """Return number and proportional weight of prediction-only mates by cell, and the cells; None without mates."""
        return None if self._unlabelled is None else (*self._unlabelled, np.arange(self.n_cells))

    @cached_property
    def _unlabelled(self) -> tuple[Int64s, Floats] | None:
        if self.every[2].size == self.n_cells:
            return None
        parts, mates = self._sides(not self.outside).shares(self.n_cells)
        n = np.abs(mates[:, 0] - self.shares.mates[:, 0])
        mass = np.abs(parts[:, :2].sum(axis=1) - self.shares.parts[:, :2].sum(axis=1))
        tp, fp, _ = self.proportions(np.ascontiguousarray(self.tp))
        return n, np.where(n > 0, mass * ((self.tp + self.fp) / (tp + fp)), 0.0)


def likeness(sides: Sides, similarity: str) -> tuple[Floats, Floats, Floats]:
    """Return the similarity of each pair of overlapping clusters, and the best similarity of each cluster.

    For clusters of weights a and b whose shared items have the weight w, and a total weight N: Jaccard is w / (a + b -
    w), F1 is 2 w / (a + b), Rand is 1 - (a + b - 2 w) / N. Only Rand is not 0 for clusters without shared items, and
    among such clusters, the smallest one is the most similar. Clusters with the same items have a similarity of exactly
    1.
    """
    table = sides.overlaps
    sizes_true, sizes_pred = (sizes.weight for sizes in sides.sizes)
    w, a, b = table.sizes.weight, sizes_true[table.true], sizes_pred[table.pred]
    best = [np.zeros(sizes_true.size), np.zeros(sizes_pred.size)]
    if similarity == "jaccard":
        like = w / (a + b - w)
    elif similarity == "f1":
        like = 2 * w / (a + b)
    else:
        total = float(sides.n.sum() if sides.weight is None else sides.weight.sum())
        like = np.maximum(1.0 - ((a - w) + (b - w)) / total, w / total)
        best = [1.0 - (sizes_true + sizes_pred.min()) / total, 1.0 - (sizes_pred + sizes_true.min()) / total]
    n, true_n, pred_n = table.sizes.n, sides.sizes[0].n[table.true], sides.sizes[1].n[table.pred]
    like = np.where((n == true_n) & (n == pred_n), 1.0, np.minimum(like, 1.0))
    kernels.extended_bcubed.find_best(table.bounds, table.pred, like, *best)
    return like, best[0], best[1]


def split_equally(cover: Cover, side: str, lost: Floats) -> Floats:
    """Return the loss charged to each cluster if each item's loss is divided equally among its clusters of a side.

    Shapes: `lost` (n_cells,), multiplied by the weight of the items of each cell; result (n_clusters,).
    """
    members = cover.members(side)
    cells = members.rows()
    return _by_cluster(cover, side, lost[cells] / members.counts[cells])


def _by_cluster(cover: Cover, side: str, values: Floats) -> Floats:
    codes, n_clusters, _ = cover.memberships(side)
    return np.add(*add_up(codes, n_clusters, values, np.ones(values.size)))
