"""What the functions of two labelings share: their types, and the way from labels to scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from numpy.typing import ArrayLike

from fastbcubed.errors import OptionError
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import resolve

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
