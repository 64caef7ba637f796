"""Comparisons worked by hand, of one run, of runs that lack rows, of names like columns; and what is refused."""

from __future__ import annotations

import copy
import json
import math
import pickle
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from documents import lines, notices, of_section, parts, rows

import fastbcubed as fb
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    EmptyInputError,
    FastBCubedError,
    IdTypeError,
    NullError,
    OptionError,
    SliceError,
    WeightError,
)
from fastbcubed.results.intervals import t_quantile

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")


#: Title of the warnings on a page.
WARNED = "Before you rely on this"


def deltas(page):
    """Return the differences on a page."""
    return [row for grid in parts(of_section(page.content, "differences"), "Grid") for row in rows(grid)]


def verdicts(cmp, run):
    """Return what the page says of the differences of a run, which has a table of its own."""
    grids = parts(of_section(cmp.report().content, "differences"), "Grid")
    return {row["verdict"] for row in rows(grids[list(cmp.experiments).index(run)])}


def labels(*clusters):
    return {item: number for number, cluster in enumerate(clusters) for item in cluster}


TRUTH, SPLIT = labels("ab", "cd", "e"), labels("ab", "c", "d", "e")


def delta(cmp, experiment, score):
    (row,) = (
        row
        for row in cmp.deltas(adjust="none").to_pylist()
        if (row["experiment"], row["score"]) == (experiment, score)
    )
    return row


# Worked by hand


def test_a_split_cluster():
    """Recall falls from 1 to 4/5; d_u are 2, -3, 1 over 25, and of 2 degrees of freedom, as of fewer than six units,
    t has 1.5: 6.0167. Another unit of 2 items beside the 5 would have 2/7 of the weight, 0.36 of which may be missing.
    """
    cmp = fb.compare(TRUTH, {"old": TRUTH, "new": SPLIT})
    row = delta(cmp, "new", "recall")
    se = math.sqrt(21) / 25
    reach = math.hypot(t_quantile(0.95, 1.5) * se, 1.959964 * 0.36 * 2 / 7)
    assert row["delta"] == pytest.approx(-1 / 5, rel=1e-12)
    assert row["se"] == pytest.approx(se, rel=1e-12)
    assert row["low"] == pytest.approx(max(-1 / 5 - reach, -1), rel=1e-9)
    assert row["high"] == pytest.approx(min(-1 / 5 + reach, 1), rel=1e-9)
    assert row["holds"] is False
    assert delta(cmp, "new", "f1")["delta"] == pytest.approx(-1 / 9, rel=1e-12)


@pytest.mark.parametrize(
    ("weight", "p", "r", "jd"),
    [(None, 1 / 6, 1 / 6, -2 / 9), (dict(zip("abcdef", range(1, 7), strict=True)), 29 / 378, 8 / 49, None)],
)
def test_worked_deltas(weight, p, r, jd):
    """METRICS 11.2: all items are one component, so nothing is said of errors."""
    runs = {"base": labels("abc", "de", "f"), "exp": labels("ab", "cde", "f")}
    cmp = fb.compare(labels("ab", "cd", "ef"), runs, weight=weight)
    assert delta(cmp, "exp", "precision")["delta"] == pytest.approx(p, rel=1e-12)
    assert delta(cmp, "exp", "recall")["delta"] == pytest.approx(r, rel=1e-12)
    if jd is not None:
        assert delta(cmp, "exp", "jaccard_distance")["delta"] == pytest.approx(jd, rel=1e-12)
    assert delta(cmp, "exp", "precision")["holds"] is None


def test_a_run_without_rows_for_singletons():
    """Its missing items are alone, as in the split cluster above."""
    runs = {"old": TRUTH, "new": {"a": 1, "b": 1}}
    cmp = fb.compare(TRUTH, runs, unmatched={"truth": "singleton"})
    row = delta(cmp, "new", "recall")
    assert row["delta"] == pytest.approx(-1 / 5, rel=1e-12)
    assert row["se"] == pytest.approx(math.sqrt(21) / 25, rel=1e-12)
    assert cmp.scores().column("n_items").to_pylist() == [5, 5]
    assert cmp.scores().column("n_clusters").to_pylist() == [3, 4]
    dropped = fb.compare(TRUTH, runs)
    assert dropped.scores().column("n_items").to_pylist() == [2, 2]
    each = fb.compare(TRUTH, runs, align="each")
    assert each.scores().column("n_items").to_pylist() == [5, 2]


def test_three_runs_give_two_rows_a_score_and_all_pairs_by_composition():
    runs = {"a": TRUTH, "b": SPLIT, "c": labels("abcd", "e")}
    assert {fb.compare(TRUTH, runs, baseline=name).baseline for name in runs} == set(runs)
    cmp = fb.compare(TRUTH, runs, metrics=["precision", "recall"], baseline="b")
    rows = cmp.deltas().to_pylist()
    assert [(row["experiment"], row["score"]) for row in rows] == [
        ("a", "precision"), ("a", "recall"), ("c", "precision"), ("c", "recall"),
    ]  # fmt: skip
    assert [row["delta"] for row in rows] == pytest.approx([0, 1 / 5, 3 / 5 - 1, 1 / 5])


# One run, equal runs


def test_one_run():
    cmp = fb.compare(TRUTH, {"only": SPLIT})
    assert list(cmp) == ["only"] and cmp.baseline == "only" and len(cmp) == 1
    assert len(cmp.deltas()) == 0
    assert {"baseline", "experiment", "score", "delta", "se", "low", "high", "holds"} <= set(
        cmp.deltas().column_names
    )
    assert cmp["only"].recall == pytest.approx(4 / 5)
    assert "only" in repr(cmp)


def test_two_equal_runs():
    """Their interval is what units that were not drawn may differ by; a bootstrap draws none of these."""
    cmp = fb.compare(TRUTH, {"old": SPLIT, "new": dict(SPLIT)}, bootstrap=50)
    for row in cmp.deltas().to_pylist():
        assert (row["delta"], row["se"], row["low"], row["high"], row["holds"]) == (0, 0, 0, 0, False)
    cmp = fb.compare(TRUTH, {"old": SPLIT, "new": dict(SPLIT)})
    others = 1 - 0.025 ** (1 / cmp.units.effective)
    for row in cmp.deltas().to_pylist():
        assert (row["delta"], row["se"], row["holds"]) == (0, 0, False)
        assert (row["low"], row["high"]) == pytest.approx((-others, others))


def test_the_truth_as_a_run():
    cmp = fb.compare(TRUTH, {"truth": TRUTH, "new": SPLIT})
    assert cmp["truth"].f1 == 1 and cmp["new"].f1 == pytest.approx(8 / 9)


# Names


@pytest.mark.cases(4, 99)
@pytest.mark.parametrize(
    "name", ["item", "cluster", "score", "run", "baseline", "delta", "true_cluster", "a.b", "é", ""]
)
def test_runs_named_like_columns(name):
    runs = {"old": TRUTH, name: SPLIT}
    if not name:
        with pytest.raises(OptionError):
            fb.compare(TRUTH, runs)
        return
    cmp = fb.compare(TRUTH, runs)
    assert delta(cmp, name, "recall")["delta"] == pytest.approx(-1 / 5)
    for table in (
        cmp.scores(),
        cmp.deltas(),
        cmp.items(),
        cmp.clusters("true"),
        cmp.ranks(),
        cmp.agreement(),
    ):
        assert len(set(table.column_names)) == len(table.column_names)
        repr(table)


# One table


def test_columns_of_one_table(tmp_path):
    items = list(TRUTH)
    table = pa.table(
        {
            "item": items,
            "cluster": [TRUTH[e] for e in items],
            "col_a": [TRUTH[e] for e in items],
            "col_b": [SPLIT[e] for e in items],
        }
    )
    pq.write_table(table, tmp_path / "all.parquet")
    for source in (table, table.to_pandas(), tmp_path / "all.parquet"):
        cmp = fb.compare("cluster", {"p50": "col_a", "p95": "col_b"}, table=source)
        assert delta(cmp, "p95", "recall")["delta"] == pytest.approx(-1 / 5)


def test_nulls_of_one_table_follow_the_policy():
    """With nulls="drop", a null label says that the item is not on that side."""
    options = {"nulls": "drop"}
    table = pa.table({"cluster": [1, 1, 2, 2, 3], "a": [1, 1, 2, 2, 3], "b": [1, 1, None, None, None]})
    cmp = fb.compare(
        "cluster", {"old": "a", "new": "b"}, table=table, unmatched={"truth": "singleton"}, **options
    )
    assert delta(cmp, "new", "recall")["delta"] == pytest.approx(-1 / 5)
    cmp = fb.compare("cluster", {"old": "a", "new": "b"}, table=table, **options)
    assert cmp.scores().column("n_items").to_pylist() == [2, 2]


def test_one_column_for_two_runs():
    table = pa.table({"cluster": [1, 1, 2], "a": [1, 2, 2]})
    cmp = fb.compare("cluster", {"x": "a", "y": "a"}, table=table)
    assert {row["delta"] for row in cmp.deltas().to_pylist()} == {0}


# Nothing is changed


def test_the_input_is_left_as_it_is():
    truth, runs = dict(TRUTH), {"old": dict(TRUTH), "new": dict(SPLIT)}
    fb.compare(truth, runs, bootstrap=40)
    assert truth == TRUTH and runs == {"old": TRUTH, "new": SPLIT}
    arrays = [np.array([1, 1, 2]), np.array([1, 2, 2])]
    copies = [each.copy() for each in arrays]
    fb.compare(arrays[0], {"x": arrays[1], "y": arrays[0]})
    for each, before in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(each, before)


def test_runs_changed_later_do_not_change_the_comparison():
    runs = {"old": dict(TRUTH), "new": dict(SPLIT)}
    cmp = fb.compare(TRUTH, runs)
    del runs["new"]
    assert list(cmp.runs) == ["old", "new"]


# Refused


@pytest.mark.parametrize(
    ("runs", "options", "said"),
    [
        ({}, {}, "run"),
        ({"old": TRUTH}, {"baseline": "nobody"}, "nobody"),
        ({"old": TRUTH}, {"align": "both"}, "both"),
        ({"old": TRUTH}, {"level": 95}, "95"),
        ({"old": TRUTH}, {"level": 0}, "level"),
        ({"old": TRUTH}, {"bootstrap": -1}, "bootstrap"),
        ({"old": TRUTH}, {"bootstrap": 1.5}, "bootstrap"),
        (
            {"old": TRUTH, "new": SPLIT},
            {"bootstrap": 39},
            "bootstrap is 39, but 95.0 % intervals .* need 40 replicates",
        ),
        ({"a": TRUTH, "b": SPLIT, "c": SPLIT}, {"bootstrap": 39, "level": 0.9}, "need 40 replicates"),
        ({"old": TRUTH, "new": SPLIT}, {"bootstrap": 3, "level": 0.5}, "need 4 replicates"),
        ({"old": TRUTH}, {"seed": "x", "bootstrap": 10}, "seed"),
        ({"old": TRUTH, "new": SPLIT}, {"unit": 3}, "unit"),
        ({"old": TRUTH, "new": SPLIT}, {"engine": "spark"}, "not on Spark"),
        ({"old": TRUTH, 7: TRUTH}, {}, "7"),
        ({"old": TRUTH, "\ud800": TRUTH}, {}, r"run names must be strings, not '\\ud800'"),
        ([TRUTH, SPLIT], {}, "name"),
    ],
)
def test_what_is_refused(runs, options, said):
    with pytest.raises(FastBCubedError, match=said) as caught:
        fb.compare(TRUTH, runs, **options).deltas()
    assert len(str(caught.value)) < 1000


def test_an_unknown_run():
    cmp = fb.compare(TRUTH, {"old": TRUTH, "new": SPLIT})
    with pytest.raises((KeyError, FastBCubedError), match="nobody"):
        cmp["nobody"]


def test_the_error_names_the_run():
    """Items that are not to be unmatched, an item twice, no item in common: whose?"""
    with pytest.raises(AlignmentError, match="new"):
        fb.compare(TRUTH, {"old": TRUTH, "new": {"a": 1}}, unmatched="raise")
    with pytest.raises(FastBCubedError, match="new"):
        fb.compare(TRUTH, {"old": TRUTH, "new": {"x": 1}})
    twice = pa.table({"item": ["a", "a"], "cluster": [1, 2]})
    with pytest.raises(FastBCubedError, match="new"):
        fb.compare(TRUTH, {"old": TRUTH, "new": twice})


FAULTS = {
    "null": ("cluster", [1, None, 2, 2], NullError, "1 of 4 rows of"),
    "weight": ("w", [1.0, 2.0, -3.0, 4.0], WeightError, "1 of 4 weights of"),
    "label": ("cluster", [0.5, 1, 2, 2], IdTypeError, "column 'cluster' of"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_fault_of_the_truth_is_of_no_run_and_one_of_a_run_names_it(tmp_path, fault, on_disk):
    column, values, error, said = FAULTS[fault]
    sound = pa.table({"item": [1, 2, 3, 4], "cluster": [1, 1, 2, 2], "w": [1.0, 2.0, 3.0, 4.0]})
    wrong = sound.set_column(sound.column_names.index(column), column, pa.array(values))

    def given(name, table):
        if not on_disk:
            return table
        pq.write_table(table, tmp_path / name)
        return tmp_path / name

    options = {"weight": "w", "engine": "disk" if on_disk else "memory"}
    a, b = given("a", sound), given("b", wrong)
    with pytest.raises(error, match=f"^{said}"):
        fb.compare(given("t-a", wrong), {"first": a, "second": b}, **options)  # "a" is a part of its name
    with pytest.raises(error, match=f"^run 'second': {said}"):
        fb.compare(given("t", sound), {"first": a, "second": b}, **options)


def test_a_fault_of_weights_that_all_runs_share_is_of_no_run():
    runs = {"first": [1, 1, 2], "second": [1, 2, 2]}
    for wrong in ([1.0, 2.0], np.ones((3, 1)), 2.0, {1: 1.0}):
        with pytest.raises(WeightError, match=r"^weight "):
            fb.compare([1, 1, 2], runs, weight=wrong)
    with pytest.raises(WeightError, match=r"^1 of 2 weights of the weight table"):
        fb.compare({"a": 1, "b": 1}, {"first": {"a": 1, "b": 2}}, weight={"a": 1.0, "b": -1.0})


@pytest.mark.parametrize("kind", [pa.decimal128(20), pa.float64()])
def test_clusters_are_opened_by_labels_as_they_were_given(kind):
    run = pa.table({"item": [1, 2, 3], "cluster": pa.array([7, 7, 8]).cast(kind)})
    cmp = fb.compare({1: 1, 2: 1, 3: 1}, {"run": run})
    label = run["cluster"][0].as_py()
    assert cmp.cluster("run", label).table.num_rows == 2
    assert cmp["run"].cluster("pred", label)["n_items"] == 2


@pytest.mark.parametrize("names", [("plain", "more"), ("more", "plain")])
def test_weights_of_items_that_only_a_prediction_has_count_in_any_order_of_runs(names):
    truth = pa.table({"item": [1, 2, 3, 4], "cluster": [1, 1, 2, 2], "w": [1.0, 2.0, 3.0, 4.0]})
    runs = {
        "plain": pa.table({"item": [1, 2, 3, 4], "cluster": [1, 2, 2, 3]}),
        "more": pa.table(
            {"item": [1, 2, 3, 4, 5], "cluster": [1, 2, 2, 3, 3], "w": [1.0, 2.0, 3.0, 4.0, 5.0]}
        ),
    }
    cmp = fb.compare(truth, {n: runs[n] for n in names}, weight="w", unmatched={"prediction": "outside"})
    # 1 alone: 1; 2 and 3 together: 2/5 and 3/5; 4 alone, or with 5: 4/4 or 4/9
    assert cmp["plain"].precision == pytest.approx((1 + 2 * 2 / 5 + 3 * 3 / 5 + 4) / 10, rel=1e-12)
    assert cmp["more"].precision == pytest.approx((1 + 2 * 2 / 5 + 3 * 3 / 5 + 4 * 4 / 9) / 10, rel=1e-12)


def test_no_item_that_every_run_scores():
    runs = {"old": {"a": 1, "b": 2}, "new": {"c": 1}}
    with pytest.raises(EmptyInputError) as caught:
        fb.compare(TRUTH, runs)
    assert "each" in str(caught.value)  # the way out
    assert len(fb.compare(TRUTH, runs, align="each").deltas()) > 0


def test_runs_that_have_but_items_in_common_which_the_truth_lacks():
    """As where no item is scored: it was an error of Python, for a coverage of nothing."""
    runs = {"old": {"a": 1, "x": 3}, "new": {"b": 1, "x": 2}}
    options = {"unmatched": {"truth": "drop", "prediction": "singleton"}}
    with pytest.raises(
        EmptyInputError, match=r"no item of the truth is scored in every run \(items scored: old 2"
    ):
        fb.compare({"a": 1, "b": 2}, runs, **options)
    assert fb.compare({"a": 1, "b": 2}, runs, align="each", **options)["new"].coverage.n_common == 1


def test_arrays_of_unequal_length():
    with pytest.raises(FastBCubedError, match="new"):
        fb.compare([1, 1, 2], {"old": [1, 1, 2], "new": [1, 2]})


@pytest.mark.cases(0)
@pytest.mark.parametrize("align", ["common", "each"])
def test_comparisons_are_pickled_and_copied(align):
    truth = pa.table({"item": list("abcd"), "cluster": [1, 1, 2, 2], "s": [1, 2, 1, 2]})
    cmp = fb.compare(truth, {"old": dict.fromkeys("abcd", 1), "new": {"a": 1, "b": 1, "c": 2}}, align=align)
    for again in (pickle.loads(pickle.dumps(cmp)), copy.deepcopy(cmp), copy.copy(cmp)):
        assert list(again) == ["old", "new"] and again.to_json() == cmp.to_json()
        for one, other in ((each.deltas(), each.slices("s")) for each in (again, cmp)):
            assert repr(one) == repr(cmp.deltas()) and repr(other) == repr(cmp.slices("s"))


@pytest.mark.parametrize(
    ("metrics", "unit"),
    [
        ("onmi_lfk", "true_cluster"),
        (["onmi_max"], "true_cluster"),
        ("adjusted_rand", "true_cluster"),
        (lambda tp, fp, fn, tn: tp + tn, "true_cluster"),
    ],
)
def test_scores_none_of_which_has_an_error(metrics, unit):
    runs = {"old": [1, 1, 2, 3, 4], "new": [1, 1, 1, 3, 4]}
    cmp = fb.compare([1, 1, 1, 2, 3], runs, metrics=metrics, unit=unit, bootstrap=40)
    deltas = cmp.deltas().to_pylist()
    assert all(row["delta"] == row["experiment_value"] - row["baseline_value"] for row in deltas)
    assert [row["holds"] for row in deltas] == [None] * len(deltas)
    assert cmp.units.n > 1 and repr(cmp) and json.loads(cmp.to_json())["deltas"]
    assert cmp.slices("true_size").num_rows and cmp.clusters().num_rows


@pytest.mark.parametrize("function", [fb.compare, fb.diff, fb.estimate, fb.evaluate])
def test_progress_that_is_none(function):
    other = {"old": TRUTH} if function is fb.compare else TRUTH
    with pytest.raises(OptionError, match="progress must be True, False or a function, not 'yes'"):
        function(TRUTH, other, progress="yes")


@pytest.mark.parametrize("shown", [True, False, None])
def test_progress_as_numpy_has_it(shown, capsys):
    fb.evaluate(TRUTH, TRUTH, progress=shown if shown is None else np.bool_(shown))
    assert not capsys.readouterr().err


def test_numbers_of_numpy():
    """As they come out of another computation: arguments, limits, and a result that is saved with them."""
    runs = {"old": {"a": 1, "b": 2, "c": 3}, "new": {"a": 1, "b": 1, "c": 3}}
    plain = fb.compare(TRUTH, runs, bootstrap=40, seed=3, threads=1)
    found = fb.compare(TRUTH, runs, bootstrap=np.int64(40), seed=np.uint8(3), threads=np.int32(1))
    assert found.deltas().to_pylist() == plain.deltas().to_pylist()
    assert found.items(limit=np.int64(2)).to_pylist() == plain.items(limit=2).to_pylist()
    json.dumps(found.to_dict())
    assert found.cluster("true", next(iter(TRUTH.values())), members=np.int8(1)).keys()
    limited = fb.compare(TRUTH, runs, memory_limit=np.int64(1 << 30), level=np.float32(0.5))
    assert limited["old"].to_dict()["manifest"]["arguments"]["memory_limit"] == 1 << 30
    ev = limited["old"]
    assert ev.macro("true_size", min_items=np.int64(1)).to_pylist() == ev.macro("true_size").to_pylist()
    ev.item("a", members=np.int64(1))
    ev.check(f1=np.float32(0.1), recall=np.int64(0))
    fb.evaluate(TRUTH, runs["new"]).report(worst=np.int64(1), members=np.int64(1))
    for wrong in ({"bootstrap": np.int64(-1)}, {"seed": np.bool_(True)}, {"threads": np.int64(0)}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            fb.compare(TRUTH, runs, **wrong)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"align": "each"}, 'align="common"'),
        ({"engine": "disk", "memory_limit": "256MiB"}, 'engine="memory"'),
    ],
)
def test_units_by_a_column_are_refused_before_the_work_where_rows_are_in_no_order(options, told, tmp_path):
    truth = pa.table({"item": list("abcd"), "cluster": [1, 1, 2, 2], "country": list("uudd")})
    pq.write_table(truth, tmp_path / "truth.parquet")
    runs = {"old": tmp_path / "truth.parquet", "new": tmp_path / "truth.parquet"}
    with pytest.raises(OptionError, match=f"units by the column 'country' .* or {told}"):
        fb.compare(tmp_path / "truth.parquet", runs, unit="country", **options)
    assert repr(fb.compare(tmp_path / "truth.parquet", runs, unit="country"))


@pytest.mark.slow
def test_a_column_of_units_that_is_not_there_is_refused_before_the_work(tmp_path, monkeypatch):
    truth = pa.table(
        {"source": list("sstt"), "id": [1, 2, 1, 2], "cluster": [1, 1, 2, 2], "country": list("uudd")}
    )
    runs = {"old": truth.drop_columns(["country"]), "new": truth.append_column("src", pa.array(list("uuuu")))}
    options = {"item": ["source", "id"], "attributes": truth.rename_columns(["source", "id", "c", "colour"])}
    for known in ("country", "truth.country", "colour", "source", "pred_size"):
        assert fb.compare(truth, runs, unit=known, **options).deltas().num_rows == 7
    assert fb.compare(truth, runs, unit="src", baseline="new", **options).deltas().num_rows == 7
    assert fb.compare(truth, {"old": truth, "new": truth}, unit="country", item=["source", "id"]).units.n == 2
    monkeypatch.setattr("fastbcubed.align.align_runs.align_together", lambda *_, **__: pytest.fail("at work"))
    for wrong, meant in (
        ("colunm", "colour"),
        ("countri", "country"),
        ("src", "source"),
        ("truth.colour", "colour"),
    ):
        told = f'^unit must be "component", .* there is no attribute {wrong!r}.* Did you mean {meant!r}'
        with pytest.raises(ColumnError, match=told):
            fb.compare(truth, runs, unit=wrong, **options)
    for wrong in ("", "cluster", "item"):
        with pytest.raises(ColumnError, match=f"there is no attribute '{wrong}'.*truth: country"):
            fb.compare(truth, runs, unit=wrong, **options)


def test_columns_that_make_no_units_are_refused():
    truth = pa.table({"item": [1, 2, 3], "cluster": [1, 1, 2], "tags": [["a"], ["b"], []], "year": [1, 2, 3]})
    other = truth.set_column(3, "year", pa.array([1, 2, 4]))
    for wrong, error, told in (
        ("tags", SliceError, "cannot slice by 'tags'"),
        ("year", ColumnError, "values differ"),
    ):
        with pytest.raises(error, match=told):
            fb.compare(truth, {"old": other.drop_columns(["tags"]), "new": other}, unit=wrong)


# Runs that lack items of the truth


def pairs_of_40():
    """Return 20 true pairs, and runs: `full` cuts ten, `linked` is the same without the items that it cuts.

    Recall of `full` is (20 + 20 / 2) / 40 = 3/4, and f1 2 * 3/4 / (7/4) = 6/7. On the 20 items that `linked` has, all
    is right; if the others were alone in it, it would be `full`.
    """
    truth = {k: k // 2 for k in range(40)}
    full = {k: k // 2 if k < 20 else 100 + k for k in truth}
    return truth, {"full": full, "linked": {k: full[k] for k in range(20)}}


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_runs_without_rows_do_not_look_alike(engine):
    truth, runs = pairs_of_40()
    with pytest.warns(
        fb.EvaluationWarning, match=r"linked 20 \(50.0 %\).*full 1, 0.85714, 0.85714; linked 1, 1, 0.8"
    ):
        cmp = fb.compare(truth, runs, engine=engine)
    assert (cmp["full"].f1, cmp["linked"].f1) == (1, 1)
    by_run = {row["run"]: row for row in cmp.coverage().to_pylist()}
    assert [by_run["full"][name] for name in ("own_recall", "recall_if_alone")] == [0.75, 0.75]
    assert [by_run["linked"][name] for name in ("own_recall", "recall_if_alone")] == [1, 0.75]
    assert by_run["full"]["own_f1"] == by_run["linked"]["f1_if_alone"] == pytest.approx(6 / 7, abs=1e-15)
    (warning,) = (found for found in cmp.warnings if found["code"] == "runs-lack-items")
    assert (warning["level"], warning["runs"]) == ("warning", ["linked"])
    assert warning["by_run"]["linked"]["n_items"] == 20
    with pytest.raises(OptionError, match="'linked' lacks more items of the truth than 'full'"):
        cmp.ranks()
    told = json.loads(cmp.to_json())
    assert told["ranks"] is None and told["warnings"][0]["code"] == "runs-lack-items"
    assert all(f">{head}<" in cmp._repr_html_() for head in ("own f1", "f1 if alone"))
    assert "runs-lack-items" in {row["code"] for row in notices(cmp.report().content, WARNED)}


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_runs_on_their_own_items_say_so_too(engine):
    truth, runs = pairs_of_40()
    cmp = fb.compare(truth, runs, align="each", engine=engine)
    codes = [found["code"] for found in cmp.warnings]
    assert "runs-lack-items" in codes and "dropping-truth-flatters" not in codes
    why = r"ranking is empty: 'linked' lacks more items .* Pass unmatched=.*\[runs-lack-items\]"
    with pytest.warns(fb.EvaluationWarning, match=f"(?s){why}"):
        assert cmp.ranking == []
    alone = fb.compare(truth, runs, unmatched={"truth": "singleton"}, engine=engine)
    assert "runs-lack-items" not in [found["code"] for found in alone.warnings]
    assert alone.ranks()["f1"].to_pylist() == [1, 1]


def test_one_warning_for_all_runs():
    truth, runs = pairs_of_40()
    cmp = fb.compare(truth, runs | {f"run {k}": {i: 0 for i in range(k, 40)} for k in range(1, 12)})
    (warning,) = (found for found in cmp.warnings if found["code"] == "runs-lack-items")
    assert len(warning["runs"]) == 12 and len(warning["by_run"]) == 13
    assert "linked 20 (50.0 %), run 11 11 (27.5 %), run 10" in warning["message"]
    assert "and 7 more. F1" in warning["message"] and "and 8 more. If" in warning["message"]


def test_a_run_that_lacks_more_and_is_worse_has_its_rank():
    truth, runs = pairs_of_40()
    worse = {k: k if k % 4 < 2 else 0 for k in range(20)}
    assert fb.compare(truth, {"full": runs["full"], "worse": worse}).ranks()["f1"].to_pylist() == [1, 2]


def test_a_little_that_lacks_is_a_note():
    """One item of 1,000 in pairs: recall of all is 1 - 1 / 1,000, and f1 less than 0.001 lower."""
    truth = {k: k // 2 for k in range(1000)}
    cmp = fb.compare(truth, {"all": truth, "most": {k: truth[k] for k in range(999)}})
    assert [found["level"] for found in cmp.warnings if found["code"] == "runs-lack-items"] == ["note"]
    assert cmp.ranks()["f1"].to_pylist() == [1, 1]


# -- The one thing ---------------------------------------------------------------------------------


def pairs_of(split: set[int], n: int = 40) -> dict[int, str]:
    """Return the clusters of 2 n items, those of a pair together but for some."""
    return {item: f"{item // 2}{item % 2 if item // 2 in split else ''}" for item in range(2 * n)}


#: Four parts of ten pairs. Old splits five in each part, so that recall is (80 - 20) / 80; new splits six of the last.
FORTY = {"item": range(80), "cluster": [k // 2 for k in range(80)], "part": [k // 20 for k in range(80)]}
OLD, NEW = ({k for k in range(40) if k % 10 < 5}, {*range(30, 36)})


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        # F1 is 1.5 / 1.75 and 1.85 / 1.925; its slopes by recall are 2 / 1.75^2 and 2 / 1.925^2, the error is 0.0264
        (
            "old",
            "new is better: F1 0.857 → 0.961, +0.104 (+0.050 to +0.158), better in 3 and worse in 1 of 4 "
            "slices by part, including differences that may be chance (worse: 3).",
        ),
        (
            "new",
            "old is worse: F1 0.961 → 0.857, -0.104 (-0.158 to -0.050), worse in 3 and better in 1 of 4 "
            "slices by part, including differences that may be chance (better: 3).",
        ),
    ],
)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_the_text_and_the_page_begin_with_which_run_is_better(tmp_path, baseline, said, engine):
    pq.write_table(pa.table({k: list(v) for k, v in FORTY.items()}), tmp_path / "truth.parquet")
    runs = {"old": pairs_of(OLD), "new": pairs_of(NEW)}
    for name, own in runs.items():
        table = pa.table({"item": list(own), "cluster": list(own.values())})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    paths = {name: tmp_path / f"{name}.parquet" for name in runs}
    cmp = fb.compare(tmp_path / "truth.parquet", paths, baseline=baseline, slices="part", engine=engine)
    assert " ".join(repr(cmp).split()).startswith(said)
    assert said in cmp._repr_html_()
    page = cmp.report(by="part" if engine == "memory" else None)
    assert lines(page.content["head"]) == [said]
    shown = page.html.replace("\u00a0", " ")
    assert shown.index(said.replace("&", "&amp;")) < shown.index("<dl")


@pytest.mark.parametrize(
    ("old", "new", "options", "said"),
    [
        # one of four pairs is found in new alone: an error of 2 / 1.875^2 / 8; f1 of old is .533 by its precision
        ([1, 1, 2, 2, 3, 3, 4, 5], [1, 1, 2, 2, 3, 3, 4, 4], {},
         "No clear difference between old and new: F1 0.9333 → 1.0000, +0.0667 (-0.3678 to +0.5011), which "
         "stems from few groups of items."),
        ([1, 1, 2, 2, 3, 3, 4, 5], [1, 1, 2, 2, 3, 3, 4, 4],
         {"metrics": "adjusted_rand", "unit": "true_cluster"},
         "new is better on these items: adjusted_rand 0.83721 → 1, +0.1628; no interval is known."),
        ([1, 1, 2, 2, 3, 3, 4, 5], [1, 1, 2, 2, 3, 3, 4, 4], {"metrics": "homogeneity"},
         "new against old: no difference in any score."),
        # precision (4 + 4 + 8) / 16 here, recall there
        ([1, 1, 2, 2, 3, 4, 5, 6], [1, 1, 2, 2, 3, 3, 3, 3], {"metrics": ["f1", "precision"], "baseline": "old"},
         "new and old have the same F1:"),
        ([1, 1, 2, 2, 3, 3, 4, 5], None, {}, "Only one run was given; there is nothing to compare."),
    ],
)  # fmt: skip
def test_the_one_thing_is_honest(old, new, options, said):
    runs = {"old": old} | ({} if new is None else {"new": new})
    assert " ".join(repr(fb.compare(list("aabbccdd"), runs, **options)).split()).startswith(said)


def test_a_change_that_is_small_beside_its_error_does_not_read_as_none():
    """Recall (2 + 2/3 + 2/3 + 1/3) / 5 and (1/2 + 1/2 + 3) / 5, so that F1 is 22 / 26 and 8 / 9."""
    runs = {"old": [1, 1, 2, 2, 3], "new": [1, 2, 3, 3, 3]}
    text = " ".join(repr(fb.compare([1, 1, 2, 2, 2], runs)).split())
    assert re.search(
        r"F1 0\.8462 → 0\.8889, \+0\.0427 \(-[\d.]+ to \+[\d.]+\), which .* f1 \+0\.0427 \(", text
    )


def test_a_difference_that_one_unit_carries_may_be_chance():
    """All but five items of 105 are one unit, of which the new run finds more."""
    truth = [0] * 50 + [1] * 50 + list(range(2, 7))
    old = [*range(100), *range(200, 205)]
    new = [7] * 100 + old[100:]
    said = repr(fb.compare(truth, {"old": old, "new": new}))
    assert said.startswith("No clear difference between old and new: F1 ")


@pytest.mark.slow
def test_of_several_runs_the_best_is_named_and_those_that_are_as_good():
    """Beside those of two runs: good splits two pairs less than new, which may be chance, and worst all."""
    truth = {item: item // 2 for item in range(80)}
    split = {"worst": set(range(40)), "old": OLD, "new": NEW, "good": {30, 31, 32, 33}}
    cmp = fb.compare(truth, {name: pairs_of(own) for name, own in split.items()})
    assert cmp.best == "good" and cmp.baseline == "worst"
    f1 = [2 * r / (1 + r) for r in (0.95, 0.925, 0.75, 0.5)]  # each pair that is split costs 1/80 of recall
    assert [row["run"] for row in cmp.ranking] == ["good", "new", "old", "worst"]
    assert [row["value"] for row in cmp.ranking] == pytest.approx(f1)
    assert [row["as_good"] for row in cmp.ranking] == [True, True, False, False]
    text = " ".join(repr(cmp).split())
    assert text.startswith("good has the best F1, 0.97436; new may be as good: the difference may be chance.")
    # split in new alone are two of forty pairs: moves of F1 by its slopes times 1/2, in pairs of which each is 1/40
    by_hand = fb.compare(truth, {name: pairs_of(split[name]) for name in ("good", "new")}).deltas()
    (of_pair,) = (row for row in by_hand.to_pylist() if row["score"] == "f1")
    assert cmp.ranking[1]["se"] == pytest.approx(of_pair["se"], rel=1e-12)
    assert fb.compare(truth, {n: pairs_of(s) for n, s in split.items()}, baseline="best").baseline == "good"
    assert cmp.against("old").deltas()["baseline"].to_pylist()[0] == "old" and cmp.baseline == "worst"
    assert cmp.against("worst") is cmp
    with pytest.raises(OptionError, match="there is no run 'other'"):
        cmp.against("other")
    named_best = {"best": pairs_of(OLD), "other": pairs_of(NEW)}
    assert fb.compare(truth, named_best, baseline="best").baseline == "best"
    assert "<td>yes</td>" in cmp.report().html and json.loads(cmp.to_json())["ranking"][0]["run"] == "good"
    only_good = fb.compare(truth, {name: pairs_of(split[name]) for name in ("old", "worst", "new")})
    assert repr(only_good).startswith("new has the best F1, 0.96104, ahead of old by 0.104 (0.041 to 0.166).")


def test_of_runs_that_lack_unlike_items_none_is_called_best():
    truth = {item: item // 2 for item in range(80)}
    runs = {"old": pairs_of(OLD), "new": pairs_of(NEW), "cut": dict(list(pairs_of(set()).items())[:60])}
    cmp = fb.compare(truth, runs)
    assert repr(cmp).startswith("No run can be called best: the runs lack different items of the truth")
    assert cmp.ranking == [] and json.loads(cmp.to_json())["ranking"] == []
    with pytest.raises(OptionError):
        _ = cmp.best


@pytest.mark.slow
def test_many_runs_with_warnings_of_one_kind_give_one():
    """Fifteen runs of one giant each, of another size: the message of the first, and of all runs."""
    truth = {item: item // 2 for item in range(200)}
    runs = {f"r{k}": {i: 999 if i < 60 + 2 * k else i for i in range(200)} for k in range(15)}
    cmp = fb.compare(truth, runs)
    (said,) = (each for each in cmp.warnings if each["code"] == "giant-cluster")
    assert said["runs"] == list(runs) and said["message"].startswith("One predicted cluster has 60 items")
    assert said["message"].endswith(" (Details are for r0.)")
    assert len(cmp.warnings) == len({each["code"] for each in cmp.warnings})
    assert repr(cmp).count("\n") < 80


def test_the_page_says_which_items_runs_lack():
    """Of 80 items `cut` lacks 20; runs are restricted to the other 60, of which both sides have all."""
    truth = {item: item // 2 for item in range(80)}
    whole = pairs_of(set())
    runs = {"old": whole, "cut": dict(list(whole.items())[:60])}
    *_, said = lines(of_section(fb.compare(truth, runs).report().content, "definitions"))
    assert (
        said == "cut: 60 of its items are in the truth, 0 are not; 20 items of the truth are missing from it."
    )
    *_, same = lines(
        of_section(fb.compare(truth, {"old": whole, "new": whole}).report().content, "definitions")
    )
    assert same.startswith("Both sides have the same items")


@pytest.mark.cases(1, 99)
@pytest.mark.parametrize("options", [{}, {"bootstrap": 80}, {"unit": "true_cluster"}, {"engine": "disk"}])
def test_against_a_run_of_one_unit_no_error_is_known(options):
    """What one pair of `one` would be elsewhere is unknown, whatever the pairs of the other two runs say."""
    truth = {item: item // 2 for item in range(80)}
    runs = {"old": pairs_of(OLD), "one": {0: 0, 1: 0}, "new": pairs_of(NEW)}
    cmp = fb.compare(truth, runs, align="each", metrics="f1", **options)
    rows = {row["experiment"]: row for row in cmp.deltas().to_pylist()}
    assert rows["one"]["delta"] > 0 and rows["one"]["holds"] is None
    assert math.isnan(rows["one"]["se"]) and math.isnan(rows["one"]["low"])
    assert rows["new"]["se"] > 0
    assert all(math.isnan(row["se"]) for row in cmp.against("one").deltas().to_pylist())
    assert "No interval is known: in one run, shared clusters connect all items" in repr(cmp.against("one"))


def test_the_run_that_lacks_items_and_is_nowhere_better_is_not_as_good():
    """Both are equal on common items; were the missing items alone, recall of each of them would be one half."""
    truth = {item: item // 2 for item in range(80)}
    few = dict(list(pairs_of(OLD).items())[:40])
    said = (
        "old is better: few has no better score on common items, and counting its missing items as singletons "
        "changes its F1 from "
    )
    for runs in ({"old": pairs_of(OLD), "few": few}, {"few": few, "old": pairs_of(OLD)}):
        assert " ".join(repr(fb.compare(truth, runs)).split()).startswith(said)
    best = fb.compare(
        truth, {"old": pairs_of(set(range(20))), "few": dict(list(pairs_of(set()).items())[:40])}
    )
    assert repr(best).startswith("No run can be called best")


@pytest.mark.cases(1)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("options", [{}, {"bootstrap": 80}, {"align": "each"}])
def test_a_run_that_joins_all_leaves_the_errors_of_others(engine, options):
    """Those of a difference are by the components of its two runs; the page and slices say the same."""
    truth = {item: item // 2 for item in range(80)}
    two = {"old": pairs_of(OLD), "new": pairs_of(NEW)}
    three = two | {"all": dict.fromkeys(truth, 0)}
    alone, cmp = (fb.compare(truth, runs, engine=engine, **options) for runs in (two, three))
    rows = cmp.deltas(adjust="none").to_pylist()
    assert [row for row in rows if row["experiment"] == "new"] == alone.deltas().to_pylist()
    assert all(math.isnan(row["se"]) for row in rows if row["experiment"] == "all")
    text = " ".join(repr(cmp).split())
    assert "No interval is known for all, whose clusters and those of old connect all items." in text
    assert (
        f"from {alone.units.n} groups of items that share clusters in the truth or one of the two runs"
        in text
    )
    assert cmp.units.n == 1
    said = verdicts(cmp, "all")
    assert "error unknown" in said and "may be chance" not in said


def test_slices_have_the_errors_of_two_runs_where_a_third_joins_all():
    truth = {item: item // 2 for item in range(80)}
    half = {"item": list(truth), "half": [item // 40 for item in truth]}
    two = {"old": pairs_of(OLD), "new": pairs_of(NEW)}
    three = {"all": dict.fromkeys(truth, 0)} | two
    alone = fb.compare(truth, two, attributes=half).slices("half").to_pylist()
    every = fb.compare(truth, three, baseline="old", attributes=half).slices("half").to_pylist()
    assert [row for row in every if row["run"] == "new"] == [row for row in alone if row["run"] == "new"]
    assert [row["n_units"] for row in every if row["run"] == "old"] == [None, None]
    assert [row["n_units"] for row in every if row["run"] == "all"] == [1, 1]


@pytest.mark.slow
def test_a_baseline_that_connects_all_items_is_named():
    truth = {item: item // 2 for item in range(80)}
    runs = {"all": dict.fromkeys(truth, 0), "old": pairs_of(OLD), "new": pairs_of(NEW)}
    text = " ".join(repr(fb.compare(truth, runs)).split())
    why = "because clusters of all connect them; leave it out to compare the others; no interval is known."
    assert f"Shared clusters connect all items into one group, {why}" in text
    assert "Bonferroni" not in text and "intervals" not in text
    page = fb.compare(truth, runs).report()
    assert {row["verdict"] for row in deltas(page)} <= {"error unknown", "the same"}
    assert "which may be chance" not in page.html


def test_equal_runs_are_the_same():
    truth = {item: item // 2 for item in range(80)}
    runs = {"old": pairs_of(OLD), "copy": pairs_of(OLD), "worst": pairs_of(set(range(80)))}
    cmp = fb.compare(truth, runs)
    assert repr(cmp).startswith("old has the best F1, ") and "; copy has the same." in " ".join(
        repr(cmp).split()
    )
    said = verdicts(cmp, "copy")
    assert "the same" in said and "may be chance" not in said


def test_scores_without_errors_have_no_reason_in_the_items():
    runs = {"old": [0, 1, 2, 3], "new": [0, 0, 1, 1]}
    cmp = fb.compare([0, 0, 1, 1], runs, metrics="adjusted_rand", unit="true_cluster")
    assert "No interval is known." in repr(cmp)


def test_one_item_is_no_items():
    cmp = fb.compare({0: 0, 1: 0}, {"old": {0: 0, 1: 0}, "new": {0: 0}})
    assert "Comparison of 2 runs on 1 item that all of them score" in repr(cmp)
