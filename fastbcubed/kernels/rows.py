"""From closed cells back to rows: each row is told its cell, or all there is to know of it."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly, bit_length
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import mix


@kernel
def gather_records(records, places, out, start, stop):
    """Copy records[places[i]] to out[i] for the rows start..stop."""
    for i in range(start, stop):
        out[i] = records[places[i]]


@kernel
def keep_rows(numbers, there, weight, among, scored, stay):
    """Mark in `stay` the rows whose bit is set in `among`, and set it in `scored`; `numbers` say which bits are theirs.

    Only rows that are `there` count; None for all. What comes back is how many are marked, and a hash of their
    numbers and weights (n,), read as integers, which does not depend on their order; 0 where these are None.
    """
    n, mixed = 0, np.uint64(0)
    for i in range(stay.size):
        if there is not None and not there[at(i)]:
            continue
        number = numbers[at(i)]
        bit = np.uint8(1 << (number & 7))
        if among[at(number >> 3)] & bit:
            scored[at(number >> 3)] |= bit
            stay[at(i)] = True
            n += 1
            if weight is not None:
                mixed += np.uint64(mix(mix(number) ^ weight[at(i)]))
    return n, mixed


@kernel
def tell_cells(at, closed, found, start, stop):
    """Write the number of its cell for each of the rows start..stop; `at` says where that is in `closed`."""
    for i in range(start, stop):
        found[i].cell = closed[at[i]].cell


@kernel
def count_scored(cells, closed, first_code, counts):
    """Count the scored items of each true cluster from `first_code` on."""
    for j in range(cells.size):
        if closed[j].cell >= 0:
            counts[cells[j].true - first_code] += cells[j].n


@kernel
def tell_matrices(at, cells, closed, first_code, true_sizes, tn, found, start, stop):
    """Write for each of the rows start..stop all there is to know of its cell.

    `at` is where the cell of each row is in `cells` (pred, weight, fn, true, n), as they left the shard, and
    `closed` (cell, fp, pred_power), what became of them. `true_sizes`, scored items, begin with the cluster
    `first_code`; `tn` is None or by number of the cell. Output: `found`, records like MATRIX_OF_ROW. Shapes:
    `at` (n_rows,), `tn` (n_cells,).
    """
    for i in range(start, stop):
        j = at[i]
        cell = closed[j].cell
        found[i].cell = cell
        found[i].weight = cells[j].weight
        found[i].fp = closed[j].fp
        found[i].fn = cells[j].fn
        found[i].n = cells[j].n
        found[i].tn = 0.0
        found[i].true_power = 0
        found[i].pred_power = closed[j].pred_power
        if cell >= 0:
            found[i].true_power = bit_length(true_sizes[cells[j].true - first_code] + 1) - 1
            if tn is not None:
                found[i].tn = tn[cell]


@kernel
def add_by_cell(place, values, first, last, sums):
    """Add up values of the rows of the cells first..last, exactly, into records (mass, rest) by cell."""
    for i in range(place.size):
        j = place[at(i)]
        if first <= j < last:
            sums[at(j)].mass, sums[at(j)].rest = add_exactly(
                sums[at(j)].mass, sums[at(j)].rest, values[at(i)]
            )


@kernel
def weigh_items(place, weight, sums, cells, closed, numbers, start, stop, out):
    """Write of each of the rows start..stop its weight, that of the others in its cell, fp and fn; 0 if not scored.

    `place` is where the cell of each row is in `sums`, records (mass, rest), `cells`, which have n and fn, `closed`,
    which have fp, and `numbers`, negative where a cell is not scored. Where `numbers` is None, the place of a row that
    is not scored is negative. Shapes: `place`, `weight` (n_rows,), `sums` to `numbers` (n_cells,), `out`
    (4, stop - start) or more.
    """
    for i in range(start, stop):
        j, k = place[at(i)], at(i - start)
        number = j if numbers is None else numbers[at(j)]
        if number < 0:
            out[:, k] = 0.0
            continue
        own = weight[at(i)]
        out[0, k] = own
        out[1, k] = weigh_others(own, sums[at(j)].mass, sums[at(j)].rest, cells[at(j)].n)
        out[2, k], out[3, k] = closed[at(j)].fp, cells[at(j)].fn


@kernel
def tell_others(place, weight, sums, cells, found, start, stop):
    """Write for each of the rows start..stop what the others in its cell weigh; see `weigh_items`."""
    for i in range(start, stop):
        j = place[at(i)]
        found[at(i)].others = weigh_others(weight[at(i)], sums[at(j)].mass, sums[at(j)].rest, cells[at(j)].n)


@inlined
def weigh_others(own, mass, rest, n):
    """Return what the other items of a cell weigh, 0 if there are none."""
    return (mass - own) + rest if n > 1 else 0.0
