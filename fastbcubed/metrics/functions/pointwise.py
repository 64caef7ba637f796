"""The pointwise scores as functions of two labelings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from fastbcubed.errors import OptionError
from fastbcubed.metrics.labelings import as_contingency, compute
from fastbcubed.metrics.labelings import make_score as _score
from fastbcubed.metrics.labelings import make_score_of_beta as _score_of_beta
from fastbcubed.metrics.labelings import make_three_scores as _three_scores
from fastbcubed.metrics.metric import Formula
from fastbcubed.metrics.registry import lifted

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency


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
