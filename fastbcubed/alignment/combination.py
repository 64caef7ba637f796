"""Two sides put side by side, row by row: who is on which side, and what the policies make of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.alignment.faults import Unmatched, Unweighted
from fastbcubed.alignment.policies import Coverage, Policies
from fastbcubed.alignment.side import Mask, Rows, Side, either, only
from fastbcubed.alignment.weights import lacks_weight


@dataclass(frozen=True)
class Combination:
    """The two sides, row by row, before policies make anything of the rows that one side lacks.

    Attributes
    ----------
    true_keys, pred_keys : ndarray of int64, shape (n_rows,)
        Label keys; of no meaning in rows that the side lacks, or that are alone.
    lacks_true, lacks_pred : ndarray of bool, shape (n_rows,), or None
        Rows that the side lacks.
    alone_true, alone_pred : ndarray of bool, shape (n_rows,), or None
        Rows that are a cluster of their own on the side.
    weight : ndarray of float64, shape (n_rows,), or None
    coverage : Coverage
    sides : (Side, Side)
        Truth and prediction.
    rows : (ndarray or None, ndarray or None)
        The row of each side, -1 where it lacks the item; None where rows correspond.
    """

    true_keys: NDArray[np.int64]
    pred_keys: NDArray[np.int64]
    lacks_true: Mask | None
    lacks_pred: Mask | None
    alone_true: Mask | None
    alone_pred: Mask | None
    weight: NDArray[np.float64] | None
    coverage: Coverage
    sides: tuple[Side, Side]
    rows: tuple[Rows | None, Rows | None]

    @property
    def truth_only(self) -> Mask | None:
        """Rows that only the truth has."""
        return only(self.lacks_pred, self.lacks_true)

    @property
    def prediction_only(self) -> Mask | None:
        """Rows that only the prediction has."""
        return only(self.lacks_true, self.lacks_pred)

    def unmatched(self, policies: Policies) -> Iterator[tuple[int, Unmatched]]:
        """Yield the unmatched items of each side, the truth first, where the policy does not allow them."""
        masks = (self.truth_only, self.prediction_only)
        choices = (
            (policies.truth, '"drop" or "singleton"'),
            (policies.prediction, '"drop", "singleton" or "outside"'),
        )
        for k, (mask, (policy, options)) in enumerate(zip(masks, choices, strict=True)):
            if policy != "raise" or mask is None or not mask.any():
                continue
            side, other, rows = self.sides[k], self.sides[1 - k], self.rows[k]
            where = np.flatnonzero(mask)
            named = side.take_items(where if rows is None else np.sort(rows[where]))
            yield k, Unmatched(side.name, where.size, len(side), named, other.name, options)

    def unweighted(self, policies: Policies) -> Unweighted | None:
        """Return the items that are scored or counted and have no weight, if there are any."""
        assert self.weight is not None
        where = lacks_weight(self.weight, policies, self.lacks_true, self.lacks_pred)
        n_items = where.size
        if not n_items:
            return None
        named: list[Any] = []
        for side, rows in zip(self.sides, self.rows, strict=True):  # those of the truth come first
            of_side = where if rows is None else rows[where]
            named += side.take_items(of_side[of_side >= 0])
            where = where[of_side < 0]
        return Unweighted("both sides", n_items, self.weight.size, named)

    def _by_policy(self, policies: Policies) -> tuple[tuple[Mask | None, Mask | None], ...]:
        """Return, for each side, the rows that it lacks and those that are alone, policies applied."""
        lacks_true, lacks_pred, alone_true, alone_pred = (
            self.lacks_true, self.lacks_pred, self.alone_true, self.alone_pred,
        )  # fmt: skip
        truth_only, prediction_only = self.truth_only, self.prediction_only
        if truth_only is not None and policies.truth == "singleton":
            alone_pred, lacks_pred = either(alone_pred, truth_only), only(lacks_pred, truth_only)
        if prediction_only is not None and policies.prediction == "singleton":
            alone_true, lacks_true = either(alone_true, prediction_only), only(lacks_true, prediction_only)
        return (lacks_true, alone_true), (lacks_pred, alone_pred)

    def needs_special_keys(self, policies: Policies) -> bool:
        """Tell whether a row is lacking or alone on a side."""
        return any(mask is not None and mask.any() for masks in self._by_policy(policies) for mask in masks)

    def finished(
        self, policies: Policies, start: int, numbers: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int | None, int | None]:
        """Return the keys of both sides, and what stands for "absent" on each if a row is.

        The key before `start` stands for rows that a side lacks; lonely ones get a key of their own from
        there on, by their number, which is their place among these rows if no numbers are given.
        """
        found: list[tuple[NDArray[np.int64], int | None]] = []
        for keys, (lacks, alone) in zip(
            (self.true_keys, self.pred_keys), self._by_policy(policies), strict=True
        ):
            lacks = lacks if lacks is not None and lacks.any() else None
            if lacks is None and (alone is None or not alone.any()):
                found.append((keys, None))
                continue
            keys, fresh = keys.copy(), np.uint64(start % 2**64)
            if alone is not None:
                rows = np.flatnonzero(alone)
                own = rows if numbers is None else numbers[rows]
                keys[rows] = (fresh + own.astype(np.uint64)).view(np.int64)
            if lacks is None:
                found.append((keys, None))
                continue
            absent = int((np.array([fresh], np.uint64) - np.uint64(1)).view(np.int64)[0])
            keys[lacks] = absent
            found.append((keys, absent))
        (true_keys, absent_true), (pred_keys, absent_pred) = found
        return true_keys, pred_keys, absent_true, absent_pred


def combine(
    true_side: Side,
    pred_side: Side,
    true_rows: Rows | None,
    pred_rows: Rows | None,
    weight: NDArray[np.float64] | None,
    total_weight: float,
) -> Combination:
    """Put two sides together whose rows have been matched.

    Parameters
    ----------
    true_side, pred_side : Side
        The sides.
    true_rows, pred_rows : ndarray of int64, shape (n_rows,), or None
        The row of each side, -1 where it lacks the item; None where rows correspond.
    weight : ndarray of float64, shape (n_rows,), or None
        Weights; NaN where none is known.
    total_weight : float
        Their sum, NaN if it is not known.
    """
    true_keys, lacks_true, alone_true = true_side.aligned(true_rows)
    pred_keys, lacks_pred, alone_pred = pred_side.aligned(pred_rows)
    truth_only, prediction_only = only(lacks_pred, lacks_true), only(lacks_true, lacks_pred)
    lacking = either(lacks_true, lacks_pred)

    def figure(mask: Mask | None) -> tuple[int, float]:
        if mask is None:
            return 0, 0.0
        n = int(np.count_nonzero(mask))
        return n, float(n) if weight is None else float(weight[mask].sum())

    truth, prediction = figure(truth_only), figure(prediction_only)
    if lacking is None:
        known = total_weight if weight is not None else float(true_keys.size)
        common = (true_keys.size, known if known == known or weight is None else float(weight.sum()))
    else:
        common = figure(~lacking)
    coverage = Coverage(
        common[0], truth[0], prediction[0], common[1], truth[1], prediction[1],
        true_side.n_null + pred_side.n_null,
        true_side.n_noise + pred_side.n_noise,
        true_side.n_duplicates + pred_side.n_duplicates,
    )  # fmt: skip
    return Combination(
        true_keys, pred_keys, lacks_true, lacks_pred, alone_true, alone_pred, weight, coverage,
        (true_side, pred_side), (true_rows, pred_rows),
    )  # fmt: skip
