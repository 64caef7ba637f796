"""Scores that are kept up at every threshold: their formulas, from the sums that `level_sums` gives.

Each is that of the same name in the registry, for arrays with an entry for each threshold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.errors import MetricError
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.rates import rate
from fastbcubed.metrics.registry import METRICS, known_as, resolve
from fastbcubed.runtime.cached import cached_property

Floats = NDArray[np.float64]
BITS = 1 / math.log(2)

#: Scores of a sweep unless others are asked for; those that are not defined for the input are left out.
DEFAULT = (
    "precision", "recall", "f1", "over_merge_rate", "under_merge_rate", "pair_precision", "pair_recall", "pair_f1",
    "rand", "adjusted_rand", "elm_precision", "elm_recall", "elm_f1", "homogeneity", "completeness", "v_measure",
    "variation_of_information",
)  # fmt: skip
#: What is said of a score that has to be asked for at single thresholds, and how.
NOT_KEPT, AT_SOME = (
    "cannot be kept up at every threshold: {}",
    "thresholds= to have it at those that you name",
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
        return float(sum(first.amount(name).astype(np.float64)[0] for name in ("tp", "fp", "fn", "tn")))

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
    def pairs(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Pairs together or apart on either side, as shares of all: products of weights might overflow."""
        counts = [self.amount(name).astype(np.float64) for name in ("tp", "fp", "fn", "tn")]
        tp, fp, fn, tn = (each / (self.n_pairs or 1.0) for each in counts)
        return tp, fp, fn, tn

    def told(self, whole: str, left: str) -> Floats:
        """Return the share of an entropy that the other side tells, all of it where there is none."""
        entropy = np.broadcast_to(self.sums[whole], self.sums[left].shape)
        return np.clip(1.0 - rate(self.sums[left], entropy, empty=0.0), 0.0, 1.0)


class _Taken(Mapping[str, NDArray[Any]]):
    """Some points of sums; what is the same at all points stays."""

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
    """A score that is kept up, and the family of sums that it is made of."""

    family: str
    formula: Callable[[Kept], Floats]


def _of_pairs(formula: Callable[[Floats, Floats, Floats, Floats], Floats]) -> KeptScore:
    return KeptScore("pairs", lambda kept: formula(*kept.pairs))


def _adjusted_rand(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return rate(2 * (tp * tn - fp * fn), (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn))


def _fowlkes_mallows(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return np.sqrt(rate(tp, tp + fp) * rate(tp, tp + fn))


def _v_measure(kept: Kept) -> Floats:
    h, c = kept.told("true", "true_given_pred"), kept.told("pred", "pred_given_true")
    return rate(2 * h * c, h + c, empty=0.0)


def _count(name: str) -> KeptScore:
    return KeptScore("pairs", lambda kept: kept.amount(name).astype(np.float64))


def _entropy(formula: Callable[[Kept], Floats]) -> KeptScore:
    return KeptScore("entropy", formula)


KEPT: dict[str, KeptScore] = {
    "precision": KeptScore("bcubed", lambda kept: kept.rest("over")),
    "recall": KeptScore("bcubed", lambda kept: kept.rest("under")),
    "over_merge_rate": KeptScore("bcubed", lambda kept: kept.mean("over")),
    "under_merge_rate": KeptScore("bcubed", lambda kept: kept.mean("under")),
    "elm_precision": KeptScore("elm", lambda kept: kept.rest("elm_over")),
    "elm_recall": KeptScore("elm", lambda kept: kept.rest("elm_under")),
    "pair_tp": _count("tp"),
    "pair_fp": _count("fp"),
    "pair_fn": _count("fn"),
    "pair_tn": _count("tn"),
    "pair_precision": _of_pairs(lambda tp, fp, fn, tn: rate(tp, tp + fp)),
    "pair_recall": _of_pairs(lambda tp, fp, fn, tn: rate(tp, tp + fn)),
    "pair_f1": _of_pairs(lambda tp, fp, fn, tn: rate(2 * tp, 2 * tp + fp + fn)),
    "rand": _of_pairs(lambda tp, fp, fn, tn: rate(tp + tn, tp + fp + fn + tn)),
    "adjusted_rand": _of_pairs(_adjusted_rand),
    "pair_jaccard": _of_pairs(lambda tp, fp, fn, tn: rate(tp, tp + fp + fn)),
    "pair_fowlkes_mallows": _of_pairs(_fowlkes_mallows),
    "mirkin": KeptScore("pairs", lambda kept: 2.0 * (kept.amount("fp") + kept.amount("fn"))),
    "cluster_entropy": _entropy(lambda kept: kept.mean("true_given_pred") * BITS),
    "class_entropy": _entropy(lambda kept: kept.mean("pred_given_true") * BITS),
    "variation_of_information": _entropy(
        lambda kept: (kept.mean("true_given_pred") + kept.mean("pred_given_true")) * BITS
    ),
    "homogeneity": _entropy(lambda kept: kept.told("true", "true_given_pred")),
    "completeness": _entropy(lambda kept: kept.told("pred", "pred_given_true")),
    "v_measure": _entropy(_v_measure),
}


def family_of(metric: Metric) -> str | None:
    """Return the family of sums that a score is made of; None if it cannot be kept up."""
    kept = KEPT.get(metric.alias_of or metric.name)
    if kept is not None:
        return kept.family
    families = {family_of(need) for need in metric.needs} if metric.combine is not None else {None}
    return families.pop() if len(families) == 1 else None


def why_not_kept(metric: Metric, *, weighted: bool) -> str | None:
    """Return why a score cannot be kept up at every threshold; None if it can."""
    family = family_of(metric)
    if family is None:
        return "it is no sum over what changes where clusters meet"
    if weighted and family == "elm":
        return "with weights it is not the same for all items that share both clusters"
    return None


def score_of(metric: Metric, kept: Kept) -> Floats:
    """Return a score that is kept up, at every threshold."""
    own = KEPT.get(metric.alias_of or metric.name)
    if own is not None:
        return np.asarray(own.formula(kept))
    assert metric.combine is not None
    return np.asarray(metric.combine({need.name: score_of(need, kept) for need in metric.needs}, kept.beta))


class Choice(NamedTuple):
    """The scores to keep up, those for the thresholds that were asked for, and those left out, with the reason."""

    kept: list[Metric]
    others: list[Metric]
    not_computed: dict[str, str]


def choose_scores(
    wanted: Sequence[str | Metric] | None, *, weighted: bool, outside: bool, beta: float, everywhere: bool
) -> Choice:
    """Return the scores of a sweep; if they are wanted `everywhere`, no threshold was asked for.

    Raise MetricError if a score that was named is not defined, or cannot be kept up and is wanted everywhere.
    """
    how: dict[str, Any] = {"weighted": weighted, "outside": outside}
    undefined = {} if wanted else {n: METRICS[n].undefined(weighting="pointwise", **how) for n in DEFAULT}
    names = [name for name in DEFAULT if undefined[name] is None] if wanted is None else wanted
    found, left = resolve(names, beta=beta, **how)
    choice = Choice([], [], {name: reason for name, reason in (*undefined.items(), *left) if reason})
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
            choice.not_computed[metric.name] = f"it {NOT_KEPT.format(reason)}; pass {AT_SOME}"
    return choice
