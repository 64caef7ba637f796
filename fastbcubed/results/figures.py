"""Scores by name, figures of an evaluation, and its cluster sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.cells.contingency import CELL_BLOCK, Contingency, confusion
from fastbcubed.errors import ESTIMATE, Message, MetricError, NotKeptError, arg, quoted
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS, computed_as, known_as, lifted, resolve
from fastbcubed.render.number_formats import percent, score_text
from fastbcubed.runtime.object_attributes import documented
from fastbcubed.runtime.threads import blocks

if TYPE_CHECKING:
    from fastbcubed.results.influences import Errors
    from fastbcubed.results.slice_bins import SliceKey
    from fastbcubed.results.table import Table


class Scores(Mapping[str, float]):
    """Scores by name and as attributes; a score with several names is found under each."""

    def __init__(self, values: Mapping[str, float], missing: Mapping[str, str] | None = None) -> None:
        self._values = dict(values)
        self._missing = dict(missing or {})  #: why a score has no value, by name

    def __getitem__(self, name: str) -> float:
        found = self.named(name)
        if found is None:
            if name in self._missing or computed_as(name, self._missing):
                raise MetricError(self._missing[computed_as(name, self._missing) or name])
            there = f"there are {', '.join(self._values)}" if self._values else "there is none"
            raise MetricError(
                f"{name!r} was not computed; {there}. Name it in {arg('metrics', ...)}, or compute it with "
                ".metric(name)"
            )
        return self._values[found]

    def __getattr__(self, name: str) -> float:
        found = None if name.startswith("_") else self.named(name)
        if found is None:
            raise AttributeError(name)
        return self._values[found]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a score, or `default` if it was not computed."""
        found = self.named(name)
        return default if found is None else self._values[found]

    def named(self, name: str) -> str | None:
        """Return the name under which a score was computed, given any of its names; None if it was not computed."""
        return (
            None if not isinstance(name, str) else name if name in self else computed_as(name, self._values)
        )

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> list[str]:
        return documented(self, self._values)

    def __repr__(self) -> str:
        return f"Scores({', '.join(f'{name}={value:.6g}' for name, value in self.items())})"


def resolved(table: Contingency, which: Any, beta: float, scores: Sequence[Metric] = ()) -> Metric:
    """Return a score by name or from a formula; raise MetricError if it is unknown or undefined for these cells.

    `scores` are the computed scores, which may include user-defined ones that the registry does not have.
    """
    if isinstance(which, str) and (computed := {metric.name: metric for metric in scores}.get(which)):
        return computed
    found, _ = resolve([lifted(which, outside=table.outside) if callable(which) else which], **table.how)
    if len(found) != 1:
        raise MetricError(f"{quoted(which)} is a family of {len(found)} scores; name one of them")
    return found[0].at(beta)


def how_to_have(name: str, table: Contingency) -> str:
    """Return how to obtain a score that was not computed, or why it is undefined, as the end of a message."""
    known = METRICS.get(str(known_as(name)))
    if known is None:
        return f"; .metric({name!r}) computes a score"
    reason = known.undefined(**table.how)
    return f"; .metric({name!r}) computes it" if reason is None else f": {known.not_defined(reason)}"


#: Precision bounds that differ by more than this give rise to a warning.
BOUNDS_APART = 0.01
QUANTILES = (0.5, 0.9, 0.99)

Histogram = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Bounds:
    """Bounds of the precision if all items were labelled, for evaluations that drop prediction-only items."""

    #: precision if all unlabelled items were wrong members of their clusters, and if all were right
    precision_lower: float
    precision_upper: float
    unlabelled_mates: float  #: share of the scored weight in predicted clusters that contain unlabelled items

    def warning(self, *, estimable: bool) -> str:
        """Return a warning if the bounds are far apart or unknown; otherwise "".

        `estimable` is whether scores can be estimated from a sample of true clusters.
        """
        if self.precision_upper - self.precision_lower <= BOUNDS_APART:
            return ""
        between = f"anywhere from {score_text(self.precision_lower)} to {score_text(self.precision_upper)}"
        if np.isnan(self.precision_upper):
            between = "very different (the weights of unlabelled items are not known)"
        way_out = f", or use {ESTIMATE} if they are a random sample of all" if estimable else ""
        return (
            f"{percent(self.unlabelled_mates)} of the scored weight is clustered with items that the truth "
            "does not label. These items were dropped; if they were labelled, precision could be "
            f"{between}. If the true clusters are complete, pass "
            f"{arg('unmatched', {'prediction': 'outside'})}{way_out}. If the truth labels a sample of "
            "records, and not whole clusters, recall is too high as well, since the unsampled records of "
            "a true cluster are not counted."
        )


#: Why a score that counts all mentions of a run is unavailable.
NOT_ALL_MENTIONS = Message(
    "counts all mentions of the run, including those that other runs lack, which were not kept; name it in "
    f"{arg('metrics', ...)} of compare, or evaluate the run separately"
)


@dataclass(eq=False)
class Figures:
    """The scores and other figures of an evaluation, from an engine or a file; None for those not yet computed."""

    metrics: list[Metric]
    beta: float
    overall: Scores
    coverage: Coverage
    policies: Policies
    not_computed: dict[str, str] = field(default_factory=dict)
    sliced: dict[str, Table] = field(default_factory=dict)
    summary: dict[str, dict[str, Any]] | None = None  #: summary of both sides, without outcomes
    outcomes: pa.Table | None = None
    bounds: Bounds | None = None
    change_if_alone: float | None = None  #: change in recall if truth-only items were singletons
    errors: Errors | None = None
    #: the slicing key of each table in `sliced`; empty for a loaded result
    slicings: dict[str, SliceKey] = field(default_factory=dict)
    #: the tables in `sliced` with the standard errors that were saved
    sliced_with_errors: dict[str, Table] | None = None
    warnings: list[dict[str, Any]] | None = None
    #: for a run restricted to common items, its evaluation on all of its mentions, with the scores that count these, or
    #: the reason why there is none
    of_mentions: Any = None

    def elsewhere(self, metric: Metric) -> Any:
        """Return the evaluation from whose cells a score is computed; None if it is this one.

        Raise NotKeptError if the score counts mentions whose cells were not kept.
        """
        if self.of_mentions is None or not metric.of_mentions:
            return None
        if isinstance(self.of_mentions, str):
            raise NotKeptError(f"{metric.name} {self.of_mentions}")
        return self.of_mentions

    def definition(self, table: Contingency) -> dict[str, Any]:
        """Return the meaning of the scores: average, weighting, policies."""
        return {
            "average": "item",
            "overlapping": table.overlapping,
            "weighted": table.weighted,
            "weighting": table.weighting,
            "beta": self.beta,
            "unmatched": {"truth": self.policies.truth, "prediction": self.policies.prediction},
            "nulls": self.policies.nulls,
            "duplicates": self.policies.duplicates,
            "noise": self.policies.noise,
            **{name: value for m in self.metrics if m.options for name, value in m.options.items()},
        }

    def bounds_in(self, table: Contingency) -> Bounds | None:
        """Return bounds of the precision if prediction-only items were dropped, otherwise None."""
        if self.policies.prediction != "drop" or not self.coverage.n_prediction_only:
            return None
        if self.bounds is not None:
            return self.bounds
        return (
            None if table.unlabelled_mates() is None else bounds_from(bound_sums(table), table.total_weight)
        )


def coverage_for_json(coverage: Coverage, bounds: Bounds | None) -> dict[str, Any]:
    """Return the coverage as plain values, including the bounds of the precision."""
    return {
        **asdict(coverage),
        "truth_coverage": coverage.truth_coverage,
        "prediction_coverage": coverage.prediction_coverage,
        "bounds": None if bounds is None else asdict(bounds),
    }


def bounds_from(sums: NDArray[np.float64], total_weight: float) -> Bounds:
    """Return the bounds from the `bound_sums` of all cells."""
    low, high, mated = sums / total_weight
    return Bounds(float(low), float(high), float(mated))


def bound_sums(table: Contingency) -> NDArray[np.float64]:
    """Return the sums of the least and the greatest precision, and of weight with unlabelled mates. Shape (3,)."""
    none = np.zeros(1, np.int64), np.zeros(1), np.zeros(table.n_cells, np.int8)
    unlabelled_n, unlabelled, places = table.unlabelled_mates() or none
    sums = [np.zeros(3)]
    for a, b in blocks(table.n_cells, CELL_BLOCK):
        cells = slice(a, b)
        w, place = table.weight[cells], places[cells]
        tp, fp, _, _ = confusion(table, a, b)
        u = unlabelled[place]
        most = tp + fp + u
        mated = w[unlabelled_n[place] > 0].sum()
        sums.append(np.array([(w * (tp / most)).sum(), (w * ((tp + u) / most)).sum(), mated]))
    return np.sum(sums, axis=0)


def summarize(table: Contingency) -> dict[str, dict[str, Any]]:
    """Return, for each side, its items, clusters, singletons, largest size, size quantiles and exact clusters."""
    sizes = {"true": _size_histogram(table.true_n), "pred": _size_histogram(table.pred_n)}
    return describe(sizes, table.n_items, table.n_exact)


def describe(histograms: Mapping[str, Histogram], n_items: int, n_exact: int) -> dict[str, dict[str, Any]]:
    """Return the summary of each side from its sorted cluster sizes, and the number of clusters of each size."""
    result = {}
    for side, (sizes, clusters) in histograms.items():
        upto = np.cumsum(clusters)
        result[side] = {
            "items": n_items,
            "clusters": int(upto[-1]),
            "singletons": int(clusters[0]) if sizes[0] == 1 else 0,
            "largest": int(sizes[-1]),
            "size_quantiles": {f"{q:g}": int(sizes[np.searchsorted(upto, q * upto[-1])]) for q in QUANTILES},
            "exact": n_exact,
        }
    return result


def _size_histogram(counts: NDArray[np.integer]) -> Histogram:
    """Return the sorted cluster sizes that occur, and the number of clusters of each size."""
    few = counts.max(initial=0) < max(1 << 16, counts.size)
    if not few:
        return np.unique(counts[counts > 0], return_counts=True)
    histogram = np.bincount(counts)
    histogram[0] = 0
    sizes = np.flatnonzero(histogram)
    return sizes, histogram[sizes]
