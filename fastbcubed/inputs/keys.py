"""Conversion of Arrow data to int64 keys that are equal exactly where the values are equal."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, chain, product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed import kernels
from fastbcubed.inputs.arrays import (
    codes_of,
    combined,
    from_numpy,
    is_view,
    read_only,
    storage_of,
    take_rows,
    to_numpy,
    without_views,
)
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_codes import ATTEMPTS, MOST_VALUES, placed
from fastbcubed.runtime.key_partitions import ROWS_AT_ONCE, sampled_rows
from fastbcubed.runtime.threads import BLOCK, Pool, blocks, lend

Pairs = tuple[np.ndarray, np.ndarray]
Writer = Callable[[int, int, np.ndarray, np.ndarray], None]

#: Pairs copied at a time by the collision check (256 MiB).
SCRATCH = 1 << 24
#: A partition with more rows than this holds a frequent value; it is checked without copying it.
HEAVY = 1 << 20
#: Average rows per partition, so that its pairs and hash slots stay in the CPU cache.
PARTITION = 1 << 14
#: Repeated pairs are dropped only if there are this many pairs, and a sample has at least this share of repeats.
FEWEST_TO_SAMPLE = 1 << 17
MANY_REPEATS = 1 / 3
#: Number of slots for seen pairs, which fit into the CPU cache; and number of kept pairs per chunk of memory.
SEEN = 1 << 15
PAIRS_AT_ONCE = 1 << 19


def _bytes_of(buffer: pa.Buffer | None) -> np.ndarray:
    return read_only(np.frombuffer(buffer if buffer is not None and buffer.size else b"", dtype=np.uint8))


def offsets_and_bytes(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of an array of strings or bytes, including the end of the last, and its data buffer."""
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offsets_buffer, data_buffer = array.buffers()
    kind = np.dtype(np.int64 if large else np.int32)
    offsets = np.frombuffer(offsets_buffer, kind, len(array) + 1, array.offset * kind.itemsize)
    return read_only(offsets), _bytes_of(data_buffer)


def laid_out(array: pa.Array) -> pa.Array:
    """Return strings or bytes stored contiguously: views are copied as unvalidated bytes."""
    return array.cast(pa.large_binary()) if is_view(array.type) else array


def hash_array(array: pa.Array, words: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
    """Write the two-word fingerprints of an Arrow array without dictionary. Shapes: (n,), (6,), (n,), (n,).

    Raise pyarrow.ArrowInvalid for text that is not UTF-8, which files and other libraries may contain.
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
    if not is_ascii:  # bytes, or non-ASCII text
        array.validate(full=True)


def part_writer(data: pa.ChunkedArray, words: np.ndarray, tables: list[Pairs] | None = None) -> Writer:
    """Return a function that writes the fingerprints of the rows from start to stop of a column.

    Dictionary values are hashed here, once, unless `tables` has their fingerprints; rows then look them up by code.
    """
    starts = list(accumulate((len(chunk) for chunk in data.chunks), initial=0))
    if tables is None and pa.types.is_dictionary(data.type):
        tables = dictionary_tables(data, words)

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


def _with_compact_dictionaries(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose dictionaries are no longer than its rows; a block of a long column may have longer ones."""
    if not pa.types.is_dictionary(data.type) or all(len(c.dictionary) <= len(c) for c in data.chunks):
        return data
    if is_view(data.type.value_type):  # Arrow cannot take rows of some dictionaries of views
        return data
    return pa.chunked_array([_compact(chunk) for chunk in data.chunks], data.type)


def _compact(chunk: pa.DictionaryArray) -> pa.DictionaryArray:
    if len(chunk.dictionary) <= len(chunk):
        return chunk
    codes = codes_of(chunk)
    nulls = to_numpy(chunk.indices.is_null())
    used, code = np.unique(np.where(nulls, 0, codes), return_inverse=True)
    indices = from_numpy(code.astype(codes.dtype), nulls).cast(chunk.type.index_type)
    values = chunk.dictionary.take(from_numpy(used))
    return pa.DictionaryArray.from_arrays(indices, values, ordered=chunk.type.ordered)


def dictionary_tables(data: pa.ChunkedArray, words: np.ndarray) -> list[Pairs]:
    """Return the fingerprints of the dictionary of each chunk; a dictionary shared by chunks is hashed once."""
    known: dict[tuple[int, ...], Pairs] = {}
    tables = []
    for chunk in data.chunks:
        values = combined(storage_of(pa.chunked_array([chunk.dictionary])))
        identity = _identity(values)
        if identity not in known:
            first, second = np.zeros((2, max(len(values), 1)), np.uint64)
            hash_array(values, words, first[: len(values)], second[: len(values)])
            known[identity] = first, second
        tables.append(known[identity])
    return tables


def composite_writer(parts: Sequence[pa.ChunkedArray], words: np.ndarray) -> Writer:
    """Return a writer for composite ids, one part per column, that combines the parts' fingerprints in order."""
    writers = [part_writer(part, words) for part in parts]

    def write(start: int, stop: int, first: np.ndarray, second: np.ndarray) -> None:
        first[:], second[:] = words[0], words[1]
        halves = np.empty((2, stop - start), dtype=np.uint64)
        for writer in writers:
            writer(start, stop, halves[0], halves[1])
            kernels.hashing.combine_words(first, second, halves[0], halves[1], words)

    return write


def writer_of(parts: Sequence[pa.ChunkedArray], words: np.ndarray) -> Writer:
    """Return a function that writes the fingerprints of rows start to stop of a column of any number of parts."""
    parts = [_with_compact_dictionaries(part) for part in parts]
    return part_writer(parts[0], words) if len(parts) == 1 else composite_writer(parts, words)


def write_pairs(parts: Sequence[pa.ChunkedArray], seed: int, pool: Pool) -> tuple[np.ndarray, list[Pairs]]:
    """Return the keys of a column of any number of parts, and the fingerprints to check for collisions.

    A fingerprint is a pair of words, of which the first is the key. A dictionary has one pair per value, other columns
    one per row.
    """
    parts = [_with_compact_dictionaries(part) for part in parts]
    if len(parts) == 1 and pa.types.is_dictionary(parts[0].type):
        n, words = len(parts[0]), kernels.hashing.seed_words(seed)
        first = buffers.empty(n, np.uint64)
        starts, stops = zip(*blocks(n), strict=True)
        tables = dictionary_tables(parts[0], words)
        lookup = part_writer(parts[0], words, tables)

        def gather(start: int, stop: int) -> None:
            lookup(start, stop, first[start:stop], np.empty(stop - start, dtype=np.uint64))

        pool.map(gather, starts, stops, stage="hash ids")
        return first.view(np.int64), list({id(pair): pair for pair in tables}.values())
    keys, second = write_both(parts, seed, pool)
    return keys, [(keys.view(np.uint64), second)]


def write_both(parts: Sequence[pa.ChunkedArray], seed: int, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of a column of any number of parts, and the second word of each row's fingerprint."""
    n = len(parts[0])
    first, second = buffers.empty(n, np.uint64), buffers.empty(n, np.uint64)
    starts, stops = zip(*blocks(n), strict=True)
    writer = writer_of(parts, kernels.hashing.seed_words(seed))

    def write(start: int, stop: int) -> None:
        writer(start, stop, first[start:stop], second[start:stop])

    pool.map(write, starts, stops, stage="hash ids")
    return first.view(np.int64), second


def find_collision(pairs: Sequence[Pairs], pool: Pool) -> bool:
    """Return whether two pairs agree in the first word but not in the second; most repeats are skipped."""
    return find_conflict([kept for pair in pairs for kept in _without_repeats(*pair, pool)], pool)


def find_conflict(pairs: Sequence[Pairs], pool: Pool) -> bool:
    """Return whether two pairs agree in the first word but not in the second.

    Pairs are partitioned by the leading bits of the first word. A few hundred cache-sized partitions are checked at a
    time, which keeps the scratch memory below 256 MiB; cost is linear in the rows.
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
    """Return the pairs without most repeats if a sample has many; each distinct pair is kept."""
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
    """The pairs of one column that one thread has seen, with most repeats dropped.

    Which repeats are dropped depends on the thread; together, the threads keep each distinct pair.
    """

    def __init__(self) -> None:
        # a pair whose second word is 0 looks already seen and is dropped
        self._seen = np.zeros(SEEN, np.uint64)
        self._rooms: list[np.ndarray] = []
        self._ends: list[int] = []

    def add(self, first: np.ndarray, second: np.ndarray) -> None:
        """Add the pairs of a block, unless already seen."""
        if not self._rooms or self._ends[-1] + first.size > self._rooms[-1].shape[1]:
            self._rooms.append(buffers.empty((2, max(PAIRS_AT_ONCE, first.size)), np.uint64))
            self._ends.append(0)
        room = self._rooms[-1][:, self._ends[-1] :]
        self._ends[-1] += kernels.hashing.drop_repeats(first, second, self._seen, room[0], room[1])

    @property
    def kept(self) -> list[Pairs]:
        """The pairs that were kept."""
        return [(room[0, :end], room[1, :end]) for room, end in zip(self._rooms, self._ends, strict=True)]


def _conflict(scratch: np.ndarray, bounds: np.ndarray, pool: Pool) -> bool:
    size = 2 << int(np.diff(bounds).max()).bit_length()
    make, fits = partial(np.empty, size, dtype=np.int32), lambda slots: slots.size >= size
    with pool.workspace("slots", make, fits) as slots:
        return bool(kernels.hashing.find_conflict(scratch, bounds, slots))


#: Maximum number of values in all dictionaries of a column.
FEW_VALUES = 1 << 16


def number_codes(data: pa.ChunkedArray, pool: Pool, *, narrow: bool = False) -> np.ndarray | None:
    """Return a number per row, equal for equal values only; None unless this is a dictionary of few values.

    Numbers are int64, or int32 if `narrow`. Null rows get an arbitrary number. Raise pyarrow.ArrowInvalid for invalid
    values and codes.
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
    """Return a number for each value of some dictionaries; None if these have too many values."""
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


#: Predicates of string and binary types.
TEXTS = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
)  # fmt: skip
#: Columns with fewer rows are hashed without sampling.
FEWEST_ROWS = 1 << 17
#: A text is known if it occurs this often in the sample; and the maximum number of known texts.
OFTEN = 2
MOST_TEXTS = MOST_VALUES
#: One in this many sampled rows is examined first; these suffice if their texts occur this often on average.
SMALL = 4
VERY_OFTEN = 32
#: Minimum share of known texts in the sample, or of repeats if no text is known.
LEAST_SHARE = 0.8
#: Unknown texts are rare if they occur in fewer than one in this many rows.
RARE = 256
#: Number of bytes before the end of a text that looking it up may read.
TAIL = 32


class Missed(NamedTuple):
    """The rows with unknown texts, and both words of their fingerprints. Shapes: (n_missed,) each."""

    rows: np.ndarray
    first: np.ndarray
    second: np.ndarray


class Others(NamedTuple):
    """The rows with unknown texts, counted from `start`, and their hashes if the numbers are too narrow for them."""

    start: int
    rows: np.ndarray
    hashes: np.ndarray | None


class Sample(NamedTuple):
    """A sample of a column's rows: their number and their distinct texts."""

    size: int
    texts: pa.Array  #: distinct
    seen: np.ndarray  #: frequency of each; shape (n_texts,)

    @classmethod
    def of(cls, data: pa.ChunkedArray) -> Sample:
        """Return a sample of rows from the whole column, a small one if it has few distinct texts."""
        rows = sampled_rows(len(data))
        small = cls.of_rows(data, rows[: rows.size // SMALL])
        few = 0 < small.seen.size * VERY_OFTEN <= small.size
        return small if few else cls.of_rows(data, rows)

    @classmethod
    def of_rows(cls, data: pa.ChunkedArray, rows: np.ndarray) -> Sample:
        """Return a sample of these rows."""
        taken = take_rows(data, np.sort(rows))
        encoded = combined(without_views(pa.chunked_array([taken.drop_null()]))).dictionary_encode()
        seen = np.bincount(to_numpy(encoded.indices), minlength=len(encoded.dictionary))
        return cls(len(taken), encoded.dictionary, seen)

    @property
    def frequent(self) -> np.ndarray:
        """The positions of the frequent texts, most frequent first, at most as many as the table holds."""
        chosen = np.argsort(-self.seen, kind="stable")[:MOST_TEXTS]
        return np.asarray(chosen[self.seen[chosen] >= OFTEN])

    @property
    def n_others(self) -> int:
        """The number of sampled rows whose text is not among the frequent ones."""
        return int(self.size - self.seen[self.frequent].sum())

    @property
    def repeats(self) -> bool:
        """Whether many sampled rows share their text with another one."""
        return int((self.seen - 1).sum()) > MANY_REPEATS * self.size


class KnownTexts(NamedTuple):
    """A hash table of texts, as the kernels read it."""

    slots: np.ndarray  #: eight words per slot; free slots hold a text that hashes to another slot
    pilots: np.ndarray
    seeds: np.ndarray  #: seeds of the hash function, shape (2,)
    masks: np.ndarray  #: masks of a text's own bytes among the last 32, by its size up to 32; four words each
    #: the common size of all texts if their last eight bytes distinguish them, otherwise 0
    one_size: np.uint64
    own: np.ndarray  #: the texts, contiguous, after padding
    starts: np.ndarray  #: the start of each text in `own`

    @classmethod
    def of(cls, sample: Sample) -> KnownTexts | None:
        """Return a table of the frequent texts of a column's sample; None if they do not cover most of it."""
        chosen = sample.frequent
        if not chosen.size or sample.seen[chosen].sum() < LEAST_SHARE * sample.size:
            return None
        texts = sample.texts.take(from_numpy(chosen))
        texts.validate(full=True)
        return cls.placed(texts.cast(pa.large_binary()))

    @classmethod
    def placed(cls, texts: pa.Array) -> KnownTexts | None:
        """Return a table of texts, numbered in order; None if their last sixteen bytes do not distinguish them."""
        offsets, own = with_room_before(*offsets_and_bytes(texts))
        sizes, codes = np.diff(offsets), np.empty(len(texts), np.uint64)
        described = np.zeros((sizes.size, kernels.hashing.SLOT_WORDS), np.uint64)
        one_size = int(sizes[0]) if (sizes == sizes[0]).all() and 8 <= sizes[0] <= TAIL else 0
        for size, seed in product([one_size, 0] if one_size else [0], range(ATTEMPTS)):
            seeds = kernels.hashing.seed_words(seed)[:2]
            kernels.hashing.describe_texts(offsets, own, MASKS, size > 0, seeds, described, codes)
            if (places := placed(codes)) is not None:
                slots, starts = described[np.maximum(places.values, 0)].ravel(), offsets[:-1]
                return cls(slots, places.pilots, seeds, MASKS, np.uint64(size), own, starts.astype(np.uint64))
        return None


def with_room_before(offsets: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return contiguous texts, preceded by as many bytes as a look-up may read before the end of a text."""
    roomy = np.concatenate([np.zeros(TAIL, np.uint8), data[offsets[0] : offsets[-1]]])
    return read_only(offsets - offsets[0] + offsets.dtype.type(TAIL)), read_only(roomy)


def number_texts(data: pa.ChunkedArray, pool: Pool, *, narrow: bool = False) -> np.ndarray | None:
    """Return a number per row, equal for equal texts only; None if texts do not repeat, or values are not text.

    Numbers are int64, or int32 if `narrow` and nearly all texts are known. Null rows get an arbitrary number. Raise
    pyarrow.ArrowInvalid for text that is not UTF-8.
    """
    if len(data) < FEWEST_ROWS or not any(is_kind(data.type) for is_kind in TEXTS):
        return None
    sample = Sample.of(data)
    known = KnownTexts.of(sample)
    if known is None and not sample.repeats:
        return None
    narrow = narrow and known is not None and sample.n_others <= sample.size // RARE
    numbers, repeats = buffers.empty(len(data), np.int32 if narrow else np.int64), list[Repeats]()

    def number(chunk: pa.Array, start: int) -> list[Others]:
        own = numbers[start : start + len(chunk)]
        with pool.workspace("missed", _room) as room, lend(repeats, Repeats) as seen:
            if known is None:
                _hash(chunk, own, room.second, seen)
                return []
            return _number(chunk, known, own, room, seen, start)

    tasks = [
        (chunk.slice(start, stop - start), offset + start)
        for chunk, offset in zip(data.chunks, accumulate(map(len, data.chunks), initial=0), strict=False)
        for start, stop in blocks(len(chunk), ROWS_AT_ONCE)
        if start < stop
    ]
    others = list(chain.from_iterable(pool.map(number, *zip(*tasks, strict=True), stage="number ids")))
    n_known, pairs = known.starts.size if known else 0, [pair for seen in repeats for pair in seen.kept]
    if (known and any((first < n_known).any() for first, _ in pairs)) or find_conflict(pairs, pool):
        return None
    return _with_others(numbers, others, n_known)


def _hash(chunk: pa.Array, numbers: np.ndarray, room: np.ndarray, seen: Repeats) -> None:
    """Write the hashes of texts to `numbers`, and add their fingerprints to `seen`."""
    first, second = numbers.view(np.uint64), room[: len(chunk)]
    hash_array(chunk, kernels.hashing.seed_words(0), first, second)
    seen.add(first, second)


def _number(
    chunk: pa.Array, known: KnownTexts, numbers: np.ndarray, room: Missed, seen: Repeats, start: int
) -> list[Others]:
    """Write the numbers of known texts, and return the rows of unknown ones, whose fingerprints are added to `seen`."""
    words, others, done = kernels.hashing.seed_words(0), list[Others](), 0
    for offsets, texts in _pieces(*offsets_and_bytes(laid_out(chunk))):
        own = numbers[done : done + offsets.size - 1]
        n, is_ascii = kernels.hashing.number_texts(offsets, texts, known, words, own, room)
        if not is_ascii:  # bytes, or non-ASCII text
            chunk.validate(full=True)
        if n:
            seen.add(room.first[:n], room.second[:n])
        hashes = None if numbers.dtype == np.int64 else room.first[:n].astype(np.int64)
        others.append(Others(start + done, room.rows[:n].copy(), hashes))
        done += own.size
    return others


def _pieces(offsets: np.ndarray, data: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return texts in pieces that can be looked up; those near the start of their buffer are copied."""
    tail = offsets.dtype.type(TAIL)  # with another type, searchsorted would copy the array
    head = int(np.searchsorted(offsets[1:], tail))
    first = [with_room_before(offsets[: head + 1], data)] if head else []
    return [*first, (offsets[head:], data)] if head < offsets.size - 1 else first


def number_few(columns: Sequence[Sequence[pa.ChunkedArray]]) -> list[np.ndarray] | None:
    """Return a number per row, equal across columns for equal texts only; None unless columns are short texts.

    Null rows get an arbitrary number. Raise pyarrow.ArrowInvalid for text that is not UTF-8.
    """
    parts = [part for column in columns for part in column]
    if sum(map(len, parts)) > FEW_VALUES or not all(
        any(is_kind(part.type) for is_kind in TEXTS) for part in parts
    ):
        return None
    numbers: dict[Any, int] = {}
    for part in parts:
        part.validate(full=True)
    rows = (zip(*(part.to_pylist() for part in column), strict=True) for column in columns)
    return [np.array([numbers.setdefault(row, len(numbers)) for row in each], np.int64) for each in rows]


def _with_others(numbers: np.ndarray, others: Sequence[Others], n_known: int) -> np.ndarray:
    """Return numbers in which unknown texts get the next numbers if rare, else the hashes of the texts."""
    n_others, kept = sum(each.rows.size for each in others), numbers.dtype == np.int64
    rare = n_others <= numbers.size // RARE
    if not n_others or (kept and not rare):
        return numbers
    rows = np.concatenate([each.start + each.rows for each in others])
    hashes = (
        numbers[rows] if kept else np.concatenate([each.hashes for each in others if each.hashes is not None])
    )
    if rare:
        values, codes = np.unique(hashes, return_inverse=True)
        if n_known + values.size <= FEW_VALUES:
            numbers[rows] = n_known + codes
            return numbers
    if not kept:
        numbers = numbers.astype(np.int64)
        numbers[rows] = hashes
    return numbers


def _room() -> Missed:
    words = (np.empty(ROWS_AT_ONCE, np.uint64) for _ in range(2))
    return Missed(np.empty(ROWS_AT_ONCE, np.int32), *words)


#: Masks of a text's own bytes among the last 32 before its end, by its size up to 32, as words.
MASKS = (255 * np.tri(TAIL + 1, TAIL, -1, np.uint8)[:, ::-1]).ravel().view(np.uint64)


#: The type of keys, and the narrow one, half as much to read, which is used if all keys fit.
WIDE, NARROW = np.dtype(np.int64), np.dtype(np.int32)


def widened(keys: np.ndarray, pool: Pool) -> np.ndarray:
    """Return keys as int64, copying narrow ones."""
    if keys.dtype == WIDE:
        return keys
    wide = buffers.empty(keys.size, WIDE)

    def copy(start: int, stop: int) -> None:
        np.copyto(wide[start:stop], keys[start:stop])

    pool.map(copy, *zip(*blocks(keys.size), strict=True), stage="read ids")
    return read_only(wide)


def integer_keys(part: pa.ChunkedArray, pool: Pool, narrow: bool = False) -> np.ndarray:
    """Return integers as read-only keys."""
    coded = pa.types.is_dictionary(part.type)
    pieces = [_codes_and_values(chunk) if coded else (to_numpy(chunk), None) for chunk in part.chunks]
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
    return read_only(keys)


def _codes_and_values(chunk: pa.DictionaryArray) -> tuple[np.ndarray, np.ndarray]:
    values = combined(storage_of(pa.chunked_array([chunk.dictionary])))
    return codes_of(chunk), to_numpy(values).astype(WIDE) if len(values) else np.zeros(1, WIDE)


def _is_narrow(view: np.ndarray, table: np.ndarray | None) -> bool:
    """Return whether all keys fit into 32 bits, judging by type or by the values in the dictionary."""
    if table is None:
        return np.can_cast(view.dtype, NARROW)
    return bool((table.astype(NARROW) == table).all())


def _copy_block(values: np.ndarray, table: np.ndarray | None, out: np.ndarray) -> None:
    if table is None:
        np.copyto(out, values.view(np.int64) if values.dtype == np.uint64 else values)
    else:
        np.take(table, values, out=out, mode="clip")
