"""Columns in which values are nested deep: read up to a hundred levels, refused by name beyond, in every way in."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hostile import PREDICTION, SCORES, TRUTH, refused, scores
from pyarrow import ipc

from fastbcubed import evaluate
from fastbcubed.errors import FileFormatError, IdTypeError


def nested(levels: int) -> pa.Array:
    """Return three values in so many objects or lists by turns."""
    found = pa.array([1, 2, 3])
    for level in range(levels):
        if level % 2:
            found = pa.StructArray.from_arrays([found], ["a"])
        else:
            found = pa.ListArray.from_arrays([0, 1, 2, 3], found)
    return found


def type_of(levels: int) -> pa.DataType:
    kind = pa.int64()
    for _ in range(levels):
        kind = pa.struct([("a", kind)])
    return kind


def test_other_columns_may_be_nested() -> None:
    assert scores(TRUTH.append_column("tags", nested(100)), PREDICTION) == pytest.approx(SCORES)


def test_columns_that_are_nested_too_deep() -> None:
    with refused(IdTypeError, "the truth", "nested more than 100 levels deep", "'tags'", "Remove them"):
        evaluate(TRUTH.append_column("tags", nested(101)), PREDICTION)
    with refused(IdTypeError, "the prediction", "nested more than 100 levels deep"):
        evaluate(TRUTH, PREDICTION.append_column("tags", nested(101)))
    stream = pa.RecordBatchReader.from_batches(pa.schema([("item", type_of(5_000))]), [])
    with refused(IdTypeError, "nested more than 100 levels deep", "'item'"):
        evaluate(stream, PREDICTION)


@pytest.mark.parametrize("levels", [101, 900, 50_000, None])
def test_lists_that_are_nested_too_deep(levels: int | None) -> None:
    """Arrow would exhaust the stack, which ends the process; a list that holds itself has no end."""
    value: list[Any] = []
    if levels is None:
        value.append(value)
    for _ in range((levels or 1) - 1):
        value = [value]
    with refused(IdTypeError, "the labels of the truth", "nested more than 100 levels deep"):
        evaluate([None, value], [1, 2])
    with refused(IdTypeError, "column 'tags' of the attributes", "nested more than 100 levels deep"):
        evaluate([1, 1], [1, 2], attributes={"tags": [value, value]}, slices="tags")


def test_types_are_cut_in_messages() -> None:
    with refused(IdTypeError, "should be integers, strings or binary", "…"):  # and of less than 1000 letters
        evaluate(nested(90), [1, 2, 3])


@pytest.mark.skipif(
    int(pa.__version__.split(".")[0]) < 26, reason="older Arrow itself ends the process at such a file"
)
def test_files_with_columns_that_are_nested_too_deep(tmp_path: Path) -> None:
    parquet, arrow = tmp_path / "a.parquet", tmp_path / "a.arrow"
    parquet.write_bytes(deep_parquet(20_000))
    with refused(
        FileFormatError, "a.parquet cannot be read as Parquet", "deeply nested", "without these columns"
    ):
        evaluate(parquet, PREDICTION)
    schema = pa.schema([("item", pa.string()), ("cluster", pa.int64()), ("tags", type_of(500))])
    with ipc.new_file(arrow, schema):
        pass
    with refused(FileFormatError, "a.arrow cannot be read as Arrow IPC"):
        evaluate(arrow, PREDICTION)


def deep_parquet(levels: int) -> bytes:
    """Return a Parquet file without rows, of a column in so many groups; its footer is in Thrift's compact protocol."""

    def varint(n: int) -> bytes:
        return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + varint(n >> 7)

    def i32(n: int) -> bytes:
        return varint(2 * n)

    # a field is its distance from the one before and its type, 5 for i32, 8 for text; they are type 1, repetition 3,
    # name 4, children 5, kind 6
    root = b"\x48" + varint(6) + b"schema" + b"\x15" + i32(1) + b"\0"
    group = b"\x35" + i32(1) + b"\x18" + varint(1) + b"a" + b"\x15" + i32(1) + b"\0"
    leaf = b"\x15" + i32(2) + b"\x25" + i32(1) + b"\x18" + varint(1) + b"b" + b"\0"
    elements = b"\xfc" + varint(levels + 2) + root + group * levels + leaf
    footer = b"\x15" + i32(1) + b"\x19" + elements + b"\x16" + i32(0) + b"\x19\x0c" + b"\0"
    return b"PAR1" + footer + struct.pack("<I", len(footer)) + b"PAR1"
