"""The best one-to-one pairing in a sparse table: shortest augmenting paths with dual prices.

One row after the other is paired. From the new row, Dijkstra's algorithm looks for the cheapest way
to end: at a column that is free, or by leaving some row alone; on its way paired rows may change
over to another column. Searches never leave the connected component of their row, and most end at
once. Where the gains are integers below 2**53, all arithmetic is exact.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import inlined, kernel


@kernel
def group_edges(rows, columns, gains, starts, columns_by_row, gains_by_row):
    """Bring the edges of each row together, in order.

    Shapes: (edges,) three times, then outputs (rows + 1,), zeros on entry, and (edges,) twice.
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
    """Add an entry to a heap of `size` entries, smallest key first."""
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
    """Take the first entry out of a heap that has `size` entries after."""
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
    """Pair the rows from `first` on, so that the sum of gains over all pairs so far is the largest.

    Return the first row that has had no turn, and how many edges were looked at, about `patience` at most.
    `edges` (starts, columns, gains) are those of each row; gains are positive. `prices` (by row, by column): their
    sum is the gain at least, and the gain for pairs; the largest gain of a row, and 0, on entry. `pairs` (edge of
    each row, row of each column) are -1 where there is none. `space` is workspace: by column the distance, which is
    infinite between searches, the edge and the row that a column was reached by, columns seen; a heap of edges.
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
    """Find the cheapest way from a row: its cost, last row, last column or -1, columns seen, edges looked at."""
    starts, columns, gains = edges
    row_price, column_price = prices
    distance, came_by, came_from, seen, heap_keys, heap_nodes = space
    best = row_price[root]  # what it costs to leave the root alone
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
    """Take the row that is reached next from the heap, or -1; return its distance and the size of the heap, too."""
    while size:
        so_far, column = heap_keys[0], heap_nodes[0]
        size -= 1
        drop_first(heap_keys, heap_nodes, size)
        if so_far == distance[column]:  # else a shorter way was found since
            return row_of[column], so_far, size
    return -1, 0.0, size


@inlined
def change_prices(root, best, n_seen, prices, row_of, space):
    """Change the prices so that those of new pairs add up to their gain, and forget the distances."""
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
