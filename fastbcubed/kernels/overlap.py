"""Overlaps: what each true cluster shares with each predicted one, where items may be in several clusters.

A cell is a row of two compressed tables, its true and its predicted clusters.
"""

from __future__ import annotations

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import inlined, kernel


@kernel
def add_clusters(offsets, codes, items, first, last, sizes):
    """Add up the items, and their weight, of a range of clusters, given the cells of each."""
    for j in range(first, last):
        count = 0
        total = 0.0
        error = 0.0
        for k in range(offsets[j], offsets[j + 1]):
            count += items.n[codes[k]]
            if items.weighted:
                total, error = add_exactly(total, error, items.weight[codes[k]])
        sizes.n[j] = count
        if items.weighted:
            sizes.mass[j] = total
            sizes.rest[j] = error


@kernel
def count_overlaps(cells, prediction, first, last, seen, counts):
    """Count the predicted clusters that each of a range of true clusters meets.

    `cells` and `prediction` are compressed rows: the cells of each true cluster, the predicted clusters of each
    cell. `seen` (n_pred,) holds no number of this range before.
    """
    for i in range(first, last):
        found = 0
        for k in range(cells[0][i], cells[0][i + 1]):
            cell = cells[1][k]
            for m in range(prediction[0][cell], prediction[0][cell + 1]):
                j = prediction[1][m]
                found += seen[j] != i
                seen[j] = i
        counts[i] = found


@kernel
def add_overlaps(cells, truth, prediction, items, first, last, space, overlaps):
    """Fill the table of overlaps for a range of true clusters; its `bounds` and `entry_bounds` are there.

    `cells`, `truth` and `prediction` are compressed rows: the cells of each true cluster, the clusters of each
    cell. `space` is two workspaces (n_pred,), the first of which holds no number of this range before.
    """
    true_offsets, true_codes = truth
    pred_offsets, pred_codes = prediction
    seen, place = space
    for i in range(first, last):
        end = overlaps.bounds[i]
        for k in range(cells[0][i], cells[0][i + 1]):
            cell = cells[1][k]
            begin = pred_offsets[cell]
            width = pred_offsets[cell + 1] - begin
            row = 0
            while true_codes[true_offsets[cell] + row] != i:
                row += 1
            entry = overlaps.entry_bounds[cell] + row * width
            for m in range(width):
                j = pred_codes[begin + m]
                if seen[j] != i:
                    seen[j] = i
                    place[j] = end
                    overlaps.pred[end] = j
                    clear(overlaps.sizes, items.weighted, end)
                    end += 1
                add_items(overlaps.sizes, items, place[j], cell)
                overlaps.entries[entry + m] = place[j]


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
        sizes.mass[o], sizes.rest[o] = add_exactly(sizes.mass[o], sizes.rest[o], items.weight[cell])


@kernel
def join_rows(true_offsets, true_codes, pred_offsets, pred_codes, n_true, starts, rows):
    """Write a row for each cell: its number, how many clusters, the true ones, the others plus `n_true`.

    `starts` (n_cells,) is where each begins, and `rows` the output, two longer a cell than its clusters.
    """
    for cell in range(starts.size):
        place = starts[cell] + 2
        for k in range(true_offsets[cell], true_offsets[cell + 1]):
            rows[place] = true_codes[k]
            place += 1
        for k in range(pred_offsets[cell], pred_offsets[cell + 1]):
            rows[place] = pred_codes[k] + n_true
            place += 1
        rows[starts[cell]] = cell
        rows[starts[cell] + 1] = place - starts[cell] - 2


@inlined
def is_one_of_several(codes, n_true, begin, k, end):
    """Tell whether the cluster at k, in a row from `begin` to `end`, is not the only one of its side there."""
    before = k > begin and (codes[k - 1] < n_true) == (codes[k] < n_true)
    return before or (k + 1 < end and (codes[k] < n_true) == (codes[k + 1] < n_true))


@kernel
def count_several(starts, codes, n_true, counts):
    """Count, by cluster, the cells that are in others of its side, too, given the rows of the cells."""
    for cell in range(starts.size):
        begin = starts[cell] + 2
        end = begin + codes[begin - 1]
        for k in range(begin, end):
            if is_one_of_several(codes, n_true, begin, k, end):
                counts[codes[k]] += 1


@kernel
def fill_several(starts, codes, n_true, next_place, out):
    """Write the rows of the cells that `count_several` counts, by cluster."""
    for cell in range(starts.size):
        begin = starts[cell] + 2
        end = begin + codes[begin - 1]
        for k in range(begin, end):
            if is_one_of_several(codes, n_true, begin, k, end):
                place = next_place[codes[k]]
                next_place[codes[k]] = place + 1
                out[place] = starts[cell]


@kernel
def count_visits(rows, bounds, visits):
    """Count, by cluster, the mates that `score_cells` will visit, and return their number.

    `bounds` (n_clusters + 1,) is where the cells of each cluster begin that are in others of its side. A cell
    visits those of all its clusters but the one of each side that has most.
    """
    codes = rows.codes
    total = 0
    for cell in range(rows.starts.size):
        begin = rows.starts[cell] + 2
        end = begin + codes[begin - 1]
        spared = find_largest(rows, bounds, begin, end)
        for k in range(begin, end):
            if k != spared[0] and k != spared[1]:
                several = bounds[codes[k] + 1] - bounds[codes[k]]
                visits[codes[k]] += several
                total += several
    return total


@inlined
def find_largest(rows, bounds, begin, end):
    """Return where in the row of a cell the true and the predicted cluster stand that have most cells to visit."""
    most_true = most_pred = spared_true = spared_pred = -1
    for k in range(begin, end):
        size = bounds[rows.codes[k] + 1] - bounds[rows.codes[k]]
        if rows.codes[k] < rows.n_true:
            if size > most_true:
                most_true = size
                spared_true = k
        elif size > most_pred:
            most_pred = size
            spared_pred = k
    return spared_true, spared_pred
