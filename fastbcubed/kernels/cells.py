"""The heart of the library: cells are counted from the rows of a part, in one cache-sized place.

A part is a range of rows that holds every row of its true clusters. Its cells are written over the
rows they come from, which is safe because a cell never stands behind the row that made it. The first
cell of a cluster is its head, which the hash table of the part leads to; the few others are in a
second table.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, kernel
from fastbcubed.kernels.partition import target_of

#: So many weights of a cell are added up plainly before their sum is added exactly.
WEIGHTS_AT_ONCE = 64


@kernel
def table_size(n):
    """Return the least power of two, 1024 at least, that `n` entries fill to half at most."""
    size = 1024
    while size < 2 * n:
        size *= 2
    return size


@kernel
def bit_length(n):
    """Return how many bits the numbers below n need."""
    bits = 0
    while n > 1 << bits:
        bits += 1
    return bits


@kernel
def add_exactly(total, error, x):
    """Add `x` to the sum held as `total + error`, without loss (Knuth's two-sum)."""
    y = total + x
    back = y - total
    return y, error + ((total - (y - back)) + (x - back))


@kernel
def slot_of_other(head, pred, mask):
    """Return where the search for a further cell of a cluster begins."""
    return ((pred >> 24) + head * 40503) & mask


@kernel
def enter_cells(rows, first, n_cells, heads, table, others):
    """Enter the cells found so far into two empty tables: heads by true key, the others by pair."""
    table[:] = -1
    others[:] = -1
    for c in range(n_cells):
        entries = table if heads[c] == c else others
        mask = entries.size - 1
        if heads[c] == c:
            s = rows[first + c].true & mask
        else:
            s = slot_of_other(heads[c], rows[first + c].pred, mask)
        while entries[s] >= 0:
            s = (s + 1) & mask
        entries[s] = c


@kernel
def merge_rows(rows, first, last, state, table, others, counts, heads, sums, errors, cell_of, counted):
    """Merge rows into cells from row i on, until the last, or until a table is 3/4 full.

    The tables are never exchanged in here, and no part is a kernel of its own: Numba would then count references
    in the hot loop. Where `counted` is given, a row says for how many it stands. `state` is, and returned are, the
    next row, the number of cells and the number of heads.
    """
    i, n_cells, n_heads = state
    mask = table.size - 1
    others_mask = others.size - 1
    most_heads = 3 * (table.size // 4)
    most_others = 3 * (others.size // 4)
    while i < last:
        true = rows[at(i)].true
        pred = rows[at(i)].pred
        s = true & mask
        c = table[at(s)]
        while c >= 0 and rows[at(first + c)].true != true:
            s = (s + 1) & mask
            c = table[at(s)]
        head = c
        if c < 0:
            head = n_cells
            table[at(s)] = n_cells
            n_heads += 1
        elif rows[at(first + c)].pred != pred:
            s = slot_of_other(head, pred, others_mask)
            c = others[at(s)]
            while c >= 0 and (rows[at(first + c)].true != true or rows[at(first + c)].pred != pred):
                s = (s + 1) & others_mask
                c = others[at(s)]
            if c < 0:
                others[at(s)] = n_cells
        if cell_of is not None:
            cell_of[at(i - first)] = n_cells if c < 0 else c
        stands_for = 1 if counted is None else rows[at(i)].n
        if c < 0:
            counts[at(n_cells)] = stands_for
            heads[at(n_cells)] = head
            rows[at(first + n_cells)].true = true
            rows[at(first + n_cells)].pred = pred
            if sums is not None:
                rows[at(first + n_cells)].x = rows[at(i)].x
                if stands_for >= WEIGHTS_AT_ONCE:
                    sums[at(n_cells)] = 0.0
                    errors[at(n_cells)] = 0.0
            n_cells += 1
            i += 1
            if n_heads >= most_heads or n_cells - n_heads >= most_others:
                break
        else:
            count = counts[at(c)] + stands_for
            counts[at(c)] = count
            if sums is not None:
                x = rows[at(first + c)].x + rows[at(i)].x
                if count & (WEIGHTS_AT_ONCE - 1) < stands_for:
                    if count - stands_for < WEIGHTS_AT_ONCE:
                        sums[at(c)] = 0.0
                        errors[at(c)] = 0.0
                    sums[at(c)], errors[at(c)] = add_exactly(sums[at(c)], errors[at(c)], x)
                    x = 0.0
                rows[at(first + c)].x = x
            i += 1
    return i, n_cells, n_heads


@kernel
def find_cells(rows, first, last, head_slots, other_slots, counts, heads, sums, errors, cell_of, counted):
    """Merge the rows first..last of one part into cells, written over the front of the part.

    Fills `counts` (items) and `heads` (the first cell of the cluster); for weighted rows `sums` and
    `errors` take what the field `x` leaves over. Where `cell_of` is given it gets the cell of each
    row instead, and the field `x` stays as it is. Returns the number of cells.
    """
    size = min(table_size(last - first), head_slots.size)
    others_size = other_slots.size
    state = merge_rows(
        rows, first, last, (first, 0, 0), empty(head_slots[:size]), empty(other_slots),
        counts, heads, sums, errors, cell_of, counted,
    )  # fmt: skip
    while state[0] < last:
        _, n_cells, n_heads = state
        if 4 * n_heads >= 3 * size:
            size *= 2
        if 4 * (n_cells - n_heads) >= 3 * others_size:
            others_size *= 4
        table, others = np.empty(size, np.int32), np.empty(others_size, np.int32)
        enter_cells(rows, first, n_cells, heads, table, others)
        state = merge_rows(
            rows, first, last, state, table, others, counts, heads, sums, errors, cell_of, counted
        )
    return state[1]


@kernel
def empty(slots):
    """Return the table with all its slots free."""
    slots[:] = -1
    return slots


@kernel
def build_cells(
    rows, cells, bounds, part_from, part_to, targets, heavy, space, n_cells, n_clusters, histogram, keys
):
    """Turn the rows of several parts into cells, and number the true clusters of each part.

    `rows` (true, pred[, x]) and `cells` (cluster, n, pred[, x]), which stand at the front of each part after, are
    the same memory. `heavy` is empty, or the sorted keys of heavy clusters: they are then clusters 0, 1, ... of
    every part here. Outputs: `n_cells`, `n_clusters` by part; `histogram`, cells by target; `keys`, if given, the
    key of each other cluster, by its number, from where its part begins.
    """
    head_slots, other_slots, counts, heads, codes, sums, errors, counted = space
    for part in range(part_from, part_to):
        first = bounds[part]
        last = bounds[part + 1]
        found = find_cells(
            rows, first, last, head_slots, other_slots, counts, heads, sums, errors, None, counted
        )
        n_clusters[part] = number_cells(
            rows, cells, first, found, targets, heavy, (counts, heads, codes), sums, errors, histogram, keys
        )
        n_cells[part] = found


@kernel
def number_cells(rows, cells, first, n_cells, targets, heavy, found, sums, errors, histogram, keys):
    """Write the cells of one part over its rows, and number its true clusters; return how many there are."""
    counts, heads, codes = found
    clusters = 0
    for c in range(n_cells):
        head = heads[at(c)]
        if head == c:
            if heavy.size:
                codes[at(c)] = np.searchsorted(heavy, rows[at(first + c)].true)
            else:
                codes[at(c)] = clusters
                if keys is not None:
                    keys[at(first + clusters)] = rows[at(first + c)].true
            clusters += 1
        pred = rows[at(first + c)].pred
        if sums is not None:
            x = rows[at(first + c)].x
            if counts[at(c)] >= WEIGHTS_AT_ONCE:
                x += sums[at(c)] + errors[at(c)]
            cells[at(first + c)].x = x
        cells[at(first + c)].pred = pred
        cells[at(first + c)].cluster = codes[at(head)]
        cells[at(first + c)].n = counts[at(c)]
        histogram[at(target_of(pred, c, targets))] += 1
    return heavy.size if heavy.size else clusters


@kernel
def locate_cells(rows, bounds, part_from, part_to, targets, space, slot_of_row, n_cells, histogram):
    """Find the cells again as `build_cells` does, and write for each row where its cell stands.

    The field `x` is the row number here; `slot_of_row` gets a position in `rows`. The pred keys of
    the cells stand at the front of each part after.
    """
    head_slots, other_slots, counts, heads, local, _, _, _ = space
    for part in range(part_from, part_to):
        first = bounds[part]
        last = bounds[part + 1]
        found = find_cells(rows, first, last, head_slots, other_slots, counts, heads, None, None, local, None)
        for c in range(found):
            histogram[at(target_of(rows[at(first + c)].pred, c, targets))] += 1
        n_cells[part] = found
        for i in range(first, last):
            slot_of_row[at(rows[at(i)].x)] = first + local[at(i - first)]


@kernel
def place_cells(rows, bounds, part_from, part_to, targets, n_cells, next_cell):
    """Write into the field `true` of each located cell where `scatter_cells` puts it."""
    for part in range(part_from, part_to):
        for j in range(bounds[part], bounds[part] + n_cells[part]):
            target = target_of(rows[at(j)].pred, j - bounds[part], targets)
            rows[at(j)].true = next_cell[at(target)]
            next_cell[at(target)] += 1


@kernel
def look_up_cells(rows, start, stop, cells):
    """Turn the positions in `cells` (one block of rows) into numbers of finished cells."""
    for i in range(start, stop):
        cells[at(i)] = rows[at(cells[at(i)])].true
