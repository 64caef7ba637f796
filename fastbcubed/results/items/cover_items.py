"""The items of overlapping clusterings, whose labels are lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.overlap.overlapping import Covered
from fastbcubed.results.items.items import AlignedItems, RowNumbers
from fastbcubed.sources.columns import as_column


class CoverItems(AlignedItems):
    """The items of overlapping clusterings; their labels are lists."""

    def __init__(self, covered: Covered) -> None:
        super().__init__(covered.alignment)
        self._grouped = covered.grouped
        self._members = {"true": covered.grouped.truth, "pred": covered.grouped.prediction}
        self._names = covered.names

    def labels(self, side: str, rows: RowNumbers | None = None) -> pa.Array:
        cell = self._grouped.cell if rows is None else self._grouped.cell[rows]
        return list_labels(self._members[side], cell, lambda codes: self.cluster_labels(side, codes))

    def cluster_labels(self, side: str, codes: RowNumbers) -> pa.Array:
        """Return the labels of clusters by code, null for one that a policy has made."""
        return self._names[side](codes)

    def same_label(self, side: str, row: int) -> NDArray[np.bool_]:
        members, cell = self._members[side], self._grouped.cell
        shared = np.isin(members.codes, members.of(int(cell[row])))
        cells = np.zeros(len(members) + 1, np.bool_)
        cells[members.rows()[shared]] = True  # the last is for items in no cell
        return cells[cell]

    def rows_of_cluster(self, side: str, label: Any) -> RowNumbers:
        members, cell = self._members[side], self._grouped.cell
        labels = as_column(self.cluster_labels(side, np.arange(members.n_clusters)), f"{side}_cluster")
        cells = np.zeros(len(members) + 1, np.bool_)
        cells[members.rows()[np.isin(members.codes, labels.find(label))]] = True
        return np.flatnonzero(cells[cell])


def list_labels(
    members: Memberships, cells: NDArray[np.int64], label: Callable[[RowNumbers], pa.Array]
) -> pa.Array:
    """Return a list of labels for each of some cells; null for cell -1, and for one without clusters."""
    there = np.flatnonzero(cells >= 0)
    taken = members.take(cells[there])
    counts = np.zeros(cells.size, np.int64)
    counts[there] = taken.counts
    offsets = np.concatenate([[0], np.cumsum(counts)])
    values = label(taken.codes.astype(np.int64))
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values, mask=pa.array(counts == 0))
