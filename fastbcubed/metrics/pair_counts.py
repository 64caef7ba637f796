"""How many pairs of items are together or apart on either side, exactly.

The pairs of a cell, n (n - 1) / 2, are together on both sides. An item of a cell is wrongly together with
fp others, and wrongly apart from fn others; half the sum over items is the number of such pairs. With
weights a pair weighs the product of the weights of its items. Counts are exact, and so is all arithmetic on
them until the score is rounded.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import MetricError
from fastbcubed.runtime.pool import BLOCK, Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency

#: From here on a float does not hold every count.
INEXACT = 1 << 53
#: A difference that keeps more than this share of what it is taken from has lost no digits that matter.
SAFE = 2.0**-6


class WrongPairs(NamedTuple):
    """Number or weight of the pairs that are together in the prediction alone, and in the truth alone."""

    fp: Fraction
    fn: Fraction


class PairCounts(NamedTuple):
    """Number or weight of the pairs of items: together on both sides, on one of them, apart on both."""

    tp: Fraction
    fp: Fraction
    fn: Fraction
    tn: Fraction


class PairSums(NamedTuple):
    """What pairs come to; `tp` is left open where there are weights."""

    tp: Fraction | None
    fp: Fraction
    fn: Fraction
    tn: Fraction
    squares: float = 0.0  # of the weights of cells of several items
    single: float = 0.0  # of those of one item, and the error of that sum
    single_error: float = 0.0


def wrong_pairs(contingency: Contingency, pool: Pool) -> WrongPairs:
    """Return the pairs that one side puts together and the other apart."""
    sums = contingency.once(pair_sums, pool)
    return WrongPairs(sums.fp, sums.fn)


def pair_counts(contingency: Contingency, pool: Pool) -> PairCounts:
    """Return the confusion matrix of all pairs of items.

    Raise MetricError if there are weights, and the items are not at hand: only they have the squares of the
    weights.
    """
    sums = contingency.once(pair_sums, pool)
    tp = _weight_together(contingency, sums, pool) if sums.tp is None else sums.tp
    return PairCounts(tp, sums.fp, sums.fn, sums.tn)


def pair_sums(contingency: Contingency, pool: Pool) -> PairSums:
    """Return what one pass over all cells gives."""
    return (_weigh if contingency.weighted else _count)(contingency, pool)


def _count(contingency: Contingency, pool: Pool) -> PairSums:
    """Count all pairs, exactly."""
    tp, fp, fn = ordered_pairs(contingency, pool)
    n = contingency.n_items
    if n >= INEXACT:  # fp and fn of the cells are rounded
        fp, fn = (sum(b * (b - 1) for b in side.tolist()) - tp for side in _margins(contingency))
    return sums_of_counts(tp, fp, fn, n)


def ordered_pairs(contingency: Contingency, pool: Pool) -> list[int]:
    """Count the ordered pairs of items together on both sides, in the prediction alone, in the truth alone.

    Those of parts of the cells, which know their mates in all parts, add up.
    """

    def count(start: int, stop: int) -> list[int]:
        sums = np.empty((3, 2), np.uint64)
        kernels.pairs.count_pairs(contingency.cells, start, stop, sums)
        return [(high << 64) + low for high, low in sums.tolist()]

    return [sum(counts) for counts in zip(*contingency.map(count, pool, "count pairs"), strict=True)]


def sums_of_counts(tp: int, fp: int, fn: int, n_items: int) -> PairSums:
    """Return what pairs come to, from the numbers of ordered ones."""
    tn = n_items * (n_items - 1) - tp - fp - fn
    return PairSums(Fraction(tp, 2), Fraction(fp, 2), Fraction(fn, 2), Fraction(tn, 2))


def _margins(contingency: Contingency) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return contingency.pred_n, contingency.true_n


def _weigh(contingency: Contingency, pool: Pool) -> PairSums:
    """Weigh the pairs that are not together on both sides, and square the weights of the cells."""
    total = contingency.total_weight

    def weigh(start: int, stop: int) -> tuple[list[float], float, float]:
        runs = np.empty((-(-(stop - start) // kernels.runs.RUN), 4))
        single = kernels.pairs.weigh_pairs(contingency.cells, start, stop, total, runs)
        return [math.fsum(column) for column in runs.T.tolist()], *single

    sums, single, error = zip(*contingency.map(weigh, pool, "weigh pairs"), strict=True)
    squares, fp, fn, tn = (math.fsum(column) for column in zip(*sums, strict=True))
    if tn < SAFE * total * total:
        tn = _weight_apart(contingency, pool)
    whole = math.fsum([*single, *error])
    rest = math.fsum([*single, *error, -whole])
    return PairSums(None, Fraction(fp) / 2, Fraction(fn) / 2, Fraction(tn) / 2, squares, whole, rest)


def _weight_apart(contingency: Contingency, pool: Pool) -> float:
    """Return the weight of the ordered pairs apart on both sides, where it is a small part of all."""
    from fastbcubed.cells.confusion import TrueNegatives

    negatives = TrueNegatives(contingency)

    def weigh(start: int, stop: int) -> float:
        return float((contingency.weight[start:stop] * negatives(start, stop)).sum())

    return math.fsum(contingency.map(weigh, pool, "weigh pairs"))


def _weight_together(contingency: Contingency, sums: PairSums, pool: Pool) -> Fraction:
    """Return the weight of the pairs together on both sides: (w^2 - squares of its items) / 2 of each cell.

    The squares of all items less those of the cells of one item are those of the other cells.
    """
    if not sums.squares:  # no cell has two items
        return Fraction(0)
    if contingency.pair_weight is not None:
        return Fraction(contingency.pair_weight)
    if contingency.rows is None:
        raise MetricError(
            "pairs of items with weights need the squares of the weights, which cells alone do not tell. To have the "
            'score, name it in metrics= when evaluating, or evaluate with keep="items"; to cells of your own, given to '
            "Contingency.from_cells, add weight_squares="
        )
    rows = contingency.rows
    if rows.n_rows == contingency.n_items:  # every row is scored
        starts, stops = zip(*blocks(rows.n_rows, BLOCK), strict=True)
        squares = pool.map(
            partial(kernels.pairs.square_weights, rows.weight), starts, stops, stage="square weights"
        )
        parts = [part for pair in squares for part in pair]
        of_items = math.fsum([*parts, -sums.single, -sums.single_error])
        together = sums.squares - of_items
        if together > SAFE * sums.squares and together > 2.0**-60 * sums.single:
            return Fraction(together) / 2
    from fastbcubed.cells.own_weights import weigh_rows
    from fastbcubed.metrics.leaving_out import LeavingOut

    return Fraction(weigh_rows(contingency, LeavingOut([]), pool).pair_weight)
