"""The most common scores, compiled: all of them in one pass over the cells.

The formulas are those of `bcubed` and `change`; to use them, this file contains kernels outside `kernels/`.
Compilation only avoids NumPy's temporary arrays: the sums are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fastbcubed.kernels.clusters import in_range
from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import PIECE, RUN, add_exactly, add_to_lanes, read_run, sum_lanes
from fastbcubed.kernels.units import add_shares, square_units
from fastbcubed.metrics import bcubed, change

#: The compiled formulas, in the order of `weigh_run`.
FORMULAS: tuple[Callable[..., Any], ...] = (
    bcubed.precision,
    bcubed.recall,
    bcubed.over_merge_rate,
    bcubed.under_merge_rate,
    bcubed.mean_f1,
    bcubed.jaccard_index,
    bcubed.jaccard_distance,
    change.split_jaccard_distance,
    change.merge_jaccard_distance,
)
precision, recall, over_merge_rate, under_merge_rate, mean_f1 = map(kernel, FORMULAS[:5])
jaccard_index, jaccard_distance, split_jaccard_distance, merge_jaccard_distance = map(kernel, FORMULAS[5:])


#: The position of each compiled formula by its `id`, because a user's own formula need not be hashable.
POSITIONS = {id(formula): position for position, formula in enumerate(FORMULAS)}


def weigh_run_by_numpy(formula, weight, tp, fp, fn, products):
    """Write weight * score of some cells with NumPy; see `weigh_run`."""
    products[:] = weight * FORMULAS[formula](tp, fp, fn, 0.0)


@kernel(by_numpy=weigh_run_by_numpy)
def weigh_run(formula, weight, tp, fp, fn, products):
    """Write weight * score of some cells, by the formula at a position of FORMULAS. Shapes: (n,) each."""
    # A loop for each formula, not a function as an argument: so every formula becomes a part of its loop and is
    # computed in vector instructions, and callers are compiled once, not for each set of formulas.
    n = products.size
    if formula == 0:
        for i in range(n):
            products[i] = weight[i] * precision(tp[i], fp[i], fn[i], 0.0)
    elif formula == 1:
        for i in range(n):
            products[i] = weight[i] * recall(tp[i], fp[i], fn[i], 0.0)
    elif formula == 2:
        for i in range(n):
            products[i] = weight[i] * over_merge_rate(tp[i], fp[i], fn[i], 0.0)
    elif formula == 3:
        for i in range(n):
            products[i] = weight[i] * under_merge_rate(tp[i], fp[i], fn[i], 0.0)
    elif formula == 4:
        for i in range(n):
            products[i] = weight[i] * mean_f1(tp[i], fp[i], fn[i], 0.0)
    elif formula == 5:
        for i in range(n):
            products[i] = weight[i] * jaccard_index(tp[i], fp[i], fn[i], 0.0)
    elif formula == 6:
        for i in range(n):
            products[i] = weight[i] * jaccard_distance(tp[i], fp[i], fn[i], 0.0)
    elif formula == 7:
        for i in range(n):
            products[i] = weight[i] * split_jaccard_distance(tp[i], fp[i], fn[i], 0.0)
    else:
        for i in range(n):
            products[i] = weight[i] * merge_jaccard_distance(tp[i], fp[i], fn[i], 0.0)


def sum_scores_by_numpy(cells, start, stop, outer, formulas, sums):
    """Sum weights and weight * score of runs of cells with NumPy; see `sum_scores`."""
    n = stop - start
    weight, tp, fp, fn = (np.full(len(sums) * RUN, each) for each in (0.0, 1.0, 0.0, 0.0))
    for values, name in ((weight, "weight"), (tp, "n" if outer else "weight"), (fp, "fp"), (fn, "fn")):
        values[:n] = cells[name][start:stop]
    for k in range(1 + formulas.size):
        products = weight * FORMULAS[formulas[k - 1]](tp, fp, fn, 0.0) if k else weight
        by_step = np.ascontiguousarray(products.reshape(-1, RUN // 8, 8).swapaxes(0, 1))
        sums[:, k] = sum_lanes.py_func(tuple(np.add.reduce(by_step).T))  # adds in the order of `add_in_lanes`


@kernel(by_numpy=sum_scores_by_numpy)
def sum_scores(cells, start, stop, outer, formulas, sums):
    """Sum the weights, and weight * score by each formula, of runs of cells.

    Shapes: `formulas` int64 (n,), positions in FORMULAS; `sums` float64 (n_runs, 1 + n), one row per run of RUN
    cells.
    """
    weight, tp, fp, fn = np.zeros(PIECE), np.ones(PIECE), np.zeros(PIECE), np.zeros(PIECE)
    products, lanes = np.empty(PIECE), np.empty((1 + formulas.size, 8))
    run = 0
    for begin in range(start, stop, RUN):
        lanes[:] = 0.0
        for first in range(begin, min(begin + RUN, stop), PIECE):
            read_run(cells, first, min(PIECE, stop - first), outer, weight, tp, fp, fn)
            add_to_lanes(weight, lanes[0])
            for k in range(formulas.size):
                weigh_run(formulas[k], weight, tp, fp, fn, products)
                add_to_lanes(products, lanes[1 + k])
        for k in range(1 + formulas.size):
            sums[run, k] = sum_lanes(lanes[k])
        run += 1


@kernel
def add_by_group(cells, codes, outer, formulas, counts, totals, errors):
    """Sum the items and weights of cells, and weight * score by each formula, by group, without loss of digits.

    `codes` are the group of each cell, negative for none; the sums are `totals + errors`. Shapes: `codes` (n_cells,),
    `formulas` int64 (n,), positions in FORMULAS, `counts` (n_groups,), `totals` and `errors` (1 + n, n_groups).
    """
    weight, tp, fp, fn = np.zeros(RUN), np.ones(RUN), np.zeros(RUN), np.zeros(RUN)
    products = np.empty(RUN)
    for begin in range(0, cells.size, RUN):
        own = codes[begin : min(begin + RUN, cells.size)]
        read_run(cells, begin, own.size, outer, weight, tp, fp, fn)
        for i in range(own.size):
            if own[i] >= 0:
                counts[at(own[i])] += cells[at(begin + i)].n
        add_run(own, weight, totals[0], errors[0])
        for k in range(formulas.size):
            weigh_run(formulas[k], weight, tp, fp, fn, products)
            add_run(own, products, totals[1 + k], errors[1 + k])


@kernel
def add_run(codes, values, totals, errors):
    """Add values to the sums `totals + errors` of their codes, skipping negative codes."""
    for i in range(codes.size):
        k = codes[i]
        if k >= 0:
            totals[at(k)], errors[at(k)] = add_exactly(totals[at(k)], errors[at(k)], values[at(i)])


@inlined
def add_cell(counts, run, outcome, n, w, of_precision, of_recall):
    """Add the items, weight and losses of a cell to the sums of an outcome."""
    counts[outcome] += n
    run[0, outcome] += w
    run[1, outcome] += of_precision
    run[2, outcome] += of_recall


def losses_by_numpy(cells, outer):
    """Return the loss of precision and of recall of each cell, times its weight."""
    tp = cells["n"].astype(np.float64) if outer else cells["weight"]
    return [cells["weight"] * FORMULAS[k](tp, cells["fp"], cells["fn"], 0.0) for k in (2, 3)]


def add_by_outcome_by_numpy(cells, pred, start, stop, outer, firsts, true_marks, pred_marks, counts, sums):
    """Do the same as `add_by_outcome`, on arrays."""
    cells = cells[start:stop]
    values = [cells["weight"], *losses_by_numpy(cells, outer)]
    differ = (cells["fp"] != 0.0) | (cells["fn"] != 0.0)
    sides = (cells["true"], firsts[0], true_marks, 0), (pred[start:stop], firsts[1], pred_marks, 4)
    for codes, first, marks, base in sides:
        here, own = in_range(codes, first, marks.size)
        outcome = base + differ[here] * (marks[own] >> 1).astype(np.int64)
        np.add.at(counts, outcome, cells["n"][here])
        for k, each in enumerate(values):
            np.add.at(sums.reshape(-1), (here // RUN * 3 + k) * 8 + outcome, each[here])


@kernel(by_numpy=add_by_outcome_by_numpy)
def add_by_outcome(cells, pred, start, stop, outer, firsts, true_marks, pred_marks, counts, sums):
    """Sum the cells start..stop by the outcome of their true cluster, and by that of their predicted cluster.

    Marks are those of `kernels.clusters.mark_clusters`; clusters outside their range are skipped. Outputs by outcome,
    true clusters first: `counts` (8,), items; `sums` (n_runs, 3, 8), weight, loss of precision and loss of recall in
    each run of RUN cells.
    """
    for begin in range(start, stop, RUN):
        run = sums[at((begin - start) // RUN)]
        for i in range(begin, min(begin + RUN, stop)):
            n, w, fp, fn = cells[at(i)].n, cells[at(i)].weight, cells[at(i)].fp, cells[at(i)].fn
            tp = np.float64(n) if outer else w
            of_precision = w * over_merge_rate(tp, fp, fn, 0.0)
            of_recall = w * under_merge_rate(tp, fp, fn, 0.0)
            exact = fp == 0.0 and fn == 0.0  # its marks need not be looked up
            k = cells[at(i)].true - firsts[0]
            if 0 <= k < true_marks.size:
                outcome = 0 if exact else np.int64(true_marks[at(k)]) >> 1
                add_cell(counts, run, at(outcome), n, w, of_precision, of_recall)
            k = pred[at(i)] - firsts[1]
            if 0 <= k < pred_marks.size:
                outcome = 4 if exact else 4 + (np.int64(pred_marks[at(k)]) >> 1)
                add_cell(counts, run, at(outcome), n, w, of_precision, of_recall)


def add_losses_by_numpy(cells, pred, start, stop, outer, firsts, of_recall, of_precision):
    """Do the same as `add_losses`, on arrays."""
    cells = cells[start:stop]
    precision_lost, recall_lost = losses_by_numpy(cells, outer)
    of_sides = (
        (cells["true"], firsts[0], cells["fn"], recall_lost, of_recall),
        (pred[start:stop], firsts[1], cells["fp"], precision_lost, of_precision),
    )
    for codes, first, others, lost, sums in of_sides:
        here, own = in_range(codes, first, sums.size)
        some = others[here] != 0.0
        np.add.at(sums, own[some], lost[here][some])


@kernel(by_numpy=add_losses_by_numpy)
def add_losses(cells, pred, start, stop, outer, firsts, of_recall, of_precision):
    """Sum the losses of the cells start..stop: of recall by true cluster, of precision by predicted cluster."""
    for i in range(start, stop):
        w, fp, fn = cells[i].weight, cells[i].fp, cells[i].fn
        tp = np.float64(cells[i].n) if outer else w
        k = cells[i].true - firsts[0]
        if fn != 0.0 and 0 <= k < of_recall.size:
            of_recall[k] += w * under_merge_rate(tp, fp, fn, 0.0)
        k = pred[i] - firsts[1]
        if fp != 0.0 and 0 <= k < of_precision.size:
            of_precision[k] += w * over_merge_rate(tp, fp, fn, 0.0)


def origins_by_numpy(formulas):
    """Do the same as `origins`, on arrays."""
    one, none = np.ones(1), np.zeros(1)
    return np.array([FORMULAS[k](one, none, none, 0.0)[0] for k in formulas], np.float64)


@kernel(by_numpy=origins_by_numpy)
def origins(formulas):
    """Return the score of an exactly found cluster, by each formula. Shape: (n_formulas,)."""
    one, none, products, found = np.ones(RUN), np.zeros(RUN), np.empty(RUN), np.empty(formulas.size)
    for k in range(formulas.size):
        weigh_run(formulas[k], one, one, none, none, products)
        found[k] = products[0]
    return found


@kernel
def square_ranges(cells, bounds, ranges, n_units, runs, formulas, others, moves, space, powers, counted):
    """Sum what units contribute to the scores of all runs, and the powers of differences between runs, range by range.

    Cells, whose field `true` is their unit, are sorted by run and by range of 2**shift units. `ranges` are the first
    range, the end, and the shift. `runs` are the total weight of each run, and whether matrices are of counts.
    `formulas` are positions, origins and columns; `others`, the sums of other scores by run and unit, and their
    columns. `space` is workspace for the shares and sums of one range, and for `square_units`, which documents the
    other arguments.
    """
    shares, sums, rows = space
    for k in range(ranges[0], ranges[1]):
        first = k << ranges[2]
        n = min(1 << ranges[2], n_units - first)
        own, by_run = shares[:, :n], sums[:, :n]
        add_units(cells, bounds[:, k : k + 2], first, runs, formulas, others, own, by_run)
        square_units(own, by_run, moves, rows, powers, counted)


@kernel
def add_units(cells, bounds, first, runs, formulas, others, shares, sums):
    """Sum the cells of all runs over the units of one range, which starts at `first`."""
    shares[:] = 0.0
    sums[:] = 0.0
    for r in range(sums.shape[0]):
        own = cells[bounds[r, 0] : bounds[r, 1]]
        if r < shares.shape[0]:
            add_shares(own, first, runs[0][r], shares[r])
        add_by_unit(own, first, runs[0][r], runs[1], *formulas, sums[r])
        for j in range(others[1].size):
            for i in range(sums.shape[1]):
                sums[r, i, others[1][j]] = others[0][r, first + i, j]


def add_by_unit_by_numpy(cells, first, total, outer, formulas, origins, columns, sums):
    """Do the same as `add_by_unit`, on arrays."""
    own = cells[(cells["fp"] != 0.0) | (cells["fn"] != 0.0)]
    tp, share = own["n" if outer else "weight"].astype(np.float64), own["weight"] / total
    for formula, origin, column in zip(formulas, origins, columns, strict=True):
        scores = FORMULAS[formula](tp, own["fp"], own["fn"], 0.0)
        np.add.at(sums[:, column], own["true"] - first, share * (scores - origin))


@kernel(by_numpy=add_by_unit_by_numpy)
def add_by_unit(cells, first, total, outer, formulas, origins, columns, sums):
    """Add share * (score - origin) of each cell to its unit; exact cells, for which this is 0, are skipped.

    Shapes: records (n,); positions, origins and columns of `sums` of the formulas (n_formulas,); `sums` (n_units, k).
    """
    weight, tp, fp, fn, unit = (
        np.zeros(RUN),
        np.ones(RUN),
        np.zeros(RUN),
        np.zeros(RUN),
        np.zeros(RUN, np.int64),
    )
    ones, scores = np.ones(RUN), np.empty(RUN)
    begin = 0
    while begin < cells.size:
        n, begin = read_inexact(cells, begin, outer, (weight, tp, fp, fn, unit))
        for i in range(RUN):
            weight[at(i)] /= total
        for k in range(formulas.size):
            weigh_run(formulas[k], ones, tp, fp, fn, scores)
            origin, column = origins[at(k)], columns[at(k)]
            for i in range(RUN):
                scores[at(i)] = weight[at(i)] * (scores[at(i)] - origin)
            for i in range(n):
                sums[at(unit[at(i)] - first), at(column)] += scores[at(i)]


@kernel
def read_inexact(cells, i, outer, found):
    """Copy up to RUN cells whose two clusters differ; return their number, and the next cell to read."""
    weight, tp, fp, fn, unit = found
    n = 0
    while n < RUN and i < cells.size:
        weight[at(n)] = cells[at(i)].weight
        tp[at(n)] = np.float64(cells[at(i)].n) if outer else cells[at(i)].weight
        fp[at(n)] = cells[at(i)].fp
        fn[at(n)] = cells[at(i)].fn
        unit[at(n)] = cells[at(i)].true
        n += (cells[at(i)].fp != 0.0) | (cells[at(i)].fn != 0.0)
        i += 1
    return n, i
