"""Entropies: against the twin and scikit-learn, with weights of any range, and chance at any size."""

import itertools
import math

import naive_families
import numpy as np
import pytest
import sklearn.metrics
from effort import examples
from family_pairs import differences
from hypothesis import given
from hypothesis import strategies as st
from strategies import label_arrays, pairs, weights
from worked import ENTROPY

import fastbcubed as fb
from fastbcubed import Contingency, kernels
from fastbcubed import metrics as fbm
from fastbcubed.errors import MetricError, OptionError
from fastbcubed.metrics import compiled
from fastbcubed.metrics.registry import METRICS

COUNTS_ONLY = [name for name in ENTROPY if METRICS[name].unweighted_only]
#: These are sums of many logarithms.
ROOM = dict.fromkeys(COUNTS_ONLY, 1e-9)
AVERAGES = ("arithmetic", "geometric", "min", "max")


@examples(150)
@given(pairs())
def test_against_the_twin(pair):
    assert differences(pair, None, ENTROPY, ROOM) == {}


@examples(150)
@given(st.data(), pairs())
def test_with_weights_of_any_range(data, pair):
    weight = data.draw(weights(len(pair.items)).filter(lambda w: w is not None))
    assert differences(pair, weight, [name for name in ENTROPY if name not in COUNTS_ONLY]) == {}


def test_one_cluster_has_nearly_all_weight():
    """What is left beside it has 30 digits less, and is all that the entropies are made of."""
    true, pred, weight = [0, 0, 1, 2], [0, 0, 1, 1], [1e15, 3e15, 1e-15, 1e-15]
    found = fb.evaluate(true, pred, weight=weight, metrics=["homogeneity", "mutual_info", "nmi"]).overall
    light, n = 1e-15, 4e15
    # 2 x log(N / x), and (N - 2 x) log(N / (N - 2 x)) = 2 x
    h_c = 2 * light / n * (math.log2(n / light) + math.log2(math.e) / 1)
    assert found["homogeneity"] == pytest.approx(1 - 2 * light / n / h_c, abs=1e-12)
    assert found["mutual_info"] == pytest.approx(h_c - 2 * light / n, rel=1e-12)
    equal = fb.evaluate(true, true, weight=weight, metrics=["homogeneity", "nmi", "cluster_entropy"]).overall
    assert list(equal.values()) == [1, 1, 0]
    one = fb.evaluate(
        [0] * 3, [0, 0, 1], weight=[0.1, 0.2, 0.3], metrics=["homogeneity", "nmi", "completeness"]
    )
    assert list(one.overall.values()) == [1, 0, 0]  # one class by count, though 0.1 + 0.2 + 0.3 rounds


@pytest.mark.parametrize("exponent", [4, 6, 9, 12])
def test_one_cluster_has_nearly_all_items(exponent):
    """An entropy knows a count by its share alone: the twin has an item for each cell, which weighs as much."""
    true, pred, n = [0, 0, 1, 1, 2], [0, 1, 0, 1, 2], np.array([10**exponent, 2, 1, 2, 3])
    cells = Contingency.from_cells(true, pred, n)
    truth, prediction = (dict(enumerate(codes)) for codes in (true, pred))
    weights = dict(enumerate(n.tolist()))
    for name in ("cluster_entropy", "class_entropy", "variation_of_information"):
        expected = float(naive_families.score(name, truth, prediction, weights))
        assert getattr(fbm, name)(contingency=cells) == pytest.approx(expected, rel=1e-14, abs=0), name
    for name in (
        "homogeneity_score",
        "completeness_score",
        "v_measure_score",
        "normalized_mutual_info_score",
    ):
        twin = {"normalized_mutual_info_score": "nmi"}.get(name, name.removesuffix("_score"))
        expected = float(naive_families.score(twin, truth, prediction, weights))
        assert getattr(fbm, name)(contingency=cells) == pytest.approx(expected, rel=1e-14, abs=0), name


@pytest.mark.slow
@examples(150)
@given(label_arrays(max_size=60), st.floats(0.01, 10))
def test_against_scikit_learn(arrays, beta):
    true, pred = arrays
    close = lambda x: pytest.approx(x, abs=1e-12)  # noqa: E731
    ours, theirs = fbm, sklearn.metrics
    assert ours.mutual_info_score(true, pred) == close(theirs.mutual_info_score(true, pred))
    three = theirs.homogeneity_completeness_v_measure(true, pred, beta=beta)
    assert ours.homogeneity_completeness_v_measure(true, pred, beta=beta) == close(three)
    assert ours.v_measure_score(true, pred, beta=beta) == close(theirs.v_measure_score(true, pred, beta=beta))
    assert ours.homogeneity_score(true, pred) == close(theirs.homogeneity_score(true, pred))
    assert ours.completeness_score(true, pred) == close(theirs.completeness_score(true, pred))
    trivial = {len(set(true)), len(set(pred))} & {1, len(true)}
    for average in AVERAGES:
        expected = theirs.normalized_mutual_info_score(true, pred, average_method=average)
        assert ours.normalized_mutual_info_score(true, pred, average_method=average) == close(expected)
        if not trivial:
            expected = theirs.adjusted_mutual_info_score(true, pred, average_method=average)
            found = ours.adjusted_mutual_info_score(true, pred, average_method=average)
            assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("average", AVERAGES)
def test_chance_has_nothing_to_add_to_trivial_sides(average):
    """(scikit-learn divides what rounding leaves by the smallest float there.)"""
    alone, one, other = [0, 1, 2, 3], [0] * 4, [0, 0, 1, 1]
    for true, pred in itertools.product([alone, one, other], repeat=2):
        expected = float(true == pred)
        assert (
            fbm.adjusted_mutual_info_score(true, pred, average_method=average) == expected
            or true == pred == other
        )
        assert fbm.ami(true, true, average_method=average) == 1


@pytest.mark.parametrize(
    ("true", "pred"), [([0, 0, 1, 1, 2], [0, 1, 1, 2, 2]), ([0, 0, 0, 1, 2], [0, 0, 1, 1, 1])]
)
def test_expected_information_is_the_mean_over_all_shuffles(true, pred):
    found = [fbm.mutual_info(true, list(p)) for p in itertools.permutations(pred)]
    assert fbm.expected_mutual_info(true, pred) == pytest.approx(math.fsum(found) / len(found), abs=1e-14)


def naive_expectation(n, a, b):
    """E[k/n log2(n k / (a b))] for clusters of sizes a and b, with binomials of integers."""
    whole, terms = math.comb(n, b), []
    for k in range(max(1, a + b - n), min(a, b) + 1):
        chance = math.comb(a, k) * math.comb(n - a, b - k) / whole
        terms.append(chance * k / n * math.log2(n * k / (a * b)))
    return math.fsum(terms)


def test_expected_information_of_large_clusters():
    sizes = [700, 200, 99, 1], [500, 400, 60, 40]
    table = Contingency.from_cells([0, 0, 1, 1, 2, 3], [0, 1, 1, 2, 3, 0][:6], [1] * 6)
    n = 1000
    cells = [(i, j) for i in range(4) for j in range(4)]
    # north-west corner: any cells with these margins do
    left, right, filled = list(sizes[0]), list(sizes[1]), []
    for i, j in cells:
        k = min(left[i], right[j])
        left[i], right[j] = left[i] - k, right[j] - k
        filled.append(k)
    table = Contingency.from_cells(*zip(*cells, strict=True), filled)
    expected = math.fsum(naive_expectation(n, a, b) for a in sizes[0] for b in sizes[1])
    assert fbm.expected_mutual_info(contingency=table) == pytest.approx(expected, abs=1e-12)


def test_chance_at_the_size_of_entity_resolution():
    """1e6 items in 4e5 clusters of a few sizes on each side: equal sizes are handled together."""
    rng = np.random.default_rng(3)
    true = rng.integers(0, 400_000, 1_000_000)
    pred = np.where(rng.random(true.size) < 0.9, true, rng.integers(0, 400_000, true.size))
    table = fb.contingency(true, pred)
    expected = 0.0
    sizes = [np.unique(np.bincount(labels), return_counts=True) for labels in (true, pred)]
    for a, many in zip(*sizes[0], strict=True):
        for b, others in zip(*sizes[1], strict=True):
            if a and b:
                expected += many * others * naive_small(true.size, int(a), int(b))
    assert fbm.expected_mutual_info(contingency=table) == pytest.approx(expected, rel=1e-10)
    assert 0.5 < fbm.ami(contingency=table) < 1


def naive_small(n, a, b):
    """The same for small clusters of many items, by products of ratios."""
    terms = []
    for k in range(1, min(a, b) + 1):
        chance = math.comb(a, k) * math.comb(b, k) * math.factorial(k)
        log = (
            math.log(chance)
            + sum(math.log1p(-(a + t) / n) for t in range(b - k))
            - sum(math.log1p(-t / n) for t in range(b))
        )
        terms.append(math.exp(log - k * math.log(n)) * k / n * math.log2(n * k / (a * b)))
    return math.fsum(terms)


def test_clusters_larger_than_the_table_of_logarithms():
    n = 10_000
    true, pred = np.arange(n) % 2, np.r_[np.zeros(n - 10, int), np.arange(1, 11)]
    found = fb.evaluate(true, pred, metrics="entropy").overall
    big = n - 10
    half = big // 2
    assert found["cluster_entropy"] == pytest.approx(big / n, abs=1e-13)
    assert found["mutual_info"] == pytest.approx(10 / n, abs=1e-13)
    expected = 10 * naive_expectation(n, 5000, 1) * 2 + naive_expectation(n, 5000, big) * 2
    assert half == 4995 and found["expected_mutual_info"] == pytest.approx(expected, abs=1e-13)
    q0 = big / n + (math.log2(big + 1) + 10) / n  # C(b + 1, 1)
    assert found["dom_q0"] == pytest.approx(q0, abs=1e-13)
    assert found["dom_q2"] == pytest.approx(2 * math.log2(5001) / n / q0, abs=1e-13)
    mirrored = fb.evaluate(pred, true, metrics="dom_q0").overall["dom_q0"]
    # 11 classes: C(5000 + 10, 10) for both clusters, and H(C|K) = H(K) - I
    entropy = -big / n * math.log2(big / n) + 10 / n * math.log2(n)
    told = entropy - 10 / n + 2 * math.log2(math.comb(5010, 10)) / n
    assert mirrored == pytest.approx(told, abs=1e-11)


def test_by_slice_and_by_item():
    ev = fb.evaluate([0, 0, 1, 1], [0, 0, 1, 2], metrics="entropy")
    found = ev.slices("true_size").to_pylist()[0]
    assert set(found) & set(ENTROPY) == {"cluster_entropy", "class_entropy", "variation_of_information"}
    assert ev.items()["class_entropy"].to_pylist() == [0, 0, 1, 1]
    assert ev.items()["variation_of_information"].to_pylist() == [0, 0, 1, 1]
    assert ev.clusters("true")["class_entropy"].to_pylist() == [1, 0] or ev.overall["class_entropy"] == 0.5


def test_combined_entropy():
    labels = [0, 0, 1, 1, 1], [0, 1, 1, 2, 2]
    of_cluster, of_class = fbm.cluster_entropy(*labels), fbm.class_entropy(*labels)
    assert fbm.combined_entropy(*labels) == pytest.approx(
        fbm.variation_of_information(*labels) / 2, rel=1e-15
    )
    assert [fbm.combined_entropy(*labels, beta=beta) for beta in (1, 0)] == [of_cluster, of_class]
    for beta in (-0.1, 1.5, math.nan, "half"):
        with pytest.raises(OptionError, match="beta"):
            fbm.combined_entropy(*labels, beta=beta)


def test_where_they_are_not_defined():
    labels = [0, 0, 1], [0, 1, 1]
    for name in COUNTS_ONLY:
        with pytest.raises(MetricError, match=f"{name} .*count equally"):
            fb.evaluate(*labels, weight=[1, 2, 3], metrics=name)
    ev = fb.evaluate(*labels, weight=[1, 2, 3], metrics="entropy")
    assert set(ev.not_computed) == set(COUNTS_ONLY)
    with pytest.raises(MetricError, match=r"v_measure .*weighting"):
        fb.evaluate(*labels, weight=[1, 2, 3], weighting="outer", metrics="v_measure")
    outer = fb.evaluate(*labels, weight=[1, 2, 3], weighting="outer", metrics="cluster_entropy").overall
    assert outer["cluster_entropy"] == pytest.approx((2 + 3) / 6)
    truth, prediction = {"a": 0, "b": 0}, {"a": 1, "b": 1, "c": 1}
    found = fb.evaluate(truth, prediction, unmatched="outside", metrics="entropy")
    assert found.overall["cluster_entropy"] == pytest.approx(math.log2(3 / 2))
    assert "nmi" in found.not_computed
    for base in (0, 1, -2, math.inf, math.nan, "e"):
        with pytest.raises(OptionError, match="base"):
            fbm.mutual_info(*labels, base=base)
    with pytest.raises(OptionError, match="average_method must be one of arithmetic, geometric"):
        fbm.nmi(*labels, average_method="mean")
    with pytest.raises(OptionError, match="beta"):
        fbm.v_measure(*labels, beta=-1)


def test_units():
    labels = [0, 0, 1, 1], [0, 0, 1, 2]
    assert fbm.mutual_info(*labels) == 1
    assert fbm.mutual_info(*labels, base=math.e) == pytest.approx(fbm.mutual_info_score(*labels), abs=1e-15)
    assert fbm.mutual_info_score(*labels, base=2) == pytest.approx(1, abs=1e-15)
    assert fbm.nmi(*labels, average_method="joint") == pytest.approx(1 / 1.5, abs=1e-15)
    assert fbm.v_measure(*labels, beta=math.inf) == pytest.approx(fbm.completeness(*labels), abs=1e-15)
    assert fbm.v_measure(*labels, beta=0) == fbm.homogeneity(*labels) == 1


@pytest.mark.slow
def test_threads_and_blocks():
    rng = np.random.default_rng(5)
    true, pred = rng.integers(0, 150_000, 400_000), rng.integers(0, 150_000, 400_000)
    for weight in (None, rng.uniform(1, 10, true.size)):
        runs = [
            fb.evaluate(true, pred, weight=weight, metrics="entropy", threads=k).overall for k in (1, 2, 4)
        ]
        assert runs[0] == runs[1] == runs[2]
    assert fbm.v_measure(true, pred) == pytest.approx(sklearn.metrics.v_measure_score(true, pred), abs=1e-12)


@examples(50)
@given(st.lists(st.floats(0.0, 1e308), min_size=1, max_size=40), st.integers(-60, 60), st.floats(0.25, 4.0))
def test_logarithms_of_several_numbers_at_a_time(values, exponent, below):
    given = np.array([min(value * 2.0**exponent, 1e307) for value in values])
    found = given.copy()
    kernels.metrics.take_logs(found, np.full(found.size, below), found.size)
    expected = [math.log1p(value / below) for value in given.tolist()]
    assert found.tolist() == pytest.approx(expected, rel=4 * 2.0**-52, abs=0.0)


def test_means_that_are_known_take_no_pass_over_the_cells(monkeypatch):
    cells = fb.contingency(list("aabb"), [1, 1, 2, 3], weight=[1.0, 2.0, 3.0, 2.0])
    monkeypatch.setattr(compiled, "sum_scores", None)
    # of true clusters b, the predicted ones hold 3 of 5 and 2 of 5, which is 5 of 8 items by weight
    expected = (3 * math.log2(5 / 3) + 2 * math.log2(5 / 2)) / 8
    assert fbm.class_entropy(contingency=cells) == pytest.approx(expected, rel=1e-14)
