"""The naive twin of a sweep: at each threshold, clusters by search over the links, and every score from scratch.

It restates METRICS.md by way of `naive` and `naive_families`, and shares no code with the package.
"""

import math
from collections.abc import Hashable, Iterable, Sequence

import naive_families
from naive import Naive

Item = Hashable
Link = tuple[Item, Item, float]

POINTWISE = (
    "precision", "recall", "f1", "over_merge_rate", "under_merge_rate", "elm_precision", "elm_recall", "elm_f1",
)  # fmt: skip
OF_ALL = (
    "pair_precision", "pair_recall", "pair_f1", "rand", "adjusted_rand", "homogeneity", "completeness", "v_measure",
    "variation_of_information",
)  # fmt: skip


def thresholds(links: Iterable[Link], ascending: bool = False) -> list[float]:
    """Return the scores of links, strongest first."""
    return sorted({score for _, _, score in links}, reverse=not ascending)


def clusters_at(
    links: Sequence[Link], threshold: float | None, items: Iterable[Item] = (), ascending: bool = False
) -> dict[Item, int]:
    """Return the number of the cluster of each item, in the order of first items; None uses no link."""
    mates: dict[Item, set[Item]] = {item: set() for item in items}
    for left, right, score in links:
        mates.setdefault(left, set())
        mates.setdefault(right, set())
        if threshold is not None and (score <= threshold if ascending else score >= threshold):
            mates[left].add(right)
            mates[right].add(left)
    found: dict[Item, int] = {}
    n = 0
    for start in mates:
        waiting = [start]
        while waiting:
            item = waiting.pop()
            if item not in found:
                found[item] = n
                waiting += mates[item]
        n = max(found.values()) + 1
    return {item: found[item] for item in mates}


def figures(twin: Naive) -> dict[str, int]:
    """Return what is said of the clusters."""
    of = twin.summary["pred"]
    return {"clusters": of["n_clusters"], "largest": of["largest"], "singletons": of["n_singletons"]}


def score(name: str, twin: Naive):
    """Return a score of one threshold."""
    if name in POINTWISE:
        return twin.mean(name)
    if twin.outside:  # of the scores of all, this alone is a mean over items
        assert name == "variation_of_information"
        return twin.lift(lambda tp, fp, fn, tn: math.log2((tp + fp) / tp) + math.log2((tp + fn) / tp))
    return naive_families.score(name, twin.true, twin.pred, twin.weight)
