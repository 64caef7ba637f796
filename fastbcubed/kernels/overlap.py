"""Overlaps: what each true cluster shares with each predicted one, where items may be in several clusters.

A cell is a row of two compressed tables, its true and its predicted clusters.
"""

from __future__ import annotations

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import inlined, kernel


@kernel
def add_clusters(offsets, codes, items, sizes):
    """Add up the items, and their weight, of each cluster, given the clusters of each cell."""
    for j in range(sizes.n.size):
        clear(sizes, items.weighted, j)
    for cell in range(offsets.size - 1):
        for k in range(offsets[cell], offsets[cell + 1]):
            add_items(sizes, items, codes[k], cell)


@kernel
def count_members(rows, low, high, counts):
    """Count the cells of each of a range of true clusters."""
    for cell in range(rows.starts.size):
        k = rows.starts[cell] + 2
        end = k + rows.codes[k - 1]
        while k < end and rows.codes[k] < rows.n_true:
            if low <= rows.codes[k] < high:
                counts[rows.codes[k]] += 1
            k += 1


@kernel
def fill_members(rows, low, high, next_place, members):
    """Write the row of each cell to the next place of each of its true clusters in a range."""
    for cell in range(rows.starts.size):
        k = rows.starts[cell] + 2
        end = k + rows.codes[k - 1]
        while k < end and rows.codes[k] < rows.n_true:
            if low <= rows.codes[k] < high:
                members[next_place[rows.codes[k]]] = rows.starts[cell]
                next_place[rows.codes[k]] += 1
            k += 1


@kernel
def count_overlaps(cells, rows, first, last, seen, counts):
    """Count the predicted clusters that each of a range of true clusters meets.

    `cells` are the bounds and the rows of the cells of each true cluster. `seen` (n_pred,) holds no number of this
    range before.
    """
    for i in range(first, last):
        found = 0
        for m in range(cells[0][i], cells[0][i + 1]):
            begin = cells[1][m] + 2
            end = begin + rows.codes[begin - 1]
            for k in range(begin + count_true(rows, begin, end), end):
                j = rows.codes[k] - rows.n_true
                found += seen[j] != i
                seen[j] = i
        counts[i] = found


@kernel
def add_overlaps(cells, rows, items, first, last, space, overlaps):
    """Fill the table of overlaps for a range of true clusters; its `bounds` and `entry_bounds` are there.

    `cells` are the bounds and the rows of the cells of each true cluster. `space` is two workspaces (n_pred,), the
    first of which holds no number of this range before.
    """
    seen, place = space
    for i in range(first, last):
        end = overlaps.bounds[i]
        for m in range(cells[0][i], cells[0][i + 1]):
            begin = cells[1][m] + 2
            cell = rows.codes[begin - 2]
            stop = begin + rows.codes[begin - 1]
            middle = begin + count_true(rows, begin, stop)
            entry = overlaps.entry_bounds[cell] + find_code(rows, begin, i) * (stop - middle)
            for k in range(middle, stop):
                j = rows.codes[k] - rows.n_true
                if seen[j] != i:
                    seen[j] = i
                    place[j] = end
                    overlaps.pred[end] = j
                    clear(overlaps.sizes, items.weighted, end)
                    end += 1
                add_items(overlaps.sizes, items, place[j], cell)
                overlaps.entries[entry] = place[j]
                entry += 1


@kernel
def add_common(cells, rows, items, sizes, first, last, met, common):
    """Add up what each of a range of true clusters shares with all the predicted clusters of each of its cells.

    `cells` are the bounds and the rows of the cells of each true cluster, `sizes` the items of each cluster, and
    `met` sums by predicted cluster that are 0 before and after. Outputs: the sizes of `common`, by cell and true
    cluster, and which clusters are the same as one of the other side.
    """
    bounds, members = cells
    for i in range(first, last):
        for m in range(bounds[i], bounds[i + 1]):
            begin, end = find_pred(rows, members[m])
            for k in range(begin, end):
                j = rows.codes[k] - rows.n_true
                met.n[j] += rows.codes[members[m] - 1]
                if items.weighted:
                    add_weight(met, items, j, rows.codes[members[m]])
        for m in range(bounds[i], bounds[i + 1]):
            begin, end = find_pred(rows, members[m])
            sums = 0, 0.0, 0.0
            for k in range(begin, end):
                sums = add_size(sums, met, rows.codes[k] - rows.n_true, items.weighted)
            place = rows.codes[members[m] - 2] + find_code(rows, members[m] + 2, i)
            common.sizes.n[place] = sums[0]
            if items.weighted:
                common.sizes.mass[place], common.sizes.rest[place] = sums[1], sums[2]
        if bounds[i] < bounds[i + 1]:  # a cluster with the same items is one of any of its cells
            begin, end = find_pred(rows, members[bounds[i]])
            for k in range(begin, end):
                j = rows.codes[k]
                if sizes.n[i] == sizes.n[j] == met.n[j - rows.n_true]:
                    common.exact[i] = common.exact[j] = True
        for m in range(bounds[i], bounds[i + 1]):
            begin, end = find_pred(rows, members[m])
            for k in range(begin, end):
                clear(met, items.weighted, rows.codes[k] - rows.n_true)


@inlined
def find_pred(rows, start):
    """Return where the predicted clusters of the row at `start` begin and end."""
    begin = start + 2
    end = begin + rows.codes[begin - 1]
    return begin + count_true(rows, begin, end), end


@inlined
def count_true(rows, begin, end):
    """Return how many true clusters a row of clusters begins with."""
    k = begin
    while k < end and rows.codes[k] < rows.n_true:
        k += 1
    return k - begin


@inlined
def find_code(rows, begin, code):
    """Return how many codes stand before one in a row."""
    k = begin
    while rows.codes[k] != code:
        k += 1
    return k - begin


@inlined
def add_size(sums, sizes, j, weighted):
    """Add one of the sizes to the sums (items, weight, what it leaves over)."""
    n, mass, rest = sums
    if weighted:
        mass, rest = add_exactly(mass, rest + sizes.rest[j], sizes.mass[j])
    return n + sizes.n[j], mass, rest


@inlined
def clear(sizes, weighted, o):
    """Begin the sums of an overlap."""
    sizes.n[o] = 0
    if weighted:
        sizes.mass[o] = 0.0
        sizes.rest[o] = 0.0


@inlined
def add_items(sizes, items, o, cell):
    """Add the items of a cell to an overlap."""
    sizes.n[o] += items.n[cell]
    if items.weighted:
        add_weight(sizes, items, o, cell)


@inlined
def add_weight(sizes, items, o, cell):
    """Add the weight of a cell to an overlap."""
    sizes.mass[o], sizes.rest[o] = add_exactly(sizes.mass[o], sizes.rest[o], items.weight[cell])


@kernel
def join_rows(start, stop, true_offsets, true_codes, pred_offsets, pred_codes, n_true, n, starts, rows):
    """Write a row for each of a range of cells, as `CellRows` describes it.

    `starts` (n_cells,) is where each has its number, and `rows` the output, four longer a cell than its clusters.
    """
    for cell in range(start, stop):
        place = starts[cell] + 2
        for k in range(true_offsets[cell], true_offsets[cell + 1]):
            rows[place] = true_codes[k]
            place += 1
        for k in range(pred_offsets[cell], pred_offsets[cell + 1]):
            rows[place] = pred_codes[k] + n_true
            place += 1
        rows[starts[cell] - 2] = true_offsets[cell]
        rows[starts[cell] - 1] = n[cell]
        rows[starts[cell]] = cell
        rows[starts[cell] + 1] = place - starts[cell] - 2
