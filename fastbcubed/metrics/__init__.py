"""Scores as plain functions of two labelings, in the habits of scikit-learn.

Each is made by `_score` from its name in the registry and an example, which shows its value worked
by hand; the rest of its documentation comes from the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from fastbcubed.errors import OptionError
from fastbcubed.metrics.documentation import document
from fastbcubed.metrics.labelings import (
    PrecisionRecallFscore,
    Score,
    ScoreOfBeta,
    as_contingency,
    compute,
)
from fastbcubed.metrics.metric import Formula
from fastbcubed.metrics.pointwise import f_measure, weight_of_precision
from fastbcubed.metrics.registry import METRICS, lifted

if TYPE_CHECKING:
    from fastbcubed.contingency import Contingency

__all__ = [
    "PrecisionRecallFscore",
    "accuracy",
    "adapted_bcubed_f1",
    "adapted_bcubed_precision",
    "adapted_bcubed_precision_recall_fscore",
    "adapted_bcubed_recall",
    "adjusted_bcubed_precision",
    "adjusted_bcubed_recall",
    "balanced_accuracy",
    "bcubed_f1",
    "bcubed_f1_by_pred_cluster",
    "bcubed_f1_by_true_cluster",
    "bcubed_mean_f1",
    "bcubed_precision",
    "bcubed_precision_by_pred_cluster",
    "bcubed_precision_by_true_cluster",
    "bcubed_precision_recall_fscore",
    "bcubed_recall",
    "bcubed_recall_by_pred_cluster",
    "bcubed_recall_by_true_cluster",
    "chance_bcubed_precision",
    "chance_bcubed_recall",
    "elm_f1",
    "elm_mean_f1",
    "elm_precision",
    "elm_precision_recall_fscore",
    "elm_recall",
    "f1",
    "fbeta",
    "informedness",
    "jaccard_distance",
    "jaccard_index",
    "markedness",
    "mcc",
    "mean_f1",
    "mean_fbeta",
    "npv",
    "over_merge_rate",
    "pointwise_ari",
    "pointwise_fowlkes_mallows",
    "pointwise_score",
    "precision",
    "precision_recall_fscore",
    "recall",
    "specificity",
    "symmetric_difference",
    "under_merge_rate",
]


def _score(name: str, example: str) -> Score:
    """Make the function for a score."""

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [METRICS[name]])[0]

    _describe(score, name, document(METRICS[name], example))
    return score


def _score_of_beta(name: str, example: str) -> ScoreOfBeta[float]:
    """Make the function for a score that depends on beta."""

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        weight_of_precision(beta)  # raises before the work if there is no such beta
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [METRICS[name].at(beta)], beta)[0]

    _describe(score, name, document(METRICS[name], example, beta=True))
    return score


def _three_scores(f_score: str, example: str) -> ScoreOfBeta[PrecisionRecallFscore]:
    """Make the function for precision, recall and the F of both."""
    metrics = [METRICS[name] for name in METRICS[f_score].needs]

    def scores(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> PrecisionRecallFscore:
        alpha = weight_of_precision(beta)
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        p, r = compute(table, metrics)
        return PrecisionRecallFscore(p, r, float(f_measure(p, r, alpha)))

    p, r = (metric.name for metric in metrics)
    together = replace(
        METRICS[f_score],
        summary=METRICS[f_score].summary.replace("F1 of", "Precision, recall and F:"),
        definition=f"P = {p}, R = {r}, F = 1 / (alpha / P + (1 - alpha) / R), with alpha = 1 / (1 + beta^2)",
    )
    returns = "PrecisionRecallFscore\n    Named tuple (precision, recall, f1); f1 is F for `beta`."
    name = f_score.removesuffix("f1") + "precision_recall_fscore"
    _describe(scores, name, document(together, example, beta=True, returns=returns))
    return scores


def _describe(function: Callable[..., object], name: str, documentation: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = documentation


def pointwise_score(
    formula: Formula,
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> float:
    """Mean over items of any score of an item's 2x2 confusion matrix.

    Parameters
    ----------
    formula : callable
        Takes `(tp, fp, fn, tn)`, arrays of float64, and returns an array of their shape, element
        by element: the weights of the items that are with an item on both sides (itself
        included), on the predicted side alone, on the true side alone, and on neither.
    labels_true, labels_pred : array-like of shape (n_items,)
        Cluster label of each item, both in the same item order.
    sample_weight : array-like of shape (n_items,), optional
        Positive weight of each item, inside the clusters and in the mean.
    contingency : Contingency, optional
        The cells, as `fastbcubed.contingency` makes them, in place of labels and weights. If it
        counts items outside the truth, `tn` is None.

    Returns
    -------
    float
        The mean, weighted if there are weights.

    Raises
    ------
    FastBCubedError
        If there is no item, if the two sides differ in length, or if a label or a weight is
        missing or cannot be one. Every error below is one, too.
    OptionError
        If the formula cannot be called, or there are neither labels nor a contingency, or both.

    Notes
    -----
    All items of a cell share their matrix, so the formula sees each cell once, in blocks. One pass
    over the items counts the cells; the rest is linear in the cells.

    References
    ----------
    .. [1] S. van Staden, Pointwise Metrics for Clustering Evaluation, arXiv:2405.10421, 2024.

    Examples
    --------
    The Tversky index, which lets a missing item count half as much as a wrong one. The matrices of
    the four pairs of items are (2, 0, 2, 4), (2, 2, 2, 2), (2, 2, 2, 2) and (2, 0, 2, 4).

    >>> def tversky(tp, fp, fn, tn):
    ...     return tp / (tp + fp + fn / 2)
    >>> score = pointwise_score(tversky, list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # (2/3 + 2/5 + 2/5 + 2/3) / 4 = 8/15
    0.533333333333
    """
    if not callable(formula):
        raise OptionError(f"formula has to be a function of (tp, fp, fn, tn), but {formula!r} came.")
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
    return compute(table, [lifted(formula, outside=table.outside)])[0]


# Pointwise scores

precision = _score(
    "precision",
    """
    >>> precision(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (4 * 1 + 4 * 2/4) / 8
    0.75
    >>> precision(list("aab"), [1, 2, 1], sample_weight=[1, 2, 3])  # (1 * 1/4 + 2 + 3 * 3/4) / 6
    0.75
    """,
)
recall = _score(
    "recall",
    """
    >>> recall(list("aabbbbcc"), [1, 1, 1, 1, 2, 2, 2, 2])  # (2 * 1 + 4 * 2/4 + 2 * 1) / 8
    0.75
    """,
)
f1 = _score(
    "f1",
    """
    >>> f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # 2 * 3/4 * 1/2 / (3/4 + 1/2)
    0.6
    """,
)
mean_f1 = _score(
    "mean_f1",
    """
    >>> mean_f1(list("aaabbb"), [1, 2, 3, 4, 4, 4])  # (3 * 1 / (1 + 2/2) + 3 * 1) / 6
    0.75
    """,
)
fbeta = _score_of_beta(
    "fbeta",
    """
    >>> score = fbeta(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3], beta=2)
    >>> round(score, 12)  # 1 / ((1/5) / (3/4) + (4/5) / (1/2)) = 15/28
    0.535714285714
    """,
)
mean_fbeta = _score_of_beta(
    "mean_fbeta",
    """
    >>> score = mean_fbeta(list("aaabbb"), [1, 2, 3, 4, 4, 4], beta=2)
    >>> round(score, 12)  # (3 * 1 / (1 + 4/5 * 2) + 3 * 1) / 6 = 9/13
    0.692307692308
    """,
)
jaccard_index = _score(
    "jaccard_index",
    """
    >>> jaccard_index(list("aabb"), [1, 2, 3, 3])  # (1/2 + 1/2 + 1 + 1) / 4
    0.75
    """,
)
jaccard_distance = _score(
    "jaccard_distance",
    """
    >>> jaccard_distance(list("aabb"), [1, 2, 3, 3])  # (1/2 + 1/2 + 0 + 0) / 4
    0.25
    """,
)
over_merge_rate = _score(
    "over_merge_rate",
    """
    >>> over_merge_rate(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (4 * 0 + 4 * 2/4) / 8
    0.25
    """,
)
under_merge_rate = _score(
    "under_merge_rate",
    """
    >>> under_merge_rate(list("aabbbbcc"), [1, 1, 1, 1, 2, 2, 2, 2])  # (4 * 0 + 4 * 2/4) / 8
    0.25
    """,
)
accuracy = _score(
    "accuracy",
    """
    >>> accuracy(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (4 * 6/8 + 4 * 4/8) / 8
    0.625
    """,
)
balanced_accuracy = _score(
    "balanced_accuracy",
    """
    >>> labels_true, labels_pred = list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3]
    >>> balanced_accuracy(labels_true, labels_pred)  # (4 * (1/2 + 1) / 2 + 4 * (1/2 + 1/2) / 2) / 8
    0.625
    """,
)
specificity = _score(
    "specificity",
    """
    >>> specificity(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (4 * 4/4 + 4 * 2/4) / 8
    0.75
    """,
)
npv = _score(
    "npv",
    """
    >>> npv(list("aabbbbcc"), [1, 1, 1, 1, 2, 2, 2, 2])  # (2 * 4/4 + 4 * 2/4 + 2 * 4/4) / 8
    0.75
    """,
)
informedness = _score(
    "informedness",
    """
    >>> labels_true, labels_pred = list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3]
    >>> informedness(labels_true, labels_pred)  # (4 * (1/2 + 1 - 1) + 4 * (1/2 + 1/2 - 1)) / 8
    0.25
    """,
)
markedness = _score(
    "markedness",
    """
    >>> labels_true, labels_pred = list("aabbbbcc"), [1, 1, 1, 1, 2, 2, 2, 2]
    >>> markedness(labels_true, labels_pred)  # (4 * (1/2 + 1 - 1) + 4 * (1/2 + 1/2 - 1)) / 8
    0.25
    """,
)
mcc = _score(
    "mcc",
    """
    Half of the items have tp = 2, fp = 0, fn = 2, tn = 4, the others 2 in each of the four sets.

    >>> score = mcc(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 6)  # (8 / sqrt(2 * 4 * 4 * 6) + 0) / 2 = 1 / sqrt(12)
    0.288675
    """,
)
pointwise_ari = _score(
    "pointwise_ari",
    """
    Half of the items have tp = 2, fp = 0, fn = 2, tn = 4, the others 2 in each of the four sets.

    >>> labels_true, labels_pred = list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3]
    >>> pointwise_ari(labels_true, labels_pred)  # (2 * 8 / (4 * 6 + 2 * 4) + 0) / 2
    0.25
    """,
)
pointwise_fowlkes_mallows = _score(
    "pointwise_fowlkes_mallows",
    """
    >>> labels_true, labels_pred = list("aaaabbbb"), [1, 2, 3, 4, 5, 5, 5, 5]
    >>> pointwise_fowlkes_mallows(labels_true, labels_pred)  # (4 * sqrt(1 * 1/4) + 4 * 1) / 8
    0.75
    """,
)
symmetric_difference = _score(
    "symmetric_difference",
    """
    >>> symmetric_difference(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (4 * 2 + 4 * 4) / 8
    3.0
    """,
)
precision_recall_fscore = _three_scores(
    "f1",
    """
    >>> precision_recall_fscore(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    PrecisionRecallFscore(precision=0.75, recall=0.5, f1=0.6)
    """,
)

# BCubed

bcubed_precision = _score(
    "bcubed_precision",
    """
    >>> score = bcubed_precision(list("aabbb"), [1, 1, 1, 2, 2])
    >>> round(score, 12)  # (2/3 + 2/3 + 1/3 + 1 + 1) / 5 = 11/15
    0.733333333333
    """,
)
bcubed_recall = _score(
    "bcubed_recall",
    """
    >>> score = bcubed_recall(list("aabbb"), [1, 1, 1, 2, 2])
    >>> round(score, 12)  # (1 + 1 + 1/3 + 2/3 + 2/3) / 5 = 11/15
    0.733333333333
    """,
)
bcubed_f1 = _score(
    "bcubed_f1",
    """
    >>> bcubed_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # 2 * 3/4 * 1/2 / (3/4 + 1/2)
    0.6
    """,
)
bcubed_mean_f1 = _score(
    "bcubed_mean_f1",
    """
    >>> bcubed_mean_f1(list("aaabbb"), [1, 2, 3, 4, 4, 4])  # (3 * 1 / (1 + 2/2) + 3 * 1) / 6
    0.75
    """,
)
bcubed_precision_recall_fscore = _three_scores(
    "bcubed_f1",
    """
    >>> bcubed_precision_recall_fscore(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    PrecisionRecallFscore(precision=0.75, recall=0.5, f1=0.6)
    """,
)
bcubed_precision_by_true_cluster = _score(
    "bcubed_precision_by_true_cluster",
    """
    >>> labels_true, labels_pred = list("aabbbb"), [1, 1, 1, 1, 2, 2]
    >>> bcubed_precision_by_true_cluster(labels_true, labels_pred)  # (1/2 + (1/2 + 1) / 2) / 2
    0.625
    """,
)
bcubed_recall_by_true_cluster = _score(
    "bcubed_recall_by_true_cluster",
    """
    >>> bcubed_recall_by_true_cluster(list("aabbbb"), [1, 1, 1, 1, 2, 2])  # (1 + 1/2) / 2
    0.75
    """,
)
bcubed_f1_by_true_cluster = _score(
    "bcubed_f1_by_true_cluster",
    """
    >>> score = bcubed_f1_by_true_cluster(list("aabbbb"), [1, 1, 1, 1, 2, 2])
    >>> round(score, 12)  # 2 * 5/8 * 3/4 / (5/8 + 3/4) = 15/22
    0.681818181818
    """,
)
bcubed_precision_by_pred_cluster = _score(
    "bcubed_precision_by_pred_cluster",
    """
    >>> bcubed_precision_by_pred_cluster(list("aabbbb"), [1, 1, 1, 1, 2, 2])  # (1/2 + 1) / 2
    0.75
    """,
)
bcubed_recall_by_pred_cluster = _score(
    "bcubed_recall_by_pred_cluster",
    """
    >>> labels_true, labels_pred = list("aabbbb"), [1, 1, 1, 1, 2, 2]
    >>> bcubed_recall_by_pred_cluster(labels_true, labels_pred)  # ((1 + 1/2) / 2 + 1/2) / 2
    0.625
    """,
)
bcubed_f1_by_pred_cluster = _score(
    "bcubed_f1_by_pred_cluster",
    """
    >>> score = bcubed_f1_by_pred_cluster(list("aabbbb"), [1, 1, 1, 1, 2, 2])
    >>> round(score, 12)  # 2 * 3/4 * 5/8 / (3/4 + 5/8) = 15/22
    0.681818181818
    """,
)
adapted_bcubed_precision = _score(
    "adapted_bcubed_precision",
    """
    >>> labels_true, labels_pred = list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3]
    >>> adapted_bcubed_precision(labels_true, labels_pred)  # (4 * 1 + 4 * (2/4)**2) / 8
    0.625
    """,
)
adapted_bcubed_recall = _score(
    "adapted_bcubed_recall",
    """
    >>> adapted_bcubed_recall(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2/4)**2
    0.25
    """,
)
adapted_bcubed_f1 = _score(
    "adapted_bcubed_f1",
    """
    >>> score = adapted_bcubed_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # 2 * 5/8 * 1/4 / (5/8 + 1/4) = 5/14
    0.357142857143
    """,
)
adapted_bcubed_precision_recall_fscore = _three_scores(
    "adapted_bcubed_f1",
    """
    The recommended weight of precision is 0.9, which is that of beta = 1/3. Here a true cluster of
    10 items takes one of another that has 2: P = (10 * (10/11)**2 + (1/11)**2 + 1) / 12 = 17/22,
    R = (10 + 2 * (1/2)**2) / 12 = 7/8, F = 1 / (0.9 * 22/17 + 0.1 * 8/7) = 595/761.

    >>> labels_true, labels_pred = [0] * 10 + [1] * 2, [0] * 11 + [1]
    >>> scores = adapted_bcubed_precision_recall_fscore(labels_true, labels_pred, beta=1 / 3)
    >>> [round(score, 6) for score in scores]
    [0.772727, 0.875, 0.781866]
    """,
)
chance_bcubed_precision = _score(
    "chance_bcubed_precision",
    """
    >>> chance_bcubed_precision(list("aaab"), [1, 1, 2, 2])  # 2/4 + (1 - 2/4) * 3 * 2 / (4 * 3)
    0.75
    """,
)
chance_bcubed_recall = _score(
    "chance_bcubed_recall",
    """
    >>> chance_bcubed_recall(list("aabb"), [1, 1, 1, 2])  # 2/4 + (1 - 2/4) * 3 * 2 / (4 * 3)
    0.75
    """,
)
adjusted_bcubed_precision = _score(
    "adjusted_bcubed_precision",
    """
    Precision is 3/4 here, just what shuffled items get.

    >>> adjusted_bcubed_precision(list("aaab"), [1, 1, 2, 2])  # (3/4 - 3/4) / (1 - 3/4)
    0.0
    """,
)
adjusted_bcubed_recall = _score(
    "adjusted_bcubed_recall",
    """
    >>> score = adjusted_bcubed_recall(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # E = 2/4 + 2/4 * 2 * 1 / (4 * 3) = 7/12; (3/4 - 7/12) / (1 - 7/12)
    0.4
    """,
)

# ELM

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
