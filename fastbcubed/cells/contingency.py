"""Cells as records, their construction from a cross tabulation, and the contingency table made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed import kernels
from fastbcubed.errors import (
    ColumnError,
    EmptyInputError,
    FastBCubedError,
    MetricError,
    OptionError,
    SliceError,
    WeightError,
    arg,
    first_few,
    quoted,
)
from fastbcubed.inputs.arrays import is_pandas, is_sparse, to_numpy
from fastbcubed.inputs.files import as_rows
from fastbcubed.inputs.tables import read_columns
from fastbcubed.runtime import buffers
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.object_attributes import cached_property, documented
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes

if TYPE_CHECKING:
    from fastbcubed.cells.partitioned import Built

#: A cell, except for its predicted cluster. Engines may use 32 bits for counts and codes.
CELL = np.dtype([("fp", "f8"), ("weight", "f8"), ("fn", "f8"), ("true", "i8"), ("n", "i8")])

SIDES = ("true", "pred")
#: Counts must fit 64-bit integers; this limit leaves room for rounding in the check.
MOST_ITEMS = 2.0**63
#: Weights below the first bound have a finite square; weights above the second might sum to infinity.
ROOT, LARGEST = 1e150, 1e290


def side_of(side: object) -> str:
    """Return "true" or "pred" for a name of a side; "truth" and "prediction" are accepted as well."""
    meant = {"true": "true", "truth": "true", "pred": "pred", "prediction": "pred"}
    if not isinstance(side, str) or side not in meant:
        raise SliceError(f'side must be "true" or "pred", not {quoted(side)}')
    return meant[side]


def as_counts(values: ArrayLike, name: str) -> NDArray[np.int64]:
    """Return codes or counts as int64; raise ColumnError for invalid ones."""
    array = _as_array(values, name, ColumnError)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ColumnError(f"{name} must be a one-dimensional array of integers, not {array.dtype}")
    if array.size and array.min() < 0:
        wrong = array[array < 0]
        raise ColumnError(
            f"{wrong.size} of {array.size} values of {name} are negative ({first_few(wrong.tolist())})"
        )
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise ColumnError(
            f"a value of {name} is {array.max()}, which does not fit in a signed 64-bit integer"
        )
    if name != "n" and array.size and array.max() > 16 * array.size + (1 << 20):
        raise ColumnError(
            f"the codes of {name} go up to {array.max()} for {array.size} cells; number the clusters "
            "consecutively from 0"
        )
    return array.astype(np.int64)


#: Columns of a table of cells, named as in `Evaluation.cells`: the clusters, and the number of items.
CELL_COLUMNS = ("true_cluster", "pred_cluster", "n_items")


def as_cells(given: Any) -> Contingency:
    """Return the contingency given as such, as a matrix of counts, or as a table of cells.

    A matrix has true clusters in rows, and is dense, sparse, or a frame of counts; a table has the `CELL_COLUMNS`.
    """
    if isinstance(given, Contingency):
        return given
    if is_sparse(given):
        cells = given.tocoo()
        if cells.ndim == 2:
            return Contingency.from_cells(cells.row, cells.col, cells.data)
    elif (rows := as_rows(given, "contingency")) is not None:
        if set(CELL_COLUMNS) <= set(rows.names):
            columns, _ = read_columns(rows, [[name] for name in CELL_COLUMNS[:2]])
            true, pred = (np.unique(column.keys(), return_inverse=True)[1] for column in columns)
            return Contingency.from_cells(true, pred, to_numpy(rows.column(CELL_COLUMNS[2])))
        if is_pandas(given, "DataFrame"):
            return as_cells(given.to_numpy())
    elif isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype.kind in "iu":
        true, pred = np.nonzero(given)
        return Contingency.from_cells(true, pred, given[true, pred])
    raise OptionError(
        f"contingency has type {type(given).__name__}. Create a Contingency with "
        "fastbcubed.contingency(labels_true, labels_pred), or with Contingency.from_cells; or pass a "
        "matrix of counts with the true clusters in rows, or a table with the columns "
        f"{', '.join(CELL_COLUMNS)}."
    )


def as_masses(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return weights as float64; raise WeightError for invalid ones."""
    array = _as_array(values, name, WeightError)
    if array.ndim != 1 or array.dtype.kind not in "buif":
        raise WeightError(f"{name} must be a one-dimensional array of numbers, not {array.dtype}")
    found = np.ascontiguousarray(array, np.float64)
    if (np.abs(found) > LARGEST).any() and np.isfinite(found).all():
        raise WeightError(f"{name} has values beyond {LARGEST:g}, whose sum could overflow; rescale them")
    return found


#: Relative tolerance, for rounding, of the bounds on sums of squared weights.
ROUNDING = 1e-9


def require_squares(
    squares: NDArray[np.float64] | None, mass: NDArray[np.float64] | None, n: NDArray[np.int64]
) -> None:
    """Raise WeightError for sums of squared weights that are impossible or come without weights.

    The squares of n positive weights sum to at most the square of their sum, and to at least that divided by n.
    """
    if squares is None:
        return
    if mass is None or not (squares >= 0).all():
        raise WeightError("weight_squares requires weight, and its values must be neither negative nor NaN")
    if not max(mass.max(initial=0), squares.max(initial=0) ** 0.5) < ROOT:
        raise WeightError(f"a weight is {ROOT:g} or more, too large to weight pairs; rescale the weights")
    most = mass**2
    wrong = np.flatnonzero(
        (n > 0) & ((squares > most * (1 + ROUNDING)) | (squares * n < most * (1 - ROUNDING)))
    )
    if wrong.size:
        k = wrong[0]
        raise WeightError(
            f"weight_squares are impossible in {wrong.size} of {n.size} cells (first: cell {k}, with "
            f"{squares[k]:g}; {n[k]} item{'s' * int(n[k] != 1)} with a total weight of {mass[k]:g} allow "
            f"{most[k] / n[k]:g} to {most[k]:g}). Sum the squared weights of the items in each cell"
        )


def _as_array(values: ArrayLike, name: str, error: type[FastBCubedError]) -> np.ndarray:
    if isinstance(values, list | tuple) and any(value is np.ma.masked for value in values):
        raise error(f"{name} must be a one-dimensional array of numbers without masked values")
    try:
        return np.asarray(values)
    except (OverflowError, TypeError, ValueError) as reason:
        raise error(f"{name} must be a one-dimensional array of numbers: {reason}") from reason


def tabulate(
    true: NDArray[np.int64],
    pred: NDArray[np.int64],
    n: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    *,
    outer: bool,
) -> tuple[np.ndarray, NDArray[np.int64], tuple[int, int]]:
    """Return the records of the cells, their predicted codes, and the number of codes of each side.

    Repeated pairs of codes are summed, and cells without items dropped.
    """
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
    """Return the sums of values * factors by code, and their rounding errors. Shape (size,) each."""
    totals, errors = np.zeros(size), np.zeros(size)
    kernels.sums.add_by_code(codes, values, factors, None, totals, errors)
    return totals, errors


def add_products(weight: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Return the sum of weight * value: the exact sum of plain sums over runs of fixed length."""
    products = np.empty(-(-weight.size // kernels.partition.RUN))
    kernels.partition.sum_products(weight, values, products)
    return math.fsum(products.tolist())


class ScoredRows:
    """The items behind the cells: the cell and the weight of each row."""

    #: the weight of the other items in each row's cell, if known
    others: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, cell: NDArray[np.int64], weight: NDArray[np.float64] | None) -> ScoredRows:
        """Return rows whose cells are already computed."""
        return cls(lambda: cell, weight, cell.size)

    def __init__(
        self,
        locate: Callable[[], NDArray[np.int64]],
        weight: NDArray[np.float64] | None,
        n_rows: int,
        count: Callable[[], NDArray[np.int64]] | None = None,
        first: Callable[[], NDArray[np.int64]] | None = None,
    ) -> None:
        """Store rows; `locate`, `count` and `first` compute `cell`, `n` (1 if None) and `first_of` when needed."""
        self._locate = locate
        self._weight = weight
        self.n_rows = n_rows
        self._count = count
        self._first = first

    def __reduce__(self) -> tuple[Any, ...]:
        return ScoredRows.of, (self.cell, self._weight)

    @cached_property
    def cell(self) -> NDArray[np.int64]:
        """The cell of each row, -1 where the row is not scored. Shape (n_rows,)."""
        return self._locate()

    def first_of(self, n_cells: int) -> NDArray[np.int64]:
        """Return the first row of each cell. Shape (n_cells,)."""
        if self._first is not None and "cell" not in self.__dict__:
            return self._first()
        found = np.empty(n_cells, np.int64)
        for start, stop in reversed(blocks(self.n_rows)):
            cell = self.cell[start:stop]
            rows = np.flatnonzero(cell >= 0)[::-1]
            found[cell[rows]] = rows + start
        return found

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """The weight of each row. Shape (n_rows,)."""
        return np.ones(self.n_rows) if self._weight is None else self._weight

    def in_cells(self, chosen: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows in the chosen cells, ascending, and the cell of each row. Shape of `chosen`: (n_cells,)."""
        parts = [np.zeros((2, 0), np.int64)]
        for first, cell in self.stretches():
            found = np.flatnonzero(chosen[cell] & (cell >= 0))
            parts.append(np.stack([found + first, cell[found]]))
        rows, cells = np.concatenate(parts, axis=1)
        return rows, cells

    def stretches(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the first row and the cells of consecutive blocks of rows."""
        for start, stop in blocks(self.n_rows):
            yield start, self.cell[start:stop]

    def numbers(self, n_cells: int, of_cell: Codes | None = None) -> Codes:
        """Return each row's cell (with `of_cell`, the cell's number); -1 for unscored rows. Shape (n_rows,)."""
        found: Codes = np.empty(self.n_rows, np.int32 if n_cells < 2**31 else np.int64)
        for first, cell in self.stretches():  # as cells in a file take eight bytes each
            found[first : first + cell.size] = (
                cell if of_cell is None else np.where(cell < 0, -1, of_cell[cell])
            )
        return found

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of the given rows."""
        return self.weight[rows]

    @cached_property
    def n(self) -> NDArray[np.int64]:
        """The number of items of each row. Shape (n_rows,)."""
        return np.ones(self.n_rows, np.int64) if self._count is None else self._count()


class OneSided(NamedTuple):
    """Items that only one side has, by cluster of that side: code, number of items, weight (number if outer)."""

    codes: NDArray[np.integer]
    n: NDArray[np.integer]
    mass: NDArray[np.float64]


class SetAside(NamedTuple):
    """Cells whose items are on both sides, and the items of each side that the other side lacks."""

    cells: np.ndarray  #: the two-sided cells
    pred: Callable[[], NDArray[np.integer]]  #: returns the codes of their predicted clusters
    one_sided: Mapping[str, OneSided]  #: the one-sided items by side
    kept: NDArray[np.bool_] | None  #: mask of the built cells that are two-sided; None if all are
    bounds: NDArray[np.int64]  #: where the parts of the two-sided cells begin


def set_aside(built: Built, *, outer: bool) -> SetAside:
    """Separate the cells whose items only one side has from the others."""

    def codes(kept: Any = slice(None)) -> NDArray[np.integer]:
        pred = buffers.empty(built.pred_in_part.size, built.pred_in_part.dtype)
        base = built.pred_base.astype(pred.dtype)
        for first, start, stop in zip(base, built.bounds, built.bounds[1:], strict=False):
            np.add(built.pred_in_part[start:stop], first, out=pred[start:stop])
        if built.has_one_sided:
            pred[built.pred_in_part < 0] = -1
        return np.asarray(pred[kept])

    cells, everything = built.cells, SetAside(built.cells, codes, {}, None, built.bounds)
    if not built.has_one_sided:
        return everything
    there = {"true": cells["true"] >= 0, "pred": built.pred_in_part >= 0}
    kept = there["true"] & there["pred"]
    if kept.all():
        return everything
    every = {"true": cells["true"], "pred": codes()}
    mass = cells["n"].astype(np.float64) if outer else cells["weight"]
    one_sided = {}
    for side, other in (SIDES, SIDES[::-1]):
        alone = there[side] & ~there[other]
        if alone.any():
            one_sided[side] = OneSided(every[side][alone], cells["n"][alone], mass[alone])
    bounds = np.append(0, np.cumsum(kept))[built.bounds]
    return SetAside(cells[kept], lambda: codes(kept), one_sided, kept, bounds)


Made = TypeVar("Made")

#: Number of cells in a block, whose arrays stay in a core's cache; fixed, so that sums never change.
CELL_BLOCK = 1 << 13
#: Number of blocks of cells per task of a pool.
BLOCKS_AT_ONCE = 32
#: Number of cells saved at a time.
CELLS_IN_BATCH = 1 << 20
#: Default limit on the number of pairs of cells that are compared.
MAX_PAIRS = 1e10


class Contingency:
    """The cells of a contingency table: pairs of a true and a predicted cluster that share items, with their counts.

    Use `fastbcubed.contingency` or `Contingency.from_cells` to create a contingency table. Arrays have one entry per
    cell, with shape (n_cells,), or one per cluster code. The arrays are views and must not be modified.

    Attributes
    ----------
    cells : ndarray of records like CELL
        The fields of each cell, except for the code of its predicted cluster.
    true, pred : ndarray of int
        Codes of the two clusters of each cell.
    n : ndarray of int
        Number of items of each cell.
    weight : ndarray of float64
        Total weight of the items of each cell, or the number of items if items have no weights.
    fp, fn : ndarray of float64
        For an item of each cell, the weight of the items that share only the item's predicted cluster (fp) or only its
        true cluster (fn); exactly 0 if there are no such items. With outer weighting, fp and fn are numbers of items.
    true_n, pred_n : ndarray of int
        Number of scored items of each cluster, by code; 0 for a cluster without scored items.
    weighted : bool
        Whether items have weights.
    weighting : {"pointwise", "outer"}
        Whether weights count both inside the confusion matrices and in means ("pointwise"), or only in means ("outer").
    outside : bool
        Whether prediction-only items are false positives for the items they are clustered with.
    parts : ndarray of int64, shape (n_parts + 1,)
        Index of the first cell of each part, followed by the number of cells. No predicted cluster has cells in two
        parts.
    tp : ndarray of float64
        For an item of each cell, the weight of the items that share both of its clusters, including the item itself.
        With outer weighting, tp is a number of items.
    n_items, n_cells, n_true, n_pred : int
        Numbers of scored items, of cells, and of true and predicted clusters with a scored item.
    total_weight : float
        Total weight of the scored items.
    overlapping : bool
        Whether clusters may overlap.
    pair_weight : float or None
        Sum, over all pairs of items in the same cell, of the product of the two items' weights; None if unknown.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> table = fb.contingency(list("aab"), [1, 1, 1])
    >>> table.n_items, table.n_true, table.n_pred, table.n_cells
    (3, 2, 1, 2)
    """

    has_cells = True  #: whether the cells were kept
    overlapping = False  #: whether items may be in several clusters of a side
    max_pairs = MAX_PAIRS  #: limit on the number of pairs of cells that a score may compare
    known_scores: Mapping[str, NDArray[np.float64]] = MappingProxyType({})  #: means by cell; see `CellMeans`
    recall_if_alone: float | None = None  #: see `IfAlone`; None if unknown
    cluster_keys: Mapping[str, NDArray[np.int64]] | None = None  #: mixed keys by side and code, if kept

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
        tn: NDArray[np.float64] | None = None,
        mates: Callable[[str], NDArray[np.integer]] | None = None,
        unlabelled: Callable[[], tuple[NDArray[np.int64], NDArray[np.float64]]] | None = None,
    ) -> None:
        """Store the cells; if these are only some, `tn`, `mates` and `unlabelled` tell what they need of the others."""
        if not cells.size:
            raise EmptyInputError("there is no item to score: no item is on both sides")
        self.cells = cells
        self.n_cells = int(cells.size)  #: number of pairs of clusters that share items
        self._make_pred = pred
        self.n_codes = dict(zip(SIDES, sizes, strict=True))
        self.weighted = weighted
        self.weighting = weighting
        self.outside = outside
        self._one_sided = one_sided or {}
        self.rows = rows
        self.parts = np.array([0, cells.size]) if parts is None else parts
        self.is_complete = complete  #: whether every cluster is known to have a scored item
        self.pair_weight = pair_weight
        self.known_tn, self._mates, self._unlabelled_mates = tn, mates, unlabelled
        self._made: dict[Callable[..., Any], Any] = {}

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
        """Create a contingency table from its cells, such as the cells of a cross tabulation.

        Parameters
        ----------
        true, pred : array-like of int, shape (n_cells,)
            Nonnegative codes of the two clusters of each cell. Cells with equal codes are summed.
        n : array-like of int, shape (n_cells,)
            Nonnegative number of items of each cell; cells without items are dropped.
        weight : array-like of float, shape (n_cells,), optional
            Total weight of the items of each cell.
        weight_squares : array-like of float, shape (n_cells,), optional
            Sum of the squared weights of the items of each cell; pair scores of weighted cells require these sums.
        weighting : {"pointwise", "outer"}
            Whether weights count both inside the confusion matrices and in means ("pointwise"), or only in means
            ("outer").

        Returns
        -------
        Contingency

        Raises
        ------
        ColumnError
            If the arrays differ in length, or a code or a count is negative or not an integer.
        WeightError
            If a weight is not finite and positive, or if no positive weights have both the sums `weight` and the sums
            of squares `weight_squares`.
        EmptyInputError
            If there are no items.

        Examples
        --------
        >>> Contingency.from_cells([0, 0, 1], [0, 1, 1], [2, 1, 3]).n_items
        6
        """
        table = as_counts(true, "true"), as_counts(pred, "pred"), as_counts(n, "n")
        sizes = {array.size for array in table}
        mass = None if weight is None else as_masses(weight, "weight")
        squares = None if weight_squares is None else as_masses(weight_squares, "weight_squares")
        sizes |= {array.size for array in (mass, squares) if array is not None}
        if len(sizes) > 1:
            raise ColumnError(f"the arrays of cells differ in length: {sorted(sizes)}")
        require_squares(squares, mass, table[2])
        if not is_one_of(weighting, ("pointwise", "outer")):
            raise OptionError(f'{arg("weighting")} must be "pointwise" or "outer", not {quoted(weighting)}')
        cells, pred_codes, n_codes = tabulate(*table, mass, outer=weighting == "outer")
        pair_weight = None
        if squares is not None:
            terms = [*(cells["weight"] ** 2).tolist(), *(-squares[table[2] > 0]).tolist()]
            pair_weight = max(0.0, math.fsum(terms)) / 2 if (cells["n"] > 1).any() else 0.0
        how: dict[str, Any] = {"weighted": mass is not None, "weighting": weighting}
        return cls(cells, lambda: pred_codes, n_codes, **how, pair_weight=pair_weight)

    @property
    def how(self) -> dict[str, Any]:
        """The settings of the scores: how weights and prediction-only items count, and whether clusters may overlap."""
        names = ("weighted", "weighting", "outside", "overlapping")
        return {name: getattr(self, name) for name in names}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "pred": self.pred, "_make_pred": None, "_made": {}}

    @property
    def true(self) -> NDArray[np.integer]:
        """The code of the true cluster of each cell."""
        return self.cells["true"]

    @property
    def n(self) -> NDArray[np.integer]:
        """The number of items of each cell."""
        return self.cells["n"]

    @property
    def weight(self) -> NDArray[np.float64]:
        """The total weight of the items of each cell."""
        return self.cells["weight"]

    @property
    def tp(self) -> NDArray[np.float64]:
        """Weight (number if outer) of the items in both clusters of an item of the cell, including the item itself."""
        return self.n.astype(np.float64) if self.weighting == "outer" else self.weight

    @property
    def fp(self) -> NDArray[np.float64]:
        """Weight (number if outer) of the items that share only the predicted cluster with an item of the cell."""
        return self.cells["fp"]

    @property
    def fn(self) -> NDArray[np.float64]:
        """Weight (number if outer) of the items that share only the true cluster with an item of the cell."""
        return self.cells["fn"]

    @cached_property
    def pred(self) -> NDArray[np.integer]:
        """The code of the predicted cluster of each cell."""
        return self._make_pred()

    @cached_property
    def true_n(self) -> NDArray[np.int64]:
        """The number of scored items of each true cluster."""
        return self._count("true")

    @cached_property
    def pred_n(self) -> NDArray[np.int64]:
        """The number of scored items of each predicted cluster."""
        return self._count("pred")

    @cached_property
    def true_weight(self) -> NDArray[np.float64]:
        """The total weight of the scored items of each true cluster."""
        return self._weigh("true")

    @cached_property
    def pred_weight(self) -> NDArray[np.float64]:
        """The total weight of the scored items of each predicted cluster."""
        return self._weigh("pred")

    def codes(self, side: str) -> tuple[NDArray[np.integer], int]:
        """Return the code of each cell's cluster on a side, and the number of codes of that side."""
        return np.ascontiguousarray(self.cells["true"] if side == "true" else self.pred), self.n_codes[side]

    def codes_in_blocks(self) -> Iterator[tuple[int, NDArray[np.integer], NDArray[np.integer]]]:
        """Yield the first cell, the true codes and the predicted codes of consecutive blocks of cells."""
        true, pred = self.true, self.pred
        for start, stop in blocks(self.n_cells):
            yield start, true[start:stop], pred[start:stop]

    def batches(self) -> Iterator[dict[str, Any]]:
        """Yield blocks of consecutive cells as columns of the table in which cells are saved."""
        columns = {name: getattr(self, name) for name in ("true", "pred", "n", "weight", "fp", "fn")}
        for start, stop in blocks(self.n_cells, CELLS_IN_BATCH):
            yield {name: np.ascontiguousarray(each[start:stop]) for name, each in columns.items()}

    def records(self, cells: NDArray[np.int64]) -> tuple[np.ndarray, NDArray[np.integer]]:
        """Return copies of the given cells, and the codes of their predicted clusters."""
        return self.cells[cells], self.pred[cells]

    def _count(self, side: str) -> NDArray[np.int64]:
        codes, size = self.codes(side)
        counts = np.zeros(size, np.int64)
        kernels.sums.count_by_code(codes, self.cells["n"], counts)
        return counts

    def _weigh(self, side: str) -> NDArray[np.float64]:
        if not self.weighted:
            return self._count(side).astype(np.float64)
        return self.add_by_cluster(*self.codes(side), np.ones(self.n_cells))

    def add_by_cluster(
        self, codes: NDArray[np.integer], n_codes: int, scores: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return, for each code, the sum of weight * scores over the cells with that code. Shape (n_codes,)."""
        totals, errors = add_up(codes, n_codes, self.weight, scores)
        return totals + errors

    def memberships(self, side: str) -> tuple[NDArray[np.integer], int, NDArray[np.int64] | None]:
        """Return the code of each membership, the number of codes, and each membership's cell (None for partitions)."""
        return *self.codes(side), None

    def n_met(self, side: str) -> NDArray[np.int64]:
        """Return, for each cluster of a side, how many clusters of the other side share items with that cluster."""
        codes, size = self.codes(side)
        return np.bincount(codes, minlength=size)

    def exact(self, side: str) -> NDArray[np.bool_]:
        """Return a mask of the clusters of a side that are identical to a cluster of the other side."""
        codes, size = self.codes(side)
        return np.bincount(codes[(self.fp != 0) | (self.fn != 0)], minlength=size) == 0

    def unlabelled_mates(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.integer]] | None:
        """Return the numbers and weights of prediction-only items, and the index of each cell into both arrays.

        If there are no prediction-only items, None is returned.
        """
        if self._unlabelled_mates is not None:
            return *self._unlabelled_mates(), np.arange(self.n_cells)
        only = self.only("pred")
        return None if only is None else (*only, self.pred)

    def only(self, side: str) -> tuple[NDArray[np.int64], NDArray[np.float64]] | None:
        """Return the number and weight of items that only this side has, by cluster; None if there are none."""
        if side not in self._one_sided:
            return None
        alone = self._one_sided[side]
        size = self.n_codes[side]
        counts = np.bincount(alone.codes, alone.n, size).astype(np.int64)
        return counts, np.bincount(alone.codes, alone.mass, size).astype(np.float64)

    def alone(self, side: str) -> OneSided | None:
        """Return the items that only this side has; None if there are no such items."""
        return self._one_sided.get(side)

    def mates(self, side: str) -> NDArray[np.integer]:
        """Return the number of items in each cell's cluster on a side."""
        if self._mates is not None:
            return self._mates(side)
        codes, _ = self.codes(side)
        sizes = self.true_n if side == "true" else self.pred_n
        only = self.only("pred") if side == "pred" and self.outside else None
        return (sizes if only is None else sizes + only[0])[codes]

    def among_others(
        self, others: NDArray[np.float64], cells: NDArray[np.int64] | slice
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Return tp, fp and fn of an item of each given cell, without the item itself; `others` is this tp."""
        return others, np.ascontiguousarray(self.fp[cells]), np.ascontiguousarray(self.fn[cells])

    def once(self, make: Callable[[Contingency, Pool], Made], pool: Pool) -> Made:
        """Return make(self, pool), computed once and cached, so that several scores share the result."""
        if make not in self._made:
            self._made[make] = make(self, pool)
        return self._made[make]

    def map(self, function: Callable[[int, int], Made], pool: Pool, stage: str = "score cells") -> list[Made]:
        """Call function(start, stop) on consecutive ranges of cells, which do not depend on the number of threads."""
        starts, stops = zip(*blocks(self.n_cells, CELL_BLOCK * BLOCKS_AT_ONCE), strict=True)
        return pool.map(function, starts, stops, stage=stage)

    @cached_property
    def n_items(self) -> int:
        """The number of scored items."""
        return int(self.n.sum(dtype=np.int64))

    @cached_property
    def total_weight(self) -> float:
        """The total weight of the scored items."""
        if not self.weighted:
            return float(self.n_items)
        total = math.fsum(float(self.weight[a:b].sum()) for a, b in blocks(self.n_cells, CELL_BLOCK))
        if not (0 < total < math.inf):
            raise WeightError(
                f"the weights of the scored items add up to {total}; rescale them so that the sum is "
                "positive and below 1.8e308"
            )
        return total

    @cached_property
    def n_true(self) -> int:
        """The number of true clusters with a scored item."""
        return self.n_codes["true"] if self.is_complete else int(np.count_nonzero(self.true_n))

    @cached_property
    def n_pred(self) -> int:
        """The number of predicted clusters with a scored item."""
        return self.n_codes["pred"] if self.is_complete else int(np.count_nonzero(self.pred_n))

    @cached_property
    def n_exact(self) -> int:
        """The number of clusters that are identical on both sides."""
        ranges = blocks(self.n_cells)
        return sum(int(np.count_nonzero((self.fp[a:b] == 0) & (self.fn[a:b] == 0))) for a, b in ranges)

    __dir__ = documented

    def __repr__(self) -> str:
        """Return the numbers of items, clusters and cells."""
        return (
            f"Contingency({self.n_items:,} items, {self.n_true:,} true and {self.n_pred:,} predicted "
            f"clusters, {self.n_cells:,} cells)"
        )


class Confusion(NamedTuple):
    """The confusion matrices of the items of some cells; each array has one entry per cell."""

    tp: NDArray[np.float64]
    fp: NDArray[np.float64]
    fn: NDArray[np.float64]
    tn: NDArray[np.float64] | None


def confusion(
    contingency: Contingency, start: int = 0, stop: int | None = None, *, tn: TrueNegatives | None = None
) -> Confusion:
    """Return the confusion matrix of the items of each cell, which all of them share.

    An item's true positives include the item itself.
    """
    cells = slice(start, stop)
    own = contingency.n if contingency.weighting == "outer" else contingency.weight
    tp = np.ascontiguousarray(own[cells], np.float64)
    fp = np.ascontiguousarray(contingency.fp[cells])
    fn = np.ascontiguousarray(contingency.fn[cells])
    return Confusion(tp, fp, fn, None if tn is None else tn(start, stop))


class TrueNegatives:
    """The true negatives of cells, items in neither cluster: N - (tp + fp + fn), without cancellation.

    With weights of very different sizes, that subtraction can lose every digit, but only where one cluster, or the
    two clusters of a cell together, hold nearly all of the weight. These few are computed by summing the other
    clusters or cells. Whether there are any such items at all is decided by counts.
    """

    #: If a difference is below this share of its minuend, it is recomputed as a sum.
    SUSPICIOUS = 2.0**-12

    def __init__(self, contingency: Contingency) -> None:
        if contingency.outside:
            raise MetricError(
                f"scores that need true negatives are not defined with {arg('unmatched', 'outside')}, where "
                "not all items outside the labelled clusters are known"
            )
        self._table = contingency
        self._plain = not contingency.weighted or contingency.weighting == "outer"

    @cached_property
    def _total(self) -> float:
        table = self._table
        return float(table.n_items) if self._plain else table.total_weight

    @cached_property
    def _beside(self) -> tuple[tuple[int, float], tuple[int, float]]:
        """The heaviest cluster of each side, and the weight of all other clusters of that side."""
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
