"""Repairs of predicted clusters: what each would bring alone, and one after the other."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.jit import kernel


@kernel
def add_to(sums, k, at, x):
    """Add `x` to one of the sums of a row, held as two numbers side by side: the sum, and what it lacks in digits."""
    sums[k, at], sums[k, at + 1] = add_exactly(sums[k, at], sums[k, at + 1], x)


@kernel
def add_cells(cells, pred, outer, left, mass, correct):
    """Add cells, tp and weight * tp by predicted cluster. Shapes: `left` (n_pred,), `mass`, `correct` (n_pred, 2)."""
    for i in range(pred.size):
        weight = cells[i].weight
        tp = float(cells[i].n) if outer else weight
        k = pred[i]
        left[k] += 1
        add_to(mass, k, 0, tp)
        add_to(correct, k, 0, weight * tp)


@kernel
def add_masses(mass, masses):
    """Add a mass to each predicted cluster. Shapes: (n_pred, 2), (n_pred,)."""
    for k in range(masses.size):
        add_to(mass, k, 0, masses[k])


@kernel
def freed(others, tp, rest, outer):
    """Return what the other items of a predicted cluster gain in precision when those of a cell leave it.

    `others` is the sum of their weight * tp, and `rest` what stays of the cluster. The gain is in weight, and without
    `outer` no more than they weigh, whatever rounding says where they weigh next to nothing.
    """
    gain = max(others, 0.0) * (tp / (rest * (rest + tp)))
    return gain if outer else min(gain, rest)


@kernel
def add_gains(cells, pred, outer, correct, split, gather):
    """Add the gains of every repair alone, in weight: of splits, and of gathering in precision and in recall.

    Shapes: `correct` is what `add_cells` adds, (n_pred, 2); `split` (n_pred, 2); `gather` (n_true, 4).
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
    """Take the items of a cell out of a predicted cluster."""
    left, _, mass, correct, _ = clusters
    left[k] -= 1
    add_to(mass, k, 0, -tp)
    add_to(correct, k, 0, -weight * tp)


@kernel
def gains_of_cell(clusters, k, weight, tp, stays, outer):
    """Return what items of a cell gain in precision on their own, and the others of its cluster unless it `stays`."""
    left, outside, mass, correct, _ = clusters
    if left[k] == 1 and not outside[k]:
        return 0.0
    rest = max((mass[k, 0] - tp) + mass[k, 1], 0.0)
    if rest == 0.0:  # too little to be told from nothing
        return 0.0
    gain = weight * (rest / (rest + tp))
    if stays or left[k] == 1:
        return gain
    return gain + freed((correct[k, 0] - weight * tp) + correct[k, 1], tp, rest, outer)


@kernel
def apply_repairs(cells, pred, outer, repairs, clusters, gathered, gains):
    """Apply repairs one after the other, and write what each and all before add to precision and recall, in weight.

    `repairs` are, for each, whether it is a split, the code of its cluster, where its cells begin, and these cells.
    `clusters` are, for each predicted one, its cells, whether it has items that are not scored, the sums of tp and of
    weight * tp as of `add_cells`, and whether it is split; `gathered` tells which true ones are. Shapes: `gains`
    (n_repairs, 2): precision, recall.
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
