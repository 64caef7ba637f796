"""Compressed rows: which clusters each item is in; made, turned round and numbered."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.fetching import fetch
from fastbcubed.kernels.jit import at, inlined, kernel

#: Longer rows are left to a sort that does not slow down with the square of the length.
SHORT = 32
#: How many rows ahead memory is asked for.
AHEAD = 32


@kernel
def count_codes(codes, counts):
    """Count each code; negative ones are left out. Shapes: (n,), (n_codes,)."""
    for i in range(codes.size):
        if codes[i] >= 0:
            counts[codes[i]] += 1


@kernel
def count_in_range(codes, low, high, counts):
    """Count each code of a range. Shapes: (n,), (), (), (n_codes,)."""
    for i in range(codes.size):
        if low <= codes[i] < high:
            counts[codes[i]] += 1


@kernel
def fill_rows(rows, codes, low, high, next_place, out):
    """Write each code to the next place of its row, for a range of rows; negative ones are left out by it.

    Shapes: (n,), (n,), (), (), (n_rows,), (n_kept,).
    """
    for i in range(rows.size):
        row = rows[i]
        if low <= row < high:
            place = next_place[row]
            next_place[row] = place + 1
            out[place] = codes[i]


@kernel
def turn_rows(offsets, codes, next_place, out):
    """Write each row's number to the next place of every code in it. Shapes: (n_rows + 1,), (n,), (n_codes,), (n,)."""
    for row in range(offsets.size - 1):
        for i in range(offsets[row], offsets[row + 1]):
            code = codes[i]
            place = next_place[code]
            next_place[code] = place + 1
            out[place] = row


@inlined
def sort_codes(codes, first, last):
    """Sort some codes where they stand."""
    if last - first > SHORT:
        codes[first:last].sort()
    else:
        for i in range(first + 1, last):
            code = codes[at(i)]
            j = i
            while j > first and codes[at(j - 1)] > code:
                codes[at(j)] = codes[at(j - 1)]
                j -= 1
            codes[at(j)] = code


@kernel
def sort_rows(offsets, codes):
    """Sort the codes of each row where they stand. Shapes: (n_rows + 1,), (n,)."""
    for row in range(offsets.size - 1):
        first = offsets[row]
        last = offsets[row + 1]
        if last - first > 1:
            sort_codes(codes, first, last)


@kernel
def mark_repeats(offsets, codes, keep, counts):
    """Mark the codes that stay when each row keeps its codes once, and count them. Rows are sorted."""
    for row in range(offsets.size - 1):
        first = offsets[row]
        for i in range(first, offsets[row + 1]):
            keep[i] = i == first or codes[i] != codes[i - 1]
            counts[row] += keep[i]


@kernel
def count_taken(offsets, rows, start, stop, counts):
    """Write how many codes each of a block of rows has. Shapes: (n_rows + 1,), (k,), (), (), (k,)."""
    for k in range(start, stop):
        if k + AHEAD < stop:
            fetch(offsets, rows[at(k + AHEAD)])
        counts[at(k)] = offsets[at(rows[at(k)] + 1)] - offsets[at(rows[at(k)])]


@kernel
def take_codes(offsets, codes, rows, start, stop, new_offsets, out):
    """Copy a block of rows, in the order given."""
    for k in range(start, stop):
        if k + 2 * AHEAD < stop:
            fetch(offsets, rows[at(k + 2 * AHEAD)])
        if k + AHEAD < stop:
            fetch(codes, offsets[at(rows[at(k + AHEAD)])])
        place = new_offsets[at(k)]
        for i in range(offsets[at(rows[at(k)])], offsets[at(rows[at(k)] + 1)]):
            out[at(place)] = codes[at(i)]
            place += 1


@kernel
def find_unsorted(keys, start, stop):
    """Tell whether some key of a block is less than the one before it."""
    for i in range(max(start, 1), stop):
        if keys[i] < keys[i - 1]:
            return True
    return False


@kernel
def number_small(keys, lowest, numbers, codes, firsts):
    """Give numbers to keys from a small range by their first appearance; return how many there are.

    Shapes: (n,), (), (range,) of -1, (n,), (n,).
    """
    n = 0
    for i in range(keys.size):
        if i + AHEAD < keys.size:
            fetch(numbers, keys[at(i + AHEAD)] - lowest)
        k = keys[at(i)] - lowest
        code = numbers[at(k)]
        if code < 0:
            code = n
            numbers[at(k)] = code
            firsts[at(n)] = i
            n += 1
        codes[at(i)] = code
    return n


@kernel
def number_parts(keys, rows, bounds, part_from, part_to, slots, first):
    """Write, for every row of several parts, the first row that has the same key.

    Shapes: (n,), (n,), (n_parts + 1,), (), (), (power of two,), (n,). Rows ascend in a part.
    """
    for part in range(part_from, part_to):
        begin = bounds[part]
        n = bounds[part + 1] - begin
        size = 1024
        while 3 * size < 4 * n:
            size *= 2
        table = slots[:size] if size <= slots.size else np.empty(size, np.int32)
        table[:] = -1
        mask = size - 1
        for i in range(n):
            key = keys[begin + i]
            s = key & mask
            while table[s] >= 0 and keys[begin + table[s]] != key:
                s = (s + 1) & mask
            if table[s] < 0:
                table[s] = i
            first[rows[begin + i]] = rows[begin + table[s]]


@kernel
def find_firsts(first, start, stop, code, firsts):
    """Give numbers to the rows of a block that are the first with their key, and return how many there are.

    `first` gets -1 - code for them; with `firsts` None they are counted only.
    """
    n = 0
    for i in range(start, stop):
        if first[i] == i:
            if firsts is not None:
                firsts[code + n] = i
                first[i] = -1 - (code + n)
            n += 1
    return n


@kernel
def find_others(first, start, stop, codes):
    """Give every row of a block the code of the first row with its key."""
    for i in range(start, stop):
        row = first[i]
        codes[i] = -1 - row if row < 0 else -1 - first[row]
