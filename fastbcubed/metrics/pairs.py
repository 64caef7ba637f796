"""How many pairs of items are together or apart on either side, exactly.

The pairs of a cell, n (n - 1) / 2, are together on both sides. An item of a cell is wrongly together with
fp others, and wrongly apart from fn others; half the sum over items is the number of such pairs. With
weights a pair weighs the product of the weights of its items. Counts are exact, and so is all arithmetic on
them until the score is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed import kernels
from fastbcubed.errors import MetricError, arg
from fastbcubed.metrics.labelings import as_contingency, check_defined, public
from fastbcubed.metrics.score import LIKE_SKLEARN, Family, Page, rate
from fastbcubed.runtime.threads import BLOCK, Pool, blocks

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
    """Sums over pairs; `tp` is not set where there are weights."""

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

    Raise MetricError if there are weights, and the items are not kept: only they have the squares of the
    weights.
    """
    sums = contingency.once(pair_sums, pool)
    tp = _weight_together(contingency, sums, pool) if sums.tp is None else sums.tp
    return PairCounts(tp, sums.fp, sums.fn, sums.tn)


def pair_sums(contingency: Contingency, pool: Pool) -> PairSums:
    """Return the sums of one pass over all cells."""
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
        kernels.metrics.count_pairs(contingency.cells, start, stop, sums)
        return [(high << 64) + low for high, low in sums.tolist()]

    return [sum(counts) for counts in zip(*contingency.map(count, pool, "count pairs"), strict=True)]


def sums_of_counts(tp: int, fp: int, fn: int, n_items: int) -> PairSums:
    """Return sums over pairs from the numbers of ordered pairs."""
    tn = n_items * (n_items - 1) - tp - fp - fn
    return PairSums(Fraction(tp, 2), Fraction(fp, 2), Fraction(fn, 2), Fraction(tn, 2))


def _margins(contingency: Contingency) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return contingency.pred_n, contingency.true_n


def _weigh(contingency: Contingency, pool: Pool) -> PairSums:
    """Weigh the pairs that are not together on both sides, and square the weights of the cells."""
    total = contingency.total_weight

    def weigh(start: int, stop: int) -> tuple[list[float], float, float]:
        runs = np.empty((-(-(stop - start) // kernels.runs.RUN), 4))
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
    """Return the weight of the ordered pairs apart on both sides, where it is a small part of all."""
    from fastbcubed.cells.contingency import TrueNegatives

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
            "pairs of items with weights need the squares of the weights, which cells alone do not tell. To have "
            f"the score, name it in {arg('metrics', ...)} when evaluating, or evaluate with {arg('keep', 'items')}; "
            "to cells of your own, given to Contingency.from_cells, add weight_squares="
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
    from fastbcubed.cells.cell_parts import weigh_rows
    from fastbcubed.metrics.aggregation import LeavingOut

    return Fraction(weigh_rows(contingency, LeavingOut([]), pool).pair_weight)


#: A fraction, or an array of floats.
Number = Any

NOTE = (
    "TP, FP, FN and TN count the pairs of items that are together on both sides, in the prediction alone,"
    " in the truth alone, and on neither. With weights a pair counts the product of the weights of its items."
)

pairs = Family(
    "pairs",
    low=0.0,
    high=1.0,
    best="higher",
    source="Amigó et al. 2009",
    note=NOTE,
    labelled_only=True,
    weights_inside=True,
)


def _from_pairs(formula: Callable[..., Fraction | float], contingency: Contingency, pool: Pool) -> float:
    return float(formula(*contingency.once(pair_counts, pool)))


def _from_wrong_pairs(formula: Callable[..., Fraction], contingency: Contingency, pool: Pool) -> float:
    return float(formula(*wrong_pairs(contingency, pool)))


#: Declare a score of the confusion matrix of pairs, and a figure of those on which the sides differ, which does not
#: take the items.
of_pairs = partial(pairs.of_cells, by=_from_pairs)
of_wrong_pairs = partial(pairs.of_cells, by=_from_wrong_pairs)


def share(part: Number, whole: Number) -> Number:
    """Return part / whole, and 1 where whole is 0: nothing there could have gone wrong."""
    if isinstance(whole, np.ndarray):
        return rate(part, whole)
    return part / whole if whole else Fraction(1)


@of_pairs(
    "TP",
    high=inf,
    example="""
    >>> pair_tp(list("aaabb"), [1, 1, 2, 2, 2])  # one pair of a, one of b
    2.0
    """,
)
def pair_tp(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Pairs of items that are together on both sides."""
    return tp


@of_wrong_pairs(
    "FP",
    high=inf,
    best="lower",
    example="""
    >>> pair_fp(list("aaabb"), [1, 1, 2, 2, 2])  # an a with each b
    2.0
    """,
)
def pair_fp(fp: Number, fn: Number) -> Number:
    """Pairs of items that are together in the prediction alone."""
    return fp


@of_wrong_pairs(
    "FN",
    high=inf,
    best="lower",
    example="""
    >>> pair_fn(list("aaabb"), [1, 1, 2, 2, 2])  # an a from each other a
    2.0
    >>> pair_fn(list("aab"), [1, 2, 1], sample_weight=[1, 2, 3])  # 1 * 2
    2.0
    """,
)
def pair_fn(fp: Number, fn: Number) -> Number:
    """Pairs of items that are together in the truth alone."""
    return fn


@of_pairs(
    "TN",
    high=inf,
    example="""
    >>> pair_tn(list("aaabb"), [1, 1, 2, 2, 2])  # 10 pairs in all, less 2 + 2 + 2
    4.0
    """,
)
def pair_tn(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Pairs of items that are apart on both sides."""
    return tn


@of_pairs(
    "TP / (TP + FP), 1 if no pair is together in the prediction",
    example="""
    >>> pair_precision(list("aaabb"), [1, 1, 2, 2, 2])  # 2 / (2 + 2)
    0.5
    """,
)
def pair_precision(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Share of the pairs together in the prediction that belong together."""
    return share(tp, tp + fp)


@of_pairs(
    "TP / (TP + FN), 1 if no pair belongs together",
    example="""
    >>> pair_recall(list("aaabb"), [1, 1, 2, 2, 2])  # 2 / (2 + 2)
    0.5
    """,
)
def pair_recall(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Share of the pairs that belong together that the prediction puts together."""
    return share(tp, tp + fn)


@of_pairs(
    "2 TP / (2 TP + FP + FN), 1 if no pair is together on either side",
    example="""
    >>> pair_f1(list("aaab"), [1, 1, 1, 1])  # 2 * 1/2 * 1 / (1/2 + 1), with P = 3 / 6
    0.6666666666666666
    """,
    three="""
    >>> pair_precision_recall_fscore(list("aaab"), [1, 1, 1, 1])
    PrecisionRecallFscore(precision=0.5, recall=1.0, f1=0.6666666666666666)
    """,
)
def pair_f1(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """F1 of pair precision and pair recall."""
    return share(2 * tp, 2 * tp + fp + fn)


@of_pairs(
    "(TP + TN) / (TP + FP + FN + TN), 1 if there is one item",
    source="Rand 1971",
    example="""
    >>> rand(list("aaabb"), [1, 1, 2, 2, 2])  # (2 + 4) / 10
    0.6
    """,
    also={"rand_score": Page(note=LIKE_SKLEARN)},
)
def rand(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Share of all pairs on which both sides agree, the Rand index."""
    return share(tp + tn, tp + fp + fn + tn)


@of_pairs(
    "2 (TP TN - FP FN) / ((TP + FN) (FN + TN) + (TP + FP) (FP + TN)), 1 where that is 0 / 0: both sides are one"
    " cluster, or singletons",
    low=-1.0,
    source="Hubert and Arabie 1985",
    example="""
    >>> score = adjusted_rand(list("aaabb"), [1, 1, 2, 2, 2])
    >>> round(score, 12)  # 2 * (2 * 4 - 2 * 2) / (4 * 6 + 4 * 6) = 1/6
    0.166666666667
    """,
    also={"adjusted_rand_score": Page(note=LIKE_SKLEARN)},
)
def adjusted_rand(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Rand index adjusted for chance: 0 is the mean of shuffled items, 1 is the best."""
    return share(2 * (tp * tn - fp * fn), (tp + fn) * (fn + tn) + (tp + fp) * (fp + tn))


@of_pairs(
    "TP / (TP + FP + FN), 1 if no pair is together on either side",
    example="""
    >>> pair_jaccard(list("aaab"), [1, 1, 1, 1])  # 3 / (3 + 3 + 0)
    0.5
    """,
)
def pair_jaccard(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Pairs together on both sides, relative to those together on either."""
    return share(tp, tp + fp + fn)


@of_pairs(
    "sqrt(P R), with P = pair_precision and R = pair_recall",
    source="Fowlkes and Mallows 1983",
    example="""
    >>> pair_fowlkes_mallows(list("aaabb"), [1, 1, 2, 2, 2])  # sqrt(2/4 * 2/4)
    0.5
    """,
    also={
        "fowlkes_mallows_score": Page(
            """
            >>> fowlkes_mallows_score(list("aaabb"), [1, 1, 2, 2, 2])  # sqrt(2/4 * 2/4)
            0.5
            >>> fowlkes_mallows_score(list("ab"), [1, 2])
            1.0
            """,
            note="As in scikit-learn, which has no weights, but for singletons on both sides: these are the same"
            " clustering and have 1 here, as for every other score of this family, but 0 there.",
        )
    },
)
def pair_fowlkes_mallows(tp: Number, fp: Number, fn: Number, tn: Number) -> Number:
    """Geometric mean of pair precision and pair recall."""
    return np.sqrt(np.float64(pair_precision(tp, fp, fn, tn) * pair_recall(tp, fp, fn, tn)))


@of_wrong_pairs(
    "2 (FP + FN)",
    high=inf,
    best="lower",
    source="Mirkin 1996",
    example="""
    >>> mirkin(list("aaabb"), [1, 1, 2, 2, 2])  # 2 * (2 + 2)
    8.0
    """,
)
def mirkin(fp: Number, fn: Number) -> Number:
    """Ordered pairs of items on which the sides differ, Mirkin's metric."""
    return 2 * (fp + fn)


@public
def pair_confusion_matrix(
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> NDArray[Any]:
    """Count the ordered pairs of items that are together or apart on each side, exactly.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_items,)
        Cluster label of each item, both in the same item order.
    sample_weight : array-like of shape (n_items,), optional
        Positive weight of each item; a pair then counts the product of its items' weights.
    contingency : Contingency, optional
        The cells, as `fastbcubed.contingency` makes them, in place of labels and weights.

    Returns
    -------
    ndarray of shape (2, 2)
        Rows are apart and together in the truth, columns apart and together in the prediction: ordered
        pairs, so each pair counts twice. int64; Python integers where that is too small; float64 with
        weights.

    Raises
    ------
    FastBCubedError
        If there is no item, if the two sides differ in length, or if a label or a weight is missing
        or cannot be one.
    MetricError
        If the contingency counts items outside the truth, or if it has weights but not the items.

    Notes
    -----
    As in scikit-learn, which has no weights, and whose int64 overflow silently from 3e9 items on.

    Examples
    --------
    >>> pair_confusion_matrix(list("aaab"), [1, 1, 1, 1])
    array([[0, 6],
           [0, 6]])
    """
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
    check_defined(table, [pairs["pair_tp"]])
    with Pool() as pool:
        tp, fp, fn, tn = (2 * pairs for pairs in table.once(pair_counts, pool))
    matrix = [[tn, fp], [fn, tp]]
    if table.weighted:
        return np.array(matrix, np.float64)
    fits = max(tp, fp, fn, tn) <= np.iinfo(np.int64).max
    return np.array([[int(pairs) for pairs in row] for row in matrix], np.int64 if fits else object)
