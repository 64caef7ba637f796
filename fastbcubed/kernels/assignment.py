"""The best one-to-one pairing in a sparse table: shortest augmenting paths with dual prices.

One row after the other is paired. From the new row, Dijkstra's algorithm looks for the cheapest way
to end: at a column that is free, or by leaving some row alone; on its way paired rows may change
over to another column. Searches never leave the connected component of their row, and most end at
once. Where the gains are integers below 2**53, all arithmetic is exact.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import kernel

__all__ = ["group_edges", "number_codes", "pair_rows"]


@kernel
def number_codes(codes, numbers):
    """Write over each code its number in order of first appearance; `numbers` comes as -1 by code.

    Shapes: (edges,), (codes,) -> how many codes there are.
    """
    count = 0
    for i in range(codes.size):
        k = codes[i]
        if numbers[k] < 0:
            numbers[k] = count
            count += 1
        codes[i] = numbers[k]
    return count


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
def pair_rows(
    first,
    starts,
    columns,
    gains,
    row_price,
    column_price,
    edge_of,
    row_of,
    distance,
    came_by,
    came_from,
    seen,
    heap_keys,
    heap_nodes,
    patience,
):
    """Pair the rows from `first` on, so that the sum of gains over all pairs so far is the largest.

    Parameters
    ----------
    first : int
        The first row that has had no turn.
    starts, columns, gains : (rows + 1,), (edges,), (edges,)
        The edges of each row; gains are positive.
    row_price, column_price : float64 (rows,), (columns,)
        row + column price >= gain, with equality for pairs: the largest gain of a row, and 0, on entry.
    edge_of, row_of : int (rows,), (columns,)
        The edge of each paired row and the row of each paired column, else -1.
    distance : float64 (columns,)
        Infinite between searches.
    came_by, came_from, seen : int workspace (columns,)
    heap_keys, heap_nodes : workspace (edges,)
    patience : int
        Edges to look at before the kernel returns.

    Returns
    -------
    int, int
        The first row that has had no turn, and how many edges were looked at.
    """  # fmt: skip
    work = 0
    for root in range(first, starts.size - 1):
        if work > patience:
            return root, work
        best = row_price[root]  # what it costs to leave the root alone
        last_row, last_column = root, -1
        size, n_seen = 0, 0
        row, so_far = root, 0.0
        while True:
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
            row = -1
            while size and row < 0:
                so_far, column = heap_keys[0], heap_nodes[0]
                size -= 1
                drop_first(heap_keys, heap_nodes, size)
                if so_far == distance[column]:  # else a shorter way was found since
                    row = row_of[column]
            if row < 0 or so_far >= best:
                break
        row_price[root] -= best
        for k in range(n_seen):
            column = seen[k]
            change = best - distance[column]
            if change > 0:
                row_price[row_of[column]] = max(0.0, row_price[row_of[column]] - change)
                column_price[column] += change
            distance[column] = np.inf
        column = last_column
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
