"""Aggregation: from a score of each cell to its mean over all items; of groups of them in `groups`.

A score of items is lifted to any set of them by the weighted mean. Sums run over blocks of fixed
length and then exactly over the blocks, so that they do not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fastbcubed import kernels
from fastbcubed.cells.confusion import Confusion, TrueNegatives, confusion
from fastbcubed.cells.contingency import CELL_BLOCK, Contingency
from fastbcubed.cells.own_weights import weigh_rows
from fastbcubed.cells.records import add_products
from fastbcubed.errors import MetricError, WeightError
from fastbcubed.metrics.formulas import WEIGHT, apply_formula
from fastbcubed.metrics.leaving_out import LeavingOut
from fastbcubed.metrics.metric import Floats, Metric
from fastbcubed.runtime.pool import Pool, blocks


def with_needs(metrics: Iterable[Metric], beta: float) -> list[Metric]:
    """Return the scores together with those that they are combined from."""
    given = {metric.name: metric for metric in metrics}
    found: dict[str, Metric] = {}
    for metric in given.values():
        for need in metric.needs:
            found.setdefault(need.name, given.get(need.name) or need.at(beta))
        found.setdefault(metric.name, metric)
    return list(found.values())


def overall(
    contingency: Contingency, metrics: Iterable[Metric], *, beta: float = 1.0, pool: Pool | None = None
) -> dict[str, float]:
    """Return scores over all items, by name and in the order given; on this thread alone without a pool."""
    chosen = list(metrics)
    pool = pool or Pool(1)
    means = item_means([item_sums(contingency, with_needs(chosen, beta), pool)])
    return finished(chosen, means, beta, contingency, pool)


def finished(
    chosen: Iterable[Metric],
    means: Mapping[str, float],
    beta: float,
    contingency: Contingency | None,
    pool: Pool,
) -> dict[str, float]:
    """Return scores over all items from the means of those that items have.

    `means` come from `item_means`, of the scores and all they need. `contingency` has all cells; it is None if
    no score is computed from them as a whole.
    """
    result = {}
    for metric in chosen:
        if metric.combine is not None:
            result[metric.name] = float(metric.combine(means, beta))
        elif metric.score is not None:
            assert contingency is not None
            result[metric.name] = float(metric.score(contingency, pool))
        else:
            result[metric.name] = means[metric.name]
    return result


def item_means(sums: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the means over items of the scores that were summed over one or more sets of cells."""
    parts = [part for part in sums if part]
    if not parts:
        return {}
    added = {name: math.fsum(part[name] for part in parts) for name in parts[0]}
    total = added.pop(WEIGHT)
    if not 0 < total < math.inf:
        raise WeightError(f"the weights of the scored items add up to {total}; there is no mean over them")
    return {name: value / total for name, value in added.items()}


def item_sums(
    contingency: Contingency, metrics: Iterable[Metric], pool: Pool, *, whole: bool = True
) -> dict[str, float]:
    """Return the weighted sum over items of every score that items have, and of their weight as `WEIGHT`.

    Without `whole`, the contingency has not all cells of the true clusters, and only formulas are used.
    """
    from fastbcubed.metrics import compiled

    lifted = [m for m in metrics if m.formula is not None]
    outer = contingency.weighting == "outer"
    direct = {m.name: m.mean(contingency, pool) for m in lifted if m.mean and whole and not outer}
    by_row = [m for m in lifted if m.name not in direct and _is_summed_by_row(contingency, m)]
    if by_row:
        direct |= item_means(weigh_rows(contingency, LeavingOut(by_row), pool).sums)
    lifted = [m for m in lifted if m.name not in direct]
    if not lifted:
        return _sums_of_means(direct, contingency) if direct else {}
    by_item = [m for m in lifted if differs_within_cells(contingency, m)]
    common = compiled_formulas(lifted)
    others = [m for m in lifted if m.name not in common and m not in by_item]
    negatives = _negatives(contingency, others)
    of_items = [cell_scores(contingency, m) for m in by_item]
    cells = contingency.cells
    formulas = np.array(list(common.values()), np.int64)

    def add_up(first: int, last: int) -> list[float]:
        runs = np.empty((-(-(last - first) // kernels.runs.RUN), 1 + formulas.size))
        compiled.sum_scores(cells, first, last, outer, formulas, runs)
        sums = [math.fsum(column) for column in runs.T.tolist()]
        if others or of_items:
            scores = [each[first:last] for each in of_items]
            scores += _scores_of(contingency, others, first, last, negatives)
            weight = np.ascontiguousarray(contingency.weight[first:last])
            sums += [add_products(weight, each) for each in scores]
        return sums

    sums = contingency.map(add_up, pool)
    names = [WEIGHT, *common, *(m.name for m in (*by_item, *others))]
    found = {name: math.fsum(column) for name, column in zip(names, zip(*sums, strict=True), strict=True)}
    return found | {name: mean * found[WEIGHT] for name, mean in direct.items()}


def compiled_formulas(metrics: Iterable[Metric]) -> dict[str, int]:
    """Return where the formulas stand among those that are compiled, by the name of the score, of those that do."""
    from fastbcubed.metrics import compiled

    found = {m.name: compiled.position(m.formula) for m in metrics if not (m.leave_one_out or m.matrix)}
    return {name: position for name, position in found.items() if position is not None}


def _sums_of_means(means: Mapping[str, float], contingency: Contingency) -> dict[str, float]:
    """Return what `item_sums` does, where all means are known."""
    total = contingency.total_weight
    return {WEIGHT: total} | {name: mean * total for name, mean in means.items()}


def _scores_of(
    contingency: Contingency, metrics: list[Metric], start: int, stop: int, tn: TrueNegatives | None
) -> list[Floats]:
    """Return scores of a range of cells, worked out block by block."""
    found = [np.empty(stop - start) for _ in metrics]
    for a, b in blocks(stop - start, CELL_BLOCK) if metrics else ():
        block = block_scores(contingency, metrics, start + a, start + b, tn)
        for scores, values in zip(found, block, strict=True):
            scores[a:b] = values
    return found


def differs_within_cells(contingency: Contingency, metric: Metric) -> bool:
    """Tell whether items of one cell can differ in this score: if each leaves out its own weight."""
    return metric.leave_one_out and contingency.weighted and contingency.weighting == "pointwise"


def _is_summed_by_row(contingency: Contingency, metric: Metric) -> bool:
    """Tell whether a mean over items is added up row by row, so that no row is told its score."""
    if not differs_within_cells(contingency, metric) or contingency.overlapping:
        return False
    at_hand = contingency.rows is not None and contingency.rows.others is None
    plain = not (metric.uses_tn or metric.matrix)
    return at_hand and plain and metric.name not in contingency.known_scores


def takes_items(contingency: Contingency, metric: Metric, beta: float) -> bool:
    """Tell whether this score, or one that it is combined from, takes the items themselves, beside the cells."""
    known = contingency.known_scores
    needed = (each for each in with_needs([metric], beta) if each.name not in known)
    return any(differs_within_cells(contingency, each) for each in needed)


def _negatives(contingency: Contingency, metrics: Iterable[Metric]) -> TrueNegatives | None:
    return TrueNegatives(contingency) if any(m.uses_tn for m in metrics) else None


def block_scores(
    contingency: Contingency, metrics: list[Metric], start: int, stop: int, tn: TrueNegatives | None
) -> list[Floats]:
    """Return the scores of one block of cells, for scores that the items of a cell share."""
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
    totals, errors = np.zeros(contingency.n_cells), np.zeros(contingency.n_cells)
    kernels.sums.add_by_code(rows.cell, rows.weight, item_scores(contingency, metric), None, totals, errors)
    whole = np.zeros(contingency.n_cells), np.zeros(contingency.n_cells)
    kernels.sums.add_by_code(rows.cell, rows.weight, np.ones(rows.cell.size), None, *whole)
    return (totals + errors) / (whole[0] + whole[1])


def item_scores(contingency: Contingency, metric: Metric) -> Floats:
    """Return a score of each row, NaN where it is not scored. Shape (n_rows,)."""
    rows = _rows(contingency, metric)
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
    """Return a score of one scored row, without working out the others where items of a cell share it."""
    if differs_within_cells(contingency, metric):
        return float(item_scores(contingency, metric)[row])
    cell = int(_rows(contingency, metric).cell[row])
    return float(_scores_of(contingency, [metric], cell, cell + 1, _negatives(contingency, [metric]))[0][0])


def item_matrix(contingency: Contingency, metric: Metric) -> Confusion:
    """Return the confusion matrix of each row without the item itself; the weights differ by item.

    The sum over its cell is kept with twice the digits of a float, so that taking the item out of
    it leaves the others' weight exactly, however small.
    """
    rows = _rows(contingency, metric)
    cell = np.maximum(rows.cell, 0)
    if rows.others is not None:
        return Confusion(*contingency.among_others(rows.others, cell), None)
    totals, errors = np.zeros(contingency.n_cells), np.zeros(contingency.n_cells)
    kernels.sums.add_by_code(rows.cell, rows.weight, np.ones(rows.cell.size), None, totals, errors)
    tp = (totals[cell] - rows.weight) + errors[cell]
    tp[contingency.n[cell] == 1] = 0.0
    tn = TrueNegatives(contingency)()[cell] if metric.uses_tn else None
    return Confusion(*contingency.among_others(tp, cell), tn)


def _rows(contingency: Contingency, metric: Metric) -> Any:
    if contingency.rows is None:
        raise MetricError(
            f"{metric.name} with weights needs the items themselves, and this contingency was made from "
            'cells alone; build it from labels, or with weighting="outer"'
        )
    return contingency.rows
