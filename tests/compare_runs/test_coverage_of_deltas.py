"""Intervals of 95 % cover the delta of the population as often as they say; those by true cluster do not.

The population: one component in seven has 3, 6 or 15 true clusters that the baseline merges, and of which the
experiment keeps half together; in the others, each run splits some, by itself. A sample has some components.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

import fastbcubed as fb

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
SCORES = ["precision", "recall", "f1", "mean_f1", "jaccard_distance"]
#: Those that merging changes.
MERGED = ["precision", "f1", "mean_f1", "jaccard_distance"]
N_COMPONENTS, DRAWN = 3000, 300

#: True labels of the items of a component, those by the baseline and those by the experiment.
Component = tuple[np.ndarray, np.ndarray, np.ndarray]


def population(rng: np.random.Generator) -> list[Component]:
    found = []
    for n_merged in np.where(rng.random(N_COMPONENTS) < 0.15, rng.choice([3, 6, 15], N_COMPONENTS), 1):
        true = np.repeat(np.arange(n_merged), rng.geometric(0.4, n_merged))
        if n_merged > 1:
            stays = rng.random(n_merged) < 0.5
            old, new = np.zeros_like(true), np.where(stays[true], 0, 1 + true)
        else:
            old, new = (rng.integers(0, 2, true.size) * (rng.random() < 0.15) for _ in range(2))
        found.append((true, old, new))
    return found


def labels(components: Sequence[Component]) -> list[np.ndarray]:
    """Return labels of the truth and of two runs; each component is apart from the others."""
    place = np.repeat(np.arange(len(components)), [true.size for true, *_ in components])
    return [np.concatenate(own) + 16 * place for own in zip(*components, strict=True)]


def compare(components: Sequence[Component], **options) -> dict[str, dict]:
    true, old, new = labels(components)
    cmp = fb.compare(true, {"old": old, "new": new}, metrics=SCORES, threads=1, **options)
    return {row["score"]: row for row in cmp.deltas().to_pylist()}


def samples(people: list[Component], n: int, rng: np.random.Generator) -> Iterator[list[Component]]:
    for _ in range(n):
        yield [people[k] for k in rng.integers(0, len(people), DRAWN)]


def covered(n_samples: int, seed: int, **options) -> Counter[str]:
    """Count the samples whose interval holds the delta of the population."""
    rng = np.random.default_rng(seed)
    people = population(rng)
    whole = compare(people)
    hits: Counter[str] = Counter()
    for sample in samples(people, n_samples, rng):
        for score, row in compare(sample, **options).items():
            hits[score] += row["low"] <= whole[score]["delta"] <= row["high"]
    return hits


def said(hits: Counter[str], n_samples: int) -> str:
    return ", ".join(f"{score} {n} of {n_samples}" for score, n in hits.items())


@pytest.mark.weekly
def test_intervals_by_component_cover() -> None:
    hits = covered(1000, seed=21)
    assert all(hits[score] >= 930 for score in SCORES), said(hits, 1000)  # ends that move on cover more


@pytest.mark.weekly
def test_intervals_by_true_cluster_do_not() -> None:
    hits = covered(300, seed=22, unit="true_cluster")
    assert all(hits[score] <= 270 for score in MERGED), said(hits, 300)


@pytest.mark.weekly
def test_bootstrap_intervals_cover() -> None:
    hits = covered(300, seed=23, bootstrap=400)
    assert all(270 <= hits[score] <= 294 for score in SCORES), said(hits, 300)


@pytest.mark.slow
def test_pairing_tells_more_than_two_errors() -> None:
    """Where runs err alike, the error of the delta is far below the root of the sum of squares of theirs."""
    rng = np.random.default_rng(24)
    people = population(rng)
    true, old, _ = labels(people)
    moved = np.where(rng.random(true.size) < 0.01, true + 15, old)
    cmp = fb.compare(true, {"old": old, "new": moved}, metrics=SCORES)
    for row in cmp.deltas().to_pylist():
        apart = np.hypot(cmp["old"].errors[row["score"]], cmp["new"].errors[row["score"]])
        assert row["se"] < 0.5 * apart, row
