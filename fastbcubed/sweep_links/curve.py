"""Scores at every threshold: the formulas of the registry, on the sums of `level_sums`, an entry for each threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.errors import Message, MetricError, arg
from fastbcubed.metrics.entropy import entropy
from fastbcubed.metrics.pairs import pairs
from fastbcubed.metrics.registry import METRICS, known_as, resolve
from fastbcubed.metrics.score import Metric
from fastbcubed.runtime import buffers
from fastbcubed.runtime.attributes import cached_property
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Floats

#: Pairs together on both sides, on one of them, apart on both; and entropies, in the order that formulas take.
PAIRS, OF_ENTROPIES = ("tp", "fp", "fn", "tn"), ("true", "pred", "true_given_pred", "pred_given_true")
#: Scores of entropies that are kept up.
ENTROPIES = (
    "cluster_entropy",
    "class_entropy",
    "variation_of_information",
    "homogeneity",
    "completeness",
    "v_measure",
)

#: Scores of a sweep unless others are requested; those that are not defined for the input are left out.
DEFAULT = (
    "precision", "recall", "f1", "over_merge_rate", "under_merge_rate", "pair_precision", "pair_recall", "pair_f1",
    "rand", "adjusted_rand", "elm_precision", "elm_recall", "elm_f1", "homogeneity", "completeness", "v_measure",
    "variation_of_information",
)  # fmt: skip
#: The reason that a score is known at requested thresholds only, and how to request it.
NOT_KEPT, AT_SOME = (
    "cannot be updated at every threshold: {}",
    f"{arg('thresholds', ...)} to have it at those that you name",
)
#: Figures of the clusters, which are always there.
COUNTED = ("clusters", "largest", "singletons")


@dataclass(frozen=True, eq=False)
class Kept:
    """Sums by threshold, the weight of all scored items, and beta."""

    sums: Mapping[str, NDArray[Any]]
    total: float
    beta: float = 1.0
    whole: Kept | None = None  #: that of all points, if these are some of them

    def take(self, points: slice | NDArray[np.int64]) -> Kept:
        """Return the sums of some points."""
        return Kept(_Taken(self.sums, points), self.total, self.beta, self.whole or self)

    @cached_property
    def n_pairs(self) -> float:
        """The number or weight of all pairs."""
        if self.whole is not None:
            return self.whole.n_pairs
        first = self.take(slice(0, 1))
        return float(sum(number[0] for number in first.pair_numbers))

    def mean(self, name: str) -> Floats:
        """Return a sum over items, divided by their weight."""
        return np.asarray(self.sums[name] / self.total)

    def rest(self, name: str) -> Floats:
        """Return 1 less a mean."""
        return 1.0 - self.mean(name)

    def amount(self, name: str) -> NDArray[Any]:
        """Return the number or weight of pairs of a kind; of numbers, those that come together later are the rest."""
        whole, before = {"fn": ("all_right", "tp"), "tn": ("all_wrong", "fp")}.get(name, ("", ""))
        return self.sums[name] if whole not in self.sums else self.sums[whole] - self.sums[before]

    @property
    def pair_numbers(self) -> list[Floats]:
        """Numbers or weights of pairs together on both sides, on one of them, apart on both."""
        return [self.amount(name).astype(np.float64) for name in PAIRS]

    @property
    def pairs(self) -> list[Floats]:
        """Those as shares of all pairs: products of weights might overflow."""
        return [each / (self.n_pairs or 1.0) for each in self.pair_numbers]


class _Taken(Mapping[str, NDArray[Any]]):
    """Sums at some points of a curve; values common to all points are kept."""

    def __init__(self, sums: Mapping[str, NDArray[Any]], points: slice | NDArray[np.int64]) -> None:
        self._sums, self._points = sums, points

    def __getitem__(self, name: str) -> NDArray[Any]:
        values = self._sums[name]
        return values[self._points] if values.ndim else values

    def __iter__(self) -> Iterator[str]:
        return iter(self._sums)

    def __len__(self) -> int:
        return len(self._sums)


class KeptScore(NamedTuple):
    """A score that is updated at every threshold, and its family of sums."""

    family: str
    formula: Callable[[Kept], Floats]


def _of_pairs(metric: Metric) -> KeptScore:
    """Return a score of pairs, from their numbers if it is one, else from their shares of all pairs."""

    def score(kept: Kept) -> Floats:
        tp, fp, fn, tn = kept.pair_numbers if metric.high == math.inf else kept.pairs
        return np.asarray(metric.of_sums({"pairs": (tp, fp, fn, tn), "wrong pairs": (fp, fn)}), np.float64)

    return KeptScore("pairs", score)


def _of_entropies(metric: Metric) -> KeptScore:
    """Return a score of the entropies of both sides."""
    return KeptScore(
        "entropy", lambda kept: metric.of_sums({"entropies": [kept.mean(name) for name in OF_ENTROPIES]})
    )


KEPT: dict[str, KeptScore] = {
    "precision": KeptScore("bcubed", lambda kept: kept.rest("over")),
    "recall": KeptScore("bcubed", lambda kept: kept.rest("under")),
    "over_merge_rate": KeptScore("bcubed", lambda kept: kept.mean("over")),
    "under_merge_rate": KeptScore("bcubed", lambda kept: kept.mean("under")),
    "elm_precision": KeptScore("elm", lambda kept: kept.rest("elm_over")),
    "elm_recall": KeptScore("elm", lambda kept: kept.rest("elm_under")),
    **{metric.name: _of_pairs(metric) for metric in pairs},
    **{name: _of_entropies(entropy[name]) for name in ENTROPIES},
}


def family_of(metric: Metric) -> str | None:
    """Return the family of sums that a score is made of; None if it cannot be updated."""
    kept = KEPT.get(metric.alias_of or metric.name)
    if kept is not None:
        return kept.family
    families = {family_of(need) for need in metric.needs} if metric.combine is not None else {None}
    return families.pop() if len(families) == 1 else None


def why_not_kept(metric: Metric, *, weighted: bool) -> str | None:
    """Return why a score cannot be updated at every threshold; None if it can."""
    family = family_of(metric)
    if family is None:
        return "it is no sum over what changes where clusters meet"
    if weighted and family == "elm":
        return "with weights it is not the same for all items that share both clusters"
    return None


def score_of(metric: Metric, kept: Kept) -> Floats:
    """Return a score at every threshold."""
    own = KEPT.get(metric.alias_of or metric.name)
    if own is not None:
        return np.asarray(own.formula(kept))
    assert metric.combine is not None
    return np.asarray(metric.combine({need.name: score_of(need, kept) for need in metric.needs}, kept.beta))


class Choice(NamedTuple):
    """The scores at every threshold, those at requested thresholds only, and those left out, with the reason."""

    kept: list[Metric]
    others: list[Metric]
    not_computed: dict[str, str]


def choose_scores(
    wanted: Sequence[str | Metric] | None, *, weighted: bool, outside: bool, beta: float, everywhere: bool
) -> Choice:
    """Return the scores of a sweep; if they are wanted `everywhere`, no threshold was requested.

    Raise MetricError if a score that was named is undefined, or cannot be updated and is wanted everywhere.
    """
    how: dict[str, Any] = {"weighted": weighted, "outside": outside}
    undefined = {} if wanted else {n: METRICS[n].undefined(weighting="pointwise", **how) for n in DEFAULT}
    names = [name for name in DEFAULT if undefined[name] is None] if wanted is None else wanted
    found, left = resolve(names, beta=beta, **how)
    choice = Choice([], [], {name: Message(reason) for name, reason in (*undefined.items(), *left) if reason})
    named = {str(known_as(each)) if isinstance(each, str) else each.name for each in wanted or ()}
    for metric in found:
        reason = why_not_kept(metric, weighted=weighted)
        if reason is None:
            choice.kept.append(metric)
        elif not everywhere:
            choice.others.append(metric)
        elif metric.name in named:
            raise MetricError(f"{metric.name} {NOT_KEPT.format(reason)}. Pass {AT_SOME}")
        else:
            choice.not_computed[metric.name] = Message(f"it {NOT_KEPT.format(reason)}; pass {AT_SOME}")
    return choice


Points = NDArray[np.int64]

#: Points that are scored at once: what a formula leaves on its way stays in a core's cache.
POINTS_AT_ONCE = 1 << 15


@dataclass(frozen=True, eq=False)
class Curve:
    """Scores by point: that of no link first, then that of each level used, which is at its score."""

    thresholds: Floats  #: of each point; the first is infinite
    kept: Kept
    metrics: Sequence[Metric]
    weighted: bool = False  #: whether items have weights

    def __len__(self) -> int:
        return int(self.thresholds.size)

    @property
    def names(self) -> list[str]:
        """The figures of clusters, and the scores."""
        return [*COUNTED, *(metric.name for metric in self.metrics)]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a score, or a figure of the clusters, at every point."""
        if name == "threshold":
            return self.thresholds
        return self.kept.sums[name] if name in COUNTED else self.scores(self._metric(name))

    def scores(self, metric: Metric) -> Floats:
        """Return a score at every point, computed at each call, as scores take more memory than their sums."""
        found: Floats = buffers.empty(len(self), np.float64)

        def score(start: int, stop: int) -> None:
            found[start:stop] = score_of(metric, self.kept.take(slice(start, stop)))

        with Pool() as pool:
            pool.map(score, *zip(*blocks(len(self), POINTS_AT_ONCE), strict=True))
        return found

    def figures(self, name: str, points: Points) -> NDArray[Any]:
        """Return a score, or a figure of the clusters, at some points."""
        if name in COUNTED:
            return self.kept.sums[name][points].astype(np.int64)
        return score_of(self._metric(name), self.kept.take(points))

    def _metric(self, name: str) -> Metric:
        return next(metric for metric in self.metrics if metric.name == name)

    def at(self, point: int, *names: str) -> dict[str, Any]:
        """Return scores and figures of a point, all if none is named, as plain numbers."""
        return {name: self.figures(name, np.array([point])).item() for name in names or self.names}

    def thinned(self, limit: int | None) -> Points:
        """Return at most `limit` points: the ends, the best and the worst of each score, and others between them.

        The others are as far from each other as the scores change, so that no part of the curve is lost.
        """
        n = len(self)
        if limit is None or n <= limit:
            return np.arange(n)
        ends, way = {0, n - 1}, np.arange(n, dtype=np.float64)
        way /= max(1, n - 1)
        for metric in self.metrics:
            values = self[metric.name]
            ends |= {int(np.argmax(values)), int(np.argmin(values))}
            _go_on(way, values)
        must = np.array(sorted(ends))[: max(limit, 0)]
        for wanted in (limit - must.size, (limit - must.size) // 2, 0):
            even = np.searchsorted(way, np.linspace(0.0, way[-1], max(wanted, 0)))
            points = np.union1d(must, np.minimum(even, n - 1))
            if points.size <= limit:
                break
        return points.astype(np.int64)


def _go_on(way: Floats, values: Floats) -> None:
    """Add how much a score has changed up to each point, as a share of all that it changes."""
    cuts = blocks(values.size - 1, POINTS_AT_ONCE)
    steps = [float(np.abs(np.diff(values[start : stop + 1])).sum()) for start, stop in cuts]
    whole, before = sum(steps), 0.0
    for (start, stop), step in zip(cuts, steps, strict=True):
        if whole > 0:
            some = np.cumsum(np.abs(np.diff(values[start : stop + 1])))
            way[start + 1 : stop + 1] += (before + some) / whole
        before += step
