"""The best counterparts of each cluster on the other side: by largest cell, by F, by Jaccard index."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.metrics.metric import Floats
from fastbcubed.overlap.covers import Cover
from fastbcubed.runtime.pool import BLOCK, Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.overlap.sharing import Sides

#: The best cell of a cluster so far: weight of the cluster, the cell and the rest, best Jaccard index.
BEST = np.dtype([("weight", "f8"), ("own", "f8"), ("others", "f8"), ("jaccard", "f8")])


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
    """Find the best counterpart of every cluster, of the two sides at the same time."""
    if isinstance(contingency, Cover):
        return fit_overlaps(contingency)
    contingency.pred  # noqa: B018  made before the threads ask for it
    return Fits(*pool.map(partial(_fit, contingency), ("true", "pred"), stage="match clusters"))


def _fit(contingency: Contingency, side: str) -> Fit:
    cells, outer = contingency.cells, contingency.weighting == "outer"
    codes = contingency.true if side == "true" else contingency.pred
    size = contingency.codes(side)[1]
    numbers = np.zeros(size, np.int32 if size < 1 << 31 else np.int64)
    best = np.empty(min(size, contingency.n_cells), BEST)
    count, sums = 0, []
    for start, stop in blocks(contingency.n_cells, BLOCK):
        runs = np.empty((-(-(stop - start) // kernels.matching.CELLS_PER_SUM), kernels.matching.FIGURES))
        count = kernels.matching.find_best(
            cells, codes, start, stop, side == "true", outer, numbers, best, count, runs
        )
        sums.append(runs)
    for start, stop in blocks(count, BLOCK):
        runs = np.empty((-(-(stop - start) // kernels.matching.CELLS_PER_SUM), kernels.matching.FIGURES))
        kernels.matching.add_best(best, start, stop, outer or contingency.outside, runs)
        sums.append(runs)
    return Fit(*(math.fsum(column) for column in np.concatenate(sums).T.tolist()))


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
