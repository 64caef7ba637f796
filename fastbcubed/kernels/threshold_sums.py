"""Sums by level over the merges and meetings of a tree, and what they come to at every level.

All that is added to a level is held as a sum and its error, so that what a cluster adds when it begins and takes away
when it ends leaves nothing behind.
"""

from __future__ import annotations

import math

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import at, inlined, kernel


@inlined
def add_to(sums, level, column, x):
    """Add to the sum that stands in a column, with its error in the next."""
    sums[at(level), column], sums[at(level), column + 1] = add_exactly(
        sums[at(level), column], sums[at(level), column + 1], x
    )


# Of meetings


@kernel
def add_recall(meetings, levels, sizes, less, sums):
    """Add, by level, the weight of pairs that come together, over the size of their true cluster less some items."""
    for i in range(meetings.size):
        m = meetings[i]
        pairs = np.float64(m.v_a * m.w_b + m.v_b * m.w_a)
        add_to(sums, levels[at(m.at)], 0, pairs / (sizes[at(m.code)] - less))


@kernel
def add_weight_together(meetings, levels, sums):
    """Add, by level, the weight of pairs that come together."""
    for i in range(meetings.size):
        m = meetings[i]
        add_to(sums, levels[at(m.at)], 0, m.w_a * m.w_b)


@inlined
def mixed(v_a, v_b, a, b):
    """Return v_a log((a + b) / a) + v_b log((a + b) / b): where all is scored, a + b times the entropy of the two."""
    return v_a * math.log1p(b / a) + v_b * math.log1p(a / b)


@kernel
def add_entropy_of_parts(meetings, levels, dominant, by_merge, sums):
    """Add what true clusters' parts leave open when they meet: by level, and by merge without one true cluster."""
    for i in range(meetings.size):
        m = meetings[i]
        x = mixed(np.float64(m.v_a), np.float64(m.v_b), np.float64(m.w_a), np.float64(m.w_b))
        add_to(sums, levels[at(m.at)], 0, x)
        if m.code != dominant:
            add_to(by_merge, m.at, 0, x)


# Of merges


@kernel
def count_clusters(merges, levels, counts):
    """Count, by level, clusters with scored items that are no more, and singletons; and find the largest new one.

    Shapes: (n,), (n,), (n_levels + 1, 3).
    """
    for i in range(merges.size):
        m = merges[i]
        level = levels[at(m.at)]
        size = m.s_a + m.s_b
        counts[at(level), 0] += m.s_a > 0 and m.s_b > 0
        counts[at(level), 1] += (m.s_a == 1) + (m.s_b == 1) - (size == 1)
        counts[at(level), 2] = max(counts[at(level), 2], size)


@kernel
def add_precision_loss(merges, levels, less, sums):
    """Add, by level, what clusters lose of the precision when they become one: wrong pairs over their sizes less some.

    A cluster of one item, which has none, loses nothing.
    """
    for i in range(merges.size):
        m = merges[i]
        if m.lost == 0:
            continue
        level = levels[at(m.at)]
        add_to(sums, level, 0, m.lost / (np.float64(m.w_a + m.w_b) - less))
        if m.lost_a > 0:
            add_to(sums, level, 0, -(m.lost_a / (np.float64(m.w_a) - less)))
        if m.lost_b > 0:
            add_to(sums, level, 0, -(m.lost_b / (np.float64(m.w_b) - less)))


@kernel
def count_pairs(merges, levels, counts):
    """Count, by level, the pairs that come together, and those of them that are wrong. Shapes: (n_levels + 1, 2)."""
    for i in range(merges.size):
        m = merges[i]
        level = levels[at(m.at)]
        counts[at(level), 0] += m.n_a * m.n_b
        counts[at(level), 1] += (m.wrong - m.wrong_a - m.wrong_b) >> 1


@kernel
def add_weight_apart(merges, levels, sums):
    """Add, by level, the weight of pairs that come together wrongly."""
    for i in range(merges.size):
        m = merges[i]
        if m.apart > 0.0:
            add_to(sums, levels[at(m.at)], 0, 0.5 * m.apart)


@inlined
def beside(x, r):
    """Return x log((x + r) / x), which is 0 for x = 0."""
    return x * math.log1p(r / x) if x > 0.0 else 0.0


@kernel
def add_entropy(merges, levels, scored, by_merge, sums):
    """Add, by level, what clusters leave open when they become one, and how much of it true clusters do not tell.

    Shapes: (n,), (n,), (n, 2), (n_levels + 1, 4). `by_merge` is that of the true clusters' parts, without the one that
    is dominant; its own is taken from what is beside it, as that may be little.
    """
    for i in range(merges.size):
        m = merges[i]
        level = levels[at(m.at)]
        a, b = np.float64(m.w_a), np.float64(m.w_b)
        add_to(sums, level, 0, mixed(a, b, a, b))
        if m.wrong == m.wrong_a + m.wrong_b:
            continue
        x_a, x_b = np.float64(m.mass_x_a), np.float64(m.mass_x_b)
        r_a, r_b = np.float64(m.mass_r_a), np.float64(m.mass_r_b)
        untold = mixed(np.float64(m.v_a), np.float64(m.v_b), a, b) if scored else mixed(r_a, r_b, a, b)
        untold -= by_merge[at(m.at), 0] + by_merge[at(m.at), 1]
        untold += beside(x_a + x_b, r_a + r_b) - beside(x_a, r_a) - beside(x_b, r_b)
        add_to(sums, level, 2, max(0.0, untold))


# Of levels


@kernel
def sum_before(sums, column, out):
    """Write the sum of the levels before each. Shapes: (n, k) -> (n,)."""
    total, error = 0.0, 0.0
    for level in range(sums.shape[0]):
        out[level] = total + error
        total, error = add_exactly(total, error + sums[level, column + 1], sums[level, column])


@kernel
def sum_from(sums, column, out):
    """Write the sum of each level and those after it. Shapes: (n, k) -> (n,)."""
    total, error = 0.0, 0.0
    for level in range(sums.shape[0] - 1, -1, -1):
        total, error = add_exactly(total, error + sums[level, column + 1], sums[level, column])
        out[level] = total + error
