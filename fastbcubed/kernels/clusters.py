"""Kernels on clusters and their cells: outcomes, and the gain in precision and recall from repairs."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, inlined, kernel
from fastbcubed.kernels.partition import add_exactly


@inlined
def mark(marks, k, fp, fn):
    """Set a cluster's bits for one of its cells: 1 has a cell, 2 lacks items (fn), 4 has foreign items (fp)."""
    if 0 <= k < marks.size:
        marks[at(k)] |= 1 | (fn != 0.0) << 1 | (fp != 0.0) << 2


def in_range(codes, first, n):
    """Return the places of the codes first..first + n, and their distance from `first`."""
    own = codes - first
    here = np.flatnonzero((own >= 0) & (own < n))
    return here, own[here]


def mark_clusters_by_numpy(cells, pred, start, stop, firsts, true_marks, pred_marks):
    """Do the same as `mark_clusters`, on arrays."""
    fp, fn = (cells[name][start:stop] != 0.0 for name in ("fp", "fn"))
    bits, exact = (1 | fn << 1 | fp << 2).astype(np.uint8), []
    sides = (cells["true"], firsts[0], true_marks), (pred, firsts[1], pred_marks)
    for codes, first, marks in sides:
        here, own = in_range(codes[start:stop], first, marks.size)
        differ = bits[here] != 1
        np.bitwise_or.at(marks, own[differ], bits[here][differ])
        exact.append(int(differ.size - np.count_nonzero(differ)))
    return tuple(exact)


@kernel(by_numpy=mark_clusters_by_numpy)
def mark_clusters(cells, pred, start, stop, firsts, true_marks, pred_marks):
    """Mark the clusters of the cells start..stop; `firsts` are the codes at which `true_marks` and `pred_marks` start.

    After the last cell, a mark is 1 + twice the outcome: 1 split, 2 merged, 3 both. Exact clusters, which consist of
    one cell, get no mark; returns their number on each side.
    """
    n_true = n_pred = 0
    for i in range(start, stop):
        fp, fn = cells[at(i)].fp, cells[at(i)].fn
        k, j = cells[at(i)].true - firsts[0], pred[at(i)] - firsts[1]
        if fp == 0.0 and fn == 0.0:
            n_true += 0 <= k < true_marks.size
            n_pred += 0 <= j < pred_marks.size
        else:
            mark(true_marks, k, fp, fn)
            mark(pred_marks, j, fp, fn)
    return n_true, n_pred


def count_marks_by_numpy(marks, counts):
    """Do the same as `count_marks`, on arrays."""
    counts += np.bincount(marks[marks & 1 == 1] >> 1, minlength=counts.size)


@kernel(by_numpy=count_marks_by_numpy)
def count_marks(marks, counts):
    """Count the marked clusters of each outcome."""
    for k in range(marks.size):
        counts[at(marks[at(k)] >> 1)] += marks[at(k)] & 1


@kernel
def add_to(sums, k, at, x):
    """Add `x` to row k's sum in column `at`; column `at + 1` holds the sum's rounding error."""
    sums[k, at], sums[k, at + 1] = add_exactly(sums[k, at], sums[k, at + 1], x)


@kernel
def add_cells(cells, pred, outer, left, mass, correct):
    """Count the cells of each predicted cluster, and sum their tp and weight * tp.

    Shapes: `left` (number of cells) (n_pred,), `mass` (tp) and `correct` (weight * tp) (n_pred, 2).
    """
    for i in range(pred.size):
        weight = cells[i].weight
        tp = float(cells[i].n) if outer else weight
        k = pred[i]
        left[k] += 1
        add_to(mass, k, 0, tp)
        add_to(correct, k, 0, weight * tp)


@kernel
def add_masses(mass, masses):
    """Add a further mass to the sum of each predicted cluster. Shapes: (n_pred, 2), (n_pred,)."""
    for k in range(masses.size):
        add_to(mass, k, 0, masses[k])


@kernel
def freed(others, tp, rest, outer):
    """Return the precision that the remaining items of a predicted cluster gain when the items of one cell leave it.

    `tp` is the mass of the leaving cell, `others` the remaining cells' sum of weight * tp, and `rest` their mass.
    Without `outer`, the gain is capped at their weight, which rounding may exceed when the weight is tiny.
    """
    gain = max(others, 0.0) * (tp / (rest * (rest + tp)))
    return gain if outer else min(gain, rest)


@kernel
def add_gains(cells, pred, outer, correct, split, gather):
    """Add the gains of each repair applied on its own, in weight.

    Splitting a predicted cluster gains precision; gathering a true cluster gains precision and recall. Shapes:
    `correct` as filled by `add_cells` (n_pred, 2); `split` (n_pred, 2); `gather` (precision, recall; n_true, 4).
    """
    for i in range(pred.size):
        cell = cells[i]
        weight = cell.weight
        tp = float(cell.n) if outer else weight
        if cell.fn > 0.0:
            add_to(gather, cell.true, 2, weight * (cell.fn / (tp + cell.fn)))
        if cell.fp > 0.0:
            k = pred[i]
            lost = weight * (cell.fp / (tp + cell.fp))
            add_to(split, k, 0, lost)
            others = (correct[k, 0] - weight * tp) + correct[k, 1]
            add_to(gather, cell.true, 0, lost + freed(others, tp, cell.fp, outer))


@kernel
def leave(clusters, k, weight, tp):
    """Remove the items of a cell from a predicted cluster."""
    left, _, mass, correct, _ = clusters
    left[k] -= 1
    add_to(mass, k, 0, -tp)
    add_to(correct, k, 0, -weight * tp)


@kernel
def gains_of_cell(clusters, k, weight, tp, stays, outer):
    """Return the precision gained, in weight, when a cell's items leave their predicted cluster.

    The gain of the cluster's other items is left out if `stays`: a split adds the gain of each cell in turn.
    """
    left, outside, mass, correct, _ = clusters
    if left[k] == 1 and not outside[k]:
        return 0.0
    rest = max((mass[k, 0] - tp) + mass[k, 1], 0.0)
    if rest == 0.0:  # indistinguishable from zero
        return 0.0
    gain = weight * (rest / (rest + tp))
    if stays or left[k] == 1:
        return gain
    return gain + freed((correct[k, 0] - weight * tp) + correct[k, 1], tp, rest, outer)


@kernel
def apply_repairs(cells, pred, outer, repairs, clusters, gathered, gains):
    """Apply repairs in order, and write the cumulative gains in precision and recall after each, in weight.

    `repairs` are arrays of: whether the repair is a split, the code of its cluster, the offset of its cells, and the
    positions of all cells. `clusters` are arrays by predicted cluster: its number of cells, whether it has unscored
    items, the sums of tp and weight * tp as in `add_cells`, and whether it is split. `gathered` marks gathered true
    clusters. Shapes: `gains` (n_repairs, 2): precision, recall.
    """
    splits, codes, starts, places = repairs
    is_split = clusters[4]
    sums = np.zeros((2, 2))
    for r in range(codes.size):
        for j in range(starts[r], starts[r + 1]):
            cell, k = cells[places[j]], pred[places[j]]
            if gathered[cell.true]:
                continue
            weight = cell.weight
            tp = float(cell.n) if outer else weight
            if not splits[r]:
                add_to(sums, 1, 0, weight * (cell.fn / (tp + cell.fn)))
            if not is_split[k]:
                add_to(sums, 0, 0, gains_of_cell(clusters, k, weight, tp, splits[r], outer))
                if not splits[r]:
                    leave(clusters, k, weight, tp)
        if splits[r]:
            is_split[codes[r]] = True
        else:
            gathered[codes[r]] = True
        gains[r, 0], gains[r, 1] = sums[0, 0] + sums[0, 1], sums[1, 0] + sums[1, 1]
