"""Sums over all cells that are computed faster than from sums by unit: numbers of pairs, entropies."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.cell_parts import weigh_rows
from fastbcubed.cells.contingency import Contingency, TrueNegatives
from fastbcubed.errors import MetricError, arg
from fastbcubed.metrics.aggregation import LeavingOut
from fastbcubed.overlap.omega_and_nmi import SharedClusters, shared_clusters, sides_of
from fastbcubed.runtime.threads import BLOCK, Pool, blocks
from fastbcubed.types import Floats, Sizes

#: From this number on, not every count is exact as a float.
INEXACT = 1 << 53
#: A difference larger than this share of its minuend has lost only a few digits.
SAFE = 2.0**-6


class PairCounts(NamedTuple):
    """Number or weight of the pairs in the same cluster on both sides, on one of them only, and on neither."""

    tp: Fraction
    fp: Fraction
    fn: Fraction
    tn: Fraction


class PairSums(NamedTuple):
    """Sums over pairs, from one pass over all cells; `tp` is None if items have weights."""

    tp: Fraction | None
    fp: Fraction
    fn: Fraction
    tn: Fraction
    squares: float = 0.0  # sum of squared weights of cells with several items
    single: float = 0.0  # sum of squared weights of one-item cells, and its rounding error
    single_error: float = 0.0


def pair_counts(contingency: Contingency, pool: Pool) -> PairCounts:
    """Return the confusion matrix of all pairs of items.

    Raises MetricError if items have weights and are not kept, because cells do not contain the squares of the weights.
    """
    sums = (_weigh_pairs if contingency.weighted else _count_pairs)(contingency, pool)
    tp = _weight_together(contingency, sums, pool) if sums.tp is None else sums.tp
    return PairCounts(tp, sums.fp, sums.fn, sums.tn)


def _count_pairs(contingency: Contingency, pool: Pool) -> PairSums:
    """Return the exact numbers of pairs of each kind."""
    n, (tp, fp, fn) = contingency.n_items, ordered_pairs(contingency, pool)
    if n >= INEXACT:  # then fp and fn of the cells are rounded
        fp, fn = (
            sum(b * (b - 1) for b in side.tolist()) - tp for side in (contingency.pred_n, contingency.true_n)
        )
    return sums_of_counts(tp, fp, fn, n)


def ordered_pairs(contingency: Contingency, pool: Pool) -> list[int]:
    """Count the ordered pairs of items in the same cluster on both sides, in the prediction only, in the truth only.

    The numbers of parts of the cells may be summed, since the margins of each cell cover all parts.
    """

    def count(start: int, stop: int) -> list[int]:
        sums = np.empty((3, 2), np.uint64)
        kernels.metrics.count_pairs(contingency.cells, start, stop, sums)
        return [(high << 64) + low for high, low in sums.tolist()]

    return [sum(counts) for counts in zip(*contingency.map(count, pool, "count pairs"), strict=True)]


def sums_of_counts(tp: int, fp: int, fn: int, n_items: int) -> PairSums:
    """Return sums over pairs from the numbers of ordered pairs."""
    tn = n_items * (n_items - 1) - tp - fp - fn
    return PairSums(Fraction(tp, 2), Fraction(fp, 2), Fraction(fn, 2), Fraction(tn, 2))


def _weigh_pairs(contingency: Contingency, pool: Pool) -> PairSums:
    """Return the weights of the pairs outside cells, and the squared weights of the cells."""
    total = contingency.total_weight

    def weigh(start: int, stop: int) -> tuple[list[float], float, float]:
        runs = np.empty((-(-(stop - start) // kernels.partition.RUN), 4))
        single = kernels.metrics.weigh_pairs(contingency.cells, start, stop, total, runs)
        return [math.fsum(column) for column in runs.T.tolist()], *single

    sums, single, error = zip(*contingency.map(weigh, pool, "weigh pairs"), strict=True)
    squares, fp, fn, tn = (math.fsum(column) for column in zip(*sums, strict=True))
    if tn < SAFE * total * total:
        tn = _weight_apart(contingency, pool)
    whole = math.fsum([*single, *error])
    rest = math.fsum([*single, *error, -whole])
    return PairSums(None, Fraction(fp) / 2, Fraction(fn) / 2, Fraction(tn) / 2, squares, whole, rest)


def _weight_apart(contingency: Contingency, pool: Pool) -> float:
    """Return the weight of ordered pairs in different clusters on both sides, without subtracting nearly equal sums."""
    negatives = TrueNegatives(contingency)

    def weigh(start: int, stop: int) -> float:
        return float((contingency.weight[start:stop] * negatives(start, stop)).sum())

    return math.fsum(contingency.map(weigh, pool, "weigh pairs"))


def _weight_together(contingency: Contingency, sums: PairSums, pool: Pool) -> Fraction:
    """Return the weight of the pairs within cells, the sum over cells of (w^2 - squares of its items) / 2.

    The squares of the items in cells of several items are the squares of all items minus those of one-item cells.
    """
    if not sums.squares:  # no cell has two items
        return Fraction(0)
    if contingency.pair_weight is not None:
        return Fraction(contingency.pair_weight)
    if contingency.rows is None:
        raise MetricError(
            "scores of weighted pairs need the squares of the weights, which cells do not contain. To have "
            f"the score, name it in {arg('metrics', ...)} when evaluating, or evaluate with {arg('keep', 'items')}; "
            "for cells of your own, pass weight_squares= to Contingency.from_cells"
        )
    rows = contingency.rows
    if rows.n_rows == contingency.n_items:  # every row is scored
        starts, stops = zip(*blocks(rows.n_rows, BLOCK), strict=True)
        squares = pool.map(
            partial(kernels.metrics.square_weights, rows.weight), starts, stops, stage="square weights"
        )
        parts = [part for pair in squares for part in pair]
        of_items = math.fsum([*parts, -sums.single, -sums.single_error])
        together = sums.squares - of_items
        if together > SAFE * sums.squares and together > 2.0**-60 * sums.single:
            return Fraction(together) / 2
    return Fraction(weigh_rows(contingency, LeavingOut([]), pool).pair_weight)


def pairs_by_shared_clusters(contingency: Contingency, pool: Pool) -> SharedClusters:
    """Count pairs of items by the number of clusters that they share: 0 or 1, or more in a cover."""
    if contingency.overlapping:
        return shared_clusters(contingency.once(sides_of, pool), contingency.max_pairs)
    return shared_by_pairs(*contingency.once(pair_counts, pool))


def shared_by_pairs(tp: Any, fp: Any, fn: Any, tn: Any) -> SharedClusters:
    """Return the sums for Omega from the confusion matrix of pairs, which share at most one cluster of a side."""
    return SharedClusters(tp + fp + fn + tn, tp + tn, (tp + fn) * (tp + fp) + (fn + tn) * (fp + tn))


# Entropies

#: Cluster sizes below this are counted in the pass over the cells, and their logarithms are kept in a table.
USUAL = 1 << 12
#: Number of cluster sizes of one side per task when mutual information by chance is computed.
SIZES_AT_ONCE = 16


class Entropies(NamedTuple):
    """Entropies in nats: of each side, and of each side given the other; exactly 0 where there is no uncertainty."""

    true: float
    pred: float
    true_given_pred: float
    pred_given_true: float


class SizeCounts(NamedTuple):
    """The distinct cluster sizes of each side with the number of clusters of each size, and n times both losses."""

    true: Sizes
    pred: Sizes
    true_given_pred: float
    pred_given_true: float


def entropies(contingency: Contingency, pool: Pool) -> Entropies:
    """Return the entropies of both sides, for an item drawn with a probability proportional to its weight."""
    if contingency.weighted:
        return _weigh_losses(contingency, pool)
    return entropies_of_counts(contingency.once(count, pool), contingency.n_items)


def entropies_of_counts(counts: SizeCounts, n: int) -> Entropies:
    """Return the entropies of n items without weights."""
    true, pred = (
        math.fsum((sizes * clusters * _logs_of_shares(sizes, n)).tolist()) for sizes, clusters in counts[:2]
    )
    return Entropies(true / n, pred / n, counts.true_given_pred / n, counts.pred_given_true / n)


def _logs_of_shares(sizes: NDArray[np.int64], n: int) -> Floats:
    """Return log(n / size), computed from the items outside a cluster if it has nearly all of them."""
    logs = np.log(n / sizes)
    large = sizes > kernels.metrics.DOMINANT * n
    logs[large] = np.log1p((n - sizes[large]) / sizes[large])
    return logs


def count(contingency: Contingency, pool: Pool) -> SizeCounts:
    """Return the cluster sizes of both sides and the losses, computed from counts."""
    losses, (true_items, pred_items) = count_part(contingency, pool)
    return SizeCounts(
        _sizes(true_items, contingency, "true"), _sizes(pred_items, contingency, "pred"), *losses
    )


def count_part(contingency: Contingency, pool: Pool) -> tuple[list[float], NDArray[np.int64]]:
    """Return n times both losses, and the items by size of cluster below USUAL on each side; entry 0 is the rest.

    The results of parts of the cells may be summed, since the margins of each cell cover all parts.
    """
    logs = np.log(np.maximum(np.arange(USUAL), 1))

    def task(start: int, stop: int) -> tuple[list[float], NDArray[np.int64]]:
        runs, items = (
            np.empty((-(-(stop - start) // kernels.partition.RUN), 2)),
            np.zeros((2, USUAL), np.int64),
        )
        kernels.metrics.count_losses(contingency.cells, start, stop, logs, *items, runs)
        return [math.fsum(column) for column in runs.T.tolist()], items

    losses, items = zip(*contingency.map(task, pool, "count cluster sizes"), strict=True)
    return [math.fsum(column) for column in zip(*losses, strict=True)], np.sum(items, axis=0)


def _sizes(items: NDArray[np.int64], contingency: Contingency, side: str) -> Sizes:
    """Return the distinct cluster sizes of a side, ascending, and the number of clusters of each."""
    if items[0]:  # some clusters are larger
        margin = contingency.true_n if side == "true" else contingency.pred_n
        return np.unique(margin[margin > 0], return_counts=True)
    sizes = np.flatnonzero(items)
    return sizes, items[sizes] // sizes


def _weigh_losses(contingency: Contingency, pool: Pool) -> Entropies:
    total = contingency.total_weight
    sums, most = weigh_part(contingency, total, (-1.0, -1.0), pool)
    if max(most) > kernels.metrics.DOMINANT * total:
        beside = _beside(contingency.true_weight), _beside(contingency.pred_weight)
        sums, _ = weigh_part(contingency, total, beside, pool)
    return entropies_of_sums(sums, total)


def weigh_part(
    contingency: Contingency, total: float, beside: tuple[float, float], pool: Pool
) -> tuple[list[float], list[float]]:
    """Return the arguments of `entropies_of_sums`, and the weight of the heaviest cluster of each side.

    `total` is the weight of all items. The results of parts of the cells may be summed, since the margins of each
    cell cover all parts.
    """

    def task(start: int, stop: int) -> tuple[list[float], tuple[float, float]]:
        runs = np.empty((-(-(stop - start) // kernels.partition.RUN), 4))
        most = kernels.metrics.weigh_losses(contingency.cells, start, stop, total, *beside, runs)
        return [math.fsum(column) for column in runs.T.tolist()], most

    sums, most = zip(*contingency.map(task, pool, "weigh losses"), strict=True)
    added = [math.fsum(column) for column in zip(*sums, strict=True)]
    return added, list(map(max, zip(*most, strict=True)))


def entropies_of_sums(sums: list[float], total: float) -> Entropies:
    """Return the entropies, given `total` times each: truth given prediction, the reverse, truth, prediction."""
    true_given_pred, pred_given_true, true, pred = (each / total for each in sums)
    return Entropies(true, pred, true_given_pred, pred_given_true)


def _beside(weights: Floats) -> float:
    """Return the total weight of all clusters except the heaviest, without a subtraction."""
    heaviest = int(np.argmax(weights))
    return float(weights[:heaviest].sum() + weights[heaviest + 1 :].sum())


class Chance(NamedTuple):
    """The expected mutual information in nats if items are shuffled and cluster sizes kept."""

    expected: float
    fixed: bool  #: whether shuffling has no effect, because a side is one cluster or all singletons


def chance(contingency: Contingency, pool: Pool) -> Chance:
    """Return the mutual information expected by chance."""
    return chance_of_counts(contingency.once(count, pool), contingency.n_items, pool)


def chance_of_counts(counts: SizeCounts, n: int, pool: Pool) -> Chance:
    """Return the mutual information expected by chance; clusters of equal size are handled together."""
    fewer, more = sorted((counts.true, counts.pred), key=lambda side: side[0].size)

    def task(start: int, stop: int) -> float:
        return float(kernels.metrics.expect_shared(n, *more, start, stop, *fewer))

    starts, stops = zip(*blocks(more[0].size, SIZES_AT_ONCE), strict=True)
    expected = math.fsum(pool.map(task, starts, stops, stage="expect by chance")) / n
    return Chance(expected, any(sizes[0] == n or sizes[-1] == 1 for sizes, _ in (counts.true, counts.pred)))


class CodeLengths(NamedTuple):
    """Code lengths in nats of the true clusters, given the true clusters themselves or the predicted ones."""

    of_truth: float
    of_prediction: float
    n_items: int


def code_lengths(contingency: Contingency, pool: Pool) -> CodeLengths:
    """Return Dom's code lengths."""
    return code_lengths_of_counts(contingency.once(count, pool), contingency.n_items)


def code_lengths_of_counts(counts: SizeCounts, n: int) -> CodeLengths:
    """Return Dom's code lengths."""
    n_true = int(counts.true[1].sum())
    of_prediction = counts.true_given_pred + _code_length(counts.pred, n_true)
    return CodeLengths(_code_length(counts.true, n_true), of_prediction, n)


def _code_length(side: Sizes, n_classes: int) -> float:
    """Return the code length, in nats, of the counts of each class in each cluster of a side."""
    sizes, clusters = side
    lengths = np.empty(sizes.size)
    kernels.metrics.log_choices(sizes, n_classes - 1, lengths)
    return math.fsum((clusters * lengths).tolist())
