"""Likeness of clusters, and what it leaves of the hits among mates: CICE-BCubed, pair of cells by pair."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.close_mates import find_mates, mark_common, may_have
from fastbcubed.kernels.jit import inlined, kernel
from fastbcubed.kernels.overlap import count_true


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
def add_matches(start, stop, pairwise, items, rows, close, overlaps, likeness, best, space, hits):
    """Add up the hits of each of a range of cells, each times the likeness of the clusters that it shares.

    A mate with g predicted and c true clusters in common counts min(g, c) / g times the mean over
    these g of the likeness of their match; likewise on the true side. As in `score_cells`, mates with
    g = c = 1 are counted through the overlaps, and those with more are visited.

    The match of a cluster is the most similar of those that the pair shares if `pairwise`, else of all, of which
    `likeness` is by overlap and `best` by cluster. Output: `hits` (n_cells, 2), on the predicted side and on the
    true one.
    """
    ones, at_true, at_pred, (found, met) = space
    for cell in range(start, stop):
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        own_c = count_true(rows, begin, end)
        shape = own_c, end - begin - own_c
        entries = overlaps.entries[overlaps.entry_bounds[cell] : overlaps.entry_bounds[cell + 1]]
        copy_sizes(overlaps.sizes, entries, ones, items.weighted)
        own = rows.codes[begin:end]
        hit_pred = hit_true = 0.0
        n = find_mates(cell, rows, close, found, met) if may_have(cell, close) else 0
        if max(shape) > 1:  # then its items are close mates of each other, too
            found[n, 0], found[n, 1], found[n, 2] = begin - 2, shape[0], shape[1]
            n += 1
        for m in range(n):
            row, c, g = found[m, 0], found[m, 1], found[m, 2]
            if g == 0 or c == 0:
                continue
            mark_common(rows, begin, end, row + 2, at_true, at_pred)
            mate = rows.codes[row]
            w = items.weight[mate] if items.weighted else np.float64(items.n[mate])
            common = at_true[:c], at_pred[:g]
            take_away(ones, common, shape, items.n[mate], w, items.weighted)
            of_true, of_pred = add_likeness(common, shape, own, entries, likeness, best, pairwise)
            least = min(g, c)
            hit_pred += w * (least / g) * (of_pred / g)
            hit_true += w * (least / c) * (of_true / c)
        hits[cell, 0], hits[cell, 1] = add_ones(
            (hit_pred, hit_true), ones, shape, own, entries, likeness, best, pairwise, items.weighted
        )


@inlined
def copy_sizes(sizes, entries, ones, weighted):
    """Copy what the true clusters of a cell share with its predicted ones."""
    for k in range(entries.size):
        ones.n[k] = sizes.n[entries[k]]
        if weighted:
            ones.mass[k] = sizes.mass[entries[k]]
            ones.rest[k] = sizes.rest[entries[k]]


@inlined
def take_away(ones, common, shape, n, w, weighted):
    """Take a mate away from what its common clusters share: it is counted by itself."""
    for a in common[0]:
        for b in common[1]:
            k = a * shape[1] + b - shape[0]
            ones.n[k] -= n
            if weighted:
                ones.mass[k], ones.rest[k] = add_exactly(ones.mass[k], ones.rest[k], -w)


@inlined
def add_likeness(common, shape, own, entries, likeness, best, pairwise):
    """Add up the likeness of the matches of common clusters, of the true ones and of the predicted ones."""
    of_true = of_pred = 0.0
    for a in common[0]:
        most = 0.0
        for b in common[1]:
            most = max(most, likeness[entries[a * shape[1] + b - shape[0]]])
        of_true += most if pairwise else best[own[a]]
    for b in common[1]:
        most = 0.0
        for a in common[0]:
            most = max(most, likeness[entries[a * shape[1] + b - shape[0]]])
        of_pred += most if pairwise else best[own[b]]
    return of_true, of_pred


@inlined
def add_ones(total, ones, shape, own, entries, likeness, best, pairwise, weighted):
    """Add the mates that share one cluster of each side to the hits on the predicted side and on the true one."""
    hit_pred, hit_true = total
    for a in range(shape[0]):
        for b in range(shape[1]):
            k = a * shape[1] + b
            if ones.n[k]:
                one = ones.mass[k] + ones.rest[k] if weighted else np.float64(ones.n[k])
                like = likeness[entries[k]]
                hit_pred += one * (like if pairwise else best[own[shape[0] + b]])
                hit_true += one * (like if pairwise else best[own[a]])
    return hit_pred, hit_true
