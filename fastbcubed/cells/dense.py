"""Dense tables of cells: few keys numbered by perfect hashing, and a slot for each pair of clusters.

    rows --PairTable.count--> tables --add up--> slots and margins --close_box--> cells

Nothing is partitioned or looked up: a slot's position gives the two clusters. Predicted clusters are processed in
ranges that depend on the table only, so the number of threads never changes a bit.
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

#: The first keys of a sample: if these are too many already, the others are not examined.
FIRST = 2 * MOST_VALUES
#: Keys seen once estimate the rows without a known key: at most one row in this many.
RARE = 256

KNOWN = np.dtype([("key", "i8"), ("number", "i8")])


class KnownKeys(NamedTuple):
    """The distinct keys of a side, for the kernels."""

    #: records of `KNOWN`; free slots hold a key that is never looked up there
    slots: np.ndarray
    pilots: NDArray[np.uint16]
    seeds: NDArray[np.uint64]  #: of the hash function
    keys: NDArray[np.int64]  #: by number

    @classmethod
    def of(cls, sample: NDArray[np.int64]) -> KnownKeys | None:
        """Return the keys of a side's sample; None if they are many, or too many rows certainly have others."""
        few = sample[:FIRST]
        if different(few, few)[0].size > MOST_VALUES:
            return None
        first, seen = different(sample, sample)
        if first.size > MOST_VALUES or np.count_nonzero(seen == 1) * RARE > sample.size:
            return None
        return cls.placed(sample[first])

    @classmethod
    def placed(cls, keys: NDArray[np.int64]) -> KnownKeys | None:
        """Return a perfect hash table of keys, numbered in order; None if no hash function is found."""
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
    """Return the first row of each distinct pair of keys in a sample, in order, and its count."""
    first, seen = np.empty(true.size, np.int64), np.empty(true.size, np.int64)
    slots = np.full(table_slots(true.size), -1, np.int32)
    n = kernels.preaggregate.count_pairs(true, pred, slots, first, seen)
    return first[:n], seen[:n]


#: The known keys of the truth and of the prediction: a slot for each two of them.
Grid = tuple[KnownKeys, KnownKeys]


#: Smaller inputs are partitioned directly; below the second limit all rows are examined, above it a sample.
FEWEST_ROWS = 1 << 14
FEWEST_TO_SAMPLE = 1 << 18
#: A box has a slot for each two keys, and this many rows for each slot, so that few rows are left over. Cells in memory
#: are taken directly from the box, so that a lower limit will do.
MOST_SLOTS = 1 << 20
ROWS_PER_SLOT = 4
ROWS_PER_CELL = 1
#: Clusters of a range that a sample may have missed at either end: one in this many of those in between.
BEYOND_SAMPLE = 512
#: Frequent pairs: minimal count in the sample; size of a larger sample, drawn where some are found, and rows for each
#: of its rows; maximal number of pairs; rows and slots for each pair.
OFTEN = 2
LARGER_SAMPLE = 1 << 16
ROWS_PER_SAMPLED = 256
MOST_PAIRS = 1 << 12
ROWS_PER_PAIR = 8
SLOTS_PER_PAIR = 4
#: The minimal share of the rows in frequent pairs.
LEAST_SHARE = 0.6
#: Where work goes shard by shard, pairs with a larger share of the rows get slots whatever the others are: all rows of
#: a pair are in one shard.
LARGE_SHARE = 1 / 32
#: Maximal number of tables, each for a share of the rows; rows for each of their slots; slots of all tables.
MOST_TABLES = 64
ROWS_PER_SLOT_OF_TABLE = 8
TABLE_SLOTS = 1 << 22
#: Unused slots between two tables, so that two threads never write to one cache line.
APART = 128
#: Approximate number of slots handled by one kernel call.
SLOTS_AT_ONCE = 1 << 16
#: Rows in one thread's buffer; the rows left by a block follow those of the last one.
ROOM_ROWS = 4 * ROWS_AT_ONCE

PAIR = np.dtype([("true", "i8"), ("pred", "i8")])
#: The record of a slot that has many rows, without weights and with them.
COUNTED = np.dtype([("n", "i8")])
WEIGHED = np.dtype([("n", "i8"), ("mass", "f8"), ("rest", "f8")])
Keys = NDArray[Any]  #: int64; int32 of rows that are counted in a box
Weights = NDArray[np.float64] | None


class Condensed(NamedTuple):
    """A block of preaggregated rows, each of which stands for several. Shapes: (n_condensed,) each."""

    true_keys: Keys
    pred_keys: Keys
    weight: Weights
    n: NDArray[np.int64]  #: the number of rows that each stands for

    def rows(self, start: int, stop: int) -> Condensed:
        """Return some of the rows."""
        return Condensed(*(None if each is None else each[start:stop] for each in self))  # type: ignore[arg-type]


class Room:
    """Buffer of one thread for rows without a slot, reused: one for each block would leave huge pages half full."""

    def __init__(self, n_rows: int, *, weighted: bool) -> None:
        self._columns = _room(2, n_rows, weighted=weighted)
        self._end = 0

    def fits(self, n_rows: int) -> bool:
        """Return whether `n_rows` more rows fit."""
        return self._end + n_rows <= self._columns[0].size

    @property
    def free(self) -> tuple[Keys, Keys, Weights]:
        """The remaining room."""
        true, pred, x = self._columns
        return true[self._end :], pred[self._end :], None if x is None else x[self._end :]

    def keep(self, n: NDArray[np.int64]) -> Condensed:
        """Keep the rows just written, with the number of rows that each stands for."""
        true, pred, x = (None if each is None else each[: n.size] for each in self.free)
        self._end += n.size
        return Condensed(true, pred, x, n)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class PairTable:
    """Table with a slot for each pair of keys: of two ranges, of few keys, or of `pairs` known to be frequent."""

    n_rows: int
    n_slots: int
    #: lowest key and number of keys of the truth and of the prediction
    box: tuple[np.uint64, np.uint64, np.uint64, np.uint64]
    grid: Grid | None  #: the known keys; None for a box of ranges
    pairs: np.ndarray | None  #: records of `PAIR`, shape (n_slots,); None for a box or a grid

    @classmethod
    def of(cls, true_keys: Keys, pred_keys: Keys) -> PairTable | None:
        """Return the table that suits the rows; None where few of them share a pair."""
        n_rows = true_keys.size
        if n_rows < FEWEST_TO_SAMPLE:  # to look for frequent pairs would cost as much as they save
            return None if n_rows < FEWEST_ROWS else cls._box(n_rows, true_keys, pred_keys, ROWS_PER_CELL)
        rows = sampled_rows(n_rows)
        true, pred = true_keys[rows], pred_keys[rows]
        found = cls._whole(n_rows, true, pred, ROWS_PER_CELL) or cls._frequent(n_rows, true, pred)
        larger = min(n_rows // ROWS_PER_SAMPLED, LARGER_SAMPLE)
        if found is None or found.pairs is None or larger < 2 * rows.size:
            return found
        rows = sampled_rows(n_rows, larger)  # which covers more pairs
        return cls._frequent(n_rows, true_keys[rows], pred_keys[rows])

    @classmethod
    def of_sample(cls, n_rows: int, true_keys: Keys, pred_keys: Keys) -> PairTable | None:
        """Return the table that suits a sample of `n_rows` rows; None where no pair has a large share of them."""
        if not true_keys.size == pred_keys.size > 0:  # rows without a cluster are left out of samples
            return None
        whole = cls._whole(n_rows, true_keys, pred_keys, ROWS_PER_SLOT)
        return whole or cls._frequent(n_rows, true_keys, pred_keys, large=True)

    @classmethod
    def _whole(cls, n_rows: int, true: Keys, pred: Keys, rows_per_slot: int) -> PairTable | None:
        """Return a table with a slot for each two keys of a sample, if there are enough rows for each slot."""
        box = cls._box(n_rows, true, pred, rows_per_slot)
        return box or cls._grid(n_rows, true, pred, rows_per_slot)

    @classmethod
    def _box(cls, n_rows: int, true: Keys, pred: Keys, rows_per_slot: int) -> PairTable | None:
        """Return a table with a slot for each two keys of the sample's ranges, if there are enough rows for each."""
        ends = [(int(keys.min()), int(keys.max())) for keys in (true, pred)]
        ranges = [(low, high - low + 1) for low, high in ends]
        found = None
        if true.size < n_rows:  # the sample may have missed some at the ends
            more = [n // BEYOND_SAMPLE for _, n in ranges]
            wider = [(low - own, n + 2 * own) for (low, n), own in zip(ranges, more, strict=True)]
            found = cls._of_ranges(n_rows, wider, rows_per_slot)
        return found or cls._of_ranges(n_rows, ranges, rows_per_slot)

    @classmethod
    def _grid(cls, n_rows: int, true: Keys, pred: Keys, rows_per_slot: int) -> PairTable | None:
        """Return a table with a slot for each two of few keys of any size."""
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
        """Return a table for ranges of keys, or of numbers of known keys, if there are enough rows for each slot."""
        n_slots = math.prod(n for _, n in ranges)
        if n_slots > MOST_SLOTS or n_slots * rows_per_slot > n_rows:
            return None
        return cls(n_rows, n_slots, _unsigned(*chain.from_iterable(ranges)), grid, None)

    @classmethod
    def _frequent(cls, n_rows: int, true: Keys, pred: Keys, *, large: bool = False) -> PairTable | None:
        """Return a table of frequent pairs if they cover most rows; otherwise for the `large` pairs among them."""
        true, pred = true.astype(np.int64, copy=False), pred.astype(np.int64, copy=False)
        first, seen = different(true, pred)
        often = np.flatnonzero(seen >= OFTEN)
        chosen = often[np.argsort(-seen[often], kind="stable")[: min(MOST_PAIRS, n_rows // ROWS_PER_PAIR)]]
        known = chosen[seen[chosen] > OFTEN]  # they would have been found without the row in question
        if seen[known].sum() < LEAST_SHARE * true.size:
            chosen = known[seen[known] > max(OFTEN, LARGE_SHARE * true.size)]
            if not large or not chosen.size:
                return None
        n_slots = SLOTS_PER_PAIR << int(chosen.size - 1).bit_length()
        pairs, rows = np.empty(n_slots, PAIR), first[chosen]
        kernels.preaggregate.enter_pairs(true[rows], pred[rows], pairs)
        return cls(n_rows, n_slots, _unsigned(0, 0, 0, 1), None, pairs)

    def takes(self, true_keys: Keys, pred_keys: Keys) -> bool:
        """Return whether keys can be counted unconverted: keys of 32 bits on both sides only in a box."""
        is_box = self.grid is None and self.pairs is None
        return true_keys.dtype == pred_keys.dtype and (is_box or true_keys.dtype == np.int64)

    def condense_block(
        self, true_keys: Keys, pred_keys: Keys, weight: Weights, places: NDArray[np.int64] | None = None
    ) -> Condensed:
        """Preaggregate the rows of one block on this thread; `places`, if given, receives the place of each row."""
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
        """Aggregate the rows in several tables, each for a share; note the place of each row in `places`, if given."""
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
        """The number of tables, each for a share of the rows: two or more if each then has many rows for a slot."""
        shares = self.n_rows // ROWS_AT_ONCE
        wanted = max(min(shares, 2), min(shares, self.n_rows // (ROWS_PER_SLOT_OF_TABLE * self.n_slots)))
        return max(1, min(wanted, MOST_TABLES, TABLE_SLOTS // self.n_slots))

    def _tables(self, weight: Weights) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """Return the arrays of the slots; see `Counted`."""
        shape, weighted = (self.n_tables, self.n_slots + 1 + APART), weight is not None
        x = buffers.empty(shape, np.float64) if weighted else None
        return buffers.empty(shape, np.uint8), x, buffers.empty(shape, WEIGHED if weighted else COUNTED)


@dataclass(frozen=True, eq=False)
class Counted:
    """Rows aggregated in tables."""

    pairs: PairTable
    #: the contents of the slots, followed by those of all rows without one: (few, x, many); see the kernels. Shapes:
    #: (n_tables, n_slots + 1 + APART)
    tables: tuple[np.ndarray, np.ndarray | None, np.ndarray]
    shares: Sequence[tuple[int, int]]  #: the rows of each table
    left: Sequence[Sequence[Condensed]]  #: rows without a slot, block by block of each share

    @property
    def is_box(self) -> bool:
        """Whether each row has a slot in a box, or in a grid, which is a box of numbers."""
        return self.pairs.pairs is None and not any(block.n.size for block in chain.from_iterable(self.left))

    def condensed(self, pool: Pool, places: NDArray[np.int64] | None = None) -> list[Condensed]:
        """Return the rows of each pair in the table as one, then all other rows unchanged, in blocks.

        `places`, if rows were noted there, receives the index of the preaggregated row for each row.
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
        """Convert the places of rows and pairs within blocks into places among all preaggregated rows."""
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
    """Return integer columns, and one of weights or None, in one piece of memory."""
    columns = list(buffers.empty((n_integers + weighted, n_rows), np.int64))
    return *columns[:n_integers], columns[-1].view(np.float64) if weighted else None


def _unsigned(*numbers: int) -> Any:
    return tuple(np.uint64(number % (1 << 64)) for number in numbers)


def close_box(counted: Counted, pool: Pool, *, outer: bool) -> tuple[Built, NDArray[np.bool_]]:
    """Return the cells of rows that have all been counted in a dense table, and their slots.

    If `outer`, margins are counts. Shape of the latter: (n_slots,).
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
    """Return the number of non-empty clusters before each cluster, and in the last place their total."""
    return np.append(0, np.cumsum(there))


def locate_in_box(
    box: PairTable, filled: NDArray[np.bool_], true_keys: Keys, pred_keys: Keys, pool: Pool
) -> NDArray[np.int64]:
    """Return the cell of each row, from the filled slots. Shape (n_rows,)."""
    numbers = np.cumsum(filled) - 1
    cell_of_row = buffers.empty(box.n_rows, np.int64)
    rows = true_keys, pred_keys

    def look_up(start: int, stop: int) -> None:
        kernels.dense.look_up_slots(rows, box.box, box.grid, numbers, start, stop, cell_of_row)

    pool.map(look_up, *zip(*blocks(box.n_rows), strict=True), stage="look up cells")
    return cell_of_row
