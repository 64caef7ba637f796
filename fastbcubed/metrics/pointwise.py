"""The pointwise scores: one formula each, of the 2x2 confusion matrix of an item.

Every formula takes `(tp, fp, fn, tn)`, float64 arrays of one shape or scalars, and works element
by element. An item is in its own matrix, so tp > 0, and fp, fn and tn are exactly 0 where the set
is empty. Where both sides agree (fp = fn = 0), similarities are exactly 1 and losses exactly 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import inf
from numbers import Real
from typing import Any

import numpy as np

from fastbcubed.errors import OptionError
from fastbcubed.metrics.metric import Floats, Formula, Metric


def rate(part: Floats | float, whole: Floats | float, empty: float = 1.0) -> Floats:
    """Return part / whole, and `empty` where whole is 0: nothing there could have gone wrong."""
    shares: Floats = np.full(np.shape(whole), empty)
    np.divide(part, whole, out=shares, where=np.not_equal(whole, 0))
    return shares[()]  # a scalar for scalars


def precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the share of the predicted cluster that belongs with the item."""
    return tp / (tp + fp)


def recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the share of the true cluster that was found with the item."""
    return tp / (tp + fn)


def over_merge_rate(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the share of the predicted cluster that does not belong with the item."""
    return fp / (tp + fp)


def under_merge_rate(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the share of the true cluster that was not found with the item."""
    return fn / (tp + fn)


def item_f1(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the F1 of the item's precision and recall, Dice's coefficient."""
    return tp / (tp + (fp + fn) / 2)


def jaccard_index(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the intersection of the two clusters over their union."""
    return tp / (tp + (fp + fn))


def jaccard_distance(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the part of the union that only one of the two clusters has."""
    wrong = fp + fn
    return wrong / (tp + wrong)


def fowlkes_mallows(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the geometric mean of the item's precision and recall."""
    return np.sqrt(tp / (tp + fp) * (tp / (tp + fn)))


def symmetric_difference(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the weight that only one of the two clusters has."""
    return fp + fn


def accuracy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the share of all items that are rightly with the item or apart from it."""
    right = tp + tn
    return right / (right + (fp + fn))


def specificity(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the share of what is truly apart that was put apart; 1 if there is none."""
    return rate(tn, tn + fp)


def npv(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the share of what was put apart that is truly apart; 1 if there is none."""
    return rate(tn, tn + fn)


def balanced_accuracy(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the average of recall and specificity."""
    return (tp / (tp + fn) + rate(tn, tn + fp)) / 2


def informedness(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return recall + specificity - 1, as recall less the share of the negatives that is wrong."""
    return tp / (tp + fn) - rate(fp, tn + fp, empty=0.0)


def markedness(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return precision + npv - 1, as precision less the share of the rest that is missing."""
    return tp / (tp + fp) - rate(fn, tn + fn, empty=0.0)


def mcc(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return Matthews' correlation; with an empty margin 1 if both sides agree, else 0."""
    differ = np.not_equal(fp + fn, 0)
    tp, fp, fn, tn = _scaled(tp, fp, fn, tn)
    above = tp * tn - fp * fn
    # In each root one of the two margins is large, so that small ones do not vanish in a product.
    below = np.sqrt((tp + fp) * (tn + fn)) * np.sqrt((tp + fn) * (tn + fp))
    scores: Floats = np.where(differ, 0.0, 1.0)
    np.divide(above, below, out=scores, where=differ & np.not_equal(below, 0))
    return np.clip(scores, -1.0, 1.0)


def pointwise_ari(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Return the adjusted Rand formula of the matrix, which is Cohen's kappa.

    Its denominator is 0 only where both sides agree on a single cluster.
    """
    tp, fp, fn, tn = _scaled(tp, fp, fn, tn)
    above = tp * tn - fp * fn
    below = (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn)
    return np.maximum(rate(above + above, below), -1.0)


def _scaled(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> tuple[Floats, ...]:
    """Return the matrix times the power of two that brings its total to between 1/2 and 1.

    That is exact, and products of its parts do not overflow.
    """
    exponent = np.frexp((tp + tn) + (fp + fn))[1]
    return tuple(np.ldexp(part, -exponent) for part in (tp, fp, fn, tn))


# F


def weight_of_precision(beta: float) -> float:
    """Return alpha = 1 / (1 + beta**2), the weight of precision in F.

    Examples
    --------
    >>> weight_of_precision(2.0), weight_of_precision(0.0), weight_of_precision(float("inf"))
    (0.2, 1.0, 0.0)
    """
    if not (isinstance(beta, Real) and beta >= 0):  # nor NaN
        raise OptionError(f"beta must be a number from 0 (precision alone) up, not {beta!r}.")
    try:
        return 1.0 / (1.0 + float(beta) * float(beta))
    except OverflowError:  # an integer that no float holds
        return 0.0


def f_measure(precision: Floats | float, recall: Floats | float, alpha: float = 0.5) -> Floats | float:
    """Return 1 / (alpha / precision + (1 - alpha) / recall), element by element.

    It is 0 where precision or recall is 0, except that alpha = 1 gives precision and alpha = 0
    gives recall, whatever the other is. A missing value (NaN) stays missing.

    Examples
    --------
    >>> float(f_measure(0.5, 0.25, weight_of_precision(2.0)))  # 5/18
    0.2777777777777778
    """
    if alpha in (0.0, 1.0):
        return precision if alpha else recall
    below = alpha * recall + (1.0 - alpha) * precision
    return rate(precision * recall, below, empty=0.0)


def item_fbeta(beta: float) -> Formula:
    """Return the formula of an item's own F for one beta: tp / (tp + alpha fp + (1 - alpha) fn)."""
    alpha = weight_of_precision(beta)
    ends: dict[float, Formula] = {0.0: recall, 0.5: item_f1, 1.0: precision}
    return ends.get(alpha) or partial(_item_f, alpha=alpha)


def _item_f(tp: Floats, fp: Floats, fn: Floats, tn: Floats, *, alpha: float) -> Floats:
    return tp / (tp + (alpha * fp + (1.0 - alpha) * fn))


def f1_of(precision: str, recall: str, means: Mapping[str, Any], beta: float) -> Any:
    """Return the F1 of two means, by their names; `beta` plays no part."""
    return f_measure(means[precision], means[recall])


def fbeta_of(precision: str, recall: str, means: Mapping[str, Any], beta: float) -> Any:
    """Return the F of two means, by their names."""
    return f_measure(means[precision], means[recall], weight_of_precision(beta))


# The family


def scores() -> Iterator[Metric]:
    """Yield the scores of the family "pointwise"."""
    higher = partial(Metric, family="pointwise", low=0.0, high=1.0, best="higher", source="van Staden 2024")
    lower = partial(higher, best="lower")
    yield higher(
        "precision",
        on_covers=True,
        summary="Mean over items of the share of an item's predicted cluster that belongs with it.",
        definition="mean over items of tp / (tp + fp)",
        formula=precision,
    )
    yield higher(
        "recall",
        on_covers=True,
        summary="Mean over items of the share of an item's true cluster that was found with it.",
        definition="mean over items of tp / (tp + fn)",
        formula=recall,
    )
    yield higher(
        "f1",
        on_covers=True,
        summary="F1 of mean precision and mean recall, their harmonic mean.",
        definition="2 P R / (P + R), with P = precision and R = recall",
        source="Amigó et al. 2009",
        combine=partial(f1_of, "precision", "recall"),
        needs=("precision", "recall"),
    )
    yield higher(
        "mean_f1",
        on_covers=True,
        summary="Mean over items of the F1 of an item's own precision and recall.",
        definition="mean over items of tp / (tp + (fp + fn) / 2)",
        source="van Heusden et al. 2022",
        formula=item_f1,
    )
    yield higher(
        "fbeta",
        on_covers=True,
        summary="F of mean precision and mean recall; beta above 1 leans to recall.",
        definition="1 / (alpha / P + (1 - alpha) / R), with alpha = 1 / (1 + beta^2)",
        source="Amigó et al. 2009",
        combine=partial(fbeta_of, "precision", "recall"),
        needs=("precision", "recall"),
    )
    yield higher(
        "mean_fbeta",
        on_covers=True,
        summary="Mean over items of an item's own F; beta above 1 leans to recall.",
        definition="mean over items of tp / (tp + alpha fp + (1 - alpha) fn), with alpha = 1 / (1 + beta^2)",
        source="van Heusden et al. 2022",
        formula=item_f1,
        formula_of_beta=item_fbeta,
    )
    yield higher(
        "jaccard_index",
        summary="Mean over items of the overlap of an item's two clusters, relative to their union.",
        definition="mean over items of tp / (tp + fp + fn)",
        formula=jaccard_index,
    )
    yield lower(
        "jaccard_distance",
        summary="Mean over items of the part of an item's two clusters that only one of them has.",
        definition="mean over items of (fp + fn) / (tp + fp + fn)",
        formula=jaccard_distance,
    )
    yield lower(
        "over_merge_rate",
        on_covers=True,
        summary="Mean over items of the share of an item's predicted cluster that does not belong with it.",
        definition="mean over items of fp / (tp + fp)",
        formula=over_merge_rate,
    )
    yield lower(
        "under_merge_rate",
        on_covers=True,
        summary="Mean over items of the share of an item's true cluster that was not found with it.",
        definition="mean over items of fn / (tp + fn)",
        formula=under_merge_rate,
    )
    yield higher(
        "accuracy",
        summary="Mean over items of the share of all items that are rightly with or apart from it.",
        definition="mean over items of (tp + tn) / (tp + fp + fn + tn)",
        formula=accuracy,
        uses_tn=True,
    )
    yield higher(
        "balanced_accuracy",
        summary="Mean over items of the average of an item's recall and specificity.",
        definition="mean over items of (tp / (tp + fn) + tn / (tn + fp)) / 2",
        formula=balanced_accuracy,
        uses_tn=True,
    )
    yield higher(
        "specificity",
        summary="Mean over items of the share of what is truly apart from an item that was kept apart.",
        definition="mean over items of tn / (tn + fp), 1 where nothing is truly apart",
        formula=specificity,
        uses_tn=True,
    )
    yield higher(
        "npv",
        summary="Mean over items of the share of what was put apart from an item that is truly apart.",
        definition="mean over items of tn / (tn + fn), 1 where nothing was put apart",
        formula=npv,
        uses_tn=True,
    )
    yield higher(
        "informedness",
        low=-1.0,
        summary="Mean over items of recall + specificity - 1, Youden's J.",
        definition="mean over items of tp / (tp + fn) + tn / (tn + fp) - 1; a rate of an empty set is 1",
        formula=informedness,
        uses_tn=True,
    )
    yield higher(
        "markedness",
        low=-1.0,
        summary="Mean over items of precision + negative predictive value - 1.",
        definition="mean over items of tp / (tp + fp) + tn / (tn + fn) - 1; a rate of an empty set is 1",
        formula=markedness,
        uses_tn=True,
    )
    yield higher(
        "mcc",
        low=-1.0,
        summary="Mean over items of Matthews' correlation coefficient.",
        definition="mean over items of (tp tn - fp fn) / sqrt((tp+fp) (tp+fn) (tn+fp) (tn+fn)),"
        " 1 where fp = fn = 0, else 0 with an empty margin",
        formula=mcc,
        uses_tn=True,
    )
    yield higher(
        "pointwise_ari",
        low=-1.0,
        summary="Mean over items of Cohen's kappa, which has the form of the adjusted Rand index.",
        definition="mean over items of"
        " 2 (tp tn - fp fn) / ((tp+fn) (fn+tn) + (tp+fp) (fp+tn)), 1 where fp = fn = 0",
        formula=pointwise_ari,
        uses_tn=True,
    )
    yield higher(
        "pointwise_fowlkes_mallows",
        summary="Mean over items of the geometric mean of an item's precision and recall.",
        definition="mean over items of sqrt(tp / (tp + fp) * tp / (tp + fn))",
        formula=fowlkes_mallows,
    )
    yield lower(
        "symmetric_difference",
        high=inf,
        summary="Mean over items of the weight that only one of an item's two clusters has.",
        definition="mean over items of fp + fn, in the unit of the weights",
        formula=symmetric_difference,
    )
