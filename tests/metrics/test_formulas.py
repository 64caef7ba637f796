"""The formulas on matrices made by hand, and what the registry makes of a choice of scores."""

import inspect
import itertools
import math
import pickle
import warnings
from fractions import Fraction as Fr
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import WITH_TN, WITHOUT_TN, f_measure

import fastbcubed as fb
import fastbcubed.metrics as fbm
from fastbcubed import Contingency
from fastbcubed.errors import FastBCubedError, MetricError, OptionError
from fastbcubed.metrics import bcubed
from fastbcubed.metrics import metric as rates
from fastbcubed.metrics.metric import REFERENCES, Family, Metric
from fastbcubed.metrics.registry import DEFAULT, FAMILIES, METRICS, lifted, resolve
from fastbcubed.metrics.sums import OVERALL, overall

POINTWISE = {m.name: m for m in METRICS.values() if m.family == "pointwise" and m.formula}
EXACT = {
    **WITHOUT_TN,
    **WITH_TN,
    "mean_f1": lambda tp, fp, fn, tn: f_measure(Fr(tp, tp + fp), Fr(tp, tp + fn), Fr(1, 2)),
}
EXACT["element_centric"] = lambda tp, fp, fn, tn: Fr(tp, max(tp + fp, tp + fn))
EXACT["mean_fbeta"] = EXACT["mean_f1"]  # at beta = 1
ELM = {name: METRICS[name].formula for name in ("elm_precision", "elm_recall", "elm_mean_f1")}
LOSSES = [name for name, m in POINTWISE.items() if m.best == "lower"]

# A positive tp, and sets that are often empty.
counts = st.integers(0, 3) | st.integers(0, 10**6)
matrices = st.tuples(st.integers(1, 5) | st.integers(1, 10**6), counts, counts, counts)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def score(name, tp, fp, fn, tn):
    """Return the score of one matrix, as a float."""
    return float(METRICS[name].formula(*map(float, (tp, fp, fn, tn))))


# -- W3, METRICS 1: truth {1, 2}, {3}; prediction {1, 3}, {2}; the items weigh 1, 2, 3 -------------

# Item 1: tp {1}, fp {3}, fn {2}, tn {}. Item 2: {2}, {}, {1}, {3}. Item 3: {3}, {1}, {}, {2}.
W3 = [(1, 3, 2, 0), (2, 0, 1, 3), (3, 1, 0, 2)]
W3_SCORES = {
    "precision": (Fr(1, 4), 1, Fr(3, 4), Fr(3, 4)),
    "recall": (Fr(1, 3), Fr(2, 3), 1, Fr(7, 9)),
    "over_merge_rate": (Fr(3, 4), 0, Fr(1, 4), Fr(1, 4)),
    "under_merge_rate": (Fr(2, 3), Fr(1, 3), 0, Fr(2, 9)),
    "jaccard_distance": (Fr(5, 6), Fr(1, 3), Fr(1, 4), Fr(3, 8)),
    "jaccard_index": (Fr(1, 6), Fr(2, 3), Fr(3, 4), Fr(5, 8)),
    "mean_f1": (Fr(2, 7), Fr(4, 5), Fr(6, 7), Fr(26, 35)),
    "accuracy": (Fr(1, 6), Fr(5, 6), Fr(5, 6), Fr(13, 18)),
    "specificity": (0, 1, Fr(2, 3), Fr(2, 3)),
    "npv": (0, Fr(3, 4), 1, Fr(3, 4)),
    # (R + TNR) / 2: (1/3 + 0) / 2, (2/3 + 1) / 2, (1 + 2/3) / 2; (1/6 + 2 * 5/6 + 3 * 5/6) / 6
    "balanced_accuracy": (Fr(1, 6), Fr(5, 6), Fr(5, 6), Fr(13, 18)),
    "informedness": (Fr(-2, 3), Fr(2, 3), Fr(2, 3), Fr(4, 9)),
    "markedness": (Fr(-3, 4), Fr(3, 4), Fr(3, 4), Fr(1, 2)),
    "pointwise_ari": (Fr(-2, 3), Fr(2, 3), Fr(2, 3), Fr(4, 9)),
    "mcc": (-math.sqrt(0.5), math.sqrt(0.5), math.sqrt(0.5), math.sqrt(0.5) * 2 / 3),
    # sqrt(1/4 * 1/3), sqrt(1 * 2/3), sqrt(3/4 * 1)
    "pointwise_fowlkes_mallows": (
        math.sqrt(1 / 12),
        math.sqrt(2 / 3),
        math.sqrt(3 / 4),
        (math.sqrt(1 / 12) + 2 * math.sqrt(2 / 3) + 3 * math.sqrt(3 / 4)) / 6,
    ),
    "element_centric": (Fr(1, 4), Fr(2, 3), Fr(3, 4), Fr(23, 36)),
    "symmetric_difference": (5, 1, 1, Fr(5, 3)),
}


@pytest.mark.parametrize("name", W3_SCORES)
def test_w3(name):
    *items, overall = W3_SCORES[name]
    scores = METRICS[name].formula(*np.array(W3, float).T)
    assert scores == pytest.approx([float(x) for x in items], abs=1e-15)
    assert np.average(scores, weights=[1, 2, 3]) == pytest.approx(float(overall), abs=1e-15)


# -- E17, METRICS 14: sizes 6, 6, 5; rows (5, 1, 0), (1, 4, 1), (2, 0, 3); columns 8, 5, 4 ---------

E17_TABLE = np.array([[5, 1, 0], [1, 4, 1], [2, 0, 3]])


def table(cells, weights=None):
    true, pred = np.nonzero(cells)
    return Contingency.from_cells(
        true, pred, cells[true, pred], None if weights is None else weights[true, pred]
    )


# METRICS 14, the column of W3; P, R, F of each average.
@pytest.mark.parametrize(
    ("end", "scores"),
    [
        ("", (Fr(3, 4), Fr(7, 9), Fr(42, 55))),
        ("_by_true_cluster", (Fr(3, 4), Fr(7, 9), Fr(42, 55))),
        ("_by_pred_cluster", (Fr(13, 16), Fr(3, 4), Fr(39, 50))),
    ],
)
def test_averages_of_w3(end, scores):
    cells = table(np.array([[1, 1], [1, 0]]), np.array([[1.0, 2.0], [3.0, 0.0]]))
    for name, value in zip(("precision", "recall", "f1"), scores, strict=True):
        found = getattr(fbm, f"bcubed_{name}{end}")(contingency=cells)
        assert found == pytest.approx(float(value), abs=1e-15)


def test_three_scores_at_once():
    cells = table(E17_TABLE)
    assert fbm.bcubed_precision_recall_fscore(contingency=cells) == pytest.approx(
        (193 / 340, 149 / 255, 57514 / 99875)
    )
    assert fbm.precision_recall_fscore(contingency=cells).recall == fbm.recall(contingency=cells)
    elm = fbm.elm_precision_recall_fscore(contingency=cells, beta=math.inf)
    assert elm.fbeta == elm.recall == pytest.approx(42 / 85)
    # METRICS 2.4: beta = 1/3 is alpha = 0.9. A class of 10 takes one item of a class of 2, or
    # the other way round, which must cost less.
    worse, better = np.array([[10, 0], [1, 1]]), np.array([[9, 1], [0, 2]])
    adapted = fbm.adapted_bcubed_precision_recall_fscore
    assert adapted(contingency=table(worse), beta=1 / 3).fbeta == pytest.approx(595 / 761)
    assert adapted(contingency=table(better), beta=1 / 3).fbeta == pytest.approx(775 / 937)
    plain = fbm.fbeta
    assert plain(contingency=table(worse), beta=1 / 3) == pytest.approx(3080 / 3603)
    assert plain(contingency=table(better), beta=1 / 3) == pytest.approx(1360 / 1537)


# -- every matrix ----------------------------------------------------------------------------------


@given(matrices)
def test_formulas_match_exact_fractions(matrix):
    for name, metric in POINTWISE.items():
        exact = float(EXACT[name](*map(Fr, matrix)))
        assert score(name, *matrix) == pytest.approx(exact, rel=1e-12, abs=1e-12), name
        assert metric.low <= score(name, *matrix) <= metric.high, name


@pytest.mark.parametrize("name", POINTWISE)
def test_formulas_work_element_by_element(name):
    """On arrays as on scalars, for every pattern of empty sets, and without changing the input."""
    every = [(2.0, *rest) for rest in itertools.product((0.0, 1.0, 3.0), repeat=3)]
    arrays = [np.array(column) for column in zip(*every, strict=True)]
    kept = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    scores = METRICS[name].formula(*arrays)
    assert scores.shape == (27,)
    assert scores.dtype == np.float64
    assert scores.tolist() == [score(name, *matrix) for matrix in every]
    assert all(np.array_equal(a, b) for a, b in zip(arrays, kept, strict=True))


@pytest.mark.parametrize("name", [*POINTWISE, "adapted_bcubed_precision", "adapted_bcubed_recall"])
@pytest.mark.parametrize("tn", [0.0, 5.0, 1e17])
@pytest.mark.parametrize("tp", [1.0, 3.0, 0.1, 7e99, 1e300, 1e-300, 5e-324])
def test_perfect_is_exact(name, tp, tn):
    assert score(name, tp, 0, 0, tn) == (0.0 if name in LOSSES else 1.0)


@pytest.mark.parametrize("beta", [0.0, 0.1, 1 / 3, 1.0, 2.0, 1e200, math.inf])
def test_perfect_f_is_exact(beta):
    alpha = rates.weight_of_precision(beta)
    assert rates.f_measure(1.0, 1.0, alpha) == 1.0
    assert bcubed.item_fbeta(beta)(0.1, 0.0, 0.0, 7.0) == 1.0


# Sets that are empty (METRICS 0.1): by hand, R = tp / (tp + fn) and so on.
@pytest.mark.parametrize(
    ("name", "matrix", "value"),
    [
        ("specificity", (2, 0, 3, 0), 1.0),  # nothing is truly apart
        ("specificity", (2, 3, 0, 0), 0.0),
        ("npv", (2, 3, 0, 0), 1.0),  # nothing was put apart
        ("npv", (2, 0, 3, 0), 0.0),
        ("informedness", (2, 0, 3, 0), 2 / 5),  # R, where negatives are empty
        ("informedness", (2, 3, 0, 0), 0.0),  # 1 + 0 - 1
        ("markedness", (2, 3, 0, 0), 2 / 5),  # P, where predicted negatives are empty
        ("markedness", (2, 0, 3, 0), 0.0),
        ("balanced_accuracy", (2, 0, 3, 0), 0.7),  # (2/5 + 1) / 2
        ("balanced_accuracy", (2, 3, 0, 0), 0.5),
        ("accuracy", (2, 0, 3, 0), 2 / 5),
        ("mcc", (2, 3, 0, 0), 0.0),  # tn + fn = 0
        ("mcc", (2, 0, 3, 0), 0.0),  # tn + fp = 0
        ("mcc", (2, 0, 0, 0), 1.0),
        ("pointwise_ari", (2, 3, 0, 0), 0.0),
        ("pointwise_ari", (2, 0, 3, 0), 0.0),
        ("pointwise_ari", (2, 0, 0, 0), 1.0),
        ("mcc", (1, 2, 3, 6), 0.0),  # independent: 1 * 6 = 2 * 3
        ("pointwise_ari", (1, 2, 3, 6), 0.0),
    ],
)
def test_empty_sets(name, matrix, value):
    assert score(name, *matrix) == pytest.approx(value, abs=1e-16)


@pytest.mark.parametrize("exponent", [-1000, -400, -1, 1, 333, 1000])
@given(matrix=matrices)
def test_the_unit_of_the_weights_is_free(exponent, matrix):
    """The same bits for 2**exponent times the weights; the symmetric difference has their unit."""
    unit = 2.0**exponent
    for name in POINTWISE:
        scaled = score(name, *(part * unit for part in matrix))
        assert scaled == score(name, *matrix) * (unit if name == "symmetric_difference" else 1)


@pytest.mark.parametrize("name", ["mcc", "pointwise_ari"])
def test_weights_of_very_different_size(name):
    # tp = fn = 1e-200 beside tn = 1: MCC = sqrt(P R NPV TNR) = sqrt(1/2); kappa = 2 R / (1 + R).
    value = math.sqrt(0.5) if name == "mcc" else 2 / 3
    assert score(name, 1e-200, 0, 1e-200, 1) == pytest.approx(value)
    assert score(name, 1e100, 0, 1e100, 1e300) == pytest.approx(value)
    assert score(name, 1, 1e100, 1e100, 1) == pytest.approx(-1)


@given(matrices.filter(all))
def test_mcc_squared_is_informedness_times_markedness(matrix):
    tp, fp, fn, tn = matrix
    product = score("informedness", *matrix) * score("markedness", *matrix)
    mcc = score("mcc", *matrix)
    assert mcc**2 == pytest.approx(product, rel=1e-9, abs=1e-12)
    assert np.sign(mcc) == np.sign(tp * tn - fp * fn)


@given(matrices)
def test_swapping_the_sides(matrix):
    tp, fp, fn, tn = matrix
    pairs = [
        ("precision", "recall"),
        ("over_merge_rate", "under_merge_rate"),
        ("specificity", "npv"),
        ("informedness", "markedness"),
        ("adapted_bcubed_precision", "adapted_bcubed_recall"),
    ]
    there, back = ([Fr(each) for each in sides] for sides in ((2, 3, 5, 7), (2, 5, 3, 7)))
    symmetric = [name for name, twin in EXACT.items() if twin(*there) == twin(*back)]
    for left, right in [*pairs, *((name, name) for name in symmetric)]:
        assert score(left, tp, fp, fn, tn) == score(right, tp, fn, fp, tn)


# -- ELM: matrices without the item itself ---------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "p", "r", "f"),
    [
        ((0, 0, 0), 1, 1, 1),  # alone on both sides
        ((0, 0, 4), 1, 0, 0),  # alone on the predicted side
        ((0, 4, 0), 0, 1, 0),  # alone on the true side
        ((0, 1, 2), 0, 0, 0),
        ((4, 0, 2), 1, 4 / 6, 4 / 5),
        ((2, 1, 3), 2 / 3, 2 / 5, 2 / 4),
        ((1e100, 0, 0), 1, 1, 1),
        # METRICS 3.3: truth {1, 2, 3}, prediction {1, 2}, {3}, weights 1, 2, 3
        ((2, 0, 3), 1, 2 / 5, 4 / 7),
        ((1, 0, 3), 1, 1 / 4, 2 / 5),
        ((0, 0, 3), 1, 0, 0),
    ],
)
@pytest.mark.parametrize("tn", [0.0, 9.0])
def test_elm(matrix, p, r, f, tn):
    matrix = *map(float, matrix), tn
    assert [float(formula(*matrix)) for formula in ELM.values()] == pytest.approx([p, r, f])
    arrays = [np.full(3, x) for x in matrix]
    for formula in ELM.values():
        assert formula(*arrays).tolist() == [formula(*matrix)] * 3


# METRICS 16.4, truth one cluster of n, prediction n singletons: BCubed P = 1, R = 1/n, mean F =
# 2/(n+1); ELM F = 0.
@pytest.mark.parametrize("n", range(2, 9))
def test_elm_gives_nothing_for_an_item_itself(n):
    cells = Contingency.from_cells([0] * n, range(n), [1] * n)
    assert fbm.precision_recall_fscore(contingency=cells)[:2] == pytest.approx((1, 1 / n))
    assert fbm.mean_f1(contingency=cells) == pytest.approx(2 / (n + 1))
    assert fbm.elm_precision_recall_fscore(contingency=cells) == (1, 0, 0)
    assert fbm.elm_mean_f1(contingency=cells) == 0


# -- F ---------------------------------------------------------------------------------------------


def test_f_measure():
    alpha = rates.weight_of_precision(2)
    assert alpha == 1 / 5
    # METRICS 0.2: 5 * 1/2 * 1/4 / (4 * 1/2 + 1/4) = 5/18
    assert rates.f_measure(0.5, 0.25, alpha) == pytest.approx(5 / 18)
    assert bcubed.item_fbeta(2)(1.0, 1.0, 3.0, 0.0) == pytest.approx(5 / 18)  # P 1/2, R 1/4
    assert rates.f_measure(0.5, 0.25, 0.5) == pytest.approx(1 / 3)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0, 2.0, math.inf])
@given(p=st.fractions(0, 1, max_denominator=50), r=st.fractions(0, 1, max_denominator=50))
def test_f_measure_matches_exact_fractions(beta, p, r):
    exact = f_measure(p, r, Fr(0) if beta == math.inf else 1 / (1 + Fr(beta) ** 2))
    found = rates.f_measure(float(p), float(r), rates.weight_of_precision(beta))
    assert found == pytest.approx(float(exact), abs=1e-15)


def test_f_measure_of_arrays():
    p, r = np.array([0.0, 0.0, 1.0, 1.0, np.nan]), np.array([0.0, 1.0, 0.0, 1.0, 1.0])
    for alpha, expected in (0.5, [0, 0, 0, 1, np.nan]), (0.2, [0, 0, 0, 1, np.nan]):
        np.testing.assert_array_equal(rates.f_measure(p, r, alpha), expected)
    assert rates.f_measure(p, r, 1.0) is p
    assert rates.f_measure(p, r, 0.0) is r


@pytest.mark.parametrize("beta", [0.0, 1 / 3, 2.0, 3.0, math.inf])
@given(matrix=matrices)
def test_an_items_own_f_is_that_of_its_precision_and_recall(beta, matrix):
    tp, fp, fn, _ = matrix
    alpha = Fr(0) if beta == math.inf else 1 / (1 + Fr(beta) ** 2)
    exact = f_measure(Fr(tp, tp + fp), Fr(tp, tp + fn), alpha)
    found = bcubed.item_fbeta(beta)(*map(float, matrix))
    assert found == pytest.approx(float(exact), rel=1e-14)


@pytest.mark.parametrize("beta", [-1.0, math.nan, "2", None])
def test_beta_that_is_none(beta):
    with pytest.raises(OptionError, match="beta"):
        rates.weight_of_precision(beta)
    with pytest.raises(OptionError, match="beta"):
        fbm.bcubed_precision_recall_fscore([1], [1], beta=beta)


# -- chance ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("true", "pred"),
    [([3, 1], [2, 2]), ([2, 2, 1], [4, 1]), ([1, 1, 1], [2, 1]), ([4], [1, 3]), ([1], [1])],
)
def test_chance_is_the_mean_over_all_shuffles(true, pred):
    labels_true = np.repeat(range(len(true)), true)
    precisions, recalls = [], []
    for order in itertools.permutations(np.repeat(range(len(pred)), pred)):
        both = [
            (sum(t == s and p == q for s, q in zip(labels_true, order, strict=True)), t, p)
            for t, p in zip(labels_true, order, strict=True)
        ]
        precisions += [Fr(int(mates), pred[p]) for mates, _, p in both]
        recalls += [Fr(int(mates), true[t]) for mates, t, _ in both]
    labels = labels_true, np.repeat(range(len(pred)), pred)
    expected = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    assert fbm.chance_bcubed_precision(*labels) == pytest.approx(float(expected[0]), abs=1e-15)
    assert fbm.chance_bcubed_recall(*labels) == pytest.approx(float(expected[1]), abs=1e-15)


def test_chance_of_huge_clusters():
    """Squares of such counts do not fit into 64 bits."""
    n = 1 << 40
    table = Contingency.from_cells([0, 1], [0, 0], [n // 2, n // 2])
    # All in one cluster: 1/n + (1 - 1/n) * 2 * (n/2) (n/2 - 1) / (n (n - 1)) = 1/2
    assert fbm.chance_bcubed_precision(contingency=table) == pytest.approx(0.5, abs=1e-15)
    assert fbm.chance_bcubed_recall(contingency=table) == 1.0


def test_chance_of_one_item_beside_a_huge_cluster():
    """The square of the number of items leaves no digits for the pairs with that item."""
    n = (1 << 40) + 1
    table = Contingency.from_cells([0, 1], [0, 1], [n - 1, 1])
    # 1 - (n - 2)/n * 2 (n - 1) / (n (n - 1))
    assert 1 - Fr(fbm.chance_bcubed_precision(contingency=table)) == pytest.approx(
        Fr(2 * (n - 2), n * n), abs=2**-53
    )
    assert fbm.adjusted_bcubed_precision(contingency=table) == 1.0


def test_adjusted_where_nothing_can_be_lost():
    def cells(true, pred):
        return Contingency.from_cells(true, pred, [1] * len(true))

    singletons = cells([0, 1, 2], [0, 1, 2])
    assert fbm.adjusted_bcubed_precision(contingency=singletons) == 1
    assert fbm.adjusted_bcubed_recall(contingency=singletons) == 1
    one = cells([0], [0])
    assert fbm.adjusted_bcubed_precision(contingency=one) == 1
    split = cells([0, 0, 0], [0, 1, 2])
    assert fbm.chance_bcubed_precision(contingency=split) == 1
    assert fbm.adjusted_bcubed_precision(contingency=split) == 0  # E[P] = 1, but not identical
    assert fbm.adjusted_bcubed_recall(contingency=split) == 0  # as good as any shuffle
    perfect = Contingency.from_cells([0, 1], [1, 0], [3, 4])
    assert fbm.adjusted_bcubed_precision(contingency=perfect) == 1


# -- the registry ----------------------------------------------------------------------------------

LISTED = {family: [m.name for m in METRICS.values() if m.family == family] for family in FAMILIES}
NEVER_OF_TWO = {name for name, m in METRICS.items() if m.covers_only or m.takes_three}
#: Those that judge a change by the truth.
OF_THREE = {name for name in LISTED["diff"] if METRICS[name].takes_three}


def names_of(*args, **kwargs):
    metrics, not_computed = resolve(*args, **kwargs)
    assert not not_computed
    return [metric.name for metric in metrics]


def test_every_score_is_declared_in_full():
    assert list(FAMILIES) == list(dict.fromkeys(m.family for m in METRICS.values()))
    for name, metric in METRICS.items():
        assert metric.name == name
        of_all = metric.finalize if metric.overall_only else None
        assert [metric.formula, metric.combine, of_all, metric.of_sets].count(None) == 3
        assert (metric.finalize is None) == (metric.sums == ())
        assert bool(metric.needs) == bool(metric.combine)
        assert all(METRICS[needed.name] is needed for needed in metric.needs)
        assert metric.low < metric.high
        assert metric.source == "fastbcubed" or metric.source in REFERENCES
        assert metric.summary.endswith(".")
        assert pickle.loads(pickle.dumps(metric)).definition == metric.definition
    assert {m.name for m in METRICS.values() if m.uses_tn} == set(WITH_TN)


def test_names_by_item():
    assert METRICS["mean_f1"].item_name == "item_f1"
    assert METRICS["elm_mean_f1"].item_name == "elm_item_f1"
    assert METRICS["precision"].item_name == "precision"
    assert METRICS["f1"].item_name is None


def test_default_and_families():
    assert names_of(None) == list(DEFAULT)
    assert names_of("recall") == ["recall"]
    assert names_of(["recall", "precision", "recall"]) == ["recall", "precision"]
    assert names_of([]) == []
    assert set(names_of("bcubed")) == set(LISTED["bcubed"])
    assert names_of(["elm", "elm_f1", "f1"])[-1] == "f1"
    metrics, not_computed = resolve("all")
    assert {name for name, _ in not_computed} == NEVER_OF_TWO
    everything = [metric.name for metric in metrics]
    aliases = {name for name, metric in METRICS.items() if metric.alias_of}
    assert sorted(everything) == sorted(set(METRICS) - aliases - NEVER_OF_TWO - {"fbeta", "mean_fbeta"})
    assert "bcubed_precision" not in everything
    assert names_of(["bcubed_precision", "precision"]) == ["precision"]


def test_a_family_may_borrow_from_another():
    metrics, not_computed = resolve("diff")
    names = [metric.name for metric in metrics]
    assert set(names) == {*LISTED["diff"], "jaccard_distance"} - OF_THREE
    assert {name for name, _ in not_computed} == OF_THREE
    with pytest.raises(MetricError, match=r"^iq is not defined here: .* use fb.diff\(.*truth=truth\)"):
        resolve("iq")
    assert names_of(["split_rate", "under_merge_rate"]) == ["under_merge_rate"]


def test_beta_adds_two_scores_and_nothing_else():
    assert names_of(None, beta=2.0) == [*DEFAULT, "fbeta", "mean_fbeta"]
    assert names_of(["mean_fbeta", "f1"], beta=2.0) == ["mean_fbeta", "f1", "fbeta"]
    assert names_of("fbeta") == ["fbeta"]
    (fbeta, mean_fbeta), _ = resolve(["fbeta", "mean_fbeta"], beta=2.0)
    assert fbeta.combine({"precision": 0.5, "recall": 0.25}, 2.0) == pytest.approx(5 / 18)
    assert mean_fbeta.formula(1.0, 1.0, 3.0, 0.0) == pytest.approx(5 / 18)
    f1 = METRICS["f1"].combine({"precision": 0.5, "recall": 0.25}, 2.0)
    assert f1 == pytest.approx(1 / 3)  # beta = 1 always
    with pytest.raises(OptionError):
        resolve(None, beta=-1.0)


@pytest.mark.parametrize("weighting", ["pointwise", "outer"])
def test_scores_that_weights_rule_out(weighting):
    metrics, not_computed = resolve("all", weighted=True, weighting=weighting)
    left = {name for name, _ in not_computed}
    equal = {name for name, metric in METRICS.items() if metric.unweighted_only}
    inside = {name for name, metric in METRICS.items() if metric.weights_inside and weighting == "outer"}
    assert left == NEVER_OF_TWO | equal | {name for name in inside if not METRICS[name].alias_of}
    assert not left & {metric.name for metric in metrics}
    for name in left - NEVER_OF_TWO:
        why = "count equally.*pass no weights" if name in equal else "not a mean over items.*or no weights"
        with pytest.raises(MetricError, match=f"{name} .*{why}"):
            resolve([name], weighted=True, weighting=weighting)
    with pytest.raises(MetricError):
        resolve(["bcubed", "adapted_bcubed_f1"], weighted=True, weighting=weighting)


def test_scores_that_items_outside_rule_out():
    metrics, not_computed = resolve("all", outside=True)
    left = {name for name, _ in not_computed}
    incomplete = {name for name, metric in METRICS.items() if metric.labelled_only or metric.uses_tn}
    assert left == NEVER_OF_TWO | incomplete
    assert "elm_f1" in {metric.name for metric in metrics}
    with pytest.raises(MetricError, match=r'mcc .*true negatives.*"outside".*unmatched="drop"'):
        resolve("mcc", outside=True)
    assert names_of(None, outside=True) == list(DEFAULT)


def test_names_that_are_none():
    with pytest.raises(MetricError, match="Did you mean 'precision'"):
        resolve("precison")
    with pytest.raises(MetricError, match="Did you mean 'mean_f1'"):
        resolve(["item_f1"])
    with pytest.raises(MetricError, match="'pointwise', 'bcubed', 'elm'"):
        resolve("xyzzy")
    for odd in (3, [len], [None]):
        with pytest.raises(MetricError, match=r"string.*pointwise_score"):
            resolve(odd)


def test_a_formula_of_ones_own():
    metric = lifted(bcubed.precision)
    assert resolve(metric)[0] == [metric]
    assert metric.uses_tn
    assert not lifted(len, outside=True).uses_tn
    cells = table(E17_TABLE)
    assert fbm.pointwise_score(bcubed.recall, contingency=cells) == pytest.approx(149 / 255)
    half = fbm.pointwise_score(
        lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn), None, None, contingency=cells
    )
    assert half == pytest.approx(201 / 289)
    with pytest.raises(OptionError, match="function"):
        fbm.pointwise_score("precision", [1], [1])


def own(name, **formula):
    """Declare a score outside the registry."""
    return Metric(name, "matching", 0.0, 1.0, "higher", "Of one's own.", "a formula", "fastbcubed", **formula)


def always_one(*_):
    return 1.0


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        (["f1", own("precision", formula=always_one)], "two scores would be named 'precision'"),
        ([own("own", score=always_one), own("own", formula=always_one)], "two scores would be named 'own'"),
        ([own("n_items", score=always_one)], "'n_items' is a column"),
        ([own("item_f1", formula=always_one)], "'item_f1' is a column"),
        ([own("f1_se", formula=always_one)], "'f1_se' is a column"),
        ([own("f1_delta", score=always_one)], "'f1_delta' is a column"),
        ([own(3, formula=always_one)], "must be a non-empty string, not 3"),
        ([own("", formula=always_one)], "must be a non-empty string, not ''"),
        ([own("own")], "own has no formula"),
        ([own("own", score=lambda cells, pool: 1 / 0)], "own failed: ZeroDivisionError"),
        ([own("own", score=lambda cells, pool: None)], "own failed: TypeError"),
        ([own("own", score=lambda cells, pool: "0.5")], "own failed: TypeError: '0.5' is not a number"),
        ([own("own", score=lambda cells: 1.0)], "own failed: TypeError"),
    ],
)
def test_scores_of_ones_own_that_cannot_be_had(scores, why):
    """A name of another score changed f1, which is built from it; that of a column was written over it."""
    with pytest.raises(MetricError, match=why):
        fb.evaluate([0, 0, 1], [0, 1, 1], metrics=scores)
    assert fb.evaluate([0, 0, 1], [0, 0, 1], metrics=[own("own", formula=always_one), "f1"]).own == 1


@pytest.mark.parametrize(
    ("function", "labels", "options", "message"),
    [
        (
            fbm.f1,
            ([0, None], [0, 0]),
            {},
            r'the truth .*contingency=fastbcubed.contingency\(..., nulls="drop"\)',
        ),
        (fbm.f1, ([0, 1], [0, 0]), {"sample_weight": [0, 1]}, r'contingency\(..., weighting="outer"\)'),
        (fbm.omega, ({1: {1, None}}, {1: {3}}), {}, r'the truth .*contingency\(..., nulls="drop"\)'),
        (fbm.split_rate, ([0, None], [0, 0]), {}, r'the baseline .*contingency\(..., nulls="drop"\)'),
        (fbm.split_rate, ([0, 1], [0]), {}, "the baseline has 2 labels and the experiment 1"),
        (fbm.bad_merge_rate, ([0, 0], [0, None], [0, 0]), {}, r'the experiment .*diff\(..., nulls="drop"\)'),
        (fbm.bad_merge_rate, ([0, 0], [0, 0], [0, None]), {}, r'the truth .*diff\(..., nulls="drop"\)'),
    ],
)
def test_advice_names_arguments_that_are_there(function, labels, options, message):
    with pytest.raises(FastBCubedError, match=message):
        function(*labels, **options)


# -- the functions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in METRICS if not n.startswith(("extended", "cice"))])
def test_functions_look_like_functions(name):
    function = getattr(fbm, name)
    assert name in fbm.__all__
    assert function.__name__ == name
    assert function.__module__ == "fastbcubed.metrics"
    assert pickle.loads(pickle.dumps(function)) is function
    parameters = inspect.signature(function).parameters
    sides, keywords = ["labels_true", "labels_pred"], ["sample_weight", "contingency"]
    if METRICS[name].family == "diff":
        sides = ["labels_baseline", "labels_experiment"]
    if name in OF_THREE:
        sides, keywords = [*sides, "labels_true"], ["sample_weight"]
    options = {"beta", "base", "average_method", "split_cost", "merge_cost", "zero_division"}
    assert [p for p in parameters if p not in options] == sides + keywords
    assert all(parameters[word].kind is inspect.Parameter.KEYWORD_ONLY for word in keywords)
    sections = ("Parameters", "Returns", "Raises", "Notes", "References", "Examples")
    assert all(f"\n{title}\n{'-' * len(title)}\n" in function.__doc__ for title in sections)
    assert f">>> {name}(" in function.__doc__ or f" = {name}(" in function.__doc__


def test_each_function_has_a_line_of_its_own():
    lines = Path(fbm.__file__).read_text(encoding="utf-8").splitlines()
    for name in fbm.__all__:
        typed = [line for line in lines if line.startswith(f"{name}: ") or f"{name} as {name}" in line]
        assert len(typed) == 1, name
        assert getattr(fbm, name).__module__ == "fastbcubed.metrics"


def test_all_sums_that_scores_take_are_added_up():
    assert {name for metric in METRICS.values() for name in metric.sums} == set(OVERALL)


def test_a_score_is_declared_where_its_formula_stands():
    family = Family("own", low=0.0, high=1.0, best="higher", source="fastbcubed")

    @family.mean_over_items("tp / (tp + 2 fp)", low=-1.0, example=">>> strict(list('ab'), [1, 2])")
    def strict(tp, fp, fn, tn):
        """Mean over items of a share
        of which wrong items take twice as much.

        More is not its summary.
        """
        return tp / (tp + 2 * fp)

    @family.of_means("S^2, with S = strict", family["strict"])
    def squared(s, beta):
        """Square of `strict`."""
        return s * s

    @family.of_sums("V / 2", of="clusters")
    def half(n_items, n_cells, n_true, n_pred):
        """Half of the number of cells."""
        return n_cells / 2

    family.alias("same", family["strict"])
    assert strict(1.0, 1.0, 0.0, 0.0) == 1 / 3  # as it was, to be compiled or called
    assert [metric.name for metric in family] == ["strict", "squared", "half", "same"]
    assert family["strict"].summary == "Mean over items of a share of which wrong items take twice as much."
    assert family["strict"].definition == "mean over items of tp / (tp + 2 fp)"
    assert (family["strict"].low, family["squared"].low, family["same"].alias_of) == (-1.0, 0.0, "strict")
    cells = fb.contingency(list("aab"), [1, 1, 1])  # a: 2 / (2 + 2 * 1); b: 1 / (1 + 2 * 2)
    found = overall(cells, family)
    assert found["strict"] == found["same"] == pytest.approx((2 / 2 + 1 / 5) / 3)
    assert (found["squared"], found["half"]) == (found["strict"] ** 2, 1.0)
    with pytest.raises(ValueError, match="declared twice"):
        family.alias("same", family["half"])


def test_a_contingency_stands_in_for_labels():
    cells = table(E17_TABLE)
    with pytest.raises(OptionError, match="labels_true and labels_pred"):
        fbm.f1()
    with pytest.raises(OptionError, match="labels_true and labels_pred"):
        fbm.f1([1, 2])
    for words in ({"labels_true": [1]}, {"labels_pred": [1]}, {"sample_weight": [1]}):
        with pytest.raises(OptionError, match="Pass one or the other"):
            fbm.f1(**words, contingency=cells)
    assert fbm.f1(contingency=E17_TABLE) == fbm.f1(contingency=cells)  # counts of a matrix
    weighted = table(E17_TABLE, E17_TABLE * 0.5)
    with pytest.raises(MetricError, match="pass no weights"):
        fbm.adjusted_bcubed_recall(contingency=weighted)


def test_an_f_of_another_beta_is_not_called_f1() -> None:
    labels = list("aaaabbbb"), [1, 1, 2, 2, 2, 2, 3, 3]
    for function in (fbm.bcubed_precision_recall_fscore, fbm.pair_precision_recall_fscore):
        one, two = function(*labels), function(*labels, beta=2)
        assert one._fields == ("precision", "recall", "f1") and two._fields == (
            "precision",
            "recall",
            "fbeta",
        )
        assert two.fbeta == pytest.approx(5 * two.precision * two.recall / (4 * two.precision + two.recall))
