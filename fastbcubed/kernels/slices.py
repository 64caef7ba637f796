"""Sums by slice and unit, of rows that are in the order of their units: all slices of some columns in one pass."""

from __future__ import annotations

from fastbcubed.kernels.jit import at, inlined, kernel

#: The sums of a slice: rows, weight, units, the sum of what units add to it, of the squares of that, and of its
#: products with what units add in all; then what the unit that is passed adds so far, and its number.
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


@inlined
def close_unit(sums, key, of_unit):
    """Add what the unit that was passed adds to a slice, and begin anew."""
    if sums[key, 7] >= 0.0:
        moved = sums[key, 6]
        sums[key, 2] += 1.0
        sums[key, 3] += moved
        sums[key, 4] += moved * moved
        sums[key, 5] += moved * of_unit[int(sums[key, 7])]
        sums[key, 6] = 0.0


@kernel
def add_slices(codes, columns, strides, unit, values, weight, of_unit, sums):
    """Add up values by slice, which is a number for the codes of some columns, and by unit.

    Idea: rows of a unit stand together, so that a slice has one sum that is open, that of the last unit seen in it,
    which is closed when the next one comes. Units of a slice are never in memory together, however many they are;
    sorting rows by slice and unit would take as long as everything else. The eight sums of a slice are one line of the
    cache. `weight` is empty where all are 1; LAST is initially -1. Shapes: (n_columns, n) uint8, (k,), (k,), (n,),
    (n,), (n,), (n_units,), (n_slices, WIDTH).
    """
    for i in range(unit.size):
        key = 0
        for k in range(columns.size):
            key += strides[k] * codes[columns[k], i]
        u = float(unit[i])
        if sums[key, 7] != u:
            close_unit(sums, key, of_unit)
            sums[key, 7] = u
        sums[key, 0] += 1.0
        sums[key, 1] += weight[i] if weight.size else 1.0
        sums[key, 6] += values[i]
    for key in range(sums.shape[0]):
        close_unit(sums, key, of_unit)


@kernel
def find_spread(codes, unit, first, crosses):
    """Mark codes that are in several units; `first`, the first unit of each code, is initially -1."""
    for i in range(codes.size):
        code = codes[i]
        if first[code] < 0:
            first[code] = unit[i]
        elif first[code] != unit[i]:
            crosses[code] = True
