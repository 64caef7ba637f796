"""Any one-dimensional thing that holds ids or labels → Arrow; the types that can name things."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastbcubed.errors import ColumnError, IdTypeError

__all__ = [
    "from_stream",
    "id_kind",
    "integer_view",
    "is_pandas",
    "join_pieces",
    "plain_type",
    "split_tuples",
    "storage_of",
    "to_arrow",
    "wide_type",
]

_CONVERSION = (pa.ArrowException, OverflowError, TypeError, ValueError, UnicodeError)


def is_pandas(values: object, *names: str) -> bool:
    """Say whether `values` is one of these pandas classes, without importing pandas."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and any(isinstance(values, getattr(pandas, name)) for name in names)


def from_stream(values: Any) -> pa.ChunkedArray | None:
    """Read whatever exports Arrow data, a table as a struct column; None if it exports nothing."""
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, pa.Table):
        return pa.chunked_array(values.to_struct_array())
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__"):
        return pa.chunked_array([pa.array(values)])
    return None


def to_arrow(values: Any, where: str) -> pa.ChunkedArray:
    """Convert a one-dimensional array of any library to Arrow.

    NumPy integers and Arrow data are not copied; NaN in objects and in pandas is null.

    Parameters
    ----------
    values : array-like of shape (n,)
        Array, Series, Index, list or Arrow exporter; never a table.
    where : str
        What the values are, for messages.
    """
    try:
        return _to_arrow(values, where)
    except (ColumnError, IdTypeError):
        raise
    except _CONVERSION as error:
        raise IdTypeError(
            f"{where} cannot be read as one column of integers or strings: {error}. "
            "Give all values one type, for example str."
        ) from error


def _to_arrow(values: Any, where: str) -> pa.ChunkedArray:
    if is_pandas(values, "DataFrame") or isinstance(values, (Mapping, pa.Table, pa.RecordBatch)):
        raise ColumnError(
            f"{where} should be one column, but a table of type {type(values).__name__} was given. "
            "Pass one of its columns."
        )
    if hasattr(values, "collect"):
        raise ColumnError(f"{where} is a lazy frame or query: call .collect() first.")
    if isinstance(values, (str, bytes, set, frozenset)) or not isinstance(values, Iterable):
        raise ColumnError(f"{where} should be a one-dimensional array or list, not {type(values).__name__}.")
    series: Any = values
    if is_pandas(series, "Index"):
        series = series.to_series()
    if is_pandas(series, "Series", "Categorical") or hasattr(series, "__arrow_array__"):
        return _chunked(pa.array(series, from_pandas=True))
    if isinstance(values, pa.Array):
        return pa.chunked_array([values])
    if isinstance(values, np.ndarray):
        return _from_numpy(values, where)
    if (streamed := from_stream(values)) is not None:
        if pa.types.is_struct(streamed.type):
            raise ColumnError(f"{where} should be one column, but a table was given.")
        return streamed
    listed = values if isinstance(values, list) else list(values)
    try:
        return _chunked(pa.array(listed, from_pandas=True))
    except OverflowError:
        return _chunked(pa.array(listed, type=pa.uint64(), from_pandas=True))


def _from_numpy(values: np.ndarray, where: str) -> pa.ChunkedArray:
    if values.ndim != 1:
        raise ColumnError(
            f"{where} should be one-dimensional, but has shape {values.shape}. Pass one column."
        )
    if values.dtype.kind == "O":
        return _to_arrow(values.tolist(), where)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype.kind == "f":  # refused as an id, fine as a weight: no search for NaN
        return _chunked(pa.array(values))
    return _chunked(pa.array(values, from_pandas=True))


def _chunked(array: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def split_tuples(values: Any) -> list[list[Any]] | None:
    """Return the parts of a list of tuples, position by position; None if it is no such list.

    A missing tuple (None) gives a missing value in every part.
    """
    if isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1:
        values = values.tolist()
    if not isinstance(values, (list, tuple)):
        return None
    example = next((value for value in values if value is not None), None)
    if not isinstance(example, tuple):
        return None
    missing = (None,) * len(example)
    rows = [missing if value is None else value for value in values]
    if any(not isinstance(row, tuple) or len(row) != len(example) for row in rows):
        raise IdTypeError(
            f"Composite ids should all be tuples of {len(example)} values, as the first is; some are not."
        )
    return [list(part) for part in zip(*rows, strict=True)]


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values themselves, under dictionaries and extensions."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return kind


def id_kind(kind: pa.DataType, where: str) -> str:
    """Return "integer", "string" or "binary"; any other type raises with a hint.

    Parameters
    ----------
    kind : pyarrow.DataType
        Type of the column.
    where : str
        What the column is, for messages.
    """
    plain, is_type = plain_type(kind), pa.types
    if is_type.is_integer(plain) or is_type.is_null(plain):
        return "integer"
    if is_type.is_string(plain) or is_type.is_large_string(plain) or is_type.is_string_view(plain):
        return "string"
    if is_type.is_fixed_size_binary(plain) or is_type.is_binary(plain):
        return "binary"
    if is_type.is_large_binary(plain) or is_type.is_binary_view(plain):
        return "binary"
    if is_type.is_floating(plain):
        hint = (
            "Whole numbers become float through nulls (pandas) or decimal points (CSV): "
            "cast them to int64 (or to pandas' Int64, if there are nulls) or to string."
        )
    elif is_type.is_boolean(plain):
        hint = "Cast to int64 or string if true and false are really the names."
    elif is_type.is_decimal(plain):
        hint = "Cast to int64 if the values fit, else to string."
    elif is_type.is_nested(plain):
        hint = 'An id of several parts is given as several columns: ["source", "id"].'
    else:
        hint = "Cast to string or int64."
    raise IdTypeError(f"{where} should be integers, strings or binary, but the type is {kind}. {hint}")


def storage_of(part: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the data without extension type, run-end encoding or null type."""
    if isinstance(part.type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in part.chunks]
        return storage_of(pa.chunked_array(chunks, type=part.type.storage_type))
    if pa.types.is_run_end_encoded(part.type):
        chunks = [pc.run_end_decode(chunk) for chunk in part.chunks]
        return storage_of(pa.chunked_array(chunks, type=part.type.value_type))
    if pa.types.is_null(part.type):
        return part.cast(pa.int64())
    return part


def join_pieces(pieces: list[pa.ChunkedArray], where: str) -> pa.ChunkedArray:
    """Put columns one after the other; types that differ only in width or encoding are widened.

    Parameters
    ----------
    pieces : list of pyarrow.ChunkedArray
        At least one.
    where : str
        What they are, for messages.
    """
    types = {piece.type for piece in pieces}
    if len(types) > 1:
        plain = [piece.cast(wide_type(piece.type)) for piece in pieces]
        try:
            tables = [pa.table({"values": piece}) for piece in plain]
            return pa.concat_tables(tables, promote_options="permissive").column(0)
        except pa.ArrowException as error:
            raise ColumnError(
                f"{where} has several types: {', '.join(sorted(map(str, types)))}. Use one."
            ) from error
    chunks = [chunk for piece in pieces for chunk in piece.chunks]
    return pa.chunked_array(chunks, type=pieces[0].type)


def wide_type(kind: pa.DataType) -> pa.DataType:
    """Return the type with the widest offsets and no encoding that holds the same values."""
    if pa.types.is_dictionary(kind):
        return wide_type(kind.value_type)
    if pa.types.is_string_view(kind) or pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind) or pa.types.is_binary(kind):
        return pa.large_binary()
    return pa.large_binary() if pa.types.is_fixed_size_binary(kind) else kind


def integer_view(array: pa.Array) -> np.ndarray:
    """Return an Arrow integer array as NumPy, of its own width, not copied; nulls are garbage."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    buffer = array.buffers()[1]
    if len(array) == 0 or buffer is None:
        return np.zeros(len(array), dtype=dtype)
    view = np.frombuffer(buffer, dtype=dtype, count=len(array), offset=array.offset * dtype.itemsize)
    view.flags.writeable = False
    return view
