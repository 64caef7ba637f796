"""Connected components by union-find, and sums by component."""

from __future__ import annotations

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import at, kernel

#: Pairs whose parents are read at once.
AT_ONCE = 64


@kernel
def find_root(parents, node):
    """Return the smallest node known to be connected with a node; the path to it is halved."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@kernel
def join_nodes(parents, a, b):
    """Connect two nodes. The smaller root becomes that of both, so a parent is never larger than its node."""
    a = find_root(parents, a)
    b = find_root(parents, b)
    if a < b:
        parents[b] = a
    else:
        parents[a] = b


@kernel
def number_components(parents):
    """Give components numbers in order of their first node, and return how many there are.

    `parents` leaves as the component of each node; a node whose parent is -1 is in none.
    """
    count = 0
    for node in range(parents.size):
        if parents[node] == node:
            parents[node] = count
            count += 1
        elif parents[node] >= 0:
            parents[node] = parents[parents[node]]
    return count


@kernel
def join_pairs(left, right, parents):
    """Join the nodes of each pair. Shapes: (pairs,), (pairs,), (nodes,); `parents` is 0 to nodes - 1 at first.

    The parents of a few pairs are read at once before these are joined: so many misses of the cache overlap, while a
    join waits for the one before it. Returns the smallest parent that was read.
    """
    least = 0
    for start in range(0, left.size, AT_ONCE):
        stop = min(start + AT_ONCE, left.size)
        for i in range(start, stop):
            least = min(least, parents[at(left[at(i)])], parents[at(right[at(i)])])
        for i in range(start, stop):
            join_nodes(parents, left[at(i)], right[at(i)])
    return least


@kernel
def find_components(left, right, parents):
    """Join the nodes of each pair, then number the components.

    Shapes: (pairs,), (pairs,), (nodes,) -> number of components; `parents` comes as 0 to nodes - 1
    and leaves as the component of each node.
    """
    join_pairs(left, right, parents)
    return number_components(parents)


@kernel
def join_cells(cells, pred, total, firsts, parents):
    """Join the true clusters that meet in a predicted cluster, and tell what is of cells that join nothing.

    These are cells whose two clusters are the same; their true cluster stays at -1. What comes back of those with
    weight: how many there are, the squares of their shares of `total` added up, the largest share, and whose it is.
    Shapes: records (n,), (n,), (n_pred,), (n_true,); `firsts`, the first true cluster of each predicted one, and
    `parents` come as -1.
    """
    n, squares, largest, heaviest = 0, 0.0, 0.0, -1
    for i in range(cells.size):
        true = cells[i].true
        if cells[i].fp == 0.0 and cells[i].fn == 0.0:
            share = cells[i].weight / total
            n += share > 0.0
            squares += share * share
            if share > largest:
                largest, heaviest = share, i
            continue
        if parents[true] < 0:
            parents[true] = true
        first = firsts[pred[i]]
        if first < 0:
            firsts[pred[i]] = true
        elif first != true:
            join_nodes(parents, true, first)
    return n, squares, largest, heaviest


@kernel
def read_codes(cells, codes_of_true, codes):
    """Write the code of the true cluster of each cell."""
    for i in range(cells.size):
        codes[i] = codes_of_true[cells[i].true]


@kernel
def join_sets(offsets, codes, base, nodes, parents):
    """Join the clusters of each row of memberships, whose nodes begin at `base`, and with its other clusters.

    Shapes: (n + 1,), (n_memberships,), (n,), (n_nodes,); `nodes` is a node of each row, or -1 at first, and
    gets one.
    """
    for row in range(nodes.size):
        for k in range(offsets[row], offsets[row + 1]):
            node = base + codes[k]
            if nodes[row] < 0:
                nodes[row] = node
            join_nodes(parents, nodes[row], node)


@kernel
def order_by_code(codes, places, order):
    """Write positions in the order of their codes; a negative code is left out.

    `places` is where the positions of each code begin, and leaves as where they end.
    """
    for i in range(codes.size):
        code = codes[i]
        if code >= 0:
            order[places[code]] = i
            places[code] += 1


@kernel
def square_sums(values, first, starts, unit, sums):
    """Add up values of several scores by unit, and the squares of the sums of units that are complete.

    The values (scores, n) stand from `first` on in the order of units; `starts` is where each unit begins. `sums`
    (3, scores) are the sums of the unit that goes on, as two floats, and the squares. Returns the next unit.
    """
    for i in range(values.shape[1]):
        for k in range(values.shape[0]):
            sums[0, k], sums[1, k] = add_exactly(sums[0, k], sums[1, k], values[k, i])
        if first + i + 1 == starts[unit + 1]:
            for k in range(values.shape[0]):
                total = sums[0, k] + sums[1, k]
                sums[2, k] += total * total
            sums[:2] = 0.0
            unit += 1
    return unit
