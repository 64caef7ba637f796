"""Nulls, duplicates, lengths, emptiness: a table, or an error that says all that one needs."""

from __future__ import annotations

import math
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
    said = ("1 of 3 rows", "null", "(rows 1)", 'nulls="singleton"', 'nulls="drop"')
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
    assert [warning["code"] for warning in dropped.warnings] == ["dropping-flatters", "few-units"]


def test_null_labels_by_item() -> None:
    for sides in (
        (table(["a", "b", "c"], [1, None, 2]), PREDICTION),
        ({"a": 1, "b": None, "c": 2}, PREDICTION),
    ):
        with refused(NullError, "1 of 3 rows", "the truth", "'b'", 'nulls="drop"'):
            evaluate(*sides)
    with refused(NullError, "2000 of 2000", "0, 1, 2, …"):
        evaluate([None] * 2000, [1] * 2000)
    assert scores([None, None], [None, None], nulls="singleton") == (1.0, 1.0)
    with refused(NullError, "1 of 2 rows", "'a'"):
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


@pytest.mark.parametrize("ids", [[0, 1, 2], ["", "b", "c"], [b"", b"b", b"c"], [("", 0), ("b", 1), ("c", 2)]])
def test_a_null_id_stands_for_no_item(ids: list[Any]) -> None:
    """Under a null lies a zero or an empty text, which must not be taken for the item of that name."""
    ev = evaluate(*(Clustering.from_labels(labels, items=ids) for labels in (LABELS, OTHER)))
    absent, weight = [*ids[1:], None], {**dict.fromkeys(ids[1:], 1.0), None: 100.0}
    with refused(NullError, "1 of 3", "weight", "rows: 2", "Drop these rows"):
        evaluate(dict(zip(ids, LABELS, strict=True)), dict(zip(ids, OTHER, strict=True)), weight=weight)
    for ask in (lambda: ev.item(None), lambda: ev.subset([None])):
        with refused(NullError, "1 of 1", "the requested items"):
            ask()
    with refused(NullError, "1 of 3", "the requested items", "rows: 2"):
        ev.subset(absent)
    if not isinstance(ids[0], tuple):
        sides = [table(ids, labels) for labels in (LABELS, OTHER)]
        weights, groups = ({"item": absent, name: [7, 8, 9]} for name in ("weight", "g"))
        with refused(NullError, "1 of 3", "the weight table", "rows: 2"):
            evaluate(*sides, weight=pa.table(weights))
        with refused(NullError, "1 of 3", "the attributes", "rows: 2"):
            evaluate(*sides, attributes=pa.table(groups)).slices("g")
        with refused(NullError, "1 of 3", "the attributes", "rows: 2"):
            evaluate(*sides).slices("g", attributes=pa.table(groups))


def test_nulls_of_one_table() -> None:
    both = {"x": [1, None, 2, 3], "y": [1, 1, None, 3], "item": list("abcd")}
    with pytest.warns(EvaluationWarning, match="50.0 ?%"):
        ev = evaluate("x", "y", table=both, nulls="drop")
    assert (ev.coverage.n_common, ev.coverage.n_truth_only, ev.coverage.n_prediction_only) == (2, 1, 1)
    with refused(
        AlignmentError, "1 of 4 items", "the truth ('x'", "the prediction ('y'", "'c'", '"singleton"'
    ):
        evaluate("x", "y", table=both, nulls="drop", unmatched="raise")
    assert scores("x", "y", table=both, nulls="drop", unmatched="singleton") == (3 / 4, 1.0)
    assert scores("x", "y", table=both, nulls="drop", unmatched="outside") == pytest.approx(
        (2.5 / 3, 1.0), abs=1e-15
    )
    neither = {"x": [1, None, 2], "y": [1, None, 2]}
    nowhere = evaluate("x", "y", table=neither, nulls="drop", unmatched="singleton")
    assert (nowhere.contingency.n_items, nowhere.coverage.n_null, nowhere.coverage.n_truth_only) == (2, 2, 0)
    with refused(NullError, "1 of 4", "rows: 2", "Drop these rows"):
        evaluate("x", "y", table={**both, "item": ["a", "b", None, "d"]})
    with refused(EmptyInputError, "all 2 clusters", "('x' of the table)", "null"):
        evaluate("x", "y", table={"x": [None, None], "y": [1, 2]}, nulls="drop")
    with refused(EmptyInputError, "all 2 clusters", "the truth", "null"):
        evaluate([None, None], [1, 2], nulls="drop")


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
            with refused(DuplicateItemError, "1 of 4 rows", "a different weight", "'a'", "one weight"):
                evaluate(*sides, weight="w", duplicates=duplicates)
    with refused(OverlapError, "1 of 1", "'a'", "the truth"):
        evaluate({"a": {1, 2}}, {"a": 1})
    with refused(OverlapError, "'b'"):
        evaluate(Clustering.from_clusters([["a", "b"], ["b"]]), {"a": 1, "b": 1})


def test_a_clustering_without_a_name_goes_by_its_side() -> None:
    fine, contrary = (Clustering.from_table(rows, name="the clustering") for rows in (PREDICTION, CONTRARY))
    for side, sides in (("the truth", (contrary, fine)), ("the prediction", (fine, contrary))):
        with refused(OverlapError, "1 of 3 items of", side):
            evaluate(*sides)
    with refused(OverlapError, "the gold file"):
        evaluate(Clustering.from_table(CONTRARY, name="the gold file"), fine)
    assert contrary.name == "the clustering"


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
            evaluate("x", "y", table=rows | other, nulls="drop", duplicates="drop")
    with refused(DuplicateItemError, "a different weight"):
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
    ],
)
def test_nothing_to_score(nothing: Any) -> None:
    for sides in ((nothing, TRUTH), (TRUTH, nothing), (nothing, nothing)):
        with refused(EmptyInputError, "no rows"):
            evaluate(*sides)


@pytest.mark.filterwarnings("ignore::fastbcubed.errors.EvaluationWarning")
def test_links_that_are_none() -> None:
    """A linker that found nothing leaves each item alone: recall is (1/2 + 1/2 + 1) / 3."""
    none = Clustering.from_pairs([], [])
    for sides in ((none, TRUTH), (none, none)):
        with refused(EmptyInputError, "no rows"):
            evaluate(*sides)
    assert scores(TRUTH, none) == (1, 2 / 3)


def test_empty_labels() -> None:
    for labels in (
        [],
        np.array([]),
        np.array([], int),
        pd.Series([], dtype="int64"),
        pa.array([], pa.string()),
    ):
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
