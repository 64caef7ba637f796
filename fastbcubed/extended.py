"""Scores of overlapping clusterings in one call: Extended BCubed and CICE-BCubed."""

from __future__ import annotations

from typing import Any

from fastbcubed.errors import OptionError, arg
from fastbcubed.evaluate import evaluate
from fastbcubed.metrics.overlap_scores import MATCHES, SIMILARITIES, Match, Similarity, cice
from fastbcubed.results.evaluation import Evaluation

__all__ = ["cice_bcubed", "extended_bcubed"]


def extended_bcubed(truth: Any, prediction: Any, *, weight: Any = None, **options: Any) -> Evaluation:
    """Score an overlapping clustering by Extended BCubed: overall, by cluster, by slice, by item.

    Parameters
    ----------
    truth, prediction : Clustering, table, path, or dict
        A row per membership, item and cluster; or a dict from item to a set of clusters.
    weight : str, table or dict, optional
        Weight of each item.
    **options
        Other arguments of `evaluate`.

    Returns
    -------
    Evaluation
        `evaluate` with ``overlapping=True`` and the scores precision, recall, f1 and mean_f1.

    Raises
    ------
    TooMuchWorkError
        If the clusters overlap so much that more than `max_pairs` pairs of cells have to be compared.
    FastBCubedError
        As `evaluate` does.

    Notes
    -----
    With g the predicted clusters that two items share and c the true ones, the precision of an item is the mean of
    min(g, c) / g over the items with g > 0, including itself; recall is that of min(g, c) / c over those with c > 0. A
    mate counts once, however many clusters it shares, and by its weight. A repeated cluster counts twice.

    Items in the same clusters on both sides form one cell. Pairs with g and c of 0 or 1 are counted through the
    intersections of true and predicted clusters, at the cost of the sum over cells of their true times their predicted
    clusters. Other pairs are found by the pairs of clusters that cells have in common; those of a cell in more than 8
    clusters of a side, among the cells of each of these but the largest. So a cluster of a million items costs a
    million steps, however many of them are in a second cluster.

    The disk engine counts, for every subset of an item's true and predicted clusters, the items that are in all of
    these; by inclusion and exclusion that gives the number of mates by number of shared clusters. Cost is the sum over
    items of 2 to the number of their clusters. Items in more than 8 clusters on both sides together are instead
    compared with all items that share one.

    References
    ----------
    E. Amigó et al., A comparison of extrinsic clustering evaluation metrics based on formal constraints,
    2009.

    Examples
    --------
    Two clusters that share the items 1 and 2 are merged:

    >>> import fastbcubed as fb
    >>> truth = fb.Clustering.from_clusters([[1, 2, 3], [1, 2, 4, 5], [6, 7]])
    >>> merged = fb.Clustering.from_clusters([[1, 2, 3, 4, 5], [6, 7]])
    >>> ev = fb.extended_bcubed(truth, merged)
    >>> round(ev.precision, 6), round(ev.recall, 6)  # 31/35, 33/35
    (0.885714, 0.942857)
    """
    options.setdefault("metrics", ["precision", "recall", "f1", "mean_f1"])
    return evaluate(truth, prediction, weight=weight, overlapping=True, **options)


def cice_bcubed(
    truth: Any,
    prediction: Any,
    *,
    weight: Any = None,
    match: Match = "global",
    similarity: Similarity = "jaccard",
    **options: Any,
) -> Evaluation:
    """Score an overlapping clustering by CICE-BCubed: overall, by cluster, by slice, by item.

    Parameters
    ----------
    truth, prediction : Clustering, table, path, or dict
        A row per membership, item and cluster; or a dict from item to a set of clusters.
    weight : str, table or dict, optional
        Weight of each item.
    match : {"global", "pair"}
        Whether a cluster is matched with the most similar of all clusters of the other side, as in the formula of the
        paper, or with the most similar of those that contain both items, as in its text. Only "pair" satisfies the
        homogeneity constraint; use it to rank systems.
    similarity : {"jaccard", "rand", "f1"}
        Similarity of two clusters.
    **options
        Other arguments of `evaluate`.

    Returns
    -------
    Evaluation
        With the scores cice_bcubed_precision, …_recall, …_f1 and …_mean_f1; `definition` states `match`
        and `similarity`.

    Raises
    ------
    FastBCubedError
        As `extended_bcubed` does.

    Notes
    -----
    Each mate counts as in `extended_bcubed`, times the mean, over the clusters that it shares with the item, of their
    similarity to the match. The cost is about twice that of `extended_bcubed`.

    References
    ----------
    H. Rosales-Méndez and Y. Ramírez-Cruz, CICE-BCubed: A New Evaluation Measure for Overlapping Clustering
    Algorithms, 2013.

    Examples
    --------
    The paper's example, in which Extended BCubed finds no fault:

    >>> import fastbcubed as fb
    >>> truth = fb.Clustering.from_clusters([[1, 2, 4], [1, 3], [3, 4], [3, 5, 6], [2, 5], [2, 6]])
    >>> other = fb.Clustering.from_clusters([[1, 3, 4], [1, 2], [2, 4], [2, 5, 6], [3, 5], [3, 6]])
    >>> fb.extended_bcubed(truth, other).f1
    1.0
    >>> round(fb.cice_bcubed(truth, other).cice_bcubed_f1, 6)  # 2/3
    0.666667
    >>> round(fb.cice_bcubed(truth, other, match="pair").cice_bcubed_f1, 6)  # 23/36
    0.638889
    """
    for name, value, known in (("match", match, MATCHES), ("similarity", similarity, SIMILARITIES)):
        if value not in known:
            raise OptionError(f"{arg(name)} is one of {', '.join(map(repr, known))}, not {value!r}")
    options.setdefault("metrics", list(cice(match, similarity)))
    return evaluate(truth, prediction, weight=weight, overlapping=True, **options)
