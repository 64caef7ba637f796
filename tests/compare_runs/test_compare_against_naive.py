"""Scores, deltas and paired errors of runs against the naive twin: policies, alignments, weights, kinds of unit."""

from __future__ import annotations

import math
from statistics import NormalDist

import naive_compare
import pytest
from asking_compare import NAMES, both_ways, close, number
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student
from strategies_compare import comparisons

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")


@pytest.mark.slow
@examples(120)
@given(comparisons())
def test_runs_and_scores(case):
    if (found := both_ways(case)) is None:
        return
    cmp, expected = found
    assert list(cmp) == list(cmp.runs) == list(case.runs) and len(cmp) == len(case.runs)
    assert cmp.baseline == expected.baseline
    rows = cmp.scores().to_pylist()
    assert [row["run"] for row in rows] == list(case.runs)
    for row in rows:
        run = expected.runs[row["run"]]
        assert (row["n_items"], row["n_clusters"]) == (len(run.true), len(run.clusters("pred")))
        values = {name: float(run.mean(name)) for name in NAMES}
        assert {name: row[name] for name in NAMES} == close(values)
        assert dict(cmp[row["run"]].overall) == close(values)


@examples(100)
@given(comparisons())
def test_scores_on_own_items_and_if_lacking_ones_were_alone(case):
    if (found := both_ways(case)) is None:
        return
    unmatched = case.options["unmatched"]
    of_pred = unmatched if isinstance(unmatched, str) else unmatched.get("prediction", "drop")
    alone_too = {"truth": "singleton", "prediction": of_pred}
    own, alone = (
        naive_compare.compare(
            case.truth, case.runs, case.weight, **case.options | {"align": "each"} | changed
        )
        for changed in ({}, {"unmatched": alone_too})
    )
    for row in found[0].coverage().to_pylist():
        assert row["own_precision"] == close(float(own.runs[row["run"]].mean("precision")))
        if case.weight is None or case.options["weighting"] == "outer":
            for name in ("precision", "recall"):
                assert row[f"{name}_if_alone"] == close(float(alone.runs[row["run"]].mean(name)))


def check_deltas(table, expected, unit=None, level=0.95):
    rows = table.to_pylist()
    wanted = [(name, score) for name in expected.experiments for score in NAMES]
    assert sorted((row["experiment"], row["score"]) for row in rows) == sorted(wanted)
    for row in rows:
        n_units = len(expected.units(unit or expected.components_for(row["experiment"])))
        assert row["baseline"] == expected.baseline
        exact = expected.compare(row["experiment"], row["score"], unit)
        assert row["delta"] == close(float(exact.delta))
        for column, value in (("baseline_value", exact.baseline_value), ("value", exact.value)):
            assert row.get(column, float(value)) == close(float(value))
        assert number(row["se"]) == close(exact.se)
        if n_units == 1:
            assert row["holds"] is None and math.isnan(number(row["low"])) and math.isnan(number(row["high"]))
            continue
        if row["se"] == row["delta"] == 0:  # what as many units as there are, or fewer, may not have shown
            assert row["low"] == -row["high"] and row["holds"] is False
            assert 1 - 1e-9 <= math.log((1 - level) / 2) / math.log1p(-row["high"]) <= n_units + 1e-6
            continue
        quantile = student.ppf(
            (1 + level) / 2, expected.degrees_of_freedom(row["experiment"], row["score"], unit)
        )
        missing = expected.not_drawn(row["experiment"], row["score"], unit) if row["se"] else 0.0
        reach = math.hypot(quantile * exact.se, NormalDist().inv_cdf((1 + level) / 2) * missing)
        low, high = float(exact.delta) - reach, float(exact.delta) + reach
        low, high = max(low, -1.0), min(high, 1.0)  # scores from 0 to 1 differ by no more
        rounding = 1e-12 * (1 + quantile)  # which the error has, and is multiplied with it
        assert (row["low"], row["high"]) == pytest.approx((low, high), rel=1e-9, abs=rounding, nan_ok=True)
        if min(abs(low), abs(high)) > 1e-9:
            assert row["holds"] == (low > 0 or high < 0)
        elif not exact.delta and not exact.se:
            assert row["holds"] is False


@examples(120)
@given(comparisons(8, least_runs=2), st.sampled_from([0.95, 0.5, 0.99]))
def test_deltas(case, level):
    if found := both_ways(case, level=level):
        cmp, expected = found
        check_deltas(cmp.deltas(adjust="none"), expected, level=level)


@examples(50)
@given(comparisons(8, least_runs=2))
def test_deltas_by_true_cluster(case):
    if found := both_ways(case, unit="true_cluster"):
        cmp, expected = found
        check_deltas(cmp.deltas(adjust="none"), expected, expected.true_clusters())


@examples(50)
@given(comparisons(8, least_runs=2, align=("common",)), st.data())
def test_deltas_by_a_column(case, data):
    country = {e: data.draw(st.sampled_from("abc")) for e in case.items}
    attributes = {"item": list(country), "country": list(country.values())}
    if found := both_ways(case, unit="country", attributes=attributes):
        cmp, expected = found
        check_deltas(cmp.deltas(adjust="none"), expected, country)


@examples(50)
@given(comparisons(8, least_runs=3))
def test_many_runs_are_allowed_for(case):
    """Bonferroni: of k comparisons, each at the level that leaves them a k-th of the error."""
    if (found := both_ways(case)) is None:
        return
    cmp, expected = found
    check_deltas(cmp.deltas(adjust="bonferroni"), expected, level=1 - 0.05 / len(expected.experiments))
