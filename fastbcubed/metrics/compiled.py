"""The commonest scores, compiled: all of them in one pass over the cells.

The formulas are those of `pointwise`; the kernel below only spares the temporaries.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import kernel
from fastbcubed.metrics import pointwise

__all__ = ["COMMON", "RUN", "sum_common", "sum_products"]

#: The scores, in the order in which `sum_common` sums them, after the weight.
COMMON = (
    "precision",
    "recall",
    "over_merge_rate",
    "under_merge_rate",
    "mean_f1",
    "jaccard_index",
    "jaccard_distance",
)

precision = kernel(pointwise.precision)
recall = kernel(pointwise.recall)
over_merge_rate = kernel(pointwise.over_merge_rate)
under_merge_rate = kernel(pointwise.under_merge_rate)
item_f1 = kernel(pointwise.item_f1)
jaccard_index = kernel(pointwise.jaccard_index)
jaccard_distance = kernel(pointwise.jaccard_distance)


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
    """Sum weight * scores by runs, as `sum_common` does; `sums` has one entry per run."""
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
def sum_common(cells, start, stop, outer, wanted, sums):
    """Sum the weights, and weight * score, of runs of cells.

    Parameters
    ----------
    cells : record array
        The cells of a contingency.
    start, stop : int
        The range of cells.
    outer : bool
        Whether the matrices hold counts.
    wanted : bool (len(COMMON),)
        Which scores to sum.
    sums : float64 (n_runs, 1 + len(COMMON)) output
        One row per run of RUN cells: the weight, then the scores wanted.
    """
    weight = np.zeros(RUN)
    tp = np.ones(RUN)
    fp = np.zeros(RUN)
    fn = np.zeros(RUN)
    scores = np.empty(RUN)
    run = 0
    for begin in range(start, stop, RUN):
        length = min(RUN, stop - begin)
        weight[length:] = 0.0
        for i in range(length):
            weight[i] = cells[begin + i].weight
            tp[i] = np.float64(cells[begin + i].n) if outer else weight[i]
            fp[i] = cells[begin + i].fp
            fn[i] = cells[begin + i].fn
        sums[run, 0] = sum_run(weight)
        if wanted[0]:
            for i in range(RUN):
                scores[i] = weight[i] * precision(tp[i], fp[i], fn[i], 0.0)
            sums[run, 1] = sum_run(scores)
        if wanted[1]:
            for i in range(RUN):
                scores[i] = weight[i] * recall(tp[i], fp[i], fn[i], 0.0)
            sums[run, 2] = sum_run(scores)
        if wanted[2]:
            for i in range(RUN):
                scores[i] = weight[i] * over_merge_rate(tp[i], fp[i], fn[i], 0.0)
            sums[run, 3] = sum_run(scores)
        if wanted[3]:
            for i in range(RUN):
                scores[i] = weight[i] * under_merge_rate(tp[i], fp[i], fn[i], 0.0)
            sums[run, 4] = sum_run(scores)
        if wanted[4]:
            for i in range(RUN):
                scores[i] = weight[i] * item_f1(tp[i], fp[i], fn[i], 0.0)
            sums[run, 5] = sum_run(scores)
        if wanted[5]:
            for i in range(RUN):
                scores[i] = weight[i] * jaccard_index(tp[i], fp[i], fn[i], 0.0)
            sums[run, 6] = sum_run(scores)
        if wanted[6]:
            for i in range(RUN):
                scores[i] = weight[i] * jaccard_distance(tp[i], fp[i], fn[i], 0.0)
            sums[run, 7] = sum_run(scores)
        run += 1
