"""From a score of each cell to means over all items and over groups of them."""

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
from fastbcubed.types import Floats

#: The name of the sum of weights among sums of scores.
WEIGHT = ""


def apply_formula(metric: Metric, matrix: Confusion) -> Floats:
    """Call the formula of a score, which gives one float per matrix and leaves the matrix as it is."""
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
    """Scores with a formula that gets the matrix of an item without the item; none of them takes true negatives."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [metric.name for metric in self._metrics]

    def of(self, items: WeighedItems) -> list[Floats]:
        """Return the scores of items, each of shape (n_items,)."""
        matrix = Confusion(items.others, items.fp, items.fn, None)
        return [apply_formula(metric, matrix) for metric in self._metrics]

    def sums(self, items: WeighedItems, scores: Sequence[Floats]) -> dict[str, float]:
        """Return the contributions of items to the sums of weights and of weight * score, by name."""
        weighed = [np.ones(items.weight.size), *scores]
        return {
            name: add_products(items.weight, values)
            for name, values in zip([WEIGHT, *self.names], weighed, strict=True)
        }


def with_needs(metrics: Iterable[Metric], beta: float) -> list[Metric]:
    """Return the scores together with those that they are combined from."""
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
    """Return scores over all items from the means of those that items have, and the sums over all cells.

    `means` come from `item_means`, of the scores and all they need.
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
    """Return a score over all items; raise MetricError if its function, which may be the user's own, gives none."""
    with calling(f"the score {metric.name}"):
        value = score()
        if isinstance(value, str):
            raise TypeError(f"{value!r} is no number")
        return float(value)


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
    contingency: Contingency, metrics: Iterable[Metric], pool: Pool, sums: Sums | None = None
) -> dict[str, float]:
    """Return the weighted sum over items of every score that items have, and of their weight as `WEIGHT`.

    Means that the `sums` over all cells give, where there are any, are not added up.
    """
    from fastbcubed.metrics import compiled

    lifted = [m for m in metrics if m.formula is not None]
    outer = contingency.weighting == "outer"
    direct = {m.name: m.of_sums(sums) for m in lifted if m.sums and sums is not None and not outer}
    varying = contingency.weighted and not outer  # only then can items of one cell differ
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
    """Return where the formulas stand among those that are compiled, by the name of the score, of those that do."""
    from fastbcubed.metrics import compiled

    known = compiled.POSITIONS
    plain = [m for m in metrics if not (m.leave_one_out or m.matrix)]
    return {m.name: known[id(m.formula)] for m in plain if id(m.formula) in known}


def _scores_of(
    contingency: Contingency, metrics: list[Metric], start: int, stop: int, tn: TrueNegatives | None
) -> list[Floats]:
    """Return scores of a range of cells, computed block by block."""
    found = [np.empty(stop - start) for _ in metrics]
    for a, b in blocks(stop - start, CELL_BLOCK) if metrics else ():
        block = block_scores(contingency, metrics, start + a, start + b, tn)
        for scores, values in zip(found, block, strict=True):
            scores[a:b] = values
    return found


def differs_within_cells(contingency: Contingency, metric: Metric) -> bool:
    """Return whether items of one cell can differ in this score: whether each leaves out its own weight."""
    return metric.leave_one_out and contingency.weighted and contingency.weighting == "pointwise"


def _is_summed_by_row(contingency: Contingency, metric: Metric) -> bool:
    """Return whether a mean over items is added up row by row, without a score for each row."""
    if not differs_within_cells(contingency, metric) or contingency.overlapping:
        return False
    at_hand = contingency.rows is not None and contingency.rows.others is None
    plain = not (metric.uses_tn or metric.matrix)
    return at_hand and plain and metric.name not in contingency.known_scores


def takes_items(contingency: Contingency, metric: Metric, beta: float) -> bool:
    """Return whether this score, or one that it combines, needs the items in addition to the cells."""
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
    factors = item_scores(contingency, metric), np.ones(rows.cell.size)
    scores, whole = (np.add(*add_up(rows.cell, contingency.n_cells, rows.weight, each)) for each in factors)
    return scores / whole


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
    totals, errors = add_up(rows.cell, contingency.n_cells, rows.weight, np.ones(rows.cell.size))
    tp = (totals[cell] - rows.weight) + errors[cell]
    tp[contingency.n[cell] == 1] = 0.0
    tn = TrueNegatives(contingency)()[cell] if metric.uses_tn else None
    return Confusion(*contingency.among_others(tp, cell), tn)


def _rows(contingency: Contingency, metric: Metric) -> Any:
    if contingency.rows is None:
        raise MetricError(
            f"{metric.name} with weights needs the items themselves, and this contingency was made from "
            f"cells alone; build it from labels, or with {arg('weighting', 'outer')}"
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
    """Return items, weight and mean scores of groups of cells, or of rows.

    `codes` has the group of each cell (or of each row with `by_row`, or of each of `cells`, where cells are in
    several groups), negative for none. Scores that only a whole clustering has are left out. What comes back
    are "n_items", "weight", the losses if the `total` weight is given that they are shares of, then the scores,
    of shape (n_groups,); NaN for a group without items.
    """
    wanted = grouped(metrics)
    needed = summed(wanted, beta, losses=total is not None)
    sums = group_sums(contingency, codes, n_groups, needed, by_row=by_row, cells=cells)
    whole = {name: np.add(each, error, out=each) for name, (each, error) in sums.items()}
    return means_of_groups(whole, wanted, beta, total)


def grouped(metrics: Iterable[Metric]) -> list[Metric]:
    """Return the scores that groups of items have, too."""
    return [m for m in metrics if not m.overall_only]


def summed(metrics: Iterable[Metric], beta: float, *, losses: bool) -> list[Metric]:
    """Return the scores of items that those of groups are made of, and their losses."""
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
    """Return the sums behind the means of groups, with the digits they lack, of shape (n_groups,).

    Parameters are those of `group_means`; the scores have a formula. By name: "n_items", `WEIGHT`, then
    weight * score of each score, added up.
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
    """Return the sums of groups, of which each cell is in one at most; the commonest scores in one pass over cells."""
    from fastbcubed.metrics import compiled

    common = compiled_formulas(metrics)
    counts, shape = np.zeros(n_groups, np.int64), (1 + len(common), n_groups)
    totals, errors = np.zeros(shape), np.zeros(shape)  # apart: tables hold on to the former alone
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
    """Return the means of groups from the sums of `group_sums`, which are overwritten."""
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
