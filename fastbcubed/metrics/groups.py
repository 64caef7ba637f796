"""Means over groups of items: clusters, slices, any set of cells or rows.

Sums are added up by group, with the digits that they lack, and divided by the weight of the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.records import add_up
from fastbcubed.metrics.aggregation import (
    cell_scores,
    compiled_formulas,
    differs_within_cells,
    item_scores,
    with_needs,
)
from fastbcubed.metrics.formulas import WEIGHT
from fastbcubed.metrics.losses import LOSSES, losses_of
from fastbcubed.metrics.metric import Floats, Metric
from fastbcubed.sources.arrays import read_only


def cluster_means(contingency: Contingency, side: str, metric: Metric) -> Floats:
    """Return the mean of a score over the items of each cluster, by code.

    Clusters without scored items are left out, and those whose items all have weight 0: they have no mean.
    """
    groups = means_by_cluster(contingency, side, [metric], beta=1.0)
    return np.asarray(groups[metric.name][groups["weight"] > 0])


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
    return means_of_groups({name: each + error for name, (each, error) in sums.items()}, wanted, beta, total)


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
    """Return what the means of groups are made of, as sums and what these lack in digits, of shape (n_groups,).

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
    counts, sums = np.zeros(n_groups, np.int64), np.zeros((2, 1 + len(common), n_groups))
    cells = read_only(np.ascontiguousarray(contingency.cells))
    outer, formulas = contingency.weighting == "outer", np.array(list(common.values()), np.int64)
    compiled.add_by_group(cells, codes, outer, formulas, counts, *sums)
    found = dict(zip([WEIGHT, *common], zip(*sums, strict=True), strict=True))
    for metric in (m for m in metrics if m.name not in common):
        found[metric.name] = add_up(codes, n_groups, contingency.weight, cell_scores(contingency, metric))
    names = [WEIGHT, *(m.name for m in metrics)]
    return {"n_items": (counts, np.zeros_like(counts))} | {name: found[name] for name in names}


def means_of_groups(
    sums: Mapping[str, NDArray[Any]], metrics: Iterable[Metric], beta: float, total: float | None
) -> dict[str, NDArray[Any]]:
    """Return what `group_means` does, from what `group_sums` has added up, which becomes the means."""
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
