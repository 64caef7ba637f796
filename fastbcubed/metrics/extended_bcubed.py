"""Scores of overlapping clusterings, item by item: Extended BCubed, overlapping ELM, CICE-BCubed.

The first two are the precision and recall that a cover gives its cells; they have names of their own
beside. CICE-BCubed lets each hit count as much as the clusters that a pair shares match each other.
"""

from __future__ import annotations

from functools import partial
from inspect import cleandoc
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.metrics.elm import elm
from fastbcubed.metrics.pointwise import f1, mean_f1, pointwise, precision, recall
from fastbcubed.metrics.score import Family, slopes_of_f1
from fastbcubed.types import Floats

if TYPE_CHECKING:
    from fastbcubed.overlap.cover import Cover
    from fastbcubed.overlap.mates import Sides

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


def likeness(sides: Sides, similarity: Similarity) -> tuple[Floats, Floats, Floats]:
    """Return how like each other overlapping clusters are, and the best match of each cluster.

    With w the weight that clusters of weights a and b share, of N in all: Jaccard is w / (a + b - w), F1
    is 2 w / (a + b), Rand is 1 - (a + b - 2 w) / N. Rand alone is not 0 for clusters that do not overlap;
    the best of these is the smallest. Clusters with the same items are exactly alike.
    """
    table = sides.overlaps
    sizes_true, sizes_pred = (sizes.weight for sizes in sides.sizes)
    w, a, b = table.sizes.weight, sizes_true[table.true], sizes_pred[table.pred]
    best = [np.zeros(sizes_true.size), np.zeros(sizes_pred.size)]
    if similarity == "jaccard":
        like = w / (a + b - w)
    elif similarity == "f1":
        like = 2 * w / (a + b)
    else:
        total = float(sides.n.sum() if sides.weight is None else sides.weight.sum())
        like = np.maximum(1.0 - ((a - w) + (b - w)) / total, w / total)
        best = [1.0 - (sizes_true + sizes_pred.min()) / total, 1.0 - (sizes_pred + sizes_true.min()) / total]
    n, true_n, pred_n = table.sizes.n, sides.sizes[0].n[table.true], sides.sizes[1].n[table.pred]
    like = np.where((n == true_n) & (n == pred_n), 1.0, np.minimum(like, 1.0))
    kernels.mates.find_best(table.bounds, table.pred, like, *best)
    return like, best[0], best[1]


def cice_matrix(
    match: Match, similarity: Similarity, cover: Cover
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return tp, fp and fn of each cell, in proportion, so that their rates are those of CICE-BCubed."""
    key = ("cice", match, similarity)
    if key not in cover.matrices:
        sides = cover.sides
        hits = sides.matches(cover.n_cells, match == "pair", *likeness(sides, similarity))
        hit_pred, miss_pred, hit_true, miss_true = cover.sums(np.ascontiguousarray(cover.tp))
        fp = np.maximum(hit_pred + miss_pred - hits[:, 0], 0.0)
        fn = np.maximum(hit_true + miss_true - hits[:, 1], 0.0)
        fp[(miss_pred == 0) & _are_exact(cover, "pred")] = 0.0  # whatever rounding has left
        fn[(miss_true == 0) & _are_exact(cover, "true")] = 0.0
        cover.matrices[key] = hits[:, 0].copy(), fp, fn * (hits[:, 0] / hits[:, 1])
    return cover.matrices[key]


def _are_exact(cover: Cover, side: str) -> NDArray[np.bool_]:
    """Return the cells whose clusters on this side are all on the other side, too: all likeness there is 1."""
    members = cover.members(side)
    return np.logical_and.reduceat(cover.exact(side)[members.codes], members.offsets[:-1])


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
    matrix = partial(cice_matrix, match, similarity)
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
