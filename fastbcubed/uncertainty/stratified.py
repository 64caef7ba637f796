"""The interval of a sum of shares that were seen in independent samples: by the score test, as Wilson's of one share.

A value of the sum is in the interval if what was seen is no further from it than chance allows, where the variance is
that of the shares which make what was seen most likely and come to this value. These solve
k / p - (n - k) / (1 - p) = a w in each sample, with one number a for all of them, so the ends are found along a.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed.uncertainty.intervals import Interval

Floats = NDArray[np.float64]
#: How often a range is halved, and doubled at most: down to neighbouring floats, up to where shares are 0 or 1.
HALVINGS, DOUBLINGS = 100, 200


def sum_of_shares(weights: ArrayLike, seen: ArrayLike, drawn: ArrayLike, level: float) -> Interval:
    """Return the interval of the sum of weight * share, of which so many of those drawn were seen in each sample.

    >>> found = sum_of_shares([1.0], [8], [10], 0.95)  # that of Wilson: (8 + q/2 -+ sqrt(q (1.6 + q/4))) / (10 + q)
    >>> round(found.low, 4), round(found.high, 4)
    (0.4902, 0.9433)
    """
    from statistics import NormalDist

    w, k, n = (np.asarray(values, np.float64) for values in (weights, seen, drawn))
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    # shares that are fitted to few draws each vary too little
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
    """Return the shares that solve k / p - (n - k) / (1 - p) = slope, from 0 to 1."""
    b = slopes + n
    root = np.sqrt(np.maximum(b * b - 4 * slopes * k, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(b > 0, 2 * k / (b + root), (b - root) / (2 * slopes))
    return np.clip(found, 0.0, 1.0)


def _edge(beyond: Callable[[float], bool], step: float) -> float:
    """Return where along a multiple of the step the values begin that are beyond what chance allows."""
    far, doubled = step, 0
    while not beyond(far) and doubled < DOUBLINGS:
        far, doubled = 2 * far, doubled + 1
    near = 0.0
    for _ in range(HALVINGS if doubled < DOUBLINGS else 0):
        middle = (near + far) / 2
        near, far = (near, middle) if beyond(middle) else (middle, far)
    return far
