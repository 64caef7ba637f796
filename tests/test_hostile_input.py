"""Nulls, weights, duplicates, lengths, emptiness: a table, or an error that says all that one needs."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hostile import LABELS, OTHER, PREDICTION, SCORES, TRUTH, quietly, refused, scores, table

import fastbcubed as fb
from fastbcubed import Clustering, EvaluationWarning, evaluate
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    DuplicateItemError,
    EmptyInputError,
    FastBCubedError,
    NullError,
    OverlapError,
    WeightError,
)

NAN, INF = math.nan, math.inf


# --- nulls ---

NULL_LABELS = {
    "arrow": lambda: pa.array([1, None, 2]),
    "list": lambda: [1, None, 2],
    "NaN among strings": lambda: ["x", NAN, "y"],
    "pandas Int64": lambda: pd.Series([1, None, 2], dtype="Int64"),
    "pandas NA": lambda: ["x", pd.NA, "y"],
    "pandas NaT": lambda: ["x", pd.NaT, "y"],
    "category": lambda: pd.Categorical(["x", None, "y"]),
    "masked": lambda: np.ma.masked_array(LABELS, mask=[0, 1, 0]),
    "masked strings": lambda: np.ma.masked_array(["x", "x", "y"], mask=[0, 1, 0]),
    "null in a dictionary": lambda: pa.DictionaryArray.from_arrays([0, 1, 2], ["x", None, "y"]),
    "polars": lambda: pl.Series([1, None, 2]),
    "part of a tuple": lambda: [("x", 1), ("x", None), ("y", 1)],
}


@pytest.mark.parametrize("labels", NULL_LABELS.values(), ids=NULL_LABELS)
def test_null_labels(labels: Any) -> None:
    said = ("1 of 3 items", "null", "(rows 1)", 'nulls="singleton"', 'nulls="drop"')
    with refused(NullError, *said, "the truth"):
        evaluate(labels(), LABELS)
    with refused(NullError, *said, "the prediction"):
        evaluate(LABELS, labels())
    assert scores(LABELS, labels(), nulls="singleton") == (1.0, SCORES[0])
    assert scores(labels(), LABELS, nulls="singleton") == (SCORES[0], 1.0)
    dropped = evaluate(LABELS, labels(), nulls="drop")
    assert (dropped.precision, dropped.recall) == (1.0, 1.0)
    assert (dropped.coverage.n_null, dropped.coverage.n_common, dropped.coverage.n_truth_only) == (1, 2, 1)
    dropped = quietly(labels(), LABELS, nulls="drop")
    assert (dropped.coverage.n_null, dropped.coverage.n_prediction_only) == (1, 1)
    assert dropped.warnings[0]["code"] == "dropping-flatters"


def test_null_labels_by_item() -> None:
    for sides in (
        (table(["a", "b", "c"], [1, None, 2]), PREDICTION),
        ({"a": 1, "b": None, "c": 2}, PREDICTION),
    ):
        with refused(NullError, "1 of 3 items", "the truth", "'b'", 'nulls="drop"'):
            evaluate(*sides)
    with refused(NullError, "2000 of 2000", "0, 1, 2, …"):
        evaluate([None] * 2000, [1] * 2000)
    assert scores([None, None], [None, None], nulls="singleton") == (1.0, 1.0)
    with refused(NullError, "1 of 2 items", "'a'"):
        evaluate({"a": set(), "b": {1}}, {"a": 1, "b": 1})


@pytest.mark.parametrize(
    "items",
    [
        ["a", None, "c"],
        pd.Series(["a", np.nan, "c"], dtype=object),
        pd.Categorical(["a", None, "c"]),
        [1, None, 3],
    ],
)
def test_null_items_always_raise(items: Any) -> None:
    bad = {"item": items, "cluster": LABELS}
    for nulls in ("raise", "singleton", "drop"):
        with refused(NullError, "1 of 3", "null", "rows: 1", "the truth", "Drop these rows"):
            evaluate(pd.DataFrame(bad, dtype=object), PREDICTION, nulls=nulls)
    with refused(NullError, "1 of 3", "rows: 1", "the prediction"):
        evaluate(TRUTH, pd.DataFrame(bad, dtype=object))
    with refused(NullError, "1 of 2", "the truth"):
        evaluate({None: 1, "a": 2}, {"a": 1})
    with refused(NullError, "1 of 2", "the truth"):
        evaluate({NAN: 1, "a": 2}, {"a": 1})
    with refused(NullError, "1 of 2", "left items"):
        Clustering.from_pairs([1, None], [1, 2])


def test_nulls_of_one_table() -> None:
    both = {"x": [1, None, 2, 3], "y": [1, 1, None, 3], "item": list("abcd")}
    with pytest.warns(EvaluationWarning, match="50.0 ?%"):
        ev = evaluate("x", "y", table=both)
    assert (ev.coverage.n_common, ev.coverage.n_truth_only, ev.coverage.n_prediction_only) == (2, 1, 1)
    with refused(
        AlignmentError, "1 of 4 items", "the truth ('x'", "the prediction ('y'", "'c'", '"singleton"'
    ):
        evaluate("x", "y", table=both, unmatched="raise")
    assert scores("x", "y", table=both, unmatched="singleton") == (3 / 4, 1.0)
    assert scores("x", "y", table=both, unmatched="outside") == pytest.approx((2.5 / 3, 1.0), abs=1e-15)
    nowhere = evaluate("x", "y", table={"x": [1, None, 2], "y": [1, None, 2]}, unmatched="singleton")
    assert (nowhere.contingency.n_items, nowhere.coverage.n_null, nowhere.coverage.n_truth_only) == (2, 2, 0)
    with refused(NullError, "1 of 4", "rows: 2", "Drop these rows"):
        evaluate("x", "y", table={**both, "item": ["a", "b", None, "d"]})
    with refused(EmptyInputError, "all 2 clusters", "('x' of the table)", "null"):
        evaluate("x", "y", table={"x": [None, None], "y": [1, 2]})
    with refused(EmptyInputError, "all 2 clusters", "the truth", "null"):
        evaluate([None, None], [1, 2], nulls="drop")


# --- weights ---

BAD_WEIGHTS = {
    "NaN": ([1, NAN, 1], "rows"),
    "NaN in NumPy": (np.array([1, NAN, 1]), "(nan in rows 1)"),
    "null": ([1, None, 1], "rows: 1"),
    "pandas NA": (pd.array([1, None, 1], dtype="Int64"), "rows: 1"),
    "masked": (np.ma.masked_array([1.0, 1.0, 1.0], mask=[0, 1, 0]), "rows: 1"),
    "inf": ([1, INF, 1], "(inf in rows 1)"),
    "-inf": ([1, -INF, 1], "(-inf in rows 1)"),
    "zero": ([1, 0, 1], 'weighting="outer"'),
    "negative zero": ([1, -0.0, 1], 'weighting="outer"'),
    "negative": ([1, -1, 1], "(-1.0 in rows 1)"),
    "negative decimal": (pa.array([decimal.Decimal(i) for i in (1, -1, 1)]), "(-1.0 in rows 1)"),
}


@pytest.mark.parametrize(("weight", "said"), BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
def test_weights_that_are_none(weight: Any, said: str) -> None:
    with refused(WeightError, "1 of 3", said, "weight"):
        evaluate(LABELS, OTHER, weight=weight)
    with refused(WeightError, "1 of 3", said):
        fb.metrics.recall(LABELS, OTHER, sample_weight=weight)
    for options in ({"truth": TRUTH, "prediction": PREDICTION}, {"truth": PREDICTION, "prediction": TRUTH}):
        weighed = pa.table({"item": ["a", "b", "c"], "weight": weight})
        with refused(WeightError, "1 of 3", said):
            evaluate(**options, weight=weighed)
    with refused(WeightError, "1 of 3", said, "the truth"):
        evaluate(TRUTH.append_column("w", pa.array(weight, from_pandas=False)), PREDICTION, weight="w")
    with refused(WeightError, "1 of 3", said, "the prediction"):
        evaluate(TRUTH, PREDICTION.append_column("w", pa.array(weight, from_pandas=False)), weight="w")


@pytest.mark.parametrize(
    "weight", [["1", "2", "3"], [True, True, False], np.ones(3, bool), [[1], [2], [3]], np.zeros(3, "M8[D]")]
)
def test_weights_that_are_no_numbers(weight: Any) -> None:
    with refused(WeightError, "weight", "should be numbers"):
        evaluate(LABELS, OTHER, weight=weight)
    with refused(WeightError, "'w' of the truth", "should be numbers"):
        evaluate(TRUTH.append_column("w", pa.array(weight)), PREDICTION, weight="w")


def test_weights_of_another_length_or_form() -> None:
    for weight in ([1.0, 2.0], [1.0] * 4, [], np.ones(0)):
        with refused(WeightError, f"{len(weight)} values", "3 rows", "one per row"):
            evaluate(LABELS, OTHER, weight=weight)
    with refused(ColumnError, "one-dimensional", "(3, 1)"):
        evaluate(LABELS, OTHER, weight=np.ones((3, 1)))
    with refused(ColumnError, "'w'", "the truth has item, cluster", "the prediction has item, cluster"):
        evaluate(TRUTH, PREDICTION, weight="w")
    with refused(ColumnError, "no column 'v'", "x, y, w"):
        evaluate("x", "y", table={"x": LABELS, "y": OTHER, "w": [1, 2, 3]}, weight="v")
    with refused(WeightError, "by item, not by position", "name of a column", "item and weight"):
        evaluate(TRUTH, PREDICTION, weight=[1.0, 2.0, 3.0])
    with refused(WeightError, "no item ids", "an array"):
        evaluate(LABELS, OTHER, weight=pa.table({"item": [0, 1, 2], "weight": [1, 2, 3]}))
    with refused(WeightError, "another index"):
        evaluate(pd.Series(LABELS), pd.Series(OTHER), weight=pd.Series([1, 2, 3], index=[2, 1, 0]))


def test_weight_tables() -> None:
    weight = {"a": 1.0, "b": 2.0, "c": 3.0}
    expected = scores(LABELS, OTHER, weight=[1, 2, 3])
    forms = [
        weight,
        {**weight, "never seen": 7.0},
        pd.Series(weight)[::-1],
        {"item": ["c", "a", "b"], "weight": [3, 1, 2]},
        {"w": [3, 1, 2], "item": ["c", "a", "b"]},
        pd.DataFrame({"item": ["c", "a", "b"], "weight": [3, 1, 2], "extra": 0}),
    ]
    for form in forms:
        assert scores(TRUTH, PREDICTION, weight=form) == pytest.approx(expected, abs=1e-15)
    with refused(WeightError, "1 of 3 items", "no weight", "2", 'unmatched="drop"'):
        evaluate(TRUTH, PREDICTION, weight={"a": 1.0, "b": 2.0})
    with refused(DuplicateItemError, "1 of 4", "the weight table", "'b'", "one weight"):
        evaluate(TRUTH, PREDICTION, weight={"item": ["a", "b", "b", "c"], "weight": [1, 2, 2, 3]})
    with refused(ColumnError, "the weight table", "'weight'", "item, u, x", "weight="):
        evaluate(TRUTH, PREDICTION, weight={"item": ["a"], "u": [1], "x": [1]})
    with refused(WeightError, "1 of 4", "-1.0", "rows 3"):
        evaluate(TRUTH, PREDICTION, weight={**weight, "never seen": -1.0})
    with refused(WeightError, "1 of 3 items", "no weight"):
        fb.contingency(TRUTH, PREDICTION, weight={"a": 1.0, "b": 2.0})
    fewer = table(["a", "b"], [1, 2])
    assert evaluate(TRUTH, fewer, weight={"a": 1.0, "b": 2.0}).contingency.n_items == 2
    with refused(WeightError, "1 of 3", "no weight"):
        evaluate(TRUTH, fewer, weight={"a": 1.0, "b": 2.0}, unmatched="singleton")
    with refused(WeightError, "1 of 3", "no weight"):
        evaluate(fewer, PREDICTION, weight={"a": 1.0, "b": 2.0}, unmatched="outside")


def exact(true: list[int], pred: list[int], weight: Any) -> list[Fraction]:
    """Precision, recall, over- and under-merge rate from the definitions."""
    w = [Fraction(float(x)) for x in weight]
    rows = range(len(w))

    def mean(share: Any) -> Fraction:
        return sum((w[i] * share(i) for i in rows), Fraction(0)) / sum(w)

    def mass(i: int, *sides: list[int]) -> Fraction:
        return sum((w[j] for j in rows if all(side[j] == side[i] for side in sides)), Fraction(0))

    precision = mean(lambda i: mass(i, true, pred) / mass(i, pred))
    recall = mean(lambda i: mass(i, true, pred) / mass(i, true))
    return [precision, recall, 1 - precision, 1 - recall]


@pytest.mark.parametrize("orders", [0, 15, 100])
def test_weights_across_orders_of_magnitude(orders: int) -> None:
    rng = np.random.default_rng(orders)
    for _ in range(5):
        true, pred = (rng.integers(0, 8, 40).tolist() for _ in range(2))
        weight = 10.0 ** rng.uniform(-orders, orders, 40)
        ev = evaluate(true, pred, weight=weight)
        found = [ev.precision, ev.recall, ev.over_merge_rate, ev.under_merge_rate]
        for value, right in zip(found, exact(true, pred, weight), strict=True):
            assert abs(Fraction(value) - right) <= Fraction(1, 10**12)
        assert ev.over_merge_rate == pytest.approx(float(1 - exact(true, pred, weight)[0]), rel=1e-9)


@pytest.mark.parametrize("weighting", ["pointwise", "outer"])
@pytest.mark.parametrize("n_clusters", [1, 30, 200])
def test_a_perfect_clustering_scores_exactly_one(n_clusters: int, weighting: str) -> None:
    rng = np.random.default_rng(n_clusters)
    for orders in (0, 15, 60):
        labels = rng.integers(0, n_clusters, 200) if n_clusters < 200 else np.arange(200)
        weight = 10.0 ** rng.uniform(-orders, orders, 200)
        ev = evaluate(
            labels, rng.permutation(10**4)[labels], weight=weight, weighting=weighting, metrics="all"
        )
        for metric in ev.metrics:
            if metric.best != "neither" and not metric.name.startswith("chance_"):
                assert ev.overall[metric.name] == (metric.best == "higher"), metric.name
        for found in (ev.items(), ev.clusters("true"), ev.clusters("pred"), ev.slices("true_size")):
            assert set(found["precision"].to_pylist()) == set(found["recall"].to_pylist()) == {1.0}


def test_weights_out_of_range() -> None:
    for weighting in ("pointwise", "outer"):
        for bad in (1e308, 1e121, 1e-121, 5e-324):
            with refused(
                WeightError, "2 of 3 weights", "the truth", f"({bad}, {bad} in rows 0, 2)", "multiply"
            ):
                evaluate(LABELS, OTHER, weight=[bad, 1.0, bad], weighting=weighting)
    with refused(WeightError, "2 of 3 weights", "the weight table", "multiply"):
        evaluate(TRUTH, PREDICTION, weight={"a": 1.0, "b": 1.7e308, "c": 1.7e308})
    for even in (1e-119, 1e119):
        ev = evaluate(LABELS, OTHER, weight=[even] * 3, metrics="all")
        assert (ev.precision, ev.recall) == pytest.approx(SCORES, rel=1e-15)
        assert ev.overall["mcc"] == pytest.approx(evaluate(LABELS, OTHER).metric("mcc"), rel=1e-12)


def test_outer_weights() -> None:
    assert scores(LABELS, OTHER, weight=[0, 0, 3], weighting="outer") == (1 / 2, 1.0)
    assert scores(LABELS, OTHER, weight=[-0.0, 1, 1], weighting="outer") == (1 / 2, 3 / 4)
    with refused(WeightError, "add up to 0", "mean"):
        evaluate(LABELS, OTHER, weight=[0, 0, 0], weighting="outer")
    for bad in (-1, NAN, INF):
        with refused(WeightError, "1 of 3"):
            evaluate(LABELS, OTHER, weight=[1, 1, bad], weighting="outer")


# --- duplicates and overlap ---

REPEATED = table(["a", "a", "b", "c"], [1, 1, 1, 2])
CONTRARY = table(["a", "a", "b", "c"], [1, 2, 1, 2])


def test_duplicate_rows() -> None:
    said = ("1 of 4 rows", "'a'", 'duplicates="drop"')
    for side, sides in (("the truth", (REPEATED, PREDICTION)), ("the prediction", (TRUTH, REPEATED))):
        with refused(DuplicateItemError, *said, side):
            evaluate(*sides)
    with refused(DuplicateItemError, *said):
        evaluate(REPEATED, REPEATED)
    assert scores(REPEATED, PREDICTION, duplicates="drop") == SCORES
    assert scores(PREDICTION, REPEATED, duplicates="drop") == SCORES
    assert evaluate(REPEATED, REPEATED, duplicates="drop").coverage.n_duplicates == 2
    with refused(DuplicateItemError, "999 of 1000 rows", "(7"):
        evaluate(table([7] * 1000, [1] * 1000), table([7], [1]))
    nulls = table(["a", "a", "b"], [None, None, 1])
    assert quietly(nulls, PREDICTION, duplicates="drop", nulls="singleton").coverage.n_duplicates == 1


def test_an_item_in_two_clusters() -> None:
    for duplicates in ("raise", "drop"):
        for side, sides in (("the truth", (CONTRARY, PREDICTION)), ("the prediction", (TRUTH, CONTRARY))):
            with refused(OverlapError, "1 of 3 items", side, "'a'", "one cluster"):
                evaluate(*sides, duplicates=duplicates)
        with refused(OverlapError, "the truth"):
            evaluate(CONTRARY, CONTRARY, duplicates=duplicates)
        for odd in ([None, 2, 1], [-1, 2, 1]):
            with refused(OverlapError, "'a'"):
                evaluate(table(["a", "a", "b"], odd), TRUTH, nulls="drop", noise=-1, duplicates=duplicates)
        heavier = REPEATED.append_column("w", pa.array([1.0, 2.0, 3.0, 4.0]))
        for sides in ((heavier, PREDICTION), (TRUTH, heavier)):
            with refused(DuplicateItemError, "1 of 4 rows", "another weight", "'a'", "one weight"):
                evaluate(*sides, weight="w", duplicates=duplicates)
    with refused(OverlapError, "1 of 1", "'a'", "the truth"):
        evaluate({"a": {1, 2}}, {"a": 1})
    with refused(OverlapError, "'b'"):
        evaluate(Clustering.from_clusters([["a", "b"], ["b"]]), {"a": 1, "b": 1})


def test_repeats_of_composite_ids() -> None:
    for clusters, error in (([1, 1, 2], DuplicateItemError), ([1, 3, 2], OverlapError)):
        rows = pa.table({"p": ["x", "x", "y"], "q": [1, 1, 1], "cluster": clusters})
        with refused(error, "1 of ", "('x', 1)", "the truth"):
            evaluate(rows, rows, item=["p", "q"])


def test_long_ids_do_not_fill_the_screen() -> None:
    long = "x" * 10**6
    for call in (
        lambda: evaluate(table([long, long], [1, 1]), PREDICTION),
        lambda: evaluate(table([long, "y"], [1, 1]), PREDICTION),
        lambda: evaluate({long: 1, "a": 1}, {"a": 1}, unmatched="raise"),
        lambda: evaluate({long: None}, {"a": 1}),
        lambda: evaluate(TRUTH, PREDICTION).item(long),
    ):
        with pytest.raises(FastBCubedError, match="xxx") as caught:
            call()
        assert len(str(caught.value)) < 1000


def test_duplicates_in_one_table() -> None:
    rows = {"item": [1, 1, 2], "x": [1, 1, 2], "y": [1, 1, 2], "w": [1.0, 1.0, 3.0]}
    with refused(DuplicateItemError, "1 of 3 rows", "(1)", "'x' of the table", 'duplicates="drop"'):
        evaluate("x", "y", table=rows)
    ev = evaluate("x", "y", table=rows, weight="w", duplicates="drop")
    assert (ev.precision, ev.contingency.n_items, ev.contingency.total_weight) == (1.0, 2, 4.0)
    for other, named in (({"x": [1, 3, 2]}, "'x'"), ({"y": [1, 3, 2]}, "'y'"), ({"y": [1, None, 2]}, "'y'")):
        with refused(OverlapError, named, "(1)"):
            evaluate("x", "y", table=rows | other, duplicates="drop")
    with refused(DuplicateItemError, "another weight"):
        evaluate("x", "y", table=rows | {"w": [1.0, 2.0, 3.0]}, weight="w", duplicates="drop")


# --- lengths, emptiness, nothing in common ---


def test_lengths() -> None:
    with refused(AlignmentError, "3 labels", "2", "by position", "pass tables"):
        evaluate([1, 2, 3], [1, 2])
    with refused(ColumnError, "the table", "x has 2, y has 1"):
        evaluate("x", "y", table={"x": [1, 2], "y": [1]})
    with refused(ColumnError, "2 labels", "1 items"):
        Clustering.from_labels([1, 2], items=["a"])
    with refused(ColumnError, "2 labels", "1 weights"):
        Clustering.from_labels([1, 2], weight=[1.0])
    with refused(ColumnError, "1 left", "2 right"):
        Clustering.from_pairs([1], [1, 2])


@pytest.mark.parametrize(
    "nothing",
    [
        TRUTH.slice(0, 0),
        {},
        pd.DataFrame({"item": [], "cluster": []}, dtype="int64"),
        pa.table({"item": pa.nulls(0), "cluster": pa.nulls(0)}),
        Clustering.from_clusters([]),
        Clustering.from_clusters([[]]),
        Clustering.from_pairs([], []),
    ],
)
def test_nothing_to_score(nothing: Any) -> None:
    for sides in ((nothing, TRUTH), (TRUTH, nothing), (nothing, nothing)):
        with refused(EmptyInputError, "no rows"):
            evaluate(*sides)


def test_empty_labels() -> None:
    for labels in ([], np.array([], int), pd.Series([], dtype="int64"), pa.array([], pa.string())):
        with refused(EmptyInputError, "the truth", "no rows"):
            evaluate(labels, labels)
    with refused(AlignmentError, "0 labels"):
        evaluate([], [1])
    with refused(EmptyInputError, "no rows"):
        evaluate("x", "y", table={"x": [], "y": []})
    with refused(EmptyInputError, "no rows"):
        fb.contingency([], [])


def test_no_item_in_common() -> None:
    stranger = table([f"x{k}" for k in range(1000)], [1] * 1000)
    for policy in ("drop", "raise", "singleton", "outside"):
        with refused(
            EmptyInputError, "1000 items", "3 ", "'x0', 'x1', 'x2'", "'a', 'b', 'c'", "item columns"
        ):
            evaluate(stranger, PREDICTION, unmatched=policy)


def test_unmatched_items_are_listed() -> None:
    truth, prediction = dict.fromkeys(range(1000), 1), dict.fromkeys(range(997), 1)
    with refused(AlignmentError, "3 of 1000 items", "the truth", "the prediction", "997, 998, 999", '"drop"'):
        evaluate(truth, prediction, unmatched="raise")
    with refused(AlignmentError, "3 of 1000 items", "the prediction", "997", '"outside"'):
        evaluate(prediction, truth, unmatched={"prediction": "raise"})
    assert evaluate(prediction, truth, unmatched={"truth": "raise", "prediction": "singleton"}).recall == 1.0
