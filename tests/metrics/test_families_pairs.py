"""Pair counting: against the twin and scikit-learn, exact at any width, with weights of any range."""

import itertools
import warnings

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics
from effort import examples
from family_pairs import differences, evaluate
from hypothesis import given
from hypothesis import strategies as st
from strategies import label_arrays, pairs, weights
from twins import partners
from worked import PAIRS

import fastbcubed as fb
from fastbcubed import Contingency
from fastbcubed import metrics as fbm
from fastbcubed.errors import MetricError, WeightError
from fastbcubed.metrics.fast_sums import pair_counts
from fastbcubed.runtime.threads import Pool

SCIKIT = ("rand_score", "adjusted_rand_score", "fowlkes_mallows_score")


@examples(200)
@given(st.data(), pairs())
def test_against_the_twin(data, pair):
    weight = data.draw(weights(len(pair.items)))
    assert differences(pair, weight, PAIRS) == {}


@pytest.mark.parametrize("scale", [1e-120, 1e-40, 1e100])
def test_scale_of_the_weights(scale):
    truth, prediction = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]
    plain = fb.evaluate(truth, prediction, weight=[1, 2, 3, 4, 5, 6], metrics="pairs").overall
    scaled = fb.evaluate(truth, prediction, weight=scale * np.arange(1.0, 7.0), metrics="pairs").overall
    for name in PAIRS:
        by = scale**2 if name in ("mirkin", "pair_tp", "pair_fp", "pair_fn", "pair_tn") else 1.0
        assert scaled[name] == pytest.approx(plain[name] * by, rel=1e-14), name


def test_a_light_pair_among_heavy_singletons():
    """The squares of the weights cancel, and the pairs are added up item by item instead."""
    truth, weight = [0, 1, 2, 2, 2], [1e15, 3e15, 1e-10, 2e-10, 3e-10]
    found = fb.evaluate(truth, truth, weight=weight, metrics=["pair_tp", "pair_precision"]).overall
    assert found["pair_tp"] == pytest.approx((2 + 3 + 6) * 1e-20, rel=1e-14)
    assert found["pair_precision"] == 1
    truth, weight = [0, 0, 0], [1e15, 1e-10, 2e-10]  # one heavy item in the cell
    found = fb.evaluate(truth, truth, weight=weight, metrics="pair_tp").overall
    assert found["pair_tp"] == pytest.approx(3e5, rel=1e-14)


def test_light_pairs_apart():
    """All but two items are in one cluster, which leaves few pairs apart."""
    truth, weight = [0, 0, 0, 1, 2], [1e15, 1e15, 2e15, 1e-15, 3e-15]
    found = fb.evaluate(truth, truth, weight=weight, metrics=["pair_tn", "adjusted_rand"]).overall
    assert found["pair_tn"] == pytest.approx(4e15 * 4e-15 + 3e-30, rel=1e-14)
    together = fb.evaluate([0] * 3, [0] * 3, weight=[0.1, 0.2, 0.3], metrics="pair_tn").overall
    assert together["pair_tn"] == 0  # by count, though 0.1 + 0.2 + 0.3 is not what it should be


@examples(200)
@given(label_arrays(max_size=60))
def test_against_scikit_learn(arrays):
    true, pred = arrays
    matrix = fbm.pair_confusion_matrix(true, pred)
    assert matrix.dtype == np.int64
    assert np.array_equal(matrix, sklearn.metrics.pair_confusion_matrix(true, pred))
    for name in SCIKIT:
        expected = getattr(sklearn.metrics, name)(true, pred)
        if name == "fowlkes_mallows_score" and len(set(true)) == len(set(pred)) == len(true):
            assert (fbm.fowlkes_mallows_score(true, pred), expected) == (1, 0)  # singletons on both sides
        else:
            assert getattr(fbm, name)(true, pred) == pytest.approx(expected, abs=1e-12), name


def counts(true, pred, n):
    return Contingency.from_cells(true, pred, n).once(pair_counts, Pool(1))


@examples(100)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 2**58)), min_size=1, max_size=9)
)
def test_counts_are_exact_integers(cells):
    """(Python integers, from the definition.)"""
    table = {}
    for i, j, n in cells:
        table[i, j] = table.get((i, j), 0) + n
    rows = [sum(n for (i, _), n in table.items() if i == k) for k in range(4)]
    columns = [sum(n for (_, j), n in table.items() if j == k) for k in range(4)]
    choose = lambda n: n * (n - 1) // 2  # noqa: E731
    together = sum(map(choose, table.values()))
    in_pred, in_true, every = sum(map(choose, columns)), sum(map(choose, rows)), choose(sum(rows))
    apart = every - in_pred - in_true + together
    expected = together, in_pred - together, in_true - together, apart
    assert counts(*zip(*cells, strict=True)) == expected


@pytest.mark.parametrize("n", [2**31, 2**32 - 1, 2**32, 2**32 + 1, 10**10, 2**52, 2**53 + 1, 2**61 + 1])
def test_wide_counts(n):
    found = counts([0, 0, 1], [0, 1, 1], [n, 3, n])
    # together n (n-1) / 2 twice and 3; in the prediction alone 3 n, and 3 n in the truth; apart n * n
    assert found == (n * (n - 1) + 3, 3 * n, 3 * n, n * n)
    table = Contingency.from_cells([0, 0, 1], [0, 1, 1], [n, 3, n])
    matrix = fbm.pair_confusion_matrix(contingency=table).tolist()
    assert matrix == [[2 * n * n, 6 * n], [6 * n, 2 * n * (n - 1) + 6]]
    assert fbm.pair_precision(contingency=table) == (n * (n - 1) + 3) / (n * (n - 1) + 3 + 3 * n)


def test_counts_that_no_integer_holds():
    with pytest.raises(fb.FastBCubedError, match="more than"):
        Contingency.from_cells([0, 1], [0, 0], [2**62, 2**62])


def test_ten_billion_items_in_clusters_of_a_billion():
    k, own = np.arange(10), 10**9 * (10**9 - 1) // 2
    found = counts(k, k // 2, np.full(10, 10**9))
    assert found == (10 * own, 5 * 10**18, 0, 10**10 * (10**10 - 1) // 2 - 10 * own - 5 * 10**18)
    n = 2**62 + 1
    assert counts([0], [0], [n]) == (n * (n - 1) // 2, 0, 0, 0)


def test_weights_need_the_items():
    table = Contingency.from_cells([0, 0, 1], [0, 1, 1], [2, 1, 1], [2.5, 1.0, 2.0])
    with pytest.raises(MetricError, match=r"squares of the weights.*weight_squares"):
        fbm.rand(contingency=table)
    assert fbm.pair_fp(contingency=table) == 2.0  # 1 * 2
    assert fbm.mirkin(contingency=table) == 2 * (2.0 + 2.5)
    single = Contingency.from_cells([0, 0, 1], [0, 1, 1], [1, 1, 1], [2.5, 1.0, 2.0])
    assert fbm.pair_tp(contingency=single) == 0  # no cell has a pair


def test_where_they_are_not_defined():
    with pytest.raises(MetricError, match=r"rand is not defined.*weighting"):
        fb.evaluate([0, 0, 1], [0, 1, 1], weight=[1, 2, 3], weighting="outer", metrics="rand")
    ev = fb.evaluate([0, 0, 1], [0, 1, 1], weight=[1, 2, 3], weighting="outer", metrics="all")
    assert set(PAIRS) <= set(ev.not_computed)
    assert fb.evaluate([0, 0, 1], [0, 1, 1], weighting="outer", metrics="rand").overall[
        "rand"
    ] == pytest.approx(1 / 3)
    outside = {"a": 0, "b": 0}, {"a": 1, "b": 2, "c": 1}
    with pytest.raises(MetricError, match="outside"):
        fb.evaluate(*outside, unmatched="outside", metrics="pair_precision")


def test_squares_stand_in_for_the_items(tmp_path):
    """Weights 1, 2 | 3 | 4, 5, 6 by cell: pairs in cells weigh 2 and 20 + 24 + 30; squares 5, 9 and 77."""
    true, pred, weight = [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1], [1, 2, 3, 4, 5, 6]
    whole = fb.evaluate(true, pred, weight=weight, metrics="pairs")
    assert whole.overall["pair_tp"] == 76
    cells = [0, 0, 1], [0, 1, 1], [2, 1, 3], [3.0, 3.0, 15.0]
    table = Contingency.from_cells(*cells, weight_squares=[5.0, 9.0, 77.0])
    halves = [np.repeat(np.array(column), 2) for column in cells[:2]], [1, 1, 1, 0, 1, 2]
    parts = Contingency.from_cells(
        *halves[0], halves[1], [1, 2, 3, 0, 4, 11], weight_squares=[1, 4, 9, 0, 16, 61]
    )
    whole.save(tmp_path, keep="cells")
    for name in PAIRS:
        for other in (table, parts):
            assert getattr(fbm, name)(contingency=other) == whole.overall[name]
        assert fb.load(tmp_path).metric(name) == whole.overall[name]
    for wrong in ([-1, 0, 0], [np.nan, 0, 0]):
        with pytest.raises(WeightError, match="weight_squares"):
            Contingency.from_cells(*cells, weight_squares=wrong)
    # 1 and 2 have the squares 5, two weights of sum 3 between 2 * 1.5^2 and 3^2, three of sum 15 from 3 * 5^2 on
    for wrong, said in {
        (
            9.5,
            9.0,
            77.0,
        ): r"in 1 of 3 cells \(first: cell 0, with 9.5; 2 items with a total weight of 3 allow 4.5 to 9\)",
        (4.4, 9.1, 74.0): r"in 3 of 3 cells \(first: cell 0, with 4.4;",
        (5.0, 8.9, 77.0): r"1 item with a total weight of 3 allow 9 to 9",
    }.items():
        with pytest.raises(WeightError, match=said):
            Contingency.from_cells(*cells, weight_squares=wrong)
    Contingency.from_cells(*cells, weight_squares=[9.0, 9.0, 75.0])
    with pytest.raises(WeightError, match="requires weight"):
        Contingency.from_cells(*cells[:3], weight_squares=[1, 1, 1])


@examples(50)
@given(pairs(max_size=7), st.permutations(range(4)))
def test_swapping_the_sides(pair, _):
    ev, back = (
        evaluate(pair, metrics="pairs").overall,
        evaluate(type(pair)(*pair[::-1]), metrics="pairs").overall,
    )
    for name in PAIRS:
        assert {back[partner] for partner in partners()[name] if partner in PAIRS} <= {ev[name]}


@pytest.mark.slow
def test_threads_and_blocks():
    rng = np.random.default_rng(5)
    true, pred = rng.integers(0, 200_000, 400_000), rng.integers(0, 200_000, 400_000)
    weight = rng.uniform(1, 10, true.size)
    for given_weight in (None, weight):
        runs = [
            fb.evaluate(true, pred, weight=given_weight, metrics="pairs", threads=k).overall
            for k in (1, 2, 4)
        ]
        assert runs[0] == runs[1] == runs[2]
    assert fbm.adjusted_rand(true, pred) == pytest.approx(
        sklearn.metrics.adjusted_rand_score(true, pred), abs=1e-14
    )


def test_every_pair_of_partitions_of_four():
    """Adjusted for chance: over all shuffles of the items the mean is 0."""
    for true, pred in itertools.product([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 2]], repeat=2):
        found = [fbm.adjusted_rand(true, list(p)) for p in itertools.permutations(pred)]
        assert np.mean(found) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_items_without_a_weight_that_are_not_scored(engine, tmp_path):
    """The truth has the weights, and not all of the items that the prediction has."""
    truth = pa.table({"item": list("abc"), "cluster": [1, 1, 1], "w": [1.0, 2.0, 3.0]})
    prediction = pa.table({"item": list("abcd"), "cluster": [1, 1, 2, 2]})
    options = {"weight": "w", "metrics": ["precision"], "engine": engine, "keep": "items"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fb.EvaluationWarning)
        ev = fb.evaluate(truth, prediction, **options, out=tmp_path / "out")
    ev.save(tmp_path / "saved")
    for each in (ev, fb.load(tmp_path / "out"), fb.load(tmp_path / "saved")):
        assert each.metric("pair_tp") == 1 * 2
        assert each.metric("pair_fn") == 1 * 3 + 2 * 3
        assert each.metric("pair_precision") == 1
        assert each.metric("pair_recall") == 2 / 11
