"""Dense codes by a hash table, and connected components by union-find."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.hashing import fold
from fastbcubed.kernels.jit import kernel

SECRET, FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@kernel
def number_keys(keys, table, codes, rows):
    """Give distinct keys numbers in order of first appearance.

    Shapes: (n,), (power of two >= 2 n, all -1), (n,), (n,) -> number of distinct keys; `codes` gets
    the number of each key, `rows` the row where each number appears first.
    """
    mask = np.uint64(table.size - 1)
    count = 0
    for i in range(keys.size):
        slot = fold(np.uint64(keys[i]) ^ SECRET, FACTOR) & mask
        while table[slot] >= 0 and keys[rows[table[slot]]] != keys[i]:
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            table[slot] = count
            rows[count] = i
            count += 1
        codes[i] = table[slot]
    return count


@kernel
def find_components(left, right, parents):
    """Join the nodes of each pair; then number the components in order of their first node.

    The smaller node is always the root, so the numbering needs one pass. Paths are halved.
    Shapes: (pairs,), (pairs,), (nodes,) -> number of components; `parents` comes as 0 to nodes - 1
    and leaves as the component of each node.
    """
    for i in range(left.size):
        a, b = left[i], right[i]
        while parents[a] != a:
            parents[a] = parents[parents[a]]
            a = parents[a]
        while parents[b] != b:
            parents[b] = parents[parents[b]]
            b = parents[b]
        if a < b:
            parents[b] = a
        else:
            parents[a] = b
    count = 0
    for node in range(parents.size):
        if parents[node] == node:
            parents[node] = count
            count += 1
        else:
            parents[node] = parents[parents[node]]
    return count
