"""Consistency of loaded cells: codes in range, margins equal to the sums of the cells, rows within them.

Kernels do not check: a code out of range would make them write out of bounds. Cost is linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.contingency import MOST_ITEMS, SIDES, OneSided
from fastbcubed.runtime.codes import number
from fastbcubed.runtime.threads import Pool

#: Maximal difference of two sums of the same weights, relative to the sum.
TOLERANCE = 1e-8


def faults_of_cells(
    cells: np.ndarray,
    pred: NDArray[np.int64],
    sizes: Mapping[str, int],
    one_sided: Mapping[str, OneSided],
    *,
    weighted: bool,
    weighting: str,
    outside: bool,
    pool: Pool,
) -> Iterator[str]:
    """Yield the faults of cells and one-sided items; an early fault may make later checks fail."""
    codes = {"true": np.ascontiguousarray(cells["true"]), "pred": pred}
    outer = weighting == "outer"
    for side in SIDES:
        if _any_outside(codes[side], 0, sizes[side]):
            yield f"a code of {side} is not one of {sizes[side]} clusters"
    if fault := fault_of_weights(cells["n"], cells["weight"], weighted=weighted, outer=outer):
        yield fault
    for side, alone in one_sided.items():
        counted = outside and side == "pred"  # others may have unknown weights
        if not _are_counts(alone.n) or not _are_masses(alone.mass if counted else np.nan_to_num(alone.mass)):
            yield f"the items of {side} alone have a number or a weight that is none"
        if ((alone.n == 0) & (alone.mass != 0)).any() or (
            (outer or not weighted) and (alone.mass != alone.n).any()
        ):
            yield f"the weight of the items of {side} alone is not theirs"
    pairs = codes["true"] * sizes["pred"] + codes["pred"]  # far from 2**63: both sides are in memory
    if number(pairs, pool).firsts.size < pairs.size:
        yield "a pair of clusters is repeated"
    own = cells["n"].astype(np.float64) if outer else np.ascontiguousarray(cells["weight"])
    for side, mistaken in zip(SIDES, ("fn", "fp"), strict=True):
        mass: Any = np.bincount(codes[side], own, sizes[side])
        parts: Any = np.bincount(codes[side], minlength=sizes[side])
        if side == "pred" and outside and side in one_sided:
            mass, parts = mass + one_sided[side].mass, parts + (one_sided[side].n > 0)
        found, mass = cells[mistaken], mass[codes[side]]
        if not _are_masses(found) or (np.abs(found - (mass - own)) > TOLERANCE * mass).any():
            yield f"{mistaken} is not what the other cells of a cluster add up to"
        if ((found == 0) != (parts[codes[side]] == 1)).any():
            yield f"{mistaken} is 0 where there are mistakes, or is not where there are none"


def fault_of_weights(
    n: NDArray[np.int64], weight: NDArray[np.float64], *, weighted: bool, outer: bool
) -> str | None:
    """Return the fault in the numbers of items of cells or in their weights."""
    if not _are_counts(n) or (n == 0).any():
        return "a cell has no item, or the cells have more than can be"
    if not _are_masses(weight) or (weighted and not outer and (weight == 0).any()):
        return "a weight is not positive and finite"
    if not weighted and (weight != n).any():
        return "without weights, that of a cell is the number of its items"
    return None


def fault_of_margins(
    codes: NDArray[np.integer], n: NDArray[np.int64], columns: Mapping[str, NDArray[np.int64]]
) -> str | None:
    """Return the column of a side's clusters, `n_items` or `n_parts`, that is not the sum over their cells."""
    size = columns["n_items"].size
    sums = {"n_items": np.bincount(codes, n, size), "n_parts": np.bincount(codes, minlength=size)}
    for name, values in columns.items():
        if (values != sums[name]).any():
            return f"{name} of {np.count_nonzero(values != sums[name])} of {size} clusters is not that of their cells"
    return None


def fault_of_rows(
    cell: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    n: NDArray[np.int64],
    weights: NDArray[np.float64],
    *,
    outer: bool,
) -> str | None:
    """Return the fault in the cell and weight of each row, checked against the items and weights of the cells."""
    if _any_outside(cell, -1, n.size):
        return f"a row is in none of {n.size} cells"
    here = np.flatnonzero(cell >= 0)
    if (np.bincount(cell[here], minlength=n.size) != n).any():
        return "the rows of a cell are not as many as its items"
    if weight is None:
        return None
    if not _are_masses(weight[here]) or (not outer and (weight[here] == 0).any()):
        return "a weight is not positive and finite"
    if (np.abs(np.bincount(cell[here], weight[here], n.size) - weights) > TOLERANCE * weights).any():
        return "the weights of the rows of a cell do not add up to its own"
    return None


def _any_outside(values: NDArray[np.integer], lowest: int, end: int | None = None) -> bool:
    """Return whether integers are below the lowest value, or at or beyond the end of their range."""
    return bool(values.size) and bool(values.min() < lowest or (end is not None and values.max() >= end))


def _are_counts(values: NDArray[np.integer]) -> bool:
    """Return whether all values are non-negative and their sum fits in 64 bits."""
    return not _any_outside(values, 0) and values.sum(dtype=np.float64) < MOST_ITEMS


def _are_masses(values: NDArray[Any]) -> bool:
    """Return whether all values are finite and non-negative."""
    return bool(((values >= 0) & (values < np.inf)).all())
