"""ELM, "Elements Like Me": the pointwise scores of an item among the others.

The matrix that these formulas get leaves the item itself out of every set: tp, fp and fn are what
the *other* members of its clusters count. So tp may be 0, and a rate of an empty set is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from fastbcubed.metrics.metric import Floats, Metric
from fastbcubed.metrics.pointwise import f1_of, rate


def elm_precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the share of the others in the predicted cluster that belong; 1 without others."""
    return rate(tp, tp + fp)


def elm_recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the share of the others in the true cluster that were found; 1 without others."""
    return rate(tp, tp + fn)


def elm_item_f1(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the F of an item: 1 if it is alone on both sides, 0 if on one of them."""
    return rate(tp, tp + (fp + fn) / 2)


def scores() -> Iterator[Metric]:
    """Yield the scores of the family "elm"."""
    higher = partial(
        Metric,
        family="elm",
        low=0.0,
        high=1.0,
        best="higher",
        source="van Heusden et al. 2022",
        on_covers=True,
    )
    among_others = partial(higher, leave_one_out=True)
    without = "each without the item itself"
    yield among_others(
        "elm_precision",
        summary="Mean over items of the share of the others in its predicted cluster that belong with it.",
        definition=f"mean over items of tp / (tp + fp), {without}; 1 if alone in its predicted cluster",
        formula=elm_precision,
    )
    yield among_others(
        "elm_recall",
        summary="Mean over items of the share of the others in its true cluster that were found with it.",
        definition=f"mean over items of tp / (tp + fn), {without}; 1 if alone in its true cluster",
        formula=elm_recall,
    )
    yield higher(
        "elm_f1",
        summary="F1 of ELM precision and ELM recall.",
        definition="2 P R / (P + R), with P = elm_precision and R = elm_recall",
        combine=partial(f1_of, "elm_precision", "elm_recall"),
        needs=("elm_precision", "elm_recall"),
    )
    yield among_others(
        "elm_mean_f1",
        summary="Mean over items of the F1 of an item's own ELM precision and recall.",
        definition=f"mean over items of tp / (tp + (fp + fn) / 2), {without}; 1 if alone in both clusters",
        formula=elm_item_f1,
    )
