"""Several runs estimated from one sample: worked differences, the naive twin, censuses, equal runs, slices, gates."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import naive_sampling
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.cli.main import main
from fastbcubed.errors import ColumnError, GateError, MetricError, NotKeptError, OptionError, SliceError
from fastbcubed.results.intervals import share_not_seen, t_quantile

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
#: 30 true clusters of 1 to 4 items; the first run splits some, the second merges others.
TRUTH = {(k, i): k for k in range(30) for i in range(1 + k % 4)}
OLD = {item: (item[0], item[1] % 2 if item[0] % 3 == 0 else 0) for item in TRUTH}
NEW = {item: (item[0] - (item[0] % 10 == 1),) for item in TRUTH}
SAMPLE = {item: cluster for item, cluster in TRUTH.items() if cluster < 14}
SCORES = (
    "precision",
    "recall",
    "pair_precision",
    "pair_f1",
    "cluster_precision",
    "bcubed_recall_by_true_cluster",
)


def table_of(clustering: dict[Any, Any], **columns: list[Any]) -> pa.Table:
    """Return a clustering as a table; clusters are called by text."""
    items = [f"{k}-{i}" for k, i in clustering]
    labels = [str(cluster) for cluster in clustering.values()]
    return pa.table({"item": items, "cluster": labels, **columns})


RUNS = {"old": table_of(OLD), "new": table_of(NEW)}


def rows_of(cmp: Any) -> dict[str, dict[str, Any]]:
    return {row["score"]: row for row in cmp.deltas().to_pylist()}


def test_a_worked_difference() -> None:
    """Of two clusters of two, the old run splits the second: recall moves by 0 and by 1/4, of 1/4 on average."""
    sample, old = {"a": 1, "b": 1, "c": 2, "d": 2}, {"a": 1, "b": 1, "c": 2, "d": 3}
    cmp = fb.estimate(sample, {"old": old, "new": sample}, metrics="recall")
    (row,) = cmp.deltas().to_pylist()
    # influences 0 and 1/2 about their mean, 1/4: the root of 2 (1/4)^2 / (2 * 1) is 1/4
    assert (row["baseline_value"], row["experiment_value"], row["delta"]) == (0.75, 1.0, 0.25)
    assert row["se"] == pytest.approx(0.25, abs=1e-15)
    assert row["holds"] is False and row["low"] == -1.0 and row["high"] == 1.0


def sample_of(sizes: list[int], split: range) -> tuple[dict[Any, int], dict[Any, Any]]:
    """Return true clusters of these sizes, and a run that splits some of them into single items."""
    truth = {f"{k}-{i}": k for k, size in enumerate(sizes) for i in range(size)}
    return truth, {item: item if k in split else str(k) for item, k in truth.items()}


def test_intervals_of_differences_allow_for_another_large_cluster() -> None:
    """A cluster of 200 items has five sixths of the weight, so that g = (5/6) / (11/6); of 20 pairs, 5 are split.

    Recall is 235 / 240. The influences are 200 - 235/240 * 200, 2 - 235/240 * 2 for the other pairs, and
    1 - 235/240 * 2 for split ones, each over 240. There is one degree of freedom, because one cluster carries all.
    """
    truth, old = sample_of([200, *[2] * 20], range(1, 6))
    cmp = fb.estimate(truth, {"old": old, "new": truth}, metrics=["recall", "pair_recall"])
    row, of_pairs = rows_of(cmp)["recall"], rows_of(cmp)["pair_recall"]
    squares = (1000 / 240) ** 2 + 15 * (10 / 240) ** 2 + 5 * (1 - 470 / 240) ** 2
    error = math.sqrt(21 / 20 * squares) / 240
    assert row["se"] == pytest.approx(error, rel=1e-12)
    more = 1.959963985 * 0.12 * 5 / 11
    assert row["high"] - row["delta"] == pytest.approx(math.hypot(12.706204736 * error, more), rel=1e-8)
    # 200 * 199 of 39,840 pairs
    share = 39_800 / 39_840
    more = 1.959963985 * 0.2 * share / (1 + share)
    reach = of_pairs["high"] - of_pairs["delta"]
    assert reach == pytest.approx(math.hypot(12.706204736 * of_pairs["se"], more), rel=1e-6)


def test_intervals_of_differences_hardly_widen_if_clusters_are_alike() -> None:
    """Of 100 pairs, 10 are split: the influences are -1/10 and 9/10 of 1/200, so their effective number is small.

    Their squares add up to 90 * .1**2 + 10 * .9**2 = 9, and Satterthwaite's degrees of freedom are
    2 * 9**2 / (90 * .1**4 + 10 * .9**4 - 9**2 / 100) = 28.125. One more pair could change 1/101.
    """
    truth, old = sample_of([2] * 100, range(10))
    (row,) = fb.estimate(truth, {"old": old, "new": truth}, metrics="recall").deltas().to_pylist()
    assert row["se"] == pytest.approx(math.sqrt(100 / 99 * 9) / 200)
    few = 1 / 28.125
    uneven = (90 * 4 + 10) / 190**2 - 1 / 100  # numerators are 2 and, if split, 1
    df = 1 / (few * (0.4 + 3 * few) + uneven * (1 + 5 * uneven))
    plain = t_quantile(0.95, df) * row["se"]
    reach = row["high"] - row["delta"]
    assert reach == pytest.approx(math.hypot(plain, 1.959963985 * 0.12 / 101), rel=1e-9)
    assert reach < 1.01 * plain


def test_the_text_says_if_another_large_cluster_could_reverse_a_difference(tmp_path: Path) -> None:
    """The difference is 3 errors, and one more cluster of 160 items would move it by more."""
    truth, old = sample_of([160, *[2] * 400], range(1, 11))
    cmp = fb.estimate(truth, {"old": old, "new": truth}, metrics="f1")
    (row,) = cmp.deltas().to_pylist()
    assert row["delta"] > 2.5 * row["se"] and row["low"] < 0 and not row["holds"]
    said = "which one more cluster as large as the largest sampled one could reverse"
    assert said in " ".join(str(cmp).split())
    cmp.save(tmp_path / "saved")
    loaded = fb.load(tmp_path / "saved")
    assert said in " ".join(str(loaded).split()) and loaded.deltas().to_pylist() == [row]


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("sampling", ["uniform", "w"])
def test_differences_are_those_of_the_naive_twin(sampling: str, engine: Any) -> None:
    draws = {k: 1 + (k % 5 == 0) for k in range(14)}
    weights = {k: 1.0 + k % 3 for k in range(14)}
    columns = {"times": [draws[k] for k in SAMPLE.values()], "w": [weights[k] for k in SAMPLE.values()]}
    cmp = fb.estimate(
        table_of(SAMPLE, **columns), RUNS, sampling=sampling, draws="times", metrics=SCORES, engine=engine
    )
    every = [
        (
            {item for item, cluster in SAMPLE.items() if cluster == k},
            int(weights[k]) if sampling == "w" else 1,
        )
        for k in range(14)
        for _ in range(draws[k])
    ]
    for score, row in rows_of(cmp).items():
        plain = [cmp[run].unadjusted[score] for run in ("old", "new")]
        delta, error = naive_sampling.difference(score, every, OLD, NEW)
        assert plain[1] - plain[0] == pytest.approx(float(delta), abs=1e-12)
        assert row["se"] == pytest.approx(error, abs=1e-12)
        assert row["delta"] == pytest.approx(cmp["new"].overall[score] - cmp["old"].overall[score])


def test_each_run_is_estimated_as_alone() -> None:
    cmp = fb.estimate(table_of(SAMPLE), RUNS)
    for name, run in RUNS.items():
        assert cmp[name].scores().to_pylist() == fb.estimate(table_of(SAMPLE), run).scores().to_pylist()
    assert cmp.scores().column_names[:3] == ["run", "score", "estimate"]


def test_a_census_equals_compare() -> None:
    """Where all true clusters are drawn, differences are those of `compare`, and certain."""
    fewer = {item: label for item, label in NEW.items() if item[0] != 7}  # the run lacks a cluster
    runs = {"old": RUNS["old"], "new": table_of(fewer)}
    names = ["precision", "recall", "f1", "pair_recall", "bcubed_f1_by_true_cluster"]
    cmp = fb.estimate(table_of(TRUTH), runs, population_clusters=30, metrics=names)
    whole = fb.compare(table_of(TRUTH), runs, metrics=names, unmatched={"truth": "singleton"})
    expected = rows_of(whole)
    for score, row in rows_of(cmp).items():
        for figure in ("baseline_value", "experiment_value", "delta"):
            assert row[figure] == pytest.approx(expected[score][figure], abs=1e-12), score
        assert (row["se"], row["low"], row["high"]) == (0, row["delta"], row["delta"])
    assert cmp.ranks().to_pylist() == whole.ranks().to_pylist()
    assert cmp.best == whole.best


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_equal_runs_differ_by_nothing(engine: Any, tmp_path: Path) -> None:
    """Whatever their clusters are called (in memory), and whatever was drawn."""
    again = {item: f"x{label}" for item, label in OLD.items()}
    runs: dict[str, Any] = {"old": RUNS["old"], "again": table_of(dict(reversed(again.items())))}
    if engine == "disk":
        pq.write_table(RUNS["old"], tmp_path / "old.parquet")
        runs = dict.fromkeys(("old", "again"), tmp_path / "old.parquet")
    cmp = fb.estimate(table_of(SAMPLE), runs, engine=engine)
    assert all(
        (row["delta"], row["se"], row["low"], row["high"]) == (0, 0, 0, 0) for row in rows_of(cmp).values()
    )
    assert "no difference in any score" in repr(cmp)


def test_runs_that_agree_on_the_sample_alone_may_differ() -> None:
    """No drawn cluster differs, which 14 draws of equal weight leave for a share of 1 - 0.025^(1/14)."""
    other = {item: label if item[0] < 14 else (item,) for item, label in OLD.items()}
    cmp = fb.estimate(
        table_of(SAMPLE), {"old": RUNS["old"], "new": table_of(other)}, metrics=["cluster_recall"]
    )
    (row,) = cmp.deltas().to_pylist()
    assert (row["delta"], row["se"], row["holds"]) == (0, 0, False)
    assert row["high"] == -row["low"] == pytest.approx(share_not_seen(14, 0.95))


def test_several_runs_hold_together_and_any_is_the_baseline() -> None:
    runs = {**RUNS, "third": table_of(TRUTH)}
    cmp = fb.estimate(table_of(SAMPLE), runs, metrics=["f1", "recall"])
    two = fb.estimate(table_of(SAMPLE), RUNS, metrics=["f1", "recall"])
    wide, narrow = rows_of(cmp.against("old")), cmp.deltas(adjust="none").to_pylist()
    assert narrow[0]["se"] == rows_of(two)["f1"]["se"]
    assert wide["f1"]["high"] - wide["f1"]["low"] > narrow[2]["high"] - narrow[2]["low"]
    assert cmp.best == "third" and cmp.ranking[0]["run"] == "third"
    back, forth = rows_of(two)["f1"], rows_of(two.against("new"))["f1"]
    assert (back["delta"], back["low"]) == (-forth["delta"], -forth["high"])
    assert fb.estimate(table_of(SAMPLE), runs, metrics="f1", baseline="best").baseline == "third"


COUNTRY = ["x" if k % 2 else "y" if k < 28 else "z" for k in TRUTH.values()]


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_slices_of_a_census_are_those_of_evaluate(engine: Any) -> None:
    """By an attribute of items: each item in its whole clusters."""
    part = ["odd" if i % 2 else "even" for _, i in TRUTH]
    sample = table_of(TRUTH, country=COUNTRY, part=part)
    cmp = fb.estimate(
        sample, RUNS, population_clusters=30, metrics=["precision", "recall", "f1", "pair_f1"], engine=engine,
        slices=["part", ("country", "part")],
    )  # fmt: skip
    for name in RUNS:
        ev = fb.evaluate(sample, RUNS[name], slices="part")
        for row, expected in zip(
            cmp[name].slices("part").to_pylist(), ev.slices("part").to_pylist(), strict=True
        ):
            for key in ("part", "n_items", "precision", "recall", "f1"):
                assert (
                    row[key] == pytest.approx(expected[key]) if key != "part" else row[key] == expected[key]
                )
            assert "pair_f1" not in row
    rows = [row for row in cmp.slices("part").to_pylist() if row["run"] == "new"]
    for row, before in zip(rows, cmp["old"].slices("part").to_pylist(), strict=True):
        assert row["recall_delta"] == pytest.approx(row["recall"] - before["recall"])
        assert row["recall_delta_low"] == row["recall_delta_high"] == row["recall_delta"]
    crossed = cmp.slices(("country", "part")).to_pylist()
    few = [row for row in crossed if row["country"] == "z"]
    assert few and all(
        row["n_clusters"] < 10 and row["f1"] is None and row["f1_delta"] is None for row in few
    )
    assert "clusters are left out (y,odd, z,even)" in " ".join(repr(cmp).split())


def test_gates_on_slices_that_were_not_estimated_are_named() -> None:
    sample = pa.table({"item": range(40), "cluster": [k // 2 for k in range(40)], "half": ["a", "b"] * 20})
    run = {k: k // 2 for k in range(40)}
    for est in (fb.estimate(sample, run), fb.estimate(sample, {"x": run, "y": run})):
        with pytest.raises(NotKeptError, match='slices by half were not estimated; pass slices="half"'):
            est.check("f1>=0.5@half=a")


@pytest.mark.parametrize("missing", ["singleton", "drop"])
def test_slices_with_items_that_a_run_lacks(missing: Any) -> None:
    """Each is alone, or left out: as if the run had it in a cluster of its own, or the sample lacked it."""
    lacks = {item: label for item, label in OLD.items() if item[1] != 2}
    alone = {item: lacks.get(item, (item,)) for item in OLD}
    left = {item: k for item, k in TRUTH.items() if missing == "singleton" or item in lacks}
    expected = fb.estimate(
        table_of(left, p=[k % 2 for k in left.values()]), table_of(alone if missing == "singleton" else lacks),
        slices="p", metrics="recall",
    )  # fmt: skip
    sample = table_of(TRUTH, p=[k % 2 for k in TRUTH.values()])
    found = fb.estimate(sample, table_of(lacks), slices="p", missing=missing, metrics="recall")
    wanted = [{**row, "n_items": None} for row in expected.slices("p").to_pylist()]
    assert [{**row, "n_items": None} for row in found.slices("p").to_pylist()] == wanted


def test_clusters_that_a_run_lacks_are_paired_with_nothing() -> None:
    lacks = {item: label for item, label in NEW.items() if item[0] != 3}
    cmp = fb.estimate(
        table_of(SAMPLE), {"old": RUNS["old"], "new": table_of(lacks)}, missing="drop", metrics="recall"
    )
    assert 0 < rows_of(cmp)["recall"]["se"] < 1
    with pytest.raises(OptionError, match='missing="singleton"'):
        cmp.ranks()
    assert "No run can be called best" in repr(cmp)


def test_a_single_draw_shows_no_error() -> None:
    one = {item: cluster for item, cluster in TRUTH.items() if cluster == 3}
    row = rows_of(fb.estimate(table_of(one), RUNS, metrics="recall"))["recall"]
    assert math.isnan(row["se"]) and row["holds"] is None


@pytest.mark.parametrize("several", [False, True])
def test_what_was_saved_shows_the_same(several: bool, tmp_path: Path) -> None:
    sample = table_of(TRUTH, run=COUNTRY)
    est = fb.estimate(sample, RUNS if several else RUNS["old"], slices="run")
    est.save(tmp_path / "saved")
    found = fb.load(tmp_path / "saved")
    assert (repr(found), found.to_json()) == (repr(est), est.to_json())
    assert found.slices("run").equals(est.slices("run").to_arrow())
    if several:
        assert found.deltas(adjust="none").to_pylist() == est.deltas(adjust="none").to_pylist()
        with pytest.raises(NotKeptError, match="estimate the runs again"):
            found.against("new").deltas()


def test_a_loaded_result_whose_baseline_is_not_the_best_shows_the_same(tmp_path: Path) -> None:
    cmp = fb.estimate(table_of(SAMPLE), {**RUNS, "right": table_of(TRUTH)})
    cmp.save(tmp_path / "saved")
    loaded: Any = fb.load(tmp_path / "saved")
    assert (cmp.baseline, cmp.best) == ("old", "right")
    assert repr(loaded) == repr(cmp) and loaded.report().html == cmp.report().html
    assert loaded.units == cmp.units == (14, 14, 0)  # drawn clusters
    with pytest.raises(NotKeptError, match="only the differences from its baseline"):
        loaded.against("new")


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize(
    "options", [{"explain": True}, {"columns": "country"}, {"worst": 3}, {"members": 0}, {"by": "nope"}]
)
def test_a_page_refuses_what_estimates_do_not_have(
    options: dict[str, Any], saved: bool, tmp_path: Path
) -> None:
    sample = table_of(SAMPLE).append_column("country", pa.array(COUNTRY[: len(SAMPLE)]))
    cmp: Any = fb.estimate(sample, RUNS, slices="country")
    if saved:
        cmp.save(tmp_path / "saved")
        cmp = fb.load(tmp_path / "saved")
    with pytest.raises(NotKeptError, match=r"list no items or clusters|slices by nope"):
        cmp.report(**options)
    assert cmp.report(by="country").html == cmp.report().html


def test_a_page_has_what_the_text_has(tmp_path: Path) -> None:
    pytest.importorskip("altair")
    cmp = fb.estimate(table_of(TRUTH, country=COUNTRY), RUNS, slices="country")
    content = cmp.report(tmp_path / "page.html").content
    assert [each["id"] for each in content["sections"]] == ["verdict", "differences", "slices", "basis"]
    assert cmp._repr_html_() and "left out (" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_gates() -> None:
    cmp = fb.estimate(table_of(TRUTH, country=COUNTRY), RUNS, slices="country")
    assert cmp["old"].check("f1>=0.5", "f1>=0.4@country=x", recall=0.5)["passed"].to_pylist() == [True] * 3
    with pytest.raises(GateError, match="too few"):
        cmp["old"].check("f1>=0.1@country=z")
    found = cmp.check("f1.low>=0.1", worse={"recall": 0.0, "precision": 0.9})
    assert found["gate"].to_pylist() == ["old: f1.low", "new: f1.low", "new: recall", "new: precision"]
    turned = cmp.against("new")
    with pytest.raises(GateError, match="old: recall is"):
        turned.check(worse={"recall": "significant"})
    with pytest.raises(OptionError, match=r"^worse of recall must be a number, or 'significant', not 'much'"):
        cmp.check(worse={"recall": "much"})
    for wrong in ([1], np.zeros(2), {1: 2}, "f1", 0, pd.DataFrame({"f1": [1]})):
        with pytest.raises(
            OptionError, match=r"^worse must be a dict from score to number, or to 'significant', not "
        ):
            cmp.check(worse=wrong)
    with pytest.raises(OptionError, match=r"^worse of f1 must be a number, or 'significant', not array"):
        cmp.check(worse={"f1": np.zeros(2)})
    with pytest.raises(OptionError, match="only scores are estimated, not"):
        cmp["old"].check("clusters_pred>=3")


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"slices": "place"}, ColumnError, "not a column of the sample"),
        ({"slices": {"VIP": ["0-0"]}}, SliceError, "of a sample must be its columns, not named"),
        (
            {"slices": "country", "metrics": "pair_f1"},
            MetricError,
            "or pairs, but slices have only means over items",
        ),
        ({"baseline": "best of all"}, OptionError, "is not one of the runs"),
        ({"item": {"newer": "id"}}, OptionError, "is not one of the runs"),
    ],
)
def test_what_is_wrong(options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        fb.estimate(table_of(TRUTH, country=COUNTRY), RUNS, **options)


def test_what_is_wrong_of_one_prediction_and_of_a_run() -> None:
    with pytest.raises(OptionError, match="baseline names one of several runs"):
        fb.estimate(table_of(TRUTH), RUNS["old"], baseline="old")
    with pytest.raises(ColumnError, match=r"^run 'new': "):
        fb.estimate(table_of(TRUTH), {"old": RUNS["old"], "new": RUNS["new"].select(["item"])})
    cmp = fb.estimate(table_of(TRUTH), RUNS)
    for call in (cmp.items, cmp.clusters, cmp.cluster, cmp.explain):
        with pytest.raises(NotKeptError, match="list no items"):
            call()
    with pytest.raises(NotKeptError, match="were not estimated"):
        cmp.slices("country")


def test_runs_by_name_on_the_command_line(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(table_of(TRUTH, country=COUNTRY), "sample.parquet")
    for name, run in RUNS.items():
        pq.write_table(run, f"{name}.parquet")
    command = ["estimate", "sample.parquet", "old.parquet", "n=new.parquet", "--metric", "f1,recall"]
    assert main([*command, "--slice", "country", "--json", "--summary", "s.md", "--out", "out"]) == 0
    runs = {"old": "old.parquet", "n": "new.parquet"}
    est = fb.estimate("sample.parquet", runs, metrics=["f1", "recall"], slices="country")
    assert json.loads(capsys.readouterr().out) == json.loads(est.to_json())
    assert "| n |" in Path("s.md").read_text(encoding="utf-8") and isinstance(
        fb.load("out"), fb.EstimatedComparison
    )
    gates = ["--fail-under", "f1=0.99@country=x", "--fail-worse", "recall=significant", "--fail-over", "f1=1"]
    assert main([*command, *gates[:4], "--baseline", "n"]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "failed: old: f1 of country=x is" in text and "failed: old: recall is" in text
    assert main([*command[:3], "--fail-worse", "f1=0.1"]) == 2
    assert "--fail-worse compares runs" in capsys.readouterr().err
    assert main([*command[:3], "--fail-under", "f1=0.1", "--slice", "country"]) == 0
    capsys.readouterr()
    assert main(["show", "out"]) == 0 and "Estimates of 2 runs" in capsys.readouterr().out


@pytest.mark.weekly
def test_differences_hold_in_nearly_all_samples() -> None:
    """Of 200 samples of 60 of 600 clusters, 95 % intervals hold the difference of all in 93 % and more."""
    rng = np.random.default_rng(0)
    sizes = rng.geometric(0.4, 600)
    true = np.repeat(np.arange(600), sizes)
    items = np.arange(true.size)
    parts = rng.random((2, true.size)) < np.array([[0.2], [0.1]])
    runs = {
        name: pa.table({"item": items, "cluster": 2 * true + own})
        for name, own in zip("ab", parts, strict=True)
    }
    whole = pa.table({"item": items, "cluster": true})
    wanted = rows_of(fb.estimate(whole, runs, population_clusters=600, metrics=["f1", "pair_recall"]))
    hits = dict.fromkeys(wanted, 0)
    for _ in range(200):
        there = np.isin(true, rng.choice(600, 60, replace=False))
        cmp = fb.estimate(whole.filter(pa.array(there)), runs, metrics=["f1", "pair_recall"], threads=1)
        for score, row in rows_of(cmp).items():
            hits[score] += row["low"] <= wanted[score]["delta"] <= row["high"]
    assert min(hits.values()) >= 186, hits
