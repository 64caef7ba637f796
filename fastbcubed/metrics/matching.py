"""Matching: how well each cluster fits its best counterpart on the other side.

Where weights count in means alone (`weighting="outer"`), shares and F are those of counts, and the means
over items weigh them. A one-to-one pairing is the one of the largest weight either way. Where clusters
overlap, an item counts once in every cluster that it is in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.metrics.assignment import pair_clusters
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.pointwise import f_measure
from fastbcubed.overlap.covers import Cover
from fastbcubed.runtime.pool import BLOCK, Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.metrics.metric import Floats
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
        runs = np.empty((-(-(stop - start) // kernels.matching.RUN), kernels.matching.FIGURES))
        count = kernels.matching.find_best(
            cells, codes, start, stop, side == "true", outer, numbers, best, count, runs
        )
        sums.append(runs)
    for start, stop in blocks(count, BLOCK):
        runs = np.empty((-(-(stop - start) // kernels.matching.RUN), kernels.matching.FIGURES))
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


# Scores


def of_fits(formula: Callable[[Fit, Fit], float], contingency: Contingency, pool: Pool) -> float:
    """Return a score of the best counterparts on both sides."""
    return formula(*contingency.once(fits, pool))


def purity(true: Fit, pred: Fit) -> float:
    """Return the mean over items of the largest share in their predicted cluster."""
    return pred.own / pred.weight


def inverse_purity(true: Fit, pred: Fit) -> float:
    """Return the mean over items of the largest share in their true cluster."""
    return true.own / true.weight


def purity_f1(true: Fit, pred: Fit) -> float:
    """Return the harmonic mean of both."""
    return float(f_measure(purity(true, pred), inverse_purity(true, pred)))


def class_f1(true: Fit, pred: Fit) -> float:
    """Return the mean over items of the best F of their true cluster."""
    return true.f1 / true.weight


def closest_precision(true: Fit, pred: Fit) -> float:
    """Return the mean over predicted clusters of the largest Jaccard index."""
    return pred.jaccard / pred.clusters


def closest_recall(true: Fit, pred: Fit) -> float:
    """Return the mean over true clusters of the largest Jaccard index."""
    return true.jaccard / true.clusters


def closest_f1(true: Fit, pred: Fit) -> float:
    """Return the harmonic mean of both."""
    return float(f_measure(closest_precision(true, pred), closest_recall(true, pred)))


def split_join(true: Fit, pred: Fit) -> float:
    """Return the weight beside the largest cells of both sides."""
    return true.others + pred.others


def exact_precision(true: Fit, pred: Fit) -> float:
    """Return the share of predicted clusters that are true ones."""
    return pred.exact / pred.clusters


def exact_recall(true: Fit, pred: Fit) -> float:
    """Return the share of true clusters that were predicted as they are."""
    return true.exact / true.clusters


def exact_f1(true: Fit, pred: Fit) -> float:
    """Return the harmonic mean of both."""
    return 2 * true.exact / (true.clusters + pred.clusters)


def talburt_wang(contingency: Contingency, pool: Pool) -> float:
    """Return the geometric mean of the numbers of clusters, relative to that of cells."""
    true, pred = contingency.once(fits, pool)
    return math.sqrt(true.clusters * pred.clusters) / contingency.n_cells


def k_measure(means: Mapping[str, Any], beta: float) -> Any:
    """Return the geometric mean of precision and recall."""
    return np.sqrt(means["precision"] * means["recall"])


def matching_accuracy(contingency: Contingency, pool: Pool) -> float:
    """Return the share of the weight in the best one-to-one pairing of clusters."""

    def weights(start: int, stop: int) -> Floats:
        return np.ascontiguousarray(contingency.weight[start:stop])

    pairing = pair_clusters(contingency, weights, pool)
    return pairing.best / pairing.every


NOTE = (
    "K true clusters of weights a and M predicted clusters of weights b meet in V cells of weights w; N is the"
    " weight of all items. Without weights all of these are numbers of items. Where clusters overlap, an item"
    " counts once in every cluster that it is in, and N is the sum of the a, or of the b."
)
COUNTS = "Clusters count equally, so that weights make no difference."


def scores() -> Iterator[Metric]:
    """Yield the scores of the family "matching"."""
    rate = partial(Metric, family="matching", low=0.0, high=1.0, best="higher", note=NOTE)
    zhao = partial(rate, source="Zhao and Karypis 2001")
    yield zhao(
        "purity",
        summary="Mean over items of the largest share that a true cluster has in their predicted cluster.",
        definition="sum over predicted clusters of their largest w, over N",
        score=partial(of_fits, purity),
        on_covers=True,
    )
    yield zhao(
        "inverse_purity",
        summary="Mean over items of the largest share that a predicted cluster has in their true cluster.",
        definition="sum over true clusters of their largest w, over N",
        score=partial(of_fits, inverse_purity),
        on_covers=True,
    )
    yield zhao(
        "purity_f1",
        summary="F1 of purity and inverse purity.",
        definition="2 P R / (P + R), with P = purity and R = inverse_purity",
        source="Amigó et al. 2009",
        score=partial(of_fits, purity_f1),
        on_covers=True,
    )
    yield rate(
        "class_f1",
        summary="Mean over items of the F1 of their true cluster and the predicted one that fits it best.",
        definition="sum over true clusters of (a / N) max over predicted clusters of 2 w / (a + b)",
        source="Larsen and Aone 1999",
        score=partial(of_fits, class_f1),
        on_covers=True,
    )
    exact = partial(rate, source="Barnes 2015", note=COUNTS)
    yield exact(
        "cluster_precision",
        summary="Share of predicted clusters that are true clusters, item for item.",
        definition="clusters that are the same on both sides, over M predicted clusters",
        score=partial(of_fits, exact_precision),
        on_covers=True,
    )
    yield exact(
        "cluster_recall",
        summary="Share of true clusters that are predicted clusters, item for item.",
        definition="clusters that are the same on both sides, over K true clusters",
        score=partial(of_fits, exact_recall),
        on_covers=True,
    )
    yield exact(
        "cluster_f1",
        summary="F1 of cluster precision and cluster recall.",
        definition="2 P R / (P + R), with P = cluster_precision and R = cluster_recall",
        score=partial(of_fits, exact_f1),
        on_covers=True,
    )
    closest = partial(rate, source="Maidasani et al. 2012", weights_inside=True)
    yield closest(
        "closest_cluster_precision",
        summary="Mean over predicted clusters, each once, of the Jaccard index with the closest true one.",
        definition="1/M sum over predicted clusters of max over true clusters of w / (a + b - w)",
        score=partial(of_fits, closest_precision),
        on_covers=True,
    )
    yield closest(
        "closest_cluster_recall",
        summary="Mean over true clusters, each once, of the Jaccard index with the closest predicted one.",
        definition="1/K sum over true clusters of max over predicted clusters of w / (a + b - w)",
        score=partial(of_fits, closest_recall),
        on_covers=True,
    )
    yield closest(
        "closest_cluster_f1",
        summary="F1 of closest-cluster precision and recall.",
        definition="2 P R / (P + R), with P = closest_cluster_precision and R = closest_cluster_recall",
        score=partial(of_fits, closest_f1),
        on_covers=True,
    )
    yield rate(
        "talburt_wang",
        summary="Talburt and Wang's index, from the numbers of clusters and of their overlaps alone.",
        definition="sqrt(K M) / V, with K true and M predicted clusters that meet in V cells",
        source="Talburt et al. 2007",
        labelled_only=True,
        note=COUNTS,
        score=talburt_wang,
    )
    yield rate(
        "k_measure",
        summary="Geometric mean of BCubed precision and recall, the K measure.",
        definition="sqrt(P R), with P = precision and R = recall",
        source="Barnes 2015",
        note="",
        combine=k_measure,
        needs=("precision", "recall"),
    )
    yield rate(
        "split_join",
        high=inf,
        best="lower",
        summary="Weight of the items beside the largest cell of their cluster, of both sides: a metric.",
        definition="2 N - sum over predicted clusters of their largest w - the same over true clusters",
        source="van Dongen 2000",
        labelled_only=True,
        weights_inside=True,
        score=partial(of_fits, split_join),
    )
    yield rate(
        "matching_accuracy",
        summary="Share of the items in the best one-to-one pairing of true and predicted clusters.",
        definition="max over one-to-one pairings of the sum of their w, over N",
        source="Meila and Heckerman 2001",
        pairs_clusters=True,
        score=matching_accuracy,
    )
