"""Coreference scores of several runs count all mentions of the truth and of each run, as `evaluate` does."""

import math
from collections import defaultdict

import naive_coreference
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies_compare import comparisons

import fastbcubed as fb
from fastbcubed.compare_runs.gates_of_runs import try_bound, try_worse
from fastbcubed.errors import FastBCubedError, NotKeptError, OptionError
from fastbcubed.results.gates import Bound

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")

ENGINES = ["memory", "disk"]
KEY = {"a": 1, "b": 1, "c": 2, "d": 2}
#: It finds one entity, and adds a mention to it.
HALF = {"a": 1, "b": 1, "x": 1}
ALL = {"a": 1, "b": 2, "c": 2, "d": 2}


def entities(clustering):
    found = defaultdict(set)
    for item, label in clustering.items():
        found[label].add(item)
    return list(found.values())


@pytest.mark.cases(0)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("runs", [{"half": HALF}, {"half": HALF, "too": HALF}, {"all": ALL, "half": HALF}])
def test_all_mentions_count(runs, engine):
    """MUC of half: 1 link of 2 in either; BCubed 4/9 and 1/2; CEAF of entities 4/5 and 2/5: .501 on average."""
    cmp = fb.compare(KEY, runs, metrics=["coreference", "f1"], engine=engine)
    p, r = 4 / 9, 1 / 2
    assert cmp["half"].conll_f1 == pytest.approx((1 / 2 + 2 * p * r / (p + r) + 2 * 0.8 * 0.4 / 1.2) / 3)
    for name, run in runs.items():
        for score, naive in naive_coreference.SCORES.items():
            expected = float(naive(entities(KEY), entities(run)))
            assert cmp[name].overall[score] == pytest.approx(expected), (name, score)
    assert cmp["half"].f1 == 1.0  # on a and b
    for row in cmp.deltas().to_pylist():
        before, after = (cmp[row[which]].overall[row["score"]] for which in ("baseline", "experiment"))
        assert row["delta"] == pytest.approx(after - before)


#: 60 entities of three mentions, of which one run finds the first 36 exactly; the other one has all in two parts each.
TRIPLES = {item: item // 3 for item in range(180)}
FEWER = {item: item // 3 for item in range(108)}
SPLIT = {item: (item // 3, item % 3 == 2) for item in range(180)}
SPLIT = {item: 2 * number + last for item, (number, last) in SPLIT.items()}


@pytest.mark.cases(0)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_of_60_percent_of_the_mentions(engine):
    """Fewer: precision 1 and recall 3/5 by each of the three scores. Split: MUC 1 and 1/2, BCubed 1 and 5/9, CEAF
    2/5 and 4/5, as each entity is paired with a part of two of its mentions: 4/5."""
    cmp = fb.compare(TRIPLES, {"split": SPLIT, "fewer": FEWER}, metrics=["conll_f1", "f1"], engine=engine)
    split = (2 / 3 + 5 / 7 + 8 / 15) / 3
    assert cmp["fewer"].conll_f1 == pytest.approx(3 / 4)
    assert cmp["split"].conll_f1 == pytest.approx(split)
    assert cmp["fewer"].f1 == 1.0
    (row,) = (row for row in cmp.deltas().to_pylist() if row["score"] == "conll_f1")
    assert row["delta"] == pytest.approx(3 / 4 - split)
    alone = {
        name: fb.evaluate(TRIPLES, run, metrics="conll_f1") for name, run in (("s", SPLIT), ("f", FEWER))
    }
    assert cmp["fewer"].errors.conll_f1 == pytest.approx(alone["f"].errors.conll_f1)
    assert cmp["split"].interval("conll_f1") == pytest.approx(alone["s"].interval("conll_f1"))
    each = fb.compare(TRIPLES, {"split": SPLIT, "fewer": FEWER}, metrics="conll_f1", align="each").deltas()
    assert [row[k] for k in ("se", "low", "high")] == pytest.approx(
        [each[k].to_pylist()[0] for k in ("se", "low", "high")]
    )


def test_ranks_gates_and_warnings_go_by_all_mentions():
    runs = {"all": TRIPLES, "fewer": FEWER}
    cmp = fb.compare(TRIPLES, runs, metrics="conll_f1")
    assert cmp.ranks().to_pylist() == [{"run": "all", "conll_f1": 1}, {"run": "fewer", "conll_f1": 2}]
    assert cmp.best == "all"
    assert not [each for each in cmp.warnings if each["code"] == "runs-lack-items"]  # no score drops any
    of_runs = try_bound(cmp, Bound("conll_f1", 0.8))
    assert [gate.passed for gate in of_runs] == [True, False]
    assert of_runs[1].found == "is 0.75000"  # and not on a part of the items
    (gate,) = try_worse(cmp, Bound("conll_f1", 0.3))
    assert gate.passed and not gate.reason  # 1/4 worse, and no items were dropped for it
    with_items = fb.compare(TRIPLES, runs, metrics=["conll_f1", "f1"])
    (said,) = (each for each in with_items.warnings if each["code"] == "runs-lack-items")
    assert said["message"].endswith("Coreference scores count these items, too.")
    with pytest.raises(FastBCubedError, match="lacks more items of the truth"):
        with_items.ranks()


def test_what_follows_from_a_run_is_of_all_its_mentions(tmp_path):
    cmp = fb.compare(KEY, {"half": HALF, "all": ALL}, metrics=["f1", "muc_f1"])
    alone = fb.evaluate(KEY, HALF)
    assert cmp["half"].metric("blanc_f1") == alone.metric("blanc_f1")
    assert cmp["half"].interval("lea_f1") == alone.interval("lea_f1")
    cmp["half"].save(tmp_path)
    loaded = fb.load(tmp_path)
    assert loaded.muc_f1 == 1 / 2
    for ask in (lambda: loaded.metric("blanc_f1"), lambda: loaded.interval("lea_f1")):
        with pytest.raises(FastBCubedError, match="counts all mentions of the run"):
            ask()


def test_a_score_that_was_not_named_is_not_that_of_common_mentions():
    cmp = fb.compare(KEY, {"half": HALF, "all": ALL})
    with pytest.raises(NotKeptError, match=r"name it in metrics= of compare"):
        cmp["half"].metric("conll_f1")
    whole = fb.compare(KEY, {"all": ALL, "same": ALL})
    assert whole["all"].metric("conll_f1") == fb.evaluate(KEY, ALL).metric("conll_f1")


@pytest.mark.slow
def test_a_loaded_comparison_has_the_same_differences(tmp_path):
    cmp = fb.compare(TRIPLES, {"split": SPLIT, "fewer": FEWER}, metrics=["coreference", "f1"])
    cmp.save(tmp_path)
    assert fb.load(tmp_path).deltas().equals(cmp.deltas())


def test_the_bootstrap_and_a_column_as_unit():
    labels = {"item": list(TRIPLES), "part": [item // 60 for item in TRIPLES]}
    how = {"metrics": ["conll_f1", "f1"], "attributes": labels, "bootstrap": 40}
    for unit, known in (("component", True), ("true_cluster", False), ("part", False)):
        cmp = fb.compare(TRIPLES, {"split": SPLIT, "fewer": FEWER}, unit=unit, **how)
        rows = {row["score"]: row for row in cmp.deltas().to_pylist()}
        assert math.isnan(rows["conll_f1"]["se"]) != known
        assert not math.isnan(rows["f1"]["se"])


# -- One run, or equal ones, and evaluate -------------------------------------------------------------


@pytest.mark.cases(1)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n_runs", [1, 2])
@examples(12)
@given(case=comparisons(most_runs=1), nulls=st.sampled_from(["drop", "singleton"]), data=st.data())
def test_equal_runs_have_the_scores_of_evaluate(engine, n_runs, case, nulls, data):
    """Every score, policy and weighting: the items that equal runs have in common are all that each scores."""
    (run,) = case.runs.values()
    lost = data.draw(st.sets(st.sampled_from(sorted(run, key=repr)), max_size=2))
    run = {item: None if item in lost else label for item, label in run.items()}
    how = {name: value for name, value in case.options.items() if name in ("unmatched", "weighting", "beta")}
    how |= {"metrics": "all", "engine": engine, "nulls": nulls, "overlapping": data.draw(st.booleans())}
    if case.weight is not None:
        how["weight"] = {"item": list(case.weight), "weight": list(case.weight.values())}
    runs = {f"run {k}": run for k in range(n_runs)}
    try:
        alone = fb.evaluate(case.truth, run, **how)
    except FastBCubedError as error:
        with pytest.raises(type(error)):
            fb.compare(case.truth, runs, **how)
        return
    try:
        cmp = fb.compare(case.truth, runs, **how)
    except OptionError as error:  # the disk engine, and overlapping runs, are not restricted to common items
        assert "the truth lacks and that would be scored" in str(error) or "cannot be restricted" in str(
            error
        )
        return
    for ev in cmp.runs.values():
        assert list(ev.overall) == list(alone.overall)
        assert dict(ev.overall) == pytest.approx(dict(alone.overall), rel=1e-12, abs=1e-12, nan_ok=True)
        assert ev.not_computed == alone.not_computed
        assert dict(ev.errors) == pytest.approx(dict(alone.errors), rel=1e-9, abs=1e-9, nan_ok=True)
