"""BCubed precision, recall and F, and the other pointwise scores: formulas of an item's 2x2 confusion matrix.

Every formula takes `(tp, fp, fn, tn)`, float64 arrays of one shape or scalars, and works element by element. An item
is in its own matrix, so tp > 0; fp, fn and tn are exactly 0 where the set is empty. Where both sides agree (fp = fn =
0), similarities are exactly 1 and losses exactly 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from math import inf

import numpy as np

from fastbcubed.metrics.metric import (
    Family,
    Formula,
    f_measure,
    rate,
    slopes_of_f1,
    slopes_of_fbeta,
    weight_of_precision,
)
from fastbcubed.types import Floats

pointwise = Family("pointwise", low=0.0, high=1.0, best="higher", source="van Staden 2024")


@pointwise.mean_over_items(
    "tp / (tp + fp)",
    on_covers=True,
    use="Use this score to measure what share of an item's predicted cluster belongs with the item: wrong merges lower"
    " precision, just as they raise over_merge_rate.",
    caution="Precision alone rewards splitting: a prediction of only singletons has precision 1. Report precision"
    " together with recall.",
    example="""
    >>> precision(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (4 * 1 + 4 * 2/4) / 8
    0.75
    >>> precision(list("aab"), [1, 2, 1], sample_weight=[1, 2, 3])  # (1 * 1/4 + 2 + 3 * 3/4) / 6
    0.75
    """,
)
def precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the share of an item's predicted cluster that belongs with the item."""
    return tp / (tp + fp)


@pointwise.mean_over_items(
    "tp / (tp + fn)",
    on_covers=True,
    use="Use this score to measure what share of an item's true cluster was found with the item: wrong splits lower"
    " recall, just as they raise under_merge_rate.",
    caution="Recall alone rewards merging: a single cluster of all items has recall 1. Report recall together with"
    " precision.",
    example="""
    >>> recall(list("aabbbbcc"), [1, 1, 1, 1, 2, 2, 2, 2])  # (2 * 1 + 4 * 2/4 + 2 * 1) / 8
    0.75
    """,
)
def recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the share of an item's true cluster that is in the item's predicted cluster."""
    return tp / (tp + fn)


# F
@pointwise.of_means(
    "2 P R / (P + R), with P = precision and R = recall",
    pointwise["precision"],
    pointwise["recall"],
    slopes=slopes_of_f1,
    source="Amigó et al. 2009",
    on_covers=True,
    use="Use this score to rank predictions by a single number, and report it together with precision and recall.",
    caution="F1 hides whether wrong merges or wrong splits dominate, and each item earns credit for being in a cluster"
    " with itself: if most items are singletons, report elm_f1 as well.",
    example="""
    >>> f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # 2 * 3/4 * 1/2 / (3/4 + 1/2)
    0.6
    """,
    three="""
    >>> precision_recall_fscore(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    PrecisionRecallFscore(precision=0.75, recall=0.5, f1=0.6)
    """,
)
def f1(p: Floats | float, r: Floats | float, beta: float) -> Floats | float:
    """F1: the harmonic mean of mean precision and mean recall."""
    return f_measure(p, r)


@pointwise.mean_over_items(
    "tp / (tp + (fp + fn) / 2)",
    source="van Heusden et al. 2022",
    on_covers=True,
    use="Use this score where each item needs its own F1, as in a table of items: f1 is computed from means over many"
    " items, so a single item has no f1.",
    caution="The score is never larger than f1, which is the F of mean precision and mean recall. Most papers report"
    " f1, so state whether you report f1 or mean_f1.",
    example="""
    >>> mean_f1(list("aaabbb"), [1, 2, 3, 4, 4, 4])  # (3 * 1 / (1 + 2/2) + 3 * 1) / 6
    0.75
    """,
)
def mean_f1(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the F1 of an item's own precision and recall."""
    return tp / (tp + (fp + fn) / 2)


@pointwise.of_means(
    "1 / (alpha / P + (1 - alpha) / R), with P = precision, R = recall and alpha = 1 / (1 + beta^2)",
    pointwise["precision"],
    pointwise["recall"],
    slopes=slopes_of_fbeta,
    source="Amigó et al. 2009",
    on_covers=True,
    use="Use this score where wrong and missed merges have different costs: beta above 1 favours recall, and beta below"
    " 1 favours precision.",
    caution="Choose beta before you see the scores, according to the cost of a wrong merge relative to the cost of a"
    " missed merge.",
    example="""
    >>> score = fbeta(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3], beta=2)
    >>> round(score, 12)  # 1 / ((1/5) / (3/4) + (4/5) / (1/2)) = 15/28
    0.535714285714
    """,
)
def fbeta(p: Floats | float, r: Floats | float, beta: float) -> Floats | float:
    """F of mean precision and mean recall; beta above 1 favours recall."""
    return f_measure(p, r, weight_of_precision(beta))


def item_fbeta(beta: float) -> Formula:
    """Return the formula of an item's own F for one beta: tp / (tp + alpha fp + (1 - alpha) fn)."""
    alpha = weight_of_precision(beta)
    ends: dict[float, Formula] = {0.0: recall, 0.5: mean_f1, 1.0: precision}
    return ends.get(alpha) or partial(_item_f, alpha=alpha)


def _item_f(tp: Floats, fp: Floats, fn: Floats, tn: Floats, *, alpha: float) -> Floats:
    return tp / (tp + (alpha * fp + (1.0 - alpha) * fn))


@pointwise.mean_over_items(
    "tp / (tp + alpha fp + (1 - alpha) fn), with alpha = 1 / (1 + beta^2)",
    formula_of_beta=item_fbeta,
    source="van Heusden et al. 2022",
    on_covers=True,
    use="Use this score where wrong and missed merges have different costs and each item needs its own score; fbeta"
    " has no value for a single item.",
    caution="Choose beta before you see the scores. Do not confuse mean_fbeta with fbeta, which is the F of mean"
    " precision and mean recall.",
    example="""
    >>> score = mean_fbeta(list("aaabbb"), [1, 2, 3, 4, 4, 4], beta=2)
    >>> round(score, 12)  # (3 * 1 / (1 + 4/5 * 2) + 3 * 1) / 6 = 9/13
    0.692307692308
    """,
)
def mean_fbeta(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of an item's own F; beta above 1 favours recall."""
    return mean_f1(tp, fp, fn, tn)  # for beta = 1


# Of tp, fp and fn
@pointwise.mean_over_items(
    "tp / (tp + fp + fn)",
    use="Use this score to compare an item's true and predicted clusters as sets, if the overlap of two sets as a"
    " share of their union is easier to explain than mean_f1.",
    caution="The score gives wrong and missing items of a cluster the same weight; if their costs differ, use"
    " precision and recall.",
    example="""
    >>> jaccard_index(list("aabb"), [1, 2, 3, 3])  # (1/2 + 1/2 + 1 + 1) / 4
    0.75
    """,
)
def jaccard_index(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the overlap of an item's true and predicted clusters, relative to their union."""
    return tp / (tp + (fp + fn))


@pointwise.mean_over_items(
    "(fp + fn) / (tp + fp + fn)",
    best="lower",
    use="Use this score as a distance between two clusterings, neither of which needs to be the truth: it is 1 minus"
    " jaccard_index.",
    caution="The score gives wrong and missing items of a cluster the same weight; if their costs differ, use"
    " over_merge_rate and under_merge_rate.",
    example="""
    >>> jaccard_distance(list("aabb"), [1, 2, 3, 3])  # (1/2 + 1/2 + 0 + 0) / 4
    0.25
    """,
)
def jaccard_distance(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the Jaccard distance between an item's true and predicted clusters (1 - overlap / union)."""
    wrong = fp + fn
    return wrong / (tp + wrong)


@pointwise.mean_over_items(
    "fp / (tp + fp)",
    best="lower",
    on_covers=True,
    use="Use this score to report wrong merges as an error rate: it is 1 minus precision.",
    caution="The over-merge rate alone rewards splitting: it is 0 if all predicted clusters are singletons. Report"
    " over_merge_rate together with under_merge_rate.",
    example="""
    >>> over_merge_rate(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (4 * 0 + 4 * 2/4) / 8
    0.25
    """,
)
def over_merge_rate(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the share of an item's predicted cluster that does not belong with the item."""
    return fp / (tp + fp)


@pointwise.mean_over_items(
    "fn / (tp + fn)",
    best="lower",
    on_covers=True,
    use="Use this score to report wrong splits as an error rate: it is 1 minus recall.",
    caution="The under-merge rate alone rewards merging: it is 0 if all items are in one predicted cluster. Report"
    " under_merge_rate together with over_merge_rate.",
    example="""
    >>> under_merge_rate(list("aabbbbcc"), [1, 1, 1, 1, 2, 2, 2, 2])  # (4 * 0 + 4 * 2/4) / 8
    0.25
    """,
)
def under_merge_rate(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the share of an item's true cluster that is missing from the item's predicted cluster."""
    return fn / (tp + fn)


# Of tn as well
@pointwise.mean_over_items(
    "(tp + tn) / (tp + fp + fn + tn)",
    uses_tn=True,
    use="Use this score for a few large clusters, such as classes or topics, if the score should credit correctly"
    " separated items; otherwise use f1.",
    caution="With many small clusters on both sides, nearly all pairs of items are correctly separated, so accuracy is"
    " close to 1 even if most merges are wrong.",
    example="""
    >>> accuracy(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (4 * 6/8 + 4 * 4/8) / 8
    0.625
    """,
)
def accuracy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the share of all items that are correctly put into, or kept out of, the item's cluster."""
    right = tp + tn
    return right / (right + (fp + fn))


@pointwise.mean_over_items(
    "(tp / (tp + fn) + tn / (tn + fp)) / 2",
    uses_tn=True,
    use="Use this score for a few large clusters, if correctly joined and correctly separated items should each"
    " contribute half of the score: it is the mean of recall and specificity.",
    caution="With many small clusters on both sides, specificity, which contributes half of the score, is close to 1"
    " even if most merges are wrong.",
    example="""
    >>> labels_true, labels_pred = list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3]
    >>> balanced_accuracy(labels_true, labels_pred)  # (4 * (1/2 + 1) / 2 + 4 * (1/2 + 1/2) / 2) / 8
    0.625
    """,
)
def balanced_accuracy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the average of an item's recall and specificity."""
    return (tp / (tp + fn) + rate(tn, tn + fp)) / 2


@pointwise.mean_over_items(
    "tn / (tn + fp), 1 if there is only one true cluster",
    uses_tn=True,
    use="Use this score for a few large clusters, to measure what share of the items outside an item's true cluster"
    " are also outside its predicted cluster; for items inside the true cluster, use recall.",
    caution="Specificity is close to 1 for any prediction if predicted clusters are many and small.",
    example="""
    >>> specificity(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (4 * 4/4 + 4 * 2/4) / 8
    0.75
    """,
)
def specificity(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean share of the items outside an item's true cluster that are also outside the item's predicted cluster."""
    return rate(tn, tn + fp)


@pointwise.mean_over_items(
    "tn / (tn + fn), 1 if there is only one predicted cluster",
    uses_tn=True,
    use="Use this score for a few large clusters, to measure what share of the items outside an item's predicted"
    " cluster are also outside its true cluster; for items inside the predicted cluster, use precision.",
    caution="The negative predictive value is close to 1 for any prediction if true clusters are many and small.",
    example="""
    >>> npv(list("aabbbbcc"), [1, 1, 1, 1, 2, 2, 2, 2])  # (2 * 4/4 + 4 * 2/4 + 2 * 4/4) / 8
    0.75
    """,
)
def npv(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean share of the items outside an item's predicted cluster that are also outside the item's true cluster."""
    return rate(tn, tn + fn)


@pointwise.mean_over_items(
    "tp / (tp + fn) + tn / (tn + fp) - 1, where 0 / 0 counts as 1",
    low=-1.0,
    uses_tn=True,
    use="Use this score for a few large clusters, to combine recall and specificity in one score.",
    caution="With many small clusters on both sides, specificity is close to 1, so informedness is close to recall.",
    example="""
    >>> labels_true, labels_pred = list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3]
    >>> informedness(labels_true, labels_pred)  # (4 * (1/2 + 1 - 1) + 4 * (1/2 + 1/2 - 1)) / 8
    0.25
    """,
)
def informedness(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of recall + specificity - 1, known as Youden's J."""
    return tp / (tp + fn) - rate(fp, tn + fp, empty=0.0)


@pointwise.mean_over_items(
    "tp / (tp + fp) + tn / (tn + fn) - 1, where 0 / 0 counts as 1",
    low=-1.0,
    uses_tn=True,
    use="Use this score for a few large clusters, to combine precision and the negative predictive value (npv) in one"
    " score.",
    caution="With many small clusters on both sides, the negative predictive value is close to 1, so markedness is"
    " close to precision.",
    example="""
    >>> labels_true, labels_pred = list("aabbbbcc"), [1, 1, 1, 1, 2, 2, 2, 2]
    >>> markedness(labels_true, labels_pred)  # (4 * (1/2 + 1 - 1) + 4 * (1/2 + 1/2 - 1)) / 8
    0.25
    """,
)
def markedness(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of precision + negative predictive value - 1."""
    return tp / (tp + fp) - rate(fn, tn + fn, empty=0.0)


@pointwise.mean_over_items(
    "(tp tn - fp fn) / sqrt((tp+fp) (tp+fn) (tn+fp) (tn+fn)), 1 where fp = fn = 0, and otherwise 0 if a margin is"
    " empty",
    low=-1.0,
    uses_tn=True,
    use="Use this score for a few large clusters, if you want a single correlation that uses all four entries of an"
    " item's confusion matrix; otherwise use mean_f1.",
    caution="With many small clusters on both sides, the score is close to pointwise_fowlkes_mallows, which is"
    " simpler.",
    example="""
    Half of the items have tp = 2, fp = 0, fn = 2 and tn = 4; for the others, all four are 2.

    >>> score = mcc(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 6)  # (8 / sqrt(2 * 4 * 4 * 6) + 0) / 2 = 1 / sqrt(12)
    0.288675
    """,
)
def mcc(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the Matthews correlation coefficient of an item's confusion matrix."""
    differ = np.not_equal(fp + fn, 0)
    tp, fp, fn, tn = _scaled(tp, fp, fn, tn)
    above = tp * tn - fp * fn
    # Each root pairs a small margin with a large one, so that products of small margins do not underflow.
    below = np.sqrt((tp + fp) * (tn + fn)) * np.sqrt((tp + fn) * (tn + fp))
    scores: Floats = np.where(differ, 0.0, 1.0)
    np.divide(above, below, out=scores, where=differ & np.not_equal(below, 0))
    return np.clip(scores, -1.0, 1.0)


@pointwise.mean_over_items(
    "2 (tp tn - fp fn) / ((tp+fn) (fn+tn) + (tp+fp) (fp+tn)), 1 where fp = fn = 0",
    low=-1.0,
    uses_tn=True,
    use="Use this score for a few large clusters, if you want to correct each item's score for chance; adjusted_rand"
    " is a pairwise score corrected for chance.",
    caution="With many small clusters on both sides, the score is close to mean_f1, which is simpler. Do not confuse"
    " pointwise_ari with adjusted_rand, a pairwise score.",
    example="""
    Half of the items have tp = 2, fp = 0, fn = 2 and tn = 4; for the others, all four are 2.

    >>> labels_true, labels_pred = list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3]
    >>> pointwise_ari(labels_true, labels_pred)  # (2 * 8 / (4 * 6 + 2 * 4) + 0) / 2
    0.25
    """,
)
def pointwise_ari(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of Cohen's kappa, which has the form of the adjusted Rand index."""
    tp, fp, fn, tn = _scaled(tp, fp, fn, tn)
    above = tp * tn - fp * fn
    below = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)  # 0 only for a single cluster on both sides
    return np.maximum(rate(above + above, below), -1.0)


def _scaled(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> tuple[Floats, ...]:
    """Return the matrix multiplied by the power of two that brings its total between 1/2 and 1.

    The scaling is exact, and keeps products of entries from overflowing.
    """
    exponent = np.frexp((tp + tn) + (fp + fn))[1]
    return tuple(np.ldexp(part, -exponent) for part in (tp, fp, fn, tn))


@pointwise.mean_over_items(
    "sqrt(tp / (tp + fp) * tp / (tp + fn))",
    use="Use this score if you want the geometric mean of each item's precision and recall; mean_f1 uses the harmonic"
    " mean.",
    caution="The score hides whether wrong merges or wrong splits dominate. Do not confuse pointwise_fowlkes_mallows"
    " with pair_fowlkes_mallows, a pairwise score.",
    example="""
    >>> labels_true, labels_pred = list("aaaabbbb"), [1, 2, 3, 4, 5, 5, 5, 5]
    >>> pointwise_fowlkes_mallows(labels_true, labels_pred)  # (4 * sqrt(1 * 1/4) + 4 * 1) / 8
    0.75
    """,
)
def pointwise_fowlkes_mallows(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the geometric mean of an item's precision and recall."""
    return np.sqrt(tp / (tp + fp) * (tp / (tp + fn)))


@pointwise.mean_over_items(
    "tp / max(tp + fp, tp + fn)",
    source="Gates et al. 2019",
    use="Use this score to compare with CluSim's element-centric similarity on partitions; for each item, the score is"
    " the smaller of precision and recall.",
    caution="The score hides whether wrong merges or wrong splits dominate, and for each item it ignores the less"
    " costly of the two kinds of error.",
    example="""
    >>> element_centric(list("aabb"), [1, 1, 2, 3])  # (2 * 2/2 + 2 * 1/2) / 4
    0.75
    """,
)
def element_centric(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the overlap of an item's true and predicted clusters, relative to the larger of the two.

    On partitions, the score equals the element-centric similarity of CluSim for any value of CluSim's parameter
    alpha.
    """
    return tp / (tp + np.maximum(fp, fn))


@pointwise.mean_over_items(
    "fp + fn",
    high=inf,
    best="lower",
    use="Use this score to measure how many items, or how much weight, are in only one of an item's true and predicted"
    " clusters; jaccard_distance is relative to the union of the two clusters.",
    caution="The score is a number of items or a total weight, and grows with cluster size: do not compare its values"
    " across data sets.",
    example="""
    >>> symmetric_difference(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (4 * 2 + 4 * 4) / 8
    3.0
    """,
)
def symmetric_difference(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the total weight of the items in only one of an item's true and predicted clusters."""
    return fp + fn


#: Scores that are 1 minus another score, by name.
COMPLEMENTS = {"over_merge_rate": "precision", "under_merge_rate": "recall"}
#: Columns of losses in tables, and the score over all items that each of them sums to.
LOSSES = {
    "precision_loss": pointwise["over_merge_rate"],
    "recall_loss": pointwise["under_merge_rate"],
}
#: The loss by which the clusters of each side are ordered first.
LOSS_OF_SIDE = {"true": "recall_loss", "pred": "precision_loss"}


def losses_of(sums: Mapping[str, Floats], total: float) -> dict[str, Floats]:
    """Return losses from the sums of weight * score, by name of the score, and the total weight of all items."""
    return {name: sums[metric.name] / total for name, metric in LOSSES.items()}


def distinct(names: Iterable[str], known: Collection[str] | None = None) -> list[str]:
    """Return names of scores without those that are 1 minus another of them, or 1 minus one of `known`."""
    names = list(names)
    return [name for name in names if COMPLEMENTS.get(name) not in (names if known is None else known)]
