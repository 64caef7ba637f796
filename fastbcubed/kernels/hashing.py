"""Hash kernels for keys: fingerprints of 128 bits, hash tables that number keys, and perfect hashes of known strings.

Strings are compared by all of their bytes. The last 32 bytes are compared at once, as words read backwards from the
end of the string; words outside the string are masked, but at least 32 readable bytes must precede its end. There are
no data-dependent branches.

Known strings are found by a perfect hash; see `place_codes`.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, inlined, intrinsic, kernel
from fastbcubed.kernels.partition import READS_AHEAD, RECORDS_AHEAD, fetch, mix

WORD = np.uint64
ZERO, ONE, FOUR, EIGHT, SIXTEEN = (np.uint64(v) for v in (0, 1, 4, 8, 16))
#: The bits of a word that are not set in ASCII text.
BEYOND_ASCII = np.uint64(0x8080808080808080)
_MASK = (1 << 64) - 1


def seed_words(seed: int) -> np.ndarray:
    """Return six secret words derived from a seed by the SplitMix64 sequence. Shape: (6,)."""
    state, words = 0x243F6A8885A308D3 + seed * 0x9E3779B97F4A7C15 * 7, []
    for _ in range(6):
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        word = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
        words.append(word ^ (word >> 31))
    return np.array(words, dtype=np.uint64)


@intrinsic
def fold(a, b):
    """Multiply two words to 128 bits and xor the halves."""
    product = a * b
    return (product ^ (product >> 64)) & _MASK


@intrinsic
def load_word(data, position):
    """Read the eight bytes at `position` as a little-endian word."""
    return int.from_bytes(data[position : position + 8], "little")


@intrinsic
def load_half(data, position):
    """Read the four bytes at `position` as a little-endian word."""
    return int.from_bytes(data[position : position + 4], "little")


@kernel(words=True, inline="always")
def end_words(data, start, size):
    """Return the last sixteen bytes of a range, or all if fewer, as two words that with the size determine them."""
    end = start + size
    if size > SIXTEEN:
        return load_word(data, end - SIXTEEN), load_word(data, end - EIGHT)
    if size >= EIGHT:
        return load_word(data, start), load_word(data, end - EIGHT)
    if size >= FOUR:
        return load_half(data, start), load_half(data, end - FOUR)
    if size > ZERO:
        middle = WORD(data[start + (size >> ONE)]) << EIGHT
        return WORD(data[start]) | middle | (WORD(data[end - ONE]) << SIXTEEN), ZERO
    return ZERO, ZERO


@kernel(words=True, inline="always")  # 2.5 times as fast: LLVM alone does not inline it
def hash_bytes(data, start, size, a, b, s2, s3, s4, s5):
    """Fingerprint `size` bytes of `data` from `start`. Shapes: (bytes,), eight words -> three words.

    Strings of up to 16 bytes are read as two words that, with the length, determine the string; longer ones are
    folded 16 bytes at a time. The two words of the fingerprint are computed with different secrets. The third word
    has every bit set that is set in any word of the string.
    """
    position, rest, bits = start, size, ZERO
    while rest > SIXTEEN:
        low, high = load_word(data, position), load_word(data, position + EIGHT)
        a = fold(low ^ s2, high ^ a)
        b = fold(high ^ s3, low ^ b)
        bits |= low | high
        position += SIXTEEN
        rest -= SIXTEEN
    low, high = end_words(data, start, size)
    a = fold(low ^ s2, high ^ a)
    b = fold(high ^ s3, low ^ b)
    return fold(a ^ s4, size ^ s5), fold(b ^ s5, size ^ s4), bits | low | high


@kernel(words=True)
def hash_strings(offsets, data, words, first, second):
    """Fingerprint concatenated strings; return whether all are ASCII. Shapes: (n + 1,), (bytes,), (6,), (n,), (n,)."""
    a, b, s2, s3, s4, s5 = words[0], words[1], words[2], words[3], words[4], words[5]
    start, seen = WORD(offsets[0]), ZERO
    for i in range(first.size):
        end = WORD(offsets[i + 1])
        first[i], second[i], bits = hash_bytes(data, start, end - start, a, b, s2, s3, s4, s5)
        seen |= bits
        start = end
    return seen & BEYOND_ASCII == ZERO


@kernel(words=True)
def hash_fixed(data, width, words, first, second):
    """Fingerprint byte strings of one width. Shapes: (n * width,), (), (6,), (n,), (n,)."""
    a, b, s2, s3, s4, s5 = words[0], words[1], words[2], words[3], words[4], words[5]
    size, start = WORD(width), ZERO
    for i in range(first.size):
        first[i], second[i], _ = hash_bytes(data, start, size, a, b, s2, s3, s4, s5)
        start += size


@kernel(words=True)
def hash_integers(values, unsigned, words, first, second):
    """Fingerprint integers; `unsigned` distinguishes -1 from 2**64 - 1.

    Shapes: (n,), (), (6,), (n,), (n,).
    """
    for i in range(values.size):
        value = WORD(values[i])
        tag = ONE if unsigned and values[i] < 0 else ZERO
        a = fold(value ^ words[2], tag ^ words[0])
        b = fold(value ^ words[3], tag ^ words[1])
        first[i] = fold(a ^ words[4], value ^ words[5])
        second[i] = fold(b ^ words[5], value ^ words[4])


@inlined(words=True)
def combined(one, other, part_one, part_other, words):
    """Fold the fingerprint of one column of a composite id into that of the columns before it; two words each."""
    return fold(one ^ words[2], part_one ^ words[4]), fold(other ^ words[3], part_other ^ words[5])


@kernel(words=True)
def combine_words(first, second, part_first, part_second, words):
    """Fold fingerprints of one column of a composite id into those so far, in place. Shapes: four times (n,), (6,)."""
    for i in range(first.size):
        first[i], second[i] = combined(first[i], second[i], part_first[i], part_second[i], words)


@kernel(words=True)
def add_combined(first, second, part_first, part_second, words):
    """Return the sums of what `combine_words` would write, changing no input. Shapes: four times (n,), (6,)."""
    sums = ZERO, ZERO
    for i in range(first.size):
        one, other = combined(first[i], second[i], part_first[i], part_second[i], words)
        sums = sums[0] + one, sums[1] + other
    return sums


@kernel(words=True)
def drop_repeats(first, second, seen, kept_first, kept_second):
    """Drop pairs equal to the last pair seen in their slot; return the number kept.

    The slot and the second word identify the pair, so two that share only their first word are both kept.
    Shapes: (n,), (n,), (power of two,), twice (at least n,). No branch depends on the data.
    """
    mask, kept = WORD(seen.size - 1), 0
    for i in range(first.size):
        one, other = first[at(i)], second[at(i)]
        kept_first[at(kept)], kept_second[at(kept)] = one, other
        kept += seen[one & mask] != other
        seen[one & mask] = other
    return kept


@kernel
def count_partitions(first, shift, counts):
    """Count rows by the leading bits of `first`. Shapes: (n,), (), (partitions,)."""
    for i in range(first.size):
        counts[first[i] >> shift] += 1


@kernel
def scatter_pairs(first, second, shift, cursor, pairs):
    """Write each pair at the cursor of its partition, unless the cursor is -1.

    Shapes: (n,), (n,), (), (partitions,), (rows, 2).
    """
    for i in range(first.size):
        partition = first[i] >> shift
        place = cursor[partition]
        if place >= 0:
            fetch(pairs, 2 * (place + RECORDS_AHEAD))
            pairs[place, 0] = first[i]
            pairs[place, 1] = second[i]
            cursor[partition] = place + 1


@kernel(words=True)
def find_conflict(pairs, bounds, slots):
    """Return whether equal first words have different second words within a partition.

    Shapes: (rows, 2), (partitions + 1,), (at least twice the largest partition,) -> bool.
    """
    for p in range(bounds.size - 1):
        begin, end = bounds[p], bounds[p + 1]
        capacity = 2
        while capacity < 2 * (end - begin):
            capacity *= 2
        mask = WORD(capacity - 1)
        slots[:capacity] = -1
        for i in range(begin, end):
            key = pairs[i, 0]
            slot = key & mask
            while True:
                other = slots[slot]
                if other < 0:
                    slots[slot] = i
                    break
                if pairs[other, 0] == key:
                    if pairs[other, 1] != pairs[i, 1]:
                        return True
                    break
                slot = (slot + ONE) & mask
    return False


@kernel(words=True)
def insert_pairs(first, second, shift, chosen, table, used):
    """Insert the pairs of the chosen partitions into a table of distinct pairs that grows.

    Used for partitions that a frequent value makes too large to copy: they have few distinct pairs.
    A first word of 0 marks an empty slot and is stored as 1.
    Shapes: (n,), (n,), (), (partitions,), (power of two, 2), () -> (table, used, conflict found).
    """
    # Idea: one pass with linear probing; the table is doubled as it fills, as the number of distinct pairs is unknown.
    # Holds: the table is at most half full, so that every search ends; a second word that differs means that two
    # values have one hash, and the caller compares the values themselves.
    # Why not sized for all rows: it would be as large as the copy that is avoided.
    mask = WORD(table.shape[0] - 1)
    for i in range(first.size):
        if not chosen[first[i] >> shift]:
            continue
        key = max(first[i], ONE)
        slot = key & mask
        while table[slot, 0] != ZERO and table[slot, 0] != key:
            slot = (slot + ONE) & mask
        if table[slot, 0] == key:
            if table[slot, 1] != second[i]:
                return table, used, True
            continue
        table[slot, 0], table[slot, 1] = key, second[i]
        used += 1
        if 2 * used > table.shape[0]:
            larger = np.zeros((2 * table.shape[0], 2), dtype=np.uint64)
            mask = WORD(larger.shape[0] - 1)
            for j in range(table.shape[0]):
                if table[j, 0] != ZERO:
                    slot = table[j, 0] & mask
                    while larger[slot, 0] != ZERO:
                        slot = (slot + ONE) & mask
                    larger[slot, 0], larger[slot, 1] = table[j, 0], table[j, 1]
            table = larger
    return table, used, False


#: Keys whose slots are fetched together, so that their memory accesses overlap.
GROUP = 64


@kernel
def number_block(new_keys, new_proofs, slots, keys, proofs, n, codes, firsts):
    """Write the code of each key of a block, adding new keys with the next free code; return the number of known keys.

    `proofs`, second words of fingerprints, must agree as well unless None. Shapes: (m,), (m,) or None, (power of
    two,), (capacity,), (capacity,) or None, (), (m,), (m,). Slots contain codes, or -1 if empty; `firsts` gets the
    row of each new key.
    """
    # Idea: slots and then keys of a whole group are asked for before any is compared, so that 64 waits for memory
    # overlap; one key after the other waits for each. Slots are read again in the last step, since keys of the
    # same group may have been added since.
    known, mask = n, slots.size - 1
    places = np.empty(GROUP, np.int64)
    for start in range(0, new_keys.size, GROUP):
        stop = min(start + GROUP, new_keys.size)
        for i in range(start, stop):
            places[i - start] = mix(new_keys[i]) & mask
            fetch(slots, places[i - start])
        for i in range(start, stop):
            code = slots[places[i - start]]
            if code >= 0:
                fetch(keys, code)
        for i in range(start, stop):
            key, s = new_keys[i], places[i - start]
            code = slots[s]
            while code >= 0:
                if keys[code] == key:
                    if proofs is None:
                        break
                    elif proofs[code] == new_proofs[i]:
                        break
                s = (s + 1) & mask
                code = slots[s]
            if code < 0:
                code = slots[s] = n
                keys[n] = key
                if proofs is not None:
                    proofs[n] = new_proofs[i]
                firsts[n - known] = i
                n += 1
            codes[i] = code
    return n


@kernel
def enter_keys(keys, n, slots):
    """Enter the codes of the first n keys, all different, into empty slots."""
    mask = slots.size - 1
    for code in range(n):
        s = mix(keys[code]) & mask
        while slots[s] >= 0:
            s = (s + 1) & mask
        slots[s] = code


@kernel
def number_codes(codes, numbers):
    """Replace each code by its rank in order of first appearance; return the number of codes that occur.

    Shapes: (n,), (n_codes,); `numbers` is initially -1 for each code.
    """
    count = 0
    for i in range(codes.size):
        k = codes[i]
        if numbers[k] < 0:
            numbers[k] = count
            count += 1
        codes[i] = numbers[k]
    return count


@kernel
def rank_codes(codes, numbers, used, sizes):
    """Replace each code by its rank in order of first appearance; return the number of codes that occur.

    The code of each rank goes to `used`, and how often it occurs to `sizes`, initially 0. `numbers`, by code, is -1
    before and afterwards. Shapes: (n,), (n_codes,), (n,), (n,).
    """
    # One pass for all that depends on the random access to `numbers`, which takes longer than the rest.
    count = 0
    for i in range(codes.size):
        if i + READS_AHEAD < codes.size:
            fetch(numbers, codes[at(i + READS_AHEAD)])
        code = codes[at(i)]
        rank = numbers[at(code)]
        if rank < 0:
            rank = count
            numbers[at(code)], used[at(count)] = rank, code
            count += 1
        sizes[at(rank)] += 1
        codes[at(i)] = rank
    for rank in range(count):
        numbers[at(used[at(rank)])] = -1
    return count


@kernel
def compare_texts(bounds, data, rows, same):
    """Write whether the texts of each pair of rows are equal.

    `bounds`, `data` and `rows` are pairs: where each text begins, with the end of the last; bytes; numbers of texts.
    """
    for i in range(same.size):
        k, start = rows[0][at(i)], bounds[0][at(rows[0][at(i)])]
        j, other = rows[1][at(i)], bounds[1][at(rows[1][at(i)])]
        size = bounds[0][at(k + 1)] - start
        b = size if bounds[1][at(j + 1)] - other == size else -1
        while b > 0 and data[0][at(start + b - 1)] == data[1][at(other + b - 1)]:
            b -= 1
        same[at(i)] = b == 0


#: Number of bits of a hash that select a value's pilot and slot; constants, which need no registers.
PILOT_BITS, SLOT_BITS = 10, 12
BELOW_PILOT, SLOT = np.uint64(64 - PILOT_BITS), np.uint64((1 << SLOT_BITS) - 1)


@inlined(words=True)
def slot_of(code, pilots):
    """Return the slot where a value with this hash is stored if it is known."""
    return ((code >> np.uint64(8)) ^ np.uint64(pilots[code >> BELOW_PILOT])) & SLOT


@kernel(words=True)
def place_codes(codes, pilots, places):
    """Find pilots that send all hashes to distinct slots; return whether this succeeded.

    A bucket of hashes, those with equal leading bits, shares a pilot, which is xored into their slots. Hashes of one
    bucket are consecutive. Shapes: (n,), (buckets,), (slots,), initially -1.
    """
    start = 0
    while start < codes.size:
        bucket, stop = codes[start] >> BELOW_PILOT, start + 1
        while stop < codes.size and codes[stop] >> BELOW_PILOT == bucket:
            stop += 1
        placed = start
        for pilot in range(places.size):
            pilots[bucket] = pilot
            while placed < stop and places[slot_of(codes[placed], pilots)] < 0:
                places[slot_of(codes[placed], pilots)] = placed
                placed += 1
            if placed == stop:
                break
            while placed > start:
                placed -= 1
                places[slot_of(codes[placed], pilots)] = -1
        if placed < stop:
            return False
        start = stop
    return True


#: Number of bytes at the end of a string that are compared at once, as words.
TAIL = np.uint64(32)
TAIL_WORDS = np.uint64(4)
TWO, THREE = np.uint64(2), np.uint64(3)
#: Number of words of a slot, one cache line: the last bytes of its string, masked; then its number and size.
SLOT_WORDS = np.uint64(8)
NUMBER, SIZE = (np.uint64(word) for word in (4, 5))
#: Number of rows that are looked up before the strings not found are hashed.
ROWS_AT_A_TIME = 4096


@intrinsic
def tail_differs(data, end, masks, mask, slots, slot):
    """Return whether the 32 bytes before `end`, masked by the words at `mask`, differ from the words at `slot`."""
    return int(
        any((load_word.python(data, end - 32 + 8 * k) & masks[mask + k]) != slots[slot + k] for k in range(4))
    )


@kernel(words=True)
def describe_texts(offsets, data, masks, by_end, seeds, described, codes):
    """Write the slot contents and the hash of each known string; if `by_end`, the hash uses the last eight bytes only.

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


@kernel(words=True)
def number_texts(offsets, data, known, words, numbers, missed):
    """Write the number of each known string, and for unknown strings the first word of their fingerprint.

    `missed` receives (row, first, second) of unknown strings. Returns their number, and whether all of them are
    ASCII.
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


@kernel(words=True)
def find_of_one_size(offsets, data, known, first, n, numbers, different):
    """Write the numbers of n strings, starting at row `first`, and mark unknown ones; known strings have one size."""
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


@kernel(words=True)
def find_of_any_size(offsets, data, known, first, n, numbers, different):
    """Write the numbers of n strings, starting at row `first`, and mark unknown ones."""
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


@kernel(words=True)
def compare_heads(offsets, data, known, first, n, numbers, different):
    """Mark those of n strings that end like a known string of their size but differ before their last 32 bytes."""
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


@kernel(words=True)
def hash_missed(offsets, data, words, first, n, different, numbers, missed, n_missed):
    """Write fingerprints of the unknown strings among n; return their number so far, and the bits set in any word."""
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
