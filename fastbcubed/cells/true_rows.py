"""Rows of one truth, brought to their parts once for several predictions.

true keys --place_keys--> parts --number_rows--> codes of true clusters
pred keys --place_preds--> the same parts --build_cells--> cells, prediction by prediction
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.planning import Plan
from fastbcubed.cells.stages import Parts
from fastbcubed.runtime import buffers
from fastbcubed.runtime.joining import place_keys
from fastbcubed.runtime.parts import row_blocks, slots_for
from fastbcubed.runtime.pool import Pool


@dataclass(frozen=True, eq=False)
class TrueRows:
    """Rows part by part, with the number of their true cluster within the part."""

    plan: Plan  #: without heavy clusters
    places: NDArray[np.integer]  #: where each row stands; shape (n_rows,)
    codes: NDArray[np.integer]  #: of the row that stands there; shape (n_rows,)
    #: of each part the first row of each cluster, then the others; shape (n_rows,)
    order: NDArray[np.integer]
    weights: NDArray[np.float64] | None  #: likewise
    bounds: NDArray[np.int64]  #: where each part begins; shape (n_parts + 1,)
    n_clusters: NDArray[np.int64]  #: shape (n_parts,)

    @classmethod
    def of(
        cls, plan: Plan, true_keys: NDArray[np.int64], weight: NDArray[np.float64] | None, pool: Pool
    ) -> TrueRows:
        """Bring the rows of each part together, in row order, and number their true clusters."""
        weights = None if weight is None else buffers.empty(plan.n_rows, np.float64)
        rows, places = place_keys(true_keys, plan.bits, pool, (weight, weights), of="rows")
        codes, order, n_clusters = _number(plan, rows.keys, rows.bounds, pool)
        return cls(plan, places, codes, order, weights, rows.bounds, n_clusters)

    def parts(self, pred_keys: NDArray[np.int64], pool: Pool) -> Parts:
        """Build the cells of a prediction of these rows, part by part; see `stages.build_parts`."""
        plan, weighted = self.plan, self.weights is not None
        preds: NDArray[np.int64] = buffers.empty(plan.n_rows, np.int64)

        def place(start: int, stop: int) -> None:
            kernels.true_rows.place_preds(pred_keys, self.places, start, stop, preds)

        pool.map(place, *zip(*row_blocks(plan.n_rows), strict=True), stage="partition rows")
        cells = buffers.empty(plan.n_rows, plan.records["weighted cell" if weighted else "cell"])
        starts, stops = zip(*plan.tasks(), strict=True)
        n_cells = np.zeros(plan.n_parts, np.int64)
        histogram = np.zeros((len(starts), 1 << plan.bits), np.int64)
        targets, most = plan.targets(0, plan.bits), int(np.diff(self.bounds).max())
        rows = self.codes, preds, self.order

        def build(first: int, last: int, cells_by_part: NDArray[np.int64]) -> None:
            with pool.workspace(("cells of true rows", weighted), lambda: _space(most, cells.dtype)) as space:
                kernels.true_rows.build_cells(
                    rows, self.weights, cells, self.bounds, first, last, self.n_clusters, targets, space, n_cells,
                    cells_by_part,
                )  # fmt: skip

        pool.map(build, starts, stops, histogram, stage="build cells")
        return Parts(cells, self.bounds, n_cells, self.n_clusters, 0, plan.bits, histogram, weighted)


def _number(
    plan: Plan, keys: NDArray[np.int64], bounds: NDArray[np.int64], pool: Pool
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.int64]]:
    """Return the code of each row within its part, the order of rows, and how many codes each part has."""
    codes, order = buffers.empty(plan.n_rows, plan.code), buffers.empty(plan.n_rows, plan.code)
    n_clusters, most = np.zeros(plan.n_parts, np.int64), int(np.diff(bounds).max())

    def number(first: int, last: int) -> None:
        with pool.workspace(
            "number true clusters",
            lambda: (slots_for(most), np.empty(most, np.int64), np.empty(most, plan.code)),
        ) as space:
            kernels.true_rows.number_rows(keys, bounds, first, last, space, codes, order, n_clusters)

    pool.map(number, *zip(*plan.tasks(), strict=True), stage="number clusters")
    return codes, order, n_clusters


def _space(rows: int, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """Return what one thread needs to find the cells of a part of at most so many rows."""
    return slots_for(rows), np.empty(rows), np.empty(rows), np.empty(rows, np.int64), np.empty(rows, dtype)
