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
from fastbcubed.cells.own_weights import OwnWeights
from fastbcubed.cells.shards import CellShards, RowShards
from fastbcubed.runtime import buffers
from fastbcubed.runtime.parts import MAX_BITS
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.runtime.spill import Pages
from fastbcubed.runtime.spool import Spool

#: What a row is told where scores are needed row by row: the number of its cell, -1 if it is not scored, all there is
#: to know of it, and the sizes of its clusters as powers of two.
MATRIX_OF_ROW = np.dtype(
    [("cell", "i8"), ("weight", "f8"), ("fp", "f8"), ("fn", "f8"), ("tn", "f8"), ("n", "i8"),
     ("true_power", "i4"), ("pred_power", "i4")]
)  # fmt: skip
#: The same where an item leaves out its own weight: what the others in its cell weigh.
MATRIX_OF_OTHERS = np.dtype([*MATRIX_OF_ROW.descr, ("others", "f8")])
NO_WEIGHTS = np.empty(0)
#: What goes back to the shard of rows that a cell came from; its number alone where rows are told no more.
CLOSED = np.dtype([("cell", "i8"), ("fp", "f8"), ("pred_power", "i8")])


class WayBack:
    """What tells the rows of each block which cell they are in, and adds up what they come to by their own weights.

    `rows` have been made cells of, and are still there; `cells` are about to be closed. Rows are `told` all of
    MATRIX_OF_ROW if that is "matrix", the cell alone if it is "cell", nothing if it is None; `weighed` tells whether
    what they come to by their own weights is asked for.
    """

    def __init__(self, rows: RowShards, cells: CellShards, told: str | None, *, weighed: bool) -> None:
        self._rows, self._cells, self._told = rows, cells, told
        self._memory = rows.layout.cells_kept // 8
        self._whole = told == "matrix" or weighed
        self._number = np.dtype([("cell", rows.plan.code)])
        #: of what is taken of the cells that are closed
        self.closed_type = CLOSED if self._whole else self._number
        self._closed = Spool(self.closed_type, len(cells.cells.indexes), rows.spill, self._memory)
        self._pages = Pages()

    def take(self, shard: int, closed: np.ndarray, places: NDArray[np.int64], pool: Pool) -> None:
        """Take the cells that a shard of predicted clusters has closed.

        The number of a `closed` cell is -1 if it is not scored; `places` is where each cell that arrived
        stands among them. Shapes: `closed`, `places` (n_arrived,).
        """
        back = self._pages.empty(closed.size, self.closed_type)
        self._map(partial(kernels.rows.gather_records, closed, places, back), closed.size, pool)
        self._closed.put(shard, self._pages, _bounds(self._cells.cells.segments(shard)))

    def run(
        self,
        own: OwnWeights | None,
        heavy_sizes: NDArray[np.int64],
        tn: NDArray[np.float64] | None,
        pool: Pool,
    ) -> None:
        """Tell all rows, shard by shard; `own`, if given, gets them with their weights.

        `heavy_sizes` are the items of the heavy true clusters, whose codes come first; `tn` the true
        negatives of the cells, if they are needed. Shapes: `heavy_sizes` (n_heavy,), `tn` (n_cells,).
        """
        others = own is not None and bool(own.names)
        matrix = MATRIX_OF_OTHERS if others else MATRIX_OF_ROW
        told, kind = self._told, matrix if self._told == "matrix" else self._number
        self._found = Spool(kind, len(self._rows.rows.indexes), self._rows.spill, self._memory)
        buffers.release()  # what was used in other sizes
        batches = self._cells.cells.indexes
        todo = [shard for _, shard in batches]
        k = -1  # not of `enumerate`, which would hold the rows until the next ones are there
        for shard, raw in self._rows.rows.read_ahead(todo, pool, "back to rows"):
            k += 1
            assert shard == todo[k]
            weight = NO_WEIGHTS if own is None else np.ascontiguousarray(raw["x"])
            at = self._locate(raw, pool)
            del raw
            closed = self._closed.read(k)
            left = self._cells.cells
            cells = left.read_batch(batches[k]) if self._whole else np.empty(0, left.dtype)
            sums = None if own is None else own.add(at, weight, cells, closed, pool)
            if told is None:
                continue
            found = self._pages.empty(at.size, kind)
            if told == "cell":
                self._map(partial(kernels.rows.tell_cells, at, closed, found), at.size, pool)
            else:
                first, sizes = _scored_sizes(cells, closed) if batches[k][0] else (0, heavy_sizes)
                tell = partial(kernels.rows.tell_matrices, at, cells, closed, first, sizes, tn, found)
                self._map(tell, at.size, pool)
                if others:
                    tell = partial(kernels.rows.tell_others, at, weight, sums, cells, found)
                    self._map(tell, at.size, pool)
            self._found.put(shard, self._pages, _bounds(self._rows.rows.segments(shard)))
        for spool in (self._rows.rows, self._cells.cells, self._closed):
            spool.clear()

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


def _scored_sizes(cells: np.ndarray, closed: np.ndarray) -> tuple[int, NDArray[np.int64]]:
    """Return the first true cluster of a shard that has all of its own, and the scored items of each from there on."""
    true = cells["true"]
    first = int(true.min())
    sizes = np.zeros(int(true.max()) - first + 1, np.int64)
    kernels.rows.count_scored(cells, closed, first, sizes)
    return first, sizes


def _bounds(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.append(0, np.cumsum(sizes))
