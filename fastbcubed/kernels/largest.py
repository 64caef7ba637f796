"""The cells of the largest clusters that are not exact, and the rows in them."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, kernel

#: Bits of a positive float64 that tell its size: its exponent and four more; and how many sizes they tell apart.
LEADING, SIZES = 48, 1 << 15


@kernel
def size_of(cell, outer):
    """Return how large the larger cluster of a cell is that has others' items, as a size; 0 if none has."""
    wrong = max(cell.fp, cell.fn)
    if wrong == 0.0:
        return 0
    return np.float64((np.float64(cell.n) if outer else cell.weight) + wrong).view(np.int64) >> LEADING


@kernel
def count_by_size(cells, outer, counts):
    """Count the items of cells by their size. Shape of `counts`: (SIZES,)."""
    for i in range(cells.size):
        counts[at(size_of(cells[at(i)], outer))] += cells[at(i)].n


@kernel
def mark_largest(cells, outer, least, marks):
    """Mark the cells of at least some size, by bits. Shape of `marks`: (n_cells / 8,)."""
    for i in range(cells.size):
        if size_of(cells[at(i)], outer) >= least:
            marks[at(i >> 3)] |= np.uint8(1 << (i & 7))


@kernel
def find_marked(numbers, marks, rows):
    """Write the rows whose cell has a mark, ascending; return how many there are. A number below 0 is no cell."""
    n = 0
    for i in range(numbers.size):
        cell = numbers[at(i)]
        if cell >= 0 and marks[at(cell >> 3)] >> np.uint8(cell & 7) & 1:
            rows[at(n)] = i
            n += 1
    return n
