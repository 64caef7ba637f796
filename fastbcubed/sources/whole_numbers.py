"""Floats and decimals that are whole numbers, as ids come from pandas and CSV → integers; others are refused."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from fastbcubed.errors import IdTypeError, first_few
from fastbcubed.sources.arrays import from_numpy, is_null, plain_type, storage_of, to_numpy
from fastbcubed.sources.selection import values_of_codes

#: What is said of floats that are no ids.
HINT = (
    "Whole numbers become float through nulls (pandas) or decimal points (CSV): cast them to int64 (or to pandas' "
    "Int64, if there are nulls) or to string."
)


def is_fractional(kind: pa.DataType) -> bool:
    """Say whether values of a type may be whole numbers or not."""
    plain = plain_type(kind)
    return bool(pa.types.is_floating(plain) or pa.types.is_decimal(plain))


def whole_numbers(part: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    """Return floats or decimals as int64, NaN as null; IdTypeError if one is not whole, or not exact as a float."""
    part = storage_of(part)
    if pa.types.is_dictionary(part.type):
        part = storage_of(values_of_codes(part))
    if pa.types.is_decimal(part.type):
        return _of_decimals(part, where)
    dtype = np.dtype(part.type.to_pandas_dtype())
    exact = 2.0 ** (np.finfo(dtype).nmant + 1)  # from here on neighbours are the same float
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
        fault = "" if strange else f"{exact:,.0f} or more, where {part.type} cannot tell all numbers apart"
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
