"""Sums by slice and unit over rows sorted by unit: all slices of some columns in one pass.

A unit is a group of rows that is independent of the others, e.g. the rows of a connected component.
"""

from __future__ import annotations

from fastbcubed.kernels import by_numpy
from fastbcubed.kernels.jit import at, kernel

#: The figures of a slice: number of rows, weight, number of units; sums over units of the unit's value in the slice, of
#: its square, and of its product with the unit's value in all slices; value so far and number of the last unit seen.
N, WEIGHT, UNITS, MOVED, SQUARES, PRODUCTS, OPEN, LAST = range(8)
WIDTH = 8


@kernel
def place_rows(unit, next_row, order):
    """Sort rows stably by unit; `next_row` is the next place of each unit.

    Shapes: (n,), (n_units,), (n,).
    """
    for i in range(unit.size):
        u = unit[at(i)]
        j = next_row[at(u)]
        next_row[at(u)] = j + 1
        order[at(j)] = i


@kernel(by_numpy=by_numpy.take_codes)
def take_codes(place, codes, rows, taken):
    """Write the place of the code of each of some rows. Shapes: (n_codes,), (n,), (m,), (m,)."""
    for i in range(rows.size):
        taken[at(i)] = place[at(codes[at(rows[at(i)])])]


@kernel(by_numpy=by_numpy.count_codes)
def count_codes(of_code, codes, numbers, counts):
    """Write the number of each row's code, and count the rows of each number. Shapes: (n_codes,), (n,), (n,), (m,)."""
    for i in range(codes.size):
        number = of_code[at(codes[at(i)])]
        numbers[at(i)] = number
        counts[at(number)] += 1


@kernel
def bin_values(values, edges, codes, lows, highs):
    """Write the bin of each value, and the least and the largest value of each bin; a bin begins at an edge.

    NaN gets an additional last bin. Shapes: (n,), (n_edges,), (n,), (n_edges + 1,), (n_edges + 1,).
    """
    for i in range(values.size):
        x = values[i]
        if x != x:
            codes[i] = edges.size + 1
            continue
        low, high = 0, edges.size
        while low < high:
            middle = (low + high) // 2
            if edges[middle] <= x:
                low = middle + 1
            else:
                high = middle
        codes[i] = low
        lows[low] = min(lows[low], x)
        highs[low] = max(highs[low], x)


@kernel
def add_slices(base, step, bins, unit, values, products, weight, sums):
    """Sum values by slice, where a slice is a combination of one code per column, and over the squares of units' sums.

    The number of a slice is `base`, from the codes of all columns but the last, plus the `step` of the bin of the last.
    `products` are those of the values with the value of their unit in all slices. `weight` is empty where all weights
    are 1; WEIGHT then stays 0. LAST is initially -1. Shapes: (n,) int32, (256,) int32, (n,) uint8, (n,), (n,), (n,),
    (n,), (n_slices, WIDTH).

    The rows of a unit are contiguous, so a slice has one open sum s, that of the last unit seen in it. A value v of
    that unit adds (s + v)² - s² = v (v + 2 s) to the squares, without a branch or a step that closes the sum. This
    needs no memory per unit and slice; sorting rows by slice and unit would double the time. The eight figures of a
    slice fill one cache line.
    """
    # Whether a row continues the open sum is a factor of 0 or 1. Asked in a branch, it cost three times as long where
    # attributes are constant within units: how many rows a unit has cannot be predicted (10 to 25 ns a row, now 3).
    for i in range(unit.size):
        key = at(base[at(i)] + step[bins[at(i)]])
        u, v = float(unit[at(i)]), values[at(i)]
        again = 1.0 * (sums[key, 7] == u)
        so_far = again * sums[key, 6]
        sums[key, 0] += 1.0
        if weight.size:
            sums[key, 1] += weight[at(i)]
        sums[key, 2] += 1.0 - again
        sums[key, 3] += v
        sums[key, 4] += v * (v + 2.0 * so_far)
        sums[key, 5] += products[at(i)]
        sums[key, 6] = so_far + v
        sums[key, 7] = u


@kernel
def add_parts(parts, unit, values, weight, last, sums):
    """Count the units of each part, and sum the weights (1 if `weight` is empty) and values of rows.

    `last`, the last unit seen in each part, is initially -1. Shapes: (n,) uint8, (n,), (k, n), (n,), (n_parts,),
    (n_parts, 2 + k).
    """
    for i in range(parts.size):
        part, row = at(parts[at(i)]), at(i)
        sums[part, 0] += 1.0 * (last[part] != unit[row])
        last[part] = unit[row]
        sums[part, 1] += weight[row] if weight.size else 1.0
        for k in range(values.shape[0]):
            sums[part, 2 + k] += values[at(k), row]


@kernel
def add_powers(parts, unit, values, weight, factors, powers):
    """Sum the contributions of whole units, their squares and their fourth powers.

    A row contributes its weight (1 if `weight` is empty) and its values, each times the factor for its part.
    Shapes: (n,) uint8, (n,), (k, n), (n,), (n_parts, 1 + k), (3,).
    """
    moved, last = 0.0, -1
    for i in range(parts.size):
        part, row = at(parts[at(i)]), at(i)
        if unit[row] != last:
            square = moved * moved
            powers[0] += moved
            powers[1] += square
            powers[2] += square * square
            moved, last = 0.0, unit[row]
        moved += factors[part, 0] * (weight[row] if weight.size else 1.0)
        for k in range(values.shape[0]):
            moved += factors[part, at(1 + k)] * values[at(k), row]
    square = moved * moved
    powers[0] += moved
    powers[1] += square
    powers[2] += square * square


@kernel
def find_spread(codes, unit, first, crosses):
    """Mark codes that occur in several units; `first`, the first unit of each code, is initially -1."""
    for i in range(codes.size):
        code = codes[i]
        if first[code] < 0:
            first[code] = unit[i]
        elif first[code] != unit[i]:
            crosses[code] = True
