"""How well the clusters of one side fit their best counterparts on the other.

A cell that is a whole cluster has no rival and is counted at once. The others leave the best so far
with their cluster, in records (weight, own, others, jaccard) that only clusters in several cells have.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import kernel

#: Summed over clusters: how many there are, how many are the same on the other side, their weight, the
#: weight of the largest cell of each and of the rest, weight * best F, the best Jaccard index.
FIGURES = 7
#: Cells whose figures are summed plainly; the sums of more are added exactly by the caller.
CELLS_PER_SUM = 1 << 12


@kernel
def find_best(cells, codes, start, stop, of_true, outer, numbers, best, count, sums):
    """Add the figures of clusters that are one cell, and keep the best cell of the others.

    `codes` are the clusters of the cells on this side; `outer` tells whether the matrices hold counts. A cluster
    has a record in `best` if its entry of `numbers` is not 0, counted from 1; `count` is how many there are, and
    returned is how many there are after. Output: `sums` (runs, FIGURES).
    """
    split = np.empty(CELLS_PER_SUM + 1, np.int64)
    record = np.empty(CELLS_PER_SUM, np.int64)
    run = 0
    for begin in range(start, stop, CELLS_PER_SUM):
        n_split = add_whole(cells, begin, min(begin + CELLS_PER_SUM, stop), of_true, outer, split, sums[run])
        run += 1
        for s in range(n_split):  # loads that wait for memory together
            record[s] = numbers[codes[split[s]]] - 1
        count = number_records(codes, split[:n_split], record, numbers, best, count)
        keep_best(cells, split[:n_split], record, of_true, outer, best)
    return count


@kernel
def add_whole(cells, begin, end, of_true, outer, split, sums):
    """Add the figures of the cells of a run that are clusters; return how many others `split` gets."""
    clusters, exact, mass, mass_f, closest = 0, 0, 0.0, 0.0, 0.0
    n_split = 0
    for k in range(begin, end):
        fp = cells[k].fp
        fn = cells[k].fn
        weight = cells[k].weight
        own = np.float64(cells[k].n) if outer else weight
        whole = (fn if of_true else fp) == 0.0  # no branch on it: it would often be guessed wrong
        split[n_split] = k
        n_split += not whole
        clusters += whole
        exact += fp + fn == 0.0
        weight = weight if whole else 0.0
        mass += weight
        mass_f += weight * (2.0 * own / (2.0 * own + fp + fn))
        closest += own / (own + fp + fn) if whole else 0.0
    sums[0], sums[1] = clusters, exact
    sums[2], sums[3], sums[4] = mass, mass, 0.0
    sums[5], sums[6] = mass_f, closest
    return n_split


@kernel
def number_records(codes, split, record, numbers, best, count):
    """Make a record for each cluster of some cells that has none; `record` gets it, and how many are is returned."""
    for s in range(split.size):
        if record[s] >= 0:
            continue
        code = codes[split[s]]
        at = numbers[code] - 1
        if at < 0:  # and no cell of this run has made its record since
            at = count
            count += 1
            numbers[code] = count
            best[at].weight = 0.0
            best[at].own = 0.0
            best[at].jaccard = 0.0
        record[s] = at
    return count


@kernel
def keep_best(cells, split, record, of_true, outer, best):
    """Keep the best of some cells in the records of their clusters."""
    for s in range(split.size):
        k, at = split[s], record[s]
        weight = cells[k].weight
        own = np.float64(cells[k].n) if outer else weight
        fp = cells[k].fp
        fn = cells[k].fn
        larger = own > best[at].own
        best[at].own = own if larger else best[at].own
        best[at].others = (fn if of_true else fp) if larger else best[at].others
        best[at].jaccard = max(best[at].jaccard, own / (own + fp + fn))
        best[at].weight += weight


@kernel
def add_best(best, start, stop, by_item, sums):
    """Add the figures of a range of the records. Shapes: (records,), int, int, bool, (runs, FIGURES) output.

    Where a cell and the rest do not add up to the weight of its cluster, their share is taken `by_item`.
    """
    run = 0
    for begin in range(start, stop, CELLS_PER_SUM):
        total = sums[run]
        total[:] = 0.0
        run += 1
        for k in range(begin, min(begin + CELLS_PER_SUM, stop)):
            weight = best[k].weight
            own = best[k].own
            jaccard = best[k].jaccard
            total[0] += 1.0
            total[2] += weight
            total[3] += weight * (own / (own + best[k].others)) if by_item else own
            total[4] += best[k].others
            total[5] += weight * (2.0 * jaccard / (1.0 + jaccard))
            total[6] += jaccard
