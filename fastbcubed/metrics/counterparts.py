"""The best counterparts of each cluster on the other side: by largest cell, by F, by Jaccard index."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.records import SIDES
from fastbcubed.metrics.metric import Floats
from fastbcubed.overlap.covers import Cover
from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.overlap.sharing import Sides

#: A cell that shares its cluster with others: weight of the cell, what counts as its items, and the rest of the
#: cluster, Jaccard index; the best of a cluster so far.
SPLIT = np.dtype([("code", "i8"), ("weight", "f8"), ("own", "f8"), ("others", "f8"), ("jaccard", "f8")])
#: Cells that are looked at by one call; clusters whose best cells are kept at once, as a power of two of at most 14;
#: ranges of these that are added up by one call.
CELLS_AT_ONCE, RANGE_BITS, RANGES_AT_ONCE = 1 << 16, 14, 8


class Fit(NamedTuple):
    """Sums over the clusters of one side, each with its best counterpart."""

    clusters: float  # how many there are
    exact: float  # how many are the same on the other side
    weight: float
    own: float  # weight in the largest cell of each
    others: float  # weight beside it
    f1: float  # weight * best F
    jaccard: float  # best Jaccard index, each cluster once


class Fits(NamedTuple):
    """The same for both sides."""

    true: Fit
    pred: Fit


def fits(contingency: Contingency, pool: Pool) -> Fits:
    """Find the best counterpart of every cluster."""
    if isinstance(contingency, Cover):
        return fit_overlaps(contingency)
    outer, cells = contingency.weighting == "outer", contingency.cells
    tasks = blocks(contingency.n_cells, CELLS_AT_ONCE)
    true, pred = (_Split(contingency, side, len(tasks)) for side in SIDES)

    def add_whole(block: int, start: int, stop: int) -> tuple[Floats, Floats]:
        """Add up the clusters that are one cell, and put by what is left; return the sums of both sides."""
        shape = -(-(stop - start) // kernels.matching.CELLS_PER_SUM), kernels.matching.FIGURES
        sums = np.empty(shape), np.empty(shape)
        with pool.workspace("split cells", lambda: np.empty((2, CELLS_AT_ONCE + 1), np.int64)) as places:
            found = kernels.matching.add_whole(cells, start, stop, outer, *places, *sums)
            for split, own, n in zip((true, pred), places, found, strict=True):
                split.put(block, own[:n], outer=outer)
        return sums

    sums = pool.map(add_whole, range(len(tasks)), *zip(*tasks, strict=True), stage="match clusters")
    by_item = outer or contingency.outside
    return Fits(
        *(
            split.fit(own, pool, by_item)
            for split, own in zip((true, pred), zip(*sums, strict=True), strict=True)
        )
    )


class _Split:
    """The cells that share their cluster of one side with others, by ranges of codes within each block of cells."""

    def __init__(self, contingency: Contingency, side: str, n_blocks: int) -> None:
        self._cells, self._of_true = contingency.cells, side == "true"
        self._codes = contingency.true if self._of_true else contingency.pred
        size = contingency.n_codes[side]
        self._records = buffers.empty(contingency.n_cells, SPLIT)  # of which the beginning is touched
        self._firsts = np.zeros(n_blocks, np.int64)
        self._bounds = np.zeros((n_blocks, -(-size // (1 << RANGE_BITS)) + 1), np.int32)
        self._n, self._lock = 0, threading.Lock()

    def put(self, block: int, places: NDArray[np.int64], *, outer: bool) -> None:
        """Take the cells of a block that stand at these places."""
        bounds = self._bounds[block]
        kernels.matching.count_split(self._codes, places, RANGE_BITS, bounds)
        with self._lock:
            first, self._n = self._n, self._n + places.size
        self._firsts[block] = first
        records = self._records[first : first + places.size]
        kernels.matching.write_split(
            self._cells, self._codes, places, RANGE_BITS, bounds, self._of_true, outer, records
        )

    def fit(self, whole: Sequence[Floats], pool: Pool, by_item: bool) -> Fit:
        """Return the figures of all clusters, given those of clusters that are one cell."""

        def add_best(first: int, last: int) -> Floats:
            sums = np.empty((last - first, kernels.matching.FIGURES))
            with pool.workspace(("best cells", RANGE_BITS), _no_cells) as space:
                kernels.matching.add_best(
                    self._records, self._firsts, self._bounds, first, last, RANGE_BITS, by_item, *space, sums
                )
            return sums

        tasks = blocks(self._bounds.shape[1] - 1, RANGES_AT_ONCE)
        sums = pool.map(add_best, *zip(*tasks, strict=True), stage="match clusters") if self._n else []
        return Fit(*(math.fsum(column) for column in np.concatenate([*whole, *sums]).T.tolist()))


def _no_cells() -> tuple[NDArray[np.int16], np.ndarray]:
    """Return room for the numbers and the best cells of the clusters of a range of codes."""
    n = 1 << RANGE_BITS
    return np.empty(n, np.int16), np.empty(n + 1, SPLIT)


def fit_overlaps(cover: Cover) -> Fits:
    """Find the best counterparts where clusters overlap, from all pairs of clusters that share an item."""
    overlaps, (true, pred) = cover.sides.overlaps, cover.sides.sizes
    w, a, b = overlaps.sizes.weight, true.weight[overlaps.true], pred.weight[overlaps.pred]
    f, jaccard = 2.0 * w / (a + b), w / (a + b - w)
    exact = n_same(cover.sides)

    def fit(codes: NDArray[np.integer], sizes: Floats, mass: Floats, scored: NDArray[np.bool_]) -> Fit:
        own, best_f, best_jaccard = np.zeros((3, sizes.size))
        for best, values in ((own, w), (best_f, f), (best_jaccard, jaccard)):
            np.maximum.at(best, codes, values)
        kept, share = mass[scored], own[scored] / sizes[scored]
        sums = (kept, kept * share, kept * (1.0 - share), kept * best_f[scored], best_jaccard[scored])
        return Fit(kept.size, exact, *map(math.fsum, sums))

    return Fits(
        fit(overlaps.true, true.weight, cover.true_weight, cover.true_n > 0),
        fit(overlaps.pred, pred.weight, cover.pred_weight, cover.pred_n > 0),
    )


def n_same(sides: Sides) -> int:
    """Count the clusters that both sides have: of t true and p predicted copies the lesser number."""
    overlaps, (true, pred) = sides.overlaps, sides.sizes
    n = overlaps.sizes.n
    same = (n == true.n[overlaps.true]) & (n == pred.n[overlaps.pred])
    _, first, p = np.unique(overlaps.true[same], return_index=True, return_counts=True)
    # the copies of a true cluster have the same first match
    _, copy, t = np.unique(overlaps.pred[same][first], return_index=True, return_counts=True)
    return int(np.minimum(t, p[copy]).sum())
