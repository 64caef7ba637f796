"""Connected components by union-find, and sums by component."""

from __future__ import annotations

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import at, kernel

#: Number of pairs whose parents are read at once.
AT_ONCE = 64


@kernel
def find_root(parents, node):
    """Return the smallest node known to be connected with a node, and halve the path to it."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@kernel
def join_nodes(parents, a, b):
    """Connect two nodes. The smaller root becomes the root of both, so a parent is never larger than its node."""
    a = find_root(parents, a)
    b = find_root(parents, b)
    if a < b:
        parents[b] = a
    else:
        parents[a] = b


@kernel
def number_components(parents):
    """Assign numbers to components in order of their first node, and return their number.

    On return `parents` is the component of each node; a node with parent -1 is in none.
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
    """Join the nodes of each pair. Shapes: (pairs,), (pairs,), (nodes,); `parents` is initially 0 to nodes - 1.

    The parents of a few pairs are read before these are joined: their cache misses overlap, whereas each
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

    Shapes: (pairs,), (pairs,), (nodes,) -> number of components; `parents` is initially 0 to nodes - 1
    and on return the component of each node.
    """
    join_pairs(left, right, parents)
    return number_components(parents)


@kernel
def join_cells(cells, pred, total, firsts, parents):
    """Join the true clusters that share a predicted cluster, and summarize the cells that join nothing.

    These are cells whose two clusters are the same; their true cluster stays at -1. Of those with weight, returns
    their number, the sum of their squared shares of `total`, the largest share, and its true cluster.
    Shapes: records (n,), (n,), (n_pred,), (n_true,); `firsts`, the first true cluster of each predicted one, and
    `parents` are initially -1.
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
    """Join all clusters of each row of memberships; the node of a cluster is `base` plus its code.

    Shapes: (n + 1,), (n_memberships,), (n,), (n_nodes,); `nodes` is a node to which each row is joined, or -1, and
    is assigned one.
    """
    for row in range(nodes.size):
        for k in range(offsets[row], offsets[row + 1]):
            node = base + codes[k]
            if nodes[row] < 0:
                nodes[row] = node
            join_nodes(parents, nodes[row], node)


@kernel
def order_by_code(codes, places, order):
    """Write positions in order of their codes, without negative codes.

    `places` is where the positions of each code begin, and on return where they end.
    """
    for i in range(codes.size):
        code = codes[i]
        if code >= 0:
            order[places[code]] = i
            places[code] += 1


@kernel
def square_sums(values, first, starts, unit, sums):
    """Add up the values of several scores by unit, and the squared sums of complete units.

    The values (scores, n) begin at `first`, in the order of units; `starts` is where each unit begins. `sums`
    (3, scores) are the sums of the unfinished unit, as two floats, and the squares. Returns the next unit.
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
