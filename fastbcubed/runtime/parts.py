"""How rows are cut: parts that fit a core's cache, the blocks that are scattered into them, and a sample."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fastbcubed.runtime.pool import blocks

#: Rows of one part on average: its cells and their hash table then stay in a core's cache.
PART_ROWS = 30_000
#: More parts than that take longer to write than their size saves; parts of more than 60 million rows are larger.
MAX_BITS = 11
#: Shards on disk are told apart by bits after these, so many at most.
MAX_SHARD_BITS = 10
#: Parts handled by one kernel call, at least.
PARTS_AT_ONCE = 4
#: Rows or cells scattered by one kernel call, at least: a call costs some 50 microseconds beside its work.
ROWS_AT_ONCE = 1 << 18
#: Rows that all others are judged by.
SAMPLE = 1 << 14


def part_bits(n_rows: int, part_rows: int = PART_ROWS) -> int:
    """Return how many bits of a key tell the parts of so many rows apart."""
    return min(max(0, (n_rows - 1) // part_rows).bit_length(), MAX_BITS)


def part_blocks(n_parts: int) -> list[tuple[int, int]]:
    """Cut parts into 64 blocks at most, which a kernel handles one by one: enough for progress and an even load."""
    return blocks(n_parts, max(PARTS_AT_ONCE, -(-n_parts // 64)))


def row_blocks(n: int, least: int = ROWS_AT_ONCE) -> list[tuple[int, int]]:
    """Cut rows into 64 blocks at most, which a kernel scatters one by one."""
    return blocks(n, max(least, -(-n // 64)))


def table_slots(n: int) -> int:
    """Return what `kernels.cells.table_size` does, which need not be loaded and called for that."""
    return max(1024, 1 << (2 * n - 1).bit_length())


def slots_for(rows: int, dtype: DTypeLike = np.int32) -> NDArray[Any]:
    """Return a hash table for parts of at most so many rows; kernels make their own for one of unusual size."""
    return np.empty(table_slots(min(rows, 2 * PART_ROWS)), dtype)


def offsets(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Turn counts (blocks, parts) into where parts begin, and where each block writes in each part."""
    bounds = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    return bounds, bounds[:-1] + np.cumsum(counts, axis=0) - counts


def sampled_rows(n: int, most: int = SAMPLE) -> NDArray[np.uint64]:
    """Return the numbers of rows to judge n rows by, spread over all of them; the same for the same n."""
    rows = np.arange(min(most, n), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (rows >> np.uint64(16)) % np.uint64(n)
