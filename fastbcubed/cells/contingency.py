"""Contingency: the cells, both margins, and what items only one side has.

Items that share a true and a predicted cluster share one confusion matrix; such a group is a cell.
Everything after this stage is arithmetic on cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed import kernels
from fastbcubed.cells.one_sided import OneSided, set_aside
from fastbcubed.cells.records import SIDES, add_up, as_counts, as_masses, require_squares, tabulate
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.errors import ColumnError, EmptyInputError, OptionError, WeightError
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.choices import is_one_of
from fastbcubed.runtime.completion import documented
from fastbcubed.runtime.pool import Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.cells.stages import Built

Made = TypeVar("Made")

#: Cells handled at once: the arrays of one block stay in a core's cache; fixed, so sums never change.
CELL_BLOCK = 1 << 13
#: Blocks of cells handled by one task of a pool.
BLOCKS_AT_ONCE = 32
#: Pairs of cells that are compared without being told to.
MAX_PAIRS = 1e10


class Contingency:
    """The non-empty (true, predicted) pairs of clusters, with what their items share.

    Made by `fastbcubed.contingency` or `Contingency.from_cells`. All arrays are by cell, shape
    (n_cells,), or by cluster code; they are views and not to be written.

    Attributes
    ----------
    cells : ndarray of records like CELL
        All there is to know of each cell, side by side, but for the code of its predicted cluster.
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
    parts : ndarray of int64, shape (n_parts + 1,)
        Where parts of the cells begin that have predicted clusters of their own.
    tp : ndarray of float64
        Mates of an item of the cell on both sides, itself included.
    n_items, n_cells, n_true, n_pred : int
        Scored items, cells, and clusters of each side that have a scored item.
    total_weight : float
        Weight of the scored items.
    overlapping : bool
        Whether clusters may overlap.
    pair_weight : float or None
        Products of the weights of two items of a cell, added up, where that is known without `rows`.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> table = fb.contingency(list("aab"), [1, 1, 1])
    >>> table.n_items, table.n_true, table.n_pred, table.n_cells
    (3, 2, 1, 2)
    """

    overlapping = False  #: whether items may be in several clusters of a side
    max_pairs = MAX_PAIRS  #: pairs of cells that a score may compare
    known_means: Mapping[tuple[str, str], float] = MappingProxyType({})  #: over clusters, by side and score
    known_scores: Mapping[str, NDArray[np.float64]] = MappingProxyType({})  #: by cell, as `CellMeans`
    recall_if_alone: float | None = None  #: see `IfAlone`; None where it is not known

    def __init__(
        self,
        cells: np.ndarray,
        pred: Callable[[], NDArray[np.integer]],
        sizes: tuple[int, int],
        *,
        weighted: bool,
        weighting: str = "pointwise",
        outside: bool = False,
        one_sided: Mapping[str, OneSided] | None = None,
        rows: ScoredRows | None = None,
        parts: NDArray[np.int64] | None = None,
        complete: bool = False,
        pair_weight: float | None = None,
    ) -> None:
        if not cells.size:
            raise EmptyInputError("there is no item to score: no item is on both sides")
        self.cells = cells
        self._make_pred = pred
        self.n_codes = dict(zip(SIDES, sizes, strict=True))
        self.weighted = weighted
        self.weighting = weighting
        self.outside = outside
        self._one_sided = one_sided or {}
        self.rows = rows
        self.parts = np.array([0, cells.size]) if parts is None else parts
        self._complete = complete
        self.pair_weight = pair_weight
        self.known_tn: NDArray[np.float64] | None = None  # where not all cells are here
        self._made: dict[Callable[..., Any], Any] = {}

    @classmethod
    def from_built(
        cls,
        built: Built,
        *,
        weighted: bool,
        weighting: str = "pointwise",
        outside: bool = False,
        locate: Callable[[], NDArray[np.int64]] | None = None,
        weight: NDArray[np.float64] | None = None,
        n_rows: int = 0,
    ) -> Contingency:
        """Take over what an engine has built; cells with items of one side alone are set aside.

        `locate` returns the cell of each row among those built; `weight` and `n_rows` are those of the rows.
        """
        apart = set_aside(built, outer=weighting == "outer")
        find = locate
        if locate is not None and apart.kept is not None:
            number = np.where(apart.kept, np.cumsum(apart.kept) - 1, -1)
            find = lambda: number[locate()]  # noqa: E731
        return cls(
            apart.cells,
            apart.pred,
            (built.n_true, int(built.pred_base[-1])),
            weighted=weighted,
            weighting=weighting,
            outside=outside,
            one_sided=apart.one_sided,
            rows=None if find is None else ScoredRows(find, weight, n_rows),
            parts=apart.bounds,
            complete=not built.has_one_sided,
        )

    @classmethod
    def from_cells(
        cls,
        true: ArrayLike,
        pred: ArrayLike,
        n: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        weight_squares: ArrayLike | None = None,
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
        weight_squares : array-like of float, shape (n_cells,), optional
            Sum of the squares of these weights, item by item; scores of pairs of items need it.
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
            If a weight is not finite or not positive, or a square is negative.
        EmptyInputError
            If there is no item.

        Examples
        --------
        >>> Contingency.from_cells([0, 0, 1], [0, 1, 1], [2, 1, 3]).n_items
        6
        """
        table = as_counts(true, "true"), as_counts(pred, "pred"), as_counts(n, "n")
        sizes = {array.size for array in table}
        mass = None if weight is None else as_masses(weight, "weight")
        squares = None if weight_squares is None else as_masses(weight_squares, "weight_squares")
        require_squares(squares, mass)
        sizes |= {array.size for array in (mass, squares) if array is not None}
        if len(sizes) > 1:
            raise ColumnError(f"cells differ in length: {sorted(sizes)} in the arrays given")
        if not is_one_of(weighting, ("pointwise", "outer")):
            raise OptionError(f'weighting is "pointwise" or "outer", not {weighting!r}')
        cells, pred_codes, n_codes = tabulate(*table, mass, outer=weighting == "outer")
        pair_weight = None
        if squares is not None:
            terms = [*(cells["weight"] ** 2).tolist(), *(-squares[table[2] > 0]).tolist()]
            pair_weight = max(0.0, math.fsum(terms)) / 2 if (cells["n"] > 1).any() else 0.0
        how: dict[str, Any] = {"weighted": mass is not None, "weighting": weighting}
        return cls(cells, lambda: pred_codes, n_codes, **how, pair_weight=pair_weight)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "pred": self.pred, "_make_pred": None, "_made": {}}

    @property
    def true(self) -> NDArray[np.integer]:
        """Code of the true cluster of each cell."""
        return self.cells["true"]

    @property
    def n(self) -> NDArray[np.integer]:
        """Items of each cell."""
        return self.cells["n"]

    @property
    def weight(self) -> NDArray[np.float64]:
        """Weight of the items of each cell."""
        return self.cells["weight"]

    @property
    def tp(self) -> NDArray[np.float64]:
        """Mates of an item of the cell on both sides, itself included: their weight, or number."""
        return self.n.astype(np.float64) if self.weighting == "outer" else self.weight

    @property
    def fp(self) -> NDArray[np.float64]:
        """Mates on the predicted side alone: their weight, or number."""
        return self.cells["fp"]

    @property
    def fn(self) -> NDArray[np.float64]:
        """Mates on the true side alone: their weight, or number."""
        return self.cells["fn"]

    @cached_property
    def pred(self) -> NDArray[np.integer]:
        """Code of the predicted cluster of each cell."""
        return self._make_pred()

    @cached_property
    def true_n(self) -> NDArray[np.int64]:
        """Scored items of each true cluster."""
        return self._count("true")

    @cached_property
    def pred_n(self) -> NDArray[np.int64]:
        """Scored items of each predicted cluster."""
        return self._count("pred")

    @cached_property
    def true_weight(self) -> NDArray[np.float64]:
        """Weight of the scored items of each true cluster."""
        return self._weigh("true")

    @cached_property
    def pred_weight(self) -> NDArray[np.float64]:
        """Weight of the scored items of each predicted cluster."""
        return self._weigh("pred")

    def codes(self, side: str) -> tuple[NDArray[np.integer], int]:
        """Return the code of each cell on this side, and how many codes there are."""
        return np.ascontiguousarray(self.true if side == "true" else self.pred), self.n_codes[side]

    def _count(self, side: str) -> NDArray[np.int64]:
        codes, size = self.codes(side)
        counts = np.zeros(size, np.int64)
        kernels.sums.count_by_code(codes, self.n, counts)
        return counts

    def _weigh(self, side: str) -> NDArray[np.float64]:
        if not self.weighted:
            return self._count(side).astype(np.float64)
        return self.add_by_cluster(*self.codes(side), np.ones(self.n_cells))

    def add_by_cluster(
        self, codes: NDArray[np.integer], n_codes: int, scores: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Add weight * scores of the cells by `codes`. Shape (n_codes,)."""
        totals, errors = add_up(codes, n_codes, self.weight, scores)
        return totals + errors

    def memberships(self, side: str) -> tuple[NDArray[np.integer], int, NDArray[np.int64] | None]:
        """Return clusters of this side, how many there are, and the cell of each; None if they are cell by cell."""
        return *self.codes(side), None

    def n_met(self, side: str) -> NDArray[np.int64]:
        """Return how many clusters of the other side each cluster meets."""
        codes, size = self.codes(side)
        return np.bincount(codes, minlength=size)

    def exact(self, side: str) -> NDArray[np.bool_]:
        """Return which clusters of a side are the same as one of the other side."""
        codes, size = self.codes(side)
        return np.bincount(codes[(self.fp != 0) | (self.fn != 0)], minlength=size) == 0

    def unlabelled_mates(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.integer]] | None:
        """Return number and mass of mates that only the prediction has, and for each cell where its stand; or None."""
        only = self.only("pred")
        return None if only is None else (*only, self.pred)

    def only(self, side: str) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return, by cluster of this side, the items that the other side lacks: number and mass."""
        if side not in self._one_sided:
            return None
        alone = self._one_sided[side]
        size = self.n_codes[side]
        counts = np.bincount(alone.codes, alone.n, size).astype(np.int64)
        return counts, np.bincount(alone.codes, alone.mass, size).astype(np.float64)

    def alone(self, side: str) -> OneSided | None:
        """Return the items that the other side lacks as they were counted; None if there are none."""
        return self._one_sided.get(side)

    def mates(self, side: str) -> NDArray[np.integer]:
        """Return, by cell, the items in its cluster of this side."""
        codes, _ = self.codes(side)
        sizes = self.true_n if side == "true" else self.pred_n
        only = self.only("pred") if side == "pred" and self.outside else None
        return (sizes if only is None else sizes + only[0])[codes]

    def among_others(
        self, others: NDArray[np.float64], cells: NDArray[np.int64] | slice
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return tp, fp, fn of items without the items themselves; `others` is what the cell of each holds besides."""
        return others, np.ascontiguousarray(self.fp[cells]), np.ascontiguousarray(self.fn[cells])

    def once(self, make: Callable[[Contingency, Pool], Made], pool: Pool) -> Made:
        """Return make(self, pool), which is called once: several scores come from what it returns."""
        if make not in self._made:
            self._made[make] = make(self, pool)
        return self._made[make]

    def map(self, function: Callable[[int, int], Made], pool: Pool, stage: str = "score cells") -> list[Made]:
        """Return function(start, stop) of consecutive ranges of cells, whatever the number of threads."""
        starts, stops = zip(*blocks(self.n_cells, CELL_BLOCK * BLOCKS_AT_ONCE), strict=True)
        return pool.map(function, starts, stops, stage=stage)

    @property
    def n_cells(self) -> int:
        """Non-empty pairs of clusters."""
        return int(self.cells.size)

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

    @property
    def is_complete(self) -> bool:
        """Whether every cluster is known to have a scored item."""
        return self._complete

    @cached_property
    def n_true(self) -> int:
        """True clusters that have a scored item."""
        return self.n_codes["true"] if self._complete else int(np.count_nonzero(self.true_n))

    @cached_property
    def n_pred(self) -> int:
        """Predicted clusters that have a scored item."""
        return self.n_codes["pred"] if self._complete else int(np.count_nonzero(self.pred_n))

    @cached_property
    def n_exact(self) -> int:
        """Clusters that are the same on both sides."""
        return int(np.count_nonzero((self.fp == 0) & (self.fn == 0)))

    def count_exact(self, side: str) -> int:
        """Count the clusters of a side that are the same as one of the other side."""
        return self.n_exact

    __dir__ = documented

    def __repr__(self) -> str:
        """Say how large the table is."""
        return (
            f"Contingency({self.n_items:,} items, {self.n_true:,} true and {self.n_pred:,} predicted "
            f"clusters, {self.n_cells:,} cells)"
        )
