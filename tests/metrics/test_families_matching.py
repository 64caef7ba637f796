"""Matching of clusters against the twins, and the one-to-one pairing against SciPy."""

import itertools
from fractions import Fraction as Fr

import naive_families
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from naive_families import Table
from scipy.optimize import linear_sum_assignment
from strategies import pairs, weights
from worked import E17, E17_SCORES, MATCHING, OF_EQUALS, W3, W3_COUNTS, W3_SCORES, WEIGHTS

import fastbcubed as fb
import fastbcubed.metrics as fbm
from fastbcubed import Contingency
from fastbcubed.errors import MetricError, PairingError
from fastbcubed.metrics import counterparts
from fastbcubed.metrics.registry import METRICS, resolve

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")

NO_MEAN = {name for name in MATCHING if METRICS[name].weights_inside}
NEED_LABELS = {name for name in MATCHING if METRICS[name].labelled_only}


def evaluate(truth, prediction, **options):
    return fb.evaluate(truth, prediction, metrics="matching", **options).overall


def close(expected):
    return pytest.approx(float(expected), rel=1e-12, abs=1e-12)


@examples(150)
@given(pairs(max_size=11), st.data())
def test_twin(case, data):
    drawn = data.draw(weights(len(case.items)))
    weight = None if drawn is None else dict(zip(case.items, drawn, strict=True))
    scores = evaluate(*case, weight=weight)
    for name in MATCHING:
        assert scores[name] == close(naive_families.score(name, *case, weight)), name


@pytest.mark.parametrize(
    ("case", "expected", "weight"), [(E17, E17_SCORES, None), (W3, W3_COUNTS, None), (W3, W3_SCORES, WEIGHTS)]
)
def test_worked_values(case, expected, weight):
    scores = evaluate(*case, weight=weight)
    for name in set(MATCHING) & set(expected):
        room = 6e-7 if isinstance(expected[name], float) else 1e-15
        assert scores[name] == pytest.approx(float(expected[name]), rel=0, abs=room), name


@pytest.mark.parametrize("weight", [None, [0.1, 7.3, 1e-9, 2e5, 3.3, 0.7]])
def test_equal_clusterings_score_exactly_one(weight):
    scores = evaluate(list("abcabc"), [3, 1, 2, 3, 1, 2], weight=weight)
    assert dict(scores) == {name: OF_EQUALS[name] for name in MATCHING}


def test_sums_of_counts_are_exact():
    """The items beside the largest cells: 3 in a, 2 in c, 1 in the first predicted cluster."""
    assert fbm.split_join(list("aaaaaaaccccc"), [0, 0, 0, 0, 1, 1, 1, 2, 2, 0, 2, 3]) == 3 + 2 + 1


# -- policies and weightings ------------------------------------------------------------------------


@examples(60)
@given(pairs(max_size=10, unmatched=False), st.data())
def test_weights_in_the_mean_alone(case, data):
    """Shares and F from counts, then means that the weights weigh; a pairing of the largest weight."""
    items = case.items
    weight = dict(zip(items, data.draw(weights(len(items), zeros=True)) or [1.0] * len(items), strict=True))
    counts, total = Table(*case), sum(Fr(w) for w in weight.values())
    best_f1 = {c: max(Fr(2 * len(c & k), len(c) + len(k)) for k in counts.clusters) for c in counts.classes}

    def mean(by_item):
        return sum(Fr(weight[e]) * by_item[e] for e in items) / total

    purity = mean(naive_families.item_purity(counts))
    inverse = mean(naive_families.item_purity(counts.swapped))
    expected = {
        "purity": purity,
        "inverse_purity": inverse,
        "purity_f1": 2 * purity * inverse / (purity + inverse),
        "class_f1": mean({e: f1 for c, f1 in best_f1.items() for e in c}),
        "matching_accuracy": naive_families.matching_accuracy(Table(*case, weight)),
        **{name: naive_families.score(name, *case) for name in ("cluster_f1", "talburt_wang")},
    }
    ev = fb.evaluate(*case, weight=weight, weighting="outer", metrics="matching")
    for name, value in expected.items():
        assert ev.overall[name] == close(value), name
    assert set(ev.not_computed) == NO_MEAN


@examples(60)
@given(pairs(max_size=10))
def test_items_outside_the_truth_count_in_their_clusters(case):
    common = Table(*case)
    whole = {k: next(r for r in common.response if k <= r) for k in common.clusters}
    n = len(common.items)

    def f1(c, k):
        return Fr(2 * len(c & k), len(c) + len(whole[k]))

    def jaccard(c, k):
        return Fr(len(c & k), len(c | whole[k]))

    classes, clusters = common.classes, common.clusters
    expected = {
        "purity": sum(Fr(len(k) * max(len(c & k) for c in classes), len(whole[k])) for k in clusters) / n,
        "inverse_purity": naive_families.inverse_purity(common),
        "class_f1": sum(len(c) * max(f1(c, k) for k in clusters) for c in classes) / n,
        "cluster_precision": Fr(sum(whole[k] in classes for k in clusters), len(clusters)),
        "cluster_recall": Fr(sum(c in whole.values() for c in classes), len(classes)),
        "closest_cluster_precision": sum(max(jaccard(c, k) for c in classes) for k in clusters)
        / len(clusters),
        "closest_cluster_recall": sum(max(jaccard(c, k) for k in clusters) for c in classes) / len(classes),
        "matching_accuracy": naive_families.matching_accuracy(common),
    }
    policy = {"truth": "drop", "prediction": "outside"}
    ev = fb.evaluate(*case, unmatched=policy, metrics="matching")
    for name, value in expected.items():
        assert ev.overall[name] == close(value), name
    assert set(ev.not_computed) == NEED_LABELS


def test_scores_that_are_not_defined_raise_when_named():
    for name in NO_MEAN:
        with pytest.raises(MetricError, match=f'{name} .*not a mean over items.*weighting="pointwise"'):
            resolve(name, weighted=True, weighting="outer")
    for name in NEED_LABELS:
        with pytest.raises(MetricError, match=f'{name} .*unmatched="drop"'):
            resolve(name, outside=True)


def test_no_column_of_slices_or_clusters():
    ev = fb.evaluate(*E17, metrics=["matching", "precision"])
    for table in (ev.clusters("true"), ev.slices("true_size")):
        assert set(table.column_names) & set(MATCHING) == {"k_measure"}  # from two means, as f1 is


# -- many cells -------------------------------------------------------------------------------------


def of_cells(true, pred, weight):
    """Return some scores from sorted arrays, another way than the library's."""
    key, at = np.unique(np.stack([true, pred], 1), axis=0, return_inverse=True)
    w = np.bincount(at.ravel(), weight)  # NumPy 2.0 gives it another shape
    a, b = np.bincount(key[:, 0], w)[key[:, 0]], np.bincount(key[:, 1], w)[key[:, 1]]
    best = {}
    for name, side, values in [
        ("own_true", 0, w),
        ("own_pred", 1, w),
        ("f1", 0, a * 2 * w / (a + b)),
        ("near_true", 0, w / (a + b - w)),
        ("near_pred", 1, w / (a + b - w)),
    ]:
        found = np.zeros(key[:, side].max() + 1)
        np.maximum.at(found, key[:, side], values)
        best[name] = found[found > 0]
    total = w.sum()
    return {
        "purity": best["own_pred"].sum() / total,
        "inverse_purity": best["own_true"].sum() / total,
        "class_f1": best["f1"].sum() / total,
        "closest_cluster_precision": best["near_pred"].mean(),
        "closest_cluster_recall": best["near_true"].mean(),
        "split_join": 2 * total - best["own_pred"].sum() - best["own_true"].sum(),
    }


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_many_cells(weighted, monkeypatch):
    monkeypatch.setattr(counterparts, "CELLS_AT_ONCE", 3 << 12)  # several blocks, the last one short
    monkeypatch.setattr(counterparts, "RANGE_BITS", 7)  # and several ranges of codes
    rng = np.random.default_rng(1)
    n = 120_000
    true = rng.integers(0, n // 3, n)
    pred = np.where(rng.random(n) < 0.7, true, rng.integers(0, n // 4, n))
    weight = rng.uniform(0.5, 1.5, n) if weighted else None
    expected = of_cells(true, pred, np.ones(n) if weight is None else weight)
    one, two = (fb.evaluate(true, pred, weight=weight, metrics="matching", threads=k).overall for k in (1, 2))
    assert dict(one) == dict(two)
    for name, value in expected.items():
        assert one[name] == close(value), name
    assert one["cluster_precision"] == np.isin(*exact(true, pred)).mean()


def exact(true, pred):
    """Return each predicted cluster and each true one as its items in order, hashed."""
    sides = []
    for codes in (pred, true):
        order = np.argsort(codes, kind="stable")
        cuts = np.flatnonzero(np.diff(codes[order])) + 1
        sides.append(np.array([hash(part.tobytes()) for part in np.split(order, cuts)]))
    return sides


@pytest.mark.slow
def test_counts_beyond_32_bits():
    n = 1 << 40
    cells = Contingency.from_cells([0, 0, 1], [0, 1, 1], [3 * n, n, n])
    assert fbm.purity(contingency=cells) == 4 / 5
    assert fbm.split_join(contingency=cells) == 2 * n
    assert fbm.matching_accuracy(contingency=cells) == 4 / 5


# -- one-to-one pairing -----------------------------------------------------------------------------


def pair(table):
    rows, columns = np.nonzero(table)
    return counterparts.best_pairs(rows, columns, table[rows, columns].astype(float), *table.shape)[1]


def largest_sum(table):
    return table[linear_sum_assignment(table, maximize=True)].sum()


@examples(200)
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 9), st.floats(0, 1), st.booleans())
def test_pairing_of_small_tables(seed, n_rows, n_columns, share, whole):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 5, (n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < share)
    if not whole:
        table = table * rng.random((n_rows, n_columns))
    assert pair(table).sum() == (largest_sum(table) if whole else close(largest_sum(table)))


@pytest.mark.parametrize("kind", ["unrelated", "ties", "similarity", "one large", "long chain"])
def test_pairing_of_larger_tables(kind):
    rng = np.random.default_rng(2)
    size = 200
    table = rng.random((size, size)) * (rng.random((size, size)) < 0.1)
    if kind == "ties":
        table = np.ceil(2 * table)
    elif kind == "similarity":
        table = 2 * table / (table.sum(0) + table.sum(1)[:, None])
    elif kind == "one large":
        table[0], table[:, 0] = 1.0, 1.0
    elif kind == "long chain":  # each row prefers the column of the next: all have to move at the end
        table = np.diag(np.full(size, 10.0)) + np.diag(np.full(size - 1, 11.0), 1)
        table[-1, 0] = 10.5
    assert pair(table).sum() == close(largest_sum(table))
    assert pair(table.T).sum() == close(largest_sum(table))


def test_pairing_of_nothing():
    assert pair(np.zeros((2, 2))).size == 0


def test_a_pairing_that_takes_too_long_says_how_large_it_is(monkeypatch):
    monkeypatch.setattr(counterparts, "LIMIT", 100)
    monkeypatch.setattr(counterparts, "PATIENCE", 10)
    n = 20
    true, pred = zip(*itertools.product(range(n), range(n)), strict=True)
    true, pred = [*true, n, n, n + 1], [*pred, n, n + 1, n + 1]  # besides, two and two with three cells
    with pytest.raises(PairingError, match=r"20 true and 20 predicted clusters.* 400 cells"):
        fbm.matching_accuracy(true, pred)
    with pytest.raises(PairingError, match="takes too long"):
        fb.evaluate(true, pred, metrics=["f1", "ceaf_m_f1"])
    ev = fb.evaluate(true, pred, metrics=["f1", "matching", "coreference"])
    assert set(ev.not_computed) == {"matching_accuracy", "conll_f1"} | {
        f"ceaf_{kind}_{figure}" for kind in "me" for figure in ("precision", "recall", "f1")
    }
    assert "f1" in ev.overall and "purity" in ev.overall and "lea_f1" in ev.overall
