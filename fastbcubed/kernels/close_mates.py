"""Close mates: cells with which a cell shares two clusters of a side or more, found without looking at others.

Cells that are in few clusters of a side are found by pairs of clusters. One that is in many has too many pairs:
the cells of its clusters of that side, but the one with most such cells, are counted.
"""

from __future__ import annotations

from fastbcubed.kernels.cells import table_size
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.overlap import count_true

#: A list of cells is gone through if it has at most so many times the cells that are looked for in it.
LONG = 4


@inlined
def pairs_of(size, narrow):
    """Return how many pairs of clusters are listed for a cell with so many on a side."""
    return size * (size - 1) // 2 if size <= narrow else 0


@inlined
def side_of(rows, begin, end, side):
    """Return where the true clusters (side 0) or the predicted ones (side 1) of a row begin and end."""
    middle = begin + count_true(rows, begin, end)
    return (begin, middle) if side == 0 else (middle, end)


@kernel
def count_pairs(start, stop, rows, narrow, counts):
    """Count the pairs of clusters of each of a range of cells; return whether one has more than `narrow` on a side."""
    wide = False
    for cell in range(start, stop):
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        c = count_true(rows, begin, end)
        g = end - begin - c
        counts[cell] = pairs_of(c, narrow) + pairs_of(g, narrow)
        wide |= max(c, g) > narrow
    return wide


@kernel
def list_pairs(start, stop, rows, narrow, n_clusters, bounds, keys):
    """Write a key for every pair of clusters of a side, cell by cell, in the order of the row."""
    codes = rows.codes
    for cell in range(start, stop):
        begin = rows.starts[cell] + 2
        end = begin + codes[begin - 1]
        v = bounds[cell]
        if v == bounds[cell + 1]:
            continue
        for side in range(2):
            low, high = side_of(rows, begin, end, side)
            if high - low <= narrow:
                for a in range(low, high - 1):
                    for b in range(a + 1, high):
                        keys[v] = codes[a] * n_clusters + codes[b]
                        v += 1


@kernel
def find_repeats(keys, rows, bounds, part_from, part_to, slots, again):
    """List the rows whose key comes twice or more in one of several parts; return how many, and of how many keys.

    `keys` and `rows` are overwritten from where the first part begins: by the number of the key, and by the row.
    `slots` is room for a table, and `again` (rows of the largest part, 2) for the first with each key, and counts.
    """
    n_rows, n_keys = bounds[part_from], 0
    for part in range(part_from, part_to):
        begin = bounds[part]
        n = bounds[part + 1] - begin
        size = table_size(n)
        table = slots[:size]
        table[:] = -1
        for i in range(n):
            key = keys[at(begin + i)]
            s = key & (size - 1)
            while table[at(s)] >= 0 and keys[at(begin + table[at(s)])] != key:
                s = (s + 1) & (size - 1)
            if table[at(s)] < 0:
                table[at(s)] = i
                again[at(i), 1] = 0
            again[at(i), 0] = table[at(s)]
            again[at(table[at(s)]), 1] += 1
        for i in range(n):
            first = again[at(i), 0]
            if again[at(first), 1] > 1:
                if first == i:
                    again[at(i), 0] = n_keys
                    n_keys += 1
                keys[at(n_rows)] = again[at(first), 0]
                rows[at(n_rows)] = rows[at(begin + i)]
                n_rows += 1
    return n_rows - bounds[part_from], n_keys


@kernel
def number_repeats(numbers, rows, base, groups, sizes):
    """Write the group of each row that `find_repeats` lists, whose numbers begin at `base`, and count these."""
    for i in range(rows.size):
        group = base + numbers[i]
        groups[rows[i]] = group
        sizes[group] += 1


@kernel
def fill_groups(starts, bounds, groups, next_place, members):
    """Write the row of each cell to the next place of each of its groups; -1 is none."""
    for cell in range(starts.size):
        for v in range(bounds[cell], bounds[cell + 1]):
            if groups[v] >= 0:
                members[next_place[groups[v]]] = starts[cell]
                next_place[groups[v]] += 1


@kernel
def count_several(rows, narrow, wide_counts, counts):
    """Count, by cluster, the cells that are in others of its side, too: those in more than `narrow`, and all."""
    for cell in range(rows.starts.size):
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        for side in range(2):
            low, high = side_of(rows, begin, end, side)
            if high - low > 1:
                for k in range(low, high):
                    counts[rows.codes[k]] += 1
                    wide_counts[rows.codes[k]] += high - low > narrow


@kernel
def fill_several(rows, narrow, next_wide, next_place, out):
    """Write the cells that `count_several` counts, by cluster; those in more than `narrow` first."""
    for cell in range(rows.starts.size):
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        for side in range(2):
            low, high = side_of(rows, begin, end, side)
            if high - low > 1:
                place = next_wide if high - low > narrow else next_place
                for k in range(low, high):
                    out[place[rows.codes[k]]] = cell
                    place[rows.codes[k]] += 1


@inlined
def listed(index, j, is_narrow):
    """Return where the cells of a cluster begin and end that a cell visits: one in few clusters, those in many."""
    return index.bounds[j], index.ends[j] if is_narrow else index.bounds[j + 1]


@inlined
def find_largest(rows, index, low, high):
    """Return where in a side of a row the cluster stands that has most cells to visit."""
    most = spared = -1
    for k in range(low, high):
        first, last = listed(index, rows.codes[k], high - low <= index.narrow)
        if last - first > most:
            most = last - first
            spared = k
    return spared


@kernel
def count_visits(rows, index, visits):
    """Count the cells that `find_mates` visits: in all, for one cell at most, and in `visits` by cluster.

    A visit through a pair of clusters counts for both.
    """
    total = most = 0
    for cell in range(rows.starts.size):
        if not may_have(cell, index):
            continue
        v = index.pair_bounds[cell]
        mine = 0
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        for side in range(2):
            low, high = side_of(rows, begin, end, side)
            if 1 < high - low <= index.narrow:
                for a in range(low, high - 1):
                    for b in range(a + 1, high):
                        group = index.groups[v]
                        v += 1
                        if group >= 0:
                            size = index.group_bounds[group + 1] - index.group_bounds[group] - 1
                            visits[rows.codes[a]] += size
                            visits[rows.codes[b]] += size
                            mine += size
            if index.wide and high - low > 1:
                mine += count_listed(rows, index, low, high, visits)
        total += mine
        most = max(most, mine)
    return total, most


@inlined
def count_listed(rows, index, low, high, visits):
    """Count the cells that are visited in the clusters of a side of a row, all but the largest."""
    spared = find_largest(rows, index, low, high)
    mine = 0
    for k in range(low, high):
        if k != spared:
            first, last = listed(index, rows.codes[k], high - low <= index.narrow)
            visits[rows.codes[k]] += last - first
            mine += last - first
    return mine


@inlined
def may_have(cell, index):
    """Tell whether a cell may have close mates; most have none, and need no call."""
    found = index.wide
    for v in range(index.pair_bounds[cell], index.pair_bounds[cell + 1]):
        found |= index.groups[v] >= 0
    return found


@kernel
def find_mates(cell, rows, index, found, met):
    """List the close mates of a cell, each once, and return how many there are.

    One that shares two true clusters is met on that side, any other on the predicted side: in the first common pair
    if both cells are in few clusters there, else by counting. Workspace: `met` (n_cells,), 0 before and after, empty
    if no cell is in many. Output: `found` (most, 3), its row, and how many true and predicted clusters both share.
    """
    n = 0
    v = index.pair_bounds[cell]
    begin = rows.starts[cell] + 2
    end = begin + rows.codes[begin - 1]
    for side in range(2):
        low, high = side_of(rows, begin, end, side)
        if 1 < high - low <= index.narrow:
            for a in range(low, high - 1):
                for b in range(a + 1, high):
                    group = index.groups[v]
                    v += 1
                    if group >= 0:
                        n = meet_in_pair((begin, end), side, (a, b), group, rows, index, found, n)
        if index.wide and high - low > 1:
            n = meet_in_clusters(cell, side, low, high, rows, index, found, met, n)
    return n


@inlined
def meet_in_pair(row, side, pair, group, rows, index, found, n):
    """List the mates that a cell meets first in a pair of its clusters."""
    for m in range(index.group_bounds[group], index.group_bounds[group + 1]):
        other = index.members[m]
        if other + 2 != row[0]:
            c, g, true, pred = compare(rows, row, other + 2)
            if (true == pair) if side == 0 else (c < 2 and pred == pair):
                found[n, 0], found[n, 1], found[n, 2] = other, c, g
                n += 1
    return n


@kernel
def meet_in_clusters(cell, side, low, high, rows, index, found, met, n):
    """List the mates that a cell shares two clusters of a side with or more, all of which are in the lists of clusters.

    They are counted cluster by cluster, but in the largest, which is left out or looked for among those met once.
    """
    begin = rows.starts[cell] + 2
    end = begin + rows.codes[begin - 1]
    is_narrow = high - low <= index.narrow
    spared = find_largest(rows, index, low, high)
    stop = n
    for k in range(low, high):
        if k != spared:
            first, last = listed(index, rows.codes[k], is_narrow)
            for m in range(first, last):
                other = index.several[m]
                found[stop, 0] = other
                stop += met[other] == 0
                met[other] = min(met[other] + 1, 2)
    meet_in_largest(rows, index, rows.codes[spared], is_narrow, found[n:stop, 0], met)
    for m in range(n, stop):
        other = found[m, 0]
        close = met[other] == 2 and other != cell
        met[other] = 0
        if close:
            row = rows.starts[other]
            c, g, _, _ = compare(rows, (begin, end), row + 2)
            if side == 0 or c < 2:
                found[n, 0], found[n, 1], found[n, 2] = row, c, g
                n += 1
    return n


@kernel
def meet_in_largest(rows, index, code, is_narrow, others, met):
    """Count cells that were met once again if they are in this cluster: by its list or, if that is long, their rows."""
    first, last = listed(index, code, is_narrow)
    if last - first <= LONG * others.size:
        for m in range(first, last):
            other = index.several[m]
            met[other] += met[other] == 1
        return
    for m in range(others.size):
        other = others[m]
        if met[other] == 1:
            k = rows.starts[other] + 2
            end = k + rows.codes[k - 1]
            while k < end and rows.codes[k] < code:
                k += 1
            met[other] += k < end and rows.codes[k] == code


@inlined
def compare(rows, row, low):
    """Return how many true and predicted clusters two cells share, and where in `row` the first two of each stand.

    The row of one goes from `row[0]` to `row[1]`, that of the other begins at `low`.
    """
    codes, n_true = rows.codes, rows.n_true
    a, end = row
    b, high = low, low + codes[low - 1]
    c = g = 0
    true = pred = -1, -1
    while a < end and b < high:
        x = codes[a]
        y = codes[b]
        if x == y:
            if x < n_true:
                true = (a if c == 0 else true[0]), (a if c == 1 else true[1])
                c += 1
            else:
                pred = (a if g == 0 else pred[0]), (a if g == 1 else pred[1])
                g += 1
        a += x <= y
        b += y <= x
    return c, g, true, pred


@inlined
def mark_common(rows, begin, end, low, at_true, at_pred):
    """Write where in a row the clusters stand that it shares with the row at `low`: true ones, predicted ones."""
    codes, n_true = rows.codes, rows.n_true
    high = low + codes[low - 1]
    c = g = 0
    a, b = begin, low
    while a < end and b < high:
        x = codes[a]
        y = codes[b]
        if x == y:
            if x < n_true:
                at_true[c] = a - begin
                c += 1
            else:
                at_pred[g] = a - begin
                g += 1
        a += x <= y
        b += y <= x
