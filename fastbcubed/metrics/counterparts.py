"""Counterparts of clusters on the other side: best counterpart, best one-to-one pairing, majorities, entities."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.errors import PairingError
from fastbcubed.overlap.omega_and_nmi import sides_of
from fastbcubed.runtime import buffers
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Counts, Floats

#: A cell that shares its cluster with others, or the best cell of a cluster so far: cluster, weight, size of the cell
#: and of the rest of the cluster (items or weight), Jaccard index.
SPLIT = np.dtype([("code", "i8"), ("weight", "f8"), ("own", "f8"), ("others", "f8"), ("jaccard", "f8")])
#: Number of cells per call; number of clusters in a range, as a power of two of at most 14; number of ranges per call.
CELLS_AT_ONCE, RANGE_BITS, RANGES_AT_ONCE = 1 << 16, 14, 8


class Fit(NamedTuple):
    """Sums over the clusters of one side, each compared with its best counterpart."""

    clusters: float  # number of clusters
    exact: float  # number of clusters that are identical on the other side
    weight: float
    own: float  # weight in the largest cell of each cluster
    others: float  # weight outside it
    f1: float  # weight * best F
    jaccard: float  # best Jaccard index, summed over clusters


class Fits(NamedTuple):
    """The sums of true and of predicted clusters."""

    true: Fit
    pred: Fit


def counterparts(contingency: Contingency, pool: Pool) -> Fits:
    """Find the best counterpart of every cluster, and return the sums of both sides."""
    if contingency.overlapping:
        return Fits(*(Fit(*map(math.fsum, own)) for own in best_overlaps(contingency, pool)))
    outer, cells = contingency.weighting == "outer", contingency.cells
    tasks = blocks(contingency.n_cells, CELLS_AT_ONCE)
    true, pred = (_Split(contingency, side, len(tasks)) for side in SIDES)

    def add_whole(block: int, start: int, stop: int) -> tuple[Floats, Floats]:
        """Sum the clusters of one cell, and set the other cells aside; return the sums of both sides."""
        shape = -(-(stop - start) // kernels.metrics.CELLS_PER_SUM), kernels.metrics.FIGURES
        sums = np.empty(shape), np.empty(shape)
        with pool.workspace("split cells", lambda: np.empty((2, CELLS_AT_ONCE + 1), np.int64)) as places:
            found = kernels.metrics.add_whole(cells, start, stop, outer, *places, *sums)
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
    """The cells that share their cluster of one side with others, sorted by range of codes within each block."""

    def __init__(self, contingency: Contingency, side: str, n_blocks: int) -> None:
        self._cells, self._of_true = contingency.cells, side == "true"
        self._codes = contingency.true if self._of_true else contingency.pred
        size = contingency.n_codes[side]
        self._records = buffers.empty(contingency.n_cells, SPLIT)  # only its beginning is written
        self._firsts = np.zeros(n_blocks, np.int64)
        self._bounds = np.zeros((n_blocks, -(-size // (1 << RANGE_BITS)) + 1), np.int32)
        self._n, self._lock = 0, threading.Lock()  # held to take a range of records, not to copy

    def put(self, block: int, places: NDArray[np.int64], *, outer: bool) -> None:
        """Store the cells of a block at these places, sorted by range of codes."""
        bounds = self._bounds[block]
        kernels.metrics.count_split(self._codes, places, RANGE_BITS, bounds)
        with self._lock:
            first, self._n = self._n, self._n + places.size
        self._firsts[block] = first
        records = self._records[first : first + places.size]
        kernels.metrics.write_split(
            self._cells, self._codes, places, RANGE_BITS, bounds, self._of_true, outer, records
        )

    def fit(self, whole: Sequence[Floats], pool: Pool, by_item: bool) -> Fit:
        """Return the sums over all clusters, given the sums over one-cell clusters."""

        def add_best(first: int, last: int) -> Floats:
            sums = np.empty((last - first, kernels.metrics.FIGURES))
            with pool.workspace(("best cells", RANGE_BITS), _no_cells) as space:
                kernels.metrics.add_best(
                    self._records, self._firsts, self._bounds, first, last, RANGE_BITS, by_item, *space, sums
                )
            return sums

        tasks = blocks(self._bounds.shape[1] - 1, RANGES_AT_ONCE)
        sums = pool.map(add_best, *zip(*tasks, strict=True), stage="match clusters") if self._n else []
        return Fit(*(math.fsum(column) for column in np.concatenate([*whole, *sums]).T.tolist()))


def _no_cells() -> tuple[NDArray[np.int16], np.ndarray]:
    """Return workspace for the numbers and best cells of the clusters of one range of codes."""
    n = 1 << RANGE_BITS
    return np.empty(n, np.int16), np.empty(n + 1, SPLIT)


class FitOfClusters(NamedTuple):
    """The terms of the sums in `Fit`, by cluster; 0 for a cluster without scored items. `exact` is by true cluster."""

    clusters: Floats
    exact: Floats
    weight: Floats
    own: Floats
    others: Floats
    f1: Floats
    jaccard: Floats


def best_overlaps(cover: Contingency, pool: Pool) -> tuple[FitOfClusters, FitOfClusters]:
    """Find the best counterpart of every cluster where clusters overlap, among all pairs that share an item."""
    sides = cover.once(sides_of, pool)
    overlaps, (true, pred) = sides.overlaps, sides.sizes
    w, a, b = overlaps.sizes.weight, true.weight[overlaps.true], pred.weight[overlaps.pred]
    f, jaccard = 2.0 * w / (a + b), w / (a + b - w)
    exact = cover.exact("true").astype(np.float64)

    def fit(
        codes: NDArray[np.integer], sizes: Floats, mass: Floats, scored: NDArray[np.bool_]
    ) -> FitOfClusters:
        own, best_f, best_jaccard = np.zeros((3, sizes.size))
        for best, values in ((own, w), (best_f, f), (best_jaccard, jaccard)):
            np.maximum.at(best, codes, values)
        kept = np.where(scored, mass, 0.0)
        share = np.divide(own, sizes, out=np.zeros(sizes.size), where=scored)
        sums = (kept, kept * share, kept * (1.0 - share), kept * best_f, np.where(scored, best_jaccard, 0.0))
        return FitOfClusters(scored.astype(np.float64), exact, *sums)

    return (
        fit(overlaps.true, true.weight, cover.true_weight, cover.true_n > 0),
        fit(overlaps.pred, pred.weight, cover.pred_weight, cover.pred_n > 0),
    )


#: Number of cells visited after which the search gives up: one or two minutes. Similar clusterings take a few visits to
#: each cell; unrelated ones with more than 1e5 clusters may take too many.
LIMIT = 10_000_000_000
#: Number of cells visited between two checks for Ctrl-C.
PATIENCE = 100_000_000


class Paired(NamedTuple):
    """The best one-to-one pairing of clusters: the gain of each cell, and the pairs among cells that have rivals."""

    of_cells: Floats
    rivals: NDArray[np.bool_]  #: cells of positive gain whose clusters have other cells; the rest are pairs
    pred: Codes  #: the predicted cluster of each pair among the rivals
    gains: Floats  #: the gain of that pair


def pair_clusters(contingency: Contingency, gain: Callable[[int, int], Floats], pool: Pool) -> Paired:
    """Pair true and predicted clusters one to one so as to maximize the sum of gains.

    `gain` takes a range of cells and returns the gain of each, 0 or more. Raises PairingError if the search visits
    more than `LIMIT` cells.
    """
    of_cells = np.empty(contingency.n_cells)
    rivals = np.empty(contingency.n_cells, np.bool_)

    def take(start: int, stop: int) -> None:
        of_cells[start:stop] = gains = gain(start, stop)
        cells = contingency.cells[start:stop]
        rivals[start:stop] = ((cells["fp"] != 0) | (cells["fn"] != 0)) & (gains > 0)

    contingency.map(take, pool, "pair clusters")
    true, pred = (codes[rivals].astype(np.int64) for codes in (contingency.true, contingency.pred))
    sizes = contingency.codes("true")[1], contingency.codes("pred")[1]
    return Paired(of_cells, rivals, *best_pairs(pred, true, of_cells[rivals], *sizes[::-1]))


def best_pairs(
    rows: Codes, columns: Codes, gains: Floats, n_rows: int, n_columns: int
) -> tuple[Codes, Floats]:
    """Return the rows and gains of the one-to-one pairs of rows and columns with the largest sum of gains.

    `rows` and `columns` are codes of the two sides, each pair of codes at most once, and `gains` are positive. Shapes:
    (n_cells,) each -> (n_pairs,) each. Raises PairingError after `LIMIT` visits to cells.

    >>> rows, columns = np.array([0, 0, 1]), np.array([0, 1, 0])
    >>> [each.tolist() for each in best_pairs(rows, columns, np.array([3.0, 2.0, 2.0]), 2, 2)]  # 2 + 2 beats 3
    [[0, 1], [2.0, 2.0]]
    """
    if not gains.size:
        return rows, gains
    given, rows, columns = rows, rows.copy(), columns.copy()
    n_rows = kernels.hashing.number_codes(rows, np.full(n_rows, -1, np.int32))
    n_columns = kernels.hashing.number_codes(columns, np.full(n_columns, -1, np.int32))
    starts = np.zeros(n_rows + 1, np.int64)
    edges = np.empty(gains.size, np.int32), np.empty(gains.size)
    kernels.metrics.group_edges(rows, columns, gains, starts, *edges)
    state = _, pairs, _ = unpaired(starts, edges[1], n_columns)
    done, looks = 0, 0
    while done < n_rows:
        if looks > LIMIT:
            raise PairingError(_too_tangled(rows, columns, n_rows, n_columns))
        done, more = kernels.metrics.pair_rows(done, (starts, *edges), *state, PATIENCE)
        looks += more
    paired = pairs[0] >= 0
    codes = np.empty(n_rows, np.int64)
    codes[rows] = given
    return codes[paired], edges[1][pairs[0][paired]]


def unpaired(starts: Counts, gains: Floats, n_columns: int) -> tuple[Any, Any, Any]:
    """Return the prices, pairs and workspace that `pair_rows` starts with; gains are sorted by row."""
    n_rows = starts.size - 1
    prices = np.maximum.reduceat(gains, starts[:-1]), np.zeros(n_columns)
    pairs = np.full(n_rows, -1), np.full(n_columns, -1)
    came_by, came_from, seen = (np.empty(n_columns, np.int64) for _ in range(3))
    heap = np.empty(gains.size), np.empty(gains.size, np.int32)
    return prices, pairs, (np.full(n_columns, np.inf), came_by, came_from, seen, *heap)


def _too_tangled(rows: Codes, columns: Codes, n_rows: int, n_columns: int) -> str:
    """Return the message that states how large the largest connected component is."""
    component = np.arange(n_rows + n_columns)
    count = kernels.components.find_components(rows, columns + n_rows, component)
    cells = np.bincount(component[rows], minlength=count)
    largest = int(cells.argmax())
    pred, true = (int(np.count_nonzero(side == largest)) for side in np.split(component, [n_rows]))
    return (
        f"the best one-to-one pairing of clusters takes too long: {true} true and {pred} predicted clusters "
        f"are connected through {cells[largest]} cells, and the search stopped after {LIMIT:.0e} visits to "
        "cells. Leave out matching_accuracy, ceaf_m, ceaf_e and conll_f1; no other score needs that search"
    )


def pairs_by_weight(contingency: Contingency, pool: Pool) -> Paired:
    """Pair clusters one to one so as to maximize the total weight of the paired cells."""

    def weights(start: int, stop: int) -> Floats:
        return np.ascontiguousarray(contingency.weight[start:stop])

    return pair_clusters(contingency, weights, pool)


# Majorities

#: Number of parts of the cells per task.
PARTS_AT_ONCE = 16


class Majorities(NamedTuple):
    """Agreement of predicted clusters with their majority classes, the true clusters that have most of their items."""

    kept: int  #: number of items in the largest cell of their predicted cluster
    matched: int  #: number of clusters in a maximum matching of clusters with majority classes


def majorities(contingency: Contingency, pool: Pool) -> Majorities:
    """Return the items in largest cells, and the size of a maximum matching of clusters with majority classes.

    Majorities are by count. A class with a single cell is matched with its cluster if it is a majority class there. A
    class that is the only choice of some clusters is matched with one of these clusters. A maximum matching is searched
    for among the other classes and clusters.
    """
    cells, pred, parts = contingency.cells, contingency.pred, contingency.parts

    def task(first: int, last: int) -> tuple[int, int, NDArray[np.integer], NDArray[np.integer]]:
        size = int(parts[last] - parts[first])
        only, tied = (np.empty(shape, pred.dtype) for shape in ((size + 1,), (size, 2)))
        items, sure, *n = kernels.metrics.keep_majorities(cells, pred, parts, first, last, only, tied)
        return items, sure, only[: n[0]].copy(), tied[: n[1]].copy()

    ranges = zip(*blocks(parts.size - 1, PARTS_AT_ONCE), strict=True)
    items, sure, only, tied = zip(*pool.map(task, *ranges, stage="find majorities"), strict=True)
    taken = np.zeros(contingency.codes("true")[1], bool)
    for classes in only:
        taken[classes] = True
    true, rivals = np.concatenate(tied).T
    free = ~taken[true]
    lefts, rights = rivals[free], true[free]
    order = np.argsort(lefts, kind="stable")
    names, rights = np.unique(rights[order], return_inverse=True)
    first = np.append(np.flatnonzero(np.diff(lefts[order], prepend=-1)), lefts.size)
    return Majorities(
        sum(items), sum(sure) + int(taken.sum()) + int(kernels.metrics.match(first, rights, names.size))
    )


# Entities of key and response
class Side(NamedTuple):
    """The sums over the key or the response that coreference scores need."""

    mentions: float
    entities: float
    bcubed: float  # sum of n n / size over cells
    lea: float  # sum of n (n - 1) / (size - 1) over cells


class Links(NamedTuple):
    """Ordered pairs of mentions within entities, or between them: on both sides, in the key, in the response."""

    both: float
    key: float
    response: float


def mentions(contingency: Contingency, side: str) -> Counts:
    """Return the number of mentions of each entity of a side, by code, including mentions that only this side has."""
    only = contingency.only(side)
    scored = contingency.true_n if side == "true" else contingency.pred_n
    return scored if only is None else scored + only[0]


def mentions_of_cells(contingency: Contingency) -> Callable[[slice], tuple[Floats, Floats]]:
    """Return a function of a range of cells: the numbers of mentions of each cell's entity of key and response."""
    sizes = {side: mentions(contingency, side) for side in SIDES if contingency.alone(side) is not None}

    def of_range(cells: slice) -> tuple[Floats, Floats]:
        own = contingency.cells[cells]
        n = own["n"].astype(np.float64)
        key = sizes["true"][own["true"]] if "true" in sizes else n + own["fn"]
        response = sizes["pred"][contingency.pred[cells]] if "pred" in sizes else n + own["fp"]
        return key, response

    return of_range


def pairs_of_mentions(contingency: Contingency, pool: Pool) -> Paired:
    """Pair entities one to one so as to maximize the number of shared mentions."""

    def common(start: int, stop: int) -> Floats:
        return contingency.n[start:stop].astype(np.float64)

    return pair_clusters(contingency, common, pool)


def pairs_by_similarity(contingency: Contingency, pool: Pool) -> Paired:
    """Pair entities one to one so as to maximize the sum of their similarities 2 n / (k + r)."""
    mentions_of = mentions_of_cells(contingency)

    def similarity(start: int, stop: int) -> Floats:
        key, response = mentions_of(slice(start, stop))
        similarities: Floats = 2 * contingency.n[start:stop].astype(np.float64) / (key + response)
        return similarities

    return pair_clusters(contingency, similarity, pool)
