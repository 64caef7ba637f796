"""Generated pairs of overlapping clusterings: lists of sets, with what breaks naive code."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from strategies import LABELS

from fastbcubed.overlap.memberships import Memberships

__all__ = ["Covers", "covers", "item_weights", "memberships_of"]

Codes = list[set[int]]


class Covers(NamedTuple):
    """Two families of clusters, in order, in which a cluster may stand several times."""

    truth: list[set[Hashable]]
    prediction: list[set[Hashable]]

    @property
    def items(self) -> list[Hashable]:
        return list(dict.fromkeys(e for family in self for cluster in family for e in cluster))


@st.composite
def _family(draw: st.DrawFn, n: int) -> Codes:
    """Draw clusters of n items: some of them, blocks, singletons, one giant; some of them twice."""
    clusters = draw(st.lists(st.sets(st.integers(0, n - 1), min_size=1), max_size=5))
    for shape in draw(st.lists(st.sampled_from(["singletons", "giant", "blocks", "pairs"]), max_size=2)):
        if shape == "singletons":
            clusters += [{k} for k in range(n)]
        elif shape == "giant":
            clusters.append(set(range(n)))
        elif shape == "blocks":
            cut = draw(st.integers(1, n))
            clusters += [set(block) for block in (range(cut), range(cut, n)) if block]
        else:  # a chain, in which every item but the last is in two
            clusters += [{k, k + 1} for k in range(n - 1)]
    clusters = clusters or [{0}]
    again = draw(st.lists(st.integers(0, len(clusters) - 1), max_size=2))
    return [*clusters, *(set(clusters[k]) for k in again)]


@st.composite
def _changed(draw: st.DrawFn, family: Codes) -> Codes:
    """Draw a few changes of a family: a cluster dropped, repeated, cut in two, joined, trimmed."""
    clusters = [set(cluster) for cluster in family]
    for change in draw(st.lists(st.sampled_from(["drop", "repeat", "cut", "join", "trim"]), max_size=3)):
        k = draw(st.integers(0, len(clusters) - 1))
        members = sorted(clusters[k])
        if change == "repeat":
            clusters.append(set(members))
        elif change == "join":
            clusters[k] = clusters[k] | clusters[draw(st.integers(0, len(clusters) - 1))]
        elif change == "drop" and len(clusters) > 1:
            del clusters[k]
        elif change == "cut" and len(members) > 1:
            clusters[k : k + 1] = [set(members[:1]), set(members[1:])]
        elif change == "trim" and len(members) > 1:
            clusters[k] = set(members[1:])
    return clusters


def _covered(family: Codes) -> set[int]:
    return set().union(*family)


@st.composite
def covers(draw: st.DrawFn, max_size: int = 7, unmatched: bool = True) -> Covers:
    """Draw a pair of covers with a common item; with `unmatched`, often items of one side only."""
    n = draw(st.integers(1, max_size))
    truth = draw(_family(n))
    prediction = draw(st.one_of(_family(n), _changed(truth), st.just(truth)))
    if draw(st.booleans()):
        truth, prediction = prediction, truth
    everyone = _covered(truth) | _covered(prediction)
    if not unmatched:  # an item that one side lacks is alone there, or all such items are together
        together = draw(st.booleans())
        missing = [everyone - _covered(family) for family in (truth, prediction)]
        lonely = [[rest] if together and rest else [{k} for k in sorted(rest)] for rest in missing]
        truth, prediction = [*truth, *lonely[0]], [*prediction, *lonely[1]]
    elif not _covered(truth) & _covered(prediction):
        prediction = [*prediction, set(sorted(_covered(truth))[:1])]
    order = draw(st.permutations(prediction))
    item = LABELS[draw(st.sampled_from(list(LABELS)))]
    named = [[{item(k) for k in cluster} for cluster in family] for family in (truth, order)]
    return Covers(*named)


def item_weights(items: list[Hashable], kind: st.SearchStrategy[float] | None = None) -> st.SearchStrategy:
    """Draw a positive weight for each item: small integers, or over twelve orders of magnitude."""
    wide = st.sampled_from([1e-6, 0.1, 1.0, 3.0, 1e6])
    kinds = [kind] if kind is not None else [st.integers(1, 4).map(float), wide]
    draws = [st.lists(k, min_size=len(items), max_size=len(items)) for k in kinds]
    return st.one_of(draws).map(lambda values: dict(zip(items, values, strict=True)))


def memberships_of(sets: Sequence[Iterable[int]], n_clusters: int) -> Memberships:
    """Return the clusters of each item, given as sets of codes."""
    rows = [(item, code) for item, codes in enumerate(map(set, sets)) for code in sorted(codes)]
    items, clusters = np.array(rows, np.int32).reshape(-1, 2).T
    counts = np.bincount(items, minlength=len(sets))
    return Memberships(np.append(0, np.cumsum(counts)), clusters.copy(), n_clusters)
