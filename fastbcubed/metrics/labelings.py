"""From two labelings, or a contingency in their place, to scores: what the public functions share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import cleandoc
from typing import Any, NamedTuple, TypeVar

from fastbcubed.alignment.align import align
from fastbcubed.alignment.policies import Policies
from fastbcubed.cells.build import build_cells
from fastbcubed.cells.contingency import MAX_PAIRS, Contingency
from fastbcubed.cells.joint import Joint, join
from fastbcubed.clusterings.inputs import Given
from fastbcubed.clusterings.stretches import Pair, open_pair
from fastbcubed.errors import OptionError, OverlapError
from fastbcubed.metrics.aggregation import overall
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.signatures import Labels
from fastbcubed.overlap.overlapping import build_cover
from fastbcubed.runtime.pool import Pool

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
            cells = "pass contingency=fastbcubed.contingency(..., overlapping=True)"
            raise OverlapError(str(error).replace("pass overlapping=True", cells)) from None


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
