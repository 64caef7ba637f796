"""Majorities of predicted clusters, and the largest matching of clusters with their majority classes."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import kernel

#: A largest cell of the cluster is a whole class, which no other cluster can keep.
SURE = -1


@kernel
def keep_majorities(cells, pred, parts, first, last, only, tied):
    """Find the largest cells of predicted clusters, and whether the cluster can keep the class of one.

    Returns the items in largest cells, how many clusters keep a class that no other can, and how much was
    put into `only` and `tied`.

    In the parts of `parts` cells have predicted clusters of their own. Outputs: `only`, true clusters in
    several cells that are the only majority class of some cluster; `tied`, true and predicted clusters of
    cells that are largest with others, none of which is a whole class. Shapes: `parts` (n_parts + 1,), `tied`
    (n_cells, 2).
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
    """Do the same for one part."""
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
    """Return the size of the largest matching of a bipartite graph (Hopcroft and Karp).

    Shapes: (n_left + 1,) where the edges of each left node begin, (n_edges,) the right node of each.
    """
    n_left = first.size - 1
    of_left, of_right = np.full(n_left, -1), np.full(n_right, -1)
    depth, queue = np.empty(n_left, np.int64), np.empty(n_left, np.int64)
    edge, path = np.empty(n_left, np.int64), np.empty(n_left, np.int64)
    matched = match_greedily(first, rights, of_left, of_right)
    while find_layers(first, rights, of_left, of_right, depth, queue):
        edge[:] = first[:-1]  # each edge is tried once
        for root in range(n_left):
            if of_left[root] < 0:
                matched += find_path(root, first, rights, of_left, of_right, depth, edge, path)
    return matched


@kernel
def match_greedily(first, rights, of_left, of_right):
    """Match each left node with the first right node that is free; return how many are matched."""
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
    """Search breadth first, from the free left nodes along alternating paths; tell whether one ends at a free node."""
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
    """Search depth first, layer by layer, for a path from a free node to another, and match along it; 1 if there is."""
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
    """Note what each cluster has gathered when a cell comes, the cell that came last, and what was before.

    Outputs: `last`, the size of the cell of the same cluster that came last, 0 for the first one; `before`,
    the size of all that came before that one. `gathered` is workspace, by cluster, zeros. Shapes: `codes`,
    `sizes`, `last`, `before` (n_cells,).
    """
    newest = np.zeros(gathered.size)
    for i in range(codes.size):
        code = codes[i]
        last[i], before[i] = newest[code], gathered[code]
        gathered[code] += newest[code]
        newest[code] = sizes[i]
