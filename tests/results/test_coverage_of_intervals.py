"""Intervals of 95 % cover the score of the population as often as they say; those by the wrong unit do not.

The population: components whose predicted cluster merges 3 to 15 true clusters, one in ten, and others of one true
cluster, some of them split. A sample has some components, and its truth and prediction are all there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

import fastbcubed as fb

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
SCORES = ("precision", "recall", "f1", "mean_f1")
N_COMPONENTS, DRAWN = 3000, 300


def population(rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return true and predicted labels of the items of each component."""
    found = []
    for merged in np.where(rng.random(N_COMPONENTS) < 0.1, rng.integers(3, 16, N_COMPONENTS), 1).tolist():
        true = np.repeat(np.arange(merged), rng.geometric(0.4, merged))
        is_split = merged == 1 and rng.random() < 0.15
        found.append((true, rng.integers(0, 2, true.size) if is_split else np.zeros(true.size, int)))
    return found


def labels(components: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of components, each drawn anew: no cluster is in two of them."""
    sides = []
    for own in zip(*components, strict=True):
        firsts = np.cumsum([0, *(part.max() + 1 for part in own[:-1])])
        sides.append(np.concatenate([part + first for part, first in zip(own, firsts, strict=True)]))
    return sides[0], sides[1]


def covered(evaluations: Sequence[fb.Evaluation], whole: fb.Evaluation, unit: str) -> dict[str, float]:
    """Return how often the intervals of some evaluations hold the scores of the population."""
    hits = dict.fromkeys(SCORES, 0)
    for ev in evaluations:
        for row in ev.scores(unit=unit).to_pylist():
            hits[row["score"]] += row["low"] <= whole.overall[row["score"]] <= row["high"]
    return {name: n / len(evaluations) for name, n in hits.items()}


def compare_units(n_samples: int) -> None:
    rng = np.random.default_rng(12)
    people = population(rng)
    whole = fb.evaluate(*labels(people), metrics=SCORES)
    samples = [
        fb.evaluate(
            *labels([people[k] for k in rng.integers(0, N_COMPONENTS, DRAWN)]), metrics=SCORES, threads=1
        )
        for _ in range(n_samples)
    ]
    by_component = covered(samples, whole, "component")
    assert all(0.92 <= share <= 0.985 for share in by_component.values()), by_component
    by_true = covered(samples, whole, "true_cluster")
    assert by_true["precision"] < 0.8 and by_true["f1"] < 0.8 and by_true["mean_f1"] < 0.8, by_true


@pytest.mark.slow
def test_components_cover_and_true_clusters_do_not() -> None:
    compare_units(200)


@pytest.mark.weekly
def test_components_cover_in_many_samples() -> None:
    compare_units(2000)


@pytest.mark.weekly
def test_true_clusters_cover_where_a_sample_of_them_is_labelled() -> None:
    """The prediction has all items, so the precision of a sampled true cluster does not hang on the others."""
    rng = np.random.default_rng(13)
    true, pred = labels(population(rng))
    whole = fb.evaluate(true, pred, metrics=SCORES)
    items = np.arange(true.size)
    everybody = pa.table({"item": items, "cluster": pred})
    samples = []
    for _ in range(400):
        drawn = rng.random(true.max() + 1) < 0.05
        mine = drawn[true]
        labelled = pa.table({"item": items[mine], "cluster": true[mine]})
        samples.append(fb.evaluate(labelled, everybody, metrics=SCORES, unmatched="outside", threads=1))
    by_true = covered(samples, whole, "true_cluster")
    assert all(0.92 <= share <= 0.975 for share in by_true.values()), by_true
