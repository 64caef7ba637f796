"""Pre-aggregation: rows with the same two keys become one row with a count, where few pairs of keys hold most rows.

A table of pairs takes one of three forms: a box, with a slot for each pair of keys in two ranges; a grid, with a slot
for each pair of a few known keys; or a hash table of pairs known to be frequent, with one possible slot per pair.
Rows without a slot are unchanged.

Most slots of a large table get few rows: only a byte that counts them, and the sum of their weights, are kept in the
cache. Whenever a slot has collected `WEIGHTS_AT_ONCE` rows, they are added to its record.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels import by_numpy
from fastbcubed.kernels.hashing import fold, slot_of
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import WEIGHTS_AT_ONCE, add_exactly, fetch

#: Number of rows whose slots are found before the rows are counted.
ROWS_AT_A_TIME = 4096
#: Number of rows by which slots are prefetched; the sums of a large table do not stay in a core's cache.
CACHED_SLOTS = 1 << 16
ROWS_AHEAD = 64


@inlined(words=True)
def home_of_pair(true, pred, mask):
    """Return the only slot where a pair of keys may be."""
    h = np.uint64(true) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(pred) * np.uint64(0xC2B2AE3D27D4EB4F)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64(h >> np.uint64(33)) & mask


@kernel(by_numpy=by_numpy.count_pairs)
def count_pairs(true, pred, slots, first, seen):
    """Count the occurrences of each pair of keys; return the number of distinct pairs.

    Outputs, by pair: its `first` row, and its count in `seen`. Shapes: (n,) each; the empty `slots` have a power of
    two larger than n.
    """
    pairs, mask = 0, slots.size - 1
    for i in range(true.size):
        s = home_of_pair(true[i], pred[i], mask)
        c = slots[s]
        while c >= 0 and (true[first[c]] != true[i] or pred[first[c]] != pred[i]):
            s = (s + 1) & mask
            c = slots[s]
        if c < 0:
            c = slots[s] = pairs
            first[c], seen[c] = i, 0
            pairs += 1
        seen[c] += 1
    return pairs


@kernel
def enter_pairs(true, pred, pairs):
    """Enter pairs of keys, the most frequent first; a pair whose slot is taken is skipped.

    Free slots contain the first pair, which is never looked up there.
    """
    taken = np.zeros(pairs.size, np.bool_)
    for s in range(pairs.size):
        pairs[s].true = true[0]
        pairs[s].pred = pred[0]
    for k in range(true.size):
        s = home_of_pair(true[k], pred[k], pairs.size - 1)
        if not taken[s]:
            taken[s] = True
            pairs[s].true = true[k]
            pairs[s].pred = pred[k]


@kernel(words=True)
def hash_keys(keys, seeds):
    """Return hashes of keys. Shapes: (n,), (2,) -> (n,)."""
    codes = np.empty(keys.size, np.uint64)
    for k in range(keys.size):
        codes[k] = fold(np.uint64(keys[k]) ^ seeds[0], seeds[1])
    return codes


@kernel
def condense_rows(rows, weights, start, stop, box, grid, pairs, table, out, places):
    """Add the rows start..stop to the slots of their pairs; write rows without a slot to `out`; return their number.

    `rows` are (true, pred), `out` is (true, pred, x). One of three forms is used: `box`, (low_true, n_true, low_pred,
    n_pred); `grid`, the known keys of either side, if not None; `pairs`, if not None. `table` is (few, x, many) by
    slot, whose last slot receives all rows without a slot: see `n_of_slot` and `weight_of_slot`. `weights` may be
    None. `places`, unless empty, receives -1 - slot or the place in `out` of each row.
    """
    few, x, many = table
    slots = np.full(ROWS_AT_A_TIME + ROWS_AHEAD, few.size - 1, np.int32)
    others = np.empty(ROWS_AT_A_TIME, np.int32)
    left = 0
    for first in range(start, stop, ROWS_AT_A_TIME):
        n = min(stop - first, ROWS_AT_A_TIME)
        if pairs is not None:
            n_known = find_pairs(rows, first, n, pairs, few.size - 1, slots)
        elif grid is not None:
            n_known = find_in_grid(rows, first, n, grid, few.size - 1, slots)
        else:
            n_known = find_in_box(rows, first, n, box, few.size - 1, slots)
        if n_known < n or places.size:
            left = write_others(rows, weights, first, n, few.size - 1, slots, others, left, out, places)
        count_rows(weights, first, n, slots, few, x, many)
    return left


@kernel(words=True)
def find_in_box(rows, first, n, box, other, slots):
    """Find the slots of n rows, `other` for a row outside the box; return the number inside."""
    trues, preds = rows
    low_true, n_true, low_pred, n_pred = box
    known = 0
    for j in range(n):
        a, b = np.uint64(trues[at(first + j)]) - low_true, np.uint64(preds[at(first + j)]) - low_pred
        inside = (a < n_true) & (b < n_pred)
        slots[at(j)] = np.int64(b * n_true + a) if inside else other
        known += inside
    return known


@kernel
def find_in_grid(rows, first, n, grid, other, slots):
    """Find the slots of n rows, `other` for a row with an unknown key; return the number of rows with known keys."""
    trues, preds = rows
    (true_slots, true_pilots, true_seeds, true_keys), (pred_slots, pred_pilots, pred_seeds, _) = grid
    a, b, c, d, n_true = true_seeds[0], true_seeds[1], pred_seeds[0], pred_seeds[1], true_keys.size
    known = 0
    for j in range(n):
        true, pred = trues[at(first + j)], preds[at(first + j)]
        s = slot_of(fold(np.uint64(true) ^ a, b), true_pilots)
        r = slot_of(fold(np.uint64(pred) ^ c, d), pred_pilots)
        inside = (true_slots[s].key == true) & (pred_slots[r].key == pred)
        slots[at(j)] = pred_slots[r].number * n_true + true_slots[s].number if inside else other
        known += inside
    return known


@kernel
def find_pairs(rows, first, n, pairs, other, slots):
    """Find the slots of n rows, `other` for a row whose pair has none; return the number of rows with a slot.

    All possible slots are computed before the first lookup, so that the CPU overlaps the lookups.
    """
    trues, preds = rows
    for j in range(n):
        slots[at(j)] = home_of_pair(trues[at(first + j)], preds[at(first + j)], pairs.size - 1)
    known = 0
    for j in range(n):
        s = slots[at(j)]
        found = (pairs[at(s)].true == trues[at(first + j)]) & (pairs[at(s)].pred == preds[at(first + j)])
        slots[at(j)] = s if found else other
        known += found
    return known


@kernel
def write_others(rows, weights, first, n, other, slots, others, left, out, places):
    """Append the rows without a slot to `out`, which has `left` rows already.

    They are first listed in `others`, without an unpredictable branch.
    """
    trues, preds = rows
    out_true, out_pred, out_x = out
    found, noted = 0, places.size > 0
    for j in range(n):
        known = slots[at(j)] != other
        if noted:
            places[at(first + j)] = -1 - slots[at(j)] if known else left + found
        others[at(found)] = j
        found += not known
    for k in range(found):
        i = first + others[at(k)]
        out_true[at(left + k)], out_pred[at(left + k)] = trues[at(i)], preds[at(i)]
        if weights is not None:
            out_x[at(left + k)] = weights[at(i)]
    return left + found


@kernel
def count_rows(weights, first, n, slots, few, x, many):
    """Add n rows to their slots, prefetching the slots ROWS_AHEAD rows ahead."""
    uncached = few.size > CACHED_SLOTS
    for j in range(n):
        if weights is not None:
            if uncached:
                fetch(x, slots[at(j + ROWS_AHEAD)])
        s = slots[at(j)]
        count = few[at(s)] + 1
        few[at(s)] = count
        if weights is not None:
            x[at(s)] += weights[at(first + j)]
        if count & (WEIGHTS_AT_ONCE - 1) == 0:
            few[at(s)] = WEIGHTS_AT_ONCE
            settle_slot(weights, s, count == WEIGHTS_AT_ONCE, x, many)


@kernel
def settle_slot(weights, s, is_first, x, many):
    """Add the collected rows of a slot to its record."""
    if is_first:
        many[s].n = 0
    many[s].n += WEIGHTS_AT_ONCE
    if weights is not None:
        if is_first:
            many[s].mass = many[s].rest = 0.0
        many[s].mass, many[s].rest = add_exactly(many[s].mass, many[s].rest, x[s])
        x[s] = 0.0


@kernel
def n_of_slot(few, many, t, s):
    """Return the number of rows in slot `s` of table `t`; `few` counts them if they are too few for a record."""
    return np.int64(few) if few < WEIGHTS_AT_ONCE else many[at(t), at(s)].n + few - WEIGHTS_AT_ONCE


@kernel(words=True)
def write_pairs(box, grid, pairs, weights, tables, first, last, out):
    """Write the pairs of the nonempty slots first..last to `out`, summed over all tables; return their number.

    Afterwards, `n` of a pair's slot in the first table is the place of the pair. `tables` are those of
    `condense_rows`, with arrays of shape (n_tables, n_slots).
    """
    low_true, n_true, low_pred, _ = box
    few, x, many = tables
    out_true, out_pred, out_x, out_n = out
    end = 0
    for s in range(first, last):
        n = 0
        for t in range(few.shape[0]):
            n += n_of_slot(few[t, s], many, t, s)
        if n == 0:
            continue
        if pairs is not None:
            out_true[end], out_pred[end] = pairs[s].true, pairs[s].pred
        elif grid is not None:
            true_keys, pred_keys = grid[0][3], grid[1][3]
            out_true[end], out_pred[end] = true_keys[s % true_keys.size], pred_keys[s // true_keys.size]
        else:
            out_true[end] = np.int64(low_true + np.uint64(s) % n_true)
            out_pred[end] = np.int64(low_pred + np.uint64(s) // n_true)
        out_n[end] = n
        if weights is not None:
            out_x[end] = weight_of_slot(few, x, many, s)
        many[0, s].n = end
        end += 1
    return end


@kernel
def weight_of_slot(few, x, many, s):
    """Return the weight in slot `s` of all tables: `x`, plus `mass + rest` of its record if it has one."""
    total, error = 0.0, 0.0
    for t in range(few.shape[0]):
        total, error = add_exactly(total, error, x[t, s])
        if few[t, s] >= WEIGHTS_AT_ONCE:
            total, error = add_exactly(total, error, many[t, s].mass)
            error += many[t, s].rest
    return total + error


@kernel
def settle_places(places, start, stop, many, shift):
    """Replace each slot code by the place of its pair, and add `shift` to all other places."""
    for i in range(start, stop):
        place = places[at(i)]
        places[at(i)] = many[at(-1 - place)].n if place < 0 else place + shift


@kernel
def weigh_pairs(weights, places, there):
    """Return the sum of weight products over all pairs of rows at the same place, for places marked in `there`.

    Shapes: `weights`, `places` (n_rows,); `there` (n_places,).
    """
    before = np.zeros((2, there.size))
    total, rest = 0.0, 0.0
    for i in range(places.size):
        j = places[at(i)]
        if there[at(j)]:
            total, rest = add_exactly(total, rest, weights[at(i)] * (before[0, at(j)] + before[1, at(j)]))
            before[0, at(j)], before[1, at(j)] = add_exactly(
                before[0, at(j)], before[1, at(j)], weights[at(i)]
            )
    return total + rest
