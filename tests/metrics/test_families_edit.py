"""Edit distances: against the twin and a search over all partitions, with any costs that have no order."""

import itertools
import math

import naive_families
import numpy as np
import pytest
from effort import examples
from family_pairs import by_item, differences
from hypothesis import given
from hypothesis import strategies as st
from strategies import pairs, weights
from worked import EDIT

import fastbcubed as fb
from fastbcubed import Contingency
from fastbcubed import metrics as fbm
from fastbcubed.errors import MetricError, OptionError
from fastbcubed.kernels.metrics import match
from fastbcubed.metrics.registry import METRICS


@examples(200)
@given(st.data(), pairs(max_size=12))
def test_against_the_twin(data, pair):
    weight = data.draw(weights(len(pair.items)))
    assert differences(pair, weight, [name for name in EDIT if not METRICS[name].alias_of]) == {}


def partitions(n):
    """Yield every partition of n items once, as labels."""
    for labels in itertools.product(range(n), repeat=n):
        if all(label <= max(labels[:k], default=-1) + 1 for k, label in enumerate(labels)):
            yield labels


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize("true", list(partitions(4)))
def test_against_a_search_over_all_partitions(true):
    for pred in partitions(4):
        table = naive_families.Table(dict(enumerate(true)), dict(enumerate(pred)))
        assert fbm.pantel_lin_distance(true, pred) == naive_families.pantel_lin_distance_by_search(table)


@examples(200)
@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_matching_is_the_largest(n_left, n_right, data):
    import scipy.sparse
    from scipy.sparse.csgraph import maximum_bipartite_matching

    edges = data.draw(st.sets(st.tuples(st.integers(0, n_left - 1), st.integers(0, n_right - 1))))
    graph = np.zeros((n_left, n_right), np.int8)
    for edge in edges:
        graph[edge] = 1
    first = np.r_[0, np.cumsum(graph.sum(axis=1, dtype=np.int64))]
    found = match(first, np.nonzero(graph)[1], n_right)
    expected = (maximum_bipartite_matching(scipy.sparse.csr_matrix(graph)) >= 0).sum()
    assert found == expected


@pytest.mark.slow
def test_ties_at_size():
    """A long path of ties: only one way to match them all, from its end."""
    n = 300_000
    pred = np.repeat(np.arange(n), 2)
    true = pred + np.tile([0, 1], n)
    true[-1] = n - 1  # the last cluster has one class, so each other one has the class before
    assert fbm.pantel_lin_distance(true, pred) == n - 1  # one of two items moves, from all but one cluster
    rng = np.random.default_rng(1)
    table = Contingency.from_cells(
        rng.integers(0, 5000, 20_000), rng.integers(0, 5000, 20_000), np.ones(20_000, int)
    )
    import scipy.sparse
    from scipy.sparse.csgraph import maximum_bipartite_matching

    best = np.zeros(5000, np.int64)
    np.maximum.at(best, table.pred, table.n)
    tied = table.n == best[table.pred]
    graph = scipy.sparse.csr_matrix(
        (np.ones(tied.sum(), np.int8), (table.pred[tied], table.true[tied])), (5000, 5000)
    )
    matched = (maximum_bipartite_matching(graph) >= 0).sum()
    expected = table.n_items - best.sum() + table.n_pred - matched
    assert fbm.pantel_lin_distance(contingency=table) == expected


COSTS = {
    "one": 1,
    "three": 3.0,
    "pairs": lambda x, y: x * y,
    "none": 0,
}


@examples(100)
@given(st.data(), pairs(unmatched=False), st.sampled_from(list(COSTS)), st.sampled_from(list(COSTS)))
def test_costs_against_the_twin(data, pair, split, merge):
    weight = data.draw(weights(len(pair.items)).filter(lambda w: w is None or max(w) <= 1e3))
    table = fb.contingency(*pair, weight=by_item(pair, weight))
    found = fbm.merge_distance(contingency=table, split_cost=COSTS[split], merge_cost=COSTS[merge])
    cost = lambda which: which if callable(which) else lambda x, y: which  # noqa: E731
    twin = naive_families.Table(*pair, by_item(pair, weight))
    expected = naive_families.merge_distance(twin, cost(COSTS[split]), cost(COSTS[merge]))
    assert found == pytest.approx(float(expected), rel=1e-12)


@examples(60)
@given(pairs(unmatched=False))
def test_costs_that_give_other_scores(pair):
    table = fb.contingency(*pair)
    n = table.n_items
    h = lambda x: x / n * np.log2(x / n)  # noqa: E731
    cost = {
        "pair_fp": {"split_cost": lambda x, y: x * y, "merge_cost": 0},
        "pair_fn": {"split_cost": 0, "merge_cost": lambda x, y: x * y},
        "variation_of_information": dict.fromkeys(
            ["split_cost", "merge_cost"], lambda x, y: h(x + y) - h(x) - h(y)
        ),
        "basic_merge_distance": {},
    }
    for name, costs in cost.items():
        expected = getattr(fbm, name)(contingency=table)
        assert fbm.merge_distance(contingency=table, **costs) == pytest.approx(expected, abs=1e-12), name


ORDERED = [lambda x, y: x, lambda x, y: np.minimum(x, y), lambda x, y: x + y, lambda x, y: np.sqrt(x * y)]


@pytest.mark.parametrize("cost", ORDERED)
@pytest.mark.parametrize("which", ["split_cost", "merge_cost"])
def test_costs_with_an_order_are_refused(cost, which):
    with pytest.raises(MetricError, match=f"{which} depends on the order of the steps: for blocks of sizes"):
        fbm.merge_distance([0, 0, 1], [0, 0, 1], **{which: cost})  # even where there is nothing to do


@pytest.mark.parametrize("cost", [lambda x, y: "much", lambda x, y: np.ones(3), lambda x, y: x * math.nan])
def test_costs_that_are_none(cost):
    with pytest.raises(MetricError, match="split_cost gave"):
        fbm.merge_distance([0, 0, 1], [0, 1, 1], split_cost=cost)
    with pytest.raises(OptionError, match="merge_cost must be a number, or a function"):
        fbm.merge_distance([0, 0, 1], [0, 1, 1], merge_cost="much")


def test_where_they_are_not_defined():
    truth, prediction = {"a": 0, "b": 0}, {"a": 1, "b": 1, "c": 1}
    for name in EDIT:
        with pytest.raises(MetricError, match=f"{name} .*outside"):
            fb.evaluate(truth, prediction, unmatched="outside", metrics=name)
    with pytest.raises(MetricError, match="outside"):
        fbm.merge_distance(contingency=fb.contingency(truth, prediction, unmatched="outside"))


def test_no_slices():
    ev = fb.evaluate([0, 0, 1, 1], [0, 0, 1, 2], metrics="edit")
    assert not set(EDIT) & set(ev.slices("true_size").column_names)
    assert "merge_distance" not in ev.overall and ev.overall["basic_merge_distance"] == 1


@pytest.mark.slow
def test_threads_and_blocks():
    rng = np.random.default_rng(5)
    true, pred = rng.integers(0, 150_000, 400_000), rng.integers(0, 150_000, 400_000)
    runs = [fb.evaluate(true, pred, metrics="edit", threads=k).overall for k in (1, 2, 4)]
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0, 5_000])
def test_parts_have_clusters_of_their_own(missing):
    """What is found part by part is what is found in the same cells as one part."""
    rng = np.random.default_rng(3)
    true, pred = rng.integers(0, 30_000, 70_000), rng.integers(0, 25_000, 70_000)
    sides = [dict(enumerate(true.tolist())), dict(enumerate(pred.tolist()))]
    for item in range(missing):
        del sides[item % 2][item]
    table = fb.contingency(*sides)
    parts = [set(table.pred[a:b].tolist()) for a, b in itertools.pairwise(table.parts)]
    assert len(parts) > 2
    assert sum(map(len, parts)) == len(set.union(*parts)) == table.n_pred
    assert table.n_true == len(set(table.true.tolist()))
    whole = Contingency.from_cells(table.true, table.pred, table.n)
    for name in ("pantel_lin_distance", "pantel_lin", "basic_merge_distance"):
        assert getattr(fbm, name)(contingency=table) == getattr(fbm, name)(contingency=whole)
