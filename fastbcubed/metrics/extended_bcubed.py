"""Scores of overlapping clusterings, item by item: Extended BCubed, overlapping ELM, CICE-BCubed.

The first two are the precision and recall that a cover gives its cells; they have names of their own
beside. CICE-BCubed lets each hit count as much as the clusters that a pair shares match each other.
"""

from __future__ import annotations

from functools import partial
from inspect import cleandoc
from typing import TYPE_CHECKING, Literal

from fastbcubed.metrics.elm import elm
from fastbcubed.metrics.pointwise import f1, mean_f1, pointwise, precision, recall
from fastbcubed.metrics.score import Family, slopes_of_f1
from fastbcubed.types import Floats

if TYPE_CHECKING:
    from fastbcubed.overlap.cover import Cover

extended = Family("overlap")


def on_covers(example: str) -> str:
    """Return an example where two true clusters share an item, and one predicted cluster holds them both."""
    return f"""
>>> truth, prediction = {{1: {{"a"}}, 2: {{"a", "b"}}, 3: {{"b"}}}}, {{1: {{"c"}}, 2: {{"c"}}, 3: {{"c"}}}}
{cleandoc(example)}
"""


extended.alias(
    "extended_bcubed_precision",
    pointwise["precision"],
    source="Amigó et al. 2009",
    example=on_covers("""
    >>> score = extended_bcubed_precision(truth, prediction)
    >>> round(score, 6)  # (2/3 + 1 + 2/3) / 3: items 1 and 3 share no true cluster
    0.777778
    """),
)
extended.alias(
    "extended_bcubed_recall",
    pointwise["recall"],
    source="Amigó et al. 2009",
    example=on_covers("""
    >>> score = extended_bcubed_recall(truth, prediction)
    >>> round(score, 6)  # (1 + 5/6 + 1) / 3: item 2 finds itself in one cluster, not two
    0.944444
    """),
)
extended.alias(
    "extended_bcubed_f1",
    pointwise["f1"],
    source="Amigó et al. 2009",
    example=on_covers("""
    >>> score = extended_bcubed_f1(truth, prediction)
    >>> round(score, 6)  # 2 * 7/9 * 17/18 / (7/9 + 17/18)
    0.853047
    """),
    three=on_covers("""
    >>> scores = extended_bcubed_precision_recall_fscore(truth, prediction)
    >>> [round(score, 6) for score in scores]
    [0.777778, 0.944444, 0.853047]
    """),
)
extended.alias(
    "extended_bcubed_mean_f1",
    pointwise["mean_f1"],
    source="Amigó et al. 2009",
    example=on_covers("""
    >>> score = extended_bcubed_mean_f1(truth, prediction)
    >>> round(score, 6)  # (4/5 + 10/11 + 4/5) / 3
    0.836364
    """),
)
extended.alias(
    "extended_elm_precision",
    elm["elm_precision"],
    source="fastbcubed",
    example=on_covers("""
    >>> score = extended_elm_precision(truth, prediction)
    >>> round(score, 6)  # (1/2 + 1 + 1/2) / 3: items 1 and 3 share no true cluster
    0.666667
    """),
)
extended.alias(
    "extended_elm_recall",
    elm["elm_recall"],
    source="fastbcubed",
    example=on_covers("""
    >>> score = extended_elm_recall(truth, prediction)
    >>> round(score, 6)  # (1/1 + 2/2 + 1/1) / 3
    1.0
    """),
)
extended.alias(
    "extended_elm_f1",
    elm["elm_f1"],
    source="fastbcubed",
    example=on_covers("""
    >>> score = extended_elm_f1(truth, prediction)
    >>> round(score, 6)  # 2 * 2/3 * 1 / (2/3 + 1)
    0.8
    """),
    three=on_covers("""
    >>> scores = extended_elm_precision_recall_fscore(truth, prediction)
    >>> [round(score, 6) for score in scores]
    [0.666667, 1.0, 0.8]
    """),
)
extended.alias(
    "extended_elm_mean_f1",
    elm["elm_mean_f1"],
    source="fastbcubed",
    example=on_covers("""
    >>> score = extended_elm_mean_f1(truth, prediction)
    >>> round(score, 6)  # (2/3 + 1 + 2/3) / 3
    0.777778
    """),
)


# CICE-BCubed

Match = Literal["global", "pair"]
Similarity = Literal["jaccard", "rand", "f1"]
MATCHES: tuple[Match, ...] = ("global", "pair")
SIMILARITIES: tuple[Similarity, ...] = ("jaccard", "rand", "f1")


def _matrix(match: Match, similarity: Similarity, cover: Cover) -> tuple[Floats, Floats, Floats]:
    """Return tp, fp and fn of each cell, in proportion, so that their rates are those of CICE-BCubed."""
    return cover.matrix_of_matches(similarity, within_pair=match == "pair")


def cice(match: Match = "global", similarity: Similarity = "jaccard") -> Family:
    """Return the scores of CICE-BCubed in one of its readings."""
    scores = Family(
        "overlap",
        low=0.0,
        high=1.0,
        best="higher",
        source="Rosales-Méndez and Ramírez-Cruz 2013",
        options={"match": match, "similarity": similarity},
        covers_only=True,
    )
    matrix = partial(_matrix, match, similarity)
    which = "of all" if match == "global" else "that both are in"
    how = f"mean likeness ({similarity}) of the common clusters and their best match {which}"
    scores.mean_over_items(
        f"the mean over mates of min(g, c) / g times the {how}",
        name="cice_bcubed_precision",
        summary="Extended BCubed precision that counts how far common predicted clusters match.",
        matrix=matrix,
        example=on_covers("""
        >>> score = cice_bcubed_precision(truth, prediction)
        >>> round(score, 6)  # (2/3 + 1 + 2/3) / 3, times the Jaccard index 2/3 of c and a, or b
        0.518519
        """),
    )(precision)
    scores.mean_over_items(
        f"the mean over mates of min(g, c) / c times the {how}",
        name="cice_bcubed_recall",
        summary="Extended BCubed recall that counts how far common true clusters match.",
        matrix=matrix,
        example=on_covers("""
        >>> score = cice_bcubed_recall(truth, prediction)
        >>> round(score, 6)  # (1 + 5/6 + 1) / 3, times the Jaccard index 2/3 of a, or b, and c
        0.62963
        """),
    )(recall)
    scores.of_means(
        "2 P R / (P + R), with P = cice_bcubed_precision and R = cice_bcubed_recall",
        scores["cice_bcubed_precision"],
        scores["cice_bcubed_recall"],
        slopes=slopes_of_f1,
        name="cice_bcubed_f1",
        summary="F1 of CICE-BCubed precision and recall.",
        example=on_covers("""
        >>> score = cice_bcubed_f1(truth, prediction)
        >>> round(score, 6)  # 2 * 14/27 * 17/27 / (14/27 + 17/27)
        0.568698
        """),
        three=on_covers("""
        >>> scores = cice_bcubed_precision_recall_fscore(truth, prediction)
        >>> [round(score, 6) for score in scores]
        [0.518519, 0.62963, 0.568698]
        """),
    )(f1)
    scores.mean_over_items(
        "2 P R / (P + R), with the item's own P and R",
        name="cice_bcubed_mean_f1",
        summary="Mean over items of the F1 of an item's own CICE-BCubed precision and recall.",
        matrix=matrix,
        example=on_covers("""
        >>> score = cice_bcubed_mean_f1(truth, prediction)
        >>> round(score, 6)  # 2/3 * (4/5 + 10/11 + 4/5) / 3
        0.557576
        """),
    )(mean_f1)
    return scores
