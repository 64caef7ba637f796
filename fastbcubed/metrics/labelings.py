"""From two labelings, or a contingency in their place, to scores: what the public functions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import Any, NamedTuple, TypeVar

from numpy.typing import ArrayLike

from fastbcubed.alignment.align import align
from fastbcubed.alignment.policies import Policies
from fastbcubed.cells.build import build_cells
from fastbcubed.cells.contingency import Contingency
from fastbcubed.clusterings.inputs import read_pair
from fastbcubed.errors import OptionError
from fastbcubed.metrics.aggregation import overall
from fastbcubed.metrics.metric import Metric
from fastbcubed.runtime.pool import Pool

Function = TypeVar("Function", bound=Callable[..., Any])

#: The public names of `fastbcubed.metrics`.
PUBLIC: list[str] = []


def public(function: Function, name: str = "", documentation: str = "") -> Function:
    """Make a function, or a class that one returns, part of `fastbcubed.metrics`: its name and documentation."""
    function.__module__ = "fastbcubed.metrics"
    function.__name__ = function.__qualname__ = name or function.__name__
    function.__doc__ = cleandoc(documentation or function.__doc__ or "")
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
        with Pool() as pool:
            inputs = read_pair(labels_true, labels_pred, weight=sample_weight)
            policies = Policies.of("drop", nulls, "raise", None)
            rows = align(*inputs[:2], policies, pool, weight_table=inputs.weight_table)
            return build_cells(rows, pool, weighting="pointwise", outside=False)
    if any(other is not None for other in (labels_true, labels_pred, sample_weight)):
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
