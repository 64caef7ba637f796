"""Weights of the aligned rows: from a column, an array or a table; checked before they are used."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.alignment.faults import RepeatedTableRows, Report, WeightsOutOfRange, enforce
from fastbcubed.alignment.policies import Policies
from fastbcubed.alignment.side import Mask, Rows, Side
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.errors import AlignmentError
from fastbcubed.runtime.joining import match
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.sources.columns import Column
from fastbcubed.sources.keys import key_pair

WeightTable = tuple[Column, NDArray[np.float64]]
#: For each aligned row the row of the truth and of the prediction, -1 where it has none; None for all as they are.
Matched = tuple[Rows | None, Rows | None]
#: The weight of each aligned row, NaN where none is known, and the sum of all; NaN unless every row has one for sure.
Weights = tuple[NDArray[np.float64] | None, float]


class CheckedWeights:
    """Weights that have been checked, and their sums: those of a truth are the same in all runs."""

    def __init__(self) -> None:
        self._known: list[tuple[NDArray[np.float64], float]] = []

    def total(self, weight: NDArray[np.float64], name: str, outer: bool, pool: Pool) -> float:
        """Return the sum of weights, which are checked when they come for the first time."""
        for known, total in self._known:
            if known is weight:
                return total
        total = check_weights(weight, name, outer, pool)
        self._known.append((weight, total))
        return total


def row_weights(
    sides: tuple[Clustering, Clustering],
    table: WeightTable | None,
    matched: Matched,
    *,
    outer: bool,
    pool: Pool,
    checked: CheckedWeights,
) -> Weights:
    """Check weights, those of a table in place of the clusterings' own, and join them; zeros pass if `outer`.

    Those that have been `checked` already are not looked through again.
    """
    if table is not None:
        checked.total(table[1], "the weight table", outer, pool)
        return join_weights([_look_up(side, *table, pool) for side in sides], matched), math.nan
    as_they_are = all(rows is None for rows in matched)
    given = [(side.weight, side.name) for side in sides if side.weight is not None]
    if len(given) == 2 and given[0][0] is given[1][0]:  # one column of a table of both
        del given[1]
    totals = [checked.total(*each, outer, pool) for each in given]
    weight = join_weights([side.weight for side in sides], matched)
    return weight, totals[0] if totals and as_they_are else math.nan


def own_weights(sides: Sequence[Side], matched: Matched) -> Weights:
    """Join the weights of the sides, which have been checked."""
    return join_weights([side.weight for side in sides], matched), math.nan


def join_weights(
    weights: Sequence[NDArray[np.float64] | None], matched: Matched
) -> NDArray[np.float64] | None:
    """Return the weight of each aligned row from those of the sides' rows; the first that is known counts."""
    result: NDArray[np.float64] | None = None
    for weight, rows in zip(weights, matched, strict=True):
        if weight is None:
            continue
        if rows is None:
            return weight  # this side has all rows
        values = np.where(rows < 0, np.nan, weight[rows]) if weight.size else np.full(rows.size, np.nan)
        result = values if result is None else np.where(np.isnan(result), values, result)
    return result


def _look_up(
    clustering: Clustering, column: Column, values: NDArray[np.float64], pool: Pool
) -> NDArray[np.float64]:
    items = clustering.items
    if items is None:
        raise AlignmentError("a table of weights needs items with ids; pass an array of weights instead")
    own, given = key_pair(items, column, pool)
    return weights_by_key(own, given, values, column.first_of, pool)


def weights_by_key(
    own: NDArray[np.int64],
    given: NDArray[np.int64],
    values: NDArray[np.float64],
    first_of: Callable[[Rows], list[Any]],
    pool: Pool,
    report: Report = enforce,
) -> NDArray[np.float64]:
    """Return the weight of each item by its key, NaN where there is none; `first_of` names rows of the table."""
    matches = match(own, given, pool)
    if matches.pred_repeats:
        named = first_of(repeated_rows(given))
        report(RepeatedTableRows("the weight table", matches.pred_repeats, given.size, named, "one weight"))
    found = matches.pred_of_true
    if matches.true_repeats:  # rows that repeat an item have its weight, too
        order = np.argsort(own, kind="stable")
        begins = np.concatenate([[True], own[order][1:] != own[order][:-1]])
        found[order] = found[order][np.flatnonzero(begins)[np.cumsum(begins) - 1]]
    return np.where(found >= 0, np.append(values, np.nan)[found], np.nan)


def repeated_rows(keys: NDArray[np.int64]) -> Rows:
    """Return the first row of each key that comes more than once, in order."""
    _, firsts, counts = np.unique(keys, return_index=True, return_counts=True)
    return np.sort(firsts[counts > 1])


def check_weights(
    weight: NDArray[np.float64],
    name: str,
    outer: bool,
    pool: Pool,
    *,
    first_row: int = 0,
    report: Report = enforce,
) -> float:
    """Report weights that are none, whose first is that of row `first_row`, and return the sum of all."""

    def check(start: int, stop: int) -> tuple[int, float]:
        return kernels.sums.check_weights(weight, start, stop, outer)

    found = pool.map(check, *zip(*blocks(weight.size), strict=True), stage="check weights")
    bad = sum(count for count, _ in found)
    if bad:
        least, most = kernels.sums.LEAST, kernels.sums.MOST
        in_range = (weight >= least) & (weight <= most) | (weight == 0) & outer
        rows = np.flatnonzero(~in_range)
        values, few = weight[rows], rows[:4]
        first = list(zip(weight[few].tolist(), (few + first_row).tolist(), strict=True))
        finite = bool(((values > 0) & (values < np.inf)).all())
        report(WeightsOutOfRange(name, bad, weight.size, first, finite, bool((values == 0).all())))
    return math.fsum(total for _, total in found)


def lacks_weight(
    weight: NDArray[np.float64], policies: Policies, lacks_true: Mask | None, lacks_pred: Mask | None
) -> Rows:
    """Return the aligned rows that are scored or counted and have no weight."""
    needed = np.isnan(weight)
    if not needed.any():
        return np.empty(0, np.int64)
    if lacks_true is not None and policies.prediction == "drop":
        needed &= ~lacks_true
    if lacks_pred is not None and policies.truth == "drop":
        needed &= ~lacks_pred
    if lacks_true is not None and lacks_pred is not None:
        needed &= ~(lacks_true & lacks_pred)
    return np.flatnonzero(needed)
