"""Numbers of texts, most of which are among few that are known: a table that stays in the cache says which.

Whether a text is a known one is decided by all of its bytes.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.hashing import (
    BEYOND_ASCII,
    EIGHT,
    ONE,
    SIXTEEN,
    WORD,
    ZERO,
    end_words,
    fold,
    hash_bytes,
    load_word,
)
from fastbcubed.kernels.jit import at, kernel

#: Texts of more bytes have some between the first sixteen and the last.
LONG = np.uint64(32)


@kernel(inline="always")
def home_of_text(low, high, size, words, mask):
    """Return the slot that a text of these last bytes and of this size is looked for in first."""
    return fold(low ^ words[2], (high ^ words[3]) + size) & mask


@kernel(inline="always")
def compare(data, start, size, low, high, known, own):
    """Return a word that is zero if some bytes, the last of which are `low` and `high`, are a known text of `own`.

    The other word has all bits that a word of the bytes has.
    """
    differ, bits = (low ^ known.low) | (high ^ known.high) | (size ^ known.size), low | high
    if size > SIXTEEN:
        first, second = load_word(data, start), load_word(data, start + EIGHT)
        differ |= (first ^ known.first) | (second ^ known.second)
        bits |= first | second
        if size > LONG:
            for position in range(SIXTEEN, size - SIXTEEN, EIGHT):
                bits |= load_word(data, start + position)
                if size == known.size:
                    differ |= load_word(data, start + position) ^ load_word(own, known.start + position)
    return differ, bits


@kernel
def enter_texts(offsets, data, words, records, slots):
    """Describe known texts that are laid end to end, and enter them in this order into slots, which hold -1.

    Return how many stand where they are looked for first.
    """
    mask, at_home = WORD(slots.size - 1), 0
    for k in range(records.size):
        start, size = WORD(offsets[k]), WORD(offsets[k + 1] - offsets[k])
        low, high = end_words(data, start, size)
        records[k].start, records[k].size, records[k].low, records[k].high = start, size, low, high
        if size > SIXTEEN:
            records[k].first, records[k].second = load_word(data, start), load_word(data, start + EIGHT)
        s = home_of_text(low, high, size, words, mask)
        at_home += slots[s] < 0
        while slots[s] >= 0:
            s = (s + ONE) & mask
        slots[s] = k
    return at_home


@kernel
def number_texts(offsets, data, known, words, numbers, missed):
    """Write the number of each text that is known, and of others the first word of its fingerprint.

    `known` are (slots, records, data). `missed` takes (row, first, second) of texts that are not known. Return how
    many these are, and whether all texts are ASCII.
    """
    slots, records, own = known
    rows, first, second = missed
    a, b, s2, s3, s4, s5 = words[0], words[1], words[2], words[3], words[4], words[5]
    n_left, ascii_only = find_at_home(offsets, data, known, words, numbers, rows)
    n_missed, mask = 0, WORD(slots.size - 1)
    for m in range(n_left):
        i = rows[at(m)]
        start = WORD(offsets[at(i)])
        size = WORD(offsets[at(i + 1)]) - start
        low, high = end_words(data, start, size)
        s = home_of_text(low, high, size, words, mask)
        k = slots[s]
        while k >= 0 and compare(data, start, size, low, high, records[at(k)], own)[0] != ZERO:
            s = (s + ONE) & mask
            k = slots[s]
        numbers[at(i)] = k
        if k < 0:
            one, other, _ = hash_bytes(data, start, size, a, b, s2, s3, s4, s5)
            rows[at(n_missed)], first[at(n_missed)], second[at(n_missed)] = i, one, other
            numbers[at(i)] = np.int64(one)
            n_missed += 1
    return n_missed, ascii_only


@kernel
def find_at_home(offsets, data, known, words, numbers, rows):
    """Write the number of each text whose first slot has it, and write to `rows` which texts are left.

    Return how many these are, and whether all texts are ASCII. No branch depends on what is found.
    """
    slots, records, own = known
    start, seen, n_left, mask = WORD(offsets[0]), ZERO, 0, WORD(slots.size - 1)
    for i in range(numbers.size):
        end = WORD(offsets[at(i + 1)])
        size = end - start
        low, high = end_words(data, start, size)
        k = max(slots[home_of_text(low, high, size, words, mask)], 0)
        numbers[at(i)], rows[at(n_left)] = k, i
        differ, bits = compare(data, start, size, low, high, records[at(k)], own)
        n_left += differ != ZERO
        seen |= bits
        start = end
    return n_left, seen & BEYOND_ASCII == ZERO
