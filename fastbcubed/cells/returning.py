"""The way back on disk: from the cells that are closed to the rows that they were built from.

    rows of a shard --locate_rows--> their cells as they left --closed meanwhile--> fp, number --> blocks of rows

A batch of cells left each shard of rows, in an order that the rows alone decide. So it is found again without a
search, and so are the rows of a block, whose places in the shards are known from when they were put there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells import stages
from fastbcubed.cells.shards import CellShards, RowShards
from fastbcubed.runtime.parts import MAX_BITS
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.runtime.spill import Pages
from fastbcubed.runtime.spool import Spool

#: What a row is told: the number of its cell, -1 if it is not scored;
CELL_OF_ROW = np.dtype([("cell", "i8")])
#: and, where scores are needed row by row, all there is to know of the cell, and the
#: sizes of its clusters as powers of two.
MATRIX_OF_ROW = np.dtype(
    [("cell", "i8"), ("weight", "f8"), ("fp", "f8"), ("fn", "f8"), ("tn", "f8"), ("n", "i8"),
     ("true_power", "i4"), ("pred_power", "i4")]
)  # fmt: skip
#: What goes back to the shard of rows that a cell came from.
CLOSED = np.dtype([("cell", "i8"), ("fp", "f8"), ("pred_power", "i8")])


class WayBack:
    """What tells the rows of each block which cell they are in.

    `rows` have been made cells of, and are still there; `cells` are about to be closed. Rows are told all of
    MATRIX_OF_ROW if `matrix`, else the cell alone.
    """

    def __init__(self, rows: RowShards, cells: CellShards, *, matrix: bool) -> None:
        memory = rows.layout.cells_kept // 8
        told = MATRIX_OF_ROW if matrix else CELL_OF_ROW
        self._rows, self._cells = rows, cells
        self._closed = Spool(CLOSED, len(cells.cells.indexes), rows.spill, memory)
        self._found = Spool(told, len(rows.rows.indexes), rows.spill, memory)
        self._matrix = matrix
        self._pages = Pages()

    def take(self, shard: int, closed: np.ndarray, places: NDArray[np.int64], pool: Pool) -> None:
        """Take the cells that a shard of predicted clusters has closed.

        The number of a `closed` cell is -1 if it is not scored; `places` is where each cell that arrived
        stands among them. Shapes: `closed`, `places` (n_arrived,).
        """
        back = self._pages.empty(closed.size, CLOSED)
        self._map(partial(kernels.rows.gather_records, closed, places, back), closed.size, pool)
        self._closed.put(shard, self._pages, _bounds(self._cells.cells.segments(shard)))

    def run(self, heavy_sizes: NDArray[np.int64], tn: NDArray[np.float64] | None, pool: Pool) -> None:
        """Tell all rows, shard by shard.

        `heavy_sizes` are the items of the heavy true clusters, whose codes come first; `tn` the true
        negatives of the cells, if they are needed. Shapes: `heavy_sizes` (n_heavy,), `tn` (n_cells,).
        """
        batches = self._cells.cells.indexes
        shards = [shard for _, shard in batches]
        for k, (shard, raw) in enumerate(self._rows.rows.read_ahead(shards, pool, "back to rows")):
            assert shard == shards[k]
            at, n_rows = self._locate(raw, pool), raw.size
            del raw
            closed = self._closed.read(k)
            found = self._pages.empty(n_rows, self._found.dtype)
            if self._matrix:
                self._tell_matrices(at, batches[k], closed, heavy_sizes, tn, found, pool)
            else:
                self._map(partial(kernels.rows.tell_cells, at, closed, found), n_rows, pool)
            self._found.put(shard, self._pages, _bounds(self._rows.rows.segments(shard)))

    def _tell_matrices(
        self,
        at: NDArray[np.int64],
        batch: tuple[bool, int],
        closed: np.ndarray,
        heavy_sizes: NDArray[np.int64],
        tn: NDArray[np.float64] | None,
        found: np.ndarray,
        pool: Pool,
    ) -> None:
        cells = self._cells.cells.read_batch(batch)
        first, sizes = 0, heavy_sizes
        if batch[0]:  # no heavy clusters: all of a cluster is here
            true = cells["true"]
            first = int(true.min())
            sizes = np.zeros(int(true.max()) - first + 1, np.int64)
            kernels.rows.count_scored(cells, closed, first, sizes)

        self._map(
            partial(kernels.rows.tell_matrices, at, cells, closed, first, sizes, tn, found), at.size, pool
        )

    @staticmethod
    def _map(function: Callable[[int, int], None], n: int, pool: Pool) -> None:
        pool.map(function, *zip(*blocks(n), strict=True), stage="back to rows")

    @property
    def n_blocks(self) -> int:
        """Blocks of rows."""
        return self._found.n_shards

    def block(self, k: int, places: NDArray[np.int32]) -> np.ndarray:
        """Return what the rows of a block were told.

        Shapes: `places` (n_rows,).
        """
        return self._found.read(k)[places]

    def _locate(self, raw: np.ndarray, pool: Pool) -> NDArray[np.int64]:
        """Return where the cell of each row of a shard is in the batch that left it."""
        numbered = self._rows.plan.records["numbered row"]
        plan, rows, bounds = self._rows.in_parts(raw, np.arange(raw.size), numbered, pool)
        return stages.locate_rows(plan, rows, bounds, pool, skip=MAX_BITS, bits=self._rows.layout.bits)


def _bounds(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.append(0, np.cumsum(sizes))
