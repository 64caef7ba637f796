"""Mates: the items shared by the cells of overlapping clusterings, in memory or by subsets of clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.inputs.layouts import Memberships, ranges
from fastbcubed.runtime import buffers
from fastbcubed.runtime.attributes import cached_property
from fastbcubed.runtime.codes import offsets, part_bits, part_blocks, scatter_keys, table_slots
from fastbcubed.runtime.spill import Spill, Spool
from fastbcubed.runtime.threads import Pool, blocks, lend
from fastbcubed.types import Codes, Counts, Floats

#: A cell in more clusters of a side than this has too many pairs of clusters to be indexed by pairs.
NARROW = 8


class CellRows(NamedTuple):
    """A row for each cell: its number, its number of clusters, the true ones, the predicted ones from `n_true` on.

    It is preceded by the position of the first true membership and the number of items of the cell.
    """

    starts: Counts  #: the position of each row's number; shape (n_cells,)
    codes: Codes
    n_true: int


class CloseMates(NamedTuple):
    """Where to look for the close mates of a cell: in its pairs of clusters, or in clusters of cells with many."""

    narrow: int  #: cells in no more clusters of a side than this are indexed by pairs
    pair_bounds: Counts  #: where the pairs of each cell begin; shape (n_cells + 1,)
    groups: Codes  #: the group of each pair of clusters, -1 if no other cell has the pair; shape (n_pairs,)
    group_bounds: Counts  #: where each group begins; shape (n_groups + 1,)
    members: Codes  #: the rows of the cells of each group
    wide: bool  #: whether a cell is in more clusters of a side than `narrow`; if not, all fields below are empty
    bounds: Counts  #: where the cells of each cluster begin that are in others of its side, too
    ends: Counts  #: where those in more than `narrow` end, which come first
    several: Codes  #: these cells


def row_type(rows: CellRows) -> type[np.integer]:
    """Return an integer type that holds the start of any row."""
    return np.int32 if rows.codes.size < 2**31 else np.int64


def close_mates(rows: CellRows, n_clusters: int, pool: Pool) -> CloseMates:
    """Index the cells by pairs of clusters; if these are too many, by cluster."""
    n_cells = rows.starts.size
    starts, stops = zip(*blocks(n_cells), strict=True)
    bounds = np.zeros(n_cells + 1, np.int64)
    wide = any(
        pool.map(
            lambda a, b: kernels.mates.count_pairs(a, b, rows, NARROW, bounds[1:]),
            starts, stops, stage="count pairs of clusters",
        )
    )  # fmt: skip
    np.cumsum(bounds, out=bounds)
    keys = buffers.empty(int(bounds[-1]), np.int64)
    pool.map(
        lambda a, b: kernels.mates.list_pairs(a, b, rows, NARROW, n_clusters, bounds, keys),
        starts, stops, stage="list pairs of clusters",
    )  # fmt: skip
    groups, sizes = _groups(keys, pool)
    group_bounds = np.concatenate([[0], np.cumsum(sizes)])
    members = buffers.empty(int(group_bounds[-1]), row_type(rows))
    kernels.mates.fill_groups(rows.starts, bounds, groups, group_bounds[:-1].copy(), members)
    return CloseMates(
        NARROW, bounds, groups, group_bounds, members, wide, *_by_cluster(rows, n_clusters * wide)
    )


def _groups(keys: Counts, pool: Pool) -> tuple[Codes, Counts]:
    """Return the group of each key, -1 for one that occurs once, and the sizes of the groups."""
    groups = buffers.empty(keys.size, np.int32 if keys.size < 2**31 else np.int64)
    groups.fill(-1)
    bits = part_bits(keys.size)
    mixed, rows, bounds = scatter_keys(keys, bits, pool)
    assert rows is not None
    largest = int(np.diff(bounds).max())

    def room() -> tuple[Codes, Codes]:
        return np.empty(table_slots(largest), np.int32), np.empty((largest, 2), np.int32)

    def find(start: int, stop: int) -> tuple[int, int]:
        with pool.workspace("repeats", room, lambda space: len(space[1]) >= largest) as space:
            return kernels.mates.find_repeats(mixed, rows, bounds, start, stop, *space)

    cuts = part_blocks(1 << bits)
    counts = pool.map(find, *zip(*cuts, strict=True), stage="group pairs of clusters")
    *bases, n_groups = accumulate((n for _, n in counts), initial=0)
    sizes = np.zeros(n_groups, np.int64)

    def number(cut: tuple[int, int], n: int, base: int) -> None:
        some = slice(bounds[cut[0]], bounds[cut[0]] + n)
        kernels.mates.number_repeats(mixed[some], rows[some], base, groups, sizes)

    pool.map(number, cuts, (n for n, _ in counts), bases, stage="number pairs of clusters")
    return groups, sizes


def _by_cluster(rows: CellRows, n_clusters: int) -> tuple[Counts, Counts, Codes]:
    """Return the cells of each cluster that are in others of its side; nothing for no clusters."""
    if not n_clusters:
        return np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, row_type(rows))
    bounds, wide = np.zeros(n_clusters + 1, np.int64), np.zeros(n_clusters, np.int64)
    kernels.mates.count_several(rows, NARROW, wide, bounds[1:])
    np.cumsum(bounds, out=bounds)
    several = buffers.empty(int(bounds[-1]), row_type(rows))
    ends = bounds[:-1] + wide
    kernels.mates.fill_several(rows, NARROW, bounds[:-1].copy(), ends.copy(), several)
    return bounds, ends, several


#: Workspace for the close mates of a cell, and counts of cells.
Found = tuple[NDArray[np.integer], NDArray[np.uint8]]

#: Clusters, and cells, handled by one call; fixed, so that the split never depends on the threads.
CLUSTERS_AT_ONCE = 1 << 14
CELLS_AT_ONCE = 1 << 14


class Items(NamedTuple):
    """Items of each cell, their weight (empty without weights), and whether there are weights."""

    n: Counts
    weight: Floats
    weighted: bool


class Totals(NamedTuple):
    """Numbers of items, and their weight as the sum of two floats, `mass + rest`; these are empty without weights."""

    n: Counts
    mass: Floats
    rest: Floats

    @classmethod
    def empty(cls, n: int, weighted: bool) -> Totals:
        """Return uninitialised totals of size `n`."""
        floats = n if weighted else 0
        return cls(
            *(buffers.empty(*each) for each in ((n, np.int64), (floats, np.float64), (floats, np.float64)))
        )

    @classmethod
    def zeros(cls, n: int, weighted: bool) -> Totals:
        """Return totals of zero."""
        floats = n if weighted else 0
        return cls(np.zeros(n, np.int64), np.zeros(floats), np.zeros(floats))

    @property
    def weight(self) -> Floats:
        """The weight, or the number of items."""
        return self.mass + self.rest if self.mass.size else self.n.astype(np.float64)


class OverlapTable(NamedTuple):
    """The items that each true cluster shares with each predicted one that it meets."""

    bounds: Counts  #: where the overlaps of each true cluster begin; shape (n_true + 1,)
    pred: NDArray[np.integer]  #: the predicted cluster; shape (n_overlaps,)
    sizes: Totals  #: common items and their weight
    #: the overlaps of each cell: those of its first true cluster with all its predicted ones, and so on
    entry_bounds: Counts
    entries: NDArray[np.integer]

    @property
    def true(self) -> Counts:
        """The true cluster of each overlap."""
        return np.repeat(np.arange(self.bounds.size - 1), np.diff(self.bounds))


class Common(NamedTuple):
    """The items that each true cluster of a cell shares with all its predicted ones, once for each of these."""

    bounds: Counts  #: where the true clusters of each cell begin; shape (n_cells + 1,)
    sizes: Totals  #: common items and their weight, without the items of the cell; shape (n_memberships,)
    exact: NDArray[np.bool_]  #: whether each cluster equals one of the other side, true ones first


class Shares(NamedTuple):
    """The shares of an item of each cell with its mates in other cells; see `score_cells`."""

    #: hits and misses on the predicted side, hits and misses on the true side; shape (n_cells, 4)
    parts: Floats
    #: items that share a predicted cluster, and a true cluster, with it, including itself; shape (n_cells, 2)
    mates: Counts


class Visits(NamedTuple):
    """Number of mates to visit: in total, for one cell at most, and by true and by predicted cluster."""

    total: int
    most: int
    true: Counts
    pred: Counts


@dataclass(eq=False)
class Sides:
    """Cells and their clusters on both sides."""

    #: the clusters of each cell. Items of a cell without true clusters are false positives for their mates
    truth: Memberships
    prediction: Memberships
    n: Counts  #: items of each cell; shape (n_cells,)
    weight: Floats | None  #: their weight, where mates count by weight; shape (n_cells,)
    pool: Pool  #: the threads

    @cached_property
    def sizes(self) -> tuple[Totals, Totals]:
        """Items of each true and of each predicted cluster."""
        items = self._items
        sides = self.truth, self.prediction
        sizes = [Totals.empty(side.n_clusters, items.weighted) for side in sides]

        def add(side: Memberships, totals: Totals) -> None:
            kernels.overlap.add_clusters(side.offsets, side.codes, items, totals)

        self.pool.map(add, sides, sizes, stage="add up clusters")
        return sizes[0], sizes[1]

    @property
    def n_clusters(self) -> int:
        """Clusters of both sides."""
        return self.truth.n_clusters + self.prediction.n_clusters

    @property
    def _items(self) -> Items:
        return Items(self.n, np.empty(0), False) if self.weight is None else Items(self.n, self.weight, True)

    def _members(self) -> tuple[Counts, NDArray[np.integer]]:
        """Where the cells of each true cluster begin, and their rows."""
        truth, starts = self.truth, self.rows.starts
        firsts, lasts = ranges(len(truth), self.pool)
        counts = np.zeros((len(firsts), truth.n_clusters), np.int64)

        def count(first: int, last: int, out: Counts) -> None:
            kernels.memberships.count_codes(truth.codes[truth.offsets[first] : truth.offsets[last]], out)

        self.pool.map(count, firsts, lasts, counts, stage="count cells by cluster")
        bounds, places = offsets(counts)
        members = buffers.empty(int(bounds[-1]), row_type(self.rows))

        def fill(first: int, last: int, to: Counts) -> None:
            kernels.overlap.fill_members(truth.offsets, truth.codes, starts, first, last, to, members)

        self.pool.map(fill, firsts, lasts, places, stage="group cells by cluster")
        return bounds, members

    @cached_property
    def common(self) -> Common:
        """The items that each true cluster of a cell shares with all its predicted ones."""
        cells, rows, items = self._members(), self.rows, self._items
        clusters, exact = self._clusters, np.zeros(self.n_clusters, np.bool_)
        common = Common(self.truth.offsets, Totals.empty(self.truth.codes.size, items.weighted), exact)
        idle: list[Totals] = []

        def add(first: int, last: int) -> None:
            with lend(idle, lambda: Totals.zeros(self.prediction.n_clusters, items.weighted)) as met:
                kernels.overlap.add_common(cells, rows, items, clusters, first, last, met, common)

        cuts = zip(*blocks(self.truth.n_clusters, CLUSTERS_AT_ONCE), strict=True)
        self.pool.map(add, *cuts, stage="compare clusters")
        return common

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """Whether each cluster equals one of the other side, true ones first."""
        return self.common.exact

    @cached_property
    def overlaps(self) -> OverlapTable:
        """The items that each true cluster shares with each predicted one."""
        cells, rows, items = self._members(), self.rows, self._items
        n_true = self.truth.n_clusters
        starts, stops = zip(*blocks(n_true, CLUSTERS_AT_ONCE), strict=True)
        bounds = np.zeros(n_true + 1, np.int64)
        workspace = lambda: np.full((2, self.prediction.n_clusters), -1)  # noqa: E731
        idle: list[Counts] = []

        def count(first: int, last: int) -> None:
            with lend(idle, workspace) as (seen, _):
                kernels.overlap.count_overlaps(cells, rows, first, last, seen, bounds[1:])

        self.pool.map(count, starts, stops, stage="count overlaps")
        idle.clear()  # they list the clusters met
        np.cumsum(bounds, out=bounds)
        n = int(bounds[-1])
        entry_bounds = np.zeros(self.n.size + 1, np.int64)
        np.cumsum(self.truth.counts * self.prediction.counts, out=entry_bounds[1:])
        entries = buffers.empty(int(entry_bounds[-1]), np.int32 if n < 2**31 else np.int64)
        pred = buffers.empty(n, self.prediction.codes.dtype)
        table = OverlapTable(bounds, pred, Totals.empty(n, items.weighted), entry_bounds, entries)

        def add(first: int, last: int) -> None:
            with lend(idle, workspace) as space:
                kernels.overlap.add_overlaps(cells, rows, items, first, last, (space[0], space[1]), table)

        self.pool.map(add, starts, stops, stage="add up overlaps")
        return table

    @cached_property
    def rows(self) -> CellRows:
        """The clusters of each cell."""
        truth, prediction, n_cells = self.truth, self.prediction, self.n.size
        largest = max(self.n_clusters, n_cells, int(self.n.max(initial=0)), truth.codes.size)
        size = truth.codes.size + prediction.codes.size + 4 * n_cells
        rows = buffers.empty(size, np.int32 if largest < 2**31 else np.int64)
        starts = buffers.empty(n_cells, np.int64)
        whole = truth.offsets, truth.codes, prediction.offsets, prediction.codes, truth.n_clusters
        self.pool.map(
            lambda a, b: kernels.overlap.join_rows(a, b, *whole, self.n, starts, rows),
            *zip(*blocks(n_cells), strict=True), stage="join clusters of cells",
        )  # fmt: skip
        return CellRows(starts, rows, truth.n_clusters)

    @cached_property
    def close(self) -> CloseMates:
        """The cells with which each cell shares two or more clusters of a side."""
        return close_mates(self.rows, self.n_clusters, self.pool)

    @cached_property
    def visits(self) -> Visits:
        """The number of mates that `shares` will visit, at a cost linear in the memberships."""
        n_true, visits = self.truth.n_clusters, np.zeros(self.n_clusters, np.int64)
        total, most = kernels.mates.count_visits(self.rows, self.close, visits)
        return Visits(total, most, visits[:n_true], visits[n_true:])

    def _found(self) -> Found:
        """Return a workspace for the close mates of a cell, itself included, and for counts of the cells it meets."""
        return np.empty((self.visits.most + 1, 3), row_type(self.rows)), np.zeros(
            self.n.size * self.close.wide, np.uint8
        )

    def matches(
        self, n_scored: int, pairwise: bool, likeness: Floats, best_true: Floats, best_pred: Floats
    ) -> Floats:
        """Sum hits on each side, times the similarity of clusters; see `add_matches`. Shape (n_scored, 2)."""
        hits, best = np.empty((n_scored, 2)), np.concatenate([best_true, best_pred])
        items, rows, close, overlaps = self._items, self.rows, self.close, self.overlaps
        widest = int((self.truth.counts * self.prediction.counts).max(initial=1))
        longest = int(max(self.truth.counts.max(initial=1), self.prediction.counts.max(initial=1)))

        def workspace() -> tuple[Totals, Counts, Counts, Found]:
            at_true, at_pred = np.empty((2, longest), np.int64)
            return Totals.empty(widest, items.weighted), at_true, at_pred, self._found()

        idle: list[tuple[Totals, Counts, Counts, Found]] = []

        def add(start: int, stop: int) -> None:
            with lend(idle, workspace) as space:
                kernels.mates.add_matches(
                    start, stop, pairwise, items, rows, close, overlaps, likeness, best, space, hits
                )

        cuts = zip(*blocks(n_scored, CELLS_AT_ONCE), strict=True)
        self.pool.map(add, *cuts, stage="match clusters")
        return hits

    def charges(self, n_scored: int) -> Floats:
        """Return the losses of the items of the first `n_scored` cells through each of their clusters.

        By cell the true clusters, then the predicted ones; see `charge_clusters`. Cost is that of `shares`.
        """
        items, rows, close, overlaps = self._items, self.rows, self.close, self.overlaps
        lost = np.empty(int(self.truth.offsets[n_scored] + self.prediction.offsets[n_scored]))
        longest = int((self.truth.counts + self.prediction.counts).max(initial=1))
        clusters, idle = self._clusters, list[tuple[Totals, Floats, Counts, Counts, Found]]()

        def workspace() -> tuple[Totals, Floats, Counts, Counts, Found]:
            at_true, at_pred = np.empty((2, longest), np.int64)
            return (
                Totals.empty(longest, items.weighted), np.empty(longest), at_true, at_pred, self._found()
            )  # fmt: skip

        def charge(start: int, stop: int) -> None:
            with lend(idle, workspace) as space:
                kernels.mates.charge_clusters(
                    start, stop, items, rows, clusters, close, overlaps, space, lost
                )

        cuts = zip(*blocks(n_scored, CELLS_AT_ONCE), strict=True)
        self.pool.map(charge, *cuts, stage="charge clusters")
        return lost

    @property
    def _clusters(self) -> Totals:
        """Items of each cluster, true ones first."""
        return Totals(*(np.concatenate(pair) for pair in zip(*self.sizes, strict=True)))

    def shares(self, n_scored: int) -> Shares:
        """Sum the shares of the items of the first `n_scored` cells with their mates.

        Notes
        -----
        Cost is the sum over cells of true times predicted clusters, plus the mates counted by `visits`. The index is
        released: it takes more memory than the shares, and is rebuilt in a fraction of the time.
        """
        parts, mates = buffers.empty((n_scored, 4), np.float64), buffers.empty((n_scored, 2), np.int64)
        items, rows, close, common, clusters = self._items, self.rows, self.close, self.common, self._clusters
        idle: list[Found] = []

        def score(start: int, stop: int) -> None:
            with lend(idle, self._found) as found:
                kernels.mates.score_cells(
                    start, stop, items, rows, clusters, close, common, *found, parts, mates
                )

        cuts = zip(*blocks(n_scored, CELLS_AT_ONCE), strict=True)
        self.pool.map(score, *cuts, stage="compare cells")
        self.exact = common.exact
        for name in ("common", "close", "rows"):
            del self.__dict__[name]
        return Shares(parts, mates)


#: Salts that distinguish the clusters of the two sides: those with a label, and those of a single item.
SALTS = {("true", False): 1, ("pred", False): 2, ("true", True): 3, ("pred", True): 4}


class NamedCells(NamedTuple):
    """The cells of a shard of items, their clusters by name; prediction-only cells come last."""

    true_bounds: NDArray[np.int64]  #: where the true clusters of each cell begin; shape (n_cells + 1,)
    true_names: NDArray[np.int64]  #: the name of each; shape (n_true_memberships, 2)
    pred_bounds: NDArray[np.int64]
    pred_names: NDArray[np.int64]
    n: NDArray[np.int64]  #: items of each cell; shape (n_cells,)
    weight: Floats  #: their weight, empty if mates count by number; shape (n_cells,)
    n_scored: int
    narrow: int  #: cells of more clusters on both sides together are wide

    @property
    def is_wide(self) -> NDArray[np.bool_]:
        """Mask of wide cells. Shape (n_cells,)."""
        return np.diff(self.true_bounds) + np.diff(self.pred_bounds) > self.narrow

    @property
    def n_subsets(self) -> NDArray[np.int64]:
        """The number of subsets of clusters that each cell adds to. Shape (n_cells,)."""
        c, g = np.diff(self.true_bounds), np.diff(self.pred_bounds)
        return np.where(c + g > self.narrow, n_pairs(c, g), n_sets(np.minimum(c + g, self.narrow)))

    @classmethod
    def none(cls) -> NamedCells:
        """Return the cells of an empty shard."""
        bounds, names = np.zeros(1, np.int64), np.empty((0, 2), np.int64)
        return cls(bounds, names, bounds, names, np.empty(0, np.int64), np.empty(0), 0, 0)


class FoundShares(NamedTuple):
    """Sums collected by the cells of a shard."""

    parts: Floats  #: as those of `Shares`; shape (n_scored, 4)
    mates: NDArray[np.int64]  #: as those of `Shares`; shape (n_scored, 2)
    #: prediction-only items that share a predicted cluster, and their weight, if these are summed separately
    n_alone: NDArray[np.int64]
    alone: Floats
    #: scored items of clusters not reported by an earlier shard, by side; shape (2, n_memberships) or less filled,
    sizes: NDArray[np.int64]
    n_clusters: NDArray[np.int64]  #: number of these clusters; shape (2,)
    n_exact: NDArray[np.int64]  #: number of these that equal one of the other side; shape (2,)

    @classmethod
    def of(cls, cells: NamedCells) -> FoundShares:
        """Return zeroed sums for the cells of a shard."""
        return cls.zeros(cells.n_scored, max(len(cells.true_names), len(cells.pred_names)))

    @classmethod
    def zeros(cls, n: int, n_memberships: int = 0) -> FoundShares:
        """Return zeroed sums of `n` cells."""
        return cls(
            np.zeros((n, 4)), np.zeros((n, 2), np.int64), np.zeros(n, np.int64), np.zeros(n),
            np.zeros((2, n_memberships), np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64),
        )  # fmt: skip

    def add(self, other: FoundShares) -> None:
        """Add the sums of the same cells over other mates."""
        for own, more in ((self.mates, other.mates), (self.n_alone, other.n_alone)):
            np.add(own, more, out=own)
        for mass, rest in ((self.parts, other.parts), (self.alone, other.alone)):
            np.add(mass, rest, out=mass)

    @property
    def shares(self) -> Shares:
        """The shares of the items of each cell with their mates in other cells."""
        return Shares(self.parts, self.mates)


class Space(NamedTuple):
    """The workspace of a cell: sums by number of true and of predicted clusters, and items of each subset."""

    #: as the fields of `Totals`, for all items or, with two of each, separately for prediction-only items; shape (1 or
    #: 2, c + 1, g + 1)
    n: NDArray[np.int64]
    mass: Floats
    rest: Floats
    scored: NDArray[np.int64]  #: scored items of each subset, -1 where an earlier cell has reported these
    every: NDArray[np.int64]  #: all items that count
    ones: NDArray[np.int64]  #: number of set bits of each integer
    kinds: int  #: kinds of items that are counted separately

    @classmethod
    def of(cls, widest: int, n_subsets: int, n_sums: int, kinds: int) -> Space:
        """Return the workspace of narrow cells with up to `widest` clusters, and of `n_subsets` subsets."""
        shape = n_sums, widest + 1, widest + 1
        ones = np.zeros(1, np.int64)
        for _ in range(widest):
            ones = np.concatenate([ones, ones + 1])
        scored, every = np.zeros((2, n_subsets), np.int64)
        return cls(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape), scored, every, ones, kinds)


class Extent(NamedTuple):
    """The amount to be summed."""

    n_subsets: int  #: of all cells
    widest: int  #: maximal number of clusters of a narrow cell
    most: int  #: maximal number of subsets of a cell
    weighted: bool  #: whether mates count by weight
    alone: bool  #: whether there are prediction-only cells
    apart: bool  #: whether their items are summed separately
    wide: bool  #: whether there are wide cells

    @property
    def kinds(self) -> int:
        """Kinds of items that are counted separately; see `kernels.subsets`."""
        return (3 if self.wide else 1) + self.alone


class SubsetSums:
    """Sums the subsets of cells in shards by name, and sends each cell the sums of its subsets.

    About `at_once` subsets are handled by a task; `memory` bytes of them may be kept, and half as many of the sums.
    """

    def __init__(self, extent: Extent, at_once: int, memory: int, spill: Spill) -> None:
        self._extent, self._at_once = extent, at_once
        self._bits = part_bits(extent.n_subsets, at_once)
        words = [("first", "i8"), ("second", "i8"), ("n", "i8")] + [("weight", "f8")] * extent.weighted
        n_words = extent.kinds + 2 * min(2, extent.kinds) * extent.weighted
        self._records = Spool(np.dtype(words), 1 << self._bits, spill, memory)
        self._returned = np.dtype([(f"word {k}", "i8") for k in range(n_words)])
        self._spill, self._memory = spill, memory // 2
        needed = extent.n_subsets * (self._records.dtype.itemsize + self._returned.itemsize)
        spill.require_free(max(0, needed - memory - self._memory))
        self._back: Spool | None = None
        self._bounds: dict[tuple[int, int], NDArray[np.int64]] = {}

    def put(self, shard: int, cells: NamedCells) -> None:
        """Take the cells of a shard of items."""
        words = np.empty((self._extent.most + 1, 2), np.int64)
        for k, (start, stop) in enumerate(self._cuts(cells)):
            counts = np.zeros((1, self._records.n_shards), np.int64)
            kernels.subsets.count_subsets(cells, start, stop, self._bits, words, counts[0])
            bounds, next_row = offsets(counts)
            with self._spill.pages() as pages:
                records, masses = _words(
                    pages.empty(int(bounds[-1]), self._records.dtype), self._extent.weighted
                )
                kernels.subsets.scatter_subsets(
                    cells, start, stop, self._bits, words, next_row[0], records, masses
                )
                self._records.put((shard, k), pages, bounds)
            self._bounds[shard, k] = bounds

    def add_up(self, pool: Pool) -> None:
        """Sum the subsets of each shard by name, and prepare the sums to be sent back."""
        self._back = Spool(self._returned, len(self._bounds), self._spill, self._memory)
        self._ranks = {index: rank for rank, index in enumerate(self._records.indexes)}
        sizes = self._records.sizes()
        largest_first = np.argsort(-sizes, kind="stable")
        shards = largest_first[: np.count_nonzero(sizes)].tolist()
        pool.map(self._add_up, shards, stage="count shared clusters", rows=sizes[shards].tolist())
        self._records.clear()

    def _add_up(self, shard: int) -> None:
        """Sum the subsets of a shard, piece by piece: one subset of very many cells makes it large."""
        segments = self._records.segments(shard)
        pieces = list(_pieces(segments, 2 * self._at_once))
        table = Table(self._extent.weighted, self._extent.kinds)
        for piece in pieces:
            records, masses = _words(self._records.read(shard, piece), self._extent.weighted)
            places = table.add(records, masses)
        told = np.zeros(table.n, np.bool_)
        for k, piece in enumerate(pieces):
            if len(pieces) > 1:
                records, _ = _words(self._records.read(shard, piece), self._extent.weighted)
                places = table.find(records)
            sent = np.zeros(segments.size, np.int64)
            sent[piece] = segments[piece]
            self._send_back((shard, k), records, places, table, told, np.append(0, np.cumsum(sent)))

    def _send_back(
        self,
        index: tuple[int, int],
        records: NDArray[np.int64],
        places: NDArray[np.int32],
        table: Table,
        told: NDArray[np.bool_],
        bounds: NDArray[np.int64],
    ) -> None:
        assert self._back is not None
        with self._spill.pages() as pages:
            back, floats = _words(pages.empty(len(records), self._returned), self._extent.weighted)
            kernels.subsets.send_back(
                records, places, table.n_each, table.mass, table.rest, told, back, floats
            )
            self._back.put(index, pages, bounds)

    def take(self, shard: int, cells: NamedCells) -> FoundShares:
        """Return the shares of the items of a shard's cells with their mates."""
        assert self._back is not None
        extent, found = self._extent, FoundShares.of(cells)
        words = np.empty((extent.most + 1, 2), np.int64)
        space = Space.of(extent.widest, extent.most + 1, 1 + extent.apart, extent.kinds)
        for k, (start, stop) in enumerate(self._cuts(cells)):
            back, floats = _words(self._back.read(self._ranks[shard, k]), extent.weighted)
            next_row = self._bounds[shard, k][:-1].copy()
            kernels.subsets.share_subsets(
                cells, start, stop, self._bits, words, next_row, back, floats, space, found
            )
        return found

    def _cuts(self, cells: NamedCells) -> Iterator[tuple[int, int]]:
        """Cut the cells of a shard into blocks of about as many subsets as one task handles."""
        for cut in _pieces(cells.n_subsets, self._at_once):
            yield cut.start, cut.stop


class Table:
    """Sums of a shard's subsets by name; the table grows as they come."""

    def __init__(self, weighted: bool, kinds: int) -> None:
        self.n = 0  #: current number of subsets
        self.slots = np.empty(0, np.int32)
        self.names = np.empty((0, 2), np.int64)
        self.n_each = np.empty((0, kinds), np.int64)
        self.mass = self.rest = np.empty((0, min(2, kinds))) if weighted else None

    def add(self, records: NDArray[np.int64], masses: Floats | None) -> NDArray[np.int32]:
        """Add records to the sums, and return the subset of each."""
        self._make_room(self.n + len(records))
        places = buffers.empty(len(records), np.int32)
        self.n = kernels.subsets.add_up(
            records, masses, self.names, self.n, self.slots, places, self.n_each, self.mass, self.rest
        )
        return places

    def find(self, records: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the subset of each record, all of which were added before."""
        places = buffers.empty(len(records), np.int32)
        kernels.subsets.look_up(records, self.names, self.slots, places)
        return places

    def _make_room(self, n: int) -> None:
        """Grow the table to hold `n` subsets."""
        if n <= len(self.names):
            return
        room = max(n, 2 * self.n)
        self.names, self.n_each = self._grown(self.names, room), self._grown(self.n_each, room)
        if self.mass is not None and self.rest is not None:
            self.mass, self.rest = self._grown(self.mass, room), self._grown(self.rest, room)
        self.slots = buffers.empty(table_slots(room), np.int32)
        self.slots[:] = -1
        kernels.subsets.enter(self.names, self.n, self.slots)

    def _grown(self, held: NDArray[Any], room: int) -> NDArray[Any]:
        grown = buffers.empty((room, held.shape[1]), held.dtype)
        grown[: self.n] = held[: self.n]
        return grown


def _pieces(sizes: NDArray[np.int64], most: int) -> Iterator[slice]:
    """Cut batches of these sizes into runs of up to `most` records, or of one batch."""
    ends = np.cumsum(sizes)
    start = 0
    while start < sizes.size:
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield slice(start, stop)
        start = stop


def n_sets(n_clusters: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of subsets of `n` clusters, without the empty one."""
    return (1 << n_clusters) - 1


def n_pairs(c: NDArray[np.int64], g: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of clusters plus the number of pairs of a true and a predicted one."""
    return c + g + c * g


def name_clusters(keys: NDArray[np.int64], side: str, alone: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return two words for each cluster, by its key; `alone` marks clusters keyed by their single item.

    Shapes: (n_clusters,), (n_clusters,) -> (n_clusters, 2).
    """
    names = np.empty((keys.size, 2), np.int64)
    for is_alone in (False, True):
        chosen = np.flatnonzero(alone == is_alone)
        own = np.empty((chosen.size, 2), np.int64)
        kernels.subsets.name_clusters(keys[chosen], SALTS[side, is_alone], own)
        names[chosen] = own
    return names


def _words(records: np.ndarray, weighted: bool) -> tuple[NDArray[np.int64], Floats | None]:
    """Return records of 64-bit fields as rows of integers and, with weights, of floats."""
    shape = records.size, len(records.dtype.names or ())
    floats = records.view(np.float64).reshape(shape) if weighted else None
    return records.view(np.int64).reshape(shape), floats


Read = Callable[[int], NamedCells]
Workspace = tuple[NDArray[np.int32], NDArray[np.int64]]
#: Bytes of a membership of a wide cell.
MEMBERSHIP_BYTES = 100


class Index(NamedTuple):
    """The wide cells of all shards by cluster."""

    names: NDArray[np.int64]  #: of their clusters; shape (n_clusters, 2) or more
    slots: NDArray[np.int32]  #: a hash table of these; see `kernels.subsets.find`
    bounds: NDArray[np.int64]  #: where the cells of each cluster begin; shape (n_clusters + 1,)
    cells: NDArray[np.int64]  #: these cells
    n: NDArray[np.int64]  #: items of each wide cell; shape (n_wide,)
    weight: NDArray[np.float64]  #: their weight, empty if mates count by number; shape (n_wide,)
    alone: NDArray[np.bool_]  #: whether they are prediction-only; shape (n_wide,)

    @classmethod
    def of(cls, shards: Sequence[NamedCells]) -> Index:
        """Index the wide cells of shards, which contain no others."""
        table, places, cells, first = Table(False, 1), [np.empty(0, np.int32)], [np.empty(0, np.int64)], 0
        n, weight, alone = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0, np.bool_)]
        for own in shards:
            for names, bounds in ((own.true_names, own.true_bounds), (own.pred_names, own.pred_bounds)):
                places.append(table.add(np.column_stack([names, np.full(len(names), 4)]), None))
                cells.append(np.repeat(first + np.arange(own.n.size), np.diff(bounds)))
            n.append(own.n)
            weight.append(own.weight)
            alone.append(np.arange(own.n.size) >= own.n_scored)
            first += own.n.size
        clusters = np.concatenate(places)
        bounds = np.append(0, np.cumsum(np.bincount(clusters, minlength=table.n)))
        in_order = np.concatenate(cells)[np.argsort(clusters, kind="stable")]
        return cls(
            table.names, table.slots, bounds, in_order, np.concatenate(n), np.concatenate(weight),
            np.concatenate(alone),
        )  # fmt: skip


class WideCells:
    """Compares the wide cells of all shards with all cells; `apart` sums prediction-only items separately."""

    def __init__(self, read: Read, shards: Sequence[int], pool: Pool, *, apart: bool) -> None:
        self._read, self._shards, self._apart = read, shards, apart
        wide = pool.map(lambda shard: _wide_alone(read(shard)), shards, stage="list wide cells")
        self._index = Index.of(wide)
        counts = [own.n.size for own in wide]
        self._first = dict(zip(shards, np.cumsum([0, *counts]).tolist(), strict=False))
        self._idle: list[Workspace] = []

    def count_visits(self, pool: Pool) -> int:
        """Return how often a cluster of a cell is one of a wide cell: the cost of comparing them."""
        count = kernels.subsets.count_visits
        return sum(
            pool.map(
                lambda shard: count(self._read(shard), self._index), self._shards, stage="count wide cells"
            )
        )

    def meet(self, pool: Pool) -> None:
        """Compare the wide cells with all others, and sum their shares."""

        def meet(shard: int) -> FoundShares:
            found = FoundShares.zeros(self._index.n.size)
            with lend(self._idle, self._workspace) as space:
                kernels.subsets.meet_wide(
                    self._read(shard), self._first[shard], self._index, self._apart, *space, found
                )
            return found

        self._sums = FoundShares.zeros(self._index.n.size)
        for found in pool.stream(meet, [(shard,) for shard in self._shards], stage="compare wide cells"):
            self._sums.add(found)

    def share(self, shard: int, cells: NamedCells, found: FoundShares) -> None:
        """Add the shares with wide cells to the sums of a shard's cells, and fill in those of its wide cells."""
        with lend(self._idle, self._workspace) as space:
            kernels.subsets.share_wide(
                cells, self._first[shard], self._index, self._apart, *space, self._sums, found
            )

    def _workspace(self) -> Workspace:
        return np.zeros((self._index.n.size, 2), np.int32), np.empty(self._index.n.size, np.int64)


def _wide_alone(cells: NamedCells) -> NamedCells:
    """Return the wide cells of a shard."""
    wide = np.flatnonzero(cells.is_wide)
    sides = []
    for names, bounds in ((cells.true_names, cells.true_bounds), (cells.pred_names, cells.pred_bounds)):
        rows = Memberships(bounds, np.arange(len(names)), len(names)).take(wide)
        sides += [rows.offsets, names[rows.codes]]
    weight = cells.weight[wide] if cells.weight.size else cells.weight
    n_scored = int(np.count_nonzero(wide < cells.n_scored))
    return NamedCells(sides[0], sides[1], sides[2], sides[3], cells.n[wide], weight, n_scored, cells.narrow)
