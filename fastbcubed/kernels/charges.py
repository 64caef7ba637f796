"""Charges: what the pairs of items lose, split among the clusters that they share, pair of cells by pair."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.close_mates import find_mates, mark_common, may_have
from fastbcubed.kernels.jit import inlined, kernel
from fastbcubed.kernels.mates import add_times
from fastbcubed.kernels.overlap import count_true


@kernel
def charge_clusters(start, stop, items, rows, clusters, close, overlaps, space, lost):
    """Add up what an item of each of a range of cells loses through each of its clusters, times its mates.

    Items that share g predicted and c true clusters lose (g - min(g, c)) / g on the predicted side, of which each of
    the g is charged an equal part; likewise on the true side. As in `score_cells`, mates with g and c of 0 or 1 are
    counted through the overlaps, and those with more are visited.

    Output: `lost`, by cell its true clusters, then its predicted ones, in the order of its row.
    """
    strangers, shared, at_true, at_pred, (found, met) = space
    for cell in range(start, stop):
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        own_c = count_true(rows, begin, end)
        own_g = end - begin - own_c
        w = items.weight[cell] if items.weighted else np.float64(items.n[cell])
        count_strangers(cell, begin, own_c, own_g, items, rows, clusters, overlaps, strangers)
        for k in range(own_c + own_g):
            shared[k] = charge(w, own_c, own_g) if k < own_c else charge(w, own_g, own_c)
        for m in range(find_mates(cell, rows, close, found, met) if may_have(cell, close) else 0):
            row, c, g = found[m, 0], found[m, 1], found[m, 2]
            mark_common(rows, begin, end, row + 2, at_true, at_pred)
            charge_mate(strangers, shared, items, rows.codes[row], at_true[:c], at_pred[:g])
        place = rows.starts[cell] - 4 * cell - 2  # of its first membership
        for k in range(own_c + own_g):
            lost[place + k] = shared[k] + weigh(strangers, k, items.weighted)


@inlined
def charge(w, own, others):
    """Return what each of `own` shared clusters is charged for a mate with whom `others` are shared across."""
    return w * ((own - min(own, others)) / own / own)


@inlined
def add_size(sums, k, sign, n, mass, rest, weighted):
    """Add so many items to the sum at a place, or take them away."""
    sums.n[k] += sign * n
    if weighted:
        sums.mass[k], sums.rest[k] = add_exactly(sums.mass[k], sums.rest[k] + sign * rest, sign * mass)


@inlined
def add_mate(sums, k, times, n, w, weighted):
    """Add the items of a cell, so many times, to the sum at a place."""
    sums.n[k] += times * n
    if weighted and times:
        sums.mass[k], sums.rest[k] = add_times(sums.mass[k], sums.rest[k], times, w)


@inlined
def count_strangers(cell, begin, own_c, own_g, items, rows, clusters, overlaps, strangers):
    """Count, by cluster of a cell, the other items in it, less those in its overlaps with the other side's clusters."""
    n, w = items.n[cell], items.weight[cell] if items.weighted else 0.0
    weighted = items.weighted
    for k in range(own_c + own_g):
        j = rows.codes[begin + k]
        strangers.n[k] = 0
        if weighted:
            strangers.mass[k], strangers.rest[k] = 0.0, 0.0
        mass, rest = (clusters.mass[j], clusters.rest[j]) if weighted else (0.0, 0.0)
        add_size(strangers, k, 1, clusters.n[j], mass, rest, weighted)
        add_mate(strangers, k, (own_g if k < own_c else own_c) - 1, n, w, weighted)
    entry = overlaps.entry_bounds[cell]
    for a in range(own_c):
        for b in range(own_g):
            o = overlaps.entries[entry + a * own_g + b]
            mass, rest = (overlaps.sizes.mass[o], overlaps.sizes.rest[o]) if weighted else (0.0, 0.0)
            add_size(strangers, a, -1, overlaps.sizes.n[o], mass, rest, weighted)
            add_size(strangers, own_c + b, -1, overlaps.sizes.n[o], mass, rest, weighted)


@inlined
def charge_mate(strangers, shared, items, mate, at_true, at_pred):
    """Charge the common clusters for a mate that is visited, and count it no longer through the overlaps."""
    c, g = at_true.size, at_pred.size
    n = items.n[mate]
    w = items.weight[mate] if items.weighted else np.float64(n)
    for k in at_true:
        add_mate(strangers, k, g - 1, n, w, items.weighted)
        shared[k] += charge(w, c, g)
    for k in at_pred:
        add_mate(strangers, k, c - 1, n, w, items.weighted)
        shared[k] += charge(w, g, c)


@inlined
def weigh(sums, k, weighted):
    """Return what a sum weighs, 0 if it has no items."""
    if not weighted:
        return np.float64(sums.n[k])
    return max(0.0, sums.mass[k] + sums.rest[k]) if sums.n[k] else 0.0
