"""Overlap: scores made for clusters that overlap, of pairs of items or of whole clusters.

Mutual information is read from the pairs of clusters that share an item. Partitions have these scores as
well; Omega is the adjusted Rand index there.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum, inf
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.metrics.family import Family
from fastbcubed.metrics.metric import Floats
from fastbcubed.metrics.shared_clusters import agreement
from fastbcubed.overlap.covers import Cover
from fastbcubed.overlap.sharing import Sides
from fastbcubed.runtime.pool import Pool

Minimum = Literal["overlapping", "all"]
TOLD = "with H(X|Y) the least entropy of a cluster X given one cluster Y that shares an item with it"


def sides_of(contingency: Contingency, pool: Pool) -> Sides:
    """Return the cells with their clusters: of a cover, or of a partition, where each has one."""
    if isinstance(contingency, Cover):
        return contingency.sides
    offsets = np.arange(contingency.n_cells + 1)
    (true, n_true), (pred, n_pred) = contingency.codes("true"), contingency.codes("pred")
    truth = Memberships(offsets, true.astype(np.int64), n_true)
    prediction = Memberships(offsets, pred.astype(np.int64), n_pred)
    weight = np.ascontiguousarray(contingency.tp) if contingency.weighted else None
    return Sides(truth, prediction, contingency.n.astype(np.int64), weight, pool)


def of_sides(score: Callable[[Sides], float], contingency: Contingency, pool: Pool) -> float:
    """Return a score of the cells and their clusters."""
    return score(contingency.once(sides_of, pool))


overlap = Family(
    "overlap", low=0.0, high=1.0, best="higher", unweighted_only=True, labelled_only=True, on_covers=True
)


@overlap.of_cells(
    "(O - E) / (1 - E), with O the share of pairs that share as many true as predicted clusters, and E the sum over"
    " k of the shares of pairs that share k true and k predicted ones",
    low=-inf,
    source="Collins and Dent 1988",
    example="""
    >>> omega(list("aabb"), [1, 1, 1, 2])  # 3 of 6 pairs agree; expected (2 * 3 + 4 * 3) / 6**2
    0.0
    """,
)
def omega(contingency: Contingency, pool: Pool) -> float:
    """Agreement of pairs of items on the number of clusters they share, beyond chance."""
    return agreement(contingency.once(sides_of, pool), contingency.max_pairs)


@overlap.of_cells(
    f"1 - (mean over true clusters of H(X|Y) / H(X) + the same over predicted ones) / 2, {TOLD}; 0/0 is 1",
    by=of_sides,
    source="Lancichinetti et al. 2009",
    example="""
    >>> score = onmi_lfk(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # 1 - ((1.5 - 0.8113) / 1 + (1.5 - 1) / 0.8113) / 2
    0.3475
    """,
)
def onmi_lfk(sides: Sides, minimum: Minimum = "overlapping") -> float:
    """Overlapping mutual information: what the best counterpart of a cluster tells of it, on average.

    A cluster without entropy, of all items, counts as one of which nothing is told: two identical
    clusterings of one such cluster get 0.
    """
    lost = []
    for whole, least in _entropies(sides, minimum):
        shares = np.divide(least, whole, out=np.ones(whole.size), where=whole > 0)
        lost.append(fsum(shares) / shares.size)
    return 1.0 - (lost[0] + lost[1]) / 2


@overlap.of_cells(
    "half the sum over clusters of both sides of H(X) - H(X|Y), over the larger of the sums of H(X) of either side,"
    f" {TOLD}; 0/0 is 1 for identical clusterings, else 0",
    by=of_sides,
    source="McDaid et al. 2011",
    example="""
    >>> score = onmi_max(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # (1 + 0.8113 - 1.5) / 1
    0.3113
    """,
)
def onmi_max(sides: Sides, minimum: Minimum = "overlapping") -> float:
    """Overlapping mutual information over the larger of the entropies of both sides."""
    return _normalized(sides, minimum, max)


@overlap.of_cells(
    "half the sum over clusters of both sides of H(X) - H(X|Y), over the mean of the sums of H(X) of either side,"
    f" {TOLD}; 0/0 is 1 for identical clusterings, else 0",
    by=of_sides,
    source="McDaid et al. 2011",
    example="""
    >>> score = onmi_mean(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # (1 + 0.8113 - 1.5) / ((1 + 0.8113) / 2)
    0.3437
    """,
)
def onmi_mean(sides: Sides, minimum: Minimum = "overlapping") -> float:
    """Overlapping mutual information over the mean of the entropies of both sides."""
    return _normalized(sides, minimum, lambda a, b: (a + b) / 2)


def _normalized(sides: Sides, minimum: Minimum, norm: Callable[[float, float], float]) -> float:
    both = _entropies(sides, minimum)
    (true, true_least), (pred, pred_least) = ((fsum(h), fsum(least)) for h, least in both)
    whole = norm(true, pred)
    if whole == 0:
        return float(both[0][0].size == both[1][0].size)  # clusters of all items alone
    return ((true - true_least) + (pred - pred_least)) / 2 / whole


def _entropies(sides: Sides, minimum: Minimum) -> list[tuple[Floats, Floats]]:
    """Return H(X) and the least H(X|Y) of the clusters of each side, in bits."""
    overlaps, n = sides.overlaps, int(sides.n.sum())
    sizes = [each.n for each in sides.sizes]
    whole = [_entropy(each, n) for each in sizes]
    least = [each.copy() for each in whole]
    kernels.entropies.least_entropies(
        overlaps.bounds, overlaps.pred, overlaps.sizes.n, *sizes, n, minimum == "all", *least
    )
    kept = [each > 0 for each in sizes]
    return [(h[k], rest[k]) for h, rest, k in zip(whole, least, kept, strict=True)]


def _entropy(sizes: NDArray[np.int64], n: int) -> Floats:
    """Return the entropy of membership in each cluster, in bits; 0 for one of no or of all items."""
    p = sizes / n
    proper = (sizes > 0) & (sizes < n)
    inside = np.log2(p, out=np.zeros(p.size), where=proper)
    outside = np.log1p(-p, out=np.zeros(p.size), where=proper) / np.log(2.0)
    return -p * inside - (1.0 - p) * outside
