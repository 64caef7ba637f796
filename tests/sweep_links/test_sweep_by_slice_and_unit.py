"""Thresholds by slice, and standard errors: against `evaluate` at every threshold, and against the twin of errors."""

import math
from functools import partial
from typing import Any

import naive
import naive_errors
import naive_sweep
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from test_sweep_against_naive import Case, at_every_threshold, cases, policy, swept

import fastbcubed as fb
from fastbcubed.errors import ColumnError, SliceError

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")


def close(value: float) -> Any:
    return pytest.approx(float(value), rel=1e-9, abs=1e-9, nan_ok=True)


@pytest.mark.slow
@examples(60)
@given(cases())
def test_standard_errors_are_those_of_the_units_of_a_threshold_and_none_beyond(case: Case) -> None:
    sweep = swept(case)
    unmatched = policy(case.unmatched)
    even = sweep._units.curve.thresholds.tolist()
    weakest = even[-1] if len(even) > 1 else None
    everyone = naive_sweep.clusters_at(case.links, weakest, ascending=case.ascending)
    unit = naive_errors.components(naive.evaluate(case.truth, everyone, case.weights, unmatched=unmatched))
    curve = sweep.curve(limit=None, errors=True).to_pylist()
    by_threshold = {row["threshold"]: row for row in curve}
    names = ("precision", "recall", "f1", "over_merge_rate")
    for threshold, row in at_every_threshold(case, sweep):
        clusters = naive_sweep.clusters_at(case.links, threshold, ascending=case.ascending)
        twin = naive.evaluate(case.truth, clusters, case.weights, unmatched=unmatched)
        # squares below 1e-12 of what they are the difference of are 0, as of weights of which one has nearly all
        errors = naive_errors.errors(twin, names, unit)
        expected = {name: near(error) for name, error in errors.items()}
        if row["threshold"] not in even:
            expected = {name: pytest.approx(math.nan, nan_ok=True) for name in names}
        found = by_threshold[row["threshold"]]
        assert {name: found[f"{name}_se"] for name in names} == expected


@pytest.mark.slow
@examples(60)
@given(cases(max_size=12), st.data())
def test_each_slice_has_its_best_threshold(case: Case, data: st.DataObject) -> None:
    colours = {item: data.draw(st.sampled_from(["red", "blue", None])) for item in case.truth}
    composite = isinstance(next(iter(case.truth)), tuple)
    ids = {"item": list(case.truth)}
    if composite:
        ids = {f"item_{k}": [item[k] for item in case.truth] for k in (0, 1)}
    columns = {**ids, "cluster": list(case.truth.values()), "colour": list(colours.values())}
    truth = fb.Clustering.from_table(columns, item=list(ids))
    sweep = swept(case._replace(truth=truth), metrics=["f1", "recall"], slices="colour")
    found = {row["colour"]: row for row in sweep.sliced["colour"].to_pylist()}
    common = sweep.best("f1").threshold
    scores: dict[Any, dict[float, float]] = {}
    for threshold, _ in at_every_threshold(case, sweep):
        for row in sweep.evaluate(threshold, metrics=["f1"]).slices("colour").to_pylist():
            scores.setdefault(row["colour"], {})[threshold] = row["f1"]
            assert (found[row["colour"]]["n_items"], found[row["colour"]]["weight"]) == (
                row["n_items"],
                close(row["weight"]),
            )
    assert found.keys() == scores.keys()
    for colour, by_threshold in scores.items():
        best = max(by_threshold.values())
        assert found[colour]["f1"] == close(best)
        assert by_threshold[found[colour]["threshold"]] == close(best)
        assert found[colour]["f1_at_common"] == close(by_threshold[common])
        assert found[colour]["cost"] == close(best - by_threshold[common])


@examples(60)
@given(cases(max_size=12), st.data())
def test_errors_in_slices_are_those_of_the_twin(case: Case, data: st.DataObject) -> None:
    """Components are those of all items, as the scores of two slices of one component depend on each other."""
    colours = {item: data.draw(st.sampled_from(["red", "blue"])) for item in case.truth}
    sweep = swept(case, metrics=["f1", "recall"])
    unmatched = policy(case.unmatched)

    def at(threshold: float | None) -> naive.Naive:
        clusters = naive_sweep.clusters_at(case.links, threshold, ascending=case.ascending)
        return naive.evaluate(case.truth, clusters, case.weights, unmatched=unmatched)

    even, common = sweep._units.curve.thresholds.tolist(), sweep.best("f1").threshold
    unit = naive_errors.components(at(even[-1] if len(even) > 1 else None))
    by_name = {
        colours[item]: [each for each in unit if colours.get(each) == colours[item]]
        for item in unit
        if item in colours
    }
    for row in sweep.slices(by_name, errors=True).to_pylist():
        inside = {e: u for e, u in unit.items() if colours.get(e) == row["slice"]}
        twins = [at(threshold) for threshold in (row["threshold"], common)]
        known = [threshold in even for threshold in (row["threshold"], common)]
        sums = [naive_errors.units(twin, inside) for twin in twins]
        assert row["n_units"] == len(sums[0].weights)
        scores = [[partial(twin.score, name) for name in ("precision", "recall")] for twin in twins]
        expected = {
            name: sums[0].error_of_f(*scores[0])
            if name == "f1"
            else sums[0].error(partial(twins[0].score, name))
            for name in ("f1", "recall")
        }
        assert {name: row[f"{name}_se"] for name in expected} == {
            name: near(error) if known[0] else None for name, error in expected.items()
        }
        assert row["f1_at_common_se"] == (near(sums[1].error_of_f(*scores[1])) if known[1] else None)
        own, other = (each.deviations_of_f(*of) for each, of in zip(sums, scores, strict=True))
        error = sums[0]._root({u: own[u] - other[u] for u in own})
        assert row["cost_se"] == (near(error) if all(known) else None)


def test_items_of_a_slice_are_one_unit_where_others_join_them() -> None:
    """The true clusters of a and b have x and y, which a link joins; neither is in the slice."""
    truth = {"a": 0, "x": 0, "y": 1, "b": 1, **{f"{k}{side}": 2 + k for k in range(9) for side in "lr"}}
    links = [("x", "y", 0.9), *((f"{k}l", f"{k}r", 0.5) for k in range(9))]
    red = ["a", "b", "0l", "1l", "2l"]
    (row,) = fb.sweep(truth, links).slices({"red": red}, errors=True).to_pylist()
    assert (row["n_items"], row["n_units"], row["threshold"]) == (5, 4, 0.5)
    assert row["recall"] == 0.8  # of a and b it is 1/2 each, which deviates by 2 (1/2 - 0.8) together
    assert row["recall_se"] == pytest.approx(math.sqrt(4 / 3 * (3 * 0.2**2 + 0.6**2)) / 5)


def near(error: float) -> Any:
    return pytest.approx(error, rel=1e-6, abs=2e-6, nan_ok=True)


def test_an_interval_is_that_of_evaluate_at_the_weakest_threshold() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 60, 200)
    left, right = rng.integers(0, 200, (2, 90))
    sweep = fb.sweep(truth, {"left": left, "right": right, "score": rng.random(90)})
    weakest = float(sweep.tree.thresholds[-1])
    ev = sweep.evaluate(weakest, metrics=["precision", "recall", "f1", "pair_f1"])
    for name in ("precision", "recall", "f1", "pair_f1"):
        assert sweep.interval(name, weakest) == close_pair(ev.interval(name))


def close_pair(interval: tuple[float, float]) -> Any:
    return pytest.approx(tuple(interval), rel=1e-9)


@pytest.mark.parametrize("ascending", [False, True])
def test_no_slice_leaves_out_a_link_whose_score_is_infinite(ascending: bool) -> None:
    """It joins a and b wrongly, at any threshold: precision 1/2, recall 1. The link of c and d is right."""
    truth = {"a": 1, "b": 2, "c": 3, "d": 3, "e": 4, "f": 4}
    links = [("a", "b", -math.inf if ascending else math.inf), ("c", "d", 0.5), ("e", "f", 0.5)]
    sweep = fb.sweep(truth, links, ascending=ascending)
    strongest = links[0][2]
    found = sweep.slices({"wrong": ["a", "b"], "right": ["c", "d"]}).to_pylist()
    figures = {row["slice"]: (row["threshold"], row["f1"], row["f1_at_common"], row["cost"]) for row in found}
    assert figures == {"wrong": (strongest, close(2 / 3), close(2 / 3), 0), "right": (0.5, 1, 1, 0)}
    for name, items in (("wrong", "ab"), ("right", "cd")):
        threshold = figures[name][0]
        assert sweep.evaluate(threshold).slices({"own": list(items)})["f1"].to_pylist() == [figures[name][1]]


def test_slices_by_attributes_called_as_figures() -> None:
    names = {"weight": "uuv", "threshold": "uvv", "true_size": "vvu"}
    truth = {"item": [1, 2, 3], "cluster": [0, 0, 1], **{name: list(own) for name, own in names.items()}}
    sweep = fb.sweep(fb.Clustering.from_table(truth), [(1, 2, 0.5)])
    for name, own in (("weight", "attribute.weight"), ("threshold", "attribute.threshold")):
        found = {row[own]: row["n_items"] for row in sweep.slices(name).to_pylist()}
        assert found == {value: names[name].count(value) for value in "uv"}
    with pytest.raises(ColumnError, match=r"'always\.true_size'"):
        sweep.slices("true_size")
    assert sweep.slices("truth.true_size")["n_items"].to_pylist() == [1, 2]
    with pytest.raises(SliceError, match="changes with the threshold"):
        sweep.slices("always.pred_size")
