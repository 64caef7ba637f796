"""The rows of the largest clusters, held while all rows are written: what a digest shows need not be read again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.runtime.table_files import maybe_with_nulls
from fastbcubed.sources.arrays import from_numpy

#: Fewer cells are no large result; and rows that are held at most.
FEWEST_CELLS, MOST_ROWS = 1 << 19, 1 << 18
#: Cells that are looked at by one call of a kernel; a multiple of 8.
CELLS_AT_ONCE = 1 << 20


class HeldRows:
    """Rows that are taken as they are written, if they are in cells of the largest clusters that are not exact.

    As many bytes as `room` are held; where that is too little, nothing is.
    """

    def __init__(self, table: Contingency, room: int, pool: Pool) -> None:
        self._marks = _marks_of_largest(table, pool)
        self._room = room
        self._n_rows = 0
        self._pieces = list[tuple[NDArray[np.int64], NDArray[np.int64], pa.Table]]()

    @classmethod
    def of(cls, table: Contingency | None, room: int, pool: Pool) -> HeldRows | None:
        """Return what takes rows of these cells; None where there are too few."""
        return None if table is None or table.n_cells < FEWEST_CELLS else cls(table, room, pool)

    def take(self, cell: NDArray[np.int64], table: pa.Table) -> None:
        """Take the next rows, with their cells, -1 for one that is not scored."""
        if self._room >= 0:
            rows = np.empty(cell.size, np.int64)
            own = rows[: kernels.largest.find_marked(cell, self._marks, rows)]
            piece = table.take(from_numpy(own))
            self._room -= piece.nbytes + 2 * own.nbytes
            self._pieces.append((self._n_rows + own, cell[own], piece))
        self._n_rows += cell.size

    def finished(self) -> RowsAtHand | None:
        """Return the rows that were taken; None if they had no room."""
        if self._room < 0 or not self._pieces:
            return None
        rows, cells, tables = zip(*self._pieces, strict=True)
        table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        return RowsAtHand(np.concatenate(rows), np.concatenate(cells), maybe_with_nulls(table), self._marks)


class RowsAtHand:
    """Some rows of a file, which are all rows of some of its cells."""

    def __init__(
        self,
        rows: NDArray[np.int64],
        cells: NDArray[np.int64],
        table: pa.Table,
        marks: NDArray[np.uint8],
    ) -> None:
        """Take rows, ascending, with their cells and columns; `marks` has a bit for each cell, set if it is one."""
        self._rows, self._cells, self._table, self._marks = rows, cells, table, marks

    def columns(self, names: Sequence[str], rows: NDArray[np.int64]) -> pa.Table | None:
        """Return some columns of some rows, null for row -1; None if they are not all here."""
        if not (self._rows.size and set(names) <= set(self._table.column_names)):
            return None
        at = np.minimum(np.searchsorted(self._rows, rows), self._rows.size - 1)
        if not ((self._rows[at] == rows) | (rows < 0)).all():
            return None
        return self._table.select(names).take(from_numpy(at, rows < 0))

    def in_cells(self, chosen: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return the rows in chosen cells, ascending, and the cell of each; None if they are not all here."""
        wanted = np.flatnonzero(chosen)
        if not (self._marks[wanted >> 3] >> (wanted & 7) & 1).all():
            return None
        own = chosen[self._cells]
        return self._rows[own], self._cells[own]


def _marks_of_largest(table: Contingency, pool: Pool) -> NDArray[np.uint8]:
    """Return a bit for each cell: whether it is of the largest clusters that have few rows together."""
    outer = table.weighting == "outer"
    ranges = blocks(table.n_cells, CELLS_AT_ONCE)

    def count(start: int, stop: int) -> NDArray[np.int64]:
        counts = np.zeros(kernels.largest.SIZES, np.int64)
        kernels.largest.count_by_size(table.cells[start:stop], outer, counts)
        return counts

    marks = np.zeros(-(-table.n_cells // 8), np.uint8)
    counts = np.sum(pool.map(count, *zip(*ranges, strict=True), stage="find large clusters"), axis=0)
    counts[0] = MOST_ROWS + 1  # nobody asks for those that are exact
    least = counts.size - int(np.searchsorted(np.cumsum(counts[::-1]), MOST_ROWS, side="right"))

    def mark(start: int, stop: int) -> None:
        own = marks[start // 8 : -(-stop // 8)]
        kernels.largest.mark_largest(table.cells[start:stop], outer, least, own)

    pool.map(mark, *zip(*ranges, strict=True), stage="find large clusters")
    return marks
