"""Memberships of items in several clusters: each item's set of clusters, and cells of items with equal sets."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import table_size
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.join import row_of
from fastbcubed.kernels.partition import fetch, mix

#: Number of rows by which memory accesses are prefetched.
AHEAD = 32


@kernel
def count_codes(codes, counts):
    """Count the occurrences of each code, ignoring negative ones. Shapes: (n,), (n_codes,)."""
    for i in range(codes.size):
        if codes[i] >= 0:
            counts[codes[i]] += 1


@kernel
def fill_rows(rows, codes, next_place, out):
    """Write each code to the next place of its row; skip negative rows. Shapes: (n,), (n,), (n_rows,), (n_kept,)."""
    for i in range(rows.size):
        if rows[i] >= 0:
            place = next_place[rows[i]]
            next_place[rows[i]] = place + 1
            out[place] = codes[i]


@inlined
def sort_codes(codes, first, last):
    """Sort the codes first..last in place by Shell's sort, which is not quadratic in their number."""
    gap = 1
    while 9 * gap < last - first:
        gap = 3 * gap + 1
    while gap:
        for i in range(first + gap, last):
            code = codes[at(i)]
            j = i
            while j >= first + gap and codes[at(j - gap)] > code:
                codes[at(j)] = codes[at(j - gap)]
                j -= gap
            codes[at(j)] = code
        gap //= 3


@kernel
def sort_rows(offsets, codes):
    """Sort the codes of each row in place. Shapes: (n_rows + 1,), (n,)."""
    for row in range(offsets.size - 1):
        first = offsets[row]
        last = offsets[row + 1]
        if last - first > 1:
            sort_codes(codes, first, last)


@kernel
def mark_repeats(offsets, codes, keep, counts):
    """Mark the first occurrence of each code in each sorted row, and count the marked codes of each row."""
    for row in range(offsets.size - 1):
        first = offsets[row]
        for i in range(first, offsets[row + 1]):
            keep[i] = i == first or codes[i] != codes[i - 1]
            counts[row] += keep[i]


@kernel
def count_taken(offsets, rows, start, stop, counts):
    """Write the number of codes of each selected row in a block. Shapes: (n_rows + 1,), (k,), (), (), (k,)."""
    for k in range(start, stop):
        if k + AHEAD < stop:
            fetch(offsets, rows[at(k + AHEAD)])
        counts[at(k)] = offsets[at(rows[at(k)] + 1)] - offsets[at(rows[at(k)])]


@kernel
def take_codes(offsets, codes, rows, start, stop, new_offsets, out):
    """Copy the codes of the selected rows in a block, in the order of selection."""
    for k in range(start, stop):
        if k + 2 * AHEAD < stop:
            fetch(offsets, rows[at(k + 2 * AHEAD)])
        if k + AHEAD < stop:
            fetch(codes, offsets[at(rows[at(k + AHEAD)])])
        place = new_offsets[at(k)]
        for i in range(offsets[at(rows[at(k)])], offsets[at(rows[at(k)] + 1)]):
            out[at(place)] = codes[at(i)]
            place += 1


@kernel
def find_unsorted(keys, start, stop):
    """Return whether any key of a block is smaller than its predecessor."""
    for i in range(max(start, 1), stop):
        if keys[i] < keys[i - 1]:
            return True
    return False


@kernel
def number_small(keys, lowest, numbers, codes, firsts):
    """Assign numbers to keys from a small range by first appearance; return the number of distinct keys.

    Shapes: (n,), (), (range,) initially -1, (n,), (n,).
    """
    n = 0
    for i in range(keys.size):
        if i + AHEAD < keys.size:
            fetch(numbers, keys[at(i + AHEAD)] - lowest)
        k = keys[at(i)] - lowest
        code = numbers[at(k)]
        if code < 0:
            code = n
            numbers[at(k)] = code
            firsts[at(n)] = i
            n += 1
        codes[at(i)] = code
    return n


@kernel
def number_parts(keys, rows, bounds, part_from, part_to, slots, first):
    """Write, for every row of several parts, the first row with the same key.

    Shapes: (n,), (n,), (n_parts + 1,), (), (), (power of two,), (n,). Rows ascend within a part.
    """
    for part in range(part_from, part_to):
        begin = bounds[part]
        n = bounds[part + 1] - begin
        size = 1024
        while 3 * size < 4 * n:
            size *= 2
        table = slots[:size] if size <= slots.size else np.empty(size, np.int32)
        table[:] = -1
        mask = size - 1
        for i in range(n):
            key = keys[begin + i]
            s = key & mask
            while table[s] >= 0 and keys[begin + table[s]] != key:
                s = (s + 1) & mask
            if table[s] < 0:
                table[s] = i
            first[rows[begin + i]] = rows[begin + table[s]]


@kernel
def find_firsts(first, start, stop, code, firsts):
    """Assign numbers, starting at `code`, to the rows of a block that are the first with their key; return how many.

    Each such row is replaced in `first` by -1 - its number; if `firsts` is None, the rows are only counted.
    """
    n = 0
    for i in range(start, stop):
        if first[i] == i:
            if firsts is not None:
                firsts[code + n] = i
                first[i] = -1 - (code + n)
            n += 1
    return n


@kernel
def find_others(first, start, stop, codes):
    """Write the number of each row's key, for a block of rows, after `find_firsts` has numbered all keys."""
    for i in range(start, stop):
        row = first[i]
        codes[i] = -1 - row if row < 0 else -1 - first[row]


#: Marks of rows: REPEATED if the item had an earlier row, IN_NONE if it is in no cluster, IN_ONE + code if it is in one
#: cluster, and IN_SEVERAL - position of its list of codes if it is in several.
REPEATED, IN_NONE, IN_ONE, IN_SEVERAL = -1, 0, 1, -2
#: Number of sets by which memory accesses are prefetched.
SETS_AHEAD = 16


@kernel
def gather_parts(keys, rows, codes, bounds, part_from, part_to, weight, space, marks):
    """Mark the first row of each item of several parts with its clusters; count repeated and reweighted rows.

    `codes` are the clusters of the rows, -1 for none. Starting at the first part, they are overwritten by the lists
    of items in several clusters: ascending codes, the last one stored as -1 - code. Rows ascend within a part; `rows`
    may be None if they are in order; `weight` is empty if items have no weight. `space` is for a hash table, the item
    of each row of a part, the end of each item, and the rows and clusters sorted by item. Returns the numbers of rows
    that repeat a cluster of their item, and of rows with another weight than the item's first.
    """
    slots, item_of, ends, order, taken = space
    place, repeated, reweighted = bounds[part_from], 0, 0
    for part in range(part_from, part_to):
        begin, stop = bounds[part], bounds[part + 1]
        n_items = find_items(keys, begin, stop, rows is not None, slots, item_of, ends)
        sort_by_item(codes, begin, stop, item_of, ends[: n_items + 1], order, taken)
        first = 0
        for e in range(n_items):
            last = ends[at(e)]
            place, item_of[at(e)], again = write_set(taken, first, last, codes, place)
            repeated += again
            first = last
        write_marks(rows, begin, ends[:n_items], order, item_of, marks)
        if weight.size:
            reweighted += count_reweighted(rows, begin, ends[:n_items], order, weight)
    return repeated, reweighted


@kernel
def find_items(keys, begin, stop, mixed, slots, item_of, ends):
    """Assign numbers to the items of a part by their first rows; return their number.

    The number of rows of item e is written to `ends[e + 1]`.
    """
    size = table_size(stop - begin)
    table = slots[:size] if size <= slots.size else np.empty(size, slots.dtype)
    table[:] = -1
    n_items = 0
    ends[0] = 0
    for i in range(stop - begin):
        key = keys[at(begin + i)]
        s = (key if mixed else mix(key)) & (size - 1)
        while table[at(s)] >= 0 and keys[at(begin + table[at(s)])] != key:
            s = (s + 1) & (size - 1)
        if table[at(s)] < 0:
            table[at(s)] = i
            item_of[at(i)] = n_items
            n_items += 1
            ends[at(n_items)] = 0
        else:
            item_of[at(i)] = item_of[at(table[at(s)])]
        ends[at(item_of[at(i)] + 1)] += 1
    return n_items


@inlined
def sort_by_item(codes, begin, stop, item_of, ends, order, taken):
    """Sort the rows of a part, and their clusters, stably by item; write the end of each item's rows to `ends`."""
    for e in range(1, ends.size):
        ends[at(e)] += ends[at(e - 1)]
    for i in range(stop - begin):
        e = item_of[at(i)]
        place = ends[at(e)]
        ends[at(e)] = place + 1
        order[at(place)] = i
        taken[at(place)] = codes[at(begin + i)]


@inlined
def write_set(taken, first, last, codes, place):
    """Sort the clusters of an item in `taken`, and write the distinct ones to `codes` if there are several.

    Returns the next free place in `codes`, the mark of the item, and the number of rows that repeat a cluster.
    """
    if last - first == 1:
        return place, IN_ONE + taken[at(first)], 0  # for code -1, no cluster, this is IN_NONE
    sort_codes(taken, first, last)
    while first < last and taken[at(first)] < 0:
        first += 1
    if first == last:
        return place, IN_NONE, 0
    start = place
    for i in range(first, last):
        if i + 1 == last or taken[at(i + 1)] != taken[at(i)]:
            codes[at(place)] = taken[at(i)]
            place += 1
    again = last - first - (place - start)
    if place - start == 1:
        return start, IN_ONE + taken[at(first)], again
    codes[at(place - 1)] = -1 - codes[at(place - 1)]
    return place, IN_SEVERAL - start, again


@inlined
def write_marks(rows, begin, ends, order, found, marks):
    """Write the mark of each item of a part at its first row; a separate loop, because these accesses are scattered."""
    first = 0
    for e in range(ends.size):
        marks[at(row_of(rows, begin + order[at(first)]))] = found[at(e)]
        first = ends[at(e)]


@kernel
def count_reweighted(rows, begin, ends, order, weight):
    """Count the rows of a part whose weight differs from that of the first row of their item."""
    found = first = 0
    for e in range(ends.size):
        own = weight[at(row_of(rows, begin + order[at(first)]))]
        for i in range(first + 1, ends[at(e)]):
            found += differ(own, weight[at(row_of(rows, begin + order[at(i)]))])
        first = ends[at(e)]
    return found


@inlined
def differ(a, b):
    """Return whether two weights differ; NaN equals NaN."""
    return a != b and not (np.isnan(a) and np.isnan(b))


@kernel
def count_marks(marks, start, stop):
    """Return the number of items whose first row is in a block, and how many of these are in several clusters."""
    n_items = n_several = 0
    for row in range(start, stop):
        n_items += marks[at(row)] != REPEATED
        n_several += marks[at(row)] <= IN_SEVERAL
    return n_items, n_several


@kernel
def list_items(marks, start, stop, item, k, firsts, codes, several, starts):
    """List the items whose first row is in a block: that row, and the code of the item's cluster, -1 for none.

    `item` and `k` are the numbers of the block's first item and of its first item in several clusters. Items in
    several clusters are also listed in `several`, and the positions of their codes in `starts`.
    """
    for row in range(start, stop):
        mark = marks[at(row)]
        if mark != REPEATED:
            firsts[at(item)] = row
            codes[at(item)] = max(mark, IN_NONE) - IN_ONE
            if mark <= IN_SEVERAL:
                several[at(k)] = item
                starts[at(k)] = IN_SEVERAL - mark
                k += 1
            item += 1


@kernel
def hash_sets(codes, starts, start, stop, seed, out):
    """Fingerprint a block of sets; the codes of a set begin at its entry in `starts` and end with a negative code."""
    for k in range(start, stop):
        if k + SETS_AHEAD < stop:
            fetch(codes, starts[at(k + SETS_AHEAD)])
        h, i = mix(seed), starts[at(k)]
        while codes[at(i)] >= 0:
            h = mix(h ^ (np.int64(codes[at(i)]) + 1))
            i += 1
        out[at(k)] = mix(h ^ -np.int64(codes[at(i)]))


@kernel
def is_unequal(codes, starts, firsts, numbers, start, stop):
    """Return whether any set of a block differs from the first set with the same number.

    `numbers` (n_sets,) are the numbers to verify, `firsts` the first set of each number.
    """
    for k in range(start, stop):
        if k + SETS_AHEAD < stop:
            fetch(codes, starts[at(firsts[at(numbers[at(k + SETS_AHEAD)])])])
        a, b = starts[at(k)], starts[at(firsts[at(numbers[at(k)])])]
        while codes[at(a)] == codes[at(b)] and codes[at(a)] >= 0:
            a += 1
            b += 1
        if codes[at(a)] != codes[at(b)]:
            return True
    return False


@kernel
def count_sets(codes, starts, counts):
    """Count the codes of each set."""
    for k in range(starts.size):
        i = starts[at(k)]
        while codes[at(i)] >= 0:
            i += 1
        counts[at(k)] = i + 1 - starts[at(k)]


@kernel
def take_sets(codes, starts, offsets, out):
    """Copy the codes of each set to its offset, restoring the last code of each, which is stored as -1 - code."""
    for k in range(starts.size):
        last = offsets[at(k + 1)] - 1
        for i in range(offsets[at(k)], last):
            out[at(i)] = codes[at(starts[at(k)] + i - offsets[at(k)])]
        out[at(last)] = -1 - codes[at(starts[at(k)] + last - offsets[at(k)])]


#: Maximum number of items of a true set whose cells are found by comparison instead of a hash table.
FEW_CELLS = 16


@kernel
def count_firsts(offsets, codes, counts):
    """Count the sets by their first cluster. Shapes: (n_sets + 1,), (n,), (n_clusters,)."""
    for k in range(offsets.size - 1):
        counts[at(codes[at(offsets[at(k)])])] += 1


@kernel
def rank_sets(offsets, codes, next_rank, ranks, sets):
    """Rank sets by their first cluster, ties by number; `sets` receives the sets in order of rank."""
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
    """Write the rank of each item's true set for a block of items, -1 if a side lacks the item; count ranks by part.

    `ranks` are those of the true sets; the ranks of a part differ only in their last `shift` bits.
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
    """Write (rank, predicted set, item) of each item of a block to its part, in item order; skip negative ranks."""
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
    """Assign numbers to the cells of several parts, i.e. groups of items with equal true and predicted sets.

    Cells are numbered from 0 by true set, then by first item; their number is returned. The cell number replaces the
    rank in each record. `cells` receives (rank, predicted set, number of items) of each cell, starting at the first
    part. `space` is for the beginning of each rank of a part, the sorted order of its records, and a hash table.
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
            if last - first > FEW_CELLS:
                n = group_many(records, begin, order, (first, last), base, n, low + rank, slots, cells)
            elif last > first:
                n = group_few(records, begin, order, (first, last), base, n, low + rank, cells)
            first = last
    return n


@inlined
def sort_part(records, begin, stop, low, ends, order):
    """Sort the records of a part stably by rank: write their order, and the end of each rank."""
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
    """Assign numbers, starting at n, to the cells of a true set with few items; return the next number."""
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
    """Assign numbers, starting at n, to the cells of a true set with many items; return the next number."""
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
    """Add an item to cell `found`, which is created if it equals n; return the number of cells."""
    if found < n:
        cells[at(base + found), 2] += 1
        return n
    cells[at(base + n), 0] = rank
    cells[at(base + n), 1] = other
    cells[at(base + n), 2] = 1
    return n + 1


@kernel
def number_items(records, base, cell_of):
    """Write the cell number of each item of `records`, whose cells are numbered from `base`."""
    for r in range(len(records)):
        if r + AHEAD < len(records):
            fetch(cell_of, records[at(r + AHEAD), 2])
        cell_of[at(records[at(r), 2])] = base + records[at(r), 0]


@kernel
def list_cells(cells, sets, true, pred, n):
    """Write the true set, the predicted set and the number of items of each cell; `sets` are the true sets by rank."""
    for cell in range(len(cells)):
        true[at(cell)] = sets[at(cells[at(cell), 0])]
        pred[at(cell)] = cells[at(cell), 1]
        n[at(cell)] = cells[at(cell), 2]


@kernel
def fill_cells(start, stop, n, weight, offsets, parts, outer, cells):
    """Write the records of the cells start..stop: items, weight, and fp and fn as in `Cover.proportions`.

    `offsets` are the beginnings of each cell's true and predicted clusters. Shapes: `n`, `weight` (n_cells,), None if
    items have no weight, `parts` (n_cells, 4).
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
