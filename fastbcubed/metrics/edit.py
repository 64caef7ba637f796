"""Edit distances: how much work it takes to turn the predicted clusters into the true ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed import kernels
from fastbcubed.errors import MetricError, OptionError
from fastbcubed.metrics.labelings import as_contingency, check_defined, public
from fastbcubed.metrics.score import Family
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Floats

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency

edit = Family("edit", low=0.0, high=inf, best="lower", labelled_only=True)
STEPS = "Steps are counted; weights play no part."

Cost = float | Callable[[Floats, Floats], Any]

#: Parts of the cells that are handled by one task.
PARTS_AT_ONCE = 16
#: Costs are tried on so many steps of the work, and on small blocks: two that come, and what was there.
TRIED = 1 << 14
SMALL = (1.0, 2.0, 3.0, 5.0), (1.0, 2.0, 3.0, 5.0), (0.0, 1.0, 2.0, 8.0)


# Merges and moves


class Majorities(NamedTuple):
    """How the predicted clusters agree with the classes that have most of their items."""

    kept: int  #: items in the largest cell of their cluster
    matched: int  #: clusters in the largest matching of clusters with majority classes


def majorities(contingency: Contingency, pool: Pool) -> Majorities:
    """Return the sizes of the largest cells of the clusters, with counts.

    A class in one cluster alone is kept by it if it may be, and one that is the only choice of some cluster
    by one of these. A matching with as many clusters as possible is searched for among the rest.
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


@edit.of_cells(
    "(n - sum over predicted clusters of their largest cell) + (M - m), for n items and M predicted clusters, m of"
    " which can keep a class of their own, that of a largest cell",
    source="Pantel and Lin 2002",
    note=STEPS,
    example="""
    >>> pantel_lin_distance(list("aaabb"), [1, 1, 2, 2, 2])  # move an a
    1.0
    """,
)
def pantel_lin_distance(contingency: Contingency, pool: Pool) -> float:
    """Fewest merges of two clusters and moves of one item that lead to the true clusters."""
    found = contingency.once(majorities, pool)
    return (contingency.n_items - found.kept) + (contingency.n_pred - found.matched)


@edit.of_cells(
    "1 - pantel_lin_distance / (n - K), for n items and K true clusters; where n = K, 1 if the clusterings are the"
    " same, else 0",
    low=-inf,
    high=1.0,
    best="higher",
    source="Pantel and Lin 2002",
    note=STEPS,
    example="""
    >>> score = pantel_lin(list("aaabb"), [1, 1, 2, 2, 2])
    >>> round(score, 12)  # 1 step instead of 5 - 2
    0.666666666667
    """,
)
def pantel_lin(contingency: Contingency, pool: Pool) -> float:
    """Share of the steps from singletons to the true clusters that the prediction saves."""
    steps = pantel_lin_distance(contingency, pool)
    most = contingency.n_items - contingency.n_true
    return (most - steps) / most if most else float(steps == 0)


# Splits and merges


@edit.of_cells(
    "(V - M) + (V - K), for V cells, M predicted and K true clusters",
    source="Menestrina et al. 2010",
    example="""
    >>> basic_merge_distance(list("aaabb"), [1, 1, 2, 2, 2])  # split the second, merge the a's
    2.0
    """,
)
def basic_merge_distance(contingency: Contingency, pool: Pool) -> float:
    """Splits and merges of clusters that lead to the true ones, all splits first."""
    return 2 * contingency.n_cells - contingency.n_true - contingency.n_pred


edit.alias("merge_distance", edit["basic_merge_distance"])


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
    check_defined(table, [edit["merge_distance"]])
    return cost_of_steps(table, split_cost, merge_cost)


def cost_of_steps(contingency: Contingency, split_cost: Cost, merge_cost: Cost) -> float:
    """Return the cost of splitting clusters into their cells, and of merging these into the classes.

    Raise MetricError if a cost depends on the order of the steps, or is no real number.
    """
    total = 0.0
    for side, name, cost in (("pred", "split_cost", split_cost), ("true", "merge_cost", merge_cost)):
        total += _chain_cost(*contingency.codes(side), np.ascontiguousarray(contingency.tp), name, cost)
    return total


def _chain_cost(codes: NDArray[np.integer], n_codes: int, sizes: Floats, name: str, cost: Cost) -> float:
    """Add up the cost of joining, or parting, the cells of each cluster one after the other."""
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
        if not isinstance(cost, Real) or not np.isfinite(float(cost)):
            raise OptionError(f"{name} is a number, or a function of two sizes, not {cost!r}")
        return np.full(x.shape, float(cost))
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
    """Raise if the order of adding x and y to z, gathered before (0 for nothing), matters."""
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
