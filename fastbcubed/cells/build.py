"""Cells built from rows in memory: counted in dense tables where keys are few, partitioned otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.rows import Alignment
from fastbcubed.cells import partitioned
from fastbcubed.cells.contingency import Contingency, ScoredRows, set_aside
from fastbcubed.cells.dense import PairTable, close_box, locate_in_box
from fastbcubed.cells.partitioned import (
    IfAlone,
    Parts,
    Plan,
    plan_parts,
)
from fastbcubed.inputs.keys import widened
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_partitions import place_keys, row_blocks, slots_for
from fastbcubed.runtime.threads import Pool


@dataclass(frozen=True, eq=False)
class TrueRows:
    """Rows grouped by part, and numbered by true cluster within each part."""

    plan: Plan  #: must have no heavy clusters
    places: NDArray[np.integer]  #: position of each row when sorted by part; shape (n_rows,)
    codes: NDArray[np.integer]  #: true cluster of the row at each position; shape (n_rows,)
    #: the first row of each cluster of a part, then the other rows; shape (n_rows,)
    order: NDArray[np.integer]
    weights: NDArray[np.float64] | None  #: weight of the row at each position; shape (n_rows,)
    bounds: NDArray[np.int64]  #: where each part begins; shape (n_parts + 1,)
    n_clusters: NDArray[np.int64]  #: shape (n_parts,)

    @classmethod
    def of(
        cls, plan: Plan, true_keys: NDArray[np.int64], weight: NDArray[np.float64] | None, pool: Pool
    ) -> TrueRows:
        """Sort rows stably by part, and number their true clusters."""
        weights = None if weight is None else buffers.empty(plan.n_rows, np.float64)
        rows, places = place_keys(true_keys, plan.bits, pool, (weight, weights), of="rows")
        codes, order, n_clusters = _number(plan, rows.keys, rows.bounds, pool)
        return cls(plan, places, codes, order, weights, rows.bounds, n_clusters)

    def parts(self, pred_keys: NDArray[np.int64], pool: Pool) -> Parts:
        """Build the cells of these rows and a prediction, part by part; see `partitioned.build_parts`."""
        plan, weighted = self.plan, self.weights is not None
        preds: NDArray[np.int64] = buffers.empty(plan.n_rows, np.int64)

        def place(start: int, stop: int) -> None:
            kernels.cells.place_preds(pred_keys, self.places, start, stop, preds)

        pool.map(place, *zip(*row_blocks(plan.n_rows), strict=True), stage="partition rows")
        cells = buffers.empty(plan.n_rows, plan.records["weighted cell" if weighted else "cell"])
        starts, stops = zip(*plan.tasks, strict=True)
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
        return Parts(cells, self.bounds, n_cells, self.n_clusters, targets, histogram, weighted)


def _number(
    plan: Plan, keys: NDArray[np.int64], bounds: NDArray[np.int64], pool: Pool
) -> tuple[NDArray[np.integer], NDArray[np.integer], NDArray[np.int64]]:
    """Return each row's code within its part, the order of rows, and the number of codes in each part."""
    codes, order = buffers.empty(plan.n_rows, plan.code), buffers.empty(plan.n_rows, plan.code)
    n_clusters, most = np.zeros(plan.n_parts, np.int64), int(np.diff(bounds).max())

    def number(first: int, last: int) -> None:
        with pool.workspace(
            "number true clusters",
            lambda: (slots_for(most), np.empty(most, np.int64), np.empty(most, plan.code)),
        ) as space:
            kernels.cells.number_rows(keys, bounds, first, last, space, codes, order, n_clusters)

    pool.map(number, *zip(*plan.tasks, strict=True), stage="number clusters")
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
    with_keys: bool = False,
) -> Contingency:
    """Build the cells of aligned rows by a plan; the cell of each row is computed only on request.

    If several predictions share the rows, `truth` holds the rows already sorted by part. With `with_keys`, the keys of
    the clusters are kept, where possible.
    """
    keys, absent = (rows.true_keys, rows.pred_keys), (rows.absent_true, rows.absent_pred)
    how: dict[str, Any] = {"weighting": weighting, "outside": outside, "plan": plan, "truth": truth}
    return cells_of_keys(*keys, rows.weight, pool, absent=absent, with_keys=with_keys, **how)


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
    with_keys: bool = False,
) -> Contingency:
    """Build the cells of rows from the keys of their clusters; `absent` are the keys for "not on this side", if any.

    A given plan is followed unchanged; without one, rows are preaggregated if that saves time. Keys are int64, or
    int32 without a plan.
    """
    outer, filled = weighting == "outer", None
    pairs = PairTable.of(true_keys, pred_keys) if plan is None else None
    if pairs is not None and not pairs.takes(true_keys, pred_keys):
        true_keys, pred_keys = widened(true_keys, pool), widened(pred_keys, pool)
    counted = None if pairs is None else pairs.count(true_keys, pred_keys, weight, pool)
    if counted is not None and counted.is_box and absent == (None, None):
        built, filled = close_box(counted, pool, outer=outer)
    else:
        if true_keys.dtype != pred_keys.dtype or true_keys.dtype != np.int64:
            true_keys, pred_keys = widened(true_keys, pool), widened(pred_keys, pool)
        rows: Sequence[partitioned.Piece] = [(true_keys, pred_keys, weight, None)]
        stands_for = None
        if counted is not None:
            rows, stands_for = counted.condensed(pool), true_keys.size
        plan = plan or plan_parts([true for true, *_ in rows], *absent, stands_for=stands_for)
        built = build(plan, rows, pool, outer=outer, outside=outside, truth=truth, with_keys=with_keys)

    apart = set_aside(built, outer=outer)  # the cells of items that only one side has
    kept = apart.kept

    def cell_of_rows() -> NDArray[np.int64]:
        with Pool(pool.threads) as threads:
            if pairs is not None and filled is not None:
                return locate_in_box(pairs, filled, true_keys, pred_keys, threads)
            assert plan is not None
            if pairs is None:
                found = locate(plan, rows, threads)
            else:
                places = np.empty(true_keys.size, np.int64)
                met = pairs.count(true_keys, pred_keys, None, threads, places).condensed(threads, places)
                found = locate(plan, met, threads)[places]
            return found if kept is None else np.where(kept, np.cumsum(kept) - 1, -1)[found]

    def first_rows() -> NDArray[np.int64]:
        with Pool(pool.threads) as threads:
            assert plan is not None
            found = locate(plan, rows, threads, first=True)
            return found if kept is None else found[kept]

    found = Contingency(
        apart.cells,
        apart.pred,
        (built.n_true, int(built.pred_base[-1])),
        weighted=weight is not None,
        weighting=weighting,
        outside=outside,
        one_sided=apart.one_sided,
        rows=ScoredRows(cell_of_rows, weight, true_keys.size, first=first_rows if pairs is None else None),
        parts=apart.bounds,
        complete=not built.has_one_sided,
    )
    if kept is None:  # every row is in a cell
        found.__dict__["n_items"] = true_keys.size
    found.recall_if_alone = built.recall_if_alone
    if built.true_keys is not None and built.keys is not None:
        found.cluster_keys = {"true": built.true_keys, "pred": built.keys}
    return found


def build(
    plan: Plan,
    rows: Sequence[partitioned.Piece],
    pool: Pool,
    *,
    outer: bool = False,
    outside: bool = False,
    truth: TrueRows | None = None,
    with_keys: bool = False,
) -> partitioned.Built:
    """Build the cells of rows planned by `plan_parts`; equal keys mean equal clusters.

    The plan's absent keys stand for "not on this side". With `outer`, margins are counts, so that weights affect the
    mean only; with `outside`, prediction-only items are false positives for their mates. If several predictions share
    the rows, `truth` holds the rows already sorted by part.
    """
    if truth is not None:
        parts = truth.parts(rows[0][1], pool)
    else:
        weighted = rows[0][2] is not None
        by_part, bounds = partitioned.partition_rows(plan, rows, plan.row_type(weighted), pool)
        parts = partitioned.build_parts(
            plan, by_part, bounds, pool, weighted=weighted, skip=0, bits=plan.bits, with_keys=with_keys
        )
        del by_part  # so that the rows are freed with `parts`
    base = np.zeros(plan.n_parts, np.int64)  # codes of heavy clusters come first
    regular = 1 << plan.bits
    base[:regular] = plan.heavy.size + np.cumsum(parts.n_clusters[:regular]) - parts.n_clusters[:regular]
    n_true = plan.heavy.size + int(parts.n_clusters[:regular].sum())
    sums = (
        partitioned.add_heavy_sums([partitioned.heavy_sums(plan, parts, pool, outer=outer)])
        if plan.heavy.size
        else None
    )
    change = 0.0
    if plan.absent_pred.size:  # otherwise there are no truth-only items
        alone = IfAlone(outer=outer)
        alone.add(plan, parts, pool)
        change = alone.change()
    arrived, cell_bounds = partitioned.send_cells(plan, parts, base, sums, pool, outer=outer)
    true_keys = parts.keys
    if true_keys is not None and plan.heavy.size:
        true_keys = np.concatenate([plan.heavy, true_keys])
    del parts
    built = partitioned.close_parts(
        plan, arrived, cell_bounds, n_true, pool, outer=outer, outside=outside, with_keys=with_keys
    )
    return replace(built, recall_if_alone=change, true_keys=true_keys)


def locate(
    plan: Plan, rows: Sequence[partitioned.Piece], pool: Pool, *, first: bool = False
) -> NDArray[np.int64]:
    """Return the cell of each row among `Built.cells`, or the first row of each cell, by repeating `build`.

    Parameters are those of `build`; row numbers take the place of weights. Shape (n_rows,), or (n_cells,) if `first`.
    """
    ends = np.cumsum([true.size for true, *_ in rows]).tolist()
    numbered = [
        (true, pred, np.arange(end - true.size, end), None)
        for (true, pred, *_), end in zip(rows, ends, strict=True)
    ]
    by_part, bounds = partitioned.partition_rows(plan, numbered, plan.records["numbered row"], pool)
    return partitioned.locate_rows(plan, by_part, bounds, pool, skip=0, bits=plan.bits, first=first)
