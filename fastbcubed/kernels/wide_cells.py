"""Wide cells, of many clusters: compared with every cell that shares one of these."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import inlined, kernel
from fastbcubed.kernels.mates import add_hits
from fastbcubed.kernels.subsets import count_sides, find


@kernel
def count_visits(cells, wide):
    """Return how often a cluster of these cells is one of a wide cell."""
    visits = 0
    for names in (cells.true_names, cells.pred_names):
        for k in range(len(names)):
            cluster = find(names, k, wide.names, wide.slots)[1]
            if cluster >= 0:
                visits += wide.bounds[cluster + 1] - wide.bounds[cluster]
    return visits


@kernel
def visit(cells, cell, wide, met, found):
    """Find the wide cells that share a cluster with a cell; return how many, and in `met` how many of each side.

    Shapes: `met` (n_wide, 2), 0 at first; `found` (n_wide,).
    """
    n_found = 0
    for side in range(2):
        names, bounds = (
            (cells.true_names, cells.true_bounds) if side == 0 else (cells.pred_names, cells.pred_bounds)
        )
        for k in range(bounds[cell], bounds[cell + 1]):
            cluster = find(names, k, wide.names, wide.slots)[1]
            if cluster < 0:
                continue
            for i in range(wide.bounds[cluster], wide.bounds[cluster + 1]):
                other = wide.cells[i]
                if met[other, 0] + met[other, 1] == 0:
                    found[n_found] = other
                    n_found += 1
                met[other, side] += 1
    return n_found


@inlined
def add_mate(row, n, w, c, g, apart, found):
    """Add the items of a cell that share c true and g predicted clusters; `apart` if only the prediction has them."""
    if apart:
        found.n_alone[row] += n
        found.alone[row] += w
        return
    found.mates[row, 0] += n if g else 0
    found.mates[row, 1] += n if c else 0
    parts = found.parts[row]
    parts[0], parts[1], parts[2], parts[3] = add_hits((parts[0], parts[1], parts[2], parts[3]), w, c, g)


@kernel
def meet_wide(cells, number, wide, apart, met, others, sums):
    """Add the cells of a shard to the sums of the wide cells that share a cluster with them.

    `number` is that of the shard's first wide cell; `apart` tells whether items of the prediction alone are added up
    apart. `met` and `others` are the workspace of `visit`, `sums` is a `Found` with a row for each wide cell.
    """
    for cell in range(cells.n.size):
        c, g = count_sides(cells, cell)
        own = number if c + g > cells.narrow else -1
        number += own >= 0
        w = cells.weight[cell] if cells.weight.size else np.float64(cells.n[cell])
        for k in range(visit(cells, cell, wide, met, others)):
            other = others[k]
            if other != own:
                alone = apart and cell >= cells.n_scored
                add_mate(other, cells.n[cell], w, met[other, 0], met[other, 1], alone, sums)
            met[other, 0] = met[other, 1] = 0


@kernel
def share_wide(cells, number, wide, apart, met, others, sums, found):
    """Add wide cells to what the scored cells of a shard share with their mates; wide ones take over their sums.

    Parameters are those of `meet_wide`, which has seen all shards; `found` is the `Found` of these cells.
    """
    for cell in range(cells.n_scored):
        c, g = count_sides(cells, cell)
        if c + g > cells.narrow:
            found.parts[cell] = sums.parts[number]
            found.mates[cell] = sums.mates[number] + cells.n[cell]
            found.n_alone[cell], found.alone[cell] = sums.n_alone[number], sums.alone[number]
            number += 1
            continue
        for k in range(visit(cells, cell, wide, met, others)):
            other = others[k]
            w = wide.weight[other] if wide.weight.size else np.float64(wide.n[other])
            add_mate(cell, wide.n[other], w, met[other, 0], met[other, 1], apart and wide.alone[other], found)
            met[other, 0] = met[other, 1] = 0
