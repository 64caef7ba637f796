"""Wide cells, of so many clusters that sets of these are too many: compared with all cells that share one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.overlap.subsets import Found, NamedCells, Table
from fastbcubed.runtime.pool import Pool, lend

Read = Callable[[int], NamedCells]
Workspace = tuple[NDArray[np.int32], NDArray[np.int64]]
#: Bytes that a membership of a wide cell takes.
MEMBERSHIP_BYTES = 100


class Index(NamedTuple):
    """The wide cells of all shards by cluster."""

    names: NDArray[np.int64]  #: of their clusters; shape (n_clusters, 2) or more
    slots: NDArray[np.int32]  #: a hash table of these; see `kernels.subsets.find`
    bounds: NDArray[np.int64]  #: where the cells of each cluster begin; shape (n_clusters + 1,)
    cells: NDArray[np.int64]  #: these cells
    n: NDArray[np.int64]  #: items of each wide cell; shape (n_wide,)
    weight: NDArray[np.float64]  #: their weight, empty if mates count by number; shape (n_wide,)
    alone: NDArray[np.bool_]  #: whether they are of the prediction alone; shape (n_wide,)

    @classmethod
    def of(cls, shards: Sequence[NamedCells]) -> Index:
        """Index the wide cells of shards, which have no others."""
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
    """Compares the wide cells of all shards with all cells; `apart` adds up items of the prediction alone apart."""

    def __init__(self, read: Read, shards: Sequence[int], pool: Pool, *, apart: bool) -> None:
        self._read, self._shards, self._apart = read, shards, apart
        wide = pool.map(lambda shard: _wide_alone(read(shard)), shards, stage="list wide cells")
        self._index = Index.of(wide)
        counts = [own.n.size for own in wide]
        self._first = dict(zip(shards, np.cumsum([0, *counts]).tolist(), strict=False))
        self._idle: list[Workspace] = []

    def count_visits(self, pool: Pool) -> int:
        """Return how often a cluster of a cell is one of a wide cell: what comparing them costs."""
        count = kernels.wide_cells.count_visits
        return sum(
            pool.map(
                lambda shard: count(self._read(shard), self._index), self._shards, stage="count wide cells"
            )
        )

    def meet(self, pool: Pool) -> None:
        """Compare the wide cells with all others, and add up what they share."""

        def meet(shard: int) -> Found:
            found = Found.zeros(self._index.n.size)
            with lend(self._idle, self._workspace) as space:
                kernels.wide_cells.meet_wide(
                    self._read(shard), self._first[shard], self._index, self._apart, *space, found
                )
            return found

        self._sums = Found.zeros(self._index.n.size)
        for found in pool.stream(meet, [(shard,) for shard in self._shards], stage="compare wide cells"):
            self._sums.add(found)

    def share(self, shard: int, cells: NamedCells, found: Found) -> None:
        """Add to what the cells of a shard have found out what they share with wide cells, or are told as such."""
        with lend(self._idle, self._workspace) as space:
            kernels.wide_cells.share_wide(
                cells, self._first[shard], self._index, self._apart, *space, self._sums, found
            )

    def _workspace(self) -> Workspace:
        return np.zeros((self._index.n.size, 2), np.int32), np.empty(self._index.n.size, np.int64)


def _wide_alone(cells: NamedCells) -> NamedCells:
    """Return the cells of a shard that are wide."""
    wide = np.flatnonzero(cells.is_wide)
    sides = []
    for names, bounds in ((cells.true_names, cells.true_bounds), (cells.pred_names, cells.pred_bounds)):
        rows = Memberships(bounds, np.arange(len(names)), len(names)).take(wide)
        sides += [rows.offsets, names[rows.codes]]
    weight = cells.weight[wide] if cells.weight.size else cells.weight
    n_scored = int(np.count_nonzero(wide < cells.n_scored))
    return NamedCells(sides[0], sides[1], sides[2], sides[3], cells.n[wide], weight, n_scored, cells.narrow)
