"""Subsets of clusters, on the disk engine: what items share with their mates in all shards of items.

    cells, shard by shard of items --subsets of their clusters, by name--> shards --added up--> back to the cells

A mate of an item is in all clusters of some of the subsets that the item is in; see `kernels.subsets`. Subsets go by
two words, 128 bits, that are made of the keys of their clusters: among 10**10 of them, two would have the same words
once in 10**18 evaluations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.overlap.sharing import Shares
from fastbcubed.runtime import buffers
from fastbcubed.runtime.parts import offsets, part_bits
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill
from fastbcubed.runtime.spool import Spool

Floats = NDArray[np.float64]
#: Clusters of an item, of both sides together, that are counted at most: 2**16 subsets.
MOST_CLUSTERS = 16
#: What tells the clusters of the two sides apart: those with a label, and those of one item that is alone.
SALTS = {("true", False): 1, ("pred", False): 2, ("true", True): 3, ("pred", True): 4}


class NamedCells(NamedTuple):
    """The cells of a shard of items, their clusters by name; those of the prediction alone come last."""

    true_bounds: NDArray[np.int64]  #: where the true clusters of each cell begin; shape (n_cells + 1,)
    true_names: NDArray[np.int64]  #: the name of each; shape (n_true_memberships, 2)
    pred_bounds: NDArray[np.int64]
    pred_names: NDArray[np.int64]
    n: NDArray[np.int64]  #: items of each cell; shape (n_cells,)
    weight: Floats  #: their weight, empty if mates count by number; shape (n_cells,)
    n_scored: int

    @property
    def n_clusters(self) -> NDArray[np.int64]:
        """The clusters of each cell, of both sides. Shape (n_cells,)."""
        return np.diff(self.true_bounds) + np.diff(self.pred_bounds)

    @classmethod
    def none(cls) -> NamedCells:
        """Return those of a shard without any."""
        bounds, names = np.zeros(1, np.int64), np.empty((0, 2), np.int64)
        return cls(bounds, names, bounds, names, np.empty(0, np.int64), np.empty(0), 0)


class Found(NamedTuple):
    """What the cells of a shard have found out."""

    parts: Floats  #: as those of `Shares`; shape (n_scored, 4)
    mates: NDArray[np.int64]  #: as those of `Shares`; shape (n_scored, 2)
    #: items of the prediction alone that share a predicted cluster, and their weight, if sums apart were kept
    n_alone: NDArray[np.int64]
    alone: Floats
    #: of clusters that no shard before has told of: scored items, by side; shape (2, n_memberships) or less filled,
    sizes: NDArray[np.int64]
    n_clusters: NDArray[np.int64]  #: how many they are; shape (2,)
    n_exact: NDArray[np.int64]  #: how many of these are the same as one of the other side; shape (2,)

    @classmethod
    def of(cls, cells: NamedCells) -> Found:
        """Return room for what the cells of a shard find out."""
        n = cells.n_scored
        most = max(len(cells.true_names), len(cells.pred_names))
        return cls(
            np.empty((n, 4)), np.empty((n, 2), np.int64), np.zeros(n, np.int64), np.zeros(n),
            np.empty((2, most), np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64),
        )  # fmt: skip

    @property
    def shares(self) -> Shares:
        """What the items of each cell share with their mates in other cells."""
        return Shares(self.parts, self.mates)


class Space(NamedTuple):
    """The workspace of a cell: sums by number of true and of predicted clusters, and items of each subset."""

    #: as the fields of `Totals`, for all items or, with two of each, apart for those of the prediction alone; shape
    #: (1 or 2, c + 1, g + 1)
    n: NDArray[np.int64]
    mass: Floats
    rest: Floats
    scored: NDArray[np.int64]  #: scored items, below 0 where no cell has asked before; shape (n_subsets,)
    every: NDArray[np.int64]  #: all items that count
    ones: NDArray[np.int64]  #: how many bits of a number are set

    @classmethod
    def of(cls, widest: int, n_sums: int) -> Space:
        """Return room for cells with so many clusters at most."""
        shape = n_sums, widest + 1, widest + 1
        ones = np.zeros(1, np.int64)
        for _ in range(widest):
            ones = np.concatenate([ones, ones + 1])
        scored, every = np.zeros((2, 1 << widest), np.int64)
        return cls(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape), scored, every, ones)


class SubsetSums:
    """Adds up the subsets of cells in shards by name, and sends each cell what its own come to.

    `n_subsets` are those of all cells, of `widest` clusters at most. Mates count by weight if `weighted`; `alone` tells
    whether there are cells of the prediction alone, and `apart` whether their items are added up apart from others.
    About `at_once` subsets are handled by a task; `memory` bytes of them may be kept, and half as many of the sums.
    """

    def __init__(
        self,
        n_subsets: int,
        widest: int,
        at_once: int,
        memory: int,
        spill: Spill,
        *,
        weighted: bool,
        alone: bool,
        apart: bool,
    ) -> None:
        self._at_once, self._bits = at_once, part_bits(n_subsets, at_once)
        self._widest, self._weighted, self._columns, self._apart = widest, weighted, 1 + alone, apart
        words = [("first", "i8"), ("second", "i8"), ("n", "i8")] + [("weight", "f8")] * weighted
        told = [
            (f"{name}{k}", "i8")
            for name in ("n", "mass", "rest")[: 1 + 2 * weighted]
            for k in range(1 + alone)
        ]
        self._records = Spool(np.dtype(words), 1 << self._bits, spill, memory)
        self._told, self._spill, self._memory = np.dtype(told), spill, memory // 2
        self._back: Spool | None = None
        self._bounds: dict[tuple[int, int], NDArray[np.int64]] = {}

    def put(self, shard: int, cells: NamedCells) -> None:
        """Take the cells of a shard of items."""
        words = np.empty((1 << self._widest, 2), np.int64)
        for k, (start, stop) in enumerate(self._cuts(cells)):
            counts = np.zeros((1, self._records.n_shards), np.int64)
            kernels.subsets.count_subsets(cells, start, stop, self._bits, words, counts[0])
            bounds, next_row = offsets(counts)
            with self._spill.pages() as pages:
                records, masses = _words(pages.empty(int(bounds[-1]), self._records.dtype), self._weighted)
                kernels.subsets.scatter_subsets(
                    cells, start, stop, self._bits, words, next_row[0], records, masses
                )
                self._records.put((shard, k), pages, bounds)
            self._bounds[shard, k] = bounds

    def add_up(self, pool: Pool) -> None:
        """Add up the subsets of each shard by name; what they come to is ready to go back."""
        self._back = Spool(self._told, len(self._bounds), self._spill, self._memory)
        self._ranks = {index: rank for rank, index in enumerate(self._records.indexes)}
        sizes = self._records.sizes()
        shards = np.argsort(-sizes, kind="stable")[
            : np.count_nonzero(sizes)
        ].tolist()  # the largest take longest
        pool.map(self._add_up, shards, stage="count shared clusters", rows=sizes[shards].tolist())
        self._records.clear()

    def _add_up(self, shard: int) -> None:
        """Add up the subsets of a shard, piece by piece: one subset of very many cells makes it large."""
        segments = self._records.segments(shard)
        pieces = list(_pieces(segments, 2 * self._at_once))
        table = _Table(self._weighted, self._columns)
        for piece in pieces:
            records, masses = _words(self._records.read(shard, piece), self._weighted)
            places = table.add(records, masses)
        told = np.zeros(table.n, np.bool_)
        for k, piece in enumerate(pieces):
            if len(pieces) > 1:
                records, _ = _words(self._records.read(shard, piece), self._weighted)
                places = table.find(records)
            sent = np.zeros(segments.size, np.int64)
            sent[piece] = segments[piece]
            self._send_back((shard, k), records, places, table, told, np.append(0, np.cumsum(sent)))

    def _send_back(
        self,
        index: tuple[int, int],
        records: NDArray[np.int64],
        places: NDArray[np.int32],
        table: _Table,
        told: NDArray[np.bool_],
        bounds: NDArray[np.int64],
    ) -> None:
        assert self._back is not None
        with self._spill.pages() as pages:
            back, floats = _words(pages.empty(len(records), self._told), self._weighted)
            kernels.subsets.send_back(
                records, places, table.n_each, table.mass, table.rest, told, back, floats
            )
            self._back.put(index, pages, bounds)

    def take(self, shard: int, cells: NamedCells) -> Found:
        """Return what the items of the cells of a shard share with their mates; once, as the next call counts on."""
        assert self._back is not None
        words, found = np.empty((1 << self._widest, 2), np.int64), Found.of(cells)
        space = Space.of(self._widest, 1 + self._apart)
        for k, (start, stop) in enumerate(self._cuts(cells)):
            back, floats = _words(self._back.read(self._ranks[shard, k]), self._weighted)
            next_row = self._bounds[shard, k][:-1].copy()
            kernels.subsets.share_subsets(
                cells, start, stop, self._bits, words, next_row, back, floats, space, found
            )
        return found

    def _cuts(self, cells: NamedCells) -> Iterator[tuple[int, int]]:
        """Cut the cells of a shard into blocks of about as many subsets as are handled at once."""
        for cut in _pieces((1 << cells.n_clusters) - 1, self._at_once):
            yield cut.start, cut.stop


class _Table:
    """What the subsets of a shard add up to, by name; it grows as they come."""

    def __init__(self, weighted: bool, columns: int) -> None:
        self.n = 0  #: subsets by now
        self._weighted, self._columns = weighted, columns
        self._slots = np.empty(0, np.int32)
        self.names = np.empty((0, 2), np.int64)
        self.n_each = np.empty((0, columns), np.int64)
        self.mass = self.rest = np.empty((0, columns)) if weighted else None

    def add(self, records: NDArray[np.int64], masses: Floats | None) -> NDArray[np.int32]:
        """Add records up, and return the subset of each."""
        self._make_room(self.n + len(records))
        places = buffers.empty(len(records), np.int32)
        self.n = kernels.subsets.add_up(
            records, masses, self.names, self.n, self._slots, places, self.n_each, self.mass, self.rest
        )
        return places

    def find(self, records: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the subset of each record, all of which were added."""
        places = buffers.empty(len(records), np.int32)
        kernels.subsets.look_up(records, self.names, self._slots, places)
        return places

    def _make_room(self, n: int) -> None:
        """Make room for so many subsets."""
        if n <= len(self.names):
            return
        room = max(n, 2 * self.n)
        self.names, self.n_each = self._grown(self.names, room), self._grown(self.n_each, room)
        if self.mass is not None and self.rest is not None:
            self.mass, self.rest = self._grown(self.mass, room), self._grown(self.rest, room)
        self._slots = buffers.empty(kernels.cells.table_size(room), np.int32)
        self._slots[:] = -1
        kernels.subsets.enter(self.names, self.n, self._slots)

    def _grown(self, held: NDArray[Any], room: int) -> NDArray[Any]:
        grown = buffers.empty((room, held.shape[1]), held.dtype)
        grown[: self.n] = held[: self.n]
        return grown


def _pieces(sizes: NDArray[np.int64], most: int) -> Iterator[slice]:
    """Cut batches of these sizes into runs of `most` records at most, or of one batch."""
    ends = np.cumsum(sizes)
    start = 0
    while start < sizes.size:
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield slice(start, stop)
        start = stop


def n_subsets(n_clusters: NDArray[np.integer]) -> int:
    """Return how many subsets there are of the clusters of all cells, given how many these are. Shape (n_cells,)."""
    return sum(int(n) * ((1 << k) - 1) for k, n in enumerate(np.bincount(n_clusters)))


def name_clusters(keys: NDArray[np.int64], side: str, alone: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return two words for each cluster, by its key; `alone` tells which have that of the item that is alone in it.

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
    return records.view(np.int64).reshape(shape), records.view(np.float64).reshape(
        shape
    ) if weighted else None
