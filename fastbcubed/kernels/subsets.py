"""Subsets of the clusters of a cell, and wide cells, whose many clusters make all pairs of cells be compared."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.cache import inlined, kernel
from fastbcubed.kernels.cells import add_exactly
from fastbcubed.kernels.mates import add_hits, add_times, not_negative
from fastbcubed.kernels.partition import bits_of, mix

#: Kinds of records, as the last two bits of a number: scored items, those of the prediction alone, and the same
#: of wide cells.
SCORED, ALONE, WIDE = 0, 1, 2


@kernel
def name_clusters(keys, salt, names):
    """Write two words that identify each cluster, by key and salt. Shapes: (n,), (), (n, 2)."""
    for i in range(keys.size):
        h = mix(keys[i])
        names[i, 0] = mix(h ^ mix(2 * salt))
        names[i, 1] = mix(h ^ mix(2 * salt + 1))


@inlined
def count_sides(cells, cell):
    """Return the numbers of true and of predicted clusters of a cell."""
    c = cells.true_bounds[cell + 1] - cells.true_bounds[cell]
    g = cells.pred_bounds[cell + 1] - cells.pred_bounds[cell]
    return c, g


@inlined
def add_names(names, first, last, size, words):
    """Write the name sums of the subsets that include some further clusters, too; return their number."""
    for k in range(first, last):
        for m in range(size):
            words[size + m, 0] = words[m, 0] + names[k, 0]
            words[size + m, 1] = words[m, 1] + names[k, 1]
        size *= 2
    return size


@kernel
def sum_names(cells, cell, words):
    """Write the sums of the names of the subsets of the clusters of a cell, and return their number.

    Bit k of a subset's number is for cluster k, true ones first. For wide cells, see `name_pairs`. Subset 0 is
    empty. Shape of `words`: (2**clusters, 2) or more.
    """
    true, true_end = cells.true_bounds[cell], cells.true_bounds[cell + 1]
    pred, pred_end = cells.pred_bounds[cell], cells.pred_bounds[cell + 1]
    if (true_end - true) + (pred_end - pred) > cells.narrow:
        return name_pairs(cells, true, true_end, pred, pred_end, words)
    words[0, 0] = words[0, 1] = 0
    size = add_names(cells.true_names, true, true_end, 1, words)
    return add_names(cells.pred_names, pred, pred_end, size, words)


@kernel
def name_pairs(cells, true, true_end, pred, pred_end, words):
    """Write the names of the clusters of a wide cell, and their sums by true and predicted one; return their number."""
    size = 1
    for names, first, last in ((cells.true_names, true, true_end), (cells.pred_names, pred, pred_end)):
        for k in range(first, last):
            words[size, 0], words[size, 1] = names[k, 0], names[k, 1]
            size += 1
    for i in range(true, true_end):
        for j in range(pred, pred_end):
            words[size, 0] = cells.true_names[i, 0] + cells.pred_names[j, 0]
            words[size, 1] = cells.true_names[i, 1] + cells.pred_names[j, 1]
            size += 1
    return size


@kernel
def count_subsets(cells, start, stop, bits, words, counts):
    """Count the subsets of the cells of a block by shard, given by these bits of their first word."""
    for cell in range(start, stop):
        for m in range(1, sum_names(cells, cell, words)):
            counts[bits_of(words[m, 0], 0, bits)] += 1


@kernel
def scatter_subsets(cells, start, stop, bits, words, next_row, records, masses):
    """Write the subsets of the cells of a block, by shard: two words, items and their kind, their weight.

    `masses` are the same records as floats, None without weights. Shapes: `next_row` (n_shards,), `records`, `masses`
    (n_subsets, 3) or, with weights, (n_subsets, 4).
    """
    for cell in range(start, stop):
        c, g = count_sides(cells, cell)
        kind = SCORED if cell < cells.n_scored else ALONE
        n = cells.n[cell] * 4 + kind + (WIDE if c + g > cells.narrow else 0)
        for m in range(1, sum_names(cells, cell, words)):
            shard = bits_of(words[m, 0], 0, bits)
            row = next_row[shard]
            next_row[shard] = row + 1
            records[row, 0], records[row, 1], records[row, 2] = words[m, 0], words[m, 1], n
            if masses is not None:
                masses[row, 3] = cells.weight[cell]


@inlined
def find(records, i, names, slots):
    """Return the slot at which the search for a record's subset ends, and its number there, -1 for none."""
    mask = slots.size - 1
    s = records[i, 1] & mask
    k = slots[s]
    while k >= 0 and not (names[k, 0] == records[i, 0] and names[k, 1] == records[i, 1]):
        s = (s + 1) & mask
        k = slots[s]
    return s, k


@kernel
def enter(names, n_subsets, slots):
    """Enter subsets, all different, into empty slots. Shapes: (n_subsets, 2) or more, (), (power of two,)."""
    for k in range(n_subsets):
        slots[find(names, k, names, slots)[0]] = k


@kernel
def add_up(records, masses, names, n_subsets, slots, places, n_each, mass, rest):
    """Add up items and weight of the records of a shard by subset; return the number of subsets so far.

    Outputs: the names of subsets, their items by kind, and the weight of those that are not of wide cells;
    the subset of each record. Shapes: `slots` (power of two,), `names` (room, 2), `places` (n_records,), `n_each`
    (room, 1, 2 or 4), `mass`, `rest` (room, 1 or 2), None without weights.
    """
    for i in range(len(records)):
        s, k = find(records, i, names, slots)
        if k < 0:
            k = slots[s] = n_subsets
            names[k, 0], names[k, 1] = records[i, 0], records[i, 1]
            n_each[k] = 0
            if mass is not None:
                mass[k] = rest[k] = 0.0
            n_subsets += 1
        places[i] = k
        kind = records[i, 2] & 3
        n_each[k, kind] += records[i, 2] >> 2
        if mass is not None and kind < WIDE:
            mass[k, kind], rest[k, kind] = add_exactly(mass[k, kind], rest[k, kind], masses[i, 3])
    return n_subsets


@kernel
def look_up(records, names, slots, places):
    """Find the subset of each record, which must have been entered. Shapes: as in `add_up`."""
    for i in range(len(records)):
        places[i] = find(records, i, names, slots)[1]


@kernel
def send_back(records, places, n_each, mass, rest, told, back, floats):
    """Write for every record the totals of its subset: items of each kind, then weight, then its rounding error.

    The number of scored items is doubled, and odd for the first scored cell that reads it, so that a cluster is
    counted once. Shapes: `told` (n_subsets,), initially False; `back`, and the same as `floats`, a word for each.
    """
    kinds = n_each.shape[1]
    for i in range(len(records)):
        k = places[i]
        for kind in range(kinds):
            back[i, kind] = n_each[k, kind]
        if mass is not None:
            for kind in range(mass.shape[1]):
                floats[i, kinds + 2 * kind] = mass[k, kind]
                floats[i, kinds + 2 * kind + 1] = rest[k, kind]
        first = not records[i, 2] & ALONE and not told[k]
        back[i, 0] = 2 * n_each[k, 0] + first
        if first:
            told[k] = True


@kernel
def share_subsets(cells, start, stop, bits, words, next_row, back, floats, space, found):
    """Write hits and misses of each cell's items with their mates in other cells, from the totals of its subsets.

    Nothing is written for wide cells and those of the prediction alone. `space` is a `Space`, `found` a `FoundShares`
    of `overlap.mates`; records of the shards are in `back`, of which `floats` is a view, as written by
    `scatter_subsets`.
    """
    for cell in range(start, stop):
        size = sum_names(cells, cell, words)
        c, g = count_sides(cells, cell)
        narrow = c + g <= cells.narrow
        own = cells.weight[cell] if floats is not None else 0.0
        read_subsets(size, c, g, narrow, cells.n[cell], own, bits, words, next_row, back, floats, space)
        if cell < cells.n_scored:
            count_clusters(c, g, narrow, space, found)
            if narrow:
                invert(c, g, space, floats is not None)
                add_shares(cell, c, g, cells.n[cell], space, floats is not None, found)


@kernel
def read_subsets(size, c, g, narrow, n, weight, bits, words, next_row, back, floats, space):
    """Read the subsets of a cell: all items that count of each, and those of narrow cells by number of clusters.

    Items of the prediction alone are added to the others, unless they have separate sums. Those of the cell
    itself, `n` of this `weight`, are subtracted from each subset first, or lighter ones would lose digits.
    """
    apart = space.n.shape[0] - 1
    if narrow:
        space.n[:, : c + 1, : g + 1] = 0
        space.mass[:, : c + 1, : g + 1] = 0.0
        space.rest[:, : c + 1, : g + 1] = 0.0
    for m in range(1, size):
        shard = bits_of(words[m, 0], 0, bits)
        row = next_row[shard]
        next_row[shard] = row + 1
        count_items(m, row, back, apart, space)
        if narrow:
            i, j = space.ones[m & ((1 << c) - 1)], space.ones[m >> c]
            for kind in range(min(2, space.kinds)):
                to = kind * apart
                space.n[to, i, j] += (back[row, kind] >> 1) - n if kind == SCORED else back[row, kind]
                if floats is not None:
                    at = space.kinds + 2 * kind
                    mass, rest = add_exactly(floats[row, at], floats[row, at + 1], 0.0 if kind else -weight)
                    total, error = add_exactly(space.mass[to, i, j], space.rest[to, i, j], mass)
                    space.mass[to, i, j], space.rest[to, i, j] = total, error + rest


@inlined
def count_items(m, row, back, apart, space):
    """Record the items of a subset: all that count, and the scored ones, -1 if another cell has recorded these."""
    scored = back[row, 0] >> 1
    if space.kinds > WIDE:
        scored += back[row, WIDE]
    every = scored
    if not apart:
        for kind in range(ALONE, space.kinds, WIDE):
            every += back[row, kind]
    space.every[m] = every
    space.scored[m] = scored if back[row, 0] & 1 else -1


@kernel
def count_clusters(c, g, narrow, space, found):
    """Record the scored items of clusters not yet recorded by a cell, and whether they are equal on both sides."""
    for k in range(c + g):
        own = 1 << k if narrow else 1 + k
        if space.scored[own] < 0:
            continue
        side = 0 if k < c else 1
        exact = False
        for other in range(c if side == 0 else 0, c + g if side == 0 else c):
            t, p = (k, other - c) if side == 0 else (other, k - c)
            both = space.every[1 << t | 1 << c + p if narrow else 1 + c + g + t * g + p]
            exact = exact or (
                both == space.every[own] and both == space.every[1 << other if narrow else 1 + other]
            )
        found.sizes[side, found.n_clusters[side]] = space.scored[own]
        found.n_clusters[side] += 1
        found.n_exact[side] += exact


@kernel
def invert(c, g, space, weighted):
    """Convert items that share at least some clusters to items that share exactly these, by their number a side."""
    for which in range(space.n.shape[0]):
        n, mass, rest = space.n[which], space.mass[which], space.rest[which]
        for i in range(c + 1):
            invert_run(n[i], mass[i], rest[i], g, weighted)
        for j in range(g + 1):
            invert_run(n[:, j], mass[:, j], rest[:, j], c, weighted)


@kernel
def invert_run(n, mass, rest, most, weighted):
    """Replace, for each number a, the value by the sum over i of (-1)**(i - a) * C(i, a) times the value of i.

    Shapes: (most + 1,) or more, each.
    """
    for a in range(most):
        factor = 1
        for i in range(a + 1, most + 1):
            factor = -factor * i // (i - a)
            n[a] += factor * n[i]
            if weighted:
                mass[a], rest[a] = add_times(mass[a], rest[a], factor, mass[i])
                rest[a] += factor * rest[i]


@kernel
def add_shares(cell, c, g, own, space, weighted, found):
    """Add up hits and misses on both sides, and the items that share clusters with a cell, including its `own`."""
    hits = 0.0, 0.0, 0.0, 0.0
    n_pred = n_true = own
    for i in range(c + 1):
        for j in range(g + 1):
            n = space.n[0, i, j]
            if n == 0 or i + j == 0:
                continue
            n_pred += n if j else 0
            n_true += n if i else 0
            w = not_negative(space.mass[0, i, j] + space.rest[0, i, j]) if weighted else np.float64(n)
            hits = add_hits(hits, w, i, j)
    found.parts[cell, 0], found.parts[cell, 1], found.parts[cell, 2], found.parts[cell, 3] = hits
    found.mates[cell, 0], found.mates[cell, 1] = n_pred, n_true
    if space.n.shape[0] == 2:
        add_alone(cell, g, space, weighted, found)


@kernel
def add_alone(cell, g, space, weighted, found):
    """Add up the items of the prediction alone that share a predicted cluster with a cell."""
    n_alone, mass = 0, 0.0
    for j in range(1, g + 1):
        n = space.n[1, 0, j]
        n_alone += n
        w = np.float64(n)
        if weighted and n:
            w = space.mass[1, 0, j] + space.rest[1, 0, j]
        mass += not_negative(w)
    found.n_alone[cell], found.alone[cell] = n_alone, mass


@kernel
def count_visits(cells, wide):
    """Count the pairs of a membership of these cells and a wide cell in the same cluster."""
    visits = 0
    for names in (cells.true_names, cells.pred_names):
        for k in range(len(names)):
            cluster = find(names, k, wide.names, wide.slots)[1]
            if cluster >= 0:
                visits += wide.bounds[cluster + 1] - wide.bounds[cluster]
    return visits


@kernel
def visit(cells, cell, wide, met, found):
    """Find the wide cells that share a cluster with a cell; return their number, and in `met` the shared ones by side.

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

    `number` is that of the shard's first wide cell; `apart` states whether items of the prediction alone have
    separate sums. `met` and `others` are workspace for `visit`, `sums` a `FoundShares` with a row for each wide cell.
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
    """Add wide cells to the hits and misses of the scored cells of a shard; wide ones take over their sums.

    Parameters are those of `meet_wide`, which has processed all shards; `found` is the `FoundShares` of these cells.
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
