"""How well the clusters of one side fit their best counterparts on the other.

A cell that is a whole cluster has no rival and is counted at once. The others go by the codes of their
clusters to ranges whose best cells stay in cache, in records (code, weight, own, others, jaccard).
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, kernel

#: Summed over clusters: how many there are, how many are the same on the other side, their weight, the
#: weight of the largest cell of each and of the rest, weight * best F, the best Jaccard index.
FIGURES = 7
#: Cells, or clusters, whose figures are summed plainly; the sums of more are added exactly by the caller.
CELLS_PER_SUM = 1 << 12


@kernel
def add_whole(cells, start, stop, outer, true_split, pred_split, true_sums, pred_sums):
    """Add the figures of clusters that are one cell, and list the cells that share theirs with others, side by side.

    `outer` tells whether the matrices hold counts. Output: the places of the cells in `true_split` and `pred_split`
    (n_cells + 1,), of which as many are filled as is returned, and sums (runs, FIGURES).
    """
    n_true = n_pred = 0
    run = 0
    for begin in range(start, stop, CELLS_PER_SUM):
        end = min(begin + CELLS_PER_SUM, stop)
        n_true, n_pred = add_run(
            cells, begin, end, outer, true_split, pred_split, n_true, n_pred, true_sums[run], pred_sums[run]
        )
        run += 1
    return n_true, n_pred


@kernel
def add_run(cells, begin, end, outer, true_split, pred_split, n_true, n_pred, true_sums, pred_sums):
    """Do what `add_whole` does for one run of cells; there are no branches, which would often be guessed wrong."""
    t_split, p_split, exact = n_true, n_pred, 0
    t_mass, t_f, t_closest = 0.0, 0.0, 0.0
    p_mass, p_f, p_closest = 0.0, 0.0, 0.0
    for k in range(begin, end):
        fp, fn = cells[at(k)].fp, cells[at(k)].fn
        weight = cells[at(k)].weight
        own = np.float64(cells[at(k)].n) if outer else weight
        of_true, of_pred = fn == 0.0, fp == 0.0
        true_split[at(n_true)] = pred_split[at(n_pred)] = k
        n_true += not of_true
        n_pred += not of_pred
        exact += of_true & of_pred
        scaled = weight * (2.0 * own / (2.0 * own + fp + fn))
        jaccard = own / (own + fp + fn)
        t_mass += weight if of_true else 0.0
        p_mass += weight if of_pred else 0.0
        t_f += scaled if of_true else 0.0
        p_f += scaled if of_pred else 0.0
        t_closest += jaccard if of_true else 0.0
        p_closest += jaccard if of_pred else 0.0
    true_sums[0], pred_sums[0] = end - begin - (n_true - t_split), end - begin - (n_pred - p_split)
    true_sums[1] = pred_sums[1] = exact
    true_sums[2], true_sums[3], true_sums[5], true_sums[6] = t_mass, t_mass, t_f, t_closest
    pred_sums[2], pred_sums[3], pred_sums[5], pred_sums[6] = p_mass, p_mass, p_f, p_closest
    true_sums[4] = pred_sums[4] = 0.0
    return n_true, n_pred


@kernel
def count_split(codes, split, bits, bounds):
    """Find where the cells of each range of 2**bits codes begin, if they are sorted by range. Output: (ranges + 1,)."""
    bounds[:] = 0
    for s in range(split.size):
        bounds[at((codes[at(split[at(s)])] >> bits) + 1)] += 1
    for k in range(1, bounds.size):
        bounds[k] += bounds[k - 1]


@kernel
def write_split(cells, codes, split, bits, bounds, of_true, outer, records):
    """Write a record for each of some cells, by range of codes; in each range in the order of the cells."""
    place = bounds.copy()
    for s in range(split.size):
        k = split[at(s)]
        code = codes[at(k)]
        to = at(place[at(code >> bits)])
        place[at(code >> bits)] += 1
        fp = cells[at(k)].fp
        fn = cells[at(k)].fn
        weight = cells[at(k)].weight
        own = np.float64(cells[at(k)].n) if outer else weight
        records[to].code = code
        records[to].weight = weight
        records[to].own = own
        records[to].others = fn if of_true else fp
        records[to].jaccard = own / (own + fp + fn)


@kernel
def add_best(records, firsts, bounds, first, last, bits, by_item, numbers, best, sums):
    """Add the figures of the clusters of ranges first to last of codes.

    The records of block b and range r are those from firsts[b] + bounds[b, r] on. Workspaces: `numbers` and `best`
    have an entry for each code of a range, and `best` one more. Output: `sums` (last - first, FIGURES).
    """
    for part in range(first, last):
        numbers[:] = 0
        count = 0
        for b in range(firsts.size):
            begin, end = firsts[b] + bounds[b, part], firsts[b] + bounds[b, part + 1]
            if begin < end:
                count = keep_best(records[begin:end], part << bits, numbers, best, count)
        add_clusters(best[1 : count + 1], by_item, sums[part - first])


@kernel
def keep_best(records, base, numbers, best, count):
    """Keep the best of some cells with their clusters; return how many clusters there are, numbered from 1.

    Codes are counted from a base. A cluster's first cell takes the same path as others: it is as likely as they.
    """
    for k in range(records.size):
        code = at(records[k].code - base)
        known = np.int64(numbers[code])
        new = known == 0
        count += new
        c = at(count if new else known)
        numbers[code] = c
        own = records[k].own
        jaccard = records[k].jaccard
        larger = new | (own > best[c].own)
        best[c].own = own if larger else best[c].own
        best[c].others = records[k].others if larger else best[c].others
        best[c].jaccard = jaccard if new | (jaccard > best[c].jaccard) else best[c].jaccard
        best[c].weight = (0.0 if new else best[c].weight) + records[k].weight
    return count


@kernel
def add_clusters(best, by_item, total):
    """Add the figures of clusters, given the best cell of each.

    Where a cell and the rest do not add up to the weight of its cluster, their share is taken `by_item`.
    """
    total[:] = 0.0
    total[0] = best.size
    for c in range(best.size):
        weight, own, others, jaccard = best[c].weight, best[c].own, best[c].others, best[c].jaccard
        total[2] += weight
        total[3] += weight * (own / (own + others)) if by_item else own
        total[4] += others
        total[5] += weight * (2.0 * jaccard / (1.0 + jaccard))
        total[6] += jaccard
