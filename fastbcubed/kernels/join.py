"""The join by item: for each row, the row of the other side with the same item, part by part."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels import by_numpy
from fastbcubed.kernels.cells import table_size
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import bits_of, fetch, mix, part_of

#: Number of rows by which memory accesses are prefetched.
AHEAD = 32


@inlined
def row_of(rows, i):
    """Return the row of the item at index `i` of a part; the index itself if `rows` is None."""
    if rows is None:
        return i
    return rows[at(i)]


@kernel(by_numpy=by_numpy.match_items)
def match_items(true, pred, part_from, part_to, space, pred_of_true, lacking, values, value_of_true):
    """Match the items of several parts; return, for each side, the number of rows that repeat an earlier item.

    A side is a tuple: its mixed keys part by part, their rows (n,) or None, and where each part begins (n_parts +
    1,). `space` is for a hash table, marks of a part's true rows, and places of its predicted rows. Outputs:
    `pred_of_true`, the predicted row matched to each true row, and `value_of_true`, its value if `values` are given;
    `lacking`, True for predicted rows without a match or with a repeated item.
    """
    slots, seen, places = space
    true_repeats = 0
    pred_repeats = 0
    for part in range(part_from, part_to):
        first = true[2][part]
        n_true = true[2][part + 1] - first
        size = table_size(n_true)
        table = slots[:size] if size <= slots.size else np.empty(size, np.int32)
        true_repeats += enter_items(true[0], first, n_true, table)
        seen[:n_true] = False
        missing, repeats = look_up_items(
            true, first, pred, pred[2][part], pred[2][part + 1], table, (seen, places), pred_of_true, lacking,
            values, value_of_true,
        )  # fmt: skip
        pred_repeats += repeats
        if missing > 1:
            pred_repeats += count_repeats(pred[0], places[:missing], slots)
    return true_repeats, pred_repeats


@kernel
def enter_items(keys, first, n, table):
    """Clear the hash table, and enter the items of a part; return the number of rows that repeat an item."""
    mask = table.size - 1
    repeats = 0
    table[:] = -1
    for i in range(n):
        key = keys[at(first + i)]
        s = key & mask
        while table[at(s)] >= 0 and keys[at(first + table[at(s)])] != key:
            s = (s + 1) & mask
        if table[at(s)] >= 0:
            repeats += 1
        else:
            table[at(s)] = i
    return repeats


@kernel
def look_up_items(true, first, pred, begin, end, table, space, pred_of_true, lacking, values, value_of_true):
    """Look up the predicted items of a part in the hash table of its true items.

    Returns the number of items without a match, whose places are written to `space`, and the number that repeat a
    matched item. `space` begins with marks of the part's true rows, initially False.
    """
    seen, places = space
    mask = table.size - 1
    missing, repeats = 0, 0
    for j in range(begin, end):
        key = pred[0][at(j)]
        s = key & mask
        k = table[at(s)]
        while k >= 0 and true[0][at(first + k)] != key:
            s = (s + 1) & mask
            k = table[at(s)]
        if k < 0:
            lacking[at(row_of(pred[1], j))] = True
            places[at(missing)] = j
            missing += 1
        elif seen[at(k)]:
            lacking[at(row_of(pred[1], j))] = True
            repeats += 1
        else:
            seen[at(k)] = True
            row = row_of(true[1], first + k)
            pred_of_true[at(row)] = row_of(pred[1], j)
            if values is not None:
                value_of_true[at(row)] = values[at(j)]
    return missing, repeats


@kernel
def count_repeats(keys, places, slots):
    """Count the keys at these places that equal an earlier one; `slots` is space for a hash table."""
    size = table_size(places.size)
    table = slots[:size] if size <= slots.size else np.empty(size, np.int32)
    found = np.empty(places.size, np.int64)
    for i in range(places.size):
        found[at(i)] = keys[at(places[at(i)])]
    return enter_items(found, 0, found.size, table)


@kernel
def read_places(places, start, stop, found, values, pred_of_true, value_of_true):
    """Copy the match found at each row's place to the rows start..stop: a row and its value, 0 without a match."""
    for i in range(start, stop):
        place = places[at(i)]
        row = found[at(place)]
        pred_of_true[at(i)] = row
        value_of_true[at(i)] = values[at(place)] if row >= 0 else 0


@kernel(by_numpy=by_numpy.take_rows)
def take_rows(values, rows, start, stop, out):
    """Write values[rows[i]], or -1 for a negative row, to out[i] for i in start..stop, without branching on rows."""
    if not values.size:
        out[start:stop] = -1
        return
    for i in range(start, stop):
        if i + AHEAD < stop:
            fetch(values, max(rows[at(i + AHEAD)], 0))
        row = rows[at(i)]
        value = values[at(max(row, 0))]
        out[at(i)] = value if row >= 0 else -1


@kernel
def scatter_columns(columns, skip, bits, next_row, rows):
    """Write the rows of a block, given as columns of words, to the shards of their item keys, in row order.

    The first column has the item keys, which this kernel mixes. A row's shard is given by the `bits` bits of the mixed
    key after the first `skip`. Shapes: `columns` (n,) each, `next_row` (n_shards,), `rows` (n, n_columns).
    """
    for i in range(columns[0].size):
        key = mix(columns[0][at(i)])
        shard = bits_of(key, skip, bits)
        j = next_row[at(shard)]
        next_row[at(shard)] = j + 1
        rows[at(j), 0] = key
        for c in range(1, len(columns)):
            rows[at(j), at(c)] = columns[c][at(i)]


@kernel
def count_words(words, bits, counts):
    """Count rows by part: the top `bits` bits of their first word, a mixed key. Shapes: (n, k), (), (n_parts,)."""
    for i in range(words.shape[0]):
        counts[at(part_of(words[at(i), 0], bits))] += 1


@kernel
def scatter_words(words, bits, next_row, columns, order):
    """Group rows by part, keeping row order, and write them column by column.

    Shapes: (n, k), (), (n_parts,), (k, n), (n,). `order`, unless None, receives the original row of each.
    """
    for i in range(words.shape[0]):
        part = part_of(words[at(i), 0], bits)
        j = next_row[at(part)]
        next_row[at(part)] = j + 1
        columns[0, at(j)] = words[at(i), 0]
        for c in range(1, words.shape[1]):
            columns[at(c), at(j)] = words[at(i), at(c)]
        if order is not None:
            order[at(j)] = i
