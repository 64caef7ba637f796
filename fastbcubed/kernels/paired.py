"""Units of several runs: which cells are theirs, range by range, and the squares of what two runs differ by."""

from __future__ import annotations

from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.runs import RUN, sum_run


@kernel
def take_cells(cells, pred, wanted, firsts, linked, taken, left, right):
    """Copy cells whose two clusters differ, or whose true cluster is wanted, and find the true clusters that meet.

    Pairs of true clusters that are in one predicted cluster go to `left` and `right`. `wanted` is empty for none;
    `firsts`, the first true cluster of each predicted one, comes as -1 with its first cell. Returns how many cells and
    pairs there are, and of the cells that are not copied how many have weight, its squares added up, and the largest.
    Shapes: records (n,), (n,), (n_true,), (n_pred,), (n_true,), records (n,), (n,), (n,).
    """
    n, n_pairs, n_alone, squares, largest = 0, 0, 0, 0.0, 0.0
    for i in range(cells.size):
        true, weight = cells[at(i)].true, cells[at(i)].weight
        if cells[at(i)].fp == 0.0 and cells[at(i)].fn == 0.0 and not (wanted.size and wanted[at(true)]):
            n_alone += weight > 0.0
            squares += weight * weight
            largest = max(largest, weight)
            continue
        linked[at(true)] = True
        taken[at(n)] = cells[at(i)]
        n += 1
        if cells[at(i)].fp == 0.0:
            continue  # nothing else is in its predicted cluster
        first = firsts[at(pred[at(i)])]
        if first < 0:
            firsts[at(pred[at(i)])] = true
        elif first != true:
            left[at(n_pairs)], right[at(n_pairs)] = first, true
            n_pairs += 1
    return n, n_pairs, n_alone, squares, largest


@kernel
def name_units(cells, units, shift, counts):
    """Write the unit of each cell over its true cluster, and count the cells by range of 2**shift units."""
    for i in range(cells.size):
        unit = units[at(cells[at(i)].true)]
        cells[at(i)].true = unit
        counts[at(unit >> shift)] += 1


@kernel
def scatter_units(cells, shift, next_cell, out):
    """Copy cells to the range of their unit; `next_cell` says where the next cell of each range goes."""
    for i in range(cells.size):
        to = cells[at(i)].true >> shift
        out[at(next_cell[at(to)])] = cells[at(i)]
        next_cell[at(to)] += 1


@kernel
def add_shares(cells, first, total, shares):
    """Add up the shares of cells in the total weight by their unit, the first of which is given."""
    for i in range(cells.size):
        shares[at(cells[at(i)].true - first)] += cells[at(i)].weight / total


@kernel
def add_scores(cells, units, shares, deviations, sums):
    """Add share * deviation of cells to the sums of the unit of their true cluster; -1 is left out.

    Shapes: records (n,), (n_true,), (n,), (n_scores, n), (n_units, n_scores).
    """
    for i in range(cells.size):
        unit = units[cells[i].true]
        if unit >= 0:
            for k in range(deviations.shape[0]):
                sums[unit, k] += shares[i] * deviations[k, i]


@kernel
def square_units(shares, sums, moves, space, squares, counted):
    """Add up the squares of what units add to scores of runs, less what they add to those of the baseline.

    `moves` are the position of the baseline, and how much each score moves with each of the sums, (n_runs, n_scores,
    k), and with the share, (n_runs, n_scores); `space` is for RUN units: (n_shares, RUN), (n_runs, k, RUN), (RUN,).
    Outputs: `squares` (n_runs, n_scores); `counted` (3,), units with a share, squares of shares, the largest share.
    Shapes: `shares` (n_shares, n), of all runs alike or of each; `sums` (n_runs, n, k).
    """
    baseline, of_scores, of_shares = moves
    own, columns, moved = space
    n_shares, last = own.shape[0], own.shape[0] - 1
    for begin in range(0, shares.shape[1], RUN):
        read_units(shares, sums, begin, min(RUN, shares.shape[1] - begin), own, columns)
        for i in range(RUN):
            moved[i] = 0.0
            for s in range(n_shares):
                moved[i] += own[s, i] / n_shares
            counted[0] += moved[i] > 0.0
            counted[2] = max(counted[2], moved[i])
            moved[i] *= moved[i]
        counted[1] += sum_run(moved)
        for r in range(squares.shape[0]):
            if r == baseline:
                continue
            for m in range(squares.shape[1]):
                before = of_shares[baseline, m], own[min(baseline, last)]
                move_shares(before, (of_shares[r, m], own[min(r, last)]), moved)
                for k in range(columns.shape[1]):
                    if of_scores[r, m, k] != 0.0 or of_scores[baseline, m, k] != 0.0:
                        before = of_scores[baseline, m, k], columns[baseline, k]
                        move_sums(before, (of_scores[r, m, k], columns[r, k]), moved)
                for i in range(RUN):
                    moved[i] *= moved[i]
                squares[r, m] += sum_run(moved)


@inlined
def read_units(shares, sums, begin, n, own, columns):
    """Read n units from `begin` on, each of their figures side by side; the rest of the run is 0."""
    own[:, n:] = 0.0
    columns[:, :, n:] = 0.0
    for s in range(shares.shape[0]):
        for i in range(n):
            own[s, i] = shares[s, begin + i]
    for r in range(sums.shape[0]):
        for i in range(n):
            for k in range(sums.shape[2]):
                columns[r, k, i] = sums[r, begin + i, k]


@inlined
def move_shares(before, after, moved):
    """Write what shares move, each with its slope."""
    for i in range(RUN):
        moved[i] = after[0] * after[1][i] - before[0] * before[1][i]


@inlined
def move_sums(before, after, moved):
    """Add what sums move, each with its slope."""
    for i in range(RUN):
        moved[i] += after[0] * after[1][i] - before[0] * before[1][i]
