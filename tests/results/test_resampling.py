"""Standard errors agree with what resampling says: leaving out a component, and drawing components anew."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import fastbcubed as fb
from fastbcubed.results import standard_errors

SCORES = ("precision", "recall", "f1", "mean_f1", "jaccard_distance", "elm_precision", "elm_f1")


class Rows(NamedTuple):
    true: np.ndarray
    pred: np.ndarray
    weight: np.ndarray

    def evaluate(self) -> fb.Evaluation:
        return fb.evaluate(self.true, self.pred, weight=self.weight, metrics=SCORES, threads=1)


def rows(n: int, seed: int) -> Rows:
    """Return small clusters, one item in seven misplaced next door, so that components stay small."""
    rng = np.random.default_rng(seed)
    true = np.repeat(np.arange(n), rng.geometric(0.4, n))
    moved = rng.random(true.size) < 1 / 7
    return Rows(
        true,
        np.where(moved, true // 4 * 4 + rng.integers(0, 4, true.size), true),
        rng.uniform(1, 3, true.size),
    )


def component_of_rows(found: Rows) -> np.ndarray:
    cells = found.evaluate().contingency
    return standard_errors.components(cells).by_cell()[cells.rows.cell]


@pytest.mark.slow
def test_leaving_out_one_component_at_a_time() -> None:
    """The jackknife: (U - 1) / U times the squared differences of the scores without one from their mean."""
    everybody = rows(220, seed=3)
    component = component_of_rows(everybody)
    n = component.max() + 1
    without = [Rows(*(each[component != k] for each in everybody)).evaluate() for k in range(n)]
    ev = everybody.evaluate()
    assert ev.units.n == n and n > 50
    for name in SCORES:
        scores = np.array([each.overall[name] for each in without])
        jackknife = np.sqrt((n - 1) / n * np.sum((scores - scores.mean()) ** 2))
        assert ev.errors[name] == pytest.approx(jackknife, rel=0.05), name


@pytest.mark.slow
def test_drawing_components_anew() -> None:
    """The bootstrap: raw rows of whole components, with fresh labels; its spread is known to 1 / sqrt(2 * 250)."""
    everybody = rows(400, seed=4)
    component = component_of_rows(everybody)
    n, size = component.max() + 1, int(max(everybody.true.max(), everybody.pred.max())) + 1
    members = np.split(np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1])
    rng = np.random.default_rng(5)
    drawn = []
    for _ in range(250):
        chosen = [members[k] for k in rng.integers(0, n, n)]
        at, fresh = np.concatenate(chosen), np.repeat(np.arange(n), [c.size for c in chosen]) * size
        drawn.append(
            Rows(everybody.true[at] + fresh, everybody.pred[at] + fresh, everybody.weight[at]).evaluate()
        )
    ev = everybody.evaluate()
    for name in SCORES:
        spread = np.std([each.overall[name] for each in drawn], ddof=1)
        assert ev.errors[name] == pytest.approx(spread, rel=4 / np.sqrt(2 * 250)), name
