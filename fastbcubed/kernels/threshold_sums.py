"""Sums over the meetings and merges of a tree, and what they come to at every level.

Merges come in the order of their levels, so that the sum of a level is complete before the next begins. What is added
to it is held as a sum and its error until then.
"""

from __future__ import annotations

import math

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.fetching import fetch
from fastbcubed.kernels.jit import at, inlined, kernel

#: Meetings whose sums are fetched ahead, so that one does not wait for the memory of another.
AHEAD = 16


@inlined
def add_to(sums, place, x):
    """Add to a sum that stands with its error."""
    sums[at(place), 0], sums[at(place), 1] = add_exactly(sums[at(place), 0], sums[at(place), 1], x)


@inlined
def fetch_level(meetings, i, levels, sums):
    """Begin to bring the sum of a meeting that comes later into the cache."""
    if i + AHEAD < meetings.size:
        fetch(sums, 2 * levels[at(meetings[at(i + AHEAD)].at)])


# Of meetings, whose sums by level (n_levels + 1, 2) stand with their errors


@kernel
def add_recall(meetings, levels, sizes, less, sums):
    """Add, by level, the weight of pairs that come together, over the size of their true cluster less some items."""
    for i in range(meetings.size):
        fetch_level(meetings, i, levels, sums)
        m = meetings[at(i)]
        pairs = np.float64(m.v_a * m.w_b + m.v_b * m.w_a)
        add_to(sums, levels[at(m.at)], pairs / (sizes[at(m.code)] - less))


@kernel
def add_weight_together(meetings, levels, sums):
    """Add, by level, the weight of pairs that come together."""
    for i in range(meetings.size):
        fetch_level(meetings, i, levels, sums)
        m = meetings[at(i)]
        add_to(sums, levels[at(m.at)], m.w_a * m.w_b)


@inlined
def mixed(v_a, v_b, a, b):
    """Return v_a log((a + b) / a) + v_b log((a + b) / b): where all is scored, a + b times the entropy of the two."""
    return v_a * math.log1p(b / a) + v_b * math.log1p(a / b)


@kernel
def add_entropy_of_parts(meetings, levels, dominant, by_merge, sums):
    """Add what true clusters' parts leave open when they meet: by level, and by merge without one true cluster."""
    for i in range(meetings.size):
        fetch_level(meetings, i, levels, sums)
        m = meetings[at(i)]
        x = mixed(np.float64(m.v_a), np.float64(m.v_b), np.float64(m.w_a), np.float64(m.w_b))
        add_to(sums, levels[at(m.at)], x)
        if m.code != dominant:
            add_to(by_merge, m.at, x)


# Of merges


@inlined
def turn_to(level, state, sums):
    """Return the sum of a level and its error: those of `state` if it is the same level, else none as yet."""
    last, total, error = state
    if last == level:
        return last, total, error
    if last >= 0:
        sums[at(last)] = total + error
    return np.int64(level), 0.0, 0.0


@inlined
def add_to_level(level, x, state, sums):
    """Add to the sum of a level, and return it."""
    level, total, error = turn_to(level, state, sums)
    total, error = add_exactly(total, error, x)
    return level, total, error


@kernel
def count_clusters(merges, clusters, singletons, largest):
    """Count, by level, clusters with scored items that are no more, and singletons; and find the largest new one.

    Shapes: (n,), and (n_levels + 1,) of all others.
    """
    for i in range(merges.size):
        m = merges[i]
        level, size = m.level, m.s_a + m.s_b
        clusters[at(level)] += m.s_a > 0 and m.s_b > 0
        singletons[at(level)] += int(m.s_a == 1) + int(m.s_b == 1) - int(size == 1)
        largest[at(level)] = max(largest[at(level)], size)


@kernel
def add_precision_loss(merges, less, state, sums):
    """Add, by level, what clusters lose of the precision when they become one: wrong pairs over their sizes less some.

    A cluster of one item, which has none, loses nothing. `state`, here and below, is the last level, its sum and the
    error of that; it is returned for the merges that come next.
    """
    for i in range(merges.size):
        m = merges[i]
        if m.lost == 0:
            continue
        state = add_to_level(m.level, m.lost / (np.float64(m.w_a + m.w_b) - less), state, sums)
        if m.lost_a > 0:
            state = add_to_level(m.level, -(m.lost_a / (np.float64(m.w_a) - less)), state, sums)
        if m.lost_b > 0:
            state = add_to_level(m.level, -(m.lost_b / (np.float64(m.w_b) - less)), state, sums)
    turn_to(-1, state, sums)
    return state


@kernel
def count_pairs(merges, right, wrong):
    """Count, by level, the pairs that come together rightly, and those that do wrongly. Shapes: (n_levels + 1,)."""
    for i in range(merges.size):
        m = merges[i]
        new = (m.wrong - m.wrong_a - m.wrong_b) >> 1
        right[at(m.level)] += m.n_a * m.n_b - new
        wrong[at(m.level)] += new


@kernel
def add_weight_apart(merges, state, sums):
    """Add, by level, the weight of pairs that come together wrongly."""
    for i in range(merges.size):
        m = merges[i]
        if m.apart > 0.0:
            state = add_to_level(m.level, 0.5 * m.apart, state, sums)
    turn_to(-1, state, sums)
    return state


@kernel
def add_entropy(merges, state, sums):
    """Add, by level, what clusters leave open when they become one."""
    for i in range(merges.size):
        m = merges[i]
        a, b = np.float64(m.w_a), np.float64(m.w_b)
        state = add_to_level(m.level, mixed(a, b, a, b), state, sums)
    turn_to(-1, state, sums)
    return state


@inlined
def beside(x, r):
    """Return x log((x + r) / x), which is 0 for x = 0."""
    return x * math.log1p(r / x) if x > 0.0 else 0.0


@kernel
def add_untold_entropy(merges, scored, by_merge, state, sums):
    """Add, by level, how much of what clusters leave open when they become one true clusters do not tell.

    `by_merge` is that of the true clusters' parts, without the one that is dominant; its own is taken from what is
    beside it, as that may be little.
    """
    for i in range(merges.size):
        if i + AHEAD < merges.size:
            fetch(by_merge, 2 * merges[at(i + AHEAD)].at)
        m = merges[at(i)]
        if m.wrong == m.wrong_a + m.wrong_b:
            continue
        x_a, x_b = np.float64(m.mass_x_a), np.float64(m.mass_x_b)
        r_a, r_b = np.float64(m.mass_r_a), np.float64(m.mass_r_b)
        if scored:
            untold = mixed(np.float64(m.v_a), np.float64(m.v_b), np.float64(m.w_a), np.float64(m.w_b))
        else:
            untold = mixed(r_a, r_b, np.float64(m.w_a), np.float64(m.w_b))
        untold -= by_merge[at(m.at), 0] + by_merge[at(m.at), 1]
        untold += beside(x_a + x_b, r_a + r_b) - beside(x_a, r_a) - beside(x_b, r_b)
        state = add_to_level(m.level, max(0.0, untold), state, sums)
    turn_to(-1, state, sums)
    return state


# Of levels


@kernel
def sum_before(sums):
    """Put the sum of the levels before each in the place of its own. Shapes: (n,)."""
    total, error = 0.0, 0.0
    for level in range(sums.size):
        own = sums[level]
        sums[level] = total + error
        total, error = add_exactly(total, error, own)


@kernel
def sum_from(sums):
    """Put the sum of each level and those after it in the place of its own. Shapes: (n,)."""
    total, error = 0.0, 0.0
    for level in range(sums.size - 1, -1, -1):
        total, error = add_exactly(total, error, sums[level])
        sums[level] = total + error
