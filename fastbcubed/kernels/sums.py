"""Sums without loss of digits, by block and by code."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels import by_numpy
from fastbcubed.kernels.cells import bit_length
from fastbcubed.kernels.jit import at, kernel
from fastbcubed.kernels.partition import add_exactly, add_in_lanes, sum_lanes

#: Range in which weights can be added, squared and divided without overflow or loss of digits.
LEAST, MOST = 1e-120, 1e120
#: Number of weights that are checked and then summed; they stay in a core's L1 cache in between.
WEIGHTS_LOOKED_AT = 1024


@kernel
def check_weights(weights, start, stop, zero_allowed):
    """Return the number of weights of one block that are out of range, and the sum of all its weights."""
    bad, total = 0, 0.0
    for first in range(start, stop, WEIGHTS_LOOKED_AT):
        last = min(first + WEIGHTS_LOOKED_AT, stop)
        bad += count_out_of_range(weights, first, last, zero_allowed)
        total += add_up(weights, first, last)
    return bad, total


@kernel
def count_out_of_range(weights, start, stop, zero_allowed):
    """Return the number of weights that are out of range."""
    bad = 0
    for i in range(start, stop):
        w = weights[at(i)]
        bad += not (((w >= LEAST) & (w <= MOST)) | (zero_allowed & (w == 0.0)))
    return bad


@kernel
def add_up(weights, start, stop):
    """Return the sum of weights[start:stop]."""
    rest = stop - (stop - start) % 8
    a, b, c, d, e, f, g, h = add_in_lanes(weights, start, rest, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    for i in range(rest, stop):
        a += weights[at(i)]
    return sum_lanes((a, b, c, d, e, f, g, h))


@kernel
def add_by_code(codes, values, factors, cells, totals, errors):
    """Add `values * factors` to `totals + errors` by code; rows with a negative code are skipped.

    If `cells` is given, it is the cell of each row, -1 for an unscored row, and `factors` has one entry per cell.
    """
    for i in range(codes.size):
        k = codes[i]
        if k < 0:
            continue
        if cells is None:
            x = values[i] * factors[i]
        else:
            c = cells[i]
            if c < 0:
                continue
            x = values[i] * factors[c]
        totals[k], errors[k] = add_exactly(totals[k], errors[k], x)


def count_by_code_by_numpy(codes, counts, out):
    """Add `counts` to `out` by code with NumPy; see `count_by_code`."""
    np.add.at(out, codes[codes >= 0], counts[codes >= 0].astype(out.dtype))


@kernel(by_numpy=count_by_code_by_numpy)
def count_by_code(codes, counts, out):
    """Add `counts` to `out` by code, skipping negative codes."""
    for i in range(codes.size):
        if codes[i] >= 0:
            out[codes[i]] += counts[i]


@kernel
def count_sizes(sizes, counts):
    """Count clusters by size, up to the largest size with a counter; return the number of larger clusters."""
    larger = 0
    for i in range(sizes.size):
        if sizes[i] < counts.size:
            counts[sizes[i]] += 1
        else:
            larger += 1
    return larger


@kernel(words=True, by_numpy=by_numpy.find_run)
def find_run(keys, start, length):
    """Return whether any key lies in start .. start + length - 1, modulo 2**64."""
    begin = np.uint64(start)
    span = np.uint64(length)
    for i in range(keys.size):
        if np.uint64(keys[i]) - begin < span:
            return True
    return False


@kernel
def add_by_power(n, weight, lost, more, outer, counts, sums):
    """Sum over clusters by the power of two that their size reaches; clusters without items are skipped.

    `counts` receives the number of clusters and their items. `sums` receives their weight, their weight per item,
    their weight times size if `outer` or else weight squared, and the sums of `lost` and `more`. Shapes: `n` to
    `more` (n_clusters,), `counts` (2, 64), `sums` (5, 64).
    """
    for i in range(n.size):
        size, own = n[at(i)], weight[at(i)]
        if size == 0:
            continue
        k = at(bit_length(size + 1) - 1)
        counts[0, k] += 1
        counts[1, k] += size
        sums[0, k] += own
        sums[1, k] += own / size
        sums[2, k] += own * (size if outer else own)
        sums[3, k] += lost[at(i)]
        sums[4, k] += more[at(i)]
