"""Keys of columns of few texts: the texts of a sample are numbered, and all others are compared with these.

Texts that no sample has seen keep a hash, or get the next numbers where their rows are rare. Small numbers let cells
be counted in a table: see `cells.condensing`.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.parts import ROWS_AT_ONCE, sampled_rows
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.sources.arrays import from_numpy, to_numpy
from fastbcubed.sources.fingerprints import find_collision, offsets_and_bytes
from fastbcubed.sources.numbered_values import FEW_VALUES
from fastbcubed.sources.selection import take_rows

#: Fewer rows are hashed at once.
FEWEST_ROWS = 1 << 17
#: Texts that are known are those seen so often in the sample, so many at most; so many slots for each.
OFTEN = 2
MOST_TEXTS = 1 << 11
SLOTS_PER_TEXT = 16
#: The share of the sample that has to be known texts.
LEAST_SHARE = 0.9
#: Rows of other texts are rare if they are fewer than one in so many.
RARE = 256

#: A known text: its last sixteen bytes, the first sixteen of a longer one, and where it stands.
KNOWN = np.dtype(
    [(name, "u8") for name in ("low", "high", "first", "second", "start", "size")] + [("pad", "u8", 2)]
)


class Missed(NamedTuple):
    """Rows whose texts are not known, and the fingerprints of these. Shapes: (n_missed,) each."""

    rows: np.ndarray
    first: np.ndarray
    second: np.ndarray


class KnownTexts(NamedTuple):
    """A hash table of texts, for the kernels."""

    slots: np.ndarray
    records: np.ndarray
    data: np.ndarray

    @classmethod
    def of(cls, data: pa.ChunkedArray, words: np.ndarray) -> KnownTexts | None:
        """Return the texts that are frequent in a sample of a column, None if these are not most of it."""
        sample = take_rows(data, np.sort(sampled_rows(len(data)).astype(np.int64)))
        encoded = sample.drop_null().dictionary_encode()
        seen = np.bincount(to_numpy(encoded.indices), minlength=len(encoded.dictionary))
        chosen = np.argsort(-seen, kind="stable")[:MOST_TEXTS]
        chosen = chosen[seen[chosen] >= OFTEN]
        if not chosen.size or seen[chosen].sum() < LEAST_SHARE * len(sample):
            return None
        texts = encoded.dictionary.take(from_numpy(chosen)).cast(pa.large_binary())
        records = np.zeros(chosen.size, KNOWN)
        slots = np.full(SLOTS_PER_TEXT << int(chosen.size - 1).bit_length(), -1, np.int16)
        offsets, own = offsets_and_bytes(texts)
        at_home = kernels.texts.enter_texts(offsets, own, words, records, slots)
        return cls(slots, records, own) if at_home >= LEAST_SHARE * chosen.size else None


def number_texts(data: pa.ChunkedArray, pool: Pool) -> np.ndarray | None:
    """Return a number per row, the same for equal texts and no other; None if these are not few texts, or no texts.

    Null rows get an arbitrary number. Text that is not UTF-8 raises pyarrow.ArrowInvalid.
    """
    kind = data.type
    plain = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if len(data) < FEWEST_ROWS or not (plain or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
        return None
    words = kernels.hashing.seed_words(0)
    known = KnownTexts.of(data, words)
    if known is None:
        return None
    numbers = buffers.empty(len(data), np.int64)

    def number(chunk: pa.Array, start: int) -> Missed:
        own = numbers[start : start + len(chunk)]
        with pool.workspace("missed", _room) as room:
            n, is_ascii = kernels.texts.number_texts(*offsets_and_bytes(chunk), known, words, own, room)
            if not is_ascii:  # bytes alone, or more than ASCII
                chunk.validate(full=True)
            return Missed(room.rows[:n] + np.int64(start), room.first[:n].copy(), room.second[:n].copy())

    tasks = [
        (chunk.slice(start, stop - start), offset + start)
        for chunk, offset in zip(data.chunks, accumulate(map(len, data.chunks), initial=0), strict=False)
        for start, stop in blocks(len(chunk), ROWS_AT_ONCE)
        if start < stop
    ]
    missed = pool.map(number, *zip(*tasks, strict=True), stage="number ids")
    return numbers if _number_others(numbers, known, missed, pool) else None


def _number_others(numbers: np.ndarray, known: KnownTexts, missed: list[Missed], pool: Pool) -> bool:
    """Give texts that are not known the next numbers if they are rare; return whether all numbers tell texts apart."""
    n_known, missed = known.records.size, [each for each in missed if each.rows.size]
    if any((each.first < n_known).any() for each in missed):
        return False
    if find_collision([(each.first, each.second) for each in missed], pool):
        return False
    if missed and sum(each.rows.size for each in missed) <= numbers.size // RARE:
        rows, first = (np.concatenate([each[k] for each in missed]) for k in (0, 1))
        others, codes = np.unique(first, return_inverse=True)
        if n_known + others.size <= FEW_VALUES:
            numbers[rows] = n_known + codes
    return True


def _room() -> Missed:
    words = (np.empty(ROWS_AT_ONCE, np.uint64) for _ in range(2))
    return Missed(np.empty(ROWS_AT_ONCE, np.int32), *words)
