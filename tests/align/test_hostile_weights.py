"""Weights of every kind: the right scores, or an error that says which are wrong and what to do."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hostile import LABELS, OTHER, PREDICTION, SCORES, TRUTH, refused, scores, table

import fastbcubed as fb
from fastbcubed import evaluate
from fastbcubed.errors import (
    ColumnError,
    DuplicateItemError,
    WeightError,
)

NAN, INF = math.nan, math.inf


BAD_WEIGHTS = {
    "NaN": ([1, NAN, 1], "row"),
    "NaN in NumPy": (np.array([1, NAN, 1]), "(nan in row 1)"),
    "null": ([1, None, 1], "rows: 1"),
    "pandas NA": (pd.array([1, None, 1], dtype="Int64"), "rows: 1"),
    "masked": (np.ma.masked_array([1.0, 1.0, 1.0], mask=[0, 1, 0]), "rows: 1"),
    "inf": ([1, INF, 1], "(inf in row 1)"),
    "-inf": ([1, -INF, 1], "(-inf in row 1)"),
    "zero": ([1, 0, 1], 'weighting="outer"'),
    "negative zero": ([1, -0.0, 1], 'weighting="outer"'),
    "negative": ([1, -1, 1], "(-1.0 in row 1)"),
    "negative decimal": (pa.array([decimal.Decimal(i) for i in (1, -1, 1)]), "(-1.0 in row 1)"),
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


def test_weights_of_odd_types() -> None:
    for weight in ([1, 2, "x"], [1j, 1, 1], [10**400, 1, 1]):
        with refused(WeightError, "weight", "numbers"):
            evaluate(LABELS, OTHER, weight=weight)
    for weight in (2.0, {1, 2, 3}):
        with refused(WeightError, "one-dimensional", type(weight).__name__):
            evaluate(LABELS, OTHER, weight=weight)
        with refused(WeightError, "name of a column", "item and weight", type(weight).__name__):
            evaluate(TRUTH, PREDICTION, weight=weight)
    with refused(WeightError, "weight", "numbers", "'x'"):
        evaluate(TRUTH, PREDICTION, weight={"a": 1, "b": 1, "c": "x"})
    with refused(WeightError, "no item ids", "an array"):
        evaluate(LABELS, OTHER, weight={0: 1.0, 1: 1.0, 2: 1.0})


def test_weights_of_another_length_or_form() -> None:
    for weight in ([1.0, 2.0], [1.0] * 4, [], np.ones(0)):
        with refused(WeightError, f"{len(weight)} values", "3 rows", "one per row"):
            evaluate(LABELS, OTHER, weight=weight)
    with refused(WeightError, "one-dimensional", "(3, 1)"):
        evaluate(LABELS, OTHER, weight=np.ones((3, 1)))
    with refused(ColumnError, "'w'", "the truth has item, cluster", "the prediction has item, cluster"):
        evaluate(TRUTH, PREDICTION, weight="w")
    with refused(ColumnError, "no column 'v'", "x, y, w"):
        evaluate("x", "y", table={"x": LABELS, "y": OTHER, "w": [1, 2, 3]}, weight="v")
    with refused(WeightError, "by item, not by position", "name of a column", "item and weight"):
        evaluate(TRUTH, PREDICTION, weight=[1.0, 2.0, 3.0])
    with refused(WeightError, "no item ids", "an array"):
        evaluate(LABELS, OTHER, weight=pa.table({"item": [0, 1, 2], "weight": [1, 2, 3]}))
    with refused(WeightError, "index differs"):
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
    with refused(
        WeightError, "1 of 3 scored or counted items", "no weight", "'c'", "Give every item a weight."
    ):
        evaluate(TRUTH, PREDICTION, weight={"a": 1.0, "b": 2.0})
    with refused(DuplicateItemError, "1 of 4", "the weight table", "'b'", "one weight"):
        evaluate(TRUTH, PREDICTION, weight={"item": ["a", "b", "b", "c"], "weight": [1, 2, 2, 3]})
    with refused(ColumnError, "the weight table", "'weight'", "item, u, x", "item="):
        evaluate(TRUTH, PREDICTION, weight={"item": ["a"], "u": [1], "x": [1]})
    with refused(WeightError, "1 of 4", "-1.0", "row 3"):
        evaluate(TRUTH, PREDICTION, weight={**weight, "never seen": -1.0})
    with refused(WeightError, "1 of 3 scored or counted items", "no weight"):
        fb.contingency(TRUTH, PREDICTION, weight={"a": 1.0, "b": 2.0})
    for nothing in (
        {},
        {"item": [], "weight": []},
        pd.Series([], dtype=float, index=pd.Index([], dtype=str)),
    ):
        with refused(WeightError, "3 of 3 scored or counted items", "no weight", "'a', 'b', 'c'"):
            evaluate(TRUTH, PREDICTION, weight=nothing)
    fewer = table(["a", "b"], [1, 2])
    assert evaluate(TRUTH, fewer, weight={"a": 1.0, "b": 2.0}).contingency.n_items == 2
    with refused(WeightError, "1 of 3", "no weight"):
        evaluate(TRUTH, fewer, weight={"a": 1.0, "b": 2.0}, unmatched="singleton")
    with refused(WeightError, "1 of 3", "no weight"):
        evaluate(fewer, PREDICTION, weight={"a": 1.0, "b": 2.0}, unmatched="outside")


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_series_taken_out_of_a_table(engine: Any) -> None:
    """Its index, the numbers of the rows, was taken for items where these are numbers, too."""
    truth = pd.DataFrame({"item": [2, 0, 1], "cluster": LABELS, "w": [1, 2, 3]})
    prediction = pd.DataFrame({"item": [2, 0, 1], "cluster": OTHER})
    expected = scores(LABELS, OTHER, weight=[1, 2, 3])
    for frame in (truth, truth.set_axis([7, 2, 0])):
        for sides in ((frame, prediction), (prediction.set_axis(frame.index), frame)):
            with refused(WeightError, "indexed by the rows", "Name the column", "a dict from item to weight"):
                evaluate(*sides, weight=frame["w"], engine=engine)
        assert scores(frame, prediction, weight="w", engine=engine) == pytest.approx(expected, abs=1e-15)
    by_item = truth.groupby("item")["w"].sum()
    in_order, indexed = truth.sort_values("item", ignore_index=True), truth.set_index("item")
    for side, weight in (
        (truth, by_item),
        (truth, by_item.to_dict()),
        (truth, indexed["w"]),
        (in_order, in_order["w"]),
        (indexed, indexed["w"]),
    ):
        assert scores(side, prediction, weight=weight, engine=engine) == pytest.approx(expected, abs=1e-15)


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


@pytest.mark.cases(1)
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
            amount = metric.name in ("pair_tp", "pair_tn", "mutual_info")
            if metric.best != "neither" and not amount and not metric.name.startswith("chance_"):
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
