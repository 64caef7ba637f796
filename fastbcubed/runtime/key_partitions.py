"""Partitioning of keys into parts that fit a core's cache, and the join of two sides by item."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.threads import Pool, blocks

#: Average number of rows of a part: its cells and their hash table then stay in a core's cache.
PART_ROWS = 30_000
#: Maximum number of bits of the part number: writing more parts would take more time than their size saves. Inputs of
#: more than 60 million rows therefore have larger parts.
MAX_BITS = 11
#: Maximum number of further bits, which distinguish shards on disk.
MAX_SHARD_BITS = 10
#: Minimum number of parts handled by one kernel call.
PARTS_AT_ONCE = 4
#: Minimum number of rows or cells scattered by one kernel call; a call has an overhead of about 50 microseconds.
ROWS_AT_ONCE = 1 << 18
#: Size of the sample by which properties of all rows are judged.
SAMPLE = 1 << 14


def part_bits(n_rows: int, part_rows: int = PART_ROWS) -> int:
    """Return the number of key bits by which `n_rows` rows are divided into parts."""
    return min(max(0, (n_rows - 1) // part_rows).bit_length(), MAX_BITS)


def part_blocks(n_parts: int) -> list[tuple[int, int]]:
    """Divide parts into at most 64 blocks, each for one kernel call: enough to report progress and balance threads."""
    return blocks(n_parts, max(PARTS_AT_ONCE, -(-n_parts // 64)))


def row_blocks(n: int, least: int = ROWS_AT_ONCE) -> list[tuple[int, int]]:
    """Divide rows into at most 64 blocks, each for one kernel call."""
    return blocks(n, max(least, -(-n // 64)))


def table_slots(n: int) -> int:
    """Return the same number as `kernels.cells.table_size`, without loading the kernel."""
    return max(1024, 1 << (2 * n - 1).bit_length())


def slots_for(rows: int, dtype: DTypeLike = np.int32) -> NDArray[Any]:
    """Return a hash table for parts of up to `rows` rows; kernels allocate larger ones themselves."""
    return np.empty(table_slots(min(rows, 2 * PART_ROWS)), dtype)


def offsets(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each part begins, and where each block writes in each part, given counts (n_blocks, n_parts)."""
    bounds = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    return bounds, bounds[:-1] + np.cumsum(counts, axis=0) - counts


@lru_cache(maxsize=2)
def sampled_rows(n: int, most: int = SAMPLE) -> NDArray[np.int64]:
    """Return the row numbers of a sample of n rows, spread over all; equal for equal n, and read-only."""
    mixed = np.arange(min(most, n), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    rows = ((mixed >> np.uint64(16)) % np.uint64(n)).view(np.int64)
    rows.flags.writeable = False
    return rows


NO_ROWS = np.empty(0, np.int64)
#: Values by row, and space for these values sorted by part; None if there are no values.
ValuesTo = tuple[NDArray[Any] | None, NDArray[Any] | None]


class ItemParts(NamedTuple):
    """The items of a side, sorted by part of their mixed key."""

    keys: NDArray[np.int64]  #: mixed keys; shape (n_rows,)
    #: the row of each item; None if rows are numbered in this order; shape (n_rows,)
    rows: NDArray[np.integer] | None
    bounds: NDArray[np.int64]  #: where each part begins; shape (n_parts + 1,)


class Matches(NamedTuple):
    """The matching rows of two sides, and the numbers of rows that repeat an item."""

    pred_of_true: NDArray[np.int64]  #: for each true row, the predicted row with the same item, or -1
    lacking: NDArray[np.bool_]  #: mask of the predicted rows that have no match or repeat an item
    true_repeats: int
    pred_repeats: int
    #: for each true row, the value of the matching predicted row, arbitrary if there is none; None without values
    value_of_true: NDArray[np.int64] | None = None

    @property
    def true_of_pred(self) -> NDArray[np.int64]:
        """For each predicted row, the true row with the same item, or -1."""
        found = np.full(self.lacking.size, -1)
        rows = np.flatnonzero(self.pred_of_true >= 0)
        found[self.pred_of_true[rows]] = rows
        return found


def match(true_keys: NDArray[np.int64], pred_keys: NDArray[np.int64], pool: Pool) -> Matches:
    """Match the items of two sides by their keys. Shapes: (n_true_rows,), (n_pred_rows,)."""
    bits = part_bits(true_keys.size + pred_keys.size, PART_ROWS)
    return match_parts(scatter_keys(true_keys, bits, pool), scatter_keys(pred_keys, bits, pool), pool)


class OneToMany:
    """Matches the items of one side with those of several others, partitioning the former only once.

    Matches, and the values of the other side's rows, are first computed in part order and then copied to row order,
    so that random access stays within a part.
    """

    def __init__(self) -> None:
        self._bits = 0
        self._keys = NO_ROWS
        self._parts: ItemParts | None = None
        self._places: NDArray[np.integer] = NO_ROWS

    def match(
        self,
        true_keys: NDArray[np.int64],
        pred_keys: NDArray[np.int64],
        pool: Pool,
        values: NDArray[np.int64],
    ) -> Matches:
        """Match the items of two sides like `match`; the partitioned true side of the last call is reused if equal."""
        bits = part_bits(true_keys.size + pred_keys.size, PART_ROWS)
        parts = self._parts
        if parts is None or abs(bits - self._bits) > 1 or not same_values(self._keys, true_keys):
            self._bits, self._keys = bits, true_keys
            self._parts, self._places = parts, _ = place_keys(true_keys, bits, pool)
        pred_values: NDArray[np.int64] = buffers.empty(pred_keys.size, np.int64)
        pred = scatter_keys(pred_keys, self._bits, pool, (values, pred_values))
        return _in_row_order(match_parts(parts, pred, pool, pred_values), self._places, pool)


def _in_row_order(found: Matches, places: NDArray[np.integer], pool: Pool) -> Matches:
    """Return matches of true rows in row order, given those in part order."""
    assert found.value_of_true is not None
    pred_of_true: NDArray[np.int64] = buffers.empty(places.size, np.int64)
    values: NDArray[np.int64] = buffers.empty(places.size, np.int64)

    def read(start: int, stop: int) -> None:
        kernels.join.read_places(
            places, start, stop, found.pred_of_true, found.value_of_true, pred_of_true, values
        )

    pool.map(read, *zip(*row_blocks(places.size), strict=True), stage="match items")
    return found._replace(pred_of_true=pred_of_true, value_of_true=values)


def same_values(a: NDArray[np.int64], b: NDArray[np.int64]) -> bool:
    """Return whether two arrays are equal, comparing block by block up to the first difference.

    Examples
    --------
    >>> same_values(np.arange(3), np.arange(4))
    False
    """
    if a.size != b.size or a.__array_interface__ == b.__array_interface__:
        return a.size == b.size
    return all(np.array_equal(a[i:j], b[i:j]) for i, j in blocks(a.size))


def take(values: NDArray[np.int64], rows: NDArray[np.int64] | None, pool: Pool) -> NDArray[np.int64]:
    """Return values[rows], -1 for a negative row; None means all rows. Shapes: (n,), (n_rows,) -> (n_rows,)."""
    if rows is None:
        return values
    found: NDArray[np.int64] = buffers.empty(rows.size, np.int64)

    def take_block(start: int, stop: int) -> None:
        kernels.join.take_rows(values, rows, start, stop, found)

    pool.map(take_block, *zip(*row_blocks(rows.size), strict=True), stage="take rows")
    return found


def match_parts(
    true: ItemParts, pred: ItemParts, pool: Pool, values: NDArray[np.int64] | None = None
) -> Matches:
    """Match the items of two sides that are partitioned in the same way; `values` of the second side are optional."""
    pred_of_true: NDArray[np.int64] = buffers.empty(true.keys.size, np.int64)
    pred_of_true[:] = -1
    value_of_true = None if values is None else buffers.empty(true.keys.size, np.int64)
    lacking = np.zeros(pred.keys.size, np.bool_)
    most = [int(np.diff(side.bounds).max()) for side in (true, pred)]

    def match_task(first: int, last: int) -> tuple[int, int]:
        with pool.workspace(
            "match",
            lambda: (slots_for(most[0]), np.empty(most[0], np.bool_), np.empty(most[1], np.int64)),
            lambda space: space[1].size >= most[0] and space[2].size >= most[1],
        ) as space:
            return kernels.join.match_items(
                tuple(true), tuple(pred), first, last, space, pred_of_true, lacking, values, value_of_true
            )

    tasks = zip(*part_blocks(true.bounds.size - 1), strict=True)
    again = pool.map(match_task, *tasks, stage="match items")
    true_repeats, pred_repeats = (sum(counts) for counts in zip(*again, strict=True))
    return Matches(pred_of_true, lacking, true_repeats, pred_repeats, value_of_true)


def scatter_keys(
    keys: NDArray[np.int64],
    bits: int,
    pool: Pool,
    values: ValuesTo = (None, None),
    row_type: type[np.integer] = np.int64,
) -> ItemParts:
    """Sort mixed keys stably by part, and copy their values in this order to the second array of `values`."""
    return _scatter(keys, bits, pool, buffers.empty(keys.size, row_type), None, values, "items")


def place_keys(
    keys: NDArray[np.int64], bits: int, pool: Pool, values: ValuesTo = (None, None), of: str = "items"
) -> tuple[ItemParts, NDArray[np.integer]]:
    """Sort mixed keys stably by part, and return the place of each row; `of` is part of the stage names."""
    places = buffers.empty(keys.size, np.int32 if keys.size < 2**31 else np.int64)
    return _scatter(keys, bits, pool, None, places, values, of), places


def _scatter(
    keys: NDArray[np.int64],
    bits: int,
    pool: Pool,
    rows: NDArray[np.integer] | None,
    places: NDArray[np.integer] | None,
    values: ValuesTo,
    of: str,
) -> ItemParts:
    """Sort mixed keys stably by part; see `kernels.partition.scatter_items`."""
    starts, stops = zip(*row_blocks(keys.size, 1 << 16), strict=True)
    counts = np.zeros((len(starts), 1 << bits), np.int64)

    def count(start: int, stop: int, out: NDArray[np.int64]) -> None:
        kernels.partition.count_parts(keys, None, start, stop, False, 0, bits, NO_ROWS, 0, out)

    pool.map(count, starts, stops, counts, stage=f"count {of} by part")
    bounds, next_row = offsets(counts)
    mixed: NDArray[np.int64] = buffers.empty(keys.size, np.int64)

    def scatter(start: int, stop: int, to: NDArray[np.int64]) -> None:
        kernels.partition.scatter_items(keys, start, stop, bits, to, mixed, rows, places, *values)

    pool.map(scatter, starts, stops, next_row, stage=f"partition {of}")
    return ItemParts(mixed, rows, bounds)
