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
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.errors import AlignmentError
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.sources.columns import Column
from fastbcubed.sources.keys import key_pair

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
WeightTable = tuple[Column, NDArray[np.float64]]


def row_weights(
    sides: tuple[tuple[Clustering, Rows | None], tuple[Clustering, Rows | None]],
    table: WeightTable | None,
    *,
    outer: bool,
    pool: Pool,
) -> tuple[NDArray[np.float64] | None, float]:
    """Return the weight of each aligned row, NaN where none is known, and the sum of all.

    Parameters
    ----------
    sides : ((Clustering, rows), (Clustering, rows))
        Truth and prediction, each with its row for every aligned row; the truth's weight comes first.
    table : (Column, ndarray), optional
        Items and weights, in place of the clusterings' own.
    outer : bool
        Whether zeros are allowed.
    pool : Pool
        The threads.
    """
    if table is not None:
        check_weights(table[1], "the weight table", outer, pool)
        found = [(_look_up(clustering, *table, pool), rows) for clustering, rows in sides]
        return join_weights(found), math.nan
    total, found = math.nan, []
    by_position = all(rows is None for _, rows in sides)
    for clustering, rows in sides:
        if clustering.weight is None:
            continue
        added = check_weights(clustering.weight, clustering.name, outer, pool)
        if by_position:
            return clustering.weight, added  # the truth's weights are all there is
        found.append((clustering.weight, rows))
    return join_weights(found), total


def join_weights(
    found: Sequence[tuple[NDArray[np.float64], Rows | None]],
) -> NDArray[np.float64] | None:
    """Return the weight of each aligned row from those of the sides' rows; the first that is known counts."""
    result: NDArray[np.float64] | None = None
    for weight, rows in found:
        values = weight
        if rows is not None:
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
    from fastbcubed.runtime.joining import match

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
