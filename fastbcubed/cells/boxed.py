"""Cells straight from a box: where a table has a slot for each two of all clusters, and every row has been counted.

    rows --PairTable.count--> tables --add up--> slots and margins --close_box--> cells

Nothing is partitioned or looked up: the place of a slot says which clusters meet in it. Predicted clusters are handled
in ranges that depend on the table alone, so the number of threads never changes a bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.condensing import SLOTS_AT_ONCE, Counted, Keys, PairTable
from fastbcubed.cells.planning import NARROW_RECORDS, WIDE, WIDE_RECORDS
from fastbcubed.cells.stages import Built
from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import Pool, blocks


def close_box(counted: Counted, pool: Pool, *, outer: bool) -> tuple[Built, NDArray[np.bool_]]:
    """Return the cells of rows that have all been counted in a box, and which slots they are from.

    If `outer`, margins are counts. Shape of the latter: (n_slots,).
    """
    box = counted.pairs
    _, n_true, _, n_pred = map(int, box.box)
    ranges = blocks(n_pred, max(1, SLOTS_AT_ONCE // n_true))
    firsts, lasts = (list(ends) for ends in zip(*ranges, strict=True))
    n, n_met = buffers.empty(box.n_slots, np.int64), np.empty(n_pred, np.int64)
    weight = None if counted.tables[1] is None else counted.tables[1][0]
    of_true, of_pred = np.zeros((len(ranges), 2, n_true)), np.empty((2, n_pred))

    def add(first: int, last: int, of_range: NDArray[np.float64]) -> None:
        kernels.boxes.add_tables(counted.tables, weight, outer, first, last, n, of_range, of_pred, n_met)

    pool.map(add, firsts, lasts, of_true, stage="add up pairs of clusters")
    kernels.boxes.add_ranges(of_true)
    bounds = np.append(0, np.cumsum(n_met))[[*firsts, n_pred]]
    true_codes, pred_codes = _codes(of_true[0, 0] > 0), _codes(n_met > 0)
    records = WIDE_RECORDS if box.n_rows >= WIDE else NARROW_RECORDS
    cells = buffers.empty(int(bounds[-1]), records["final"])
    pred_in_part = buffers.empty(cells.size, cells.dtype["true"])

    def write(first: int, last: int, to: int) -> None:
        kernels.boxes.write_cells(
            n, weight, outer, first, last, to, (true_codes, pred_codes), of_true[0], of_pred, cells,
            pred_in_part,
        )  # fmt: skip

    pool.map(write, firsts, lasts, bounds[:-1].tolist(), stage="close cells")
    built = Built(cells, pred_in_part, bounds, pred_codes[[*firsts, n_pred]], int(true_codes[-1]), False)
    return built, n > 0


def _codes(there: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of clusters before each that are there; last, of all."""
    return np.append(0, np.cumsum(there))


def locate_in_box(
    box: PairTable, filled: NDArray[np.bool_], true_keys: Keys, pred_keys: Keys, pool: Pool
) -> NDArray[np.int64]:
    """Return the cell of each row, from the slots that are filled. Shape (n_rows,)."""
    numbers = np.cumsum(filled) - 1
    cell_of_row = buffers.empty(box.n_rows, np.int64)

    def look_up(start: int, stop: int) -> None:
        kernels.boxes.look_up_slots(
            (true_keys, pred_keys), box.box, box.grid, numbers, start, stop, cell_of_row
        )

    pool.map(look_up, *zip(*blocks(box.n_rows), strict=True), stage="look up cells")
    return cell_of_row
