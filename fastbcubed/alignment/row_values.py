"""The values of aligned rows: of one side, or of whichever side has the item; null where there is none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.faults import RepeatedTableRows, Report, enforce
from fastbcubed.alignment.weights import Matched, repeated_rows
from fastbcubed.errors import IdTypeError
from fastbcubed.runtime.joining import match
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources.arrays import from_numpy, id_kind, storage_of
from fastbcubed.sources.columns import Column
from fastbcubed.sources.selection import combined

Rows = NDArray[np.int64]
#: Types that hold ids of different width, by their kind, the first one that does.
WIDEST = {
    "integer": (pa.int64(), pa.uint64(), pa.large_string()),
    "string": (pa.large_string(),),
    "binary": (pa.large_binary(),),
}


def take_or_null(column: Column, rows: Rows) -> pa.Array:
    """Return the values of some rows, null for row -1."""
    missing = rows < 0
    if not missing.any():
        return column.take(rows)
    values = column.take(rows[~missing])
    at = np.cumsum(~missing) - 1
    return values.take(from_numpy(at, missing))


def rows_or_null(table: pa.Table, rows: Rows | None) -> pa.Table:
    """Return some rows of a table, nulls for row -1; all of them where `rows` is None."""
    return table if rows is None else table.take(from_numpy(rows, rows < 0))


def either_id(a: Column, a_rows: Rows, b: Column, b_rows: Rows) -> pa.Array:
    """Take from `a` where it has the row, else from `b`; the types may differ in width."""
    lacking = a_rows < 0
    if not lacking.any():
        return a.take(a_rows)
    first, second = in_common(a.take(a_rows[~lacking]), b.take(b_rows[lacking]))
    at = np.empty(lacking.size, np.int64)
    at[~lacking] = np.arange(len(first))
    at[lacking] = len(first) + np.arange(len(second))
    return pa.concat_arrays([first, second]).take(from_numpy(at))


def in_common(a: pa.Array, b: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Bring two arrays of ids to one type that holds both; composite ids part by part, named as in `a`."""
    if pa.types.is_struct(a.type):
        parts = [in_common(x, y) for x, y in zip(a.flatten(), b.flatten(), strict=True)]
        names = [field.name for field in a.type.fields]
        first, second = (pa.StructArray.from_arrays(own, names) for own in zip(*parts, strict=True))
        return first, second
    a, b = (x.dictionary_decode() if pa.types.is_dictionary(x.type) else x for x in (a, b))
    if a.type == b.type:
        return a, b
    a, b = (combined(storage_of(pa.chunked_array([x]))) for x in (a, b))
    for kind in WIDEST[id_kind(a.type, "")]:
        with suppress(pa.ArrowInvalid):
            return a.cast(kind), b.cast(kind)
    raise IdTypeError(f"no type holds ids of both sides, which are {a.type} and {b.type}. Cast one of them")


def rows_of_attributes(
    items: Rows, given: Rows, first_of: Callable[[Rows], list[Any]], pool: Pool, report: Report = enforce
) -> Rows:
    """Return the row of the attributes for each item, -1 where there is none; both by the keys of items.

    `first_of` names rows of the attributes.
    """
    matches = match(items, given, pool)
    if matches.pred_repeats:
        named = first_of(repeated_rows(given))
        report(RepeatedTableRows("the attributes", matches.pred_repeats, given.size, named, "one row"))
    return matches.pred_of_true


def aligned_keys(keys: list[NDArray[np.int64]], matched: Matched) -> NDArray[np.int64]:
    """Return the key of the item of each aligned row."""
    true_rows, pred_rows = matched
    if true_rows is None:
        return keys[0]
    if pred_rows is None or (true_rows >= 0).all():
        return keys[0][true_rows]
    return np.where(true_rows >= 0, np.append(keys[0], 0)[true_rows], np.append(keys[1], 0)[pred_rows])
