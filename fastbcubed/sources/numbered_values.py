"""Keys of dictionaries of few values: the values are numbered, and their codes say which number a row has.

Small numbers also let cells be counted in a table: see `cells.condensing`.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pyarrow as pa

from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.sources.arrays import codes_of, storage_of, to_numpy
from fastbcubed.sources.selection import without_views

#: Values of all dictionaries of a column, at most.
FEW_VALUES = 1 << 16


def number_values(data: pa.ChunkedArray, pool: Pool, *, narrow: bool = False) -> np.ndarray | None:
    """Return a number per row, the same for equal values and no other; None if this is no dictionary of few values.

    Numbers are int64, or int32 if `narrow`. Null rows get an arbitrary number. Values and codes that are not valid
    raise pyarrow.ArrowInvalid.
    """
    if not pa.types.is_dictionary(data.type) or not len(data):
        return None
    chunks = [chunk for chunk in data.chunks if len(chunk)]
    tables = _number_dictionaries([chunk.dictionary for chunk in chunks])
    if tables is None:
        return None
    numbers = buffers.empty(len(data), np.int32 if narrow else np.int64)
    tables = [table.astype(numbers.dtype, copy=False) for table in tables]
    tasks = []
    for chunk, table, offset in zip(chunks, tables, accumulate(map(len, chunks), initial=0), strict=False):
        tasks += [
            (chunk.slice(start, stop - start), table, numbers[offset + start : offset + stop])
            for start, stop in blocks(len(chunk))
        ]
    pool.map(_look_up, *zip(*tasks, strict=True), stage="number ids")
    return numbers


def _number_dictionaries(dictionaries: list[pa.Array]) -> list[np.ndarray] | None:
    """Return the number of each value of some dictionaries; None if these have more than few values."""
    stored = [storage_of(pa.chunked_array([values])).chunk(0) for values in dictionaries]
    known = {_identity(values): values for values in stored}
    if sum(map(len, known.values())) > FEW_VALUES:
        return None
    values = without_views(pa.chunked_array(list(known.values())))
    values.validate(full=True)
    numbers = to_numpy(values.combine_chunks().dictionary_encode().indices).astype(np.int64)
    starts = accumulate(map(len, known.values()), initial=0)
    tables = {
        key: numbers[start : start + len(own)]
        for start, (key, own) in zip(starts, known.items(), strict=False)
    }
    return [tables[_identity(values)] for values in stored]


def _identity(values: pa.Array) -> tuple[int, ...]:
    """Return what tells apart dictionaries in memory."""
    return (
        values.offset,
        len(values),
        *(0 if buffer is None else buffer.address for buffer in values.buffers()),
    )


def _look_up(rows: pa.DictionaryArray, table: np.ndarray, out: np.ndarray) -> None:
    codes = codes_of(rows)
    if (table == np.arange(table.size)).all() and not rows.null_count:
        np.copyto(out, codes)
    else:
        np.take(table if table.size else np.zeros(1, out.dtype), codes, out=out, mode="clip")
