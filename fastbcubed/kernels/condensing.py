"""Rows of the same two clusters become one row with a count, where few pairs of clusters hold most of the rows.

A table of pairs is either a box, with a slot for each two keys of two ranges, or has two slots that a pair can stand
in, and just pairs that are known to be frequent. Rows of other pairs stay as they are.

Most slots of a large table have few rows: a byte that counts them, and the sum of their weights, are what stays in
the cache. Each time `WEIGHTS_AT_ONCE` rows have come together, they are added to a record of the slot.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import WEIGHTS_AT_ONCE, add_exactly
from fastbcubed.kernels.jit import at, inlined, kernel


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
def condense_rows(rows, weights, start, stop, box, pairs, table, out, places):
    """Add a few rows to the slots of their pairs; write the others to `out`, and return how many there are.

    `rows` are (true, pred), `out` is (true, pred, x, n); `box` is (low_true, n_true, low_pred, n_pred), and `pairs`
    None where it is used. `table` is (few, x, many) by slot: see `n_of_slot` and `weight_of_slot`. `weights` may be
    None. `places`, if given, gets -1 - slot, or the place in `out`, of each row.
    """
    (trues, preds), (few, x, many) = rows, table
    low_true, n_true, low_pred, n_pred = box
    out_true, out_pred, out_x, out_n = out
    left = 0
    for i in range(start, stop):
        true, pred = trues[at(i)], preds[at(i)]
        if pairs is None:
            a, b = np.uint64(true) - low_true, np.uint64(pred) - low_pred
            known = (a < n_true) & (b < n_pred)
            s = np.int64(a * n_pred + b)
        else:
            s = home_of_pair(true, pred, pairs.size - 1)
            s += (pairs[at(s)].true != true) | (pairs[at(s)].pred != pred)
            known = (pairs[at(s)].true == true) & (pairs[at(s)].pred == pred)
        if places is not None:
            places[at(i)] = -1 - s if known else left
        if not known:
            out_true[at(left)], out_pred[at(left)], out_n[at(left)] = true, pred, 1
            if weights is not None:
                out_x[at(left)] = weights[at(i)]
            left += 1
            continue
        count = few[at(s)] + 1
        few[at(s)] = count
        if weights is not None:
            x[at(s)] += weights[at(i)]
        if count & (WEIGHTS_AT_ONCE - 1) == 0:
            few[at(s)] = WEIGHTS_AT_ONCE
            settle_slot(weights, s, count == WEIGHTS_AT_ONCE, x, many)
    return left


@kernel
def settle_slot(weights, s, is_first, x, many):
    """Add the rows of a slot that have come together to its record."""
    if is_first:
        many[s].n = 0
    many[s].n += WEIGHTS_AT_ONCE
    if weights is not None:
        if is_first:
            many[s].mass = many[s].rest = 0.0
        many[s].mass, many[s].rest = add_exactly(many[s].mass, many[s].rest, x[s])
        x[s] = 0.0


@kernel
def n_of_slot(few, n):
    """Return the rows of a slot: `few` of them, or the `n` of its record and what `few` is over `WEIGHTS_AT_ONCE`."""
    return few if few < WEIGHTS_AT_ONCE else n + few - WEIGHTS_AT_ONCE


@kernel
def write_pairs(box, pairs, weights, tables, first, last, out):
    """Write the pairs of some slots that have rows to `out`, added up over all tables; return how many there are.

    The place of each pair stands in `n` of its slot in the first table after. `tables` are those of
    `condense_rows`. Shapes: of their arrays (n_tables, n_slots).
    """
    low_true, _, low_pred, n_pred = box
    few, x, many = tables
    out_true, out_pred, out_x, out_n = out
    end = 0
    for s in range(first, last):
        n = 0
        for t in range(few.shape[0]):
            n += n_of_slot(few[t, s], many[t, s].n)
        if n == 0:
            continue
        if pairs is None:
            out_true[end] = np.int64(low_true + np.uint64(s) // n_pred)
            out_pred[end] = np.int64(low_pred + np.uint64(s) % n_pred)
        else:
            out_true[end], out_pred[end] = pairs[s].true, pairs[s].pred
        out_n[end] = n
        if weights is not None:
            out_x[end] = weight_of_slot(few, x, many, s)
        many[0, s].n = end
        end += 1
    return end


@kernel
def weight_of_slot(few, x, many, s):
    """Return what a slot weighs in all tables: `x`, and `mass + rest` of its record if it has one."""
    total, error = 0.0, 0.0
    for t in range(few.shape[0]):
        total, error = add_exactly(total, error, x[t, s])
        if few[t, s] >= WEIGHTS_AT_ONCE:
            total, error = add_exactly(total, error, many[t, s].mass)
            error += many[t, s].rest
    return total + error


@kernel
def settle_places(places, start, stop, many, shift):
    """Replace what stands for a slot by the place of its pair, and move all other places by `shift`."""
    for i in range(start, stop):
        place = places[at(i)]
        places[at(i)] = many[at(-1 - place)].n if place < 0 else place + shift
