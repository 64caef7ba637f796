"""Sums over cells by runs of fixed length: what is summed plainly, and what is left to be added exactly."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import kernel

#: Cells whose scores are summed plainly, eight at a time; sums of more are added exactly by the caller.
RUN = 1 << 10


@kernel
def sum_run(values):
    """Sum RUN numbers, eight at a time."""
    a = np.zeros(8)
    for i in range(0, RUN, 8):
        for lane in range(8):
            a[lane] += values[i + lane]
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]))


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
    """Read the weights and matrices of a run of cells, of counts if `outer`; the rest of the run weighs 0."""
    weight[length:] = 0.0
    for i in range(length):
        weight[i] = cells[begin + i].weight
        tp[i] = np.float64(cells[begin + i].n) if outer else weight[i]
        fp[i] = cells[begin + i].fp
        fn[i] = cells[begin + i].fn
