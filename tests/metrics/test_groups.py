"""Sums of scores by groups of cells, against fractions."""

from fractions import Fraction

import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

import fastbcubed as fb
from fastbcubed.metrics.aggregation import group_means
from fastbcubed.metrics.registry import METRICS

#: Scores whose formula is compiled, and two whose formula is not.
NAMES = ("precision", "recall", "mean_f1", "jaccard_index", "over_merge_rate", "accuracy", "mean_fbeta")
SHARES = {
    "precision": lambda tp, fp, fn, tn: tp / (tp + fp),
    "recall": lambda tp, fp, fn, tn: tp / (tp + fn),
    "mean_f1": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
    "jaccard_index": lambda tp, fp, fn, tn: tp / (tp + fp + fn),
    "over_merge_rate": lambda tp, fp, fn, tn: fp / (tp + fp),
    "accuracy": lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
    "mean_fbeta": lambda tp, fp, fn, tn: tp / (tp + Fraction(4, 5) * fp + Fraction(1, 5) * fn),
}
CELL = st.tuples(
    st.integers(0, 4), st.integers(0, 4), st.integers(1, 9), st.integers(1, 10**6), st.integers(-1, 3)
)


def sums_over(cells, k, weight):
    """Return the weight of the cells that share entry k of each cell, by that entry."""
    found = {}
    for cell, own in zip(cells, weight, strict=True):
        found[cell[k]] = found.get(cell[k], 0) + own
    return found


@examples(40)
@given(
    st.lists(CELL, min_size=1, max_size=12, unique_by=lambda cell: cell[:2]),
    st.sampled_from([None, "pointwise", "outer"]),
)
def test_means_of_groups(cells, weighting):
    assert_means(cells, weighting)


@pytest.mark.slow
def test_means_of_many_cells():
    rng = np.random.default_rng(0)
    pairs = rng.permutation(60 * 60)[:2100]  # two runs of cells, and some
    rest = rng.integers([1, 1, -1], [9, 10**6, 4], (2100, 3))
    rows = zip((pairs // 60).tolist(), (pairs % 60).tolist(), rest.tolist(), strict=True)
    assert_means([(t, p, *own) for t, p, own in rows], "pointwise")


def assert_means(cells, weighting):
    """Compare what groups of cells come to with fractions."""
    true, pred, n, weight, group = (list(column) for column in zip(*cells, strict=True))
    how = {} if weighting is None else {"weight": np.array(weight, float), "weighting": weighting}
    table = fb.Contingency.from_cells(true, pred, n, **how)
    place = {cell[:2]: k for k, cell in enumerate(cells)}
    order = [place[t, p] for t, p in zip(table.true.tolist(), table.pred.tolist(), strict=True)]
    codes = np.array(group)[order]
    found = group_means(table, codes, 4, [METRICS[name].at(0.5) for name in NAMES], beta=0.5)

    mass = [Fraction(w) for w in (n if weighting is None else weight)]
    inside = [Fraction(w) for w in (n if weighting == "outer" else mass)]
    of_true, of_pred, total = sums_over(cells, 0, inside), sums_over(cells, 1, inside), sum(inside)
    for k in range(4):
        own = [i for i, cell in enumerate(cells) if cell[4] == k]
        whole = sum(mass[i] for i in own)
        assert found["n_items"][k] == sum(n[i] for i in own)
        assert found["weight"][k] == whole
        for name in NAMES:
            added = Fraction(0)
            for i in own:
                tp, fp, fn = inside[i], of_pred[pred[i]] - inside[i], of_true[true[i]] - inside[i]
                added += mass[i] * SHARES[name](tp, fp, fn, total - tp - fp - fn)
            expected = float(added / whole) if own else float("nan")
            assert found[name][k] == pytest.approx(expected, rel=1e-12, abs=1e-13, nan_ok=True), name
