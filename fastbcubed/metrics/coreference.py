"""Coreference scores of key and response: entities whose mentions may differ between the sides.

The key and the response are the true and the predicted clusters, including the items that only one side has, if the
policy is "drop" or "outside". With the policy "singleton", such an item is an entity of its own on the other side, so
both sides have it.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from fastbcubed.metrics.metric import Family, f_measure

if TYPE_CHECKING:
    from fastbcubed.metrics.counterparts import Links, Side

#: Precision, recall and F.
Three = tuple[float, float, float]
FIGURES = ("precision", "recall", "f1")
#: Words and letters that definitions use for the side of a figure.
WORDS = {
    "precision": {"side": "response", "other": "key", "x": "r", "X": "R"},
    "recall": {"side": "key", "other": "response", "x": "k", "X": "K"},
}
NOTE = (
    "The key and the response are the true and the predicted clusters, here called entities. Entities include the"
    " items, or mentions, that only one side has. K and R are the numbers of entities of the key and of the response,"
    " and V is the number of cells. In a cell, an entity of k mentions in the key and an entity of r mentions in the"
    " response have n mentions in common. A ratio of 0 / 0 counts as 0, as in the reference scorer. With"
    ' unmatched="singleton", an item that only one side has becomes an entity of one mention on the other side. If'
    " there are several runs, each run is scored on all mentions of the key and of the run, even those that other runs"
    " do not have."
)

coreference = Family("coreference", low=0.0, high=1.0, best="higher", unweighted_only=True, note=NOTE)
#: The functions below, by name.
SCORES: dict[str, Callable[..., Three]] = {}


def three_scores(
    definition: str,
    summary: str,
    *,
    of: str | tuple[str, ...],
    source: str,
    use: str,
    caution: str | dict[str, str],
    worked: tuple[str, str, str],
    examples: dict[str, str],
    f1: str = "",
    paired: bool = False,
) -> Callable[[Callable[..., Three]], Callable[..., Three]]:
    """Declare precision, recall and F of a function of sums over all cells and `zero_division`.

    In the texts, {side} and {other} stand for response and key in precision; {x} and {X} are the letters of the side.
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
            coreference.of_sums(
                definitions[role],
                of=of,
                finalize=partial(figure, position, function),
                name=f"{stem}_{role}",
                summary=summaries[role],
                source=source,
                pairs_clusters=paired,
                use=use,
                caution=caution if isinstance(caution, str) else caution[role],
                worked=worked[position],
                example=examples[role],
                three=examples["all"] if role == "f1" else "",
            )(function)
        return function

    return declare


def figure(position: int, function: Callable[..., Three], *sums: Any) -> float:
    """Return precision, recall or F, for position 0, 1 or 2."""
    return function(*sums)[position]


def ratio(part: float | Fraction, whole: float | Fraction, zero_division: float) -> float:
    """Return part / whole, or `zero_division` for 0 / 0."""
    return float(part / whole) if whole else zero_division


def with_f(precision: float, recall: float) -> Three:
    """Return precision, recall and their harmonic mean."""
    return precision, recall, float(f_measure(precision, recall))


@three_scores(
    "((sum over cells of n) - V) / ((sum over entities of the {side} of {x}) - {X})",
    "Of the links needed to connect the mentions of each entity of the {side}, the share that the {other} also has.",
    of="entities",
    source="Vilain et al. 1995",
    use="Use this score to compare with papers on coreference, and report it together with lea_f1 or conll_f1.",
    caution={
        "precision": "The score counts links, not items, and ignores singletons: merging large entities costs only one"
        " link.",
        "recall": "The score counts links, not items, and ignores singletons: a single cluster of all mentions has"
        " recall 1.",
        "f1": "The score ignores singletons and favours large clusters: a single cluster of all mentions often scores"
        " higher than a realistic prediction.",
    },
    worked=("(4 - 3) / (4 - 2)", "(4 - 3) / (4 - 2)", "2 * 1/2 * 1/2 / (1/2 + 1/2)"),
    examples={
        "precision": """
        Five links connect the mentions of ab, cd and fghi, and two of them, a-b and f-g, are right.

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
def muc(
    key: Side, response: Side, mentions: int, parts: int, alone: int, zero_division: float = 0.0
) -> Three:
    """Return the share of correct links among the minimum number of links that connect the entities."""
    right = mentions - parts
    p, r = (ratio(right, side.mentions - side.entities, zero_division) for side in (response, key))
    return with_f(p, r)


@three_scores(
    "(max over one-to-one pairings of sum over pairs of n) / sum over entities of the {side} of {x}",
    "Share of the {side}'s mentions that are in both entities of a pair, for the best one-to-one pairing of entities.",
    of=("entities", "pairing of mentions"),
    source="Luo 2005",
    paired=True,
    use="Use this score to compare with papers on coreference that pair entities and count mentions; ceaf_e_f1 counts"
    " entities.",
    caution="The score pairs entities one to one, so at most one fragment of a split entity earns credit.",
    worked=("(2 + 1) / 4", "(2 + 1) / 4", "2 * 3/4 * 3/4 / (3/4 + 3/4)"),
    examples={
        "precision": """
        >>> ceaf_m_precision(list("xxyyy"), [1, 1, 1, 1, 2])  # x and 1 share two mentions, y and 2 one: (2 + 1) / 5
        0.6
        """,
        "recall": """
        The key has the entities a, bc and def; the response has a and de.

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
def ceaf_m(
    key: Side,
    response: Side,
    mentions: int,
    parts: int,
    alone: int,
    best: float,
    every: float,
    zero_division: float = 0.0,
) -> Three:
    """Return the share of mentions that entities of the best one-to-one pairing have in common."""
    return with_f(best / response.mentions, best / key.mentions)


@three_scores(
    "1/{X} max over one-to-one pairings of sum over pairs of 2 n / (k + r)",
    "Mean over the entities of the {side} of an entity's similarity to its partner in the best one-to-one pairing.",
    of=("entities", "pairing of entities"),
    source="Luo 2005",
    paired=True,
    use="Use this score to compare with papers on coreference: it is one of the three scores in conll_f1.",
    caution={
        "precision": "Each entity counts once whatever its size, and entities without a partner lower the score even if"
        " they are pure.",
        "recall": "Each entity counts once whatever its size, so small entities usually dominate the score.",
        "f1": "Each entity counts once whatever its size, and a mixed cluster can score higher than the pure clusters"
        " that it could be split into.",
    },
    worked=(
        "(2 * 2 / (2 + 3) + 2 * 1 / (2 + 1)) / 2",
        "(2 * 2 / (2 + 3) + 2 * 1 / (2 + 1)) / 2",
        "2 * 11/15 * 11/15 / (11/15 + 11/15)",
    ),
    examples={
        "precision": """
        The key has the entities a, bc and def; the response has a and de.

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
def ceaf_e(
    key: Side,
    response: Side,
    mentions: int,
    parts: int,
    alone: int,
    best: float,
    every: float,
    zero_division: float = 0.0,
) -> Three:
    """Return the similarity of the best one-to-one pairing of entities, per entity."""
    return with_f(best / response.entities, best / key.entities)


@three_scores(
    "(W / W{x} + B / B{x}) / 2, where W{x} and B{x} are the numbers of links within and between the entities of the"
    " {side}, and W and B are the numbers of these links that are also in the {other}. If the key has links of only one"
    " kind, the score is the term for links of that kind",
    "Share of the {side}'s links that are also in the {other}: mean of the shares within and between entities.",
    f1="(2 W / (Wk + Wr) + 2 B / (Bk + Br)) / 2, where Wk, Wr and W are the numbers of links within the entities of"
    " the key, of the response and of both, and Bk, Br and B are the numbers of links between entities. If the key has"
    " links of only one kind, the score is the term for links of that kind",
    of="links",
    source="Luo et al. 2014",
    use="Use this score to compare with papers on coreference that report BLANC, which also counts links between"
    " entities; lea_f1 ignores such links.",
    caution="Half of the score is based on links between entities; with many small entities, nearly all of these links"
    " are right.",
    worked=("(1/3 + 2/3) / 2", "(1/2 + 2/4) / 2", "(2 * 1 / (3 + 2) + 2 * 2 / (3 + 4)) / 2"),
    examples={
        "precision": """
        The key has the entities ab and cde, and the response has bcx and de: 1 of the response's 4 links within
        entities is right, and 2 of its 6 links between entities.

        >>> score = blanc_precision(["x", "x", "y", "y", "y", None], [None, 1, 1, 2, 2, 1])
        >>> round(score, 6)  # (1/4 + 2/6) / 2 = 7/24
        0.291667
        """,
        "recall": """
        >>> blanc_recall(list("xxyy"), [1, 1, 1, 1])  # (2/2 + 0/4) / 2
        0.5
        """,
        "f1": """
        Here, the F1 of links within entities is 2/4, and the F1 of links between entities is 0.

        >>> blanc_f1(list("xxyy"), [1, 1, 1, 1])  # (2 * 2/6 * 2/2 / (2/6 + 2/2) + 0) / 2
        0.25
        """,
        "all": """
        >>> blanc_precision_recall_fscore(list("xyz"), [1, 2, 3])  # all links are between entities
        PrecisionRecallFscore(precision=1.0, recall=1.0, f1=1.0)
        """,
    },
)
def blanc(within: Links, between: Links, zero_division: float = 0.0) -> Three:
    """Return the means over links within and between entities; over one kind only if the key lacks the other."""
    kinds = [
        with_f(ratio(kind.both, kind.response, zero_division), float(kind.both / kind.key))
        for kind in (within, between)
        if kind.key
    ]
    if not kinds:
        return zero_division, zero_division, zero_division
    p, r, f = (sum(figures) / len(kinds) for figures in zip(*kinds, strict=True))
    return p, r, f


@three_scores(
    "((sum over cells with {x} > 1 of n (n - 1) / ({x} - 1)) + sum over cells with k = r = 1 of 1) / sum over"
    " entities of the {side} of {x}",
    "Mean over the entities of the {side}, weighted by size, of the share of an entity's links that the {other} has.",
    of="entities",
    source="Moosavi and Strube 2016",
    use="Use this score for coreference where larger entities should count more; the score avoids known flaws of"
    " muc_f1 and ceaf_e_f1.",
    caution="An entity of one mention earns credit only if it is a singleton on both sides, so wrong singletons cost"
    " more than in BCubed.",
    worked=(
        "(2 * 1 / (3 - 1) + 1 * 0 / (3 - 1)) / 4",
        "(2 * 1 / (2 - 1) + 1 * 0 / (2 - 1) + 1 * 0 / (2 - 1)) / 4",
        "2 * 1/4 * 1/2 / (1/4 + 1/2)",
    ),
    examples={
        "precision": """
        >>> lea_precision(list("xxyy"), [1, 1, 1, 2])  # (3 * 1/3 + 1 * 0) / 4; y is no singleton in the key
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
        The key has the entities abc and defg, and the response has ab, cd and fghi: precision is
        (2 * 1 + 2 * 0 + 4 * 1/6) / 8, and recall is (3 * 1/3 + 4 * 1/6) / 7.

        >>> labels_true = ["x", "x", "x", "y", "y", "y", "y", None, None]
        >>> scores = lea_precision_recall_fscore(labels_true, [1, 1, 2, 2, None, 3, 3, 3, 3])
        >>> [round(score, 6) for score in scores]  # 1/3, 5/21, 5/18
        [0.333333, 0.238095, 0.277778]
        """,
    },
)
def lea(
    key: Side, response: Side, mentions: int, parts: int, alone: int, zero_division: float = 0.0
) -> Three:
    """Return the mean over entities, weighted by size, of the share of their links that are correct."""
    return with_f(*((side.lea + alone) / side.mentions for side in (response, key)))


@three_scores(
    "(sum over cells of n^2 / {x}) / sum over entities of the {side} of {x}",
    "Mean over mentions of the {side} of the share of a mention's entity that is also in the mention's entity in the"
    " {other}.",
    of="entities",
    source="Bagga and Baldwin 1998",
    use="Use this score for coreference if key and response have different mentions: it is one of the three scores in"
    " conll_f1.",
    caution="The score differs from BCubed only if one side has mentions that the other side does not have: these"
    " mentions score 0. If both sides have the same mentions, use BCubed.",
    worked=(
        "(2**2 / 3 + 1**2 / 3 + 1**2 / 1) / 4",
        "(2**2 / 2 + 1**2 / 2 + 1**2 / 2) / 4",
        "2 * 2/3 * 3/4 / (2/3 + 3/4)",
    ),
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
def coref_bcubed(
    key: Side, response: Side, mentions: int, parts: int, alone: int, zero_division: float = 0.0
) -> Three:
    """Return the mean, over mentions, of the share of a mention's entity that is in its entity on the other side."""
    return with_f(*(side.bcubed / side.mentions for side in (response, key)))


def conll(*found: Any, zero_division: float = 0.0) -> Three:
    """Mean of the F1 scores of MUC, BCubed and entity-based CEAF, used to rank systems in the CoNLL shared tasks."""
    entities, pairing = found[:5], found[5:]
    each = (
        muc(*entities, zero_division),
        coref_bcubed(*entities, zero_division),
        ceaf_e(*entities, *pairing, zero_division),
    )
    p, r, f = (sum(figures) / len(each) for figures in zip(*each, strict=True))
    return p, r, f


SCORES["conll"] = conll
coreference.of_sums(
    "(M + B + C) / 3, with M = muc_f1, B = coref_bcubed_f1 and C = ceaf_e_f1",
    of=("entities", "pairing of entities"),
    finalize=partial(figure, 2, conll),
    name="conll_f1",
    source="Pradhan et al. 2012",
    pairs_clusters=True,
    use="Use this score to compare with papers on coreference that rank systems by the mean of muc_f1, coref_bcubed_f1"
    " and ceaf_e_f1.",
    caution="The score averages three scores that disagree on the cost of an error: use it only to compare with papers"
    " on coreference.",
    worked="(1/2 + 12/17 + 11/15) / 3",
    example="""
    >>> score = conll_f1(list("xxyy"), [1, 1, 1, 1])
    >>> round(score, 6)  # (4/5 + 2/3 + 4/9) / 3 = 86/135
    0.637037
    """,
)(conll)
