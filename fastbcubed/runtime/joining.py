"""The join of two sides by item, in memory: partitioned so that each lookup stays in the cache."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.parts import PART_ROWS, PARTS_AT_ONCE, offsets, part_bits, row_blocks
from fastbcubed.runtime.pool import Pool, blocks

NO_ROWS = np.empty(0, np.int64)


class ItemParts(NamedTuple):
    """The items of a side, part by part of their mixed key."""

    keys: NDArray[np.int64]  #: mixed keys; shape (n_rows,)
    #: the row of each; None where rows are numbered as they stand here; shape (n_rows,)
    rows: NDArray[np.int64] | None
    bounds: NDArray[np.int64]  #: where each part begins; shape (n_parts + 1,)


class Matches(NamedTuple):
    """For each row the row of the other side with the same item, or -1; and how many repeat an item."""

    pred_of_true: NDArray[np.int64]
    true_of_pred: NDArray[np.int64]
    true_repeats: int
    pred_repeats: int


def match(true_keys: NDArray[np.int64], pred_keys: NDArray[np.int64], pool: Pool) -> Matches:
    """Match the items of two sides by their keys. Shapes: (n_true_rows,), (n_pred_rows,)."""
    bits = part_bits(true_keys.size + pred_keys.size, PART_ROWS)
    return match_parts(scatter_keys(true_keys, bits, pool), scatter_keys(pred_keys, bits, pool), pool)


def match_parts(true: ItemParts, pred: ItemParts, pool: Pool) -> Matches:
    """Match the items of two sides that are cut into the same parts."""
    pred_of_true: NDArray[np.int64] = buffers.empty(true.keys.size, np.int64)
    true_of_pred: NDArray[np.int64] = buffers.empty(pred.keys.size, np.int64)
    usual = kernels.cells.table_size(min(true.keys.size + pred.keys.size, 2 * PART_ROWS))

    def match_task(first: int, last: int) -> tuple[int, int]:
        with pool.workspace("match", lambda: np.empty(usual, np.int32)) as slots:
            return kernels.join.match_items(
                true.keys, true.rows, true.bounds, pred.keys, pred.rows, pred.bounds, first, last, slots,
                pred_of_true, true_of_pred,
            )  # fmt: skip

    tasks = zip(*blocks(true.bounds.size - 1, PARTS_AT_ONCE), strict=True)
    again = pool.map(match_task, *tasks, stage="match items")
    true_repeats, pred_repeats = (sum(counts) for counts in zip(*again, strict=True))
    return Matches(pred_of_true, true_of_pred, true_repeats, pred_repeats)


def scatter_keys(keys: NDArray[np.int64], bits: int, pool: Pool) -> ItemParts:
    """Bring the items of each part together, in row order."""
    starts, stops = zip(*row_blocks(keys.size, 1 << 16), strict=True)
    counts = np.zeros((len(starts), 1 << bits), np.int64)
    none = np.zeros((1 << bits) + 1, np.int64)

    def count(start: int, stop: int, out: NDArray[np.int64]) -> None:
        kernels.partition.count_parts(keys, None, start, stop, False, 0, bits, NO_ROWS, none, out)

    pool.map(count, starts, stops, counts, stage="count items by part")
    bounds, next_row = offsets(counts)
    mixed: NDArray[np.int64] = buffers.empty(keys.size, np.int64)
    rows: NDArray[np.int64] = buffers.empty(keys.size, np.int64)

    def scatter(start: int, stop: int, to: NDArray[np.int64]) -> None:
        kernels.partition.scatter_items(keys, start, stop, bits, to, mixed, rows)

    pool.map(scatter, starts, stops, next_row, stage="partition items")
    return ItemParts(mixed, rows, bounds)
