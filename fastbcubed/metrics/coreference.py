"""Key and response: entities whose mentions may differ between the sides, their overlaps and pairing.

Key and response are the true and the predicted clusters, with the items that only their side has:
those that the policies "drop" and "outside" leave on their side alone. With "singleton" such an item
is an entity of its own on the other side, too, and then on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from fastbcubed import kernels
from fastbcubed.metrics.matching import Pairing, pair_clusters
from fastbcubed.metrics.pairs import pair_counts
from fastbcubed.metrics.score import Family, f_measure
from fastbcubed.types import Counts, Floats

if TYPE_CHECKING:
    from fastbcubed.cells.contingency import Contingency
    from fastbcubed.runtime.threads import Pool


class Side(NamedTuple):
    """The sums of the key or of the response that scores need."""

    sizes: Counts  # mentions of each entity, by code; empty if the other side has all of them
    mentions: int
    entities: int
    bcubed: float  # sum of n n / size over cells
    lea: float  # sum of n (n - 1) / (size - 1) over cells


class Entities(NamedTuple):
    """Both sides and their overlaps."""

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
    """Count entities and mentions, and add up the sums behind the scores."""
    true_sizes, pred_sizes = _sizes(contingency, "true"), _sizes(contingency, "pred")
    pred = contingency.pred if pred_sizes.size else pred_sizes

    def add_up(start: int, stop: int) -> Floats:
        runs = np.empty((-(-(stop - start) // kernels.runs.RUN), kernels.metrics.FIGURES))
        kernels.metrics.sum_entities(contingency.cells, pred, start, stop, true_sizes, pred_sizes, runs)
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
    """Sum products of counts exactly: first factors are cut into digits short enough for sums of 64 bits.

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


#: Precision, recall and F.
Three = tuple[float, float, float]
FIGURES = ("precision", "recall", "f1")
#: What the definitions say of the side that a figure is about.
WORDS = {
    "precision": {"side": "response", "other": "key", "x": "r", "X": "R"},
    "recall": {"side": "key", "other": "response", "x": "k", "X": "K"},
}
NOTE = (
    "Key and response are the true and the predicted clusters, here called entities, with the items, or"
    " mentions, that only their side has. K and R are the numbers of entities, k and r the mentions of one of"
    " them, n those that two have in common, a cell. 0 / 0 is 0, as in the reference scorer. An item that"
    ' unmatched="singleton" gives to the other side is an entity of one mention there.'
)

coreference = Family("coreference", low=0.0, high=1.0, best="higher", unweighted_only=True, note=NOTE)
#: The functions below by name.
SCORES: dict[str, Callable[..., Three]] = {}


def three_scores(
    definition: str,
    summary: str,
    *,
    source: str,
    examples: dict[str, str],
    f1: str = "",
    paired: bool = False,
) -> Callable[[Callable[..., Three]], Callable[..., Three]]:
    """Declare precision, recall and F of a function (contingency, pool, zero_division).

    In the texts {side} and {other} are response and key for precision, {x} and {X} the letters of the side.
    """

    def declare(function: Callable[..., Three]) -> Callable[..., Three]:
        stem = function.__name__
        SCORES[stem] = function
        p, r = f"{stem}_precision", f"{stem}_recall"
        definitions = {role: definition.format(**words) for role, words in WORDS.items()}
        definitions["f1"] = f1 or f"2 P R / (P + R), with P = {p} and R = {r}"
        summaries = {role: summary.format(**words) for role, words in WORDS.items()}
        summaries["f1"] = f"F1 of {p} and {r}."
        for position, role in enumerate(FIGURES):
            coreference.of_cells(
                definitions[role],
                by=partial(figure, position),
                name=f"{stem}_{role}",
                summary=summaries[role],
                source=source,
                pairs_clusters=paired,
                example=examples[role],
                three=examples["all"] if role == "f1" else "",
            )(function)
        return function

    return declare


def figure(
    position: int,
    function: Callable[..., Three],
    contingency: Contingency,
    pool: Pool,
    zero_division: float = 0.0,
) -> float:
    """Return precision, recall or F, at positions 0, 1 and 2."""
    return function(contingency, pool, zero_division)[position]


def ratio(part: float | Fraction, whole: float | Fraction, zero_division: float) -> float:
    """Return part / whole, or `zero_division` for 0 / 0."""
    return float(part / whole) if whole else zero_division


def with_f(precision: float, recall: float) -> Three:
    """Return both and their harmonic mean."""
    return precision, recall, float(f_measure(precision, recall))


@three_scores(
    "(sum of n - number of cells) / (sum of {x} - {X})",
    "Share of the links of the {side}, as few as hold its entities together, that the {other} has.",
    source="Vilain et al. 1995",
    examples={
        "precision": """
        The links a-b and f-g are right, of five that hold ab, cd and fghi together.

        >>> labels_true = ["x", "x", "x", "y", "y", "y", "y", None, None]  # abc and defg
        >>> muc_precision(labels_true, [1, 1, 2, 2, None, 3, 3, 3, 3])  # 2 / (1 + 1 + 3)
        0.4
        """,
        "recall": """
        >>> muc_recall(list("xxxxx"), [1, 1, 1, 2, 2])  # two parts are one link short of 4
        0.75
        >>> muc_recall(list("xyz"), [1, 2, 3]), muc_recall(list("xyz"), [1, 2, 3], zero_division=1)
        (0.0, 1.0)
        """,
        "f1": """
        >>> score = muc_f1(list("xxxx"), [1, 1, 2, 2])
        >>> round(score, 12)  # P = 2/2, R = 2/3; 2 * 1 * 2/3 / (1 + 2/3)
        0.8
        """,
        "all": """
        >>> muc_precision_recall_fscore(list("xxx"), [1, None, 1])  # b is missing, and so is one of two links
        PrecisionRecallFscore(precision=1.0, recall=0.5, f1=0.6666666666666666)
        """,
    },
)
def muc(contingency: Contingency, pool: Pool, zero_division: float = 0.0) -> Three:
    """Return the share of the links that hold entities together, as few as can be, that is right."""
    found = contingency.once(entities, pool)
    right = found.mentions - found.parts
    p, r = (
        ratio(right, side.mentions - side.entities, zero_division) for side in (found.response, found.key)
    )
    return with_f(p, r)


@three_scores(
    "max over one-to-one pairings of entities of the sum of n, over the sum of {x}",
    "Share of the mentions of the {side} in the common part of entities that are paired one to one.",
    source="Luo 2005",
    paired=True,
    examples={
        "precision": """
        >>> ceaf_m_precision(list("xxyyy"), [1, 1, 1, 1, 2])  # y with 1 shares 2, x no other; x with 1 and y with 2: 3
        0.6
        """,
        "recall": """
        The entities a, bc and def, of which the response has a and de.

        >>> ceaf_m_recall([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])  # (1 + 2) / 6
        0.5
        """,
        "f1": """
        >>> score = ceaf_m_f1([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
        >>> round(score, 12)  # P = 3/3, R = 3/6
        0.666666666667
        """,
        "all": """
        >>> ceaf_m_precision_recall_fscore([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
        PrecisionRecallFscore(precision=1.0, recall=0.5, f1=0.6666666666666666)
        """,
    },
)
def ceaf_m(contingency: Contingency, pool: Pool, zero_division: float = 0.0) -> Three:
    """Return the share of mentions in common of the best one-to-one pairing of entities."""
    found, pairing = contingency.once(entities, pool), contingency.once(align_mentions, pool)
    return with_f(*(pairing.best / side.mentions for side in (found.response, found.key)))


@three_scores(
    "max over one-to-one pairings of entities of the sum of 2 n / (k + r), over {X}",
    "Mean over the entities of the {side} of the similarity to those that they are paired with, one to one.",
    source="Luo 2005",
    paired=True,
    examples={
        "precision": """
        The entities a, bc and def, of which the response has a and de.

        >>> score = ceaf_e_precision([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
        >>> round(score, 12)  # (1 + 2 * 2 / (3 + 2)) / 2
        0.9
        """,
        "recall": """
        >>> score = ceaf_e_recall([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
        >>> round(score, 12)  # (1 + 2 * 2 / (3 + 2)) / 3
        0.6
        """,
        "f1": """
        >>> score = ceaf_e_f1([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
        >>> round(score, 12)  # 2 * 9/10 * 3/5 / (9/10 + 3/5)
        0.72
        """,
        "all": """
        >>> scores = ceaf_e_precision_recall_fscore([1, 2, 2, 3, 3, 3], ["a", None, None, "b", "b", None])
        >>> [round(score, 12) for score in scores]
        [0.9, 0.6, 0.72]
        """,
    },
)
def ceaf_e(contingency: Contingency, pool: Pool, zero_division: float = 0.0) -> Three:
    """Return the similarity per entity of the best one-to-one pairing of entities."""
    found, pairing = contingency.once(entities, pool), contingency.once(align_entities, pool)
    return with_f(*(pairing.best / side.entities for side in (found.response, found.key)))


@three_scores(
    "mean of the shares of the links within and of the links between the entities of the {side} that the"
    " {other} has; one of them if the key has links of one kind alone",
    "Share of the links of the {side} that the {other} has: mean of those within entities and those between.",
    f1="mean of the F1 of links within entities and the F1 of links between entities; one of them if the key"
    " has links of one kind alone",
    source="Luo et al. 2014",
    examples={
        "precision": """
        The entities ab and cde against bcx and de: one of 4 links within is right, and two of 6 between.

        >>> score = blanc_precision(["x", "x", "y", "y", "y", None], [None, 1, 1, 2, 2, 1])
        >>> round(score, 6)  # (1/4 + 2/6) / 2 = 7/24
        0.291667
        """,
        "recall": """
        >>> blanc_recall(list("xxyy"), [1, 1, 1, 1])  # (2/2 + 0/4) / 2
        0.5
        """,
        "f1": """
        The F1 of links within entities is 2/4 here, that of links between them 0.

        >>> blanc_f1(list("xxyy"), [1, 1, 1, 1])  # (2 * 2/6 * 2/2 / (2/6 + 2/2) + 0) / 2
        0.25
        """,
        "all": """
        >>> blanc_precision_recall_fscore(list("xyz"), [1, 2, 3])  # no links within: those between alone
        PrecisionRecallFscore(precision=1.0, recall=1.0, f1=1.0)
        """,
    },
)
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


@three_scores(
    "(sum of n (n - 1) / ({x} - 1) over cells with {x} > 1, plus the number of cells with k = r = 1) / sum of {x}",
    "Mean over the entities of the {side}, by size, of the share of their links that the {other} has.",
    source="Moosavi and Strube 2016",
    examples={
        "precision": """
        >>> lea_precision(list("xxyy"), [1, 1, 1, 2])  # (3 * 1/3 + 1 * 0) / 4; y is not alone in the key
        0.25
        """,
        "recall": """
        >>> lea_recall(list("xxyy"), [1, 1, 1, 2])  # (2 * 1/1 + 2 * 0/1) / 4
        0.5
        """,
        "f1": """
        >>> score = lea_f1(list("xxyy"), [1, 1, 1, 2])
        >>> round(score, 12)  # 2 * 1/4 * 1/2 / (1/4 + 1/2)
        0.333333333333
        """,
        "all": """
        The entities abc and defg against ab, cd and fghi: (2 * 1 + 2 * 0 + 4 * 1/6) / 8 and
        (3 * 1/3 + 4 * 1/6) / 7.

        >>> labels_true = ["x", "x", "x", "y", "y", "y", "y", None, None]
        >>> scores = lea_precision_recall_fscore(labels_true, [1, 1, 2, 2, None, 3, 3, 3, 3])
        >>> [round(score, 6) for score in scores]  # 1/3, 5/21, 5/18
        [0.333333, 0.238095, 0.277778]
        """,
    },
)
def lea(contingency: Contingency, pool: Pool, zero_division: float = 0.0) -> Three:
    """Return the mean over entities, weighted by size, of the share of their links that is right."""
    found = contingency.once(entities, pool)
    return with_f(*((side.lea + found.alone) / side.mentions for side in (found.response, found.key)))


@three_scores(
    "sum of n^2 / {x} over cells, over the sum of {x}",
    "Mean over the mentions of the {side} of the share of their entity that they share with the {other}.",
    source="Bagga and Baldwin 1998",
    examples={
        "precision": """
        >>> score = coref_bcubed_precision(["x", "x", None], [1, 1, 1])
        >>> round(score, 12)  # (2/3 + 2/3 + 0) / 3 = 4/9
        0.444444444444
        """,
        "recall": """
        >>> coref_bcubed_recall(list("xxyy"), [1, 1, 2, None])  # (1 + 1 + 1/2 + 0) / 4
        0.625
        """,
        "f1": """
        >>> coref_bcubed_f1(list("xxyy"), [1, 1, 1, 1])  # 2 * 1/2 * 1 / (1/2 + 1)
        0.6666666666666666
        """,
        "all": """
        >>> coref_bcubed_precision_recall_fscore(list("xx"), [1, None])  # R = (1/2 + 0) / 2
        PrecisionRecallFscore(precision=1.0, recall=0.25, f1=0.4)
        """,
    },
)
def coref_bcubed(contingency: Contingency, pool: Pool, zero_division: float = 0.0) -> Three:
    """Return the mean share of its entity that a mention shares with that of the other side."""
    found = contingency.once(entities, pool)
    return with_f(*(side.bcubed / side.mentions for side in (found.response, found.key)))
