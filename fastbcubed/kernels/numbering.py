"""Numbers of keys that come block by block: a hash table of those known, which stand in the order of their codes."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.fetching import fetch
from fastbcubed.kernels.jit import kernel
from fastbcubed.kernels.partition import mix

#: Keys whose slots are fetched together, so that one does not wait for the memory of another.
GROUP = 64


@kernel
def number_block(new_keys, new_proofs, slots, keys, proofs, n, codes, firsts):
    """Give each key of a block its code, one that is not known the next one; return how many are known then.

    Shapes: (m,), (m,) or None, (power of two,), (capacity,), (capacity,) or None, (), (m,), (m,). Codes stand in
    slots, -1 in those that are empty; `firsts` gets the row of each key that was not known.
    """
    known, mask = n, slots.size - 1
    places = np.empty(GROUP, np.int64)
    for start in range(0, new_keys.size, GROUP):
        stop = min(start + GROUP, new_keys.size)
        for i in range(start, stop):
            places[i - start] = mix(new_keys[i]) & mask
            fetch(slots, places[i - start])
        for i in range(start, stop):
            code = slots[places[i - start]]
            if code >= 0:
                fetch(keys, code)
        for i in range(start, stop):
            key, s = new_keys[i], places[i - start]
            code = slots[s]
            while code >= 0:
                if keys[code] == key:
                    if proofs is None:
                        break
                    elif proofs[code] == new_proofs[i]:
                        break
                s = (s + 1) & mask
                code = slots[s]
            if code < 0:
                code = slots[s] = n
                keys[n] = key
                if proofs is not None:
                    proofs[n] = new_proofs[i]
                firsts[n - known] = i
                n += 1
            codes[i] = code
    return n


@kernel
def enter_keys(keys, n, slots):
    """Enter the codes of the first n keys, all different, into slots that are empty."""
    mask = slots.size - 1
    for code in range(n):
        s = mix(keys[code]) & mask
        while slots[s] >= 0:
            s = (s + 1) & mask
        slots[s] = code


@kernel
def number_codes(codes, numbers):
    """Write over each code its number in order of first appearance; `numbers` comes as -1 by code.

    Shapes: (n,), (n_codes,) -> how many codes there are.
    """
    count = 0
    for i in range(codes.size):
        k = codes[i]
        if numbers[k] < 0:
            numbers[k] = count
            count += 1
        codes[i] = numbers[k]
    return count
