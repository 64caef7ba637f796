"""Standard errors against the naive twin: weights, policies, slices, covers, either engine, every kind of unit."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import naive
import naive_errors as twin
import naive_overlap
import numpy as np
import pytest
from both_engines import both
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import POLICIES, aligned_pairs, pairs, weights
from strategies_overlap import covers, item_weights

import fastbcubed as fb
from fastbcubed.errors import EvaluationWarning, WeightError
from fastbcubed.metrics.registry import METRICS
from fastbcubed.results.standard_errors import why_none

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
NAMES = [
    *("precision", "recall", "f1", "mean_f1", "jaccard_index", "jaccard_distance", "over_merge_rate"),
    *("under_merge_rate", "fbeta", "mean_fbeta"),
    *("elm_precision", "elm_recall", "elm_f1", "elm_mean_f1"),
]
PARTS = ("precision", "recall", "f1", "mean_f1")


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)


@st.composite
def cases(draw, max_size=12):
    """Draw two clusterings and options; some scored item has weight."""
    pair = draw(pairs(max_size))
    weighting = draw(st.sampled_from(["pointwise", "pointwise", "outer"]))
    weight = draw(weights(len(pair.items), zeros=weighting == "outer"))
    options = {"unmatched": draw(st.sampled_from(POLICIES)), "weighting": weighting}
    options["beta"] = draw(st.sampled_from([1, 2, 0.5, 0, math.inf]))
    by_item = None if weight is None else dict(zip(pair.items, weight, strict=True))
    return pair, by_item, options


def both_ways(case):
    pair, weight, options = case
    try:
        expected = naive.evaluate(*pair, weight, **options)
    except ValueError:
        with pytest.raises(WeightError):
            fb.evaluate(*pair, weight=weight, metrics=NAMES, **options)
        return None
    return fb.evaluate(*pair, weight=weight, metrics=NAMES, **options), expected


@examples(300)
@given(cases())
def test_errors_by_component(case):
    if (found := both_ways(case)) is None:
        return
    ev, expected = found
    errors = twin.errors(expected, NAMES)
    assert list(ev.errors) == NAMES
    assert dict(ev.errors) == close(errors)
    by_unit = twin.units(expected)
    assert ev.units.n == len(by_unit.weights)
    assert ev.units.effective == pytest.approx(float(by_unit.effective), rel=1e-12)
    assert ev.units.largest_share == pytest.approx(float(by_unit.largest_share), rel=1e-12)


@pytest.mark.cases(6, 99)
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("weight", [None, 0.1, 0.7])
@pytest.mark.parametrize("n", [10, 49, 1000])
def test_a_single_unit_has_all_of_the_weight(overlapping, weight, n):
    """Ten cells of a tenth add up to one, although ten times 0.1 is 0.9999999999999999 in floats."""
    items = [str(k) for k in range(n)]
    sides = dict.fromkeys(items, 0), {item: k for k, item in enumerate(items)}
    weights = None if weight is None else dict.fromkeys(items, weight)
    found = fb.evaluate(*sides, weight=weights, overlapping=overlapping).units
    assert found == (pytest.approx((1, 1, 1), abs=1e-12)) and found.effective >= 1 >= found.largest_share
    assert weights or found == (1, 1.0, 1.0)


@pytest.mark.slow
@examples(100)
@given(cases(), st.data())
def test_errors_by_true_cluster_and_by_column(case, data):
    if (found := both_ways(case)) is None:
        return
    ev, expected = found
    by_true = ev.scores(unit="true_cluster").to_pydict()
    of_item = {e: expected.true[e] for e in expected.true}
    assert dict(zip(by_true["score"], by_true["se"], strict=True)) == close(
        twin.errors(expected, NAMES, of_item)
    )
    country = {e: data.draw(st.sampled_from("abc")) for e in expected.truth | expected.prediction}
    attributes = {"item": list(country), "country": list(country.values())}
    pair, weight, options = case
    ev = fb.evaluate(*pair, weight=weight, metrics=NAMES, attributes=attributes, **options)
    by_country = ev.scores(unit="country").to_pydict()
    errors = twin.errors(expected, NAMES, country)
    assert dict(zip(by_country["score"], by_country["se"], strict=True)) == close(errors)
    by_unit = twin.units(expected, country)
    assert set(by_country["n_units"]) == {len(by_unit.weights)}
    assert by_country["effective_units"] == pytest.approx([float(by_unit.effective)] * len(NAMES))


@examples(100)
@given(cases(), st.data())
def test_errors_of_slices(case, data):
    if (found := both_ways(case)) is None:
        return
    _, expected = found
    pair, weight, options = case
    country = {e: data.draw(st.sampled_from("abc")) for e in expected.truth | expected.prediction}
    attributes = {"item": list(country), "country": list(country.values())}
    ev = fb.evaluate(*pair, weight=weight, metrics=NAMES, attributes=attributes, **options)
    unit = twin.components(expected)
    inside = {name: {"item": [e for e in expected.true if country[e] == name]} for name in "abc"}
    masks = {name: own["item"] for name, own in inside.items() if any(map(expected.weight.get, own["item"]))}
    for table in (ev.slices("country", errors=True), ev.slices(masks, errors=True)):
        for row in table.to_pylist():
            own = {
                e: unit[e] for e in expected.true if country[e] == (row.get("country") or row.get("slice"))
            }
            if not any(expected.weight[e] for e in own):
                assert row["n_units"] == 0 and math.isnan(row["precision_se"])
                continue
            assert row["n_units"] == len(twin.units(expected, own).weights)
            errors = twin.errors(expected, NAMES, own)
            assert {name: row[f"{name}_se"] for name in NAMES} == close(errors)
    plain, table = ev.slices("country"), ev.slices("country", errors=True)
    assert plain.column_names == [n for n in table.column_names if n != "n_units" and not n.endswith("_se")]
    for name in plain.column_names:
        np.testing.assert_array_equal(plain[name].to_pylist(), table[name].to_pylist())


@examples(100)
@given(covers(), st.data(), st.sampled_from(["drop", "singleton", "outside"]))
def test_errors_of_covers(pair, data, unmatched):
    weight = data.draw(st.none() | item_weights(pair.items))
    rows = [
        [(e, number) for number, cluster in enumerate(family) for e in sorted(cluster)] for family in pair
    ]
    sides = [{"item": [e for e, _ in own], "cluster": [number for _, number in own]} for own in rows]
    ev = fb.evaluate(
        *(fb.Clustering.from_table(side) for side in sides),
        weight=weight, overlapping=True, unmatched=unmatched, metrics=[*PARTS, "elm", "cice_bcubed_f1"],
    )  # fmt: skip
    families = naive_overlap.align(*pair, unmatched)
    unit = twin.components_of_families(*families)
    exact = None if weight is None else {e: Fraction(w) for e, w in weight.items()}
    for prefix, function in (
        ("", naive_overlap.extended_bcubed),
        ("elm_", naive_overlap.extended_elm),
        ("cice_bcubed_", naive_overlap.cice_bcubed),
    ):
        scores = function(*families, exact).by_item
        of_items = exact or dict.fromkeys(scores, Fraction(1))
        by_unit = twin.ByUnit({e: unit[e] for e in scores}, of_items)
        assert ev.units.n == len(by_unit.weights)
        p, r, f = ({e: of[k] for e, of in scores.items()}.get for k in range(3))
        assert ev.errors[f"{prefix}f1"] == close(by_unit.error_of_f(p, r))
        if not prefix.startswith("cice"):
            assert ev.errors[f"{prefix}precision"] == close(by_unit.error(p))
            assert ev.errors[f"{prefix}recall"] == close(by_unit.error(r))
            assert ev.errors[f"{prefix}mean_f1"] == close(by_unit.error(f))


@examples(25)
@given(pairs(max_size=30), st.sampled_from(POLICIES), st.data())
def test_the_disk_engine_has_the_same_errors(pair, policy, data):
    weight = data.draw(weights(len(pair.items)))
    options = {} if weight is None else {"weight": dict(zip(pair.items, weight, strict=True))}
    options["attributes"] = {"item": list(pair.items), "part": [int(k < 2) for k in range(len(pair.items))]}
    metrics = ["f1", "jaccard_index", "elm"]  # with weights, items of one cell differ in the last one
    on_disk, in_memory = both(*pair, unmatched=policy, keep="items", metrics=metrics, **options)
    assert dict(on_disk.errors) == close(dict(in_memory.errors))
    assert on_disk.units == pytest.approx(in_memory.units, rel=1e-12)
    for by in ("true_size", "part"):
        first, second = (ev.slices(by, errors=True).to_pydict() for ev in (on_disk, in_memory))
        assert list(first) == list(second)
        for name, values in second.items():
            assert first[name] == (values if name == by else close(values))


# What has an error


def test_scores_that_have_an_error():
    """All of partitions; of overlapping clusters means over items and some others."""
    having = {name for name, metric in METRICS.items() if why_none(metric) is None}
    lacking = {m.name for m in METRICS.values() if not m.takes_three} - having
    assert not lacking
    on_covers = {name for name in having if why_none(METRICS[name], overlapping=True) is None}
    assert {"precision", "f1", "elm_mean_f1", "cice_bcubed_f1", "omega", "onmi_lfk"} <= on_covers
    assert "accuracy" not in on_covers


@pytest.mark.parametrize("name", [n for n, m in METRICS.items() if m.slopes is not None])
@pytest.mark.parametrize("beta", [1.0, 0.5, 3.0])
def test_slopes_are_derivatives(name, beta):
    """As the difference quotient has it."""
    metric, step = METRICS[name], 1e-5
    means = dict(zip((need.name for need in metric.needs), (0.8, 0.55, 0.35), strict=False))
    for need, slope in zip(metric.needs, metric.slopes(means, beta), strict=True):
        up, down = (means | {need.name: means[need.name] + each} for each in (step, -step))
        quotient = (metric.combine(up, beta) - metric.combine(down, beta)) / (2 * step)
        assert slope == pytest.approx(quotient, rel=1e-8)


# Properties


@examples(50)
@given(aligned_pairs(min_size=2, max_size=40), st.data())
def test_order_names_and_scale_do_not_count(labels, data):
    true, pred = map(np.array, labels)
    weight = np.array(data.draw(st.lists(st.floats(0.1, 10), min_size=true.size, max_size=true.size)))
    order = np.array(data.draw(st.permutations(range(true.size))))
    expected = fb.evaluate(true, pred, weight=weight, metrics=NAMES)
    for other in (
        fb.evaluate(true[order], pred[order], weight=weight[order], metrics=NAMES),
        fb.evaluate(-7 - true, 2**60 + pred, weight=weight * 1024.0, metrics=NAMES),
    ):
        assert dict(other.errors) == close(dict(expected.errors))
        assert other.units == pytest.approx(expected.units, rel=1e-12)


@examples(50)
@given(aligned_pairs(min_size=2, max_size=40))
def test_sides_trade_places(labels):
    found, swapped = (fb.evaluate(*each, metrics=NAMES) for each in (labels, labels[::-1]))
    assert found.errors.precision == close(swapped.errors.recall)
    for name in ("f1", "mean_f1", "jaccard_distance", "elm_f1"):
        assert found.errors[name] == close(swapped.errors[name])
    assert found.errors.over_merge_rate == close(found.errors.precision)


@examples(20)
@given(aligned_pairs(min_size=2, max_size=40), st.integers(1, 4))
def test_blocks_do_not_count(labels, size):
    """Cells are handled in blocks, of which a unit may have cells in several."""
    expected = fb.evaluate(*labels, metrics=NAMES).errors
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fastbcubed.results.unit_cells.CELLS_OF_PIECE", size)
        patch.setattr("fastbcubed.results.influences.CELLS_AT_ONCE", size)
        assert dict(fb.evaluate(*labels, metrics=NAMES).errors) == close(dict(expected))


def test_a_perfect_clustering_has_no_error():
    ev = fb.evaluate([0, 0, 1, 2], [5, 5, 6, 7], metrics=NAMES)
    assert set(ev.errors.values()) == {0.0}
    assert ev.interval("f1") == pytest.approx((0.025 ** (6 / 16), 1.0))  # of units of 2, 1 and 1 items


def test_a_single_component_has_no_number():
    ev = fb.evaluate([0, 0, 1], [5, 6, 6])
    with pytest.warns(EvaluationWarning, match="all items are in one unit"):
        assert all(map(math.isnan, ev.errors.values()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(map(math.isnan, ev.errors.values()))  # said once
    with pytest.warns(EvaluationWarning, match="all items are in one unit"):
        assert all(map(math.isnan, ev.interval("f1")))
