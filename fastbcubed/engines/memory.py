"""The memory engine: all parts live in one buffer, and cells are built where their rows stood.

    rows --by true key--> parts --build_parts--> cells --by pred key--> parts --close_parts--> cells

The parts and their order depend on the input alone, so the number of threads never changes a bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastbcubed.engines import stages
from fastbcubed.engines.planning import Plan
from fastbcubed.engines.pool import Pool, blocks
from fastbcubed.kernels import cells as cell_kernels

__all__ = ["build", "locate"]


def build(
    plan: Plan,
    true_keys: NDArray[np.int64],
    pred_keys: NDArray[np.int64],
    weights: NDArray[np.float64] | None,
    pool: Pool,
    *,
    outer: bool = False,
    outside: bool = False,
) -> stages.Built:
    """Build the cells of these rows.

    Parameters
    ----------
    plan : Plan
        From `plan_parts` of the same keys.
    true_keys, pred_keys : ndarray of int64, shape (n_rows,)
        Equal keys, equal cluster; the plan's absent keys stand for "not on this side".
    weights : ndarray of float64, shape (n_rows,), or None
        Valid weights, or None where every item counts 1.
    pool : Pool
        The threads.
    outer : bool
        Whether margins are counts, so that weights serve the mean alone.
    outside : bool
        Whether items that only the prediction has are false positives of their mates.
    """
    weighted = weights is not None
    piece = (true_keys, pred_keys, weights)
    rows, bounds = stages.partition_rows(plan, piece, plan.row_type(weighted), pool)
    parts = stages.build_parts(plan, rows, bounds, pool, weighted=weighted, skip=0, bits=plan.bits)
    del rows
    base = np.zeros(plan.n_parts, np.int64)  # codes of clusters set apart come first
    regular = 1 << plan.bits
    base[:regular] = plan.heavy.size + np.cumsum(parts.n_clusters[:regular]) - parts.n_clusters[:regular]
    n_true = plan.heavy.size + int(parts.n_clusters[:regular].sum())
    sums = stages.add_up([stages.heavy_sums(plan, parts, pool, outer=outer)]) if plan.heavy.size else None
    arrived, cell_bounds = stages.send_cells(plan, parts, base, sums, pool, outer=outer)
    del parts
    return stages.close_parts(plan, arrived, cell_bounds, n_true, pool, outer=outer, outside=outside)


def locate(
    plan: Plan, true_keys: NDArray[np.int64], pred_keys: NDArray[np.int64], pool: Pool
) -> NDArray[np.int64]:
    """Return the cell of each row among `Built.cells`; it repeats `build` with row numbers.

    Parameters are those of `build`. Shape (n_rows,).
    """
    piece = (true_keys, pred_keys, np.arange(plan.n_rows))
    rows, bounds = stages.partition_rows(plan, piece, plan.records["numbered row"], pool)
    tasks = plan.tasks()
    starts, stops = zip(*tasks, strict=True)
    most_rows = int(np.diff(bounds).max())
    cell_of_row = np.empty(plan.n_rows, np.int64)
    n_cells = np.zeros(plan.n_parts, np.int64)
    histogram = np.zeros((len(tasks), 1 << plan.bits), np.int64)

    def locate_task(first: int, last: int, cells_by_part: NDArray[np.int64]) -> None:
        with pool.workspace("locate", lambda: stages.CellSpace(most_rows, plan.code, weighted=False)) as w:
            cell_kernels.locate_cells(
                rows, bounds, first, last, 0, plan.bits, plan.absent_pred, w.head_slots, w.other_slots, w.counts,
                w.heads, w.codes, cell_of_row, n_cells, cells_by_part,
            )  # fmt: skip

    def place_task(first: int, last: int, to: NDArray[np.int64]) -> None:
        cell_kernels.place_cells(rows, bounds, first, last, 0, plan.bits, plan.absent_pred, n_cells, to)

    def look_up(start: int, stop: int) -> None:
        cell_kernels.look_up_cells(rows, start, stop, cell_of_row)

    pool.map(locate_task, starts, stops, histogram, stage="locate cells")
    _, next_cell = stages.offsets(histogram)
    pool.map(place_task, starts, stops, next_cell, stage="place cells")
    pool.map(look_up, *zip(*blocks(plan.n_rows), strict=True), stage="look up cells")
    return cell_of_row
