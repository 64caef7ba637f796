"""What a clustering holds, as one number: equal for equal rows of item and label, in whatever order and container."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.stretches import Block, Pair, Stretch
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.sources.fingerprints import write_both

#: Rows that are hashed at once: their words stay in the cache.
ROWS_AT_ONCE = 1 << 16
#: The hash function; another one would change all fingerprints.
SEED = 0

Sums = NDArray[np.uint64]


class Content(NamedTuple):
    """The rows of a side, and the sum over them of a 128-bit hash of (item, label)."""

    rows: int
    fingerprint: str


class BlocksSeen:
    """The content of both sides, added up while blocks are read for something else; a block counts once."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], Sums] = {}

    def add(self, k: int, side: Clustering, first_row: int, pool: Pool) -> None:
        """Take the rows of side k in a block that begins at a row of the whole."""
        self._sums[k, first_row] = _sums_of(side, first_row, pool)

    def contents(self) -> list[Content]:
        """Return the content of the truth and of the prediction, when all blocks of both have been taken."""
        return [
            _content(np.concatenate([own for (k, _), own in self._sums.items() if k == side]))
            for side in (0, 1)
        ]


def contents(pair: Pair, pool: Pool) -> list[Content]:
    """Return the content of the truth and of the prediction; files are read again."""
    found = []
    for stretches in pair.stretches:
        if len(stretches) == 1:  # whole: its rows are shared among the threads
            sums = [[_sums(block, pool) for block in stretches[0].blocks()]]
        else:
            sums = pool.map(_of_stretch, stretches, stage="hash the rows")
        by_side = zip(*(block for own in sums for block in own), strict=True)
        found += [_content(np.concatenate(side)) for side in by_side]
    return found


def _of_stretch(stretch: Stretch) -> list[list[Sums]]:
    """Return the sums of each block of a stretch, side by side."""
    with Pool(1) as alone:
        return [_sums(block, alone) for block in stretch.blocks()]


def _sums(block: Block, pool: Pool) -> list[Sums]:
    """Return rows and sums of the hashes of each side of a block. Shape (n_pieces, 3) each."""
    return [_sums_of(side, block.first_row, pool) for side in block.sides]


def _sums_of(side: Clustering, first_row: int, pool: Pool) -> Sums:
    def add_up(start: int, stop: int) -> Sums:
        with Pool(1) as alone:
            first, second = row_hashes(side.slice(start, stop), first_row + start, alone)
        return np.array([stop - start, first.sum(), second.sum()], np.uint64)

    ranges = blocks(len(side), ROWS_AT_ONCE)
    if not ranges:
        return np.zeros((1, 3), np.uint64)
    return np.array(pool.map(add_up, *zip(*ranges, strict=True), stage="hash the rows"), np.uint64)


def row_hashes(side: Clustering, first_row: int, pool: Pool) -> Sums:
    """Return two words for each row, of its item and label; an item without id is its row number. Shape (2, n_rows)."""
    ids: Sequence[pa.ChunkedArray]
    if side.items is None:
        ids = [pa.chunked_array([pa.array(np.arange(first_row, first_row + len(side)))])]
    else:
        ids = side.items.plain
    found = np.array([words.view(np.uint64) for words in write_both(ids, SEED, pool)])
    labels = np.array([words.view(np.uint64) for words in write_both(side.labels.plain, SEED, pool)])
    nulls = side.labels.null_rows
    if nulls is not None:
        labels[:, nulls] = 0  # what stands under a null is no value
    kernels.hashing.combine_words(*found, *labels, kernels.hashing.seed_words(SEED))
    return found


def _content(sums: Sums) -> Content:
    rows, first, second = (int(column.sum()) for column in sums.T)
    return Content(rows, f"{first:016x}{second:016x}")
