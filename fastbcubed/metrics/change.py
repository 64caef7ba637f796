"""Scores of a change from baseline to experiment: its impact and, given a truth, its quality."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from fastbcubed.metrics.bcubed import pointwise
from fastbcubed.metrics.metric import Family, Metric
from fastbcubed.types import Floats

if TYPE_CHECKING:
    from fastbcubed.cells.three_way import ItemSets, Joint

ABOUT: dict[str, Any] = {
    "low": 0.0,
    "high": 1.0,
    "best": "neither",
    "source": "van Staden and Grubb 2024",
    "note": "For each item, stable, split and merged are the total weights of the items that share its cluster in both"
    " the baseline and the experiment (including the item itself), only in the baseline, and only in the experiment.",
    "caution": "The score shows how much changed, not whether the change is right: judging a change requires a truth.",
}
diff = Family("diff", **ABOUT)

diff.alias(
    "split_rate",
    pointwise["under_merge_rate"],
    **ABOUT,
    summary="Mean over items of the share of an item's baseline cluster that is no longer with the item.",
    definition="mean over items of split / (stable + split)",
    use="Use this score to measure what share of an item's baseline cluster is no longer with the item in a new run;"
    " merge_rate is the counterpart for merges.",
    example="""
    >>> split_rate(list("aaaabbbb"), [1, 1, 1, 1, 2, 2, 3, 3])  # (4 * 0 + 4 * 2/4) / 8
    0.25
    """,
)
diff.alias(
    "merge_rate",
    pointwise["over_merge_rate"],
    **ABOUT,
    summary="Mean over items of the share of an item's experiment cluster that was not with the item before.",
    definition="mean over items of merged / (stable + merged)",
    use="Use this score to measure what share of an item's cluster in a new run was not with the item before;"
    " split_rate is the counterpart for splits.",
    example="""
    >>> merge_rate(list("aabbcccc"), [1, 1, 1, 1, 2, 2, 2, 2])  # (4 * 2/4 + 4 * 0) / 8
    0.25
    """,
)


@diff.mean_over_items(
    "split / (stable + split + merged)",
    use="Use this score to measure how much of jaccard_distance is due to splits; merge_jaccard_distance measures how"
    " much is due to merges.",
    example="""
    >>> split_jaccard_distance(list("aabb"), [1, 2, 3, 3])  # (1/2 + 1/2 + 0 + 0) / 4
    0.25
    """,
)
def split_jaccard_distance(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean share of the union of an item's baseline and experiment clusters that was split off (SplitDistance)."""
    return fn / (tp + (fp + fn))


@diff.mean_over_items(
    "merged / (stable + split + merged)",
    use="Use this score to measure how much of jaccard_distance is due to merges; split_jaccard_distance measures how"
    " much is due to splits.",
    example="""
    >>> merge_jaccard_distance(list("abcc"), [1, 1, 2, 2])  # (1/2 + 1/2 + 0 + 0) / 4
    0.25
    """,
)
def merge_jaccard_distance(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Mean share of the union of an item's baseline and experiment clusters that was merged in (MergeDistance)."""
    return fp / (tp + (fp + fn))


@diff.mean_over_items(
    "1 where split + merged > 0, else 0",
    use="Use this score to tell reviewers or downstream users what share of items are in a changed cluster; split_rate"
    " and merge_rate measure how large the change is.",
    example="""
    >>> affected_rate(list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 5])  # 2 of 8 items
    0.25
    """,
)
def affected_rate(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    """Share of items whose cluster differs between baseline and experiment."""
    return np.not_equal(fp + fn, 0).astype(np.float64)


NOTE = (
    "For each item, B, E and I are its clusters in the baseline, the experiment and the truth, including the item. S ="
    " B - E are the items split off, M = E - B are the items merged in, and w of a set is the weight of its items."
)
GOOD: dict[str, Any] = {"best": "higher"}
BAD: dict[str, Any] = {"best": "lower"}
#: METRICS: baseline abc|de|f, experiment ab|cde|f, truth ab|cd|ef. Splitting c off ab is right; to c and d, which
#: belong together, e was merged as well.
EXAMPLE = """
    >>> score = {name}(list("aaabbc"), list("ppqqqr"), list("uuvvww"))
    >>> round(score, 12)  # {working}
    {value}
    """

ONE_SIDE = (
    "The score covers either the right or the wrong changes, not both: report the corresponding good and bad scores"
    " together."
)
quality = Family("diff", **{**ABOUT, "note": NOTE, "caution": ONE_SIDE})


def _worked(name: str, working: str, value: str) -> str:
    return EXAMPLE.format(name=name, working=working, value=value)


# Rates and distances, divided into their good and their bad part
@quality.mean_over_three(
    "w(S - I) / w(B)",
    use="Use this score to measure what share of an item's baseline cluster was rightly split off, on average;"
    " split_rate is the sum of good_split_rate and bad_split_rate.",
    example=_worked("good_split_rate", "(1/3 + 1/3 + 2/3) / 6 = 2/9", "0.222222222222"),
    **GOOD,
)
def good_split_rate(of: ItemSets) -> Floats:
    """Mean share of an item's baseline cluster that was rightly split off from the item."""
    return of.good_split / (of.stable + of.split)


@quality.mean_over_three(
    "w(S and I) / w(B)",
    use="Use this score to measure what share of an item's baseline cluster was wrongly split off, on average;"
    " split_rate is the sum of good_split_rate and bad_split_rate.",
    example=_worked("bad_split_rate", "no split is wrong", "0.0"),
    **BAD,
)
def bad_split_rate(of: ItemSets) -> Floats:
    """Mean share of an item's baseline cluster that was wrongly split off from the item."""
    return of.bad_split / (of.stable + of.split)


@quality.mean_over_three(
    "w(M and I) / w(E)",
    use="Use this score to measure what share of an item's experiment cluster was rightly merged in, on average;"
    " merge_rate is the sum of good_merge_rate and bad_merge_rate.",
    example=_worked("good_merge_rate", "(1/3 + 1/3) / 6 = 1/9, of c and d", "0.111111111111"),
    **GOOD,
)
def good_merge_rate(of: ItemSets) -> Floats:
    """Mean share of an item's experiment cluster that was rightly merged with the item."""
    return of.good_merge / (of.stable + of.merged)


@quality.mean_over_three(
    "w(M - I) / w(E)",
    use="Use this score to measure what share of an item's experiment cluster was wrongly merged in, on average;"
    " merge_rate is the sum of good_merge_rate and bad_merge_rate.",
    example=_worked("bad_merge_rate", "(1/3 + 1/3) / 6 = 1/9, of c and e", "0.111111111111"),
    **BAD,
)
def bad_merge_rate(of: ItemSets) -> Floats:
    """Mean share of an item's experiment cluster that was wrongly merged with the item."""
    return of.bad_merge / (of.stable + of.merged)


@quality.mean_over_three(
    "w(S - I) / w(B or E)",
    use="Use this score to judge the splits of a change on the same scale as its merges; split_jaccard_distance is the"
    " sum of good_split_distance and bad_split_distance.",
    example=_worked("good_split_distance", "(1/3 + 1/3 + 2/5) / 6 = 8/45", "0.177777777778"),
    **GOOD,
)
def good_split_distance(of: ItemSets) -> Floats:
    """Mean share of the union of an item's baseline and experiment clusters that was rightly split from the item."""
    return of.good_split / _both(of)


@quality.mean_over_three(
    "w(S and I) / w(B or E)",
    use="Use this score to judge the splits of a change on the same scale as its merges; split_jaccard_distance is the"
    " sum of good_split_distance and bad_split_distance.",
    example=_worked("bad_split_distance", "no split is wrong", "0.0"),
    **BAD,
)
def bad_split_distance(of: ItemSets) -> Floats:
    """Mean share of the union of an item's baseline and experiment clusters that was wrongly split from the item."""
    return of.bad_split / _both(of)


@quality.mean_over_three(
    "w(M and I) / w(B or E)",
    use="Use this score to judge the merges of a change on the same scale as its splits; merge_jaccard_distance is the"
    " sum of good_merge_distance and bad_merge_distance.",
    example=_worked("good_merge_distance", "(1/5 + 1/3) / 6 = 4/45", "0.088888888889"),
    **GOOD,
)
def good_merge_distance(of: ItemSets) -> Floats:
    """Mean share of the union of an item's baseline and experiment clusters that was rightly merged with the item."""
    return of.good_merge / _both(of)


@quality.mean_over_three(
    "w(M - I) / w(B or E)",
    use="Use this score to judge the merges of a change on the same scale as its splits; merge_jaccard_distance is the"
    " sum of good_merge_distance and bad_merge_distance.",
    example=_worked("bad_merge_distance", "(1/5 + 1/3) / 6 = 4/45", "0.088888888889"),
    **BAD,
)
def bad_merge_distance(of: ItemSets) -> Floats:
    """Mean share of the union of an item's baseline and experiment clusters that was wrongly merged with the item."""
    return of.bad_merge / _both(of)


@quality.mean_over_three(
    "(w(S - I) + w(M and I)) / w(B or E)",
    use="Use this score to measure how much of the whole change is right: good_distance and bad_distance add up to the"
    " jaccard_distance of the two runs.",
    example=_worked("good_distance", "8/45 + 4/45 = 4/15", "0.266666666667"),
    **GOOD,
)
def good_distance(of: ItemSets) -> Floats:
    """Mean share of the union of an item's baseline and experiment clusters in which only the experiment is right."""
    return (of.good_split + of.good_merge) / _both(of)


@quality.mean_over_three(
    "(w(S and I) + w(M - I)) / w(B or E)",
    use="Use this score to measure how much of the whole change is wrong: good_distance and bad_distance add up to the"
    " jaccard_distance of the two runs.",
    example=_worked("bad_distance", "0 + 4/45", "0.088888888889"),
    **BAD,
)
def bad_distance(of: ItemSets) -> Floats:
    """Mean share of the union of an item's baseline and experiment clusters in which only the baseline is right."""
    return (of.bad_split + of.bad_merge) / _both(of)


@quality.mean_over_three(
    "w(B and E and I) / w(B or E)",
    source="van Staden 2024 (index)",
    use="Use this score to measure how much of the overlap of two runs is right: good_index and bad_index add up to"
    " the jaccard_index of the two runs.",
    caution="The score describes what did not change, so it does not measure the quality of the change.",
    example=_worked("good_index", "(2/3 + 2/3 + 1/5 + 1/3 + 1/3 + 1) / 6 = 8/15", "0.533333333333"),
    **GOOD,
)
def good_index(of: ItemSets) -> Floats:
    """Mean share of the union of an item's baseline and experiment clusters that both clusters rightly contain."""
    return of.good_stable / _both(of)


@quality.mean_over_three(
    "w((B and E) - I) / w(B or E)",
    source="van Staden 2024 (index)",
    use="Use this score to measure how much of the overlap of two runs is wrong: good_index and bad_index add up to"
    " the jaccard_index of the two runs.",
    caution="The score describes what did not change, so it does not measure the quality of the change.",
    example=_worked("bad_index", "(1/3 + 1/3) / 6 = 1/9, of d and e", "0.111111111111"),
    **BAD,
)
def bad_index(of: ItemSets) -> Floats:
    """Mean share of the union of an item's baseline and experiment clusters that both clusters wrongly contain."""
    return of.bad_stable / _both(of)


# Differences between experiment and baseline, each judged by the truth
@quality.mean_over_three(
    "w(E and I) / w(E) - w(B and I) / w(B)",
    low=-1.0,
    use="Use this score to measure how much precision changes from one run to the next, by item and by slice.",
    caution="Precision alone favours splitting: report delta_precision together with delta_recall.",
    example=_worked("delta_precision", "(1/3 + 1/3 + 1/3 + 1/6 - 1/6) / 6 = 1/6", "0.166666666667"),
    **GOOD,
)
def delta_precision(of: ItemSets) -> Floats:
    """Precision of the experiment minus precision of the baseline."""
    before, after = of.good_stable + of.bad_split, of.good_stable + of.good_merge
    wholes = of.stable + of.split, of.stable + of.merged
    return _gain((before, after), wholes, of.good_merge - of.bad_split, of.merged - of.split)


@quality.mean_over_three(
    "(w(E and I) - w(B and I)) / w(I)",
    low=-1.0,
    use="Use this score to measure how much recall changes from one run to the next, by item and by slice.",
    caution="Recall alone favours merging: report delta_recall together with delta_precision.",
    example=_worked("delta_recall", "(1/2 + 1/2) / 6 = 1/6, of c and d", "0.166666666667"),
    **GOOD,
)
def delta_recall(of: ItemSets) -> Floats:
    """Recall of the experiment minus recall of the baseline."""
    return (of.good_merge - of.bad_split) / (of.good_stable + of.bad_split + of.baseline_lacks)


@quality.mean_over_three(
    "d(E, I) - d(B, I), where d(X, Y) = 1 - w(X and Y) / w(X or Y)",
    low=-1.0,
    use="Use this score to measure how much jaccard_distance to the truth changes: a negative value means that the new"
    " run is closer to the truth.",
    caution="The score gives splits and merges the same weight, and is small if few items changed, however good the"
    " change is.",
    example=_worked("delta_jaccard_distance", "-2/9", "-0.222222222222"),
    **BAD,
)
def delta_jaccard_distance(of: ItemSets) -> Floats:
    """Jaccard distance to the truth: experiment minus baseline; a negative value is an improvement."""
    before, after = of.good_stable + of.bad_split, of.good_stable + of.good_merge
    of_baseline = before + (of.good_split + of.bad_stable + of.baseline_lacks)
    of_experiment = after + (of.bad_merge + of.bad_stable + of.experiment_lacks)
    larger = of.bad_merge - of.good_split
    return 0.0 - _gain((before, after), (of_baseline, of_experiment), of.good_merge - of.bad_split, larger)


def slopes_of_iq(delta: Floats, good: Floats, bad: Floats, beta: float) -> tuple[Floats, ...]:
    """Return the derivatives of iq by each of the means that it is computed from."""
    size = np.where(np.greater(good + bad, 0), good + bad, np.nan)
    by_size = delta / size / size
    return -1.0 / size, by_size, by_size


@quality.of_means(
    "- d / (g + b), with d = delta_jaccard_distance, g = good_distance and b = bad_distance",
    quality["delta_jaccard_distance"],
    quality["good_distance"],
    quality["bad_distance"],
    low=-1.0,
    slopes=slopes_of_iq,
    note=f"{NOTE} The score is not defined where nothing changed.",
    source="van Staden 2024 (quality)",
    use="Use this score to compare changes of different sizes: it is 1 for a change straight to the truth and 0 for a"
    " change that comes no closer; delta_jaccard_distance is not relative to the size of a change.",
    caution="The score is divided by the size of the change, so it is uncertain if little changed.",
    example=_worked("iq", "2/9 / (16/45) = 5/8", "0.625"),
    **GOOD,
)
def iq(delta: Floats | float, good: Floats | float, bad: Floats | float, beta: float) -> Floats | float:
    """Improvement in Jaccard distance to the truth, divided by the size of the change; 1 is straight to the truth."""
    size = np.asarray(good + bad, np.float64)
    found = np.full(size.shape, np.nan)
    np.divide(np.subtract(0.0, delta), size, out=found, where=size > 0)  # negation would give -0.0 for 0.0
    return np.clip(found, -1.0, 1.0)[()]


def _gain(
    parts: tuple[Floats, Floats], wholes: tuple[Floats, Floats], gained: Floats, larger: Floats
) -> Floats:
    """Return a share after a change minus the share before, where part and whole grow by `gained` and `larger`.

    The unchanged weight is not subtracted from itself, so a small change of a large cluster keeps its digits.
    """
    before, after = (part / whole for part, whole in zip(parts, wholes, strict=True))
    other = np.where(wholes[0] >= wholes[1], after, before)
    return (gained - other * larger) / np.maximum(*wholes)


def _both(of: ItemSets) -> Floats:
    """Return the weight of an item's mates in the baseline, the experiment or both."""
    return of.stable + of.split + of.merged


def judged(joint: Joint, metrics: Iterable[Metric]) -> list[Metric]:
    """Return scores of baseline, experiment and truth as scores of the table of joint cells, for use in aggregation."""
    return [_of_table(joint, metric) for metric in metrics]


def _of_table(joint: Joint, metric: Metric) -> Metric:
    if metric.needs:
        return replace(metric, needs=tuple(judged(joint, metric.needs)))
    assert metric.of_sets is not None
    scores = metric.of_sets(joint.sets)
    return replace(metric, of_sets=None, formula=lambda tp, *_: tp, matrix=lambda _: (scores, scores, scores))
