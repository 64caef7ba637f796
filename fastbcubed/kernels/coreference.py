"""Sums of the coreference scores over cells, where the sides may have items of their own."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import kernel
from fastbcubed.kernels.runs import RUN

#: Summed over cells of n items, entities of sizes k and r: n / k, n n / k and n (n - 1) / (k - 1) of the
#: key, the same of the response, and the cells that are one item alone on both sides.
FIGURES = 7


@kernel
def sum_entities(cells, pred, start, stop, key_sizes, response_sizes, sums):
    """Sum the figures of a range of cells.

    The fp and fn of `cells` are counts. `key_sizes` and `response_sizes` are the items of each entity by
    code, empty where both sides have all of them; `pred` may be empty if the latter is. Shapes: `pred`
    (cells,), `sums` (runs, FIGURES).
    """
    run = 0
    for begin in range(start, stop, RUN):
        share_k, bcubed_k, lea_k = 0.0, 0.0, 0.0
        share_r, bcubed_r, lea_r = 0.0, 0.0, 0.0
        alone = 0
        for i in range(begin, min(begin + RUN, stop)):
            n = np.float64(cells[i].n)
            k = n + cells[i].fn
            r = n + cells[i].fp
            if key_sizes.size:
                k = np.float64(key_sizes[cells[i].true])
            if response_sizes.size:
                r = np.float64(response_sizes[pred[i]])
            share = n / k
            share_k += share
            bcubed_k += n * share
            lea_k += n * (n - 1.0) / max(k - 1.0, 1.0)
            share = n / r
            share_r += share
            bcubed_r += n * share
            lea_r += n * (n - 1.0) / max(r - 1.0, 1.0)
            alone += max(k, r) == 1.0
        sums[run, 0], sums[run, 1], sums[run, 2] = share_k, bcubed_k, lea_k
        sums[run, 3], sums[run, 4], sums[run, 5] = share_r, bcubed_r, lea_r
        sums[run, 6] = alone
        run += 1
