"""Items, clusters, slices, ranks and agreement of runs against the naive twin, and the order that they come in."""

from __future__ import annotations

import itertools
import math

import pyarrow as pa
import pytest
from asking_compare import both_ways, close, compared, number
from effort import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from naive_compare import tau_b
from strategies_compare import comparisons

import fastbcubed as fb
from fastbcubed.errors import NotKeptError, OptionError, SliceError

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
SCORES = ["precision", "recall", "f1", "mean_f1", "jaccard_distance"]
BEST = dict.fromkeys(SCORES, "higher") | {"jaccard_distance": "lower"}
COMMON = ("common",)
ORDERS = {
    "delta": lambda row: -abs(row["precision_delta"]) - abs(row["recall_delta"]),
    "worse": lambda row: row["delta"],
    "better": lambda row: -row["delta"],
}


def labels(*clusters):
    return {item: number for number, cluster in enumerate(clusters) for item in cluster}


TRUTH = labels("ab", "cd", "e")
RUNS = {"old": labels("abcd", "e"), "new": labels("ab", "c", "d", "e")}


@st.composite
def questions(draw):
    """Draw a comparison, an experiment (or none), and an order."""
    case = draw(comparisons(8, least_runs=2, most_runs=3, align=COMMON))
    experiments = [name for name in case.runs if name != (case.options["baseline"] or next(iter(case.runs)))]
    return case, draw(st.sampled_from([None, *experiments])), draw(st.sampled_from(list(ORDERS)))


def found_and_expected(question, **others):
    case, run, _ = question
    if (found := both_ways(case, metrics=SCORES, **others)) is None:
        return None
    cmp, expected = found
    return cmp, expected, run or expected.experiments[0]


def check_gains(row, expected, run, group):
    parts = [expected.gain(run, score, group) for score in ("precision", "recall")]
    assert [row[f"{name}_delta"] for name in ("precision", "recall")] == close(list(map(float, parts)))
    assert row["delta"] == close(float(sum(parts)))


def check_order(rows, order_by):
    keys = [ORDERS[order_by](row) for row in rows]
    assert all(before <= after + 1e-12 for before, after in itertools.pairwise(keys))
    for (first, second), (before, after) in zip(
        itertools.pairwise(rows), itertools.pairwise(keys), strict=True
    ):
        if before == after:
            assert first["weight"] >= second["weight"]


# Items


@examples(100)
@given(questions())
def test_items(question):
    if (found := found_and_expected(question)) is None:
        return
    cmp, expected, run = found
    rows = cmp.items(run=question[1], order_by=question[2]).to_pylist()
    assert sorted(row["item"] for row in rows) == sorted(expected.items)
    check_order(rows, question[2])
    for row in rows:
        check_gains(row, expected, run, [row["item"]])
        for name, twin in expected.runs.items():
            e = row["item"]
            assert row["weight"] == close(float(twin.weight[e]))
            assert row[f"{name}.pred_cluster"] == question[0].runs[name].get(e)
            assert row["true_cluster"] == question[0].truth.get(e)
            for score in ("precision", "recall"):
                assert row[f"{name}.{score}"] == close(float(twin.score(score, e)))
    assert cmp.items(run=question[1], order_by=question[2], limit=2).to_pylist() == rows[:2]


def test_items_worked_by_hand():
    """The new run splits c and d, which were merged with a and b: precision rises by 1/2 for four of five items."""
    cmp = fb.compare(TRUTH, RUNS, metrics=["precision", "recall"])
    rows = {row["item"]: row for row in cmp.items().to_pylist()}
    assert [rows[e]["precision_delta"] for e in "abcde"] == close([0.1, 0.1, 0.1, 0.1, 0])
    assert [rows[e]["recall_delta"] for e in "abcde"] == close([0, 0, -0.1, -0.1, 0])
    assert [rows[e]["delta"] for e in "abcde"] == close([0.1, 0.1, 0, 0, 0])
    assert [row["item"] for row in cmp.items(order_by="better", limit=2).to_pylist()] == ["a", "b"]


def test_attributes_of_items():
    attributes = {"item": list("edcba"), "country": list("yyxxx")}
    cmp = fb.compare(TRUTH, RUNS, attributes=attributes)
    rows = cmp.items("country").to_pylist()
    assert {row["item"]: row["country"] for row in rows} == dict(zip("abcde", "xxxyy", strict=True))


# Clusters


@examples(100)
@given(questions())
def test_clusters(question):
    if (found := found_and_expected(question)) is None:
        return
    cmp, expected, run = found
    rows = cmp.clusters("true", run=question[1], order_by=question[2]).to_pylist()
    twin = expected.runs[run]
    members = {}
    for e, cluster in twin.true.items():
        label = question[0].truth.get(e)
        members.setdefault((label is None, label, e if label is None else None), []).append(e)
        assert label is None or label == cluster
    assert len(rows) == len(members)
    assert sorted(row["n_items"] for row in rows) == sorted(map(len, members.values()))
    check_order(rows, question[2])
    for row in rows:
        if row["cluster"] is None:
            continue
        group = members[False, row["cluster"], None]
        check_gains(row, expected, run, group)
        assert row["weight"] == close(float(sum(twin.weight[e] for e in group)))
        for name, each in expected.runs.items():
            assert row[f"{name}.outcome"] == each.outcome("true", group)
            assert row[f"{name}.n_parts"] == len({each.pred[e] for e in group})
            if not any(each.weight[e] for e in group):
                continue
            for score in SCORES:
                assert row[f"{name}.{score}"] == close(float(each.mean(score, group)))
    assert str(cmp.clusters(run=question[1], order_by=question[2], limit=1).to_pylist()) == str(rows[:1])


def test_clusters_worked_by_hand():
    cmp = fb.compare(TRUTH, RUNS, metrics=["precision", "recall"])
    rows = {row["cluster"]: row for row in cmp.clusters("true").to_pylist()}
    assert [rows[k]["old.outcome"] for k in range(3)] == ["merged", "merged", "exact"]
    assert [rows[k]["new.outcome"] for k in range(3)] == ["exact", "split", "exact"]
    assert [rows[k]["new.n_parts"] for k in range(3)] == [1, 2, 1]
    assert [rows[k]["delta"] for k in range(3)] == close([0.2, 0, 0])


@examples(50)
@given(questions())
def test_gains_add_up_to_deltas(question):
    case, run, order_by = question
    cmp = compared(case, metrics=["precision", "recall"])
    run = run or cmp.experiments[0]
    whole = {row["score"]: row["delta"] for row in cmp.deltas().to_pylist() if row["experiment"] == run}
    for table in (cmp.items(run=run, order_by=order_by), cmp.clusters("true", run=run, order_by=order_by)):
        for score in ("precision", "recall"):
            assert math.fsum(table[f"{score}_delta"].to_pylist()) == close(whole[score])


# Slices


@pytest.mark.slow
@examples(100)
@given(questions(), st.data())
def test_slices(question, data):
    case = question[0]
    country = {e: data.draw(st.sampled_from("abc")) for e in case.items}
    attributes = {"item": list(country), "country": list(country.values())}
    if (found := found_and_expected(question, attributes=attributes)) is None:
        return
    cmp, expected, _ = found
    table = cmp.slices("country")
    rows = table.to_pylist()
    by_pair = any(expected.components_for(name) != expected.components() for name in expected.experiments)
    for name, twin in expected.runs.items():
        unit = expected.components() if name == expected.baseline else expected.components_for(name)
        values = sorted({country[e] for e in twin.true})
        assert [row["country"] for row in rows if row["run"] == name] == values
        total = sum(twin.weight[e] for e in twin.true)
        for row in (row for row in rows if row["run"] == name):
            group = [e for e in twin.true if country[e] == row["country"]]
            assert row["n_items"] == len(group)
            assert row["weight"] == close(float(sum(twin.weight[e] for e in group)))
            if row["n_units"] is None:
                assert name == expected.baseline and len(expected.runs) > 2
            else:
                assert row["n_units"] == len({unit[e] for e in group if twin.weight[e]})
                assert name != expected.baseline or not by_pair
            lost = {
                "precision_loss": sum(twin.weight[e] * (1 - twin.score("precision", e)) for e in group),
                "recall_loss": sum(twin.weight[e] * (1 - twin.score("recall", e)) for e in group),
            }
            assert {key: row[key] for key in lost} == close({k: float(v / total) for k, v in lost.items()})
            if not any(twin.weight[e] for e in group):
                continue
            for score in SCORES:
                assert row[score] == close(float(twin.mean(score, group)))
                if name == expected.baseline:
                    assert row[f"{score}_delta"] is None and row[f"{score}_delta_se"] is None
                else:
                    assert row[f"{score}_delta"] == close(float(expected.delta(name, score, group)))
                    se = expected.error(name, score, unit, group)
                    assert number(row[f"{score}_delta_se"]) == close(se)


def test_columns_of_slices():
    attributes = {"item": list("edcba"), "country": list("yyxxx")}
    cmp = fb.compare(TRUTH, RUNS, attributes=attributes, metrics=["precision", "recall"])
    plain = [
        "run",
        "country",
        "n_items",
        "weight",
        "precision_loss",
        "recall_loss",
        "precision",
        "recall",
    ]
    assert sorted(cmp.slices("country", deltas=False).column_names) == sorted(plain)
    deltas = [f"{name}_delta" for name in plain[4:]]
    errors = ["n_units", "precision_delta_se", "recall_delta_se"]
    assert sorted(cmp.slices("country").column_names) == sorted(plain + deltas + errors)


def test_overlapping_runs_have_slices_without_errors_and_no_items():
    truth = {"a": {1}, "b": {1, 2}, "c": {2}}
    runs = {"old": truth, "new": {**truth, "c": {3}}}
    cmp = fb.compare(truth, runs, overlapping=True, attributes={"item": list("abc"), "part": list("xyx")})
    assert "recall_delta" in cmp.slices("part").column_names
    assert "recall_delta_se" not in cmp.slices("part").column_names
    with pytest.raises(NotKeptError, match=r"overlapping clusterings do not have; .*cmp\[name\].items"):
        cmp.items()


# Ranks and agreement


@pytest.mark.slow
@examples(100)
@given(comparisons(8, least_runs=1))
def test_ranks_and_agreement(case):
    if (found := both_ways(case, metrics=SCORES)) is None:
        return
    cmp, expected = found
    scores = [*SCORES, "fbeta", "mean_fbeta"] if case.options["beta"] != 1 else SCORES
    for score in scores:  # no two differ by no more than rounding
        values = [expected.value(name, score) for name in case.runs]
        assume(not any(0 < abs(x - y) < 1e-9 for x, y in itertools.combinations(values, 2)))
    ranked = cmp._ranks().to_pylist()
    if cmp._ranking:
        assert cmp.ranks().to_pylist() == ranked
    rows = {row["run"]: row for row in ranked}
    assert list(rows) == list(case.runs)
    for name in case.runs:
        for score in scores:
            assert rows[name][score] == expected.rank(name, score, BEST.get(score, "higher")), (name, score)
    oriented = {
        score: [(-1 if BEST.get(score) == "lower" else 1) * expected.value(name, score) for name in case.runs]
        for score in scores
    }
    for row in cmp.agreement().to_pylist():
        for score in scores:
            assert row[score] == close(tau_b(oriented[row["score"]], oriented[score]))


# A cluster


def test_a_true_cluster_in_each_run():
    cmp = fb.compare(TRUTH, RUNS)
    rows = {row["item"]: row for row in cmp.cluster("true", 1).table.to_pylist()}
    assert list(rows) == ["c", "d"]
    assert [rows[e]["old.pred_cluster"] for e in "cd"] == [0, 0]
    assert [rows[e]["new.pred_cluster"] for e in "cd"] == [1, 2]


def test_a_cluster_of_a_run():
    cmp = fb.compare(TRUTH, RUNS)
    found = cmp.cluster("old", 0)
    assert sorted(row["item"] for row in found.table.to_pylist()) == list("abcd")
    assert "a" in repr(found)


def test_what_there_is_not():
    cmp = fb.compare(TRUTH, RUNS)
    with pytest.raises(SliceError, match="17"):
        cmp.cluster("true", 17)
    with pytest.raises(OptionError, match="nobody"):
        cmp.cluster("nobody", 0)
    with pytest.raises(OptionError, match="nobody"):
        cmp.items(run="nobody")
    with pytest.raises(OptionError, match="nonsense"):
        cmp.items(order_by="nonsense")
    with pytest.raises(OptionError):
        cmp.clusters("pred")
    with pytest.raises(NotKeptError, match="common"):
        fb.compare(TRUTH, RUNS, align="each").items()


def test_slices_that_were_not_asked_for_before_are_told_how_to_be_had_on_disk():
    sides = [pa.table({"item": ["a", "b"], "cluster": [1, 1], "country": ["x", "y"]}) for _ in range(2)]
    cmp = fb.compare(sides[0], {"old": sides[1]}, engine="disk")
    with pytest.raises(NotKeptError, match=r"compare\(\.\.\., slices="):
        cmp.slices("country")


@pytest.mark.parametrize("unit", ["component", "true_cluster", "block"])
def test_errors_of_a_slice_of_all_items_are_those_of_the_deltas(unit):
    truth = pa.table({"item": list("abcdefgh"), "cluster": list("uuvvwwxx"), "block": list("11112233")})
    runs = {
        "old": dict(zip("abcdefgh", "pppqqrst", strict=True)),
        "new": dict(zip("abcdefgh", "ppqqrrst", strict=True)),
    }
    cmp = fb.compare(truth, runs, unit=unit, unmatched={"prediction": "outside"})
    cmp_deltas = {row["score"]: row["se"] for row in cmp.deltas().to_pylist()}
    row = cmp.slices({"all": list("abcdefgh")}).to_pylist()[1]
    assert row["n_units"] == {"component": 2, "true_cluster": 4, "block": 3}[unit]
    assert {score: row[f"{score}_delta_se"] for score in cmp_deltas} == pytest.approx(cmp_deltas, rel=1e-12)


def test_attributes_called_as_columns_of_ours_are_listed() -> None:
    own = {"item": ["v", "w", "v"], "true_cluster": ["s", "t", "t"], "weight": [5, 6, 7], "part": [8, 9, 8]}
    truth = pa.table({"id": [1, 2, 3], "c": ["a", "a", "b"], **own})
    runs = {
        name: pa.table({"id": [1, 2, 3], "c": labels})
        for name, labels in (("x", [1, 1, 1]), ("y", [1, 2, 3]))
    }
    cmp = fb.compare(truth, runs, item="id", cluster="c")
    for found in (cmp.items(columns=list(own), order_by=None), cmp.cluster("x", 1, columns=list(own)).table):
        found = found.to_arrow().sort_by("item")
        assert found["item"].to_pylist() == [1, 2, 3] and found["true_cluster"].to_pylist() == ["a", "a", "b"]
        for name, values in own.items():
            known = f"attribute.{name}" if f"attribute.{name}" in found.column_names else name
            assert found[known].to_pylist() == values
    assert "attribute.item" in repr(cmp.cluster("x", 1, columns="item"))
