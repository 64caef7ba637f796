"""Cells of overlapping clusterings: items with the same clusters on both sides, numbered."""

from __future__ import annotations

from fastbcubed.kernels.jit import kernel

__all__ = ["group_cells", "order_codes"]


@kernel
def order_codes(codes, numbers, order):
    """Give codes new numbers by their first appearance; `numbers` (n_codes,) is -1 for those without.

    Shapes: (n,), (n_codes,), (n_codes,) -> how many appear. `order` gets the codes in the new order.
    """
    n = 0
    for i in range(codes.size):
        if numbers[codes[i]] < 0:
            numbers[codes[i]] = n
            order[n] = codes[i]
            n += 1
    return n


@kernel
def group_cells(bounds, items, others, first, last, seen, place, cell_of, firsts):
    """Give numbers to the cells of a range of true sets: items of one predicted set are one cell.

    Parameters
    ----------
    bounds : int64 (n_sets + 1,)
        Where the items of each true set begin in `items`.
    others : int64 (n_items,)
        The predicted set of each item.
    seen, place : int64 (n_other_sets,)
        Workspaces; `seen` holds no number of this range before.
    cell_of : int64 (n_items,), output
        Cell of each item, counted from 0 in each range.
    firsts : int64 output, one entry per item of the range
        An item of each cell.

    Returns
    -------
    int
        Cells.
    """  # fmt: skip
    n = 0
    base = bounds[first]
    for k in range(first, last):
        for i in range(bounds[k], bounds[k + 1]):
            item = items[i]
            other = others[item]
            if seen[other] != k:
                seen[other] = k
                place[other] = n
                firsts[base + n] = item
                n += 1
            cell_of[item] = place[other]
    return n
