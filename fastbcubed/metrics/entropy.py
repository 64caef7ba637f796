"""Scores based on entropies: of the clusters of each side, and of each side given the other.

H(C) and H(K) are the entropies of the true and of the predicted cluster of a random item; H(C|K) and H(K|C) are the
entropies of one cluster given the other. All are in nats, as numbers or as arrays over several clusterings.
"""

from __future__ import annotations

import math
from functools import partial
from math import inf
from typing import Any

import numpy as np

from fastbcubed.errors import OptionError, quoted
from fastbcubed.metrics.metric import LIKE_SKLEARN, Family, Page, rate
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.types import Floats

#: A float, or an array of floats.
Amount = Any
BITS = 1 / math.log(2)
NOTE = (
    "C and K are the true and the predicted cluster of a random item, drawn with a probability proportional to its"
    " weight, and n is the number of items. H(C) is the entropy of C in bits, and H(C|K) is the entropy of C that"
    " remains once K is known."
)

entropy = Family("entropy", low=0.0)
#: Properties shared by scores over all items that are not means over items.
WHOLE: dict[str, Any] = {"labelled_only": True, "weights_inside": True, "note": NOTE}
#: Properties shared by scores that are relative to another amount.
SHARE: dict[str, Any] = {**WHOLE, "high": 1.0, "best": "higher"}
#: Properties shared by the losses of items.
LOSS: dict[str, Any] = {"high": inf, "best": "lower"}


#: Decorator that declares a score of the four entropies.
of_entropies = partial(entropy.of_sums, of="entropies")


# Scores of items
def mean_cluster_entropy(
    true: Amount, pred: Amount, true_given_pred: Amount, pred_given_true: Amount
) -> Amount:
    """Return H(C|K) in bits."""
    return true_given_pred * BITS


def mean_class_entropy(
    true: Amount, pred: Amount, true_given_pred: Amount, pred_given_true: Amount
) -> Amount:
    """Return H(K|C) in bits."""
    return pred_given_true * BITS


def mean_variation_of_information(
    true: Amount, pred: Amount, true_given_pred: Amount, pred_given_true: Amount
) -> Amount:
    """Return H(C|K) + H(K|C) in bits."""
    return true_given_pred * BITS + pred_given_true * BITS


@entropy.mean_over_items(
    "log2((tp + fp) / tp)",
    finalize=mean_cluster_entropy,
    sums=("entropies",),
    **LOSS,
    source="Amigó et al. 2009",
    use="Use this score to measure, in bits, how mixed predicted clusters are; class_entropy measures how scattered"
    " true clusters are.",
    caution="Cluster entropy alone rewards splitting: it is 0 if all predicted clusters are singletons.",
    example="""
    >>> cluster_entropy(list("aabb"), [1, 1, 1, 1])  # log2(4/2) for each item
    1.0
    """,
)
def cluster_entropy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Uncertainty about an item's true cluster given its predicted cluster, H(C|K), in bits."""
    return np.log1p(fp / tp) * BITS


@entropy.mean_over_items(
    "log2((tp + fn) / tp)",
    finalize=mean_class_entropy,
    sums=("entropies",),
    **LOSS,
    source="Bakus et al. 2002",
    use="Use this score to measure, in bits, how scattered true clusters are; cluster_entropy measures how mixed"
    " predicted clusters are.",
    caution="Class entropy alone rewards merging: it is 0 if all items are in one predicted cluster.",
    example="""
    >>> class_entropy(list("aabb"), [1, 1, 2, 3])  # (0 + 0 + log2(2/1) + log2(2/1)) / 4
    0.5
    """,
)
def class_entropy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Uncertainty about an item's predicted cluster given its true cluster, H(K|C), in bits."""
    return np.log1p(fn / tp) * BITS


# Information shared by the sides
def shared(true: float, pred: float, true_given_pred: float, pred_given_true: float) -> float:
    """Return the mutual information in nats, computed from the side that has less entropy to lose."""
    return max(0.0, true - true_given_pred if true <= pred else pred - pred_given_true)


def norm(true: float, pred: float, pred_given_true: float, average: str) -> float:
    """Return the entropy that bounds the mutual information: an average of both entropies, or the joint entropy."""
    found = {
        "arithmetic": (true + pred) / 2,
        "geometric": math.sqrt(true) * math.sqrt(pred),
        "min": min(true, pred),
        "max": max(true, pred),
        "joint": true + pred_given_true,
    }
    if not is_one_of(average, found):
        raise OptionError(f"average_method must be one of {', '.join(found)}, not {quoted(average)}")
    return found[average]


@of_entropies(
    "I = H(C) - H(C|K)",
    **WHOLE,
    high=inf,
    best="higher",
    source="Strehl and Ghosh 2002",
    use="Use this score as a component of other information-theoretic scores; nmi and ami are normalized and therefore"
    " easier to compare across data sets.",
    caution="Mutual information is largest if all predicted clusters are singletons: splitting a predicted cluster"
    " never lowers the score.",
    worked="1 - 0.6887",
    example="""
    >>> mutual_info(list("aabb"), [1, 1, 2, 3])  # log2(2) - 0
    1.0
    """,
    also={
        "mutual_info_score": Page(
            """
            >>> score = mutual_info_score(list("aabb"), [1, 1, 2, 3])
            >>> round(score, 12)  # log(2) - 0
            0.69314718056
            """,
            note=f"{LIKE_SKLEARN} The values are in nats.",
        )
    },
)
def mutual_info(true: float, pred: float, true_given_pred: float, pred_given_true: float) -> float:
    """Mutual information of the two clusterings, in bits."""
    return shared(true, pred, true_given_pred, pred_given_true) * BITS


@entropy.of_sums(
    "E[I] = sum over pairs of clusters of sizes a, b of E[(k / n) log2(n k / (a b))], where k is hypergeometric:"
    " b draws from n items, a of them marked",
    of="chance",
    **WHOLE,
    high=inf,
    best="neither",
    source="Vinh et al. 2010",
    unweighted_only=True,
    use="Use this score to see how much mutual information clusters of the same sizes would have by chance; ami"
    " corrects mutual information for chance.",
    caution="The score depends on the prediction only through the sizes of predicted clusters.",
    worked="2 * (1/2 * 1/4 * log2(4/6) + 1/2 * 2/4 * log2(8/6)) + 2 * 1/2 * 1/4 * log2(4/2)",
    example="""
    In two pairs of a true and a predicted cluster, both clusters have 2 items and share both items with probability
    1/6: each pair adds 1/6 * 2/4 * log2(4 * 2 / 4) = 1/12. In four pairs, the only item of the predicted cluster is in
    the true cluster with probability 1/2: each pair adds 1/2 * 1/4 * log2(4 / 2) = 1/8.

    >>> score = expected_mutual_info(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 2 * 1/12 + 4 * 1/8
    0.666666666667
    """,
)
def expected_mutual_info(expected: float, fixed: bool) -> float:
    """Mutual information, in bits, expected by chance if the labels of one side are shuffled."""
    return expected * BITS


@entropy.mean_over_items(
    "log2((tp + fp) / tp) + log2((tp + fn) / tp)",
    finalize=mean_variation_of_information,
    sums=("entropies",),
    **LOSS,
    source="Meila 2003",
    use="Use this score if you want a distance between partitions that is a metric and measured in bits: it is the sum"
    " of cluster_entropy and class_entropy.",
    caution="The score has no fixed upper bound (it can reach the logarithm of the number of items): do not compare"
    " its values across data sets.",
    example="""
    >>> variation_of_information(list("aabb"), [1, 1, 2, 3])  # 0 + 1/2
    0.5
    """,
    also={
        "combined_entropy": Page(
            """
            >>> combined_entropy(list("aabb"), [1, 1, 1, 1], beta=0.25)  # 1/4 of log2(4/2), and 3/4 of 0
            0.25
            """
        )
    },
)
def variation_of_information(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Sum of the uncertainties about each clustering given the other, H(C|K) + H(K|C), in bits."""
    return (np.log1p(fp / tp) + np.log1p(fn / tp)) * BITS


# Relative to the entropies of the sides
def _explained(whole: Amount, left: Amount) -> Amount:
    """Return the share of an entropy that the other side explains; 1 if the entropy is 0."""
    return np.clip(1.0 - rate(left, np.broadcast_to(whole, np.shape(left)), empty=0.0), 0.0, 1.0)


@of_entropies(
    "1 - H(C|K) / H(C), 1 if there is only one true cluster",
    **SHARE,
    source="Rosenberg and Hirschberg 2007",
    use="Use this score to measure how pure predicted clusters are, for example to compare with scikit-learn;"
    " precision expresses purity as a share of items.",
    caution="Homogeneity alone rewards splitting: a prediction of only singletons has homogeneity 1.",
    worked="1 - 0.6887 / 1",
    example="""
    >>> score = homogeneity([1, 1, 2, 3], list("aabb"))
    >>> round(score, 12)  # 1 - (1/2) / (3/2)
    0.666666666667
    """,
    also={"homogeneity_score": Page(note=LIKE_SKLEARN)},
)
def homogeneity(true: Amount, pred: Amount, true_given_pred: Amount, pred_given_true: Amount) -> Amount:
    """Share of the true clusters' entropy that the predicted clusters explain."""
    return _explained(true, true_given_pred)


@of_entropies(
    "1 - H(K|C) / H(K), 1 if there is only one predicted cluster",
    **SHARE,
    source="Rosenberg and Hirschberg 2007",
    use="Use this score to measure how completely true clusters are recovered, for example to compare with"
    " scikit-learn; recall expresses completeness as a share of items.",
    caution="Completeness alone rewards merging: a single cluster of all items has completeness 1.",
    worked="1 - (2/4 * 1) / 0.8113",
    example="""
    >>> score = completeness(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 1 - (1/2) / (3/2)
    0.666666666667
    """,
    also={"completeness_score": Page(note=LIKE_SKLEARN)},
)
def completeness(true: Amount, pred: Amount, true_given_pred: Amount, pred_given_true: Amount) -> Amount:
    """Share of the predicted clusters' entropy that the true clusters explain."""
    return _explained(pred, pred_given_true)


def v_of(homogeneity: Amount, completeness: Amount, beta: float) -> Amount:
    """Return (1 + beta) h c / (beta h + c): h for beta = 0 and c for beta = infinity, even if the other is 0."""
    if beta in (0.0, inf):
        return completeness if beta else homogeneity
    below = beta * homogeneity + completeness
    return rate((1 + beta) * homogeneity * completeness, below, empty=0.0)


@of_entropies(
    "2 h c / (h + c), with h = homogeneity and c = completeness; the score is 0 if both are 0",
    **SHARE,
    source="Rosenberg and Hirschberg 2007",
    use="Use this score to compare with papers that report the V measure for few clusters; for many clusters, use ami"
    " or f1.",
    caution="With many small clusters, the score is high even for uninformative predictions: a prediction of only"
    " singletons often scores above 0.8.",
    worked="2 * 0.3113 * 0.3837 / (0.3113 + 0.3837)",
    example="""
    >>> score = v_measure(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 2 * 1 * 2/3 / (1 + 2/3)
    0.8
    """,
    also={
        "v_measure_score": Page(
            """
            >>> score = v_measure_score(list("aabb"), [1, 1, 2, 3], beta=2)
            >>> round(score, 12)  # 3 * 1 * 2/3 / (2 + 2/3)
            0.75
            """,
            note=LIKE_SKLEARN,
        ),
        "homogeneity_completeness_v_measure": Page(
            """
            >>> scores = homogeneity_completeness_v_measure(list("aabb"), [1, 1, 2, 3])
            >>> [round(score, 12) for score in scores]
            [1.0, 0.666666666667, 0.8]
            """,
            note=LIKE_SKLEARN,
        ),
    },
)
def v_measure(true: Amount, pred: Amount, true_given_pred: Amount, pred_given_true: Amount) -> Amount:
    """Harmonic mean of homogeneity and completeness."""
    sums = true, pred, true_given_pred, pred_given_true
    return v_of(homogeneity(*sums), completeness(*sums), 1.0)


@of_entropies(
    "2 I / (H(C) + H(K)), with I = mutual_info; the score is 1 if both sides consist of a single cluster, and 0 if"
    " only one side does",
    **SHARE,
    source="Strehl and Ghosh 2002",
    use="Use this score to compare with papers that report NMI for few clusters; for many clusters, use ami or f1.",
    caution="With many small clusters, the score is high even for uninformative predictions: a prediction of only"
    " singletons often scores above 0.8.",
    worked="2 * 0.3113 / (1 + 0.8113)",
    example="""
    >>> score = nmi(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 2 * 1 / (1 + 3/2)
    0.8
    """,
    also={
        "normalized_mutual_info_score": Page(
            """
            >>> score = normalized_mutual_info_score(list("aabb"), [1, 1, 2, 3], average_method="max")
            >>> round(score, 12)  # 1 / (3/2)
            0.666666666667
            """,
            note="The function of the same name in scikit-learn returns the same values but takes no weights and does"
            " not offer the joint entropy.",
        )
    },
)
def nmi(
    true: float, pred: float, true_given_pred: float, pred_given_true: float, average: str = "arithmetic"
) -> float:
    """Mutual information divided by the mean entropy of the two sides."""
    most = norm(true, pred, pred_given_true, average)
    if true_given_pred == 0 == pred_given_true:
        return 1.0
    return min(1.0, shared(true, pred, true_given_pred, pred_given_true) / most) if true and pred else 0.0


@entropy.of_sums(
    "(I - E[I]) / ((H(C) + H(K)) / 2 - E[I]), with I = mutual_info and E[I] = expected_mutual_info; the score is 1 for"
    " identical clusterings, and otherwise 0 if a side consists of a single cluster or of only singletons",
    of=("entropies", "chance"),
    **SHARE,
    low=-inf,
    source="Vinh et al. 2010",
    unweighted_only=True,
    use="Use this score to compare partitions by mutual information if a score of 0 should mean agreement by chance;"
    " adjusted_rand compares partitions by pairs of items.",
    caution="If most true clusters are singletons, chance explains most of the mutual information, so a few items can"
    " change the score a lot.",
    worked="(0.3113 - 0.3113) / ((1 + 0.8113) / 2 - 0.3113)",
    example="""
    >>> score = ami(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # (1 - 2/3) / (5/4 - 2/3) = 4/7
    0.571428571429
    """,
    also={
        "adjusted_mutual_info_score": Page(
            """
            >>> score = adjusted_mutual_info_score(list("aabb"), [1, 1, 2, 3], average_method="max")
            >>> round(score, 12)  # (1 - 2/3) / (3/2 - 2/3) = 2/5
            0.4
            """,
            note="The function of the same name in scikit-learn returns the same values within 1e-9, unless a side"
            " consists of a single cluster or of only singletons. Shuffling a single cluster or only singletons changes"
            " nothing, so the numerator of the score is 0: this function returns 1 if the clusterings are identical and"
            " 0 otherwise, whereas scikit-learn divides rounding errors by the smallest float.",
        )
    },
)
def ami(
    true: float,
    pred: float,
    true_given_pred: float,
    pred_given_true: float,
    expected: float,
    fixed: bool,
    average: str = "arithmetic",
) -> float:
    """Mutual information adjusted for chance: 0 is the expected value for shuffled labels, and 1 is the maximum."""
    most = norm(true, pred, pred_given_true, average)
    if true_given_pred == 0 == pred_given_true:
        return 1.0
    if fixed:
        return 0.0
    return (shared(true, pred, true_given_pred, pred_given_true) - expected) / (most - expected)


# Dom's code lengths
of_code_lengths = partial(
    entropy.of_sums,
    of="code lengths",
    source="Dom 2001",
    unweighted_only=True,
    use="Use this score to compare with papers that report Dom's code lengths; otherwise use variation_of_information.",
)


@of_code_lengths(
    "H(C|K) + (1 / n) sum over predicted clusters of size b of log2 binomial(b + c - 1, c - 1), where c is the number"
    " of true clusters",
    **WHOLE,
    **LOSS,
    caution="The score is in bits and has no fixed upper bound: do not compare its values across data sets.",
    worked="0.6887 + (log2(4) + log2(2)) / 4",
    example="""
    >>> score = dom_q0(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 0 + (log2(3) + log2(2) + log2(2)) / 4
    0.89624062518
    """,
)
def dom_q0(of_truth: float, of_prediction: float, n_items: int) -> float:
    """Bits per item needed to encode the true clusters, given the predicted clusters."""
    return of_prediction / n_items * BITS


@of_code_lengths(
    "1 / (n D) sum over true clusters of size a of log2 binomial(a + c - 1, c - 1), with D = dom_q0, where c is the"
    " number of true clusters; the score is 1 if there is only one true cluster",
    **SHARE,
    caution="The score is not linear in the number of errors, and few readers know it.",
    worked="(log2(3) + log2(3)) / 4 / 1.4387",
    example="""
    >>> score = dom_q2(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # (log2(3) + log2(3)) / (log2(3) + log2(2) + log2(2))
    0.884228217395
    """,
)
def dom_q2(of_truth: float, of_prediction: float, n_items: int) -> float:
    """Code length given a perfect prediction, divided by the code length given the scored prediction."""
    q0 = dom_q0(of_truth, of_prediction, n_items)
    return of_truth / n_items * BITS / q0 if q0 else 1.0
