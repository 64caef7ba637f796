"""Pairs of cells of overlapping clusterings, as Extended BCubed counts them: multiplicities, losses, similarities."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import table_size
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.overlap import AHEAD, add_items, add_others, add_size, clear, count_true
from fastbcubed.kernels.partition import add_exactly, fetch

#: A list of cells is scanned if it has at most this many times the number of cells looked up in it.
LONG = 4


@inlined
def pairs_of(size, narrow):
    """Return the number of pairs of clusters listed for a cell with `size` clusters on a side."""
    return size * (size - 1) // 2 if size <= narrow else 0


@inlined
def side_of(rows, begin, end, side):
    """Return where the true clusters (side 0) or the predicted ones (side 1) of a row begin and end."""
    middle = begin + count_true(rows, begin, end)
    return (begin, middle) if side == 0 else (middle, end)


@kernel
def count_pairs(start, stop, rows, narrow, counts):
    """Count the pairs of clusters of a range of cells; return the largest number of clusters of a cell on a side."""
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
    """Write a key for every pair of clusters of a side, cell by cell, in row order."""
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
    """List the rows whose key is repeated in one of several parts; return the number of rows and of keys.

    `keys` and `rows` are overwritten from the beginning of the first part: by the number of the key, and by the row.
    `slots` is space for a table, and `again` (rows of the largest part, 2) for the first row and the count of each key.
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
    """Write the group of each row listed by `find_repeats`, whose numbers begin at `base`, and count these."""
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


@inlined
def may_be_close(rows, begin, end):
    """Return whether a cell is in several clusters of a side."""
    c = count_true(rows, begin, end)
    return max(c, end - begin - c) > 1


@kernel
def count_several(rows, narrow, wide_counts, counts):
    """Count the cells in several clusters of a side, by cluster: those in more than `narrow` of its side, and all."""
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
    """Write the cells counted by `count_several`, by cluster; those in more than `narrow` first."""
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
    """Return where the cells to visit in a cluster begin and end: every one, or those in many clusters."""
    return index.bounds[j], index.bounds[j + 1] if every else index.ends[j]


@inlined
def find_largest(rows, index, span, every):
    """Return the position, in a side of a row, of the cluster with most cells to visit."""
    most = spared = -1
    for k in range(span[0], span[1]):
        first, last = listed(index, rows.codes[k], every)
        if last - first > most:
            most = last - first
            spared = k
    return spared


@inlined
def count_listed(rows, index, low, high):
    """Return the number of cells in the clusters of a side of a row."""
    total = 0
    for k in range(low, high):
        total += index.bounds[rows.codes[k] + 1] - index.bounds[rows.codes[k]]
    return total


@inlined
def visits_every(rows, index, begin, end):
    """Return whether a cell visits every cell in its true clusters, and in its predicted ones.

    It does on a side where it is in many; on the other one, too, if its clusters there have no more cells: then all
    that it shares with a mate is counted.
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
    """Count the cells that `find_mates` visits: in total, the maximum per cell, and by cluster in `visits`.

    A visit through a pair of clusters counts for both. There, cells are compared: their clusters are counted, too.
    """
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
    """Return whether a cell may have close mates; most have none, and need no call."""
    found = index.wide
    for v in range(index.pair_bounds[cell], index.pair_bounds[cell + 1]):
        found |= index.groups[v] >= 0
    return found


@kernel
def find_mates(cell, rows, index, found, met):
    """List the close mates of a cell, each once, and return their number.

    A mate is found by counting if one of both is in many clusters of a side of which they share two, else in the first
    pair that they share, true ones first. Workspace: `met` (n_cells + n_clusters,), 0 before and after, empty if no
    cell is in many. Output: `found` (3, most), the mate, and the numbers of true and predicted clusters shared.
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
    """List the mates that a cell first meets in a pair of its clusters, except those met by counting."""
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
    """Return whether the cell whose row begins here is in many predicted clusters."""
    end = begin + rows.codes[begin - 1]
    return end - begin - count_true(rows, begin, end) > index.narrow


@kernel
def meet_in_clusters(cell, begin, end, every, rows, index, found, met):
    """List the mates that share two or more clusters of a side with a cell in whose lists they are; see `visits_every`.

    They are counted cluster by cluster, except the largest of each side: only cells met before are counted there.
    """
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
    for m in range(stop):  # no branches, which would be guessed
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
    """Count again the cells met before that are in this cluster: by its list or, if that is long, by their rows."""
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
    """Return the numbers of true and predicted clusters that two cells share, and where the first two are in `row`.

    One cell's row goes from `row[0]` to `row[1]`, the other's begins at `low`.
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
    """Write to `own` the position, from 1, of each cluster in a row; or 0 again."""
    for k in range(begin, end):
        own[at(rows.codes[at(k)])] = k - begin + 1 if placed else 0


@inlined
def mark_common(rows, own, low, at_true, at_pred):
    """Write the positions in the row of `own` of the clusters shared with the row at `low`: true ones, predicted ones.

    There are no branches on whether a cluster is shared, which would be guessed.
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
    """Split a float into two of 26 bits each, so that small multiples of both are exact."""
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
    """Add `k` times `n` items to the sums (items, weight, its rounding error)."""
    count, mass, rest = sums
    if weighted and k:
        mass, rest = add_times(mass, rest, k, weight)
    return count + k * n, mass, rest


@kernel
def score_cells(start, stop, items, rows, clusters, close, common, space, shares, mates):
    """Add up the hits and misses of the items of a range of cells with their mates in other cells.

    With g and c the predicted and true clusters that an item and its mate share, a mate with g > 0
    counts min(g, c) / g as a hit on the predicted side and the rest as a miss; likewise on the true
    side. Mates with g and c of 0 or 1 are counted through the overlaps of clusters, from which the close ones,
    with g or c of 2 or more, are subtracted.

    `space` is that of `count_mates`, and those of `find_mates`. Outputs: `shares` (n_cells, 4), hits and misses on the
    predicted side, then on the true side; `mates` (n_cells, 2), the number of items that share a predicted cluster, and
    a true cluster, with an item of the cell, itself included.
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
    """Prefetch the sizes of the clusters of a later cell."""
    begin = rows.starts[at(cell)] + 2
    for k in range(begin, begin + rows.codes[at(begin - 1)]):
        fetch(clusters.n, rows.codes[at(k)])


@inlined
def add_singles(cell, items, rows, clusters, common):
    """Add up the true clusters of a cell, its predicted ones and their overlaps, all without the cell itself.

    The last of the four sums is empty, for mates that share several clusters.
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
    """Count the n mates of a cell and return the sums, and hits and misses; of many, those alike are counted together.

    `alike` is space for the items by the numbers of true and predicted clusters shared, 0 before and after.
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
    """Count once, not once per cluster, a mate with c true and g predicted clusters in common."""
    true, pred, ones, both = sums
    pred = add_copies(pred, 1 - max(g, 1), n, w, weighted)
    true = add_copies(true, 1 - max(c, 1), n, w, weighted)
    ones = add_copies(ones, -g * c, n, w, weighted)
    both = add_copies(both, min(g, c, 1), n, w, weighted)
    return (true, pred, ones, both), add_hits(hits, w if g and c else 0.0, c, g)


@inlined
def add_hits(hits, w, c, g):
    """Add mates that share c true and g predicted clusters to hits and misses of the sides with a shared cluster."""
    hit_pred, miss_pred, hit_true, miss_true = hits
    least, g, c = min(g, c), max(g, 1), max(c, 1)
    hit_pred += w * (least / g)
    miss_pred += w * ((g - least) / g)
    hit_true += w * (least / c)
    miss_true += w * ((c - least) / c)
    return hit_pred, miss_pred, hit_true, miss_true


@inlined
def not_negative(mass):
    """Return a mass, with negative rounding errors set to 0; NaN, from items of unknown weight, is kept."""
    return 0.0 if mass < 0.0 else mass


@inlined
def write_shares(hits, sums, weighted, shares, cell):
    """Write the hits and misses on both sides: of visited mates, of those with one common cluster a side, of others."""
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
    """Add up the loss of an item of each of a range of cells through each of its clusters, times its mates.

    Items that share g predicted and c true clusters lose (g - min(g, c)) / g on the predicted side, charged equally to
    the g; likewise on the true side. As in `score_cells`, mates with g and c of 0 or 1 are
    counted through the overlaps, and those with more are visited.

    Output: `lost`, by cell its true clusters, then its predicted ones, in the order of its row.
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
    """Return the charge to each of `own` shared clusters for a mate with `others` shared on the other side."""
    return w * ((own - min(own, others)) / own / own)


@inlined
def change_size(sums, k, sign, n, mass, rest, weighted):
    """Add items to the sum at a place, or subtract them."""
    sums.n[k] += sign * n
    if weighted:
        sums.mass[k], sums.rest[k] = add_exactly(sums.mass[k], sums.rest[k] + sign * rest, sign * mass)


@inlined
def add_mate(sums, k, times, n, w, weighted):
    """Add the items of a cell, `times` times, to the sum at a place."""
    sums.n[k] += times * n
    if weighted and times:
        sums.mass[k], sums.rest[k] = add_times(sums.mass[k], sums.rest[k], times, w)


@inlined
def count_strangers(cell, begin, own_c, own_g, items, rows, clusters, overlaps, strangers):
    """Count, by cluster of a cell, the other items in it, minus those in its overlaps with the other side."""
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
    """Charge the common clusters for a visited mate, and remove it from the count through the overlaps."""
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
    """Return the weight of a sum, 0 if it has no items."""
    if not weighted:
        return np.float64(sums.n[k])
    return max(0.0, sums.mass[k] + sums.rest[k]) if sums.n[k] else 0.0


@kernel
def find_best(bounds, pred, likeness, best_true, best_pred):
    """Raise the best similarity of each cluster to that of its overlaps.

    Shapes: (n_true + 1,), (n_overlaps,), (n_overlaps,), (n_true,), (n_pred,).
    """
    for i in range(bounds.size - 1):
        for o in range(bounds[i], bounds[i + 1]):
            best_true[i] = max(best_true[i], likeness[o])
            best_pred[pred[o]] = max(best_pred[pred[o]], likeness[o])


@kernel
def add_matches(start, stop, pairwise, items, rows, close, overlaps, likeness, best, space, hits):
    """Add up the hits of each of a range of cells, each times the similarity of the shared clusters.

    A mate with g predicted and c true clusters in common counts min(g, c) / g times the mean over
    these g of the similarity of their match; likewise on the true side. As in `score_cells`, mates with
    g = c = 1 are counted through the overlaps, and those with more are visited.

    The match of a cluster is the most similar of those shared by the pair if `pairwise`, else of all, with
    `likeness` by overlap and `best` by cluster. Output: `hits` (n_cells, 2), on the predicted side and on the
    true one.
    """
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
        if max(shape) > 1:  # then its items are also close mates of each other
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
    """Copy the overlaps of the true clusters of a cell with its predicted ones."""
    for k in range(entries.size):
        ones.n[k] = sizes.n[entries[k]]
        if weighted:
            ones.mass[k] = sizes.mass[entries[k]]
            ones.rest[k] = sizes.rest[entries[k]]


@inlined
def take_away(ones, common, shape, n, w, weighted):
    """Subtract a mate from the overlaps of its common clusters: it is counted separately."""
    for a in common[0]:
        for b in common[1]:
            k = a * shape[1] + b - shape[0]
            ones.n[k] -= n
            if weighted:
                ones.mass[k], ones.rest[k] = add_exactly(ones.mass[k], ones.rest[k], -w)


@inlined
def add_likeness(common, shape, own, entries, likeness, best, pairwise):
    """Add up the similarities of the matches of common clusters, of the true and of the predicted ones."""
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
    """Add the mates that share one cluster of each side to the hits of the predicted and of the true side."""
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
