"""The naive twin of judged pairs: every ordered pair of items with its weight, in exact fractions.

It restates METRICS.md sections 11.2 (what a score is, from sets) and 11.3 (the same as a sum over pairs), and shares no
code with the package. The baseline is the truth of the twin, the experiment its prediction.
"""

from collections.abc import Hashable, Mapping
from fractions import Fraction

from naive import Naive

Item = Hashable
SPLITS = ("good_split_rate", "bad_split_rate", "good_split_distance", "bad_split_distance")
MERGES = ("good_merge_rate", "bad_merge_rate", "good_merge_distance", "bad_merge_distance")
SCORES = (*SPLITS, *MERGES, "good_distance", "bad_distance", "delta_precision")


def exact(twin: Naive, ideal: Mapping[Item, Hashable], score: str) -> Fraction:
    """Return the score of 11.2, the weighted mean over items of what it is for each, where the truth is known."""
    whole = sum(twin.weight[i] for i in twin.items)
    return sum(twin.weight[i] * of_item(twin, ideal, score, i) for i in twin.items) / whole


def of_item(twin: Naive, ideal: Mapping[Item, Hashable], score: str, i: Item) -> Fraction:
    base, exp = twin.true_mates(i), twin.pred_mates(i)
    if score == "delta_precision":
        own = {j for j in base | exp if ideal[j] == ideal[i]}
        return twin.size(exp & own) / twin.size(exp) - twin.size(base & own) / twin.size(base)
    kind, what = score.split("_", 1)
    if what == "distance":
        return sum(of_item(twin, ideal, f"{kind}_{part}_distance", i) for part in ("split", "merge"))
    moved = base - exp if what.startswith("split") else exp - base
    wanted_same = (kind == "good") == what.startswith("merge")
    counted = {j for j in moved if (ideal[j] == ideal[i]) == wanted_same}
    beside = base | exp if what.endswith("distance") else base if what.startswith("split") else exp
    return twin.size(counted) / twin.size(beside)


def weights_of_pairs(twin: Naive, score: str) -> dict[tuple[Item, Item], Fraction]:
    """Return c of 11.3 for each ordered pair that has any, those of an item with itself included."""
    whole = sum(twin.weight[i] for i in twin.items)
    found = {}
    for i in twin.items:
        base, exp = twin.true_mates(i), twin.pred_mates(i)
        for j in base | exp:
            if score == "delta_precision":
                c = (j in exp) / twin.size(exp) - (j in base) / twin.size(base)
            elif score.endswith("distance"):
                c = 1 / twin.size(base | exp)
            else:
                c = 1 / twin.size(base if score in SPLITS else exp)
            here = {
                **dict.fromkeys(SPLITS, j not in exp),
                **dict.fromkeys(MERGES, j not in base),
                **dict.fromkeys(("good_distance", "bad_distance"), (j in base) != (j in exp)),
                "delta_precision": True,
            }
            if here[score] and c and twin.weight[i]:
                found[i, j] = twin.weight[i] / whole * twin.size([j]) * c
    return found


def change_of(twin: Naive, i: Item, j: Item) -> str:
    """Return what happened to a pair."""
    base, exp = twin.true_mates(i), twin.pred_mates(i)
    return "stable" if j in base and j in exp else "split" if j in base else "merged"


def counts(twin: Naive, score: str, i: Item, j: Item, verdict: str) -> bool:
    """Tell whether this verdict counts."""
    if score == "delta_precision":
        return verdict == "same"
    good = "different" if change_of(twin, i, j) == "split" else "same"
    return (verdict == good) == score.startswith("good")


def judge(ideal: Mapping[Item, Hashable], i: Item, j: Item) -> str:
    return "same" if ideal[i] == ideal[j] else "different"


def labelled_scores(
    pairs: list[tuple[Item, Item, str, Fraction]], cluster: Mapping[Item, Hashable]
) -> dict[str, tuple[Fraction, float, int]]:
    """Return precision, recall and F1 of labelled pairs: the score, its standard error by component, and these.

    A pair is (left, right, verdict, weight), each there once; components are of items that any pair joins.
    """
    groups: list[set[Item]] = []
    for i, j, _, _ in pairs:
        met = [g for g in groups if i in g or j in g]
        groups = [g for g in groups if g not in met] + [{i, j}.union(*met)]
    found = {}
    for score in ("pair_precision", "pair_recall", "pair_f1"):
        sums = []
        for group in groups:
            a = b = Fraction(0)
            for i, j, verdict, weight in pairs:
                if i in group and verdict != "unsure":
                    together = i in cluster and j in cluster and cluster[i] == cluster[j]
                    same = verdict == "same"
                    times = {"pair_precision": 1, "pair_recall": 1, "pair_f1": 2}[score]
                    a += times * weight * (together and same)
                    b += weight * (together * (score != "pair_recall") + same * (score != "pair_precision"))
            if b:
                sums.append((a, b))
        whole, m = sum(b for _, b in sums), len(sums)
        if not m:
            continue
        ratio = sum(a for a, _ in sums) / whole
        squares = sum(((a - ratio * b) / whole) ** 2 for a, b in sums)
        found[score] = ratio, float(squares * m / (m - 1)) ** 0.5 if m > 1 else float("nan"), m
    return found
