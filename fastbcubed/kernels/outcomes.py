"""Outcomes: what became of each cluster, from whether any item in it has false negatives, or false positives."""

from __future__ import annotations

from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.runs import RUN


@inlined
def mark(marks, k, fp, fn):
    """Note what a cell says of a cluster: that it is there, that items lack mates, that they have wrong ones."""
    if 0 <= k < marks.size:
        marks[at(k)] |= 1 | (fn != 0.0) << 1 | (fp != 0.0) << 2


@kernel
def mark_clusters(cells, pred, start, stop, firsts, true_marks, pred_marks):
    """Note what a range of cells says of their clusters, those of each side from the first on that have marks.

    Once all cells are through, a mark is 1 + twice the outcome: 1 in parts, 2 with others, 3 both. Clusters that are
    exact, which are of one cell, get none; what comes back is how many of those there are on each side.
    """
    n_true = n_pred = 0
    for i in range(start, stop):
        fp, fn = cells[at(i)].fp, cells[at(i)].fn
        k, j = cells[at(i)].true - firsts[0], pred[at(i)] - firsts[1]
        if fp == 0.0 and fn == 0.0:
            n_true += 0 <= k < true_marks.size
            n_pred += 0 <= j < pred_marks.size
        else:
            mark(true_marks, k, fp, fn)
            mark(pred_marks, j, fp, fn)
    return n_true, n_pred


@kernel
def add_listed(codes, n_items, columns, counts, sums):
    """Add up clusters that are listed with their outcomes, of which those without items are not counted.

    `columns` are arrays of figures. Outputs: `counts` (2, 4), clusters and items by outcome, which is added to; `sums`
    (n_runs, n_columns, 4), those of the figures in each run of RUN clusters.
    """
    first, second, third = columns
    for begin in range(0, codes.size, RUN):
        run = sums[at(begin // RUN)]
        for k in range(begin, min(begin + RUN, codes.size)):
            code, n = at(codes[at(k)]), n_items[at(k)]
            counts[0, code] += n > 0
            counts[1, code] += n
            run[0, code] += first[at(k)]
            run[1, code] += second[at(k)]
            run[2, code] += third[at(k)]


@kernel
def count_marks(marks, counts):
    """Count the clusters of each outcome that have marks."""
    for k in range(marks.size):
        counts[at(marks[at(k)] >> 1)] += marks[at(k)] & 1
