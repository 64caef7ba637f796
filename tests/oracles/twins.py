"""The twin of any score of two partitions, and what its values on a few of them say of the score."""

import itertools
import math
import random
from functools import cache

import naive
import naive_diff
import naive_families
import naive_overlap
from test_naive import labels, partitions
from worked import E17

from fastbcubed.metrics.registry import METRICS, resolve

OVERLAP = {"omega": naive_overlap.omega} | {
    f"onmi_{which}": getattr(naive_overlap, f"onmi_{which}") for which in ("lfk", "max", "mean")
}
NAMES = [metric.name for metric in resolve("all")[0]]
SMALL = [labels(*p) for n in (1, 2, 3) for p in partitions(list("abc"[:n]))]
_draw = random.Random(1).randrange
DRAWN = [tuple({item: _draw(3) for item in "abcde"} for _ in "tp") for _ in range(40)]
SAMPLES = [E17, *DRAWN, *((a, b) for a, b in itertools.product(SMALL, repeat=2) if a.keys() == b.keys())]


def score(name, truth, prediction, weights=None):
    """Return a score of two partitions of the same items."""
    if name in naive_families.SCORES:
        return naive_families.score(name, truth, prediction, weights)
    if METRICS[name].family == "diff":
        return naive_diff.change(truth, prediction, weight=weights).mean(name)
    return mean_of(naive.evaluate(truth, prediction, weights), name)


def mean_of(twin, name):
    """Return the twin's score; clusters whose items all weigh nothing are left out of averages."""
    if name in OVERLAP:
        return OVERLAP[name](*([set(c) for c in twin.clusters(side).values()] for side in ("true", "pred")))
    by = naive.BY_CLUSTER.fullmatch(name)
    if by is None:
        return twin.mean(name)
    if by[1] == "bcubed_f1":
        p, r = (mean_of(twin, name.replace("f1", which)) for which in ("precision", "recall"))
        return naive.f_measure(p, r, naive.HALF)
    groups = [g for g in twin.clusters(by[2]).values() if any(twin.weight[e] for e in g)]
    return sum(twin.mean(by[1], group) for group in groups) / len(groups)


@cache
def partners():
    """Return the names of what each score becomes if the sides trade places: none for balanced accuracy, for example.

    Its counterpart averages precision and NPV, and has no name.
    """
    there = {name: [float(score(name, *pair)) for pair in SAMPLES] for name in NAMES}
    back = {name: [float(score(name, *pair[::-1])) for pair in SAMPLES] for name in NAMES}
    return {
        name: [other for other in NAMES if all(map(math.isclose, back[other], there[name]))] for name in NAMES
    }


@cache
def power(name):
    """Return by which power of a factor of all weights a score grows."""
    if METRICS[name].unweighted_only:
        return 0
    one, two = (float(score(name, *E17, dict.fromkeys(E17[0], weight))) for weight in (1, 2))
    return round(math.log2(two / one)) if one else 0


@cache
def perfect(name):
    """Return whether a score of equal clusterings is always its best value; amounts and scores of links are not."""
    best = METRICS[name].high if METRICS[name].best == "higher" else METRICS[name].low
    return METRICS[name].best != "neither" and all(
        score(name, each, each) == best for each in (E17[0], *SMALL)
    )
