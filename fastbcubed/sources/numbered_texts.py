"""Keys of columns whose texts repeat: those that fill a sample are numbered, and all others are compared with these.

Texts that no sample has seen keep a hash, or get the next numbers where their rows are rare. Small numbers let cells
be counted in a table: see `cells.condensing`. Where too many texts are not in the sample all are hashed, and what
shows that hashes tell them apart passes over those that a thread has just seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, product
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.parts import ROWS_AT_ONCE, sampled_rows
from fastbcubed.runtime.perfect_hash import ATTEMPTS, MOST_VALUES, placed
from fastbcubed.runtime.pool import Pool, blocks, lend
from fastbcubed.sources.arrays import from_numpy, read_only, to_numpy
from fastbcubed.sources.fingerprints import Repeats, find_conflict, hash_array, laid_out, offsets_and_bytes
from fastbcubed.sources.numbered_values import FEW_VALUES
from fastbcubed.sources.selection import combined, take_rows, without_views

#: What tells types of texts, and of bytes like these.
TEXTS = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view,
    pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
)  # fmt: skip
#: Fewer rows are hashed at once.
FEWEST_ROWS = 1 << 17
#: Texts that are known are those seen so often in the sample, so many at most.
OFTEN = 2
MOST_TEXTS = MOST_VALUES
#: The share of the sample that is looked at first, and is enough if each of its texts is seen so often on average.
SMALL = 4
VERY_OFTEN = 32
#: The share of the sample that has to be known texts, and that which has to repeat if no text is known.
LEAST_SHARE = 0.8
MANY_REPEATS = 1 / 3
#: Rows of other texts are rare if they are fewer than one in so many.
RARE = 256
#: Bytes that stand before the end of each text that is looked up.
TAIL = 32


class Missed(NamedTuple):
    """Rows whose texts are not known, and the fingerprints of these. Shapes: (n_missed,) each."""

    rows: np.ndarray
    first: np.ndarray
    second: np.ndarray


class Others(NamedTuple):
    """Rows whose texts are not known, counted from `start` on, and their hashes where numbers have no room for them."""

    start: int
    rows: np.ndarray
    hashes: np.ndarray | None


class Sample(NamedTuple):
    """Rows that a column is judged by."""

    size: int
    texts: pa.Array  #: all different
    seen: np.ndarray  #: how many times each; shape (n_texts,)

    @classmethod
    def of(cls, data: pa.ChunkedArray) -> Sample:
        """Return a sample that is spread over a column, a small one where that has few texts."""
        rows = sampled_rows(len(data)).astype(np.int64)
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
        """The texts that are seen often, the most frequent ones first, no more than can be known."""
        chosen = np.argsort(-self.seen, kind="stable")[:MOST_TEXTS]
        return np.asarray(chosen[self.seen[chosen] >= OFTEN])

    @property
    def n_others(self) -> int:
        """How many of its rows have none of these texts."""
        return int(self.size - self.seen[self.frequent].sum())

    @property
    def repeats(self) -> bool:
        """Whether many of its rows have a text that another row has, too."""
        return int((self.seen - 1).sum()) > MANY_REPEATS * self.size


class KnownTexts(NamedTuple):
    """A hash table of texts, for the kernels."""

    slots: np.ndarray  #: eight words each; what stands in free slots is a text that is never looked for there
    pilots: np.ndarray
    seeds: np.ndarray  #: of the hash function, shape (2,)
    masks: np.ndarray  #: of the last 32 bytes of a text, by its size up to 32; four words each
    one_size: np.uint64  #: that of all texts, if their last eight bytes tell them apart; 0 if not
    own: np.ndarray  #: the texts, end to end, after some room
    starts: np.ndarray  #: where they begin there

    @classmethod
    def of(cls, sample: Sample) -> KnownTexts | None:
        """Return the texts that are frequent in a sample of a column, None if these are not most of it."""
        chosen = sample.frequent
        if not chosen.size or sample.seen[chosen].sum() < LEAST_SHARE * sample.size:
            return None
        texts = sample.texts.take(from_numpy(chosen))
        texts.validate(full=True)
        return cls.placed(texts.cast(pa.large_binary()))

    @classmethod
    def placed(cls, texts: pa.Array) -> KnownTexts | None:
        """Return a table of texts, numbered as they stand; None if their last sixteen bytes do not tell them apart."""
        offsets, own = with_room_before(*offsets_and_bytes(texts))
        sizes, codes = np.diff(offsets), np.empty(len(texts), np.uint64)
        described = np.zeros((sizes.size, kernels.texts.SLOT_WORDS), np.uint64)
        one_size = int(sizes[0]) if (sizes == sizes[0]).all() and 8 <= sizes[0] <= TAIL else 0
        for size, seed in product([one_size, 0] if one_size else [0], range(ATTEMPTS)):
            seeds = kernels.hashing.seed_words(seed)[:2]
            kernels.texts.describe_texts(offsets, own, MASKS, size > 0, seeds, described, codes)
            if (places := placed(codes)) is not None:
                slots, starts = described[np.maximum(places.values, 0)].ravel(), offsets[:-1]
                return cls(slots, places.pilots, seeds, MASKS, np.uint64(size), own, starts.astype(np.uint64))
        return None


def with_room_before(offsets: np.ndarray, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return texts that are laid end to end with as many bytes before them as are read before the end of a text."""
    roomy = np.concatenate([np.zeros(TAIL, np.uint8), data[offsets[0] : offsets[-1]]])
    return read_only(offsets - offsets[0] + offsets.dtype.type(TAIL)), read_only(roomy)


def number_texts(data: pa.ChunkedArray, pool: Pool, *, narrow: bool = False) -> np.ndarray | None:
    """Return a number per row, the same for equal texts and no other; None if these do not repeat, or are no texts.

    Numbers are int64, or int32 if they may be `narrow` and nearly all texts are known. Null rows get an arbitrary
    number. Text that is not UTF-8 raises pyarrow.ArrowInvalid.
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
    """Write hashes of texts, and add these to those that have been seen."""
    first, second = numbers.view(np.uint64), room[: len(chunk)]
    hash_array(chunk, kernels.hashing.seed_words(0), first, second)
    seen.add(first, second)


def _number(
    chunk: pa.Array, known: KnownTexts, numbers: np.ndarray, room: Missed, seen: Repeats, start: int
) -> list[Others]:
    """Write numbers of texts, whose rows are those from `start` on; add hashes of others to those that were seen."""
    words, others, done = kernels.hashing.seed_words(0), list[Others](), 0
    for offsets, texts in _pieces(*offsets_and_bytes(laid_out(chunk))):
        own = numbers[done : done + offsets.size - 1]
        n, is_ascii = kernels.texts.number_texts(offsets, texts, known, words, own, room)
        if not is_ascii:  # bytes alone, or more than ASCII
            chunk.validate(full=True)
        if n:
            seen.add(room.first[:n], room.second[:n])
        hashes = None if numbers.dtype == np.int64 else room.first[:n].astype(np.int64)
        others.append(Others(start + done, room.rows[:n].copy(), hashes))
        done += own.size
    return others


def _pieces(offsets: np.ndarray, data: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return texts in pieces that can be looked up: those at the beginning of their buffer are copied."""
    tail = offsets.dtype.type(TAIL)  # of another type, it would be looked for in a copy
    head = int(np.searchsorted(offsets[1:], tail))
    first = [with_room_before(offsets[: head + 1], data)] if head else []
    return [*first, (offsets[head:], data)] if head < offsets.size - 1 else first


def _with_others(numbers: np.ndarray, others: Sequence[Others], n_known: int) -> np.ndarray:
    """Return numbers in which other texts have the next ones if their rows are rare, else their hashes."""
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


def _masks() -> np.ndarray:
    """Return which of the last 32 bytes before the end of a text are its own, by its size up to 32, as words."""
    own = np.arange(TAIL) >= TAIL - np.arange(TAIL + 1)[:, None]
    return np.where(own, np.uint8(255), np.uint8(0)).view(np.uint64).ravel()


MASKS = _masks()
