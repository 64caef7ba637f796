"""Covers as tables, and back: the cells of overlapping clusterings in files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.cells.soundness import fault_of_weights
from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.overlap.covers import Cover
from fastbcubed.overlap.sharing import Shares
from fastbcubed.results.files.saved_tables import SavedTable
from fastbcubed.sources.arrays import from_numpy, table_of

#: Columns of saved cells: hits and misses of an item among other cells, and its mates.
PARTS = ("pred_hits", "pred_misses", "true_hits", "true_misses")
MATES = ("pred_mates", "true_mates")


def as_table(cover: Cover) -> pa.Table:
    """Return all there is to know of the cells; those that only the prediction has come last, without shares."""
    truth, prediction, n, weight = cover.every
    lacking = np.arange(n.size) >= cover.n_cells
    columns: dict[str, Any] = {
        "true_clusters": pa.LargeListArray.from_arrays(truth.offsets, truth.codes),
        "pred_clusters": pa.LargeListArray.from_arrays(prediction.offsets, prediction.codes),
        "n": n,
        "weight": n.astype(np.float64) if weight is None else weight,
    }
    for name, values in zip((*PARTS, *MATES), (*cover.shares.parts.T, *cover.shares.mates.T), strict=True):
        whole = np.zeros(n.size, values.dtype)
        whole[: cover.n_cells] = values
        columns[name] = from_numpy(whole, lacking)
    return table_of(columns)


def from_table(
    cells: SavedTable,
    n_clusters: tuple[int, int],
    *,
    rows: ScoredRows | None,
    weighted: bool,
    weighting: str,
    outside: bool,
) -> Cover:
    """Make a cover of what `as_table` gave, and the number of clusters of each side; raise if it cannot be one."""
    cells.require((*PARTS, *MATES))
    n_scored = len(cells) - cells.table[PARTS[0]].null_count
    scored = cells.slice(0, n_scored)
    truth, prediction = (
        cells.memberships(name, size)
        for name, size in zip(("true_clusters", "pred_clusters"), n_clusters, strict=True)
    )
    parts = np.column_stack([scored.floats(name) for name in PARTS])
    mates = np.column_stack([scored.integers(name) for name in MATES])
    n, weight = cells.integers("n"), cells.floats("weight")
    cells.refuse(_fault(truth, prediction, n, parts, mates, n_scored))
    counted = slice(None) if outside else slice(n_scored)
    outer = weighting == "outer"
    cells.refuse(fault_of_weights(n[counted], weight[counted], weighted=weighted, outer=outer))
    return Cover(
        truth,
        prediction,
        n,
        weight if weighted else None,
        n_scored=n_scored,
        rows=rows,
        weighting=weighting,
        outside=outside,
        shares=Shares(parts, mates),
    )


def _fault(
    truth: Memberships,
    prediction: Memberships,
    n: NDArray[np.int64],
    parts: NDArray[np.float64],
    mates: NDArray[np.int64],
    n_scored: int,
) -> str | None:
    """Return what is wrong with the clusters and the shares of cells; None if nothing is."""
    if (truth.counts[n_scored:] > 0).any() or not (truth.counts[:n_scored] > 0).all():
        return "a cell without shares has a true cluster, or another has none"
    if not (prediction.counts > 0).all():
        return "a cell has no predicted cluster"
    if (n < 1).any():
        return "a cell has no item"
    if not ((parts >= 0) & (parts < np.inf)).all():
        return "hits or misses are negative or not finite"
    if (mates < n[:n_scored, None]).any() or (mates > n.sum(dtype=np.float64)).any():
        return "mates are fewer than a cell has, or more than there are items"
    return None
