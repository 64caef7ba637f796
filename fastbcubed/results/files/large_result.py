"""A saved result too large to be read as a whole unasked: what is asked is read part by part, where that suffices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.excerpts import CellExcerpt, Codes, chosen_of
from fastbcubed.cells.records import CELL, SIDES
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.items.stored_items import StoredTable
from fastbcubed.results.listings.concentration import LossCurve
from fastbcubed.results.listings.repairs import kinds_asked
from fastbcubed.results.listings.repairs_in_files import list_first_repairs
from fastbcubed.results.listings.saved_clusters import SavedClusters
from fastbcubed.results.listings.size_classes import SizeClasses
from fastbcubed.results.listings.table import Table
from fastbcubed.runtime.cached import cached_property
from fastbcubed.sources.arrays import to_numpy


class UnreadCells(Contingency):
    """Cells in a file, of which some are read; all of them when anything else is asked."""

    def __init__(
        self,
        file: StoredTable,
        clusters: SavedClusters,
        rows: ScoredRows | None,
        read: Callable[[], Contingency],
        how: Mapping[str, Any],
    ) -> None:
        self._file, self._clusters, self.rows, self._read, self._how = file, clusters, rows, read, how
        self.__dict__.update(how, n_codes={side: clusters.files[side].num_rows for side in SIDES})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_read" not in self.__dict__:
            raise AttributeError(name)
        whole = self._read()
        self.__dict__.update({**whole.__dict__, **self.__dict__})
        return getattr(whole, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self._read(),)

    @property
    def n_cells(self) -> int:
        """Non-empty pairs of clusters."""
        return self._file.num_rows

    @cached_property
    def n_items(self) -> int:
        """Scored items."""
        return int(self._clusters.all_of("true").classes.n_items.sum())

    @cached_property
    def total_weight(self) -> float:
        """Weight of the scored items."""
        return float(self._clusters.all_of("true").classes.weight.sum())

    def excerpt(self, codes: Codes) -> CellExcerpt:
        """Return the cells of some clusters."""
        chosen = {side: chosen_of(own, self.n_codes[side]) for side, own in codes.items()}
        places = [np.empty(0, np.int64)]
        for first, table in self._file.stretches(list(chosen)):
            there = [own[to_numpy(table[side])] for side, own in chosen.items()]
            places.append(first + np.flatnonzero(np.logical_or.reduce(there)))
        return self._at(np.concatenate(places))

    def _at(self, places: NDArray[np.int64]) -> CellExcerpt:
        """Return the cells at these places."""
        cells = np.empty(places.size, CELL)
        names = CELL.names or ()
        found = self._file.take_columns([*names, "pred"], places)
        for name in names:
            cells[name] = to_numpy(found[name])
        return CellExcerpt(
            places, cells, to_numpy(found["pred"]), self._sizes_of, self.total_weight, **self._how
        )

    def _sizes_of(self, side: str, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        return to_numpy(self._clusters.take(side, "n_items", codes))


class UnreadLabels:
    """The labels of clusters, by side and code, in files."""

    def __init__(self, clusters: SavedClusters) -> None:
        self._clusters = clusters

    def __call__(self, side: str, codes: NDArray[np.int64]) -> pa.Array:
        """Return the labels of clusters, null for one that a policy has made."""
        return self._clusters.take(side, "cluster", codes).combine_chunks()


class LargeResult(Evaluation):
    """An evaluation that was saved; what it says of all clusters is read from their tables.

    Attributes
    ----------
    whole : callable
        Reads all files, checks them, and returns the evaluation as it was.
    saved_clusters : SavedClusters
        The tables of clusters.
    alone : float or None
        Recall if all items were alone, where it was saved.
    """

    whole: Callable[[], Evaluation]
    saved_clusters: SavedClusters
    alone: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self.whole(),)

    @property
    def _lister(self) -> SavedClusters:
        return self.saved_clusters

    @cached_property
    def _loss_curves(self) -> dict[str, LossCurve]:
        return {side: self.saved_clusters.curve(side) for side in SIDES}

    def size_classes(self, side: str) -> SizeClasses:
        """Return what the clusters of a side come to by size, in powers of two."""
        return self.saved_clusters.all_of(side).classes

    def recall_alone(self) -> float | None:
        """Return the recall if all items were alone in the prediction; None if that was not saved."""
        by_weight = self.contingency.weighted and self.contingency.weighting != "outer"
        return self.alone if by_weight else super().recall_alone()

    @cached_property
    def _losses_of_all(self) -> dict[str, float]:
        return {side: curve.loss for side, curve in self._loss_curves.items()}

    def repairs(self, kinds: str | Iterable[str] = ("split", "gather"), *, limit: int | None = 200) -> Table:
        """Return which clusters to repair first; see `Evaluation.repairs`."""
        known = kinds_asked(kinds, limit)
        if limit is not None and self.contingency.weighting != "outer":
            lost = self.loss_of_all("pred"), self.loss_of_all("true")
            found = list_first_repairs(self, self.saved_clusters, self.cell_excerpt, lost, known, limit)
            if found is not None:
                return found
        return super().repairs(known, limit=limit)

    def cell_excerpt(self, codes: Codes) -> CellExcerpt:
        """Return the cells of some clusters, by side and code."""
        cells: Any = self.contingency
        return cells.excerpt(codes)

    def save(self, directory: Any, *, keep: str = "items", repairs: int = 0) -> None:
        """Write the evaluation; see `Evaluation.save`."""
        self.whole().save(directory, keep=keep, repairs=repairs)


def _same(result: Any) -> Any:
    return result
