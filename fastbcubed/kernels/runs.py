"""Sums over cells by runs of fixed length: what is summed plainly, and what is left to be added exactly."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, kernel

#: Cells whose scores are summed plainly, eight at a time; sums of more are added exactly by the caller.
RUN = 1 << 10
#: Cells of a run that are read and scored together: all that is known of so many stays in a core's first cache.
PIECE = 1 << 8


@kernel
def add_in_lanes(values, start, stop, lanes):
    """Add numbers to eight sums, each eighth one to the same, and return these: one alone waits for each addition.

    There are as many as a multiple of eight.
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
    """Add PIECE numbers to eight sums that are kept; see `add_in_lanes`. Shapes: (PIECE,), (8,)."""
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
    """Read the weights and matrices of some cells, of counts if `outer`; the rest of the arrays weighs 0.

    Field by field, as the compiler would read those of one cell together by instructions that take longer.
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
