"""Columns that both sides have: no prefix is needed where their values are equal."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.errors import ColumnError

pytestmark = pytest.mark.filterwarnings("ignore::fastbcubed.EvaluationWarning")

NAN = float("nan")
#: Values of the truth's items 1, 2, 3 and of the prediction's 3, 2, 4, and those of items 1, 2, 3, 4.
EQUAL: dict[str, tuple[Any, Any, list[Any]]] = {
    "text": (["a", "b", None], [None, "b", "c"], ["a", "b", None, "c"]),
    "types": (pa.array([1, 2, 3], pa.int8()), pa.array([3, 2, 9], pa.int64()), [1, 2, 3, 9]),
    "dictionary": (pa.array(["a", "b", "c"]).dictionary_encode(), ["c", "b", "d"], ["a", "b", "c", "d"]),
    "view": (
        pa.array(["a", "b", "c"], pa.string_view()),
        pa.array(["c", "b", "d"], pa.large_string()),
        list("abcd"),
    ),
    "float": ([1.0, NAN, 3.0], [3.0, NAN, 9.0], None),
    "date": (
        [datetime.date(2020, 1, k) for k in (1, 2, 3)],
        [datetime.date(2020, 1, k) for k in (3, 2, 4)],
        None,
    ),
}
DIFFERENT: dict[str, tuple[Any, Any, str]] = {
    "value": (["a", "b", "c"], ["c", "x", "d"], r"values differ for 1 items \(first: 2\)"),
    "null": (["a", "b", "c"], ["c", None, "d"], r"values differ for 1 items \(first: 2\)"),
    "type": (["a", "b", "c"], [[1], [2], [3]], "cannot be compared"),
    "text and numbers": ([1, 2, 3], ["x", "y", "z"], "cannot be compared"),
}


def sides(first: Any, second: Any) -> tuple[pa.Table, pa.Table]:
    truth = pa.table({"item": [1, 2, 3], "cluster": [0, 0, 1], "x": first})
    return truth, pa.table({"item": [3, 2, 4], "cluster": [0, 1, 1], "x": second})


@pytest.mark.parametrize("name", EQUAL)
def test_equal_values_are_one_attribute(name: str, tmp_path: Path) -> None:
    first, second, expected = EQUAL[name]
    ev = fb.evaluate(*sides(first, second), unmatched="singleton", slices="x")
    ev.save(tmp_path / "out")
    for each in (ev, fb.load(tmp_path / "out")):
        found = each.slices("x")
        assert found["n_items"].to_pylist() == [1] * 4
        if expected is not None:
            assert sorted(map(str, found["x"].to_pylist())) == sorted(map(str, expected))


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_values_need_a_prefix(name: str) -> None:
    first, second, message = DIFFERENT[name]
    with pytest.raises(ColumnError, match=f"{message}; write 'truth.x' or 'prediction.x'"):
        fb.evaluate(*sides(first, second), slices="x")
    assert fb.evaluate(*sides(first, second)).slices("truth.x").num_rows == 2


def test_the_disk_engine_asks_for_the_prefix(tmp_path: Path) -> None:
    paths = []
    for name, table in zip("tp", sides(*EQUAL["text"][:2]), strict=True):
        paths.append(tmp_path / f"{name}.parquet")
        pq.write_table(table, paths[-1])
    with pytest.raises(
        ColumnError, match=r"the disk engine does not look whether they are equal; write 'truth\.x'"
    ):
        fb.evaluate(*paths, slices="x", engine="disk")
    ev = fb.evaluate(*paths, engine="disk", keep="items")
    assert ev.slices("x")["n_items"].to_pylist() == [1, 1]


def test_what_is_given_comes_first() -> None:
    truth, prediction = sides(["a", "b", "c"], ["c", "x", "d"])
    ev = fb.evaluate(truth, prediction, attributes=pa.table({"item": [1, 2, 3], "x": [5, 5, 5]}), slices="x")
    assert ev.sliced["x"]["x"].to_pylist() == [5]
