"""Shapes of synthetic clusterings: how many clusters there are of each size, and how many change.

The sizes are not drawn but are the quantiles of a law, so that a clustering of n items has the sizes that
the law expects, to one cluster of each size. A seed decides where items lie and which clusters change.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

SPLIT = 0.15  # share of true clusters that the prediction splits in two
MERGED = 0.10  # share of true clusters that the prediction puts into another one
MEAN_SIZE = 2.5  # of the clusters of shape "er"
ZIPF = 1.9  # exponent of the cluster sizes of shape "heavy"
LARGEST = 0.05  # share of all items that a cluster of shape "heavy" holds at most
#: Sizes up to this are counted; the few clusters above are sized one by one.
COUNTED = 1 << 16
#: Bits of an item that say where to look for its run of clusters.
GUIDE_BITS = 16


@dataclass(frozen=True)
class Shape:
    """A law of cluster sizes."""

    description: str  #: the true clusters, in words
    #: the share of clusters that have more than k items: ``above(k, n_items)``, for an array of k ≥ 1
    above: Callable[[Counts, int], Floats]
    #: the share of all items that one further cluster holds, which the prediction leaves as it is
    giant: float = 0.0


def geometric_above(k: Counts, n_items: int) -> Floats:
    """Return P(size > k) = (1 - p)^k of the geometric law with mean 1 / p = 2.5."""
    return (1 - 1 / MEAN_SIZE) ** k.astype(np.float64)


def zipf_above(k: Counts, n_items: int) -> Floats:
    """Return P(size > k) of the law P(size = k) ~ k^-1.9, cut at 5 % of all items."""
    largest = max(1, int(n_items * LARGEST))
    share = hurwitz(ZIPF, k + 1.0) / hurwitz(ZIPF, np.ones(1))
    return np.where(k < largest, share, 0.0)


def alone_above(k: Counts, n_items: int) -> Floats:
    """Return that no cluster has more than one item."""
    return np.zeros(k.size)


SHAPES = {
    "er": Shape("cluster sizes geometric with mean 2.5", geometric_above),
    "heavy": Shape("cluster sizes Zipf 1.9, at most 5 % of all items", zipf_above),
    "singletons": Shape("every true cluster has one item", alone_above),
    "one_giant": Shape("half of all items in one cluster, the rest as in er", geometric_above, giant=0.5),
}


def hurwitz(s: float, a: Floats) -> Floats:
    """Return the sum over i ≥ 0 of (a + i)^-s for a ≥ 1, by the Euler-Maclaurin formula from a + i ≥ 20 on.

    Examples
    --------
    >>> abs(hurwitz(2.0, np.ones(1)) - math.pi**2 / 6) < 1e-10
    array([ True])
    """
    total, b = np.zeros(a.size), a
    while b.min() < 20:
        total, b = total + b**-s, b + 1
    total += b ** (1 - s) / (s - 1) + b**-s / 2 + s * b ** (-s - 1) / 12
    return total - s * (s + 1) * (s + 2) * b ** (-s - 3) / 720


def size_histogram(shape: str, n_items: int) -> tuple[Counts, Counts]:
    """Return the sizes of true clusters, ascending, and how many clusters have each; without the giant.

    With C clusters, the j-th largest (from 0) has the size that a share (j + 1/2) / C of the law exceeds
    or equals last. C is the largest number with no more items than there are; one cluster more takes
    the rest.

    Examples
    --------
    >>> size_histogram("er", 21)
    (array([1, 2, 3, 4, 6]), array([4, 2, 1, 1, 1]))
    """

    def at_quantiles(n_clusters: int) -> tuple[Counts, Counts]:
        """Return the sizes and their counts for so many clusters; several entries may have one size."""
        more = np.ceil(n_clusters * share - 0.5).clip(0).astype(np.int64)  # clusters above each size
        exceeded = (np.arange(more[-1])[::-1] + 0.5) / n_clusters
        low, high = np.full(exceeded.size, head.size), np.full(exceeded.size, n_items)
        while np.any(high - low > 1):  # above(low) > exceeded >= above(high)
            middle = (low + high) // 2
            beyond = law.above(middle, n_items) > exceeded
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        counts = -np.diff(more, prepend=n_clusters)
        return np.concatenate([head, high]), np.concatenate([counts, np.ones(high.size, np.int64)])

    def total(n_clusters: int) -> int:
        sizes, counts = at_quantiles(n_clusters)
        return int(sizes @ counts)

    law = SHAPES[shape]
    head = np.arange(1, min(COUNTED, n_items) + 1)
    share = law.above(head, n_items)
    low, high = 0, 1  # clusters that fit, and that do not
    while total(high) <= n_items:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if total(middle) <= n_items else (low, middle)
    sizes, counts = at_quantiles(low) if low else (np.empty(0, np.int64), np.empty(0, np.int64))
    rest = n_items - int(sizes @ counts)
    sizes, counts = np.append(sizes, rest), np.append(counts, 1)
    known, which = np.unique(sizes, return_inverse=True)
    summed = np.zeros(known.size, np.int64)
    np.add.at(summed, which, counts)
    kept = (known > 0) & (summed > 0)
    return known[kept], summed[kept]


@dataclass(frozen=True)
class Layout:
    """Where the clusters of a shape lie, the items of one after those of another; see `place_items`."""

    #: items and true clusters
    n_items: int
    n_clusters: int
    #: true clusters that the prediction puts into another one, and those that it splits
    n_merged: int
    n_split: int
    #: the tables of the kernel
    figures: NDArray[np.uint64]
    guide: NDArray[np.int32]
    runs: NDArray[np.uint64]


def lay_out(shape: str, n_items: int) -> Layout:
    """Return the layout of a shape, which takes some thousand entries whatever the number of items.

    Examples
    --------
    >>> layout = lay_out("one_giant", 1000)
    >>> layout.n_clusters, layout.n_merged, layout.n_split
    (202, 20, 30)
    """
    giant = int(n_items * SHAPES[shape].giant)
    sizes, counts = size_histogram(shape, n_items - giant)
    n_free = int(counts.sum())
    n_alone = int(counts[sizes == 1].sum())
    n_large = n_free - n_alone
    if giant:
        sizes, counts = np.append(sizes, giant), np.append(counts, 1)
    runs = np.zeros((sizes.size + 1, 3), np.uint64)
    runs[1:, 0], runs[1:, 1], runs[:-1, 2] = np.cumsum(sizes * counts), np.cumsum(counts), sizes
    bits = max(0, (n_items - 1).bit_length() - GUIDE_BITS)
    begins = np.arange(((n_items - 1) >> bits) + 1, dtype=np.uint64) << np.uint64(bits)
    guide = np.searchsorted(runs[1:, 0], begins, side="right").astype(np.int32)
    n_merged = min(int(n_free * MERGED), n_free // 2)
    n_split = min(int(n_free * SPLIT), n_large)
    figures: list[Any] = [n_items, _side(n_items), counts.sum(), n_free, _side(n_free), n_merged]
    figures += [n_alone, n_large, _side(n_large), n_split, bits]
    return Layout(n_items, int(counts.sum()), n_merged, n_split, np.array(figures, np.uint64), guide, runs)


def _side(n: int) -> int:
    """Return the side of the smallest square table that holds `n` things."""
    return math.isqrt(max(n, 1) - 1) + 1
