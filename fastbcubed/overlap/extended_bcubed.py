"""The pairs of items that Extended BCubed scores: those that share clusters, in memory or by subsets of clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.overlap.memberships import Memberships, ranges
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_partitions import offsets, part_bits, part_blocks, scatter_keys, table_slots
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool, blocks, lend
from fastbcubed.types import Codes, Counts, Floats

T = TypeVar("T")

#: A cell in more clusters of a side than this has too many pairs of clusters to be indexed by pairs.
NARROW = 8
#: Cells that are counted by cluster in the time that it takes to compare two, per cluster of one.
PER_CLUSTER = 4


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
    wide: bool  #: whether a cell is in more clusters of a side than `narrow`; if not, all arrays below are empty
    half: int  #: bits that count the true clusters shared with a cell, and then those that count the predicted ones
    bounds: Counts  #: where the cells of each cluster begin that are in several of a side; shape (n_clusters + 1,)
    ends: Counts  #: where those in more than `narrow` of its side end, which come first; shape (n_clusters,)
    cells: Codes  #: these cells


def row_type(rows: CellRows) -> type[np.integer]:
    """Return an integer type that holds the start of any row."""
    return np.int32 if rows.codes.size < 2**31 else np.int64


def close_mates(rows: CellRows, n_clusters: int, narrow: int, pool: Pool) -> CloseMates:
    """Index the cells by pairs of up to `narrow` clusters of a side; if any is in more, by cluster, too."""
    n_cells = rows.starts.size
    starts, stops = zip(*blocks(n_cells), strict=True)
    bounds = np.zeros(n_cells + 1, np.int64)
    longest = max(
        pool.map(
            lambda a, b: kernels.extended_bcubed.count_pairs(a, b, rows, narrow, bounds[1:]),
            starts, stops, stage="count pairs of clusters",
        )
    )  # fmt: skip
    np.cumsum(bounds, out=bounds)
    keys = buffers.empty(int(bounds[-1]), np.int64)
    pool.map(
        lambda a, b: kernels.extended_bcubed.list_pairs(a, b, rows, narrow, n_clusters, bounds, keys),
        starts, stops, stage="list pairs of clusters",
    )  # fmt: skip
    groups, sizes = _groups(keys, pool)
    group_bounds = np.concatenate([[0], np.cumsum(sizes)])
    members = buffers.empty(int(group_bounds[-1]), row_type(rows))
    kernels.extended_bcubed.fill_groups(rows.starts, bounds, groups, group_bounds[:-1].copy(), members)
    wide, half = longest > narrow, 16 if longest < 1 << 15 else 32
    clusters = _by_cluster(rows, n_clusters * wide, narrow)
    return CloseMates(narrow, bounds, groups, group_bounds, members, wide, half, *clusters)


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
            return kernels.extended_bcubed.find_repeats(mixed, rows, bounds, start, stop, *space)

    cuts = part_blocks(1 << bits)
    counts = pool.map(find, *zip(*cuts, strict=True), stage="group pairs of clusters")
    *bases, n_groups = accumulate((n for _, n in counts), initial=0)
    sizes = np.zeros(n_groups, np.int64)

    def number(cut: tuple[int, int], n: int, base: int) -> None:
        some = slice(bounds[cut[0]], bounds[cut[0]] + n)
        kernels.extended_bcubed.number_repeats(mixed[some], rows[some], base, groups, sizes)

    pool.map(number, cuts, (n for n, _ in counts), bases, stage="number pairs of clusters")
    return groups, sizes


def _by_cluster(rows: CellRows, n_clusters: int, narrow: int) -> tuple[Counts, Counts, Codes]:
    """Return the cells of each cluster that are in several of a side; nothing for no clusters."""
    if not n_clusters:
        return np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, row_type(rows))
    bounds, wide = np.zeros(n_clusters + 1, np.int64), np.zeros(n_clusters, np.int64)
    kernels.extended_bcubed.count_several(rows, narrow, wide, bounds[1:])
    np.cumsum(bounds, out=bounds)
    cells = buffers.empty(int(bounds[-1]), row_type(rows))
    ends = bounds[:-1] + wide
    kernels.extended_bcubed.fill_several(rows, narrow, bounds[:-1].copy(), ends.copy(), cells)
    return bounds, ends, cells


#: Workspace for the close mates of a cell, and counts of cells.
Found = tuple[NDArray[np.integer], NDArray[np.integer]]

#: Clusters or cells handled by one call; fixed, so that the split never depends on the threads.
AT_ONCE = 1 << 14
#: Numbers of true and predicted clusters that a cell and its mates may share for many mates to be counted by these.
ALIKE = 1 << 12


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
    #: the first predicted cluster with the same items as each cluster, true ones first; -1 if there is none
    same: NDArray[np.integer]


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
    compared: int  #: clusters of the cells that are compared with mates, once for each
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

    def _in_blocks(
        self, run: Callable[[int, int, T], None], n: int, workspace: Callable[[], T], stage: str
    ) -> None:
        """Run over blocks of n clusters or cells, each with a workspace that it is lent."""
        idle: list[T] = []

        def lent(start: int, stop: int) -> None:
            with lend(idle, workspace) as space:
                run(start, stop, space)

        self.pool.map(lent, *zip(*blocks(n, AT_ONCE), strict=True), stage=stage)

    @cached_property
    def common(self) -> Common:
        """The items that each true cluster of a cell shares with all its predicted ones."""
        cells, rows, items = self._members(), self.rows, self._items
        clusters, same = self._clusters, np.full(self.n_clusters, -1, self.prediction.codes.dtype)
        common = Common(self.truth.offsets, Totals.empty(self.truth.codes.size, items.weighted), same)
        self._in_blocks(
            lambda a, b, met: kernels.overlap.add_common(cells, rows, items, clusters, a, b, met, common),
            self.truth.n_clusters,
            lambda: Totals.zeros(self.prediction.n_clusters, items.weighted),
            "compare clusters",
        )
        return common

    @cached_property
    def same(self) -> NDArray[np.integer]:
        """The first predicted cluster with the same items as each cluster, true ones first; -1 if there is none."""
        return self.common.same

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """Whether each cluster is paired with one of the same items, one to one; true ones first."""
        exact = np.zeros(self.n_clusters, np.bool_)
        kernels.overlap.pair_copies(self.same, self.truth.n_clusters, exact)
        return exact

    @cached_property
    def overlaps(self) -> OverlapTable:
        """The items that each true cluster shares with each predicted one."""
        cells, rows, items = self._members(), self.rows, self._items
        n_true = self.truth.n_clusters
        bounds = np.zeros(n_true + 1, np.int64)
        self._in_blocks(
            lambda a, b, seen: kernels.overlap.count_overlaps(cells, rows, a, b, seen, bounds[1:]),
            n_true,
            lambda: np.full(self.prediction.n_clusters, -1),
            "count overlaps",
        )
        np.cumsum(bounds, out=bounds)
        n = int(bounds[-1])
        entry_bounds = np.zeros(self.n.size + 1, np.int64)
        np.cumsum(self.truth.counts * self.prediction.counts, out=entry_bounds[1:])
        entries = buffers.empty(int(entry_bounds[-1]), np.int32 if n < 2**31 else np.int64)
        pred = buffers.empty(n, self.prediction.codes.dtype)
        table = OverlapTable(bounds, pred, Totals.empty(n, items.weighted), entry_bounds, entries)
        self._in_blocks(
            lambda a, b, space: kernels.overlap.add_overlaps(cells, rows, items, a, b, space, table),
            n_true,
            lambda: tuple(np.full((2, self.prediction.n_clusters), -1)),
            "add up overlaps",
        )
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

    @property
    def close(self) -> CloseMates:
        """The cells with which each cell shares two or more clusters of a side."""
        return self._index[0]

    @property
    def visits(self) -> Visits:
        """The number of mates that `shares` will visit, at a cost linear in the memberships."""
        return self._index[1]

    @cached_property
    def _index(self) -> tuple[CloseMates, Visits]:
        """The index of close mates, by pairs of clusters if that saves time, and the number of mates to visit."""
        by_pair = self._indexed(NARROW)
        if by_pair[1].compared > 16 * self.rows.codes.size:  # else another index takes longer than it saves
            by_cluster = self._indexed(1)
            if by_cluster[1].total < PER_CLUSTER * by_pair[1].compared:
                return by_cluster
        return by_pair

    def _indexed(self, narrow: int) -> tuple[CloseMates, Visits]:
        close = close_mates(self.rows, self.n_clusters, narrow, self.pool)
        n_true, visits = self.truth.n_clusters, np.zeros(self.n_clusters, np.int64)
        total, most, compared = kernels.extended_bcubed.count_visits(self.rows, close, visits)
        return close, Visits(total, most, compared, visits[:n_true], visits[n_true:])

    def _found(self) -> Found:
        """Return a workspace for the close mates of a cell, itself included, and counts for cells and clusters."""
        met = np.zeros((self.n.size + self.n_clusters) * self.close.wide, f"i{2 * self.close.half // 8}")
        return np.empty((3, min(self.visits.most, self.n.size) + 1), row_type(self.rows)), met

    def _places(self, longest: int) -> tuple[Counts, Counts, Counts]:
        """Return workspaces for the positions in a row of its common clusters of a side, and of each cluster."""
        at_true, at_pred = np.empty((2, longest + 1), np.int64)
        return at_true, at_pred, np.zeros(self.n_clusters, np.int64)

    def matches(
        self, n_scored: int, pairwise: bool, likeness: Floats, best_true: Floats, best_pred: Floats
    ) -> Floats:
        """Sum hits on each side, times the similarity of clusters; see `add_matches`. Shape (n_scored, 2)."""
        hits, best = np.empty((n_scored, 2)), np.concatenate([best_true, best_pred])
        items, rows, close, overlaps = self._items, self.rows, self.close, self.overlaps
        widest = int((self.truth.counts * self.prediction.counts).max(initial=1))
        longest = int(max(self.truth.counts.max(initial=1), self.prediction.counts.max(initial=1)))

        def workspace() -> tuple[Totals, Counts, Counts, Counts, Found]:
            return Totals.empty(widest, items.weighted), *self._places(longest), self._found()

        def add(start: int, stop: int, space: Any) -> None:
            kernels.extended_bcubed.add_matches(
                start, stop, pairwise, items, rows, close, overlaps, likeness, best, space, hits
            )

        self._in_blocks(add, n_scored, workspace, "match clusters")
        return hits

    def charges(self, n_scored: int) -> Floats:
        """Return the losses of the items of the first `n_scored` cells through each of their clusters.

        By cell the true clusters, then the predicted ones; see `charge_clusters`. Cost is that of `shares`.
        """
        items, rows, close, overlaps = self._items, self.rows, self.close, self.overlaps
        lost = np.empty(int(self.truth.offsets[n_scored] + self.prediction.offsets[n_scored]))
        longest = int((self.truth.counts + self.prediction.counts).max(initial=1))
        clusters = self._clusters

        def workspace() -> tuple[Totals, Floats, Counts, Counts, Counts, Found]:
            sums = Totals.empty(longest, items.weighted), np.empty(longest)
            return *sums, *self._places(longest), self._found()

        def charge(start: int, stop: int, space: Any) -> None:
            kernels.extended_bcubed.charge_clusters(
                start, stop, items, rows, clusters, close, overlaps, space, lost
            )

        self._in_blocks(charge, n_scored, workspace, "charge clusters")
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

        def score(start: int, stop: int, space: Any) -> None:
            kernels.extended_bcubed.score_cells(
                start, stop, items, rows, clusters, close, common, space, parts, mates
            )

        workspace = lambda: (Totals.zeros(ALIKE, items.weighted), self._found())  # noqa: E731
        self._in_blocks(score, n_scored, workspace, "compare cells")
        self.same = common.same
        for name in ("common", "_index", "rows"):
            del self.__dict__[name]
        return Shares(parts, mates)
