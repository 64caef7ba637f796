"""The heart of the library: rows of a part → its cells → their clusters, in one cache-sized place.

A part is a range of rows that holds every row of its true clusters. Its cells are written over the
rows they come from, which is safe because a cell never stands behind the row that made it.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import kernel
from fastbcubed.kernels.partition import part_of

__all__ = [
    "build_cells",
    "close_cells",
    "locate_cells",
    "look_up_cells",
    "place_cells",
    "scatter_cells",
    "table_size",
]


@kernel
def table_size(n):
    """Return the least power of two, 1024 at least, that `n` entries fill to 3/4 at most."""
    size = 1024
    while 3 * size < 4 * n:
        size *= 2
    return size


@kernel
def slot_of_pair(true, pred, mask):
    """Return where the search for a pair of mixed keys begins; equal keys do not cancel."""
    return (true ^ (pred >> 32)) & mask


@kernel
def grow(slots, rows, first, n_cells):
    """Return a table twice as long, with the part's cells entered anew."""
    wider = np.full(2 * slots.size, -1, np.int32)
    mask = wider.size - 1
    for c in range(n_cells):
        s = slot_of_pair(rows[first + c].true, rows[first + c].pred, mask)
        while wider[s] >= 0:
            s = (s + 1) & mask
        wider[s] = c
    return wider


@kernel
def add_exactly(total, error, x):
    """Add `x` to the sum held as `total + error` (Neumaier's compensated summation)."""
    y = total + x
    back = y - total
    return y, error + ((total - (y - back)) + (x - back))


@kernel
def find_cells(rows, first, last, slots, counts, errors, cell_of):
    """Merge the rows first..last of one part into cells, written over the front of the part.

    Fills `counts` and, for weighted rows, `errors` (what rounding took from the field `x`); where
    `cell_of` is given it gets the cell of each row instead, and the field `x` stays as it is.
    Returns the number of cells.
    """
    size = min(table_size(last - first), slots.size)
    table = slots[:size]
    table[:] = -1
    mask = size - 1
    n_cells = 0
    for i in range(first, last):
        true = rows[i].true
        pred = rows[i].pred
        s = slot_of_pair(true, pred, mask)
        c = table[s]
        while c >= 0 and (rows[first + c].true != true or rows[first + c].pred != pred):
            s = (s + 1) & mask
            c = table[s]
        if errors is not None:
            x = rows[i].x
        if c < 0:
            c = n_cells
            table[s] = c
            n_cells += 1
            rows[first + c].true = true
            rows[first + c].pred = pred
            counts[c] = 1
            if errors is not None:
                rows[first + c].x = x
                errors[c] = 0.0
            if 4 * n_cells > 3 * size:
                table = grow(table, rows, first, n_cells)
                size = table.size
                mask = size - 1
        else:
            counts[c] += 1
            if errors is not None:
                total, error = add_exactly(rows[first + c].x, errors[c], x)
                rows[first + c].x = total
                errors[c] = error
        if cell_of is not None:
            cell_of[i - first] = c
    return n_cells


@kernel
def build_cells(
    rows,
    cells,
    bounds,
    part_from,
    part_to,
    bits,
    outer,
    heavy,
    absent,
    slots,
    counts,
    errors,
    keys,
    n,
    mass,
    rest,
    only_n,
    only_mass,
    n_cells,
    n_clusters,
    histogram,
):
    """Turn the rows of several parts into cells, and number and add up their true clusters.

    Parameters
    ----------
    rows, cells : record arrays over the same memory
        Rows (true, pred[, x]) on entry; cells (cluster, n, pred[, x]) at the front of each part after.
    bounds : int64 (n_parts + 1,)
        Where each part begins.
    outer : bool
        Whether margins count items (weights serve the mean alone) or add weights.
    heavy : int64 (n_heavy,)
        Empty, or the keys set apart: they are then clusters 0, 1, ... of every part here.
    absent : int64 (0,) or (1,)
        The mixed pred key that stands for "the prediction lacks this item".
    slots, counts, errors, keys : workspace
        For a hash table, and one entry per cell or cluster of a part.
    n, mass, rest : outputs, one entry per true cluster of these parts
        Items; and mass + rest, the weight or count with twice the digits of a float.
    only_n, only_mass : outputs likewise, or None
        Items that only the truth has.
    n_cells : int64 (n_parts,) output
    n_clusters : int64 (n_parts,) output
    histogram : int64 (2**bits,) output
        Cells by the part that their pred key sends them to.
    """
    done = 0
    for part in range(part_from, part_to):
        first = bounds[part]
        last = bounds[part + 1]
        found = find_cells(rows, first, last, slots, counts, errors, None)

        size = min(table_size(found + heavy.size), slots.size)
        if size < table_size(found + heavy.size):
            table = np.empty(table_size(found + heavy.size), np.int32)
        else:
            table = slots[:size]
        table[:] = -1
        mask = table.size - 1
        clusters = 0
        for k in range(heavy.size):
            s = heavy[k] & mask
            while table[s] >= 0:
                s = (s + 1) & mask
            table[s] = k
            keys[k] = heavy[k]
            n[done + k] = 0
            mass[done + k] = 0.0
            rest[done + k] = 0.0
            if only_n is not None:
                only_n[done + k] = 0
                only_mass[done + k] = 0.0
            clusters += 1
        kept = 0
        for c in range(found):
            true = rows[first + c].true
            pred = rows[first + c].pred
            if errors is not None:
                x = rows[first + c].x + errors[c]
            count = counts[c]
            s = true & mask
            k = table[s]
            while k >= 0 and keys[k] != true:
                s = (s + 1) & mask
                k = table[s]
            if k < 0:
                k = clusters
                clusters += 1
                table[s] = k
                keys[k] = true
                n[done + k] = 0
                mass[done + k] = 0.0
                rest[done + k] = 0.0
                if only_n is not None:
                    only_n[done + k] = 0
                    only_mass[done + k] = 0.0
            added = np.float64(count)
            if errors is not None and not outer:
                added = x
            if absent.size and pred == absent[0]:
                if only_n is not None:
                    only_n[done + k] += count
                    only_mass[done + k] += added
                continue
            n[done + k] += count
            total, error = add_exactly(mass[done + k], rest[done + k], added)
            mass[done + k] = total
            rest[done + k] = error
            j = first + kept
            kept += 1
            cells[j].cluster = k
            cells[j].n = count
            cells[j].pred = pred
            if errors is not None:
                cells[j].x = x
            histogram[part_of(pred, bits)] += 1
        n_cells[part] = kept
        n_clusters[part] = clusters
        done += clusters
    return done


@kernel
def scatter_cells(
    cells, bounds, part_from, part_to, bits, outer, base, n_heavy, absent_true, n_cells, n_clusters,
    mass, rest, next_cell, out
):
    """Send the cells of several parts to the part of their pred key, with what the truth adds to them.

    `base` is the code of the first true cluster here, and `mass`, `rest` begin there. Where
    `n_heavy` > 0 every part has the same clusters; `absent_true` is the one among them that stands
    for "the truth lacks this item", or -1.
    """  # fmt: skip
    start = 0
    for part in range(part_from, part_to):
        for j in range(bounds[part], bounds[part] + n_cells[part]):
            k = start + cells[j].cluster
            pred = cells[j].pred
            target = part_of(pred, bits)
            to = next_cell[target]
            next_cell[target] = to + 1
            out[to].pred = pred
            out[to].n = cells[j].n
            weight = np.float64(cells[j].n)
            if rest is None:  # counts alone: exact as they are
                out[to].weight = weight
                out[to].fn = mass[k] - weight
            else:
                weight = cells[j].x
                own = np.float64(cells[j].n) if outer else weight
                out[to].weight = weight
                out[to].fn = (mass[k] - own) + rest[k]
            out[to].true = -1 if cells[j].cluster == absent_true else base + k
        if n_heavy == 0:
            start += n_clusters[part]


@kernel
def close_cells(
    arrived, cells, pred_codes, bounds, part_from, part_to, outer, outside, slots, keys,
    n, mass, rest, only_n, only_mass
):
    """Number and add up the predicted clusters of several parts, and give their cells `fp`.

    `arrived` and `cells` are the same memory: the first reads the pred key where the second has fp.
    Cells that the truth lacks (code -1) are added up apart; with `outside` they count as false
    positives. Returns the number of predicted clusters.
    """  # fmt: skip
    done = 0
    for part in range(part_from, part_to):
        first = bounds[part]
        last = bounds[part + 1]
        size = table_size(last - first)
        table = slots[:size] if size <= slots.size else np.empty(size, np.int32)
        table[:] = -1
        mask = table.size - 1
        clusters = 0
        for j in range(first, last):
            pred = arrived[j].pred
            s = pred & mask
            k = table[s]
            while k >= 0 and keys[k] != pred:
                s = (s + 1) & mask
                k = table[s]
            if k < 0:
                k = clusters
                clusters += 1
                table[s] = k
                keys[k] = pred
                n[done + k] = 0
                mass[done + k] = 0.0
                rest[done + k] = 0.0
                if only_n is not None:
                    only_n[done + k] = 0
                    only_mass[done + k] = 0.0
            pred_codes[j] = done + k
            count = arrived[j].n
            added = np.float64(count) if outer else arrived[j].weight
            if arrived[j].true < 0:
                if only_n is not None:
                    only_n[done + k] += count
                    only_mass[done + k] += added
            else:
                n[done + k] += count
                total, error = add_exactly(mass[done + k], rest[done + k], added)
                mass[done + k] = total
                rest[done + k] = error
        for j in range(first, last):
            k = pred_codes[j]
            own = np.float64(arrived[j].n) if outer else arrived[j].weight
            others = (mass[k] - own) + rest[k]
            if outside and only_mass is not None:
                others += only_mass[k]
            cells[j].fp = others
        done += clusters
    return done


@kernel
def locate_cells(
    rows, bounds, part_from, part_to, bits, absent, slots, counts, local, number, slot_of_row,
    n_cells, histogram
):
    """Find the cells again as `build_cells` does, and write for each row where its cell stands.

    The field `x` is the row number here; `slot_of_row` gets a position in `rows`, or -1 for a row
    that the prediction lacks. The pred keys of the cells stand at the front of each part after.
    """  # fmt: skip
    for part in range(part_from, part_to):
        first = bounds[part]
        last = bounds[part + 1]
        found = find_cells(rows, first, last, slots, counts, None, local)
        kept = first
        for c in range(found):
            pred = rows[first + c].pred
            if absent.size and pred == absent[0]:
                number[c] = -1
            else:
                number[c] = kept
                rows[kept].pred = pred
                kept += 1
                histogram[part_of(pred, bits)] += 1
        n_cells[part] = kept - first
        for i in range(first, last):
            slot_of_row[rows[i].x] = number[local[i - first]]


@kernel
def place_cells(rows, bounds, part_from, part_to, bits, n_cells, next_cell):
    """Write into the field `true` of each located cell where `scatter_cells` puts it."""
    for part in range(part_from, part_to):
        for j in range(bounds[part], bounds[part] + n_cells[part]):
            target = part_of(rows[j].pred, bits)
            rows[j].true = next_cell[target]
            next_cell[target] += 1


@kernel
def look_up_cells(rows, start, stop, cell_of_slot, has_map, cells):
    """Turn the positions in `cells` (one block of rows) into numbers of finished cells."""
    for i in range(start, stop):
        if cells[i] >= 0:
            c = rows[cells[i]].true
            cells[i] = cell_of_slot[c] if has_map else c
