"""Pairs of cells: what the mates of an item share with it, where items may be in several clusters.

Almost all of what the items of a cell share with others is read from the table of overlaps, which says
how much each true cluster shares with each predicted one. Only mates with which they share two clusters
of a side are visited.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import inlined, kernel
from fastbcubed.kernels.overlap import find_largest


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
def add_size(sums, sizes, j, weighted):
    """Add one of the sizes to the sums (items, weight, what it leaves over)."""
    n, mass, rest = sums
    if weighted:
        mass, rest = add_exactly(mass, rest + sizes.rest[j], sizes.mass[j])
    return n + sizes.n[j], mass, rest


@inlined
def add_copies(sums, k, n, weight, weighted):
    """Add so many items, `k` times, to the sums (items, weight, what it leaves over)."""
    count, mass, rest = sums
    if weighted:
        mass, rest = add_times(mass, rest, k, weight)
    return count + k * n, mass, rest


@inlined
def compare(rows, begin, end, low, spared, at_true, at_pred):
    """Return how many true and predicted clusters two cells share, and the first through which they meet.

    The row of one is `begin` to `end`, that of the other begins at `low`. They do not meet through the clusters
    that are `spared`. `at_true` and `at_pred`, if given, get where in the first row the common clusters stand.
    """
    codes, n_true = rows.codes, rows.n_true
    high = low + codes[low - 1]
    met_in_true = codes[low + 1] < n_true  # it has two there, else it is not visited through one
    met_in_pred = codes[high - 2] >= n_true
    c = 0
    g = 0
    first = -1
    a = begin
    b = low
    while a < end and b < high:
        x = codes[a]
        y = codes[b]
        if x == y:
            if x < n_true:
                if at_true is not None:
                    at_true[c] = a - begin
                c += 1
                met = met_in_true
            else:
                if at_pred is not None:
                    at_pred[g] = a - begin
                g += 1
                met = met_in_pred
            if first < 0 and met and a != spared[0] and a != spared[1]:
                first = x
        a += x <= y
        b += y <= x
    return c, g, first


@kernel
def score_cells(start, stop, items, rows, clusters, several, overlaps, shares, mates):
    """Add up what the items of each of a range of cells share with the mates in other cells.

    With g and c the predicted and true clusters that an item and its mate share, a mate with g > 0
    counts min(g, c) / g as a hit on the predicted side and the rest as a miss; likewise on the true
    side. Mates with g and c of 0 or 1 are counted through the overlaps, from which those visited, with
    g or c of 2 or more, are taken away again: they share a cluster besides the largest of a side.

    `several` is by cluster the rows of the cells that are in others of its side, too. Outputs: `shares`
    (n_cells, 4), hits and misses on the predicted side, then on the true side; `mates` (n_cells, 2), items that
    share a predicted cluster, and a true cluster, with an item of the cell; itself too.
    """
    bounds, members = several
    for cell in range(start, stop):
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        spared = find_largest(rows, bounds, begin, end)
        sums = add_singles(cell, begin, end, items, rows, clusters, overlaps)
        hits = 0.0, 0.0, 0.0, 0.0
        for k in range(begin, end):
            if k == spared[0] or k == spared[1]:
                continue
            j = rows.codes[k]
            for m in range(bounds[j], bounds[j + 1]):
                low = members[m] + 2
                c, g, first = compare(rows, begin, end, low, spared, None, None)
                if first != j or (
                    g < 2 and c < 2
                ):  # a mate that is met in several clusters counts in the first
                    continue
                mate = rows.codes[low - 2]
                if mate != cell:
                    w = items.weight[mate] if items.weighted else np.float64(items.n[mate])
                    sums = count_mate(sums, items.n[mate], w, c, g, items.weighted)
                    if g and c:
                        hits = add_hits(hits, w, c, g)
        write_shares(hits, sums, items.weighted, shares[cell])
        mates[cell, 0] = sums[1][0] + items.n[cell]
        mates[cell, 1] = sums[0][0] + items.n[cell]


@inlined
def add_singles(cell, begin, end, items, rows, clusters, overlaps):
    """Add up the true clusters of a cell, its predicted ones and their overlaps, all without the cell itself.

    Last of the four sums comes an empty one, for mates that share several clusters.
    """
    true = pred = ones = both = 0, 0.0, 0.0
    c = 0
    for k in range(begin, end):
        j = rows.codes[k]
        if j < rows.n_true:
            c += 1
            true = add_size(true, clusters, j, items.weighted)
        else:
            pred = add_size(pred, clusters, j, items.weighted)
    for k in range(overlaps.entry_bounds[cell], overlaps.entry_bounds[cell + 1]):
        ones = add_size(ones, overlaps.sizes, overlaps.entries[k], items.weighted)
    g = end - begin - c
    n = items.n[cell]
    w = items.weight[cell] if items.weighted else 0.0
    pred = add_copies(pred, -g, n, w, items.weighted)
    true = add_copies(true, -c, n, w, items.weighted)
    ones = add_copies(ones, -g * c, n, w, items.weighted)
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
    """Add a mate to the hits and misses on the predicted side and on the true side."""
    hit_pred, miss_pred, hit_true, miss_true = hits
    least = min(g, c)
    hit_pred += w * (least / g)
    miss_pred += w * ((g - least) / g)
    hit_true += w * (least / c)
    miss_true += w * ((c - least) / c)
    return hit_pred, miss_pred, hit_true, miss_true


@inlined
def write_shares(hits, sums, weighted, out):
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
            miss_pred += max(0.0, (p - bo) + (p_rest - bo_rest))
        if in_true != both:
            miss_true += max(0.0, (r - bo) + (r_rest - bo_rest))
    else:
        hit_pred += ones
        hit_true += ones
        miss_pred += in_pred - both
        miss_true += in_true - both
    out[0], out[1], out[2], out[3] = hit_pred, miss_pred, hit_true, miss_true
