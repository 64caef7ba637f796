"""Sharing: what the items of each cell share with their mates, where clusters overlap.

Mates that share one cluster of each side at most are counted through the overlaps of true and
predicted clusters. Mates that share several are visited; how many that are is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.runtime import buffers
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.pool import Pool, blocks, lend

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Clusters, and cells, handled by one call; fixed, so that the split never depends on the threads.
CLUSTERS_AT_ONCE = 1 << 14
CELLS_AT_ONCE = 1 << 14


class Items(NamedTuple):
    """Items of each cell, their weight (empty without weights), and whether they have one."""

    n: Counts
    weight: Floats
    weighted: bool


class CellRows(NamedTuple):
    """A row for each cell: its number, how many clusters it has, the true ones, the predicted ones from `n_true` on.

    `starts` (n_cells,) is where each row begins.
    """

    starts: Counts
    codes: NDArray[np.integer]
    n_true: int


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


class Shares(NamedTuple):
    """What an item of each cell shares with its mates in other cells; see `score_cells`."""

    #: hits and misses on the predicted side, hits and misses on the true side; shape (n_cells, 4)
    parts: Floats
    #: items that share a predicted cluster, and a true cluster, with it; itself too; shape (n_cells, 2)
    mates: Counts


class Visits(NamedTuple):
    """How many mates have to be visited: in all, and by true and by predicted cluster."""

    total: int
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
    def by_cluster(self) -> tuple[Memberships, Memberships]:
        """The cells of each true and of each predicted cluster."""
        return self.truth.by_cluster(), self.prediction.by_cluster()

    @cached_property
    def sizes(self) -> tuple[Totals, Totals]:
        """Items of each true and of each predicted cluster."""
        return self._add(self.by_cluster[0]), self._add(self.by_cluster[1])

    @property
    def _items(self) -> Items:
        return Items(self.n, np.empty(0), False) if self.weight is None else Items(self.n, self.weight, True)

    def _add(self, cells: Memberships) -> Totals:
        items = self._items
        sizes = Totals.empty(len(cells), items.weighted)

        def add(first: int, last: int) -> None:
            kernels.overlap.add_clusters(cells.offsets, cells.codes, items, first, last, sizes)

        cuts = zip(*blocks(len(cells), CLUSTERS_AT_ONCE), strict=True)
        self.pool.map(add, *cuts, stage="add up clusters")
        return sizes

    @cached_property
    def overlaps(self) -> OverlapTable:
        """What each true cluster shares with each predicted one."""
        sides, items = (self.by_cluster[0], self.truth, self.prediction), self._items
        cells, truth, prediction = ((side.offsets, side.codes) for side in sides)
        starts, stops = zip(*blocks(len(sides[0]), CLUSTERS_AT_ONCE), strict=True)
        bounds = np.zeros(len(sides[0]) + 1, np.int64)
        workspace = lambda: np.full((2, self.prediction.n_clusters), -1)  # noqa: E731
        idle: list[Counts] = []

        def count(first: int, last: int) -> None:
            with lend(idle, workspace) as (seen, _):
                kernels.overlap.count_overlaps(cells, prediction, first, last, seen, bounds[1:])

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
                kernels.overlap.add_overlaps(
                    cells, truth, prediction, items, first, last, (space[0], space[1]), table
                )

        self.pool.map(add, starts, stops, stage="add up overlaps")
        return table

    @cached_property
    def _rows(self) -> CellRows:
        """The clusters of each cell."""
        truth, prediction, n_cells = self.truth, self.prediction, self.n.size
        largest = max(truth.n_clusters + prediction.n_clusters, n_cells)
        size = truth.codes.size + prediction.codes.size + 2 * n_cells
        rows = buffers.empty(size, np.int32 if largest < 2**31 else np.int64)
        starts = truth.offsets[:-1] + prediction.offsets[:-1] + 2 * np.arange(n_cells)
        kernels.overlap.join_rows(
            truth.offsets, truth.codes, prediction.offsets, prediction.codes, truth.n_clusters, starts, rows
        )
        return CellRows(starts, rows, truth.n_clusters)

    @cached_property
    def _several(self) -> Memberships:
        """By cluster, true ones first, the rows of the cells that are in others of its side, too."""
        starts, rows, n_true = self._rows
        bounds = np.zeros(n_true + self.prediction.n_clusters + 1, np.int64)
        kernels.overlap.count_several(starts, rows, n_true, bounds[1:])
        np.cumsum(bounds, out=bounds)
        several = buffers.empty(int(bounds[-1]), np.int32 if rows.size < 2**31 else np.int64)
        kernels.overlap.fill_several(starts, rows, n_true, bounds[:-1].copy(), several)
        return Memberships(bounds, several, rows.size)

    def visits(self) -> Visits:
        """Count the mates that `shares` will visit, at a cost linear in the memberships."""
        n_true, several = self.truth.n_clusters, self._several
        visits = np.zeros(len(several), np.int64)
        total = kernels.overlap.count_visits(self._rows, several.offsets, visits)
        return Visits(total, visits[:n_true], visits[n_true:])

    def matches(
        self, n_scored: int, pairwise: bool, likeness: Floats, best_true: Floats, best_pred: Floats
    ) -> Floats:
        """Add up hits on each side, times the likeness of clusters; see `add_matches`. Shape (n_scored, 2)."""
        hits, best = np.empty((n_scored, 2)), np.concatenate([best_true, best_pred])
        items, rows, overlaps = self._items, self._rows, self.overlaps
        several = self._several.offsets, self._several.codes
        widest = int((self.truth.counts * self.prediction.counts).max(initial=1))
        longest = int(max(self.truth.counts.max(initial=1), self.prediction.counts.max(initial=1)))

        def workspace() -> tuple[Totals, Counts, Counts]:
            at_true, at_pred = np.empty((2, longest), np.int64)
            return Totals.empty(widest, items.weighted), at_true, at_pred

        idle: list[tuple[Totals, Counts, Counts]] = []

        def add(start: int, stop: int) -> None:
            with lend(idle, workspace) as space:
                kernels.matches.add_matches(
                    start, stop, pairwise, items, rows, several, overlaps, likeness, best, space, hits
                )

        cuts = zip(*blocks(n_scored, CELLS_AT_ONCE), strict=True)
        self.pool.map(add, *cuts, stage="match clusters")
        return hits

    def charges(self, n_scored: int) -> Floats:
        """Return what the items of the first `n_scored` cells lose through each of their clusters.

        By cell the true clusters, then the predicted ones; see `charge_clusters`. Cost is that of `shares`.
        """
        items, rows, overlaps = self._items, self._rows, self.overlaps
        lost = np.empty(int(self.truth.offsets[n_scored] + self.prediction.offsets[n_scored]))
        several = self._several.offsets, self._several.codes
        longest = int((self.truth.counts + self.prediction.counts).max(initial=1))
        clusters, idle = self._clusters, list[tuple[Totals, Floats, Counts, Counts]]()

        def workspace() -> tuple[Totals, Floats, Counts, Counts]:
            at_true, at_pred = np.empty((2, longest), np.int64)
            return Totals.empty(longest, items.weighted), np.empty(longest), at_true, at_pred

        def charge(start: int, stop: int) -> None:
            with lend(idle, workspace) as space:
                kernels.charges.charge_clusters(
                    start, stop, items, rows, clusters, several, overlaps, space, lost
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
        Cost is the sum over cells of true times predicted clusters, and the mates that `visits` counts.
        """
        parts, mates = np.empty((n_scored, 4)), np.empty((n_scored, 2), np.int64)
        items, rows, overlaps = self._items, self._rows, self.overlaps
        several = self._several.offsets, self._several.codes
        clusters = self._clusters

        def score(start: int, stop: int) -> None:
            kernels.mates.score_cells(start, stop, items, rows, clusters, several, overlaps, parts, mates)

        cuts = zip(*blocks(n_scored, CELLS_AT_ONCE), strict=True)
        self.pool.map(score, *cuts, stage="compare cells")
        return Shares(parts, mates)
