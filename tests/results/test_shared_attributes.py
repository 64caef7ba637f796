"""Columns that both sides have: no prefix is needed where their values are equal."""

from __future__ import annotations

import datetime
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from documents import of_section

import fastbcubed as fb
from fastbcubed.errors import ColumnError, SliceError

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


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_attributes_keep_the_order_of_the_file(tmp_path: Path, engine: Any) -> None:
    table = {"item": ["a", "b"], "year": [1990, 1991], "cluster": [1, 1], "area": ["x", "y"]}
    more = pa.table({"z": [1, 2], "item": ["a", "b"], "k": [3, 4]})
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    given = [tmp_path / "t.parquet"] * 2
    ev = fb.evaluate(
        *given, attributes=more, engine=engine, slices=["k", "truth.area"], out=tmp_path / "o", keep="items"
    )
    sides = [f"{side}.{name}" for side in ("truth", "prediction") for name in ("year", "area")]
    assert pq.read_schema(tmp_path / "o" / "items.parquet").names[5:] == [
        *sides,
        "attributes.z",
        "attributes.k",
    ]
    assert [*ev.cluster("pred", 1)["parts"][0]["members"][0]["attributes"]][:2] == [
        "truth.year",
        "truth.area",
    ]


def test_the_disk_engine_asks_for_the_prefix(tmp_path: Path) -> None:
    paths = []
    for name, table in zip("tp", sides(*EQUAL["text"][:2]), strict=True):
        paths.append(tmp_path / f"{name}.parquet")
        pq.write_table(table, paths[-1])
    with pytest.raises(
        ColumnError, match=r"the disk engine does not check whether they are equal; write 'truth\.x'"
    ):
        fb.evaluate(*paths, slices="x", engine="disk")
    ev = fb.evaluate(*paths, engine="disk", keep="items")
    assert ev.slices("x")["n_items"].to_pylist() == [1, 1]


def test_what_is_given_comes_first() -> None:
    truth, prediction = sides(["a", "b", "c"], ["c", "x", "d"])
    ev = fb.evaluate(truth, prediction, attributes=pa.table({"item": [1, 2, 3], "x": [5, 5, 5]}), slices="x")
    assert ev.sliced["x"]["x"].to_pylist() == [5]


@pytest.mark.slow
@pytest.mark.parametrize("size", ["true_size", "pred_size"])
def test_a_column_called_as_a_size_is_not_passed_over(tmp_path: Path, size: str) -> None:
    """Sizes are 2 and 1 in the truth, and 3 in the prediction."""
    truth = pa.table({"item": [1, 2, 3], "cluster": ["a", "a", "b"], size: ["x", "y", "x"]})
    prediction = {1: 0, 2: 0, 3: 0}
    for place, engine in product(("truth", "attributes"), ("memory", "disk")):
        given = truth if place == "truth" else truth.drop_columns([size])
        how: dict[str, Any] = {"engine": engine, "keep": "items"}
        if place == "attributes":
            how["attributes"] = truth.drop_columns(["cluster"])
        says = f"'{place}.{size}' for the column, 'always.{size}' for the size"
        with pytest.raises(ColumnError, match=says):
            fb.evaluate(given, prediction, slices=size, **how)
        ev = fb.evaluate(given, prediction, slices=[f"{place}.{size}", f"always.{size}"], **how)
        ev.save(tmp_path, keep="items")
        for found in (ev, fb.load(tmp_path)):
            with pytest.raises(ColumnError, match=says):
                found.slices(size)
            assert found.slices(f"{place}.{size}")["n_items"].to_pylist() == [2, 1]
            sizes = found.slices(f"always.{size}")
            assert sizes["n_items"].to_pylist() == ([1, 2] if size == "true_size" else [3])
            assert sizes.to_pylist() == found.sliced[f"always.{size}"].to_pylist()
        assert size in str(of_section(ev.report().content, "slices"))
    assert "predicted cluster" in ev.report().html  # which draws scores by size
    with pytest.raises(SliceError, match=f"'truth.{size}'"):
        ev.slices(fb.bins(size, [1]))


def test_the_item_column_of_attributes_is_called_as_in_the_truth() -> None:
    """The column "item" is an attribute there, whose values are no ids."""
    ev = fb.evaluate(*(pa.table({"id": [1, 2], "cluster": labels}) for labels in ([0, 0], [0, 1])), item="id")
    table = {"id": [2, 1], "item": [1, 1], "colour": ["red", "blue"]}
    for name in ("colour", "item"):
        found = ev.slices(name, attributes=pa.table(table))
        assert found[name].to_pylist() == sorted(set(table[name]))
