"""What a diff is asked: listings, slices, items, clusters; what it says; how it is saved; and what it refuses."""

from __future__ import annotations

import json
import math
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import naive_diff
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from both_engines import LIMIT, SETTINGS, SPILLS
from hypothesis import given
from hypothesis import strategies as st
from strategies import pairs, weights

import fastbcubed as fb
from fastbcubed.errors import (
    ColumnError,
    EvaluationWarning,
    FileFormatError,
    GateError,
    MetricError,
    NotKeptError,
    NullError,
    OptionError,
    OverlapError,
    SliceError,
    WeightError,
)

BASELINE = dict(zip("abcdef", "xxxyyz", strict=True))
EXPERIMENT = dict(zip("abcdef", "ppqqqr", strict=True))
TRUTH = dict(zip("abcdef", "uuvvww", strict=True))


def table(clusters: dict[str, Any], **columns: Any) -> pa.Table:
    return pa.table({"item": list(clusters), "cluster": list(clusters.values()), **columns})


def close(value: Any) -> Any:
    return pytest.approx(float(value), rel=1e-12, abs=1e-12)


# What is given


def test_all_containers_agree() -> None:
    expected = fb.diff(BASELINE, EXPERIMENT, truth=TRUTH).overall
    sides = [table(side) for side in (BASELINE, EXPERIMENT, TRUTH)]
    frames = [side.to_pandas() for side in sides]
    arrays = [list(side.values()) for side in (BASELINE, EXPERIMENT, TRUTH)]
    clusterings = [fb.Clustering.from_dict(side) for side in (BASELINE, EXPERIMENT, TRUTH)]
    shuffled = [side.take(np.random.default_rng(k).permutation(6)) for k, side in enumerate(sides)]
    for a, b, truth in (sides, frames, arrays, clusterings, shuffled, [sides[0], frames[1], TRUTH]):
        assert fb.diff(a, b, truth=truth).overall == expected


def test_one_table_of_all_sides() -> None:
    wide = pa.table(
        {"id": list("abcdef"), "old": list("xxxyyz"), "new": list("ppqqqr"), "true": list("uuvvww")}
    )
    expected = fb.diff(BASELINE, EXPERIMENT, truth=TRUTH).overall
    for item in ("id", "item"):
        d = fb.diff("old", "new", truth="true", table=wide, item=item)
        assert d.overall == expected
        assert d.slices("true_cluster")["true_cluster"].to_pylist() == ["u", "v", "w"]
    gone = wide.set_column(2, "new", pa.array(["p", "p", "q", "q", None, "r"]))
    with pytest.raises(
        NullError, match=r"1 of 6 rows of .* nulls=\"drop\" if a null means that the item is missing"
    ):
        fb.diff("old", "new", truth="true", table=gone)
    d = fb.diff("old", "new", truth="true", table=gone, nulls="drop")
    assert (d.coverage.n_gone, d.verdict.n_items) == (1, 5)
    stream = wide.to_reader()
    assert fb.diff("old", "new", truth="true", table=stream).overall == expected


def test_names_of_columns_of_each_side() -> None:
    old = table(BASELINE).rename_columns(["id", "entity"])
    new = table(EXPERIMENT).rename_columns(["rec", "label"])
    truth = table(TRUTH).rename_columns(["key", "person"])
    d = fb.diff(old, new, truth=truth, item=("id", "rec", "key"), cluster=("entity", "label", "person"))
    assert d.iq == close(5 / 8)
    d = fb.diff(old, new, truth=TRUTH, item=("id", "rec"), cluster=("entity", "label"))
    assert d.iq == close(5 / 8)
    with pytest.raises(
        OptionError, match="the baseline's, the experiment's and the truth's, not a tuple of 4"
    ):
        fb.diff(old, new, item=("a", "b", "c", "d"))


def test_composite_ids_and_weights_in_a_table() -> None:
    sides = [
        pa.table({"source": ["s", "t"] * 3, "nr": [1, 1, 2, 2, 3, 3], "cluster": list(labels)})
        for labels in ("xxxyyz", "ppqqqr", "uuvvww")
    ]
    weight = sides[0].select(["source", "nr"]).append_column("weight", pa.array([1.0, 2, 3, 4, 5, 6]))
    d = fb.diff(*sides[:2], truth=sides[2], item=["source", "nr"], weight=weight)
    assert (d.split_rate, d.iq) == (close(1 / 7), close(553 / 1107))
    assert d.item(("t", 2))["true_cluster"] == "v"


def test_no_score_is_a_negative_zero() -> None:
    """One true pair is given up and another is found: as near to the truth as before."""
    d = fb.diff(list("xxyz"), list("pqrr"), truth=list("aabb"))
    shown = [*d.overall.values(), *(x for rows in d.items().to_pylist() for x in rows.values())]
    assert d.iq == 0.0 and d.delta_precision == d.delta_recall == 0.0
    assert not [value for value in shown if isinstance(value, float) and str(value) == "-0.0"]


def test_weights_in_the_truth_alone() -> None:
    """Worked values of weights 1 to 6, wherever these are."""
    a, b = table(BASELINE), table(EXPERIMENT)
    weighted = table(TRUTH).append_column("w", pa.array([1.0, 2, 3, 4, 5, 6]))
    for truth in (weighted, weighted.take([5, 3, 1, 0, 2, 4]), fb.Clustering.from_table(weighted)):
        d = fb.diff(a, b, truth=truth, weight="w")
        assert (d.split_rate, d.iq) == (close(1 / 7), close(553 / 1107))
    first = pa.array([2.0, 1, 1, 1, 1, 1])
    of_baseline = fb.diff(a.append_column("w", first), b, truth=weighted, weight="w")
    assert of_baseline.overall == fb.diff(a, b.append_column("w", first), truth=weighted, weight="w").overall
    assert of_baseline.split_rate != d.split_rate  # those of the runs count first
    with pytest.raises(
        WeightError, match=r"^2 of 4 weights of the truth are out of range \(0.0, -1.0 in rows 1, 3"
    ):
        wrong = pa.table({"item": list("abcd"), "cluster": [1, 1, 2, 2], "w": [1, 0, 1, -1]})
        fb.diff(a, b, truth=wrong, weight="w")
    with pytest.raises(
        WeightError,
        match=r"^1 of 6 scored or counted items have no weight \(first: 'f'\). Give every item a weight.$",
    ):
        fb.diff(a, b, truth=weighted[:5], weight="w")
    with pytest.raises(ColumnError, match="no weight column 'v'"):
        fb.diff(a, b, truth=weighted, weight="v")


# What it refuses


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        (
            {"metrics": "iq"},
            MetricError,
            r"iq judges a change against a truth.*fb\.diff\(\.\.\., truth=truth\)",
        ),
        ({"unlabelled": "outside"}, OptionError, "pass truth= as well"),
        ({"truth": TRUTH, "unlabelled": "x"}, OptionError, 'unlabelled must be "drop" or "outside"'),
        ({"truth": TRUTH, "engine": "disk"}, OptionError, 'pass engine="memory"'),
        (
            {"truth": TRUTH, "overlapping": True},
            OptionError,
            "a truth can only judge clusterings that do not",
        ),
        ({"truth": {"z": 1}}, ValueError, "truth"),
        ({"unmatched": {"truth": "drop"}}, OptionError, "but the sides are named baseline and experiment"),
        ({"slices": "true_size"}, ColumnError, "a diff has baseline_size and experiment_size"),
        ({"slices": "nothing"}, ColumnError, "baseline: none; experiment: none.*baseline_size"),
        ({"slices": "true_cluster"}, ColumnError, "no attribute 'true_cluster'.*always: baseline_size"),
        ({"slices": "baseline.x"}, ColumnError, "no attribute 'baseline.x'"),
        ({"slices": "true_size"}, ColumnError, "no attribute 'true_size'; a diff has baseline_size"),
        (
            {"slices": fb.bins("baseline_size", 2)},
            SliceError,
            "baseline_size is always binned by powers of two",
        ),
        ({"truth": TRUTH, "slices": "x"}, ColumnError, "attributes: true_cluster; always: baseline_size"),
        (
            {"unmatched": {"prediction": "drop"}},
            OptionError,
            "policy for 'prediction', but the sides are named baseline",
        ),
        ({"metrics": []}, MetricError, "metrics is empty"),
        ({"metrics": "splitrate"}, MetricError, "Did you mean 'split_rate'"),
        ({"weight": "w"}, ValueError, "."),
    ],
)
def test_refused(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        fb.diff(BASELINE, EXPERIMENT, **options)


def test_messages_speak_of_baseline_and_experiment() -> None:
    with pytest.raises(ValueError, match="baseline") as caught:
        fb.diff({"a": 1}, {"b": 1})
    assert "truth" not in str(caught.value) and "prediction" not in str(caught.value)
    d = fb.diff(BASELINE, EXPERIMENT)
    for ask in (
        lambda: d.cluster("baseline", "nope"),
        lambda: d.items(baseline_cluster="nope"),
        lambda: d.clusters("baseline", order_by="nope"),
        lambda: d.slices("nope"),
        lambda: d.item("nope"),
    ):
        with pytest.raises(ValueError) as caught:
            ask()
        assert not re.search("truth|prediction|true|pred|loss", str(caught.value)), str(caught.value)
    with pytest.raises(OptionError, match='"baseline" or "experiment", not \'true\''):
        d.clusters("true")
    with pytest.raises(
        OptionError, match="'unchanged', 'split', 'merged', 'split and merged', 'gone', not 'exact'"
    ):
        d.clusters("baseline", outcome="exact")
    with pytest.raises(MetricError, match="a diff calls it 'split_change'"):
        d.clusters("baseline", order_by="recall_loss")
    with pytest.raises(FileFormatError, match="There is no file run/truth/prediction"):
        fb.diff("run/truth/prediction.parquet", EXPERIMENT)
    with pytest.raises(ColumnError, match="'true_cluster' is a column of the baseline"):
        fb.diff(
            table(BASELINE, true_cluster=range(6)),
            EXPERIMENT,
            truth=TRUTH,
            slices=["true_cluster"],
            cluster="cluster",
        )


# What it answers


def test_changes_of_clusters_add_up() -> None:
    d = fb.diff(BASELINE, EXPERIMENT)
    for listing in (
        d.clusters("baseline"),
        d.clusters("experiment"),
        d.items(),
        d.cells(),
        d.slices("baseline_size"),
    ):
        assert sum(listing["split_change"].to_pylist()) == close(d.split_rate)
        assert sum(listing["merge_change"].to_pylist()) == close(d.merge_rate)
    listed = d.clusters("baseline").to_pylist()
    assert [(row["cluster"], row["outcome"], row["n_parts"]) for row in listed] == [
        ("x", "split and merged", 2),
        ("y", "merged", 1),
        ("z", "unchanged", 1),
    ]
    found = d.clusters("experiment").to_pylist()
    assert {row["cluster"]: row["outcome"] for row in found} == {
        "q": "mixed",
        "p": "fragment",
        "r": "unchanged",
    }
    assert d.clusters("baseline", outcome="merged")["cluster"].to_pylist() == ["y"]
    assert d.clusters("baseline", order_by="split_rate", limit=1)["cluster"].to_pylist() == ["x"]
    assert d.cells(limit=1).to_pylist()[0]["baseline_cluster"] == "x"


def test_an_item() -> None:
    d = fb.diff(BASELINE, EXPERIMENT, truth=TRUTH)
    found = d.item("c")
    assert {name: each["n_items"] for name, each in found["members"].items()} == {
        "stable": 1, "split": 2, "merged": 2, "apart": 1,
    }  # fmt: skip
    assert (found["stable"], found["split"], found["merged"]) == (1, 2, 2)
    assert (found["baseline_cluster"], found["experiment_cluster"], found["true_cluster"]) == ("x", "q", "v")
    assert found["good_split_rate"] == close(2 / 3) and found["delta_precision"] == close(1 / 3)
    assert repr(found).startswith(
        "Item c: baseline cluster x, experiment cluster q, true cluster v, weight 1"
    )
    assert "tn" not in found and pickle.loads(pickle.dumps(found)) == found


def test_a_cluster() -> None:
    d = fb.diff(table(BASELINE, colour=list("rrggbb")), EXPERIMENT, truth=TRUTH)
    found = d.cluster("baseline", "x")
    assert found["side"] == "baseline" and found["outcome"] == "split and merged"
    assert [part["experiment_cluster"] for part in found["parts"]] == ["p", "q"]
    text = repr(found)
    assert text.startswith(
        "Baseline cluster x: 3 items of 2 experiment clusters, split and merged\nsplit change"
    )
    assert "experiment cluster  items   item  true_cluster  colour" in text
    assert found.table.column_names[:3] == ["item", "experiment_cluster", "true_cluster"]
    assert repr(pickle.loads(pickle.dumps(found))) == text and "<table>" in found._repr_html_()
    assert repr(d.cluster("experiment", "q")).startswith(
        "Experiment cluster q: 3 items of 2 baseline clusters, mixed"
    )


def test_attributes_of_all_sides() -> None:
    old = table(BASELINE, colour=list("rrggbb"), only_old=list("112233"))
    new = table(EXPERIMENT, colour=list("rrggbc"), only_new=list("121212"))
    truth = table(TRUTH, year=[2000, 2001, 2010, 2011, 2020, 2021])
    d = fb.diff(old, new, truth=truth, slices=["only_old", ("only_new", "year")])
    assert list(d.sliced) == ["only_old", "only_new,year"]
    assert d.slices("baseline.colour").column_names[0] == "baseline.colour"
    assert d.slices("experiment.colour")["n_items"].to_pylist() == [1, 1, 2, 2]
    assert d.slices(fb.bins("truth.year", 10))["n_items"].to_pylist() == [2, 2, 2]
    with pytest.raises(ColumnError, match=r"write 'baseline\.colour' or 'experiment\.colour'"):
        d.slices("colour")
    assert d.items("baseline.colour").column_names[3:5] == ["true_cluster", "baseline.colour"]
    assert d.slices({"first": ["a", "b"], "rest": [False] * 2 + [True] * 4})["slice"].to_pylist() == [
        "first",
        "rest",
    ]
    assert d.slices("year", limit=2, order_by="iq")["n_labelled"].to_pylist() == [1, 1]
    assert "iq_se" in d.slices("only_old", errors=True).column_names


def test_slices_by_what_figures_are_called() -> None:
    old = table(BASELINE, weight=list("aabbcc"), split_change=list("112233"), share=list("111111"))
    d = fb.diff(old, EXPERIMENT)
    assert d.slices("weight").column_names[:2] == ["attribute.weight", "n_items"]
    assert d.slices("split_change").column_names[:2] == ["attribute.split_change", "n_items"]
    assert d.changes("share").column_names[:3] == ["attribute.share", "became", "n_clusters"]


def test_changes_by_slice() -> None:
    old = {**BASELINE, "g": "lost", "h": "lost", "i": "z"}
    new = {**EXPERIMENT, "j": "fresh", "k": "r"}
    truth = table({i: 1 for i in "abcdefghijk"}, colour=list("rrggbbrbbrb"))
    d = fb.diff(old, new, truth=truth)
    expected = naive_diff.became(old, new)
    assert {r["became"]: (r["n_clusters"], r["n_items"]) for r in d.changes().to_pylist()} == expected
    found = {
        (r["colour"], r["became"]): (r["n_clusters"], r["n_items"]) for r in d.changes("colour").to_pylist()
    }
    assert found == {
        ("b", "unchanged"): (1, 1), ("b", "merged"): (1, 1), ("b", "gone"): (1, 1),
        ("g", "merged"): (1, 1), ("g", "split and merged"): (1, 1),
        ("r", "split and merged"): (1, 2), ("r", "gone"): (1, 1), ("r", "appeared"): (1, 1),
    }  # fmt: skip
    assert d.clusters("baseline", outcome="gone").to_pylist() == [
        {"cluster": "lost", "n_items": 2, "weight": 2.0}
    ]
    assert d.clusters("experiment", outcome="appeared")["cluster"].to_pylist() == ["fresh"]
    shares = d.changes().to_pylist()
    assert sum(row["share"] for row in shares[:5]) == close(8 / 9)  # one item is gone from z
    assert shares[5]["share"] == close(1 / 8)


def test_weights_of_one_side_alone() -> None:
    """What new items weigh is not known where the weights are in the baseline."""
    old = table(BASELINE, w=[1.0, 2, 3, 4, 5, 6])
    d = fb.diff(old, {**EXPERIMENT, "new": "s"}, weight="w")
    assert d.split_rate == close(1 / 7)
    appeared = d.changes().to_pylist()[-1]
    assert (appeared["n_clusters"], appeared["n_items"], appeared["weight"], appeared["share"]) == (
        1,
        1,
        None,
        None,
    )
    assert math.isnan(d.coverage.experiment_coverage)
    assert "1 item (14.3 % of the experiment's 7) is new: 1 in 1 cluster of new items only" in _line(repr(d))


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


# What it says


@pytest.mark.parametrize(
    ("unmatched", "said"),
    [
        (
            "drop",
            "Of 6 items that both have, 5 (83.3 %) are with other items now; 1 more is gone; 2 more are new.",
        ),
        (
            "singleton",
            "Of 9 items, 7 (77.8 %) are with other items now; 1 of them is gone; 2 of them are new.",
        ),
        (
            {"baseline": "singleton"},
            "Of 7 items, 5 (71.4 %) are with other items now; 1 of them is gone; 2 more are new.",
        ),
    ],
)
def test_items_of_one_side_are_counted_first(unmatched: Any, said: str) -> None:
    """g was alone, h is alone now, and i is with f: both had them, it said."""
    d = fb.diff(BASELINE | {"g": "g"}, EXPERIMENT | {"h": "h", "i": EXPERIMENT["f"]}, unmatched=unmatched)
    assert said in _line(repr(d))


def test_what_changed_is_told() -> None:
    text = _line(repr(fb.diff(BASELINE, EXPERIMENT, truth=TRUTH)))
    for said in (
        "Of 6 items that both have, 5 (83.3 %) are with other items now.",
        "Splits and merges: on average, 22.2 % of an item's baseline cluster is no longer with it, and 22.2 % of",
        "Half of the splitting is in 1 baseline cluster, and half of the merging in 1 experiment cluster.",
        "According to the truth, which labels all of them, 100 % of the splitting and 50.0 % of the merging is right.",
        "Precision 0.61111 → 0.77778, +0.1667",
        "recall 0.66667 → 0.83333, +0.1667",
        "moves items nearer to the truth: iq is 0.6",
        "Of 3 baseline clusters 1 (33.3 %) is unchanged, 1 was merged, 1 split and merged.",
        "No warnings.",
    ):
        assert said in text, said
    assert not re.search("prediction|predicted|recall loss|flatter", text)
    only = _line(repr(fb.diff(BASELINE, dict(zip("abcdef", "123456", strict=True)))))
    assert "Only splits: on average, 50.0 % of an item's baseline cluster is no longer with it." in only
    only = _line(repr(fb.diff(BASELINE, dict.fromkeys("abcdef", 1))))
    assert "Only merges: on average, 61.1 % of an item's experiment cluster is new to it." in only
    html = fb.diff(BASELINE, EXPERIMENT, truth=TRUTH)._repr_html_()
    assert "5 (83.3 %) are with other items now" in html and html.count("<table>") == 4


def test_items_of_one_side_are_told() -> None:
    text = _line(repr(fb.diff({**BASELINE, "g": "lost", "h": "x"}, {**EXPERIMENT, "i": "fresh", "j": "p"})))
    assert (
        "2 items (25.0 % of the baseline's 8) are gone: 1 with 1 cluster, 1 from clusters that remain; left"
        in text
    )
    assert (
        "2 items (25.0 % of the experiment's 8) are new: 1 in 1 cluster of new items only, 1 in other" in text
    )
    assert "All rates cover the 6 items that are scored." in text
    assert ", 1 gone. 1 experiment cluster appeared." in text
    d = fb.diff({**BASELINE, "h": "x"}, {**EXPERIMENT, "j": "p"}, unmatched="singleton")
    assert "treated as singletons on the other side" in _line(repr(d))


def test_only_warnings_of_a_diff() -> None:
    rng = np.random.default_rng(0)
    old = {k: int(rng.integers(0, 30)) for k in range(200)}
    new = {k: int(rng.integers(0, 3)) for k in range(150, 1000)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        d = fb.diff(old, new)
    codes = {each["code"] for each in d.warnings}
    assert codes == {"few-ids-match", "giant-cluster"}
    assert len(caught) == 2 and all(isinstance(each.message, EvaluationWarning) for each in caught)
    assert (
        "50 items are on both sides, of 200 in the baseline and 850 in the experiment"
        in d.warnings[0]["message"]
    )
    assert "baseline clusters" in d.warnings[1]["message"]
    with pytest.warns(EvaluationWarning, match="same data"):
        fb.diff(old, old)
    alone = {k: k for k in range(50)}
    with pytest.warns(EvaluationWarning, match="singleton in the baseline, so nothing can be split"):
        fb.diff(alone, {k: k // 2 for k in range(50)})


def test_a_truth_of_some_items() -> None:
    old = {k: k // 4 for k in range(100)}
    new = {k: k // 3 for k in range(100)}
    truth = {k: k // 3 for k in range(30)}
    with pytest.warns(EvaluationWarning, match='labels 30.0 % of the 100 items.*pass unlabelled="outside"'):
        d = fb.diff(old, new, truth=truth)
    assert "which labels 30 of them (30.0 %)" in _line(repr(d))
    assert (
        "Good and bad changes are judged on the 30 items that the truth labels, relative to each other."
        in _line(repr(d))
    )
    assert (d.verdict.n_items, d.verdict.n_unlabelled) == (30, 70)
    outside = fb.diff(old, new, truth=truth, unlabelled="outside")
    assert not outside.warnings
    assert outside.definition["unlabelled"] == "outside"


# Errors


def test_errors_and_intervals(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    old, new, truth = (rng.integers(0, 200, 600) + 1000 * (np.arange(600) // 30) for _ in range(3))
    d = fb.diff(old, new, truth=truth)
    assert set(d.errors) == set(d.overall)
    table = d.scores().to_pylist()
    assert [row["score"] for row in table] == list(d.overall)
    for row in table:
        low, high = d.interval(row["score"])
        assert (row["low"], row["high"]) == (low, high) and low <= row["value"] <= high
    with pytest.raises(OptionError, match='only with unit="component"'):
        d.interval("iq", unit="true_cluster")
    shown = d.to_dict()["intervals"]
    assert shown == {name: d.interval(name)._asdict() for name in d.overall}
    d.save(tmp_path, keep="scores")
    assert fb.load(tmp_path).to_dict()["intervals"] == shown
    d.evaluation.standard_errors.shown = False
    assert not {"errors", "intervals"} & d.to_dict().keys()


@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
def test_units_are_clusters_of_the_baseline_by_that_name() -> None:
    """An evaluation calls these true clusters, and the truth of a diff has others."""
    old = dict(zip("abcdefghij", (1, 1, 1, 1, 2, 2, 2, 3, 3, 4), strict=True))
    new = dict(zip("abcdefghij", (1, 1, 5, 5, 2, 2, 3, 3, 3, 4), strict=True))
    d = fb.diff(old, new, truth=dict(zip("abcdefghij", (7, 7, 7, 8, 8, 8, 8, 9, 9, 9), strict=True)))
    found = d.interval("split_rate", unit="baseline_cluster")
    assert found == d.evaluation.interval("split_rate", unit="true_cluster")
    # 1/3 with error .1217: t of three degrees gives .0804 and .7408, and a fifth unit as large as that of four items,
    # 4/14 of the weight then, could change 0.36 * 4/14 of 1/3 and of 2/3: 1/3 - hypot(.2529, 1.96 * .0343) = .0717
    assert tuple(found) == pytest.approx((0.0717, 0.7624), abs=2e-4)
    with pytest.raises(OptionError, match="units of a diff are component, baseline_cluster or an attribute"):
        d.interval("split_rate", unit="true_cluster")


@pytest.mark.slow
def test_errors_by_resampling() -> None:
    """Components drawn anew, 200 times, spread as the errors say."""
    rng = np.random.default_rng(2)
    n, size = 300, 6
    parts = [[rng.integers(0, 3, size) for _ in range(3)] for _ in range(n)]
    labels = [np.concatenate([10 * k + each[side] for k, each in enumerate(parts)]) for side in range(3)]
    d = fb.diff(*labels[:2], truth=labels[2])
    drawn = []
    for _ in range(200):
        chosen = rng.integers(0, n, n)
        again = [np.concatenate([10 * k + parts[c][s] for k, c in enumerate(chosen)]) for s in range(3)]
        drawn.append(dict(fb.diff(*again[:2], truth=again[2]).overall))
    for name in ("good_split_rate", "bad_distance", "delta_precision", "iq"):
        spread = np.std([each[name] for each in drawn])
        assert d.errors[name] == pytest.approx(spread, rel=0.25), name


# Gates


def test_gates() -> None:
    d = fb.diff(table(BASELINE, colour=list("rrggbb")), EXPERIMENT, truth=TRUTH)
    assert d.check("split_rate<=0.3", "bad_distance<=0.2", iq=0.5)["passed"].to_pylist() == [True] * 3
    with pytest.raises(GateError, match=r"failed: split_rate of colour=r is 0\.33333, wanted at most 0\.1"):
        d.check("split_rate<=0.1@colour=r")
    with pytest.raises(OptionError, match="split_rate has no direction"):
        d.check(split_rate=0.1)


# Saved


def test_saved_and_loaded(tmp_path: Path) -> None:
    old = table({**BASELINE, "g": "lost"}, colour=list("rrggbbb"))
    d = fb.diff(old, EXPERIMENT, truth=TRUTH, slices="colour", metrics=["diff"])
    for keep in ("scores", "cells", "items"):
        d.save(tmp_path / keep, keep=keep)
        found = fb.load(tmp_path / keep)
        assert isinstance(found, fb.Diff)
        assert found.overall == d.overall and found.names == d.names
        assert found.changes() == d.changes() and found.warnings == d.warnings
        assert found.scores()["score"] == d.scores()["score"]
        assert str(found.scores()["se"].to_pylist()) == str(d.scores()["se"].to_pylist())
        assert found.slices("colour").to_pylist() == d.slices("colour").to_pylist()
        assert _without_paths(json.loads(found.to_json())) == _without_paths(json.loads(d.to_json()))
        where = "Half of the splitting is in 1 baseline cluster, and half of the merging in 1\nexperiment cluster.\n"
        told = repr(d) if keep != "scores" else repr(d).replace(where, "")
        assert repr(found).split("Next:")[0].strip() == told.split("Next:")[0].strip()
        if keep != "scores":
            assert found.cells() == d.cells()
        if keep == "items":
            assert found.slices("true_cluster") == d.slices("true_cluster")
            assert str(found.items("colour").to_pylist()) == str(d.items("colour").to_pylist())
            assert str(found.clusters("baseline").to_pylist()) == str(d.clusters("baseline").to_pylist())
            assert found.clusters("baseline", outcome="gone") == d.clusters("baseline", outcome="gone")
            assert found.changes("colour").to_pylist() == d.changes("colour").to_pylist()
            assert str(found.errors) == str(d.errors)
            found.save(tmp_path / "again")
            assert fb.load(tmp_path / "again").overall == d.overall
        else:
            with pytest.raises(NotKeptError):
                found.slices("baseline_size")
    assert isinstance(fb.load(tmp_path / "items").evaluation, fb.Evaluation)


def _without_paths(found: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in found.items() if name not in ("manifest", "errors")}


def test_an_evaluation_stays_one(tmp_path: Path) -> None:
    fb.evaluate(BASELINE, EXPERIMENT).save(tmp_path)
    assert isinstance(fb.load(tmp_path), fb.Evaluation)


def test_out_and_pickle(tmp_path: Path) -> None:
    d = fb.diff(BASELINE, EXPERIMENT, truth=TRUTH, out=tmp_path, keep="items")
    assert fb.load(tmp_path).overall == d.overall
    again = pickle.loads(pickle.dumps(d))
    assert again.overall == d.overall and again.changes() == d.changes()
    assert again.items() == d.items()


def test_noise_and_nulls_of_the_truth(tmp_path: Path) -> None:
    truth = {**{k: k // 2 for k in range(6)}, 6: -1, 7: -1}
    old, new = {k: k // 3 for k in range(8)}, {k: k // 4 for k in range(8)}
    alone = {**truth, 6: 100, 7: 101}
    d = fb.diff(old, new, truth=truth, noise=-1)
    assert d.overall == fb.diff(old, new, truth=alone).overall
    d.save(tmp_path)
    assert fb.load(tmp_path).slices("baseline_size") == d.slices("baseline_size")
    nulls = pa.table({"item": list(truth), "cluster": pa.array([0, 0, 1, 1, 2, 2, None, None])})
    d = fb.diff(old, new, truth=nulls, nulls="singleton")
    assert d.overall == fb.diff(old, new, truth=alone).overall
    d = fb.diff(old, new, truth=nulls, nulls="drop")
    assert d.verdict.n_items == 6
    d.save(tmp_path)
    assert fb.load(tmp_path).overall == d.overall


@pytest.mark.parametrize("unlabelled", ["drop", "outside"])
def test_noise_and_nulls_of_new_items(tmp_path: Path, unlabelled: Any) -> None:
    """Items 4 and up are new: 4 belongs to 0, and 5, 6, 7 to 3, with which none of them is."""
    old, truth = dict(enumerate("aabb")), dict(enumerate("ttuutuuu"))
    how: dict[str, Any] = {"truth": truth, "unlabelled": unlabelled, "unmatched": {"experiment": "outside"}}
    alone = fb.diff(old, dict(enumerate("xxyzxvw")) | {7: "n"}, **how)
    assert alone.good_merge_rate == alone.merge_rate == pytest.approx(2 / 3 / 4)  # 4 joins 0 and 1
    noise = fb.diff(old, dict(enumerate("xxy--")) | {4: "x", 5: "-", 6: "-", 7: "n"}, noise="-", **how)
    labels = pa.array(["x", "x", "y", None, "x", None, None, "n"])
    nulls = fb.diff(old, pa.table({"item": range(8), "cluster": labels}), nulls="singleton", **how)
    assert dict(noise.overall) == dict(nulls.overall) == dict(alone.overall)
    noise.save(tmp_path)
    assert (
        fb.load(tmp_path).slices({"all": range(4)}).to_pylist() == noise.slices({"all": range(4)}).to_pylist()
    )


# Engines, threads


@pytest.mark.cases(0)
@pytest.mark.parametrize("keep", ["cells", "items"])
def test_disk_engine(tmp_path: Path, keep: Any, many_shards: Any) -> None:
    rng = np.random.default_rng(3)
    n = 600
    ids = rng.permutation(n)
    old = pa.table({"item": ids[:500], "cluster": rng.integers(0, 180, 500), "w": rng.uniform(1, 5, 500)})
    new = pa.table(
        {"item": ids[60:], "cluster": rng.integers(0, 140, n - 60), "colour": rng.integers(0, 3, n - 60)}
    )
    for name, side in (("old", old), ("new", new)):
        pq.write_table(side, tmp_path / f"{name}.parquet", row_group_size=100)
    paths = [tmp_path / "old.parquet", tmp_path / "new.parquet"]
    how: dict[str, Any] = {"weight": "w", "slices": ["colour", "baseline_size"]}
    on_disk = fb.diff(*paths, engine="disk", memory_limit=LIMIT, keep=keep, **how)
    in_memory = fb.diff(old, new, **how)
    assert on_disk.evaluation.engine == "disk"
    assert dict(on_disk.overall) == pytest.approx(dict(in_memory.overall), rel=1e-12)
    assert on_disk.changes().drop_columns(["weight", "share"]) == in_memory.changes().drop_columns(
        ["weight", "share"]
    )
    assert on_disk.changes()["share"].to_pylist()[:5] == pytest.approx(
        in_memory.changes()["share"].to_pylist()[:5]
    )
    for name in in_memory.sliced:
        a, b = on_disk.sliced[name].to_pydict(), in_memory.sliced[name].to_pydict()
        assert list(a) == list(b)
        for column, values in b.items():
            assert a[column] == (pytest.approx(values, rel=1e-12) if isinstance(values[0], float) else values)
    for side in ("baseline", "experiment"):
        a, b = (d.clusters(side, limit=20).to_pydict() for d in (on_disk, in_memory))
        assert a["cluster"] == b["cluster"] and a["outcome"] == b["outcome"]
    told = [repr(d).split("Next:")[0].split("Of ", 1)[1] for d in (on_disk, in_memory)]
    assert told[0] == told[1]
    if keep == "items":
        by = on_disk.changes("colour")
        assert by.to_pydict()["n_items"] == in_memory.changes("colour").to_pydict()["n_items"]
        found = on_disk.clusters("experiment", outcome="appeared")
        assert sorted(found["cluster"].to_pylist()) == sorted(
            in_memory.clusters("experiment", outcome="appeared")["cluster"].to_pylist()
        )
    on_disk.save(tmp_path / "saved", keep=keep)
    assert dict(fb.load(tmp_path / "saved").overall) == dict(on_disk.overall)


@pytest.mark.parametrize("many_shards", SPILLS, indirect=True)
@SETTINGS
@given(pair=pairs(), policy=st.sampled_from(["drop", "singleton", "outside"]), data=st.data())
def test_engines_agree_on_generated_changes(many_shards: Any, pair: Any, policy: Any, data: Any) -> None:
    weight = data.draw(weights(len(pair.items)))
    how: dict[str, Any] = {"unmatched": policy, "keep": "items"}
    if weight is not None:
        how["weight"] = dict(zip(pair.items, weight, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        on_disk = fb.diff(*pair, engine="disk", memory_limit=LIMIT, **how)
        in_memory = fb.diff(*pair, **how)
    assert dict(on_disk.overall) == pytest.approx(dict(in_memory.overall), rel=1e-12, abs=1e-12)
    assert on_disk.changes().to_pylist() == [
        {
            name: pytest.approx(value, nan_ok=True) if isinstance(value, float) else value
            for name, value in row.items()
        }
        for row in in_memory.changes().to_pylist()
    ]
    for side in ("baseline", "experiment"):
        outcomes = {"baseline": "gone", "experiment": "appeared"}[side]
        found = [set(d.clusters(side, outcome=outcomes)["cluster"].to_pylist()) for d in (on_disk, in_memory)]
        assert found[0] == found[1]


@pytest.mark.slow
def test_any_number_of_threads() -> None:
    rng = np.random.default_rng(4)
    labels = [rng.integers(0, 5000, 50_000) for _ in range(3)]
    weight = rng.uniform(0.1, 10, 50_000)
    found = [
        fb.diff(*labels[:2], truth=labels[2], weight=weight, threads=n, metrics="diff") for n in (1, 2, 4)
    ]
    assert dict(found[0].overall) == dict(found[1].overall) == dict(found[2].overall)


# Pairs to judge, links


def test_pairs_to_judge() -> None:
    rng = np.random.default_rng(5)
    old = table({k: int(c) for k, c in enumerate(rng.integers(0, 60, 300))}, colour=rng.integers(0, 2, 300))
    new = table({k: int(c) for k, c in enumerate(rng.integers(0, 60, 300))}, colour=rng.integers(0, 2, 300))
    truth = dict(enumerate(rng.integers(0, 40, 300).tolist()))
    d = fb.diff(old, new, truth=truth)
    pairs = d.sample_pairs(2000, score="good_split_rate", columns=["baseline.colour", "true_cluster"])
    assert {"item.baseline.colour", "mate.baseline.colour", "item.true_cluster"} <= set(pairs.column_names)
    verdicts = [
        "same" if truth[i] == truth[j] else "different"
        for i, j in zip(pairs["item"].to_pylist(), pairs["mate"].to_pylist(), strict=True)
    ]
    judged = pairs.drop_columns(["verdict"]).append_column("verdict", pa.array(verdicts))
    found = next(r for r in fb.estimate_pairs(judged).to_pylist() if r["score"] == "good_split_rate")
    assert found["low"] <= d.good_split_rate <= found["high"]
    by = d.sample_pairs(100, by="experiment.colour")
    assert len(set(by["stratum"].to_pylist())) == 2
    with pytest.raises(ColumnError, match="baseline"):
        d.sample_pairs(10, columns="nope")


def test_items_without_a_link_are_alone() -> None:
    new = fb.Clustering.from_links({"left": ["a", "d"], "right": ["b", "e"]}, "left", "right")
    d = fb.diff(BASELINE, new)
    assert d.definition["unmatched"] == {"baseline": "singleton", "experiment": "drop"}
    assert d.overall == fb.diff(BASELINE, dict(zip("abcdef", "112334", strict=True))).overall
    codes = {each["code"]: each for each in d.warnings}
    assert (
        codes["made-of-links"]["side"] == "experiment"
        and "The experiment is built" in codes["made-of-links"]["message"]
    )
    assert (
        "only the baseline has are each a singleton in the experiment" in codes["unlinked-alone"]["message"]
    )
    back = fb.diff(new, BASELINE)
    assert back.definition["unmatched"] == {"baseline": "drop", "experiment": "singleton"}
    assert back.merge_rate == d.split_rate


# Overlap


def test_overlapping_clusterings() -> None:
    old = {1: {"a"}, 2: {"a", "b"}, 3: {"b"}}
    new = {1: {"x"}, 2: {"x"}, 3: {"y"}}
    d = fb.diff(old, new, overlapping=True)
    ev = fb.evaluate(old, new, overlapping=True)
    assert (d.split_rate, d.merge_rate) == (close(1 - ev.recall), close(1 - ev.precision))
    assert list(d.overall) == ["split_rate", "merge_rate"]
    assert d.clusters("baseline").column_names[:5] == ["cluster", "n_items", "weight", "n_parts", "unchanged"]
    assert d.items()["baseline_cluster"].to_pylist() == [["a"], ["a", "b"], ["b"]]
    for ask in (d.changes, lambda: d.changes("x"), lambda: d.clusters("baseline", outcome="gone")):
        with pytest.raises(MetricError, match="not defined for overlapping clusters"):
            ask()
    with pytest.raises(MetricError, match="jaccard_distance is not defined"):
        fb.diff(old, new, overlapping=True, metrics="jaccard_distance")
    with pytest.raises(OverlapError, match="overlapping=True"):
        fb.diff(old, new)
    assert "Extended BCubed" in _line(repr(d))


def test_scores_of_pairs() -> None:
    d = fb.diff(BASELINE, EXPERIMENT, metrics=["adjusted_rand", lambda tp, fp, fn, tn: fp])
    assert d.adjusted_rand == fb.evaluate(BASELINE, EXPERIMENT, metrics="adjusted_rand").adjusted_rand
    assert d.metric("rand") == fb.evaluate(BASELINE, EXPERIMENT).metric("rand")
    assert fb.diff(BASELINE, EXPERIMENT, truth=TRUTH).metric("good_index") == close(8 / 15)
    with pytest.raises(MetricError, match="judges a change against a truth"):
        fb.diff(BASELINE, EXPERIMENT).metric("good_index")
    with pytest.raises(AttributeError, match="a diff has no attribute or computed score 'nonsense'"):
        _ = d.nonsense
    with pytest.raises(SliceError):
        d.items(baseline_cluster="nope")


def test_true_clusters_of_a_saved_diff_may_be_uuids(tmp_path: Path) -> None:
    labels = pa.array([b"a" * 16, b"a" * 16, b"b" * 16], pa.uuid())
    truth, names = pa.table({"item": [1, 2, 3], "cluster": labels}), list(map(str, labels.to_pylist()))
    found = fb.diff({1: 1, 2: 1, 3: 2}, {1: 1, 2: 2, 3: 2}, truth=truth)
    found.save(tmp_path, keep="items")
    for each in (found, fb.load(tmp_path)):
        assert list(map(str, each.items()["true_cluster"].to_pylist())) == names


@pytest.mark.cases(2)
@pytest.mark.parametrize("keep", ["scores", "cells", "items"])
@pytest.mark.parametrize("truth", [None, TRUTH])
def test_slices_of_a_saved_diff_are_ordered_as_before(tmp_path: Path, keep: str, truth: Any) -> None:
    old = table(BASELINE, part=list("mnnoom"))
    d = fb.diff(old, EXPERIMENT, truth=truth, slices="part")
    d.save(tmp_path / "d", keep=keep)
    again = fb.load(tmp_path / "d")
    for order in (None, "change", "split_change", "merge_change", "jaccard_distance", "n_items"):
        for limit in (None, 2):
            expected = d.slices("part", order_by=order, limit=limit)
            found = again.slices("part", order_by=order, limit=limit)
            assert found.column_names == expected.column_names
            assert found["part"].to_pylist() == expected["part"].to_pylist()
    with pytest.raises(MetricError, match="a diff calls it 'merge_change'"):
        again.slices("part", order_by="precision_loss")
    assert again.report().content["sections"]


def test_an_attribute_of_truth_and_baseline_is_found_once_saved(tmp_path: Path) -> None:
    d = fb.diff(table(BASELINE, part=list("mmmmmm")), EXPERIMENT, truth=table(TRUTH, part=list("abcabc")))
    expected = d.slices("part")["part"].to_pylist()
    d.save(tmp_path / "d", keep="items")
    assert fb.load(tmp_path / "d").slices("part")["part"].to_pylist() == expected == ["a", "b", "c"]
    assert fb.load(tmp_path / "d").slices("baseline.part")["baseline.part"].to_pylist() == ["m"]


def test_odd_questions_are_refused_by_name() -> None:
    diff = fb.diff({"a": 1, "b": 1}, {"a": 1, "b": 2}, keep="items")
    for ask, message in (
        (lambda: diff.changes({"VIP": ["a"]}), "by an attribute or by bins, not by subsets"),
        (lambda: diff.items(5), "columns must be names of attributes, not 5"),
        (lambda: diff.items(order_by=["f1"]), "ordered by the name of a score or another"),
        (lambda: diff.clusters(["baseline"]), "the side of a cluster must be"),
        (lambda: diff.evaluation.interval(["f1", "recall"]), "A score is named by a string"),
    ):
        with pytest.raises(fb.FastBCubedError, match=message):
            ask()


def test_columns_called_as_what_a_diff_has() -> None:
    old = table(BASELINE, baseline_size=list("xxyyzz"), true_size=list("112233"), true_cluster=list("ssssss"))
    d = fb.diff(old, EXPERIMENT, truth=TRUTH, cluster="cluster")
    for name in ("baseline_size", "true_cluster"):
        with pytest.raises(ColumnError, match=f"'baseline.{name}' for the column, 'always.{name}' for"):
            d.slices(name)
        assert d.slices(f"baseline.{name}")[f"baseline.{name}"].to_pylist() == sorted(
            set(old[name].to_pylist())
        )
    assert d.slices("always.baseline_size")["baseline_size"].to_pylist() == ["1", "2-3"]
    assert d.slices("always.true_cluster")["true_cluster"].to_pylist() == ["u", "v", "w"]
    with pytest.raises(ColumnError, match=r"'baseline\.true_size'"):
        d.slices("true_size")
    assert d.slices("baseline.true_size")["n_items"].to_pylist() == [2, 2, 2]
    listed = d.items(["baseline_size", "true_size"])
    assert listed["baseline_size"].to_pylist() == list("xxyyzz")
    assert listed["true_size"].to_pylist() == list("112233")
    for engine in ("memory", "disk"):
        with pytest.raises(ColumnError, match=r"'baseline\.baseline_size'"):
            fb.diff(old, EXPERIMENT, slices="baseline_size", engine=engine, cluster="cluster")
    for place in ("truth", "attributes"):
        own = table(TRUTH, true_cluster=list("ssssss"))
        given = (
            {"truth": own}
            if place == "truth"
            else {"truth": TRUTH, "attributes": own.drop_columns(["cluster"])}
        )
        with pytest.raises(ColumnError, match=r"has a column 'true_cluster'.*rename the column"):
            fb.diff(BASELINE, EXPERIMENT, cluster=(None, None, "cluster"), **given)


# Items of the truth that a side lacks


@pytest.mark.parametrize("weighted", [False, True])
def test_items_of_the_truth_that_a_side_lacks_are_warned_of_as_in_compare(weighted):
    """Of 20 true pairs the baseline cuts ten, and the experiment is the same without the items that it cuts.

    On the 20 items of both all is right; of all items recall is (20 + 20 / 2) / 40 = 3/4, and f1 6/7.
    """
    truth = {k: k // 2 for k in range(40)}
    full = {k: k // 2 if k < 20 else 100 + k for k in truth}
    linked = {k: full[k] for k in range(20)}
    weight = dict.fromkeys(truth, 2.0) if weighted else None
    with pytest.warns(fb.EvaluationWarning, match="experiment 20"):
        d = fb.diff(full, linked, truth=truth, weight=weight)
    (warning,) = (found for found in d.warnings if found["code"] == "runs-lack-items")
    assert (warning["level"], warning["runs"]) == ("warning", ["experiment"])
    for side, own in (("baseline", 6 / 7), ("experiment", 1)):
        figures = warning["by_run"][side]
        assert (figures["shown_f1"], figures["f1"]) == (1, pytest.approx(own, abs=1e-15))
        assert figures["f1_if_alone"] == pytest.approx(6 / 7, abs=1e-15)
    assert pickle.loads(pickle.dumps(d)).warnings == d.warnings
    for other in (
        fb.diff(full, linked, truth=truth, unmatched="singleton"),
        fb.diff(full, full, truth=truth),
    ):
        assert "runs-lack-items" not in [found["code"] for found in other.warnings]
