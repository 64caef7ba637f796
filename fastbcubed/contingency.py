"""Contingency: the cells, both margins, and what items only one side has.

Items that share a true and a predicted cluster share one confusion matrix; such a group is a cell.
Everything after this stage is arithmetic on cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed.engines.pool import blocks
from fastbcubed.errors import ColumnError, EmptyInputError, OptionError, WeightError, first_few

if TYPE_CHECKING:
    from fastbcubed.engines.memory import Built

__all__ = ["CELL_BLOCK", "Contingency", "Rows"]

#: Cells handled at once: the arrays of one block stay in a core's cache; fixed, so sums never change.
CELL_BLOCK = 1 << 14


class Rows:
    """The items behind the cells: which cell each row is in, and its weight.

    Parameters
    ----------
    locate : callable
        Returns the cell of each row, -1 where it is not scored; called once, when first needed.
    weight : ndarray of float64, shape (n_rows,), or None
        Weight of each row; None where every item counts 1.
    n_rows : int
        Number of rows.
    """

    def __init__(
        self,
        locate: Callable[[], NDArray[np.int64]],
        weight: NDArray[np.float64] | None,
        n_rows: int,
    ) -> None:
        self._locate = locate
        self._weight = weight
        self.n_rows = n_rows

    @cached_property
    def cell(self) -> NDArray[np.int64]:
        """The cell of each row, -1 where the row is not scored. Shape (n_rows,)."""
        return self._locate()

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """The weight of each row. Shape (n_rows,)."""
        return np.ones(self.n_rows) if self._weight is None else self._weight


class Contingency:
    """The non-empty (true, predicted) pairs of clusters, with what their items share.

    Made by `fastbcubed.contingency` or `Contingency.from_cells`. All arrays are by cell, shape
    (n_cells,), or by cluster code; they are views and not to be written.

    Attributes
    ----------
    true, pred : ndarray of int
        Codes of the two clusters of each cell.
    n : ndarray of int
        Items of each cell.
    weight : ndarray of float64
        Their weight; the number of items where there are no weights.
    fp, fn : ndarray of float64
        Mates of an item of the cell in its predicted cluster alone, and in its true cluster alone: their
        weight, or their number if the weighting is outer. Exactly 0 where there are none.
    true_n, pred_n : ndarray of int
        Scored items of each cluster, by code; 0 for a cluster none of whose items is scored.
    weighted : bool
        Whether items have weights.
    weighting : {"pointwise", "outer"}
        Whether weights count inside the confusion matrices, or in means alone.
    outside : bool
        Whether items that only the prediction has are false positives of their mates.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> table = fb.contingency(list("aab"), [1, 1, 1])
    >>> table.n_items, table.n_true, table.n_pred, table.n_cells
    (3, 2, 1, 2)
    """

    def __init__(
        self,
        built: Built,
        *,
        weighted: bool,
        weighting: str = "pointwise",
        outside: bool = False,
        rows: Rows | None = None,
    ) -> None:
        self._cells = built.cells
        self.pred = built.pred
        self._true_margin = built.true_margin
        self._pred_margin = built.pred_margin
        self.weighted = weighted
        self.weighting = weighting
        self.outside = outside
        self.rows = rows
        if not self._cells.size:
            raise EmptyInputError("there is no item to score: no item is on both sides")

    @classmethod
    def from_cells(
        cls,
        true: ArrayLike,
        pred: ArrayLike,
        n: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        weighting: str = "pointwise",
    ) -> Contingency:
        """Make a contingency from its cells, such as those of a cross tabulation.

        Parameters
        ----------
        true, pred : array-like of int, shape (n_cells,)
            Codes of the two clusters, 0 or more. Equal pairs are added up.
        n : array-like of int, shape (n_cells,)
            Items of each cell, 0 or more; cells without items are left out.
        weight : array-like of float, shape (n_cells,), optional
            Weight of the items of each cell together.
        weighting : {"pointwise", "outer"}
            Whether weights count inside the confusion matrices, or in means alone.

        Returns
        -------
        Contingency

        Raises
        ------
        ColumnError
            If the lengths differ, or a code or a count is negative or not an integer.
        WeightError
            If a weight is not finite or not positive.
        EmptyInputError
            If there is no item.

        Examples
        --------
        >>> Contingency.from_cells([0, 0, 1], [0, 1, 1], [2, 1, 3]).n_items
        6
        """
        codes = [_codes(values, name) for values, name in ((true, "true"), (pred, "pred"), (n, "n"))]
        sizes = {array.size for array in codes}
        mass = None if weight is None else np.asarray(weight, np.float64)
        if mass is not None:
            sizes.add(mass.size)
        if len(sizes) > 1:
            raise ColumnError(f"cells differ in length: {sorted(sizes)} for true, pred, n, weight")
        if weighting not in ("pointwise", "outer"):
            raise OptionError(f'weighting is "pointwise" or "outer", not {weighting!r}')
        return cls(
            _from_cells(*codes, mass, outer=weighting == "outer"),
            weighted=mass is not None,
            weighting=weighting,
        )

    @property
    def true(self) -> NDArray[np.integer]:
        """Code of the true cluster of each cell."""
        return self._cells["true"]

    @property
    def n(self) -> NDArray[np.integer]:
        """Items of each cell."""
        return self._cells["n"]

    @property
    def weight(self) -> NDArray[np.float64]:
        """Weight of the items of each cell."""
        return self._cells["weight"]

    @property
    def tp(self) -> NDArray[np.float64]:
        """Mates of an item of the cell on both sides, itself included: their weight, or number."""
        return self.n.astype(np.float64) if self.weighting == "outer" else self.weight

    @property
    def fp(self) -> NDArray[np.float64]:
        """Mates on the predicted side alone: their weight, or number."""
        return self._cells["fp"]

    @property
    def fn(self) -> NDArray[np.float64]:
        """Mates on the true side alone: their weight, or number."""
        return self._cells["fn"]

    @property
    def true_n(self) -> NDArray[np.integer]:
        """Scored items of each true cluster."""
        return self._true_margin.n

    @property
    def pred_n(self) -> NDArray[np.integer]:
        """Scored items of each predicted cluster."""
        return self._pred_margin.n

    @cached_property
    def true_weight(self) -> NDArray[np.float64]:
        """Weight of the scored items of each true cluster."""
        return self._side_weight(self.true, self._true_margin)

    @cached_property
    def pred_weight(self) -> NDArray[np.float64]:
        """Weight of the scored items of each predicted cluster."""
        return self._side_weight(self.pred, self._pred_margin)

    def _side_weight(self, codes: NDArray[np.integer], margin: Any) -> NDArray[np.float64]:
        if not self.weighted:
            return np.asarray(margin.n, np.float64)
        if margin.mass is not None:
            return np.asarray(margin.mass)
        return self.add_by_cluster(codes, margin.n.size, np.ones(self.n_cells))

    def add_by_cluster(
        self, codes: NDArray[np.integer], n_codes: int, scores: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Add weight * scores of the cells by `codes`. Shape (n_codes,)."""
        from fastbcubed.kernels.sums import add_by_code

        totals, errors = np.zeros(n_codes), np.zeros(n_codes)
        add_by_code(codes, self.weight, scores, None, totals, errors)
        return totals + errors

    def only(self, side: str) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return, by cluster of this side, the items that the other side lacks: number and mass."""
        margin = self._true_margin if side == "true" else self._pred_margin
        if margin.only_n is None or margin.only_mass is None:
            return None
        return margin.only_n, margin.only_mass

    @property
    def n_cells(self) -> int:
        """Non-empty pairs of clusters."""
        return int(self._cells.size)

    @cached_property
    def n_items(self) -> int:
        """Scored items."""
        return int(self.n.sum(dtype=np.int64))

    @cached_property
    def total_weight(self) -> float:
        """Weight of the scored items."""
        if not self.weighted:
            return float(self.n_items)
        total = math.fsum(float(self.weight[a:b].sum()) for a, b in blocks(self.n_cells, CELL_BLOCK))
        if not (0 < total < math.inf):
            raise WeightError(
                f"the weights of the scored items add up to {total}; rescale them, so that the sum is "
                "positive and below 1.8e308"
            )
        return total

    @cached_property
    def n_true(self) -> int:
        """True clusters that have a scored item."""
        return int(np.count_nonzero(self.true_n))

    @cached_property
    def n_pred(self) -> int:
        """Predicted clusters that have a scored item."""
        return int(np.count_nonzero(self.pred_n))

    @cached_property
    def n_exact(self) -> int:
        """Clusters that are the same on both sides."""
        return int(np.count_nonzero((self.fp == 0) & (self.fn == 0)))

    def __repr__(self) -> str:
        """Say how large the table is."""
        return (
            f"Contingency({self.n_items:,} items, {self.n_true:,} true and {self.n_pred:,} predicted "
            f"clusters, {self.n_cells:,} cells)"
        )


def _codes(values: ArrayLike, name: str) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ColumnError(f"{name} has to be a one-dimensional array of integers, not {array.dtype}")
    if array.size and array.min() < 0:
        wrong = array[array < 0]
        raise ColumnError(f"{wrong.size} of {array.size} values of {name} are negative ({first_few(wrong.tolist())})")
    return array.astype(np.int64)


def _from_cells(
    true: NDArray[np.int64],
    pred: NDArray[np.int64],
    n: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    *,
    outer: bool,
) -> Built:
    from fastbcubed.engines.memory import WIDE_RECORDS, Built, Margin

    if weight is not None:
        bad = ~((weight > 0) & (weight < np.inf)) & (n > 0) & ~((weight == 0) & outer)
        if bad.any():
            raise WeightError(
                f"{bad.sum()} of {weight.size} weights are not positive and finite "
                f"({first_few(weight[bad].tolist())})"
            )
    keep = n > 0
    true, pred, n = true[keep], pred[keep], n[keep]
    order = np.lexsort((true, pred))
    new = np.ones(order.size, bool)
    new[1:] = (np.diff(true[order]) != 0) | (np.diff(pred[order]) != 0)
    starts = np.flatnonzero(new)
    cells = np.empty(starts.size, WIDE_RECORDS["final"])
    cells["true"], pred_codes = true[order][starts], pred[order][starts]
    cells["n"] = np.add.reduceat(n[order], starts) if starts.size else 0
    if weight is None:
        cells["weight"] = cells["n"]
    else:
        cells["weight"] = _sums(np.cumsum(new) - 1, weight[keep][order], starts.size)[0]
    margins = []
    for codes, others in ((cells["true"], "fn"), (pred_codes, "fp")):
        codes = np.ascontiguousarray(codes)
        size = int(codes.max()) + 1 if codes.size else 0
        counts = np.zeros(size, np.int64)
        np.add.at(counts, codes, cells["n"])
        own = cells["weight"] if weight is not None and not outer else cells["n"].astype(float)
        mass, rest = _sums(codes, np.ascontiguousarray(own), size)
        cells[others] = (mass[codes] - own) + rest[codes]
        if weight is None or outer:
            cells[others] = counts[codes] - cells["n"]
        margins.append(Margin(counts, mass if weight is not None and not outer else None, None, None))
    return Built(cells, np.ascontiguousarray(pred_codes), *margins)


def _sums(
    codes: NDArray[np.integer], values: NDArray[np.float64], size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from fastbcubed.kernels.sums import add_by_code

    totals, errors = np.zeros(size), np.zeros(size)
    add_by_code(codes, values, np.ones(values.size), None, totals, errors)
    return totals, errors
