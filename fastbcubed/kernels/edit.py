"""Majorities of predicted clusters, and the largest matching of clusters with their majority classes."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import kernel

__all__ = ["SEEN", "TAKEN", "gather", "keep_majorities", "list_broken", "match"]

#: What is known of a class: it has a listed cell, or it is the only majority class of some cluster.
SEEN, TAKEN = 1, 2


@kernel
def list_broken(cells, pred, start, stop, out):
    """List the cells that are not whole clusters on both sides: true and predicted cluster, and items.

    The number of items is negative where they are a whole predicted cluster. Returns how many cells are
    listed, and the items of the others. The shape of `out` is (n_cells, 3).
    """
    count, items = 0, 0
    for i in range(start, stop):
        if cells[i].fp == 0.0 and cells[i].fn == 0.0:
            items += cells[i].n
        else:
            n = cells[i].n
            out[count, 0], out[count, 1], out[count, 2] = (
                cells[i].true,
                pred[i],
                n if cells[i].fp > 0.0 else -n,
            )
            count += 1
    return count, items


@kernel
def keep_majorities(listed, largest, state):
    """Find the largest cell of each predicted cluster, and match the clusters that have one such cell.

    Returns the items in largest cells, how many classes are matched, how many of the listed cells are
    largest cells of clusters with several (these come first in `listed` then), and how many classes and
    clusters the listed cells belong to.

    Parameters
    ----------
    listed : int (n, 3)
        Cells as `list_broken` lists them, those of a cluster all or none; reordered.
    largest : int (n_pred, 2), zeros
        Output: the size of the largest cell of each predicted cluster, and how many have that size.
    state : int8, by true cluster, zeros
        Output: SEEN or TAKEN.
    """
    classes, clusters, items, matched, tied = 0, 0, 0, 0, 0
    for k in range(len(listed)):
        true, pred, n = listed[k, 0], listed[k, 1], listed[k, 2]
        if state[true] == 0:
            state[true] = SEEN
            classes += 1
        if n < 0:
            clusters += 1
            items -= n
            if state[true] != TAKEN:
                state[true] = TAKEN
                matched += 1
            continue
        most = largest[pred, 0]
        clusters += most == 0
        if n > most:
            largest[pred, 0], largest[pred, 1] = n, 1
        elif n == most:
            largest[pred, 1] += 1
    for k in range(len(listed)):
        true, pred, n = listed[k, 0], listed[k, 1], listed[k, 2]
        if n < 0 or n < largest[pred, 0]:
            continue
        if largest[pred, 1] == 1:
            items += n
            if state[true] != TAKEN:
                state[true] = TAKEN
                matched += 1
        else:
            listed[tied, 0], listed[tied, 1] = true, pred
            tied += 1
    for k in range(tied):
        pred = listed[k, 1]
        if largest[pred, 1] > 0:
            items += largest[pred, 0]
            largest[pred, 1] = 0
    return items, matched, tied, classes, clusters


@kernel
def match(first, rights, n_right):
    """Return the size of the largest matching of a bipartite graph (Hopcroft and Karp).

    Parameters
    ----------
    first : int64 (n_left + 1,)
        Where the edges of each left node begin.
    rights : int64 (n_edges,)
        The right node of each edge.
    n_right : int
        Right nodes.
    """
    n_left = first.size - 1
    of_left, of_right = np.full(n_left, -1), np.full(n_right, -1)
    depth, queue = np.empty(n_left, np.int64), np.empty(n_left, np.int64)
    edge, path = np.empty(n_left, np.int64), np.empty(n_left, np.int64)
    matched = 0
    for u in range(n_left):
        for e in range(first[u], first[u + 1]):
            if of_right[rights[e]] < 0:
                of_left[u], of_right[rights[e]] = rights[e], u
                matched += 1
                break
    while True:
        # Breadth first, from the left nodes that are free, along paths that alternate.
        head, tail = 0, 0
        for u in range(n_left):
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
        if not found:
            return matched
        # Depth first, layer by layer; each edge is tried once.
        for u in range(n_left):
            edge[u] = first[u]
        for root in range(n_left):
            if of_left[root] >= 0:
                continue
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
                    matched += 1
                    length = 0
                elif depth[v] == depth[u] + 1:
                    path[length] = v
                    length += 1
                else:
                    edge[u] += 1


@kernel
def gather(codes, sizes, gathered, last, before):
    """Note what each cluster has gathered when a cell comes, the cell that came last, and what was before.

    Parameters
    ----------
    codes : int (n_cells,)
        The cluster of each cell.
    sizes : float64 (n_cells,)
        The size of each cell.
    gathered : float64, by cluster, zeros
        Workspace.
    last : float64 (n_cells,) output
        Size of the cell of the same cluster that came last; 0 for the first one.
    before : float64 (n_cells,) output
        Size of all that came before that one.
    """
    newest = np.zeros(gathered.size)
    for i in range(codes.size):
        code = codes[i]
        last[i], before[i] = newest[code], gathered[code]
        gathered[code] += newest[code]
        newest[code] = sizes[i]
