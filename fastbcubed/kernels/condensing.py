"""Rows of the same two clusters become one row with a count, where few pairs of clusters hold most of the rows.

A table of pairs is either a box, with a slot for each two keys of two ranges, or has two slots that a pair can stand
in, and just pairs that are known to be frequent. Rows of other pairs stay as they are.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import WEIGHTS_AT_ONCE, add_exactly
from fastbcubed.kernels.jit import at, inlined, kernel

#: Rows whose slots are worked out before they are used: the processor then has several slots under way at once.
ROWS_AT_ONCE = 256


@inlined
def home_of_pair(true, pred, mask):
    """Return the first of the two slots that a pair of keys can stand in, an even number."""
    h = np.uint64(true) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(pred) * np.uint64(0xC2B2AE3D27D4EB4F)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(h >> np.uint64(33)) & (mask - 1)


@kernel
def enter_pairs(true, pred, pairs):
    """Enter pairs of keys, the most important one first; one without a free slot is left out.

    What stands in free slots is the first pair, which is never looked for there.
    """
    mask = pairs.size - 1
    taken = np.zeros(pairs.size, np.bool_)
    for s in range(pairs.size):
        pairs[s].true = true[0]
        pairs[s].pred = pred[0]
    for k in range(true.size):
        s = home_of_pair(true[k], pred[k], mask)
        s += taken[s]
        if not taken[s]:
            taken[s] = True
            pairs[s].true = true[k]
            pairs[s].pred = pred[k]


@kernel
def find_slots(rows, first, last, box, pairs, slots):
    """Write the slot of each of a few rows, -1 for those of other pairs; see `condense_rows`."""
    trues, preds = rows
    low_true, n_true, low_pred, n_pred = box
    for i in range(first, last):
        true, pred = trues[at(i)], preds[at(i)]
        if pairs is None:
            a, b = np.uint64(true) - low_true, np.uint64(pred) - low_pred
            known = (a < n_true) & (b < n_pred)
            s = np.int64(a * n_pred + b)
        else:
            s = home_of_pair(true, pred, pairs.size - 1)
            s += (pairs[at(s)].true != true) | (pairs[at(s)].pred != pred)
            known = (pairs[at(s)].true == true) & (pairs[at(s)].pred == pred)
        slots[at(i - first)] = s if known else -1


@kernel
def add_rows(weights, first, last, slots, table):
    """Add a few rows to their slots."""
    sums, mass, rest = table
    for i in range(first, last):
        s = slots[at(i - first)]
        if s < 0:
            continue
        count = sums[at(s)].n + 1
        sums[at(s)].n = count
        if weights is not None:
            total = sums[at(s)].x + weights[at(i)]
            if count & (WEIGHTS_AT_ONCE - 1) == 0:
                if count == WEIGHTS_AT_ONCE:
                    mass[at(s)] = rest[at(s)] = 0.0
                mass[at(s)], rest[at(s)] = add_exactly(mass[at(s)], rest[at(s)], total)
                total = 0.0
            sums[at(s)].x = total


@kernel
def keep_rows(rows, weights, first, last, slots, out, left, places):
    """Write a few rows that have no slot to `out`, from place `left` on, and return where they end."""
    true, pred = rows
    out_true, out_pred, out_x, out_n = out
    for i in range(first, last):
        s = slots[at(i - first)]
        if s < 0:
            out_true[at(left)], out_pred[at(left)], out_n[at(left)] = true[at(i)], pred[at(i)], 1
            if weights is not None:
                out_x[at(left)] = weights[at(i)]
            left += 1
        if places is not None:
            places[at(i)] = left - 1 if s < 0 else -1 - s
    return left


@kernel
def condense_rows(rows, weights, start, stop, box, pairs, table, out, places):
    """Add rows of one block to the slots of their pairs; write the others to `out`, and return how many there are.

    `rows` are (true, pred), `out` is (true, pred, x, n); `box` is (low_true, n_true, low_pred, n_pred), and `pairs`
    None where it is used. `table` is (sums, mass, rest) by slot, sums being records (n[, x]), zeros at the start:
    x + mass + rest is the weight, mass and rest from `WEIGHTS_AT_ONCE` rows on. `weights`, mass and rest may be
    None. `places`, if given, gets -1 - slot, or the place in `out`, of each row.
    """
    slots = np.empty(ROWS_AT_ONCE, np.int64)
    left = 0
    for first in range(start, stop, ROWS_AT_ONCE):
        last = min(first + ROWS_AT_ONCE, stop)
        find_slots(rows, first, last, box, pairs, slots)
        add_rows(weights, first, last, slots, table)
        left = keep_rows(rows, weights, first, last, slots, out, left, places)
    return left


@kernel
def write_pairs(box, pairs, weights, table, out, left):
    """Write the pairs that have rows to `out`, from place `left` on, and return where they end.

    The place of each pair stands in `n` of its slot after; see `condense_rows`.
    """
    low_true, _, low_pred, n_pred = box
    sums, mass, rest = table
    out_true, out_pred, out_x, out_n = out
    for s in range(sums.size):
        n = sums[s].n
        if n == 0:
            continue
        if pairs is None:
            out_true[left] = np.int64(low_true + np.uint64(s) // n_pred)
            out_pred[left] = np.int64(low_pred + np.uint64(s) % n_pred)
        else:
            out_true[left] = pairs[s].true
            out_pred[left] = pairs[s].pred
        out_n[left] = n
        if weights is not None:
            out_x[left] = sums[s].x
            if n >= WEIGHTS_AT_ONCE:
                out_x[left] += mass[s] + rest[s]
        sums[s].n = left
        left += 1
    return left


@kernel
def settle_places(places, start, stop, sums):
    """Replace what stands for a slot by the place of its pair."""
    for i in range(start, stop):
        if places[at(i)] < 0:
            places[at(i)] = sums[at(-1 - places[at(i)])].n
