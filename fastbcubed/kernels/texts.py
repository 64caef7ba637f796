"""Numbers of texts, many of which are among a few known ones, from a table that stays in the cache.

Texts are compared by all of their bytes. The last 32 are compared at once, without data-dependent
branches. They are read backwards from the end of a text, so at least 32 bytes must precede
that; bytes that are not part of the text are masked.

The table is a perfect hash: see `kernels.hashing.place_codes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from fastbcubed.kernels.hashing import (
    BEYOND_ASCII,
    EIGHT,
    SIXTEEN,
    WORD,
    ZERO,
    fold,
    hash_bytes,
    load_word,
    slot_of,
)
from fastbcubed.kernels.jit import at, kernel

#: Number of bytes at the end of a text that are compared at once, as words.
TAIL = np.uint64(32)
TAIL_WORDS = np.uint64(4)
TWO, THREE = np.uint64(2), np.uint64(3)
#: Number of words of a slot, one cache line: the last bytes of its text, masked; then its number and size.
SLOT_WORDS = np.uint64(8)
NUMBER, SIZE = (np.uint64(word) for word in (4, 5))
#: Number of rows that are looked up before the texts not found are hashed.
ROWS_AT_A_TIME = 4096

_numba_config: Any = config
if _numba_config.DISABLE_JIT:

    def tail_differs(data: Any, end: Any, masks: Any, mask: Any, slots: Any, slot: Any) -> Any:
        """Return 1 if the bytes before `end`, masked by words from `mask` on, differ from those from `slot` on."""
        words = data[int(end - TAIL) : int(end)].copy().view(np.uint64)
        own, known = masks[int(mask) : int(mask) + 4], slots[int(slot) : int(slot) + 4]
        return np.uint8((words & own != known).any())

else:

    @intrinsic
    def tail_differs(
        typingctx: Any, data: Any, end: Any, masks: Any, mask: Any, slots: Any, slot: Any
    ) -> Any:
        """Return 1 if the bytes before `end`, masked by words from `mask` on, differ from those from `slot` on."""

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            words, all_bits = ir.VectorType(ir.IntType(64), 4).as_pointer(), ir.IntType(256)

            def load(k: int, position: Any) -> Any:
                array = context.make_array(signature.args[k])(context, builder, args[k])
                pointer = builder.gep(array.data, [position])
                return builder.load(builder.bitcast(pointer, words), align=1)

            text, mask = load(0, builder.sub(args[1], ir.IntType(64)(32))), load(2, args[3])
            differ = builder.xor(builder.and_(text, mask), load(4, args[5]))
            found = builder.icmp_unsigned("!=", builder.bitcast(differ, all_bits), all_bits(0))
            return builder.zext(found, ir.IntType(8))

        arguments = data, types.uint64, masks, types.uint64, slots, types.uint64
        return types.uint8(*arguments), codegen


@kernel
def describe_texts(offsets, data, masks, by_end, seeds, described, codes):
    """Write the slot of each text, and its hash, which uses only the last eight bytes if `by_end`.

    Shapes: (n + 1,), (bytes,), (33 * 4,), (), (2,), (n, 8), (n,).
    """
    for k in range(codes.size):
        end = WORD(offsets[k + 1])
        size = end - WORD(offsets[k])
        for word in range(TAIL_WORDS):
            mask = masks[min(size, TAIL) * TAIL_WORDS + word]
            described[k, word] = load_word(data, end - TAIL + EIGHT * WORD(word)) & mask
        described[k, NUMBER], described[k, SIZE] = k, size
        more = ZERO if by_end else described[k, 2] + size
        codes[k] = fold(described[k, 3] ^ seeds[0], more ^ seeds[1])


@kernel
def number_texts(offsets, data, known, words, numbers, missed):
    """Write the number of each known text, and of others the first word of its fingerprint.

    `missed` takes (row, first, second) of unknown texts. Return their number, and whether all of them
    are ASCII.
    """
    different = np.empty(ROWS_AT_A_TIME, np.uint8)
    n_missed, seen = 0, ZERO
    for first in range(0, numbers.size, ROWS_AT_A_TIME):
        n = min(numbers.size - first, ROWS_AT_A_TIME)
        if known.one_size > ZERO:
            find_of_one_size(offsets, data, known, first, n, numbers, different)
        else:
            find_of_any_size(offsets, data, known, first, n, numbers, different)
        n_missed, bits = hash_missed(offsets, data, words, first, n, different, numbers, missed, n_missed)
        seen |= bits
    return n_missed, seen & BEYOND_ASCII == ZERO


@kernel
def find_of_one_size(offsets, data, known, first, n, numbers, different):
    """Write the numbers of a few texts, and which are unknown, where all known ones have the same size."""
    slots, pilots, masks = known.slots, known.pilots, known.masks
    a, b, size, width = known.seeds[0], known.seeds[1], known.one_size, np.int64(known.one_size)
    mask = size * TAIL_WORDS
    for j in range(n):
        end = WORD(offsets[at(first + j + 1)])
        s = slot_of(fold(load_word(data, end - EIGHT) ^ a, b), pilots) * SLOT_WORDS
        numbers[at(first + j)] = slots[s + NUMBER]
        different[at(j)] = tail_differs(data, end, masks, mask, slots, s)
    for j in range(n):
        different[at(j)] |= offsets[at(first + j + 1)] - offsets[at(first + j)] != width


@kernel
def find_of_any_size(offsets, data, known, first, n, numbers, different):
    """Write the numbers of a few texts, and which are unknown."""
    slots, pilots, masks = known.slots, known.pilots, known.masks
    a, b, start, longest = known.seeds[0], known.seeds[1], WORD(offsets[at(first)]), ZERO
    for j in range(n):
        end = WORD(offsets[at(first + j + 1)])
        size = end - start
        m = min(size, TAIL) * TAIL_WORDS
        low = load_word(data, end - SIXTEEN) & masks[m + TWO]
        high = load_word(data, end - EIGHT) & masks[m + THREE]
        s = slot_of(fold(high ^ a, (low + size) ^ b), pilots) * SLOT_WORDS
        numbers[at(first + j)] = slots[s + NUMBER]
        different[at(j)] = tail_differs(data, end, masks, m, slots, s) | (size != slots[s + SIZE])
        longest = max(longest, size)
        start = end
    if longest > TAIL:
        compare_heads(offsets, data, known, first, n, numbers, different)


@kernel
def compare_heads(offsets, data, known, first, n, numbers, different):
    """Mark which of a few texts differ before the last bytes from the known text with the same last bytes and size."""
    own, starts = known.own, known.starts
    for j in range(n):
        start = WORD(offsets[at(first + j)])
        size = WORD(offsets[at(first + j + 1)]) - start
        if size > TAIL and not different[at(j)]:
            known_start, differ = starts[at(numbers[at(first + j)])], ZERO
            for position in range(ZERO, size - TAIL, EIGHT):
                word = load_word(data, start + WORD(position))
                differ |= word ^ load_word(own, known_start + WORD(position))
            different[at(j)] = differ != ZERO


@kernel
def hash_missed(offsets, data, words, first, n, different, numbers, missed, n_missed):
    """Write fingerprints of the unknown texts among a few; return the number so far, and all bits."""
    rows, firsts, seconds = missed
    a, b, s2, s3, s4, s5 = words[0], words[1], words[2], words[3], words[4], words[5]
    left, found, seen = n_missed, np.uint8(0), ZERO
    for j in range(n):
        found |= different[at(j)]
    if found:
        for j in range(n):
            rows[at(left)] = first + j
            left += different[at(j)]
    for m in range(n_missed, left):
        i = rows[at(m)]
        start = WORD(offsets[at(i)])
        size = WORD(offsets[at(i + 1)]) - start
        one, other, bits = hash_bytes(data, start, size, a, b, s2, s3, s4, s5)
        firsts[at(m)], seconds[at(m)], numbers[at(i)] = one, other, np.int64(one)
        seen |= bits
    return left, seen
