"""Sharing: what the items of each cell share with their mates, where clusters overlap.

Mates that share one cluster of each side at most are counted through what true and predicted clusters have in
common. Mates that share several are visited; how many that are is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.clusterings.memberships import Memberships, ranges
from fastbcubed.overlap.close_mates import CellRows, CloseMates, close_mates, row_type
from fastbcubed.runtime import buffers
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.parts import offsets
from fastbcubed.runtime.pool import Pool, blocks, lend

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Room for the close mates of a cell, and counts of cells.
Found = tuple[NDArray[np.integer], NDArray[np.uint8]]

#: Clusters, and cells, handled by one call; fixed, so that the split never depends on the threads.
CLUSTERS_AT_ONCE = 1 << 14
CELLS_AT_ONCE = 1 << 14


class Items(NamedTuple):
    """Items of each cell, their weight (empty without weights), and whether they have one."""

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
        """Return room for so many."""
        floats = n if weighted else 0
        return cls(
            *(buffers.empty(*each) for each in ((n, np.int64), (floats, np.float64), (floats, np.float64)))
        )

    @classmethod
    def zeros(cls, n: int, weighted: bool) -> Totals:
        """Return sums of nothing."""
        floats = n if weighted else 0
        return cls(np.zeros(n, np.int64), np.zeros(floats), np.zeros(floats))

    @property
    def weight(self) -> Floats:
        """The weight, or the number of items."""
        return self.mass + self.rest if self.mass.size else self.n.astype(np.float64)


class OverlapTable(NamedTuple):
    """What each true cluster shares with each predicted one that it meets."""

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
    """What each true cluster of a cell shares with all its predicted ones, an item as often as it is in these."""

    bounds: Counts  #: where the true clusters of each cell begin; shape (n_cells + 1,)
    sizes: Totals  #: common items and their weight, without those of the cell itself; shape (n_memberships,)
    exact: NDArray[np.bool_]  #: whether each cluster is the same as one of the other side, true ones first


class Shares(NamedTuple):
    """What an item of each cell shares with its mates in other cells; see `score_cells`."""

    #: hits and misses on the predicted side, hits and misses on the true side; shape (n_cells, 4)
    parts: Floats
    #: items that share a predicted cluster, and a true cluster, with it; itself too; shape (n_cells, 2)
    mates: Counts


class Visits(NamedTuple):
    """How many mates have to be visited: in all, for one cell at most, and by true and by predicted cluster."""

    total: int
    most: int
    true: Counts
    pred: Counts


@dataclass(eq=False)
class Sides:
    """Cells and their clusters on both sides."""

    #: the clusters of each cell. The items of one without true clusters are false positives for those they
    #: are clustered with
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
        """What each true cluster of a cell shares with all its predicted ones."""
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
        """Whether each cluster is the same as one of the other side, true ones first."""
        return self.common.exact

    @cached_property
    def overlaps(self) -> OverlapTable:
        """What each true cluster shares with each predicted one."""
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
        idle.clear()  # they hold clusters that were seen
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
        """The cells with which each shares two clusters of a side or more."""
        return close_mates(self.rows, self.n_clusters, self.pool)

    @cached_property
    def visits(self) -> Visits:
        """How many mates `shares` will visit, at a cost linear in the memberships."""
        n_true, visits = self.truth.n_clusters, np.zeros(self.n_clusters, np.int64)
        total, most = kernels.close_mates.count_visits(self.rows, self.close, visits)
        return Visits(total, most, visits[:n_true], visits[n_true:])

    def _found(self) -> Found:
        """Return room for the close mates of a cell, and for itself, and counts of the cells that it meets."""
        return np.empty((self.visits.most + 1, 3), row_type(self.rows)), np.zeros(
            self.n.size * self.close.wide, np.uint8
        )

    def matches(
        self, n_scored: int, pairwise: bool, likeness: Floats, best_true: Floats, best_pred: Floats
    ) -> Floats:
        """Add up hits on each side, times the likeness of clusters; see `add_matches`. Shape (n_scored, 2)."""
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
                kernels.matches.add_matches(
                    start, stop, pairwise, items, rows, close, overlaps, likeness, best, space, hits
                )

        cuts = zip(*blocks(n_scored, CELLS_AT_ONCE), strict=True)
        self.pool.map(add, *cuts, stage="match clusters")
        return hits

    def charges(self, n_scored: int) -> Floats:
        """Return what the items of the first `n_scored` cells lose through each of their clusters.

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
                kernels.charges.charge_clusters(
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
        """Add up what the items of the first `n_scored` cells share with their mates.

        Notes
        -----
        Cost is the sum over cells of true times predicted clusters, and the mates that `visits` counts. What that is
        told from is let go: it takes more room than the shares, and is made again in a fraction of the time.
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
