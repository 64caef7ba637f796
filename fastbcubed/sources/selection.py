"""Rows of a column: which are null, which hold a value, and the values of some of them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.errors import IdTypeError, first_few
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import (
    from_numpy,
    id_kind,
    is_null,
    plain_type,
    storage_of,
    to_numpy,
    wide_type,
)


def null_mask(part: pa.ChunkedArray) -> np.ndarray | None:
    """Return which rows are null, by code or by value; None if none is."""
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
    """Return for each row what a mask of the dictionary's values says of its code; False if that is null."""
    if not len(mask):
        return np.zeros(len(chunk), dtype=bool)
    codes = to_numpy(chunk.indices)
    found = np.take(mask, codes.astype(np.int64, copy=False), mode="clip")  # codes of nulls are arbitrary
    return found & ~is_null(chunk)


def combined(data: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array; codes of different dictionaries are unified."""
    if data.num_chunks == 1:
        return data.chunk(0)
    if not data.num_chunks:  # where Arrow has no way for some types, dictionaries of large texts among them
        return pa.nulls(0, data.type)
    if pa.types.is_dictionary(data.type):
        data = _unified(data)
    array = data.combine_chunks()
    if isinstance(array, pa.Array):
        return array
    wide = wide_type(data.type)  # more than 2 GiB
    return pa.concat_arrays([chunk.cast(wide) for chunk in data.chunks])


def nulls_in_codes(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose dictionaries hold no null: codes are null instead; all else as it is."""
    dictionary = pa.types.is_dictionary(data.type)
    if not dictionary or not any(chunk.dictionary.null_count for chunk in data.chunks):
        return data
    return pa.chunked_array(list(map(_without_null, data.chunks)), without_views(data.slice(0, 0)).type)


def values_of_codes(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column without the dictionary, whatever its values are."""
    chunks = [chunk.dictionary.take(chunk.indices) for chunk in data.chunks]
    return pa.chunked_array(chunks, data.type.value_type)


def _without_null(chunk: pa.DictionaryArray) -> pa.DictionaryArray:
    values = chunk.dictionary
    lacking = is_null(values)
    place = from_numpy(np.cumsum(~lacking) - 1, lacking).cast(chunk.type.index_type)
    known = _take_from(values, np.flatnonzero(~lacking))
    return pa.DictionaryArray.from_arrays(place.take(chunk.indices), known, ordered=chunk.type.ordered)


def of_one_dictionary(data: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return a column whose chunks have one dictionary, as Arrow wants it where rows are taken; all else as it is."""
    several = isinstance(data, pa.ChunkedArray) and data.num_chunks > 1 and pa.types.is_dictionary(data.type)
    return pa.chunked_array([combined(data)]) if several else data


def take_or_null(data: pa.ChunkedArray, rows: np.ndarray) -> pa.ChunkedArray:
    """Return the values of some rows, null for row -1."""
    return of_one_dictionary(data).take(from_numpy(rows, rows < 0))


def _unified(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return chunks with one dictionary, whose codes are as wide as it takes."""
    data = nulls_in_codes(data)
    try:
        return data.unify_dictionaries()
    except pa.ArrowInvalid:  # more values than its codes can tell apart
        wide = pa.dictionary(pa.int32(), data.type.value_type, data.type.ordered)
        return data.cast(wide).unify_dictionaries()


def without_views(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return views, also those in dictionaries, lists and structs, as large strings or binary; all else as it is."""
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
    """Return a struct or a list with the types in it changed; all else as it is."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(change(field.type)) for field in kind.fields])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return make(kind.value_field.with_type(change(kind.value_type)))
    return kind


def plain(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without dictionaries or views, so that some of its rows take no more than their share."""
    data = without_views(data)
    kind = _without_dictionaries(data.type)
    return data if kind == data.type else data.cast(kind)


def _without_dictionaries(kind: pa.DataType) -> pa.DataType:
    """Return the type that values have without dictionaries, also in the fields of composite ids."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_dictionaries(field.type)) for field in kind.fields])
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_view(kind: pa.DataType) -> bool:
    """Say whether values lie in 16-byte views, which many of Arrow's functions do not know."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def take_rows(part: pa.ChunkedArray, rows: np.ndarray) -> pa.Array:
    """Take rows chunk by chunk, so that no chunk is copied as a whole."""
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
    validity, views, *data = chunk.buffers()  # take the views as 16 bytes each, with their data
    fixed = pa.Array.from_buffers(pa.binary(16), len(chunk), [validity, views], offset=chunk.offset)
    fixed = fixed.take(from_numpy(rows))
    taken = pa.Array.from_buffers(kind, len(fixed), [*fixed.buffers(), *data], offset=fixed.offset)
    return taken.cast(wide_type(kind))


def _is_whole(value: Any) -> bool:
    """Tell whether this is a whole number that is not written as one."""
    if isinstance(value, Decimal):
        return value.is_finite() and value % 1 == 0
    return isinstance(value, float) and value.is_integer()


def as_scalar(value: Any, part: pa.ChunkedArray, where: str) -> pa.Scalar:
    """Return a value as the column's type; null, which equals nothing, if it cannot hold it."""
    plain = plain_type(part.type)
    value = value.item() if isinstance(value, np.generic) else value
    if pa.types.is_integer(plain) and _is_whole(value):
        value = int(value)
    expected: type = {"integer": int, "string": str, "binary": bytes}[id_kind(plain, where)]
    value = getattr(value, "bytes", value) if expected is bytes else value  # uuid.UUID
    if not isinstance(value, expected) or isinstance(value, bool):
        raise IdTypeError(f"{first_few([value])} cannot be in {where}, of type {part.type}.")
    try:
        return pa.scalar(value, type=plain)
    except UnicodeEncodeError as error:
        raise IdTypeError(f"{first_few([value])} is not in {where}: it is no valid text.") from error
    except (pa.ArrowException, OverflowError):
        return pa.scalar(None, type=plain)  # an integer too wide, bytes of another length


def equal_mask(data: pa.ChunkedArray, scalar: pa.Scalar) -> np.ndarray:
    """Return which rows hold the value. Shape: (n,)."""
    if not scalar.is_valid or not len(data):
        return np.zeros(len(data), dtype=bool)
    masks = []
    for chunk in data.chunks:
        values = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
        values = storage_of(pa.chunked_array([values])).chunk(0)
        if is_view(values.type):
            wide = wide_type(values.type)
            values, scalar = values.cast(wide), pa.scalar(scalar.as_py(), wide)
        equal = pc.equal(values, scalar)
        mask = to_numpy(equal) & ~is_null(equal)
        masks.append(mask_by_code(mask, chunk) if pa.types.is_dictionary(chunk.type) else mask)
    return np.concatenate(masks)
