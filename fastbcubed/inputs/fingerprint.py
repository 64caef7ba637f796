"""Fingerprint of a clustering: equal for equal rows of item and label, in any order and any container."""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.inputs.arrays import read_only
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.keys import Writer, writer_of
from fastbcubed.inputs.pair import Block, Pair
from fastbcubed.inputs.tables import Stretch
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Words

#: Rows hashed at a time, so that their hashes stay in the CPU cache.
ROWS_AT_ONCE = 1 << 15
#: Seed of the hash function; changing it would change all fingerprints.
SEED = 0

Sums = NDArray[np.uint64]


class Content(NamedTuple):
    """The number of rows of a side, and the sum over them of a 128-bit hash of (item, label)."""

    rows: int
    fingerprint: str


class BlocksSeen:
    """Row counts and hash sums of both sides, from blocks read for another purpose; a block counts only once."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], Sums] = {}

    def add(self, k: int, side: Clustering, first_row: int, pool: Pool) -> None:
        """Add a block of side `k` that begins at row `first_row`."""
        self._sums[k, first_row] = _sums_of(side, first_row, pool)

    def contents(self) -> list[Content]:
        """Return the content of the truth and of the prediction, once all blocks of both have been added."""
        return [
            _content(np.concatenate([own for (k, _), own in self._sums.items() if k == side]))
            for side in (0, 1)
        ]


def contents(pair: Pair, pool: Pool) -> list[Content]:
    """Return the content of the truth and of the prediction; files are read again for this."""
    found = []
    for stretches in pair.stretches:
        if len(stretches) == 1:  # one block: its rows are split among the threads
            sums = [_of_stretch(stretches[0], pool)]
        else:
            sums = pool.map(_of_stretch, stretches, stage="hash the rows")
        by_side = zip(*(block for own in sums for block in own), strict=True)
        found += [_content(np.concatenate(side)) for side in by_side]
    return found


def _of_stretch(stretch: Stretch[Block], pool: Pool | None = None) -> list[list[Sums]]:
    """Return the row counts and hash sums of each side of each block, each of shape (n_pieces, 3)."""
    with nullcontext(pool) if pool else Pool(1) as own:
        return [[_sums_of(side, block.first_row, own) for side in block.sides] for block in stretch.blocks()]


def _sums_of(side: Clustering, first_row: int, pool: Pool) -> Sums:
    """Return, for each range of rows, their number and the sums of both words of their hashes. Shape (n_ranges, 3)."""
    words = kernels.hashing.seed_words(SEED)
    write_ids = (
        _row_number_writer(first_row, words) if side.items is None else writer_of(side.items.plain, words)
    )
    write_labels, nulls = writer_of(side.labels.plain, words), side.labels.null_rows

    def add_up(start: int, stop: int) -> tuple[int, int, int]:
        with pool.workspace("hashes of rows", lambda: np.empty((4, ROWS_AT_ONCE), np.uint64)) as space:
            ids, labels = space[:2, : stop - start], space[2:, : stop - start]
            write_ids(start, stop, *ids)
            write_labels(start, stop, *labels)
            if nulls is not None:
                labels[:, nulls[start:stop]] = 0  # values under a null are arbitrary
            return stop - start, *kernels.hashing.add_combined(*ids, *labels, words)

    ranges = blocks(len(side), ROWS_AT_ONCE)
    return np.array(pool.map(add_up, *zip(*ranges, strict=True), stage="hash the rows"), np.uint64)


def _row_number_writer(first_row: int, words: Words) -> Writer:
    """Return a function that writes the hashes of row numbers, which identify items without ids."""

    def write(start: int, stop: int, first: Words, second: Words) -> None:
        numbers = read_only(np.arange(first_row + start, first_row + stop))
        kernels.hashing.hash_integers(numbers, False, words, first, second)

    return write


def _content(sums: Sums) -> Content:
    rows, first, second = (int(column.sum()) for column in sums.T)
    return Content(rows, f"{first:016x}{second:016x}")
