"""The join by item: which row of the other side has the same item, part by part."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import table_size
from fastbcubed.kernels.jit import kernel

__all__ = ["match_items"]


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
