"""Coreference scores: of entities whose mentions may differ on the two sides.

Key and response are the true and the predicted clusters, with the items that only their side has:
those that the policies "drop" and "outside" leave on their side alone. With "singleton" such an item
is an entity of its own on the other side, too, and then on both sides. 0 / 0 is 0, as in the reference
scorer, unless the caller says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.metrics.assignment import Pairing, pair_clusters
from fastbcubed.metrics.metric import Floats, Metric
from fastbcubed.metrics.pairs import pair_counts
from fastbcubed.metrics.pointwise import f_measure

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency
    from fastbcubed.runtime.pool import Pool

Counts = NDArray[np.int64]
#: Precision, recall and F.
Three = tuple[float, float, float]


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
        runs = np.empty((-(-(stop - start) // kernels.coreference.RUN), kernels.coreference.FIGURES))
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
        response = Fraction(_sum_products(sizes, sizes - 1), 2)
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
    return _sum_products(sizes, others), _sum_products(others, others - 1) // 2


def _sum_products(a: Counts, b: Counts) -> int:
    if int(a.max(initial=0)) * int(b.sum()) < 1 << 63:
        return int(a @ b)
    return sum(map(mul, a.tolist(), b.tolist()))


# The scores


def ratio(part: float | Fraction, whole: float | Fraction, zero_division: float) -> float:
    """Return part / whole, or `zero_division` for 0 / 0."""
    return float(part / whole) if whole else zero_division


def with_f(precision: float, recall: float) -> Three:
    """Return both and their harmonic mean."""
    return precision, recall, float(f_measure(precision, recall))


def muc(contingency: Contingency, pool: Pool, zero_division: float = 0.0) -> Three:
    """Return the share of the links that hold entities together, as few as can be, that is right."""
    found = contingency.once(entities, pool)
    right = found.mentions - found.parts
    p, r = (
        ratio(right, side.mentions - side.entities, zero_division) for side in (found.response, found.key)
    )
    return with_f(p, r)


def coref_bcubed(contingency: Contingency, pool: Pool, zero_division: float = 0.0) -> Three:
    """Return the mean share of its entity that a mention shares with that of the other side."""
    found = contingency.once(entities, pool)
    return with_f(*(side.bcubed / side.mentions for side in (found.response, found.key)))


def lea(contingency: Contingency, pool: Pool, zero_division: float = 0.0) -> Three:
    """Return the mean over entities, weighted by size, of the share of their links that is right."""
    found = contingency.once(entities, pool)
    return with_f(*((side.lea + found.alone) / side.mentions for side in (found.response, found.key)))


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


def ceaf_m(contingency: Contingency, pool: Pool, zero_division: float = 0.0) -> Three:
    """Return the share of mentions in common of the best one-to-one pairing of entities."""
    found, pairing = contingency.once(entities, pool), contingency.once(align_mentions, pool)
    return with_f(*(pairing.best / side.mentions for side in (found.response, found.key)))


def ceaf_e(contingency: Contingency, pool: Pool, zero_division: float = 0.0) -> Three:
    """Return the similarity per entity of the best one-to-one pairing of entities."""
    found, pairing = contingency.once(entities, pool), contingency.once(align_entities, pool)
    return with_f(*(pairing.best / side.entities for side in (found.response, found.key)))


def blanc(contingency: Contingency, pool: Pool, zero_division: float = 0.0) -> Three:
    """Return the means over both kinds of links; over one alone if the key has no other."""
    kinds = [
        with_f(ratio(kind.both, kind.response, zero_division), float(kind.both / kind.key))
        for kind in contingency.once(links, pool)
        if kind.key
    ]
    if not kinds:
        return zero_division, zero_division, zero_division
    p, r, f = (sum(figures) / len(kinds) for figures in zip(*kinds, strict=True))
    return p, r, f


FIGURES = ("precision", "recall", "f1")


class _About(NamedTuple):
    """A score as the registry knows it; {side} and {other} are response and key for precision."""

    figures: Callable[..., Three]
    source: str
    summary: str
    definition: str
    f1: str = "2 P R / (P + R), with P = {name}_precision and R = {name}_recall"


SCORES = {
    "muc": _About(
        muc,
        "Vilain et al. 1995",
        "Share of the links of the {side}, as few as hold its entities together, that the {other} has.",
        "(sum of n - number of cells) / (sum of {x} - {X})",
    ),
    "ceaf_m": _About(
        ceaf_m,
        "Luo 2005",
        "Share of the mentions of the {side} in the common part of entities that are paired one to one.",
        "max over one-to-one pairings of entities of the sum of n, over the sum of {x}",
    ),
    "ceaf_e": _About(
        ceaf_e,
        "Luo 2005",
        "Mean over the entities of the {side} of the similarity to those that they are paired with, one to one.",
        "max over one-to-one pairings of entities of the sum of 2 n / (k + r), over {X}",
    ),
    "blanc": _About(
        blanc,
        "Luo et al. 2014",
        "Share of the links of the {side} that the {other} has: mean of those within entities and those between.",
        "mean of the shares of the links within and of the links between the entities of the {side} that the"
        " {other} has; one of them if the key has links of one kind alone",
        "mean of the F1 of links within entities and the F1 of links between entities; one of them if the key"
        " has links of one kind alone",
    ),
    "lea": _About(
        lea,
        "Moosavi and Strube 2016",
        "Mean over the entities of the {side}, by size, of the share of their links that the {other} has.",
        "(sum of n (n - 1) / ({x} - 1) over cells with {x} > 1, plus the number of cells with k = r = 1)"
        " / sum of {x}",
    ),
    "coref_bcubed": _About(
        coref_bcubed,
        "Bagga and Baldwin 1998",
        "Mean over the mentions of the {side} of the share of their entity that they share with the {other}.",
        "sum of n^2 / {x} over cells, over the sum of {x}",
    ),
}
NOTE = (
    "Key and response are the true and the predicted clusters, here called entities, with the items, or"
    " mentions, that only their side has. K and R are the numbers of entities, k and r the mentions of one of"
    " them, n those that two have in common, a cell. 0 / 0 is 0, as in the reference scorer. An item that"
    ' unmatched="singleton" gives to the other side is an entity of one mention there.'
)


def figure(name: str, position: int, contingency: Contingency, pool: Pool) -> float:
    """Return precision, recall or F, at positions 0, 1 and 2."""
    return SCORES[name].figures(contingency, pool)[position]


def scores() -> Iterator[Metric]:
    """Yield the scores of the family "coreference"."""
    rate = partial(
        Metric, family="coreference", low=0.0, high=1.0, best="higher", unweighted_only=True, note=NOTE
    )
    roles = {
        "precision": {"side": "response", "other": "key", "x": "r", "X": "R"},
        "recall": {"side": "key", "other": "response", "x": "k", "X": "K"},
    }
    for name, about in SCORES.items():
        paired = name.startswith("ceaf")
        rates = [f"{name}_{role}" for role in FIGURES[:2]]
        for position, words in enumerate(roles.values()):
            yield rate(
                rates[position],
                summary=about.summary.format(**words),
                definition=about.definition.format(**words),
                source=about.source,
                pairs_clusters=paired,
                score=partial(figure, name, position),
            )
        yield rate(
            f"{name}_f1",
            summary=f"F1 of {rates[0]} and {rates[1]}.",
            definition=about.f1.format(name=name),
            source=about.source,
            pairs_clusters=paired,
            score=partial(figure, name, 2),
        )
