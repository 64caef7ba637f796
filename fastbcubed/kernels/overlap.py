"""Overlaps of true and predicted clusters, their entropies, and pairs of items that share several clusters."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import add_exactly, fetch

#: Number of cells or memberships by which memory accesses are prefetched; those of a cluster are far apart.
AHEAD = 24
#: Maximum number of cells of true clusters listed together, unless a single cluster has more.
MEMBERS_AT_ONCE = 256


@kernel
def add_clusters(offsets, codes, items, sizes):
    """Sum the items and weight of each cluster, given the clusters of each cell."""
    for j in range(sizes.n.size):
        clear(sizes, items.weighted, j)
    for cell in range(offsets.size - 1):
        for k in range(offsets[at(cell)], offsets[at(cell + 1)]):
            if k + AHEAD < codes.size:
                fetch(sizes.n, codes[at(k + AHEAD)])
            add_items(sizes, items, codes[at(k)], cell)


@kernel
def fill_members(offsets, codes, starts, first, last, next_place, members):
    """Add the row start of each of the cells first..last to the members of its true clusters.

    Shapes: `offsets` (n_cells + 1,), `codes` (n,), `starts` (n_cells,), `next_place` (n_true,), `members` (n,).
    """
    stop = offsets[last]
    for cell in range(first, last):
        for k in range(offsets[at(cell)], offsets[at(cell + 1)]):
            if k + AHEAD < stop:
                fetch(next_place, codes[at(k + AHEAD)])
            place = next_place[at(codes[at(k)])]
            next_place[at(codes[at(k)])] = place + 1
            members[at(place)] = starts[at(cell)]


@kernel
def count_overlaps(cells, rows, first, last, seen, counts):
    """Count the predicted clusters that overlap each of the true clusters first..last.

    `cells` are, for each true cluster, the bounds of its cells and their row starts. `seen` (n_pred,) must not
    contain a number in first..last at the start.
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
    """Fill the table of overlaps of the true clusters first..last; its `bounds` and `entry_bounds` are given.

    `cells` are as in `count_overlaps`. `space` is two workspaces (n_pred,); the first must not contain a number in
    first..last at the start.
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
    """For each cell of a true cluster, sum the items that the cluster shares with the cell's predicted clusters.

    The true clusters are first..last. `cells` are as in `count_overlaps`, `sizes` are the sizes of clusters, and
    `met` are sums by predicted cluster, 0 before and after. Outputs: `common.sizes`, by cell and true cluster, and
    `common.same`; see `mark_same`.
    """
    bounds = cells[0]
    places = np.empty((MEMBERS_AT_ONCE, 2), np.int64)
    pairs = np.empty((2 * MEMBERS_AT_ONCE, 3), np.int64)
    start = first
    while start < last:
        stop = start + 1
        while stop < last and bounds[stop + 1] - bounds[start] <= MEMBERS_AT_ONCE:
            stop += 1
        if bounds[stop] - bounds[start] > len(places):
            places = np.empty((bounds[stop] - bounds[start], 2), np.int64)
        pairs = list_members(cells, rows, start, stop, met, common, places, pairs)
        end = 0
        for i in range(start, stop):
            begin, own = end, places[bounds[i] - bounds[start] : bounds[i + 1] - bounds[start]]
            if len(own):
                end = own[-1, 1]
                add_pairs(pairs[begin:end], items, met)
                write_common(pairs, begin, own, items, met, common)
                mark_same(i, pairs[begin : own[0, 1], 0], rows.n_true, sizes, met, common.same)
                for q in range(begin, end):
                    clear(met, items.weighted, pairs[at(q), 0])
        start = stop


@kernel
def list_members(cells, rows, first, last, met, common, places, pairs):
    """List the cells of the true clusters first..last in `pairs` and `places`, and prefetch the sums needed later.

    `places` receives, for each cell of a cluster, the index of its sum in `common` and the end of its predicted
    clusters in `pairs`, rows of (predicted cluster, items, cell). Returns `pairs`, which may have been enlarged.
    """
    # Idea: several clusters are listed before their sums are touched, so that waits for memory overlap; rows are
    # asked for AHEAD of their use, sums as soon as their index is known.
    # A row has its true clusters first, in ascending order, then its predicted ones.
    bounds, members = cells
    end = 0
    for i in range(first, last):
        for m in range(bounds[at(i)], bounds[at(i + 1)]):
            if m + AHEAD < members.size:
                fetch(rows.codes, members[at(m + AHEAD)])
            start = members[at(m)]
            k, stop = start + 2, start + 2 + rows.codes[at(start + 1)]
            if end + stop - k > len(pairs):
                pairs = longer(pairs, end, 2 * (end + stop - k))
            own = find_code(rows, k, i)
            k += own
            while k < stop and rows.codes[at(k)] < rows.n_true:
                k += 1
            while k < stop:
                j = rows.codes[at(k)] - rows.n_true
                fetch(met.n, j)
                pairs[at(end), 0] = j
                pairs[at(end), 1] = rows.codes[at(start - 1)]
                pairs[at(end), 2] = rows.codes[at(start)]
                end += 1
                k += 1
            place = rows.codes[at(start - 2)] + own
            fetch(common.sizes.n, place)
            places[at(m - bounds[at(first)]), 0] = place
            places[at(m - bounds[at(first)]), 1] = end
    return pairs


@kernel
def longer(pairs, n, size):
    """Return an array of `size` pairs that begins with the first n of `pairs`."""
    found = np.empty((size, pairs.shape[1]), np.int64)
    for i in range(n):
        for k in range(pairs.shape[1]):
            found[i, k] = pairs[i, k]
    return found


@inlined
def add_pairs(pairs, items, met):
    """Add the items of a true cluster's cells to the sums of their predicted clusters."""
    for q in range(len(pairs)):
        met.n[at(pairs[at(q), 0])] += pairs[at(q), 1]
        if items.weighted:
            add_weight(met, items, pairs[at(q), 0], pairs[at(q), 2])


@inlined
def write_common(pairs, begin, places, items, met, common):
    """Write the items that a true cluster shares with each cell's predicted clusters, the cell itself left out."""
    for m in range(len(places)):
        sums = 0, 0.0, 0.0
        for q in range(begin, places[at(m), 1]):
            w = items.weight[at(pairs[at(q), 2])] if items.weighted else 0.0
            sums = add_others(sums, met, pairs[at(q), 0], pairs[at(q), 1], w, items.weighted)
        begin = places[at(m), 1]
        common.sizes.n[at(places[at(m), 0])] = sums[0]
        if items.weighted:
            common.sizes.mass[at(places[at(m), 0])], common.sizes.rest[at(places[at(m), 0])] = (
                sums[1],
                sums[2],
            )


@inlined
def mark_same(i, pred, n_true, sizes, met, same):
    """Mark a true cluster, and the predicted clusters with exactly the same items, by the first of the latter."""
    for j in pred:
        if sizes.n[at(i)] == met.n[at(j)] and sizes.n[at(i)] == sizes.n[at(n_true + j)]:
            if same[at(i)] < 0:
                same[at(i)] = j
            same[at(n_true + j)] = same[at(i)]


@kernel
def pair_copies(same, n_true, exact):
    """Mark clusters paired one to one with clusters of the same items; of surplus copies, the last are left unpaired.

    Shapes: `same` as in `add_common`, `exact` (n_clusters,), initially False.
    """
    copies = np.zeros(same.size - n_true, np.int64)
    for j in range(n_true, same.size):
        if same[j] >= 0:
            copies[same[j]] += 1
    for i in range(n_true):
        if same[i] >= 0:
            exact[i] = copies[same[i]] > 0
            copies[same[i]] -= 1
    for j in range(same.size - 1, n_true - 1, -1):
        if same[j] >= 0:
            exact[j] = copies[same[j]] <= 0
            copies[same[j]] -= 1


@inlined
def count_true(rows, begin, end):
    """Return the number of true clusters in a row of clusters, where they come first."""
    k = begin
    while k < end and rows.codes[at(k)] < rows.n_true:
        k += 1
    return k - begin


@inlined
def find_code(rows, begin, code):
    """Return the index of a code in a row, counted from `begin`."""
    k = begin
    while rows.codes[at(k)] != code:
        k += 1
    return k - begin


@inlined
def add_size(sums, sizes, j, weighted):
    """Add the size at index `j` to the sums (items, weight, its rounding error), and return them."""
    n, mass, rest = sums
    if weighted:
        mass, rest = add_exactly(mass, rest + sizes.rest[at(j)], sizes.mass[at(j)])
    return n + sizes.n[at(j)], mass, rest


@inlined
def add_others(sums, sizes, j, n, w, weighted):
    """Add the size at index `j` less n items of weight w to the sums (items, weight, its rounding error); return them.

    The items are subtracted before each addition; subtracting them from the sums would cost light mates their digits.
    """
    count, mass, rest = sums
    if weighted:
        others, error = add_exactly(sizes.mass[at(j)], sizes.rest[at(j)], -w)
        mass, rest = add_exactly(mass, rest + error, others)
    return count + sizes.n[at(j)] - n, mass, rest


@inlined
def clear(sizes, weighted, o):
    """Set the sums at index `o` to 0."""
    sizes.n[at(o)] = 0
    if weighted:
        sizes.mass[at(o)] = 0.0
        sizes.rest[at(o)] = 0.0


@inlined
def add_items(sizes, items, o, cell):
    """Add the items of a cell, and their weight, to the sums at index `o`."""
    sizes.n[at(o)] += items.n[at(cell)]
    if items.weighted:
        add_weight(sizes, items, o, cell)


@inlined
def add_weight(sizes, items, o, cell):
    """Add the weight of a cell to the sum at index `o`, exactly."""
    sizes.mass[o], sizes.rest[o] = add_exactly(sizes.mass[o], sizes.rest[o], items.weight[cell])


@kernel
def join_rows(start, stop, true_offsets, true_codes, pred_offsets, pred_codes, n_true, n, starts, rows):
    """Write the row of each of the cells start..stop, as described in `CellRows`: its clusters and four more numbers.

    `starts` (n_cells,) receives the position of each cell's number.
    """
    for cell in range(start, stop):
        starts[cell] = true_offsets[cell] + pred_offsets[cell] + 4 * cell + 2
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


@kernel
def surprise(count, whole):
    """Return -p log2 p for p = count / whole, exactly 0 at p = 0 and p = 1."""
    if count == 0:
        return 0.0
    return -(count / whole) * np.log2(count / whole)


@kernel
def surprise_of_rest(count, whole):
    """Return -q log2 q for q = 1 - count / whole, to full precision where q is near 1."""
    if count == whole:
        return 0.0
    return -((whole - count) / whole) * np.log1p(-(count / whole)) / np.log(2.0)


@kernel
def entropy(count, whole):
    """Return the entropy of membership in a cluster of `count` of `whole` items, in bits."""
    return surprise(count, whole) + surprise_of_rest(count, whole)


@kernel
def keep_least(both, a, b, n_items, i, j, least_true, least_pred):
    """Lower the least H(X|Y) of true cluster i and H(Y|X) of predicted cluster j, of a and b items, which share `both`.

    Clusters whose agreements are no more informative than their differences are skipped; they carry no information
    about each other. The difference must exceed rounding errors, so a tie is skipped as well.
    """
    agree = surprise(both, n_items) + surprise_of_rest(a + b - both, n_items)
    differ = surprise(a - both, n_items) + surprise(b - both, n_items)
    if agree <= differ * (1.0 + 1e-13):
        return
    # Computing H(X|Y) as the mean of two entropies avoids subtracting large numbers
    given_pred = (b * entropy(both, b) + (n_items - b) * entropy(a - both, n_items - b)) / n_items
    given_true = (a * entropy(both, a) + (n_items - a) * entropy(b - both, n_items - a)) / n_items
    least_true[i] = min(least_true[i], given_pred)
    least_pred[j] = min(least_pred[j], given_true)


@kernel
def least_entropies(bounds, pred, shared_n, true_n, pred_n, n_items, least_true, least_pred):
    """Find the least conditional entropy of each cluster, given a cluster of the other side that overlaps it.

    `bounds` delimit the overlaps of each true cluster. `least_true` (n_true,) and `least_pred` (n_pred,) are
    initially the entropies of the clusters.
    """
    for i in range(true_n.size):
        for o in range(bounds[i], bounds[i + 1]):
            j = pred[o]
            keep_least(shared_n[o], true_n[i], pred_n[j], n_items, i, j, least_true, least_pred)


@kernel
def shared(starts, clusters, u, v):
    """Return the number of clusters that units u and v share, and the first of these, -1 if there is none."""
    a, b = starts[u], starts[v]
    end_a, end_b = starts[u + 1], starts[v + 1]
    common, first = 0, -1
    while a < end_a and b < end_b:
        if clusters[a] == clusters[b]:
            if common == 0:
                first = clusters[a]
            common += 1
            a += 1
            b += 1
        elif clusters[a] < clusters[b]:
            a += 1
        else:
            b += 1
    return common, first


@kernel
def count_shared(starts, clusters, n, rows, keys, bounds, members, pairs):
    """Add the number of pairs of items that share t >= 2 clusters to `pairs[row + t]`, where `row` is that of the unit.

    A unit is a set of items with the same clusters; a group is the units of one cluster, `keys` its cluster, that
    have several clusters. `rows` gives where the counts of a unit begin. Shapes: (units + 1,), (memberships,),
    (units,), (units,), (groups,), (groups + 1,), (entries,), and as `rows` requires.
    """
    for u in range(n.size):
        own = starts[u + 1] - starts[u]
        if own > 1:
            pairs[rows[u] + own] += n[u] * (n[u] - 1) // 2
    for c in range(keys.size):
        for k in range(bounds[c], bounds[c + 1]):
            u = members[k]
            for m in range(k + 1, bounds[c + 1]):
                v = members[m]
                common, first = shared(starts, clusters, u, v)
                if common > 1 and first == keys[c]:
                    pairs[rows[u] + common] += n[u] * n[v]


@kernel
def count_blocks(true_starts, pred_starts):
    """Count the entries of `list_blocks`. Shapes: (units + 1,), (units + 1,) -> int."""
    total = 0
    for u in range(true_starts.size - 1):
        of_true, of_pred = true_starts[u + 1] - true_starts[u], pred_starts[u + 1] - pred_starts[u]
        total += max(of_true * of_pred - 1, 0)
    return total


@kernel
def list_blocks(true_starts, true_clusters, pred_starts, pred_clusters, n_pred, keys, units):
    """List the pairs of a true and a predicted cluster of each unit, except the pair of its last clusters.

    An entry is a key `true * n_pred + pred` and the unit.
    """
    end = 0
    for u in range(true_starts.size - 1):
        last_true, last_pred = true_starts[u + 1] - 1, pred_starts[u + 1] - 1
        for k in range(true_starts[u], last_true + 1):
            for m in range(pred_starts[u], last_pred + 1):
                if k < last_true or m < last_pred:
                    keys[end] = true_clusters[k] * n_pred + pred_clusters[m]
                    units[end] = u
                    end += 1


@kernel
def compare_shared(
    true_starts, true_clusters, pred_starts, pred_clusters, n, rows, keys, bounds, members, n_pred, sums
):
    """Sum over pairs of items that share t >= 1 true and s >= 1 predicted clusters, t * s > 1.

    `sums` (n_rows, 3) receive the sum of t * s, the number of pairs with t = s, and the number of pairs. `keys` are
    blocks of a true and a predicted cluster, as in `list_blocks`; the members of a block are its units. A pair is
    counted in the block of the first clusters that it shares.
    """
    for u in range(n.size):
        t, s = true_starts[u + 1] - true_starts[u], pred_starts[u + 1] - pred_starts[u]
        if t * s > 1:
            add_item_pairs(t, s, n[u] * (n[u] - 1) // 2, rows[u], sums)
    for c in range(keys.size):
        true, pred = keys[c] // n_pred, keys[c] % n_pred
        for k in range(bounds[c], bounds[c + 1]):
            u = members[k]
            for m in range(k + 1, bounds[c + 1]):
                v = members[m]
                t, first_true = shared(true_starts, true_clusters, u, v)
                if first_true == true:
                    s, first_pred = shared(pred_starts, pred_clusters, u, v)
                    if first_pred == pred and t * s > 1:
                        add_item_pairs(t, s, n[u] * n[v], rows[u], sums)


@kernel
def add_item_pairs(t, s, count, row, sums):
    """Add `count` pairs of items that share t true and s predicted clusters to a row of `sums`."""
    sums[row, 0] += count * t * s
    sums[row, 1] += count * (t == s)
    sums[row, 2] += count
