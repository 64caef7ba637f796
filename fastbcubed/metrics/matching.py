"""Matching: how well each cluster fits its best counterpart on the other side.

Where weights count in means alone (`weighting="outer"`), shares and F are those of counts, and the means
over items weigh them. A one-to-one pairing is the one of the largest weight either way. Where clusters
overlap, an item counts once in every cluster that it is in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastbcubed.metrics.assignment import pair_clusters
from fastbcubed.metrics.counterparts import Fit, fits
from fastbcubed.metrics.family import Family
from fastbcubed.metrics.labelings import as_cover, compute, public
from fastbcubed.metrics.metric import Floats
from fastbcubed.metrics.pointwise import pointwise
from fastbcubed.metrics.rates import f_measure
from fastbcubed.metrics.signatures import Labels

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency
    from fastbcubed.runtime.pool import Pool

NOTE = (
    "K true clusters of weights a and M predicted clusters of weights b meet in V cells of weights w; N is the"
    " weight of all items. Without weights all of these are numbers of items. Where clusters overlap, an item"
    " counts once in every cluster that it is in, and N is the sum of the a, or of the b."
)
COUNTS = "Clusters count equally, so that weights make no difference."


matching = Family("matching", low=0.0, high=1.0, best="higher", note=NOTE)


def _from_fits(formula: Callable[[Fit, Fit], float], contingency: Contingency, pool: Pool) -> float:
    return formula(*contingency.once(fits, pool))


#: Declares a score of the best counterparts on both sides.
of_fits = partial(matching.of_cells, by=_from_fits)


@of_fits(
    "sum over predicted clusters of their largest w, over N",
    source="Zhao and Karypis 2001",
    on_covers=True,
    example="""
    >>> purity(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2 + 2 + 2) / 8
    0.75
    """,
)
def purity(true: Fit, pred: Fit) -> float:
    """Mean over items of the largest share that a true cluster has in their predicted cluster."""
    return pred.own / pred.weight


@of_fits(
    "sum over true clusters of their largest w, over N",
    source="Zhao and Karypis 2001",
    on_covers=True,
    example="""
    >>> inverse_purity(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2 + 2) / 8
    0.5
    """,
)
def inverse_purity(true: Fit, pred: Fit) -> float:
    """Mean over items of the largest share that a predicted cluster has in their true cluster."""
    return true.own / true.weight


@of_fits(
    "2 P R / (P + R), with P = purity and R = inverse_purity",
    source="Amigó et al. 2009",
    on_covers=True,
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
    example="""
    Both true clusters are fitted best by the predicted one that holds two of their items and no other.

    >>> score = class_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # (4/8) * 2 * 2 / (4 + 2) + (4/8) * 2 * 2 / (4 + 2) = 2/3
    0.666666666667
    """,
)
def class_f1(true: Fit, pred: Fit) -> float:
    """Mean over items of the F1 of their true cluster and the predicted one that fits it best."""
    return true.f1 / true.weight


# Clusters that are the same on both sides


@of_fits(
    "clusters that are the same on both sides, over M predicted clusters",
    source="Barnes 2015",
    note=COUNTS,
    on_covers=True,
    example="""
    >>> cluster_precision(list("aabc"), [1, 1, 2, 2])  # of 1 and 2, the first
    0.5
    """,
)
def cluster_precision(true: Fit, pred: Fit) -> float:
    """Share of predicted clusters that are true clusters, item for item."""
    return pred.exact / pred.clusters


@of_fits(
    "clusters that are the same on both sides, over K true clusters",
    source="Barnes 2015",
    note=COUNTS,
    on_covers=True,
    example="""
    >>> cluster_recall(list("aabb"), [1, 1, 2, 3])  # of a and b, the first
    0.5
    """,
)
def cluster_recall(true: Fit, pred: Fit) -> float:
    """Share of true clusters that are predicted clusters, item for item."""
    return true.exact / true.clusters


@of_fits(
    "2 P R / (P + R), with P = cluster_precision and R = cluster_recall",
    source="Barnes 2015",
    note=COUNTS,
    on_covers=True,
    example="""
    >>> cluster_f1(list("aabb"), [1, 1, 2, 3])  # 2 * 1/3 * 1/2 / (1/3 + 1/2)
    0.4
    """,
    three="""
    >>> cluster_precision_recall_fscore(list("aabbc"), [1, 1, 2, 3, 4])  # a and c of a, b, c; 1 and 4 of 4
    PrecisionRecallFscore(precision=0.5, recall=0.6666666666666666, f1=0.5714285714285715)
    """,
)
def cluster_f1(true: Fit, pred: Fit) -> float:
    """F1 of cluster precision and cluster recall."""
    return 2 * true.exact / (true.clusters + pred.clusters)


# The closest cluster of each


@of_fits(
    "1/M sum over predicted clusters of max over true clusters of w / (a + b - w)",
    source="Maidasani et al. 2012",
    weights_inside=True,
    on_covers=True,
    example="""
    >>> score = closest_cluster_precision(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # (2/4 + 2/6 + 2/4) / 3 = 4/9
    0.444444444444
    """,
)
def closest_cluster_precision(true: Fit, pred: Fit) -> float:
    """Mean over predicted clusters, each once, of the Jaccard index with the closest true one."""
    return pred.jaccard / pred.clusters


@of_fits(
    "1/K sum over true clusters of max over predicted clusters of w / (a + b - w)",
    source="Maidasani et al. 2012",
    weights_inside=True,
    on_covers=True,
    example="""
    >>> closest_cluster_recall(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2/4 + 2/4) / 2
    0.5
    """,
)
def closest_cluster_recall(true: Fit, pred: Fit) -> float:
    """Mean over true clusters, each once, of the Jaccard index with the closest predicted one."""
    return true.jaccard / true.clusters


@of_fits(
    "2 P R / (P + R), with P = closest_cluster_precision and R = closest_cluster_recall",
    source="Maidasani et al. 2012",
    weights_inside=True,
    on_covers=True,
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


@matching.of_cells(
    "sqrt(K M) / V, with K true and M predicted clusters that meet in V cells",
    source="Talburt et al. 2007",
    note=COUNTS,
    labelled_only=True,
    example="""
    >>> score = talburt_wang(list("aabb"), [1, 2, 2, 2])
    >>> round(score, 12)  # sqrt(2 * 2) / 3: two clusters on each side meet in three cells
    0.666666666667
    """,
)
def talburt_wang(contingency: Contingency, pool: Pool) -> float:
    """Talburt and Wang's index, from the numbers of clusters and of their overlaps alone."""
    true, pred = contingency.once(fits, pool)
    return math.sqrt(true.clusters * pred.clusters) / contingency.n_cells


def slopes_of_k(p: Floats | float, r: Floats | float, beta: float) -> tuple[Any, Any]:
    """Return the derivatives of the K measure by precision and by recall, which are positive."""
    return np.sqrt(r / p) / 2, np.sqrt(p / r) / 2


@matching.of_means(
    "sqrt(P R), with P = precision and R = recall",
    pointwise["precision"],
    pointwise["recall"],
    slopes=slopes_of_k,
    source="Barnes 2015",
    note="",
    example="""
    >>> score = k_measure(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 6)  # sqrt(3/4 * 1/2)
    0.612372
    """,
)
def k_measure(p: Floats | float, r: Floats | float, beta: float) -> Floats | float:
    """Geometric mean of BCubed precision and recall, the K measure."""
    return np.sqrt(p * r)


@of_fits(
    "2 N - sum over predicted clusters of their largest w - the same over true clusters",
    high=inf,
    best="lower",
    source="van Dongen 2000",
    labelled_only=True,
    weights_inside=True,
    example="""
    >>> split_join(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # 2 * 8 - (2 + 2 + 2) - (2 + 2)
    6.0
    """,
)
def split_join(true: Fit, pred: Fit) -> float:
    """Weight of the items beside the largest cell of their cluster, of both sides: a metric."""
    return true.others + pred.others


@matching.of_cells(
    "max over one-to-one pairings of the sum of their w, over N",
    source="Meila and Heckerman 2001",
    pairs_clusters=True,
    example="""
    One cluster of each side is left over, and the largest cell is not used: 3 alone is less than 2 + 2.

    >>> matching_accuracy(list("aaaaabbc"), [1, 1, 1, 2, 2, 1, 1, 3])  # a with 2, b with 1, c with 3
    0.625
    """,
)
def matching_accuracy(contingency: Contingency, pool: Pool) -> float:
    """Share of the items in the best one-to-one pairing of true and predicted clusters."""

    def weights(start: int, stop: int) -> Floats:
        return np.ascontiguousarray(contingency.weight[start:stop])

    pairing = pair_clusters(contingency, weights, pool)
    return pairing.best / pairing.every


@public
class ExactMatch(NamedTuple):
    """The shares of predicted and of true clusters that the other side has, too, and their F1."""

    precision: float
    recall: float
    f1: float


@public
def exact_match(
    labels_true: Labels | None = None,
    labels_pred: Labels | None = None,
    *,
    contingency: Contingency | None = None,
) -> ExactMatch:
    """Compare the clusters of both sides as sets of items, each as often as it is there.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_items,), dict or Clustering
        Cluster label of each item, or a set of labels for each, both in the same item order; or a dict from
        item to cluster or set of clusters; or a clustering with a row per membership.
    contingency : Contingency, optional
        The cells, as `fastbcubed.contingency` makes them, in place of labels.

    Returns
    -------
    ExactMatch
        Named tuple (precision, recall, f1): the shares of predicted and of true clusters that the
        other side has, too, and their F1. All are 1 if and only if the clusterings are identical.

    Raises
    ------
    FastBCubedError
        If there is no item, if the two sides differ in length, or if a label is missing or cannot be
        one. Every error below is one, too.
    OptionError
        If there are neither labels nor a contingency, or both.

    Notes
    -----
    Where clusters overlap, CICE-BCubed and the others can be 1 for clusterings that differ in how often a
    cluster is there; this one cannot. Weights make no difference.

    Examples
    --------
    >>> exact_match(list("aabb"), [1, 1, 2, 3])  # one of three, one of two
    ExactMatch(precision=0.3333333333333333, recall=0.5, f1=0.4)
    """
    cells = as_cover(labels_true, labels_pred, None, contingency)
    return ExactMatch(*compute(cells, [matching[f"cluster_{part}"] for part in ExactMatch._fields]))
