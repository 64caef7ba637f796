"""What a change does to clusters, and whether a truth approves, from METRICS 11 with sets and fractions alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

__all__ = ["GOOD_AND_BAD", "IMPACT", "QUALITY", "Change", "became", "change"]

Item = Hashable
Clusters = Mapping[Item, Hashable]

IMPACT = (
    "split_rate",
    "merge_rate",
    "split_jaccard_distance",
    "merge_jaccard_distance",
    "jaccard_distance",
    "affected_rate",
)
#: Scores and the two parts that they are cut in.
GOOD_AND_BAD = {
    "split_rate": ("good_split_rate", "bad_split_rate"),
    "merge_rate": ("good_merge_rate", "bad_merge_rate"),
    "split_jaccard_distance": ("good_split_distance", "bad_split_distance"),
    "merge_jaccard_distance": ("good_merge_distance", "bad_merge_distance"),
    "jaccard_distance": ("good_distance", "bad_distance"),
}
QUALITY = (
    *(name for parts in GOOD_AND_BAD.values() for name in parts),
    "good_index",
    "bad_index",
    "delta_precision",
    "delta_recall",
    "delta_jaccard_distance",
)


class Change(NamedTuple):
    """Scores item by item, the weight of each in the mean, and the members of its clusters."""

    of_item: dict[Item, dict[str, Fraction]]
    weight: dict[Item, Fraction]
    mates: dict[Item, set[Item]]  #: in any of the clusterings, of new items that are not scored, too

    def mean(self, name: str, items: Iterable[Item] | None = None) -> Fraction:
        """The mean over items that have the score."""
        there = [i for i in (self.of_item if items is None else items) if name in self.of_item.get(i, ())]
        return sum(self.weight[i] * self.of_item[i][name] for i in there) / sum(self.weight[i] for i in there)

    def judged(self) -> list[Item]:
        """The items that the truth judges."""
        return [i for i, scores in self.of_item.items() if "good_index" in scores]

    def iq(self, items: Iterable[Item] | None = None) -> Fraction | None:
        """What the items come nearer to the truth, in units of the size of the change; None where nothing changed."""
        size = self.mean("good_distance", items) + self.mean("bad_distance", items)
        return None if size == 0 else -self.mean("delta_jaccard_distance", items) / size


def change(
    baseline: Clusters,
    experiment: Clusters,
    truth: Clusters | None = None,
    weight: Mapping[Item, Any] | None = None,
    *,
    unmatched: str | Mapping[str, str] = "drop",
    unlabelled: str = "drop",
    outer: bool = False,
) -> Change:
    """Score the items of both, and by policy those of one side."""
    if isinstance(unmatched, str):
        gone = "singleton" if unmatched == "outside" else unmatched
        unmatched = {"baseline": gone, "experiment": unmatched}
    gone, new = unmatched.get("baseline", "drop"), unmatched.get("experiment", "drop")
    if new == "outside" and "baseline" not in unmatched:
        gone = "singleton"
    before, after = dict(baseline), dict(experiment)
    for item in baseline.keys() - experiment.keys():
        if gone == "singleton":
            after[item] = ("alone", item)
        else:
            del before[item]
    for item in experiment.keys() - baseline.keys():
        if new == "singleton":
            before[item] = ("alone", item)
        elif new == "drop":
            del after[item]
    scored = before.keys() & after.keys()
    outside = after.keys() - scored
    known = {i: Fraction(1 if weight is None else weight[i]) for i in scored | outside}
    inner = dict.fromkeys(known, Fraction(1)) if outer else known
    found, mates = {}, {}
    for i in outside:
        mates[i] = _mates(after, i)
    for i in scored:
        b, e = _mates(before, i), _mates(after, i)
        found[i], mates[i] = _impact(b, e, inner), b | e
    if truth is not None:
        labelled = (scored | outside) & truth.keys()
        kept = None if unlabelled == "outside" else labelled
        for i in labelled:
            mates[i] |= _mates(truth, i) & labelled
        for i in scored & labelled:
            b, e = _mates(before, i), _mates(after, i)
            if kept is not None:
                b, e = b & kept, e & kept
            found[i] |= _quality(b, e, _mates(truth, i) & labelled, inner)
    return Change(found, {i: known[i] for i in scored}, mates)


def _mates(clusters: Clusters, item: Item) -> set[Item]:
    return {other for other, label in clusters.items() if label == clusters[item]}


def _impact(b: set[Item], e: set[Item], weight: Mapping[Item, Fraction]) -> dict[str, Fraction]:
    def w(items: set[Item]) -> Fraction:
        return sum((weight[i] for i in items), Fraction(0))

    return {
        "split_rate": w(b - e) / w(b),
        "merge_rate": w(e - b) / w(e),
        "split_jaccard_distance": w(b - e) / w(b | e),
        "merge_jaccard_distance": w(e - b) / w(b | e),
        "jaccard_distance": 1 - w(b & e) / w(b | e),
        "affected_rate": Fraction(b != e),
    }


def _quality(
    b: set[Item], e: set[Item], i: set[Item], weight: Mapping[Item, Fraction]
) -> dict[str, Fraction]:
    def w(items: set[Item]) -> Fraction:
        return sum((weight[i] for i in items), Fraction(0))

    def distance(x: set[Item], y: set[Item]) -> Fraction:
        return 1 - w(x & y) / w(x | y)

    split, merged = b - e, e - b
    return {
        "good_split_rate": w(split - i) / w(b),
        "bad_split_rate": w(split & i) / w(b),
        "good_merge_rate": w(merged & i) / w(e),
        "bad_merge_rate": w(merged - i) / w(e),
        "good_split_distance": w(split - i) / w(b | e),
        "bad_split_distance": w(split & i) / w(b | e),
        "good_merge_distance": w(merged & i) / w(b | e),
        "bad_merge_distance": w(merged - i) / w(b | e),
        "good_distance": (w(split - i) + w(merged & i)) / w(b | e),
        "bad_distance": (w(split & i) + w(merged - i)) / w(b | e),
        "good_index": w(b & e & i) / w(b | e),
        "bad_index": w((b & e) - i) / w(b | e),
        "delta_precision": w(e & i) / w(e) - w(b & i) / w(b),
        "delta_recall": (w(e & i) - w(b & i)) / w(i),
        "delta_jaccard_distance": distance(e, i) - distance(b, i),
        "precision_of_baseline": w(b & i) / w(b),
        "precision_of_experiment": w(e & i) / w(e),
        "recall_of_baseline": w(b & i) / w(i),
        "recall_of_experiment": w(e & i) / w(i),
    }


def became(baseline: Clusters, experiment: Clusters) -> dict[str, tuple[int, int]]:
    """Clusters and items by what became of them; items are those of both, but of clusters that one side has alone."""
    common = baseline.keys() & experiment.keys()
    counted = dict.fromkeys(("unchanged", "split", "merged", "split and merged", "gone", "appeared"), (0, 0))

    def count(name: str, n_items: int) -> None:
        counted[name] = (counted[name][0] + 1, counted[name][1] + n_items)

    for label in set(baseline.values()):
        items = {i for i in baseline if baseline[i] == label}
        here = items & common
        if not here:
            count("gone", len(items))
            continue
        parts = {experiment[i] for i in here}
        strangers = any(experiment[i] in parts for i in common - here)
        names = {
            (1, False): "unchanged",
            (2, False): "split",
            (1, True): "merged",
            (2, True): "split and merged",
        }
        count(names[min(2, len(parts)), strangers], len(here))
    for label in set(experiment.values()):
        items = {i for i in experiment if experiment[i] == label}
        if not items & common:
            count("appeared", len(items))
    return counted
