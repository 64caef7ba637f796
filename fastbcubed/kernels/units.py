"""Sums over independent units, for standard errors, for differences between runs, and for the bootstrap."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.by_numpy import in_order
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import RUN, mix, sum_lanes, sum_run


def name_units_by_numpy(codes, units, shift, counts):
    """Do the same as `name_units`, on arrays."""
    codes[:] = units[codes]
    counts += np.bincount(codes >> shift, minlength=counts.size)


@kernel(by_numpy=name_units_by_numpy)
def name_units(codes, units, shift, counts):
    """Replace true clusters by their units, and count the cells of each range of 2**shift units."""
    for begin in range(0, codes.size, RUN):
        stop = min(begin + RUN, codes.size)
        for i in range(begin, stop):  # by itself, so that many cache misses overlap
            codes[at(i)] = units[at(codes[at(i)])]
        for i in range(begin, stop):
            counts[at(codes[at(i)] >> shift)] += 1


def scatter_units_by_numpy(cells, places, units, shift, next_cell, out):
    """Do the same as `scatter_units`, on arrays."""
    ranges = units >> shift
    to = next_cell[ranges] + in_order(ranges)[1]
    next_cell += np.bincount(ranges, minlength=next_cell.size)
    out[to] = cells[places]
    out["true"][to] = units


@kernel(by_numpy=scatter_units_by_numpy)
def scatter_units(cells, places, units, shift, next_cell, out):
    """Copy the cells at these places to the range of their unit; the unit replaces the true cluster.

    `next_cell` is the next place of each range.
    """
    for i in range(places.size):
        to = units[at(i)] >> shift
        j = next_cell[at(to)]
        next_cell[at(to)] = j + 1
        out[at(j)] = cells[at(places[at(i)])]
        out[at(j)].true = units[at(i)]


def add_shares_by_numpy(cells, first, total, shares):
    """Do the same as `add_shares`, on arrays."""
    np.add.at(shares, cells["true"] - first, cells["weight"])
    shares /= total


@kernel(by_numpy=add_shares_by_numpy)
def add_shares(cells, first, total, shares):
    """Write each unit's share of the total weight, from its cells; `first` is the first unit."""
    for i in range(cells.size):
        shares[at(cells[at(i)].true - first)] += cells[at(i)].weight
    for i in range(shares.size):
        shares[at(i)] /= total


@kernel
def add_scores(units, shares, deviations, sums):
    """Add the share * deviation of each cell to the sums of its unit.

    Shapes: (n,), (n,), (n_scores, n), (n_units, n_scores).
    """
    for i in range(units.size):
        for k in range(deviations.shape[0]):
            sums[units[i], k] += shares[i] * deviations[k, i]


def square_units_by_numpy(shares, sums, moves, space, powers, counted):
    """Do the same as `square_units`, but leave `space` as it is."""
    baseline, of_scores, of_shares = moves
    n_shares, n_units, found, counts = len(shares), shares.shape[1], powers.copy(), counted.tolist()
    for begin in range(0, n_units, RUN):
        n = min(RUN, n_units - begin)
        own, columns = np.zeros((n_shares, RUN)), np.zeros((len(sums), sums.shape[2], RUN))
        own[:, :n] = shares[:, begin : begin + n]
        columns[:, :, :n] = sums[:, begin : begin + n].transpose(0, 2, 1)
        moved = np.zeros(RUN)
        for each in own:
            moved += each / n_shares
        counts[0] += float(np.count_nonzero(moved > 0.0))
        counts[1] += sum_of_run(moved * moved)
        counts[2] = max(counts[2], float(moved.max()))
        for r, m in np.ndindex(*powers.shape[1:]):
            if r == baseline:
                continue
            before, after = own[min(baseline, n_shares - 1)], own[min(r, n_shares - 1)]
            moved = of_shares[r, m] * after - of_shares[baseline, m] * before
            for k in np.flatnonzero((of_scores[r, m] != 0.0) | (of_scores[baseline, m] != 0.0)):
                before = columns[min(baseline, len(columns) - 1), k]
                moved += of_scores[r, m, k] * columns[r, k] - of_scores[baseline, m, k] * before
            for power in range(2):
                moved *= moved
                found[power, r, m] += sum_of_run(moved)
    powers[:], counted[:] = found, counts


def sum_of_run(values):
    """Do the same as `sum_run`, on an array: each row is added to the sums of those before it."""
    return sum_lanes.py_func((0.0 + np.add.accumulate(values.reshape(-1, 8), axis=0)[-1]).tolist())


@kernel(by_numpy=square_units_by_numpy)
def square_units(shares, sums, moves, space, powers, counted):
    """Sum second and fourth powers of each unit's contributions to runs' scores, minus those to a baseline's scores.

    `moves` are: the index of the baseline, n_runs if there is none, whose derivatives are then 0; the derivative of
    each score by each sum, (n_runs, n_scores, k); and by the share, (n_runs, n_scores). `space` is for RUN units:
    (n_shares, RUN), (n_runs, k, RUN), (RUN,). Outputs: `powers` (2, n_runs, n_scores); `counted` (3,), the number of
    units with a share, the sum of squared shares, the largest share. Shapes: `shares` (n_shares, n), either one for
    all runs or one each; `sums` (n_runs, n, k).
    """
    # Idea: a run of units is copied to columns that stay in the cache, from which the contributions to all scores
    # of all runs are computed; writing each unit's contributions first would take memory for units x runs x
    # scores. Units past the end are 0 and add nothing, so that all runs have one length.
    # Squares are squared once more: the fourth powers give the degrees of freedom.
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
        for r in range(powers.shape[1]):
            if r == baseline:
                continue
            for m in range(powers.shape[2]):
                before = of_shares[baseline, m], own[min(baseline, last)]
                move_shares(before, (of_shares[r, m], own[min(r, last)]), moved)
                for k in range(columns.shape[1]):
                    if of_scores[r, m, k] != 0.0 or of_scores[baseline, m, k] != 0.0:
                        before = of_scores[baseline, m, k], columns[min(baseline, columns.shape[0] - 1), k]
                        move_sums(before, (of_scores[r, m, k], columns[r, k]), moved)
                for power in range(2):
                    for i in range(RUN):
                        moved[i] *= moved[i]
                    powers[power, r, m] += sum_run(moved)


@inlined
def read_units(shares, sums, begin, n, own, columns):
    """Copy n units, starting at `begin`, to columns, and fill the rest of the columns with 0."""
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
    """Write the difference between two runs' shares, each multiplied by its derivative."""
    for i in range(RUN):
        moved[i] = after[0] * after[1][i] - before[0] * before[1][i]


@inlined
def move_sums(before, after, moved):
    """Add the difference between two runs' sums, each multiplied by its derivative."""
    for i in range(RUN):
        moved[i] += after[0] * after[1][i] - before[0] * before[1][i]


#: Probabilities, in units of 2**-63, that a Poisson variable of mean 1 is at most 0, 1, …
STEPS = 19
CHANCES = np.empty(STEPS, np.int64)
_chance, _sum = np.exp(-1.0), 0.0
for _k in range(STEPS):
    _sum += _chance
    CHANCES[_k] = int(min(_sum, 1.0 - 2.0**-53) * 2.0**63)
    _chance /= _k + 1


@kernel
def draw(seed, replicate, unit):
    """Return how often a replicate draws a unit: Poisson with mean 1, from a hash of seed, replicate and unit."""
    number = mix(mix(seed ^ mix(replicate)) ^ unit) & 0x7FFFFFFFFFFFFFFF
    drawn = 0
    while drawn < STEPS and number >= CHANCES[drawn]:
        drawn += 1
    return drawn


#: Number of units summed for all replicates before the next are read; they stay in a core's cache.
UNITS_AT_ONCE = 1 << 12


@kernel
def resample(seed, first, last, units, values, totals):
    """Sum the values of the units that each replicate draws, each multiplied by its number of draws.

    Replicates are first..last. Shapes: (n_units,), (n_units, n_values), (last - first, n_values).
    """
    for begin in range(0, units.size, UNITS_AT_ONCE):
        end = min(begin + UNITS_AT_ONCE, units.size)
        for replicate in range(first, last):
            own = totals[replicate - first]
            for u in range(begin, end):
                drawn = draw(seed, replicate, units[u])
                if drawn:
                    for k in range(values.shape[1]):
                        own[k] += drawn * values[u, k]
