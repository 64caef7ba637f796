"""Scores at every threshold: the curve, its best points, and the costliest merges."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import Message, MetricError, OptionError, arg, quoted
from fastbcubed.inputs.arrays import from_numpy
from fastbcubed.inputs.link_clusters import as_typed
from fastbcubed.metrics.entropy import entropy
from fastbcubed.metrics.metric import SIGNS, Metric, f_measure, meets, rounding
from fastbcubed.metrics.pairs import pairs
from fastbcubed.metrics.registry import METRICS, computed_as, known_as, resolve
from fastbcubed.render.number_formats import counted, score_text
from fastbcubed.results.items import AlignedItems, without_noise
from fastbcubed.results.notices import NOTE
from fastbcubed.results.table import Table
from fastbcubed.runtime import buffers
from fastbcubed.runtime.arguments import as_several, is_one_of
from fastbcubed.runtime.expressions import Expression, is_expression, parse_bound, parse_expression
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.suggestions import did_you_mean
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.sweep_links.merge_tree import Effects, joining_places
from fastbcubed.types import Floats

#: Kinds of pairs (true and false positives and negatives) and of entropies, in the order in which formulas take them.
PAIRS, OF_ENTROPIES = ("tp", "fp", "fn", "tn"), ("true", "pred", "true_given_pred", "pred_given_true")
#: Entropy scores that are updated at every threshold.
ENTROPIES = (
    "cluster_entropy",
    "class_entropy",
    "variation_of_information",
    "homogeneity",
    "completeness",
    "v_measure",
)

#: The default scores of a sweep; those that are undefined for the input are left out.
DEFAULT = (
    "precision", "recall", "f1", "over_merge_rate", "under_merge_rate", "pair_precision", "pair_recall", "pair_f1",
    "rand", "adjusted_rand", "elm_precision", "elm_recall", "elm_f1", "homogeneity", "completeness", "v_measure",
    "variation_of_information",
)  # fmt: skip
#: Why a score is known only at requested thresholds, and how to request it.
NOT_KEPT, AT_SOME = (
    "cannot be updated at every threshold: {}",
    f"{arg('thresholds', ...)} to compute it at named thresholds",
)
#: Figures of the clusters, which every curve has.
COUNTED = ("clusters", "largest", "singletons")


@dataclass(frozen=True, eq=False)
class Kept:
    """The sums behind scores by point of the curve, the weight of all scored items, and beta."""

    sums: Mapping[str, NDArray[Any]]
    total: float
    beta: float = 1.0
    whole: Kept | None = None  #: the sums of all points, if these are a selection

    def take(self, points: slice | NDArray[np.int64]) -> Kept:
        """Return the sums at these points."""
        return Kept(_Taken(self.sums, points), self.total, self.beta, self.whole or self)

    @cached_property
    def n_pairs(self) -> float:
        """The number or total weight of all pairs."""
        if self.whole is not None:
            return self.whole.n_pairs
        first = self.take(slice(0, 1))
        return float(sum(number[0] for number in first.pair_numbers))

    def mean(self, name: str) -> Floats:
        """Return the mean over items of a sum, by point."""
        return np.asarray(self.sums[name] / self.total)

    def rest(self, name: str) -> Floats:
        """Return 1 minus the mean over items of a sum, by point."""
        return 1.0 - self.mean(name)

    def amount(self, name: str) -> NDArray[Any]:
        """Return the number or weight of pairs of a kind, by point; unless stored, fn and tn follow from tp and fp."""
        whole, before = {"fn": ("all_right", "tp"), "tn": ("all_wrong", "fp")}.get(name, ("", ""))
        return self.sums[name] if whole not in self.sums else self.sums[whole] - self.sums[before]

    @property
    def pair_numbers(self) -> list[Floats]:
        """The numbers or weights of tp, fp, fn and tn pairs, each by point."""
        return [self.amount(name).astype(np.float64) for name in PAIRS]

    @property
    def pairs(self) -> list[Floats]:
        """The shares of tp, fp, fn and tn in all pairs, each by point; products of shares cannot overflow."""
        return [each / (self.n_pairs or 1.0) for each in self.pair_numbers]


class _Taken(Mapping[str, NDArray[Any]]):
    """Sums at selected points of a curve; a sum that is the same at all points remains a single value."""

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
    """The formula of a score that is updated at every threshold, and its family of sums."""

    family: str
    formula: Callable[[Kept], Floats]


def _of_pairs(metric: Metric) -> KeptScore:
    """Return how to compute a pair score: from numbers of pairs if it is unbounded, else from shares of all pairs."""

    def score(kept: Kept) -> Floats:
        tp, fp, fn, tn = kept.pair_numbers if metric.high == math.inf else kept.pairs
        return np.asarray(metric.of_sums({"pairs": (tp, fp, fn, tn), "wrong pairs": (fp, fn)}), np.float64)

    return KeptScore("pairs", score)


def _of_entropies(metric: Metric) -> KeptScore:
    """Return how to compute a score from the entropies of the true and predicted clusters."""
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
    """Return the family of sums behind a score; None if the score cannot be updated at every threshold."""
    kept = KEPT.get(metric.alias_of or metric.name)
    if kept is not None:
        return kept.family
    families = {family_of(need) for need in metric.needs} if metric.combine is not None else {None}
    return families.pop() if len(families) == 1 else None


def why_not_kept(metric: Metric, *, weighted: bool) -> str | None:
    """Return why a score cannot be updated at every threshold; None if it can."""
    family = family_of(metric)
    if family is None:
        return "it is not a sum that can be updated when clusters merge"
    if weighted and family == "elm":
        return "with weights it differs between items that share both clusters"
    return None


def score_of(metric: Metric, kept: Kept) -> Floats:
    """Return a score at every point of these sums."""
    own = KEPT.get(metric.alias_of or metric.name)
    if own is not None:
        return np.asarray(own.formula(kept))
    assert metric.combine is not None
    return np.asarray(metric.combine({need.name: score_of(need, kept) for need in metric.needs}, kept.beta))


def as_given(metrics: Iterable[str | Metric]) -> list[Any]:
    """Return scores as `evaluate` takes them: names of known scores, formulas, and metrics declared by the user."""
    lifted = (m.formula if isinstance(m, Metric) and m.family == "own" else m for m in metrics)
    return [m.name if isinstance(m, Metric) and m.name in METRICS else m for m in lifted]


class Choice(NamedTuple):
    """Scores at every threshold, scores at requested thresholds only, and omitted scores with the reasons."""

    kept: list[Metric]
    others: list[Metric]
    not_computed: dict[str, str]


def choose_scores(
    wanted: Sequence[str | Metric] | None, *, weighted: bool, outside: bool, beta: float, everywhere: bool
) -> Choice:
    """Return the scores of a sweep; `everywhere` means that no thresholds were requested.

    Raise MetricError if a named score is undefined, or cannot be updated and no thresholds were requested.
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

#: Points that are scored at once, so that the intermediate arrays of a formula stay in a core's cache.
POINTS_AT_ONCE = 1 << 15


@dataclass(frozen=True, eq=False)
class Curve:
    """Scores by point: the first point uses no link, and each further one is at the score of a level of merges."""

    thresholds: Floats  #: the threshold of each point; the first is infinite
    kept: Kept
    metrics: Sequence[Metric]
    weighted: bool = False  #: whether items have weights

    def __len__(self) -> int:
        return int(self.thresholds.size)

    def until(self, n: int) -> Curve:
        """Return the curve of the first n points."""
        if n == len(self):
            return self
        return replace(self, thresholds=self.thresholds[:n], kept=self.kept.take(slice(n)))

    @property
    def names(self) -> list[str]:
        """Names of the figures of clusters and of the scores."""
        return [*COUNTED, *(metric.name for metric in self.metrics)]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a score, a figure of the clusters, or the threshold, at every point."""
        if name == "threshold":
            return self.thresholds
        return self.kept.sums[name] if name in COUNTED else self.scores(self.metric(name))

    def scores(self, metric: Metric) -> Floats:
        """Return a score at every point, computed on each call because scores take more memory than sums."""
        found: Floats = buffers.empty(len(self), np.float64)

        def score(start: int, stop: int) -> None:
            found[start:stop] = score_of(metric, self.kept.take(slice(start, stop)))

        with Pool() as pool:
            pool.map(score, *zip(*blocks(len(self), POINTS_AT_ONCE), strict=True))
        return found

    def figures(self, name: str, points: Points) -> NDArray[Any]:
        """Return a score, or a figure of the clusters, at these points."""
        if name in COUNTED:
            return self.kept.sums[name][points].astype(np.int64)
        return score_of(self.metric(name), self.kept.take(points))

    def columns(self, points: Points) -> dict[str, pa.Array]:
        """Return columns of the threshold, the figures of clusters and the scores at these points."""
        figures = {name: from_numpy(self.figures(name, points)) for name in self.names}
        return {"threshold": from_numpy(self.thresholds[points]), **figures}

    def metric(self, name: str) -> Metric:
        """Return a score of the curve by name."""
        return next(metric for metric in self.metrics if metric.name == name)

    def at(self, point: int, *names: str) -> dict[str, Any]:
        """Return the named scores and figures at one point, or all of them, as plain numbers."""
        return {name: self.figures(name, np.array([point])).item() for name in names or self.names}

    def thinned(self, limit: int | None) -> Points:
        """Return at most `limit` points: both ends, the best and the worst of each score, and others between them.

        The points between are spaced evenly by the change in scores, so no part of the curve is lost.
        """
        n = len(self)
        if limit is None or n <= limit:
            return np.arange(n)
        ends, way = {0, n - 1}, np.arange(n, dtype=np.float64)
        way /= max(1, n - 1)
        for metric in self.metrics:
            values = self[metric.name]
            ends.add(first_highest(values))
            ends.add(first_highest(np.negative(values, out=values)))
            _go_on(way, values)
        must = np.array([0, n - 1, *sorted(ends - {0, n - 1})])[: max(limit, 0)]
        for wanted in (limit - must.size, (limit - must.size) // 2, 0):
            even = np.searchsorted(way, np.linspace(0.0, way[-1], max(wanted, 0)))
            points = np.union1d(must, np.minimum(even, n - 1))
            if points.size <= limit:
                break
        return points.astype(np.int64)


class StoredCurve(Curve):
    """The curve of a loaded sweep, whose scores were saved at every point."""

    def scores(self, metric: Metric) -> Floats:
        """Return a score at every point."""
        return np.array(self.kept.sums[metric.name])

    def figures(self, name: str, points: Points) -> NDArray[Any]:
        """Return a score, or a figure of the clusters, at these points."""
        return self.kept.sums[name][points]


def _go_on(way: Floats, values: Floats) -> None:
    """Add to `way` how much a score has changed up to each point, as a share of its total change."""
    cuts = blocks(values.size - 1, POINTS_AT_ONCE)
    steps = [float(np.abs(np.diff(values[start : stop + 1])).sum()) for start, stop in cuts]
    whole, before = sum(steps), 0.0
    for (start, stop), step in zip(cuts, steps, strict=True):
        if whole > 0:
            some = np.cumsum(np.abs(np.diff(values[start : stop + 1])))
            way[start + 1 : stop + 1] += (before + some) / whole
        before += step


class Condition(NamedTuple):
    """A condition on a score, a figure of the clusters, or the threshold."""

    name: str
    sign: str
    value: float

    def holds(self, values: Any) -> Any:
        """Return where values meet the condition, up to rounding; thresholds, which are not computed, exactly."""
        if self.name == "threshold":
            return SIGNS[self.sign][0](values, self.value)
        return meets(values, self.sign, self.value)

    def __str__(self) -> str:
        return f"{self.name} {self.sign} {self.value:g}"


def as_conditions(
    where: str | Iterable[str] | None, names: Collection[str], *, weighted: bool = False
) -> list[Condition]:
    """Return the conditions in strings such as "a >= 1 and b < 2"; `names` are the names that they may contain.

    Examples
    --------
    >>> [str(each) for each in as_conditions("precision >= 0.98 and largest<=500", ["precision", "largest"])]
    ['precision >= 0.98', 'largest <= 500']
    """
    if where is None:
        return []
    texts = as_several(where)
    if wrong := [text for text in texts if not isinstance(text, str)]:
        raise OptionError(
            f"{arg('where')} must be conditions such as 'precision >= 0.98', not {quoted(wrong[0])}"
        )
    parts = [part for text in texts for part in re.split(r"\s+and\s+|&", text)]
    return [_condition(part, names, weighted) for part in parts]


def _condition(text: str, names: Collection[str], weighted: bool) -> Condition:
    try:
        name, sign, value = parse_bound(text)
    except ValueError as error:
        wrong = f"needs numbers such as 0.98 or 1,000, not {quoted(error.args[0])}" if error.args else (
            f'must be a condition such as "precision >= 0.98", or several joined by "and", not {quoted(text.strip())}'
        )  # fmt: skip
        raise OptionError(f"{arg('where')} {wrong}") from None
    known = name if name in names else computed_as(name, names)
    if known is None:
        raise OptionError(
            f"there is no {quoted(name)} to put a condition on; there are {', '.join(names)}."
            f"{how_to_have(name, names, weighted)}"
        )
    return Condition(known, sign, value)


def how_to_have(name: str, names: Collection[str], weighted: bool) -> str:
    """Return how to request a score that a curve does not have, or why no curve can have it."""
    metric = METRICS.get(str(known_as(name)))
    if metric is None:
        return f"{did_you_mean(name, names)} Name a score in {arg('metrics', ...)} to have it"
    reason = why_not_kept(metric, weighted=weighted)
    if reason is None:
        return f" Name {metric.name} in {arg('metrics', ...)} to have it"
    return (
        f" {metric.name} {NOT_KEPT.format(reason)}, so no threshold can be chosen by it. Choose by another "
        f"score, or pass {arg('thresholds', ...)} and {metric.name} in {arg('metrics', ...)}, and compare its "
        "values in the points"
    )


#: The length of text up to which a threshold is not shortened.
SHORT = 6
#: How much worse a score, or by what share of it a cost, may be at a threshold that counts as good as the best.
AS_GOOD = 0.005


@dataclass(frozen=True)
class Best:
    """The threshold at which a score is best.

    Attributes
    ----------
    score : str
        The requested score or cost.
    value : float
        The value of the score or cost at the threshold.
    threshold : float
        The strongest threshold with the best value. The threshold is the score of a link, or infinite if it is best to
        use no links or only links with infinite scores.
    until : float or None
        The next weaker score at which clusters merge, or None for the weakest threshold. All thresholds between
        `threshold` and `until` give the same clusters.
    figures : dict
        All columns of the curve at the threshold.
    where : str
        The conditions that the threshold meets.
    strongest : bool
        Whether no link is stronger than the threshold.
    shown, shown_until : str
        `threshold` and `until` in text form, with few digits; all thresholds between the texts give the same
        clusters.
    as_good : tuple of float
        The weakest and the strongest threshold between which all thresholds are about as good: they meet the
        conditions, and their scores are at most 0.005 (their costs at most 0.5 %) worse than the best value.
    shown_as_good : tuple of str
        The two thresholds of `as_good`, in text form.
    """

    score: str
    value: float
    threshold: float
    until: float | None
    figures: Mapping[str, Any]
    where: str = ""
    shown: str = ""
    shown_until: str = ""
    strongest: bool = False
    as_good: tuple[float, float] = (math.inf, math.inf)
    shown_as_good: tuple[str, str] = ("", "")

    def __repr__(self) -> str:
        return f"{self.sentence}\n{self.range}"

    @property
    def sentence(self) -> str:
        """The sentence on the best threshold and its scores."""
        others = [n for n in ("precision", "recall", "f1") if n in self.figures and n != self.score]
        told = ", ".join(f"{name} {score_text(self.figures[name])}" for name in others)
        where = f", where {self.where}" if self.where else ""
        return (
            f"{self.score} is {self._how} {self._at}{where}: {score_text(self.value)}"
            f"{f' ({told})' if told else ''}, with {counted(self.figures['clusters'], 'cluster')}, the "
            f"largest of {counted(self.figures['largest'], 'item')}."
        )

    @property
    def _how(self) -> str:
        return "lowest" if is_expression(self.score) else "best"

    @property
    def _at(self) -> str:
        return "with no link at all" if self._no_link else f"at threshold {self.shown}"

    @property
    def _no_link(self) -> bool:
        """Whether all items are singletons; an infinite threshold may also use links with infinite scores."""
        return bool(np.isinf(self.threshold)) and self.figures["largest"] <= 1

    @property
    def range(self) -> str:
        """The sentence on other thresholds that are as good, and on an end of the curve."""
        weakest, strongest = self.shown_as_good
        if weakest != strongest:
            by = f"{100 * AS_GOOD:g} %" if is_expression(self.score) else f"{AS_GOOD:g}"
            text = f"Any threshold from {weakest} to {strongest} is as good, to within {by}."
        elif self.until is None:
            text = "No weaker threshold joins more."
        elif self._no_link:
            text = f"The first clusters are joined at {self.shown_until}."
        else:
            text = f"Any threshold from there to just before {self.shown_until} gives the same clusters."
        return f"{text} {self.end}".strip()

    @property
    def end(self) -> str:
        """The caution that the threshold is at an end of the curve; empty otherwise."""
        if self.until is None and self.figures["clusters"] > 1:
            return "It is at the weak end of the curve: the best may lie beyond the given links."
        if self.strongest and not self._no_link and self.until is not None:
            return (
                "It is at the strong end of the curve: no link is stronger, but a link score that separates "
                "these links may do better."
            )
        return ""

    @property
    def notes(self) -> list[dict[str, Any]]:
        """A note that the threshold is at an end of the curve; an empty list otherwise."""
        if not self.end:
            return []
        message = f"{self.score} is {self._how} {self._at}. {self.end}"
        return [{"code": "best-at-end", "level": NOTE, "message": message, "score": self.score}]

    def to_dict(self) -> dict[str, Any]:
        """Return the score, the threshold and the figures as plain values."""
        return {
            "score": self.score, "value": self.value, "threshold": self.threshold, "until": self.until,
            "as_good": list(self.as_good), "where": self.where or None, **self.figures,
        }  # fmt: skip


def shown(threshold: float, gap: float = 0.0, *, up: bool = False) -> str:
    """Return a threshold as short text such as 0.9, less than half of `gap` below it or, if `up`, above it.

    >>> shown(0.9), shown(3.0), shown(float("inf"))
    ('0.9', '3', 'inf')
    >>> shown(0.8882696043893098, 0.0004), shown(0.8882696043893098, 0.0004, up=True), shown(0.8888, 1.0)
    ('0.8882', '0.8883', '0.8888')
    """
    threshold = float(threshold)
    exact = as_typed(threshold)
    if len(exact) <= SHORT or not 1e-15 < abs(threshold) < 1e15:
        return exact
    number = Decimal(exact)
    for digits in range(len(exact)):
        near = number.quantize(Decimal(1).scaleb(-digits), ROUND_CEILING if up else ROUND_FLOOR)
        if abs(near - number) < gap / 2:
            return min(f"{near + 0:f}", exact, key=len)
    return exact


def first_highest(values: Floats, least: float = 1.0) -> int:
    """Return the first point with the highest value, up to rounding errors of this value or, if larger, of `least`.

    >>> first_highest(np.array([0.5, 0.6666666666666666, 0.6666666666666667]))
    1
    """
    most = np.fmax.reduce(values)
    return int(np.argmax(values >= most - rounding(most, least)))


class BestPoint(NamedTuple):
    """The point where a score is best, or a cost lowest; the one with the strongest threshold if several are equal."""

    point: int
    name: str
    conditions: list[Condition]
    values: Floats  #: values by point, higher ones better; -inf where conditions are not met
    is_cost: bool

    @property
    def as_good(self) -> tuple[int, int]:
        """The weakest and the strongest point of the range around the best point in which all points are as good."""
        best = self.values[self.point]
        worse = self.values < best - AS_GOOD * (abs(best) if self.is_cost else 1.0)
        weaker, stronger = worse[self.point :], worse[self.point :: -1]
        ends = (int(np.argmax(side)) - 1 if side.any() else side.size - 1 for side in (weaker, stronger))
        return self.point + next(ends), self.point - next(ends)


def best_point(curve: Curve, name: str, where: str | Iterable[str] | None) -> BestPoint:
    """Return the point where a score is best, or a cost lowest, among the finite values that meet the conditions."""
    cost = cost_of(curve, name)
    known = known_score(curve, name) if cost is None else cost.text
    conditions = as_conditions(where, ["threshold", *curve.names], weighted=curve.weighted)
    allowed = np.ones(len(curve), np.bool_)
    for each in conditions:
        allowed &= each.holds(curve[each.name])
    if not allowed.any():
        raise OptionError(
            f"no threshold has {' and '.join(map(str, conditions))}. {_nearest(curve, conditions)}"
        )
    values = curve[known] if cost is None else cost.of(partial(_figures, curve))
    allowed &= np.isfinite(values)
    if not allowed.any():
        where_said = f" that has {' and '.join(map(str, conditions))}" if conditions else ""
        raise OptionError(
            f"{known} is undefined or infinite at every threshold{where_said}; name another score or cost"
        )
    if cost is not None or METRICS[known].best == "lower":
        np.negative(values, out=values)
    values[~allowed] = -np.inf
    point = first_highest(values, least=1.0 if cost is None else 0.0)  # costs have no common scale
    return BestPoint(point, known, conditions, values, cost is not None)


def cost_of(curve: Curve, text: str) -> Expression | None:
    """Return the cost that an expression such as "5*pair_fp + pair_fn" defines; None for the name of a score."""
    if not is_expression(text) or text in curve.names:
        return None
    cost = parse_expression(text, arg("score"))
    for name in cost.names:
        if _source(curve, name) is None:
            raise MetricError(
                f"the curve has no {quoted(name)}; a cost may use {', '.join(curve.names)}."
                f"{how_to_have(name, curve.names, curve.weighted)}"
            )
    if not cost.names:
        raise OptionError(f"{arg('score')} is the same at every threshold: {quoted(text)} names no score")
    return cost


def value_at(curve: Curve, name: str, point: int) -> float:
    """Return the value of a score or a cost at a point."""
    cost = cost_of(curve, name)
    if cost is None:
        return float(curve.at(point, name)[name])
    return cost.of(partial(_figures, curve, points=np.array([point]))).item()


def _source(curve: Curve, name: str) -> str | Metric | None:
    """Return the column that a name in a cost means, or a score that its sums give; None if there is neither."""
    if name in curve.names:
        return name
    if (known := computed_as(name, curve.names)) is not None:
        return known
    metric, families = METRICS.get(str(known_as(name))), {family_of(each) for each in curve.metrics}
    if metric is None or isinstance(curve, StoredCurve) or family_of(metric) not in families - {None}:
        return None
    return metric


def _figures(curve: Curve, name: str, points: Points | None = None) -> NDArray[Any]:
    """Return the values of a name in a cost, at these points or at all points."""
    source = _source(curve, name)
    assert source is not None
    if isinstance(source, str):
        return curve[source] if points is None else curve.figures(source, points)
    return curve.scores(source) if points is None else score_of(source, curve.kept.take(points))


def known_score(curve: Curve, name: str) -> str:
    """Return the name under which the curve has this score; raise MetricError if it does not."""
    names = [metric.name for metric in curve.metrics]
    if is_one_of(name, (*COUNTED, "threshold")):
        raise MetricError(f"{name!r} has no best value; put a condition on it with {arg('where', ...)}")
    known = name if is_one_of(name, names) else computed_as(name, names) if isinstance(name, str) else None
    if known is None:
        raise MetricError(
            f"the curve has no score {quoted(name)}; it has {', '.join(names) or 'none that is known everywhere'}."
            f"{how_to_have(name, names, curve.weighted) if isinstance(name, str) else ''}"
        )
    if METRICS[known].best == "neither":
        raise MetricError(f"{known} has no direction; name a score that has a best value")
    return known


def _nearest(curve: Curve, conditions: list[Condition]) -> str:
    """Return a sentence on the closest value to each condition that no threshold meets."""
    told = []
    for each in conditions:
        values: NDArray[np.float64] = curve[each.name].astype(np.float64)
        if not each.holds(values).any():
            most = values.max() if each.sign[0] == ">" else values.min()
            told.append(
                f"{each.name} is {'at most' if each.sign[0] == '>' else 'at least'} {score_text(most)}"
            )
    return f"{'; '.join(told)}." if told else "Each can be met, but not all together."


#: Merges that are sorted at once; only the first ones of each block are kept.
MERGES_AT_ONCE = 1 << 18
#: The columns by which merges are ordered, and the sign that puts the largest effects first.
ORDERS = {"f1_change": 1.0, "precision_change": 1.0, "recall_change": -1.0}


def list_merges(
    sweep: Any, effects: Effects, order_by: str | None, limit: int | None, point: int | None
) -> Table:
    """Return the merges with the largest effects first, of those used at a point of the curve or of all."""
    order_by = "f1_change" if order_by is None else order_by
    if not is_one_of(order_by, ORDERS):
        raise OptionError(f"order_by must be one of {', '.join(ORDERS)}, not {quoted(order_by)}")
    rows = sweep._placed.rows
    first = len(sweep._curve) - sweep.tree.n_levels  # the point of the first level
    used = sweep.tree.n_levels if point is None else point - first + 1
    heads = np.flatnonzero(effects.merged & (rows.levels < used))

    def in_order(some: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[str, Floats]]:
        changes = _changes(sweep, effects, some, rows.levels[some] + first)
        chosen = np.lexsort((some, ORDERS[order_by] * changes[order_by]))[:limit]
        return some[chosen], {name: values[chosen] for name, values in changes.items()}

    cuts = blocks(heads.size, MERGES_AT_ONCE)  # changes of all merges would need too much memory
    heads, changes = in_order(np.concatenate([in_order(heads[start:stop])[0] for start, stop in cuts]))
    places = sweep._placed.places[heads]
    columns = _joined(sweep, places)
    sizes, parts = _sizes(sweep, places, sweep.tree.levels[places] + 1, with_parts=True)
    columns |= {"n_clusters": from_numpy(parts), "n_items": from_numpy(sizes)}
    return Table(pa.table(columns | {name: from_numpy(values) for name, values in changes.items()}))


def _changes(
    sweep: Any, effects: Effects, heads: NDArray[np.int64], points: NDArray[np.integer]
) -> dict[str, Floats]:
    """Return by how much each of these merges changes the overall scores, at the point of its level."""
    rows, at = sweep._placed.rows, sweep._curve.kept.take(points)
    precision, recall = -effects.over[heads] / rows.total, effects.under[heads] / rows.total
    p, r = at.rest("over"), at.rest("under")
    before = f_measure(p - precision, r - recall)
    return {
        "precision_change": precision,
        "recall_change": recall,
        "f1_change": np.asarray(f_measure(p, r) - before),
    }


def list_weakest_links(sweep: Any, effects: Effects, limit: int | None) -> Table:
    """Return the true clusters of several items, those completed at the weakest thresholds first."""
    placed, tree, items = sweep._placed, sweep.tree, sweep._alignment.pred_rows
    sizes = placed.rows.true_sizes
    codes = np.flatnonzero(sizes > 1)
    levels = placed.rows.levels[effects.whole_at[codes]]
    is_whole = levels < tree.n_levels
    chosen = np.lexsort((codes, -sizes[codes], -levels, ~is_whole))[:limit]
    codes, is_whole = codes[chosen], is_whole[chosen]
    ends, places = np.full((2, sizes.size), -1), np.full(codes.size, -1)
    kernels.merge_tree.find_ends(placed.rows.codes, *ends)
    members = placed.aligned[ends[:, codes]]
    pairs = members if items is None else items[members]
    with Pool() as pool:
        places[is_whole] = joining_places(tree, pairs[:, is_whole], pool)
    joined = _joined(sweep, places)
    columns: dict[str, Any] = {
        "cluster": _labels(sweep, members[0]),
        "n_items": from_numpy(sizes[codes]),
        **{name: joined[name] for name in ("threshold", "left", "right")},
    }
    return Table(pa.table(columns))


def _joined(sweep: Any, places: NDArray[np.integer]) -> dict[str, Any]:
    """Return columns about the links at these places, null for -1: score, both items, and sizes of their clusters."""
    tree, missing = sweep.tree, places < 0
    joined = tree.links[np.where(missing, 0, places)]
    levels = np.where(missing, 0, tree.levels[places])
    known = sweep._level_thresholds[levels] if tree.n_levels else np.zeros(places.size)
    columns: dict[str, Any] = {"threshold": from_numpy(known, missing)}
    sizes = {}
    for side in ("left", "right"):
        items = np.where(missing, 0, joined[side])
        columns[side] = _ids(sweep, items, missing)
        sizes[f"n_{side}"] = from_numpy(_sizes(sweep, sweep._place_of_item[items], levels)[0], missing)
    return columns | sizes


def heap_of(levels: NDArray[np.integer], top: int) -> NDArray[np.integer]:
    """Return a heap of maxima: levels, padded with `top`, are its leaves, and each parent is the higher of its two."""
    size = 1 << (levels.size - 1).bit_length()
    heap = np.full(2 * size, top, levels.dtype)
    heap[size : size + levels.size] = levels
    while size > 1:
        np.maximum(heap[size : 2 * size : 2], heap[size + 1 : 2 * size : 2], out=heap[size // 2 : size])
        size //= 2
    return heap


def _sizes(
    sweep: Any, places: NDArray[np.integer], levels: NDArray[np.integer], *, with_parts: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the size of the cluster around each place of the tree when all levels below the given one are used.

    If `with_parts`, also return the number of clusters that the last of these levels joined, at one step for each.
    """
    sizes, parts = np.empty(places.size, np.int64), np.empty(places.size * with_parts, np.int64)
    kernels.merge_tree.measure_stretches(sweep._highest, places, levels, sizes, parts)
    return sizes, parts


def _ids(sweep: Any, items: NDArray[np.integer], missing: NDArray[np.bool_]) -> pa.Array:
    """Return the ids of items, null where they are missing."""
    if sweep._alignment.truth.items is None:
        return from_numpy(items.astype(np.int64), missing)
    found = sweep.links.items.take(items)
    return found if not missing.any() else found.take(from_numpy(np.arange(items.size), missing))


def _labels(sweep: Any, rows: NDArray[np.integer]) -> pa.Array:
    """Return the labels of the true clusters of aligned rows, null for clusters that a policy made."""
    labels = AlignedItems(sweep._alignment).labels("true", rows.astype(np.int64))
    return without_noise(labels, sweep.policies, "true")
