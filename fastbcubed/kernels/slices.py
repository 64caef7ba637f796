"""Sums by slice and unit, of rows that are in the order of their units: all slices of some columns in one pass."""

from __future__ import annotations

from fastbcubed.kernels.jit import at, kernel

#: The sums of a slice: rows, weight, units, the sum of what units add to it, of the squares of that, and of its
#: products with what units add in all; then what the last unit adds so far, and its number.
N, WEIGHT, UNITS, MOVED, SQUARES, PRODUCTS, OPEN, LAST = range(8)
WIDTH = 8


@kernel
def place_rows(unit, next_row, order):
    """Write the rows in the order of their units; `next_row` is the next place of each.

    Shapes: (n,), (n_units,), (n,).
    """
    for i in range(unit.size):
        u = unit[at(i)]
        j = next_row[at(u)]
        next_row[at(u)] = j + 1
        order[at(j)] = i


@kernel
def bin_values(values, edges, codes, lows, highs):
    """Write the bin of each value, which begins at an edge, and the least and the largest value of each bin.

    NaN has a bin behind the last. Shapes: (n,), (n_edges,), (n,), (n_edges + 1,), (n_edges + 1,).
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
def add_slices(base, last, stride, unit, values, weight, of_unit, sums):
    """Add up values by slice, which is a number for the codes of some columns, and by unit.

    Idea: rows of a unit stand together, so that a slice has one open sum s, that of the last unit seen in it. A value v
    of that unit adds (s + v)² - s² = v (v + 2 s) to the squares, so that nothing has to be closed, and no branch taken.
    Units of a slice are never in memory together, however many they are; sorting rows by slice and unit would take as
    long as everything else. The eight sums of a slice are one line of the cache. The number of a slice is `base`, for
    the codes of all columns but the last, plus `stride` times that of the last. `weight` is empty where all are 1, and
    WEIGHT stays 0 then; LAST is initially -1. Shapes: (n,) int32, (n,) uint8, (), (n,), (n,), (n,), (n_units,),
    (n_slices, WIDTH).
    """
    # Whether a row continues the open sum is a factor of 0 or 1. Asked in a branch, it cost three times as long where
    # attributes are constant within units: how many rows a unit has cannot be predicted (10 to 25 ns a row, now 3).
    for i in range(unit.size):
        key = at(base[at(i)] + stride * last[at(i)])
        u, v = unit[at(i)], values[at(i)]
        again = 1.0 * (sums[key, 7] == u)
        so_far = again * sums[key, 6]
        sums[key, 0] += 1.0
        if weight.size:
            sums[key, 1] += weight[at(i)]
        sums[key, 2] += 1.0 - again
        sums[key, 3] += v
        sums[key, 4] += v * (v + 2.0 * so_far)
        sums[key, 5] += v * of_unit[at(u)]
        sums[key, 6] = so_far + v
        sums[key, 7] = u


@kernel
def add_by_unit(parts, unit, values, weight, sums):
    """Add up weights, 1 where they are empty, and values by unit and part.

    Shapes: (n,), (n,), (k, n), (n,), (n_units, n_parts, 1 + k).
    """
    for i in range(unit.size):
        u, part = at(unit[at(i)]), at(parts[at(i)])
        sums[u, part, 0] += weight[at(i)] if weight.size else 1.0
        for k in range(values.shape[0]):
            sums[u, part, 1 + k] += values[at(k), at(i)]


@kernel
def find_spread(codes, unit, first, crosses):
    """Mark codes that are in several units; `first`, the first unit of each code, is initially -1."""
    for i in range(codes.size):
        code = codes[i]
        if first[code] < 0:
            first[code] = unit[i]
        elif first[code] != unit[i]:
            crosses[code] = True
