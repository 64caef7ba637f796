"""Cells of several predictions of the same rows: as counted with a dictionary, and bit for bit as of one by itself."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

import fastbcubed as fb
from fastbcubed.cells.build import TrueRows, cells_of_keys
from fastbcubed.cells.partitioned import Plan
from fastbcubed.engines import memory
from fastbcubed.runtime import key_partitions
from fastbcubed.runtime.threads import Pool


def tables(true, preds, weight, bits, *, absent=None, weighting="pointwise"):
    """Return for each prediction its contingency as one of several, and by itself."""
    plan = Plan.of(true.size, bits, true[:0], None, absent, wide=False)
    found = []
    with Pool(2) as pool:
        shared = TrueRows.of(plan, true, weight, pool)
        for pred in preds:
            how = {"weighting": weighting, "plan": plan}
            found.append(
                [cells_of_keys(true, pred, weight, pool, **how, truth=truth) for truth in (shared, None)]
            )
    return found


def assert_same(one, other):
    for name in one.cells.dtype.names:
        np.testing.assert_array_equal(one.cells[name], other.cells[name])
    np.testing.assert_array_equal(one.pred, other.pred)
    np.testing.assert_array_equal(one.rows.cell, other.rows.cell)


@examples(60)
@given(st.data(), st.integers(1, 60), st.integers(0, 3), st.booleans())
def test_cells_are_those_of_a_dictionary(data, n, bits, weighted):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    true, *preds = rng.integers(-(2**63), 2**63, 9)[rng.integers(0, 9, (4, n))]
    weight = rng.uniform(0.5, 9, n) if weighted else None
    for pred, (shared, alone) in zip(preds, tables(true, preds, weight, bits), strict=True):
        assert_same(shared, alone)
        counted = Counter(zip(true.tolist(), pred.tolist(), strict=True))
        of_row = [counted[pair] for pair in zip(true.tolist(), pred.tolist(), strict=True)]
        assert shared.n_cells == len(counted)
        assert shared.n[shared.rows.cell].tolist() == of_row


@pytest.mark.slow
@pytest.mark.parametrize("weighting", ["pointwise", "outer"])
def test_large_cells_small_tables_and_items_that_a_run_lacks(weighting, monkeypatch):
    """Weights of large cells are added up exactly; tables of usual size do not do for these parts."""
    monkeypatch.setattr(key_partitions, "PART_ROWS", 1)
    rng = np.random.default_rng(7)
    n = 20_000
    true = np.where(rng.random(n) < 0.5, rng.integers(0, 5000, n), rng.integers(0, 20, n))
    preds = [true // 3, rng.integers(0, 9, n), rng.integers(0, 50_000, n)]
    for shared, alone in tables(
        true, preds, rng.uniform(1e-9, 1e9, n), 1, absent=preds[1][0], weighting=weighting
    ):
        assert_same(shared, alone)


RNG = np.random.default_rng(3)
TRUE = RNG.integers(0, 30_000, 70_000)
RUNS = {"a": TRUE // 2, "b": np.where(RNG.random(TRUE.size) < 0.1, -TRUE, TRUE), "c": RNG.permutation(TRUE)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shared", "one run", "heavy", "outside"])
def test_runs_share_the_rows_of_the_truth_where_they_can(kind, monkeypatch):
    true, runs, options = TRUE, RUNS, {}
    if kind == "one run":
        runs = {"a": RUNS["a"]}
    if kind == "heavy":
        true = np.where(TRUE < 3000, 0, TRUE)
    if kind == "outside":  # further items, behind those that all have
        true = dict(enumerate(TRUE[:50_000].tolist()))
        runs = {name: dict(enumerate(RUNS[name][:n].tolist())) for name, n in (("a", 70_000), ("b", 60_000))}
        options = {"unmatched": {"prediction": "outside"}}
    made, of = [], TrueRows.of
    monkeypatch.setattr(memory.TrueRows, "of", lambda *given: made.append(1) or of(*given))
    cmp = fb.compare(true, runs, metrics=["pointwise", "pairs"], **options)
    assert len(made) == (kind == "shared")
    for name, run in runs.items():
        alone = fb.evaluate(true, run, metrics=["pointwise", "pairs"], **options)
        assert cmp[name].overall == pytest.approx(alone.overall, abs=1e-12)
