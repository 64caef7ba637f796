"""What has to hold of any comparison: of equal runs, of three in a row, of a baseline and an experiment traded."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from asking_compare import CELLWISE, NAMES, close, compared, deltas, number, on_disk, options_of_evaluate
from effort import examples, pairwise
from hypothesis import HealthCheck, given, reject
from hypothesis import strategies as st
from naive_compare import compare as naive_compare
from strategies_compare import comparisons

import fastbcubed as fb

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
TIGHT = {"rel": 1e-12, "abs": 1e-12, "nan_ok": True}


def assert_same(found, expected, **tolerance):
    tolerance = tolerance or TIGHT
    assert list(found) == list(expected) and found.baseline == expected.baseline
    for name in expected:
        assert dict(found[name].overall) == pytest.approx(dict(expected[name].overall), **tolerance)
    found, expected = deltas(found), deltas(expected)
    assert set(found) == set(expected)
    for key, row in expected.items():
        for column in ("delta", "se", "low", "high"):
            # The root of a sum that vanishes but for rounding.
            least = 1e-9 if column != "delta" else 1e-12
            assert number(found[key][column]) == pytest.approx(
                number(row[column]), rel=1e-9 if column != "delta" else 1e-12, abs=least, nan_ok=True
            )


@examples(100)
@given(comparisons(least_runs=2))
def test_equal_runs_do_not_differ(case):
    """Delta 0 with error 0, exactly, beside whatever other runs there are; NaN where all is one unit."""
    first, second, *_ = case.runs
    runs = {**case.runs, second: dict(case.runs[first])}
    case = case._replace(runs=runs, options={**case.options, "baseline": first})
    for (experiment, _), row in deltas(compared(case)).items():
        if experiment == second:
            assert row["delta"] == 0
            assert row["se"] == 0 or math.isnan(number(row["se"]))
            assert not row["holds"]


@pytest.mark.slow
@examples(100)
@given(comparisons(least_runs=3, align=("common",)))
def test_deltas_compose(case):
    """From A to C is from A to B and from B to C, on the same items."""
    a, b, c, *_ = case.runs
    from_a, from_b = (
        deltas(compared(case._replace(options={**case.options, "baseline": name}))) for name in (a, b)
    )
    for score in NAMES:
        composed = from_a[b, score]["delta"] + from_b[c, score]["delta"]
        assert from_a[c, score]["delta"] == pytest.approx(composed, rel=1e-12, abs=1e-12)


@pytest.mark.slow
@examples(100)
@given(comparisons(least_runs=2))
def test_baseline_and_experiment_trade_places(case):
    """The sign flips, the error stays, the interval is mirrored."""
    old, new, *_ = case.runs
    there, back = (
        deltas(compared(case._replace(options={**case.options, "baseline": name}))) for name in (old, new)
    )
    for score in NAMES:
        row, mirrored = there[new, score], back[old, score]
        assert row["delta"] == -mirrored["delta"]
        assert number(row["se"]) == close(number(mirrored["se"]))
        assert number(row["low"]) == close(-number(mirrored["high"]))
        assert number(row["high"]) == close(-number(mirrored["low"]))
        assert row["holds"] == mirrored["holds"]


@examples(100)
@given(comparisons())
def test_a_run_is_an_evaluation_of_the_aligned_items(case):
    cmp = compared(case)
    expected = naive_compare(case.truth, case.runs, case.weight, **case.options)
    for name, run in expected.runs.items():
        truth = {e: cluster for e, cluster in case.truth.items() if e in run.true}
        prediction = {
            e: cluster for e, cluster in case.runs[name].items() if e in run.true or e in run.outside
        }
        alone = fb.evaluate(truth, prediction, weight=case.weight, metrics=NAMES, **options_of_evaluate(case))
        found = cmp[name]
        assert dict(found.overall) == pytest.approx(dict(alone.overall), **TIGHT)
        assert found.summary == alone.summary
        ours, theirs = ({row["item"]: row for row in ev.items().to_pylist()} for ev in (found, alone))
        assert set(ours) == set(theirs) == set(run.true)
        for e in theirs:
            for column in ("true_cluster", "pred_cluster"):
                assert ours[e][column] == theirs[e][column]
            for column in ("weight", "precision", "recall"):
                assert ours[e][column] == pytest.approx(theirs[e][column], rel=1e-12)


@examples(50)
@given(comparisons(least_runs=2, align=("each",)))
def test_with_each_a_run_is_what_evaluate_makes_of_it(case):
    cmp = compared(case)
    for name, run in case.runs.items():
        alone = fb.evaluate(case.truth, run, weight=case.weight, metrics=NAMES, **options_of_evaluate(case))
        assert dict(cmp[name].overall) == pytest.approx(dict(alone.overall), **TIGHT)
        assert dict(cmp[name].errors) == pytest.approx(dict(alone.errors), rel=1e-9, abs=1e-12, nan_ok=True)
        assert cmp[name].coverage == alone.coverage


@pytest.mark.cases(0, 3)
@pairwise(
    engine=["memory", "disk"], weighted=[False, True],
    unmatched=[
        "drop", "singleton", {"truth": "singleton", "prediction": "drop"}, {"truth": "drop", "prediction": "outside"},
    ],
)  # fmt: skip
def test_one_run_is_its_evaluation_in_every_score(engine, unmatched, weighted):
    """A comparison with nothing: values, errors and intervals, whatever `align` says."""
    rng = np.random.default_rng(3)
    items = [f"i{k}" for k in range(60)]
    truth = {e: int(rng.integers(0, 18)) for e in items[:52]}
    run = {e: truth[e] if e in truth and rng.random() < 0.7 else int(rng.integers(0, 20)) for e in items[6:]}
    weight = {e: float(rng.uniform(0.5, 3.0)) for e in items} if weighted else None
    options = {"unmatched": unmatched, "weight": weight, "metrics": "all", "engine": engine}
    alone = fb.evaluate(truth, run, **options)
    for align in ("common", "each"):
        found = fb.compare(truth, {"run": run}, align=align, **options)["run"]
        assert dict(found.overall) == pytest.approx(dict(alone.overall), **TIGHT)
        ours, theirs = ({row["score"]: row for row in ev.scores().to_pylist()} for ev in (found, alone))
        assert set(ours) == set(theirs) and len(ours) > 30
        for name, row in theirs.items():
            for figure in ("se", "low", "high"):
                assert number(ours[name][figure]) == pytest.approx(
                    number(row[figure]), rel=1e-9, abs=1e-12, nan_ok=True
                ), (name, figure)


# What does not count


@pytest.mark.slow
@examples(50)
@given(comparisons(least_runs=2), st.data())
def test_order_of_rows_and_runs(case, data):
    baseline = data.draw(st.sampled_from(list(case.runs)))
    case = case._replace(options={**case.options, "baseline": baseline})

    def shuffled(rows):
        return {key: rows[key] for key in data.draw(st.permutations(list(rows)))}

    runs = {name: shuffled(run) for name, run in case.runs.items()}
    assert_same(compared(case._replace(truth=shuffled(case.truth), runs=runs)), compared(case))
    turned, expected = compared(case._replace(runs=shuffled(case.runs))), compared(case)
    found, wanted = deltas(turned), deltas(expected)
    assert set(found) == set(wanted)
    for key, row in wanted.items():
        assert found[key]["delta"] == pytest.approx(row["delta"], **TIGHT)
        assert number(found[key]["se"]) == close(number(row["se"]))


@pytest.mark.slow
@examples(50)
@given(comparisons(least_runs=2))
def test_names_of_runs(case):
    """They name; nothing depends on what they are."""
    names = {name: f"run {k}" for k, name in enumerate(case.runs)}
    plain = case._replace(runs={names[name]: run for name, run in case.runs.items()})
    if (baseline := case.options["baseline"]) is not None:
        plain = plain._replace(options={**case.options, "baseline": names[baseline]})
    found, expected = deltas(compared(case)), deltas(compared(plain))
    assert {(names[name], score) for name, score in found} == set(expected)
    for (name, score), row in found.items():
        other = expected[names[name], score]
        assert [row[key] for key in ("delta", "holds")] == [other[key] for key in ("delta", "holds")]
        assert [number(row[key]) for key in ("se", "low", "high")] == pytest.approx(
            [number(other[key]) for key in ("se", "low", "high")], rel=0, abs=0, nan_ok=True
        )


@examples(20)
@given(comparisons(40, least_runs=2))
def test_threads(case):
    """The same bits for any number."""
    one, four = compared(case, threads=1), compared(case, threads=4)
    assert str(one.scores().to_pylist()) == str(four.scores().to_pylist())
    assert str(one.deltas().to_pylist()) == str(four.deltas().to_pylist())


@pytest.mark.cases(1)
@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=comparisons(30, least_runs=2))
def test_engines(many_shards, case):
    in_memory = compared(case, engine="memory", metrics=CELLWISE)
    assert_same(on_disk(case), in_memory)


def arrow(rows):
    return pa.table({"item": list(rows), "cluster": list(rows.values())})


@pytest.mark.slow
@examples(50)
@given(comparisons(least_runs=2))
def test_dicts_tables_and_clusterings(case):
    expected = compared(case)
    try:
        tables = [arrow(rows) for rows in (case.truth, *case.runs.values())]
    except (OverflowError, pa.ArrowException):
        reject()
    truth, *runs = tables
    named = dict(zip(case.runs, runs, strict=True))
    assert_same(compared(case._replace(truth=truth, runs=named)), expected)
    frames = {name: run.to_pandas() for name, run in named.items()}
    assert_same(compared(case._replace(truth=truth.to_pandas(), runs=frames)), expected)
    read = {name: fb.Clustering.from_table(run) for name, run in named.items()}
    assert_same(compared(case._replace(truth=fb.Clustering.from_table(truth), runs=read)), expected)


@pytest.mark.slow
@examples(50)
@given(comparisons(least_runs=2, unmatched=False, align=("common",)))
def test_arrays_by_position_and_columns_of_one_table(case):
    """Where all have the same items, in whatever form."""
    items = list(case.truth)
    truth = np.array([case.truth[e] for e in items])
    runs = {name: np.array([run[e] for e in items]) for name, run in case.runs.items()}
    weight = None if case.weight is None else np.array([case.weight[e] for e in items])
    expected = compared(case)
    assert_same(compared(case._replace(truth=truth, runs=runs, weight=weight)), expected)
    columns = {f"column {k}": run for k, run in enumerate(runs.values())}
    table = pa.table({"true": truth, **columns, "w": np.ones(len(items)) if weight is None else weight})
    by_name = dict(zip(runs, columns, strict=True))
    cmp = fb.compare("true", by_name, table=table, weight="w", metrics=NAMES, **case.options)
    assert_same(cmp, expected)
