"""Matching of clusters as functions of two labelings."""

from __future__ import annotations

from fastbcubed.metrics.labelings import make_score as _score
from fastbcubed.metrics.labelings import make_three_scores as _three_scores

purity = _score(
    "purity",
    """
    >>> purity(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2 + 2 + 2) / 8
    0.75
    """,
)
inverse_purity = _score(
    "inverse_purity",
    """
    >>> inverse_purity(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2 + 2) / 8
    0.5
    """,
)
purity_f1 = _score(
    "purity_f1",
    """
    >>> purity_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # 2 * 3/4 * 1/2 / (3/4 + 1/2)
    0.6
    """,
)
class_f1 = _score(
    "class_f1",
    """
    Both true clusters are fitted best by the predicted one that holds two of their items and no other.

    >>> score = class_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # (4/8) * 2 * 2 / (4 + 2) + (4/8) * 2 * 2 / (4 + 2) = 2/3
    0.666666666667
    """,
)
cluster_precision = _score(
    "cluster_precision",
    """
    >>> cluster_precision(list("aabc"), [1, 1, 2, 2])  # of 1 and 2, the first
    0.5
    """,
)
cluster_recall = _score(
    "cluster_recall",
    """
    >>> cluster_recall(list("aabb"), [1, 1, 2, 3])  # of a and b, the first
    0.5
    """,
)
cluster_f1 = _score(
    "cluster_f1",
    """
    >>> cluster_f1(list("aabb"), [1, 1, 2, 3])  # 2 * 1/3 * 1/2 / (1/3 + 1/2)
    0.4
    """,
)
cluster_precision_recall_fscore = _three_scores(
    "cluster_f1",
    """
    >>> cluster_precision_recall_fscore(list("aabbc"), [1, 1, 2, 3, 4])  # a and c of a, b, c; 1 and 4 of 4
    PrecisionRecallFscore(precision=0.5, recall=0.6666666666666666, f1=0.5714285714285715)
    """,
)
closest_cluster_precision = _score(
    "closest_cluster_precision",
    """
    >>> score = closest_cluster_precision(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # (2/4 + 2/6 + 2/4) / 3 = 4/9
    0.444444444444
    """,
)
closest_cluster_recall = _score(
    "closest_cluster_recall",
    """
    >>> closest_cluster_recall(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2/4 + 2/4) / 2
    0.5
    """,
)
closest_cluster_f1 = _score(
    "closest_cluster_f1",
    """
    >>> score = closest_cluster_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # 2 * 4/9 * 1/2 / (4/9 + 1/2) = 8/17
    0.470588235294
    """,
)
closest_cluster_precision_recall_fscore = _three_scores(
    "closest_cluster_f1",
    """
    >>> closest_cluster_precision_recall_fscore(list("aabb"), [1, 1, 1, 1])  # 2/4 on both sides
    PrecisionRecallFscore(precision=0.5, recall=0.5, f1=0.5)
    """,
)
talburt_wang = _score(
    "talburt_wang",
    """
    >>> score = talburt_wang(list("aabb"), [1, 2, 2, 2])
    >>> round(score, 12)  # sqrt(2 * 2) / 3: two clusters on each side meet in three cells
    0.666666666667
    """,
)
k_measure = _score(
    "k_measure",
    """
    >>> score = k_measure(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 6)  # sqrt(3/4 * 1/2)
    0.612372
    """,
)
split_join = _score(
    "split_join",
    """
    >>> split_join(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # 2 * 8 - (2 + 2 + 2) - (2 + 2)
    6.0
    """,
)
matching_accuracy = _score(
    "matching_accuracy",
    """
    One cluster of each side is left over, and the largest cell is not used: 3 alone is less than 2 + 2.

    >>> matching_accuracy(list("aaaaabbc"), [1, 1, 1, 2, 2, 1, 1, 3])  # a with 2, b with 1, c with 3
    0.625
    """,
)
