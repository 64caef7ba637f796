"""Outcomes: what became of each cluster, from whether any item in it has false negatives, or false positives."""

from __future__ import annotations

from fastbcubed.kernels.jit import inlined, kernel


@inlined
def mark(marks, k, fp, fn):
    """Note what a cell says of a cluster: that it is there, that items lack mates, that they have wrong ones."""
    if 0 <= k < marks.size:
        marks[k] |= 1 | (fn != 0.0) << 1 | (fp != 0.0) << 2


@kernel
def mark_clusters(cells, pred, start, stop, firsts, true_marks, pred_marks):
    """Note what a range of cells says of their clusters, those of each side from the first on that have marks.

    Once all cells are through, a mark is 1 + twice the outcome: 0 exact, 1 in parts, 2 with others, 3 both.
    """
    for i in range(start, stop):
        fp, fn = cells[i].fp, cells[i].fn
        mark(true_marks, cells[i].true - firsts[0], fp, fn)
        mark(pred_marks, pred[i] - firsts[1], fp, fn)


@kernel
def count_marks(marks, counts):
    """Count the clusters of each outcome."""
    for k in range(marks.size):
        counts[marks[k] >> 1] += marks[k] & 1
