"""Standard errors along the curve and the threshold chosen anew: against twins that copy, or shift, raw components."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any

import naive_resampling as twin
import naive_sweep
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from test_sweep_against_naive import Case, cases, swept

import fastbcubed as fb
from fastbcubed.errors import EvaluationWarning, OptionError
from fastbcubed.runtime import expressions

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
NAMES = [
    "pair_precision", "pair_f1", "rand", "adjusted_rand", "homogeneity", "completeness", "v_measure", "pair_tp",
    "variation_of_information", "mirkin", "pair_fowlkes_mallows",
]  # fmt: skip
Links = list[tuple[str, str, float]]


def data(seed: int, n: int = 40) -> tuple[dict[str, str], Links]:
    """Return a truth and links of units, in which links of one true cluster are stronger."""
    rng = np.random.default_rng(seed)
    truth: dict[str, str] = {}
    links: Links = []
    for unit in range(n):
        items = [f"{unit}.{k}" for k in range(int(rng.integers(1, 7)))]
        truth |= {item: f"{unit}.{int(rng.integers(0, 3))}" for item in items}
        for k, right in enumerate(items[1:], 1):
            left = items[int(rng.integers(0, k))]
            links.append((left, right, round(rng.normal(truth[left] == truth[right], 0.7), 1)))
    return truth, links


def units_of(truth: dict[str, str], links: Links) -> dict[str, int]:
    """Return the component of each item in the truth and all links."""
    joined = [*links, *((item, f"true {own}", 0.0) for item, own in truth.items())]
    return naive_sweep.clusters_at(joined, -math.inf)


def figures_at(truth: dict[str, str], links: Links, threshold: float | None) -> list[twin.Figures]:
    """Return what the twin counts of each unit at a threshold."""
    clusters, units = naive_sweep.clusters_at(links, threshold, truth), units_of(truth, links)
    cells: dict[int, Counter] = defaultdict(Counter)
    for item, own in truth.items():
        cells[units[item]][own, clusters[item]] += 1
    return [twin.figures(twin.Component(own)) for own in cells.values()]


@pytest.mark.cases(0)
@pytest.mark.parametrize("seed", [1, 2])
def test_errors_are_those_of_the_twin(seed: int) -> None:
    truth, links = data(seed)
    sweep = fb.sweep(truth, links, metrics=NAMES)
    rows = {row["threshold"]: row for row in sweep.curve(limit=None, errors=True).to_pylist()}
    for threshold in [*rows][1::4]:
        every = figures_at(truth, links, threshold)
        values, expected = twin.scores([(1, own) for own in every]), twin.errors_by_shares(every)
        for name in NAMES:
            assert rows[threshold][name] == pytest.approx(values[name], rel=1e-9), name
            assert rows[threshold][f"{name}_se"] == pytest.approx(expected[name], rel=1e-4, abs=1e-9), name


@pytest.mark.slow
@examples(60)
@given(cases(max_size=14))
def test_at_the_weakest_threshold_errors_are_those_of_evaluate(case: Case) -> None:
    """Of any input: weights, policies, ties, links of other items."""
    sweep = swept(case)
    last = sweep.curve(limit=None, errors=True).to_pylist()[-1]
    names = [metric.name for metric in sweep.metrics]
    if len(sweep._units.curve) < len(sweep._curve):
        assert all(math.isnan(last[f"{name}_se"]) for name in names)
        return
    if case.weights is not None and max(case.weights.values()) > 100 * min(case.weights.values()):
        return  # these errors are of weights that cancel, on both sides
    ev = sweep.evaluate(naive_sweep.thresholds(case.links, case.ascending)[-1], metrics=names)
    expected = {name: pytest.approx(ev.errors[name], rel=1e-6, abs=1e-7, nan_ok=True) for name in names}
    assert {name: last[f"{name}_se"] for name in names} == expected


@pytest.mark.parametrize("heavy", [1.0, 1e3, 1e6, 1e8])
def test_heavy_units_do_not_cancel_the_errors_of_light_ones(heavy: float) -> None:
    """42 pairs, of which ten of weight 1 are missed, and two may be heavy: 42 / 41 * (10 - 10**2 / 42) is 2.7937**2."""
    truth = {f"{k}{side}": str(k) for k in range(42) for side in "ab"}
    links = [(f"{k}a", f"{k}b", 0.2 if k < 10 else 0.9) for k in range(42)]
    weights = {item: heavy if int(own) >= 40 else 1.0 for item, own in truth.items()}
    names = ["pair_fn", "v_measure", "recall", "f1"]
    sweep = fb.sweep(truth, links, weight=weights, metrics=names)
    row = next(own for own in sweep.curve(limit=None, errors=True).to_pylist() if own["threshold"] == 0.9)
    assert row["pair_fn_se"] == pytest.approx(math.sqrt(42 / 41 * (10 - 100 / 42)), rel=1e-9)
    ev = sweep.evaluate(0.9, metrics=names)
    assert {name: row[f"{name}_se"] for name in names} == pytest.approx(dict(ev.errors), rel=1e-5)


@pytest.mark.cases(0)
@pytest.mark.parametrize("seed", range(3))
def test_errors_of_weights_over_eight_decades_are_those_of_evaluate(seed: int) -> None:
    """At any threshold, by the same units: the components of all links."""
    truth, links = data(seed, n=30)
    rng = np.random.default_rng(seed)
    heavy = 10.0 ** rng.uniform(0, 8, 30)
    unit_of = {item: item.split(".")[0] for item in truth}
    weights = {item: float(heavy[int(own)] * rng.uniform(0.5, 2.0)) for item, own in unit_of.items()}
    attributes = {"item": list(unit_of), "unit": list(unit_of.values())}
    names = [*NAMES, "pair_fn", "pair_fp", "pair_tn", "precision", "recall", "f1"]
    rows = fb.sweep(truth, links, weight=weights, metrics=names).curve(limit=None, errors=True).to_pylist()
    for row in rows[1::8]:
        found = naive_sweep.clusters_at(links, row["threshold"], truth)
        pred = {item: found[item] for item in truth}
        ev = fb.evaluate(truth, pred, weight=weights, attributes=attributes, metrics=names)
        for own in ev.scores(unit="unit").to_pylist():
            assert row[f"{own['score']}_se"] == pytest.approx(own["se"], rel=1e-6), own["score"]


def copies(truth: dict[str, str], links: Links, times: dict[int, int]) -> tuple[dict[str, str], Links]:
    """Return raw rows in which each unit is there so many times."""
    units = units_of(truth, links)
    rows = {f"{i}#{c}": f"{own}#{c}" for i, own in truth.items() for c in range(times[units[i]])}
    return rows, [(f"{a}#{c}", f"{b}#{c}", s) for a, b, s in links for c in range(times[units[a]])]


def drawn_units(sweep: fb.Sweep, truth: dict[str, str], links: Links) -> dict[int, int]:
    """Return the unit of the sweep of each unit of the twin."""
    units = units_of(truth, links)
    of_place, rows = sweep._units._unit_of_place, sweep._placed
    items = sweep.links.items.take(sweep.tree.order[rows.places]).to_pylist()
    return {units[item]: int(own) for item, own in zip(items, of_place, strict=True)}


@pytest.mark.slow
def test_a_drawn_curve_is_that_of_copied_rows() -> None:
    truth, links = data(3)
    sweep = fb.sweep(truth, links, items=list(truth), unmatched="singleton")
    own = drawn_units(sweep, truth, links)
    times = np.random.default_rng(4).integers(0, 4, sweep._units.size)
    found = sweep._units.drawn(times.astype(float))
    rows, again = copies(truth, links, {unit: int(times[k]) for unit, k in own.items()})
    expected = fb.sweep(rows, again, items=list(rows), unmatched="singleton")
    for metric in sweep.metrics:
        values = found.scores(metric)
        for threshold, value in zip(expected._curve.thresholds, expected._curve.scores(metric), strict=True):
            assert values[sweep._point(threshold)] == pytest.approx(value, rel=1e-9, abs=1e-9), metric.name


@pytest.mark.slow
def test_the_threshold_is_chosen_anew_in_each_draw() -> None:
    """Each draw is written out as rows, swept, and its best threshold looked up on all data."""
    truth, links = data(5, n=25)
    how: dict[str, Any] = {"items": list(truth), "unmatched": "singleton"}
    sweep = fb.sweep(truth, links, **how)
    found = sweep.chosen("pair_f1", draws=25, seed=6)
    own, order = drawn_units(sweep, truth, links), sweep._units.order
    rng = np.random.default_rng(6)
    excess, chosen = [], []
    for _ in range(25):
        times = dict(zip(order.tolist(), rng.multinomial(25, np.full(25, 1 / 25)).tolist(), strict=True))
        rows, again = copies(truth, links, {unit: times[k] for unit, k in own.items()})
        best = fb.sweep(rows, again, items=list(rows), unmatched="singleton").best("pair_f1")
        there = next(
            r for r in reversed(sweep.curve(limit=None).to_pylist()) if r["threshold"] >= best.threshold
        )
        excess.append(best.value - there["pair_f1"])
        chosen.append(best.threshold)
    assert found.optimism == pytest.approx(np.mean(excess), rel=1e-9)
    assert found.expected == pytest.approx(found.best.value - np.mean(excess), rel=1e-9)
    assert min(chosen) <= found.threshold_low <= found.threshold_high <= max(chosen)
    assert found.low < found.expected < found.high
    assert sweep.interval("pair_f1") == sweep.chosen("pair_f1").interval


def test_a_cost_is_parsed_once_for_all_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, links = data(5, n=12)
    sweep = fb.sweep(truth, links)
    parsed: list[str] = []
    parse = expressions.ast.parse
    cost = "+".join(["2*pair_fp", "3*pair_fn"] * 40)
    with monkeypatch.context() as patch:
        patch.setattr(
            expressions.ast, "parse", lambda *args, **how: parsed.append(args[0]) or parse(*args, **how)
        )
        by_unit = sweep.chosen(cost, draws=20, seed=1)
    assert parsed.count(cost) == 1
    of_one = sweep.chosen("80*pair_fp + 120*pair_fn", draws=20, seed=1)  # the sum of the 40 terms of each
    assert by_unit.to_dict() == pytest.approx(of_one.to_dict(), rel=1e-12)


def test_draws_do_not_depend_on_order_and_names() -> None:
    truth, links = data(7)
    expected = fb.sweep(truth, links).chosen("f1", draws=50)
    rng = np.random.default_rng(8)
    rows = [(f"x{i}", f"y{own}") for i, own in truth.items()]
    rows = [rows[k] for k in rng.permutation(len(rows))]
    again = [(f"x{b}", f"x{a}", s) for a, b, s in links]
    again = [again[k] for k in rng.permutation(len(again))]
    for threads in (1, 3):
        found = fb.sweep(dict(rows), again, threads=threads).chosen("f1", draws=50)
        for name, value in expected.to_dict().items():
            assert found.to_dict()[name] == (
                pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
            )


def test_alike_units_have_no_error() -> None:
    truth = {f"{k}{item}": f"{k}{item in 'cd'}" for k in range(8) for item in "abcd"}
    links = [(f"{k}{a}", f"{k}{b}", s) for k in range(8) for a, b, s in (("a", "b", 0.9), ("b", "c", 0.5))]
    sweep = fb.sweep(truth, links)
    curve = sweep.curve(errors=True)
    assert {v for name in curve.column_names if name.endswith("_se") for v in curve[name].to_pylist()} == {
        0.0
    }
    chosen = sweep.chosen("v_measure", draws=20)
    assert chosen.optimism == pytest.approx(0, abs=1e-12)
    assert chosen.threshold_low == chosen.threshold_high == chosen.best.threshold


def test_of_few_units_an_interval_is_no_wider_than_that_of_as_many_draws() -> None:
    """Wilson's of the share to expect, of ten units of two items: one of them alone lacks its link.

    The error of units that were not drawn is 0.36 of what an eleventh one could change.
    """
    truth = {f"{k}{side}": str(k) for k in range(10) for side in "ab"}
    links = [(f"{k}a", f"{k}b", 0.5) for k in range(1, 10)]
    found = fb.sweep(truth, links).chosen("recall", draws=50)
    q, n, p = 1.959964**2, 10, found.expected
    reach = math.sqrt(q * (n * p * (1 - p) + q / 4))
    low, high = (n * p + q / 2 - reach) / (n + q), (n * p + q / 2 + reach) / (n + q)
    more = 1.959964 * 0.36 / 11
    ends = p - math.hypot(p - low, more * p), min(p + math.hypot(high - p, more * (1 - p)), 1.0)
    assert found.interval == pytest.approx(ends, abs=1e-6)


def test_conditions_costs_and_text() -> None:
    truth, links = data(9)
    sweep = fb.sweep(truth, links)
    found = sweep.chosen("recall", where="precision >= 0.97", draws=40)
    assert (
        found.threshold_low <= found.threshold_high
        and "The threshold was chosen on the same data" in repr(found)
    )
    cost = sweep.chosen("3*pair_fp + pair_fn", draws=40, level=0.9)
    assert cost.optimism < 0 and cost.expected > cost.best.value  # a cost seems lower than it is
    assert "40 draws of 40 components" in repr(cost)
    with pytest.raises(OptionError, match="draws must be a number of samples, 1 or more"):
        sweep.chosen(draws=0)
    with pytest.raises(OptionError, match="no threshold has precision > 2"):
        sweep.chosen(where="precision > 2")


def joined_by_weak_links(seed: int) -> tuple[dict[str, str], Links]:
    """Return a truth and links of which weak ones, a tenth as strong, join most of the units."""
    truth, links = data(seed, n=60)
    rng, items = np.random.default_rng(seed + 1), list(truth)
    weak = [(*rng.choice(items, 2, replace=False).tolist(), -9.0 - rng.random()) for _ in items[::2]]
    return truth, links + weak


@pytest.mark.slow
def test_weak_links_that_join_most_items_leave_errors_and_the_choice_as_they_were() -> None:
    truth, links = joined_by_weak_links(9)
    how: dict[str, Any] = {"items": list(truth), "unmatched": "singleton"}
    strong = fb.sweep(truth, [link for link in links if link[2] > -9], **how)
    sweep = fb.sweep(truth, links, **how)
    with pytest.warns(
        EvaluationWarning, match="no standard errors at thresholds weaker than .* of the weight in one"
    ):
        rows = {row["threshold"]: row for row in sweep.curve(limit=None, errors=True).to_pylist()}
    weakest = min(sweep._units.curve.thresholds)
    assert -10 < weakest < -9 and len(sweep._units.curve) > len(strong._curve)
    assert all(math.isnan(rows[t]["f1_se"]) for t in rows if t < weakest)
    for row in strong.curve(limit=None, errors=True).to_pylist():
        own = rows[row["threshold"]]
        assert own["f1"] == row["f1"]
        assert own["f1_se"] == pytest.approx(row["f1_se"], rel=0.5)
    expected, found = strong.chosen("f1", draws=200), sweep.chosen("f1", draws=200)
    assert found.best.threshold == expected.best.threshold
    assert found.expected == pytest.approx(expected.expected, abs=0.02)
    assert found.high - found.low == pytest.approx(expected.high - expected.low, rel=0.5)


def test_an_interval_where_links_join_most_items_has_a_warning() -> None:
    truth, links = joined_by_weak_links(9)
    sweep = fb.sweep(truth, links)
    with pytest.warns(EvaluationWarning, match="of the weight, and their effective number is"):
        sweep.interval("f1", -10.0)


@pytest.mark.slow
def test_where_true_clusters_are_uneven_units_are_those_of_all_links() -> None:
    truth = dict.fromkeys(map(str, range(200)), "large") | {f"s{k}": str(k) for k in range(100)}
    sweep = fb.sweep(truth, [(f"s{k}", f"s{k + 1}", k / 10) for k in range(9)])
    assert len(sweep._units.curve) == len(sweep._curve)
    with pytest.warns(EvaluationWarning, match="of the weight, and their effective number is"):
        sweep.interval("f1", 0.5)
