"""The best counterparts of each cluster on the other side: by largest cell, by F, by Jaccard index."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.errors import PairingError
from fastbcubed.metrics.labelings import Labels, as_cover, compute, public
from fastbcubed.metrics.pointwise import pointwise
from fastbcubed.metrics.score import Family, f_measure
from fastbcubed.overlap.cover import Cover
from fastbcubed.runtime import buffers
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Floats

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency
    from fastbcubed.overlap.mates import Sides
    from fastbcubed.runtime.threads import Pool

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
        """Add up the clusters of one cell, and set the others aside; return the sums of both sides."""
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
        kernels.metrics.count_split(self._codes, places, RANGE_BITS, bounds)
        with self._lock:
            first, self._n = self._n, self._n + places.size
        self._firsts[block] = first
        records = self._records[first : first + places.size]
        kernels.metrics.write_split(
            self._cells, self._codes, places, RANGE_BITS, bounds, self._of_true, outer, records
        )

    def fit(self, whole: Sequence[Floats], pool: Pool, by_item: bool) -> Fit:
        """Return the figures of all clusters, given those of clusters that are one cell."""

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


#: Looks at a cell after which the search gives up: one or two minutes. Clusterings that resemble each
#: other take a few looks at each cell; unrelated ones of more than 1e5 clusters may take too many.
LIMIT = 10_000_000_000
#: Looks between two chances to hear Ctrl-C.
PATIENCE = 100_000_000


class Pairing(NamedTuple):
    """The gain of the best pairing, and that of all cells together."""

    best: float
    every: float


def pair_clusters(contingency: Contingency, gain: Callable[[int, int], Floats], pool: Pool) -> Pairing:
    """Pair true and predicted clusters, each at most once, so that the sum of gains is the largest.

    `gain` returns what each of a range of cells is worth, 0 or more. Raise PairingError if the search takes
    more than `LIMIT` looks at a cell.
    """
    pred = contingency.pred

    def take(start: int, stop: int) -> tuple[float, Codes, Codes, Floats]:
        gains = gain(start, stop)
        cells = contingency.cells[start:stop]
        rivals = ((cells["fp"] != 0) | (cells["fn"] != 0)) & (gains > 0)
        pair = cells["true"][rivals], pred[start:stop][rivals]
        return float(gains[~rivals].sum()), *(codes.astype(np.int64) for codes in pair), gains[rivals]

    parts = contingency.map(take, pool, "pair clusters")
    alone, true, predicted, gains = zip(*parts, strict=True)
    sure, rest = math.fsum(alone), np.concatenate(gains)
    sizes = contingency.codes("true")[1], contingency.codes("pred")[1]
    found = best_pairs(np.concatenate(predicted), np.concatenate(true), rest, *sizes[::-1])
    return Pairing(sure + float(found.sum()), sure + float(rest.sum()))


def best_pairs(rows: Codes, columns: Codes, gains: Floats, n_rows: int, n_columns: int) -> Floats:
    """Return the gains of the pairs, each row and column in at most one, whose sum is the largest.

    Shapes: `rows`, `columns` and `gains` (n_cells,), codes of the two sides, none of them together twice, and
    what pairing them is worth, more than 0 -> (n_pairs,). Raise PairingError after `LIMIT` looks at a cell.

    >>> rows, columns = np.array([0, 0, 1]), np.array([0, 1, 0])
    >>> best_pairs(rows, columns, np.array([3.0, 2.0, 2.0]), 2, 2).tolist()  # 2 + 2 beats 3
    [2.0, 2.0]
    """
    if not gains.size:
        return gains
    rows, columns = rows.copy(), columns.copy()
    n_rows = kernels.hashing.number_codes(rows, np.full(n_rows, -1, np.int32))
    n_columns = kernels.hashing.number_codes(columns, np.full(n_columns, -1, np.int32))
    starts = np.zeros(n_rows + 1, np.int64)
    edges = np.empty(gains.size, np.int32), np.empty(gains.size)
    kernels.metrics.group_edges(rows, columns, gains, starts, *edges)
    prices = np.maximum.reduceat(edges[1], starts[:-1]), np.zeros(n_columns)
    pairs = np.full(n_rows, -1), np.full(n_columns, -1)
    came_by, came_from, seen = (np.empty(n_columns, np.int64) for _ in range(3))
    heap = np.empty(gains.size), np.empty(gains.size, np.int32)
    space = np.full(n_columns, np.inf), came_by, came_from, seen, *heap
    done, looks = 0, 0
    while done < n_rows:
        if looks > LIMIT:
            raise PairingError(_too_tangled(rows, columns, n_rows, n_columns))
        done, more = kernels.metrics.pair_rows(done, (starts, *edges), prices, pairs, space, PATIENCE)
        looks += more
    return edges[1][pairs[0][pairs[0] >= 0]]


def _too_tangled(rows: Codes, columns: Codes, n_rows: int, n_columns: int) -> str:
    """Say how large the largest connected component is."""
    component = np.arange(n_rows + n_columns)
    count = kernels.components.find_components(rows, columns + n_rows, component)
    cells = np.bincount(component[rows], minlength=count)
    largest = int(cells.argmax())
    pred, true = (int(np.count_nonzero(side == largest)) for side in np.split(component, [n_rows]))
    return (
        f"the best one-to-one pairing of clusters takes too long: {true} true and {pred} predicted clusters "
        f"hang together through {cells[largest]} cells, and the search gave up after {LIMIT:.0e} looks at a "
        "cell. Leave out matching_accuracy, ceaf_m and ceaf_e; no other score takes that search"
    )


NOTE = (
    "K true clusters of weights a and M predicted clusters of weights b meet in V cells of weights w; N is the"
    " weight of all items. Without weights all of these are numbers of items. Where clusters overlap, an item"
    " counts once in every cluster that it is in, and N is the sum of the a, or of the b."
)
COUNTS = "Clusters count equally, so that weights make no difference."
ONE_TO_ONE = (
    f"{COUNTS} Where clusters overlap, several of a side may have the same items: these are paired with clusters of the"
    " other side one to one, and those left over are not the same."
)

matching = Family("matching", low=0.0, high=1.0, best="higher", note=NOTE)


def _from_fits(formula: Callable[[Fit, Fit], float], contingency: Contingency, pool: Pool) -> float:
    return formula(*contingency.once(fits, pool))


#: Declares a score of the best counterparts on both sides.
of_fits = partial(matching.of_cells, by=_from_fits)


@of_fits(
    "sum over predicted clusters of their largest w, over N",
    source="Zhao and Karypis 2001",
    on_covers=True,
    example="""
    >>> purity(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2 + 2 + 2) / 8
    0.75
    """,
)
def purity(true: Fit, pred: Fit) -> float:
    """Mean over items of the largest share that a true cluster has in their predicted cluster."""
    return pred.own / pred.weight


@of_fits(
    "sum over true clusters of their largest w, over N",
    source="Zhao and Karypis 2001",
    on_covers=True,
    example="""
    >>> inverse_purity(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2 + 2) / 8
    0.5
    """,
)
def inverse_purity(true: Fit, pred: Fit) -> float:
    """Mean over items of the largest share that a predicted cluster has in their true cluster."""
    return true.own / true.weight


@of_fits(
    "2 P R / (P + R), with P = purity and R = inverse_purity",
    source="Amigó et al. 2009",
    on_covers=True,
    example="""
    >>> purity_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # 2 * 3/4 * 1/2 / (3/4 + 1/2)
    0.6
    """,
)
def purity_f1(true: Fit, pred: Fit) -> float:
    """F1 of purity and inverse purity."""
    return float(f_measure(purity(true, pred), inverse_purity(true, pred)))


@of_fits(
    "sum over true clusters of (a / N) max over predicted clusters of 2 w / (a + b)",
    source="Larsen and Aone 1999",
    on_covers=True,
    example="""
    Both true clusters are fitted best by the predicted one that holds two of their items and no other.

    >>> score = class_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # (4/8) * 2 * 2 / (4 + 2) + (4/8) * 2 * 2 / (4 + 2) = 2/3
    0.666666666667
    """,
)
def class_f1(true: Fit, pred: Fit) -> float:
    """Mean over items of the F1 of their true cluster and the predicted one that fits it best."""
    return true.f1 / true.weight


# Clusters that are the same on both sides
@of_fits(
    "clusters that are the same on both sides, over M predicted clusters",
    source="Barnes 2015",
    note=ONE_TO_ONE,
    on_covers=True,
    example="""
    >>> cluster_precision(list("aabc"), [1, 1, 2, 2])  # of 1 and 2, the first
    0.5
    """,
)
def cluster_precision(true: Fit, pred: Fit) -> float:
    """Share of predicted clusters that are true clusters, item for item."""
    return pred.exact / pred.clusters


@of_fits(
    "clusters that are the same on both sides, over K true clusters",
    source="Barnes 2015",
    note=ONE_TO_ONE,
    on_covers=True,
    example="""
    >>> cluster_recall(list("aabb"), [1, 1, 2, 3])  # of a and b, the first
    0.5
    """,
)
def cluster_recall(true: Fit, pred: Fit) -> float:
    """Share of true clusters that are predicted clusters, item for item."""
    return true.exact / true.clusters


@of_fits(
    "2 P R / (P + R), with P = cluster_precision and R = cluster_recall",
    source="Barnes 2015",
    note=ONE_TO_ONE,
    on_covers=True,
    example="""
    >>> cluster_f1(list("aabb"), [1, 1, 2, 3])  # 2 * 1/3 * 1/2 / (1/3 + 1/2)
    0.4
    """,
    three="""
    >>> cluster_precision_recall_fscore(list("aabbc"), [1, 1, 2, 3, 4])  # a and c of a, b, c; 1 and 4 of 4
    PrecisionRecallFscore(precision=0.5, recall=0.6666666666666666, f1=0.5714285714285715)
    """,
)
def cluster_f1(true: Fit, pred: Fit) -> float:
    """F1 of cluster precision and cluster recall."""
    return 2 * true.exact / (true.clusters + pred.clusters)


# The closest cluster of each
@of_fits(
    "1/M sum over predicted clusters of max over true clusters of w / (a + b - w)",
    source="Maidasani et al. 2012",
    weights_inside=True,
    on_covers=True,
    example="""
    >>> score = closest_cluster_precision(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # (2/4 + 2/6 + 2/4) / 3 = 4/9
    0.444444444444
    """,
)
def closest_cluster_precision(true: Fit, pred: Fit) -> float:
    """Mean over predicted clusters, each once, of the Jaccard index with the closest true one."""
    return pred.jaccard / pred.clusters


@of_fits(
    "1/K sum over true clusters of max over predicted clusters of w / (a + b - w)",
    source="Maidasani et al. 2012",
    weights_inside=True,
    on_covers=True,
    example="""
    >>> closest_cluster_recall(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # (2/4 + 2/4) / 2
    0.5
    """,
)
def closest_cluster_recall(true: Fit, pred: Fit) -> float:
    """Mean over true clusters, each once, of the Jaccard index with the closest predicted one."""
    return true.jaccard / true.clusters


@of_fits(
    "2 P R / (P + R), with P = closest_cluster_precision and R = closest_cluster_recall",
    source="Maidasani et al. 2012",
    weights_inside=True,
    on_covers=True,
    example="""
    >>> score = closest_cluster_f1(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # 2 * 4/9 * 1/2 / (4/9 + 1/2) = 8/17
    0.470588235294
    """,
    three="""
    >>> closest_cluster_precision_recall_fscore(list("aabb"), [1, 1, 1, 1])  # 2/4 on both sides
    PrecisionRecallFscore(precision=0.5, recall=0.5, f1=0.5)
    """,
)
def closest_cluster_f1(true: Fit, pred: Fit) -> float:
    """F1 of closest-cluster precision and recall."""
    return float(f_measure(closest_cluster_precision(true, pred), closest_cluster_recall(true, pred)))


# Others
@matching.of_cells(
    "sqrt(K M) / V, with K true and M predicted clusters that meet in V cells",
    source="Talburt et al. 2007",
    note=COUNTS,
    labelled_only=True,
    example="""
    >>> score = talburt_wang(list("aabb"), [1, 2, 2, 2])
    >>> round(score, 12)  # sqrt(2 * 2) / 3: two clusters on each side meet in three cells
    0.666666666667
    """,
)
def talburt_wang(contingency: Contingency, pool: Pool) -> float:
    """Talburt and Wang's index, from the numbers of clusters and of their overlaps alone."""
    true, pred = contingency.once(fits, pool)
    return math.sqrt(true.clusters * pred.clusters) / contingency.n_cells


def slopes_of_k(p: Floats | float, r: Floats | float, beta: float) -> tuple[Any, Any]:
    """Return the derivatives of the K measure by precision and by recall, which are positive."""
    return np.sqrt(r / p) / 2, np.sqrt(p / r) / 2


@matching.of_means(
    "sqrt(P R), with P = precision and R = recall",
    pointwise["precision"],
    pointwise["recall"],
    slopes=slopes_of_k,
    source="Barnes 2015",
    note="",
    example="""
    >>> score = k_measure(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 6)  # sqrt(3/4 * 1/2)
    0.612372
    """,
)
def k_measure(p: Floats | float, r: Floats | float, beta: float) -> Floats | float:
    """Geometric mean of BCubed precision and recall, the K measure."""
    return np.sqrt(p * r)


@of_fits(
    "2 N - sum over predicted clusters of their largest w - the same over true clusters",
    high=inf,
    best="lower",
    source="van Dongen 2000",
    labelled_only=True,
    weights_inside=True,
    example="""
    >>> split_join(list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])  # 2 * 8 - (2 + 2 + 2) - (2 + 2)
    6.0
    """,
)
def split_join(true: Fit, pred: Fit) -> float:
    """Weight of items outside the largest cell of their cluster, summed over both sides; a metric."""
    return true.others + pred.others


@matching.of_cells(
    "max over one-to-one pairings of the sum of their w, over N",
    source="Meila and Heckerman 2001",
    pairs_clusters=True,
    example="""
    One cluster of each side is left over, and the largest cell is not used: 3 alone is less than 2 + 2.

    >>> matching_accuracy(list("aaaaabbc"), [1, 1, 1, 2, 2, 1, 1, 3])  # a with 2, b with 1, c with 3
    0.625
    """,
)
def matching_accuracy(contingency: Contingency, pool: Pool) -> float:
    """Share of the items in the best one-to-one pairing of true and predicted clusters."""

    def weights(start: int, stop: int) -> Floats:
        return np.ascontiguousarray(contingency.weight[start:stop])

    pairing = pair_clusters(contingency, weights, pool)
    return pairing.best / pairing.every


@public
class ExactMatch(NamedTuple):
    """The shares of predicted and of true clusters that the other side has, too, and their F1."""

    precision: float
    recall: float
    f1: float


@public
def exact_match(
    labels_true: Labels | None = None,
    labels_pred: Labels | None = None,
    *,
    contingency: Contingency | None = None,
) -> ExactMatch:
    """Compare the clusters of both sides as sets of items, each as often as it is there.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_items,), dict or Clustering
        Cluster label of each item, or a set of labels for each, both in the same item order; or a dict from
        item to cluster or set of clusters; or a clustering with a row per membership.
    contingency : Contingency, optional
        The cells, as `fastbcubed.contingency` makes them, in place of labels.

    Returns
    -------
    ExactMatch
        Named tuple (precision, recall, f1): the shares of predicted and of true clusters that the
        other side has, too, and their F1. All are 1 if and only if the clusterings are identical.

    Raises
    ------
    FastBCubedError
        If there is no item, if the two sides differ in length, or if a label is missing or cannot be
        one. Every error below is one, too.
    OptionError
        If there are neither labels nor a contingency, or both.

    Notes
    -----
    Where clusters overlap, CICE-BCubed and the others can be 1 for clusterings that differ in how often a
    cluster is there; this one cannot. Weights make no difference.

    Examples
    --------
    >>> exact_match(list("aabb"), [1, 1, 2, 3])  # one of three, one of two
    ExactMatch(precision=0.3333333333333333, recall=0.5, f1=0.4)
    """
    cells = as_cover(labels_true, labels_pred, None, contingency)
    return ExactMatch(*compute(cells, [matching[f"cluster_{part}"] for part in ExactMatch._fields]))
