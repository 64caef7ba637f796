"""Floats and decimals that are whole numbers: taken as integers, and said; others are refused."""

from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastbcubed as fb
from fastbcubed.errors import IdTypeError, NullError
from fastbcubed.inputs.id_columns import as_column

NAN = float("nan")
WHOLE: dict[str, Any] = {
    "list": [3.0, -1.0, None, 3.0],
    "NumPy": np.array([3.0, -1.0, NAN, 3.0]),
    "float32": np.array([3, -1, NAN, 3], np.float32),
    "float16": np.array([3, -1, NAN, 3], np.float16),
    "pandas, integers with a null": pd.Series([3, -1, None, 3]),
    "pandas Float64": pd.array([3.0, -1.0, None, 3.0], dtype="Float64"),
    "pandas category": pd.Series([3.0, -1.0, None, 3.0], dtype="category"),
    "polars": pl.Series([3.0, -1.0, None, 3.0]),
    "Arrow with NaN": pa.chunked_array([pa.array([3.0, -1.0]), pa.array([NAN, 3.0])]),
    "dictionary": pa.array([3.0, -1.0, None, 3.0]).dictionary_encode(),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays([1, 2, 3, 4], [3.0, -1.0, None, 3.0]),
    "sliced": pa.array([9.5, 3.0, -1.0, None, 3.0]).slice(1),
    "decimal128": pa.array([3, -1, None, 3], pa.decimal128(38, 0)),
    "decimal with places": pa.array([decimal.Decimal("3.00"), -1, None, 3], pa.decimal128(9, 2)),
    "decimal256": pa.array([3, -1, None, 3], pa.decimal256(50, 3)),
    "decimal32": pa.array(
        [decimal.Decimal(3), decimal.Decimal(-1), None, decimal.Decimal(3)], pa.decimal32(5, 0)
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_integers(name: str) -> None:
    column = as_column(WHOLE[name], "item")
    assert column.was_fractional
    assert column.take(np.arange(4)).to_pylist() == [3, -1, None, 3]
    assert column.null_rows is not None
    assert column.null_rows.tolist() == [False, False, True, False]
    assert column.stretch(1, 3).was_fractional
    assert column.find(3.0).tolist() == column.find(3).tolist() == [0, 3]


def test_integers_are_not_said_to_be_floats() -> None:
    assert not as_column([1, 2], "item").was_fractional
    assert not as_column(np.array([], np.float64), "item").was_fractional


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_it_is_said_once(engine: str, tmp_path: Path) -> None:
    truth = pa.table({"item": [1.0, 2.0, 3.0], "cluster": [1.0, 1.0, 2.0]})
    prediction = pa.table({"item": [1, 2, 3], "cluster": [5, 6, 6]})
    for name, table in (("t", truth), ("p", prediction)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    ev = fb.evaluate(tmp_path / "t.parquet", tmp_path / "p.parquet", engine=engine)
    assert ev.recall == pytest.approx(2 / 3)
    noted = [(w["level"], w["column"]) for w in ev.warnings if w["code"] == "whole-floats"]
    assert noted == [("note", "item"), ("note", "cluster")]
    pq.write_table(truth.set_column(0, "item", pa.array([1.0, 2.5, 3.0])), tmp_path / "t.parquet")
    with pytest.raises(IdTypeError, match=r"1 of 3 values are not whole numbers \(first: 2\.5\)"):
        fb.evaluate(tmp_path / "t.parquet", tmp_path / "p.parquet", engine=engine)


def test_nan_is_a_null_that_follows_its_policy() -> None:
    with pytest.raises(NullError, match="1 of 3"):
        fb.evaluate(np.array([1.0, NAN, 1.0]), [1, 1, 2])
    assert fb.evaluate(np.array([1.0, NAN, 1.0]), [1, 1, 2], nulls="singleton").recall == pytest.approx(2 / 3)


def test_items_and_noise_may_be_named_by_floats() -> None:
    ev = fb.evaluate(pd.DataFrame({"item": [1.0, 2.0], "cluster": [-1.0, -1.0]}), {1: 1, 2: 1}, noise=-1.0)
    assert ev.item(2.0)["recall"] == 1
    assert ev.precision == 0.5
