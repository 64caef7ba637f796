"""Scores of overlapping clusterings: Extended BCubed, ELM, CICE-BCubed, the Omega index, mutual information.

Extended BCubed and ELM are the precision and recall of a cover's cells under other names (`overlap/cover.py`, with
the multiplicities of `kernels/extended_bcubed.py`). CICE-BCubed multiplies each hit by how well the clusters that a
pair shares match each other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import cleandoc
from math import inf
from typing import TYPE_CHECKING, Literal

from fastbcubed.metrics.bcubed import f1, mean_f1, pointwise, precision, recall
from fastbcubed.metrics.bcubed_variants import elm
from fastbcubed.metrics.metric import Family, slopes_of_f1
from fastbcubed.types import Floats

if TYPE_CHECKING:
    from fastbcubed.overlap.cover import Cover
    from fastbcubed.overlap.omega_and_nmi import Left

extended = Family("overlap")


def on_covers(example: str) -> str:
    """Return an example in which two true clusters share an item, and one predicted cluster contains both."""
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
    """Return tp, fp and fn of each cell, up to a common factor, such that their rates are those of CICE-BCubed."""
    return cover.matrix_of_matches(similarity, within_pair=match == "pair")


def cice(match: Match = "global", similarity: Similarity = "jaccard") -> Family:
    """Return the scores of CICE-BCubed for one way of matching clusters and one similarity."""
    scores = Family(
        "overlap",
        low=0.0,
        high=1.0,
        best="higher",
        source="Rosales-Méndez and Ramírez-Cruz 2013",
        options={"match": match, "similarity": similarity},
        covers_only=True,
        use="Use this score for overlapping clusters where it matters not only how many clusters two items share, but"
        " also which clusters; f1 considers only the number of shared clusters.",
        caution='The variants match="global" and match="pair" give different scores: say which of the two you report.',
    )
    matrix = partial(_matrix, match, similarity)
    of = "where g and c are the numbers of predicted and true clusters that an item and its mate share, and J is the"
    best = "among all" if match == "global" else "among the shared"
    scores.mean_over_items(
        f"mean over mates of J min(g, c) / g, {of} mean similarity ({similarity}) of the shared predicted clusters to"
        f" their best matches {best} true clusters",
        name="cice_bcubed_precision",
        summary="Extended BCubed precision, weighted by how well shared predicted clusters match true clusters.",
        matrix=matrix,
        example=on_covers("""
        >>> score = cice_bcubed_precision(truth, prediction)
        >>> round(score, 6)  # (2/3 + 1 + 2/3) / 3, times the Jaccard index 2/3 of c and a, or b
        0.518519
        """),
    )(precision)
    scores.mean_over_items(
        f"mean over mates of J min(g, c) / c, {of} mean similarity ({similarity}) of the shared true clusters to their"
        f" best matches {best} predicted clusters",
        name="cice_bcubed_recall",
        summary="Extended BCubed recall, weighted by how well shared true clusters match predicted clusters.",
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
        "2 P R / (P + R), where P and R are the item's own precision and recall",
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


overlap = Family(
    "overlap", low=0.0, high=1.0, best="higher", unweighted_only=True, labelled_only=True, on_covers=True
)
TOLD = (
    "where H(X) is the entropy of a cluster X, and H(X|Y) is the least entropy of X given a cluster Y of the other side"
    " that shares an item with X"
)
MCDAID: dict[str, str] = {
    "source": "McDaid et al. 2011",
    "use": "Use this score to compare with papers on overlapping communities; omega, unlike this score, is adjusted for"
    " chance.",
    "caution": "The score considers only the closest counterpart of each cluster.",
}
of_entropies = partial(overlap.of_sums, of="entropies of clusters")


@overlap.of_sums(
    "(O - E) / (1 - E), where O is the proportion of pairs that have as many true as predicted clusters in common, and"
    " E is the sum over k of the proportion of pairs with k true clusters in common times the proportion with k"
    " predicted clusters in common",
    of="shared clusters",
    low=-inf,
    source="Collins and Dent 1988",
    use="Use this score for overlapping clusters if a score of 0 should mean agreement by chance; without overlap,"
    " omega equals adjusted_rand.",
    caution="The number of pairs grows with the square of cluster size, so a few large clusters can dominate the"
    " score.",
    worked="(3/6 - (4 * 3 + 2 * 3) / 36) / (1 - (4 * 3 + 2 * 3) / 36)",
    example="""
    >>> omega(list("aabb"), [1, 1, 1, 2])  # 3 of 6 pairs agree; expected (2 * 3 + 4 * 3) / 6**2
    0.0
    """,
)
def omega(all_pairs: int, same: int, expected: int) -> float:
    """Agreement of the two sides, beyond chance, on the number of clusters that each pair of items shares."""
    if expected == all_pairs**2:
        return float(same == all_pairs)
    return (same * all_pairs - expected) / (all_pairs**2 - expected)


@of_entropies(
    "1 - ((mean over true clusters of H(X|Y) / H(X)) + mean over predicted clusters of H(X|Y) / H(X)) / 2,"
    f" {TOLD}; 0/0 counts as 1",
    source="Lancichinetti et al. 2009",
    use="Use this score to compare with papers on overlapping communities that report the original overlapping NMI;"
    " otherwise use onmi_max.",
    caution="Each cluster counts once, and the score can be high for unrelated clusterings, which onmi_max was designed"
    " to correct.",
    worked="1 - (1.3774 / 2 + 1.2326 / 2) / 2",
    example="""
    >>> score = onmi_lfk(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # 1 - ((1.5 - 0.8113) / 1 + (1.5 - 1) / 0.8113) / 2
    0.3475
    """,
)
def onmi_lfk(true: Left, pred: Left) -> float:
    """Overlapping normalized mutual information: mean share of a cluster's entropy that its best counterpart explains.

    A cluster of all items has no entropy and counts as not explained at all. Two identical clusterings that consist of
    one cluster of all items therefore score 0.
    """
    return 1.0 - (true.shares / true.clusters + pred.shares / pred.clusters) / 2


@of_entropies(
    "(sum over clusters of both sides of H(X) - H(X|Y)) / (2 max(sum over true clusters of H(X), sum over predicted"
    f" clusters of H(X))), {TOLD}; 0/0 counts as 1 for identical clusterings, else as 0",
    **MCDAID,
    worked="((2 - 1.3774) + (1.6226 - 1)) / 2 / 2",
    example="""
    >>> score = onmi_max(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # (1 + 0.8113 - 1.5) / 1
    0.3113
    """,
)
def onmi_max(true: Left, pred: Left) -> float:
    """Overlapping mutual information, divided by the larger of the two sides' entropies."""
    return _normalized(true, pred, max)


@of_entropies(
    "(sum over clusters of both sides of H(X) - H(X|Y)) / sum over clusters of both sides of H(X),"
    f" {TOLD}; 0/0 counts as 1 for identical clusterings, else as 0",
    **MCDAID,
    worked="((2 - 1.3774) + (1.6226 - 1)) / 2 / ((2 + 1.6226) / 2)",
    example="""
    >>> score = onmi_mean(list("aabb"), [1, 1, 1, 2])  # H(X) = 1, H(Y) = 0.8113, H(X, Y) = 1.5
    >>> round(score, 4)  # (1 + 0.8113 - 1.5) / ((1 + 0.8113) / 2)
    0.3437
    """,
)
def onmi_mean(true: Left, pred: Left) -> float:
    """Overlapping mutual information, divided by the mean of the two sides' entropies."""
    return _normalized(true, pred, lambda a, b: (a + b) / 2)


def _normalized(true: Left, pred: Left, norm: Callable[[float, float], float]) -> float:
    whole = norm(true.whole, pred.whole)
    if whole == 0:
        return float(true.clusters == pred.clusters)  # every cluster has all items
    return ((true.whole - true.least) + (pred.whole - pred.least)) / 2 / whole
