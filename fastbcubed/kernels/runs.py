"""Sums over cells in runs of fixed length: plainly within a run, and exactly over runs by the caller."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, kernel

#: Number of cells whose scores are summed plainly, eight at a time; the caller adds the sums of more exactly.
RUN = 1 << 10
#: Number of cells of a run that are read and scored together: their data stay in a core's L1 cache.
PIECE = 1 << 8


@kernel
def add_in_lanes(values, start, stop, lanes):
    """Add numbers to eight sums in turn, and return these: a single sum waits for each addition.

    Their number is a multiple of eight.
    """
    a, b, c, d, e, f, g, h = lanes
    for i in range(start, stop, 8):
        a += values[at(i)]
        b += values[at(i + 1)]
        c += values[at(i + 2)]
        d += values[at(i + 3)]
        e += values[at(i + 4)]
        f += values[at(i + 5)]
        g += values[at(i + 6)]
        h += values[at(i + 7)]
    return a, b, c, d, e, f, g, h


@kernel
def sum_lanes(lanes):
    """Add up eight sums."""
    a, b, c, d, e, f, g, h = lanes
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel
def sum_run(values):
    """Sum RUN numbers."""
    return sum_lanes(add_in_lanes(values, 0, RUN, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)))


@kernel
def add_to_lanes(values, lanes):
    """Add PIECE numbers to eight running sums; see `add_in_lanes`. Shapes: (PIECE,), (8,)."""
    a, b, c, d, e, f, g, h = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[6], lanes[7]
    a, b, c, d, e, f, g, h = add_in_lanes(values, 0, PIECE, (a, b, c, d, e, f, g, h))
    lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[6], lanes[7] = a, b, c, d, e, f, g, h


@kernel
def sum_products(weight, scores, sums):
    """Sum weight * scores by runs; `sums` has one entry per run."""
    values = np.zeros(RUN)
    run = 0
    for begin in range(0, weight.size, RUN):
        length = min(RUN, weight.size - begin)
        for i in range(length):
            values[i] = weight[begin + i] * scores[begin + i]
        values[length:] = 0.0
        sums[run] = sum_run(values)
        run += 1


@kernel
def read_run(cells, begin, length, outer, weight, tp, fp, fn):
    """Read the weights and matrices of some cells, as counts if `outer`; the rest of the arrays gets weight 0.

    Field by field: the compiler would otherwise read the fields of one cell together, by slower instructions.
    """
    weight[length:] = 0.0
    for i in range(length):
        weight[at(i)] = cells[at(begin + i)].weight
    for i in range(length):
        fp[at(i)] = cells[at(begin + i)].fp
    for i in range(length):
        fn[at(i)] = cells[at(begin + i)].fn
    if outer:
        for i in range(length):
            tp[at(i)] = cells[at(begin + i)].n
    else:
        tp[:length] = weight[:length]
