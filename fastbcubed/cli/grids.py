"""Slices and clusters of an evaluation as grids, for a terminal and for the page of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastbcubed.metrics.losses import LOSSES
from fastbcubed.results.slices.slicing import name_columns
from fastbcubed.results.text.wording import Grid, amount, count, label, percent, score

if TYPE_CHECKING:
    import pyarrow as pa

    from fastbcubed.metrics.metric import Metric
    from fastbcubed.results.evaluation import Evaluation

#: Scores that a listing shows where they were computed; else the first few that were.
LISTED = ("precision", "recall", "f1")
#: What the last columns of slices are.
SHARES = "of P loss, of R loss: share of what all items lose of precision, and of recall"


def slice_grid(evaluation: Evaluation, table: pa.Table, *, of_all: bool = True) -> Grid:
    """Return slices: names, items, their share of all items, or of weight, if `of_all`, scores, shares of losses."""
    names = name_columns(table.column_names)
    weighted = evaluation.contingency.weighted
    scores = score_columns(evaluation.metrics, table.column_names)
    total, lost = evaluation.coverage.weight_scored(evaluation.policies), lost_by_all(evaluation)
    share = [f"of {'weight' if weighted else 'items'}"] if of_all else []
    rows = [
        [
            *(label(row[name]) for name in names),
            count(row["n_items"]),
            *(percent(row["weight"] / total) for _ in share),
            *(score(row[name]) for name in scores),
            *(_part(row[name], whole) for name, whole in lost.items()),
        ]
        for row in table.to_pylist()
    ]
    losses = [f"of {name[0].upper()} loss" for name in lost]
    return Grid([*map(label, names), "items", *share, *scores, *losses], rows, len(names))


def cluster_grid(evaluation: Evaluation, table: pa.Table, lost: str) -> Grid:
    """Return a listing of clusters: label, items, parts, outcome, scores, and their share of a loss."""
    weighted = evaluation.contingency.weighted
    scores = score_columns(evaluation.metrics, table.column_names)
    outcome = ["outcome"] if "outcome" in table.column_names else []
    whole = lost_by_all(evaluation)[lost]
    header = ["cluster", *outcome, "items", *(["weight"] if weighted else []), "parts", *scores]
    rows = [
        [
            "(alone by policy)" if row["cluster"] is None else label(row["cluster"]),
            *(row[name] for name in outcome),
            count(row["n_items"]),
            *([amount(row["weight"])] if weighted else []),
            count(row["n_parts"]),
            *(score(row[name]) for name in scores),
            _part(row[lost], whole),
        ]
        for row in table.to_pylist()
    ]
    return Grid([*header, "of loss"], rows, 1 + len(outcome))


def score_columns(metrics: Sequence[Metric], there: Sequence[str]) -> list[str]:
    """Return the scores that a listing shows, of those in a table."""
    listed = [name for name in LISTED if name in there]
    return listed if len(listed) == len(LISTED) else [m.name for m in metrics if m.name in there][:4]


def lost_by_all(evaluation: Evaluation) -> dict[str, float]:
    """Return what all items lose of precision and of recall, if that was computed or can still be."""
    known = evaluation.overall
    return {
        name: known[metric.name] if metric.name in known else evaluation.metric(metric)
        for name, metric in LOSSES.items()
        if metric.name in known or evaluation.has_clusters
    }


def _part(loss: float, whole: float) -> str:
    return percent(loss / whole if whole else 0.0)
