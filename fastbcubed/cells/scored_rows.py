"""The items behind the cells: which cell each row is in, and its weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.pool import blocks


class ScoredRows:
    """The items behind the cells: which cell each row is in, and its weight."""

    #: what the others in the cell of each weigh, where that is known
    others: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, cell: NDArray[np.int64], weight: NDArray[np.float64] | None) -> ScoredRows:
        """Return rows whose cells are at hand."""
        return cls(lambda: cell, weight, cell.size)

    def __init__(
        self,
        locate: Callable[[], NDArray[np.int64]],
        weight: NDArray[np.float64] | None,
        n_rows: int,
        count: Callable[[], NDArray[np.int64]] | None = None,
    ) -> None:
        """Take over rows; `count` returns how many items each stands for, where that is not one."""
        self._locate = locate
        self._weight = weight
        self.n_rows = n_rows
        self._count = count

    def __reduce__(self) -> tuple[Any, ...]:
        return ScoredRows.of, (self.cell, self._weight)

    @cached_property
    def cell(self) -> NDArray[np.int64]:
        """The cell of each row, -1 where the row is not scored. Shape (n_rows,)."""
        return self._locate()

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """The weight of each row. Shape (n_rows,)."""
        return np.ones(self.n_rows) if self._weight is None else self._weight

    def in_cells(self, chosen: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows that are in chosen cells, ascending, and the cell of each. Shape of `chosen`: (n_cells,)."""
        parts = [np.zeros((2, 0), np.int64)]
        for first, cell in self.stretches():
            found = np.flatnonzero(chosen[cell] & (cell >= 0))
            parts.append(np.stack([found + first, cell[found]]))
        rows, cells = np.concatenate(parts, axis=1)
        return rows, cells

    def stretches(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the cells of consecutive rows, and the first of these rows."""
        for start, stop in blocks(self.n_rows):
            yield start, self.cell[start:stop]

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of some rows."""
        return self.weight[rows]

    @cached_property
    def n(self) -> NDArray[np.int64]:
        """How many items each row stands for. Shape (n_rows,)."""
        return np.ones(self.n_rows, np.int64) if self._count is None else self._count()
