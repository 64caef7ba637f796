"""Items by cell, against a dictionary: true sets of few items and of many, in one part and in several."""

from __future__ import annotations

import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies_overlap import memberships_of

from fastbcubed.overlap.cover import Cover, item_cells
from fastbcubed.overlap.memberships import Memberships
from fastbcubed.runtime.threads import Pool

few = examples(100)


def expected(sets: Memberships, true, pred):
    """Return the cell of each item, and both sets and the items of each, by definition."""
    both = {}
    for item, pair in enumerate(zip(true.tolist(), pred.tolist(), strict=True)):
        if min(pair) >= 0:
            both.setdefault(pair, []).append(item)
    order = sorted(both, key=lambda pair: (sets.of(pair[0])[0], pair[0], both[pair][0]))
    cell = np.full(true.size, -1)
    for k, pair in enumerate(order):
        cell[both[pair]] = k
    return cell.tolist(), [p[0] for p in order], [p[1] for p in order], [len(both[p]) for p in order]


@few
@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.integers(1, 200),
    n_sets=st.integers(1, 80),
    n_pred=st.integers(1, 40),
    skewed=st.booleans(),
    part_rows=st.sampled_from([1, 7, 60, 10**6]),
    threads=st.integers(1, 3),
)
def test_items_of_one_true_and_one_predicted_set_are_a_cell(
    seed, n_items, n_sets, n_pred, skewed, part_rows, threads
):
    rng = np.random.default_rng(seed)
    sets = memberships_of(
        [rng.choice(9, rng.integers(1, 4), replace=False).tolist() for _ in range(n_sets)], 9
    )
    true = rng.integers(-1, 1 if skewed else n_sets, n_items)  # many items in one set are looked up
    pred = rng.integers(-1, n_pred, n_items)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastbcubed.overlap.cover.PART_ROWS", part_rows)
        found = item_cells(sets, true, pred, n_pred, Pool(threads))
    assert [each.tolist() for each in found] == list(expected(sets, true, pred))


@pytest.mark.parametrize("weighting", ["pointwise", "outer"])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_false_of_a_cell_is_in_proportion(weighting, weighted):
    rng = np.random.default_rng(5)
    sides = [
        memberships_of([rng.choice(12, rng.integers(1, 5), replace=False).tolist() for _ in range(60)], 12)
        for _ in range(2)
    ]
    n = rng.integers(1, 4, 60)
    weight = rng.random(60) + 0.1 if weighted else None
    cover = Cover(*sides, n, weight, n_scored=60, weighting=weighting)
    own = cover.tp
    tp, fp, fn = cover.proportions(np.ascontiguousarray(own))
    assert cover.cells["fp"] == pytest.approx(fp * (own / tp), rel=1e-15)
    assert cover.cells["fn"] == pytest.approx(fn * (own / tp), rel=1e-15)
