"""Rates whose whole may be nothing, F of precision and recall, and its derivatives."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from fastbcubed.errors import OptionError
from fastbcubed.metrics.metric import Floats


def rate(part: Floats | float, whole: Floats | float, empty: float = 1.0) -> Floats:
    """Return part / whole, and `empty` where whole is 0: nothing there could have gone wrong."""
    shares: Floats = np.full(np.shape(whole), empty)
    np.divide(part, whole, out=shares, where=np.not_equal(whole, 0))
    return shares[()]  # a scalar for scalars


def weight_of_precision(beta: float) -> float:
    """Return alpha = 1 / (1 + beta**2), the weight of precision in F.

    >>> weight_of_precision(2.0), weight_of_precision(0.0), weight_of_precision(float("inf"))
    (0.2, 1.0, 0.0)
    """
    if not (isinstance(beta, Real) and beta >= 0):  # nor NaN
        raise OptionError(f"beta must be a number from 0 (precision alone) up, not {beta!r}.")
    try:
        return 1.0 / (1.0 + float(beta) * float(beta))
    except OverflowError:  # an integer that no float holds
        return 0.0


def f_measure(precision: Floats | float, recall: Floats | float, alpha: float = 0.5) -> Floats | float:
    """Return 1 / (alpha / precision + (1 - alpha) / recall), element by element.

    It is 0 where precision or recall is 0, except that alpha = 1 gives precision and alpha = 0
    gives recall, whatever the other is. A missing value (NaN) stays missing.

    >>> float(f_measure(0.5, 0.25, weight_of_precision(2.0)))  # 5/18
    0.2777777777777778
    """
    if alpha in (0.0, 1.0):
        return precision if alpha else recall
    below = alpha * recall + (1.0 - alpha) * precision
    return rate(precision * recall, below, empty=0.0)


def slopes_of_f1(p: Floats | float, r: Floats | float, beta: float) -> tuple[Any, Any]:
    """Return the derivatives of F1 by precision and by recall.

    >>> [round(float(slope), 6) for slope in slopes_of_f1(0.5, 0.25, 2.0)]  # 2 (1/4)^2 / (3/4)^2, 2 (1/2)^2 / (3/4)^2
    [0.222222, 0.888889]
    """
    return _slopes(p, r, 0.5)


def slopes_of_fbeta(p: Floats | float, r: Floats | float, beta: float) -> tuple[Any, Any]:
    """Return the derivatives of F by precision and by recall."""
    return _slopes(p, r, weight_of_precision(beta))


def _slopes(p: Floats | float, r: Floats | float, alpha: float) -> tuple[Any, Any]:
    below = alpha * r + (1.0 - alpha) * p
    return alpha * rate(r, below) ** 2, (1.0 - alpha) * rate(p, below) ** 2
