"""Confidence intervals: Student's t on the scale of log odds, and Wilson's for shares."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from fastbcubed.metrics.metric import Metric, without_rounding
from fastbcubed.runtime.arguments import number
from fastbcubed.types import Floats

#: Degrees of freedom above which an expansion around the normal quantile is accurate to 1e-10.
MANY = 200
#: Degrees of freedom above which the quantile is the normal one to the last bit; powers of larger ones overflow.
MOST_DEGREES = 1e30
#: How much the variance is underestimated if few influences dominate, divided by their effective number: for means with
#: an upper end, other means, and other scores (see `benchmarks/coverage.py`).
LESS_VARIANCE_OF_MEANS, LESS_VARIANCE_OF_AMOUNTS, LESS_VARIANCE_OF_SUMS = 1.0, 3.0, 8.0
#: The standard error due to units that were not drawn, as a fraction of what one more unit, as large as the largest,
#: could change: for means over items or clusters, and for shares of pairs (see `benchmarks/coverage.py`).
NOT_DRAWN_OF_MEANS, NOT_DRAWN_OF_PAIRS = 0.36, 0.3
#: Maximum distance from the end of its range that a score may have due to rounding.
ROUNDING = 1e-12
#: Lower end assumed for scores that are 0 by chance and have no lowest value.
CHANCE_REVERSED = -1.0


class Interval(NamedTuple):
    """A confidence interval for the population value of a score."""

    low: float
    high: float


def check_level(level: Any) -> float:
    """Return a confidence level, or raise OptionError if it is not one."""
    return number(level, "level", "a confidence between 0 and 1, such as 0.95", lambda found: 0 < found < 1)


def degrees_of_freedom(
    squares: Any, fourths: Any, n_units: Any, *, less: Any = 0.0, fewest: float = 1.0
) -> Any:
    """Return the degrees of freedom of a variance, from sums of second and fourth powers of units' influences.

    By Satterthwaite, these are twice the squared variance divided by the variance of its estimate, which is that of the
    squares. If few influences dominate, the variance may be underestimated; `less` divided by their effective number
    corrects for this. The result is at least `fewest` and at most the number of units minus one.

    >>> float(degrees_of_freedom(8.0, 8.0, 1000))  # eight alike carry all: 128 / 7.936
    16.129032258064516
    >>> float(degrees_of_freedom(8.0, 8.0, 1000, less=3.0))  # 128 / 7.936 / (1 + 3 / 8)
    11.730205278592376
    """
    most = np.maximum(np.subtract(n_units, 1.0), 1.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        of_squares = np.multiply(squares, squares)
        few = 1.0 + less * (fourths / of_squares)
        found = 2.0 * of_squares / (fourths - of_squares / n_units) / few
    known = np.isfinite(found) & (found > 0)
    return np.where(known, np.clip(found, np.minimum(fewest, most), most), most)[()]


def share_not_seen(effective: float, level: float) -> float:
    """Return the largest share of weight that units may have if none of them is among `effective` equal draws.

    >>> round(share_not_seen(100, 0.95), 4)  # 1 - 0.025 ** (1 / 100), about 3.7 / 100
    0.0362
    """
    return float(1.0 - ((1.0 - level) / 2) ** (1.0 / effective))


def share_of_another(largest: Any) -> Any:
    """Return the share of the weight of one more unit that is as large as the largest, given the share of the latter.

    >>> share_of_another(0.25)  # 25 more, in addition to 100
    0.2
    """
    return largest / (1.0 + largest)


def interval(
    score: float,
    error: float,
    *,
    df: float,
    level: float,
    low: float,
    high: float,
    effective: float = math.nan,
    not_drawn: float = 0.0,
    always: bool = False,
) -> Interval:
    """Return the interval, by Student's t, of a score with a range from `low` to `high`, which may be infinite.

    It is symmetric on an unbounded scale: log odds for a rate, the logarithm for an amount. A score at an end of its
    range has a one-sided interval, which allows for units that were not drawn; `df` is then the effective number of
    units. An amount of 0 has no interval, as no unit shows how large it could be. A score without a lower end is
    assumed to have -1 as its lower end, like the adjusted Rand index, unless it is less. For a mean of values between
    `low` and `high` over `effective` equal units, the interval is no wider than if all values were at one of these
    ends, however few the degrees of freedom; but it is at least as wide as by the normal quantile, as values may depend
    on the units' sizes.

    A sample may lack a decisive unit, which its variance does not show. Each end therefore allows for a further error:
    the fraction `not_drawn` of the score's distance from this end of its range, or from chance level (see `widened`).
    The interval of a score without an error allows for it only if `always`.

    >>> found = interval(0.9, 0.03, df=10, level=0.95, low=0.0, high=1.0)
    >>> round(found.low, 4), round(found.high, 4)  # log(9) -+ 2.2281 * 0.03 / (0.9 * 0.1)
    (0.8107, 0.9498)
    >>> found = interval(0.9, 0.03, df=1, level=0.95, low=0.0, high=1.0, effective=100)
    >>> round(found.low, 4), round(found.high, 4)  # log(9) -+ 1.96 * 0.03 / (0.9 * 0.1), as Wilson's is narrower
    (0.824, 0.9453)
    >>> found = interval(0.9, 0.03, df=10, level=0.95, low=0.0, high=1.0, not_drawn=0.1)
    >>> round(found.low, 4), round(found.high, 4)  # 0.9 - hypot(0.0893, 1.96 * 0.09), 0.9 + hypot(0.0498, 1.96 * 0.01)
    (0.7023, 0.9535)
    >>> found = interval(1.0, 0.0, df=100, level=0.95, low=0.0, high=1.0)
    >>> round(found.low, 4), found.high
    (0.9638, 1.0)
    """
    if math.isnan(error) or math.isnan(score):
        return Interval(math.nan, math.nan)
    found = _of_those_drawn(score, error, df=df, level=level, low=low, high=high, effective=effective)
    if not not_drawn or (not always and without_rounding(error, score) == 0):
        return found
    down, up = (min(not_drawn, 1.0) * min(way, 1.0) for way in (score - low, high - score))
    return Interval(
        max(score - widened(score - found.low, down, level), low) if math.isfinite(low) else found.low,
        min(score + widened(found.high - score, up, level), high) if math.isfinite(high) else found.high,
    )


def widened(reach: float, not_drawn: float, level: float) -> float:
    """Return how far an interval reaches if it allows for the standard error of units that were not drawn.

    Nothing connects these units with those that were drawn, so the two errors add up as independent ones do: the larger
    one decides.

    >>> round(widened(0.04, 0.03 / 1.959964, 0.95), 6)
    0.05
    """
    return math.hypot(reach, t_quantile(level, math.inf) * not_drawn)


def of_difference(
    metric: Metric,
    delta: float,
    error: float,
    *,
    df: float,
    level: float,
    not_drawn: float = 0.0,
    replicates: Floats | None = None,
) -> Interval:
    """Return the interval of a difference: percentiles of its replicates or, without these, by Student's t.

    If no unit differs, the interval allows for other units that do, although none was drawn. Otherwise, without
    replicates, it allows for the error of units that were not drawn, as that of a score does.
    """
    if math.isnan(error):
        return Interval(math.nan, math.nan)
    if replicates is not None:
        found = replicates[~np.isnan(replicates)]  # NaN: the replicate has no unit
        if not found.size:
            return Interval(math.nan, math.nan)
        return Interval(*np.quantile(found, [(1 - level) / 2, (1 + level) / 2]).tolist())
    if error == delta == 0 and math.isfinite(metric.high):
        reach = share_not_seen(df, level)
    else:
        reach = widened(t_quantile(level, df) * error, not_drawn if error > 0 else 0.0, level)
    most = metric.high - metric.low  # the largest possible difference
    return Interval(max(delta - reach, -most), min(delta + reach, most))


def of_slice(
    value: float | None,
    error: float | None,
    n_units: int | None,
    *,
    level: float = 0.95,
    low: float = -math.inf,
    high: float = math.inf,
) -> Interval | None:
    """Return the interval of a score in a slice, or of a difference (without `low` and `high`); None if unknown.

    It makes no allowance for units that were not drawn, as slices are compared with each other.
    """
    if (
        value is None
        or error is None
        or n_units is None
        or n_units < 2
        or not without_rounding(error, value) > 0
    ):
        return None
    return interval(value, error, df=n_units - 1, level=level, low=low, high=high)


def named_ends(score: str, ends: Interval | None) -> dict[str, float | None]:
    """Return an interval's ends by column name; both are None if there is no interval.

    >>> named_ends("f1", Interval(0.5, 0.9)), named_ends("f1", None)
    ({'f1_low': 0.5, 'f1_high': 0.9}, {'f1_low': None, 'f1_high': None})
    """
    low, high = ends or (None, None)
    return {f"{score}_low": low, f"{score}_high": high}


def _of_those_drawn(
    score: float, error: float, *, df: float, level: float, low: float, high: float, effective: float
) -> Interval:
    """Return the interval without an allowance for units that were not drawn."""
    sure = without_rounding(error, score) == 0
    at_end = _to_one_side(score, low, high, share_not_seen(df, level), room=ROUNDING if sure else 0.0)
    if at_end is not None or sure:
        return at_end or Interval(score, score)
    quantile, least = t_quantile(level, df), t_quantile(level, math.inf)
    reach = quantile * error
    if math.isinf(low) and math.isfinite(high) and score > CHANCE_REVERSED:
        low = CHANCE_REVERSED
    if math.isinf(low):
        return Interval(score - reach, min(score + reach, high))
    above = score - low
    if math.isinf(high):
        return Interval(*(low + _times_exp(above, step / above) for step in (-reach, reach)))
    odds = above / (high - score)
    step = reach * (high - low) / above / (high - score)
    shares = [_share(_times_exp(odds, each)) for each in (-step, step)]
    if effective > 0:
        most = wilson(above / (high - low), effective, level)
        sure_low, sure_high = (_share(_times_exp(odds, each * least / quantile)) for each in (-step, step))
        shares = [max(shares[0], min(most.low, sure_low)), min(shares[1], max(most.high, sure_high))]
    return Interval(*(low + (high - low) * each for each in shares))


def wilson(share: float, n: float, level: float) -> Interval:
    """Return Wilson's interval for a share observed in `n` draws; `n` need not be a whole number.

    >>> found = wilson(0.8, 10, 0.95)  # (8 + q/2 -+ sqrt(q (1.6 + q/4))) / (10 + q), where q is the squared quantile
    >>> round(found.low, 4), round(found.high, 4)
    (0.4902, 0.9433)
    """
    q = t_quantile(level, math.inf) ** 2
    middle, reach = n * share + q / 2, math.sqrt(q * (n * share * (1 - share) + q / 4))
    return Interval((middle - reach) / (n + q), (middle + reach) / (n + q))


def _to_one_side(score: float, low: float, high: float, share: float, *, room: float) -> Interval | None:
    """Return a one-sided interval for a score at an end of its range, where `share` may differ; otherwise None.

    Units that were not drawn are assumed to be no worse than chance, which is 0 for scores that can be negative.
    """
    reach = share * min(high - low, 1.0)
    if high - score <= room:
        return Interval(score - reach, score)
    if score - low <= room:
        return Interval(math.nan, math.nan) if math.isinf(high) else Interval(score, score + reach)
    return None


def _times_exp(value: float, power: float) -> float:
    """Return value * exp(power), or infinity if this overflows."""
    return value * math.exp(power) if power < 700 else math.inf


def _share(odds: float) -> float:
    return 1.0 if math.isinf(odds) else odds / (1.0 + odds)


@lru_cache(maxsize=1024)
def t_quantile(level: float, df: float) -> float:
    """Return the two-sided quantile of Student's t for this confidence level.

    >>> [round(t_quantile(0.95, df), 6) for df in (2.5, 10, 1_000_000, 1e300)]
    [3.574655, 2.228139, 1.959966, 1.959964]
    """
    if df >= MANY:
        from statistics import NormalDist

        return _expanded(NormalDist().inv_cdf((1 + level) / 2), min(df, MOST_DEGREES))
    near, far = 0.0, math.pi / 2
    for _ in range(80):
        middle = (near + far) / 2
        if _confidence(middle, df) < level:
            near = middle
        else:
            far = middle
    return math.tan((near + far) / 2) * math.sqrt(df)


def _confidence(angle: float, df: float) -> float:
    """Return the probability that |t| is below tan(angle) * sqrt(df); a finite sum if `df` is whole."""
    if df != int(df):
        nodes, weights = _nodes()
        inside = angle / 2 * float(weights @ np.cos(angle / 2 * (nodes + 1)) ** (df - 1))
        return inside * 2 / math.sqrt(math.pi) * math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2))
    df = int(df)
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = df % 2
    term, total = (cosine if odd else 1.0), 0.0
    for k in range(2 + odd, df + 1, 2):
        total += term
        term *= cosine * cosine * (k - 1) / k
    return 2 / math.pi * (angle + sine * total) if odd else sine * total


def t_tail(t: float, df: float) -> float:
    """Return the probability that Student's t exceeds a value.

    >>> round(t_tail(2.228139, 10), 6), round(t_tail(1.959964, 1e9), 6), round(t_tail(-2.228139, 10), 6)
    (0.025, 0.025, 0.975)
    """
    if t < 0:
        return 1.0 - t_tail(-t, df)
    if df < MANY:
        return max(0.0, (1.0 - _confidence(math.atan(t / math.sqrt(df)), df)) / 2)
    # Wallace's approximation, accurate to 1e-6 of the probability
    z = (8 * df + 1) / (8 * df + 3) * math.sqrt(df * math.log1p(t * t / df))
    return math.erfc(z / math.sqrt(2)) / 2


@lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    """Return the nodes and weights of a quadrature rule on the interval from -1 to 1."""
    return np.polynomial.legendre.leggauss(64)


def _expanded(x: float, df: float) -> float:
    """Return a quantile of t from that of the normal distribution, by the expansion of Cornish and Fisher."""
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return x + sum(term / df**k for k, term in enumerate(terms, 1))


#: Maximum number of bisections, down to neighbouring floats, and of doublings, until all shares are 0 or 1.
HALVINGS, DOUBLINGS = 100, 200


def sum_of_shares(weights: ArrayLike, seen: ArrayLike, drawn: ArrayLike, level: float) -> Interval:
    """Return the score interval of a weighted sum of shares, from the numbers drawn and seen in each sample.

    >>> found = sum_of_shares([1.0], [8], [10], 0.95)  # that of Wilson: (8 + q/2 -+ sqrt(q (1.6 + q/4))) / (10 + q)
    >>> round(found.low, 4), round(found.high, 4)
    (0.4902, 0.9433)
    """
    from statistics import NormalDist

    w, k, n = (np.asarray(values, np.float64) for values in (weights, seen, drawn))
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    # corrects for fitting a share per sample, which makes the variance too small
    lost = 1.0 if n.size == 1 else (n.sum() - 1) / max(n.sum() - n.size, 0.5)
    middle = math.fsum(w * (k / n))

    def beyond(a: float) -> bool:
        p = _fitted(a * w, k, n)
        variance = float(np.sum(w * w * (p * (1 - p) / n))) * lost
        return abs(math.fsum(w * p) - middle) > quantile * math.sqrt(variance)

    scale = float(np.min(n / np.abs(w)))
    low, high = (math.fsum(w * _fitted(_edge(beyond, sign * scale) * w, k, n)) for sign in (1, -1))
    return Interval(low, high)


def _fitted(slopes: Floats, k: Floats, n: Floats) -> Floats:
    """Return the shares p in [0, 1] that solve k / p - (n - k) / (1 - p) = slope."""
    b = slopes + n
    root = np.sqrt(np.maximum(b * b - 4 * slopes * k, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(b > 0, 2 * k / (b + root), (b - root) / (2 * slopes))
    return np.clip(found, 0.0, 1.0)


def _edge(beyond: Callable[[float], bool], step: float) -> float:
    """Return the multiple of `step` from which on `beyond` is true, by doubling and bisection."""
    far, doubled = step, 0
    while not beyond(far) and doubled < DOUBLINGS:
        far, doubled = 2 * far, doubled + 1
    near = 0.0
    for _ in range(HALVINGS if doubled < DOUBLINGS else 0):
        middle = (near + far) / 2
        near, far = (near, middle) if beyond(middle) else (middle, far)
    return far
