"""Estimates from sampled clusters: ratios of means, their errors, and what each score is the ratio of.

A sampled cluster c that was drawn k times counts k times; m is the number of draws, and a bar is the mean over these.
With N_c and D_c of each cluster, the plain estimate is mean(N) / mean(D).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.metrics.metric import Formula
from fastbcubed.metrics.rates import f_measure
from fastbcubed.sampling.drawn import Drawn
from fastbcubed.uncertainty.intervals import without_rounding

Floats = NDArray[np.float64]


class Ratio(NamedTuple):
    """What a score is the ratio of, cluster by cluster; and the largest numerators there can be, if others."""

    numerator: Floats
    denominator: Floats
    most: Floats | None = None


class Estimate(NamedTuple):
    """A score of the population: the estimate, its standard error, and the plain ratio."""

    value: float
    error: float
    unadjusted: float
    n_clusters: int  #: draws that say something of it
    df: float  #: degrees of freedom of the error
    effective: float  #: as many draws of equal denominators would tell as much
    ceiling: float  #: the plain ratio if all numerators were as large as can be


#: What each score is the ratio of, by name, given alpha = 1 / (1 + beta^2).
RATIOS: dict[str, Callable[[Drawn, float], Ratio]] = {
    "bcubed_precision_by_true_cluster": lambda c, _: Ratio(
        c.weight * (c.sums(_precision) / c.size), c.weight
    ),
    "bcubed_recall_by_true_cluster": lambda c, _: Ratio(c.weight * (c.sums(_recall) / c.size), c.weight),
    "pair_precision": lambda c, _: Ratio(c.weight * c.found, c.weight * c.linked),
    "pair_recall": lambda c, _: Ratio(c.weight * c.found, c.weight * c.pairs),
    "pair_f": lambda c, alpha: Ratio(c.weight * c.found, c.weight * _blend(c.linked, c.pairs, alpha)),
    "cluster_precision": lambda c, _: Ratio(
        c.weight * (c.n_items * c.hit), c.weight * c.pred_clusters, c.weight * c.n_items
    ),
    "cluster_recall": lambda c, _: Ratio(c.weight * c.hit, c.weight),
    "cluster_f": lambda c, alpha: Ratio(
        c.weight * (c.n_items * c.hit), c.weight * _blend(c.pred_clusters, c.n_items, alpha)
    ),
    "matching_rate": lambda c, _: Ratio(c.weight * c.size * (c.size > 1), c.weight * c.size),
    "mean_cluster_size": lambda c, _: Ratio(c.weight * c.size, c.weight),
}


def _blend(of_precision: Floats, of_recall: Floats | float, alpha: float) -> Floats:
    """Return a mean of two denominators, of which equal ones have themselves, whatever alpha is."""
    return of_recall + alpha * (of_precision - of_recall)


def _precision(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return tp / (tp + fp)


def _recall(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return tp / (tp + fn)


def over_items(drawn: Drawn, formula: Formula, *, leave_one_out: bool) -> Ratio:
    """Return what a mean over items is the ratio of: p |c| times the mean over the items of c, and p |c|."""
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
    numerator, denominator = (math.fsum((drawn.draws * each).tolist()) / m for each in ratio[:2])
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
    """Return the variance of the mean over draws of what moves an estimate; NaN for a single draw."""
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
