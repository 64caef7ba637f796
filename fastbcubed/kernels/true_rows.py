"""Cells from rows whose true clusters are numbered already, for several predictions of the same rows.

They are found in the order in which `kernels.cells.build_cells` finds them, and their weights are added up alike.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import WEIGHTS_AT_ONCE, add_exactly, slot_of_other, table_size
from fastbcubed.kernels.jit import at, kernel
from fastbcubed.kernels.partition import mix, target_of


@kernel
def place_preds(pred, places, start, stop, out):
    """Write the mixed pred keys of one block to where its rows went."""
    for i in range(start, stop):
        out[at(places[at(i)])] = mix(pred[at(i)])


@kernel
def number_rows(keys, bounds, part_from, part_to, space, codes, order, n_clusters):
    """Give the true clusters of several parts numbers, from 0 on in each, by their first row.

    `space` is a hash table, and a key and a row for each row of a part. Outputs: `codes` by row; `order`, part by
    part the first row of each cluster, then the other rows; `n_clusters` by part.
    """
    slots, heads, later = space
    for part in range(part_from, part_to):
        first, last, n, n_later = bounds[part], bounds[part + 1], 0, 0
        size = table_size(last - first)
        table = slots[:size] if size <= slots.size else np.empty(size, np.int32)
        table[:] = -1
        for i in range(first, last):
            key = keys[at(i)]
            s = key & (size - 1)
            while table[at(s)] >= 0 and heads[at(table[at(s)])] != key:
                s = (s + 1) & (size - 1)
            if table[at(s)] < 0:
                table[at(s)] = n
                heads[at(n)] = key
                order[at(first + n)] = i
                n += 1
            else:
                later[at(n_later)] = i
                n_later += 1
            codes[at(i)] = table[at(s)]
        order[first + n : last] = later[:n_later]
        n_clusters[part] = n


@kernel
def build_cells(
    rows, weights, cells, bounds, part_from, part_to, n_clusters, targets, space, n_cells, histogram
):
    """Write the cells of several parts to where their rows begin, in `cells` (cluster, n, pred[, x]).

    `rows` are codes of true clusters, mixed pred keys, and the `order` of `number_rows`; `weights` may be None. `space`
    is a hash table, and by cell sums and what these leave over, a row and a cell. Outputs: `n_cells` by part,
    `histogram` by target.
    """
    slots, sums, errors, starts, spare = space
    for part in range(part_from, part_to):
        first, last, n_heads = bounds[part], bounds[part + 1], n_clusters[part]
        size = table_size(last - first - n_heads)
        others = slots[:size] if size <= slots.size else np.empty(size, np.int32)
        others[:] = -1
        begin_cells(rows, weights, first, n_heads, cells)
        n = merge_rows(rows, weights, (first, last, n_heads), cells, others, sums, errors, starts)
        if weights is not None:
            for c in range(n):
                if cells[at(first + c)].n >= WEIGHTS_AT_ONCE:
                    cells[at(first + c)].x += sums[at(c)] + errors[at(c)]
        spare[: n - n_heads] = cells[first + n_heads : first + n]
        sort_cells(rows[2], starts, first, n_heads, n, spare, cells)
        for c in range(n):
            histogram[at(target_of(cells[at(first + c)].pred, c, targets))] += 1
        n_cells[part] = n


@kernel
def begin_cells(rows, weights, first, n_heads, cells):
    """Write the cell of the first row of each true cluster of a part."""
    _, preds, order = rows
    for k in range(n_heads):
        i = order[at(first + k)]
        cells[at(first + k)].cluster = k
        cells[at(first + k)].pred = preds[at(i)]
        cells[at(first + k)].n = 1
        if weights is not None:
            cells[at(first + k)].x = weights[at(i)]


@kernel
def merge_rows(rows, weights, part, cells, others, sums, errors, starts):
    """Merge the other rows of a part into cells; return how many there are, and write the first row of each new one."""
    codes, preds, order = rows
    first, last, n_heads = part
    n, mask = n_heads, others.size - 1
    for k in range(first + n_heads, last):
        i = order[at(k)]
        code, pred = codes[at(i)], preds[at(i)]
        c = np.int64(code)
        if cells[at(first + c)].pred != pred:
            s = slot_of_other(code, pred, mask)
            c = np.int64(others[at(s)])
            while c >= 0 and (cells[at(first + c)].cluster != code or cells[at(first + c)].pred != pred):
                s = (s + 1) & mask
                c = np.int64(others[at(s)])
            if c < 0:
                others[at(s)] = n
                starts[at(n - n_heads)] = i
                cells[at(first + n)].cluster = code
                cells[at(first + n)].pred = pred
                cells[at(first + n)].n = 1
                if weights is not None:
                    cells[at(first + n)].x = weights[at(i)]
                n += 1
                continue
        count = cells[at(first + c)].n + 1
        cells[at(first + c)].n = count
        if weights is not None:
            x = cells[at(first + c)].x + weights[at(i)]
            if count & (WEIGHTS_AT_ONCE - 1) == 0:
                if count == WEIGHTS_AT_ONCE:
                    sums[at(c)], errors[at(c)] = 0.0, 0.0
                sums[at(c)], errors[at(c)] = add_exactly(sums[at(c)], errors[at(c)], x)
                x = 0.0
            cells[at(first + c)].x = x
    return n


@kernel
def sort_cells(order, starts, first, n_heads, n, spare, cells):
    """Bring the cells of a part, the later ones of which are in `spare`, into the order of their first rows."""
    head, other = n_heads - 1, n - n_heads - 1
    for c in range(n - 1, -1, -1):
        if other < 0:
            return
        if head >= 0 and order[at(first + head)] > starts[at(other)]:
            cells[at(first + c)] = cells[at(first + head)]
            head -= 1
        else:
            cells[at(first + c)] = spare[at(other)]
            other -= 1
