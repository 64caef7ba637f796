"""Confusion: tp, fp, fn and tn of each cell, from the cells and margins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import MetricError
from fastbcubed.runtime.cached import cached_property


class Confusion(NamedTuple):
    """The pointwise confusion matrices of some cells; each array has one entry per cell."""

    tp: NDArray[np.float64]
    fp: NDArray[np.float64]
    fn: NDArray[np.float64]
    tn: NDArray[np.float64] | None


def confusion(
    contingency: Contingency, start: int = 0, stop: int | None = None, *, tn: TrueNegatives | None = None
) -> Confusion:
    """Return the confusion matrix that the items of each cell share.

    An item's true positives are its mates on both sides, itself included.
    """
    cells = slice(start, stop)
    own = contingency.n if contingency.weighting == "outer" else contingency.weight
    tp = np.ascontiguousarray(own[cells], np.float64)
    fp = np.ascontiguousarray(contingency.fp[cells])
    fn = np.ascontiguousarray(contingency.fn[cells])
    return Confusion(tp, fp, fn, None if tn is None else tn(start, stop))


class TrueNegatives:
    """The true negatives of cells: items in neither cluster, N - (tp + fp + fn), without cancellation.

    With weights of very different size that subtraction can lose every digit, though only where one
    cluster, or one cell's two clusters together, hold nearly all of the weight. Those few are added up
    from the other clusters and cells instead. Whether there is any such item is decided by counts.
    """

    #: Where less than this share of the larger operand is left, the sum is done anew.
    SUSPICIOUS = 2.0**-12

    def __init__(self, contingency: Contingency) -> None:
        if contingency.outside:
            raise MetricError(
                'scores that need the true negatives are not defined with unmatched="outside", where '
                "the items outside the labelled clusters are not all known"
            )
        self._table = contingency
        self._plain = not contingency.weighted or contingency.weighting == "outer"

    @cached_property
    def _total(self) -> float:
        table = self._table
        return float(table.n_items) if self._plain else table.total_weight

    @cached_property
    def _beside(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """The heaviest cluster of each side, and the weight of all others of that side."""
        found = []
        for weight in (self._table.true_weight, self._table.pred_weight):
            code = int(np.argmax(weight))
            found.append((code, float(weight[:code].sum() + weight[code + 1 :].sum())))
        return found[0], found[1]

    def __call__(self, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """Return the true negatives of a range of cells. Shape (stop - start,)."""
        table = self._table
        cells = slice(start, stop)
        if table.known_tn is not None:
            return table.known_tn[cells]
        n, true, pred = table.n[cells], table.true[cells], table.pred[cells]
        union = table.true_n[true].astype(np.int64) + table.pred_n[pred] - n
        left = table.n_items - union
        if self._plain:
            return left.astype(np.float64)
        tp, fp, fn = table.weight[cells], table.fp[cells], table.fn[cells]
        beside_true = self._total - (tp + fn)
        beside_pred = self._total - (tp + fp)
        for beside, codes, (heaviest, others) in zip(
            (beside_true, beside_pred), (true, pred), self._beside, strict=True
        ):
            beside[codes == heaviest] = others
        smaller = np.minimum(beside_true, beside_pred)
        tn = np.where(beside_true <= beside_pred, beside_true - fp, beside_pred - fn)
        for k in np.flatnonzero((tn < self.SUSPICIOUS * smaller) & (left > 0)):
            others = (table.true != true[k]) & (table.pred != pred[k])
            tn[k] = table.weight[others].sum()
        tn[left == 0] = 0.0
        return tn
