"""The join by item: which row of the other side has the same item, part by part."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import table_size
from fastbcubed.kernels.jit import kernel
from fastbcubed.kernels.partition import bits_of, mix

__all__ = ["match_items", "scatter_records"]


@kernel
def match_items(
    true_items, true_bounds, pred_items, pred_bounds, part_from, part_to, slots, pred_of_true, true_of_pred
):
    """Match the items of several parts, and count those that come again on their own side.

    Parameters
    ----------
    true_items, pred_items : record arrays (key, row)
        The items of each side by part; either may be empty.
    true_bounds, pred_bounds : int64 (n_parts + 1,)
        Where each part begins.
    slots : int32
        Workspace for a hash table.
    pred_of_true, true_of_pred : int64 outputs, one entry per row of a side
        The row of the other side with the same item, or -1.

    Returns
    -------
    tuple of int
        Rows of the truth, and of the prediction, whose item an earlier row has.
    """  # fmt: skip
    true_again = 0
    pred_again = 0
    for part in range(part_from, part_to):
        first = true_bounds[part]
        last = true_bounds[part + 1]
        n_true = last - first
        begin = pred_bounds[part]
        end = pred_bounds[part + 1]
        size = table_size(n_true + end - begin)
        table = slots[:size] if size <= slots.size else np.empty(size, np.int32)
        table[:] = -1
        mask = size - 1
        for i in range(n_true):
            key = true_items[first + i].key
            pred_of_true[true_items[first + i].row] = -1
            s = key & mask
            while table[s] >= 0 and true_items[first + table[s]].key != key:
                s = (s + 1) & mask
            if table[s] >= 0:
                true_again += 1
            else:
                table[s] = i
        for j in range(end - begin):  # in the table, prediction rows follow those of the truth
            key = pred_items[begin + j].key
            row = pred_items[begin + j].row
            true_of_pred[row] = -1
            s = key & mask
            while True:
                k = table[s]
                if k < 0:
                    table[s] = n_true + j
                    break
                if k >= n_true:
                    if pred_items[begin + k - n_true].key == key:
                        pred_again += 1
                        break
                elif true_items[first + k].key == key:
                    mate = true_items[first + k].row
                    if pred_of_true[mate] >= 0:
                        pred_again += 1
                    else:
                        pred_of_true[mate] = row
                        true_of_pred[row] = mate
                    break
                s = (s + 1) & mask
    return true_again, pred_again


@kernel
def scatter_records(keys, labels, others, second, numbers, flags, weights, skip, bits, next_row, rows):
    """Write the rows of a block to the shards of their item keys, in row order; what is None is left out.

    Parameters
    ----------
    keys, labels, others : int64 (n,)
        Keys of the item, of its label, and of its other label where one row has both.
    second : uint64 (n,)
        What proves the item key.
    numbers, flags : int64 (n,)
        Row number, and what is special about the row.
    weights : float64 (n,)
    skip, bits : int
        The shard is these bits of the mixed key.
    next_row : int64 (n_shards,)
        Where the next row of each shard goes.
    rows : record array
        Fields key, label, other, second, number, flags, weight, as far as they are given.
    """
    for i in range(keys.size):
        shard = bits_of(mix(keys[i]), skip, bits)
        j = next_row[shard]
        next_row[shard] = j + 1
        rows[j].key = keys[i]
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
