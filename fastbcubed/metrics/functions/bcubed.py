"""BCubed and its relatives as functions of two labelings."""

from __future__ import annotations

from fastbcubed.metrics.labelings import make_score as _score
from fastbcubed.metrics.labelings import make_three_scores as _three_scores

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
