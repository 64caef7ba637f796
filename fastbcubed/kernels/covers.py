"""Cells of overlapping clusterings: items with the same clusters on both sides, numbered."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import table_size
from fastbcubed.kernels.fetching import fetch
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import mix

#: Cells of a true set that are compared one by one rather than looked up.
SHORT = 16
#: How many items ahead memory is asked for.
AHEAD = 32


@kernel
def count_firsts(offsets, codes, counts):
    """Count the sets that begin with each cluster. Shapes: (n_sets + 1,), (n,), (n_clusters,)."""
    for k in range(offsets.size - 1):
        counts[at(codes[at(offsets[at(k)])])] += 1


@kernel
def rank_sets(offsets, codes, next_rank, ranks, sets):
    """Rank sets by their first cluster, then as they stand; `sets` gets them in this order."""
    for k in range(ranks.size):
        if k + AHEAD < ranks.size:
            fetch(next_rank, codes[at(offsets[at(k + AHEAD)])])
        first = codes[at(offsets[at(k)])]
        rank = next_rank[at(first)]
        next_rank[at(first)] = rank + 1
        ranks[at(k)] = rank
        sets[at(rank)] = k


@kernel
def rank_items(true, pred, start, stop, ranks, shift, keys, counts):
    """Write the rank of the true set of each of a block of items, -1 if a side lacks it, and count them by part.

    `ranks` are those of the true sets; those of a part are equal but for the last `shift` bits.
    """
    for i in range(start, stop):
        if i + AHEAD < stop and true[at(i + AHEAD)] >= 0:
            fetch(ranks, true[at(i + AHEAD)])
        key = -1
        if true[at(i)] >= 0 and pred[at(i)] >= 0:
            key = ranks[at(true[at(i)])]
            counts[at(key >> shift)] += 1
        keys[at(i)] = key


@kernel
def scatter_items(keys, pred, start, stop, shift, next_place, records):
    """Write rank, predicted set and number of each of a block of items to its part, in order; but negative ranks."""
    for i in range(start, stop):
        key = keys[at(i)]
        if key >= 0:
            j = next_place[at(key >> shift)]
            next_place[at(key >> shift)] = j + 1
            records[at(j), 0] = key
            records[at(j), 1] = pred[at(i)]
            records[at(j), 2] = i


@kernel
def group_parts(records, bounds, part_from, part_to, shift, space, cells):
    """Give numbers to the cells of several parts: items of one true and one predicted set are one cell.

    Cells are numbered from 0 in the order of their true set, then of their first item, and how many there are is
    returned. The number of its cell takes the place of the rank in each record. `cells` gets from where the first part
    begins the rank, the predicted set and the items of each. `space` is room for where the ranks of a part begin, for
    its records in order, and for a table.
    """
    ends, order, slots = space
    base, n = bounds[part_from], 0
    for part in range(part_from, part_to):
        begin, stop = bounds[part], bounds[part + 1]
        low = part << shift
        sort_part(records, begin, stop, low, ends[: (1 << shift) + 1], order)
        first = 0
        for rank in range(1 << shift):
            last = ends[at(rank)]
            if last - first > SHORT:
                n = group_many(records, begin, order, (first, last), base, n, low + rank, slots, cells)
            elif last > first:
                n = group_few(records, begin, order, (first, last), base, n, low + rank, cells)
            first = last
    return n


@inlined
def sort_part(records, begin, stop, low, ends, order):
    """Sort the records of a part by rank, from the lowest on; write where each rank ends, and the records' order."""
    ends[:] = 0
    for r in range(begin, stop):
        ends[at(records[at(r), 0] - low + 1)] += 1
    for k in range(1, ends.size):
        ends[at(k)] += ends[at(k - 1)]
    for r in range(begin, stop):
        place = ends[at(records[at(r), 0] - low)]
        ends[at(records[at(r), 0] - low)] = place + 1
        order[at(place)] = r - begin


@inlined
def group_few(records, begin, order, span, base, n, rank, cells):
    """Give numbers to the cells of a true set of few items, from n on; return the next one."""
    start = n
    for i in range(span[0], span[1]):
        r = begin + order[at(i)]
        other = records[at(r), 1]
        found = start
        while found < n and cells[at(base + found), 1] != other:
            found += 1
        n = count_item(cells, base, found, n, rank, other)
        records[at(r), 0] = found
    return n


@kernel
def group_many(records, begin, order, span, base, n, rank, slots, cells):
    """Give numbers to the cells of a true set of many items, from n on; return the next one."""
    size = table_size(span[1] - span[0])
    table = slots[:size] if size <= slots.size else np.empty(size, slots.dtype)
    table[:] = -1
    for i in range(span[0], span[1]):
        r = begin + order[at(i)]
        other = records[at(r), 1]
        s = mix(other) & (size - 1)
        while table[at(s)] >= 0 and cells[at(base + table[at(s)]), 1] != other:
            s = (s + 1) & (size - 1)
        found = n if table[at(s)] < 0 else table[at(s)]
        table[at(s)] = found
        n = count_item(cells, base, found, n, rank, other)
        records[at(r), 0] = found
    return n


@inlined
def count_item(cells, base, found, n, rank, other):
    """Count an item of a cell, which is a new one if it comes after all others; return how many there are then."""
    if found < n:
        cells[at(base + found), 2] += 1
        return n
    cells[at(base + n), 0] = rank
    cells[at(base + n), 1] = other
    cells[at(base + n), 2] = 1
    return n + 1


@kernel
def number_items(records, base, cell_of):
    """Write the number of the cell of each of some items; those of the records begin at `base`."""
    for r in range(len(records)):
        if r + AHEAD < len(records):
            fetch(cell_of, records[at(r + AHEAD), 2])
        cell_of[at(records[at(r), 2])] = base + records[at(r), 0]


@kernel
def list_cells(cells, sets, true, pred, n):
    """Write the true set, the predicted set and the items of each cell; `sets` are the true ones by rank."""
    for cell in range(len(cells)):
        true[at(cell)] = sets[at(cells[at(cell), 0])]
        pred[at(cell)] = cells[at(cell), 1]
        n[at(cell)] = cells[at(cell), 2]


@kernel
def fill_cells(start, stop, n, weight, offsets, parts, outer, cells):
    """Write each of a range of cells: its items, their weight, and what is false of it, as `Cover.proportions` says.

    `offsets` are where the true and where the predicted clusters of each begin. Shapes: `n`, `weight` (n_cells,),
    where None says that items have no weight, `parts` (n_cells, 4).
    """
    true, pred = offsets
    for cell in range(start, stop):
        cells[cell].true = 0
        cells[cell].n = n[at(cell)]
        cells[cell].weight = np.float64(n[at(cell)]) if weight is None else weight[at(cell)]
        own = np.float64(n[at(cell)]) if outer else cells[cell].weight
        c = np.float64(true[at(cell + 1)] - true[at(cell)])
        g = np.float64(pred[at(cell + 1)] - pred[at(cell)])
        least = min(c, g)
        tp = parts[at(cell), 0] + own * (least / g)
        fp = parts[at(cell), 1] + own * ((g - least) / g)
        hit_true = parts[at(cell), 2] + own * (least / c)
        fn = parts[at(cell), 3] + own * ((c - least) / c)
        if hit_true > 0:
            fn *= tp / hit_true
        cells[cell].fp = fp * (own / tp)
        cells[cell].fn = fn * (own / tp)
