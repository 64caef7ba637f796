"""Arrow data that do not hold what they promise: text that is not UTF-8, codes of no value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from fastbcubed.errors import IdTypeError, first_few
from fastbcubed.sources.arrays import is_null, storage_of, to_numpy
from fastbcubed.sources.selection import without_views


def require_valid(data: pa.ChunkedArray, where: str) -> None:
    """Raise IdTypeError if Arrow data are invalid, and say in how many rows and in which."""
    try:
        data.validate(full=True)
    except pa.ArrowInvalid as error:
        data = without_views(storage_of(data))
        rows = np.flatnonzero(np.concatenate([_beyond(chunk) for chunk in data.chunks]))
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
            f"{rows.size} of {len(data)} texts in {where} are not UTF-8 (first: "
            f"{first_few([values[row] for row in rows[:4]])} in rows {first_few(rows[:4].tolist())}). "
            "Write them in UTF-8, or cast the column to binary."
        ) from error


def _beyond(chunk: pa.Array) -> np.ndarray:
    """Return which codes are not in the dictionary."""
    if not pa.types.is_dictionary(chunk.type):
        return np.zeros(len(chunk), dtype=bool)
    codes = to_numpy(chunk.indices)
    return ((codes < 0) | (codes >= len(chunk.dictionary))) & ~is_null(chunk)


def _as_bytes(chunk: pa.Array) -> list[bytes | None]:
    """Return text as bytes; nothing of other types."""
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
