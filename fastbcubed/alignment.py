"""Alignment: who is on which side, what the policies make of it, and coverage.

The result has one row per item of either side: first those of the truth in their order, then those
that only the prediction has. Keys stand for clusters; an item that a side lacks has the side's
absent key, and an item that is alone by policy has a key of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastbcubed.clustering import Clustering
from fastbcubed.engines.pool import Pool, blocks
from fastbcubed.errors import AlignmentError, EmptyInputError, first_few
from fastbcubed.policies import Coverage, Policies
from fastbcubed.side import Mask, Rows, Side, either, only, require_known_type
from fastbcubed.sources.keys import key_pair
from fastbcubed.weights import WeightTable, require_weights, row_weights

__all__ = ["Alignment", "align"]


@dataclass(frozen=True)
class Alignment:
    """The two sides, row by row.

    Attributes
    ----------
    truth, prediction : Clustering
        What was aligned.
    true_keys, pred_keys : ndarray of int64, shape (n_rows,)
        Equal keys on a side, equal cluster.
    absent_true, absent_pred : int or None
        The key of items that the side lacks; None where no item is missing.
    true_rows, pred_rows : ndarray of int64, shape (n_rows,), or None
        Row of the clustering, -1 where it lacks the item; None where rows correspond one to one.
    weight : ndarray of float64, shape (n_rows,), or None
    coverage : Coverage
    policies : Policies
    """

    truth: Clustering
    prediction: Clustering
    true_keys: NDArray[np.int64]
    pred_keys: NDArray[np.int64]
    absent_true: int | None
    absent_pred: int | None
    true_rows: Rows | None
    pred_rows: Rows | None
    weight: NDArray[np.float64] | None
    coverage: Coverage
    policies: Policies

    def __len__(self) -> int:
        return int(self.true_keys.size)


def align(
    truth: Clustering,
    prediction: Clustering,
    policies: Policies,
    pool: Pool,
    *,
    weight_table: WeightTable | None = None,
    outer: bool = False,
    null_is_absent: bool = False,
) -> Alignment:
    """Put two clusterings side by side, by item id or by position.

    Parameters
    ----------
    truth, prediction : Clustering
        Both with item ids, or neither.
    policies : Policies
        What to do about unmatched items, nulls, duplicates and noise.
    pool : Pool
        The threads.
    weight_table : (Column, ndarray), optional
        Items and their weights, where weights are in a table of their own.
    outer : bool
        Whether weights serve the mean alone, so that zeros are allowed.
    null_is_absent : bool
        Whether a null cluster says "not on that side" (the one-table form).

    Raises
    ------
    AlignmentError, DuplicateItemError, OverlapError, NullError, WeightError, EmptyInputError
        As the policies say.
    """
    if policies.noise is not None:
        require_known_type(policies.noise, truth.labels, prediction.labels)
    true_side = Side(truth, policies, pool, null_is_absent)
    pred_side = Side(prediction, policies, pool, null_is_absent)
    for side in (true_side, pred_side):
        if not len(side.clustering):
            raise EmptyInputError(f"{side.clustering.name} has no rows")
    if truth.items is None:
        _require_equal_length(truth, prediction)
        true_rows = pred_rows = None
    else:
        true_rows, pred_rows = _join(true_side, pred_side, pool)

    true_keys, lacks_true, alone_true = true_side.aligned(true_rows)
    pred_keys, lacks_pred, alone_pred = pred_side.aligned(pred_rows)
    weight, total_weight = row_weights(
        ((truth, true_rows), (prediction, pred_rows)), weight_table, outer=outer, pool=pool
    )

    truth_only = only(lacks_pred, lacks_true)
    prediction_only = only(lacks_true, lacks_pred)
    coverage = _coverage(
        true_keys.size, either(lacks_true, lacks_pred), truth_only, prediction_only, weight, total_weight,
        true_side, pred_side,
    )  # fmt: skip
    _enforce(policies, coverage, truth_only, prediction_only, true_side, pred_side, true_rows, pred_rows)
    if weight is not None and (true_rows is not None or weight_table is not None):
        require_weights(weight, policies, lacks_true, lacks_pred, truth_only, prediction_only)
    if truth_only is not None and policies.truth == "singleton":
        alone_pred, lacks_pred = either(alone_pred, truth_only), only(lacks_pred, truth_only)
    if prediction_only is not None and policies.prediction == "singleton":
        alone_true, lacks_true = either(alone_true, prediction_only), only(lacks_true, prediction_only)

    true_keys, absent_true = _special_keys(true_keys, lacks_true, alone_true)
    pred_keys, absent_pred = _special_keys(pred_keys, lacks_pred, alone_pred)
    return Alignment(
        truth, prediction, true_keys, pred_keys, absent_true, absent_pred, true_rows, pred_rows,
        weight, coverage, policies,
    )  # fmt: skip


def _require_equal_length(truth: Clustering, prediction: Clustering) -> None:
    if len(truth) != len(prediction):
        raise AlignmentError(
            f"{truth.name} has {len(truth)} labels and {prediction.name} {len(prediction)}. Labels "
            "without item ids are put side by side by position and have to be equally many; pass "
            "tables with an item column to join them by item."
        )


def _join(true_side: Side, pred_side: Side, pool: Pool) -> tuple[Rows | None, Rows | None]:
    """Match the rows of the two sides by item; None, None where they correspond one to one."""
    from fastbcubed.engines.joining import match

    true_items, pred_items = true_side.clustering.items, pred_side.clustering.items
    if true_items is None or pred_items is None:
        raise AlignmentError("one side has item ids and the other has none; give both sides the same form")
    one_table = true_items is pred_items
    if one_table:
        true_keys = pred_keys = true_items.keys(pool)
    else:
        true_keys, pred_keys = key_pair(true_items, pred_items, pool)
    in_order = one_table or (true_keys.size == pred_keys.size and _equal(true_keys, pred_keys))
    matches = match(true_keys, true_keys[:0] if in_order else pred_keys, pool)
    if in_order and not matches.true_again:
        return None, None
    true_rows = np.arange(true_keys.size)
    pred_rows = np.arange(pred_keys.size)
    if matches.true_again:
        true_rows = true_side.without_repeats(true_keys)
    if matches.pred_again or (in_order and matches.true_again):
        pred_rows = pred_side.without_repeats(pred_keys)
    if matches.true_again or matches.pred_again:
        matches = match(true_keys[true_rows], pred_keys[pred_rows], pool)
    found = matches.pred_of_true
    of_true = np.where(found >= 0, pred_rows[found], -1)
    rest = pred_rows[matches.true_of_pred < 0]
    if not rest.size and true_rows.size == true_keys.size:
        return true_rows, of_true
    lacking = np.full(rest.size, -1)
    return np.concatenate([true_rows, lacking]), np.concatenate([of_true, rest])


def _equal(a: NDArray[np.int64], b: NDArray[np.int64]) -> bool:
    """Compare block by block, so that the first difference ends it."""
    return a is b or all(np.array_equal(a[i:j], b[i:j]) for i, j in blocks(a.size))


def _coverage(
    n_rows: int,
    lacking: Mask | None,
    truth_only: Mask | None,
    prediction_only: Mask | None,
    weight: NDArray[np.float64] | None,
    total_weight: float,
    true_side: Side,
    pred_side: Side,
) -> Coverage:
    def figure(mask: Mask | None) -> tuple[int, float]:
        if mask is None:
            return 0, 0.0
        n = int(np.count_nonzero(mask))
        return n, float(n) if weight is None else float(weight[mask].sum())

    truth, prediction = figure(truth_only), figure(prediction_only)
    if lacking is None:
        known = total_weight if weight is not None else float(n_rows)
        common = (n_rows, known if known == known or weight is None else float(weight.sum()))
    else:
        common = figure(~lacking)
    for side in (true_side, pred_side):
        if side.absent is not None and side.n_null == len(side.clustering):
            raise EmptyInputError(
                f"all {side.n_null} clusters of {side.clustering.name} are null, so there is nothing to score"
            )
    if not common[0]:
        raise EmptyInputError(
            f"no item of {true_side.clustering.name} is in {pred_side.clustering.name}: "
            f"{truth[0]} items are only in the first, {prediction[0]} only in the second "
            f"({_example(true_side)} against {_example(pred_side)}). Check that the item columns name "
            "the same things in the same way."
        )
    return Coverage(
        common[0], truth[0], prediction[0], common[1], truth[1], prediction[1],
        true_side.n_null + pred_side.n_null,
        true_side.n_noise + pred_side.n_noise,
        true_side.n_duplicates + pred_side.n_duplicates,
    )  # fmt: skip


def _example(side: Side) -> str:
    return first_few(side.take_items(np.arange(min(3, len(side.clustering)))))


def _enforce(
    policies: Policies,
    coverage: Coverage,
    truth_only: Mask | None,
    prediction_only: Mask | None,
    true_side: Side,
    pred_side: Side,
    true_rows: Rows | None,
    pred_rows: Rows | None,
) -> None:
    """Raise if there are unmatched items where the policy says so."""
    for policy, mask, side, other, rows, options in (
        (policies.truth, truth_only, true_side, pred_side, true_rows, '"drop" or "singleton"'),
        (policies.prediction, prediction_only, pred_side, true_side, pred_rows, '"drop", "singleton" or "outside"'),
    ):  # fmt: skip
        if policy != "raise" or mask is None or not mask.any():
            continue
        where = np.flatnonzero(mask)
        shown = where[:4] if rows is None else rows[where[:4]]
        raise AlignmentError(
            f"{where.size} of {len(side.clustering)} items of {side.clustering.name} are missing from "
            f"{other.clustering.name} (first: {first_few(side.take_items(shown))}). Pass unmatched="
            f"{options} to continue."
        )


def _special_keys(
    keys: NDArray[np.int64], lacks: Mask | None, alone: Mask | None
) -> tuple[NDArray[np.int64], int | None]:
    """Give lonely items keys of their own, and lacking ones the absent key, none of them in use."""
    if lacks is not None and not lacks.any():
        lacks = None
    if lacks is None and (alone is None or not alone.any()):
        return keys, None
    from fastbcubed.kernels.sums import find_run

    generator = np.random.default_rng(0)  # any start serves that is not in use; the same each time
    while True:
        start = int(generator.integers(-(2**63), 2**63, dtype=np.int64))
        if not find_run(keys, start, keys.size + 1):
            break
    keys = keys.copy()
    fresh = np.uint64(start % 2**64)
    if alone is not None:
        rows = np.flatnonzero(alone)
        keys[rows] = (fresh + rows.astype(np.uint64)).view(np.int64)
    absent = np.array([fresh], np.uint64) + np.uint64(keys.size)
    if lacks is None:
        return keys, None
    keys[lacks] = absent.view(np.int64)[0]
    return keys, int(absent.view(np.int64)[0])
