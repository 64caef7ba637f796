"""Pair counting: scores of all pairs of items, each together or apart on either side.

The pairs of a cell, n (n - 1) / 2, are together on both sides. An item of a cell is wrongly together with
fp others, and wrongly apart from fn others; half the sum over items is the number of such pairs. With
weights a pair weighs the product of the weights of its items. Counts are exact, and so is all arithmetic on
them until the score is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import MetricError
from fastbcubed.metrics.metric import Metric
from fastbcubed.runtime.pool import BLOCK, Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency, Rows

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


class _Sums(NamedTuple):
    """What one pass over the cells gives; `tp` is left open where there are weights."""

    tp: Fraction | None
    fp: Fraction
    fn: Fraction
    tn: Fraction
    squares: float = 0.0  # of the weights of cells of several items
    single: float = 0.0  # of those of one item, and the error of that sum
    single_error: float = 0.0


def wrong_pairs(contingency: Contingency, pool: Pool) -> WrongPairs:
    """Return the pairs that one side puts together and the other apart."""
    sums = contingency.once(_pair_sums, pool)
    return WrongPairs(sums.fp, sums.fn)


def pair_counts(contingency: Contingency, pool: Pool) -> PairCounts:
    """Return the confusion matrix of all pairs of items.

    Raises
    ------
    MetricError
        If there are weights, and the items are not at hand: only they have the squares of the weights.
    """
    sums = contingency.once(_pair_sums, pool)
    tp = _weight_together(contingency, sums, pool) if sums.tp is None else sums.tp
    return PairCounts(tp, sums.fp, sums.fn, sums.tn)


def _pair_sums(contingency: Contingency, pool: Pool) -> _Sums:
    return (_weigh if contingency.weighted else _count)(contingency, pool)


def _count(contingency: Contingency, pool: Pool) -> _Sums:
    """Count all pairs, exactly."""

    def count(start: int, stop: int) -> list[int]:
        sums = np.empty((3, 2), np.uint64)
        kernels.pairs.count_pairs(contingency.cells, start, stop, sums)
        return [(high << 64) + low for high, low in sums.tolist()]

    tp, fp, fn = (
        sum(counts) // 2 for counts in zip(*contingency.map(count, pool, "count pairs"), strict=True)
    )
    n = contingency.n_items
    if n >= INEXACT:  # fp and fn of the cells are rounded
        fp, fn = (sum(b * (b - 1) // 2 for b in side.tolist()) - tp for side in _margins(contingency))
    return _Sums(Fraction(tp), Fraction(fp), Fraction(fn), Fraction(n * (n - 1) // 2 - tp - fp - fn))


def _margins(contingency: Contingency) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return contingency.pred_n, contingency.true_n


def _weigh(contingency: Contingency, pool: Pool) -> _Sums:
    """Weigh the pairs that are not together on both sides, and square the weights of the cells."""
    total = contingency.total_weight

    def weigh(start: int, stop: int) -> tuple[list[float], float, float]:
        runs = np.empty((-(-(stop - start) // kernels.pairs.RUN), 4))
        single = kernels.pairs.weigh_pairs(contingency.cells, start, stop, total, runs)
        return [math.fsum(column) for column in runs.T.tolist()], *single

    sums, single, error = zip(*contingency.map(weigh, pool, "weigh pairs"), strict=True)
    squares, fp, fn, tn = (math.fsum(column) for column in zip(*sums, strict=True))
    if tn < SAFE * total * total:
        tn = _weight_apart(contingency, pool)
    whole = math.fsum([*single, *error])
    rest = math.fsum([*single, *error, -whole])
    return _Sums(None, Fraction(fp) / 2, Fraction(fn) / 2, Fraction(tn) / 2, squares, whole, rest)


def _weight_apart(contingency: Contingency, pool: Pool) -> float:
    """Return the weight of the ordered pairs apart on both sides, where it is a small part of all."""
    from fastbcubed.cells.confusion import TrueNegatives

    negatives = TrueNegatives(contingency)

    def weigh(start: int, stop: int) -> float:
        return float((contingency.weight[start:stop] * negatives(start, stop)).sum())

    return math.fsum(contingency.map(weigh, pool, "weigh pairs"))


def _weight_together(contingency: Contingency, sums: _Sums, pool: Pool) -> Fraction:
    """Return the weight of the pairs together on both sides: (w^2 - squares of its items) / 2 of each cell.

    The squares of all items less those of the cells of one item are those of the other cells.
    """
    if not sums.squares:  # no cell has two items
        return Fraction(0)
    if contingency.pair_weight is not None:
        return Fraction(contingency.pair_weight)
    if contingency.rows is None:
        raise MetricError(
            "pairs of items with weights need the squares of the weights, and this contingency was made "
            "from cells alone; pass weight_squares to from_cells, or build it from labels or tables"
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
    return Fraction(_weigh_rows(contingency, rows)) / 2


def _weigh_rows(contingency: Contingency, rows: Rows) -> float:
    """Sum, over items, the weight of the item times that of the others in its cell."""
    from fastbcubed.cells.records import add_up

    totals, errors = add_up(rows.cell, contingency.n_cells, rows.weight, np.ones(rows.cell.size))
    sums = []
    for start, stop in blocks(rows.cell.size, BLOCK):
        cell, weight = rows.cell[start:stop], rows.weight[start:stop]
        scored = cell >= 0  # others may have no weight
        cell, weight = cell[scored], weight[scored]
        others = (totals[cell] - weight) + errors[cell]
        others[contingency.n[cell] == 1] = 0.0
        sums.append(float((weight * others).sum()))
    return math.fsum(sums)


# The formulas


def share(part: Fraction, whole: Fraction) -> Fraction:
    """Return part / whole, and 1 where whole is 0: nothing there could have gone wrong."""
    return part / whole if whole else Fraction(1)


def precision(tp: Fraction, fp: Fraction, fn: Fraction, tn: Fraction) -> Fraction:
    """Return the share of the pairs together in the prediction that belong together."""
    return share(tp, tp + fp)


def recall(tp: Fraction, fp: Fraction, fn: Fraction, tn: Fraction) -> Fraction:
    """Return the share of the pairs that belong together that were put together."""
    return share(tp, tp + fn)


def f1(tp: Fraction, fp: Fraction, fn: Fraction, tn: Fraction) -> Fraction:
    """Return the harmonic mean of precision and recall."""
    return share(2 * tp, 2 * tp + fp + fn)


def rand(tp: Fraction, fp: Fraction, fn: Fraction, tn: Fraction) -> Fraction:
    """Return the share of all pairs on which both sides agree."""
    return share(tp + tn, tp + fp + fn + tn)


def adjusted_rand(tp: Fraction, fp: Fraction, fn: Fraction, tn: Fraction) -> Fraction:
    """Return the Rand index beyond chance; the denominator is 0 for equal trivial clusterings alone."""
    return share(2 * (tp * tn - fp * fn), (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn))


def jaccard(tp: Fraction, fp: Fraction, fn: Fraction, tn: Fraction) -> Fraction:
    """Return the pairs together on both sides over those together on either."""
    return share(tp, tp + fp + fn)


def fowlkes_mallows(tp: Fraction, fp: Fraction, fn: Fraction, tn: Fraction) -> float:
    """Return the geometric mean of precision and recall."""
    return math.sqrt(precision(tp, fp, fn, tn) * recall(tp, fp, fn, tn))


def of_pairs(
    formula: Callable[[Fraction, Fraction, Fraction, Fraction], Fraction | float],
    contingency: Contingency,
    pool: Pool,
) -> float:
    """Return a score of the confusion matrix of pairs."""
    return float(formula(*contingency.once(pair_counts, pool)))


def of_wrong_pairs(
    formula: Callable[[Fraction, Fraction], Fraction], contingency: Contingency, pool: Pool
) -> float:
    """Return a figure of the pairs on which the sides differ, which does not take the items."""
    return float(formula(*wrong_pairs(contingency, pool)))


def pairs_tp(tp: Fraction, fp: Fraction, fn: Fraction, tn: Fraction) -> Fraction:
    """Return the pairs together on both sides."""
    return tp


def pairs_tn(tp: Fraction, fp: Fraction, fn: Fraction, tn: Fraction) -> Fraction:
    """Return the pairs apart on both sides."""
    return tn


def pairs_fp(fp: Fraction, fn: Fraction) -> Fraction:
    """Return the pairs together in the prediction alone."""
    return fp


def pairs_fn(fp: Fraction, fn: Fraction) -> Fraction:
    """Return the pairs together in the truth alone."""
    return fn


def mirkin(fp: Fraction, fn: Fraction) -> Fraction:
    """Return the ordered pairs on which the sides differ."""
    return 2 * (fp + fn)


NOTE = (
    "TP, FP, FN and TN count the pairs of items that are together on both sides, in the prediction alone,"
    " in the truth alone, and on neither. With weights a pair counts the product of the weights of its items."
)


def scores() -> Iterator[Metric]:
    """Yield the scores of the family "pairs"."""
    base = partial(Metric, family="pairs", low=0.0, labelled_only=True, weights_inside=True, note=NOTE)
    amount = partial(base, high=inf, source="Amigó et al. 2009")
    where = {
        "tp": ("together on both sides", "higher", partial(of_pairs, pairs_tp)),
        "fp": ("together in the prediction alone", "lower", partial(of_wrong_pairs, pairs_fp)),
        "fn": ("together in the truth alone", "lower", partial(of_wrong_pairs, pairs_fn)),
        "tn": ("apart on both sides", "higher", partial(of_pairs, pairs_tn)),
    }
    for name, (what, best, score) in where.items():
        yield amount(
            f"pair_{name}",
            best=best,
            summary=f"Pairs of items that are {what}.",
            definition=name.upper(),
            score=score,
        )
    rate = partial(base, high=1.0, best="higher", source="Amigó et al. 2009")
    yield rate(
        "pair_precision",
        summary="Share of the pairs together in the prediction that belong together.",
        definition="TP / (TP + FP), 1 if no pair is together in the prediction",
        score=partial(of_pairs, precision),
    )
    yield rate(
        "pair_recall",
        summary="Share of the pairs that belong together that the prediction puts together.",
        definition="TP / (TP + FN), 1 if no pair belongs together",
        score=partial(of_pairs, recall),
    )
    yield rate(
        "pair_f1",
        summary="F1 of pair precision and pair recall.",
        definition="2 TP / (2 TP + FP + FN), 1 if no pair is together on either side",
        score=partial(of_pairs, f1),
    )
    yield rate(
        "rand",
        summary="Share of all pairs on which both sides agree, the Rand index.",
        definition="(TP + TN) / (TP + FP + FN + TN), 1 if there is one item",
        source="Rand 1971",
        score=partial(of_pairs, rand),
    )
    yield rate(
        "adjusted_rand",
        low=-1.0,
        summary="Rand index beyond chance: 0 is what shuffled items get on average, 1 is the best.",
        definition="2 (TP TN - FP FN) / ((TP + FN) (FN + TN) + (TP + FP) (FP + TN)), 1 where that is 0 / 0:"
        " both sides are one cluster, or singletons",
        source="Hubert and Arabie 1985",
        score=partial(of_pairs, adjusted_rand),
    )
    yield rate(
        "pair_jaccard",
        summary="Pairs together on both sides, relative to those together on either.",
        definition="TP / (TP + FP + FN), 1 if no pair is together on either side",
        score=partial(of_pairs, jaccard),
    )
    yield rate(
        "pair_fowlkes_mallows",
        summary="Geometric mean of pair precision and pair recall.",
        definition="sqrt(P R), with P = pair_precision and R = pair_recall",
        source="Fowlkes and Mallows 1983",
        score=partial(of_pairs, fowlkes_mallows),
    )
    yield amount(
        "mirkin",
        best="lower",
        summary="Ordered pairs of items on which the sides differ, Mirkin's metric.",
        definition="2 (FP + FN)",
        source="Mirkin 1996",
        score=partial(of_wrong_pairs, mirkin),
    )
