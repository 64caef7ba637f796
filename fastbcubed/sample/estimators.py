"""Estimators from sampled clusters: ratios of means, their errors, and each score as such a ratio.

A sampled cluster c that was drawn k times counts k times; m is the number of draws, and a bar is the mean over these.
With N_c and D_c of each cluster, the plain estimate is mean(N) / mean(D).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from math import inf
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fastbcubed.errors import MetricError
from fastbcubed.metrics.registry import FAMILIES, METRICS, known_as
from fastbcubed.metrics.score import Formula, Metric, f_measure, weight_of_precision, without_rounding
from fastbcubed.sample.cluster_sample import Drawn
from fastbcubed.types import Counts, Floats

B = TypeVar("B", Floats, float)


def _blend(of_precision: B, of_recall: B, alpha: float) -> B:
    """Return a mean of two denominators, of which equal ones have themselves, whatever alpha is."""
    return of_recall + alpha * (of_precision - of_recall)


class Ratio(NamedTuple):
    """Numerators and denominators of a score by cluster, and the largest possible numerators, if different."""

    numerator: Floats
    denominator: Floats
    most: Floats | None = None
    #: what a denominator of an F is blended from, and alpha: blended sums are exact where both have the same sum
    blended: tuple[Floats, Floats, float] | None = None

    @classmethod
    def of_f(cls, numerator: Floats, of_precision: Floats, of_recall: Floats, alpha: float) -> Ratio:
        """Return the ratio of an F, whose denominator is a mean of those of precision and recall."""
        return cls(
            numerator, _blend(of_precision, of_recall, alpha), blended=(of_precision, of_recall, alpha)
        )

    def means(self, draws: Counts) -> tuple[float, float]:
        """Return the means of numerator and denominator over draws."""
        m = int(draws.sum())

        def mean(values: Floats) -> float:
            return math.fsum((draws * values).tolist()) / m

        if self.blended is None:
            return mean(self.numerator), mean(self.denominator)
        of_precision, of_recall, alpha = self.blended
        return mean(self.numerator), _blend(mean(of_precision), mean(of_recall), alpha)


class Estimate(NamedTuple):
    """A score of the population: the estimate, its standard error, and the plain ratio."""

    value: float
    error: float
    unadjusted: float
    n_clusters: int  #: draws that say something of it
    df: float  #: degrees of freedom of the error
    effective: float  #: the effective number of draws
    ceiling: float  #: the plain ratio if all numerators were as large as can be


#: What each score is the ratio of, by name, given alpha = 1 / (1 + beta^2).
RATIOS: dict[str, Callable[[Drawn, float], Ratio]] = {
    "bcubed_precision_by_true_cluster": lambda c, _: Ratio(
        c.weight * (c.sums(_precision) / c.size), c.weight
    ),
    "bcubed_recall_by_true_cluster": lambda c, _: Ratio(c.weight * (c.sums(_recall) / c.size), c.weight),
    "pair_precision": lambda c, _: Ratio(c.weight * c.found, c.weight * c.linked),
    "pair_recall": lambda c, _: Ratio(c.weight * c.found, c.weight * c.pairs),
    "pair_f": lambda c, alpha: Ratio.of_f(c.weight * c.found, c.weight * c.linked, c.weight * c.pairs, alpha),
    "cluster_precision": lambda c, _: Ratio(
        c.weight * (c.n_items * c.hit), c.weight * c.pred_clusters, c.weight * c.n_items
    ),
    "cluster_recall": lambda c, _: Ratio(c.weight * c.hit, c.weight),
    "cluster_f": lambda c, alpha: Ratio.of_f(
        c.weight * (c.n_items * c.hit), c.weight * c.pred_clusters, c.weight * c.n_items, alpha
    ),
    "matching_rate": lambda c, _: Ratio(c.weight * c.size * (c.size > 1), c.weight * c.size),
    "mean_cluster_size": lambda c, _: Ratio(c.weight * c.size, c.weight),
}


def _precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return tp / (tp + fp)


def _recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return tp / (tp + fn)


def over_items(drawn: Drawn, formula: Formula, *, leave_one_out: bool) -> Ratio:
    """Return the ratio behind a mean over items: p |c| times the mean over the items of c, and p |c|."""
    sums = drawn.sums_of_others(formula) if leave_one_out else drawn.sums(formula)
    return Ratio(drawn.weight * sums, drawn.weight * drawn.size)


class _Linear(NamedTuple):
    """A plain estimate, by how much each cluster moves it relative to itself, and its relative adjustment."""

    plain: float
    moves: Floats
    adjustment: float


def estimate_ratio(ratio: Ratio, drawn: Drawn) -> Estimate:
    """Estimate a ratio of means.

        estimate = R [1 + 1 / (m - 1) mean(D_c / D (N_c / N - D_c / D))]        with R = N / D, N = mean(N_c) and so on
        error    = R sqrt(sum (N_c / N - D_c / D)^2 / (m (m - 1)))

    NaN where the mean of D is 0, as nothing was observed; the error is NaN of a single draw, and where R is 0.
    """
    found = _linear(ratio, drawn)
    return _estimate(found.plain, found.moves, found.adjustment, ratio, drawn)


def estimate_f(precision: Ratio, recall: Ratio, alpha: float, drawn: Drawn) -> Estimate:
    """Estimate F of two ratios that have the same denominators, by the delta method to the second order.

    With u = alpha F / P and v = (1 - alpha) F / R, of which u + v = 1, and x and y by how much a cluster moves P and R
    relative to themselves:

        estimate = F [1 + u adjustment(P) + v adjustment(R) + u v sum (x - y)^2 / (m (m - 1))]
        error    = F sqrt(sum (u x + v y)^2 / (m (m - 1)))
    """
    p, r = _linear(precision, drawn), _linear(recall, drawn)
    plain = float(f_measure(p.plain, r.plain, alpha))
    u = alpha * plain / p.plain if p.plain > 0 else 0.0
    v = (1 - alpha) * plain / r.plain if r.plain > 0 else 0.0
    moves = u * p.moves + v * r.moves
    curved = u * v * _variance(p.moves - r.moves, drawn)
    adjustment = u * p.adjustment + v * r.adjustment + (0.0 if math.isnan(curved) else curved)
    return _estimate(plain, moves, adjustment, precision, drawn)


def _linear(ratio: Ratio, drawn: Drawn) -> _Linear:
    m = int(drawn.draws.sum())
    numerator, denominator = ratio.means(drawn.draws)
    nothing = np.zeros(drawn.draws.size)
    if denominator == 0:
        return _Linear(math.nan, nothing, 0.0)
    if numerator == 0:
        return _Linear(0.0, nothing, 0.0)
    share = ratio.denominator / denominator
    moves = ratio.numerator / numerator - share
    adjustment = 0.0
    if m > 1:
        adjustment = drawn.left_to_draw * math.fsum((drawn.draws * share * moves).tolist()) / (m * (m - 1))
    return _Linear(numerator / denominator, moves, adjustment)


def _variance(moves: Floats, drawn: Drawn) -> float:
    """Return the variance of an estimate's mean influence over draws; NaN for a single draw."""
    m = int(drawn.draws.sum())
    if m == 1:
        return math.nan
    return drawn.left_to_draw * math.fsum((drawn.draws * moves**2).tolist()) / (m * (m - 1))


def _degrees_of_freedom(moves: Floats, drawn: Drawn) -> float:
    """Return those of a normal sample whose variance is as uncertain as this one (Satterthwaite), m - 1 at most.

    The relative variance of the sum of m squares x^2 is about sum x^4 / (sum x^2)^2 - 1 / m; with as many degrees of
    freedom, that of a normal sample is 2 / df. So a score of which a few draws tell most has few.

    >>> one_in_six = np.array([5.0, -1, -1, -1, -1, -1])  # 2 / (630 / 900 - 1 / 6)
    >>> draws = Drawn(np.ones(6, int), None, None, None, None, 6, 6)
    >>> round(_degrees_of_freedom(one_in_six, draws), 12)
    3.75
    """
    m = int(drawn.draws.sum())
    squares = math.fsum((drawn.draws * moves**2).tolist())
    if squares == 0:
        return m - 1.0
    uncertain = math.fsum((drawn.draws * moves**4).tolist()) / squares**2 - 1 / m
    return m - 1.0 if uncertain * (m - 1) <= 2 else 2 / uncertain


def _estimate(plain: float, moves: Floats, adjustment: float, ratio: Ratio, drawn: Drawn) -> Estimate:
    moves = without_rounding(moves)
    error = plain * math.sqrt(_variance(moves, drawn)) if plain > 0 else math.nan
    n_clusters = int(drawn.draws[ratio.denominator > 0].sum())
    most = ratio.denominator if ratio.most is None else ratio.most
    total, squares, best = (
        math.fsum((drawn.draws * each).tolist()) for each in (ratio.denominator, ratio.denominator**2, most)
    )
    return Estimate(
        plain * (1 + adjustment), error, plain, n_clusters, _degrees_of_freedom(moves, drawn),
        total * total / squares if total else 0.0, best / total if total else math.nan,
    )  # fmt: skip


__all__ = ["DESCRIPTIVE", "Estimable", "choose"]


class Estimable(NamedTuple):
    """A score that can be estimated: its range and estimator."""

    name: str
    low: float
    high: float
    estimate: Callable[[Drawn], Estimate]


#: What says how large true clusters are, rather than how good the prediction is.
DESCRIPTIVE = ("matching_rate", "mean_cluster_size")
RANGES = {"matching_rate": (0.0, 1.0), "mean_cluster_size": (1.0, inf)}
#: Scores that are estimated unless others are named.
DEFAULT = (
    "precision", "recall", "f1",
    "bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster", "bcubed_f1_by_true_cluster",
    "pair_precision", "pair_recall", "pair_f1",
    "cluster_precision", "cluster_recall", "cluster_f1",
    *DESCRIPTIVE,
)  # fmt: skip
#: F1 and the F of another beta, which comes with it where there is one.
F_OF_BETA = {
    "f1": "fbeta",
    "mean_f1": "mean_fbeta",
    "bcubed_f1_by_true_cluster": "bcubed_fbeta_by_true_cluster",
    "pair_f1": "pair_fbeta",
    "cluster_f1": "cluster_fbeta",
}
#: Scores that are one ratio for each alpha, and those that are an F of two of them.
F_RATIOS = {"pair": "pair_f", "cluster": "cluster_f"}
BY_CLASS = "bcubed_precision_by_true_cluster", "bcubed_recall_by_true_cluster"
#: The family of what describes the true clusters.
SIZES = "sizes"


def choose(names: Any, beta: float) -> tuple[list[Estimable], dict[str, str]]:
    """Return the scores to estimate, in the order given, and those of a family that cannot be, with the reason.

    >>> [each.name for each in choose(["pairs", "f1"], 2.0)[0]]
    ['pair_precision', 'pair_recall', 'pair_f1', 'pair_fbeta', 'f1', 'fbeta']
    """
    weight_of_precision(beta)  # raises for a beta that is none
    if names is None:
        names = DEFAULT
    elif isinstance(names, str) or not isinstance(names, Iterable):
        names = (names,)
    chosen: dict[str, Estimable] = {}
    left: dict[str, str] = {}
    for name in names:
        members = _members(name)
        for each in members:
            for known in (each, F_OF_BETA.get(each, "") if beta != 1 else ""):
                found = _estimable(known, beta)
                if found is not None:
                    chosen.setdefault(known, found)
                elif known and members == [name]:
                    raise MetricError(_why_not(known))
                elif known:
                    left[known] = "not told by a sample of true clusters"
    if not chosen:
        raise MetricError("metrics names no score that can be estimated; leave it out for the usual ones")
    roots = {name: METRICS[name].alias_of for name in chosen if name in METRICS}
    return [each for name, each in chosen.items() if roots.get(name) not in chosen], left


def _members(name: Any) -> list[str]:
    """Return a score, or the members of a family, by the names that they have here."""
    if not isinstance(name, str):
        raise MetricError(f"a score is named by a string, not {name!r}; formulas of one's own are not served")
    known = str(known_as(name))
    if known == SIZES:
        return list(DESCRIPTIVE)
    if known == "all":
        return [*(m for m in METRICS if m not in F_OF_BETA.values()), *DESCRIPTIVE]
    if known in FAMILIES:
        return [m.name for m in METRICS.values() if m.family == known and m.name not in F_OF_BETA.values()]
    return [known]


def _why_not(name: str) -> str:
    if name not in METRICS and name not in (*F_OF_BETA.values(), *RATIOS):
        return f"unknown score {name!r}; fastbcubed.estimate has {', '.join(DEFAULT)} by default"
    return (
        f"{name} cannot be estimated from a sample of true clusters. What can: means over items that take no true "
        f"negatives, such as jaccard_distance, and {', '.join(DEFAULT[3:])}"
    )


def _estimable(name: str, beta: float) -> Estimable | None:
    """Return a score that can be estimated; None for any other."""
    metric = METRICS.get(name)
    root = METRICS[metric.alias_of] if metric is not None and metric.alias_of else metric
    stem, _, kind = name.rpartition("_f")
    if name in RATIOS and name not in F_RATIOS.values():
        low, high = RANGES.get(name, (0.0, 1.0))
        return Estimable(name, low, high, lambda drawn: estimate_ratio(RATIOS[name](drawn, 0.5), drawn))
    if kind in ("1", "beta") and stem in F_RATIOS:
        alpha = weight_of_precision(beta if kind == "beta" else 1.0)
        ratio = RATIOS[F_RATIOS[stem]]
        return Estimable(name, 0.0, 1.0, lambda drawn: estimate_ratio(ratio(drawn, alpha), drawn))
    if name in ("bcubed_f1_by_true_cluster", "bcubed_fbeta_by_true_cluster"):
        alpha = weight_of_precision(beta if "fbeta" in name else 1.0)
        of_class = [RATIOS[each] for each in BY_CLASS]
        return Estimable(
            name, 0.0, 1.0, _f_of(lambda drawn: [make(drawn, alpha) for make in of_class], alpha)
        )
    if root is None:
        return None
    if _is_of_items(root):
        return Estimable(
            name, root.low, root.high, lambda drawn: estimate_ratio(_of_items(root, beta, drawn), drawn)
        )
    if root.name.endswith(("f1", "fbeta")) and len(root.needs) == 2 and all(map(_is_of_items, root.needs)):
        alpha = weight_of_precision(beta if root.name.endswith("fbeta") else 1.0)
        return Estimable(
            name, 0.0, 1.0, _f_of(lambda drawn: [_of_items(need, beta, drawn) for need in root.needs], alpha)
        )
    return None


def _is_of_items(metric: Metric) -> bool:
    """Return whether a score is a mean over items of a function of tp, fp and fn of each."""
    return metric.formula is not None and not (metric.uses_tn or metric.labelled_only or metric.covers_only)


def _of_items(metric: Metric, beta: float, drawn: Drawn) -> Ratio:
    formula = metric.at(beta).formula
    assert formula is not None
    return over_items(drawn, formula, leave_one_out=metric.leave_one_out)


def _f_of(ratios: Callable[[Drawn], list[Ratio]], alpha: float) -> Callable[[Drawn], Estimate]:
    def estimate(drawn: Drawn) -> Estimate:
        precision, recall = ratios(drawn)
        return estimate_f(precision, recall, alpha, drawn)

    return estimate
