"""Predictions made without looking at the items: what every score should be compared with."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import NDArray

from fastbcubed.errors import OptionError

Labels = NDArray[np.int64]


def all_singletons(n: int) -> Labels:
    """Put each of n items into a cluster of its own; returns int64 labels (n,).

    Examples
    --------
    >>> all_singletons(3)
    array([0, 1, 2])
    """
    return blocks(n, 1)


def all_in_one(n: int) -> Labels:
    """Put n items into one cluster; returns int64 labels (n,).

    Examples
    --------
    >>> all_in_one(3)
    array([0, 0, 0])
    """
    return blocks(n, max(n, 1))


def blocks(n: int, k: int) -> Labels:
    """Put every k items in a row into a cluster; the last may be smaller.

    The baseline of van Heusden et al. (2022) for items in an order, such as the pages of a stream.

    Parameters
    ----------
    n : int
        Number of items.
    k : int
        Items of a cluster, one or more.

    Returns
    -------
    ndarray of int64 (n,)

    Raises
    ------
    OptionError
        If `n` is negative or `k` less than one.

    Examples
    --------
    >>> blocks(5, 2)
    array([0, 0, 1, 1, 2])
    """
    if n < 0 or k < 1:
        raise OptionError(f"n must not be negative and k be one or more, but n is {n} and k is {k}.")
    return np.arange(n, dtype=np.int64) // k


def cheat(items: Iterable[Hashable]) -> dict[Hashable, set[int]]:
    """Put every item into two clusters: one of all items, and one of its own.

    No score of overlapping clusterings should like it: inverse purity and Extended BCubed recall are 1
    against any partition (Amigó et al. 2009, section 6).

    Parameters
    ----------
    items : iterable
        Distinct items.

    Returns
    -------
    dict
        From each item to the set of its clusters: 0, that of all, and its own.

    Examples
    --------
    >>> cheat("abc")
    {'a': {0, 1}, 'b': {0, 2}, 'c': {0, 3}}
    """
    return {item: {0, alone} for alone, item in enumerate(items, start=1)}


#: Two overlapping clusterings of the items 1, 2, 3 that differ, though every pair of items shares
#: three clusters in both and every item has six: purity, its inverse, Extended BCubed and CICE are
#: all 1. Each is a list of clusters, a repeated one standing twice. After figure 23 of Amigó et al.
PERFECT_WITHOUT_MATCH = (
    [(1, 2, 3)] * 2 + [(1, 2), (1, 3), (2, 3)] + [(1,), (2,), (3,)] * 2,
    [(1, 2, 3)] + [(1, 2), (1, 3), (2, 3)] * 2 + [(1,), (2,), (3,)],
)
