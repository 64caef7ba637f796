"""Key and response: entities whose mentions may differ on the two sides, what they share, how they pair.

Key and response are the true and the predicted clusters, with the items that only their side has:
those that the policies "drop" and "outside" leave on their side alone. With "singleton" such an item
is an entity of its own on the other side, too, and then on both sides.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.metrics.assignment import Pairing, pair_clusters
from fastbcubed.metrics.metric import Floats
from fastbcubed.metrics.pair_counts import pair_counts

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency
    from fastbcubed.runtime.pool import Pool

Counts = NDArray[np.int64]


class Side(NamedTuple):
    """What the scores need of the key or of the response."""

    sizes: Counts  # mentions of each entity, by code; empty if the other side has all of them
    mentions: int
    entities: int
    bcubed: float  # sum of n n / size over cells
    lea: float  # sum of n (n - 1) / (size - 1) over cells


class Entities(NamedTuple):
    """Both sides and what they share."""

    key: Side
    response: Side
    mentions: int  # on both sides
    parts: int  # non-empty intersections of entities
    alone: int  # mentions that are an entity of their own on both sides


class Links(NamedTuple):
    """Pairs of mentions of one kind: in the key, in the response, in both."""

    key: Fraction
    response: Fraction
    both: Fraction


def entities(contingency: Contingency, pool: Pool) -> Entities:
    """Count entities and mentions, and sum what the scores are made of."""
    true_sizes, pred_sizes = _sizes(contingency, "true"), _sizes(contingency, "pred")
    pred = contingency.pred if pred_sizes.size else pred_sizes

    def add_up(start: int, stop: int) -> Floats:
        runs = np.empty((-(-(stop - start) // kernels.runs.RUN), kernels.coreference.FIGURES))
        kernels.coreference.sum_entities(contingency.cells, pred, start, stop, true_sizes, pred_sizes, runs)
        return runs

    sums = np.concatenate(contingency.map(add_up, pool, "count mentions"))
    *figures, alone = (math.fsum(column) for column in sums.T.tolist())
    sides = []
    for sizes, (shares, bcubed, lea) in ((true_sizes, figures[:3]), (pred_sizes, figures[3:])):
        mentions, count = contingency.n_items, round(shares)  # the shares of an entity add up to 1
        if sizes.size:
            mentions, count = int(sizes.sum()), int(np.count_nonzero(sizes))
        sides.append(Side(sizes, mentions, count, bcubed, lea))
    return Entities(sides[0], sides[1], contingency.n_items, contingency.n_cells, round(alone))


def _sizes(contingency: Contingency, side: str) -> Counts:
    only = contingency.only(side)
    if only is None:
        return np.empty(0, np.int64)
    return _scored(contingency, side) + only[0]


def _scored(contingency: Contingency, side: str) -> Counts:
    return contingency.true_n if side == "true" else contingency.pred_n


def links(contingency: Contingency, pool: Pool) -> tuple[Links, Links]:
    """Count the links between mentions of one entity, and those between mentions of two."""
    found = contingency.once(entities, pool)
    both, fp, fn, _ = contingency.once(pair_counts, pool)
    key, response = both + fn, both + fp
    if contingency.outside:  # fp counts items that are not in the key, too
        sizes = contingency.pred_n
        response = Fraction(sum_products(sizes, sizes - 1), 2)
    more = {}
    for side in ("true", "pred"):
        only = contingency.only(side)
        more[side] = (0, 0) if only is None else _with_others(_scored(contingency, side), only[0])
    n = found.mentions
    apart = Fraction(n * (n - 1), 2) - key - response + both
    key, response = key + sum(more["true"]), response + sum(more["pred"])
    every = (Fraction(side.mentions * (side.mentions - 1), 2) for side in (found.key, found.response))
    return Links(key, response, both), Links(next(every) - key, next(every) - response, apart)


def _with_others(sizes: Counts, others: Counts) -> tuple[int, int]:
    """Count the pairs that further mentions of each entity make with its others, and with each other."""
    there = others > 0
    sizes, others = sizes[there], others[there]
    return sum_products(sizes, others), sum_products(others, others - 1) // 2


def sum_products(a: Counts, b: Counts) -> int:
    """Sum products of counts exactly, the first of each digit by digit: so many bits that 64 hold their sum.

    Examples
    --------
    >>> sum_products(np.array([2**40, 3]), np.array([2**40, 5])) - 2**80
    15
    """
    digit = max(1, 63 - int(b.sum()).bit_length())
    total = shift = 0
    while a.any():
        total += int((a & ((1 << digit) - 1)) @ b) << shift
        a, shift = a >> digit, shift + digit
    return total


def align_mentions(contingency: Contingency, pool: Pool) -> Pairing:
    """Pair entities one to one, so that they share the most mentions."""

    def common(start: int, stop: int) -> Floats:
        return contingency.n[start:stop].astype(np.float64)

    return pair_clusters(contingency, common, pool)


def align_entities(contingency: Contingency, pool: Pool) -> Pairing:
    """Pair entities one to one, so that the sum of their similarities 2 n / (k + r) is the largest."""
    found = contingency.once(entities, pool)
    key_sizes, response_sizes = found.key.sizes, found.response.sizes

    def similarity(start: int, stop: int) -> Floats:
        cells = contingency.cells[start:stop]
        n = cells["n"].astype(np.float64)
        k = key_sizes[cells["true"]] if key_sizes.size else n + cells["fn"]
        r = response_sizes[contingency.pred[start:stop]] if response_sizes.size else n + cells["fp"]
        return 2 * n / (k + r)

    return pair_clusters(contingency, similarity, pool)
