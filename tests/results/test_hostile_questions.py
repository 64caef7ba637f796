"""Slices, subsets, listings and items that are not there: refused by name, never answered by guess."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hostile import LABELS, OTHER, PREDICTION, TRUTH, quietly, refused

import fastbcubed as fb
from fastbcubed import Clustering, Evaluation, evaluate
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    DuplicateItemError,
    FileFormatError,
    IdTypeError,
    MetricError,
    OptionError,
    SliceError,
)

NAN = math.nan


@pytest.fixture(scope="module")
def ev() -> Evaluation:
    truth = TRUTH.append_column("g", pa.array(["x", "y", None])).append_column("n", pa.array([[1], [2], [3]]))
    truth = truth.append_column("s", pa.array([{"z": 1}] * 3))
    prediction = PREDICTION.append_column("g", pa.array(["p", "q", "r"])).append_column(
        "h", pa.array([1, 1, 2])
    )
    return evaluate(truth, prediction)


@pytest.fixture(scope="module")
def by_position() -> Evaluation:
    return evaluate(LABELS, OTHER)


# --- slices and subsets ---


def test_attributes_that_cannot_be_sliced_by(ev: Evaluation) -> None:
    with refused(ColumnError, "'nope'", "truth: g, n, s", "prediction: g, h", "true_size, pred_size"):
        ev.slices("nope")
    for name in ("truth.nope", "truth.", "item", "cluster"):
        with refused(ColumnError, repr(name), "true_size"):
            ev.slices(name)
    for by in ("g", ("g", "h"), ("h", "g")):
        with refused(ColumnError, "both sides", "'truth.g'", "'prediction.g'"):
            ev.slices(by)
    for by in (("h", "h"), ("truth.g", "h", "truth.g"), ()):
        with refused(SliceError, "different"):
            ev.slices(by)
    for name in ("n", "s"):
        with refused(SliceError, f"'{name}'", "type", "plain column"):
            ev.slices(name)
    assert ev.slices("truth.g")["truth.g"].to_pylist() == ["x", "y", None]
    assert ev.slices(("truth.g", "h")).num_rows == 3


def test_subsets_that_are_none(ev: Evaluation, by_position: Evaluation) -> None:
    for ask in (ev.subset, lambda which: ev.slices({"V": which})):
        for mask in ([True, False], np.ones(4, bool), np.ones((1, 3), bool)):
            with refused(SliceError, "mask", "3 items"):
                ask(mask)
        for nothing in ([], np.zeros(3, bool), [False] * 3):
            with refused(SliceError, "no scored item"):
                ask(nothing)
        with refused(SliceError, "3 of 4", "'x', 'y', 'z'"):
            ask(["x", "a", "y", "z"])
        with refused(SliceError, "1 of the 3", "once"):
            ask(["a", "a", "b"])
        with refused(IdTypeError, "string", "int64", "the requested items"):
            ask([1])
        for wrong in ("a", {"a": 1}, pd.DataFrame({"item": ["a"]})):
            with pytest.raises((SliceError, ColumnError), match=r"list|one column"):
                ask(wrong)
    for listed, said in (([0, 3], "1 of 2"), ([-1], "1 of 1"), ([2**62], "1 of 1"), ([2**70], "1 of 1")):
        with refused(SliceError, said, str(listed[-1]), "not in the evaluation"):
            by_position.subset(listed)
    for listed in ([0.0], ["a"], [None], [0.5]):
        with refused(SliceError, "position", "integer", repr(listed[0])):
            by_position.subset(listed)
    half = quietly(TRUTH, PREDICTION.slice(0, 2))
    with refused(SliceError, "no scored item"):
        half.subset(["c"])
    with refused(SliceError, "no scored item"):
        half.slices({"V": np.array([False, False, True])})


def test_positions_that_wrap(by_position: Evaluation) -> None:
    with refused(SliceError, "1 of 1", str(2**63), "not in the evaluation"):
        by_position.subset(np.array([2**63], np.uint64))
    with refused(SliceError, str(2**63), "not in the evaluation"):
        by_position.item(2**63)
    for item in ([0], (0,)):
        with refused(SliceError, "position", "integer", repr(item)):
            by_position.item(item)
    with refused(SliceError, "position", "integer", "[0]"):
        by_position.subset([[0]])
    with refused(SliceError, "twice", "once"):
        by_position.subset([0, 0])
    with refused(SliceError, "no scored item"):
        by_position.subset([])


@pytest.mark.parametrize("by", [5, None, {}, ("true_size", 5), ["true_size", "pred_size"]])
def test_what_is_no_slicing(by: Any, ev: Evaluation) -> None:
    with refused(SliceError, "attribute", "mapping", repr(by)):
        ev.slices(by)


def test_masks_with_nulls_or_an_index(ev: Evaluation) -> None:
    for mask in (
        [True, None, False],
        pa.array([True, None, False]),
        pd.array([True, None, False], dtype="boolean"),
    ):
        with refused(SliceError, "1 of 3", "mask", "null"):
            ev.subset(mask)
    with refused(SliceError, "mask", "index", "to_numpy"):
        ev.subset(pd.Series([True, False, False], index=[2, 1, 0]))
    for wrong in (5, None):
        with refused(SliceError, "list of items or a mask", repr(wrong)):
            ev.subset(wrong)


def test_a_subset_without_weight() -> None:
    weighed = evaluate(LABELS, OTHER, weight=[0, 0, 1], weighting="outer")
    with refused(SliceError, "weight 0"):
        weighed.subset([0, 1])
    assert weighed.subset([0, 2])["precision"] == 1 / 2


def test_subsets_in_every_form(ev: Evaluation) -> None:
    for which in (
        ["a"],
        ("a",),
        pa.array(["a"]),
        pa.chunked_array([["a"]]),
        pd.Series(["a"]),
        pd.Index(["a"]),
        pd.Categorical(["a"]),
        pl.Series(["a"]),
        np.array(["a"]),
        np.array(["a"], object),
        [True, False, False],
        np.array([True, False, False]),
        pd.Series([True, False, False]),
        pl.Series([True, False, False]),
        pa.array([True, False, False]),
    ):
        assert ev.subset(which)["precision"] == 1.0


def test_attribute_tables(ev: Evaluation, by_position: Evaluation) -> None:
    with refused(AlignmentError, "1 rows", "no item column", "3 items"):
        by_position.slices("z", attributes={"z": [1]})
    with refused(ColumnError, "attributes", "int"):
        ev.slices("z", attributes=5)
    with refused(DuplicateItemError, "attributes", "one row"):
        ev.slices("z", attributes={"item": ["a", "a"], "z": [1, 2]})
    with refused(IdTypeError, "string", "int64", "attributes"):
        ev.slices("z", attributes={"item": [1], "z": [1]})
    with refused(ColumnError, "'z'", "attributes: y"):
        ev.slices("z", attributes={"item": ["a"], "y": [1]})
    found = ev.slices("z", attributes={"item": ["a", "stranger"], "z": [7, 8]})
    assert found["z"].to_pylist() == [7, None]
    assert found["n_items"].to_pylist() == [1, 2]


# --- listings and single items ---


def test_listings_refuse_what_they_lack(ev: Evaluation) -> None:
    for listing in (ev.items, lambda **k: ev.clusters("true", **k), lambda **k: ev.slices("h", **k)):
        with refused(MetricError, "'nope'", "precision", "metrics="):
            listing(order_by="nope")
        for limit in (-1, 1.5, "1", True):
            with refused(OptionError, "limit", repr(limit), "0 or more"):
                listing(limit=limit)
        assert listing(limit=0).num_rows == 0
        assert listing(limit=10**30).num_rows == listing().num_rows
    for side in ("both", "TRUE", "", None, 5, ["true"]):
        with refused(SliceError, '"true"', '"pred"', repr(side)):
            ev.clusters(side)


@pytest.mark.parametrize("odd", [5, 1.5, b"g", [1], [["g"]], {"g": None}, np.datetime64("2020"), object()])
def test_arguments_of_another_kind(ev: Evaluation, odd: Any, tmp_path: Any) -> None:
    for ask in (ev.items, lambda c: ev.item("a", columns=c), lambda c: ev.cluster("true", 1, columns=c)):
        if not isinstance(odd, dict):  # the keys of a dict are names, too
            with refused(OptionError, "columns must be names of attributes, not"):
                ask(odd)
    with refused(OptionError, "kinds must be"):
        ev.repairs(odd)
    with refused(OptionError, "keep must be one of"):
        ev.save(tmp_path, keep=odd)
    with refused(OptionError, "there is no example"):
        fb.example(odd)
    with refused(OptionError, "repairs must be a whole number, 0 or more"):
        ev.save(tmp_path, repairs=-1)


def test_items_that_are_not_there(ev: Evaluation, by_position: Evaluation) -> None:
    for item in ("zz", "", "A", "a "):
        with refused(SliceError, repr(item), "not in the evaluation"):
            ev.item(item)
    for item, said in (
        (1, "int64"),
        (1.5, "double"),
        (b"a", "binary"),
        (True, "bool"),
        (("a", "b"), "string and"),
    ):
        with refused(IdTypeError, "the requested items", said):
            ev.item(item)
    for item in (3, -1, 10**9):
        with refused(SliceError, str(item), "not in the evaluation"):
            by_position.item(item)
    for item in ("0", 1.0, None, True, NAN):
        with refused(SliceError, "position", "integer", repr(item)):
            by_position.item(item)
    half = quietly(TRUTH, PREDICTION.slice(0, 2))
    with refused(SliceError, "'c'", "not scored"):
        half.item("c")


def test_the_number_of_members(ev: Evaluation) -> None:
    for members in (-1, 1.5, None, True, "x"):
        with refused(OptionError, "members", "0 or more", repr(members)):
            ev.item("a", members=members)
    assert ev.item("a", members=0)["members"]["tp"] == {"n_items": 1, "first": []}
    assert ev.item("a", members=10**30)["members"]["fn"]["first"] == ["b"]


def test_directories_that_are_none(ev: Evaluation) -> None:
    for path in (5, None, "", "a\0b", "a\udc80"):
        error = OptionError if path in (5, None, "") else FileFormatError
        for call in (ev.save, fb.load, fb.Clustering.from_parquet, ev.report().write):
            with refused(error, "path", repr(path)):
                call(path)


def test_items_with_composite_ids() -> None:
    ids = [("a", 1), ("a", 2), ("b", 1)]
    ev = evaluate(*(Clustering.from_labels(labels, items=ids) for labels in (LABELS, OTHER)))
    assert [ev.item(item)["tp"] for item in ids] == [1.0, 1.0, 1.0]
    with refused(SliceError, "('b', 2)", "not in the evaluation"):
        ev.item(("b", 2))
    for item in ("a", ("a",), ("a", "1"), (1, "a"), ("a", 1, 1)):
        with refused(IdTypeError, "the requested items", "string and int64"):
            ev.item(item)
    assert ev.subset([("a", 1), ("b", 1)])["recall"] == 3 / 4
    with refused(SliceError, "1 of 2", "('z', 1)"):
        ev.subset([("a", 1), ("z", 1)])


def test_a_long_name_of_an_attribute_is_cut_in_messages() -> None:
    with pytest.raises(ColumnError) as raised:
        fb.evaluate([0, 0, 1], [0, 1, 1], slices="q" * 10_000)
    assert len(str(raised.value)) < 500
