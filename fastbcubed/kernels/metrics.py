"""Sums over cells for scores that are not means over items: pairs, entropies, matchings, edits, coreference."""

from __future__ import annotations

import math

import numpy as np

from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import RUN, add_exactly

HALF = np.uint64(32)
LOW = np.uint64((1 << 32) - 1)


@kernel(words=True)
def add_product(high, low, x, y):
    """Add x * y to a 128-bit sum, and return its upper and lower half. All are uint64."""
    product = x * y
    if (x | y) > LOW:
        x1, x0, y1, y0 = x >> HALF, x & LOW, y >> HALF, y & LOW
        middle = x1 * y0 + ((x0 * y0) >> HALF)
        other = x0 * y1 + (middle & LOW)
        high += x1 * y1 + (middle >> HALF) + (other >> HALF)
    low += product
    if low < product:
        high += np.uint64(1)
    return high, low


@kernel(words=True)
def count_pairs(cells, start, stop, sums):
    """Count ordered pairs of items: together on both sides, in the prediction only, in the truth only.

    The fp and fn of `cells` are counts; `sums` receives the upper and lower half of each count. Shapes: `sums` (3,
    2).
    """
    zero, one = np.uint64(0), np.uint64(1)
    tp1, tp0, fp1, fp0, fn1, fn0 = zero, zero, zero, zero, zero, zero
    for i in range(start, stop):
        n = np.uint64(cells[i].n)
        if n > one:
            tp1, tp0 = add_product(tp1, tp0, n, n - one)
        if cells[i].fp > 0.0:
            fp1, fp0 = add_product(fp1, fp0, n, np.uint64(cells[i].fp))
        if cells[i].fn > 0.0:
            fn1, fn0 = add_product(fn1, fn0, n, np.uint64(cells[i].fn))
    sums[0, 0], sums[0, 1] = tp1, tp0
    sums[1, 0], sums[1, 1] = fp1, fp0
    sums[2, 0], sums[2, 1] = fn1, fn0


@kernel
def weigh_pairs(cells, start, stop, total, sums):
    """Sum weight products of the pairs that `count_pairs` counts, over runs of cells.

    The fp and fn of `cells` are weights, `total` is the weight of all items. `sums` of a run are: the squared weights
    of cells of several items; the pairs in the prediction only, in the truth only, and on neither side. Returns the
    sum of squared weights of one-item cells, and its rounding error. Shapes: `sums` (n_runs, 4).
    """
    single, error = 0.0, 0.0
    run = 0
    for begin in range(start, stop, RUN):
        squares, fp, fn, tn = 0.0, 0.0, 0.0, 0.0
        for i in range(begin, min(begin + RUN, stop)):
            w = cells[i].weight
            if cells[i].n == 1:
                single, error = add_exactly(single, error, w * w)
            else:
                squares += w * w
            fp += w * cells[i].fp
            fn += w * cells[i].fn
            tn += w * max(0.0, total - (w + (cells[i].fp + cells[i].fn)))
        sums[run, 0], sums[run, 1], sums[run, 2], sums[run, 3] = squares, fp, fn, tn
        run += 1
    return single, error


@kernel
def square_weights(weights, start, stop):
    """Return the sum of squares of weights[start:stop], and its rounding error."""
    total, error = 0.0, 0.0
    for i in range(start, stop):
        total, error = add_exactly(total, error, weights[i] * weights[i])
    return total, error


#: For clusters above this share of all weight, the weight outside is not computed by subtraction, which loses digits.
DOMINANT = 0.75
#: The bits of 1.0, of about sqrt(1/2), and the mask of a float's fraction bits.
ONE, ROOT, MANTISSA = 0x3FF << 52, 0x3FE6A09E << 32, (1 << 52) - 1
LARGEST, LOG_2 = 1.7e308, math.log(2.0)
#: Terms of a hypergeometric sum below this share of the largest one are dropped.
NEGLIGIBLE = 1e-22


@kernel
def log_of(x, logs):
    """Return the logarithm of a count, read from the table if it is in range."""
    return logs[x] if x < logs.size else math.log(x)


@kernel
def log_ratio(x, n, logs):
    """Return log(x / n) of counts x >= n, without cancellation when they are close."""
    return math.log1p((x - n) / n) if x - n < n >> 3 else log_of(x, logs) - log_of(n, logs)


@kernel
def count_losses(cells, start, stop, logs, true_items, pred_items, sums):
    """Sum n log(b / n) and n log(a / n) over runs of cells, and count items by cluster size.

    The fp and fn of `cells` are counts; a and b are the sizes of a cell's true and predicted clusters, and `logs` the
    logarithms of 0 (any number), 1, 2, ... Outputs: both sums of each run; `true_items` and `pred_items`, the items
    in clusters of each size, where items in larger clusters are added to the first entry. Shapes: `sums` (n_runs, 2).
    """
    run = 0
    for begin in range(start, stop, RUN):
        of_true, of_pred = 0.0, 0.0
        for i in range(begin, min(begin + RUN, stop)):
            n = np.int64(cells[i].n)
            b, a = n + np.int64(cells[i].fp), n + np.int64(cells[i].fn)
            if b > n:
                of_true += n * log_ratio(b, n, logs)
            if a > n:
                of_pred += n * log_ratio(a, n, logs)
            true_items[a if a < true_items.size else 0] += n
            pred_items[b if b < pred_items.size else 0] += n
        sums[run, 0], sums[run, 1] = of_true, of_pred
        run += 1


@kernel
def take_logs(y, below, n):
    """Replace the first n numbers y >= 0 by log(1 + y / below), within a few units in the last place.

    With 1 + y / below = m 2^e, m from sqrt(1/2) to sqrt(2), and s = (m - 1) / (m + 1), log(m) is 2 (s + s^3 / 3 +
    ...). All steps are vector instructions.
    """
    m = np.empty(n)
    bits = m.view(np.int64)
    for k in range(n):
        y[k] = min(y[k] / below[k], LARGEST)
        m[k] = 1.0 + y[k]
    for k in range(n):
        x = m[k]
        lost = (y[k] - (x - 1.0)) / x
        shifted = bits[k] + (ONE - ROOT)
        e = (shifted >> 52) - 1023
        bits[k] = (shifted & MANTISSA) + ROOT
        s = (m[k] - 1.0) / (m[k] + 1.0)
        z = s * s
        even = 1 / 3 + z * (
            1 / 5
            + z
            * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19)))))))
        )
        y[k] = e * LOG_2 + (2.0 * (s + s * z * even) + lost)


@kernel
def read_ratios(cells, begin, length, total, beside_true, y, below):
    """Write the inputs of `take_logs` for a run of cells: all log(N / a), then the nonzero log(b / w) and log(a / w).

    Returns their number, and the weight of the heaviest cluster of each side; see `weigh_losses`.
    """
    most_true, most_pred = 0.0, 0.0
    n = length
    for k in range(length):
        i = at(begin + k)
        w, fp, fn = cells[i].weight, cells[i].fp, cells[i].fn
        a, b = w + fn, w + fp
        most_true, most_pred = max(most_true, a), max(most_pred, b)
        known = a > DOMINANT * total and beside_true >= 0.0
        y[at(k)], below[at(k)] = beside_true if known else max(0.0, total - a), a
        y[at(n)], below[at(n)] = fp, w
        n += fp > 0.0
        y[at(n)], below[at(n)] = fn, w
        n += fn > 0.0
    return n, most_true, most_pred


@kernel
def weigh_losses(cells, start, stop, total, beside_true, beside_pred, sums):
    """Sum w log(b / w), w log(a / w), w log(N / a) and w log(N / b) over runs of cells.

    The fp and fn of `cells` are weights; a and b are the weights of a cell's true and predicted clusters, N is
    `total`. `beside_true` and `beside_pred` are the weight outside the cluster that holds nearly all weight, negative
    if there is none. Returns the weight of the heaviest cluster of each side. Shapes: `sums` (n_runs, 4).
    """
    # Idea: logarithms cost most, and are taken for a whole run at once in vector instructions. log(N / b) is
    # log(N / a) + log(a / w) - log(b / w), so a cell needs one logarithm, and another for each side where it is
    # not the whole cluster; these follow in `y` in the order of cells, and `n` moves on by a comparison, not a
    # branch.
    most_true, most_pred = 0.0, 0.0
    y, below = np.empty(3 * RUN + 2), np.empty(3 * RUN + 2)
    run = 0
    for begin in range(start, stop, RUN):
        length = min(RUN, stop - begin)
        n, of_most_true, of_most_pred = read_ratios(cells, begin, length, total, beside_true, y, below)
        most_true, most_pred = max(most_true, of_most_true), max(most_pred, of_most_pred)
        take_logs(y, below, n)
        of_true, of_pred, true, pred = 0.0, 0.0, 0.0, 0.0
        n = length
        for k in range(length):
            i = at(begin + k)
            w, fp, fn = cells[i].weight, cells[i].fp, cells[i].fn
            b, to_pred = w + fp, y[at(n)]  # read even if unused, which avoids a branch
            n += fp > 0.0
            to_pred = to_pred if fp > 0.0 else 0.0
            to_true = y[at(n)]
            n += fn > 0.0
            to_true = to_true if fn > 0.0 else 0.0
            of_b = y[at(k)] + (to_true - to_pred)
            if b > DOMINANT * total:  # total - b would have few correct digits
                of_b = math.log1p((beside_pred if beside_pred >= 0.0 else max(0.0, total - b)) / b)
            of_true += w * to_pred
            of_pred += w * to_true
            true += w * y[at(k)]
            pred += w * of_b
        sums[run, 0], sums[run, 1], sums[run, 2], sums[run, 3] = of_true, of_pred, true, pred
        run += 1
    return most_true, most_pred


@kernel
def expect_shared(n, sizes, clusters, start, stop, other_sizes, other_clusters):
    """Sum E[k log(k / mu)] over pairs of clusters, which share k items by chance, mu on average.

    `sizes` and `other_sizes` are the distinct cluster sizes of both sides; `clusters` and `other_clusters`, the numbers
    of clusters of each size.

    Notes
    -----
    k is hypergeometric. Its terms are computed relative to the largest one by their ratios, and divided by their sum.
    Because the mean of k is mu, k log(k / mu) may be replaced by k log(k / mu) - k + mu, which is never negative.
    """
    # Starts at the likeliest k and stops on both sides at negligible terms, so that large clusters need few
    # terms. Factorials of such sizes, or their logarithms, would lose the digits of small expectations.
    total, error = 0.0, 0.0
    for i in range(start, stop):
        for j in range(other_sizes.size):
            a, b = float(sizes[i]), float(other_sizes[j])
            mu = a * (b / n)
            least, most = max(0.0, a + b - n), min(a, b)
            mode = min(most, max(least, math.floor((a + 1.0) * (b + 1.0) / (n + 2.0))))
            chance = 1.0
            whole, loss = 1.0, excess(mode, mu)
            k = mode
            while k < most and chance > NEGLIGIBLE:
                chance *= (a - k) * (b - k) / ((k + 1.0) * (n - a - b + k + 1.0))
                k += 1.0
                whole += chance
                loss += chance * excess(k, mu)
            chance = 1.0
            k = mode
            while k > least and chance > NEGLIGIBLE:
                chance *= k * (n - a - b + k) / ((a - k + 1.0) * (b - k + 1.0))
                k -= 1.0
                whole += chance
                loss += chance * excess(k, mu)
            pairs = float(clusters[i]) * float(other_clusters[j])
            total, error = add_exactly(total, error, pairs * (loss / whole))
    return total + error


@kernel
def excess(k, mu):
    """Return k log(k / mu) - k + mu, which is 0 at k = mu and positive elsewhere."""
    if k == 0.0:
        return mu
    return k * math.log(k / mu) - (k - mu)


@kernel
def log_choices(sizes, others, out):
    """Write log C(size + others, others) for ascending sizes, as sums of logarithms."""
    total, error = 0.0, 0.0
    t = 0
    for j in range(sizes.size):
        if sizes[j] <= others:
            while t < sizes[j]:
                t += 1
                total, error = add_exactly(total, error, math.log1p(others / t))
            out[j] = total + error
        else:
            of_size, rest = 0.0, 0.0
            for k in range(1, others + 1):
                of_size, rest = add_exactly(of_size, rest, math.log1p(sizes[j] / k))
            out[j] = of_size + rest


#: Number of figures summed over clusters: 1, whether the cluster is equal on the other side, its weight, the weight of
#: its largest cell and of the rest, weight * best F, best Jaccard index.
FIGURES = 7
#: Number of cells, or clusters, whose values are summed plainly; the caller adds these sums exactly.
CELLS_PER_SUM = 1 << 12


@kernel
def add_whole(cells, start, stop, outer, true_split, pred_split, true_sums, pred_sums):
    """Sum the figures of one-cell clusters, and list the cells of all other clusters, for each side.

    `outer` states whether the matrices hold counts. Output: sums (runs, FIGURES), and the places of cells of other
    clusters in `true_split` and `pred_split` (n_cells + 1,), whose used lengths are returned.
    """
    n_true = n_pred = 0
    run = 0
    for begin in range(start, stop, CELLS_PER_SUM):
        end = min(begin + CELLS_PER_SUM, stop)
        n_true, n_pred = add_run(
            cells, begin, end, outer, true_split, pred_split, n_true, n_pred, true_sums[run], pred_sums[run]
        )
        run += 1
    return n_true, n_pred


@kernel
def add_run(cells, begin, end, outer, true_split, pred_split, n_true, n_pred, true_sums, pred_sums):
    """Do the work of `add_whole` for one run of cells, without branches, which would often be mispredicted."""
    # Idea: every cell is written to the lists of split clusters, and the length of a list grows only if it
    # belongs there; the next cell then overwrites it. Likewise, a value that does not count is added as 0.
    t_split, p_split, exact = n_true, n_pred, 0
    t_mass, t_f, t_closest = 0.0, 0.0, 0.0
    p_mass, p_f, p_closest = 0.0, 0.0, 0.0
    for k in range(begin, end):
        fp, fn = cells[at(k)].fp, cells[at(k)].fn
        weight = cells[at(k)].weight
        own = np.float64(cells[at(k)].n) if outer else weight
        of_true, of_pred = fn == 0.0, fp == 0.0
        true_split[at(n_true)] = pred_split[at(n_pred)] = k
        n_true += not of_true
        n_pred += not of_pred
        exact += of_true & of_pred
        scaled = weight * (2.0 * own / (2.0 * own + fp + fn))
        jaccard = own / (own + fp + fn)
        t_mass += weight if of_true else 0.0
        p_mass += weight if of_pred else 0.0
        t_f += scaled if of_true else 0.0
        p_f += scaled if of_pred else 0.0
        t_closest += jaccard if of_true else 0.0
        p_closest += jaccard if of_pred else 0.0
    true_sums[0], pred_sums[0] = end - begin - (n_true - t_split), end - begin - (n_pred - p_split)
    true_sums[1] = pred_sums[1] = exact
    true_sums[2], true_sums[3], true_sums[5], true_sums[6] = t_mass, t_mass, t_f, t_closest
    pred_sums[2], pred_sums[3], pred_sums[5], pred_sums[6] = p_mass, p_mass, p_f, p_closest
    true_sums[4] = pred_sums[4] = 0.0
    return n_true, n_pred


@kernel
def count_split(codes, split, bits, bounds):
    """Find where the cells of each range of 2**bits codes begin when sorted by range. Output: (ranges + 1,)."""
    bounds[:] = 0
    for s in range(split.size):
        bounds[at((codes[at(split[at(s)])] >> bits) + 1)] += 1
    for k in range(1, bounds.size):
        bounds[k] += bounds[k - 1]


@kernel
def write_split(cells, codes, split, bits, bounds, of_true, outer, records):
    """Write a record of each listed cell, sorted by range of codes, then in cell order."""
    place = bounds.copy()
    for s in range(split.size):
        k = split[at(s)]
        code = codes[at(k)]
        to = at(place[at(code >> bits)])
        place[at(code >> bits)] += 1
        fp = cells[at(k)].fp
        fn = cells[at(k)].fn
        weight = cells[at(k)].weight
        own = np.float64(cells[at(k)].n) if outer else weight
        records[to].code = code
        records[to].weight = weight
        records[to].own = own
        records[to].others = fn if of_true else fp
        records[to].jaccard = own / (own + fp + fn)


@kernel
def add_best(records, firsts, bounds, first, last, bits, by_item, numbers, best, sums):
    """Sum the figures of the clusters in the ranges first..last of codes.

    The records of block b and range r begin at firsts[b] + bounds[b, r]. Workspaces: `numbers` and `best` have an
    entry for each code of a range, and `best` has one more. Output: `sums` (last - first, FIGURES).
    """
    for part in range(first, last):
        numbers[:] = 0
        count = 0
        for b in range(firsts.size):
            begin, end = firsts[b] + bounds[b, part], firsts[b] + bounds[b, part + 1]
            if begin < end:
                count = keep_best(records[begin:end], part << bits, numbers, best, count)
        add_clusters(best[1 : count + 1], by_item, sums[part - first])


@kernel
def keep_best(records, base, numbers, best, count):
    """Update the best cell of each cluster; return the number of clusters, which are numbered from 1.

    `base` is the first code. A cluster's first cell is processed like any other, because a branch on it would be
    mispredicted.
    """
    for k in range(records.size):
        code = at(records[k].code - base)
        known = np.int64(numbers[code])
        new = known == 0
        count += new
        c = at(count if new else known)
        numbers[code] = c
        own = records[k].own
        jaccard = records[k].jaccard
        larger = new | (own > best[c].own)
        best[c].own = own if larger else best[c].own
        best[c].others = records[k].others if larger else best[c].others
        best[c].jaccard = jaccard if new | (jaccard > best[c].jaccard) else best[c].jaccard
        best[c].weight = (0.0 if new else best[c].weight) + records[k].weight
    return count


@kernel
def add_clusters(best, by_item, total):
    """Sum the figures of clusters, given the best cell of each.

    Where a cell and the rest do not sum to the weight of their cluster, their shares are computed `by_item`.
    """
    total[:] = 0.0
    total[0] = best.size
    for c in range(best.size):
        weight, own, others, jaccard = best[c].weight, best[c].own, best[c].others, best[c].jaccard
        total[2] += weight
        total[3] += weight * (own / (own + others)) if by_item else own
        total[4] += others
        total[5] += weight * (2.0 * jaccard / (1.0 + jaccard))
        total[6] += jaccard


@kernel
def group_edges(rows, columns, gains, starts, columns_by_row, gains_by_row):
    """Sort edges stably by row.

    Shapes: (edges,) three times, then the outputs: (rows + 1,), initially 0, and (edges,) twice.
    """
    n_rows = starts.size - 1
    for e in range(rows.size):
        starts[rows[e] + 1] += 1
    for i in range(n_rows):
        starts[i + 1] += starts[i]
    for e in range(rows.size):
        to = starts[rows[e]]
        starts[rows[e]] = to + 1
        columns_by_row[to] = columns[e]
        gains_by_row[to] = gains[e]
    for i in range(n_rows, 0, -1):
        starts[i] = starts[i - 1]
    starts[0] = 0


@kernel
def push(keys, nodes, size, key, node):
    """Add an entry to a min-heap of `size` entries."""
    at = size
    while at:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at] = keys[above]
        nodes[at] = nodes[above]
        at = above
    keys[at] = key
    nodes[at] = node


@kernel
def drop_first(keys, nodes, size):
    """Remove the smallest entry from a heap, which has `size` entries afterwards."""
    key, node = keys[size], nodes[size]
    at = 0
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[at] = keys[below]
        nodes[at] = nodes[below]
        at = below
    keys[at] = key
    nodes[at] = node


@kernel
def pair_rows(first, edges, prices, pairs, space, patience):
    """Pair rows, starting at `first`, with columns so as to maximize the total gain of all pairs so far.

    Returns the first unprocessed row, and the number of edges visited, at most about `patience`. `edges` are (starts,
    columns, gains) by row; gains are positive. `prices` are a number for each row and for each column, whose sum is
    at least the gain of an edge, and equals it for a pair; initially the largest gain of a row, and 0. `pairs` (edge
    of each row, row of each column) are -1 if unpaired. `space` is workspace: for each column the distance, infinite
    between searches, and the edge and row from which it was reached; the visited columns; a heap of edges.
    """
    starts, columns, _ = edges
    edge_of, row_of = pairs
    _, came_by, came_from, _, _, _ = space
    work = 0
    for root in range(first, starts.size - 1):
        if work > patience:
            return root, work
        best, last_row, column, n_seen, looks = search(root, edges, prices, row_of, space)
        work += looks
        change_prices(root, best, n_seen, prices, row_of, space)
        if column < 0:
            if last_row == root:
                continue
            column = columns[edge_of[last_row]]
            edge_of[last_row] = -1
        row = -1
        while row != root:
            row = came_from[column]
            before = edge_of[row]
            edge_of[row] = came_by[column]
            row_of[column] = row
            if row != root:
                column = columns[before]
    return starts.size - 1, work


@inlined
def search(root, edges, prices, row_of, space):
    """Find the cheapest path from row `root`.

    Returns its cost, last row, last column or -1, and the numbers of visited columns and edges.
    """
    # Idea: Dijkstra's algorithm on the costs price + price - gain, which are never below 0, and 0 for pairs. A
    # path ends at a free column, or at a row that gives up its column. `best` is the cheapest end so far: no
    # farther row is visited, so that most searches see few edges. An algorithm on a dense matrix would take the
    # square of the clusters in memory, and their cube in time.
    starts, columns, gains = edges
    row_price, column_price = prices
    distance, came_by, came_from, seen, heap_keys, heap_nodes = space
    best = row_price[root]  # the cost of leaving the root unpaired
    last_row, last_column = root, -1
    size, n_seen, work = 0, 0, 0
    row, so_far = root, 0.0
    while row >= 0 and so_far < best:
        price = row_price[row]
        if so_far + price < best:
            best = so_far + price
            last_row, last_column = row, -1
        work += starts[row + 1] - starts[row]
        for e in range(starts[row], starts[row + 1]):
            column = columns[e]
            way = so_far + max(0.0, price + column_price[column] - gains[e])
            if way < best and way < distance[column]:
                if distance[column] == np.inf:
                    seen[n_seen] = column
                    n_seen += 1
                distance[column] = way
                came_by[column] = e
                came_from[column] = row
                if row_of[column] < 0:
                    best = way
                    last_column = column
                else:
                    push(heap_keys, heap_nodes, size, way, column)
                    size += 1
        row, so_far, size = next_row(heap_keys, heap_nodes, size, distance, row_of)
    return best, last_row, last_column, n_seen, work


@inlined
def next_row(heap_keys, heap_nodes, size, distance, row_of):
    """Pop the next reachable row, or -1, from the heap; return it, its distance and the size of the heap."""
    while size:
        so_far, column = heap_keys[0], heap_nodes[0]
        size -= 1
        drop_first(heap_keys, heap_nodes, size)
        if so_far == distance[column]:  # otherwise a shorter path has been found since
            return row_of[column], so_far, size
    return -1, 0.0, size


@inlined
def change_prices(root, best, n_seen, prices, row_of, space):
    """Update prices after a search, so that those of a pair sum to its gain, and reset the distances."""
    row_price, column_price = prices
    distance, _, _, seen, _, _ = space
    row_price[root] -= best
    for k in range(n_seen):
        column = seen[k]
        change = best - distance[column]
        if change > 0:
            row_price[row_of[column]] = max(0.0, row_price[row_of[column]] - change)
            column_price[column] += change
        distance[column] = np.inf


#: Mark of a predicted cluster, one of whose largest cells is a whole true cluster, which no other cluster can keep.
SURE = -1


@kernel
def keep_majorities(cells, pred, parts, first, last, only, tied):
    """Find the largest cells of predicted clusters, and whether each cluster can keep the true cluster of one of them.

    A true cluster is kept by at most one predicted cluster. Each of the `parts` contains all cells of its predicted
    clusters. Outputs: `only`, true clusters of several cells that are the only majority of some predicted cluster;
    `tied`, (true, predicted) clusters of cells that tie for the largest, none of which is a whole true cluster.
    Returns the items in largest cells, the number of clusters that keep a true cluster no other can, and the lengths
    of `only` and `tied`. Shapes: `parts` (n_parts + 1,), `tied` (n_cells, 2).
    """
    items, matched, n_only, n_tied = 0, 0, 0, 0
    for part in range(first, last):
        found = keep_part(cells, pred, parts[part], parts[part + 1], only[n_only:], tied[n_tied:])
        items += found[0]
        matched += found[1]
        n_only += found[2]
        n_tied += found[3]
    return items, matched, n_only, n_tied


@kernel
def keep_part(cells, pred, start, stop, only, tied):
    """Do the work of `keep_majorities` for one part."""
    # Idea: codes of a part are close together, so that arrays by code - low replace a hash table. Which cells are
    # the largest is known only after all of them, so the first pass counts and the last one lists. A largest cell
    # that is a whole true cluster is SURE: no other predicted cluster can keep that one, so its rivals need no
    # matching.
    items, matched, n_only, n_tied = 0, 0, 0, 0
    if start == stop:
        return items, matched, n_only, n_tied
    low, high = pred[start], pred[start]
    for i in range(start, stop):
        low, high = min(low, pred[i]), max(high, pred[i])
    largest, rivals = np.zeros(high - low + 1, np.int64), np.zeros(high - low + 1, np.int32)
    for i in range(start, stop):
        n = cells[i].n
        whole_class = cells[i].fn == 0.0
        if cells[i].fp == 0.0:
            items += n
            matched += whole_class
            only[n_only] = cells[i].true
            n_only += not whole_class
            continue
        k = pred[i] - low
        if n > largest[k]:
            largest[k] = n
            rivals[k] = SURE if whole_class else 1
        elif n == largest[k] and rivals[k] != SURE:
            rivals[k] = SURE if whole_class else rivals[k] + 1
    for k in range(largest.size):
        items += largest[k]
        matched += rivals[k] == SURE
    for i in range(start, stop):
        if cells[i].fp == 0.0 or cells[i].fn == 0.0:
            continue
        k = pred[i] - low
        if cells[i].n == largest[k] and rivals[k] == 1:
            only[n_only] = cells[i].true
            n_only += 1
        elif cells[i].n == largest[k] and rivals[k] > 1:
            tied[n_tied, 0], tied[n_tied, 1] = cells[i].true, pred[i]
            n_tied += 1
    return items, matched, n_only, n_tied


@kernel
def match(first, rights, n_right):
    """Return the size of a maximum bipartite matching (Hopcroft and Karp).

    Shapes: `first` (n_left + 1,), the beginning of each left node's edges; `rights` (n_edges,), each edge's right
    node.
    """
    n_left = first.size - 1
    of_left, of_right = np.full(n_left, -1), np.full(n_right, -1)
    depth, queue = np.empty(n_left, np.int64), np.empty(n_left, np.int64)
    edge, path = np.empty(n_left, np.int64), np.empty(n_left, np.int64)
    matched = match_greedily(first, rights, of_left, of_right)
    while find_layers(first, rights, of_left, of_right, depth, queue):
        for u in range(n_left):
            edge[u] = first[u]  # each edge is tried once per phase
        for root in range(n_left):
            if of_left[root] < 0:
                matched += find_path(root, first, rights, of_left, of_right, depth, edge, path)
    return matched


@kernel
def match_greedily(first, rights, of_left, of_right):
    """Match each left node with the first free right node; return the number matched."""
    matched = 0
    for u in range(of_left.size):
        for e in range(first[u], first[u + 1]):
            if of_right[rights[e]] < 0:
                of_left[u], of_right[rights[e]] = rights[e], u
                matched += 1
                break
    return matched


@kernel
def find_layers(first, rights, of_left, of_right, depth, queue):
    """Search breadth-first from free left nodes along alternating paths; return whether a path ends at a free node."""
    head, tail = 0, 0
    for u in range(of_left.size):
        depth[u] = -1
        if of_left[u] < 0:
            depth[u] = 0
            queue[tail] = u
            tail += 1
    found = False
    while head < tail:
        u = queue[head]
        head += 1
        for e in range(first[u], first[u + 1]):
            v = of_right[rights[e]]
            if v < 0:
                found = True
            elif depth[v] < 0:
                depth[v] = depth[u] + 1
                queue[tail] = v
                tail += 1
    return found


@kernel
def find_path(root, first, rights, of_left, of_right, depth, edge, path):
    """Search depth-first through the layers for a path between free nodes, and match along it; return 1 if found."""
    length = 1
    path[0] = root
    while length > 0:
        u = path[length - 1]
        if edge[u] == first[u + 1]:
            depth[u] = -1
            length -= 1
            if length > 0:
                edge[path[length - 1]] += 1
            continue
        v = of_right[rights[edge[u]]]
        if v < 0:
            for at in range(length):
                right = rights[edge[path[at]]]
                of_left[path[at]], of_right[right] = right, path[at]
            return 1
        if depth[v] == depth[u] + 1:
            path[length] = v
            length += 1
        else:
            edge[u] += 1
    return 0


@kernel
def gather(codes, sizes, gathered, last, before):
    """Write, for each cell, the size of the previous cell of its cluster, and the size of all its earlier cells.

    Outputs: `last`, the size of the previous cell, 0 for a cluster's first; `before`, the total size of all earlier
    cells. `gathered` is workspace by cluster, initially 0. Shapes: `codes`, `sizes`, `last`, `before` (n_cells,).
    """
    newest = np.zeros(gathered.size)
    for i in range(codes.size):
        code = codes[i]
        last[i], before[i] = newest[code], gathered[code]
        gathered[code] += newest[code]
        newest[code] = sizes[i]
