"""Pairs of items that Extended BCubed scores because they share clusters: rows of cells, their index, and sums."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.overlap.memberships import Memberships
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_partitions import offsets, part_bits, part_blocks, scatter_keys, table_slots
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool, blocks, lend
from fastbcubed.types import Codes, Counts, Floats

T = TypeVar("T")

#: A cell with more clusters on a side than this has too many pairs of clusters to be indexed by pairs.
NARROW = 8
#: Number of cells counted by cluster in the time in which two cells are compared, per cluster of one of these.
PER_CLUSTER = 4
#: Maximum number of ranges of cells that are counted by cluster at the same time, each in a row of its own for all
#: clusters; and number of cells from which that is faster.
MOST_RANGES, SMALL = 4, 1 << 14


class CellRows(NamedTuple):
    """A row of integers for each cell: cell number, number of clusters, true clusters, predicted clusters.

    The numbers of predicted clusters start at `n_true`. Before the cell number come the position of the cell's first
    true membership and its number of items.
    """

    starts: Counts  #: the position of each cell's number in `codes`; shape (n_cells,)
    codes: Codes
    n_true: int


class CloseMates(NamedTuple):
    """An index of close mates, cells that share several clusters on a side: by pairs of clusters, and by cluster."""

    narrow: int  #: cells with at most this many clusters on a side are indexed by pairs of these
    pair_bounds: Counts  #: where the pairs of each cell begin; shape (n_cells + 1,)
    groups: Codes  #: the group of each pair of clusters, -1 if no other cell has the pair; shape (n_pairs,)
    group_bounds: Counts  #: where each group begins in `members`; shape (n_groups + 1,)
    members: Codes  #: the rows of the cells of each group
    wide: bool  #: whether any cell has more than `narrow` clusters on a side; if not, all arrays below are empty
    half: int  #: number of bits for the count of shared true clusters; the higher bits are for predicted ones
    bounds: Counts  #: where the list of each cluster in `cells` begins; shape (n_clusters + 1,)
    ends: Counts  #: where its cells with more than `narrow` clusters on its side end; shape (n_clusters,)
    cells: Codes  #: the cells of each cluster that have several clusters on a side, those before `ends` first


def row_type(rows: CellRows) -> type[np.integer]:
    """Return an integer type that can hold the start of any row."""
    return np.int32 if rows.codes.size < 2**31 else np.int64


def close_mates(rows: CellRows, n_clusters: int, narrow: int, pool: Pool) -> CloseMates:
    """Index the cells by pairs of up to `narrow` clusters of a side and, if any cell has more, by cluster as well."""
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
    """Return the group of each key, -1 for a key that occurs once, and the size of each group."""
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
    """Return the cells of each cluster that have several clusters on a side; empty arrays if `n_clusters` is 0."""
    if not n_clusters:
        return np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, row_type(rows))
    bounds, wide = np.zeros(n_clusters + 1, np.int64), np.zeros(n_clusters, np.int64)
    kernels.extended_bcubed.count_several(rows, narrow, wide, bounds[1:])
    np.cumsum(bounds, out=bounds)
    cells = buffers.empty(int(bounds[-1]), row_type(rows))
    ends = bounds[:-1] + wide
    kernels.extended_bcubed.fill_several(rows, narrow, bounds[:-1].copy(), ends.copy(), cells)
    return bounds, ends, cells


#: Workspace for the close mates of a cell, and for counts by cell and cluster.
Found = tuple[NDArray[np.integer], NDArray[np.integer]]

#: Number of clusters or cells per call; fixed, so that blocks do not depend on the number of threads.
AT_ONCE = 1 << 14
#: Size of the table in which many mates are counted by the numbers of true and predicted clusters shared with a cell.
ALIKE = 1 << 12


class Items(NamedTuple):
    """Number of items of each cell, their weight (empty if items have no weights), and whether they have weights."""

    n: Counts
    weight: Floats
    weighted: bool


class Totals(NamedTuple):
    """Numbers of items, and their weight as a sum of two floats, `mass + rest`, both empty without weights."""

    n: Counts
    mass: Floats
    rest: Floats

    @classmethod
    def empty(cls, n: int, weighted: bool) -> Totals:
        """Return uninitialized totals of size `n`."""
        floats = n if weighted else 0
        return cls(
            *(buffers.empty(*each) for each in ((n, np.int64), (floats, np.float64), (floats, np.float64)))
        )

    @classmethod
    def zeros(cls, n: int, weighted: bool) -> Totals:
        """Return totals of size `n`, all 0."""
        floats = n if weighted else 0
        return cls(np.zeros(n, np.int64), np.zeros(floats), np.zeros(floats))

    @property
    def weight(self) -> Floats:
        """The weight; the number of items if they have no weights."""
        return self.mass + self.rest if self.mass.size else self.n.astype(np.float64)


class OverlapTable(NamedTuple):
    """The overlaps: the items that a true and a predicted cluster share, for every pair of clusters that share any."""

    bounds: Counts  #: where the overlaps of each true cluster begin; shape (n_true + 1,)
    pred: NDArray[np.integer]  #: the predicted cluster of each overlap; shape (n_overlaps,)
    sizes: Totals  #: the shared items and their weight
    #: the overlaps of each cell: of its first true cluster with each of its predicted clusters, then of its second
    entry_bounds: Counts
    entries: NDArray[np.integer]

    @property
    def true(self) -> Counts:
        """The true cluster of each overlap."""
        return np.repeat(np.arange(self.bounds.size - 1), np.diff(self.bounds))


class Common(NamedTuple):
    """The items that each true cluster of a cell shares with the cell's predicted clusters, summed over these."""

    bounds: Counts  #: where the true clusters of each cell begin; shape (n_cells + 1,)
    sizes: Totals  #: the shared items and their weight, without the items of the cell; shape (n_memberships,)
    #: the first predicted cluster with the same items as each cluster, -1 for none; true clusters come first
    same: NDArray[np.integer]


class Shares(NamedTuple):
    """The hits and misses of an item of each cell over its mates in other cells; see `score_cells`."""

    #: hits and misses on the predicted side, then on the true side; shape (n_cells, 4)
    parts: Floats
    #: number of items that share a predicted, and a true, cluster with it, including itself; shape (n_cells, 2)
    mates: Counts


class Visits(NamedTuple):
    """The number of mates to visit: in total, maximum per cell, by true cluster and by predicted cluster."""

    total: int
    most: int
    compared: int  #: number of clusters of cells compared with mates, counted once per mate
    true: Counts
    pred: Counts


@dataclass(eq=False)
class Sides:
    """The cells and their clusters on both sides."""

    #: the clusters of each cell; items of a cell without true clusters are false positives for their mates
    truth: Memberships
    prediction: Memberships
    n: Counts  #: number of items of each cell; shape (n_cells,)
    weight: Floats | None  #: their weight, if mates count by weight; shape (n_cells,)
    pool: Pool

    @cached_property
    def sizes(self) -> tuple[Totals, Totals]:
        """The items of each true and of each predicted cluster."""
        items = self._items
        sides = self.truth, self.prediction
        sizes = [Totals.empty(side.n_clusters, items.weighted) for side in sides]

        def add(side: Memberships, totals: Totals) -> None:
            kernels.overlap.add_clusters(side.offsets, side.codes, items, totals)

        self.pool.map(add, sides, sizes, stage="add up clusters")
        return sizes[0], sizes[1]

    @property
    def n_clusters(self) -> int:
        """The number of clusters of both sides."""
        return self.truth.n_clusters + self.prediction.n_clusters

    @property
    def _items(self) -> Items:
        return Items(self.n, np.empty(0), False) if self.weight is None else Items(self.n, self.weight, True)

    def _members(self) -> tuple[Counts, NDArray[np.integer]]:
        """Where the cells of each true cluster begin, and the rows of these cells."""
        truth, starts = self.truth, self.rows.starts
        n_ranges = min(MOST_RANGES, self.pool.threads if len(truth) >= SMALL else 1)
        cuts = [len(truth) * k // n_ranges for k in range(n_ranges + 1)]
        firsts, lasts = cuts[:-1], cuts[1:]
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
        """Call `run` for blocks of n clusters or cells, each with a workspace lent to it."""
        idle: list[T] = []

        def lent(start: int, stop: int) -> None:
            with lend(idle, workspace) as space:
                run(start, stop, space)

        self.pool.map(lent, *zip(*blocks(n, AT_ONCE), strict=True), stage=stage)

    @cached_property
    def common(self) -> Common:
        """The items that each true cluster of a cell shares with the cell's predicted clusters."""
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
        """The first predicted cluster with the same items as each cluster, -1 for none; true clusters come first."""
        return self.common.same

    @cached_property
    def exact(self) -> NDArray[np.bool_]:
        """A mask of the clusters paired one to one with clusters of the same items; true clusters come first."""
        exact = np.zeros(self.n_clusters, np.bool_)
        kernels.overlap.pair_copies(self.same, self.truth.n_clusters, exact)
        return exact

    @cached_property
    def overlaps(self) -> OverlapTable:
        """The items that each true cluster shares with each predicted cluster."""
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
        """The index of close mates, cells that share several clusters on a side."""
        return self._index[0]

    @property
    def visits(self) -> Visits:
        """The number of mates that `shares` will visit; computing it is linear in the memberships."""
        return self._index[1]

    @cached_property
    def _index(self) -> tuple[CloseMates, Visits]:
        """The index of close mates, by pairs of clusters if that saves time, and the number of mates to visit."""
        by_pair = self._indexed(NARROW)
        if by_pair[1].compared > 16 * self.rows.codes.size:  # otherwise a second index would not save time
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
        """Return workspace for the close mates of a cell, itself included, and for counts by cell and cluster."""
        met = np.zeros((self.n.size + self.n_clusters) * self.close.wide, f"i{2 * self.close.half // 8}")
        return np.empty((3, min(self.visits.most, self.n.size) + 1), row_type(self.rows)), met

    def _places(self, longest: int) -> tuple[Counts, Counts, Counts]:
        """Return workspace for the positions of shared clusters in a row, by side, and of each cluster."""
        at_true, at_pred = np.empty((2, longest + 1), np.int64)
        return at_true, at_pred, np.zeros(self.n_clusters, np.int64)

    def matches(
        self, n_scored: int, pairwise: bool, likeness: Floats, best_true: Floats, best_pred: Floats
    ) -> Floats:
        """Return the hits on each side, weighted by similarity of clusters; see `add_matches`. Shape (n_scored, 2)."""
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

        For each cell, true clusters come first, then predicted ones; see `charge_clusters`. The run time is that of
        `shares`.
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
        """The items of each cluster; true clusters come first."""
        return Totals(*(np.concatenate(pair) for pair in zip(*self.sizes, strict=True)))

    def shares(self, n_scored: int) -> Shares:
        """Return the hits and misses of the items of the first `n_scored` cells over their mates.

        Notes
        -----
        The run time is proportional to the sum over cells of the number of true times predicted clusters, plus the
        number of mates counted by `visits`. The index is dropped afterwards, because it takes more memory than
        the shares and can be rebuilt in a fraction of the run time.
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
