"""Edges by their scores → the order of items in which every cluster, at whatever threshold, is a stretch.

Between two neighbours of that order stands the level at which their clusters become one. So a cluster is what stands
between two higher levels, and the lowest cluster that holds two items is told by the highest level between them.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.fetching import fetch
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.numbering import number_codes

#: Bits of a key that one pass of a sort looks at.
DIGIT = 11
#: Links, merges or items whose places are fetched ahead, so that one does not wait for the memory of another.
AHEAD = 16


@kernel
def write_keys(scores, start, stop, ascending, keys):
    """Write keys that ascend as links come, and return the least and the greatest; there is no NaN among the scores.

    Shapes: (n,) -> (n,), which may be the same memory. Zeros of either sign are one score.
    """
    bits = (scores[start:stop] + 0.0).view(np.int64)
    least, most = ~np.uint64(0), np.uint64(0)
    for i in range(bits.size):
        key = np.uint64(bits[i]) ^ np.uint64(0x8000000000000000)
        if bits[i] < 0:
            key = ~np.uint64(bits[i])
        key = key if ascending else ~key
        keys[start + i] = key
        least, most = min(least, key), max(most, key)
    return least, most


@kernel
def count_ranges(keys, start, stop, least, shift, counts):
    """Count the keys of a block by range; ranges are as wide as `shift` bits are, from the least key on."""
    for i in range(start, stop):
        counts[at((keys[at(i)] - least) >> shift)] += 1


@kernel
def scatter_links(keys, left, right, start, stop, least, shift, places, sorted_keys, links):
    """Put the keys of a block, and both items of their links, into their ranges; `places` is where each goes on."""
    for i in range(start, stop):
        key = keys[at(i)]
        value = at((key - least) >> shift)
        place = places[value]
        places[value] = place + 1
        sorted_keys[at(place)] = key
        links[at(place)].left, links[at(place)].right = left[at(i)], right[at(i)]


@kernel
def sort_range(keys, links, least, shift, spare_keys, spare_links, counts):
    """Sort the keys of a range, and their links; those of equal keys stay in their order.

    Shapes: (n,) of all four; `counts` (2 ** DIGIT,) is scratch.
    """
    mask, in_place = np.uint64((1 << DIGIT) - 1), True
    for low in range(0, shift, DIGIT):
        counts[:] = 0
        for i in range(keys.size):
            counts[at(((keys[at(i)] - least) >> np.uint64(low)) & mask)] += 1
        if counts[at(((keys[0] - least) >> np.uint64(low)) & mask)] == keys.size:
            continue
        total = 0
        for value in range(counts.size):
            total, counts[value] = total + counts[value], total
        for i in range(keys.size):
            key = keys[at(i)]
            value = at(((key - least) >> np.uint64(low)) & mask)
            place = counts[value]
            counts[value] = place + 1
            spare_keys[at(place)] = key
            spare_links[at(place)] = links[at(i)]
        keys, spare_keys, links, spare_links = spare_keys, keys, spare_links, links
        in_place = not in_place
    if not in_place:
        spare_keys[:] = keys
        spare_links[:] = links


@inlined
def bits_of(key, ascending):
    """Return the bits of the score that a key was written for."""
    key = key if ascending else ~key
    sign = np.uint64(0x8000000000000000)
    return key ^ sign if key & sign else ~key


@inlined
def root_of(parents, node):
    """Return the root of the tree that a node is in; the path to it is halved. That of a root is minus its size."""
    parent = parents[at(node)]
    while parent >= 0:
        above = parents[at(parent)]
        if above < 0:
            return parent
        parents[at(node)] = above
        node = above
        parent = parents[at(node)]
    return node


@kernel
def join_in_order(links, keys, start, stop, ascending, parents, merged, thresholds, state):
    """Join the items of some links, which stand in the order of their keys.

    A level is a score at which anything was joined; `thresholds` gets the bits of these. `parents`, of items, come as
    -1, and `merged` gets what became one: the root in front, the one behind, the items in front, the level, and the
    link. `state` is, and returned are, how many levels and merges there are, and whether the last key has a level.
    """
    n_levels, n_merged, is_level = state
    for k in range(start, stop):
        if k + AHEAD < links.size:
            fetch(parents, links[at(k + AHEAD)].left)
            fetch(parents, links[at(k + AHEAD)].right)
        if k > 0 and keys[at(k)] != keys[at(k - 1)]:
            is_level = False
        a = root_of(parents, links[at(k)].left)
        b = root_of(parents, links[at(k)].right)
        if a == b:
            continue
        if not is_level:
            thresholds[n_levels] = bits_of(keys[at(k)], ascending)
            n_levels += 1
            is_level = True
        if parents[at(a)] > parents[at(b)]:  # the larger one stays a root, and in front
            a, b = b, a
        merge = at(n_merged)
        merged[merge].front, merged[merge].back, merged[merge].n_front = a, b, -parents[at(a)]
        merged[merge].level = n_levels - 1
        merged[merge].left, merged[merge].right = links[at(k)].left, links[at(k)].right
        n_merged += 1
        parents[at(a)] += parents[at(b)]
        parents[at(b)] = a
    return n_levels, n_merged, is_level


@kernel
def lay_out(parents, merged, places):
    """Give the items places cluster by cluster; `front` of a merge becomes the place behind which the back begins.

    Clusters are put behind each other as they were joined, the last ones first: then where the front begins is known.
    """
    place = 0
    for root in range(parents.size):
        if parents[root] < 0:
            places[root] = place
            place -= parents[root]
    for k in range(merged.size - 1, -1, -1):
        if k >= AHEAD:
            fetch(places, merged[at(k - AHEAD)].front)
            fetch(places, merged[at(k - AHEAD)].back)
        place = places[at(merged[at(k)].front)] + merged[at(k)].n_front
        places[at(merged[at(k)].back)] = place
        merged[at(k)].front = place - 1


@kernel
def write_between(merged, n_levels, levels, links, merges):
    """Write the level and the link between each item and the next, and the places of merges, by level.

    Between clusters that no link joins, the level is `n_levels` and the items of the link are -1; these places, all
    but that of the last item, come last.
    """
    levels[:] = n_levels
    for place in range(links.size):
        links[at(place)].left = links[at(place)].right = -1
    for k in range(merged.size):
        if k + AHEAD < merged.size:
            fetch(levels, merged[at(k + AHEAD)].front)
            fetch(links, merged[at(k + AHEAD)].front)
        place = merges[at(k)] = merged[at(k)].front
        levels[at(place)] = merged[at(k)].level
        links[at(place)].left, links[at(place)].right = merged[at(k)].left, merged[at(k)].right
    k = merged.size
    for place in range(levels.size - 1):
        if levels[at(place)] == n_levels:
            merges[at(k)] = place
            k += 1


@kernel
def write_order(places, order):
    """Write the items in the order of their places."""
    for item in range(places.size):
        if item + AHEAD < places.size:
            fetch(order, places[at(item + AHEAD)])
        order[at(places[at(item)])] = item


@kernel
def write_scores(keys, start, stop, ascending, scores):
    """Write the bits of the scores that keys were written for. Shapes: (n,) -> (n,), which may be the same memory."""
    for i in range(start, stop):
        scores[at(i)] = bits_of(keys[at(i)], ascending)


@kernel
def keep_some(order, levels, row_of_item, kept_rows, kept_levels, kept_at):
    """Leave out the items that have no row (-1), and return how many are kept.

    Between two that are kept, the level is the highest of those between them, and `kept_at` where the last such is.
    """
    kept = 0
    for place in range(order.size):
        row = row_of_item[at(order[at(place)])]
        if row >= 0:
            kept_rows[kept] = row
            kept_levels[kept], kept_at[kept] = levels[at(place)], place
            kept += 1
        elif kept and levels[at(place)] >= kept_levels[kept - 1]:
            kept_levels[kept - 1], kept_at[kept - 1] = levels[at(place)], place
    return kept


@kernel
def order_by_level(levels, starts, order):
    """Write places in the order of their levels; `starts` (n_levels + 2,) is scratch."""
    starts[:] = 0
    for place in range(levels.size):
        starts[at(levels[at(place)] + 1)] += 1
    for level in range(1, starts.size):
        starts[level] += starts[level - 1]
    for place in range(levels.size):
        level = levels[at(place)]
        order[at(starts[at(level)])] = place
        starts[at(level)] += 1


@kernel
def label_clusters(order, levels, level, labels, numbers):
    """Label the clusters of all levels below one, from 0 in the order of their first items; return how many there are.

    `numbers` (n,) is scratch.
    """
    cluster = 0
    for place in range(order.size):
        labels[at(order[at(place)])] = cluster
        cluster += levels[at(place)] >= level
    numbers[:cluster] = -1
    return number_codes(labels, numbers)
