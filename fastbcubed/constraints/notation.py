"""Small clusterings: as text and back, all of them in turn, and whether two are the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

Labels = NDArray[np.int64]
#: A clustering of more items is described by its sizes.
SPELLED_OUT = 26


def partitions(n: int, known: int = 0) -> Iterator[Labels]:
    """Yield every partition of n items once, as labels (n,); the first clusters may be known ones.

    Examples
    --------
    >>> [as_text(labels) for labels in partitions(3)]
    ['abc', 'ab|c', 'ac|b', 'a|bc', 'a|b|c']
    >>> [labels.tolist() for labels in partitions(1, known=2)]
    [[0], [1], [2]]
    """
    if n == 0:
        yield np.empty(0, np.int64)
        return
    for rest in partitions(n - 1, known):
        for label in range(max(rest.max(initial=-1) + 1, known) + 1):
            yield np.append(rest, label)


def same_clustering(first: ArrayLike, second: ArrayLike) -> bool:
    """Return whether two labelings put the same items together.

    Examples
    --------
    >>> same_clustering([1, 1, 2], [5, 5, 4]), same_clustering([1, 1, 2], [1, 2, 2])
    (True, False)
    """
    return bool(np.array_equal(_renamed(first), _renamed(second)))


def as_text(labels: ArrayLike) -> str:
    """Return a clustering as text: its items a, b, c, ... by cluster, or the sizes of its clusters.

    Examples
    --------
    >>> as_text([7, 7, 2, 7])
    'abd|c'
    >>> as_text([0] * 30 + [1, 2])
    '32 items in clusters of 30, 1, 1'
    """
    codes = _renamed(labels)
    if codes.size > SPELLED_OUT:
        sizes = np.sort(np.bincount(codes))[::-1]
        shown = ", ".join(map(str, sizes[:6]))
        return f"{codes.size} items in clusters of {shown}{', …' if sizes.size > 6 else ''}"
    clusters = [""] * (codes.max(initial=-1) + 1)
    for item, code in enumerate(codes):
        clusters[code] += chr(ord("a") + item)
    return "|".join(clusters)


def _renamed(labels: ArrayLike) -> Labels:
    """Return labels as 0, 1, ... in the order in which they appear."""
    _, first, codes = np.unique(np.asarray(labels, np.int64), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def labels_of(text: str) -> Labels:
    """Return the labels of a clustering written as by `as_text`, with at most 26 items.

    Examples
    --------
    >>> labels_of("abd|c")
    array([0, 0, 1, 0])
    """
    where = {item: number for number, cluster in enumerate(text.split("|")) for item in cluster}
    return np.array([where[item] for item in sorted(where)], np.int64)
