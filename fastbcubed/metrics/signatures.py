"""The signatures of the functions in `fastbcubed.metrics`, for type checkers and editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeVar

from numpy.typing import ArrayLike

from fastbcubed.cells.contingency import Contingency
from fastbcubed.clusterings.clustering import Clustering

#: What each side may be where clusters may overlap.
Labels = ArrayLike | Mapping[Any, Any] | Clustering
Result = TypeVar("Result", covariant=True)
Average = Literal["arithmetic", "geometric", "min", "max", "joint"]


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


class ScoreOfDiff(Protocol):
    """A function from a baseline and an experiment, or a contingency in their place, to a score."""

    def __call__(
        self,
        labels_baseline: ArrayLike | None = None,
        labels_experiment: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        """Return the score."""


class ScoreOfThree(Protocol):
    """A function from a baseline, an experiment and the truth to a score."""

    def __call__(
        self,
        labels_baseline: ArrayLike,
        labels_experiment: ArrayLike,
        labels_true: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the score."""


class ScoreOfBeta(Protocol[Result]):
    """The same for scores that lean to recall as `beta` grows."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        beta: float = ...,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> Result:
        """Return the score or scores."""


class ScoreOfCovers(Protocol):
    """A function from two clusterings that may overlap, or a contingency in their place, to a score."""

    def __call__(
        self,
        labels_true: Labels | None = None,
        labels_pred: Labels | None = None,
        *,
        sample_weight: ArrayLike | Mapping[Any, float] | None = None,
        contingency: Contingency | None = None,
    ) -> float:
        """Return the score."""


class ScoreOfCoversAndBeta(Protocol[Result]):
    """The same for scores that lean to recall as `beta` grows."""

    def __call__(
        self,
        labels_true: Labels | None = None,
        labels_pred: Labels | None = None,
        *,
        beta: float = ...,
        sample_weight: ArrayLike | Mapping[Any, float] | None = None,
        contingency: Contingency | None = None,
    ) -> Result:
        """Return the score or scores."""


class ScoreInBase(Protocol):
    """The same for an amount of information, in logarithms to some base."""

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


class ScoreOfAverage(Protocol):
    """The same for a score that is relative to an average of two entropies."""

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


class CoreferenceScore(Protocol[Result]):
    """The same for coreference scores, where 0 / 0 is what the caller says."""

    def __call__(
        self,
        labels_true: ArrayLike | None = None,
        labels_pred: ArrayLike | None = None,
        *,
        zero_division: float = 0.0,
        sample_weight: ArrayLike | None = None,
        contingency: Contingency | None = None,
    ) -> Result:
        """Return the score or scores."""
