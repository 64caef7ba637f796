"""Functions of two labelings that are not single scores of the registry; each has its own documentation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import MetricError, OptionError, calling, quoted
from fastbcubed.metrics.edit import edit
from fastbcubed.metrics.fast_sums import pair_counts
from fastbcubed.metrics.functions import Labels, as_contingency, as_cover, check_defined, compute, public
from fastbcubed.metrics.matching import matching
from fastbcubed.metrics.metric import Formula
from fastbcubed.metrics.pairs import pairs
from fastbcubed.metrics.registry import lifted
from fastbcubed.runtime.arguments import number
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Floats


@public
def pointwise_score(
    formula: Formula,
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> float:
    """Mean over items of any score of an item's 2x2 confusion matrix.

    Parameters
    ----------
    formula : callable
        A function of `(tp, fp, fn, tn)`, float64 arrays of one shape, that works element by element and returns an
        array of the same shape. The arrays are the total weights of the items that share an item's cluster on both
        sides (including the item itself), only on the predicted side, only on the true side, and on neither side.
    labels_true, labels_pred : array-like of shape (n_items,)
        Cluster label of each item, in the same order on both sides.
    sample_weight : array-like of shape (n_items,), optional
        Positive weight of each item, used within clusters and in the mean over items.
    contingency : Contingency, optional
        Alternative to labels and weights: the cells, as returned by `fastbcubed.contingency`. If the contingency
        counts items outside the truth, `tn` is None.

    Returns
    -------
    float
        The mean over items, weighted if the items have weights.

    Raises
    ------
    FastBCubedError
        If there are no items, if the two sides have different lengths, or if a label or a weight is missing or
        invalid. The errors listed below are subclasses of FastBCubedError.
    OptionError
        If the formula is not callable, or if labels and a contingency are both given or both missing.

    Notes
    -----
    All items of a cell have the same confusion matrix, so the formula is called on blocks of cells. One pass over the
    items counts the cells; all later steps take time proportional to the number of cells.

    References
    ----------
    .. [1] S. van Staden, Pointwise Metrics for Clustering Evaluation, arXiv:2405.10421, 2024.

    Examples
    --------
    In the Tversky index below, a missing item counts half as much as a wrong item. The matrices (tp, fp, fn, tn) of
    items 1 and 2, 3 and 4, 5 and 6, and 7 and 8 are (2, 0, 2, 4), (2, 2, 2, 2), (2, 2, 2, 2) and (2, 0, 2, 4).

    >>> def tversky(tp, fp, fn, tn):
    ...     return tp / (tp + fp + fn / 2)
    >>> score = pointwise_score(tversky, list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3])
    >>> round(score, 12)  # (2/3 + 2/5 + 2/5 + 2/3) / 4 = 8/15
    0.533333333333
    """
    if not callable(formula):
        raise OptionError(f"formula is a function of (tp, fp, fn, tn), not {quoted(formula)}.")
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
    return compute(table, [lifted(formula, outside=table.outside)])[0]


@public
def pair_confusion_matrix(
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> NDArray[Any]:
    """Count ordered pairs of items exactly: together or apart in the truth, and together or apart in the prediction.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_items,)
        Cluster label of each item, in the same order on both sides.
    sample_weight : array-like of shape (n_items,), optional
        Positive weight of each item; a pair then counts as the product of its items' weights.
    contingency : Contingency, optional
        Alternative to labels and weights: the cells, as returned by `fastbcubed.contingency`.

    Returns
    -------
    ndarray of shape (2, 2)
        The first row counts pairs in different true clusters, and the second row pairs in the same true cluster. The
        first column counts pairs in different predicted clusters, and the second column pairs in the same predicted
        cluster. Pairs are ordered, so every two items count twice. The dtype is int64, object (Python integers) if
        int64 is too small, or float64 if the items have weights.

    Raises
    ------
    FastBCubedError
        If there are no items, if the two sides have different lengths, or if a label or a weight is missing
        or invalid.
    MetricError
        If `contingency` counts items outside the truth, or has weights but was made from a table of cells.

    Notes
    -----
    The function of the same name in scikit-learn returns the same values but takes no weights, and silently overflows
    int64 above 3e9 items.

    Examples
    --------
    >>> pair_confusion_matrix(list("aaab"), [1, 1, 1, 1])
    array([[0, 6],
           [0, 6]])
    """
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
    check_defined(table, [pairs["pair_tp"]])
    with Pool() as pool:
        tp, fp, fn, tn = (2 * number for number in pair_counts(table, pool))
    matrix = [[tn, fp], [fn, tp]]
    if table.weighted:
        return np.array(matrix, np.float64)
    fits = max(tp, fp, fn, tn) <= np.iinfo(np.int64).max
    return np.array([[int(pairs) for pairs in row] for row in matrix], np.int64 if fits else object)


@public
class ExactMatch(NamedTuple):
    """The shares of predicted and of true clusters that also occur on the other side, and the F1 of both shares."""

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
    """Compare the clusters of both sides as sets of items, counting a cluster as often as it occurs.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_items,), dict or Clustering
        Cluster label or set of labels of each item, in the same order on both sides; or a dict from item to cluster or
        set of clusters; or a clustering with one row per membership.
    contingency : Contingency, optional
        Alternative to labels: the cells, as returned by `fastbcubed.contingency`.

    Returns
    -------
    ExactMatch
        Named tuple (precision, recall, f1): the shares of predicted and of true clusters that also occur on the other
        side, and the F1 of both shares. All three values are 1 if and only if the clusterings are identical.

    Raises
    ------
    FastBCubedError
        If there are no items, if the two sides have different lengths, or if a label is missing or invalid. The
        errors listed below are subclasses of FastBCubedError.
    OptionError
        If labels and a contingency are both given or both missing.

    Notes
    -----
    If clusters overlap, CICE-BCubed and other scores can be 1 for clusterings that differ in how often a cluster
    occurs, but exact_match cannot. Weights make no difference to exact_match.

    Examples
    --------
    >>> exact_match(list("aabb"), [1, 1, 2, 3])  # 1 of 3 predicted and 1 of 2 true clusters
    ExactMatch(precision=0.3333333333333333, recall=0.5, f1=0.4)
    """
    cells = as_cover(labels_true, labels_pred, None, contingency)
    return ExactMatch(*compute(cells, [matching[f"cluster_{part}"] for part in ExactMatch._fields]))


# The cost of splits and merges
Cost = float | Callable[[Floats, Floats], Any]
#: Number of steps on which costs are checked, and small blocks for it: two blocks that are added to a third.
TRIED = 1 << 14
SMALL = (1.0, 2.0, 3.0, 5.0), (1.0, 2.0, 3.0, 5.0), (0.0, 1.0, 2.0, 8.0)


@public
def merge_distance(
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    split_cost: Cost = 1,
    merge_cost: Cost = 1,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> float:
    """Cost of the splits and merges that turn the predicted clusters into the true clusters, with all splits first.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_items,)
        Cluster label of each item, in the same order on both sides.
    split_cost, merge_cost : float or callable
        The cost of splitting a cluster into two blocks, and of merging two blocks. A function takes the sizes of the
        blocks, two float64 arrays of one shape, and returns the cost of each pair of blocks. The total cost must not
        depend on the order of the steps: f(x, y) = f(y, x) and f(x, y) + f(x + y, z) = f(x, z) + f(x + z, y).
    sample_weight : array-like of shape (n_items,), optional
        Positive weight of each item; the size of a block is then its weight.
    contingency : Contingency, optional
        Alternative to labels and weights: the cells, as returned by `fastbcubed.contingency`.

    Returns
    -------
    float
        The total cost: 0 for identical clusterings and, if all costs are positive, only for these.

    Raises
    ------
    FastBCubedError
        If there are no items, if the two sides have different lengths, or if a label or a weight is missing or
        invalid. The errors listed below are subclasses of FastBCubedError.
    OptionError
        If a cost is neither a number nor a function, or labels and a contingency are both given or both
        missing.
    MetricError
        If the total cost depends on the order of the steps (checked on blocks of the data and on small blocks),
        if a function does not return one finite number for each pair of blocks, or if the contingency counts items
        outside the truth.

    Notes
    -----
    Every predicted cluster is split into its cells, and the cells of every true cluster are merged. If every split and
    merge costs 1, the total cost is `basic_merge_distance`. If a split costs x * y and a merge costs 0, the total cost
    is `pair_fp`, the number of pairs in the same cluster only in the prediction. If a split costs 0 and a merge costs
    x * y, the total cost is `pair_fn`, the number of pairs in the same cluster only in the truth. If both cost
    h(x + y) - h(x) - h(y), where h(x) = x / n * log2(x / n), the total cost of splits and merges is the variation of
    information. The run time is proportional to the number of cells.

    References
    ----------
    .. [1] D. Menestrina, S. E. Whang and H. Garcia-Molina, Evaluating Entity Resolution Results, VLDB
       Endowment 3, 2010.

    Examples
    --------
    >>> labels_true, labels_pred = list("aaabb"), [1, 1, 2, 2, 2]
    >>> merge_distance(labels_true, labels_pred, split_cost=3)  # 3 * 1 split + 1 merge
    4.0
    >>> merge_distance(labels_true, labels_pred, split_cost=lambda x, y: x * y)  # 1 * 2 + 1
    3.0
    """
    table = as_contingency(labels_true, labels_pred, sample_weight, contingency)
    check_defined(table, [edit["merge_distance"]])
    return cost_of_steps(table, split_cost, merge_cost)


def cost_of_steps(contingency: Contingency, split_cost: Cost, merge_cost: Cost) -> float:
    """Return the cost of splitting clusters into their cells, and of merging the cells into the true clusters.

    Raises MetricError if a cost depends on the order of the steps, or is not a real number.
    """
    total = 0.0
    for side, name, cost in (("pred", "split_cost", split_cost), ("true", "merge_cost", merge_cost)):
        total += _chain_cost(*contingency.codes(side), np.ascontiguousarray(contingency.tp), name, cost)
    return total


def _chain_cost(codes: NDArray[np.integer], n_codes: int, sizes: Floats, name: str, cost: Cost) -> float:
    """Return the cost of joining, or splitting off, the cells of each cluster one after the other."""
    last, before = np.empty(sizes.size), np.empty(sizes.size)
    kernels.metrics.gather(codes, sizes, np.zeros(n_codes), last, before)
    further = np.flatnonzero(last)
    x, y, z = sizes[further], last[further], before[further]
    price = partial(_price, name, cost)
    _check_order(name, price, *(grid.ravel() for grid in np.meshgrid(*SMALL)))
    _check_order(name, price, x[:TRIED], y[:TRIED], z[:TRIED])
    return float(price(x, y + z).sum()) if x.size else 0.0


def _price(name: str, cost: Cost, x: Floats, y: Floats) -> Floats:
    """Return the cost of each pair of blocks of these sizes."""
    if not callable(cost):
        return np.full(x.shape, number(cost, name, "a number, or a function of two sizes"))
    with calling(name):
        prices = np.asarray(cost(x, y))
    if prices.dtype.kind not in "biuf" or prices.shape not in (x.shape, ()) or not np.isfinite(prices).all():
        raise MetricError(
            f"{name} gave {prices.dtype} of shape {prices.shape} for sizes of shape {x.shape}; it takes two "
            "arrays of sizes and gives one finite number for each pair"
        )
    return np.broadcast_to(prices, x.shape).astype(np.float64)


def _check_order(
    name: str, price: Callable[[Floats, Floats], Floats], x: Floats, y: Floats, z: Floats
) -> None:
    """Raise MetricError if the order in which blocks of sizes x and y are added to one of size z changes the cost."""
    some = z > 0
    first, other = price(x, y + z), price(y, x + z)
    first[some] += price(y[some], z[some])
    other[some] += price(x[some], z[some])
    wrong = np.flatnonzero(np.abs(first - other) > 1e-9 * max(np.abs(first).max(initial=0), 1e-300))
    if wrong.size:
        k = wrong[0]
        blocks = ", ".join(f"{size:g}" for size in (x[k], y[k], z[k]) if size)
        raise MetricError(
            f"{name} depends on the order of the steps: for blocks of sizes {blocks} it comes to {first[k]:g} "
            f"or {other[k]:g}. Pass one with f(x, y) = f(y, x) and f(x, y) + f(x + y, z) = f(x, z) + f(x + z, y), "
            "such as a number, or x * y"
        )
