"""Cells as records, and how they are made from a cross tabulation."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed import kernels
from fastbcubed.errors import ColumnError, FastBCubedError, SliceError, WeightError, first_few

#: A cell: what its items share. Engines may give counts and codes 32 bits.
CELL = np.dtype([("fp", "f8"), ("weight", "f8"), ("fn", "f8"), ("true", "i8"), ("n", "i8")])

SIDES = ("true", "pred")
#: Counts are 64-bit integers, with room for what rounding adds to this check.
MOST_ITEMS = 2.0**63
#: Weights below it have a square; weights above the other might add up to infinity.
ROOT, LARGEST = 1e150, 1e290


def side_of(side: object) -> str:
    """Return the side that is meant, "true" or "pred"; a user may also write "truth" and "prediction"."""
    meant = {"true": "true", "truth": "true", "pred": "pred", "prediction": "pred"}
    if not isinstance(side, str) or side not in meant:
        raise SliceError(f'side is "true" or "pred", not {side!r}')
    return meant[side]


def as_counts(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return codes or counts as int64; raise ColumnError for what cannot be any."""
    array = _as_array(values, name, ColumnError)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ColumnError(f"{name} has to be a one-dimensional array of integers, not {array.dtype}")
    if array.size and array.min() < 0:
        wrong = array[array < 0]
        raise ColumnError(
            f"{wrong.size} of {array.size} values of {name} are negative ({first_few(wrong.tolist())})"
        )
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise ColumnError(f"a value of {name} is {array.max()}, which 64 bits with a sign do not hold")
    if name != "n" and array.size and array.max() > 16 * array.size + (1 << 20):
        raise ColumnError(
            f"the codes of {name} go up to {array.max()} for {array.size} cells; number the clusters from 0 up"
        )
    return array.astype(np.int64)


def as_masses(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return weights as float64; raise WeightError for what cannot be any."""
    array = _as_array(values, name, WeightError)
    if array.ndim != 1 or array.dtype.kind not in "buif":
        raise WeightError(f"{name} has to be a one-dimensional array of numbers, not {array.dtype}")
    found = np.ascontiguousarray(array, np.float64)
    if (np.abs(found) > LARGEST).any() and np.isfinite(found).all():
        raise WeightError(f"{name} has values beyond {LARGEST:g}, whose sum might be infinite; rescale them")
    return found


def require_squares(squares: NDArray[np.float64] | None, mass: NDArray[np.float64] | None) -> None:
    """Raise WeightError for squares of weights that cannot be any, or have no weights."""
    if squares is None:
        return
    if mass is None or not (squares >= 0).all():
        raise WeightError("weight_squares goes with weight, and none of its values is negative or NaN")
    if not max(mass.max(initial=0), squares.max(initial=0) ** 0.5) < ROOT:
        raise WeightError(
            f"a weight is {ROOT:g} or more, so that pairs cannot be weighed; rescale the weights"
        )


def _as_array(values: ArrayLike, name: str, error: type[FastBCubedError]) -> np.ndarray:
    try:
        return np.asarray(values)
    except (OverflowError, TypeError, ValueError) as reason:
        raise error(f"{name} has to be a one-dimensional array of numbers: {reason}") from reason


def tabulate(
    true: NDArray[np.int64],
    pred: NDArray[np.int64],
    n: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    *,
    outer: bool,
) -> tuple[np.ndarray, NDArray[np.int64], tuple[int, int]]:
    """Return cell records, codes of the predicted clusters, and how many codes each side has."""
    if weight is not None:
        bad = ~((weight > 0) & (weight < np.inf)) & (n > 0) & ~((weight == 0) & outer)
        if bad.any():
            raise WeightError(
                f"{bad.sum()} of {weight.size} weights are not positive and finite "
                f"({first_few(weight[bad].tolist())})"
            )
    if n.sum(dtype=np.float64) >= MOST_ITEMS:
        raise ColumnError(f"the cells hold {n.sum(dtype=np.float64):.3g} items, more than {MOST_ITEMS:.3g}")
    keep = n > 0
    true, pred, n = true[keep], pred[keep], n[keep]
    order = np.lexsort((true, pred))
    begins = np.ones(order.size, bool)
    begins[1:] = (np.diff(true[order]) != 0) | (np.diff(pred[order]) != 0)
    starts = np.flatnonzero(begins)
    if not starts.size:
        return np.empty(0, CELL), pred, (0, 0)
    cells = np.empty(starts.size, CELL)
    codes = {"true": true[order][starts], "pred": pred[order][starts]}
    cells["true"] = codes["true"]
    cells["n"] = np.add.reduceat(n[order], starts)
    cells["weight"] = cells["n"]
    if weight is not None:
        ones = np.ones(order.size)
        sums = add_up(np.cumsum(begins) - 1, starts.size, weight[keep][order], ones)
        cells["weight"] = sums[0] + sums[1]
    sizes = tuple(int(codes[side].max()) + 1 for side in SIDES)
    own = cells["n"].astype(np.float64) if outer else np.ascontiguousarray(cells["weight"])
    for side, mistaken, size in zip(SIDES, ("fn", "fp"), sizes, strict=True):
        mass, rest = add_up(codes[side], size, own, np.ones(own.size))
        cells[mistaken] = (mass[codes[side]] - own) + rest[codes[side]]
    return cells, codes["pred"], (sizes[0], sizes[1])


def add_up(
    codes: NDArray[np.integer], size: int, values: NDArray[np.float64], factors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add values * factors by code; the sum of both arrays has twice the digits of a float."""
    totals, errors = np.zeros(size), np.zeros(size)
    kernels.sums.add_by_code(codes, values, factors, None, totals, errors)
    return totals, errors


def add_products(weight: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Return the sum of weight * value: runs of fixed length are summed plainly, and then exactly over the runs."""
    products = np.empty(-(-weight.size // kernels.runs.RUN))
    kernels.runs.sum_products(weight, values, products)
    return math.fsum(products.tolist())
