"""Variants of BCubed: means by cluster, for unbalanced data, adjusted for chance; and ELM ("Elements Like Me").

BCubed precision, recall and F themselves are in `bcubed.py`.

The formulas of ELM take a confusion matrix without the item itself: tp, fp and fn are the weights of the *other*
members of the item's clusters. Therefore, tp may be 0, and a rate of an empty set is 1.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

from fastbcubed.metrics.bcubed import pointwise
from fastbcubed.metrics.metric import Family, f_measure, rate, slopes_of_f1
from fastbcubed.types import Floats

bcubed = Family("bcubed", low=0.0, high=1.0, best="higher")

bcubed.alias(
    "bcubed_precision",
    pointwise["precision"],
    source="Bagga and Baldwin 1998",
    example="""
    >>> score = bcubed_precision(list("aabbb"), [1, 1, 1, 2, 2])
    >>> round(score, 12)  # (2/3 + 2/3 + 1/3 + 1 + 1) / 5 = 11/15
    0.733333333333
    """,
)
bcubed.alias(
    "bcubed_recall",
    pointwise["recall"],
    source="Bagga and Baldwin 1998",
    example="""
    >>> score = bcubed_recall(list("aabbb"), [1, 1, 1, 2, 2])
    >>> round(score, 12)  # (1 + 1 + 1/3 + 2/3 + 2/3) / 5 = 11/15
    0.733333333333
    """,
)
bcubed.alias(
    "bcubed_f1",
    pointwise["f1"],
    source="Bagga and Baldwin 1998",
    example="""
    >>> bcubed_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # 2 * 3/4 * 1/2 / (3/4 + 1/2)
    0.6
    """,
    three="""
    >>> bcubed_precision_recall_fscore(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    PrecisionRecallFscore(precision=0.75, recall=0.5, f1=0.6)
    """,
)
bcubed.alias(
    "bcubed_mean_f1",
    pointwise["mean_f1"],
    source="van Heusden et al. 2022",
    example="""
    >>> bcubed_mean_f1(list("aaabbb"), [1, 2, 3, 4, 4, 4])  # (3 * 1 / (1 + 2/2) + 3 * 1) / 6
    0.75
    """,
)


# Where every cluster counts equally
by_true_cluster = partial(
    bcubed.of_sums,
    of="means of true clusters",
    source="er-evaluation",
    use="Use this score where every true cluster should count equally, whatever its size, as in er-evaluation;"
    " otherwise report f1 with precision and recall.",
    caution="The score is not the BCubed of Amigó et al.: each true cluster counts once, so small clusters usually"
    " dominate the score.",
)
by_pred_cluster = partial(
    bcubed.of_sums,
    of="means of pred clusters",
    source="er-evaluation",
    use="Use this score where every predicted cluster should count equally, whatever its size, because clusters are"
    " delivered and judged one by one; otherwise report f1 with precision and recall.",
    caution="Each predicted cluster counts once. Two runs usually have different predicted clusters, so their scores"
    " are averages over different clusters.",
)


@by_true_cluster(
    "mean over true clusters, each once, of the mean over its items of tp / (tp + fp)",
    worked="(2/3 + 2/3) / 2",
    example="""
    >>> labels_true, labels_pred = list("aabbbb"), [1, 1, 1, 1, 2, 2]
    >>> bcubed_precision_by_true_cluster(labels_true, labels_pred)  # (1/2 + (1/2 + 1) / 2) / 2
    0.625
    """,
)
def bcubed_precision_by_true_cluster(precision: float, recall: float) -> float:
    """BCubed precision averaged so that every true cluster counts equally."""
    return precision


@by_true_cluster(
    "mean over true clusters, each once, of the mean over its items of tp / (tp + fn)",
    worked="(1 + 1/2) / 2",
    example="""
    >>> bcubed_recall_by_true_cluster(list("aabbbb"), [1, 1, 1, 1, 2, 2])  # (1 + 1/2) / 2
    0.75
    """,
)
def bcubed_recall_by_true_cluster(precision: float, recall: float) -> float:
    """BCubed recall averaged so that every true cluster counts equally."""
    return recall


@by_true_cluster(
    "2 P R / (P + R), with P = bcubed_precision_by_true_cluster and R = bcubed_recall_by_true_cluster",
    worked="2 * 2/3 * 3/4 / (2/3 + 3/4)",
    example="""
    >>> score = bcubed_f1_by_true_cluster(list("aabbbb"), [1, 1, 1, 1, 2, 2])
    >>> round(score, 12)  # 2 * 5/8 * 3/4 / (5/8 + 3/4) = 15/22
    0.681818181818
    """,
)
def bcubed_f1_by_true_cluster(precision: float, recall: float) -> float:
    """F1 of BCubed precision and recall averaged so that every true cluster counts equally."""
    return float(f_measure(precision, recall))


@by_pred_cluster(
    "mean over predicted clusters, each once, of the mean over its items of tp / (tp + fp)",
    caution="Each predicted cluster counts once, so splitting off many small pure clusters can raise the score.",
    worked="(5/9 + 1) / 2",
    example="""
    >>> bcubed_precision_by_pred_cluster(list("aabbbb"), [1, 1, 1, 1, 2, 2])  # (1/2 + 1) / 2
    0.75
    """,
)
def bcubed_precision_by_pred_cluster(precision: float, recall: float) -> float:
    """BCubed precision averaged so that every predicted cluster counts equally."""
    return precision


@by_pred_cluster(
    "mean over predicted clusters, each once, of the mean over its items of tp / (tp + fn)",
    worked="(5/6 + 1/2) / 2",
    example="""
    >>> labels_true, labels_pred = list("aabbbb"), [1, 1, 1, 1, 2, 2]
    >>> bcubed_recall_by_pred_cluster(labels_true, labels_pred)  # ((1 + 1/2) / 2 + 1/2) / 2
    0.625
    """,
)
def bcubed_recall_by_pred_cluster(precision: float, recall: float) -> float:
    """BCubed recall averaged so that every predicted cluster counts equally."""
    return recall


@by_pred_cluster(
    "2 P R / (P + R), with P = bcubed_precision_by_pred_cluster and R = bcubed_recall_by_pred_cluster",
    worked="2 * 7/9 * 2/3 / (7/9 + 2/3)",
    example="""
    >>> score = bcubed_f1_by_pred_cluster(list("aabbbb"), [1, 1, 1, 1, 2, 2])
    >>> round(score, 12)  # 2 * 3/4 * 5/8 / (3/4 + 5/8) = 15/22
    0.681818181818
    """,
)
def bcubed_f1_by_pred_cluster(precision: float, recall: float) -> float:
    """F1 of BCubed precision and recall averaged so that every predicted cluster counts equally."""
    return float(f_measure(precision, recall))


# For unbalanced data

ADAPTED: dict[str, Any] = {
    "source": "Moreno and Dias 2015",
    "unweighted_only": True,
    "experimental": True,
    "use": "Use this score to compare with papers that report adapted BCubed on unbalanced data; otherwise use f1.",
}


@bcubed.mean_over_items(
    "(tp / (tp + fp))^2",
    **ADAPTED,
    caution="Do not compare adapted precision with BCubed precision: each item's precision is squared, so adapted"
    " precision is never larger.",
    example="""
    >>> labels_true, labels_pred = list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3]
    >>> adapted_bcubed_precision(labels_true, labels_pred)  # (4 * 1 + 4 * (2/4)**2) / 8
    0.625
    """,
)
def adapted_bcubed_precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """BCubed precision for unbalanced data: mean over items of the square of an item's precision."""
    share = tp / (tp + fp)
    return share * share


@bcubed.mean_over_items(
    "(tp / (tp + fn))^2",
    **ADAPTED,
    caution="Do not compare adapted recall with BCubed recall: each item's recall is squared, so adapted recall is"
    " never larger.",
    example="""
    >>> adapted_bcubed_recall(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2/4)**2
    0.25
    """,
)
def adapted_bcubed_recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """BCubed recall for unbalanced data: mean over items of the square of an item's recall."""
    share = tp / (tp + fn)
    return share * share


@bcubed.of_means(
    "2 P R / (P + R), with P = adapted_bcubed_precision and R = adapted_bcubed_recall",
    bcubed["adapted_bcubed_precision"],
    bcubed["adapted_bcubed_recall"],
    slopes=slopes_of_f1,
    **ADAPTED,
    caution="Do not compare adapted F1 with BCubed F1: each item's precision and recall are squared, so adapted F1 is"
    " never larger.",
    example="""
    >>> score = adapted_bcubed_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # 2 * 5/8 * 1/4 / (5/8 + 1/4) = 5/14
    0.357142857143
    """,
    three="""
    The recommended weight of precision is 0.9, which corresponds to beta = 1/3. Here, the prediction
    puts all 10 items of one true cluster and 1 of the 2 items of the other into the same cluster:
    P = (10 * (10/11)**2 + (1/11)**2 + 1) / 12 = 17/22, R = (10 + 2 * (1/2)**2) / 12 = 7/8,
    F = 1 / (0.9 * 22/17 + 0.1 * 8/7) = 595/761.

    >>> labels_true, labels_pred = [0] * 10 + [1] * 2, [0] * 11 + [1]
    >>> scores = adapted_bcubed_precision_recall_fscore(labels_true, labels_pred, beta=1 / 3)
    >>> [round(score, 6) for score in scores]
    [0.772727, 0.875, 0.781866]
    """,
)
def adapted_bcubed_f1(p: Floats | float, r: Floats | float, beta: float) -> Floats | float:
    """F1 of adapted BCubed precision and recall, for unbalanced data."""
    return f_measure(p, r)


# Beyond chance

CHANCE: dict[str, Any] = {"source": "fastbcubed", "unweighted_only": True, "labelled_only": True}
by_chance = partial(bcubed.of_sums, of="losses by chance")
beyond = partial(
    bcubed.of_sums,
    of=("losses by chance", "losses"),
    caution="With many small clusters, the adjustment mainly removes the credit for an item being in a cluster with"
    " itself. The adjusted score does not show what share of a cluster is wrong.",
)


def beyond_chance(loss: float, expected: float, same: bool) -> float:
    """Return (score - expected score) / (1 - expected score), from the losses.

    Where the expected loss is 0, the result is 1 for identical clusterings and 0 for others.
    """
    return 1.0 - loss / expected if expected else float(same)


@by_chance(
    "s + (1 - s) sum over true clusters of a (a - 1) / (n (n - 1)), with s = M / n, where n is the number of items, M"
    " is the number of predicted clusters, and a is the size of a true cluster",
    best="neither",
    **CHANCE,
    use="Use this score to see what precision a prediction with clusters of the same sizes would have by chance;"
    " adjusted_bcubed_precision corrects precision for chance.",
    caution="Chance precision is a baseline for precision and does not measure quality: it depends on the prediction"
    " only through the number of predicted clusters.",
    worked="2/4 + (1 - 2/4) * (2 * 1 + 2 * 1) / (4 * 3)",
    example="""
    >>> chance_bcubed_precision(list("aaab"), [1, 1, 2, 2])  # 2/4 + (1 - 2/4) * 3 * 2 / (4 * 3)
    0.75
    """,
)
def chance_bcubed_precision(of_precision: float, of_recall: float, same: bool) -> float:
    """BCubed precision expected by chance if the labels of one side are shuffled."""
    return 1.0 - of_precision


@by_chance(
    "s + (1 - s) sum over predicted clusters of b (b - 1) / (n (n - 1)), with s = K / n, where n is the number of"
    " items, K is the number of true clusters, and b is the size of a predicted cluster",
    best="neither",
    **CHANCE,
    use="Use this score to see what recall a prediction with clusters of the same sizes would have by chance;"
    " adjusted_bcubed_recall corrects recall for chance.",
    caution="Chance recall is a baseline for recall and does not measure quality: it depends on the prediction only"
    " through the sizes of predicted clusters.",
    worked="2/4 + (1 - 2/4) * (3 * 2 + 1 * 0) / (4 * 3)",
    example="""
    >>> chance_bcubed_recall(list("aabb"), [1, 1, 1, 2])  # 2/4 + (1 - 2/4) * 3 * 2 / (4 * 3)
    0.75
    """,
)
def chance_bcubed_recall(of_precision: float, of_recall: float, same: bool) -> float:
    """BCubed recall expected by chance if the labels of one side are shuffled."""
    return 1.0 - of_recall


@beyond(
    "(P - E) / (1 - E), with P = bcubed_precision and E = chance_bcubed_precision; where E = 1, the score is 1 if the"
    " clusterings are identical, else 0",
    low=-inf,
    **CHANCE,
    use="Use this score where chance_bcubed_precision is high, for example because clusters are few and large or most"
    " predicted clusters are singletons.",
    worked="(2/3 - 2/3) / (1 - 2/3)",
    example="""
    Here, precision is 3/4, which is also its expected value for shuffled labels.

    >>> adjusted_bcubed_precision(list("aaab"), [1, 1, 2, 2])  # (3/4 - 3/4) / (1 - 3/4)
    0.0
    """,
)
def adjusted_bcubed_precision(
    of_precision: float, of_recall: float, same: bool, over: float, under: float
) -> float:
    """BCubed precision adjusted for chance: 0 is the expected value for shuffled labels, and 1 is the maximum."""
    return beyond_chance(over, of_precision, same)


@beyond(
    "(R - E) / (1 - E), with R = bcubed_recall and E = chance_bcubed_recall; where E = 1, the score is 1 if the"
    " clusterings are identical, else 0",
    low=-inf,
    **CHANCE,
    use="Use this score where chance_bcubed_recall is high, for example because clusters are few and large or most"
    " true clusters are singletons.",
    worked="(3/4 - 3/4) / (1 - 3/4)",
    example="""
    >>> score = adjusted_bcubed_recall(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # E = 2/4 + 2/4 * 2 * 1 / (4 * 3) = 7/12; (3/4 - 7/12) / (1 - 7/12)
    0.4
    """,
)
def adjusted_bcubed_recall(
    of_precision: float, of_recall: float, same: bool, over: float, under: float
) -> float:
    """BCubed recall adjusted for chance: 0 is the expected value for shuffled labels, and 1 is the maximum."""
    return beyond_chance(under, of_recall, same)


elm = Family("elm", low=0.0, high=1.0, best="higher", source="van Heusden et al. 2022", on_covers=True)


@elm.mean_over_items(
    "tp / (tp + fp), where tp and fp leave out the item itself; a predicted singleton scores 1",
    leave_one_out=True,
    use="Use this score where most items are singletons: unlike precision, it gives an item no credit for being in a"
    " cluster with itself.",
    caution="A predicted singleton scores 1 whatever its true cluster: report elm_precision together with elm_recall.",
    example="""
    >>> elm_precision(list("aabb"), [1, 1, 1, 2])  # (1/2 + 1/2 + 0/2 + 1) / 4; the last is a singleton
    0.5
    """,
)
def elm_precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean share of the other items in an item's predicted cluster that are also in the item's true cluster."""
    return rate(tp, tp + fp)


@elm.mean_over_items(
    "tp / (tp + fn), where tp and fn leave out the item itself; a true singleton scores 1",
    leave_one_out=True,
    use="Use this score where most items are singletons: unlike recall, it gives an item no credit for being in a"
    " cluster with itself.",
    caution="A true singleton scores 1 whatever its predicted cluster: report elm_recall together with elm_precision.",
    example="""
    >>> elm_recall(list("aabb"), [1, 1, 1, 2])  # (1/1 + 1/1 + 0/1 + 0/1) / 4
    0.5
    """,
)
def elm_recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean share of the other items in an item's true cluster that are also in the item's predicted cluster."""
    return rate(tp, tp + fn)


@elm.of_means(
    "2 P R / (P + R), with P = elm_precision and R = elm_recall",
    elm["elm_precision"],
    elm["elm_recall"],
    slopes=slopes_of_f1,
    use="Use this score in addition to f1 where most items are singletons: it gives an item no credit for being in a"
    " cluster with itself.",
    caution="With errors in small clusters, the score can be far below f1: do not compare elm_f1 with BCubed scores"
    " reported elsewhere.",
    example="""
    >>> elm_f1(list("aabb"), [1, 1, 1, 2])  # 2 * 1/2 * 1/2 / (1/2 + 1/2)
    0.5
    """,
    three="""
    >>> elm_precision_recall_fscore(list("aabb"), [1, 1, 1, 2])
    PrecisionRecallFscore(precision=0.5, recall=0.5, f1=0.5)
    """,
)
def elm_f1(p: Floats | float, r: Floats | float, beta: float) -> Floats | float:
    """F1 of ELM precision and ELM recall."""
    return f_measure(p, r)


@elm.mean_over_items(
    "tp / (tp + (fp + fn) / 2), where tp, fp and fn leave out the item itself; a singleton on both sides scores 1",
    leave_one_out=True,
    use="Use this score where most items are singletons and each item needs its own score; elm_f1 has no value for a"
    " single item.",
    caution="The score is never larger than elm_f1, and with errors in small clusters it can be far below f1: state"
    " which of the three scores you report.",
    example="""
    >>> score = elm_mean_f1(list("aabb"), [1, 1, 1, 2])
    >>> round(score, 12)  # (1 / (1 + 1/2) + 1 / (1 + 1/2) + 0 + 0) / 4 = 1/3
    0.333333333333
    """,
)
def elm_mean_f1(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the F1 of an item's own ELM precision and recall."""
    return rate(tp, tp + (fp + fn) / 2)
