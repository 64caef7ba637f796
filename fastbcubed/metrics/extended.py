"""Scores of overlapping clusterings, item by item: Extended BCubed, overlapping ELM, CICE-BCubed.

The first two are the precision and recall that a cover gives its cells; they have names of their own
beside. CICE-BCubed lets each hit count as much as the clusters that a pair shares match each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.metrics import elm, pointwise
from fastbcubed.metrics.metric import Floats, Metric
from fastbcubed.metrics.pointwise import f1_of

if TYPE_CHECKING:
    from fastbcubed.overlap.covers import Cover
    from fastbcubed.overlap.sharing import Sides

Match = Literal["global", "pair"]
Similarity = Literal["jaccard", "rand", "f1"]
MATCHES: tuple[Match, ...] = ("global", "pair")
SIMILARITIES: tuple[Similarity, ...] = ("jaccard", "rand", "f1")


def likeness(sides: Sides, similarity: Similarity) -> tuple[Floats, Floats, Floats]:
    """Return how like each other overlapping clusters are, and the best match of each cluster.

    With w the weight that clusters of weights a and b share, of N in all: Jaccard is w / (a + b - w), F1
    is 2 w / (a + b), Rand is 1 - (a + b - 2 w) / N. Rand alone is not 0 for clusters that do not overlap;
    the best of these is the smallest.
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
        like = 1.0 - ((a - w) + (b - w)) / total
        best = [1.0 - (sizes_true + sizes_pred.min()) / total, 1.0 - (sizes_pred + sizes_true.min()) / total]
    kernels.matches.find_best(table.bounds, table.pred, like, *best)
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
        cover.matrices[key] = hits[:, 0].copy(), fp, fn * (hits[:, 0] / hits[:, 1])
    return cover.matrices[key]


def cice(match: Match = "global", similarity: Similarity = "jaccard") -> Iterator[Metric]:
    """Yield the scores of CICE-BCubed in one of its readings."""
    which = "of all" if match == "global" else "that both are in"
    how = f"mean likeness ({similarity}) of the common clusters and their best match {which}"
    options = {"match": match, "similarity": similarity}
    matrix = partial(cice_matrix, match, similarity)
    known = {metric.name: metric for metric in pointwise.scores()}
    for name, side, share in (
        ("precision", "predicted", "min(g, c) / g"),
        ("recall", "true", "min(g, c) / c"),
    ):
        yield replace(
            known[name],
            name=f"cice_bcubed_{name}",
            family="overlap",
            summary=f"Extended BCubed {name} that counts how far common {side} clusters match.",
            definition=f"mean over items of the mean over mates of {share} times the {how}",
            source=SOURCE,
            options=options,
            matrix=matrix,
            on_covers=False,
            covers_only=True,
        )
    p, r = "cice_bcubed_precision", "cice_bcubed_recall"
    yield replace(
        known["f1"],
        name="cice_bcubed_f1",
        family="overlap",
        summary="F1 of CICE-BCubed precision and recall.",
        definition=f"2 P R / (P + R), with P = {p} and R = {r}",
        source=SOURCE,
        options=options,
        combine=partial(f1_of, p, r),
        needs=(p, r),
        on_covers=False,
        covers_only=True,
    )
    yield replace(
        known["mean_f1"],
        name="cice_bcubed_mean_f1",
        family="overlap",
        summary="Mean over items of the F1 of an item's own CICE-BCubed precision and recall.",
        definition="mean over items of 2 P R / (P + R), with the item's own P and R",
        source=SOURCE,
        options=options,
        matrix=matrix,
        on_covers=False,
        covers_only=True,
    )


SOURCE = "Rosales-Méndez and Ramírez-Cruz 2013"


def scores() -> Iterator[Metric]:
    """Yield the scores of items of the family "overlap"; names for those that are there already first."""
    for metric in pointwise.scores():
        if metric.name in ("precision", "recall", "f1", "mean_f1"):
            yield replace(
                metric,
                name=f"extended_bcubed_{metric.name}",
                family="overlap",
                source="Amigó et al. 2009",
                alias_of=metric.name,
            )
    for metric in elm.scores():
        yield replace(
            metric,
            name=f"extended_{metric.name}",
            family="overlap",
            source="fastbcubed",
            alias_of=metric.name,
        )
    yield from cice()
