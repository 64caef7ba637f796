"""Pairs of cells: what the mates of an item share with it, where items may be in several clusters.

Almost all of what the items of a cell share with others is read from what each of its true clusters has in common
with its predicted ones. Only mates with which they share two clusters of a side are visited.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.close_mates import find_mates, may_have
from fastbcubed.kernels.fetching import fetch
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.overlap import AHEAD, add_others, add_size


@kernel
def split(w):
    """Split a float into two of 26 bits each, so that small multiples of both are exact."""
    scaled = 134217729.0 * w
    high = scaled - (scaled - w)
    return high, w - high


@kernel
def add_times(total, error, k, w):
    """Add `k * w` to the sum held as `total + error`, without loss; k is a small integer."""
    if k == 1 or k == -1:
        return add_exactly(total, error, k * w)
    high, low = split(w)
    total, error = add_exactly(total, error, k * high)
    return add_exactly(total, error, k * low)


@inlined
def add_copies(sums, k, n, weight, weighted):
    """Add so many items, `k` times, to the sums (items, weight, what it leaves over)."""
    count, mass, rest = sums
    if weighted:
        mass, rest = add_times(mass, rest, k, weight)
    return count + k * n, mass, rest


@kernel
def score_cells(start, stop, items, rows, clusters, close, common, found, met, shares, mates):
    """Add up what the items of each of a range of cells share with the mates in other cells.

    With g and c the predicted and true clusters that an item and its mate share, a mate with g > 0
    counts min(g, c) / g as a hit on the predicted side and the rest as a miss; likewise on the true
    side. Mates with g and c of 0 or 1 are counted through what clusters have in common, from which the close ones,
    with g or c of 2 or more, are taken away again.

    `found` and `met` are the workspaces of `find_mates`. Outputs: `shares` (n_cells, 4), hits and misses on the
    predicted side, then on the true side; `mates` (n_cells, 2), items that share a predicted cluster, and a true
    cluster, with an item of the cell; itself too.
    """
    for cell in range(start, stop):
        if cell + AHEAD < stop:
            ask_for_clusters(cell + AHEAD, rows, clusters)
        sums = add_singles(cell, items, rows, clusters, common)
        hits = 0.0, 0.0, 0.0, 0.0
        for m in range(find_mates(cell, rows, close, found, met) if may_have(cell, close) else 0):
            mate, c, g = rows.codes[found[m, 0]], found[m, 1], found[m, 2]
            w = items.weight[mate] if items.weighted else np.float64(items.n[mate])
            sums = count_mate(sums, items.n[mate], w, c, g, items.weighted)
            if g and c:
                hits = add_hits(hits, w, c, g)
        write_shares(hits, sums, items.weighted, shares, cell)
        mates[cell, 0] = sums[1][0] + items.n[cell]
        mates[cell, 1] = sums[0][0] + items.n[cell]


@inlined
def ask_for_clusters(cell, rows, clusters):
    """Ask for the sizes of the clusters of a cell that comes later."""
    begin = rows.starts[at(cell)] + 2
    for k in range(begin, begin + rows.codes[at(begin - 1)]):
        fetch(clusters.n, rows.codes[at(k)])


@inlined
def add_singles(cell, items, rows, clusters, common):
    """Add up the true clusters of a cell, its predicted ones and what they have in common, all without the cell itself.

    Last of the four sums comes an empty one, for mates that share several clusters.
    """
    true = pred = ones = both = 0, 0.0, 0.0
    begin = rows.starts[at(cell)] + 2
    place = common.bounds[at(cell)]
    n, w = items.n[at(cell)], items.weight[at(cell)] if items.weighted else 0.0
    for k in range(begin, begin + rows.codes[at(begin - 1)]):
        j = rows.codes[at(k)]
        if j < rows.n_true:
            true = add_others(true, clusters, j, n, w, items.weighted)
            ones = add_size(ones, common.sizes, place, items.weighted)
            place += 1
        else:
            pred = add_others(pred, clusters, j, n, w, items.weighted)
    return true, pred, ones, both


@inlined
def count_mate(sums, n, w, c, g, weighted):
    """Count a mate with whom c true and g predicted clusters are shared once, not once for each of them."""
    true, pred, ones, both = sums
    if g > 1:
        pred = add_copies(pred, 1 - g, n, w, weighted)
    if c > 1:
        true = add_copies(true, 1 - c, n, w, weighted)
    if g and c:
        ones = add_copies(ones, -g * c, n, w, weighted)
        both = add_copies(both, 1, n, w, weighted)
    return true, pred, ones, both


@inlined
def add_hits(hits, w, c, g):
    """Add mates to the hits and misses on each side of which they share clusters: c true and g predicted ones."""
    hit_pred, miss_pred, hit_true, miss_true = hits
    least = min(g, c)
    if g:
        hit_pred += w * (least / g)
        miss_pred += w * ((g - least) / g)
    if c:
        hit_true += w * (least / c)
        miss_true += w * ((c - least) / c)
    return hit_pred, miss_pred, hit_true, miss_true


@inlined
def not_negative(mass):
    """Return a mass, 0 for what rounding leaves below that; NaN, where an item has no known weight, stays."""
    return 0.0 if mass < 0.0 else mass


@inlined
def write_shares(hits, sums, weighted, shares, cell):
    """Write the hits and misses on both sides: of mates visited, of those with one common cluster a side, of others."""
    hit_pred, miss_pred, hit_true, miss_true = hits
    (in_true, r, r_rest), (in_pred, p, p_rest), (ones, o, o_rest), (both, bo, bo_rest) = sums
    both += ones
    if weighted:
        if ones:
            bo, bo_rest = add_exactly(bo, bo_rest + o_rest, o)
            hit_pred += o + o_rest
            hit_true += o + o_rest
        if in_pred != both:
            miss_pred += not_negative((p - bo) + (p_rest - bo_rest))
        if in_true != both:
            miss_true += not_negative((r - bo) + (r_rest - bo_rest))
    else:
        hit_pred += ones
        hit_true += ones
        miss_pred += in_pred - both
        miss_true += in_true - both
    shares[cell, 0], shares[cell, 1] = hit_pred, miss_pred
    shares[cell, 2], shares[cell, 3] = hit_true, miss_true
