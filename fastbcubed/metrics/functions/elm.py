"""ELM as functions of two labelings."""

from __future__ import annotations

from fastbcubed.metrics.labelings import make_score as _score
from fastbcubed.metrics.labelings import make_three_scores as _three_scores

elm_precision = _score(
    "elm_precision",
    """
    >>> elm_precision(list("aabb"), [1, 1, 1, 2])  # (1/2 + 1/2 + 0/2 + 1) / 4; the last is alone
    0.5
    """,
)
elm_recall = _score(
    "elm_recall",
    """
    >>> elm_recall(list("aabb"), [1, 1, 1, 2])  # (1/1 + 1/1 + 0/1 + 0/1) / 4
    0.5
    """,
)
elm_f1 = _score(
    "elm_f1",
    """
    >>> elm_f1(list("aabb"), [1, 1, 1, 2])  # 2 * 1/2 * 1/2 / (1/2 + 1/2)
    0.5
    """,
)
elm_mean_f1 = _score(
    "elm_mean_f1",
    """
    >>> score = elm_mean_f1(list("aabb"), [1, 1, 1, 2])
    >>> round(score, 12)  # (1 / (1 + 1/2) + 1 / (1 + 1/2) + 0 + 0) / 4 = 1/3
    0.333333333333
    """,
)
elm_precision_recall_fscore = _three_scores(
    "elm_f1",
    """
    >>> elm_precision_recall_fscore(list("aabb"), [1, 1, 1, 2])
    PrecisionRecallFscore(precision=0.5, recall=0.5, f1=0.5)
    """,
)
