"""Rows that were told what became of their cell, block by block: their matrices, summed by slice or written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.row_aligner import AlignedBlock
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.records import CELL
from fastbcubed.cells.returning import MATRIX_OF_OTHERS, WayBack
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill
from fastbcubed.sources.arrays import from_numpy, to_numpy
from fastbcubed.sources.stash import Stash

#: What a stash holds beside the columns of the rows.
PLACE, WEIGHT = "place of row", "weight of row"


class RowCells(Contingency):
    """The scored rows of a block, each with a copy of its cell, for scores and sums row by row."""

    def __init__(self, found: np.ndarray, weight: NDArray[np.float64] | None, **how: Any) -> None:
        scored = found["cell"] >= 0
        own = found[scored]
        cells = np.zeros(own.size, CELL)
        for name in ("weight", "fp", "fn", "n"):
            cells[name] = own[name]
        number = np.where(scored, np.cumsum(scored) - 1, -1)
        rows = ScoredRows(lambda: number, weight, found.size)
        if found.dtype == MATRIX_OF_OTHERS:
            rows.others = np.ascontiguousarray(found["others"])
        super().__init__(cells, lambda: np.zeros(own.size, np.int64), (1, 1), rows=rows, **how)
        self.known_tn = np.ascontiguousarray(own["tn"])
        self._powers = {"true": own["true_power"], "pred": own["pred_power"]}

    def mates(self, side: str) -> NDArray[np.integer]:
        """Return the items of the cluster of each row on this side, rounded down to a power of two."""
        return np.left_shift(np.int64(1), self._powers[side].astype(np.int64))


class RowBlock:
    """A block of rows with what they were told."""

    def __init__(self, table: pa.Table, found: np.ndarray) -> None:
        self.found = found
        self.weight = to_numpy(table[WEIGHT].combine_chunks()) if WEIGHT in table.column_names else None
        self.columns = table.drop_columns([name for name in (PLACE, WEIGHT) if name in table.column_names])


class RowBlocks:
    """The blocks of rows of an evaluation, put by while their cells are built."""

    def __init__(self, spill: Spill) -> None:
        self._stash = Stash(spill)

    def put(self, block: AlignedBlock, places: NDArray[np.int32]) -> None:
        """Put a block by, whose rows have these places in their shards."""
        place = from_numpy(places)
        table = pa.table({PLACE: place})  # slices by size alone take no columns
        if block.columns is not None:
            table = block.columns.append_column(PLACE, place)
        if block.weight is not None:
            table = table.append_column(WEIGHT, from_numpy(block.weight))
        self._stash.put(block.index, table)

    def with_cells(self, back: WayBack, pool: Pool) -> Iterator[RowBlock]:
        """Yield the blocks in their order, with what the rows were told."""

        def read(k: int) -> RowBlock:
            table = self._stash.read_batch(k)
            return RowBlock(table, back.block(k, to_numpy(table[PLACE].combine_chunks())))

        yield from pool.stream(read, [(k,) for k in range(back.n_blocks)], stage="score rows")
