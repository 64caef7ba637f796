"""Sums of scores by unit, of one run, and the squares of what two runs differ by."""

from __future__ import annotations

from fastbcubed.kernels.jit import kernel


@kernel
def add_scores(cells, units, shares, deviations, columns, sums):
    """Add share * deviation of cells to the sums of the unit of their true cluster; -1 is left out.

    Shapes: records (n,), (n_true,), (n,), (n_scores, n), (n_scores,), (n_units, 1 + …).
    """
    for i in range(cells.size):
        unit = units[cells[i].true]
        if unit >= 0:
            for k in range(columns.size):
                sums[unit, columns[k]] += shares[i] * deviations[k, i]


@kernel
def square_differences(before, after, of_before, of_after, squares):
    """Add up the squares of what units add to scores of two runs, one less the other.

    A score of a run is moved by a sum over columns of coefficient times value.
    Shapes: (n_units, k) twice, (n_scores, k) twice, (n_scores,).
    """
    for u in range(before.shape[0]):
        for m in range(squares.size):
            moved = 0.0
            for k in range(before.shape[1]):
                moved += of_after[m, k] * after[u, k] - of_before[m, k] * before[u, k]
            squares[m] += moved * moved
