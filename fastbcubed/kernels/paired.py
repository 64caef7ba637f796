"""Sums of scores by unit, of one run, and the squares of what two runs differ by."""

from __future__ import annotations

from fastbcubed.kernels.jit import at, kernel


@kernel
def add_shares(cells, units, total, shares):
    """Add up the shares of cells in the total weight by the unit of their true cluster.

    What comes back is of the cells whose unit is -1: how many have weight, their squared shares, the largest share.
    Shapes: records (n,), (n_true,), (), (n_units,).
    """
    n, squares, largest = 0, 0.0, 0.0
    for i in range(cells.size):
        share = cells[at(i)].weight / total
        unit = units[at(cells[at(i)].true)]
        if unit >= 0:
            shares[at(unit)] += share
            continue
        n += share > 0.0
        squares += share * share
        largest = max(largest, share)
    return n, squares, largest


@kernel
def add_scores(cells, units, shares, deviations, columns, sums):
    """Add share * deviation of cells to the sums of the unit of their true cluster; -1 is left out.

    Shapes: records (n,), (n_true,), (n,), (n_scores, n), (n_scores,), (n_units, k).
    """
    for i in range(cells.size):
        unit = units[cells[i].true]
        if unit >= 0:
            for k in range(columns.size):
                sums[unit, columns[k]] += shares[i] * deviations[k, i]


@kernel
def square_differences(of_units, of_scores, of_shares, squares):
    """Add up the squares of what units add to scores of two runs, one less the other.

    Of the run before and of that after are given: `of_units`, the shares and sums by unit, (n_units,) and
    (n_units, k); `of_scores`, how much each score moves with these sums, (n_scores, k); `of_shares`, how much with the
    share, (n_scores,). Output: `squares` (n_scores,).
    """
    share_before, before, share_after, after = of_units
    (by_before, by_after), (move_before, move_after) = of_scores, of_shares
    for u in range(before.shape[0]):
        for m in range(squares.size):
            moved = move_after[m] * share_after[u] - move_before[m] * share_before[u]
            for k in range(before.shape[1]):
                moved += by_after[m, k] * after[u, k] - by_before[m, k] * before[u, k]
            squares[m] += moved * moved
