"""Any one-dimensional thing that holds ids or labels → Arrow; the types that can name things."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, IdTypeError, first_few
from fastbcubed.sources import arrow_functions as pc

#: What a conversion to Arrow may raise.
CONVERSION = (pa.ArrowException, OverflowError, TypeError, ValueError)
#: Longer lists are left to Arrow, which reads texts ten times as fast once pandas is loaded.
MOST_PLAIN = 1 << 18


def is_pandas(values: object, *names: str) -> bool:
    """Say whether `values` is one of these pandas classes, without importing pandas."""
    pandas = sys.modules.get("pandas")
    kinds = [getattr(pandas, name, None) for name in names]  # another thread may be importing it just now
    return any(kind is not None and isinstance(values, kind) for kind in kinds)


def is_dataset(values: object) -> bool:
    """Say whether `values` is a data set of pyarrow, without importing that part of it."""
    datasets = sys.modules.get("pyarrow.dataset")
    return datasets is not None and isinstance(values, datasets.Dataset)


def is_object(dtype: Any) -> bool:
    """Say whether this is the type of Python objects in Polars, which Arrow would get the addresses of."""
    return str(dtype) == "Object"


def is_one_column(values: object) -> bool:
    """Say whether this is one column, judged by its type alone, as of Polars: to export one may take long.

    What may be structs is none: it is exported, and may be a table.
    """
    kind = getattr(values, "dtype", None)
    is_array = kind is not None and hasattr(values, "__len__") and not hasattr(values, "columns")
    return is_array and "struct" not in str(kind).lower()


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
    """Convert a one-dimensional array of any library to Arrow; what cannot be converted is an IdTypeError.

    NumPy integers and Arrow data are not copied; NaN in objects and in pandas is null.
    """
    try:
        return convert(values, where)
    except (ColumnError, IdTypeError):
        raise
    except OverflowError as error:
        raise IdTypeError(
            f"{where} has integers that one 64-bit type, int64 or uint64, cannot hold. Cast them to str."
        ) from error
    except CONVERSION as error:
        raise IdTypeError(
            f"{where} cannot be read as one column: {str(error)[:200]}. "
            "Give all values one type, for example str."
        ) from error


def convert(values: Any, where: str) -> pa.ChunkedArray:
    """Convert as `to_arrow` does, but let the errors of the conversion (`CONVERSION`) pass."""
    if is_pandas(values, "DataFrame") or isinstance(values, (Mapping, pa.Table, pa.RecordBatch)):
        raise ColumnError(
            f"{where} should be one column, but a table of type {type(values).__name__} was given. "
            "Pass one of its columns."
        )
    if hasattr(values, "collect"):
        raise ColumnError(f"{where} is a lazy frame or query: call .collect() first.")
    if hasattr(values, "readline"):
        raise ColumnError(
            f"{where} should be a one-dimensional array or list, not an open file. Pass its path, or the table that is "
            "read from it."
        )
    if isinstance(values, (str, bytes, set, frozenset)) or not isinstance(values, Iterable):
        raise ColumnError(f"{where} should be a one-dimensional array or list, not {type(values).__name__}.")
    series: Any = values
    if is_pandas(series, "Index"):
        series = series.to_series()
    kind = getattr(series, "dtype", None)
    if is_pandas(series, "Series") and isinstance(kind, np.dtype) and not kind.isnative:
        series = series.astype(kind.newbyteorder("="))
    if is_pandas(series, "Series", "Categorical") or hasattr(series, "__arrow_array__"):
        return _from_objects(series, where)
    if isinstance(values, pa.Array):
        return pa.chunked_array([values])
    if isinstance(values, np.ndarray):
        return _from_numpy(values, where)
    if is_object(kind):
        return _from_objects(series.to_list(), where)
    if (streamed := from_stream(values)) is not None:
        if pa.types.is_struct(streamed.type):
            raise ColumnError(f"{where} should be one column, but a table was given.")
        return streamed
    listed = values if isinstance(values, list) else list(values)
    if listed and hasattr(listed[0], "columns"):
        raise ColumnError(
            f"{where} should be one column, but these are tables, one after the other. Pass one table, such as "
            "pandas.concat(...), polars.concat(...) or pyarrow.Table.from_batches(...) of them."
        )
    return _from_objects(listed, where)


def _from_numpy(values: np.ndarray, where: str) -> pa.ChunkedArray:
    if values.ndim != 1:
        raise ColumnError(
            f"{where} should be one-dimensional, but has shape {values.shape}. Pass one column."
        )
    if values.dtype.kind == "O":
        return _from_objects(values.tolist(), where)
    if values.dtype.names:
        raise IdTypeError(
            f"{where} cannot be read as one column: they are records ({', '.join(values.dtype.names)}). Give all "
            "values one type: pass one field, or pandas.DataFrame(records) in place of all."
        )
    if values.dtype.kind in "biuf":
        mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
        return _chunked(from_numpy(np.ma.getdata(values), mask))
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    try:
        return _chunked(pa.array(values, from_pandas=True))
    except pa.ArrowNotImplementedError:
        if values.dtype.kind != "T":  # NumPy's texts of any length, which newer versions of Arrow read
            raise
        return _from_objects(values.tolist(), where)


def _from_objects(values: Any, where: str) -> pa.ChunkedArray:
    """Convert Python objects in a list or in pandas; Arrow would make one value of "a" and b"a"."""
    if (plain := _plain_list(values)) is not None:
        return _chunked(plain)
    try:
        data = _chunked(pa.array(values, from_pandas=True))
    except OverflowError:
        data = _chunked(pa.array(values, type=pa.uint64(), from_pandas=True))
    except pa.ArrowInvalid:
        if not all(value is None or isinstance(value, UUID) for value in values):
            raise
        data = _from_uuids(values)  # which newer versions of Arrow read
    kind = plain_type(data.type)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        if text := [value for value in values if isinstance(value, str)]:
            raise IdTypeError(
                f"{where} mixes bytes and text: {len(text)} of {len(data)} values are text (first: "
                f"{first_few(text)}). Give all values one type, for example str."
            )
    return data


def _from_uuids(values: Iterable[UUID | None]) -> pa.ChunkedArray:
    storage = pa.array([None if value is None else value.bytes for value in values], pa.binary(16))
    return _chunked(pa.ExtensionArray.from_storage(pa.uuid(), storage))


def _plain_list(values: Any) -> pa.Array | None:
    """Return a list of integers or of texts as Arrow; None if there is more to it, or where pandas is loaded already.

    Other ways to read a list import pandas, where it is installed, which takes longer than scoring a million items.
    """
    if "pandas" in sys.modules or type(values) is not list or len(values) > MOST_PLAIN:
        return None
    kinds = set(map(type, values))
    try:
        if kinds == {int}:
            return from_numpy(np.array(values, np.int64))
        if kinds == {str} and "".join(values).encode():
            return from_texts(values)
    except (OverflowError, UnicodeEncodeError):  # Arrow says what is wrong
        pass
    return None


def _chunked(array: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values themselves, under dictionaries and extensions."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return kind


def id_kind(kind: pa.DataType, where: str) -> str:
    """Return "integer", "string" or "binary"; any other type raises with a hint."""
    plain, is_type = plain_type(kind), pa.types
    if is_type.is_integer(plain) or is_type.is_null(plain):
        return "integer"
    if is_type.is_string(plain) or is_type.is_large_string(plain) or is_type.is_string_view(plain):
        return "string"
    if is_type.is_fixed_size_binary(plain) or is_type.is_binary(plain):
        return "binary"
    if is_type.is_large_binary(plain) or is_type.is_binary_view(plain):
        return "binary"
    if is_type.is_floating(plain) or is_type.is_decimal(plain):
        hint = "Floats that are whole numbers are taken as integers; cast others to string."
    elif is_type.is_boolean(plain):
        hint = "Cast to int64 or string if true and false are really the names."
    elif is_type.is_nested(plain):
        hint = (
            'An id of several parts is given as several columns: ["source", "id"]; lists of items, one for each '
            "cluster, go to Clustering.from_clusters, and records, one for each item, to pandas.DataFrame."
        )
    else:
        hint = "Cast to string or int64."
    raise IdTypeError(f"{where} should be integers, strings or binary, but the type is {kind}. {hint}")


def storage_of(part: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the data without extension type, run-end encoding or null type."""
    if isinstance(part.type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in part.chunks]
        return storage_of(pa.chunked_array(chunks, type=part.type.storage_type))
    if pa.types.is_run_end_encoded(part.type):
        chunks = [_run_by_run(chunk) for chunk in part.chunks]
        return storage_of(pa.chunked_array(chunks, type=part.type.value_type))
    if pa.types.is_null(part.type):
        return part.cast(pa.int64())
    return part


def _run_by_run(chunk: pa.RunEndEncodedArray) -> pa.Array:
    """Return the value of each row; Arrow decodes most types of values itself."""
    try:
        return pc.run_end_decode(chunk)
    except pa.ArrowNotImplementedError:  # dictionaries among them
        first, n_runs = chunk.find_physical_offset(), chunk.find_physical_length()
        ends = to_numpy(chunk.run_ends)[first : first + n_runs].astype(np.int64) - chunk.offset
        lengths = np.diff(np.minimum(ends, len(chunk)), prepend=0)
        return chunk.values.take(from_numpy(np.repeat(np.arange(first, first + n_runs), lengths)))


def join_pieces(pieces: list[pa.ChunkedArray], where: str) -> pa.ChunkedArray:
    """Put columns one after the other; types that differ only in width or encoding are widened."""
    types = {piece.type for piece in pieces}
    if len(types) > 1:
        stored = map(storage_of, pieces)
        plain = [piece.cast(wide_type(piece.type)) for piece in stored]
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


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    """Return a table of Arrow or NumPy columns, made without pandas.

    Examples
    --------
    >>> table_of({"n": np.arange(2)}).column_names
    ['n']
    """
    return pa.table({name: from_numpy(c) if isinstance(c, np.ndarray) else c for name, c in columns.items()})


def from_numpy(values: np.ndarray, mask: np.ndarray | None = None) -> pa.Array:
    """Return numbers or booleans as Arrow, of their own width; contiguous numbers are not copied.

    Unlike `pyarrow.array` this does not import pandas.

    Examples
    --------
    >>> from_numpy(np.arange(3), np.array([False, True, False])).to_pylist()
    [0, None, 2]
    """
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    data = np.require(native, requirements=["C", "A"])
    kind = pa.from_numpy_dtype(data.dtype)
    if data.dtype == np.bool_:
        data = np.packbits(data, bitorder="little")
    valid = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(data)])


def from_texts(values: Sequence[str | None]) -> pa.Array:
    """Return a few texts as Arrow; unlike `pyarrow.array` this does not import pandas.

    Examples
    --------
    >>> from_texts(["a", None, "ü"]).to_pylist()
    ['a', None, 'ü']
    """
    encoded = [b"" if value is None else value.encode(errors="surrogateescape") for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    valid = np.packbits(np.array([value is not None for value in values], dtype=bool), bitorder="little")
    return pa.StringArray.from_buffers(len(encoded), *map(pa.py_buffer, (ends, b"".join(encoded), valid)))


def no_rows(schema: pa.Schema) -> pa.Table:
    """Return a table of these columns without rows; unlike `pyarrow.Schema.empty_table` this does not import pandas.

    Examples
    --------
    >>> no_rows(pa.schema([("item", pa.int64())])).num_rows
    0
    """
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def to_numpy(array: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return Arrow numbers or booleans as NumPy, of their own width; what stands for nulls is arbitrary.

    Numbers of one chunk are not copied, and the result is read-only. Unlike Arrow's own this does not
    import pandas.
    """
    dtype = np.dtype(array.type.to_pandas_dtype())
    if isinstance(array, pa.ChunkedArray):
        if array.num_chunks == 1:
            return to_numpy(array.chunk(0))
        joined = np.concatenate([np.empty(0, dtype), *map(to_numpy, array.chunks)])
        joined.flags.writeable = False
        return joined
    buffer = array.buffers()[1]
    if len(array) == 0 or buffer is None:
        view = np.zeros(len(array), dtype=dtype)
    elif dtype == np.bool_:
        view = _bits(buffer, array.offset, len(array))
    else:
        view = np.frombuffer(buffer, dtype=dtype, count=len(array), offset=array.offset * dtype.itemsize)
    view.flags.writeable = False
    return view


def read_only(values: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to, as arrays of Arrow are: one kernel is compiled for all producers."""
    view = values.view()
    view.flags.writeable = False
    return view


def codes_of(array: pa.DictionaryArray) -> np.ndarray:
    """Return the codes of a dictionary array, which are arbitrary where they are null.

    Codes beyond the dictionary, which Arrow does not look for, raise pyarrow.ArrowInvalid.
    """
    bounds = pc.min_max(array.indices).as_py()
    if bounds["max"] is not None and not 0 <= bounds["min"] <= bounds["max"] < len(array.dictionary):
        raise pa.ArrowInvalid("a code is not in the dictionary")
    codes = to_numpy(array.indices)
    return codes.view(np.int64) if codes.dtype == np.uint64 else codes


def is_null(array: pa.Array) -> np.ndarray:
    """Return which values of an array with a validity bitmap, or without nulls, are null.

    For a dictionary its codes alone count.
    """
    buffer = array.buffers()[0]
    if array.null_count == 0 or buffer is None:
        return np.full(len(array), pa.types.is_null(array.type))
    return ~_bits(buffer, array.offset, len(array))


def _bits(buffer: pa.Buffer, offset: int, n: int) -> np.ndarray:
    first = offset // 8
    data = np.frombuffer(buffer, dtype=np.uint8, count=-(-(offset + n) // 8) - first, offset=first)
    skipped = offset % 8
    return np.unpackbits(data, count=skipped + n, bitorder="little")[skipped:].view(np.bool_)
