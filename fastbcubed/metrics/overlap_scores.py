"""Scores made for clusters that overlap: the Omega index, and overlapping mutual information."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import fsum, inf
from typing import TYPE_CHECKING

import numpy as np

from fastbcubed.metrics.score import Family

if TYPE_CHECKING:
    from fastbcubed.overlap.agreement import Left

overlap = Family(
    "overlap", low=0.0, high=1.0, best="higher", unweighted_only=True, labelled_only=True, on_covers=True
)
TOLD = "with H(X|Y) the least entropy of a cluster X given one cluster Y that shares an item with it"
of_entropies = partial(overlap.of_sums, of="entropies of clusters")


@overlap.of_sums(
    "(O - E) / (1 - E), with O the share of pairs that share as many true as predicted clusters, and E the sum over"
    " k of the shares of pairs that share k true and k predicted ones",
    of="shared clusters",
    low=-inf,
    source="Collins and Dent 1988",
    example="""
    >>> omega(list("aabb"), [1, 1, 1, 2])  # 3 of 6 pairs agree; expected (2 * 3 + 4 * 3) / 6**2
    0.0
    """,
)
def omega(all_pairs: int, same: int, expected: int) -> float:
    """Agreement of pairs of items on the number of clusters they share, beyond chance."""
    if expected == all_pairs**2:
        return float(same == all_pairs)
    return (same * all_pairs - expected) / (all_pairs**2 - expected)


@of_entropies(
    f"1 - (mean over true clusters of H(X|Y) / H(X) + the same over predicted ones) / 2, {TOLD}; 0/0 is 1",
    source="Lancichinetti et al. 2009",
    example="""
    >>> score = onmi_lfk(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # 1 - ((1.5 - 0.8113) / 1 + (1.5 - 1) / 0.8113) / 2
    0.3475
    """,
)
def onmi_lfk(true: Left, pred: Left) -> float:
    """Overlapping normalized mutual information (LFK): mean information of a cluster's best counterpart about it.

    A cluster without entropy, of all items, counts as one of which nothing is told: two identical
    clusterings of one such cluster get 0.
    """
    lost = []
    for whole, least in (true, pred):
        shares = np.divide(least, whole, out=np.ones(whole.size), where=whole > 0)
        lost.append(fsum(shares) / shares.size)
    return 1.0 - (lost[0] + lost[1]) / 2


@of_entropies(
    "half the sum over clusters of both sides of H(X) - H(X|Y), over the larger of the sums of H(X) of either side,"
    f" {TOLD}; 0/0 is 1 for identical clusterings, else 0",
    source="McDaid et al. 2011",
    example="""
    >>> score = onmi_max(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # (1 + 0.8113 - 1.5) / 1
    0.3113
    """,
)
def onmi_max(true: Left, pred: Left) -> float:
    """Overlapping mutual information over the larger of the entropies of both sides."""
    return _normalized(true, pred, max)


@of_entropies(
    "half the sum over clusters of both sides of H(X) - H(X|Y), over the mean of the sums of H(X) of either side,"
    f" {TOLD}; 0/0 is 1 for identical clusterings, else 0",
    source="McDaid et al. 2011",
    example="""
    >>> score = onmi_mean(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # (1 + 0.8113 - 1.5) / ((1 + 0.8113) / 2)
    0.3437
    """,
)
def onmi_mean(true: Left, pred: Left) -> float:
    """Overlapping mutual information over the mean of the entropies of both sides."""
    return _normalized(true, pred, lambda a, b: (a + b) / 2)


def _normalized(true: Left, pred: Left, norm: Callable[[float, float], float]) -> float:
    (h_true, true_least), (h_pred, pred_least) = ((fsum(h), fsum(least)) for h, least in (true, pred))
    whole = norm(h_true, h_pred)
    if whole == 0:
        return float(true.whole.size == pred.whole.size)  # clusters of all items alone
    return ((h_true - true_least) + (h_pred - pred_least)) / 2 / whole
