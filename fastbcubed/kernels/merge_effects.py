"""What each merge does to precision and recall, and which merge makes a true cluster whole."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import at, inlined, kernel


@kernel
def add_recall_by_merge(meetings, sizes, under):
    """Add, by merge, the weight of pairs that come together, over the size of their true cluster."""
    for i in range(meetings.size):
        m = meetings[i]
        under[at(m.at)] += np.float64(m.v_a * m.w_b + m.v_b * m.w_a) / sizes[at(m.code)]


@kernel
def find_last_merges(meetings, levels, last):
    """Find, by true cluster, where the merge of the highest level stands that brings parts of it together."""
    for i in range(meetings.size):
        m = meetings[i]
        known = last[at(m.code)]
        if known < 0 or levels[at(m.at)] > levels[at(known)]:
            last[at(m.code)] = m.at


@kernel
def add_loss_by_merge(merges, over):
    """Write, by merge, what precision loses when two clusters become one."""
    for i in range(merges.size):
        m = merges[i]
        if m.lost == 0:
            continue
        loss = m.lost / np.float64(m.w_a + m.w_b)
        if m.lost_a > 0:
            loss -= m.lost_a / np.float64(m.w_a)
        if m.lost_b > 0:
            loss -= m.lost_b / np.float64(m.w_b)
        over[at(m.at)] = loss


@kernel
def join_ties(levels, n_levels, heads, open_places, over, under):
    """Make merges of one level that come to one cluster one merge, which stands at the last of their places.

    Shapes: (n,), and the same for all else; `heads` gets the place where the merge of each place stands, and
    `open_places` is scratch. `over` and `under` are added up there, and are 0 elsewhere.
    """
    depth = 0
    for place in range(levels.size):
        heads[place] = place
        while depth and levels[open_places[depth - 1]] <= levels[place]:
            depth -= 1
            if levels[open_places[depth]] == levels[place]:
                heads[open_places[depth]] = place
        open_places[depth] = place
        depth += 1
    for place in range(levels.size - 1, -1, -1):
        head = heads[heads[place]]
        heads[place] = head
        if head != place and levels[place] < n_levels:
            over[head] += over[place]
            under[head] += under[place]
        if head != place or levels[place] == n_levels:
            over[place] = under[place] = 0.0


@kernel
def find_first_places(codes, firsts):
    """Find the first place of each true cluster; `firsts` comes as -1."""
    for place in range(codes.size - 1, -1, -1):
        if codes[place] >= 0:
            firsts[codes[place]] = place


@inlined
def reaching_from(highest, place, limit):
    """Return the first place, from one on, whose level is at least a limit; there is one."""
    node = place + (highest.size >> 1)
    while highest[at(node)] < limit:
        node += 1
        while not node & 1:  # all of a pair is still to come
            node >>= 1
    while node < highest.size >> 1:
        node <<= 1
        if highest[at(node)] < limit:
            node += 1
    return node - (highest.size >> 1)


@inlined
def reaching_before(highest, place, limit):
    """Return the last place before one whose level is at least a limit; -1 if there is none."""
    node = place + (highest.size >> 1)
    if not node & (node - 1):
        return -1
    node -= 1
    while highest[at(node)] < limit:
        while not node & 1:
            node >>= 1
        if node == 1:
            return -1
        node -= 1
    while node < highest.size >> 1:
        node = (node << 1) + 1
        if highest[at(node)] < limit:
            node -= 1
    return node - (highest.size >> 1)


@kernel
def measure_stretches(highest, places, limits, sizes, parts):
    """Count, around each place, the items between which all levels are below a limit, and their clusters just before.

    These are what the stretch is made of when the last level below the limit is not used either. `highest` is a heap
    over the levels: in its second half they stand, the last of them above all limits, and before these the higher of
    each pair.
    """
    for k in range(places.size):
        start = reaching_before(highest, places[k], limits[k]) + 1
        stop = reaching_from(highest, places[k], limits[k])
        sizes[k] = stop - start + 1
        parts[k] = 1
        place = reaching_from(highest, start, limits[k] - 1)
        while place < stop:
            parts[k] += 1
            place = reaching_from(highest, place + 1, limits[k] - 1)


@inlined
def replace_product(sums, row, k, old, new):
    """Put one product in the place of another, in a sum that stands with its error."""
    total, error = add_exactly(sums[row, 2 * k], sums[row, 2 * k + 1], -old)
    sums[row, 2 * k], sums[row, 2 * k + 1] = add_exactly(total, error, new)


@kernel
def follow_units(places, levels, unit_of_place, over, under, units, sums):
    """Add up squares and products of what units lose, before each level.

    `places` are those of merges, by level; `over` and `under` what each does. `units` (n, 3) are the weight, and what
    is lost of precision and recall, which come as with no link. `sums` (n_levels + 1, 10), whose first row is given,
    get over^2, over * weight, under^2, under * weight, over * under, each with its error.
    """
    i = 0
    for level in range(sums.shape[0] - 1):
        sums[level + 1] = sums[level]
        while i < places.size and levels[places[i]] == level:
            place = places[i]
            unit = unit_of_place[place]
            i += 1
            if unit < 0 or (over[place] == 0.0 and under[place] == 0.0):
                continue
            w, x, y = units[unit, 0], units[unit, 1], units[unit, 2]
            p, r = x + over[place], y - under[place]
            units[unit, 1], units[unit, 2] = p, r
            replace_product(sums, level + 1, 0, x * x, p * p)
            replace_product(sums, level + 1, 1, x * w, p * w)
            replace_product(sums, level + 1, 2, y * y, r * r)
            replace_product(sums, level + 1, 3, y * w, r * w)
            replace_product(sums, level + 1, 4, x * y, p * r)
