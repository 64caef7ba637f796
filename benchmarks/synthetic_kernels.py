"""Synthetic clusterings, item by item: a shuffle that is computed instead of stored, and hashed names.

All values are pure functions of an item's position and of keys, so any block of rows can be generated separately.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import kernel
from fastbcubed.kernels.partition import mix

WORD = np.uint64
ZERO, ONE, FOUR, FIFTEEN, HALF = (np.uint64(v) for v in (0, 1, 4, 15, 32))
ROUNDS = 4  # of the shuffle; each has its own key word


@kernel(words=True)
def choose(x, key, n):
    """Hash `x` to a number below `n`, which is at most 2**32."""
    x = (x ^ key) * WORD(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> HALF)) * WORD(0x94D049BB133111EB)
    return ((x >> HALF) * n) >> HALF


@kernel(words=True)
def permute(x, n, side, key):
    """Return the position of `x` in a shuffle of `range(n)`. Words and shape (4,) -> word.

    A Feistel network: `x` is a row and a column of a table of `side` columns, the smallest whose square holds
    `n`; by turns, one is shifted by a hash of the other. Results outside the range are permuted again.
    """
    rows = (n + side - ONE) // side
    while True:
        row = x // side
        column = x - row * side
        for turn in range(0, ROUNDS, 2):
            column += choose(row, key[turn], side)
            column -= side if column >= side else ZERO
            row += choose(column, key[turn + 1], rows)
            row -= rows if row >= rows else ZERO
        x = row * side + column
        if x < n:
            return x


@kernel(words=True)
def permute_back(x, n, side, key):
    """Undo `permute`. Words and shape (4,) -> word."""
    rows = (n + side - ONE) // side
    while True:
        row = x // side
        column = x - row * side
        for turn in range(ROUNDS - 2, -1, -2):
            row += rows - choose(column, key[turn + 1], rows)
            row -= rows if row >= rows else ZERO
            column += side - choose(row, key[turn], side)
            column -= side if column >= side else ZERO
        x = row * side + column
        if x < n:
            return x


@kernel(words=True)
def place_items(start, figures, guide, runs, keys, item, true, pred):
    """Find the item of each row, beginning with row `start`, and its true and predicted cluster.

    `figures`: number of items, and side of their table; number of clusters; number of clusters that may change, side of
    their table, and number of those that are merged; first cluster that may be split, number of those that may be, side
    of their table, and number of those that are split; number of bits that the guide drops. `guide` has, by the upper
    bits of an item, the first run that may include it. `runs` are clusters of one size: first item, first cluster,
    size; the last entry only closes the table. `keys` are for the order of rows, for merges, for splits, and for the
    share that is split off.
    Shapes: `figures` (11,), `runs` (n_runs + 1, 3), `keys` (4, 4), `item`, `true`, `pred` (n,).
    """
    n_items, items_side, n_clusters = figures[0], figures[1], figures[2]
    n_free, free_side, n_merged = figures[3], figures[4], figures[5]
    first_large, n_large, large_side, n_split = figures[6], figures[7], figures[8], figures[9]
    bits = figures[10]
    order, merging, splitting, moving = keys[0], keys[1], keys[2], keys[3, 0]
    for i in range(item.size):  # in a separate loop, the processor overlaps several items
        item[i] = permute(WORD(start + i), n_items, items_side, order)
    for i in range(item.size):
        at = item[i]
        run = guide[at >> bits]
        while at >= runs[run + 1, 0]:
            run += 1
        size = runs[run, 2]
        inside = at - runs[run, 0]
        nth = inside // size
        cluster = runs[run, 1] + nth
        label = cluster
        if cluster < n_free:
            drawn = permute(cluster, n_free, free_side, merging)
            if drawn < n_merged:
                label = permute_back(drawn + n_merged, n_free, free_side, merging)
            if cluster >= first_large:
                drawn = permute(cluster - first_large, n_large, large_side, splitting)
                if drawn < n_split and inside - nth * size <= choose(cluster, moving, size - ONE):
                    label = n_clusters + drawn
        true[i] = cluster
        pred[i] = label


@kernel(words=True)
def hash_codes(codes, first, key, out):
    """Write to `out` 64-bit hashes of `first + code`, which are one to one for a key. Shapes: (n,), (), (), (n,)."""
    for i in range(codes.size):
        out[i] = WORD(mix((codes[i] + first) ^ key))


@kernel(words=True)
def write_names(words, letter, text):
    """Write each word to `out` as a letter and 16 hexadecimal digits. Shapes: (n,), (), (17 n,)."""
    for i in range(words.size):
        word = words[i]
        text[17 * i] = letter
        for position in range(16, 0, -1):
            digit = word & FIFTEEN
            text[17 * i + position] = np.uint8(digit + WORD(48) if digit < WORD(10) else digit + WORD(87))
            word >>= FOUR
