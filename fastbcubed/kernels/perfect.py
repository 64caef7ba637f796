"""Perfect hashes: a pilot for each bucket of hashes sends all of some known values to slots of their own."""

from __future__ import annotations

import numpy as np

from fastbcubed.kernels.jit import inlined, kernel

#: Bits of a hash that say which pilot and which slot a value has: fixed numbers, to which registers need not be given.
PILOT_BITS, SLOT_BITS = 10, 12
BELOW_PILOT, SLOT = np.uint64(64 - PILOT_BITS), np.uint64((1 << SLOT_BITS) - 1)


@inlined
def slot_of(code, pilots):
    """Return the slot that a value with this hash stands in, if it is known."""
    return ((code >> np.uint64(8)) ^ np.uint64(pilots[code >> BELOW_PILOT])) & SLOT


@kernel
def place_codes(codes, pilots, places):
    """Find pilots that send all hashes to places of their own; return whether there are any.

    Hashes of one bucket follow each other. Shapes: (n,), (buckets,), (slots,), which hold -1.
    """
    start = 0
    while start < codes.size:
        bucket, stop = codes[start] >> BELOW_PILOT, start + 1
        while stop < codes.size and codes[stop] >> BELOW_PILOT == bucket:
            stop += 1
        placed = start
        for pilot in range(places.size):
            pilots[bucket] = pilot
            while placed < stop and places[slot_of(codes[placed], pilots)] < 0:
                places[slot_of(codes[placed], pilots)] = placed
                placed += 1
            if placed == stop:
                break
            while placed > start:
                placed -= 1
                places[slot_of(codes[placed], pilots)] = -1
        if placed < stop:
            return False
        start = stop
    return True
