"""Cells in memory: all parts live in one buffer, and cells are counted where their rows stood.

    rows --by true key--> parts --build_parts--> cells --by pred key--> parts --close_parts--> cells

Where few pairs of clusters hold most rows, these are condensed first: see `cells.condensing`. Where there is a slot
for each two clusters, that is all there is to do: see `cells.boxed`.

The parts and their order depend on the input alone, so the number of threads never changes a bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.alignment.align import Alignment
from fastbcubed.cells import stages
from fastbcubed.cells.boxed import close_box, locate_in_box
from fastbcubed.cells.condensing import PairTable
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.if_alone import IfAlone
from fastbcubed.cells.planning import Plan, plan_parts
from fastbcubed.cells.true_rows import TrueRows
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources.keys import widened


def build_cells(
    rows: Alignment,
    pool: Pool,
    *,
    weighting: str,
    outside: bool,
    plan: Plan | None = None,
    truth: TrueRows | None = None,
) -> Contingency:
    """Build the cells of aligned rows, as planned; which cell a row is in is worked out when that is asked for.

    `truth` has the rows in their parts already, if several predictions share them.
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
    """Build the cells of rows by the keys of their clusters; `absent` are the keys for "not on this side", if any.

    A plan is followed as it stands; without one, rows are condensed first where that pays. Keys are int64, or without
    a plan int32.
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
    """Build the cells of rows that `plan_parts` has planned; equal keys, equal cluster.

    The plan's absent keys stand for "not on this side". With `outer`, margins are counts, so that weights serve the
    mean alone; with `outside`, items that only the prediction has are false positives for those they are with.
    `truth` has the rows in their parts already, if several predictions share them.
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
    """Return the cell of each row among `Built.cells`; it repeats `build` with row numbers.

    Parameters are those of `build`. Shape (n_rows,).
    """
    ends = np.cumsum([true.size for true, *_ in rows]).tolist()
    numbered = [
        (true, pred, np.arange(end - true.size, end), None)
        for (true, pred, *_), end in zip(rows, ends, strict=True)
    ]
    by_part, bounds = stages.partition_rows(plan, numbered, plan.records["numbered row"], pool)
    return stages.locate_rows(plan, by_part, bounds, pool, skip=0, bits=plan.bits)
