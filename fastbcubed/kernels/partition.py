"""Rows partitioned by bits of their mixed keys, and sums over runs of fixed length.

A part is a partition by true key; a target is a partition of cells by predicted key.
"""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, intrinsic, kernel

#: Number of cells whose scores are summed plainly, in eight sums; the caller adds these exactly.
RUN = 1 << 10
#: Number of cells of a run that are read and scored together: their data stay in a core's L1 cache.
PIECE = 1 << 8
#: Number of weights of a cell that are summed plainly before their sum is added exactly.
WEIGHTS_AT_ONCE = 64


@kernel
def add_exactly(total, error, x):
    """Add `x` to the sum `total + error` without loss (Knuth's two-sum)."""
    y = total + x
    back = y - total
    return y, error + ((total - (y - back)) + (x - back))


@kernel
def add_in_lanes(values, start, stop, lanes):
    """Add values[start:stop] to eight sums in turn, and return these; additions to one sum would wait for each other.

    The number of values is a multiple of eight.
    """
    a, b, c, d, e, f, g, h = lanes
    for i in range(start, stop, 8):
        a += values[at(i)]
        b += values[at(i + 1)]
        c += values[at(i + 2)]
        d += values[at(i + 3)]
        e += values[at(i + 4)]
        f += values[at(i + 5)]
        g += values[at(i + 6)]
        h += values[at(i + 7)]
    return a, b, c, d, e, f, g, h


@kernel
def sum_lanes(lanes):
    """Return the sum of eight sums."""
    a, b, c, d, e, f, g, h = lanes
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel
def sum_run(values):
    """Return the sum of RUN numbers."""
    return sum_lanes(add_in_lanes(values, 0, RUN, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)))


@kernel
def add_to_lanes(values, lanes):
    """Add PIECE numbers to eight running sums; see `add_in_lanes`. Shapes: (PIECE,), (8,)."""
    a, b, c, d, e, f, g, h = lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[6], lanes[7]
    a, b, c, d, e, f, g, h = add_in_lanes(values, 0, PIECE, (a, b, c, d, e, f, g, h))
    lanes[0], lanes[1], lanes[2], lanes[3], lanes[4], lanes[5], lanes[6], lanes[7] = a, b, c, d, e, f, g, h


@kernel
def sum_products(weight, scores, sums):
    """Write the sum of weight * scores of each run; `sums` has one entry per run."""
    values = np.zeros(RUN)
    run = 0
    for begin in range(0, weight.size, RUN):
        length = min(RUN, weight.size - begin)
        for i in range(length):
            values[i] = weight[begin + i] * scores[begin + i]
        values[length:] = 0.0
        sums[run] = sum_run(values)
        run += 1


@kernel
def read_run(cells, begin, length, outer, weight, tp, fp, fn):
    """Copy weights and confusion matrices of `length` cells, as counts if `outer`; set the remaining weights to 0.

    Fields are copied one by one: otherwise the compiler would read the fields of a cell together, by slower
    instructions.
    """
    weight[length:] = 0.0
    for i in range(length):
        weight[at(i)] = cells[at(begin + i)].weight
    for i in range(length):
        fp[at(i)] = cells[at(begin + i)].fp
    for i in range(length):
        fn[at(i)] = cells[at(begin + i)].fn
    if outer:
        for i in range(length):
            tp[at(i)] = cells[at(begin + i)].n
    else:
        for i in range(length):
            tp[at(i)] = weight[at(i)]


#: CPU does not detect that parts are written sequentially, because there are too many.
RECORDS_AHEAD = 4
#: Number of elements by which reads at random places are prefetched.
READS_AHEAD = 16


@intrinsic
def fetch(values, i):
    """Prefetch an element of an array into the cache."""


@kernel(words=True)
def mix(key):
    """Scramble a 64-bit key one to one (splitmix64's finalizer), so that any of its bits can select a partition."""
    h = np.uint64(key)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(h ^ (h >> np.uint64(31)))


@kernel
def mix_all(keys):
    """Return the mixed keys. Shape: (n,)."""
    mixed = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        mixed[i] = mix(keys[i])
    return mixed


@kernel(words=True)
def unmix(h):
    """Return the key that `mix` scrambled, by inverting its steps in reverse order."""
    key = np.uint64(h)
    key = key ^ (key >> np.uint64(31)) ^ (key >> np.uint64(62))
    key *= np.uint64(0x319642B2D24D8EC3)  # inverse of the last factor of `mix`, modulo 2**64
    key = key ^ (key >> np.uint64(27)) ^ (key >> np.uint64(54))
    key *= np.uint64(0x96DE1B173F119089)  # inverse of the first factor
    return np.int64(key ^ (key >> np.uint64(30)) ^ (key >> np.uint64(60)))


@kernel
def unmix_all(mixed):
    """Return the original keys of mixed keys. Shape: (n,)."""
    keys = np.empty(mixed.size, np.int64)
    for i in range(mixed.size):
        keys[i] = unmix(mixed[i])
    return keys


@kernel
def unmix_some(mixed, codes, keys):
    """Write the original keys of the mixed keys at these positions. Shapes: (n_codes,), (n,), (n,)."""
    for i in range(codes.size):
        if i + READS_AHEAD < codes.size:
            fetch(mixed, codes[at(i + READS_AHEAD)])
        keys[at(i)] = unmix(mixed[at(codes[at(i)])])


@kernel
def bits_of(h, skip, bits):
    """Return the `bits` bits of a mixed key after its top `skip` bits."""
    return (h >> (63 - skip - bits)) & ((1 << bits) - 1)


@kernel
def part_of(h, bits):
    """Return the part of a mixed key: its top `bits` bits."""
    return bits_of(h, 0, bits)


@kernel
def target_of(pred, number, targets):
    """Return the target of a cell, by its predicted key; cells without one are spread evenly by their `number`.

    `targets` are scalars, because Numba would count references to arrays.
    """
    skip, bits, lacking, absent = targets
    if lacking and pred == absent:
        return number & ((1 << bits) - 1)
    return bits_of(pred, skip, bits)


def mix_run_by_numpy(keys, start, n, mixed, out):
    """Mix a run of keys with NumPy; see `mix_run`."""
    run = keys[start : start + n]
    out[:n] = run if mixed else mix.py_func(run)


@kernel(by_numpy=mix_run_by_numpy)
def mix_run(keys, start, n, mixed, out):
    """Mix n keys starting at `start`, or copy them if they are already `mixed`."""
    if mixed:
        for i in range(n):
            out[at(i)] = keys[at(start + i)]
    else:
        for i in range(n):
            out[at(i)] = mix(keys[at(start + i)])


def find_parts_by_numpy(true, pred, n, skip, bits, heavy, shift, parts):
    """Find the parts of a run of rows with NumPy; see `find_parts`."""
    h, parts = true[:n], parts[:n]
    parts[:] = bits_of.py_func(h, skip, bits)
    if heavy.size:
        is_heavy = heavy[(h >> shift) & (heavy.size - 1)] == h
        parts[is_heavy] = (1 << bits) + bits_of.py_func(pred[:n][is_heavy], skip, bits)


@kernel(by_numpy=find_parts_by_numpy)
def find_parts(true, pred, n, skip, bits, heavy, shift, parts):
    """Find the part of each of n rows, by bits of its mixed true key.

    Rows with a heavy key go to a second set of parts, by their predicted key. `heavy` is a table of heavy keys,
    indexed by the bits of a key starting at bit `shift`: see `cells.partitioned.HeavyKeys`. There is no branch on
    whether a key is heavy.
    """
    if not heavy.size:
        for i in range(n):
            parts[at(i)] = bits_of(true[at(i)], skip, bits)
        return
    for i in range(n):
        h = true[at(i)]
        by_true, by_pred = bits_of(h, skip, bits), (1 << bits) + bits_of(pred[at(i)], skip, bits)
        is_heavy = heavy[at((h >> shift) & (heavy.size - 1))] == h
        parts[at(i)] = by_pred if is_heavy else by_true


def places_of(parts, next_row):
    """Return the destination of each row, given its part and the next row of each part, which is advanced."""
    counts = np.bincount(parts, minlength=next_row.size)
    places = np.empty(parts.size, np.int64)
    few = next_row.size <= 1 << 16  # NumPy sorts 16-bit integers by radix
    order = np.argsort(parts.astype(np.uint16) if few else parts, kind="stable")
    places[order] = np.arange(parts.size) + np.repeat(next_row - (np.cumsum(counts) - counts), counts)
    next_row += counts
    return places


def mixed_by_numpy(keys, mixed, skip, bits, heavy, shift):
    """Return mixed true keys, mixed predicted keys, and the part of each row; `pred` may be None if no key is heavy."""
    true, pred = (each if each is None or mixed else mix.py_func(each) for each in keys)
    parts = np.empty(true.size, np.int64)
    find_parts_by_numpy(true, pred, true.size, skip, bits, heavy, shift, parts)
    return true, pred, parts


def count_parts_by_numpy(true, pred, start, stop, mixed, skip, bits, heavy, shift, counts):
    """Count the rows of one block by part with NumPy; see `count_parts`."""
    keys = true[start:stop], None if pred is None else pred[start:stop]
    counts += np.bincount(mixed_by_numpy(keys, mixed, skip, bits, heavy, shift)[2], minlength=counts.size)


@kernel(by_numpy=count_parts_by_numpy)
def count_parts(true, pred, start, stop, mixed, skip, bits, heavy, shift, counts):
    """Count the rows of one block by part; see `find_parts`.

    `pred` is None if no key is heavy; `mixed` states whether keys are already mixed.
    """
    trues, preds, parts = np.empty(RUN, np.int64), np.empty(RUN, np.int64), np.empty(RUN, np.int64)
    for begin in range(start, stop, RUN):
        n = min(RUN, stop - begin)
        mix_run(true, begin, n, mixed, trues)
        if pred is not None:
            mix_run(pred, begin, n, mixed, preds)
        find_parts(trues, preds, n, skip, bits, heavy, shift, parts)
        for i in range(n):
            counts[at(parts[at(i)])] += 1


def scatter_pairs_by_numpy(
    keys, payload, n_each, start, stop, mixed, skip, bits, heavy, shift, next_row, rows
):
    """Write one block of rows to their parts with NumPy; see `scatter_pairs`."""
    keys = tuple(each[start:stop] for each in keys)
    true, pred, parts = mixed_by_numpy(keys, mixed, skip, bits, heavy, shift)
    to = places_of(parts, next_row)
    rows["true"][to], rows["pred"][to] = true, pred
    for name, values in (("x", payload), ("n", n_each)):
        if values is not None:
            rows[name][to] = values[start:stop]


@kernel(by_numpy=scatter_pairs_by_numpy)
def scatter_pairs(keys, payload, n_each, start, stop, mixed, skip, bits, heavy, shift, next_row, rows):
    """Write one block of rows, with mixed keys, to their parts in row order; see `find_parts`.

    `keys` are (true, pred); `next_row` (n_parts,) is this block's next row in each part. `payload` and `n_each`,
    unless None, are written to the fields `x` and `n`.
    """
    true, pred = keys
    trues, preds, parts = np.empty(RUN, np.int64), np.empty(RUN, np.int64), np.empty(RUN, np.int64)
    for begin in range(start, stop, RUN):
        n = min(RUN, stop - begin)
        mix_run(true, begin, n, mixed, trues)
        mix_run(pred, begin, n, mixed, preds)
        find_parts(trues, preds, n, skip, bits, heavy, shift, parts)
        for i in range(n):
            j = next_row[at(parts[at(i)])]
            next_row[at(parts[at(i)])] = j + 1
            fetch(rows, j + RECORDS_AHEAD)
            rows[at(j)].true = trues[at(i)]
            rows[at(j)].pred = preds[at(i)]
            if payload is not None:
                rows[at(j)].x = payload[at(begin + i)]
            if n_each is not None:
                rows[at(j)].n = n_each[at(begin + i)]


@kernel
def place_rows(true, pred, skip, bits, heavy, shift, next_row, places):
    """Write the destination in `scatter_pairs` of each row of a block, whose keys are not mixed."""
    trues, preds, parts = np.empty(RUN, np.int64), np.empty(RUN, np.int64), np.empty(RUN, np.int64)
    for begin in range(0, true.size, RUN):
        n = min(RUN, true.size - begin)
        mix_run(true, begin, n, False, trues)
        mix_run(pred, begin, n, False, preds)
        find_parts(trues, preds, n, skip, bits, heavy, shift, parts)
        for i in range(n):
            places[at(begin + i)] = next_row[at(parts[at(i)])]
            next_row[at(parts[at(i)])] += 1


def scatter_items_by_numpy(keys, start, stop, bits, next_row, mixed, rows, places, values, out):
    """Write one block of item keys to their parts with NumPy; see `scatter_items`."""
    hs = mix.py_func(keys[start:stop])
    to = places_of(bits_of.py_func(hs, 0, bits), next_row)
    mixed[to] = hs
    if rows is not None:
        rows[to] = np.arange(start, stop)
    if places is not None:
        places[start:stop] = to
    if values is not None:
        out[to] = values[start:stop]


@kernel(by_numpy=scatter_items_by_numpy)
def scatter_items(keys, start, stop, bits, next_row, mixed, rows, places, values, out):
    """Mix the item keys of one block, and write them to their parts in row order.

    `next_row` (n_parts,) is this block's next row in each part. Further outputs, each of which may be None: `rows`,
    the row at each place; `places`, the place of each row; `out`, the rows' `values` at each place.
    """
    for i in range(start, stop):
        h = mix(keys[at(i)])
        part = part_of(h, bits)
        j = next_row[at(part)]
        next_row[at(part)] = j + 1
        mixed[at(j)] = h
        if rows is not None:
            rows[at(j)] = i
        if places is not None:
            places[at(i)] = j
        if values is not None:
            out[at(j)] = values[at(i)]


@kernel
def order_by_range(cells, first, width, bounds, order):
    """Sort cells stably by ranges of `width` true codes, starting at `first`; smaller codes come before all ranges.

    Output: `order` (n_cells,), and `bounds` (n_ranges + 2,): the beginnings of the cells before the ranges and of
    each range, and the end.
    """
    bounds[:] = 0
    for i in range(cells.size):
        code = cells[i].true - first
        bounds[at(code // width + 2 if code >= 0 else 1)] += 1
    for k in range(1, bounds.size):
        bounds[at(k)] += bounds[at(k - 1)]
    place = bounds[:-1].copy()
    for i in range(cells.size):
        code = cells[i].true - first
        k = code // width + 1 if code >= 0 else 0
        order[at(place[at(k)])] = i
        place[at(k)] += 1
