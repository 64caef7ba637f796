"""Data for the charts of an evaluation and the tables next to them: sizes, losses and slices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.cells.contingency import SIDES
from fastbcubed.errors import NotKeptError
from fastbcubed.inputs.arrays import from_numpy, table_of, to_numpy
from fastbcubed.metrics.bcubed import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.metric import f_measure
from fastbcubed.results.concentration import POINTS
from fastbcubed.results.evaluation_data import EvaluationData
from fastbcubed.results.intervals import of_slice
from fastbcubed.results.page import CHARTED, LISTED
from fastbcubed.results.slices import OURS, SliceKey, excess_of, name_columns, ordered, size_names, slice_name
from fastbcubed.results.standard_errors import FEW
from fastbcubed.results.table import LOSS


def size_rows(ev: EvaluationData) -> list[dict[str, Any]]:
    """Return the number of clusters and items by cluster size, in powers of two, for each side.

    Raises
    ------
    NotKeptError
        If the cells were not kept.
    """
    if not ev.contingency.has_cells:
        raise NotKeptError(
            'the cells were not kept; evaluate or save with keep="cells" to have cluster sizes'
        )
    rows = []
    for side in SIDES:
        found = ev.losses.size_classes(side)
        rows += [
            {"side": side, "size": name, "n_clusters": n, "share_clusters": n / found.n_clusters.sum(),
             "n_items": k, "share_items": k / found.n_items.sum()}
            for name, n, k in zip(
                size_names(found.smallest).to_pylist(), found.n_clusters.tolist(), found.n_items.tolist(), strict=False
            )
        ]  # fmt: skip
    return rows


def lorenz_curves(ev: EvaluationData) -> dict[str, Any]:
    """Return the Lorenz curve of each side's loss, and its totals."""
    return {
        side: {**ev.concentration[side], "curve": ev.lorenz(side, limit=POINTS).to_pylist()} for side in SIDES
    }


def extremes(ev: EvaluationData) -> dict[str, dict[str, float]]:
    """Return precision, recall and F1 of two trivial predictions: all items singletons, and all in one cluster.

    Figures that need more than the kept cells, or are undefined since clusters overlap or prediction-only items count,
    are left out.
    """
    cells = ev.contingency
    if not cells.has_cells or cells.overlapping or cells.outside:
        return {}
    recall = ev.losses.recall_alone()
    found = {} if recall is None else {"alone": (1.0, recall)}
    # with one cluster, the precision of an item is its true cluster's share of all items
    true, total = ev.losses.size_classes("true"), cells.total_weight
    everything = true.n_items.sum() if cells.weighting == "outer" else total
    found["one"] = (float(true.squares.sum() / total / everything), 1.0)
    return {
        name: {"precision": p, "recall": r, "f1": float(f_measure(p, r))} for name, (p, r) in found.items()
    }


#: Scores to draw if all of them are known; otherwise the first few are drawn.
DRAWN = ("precision", "recall", "f1")


def drawn_scores(ev: EvaluationData) -> list[str]:
    """Return the scores to show for slices and clusters."""
    known = [m.name for m in ev.metrics if not m.overall_only and m.name in ev.overall]
    return list(DRAWN) if set(DRAWN) <= set(known) else known[:4]


def lost_by_all(ev: EvaluationData) -> dict[str, float]:
    """Return the loss of precision and of recall over all items, if computed or if cells to compute it were kept."""
    sides = {lost: side for side, lost in LOSS_OF_SIDE.items()}
    known = [name for name, metric in LOSSES.items() if metric.name in ev.overall or ev.has_clusters]
    return {name: ev.losses.of_all(sides[name]) for name in known}


def slicing_of(
    ev: EvaluationData, key: SliceKey, whole: int = CHARTED, most: int = LISTED, order_by: str | None = None
) -> dict[str, Any]:
    """Return one slicing, with scores, losses and intervals of its slices, or of the costliest if there are many.

    With `order_by`, slices are in the order of `Evaluation.slices`.
    """
    name = slice_name(key)
    table = ev._sliced[name] if name in ev.sliced else ev.slices(key, errors=_has_errors(ev))
    names = name_columns(table.column_names)
    n, kind = table.num_rows, table.schema.field(names[0]).type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_temporal(kind)
    if n > whole or order_by is not None:
        table = ordered(table, ev.metrics, order_by or LOSS, most if n > whole else None)
    scores = [score for score in drawn_scores(ev) if score in table.column_names]
    return {
        "by": name, "names": names, "scores": scores, "n": n, "ordered": n <= whole and order_by is None,
        "numeric": len(names) == 1 and is_number, "overall": {score: ev.overall[score] for score in scores},
        "rows": _rows(ev, table, names, scores),
    }  # fmt: skip


#: Title of the chart of outcomes for each side, and an explanation of the outcomes.
OUTCOMES = {
    "true": ("Outcomes of the true clusters", (
        "Exact: a predicted cluster has the same items. Split: in several clusters. Merged: whole, but with "
        "others."
    )),
    "pred": ("What the predicted clusters are", "Fragment: part of one true cluster. Union: several whole ones. "
             "Mixed: parts of several."),
}  # fmt: skip


def about_slices(slicing: Mapping[str, Any] | None = None) -> str:
    """Return an explanation of the marks in the chart of a slicing, or in general if None."""
    rows, scores = ([], ["any"]) if slicing is None else (slicing["rows"], slicing["scores"])
    if slicing and len(slicing["names"]) == 2:
        said = f"{'F1' if scores[-1] == 'f1' else scores[-1]}: decimal digits; darker is lower."
        return said + " Grey digits: few items." * any(row["few"] for row in rows)
    spans = not slicing or any(row.get(f"{score}_low") is not None for row in rows for score in scores)
    few = not slicing or any(row["few"] for row in rows)
    said = "Dots: scores. " + f"Lines: 95 % intervals{'; arrows: beyond the frame' * few}. " * spans
    said += "Dashed: all items."
    grey = f" Grey: fewer than {FEW} independent groups of items (or items, if groups are unknown)."
    return said + grey * few


def by_size(ev: EvaluationData) -> dict[str, Any]:
    """Return slices of precision by predicted cluster size, and of recall by true cluster size.

    Raises
    ------
    NotKeptError
        If neither items nor cells were kept.
    """
    found = {}
    for key, score in (("pred_size", "precision"), ("true_size", "recall")):
        if score not in ev.overall:
            continue
        if _has_errors(ev):
            table = ev.slices(OURS + key, errors=True).rename_columns({OURS + key: key})
        elif ev.contingency.has_cells and not ev.contingency.overlapping:
            table = _by_size_of_clusters(ev, key, score)
        else:
            continue
        rows = _rows(ev, table, [key], [score])
        # by the first number, such as 4 in "4-7"
        rows.sort(key=lambda row: int(row["slice"][0].partition("-")[0]))
        found[key] = {
            "by": key, "names": [key], "scores": [score], "n": len(rows), "ordered": True, "numeric": True,
            "overall": {score: ev.overall[score]}, "rows": rows,
        }  # fmt: skip
    return found


def _has_errors(ev: EvaluationData) -> bool:
    """Return whether standard errors by slice can be computed quickly."""
    return ev.standard_errors.are_shown_by_slice


def _by_size_of_clusters(ev: EvaluationData, key: str, score: str) -> Any:
    """Return slices by cluster size with one score, derived from its loss by size, for which no rows are needed."""
    found = ev.losses.size_classes(key.removesuffix("_size"))
    n = found.smallest.size
    lost = {name: getattr(found, name)[:n] for name in LOSSES}
    weight, total = found.weight[:n], ev.contingency.total_weight
    with np.errstate(invalid="ignore"):  # 0 / 0 for sizes without clusters
        value = 1 - lost[f"{score}_loss"] * total / weight
    columns = {key: size_names(found.smallest), "n_items": found.n_items[:n], "weight": weight}
    table = table_of({**columns, **lost, score: value})
    return table.filter(from_numpy(to_numpy(table["n_items"]) > 0))


def _rows(ev: EvaluationData, table: Any, names: list[str], scores: list[str]) -> list[dict[str, Any]]:
    """Return slices with names, figures, shares, scores with intervals, and whether they are small."""
    total, lost = ev.coverage.weight_scored(ev.policies), lost_by_all(ev)
    return [_row(row, names, ev, scores, total, lost) for row in table.to_pylist()]


def _row(
    row: Mapping[str, Any],
    names: list[str],
    ev: EvaluationData,
    scores: list[str],
    total: float,
    lost: Mapping[str, float],
) -> dict[str, Any]:
    """Return one slice, with intervals of its scores."""
    n_units = row.get("n_units")
    few = (row["n_items"] if n_units is None else n_units) < FEW
    found = {
        "slice": [row[name] for name in names],
        **{k: row.get(k) for k in ("n_items", "weight", "n_units", "precision_loss", "recall_loss")},
        "few": few,
        "share": row["weight"] / total,
        **{f"share_of_{name}": row[name] / whole if whole else 0.0 for name, whole in lost.items()},
    }
    if set(LOSSES) <= set(lost) and row["weight"]:
        loss, whole = sum(row[name] for name in LOSSES), sum(lost.values())
        found["excess"] = excess_of(loss, row["weight"], whole, total)[1]
    known = {metric.name: metric for metric in ev.metrics}
    for score in scores:
        value, error, metric = row.get(score), row.get(f"{score}_se"), known[score]
        found[score] = value
        ends = of_slice(value, error, n_units, low=metric.low, high=metric.high)
        if ends is not None:
            found |= {f"{score}_low": ends.low, f"{score}_high": ends.high}
    return found
