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
from fastbcubed.runtime.parts import offsets, part_bits, table_slots
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill
from fastbcubed.runtime.spool import Spool

Floats = NDArray[np.float64]
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
    narrow: int  #: cells of more clusters, of both sides together, are wide

    @property
    def is_wide(self) -> NDArray[np.bool_]:
        """Which cells are wide. Shape (n_cells,)."""
        return np.diff(self.true_bounds) + np.diff(self.pred_bounds) > self.narrow

    @property
    def n_subsets(self) -> NDArray[np.int64]:
        """Sets of clusters that each cell tells of. Shape (n_cells,)."""
        c, g = np.diff(self.true_bounds), np.diff(self.pred_bounds)
        return np.where(c + g > self.narrow, n_pairs(c, g), n_sets(np.minimum(c + g, self.narrow)))

    @classmethod
    def none(cls) -> NamedCells:
        """Return those of a shard without any."""
        bounds, names = np.zeros(1, np.int64), np.empty((0, 2), np.int64)
        return cls(bounds, names, bounds, names, np.empty(0, np.int64), np.empty(0), 0, 0)


class Found(NamedTuple):
    """What the cells of a shard have found out."""

    parts: Floats  #: as those of `Shares`; shape (n_scored, 4)
    mates: NDArray[np.int64]  #: as those of `Shares`; shape (n_scored, 2)
    #: items of the prediction alone that share a predicted cluster, and their weight, if these are added up apart
    n_alone: NDArray[np.int64]
    alone: Floats
    #: of clusters that no shard before has told of: scored items, by side; shape (2, n_memberships) or less filled,
    sizes: NDArray[np.int64]
    n_clusters: NDArray[np.int64]  #: how many they are; shape (2,)
    n_exact: NDArray[np.int64]  #: how many of these are the same as one of the other side; shape (2,)

    @classmethod
    def of(cls, cells: NamedCells) -> Found:
        """Return room for what the cells of a shard find out."""
        return cls.zeros(cells.n_scored, max(len(cells.true_names), len(cells.pred_names)))

    @classmethod
    def zeros(cls, n: int, n_memberships: int = 0) -> Found:
        """Return what so many cells have found out that have met none."""
        return cls(
            np.zeros((n, 4)), np.zeros((n, 2), np.int64), np.zeros(n, np.int64), np.zeros(n),
            np.zeros((2, n_memberships), np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64),
        )  # fmt: skip

    def add(self, other: Found) -> None:
        """Add what the same cells have found out elsewhere of their mates."""
        for own, more in ((self.mates, other.mates), (self.n_alone, other.n_alone)):
            np.add(own, more, out=own)
        for mass, rest in ((self.parts, other.parts), (self.alone, other.alone)):
            np.add(mass, rest, out=mass)

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
    scored: NDArray[np.int64]  #: scored items of each subset, -1 where a cell before has told of these
    every: NDArray[np.int64]  #: all items that count
    ones: NDArray[np.int64]  #: how many bits of a number are set
    kinds: int  #: of items, that are counted one by one

    @classmethod
    def of(cls, widest: int, n_subsets: int, n_sums: int, kinds: int) -> Space:
        """Return room for narrow cells with so many clusters at most, and for as many subsets."""
        shape = n_sums, widest + 1, widest + 1
        ones = np.zeros(1, np.int64)
        for _ in range(widest):
            ones = np.concatenate([ones, ones + 1])
        scored, every = np.zeros((2, n_subsets), np.int64)
        return cls(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape), scored, every, ones, kinds)


class Extent(NamedTuple):
    """How much there is to add up."""

    n_subsets: int  #: of all cells
    widest: int  #: clusters of a narrow cell at most
    most: int  #: subsets of a cell at most
    weighted: bool  #: whether mates count by weight
    alone: bool  #: whether there are cells of the prediction alone
    apart: bool  #: whether their items are added up apart
    wide: bool  #: whether there are wide cells

    @property
    def kinds(self) -> int:
        """Kinds of items that are counted one by one; see `kernels.subsets`."""
        return (3 if self.wide else 1) + self.alone


class SubsetSums:
    """Adds up the subsets of cells in shards by name, and sends each cell what its own come to.

    About `at_once` subsets are handled by a task; `memory` bytes of them may be kept, and half as many of the sums.
    """

    def __init__(self, extent: Extent, at_once: int, memory: int, spill: Spill) -> None:
        self._extent, self._at_once = extent, at_once
        self._bits = part_bits(extent.n_subsets, at_once)
        words = [("first", "i8"), ("second", "i8"), ("n", "i8")] + [("weight", "f8")] * extent.weighted
        told = extent.kinds + 2 * min(2, extent.kinds) * extent.weighted
        self._records = Spool(np.dtype(words), 1 << self._bits, spill, memory)
        self._told = np.dtype([(f"word {k}", "i8") for k in range(told)])
        self._spill, self._memory = spill, memory // 2
        needed = extent.n_subsets * (self._records.dtype.itemsize + self._told.itemsize)
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
        """Add up the subsets of each shard by name; what they come to is ready to go back."""
        self._back = Spool(self._told, len(self._bounds), self._spill, self._memory)
        self._ranks = {index: rank for rank, index in enumerate(self._records.indexes)}
        sizes = self._records.sizes()
        largest_first = np.argsort(-sizes, kind="stable")
        shards = largest_first[: np.count_nonzero(sizes)].tolist()
        pool.map(self._add_up, shards, stage="count shared clusters", rows=sizes[shards].tolist())
        self._records.clear()

    def _add_up(self, shard: int) -> None:
        """Add up the subsets of a shard, piece by piece: one subset of very many cells makes it large."""
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
            back, floats = _words(pages.empty(len(records), self._told), self._extent.weighted)
            kernels.subsets.send_back(
                records, places, table.n_each, table.mass, table.rest, told, back, floats
            )
            self._back.put(index, pages, bounds)

    def take(self, shard: int, cells: NamedCells) -> Found:
        """Return what the items of the cells of a shard share with their mates."""
        assert self._back is not None
        extent, found = self._extent, Found.of(cells)
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
        """Cut the cells of a shard into blocks of about as many subsets as are handled at once."""
        for cut in _pieces(cells.n_subsets, self._at_once):
            yield cut.start, cut.stop


class Table:
    """What the subsets of a shard add up to, by name; it grows as they come."""

    def __init__(self, weighted: bool, kinds: int) -> None:
        self.n = 0  #: subsets by now
        self.slots = np.empty(0, np.int32)
        self.names = np.empty((0, 2), np.int64)
        self.n_each = np.empty((0, kinds), np.int64)
        self.mass = self.rest = np.empty((0, min(2, kinds))) if weighted else None

    def add(self, records: NDArray[np.int64], masses: Floats | None) -> NDArray[np.int32]:
        """Add records up, and return the subset of each."""
        self._make_room(self.n + len(records))
        places = buffers.empty(len(records), np.int32)
        self.n = kernels.subsets.add_up(
            records, masses, self.names, self.n, self.slots, places, self.n_each, self.mass, self.rest
        )
        return places

    def find(self, records: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the subset of each record, all of which were added."""
        places = buffers.empty(len(records), np.int32)
        kernels.subsets.look_up(records, self.names, self.slots, places)
        return places

    def _make_room(self, n: int) -> None:
        """Make room for so many subsets."""
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
    """Cut batches of these sizes into runs of `most` records at most, or of one batch."""
    ends = np.cumsum(sizes)
    start = 0
    while start < sizes.size:
        done = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, done + most, side="right")))
        yield slice(start, stop)
        start = stop


def n_sets(n_clusters: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many sets there are of so many clusters, without the empty one."""
    return (1 << n_clusters) - 1


def n_pairs(c: NDArray[np.int64], g: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many clusters there are, and pairs of a true and a predicted one."""
    return c + g + c * g


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
    floats = records.view(np.float64).reshape(shape) if weighted else None
    return records.view(np.int64).reshape(shape), floats
