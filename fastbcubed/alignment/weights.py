"""Weights of the aligned rows: from a column, an array or a table; checked before they are used."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.alignment.policies import Policies
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.errors import AlignmentError, DuplicateItemError, WeightError, first_few
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
    return weights_by_key(own, given, values, lambda keys: first_few(_repeated(column, keys)), pool)


def weights_by_key(
    own: NDArray[np.int64],
    given: NDArray[np.int64],
    values: NDArray[np.float64],
    repeated: Callable[[NDArray[np.int64]], str],
    pool: Pool,
) -> NDArray[np.float64]:
    """Return the weight of each item by its key, NaN where there is none; `repeated` names items for a message."""
    from fastbcubed.runtime.joining import match

    matches = match(own, given, pool)
    if matches.pred_repeats:
        raise DuplicateItemError(
            f"{matches.pred_repeats} of {given.size} rows of the weight table repeat an item of an earlier row "
            f"({repeated(given)}); give each item one weight"
        )
    found = matches.pred_of_true
    if matches.true_repeats:  # rows that repeat an item have its weight, too
        order = np.argsort(own, kind="stable")
        begins = np.concatenate([[True], own[order][1:] != own[order][:-1]])
        found[order] = found[order][np.flatnonzero(begins)[np.cumsum(begins) - 1]]
    return np.where(found >= 0, np.append(values, np.nan)[found], np.nan)


def _repeated(column: Column, keys: NDArray[np.int64]) -> list[Any]:
    """Return the first few items that a column has more than once, for a message."""
    order = np.argsort(keys, kind="stable")
    again = np.sort(order[1:][keys[order][1:] == keys[order][:-1]])
    return column.take(again[:4]).to_pylist()


def check_weights(weight: NDArray[np.float64], name: str, outer: bool, pool: Pool) -> float:
    """Raise for weights that are none, and return their sum."""

    def check(start: int, stop: int) -> tuple[int, float]:
        return kernels.sums.check_weights(weight, start, stop, outer)

    found = pool.map(check, *zip(*blocks(weight.size), strict=True), stage="check weights")
    bad = sum(count for count, _ in found)
    if not bad:
        return math.fsum(total for _, total in found)
    least, most = kernels.sums.LEAST, kernels.sums.MOST
    in_range = (weight >= least) & (weight <= most) | (weight == 0) & outer
    rows = np.flatnonzero(~in_range)
    if ((weight[rows] > 0) & (weight[rows] < np.inf)).all():
        hint = f"They have to lie between {least} and {most}: multiply all by some number; no score changes."
    elif (weight[rows] == 0).all():
        hint = 'Leave these items out, or pass weighting="outer", which allows zeros.'
    else:
        hint = "They have to be positive and finite: give these items other weights, or leave them out."
    raise WeightError(
        f"{bad} of {weight.size} weights of {name} are out of range ({first_few(weight[rows[:4]].tolist())} in "
        f"rows {first_few(rows[:4].tolist())}). {hint}"
    )


def require_weights(
    weight: NDArray[np.float64],
    policies: Policies,
    lacks_true: Mask | None,
    lacks_pred: Mask | None,
    truth_only: Mask | None,
    prediction_only: Mask | None,
) -> None:
    """Raise if an item that is scored or counted has no weight."""
    needed = np.isnan(weight)
    if not needed.any():
        return
    if lacks_true is not None and policies.prediction == "drop":
        needed &= ~lacks_true
    if lacks_pred is not None and policies.truth == "drop":
        needed &= ~lacks_pred
    if lacks_true is not None and lacks_pred is not None:
        needed &= ~(lacks_true & lacks_pred)
    if n := int(needed.sum()):
        raise WeightError(
            f"{n} of {weight.size} items that are scored or counted have no weight (first rows: "
            f"{first_few(np.flatnonzero(needed)[:4].tolist())}). Give every item a weight, or leave "
            'unmatched items out with unmatched="drop".'
        )
