"""The impact of a change: what an experiment does to the items of a baseline, one formula each; no truth is needed.

The baseline stands where the truth does in other scores, and the experiment where the prediction does: fn is what was
split off an item, fp what was merged to it, tp what stayed with it. So rates and distances add up without a remainder:
split_jaccard_distance and merge_jaccard_distance are the parts of jaccard_distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastbcubed.metrics.family import Family
from fastbcubed.metrics.metric import Floats
from fastbcubed.metrics.pointwise import pointwise

ABOUT: dict[str, Any] = {
    "low": 0.0,
    "high": 1.0,
    "best": "neither",
    "source": "van Staden and Grubb 2024",
    "note": "For each item, stable, split and merged weigh the items that are with it in baseline and experiment "
    "(itself included), in the baseline alone, and in the experiment alone.",
}
diff = Family("diff", **ABOUT)

diff.alias(
    "split_rate",
    pointwise["under_merge_rate"],
    **ABOUT,
    summary="Mean over items of the share of an item's baseline cluster that is no longer with it.",
    definition="mean over items of split / (stable + split)",
    example="""
    >>> split_rate(list("aaaabbbb"), [1, 1, 1, 1, 2, 2, 3, 3])  # (4 * 0 + 4 * 2/4) / 8
    0.25
    """,
)
diff.alias(
    "merge_rate",
    pointwise["over_merge_rate"],
    **ABOUT,
    summary="Mean over items of the share of an item's experiment cluster that was not with it before.",
    definition="mean over items of merged / (stable + merged)",
    example="""
    >>> merge_rate(list("aabbcccc"), [1, 1, 1, 1, 2, 2, 2, 2])  # (4 * 2/4 + 4 * 0) / 8
    0.25
    """,
)


@diff.mean_over_items(
    "split / (stable + split + merged)",
    example="""
    >>> split_jaccard_distance(list("aabb"), [1, 2, 3, 3])  # (1/2 + 1/2 + 0 + 0) / 4
    0.25
    """,
)
def split_jaccard_distance(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the part of an item's two clusters that was split off it: SplitDistance of ABCDE."""
    return fn / (tp + (fp + fn))


@diff.mean_over_items(
    "merged / (stable + split + merged)",
    example="""
    >>> merge_jaccard_distance(list("abcc"), [1, 1, 2, 2])  # (1/2 + 1/2 + 0 + 0) / 4
    0.25
    """,
)
def merge_jaccard_distance(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean over items of the part of an item's two clusters that was merged to it: MergeDistance of ABCDE."""
    return fp / (tp + (fp + fn))


@diff.mean_over_items(
    "1 where split + merged > 0, else 0",
    example="""
    >>> affected_rate(list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 5])  # 2 of 8 items
    0.25
    """,
)
def affected_rate(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Share of the items whose two clusters differ: they are with other items now."""
    return np.not_equal(fp + fn, 0).astype(np.float64)
