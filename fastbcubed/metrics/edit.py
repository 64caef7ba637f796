"""Edit distances: how much work it takes to turn the predicted clusters into the true ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import MetricError, OptionError
from fastbcubed.metrics.metric import Floats, Metric
from fastbcubed.runtime.pool import Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency

Cost = float | Callable[[Floats, Floats], Any]

#: Parts of the cells that are handled by one task.
PARTS_AT_ONCE = 16
#: Costs are tried on so many steps of the work, and on small blocks: two that come, and what was there.
TRIED = 1 << 14
SMALL = (1.0, 2.0, 3.0, 5.0), (1.0, 2.0, 3.0, 5.0), (0.0, 1.0, 2.0, 8.0)


class Majorities(NamedTuple):
    """How the predicted clusters agree with the classes that have most of their items."""

    kept: int  #: items in the largest cell of their cluster
    matched: int  #: clusters in the largest matching of clusters with majority classes


def majorities(contingency: Contingency, pool: Pool) -> Majorities:
    """Return what the clusters keep, by counts, when all but their largest cell is moved away.

    A class in one cluster alone is kept by it if it may be, and one that is the only choice of some cluster
    by one of these. A matching with as many clusters as possible is searched for among the rest.
    """
    cells, pred, parts = contingency.cells, contingency.pred, contingency.parts

    def task(first: int, last: int) -> tuple[int, int, NDArray[np.integer], NDArray[np.integer]]:
        size = int(parts[last] - parts[first])
        only, tied = (np.empty(shape, pred.dtype) for shape in ((size + 1,), (size, 2)))
        items, sure, *n = kernels.edit.keep_majorities(cells, pred, parts, first, last, only, tied)
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
        sum(items), sum(sure) + int(taken.sum()) + int(kernels.edit.match(first, rights, names.size))
    )


def pantel_lin_distance(contingency: Contingency, pool: Pool) -> float:
    """Return the fewest merges of clusters and moves of items that lead to the classes."""
    found = contingency.once(majorities, pool)
    return (contingency.n_items - found.kept) + (contingency.n_pred - found.matched)


def pantel_lin(contingency: Contingency, pool: Pool) -> float:
    """Return what the prediction saves of the steps that singletons take; by count if these take none."""
    steps = pantel_lin_distance(contingency, pool)
    most = contingency.n_items - contingency.n_true
    return (most - steps) / most if most else float(steps == 0)


def basic_merge_distance(contingency: Contingency, pool: Pool) -> float:
    """Return the splits and merges that lead to the classes, all splits first."""
    return 2 * contingency.n_cells - contingency.n_true - contingency.n_pred


def merge_distance(contingency: Contingency, split_cost: Cost, merge_cost: Cost) -> float:
    """Return the cost of splitting clusters into their cells, and of merging these into the classes.

    Raises
    ------
    MetricError
        If a cost depends on the order of the splits or merges, or is no real number.
    """
    total = 0.0
    for side, name, cost in (("pred", "split_cost", split_cost), ("true", "merge_cost", merge_cost)):
        total += _chain_cost(*contingency.codes(side), np.ascontiguousarray(contingency.tp), name, cost)
    return total


def _chain_cost(codes: NDArray[np.integer], n_codes: int, sizes: Floats, name: str, cost: Cost) -> float:
    """Add up the cost of joining, or parting, the cells of each cluster one after the other."""
    last, before = np.empty(sizes.size), np.empty(sizes.size)
    kernels.edit.gather(codes, sizes, np.zeros(n_codes), last, before)
    further = np.flatnonzero(last)
    x, y, z = sizes[further], last[further], before[further]
    price = partial(_price, name, cost)
    _check_order(name, price, *(grid.ravel() for grid in np.meshgrid(*SMALL)))
    _check_order(name, price, x[:TRIED], y[:TRIED], z[:TRIED])
    return float(price(x, y + z).sum()) if x.size else 0.0


def _price(name: str, cost: Cost, x: Floats, y: Floats) -> Floats:
    """Return what blocks of these sizes cost, each pair."""
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
    """Raise if it matters whether x or y comes first to what was gathered before, z (0 for nothing)."""
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


def scores() -> Iterator[Metric]:
    """Yield the scores of the family "edit"."""
    base = partial(Metric, family="edit", high=inf, low=0.0, best="lower", labelled_only=True)
    steps = partial(base, source="Pantel and Lin 2002", note="Steps are counted; weights play no part.")
    yield steps(
        "pantel_lin_distance",
        summary="Fewest merges of two clusters and moves of one item that lead to the true clusters.",
        definition="(n - sum over predicted clusters of their largest cell) + (M - m), for n items and M"
        " predicted clusters, m of which can keep a class of their own, that of a largest cell",
        score=pantel_lin_distance,
    )
    yield steps(
        "pantel_lin",
        low=-inf,
        high=1.0,
        best="higher",
        summary="Share of the steps from singletons to the true clusters that the prediction saves.",
        definition="1 - pantel_lin_distance / (n - K), for n items and K true clusters; where n = K, 1 if the"
        " clusterings are the same, else 0",
        score=pantel_lin,
    )
    merges = partial(
        base,
        source="Menestrina et al. 2010",
        summary="Splits and merges of clusters that lead to the true ones, all splits first.",
        definition="(V - M) + (V - K), for V cells, M predicted and K true clusters",
        score=basic_merge_distance,
    )
    yield merges("basic_merge_distance")
    yield merges("merge_distance", alias_of="basic_merge_distance")
