"""Pairs of cells: what the mates of an item share with it, where items may be in several clusters.

A cell is a row of two compressed tables, its true and its predicted clusters. Almost all of what its
items share with others is read from the table of overlaps, which says how much each true cluster
shares with each predicted one. Only mates with which they share two clusters of a side are visited.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import kernel

__all__ = [
    "add_clusters",
    "add_overlaps",
    "add_times",
    "count_overlaps",
    "count_several",
    "count_visits",
    "fill_several",
    "join_rows",
    "score_cells",
]


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


@kernel
def add_clusters(offsets, codes, n, weight, weighted, first, last, counts, totals, errors):
    """Add up the items, and their weight, of a range of clusters, given the cells of each."""
    for j in range(first, last):
        count = 0
        total = 0.0
        error = 0.0
        for k in range(offsets[j], offsets[j + 1]):
            count += n[codes[k]]
            if weighted:
                total, error = add_exactly(total, error, weight[codes[k]])
        counts[j] = count
        if weighted:
            totals[j] = total
            errors[j] = error


@kernel
def count_overlaps(true_bounds, true_cells, pred_offsets, pred_codes, first, last, seen, counts):
    """Count the predicted clusters that each of a range of true clusters meets.

    `seen` (n_pred,) holds no number of this range before.
    """
    for i in range(first, last):
        found = 0
        for k in range(true_bounds[i], true_bounds[i + 1]):
            cell = true_cells[k]
            for m in range(pred_offsets[cell], pred_offsets[cell + 1]):
                j = pred_codes[m]
                found += seen[j] != i
                seen[j] = i
        counts[i] = found


@kernel
def add_overlaps(
    true_bounds,
    true_cells,
    true_offsets,
    true_codes,
    pred_offsets,
    pred_codes,
    n,
    weight,
    weighted,
    first,
    last,
    bounds,
    seen,
    place,
    entry_bounds,
    pred,
    counts,
    totals,
    errors,
    entries,
):
    """Add up what a range of true clusters shares with each predicted one.

    Parameters
    ----------
    true_bounds, true_cells : compressed rows
        Cells of each true cluster.
    true_offsets, true_codes, pred_offsets, pred_codes : compressed rows
        Clusters of each cell.
    n, weight : (n_cells,)
        Items of each cell; `weight` is read if `weighted`.
    bounds : int64 (n_true + 1,)
        Where the overlaps of each true cluster begin.
    seen, place : int64 (n_pred,)
        Workspaces; `seen` holds no number of this range before.
    entry_bounds : int64 (n_cells + 1,)
        Where the overlaps of each cell begin in `entries`.
    pred, counts, totals, errors : outputs, one entry per overlap
        The predicted cluster, the items, and their weight as a sum of two.
    entries : output
        For each cell the overlaps of its true with its predicted clusters, row by row.
    """  # fmt: skip
    for i in range(first, last):
        end = bounds[i]
        for k in range(true_bounds[i], true_bounds[i + 1]):
            cell = true_cells[k]
            begin = pred_offsets[cell]
            width = pred_offsets[cell + 1] - begin
            row = 0
            while true_codes[true_offsets[cell] + row] != i:
                row += 1
            entry = entry_bounds[cell] + row * width
            for m in range(width):
                j = pred_codes[begin + m]
                if seen[j] != i:
                    seen[j] = i
                    place[j] = end
                    pred[end] = j
                    counts[end] = 0
                    if weighted:
                        totals[end] = 0.0
                        errors[end] = 0.0
                    end += 1
                o = place[j]
                counts[o] += n[cell]
                if weighted:
                    totals[o], errors[o] = add_exactly(totals[o], errors[o], weight[cell])
                entries[entry + m] = o


@kernel
def join_rows(true_offsets, true_codes, pred_offsets, pred_codes, n_true, starts, rows):
    """Write a row for each cell: its number, how many clusters, the true ones, the others plus `n_true`.

    `starts` (n_cells,) is where each begins, and `rows` the output, two longer a cell than its clusters.
    """
    for cell in range(starts.size):
        place = starts[cell] + 2
        for k in range(true_offsets[cell], true_offsets[cell + 1]):
            rows[place] = true_codes[k]
            place += 1
        for k in range(pred_offsets[cell], pred_offsets[cell + 1]):
            rows[place] = pred_codes[k] + n_true
            place += 1
        rows[starts[cell]] = cell
        rows[starts[cell] + 1] = place - starts[cell] - 2


@kernel
def count_several(starts, codes, n_true, counts):
    """Count, by cluster, the cells that are in others of its side, too, given the rows of the cells."""
    for cell in range(starts.size):
        begin = starts[cell] + 2
        end = begin + codes[begin - 1]
        for k in range(begin, end):
            alone_below = k == begin or (codes[k - 1] < n_true and codes[k] >= n_true)
            alone_above = k + 1 == end or (codes[k] < n_true and codes[k + 1] >= n_true)
            if not (alone_below and alone_above):
                counts[codes[k]] += 1


@kernel
def fill_several(starts, codes, n_true, next_place, out):
    """Write the rows of the cells that `count_several` counts, by cluster."""
    for cell in range(starts.size):
        begin = starts[cell] + 2
        end = begin + codes[begin - 1]
        for k in range(begin, end):
            alone_below = k == begin or (codes[k - 1] < n_true and codes[k] >= n_true)
            alone_above = k + 1 == end or (codes[k] < n_true and codes[k + 1] >= n_true)
            if not (alone_below and alone_above):
                place = next_place[codes[k]]
                next_place[codes[k]] = place + 1
                out[place] = starts[cell]


@kernel
def count_visits(starts, codes, n_true, several, visits):
    """Count, by cluster, the mates that `score_cells` will visit; `starts` and `codes` are rows of cells.

    `several` (n_clusters,) is how many cells of each cluster are in others of its side. A cell visits
    those of all its clusters but the one of each side that has most. Returns their number.
    """
    total = 0
    for cell in range(starts.size):
        begin = starts[cell] + 2
        end = begin + codes[begin - 1]
        spared_true = -1
        spared_pred = -1
        for k in range(begin, end):
            if codes[k] < n_true:
                if spared_true < 0 or several[codes[k]] > several[codes[spared_true]]:
                    spared_true = k
            elif spared_pred < 0 or several[codes[k]] > several[codes[spared_pred]]:
                spared_pred = k
        for k in range(begin, end):
            if k != spared_true and k != spared_pred:
                visits[codes[k]] += several[codes[k]]
                total += several[codes[k]]
    return total


@kernel
def score_cells(
    start,
    stop,
    weighted,
    n,
    weight,
    starts,
    codes,
    n_true,
    cluster_n,
    cluster_w,
    cluster_e,
    several_bounds,
    several,
    pair_n,
    pair_w,
    pair_e,
    entry_bounds,
    entries,
    shares,
    mates,
):
    """Add up what the items of each cell share with the mates in other cells.

    With g and c the predicted and true clusters that an item and its mate share, a mate with g > 0
    counts min(g, c) / g as a hit on the predicted side and the rest as a miss; likewise on the true
    side. Mates with g and c of 0 or 1 are counted through the overlaps, from which those visited, with
    g or c of 2 or more, are taken away again: they share a cluster besides the largest of a side.

    Parameters
    ----------
    start, stop : int
        Range of cells.
    weighted : bool
        Whether mates count by weight.
    n, weight : (n_cells,)
        Items of each cell, and their weight.
    starts, codes : rows of cells
        Number of the cell, number of its clusters, the true ones, the predicted ones from `n_true` on.
    cluster_n, cluster_w, cluster_e : (n_clusters,)
        Items of each cluster, and their weight as a sum of two.
    several_bounds, several : compressed rows
        By cluster the rows of the cells that are in others of its side, too.
    pair_n, pair_w, pair_e : (n_overlaps,)
        What a true and a predicted cluster share, likewise.
    entry_bounds, entries : compressed rows
        The overlaps of each cell.
    shares : float64 (n_cells, 4), output
        Hits and misses on the predicted side, then on the true side.
    mates : int64 (n_cells, 2), output
        Items that share a predicted cluster, and a true cluster, with an item of the cell; itself too.
    """  # fmt: skip
    for cell in range(start, stop):
        begin = starts[cell] + 2
        end = begin + codes[begin - 1]
        own_c = 0
        own_g = 0
        in_true = 0
        in_pred = 0
        ones = 0
        p = p_rest = r = r_rest = o = o_rest = 0.0
        spared_true = -1
        spared_pred = -1
        most_true = -1
        most_pred = -1
        for k in range(begin, end):
            j = codes[k]
            size = several_bounds[j + 1] - several_bounds[j]
            if j < n_true:
                own_c += 1
                in_true += cluster_n[j]
                if weighted:
                    r, r_rest = add_exactly(r, r_rest + cluster_e[j], cluster_w[j])
                if size > most_true:
                    most_true = size
                    spared_true = k
            else:
                own_g += 1
                in_pred += cluster_n[j]
                if weighted:
                    p, p_rest = add_exactly(p, p_rest + cluster_e[j], cluster_w[j])
                if size > most_pred:
                    most_pred = size
                    spared_pred = k
        for k in range(entry_bounds[cell], entry_bounds[cell + 1]):
            e = entries[k]
            ones += pair_n[e]
            if weighted:
                o, o_rest = add_exactly(o, o_rest + pair_e[e], pair_w[e])
        # the cell itself is left out
        in_true -= own_c * n[cell]
        in_pred -= own_g * n[cell]
        ones -= own_c * own_g * n[cell]
        if weighted:
            p, p_rest = add_times(p, p_rest, -own_g, weight[cell])
            r, r_rest = add_times(r, r_rest, -own_c, weight[cell])
            o, o_rest = add_times(o, o_rest, -own_g * own_c, weight[cell])
        both = 0
        bo = bo_rest = hit_pred = miss_pred = hit_true = miss_true = 0.0
        for k in range(begin, end):
            if k == spared_true or k == spared_pred:
                continue
            j = codes[k]
            for m in range(several_bounds[j], several_bounds[j + 1]):
                low = several[m] + 2
                high = low + codes[low - 1]
                met_in_true = codes[low + 1] < n_true  # it has two there, else it is not among `several`
                met_in_pred = codes[high - 2] >= n_true
                c = 0
                g = 0
                first = -1  # a mate that is met in several clusters counts in the first
                a = begin
                b = low
                while a < end and b < high:
                    x = codes[a]
                    y = codes[b]
                    if x == y:
                        if x < n_true:
                            c += 1
                            met = met_in_true
                        else:
                            g += 1
                            met = met_in_pred
                        if first < 0 and met and a != spared_true and a != spared_pred:
                            first = x
                    a += x <= y
                    b += y <= x
                if first != j or (g < 2 and c < 2):
                    continue
                mate = codes[low - 2]
                if mate == cell:
                    continue
                count = n[mate]
                w = weight[mate] if weighted else np.float64(count)
                if g > 1:
                    in_pred -= (g - 1) * count
                    if weighted:
                        p, p_rest = add_times(p, p_rest, 1 - g, w)
                if c > 1:
                    in_true -= (c - 1) * count
                    if weighted:
                        r, r_rest = add_times(r, r_rest, 1 - c, w)
                if g and c:
                    ones -= g * c * count
                    both += count
                    if weighted:
                        o, o_rest = add_times(o, o_rest, -g * c, w)
                        bo, bo_rest = add_exactly(bo, bo_rest, w)
                    least = min(g, c)
                    hit_pred += w * (least / g)
                    miss_pred += w * ((g - least) / g)
                    hit_true += w * (least / c)
                    miss_true += w * ((c - least) / c)
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
        shares[cell, 0] = hit_pred
        shares[cell, 1] = miss_pred
        shares[cell, 2] = hit_true
        shares[cell, 3] = miss_true
        mates[cell, 0] = in_pred + n[cell]
        mates[cell, 1] = in_true + n[cell]
