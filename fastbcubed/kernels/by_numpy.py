"""Array versions of the kernels that count cells, for inputs too small to compile and too large for Python loops.

Each function has the name and arguments of its kernel and returns the same results to the last bit; only the contents
of workspace differ. Rows are sorted instead of entered into hash tables, and sums follow the order of rows. Outputs
are written only after all results are computed. A function returns `NotImplemented` if the kernel should run as a
Python loop instead: for few rows, for which loops are faster, and for rare cases.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.partition import (
    WEIGHTS_AT_ONCE,
    add_exactly,
    bits_of,
    mix,
    places_of,
)

#: With fewer rows than this, loops are faster.
FEW_ROWS = 64
#: Odd factors that hash keys into the leading bits; the leading bits of the keys themselves are equal within a part.
SPREAD, SPREAD_PAIRS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD1B54A32D192ED03)
#: With fewer open sums than this, values are added one by one.
FEW_SUMS = 16
#: Integers below this are exact as doubles.
EXACT = float(1 << 53)


def number_groups(*keys):
    """Return the index of the first row of each group of equal keys, and each row's group number.

    `keys` are one or more int64 arrays of shape (n,). Groups are numbered by their first row. The leading bits of each
    key's hash are combined with its row index and sorted as plain integers, which is NumPy's fastest sort.
    """
    n = keys[0].size
    low = np.uint64(max(n - 1, 0).bit_length())
    hashes = keys[0].view(np.uint64) * SPREAD
    for key in keys[1:]:
        hashes = (hashes ^ key.view(np.uint64)) * SPREAD_PAIRS
    words = np.sort(((hashes >> low) << low) | np.arange(n, dtype=np.uint64))
    rows = (words & ((np.uint64(1) << low) - np.uint64(1))).view(np.int64)
    words >>= low
    begins = np.ones(n, np.bool_)
    np.not_equal(words[1:], words[:-1], out=begins[1:])
    differ = np.zeros(n, np.bool_)
    for key in keys:
        own = key[rows]
        differ[1:] |= own[1:] != own[:-1]
    if (differ > begins).any():  # different keys have the same leading bits
        rows = np.lexsort(keys)
        begins[:] = False
        begins[0] = True
        for key in keys:
            own = key[rows]
            begins[1:] |= own[1:] != own[:-1]
    firsts = rows[begins]
    is_first = np.zeros(n, np.bool_)
    is_first[firsts] = True
    number = np.cumsum(is_first) - 1
    numbers = np.empty(n, np.int64)
    numbers[rows] = number[firsts][np.cumsum(begins) - 1]
    return np.flatnonzero(is_first), numbers


def in_order(codes):
    """Return a stable ordering of rows by code, and each row's rank among the rows of its code. Shape (n,) each."""
    low = max(codes.size - 1, 0).bit_length()
    rows = np.sort((codes.astype(np.int64) << low) | np.arange(codes.size)) & ((1 << low) - 1)
    counts = np.bincount(codes)
    ranks = np.empty(codes.size, np.int64)
    ranks[rows] = np.arange(codes.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, ranks


def add_by_code(codes, values, total, error):
    """Add each value to the sum of its code in place, in row order and without loss (see `add_exactly`).

    The sums and their rounding errors are `total` and `error` (n_codes,). Shapes of `codes` and `values`: (n,).
    """
    if not codes.size:
        return
    if abs(total).sum() + abs(values).sum() < EXACT and (values == np.floor(values)).all():
        if (total == np.floor(total)).all():  # integers: exact in any order
            total += np.bincount(codes, values, total.size)
            return
    _, ranks = in_order(codes)
    rows, _ = in_order(ranks)
    begin = 0
    for n in np.bincount(ranks):
        if n < FEW_SUMS:
            break
        now = rows[begin : begin + n]
        k = codes[now]
        total[k], error[k] = add_exactly.py_func(total[k], error[k], values[now])
        begin += n
    left = np.sort(rows[begin:])
    for k, x in zip(codes[left].tolist(), values[left].tolist(), strict=True):
        total[k], error[k] = add_exactly.py_func(float(total[k]), float(error[k]), x)


def sum_weights(numbers, counts, x):
    """Return the sum of weights of each cell, in the same order and groups as `merge_rows`.

    Each group of WEIGHTS_AT_ONCE weights is summed plainly; the sums of groups are then added exactly. Shapes:
    `numbers` (cell of each row) and `x` (n_rows,), `counts` (rows of each cell) (n_cells,).
    """
    if counts.max(initial=0) < WEIGHTS_AT_ONCE:
        return np.bincount(numbers, x, counts.size)
    _, ranks = in_order(numbers)
    full = counts // WEIGHTS_AT_ONCE
    firsts = np.cumsum(full + 1) - full - 1  # each cell has its full groups, then the incomplete one
    sums = np.bincount(firsts[numbers] + ranks // WEIGHTS_AT_ONCE, x, int((full + 1).sum()))
    rest = sums[firsts + full]
    is_full = np.ones(sums.size, np.bool_)
    is_full[firsts + full] = False
    total, error = np.zeros(counts.size), np.zeros(counts.size)
    add_by_code(np.repeat(np.arange(counts.size), full), sums[is_full], total, error)
    return np.where(full > 0, rest + (total + error), rest)


def targets_of(preds, numbers, targets):
    """Return the target of each cell, the partition by predicted cluster it is sent to; see `target_of`."""
    skip, bits, lacking, absent = targets
    found = bits_of.py_func(preds, skip, bits)
    return np.where(preds == absent, numbers & ((1 << bits) - 1), found) if lacking else found


def count_pairs(true, pred, slots, first, seen):
    """Write the first row and the number of rows of each distinct pair of codes; return the number of pairs."""
    if true.size < FEW_ROWS:
        return NotImplemented
    firsts, numbers = number_groups(true, pred)
    first[: firsts.size], seen[: firsts.size] = firsts, np.bincount(numbers)
    return firsts.size


def ranges(bounds, sizes):
    """Return the part of each record, its number within the part, and its position.

    Each part has `sizes` records, which start at its bound. Shapes: (n_parts,), (n_parts,) -> three of (n_records,).
    """
    part = np.repeat(np.arange(sizes.size), sizes)
    number = np.arange(part.size) - (np.cumsum(sizes) - sizes)[part]
    return part, number, bounds[part] + number


def find_cells(keys, bounds, part_from, part_to):
    """Find the cells of several parts; return their first rows, each row's cell, their `ranges`, and cells per part."""
    firsts, numbers = number_groups(*keys)
    sizes = np.diff(np.searchsorted(firsts, bounds[part_from : part_to + 1] - bounds[part_from]))
    return firsts, numbers, ranges(bounds[part_from:part_to], sizes), sizes


def keys_of(rows, start, stop):
    """Return contiguous copies of the true and predicted keys of the rows start..stop."""
    return tuple(np.ascontiguousarray(rows[name][start:stop]) for name in ("true", "pred"))


def part_of_rows(bounds, part_from, part_to):
    """Return the part of each row, numbered from 0 at `part_from`."""
    return np.repeat(np.arange(part_to - part_from), np.diff(bounds[part_from : part_to + 1]))


def is_small(bounds, part_from, part_to):
    """Return whether the parts have fewer than FEW_ROWS rows in total."""
    return bounds[part_to] - bounds[part_from] < FEW_ROWS


def number_by_part(keys, part, n_parts):
    """Assign numbers to the distinct keys of each part.

    Returns the first row of each key, the number of each row's key, from 0 in its part, and the number of keys of
    each part. No key may occur in several parts, and `part` (n_rows,) must ascend.
    """
    firsts, numbers = number_groups(keys)
    n = np.bincount(part[firsts], minlength=n_parts)
    return firsts, numbers - (np.cumsum(n) - n)[part], n


def build_cells(
    rows, cells, bounds, part_from, part_to, targets, heavy, space, n_cells, n_clusters, histogram, keys
):
    """Turn the rows of several parts into cells, and number the true clusters of each part."""
    weighted, counted = space[5] is not None, space[7] is not None
    start, stop = bounds[part_from], bounds[part_to]
    if (
        counted
        or is_small(bounds, part_from, part_to)
        or (weighted and np.signbit(rows["x"][start:stop]).any())
    ):
        return NotImplemented
    keys_of_rows = keys_of(rows, start, stop)
    firsts, numbers, (part, number, at), sizes = find_cells(keys_of_rows, bounds, part_from, part_to)
    true, pred = (each[firsts] for each in keys_of_rows)
    n = np.bincount(numbers, minlength=true.size)
    x = sum_weights(numbers, n, rows["x"][start:stop]) if weighted else None
    if heavy.size:
        codes, n_clusters[part_from:part_to] = np.searchsorted(heavy, true), heavy.size
    else:
        firsts, codes, found = number_by_part(true, part, sizes.size)
        n_clusters[part_from:part_to] = found
        if keys.size:
            keys[(np.cumsum(found) - found)[part[firsts]] + codes[firsts]] = true[firsts]
    if weighted:
        cells["x"][at] = x
    cells["pred"][at], cells["cluster"][at], cells["n"][at] = pred, codes, n
    histogram += np.bincount(targets_of(pred, number, targets), minlength=histogram.size)
    n_cells[part_from:part_to] = sizes
    return None


def locate_cells(rows, bounds, part_from, part_to, targets, space, slot_of_row, n_cells, histogram):
    """Find the cells of several parts again, and write the position of each row's cell."""
    if is_small(bounds, part_from, part_to):
        return NotImplemented
    start, stop = bounds[part_from], bounds[part_to]
    keys = keys_of(rows, start, stop)
    firsts, numbers, (_, number, at), sizes = find_cells(keys, bounds, part_from, part_to)
    true, pred = (each[firsts] for each in keys)
    slot_of_row[rows["x"][start:stop]] = at[numbers]
    rows["true"][at], rows["pred"][at] = true, pred
    histogram += np.bincount(targets_of(pred, number, targets), minlength=histogram.size)
    n_cells[part_from:part_to] = sizes
    return None


def place_cells(rows, bounds, part_from, part_to, targets, n_cells, next_cell):
    """Write each located cell's destination in `scatter_cells` to its field `true`."""
    _, number, at = ranges(bounds[part_from:part_to], n_cells[part_from:part_to])
    rows["true"][at] = places_of(targets_of(rows["pred"][at], number, targets), next_cell)


def look_up_cells(rows, start, stop, cells):
    """Replace the position of each row's cell by the number of the finished cell."""
    cells[start:stop] = rows["true"][cells[start:stop]]


def find_first_rows(rows, bounds, part_from, part_to, targets, space, n_cells, histogram):
    """Find the cells of several parts again, and write the first row of each to its field `x`."""
    if is_small(bounds, part_from, part_to):
        return NotImplemented
    start, stop = bounds[part_from], bounds[part_to]
    keys = keys_of(rows, start, stop)
    firsts, _, (_, number, at), sizes = find_cells(keys, bounds, part_from, part_to)
    true, pred, x = (each[firsts] for each in (*keys, rows["x"][start:stop]))
    rows["true"][at], rows["pred"][at], rows["x"][at] = true, pred, x
    histogram += np.bincount(targets_of(pred, number, targets), minlength=histogram.size)
    n_cells[part_from:part_to] = sizes
    return None


def place_first_rows(rows, bounds, part_from, part_to, targets, n_cells, next_cell, first_rows):
    """Write the first row of each cell to the position of the finished cell."""
    _, number, at = ranges(bounds[part_from:part_to], n_cells[part_from:part_to])
    first_rows[places_of(targets_of(rows["pred"][at], number, targets), next_cell)] = rows["x"][at]


def place_preds(pred, places, start, stop, out):
    """Write the mixed predicted keys of one block of rows to the destinations of its rows."""
    out[places[start:stop]] = mix.py_func(pred[start:stop])


def number_rows(keys, bounds, part_from, part_to, space, codes, order, n_clusters):
    """Assign numbers to the true clusters of each part by first row; `order` puts these rows before the others."""
    if is_small(bounds, part_from, part_to):
        return NotImplemented
    start, stop, part = bounds[part_from], bounds[part_to], part_of_rows(bounds, part_from, part_to)
    firsts, found, n_clusters[part_from:part_to] = number_by_part(keys[start:stop], part, part_to - part_from)
    later = np.ones(part.size, np.int64)
    later[firsts] = 0
    codes[start:stop], order[start:stop] = found, start + in_order(2 * part + later)[0]
    return None


def build_cells_of_numbered(
    rows, weights, cells, bounds, part_from, part_to, n_clusters, targets, space, n_cells, histogram
):
    """Count the cells of several parts whose true clusters `number_rows` has numbered."""
    start, stop, found = bounds[part_from], bounds[part_to], n_clusters[part_from:part_to]
    x = None if weights is None else weights[start:stop]
    if is_small(bounds, part_from, part_to) or (x is not None and np.signbit(x).any()):
        return NotImplemented
    codes, pred = (each[start:stop] for each in rows[:2])
    keys = codes + (np.cumsum(found) - found)[part_of_rows(bounds, part_from, part_to)], pred
    firsts, numbers, (_, number, at), sizes = find_cells(keys, bounds, part_from, part_to)
    n = np.bincount(numbers, minlength=firsts.size)
    if x is not None:
        cells["x"][at] = sum_weights(numbers, n, x)
    cells["pred"][at], cells["cluster"][at], cells["n"][at] = pred[firsts], codes[firsts], n
    histogram += np.bincount(targets_of(pred[firsts], number, targets), minlength=histogram.size)
    n_cells[part_from:part_to] = sizes
    return None


def scatter_cells(
    cells, parts, part_from, part_to, targets, weighted, outer, heavy, absent_true, sums, next_cell, out
):
    """Write the cells of several parts, with their false negatives, to their targets."""
    bounds, n_cells, n_clusters, base = (each[part_from:part_to] for each in parts)
    part, number, at = ranges(bounds, n_cells)
    if at.size < FEW_ROWS:
        return NotImplemented
    k, pred, n = (cells[name][at] for name in ("cluster", "pred", "n"))
    weight = own = n.astype(np.float64)
    if weighted is not None:
        weight = cells["x"][at]
        own = own if outer else weight
    if heavy:
        mass, rest = sums[0][k], sums[1][k]
    else:
        codes = k + (np.cumsum(n_clusters) - n_clusters)[part]
        total, error = np.zeros(n_clusters.sum()), np.zeros(n_clusters.sum())
        here = pred != targets[3] if targets[2] else slice(None)
        add_by_code(codes[here], own[here], total, error)
        mass, rest = total[codes], error[codes]
    to = places_of(targets_of(pred, number, targets), next_cell)
    true = base[part] + k
    out["weight"][to], out["fn"][to], out["pred"][to], out["n"][to] = weight, (mass - own) + rest, pred, n
    out["true"][to] = np.where(k == absent_true, -1, true) if heavy else true
    return None


def close_cells(
    arrived, cells, pred_codes, bounds, part_from, part_to, outer, outside, absent_pred,
    space, n_clusters, keys,
):  # fmt: skip
    """Assign numbers to the predicted clusters of several parts, and write the false positives of their cells."""
    if is_small(bounds, part_from, part_to):
        return NotImplemented
    start, stop, n_parts = bounds[part_from], bounds[part_to], part_to - part_from
    pred = np.ascontiguousarray(arrived["pred"][start:stop])
    part = part_of_rows(bounds, part_from, part_to)
    here = np.flatnonzero(pred != absent_pred[0]) if absent_pred.size else np.arange(pred.size)
    pred, part = pred[here], part[here]
    own = (arrived["n"] if outer else arrived["weight"])[start:stop][here].astype(np.float64)
    firsts, codes, found = number_by_part(pred, part, n_parts)
    among = codes + (np.cumsum(found) - found)[part]
    stranger = arrived["true"][start:stop][here] < 0
    total, error = np.zeros(firsts.size), np.zeros(firsts.size)
    add_by_code(among[~stranger], own[~stranger], total, error)
    fp = np.zeros(stop - start)
    fp[here] = (total[among] - own) + error[among]
    if outside:
        fp[here] += np.bincount(among[stranger], own[stranger], firsts.size)[among]
    pred_codes[start:stop] = -1
    pred_codes[start + here] = codes
    if keys.size:
        keys[among[firsts]] = pred[firsts]
    cells["fp"][start:stop] = fp
    n_clusters[part_from:part_to] = found
    return None


def change_by_part(cells, parts, part_from, part_to, weighted, outer, absent_pred, sums, changes):
    """Write the change in recall of each part if its truth-only items were singletons; `sums` is not used."""
    bounds, n_cells, n_clusters = parts
    for part in range(part_from, part_to):
        own = cells[bounds[part] : bounds[part] + n_cells[part]]
        n = own["n"].astype(np.float64)
        weight = n if weighted is None else own["x"]
        mass = n if outer else weight
        alone = own["pred"] == absent_pred
        terms = (weight * mass, ~alone), (mass, ~alone), (n, alone), (weight, alone), (mass, alone)
        product, scored, n, weight, left = (
            np.bincount(own["cluster"][here], values[here], n_clusters[part]) for values, here in terms
        )
        before = np.where(scored > 0.0, product / scored, 0.0)
        after = (product + weight * (left / n)) / (scored + left)
        steps = (after - before)[n > 0.0]
        changes[part] = np.add.accumulate(np.concatenate(([0.0], steps)))[-1]


def match_items(true, pred, part_from, part_to, space, pred_of_true, lacking, values, value_of_true):
    """Match the items of several parts; return, for each side, the number of rows that repeat an earlier item."""
    (a, b), (c, d) = ((side[2][part_from], side[2][part_to]) for side in (true, pred))
    n_true = b - a
    if n_true + d - c < FEW_ROWS:
        return NotImplemented
    firsts, numbers = number_groups(np.concatenate((true[0][a:b], pred[0][c:d])))
    # The true row with the item of each predicted row, or the first predicted row with this item.
    first = firsts[numbers[n_true:]]
    own, begins = np.unique(first, return_index=True)  # the first of several predicted rows
    is_match = np.zeros(d - c, np.bool_)
    is_match[begins[own < n_true]] = True
    rows = np.arange(c, d) if pred[1] is None else pred[1][c:d]
    to = a + first[is_match]
    to = to if true[1] is None else true[1][to]
    pred_of_true[to] = rows[is_match]
    if values is not None:
        value_of_true[to] = values[c:d][is_match]
    lacking[rows[~is_match]] = True
    return int(n_true - np.count_nonzero(firsts < n_true)), int(d - c - own.size)


def take_rows(values, rows, start, stop, out):
    """Write values[rows[i]], or -1 for a negative row, to out[i] for i in start..stop."""
    own = rows[start:stop]
    out[start:stop] = np.where(own < 0, -1, values[np.maximum(own, 0)]) if values.size else -1


def find_run(keys, start, length):
    """Return whether any key lies in start .. start + length - 1, modulo 2**64."""
    begin, span = (np.uint64(int(each) % (1 << 64)) for each in (start, length))
    return bool((keys.astype(np.int64, copy=False).view(np.uint64) - begin < span).any())


def take_codes(place, codes, rows, taken):
    """Write the place of the code of each given row."""
    taken[:] = place[codes[rows]]


def count_codes(of_code, codes, numbers, counts):
    """Write the number of each row's code, and count the rows of each number."""
    numbers[:] = of_code[codes]
    counts += np.bincount(numbers, minlength=counts.size)
