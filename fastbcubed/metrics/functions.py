"""The functions of `fastbcubed.metrics`, made from what the families declare: a maker for each signature."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import OptionError
from fastbcubed.metrics.coreference import FIGURES, SCORES, Three
from fastbcubed.metrics.documentation import (
    AVERAGE,
    BASE,
    BETA,
    SHARE_OF_CLUSTER_ENTROPY,
    WEIGHT_OF_COMPLETENESS,
    ZERO_DIVISION,
    document,
)
from fastbcubed.metrics.entropy import v_of
from fastbcubed.metrics.labelings import (
    PrecisionRecallFbeta,
    PrecisionRecallFscore,
    as_contingency,
    check_defined,
    compute,
    public,
)
from fastbcubed.metrics.metric import Formula
from fastbcubed.metrics.pointwise import f_measure, weight_of_precision
from fastbcubed.metrics.registry import METRICS, lifted
from fastbcubed.metrics.signatures import (
    Average,
    CoreferenceScore,
    Score,
    ScoreInBase,
    ScoreOfAverage,
    ScoreOfBeta,
)
from fastbcubed.runtime.pool import Pool

THREE = "PrecisionRecallFscore\n    Named tuple (precision, recall, f1)"


def score(name: str, called: str = "") -> Score:
    """Make the function of a score, under its own name or one of its others."""

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [METRICS[name]])[0]

    return public(score, called or name, document(METRICS[name], called))


def score_of_beta(name: str) -> ScoreOfBeta[float]:
    """Make the function of a score that depends on beta."""

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        weight_of_precision(beta)  # raises before the work if there is no such beta
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [METRICS[name].at(beta)], beta)[0]

    return public(score, name, document(METRICS[name], option=BETA))


def three_scores(f_score: str) -> ScoreOfBeta[PrecisionRecallFscore]:
    """Make the function for precision, recall and the F of both, which is called by its beta."""
    stem = f_score.removesuffix("f1")
    metrics = [METRICS[f"{stem}{name}"] for name in ("precision", "recall")]

    def scores(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> PrecisionRecallFscore:
        alpha = weight_of_precision(beta)
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        p, r = compute(table, metrics)
        named: Any = PrecisionRecallFscore if beta == 1 else PrecisionRecallFbeta
        found: PrecisionRecallFscore = named(p, r, float(f_measure(p, r, alpha)))
        return found

    p, r = (metric.name for metric in metrics)
    together = replace(
        METRICS[f_score],
        summary=METRICS[f_score].summary.replace("F1 of", "Precision, recall and F:"),
        definition=f"P = {p}, R = {r}, F = 1 / (alpha / P + (1 - alpha) / R), with alpha = 1 / (1 + beta^2)",
    )
    name = f"{stem}precision_recall_fscore"
    return public(
        scores,
        name,
        document(together, name, option=BETA, returns=f"{THREE}; with a `beta` other than 1, (…, fbeta)."),
    )


# Entropies


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
        return compute(table, [METRICS[name]])[0] * (math.log(2) / math.log(base))

    option = BASE._replace(text=BASE.text.format("2" if usual == 2 else "e"))
    return public(score, called or name, document(METRICS[name], called, option=option))


def score_of_average(name: str, called: str = "") -> ScoreOfAverage:
    """Make the function of a score that is relative to an average of the entropies."""
    of_average: Any = METRICS[name].score

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        average_method: Average = "arithmetic",
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [replace(METRICS[name], score=partial(of_average, average=average_method))])[0]

    return public(score, called or name, document(METRICS[name], called, option=AVERAGE))


@public
class HomogeneityCompletenessVMeasure(NamedTuple):
    """Homogeneity, completeness, and their harmonic mean for the `beta` asked for."""

    homogeneity: float
    completeness: float
    v_measure: float


def _v_measures(table: Contingency, beta: float) -> HomogeneityCompletenessVMeasure:
    if not (isinstance(beta, Real) and beta >= 0):
        raise OptionError(f"beta is a number from 0 (homogeneity alone) up, not {beta!r}")
    h, c = compute(table, [METRICS["homogeneity"], METRICS["completeness"]])
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

    metric = replace(METRICS["v_measure"], definition=V_OF_BETA)
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
            METRICS["v_measure"],
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
    of_cluster, of_class = compute(table, [METRICS["cluster_entropy"], METRICS["class_entropy"]])
    return float(beta) * of_cluster + (1.0 - float(beta)) * of_class


public(
    combined_entropy,
    documentation=document(
        replace(
            METRICS["variation_of_information"],
            summary="Weighted mean of cluster entropy and class entropy, in bits.",
            definition="beta H(C|K) + (1 - beta) H(K|C)",
        ),
        "combined_entropy",
        option=SHARE_OF_CLUSTER_ENTROPY,
    ),
)


# Coreference


def coreference_scores(stem: str) -> CoreferenceScore[PrecisionRecallFscore]:
    """Make the function for precision, recall and F1 of a coreference score."""
    metric = METRICS[f"{stem}_f1"]

    def scores(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        zero_division: float = 0.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> PrecisionRecallFscore:
        found = _coreference(stem, zero_division, labels_true, labels_pred, sample_weight, contingency)
        return PrecisionRecallFscore(*found)

    together = replace(
        metric,
        summary=metric.summary.replace("F1 of", "Precision, recall and F1:"),
        definition=f"P = {stem}_precision, R = {stem}_recall, F1 = {metric.definition}",
    )
    name = f"{stem}_precision_recall_fscore"
    return public(scores, name, document(together, name, option=ZERO_DIVISION, returns=f"{THREE}."))


def coreference_score(name: str) -> CoreferenceScore[float]:
    """Make the function of one of the three."""
    stem, _, role = name.rpartition("_")
    position = FIGURES.index(role)

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        zero_division: float = 0.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        found = _coreference(stem, zero_division, labels_true, labels_pred, sample_weight, contingency)
        return found[position]

    return public(score, name, document(METRICS[name], option=ZERO_DIVISION))


def _coreference(
    stem: str,
    zero_division: float,
    labels_true: ArrayLike | None,
    labels_pred: ArrayLike | None,
    sample_weight: ArrayLike | None,
    contingency: Contingency | None,
) -> Three:
    if not isinstance(zero_division, Real):
        raise OptionError(f"zero_division is a number, not {zero_division!r}")
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency, nulls="drop")
    check_defined(table, [METRICS[f"{stem}_f1"]])
    with Pool() as pool:
        return SCORES[stem](table, pool, float(zero_division))


# Of any formula


@public
def pointwise_score(
    formula: Formula,
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> float:
    """Mean over items of any score of an item's 2x2 confusion matrix.

    Parameters
    ----------
    formula : callable
        Takes `(tp, fp, fn, tn)`, arrays of float64, and returns an array of their shape, element
        by element: the weights of the items that are with an item on both sides (itself
        included), on the predicted side alone, on the true side alone, and on neither.
    labels_true, labels_pred : array-like of shape (n_items,)
        Cluster label of each item, both in the same item order.
    sample_weight : array-like of shape (n_items,), optional
        Positive weight of each item, inside the clusters and in the mean.
    contingency : Contingency, optional
        The cells, as `fastbcubed.contingency` makes them, in place of labels and weights. If it
        counts items outside the truth, `tn` is None.

    Returns
    -------
    float
        The mean, weighted if there are weights.

    Raises
    ------
    FastBCubedError
        If there is no item, if the two sides differ in length, or if a label or a weight is
        missing or cannot be one. Every error below is one, too.
    OptionError
        If the formula cannot be called, or there are neither labels nor a contingency, or both.

    Notes
    -----
    All items of a cell share their matrix, so the formula sees each cell once, in blocks. One pass
    over the items counts the cells; the rest is linear in the cells.

    References
    ----------
    .. [1] S. van Staden, Pointwise Metrics for Clustering Evaluation, arXiv:2405.10421, 2024.

    Examples
    --------
    The Tversky index, which lets a missing item count half as much as a wrong one. The matrices of
    the four pairs of items are (2, 0, 2, 4), (2, 2, 2, 2), (2, 2, 2, 2) and (2, 0, 2, 4).

    >>> def tversky(tp, fp, fn, tn):
    ...     return tp / (tp + fp + fn / 2)
    >>> score = pointwise_score(tversky, list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # (2/3 + 2/5 + 2/5 + 2/3) / 4 = 8/15
    0.533333333333
    """
    if not callable(formula):
        raise OptionError(f"formula is a function of (tp, fp, fn, tn), not {formula!r}.")
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
    return compute(table, [lifted(formula, outside=table.outside)])[0]
