"""Scores that compare clusters with their best counterparts on the other side: by largest cell, F or Jaccard index."""

from __future__ import annotations

import math
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from fastbcubed.metrics.bcubed import pointwise
from fastbcubed.metrics.metric import Family, f_measure
from fastbcubed.types import Floats

if TYPE_CHECKING:
    from fastbcubed.metrics.counterparts import Fit

NOTE = (
    "K true clusters of weights a and M predicted clusters of weights b overlap in V cells of weights w; N is the"
    " total weight of the items. Without weights, a, b, w and N are numbers of items. In overlapping clusterings, an"
    " item counts once in each of its clusters. For overlapping clusterings, N is the sum of a in scores that sum over"
    " true clusters, and the sum of b in scores that sum over predicted clusters."
)
COUNTS = "Clusters count equally, so the weights of items make no difference."
ONE_TO_ONE = (
    f"{COUNTS} Several clusters of an overlapping clustering may have the same items. Identical clusters are paired one"
    " to one across the two sides, and an unpaired cluster does not count as identical."
)

matching = Family("matching", low=0.0, high=1.0, best="higher", note=NOTE)


#: Decorator that declares a score of the best counterparts of true and of predicted clusters.
of_fits = partial(matching.of_sums, of="counterparts")


@of_fits(
    "1/N sum over predicted clusters of max over its cells of w",
    source="Zhao and Karypis 2001",
    on_covers=True,
    use="Use this score to measure what share of items are in the largest overlap of their predicted cluster with a"
    " true cluster, for example to evaluate topics; precision considers all overlaps.",
    caution="Purity alone rewards splitting: a prediction of only singletons has purity 1. The score considers only"
    " the largest overlap of each predicted cluster with a true cluster.",
    worked="(2 + 1) / 4",
    example="""
    >>> purity(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2 + 2 + 2) / 8
    0.75
    """,
)
def purity(true: Fit, pred: Fit) -> float:
    """Mean over items of the largest share of an item's predicted cluster that belongs to one true cluster."""
    return pred.own / pred.weight


@of_fits(
    "1/N sum over true clusters of max over its cells of w",
    source="Zhao and Karypis 2001",
    on_covers=True,
    use="Use this score to measure what share of items are in the largest overlap of their true cluster with a"
    " predicted cluster; recall considers all overlaps.",
    caution="Inverse purity alone rewards merging: a single cluster of all items has inverse purity 1. The score"
    " considers only the largest overlap of each true cluster with a predicted cluster.",
    worked="(2 + 1) / 4",
    example="""
    >>> inverse_purity(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2 + 2) / 8
    0.5
    """,
)
def inverse_purity(true: Fit, pred: Fit) -> float:
    """Mean over items of the largest share of an item's true cluster that is in one predicted cluster."""
    return true.own / true.weight


@of_fits(
    "2 P R / (P + R), with P = purity and R = inverse_purity",
    source="Amigó et al. 2009",
    on_covers=True,
    use="Use this score to compare with papers on document clustering that report purity; otherwise use f1.",
    caution="The score considers only the largest overlap of each cluster with a cluster of the other side: how the"
    " other items of the cluster are scattered makes no difference.",
    worked="2 * 3/4 * 3/4 / (3/4 + 3/4)",
    example="""
    >>> purity_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # 2 * 3/4 * 1/2 / (3/4 + 1/2)
    0.6
    """,
)
def purity_f1(true: Fit, pred: Fit) -> float:
    """F1 of purity and inverse purity."""
    return float(f_measure(purity(true, pred), inverse_purity(true, pred)))


@of_fits(
    "sum over true clusters of (a / N) max over predicted clusters of 2 w / (a + b)",
    source="Larsen and Aone 1999",
    on_covers=True,
    use="Use this score where each true cluster should have one counterpart, for example one predicted cluster per"
    " topic; otherwise use f1.",
    caution="The score considers only the best counterpart of each true cluster: other predicted clusters make no"
    " difference.",
    worked="2/4 * 4/5 + 2/4 * 2/3",
    example="""
    The best match of each true cluster is a predicted cluster with only two items of the true cluster.

    >>> score = class_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # (4/8) * 2 * 2 / (4 + 2) + (4/8) * 2 * 2 / (4 + 2) = 2/3
    0.666666666667
    """,
)
def class_f1(true: Fit, pred: Fit) -> float:
    """Mean over items of the F1 of an item's true cluster and the predicted cluster that matches it best."""
    return true.f1 / true.weight


# Clusters that are the same on both sides
@of_fits(
    "S / M, where S is the number of clusters that are identical on both sides, and M is the number of predicted"
    " clusters",
    source="Barnes 2015",
    note=ONE_TO_ONE,
    on_covers=True,
    use="Use this score where a delivered cluster is useful only if it is exactly right; precision gives partial"
    " credit to nearly correct clusters.",
    caution="A cluster of a thousand items with one error counts as completely wrong.",
    worked="0 / 2",
    example="""
    >>> cluster_precision(list("aabc"), [1, 1, 2, 2])  # cluster 1 is exact, cluster 2 is not
    0.5
    """,
)
def cluster_precision(true: Fit, pred: Fit) -> float:
    """Share of predicted clusters that are identical to a true cluster."""
    return pred.exact / pred.clusters


@of_fits(
    "S / K, where S is the number of clusters that are identical on both sides, and K is the number of true clusters",
    source="Barnes 2015",
    note=ONE_TO_ONE,
    on_covers=True,
    use="Use this score where a true cluster counts as found only if it is exactly right; recall gives partial credit"
    " to nearly correct clusters.",
    caution="A cluster of a thousand items with one error counts as not found at all.",
    worked="0 / 2",
    example="""
    >>> cluster_recall(list("aabb"), [1, 1, 2, 3])  # cluster a is found exactly, cluster b is not
    0.5
    """,
)
def cluster_recall(true: Fit, pred: Fit) -> float:
    """Share of true clusters that are identical to a predicted cluster."""
    return true.exact / true.clusters


@of_fits(
    "2 P R / (P + R), with P = cluster_precision and R = cluster_recall",
    source="Barnes 2015",
    note=ONE_TO_ONE,
    on_covers=True,
    use="Use this score where clusters are useful only if they are exactly right; f1 gives partial credit to nearly"
    " correct clusters.",
    caution="A cluster of a thousand items with one error counts as completely wrong, and small clusters usually"
    " dominate the score.",
    worked="2 * 0 / (2 + 2)",
    example="""
    >>> cluster_f1(list("aabb"), [1, 1, 2, 3])  # 2 * 1/3 * 1/2 / (1/3 + 1/2)
    0.4
    """,
    three="""
    >>> cluster_precision_recall_fscore(list("aabbc"), [1, 1, 2, 3, 4])  # P = 2/4, R = 2/3
    PrecisionRecallFscore(precision=0.5, recall=0.6666666666666666, f1=0.5714285714285715)
    """,
)
def cluster_f1(true: Fit, pred: Fit) -> float:
    """F1 of cluster precision and cluster recall."""
    return 2 * true.exact / (true.clusters + pred.clusters)


# The closest cluster on the other side
of_closest = partial(
    of_fits,
    source="Maidasani et al. 2012",
    weights_inside=True,
    on_covers=True,
    use="Use this score where clusters should count equally and nearly correct clusters should earn partial credit,"
    " which cluster_f1 does not give.",
    caution="Each cluster counts once, so small clusters usually dominate the score. The score considers only the"
    " closest counterpart of each cluster.",
)


@of_closest(
    "1/M sum over predicted clusters of max over true clusters of w / (a + b - w)",
    worked="(2/3 + 1/2) / 2",
    example="""
    >>> score = closest_cluster_precision(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # (2/4 + 2/6 + 2/4) / 3 = 4/9
    0.444444444444
    """,
)
def closest_cluster_precision(true: Fit, pred: Fit) -> float:
    """Mean over predicted clusters of a cluster's Jaccard index with the closest true cluster."""
    return pred.jaccard / pred.clusters


@of_closest(
    "1/K sum over true clusters of max over predicted clusters of w / (a + b - w)",
    worked="(2/3 + 1/2) / 2",
    example="""
    >>> closest_cluster_recall(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2/4 + 2/4) / 2
    0.5
    """,
)
def closest_cluster_recall(true: Fit, pred: Fit) -> float:
    """Mean over true clusters of a cluster's Jaccard index with the closest predicted cluster."""
    return true.jaccard / true.clusters


@of_closest(
    "2 P R / (P + R), with P = closest_cluster_precision and R = closest_cluster_recall",
    worked="2 * 7/12 * 7/12 / (7/12 + 7/12)",
    example="""
    >>> score = closest_cluster_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # 2 * 4/9 * 1/2 / (4/9 + 1/2) = 8/17
    0.470588235294
    """,
    three="""
    >>> closest_cluster_precision_recall_fscore(list("aabb"), [1, 1, 1, 1])  # 2/4 on both sides
    PrecisionRecallFscore(precision=0.5, recall=0.5, f1=0.5)
    """,
)
def closest_cluster_f1(true: Fit, pred: Fit) -> float:
    """F1 of closest-cluster precision and recall."""
    return float(f_measure(closest_cluster_precision(true, pred), closest_cluster_recall(true, pred)))


# Others
@matching.of_sums(
    "sqrt(K M) / V, where K and M are the numbers of true and predicted clusters, and V is the number of cells",
    of="clusters",
    source="Talburt et al. 2007",
    note=COUNTS,
    labelled_only=True,
    use="Use this score to compare with entity-resolution papers that report the Talburt–Wang index; otherwise use f1.",
    caution="The score only counts cells: a cell of one item has the same weight as a cell of a thousand items.",
    worked="sqrt(2 * 2) / 3",
    example="""
    >>> score = talburt_wang(list("aabb"), [1, 2, 2, 2])
    >>> round(score, 12)  # sqrt(2 * 2) / 3: two clusters on each side meet in three cells
    0.666666666667
    """,
)
def talburt_wang(n_items: int, n_cells: int, n_true: int, n_pred: int) -> float:
    """Talburt–Wang index, computed only from the numbers of clusters on each side and the number of their overlaps."""
    return math.sqrt(n_true * n_pred) / n_cells


def slopes_of_k(p: Floats | float, r: Floats | float, beta: float) -> tuple[Any, Any]:
    """Return the derivatives of the K measure by precision and by recall."""
    return np.sqrt(r / p) / 2, np.sqrt(p / r) / 2


@matching.of_means(
    "sqrt(P R), with P = precision and R = recall",
    pointwise["precision"],
    pointwise["recall"],
    slopes=slopes_of_k,
    source="Barnes 2015",
    note="",
    use="Use this score to compare with papers that report the K measure: the geometric mean of precision and recall.",
    caution="The K measure is never smaller than f1: do not compare it with F1 scores reported by others.",
    example="""
    >>> score = k_measure(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 6)  # sqrt(3/4 * 1/2)
    0.612372
    """,
)
def k_measure(p: Floats | float, r: Floats | float, beta: float) -> Floats | float:
    """Geometric mean of BCubed precision and recall, known as the K measure."""
    return np.sqrt(p * r)


@of_fits(
    "2 N - (sum over predicted clusters of max over its cells of w) - sum over true clusters of max over its cells"
    " of w",
    high=inf,
    best="lower",
    source="van Dongen 2000",
    labelled_only=True,
    weights_inside=True,
    use="Use this score if you want a distance between partitions that is a metric and counts moved items;"
    " basic_merge_distance counts splits and merges of whole clusters.",
    caution="The score is a number of items or a total weight: do not compare its values across data sets of different"
    " sizes.",
    worked="2 * 4 - (2 + 1) - (2 + 1)",
    example="""
    >>> split_join(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # 2 * 8 - (2 + 2 + 2) - (2 + 2)
    6.0
    """,
)
def split_join(true: Fit, pred: Fit) -> float:
    """Weight of the items outside the largest cell of their cluster, summed over both sides."""
    return true.others + pred.others


@matching.of_sums(
    "1/N max over one-to-one pairings of sum over pairs of w",
    of="pairing by weight",
    source="Meila and Heckerman 2001",
    pairs_clusters=True,
    use="Use this score where each cluster represents one class, as in unsupervised classification; for many clusters,"
    " use f1.",
    caution="At most one fragment of a split true cluster earns credit, and finding the best pairing can take long if"
    " many clusters are connected through shared items.",
    worked="(2 + 1) / 4",
    example="""
    The best pairing does not use the largest cell, which has the 3 items that a and 1 share: if a and 1 are paired, b
    and 2 have no partner. Pairing a with 2 and b with 1 covers 2 + 2 items.

    >>> matching_accuracy(list("aaaaabbc"), [1, 1, 1, 2, 2, 1, 1, 3])  # a with 2, b with 1, c with 3
    0.625
    """,
)
def matching_accuracy(best: float, every: float) -> float:
    """Share of items whose true and predicted clusters are paired with each other in the best one-to-one pairing."""
    return best / every
