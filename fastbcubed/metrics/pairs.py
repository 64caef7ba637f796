"""Pairwise scores: each side puts the two items of a pair in the same cluster or in different clusters.

Formulas take exact fractions or arrays of floats: the number of pairs of each kind or, with weights, the sum over
these pairs of the product of their items' weights.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

import numpy as np

from fastbcubed.metrics.metric import LIKE_SKLEARN, Family, Page, rate

#: A fraction, or an array of floats.
Number = Any

NOTE = (
    "TP, FP, FN and TN count the pairs of items that are in the same cluster on both sides, in the prediction only, in"
    " the truth only, and on neither side, respectively. With weights, a pair counts as the product of its items'"
    " weights."
)

pairs = Family(
    "pairs",
    low=0.0,
    high=1.0,
    best="higher",
    source="Amigó et al. 2009",
    note=NOTE,
    labelled_only=True,
    weights_inside=True,
)


#: Decorators that declare a score of the confusion matrix of pairs, and of the pairs on which the sides differ.
of_pairs = partial(pairs.of_sums, of="pairs")
of_wrong_pairs = partial(pairs.of_sums, of="wrong pairs")
#: Advice on counts of pairs.
OF_COUNTS = (
    "Use this score where you need numbers of pairs, for example to estimate costs or to compute a score of your own;"
    " pair_precision and pair_recall are the corresponding shares of pairs."
)
LARGE_CLUSTERS = "A few large clusters can dominate the score, and singletons on both sides do not count."


def share(part: Number, whole: Number) -> Number:
    """Return part / whole, or 1 if whole is 0, since nothing there could have gone wrong."""
    if isinstance(whole, np.ndarray):
        return rate(part, whole)
    return part / whole if whole else 1


@of_pairs(
    "TP",
    high=inf,
    use=OF_COUNTS,
    caution="The number of pairs grows with the square of cluster size, so a few large clusters can dominate the"
    " count.",
    example="""
    >>> pair_tp(list("aaabb"), [1, 1, 2, 2, 2])  # one pair of a, one of b
    2.0
    """,
)
def pair_tp(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Number of pairs of items that are in the same cluster on both sides."""
    return tp


@of_wrong_pairs(
    "FP",
    high=inf,
    best="lower",
    use=OF_COUNTS,
    caution="The number of pairs grows with the square of cluster size, so one wrong merge of large clusters can"
    " outweigh thousands of wrong merges of small clusters.",
    example="""
    >>> pair_fp(list("aaabb"), [1, 1, 2, 2, 2])  # an a with each b
    2.0
    """,
)
def pair_fp(fp: Number, fn: Number) -> Number:
    """Number of pairs of items that are in the same cluster only in the prediction."""
    return fp


@of_wrong_pairs(
    "FN",
    high=inf,
    best="lower",
    use=OF_COUNTS,
    caution="The number of pairs grows with the square of cluster size, so one wrong split of a large cluster can"
    " outweigh thousands of wrong splits of small clusters.",
    example="""
    >>> pair_fn(list("aaabb"), [1, 1, 2, 2, 2])  # an a from each other a
    2.0
    >>> pair_fn(list("aab"), [1, 2, 1], sample_weight=[1, 2, 3])  # 1 * 2
    2.0
    """,
)
def pair_fn(fp: Number, fn: Number) -> Number:
    """Number of pairs of items that are in the same cluster only in the truth."""
    return fn


@of_pairs(
    "TN",
    high=inf,
    use=OF_COUNTS,
    caution="With many small clusters on both sides, nearly all pairs are true negatives, even if most merges are"
    " wrong.",
    example="""
    >>> pair_tn(list("aaabb"), [1, 1, 2, 2, 2])  # 10 pairs in all, less 2 + 2 + 2
    4.0
    """,
)
def pair_tn(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Number of pairs of items that are in different clusters on both sides."""
    return tn


@of_pairs(
    "TP / (TP + FP), 1 if all predicted clusters are singletons",
    share_of=(1.0, 0.0),
    use="Use this score where people judge links: it is the share of predicted links that are right; precision is the"
    " counterpart for items.",
    caution="One wrong merge of large clusters can dominate the score, and predicted singletons do not count.",
    example="""
    >>> pair_precision(list("aaabb"), [1, 1, 2, 2, 2])  # 2 / (2 + 2)
    0.5
    """,
)
def pair_precision(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Share of the pairs in the same predicted cluster that are also in the same true cluster."""
    return share(tp, tp + fp)


@of_pairs(
    "TP / (TP + FN), 1 if all true clusters are singletons",
    share_of=(0.0, 1.0),
    use="Use this score where people judge links: it is the share of true links that were found; recall is the"
    " counterpart for items.",
    caution="A few large true clusters can dominate the score, and true singletons do not count.",
    example="""
    >>> pair_recall(list("aaabb"), [1, 1, 2, 2, 2])  # 2 / (2 + 2)
    0.5
    """,
)
def pair_recall(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Share of the pairs in the same true cluster that are also in the same predicted cluster."""
    return share(tp, tp + fn)


@of_pairs(
    "2 TP / (2 TP + FP + FN), 1 if all clusters of both sides are singletons",
    share_of=(1.0, 1.0),
    use="Use this score to compare with record-linkage tools that report pairwise F1; a large difference from f1"
    " suggests that a few large clusters dominate.",
    caution="A few large clusters can dominate the score, and singletons on both sides do not count. The score fails"
    " two of the four constraints of Amigó et al.",
    example="""
    >>> pair_f1(list("aaab"), [1, 1, 1, 1])  # 2 * 1/2 * 1 / (1/2 + 1), with P = 3 / 6
    0.6666666666666666
    """,
    three="""
    >>> pair_precision_recall_fscore(list("aaab"), [1, 1, 1, 1])
    PrecisionRecallFscore(precision=0.5, recall=1.0, f1=0.6666666666666666)
    """,
)
def pair_f1(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """F1 of pair precision and pair recall."""
    return share(2 * tp, 2 * tp + fp + fn)


@of_pairs(
    "(TP + TN) / (TP + FP + FN + TN), 1 if there is one item",
    source="Rand 1971",
    use="Use this score to compare with papers that report the Rand index; adjusted_rand corrects the index for"
    " chance.",
    caution="With many small clusters on both sides, nearly all pairs are correctly separated, so the score is close"
    " to 1 even if most merges are wrong.",
    example="""
    >>> rand(list("aaabb"), [1, 1, 2, 2, 2])  # (2 + 4) / 10
    0.6
    """,
    also={"rand_score": Page(note=LIKE_SKLEARN)},
)
def rand(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Share of all pairs of items on which the two sides agree, known as the Rand index."""
    return share(tp + tn, tp + fp + fn + tn)


@of_pairs(
    "2 (TP TN - FP FN) / ((TP + FN) (FN + TN) + (TP + FP) (FP + TN)), 1 where the ratio is 0 / 0: both sides consist"
    " of a single cluster, or both sides consist of singletons",
    share_of=(1.0, 1.0),
    low=-1.0,
    source="Hubert and Arabie 1985",
    use="Use this score to compare partitions with few clusters, such as those of k-means, if a score of 0 should mean"
    " agreement by chance; for many small clusters, use f1.",
    caution="A few large clusters can dominate the score; with many small clusters on both sides, it is close to"
    " pair_f1.",
    example="""
    >>> score = adjusted_rand(list("aaabb"), [1, 1, 2, 2, 2])
    >>> round(score, 12)  # 2 * (2 * 4 - 2 * 2) / (4 * 6 + 4 * 6) = 1/6
    0.166666666667
    """,
    also={"adjusted_rand_score": Page(note=LIKE_SKLEARN)},
)
def adjusted_rand(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Rand index adjusted for chance: 0 is the expected value for shuffled labels, and 1 is the maximum."""
    return share(2 * (tp * tn - fp * fn), (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn))


@of_pairs(
    "TP / (TP + FP + FN), 1 if all clusters of both sides are singletons",
    share_of=(1.0, 1.0),
    use="Use this score to compare with papers that report the Jaccard index of pairs; pair_jaccard and pair_f1 rank"
    " predictions in the same order.",
    caution=LARGE_CLUSTERS,
    example="""
    >>> pair_jaccard(list("aaab"), [1, 1, 1, 1])  # 3 / (3 + 3 + 0)
    0.5
    """,
)
def pair_jaccard(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Share of the pairs in the same cluster on at least one side that are in the same cluster on both sides."""
    return share(tp, tp + fp + fn)


@of_pairs(
    "sqrt(P R), with P = pair_precision and R = pair_recall",
    share_of=(1.0, 1.0),
    source="Fowlkes and Mallows 1983",
    use="Use this score to compare with papers that report the Fowlkes–Mallows index; it is the geometric mean of"
    " pair_precision and pair_recall.",
    caution=LARGE_CLUSTERS,
    example="""
    >>> pair_fowlkes_mallows(list("aaabb"), [1, 1, 2, 2, 2])  # sqrt(2/4 * 2/4)
    0.5
    """,
    also={
        "fowlkes_mallows_score": Page(
            """
            >>> fowlkes_mallows_score(list("aaabb"), [1, 1, 2, 2, 2])  # sqrt(2/4 * 2/4)
            0.5
            >>> fowlkes_mallows_score(list("ab"), [1, 2])
            1.0
            """,
            note=f"{LIKE_SKLEARN} For two clusterings of only singletons, which are identical, scikit-learn returns 0;"
            " this function returns 1, like the other pairwise scores.",
        )
    },
)
def pair_fowlkes_mallows(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Geometric mean of pair precision and pair recall."""
    return np.sqrt(np.float64(pair_precision(tp, fp, fn, tn) * pair_recall(tp, fp, fn, tn)))


@of_wrong_pairs(
    "2 (FP + FN)",
    high=inf,
    best="lower",
    source="Mirkin 1996",
    use="Use this score if you want a distance between partitions that is a metric and counts pairs;"
    " variation_of_information is a metric in bits.",
    caution="The score is a number of pairs, which grows with the data: do not compare its values across data sets.",
    example="""
    >>> mirkin(list("aaabb"), [1, 1, 2, 2, 2])  # 2 * (2 + 2)
    8.0
    """,
)
def mirkin(fp: Number, fn: Number) -> Number:
    """Number of ordered pairs of items on which the two sides disagree, known as Mirkin's metric."""
    return 2 * (fp + fn)
