"""Kernels on dense tables with a slot for each pair of a predicted and a true cluster."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, kernel
from fastbcubed.kernels.partition import WEIGHTS_AT_ONCE, add_exactly
from fastbcubed.kernels.preaggregate import find_in_box, find_in_grid

#: Approximate number of slots summed over all tables at once: their data stay in a core's L1 cache.
SLOTS_AT_ONCE = 1024
#: Number of slots tested together for whether any has a record.
SLOTS_IN_A_WORD = 32


@kernel
def add_tables(tables, weight, outer, first, last, n, of_true, of_pred, n_met):
    """Sum the tables of `condense_rows` for the predicted clusters first..last, and compute the margins.

    Outputs: `n` and `weight` (None without weights), the sums of each slot, where `n` may be the first table's memory;
    `of_pred`, the (mass, rest) of each predicted cluster; `n_met`, its number of cells. `of_true`, the (mass, rest) of
    each true cluster, is added to.
    """
    n_true = of_true.shape[1]
    at_once = max(1, SLOTS_AT_ONCE // n_true)
    space = np.empty((2, at_once * n_true))
    for start in range(first, last, at_once):
        stop = min(start + at_once, last)
        slots = start * n_true, stop * n_true
        add_slots(tables, *slots, n, weight, space)
        own = space[0]
        if weight is None or outer:
            copy_counts(n, *slots, own)
        for p in range(start, stop):
            begin = (p - start) * n_true
            add_to_each(own, begin, of_true)
            of_pred[0, at(p)], of_pred[1, at(p)] = add_all(own, begin, begin + n_true)
            n_met[at(p)] = count_met(n, p * n_true, (p + 1) * n_true)


@kernel
def add_slots(tables, first, last, n, weight, space):
    """Sum the slots first..last over all tables: rows to `n`, weights to `weight` unless it is None.

    The weights are also left in `space`, starting at index 0.
    """
    few, x, many = tables
    total, error = space
    for s in range(first, last):
        n[at(s)] = few[0, at(s)]
    for t in range(1, few.shape[0]):
        for s in range(first, last):
            n[at(s)] += few[at(t), at(s)]
    if weight is not None:
        for s in range(first, last):
            total[at(s - first)], error[at(s - first)] = x[0, at(s)], 0.0
        for t in range(1, few.shape[0]):
            for s in range(first, last):
                j = at(s - first)
                total[j], error[j] = add_exactly(total[j], error[j], x[at(t), at(s)])
    for t in range(few.shape[0]):
        for s in range(first, last, SLOTS_IN_A_WORD):
            add_records(few, many, t, s, min(s + SLOTS_IN_A_WORD, last), n, weight, s - first, space)
    if weight is not None:
        for s in range(first, last):
            j = at(s - first)
            total[j] += error[j]
            weight[at(s)] = total[j]


@kernel
def add_records(few, many, t, first, last, n, weight, to, space):
    """Add the records of a few slots of table `t` to the totals, which lack them; most slots have no record."""
    total, error = space
    bits = np.uint8(0)
    if last - first == SLOTS_IN_A_WORD:
        for j in range(SLOTS_IN_A_WORD):
            bits |= few[at(t), at(first + j)]
        if bits < WEIGHTS_AT_ONCE:  # a power of two: no slot has that many
            return
    for s in range(first, last):
        if few[at(t), at(s)] >= WEIGHTS_AT_ONCE:
            n[at(s)] += many[at(t), at(s)].n - WEIGHTS_AT_ONCE
            if weight is not None:
                j = at(to + s - first)
                total[j], error[j] = add_exactly(total[j], error[j], many[at(t), at(s)].mass)
                error[j] += many[at(t), at(s)].rest


@kernel
def copy_counts(n, first, last, out):
    """Copy the row counts of the slots first..last to `out` as floats, starting at index 0."""
    for s in range(first, last):
        out[at(s - first)] = n[at(s)]


@kernel
def add_to_each(own, begin, totals):
    """Add each slot of a predicted cluster to the (mass, rest) of its true cluster. Shape: `totals` (2, n_true)."""
    for t in range(totals.shape[1]):
        totals[0, at(t)], totals[1, at(t)] = add_exactly(
            totals[0, at(t)], totals[1, at(t)], own[at(begin + t)]
        )


@kernel
def add_all(own, first, last):
    """Return the (mass, rest) of the slots first..last.

    Four sums are built in turn, because each addition to one sum waits for the last.
    """
    a = b = c = d = rest = other = third = fourth = 0.0
    end = last - (last - first) % 4
    for j in range(first, end, 4):
        a, rest = add_exactly(a, rest, own[at(j)])
        b, other = add_exactly(b, other, own[at(j + 1)])
        c, third = add_exactly(c, third, own[at(j + 2)])
        d, fourth = add_exactly(d, fourth, own[at(j + 3)])
    for j in range(end, last):
        a, rest = add_exactly(a, rest, own[at(j)])
    a, rest = add_exactly(a, rest, b)
    c, third = add_exactly(c, third, d)
    a, rest = add_exactly(a, rest, c)
    return a, rest + other + (third + fourth)


@kernel
def count_met(n, first, last):
    """Count the slots first..last that have rows."""
    met = 0
    for s in range(first, last):
        met += n[at(s)] > 0
    return met


@kernel
def add_ranges(of_true):
    """Add the sums of true clusters over all ranges into those of the first range. Shape: (n_ranges, 2, n_true)."""
    total = of_true[0]
    for r in range(1, of_true.shape[0]):
        for t in range(of_true.shape[2]):
            total[0, t], total[1, t] = add_exactly(total[0, t], total[1, t], of_true[r, 0, t])
            total[1, t] += of_true[r, 1, t]


@kernel
def write_cells(n, weight, outer, first, last, to, codes, of_true, of_pred, cells, pred_codes):
    """Write the cells of the predicted clusters first..last, starting at `to`, with false positives and negatives.

    `codes` are the arrays of true and of predicted codes by row and column of the table; `pred_codes` receives the
    predicted code of each cell, relative to that of `first`.
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
def look_up_slots(rows, box, grid, numbers, start, stop, out):
    """Write the number of each row's slot for the rows start..stop, all of which are in the box or in the grid."""
    found = out[start:stop]
    if grid is not None:
        find_in_grid(rows, start, found.size, grid, 0, found)
    else:
        find_in_box(rows, start, found.size, box, 0, found)
    for j in range(found.size):
        found[at(j)] = numbers[at(found[at(j)])]
