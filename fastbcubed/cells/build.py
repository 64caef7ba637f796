"""Cells from a dense table: one slot for each pair of clusters, where every row has been counted in a slot.

    rows --PairTable.count--> tables --add up--> slots and margins --close_box--> cells

Nothing is partitioned or looked up: a slot's position gives the two clusters. Predicted clusters are processed in
ranges that depend on the table only, so the number of threads never changes a bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.rows import Alignment
from fastbcubed.cells import stages
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.preaggregate import SLOTS_AT_ONCE, Counted, Keys, PairTable
from fastbcubed.cells.stages import (
    NARROW_RECORDS,
    WIDE,
    WIDE_RECORDS,
    Built,
    IfAlone,
    Parts,
    Plan,
    plan_parts,
)
from fastbcubed.inputs.keys import widened
from fastbcubed.runtime import buffers
from fastbcubed.runtime.codes import place_keys, row_blocks, slots_for
from fastbcubed.runtime.threads import Pool, blocks


def close_box(counted: Counted, pool: Pool, *, outer: bool) -> tuple[Built, NDArray[np.bool_]]:
    """Return the cells of rows that have all been counted in a dense table, and their slots.

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
        kernels.dense.add_tables(counted.tables, weight, outer, first, last, n, of_range, of_pred, n_met)

    pool.map(add, firsts, lasts, of_true, stage="add up pairs of clusters")
    kernels.dense.add_ranges(of_true)
    bounds = np.append(0, np.cumsum(n_met))[[*firsts, n_pred]]
    true_codes, pred_codes = _codes(of_true[0, 0] > 0), _codes(n_met > 0)
    records = WIDE_RECORDS if box.n_rows >= WIDE else NARROW_RECORDS
    cells = buffers.empty(int(bounds[-1]), records["final"])
    pred_in_part = buffers.empty(cells.size, cells.dtype["true"])

    def write(first: int, last: int, to: int) -> None:
        kernels.dense.write_cells(
            n, weight, outer, first, last, to, (true_codes, pred_codes), of_true[0], of_pred, cells,
            pred_in_part,
        )  # fmt: skip

    pool.map(write, firsts, lasts, bounds[:-1].tolist(), stage="close cells")
    built = Built(cells, pred_in_part, bounds, pred_codes[[*firsts, n_pred]], int(true_codes[-1]), False)
    return built, n > 0


def _codes(there: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of non-empty clusters before each cluster, and in the last place their total."""
    return np.append(0, np.cumsum(there))


def locate_in_box(
    box: PairTable, filled: NDArray[np.bool_], true_keys: Keys, pred_keys: Keys, pool: Pool
) -> NDArray[np.int64]:
    """Return the cell of each row, from the filled slots. Shape (n_rows,)."""
    numbers = np.cumsum(filled) - 1
    cell_of_row = buffers.empty(box.n_rows, np.int64)

    def look_up(start: int, stop: int) -> None:
        kernels.dense.look_up_slots(
            (true_keys, pred_keys), box.box, box.grid, numbers, start, stop, cell_of_row
        )

    pool.map(look_up, *zip(*blocks(box.n_rows), strict=True), stage="look up cells")
    return cell_of_row


@dataclass(frozen=True, eq=False)
class TrueRows:
    """Rows by part, with the number of their true cluster within the part."""

    plan: Plan  #: without heavy clusters
    places: NDArray[np.integer]  #: position of each row, ordered by part; shape (n_rows,)
    codes: NDArray[np.integer]  #: of the row at each position; shape (n_rows,)
    #: the first row of each cluster of a part, then the other rows; shape (n_rows,)
    order: NDArray[np.integer]
    weights: NDArray[np.float64] | None  #: likewise
    bounds: NDArray[np.int64]  #: where each part begins; shape (n_parts + 1,)
    n_clusters: NDArray[np.int64]  #: shape (n_parts,)

    @classmethod
    def of(
        cls, plan: Plan, true_keys: NDArray[np.int64], weight: NDArray[np.float64] | None, pool: Pool
    ) -> TrueRows:
        """Gather the rows of each part in row order, and number their true clusters."""
        weights = None if weight is None else buffers.empty(plan.n_rows, np.float64)
        rows, places = place_keys(true_keys, plan.bits, pool, (weight, weights), of="rows")
        codes, order, n_clusters = _number(plan, rows.keys, rows.bounds, pool)
        return cls(plan, places, codes, order, weights, rows.bounds, n_clusters)

    def parts(self, pred_keys: NDArray[np.int64], pool: Pool) -> Parts:
        """Build the cells of a prediction for these rows, part by part; see `stages.build_parts`."""
        plan, weighted = self.plan, self.weights is not None
        preds: NDArray[np.int64] = buffers.empty(plan.n_rows, np.int64)

        def place(start: int, stop: int) -> None:
            kernels.cells.place_preds(pred_keys, self.places, start, stop, preds)

        pool.map(place, *zip(*row_blocks(plan.n_rows), strict=True), stage="partition rows")
        cells = buffers.empty(plan.n_rows, plan.records["weighted cell" if weighted else "cell"])
        starts, stops = zip(*plan.tasks(), strict=True)
        n_cells = np.zeros(plan.n_parts, np.int64)
        histogram = np.zeros((len(starts), 1 << plan.bits), np.int64)
        targets, most = plan.targets(0, plan.bits), int(np.diff(self.bounds).max())
        rows = self.codes, preds, self.order

        def build(first: int, last: int, cells_by_part: NDArray[np.int64]) -> None:
            with pool.workspace(("cells of true rows", weighted), lambda: _space(most, cells.dtype)) as space:
                kernels.cells.build_cells_of_numbered(
                    rows, self.weights, cells, self.bounds, first, last, self.n_clusters, targets, space, n_cells,
                    cells_by_part,
                )  # fmt: skip

        pool.map(build, starts, stops, histogram, stage="build cells")
        return Parts(cells, self.bounds, n_cells, self.n_clusters, 0, plan.bits, histogram, weighted)


def _number(
    plan: Plan, keys: NDArray[np.int64], bounds: NDArray[np.int64], pool: Pool
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.int64]]:
    """Return the code of each row within its part, the order of rows, and the number of codes in each part."""
    codes, order = buffers.empty(plan.n_rows, plan.code), buffers.empty(plan.n_rows, plan.code)
    n_clusters, most = np.zeros(plan.n_parts, np.int64), int(np.diff(bounds).max())

    def number(first: int, last: int) -> None:
        with pool.workspace(
            "number true clusters",
            lambda: (slots_for(most), np.empty(most, np.int64), np.empty(most, plan.code)),
        ) as space:
            kernels.cells.number_rows(keys, bounds, first, last, space, codes, order, n_clusters)

    pool.map(number, *zip(*plan.tasks(), strict=True), stage="number clusters")
    return codes, order, n_clusters


def _space(rows: int, dtype: np.dtype) -> tuple[np.ndarray, ...]:
    """Return the workspace of one thread for finding the cells of a part of up to `rows` rows."""
    return slots_for(rows), np.empty(rows), np.empty(rows), np.empty(rows, np.int64), np.empty(rows, dtype)


def build_cells(
    rows: Alignment,
    pool: Pool,
    *,
    weighting: str,
    outside: bool,
    plan: Plan | None = None,
    truth: TrueRows | None = None,
) -> Contingency:
    """Build the cells of aligned rows as planned; the cell of each row is computed only on request.

    `truth` holds the rows in their parts already, if several predictions share them.
    """
    keys, absent = (rows.true_keys, rows.pred_keys), (rows.absent_true, rows.absent_pred)
    how: dict[str, Any] = {"weighting": weighting, "outside": outside, "plan": plan, "truth": truth}
    return cells_of_keys(*keys, rows.weight, pool, absent=absent, **how)


def cells_of_keys(
    true_keys: NDArray[Any],
    pred_keys: NDArray[Any],
    weight: NDArray[np.float64] | None,
    pool: Pool,
    *,
    weighting: str,
    outside: bool = False,
    absent: tuple[int | None, int | None] = (None, None),
    plan: Plan | None = None,
    truth: TrueRows | None = None,
) -> Contingency:
    """Build the cells of rows by the keys of their clusters; `absent` holds the keys for "not on this side", if any.

    A given plan is followed unchanged; without one, rows are preaggregated if that pays. Keys are int64, or int32
    without a plan.
    """
    outer, filled = weighting == "outer", None
    pairs = PairTable.of(true_keys, pred_keys) if plan is None else None
    if pairs is not None and not pairs.takes(true_keys, pred_keys):
        true_keys, pred_keys = widened(true_keys, pool), widened(pred_keys, pool)
    counted = None if pairs is None else pairs.count(true_keys, pred_keys, weight, pool)
    if counted is not None and counted.is_box and absent == (None, None):
        built, filled = close_box(counted, pool, outer=outer)
    else:
        true_keys, pred_keys = widened(true_keys, pool), widened(pred_keys, pool)
        rows: Sequence[stages.Piece] = [(true_keys, pred_keys, weight, None)]
        stands_for = None
        if counted is not None:
            rows, stands_for = counted.condensed(pool), true_keys.size
        plan = plan or plan_parts([true for true, *_ in rows], *absent, stands_for=stands_for)
        built = build(plan, rows, pool, outer=outer, outside=outside, truth=truth)

    def locate_rows() -> NDArray[np.int64]:
        with Pool(pool.threads) as threads:
            if pairs is not None and filled is not None:
                return locate_in_box(pairs, filled, true_keys, pred_keys, threads)
            assert plan is not None
            if pairs is None:
                return locate(plan, rows, threads)
            places = np.empty(true_keys.size, np.int64)
            met = pairs.count(true_keys, pred_keys, None, threads, places).condensed(threads, places)
            return locate(plan, met, threads)[places]

    found = Contingency.from_built(
        built,
        weighted=weight is not None,
        weighting=weighting,
        outside=outside,
        locate=locate_rows,
        weight=weight,
        n_rows=true_keys.size,
    )
    found.recall_if_alone = built.recall_if_alone
    return found


def build(
    plan: Plan,
    rows: Sequence[stages.Piece],
    pool: Pool,
    *,
    outer: bool = False,
    outside: bool = False,
    truth: TrueRows | None = None,
) -> stages.Built:
    """Build the cells of rows planned by `plan_parts`; equal keys mean equal clusters.

    The plan's absent keys stand for "not on this side". With `outer`, margins are counts, so that weights affect the
    mean only; with `outside`, prediction-only items are false positives for their mates. `truth` holds the rows in
    their parts already, if several predictions share them.
    """
    if truth is not None:
        parts = truth.parts(rows[0][1], pool)
    else:
        parts = _parts(plan, rows, pool)
    base = np.zeros(plan.n_parts, np.int64)  # codes of heavy clusters come first
    regular = 1 << plan.bits
    base[:regular] = plan.heavy.size + np.cumsum(parts.n_clusters[:regular]) - parts.n_clusters[:regular]
    n_true = plan.heavy.size + int(parts.n_clusters[:regular].sum())
    sums = (
        stages.add_heavy_sums([stages.heavy_sums(plan, parts, pool, outer=outer)])
        if plan.heavy.size
        else None
    )
    alone = IfAlone(outer=outer)
    alone.add(plan, parts, pool)
    arrived, cell_bounds = stages.send_cells(plan, parts, base, sums, pool, outer=outer)
    del parts
    built = stages.close_parts(plan, arrived, cell_bounds, n_true, pool, outer=outer, outside=outside)
    return replace(built, recall_if_alone=alone.change())


def _parts(plan: Plan, pieces: Sequence[stages.Piece], pool: Pool) -> stages.Parts:
    weighted = pieces[0][2] is not None
    rows, bounds = stages.partition_rows(plan, pieces, plan.row_type(weighted), pool)
    return stages.build_parts(plan, rows, bounds, pool, weighted=weighted, skip=0, bits=plan.bits)


def locate(plan: Plan, rows: Sequence[stages.Piece], pool: Pool) -> NDArray[np.int64]:
    """Return the cell of each row among `Built.cells`; this repeats `build` with row numbers.

    Parameters are those of `build`. Shape (n_rows,).
    """
    ends = np.cumsum([true.size for true, *_ in rows]).tolist()
    numbered = [
        (true, pred, np.arange(end - true.size, end), None)
        for (true, pred, *_), end in zip(rows, ends, strict=True)
    ]
    by_part, bounds = stages.partition_rows(plan, numbered, plan.records["numbered row"], pool)
    return stages.locate_rows(plan, by_part, bounds, pool, skip=0, bits=plan.bits)
