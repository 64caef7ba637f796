"""Cells that are used in part: all cells of some clusters, and tables that are read on demand or were not kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.contingency import CELL, SIDES, Contingency, ScoredRows
from fastbcubed.errors import NotKeptError, arg
from fastbcubed.inputs.arrays import to_numpy

#: Codes of clusters.
CodesBySide = Mapping[str, NDArray[np.int64]]
#: A function of a side and codes of clusters that returns their numbers of scored items.
SizesOf = Callable[[str, NDArray[np.int64]], NDArray[np.int64]]


class UnreadCells(Contingency):
    """Cells with only some attributes loaded; access to any other loads all cells, or raises NotKeptError.

    Pickles contain all cells.
    """

    known_means: Mapping[str, float] = MappingProxyType({})  #: scores needed by warnings, requested or not

    def __init__(
        self,
        file: Any = None,
        whole: Callable[[], Contingency] | None = None,
        rows: ScoredRows | None = None,
        **known: Any,
    ) -> None:
        """Refer to cells in a stored table, all of which `whole` loads; both are None if the cells were not kept."""
        self._whole, self._known, self.rows, self.has_cells = whole, known, rows, file is not None
        if self.has_cells:
            self._file = file
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_known" not in self.__dict__:
            raise AttributeError(name)
        found = self._all()
        self.__dict__.update({**found.__dict__, **self.__dict__})
        return getattr(found, name)

    def _all(self) -> Contingency:
        if self._whole is None:
            raise NotKeptError(f"the cells were not kept; evaluate with {arg('keep', 'cells')}")
        return self._whole()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_same, (self._all(),)) if self.has_cells else (partial(UnreadCells, **self._known), ())

    def __repr__(self) -> str:
        """Return the number of items, and where the cells are."""
        return f"Contingency({self.n_items:,} items, cells {'in a file' if self.has_cells else 'not kept'})"

    def codes_in_blocks(self) -> Iterator[tuple[int, NDArray[np.integer], NDArray[np.integer]]]:
        """Yield the first cell, the true codes and the predicted codes of consecutive blocks of cells."""
        for first, table in self._file.scan(SIDES):
            yield first, to_numpy(table["true"]), to_numpy(table["pred"])

    def records(self, cells: NDArray[np.int64]) -> tuple[np.ndarray, NDArray[np.integer]]:
        """Return copies of the given cells, and the codes of their predicted clusters."""
        names = CELL.names or ()
        table = self._file.take([*names, "pred"], cells)
        found = np.empty(cells.size, CELL)
        for name in names:
            found[name] = to_numpy(table[name])
        return found, to_numpy(table["pred"])


def _same(found: Contingency) -> Contingency:
    return found


class Excerpt(NamedTuple):
    """All cells of some clusters."""

    table: Contingency  #: these cells, with new codes
    places: NDArray[np.int64]  #: the positions of its cells in the whole table
    in_whole: CodesBySide  #: the codes of its clusters in the whole table


def excerpt_of(table: Contingency, codes: CodesBySide, sizes_of: SizesOf | None = None) -> Excerpt:
    """Return all cells of some clusters of either side; `sizes_of`, if given, saves counting all clusters' items."""
    chosen = {side: chosen_of(own, table.n_codes[side]) for side, own in codes.items()}
    places = [np.empty(0, np.int64)]
    for start, true, pred in table.codes_in_blocks():
        places.append(start + np.flatnonzero(of_any(chosen, true, pred)))
    there = np.concatenate(places)
    cells, pred = table.records(there)
    in_whole, own = {}, {}
    for side, of_cells in zip(SIDES, (cells["true"], pred), strict=True):
        in_whole[side], own[side] = np.unique(of_cells, return_inverse=True)
    cells["true"] = own["true"]
    found = Contingency(
        cells, lambda: own["pred"], (in_whole["true"].size, in_whole["pred"].size),
        weighted=table.weighted, weighting=table.weighting, outside=table.outside,
    )  # fmt: skip
    found.__dict__["total_weight"] = table.total_weight
    sizes_of = sizes_of or (lambda side, codes: (table.true_n if side == "true" else table.pred_n)[codes])
    for side, mistaken in (("true", "fn"), ("pred", "fp")):
        if (table.weighted and table.weighting != "outer") or (side == "pred" and table.outside):
            found.__dict__[f"{side}_n"] = sizes_of(side, in_whole[side])
        else:  # fp and fn are numbers of scored items: any cell gives the size of its clusters
            sizes = np.zeros(in_whole[side].size, np.int64)
            sizes[own[side]] = cells["n"] + cells[mistaken].astype(np.int64)
            found.__dict__[f"{side}_n"] = sizes
    return Excerpt(found, there, in_whole)


def of_any(
    chosen: Mapping[str, NDArray[np.bool_]], true: NDArray[np.integer], pred: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Return a mask of the cells that have a chosen cluster on either side."""
    there = [own[true if side == "true" else pred] for side, own in chosen.items()]
    found: NDArray[np.bool_] = np.logical_or.reduce(there)
    return found


def chosen_of(codes: NDArray[np.integer], n: int) -> NDArray[np.bool_]:
    """Return a mask, of shape (n,), of the given codes."""
    chosen = np.zeros(n, np.bool_)
    chosen[codes] = True
    return chosen
