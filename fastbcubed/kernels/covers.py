"""Cells of overlapping clusterings: items with the same clusters on both sides, numbered."""

from __future__ import annotations

from fastbcubed.kernels.jit import kernel

#: Items of a true set that are compared with those before them rather than looked up.
SHORT = 16


@kernel
def group_cells(bounds, items, others, first, last, seen, place, cell_of, firsts):
    """Give numbers to the cells of a range of true sets: items of one predicted set are one cell.

    The items of true set i are `items[bounds[i]:bounds[i + 1]]`, and `others` their predicted sets; `seen`
    holds no number of this range before. Outputs: `cell_of`, counted from 0 in each range, and in `firsts` an
    item of each cell. Return how many cells there are. Shapes: `bounds` (n_sets + 1,), `others`, `cell_of`
    (n_items,), `seen`, `place` (n_other_sets,).
    """
    n = 0
    base = bounds[first]
    for k in range(first, last):
        begin = n
        short = bounds[k + 1] - bounds[k] <= SHORT
        for i in range(bounds[k], bounds[k + 1]):
            item = items[i]
            other = others[item]
            if short:
                found = begin
                while found < n and others[firsts[base + found]] != other:
                    found += 1
            else:
                found = place[other] if seen[other] == k else n
                seen[other] = k
                place[other] = found
            if found == n:
                firsts[base + n] = item
                n += 1
            cell_of[item] = found
    return n


@kernel
def number_on(items, start, stop, base, cell_of):
    """Add the number of cells of earlier ranges to that of the cell of each item."""
    for i in range(start, stop):
        cell_of[items[i]] += base
