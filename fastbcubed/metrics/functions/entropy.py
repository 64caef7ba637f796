"""Entropies as functions of two labelings, under the names of the registry and of scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from numpy.typing import ArrayLike

from fastbcubed.errors import OptionError
from fastbcubed.metrics import entropy as _entropy
from fastbcubed.metrics.documentation import document
from fastbcubed.metrics.labelings import ScoreOfBeta, as_contingency, compute, describe, with_note
from fastbcubed.metrics.labelings import make_score as _score
from fastbcubed.metrics.registry import METRICS

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency

Average = Literal["arithmetic", "geometric", "min", "max", "joint"]

_BASE = """base : float, default {}
    Base of the logarithms: 2 for bits, `math.e` for nats.
"""
_AVERAGE = """average_method : {"arithmetic", "geometric", "min", "max", "joint"}
    What stands in the place of the arithmetic mean of H(C) and H(K): another mean of them, the smaller,
    the larger, or the joint entropy.
"""
_BETA = """beta : float, default 1.0
    Weight of completeness: 0 gives homogeneity, infinity completeness. It is not squared.
"""


class ScoreInBase(Protocol):
    """A function from two labelings, or a contingency in their place, to an amount of information."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        base: float = ...,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        """Return the score."""
        ...


class ScoreOfAverage(Protocol):
    """A function from two labelings, or a contingency in their place, to a normalized score."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        average_method: Average = "arithmetic",
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        """Return the score."""
        ...


class HomogeneityCompletenessVMeasure(NamedTuple):
    """Homogeneity, completeness, and their harmonic mean for the `beta` asked for."""

    homogeneity: float
    completeness: float
    v_measure: float


def _score_in_base(
    name: str, example: str, *, called: str = "", base: float = 2.0, note: str = ""
) -> ScoreInBase:
    """Make the function for an amount of information."""
    usual = base

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        base: float = usual,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        if not (isinstance(base, Real) and 0 < base < math.inf and base != 1):
            raise OptionError(f"base is a positive number other than 1, not {base!r}")
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [METRICS[name]])[0] * (math.log(2) / math.log(base))

    options = _BASE.format("2" if usual == 2 else "e")
    metric = with_note(METRICS[name], note)
    text = document(metric, example, options=options, or_option=", or if there is no such base")
    describe(score, called or name, text)
    return score


def _score_of_average(
    name: str, relative: Callable[..., float], example: str, *, called: str = "", note: str = ""
) -> ScoreOfAverage:
    """Make the function for a score that is `relative` to an average of the entropies."""

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        average_method: Average = "arithmetic",
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [replace(METRICS[name], score=partial(relative, average_method))])[0]

    metric = with_note(METRICS[name], note)
    text = document(metric, example, options=_AVERAGE, or_option=", or if there is no such average")
    describe(score, called or name, text)
    return score


cluster_entropy = _score_in_base(
    "cluster_entropy",
    """
    >>> cluster_entropy(list("aabb"), [1, 1, 1, 1])  # log2(4/2) for each item
    1.0
    """,
)
class_entropy = _score_in_base(
    "class_entropy",
    """
    >>> class_entropy(list("aabb"), [1, 1, 2, 3])  # (0 + 0 + log2(2/1) + log2(2/1)) / 4
    0.5
    """,
)
variation_of_information = _score_in_base(
    "variation_of_information",
    """
    >>> variation_of_information(list("aabb"), [1, 1, 2, 3])  # 0 + 1/2
    0.5
    """,
)
mutual_info = _score_in_base(
    "mutual_info",
    """
    >>> mutual_info(list("aabb"), [1, 1, 2, 3])  # log2(2) - 0
    1.0
    """,
)
mutual_info_score = _score_in_base(
    "mutual_info",
    """
    >>> score = mutual_info_score(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # log(2) - 0
    0.69314718056
    """,
    called="mutual_info_score",
    base=math.e,
    note="As in scikit-learn, in nats, which has no weights.",
)
expected_mutual_info = _score_in_base(
    "expected_mutual_info",
    """
    A class of 2 and a cluster of 2 share both items with the chance 1/6: 1/6 * 2/4 * log2(4 * 2 / 4), for
    two such pairs. With a cluster of 1 they share it with the chance 1/2: 1/2 * 1/4 * log2(4 / 2), four times.

    >>> score = expected_mutual_info(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 2 * 1/12 + 4 * 1/8
    0.666666666667
    """,
)
homogeneity = _score(
    "homogeneity",
    """
    >>> score = homogeneity([1, 1, 2, 3], list("aabb"))
    >>> round(score, 12)  # 1 - (1/2) / (3/2)
    0.666666666667
    """,
)
homogeneity_score = _score(
    "homogeneity",
    """
    >>> score = homogeneity_score([1, 1, 2, 3], list("aabb"))
    >>> round(score, 12)  # 1 - (1/2) / (3/2)
    0.666666666667
    """,
    called="homogeneity_score",
    note="As in scikit-learn, which has no weights.",
)
completeness = _score(
    "completeness",
    """
    >>> score = completeness(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 1 - (1/2) / (3/2)
    0.666666666667
    """,
)
completeness_score = _score(
    "completeness",
    """
    >>> score = completeness_score(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 1 - (1/2) / (3/2)
    0.666666666667
    """,
    called="completeness_score",
    note="As in scikit-learn, which has no weights.",
)
nmi = _score_of_average(
    "nmi",
    _entropy.nmi,
    """
    >>> score = nmi(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 2 * 1 / (1 + 3/2)
    0.8
    """,
)
normalized_mutual_info_score = _score_of_average(
    "nmi",
    _entropy.nmi,
    """
    >>> score = normalized_mutual_info_score(list("aabb"), [1, 1, 2, 3], average_method="max")
    >>> round(score, 12)  # 1 / (3/2)
    0.666666666667
    """,
    called="normalized_mutual_info_score",
    note="As in scikit-learn, which has no weights and does not offer the joint entropy.",
)
ami = _score_of_average(
    "ami",
    _entropy.ami,
    """
    >>> score = ami(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # (1 - 2/3) / (5/4 - 2/3) = 4/7
    0.571428571429
    """,
)
adjusted_mutual_info_score = _score_of_average(
    "ami",
    _entropy.ami,
    """
    >>> score = adjusted_mutual_info_score(list("aabb"), [1, 1, 2, 3], average_method="max")
    >>> round(score, 12)  # (1 - 2/3) / (3/2 - 2/3) = 2/5
    0.4
    """,
    called="adjusted_mutual_info_score",
    note="As in scikit-learn, to 1e-9, where neither side is one cluster or singletons. If one is, shuffling"
    " changes nothing, and what is left is 0 / 0 or 0 over something: 1 here if the clusterings are the"
    " same, else 0; scikit-learn divides rounding errors by the smallest float there.",
)
dom_q0 = _score_in_base(
    "dom_q0",
    """
    >>> score = dom_q0(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 0 + (log2(3) + log2(2) + log2(2)) / 4
    0.89624062518
    """,
)
dom_q2 = _score(
    "dom_q2",
    """
    >>> score = dom_q2(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # (log2(3) + log2(3)) / (log2(3) + log2(2) + log2(2))
    0.884228217395
    """,
)


def _make_v_measure(called: str, example: str, note: str = "") -> ScoreOfBeta[float]:
    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return _three(table, beta).v_measure

    metric = replace(with_note(METRICS["v_measure"], note), definition=_V)
    describe(score, called, document(metric, example, options=_BETA, or_option=_OR_BETA))
    return score


_V = "(1 + beta) h c / (beta h + c), with h = homogeneity and c = completeness; 0 if both are"
_OR_BETA = ", or if beta is negative"


def _three(table: Contingency, beta: float) -> HomogeneityCompletenessVMeasure:
    if not (isinstance(beta, Real) and beta >= 0):
        raise OptionError(f"beta is a number from 0 (homogeneity alone) up, not {beta!r}")
    h, c = compute(table, [METRICS["homogeneity"], METRICS["completeness"]])
    return HomogeneityCompletenessVMeasure(h, c, _entropy.v_of(h, c, beta))


v_measure = _make_v_measure(
    "v_measure",
    """
    >>> score = v_measure(list("aabb"), [1, 1, 2, 3])
    >>> round(score, 12)  # 2 * 1 * 2/3 / (1 + 2/3)
    0.8
    """,
)
v_measure_score = _make_v_measure(
    "v_measure_score",
    """
    >>> score = v_measure_score(list("aabb"), [1, 1, 2, 3], beta=2)
    >>> round(score, 12)  # 3 * 1 * 2/3 / (2 + 2/3)
    0.75
    """,
    "As in scikit-learn, which has no weights.",
)


def homogeneity_completeness_v_measure(
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    beta: float = 1.0,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> HomogeneityCompletenessVMeasure:
    """Return all three; what is shown to users is put together below."""
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
    return _three(table, beta)


describe(
    homogeneity_completeness_v_measure,
    "homogeneity_completeness_v_measure",
    document(
        replace(
            with_note(METRICS["v_measure"], "As in scikit-learn, which has no weights."),
            summary="Homogeneity, completeness and their harmonic mean.",
            definition=f"h = 1 - H(C|K) / H(C), c = 1 - H(K|C) / H(K), each 1 if that is 0 / 0, and {_V}",
        ),
        """
        >>> scores = homogeneity_completeness_v_measure(list("aabb"), [1, 1, 2, 3])
        >>> [round(score, 12) for score in scores]
        [1.0, 0.666666666667, 0.8]
        """,
        options=_BETA,
        or_option=_OR_BETA,
        returns="HomogeneityCompletenessVMeasure\n    Named tuple (homogeneity, completeness, v_measure).",
    ),
)


def combined_entropy(
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    beta: float = 0.5,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> float:
    """Return the sum; what is shown to users is put together below."""
    if not (isinstance(beta, Real) and 0 <= beta <= 1):
        raise OptionError(f"beta is the share of the cluster entropy, from 0 to 1, not {beta!r}")
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
    of_cluster, of_class = compute(table, [METRICS["cluster_entropy"], METRICS["class_entropy"]])
    return float(beta) * of_cluster + (1.0 - float(beta)) * of_class


describe(
    combined_entropy,
    "combined_entropy",
    document(
        replace(
            METRICS["variation_of_information"],
            summary="Weighted mean of cluster entropy and class entropy, in bits.",
            definition="beta H(C|K) + (1 - beta) H(K|C)",
        ),
        """
        >>> combined_entropy(list("aabb"), [1, 1, 1, 1], beta=0.25)  # 1/4 of log2(4/2), and 3/4 of 0
        0.25
        """,
        options="beta : float, default 0.5\n    Share of the cluster entropy, from 0 to 1.\n",
        or_option=", or if beta is not between 0 and 1",
    ),
)
