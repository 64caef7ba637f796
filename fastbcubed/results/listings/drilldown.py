"""Drilling down: every cluster, every item with its confusion matrix, and one item with its four sets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.confusion import TrueNegatives
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.records import SIDES
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.errors import NotKeptError
from fastbcubed.metrics import aggregation, groups
from fastbcubed.metrics.losses import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.overlap.charging import charged, split_equally
from fastbcubed.overlap.covers import Cover
from fastbcubed.results.items.items import Items
from fastbcubed.results.listings.outcomes import marked, named, outcome_code
from fastbcubed.sources.arrays import table_of


def require_items(table: Contingency, metrics: list[Metric], beta: float) -> None:
    """Raise NotKeptError if a score takes the weights of the items, and these were not kept."""
    known = known_by_cluster(table, metrics, beta)
    for metric in metrics:
        if metric not in known:
            raise NotKeptError(
                f"{metric.name} takes the weight of each item, and the items were not kept; evaluate or save "
                'with keep="items" to have it'
            )


def known_by_cluster(table: Contingency, metrics: list[Metric], beta: float) -> list[Metric]:
    """Return those of some scores that can be worked out from what was kept."""
    if table.rows is not None:
        return metrics
    return [m for m in metrics if not aggregation.takes_items(table, m, beta)]


def listing_of(
    first: int, columns: dict[str, NDArray[Any]], side: str, outcome: str | None = None
) -> pa.Table:
    """Return the clusters from a code on that have a scored item, and this outcome; their codes as "code"."""
    there = columns["n_items"] > 0
    if outcome is not None:
        there &= columns["outcome"] == outcome_code(side, outcome)
    chosen = np.flatnonzero(there)
    return table_of({"code": chosen + first} | named({k: v[chosen] for k, v in columns.items()}, side))


def columns_by_code(
    table: Contingency, side: str, metrics: list[Metric], beta: float, total: float | None = None
) -> dict[str, NDArray[Any]]:
    """Return n_items, weight, n_parts, exact, outcome, losses and scores of every cluster by code.

    `total` is the weight of all items, if `table` has a part of them.
    """
    total = table.total_weight if total is None else total
    scores = groups.means_by_cluster(table, side, metrics, beta=beta, total=total)
    columns = {name: scores.pop(name) for name in ("n_items", "weight")} | {"n_parts": table.n_met(side)}
    if isinstance(table, Cover):
        return columns | {"exact": table.exact(side)} | scores | losses_of_cover(table, side)
    outcome = marked(table, side) >> 1
    return columns | {"exact": outcome == 0, "outcome": outcome} | scores


def losses_of_cover(cover: Cover, side: str) -> dict[str, NDArray[np.float64]]:
    """Return the losses of clusters that overlap: through the clusters themselves, or else split equally."""
    losses = {}
    for name, metric in LOSSES.items():
        if name == LOSS_OF_SIDE[side]:
            losses[name] = charged(cover, side)
        else:
            lost = aggregation.cell_scores(cover, metric) * cover.weight / cover.total_weight
            losses[name] = split_equally(cover, side, lost)
    return losses


def item_columns(
    table: Contingency, rows: ScoredRows, metrics: list[Metric], here: NDArray[np.int64]
) -> pa.Table:
    """Return row, weight, tp, fp, fn, tn (null under "outside"), losses and scores of some scored rows.

    Of overlapping clusterings true_mates and pred_mates in place of the matrix.
    """
    cell = rows.cell[here]
    columns: dict[str, Any] = {"row": here, "weight": rows.weight[here]}
    if table.overlapping:
        columns |= {f"{side}_mates": table.mates(side)[cell] for side in SIDES}
    else:
        columns |= {"tp": table.tp[cell], "fp": table.fp[cell], "fn": table.fn[cell]}
        columns["tn"] = pa.nulls(here.size, pa.float64()) if table.outside else TrueNegatives(table)()[cell]
    for name, metric in LOSSES.items():
        columns[name] = aggregation.item_scores(table, metric)[here] * columns["weight"] / table.total_weight
    for metric in metrics:
        if metric.item_name and metric.item_name not in columns:
            columns[metric.item_name] = aggregation.item_scores(table, metric)[here]
    return table_of(columns)


def _mates(table: Contingency, rows: ScoredRows, side: str, cell: int) -> NDArray[np.bool_]:
    """Return which rows are in a cell that shares a cluster of a side with this one. Shape (n_rows,)."""
    codes, _, cells = table.memberships(side)
    shared = np.isin(codes, codes[cell] if cells is None else codes[cells == cell])
    if cells is not None:  # cells are in several clusters
        shared = np.isin(np.arange(table.n_cells), cells[shared])
    return shared[rows.cell] & (rows.cell >= 0)


def _has_unscored_mates(table: Contingency, cell: int) -> bool:
    """Tell whether there may be items that only the prediction has in predicted clusters of a cell."""
    if not table.outside or table.overlapping:
        return table.outside
    only = table.only("pred")
    return only is not None and bool(only[0][table.pred[cell]])


def one_item(
    table: Contingency, rows: ScoredRows, items: Items, metrics: list[Metric], row: int, members: int
) -> dict[str, Any]:
    """Return the item of a scored row as `Evaluation.item` does, with so many members of each set."""
    cell = int(rows.cell[row])
    scored = rows.cell >= 0
    same_true, same_pred = (_mates(table, rows, side, cell) for side in SIDES)
    if _has_unscored_mates(table, cell):  # they are in no cell
        same_pred |= ~scored & items.same_label("pred", row)
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
    for name, metric in LOSSES.items():
        result[name] = aggregation.item_score(table, metric, row) * result["weight"] / table.total_weight
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
