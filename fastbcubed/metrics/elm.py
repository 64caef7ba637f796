"""ELM, "Elements Like Me": the pointwise scores of an item among the others.

The matrix that these formulas get leaves the item itself out of every set: tp, fp and fn are what
the *other* members of its clusters count. So tp may be 0, and a rate of an empty set is 1.
"""

from __future__ import annotations

from fastbcubed.metrics.score import Family, f_measure, rate, slopes_of_f1
from fastbcubed.types import Floats

elm = Family("elm", low=0.0, high=1.0, best="higher", source="van Heusden et al. 2022", on_covers=True)
WITHOUT = "each without the item itself"


@elm.mean_over_items(
    f"tp / (tp + fp), {WITHOUT}; 1 if alone in its predicted cluster",
    leave_one_out=True,
    example="""
    >>> elm_precision(list("aabb"), [1, 1, 1, 2])  # (1/2 + 1/2 + 0/2 + 1) / 4; the last is alone
    0.5
    """,
)
def elm_precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the share of the others in its predicted cluster that belong with it."""
    return rate(tp, tp + fp)


@elm.mean_over_items(
    f"tp / (tp + fn), {WITHOUT}; 1 if alone in its true cluster",
    leave_one_out=True,
    example="""
    >>> elm_recall(list("aabb"), [1, 1, 1, 2])  # (1/1 + 1/1 + 0/1 + 0/1) / 4
    0.5
    """,
)
def elm_recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the share of the others in its true cluster that were found with it."""
    return rate(tp, tp + fn)


@elm.of_means(
    "2 P R / (P + R), with P = elm_precision and R = elm_recall",
    elm["elm_precision"],
    elm["elm_recall"],
    slopes=slopes_of_f1,
    example="""
    >>> elm_f1(list("aabb"), [1, 1, 1, 2])  # 2 * 1/2 * 1/2 / (1/2 + 1/2)
    0.5
    """,
    three="""
    >>> elm_precision_recall_fscore(list("aabb"), [1, 1, 1, 2])
    PrecisionRecallFscore(precision=0.5, recall=0.5, f1=0.5)
    """,
)
def elm_f1(p: Floats | float, r: Floats | float, beta: float) -> Floats | float:
    """F1 of ELM precision and ELM recall."""
    return f_measure(p, r)


@elm.mean_over_items(
    f"tp / (tp + (fp + fn) / 2), {WITHOUT}; 1 if alone in both clusters",
    leave_one_out=True,
    example="""
    >>> score = elm_mean_f1(list("aabb"), [1, 1, 1, 2])
    >>> round(score, 12)  # (1 / (1 + 1/2) + 1 / (1 + 1/2) + 0 + 0) / 4 = 1/3
    0.333333333333
    """,
)
def elm_mean_f1(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the F1 of an item's own ELM precision and recall."""
    return rate(tp, tp + (fp + fn) / 2)
