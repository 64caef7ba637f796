"""Excerpts of a contingency: all cells of some clusters, which know how large their clusters are in the whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.one_sided import OneSided
from fastbcubed.cells.records import SIDES
from fastbcubed.runtime.pool import blocks

#: Clusters of each side by code.
Codes = Mapping[str, NDArray[np.int64]]


class CellExcerpt(Contingency):
    """All cells of some clusters, with codes of their own.

    Attributes
    ----------
    places : ndarray of int64
        Where the cells are in the whole.
    in_whole : dict
        By side, the codes that the clusters of these cells have in the whole.
    """

    def __init__(
        self,
        places: NDArray[np.int64],
        cells: np.ndarray,
        pred: NDArray[np.integer],
        sizes_of: Callable[[str, NDArray[np.int64]], NDArray[np.int64]],
        total_weight: float,
        **how: Any,
    ) -> None:
        self.places, self.in_whole, own = places, {}, {}
        for side, codes in zip(SIDES, (cells["true"], pred), strict=True):
            self.in_whole[side], own[side] = np.unique(codes, return_inverse=True)
        cells["true"] = own["true"]
        n_true, n_pred = (self.in_whole[side].size for side in SIDES)
        super().__init__(cells, lambda: own["pred"], (n_true, n_pred), **how)
        known = dict[str, NDArray[np.int64]]()
        for side in SIDES:
            counted = self._counts_mates(side)
            known[f"{side}_n"] = self._with_mates(side) if counted else sizes_of(side, self.in_whole[side])
        self.__dict__.update(known, total_weight=total_weight)

    def _counts_mates(self, side: str) -> bool:
        """Whether what a cell lacks of its cluster, or the other way round, are numbers of scored items."""
        return (not self.weighted or self.weighting == "outer") and not (side == "pred" and self.outside)

    def _with_mates(self, side: str) -> NDArray[np.int64]:
        """Return the sizes of clusters, each of which any of its cells tells. Shape (n_clusters,)."""
        codes, mistaken = (self.true, self.cells["fn"]) if side == "true" else (self.pred, self.cells["fp"])
        sizes = np.zeros(self.in_whole[side].size, np.int64)
        sizes[codes] = self.n + mistaken.astype(np.int64)
        return sizes

    def excerpt(self, codes: Codes) -> CellExcerpt:
        """Return the cells of some clusters that have all of their cells here; codes are those of the whole."""
        own = {side: np.isin(self.in_whole[side], of_side) for side, of_side in codes.items()}
        places = np.flatnonzero(of_any(own, self.true, self.pred))
        cells = self.cells[places]
        cells["true"] = self.in_whole["true"][cells["true"]]
        sizes = {"true": self.true_n, "pred": self.pred_n}
        return CellExcerpt(
            self.places[places], cells, self.in_whole["pred"][self.pred[places]],
            lambda side, of_side: sizes[side][np.searchsorted(self.in_whole[side], of_side)],
            self.total_weight, weighted=self.weighted, weighting=self.weighting, outside=self.outside,
        )  # fmt: skip

    def take_one_sided(self, one_sided: Mapping[str, OneSided]) -> None:
        """Take the items that one side lacks of these clusters."""
        self._one_sided = one_sided


def excerpt_of(table: Contingency, codes: Codes) -> CellExcerpt:
    """Return the cells of some clusters of either side."""
    sizes = {"true": table.true_n, "pred": table.pred_n}
    found = few_cells(table, codes, lambda side, own: sizes[side][own], table.n_cells)
    assert found is not None
    return found


def few_cells(
    table: Contingency,
    codes: Codes,
    sizes_of: Callable[[str, NDArray[np.int64]], NDArray[np.int64]],
    most: int,
) -> CellExcerpt | None:
    """Return the cells of some clusters of either side, whose sizes are known; None if they are more than so many."""
    chosen = {side: chosen_of(own, table.n_codes[side]) for side, own in codes.items()}
    true, pred, places, n = table.true, table.pred, [np.empty(0, np.int64)], 0
    for start, stop in blocks(table.n_cells):
        places.append(start + np.flatnonzero(of_any(chosen, true[start:stop], pred[start:stop])))
        n += places[-1].size
        if n > most:
            return None
    there = np.concatenate(places)
    return CellExcerpt(
        there, table.cells[there], pred[there], sizes_of, table.total_weight,
        weighted=table.weighted, weighting=table.weighting, outside=table.outside,
    )  # fmt: skip


def of_any(
    chosen: Mapping[str, NDArray[np.bool_]], true: NDArray[np.integer], pred: NDArray[np.integer]
) -> NDArray[np.bool_]:
    """Return which cells, of these clusters, are of any that is chosen."""
    there = [own[true if side == "true" else pred] for side, own in chosen.items()]
    found: NDArray[np.bool_] = np.logical_or.reduce(there)
    return found


def chosen_of(codes: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    """Return which of n codes are among some."""
    chosen = np.zeros(n, np.bool_)
    chosen[codes] = True
    return chosen
