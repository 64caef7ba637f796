"""What the functions of two labelings share: types, the way from labels to scores, how they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from numpy.typing import ArrayLike

from fastbcubed.errors import OptionError
from fastbcubed.metrics.documentation import document
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.pointwise import f_measure, weight_of_precision
from fastbcubed.metrics.registry import METRICS, resolve

if TYPE_CHECKING:
    from fastbcubed.contingency import Contingency

Result = TypeVar("Result", covariant=True)


class PrecisionRecallFscore(NamedTuple):
    """Precision, recall and their F: F1, or that of the `beta` asked for."""

    precision: float
    recall: float
    f1: float


class Score(Protocol):
    """A function from two labelings, or a contingency in their place, to a score."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        """Return the score."""
        ...


class ScoreOfBeta(Protocol[Result]):
    """The same for scores that lean to recall as `beta` grows."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = 1.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> Result:
        """Return the score or scores."""
        ...


def as_contingency(
    labels_true: ArrayLike | None,
    labels_pred: ArrayLike | None,
    sample_weight: ArrayLike | None,
    contingency: Contingency | None,
) -> Contingency:
    """Return the cells of two labelings, or those that came in their place."""
    if contingency is None:
        if labels_true is None or labels_pred is None:
            raise OptionError("Pass labels_true and labels_pred, or contingency in their place.")
        from fastbcubed.pipeline import build_contingency

        return build_contingency(labels_true, labels_pred, sample_weight)
    from fastbcubed.contingency import Contingency

    if any(other is not None for other in (labels_true, labels_pred, sample_weight)):
        raise OptionError(
            "contingency stands for labels_true, labels_pred and sample_weight, but some of them"
            " came with it. Pass either."
        )
    if not isinstance(contingency, Contingency):
        raise OptionError(
            f"contingency is of type {type(contingency).__name__}. Make a Contingency with"
            " fastbcubed.contingency(labels_true, labels_pred), or with Contingency.from_cells."
        )
    return contingency


def compute(contingency: Contingency, metrics: Sequence[Metric], beta: float = 1.0) -> list[float]:
    """Return the scores of all items, in the order given; raise for one that is not defined."""
    from fastbcubed.aggregation import overall

    resolve(
        metrics,
        weighted=contingency.weighted,
        weighting=contingency.weighting,
        outside=contingency.outside,
    )
    scores = overall(contingency, metrics, beta=beta)
    return [scores[metric.name] for metric in metrics]


def make_score(name: str, example: str) -> Score:
    """Make the function for a score."""

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [METRICS[name]])[0]

    describe(score, name, document(METRICS[name], example))
    return score


def make_score_of_beta(name: str, example: str) -> ScoreOfBeta[float]:
    """Make the function for a score that depends on beta."""

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

    describe(score, name, document(METRICS[name], example, beta=True))
    return score


def make_three_scores(f_score: str, example: str) -> ScoreOfBeta[PrecisionRecallFscore]:
    """Make the function for precision, recall and the F of both."""
    metrics = [METRICS[name] for name in METRICS[f_score].needs]

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
        return PrecisionRecallFscore(p, r, float(f_measure(p, r, alpha)))

    p, r = (metric.name for metric in metrics)
    together = replace(
        METRICS[f_score],
        summary=METRICS[f_score].summary.replace("F1 of", "Precision, recall and F:"),
        definition=f"P = {p}, R = {r}, F = 1 / (alpha / P + (1 - alpha) / R), with alpha = 1 / (1 + beta^2)",
    )
    returns = "PrecisionRecallFscore\n    Named tuple (precision, recall, f1); f1 is F for `beta`."
    name = f_score.removesuffix("f1") + "precision_recall_fscore"
    describe(scores, name, document(together, example, beta=True, returns=returns))
    return scores


def describe(function: Callable[..., object], name: str, documentation: str) -> None:
    """Give a function its name and documentation, as one of `fastbcubed.metrics`."""
    function.__module__ = "fastbcubed.metrics"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = documentation
