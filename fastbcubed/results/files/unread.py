"""An evaluation whose tables are in files, of which it reads what it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.excerpts import CellExcerpt, Codes, chosen_of, of_any
from fastbcubed.cells.records import CELL, SIDES
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.results.items.stored_items import StoredTable
from fastbcubed.results.listings.saved_clusters import SavedClusters
from fastbcubed.results.openings import Openings
from fastbcubed.runtime.cached import cached_property
from fastbcubed.sources.arrays import from_numpy, to_numpy


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
        self._file, self._clusters, self.rows, self._whole, self._how = file, clusters, rows, read, how
        self.__dict__.update(how, n_codes={side: clusters.files[side].num_rows for side in SIDES})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_whole" not in self.__dict__:
            raise AttributeError(name)
        whole = self._whole()
        self.__dict__.update({**whole.__dict__, **self.__dict__})
        return getattr(whole, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return same, (self._whole(),)

    @property
    def n_cells(self) -> int:
        """Non-empty pairs of clusters."""
        return self._file.num_rows

    @cached_property
    def n_items(self) -> int:
        """Scored items."""
        return int(self._clusters.classes("true").n_items.sum())

    @cached_property
    def total_weight(self) -> float:
        """Weight of the scored items."""
        return float(self._clusters.classes("true").weight.sum())

    def excerpt(self, codes: Codes) -> CellExcerpt:
        """Return the cells of some clusters, in one pass over all."""
        chosen = {side: chosen_of(own, self.n_codes[side]) for side, own in codes.items()}
        names, places, tables = CELL.names or (), [np.empty(0, np.int64)], []
        for first, table in self._file.stretches([*names, "pred"]):
            there = np.flatnonzero(of_any(chosen, to_numpy(table["true"]), to_numpy(table["pred"])))
            places.append(first + there)
            tables.append(table.take(from_numpy(there)))
        found = pa.concat_tables(tables).combine_chunks()
        cells = np.empty(found.num_rows, CELL)
        for name in names:
            cells[name] = to_numpy(found[name])
        pred, place = to_numpy(found["pred"]), np.concatenate(places)
        return CellExcerpt(place, cells, pred, self._clusters.sizes_of, self.total_weight, **self._how)


class UnreadLabels:
    """The labels of clusters, by side and code, in files."""

    def __init__(self, clusters: SavedClusters) -> None:
        self._clusters = clusters

    def __call__(self, side: str, codes: NDArray[np.int64]) -> pa.Array:
        """Return the labels of clusters, null for one that a policy has made."""
        return self._clusters.take(side, "cluster", codes).combine_chunks()


class InFiles(Openings):
    """What an evaluation says of its clusters, whose tables are in files.

    Attributes
    ----------
    saved_clusters : SavedClusters
        The tables of clusters.
    cells_at_hand : CellExcerpt, optional
        All cells of the clusters that are asked for, where these have been looked up.
    """

    saved_clusters: SavedClusters
    cells_at_hand: CellExcerpt | None = None

    def cell_excerpt(self, codes: Codes) -> CellExcerpt:
        """Return the cells of some clusters, by side and code."""
        cells: Any = self.contingency if self.cells_at_hand is None else self.cells_at_hand
        found: CellExcerpt = cells.excerpt(codes)
        return found


def same(result: Any) -> Any:
    """Return what is given: what stands for files is pickled as what is read of them."""
    return result
