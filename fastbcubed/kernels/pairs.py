"""Pairs of items, from the cells: exact counts in 128 bits, and weights without cancellation."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import kernel
from fastbcubed.kernels.runs import RUN

HALF = np.uint64(32)
LOW = np.uint64((1 << 32) - 1)


@kernel
def add_product(high, low, x, y):
    """Add x * y to a sum of 128 bits. All are uint64; returns both halves."""
    product = x * y
    if (x | y) > LOW:
        x1, x0, y1, y0 = x >> HALF, x & LOW, y >> HALF, y & LOW
        middle = x1 * y0 + ((x0 * y0) >> HALF)
        other = x0 * y1 + (middle & LOW)
        high += x1 * y1 + (middle >> HALF) + (other >> HALF)
    low += product
    if low < product:
        high += np.uint64(1)
    return high, low


@kernel
def count_pairs(cells, start, stop, sums):
    """Count ordered pairs of items: together on both sides, in the prediction alone, in the truth alone.

    The fp and fn of `cells` are counts; `sums` gets the upper and the lower half of each count. Shapes:
    `sums` (3, 2).
    """
    zero, one = np.uint64(0), np.uint64(1)
    tp1, tp0, fp1, fp0, fn1, fn0 = zero, zero, zero, zero, zero, zero
    for i in range(start, stop):
        n = np.uint64(cells[i].n)
        if n > one:
            tp1, tp0 = add_product(tp1, tp0, n, n - one)
        if cells[i].fp > 0.0:
            fp1, fp0 = add_product(fp1, fp0, n, np.uint64(cells[i].fp))
        if cells[i].fn > 0.0:
            fn1, fn0 = add_product(fn1, fn0, n, np.uint64(cells[i].fn))
    sums[0, 0], sums[0, 1] = tp1, tp0
    sums[1, 0], sums[1, 1] = fp1, fp0
    sums[2, 0], sums[2, 1] = fn1, fn0


@kernel
def weigh_pairs(cells, start, stop, total, sums):
    """Sum products of weights over runs of cells, as `count_pairs` counts pairs.

    Returns the squared weights of the cells of one item, as a sum and its error.

    The fp and fn of `cells` are weights, `total` that of all items. `sums` of a run: the squared weights of
    cells of several items; the pairs in the prediction alone, in the truth alone, and on neither side.
    Shapes: `sums` (n_runs, 4).
    """
    single, error = 0.0, 0.0
    run = 0
    for begin in range(start, stop, RUN):
        squares, fp, fn, tn = 0.0, 0.0, 0.0, 0.0
        for i in range(begin, min(begin + RUN, stop)):
            w = cells[i].weight
            if cells[i].n == 1:
                single, error = add_exactly(single, error, w * w)
            else:
                squares += w * w
            fp += w * cells[i].fp
            fn += w * cells[i].fn
            tn += w * max(0.0, total - (w + (cells[i].fp + cells[i].fn)))
        sums[run, 0], sums[run, 1], sums[run, 2], sums[run, 3] = squares, fp, fn, tn
        run += 1
    return single, error


@kernel
def square_weights(weights, start, stop):
    """Sum the squares of some weights; returns the sum and its error."""
    total, error = 0.0, 0.0
    for i in range(start, stop):
        total, error = add_exactly(total, error, weights[i] * weights[i])
    return total, error
