"""Cells that stream past with their margins: the contingency of a batch, as the formulas take it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.records import CELL
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.slices.slicing import Element

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Question:
    """What is asked of the cells that pass; it goes to where they are."""

    weighted: bool
    outer: bool
    outside: bool
    bounded: bool = False  #: whether to bound the precision, as prediction-only items were dropped
    metrics: list[Metric] = field(default_factory=list)  #: means over items to add up
    #: and means over clusters of means, by side
    by_cluster: list[tuple[str, Metric]] = field(default_factory=list)
    pairs: bool = False
    entropies: bool = False
    #: attributes by name, under their names here
    slices: list[dict[str, Element]] = field(default_factory=list)
    grouped: list[Metric] = field(default_factory=list)  #: the scores of slices
    beta: float = 1.0
    carried: list[str] = field(default_factory=list)  #: columns that cells are cut by
    total: tuple[int, float] | None = None  #: scored items and their weight, where these are known

    @property
    def how(self) -> dict[str, Any]:
        """What the cells are like, as contingencies are told."""
        weighting = "outer" if self.outer else "pointwise"
        return {"weighted": self.weighted, "weighting": weighting, "outside": self.outside}


class Margins:
    """The columns of cells: what they hold, and the sums over their clusters; see `Cells.with_margins`."""

    def __init__(self, columns: dict[str, NDArray[Any]], question: Question) -> None:
        self._columns, self._question = columns, question

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._columns[name]

    def get(self, name: str) -> NDArray[Any]:
        """Return a column; zeros if there is none, as a policy has nothing to count there."""
        return self._columns.get(name, np.zeros(1, np.int64))

    @property
    def kinds(self) -> NDArray[Any]:
        """Who has the items: see `joined_items`. It goes by the clusters, unless a policy has made some of these."""
        if "kind" in self._columns:
            return self._columns["kind"]
        return np.where(self.t_there, np.where(self.p_there, 0, 1), np.where(self.p_there, 2, 3))

    def take(self, rows: NDArray[Any]) -> Margins:
        """Return those of some cells."""
        return Margins({name: each[rows] for name, each in self._columns.items()}, self._question)

    def n(self, prefix: str = "") -> Counts:
        """Return numbers of items: of the cell without a prefix, else of its cluster; see `with_margins`."""
        return self._columns[f"{prefix}_n" if prefix else "n"]

    def weight(self, prefix: str = "") -> Floats:
        """Return the weights of these items; their number where there are no weights."""
        if not self._question.weighted:
            return self.n(prefix).astype(np.float64)
        return self._columns[f"{prefix}_w" if prefix else "w"]

    def mass(self, prefix: str = "") -> Floats:
        """Return what counts inside confusion matrices: weights, or numbers if weights serve the mean alone."""
        return self.n(prefix).astype(np.float64) if self._question.outer else self.weight(prefix)

    @property
    def whole(self) -> str:
        """The prefix of the cell as a whole, which is cut where there are slices."""
        return "c" if self._question.carried else ""


class StreamedCells(Contingency):
    """Scored cells, or parts of them, each of which knows its margins; rows stand for parts."""

    def __init__(self, found: Margins, question: Question) -> None:
        self.margins = found
        whole = found.whole
        n, mass = found.n(whole), found.mass(whole)
        cells = np.zeros(n.size, CELL)
        cells["n"], cells["weight"] = n, found.weight(whole)
        unlabelled = (found.n("u"), found.mass("u")) if question.outside else (0, 0.0)
        cells["fp"] = _beside(mass, found.mass("b") + unlabelled[1], n, found.n("b") + unlabelled[0])
        cells["fn"] = _beside(mass, found.mass("a"), n, found.n("a"))
        part_n = found.n()
        rows = ScoredRows(lambda: np.arange(n.size), found.weight(), n.size, lambda: part_n)
        super().__init__(cells, lambda: np.zeros(n.size, np.int64), (1, 1), rows=rows, **question.how)
        self._unlabelled = unlabelled[0]
        if question.total is not None and not question.outside:
            self.known_tn = self._true_negatives(*question.total)

    def _true_negatives(self, n_items: int, total: float) -> Floats:
        """Return the true negatives, which by count may be none; see `TrueNegatives`."""
        left = n_items - (self.mates("true") + self.mates("pred") - self.n)
        if not self.weighted or self.weighting == "outer":
            return left.astype(np.float64)
        tn = np.maximum(0.0, (total - (self.weight + self.fp)) - self.fn)
        tn[left == 0] = 0.0
        return tn

    def mates(self, side: str) -> NDArray[np.integer]:
        """Return, by cell, the items in its cluster of this side."""
        return self.margins.n("a") if side == "true" else self.margins.n("b") + self._unlabelled

    def unlabelled_mates(self) -> tuple[Counts, Floats, Counts]:
        """Return number and mass of mates that only the prediction has, and where those of each cell stand."""
        return self.margins.n("u"), self.margins.mass("u"), np.arange(self.n_cells)


def _beside(mass: Floats, whole: Floats, n: Counts, n_whole: Counts) -> Floats:
    """Return what a cluster holds beside a cell; by count it may be nothing."""
    return np.where(n == n_whole, 0.0, np.maximum(whole - mass, 0.0))


def columns_of(table: pa.Table, question: Question) -> dict[str, NDArray[Any]]:
    """Return the columns of a batch as arrays, but for those that cells are cut by."""
    names = [name for name in table.column_names if name not in question.carried]
    return {name: table[name].combine_chunks().to_numpy(zero_copy_only=False) for name in names}
