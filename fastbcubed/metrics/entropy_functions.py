"""The functions of `fastbcubed.metrics` for entropies, which have options of their own."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import OptionError
from fastbcubed.metrics.documentation import (
    AVERAGE,
    BASE,
    SHARE_OF_CLUSTER_ENTROPY,
    WEIGHT_OF_COMPLETENESS,
    document,
)
from fastbcubed.metrics.entropy import entropy, v_of
from fastbcubed.metrics.labelings import as_contingency, compute, public
from fastbcubed.metrics.signatures import Average, ScoreInBase, ScoreOfAverage, ScoreOfBeta


def score_in_base(name: str, called: str = "", *, base: float = 2.0) -> ScoreInBase:
    """Make the function of an amount of information."""
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
        return compute(table, [entropy[name]])[0] * (math.log(2) / math.log(base))

    option = BASE._replace(text=BASE.text.format("2" if usual == 2 else "e"))
    return public(score, called or name, document(entropy[name], called, option=option))


def score_of_average(name: str, called: str = "") -> ScoreOfAverage:
    """Make the function of a score that is relative to an average of the entropies."""
    of_average: Any = entropy[name].score

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        average_method: Average = "arithmetic",
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [replace(entropy[name], score=partial(of_average, average=average_method))])[0]

    return public(score, called or name, document(entropy[name], called, option=AVERAGE))


@public
class HomogeneityCompletenessVMeasure(NamedTuple):
    """Homogeneity, completeness, and their harmonic mean for the `beta` asked for."""

    homogeneity: float
    completeness: float
    v_measure: float


def _v_measures(table: Contingency, beta: float) -> HomogeneityCompletenessVMeasure:
    if not (isinstance(beta, Real) and beta >= 0):
        raise OptionError(f"beta is a number from 0 (homogeneity alone) up, not {beta!r}")
    h, c = compute(table, [entropy["homogeneity"], entropy["completeness"]])
    return HomogeneityCompletenessVMeasure(h, c, v_of(h, c, beta))


V_OF_BETA = "(1 + beta) h c / (beta h + c), with h = homogeneity and c = completeness; 0 if both are"


def v_measure_of_beta(called: str = "") -> ScoreOfBeta[float]:
    """Make the function of the V measure, in which beta is not squared."""

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return _v_measures(table, beta).v_measure

    metric = replace(entropy["v_measure"], definition=V_OF_BETA)
    return public(score, called or "v_measure", document(metric, called, option=WEIGHT_OF_COMPLETENESS))


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
    return _v_measures(table, beta)


public(
    homogeneity_completeness_v_measure,
    documentation=document(
        replace(
            entropy["v_measure"],
            summary="Homogeneity, completeness and their harmonic mean.",
            definition=f"h = 1 - H(C|K) / H(C), c = 1 - H(K|C) / H(K), each 1 if that is 0 / 0, and {V_OF_BETA}",
        ),
        "homogeneity_completeness_v_measure",
        option=WEIGHT_OF_COMPLETENESS,
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
    of_cluster, of_class = compute(table, [entropy["cluster_entropy"], entropy["class_entropy"]])
    return float(beta) * of_cluster + (1.0 - float(beta)) * of_class


public(
    combined_entropy,
    documentation=document(
        replace(
            entropy["variation_of_information"],
            summary="Weighted mean of cluster entropy and class entropy, in bits.",
            definition="beta H(C|K) + (1 - beta) H(K|C)",
        ),
        "combined_entropy",
        option=SHARE_OF_CLUSTER_ENTROPY,
    ),
)
