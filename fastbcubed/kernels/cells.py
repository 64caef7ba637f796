"""Counting cells from the rows of a part, within memory that fits the cache: the core of the library.

A part is a range of rows that holds every row of its true clusters. Its cells are written over the rows they come
from; this is safe because a cell never comes after the row that created it. The first cell of a cluster is its head,
found through the hash table of the part; the few others are in a second table. A cell's target is the partition by
predicted cluster that the cell is sent to next.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels import by_numpy
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import RECORDS_AHEAD, WEIGHTS_AT_ONCE, add_exactly, fetch, mix, target_of


@kernel
def table_size(n):
    """Return the size of a hash table for `n` entries: the smallest power of two >= max(1024, 2 * n)."""
    size = 1024
    while size < 2 * n:
        size *= 2
    return size


@kernel
def bit_length(n):
    """Return the number of bits needed to write the numbers 0 to n - 1."""
    bits = 0
    while n > 1 << bits:
        bits += 1
    return bits


@kernel
def slot_of_other(head, pred, mask):
    """Return the slot of the second table where the search for a non-head cell of a cluster begins."""
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
    """Merge rows of a part into cells, until the last row is reached or one of the tables is 3/4 full.

    `state`, passed in and returned, is the next row, the number of cells and the number of heads. Where `counted` is
    given, each row stands for `n` items. Tables are not enlarged here, and no step is a kernel of its own, because
    Numba would then count references in the inner loop.
    """
    # Idea: most rows of a good clustering belong to the first cell of their true cluster, its head. So the head
    # is looked up first, in a table of true keys, and only rows with another predicted key are hashed again, in a
    # table of pairs. One table of pairs would hash every row, and would not find the heads, which number the true
    # clusters.
    # Holds: cells overwrite the front of the part (cell c is row first + c), which has been read, since each row
    # makes at most one cell; `heads[c]` is the first cell of cell c's cluster; a slot is -1 or a cell.
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
    """Merge the rows first..last of one part into cells, written over the front of the part; return their number.

    Fills `counts` (items of each cell) and `heads` (the first cell of its cluster). For weighted rows, `sums` and
    `errors` take partial sums of weights that were moved out of the field `x`. Where `cell_of` is given, it receives
    the cell of each row, and the field `x` is left unchanged.
    """
    size = min(table_size(last - first), head_slots.size)
    others_size = other_slots.size
    head_slots[:size] = -1
    other_slots[:] = -1
    state = merge_rows(
        rows, first, last, (first, 0, 0), head_slots[:size], other_slots,
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


@kernel(by_numpy=by_numpy.build_cells)
def build_cells(
    rows, cells, bounds, part_from, part_to, targets, heavy, space, n_cells, n_clusters, histogram, keys
):
    """Turn the rows of several parts into cells, and number the true clusters of each part.

    `rows` (true, pred[, x]) and `cells` (cluster, n, pred[, x]) are the same memory; the cells end up at the front of
    each part. `heavy` is empty, or the sorted keys of heavy clusters, which then are clusters 0, 1, ... of every
    part. Outputs: `n_cells` and `n_clusters` of each part; `histogram`, the cells of each target; `keys`, unless
    empty, the keys of the clusters that are not heavy, part after part.
    """
    head_slots, other_slots, counts, heads, codes, sums, errors, counted = space
    n_keys = 0
    for part in range(part_from, part_to):
        first = bounds[part]
        last = bounds[part + 1]
        found = find_cells(
            rows, first, last, head_slots, other_slots, counts, heads, sums, errors, None, counted
        )
        n_clusters[part] = number_cells(
            rows, cells, first, found, targets, heavy, (counts, heads, codes), sums, errors, histogram,
            keys[n_keys:],
        )  # fmt: skip
        n_keys += n_clusters[part]
        n_cells[part] = found


@inlined
def place_in(keys, key):
    """Return the number of sorted keys that are smaller than `key`."""
    first, last = 0, keys.size
    while first < last:
        middle = (first + last) >> 1
        if keys[at(middle)] < key:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def number_cells(rows, cells, first, n_cells, targets, heavy, found, sums, errors, histogram, keys):
    """Finish the cells of one part in place, and number its true clusters; return the number of clusters."""
    counts, heads, codes = found
    clusters, with_keys = 0, keys.size > 0
    for c in range(n_cells):
        head = heads[at(c)]
        if head == c:
            if heavy.size:
                codes[at(c)] = place_in(heavy, rows[at(first + c)].true)
            else:
                codes[at(c)] = clusters
                if with_keys:
                    keys[at(clusters)] = rows[at(first + c)].true
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


@inlined
def find_again(rows, bounds, part, targets, space, n_cells, histogram):
    """Find the cells of a part as `build_cells` does, and count them by target.

    Returns the first row of the part, one past its last row, and each row's cell number.
    """
    head_slots, other_slots, counts, heads, local, _, _, _ = space
    first = bounds[part]
    last = bounds[part + 1]
    found = find_cells(rows, first, last, head_slots, other_slots, counts, heads, None, None, local, None)
    for c in range(found):
        histogram[at(target_of(rows[at(first + c)].pred, c, targets))] += 1
    n_cells[part] = found
    return first, last, local


@kernel(by_numpy=by_numpy.locate_cells)
def locate_cells(rows, bounds, part_from, part_to, targets, space, slot_of_row, n_cells, histogram):
    """Find the cells of several parts as `build_cells` does, and write the position of each row's cell.

    The field `x` of a row is its row number; `slot_of_row` (n_rows,) receives a position in `rows`. Afterwards, the
    front of each part holds the predicted keys of its cells.
    """
    for part in range(part_from, part_to):
        first, last, local = find_again(rows, bounds, part, targets, space, n_cells, histogram)
        for i in range(first, last):
            slot_of_row[at(rows[at(i)].x)] = first + local[at(i - first)]


@kernel(by_numpy=by_numpy.place_cells)
def place_cells(rows, bounds, part_from, part_to, targets, n_cells, next_cell):
    """Write each located cell's destination in `scatter_cells` to its field `true`."""
    for part in range(part_from, part_to):
        for j in range(bounds[part], bounds[part] + n_cells[part]):
            target = target_of(rows[at(j)].pred, j - bounds[part], targets)
            rows[at(j)].true = next_cell[at(target)]
            next_cell[at(target)] += 1


@kernel(by_numpy=by_numpy.look_up_cells)
def look_up_cells(rows, start, stop, cells):
    """Replace positions of located cells, for the rows start..stop, by the numbers of the finished cells."""
    for i in range(start, stop):
        cells[at(i)] = rows[at(cells[at(i)])].true


@kernel(by_numpy=by_numpy.find_first_rows)
def find_first_rows(rows, bounds, part_from, part_to, targets, space, n_cells, histogram):
    """Find the cells of several parts as `locate_cells` does, and write the first row of each cell to its field `x`."""
    # Cells are numbered by their first rows, so a cell's number never exceeds the row's: writes go only to rows that
    # have been read. This takes a third of the time of `locate_cells`, which writes a number per row at random places.
    for part in range(part_from, part_to):
        first, last, local = find_again(rows, bounds, part, targets, space, n_cells, histogram)
        n = 0
        for i in range(first, last):
            if local[at(i - first)] == n:
                rows[at(first + n)].x = rows[at(i)].x
                n += 1


@kernel(by_numpy=by_numpy.place_first_rows)
def place_first_rows(rows, bounds, part_from, part_to, targets, n_cells, next_cell, first_rows):
    """Write the first row of each cell to the position of the finished cell; see `place_cells`."""
    for part in range(part_from, part_to):
        for j in range(bounds[part], bounds[part] + n_cells[part]):
            target = target_of(rows[at(j)].pred, j - bounds[part], targets)
            first_rows[at(next_cell[at(target)])] = rows[at(j)].x
            next_cell[at(target)] += 1


@kernel(by_numpy=by_numpy.place_preds)
def place_preds(pred, places, start, stop, out):
    """Write the mixed predicted keys of the rows start..stop to their places in `out`."""
    for i in range(start, stop):
        out[at(places[at(i)])] = mix(pred[at(i)])


@kernel(by_numpy=by_numpy.number_rows)
def number_rows(keys, bounds, part_from, part_to, space, codes, order, n_clusters):
    """Assign numbers to the true clusters of several parts by their first rows, starting at 0 in each part.

    `space` is a hash table, then a key and a row index for each row of a part. Outputs: `codes` of rows; `order`, for
    each part the first row of each cluster, then the other rows; `n_clusters` of each part.
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
        for i in range(n_later):
            order[at(first + n + i)] = later[at(i)]
        n_clusters[part] = n


@kernel(by_numpy=by_numpy.build_cells_of_numbered)
def build_cells_of_numbered(
    rows, weights, cells, bounds, part_from, part_to, n_clusters, targets, space, n_cells, histogram
):
    """Write the cells of several parts to the front of each part, in `cells` (cluster, n, pred[, x]).

    `rows` are codes of true clusters, mixed predicted keys, and the `order` of `number_rows`; `weights` may be None.
    `space` is a hash table, then for each cell a sum, its rounding error, a first row and a spare record. Outputs:
    `n_cells` of each part, `histogram` by target.
    """
    slots, sums, errors, starts, spare = space
    for part in range(part_from, part_to):
        first, last, n_heads = bounds[part], bounds[part + 1], n_clusters[part]
        size = table_size(last - first - n_heads)
        others = slots[:size] if size <= slots.size else np.empty(size, np.int32)
        others[:] = -1
        begin_cells(rows, weights, first, n_heads, cells)
        n = merge_numbered_rows(rows, weights, (first, last, n_heads), cells, others, sums, errors, starts)
        if weights is not None:
            for c in range(n):
                if cells[at(first + c)].n >= WEIGHTS_AT_ONCE:
                    cells[at(first + c)].x += sums[at(c)] + errors[at(c)]
        for c in range(n_heads, n):
            spare[at(c - n_heads)] = cells[at(first + c)]
        sort_cells(rows[2], starts, first, n_heads, n, spare, cells)
        for c in range(n):
            histogram[at(target_of(cells[at(first + c)].pred, c, targets))] += 1
        n_cells[part] = n


@kernel
def begin_cells(rows, weights, first, n_heads, cells):
    """Create the head cell of each true cluster of a part from the cluster's first row."""
    _, preds, order = rows
    for k in range(n_heads):
        i = order[at(first + k)]
        cells[at(first + k)].cluster = k
        cells[at(first + k)].pred = preds[at(i)]
        cells[at(first + k)].n = 1
        if weights is not None:
            cells[at(first + k)].x = weights[at(i)]


@kernel
def merge_numbered_rows(rows, weights, part, cells, others, sums, errors, starts):
    """Merge the remaining rows of a part into cells, writing each new cell's first row; return the number of cells."""
    # Idea: as in `merge_rows`, but a true cluster has a number, and its head is the cell of that number. So heads
    # need no table, and only rows with another predicted key are hashed.
    # Holds: `order` has the first row of each cluster in front, whose cells are written already; cells from
    # n_heads on are in the order of their first rows, which `sort_cells` relies on.
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
    """Sort the cells of a part by first row, merging the heads in `cells` with the others in `spare`; both ascend."""
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


#: A part with more cells than this per slot is assumed to have few clusters, and is first tried with a small table.
LARGE = 8


@kernel
def add_margins(cells, first, n_cells, weighted, outer, targets, mass, rest):
    """Add the items or weights of one part's cells to the sums `mass + rest` of their true clusters, exactly.

    Items missing from the prediction are skipped. `weighted` is None for cells without weights, else any array.
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
    """Count the items of each true cluster of a part, except those missing from the prediction."""
    for j in range(first, first + n_cells):
        if not (absent_pred.size and cells[j].pred == absent_pred[0]):
            counts[cells[j].cluster] += cells[j].n


@kernel(by_numpy=by_numpy.scatter_cells)
def scatter_cells(
    cells, parts, part_from, part_to, targets, weighted, outer, heavy, absent_true, sums, next_cell, out
):
    """Write the cells of several parts, with their false negatives, to their targets.

    `parts` are arrays of the first row, the number of cells, the number of true clusters and the first cluster code of
    each part. If `heavy`, the parts hold the heavy clusters, and `sums` (mass, rest) are theirs; otherwise `sums` is
    workspace. `weighted` is None for cells without weights, else any array. `absent_true`, or -1, is the cluster of
    items that the truth lacks; they get the code -1 in `out`, records (pred, weight, fn, true, n).
    """
    # Idea: this is the last time that all cells of a true cluster are together, so their false negatives are
    # written now; each cell then goes to the target of its predicted cluster, where the false positives are
    # found.
    # Each target is a stream of its own, too many for the CPU to foresee, so that memory is asked for ahead.
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
    """Count the cells start..stop by target."""
    for i in range(start, stop):
        counts[at(target_of(cells[at(i)].pred, i, targets))] += 1


@kernel
def scatter_arrived(cells, start, stop, targets, next_cell, out, places):
    """Copy the cells start..stop to their targets, and write their positions to `places` unless it is None."""
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


@kernel(by_numpy=by_numpy.close_cells)
def close_cells(
    arrived, cells, pred_codes, bounds, part_from, part_to, outer, outside, absent_pred,
    space, n_clusters, keys,
):  # fmt: skip
    """Assign numbers to the predicted clusters of several parts, and write the false positives of their cells.

    `arrived` and `cells` are the same memory: the field `fp` replaces the predicted key. Codes start at 0 in each
    part and are -1 for items that the prediction lacks. Items that the truth lacks count as false positives only if
    `outside`. `space` is a hash table and records (key, mass, rest, only). `keys`, unless empty, receives the keys of
    the clusters, part after part.
    """
    # Idea: false positives are the mass of the predicted cluster without the cell's own, which is known once all
    # cells of the part have been seen. So the first pass sums by cluster, and the second writes. The keys may be
    # overwritten then, as `pred_codes` replaces them; a second array would take as much memory as the cells.
    # A large part is first tried with the table that fits the cache: mostly it is large because its clusters are.
    slots, clusters = space
    n_keys = 0
    for part in range(part_from, part_to):
        first = bounds[part]
        last = bounds[part + 1]
        size = table_size(last - first)
        if last - first > LARGE * slots.size:
            size = slots.size
        n_clusters[part] = -1
        while n_clusters[part] < 0:  # retry if the table for few clusters is too small
            table = slots[:size] if size <= slots.size else np.empty(size, np.int32)
            table[:] = -1
            n_clusters[part] = number_clusters(
                arrived, pred_codes, first, last, outer, absent_pred, table, clusters, keys[n_keys:]
            )
            size = table_size(last - first)
        n_keys += n_clusters[part]
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
    """Assign numbers to the predicted clusters of a part, and sum their items or weights; return how many there are.

    Returns -1 if the clusters would fill more than half of the table.
    """
    # Idea: an entry of the table has a part of the key besides the cluster's number. Most entries of other
    # clusters are rejected by that part, without reading `clusters`, which is rarely in the cache.
    # Sums are exact (mass + rest), since the false positives are differences of nearly equal numbers where a cell
    # is most of its cluster.
    room = bit_length(last - first)  # an entry: as many bits of the key as fit, then the cluster number
    found, with_keys = 0, keys.size > 0
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
            if with_keys:
                keys[at(k)] = pred
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
    """Return the bits of a key that a table entry stores above the cluster number; they distinguish most keys."""
    return ((pred >> 20) & 0x7FFFFFFF) >> room


@inlined
def find_cluster(pred, table, room, clusters):
    """Return the number of a predicted cluster and its slot, or -1 and the free slot where it belongs."""
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
    """Count the scored items of each predicted cluster in the cells start..stop.

    Returns the number of scored cells (items present on both sides), and how many of these are whole clusters on both
    sides.
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
    """Add the cells of one part to sums (5, n_clusters) by true cluster, as `cells.partitioned.IfAlone` uses them."""
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
    """Return how the summed recall of n true clusters changes if dropped items become singletons. Shape: (5, n)."""
    change = 0.0
    for k in range(n):
        if sums[2, k] > 0.0:
            alone = sums[3, k] * (sums[4, k] / sums[2, k])
            before = sums[0, k] / sums[1, k] if sums[1, k] > 0.0 else 0.0
            change += (sums[0, k] + alone) / (sums[1, k] + sums[4, k]) - before
    return change


@kernel(by_numpy=by_numpy.change_by_part)
def change_by_part(cells, parts, part_from, part_to, weighted, outer, absent_pred, sums, changes):
    """Write the change of `change_if_alone` for each part, which must hold all cells of its true clusters.

    `sums` is workspace.
    """
    bounds, n_cells, n_clusters = parts
    for part in range(part_from, part_to):
        sums[:, : n_clusters[part]] = 0.0
        sum_if_alone(cells, bounds[part], n_cells[part], weighted, outer, absent_pred, sums)
        changes[part] = change_if_alone(sums, n_clusters[part])


@kernel
def gather_records(records, places, out, start, stop):
    """Copy records[places[i]] to out[i] for i in start..stop."""
    for i in range(start, stop):
        out[i] = records[places[i]]


@kernel(words=True)
def keep_rows(numbers, there, weight, among, scored, stay):
    """Mark the rows whose bit is set in `among`, in `stay`, and set their bits in `scored`.

    `numbers` are each row's bit position. Where `there` is given, only rows with a true value count. Returns the number
    of marked rows, and an order-independent hash of their numbers and weights (n,), the latter read as integers; the
    hash is 0 if `weight` is None.
    """
    n, mixed = 0, np.uint64(0)
    for i in range(stay.size):
        if there is not None and not there[at(i)]:
            continue
        number = numbers[at(i)]
        bit = np.uint8(1 << (number & 7))
        if among[at(number >> 3)] & bit:
            scored[at(number >> 3)] |= bit
            stay[at(i)] = True
            n += 1
            if weight is not None:
                mixed += np.uint64(mix(mix(number) ^ weight[at(i)]))
    return n, mixed


@kernel
def tell_cells(at, closed, found, start, stop):
    """Write the cell number of each of the rows start..stop; `at` gives the position of a row's cell in `closed`."""
    for i in range(start, stop):
        found[i].cell = closed[at[i]].cell


@kernel
def count_scored(cells, closed, first_code, counts):
    """Count the scored items of each true cluster; `counts` starts at the cluster `first_code`."""
    for j in range(cells.size):
        if closed[j].cell >= 0:
            counts[cells[j].true - first_code] += cells[j].n


@kernel
def tell_matrices(at, cells, closed, first_code, true_sizes, tn, found, start, stop):
    """Write the confusion matrix and other fields of each row's cell, for the rows start..stop.

    `at` (n_rows,) is the position of each row's cell in `cells` (pred, weight, fn, true, n), as read from the shard,
    and in `closed` (cell, fp, pred_power). `true_sizes` are counts of scored items, starting at the cluster
    `first_code`; `tn` is None or has shape (n_cells,). Output: `found`, records like MATRIX_OF_ROW.
    """
    for i in range(start, stop):
        j = at[i]
        cell = closed[j].cell
        found[i].cell = cell
        found[i].weight = cells[j].weight
        found[i].fp = closed[j].fp
        found[i].fn = cells[j].fn
        found[i].n = cells[j].n
        found[i].tn = 0.0
        found[i].true_power = 0
        found[i].pred_power = closed[j].pred_power
        if cell >= 0:
            found[i].true_power = bit_length(true_sizes[cells[j].true - first_code] + 1) - 1
            if tn is not None:
                found[i].tn = tn[cell]


@kernel
def add_by_cell(place, values, first, last, sums):
    """Add row values to the sums of the cells first..last, exactly; `sums` are records (mass, rest) by cell."""
    for i in range(place.size):
        j = place[at(i)]
        if first <= j < last:
            sums[at(j)].mass, sums[at(j)].rest = add_exactly(
                sums[at(j)].mass, sums[at(j)].rest, values[at(i)]
            )


@kernel
def weigh_items(place, weight, sums, cells, closed, numbers, start, stop, out):
    """Write four figures of each of the rows start..stop: its weight, the weight of the rest of its cell, fp and fn.

    Rows that are not scored get 0. `place` (n_rows,) is the position of each row's cell in `sums` (mass, rest), `cells`
    (fields n, fn), `closed` (field fp) and `numbers`, which is negative for cells that are not scored; if `numbers` is
    None, `place` is negative for rows that are not scored. Shapes: `weight` (n_rows,), `out` (4, stop - start) or more.
    """
    for i in range(start, stop):
        j, k = place[at(i)], at(i - start)
        number = j if numbers is None else numbers[at(j)]
        if number < 0:
            out[:, k] = 0.0
            continue
        own = weight[at(i)]
        out[0, k] = own
        out[1, k] = weigh_others(own, sums[at(j)].mass, sums[at(j)].rest, cells[at(j)].n)
        out[2, k], out[3, k] = closed[at(j)].fp, cells[at(j)].fn


@kernel
def tell_others(place, weight, sums, cells, found, start, stop):
    """Write the weight of the other items of each row's cell, for the rows start..stop; see `weigh_items`."""
    for i in range(start, stop):
        j = place[at(i)]
        found[at(i)].others = weigh_others(weight[at(i)], sums[at(j)].mass, sums[at(j)].rest, cells[at(j)].n)


@inlined
def weigh_others(own, mass, rest, n):
    """Return the weight of the other items of a cell; 0 if there are none."""
    return (mass - own) + rest if n > 1 else 0.0
