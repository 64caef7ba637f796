"""What the functions of two labelings share: types, the way from labels to scores, how they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import cleandoc
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from numpy.typing import ArrayLike

from fastbcubed.errors import OptionError
from fastbcubed.metrics.documentation import BETA, document
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.pointwise import f_measure, weight_of_precision
from fastbcubed.metrics.registry import METRICS, resolve
from fastbcubed.overlap.covers import Cover
from fastbcubed.runtime.pool import Pool

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency

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
    *,
    nulls: str = "raise",
) -> Contingency:
    """Return the cells of two labelings, or those that came in their place."""
    if contingency is None:
        if labels_true is None or labels_pred is None:
            raise OptionError("Pass labels_true and labels_pred, or contingency in their place.")
        from fastbcubed.evaluate import build_contingency

        return build_contingency(labels_true, labels_pred, sample_weight, nulls)
    from fastbcubed.cells.contingency import Contingency

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


def check_defined(contingency: Contingency, metrics: Sequence[Metric]) -> None:
    """Raise if a score is not defined for this input."""
    resolve(
        metrics,
        weighted=contingency.weighted,
        weighting=contingency.weighting,
        outside=contingency.outside,
        overlapping=isinstance(contingency, Cover),
    )


def compute(contingency: Contingency, metrics: Sequence[Metric], beta: float = 1.0) -> list[float]:
    """Return the scores of all items, in the order given; raise for one that is not defined."""
    from fastbcubed.metrics.aggregation import overall

    check_defined(contingency, metrics)
    with Pool() as pool:
        scores = overall(contingency, metrics, beta=beta, pool=pool)
    return [scores[metric.name] for metric in metrics]


_OF_BETA = {"options": BETA, "or_option": ", or if beta is negative"}


def make_score(name: str, example: str, *, called: str = "", note: str = "") -> Score:
    """Make the function for a score, `called` as in the registry or by another library."""

    def score(
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
        return compute(table, [METRICS[name]])[0]

    describe(score, called or name, document(with_note(METRICS[name], note), example))
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

    describe(score, name, document(METRICS[name], example, **_OF_BETA))
    return score


def make_three_scores(f_score: str, example: str) -> ScoreOfBeta[PrecisionRecallFscore]:
    """Make the function for precision, recall and the F of both."""
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
        return PrecisionRecallFscore(p, r, float(f_measure(p, r, alpha)))

    p, r = (metric.name for metric in metrics)
    together = replace(
        METRICS[f_score],
        summary=METRICS[f_score].summary.replace("F1 of", "Precision, recall and F:"),
        definition=f"P = {p}, R = {r}, F = 1 / (alpha / P + (1 - alpha) / R), with alpha = 1 / (1 + beta^2)",
    )
    returns = "PrecisionRecallFscore\n    Named tuple (precision, recall, f1); f1 is F for `beta`."
    describe(
        scores, f"{stem}precision_recall_fscore", document(together, example, returns=returns, **_OF_BETA)
    )
    return scores


def with_note(metric: Metric, note: str) -> Metric:
    """Return the score with something more to say in its documentation."""
    return replace(metric, note=f"{metric.note} {note}".strip())


def describe(function: Callable[..., object], name: str, documentation: str) -> None:
    """Give a function its name and documentation, as one of `fastbcubed.metrics`."""
    function.__module__ = "fastbcubed.metrics"
    function.__name__ = function.__qualname__ = name
    function.__doc__ = cleandoc(documentation)
