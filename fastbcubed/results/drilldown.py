"""Drilling down: every cluster, every item with its confusion matrix, and one item with its four sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.confusion import TrueNegatives
from fastbcubed.cells.contingency import SIDES, Contingency, Rows
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.items import Items
from fastbcubed.sources.arrays import table_of

__all__ = ["by_code", "cluster_columns", "item_columns", "one_item", "with_items"]


def cluster_columns(
    table: Contingency, side: str, metrics: list[Metric], beta: float
) -> dict[str, NDArray[Any]]:
    """Return code, n_items, weight, n_parts, exact and the scores of every cluster with a scored item."""
    return with_items(0, by_code(table, side, metrics, beta))


def with_items(first: int, columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return those of the clusters from a code on that have a scored item, and their codes as "code"."""
    there = np.flatnonzero(columns["n_items"])
    return {"code": there + first, **{name: values[there] for name, values in columns.items()}}


def by_code(table: Contingency, side: str, metrics: list[Metric], beta: float) -> dict[str, NDArray[Any]]:
    """Return n_items, weight, n_parts, exact and the scores of every cluster by code."""
    groups = aggregation.means_by_cluster(table, side, metrics, beta=beta)
    scores = {m.name: groups[m.name] for m in metrics if m.name in groups}
    return {
        "n_items": groups["n_items"],
        "weight": groups["weight"],
        "n_parts": table.n_met(side),
        "exact": table.exact(side),
    } | scores


def item_columns(table: Contingency, rows: Rows, metrics: list[Metric]) -> pa.Table:
    """Return row, weight, tp, fp, fn, tn (null under "outside") and the scores of every scored item.

    Of overlapping clusterings true_mates and pred_mates in place of the matrix.
    """
    here = np.flatnonzero(rows.cell >= 0)
    cell = rows.cell[here]
    columns: dict[str, Any] = {"row": here, "weight": rows.weight[here]}
    if table.overlapping:
        columns |= {f"{side}_mates": table.mates(side)[cell] for side in SIDES}
    else:
        columns |= {"tp": table.tp[cell], "fp": table.fp[cell], "fn": table.fn[cell]}
        columns["tn"] = pa.nulls(here.size, pa.float64()) if table.outside else TrueNegatives(table)()[cell]
    for metric in metrics:
        if metric.item_name and metric.item_name not in columns:
            columns[metric.item_name] = aggregation.item_scores(table, metric)[here]
    return table_of(columns)


def one_item(
    table: Contingency, rows: Rows, items: Items, metrics: list[Metric], row: int, members: int
) -> dict[str, Any]:
    """Return the item of a scored row as `Evaluation.item` does, with so many members of each set."""
    cell = int(rows.cell[row])
    scored = rows.cell >= 0
    same_true = scored & items.same_label("true", row)
    same_pred = items.same_label("pred", row)
    if not table.outside:
        same_pred &= scored
    sets = {"tp": same_true & same_pred, "fp": same_pred & ~same_true, "fn": same_true & ~same_pred}
    if not table.outside:
        sets["tn"] = scored & ~same_true & ~same_pred
    own = np.array([row])
    result: dict[str, Any] = {
        "item": items.ids(own)[0].as_py(),
        "true_cluster": items.labels("true", own)[0].as_py(),
        "pred_cluster": items.labels("pred", own)[0].as_py(),
        "weight": float(rows.weight[row]),
    }
    if table.overlapping:
        result |= {f"{side}_mates": int(table.mates(side)[cell]) for side in SIDES}
    else:
        result |= {"tp": float(table.tp[cell]), "fp": float(table.fp[cell]), "fn": float(table.fn[cell])}
        result["tn"] = None if table.outside else float(TrueNegatives(table)(cell, cell + 1)[0])
    for metric in metrics:
        if metric.item_name:
            result[metric.item_name] = aggregation.item_score(table, metric, row)
    result["members"] = {
        name: {
            "n_items": int(np.count_nonzero(mask)),
            "first": items.ids(np.flatnonzero(mask)[:members]).to_pylist(),
        }
        for name, mask in sets.items()
    }
    return result
