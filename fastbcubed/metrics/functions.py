"""The functions of `fastbcubed.metrics`, made from what the families declare: a maker for each signature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import Any

from numpy.typing import ArrayLike

from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import OptionError
from fastbcubed.metrics.change_quality import judged
from fastbcubed.metrics.coreference import FIGURES, SCORES, Three
from fastbcubed.metrics.documentation import BETA, ZERO_DIVISION, document
from fastbcubed.metrics.labelings import (
    Function,
    PrecisionRecallFbeta,
    PrecisionRecallFscore,
    as_contingency,
    as_cover,
    as_joint,
    check_defined,
    compute,
    public,
)
from fastbcubed.metrics.metric import Formula, Metric
from fastbcubed.metrics.rates import f_measure, weight_of_precision
from fastbcubed.metrics.registry import METRICS, lifted
from fastbcubed.metrics.signatures import (
    CoreferenceScore,
    Labels,
    Score,
    ScoreOfBeta,
    ScoreOfCovers,
    ScoreOfCoversAndBeta,
    ScoreOfDiff,
    ScoreOfThree,
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
    metrics = _rates(f_score)

    def scores(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> PrecisionRecallFscore:
        weight_of_precision(beta)  # raises before the work if there is no such beta
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return _with_f(compute(table, metrics), beta)

    return _public_three(scores, f_score)


def _rates(f_score: str) -> list[Metric]:
    stem = f_score.removesuffix("f1")
    return [METRICS[f"{stem}{name}"] for name in ("precision", "recall")]


def _with_f(rates: list[float], beta: float) -> PrecisionRecallFscore:
    p, r = rates
    named: Any = PrecisionRecallFscore if beta == 1 else PrecisionRecallFbeta
    found: PrecisionRecallFscore = named(p, r, float(f_measure(p, r, weight_of_precision(beta))))
    return found


def _public_three(scores: Function, f_score: str, *, on_covers: bool = False) -> Function:
    p, r = (metric.name for metric in _rates(f_score))
    together = replace(
        METRICS[f_score],
        summary=METRICS[f_score].summary.replace("F1 of", "Precision, recall and F:"),
        definition=f"P = {p}, R = {r}, F = 1 / (alpha / P + (1 - alpha) / R), with alpha = 1 / (1 + beta^2)",
    )
    name = f"{f_score.removesuffix('f1')}precision_recall_fscore"
    returns = f"{THREE}; with a `beta` other than 1, (…, fbeta)."
    return public(scores, name, document(together, name, option=BETA, returns=returns, on_covers=on_covers))


# Of a change


def score_of_diff(name: str) -> ScoreOfDiff:
    """Make the function of a score of baseline and experiment."""

    def score(
        labels_baseline: ArrayLike | None = None,
        labels_experiment: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_baseline, labels_experiment, sample_weight, contingency)
        return compute(table, [METRICS[name]])[0]

    return public(score, name, document(METRICS[name]))


def score_of_three(name: str) -> ScoreOfThree:
    """Make the function of a score of baseline, experiment and truth."""

    def score(
        labels_baseline: ArrayLike,
        labels_experiment: ArrayLike,
        labels_true: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        joint = as_joint(labels_baseline, labels_experiment, labels_true, sample_weight)
        return compute(joint.cells, judged(joint, [METRICS[name]]))[0]

    return public(score, name, document(METRICS[name]))


# Of clusterings that may overlap


def score_of_covers(name: str) -> ScoreOfCovers:
    """Make the function of a score of overlapping clusterings."""

    def score(
        labels_true: Labels | None = None,
        labels_pred: Labels | None = None,
        *,
        sample_weight: ArrayLike | Mapping[Any, float] | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        always = METRICS[name].covers_only
        cells = as_cover(labels_true, labels_pred, sample_weight, contingency, always=always)
        return compute(cells, [METRICS[name]])[0]

    return public(score, name, document(METRICS[name], on_covers=True))


def three_of_covers(f_score: str) -> ScoreOfCoversAndBeta[PrecisionRecallFscore]:
    """Make the function for precision, recall and the F of both, of overlapping clusterings."""
    metrics = _rates(f_score)

    def scores(
        labels_true: Labels | None = None,
        labels_pred: Labels | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | Mapping[Any, float] | None = None,
        contingency: Contingency | None = None,
    ) -> PrecisionRecallFscore:
        weight_of_precision(beta)
        always = metrics[0].covers_only
        cells = as_cover(labels_true, labels_pred, sample_weight, contingency, always=always)
        return _with_f(compute(cells, metrics), beta)

    return _public_three(scores, f_score, on_covers=True)


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
