"""Hash partitions: rows with equal keys come to stand in one part, small enough for the cache."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import at, kernel


@kernel
def mix(key):
    """Scramble a 64-bit key one to one (the finalizer of splitmix64), so that any bits of it serve."""
    h = np.uint64(key)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(h ^ (h >> np.uint64(31)))


@kernel
def mix_all(keys):
    """Scramble keys. Shape (n,)."""
    mixed = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        mixed[i] = mix(keys[i])
    return mixed


@kernel
def unmix(h):
    """Return the key that `mix` has scrambled: each of its steps undone, the last one first."""
    key = np.uint64(h)
    key = key ^ (key >> np.uint64(31)) ^ (key >> np.uint64(62))
    key *= np.uint64(0x319642B2D24D8EC3)  # times the last factor of `mix`: 1, modulo 2**64
    key = key ^ (key >> np.uint64(27)) ^ (key >> np.uint64(54))
    key *= np.uint64(0x96DE1B173F119089)  # times the first one: 1
    return np.int64(key ^ (key >> np.uint64(30)) ^ (key >> np.uint64(60)))


@kernel
def unmix_all(mixed):
    """Return the keys that were scrambled. Shape (n,)."""
    keys = np.empty(mixed.size, np.int64)
    for i in range(mixed.size):
        keys[i] = unmix(mixed[i])
    return keys


@kernel
def bits_of(h, skip, bits):
    """Return `bits` bits of a mixed key, those after the topmost `skip`."""
    return (h >> (63 - skip - bits)) & ((1 << bits) - 1)


@kernel
def part_of(h, bits):
    """Return the part that a mixed key belongs to: its topmost `bits` bits."""
    return bits_of(h, 0, bits)


@kernel
def target_of(pred, number, targets):
    """Return where a cell goes: by its pred key, or evenly if that stands for none; `number` is that of the cell.

    `targets` are scalars: arrays would count references.
    """
    skip, bits, lacking, absent = targets
    if lacking and pred == absent:
        return number & ((1 << bits) - 1)
    return bits_of(pred, skip, bits)


@kernel
def count_parts(keys, others, start, stop, mixed, skip, bits, heavy, first_heavy, counts):
    """Count the rows of one block by part, which these bits of the mixed key say.

    Rows whose key is among `heavy` go by their other key, to a second set of parts. The heavy keys of
    a part stand at `first_heavy[part]` and on. `others` is None where no key is heavy; `mixed` tells
    whether keys are mixed already.
    """
    if others is None:
        for i in range(start, stop):
            h = keys[at(i)] if mixed else mix(keys[at(i)])
            counts[at(bits_of(h, skip, bits))] += 1
    else:
        for i in range(start, stop):
            h = keys[at(i)] if mixed else mix(keys[at(i)])
            part = bits_of(h, skip, bits)
            for k in range(first_heavy[at(part)], first_heavy[at(part + 1)]):
                if heavy[at(k)] == h:  # in place: a call with arrays would count references
                    other = others[at(i)] if mixed else mix(others[at(i)])
                    part = (1 << bits) + bits_of(other, skip, bits)
                    break
            counts[at(part)] += 1


@kernel
def scatter_pairs(keys, payload, n, start, stop, mixed, skip, bits, heavy, first_heavy, next_row, rows):
    """Write one block of rows to their parts, keys mixed, in row order.

    `keys` are (true, pred); `next_row` (n_parts,) is where this block's next row of each part goes;
    `payload` and `n` are None, or go into the fields `x` and `n`. The parts are those of `count_parts`.
    """
    true, pred = keys
    for i in range(start, stop):
        h = true[at(i)] if mixed else mix(true[at(i)])
        other = pred[at(i)] if mixed else mix(pred[at(i)])
        part = bits_of(h, skip, bits)
        if heavy.size:
            for k in range(first_heavy[at(part)], first_heavy[at(part + 1)]):
                if heavy[at(k)] == h:
                    part = (1 << bits) + bits_of(other, skip, bits)
                    break
        j = next_row[at(part)]
        next_row[at(part)] = j + 1
        rows[at(j)].true = h
        rows[at(j)].pred = other
        if payload is not None:
            rows[at(j)].x = payload[at(i)]
        if n is not None:
            rows[at(j)].n = n[at(i)]


@kernel
def place_rows(true, pred, skip, bits, heavy, first_heavy, next_row, places):
    """Write for each row of a block where `scatter_pairs` puts it; the keys are not mixed yet."""
    for i in range(true.size):
        h = mix(true[i])
        part = bits_of(h, skip, bits)
        if heavy.size:
            for k in range(first_heavy[part], first_heavy[part + 1]):
                if heavy[k] == h:
                    part = (1 << bits) + bits_of(mix(pred[i]), skip, bits)
                    break
        places[i] = next_row[part]
        next_row[part] += 1


@kernel
def scatter_items(keys, start, stop, bits, next_row, mixed, rows, values, out):
    """Write the mixed keys, row numbers and values of one block to their parts, in row order; the last may be None."""
    for i in range(start, stop):
        h = mix(keys[at(i)])
        part = part_of(h, bits)
        j = next_row[at(part)]
        next_row[at(part)] = j + 1
        mixed[at(j)] = h
        rows[at(j)] = i
        if values is not None:
            out[at(j)] = values[at(i)]


@kernel
def place_keys(keys, start, stop, bits, next_row, mixed, places, values, out):
    """Write the mixed keys and values of one block to their parts, in row order, and where each row went.

    `next_row` (n_parts,) is where this block's next row of each part goes; `values` and `out` may be None.
    """
    for i in range(start, stop):
        h = mix(keys[at(i)])
        part = part_of(h, bits)
        j = next_row[at(part)]
        next_row[at(part)] = j + 1
        mixed[at(j)] = h
        places[at(i)] = j
        if values is not None:
            out[at(j)] = values[at(i)]
