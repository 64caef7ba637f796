"""Bad options, formulas, slices and questions about items: refused by name, and nothing is harmed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hostile import LABELS, OTHER, PREDICTION, SCORES, TRUTH, quietly, refused, scores

import fastbcubed as fb
from fastbcubed import Clustering, Evaluation, evaluate
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    DuplicateItemError,
    FastBCubedError,
    IdTypeError,
    MetricError,
    OptionError,
    SliceError,
)

NAN = math.nan

BAD_OPTIONS: list[tuple[str, Any, type[FastBCubedError], tuple[str, ...]]] = [
    ("unmatched", "keep", OptionError, ("'drop'", "'singleton'", "'keep'")),
    ("unmatched", None, OptionError, ("policy",)),
    ("unmatched", {"pred": "drop"}, OptionError, ("'pred'", '"prediction"')),
    ("unmatched", {"truth": "outside"}, OptionError, ("truth", "'outside'")),
    ("unmatched", {"prediction": 5}, OptionError, ("prediction", "'outside'", "5")),
    ("nulls", "ignore", OptionError, ("nulls", "'raise'", "'singleton'", "'drop'", "'ignore'")),
    ("nulls", ["raise"], OptionError, ("nulls",)),
    ("nulls", None, OptionError, ("nulls",)),
    ("duplicates", "keep", OptionError, ("duplicates", "'raise'", "'drop'", "'keep'")),
    ("duplicates", True, OptionError, ("duplicates",)),
    ("weighting", "inner", OptionError, ('"pointwise"', '"outer"', "'inner'")),
    ("weighting", None, OptionError, ("weighting",)),
    ("beta", NAN, OptionError, ("beta", "nan")),
    ("beta", -1, OptionError, ("beta", "-1")),
    ("beta", "2", OptionError, ("beta", "'2'")),
    ("beta", None, OptionError, ("beta", "None")),
    ("beta", [1.0], OptionError, ("beta",)),
    ("threads", 0, OptionError, ("threads", "1 or more", "0")),
    ("threads", -2, OptionError, ("threads", "-2")),
    ("threads", 1.5, OptionError, ("threads", "1.5")),
    ("threads", "2", OptionError, ("threads", "'2'")),
    ("threads", True, OptionError, ("threads",)),
    ("keep", "all", OptionError, ('"scores"', '"cells"', '"items"', "'all'")),
    ("keep", None, OptionError, ("keep",)),
    ("metrics", "F1", MetricError, ("'F1'", "Did you mean 'f1'?")),
    ("metrics", "precision,recall", MetricError, ("'precision,recall'", "'precision'")),
    ("metrics", "xyzzy", MetricError, ("'xyzzy'", '"all"')),
    ("metrics", ["f1", ""], MetricError, ("''",)),
    ("metrics", [None], MetricError, ("None", "string")),
    ("metrics", [1], MetricError, ("1", "string")),
    ("noise", 1.5, IdTypeError, ("the truth", "int64", "1.5")),
    ("noise", True, IdTypeError, ("the truth", "int64", "True")),
    ("noise", [1], IdTypeError, ("the truth", "int64", "[1]")),
    ("noise", "-1", IdTypeError, ("the truth", "int64", "'-1'")),
    ("noise", (1, 2), IdTypeError, ("the truth", "int64")),
    ("slices", "nope", ColumnError, ("'nope'", "true_size")),
    ("slices", [("true_size", "true_size")], SliceError, ("different",)),
    ("slices", [()], SliceError, ("attribute",)),
    ("slices", {"V": ["zz", "a"]}, SliceError, ("1 of 2", "'V'", "'zz'")),
    ("slices", {"V": []}, SliceError, ("'V'", "no scored item")),
    ("attributes", 5, ColumnError, ("attributes", "int")),
    ("attributes", [1, 2, 3], ColumnError, ("attributes", "list")),
    ("attributes", {"z": [1, 2, 3]}, ColumnError, ("attributes", "'item'", "z")),
]


@pytest.mark.parametrize(
    ("name", "value", "error", "said"), BAD_OPTIONS, ids=[f"{row[0]}={row[1]!r}" for row in BAD_OPTIONS]
)
def test_bad_options(name: str, value: Any, error: type[FastBCubedError], said: tuple[str, ...]) -> None:
    with refused(error, *said):
        evaluate(TRUTH, PREDICTION, **{name: value})


def test_bad_options_come_before_the_work() -> None:
    for options in ({"metrics": "nope"}, {"beta": -1}, {"threads": 0}, {"keep": "x"}, {"unmatched": "x"}):
        with pytest.raises((OptionError, MetricError)):
            evaluate("absent.parquet", "absent.parquet", **options)


def test_harmless_options() -> None:
    for options in (
        {"metrics": {"precision": 1, "recall": 2}},
        {"metrics": ["precision", "precision", "recall"]},
        {"unmatched": {}},
        {"noise": 10**30},
        {"noise": 99},
        {"beta": math.inf},
        {"beta": 0},
        {"threads": 3},
        {"progress": False},
    ):
        ev = evaluate(TRUTH, PREDICTION, **options)
        assert (ev.precision, ev.recall) == SCORES


def test_noise_of_every_type() -> None:
    for labels, noise in (
        ([-1, -1, 2], -1),
        ([-1, -1, 2], np.int64(-1)),
        (["", "", "x"], ""),
        ([b"\0", b"\0", b"x"], b"\0"),
        ([("a", 1), ("a", 1), ("b", 1)], ("a", 1)),
        (pd.Categorical(["x", "x", "y"]), "x"),
        (pa.array([2**64 - 1, 2**64 - 1, 1], pa.uint64()), 2**64 - 1),
    ):
        ev = evaluate(labels, labels, noise=noise)
        assert ev.coverage.n_noise == 4
        assert (ev.contingency.n_true, ev.precision, ev.recall) == (3, 1.0, 1.0)
    with refused(IdTypeError, "the truth", "tuple of 2", "('a',)"):
        evaluate([("a", 1), ("b", 1)], [1, 1], noise=("a",))


def test_what_a_callback_raises_comes_through() -> None:
    def stop(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(TRUTH, PREDICTION, progress=stop)
    assert scores(TRUTH, PREDICTION) == SCORES


# --- scores and formulas ---


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


def test_scores_that_are_not_there(ev: Evaluation) -> None:
    with refused(MetricError, "'mcc' was not computed", "precision, recall", "metrics=", ".metric("):
        ev.overall["mcc"]
    assert "mcc" not in ev.overall
    with pytest.raises(AttributeError, match=r"metric\('nope'\)"):
        _ = ev.nope
    for wrong in ("nope", "", 5, None, ["f1"]):
        with refused(MetricError, repr(wrong)):
            ev.metric(wrong)


def test_formulas_of_the_wrong_shape(ev: Evaluation) -> None:
    def first(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return tp[:1]

    def column(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return tp[:, None]

    def both(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return np.stack([tp, fp])

    for formula in (first, column, both):
        for call in (ev.metric, lambda f: evaluate(TRUTH, PREDICTION, metrics=f)):
            with refused(MetricError, formula.__name__, "shape", "(3,)", "element by element"):
                call(formula)
        with refused(MetricError, formula.__name__):
            fb.metrics.pointwise_score(formula, LABELS, OTHER)
    with refused(OptionError, "formula", "(tp, fp, fn, tn)", "5"):
        fb.metrics.pointwise_score(5, LABELS, OTHER)


def test_formulas_that_raise_or_write(ev: Evaluation) -> None:
    def broken(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        raise KeyError("my own mistake")

    def vandal(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        for part in (tp, fp, fn, tn):
            if part.flags.writeable:
                part[:] = 0
        return np.zeros(tp.shape)

    with pytest.raises(KeyError, match="my own mistake"):
        ev.metric(broken)
    before = ev.items().to_pylist()
    assert ev.metric(vandal) == 0.0
    assert (ev.metric("precision"), ev.metric("recall")) == SCORES
    assert ev.items().to_pylist() == before
    both = evaluate(TRUTH, PREDICTION, metrics=[vandal, "precision", "recall", "accuracy"])
    assert (both.precision, both.recall, both.overall["accuracy"]) == (*SCORES, ev.metric("accuracy"))


# --- slices and subsets ---


def test_attributes_that_cannot_be_sliced_by(ev: Evaluation) -> None:
    with refused(ColumnError, "'nope'", "truth: g, n, s", "prediction: g, h", "true_size, pred_size"):
        ev.slices("nope")
    for name in ("truth.nope", "truth.", "", "item", "cluster"):
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
            with refused(SliceError, "mask", str(np.shape(mask)), "3 items"):
                ask(mask)
        for nothing in ([], np.zeros(3, bool), [False] * 3):
            with refused(SliceError, "no scored item"):
                ask(nothing)
        with refused(SliceError, "3 of 4", "'x', 'y', 'z'"):
            ask(["x", "a", "y", "z"])
        with refused(SliceError, "1 of the 3", "again"):
            ask(["a", "a", "b"])
        with refused(IdTypeError, "string", "int64", "items asked for"):
            ask([1])
        for wrong in ("a", {"a"}, {"a": 1}, pd.DataFrame({"item": ["a"]})):
            with refused(ColumnError, "items asked for"):
                ask(wrong)
    for listed, said in (([0, 3], "1 of 2"), ([-1], "1 of 1"), ([2**62], "1 of 1")):
        with refused(SliceError, said, str(listed[-1]), "not in the evaluation"):
            by_position.subset(listed)
    for listed in ([0.0], ["a"], [None], [0.5], [2**70]):
        with refused(SliceError, "position", "integer", repr(listed[0])):
            by_position.subset(listed)
    half = quietly(TRUTH, PREDICTION.slice(0, 2))
    with refused(SliceError, "no scored item"):
        half.subset(["c"])
    with refused(SliceError, "no scored item"):
        half.slices({"V": np.array([False, False, True])})


def test_subsets_in_every_form(ev: Evaluation) -> None:
    for which in (
        ["a"],
        ("a",),
        iter(["a"]),
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
    for side in ("truth", "prediction", "", None, 5):
        with refused(SliceError, '"true"', '"pred"', repr(side)):
            ev.clusters(side)


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
        with refused(IdTypeError, "items asked for", said):
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


def test_items_with_composite_ids() -> None:
    ids = [("a", 1), ("a", 2), ("b", 1)]
    ev = evaluate(*(Clustering.from_labels(labels, items=ids) for labels in (LABELS, OTHER)))
    assert [ev.item(item)["tp"] for item in ids] == [1.0, 1.0, 1.0]
    with refused(SliceError, "('b', 2)", "not in the evaluation"):
        ev.item(("b", 2))
    for item in ("a", ("a",), ("a", "1"), (1, "a"), ("a", 1, 1)):
        with refused(IdTypeError, "items asked for", "string and int64"):
            ev.item(item)
    assert ev.subset([("a", 1), ("b", 1)])["recall"] == 3 / 4
    with refused(SliceError, "1 of 2", "('z', 1)"):
        ev.subset([("a", 1), ("z", 1)])
