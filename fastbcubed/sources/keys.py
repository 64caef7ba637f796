"""Columns → keys: int64 numbers that are equal exactly where the values are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Protocol

import numpy as np
import pyarrow as pa

from fastbcubed.errors import IdTypeError
from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import codes_of, plain_type, read_only, storage_of, to_numpy
from fastbcubed.sources.numbered_texts import number_texts
from fastbcubed.sources.numbered_values import number_values
from fastbcubed.sources.suggestions import Typed
from fastbcubed.sources.validity import require_valid

#: Hash seeds that are tried; a second one is needed about once in 3,000 columns of 10**8 strings.
ATTEMPTS = 8
#: The types of keys, and of those that are half as much to read where all of them fit.
WIDE, NARROW = np.dtype(np.int64), np.dtype(np.int32)


class Column(Protocol):
    """What keys need to know of a column of ids; see `sources.columns`."""

    names: tuple[str, ...]
    where: str
    kind: str
    kinds: tuple[str, ...]
    parts: tuple[pa.ChunkedArray, ...]
    plain: tuple[pa.ChunkedArray, ...]

    def __len__(self) -> int: ...

    def refuse_nulls(self) -> None:
        """Raise NullError if an id is null."""


def key_pair(a: Column, b: Column, pool: Pool | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of two columns of item ids, comparable with each other; a null id raises."""
    for column in (a, b):
        column.refuse_nulls()
    keys = comparable_keys([a, b], pool)
    return keys[0], keys[1]


def comparable_keys(
    columns: Sequence[Column], pool: Pool | None = None, *, narrow: bool = False
) -> list[np.ndarray]:
    """Return the keys of columns, equal across them exactly where the values are equal.

    They are of one kind; an empty column, or one of nulls only, goes with every kind. Keys of one column without nulls
    may be `narrow`: int32, where all fit.

    Text that is not UTF-8, and a code that is not in its dictionary, raise IdTypeError.
    """
    check_kinds(columns)
    try:
        with _some(pool) as threads:
            return _keys(columns, threads, narrow)
    except pa.ArrowInvalid:
        for column in columns:
            for part in column.plain:
                require_valid(part, column.where)
        raise


def _keys(columns: Sequence[Column], threads: Pool, narrow: bool) -> list[np.ndarray]:
    plain = all(column.kind == "integer" for column in columns)
    if plain and not _signs_clash(columns):
        return [read_only(_integer_keys(column.plain[0], threads, narrow)) for column in columns]
    if len(columns) == len(columns[0].plain) == 1:
        for number in (number_values, number_texts):
            numbers = number(columns[0].plain[0], threads, narrow=narrow)
            if numbers is not None:
                return [read_only(numbers)]
    from fastbcubed.sources.fingerprints import find_collision, write_pairs  # imports numba

    for seed in range(ATTEMPTS):
        written = [write_pairs(column.plain, seed, threads) for column in columns]
        if not find_collision([pair for _, pairs in written for pair in pairs], threads):
            return [read_only(keys) for keys, _ in written]
    raise IdTypeError(  # cannot happen by chance
        f"{columns[0].where}: values collide under all {ATTEMPTS} hash functions. Use integer ids."
    )


@contextmanager
def _some(pool: Pool | None) -> Iterator[Pool]:
    if pool is not None:
        yield pool
    else:
        with Pool(threads=1) as own:
            yield own


def are_plain(columns: Sequence[Column]) -> bool:
    """Say whether integers serve as their own keys in all of these columns, judged by their types."""
    kinds = [plain_type(part.type) for column in columns for part in column.plain]
    unsigned = [pa.types.is_uint64(kind) for kind in kinds]
    return all(column.kind == "integer" for column in columns) and (all(unsigned) or not any(unsigned))


def seeded_keys(
    column: Column, seed: int | None, pool: Pool
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the keys of a block of a column, and the pairs of words that prove them if all blocks' are checked.

    The same seed makes keys of several blocks, or columns, comparable; it is None where integers are their
    own keys.
    """
    try:
        if seed is None:
            return read_only(_integer_keys(column.plain[0], pool)), []
        from fastbcubed.sources.fingerprints import write_pairs  # imports numba

        return write_pairs(column.plain, seed, pool)
    except pa.ArrowInvalid:
        for part in column.plain:
            require_valid(part, column.where)
        raise


def proved_keys(column: Column, seed: int, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of a block of a column, and for each row the word that proves its key."""
    from fastbcubed.sources.fingerprints import write_both

    try:
        return write_both(column.plain, seed, pool)
    except pa.ArrowInvalid:
        for part in column.plain:
            require_valid(part, column.where)
        raise


def check_kinds(columns: Sequence[Column]) -> None:
    """Raise IdTypeError if columns that hold values are of different kinds."""
    known = [c for c in columns if len(c) and not all(_all_null(part) for part in c.plain)]
    for column in known[1:]:
        if column.kinds != known[0].kinds:
            found = [
                f"{' and '.join(str(part.type) for part in c.parts)} in {c.where}" for c in (known[0], column)
            ]
            raise IdTypeError(
                f"Ids of different types never match: {', but '.join(found)}. "
                f"To match them, {_way_out(known[0], column)}."
            )


def _way_out(first: Column, second: Column) -> str:
    """Return what to do about ids of different kinds: to cast them, or to name as many columns on both sides."""
    if len(first.parts) == len(second.parts):
        return "cast one side to the type of the other"
    if common := [name for name in first.names if name in second.names]:
        return f"name the same columns on both sides: {Typed()({'item': common})}"
    return (
        "name as many columns on both sides, with item= (of links with left= and right=), and cast one side to the "
        "type of the other if need be"
    )


def _all_null(part: pa.ChunkedArray) -> bool:
    return bool(part.null_count == len(part))


def _signs_clash(columns: Sequence[Column]) -> bool:
    """Say whether reinterpreting uint64 as int64 would make two different integers equal."""
    parts = [column.plain[0] for column in columns]
    unsigned = [part for part in parts if pa.types.is_uint64(plain_type(part.type))]
    if len(unsigned) in (0, len(parts)):
        return False
    signed = [part for part in parts if not pa.types.is_uint64(plain_type(part.type))]
    return any(_reaches(part, True) for part in unsigned) and any(_reaches(part, False) for part in signed)


def _reaches(part: pa.ChunkedArray, unsigned: bool) -> bool:
    for chunk in part.chunks:
        values = chunk.dictionary if pa.types.is_dictionary(part.type) else chunk
        bounds = pc.min_max(values).as_py()
        if unsigned and (bounds["max"] or 0) >= 2**63:
            return True
        if not unsigned and (bounds["min"] or 0) < 0:
            return True
    return False


def widened(keys: np.ndarray, pool: Pool) -> np.ndarray:
    """Return keys as int64, those that are narrow copied."""
    if keys.dtype == WIDE:
        return keys
    wide = buffers.empty(keys.size, WIDE)

    def copy(start: int, stop: int) -> None:
        np.copyto(wide[start:stop], keys[start:stop])

    pool.map(copy, *zip(*blocks(keys.size), strict=True), stage="read ids")
    return read_only(wide)


def _integer_keys(part: pa.ChunkedArray, pool: Pool, narrow: bool = False) -> np.ndarray:
    pieces = [_numbers_of(chunk) for chunk in part.chunks]
    dtype = NARROW if narrow and all(_is_narrow(*piece) for piece in pieces) else WIDE
    tables = [None if table is None else table.astype(dtype, copy=False) for _, table in pieces]
    if len(pieces) == 1:
        view, table = pieces[0]
        if table is None and view.dtype.itemsize == dtype.itemsize:
            return view.view(dtype)
    keys = buffers.empty(len(part), dtype)
    starts = accumulate((view.size for view, _ in pieces), initial=0)
    tasks = [
        (view[start:stop], table, keys[offset + start : offset + stop])
        for (view, _), table, offset in zip(pieces, tables, starts, strict=False)
        for start, stop in blocks(view.size)
    ]
    if tasks:
        pool.map(_copy_block, *zip(*tasks, strict=True), stage="read ids")
    return keys


def _numbers_of(chunk: pa.Array) -> tuple[np.ndarray, np.ndarray | None]:
    """Return integers, or codes and the integers that these stand for."""
    if not pa.types.is_dictionary(chunk.type):
        return to_numpy(chunk), None
    values = storage_of(pa.chunked_array([chunk.dictionary])).chunk(0)
    return codes_of(chunk), to_numpy(values).astype(WIDE) if len(values) else np.zeros(1, WIDE)


def _is_narrow(view: np.ndarray, table: np.ndarray | None) -> bool:
    """Tell whether keys fit into 32 bits: by their type, or each that a code stands for."""
    if table is None:
        return np.can_cast(view.dtype, NARROW)
    return bool((table.astype(NARROW) == table).all())


def _copy_block(values: np.ndarray, table: np.ndarray | None, out: np.ndarray) -> None:
    if table is None:
        np.copyto(out, values.view(np.int64) if values.dtype == np.uint64 else values)
    else:
        np.take(table, values, out=out, mode="clip")
