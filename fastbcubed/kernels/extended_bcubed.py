"""Pairs of cells of overlapping clusterings, for Extended BCubed: shared clusters, losses and similarities.

The mates of a cell are the cells that share a cluster with it; close mates share two or more on one side. A side is 0
for true clusters and 1 for predicted ones. `narrow` is the largest number of clusters on a side whose pairs are
listed; a cell with more clusters is handled by counting.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import table_size
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.overlap import AHEAD, add_items, add_others, add_size, clear, count_true
from fastbcubed.kernels.partition import add_exactly, fetch

#: A list of cells is scanned if it has at most this many times as many entries as there are cells to look up in it.
LONG = 4


@inlined
def pairs_of(size, narrow):
    """Return the number of pairs of clusters listed for a cell with `size` clusters on a side; none above `narrow`."""
    return size * (size - 1) // 2 if size <= narrow else 0


@inlined
def side_of(rows, begin, end, side):
    """Return where the true (side 0) or predicted clusters (side 1) of a cell's row begin and end."""
    middle = begin + count_true(rows, begin, end)
    return (begin, middle) if side == 0 else (middle, end)


@kernel
def count_pairs(start, stop, rows, narrow, counts):
    """Count the listed pairs of clusters of the cells start..stop; return the most clusters of a cell on a side."""
    longest = 0
    for cell in range(start, stop):
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        c = count_true(rows, begin, end)
        g = end - begin - c
        counts[cell] = pairs_of(c, narrow) + pairs_of(g, narrow)
        longest = max(longest, c, g)
    return longest


@kernel
def list_pairs(start, stop, rows, narrow, n_clusters, bounds, keys):
    """Write a key for each listed pair of clusters on the same side, cell by cell in row order."""
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
    """List the rows whose key occurs more than once in its part; return the numbers of rows and of keys.

    `keys` and `rows` of several parts are overwritten from the first part's beginning: by the number of the key, and
    by the row. `slots` is space for a hash table; `again` (rows of the largest part, 2), for each key's first row and
    count.
    """
    # Idea: count the rows of each key in a hash table that fits the cache, then list the rows of keys counted
    # twice or more. Rows stay in order, which sorting by key would cost twice: there and back.
    # Holds: outputs overwrite inputs, but never ahead of the row that is read (n_rows <= begin + i).
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
    """Write the group (`base` plus key number) of each row listed by `find_repeats`, and count rows by group."""
    for i in range(rows.size):
        group = base + numbers[i]
        groups[rows[i]] = group
        sizes[group] += 1


@kernel
def fill_groups(starts, bounds, groups, next_place, members):
    """Add each cell's row start to the members of each of its groups; group -1 is none."""
    for cell in range(starts.size):
        for v in range(bounds[cell], bounds[cell + 1]):
            if groups[v] >= 0:
                members[next_place[groups[v]]] = starts[cell]
                next_place[groups[v]] += 1


@inlined
def may_be_close(rows, begin, end):
    """Return whether a cell has two or more clusters on a side, as only such cells have close mates."""
    c = count_true(rows, begin, end)
    return max(c, end - begin - c) > 1


@kernel
def count_several(rows, narrow, wide_counts, counts):
    """Count the cells with several clusters on a side, by cluster.

    `counts` takes all of them, `wide_counts` those with more than `narrow` clusters on the side of the cluster counted.
    """
    for cell in range(rows.starts.size):
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        if may_be_close(rows, begin, end):
            for side in range(2):
                low, high = side_of(rows, begin, end, side)
                for k in range(low, high):
                    counts[rows.codes[k]] += 1
                    wide_counts[rows.codes[k]] += high - low > narrow


@kernel
def fill_several(rows, narrow, next_wide, next_place, out):
    """List the cells counted by `count_several`, cluster by cluster, those with more than `narrow` clusters first."""
    for cell in range(rows.starts.size):
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        if may_be_close(rows, begin, end):
            for side in range(2):
                low, high = side_of(rows, begin, end, side)
                place = next_wide if high - low > narrow else next_place
                for k in range(low, high):
                    out[place[rows.codes[k]]] = cell
                    place[rows.codes[k]] += 1


@inlined
def listed(index, j, every):
    """Return where the cells to visit in cluster `j` begin and end: all if `every`, else those in many clusters."""
    return index.bounds[j], index.bounds[j + 1] if every else index.ends[j]


@inlined
def find_largest(rows, index, span, every):
    """Return the position in a row of the cluster with the most cells to visit, among the positions of `span`."""
    most = spared = -1
    for k in range(span[0], span[1]):
        first, last = listed(index, rows.codes[k], every)
        if last - first > most:
            most = last - first
            spared = k
    return spared


@inlined
def count_listed(rows, index, low, high):
    """Return the total number of cells listed for the clusters at positions low..high of a row."""
    total = 0
    for k in range(low, high):
        total += index.bounds[rows.codes[k] + 1] - index.bounds[rows.codes[k]]
    return total


@inlined
def visits_every(rows, index, begin, end):
    """Return whether a cell visits all cells listed for its true clusters, and for its predicted clusters.

    It does on a side where it has many clusters. It then does so on the other side, too, if fewer cells are listed
    there, so that all clusters shared with a mate are counted.
    """
    middle = begin + count_true(rows, begin, end)
    true, pred = middle - begin > index.narrow, end - middle > index.narrow
    if true != pred:
        of_true = count_listed(rows, index, begin, middle)
        of_pred = count_listed(rows, index, middle, end)
        both = of_pred <= of_true if true else of_true <= of_pred
        true, pred = true or both, pred or both
    return true, pred


@kernel
def count_visits(rows, index, visits):
    """Count the cells that `find_mates` visits; return the total, the maximum per cell, and the clusters compared.

    `visits` counts them by cluster; a visit through a pair of clusters counts for both. The clusters of cells visited
    through pairs are compared one by one: their number is the third result.
    """
    # Idea: walk as `find_mates` does, but without comparing cells, so that the memory of its output is known, and
    # its work can be refused or divided evenly before it starts. What changes there must change here.
    total = most = compared = 0
    for cell in range(rows.starts.size):
        if not may_have(cell, index):
            continue
        mine = 0
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        every = visits_every(rows, index, begin, end) if index.wide else (False, False)
        v = index.pair_bounds[cell]
        for side in range(2):
            low, high = side_of(rows, begin, end, side)
            if 1 < high - low <= index.narrow and not (every[0] and every[1]):
                for a in range(low, high - 1):
                    for b in range(a + 1, high):
                        group = index.groups[v]
                        v += 1
                        if group >= 0:
                            size = index.group_bounds[group + 1] - index.group_bounds[group] - 1
                            visits[rows.codes[a]] += size
                            visits[rows.codes[b]] += size
                            mine += size
        compared += mine * (end - begin)
        if index.wide:
            for side in range(2):
                span = side_of(rows, begin, end, side)
                spared = find_largest(rows, index, span, every[side])
                for k in range(span[0], span[1]):
                    if k != spared:
                        first, last = listed(index, rows.codes[k], every[side])
                        visits[rows.codes[k]] += last - first
                        mine += last - first
        total += mine
        most = max(most, mine)
    return total, most, compared


@inlined
def may_have(cell, index):
    """Return whether a cell may have close mates; this saves a call of `find_mates` for most cells, which have none."""
    found = index.wide
    for v in range(index.pair_bounds[cell], index.pair_bounds[cell + 1]):
        found |= index.groups[v] >= 0
    return found


@kernel
def find_mates(cell, rows, index, found, met):
    """List the close mates of a cell, each once, and return their number.

    If either cell has many clusters on a side where they share two, the mate is found by counting shared clusters.
    Otherwise it is listed at the first pair of clusters that both share, true clusters first. Workspace: `met`
    (n_cells + n_clusters,), 0 before and after, empty if no cell has many clusters. Output: `found` (3, most): the
    mate, and the numbers of true and predicted clusters shared.
    """
    n = 0
    begin = rows.starts[cell] + 2
    end = begin + rows.codes[begin - 1]
    if index.wide:
        every = visits_every(rows, index, begin, end)
        n = meet_in_clusters(cell, begin, end, every, rows, index, found, met)
        if every[0] and every[1]:
            return n
    v = index.pair_bounds[cell]
    for side in range(2):
        low, high = side_of(rows, begin, end, side)
        if 1 < high - low <= index.narrow:
            for a in range(low, high - 1):
                for b in range(a + 1, high):
                    group = index.groups[v]
                    v += 1
                    if group >= 0:
                        n = meet_in_pair((begin, end), side, (a, b), group, rows, index, found, n)
    return n


@inlined
def meet_in_pair(row, side, pair, group, rows, index, found, n):
    """List the mates whose first pair shared with a cell is this one, except those found by counting.

    `n` is the number of mates listed so far; the new number is returned.
    """
    for m in range(index.group_bounds[group], index.group_bounds[group + 1]):
        other = index.members[m]
        if other + 2 != row[0]:
            c, g, true, pred = compare(rows, row, other + 2)
            if (true == pair) if side == 0 else (c < 2 and pred == pair):
                if (
                    side == 1
                    or g < 2
                    or not (in_many(rows, row[0], index) or in_many(rows, other + 2, index))
                ):
                    found[0, n], found[1, n], found[2, n] = rows.codes[other], c, g
                    n += 1
    return n


@inlined
def in_many(rows, begin, index):
    """Return whether the cell whose row starts at `begin` has more than `narrow` predicted clusters."""
    end = begin + rows.codes[begin - 1]
    return end - begin - count_true(rows, begin, end) > index.narrow


@kernel
def meet_in_clusters(cell, begin, end, every, rows, index, found, met):
    """List the mates that share two or more clusters of a side with a cell, found by counting; return their number.

    Only the cells selected by `visits_every` are visited, cluster by cluster. The largest cluster of each side is
    skipped at first, and then counted only for cells met in another one.
    """
    # Idea: `met` counts the shared true clusters of a cell in its lower half and the predicted ones in the upper,
    # so that one array is accessed at random, not two; `found` lists the cells met, so that only these are
    # cleared.
    # Most visits would be through the largest clusters. Cells met only there share one cluster a side and are not
    # close, so these are looked at last, for the cells met elsewhere.
    # Where only cells in many clusters were visited, the counts are incomplete, and are made again from the
    # cells' rows.
    middle = begin + count_true(rows, begin, end)
    spared_true = find_largest(rows, index, (begin, middle), every[0])
    spared_pred = find_largest(rows, index, (middle, end), every[1])
    n = stop = 0
    for k in range(begin, end):
        if k != spared_true and k != spared_pred:
            first, last = listed(index, rows.codes[k], every[0] if k < middle else every[1])
            one = 1 if k < middle else 1 << index.half
            for m in range(first, last):
                other = index.cells[at(m)]
                before = met[at(other)]
                found[0, at(stop)] = other
                stop += before == 0
                met[at(other)] = before + one
    if spared_true >= 0:
        meet_in_largest(rows, index, rows.codes[spared_true], every[0], 1, found[0, :stop], met)
    if spared_pred >= 0:
        meet_in_largest(rows, index, rows.codes[spared_pred], every[1], 1 << index.half, found[0, :stop], met)
    for m in range(stop):  # no branches, which the CPU would mispredict
        other = found[0, at(m)]
        c, g = met[at(other)] & ((1 << index.half) - 1), met[at(other)] >> index.half
        met[at(other)] = 0
        found[0, at(n)], found[1, at(n)], found[2, at(n)] = other, c, g
        n += (max(c, g) > 1) & (other != cell)
    if not (every[0] and every[1]):
        own = met[rows.starts.size :]
        for k in range(begin, end):
            own[rows.codes[k]] = 1 if k < middle else 1 << index.half
        for m in range(n):
            low, both = rows.starts[found[0, at(m)]] + 2, 0
            for k in range(low, low + rows.codes[at(low - 1)]):
                both += own[at(rows.codes[at(k)])]
            found[1, at(m)], found[2, at(m)] = both & ((1 << index.half) - 1), both >> index.half
        for k in range(begin, end):
            own[rows.codes[k]] = 0
    return n


@inlined
def meet_in_largest(rows, index, code, every, one, others, met):
    """Count cluster `code` for the cells met before that are in it: by its list or, if that is long, by their rows."""
    first, last = listed(index, code, every)
    if last - first <= LONG * others.size:
        for m in range(first, last):
            other = index.cells[at(m)]
            before = met[at(other)]
            met[at(other)] = before + (one if before else 0)
    else:
        for m in range(others.size):
            k = rows.starts[others[m]] + 2
            end = k + rows.codes[k - 1]
            while k < end and rows.codes[k] < code:
                k += 1
            met[others[m]] += one if k < end and rows.codes[k] == code else 0


@inlined
def compare(rows, row, low):
    """Return how many true and predicted clusters two cells share, and the positions of the first two of each.

    Positions are in `row`. The row of one cell goes from `row[0]` to `row[1]`, that of the other begins at `low`.
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
def place_clusters(rows, begin, end, own, placed):
    """Write the position in a row, starting at 1, of each of its clusters to `own` by cluster, or reset them to 0."""
    for k in range(begin, end):
        own[at(rows.codes[at(k)])] = k - begin + 1 if placed else 0


@inlined
def mark_common(rows, own, low, at_true, at_pred):
    """Write the positions, in the row described by `own`, of the clusters shared with the row at `low`.

    True clusters go to `at_true`, predicted ones to `at_pred`. There is no branch on whether a cluster is shared, which
    the CPU would mispredict.
    """
    high = low + rows.codes[at(low - 1)]
    c = g = 0
    while low < high and rows.codes[at(low)] < rows.n_true:
        place = own[at(rows.codes[at(low)])]
        at_true[at(c)] = place - 1
        c += place > 0
        low += 1
    for k in range(low, high):
        place = own[at(rows.codes[at(k)])]
        at_pred[at(g)] = place - 1
        g += place > 0


@kernel
def split(w):
    """Split a float into two parts of 26 significant bits each, whose products with small integers are exact."""
    scaled = 134217729.0 * w
    high = scaled - (scaled - w)
    return high, w - high


@kernel
def add_times(total, error, k, w):
    """Add `k * w` to the sum `total + error` without loss; k is a small integer."""
    if k == 1 or k == -1:
        return add_exactly(total, error, k * w)
    high, low = split(w)
    total, error = add_exactly(total, error, k * high)
    return add_exactly(total, error, k * low)


@inlined
def add_copies(sums, k, n, weight, weighted):
    """Return the sums (items, weight, its rounding error) with `k` times a cell of `n` items and this weight added."""
    count, mass, rest = sums
    if weighted and k:
        mass, rest = add_times(mass, rest, k, weight)
    return count + k * n, mass, rest


@kernel
def score_cells(start, stop, items, rows, clusters, close, common, space, shares, mates):
    """Sum the hits and misses of the items of the cells start..stop over their mates in other cells.

    If an item and a mate share g > 0 predicted and c true clusters, the mate counts min(g, c) / g as a hit on the
    predicted side and the rest as a miss; the true side is symmetric. Mates with g and c of 0 or 1 are counted through
    the overlaps of clusters, after subtracting the close mates.

    `space` is that of `count_mates`, and that of `find_mates`. Outputs: `shares` (n_cells, 4), hits and misses on the
    predicted side, then on the true side; `mates` (n_cells, 2), the numbers of items that share a predicted and a true
    cluster with an item of the cell, itself included.
    """
    alike, (found, met) = space
    for cell in range(start, stop):
        if cell + AHEAD < stop:
            ask_for_clusters(cell + AHEAD, rows, clusters)
        sums = add_singles(cell, items, rows, clusters, common)
        n = find_mates(cell, rows, close, found, met) if may_have(cell, close) else 0
        sums, hits = count_mates(cell, n, items, rows, found, alike, sums)
        write_shares(hits, sums, items.weighted, shares, cell)
        mates[cell, 0] = sums[1][0] + items.n[cell]
        mates[cell, 1] = sums[0][0] + items.n[cell]


@inlined
def ask_for_clusters(cell, rows, clusters):
    """Prefetch the sizes of the clusters of a cell that is scored later."""
    begin = rows.starts[at(cell)] + 2
    for k in range(begin, begin + rows.codes[at(begin - 1)]):
        fetch(clusters.n, rows.codes[at(k)])


@inlined
def add_singles(cell, items, rows, clusters, common):
    """Return sums (items, weight, its rounding error) of a cell's true clusters, predicted clusters and their overlaps.

    The cell's own items are left out. A fourth sum, 0 so far, is for mates that share several clusters.
    """
    true = pred = ones = both = 0, 0.0, 0.0
    begin = rows.starts[at(cell)] + 2
    place = common.bounds[at(cell)]
    n, w = items.n[at(cell)], items.weight[at(cell)] if items.weighted else 0.0
    for k in range(begin, begin + rows.codes[at(begin - 1)]):
        j = rows.codes[at(k)]
        if j < rows.n_true:
            true = add_others(true, clusters, j, n, w, items.weighted)
            ones = add_size(ones, common.sizes, place, items.weighted)
            place += 1
        else:
            pred = add_others(pred, clusters, j, n, w, items.weighted)
    return true, pred, ones, both


@inlined
def count_mates(cell, n, items, rows, found, alike, sums):
    """Correct the sums of `add_singles` for the n close mates of a cell; return them, and the mates' hits and misses.

    If there are many, mates with the same numbers of shared clusters are counted together: `alike`, 0 before and after,
    holds their items by these numbers.
    """
    hits = 0.0, 0.0, 0.0, 0.0
    begin = rows.starts[cell] + 2
    own_c = count_true(rows, begin, begin + rows.codes[begin - 1])
    width = rows.codes[begin - 1] - own_c + 1
    if (own_c + 1) * width <= min(n, alike.n.size):
        for m in range(n):
            add_items(alike, items, found[1, at(m)] * width + found[2, at(m)], found[0, at(m)])
        for k in range((own_c + 1) * width):
            if alike.n[k]:
                c, g = k // width, k % width
                w = alike.mass[k] if items.weighted else np.float64(alike.n[k])
                sums, hits = count_mate(sums, hits, alike.n[k], w, c, g, items.weighted)
                if items.weighted:
                    sums, hits = count_mate(sums, hits, 0, alike.rest[k], c, g, True)
                clear(alike, items.weighted, k)
    else:
        for m in range(n):
            mate, c, g = found[0, m], found[1, m], found[2, m]
            w = items.weight[mate] if items.weighted else np.float64(items.n[mate])
            sums, hits = count_mate(sums, hits, items.n[mate], w, c, g, items.weighted)
    return sums, hits


@inlined
def count_mate(sums, hits, n, w, c, g, weighted):
    """Correct the sums, where a mate counts once per cluster, to count it once; add its hits and misses.

    The mate, of n items and weight w, shares c true and g predicted clusters.
    """
    true, pred, ones, both = sums
    pred = add_copies(pred, 1 - max(g, 1), n, w, weighted)
    true = add_copies(true, 1 - max(c, 1), n, w, weighted)
    ones = add_copies(ones, -g * c, n, w, weighted)
    both = add_copies(both, min(g, c, 1), n, w, weighted)
    return (true, pred, ones, both), add_hits(hits, w if g and c else 0.0, c, g)


@inlined
def add_hits(hits, w, c, g):
    """Add mates of weight w that share c true and g predicted clusters to the hits and misses of both sides."""
    hit_pred, miss_pred, hit_true, miss_true = hits
    least, g, c = min(g, c), max(g, 1), max(c, 1)
    hit_pred += w * (least / g)
    miss_pred += w * ((g - least) / g)
    hit_true += w * (least / c)
    miss_true += w * ((c - least) / c)
    return hit_pred, miss_pred, hit_true, miss_true


@inlined
def not_negative(mass):
    """Return `mass`, or 0 if rounding made it negative; NaN, from items of unknown weight, is kept."""
    return 0.0 if mass < 0.0 else mass


@inlined
def write_shares(hits, sums, weighted, shares, cell):
    """Write a cell's hits and misses on both sides, from its close mates and from mates counted through overlaps."""
    hit_pred, miss_pred, hit_true, miss_true = hits
    (in_true, r, r_rest), (in_pred, p, p_rest), (ones, o, o_rest), (both, bo, bo_rest) = sums
    both += ones
    if weighted:
        if ones:
            bo, bo_rest = add_exactly(bo, bo_rest + o_rest, o)
            hit_pred += o + o_rest
            hit_true += o + o_rest
        if in_pred != both:
            miss_pred += not_negative((p - bo) + (p_rest - bo_rest))
        if in_true != both:
            miss_true += not_negative((r - bo) + (r_rest - bo_rest))
    else:
        hit_pred += ones
        hit_true += ones
        miss_pred += in_pred - both
        miss_true += in_true - both
    shares[cell, 0], shares[cell, 1] = hit_pred, miss_pred
    shares[cell, 2], shares[cell, 3] = hit_true, miss_true


@kernel
def charge_clusters(start, stop, items, rows, clusters, close, overlaps, space, lost):
    """Sum the losses of the items of the cells start..stop over their mates, by cluster of the cell.

    Items that share g predicted and c true clusters lose (g - min(g, c)) / g on the predicted side, divided equally
    among the g clusters; the true side is symmetric. As in `score_cells`, mates with g and c of 0 or 1 are counted
    through the overlaps, and close mates are visited.

    Output: `lost`, for each cell the losses of its true clusters, then of its predicted ones, in the order of its
    row.
    """
    strangers, shared, at_true, at_pred, own, (found, met) = space
    for cell in range(start, stop):
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        own_c = count_true(rows, begin, end)
        own_g = end - begin - own_c
        w = items.weight[cell] if items.weighted else np.float64(items.n[cell])
        count_strangers(cell, begin, own_c, own_g, items, rows, clusters, overlaps, strangers)
        for k in range(own_c + own_g):
            shared[k] = charge(w, own_c, own_g) if k < own_c else charge(w, own_g, own_c)
        n = find_mates(cell, rows, close, found, met) if may_have(cell, close) else 0
        place_clusters(rows, begin, end, own, True)
        for m in range(n):
            mate, c, g = found[0, m], found[1, m], found[2, m]
            mark_common(rows, own, rows.starts[mate] + 2, at_true, at_pred)
            charge_mate(strangers, shared, items, mate, at_true[:c], at_pred[:g])
        place_clusters(rows, begin, end, own, False)
        place = rows.starts[cell] - 4 * cell - 2  # of its first membership
        for k in range(own_c + own_g):
            lost[place + k] = shared[k] + weigh(strangers, k, items.weighted)


@inlined
def charge(w, own, others):
    """Return the loss charged to each of `own` shared clusters by a mate that shares `others` on the other side."""
    return w * ((own - min(own, others)) / own / own)


@inlined
def change_size(sums, k, sign, n, mass, rest, weighted):
    """Add (sign 1) or subtract (sign -1) items and their weight at index k of `sums`."""
    sums.n[k] += sign * n
    if weighted:
        sums.mass[k], sums.rest[k] = add_exactly(sums.mass[k], sums.rest[k] + sign * rest, sign * mass)


@inlined
def add_mate(sums, k, times, n, w, weighted):
    """Add the items of a cell `times` times at index k of `sums`."""
    sums.n[k] += times * n
    if weighted and times:
        sums.mass[k], sums.rest[k] = add_times(sums.mass[k], sums.rest[k], times, w)


@inlined
def count_strangers(cell, begin, own_c, own_g, items, rows, clusters, overlaps, strangers):
    """Count, for each cluster of a cell, its other items minus those in overlaps with the cell's clusters opposite."""
    n, w = items.n[cell], items.weight[cell] if items.weighted else 0.0
    weighted = items.weighted
    for k in range(own_c + own_g):
        j = rows.codes[begin + k]
        strangers.n[k] = 0
        if weighted:
            strangers.mass[k], strangers.rest[k] = 0.0, 0.0
        mass, rest = (clusters.mass[j], clusters.rest[j]) if weighted else (0.0, 0.0)
        change_size(strangers, k, 1, clusters.n[j], mass, rest, weighted)
        add_mate(strangers, k, (own_g if k < own_c else own_c) - 1, n, w, weighted)
    entry = overlaps.entry_bounds[cell]
    for a in range(own_c):
        for b in range(own_g):
            o = overlaps.entries[entry + a * own_g + b]
            mass, rest = (overlaps.sizes.mass[o], overlaps.sizes.rest[o]) if weighted else (0.0, 0.0)
            change_size(strangers, a, -1, overlaps.sizes.n[o], mass, rest, weighted)
            change_size(strangers, own_c + b, -1, overlaps.sizes.n[o], mass, rest, weighted)


@inlined
def charge_mate(strangers, shared, items, mate, at_true, at_pred):
    """Charge the shared clusters for a close mate, and cancel its count in `strangers`, which come from overlaps."""
    c, g = at_true.size, at_pred.size
    n = items.n[mate]
    w = items.weight[mate] if items.weighted else np.float64(n)
    of_true, of_pred = charge(w, c, g) if c else 0.0, charge(w, g, c) if g else 0.0
    for k in at_true:
        add_mate(strangers, k, g - 1, n, w, items.weighted)
        shared[k] += of_true
    for k in at_pred:
        add_mate(strangers, k, c - 1, n, w, items.weighted)
        shared[k] += of_pred


@inlined
def weigh(sums, k, weighted):
    """Return the weight at index k of `sums`; 0 if it has no items."""
    if not weighted:
        return np.float64(sums.n[k])
    return max(0.0, sums.mass[k] + sums.rest[k]) if sums.n[k] else 0.0


@kernel
def find_best(bounds, pred, likeness, best_true, best_pred):
    """Raise the best similarity of each cluster to the largest among its overlaps.

    Shapes: (n_true + 1,), (n_overlaps,), (n_overlaps,), (n_true,), (n_pred,).
    """
    for i in range(bounds.size - 1):
        for o in range(bounds[i], bounds[i + 1]):
            best_true[i] = max(best_true[i], likeness[o])
            best_pred[pred[o]] = max(best_pred[pred[o]], likeness[o])


@kernel
def add_matches(start, stop, pairwise, items, rows, close, overlaps, likeness, best, space, hits):
    """Sum the hits of the items of the cells start..stop, each multiplied by the similarity of the shared clusters.

    A mate that shares g predicted and c true clusters counts min(g, c) / g times the mean similarity of these g
    clusters to their matches; the true side is symmetric. As in `score_cells`, mates with g = c = 1 are counted
    through the overlaps, and close mates are visited.

    A cluster's match is the most similar cluster of the other side: among those that the pair shares if `pairwise`,
    else among all. `likeness` is the similarity by overlap, `best` the largest by cluster. Output: `hits` (n_cells,
    2), on the predicted and on the true side.
    """
    # Idea: mates with one shared cluster a side have their similarity by overlap, so their number is enough: the
    # size of the overlap without the close mates, which are subtracted from `ones` and counted one by one.
    # Visiting all mates instead would take the square of the largest cluster.
    ones, at_true, at_pred, places, (found, met) = space
    for cell in range(start, stop):
        begin = rows.starts[cell] + 2
        end = begin + rows.codes[begin - 1]
        own_c = count_true(rows, begin, end)
        shape = own_c, end - begin - own_c
        entries = overlaps.entries[overlaps.entry_bounds[cell] : overlaps.entry_bounds[cell + 1]]
        copy_sizes(overlaps.sizes, entries, ones, items.weighted)
        own = rows.codes[begin:end]
        hit_pred = hit_true = 0.0
        n = find_mates(cell, rows, close, found, met) if may_have(cell, close) else 0
        if max(shape) > 1:  # the cell's own items are close mates of each other
            found[0, n], found[1, n], found[2, n] = cell, shape[0], shape[1]
            n += 1
        place_clusters(rows, begin, end, places, True)
        for m in range(n):
            mate, c, g = found[0, m], found[1, m], found[2, m]
            if g == 0 or c == 0:
                continue
            mark_common(rows, places, rows.starts[mate] + 2, at_true, at_pred)
            w = items.weight[mate] if items.weighted else np.float64(items.n[mate])
            common = at_true[:c], at_pred[:g]
            take_away(ones, common, shape, items.n[mate], w, items.weighted)
            of_true, of_pred = add_likeness(common, shape, own, entries, likeness, best, pairwise)
            least = min(g, c)
            hit_pred += w * (least / g) * (of_pred / g)
            hit_true += w * (least / c) * (of_true / c)
        place_clusters(rows, begin, end, places, False)
        hits[cell, 0], hits[cell, 1] = add_ones(
            (hit_pred, hit_true), ones, shape, own, entries, likeness, best, pairwise, items.weighted
        )


@inlined
def copy_sizes(sizes, entries, ones, weighted):
    """Copy the sizes of a cell's overlaps to `ones`, one for each pair of its true and its predicted clusters."""
    for k in range(entries.size):
        ones.n[k] = sizes.n[entries[k]]
        if weighted:
            ones.mass[k] = sizes.mass[entries[k]]
            ones.rest[k] = sizes.rest[entries[k]]


@inlined
def take_away(ones, common, shape, n, w, weighted):
    """Subtract a close mate from the overlaps of the clusters it shares; its hits are added separately."""
    for a in common[0]:
        for b in common[1]:
            k = a * shape[1] + b - shape[0]
            ones.n[k] -= n
            if weighted:
                ones.mass[k], ones.rest[k] = add_exactly(ones.mass[k], ones.rest[k], -w)


@inlined
def add_likeness(common, shape, own, entries, likeness, best, pairwise):
    """Return the summed similarities of shared clusters to their matches, for true and for predicted clusters."""
    of_true = of_pred = 0.0
    for a in common[0]:
        most = 0.0
        for b in common[1]:
            most = max(most, likeness[entries[a * shape[1] + b - shape[0]]])
        of_true += most if pairwise else best[own[a]]
    for b in common[1]:
        most = 0.0
        for a in common[0]:
            most = max(most, likeness[entries[a * shape[1] + b - shape[0]]])
        of_pred += most if pairwise else best[own[b]]
    return of_true, of_pred


@inlined
def add_ones(total, ones, shape, own, entries, likeness, best, pairwise, weighted):
    """Add the hits of mates that share one cluster on each side to the (predicted, true) hits, and return these."""
    hit_pred, hit_true = total
    for a in range(shape[0]):
        for b in range(shape[1]):
            k = a * shape[1] + b
            if ones.n[k]:
                one = ones.mass[k] + ones.rest[k] if weighted else np.float64(ones.n[k])
                like = likeness[entries[k]]
                hit_pred += one * (like if pairwise else best[own[shape[0] + b]])
                hit_true += one * (like if pairwise else best[own[a]])
    return hit_pred, hit_true
