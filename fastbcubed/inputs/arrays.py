"""Conversion of ids and labels in any one-dimensional container to Arrow: types, nulls and selected rows."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, ValuesView
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self
from uuid import UUID

import numpy as np
import pyarrow as pa

from fastbcubed.errors import (
    ColumnError,
    FastBCubedError,
    IdTypeError,
    NullError,
    WeightError,
    arg,
    first_few,
)
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.runtime.arguments import naming_faults_of, refuse_deep_lists

#: Exceptions that a conversion to Arrow may raise.
CONVERSION = (pa.ArrowException, OverflowError, TypeError, ValueError)
#: Longer lists are left to Arrow, which is ten times as fast for strings once pandas is loaded.
MOST_PLAIN = 1 << 18
#: Number of fixed-length texts examined for a NUL at a time.
NUL_BLOCK = 1 << 14


def is_pandas(values: object, *names: str) -> bool:
    """Return whether `values` is one of these pandas classes, without importing pandas."""
    pandas = sys.modules.get("pandas")
    kinds = [getattr(pandas, name, None) for name in names]  # another thread may be importing it
    return any(kind is not None and isinstance(values, kind) for kind in kinds)


#: Methods by which tables of other libraries convert themselves to one that can be read, in order of preference.
AS_TABLE = ("to_arrow", "to_pandas", "toPandas", "as_pandas_dataframe", "compute", "collect", "execute", "df")


def refuse_unread(values: Any, where: str) -> None:
    """Raise ColumnError for a class, a sparse matrix, or a table that must be converted first.

    Iterating over some of these tables yields column names, which are not labels.
    """
    kind = type(values).__name__
    if isinstance(values, type):
        raise ColumnError(f"{where} is the class {values.__name__}. Pass an instance of it.")
    if kind.endswith("GroupBy"):
        raise ColumnError(
            f"{where} is a grouped table ({kind}). Pass the ungrouped table, and name its grouping column "
            f"with {arg('cluster', ...)}."
        )
    if is_sparse(values):
        raise ColumnError(
            f"{where} is a sparse matrix ({kind}). For links between items, pass "
            "Clustering.from_pairs(m.row, m.col, items=range(m.shape[0])) with m = matrix.tocoo(); for a "
            "contingency table, pass contingency= to a function of fastbcubed.metrics."
        )
    if is_pandas(values, "DataFrame", "Series", "Index") or hasattr(values, "__arrow_c_stream__"):
        return
    if hasattr(values, "collect") or hasattr(values, "columns") or hasattr(values, "__dataframe__"):
        ask = next((name for name in AS_TABLE if hasattr(values, name)), None)
        advice = f"call .{ask}() first" if ask else "pass it as a table of pandas, Polars or Arrow"
        raise ColumnError(
            f"{where} is a table or query of type {kind}, which cannot be read directly: {advice}."
        )


def is_sparse(values: Any) -> bool:
    """Return whether this is a sparse matrix or array of SciPy, or an object with the same interface."""
    # looked up on the class: a table may have a column of any name, and Spark Connect returns one for any
    # attribute
    kind = type(values)
    return hasattr(kind, "tocoo") and (hasattr(kind, "nnz") or hasattr(values, "nnz"))


def starts_as_integers(values: object) -> bool:
    """Return whether this is an array of integers or a list that begins with one, and so certainly a column."""
    if isinstance(values, np.ndarray):
        return values.dtype.kind in "iu"
    return type(values) is list and bool(values) and type(values[0]) is int


def is_spark(given: Any) -> bool:
    """Return whether this is a DataFrame of Spark, classic or Connect; Spark is not imported for this."""
    return any(
        each.__module__.startswith("pyspark.sql.") and each.__name__ == "DataFrame"
        for each in type(given).__mro__
    )


def is_dataset(values: object) -> bool:
    """Return whether `values` is a pyarrow dataset, without importing `pyarrow.dataset`."""
    datasets = sys.modules.get("pyarrow.dataset")
    return datasets is not None and isinstance(values, datasets.Dataset)


def is_object(dtype: Any) -> bool:
    """Return whether this is the Polars type for Python objects, which Arrow would receive as memory addresses."""
    return str(dtype) == "Object"


def is_one_column(values: object) -> bool:
    """Return whether this is a single column, such as a Polars Series, judging by type, as exporting may be slow.

    Return False for columns that may hold structs: once exported, they may turn out to be tables.
    """
    kind = getattr(values, "dtype", None)
    is_array = kind is not None and hasattr(values, "__len__") and not has_columns(values)
    return is_array and "struct" not in str(kind).lower()


def from_stream(values: Any) -> pa.ChunkedArray | None:
    """Read any object that exports Arrow data (tables become struct columns); return None if it does not."""
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, pa.Table):
        return pa.chunked_array(values.to_struct_array())
    if hasattr(values, "__arrow_c_stream__"):
        with naming_faults_of(values):
            return pa.chunked_array(values)
    if hasattr(values, "__arrow_c_array__"):
        with naming_faults_of(values):
            return pa.chunked_array([pa.array(values)])
    return None


def to_arrow(values: Any, where: str) -> pa.ChunkedArray:
    """Convert a one-dimensional array of any library to Arrow; raise IdTypeError if it cannot be converted.

    NumPy integers and Arrow data are not copied. NaN among Python objects or in pandas becomes null.
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
    """Convert as `to_arrow` does, but let conversion errors (`CONVERSION`) propagate."""
    if isinstance(values, np.ndarray):
        return _from_numpy(values, where)
    if type(values) is list and (plain := _plain_list(values)) is not None:
        return pa.chunked_array([plain])
    if isinstance(values, list | tuple):
        refuse_deep_lists(values, where)
    if is_pandas(values, "DataFrame") or isinstance(values, (Mapping, pa.Table, pa.RecordBatch)):
        raise ColumnError(
            f"{where} should be one column, but a table of type {type(values).__name__} was given. "
            "Pass one of its columns."
        )
    if hasattr(values, "readline"):
        raise ColumnError(
            f"{where} should be a one-dimensional array or list, not an open file. Pass its path, or the "
            "table read from it."
        )
    refuse_unread(values, where)
    if type(values).__module__.startswith("fastbcubed."):
        raise ColumnError(
            f"{where} should be a clustering, not a result ({type(values).__name__}). Pass the clustering "
            "that was scored; to compare with the scores of a result, evaluate the new clustering and "
            "subtract its `overall`."
        )
    if isinstance(values, (str, bytes)) or not (hasattr(values, "__len__") or hasattr(values, "__array__")):
        _refuse_tables(values if isinstance(values, Iterator) else (), where)
        advice = " Pass its labels_." if hasattr(values, "labels_") else ""
        if isinstance(values, Iterable) and not isinstance(values, str | bytes):
            advice = " Pass list(...) of it."
        if hasattr(values, "fetchall"):  # a cursor, whose rows are items and clusters
            advice = " Pass a table of its rows, such as pandas.read_sql(query, connection)."
        raise ColumnError(
            f"{where} should be a one-dimensional array or list, not {type(values).__name__}.{advice}"
        )
    if isinstance(values, Set | ValuesView):  # rows that correspond by position need an order
        raise ColumnError(
            f"{where} should be a one-dimensional array or list, not {type(values).__name__}, which has no positions. "
            "Pass a dict from item to cluster, or, if its values are in the order of the items, list(...) of it."
        )
    series: Any = values
    if is_pandas(series, "Index"):
        series = series.to_series()
    kind = getattr(series, "dtype", None)
    if type(kind).__name__ == "SparseDtype":
        return convert(np.asarray(series), where)
    if is_pandas(series, "Series") and isinstance(kind, np.dtype) and not kind.isnative:
        series = series.astype(kind.newbyteorder("="))
    if is_pandas(series, "Series", "Categorical") or hasattr(series, "__arrow_array__"):
        return _from_objects(series, where)
    if isinstance(values, pa.Array):
        return pa.chunked_array([values])
    if is_object(kind):
        return _from_objects(series.to_list(), where)
    if (streamed := from_stream(values)) is not None:
        if pa.types.is_struct(streamed.type):
            raise ColumnError(f"{where} should be one column, but a table was given.")
        return streamed
    if not isinstance(values, Iterable) or (hasattr(values, "__array__") and not is_pandas(values, "Index")):
        with naming_faults_of(values):
            values = np.asarray(values)
        return _from_numpy(values, where)
    with naming_faults_of(values):
        listed = values if isinstance(values, list) else list(values)
    _refuse_tables(listed[:1], where)
    return _from_objects(listed, where)


def _refuse_tables(values: Iterable[Any], where: str) -> None:
    """Raise if the first of these values is a table rather than a label."""
    if has_columns(next(iter(values), None)):
        raise ColumnError(
            f"{where} should be one column, but is a sequence of tables. Combine them into one table with "
            "pandas.concat(...), polars.concat(...) or pyarrow.Table.from_batches(...)."
        )


def has_columns(values: Any) -> bool:
    """Return whether this is a data frame; a lazy one is not asked for its columns, which may fail."""
    return hasattr(values, "collect_schema") or hasattr(values, "columns")


def _from_numpy(values: np.ndarray, where: str) -> pa.ChunkedArray:
    if values.ndim != 1:
        raise ColumnError(
            f"{where} should be one-dimensional, but has shape {values.shape}. Pass one column."
        )
    if values.dtype.kind == "O":
        return _from_objects(values.tolist(), where)
    if values.dtype.names:
        raise IdTypeError(
            f"{where} cannot be read as one column: the values are records "
            f"({', '.join(values.dtype.names)}). Pass one field, or pandas.DataFrame(records) for all "
            "fields."
        )
    if values.dtype.kind in "biuf":
        mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
        return pa.chunked_array([from_numpy(np.ma.getdata(values), mask)])
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype.kind in "SU" and _has_nul(values):
        return _from_objects(values.tolist(), where)
    try:
        return chunked(pa.array(values, from_pandas=True))
    except pa.ArrowNotImplementedError:
        if values.dtype.kind != "T":  # NumPy's variable-length strings, which newer Arrow reads
            raise
        return _from_objects(values.tolist(), where)


def _has_nul(values: np.ndarray) -> bool:
    """Return whether a fixed-length text or bytes value continues after a NUL, where Arrow would truncate it."""
    unit, size = ("u1", 1) if values.dtype.kind == "S" else ("u4", 4)
    width = values.dtype.itemsize // size
    for start in range(0, values.size if width > 1 else 0, NUL_BLOCK):
        block = np.ascontiguousarray(values[start : start + NUL_BLOCK])
        is_nul = np.ma.getdata(block).view(unit).reshape(-1, width) == 0
        if np.any(is_nul[:, :-1] > is_nul[:, 1:]):
            return True
    return False


def _from_objects(values: Any, where: str) -> pa.ChunkedArray:
    """Convert Python objects from a list or from pandas; Arrow alone would merge "a" and b"a" into one value."""
    if type(values) is list and (plain := _plain_list(values)) is not None:
        return chunked(plain)
    try:
        data = chunked(pa.array(values, from_pandas=True))
    except OverflowError:
        data = chunked(pa.array(values, type=pa.uint64(), from_pandas=True))
    except pa.ArrowInvalid:
        if not all(value is None or isinstance(value, UUID) for value in values):
            raise
        storage = pa.array([None if value is None else value.bytes for value in values], pa.binary(16))
        data = chunked(pa.ExtensionArray.from_storage(pa.uuid(), storage))  # newer Arrow reads them
    kind = plain_type(data.type)
    if pa.types.is_floating(kind) and bool in set(map(type, values)):
        raise IdTypeError(
            f"{where} cannot be read as one column: it mixes True or False with numbers. Give all values one "
            "type."
        )
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        if text := [value for value in values if isinstance(value, str)]:
            raise IdTypeError(
                f"{where} mixes bytes and text: {len(text)} of {len(data)} values are text (first: "
                f"{first_few(text)}). Give all values one type, for example str."
            )
    return data


def _plain_list(values: list[Any]) -> pa.Array | None:
    """Return a list of integers or strings as Arrow; None for other lists, or if pandas is already loaded.

    Other ways to convert a list import pandas if it is installed, which takes longer than scoring a million items.
    """
    if "pandas" in sys.modules or len(values) > MOST_PLAIN:
        return None
    kinds = set(map(type, values))
    try:
        if kinds == {int}:
            return from_numpy(np.array(values, np.int64))
        if kinds == {str} and "".join(values).encode():
            return from_texts(values)
    except (OverflowError, UnicodeEncodeError):  # Arrow reports the cause
        pass
    return None


def chunked(array: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as a chunked array."""
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values themselves, inside dictionaries, run-end encoding and extension types."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return kind


#: Extension types whose values are not ids even if their storage type is, and a plain type that is refused instead.
NO_IDS = {"arrow.bool8": pa.bool_(), "pandas.period": pa.date32(), "pandas.interval": pa.date32()}


def id_kind(kind: pa.DataType, where: str) -> str:
    """Return "integer", "string" or "binary"; raise IdTypeError, with a hint, for any other type."""
    plain, is_type = plain_type(kind), pa.types
    if isinstance(kind, pa.BaseExtensionType):  # the storage type alone would misrepresent the values
        plain = NO_IDS.get(kind.extension_name, plain)
    if is_type.is_integer(plain) or is_type.is_null(plain):
        return "integer"
    if is_type.is_string(plain) or is_type.is_large_string(plain) or is_type.is_string_view(plain):
        return "string"
    if is_type.is_fixed_size_binary(plain) or is_type.is_binary(plain):
        return "binary"
    if is_type.is_large_binary(plain) or is_type.is_binary_view(plain):
        return "binary"
    if is_type.is_floating(plain) or is_type.is_decimal(plain):
        hint = "Whole-number floats are read as integers; cast other floats to string."
    elif is_type.is_boolean(plain):
        hint = "Cast to int64 or string if true and false really are labels."
    elif is_type.is_nested(plain):
        hint = (
            'Pass an id of several parts as several columns, such as ["source", "id"]; lists of items, one per '
            "cluster, to Clustering.from_clusters; and records, one per item, to pandas.DataFrame."
        )
    else:
        hint = "Cast to string or int64."
    shown = textwrap.shorten(str(kind), 200, placeholder=" …")
    raise IdTypeError(f"{where} should be integers, strings or binary, but the type is {shown}. {hint}")


def storage_of(part: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the data without extension types, run-end encoding or the null type."""
    if isinstance(part.type, pa.BaseExtensionType):
        chunks = [chunk.storage for chunk in part.chunks]
        return storage_of(pa.chunked_array(chunks, type=part.type.storage_type))
    if pa.types.is_run_end_encoded(part.type):
        chunks = [_decoded_runs(chunk) for chunk in part.chunks]
        return storage_of(pa.chunked_array(chunks, type=part.type.value_type))
    if pa.types.is_null(part.type):
        return part.cast(pa.int64())
    return part


def _decoded_runs(chunk: pa.RunEndEncodedArray) -> pa.Array:
    """Return the value of each row of run-end encoded data; Arrow itself decodes most value types."""
    try:
        return pc.run_end_decode(chunk)
    except pa.ArrowNotImplementedError:  # such as dictionaries
        first, n_runs = chunk.find_physical_offset(), chunk.find_physical_length()
        ends = to_numpy(chunk.run_ends)[first : first + n_runs].astype(np.int64) - chunk.offset
        lengths = np.diff(np.minimum(ends, len(chunk)), prepend=0)
        return chunk.values.take(from_numpy(np.repeat(np.arange(first, first + n_runs), lengths)))


def join_pieces(pieces: Sequence[pa.ChunkedArray], where: str) -> pa.ChunkedArray:
    """Concatenate columns in the type that `common_type` returns; columns without rows fit any type."""
    kind = common_type([piece.type for piece in pieces if len(piece)] or [pieces[0].type], where)
    chunks = [chunk for piece in pieces if len(piece) for chunk in as_type(piece, kind, where).chunks]
    return pa.chunked_array(chunks, type=kind)


def common_type(types: Iterable[pa.DataType], where: str) -> pa.DataType:
    """Return the type that holds the values of all columns if these differ only in width or encoding, or are all null.

    Examples
    --------
    >>> common_type([pa.int32(), pa.null(), pa.int64()], "the column")
    DataType(int64)
    """
    every = list(dict.fromkeys(types))
    if len(every) == 1:
        return every[0]
    wide = {wide_type(plain_type(kind)) for kind in every if not pa.types.is_null(kind)}
    try:
        if wide >= {pa.large_string(), pa.large_binary()}:
            raise pa.ArrowTypeError("text and bytes differ")  # Arrow would convert both to bytes
        schemas = [pa.schema([("values", kind)]) for kind in wide]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException as error:
        raise _several_types(every, where) from error


def as_type(data: pa.ChunkedArray, kind: pa.DataType, where: str) -> pa.ChunkedArray:
    """Return a column cast to the common type of all columns that it is joined with."""
    if data.type == kind:
        return data
    try:
        return (data if pa.types.is_null(data.type) else storage_of(data)).cast(kind)
    except pa.ArrowException as error:
        raise _several_types([data.type, kind], where) from error


def _several_types(types: Iterable[pa.DataType], where: str) -> ColumnError:
    return ColumnError(f"{where} has several types: {', '.join(sorted(map(str, types)))}. Use one.")


def wide_type(kind: pa.DataType) -> pa.DataType:
    """Return the unencoded type with the widest offsets that holds the same values."""
    if pa.types.is_dictionary(kind):
        return wide_type(kind.value_type)
    if pa.types.is_string_view(kind) or pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind) or pa.types.is_binary(kind):
        return pa.large_binary()
    return pa.large_binary() if pa.types.is_fixed_size_binary(kind) else kind


def table_of(columns: Mapping[str, Any]) -> pa.Table:
    """Return a table of Arrow or NumPy columns, built without importing pandas.

    Examples
    --------
    >>> table_of({"n": np.arange(2)}).column_names
    ['n']
    """
    return pa.table({name: from_numpy(c) if isinstance(c, np.ndarray) else c for name, c in columns.items()})


def from_numpy(values: np.ndarray, mask: np.ndarray | None = None) -> pa.Array:
    """Return numbers or booleans as Arrow without changing their width; contiguous numbers are not copied.

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


def as_floats(numbers: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return numbers as float64, each rounded to nearest, which Arrow's own cast of decimals does not ensure.

    Examples
    --------
    >>> as_floats(pa.array([0.9]).cast(pa.decimal128(18, 6))).to_pylist()
    [0.9]
    """
    if pa.types.is_decimal(numbers.type):
        numbers = numbers.cast(pa.large_string())
    return numbers.cast(pa.float64(), safe=False)


def from_texts(values: Sequence[str | None]) -> pa.Array:
    """Return a few strings as Arrow; unlike `pyarrow.array` this does not import pandas.

    Examples
    --------
    >>> from_texts(["a", None, "ü"]).to_pylist()
    ['a', None, 'ü']
    """
    encoded = [b"" if value is None else value.encode(errors="surrogateescape") for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    valid = np.packbits(np.array([value is not None for value in values], dtype=bool), bitorder="little")
    return pa.StringArray.from_buffers(len(encoded), *map(pa.py_buffer, (ends, b"".join(encoded), valid)))


def from_values(values: Sequence[float | None], kind: pa.DataType) -> pa.Array:
    """Return a few numbers or booleans as Arrow, with None and NaN as nulls.

    Unlike `pyarrow.array` this does not import pandas.

    Examples
    --------
    >>> from_values([1, None], pa.int64()).to_pylist(), from_values([True], pa.bool_()).to_pylist()
    ([1, None], [True])
    """
    lacking = [value is None or value != value for value in values]
    known = [0 if none else value for value, none in zip(values, lacking, strict=True)]
    return from_numpy(np.array(known, kind.to_pandas_dtype()), np.array(lacking, np.bool_))


def no_rows(schema: pa.Schema) -> pa.Table:
    """Return an empty table with these columns; unlike `pyarrow.Schema.empty_table` this does not import pandas.

    Examples
    --------
    >>> no_rows(pa.schema([("item", pa.int64())])).num_rows
    0
    """
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def to_numpy(array: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return Arrow numbers or booleans as NumPy without changing their width; values at nulls are arbitrary.

    Numbers of one chunk are not copied, and the result is read-only. Unlike Arrow's method this does not
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
    """Return a read-only view, so that kernels are compiled once for NumPy and Arrow arrays, which are read-only."""
    view = values.view()
    view.flags.writeable = False
    return view


def codes_of(array: pa.DictionaryArray) -> np.ndarray:
    """Return the codes of a dictionary array; codes at nulls are arbitrary.

    Raise pyarrow.ArrowInvalid for codes outside the dictionary, which Arrow does not check.
    """
    bounds = pc.min_max(array.indices).as_py()
    if bounds["max"] is not None and not 0 <= bounds["min"] <= bounds["max"] < len(array.dictionary):
        raise pa.ArrowInvalid("a code is not in the dictionary")
    codes = to_numpy(array.indices)
    return codes.view(np.int64) if codes.dtype == np.uint64 else codes


def is_null(array: pa.Array) -> np.ndarray:
    """Return the mask of null rows of an array whose nulls, if any, are in a validity bitmap.

    Of a dictionary array, only the codes are examined, not the values.
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


def null_mask(part: pa.ChunkedArray) -> np.ndarray | None:
    """Return the mask of rows whose code or value is null; None if there are none."""
    dictionary = pa.types.is_dictionary(part.type)
    if not part.null_count and not (dictionary and any(c.dictionary.null_count for c in part.chunks)):
        return None
    masks = []
    for chunk in part.chunks:
        mask = is_null(chunk)
        if dictionary and chunk.dictionary.null_count:
            mask |= mask_by_code(is_null(chunk.dictionary), chunk)
        masks.append(mask)
    combined = np.concatenate(masks)
    return combined if combined.any() else None


def mask_by_code(mask: np.ndarray, chunk: pa.DictionaryArray) -> np.ndarray:
    """Return the mask of rows from a mask of the dictionary's values; rows with a null code are False."""
    if not len(mask):
        return np.zeros(len(chunk), dtype=bool)
    codes = to_numpy(chunk.indices)
    found = np.take(mask, codes.astype(np.int64, copy=False), mode="clip")  # codes of nulls are arbitrary
    return found & ~is_null(chunk)


def combined(data: pa.ChunkedArray) -> pa.Array:
    """Return a column as a single array; different dictionaries are unified."""
    if data.num_chunks == 1:
        return data.chunk(0)
    if not data.num_chunks:  # Arrow fails here for some types, such as dictionaries of large strings
        return pa.nulls(0, data.type)
    if pa.types.is_dictionary(data.type):
        data = _unified(data)
    array = data.combine_chunks()
    if isinstance(array, pa.Array):
        return array
    wide = wide_type(data.type)  # more than 2 GiB
    return pa.concat_arrays([chunk.cast(wide) for chunk in data.chunks])


def nulls_in_codes(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column with nulls marked in the codes rather than the dictionary; others unchanged."""
    dictionary = pa.types.is_dictionary(data.type)
    if not dictionary or not any(chunk.dictionary.null_count for chunk in data.chunks):
        return data
    return pa.chunked_array(list(map(_without_null, data.chunks)), without_views(data.slice(0, 0)).type)


def values_of_codes(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column decoded, whatever the type of its values."""
    chunks = [chunk.dictionary.take(chunk.indices) for chunk in data.chunks]
    return pa.chunked_array(chunks, data.type.value_type)


def _without_null(chunk: pa.DictionaryArray) -> pa.DictionaryArray:
    values = chunk.dictionary
    lacking = is_null(values)
    place = from_numpy(np.cumsum(~lacking) - 1, lacking).cast(chunk.type.index_type)
    known = _take_from(values, np.flatnonzero(~lacking))
    return pa.DictionaryArray.from_arrays(place.take(chunk.indices), known, ordered=chunk.type.ordered)


def of_one_dictionary(data: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return a dictionary column whose chunks share one dictionary, as Arrow's take requires; others unchanged."""
    several = isinstance(data, pa.ChunkedArray) and data.num_chunks > 1 and pa.types.is_dictionary(data.type)
    return pa.chunked_array([combined(data)]) if several else data


def take_or_null(data: pa.ChunkedArray, rows: np.ndarray) -> pa.ChunkedArray:
    """Return the values at these rows; row -1 gives null."""
    return of_one_dictionary(data).take(from_numpy(rows, rows < 0))


def _unified(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return dictionary data in which all chunks share one dictionary, with codes wide enough for it."""
    data = nulls_in_codes(data)
    try:
        return data.unify_dictionaries()
    except pa.ArrowInvalid:  # more values than its codes can number
        wide = pa.dictionary(pa.int32(), data.type.value_type, data.type.ordered)
        return data.cast(wide).unify_dictionaries()


def without_views(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return string and binary views, also nested ones, as large strings or binary; other data unchanged."""
    kind, wide = data.type, _without_views(data.type)
    if kind == wide:
        return data
    if not pa.types.is_dictionary(kind):
        return data.cast(wide)
    chunks = [
        pa.DictionaryArray.from_arrays(
            chunk.indices, chunk.dictionary.cast(wide.value_type), ordered=kind.ordered
        )
        for chunk in data.chunks
    ]
    return pa.chunked_array(chunks, type=wide)


def _without_views(kind: pa.DataType) -> pa.DataType:
    if is_view(kind):
        return wide_type(kind)
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_views(kind.value_type), kind.ordered)
    return with_parts(kind, _without_views)


def with_parts(kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a struct or list type with its inner types changed; other types unchanged."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(change(field.type)) for field in kind.fields])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(kind.value_field.with_type(change(kind.value_type)))
    return kind


def plain(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without dictionaries or views, of which a few selected rows would keep all data in memory."""
    data = without_views(data)
    kind = _without_dictionaries(data.type)
    return data if kind == data.type else data.cast(kind)


def _without_dictionaries(kind: pa.DataType) -> pa.DataType:
    """Return the type with dictionaries decoded, also in structs and lists."""
    return with_parts(kind.value_type if pa.types.is_dictionary(kind) else kind, _without_dictionaries)


def is_view(kind: pa.DataType) -> bool:
    """Return whether values are stored as 16-byte string or binary views, which many Arrow functions do not support."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def take_rows(part: pa.ChunkedArray, rows: np.ndarray) -> pa.Array:
    """Return the rows with these numbers, taken chunk by chunk to avoid copying whole chunks."""
    if pa.types.is_run_end_encoded(part.type):
        part = storage_of(part)
    if part.num_chunks == 1:
        return _take_from(part.chunk(0), rows)
    if len(rows) == 0:
        return combined(without_views(part.slice(0, 0)))
    starts = np.cumsum([0] + [len(chunk) for chunk in part.chunks])
    if rows.min() < 0 or rows.max() >= starts[-1]:
        raise IndexError(f"rows should be in 0 to {starts[-1] - 1}")
    home = np.searchsorted(starts, rows, side="right") - 1
    order = np.argsort(home, kind="stable")
    used, first = np.unique(home[order], return_index=True)
    pieces = [
        _take_from(part.chunk(int(chunk)), rows[which] - starts[chunk])
        for chunk, which in zip(used, np.split(order, first[1:]), strict=True)
    ]
    taken = combined(pa.chunked_array(pieces))
    if len(used) == 1:
        return taken
    back = np.empty(len(rows), dtype=np.int64)
    back[order] = np.arange(len(rows))
    return taken.take(from_numpy(back))


def _take_from(chunk: pa.Array, rows: np.ndarray) -> pa.Array:
    kind = chunk.type
    if not is_view(kind):
        (widened,) = without_views(pa.chunked_array([chunk])).chunks
        return widened.take(from_numpy(rows))
    validity, views, *data = chunk.buffers()  # take views as 16 bytes each, sharing their data
    fixed = pa.Array.from_buffers(pa.binary(16), len(chunk), [validity, views], offset=chunk.offset)
    fixed = fixed.take(from_numpy(rows))
    taken = pa.Array.from_buffers(kind, len(fixed), [*fixed.buffers(), *data], offset=fixed.offset)
    return taken.cast(wide_type(kind))


@dataclass(frozen=True)
class Nulls:
    """The number of null rows in a column of item ids or weights, the number of all rows, and the first few nulls."""

    ids: bool
    where: str
    count: int
    total: int
    rows: list[int]

    def error(self) -> FastBCubedError:
        """Return the error that reports these nulls; its attribute `nulls` is this object."""
        if self.ids:
            error: FastBCubedError = NullError(
                f"{self.count} of {self.total} item ids are null in {self.where} (first rows: "
                f"{first_few(self.rows)}). Drop these rows, or give each item an id."
            )
        else:
            error = WeightError(
                f"{self.count} of {self.total} values of {self.where} are null or NaN (first rows: "
                f"{first_few(self.rows)}). Give each item a positive weight, or drop these rows."
            )
        error.nulls = self
        return error

    def moved(self, first_row: int) -> Self:
        """Return the same nulls with row numbers of the whole table, for a block that begins at `first_row`."""
        return replace(self, rows=[row + first_row for row in self.rows])

    @classmethod
    def sum(cls, parts: Sequence[Self], total: int) -> Self:
        """Combine the nulls of a table's blocks, given in order; weights are checked before ids."""
        kept = [part for part in parts if not part.ids] or parts
        mine = [part for part in kept if part.where == kept[0].where]
        rows = [row for part in mine for row in part.rows]
        return replace(mine[0], count=sum(part.count for part in mine), total=total, rows=rows)


def require_valid(data: pa.ChunkedArray, where: str) -> None:
    """Raise IdTypeError if Arrow data are invalid, naming the number of affected rows and the first few."""
    try:
        data.validate(full=True)
    except pa.ArrowInvalid as error:
        data = without_views(storage_of(data))
        rows = np.flatnonzero(np.concatenate([invalid_codes(chunk) for chunk in data.chunks]))
        if rows.size:
            raise IdTypeError(
                f"{rows.size} of {len(data)} codes in {where} are not in its dictionary (first rows: "
                f"{first_few(rows[:4].tolist())}). Encode the column again."
            ) from error
        values = [value for chunk in data.chunks for value in _as_bytes(chunk)]
        rows = np.flatnonzero([not _decodes(value) for value in values])
        if not rows.size:
            raise IdTypeError(f"{where} is not valid Arrow data: {error}. Write it again.") from error
        raise IdTypeError(
            f"{rows.size} of {len(data)} strings in {where} are not UTF-8 (first: "
            f"{first_few([values[row] for row in rows[:4]])} in rows {first_few(rows[:4].tolist())}). "
            "Write them in UTF-8, or cast the column to binary."
        ) from error


def invalid_codes(chunk: pa.Array) -> np.ndarray:
    """Return the mask of codes outside the dictionary; the dictionary itself, which may be long, is not scanned."""
    if not pa.types.is_dictionary(chunk.type):
        return np.zeros(len(chunk), dtype=bool)
    codes = to_numpy(chunk.indices)
    return ((codes < 0) | (codes >= len(chunk.dictionary))) & ~is_null(chunk)


def _as_bytes(chunk: pa.Array) -> list[bytes | None]:
    """Return texts as bytes; an empty list for other types."""
    if pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_decode()
    if not (pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type)):
        return []
    listed: list[bytes | None] = chunk.cast(pa.large_binary()).to_pylist()
    return listed


def _decodes(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False


#: Advice for floats that cannot be ids.
HINT = (
    "Nulls (in pandas) or decimal points (in CSV) turn whole numbers into floats: cast them to int64 (or "
    "to pandas' Int64, if there are nulls) or to string."
)


def is_fractional(kind: pa.DataType) -> bool:
    """Return whether this is a type of floats or decimals, whose values need not be whole numbers."""
    plain = plain_type(kind)
    return bool(pa.types.is_floating(plain) or pa.types.is_decimal(plain))


def whole_numbers(part: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    """Return floats or decimals as int64, with NaN as null; raise IdTypeError if one is not exactly an integer."""
    part = storage_of(part)
    if pa.types.is_dictionary(part.type):
        part = storage_of(values_of_codes(part))
    if pa.types.is_decimal(part.type):
        return _of_decimals(part, where)
    dtype = np.dtype(part.type.to_pandas_dtype())
    exact = 2.0 ** (np.finfo(dtype).nmant + 1)  # larger neighbouring integers share one float
    chunks, strange, large = [], [], []
    for chunk in part.chunks:
        values = to_numpy(chunk).astype(np.float64)
        nulls = is_null(chunk) | np.isnan(values)
        values[nulls] = 0
        whole = values == np.floor(values)
        strange += values[~whole].tolist()
        large += values[whole & (np.abs(values) >= exact)].tolist()
        chunks.append(from_numpy(np.where(np.abs(values) < exact, values, 0).astype(np.int64), nulls))
    if strange or large:
        fault = "" if strange else f"{exact:,.0f} or more, where {part.type} cannot represent all integers"
        _refuse(part, where, strange or large, fault)
    return pa.chunked_array(chunks, pa.int64())


def _of_decimals(part: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    wide = pa.decimal256(min(76, part.type.precision + 1), part.type.scale)
    try:
        return part.cast(wide).cast(pa.int64())
    except pa.ArrowInvalid:
        values = [value for value in part.to_pylist() if value is not None]
    strange = [value for value in values if value != value.to_integral_value()]
    _refuse(part, where, strange or values, "" if strange else "not all within 64 bits")


def _refuse(part: pa.ChunkedArray, where: str, values: list[Any], fault: str) -> NoReturn:
    shown = [str(value) if not isinstance(value, float) else value for value in values[:4]]
    raise IdTypeError(
        f"{where} should be integers, strings or binary, but the type is {part.type}, and {len(values)} of {len(part)} "
        f"values are {fault or 'not whole numbers'} (first: {first_few(shown)}). {HINT}"
    )
