"""Edit distances as functions of two labelings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from fastbcubed.metrics import edit as _edit
from fastbcubed.metrics.edit import Cost
from fastbcubed.metrics.labelings import as_contingency, check_defined
from fastbcubed.metrics.labelings import describe as _describe
from fastbcubed.metrics.labelings import make_score as _score
from fastbcubed.metrics.registry import METRICS

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency

pantel_lin_distance = _score(
    "pantel_lin_distance",
    """
    >>> pantel_lin_distance(list("aaabb"), [1, 1, 2, 2, 2])  # move an a
    1.0
    """,
)
pantel_lin = _score(
    "pantel_lin",
    """
    >>> score = pantel_lin(list("aaabb"), [1, 1, 2, 2, 2])
    >>> round(score, 12)  # 1 step instead of 5 - 2
    0.666666666667
    """,
)
basic_merge_distance = _score(
    "basic_merge_distance",
    """
    >>> basic_merge_distance(list("aaabb"), [1, 1, 2, 2, 2])  # split the second, merge the a's
    2.0
    """,
)


def merge_distance(
    labels_true: ArrayLike | None = None,
    labels_pred: ArrayLike | None = None,
    *,
    split_cost: Cost = 1,
    merge_cost: Cost = 1,
    sample_weight: ArrayLike | None = None,
    contingency: Contingency | None = None,
) -> float:
    """Cost of splits and merges that lead to the true clusters, all splits first.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_items,)
        Cluster label of each item, both in the same item order.
    split_cost, merge_cost : float or callable
        What it costs to part, and to join, two blocks. A function gets the sizes of the blocks, two
        float64 arrays of one shape, and gives the cost of each pair. It must not depend on the order of
        the steps: f(x, y) = f(y, x) and f(x, y) + f(x + y, z) = f(x, z) + f(x + z, y).
    sample_weight : array-like of shape (n_items,), optional
        Positive weight of each item; the size of a block is then its weight.
    contingency : Contingency, optional
        The cells, as `fastbcubed.contingency` makes them, in place of labels and weights.

    Returns
    -------
    float
        The cost; 0 if the clusterings are the same, and only then if all costs are positive.

    Raises
    ------
    FastBCubedError
        If there is no item, if the two sides differ in length, or if a label or a weight is missing
        or cannot be one. Every error below is one, too.
    OptionError
        If a cost is neither a number nor a function, or there are neither labels nor a contingency, or
        both.
    MetricError
        If the cost of some steps depends on their order (tried on blocks of the data and on small ones),
        if a function does not give one finite number for each pair, or if the contingency counts items
        outside the truth.

    Notes
    -----
    Every predicted cluster is split into its cells, and the cells of every true cluster are merged. With
    costs of 1 that is `basic_merge_distance`; with x * y for splits alone (merges for 0) the number of
    pairs that are wrongly together, `pair_fp`, and for merges alone `pair_fn`; with
    h(x + y) - h(x) - h(y), where h(x) = x / n * log2(x / n), the variation of information. Linear in the
    cells.

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
    check_defined(table, [METRICS["merge_distance"]])
    return _edit.merge_distance(table, split_cost, merge_cost)


_describe(merge_distance, "merge_distance", merge_distance.__doc__ or "")
