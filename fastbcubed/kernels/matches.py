"""Likeness of clusters, and what it leaves of the hits among mates: CICE-BCubed, pair of cells by pair."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import kernel

__all__ = ["add_matches", "find_best"]


@kernel
def find_best(bounds, pred, likeness, best_true, best_pred):
    """Raise the best likeness of each cluster to that of its overlaps.

    Shapes: (n_true + 1,), (n_overlaps,), (n_overlaps,), (n_true,), (n_pred,).
    """
    for i in range(bounds.size - 1):
        for o in range(bounds[i], bounds[i + 1]):
            best_true[i] = max(best_true[i], likeness[o])
            best_pred[pred[o]] = max(best_pred[pred[o]], likeness[o])


@kernel
def add_matches(
    start,
    stop,
    pairwise,
    weighted,
    n,
    weight,
    starts,
    codes,
    n_true,
    several_bounds,
    several,
    pair_n,
    pair_w,
    pair_e,
    entry_bounds,
    entries,
    likeness,
    best_true,
    best_pred,
    ones_n,
    ones_w,
    ones_e,
    shared_true,
    shared_pred,
    hits,
):
    """Add up the hits of each cell, each times the likeness of the clusters that it shares.

    A mate with g predicted and c true clusters in common counts min(g, c) / g times the mean over
    these g of the likeness of their match; likewise on the true side. As in `score_cells`, mates with
    g = c = 1 are counted through the overlaps, and those with more are visited.

    Parameters
    ----------
    pairwise : bool
        Whether the match of a cluster is the likest of those that the pair shares; else of all.
    likeness : (n_overlaps,)
        How like each other the true and the predicted cluster are.
    best_true, best_pred : by cluster
        Likeness of the best match of all.
    ones_n, ones_w, ones_e, shared_true, shared_pred : workspaces
        By overlap of a cell, and by cluster of a cell.
    hits : float64 (n_cells, 2), output
        On the predicted and on the true side.

    The others are those of `score_cells`.
    """  # fmt: skip
    for cell in range(start, stop):
        begin = starts[cell] + 2
        end = begin + codes[begin - 1]
        own_c = 0
        spared_true = -1
        spared_pred = -1
        most_true = -1
        most_pred = -1
        for k in range(begin, end):
            j = codes[k]
            size = several_bounds[j + 1] - several_bounds[j]
            if j < n_true:
                own_c += 1
                if size > most_true:
                    most_true = size
                    spared_true = k
            elif size > most_pred:
                most_pred = size
                spared_pred = k
        own_g = end - begin - own_c
        entry = entry_bounds[cell]
        for k in range(own_c * own_g):
            e = entries[entry + k]
            ones_n[k] = pair_n[e]
            if weighted:
                ones_w[k] = pair_w[e]
                ones_e[k] = pair_e[e]
        hit_pred = 0.0
        hit_true = 0.0
        for k in range(begin, end):
            if k == spared_true or k == spared_pred:
                continue
            j = codes[k]
            for m in range(several_bounds[j], several_bounds[j + 1]):
                low = several[m] + 2
                high = low + codes[low - 1]
                met_in_true = codes[low + 1] < n_true
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
                            shared_true[c] = a - begin
                            c += 1
                            met = met_in_true
                        else:
                            shared_pred[g] = a - begin - own_c
                            g += 1
                            met = met_in_pred
                        if first < 0 and met and a != spared_true and a != spared_pred:
                            first = x
                    a += x <= y
                    b += y <= x
                if first != j or g == 0 or c == 0 or (g < 2 and c < 2):
                    continue
                mate = codes[low - 2]
                w = weight[mate] if weighted else np.float64(n[mate])
                of_pred = 0.0
                of_true = 0.0
                for a in range(c):
                    row = shared_true[a] * own_g
                    likest = 0.0
                    for b in range(g):
                        at = row + shared_pred[b]
                        ones_n[at] -= n[mate]
                        if weighted:
                            ones_w[at], ones_e[at] = add_exactly(ones_w[at], ones_e[at], -w)
                        likest = max(likest, likeness[entries[entry + at]])
                    of_true += likest if pairwise else best_true[codes[begin + shared_true[a]]]
                for b in range(g):
                    likest = 0.0
                    for a in range(c):
                        at = shared_true[a] * own_g + shared_pred[b]
                        likest = max(likest, likeness[entries[entry + at]])
                    of_pred += (
                        likest if pairwise else best_pred[codes[begin + own_c + shared_pred[b]] - n_true]
                    )
                least = min(g, c)
                hit_pred += w * (least / g) * (of_pred / g)
                hit_true += w * (least / c) * (of_true / c)
        for a in range(own_c):
            for b in range(own_g):
                at = a * own_g + b
                if ones_n[at]:
                    one = ones_w[at] + ones_e[at] if weighted else np.float64(ones_n[at])
                    like = likeness[entries[entry + at]]
                    hit_pred += one * (like if pairwise else best_pred[codes[begin + own_c + b] - n_true])
                    hit_true += one * (like if pairwise else best_true[codes[begin + a]])
        hits[cell, 0] = hit_pred
        hits[cell, 1] = hit_true
