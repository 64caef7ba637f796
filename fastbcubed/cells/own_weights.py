"""Items that are scored without themselves: what the others in the cell of each weigh; on disk, shard by shard of rows.

The weight of a cell less that of an item loses all digits where the item outweighs the others. So the weights of the
rows of a cell are added up once more, with twice the digits of a float.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.cell_means import CellMeans
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.records import add_products
from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import Pool, blocks

#: Rows whose scores are worked out at once, few enough that they stay in a core's cache.
ROWS_AT_ONCE = 1 << 15
#: Cells whose rows are added up by one task at least.
CELLS_AT_ONCE = 1 << 16
#: What rows of a cell add up to, `mass + rest`.
SUM = np.dtype([("mass", "f8"), ("rest", "f8")])


class WeighedItems(NamedTuple):
    """Items of consecutive rows of a shard; one that is not scored weighs nothing. Shapes: (n_items,) each."""

    weight: NDArray[np.float64]
    others: NDArray[np.float64]  #: what the others in its cell weigh
    #: of its cell
    fp: NDArray[np.float64]
    fn: NDArray[np.float64]


class ItemScores(Protocol):
    """Scores of items by which each leaves out its own weight."""

    @property
    def names(self) -> Sequence[str]:
        """What they are called."""

    def of(self, items: WeighedItems) -> list[NDArray[np.float64]]:
        """Return the scores of items, each of shape (n_items,)."""

    def sums(self, items: WeighedItems, scores: Sequence[NDArray[np.float64]]) -> Mapping[str, float]:
        """Return what these items add to sums over all of them."""


class OwnWeights:
    """What rows come to by their own weights, over all shards of rows; and cell by cell where `means` are given."""

    def __init__(self, scores: ItemScores, means: CellMeans | None) -> None:
        self._scores, self._means = scores, means
        self.sums: list[Mapping[str, float]] = []  #: what each block of rows adds to sums over items
        self._together: list[float] = []

    @property
    def names(self) -> Sequence[str]:
        """What the scores are called."""
        return self._scores.names

    @property
    def pair_weight(self) -> float:
        """The products of the weights of two items of a cell, added up."""
        return math.fsum(self._together) / 2

    def add(
        self,
        place: NDArray[np.int64],
        weight: NDArray[np.float64],
        cells: np.ndarray,
        closed: np.ndarray | None,
        pool: Pool,
    ) -> np.ndarray:
        """Add the rows of a shard, whose cells stand at this `place` in `cells` and `closed`.

        Where `closed` is None, `cells` are closed themselves, and the place of a row that is not scored is negative.
        Returns the weights of the cells, records like SUM. Shapes: `place`, `weight` (n_rows,); `cells`, `closed`,
        returns (n_cells,).
        """
        sums = _add_by_cell(place, weight, cells.size, pool)
        of_cells = (cells, None) if closed is None else (closed, closed["cell"])
        names = () if self._means is None else self._scores.names
        by_row = [buffers.empty(place.size, weight.dtype) for _ in names]

        def score(start: int, stop: int) -> tuple[Mapping[str, float], float]:
            with pool.workspace("weigh items", lambda: np.empty((4, ROWS_AT_ONCE))) as out:
                kernels.rows.weigh_items(place, weight, sums, cells, *of_cells, start, stop, out)
                items = WeighedItems(*out[:, : stop - start])
                together = add_products(items.weight, items.others)
                scores = self._scores.of(items)
                for own, values in zip(by_row, scores, strict=False):
                    np.multiply(items.weight, values, out=own[start:stop])
                return self._scores.sums(items, scores), together

        tasks = zip(*blocks(place.size, ROWS_AT_ONCE), strict=True)
        for found, together in pool.map(score, *tasks, stage="score items"):
            self.sums.append(found)
            self._together.append(together)
        if self._means is not None and closed is not None:
            by_cell = (_add_by_cell(place, own, cells.size, pool) for own in by_row)
            self._means.add(closed["cell"], sums, by_cell)
        return sums


def weigh_rows(table: Contingency, scores: ItemScores, pool: Pool) -> OwnWeights:
    """Return what the rows of a table come to by their own weights."""
    rows = table.rows
    assert rows is not None
    own = OwnWeights(scores, None)
    own.add(rows.cell, rows.weight, table.cells, None, pool)
    return own


def _add_by_cell(
    place: NDArray[np.int64], values: NDArray[np.float64], n_cells: int, pool: Pool
) -> np.ndarray:
    """Add up values of rows by cell, in their order; every task looks at all rows for those of its cells."""
    sums = buffers.empty(n_cells, SUM)
    sums.view(np.float64)[:] = 0.0
    tasks = blocks(n_cells, max(CELLS_AT_ONCE, -(-n_cells // pool.threads)))

    def add(first: int, last: int) -> None:
        kernels.rows.add_by_cell(place, values, first, last, sums)

    pool.map(add, *zip(*tasks, strict=True), stage="add up weights")
    return sums
