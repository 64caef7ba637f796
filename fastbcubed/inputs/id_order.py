"""Sorting of many ids as 64-bit words, since NumPy sorts plain integers fastest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import from_numpy, storage_of, to_numpy
from fastbcubed.runtime import buffers
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import Codes, RowNumbers, Words

#: Returns one word of each of some rows, or of all; words sort like the ids.
WordOf = Callable[[Codes | slice], Words]
#: Number of rows processed at a time, so that arrays stay in the CPU cache.
AT_ONCE = 1 << 16
#: Maximum words per text; longer texts are sorted by Arrow.
MOST_WORDS = 32
SIGN = np.uint64(1 << 63)


def order_of_words(words: Sequence[WordOf], n: int) -> RowNumbers:
    """Return the rows sorted by their words, the first word first, with ties in row order.

    >>> order_of_words([lambda rows: np.array([7, 3, 7], np.uint64)[rows]], 3).tolist()
    [1, 0, 2]
    """
    # Idea: as many bits of a word as fit next to the row's position are sorted together with it as one integer. Rows
    # that tie are sorted again by the following bits, preceded by the number of their group of ties. Invariant: `at`
    # has the positions in `order` of the rows that still tie, group by group. Work proceeds in blocks, as touching new
    # memory takes longer than the computation.
    order: RowNumbers = buffers.empty(n, np.int64)
    for a, b in blocks(n, AT_ONCE):
        order[a:b] = np.arange(a, b)
    at: RowNumbers | None = None  # None if all rows tie, still in row order
    group, n_groups, n_tied = np.zeros(0, np.uint64), 1, n
    for word in words:
        if n_tied < 2:
            break
        values, width = _squeezed(word(slice(None) if at is None else order[at]))
        while width and n_tied > 1:
            low, high = (max(m - 1, 0).bit_length() for m in (n_tied, n_groups))
            taken = min(64 - low - high, width)
            width -= taken
            packed, begins = buffers.empty(n_tied, np.uint64), np.ones(n_tied + 1, np.bool_)
            for a, b in blocks(n_tied, AT_ONCE):
                part = (values[a:b] >> np.uint64(width)) & np.uint64((1 << taken) - 1)
                if high:
                    part |= group[a:b] << np.uint64(taken)
                np.bitwise_or(part << np.uint64(low), np.arange(a, b, dtype=np.uint64), out=packed[a:b])
            packed.sort()
            for a, b in blocks(n_tied - 1, AT_ONCE):
                begins[a + 1 : b + 1] = (packed[a:b] ^ packed[a + 1 : b + 1]) >> np.uint64(low)
            tied = np.flatnonzero(~(begins[1:] & begins[:-1]))
            packed &= np.uint64((1 << low) - 1)
            index, begins = packed.view(np.int64), begins[:-1][tied]
            if at is None:
                order, at = index, tied
            else:
                order[at], at = order[at[index]], at[tied]
            values, n_tied = values[index[tied]], tied.size
            group, n_groups = (np.cumsum(begins) - 1).astype(np.uint64), int(np.count_nonzero(begins))
    return order


def _squeezed(values: Words) -> tuple[Words, int]:
    """Return words without the bits that are the same in all, which cannot affect the order, and their width."""
    differ = 0
    for a, b in blocks(values.size, AT_ONCE):
        differ |= int(np.bitwise_or.reduce(values[a:b] ^ values[0]))
    runs = list[tuple[int, int]]()  # lowest bit and length of each range of differing bits
    for bit in range(differ.bit_length()):
        if not differ >> bit & 1:
            continue
        if runs and sum(runs[-1]) == bit:
            runs[-1] = runs[-1][0], runs[-1][1] + 1
        else:
            runs.append((bit, 1))
    if len(runs) == 1 and not runs[0][0]:
        return values, runs[0][1]
    widths = np.cumsum([0, *(length for _, length in runs)]).tolist()
    for a, b in blocks(values.size, AT_ONCE):
        found = np.zeros(b - a, np.uint64)
        for (first, length), width in zip(runs, widths, strict=False):
            found |= ((values[a:b] >> np.uint64(first)) & np.uint64((1 << length) - 1)) << np.uint64(width)
        values[a:b] = found
    return values, widths[-1]


def words_of_numbers(values: NDArray[Any]) -> WordOf:
    """Return a function from rows to words that sort like the numbers; 0.0 equals -0.0, and NaN is last."""

    def word(rows: Codes | slice) -> Words:
        own = values[rows]
        found = buffers.empty(own.size, np.uint64)
        for a, b in blocks(own.size, AT_ONCE):
            found[a:b] = _as_words(own[a:b])
        return found

    return word


def _as_words(numbers: NDArray[Any]) -> Words:
    if numbers.dtype.kind == "f":
        bits = (numbers.astype(np.float64) + 0.0).view(np.uint64)
        return np.where(np.isnan(numbers), ~np.uint64(0), np.where(bits & SIGN, ~bits, bits | SIGN))
    if numbers.dtype.kind == "u":
        return numbers.astype(np.uint64)
    return numbers.astype(np.int64).view(np.uint64) ^ SIGN


def words_of(ids: pa.Array) -> list[WordOf]:
    """Return words that sort like ids, the parts of composite ids in turn; words of nulls are arbitrary."""
    if pa.types.is_struct(ids.type):
        return [word for part in ids.flatten() for word in words_of(part)]
    ids = storage_of(pa.chunked_array([ids])).chunk(0)
    if pa.types.is_floating(ids.type) or pa.types.is_integer(ids.type):
        return [words_of_numbers(to_numpy(ids))]
    if (found := _words_of_texts(ids)) is not None:
        return found
    rank = to_numpy(pc.rank(ids, sort_keys="ascending", tiebreaker="min"))
    return [words_of_numbers(rank)]


def _words_of_texts(texts: pa.Array) -> list[WordOf] | None:
    """Return functions for eight bytes each of the texts, and for the length; None for very long texts or tiny data."""
    found = _bounds_and_bytes(texts)
    if found is None or found[1].size < 8:
        return None
    bounds, data = found
    starts, stops, size = bounds[:-1], bounds[1:], data.size - 8
    # A view of the eight bytes from each position; the last bytes of the data are read from the last position, and
    # shifted.
    eight = np.ndarray((size + 1,), "<u8", data, strides=(1,))
    longest = int((stops - starts).max(initial=0))
    if longest > 8 * MOST_WORDS:
        return None

    def eight_of(first: RowNumbers, last: RowNumbers) -> Words:
        beyond, unused = (first - size).clip(0, 7), 8 - (last - first).clip(0, 8)
        found = eight[np.minimum(first, size)].byteswap() << (beyond * 8).astype(np.uint64)
        bits = (unused % 8 * 8).astype(np.uint64)
        return np.where(unused < 8, found >> bits << bits, np.uint64(0))

    def word(k: int, rows: Codes | slice) -> Words:
        first, last = starts[rows], stops[rows]
        found = buffers.empty(first.size, np.uint64)
        for a, b in blocks(first.size, AT_ONCE):
            found[a:b] = eight_of(first[a:b].astype(np.int64) + 8 * k, last[a:b])
        return found

    def length(rows: Codes | slice) -> Words:
        return (stops[rows] - starts[rows]).astype(np.uint64)

    return [*(partial(word, k) for k in range(-(-longest // 8))), length]


def order_of_ids(ids: pa.Array) -> RowNumbers:
    """Return the rows sorted by id; there must be no nulls.

    >>> order_of_ids(pa.array(["b", "a", "a b"])).tolist()
    [1, 2, 0]
    """
    return order_of_words(words_of(ids), len(ids))


def same_ids(ids: pa.Array, others: pa.Array) -> Callable[[Codes, Codes], NDArray[np.bool_]]:
    """Return a function from rows of two arrays of one type to the mask of pairs whose ids are equal; none may be null.

    >>> same_ids(pa.array([5, 6]), pa.array([6]))(np.array([0, 1, 1]), np.array([0, 0, 0])).tolist()
    [False, True, True]
    """
    if pa.types.is_integer(ids.type):
        one, other = to_numpy(ids), to_numpy(others)
        return lambda rows, other_rows: one[rows] == other[other_rows]
    texts, other_texts = _bounds_and_bytes(ids), _bounds_and_bytes(others)
    if texts is None or other_texts is None:
        return lambda rows, other_rows: np.asarray(
            to_numpy(pc.equal(ids.take(from_numpy(rows)), others.take(from_numpy(other_rows))))
        )
    bounds, data = (texts[0], other_texts[0]), (texts[1], other_texts[1])

    def same(rows: Codes, other_rows: Codes) -> NDArray[np.bool_]:
        found = np.empty(rows.size, np.bool_)
        kernels.hashing.compare_texts(bounds, data, (rows, other_rows), found)
        return found

    return same


def _bounds_and_bytes(
    texts: pa.Array,
) -> tuple[NDArray[np.signedinteger[Any]], NDArray[np.uint8]] | None:
    """Return where each text begins, with the end of the last, and the bytes of all; None if these are no texts."""
    kind = texts.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        offset: type = np.int32
    elif pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        offset = np.int64
    else:
        return None
    _, ends, data = texts.buffers()
    if ends is None:
        return None
    bounds: NDArray[np.signedinteger[Any]] = np.frombuffer(ends, offset)[
        texts.offset : texts.offset + len(texts) + 1
    ]
    return bounds, np.frombuffer(data or b"", np.uint8)
