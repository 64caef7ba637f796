"""Dense tables of cells: few keys numbered by perfect hashing, and a slot for each pair of clusters.

    rows --PairTable.count--> tables --add up--> slots and margins --close_box--> cells

Nothing is partitioned or looked up: the position of a slot gives its two clusters. Predicted clusters are processed in
ranges that depend on the table only, so the number of threads never changes a bit of a result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells import partitioned
from fastbcubed.cells.partitioned import (
    NARROW_RECORDS,
    WIDE,
    WIDE_RECORDS,
    Built,
)
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_codes import ATTEMPTS, MOST_VALUES, placed
from fastbcubed.runtime.key_partitions import ROWS_AT_ONCE, sampled_rows, table_slots
from fastbcubed.runtime.threads import Pool, blocks

#: Number of keys at the front of a sample that are examined first; if they have too many values, the rest is not.
FIRST = 2 * MOST_VALUES
#: At most one sampled key in this many may be unique; unique keys estimate the rows whose key the sample lacks.
RARE = 256

KNOWN = np.dtype([("key", "i8"), ("number", "i8")])


class KnownKeys(NamedTuple):
    """The distinct keys of a side, in a perfect hash table that kernels read."""

    #: records of `KNOWN`; a free slot holds a key whose own slot is another
    slots: np.ndarray
    pilots: NDArray[np.uint16]
    seeds: NDArray[np.uint64]  #: seeds of the hash function
    keys: NDArray[np.int64]  #: the keys, in order of their numbers

    @classmethod
    def of(cls, sample: NDArray[np.int64]) -> KnownKeys | None:
        """Return the distinct keys of a sample; None if it has too many, or probably lacks many."""
        few = sample[:FIRST]
        if different(few, few)[0].size > MOST_VALUES:
            return None
        first, seen = different(sample, sample)
        if first.size > MOST_VALUES or np.count_nonzero(seen == 1) * RARE > sample.size:
            return None
        return cls.placed(sample[first])

    @classmethod
    def placed(cls, keys: NDArray[np.int64]) -> KnownKeys | None:
        """Return a perfect hash table of keys, numbered in the given order; None if no hash function is found."""
        for seed in range(ATTEMPTS):
            seeds = kernels.hashing.seed_words(seed)[:2]
            places = placed(kernels.preaggregate.hash_keys(keys, seeds))
            if places is not None:
                numbers = np.maximum(places.values, 0)
                slots = np.empty(numbers.size, KNOWN)
                slots["key"], slots["number"] = keys[numbers], numbers
                return cls(slots, places.pilots, seeds, keys)
        return None


def different(
    true: NDArray[np.int64], pred: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row and the count of each distinct pair of keys in a sample, in order of first appearance."""
    first, seen = np.empty(true.size, np.int64), np.empty(true.size, np.int64)
    slots = np.full(table_slots(true.size), -1, np.int32)
    n = kernels.preaggregate.count_pairs(true, pred, slots, first, seen)
    return first[:n], seen[:n]


#: The known keys of the truth and of the prediction; each pair of them has a slot.
Grid = tuple[KnownKeys, KnownKeys]


#: Inputs with fewer rows than the first limit are partitioned directly; above the second limit, rows are sampled.
FEWEST_ROWS = 1 << 14
FEWEST_TO_SAMPLE = 1 << 18
#: Maximum number of slots of a box, and minimum number of rows per slot, so that few pairs have a single row. Cells in
#: memory are read directly from the box, for which fewer rows per slot suffice.
MOST_SLOTS = 1 << 20
ROWS_PER_SLOT = 4
ROWS_PER_CELL = 1
#: A sampled range of keys is extended at each end by one key for this many keys of the range.
BEYOND_SAMPLE = 512
#: Frequent pairs: minimum count in a sample; size of the larger sample that is drawn if there are any, and minimum
#: number of rows per sampled row; maximum number of pairs; minimum number of rows per pair; number of slots per pair.
OFTEN = 2
LARGER_SAMPLE = 1 << 16
ROWS_PER_SAMPLED = 256
MOST_PAIRS = 1 << 12
ROWS_PER_PAIR = 8
SLOTS_PER_PAIR = 4
#: Minimum share of the rows that frequent pairs must have.
LEAST_SHARE = 0.6
#: With shards, a pair with a larger share of the rows than this always gets a slot, as its rows are in one shard.
LARGE_SHARE = 1 / 32
#: Maximum number of tables, each of which counts a share of the rows; minimum number of rows per slot of a table;
#: maximum number of slots of all tables.
MOST_TABLES = 64
ROWS_PER_SLOT_OF_TABLE = 8
TABLE_SLOTS = 1 << 22
#: Number of unused slots between two tables, so that two threads never write to one cache line.
APART = 128
#: Approximate number of slots handled by one kernel call.
SLOTS_AT_ONCE = 1 << 16
#: Capacity, in rows, of one thread's buffer for the rows without a slot of consecutive blocks.
ROOM_ROWS = 4 * ROWS_AT_ONCE

PAIR = np.dtype([("true", "i8"), ("pred", "i8")])
#: Records of slots that have many rows, without and with weights.
COUNTED = np.dtype([("n", "i8")])
WEIGHED = np.dtype([("n", "i8"), ("mass", "f8"), ("rest", "f8")])
Keys = NDArray[Any]  #: int64, or int32 for rows that are counted in a box
Weights = NDArray[np.float64] | None


class Condensed(NamedTuple):
    """A block of preaggregated rows, each of which stands for one or more rows. Shapes: (n_condensed,) each."""

    true_keys: Keys
    pred_keys: Keys
    weight: Weights
    n: NDArray[np.int64]  #: the number of rows that each row stands for

    def rows(self, start: int, stop: int) -> Condensed:
        """Return the rows start..stop."""
        return Condensed(*(None if each is None else each[start:stop] for each in self))  # type: ignore[arg-type]


class Room:
    """A thread's buffer for rows without a slot, shared by blocks, since one per block would waste huge pages."""

    def __init__(self, n_rows: int, *, weighted: bool) -> None:
        self._columns = _room(2, n_rows, weighted=weighted)
        self._end = 0

    def fits(self, n_rows: int) -> bool:
        """Return whether `n_rows` more rows fit."""
        return self._end + n_rows <= self._columns[0].size

    @property
    def free(self) -> tuple[Keys, Keys, Weights]:
        """The unused part of the buffer: true keys, predicted keys, weights or None."""
        true, pred, x = self._columns
        return true[self._end :], pred[self._end :], None if x is None else x[self._end :]

    def keep(self, n: NDArray[np.int64]) -> Condensed:
        """Mark the rows just written as used, and return them; `n` is the number of rows that each stands for."""
        true, pred, x = (None if each is None else each[: n.size] for each in self.free)
        self._end += n.size
        return Condensed(true, pred, x, n)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class PairTable:
    """A table with slots for pairs of keys: all pairs of two ranges, or of few keys, or given frequent `pairs`."""

    n_rows: int
    n_slots: int
    #: lowest key and number of keys of the truth and of the prediction
    box: tuple[np.uint64, np.uint64, np.uint64, np.uint64]
    grid: Grid | None  #: the known keys; None for a box of ranges
    pairs: np.ndarray | None  #: records of `PAIR`, shape (n_slots,); None for a box or a grid

    @classmethod
    def of(cls, true_keys: Keys, pred_keys: Keys) -> PairTable | None:
        """Return the table that suits the rows; None if few rows have the same pair of keys."""
        n_rows = true_keys.size
        if n_rows < FEWEST_TO_SAMPLE:  # searching for frequent pairs would cost as much time as they save
            some = true_keys[::64], pred_keys[::64]  # of which the ranges may be too wide already
            if n_rows < FEWEST_ROWS or cls._box(n_rows, *some, ROWS_PER_CELL) is None:
                return None
            return cls._box(n_rows, true_keys, pred_keys, ROWS_PER_CELL)
        rows = sampled_rows(n_rows)
        true, pred = true_keys[rows], pred_keys[rows]
        found = cls._whole(n_rows, true, pred, ROWS_PER_CELL) or cls._frequent(n_rows, true, pred)
        larger = min(n_rows // ROWS_PER_SAMPLED, LARGER_SAMPLE)
        if found is None or found.pairs is None or larger < 2 * rows.size:
            return found
        rows = sampled_rows(n_rows, larger)  # a larger sample finds more of the frequent pairs
        return cls._frequent(n_rows, true_keys[rows], pred_keys[rows])

    @classmethod
    def of_sample(cls, n_rows: int, true_keys: Keys, pred_keys: Keys) -> PairTable | None:
        """Return the table that suits `n_rows` rows, given a sample; None if no pair has a large share of them."""
        if not true_keys.size == pred_keys.size > 0:  # samples leave out rows without a cluster on a side
            return None
        whole = cls._whole(n_rows, true_keys, pred_keys, ROWS_PER_SLOT)
        return whole or cls._frequent(n_rows, true_keys, pred_keys, large=True)

    @classmethod
    def _whole(cls, n_rows: int, true: Keys, pred: Keys, rows_per_slot: int) -> PairTable | None:
        """Return a box or a grid for the keys of a sample, if there are enough rows per slot."""
        box = cls._box(n_rows, true, pred, rows_per_slot)
        return box or cls._grid(n_rows, true, pred, rows_per_slot)

    @classmethod
    def _box(cls, n_rows: int, true: Keys, pred: Keys, rows_per_slot: int) -> PairTable | None:
        """Return a table for all pairs of keys in the sample's two ranges, if there are enough rows per slot."""
        ends = [(int(keys.min()), int(keys.max())) for keys in (true, pred)]
        ranges = [(low, high - low + 1) for low, high in ends]
        found = None
        if true.size < n_rows:  # the sample may lack keys at the ends of the ranges
            more = [n // BEYOND_SAMPLE for _, n in ranges]
            wider = [(low - own, n + 2 * own) for (low, n), own in zip(ranges, more, strict=True)]
            found = cls._of_ranges(n_rows, wider, rows_per_slot)
        return found or cls._of_ranges(n_rows, ranges, rows_per_slot)

    @classmethod
    def _grid(cls, n_rows: int, true: Keys, pred: Keys, rows_per_slot: int) -> PairTable | None:
        """Return a table for all pairs of the sample's keys, of any size, if they are few."""
        true_known = KnownKeys.of(true.astype(np.int64, copy=False))
        pred_known = None if true_known is None else KnownKeys.of(pred.astype(np.int64, copy=False))
        if true_known is None or pred_known is None:
            return None
        grid = true_known, pred_known
        return cls._of_ranges(n_rows, [(0, each.keys.size) for each in grid], rows_per_slot, grid)

    @classmethod
    def _of_ranges(
        cls, n_rows: int, ranges: Sequence[tuple[int, int]], rows_per_slot: int, grid: Grid | None = None
    ) -> PairTable | None:
        """Return a table for two ranges of keys, or of numbers of known keys, if there are enough rows per slot."""
        n_slots = math.prod(n for _, n in ranges)
        if n_slots > MOST_SLOTS or n_slots * rows_per_slot > n_rows:
            return None
        return cls(n_rows, n_slots, _unsigned(*chain.from_iterable(ranges)), grid, None)

    @classmethod
    def _frequent(cls, n_rows: int, true: Keys, pred: Keys, *, large: bool = False) -> PairTable | None:
        """Return a table of frequent pairs if they have most rows; otherwise, if `large`, of very frequent ones."""
        true, pred = true.astype(np.int64, copy=False), pred.astype(np.int64, copy=False)
        first, seen = different(true, pred)
        often = np.flatnonzero(seen >= OFTEN)
        chosen = often[np.argsort(-seen[often], kind="stable")[: min(MOST_PAIRS, n_rows // ROWS_PER_PAIR)]]
        known = chosen[seen[chosen] > OFTEN]  # those that are frequent without any one of their rows
        if seen[known].sum() < LEAST_SHARE * true.size:
            chosen = known[seen[known] > max(OFTEN, LARGE_SHARE * true.size)]
            if not large or not chosen.size:
                return None
        n_slots = SLOTS_PER_PAIR << int(chosen.size - 1).bit_length()
        pairs, rows = np.empty(n_slots, PAIR), first[chosen]
        kernels.preaggregate.enter_pairs(true[rows], pred[rows], pairs)
        return cls(n_rows, n_slots, _unsigned(0, 0, 0, 1), None, pairs)

    def takes(self, true_keys: Keys, pred_keys: Keys) -> bool:
        """Return whether keys can be counted without conversion: int32 keys only in a box, and of equal type."""
        is_box = self.grid is None and self.pairs is None
        return true_keys.dtype == pred_keys.dtype and (is_box or true_keys.dtype == np.int64)

    def condense_block(
        self, true_keys: Keys, pred_keys: Keys, weight: Weights, places: NDArray[np.int64] | None = None
    ) -> Condensed:
        """Preaggregate one block of rows on this thread; `places`, if given, receives the condensed row of each row."""
        alone, pool = replace(self, n_rows=true_keys.size), Pool(1)
        found = alone.count(true_keys, pred_keys, weight, pool, places).condensed(pool, places)
        fields: Any = zip(*found, strict=True)
        joined: Any = (None if blocks[0] is None else np.concatenate(blocks) for blocks in fields)
        return Condensed(*joined)

    def count(
        self,
        true_keys: Keys,
        pred_keys: Keys,
        weight: Weights,
        pool: Pool,
        places: NDArray[np.int64] | None = None,
    ) -> Counted:
        """Count the rows in several tables, one per share of rows; `places`, if given, receives each row's slot."""
        tables = self._tables(weight)
        shares = list(pairwise(np.linspace(0, self.n_rows, self.n_tables + 1).astype(np.int64).tolist()))

        ones = buffers.empty(min(self.n_rows, ROWS_AT_ONCE), np.int64)
        ones[:] = 1

        def count(t: int, start: int, stop: int) -> list[Condensed]:
            table = tuple(None if field is None else field[t, : self.n_slots + 1] for field in tables)
            for field in table[:2]:
                if field is not None:
                    field[:] = 0
            return [
                count_block(table, a, min(a + ROWS_AT_ONCE, stop)) for a in range(start, stop, ROWS_AT_ONCE)
            ]

        def count_block(table: tuple[Any, ...], start: int, stop: int) -> Condensed:
            with pool.workspace(
                ("condense", weight is None),
                lambda: Room(min(self.n_rows, ROOM_ROWS), weighted=weight is not None),
                lambda room: room.fits(stop - start),
            ) as room:
                n = kernels.preaggregate.condense_rows(
                    (true_keys, pred_keys), weight, start, stop,
                    self.box, self.grid, self.pairs, table, room.free,
                    partitioned.NO_KEYS if places is None else places,
                )  # fmt: skip
                return room.keep(ones[:n])

        left = pool.map(
            count, range(self.n_tables), *zip(*shares, strict=True), stage="count pairs of clusters"
        )
        return Counted(self, tables, shares, left)

    @property
    def n_tables(self) -> int:
        """The number of tables, one per share of the rows; several only if each has many rows per slot."""
        shares = self.n_rows // ROWS_AT_ONCE
        wanted = max(min(shares, 2), min(shares, self.n_rows // (ROWS_PER_SLOT_OF_TABLE * self.n_slots)))
        return max(1, min(wanted, MOST_TABLES, TABLE_SLOTS // self.n_slots))

    def _tables(self, weight: Weights) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return uninitialized arrays of the slots of all tables; see `Counted`."""
        shape, weighted = (self.n_tables, self.n_slots + 1 + APART), weight is not None
        x = buffers.empty(shape, np.float64) if weighted else None
        return buffers.empty(shape, np.uint8), x, buffers.empty(shape, WEIGHED if weighted else COUNTED)


@dataclass(frozen=True, eq=False)
class Counted:
    """Rows counted in tables."""

    pairs: PairTable
    #: (few, x, many) of each slot, as in `kernels.preaggregate`; the slot after the last counts rows without a slot.
    #: Shapes: (n_tables, n_slots + 1 + APART)
    tables: tuple[np.ndarray, np.ndarray | None, np.ndarray]
    shares: Sequence[tuple[int, int]]  #: the rows of each table
    left: Sequence[Sequence[Condensed]]  #: rows without a slot, by share and block

    @property
    def is_box(self) -> bool:
        """Whether every row has a slot in a box or in a grid, i.e. a box of the numbers of keys."""
        return self.pairs.pairs is None and not any(block.n.size for block in chain.from_iterable(self.left))

    def condensed(self, pool: Pool, places: NDArray[np.int64] | None = None) -> list[Condensed]:
        """Return blocks of rows: first one row for each counted pair, then all rows without a slot.

        `places`, if passed to `count`, is converted to the index of each row among the returned rows.
        """
        pairs, weight = self.pairs, self.tables[1]

        def write(first: int, last: int) -> Condensed:
            true, pred, n, x = _room(3, last - first, weighted=weight is not None)
            out = Condensed(true, pred, x, n)
            end = kernels.preaggregate.write_pairs(
                pairs.box, pairs.grid, pairs.pairs, weight, self.tables, first, last, out
            )
            return out.rows(0, end)

        slots = blocks(pairs.n_slots, SLOTS_AT_ONCE)
        written = pool.map(write, *zip(*slots, strict=True), stage="add up pairs of clusters")
        if places is not None:
            self._settle(places, slots, written, pool)
        return [*written, *chain.from_iterable(self.left)]

    def _settle(
        self,
        places: NDArray[np.int64],
        slots: Sequence[tuple[int, int]],
        written: Sequence[Condensed],
        pool: Pool,
    ) -> None:
        """Convert slots and places within blocks into places among all preaggregated rows."""
        end, many = 0, self.tables[2][0]
        for (first, last), block in zip(slots, written, strict=True):
            many["n"][first:last] += end
            end += block.n.size
        starts, stops, shifts = [], [], []
        for (first, last), left in zip(self.shares, self.left, strict=True):
            for start, block in zip(range(first, last, ROWS_AT_ONCE), left, strict=True):
                starts.append(start)
                stops.append(min(start + ROWS_AT_ONCE, last))
                shifts.append(end)
                end += block.n.size

        def settle(start: int, stop: int, shift: int) -> None:
            kernels.preaggregate.settle_places(places, start, stop, many, shift)

        pool.map(settle, starts, stops, shifts, stage="locate pairs")


def _room(n_integers: int, n_rows: int, *, weighted: bool) -> Any:
    """Return integer columns, and a column of weights or None, allocated in one piece of memory."""
    columns = list(buffers.empty((n_integers + weighted, n_rows), np.int64))
    return *columns[:n_integers], columns[-1].view(np.float64) if weighted else None


def _unsigned(*numbers: int) -> Any:
    return tuple(np.uint64(number % (1 << 64)) for number in numbers)


def close_box(counted: Counted, pool: Pool, *, outer: bool) -> tuple[Built, NDArray[np.bool_]]:
    """Return the cells of rows that have all been counted in a dense table, and a mask of the slots that are cells.

    If `outer`, margins are counts. Shape of the mask: (n_slots,).
    """
    box = counted.pairs
    _, n_true, _, n_pred = map(int, box.box)
    ranges = blocks(n_pred, max(1, SLOTS_AT_ONCE // n_true))
    firsts, lasts = (list(ends) for ends in zip(*ranges, strict=True))
    n, n_met = buffers.empty(box.n_slots, np.int64), np.empty(n_pred, np.int64)
    weight = None if counted.tables[1] is None else counted.tables[1][0]
    of_true, of_pred = np.zeros((len(ranges), 2, n_true)), np.empty((2, n_pred))

    def add(first: int, last: int, of_range: NDArray[np.float64]) -> None:
        kernels.dense.add_tables(counted.tables, weight, outer, first, last, n, of_range, of_pred, n_met)

    pool.map(add, firsts, lasts, of_true, stage="add up pairs of clusters")
    kernels.dense.add_ranges(of_true)
    bounds = np.append(0, np.cumsum(n_met))[[*firsts, n_pred]]
    true_codes, pred_codes = _codes(of_true[0, 0] > 0), _codes(n_met > 0)
    records = WIDE_RECORDS if box.n_rows >= WIDE else NARROW_RECORDS
    cells = buffers.empty(int(bounds[-1]), records["final"])
    pred_in_part = buffers.empty(cells.size, cells.dtype["true"])

    def write(first: int, last: int, to: int) -> None:
        kernels.dense.write_cells(
            n, weight, outer, first, last, to, (true_codes, pred_codes), of_true[0], of_pred, cells,
            pred_in_part,
        )  # fmt: skip

    pool.map(write, firsts, lasts, bounds[:-1].tolist(), stage="close cells")
    built = Built(cells, pred_in_part, bounds, pred_codes[[*firsts, n_pred]], int(true_codes[-1]), False)
    return built, n > 0


def _codes(there: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the new code of each non-empty cluster; the last entry is their number. Shape: (n_clusters + 1,)."""
    return np.append(0, np.cumsum(there))


def locate_in_box(
    box: PairTable, filled: NDArray[np.bool_], true_keys: Keys, pred_keys: Keys, pool: Pool
) -> NDArray[np.int64]:
    """Return the cell of each row, given the mask of the slots that are cells. Shape (n_rows,)."""
    numbers = np.cumsum(filled) - 1
    cell_of_row = buffers.empty(box.n_rows, np.int64)
    rows = true_keys, pred_keys

    def look_up(start: int, stop: int) -> None:
        kernels.dense.look_up_slots(rows, box.box, box.grid, numbers, start, stop, cell_of_row)

    pool.map(look_up, *zip(*blocks(box.n_rows), strict=True), stage="look up cells")
    return cell_of_row
