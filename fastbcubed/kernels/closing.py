"""Closing cells: each gets its false positives by predicted cluster, where the policy "outside" adds its items.

A cell that arrives knows its weight, its false negatives and its pred key; closing it gives its predicted
cluster a number, and the cell its false positives.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly, bit_length, table_size
from fastbcubed.kernels.fetching import RECORDS_AHEAD, fetch
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import target_of

#: A part of so many cells for each slot of the table at hand is that of a few clusters: it is tried for them.
LARGE = 8


@kernel
def add_margins(cells, first, n_cells, weighted, outer, targets, mass, rest):
    """Add up the cells of one part by true cluster into `mass + rest`, exactly.

    Items that the prediction lacks do not count. `weighted` is an array, or None for cells without weights.
    """
    _, _, lacking, absent = targets
    for j in range(first, first + n_cells):
        if lacking and cells[at(j)].pred == absent:
            continue
        k = cells[at(j)].cluster
        own = np.float64(cells[at(j)].n)
        if weighted is not None:
            own = own if outer else cells[at(j)].x
        mass[at(k)], rest[at(k)] = add_exactly(mass[at(k)], rest[at(k)], own)


@kernel
def count_items(cells, first, n_cells, absent_pred, counts):
    """Count the items of each true cluster of a part; those that the prediction lacks do not count."""
    for j in range(first, first + n_cells):
        if not (absent_pred.size and cells[j].pred == absent_pred[0]):
            counts[cells[j].cluster] += cells[j].n


@kernel
def scatter_cells(
    cells, parts, part_from, part_to, targets, weighted, outer, heavy, absent_true, sums, next_cell, out
):
    """Send the cells of several parts to their targets, with their false negatives.

    `parts` says where each part begins, how many cells and true clusters it has, and the code of the first of
    these. If they hold the `heavy` clusters, their `sums` (mass, rest) are given, else these are workspace.
    `weighted` is an array, or None for cells without weights. The cluster `absent_true`, or -1, stands for "the
    truth lacks this item", and gets the code -1 in `out`, records (pred, weight, fn, true, n).
    """
    bounds, n_cells, n_clusters, base = parts
    mass, rest = sums
    for part in range(part_from, part_to):
        first = bounds[part]
        if not heavy:
            mass[: n_clusters[part]] = 0.0
            rest[: n_clusters[part]] = 0.0
            add_margins(cells, first, n_cells[part], weighted, outer, targets, mass, rest)
        for j in range(first, first + n_cells[part]):
            k = cells[at(j)].cluster
            pred = cells[at(j)].pred
            target = target_of(pred, j - first, targets)
            to = next_cell[at(target)]
            next_cell[at(target)] = to + 1
            fetch(out, to + RECORDS_AHEAD)
            weight = np.float64(cells[at(j)].n)
            own = weight
            if weighted is not None:
                weight = cells[at(j)].x
                own = own if outer else weight
            out[at(to)].weight = weight
            out[at(to)].fn = (mass[at(k)] - own) + rest[at(k)]
            out[at(to)].pred = pred
            out[at(to)].n = cells[at(j)].n
            out[at(to)].true = -1 if heavy and k == absent_true else base[part] + k


@kernel
def count_arrived(cells, start, stop, targets, counts):
    """Count cells of one block by target."""
    for i in range(start, stop):
        counts[at(target_of(cells[at(i)].pred, i, targets))] += 1


@kernel
def scatter_arrived(cells, start, stop, targets, next_cell, out, places):
    """Copy cells of one block to their targets, and note in `places`, if given, where they are."""
    for i in range(start, stop):
        target = target_of(cells[at(i)].pred, i, targets)
        to = next_cell[at(target)]
        next_cell[at(target)] = to + 1
        fetch(out, to + RECORDS_AHEAD)
        if places is not None:
            places[at(i)] = to
        out[at(to)].pred = cells[at(i)].pred
        out[at(to)].weight = cells[at(i)].weight
        out[at(to)].fn = cells[at(i)].fn
        out[at(to)].true = cells[at(i)].true
        out[at(to)].n = cells[at(i)].n


@kernel
def close_cells(
    arrived, cells, pred_codes, bounds, part_from, part_to, outer, outside, absent_pred,
    space, n_clusters, keys,
):  # fmt: skip
    """Give the predicted clusters of several parts numbers, and their cells the false positives.

    `arrived` and `cells` are the same memory: the first reads the pred key where the second has fp.
    Codes begin at 0 in each part, and are -1 if the prediction lacks the item. Items that the truth
    lacks do not count, unless `outside`. `space` is a hash table and records (key, mass, rest, only).
    Where `keys` is given it gets the key of each cluster by its code, from where its part begins.
    """
    slots, clusters = space
    for part in range(part_from, part_to):
        first = bounds[part]
        last = bounds[part + 1]
        size = table_size(last - first)
        if last - first > LARGE * slots.size:
            size = slots.size
        n_clusters[part] = -1
        while n_clusters[part] < 0:  # again, if a table for a few is too small
            table = slots[:size] if size <= slots.size else np.empty(size, np.int32)
            table[:] = -1
            n_clusters[part] = number_clusters(
                arrived, pred_codes, first, last, outer, absent_pred, table, clusters, keys
            )
            size = table_size(last - first)
        for j in range(first, last):
            k = pred_codes[at(j)]
            if k < 0:
                cells[at(j)].fp = 0.0
                continue
            own = np.float64(arrived[at(j)].n) if outer else arrived[at(j)].weight
            others = (clusters[at(k)].mass - own) + clusters[at(k)].rest
            if outside:
                others += clusters[at(k)].only
            cells[at(j)].fp = others


@kernel
def number_clusters(arrived, pred_codes, first, last, outer, absent_pred, table, clusters, keys):
    """Give the predicted clusters of a part numbers, and add up their items; return how many there are.

    That is -1 if they fill more than half of the table.
    """
    room = bit_length(last - first)  # an entry: a cluster, below as many bits of its key as fit
    found = 0
    for j in range(first, last):
        pred = arrived[at(j)].pred
        if absent_pred.size and pred == absent_pred[0]:
            pred_codes[at(j)] = -1
            continue
        k, s = find_cluster(pred, table, room, clusters)
        own = np.float64(arrived[at(j)].n) if outer else arrived[at(j)].weight
        stranger = arrived[at(j)].true < 0
        if k < 0:
            if 2 * found >= table.size:
                return -1
            k = found
            found += 1
            table[at(s)] = (tag_of(pred, room) << room) | k
            clusters[at(k)].key = pred
            if keys is not None:
                keys[at(first + k)] = pred
            clusters[at(k)].mass = 0.0 if stranger else own
            clusters[at(k)].rest = 0.0
            clusters[at(k)].only = own if stranger else 0.0
        elif stranger:
            clusters[at(k)].only += own
        else:
            mass, rest = add_exactly(clusters[at(k)].mass, clusters[at(k)].rest, own)
            clusters[at(k)].mass = mass
            clusters[at(k)].rest = rest
        pred_codes[at(j)] = k
    return found


@inlined
def tag_of(pred, room):
    """Return as many bits of a key as fit above a code; they tell most entries apart."""
    return ((pred >> 20) & 0x7FFFFFFF) >> room


@inlined
def find_cluster(pred, table, room, clusters):
    """Return the code of a predicted cluster, or -1, and the slot where it stands or would stand."""
    mask = table.size - 1
    tag = tag_of(pred, room)
    s = pred & mask
    entry = table[at(s)]
    while entry >= 0:
        k = entry & ((1 << room) - 1)
        if entry >> room == tag and clusters[at(k)].key == pred:
            return k, s
        s = (s + 1) & mask
        entry = table[at(s)]
    return -1, s


@kernel
def count_closed(cells, pred_codes, start, stop, counts):
    """Count the scored items of each predicted cluster of a part.

    Returns how many cells are scored, having items of both sides, and how many of them are whole clusters of both.
    """
    scored = exact = 0
    for j in range(start, stop):
        k = pred_codes[at(j)]
        if k >= 0 and cells[at(j)].true >= 0:
            counts[at(k)] += cells[at(j)].n
            scored += 1
            exact += (cells[at(j)].fp == 0.0) & (cells[at(j)].fn == 0.0)
    return scored, exact


@kernel
def sum_if_alone(cells, first, n_cells, weighted, outer, absent_pred, sums):
    """Add the cells of one part to the sums of their true clusters, shape (5, n_clusters): see `cells.if_alone`."""
    for j in range(first, first + n_cells):
        k = cells[at(j)].cluster
        weight = np.float64(cells[at(j)].n)
        own = weight
        if weighted is not None:
            weight = cells[at(j)].x
            own = own if outer else weight
        if cells[at(j)].pred == absent_pred:
            sums[2, at(k)] += cells[at(j)].n
            sums[3, at(k)] += weight
            sums[4, at(k)] += own
        else:
            sums[0, at(k)] += weight * own
            sums[1, at(k)] += own


@kernel
def change_if_alone(sums, n):
    """Return by how much the sum of recall of so many true clusters changes if those left out are alone."""
    change = 0.0
    for k in range(n):
        if sums[2, k] > 0.0:
            alone = sums[3, k] * (sums[4, k] / sums[2, k])
            before = sums[0, k] / sums[1, k] if sums[1, k] > 0.0 else 0.0
            change += (sums[0, k] + alone) / (sums[1, k] + sums[4, k]) - before
    return change


@kernel
def change_by_part(cells, parts, part_from, part_to, weighted, outer, absent_pred, sums, changes):
    """Do both for parts that have all cells of their true clusters; `sums` is workspace, changes go by part."""
    bounds, n_cells, n_clusters = parts
    for part in range(part_from, part_to):
        sums[:, : n_clusters[part]] = 0.0
        sum_if_alone(cells, bounds[part], n_cells[part], weighted, outer, absent_pred, sums)
        changes[part] = change_if_alone(sums, n_clusters[part])
