"""Evaluations on Spark beside those of the memory engine, which they have to equal."""

from __future__ import annotations

import warnings
from typing import Any

import pyarrow as pa
import pytest

import fastbcubed as fb

__all__ = ["assert_same", "assert_tables", "both", "frame"]

#: Codes of warnings that are found, or not, by looking at items or at all cells.
BY_ITEMS = {"few-units", "giant-cluster", "few-ids-match", "same-input", "not-checked"}


def frame(spark: Any, table: pa.Table, partitions: int = 2) -> Any:
    """Return a table as a DataFrame of so many partitions."""
    rows = [tuple(row.values()) for row in table.to_pylist()]
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = from_arrow_schema(table.schema)
    return spark.createDataFrame(rows, schema).repartition(partitions)


def both(
    spark: Any, truth: pa.Table, prediction: pa.Table, partitions: int = 2, **options: Any
) -> tuple[Any, Any]:
    """Evaluate on Spark and in memory, without warnings; tables among the options are frames on Spark."""
    there = {
        name: frame(spark, value, partitions) if isinstance(value, pa.Table) else value
        for name, value in options.items()
    }
    here = {name: value for name, value in options.items() if name not in ("out", "keep")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sides = frame(spark, truth, partitions), frame(spark, prediction, partitions)
        return fb.evaluate(*sides, **there), fb.evaluate(truth, prediction, engine="memory", **here)


def assert_same(on_spark: Any, in_memory: Any) -> None:
    """Compare all that an evaluation says; scores that Spark does not serve have to be named."""
    for name, value in in_memory.overall.items():
        if name not in on_spark.overall:
            assert name in on_spark.not_computed, name
            continue
        assert on_spark.overall[name] == pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True), name
    assert set(on_spark.overall) <= set(in_memory.overall)
    assert on_spark.definition == in_memory.definition
    for name, value in vars(in_memory.coverage).items():
        assert getattr(on_spark.coverage, name) == pytest.approx(value, rel=1e-12, nan_ok=True), name
    for side, expected in in_memory.summary.items():
        found = on_spark.summary[side]
        assert found == {name: expected[name] for name in found}
    assert (on_spark.bounds is None) == (in_memory.bounds is None)
    if in_memory.bounds is not None:
        for name, value in vars(in_memory.bounds).items():
            assert getattr(on_spark.bounds, name) == pytest.approx(value, rel=1e-12, nan_ok=True), name
    codes = [{each["code"] for each in ev.warnings} - BY_ITEMS for ev in (on_spark, in_memory)]
    assert codes[0] == codes[1]
    assert on_spark.sliced.keys() == in_memory.sliced.keys()
    for name, expected in in_memory.sliced.items():
        assert_tables(on_spark.sliced[name], expected)


def assert_tables(found: Any, expected: Any) -> None:
    """Compare two tables row by row, those columns that the first has."""
    assert found.num_rows == expected.num_rows
    for name in found.column_names:
        values, wanted = found[name].to_pylist(), expected[name].to_pylist()
        if wanted and isinstance(wanted[0], float):
            assert values == pytest.approx(wanted, rel=1e-12, abs=1e-12, nan_ok=True), name
        else:
            assert values == wanted, name
