"""From two labelings or a contingency to scores: shared steps and signatures of public functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import cleandoc
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from numpy.typing import ArrayLike

from fastbcubed.align.policies import Policies
from fastbcubed.align.rows import align
from fastbcubed.cells.build import build_cells
from fastbcubed.cells.contingency import MAX_PAIRS, Contingency
from fastbcubed.cells.three_way import Joint, join
from fastbcubed.errors import OptionError, OverlapError, arg
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.pair import Given, Pair, open_pair
from fastbcubed.metrics.score import Metric
from fastbcubed.metrics.sums import overall
from fastbcubed.overlap.two_sides import build_cover
from fastbcubed.runtime.threads import Pool

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
    """The same for coreference scores, where the caller sets the value of 0 / 0."""

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


Function = TypeVar("Function", bound=Callable[..., Any])

#: The public names of `fastbcubed.metrics`.
PUBLIC: list[str] = []


def public(function: Function, name: str = "", documentation: str = "") -> Function:
    """Make a function, or a class that one returns, part of `fastbcubed.metrics`: its name and documentation."""
    function.__module__ = "fastbcubed.metrics"
    function.__name__ = function.__qualname__ = name or function.__name__
    function.__doc__ = documentation.rstrip("\n") or cleandoc(function.__doc__ or "")
    PUBLIC.append(function.__name__)
    return function


@public
class PrecisionRecallFscore(NamedTuple):
    """Precision, recall and their F1."""

    precision: float
    recall: float
    f1: float


@public
class PrecisionRecallFbeta(NamedTuple):
    """Precision, recall and their F for a `beta` other than 1."""

    precision: float
    recall: float
    fbeta: float


def as_contingency(
    labels_true: Labels | None,
    labels_pred: Labels | None,
    sample_weight: Any,
    contingency: Contingency | None,
    *,
    nulls: str = "raise",
) -> Contingency:
    """Return the cells of two labelings, or those that came in their place."""
    if contingency is not None:
        return _given(labels_true, labels_pred, sample_weight, contingency)
    with Pool() as pool:
        try:
            pair = _open(labels_true, labels_pred, sample_weight)
            return _build(pair, Policies.of("drop", nulls, "raise", None), pool)
        except OverlapError as error:
            overlapping = arg("overlapping", True)
            cells = f"contingency=fastbcubed.contingency(..., {overlapping})"
            raise OverlapError(error.message.marked.replace(f"{overlapping}", cells)) from None


def as_cover(
    labels_true: Labels | None,
    labels_pred: Labels | None,
    sample_weight: Any,
    contingency: Contingency | None,
    *,
    always: bool = False,
) -> Contingency:
    """Return the cells of two clusterings that may overlap; a label for each item by position says that they do not.

    With `always` the cells of these are taken as those of a cover, too.
    """
    if contingency is not None:
        return _given(labels_true, labels_pred, sample_weight, contingency)
    policies = Policies.of("drop", "raise", "raise", None)
    pair = _open(labels_true, labels_pred, sample_weight, overlapping=True)
    with Pool() as pool:
        if not always and pair.first[0].items is None:
            return _build(pair, policies, pool)
        covered = build_cover(
            pair, policies, pool, weighting="pointwise", null_is_absent=False, max_pairs=MAX_PAIRS
        )
        return covered.cover


def _open(
    labels_true: Labels | None, labels_pred: Labels | None, weight: Any, *, overlapping: bool = False
) -> Pair:
    if labels_true is None or labels_pred is None:
        raise OptionError("Pass labels_true and labels_pred, or contingency in their place.")
    return open_pair(Given(labels_true, labels_pred, weight=weight, overlapping=overlapping))


def _build(pair: Pair, policies: Policies, pool: Pool) -> Contingency:
    rows = align(*pair.first, policies, pool, weight_table=pair.weight_table, narrow=True)
    return build_cells(rows, pool, weighting="pointwise", outside=False)


def as_joint(labels_baseline: Any, labels_experiment: Any, labels_true: Any, sample_weight: Any) -> Joint:
    """Return the joint cells of three labelings of the same items."""
    policies = Policies.of("raise", "raise", "raise", None)
    changed = _open(labels_baseline, labels_experiment, sample_weight)
    known = _open(labels_true, labels_baseline, None)
    if changed.first[0].items is not None or known.first[0].items is not None:
        raise OptionError(
            "labels_baseline, labels_experiment and labels_true are a label for each item, in one order; clusterings "
            "that have item ids go to fastbcubed.diff(baseline, experiment, truth=truth)"
        )
    with Pool() as pool:
        rows = align(*changed.first, policies, pool, weight_table=changed.weight_table)
        truth = align(*known.first, policies, pool)
        keys = truth.true_keys, rows.true_keys, rows.pred_keys
        return join(*keys, rows.weight, pool, weighting="pointwise")


def _given(labels_true: Any, labels_pred: Any, weight: Any, contingency: Contingency) -> Contingency:
    """Return a contingency that came in place of labels; raise if it did not, or is none."""
    if any(other is not None for other in (labels_true, labels_pred, weight)):
        raise OptionError(
            "contingency stands for labels_true, labels_pred and sample_weight, but some of them"
            " were given, too. Pass one or the other."
        )
    if not isinstance(contingency, Contingency):
        raise OptionError(
            f"contingency is of type {type(contingency).__name__}. Make a Contingency with"
            " fastbcubed.contingency(labels_true, labels_pred), or with Contingency.from_cells."
        )
    return contingency


def check_defined(contingency: Contingency, metrics: Sequence[Metric]) -> None:
    """Raise if a score is not defined for this input."""
    for metric in metrics:
        reason = metric.undefined(
            weighted=contingency.weighted,
            weighting=contingency.weighting,
            outside=contingency.outside,
            overlapping=contingency.overlapping,
        )
        if reason is not None:
            raise metric.not_defined(reason)


def compute(contingency: Contingency, metrics: Sequence[Metric], beta: float = 1.0) -> list[float]:
    """Return the scores of all items, in the order given; raise for one that is not defined."""
    check_defined(contingency, metrics)
    with Pool() as pool:
        scores = overall(contingency, metrics, beta=beta, pool=pool)
    return [scores[metric.name] for metric in metrics]
