"""The join by item: which row of the other side has the same item, part by part."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import table_size
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import bits_of, mix, part_of


@inlined
def row_of(rows, i):
    """Return the row of the item at a place; the place itself where rows are numbered as they stand."""
    if rows is None:
        return i
    return rows[at(i)]


@kernel
def match_items(
    true_keys, true_rows, true_bounds, pred_keys, pred_rows, pred_bounds, part_from, part_to, slots,
    pred_of_true, true_of_pred,
):  # fmt: skip
    """Match the items of several parts; return how many rows of each side repeat the item of an earlier one.

    Keys are mixed and stand part by part, from `bounds` (n_parts + 1,) on; `rows` (n,) or None are their rows.
    Outputs: for each row the row of the other side with the same item, or -1.
    """
    true_repeats = 0
    pred_repeats = 0
    for part in range(part_from, part_to):
        first = true_bounds[part]
        n_true = true_bounds[part + 1] - first
        begin = pred_bounds[part]
        n_pred = pred_bounds[part + 1] - begin
        size = table_size(n_true + n_pred)
        table = slots[:size] if size <= slots.size else np.empty(size, np.int32)
        table[:] = -1
        true_repeats += enter_items(true_keys, true_rows, first, n_true, table, pred_of_true)
        pred_repeats += look_up_items(
            true_keys, true_rows, first, n_true, pred_keys, pred_rows, begin, n_pred, table,
            pred_of_true, true_of_pred,
        )  # fmt: skip
    return true_repeats, pred_repeats


@kernel
def enter_items(keys, rows, first, n, table, other_row):
    """Enter the true items of a part into the table; return how many are there already."""
    mask = table.size - 1
    repeats = 0
    for i in range(n):
        key = keys[at(first + i)]
        other_row[at(row_of(rows, first + i))] = -1
        s = key & mask
        while table[at(s)] >= 0 and keys[at(first + table[at(s)])] != key:
            s = (s + 1) & mask
        if table[at(s)] >= 0:
            repeats += 1
        else:
            table[at(s)] = i
    return repeats


@kernel
def look_up_items(
    true_keys, true_rows, first, n_true, pred_keys, pred_rows, begin, n_pred, table,
    pred_of_true, true_of_pred,
):  # fmt: skip
    """Look the predicted items of a part up in the table, where they follow the true ones; return how many repeat."""
    mask = table.size - 1
    repeats = 0
    for j in range(n_pred):
        key = pred_keys[at(begin + j)]
        row = row_of(pred_rows, begin + j)
        true_of_pred[at(row)] = -1
        s = key & mask
        while True:
            k = table[at(s)]
            if k < 0:
                table[at(s)] = n_true + j
                break
            if k >= n_true:
                if pred_keys[at(begin + k - n_true)] == key:
                    repeats += 1
                    break
            elif true_keys[at(first + k)] == key:
                mate = row_of(true_rows, first + k)
                if pred_of_true[at(mate)] >= 0:
                    repeats += 1
                else:
                    pred_of_true[at(mate)] = row
                    true_of_pred[at(row)] = mate
                break
            s = (s + 1) & mask
    return repeats


@kernel
def take_rows(values, rows, start, stop, out):
    """Take values by row, for one block of rows; a negative row, which stands for none, gets any value."""
    last = values.size - 1
    for i in range(start, stop):
        row = rows[at(i)]
        out[at(i)] = values[at(row if row >= 0 else last)]


@kernel
def scatter_records(keys, labels, others, second, numbers, flags, weights, skip, bits, next_row, rows):
    """Write the rows of a block to the shards of their item keys, which are mixed, in row order; None is left out.

    Keys are those of the item, of its label, and of its other label where one row has both; `second` proves
    the item key. The shard is what `bits` bits of the mixed key after the first `skip` say. Shapes: `keys`,
    `labels`, `others`, `second`, `numbers`, `flags`, `weights` (n,), `next_row` (n_shards,).
    """
    for i in range(keys.size):
        key = mix(keys[i])
        shard = bits_of(key, skip, bits)
        j = next_row[shard]
        next_row[shard] = j + 1
        rows[j].key = key
        if labels is not None:
            rows[j].label = labels[i]
        if others is not None:
            rows[j].other = others[i]
        if second is not None:
            rows[j].second = second[i]
        if numbers is not None:
            rows[j].number = numbers[i]
        if flags is not None:
            rows[j].flags = flags[i]
        if weights is not None:
            rows[j].weight = weights[i]


@kernel
def count_words(words, bits, counts):
    """Count rows by part: the topmost `bits` bits of their first word, a mixed key. Shapes: (n, k), (), (n_parts,)."""
    for i in range(words.shape[0]):
        counts[at(part_of(words[at(i), 0], bits))] += 1


@kernel
def scatter_words(words, bits, next_row, columns, order):
    """Bring the rows of each part together, in row order, column by column.

    Shapes: (n, k), (), (n_parts,), (k, n), (n,). `order`, if it is not None, gets the row that stands at each place.
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
