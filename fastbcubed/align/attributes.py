"""Attributes: columns that items carry to slice by, to list or to keep, in types that can be sorted and written."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, FastBCubedError
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import (
    codes_of,
    combined,
    from_numpy,
    is_null,
    nulls_in_codes,
    require_valid,
    to_numpy,
    values_of_codes,
    with_parts,
)
from fastbcubed.inputs.tables import Source
from fastbcubed.runtime.threads import blocks

#: Extension types that are kept as strings; others are kept as their storage type.
AS_TEXT = ("arrow.uuid", "pandas.interval", "pandas.period")
#: Exceptions that Arrow raises for unsupported types.
UNABLE = (pa.ArrowException, NotImplementedError, TypeError)


def attribute(rows: Source, name: str) -> pa.ChunkedArray:
    """Return a column to slice by or to keep; raise ColumnError if its type allows neither."""
    return attributes(rows, [name])[0]


def attributes(rows: Source, names: list[str]) -> list[pa.ChunkedArray]:
    """Return several attributes, read in one pass."""
    found = []
    for name, values in zip(names, rows.columns(names) if names else (), strict=True):
        where = f"column {name!r} of {rows.where}"
        require_valid(values, where)
        found.append(as_kept(values, where))
    return found


def as_kept(values: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    """Return a column in the type in which it is kept; raise ColumnError if there is no such type."""
    kind = kept_type(values.type)
    if kind is None:
        raise ColumnError(_unable(where, values.type))
    return _as_kept(values, kind)


def refused(rows: Source, names: Iterable[str]) -> dict[str, str]:
    """Return the columns that cannot be kept, and the reason for each."""
    found = {}
    for name in names:
        if name in rows.lacking:
            found[name] = rows.lacking[name]
            continue
        try:
            kind = rows.type_of(name)
        except FastBCubedError as error:
            found[name] = str(error)
            continue
        if kept_type(kind) is None:
            found[name] = _unable(f"column {name!r} of {rows.where}", kind)
    return found


def _unable(where: str, kind: pa.DataType) -> str:
    return f"{where} has type {kind}, which supports neither slicing nor writing. Cast it to str."


@lru_cache(maxsize=256)
def kept_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type in which a column of this type is kept; None if Arrow does not support it."""
    import pyarrow.parquet as pq

    kept = _simple(kind)
    try:
        empty = _as_kept(pa.chunked_array([], kind), kept)
        pq.write_table(pa.table({"values": empty.take(pa.array([], pa.int64()))}), pa.BufferOutputStream())
    except (*UNABLE, OSError):  # OSError is raised for binary values of width 0
        return None
    return kept


def _simple(kind: pa.DataType) -> pa.DataType:
    """Return the simplest type with the same values, including within dictionaries, lists and structs."""
    is_type = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return pa.string() if kind.extension_name in AS_TEXT else _simple(kind.storage_type)
    if is_type.is_run_end_encoded(kind):
        return _simple(kind.value_type)
    if is_type.is_dictionary(kind):
        value = _simple(kind.value_type)
        return value if is_type.is_dictionary(value) else pa.dictionary(kind.index_type, value, kind.ordered)
    if is_type.is_null(kind):
        return pa.int64()
    if is_type.is_string_view(kind):
        return pa.large_string()
    if is_type.is_binary_view(kind):
        return pa.large_binary()
    if is_type.is_float16(kind):
        return pa.float32()
    if is_type.is_decimal32(kind) or is_type.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    return with_parts(kind, _simple)


def _as_kept(values: pa.ChunkedArray, kept: pa.DataType) -> pa.ChunkedArray:
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name in AS_TEXT:
            return pa.chunked_array([_as_text(chunk) for chunk in values.chunks], pa.string())
        values = pa.chunked_array([chunk.storage for chunk in values.chunks], kind.storage_type)
    elif pa.types.is_run_end_encoded(kind):
        values = pa.chunked_array([pc.run_end_decode(chunk) for chunk in values.chunks], kind.value_type)
    elif pa.types.is_dictionary(kind) and pa.types.is_dictionary(kind.value_type):
        values = values_of_codes(values)
    elif pa.types.is_dictionary(kind):
        chunks = [_with_values(chunk, kept) for chunk in nulls_in_codes(values).chunks]
        return pa.chunked_array(chunks, kept)
    else:
        return values if kind == kept else values.cast(kept)
    return _as_kept(values, kept)


def _with_values(chunk: pa.DictionaryArray, kept: pa.DataType) -> pa.DictionaryArray:
    values = combined(_as_kept(pa.chunked_array([chunk.dictionary]), kept.value_type))
    return pa.DictionaryArray.from_arrays(chunk.indices, values, ordered=kept.ordered)


def _as_text(array: Any) -> pa.Array:
    """Return the values of an extension type as strings; each distinct value is converted once if Arrow can find it."""
    if not pa.types.is_nested(array.type.storage_type):
        coded = array.storage.dictionary_encode()
        return _texts(type(array).from_storage(array.type, coded.dictionary)).take(coded.indices)
    return _texts(array)


def _texts(array: Any) -> pa.Array:
    values = array.to_pylist() if array.type.extension_name == "arrow.uuid" else list(array.to_pandas())
    known = [value is not None and value == value for value in values]  # in pandas, null may be NaN or NaT
    texts = [str(value) if there else None for value, there in zip(values, known, strict=True)]
    return pa.array(texts, pa.string())


def readable(values: pa.Array | pa.ChunkedArray) -> Any:
    """Return a column as strings if Python cannot represent some of its dates or times; otherwise unchanged.

    Examples
    --------
    >>> readable(pa.array([253_402_300_800, None], pa.timestamp("s"))).to_pylist()
    ['10000-01-01 00:00:00', None]
    """
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind)):
        return values
    try:
        _ends(values.cast(kind))
    except (OverflowError, ValueError, KeyError):  # KeyError: pytz lacks the time zone
        try:
            return values.cast(kind).cast(pa.string())
        except pa.ArrowInvalid:  # the time zone is not installed
            return readable(values.cast(kind).cast(pa.timestamp(kind.unit)))
    return values


def _ends(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    number = pa.int32() if values.type.bit_width == 32 else pa.int64()
    ends = pc.min_max(values.cast(number)).values()
    return [end.cast(values.type).as_py() for end in ends]


#: Number of rows that are numbered at a time.
AT_ONCE = 1 << 16


def number_values(values: pa.ChunkedArray, *, small: bool = False) -> tuple[np.ndarray, pa.Array]:
    """Return the number of each row's value, and the distinct values: ascending, null last.

    Numbers are int64; if `small`, uint8 or int32.
    """
    given = pa.types.is_dictionary(values.type)
    whole = combined(values if given else values.dictionary_encode())
    known = whole.dictionary
    if pa.types.is_floating(known.type):
        known, given = pc.add(known, pa.scalar(0.0, known.type)), True  # turns -0.0 into 0.0
    if given:  # a given dictionary may repeat values and contain nulls
        again = known.dictionary_encode()
        known = again.dictionary
    order = to_numpy(pc.array_sort_indices(known))
    kind: Any = np.int64 if not small else np.uint8 if order.size < 256 else np.int32
    rank = np.empty(order.size + 1, kind)
    rank[order] = np.arange(order.size)
    rank[-1] = order.size
    if given:
        rank = np.append(rank[np.where(is_null(again), -1, to_numpy(again.indices))], rank[-1])
    codes, null = codes_of(whole), is_null(whole.indices) if whole.indices.null_count else None
    numbers, has_null = np.empty(codes.size, kind), False
    for start, stop in blocks(codes.size, AT_ONCE):
        own = codes[start:stop]
        if null is not None:
            own = np.where(null[start:stop], np.int64(-1), own)
        numbers[start:stop] = rank[own]
        has_null |= bool((numbers[start:stop] == order.size).any())
    known = known.take(from_numpy(order))
    if has_null:
        known = pa.concat_arrays([known, pa.nulls(1, known.type)])
    return numbers, known
