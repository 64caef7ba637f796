"""Connected components by union-find."""

from __future__ import annotations

from fastbcubed.kernels.jit import kernel


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
def find_components(left, right, parents):
    """Join the nodes of each pair, then number the components.

    Shapes: (pairs,), (pairs,), (nodes,) -> number of components; `parents` comes as 0 to nodes - 1
    and leaves as the component of each node.
    """
    for i in range(left.size):
        join_nodes(parents, left[i], right[i])
    return number_components(parents)


@kernel
def join_cells(cells, pred, firsts, parents):
    """Join the true clusters that meet in a predicted cluster; return how many cells are exact clusters.

    These join nothing, and their true cluster stays at -1.
    Shapes: records (n,), (n,), (n_pred,), (n_true,); `firsts`, the first true cluster of each predicted one, and
    `parents` come as -1.
    """
    n_exact = 0
    for i in range(cells.size):
        if cells[i].fp == 0.0 and cells[i].fn == 0.0:
            n_exact += 1
            continue
        true = cells[i].true
        if parents[true] < 0:
            parents[true] = true
        first = firsts[pred[i]]
        if first < 0:
            firsts[pred[i]] = true
        elif first != true:
            join_nodes(parents, true, first)
    return n_exact


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
