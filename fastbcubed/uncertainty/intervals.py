"""Intervals from standard errors: quantiles of Student's t, on a scale on which a score cannot leave its range."""

from __future__ import annotations

import math
from functools import lru_cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from fastbcubed.errors import OptionError

#: From so many degrees of freedom on, an expansion about the normal quantile is exact to 1e-10.
MANY = 200
#: Differences and standard errors of at most this, beside the scores they are of (or beside 1), come from rounding.
ROUNDED = 1e-12


class Interval(NamedTuple):
    """A range that holds the score of the population, with the confidence that was asked for."""

    low: float
    high: float


def check_level(level: Any) -> float:
    """Return a confidence, or raise OptionError for what is none."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < float(level) < 1:
        raise OptionError(f"level is a confidence between 0 and 1, such as 0.95, not {level!r}")
    return float(level)


def without_rounding(value: Any, score: Any = 1.0) -> Any:
    """Return differences or standard errors of scores, 0 in place of those that come from rounding.

    >>> float(without_rounding(5.6e-17)), float(without_rounding(1e-9)), float(without_rounding(1e-9, 1e6))
    (0.0, 1e-09, 0.0)
    """
    return np.where(np.abs(value) <= ROUNDED * np.maximum(1.0, np.abs(score)), 0.0, value)[()]


def interval(score: float, error: float, *, n_units: int, level: float, low: float, high: float) -> Interval:
    """Return the interval of a score that goes from `low` to `high`, which may be infinite.

    It is symmetric on the scale that has no ends: log odds for a rate, the logarithm for an amount.

    >>> found = interval(0.9, 0.03, n_units=11, level=0.95, low=0.0, high=1.0)
    >>> round(found.low, 4), round(found.high, 4)  # log(9) -+ 2.2281 * 0.03 / (0.9 * 0.1)
    (0.8107, 0.9498)
    """
    if math.isnan(error) or math.isnan(score):
        return Interval(math.nan, math.nan)
    if without_rounding(error, score) == 0 or not low < score < high:
        return Interval(score, score)
    reach = t_quantile(level, n_units - 1) * error
    if math.isinf(low):
        return Interval(score - reach, score + reach)
    above = score - low
    if math.isinf(high):
        return Interval(*(low + _times_exp(above, step / above) for step in (-reach, reach)))
    odds = above / (high - score)
    step = reach * (high - low) / above / (high - score)
    found = (_times_exp(odds, each) for each in (-step, step))
    return Interval(*(low + (high - low) * _share(each) for each in found))


def _times_exp(value: float, power: float) -> float:
    """Return value * exp(power), infinite where it overflows."""
    return value * math.exp(power) if power < 700 else math.inf


def _share(odds: float) -> float:
    return 1.0 if math.isinf(odds) else odds / (1.0 + odds)


@lru_cache(maxsize=1024)
def t_quantile(level: float, df: int) -> float:
    """Return how far from 0 Student's t goes with this confidence, on either side.

    >>> round(t_quantile(0.95, 10), 6), round(t_quantile(0.95, 1_000_000), 6)
    (2.228139, 1.959966)
    """
    if df >= MANY:
        from statistics import NormalDist

        return _expanded(NormalDist().inv_cdf((1 + level) / 2), df)
    near, far = 0.0, math.pi / 2
    for _ in range(80):
        middle = (near + far) / 2
        if _confidence(middle, df) < level:
            near = middle
        else:
            far = middle
    return math.tan((near + far) / 2) * math.sqrt(df)


def _confidence(angle: float, df: int) -> float:
    """Return the chance that t is within tan(angle) * sqrt(df) of 0; a finite sum for whole degrees of freedom."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = df % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, df + 1, 2):
        total += term
        term *= cosine * cosine * (k - 1) / k
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def _expanded(x: float, df: int) -> float:
    """Return the quantile of t from the normal one, by the expansion of Cornish and Fisher."""
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + sum(term / df**k for k, term in enumerate(terms, 1))
