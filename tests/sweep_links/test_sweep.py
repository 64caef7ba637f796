"""What `fastbcubed.sweep` takes, and what its result answers."""

import copy
import itertools
import json
import math
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from documents import lines, parts, table

import fastbcubed as fb
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    EmptyInputError,
    EvaluationWarning,
    FastBCubedError,
    IdTypeError,
    LinkError,
    MetricError,
    OptionError,
    OverlapError,
    SliceError,
    WeightError,
)
from fastbcubed.metrics.metric import Metric

TRUTH = {"a": 1, "b": 1, "c": 1, "d": 2, "e": 2}
LINKS = [("a", "b", 0.9), ("b", "c", 0.7), ("c", "d", 0.5), ("d", "e", 0.4), ("a", "b", 0.2), ("e", "e", 1.0)]
#: By hand: at 0.9 {ab}, c, d, e; at 0.7 {abc}; at 0.5 {abcd}; at 0.4 all five.
PRECISION = {
    math.inf: 1.0,
    0.9: 1.0,
    0.7: 1.0,
    0.5: (3 * 3 / 4 + 1 / 4 + 1) / 5,
    0.4: (3 * 3 / 5 + 2 * 2 / 5) / 5,
}
RECALL = {
    math.inf: (3 / 3 + 2 / 2) / 5, 0.9: (2 * 2 / 3 + 1 / 3 + 1) / 5, 0.7: 4 / 5, 0.5: 4 / 5, 0.4: 1.0
}  # fmt: skip


@pytest.fixture
def sweep() -> fb.Sweep:
    return fb.sweep(TRUTH, LINKS)


def column(table: fb.Table, name: str) -> list[Any]:
    return table[name].to_pylist()


def test_the_curve_by_hand(sweep: fb.Sweep) -> None:
    curve = sweep.curve()
    assert column(curve, "threshold") == list(PRECISION)
    assert column(curve, "precision") == pytest.approx(list(PRECISION.values()), abs=1e-15)
    assert column(curve, "recall") == pytest.approx(list(RECALL.values()), abs=1e-15)
    assert column(curve, "clusters") == [5, 4, 3, 2, 1]
    assert column(curve, "largest") == [1, 2, 3, 4, 5]
    assert column(curve, "singletons") == [5, 3, 2, 1, 0]


def test_all_of_the_usual_scores_are_there(sweep: fb.Sweep) -> None:
    assert sweep.curve().column_names == [
        "threshold", "clusters", "largest", "singletons", "precision", "recall", "f1", "over_merge_rate",
        "under_merge_rate", "pair_precision", "pair_recall", "pair_f1", "rand", "adjusted_rand", "elm_precision",
        "elm_recall", "elm_f1", "homogeneity", "completeness", "v_measure", "variation_of_information",
    ]  # fmt: skip
    assert sweep.not_computed == {}


# The best threshold


def test_the_best_threshold_and_what_comes_with_it(sweep: fb.Sweep) -> None:
    best = sweep.best("f1")
    assert (best.threshold, best.until, best.score) == (0.7, 0.5, "f1")
    assert best.value == pytest.approx(2 * 0.8 / 1.8)
    assert best.figures["clusters"] == 3
    assert "f1 is best at threshold 0.7" in repr(best) and "just before 0.5" in repr(best)


def test_thresholds_that_are_as_good_are_named() -> None:
    """Of 1,000 true pairs, 990 are linked at 0.9, and one more at each of 0.8 to 0.4; at 0.3, 200 wrong ones."""
    pairs = [(f"a{k}", f"b{k}") for k in range(1000)]
    links = [(*pair, 0.9) for pair in pairs[:990]]
    links += [(*pair, score) for pair, score in zip(pairs[990:], (0.8, 0.7, 0.6, 0.5, 0.4), strict=False)]
    links += [(f"a{k}", f"b{k + 1}", 0.3) for k in range(0, 400, 2)]
    sweep = fb.sweep({item: k for k, pair in enumerate(pairs) for item in pair}, links)
    best = sweep.best(
        "recall", where="precision >= 0.99"
    )  # (990 + 5 + 10 / 2) … / 1,000: the last within 0.005
    assert (best.threshold, best.value) == (0.4, 0.9975)
    assert best.as_good == (0.4, 0.9), "recall is 0.995 at 0.9, 0.0025 less"
    assert best.range == "Any threshold from 0.4 to 0.9 is as good, to within 0.005."
    assert sweep.best("recall", where=["precision >= 0.99", "threshold < 0.75"]).as_good == (0.4, 0.7)
    cost = sweep.best("pair_fn + pair_fp + 1")  # 11, 10, 9, 8, 7 and 6
    assert (cost.value, cost.as_good) == (6.0, (0.4, 0.4))
    assert "just before 0.3 gives the same clusters" in cost.range
    assert "as good, to within 0.5 %" in sweep.best("pair_fn + pair_fp + 10000").range


def test_the_interval_of_the_best_score_is_shown() -> None:
    truth = {f"{k}{side}": f"{k}{side * (k % 4 == 0)}" for k in range(60) for side in "ab"}
    sweep = fb.sweep(truth, [(f"{k}a", f"{k}b", (k * k % 11 + 3 * (k % 4 > 0)) / 14) for k in range(60)])
    own = fb.evaluate(truth, sweep.at(sweep.best().threshold))
    low, high = own.interval("f1")
    assert f"f1 there is {own.f1:.3f} ({low:.3f} to {high:.3f}), which ignores" in " ".join(
        repr(sweep).split()
    )


def test_no_link_alone_is_no_range() -> None:
    best = fb.sweep({"a": 1, "b": 2, "c": 3}, [("a", "b", 0.9), ("b", "c", 0.8)]).best("f1")
    assert best.as_good == (math.inf, math.inf)
    assert best.range == "The first clusters are joined at 0.9."


def test_conditions_restrict_the_best(sweep: fb.Sweep) -> None:
    assert sweep.best("recall").threshold == 0.4
    assert sweep.best("recall", where="precision >= 0.98").threshold == 0.7
    assert sweep.best("recall", where="precision>=0.6 and largest < 5").threshold == 0.7
    assert sweep.best("recall", where=["precision >= 0.98", "threshold > 0.8"]).threshold == 0.9
    assert sweep.best("over_merge_rate", where="clusters <= 2").threshold == 0.5
    assert sweep.best("recall", where="largest <= 1,000").threshold == 0.4


def test_rounding_decides_no_condition() -> None:
    """At 0.3 items 1, 2, 4, 6 and 7 are together, of whose 10 pairs only 1 and 7 are right."""
    truth = {0: 8, 1: 1, 2: 7, 3: 9, 4: 0, 5: 1, 6: 3, 7: 1, 8: 8, 9: 1}
    links = [(2, 3, 0.2), (8, 6, 0.0), (1, 2, 0.9), (0, 4, 0.0), (4, 7, 0.9)]
    links += [(6, 6, 0.6), (9, 7, 0.2), (5, 1, 0.0), (2, 7, 0.3), (4, 6, 0.4)]
    sweep = fb.sweep(truth, links, items=list(range(10)))
    assert column(sweep.curve(), "pair_precision")[3] < 0.1
    for sign, threshold in ((">=", 0.3), (">", math.inf)):
        where = f"pair_precision {sign} 0.1 and threshold >= 0.3"
        assert sweep.best("recall", where=where).threshold == threshold
    assert sweep.best("pair_precision", where="pair_precision <= 0.1").threshold == 0.3
    assert sweep.best("recall", where="pair_precision < 0.1").threshold == 0.9


def test_thresholds_are_compared_to_the_last_bit() -> None:
    sweep = fb.sweep({"a": 1, "b": 1, "c": 1}, [("a", "b", 2e-15), ("b", "c", 1e-15)])
    assert sweep.best("recall", where="threshold > 1e-15").threshold == 2e-15


def test_the_strongest_of_equally_good_thresholds_is_the_best() -> None:
    """With no link P = 1 and R = 1/2; at 0.5, with a, b and x together, both are 2/3: F1 is 2/3."""
    sweep = fb.sweep({"x": 1, "a": 0, "b": 0, "c": 0}, [("a", "b", 0.5), ("b", "x", 0.5)])
    assert column(sweep.curve(), "f1") == pytest.approx([2 / 3, 2 / 3], abs=1e-15)
    assert sweep.best("f1").threshold == math.inf and sweep.best("1 - f1").threshold == math.inf
    assert sweep.at_best.summary["pred"]["clusters"] == 4


def test_the_best_at_an_end_of_the_curve_may_lie_beyond(sweep: fb.Sweep) -> None:
    weak = "the best may lie beyond the given links"
    strong = "no link is stronger"
    middle, first, last = (
        sweep.best("f1", where=where) for where in (None, "threshold >= 0.9", "largest > 4")
    )
    assert not middle.end and middle.notes == [] == [
        each for each in sweep.to_dict()["warnings"] if each["code"] == "best-at-end"
    ]
    assert strong in repr(first) and weak not in repr(first)
    assert not last.end  # all items are one cluster: no further link could change that
    few = fb.sweep({**TRUTH, "f": 2}, LINKS[:2])  # a-b at 0.9, b-c at 0.7; d, e and f are alone
    best = few.best("f1")
    assert best.threshold == 0.7 and weak in repr(best) and weak in " ".join(repr(few).split())
    (note,) = (each for each in few.to_dict()["warnings"] if each["code"] == "best-at-end")
    assert (
        note["level"] == "note"
        and weak in note["message"]
        and "f1 is best at threshold 0.7." in note["message"]
    )
    pytest.importorskip("altair")
    assert any(weak in each for each in lines(few.report().content["sections"][0]))


def test_no_link_may_be_best() -> None:
    best = fb.sweep({"a": 1, "b": 2}, [("a", "b", 0.9)]).best("f1")
    assert (best.threshold, best.until, best.value) == (math.inf, 0.9, 1.0)
    assert "with no link at all" in repr(best)
    ascending = fb.sweep({"a": 1, "b": 2}, [("a", "b", 0.9)], ascending=True)
    assert ascending.best("f1").threshold == -math.inf


@pytest.mark.parametrize(
    ("score", "where", "error", "told"),
    [
        ("presision", None, MetricError, "Did you mean 'precision'"),
        (
            "mean_f1",
            None,
            MetricError,
            r"no score 'mean_f1'; .*elm_f1, .* mean_f1 cannot be updated .* another score, or pass thresholds=",
        ),
        ("mirkin", None, MetricError, r"no score .* Name mirkin in metrics= to have it$"),
        (
            "f1",
            "mean_f1 > 0.5",
            OptionError,
            r"no 'mean_f1' to put .* mean_f1 cannot be updated .* [Pp]ass thresholds=",
        ),
        ("clusters", None, MetricError, "'clusters' has no best value"),
        ("f1", 5, OptionError, "where must be conditions such as .* not 5"),
        ("f1", "precision", OptionError, 'such as "precision >= 0.98"'),
        ("f1", "recall >= 2", OptionError, "recall is at most 1"),
        ("f1", "presision >= 0.5", OptionError, "Did you mean 'precision'"),
        ("f1", "threshold <= 0,5", OptionError, "needs numbers such as .* not '0,5'"),
        ("f1", "precision >= 0.99 and recall >= 0.99", OptionError, "Each can be met, but not all together"),
    ],
)
def test_what_has_no_best(sweep: fb.Sweep, score: str, where: str | None, error: type, told: str) -> None:
    with pytest.raises(error, match=told):
        sweep.best(score, where=where)


# Clusters


@pytest.mark.parametrize(
    ("threshold", "labels"), [(0.9, [0, 0, 1, 2, 3]), (0.8, [0, 0, 1, 2, 3]), (0.5, [0, 0, 0, 0, 1])]
)
def test_clusters_at_a_threshold(sweep: fb.Sweep, threshold: float, labels: list[int]) -> None:
    found = sweep.at(threshold)
    assert found.labels.keys().tolist() == labels
    assert sweep.evaluate(threshold).f1 == fb.evaluate(TRUTH, found).f1


def test_clusterings_side_by_side(sweep: fb.Sweep) -> None:
    table = sweep.clusterings([0.9, 0.5, 1])
    assert table.column_names == ["item", "cluster_0_9", "cluster_0_5", "cluster_1"]
    assert column(table, "item") == ["a", "b", "c", "d", "e"]
    assert column(table, "cluster_0_5") == [0, 0, 0, 0, 1]
    assert column(table, "cluster_1") == [0, 1, 2, 3, 4]
    assert sweep.clusterings(0.5).column_names == ["item", "cluster_0_5"]
    with pytest.raises(OptionError, match="thresholds must be a list of numbers, the minimum"):
        sweep.clusterings("0.5")  # type: ignore[arg-type]


@pytest.mark.parametrize("threshold", ["0.9", None, math.nan, True])
def test_a_threshold_is_a_number(sweep: fb.Sweep, threshold: Any) -> None:
    with pytest.raises(OptionError, match="threshold must be"):
        sweep.at(threshold)


def test_evaluate_at_the_best_threshold_when_none_is_given(sweep: fb.Sweep) -> None:
    assert sweep.evaluate().f1 == pytest.approx(sweep.best("f1").value, abs=1e-15)
    assert sweep.evaluate(0.9, metrics="pairs").pair_precision == 1.0


def test_evaluate_has_the_scores_that_the_sweep_was_asked_for() -> None:
    def halved(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return tp / (tp + fp) / 2

    found = fb.sweep(TRUTH, LINKS, metrics=["mean_f1", "f1", halved], thresholds=[0.5])
    ev = found.evaluate(0.5)
    assert list(ev.overall) == ["mean_f1", "f1", "halved"]
    assert ev.overall["halved"] == pytest.approx(PRECISION[0.5] / 2)
    assert list(found.evaluate(0.5, metrics="f1").overall) == ["f1"]
    declared = Metric(
        "parts", "matching", 1.0, math.inf, "lower", "s", "d", "fastbcubed", score=lambda cells, _: 2.0
    )
    assert fb.sweep(TRUTH, LINKS, metrics=[declared], thresholds=[0.5]).evaluate(0.5).parts == 2


# Scores


def test_scores_that_cannot_be_kept_up_are_exact_at_thresholds(sweep: fb.Sweep) -> None:
    found = fb.sweep(TRUTH, LINKS, metrics=["f1", "mean_f1", "jaccard_index"], thresholds=[0.9, 0.45])
    assert column(found.points(), "threshold") == [0.9, 0.45]
    for row in found.points().to_pylist():
        ev = fb.evaluate(TRUTH, sweep.at(row["threshold"]), metrics=["f1", "mean_f1", "jaccard_index"])
        assert {name: row[name] for name in ev.overall} == pytest.approx(dict(ev.overall))
    assert "mean_f1" not in found.curve().column_names


def test_scores_that_cannot_be_kept_up_need_thresholds() -> None:
    with pytest.raises(MetricError, match=r"mean_f1 cannot be updated .* Pass thresholds="):
        fb.sweep(TRUTH, LINKS, metrics="mean_f1")
    found = fb.sweep(TRUTH, LINKS, metrics="pointwise")
    assert "mean_f1" in found.not_computed and "precision" in found.curve().column_names


def test_a_formula_of_the_users_own_at_thresholds() -> None:
    def halved(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return tp / (tp + fp) / 2

    found = fb.sweep(TRUTH, LINKS, metrics=["precision", halved], thresholds=[0.5])
    assert column(found.points(), "halved") == pytest.approx([PRECISION[0.5] / 2])


def test_beta_and_other_combinations() -> None:
    found = fb.sweep(TRUTH, LINKS, metrics=["precision", "k_measure", "bcubed_f1"], beta=2.0)
    row = found.curve().to_pylist()[3]
    ev = found.evaluate(0.5, metrics=["precision", "k_measure", "bcubed_f1"])
    assert {name: row[name] for name in ("precision", "k_measure", "bcubed_f1", "fbeta")} == pytest.approx(
        {name: ev.overall[name] for name in ("precision", "k_measure", "bcubed_f1", "fbeta")}
    )


def test_what_is_not_defined_is_listed_with_the_reason() -> None:
    weight = dict.fromkeys(TRUTH, 1.5)
    weighted = fb.sweep(TRUTH, LINKS, weight=weight)
    assert "with weights it differs between items that share both" in weighted.not_computed["elm_f1"]
    outside = fb.sweep({"a": 1, "b": 1}, LINKS, unmatched="outside")
    assert "outside" in outside.not_computed["pair_f1"]
    with pytest.raises(MetricError, match="pair_f1 is not defined here"):
        fb.sweep({"a": 1}, LINKS, unmatched="outside", metrics="pair_f1")


# Input


def test_frames_files_and_columns_by_name(tmp_path: Any) -> None:
    left, right, scores = zip(*LINKS, strict=True)
    frame = pd.DataFrame({"one": left, "two": right, "p": scores})
    expected = fb.sweep(TRUTH, LINKS).curve()
    named = {"left": "one", "right": "two", "score": "p"}
    assert fb.sweep(TRUTH, frame, **named).curve() == expected
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "links.parquet")
    assert fb.sweep(TRUTH, tmp_path / "links.parquet", **named).curve() == expected
    splink = frame.rename(columns={"one": "unique_id_l", "two": "unique_id_r", "p": "match_probability"})
    assert fb.sweep(TRUTH, splink).curve() == expected


def test_labels_by_position() -> None:
    found = fb.sweep([0, 0, 1, 1], [(0, 1, 0.9), (1, 2, 0.2)])
    assert column(found.curve(), "clusters") == [4, 3, 2]
    assert found.at(0.9).items is None and found.at(0.9).labels.keys().tolist() == [0, 0, 1, 2]
    assert column(found.clusterings([0.9]), "item") == [0, 1, 2, 3]
    assert found.evaluate(0.9).f1 == fb.evaluate([0, 0, 1, 1], [0, 0, 1, 2]).f1
    assert column(found.merges(limit=1), "left") == [1]


@pytest.mark.parametrize(
    ("links", "error", "told"),
    [
        ([(0, 4, 0.9)], AlignmentError, "not a position among the 4 labels"),
        ([("a", "b", 0.9)], IdTypeError, "by integer position"),
    ],
)
def test_positions_that_are_none(links: list[Any], error: type, told: str) -> None:
    with pytest.raises(error, match=told):
        fb.sweep([0, 0, 1, 1], links)


@pytest.mark.parametrize("score", [math.nan, None])
def test_scores_are_numbers(score: Any) -> None:
    with pytest.raises(LinkError, match="1 of 2 scores"):
        fb.sweep(TRUTH, {"left": ["a", "b"], "right": ["b", "c"], "score": [0.5, score]})


def test_links_without_scores() -> None:
    with pytest.raises(FastBCubedError, match="score"):
        fb.sweep(TRUTH, [("a", "b"), ("b", "c")])


def test_items_without_a_link_are_alone_and_unknown_ones_raise() -> None:
    found = fb.sweep(TRUTH, [("a", "b", 0.9)])
    assert (found.coverage.n_truth_only, found.policies.truth) == (3, "singleton")
    assert column(found.curve(), "clusters") == [5, 4]
    everyone = fb.sweep(TRUTH, [("a", "b", 0.9)], items=list("abcdef"), unmatched={"prediction": "singleton"})
    assert column(everyone.curve(), "clusters") == [6, 5]
    with pytest.raises(LinkError, match="not among the 2 items given"):
        fb.sweep(TRUTH, LINKS, items=["a", "b"])


@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
def test_items_that_do_not_count_connect_others() -> None:
    links = [("a", "x", 0.9), ("x", "b", 0.8)]
    dropped = fb.sweep({"a": 1, "b": 1}, links, unmatched={"prediction": "drop"})
    assert column(dropped.curve(), "recall") == [0.5, 0.5, 1.0]
    assert column(dropped.curve(), "largest") == [1, 1, 2]
    assert column(dropped.merges(), "n_items") == [3]


def test_policies_that_raise() -> None:
    with pytest.raises(AlignmentError):
        fb.sweep(TRUTH, LINKS[:2], unmatched="raise")
    with pytest.raises(OptionError, match="cannot be outside"):
        fb.sweep(TRUTH, LINKS, unmatched={"truth": "outside"})


def test_nothing_in_common() -> None:
    with pytest.raises(EmptyInputError, match="no item of the truth"):
        fb.sweep({"x": 1}, LINKS)


def test_no_links_at_all() -> None:
    none = pa.array([], pa.string())
    nothing = {"left": none, "right": none, "score": pa.array([], pa.float64())}
    found = fb.sweep(TRUTH, nothing, items=list(TRUTH))
    assert column(found.curve(), "clusters") == [5]
    assert "none of which joins anything" in repr(found)
    assert (len(found.merges()), found.weakest_links()["threshold"].to_pylist()) == (0, [None, None])
    with pytest.raises(EmptyInputError, match="the links contains no link, and so no item"):
        fb.sweep(TRUTH, nothing)


def test_noise_and_nulls_of_the_truth() -> None:
    truth = {"item": list("abcde"), "cluster": [0, 0, None, 3, 3]}
    table = pa.table(truth)
    found = fb.sweep(table, LINKS, noise=3, nulls="singleton")
    for threshold in (0.9, 0.5, 0.4):
        ev = fb.evaluate({"a": 0, "b": 0, "c": 90, "d": 91, "e": 92}, fb.sweep(TRUTH, LINKS).at(threshold))
        assert found.evaluate(threshold).f1 == pytest.approx(ev.f1)
        row = next(r for r in found.curve().to_pylist() if r["threshold"] == threshold)
        assert row["f1"] == pytest.approx(ev.f1)
    assert found.coverage.n_noise == 2 and found.coverage.n_null == 1


@pytest.mark.parametrize("precision", [np.float16, np.float32])
def test_short_floats_reach_their_own_thresholds(precision: Any) -> None:
    links = {"left": ["a", "c"], "right": ["b", "d"], "score": np.array([0.9, 0.3], precision)}
    found = fb.sweep(TRUTH, links)
    assert found.at(0.9).labels.keys().tolist() == [0, 0, 1, 2]
    assert found.best("f1").threshold == 0.9


def test_infinite_scores_are_scores() -> None:
    links = [("a", "b", math.inf), ("b", "c", 0.5), ("d", "e", -math.inf)]
    found = fb.sweep(TRUTH, links)
    assert column(found.curve(), "threshold") == [math.inf, 0.5, -math.inf]
    assert column(found.curve(), "clusters") == [4, 3, 2]
    assert found.at(math.inf).labels.keys().tolist() == [0, 0, 1, 2, 3]
    assert found.evaluate(0.5).f1 == pytest.approx(found.curve().to_pylist()[1]["f1"])
    assert not math.isnan(found.curve(errors=True).to_pylist()[0]["f1_se"])
    assert column(found.merges(order_by="recall_change", limit=None), "threshold")[0] == 0.5
    assert str(found.best("precision")).startswith("precision is best at threshold inf: ")


def test_scores_that_are_no_probabilities_warn() -> None:
    links = {"unique_id_l": ["a"], "unique_id_r": ["b"], "match_probability": [7.5]}
    with pytest.warns(EvaluationWarning, match="1 of 1 scores .* is not between 0 and 1"):
        fb.sweep(TRUTH, links)


def test_a_truth_of_few_items_warns_as_evaluate_does() -> None:
    links = [(f"{k}", f"{k + 1}", 0.9) for k in range(0, 200, 2)]
    truth = {"0": 1, "1": 1, "2": 2, "3": 3}
    with pytest.warns(EvaluationWarning, match="few-items-labelled"):
        found = fb.sweep(truth, links, unmatched={"prediction": "singleton"})
    assert "few-items-labelled" in [each["code"] for each in found.warnings]


def test_dropped_items_of_the_truth_warn_as_in_evaluate() -> None:
    """Of 20 pairs ten are linked, and `items` has the other items or not: without them f1 is 1, and alone 6/7."""
    truth = {k: k // 2 for k in range(40)}
    links = [(k, k + 1, 0.9) for k in range(0, 20, 2)]
    with pytest.warns(
        EvaluationWarning, match=r"f1 would be 0\.85714 instead of 1 .*\[dropping-truth-flatters\]"
    ):
        found = fb.sweep(truth, links, items=list(range(20)))
    assert found.best("f1").value == 1
    for whole in (fb.sweep(truth, links), fb.sweep(truth, links, items=list(range(40)))):
        assert whole.best("f1").value == pytest.approx(6 / 7, abs=1e-15)
        assert "dropping-truth-flatters" not in [each["code"] for each in whole.warnings]


# The curve, thinned


def test_a_thinned_curve_keeps_its_ends_and_extremes() -> None:
    rng = np.random.default_rng(0)
    n = 3000
    truth = np.repeat(np.arange(n // 3), 3)
    right = np.concatenate([np.arange(n) // 3 * 3, rng.integers(0, n, n)])
    left = np.concatenate([np.arange(n), np.arange(n)])
    scores = np.concatenate([rng.beta(6, 2, n), rng.beta(2, 6, n)])
    found = fb.sweep(
        truth, {"left": left, "right": right, "score": scores}, metrics=["f1", "precision", "recall"]
    )
    whole, thin = found.curve(limit=None), found.curve(limit=50)
    assert len(whole) == found.tree.n_levels + 1 and 40 <= len(thin) <= 50
    for name in ("f1", "precision", "recall"):
        assert max(column(thin, name)) == max(column(whole, name))
        assert min(column(thin, name)) == min(column(whole, name))
        assert np.abs(np.diff(column(thin, name))).max() < 0.15
    assert (column(thin, "threshold")[0], column(thin, "threshold")[-1]) == (
        column(whole, "threshold")[0],
        column(whole, "threshold")[-1],
    )
    assert set(column(thin, "threshold")) <= set(column(whole, "threshold"))
    for limit in (2, 3, 5):
        few = column(found.curve(limit=limit), "threshold")
        assert len(few) <= limit and [few[0], few[-1]] == [math.inf, column(whole, "threshold")[-1]]


# Slices


@pytest.mark.parametrize(
    ("key", "score", "told"),
    [("pred_size", "f1", "changes with the threshold"), ("colour", "f1", "no attribute 'colour'")],
)
def test_slices_that_cannot_be(sweep: fb.Sweep, key: str, score: str, told: str) -> None:
    with pytest.raises(FastBCubedError, match=told):
        sweep.slices(key, score)
    with pytest.raises(MetricError, match="not a mean over items"):
        sweep.slices("true_size", "pair_f1")
    with pytest.raises(SliceError):
        sweep.slices(())


def test_slices_by_size_and_by_name(sweep: fb.Sweep) -> None:
    by_size = {row["true_size"]: row for row in sweep.slices("true_size").to_pylist()}
    assert by_size["2-3"]["n_items"] == 5
    named = sweep.slices({"first": ["a", "b", "c"], "rest": ["d", "e"]}).to_pylist()
    found = {row["slice"]: row for row in named}
    assert (found["first"]["threshold"], found["first"]["f1"], found["first"]["cost"]) == (0.7, 1.0, 0.0)
    assert (found["rest"]["threshold"], found["rest"]["f1"]) == (math.inf, pytest.approx(2 / 3))
    assert found["rest"]["f1_at_common"] == pytest.approx(2 / 3)
    none = sweep.slices({"rest": ["d", "e"]}, "recall", where="precision >= 0.6").to_pylist()[0]
    assert (none["threshold"], none["recall"]) == (math.inf, 0.5)
    impossible = sweep.slices({"rest": ["d", "e"]}, "recall", where="clusters >= 3").to_pylist()[0]
    assert impossible["threshold"] is None and impossible["cost"] is None


# Output


def test_it_reads_in_sentences_with_a_chart(sweep: fb.Sweep) -> None:
    lines = repr(sweep).splitlines()
    text = " ".join(" ".join(lines).split())
    assert text.startswith(
        "Sweep of 6 links over 5 items: clusters change at 4 scores of links, from 0.9 to 0.4."
    )
    assert "f1 is best at threshold 0.7" in text
    assert "P precision, R recall, F f1" in text
    assert max(map(len, lines)) <= 80


def test_json_and_back(sweep: fb.Sweep) -> None:
    found = json.loads(sweep.to_json())
    assert found["best"]["threshold"] == 0.7 and found["curve"][0]["threshold"] is None
    assert len(found["curve"]) == 5 and found["unmatched"] == {"truth": "singleton", "prediction": "drop"}


@pytest.mark.slow
def test_any_number_of_threads_gives_the_same_bits() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 900, 3000)
    links = {
        "left": rng.integers(0, 3000, 5000),
        "right": rng.integers(0, 3000, 5000),
        "score": rng.random(5000),
    }
    weight = rng.random(3000) + 0.1
    one, four = (fb.sweep(truth, links, weight=weight, threads=threads) for threads in (1, 4))
    assert one.curve(limit=None) == four.curve(limit=None)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"thresholds": ["x"]}, "threshold must be a number, .* not 'x'"),
        ({"thresholds": "0.5"}, "thresholds must be a list of numbers, .* not '0.5'"),
        ({"thresholds": object()}, "thresholds must be a list of numbers, the minimum"),
        ({"thresholds": [math.nan]}, "link score, not nan"),
        ({"thresholds": []}, "thresholds is empty"),
        ({"ascending": 1}, "ascending must be True or False, not 1"),
        ({"threads": 0}, "threads must be a number"),
        ({"progress": 3}, "progress must be True, False or a function, not"),
        ({"memory_limit": "lots"}, "memory_limit must be a number of bytes"),
    ],
)
def test_wrong_arguments(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        fb.sweep(TRUTH, LINKS, **wrong)


@pytest.mark.parametrize(
    ("scores", "told"),
    [
        (["0.5", "x"], "column 'score' of the links should be numbers, .* string. Name the column of scores"),
        ([True, False], "the type is bool"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "the type is timestamp"),
        ([[0.5], [0.4]], "the type is list"),
    ],
)
def test_scores_that_are_no_numbers(scores: Any, told: str) -> None:
    with pytest.raises(LinkError, match=told):
        fb.sweep(TRUTH, pa.table({"left": ["a", "b"], "right": ["b", "c"], "score": pa.array(scores)}))


@pytest.mark.parametrize(
    "scores",
    [
        pa.array([Decimal("0.5"), Decimal("0.25")]),
        pa.array([0.5, 0.25]).dictionary_encode(),
        np.array([0.5, 0.25], np.float16),
    ],
)
def test_scores_of_other_types_of_numbers(scores: Any) -> None:
    found = fb.sweep(TRUTH, {"left": ["a", "b"], "right": ["b", "c"], "score": scores})
    assert column(found.curve(), "threshold") == [math.inf, 0.5, 0.25]


def test_a_truth_that_is_none_and_links_in_its_place() -> None:
    with pytest.raises(ColumnError, match="labels of the truth should be a one-dimensional array or list"):
        fb.sweep(None, LINKS)
    with pytest.raises(
        ColumnError, match=r"the links should be a table of links, .* not a dict of single values"
    ):
        fb.sweep({"left": ["a"], "right": ["b"], "score": [0.5]}, TRUTH)
    with pytest.raises(ColumnError, match="The score column of the links is also an item column: left"):
        fb.sweep(TRUTH, {"left": ["a"], "right": ["b"], "score": [0.5]}, score="left")


def test_progress_is_told() -> None:
    stages = []
    fb.sweep(TRUTH, LINKS, progress=lambda step: stages.append(step.stage))
    assert "join items" in stages


def test_sweeps_are_pickled_and_copied(sweep: fb.Sweep) -> None:
    with pytest.warns(fb.EvaluationWarning):
        sweep.curve(errors=True)  # its errors are kept
    for again in (pickle.loads(pickle.dumps(sweep)), copy.deepcopy(sweep), copy.copy(sweep)):
        assert again.to_json() == sweep.to_json() and again.best("f1") == sweep.best("f1")
        assert again.evaluate(0.5).overall == sweep.evaluate(0.5).overall
        assert again.merges().to_arrow().equals(sweep.merges().to_arrow())


@pytest.mark.parametrize("truth", [{1: {1, 2}, 2: {1}}, pa.table({"item": [1, 1, 2], "cluster": [1, 2, 1]})])
def test_a_truth_that_overlaps_is_not_told_of_an_argument_that_is_not_there(truth):
    with pytest.raises(OverlapError, match=r"more than one cluster.*: choose one for each") as caught:
        fb.sweep(truth, [(1, 2, 0.5)])
    assert "overlapping=" not in str(caught.value)


def test_weights_of_zero_are_not_told_of_an_argument_that_is_not_there() -> None:
    weights = {**dict.fromkeys(TRUTH, 1.0), "d": 0.0}
    with pytest.raises(WeightError, match=r"1 of 5 weights .*\. Leave these items out\.$"):
        fb.sweep(TRUTH, LINKS, weight=weights)


@pytest.mark.parametrize("order_by", ["f1", ["f1_change"], 3])
def test_what_merges_are_not_ordered_by(sweep: fb.Sweep, order_by: Any) -> None:
    with pytest.raises(
        OptionError, match="order_by must be one of f1_change, precision_change, recall_change"
    ):
        sweep.merges(order_by=order_by)


# -- For people ------------------------------------------------------------------------------------


@pytest.mark.cases(1)
@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_a_threshold_in_few_digits_gives_the_same_clusters(kind: Any, ascending: bool) -> None:
    """Rounded to the weaker side it uses the same links, to the stronger one no more; and it has fewer digits."""
    scores = np.sort(np.random.default_rng(4).random(300)).astype(kind)
    links = pa.table({"left": np.arange(300), "right": np.arange(1, 301), "score": scores})
    sweep = fb.sweep(dict(enumerate([0] * 301)), links, ascending=ascending)
    levels = column(sweep.curve(limit=None), "threshold")[1:]
    reached = {t: sum(bool(s <= kind(t) if ascending else s >= kind(t)) for s in scores) for t in levels}
    longest = 0
    for before, threshold in zip([None, *levels], levels, strict=False):
        weak, strong = (float(sweep.shown(threshold, stronger=end)) for end in (False, True))
        assert sweep.at(weak).links.n_connecting == reached[threshold]  # type: ignore[union-attr]
        assert sweep.at(strong).links.n_connecting in (reached[threshold], reached.get(before, 0))  # type: ignore
        longest = max(longest, len(sweep.shown(threshold)))
    assert longest < 11
    best = sweep.best("recall")
    assert best.shown in best.sentence and sweep.shown(0.123456789012345678) == "0.12345678901234568"


def good_linker() -> fb.Sweep:
    """Return a sweep whose precision, recall and F1 are above 0.9 at most thresholds, and very low at the ends."""
    rng = np.random.default_rng(0)
    truth = {(k, j): k for k in range(300) for j in range(3)}
    links = [((k, j), (k, j + 1), float(1 - rng.random() ** 3 / 2)) for k in range(300) for j in range(2)]
    links += [((k, 0), (k + 1, 0), float(rng.random() / 2 if k > 12 else rng.random())) for k in range(299)]
    names = {item: f"{item[0]}-{item[1]}" for item in truth}
    return fb.sweep({names[i]: c for i, c in truth.items()}, [(names[a], names[b], s) for a, b, s in links])


@pytest.mark.slow
def test_the_axis_shows_where_scores_of_a_good_linker_differ() -> None:
    sweep = good_linker()
    best = sweep.best("f1")
    assert best.value > 0.95
    lines = repr(sweep).splitlines()
    labels = [float(line.split("|")[0]) for line in lines if "|" in line and line[0] in "01"]
    assert labels[0] == 1 and labels[-1] >= 0.8
    assert f"values below {labels[-1]:g} are not drawn" in repr(sweep)
    drawn = "".join(line.partition("|")[2] for line in lines if "|" in line)
    assert drawn.count("*") < len(drawn.replace(" ", "")) / 3  # they do not lie on each other
    pytest.importorskip("altair")
    spec = fb.charts.thresholds(sweep).to_dict()
    assert spec["layer"][0]["encoding"]["y"]["scale"]["domain"] == [labels[-1], 1.0]


@pytest.mark.slow
def test_precision_by_recall_names_thresholds() -> None:
    pytest.importorskip("altair")
    sweep = good_linker()
    spec = fb.charts.precision_recall(sweep).to_dict()
    labels = [layer for layer in spec["layer"] if layer["mark"]["type"] == "text"]
    rows = [row for layer in labels for row in layer["data"]["values"]]
    assert len(rows) >= 5 and [row["text"] for row in rows if row["best"]] == [sweep.best("f1").shown]
    for row in rows:
        ev = sweep.evaluate(row["threshold"])
        assert (row["precision"], row["recall"]) == pytest.approx((ev.precision, ev.recall))
        assert row["text"] == sweep.shown(row["threshold"]) and len(row["text"]) <= 9
        typed, exact = (
            sweep.at(float(each)).to_table()["cluster"] for each in (row["text"], row["threshold"])
        )
        assert typed.equals(exact)  # what the label says is what the point is
    assert len({row["text"] for row in rows}) == len(rows)
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    boxes = []
    for layer in labels:  # no label leaves the plot at its left end, and none stands on another
        mark = layer["mark"]
        for row in layer["data"]["values"]:
            x, y = (
                spec[size] * (row[name] - low) / (high - low)
                for size, name in (("width", "recall"), ("height", "precision"))
            )
            wide = 6 * len(row["text"])  # at least so many pixels
            left = x + mark["dx"] - wide * (mark["align"] == "right")
            boxes.append((left, left + wide, y - mark["dy"] - 5, y - mark["dy"] + 5))
    assert min(box[0] for box in boxes) >= 0
    for (a, b, c, d), (e, f, g, h) in itertools.combinations(boxes, 2):
        assert b <= e or f <= a or d <= g or h <= c
    with pytest.raises(MetricError, match="precision, recall and f1"):
        fb.charts.precision_recall(fb.sweep(TRUTH, LINKS, metrics="rand"))


@pytest.mark.slow
def test_a_page_of_the_best_threshold(tmp_path: Any) -> None:
    pytest.importorskip("altair")
    sweep = good_linker()
    report = sweep.report(
        tmp_path / "page.html", score="recall", where="precision >= 0.99", title="Mine", worst=2
    )
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == report.html
    best = sweep.best("recall", where="precision >= 0.99")
    first, along, merges, made = report.content["sections"]
    assert report.content["title"] == "Mine" and lines(first) == [best.sentence, best.range]
    assert [chart["draws"] for chart in parts(first, "Chart")] == ["thresholds", "precision_recall"]
    (row,) = (row for row in table(along) if row["threshold"] == best.shown)
    assert float(row["recall"]) == pytest.approx(best.value, abs=1e-5)
    assert len(table(merges)) == 2 and "600" not in lines(made)[0]
    assert parts(report.content, "Facts")[0]["facts"][-1][1] == "900 items"  # 300 clusters of 3
    with pytest.raises(OptionError, match="already exists"):
        sweep.report(tmp_path / "page.html")
    partly = fb.sweep({**TRUTH, "f": 2, "g": 3}, LINKS).report()  # no link has f and g: they are alone
    assert parts(partly.content, "Facts")[0]["facts"][-1][1] == "7 items"
    alone = fb.sweep({"a": 1, "b": 1}, [("a", "b", 0.5)], metrics="rand").report(score="rand")
    assert parts(alone.content["sections"][0], "Chart") and "rand is best at threshold 0.5" in alone.html


# Costs


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("5*pair_fp + pair_fn", lambda row: 5 * row["pair_fp"] + row["pair_fn"]),
        ("-pair_tp/ (2 - precision)+.5", lambda row: -row["pair_tp"] / (2 - row["precision"]) + 0.5),
        ("clusters - largest", lambda row: row["clusters"] - row["largest"]),
        ("1 / pair_tp", lambda row: 1 / row["pair_tp"] if row["pair_tp"] else math.inf),
    ],
)
def test_the_best_threshold_of_a_cost_is_that_of_the_lowest(text, cost) -> None:
    links = [("a", "b", 0.9), ("d", "e", 0.8), ("b", "c", 0.7), ("c", "d", 0.6), ("e", "f", 0.5)]
    truth = {"a": 1, "b": 1, "c": 1, "d": 2, "e": 2, "f": 3}
    names = ["precision", "pair_tp", "pair_fp", "pair_fn"]
    rows = fb.sweep(truth, links, metrics=names).curve(limit=None).to_pylist()
    expected = min(rows, key=cost)
    for sweep in (fb.sweep(truth, links), fb.sweep(truth, links, metrics=names)):  # they need not be listed
        best = sweep.best(text)
        assert best.threshold == expected["threshold"] and best.value == pytest.approx(cost(expected))
        assert best.score == text and "lowest at threshold" in best.sentence
    narrow = fb.sweep(truth, links).best(text, where="threshold >= 0.85")
    assert narrow.threshold == min((r for r in rows if r["threshold"] >= 0.85), key=cost)["threshold"]


@pytest.mark.parametrize(
    "text",
    ["pair_fp**2", "__import__('os').system('true')", "f1.real", "f1[0]", "f1 +", "'f1'*2", "f1 < 1", "True*f1",
     "lambda: f1", "(" * 400 + "f1" + ")" * 400, "9" * 400 + "*f1", "f1\x00", "2", "5 * nothing", "purity + f1"],
)  # fmt: skip
def test_a_cost_is_arithmetic_on_scores_of_the_curve(text) -> None:
    sweep = fb.sweep({"a": 1, "b": 1, "c": 2}, [("a", "b", 0.9), ("b", "c", 0.4)])
    with pytest.raises((OptionError, MetricError)):
        sweep.best(text)


def test_a_cost_has_any_unit(sweep: fb.Sweep) -> None:
    """At 0.7 one pair is missed and none is wrong."""
    best = sweep.best("1e-20*pair_fp + 1e-20*pair_fn")
    assert (best.threshold, best.value) == (0.7, 1e-20)


def test_only_a_finite_cost_is_lowest() -> None:
    """Without a link pair_tp is 0, so that -1 / pair_tp is -inf; at 0.9 it is -1, at 0.4 -1 / 2."""
    sweep = fb.sweep({"a": 1, "b": 1, "c": 2, "d": 2}, [("a", "b", 0.9), ("c", "d", 0.4)])
    best = sweep.best("-1 / pair_tp")
    assert (best.threshold, best.value) == (0.9, -1.0)
    for cost, where in (("f1/0", None), ("(f1 - f1) / (f1 - f1)", None), ("1 / pair_tp", "threshold > 0.9")):
        with pytest.raises(OptionError, match="is undefined or infinite at every threshold"):
            sweep.best(cost, where=where)
