"""Cells of a box: a table with a slot for each two clusters of two ranges, in which all rows have been counted.

Slots of a predicted cluster stand side by side, in the order of the true clusters. A range of predicted clusters is
handled at once; true clusters are added up for each range, and then over the ranges.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.condensing import find_in_box, n_of_slot, weight_of_slot
from fastbcubed.kernels.jit import at, kernel


@kernel
def add_tables(tables, weight, outer, first, last, n, of_true, of_pred, n_met):
    """Add up the tables of `condense_rows` over the predicted clusters first..last, and their margins.

    `n` and `weight`, which is None without weights, take what each slot holds; it may be that of the first table.
    `of_true` and `of_pred` are (mass, rest) of each cluster: the former is added to. `n_met` takes the cells of each
    predicted cluster.
    """
    few, x, many = tables
    n_true = of_true.shape[1]
    for p in range(first, last):
        mass, rest, met = 0.0, 0.0, 0
        for t in range(n_true):
            s = p * n_true + t
            count = 0
            for k in range(few.shape[0]):
                count += n_of_slot(few[at(k), at(s)], many, k, s)
            n[at(s)] = count
            if count == 0:
                continue
            met += 1
            own = np.float64(count)
            if weight is not None:
                weight[at(s)] = weight_of_slot(few, x, many, s)
                own = own if outer else weight[at(s)]
            mass, rest = add_exactly(mass, rest, own)
            of_true[0, at(t)], of_true[1, at(t)] = add_exactly(of_true[0, at(t)], of_true[1, at(t)], own)
        of_pred[0, at(p)], of_pred[1, at(p)], n_met[at(p)] = mass, rest, met


@kernel
def add_ranges(of_true):
    """Add up the true clusters of all ranges, shape (n_ranges, 2, n_true), into those of the first."""
    total = of_true[0]
    for r in range(1, of_true.shape[0]):
        for t in range(of_true.shape[2]):
            total[0, t], total[1, t] = add_exactly(total[0, t], total[1, t], of_true[r, 0, t])
            total[1, t] += of_true[r, 1, t]


@kernel
def write_cells(n, weight, outer, first, last, to, codes, of_true, of_pred, cells, pred_codes):
    """Write the cells of the predicted clusters first..last, from `to` on, with the mates of either side alone.

    `codes` are those of true and of predicted clusters; `pred_codes` takes the latter, counted from the first.
    """
    true_code, pred_code = codes
    n_true = of_true.shape[1]
    for p in range(first, last):
        for t in range(n_true):
            s = p * n_true + t
            count = n[at(s)]
            if count == 0:
                continue
            mass = np.float64(count)
            own = mass
            if weight is not None:
                mass = weight[at(s)]
                own = own if outer else mass
            cells[at(to)].fp = (of_pred[0, at(p)] - own) + of_pred[1, at(p)]
            cells[at(to)].weight = mass
            cells[at(to)].fn = (of_true[0, at(t)] - own) + of_true[1, at(t)]
            cells[at(to)].true = true_code[at(t)]
            cells[at(to)].n = count
            pred_codes[at(to)] = pred_code[at(p)] - pred_code[at(first)]
            to += 1


@kernel
def look_up_slots(rows, box, numbers, start, stop, out):
    """Look up the number of the slot of each row of one block, all of which are in the box."""
    found = out[start:stop]
    find_in_box(rows, start, found.size, box, 0, found)
    for j in range(found.size):
        found[at(j)] = numbers[at(found[at(j)])]
