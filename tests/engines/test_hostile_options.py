"""Bad options and formulas: refused by name, before the work where that can be, and nothing is harmed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import LABELS, OTHER, PREDICTION, SCORES, TRUTH, refused, scores

import fastbcubed as fb
from fastbcubed import Evaluation, evaluate
from fastbcubed.errors import (
    ColumnError,
    FastBCubedError,
    IdTypeError,
    MetricError,
    OptionError,
    SliceError,
)

NAN = math.nan

BAD_OPTIONS: list[tuple[str, Any, type[FastBCubedError], tuple[str, ...]]] = [
    ("item", 0, OptionError, ("item must be the name of a column", "not int (0)")),
    ("unmatched", "keep", OptionError, ("drop", "singleton", "'keep'")),
    ("unmatched", 1, OptionError, ("policy",)),
    ("unmatched", {"pred": "drop"}, OptionError, ("'pred'", "prediction")),
    ("unmatched", {"truth": "outside"}, OptionError, ("truth", "outside")),
    ("unmatched", {"prediction": 5}, OptionError, ("prediction", "outside", "5")),
    ("nulls", "ignore", OptionError, ("nulls", "raise", "singleton", "drop", "'ignore'")),
    ("nulls", ["raise"], OptionError, ("nulls",)),
    ("nulls", None, OptionError, ("nulls",)),
    ("duplicates", "keep", OptionError, ("duplicates", "raise", "drop", "'keep'")),
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
    ("keep", 1, OptionError, ("keep",)),
    ("metrics", "F1", MetricError, ("'F1'", "Did you mean 'f1'?")),
    ("metrics", "precision,recall", MetricError, ("'precision,recall'", "'precision'")),
    ("metrics", "xyzzy", MetricError, ("'xyzzy'", '"all"')),
    ("metrics", ["f1", ""], MetricError, ("''",)),
    ("metrics", [None], MetricError, ("None", "string")),
    ("metrics", [1], MetricError, ("1", "string")),
    ("metrics", 5, MetricError, ("5",)),
    ("metrics", [], MetricError, ("empty",)),
    ("progress", "bar", OptionError, ("True", "False", "function", "'bar'")),
    ("progress", 5, OptionError, ("function", "5")),
    ("out", "", OptionError, ("path", "''")),
    ("out", 5, OptionError, ("path", "5")),
    ("noise", 1.5, IdTypeError, ("the truth", "int64", "1.5")),
    ("noise", True, IdTypeError, ("the truth", "int64", "True")),
    ("noise", [1], IdTypeError, ("the truth", "int64", "[1]")),
    ("noise", "-1", IdTypeError, ("the truth", "int64", "'-1'")),
    ("noise", (1, 2), IdTypeError, ("the truth", "int64")),
    ("slices", "nope", ColumnError, ("'nope'", "true_size")),
    ("slices", [("true_size", "true_size")], SliceError, ("different",)),
    ("slices", [()], SliceError, ("attribute",)),
    ("slices", 5, SliceError, ("attribute", "5")),
    ("slices", [5], SliceError, ("attribute", "5")),
    ("slices", None, SliceError, ("attribute", "None")),
    ("slices", {"V": 5}, SliceError, ("'V'", "list of items or a mask", "5")),
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
    for engine in ("memory", "disk"):
        with refused(error, *said):
            evaluate(TRUTH, PREDICTION, **{"engine": engine, name: value})


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
    with refused(IdTypeError, "the truth", "tuples of 2", "('a',)"):
        evaluate([("a", 1), ("b", 1)], [1, 1], noise=("a",))


def test_noise_that_one_side_cannot_have() -> None:
    ev = evaluate(["a", "a", "b"], [-1, 0, 0], noise=-1)
    assert ev.coverage.n_noise == 1
    assert (ev.precision, ev.recall) == (2 / 3, 2 / 3)


def test_what_a_callback_raises_comes_through() -> None:
    def stop(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(TRUTH, PREDICTION, progress=stop)
    assert scores(TRUTH, PREDICTION) == SCORES


def test_options_of_contingency() -> None:
    for threads in (0, -1, "2", True):
        with refused(OptionError, "threads", repr(threads)):
            fb.contingency(LABELS, OTHER, threads=threads)
    with refused(OptionError, "weighting", "'x'"):
        fb.contingency(LABELS, OTHER, weighting="x")
    with refused(ColumnError, "true", str(2**40), "from 0"):
        fb.Contingency.from_cells([2**40], [0], [1])


# --- scores and formulas ---


@pytest.fixture(scope="module")
def ev() -> Evaluation:
    truth = TRUTH.append_column("g", pa.array(["x", "y", None])).append_column("n", pa.array([[1], [2], [3]]))
    truth = truth.append_column("s", pa.array([{"z": 1}] * 3))
    prediction = PREDICTION.append_column("g", pa.array(["p", "q", "r"])).append_column(
        "h", pa.array([1, 1, 2])
    )
    return evaluate(truth, prediction)


def test_scores_that_are_not_there(ev: Evaluation) -> None:
    with refused(MetricError, "'mcc' was not computed", "precision, recall", "metrics=", ".metric("):
        ev.overall["mcc"]
    assert "mcc" not in ev.overall
    with pytest.raises(AttributeError, match=r"metric\('nope'\)"):
        _ = ev.nope
    for wrong in ("nope", "", 5, None, ["f1"]):
        with refused(MetricError, repr(wrong)):
            ev.metric(wrong)


def test_a_family_is_not_one_score(ev: Evaluation) -> None:
    for family in ("pointwise", "elm", "all"):
        with refused(MetricError, repr(family), "one of them"):
            ev.metric(family)


def test_formulas_that_give_no_numbers(ev: Evaluation) -> None:
    def nothing(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return None

    def text(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return "x"

    def texts(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return np.array(["x"] * tp.size)

    def complex_numbers(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return tp + 1j

    for formula in (nothing, text, texts, complex_numbers):
        with refused(MetricError, formula.__name__, "one real number"):
            ev.metric(formula)
        with refused(MetricError, formula.__name__, "one real number"):
            evaluate(TRUTH, PREDICTION, metrics=[formula, "f1"])


def test_formulas_of_one_name() -> None:
    def precision(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return 0 * tp

    unnamed = [lambda tp, fp, fn, tn: tp, lambda tp, fp, fn, tn: fp]
    for metrics in (unnamed, ["precision", precision], [precision, "precision"]):
        with refused(MetricError, "two scores", "name"):
            evaluate(TRUTH, PREDICTION, metrics=metrics)


def test_formulas_of_the_wrong_shape(ev: Evaluation) -> None:
    def first(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return tp[:1]

    def column(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return tp[:, None]

    def both(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return np.stack([tp, fp])

    for formula in (first, column, both):
        for call in (ev.metric, lambda f: evaluate(TRUTH, PREDICTION, metrics=f)):
            with refused(MetricError, formula.__name__, "shape", "(3,)"):
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

    with refused(MetricError, "broken", "KeyError", "my own mistake"):
        ev.metric(broken)
    before = ev.items().to_pylist()
    assert ev.metric(vandal) == 0.0
    assert (ev.metric("precision"), ev.metric("recall")) == SCORES
    assert ev.items().to_pylist() == before
    both = evaluate(TRUTH, PREDICTION, metrics=[vandal, "precision", "recall", "accuracy"])
    assert (both.precision, both.recall, both.overall["accuracy"]) == (*SCORES, ev.metric("accuracy"))


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_slices_of_one_name_are_not_mixed_up(engine: str) -> None:
    attributes = {"x": ["a", "a", "b"], "y": [1, 2, 2], "x,y": [0, 0, 1], "y:10": [3, 3, 3]}
    for name, first, second in (
        ("x,y", ("x", "y"), "x,y"),
        ("y:10", fb.bins("y", 10), "y:10"),
        ("x", "x", {"x": [0]}),
        ("x", {"x": [0]}, {"x": [1]}),
        ("x,y", ("x", "y"), {"x": [0], "y": [1]}),
    ):
        for slices in ([first, second], [second, first]):
            with refused(SliceError, "two of the slices would be named", repr(name)):
                evaluate(LABELS, OTHER, attributes=attributes, slices=slices, engine=engine)
    ev = evaluate(LABELS, OTHER, attributes=attributes, slices=["x", ("x",), "y"], engine=engine)
    assert list(ev.sliced) == ["x", "y"]


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_tuple_of_names_is_one_slicing(engine: str) -> None:
    attributes = {"x": ["a", "a", "b"], "y": [1, 2, 2]}
    for slices in (("x", "y"), [("x", "y")], (("x", "y"),)):
        ev = evaluate(LABELS, OTHER, attributes=attributes, slices=slices, engine=engine)
        assert list(ev.sliced) == ["x,y"]
        rows = ev.sliced["x,y"]
        assert list(zip(rows["x"].to_pylist(), rows["y"].to_pylist(), strict=True)) == [
            ("a", 1),
            ("a", 2),
            ("b", 2),
        ]
    for slices in (["x", "y"], ("x", ("y",))):
        ev = evaluate(LABELS, OTHER, attributes=attributes, slices=slices, engine=engine)
        assert list(ev.sliced) == ["x", "y"]
    with refused(SliceError, "different"):
        evaluate(LABELS, OTHER, attributes=attributes, slices=("x", "x"), engine=engine)


def test_texts_of_joined_attributes_are_counted_as_often_as_they_are_held(tmp_path: Path) -> None:
    """Three million names of 60 letters took 1.2 GB where 515 MiB were said to suffice."""
    items = np.arange(100_000)
    names = np.char.zfill(items.astype(str), 400)
    pq.write_table(pa.table({"item": items, "name": names}), tmp_path / "names.parquet")
    sides = pa.table({"item": items, "cluster": items // 2}), pa.table({"item": items, "cluster": items // 3})
    with pytest.raises(OptionError, match=r"names\.parquet, given as attributes= would take about \d+ MiB"):
        fb.evaluate(
            *sides, attributes=tmp_path / "names.parquet", keep="items", engine="disk", memory_limit="100MiB"
        )
