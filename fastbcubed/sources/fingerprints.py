"""Keys of texts, bytes and composite ids: fingerprints, and the proof that they differ.

The keys of a column are the first words of 128-bit fingerprints. A check over all pairs of words
shows that equal first words have equal second words; if not, all is hashed again with another seed.
So keys are equal exactly where values are equal, unless two different values agree in all
128 bits (for 10**9 values a chance of about 10**-20).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.parts import ROWS_AT_ONCE, sampled_rows
from fastbcubed.runtime.pool import BLOCK, Pool, blocks, lend
from fastbcubed.sources.arrays import codes_of, from_numpy, read_only, storage_of, to_numpy
from fastbcubed.sources.selection import is_view

Pairs = tuple[np.ndarray, np.ndarray]
Writer = Callable[[int, int, np.ndarray, np.ndarray], None]

#: Pairs copied at a time by the collision check: 256 MiB.
SCRATCH = 1 << 24
#: A partition with more rows than this holds a frequent value and is checked without a copy.
HEAVY = 1 << 20
#: Rows of an average partition, so that its pairs and slots stay in cache.
PARTITION = 1 << 14
#: Of fewer pairs none are dropped; of others, where a sample has such a share of pairs that repeat.
FEWEST_TO_SAMPLE = 1 << 17
MANY_REPEATS = 1 / 3
#: Pairs that are known to have been seen; they stay in cache. So many that are kept have memory at once.
SEEN = 1 << 15
PAIRS_AT_ONCE = 1 << 19

_EMPTY = np.empty(0, dtype=np.uint8)


def _bytes_of(buffer: pa.Buffer | None) -> np.ndarray:
    view = _EMPTY if buffer is None or buffer.size == 0 else np.frombuffer(buffer, dtype=np.uint8)
    return read_only(view)


def offsets_and_bytes(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return where the values of an array of texts or bytes begin, with the end of the last, and what they are in."""
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.frombuffer(
        offsets_buffer,
        dtype=np.int64 if large else np.int32,
        count=len(array) + 1,
        offset=array.offset * (8 if large else 4),
    )
    return read_only(offsets), _bytes_of(data_buffer)


def laid_out(array: pa.Array) -> pa.Array:
    """Return texts or bytes one after the other: views are copied, as bytes that nobody has looked at."""
    return array.cast(pa.large_binary()) if is_view(array.type) else array


def hash_array(array: pa.Array, words: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
    """Write the fingerprints of an Arrow array, no dictionary. Shapes: (n,), (6,), (n,), (n,).

    Text that is not UTF-8, which files and other libraries may bring, raises pyarrow.ArrowInvalid.
    """
    kind = array.type
    if len(array) == 0:
        return
    if pa.types.is_integer(kind):
        values = read_only(to_numpy(array).astype(np.int64, copy=False))
        unsigned = bool(pa.types.is_uint64(kind))
        kernels.hashing.hash_integers(values, unsigned, words, first, second)
        return
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        data = _bytes_of(array.buffers()[1])[array.offset * width :]
        kernels.hashing.hash_fixed(data, width, words, first, second)
        return
    offsets, data = offsets_and_bytes(laid_out(array))
    is_ascii = kernels.hashing.hash_strings(offsets, data, words, first, second)
    if not is_ascii:  # bytes alone, or more than ASCII
        array.validate(full=True)


def part_writer(data: pa.ChunkedArray, words: np.ndarray) -> Writer:
    """Return a function that writes the fingerprints of rows start to stop of a column.

    The values of a dictionary are hashed here, once, and looked up by code later.
    """
    starts = list(accumulate((len(chunk) for chunk in data.chunks), initial=0))
    tables = dictionary_tables(data, words) if pa.types.is_dictionary(data.type) else None

    def write(start: int, stop: int, first: np.ndarray, second: np.ndarray) -> None:
        at, chunk = start, max(bisect_right(starts, start) - 1, 0)
        while at < stop:
            end = min(stop, starts[chunk + 1])
            rows = data.chunk(chunk).slice(at - starts[chunk], end - at)
            into = slice(at - start, end - start)
            if tables is None:
                hash_array(rows, words, first[into], second[into])
            else:
                codes = codes_of(rows)
                for table, out in zip(tables[chunk], (first, second), strict=True):
                    np.take(table, codes, out=out[into], mode="clip")
            at, chunk = end, chunk + 1

    return write


def _of_values_in_use(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose dictionaries are not longer than their rows, as those of a block of a long column are."""
    if not pa.types.is_dictionary(data.type) or all(len(c.dictionary) <= len(c) for c in data.chunks):
        return data
    if is_view(data.type.value_type):  # Arrow cannot take some of them
        return data
    return pa.chunked_array([_compact(chunk) for chunk in data.chunks], data.type)


def _compact(chunk: pa.DictionaryArray) -> pa.DictionaryArray:
    if len(chunk.dictionary) <= len(chunk):
        return chunk
    codes = codes_of(chunk)
    nulls = to_numpy(chunk.indices.is_null())
    used, code = np.unique(np.where(nulls, 0, codes), return_inverse=True)
    indices = from_numpy(code.astype(codes.dtype), nulls).cast(chunk.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, chunk.dictionary.take(from_numpy(used)))


def dictionary_tables(data: pa.ChunkedArray, words: np.ndarray) -> list[Pairs]:
    """Return the fingerprints of the dictionary of each chunk; equal objects are hashed once."""
    known: dict[Any, Pairs] = {}
    tables = []
    for chunk in data.chunks:
        values = storage_of(pa.chunked_array([chunk.dictionary])).chunk(0)
        identity = (
            values.offset,
            len(values),
            *(b.address if b else None for b in values.buffers()),
        )
        if identity not in known:
            pair = tuple(np.zeros(max(len(values), 1), dtype=np.uint64) for _ in range(2))
            hash_array(values, words, *(half[: len(values)] for half in pair))
            known[identity] = pair  # type: ignore[assignment]
        tables.append(known[identity])
    return tables


def composite_writer(parts: Sequence[pa.ChunkedArray], words: np.ndarray) -> Writer:
    """Return a writer for tuples, one part per column, whose fingerprints are folded in turn."""
    writers = [part_writer(part, words) for part in parts]

    def write(start: int, stop: int, first: np.ndarray, second: np.ndarray) -> None:
        first[:], second[:] = words[0], words[1]
        halves = np.empty((2, stop - start), dtype=np.uint64)
        for writer in writers:
            writer(start, stop, halves[0], halves[1])
            kernels.hashing.combine_words(first, second, halves[0], halves[1], words)

    return write


def writer_of(parts: Sequence[pa.ChunkedArray], words: np.ndarray) -> Writer:
    """Return what writes the fingerprints of rows start to stop of a column of one or more parts."""
    parts = [_of_values_in_use(part) for part in parts]
    return part_writer(parts[0], words) if len(parts) == 1 else composite_writer(parts, words)


def write_pairs(parts: Sequence[pa.ChunkedArray], seed: int, pool: Pool) -> tuple[np.ndarray, list[Pairs]]:
    """Return the keys of a column of one or more parts, and the pairs of words to check.

    For a dictionary these are the pairs of its values, which are few; else one pair per row.
    """
    parts = [_of_values_in_use(part) for part in parts]
    if len(parts) == 1 and pa.types.is_dictionary(parts[0].type):
        n, words = len(parts[0]), kernels.hashing.seed_words(seed)
        first = buffers.empty(n, np.uint64)
        starts, stops = zip(*blocks(n), strict=True)
        tables = {id(pair): pair for pair in dictionary_tables(parts[0], words)}
        data = parts[0]
        pairs = list(tables.values())
        lookup = part_writer(data, words)

        def gather(start: int, stop: int) -> None:
            lookup(start, stop, first[start:stop], np.empty(stop - start, dtype=np.uint64))

        pool.map(gather, starts, stops, stage="hash ids")
        return first.view(np.int64), pairs
    keys, second = write_both(parts, seed, pool)
    return keys, [(keys.view(np.uint64), second)]


def write_both(parts: Sequence[pa.ChunkedArray], seed: int, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of a column of one or more parts, and the second word of every row."""
    n = len(parts[0])
    first, second = buffers.empty(n, np.uint64), buffers.empty(n, np.uint64)
    starts, stops = zip(*blocks(n), strict=True)
    writer = writer_of(parts, kernels.hashing.seed_words(seed))

    def write(start: int, stop: int) -> None:
        writer(start, stop, first[start:stop], second[start:stop])

    pool.map(write, starts, stops, stage="hash ids")
    return first.view(np.int64), second


def find_collision(pairs: Sequence[Pairs], pool: Pool) -> bool:
    """Say whether two pairs have equal first words and different second words; most that repeat are passed over."""
    return find_conflict([kept for pair in pairs for kept in _without_repeats(*pair, pool)], pool)


def find_conflict(pairs: Sequence[Pairs], pool: Pool) -> bool:
    """Say whether two pairs have equal first words and different second words.

    Pairs are partitioned by the leading bits of the first word, a few hundred partitions of cache
    size at a time, so that the scratch memory stays below 256 MiB; cost is linear in the rows.
    """
    n = sum(len(first) for first, _ in pairs)
    if n == 0:
        return False
    bits = min(max(1, (n // PARTITION).bit_length()), 14)
    shift = np.uint64(64 - bits)
    size = max(BLOCK, n // 128)
    pieces = [
        (first[start:stop], second[start:stop])
        for first, second in pairs
        for start, stop in blocks(len(first), size)
    ]
    firsts, seconds = zip(*pieces, strict=True)
    counts = np.zeros((len(pieces), 1 << bits), dtype=np.int64)
    shifts = [shift] * len(pieces)
    pool.map(kernels.hashing.count_partitions, firsts, shifts, counts, stage="check ids")
    totals = counts.sum(axis=0)
    heavy = totals > HEAVY
    if heavy.any():
        table, used, found = np.zeros((1 << 16, 2), dtype=np.uint64), 0, False
        for first, second in pieces:
            table, used, found = kernels.hashing.insert_pairs(first, second, shift, heavy, table, used)
            if found:
                return True
        totals[heavy] = 0
        counts[:, heavy] = 0
    scratch = buffers.empty((min(n, SCRATCH), 2), np.uint64)
    ends = np.cumsum(totals)
    begin = 0
    while begin < len(totals):
        done = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + SCRATCH, side="right")))
        bounds = np.concatenate(([0], ends[begin:end] - done))
        cursors = np.full(counts.shape, -1, dtype=np.int64)
        before = np.cumsum(counts[:, begin:end], axis=0) - counts[:, begin:end]
        cursors[:, begin:end] = np.where(heavy[begin:end], -1, before + bounds[:-1])
        scratches = [scratch] * len(pieces)
        pool.map(
            kernels.hashing.scatter_pairs, firsts, seconds, shifts, cursors, scratches, stage="check ids"
        )
        parts = [bounds[at : at + 17] for at in range(0, len(bounds) - 1, 16)]
        if any(pool.map(lambda part: _conflict(scratch, part, pool), parts, stage="check ids")):
            return True
        begin = end
    return False


def _without_repeats(first: np.ndarray, second: np.ndarray, pool: Pool) -> list[Pairs]:
    """Return pairs without most of those that repeat, where a sample has many: all different ones remain."""
    if len(first) < FEWEST_TO_SAMPLE:
        return [(first, second)]
    sample = np.sort(first[sampled_rows(len(first))])
    if (sample[1:] == sample[:-1]).mean() < MANY_REPEATS:
        return [(first, second)]

    repeats: list[Repeats] = []

    def drop(start: int, stop: int) -> None:
        with lend(repeats, Repeats) as seen:
            seen.add(first[start:stop], second[start:stop])

    pool.map(drop, *zip(*blocks(len(first), ROWS_AT_ONCE), strict=True), stage="check ids")
    return [pairs for seen in repeats for pairs in seen.kept]


class Repeats:
    """The pairs of one column that one thread has seen, without most of those that repeat.

    Which pairs these are depends on the thread; all different pairs are among those of all threads.
    """

    def __init__(self) -> None:
        self._seen = np.zeros(SEEN, np.uint64)  # a pair whose second word is 0 is dropped
        self._rooms: list[np.ndarray] = []
        self._ends: list[int] = []

    def add(self, first: np.ndarray, second: np.ndarray) -> None:
        """Add the pairs of a block."""
        if not self._rooms or self._ends[-1] + first.size > self._rooms[-1].shape[1]:
            self._rooms.append(buffers.empty((2, max(PAIRS_AT_ONCE, first.size)), np.uint64))
            self._ends.append(0)
        room = self._rooms[-1][:, self._ends[-1] :]
        self._ends[-1] += kernels.hashing.drop_repeats(first, second, self._seen, room[0], room[1])

    @property
    def kept(self) -> list[Pairs]:
        """The pairs that have not been dropped."""
        return [(room[0, :end], room[1, :end]) for room, end in zip(self._rooms, self._ends, strict=True)]


def _conflict(scratch: np.ndarray, bounds: np.ndarray, pool: Pool) -> bool:
    with pool.workspace("slots", lambda: np.empty(2 * HEAVY, dtype=np.int32)) as slots:
        return bool(kernels.hashing.find_conflict(scratch, bounds, slots))
