"""Means of scores over all items and over groups of items, computed from the score of each cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.cell_parts import WeighedItems, weigh_rows
from fastbcubed.cells.contingency import (
    CELL_BLOCK,
    Confusion,
    Contingency,
    TrueNegatives,
    add_products,
    add_up,
    confusion,
)
from fastbcubed.errors import MetricError, WeightError, arg, calling
from fastbcubed.inputs.arrays import read_only
from fastbcubed.metrics.bcubed import LOSSES, losses_of
from fastbcubed.metrics.metric import Metric, Sums
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Floats

#: The key of the sum of weights in mappings of sums by score.
WEIGHT = ""


def apply_formula(metric: Metric, matrix: Confusion) -> Floats:
    """Return a formula's score of each confusion matrix, as float64; the formula cannot modify the matrices."""
    assert metric.formula is not None
    for part in matrix:
        if part is not None:
            part.flags.writeable = False
    try:
        with calling(f"the formula {metric.name}"):
            scores = np.asarray(metric.formula(*matrix))  # type: ignore[arg-type]
    except MetricError as error:
        if matrix.tn is None and "NoneType" in str(error):
            raise metric.without_negatives() from error
        raise
    if scores.dtype.kind not in "biuf" or scores.shape not in (matrix.tp.shape, ()):
        raise MetricError(
            f"the formula {metric.name} gave {scores.dtype} of shape {scores.shape} for matrices of shape "
            f"{matrix.tp.shape}; a formula (tp, fp, fn, tn) gives one real number for each"
        )
    if not scores.ndim:
        return np.full(matrix.tp.shape, float(scores))
    return np.asarray(scores, np.float64)


class LeavingOut:
    """Scores whose formula takes an item's confusion matrix without the item, and does not take true negatives."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    @property
    def names(self) -> list[str]:
        """The names of the scores."""
        return [metric.name for metric in self._metrics]

    def of(self, items: WeighedItems) -> list[Floats]:
        """Return the scores of items, each of shape (n_items,)."""
        matrix = Confusion(items.others, items.fp, items.fn, None)
        return [apply_formula(metric, matrix) for metric in self._metrics]

    def sums(self, items: WeighedItems, scores: Sequence[Floats]) -> dict[str, float]:
        """Return the sum of the items' weights and the sums of weight * score, by name."""
        weighed = [np.ones(items.weight.size), *scores]
        return {
            name: add_products(items.weight, values)
            for name, values in zip([WEIGHT, *self.names], weighed, strict=True)
        }


def with_needs(metrics: Iterable[Metric], beta: float) -> list[Metric]:
    """Return the scores and the scores that they are combined from, each once."""
    given = {metric.name: metric for metric in metrics}
    found: dict[str, Metric] = {}
    for metric in given.values():
        for need in metric.needs:
            found.setdefault(need.name, given.get(need.name) or need.at(beta))
        found.setdefault(metric.name, metric)
    return list(found.values())


def finished(
    chosen: Iterable[Metric], means: Mapping[str, float], beta: float, sums: Sums
) -> dict[str, float]:
    """Return scores over all items, from means over items and from the sums over all cells.

    `means` are the result of `item_means` for these scores and all that they need.
    """
    result = {}
    for metric in chosen:
        if metric.combine is not None:
            result[metric.name] = _number(metric, partial(metric.combine, means, beta))
        elif metric.overall_only:
            result[metric.name] = _number(metric, partial(metric.of_sums, sums))
        else:
            result[metric.name] = means[metric.name]
    return result


def _number(metric: Metric, score: Callable[[], Any]) -> float:
    """Return a score over all items as a float; raise MetricError if its function returns no number."""
    with calling(f"the score {metric.name}"):
        value = score()
        if isinstance(value, str):
            raise TypeError(f"{value!r} is not a number")
        return float(value)


def item_means(sums: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the means over items of scores, given their sums over one or more sets of cells."""
    parts = [part for part in sums if part]
    if not parts:
        return {}
    added = {name: math.fsum(part[name] for part in parts) for name in parts[0]}
    total = added.pop(WEIGHT)
    if not 0 < total < math.inf:
        raise WeightError(f"the weights of the scored items add up to {total}; there is no mean over them")
    return {name: value / total for name, value in added.items()}


def item_sums(
    contingency: Contingency, metrics: Iterable[Metric], pool: Pool, sums: Sums | None = None
) -> dict[str, float]:
    """Return the sum of weight * score over items for every score that items have, and the sum of weights as `WEIGHT`.

    If `sums` over all cells are given, means that follow from them are not computed from items.
    """
    from fastbcubed.metrics import compiled

    lifted = [m for m in metrics if m.formula is not None]
    outer = contingency.weighting == "outer"
    direct = {m.name: m.of_sums(sums) for m in lifted if m.sums and sums is not None and not outer}
    varying = contingency.weighted and not outer  # otherwise all items of a cell have the same score
    by_row = [m for m in lifted if varying and m.name not in direct and _is_summed_by_row(contingency, m)]
    if by_row:
        direct |= item_means(weigh_rows(contingency, LeavingOut(by_row), pool).sums)
    lifted = [m for m in lifted if m.name not in direct]
    if not lifted:
        if not direct:
            return {}
        total = contingency.total_weight
        return {WEIGHT: total} | {name: mean * total for name, mean in direct.items()}
    by_item = [m for m in lifted if varying and differs_within_cells(contingency, m)]
    common = compiled_formulas(lifted)
    others = [m for m in lifted if m.name not in common and m not in by_item]
    negatives = _negatives(contingency, others)
    of_items = [cell_scores(contingency, m) for m in by_item]
    cells = contingency.cells
    formulas = np.array(list(common.values()), np.int64)

    def add_up(first: int, last: int) -> list[float]:
        runs = np.empty((-(-(last - first) // kernels.partition.RUN), 1 + formulas.size))
        compiled.sum_scores(cells, first, last, outer, formulas, runs)
        added = [math.fsum(column) for column in runs.T.tolist()]
        if others or of_items:
            scores = [each[first:last] for each in of_items]
            scores += _scores_of(contingency, others, first, last, negatives)
            weight = np.ascontiguousarray(contingency.weight[first:last])
            added += [add_products(weight, each) for each in scores]
        return added

    ranges = contingency.map(add_up, pool)
    names = [WEIGHT, *common, *(m.name for m in (*by_item, *others))]
    found = {name: math.fsum(column) for name, column in zip(names, zip(*ranges, strict=True), strict=True)}
    return found | {name: mean * found[WEIGHT] for name, mean in direct.items()}


def compiled_formulas(metrics: Iterable[Metric]) -> dict[str, int]:
    """Return the position of each score's compiled formula, by name, for the scores that have one."""
    from fastbcubed.metrics import compiled

    known = compiled.POSITIONS
    plain = [m for m in metrics if not (m.leave_one_out or m.matrix)]
    return {m.name: known[id(m.formula)] for m in plain if id(m.formula) in known}


def _scores_of(
    contingency: Contingency, metrics: list[Metric], start: int, stop: int, tn: TrueNegatives | None
) -> list[Floats]:
    """Return the scores of the cells start..stop, computed block by block."""
    found = [np.empty(stop - start) for _ in metrics]
    for a, b in blocks(stop - start, CELL_BLOCK) if metrics else ():
        block = block_scores(contingency, metrics, start + a, start + b, tn)
        for scores, values in zip(found, block, strict=True):
            scores[a:b] = values
    return found


def differs_within_cells(contingency: Contingency, metric: Metric) -> bool:
    """Return whether the items of a cell can differ in this score, because each leaves out its own weight."""
    return metric.leave_one_out and contingency.weighted and contingency.weighting == "pointwise"


def _is_summed_by_row(contingency: Contingency, metric: Metric) -> bool:
    """Return whether the mean over items is summed row by row, without storing a score for each row."""
    if not differs_within_cells(contingency, metric) or contingency.overlapping:
        return False
    at_hand = contingency.rows is not None and contingency.rows.others is None
    plain = not (metric.uses_tn or metric.matrix)
    return at_hand and plain and metric.name not in contingency.known_scores


def takes_items(contingency: Contingency, metric: Metric, beta: float) -> bool:
    """Return whether this score, or a score that it is combined from, needs the weight of each item, not of cells."""
    known = contingency.known_scores
    needed = (each for each in with_needs([metric], beta) if each.name not in known)
    return any(differs_within_cells(contingency, each) for each in needed)


def _negatives(contingency: Contingency, metrics: Iterable[Metric]) -> TrueNegatives | None:
    return TrueNegatives(contingency) if any(m.uses_tn for m in metrics) else None


def block_scores(
    contingency: Contingency, metrics: list[Metric], start: int, stop: int, tn: TrueNegatives | None
) -> list[Floats]:
    """Return the scores of one block of cells, for scores that all items of a cell share."""
    matrix = confusion(contingency, start, stop, tn=tn)
    others = matrix
    if any(m.leave_one_out for m in metrics):
        n = contingency.n[start:stop].astype(np.float64)
        others = Confusion(*contingency.among_others(n - 1.0, slice(start, stop)), matrix.tn)
    found = []
    for m in metrics:
        its = others if m.leave_one_out else matrix
        if m.matrix is not None:
            tp, fp, fn = (np.ascontiguousarray(x[start:stop]) for x in m.matrix(contingency))
            its = Confusion(tp, fp, fn, None)
        found.append(apply_formula(m, its))
    return found


def cell_scores(contingency: Contingency, metric: Metric) -> Floats:
    """Return the mean of a score over the items of each cell. Shape (n_cells,)."""
    if not differs_within_cells(contingency, metric):
        tn = _negatives(contingency, [metric])
        return _scores_of(contingency, [metric], 0, contingency.n_cells, tn)[0]
    if metric.name in contingency.known_scores:
        return np.ascontiguousarray(contingency.known_scores[metric.name])
    rows = _rows(contingency, metric)
    factors = item_scores(contingency, metric), np.ones(rows.cell.size)
    scores, whole = (np.add(*add_up(rows.cell, contingency.n_cells, rows.weight, each)) for each in factors)
    return scores / whole


def item_scores(contingency: Contingency, metric: Metric, which: Codes | None = None) -> Floats:
    """Return a score of each row, NaN where it is not scored, or of some scored rows. Shape (n_rows,)."""
    rows = _rows(contingency, metric)
    if which is not None:
        if differs_within_cells(contingency, metric):
            return item_scores(contingency, metric)[which]
        of_cell, found = cell_scores(contingency, metric), np.empty(which.size)
        for a, b in blocks(which.size, CELL_BLOCK):
            found[a:b] = of_cell[rows.cell[which[a:b]]]
        return found
    scores = np.full(rows.cell.size, np.nan)
    if not differs_within_cells(contingency, metric):
        scored = rows.cell >= 0
        scores[scored] = cell_scores(contingency, metric)[rows.cell[scored]]
        return scores
    matrix = item_matrix(contingency, metric)
    for a, b in blocks(rows.cell.size, CELL_BLOCK):
        block = Confusion(*(None if x is None else x[a:b] for x in matrix))  # type: ignore[arg-type]
        scores[a:b] = apply_formula(metric, block)
    scores[rows.cell < 0] = np.nan
    return scores


def item_score(contingency: Contingency, metric: Metric, row: int) -> float:
    """Return the score of one scored row; only its cell is computed where all items of a cell share the score."""
    if differs_within_cells(contingency, metric):
        return float(item_scores(contingency, metric)[row])
    cell = int(_rows(contingency, metric).cell[row])
    return float(_scores_of(contingency, [metric], cell, cell + 1, _negatives(contingency, [metric]))[0][0])


def item_matrix(contingency: Contingency, metric: Metric) -> Confusion:
    """Return the confusion matrix of each row without the row's own item.

    The sum of weights of a cell is kept with twice the digits of a float, so that subtracting an item leaves the
    weight of the others exactly, however small it is.
    """
    rows = _rows(contingency, metric)
    cell = np.maximum(rows.cell, 0)
    if rows.others is not None:
        return Confusion(*contingency.among_others(rows.others, cell), None)
    totals, errors = add_up(rows.cell, contingency.n_cells, rows.weight, np.ones(rows.cell.size))
    tp = (totals[cell] - rows.weight) + errors[cell]
    tp[contingency.n[cell] == 1] = 0.0
    tn = TrueNegatives(contingency)()[cell] if metric.uses_tn else None
    return Confusion(*contingency.among_others(tp, cell), tn)


def _rows(contingency: Contingency, metric: Metric) -> Any:
    if contingency.rows is None:
        raise MetricError(
            f"{metric.name} with weights needs the items themselves, but this contingency table was made from "
            f"cells only; build it from labels, or with {arg('weighting', 'outer')}"
        )
    return contingency.rows


def means_by_cluster(
    contingency: Contingency,
    side: str,
    metrics: Iterable[Metric],
    *,
    beta: float,
    total: float | None = None,
) -> dict[str, NDArray[Any]]:
    """Return items, weight and mean scores of the clusters of a side, by code; see `group_means`."""
    codes, n_clusters, cells = contingency.memberships(side)
    return group_means(contingency, codes, n_clusters, metrics, beta=beta, cells=cells, total=total)


def group_means(
    contingency: Contingency,
    codes: NDArray[np.integer],
    n_groups: int,
    metrics: Iterable[Metric],
    *,
    beta: float,
    by_row: bool = False,
    cells: NDArray[np.int64] | None = None,
    total: float | None = None,
) -> dict[str, NDArray[Any]]:
    """Return items, weight and mean scores of groups of cells or of rows.

    `codes` are the group of each cell, negative for none; or of each row if `by_row`; or, where cells are in several
    groups, of each entry of `cells`. Scores that only a whole clustering has are left out. The result has the keys
    "n_items" and "weight", the losses if the `total` weight that they are relative to is given, then the scores, each
    of shape (n_groups,); scores are NaN for a group without items.
    """
    wanted = grouped(metrics)
    needed = summed(wanted, beta, losses=total is not None)
    sums = group_sums(contingency, codes, n_groups, needed, by_row=by_row, cells=cells)
    whole = {name: np.add(each, error, out=each) for name, (each, error) in sums.items()}
    return means_of_groups(whole, wanted, beta, total)


def grouped(metrics: Iterable[Metric]) -> list[Metric]:
    """Return the scores that are also defined for groups of items."""
    return [m for m in metrics if not m.overall_only]


def summed(metrics: Iterable[Metric], beta: float, *, losses: bool) -> list[Metric]:
    """Return the scores of items that the scores of groups are computed from, including the losses if requested."""
    found = {m.name: m for m in with_needs(metrics, beta) if m.formula is not None}
    return list((found | {m.name: m for m in LOSSES.values() if losses}).values())


def group_sums(
    contingency: Contingency,
    codes: NDArray[np.integer],
    n_groups: int,
    metrics: Iterable[Metric],
    *,
    by_row: bool = False,
    cells: NDArray[np.int64] | None = None,
) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return the sums that the means of groups are computed from, each with its rounding error, of shape (n_groups,).

    Parameters are those of `group_means`; all scores must have a formula. The keys are "n_items", `WEIGHT`, then the
    name of each score for the sum of weight * score.
    """
    codes = np.ascontiguousarray(codes)
    if not by_row and cells is None:
        return _sums_of_cells(contingency, codes, n_groups, list(metrics))
    counts = np.zeros(n_groups, np.int64)
    rows, n = contingency.rows, contingency.n
    if by_row:
        assert rows is not None
        cells, n, weight = rows.cell, rows.n, rows.weight
        codes = np.where(cells < 0, -1, codes)
    else:
        n, weight = n[cells], contingency.weight[cells]
    kernels.sums.count_by_code(codes, n, counts)

    def add(scores: Floats, per_row: bool = False) -> tuple[Floats, Floats]:
        totals, errors = np.zeros(n_groups), np.zeros(n_groups)
        kernels.sums.add_by_code(codes, weight, scores, None if per_row else cells, totals, errors)
        return totals, errors

    sums = {"n_items": (counts, np.zeros_like(counts)), WEIGHT: add(np.ones(contingency.n_cells))}
    for metric in metrics:
        if by_row and differs_within_cells(contingency, metric):
            sums[metric.name] = add(item_scores(contingency, metric), per_row=True)
        else:
            sums[metric.name] = add(cell_scores(contingency, metric))
    return sums


def _sums_of_cells(
    contingency: Contingency, codes: NDArray[np.integer], n_groups: int, metrics: list[Metric]
) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return the sums of groups where each cell is in at most one; compiled scores take one pass over the cells."""
    from fastbcubed.metrics import compiled

    common = compiled_formulas(metrics)
    counts, shape = np.zeros(n_groups, np.int64), (1 + len(common), n_groups)
    totals, errors = np.zeros(shape), np.zeros(shape)  # two arrays: tables keep only the totals in memory
    cells = read_only(np.ascontiguousarray(contingency.cells))
    outer, formulas = contingency.weighting == "outer", np.array(list(common.values()), np.int64)
    compiled.add_by_group(cells, codes, outer, formulas, counts, totals, errors)
    found = dict(zip([WEIGHT, *common], zip(totals, errors, strict=True), strict=True))
    for metric in (m for m in metrics if m.name not in common):
        found[metric.name] = add_up(codes, n_groups, contingency.weight, cell_scores(contingency, metric))
    names = [WEIGHT, *(m.name for m in metrics)]
    return {"n_items": (counts, np.zeros_like(counts))} | {name: found[name] for name in names}


def means_of_groups(
    sums: Mapping[str, NDArray[Any]], metrics: Iterable[Metric], beta: float, total: float | None
) -> dict[str, NDArray[Any]]:
    """Return the means of groups from the sums of `group_sums`, overwriting the latter."""
    whole = sums[WEIGHT]
    losses = {} if total is None else losses_of(sums, total)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {
            name: np.divide(added, whole, out=added)
            for name, added in sums.items()
            if name not in ("n_items", WEIGHT)
        }
        table: dict[str, NDArray[Any]] = {"n_items": sums["n_items"], "weight": whole, **losses}
        for metric in metrics:
            table[metric.name] = _combined(metric, means, beta)
    return table


def _combined(metric: Metric, means: Mapping[str, Floats], beta: float) -> Floats:
    if metric.combine is None:
        return means[metric.name]
    return np.asarray(metric.combine(means, beta), np.float64)
