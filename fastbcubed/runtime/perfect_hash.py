"""Slots for a few known values, one each: who looks a value up reads one slot, and branches on nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels

#: How many hash functions are tried, one of which has to have a slot for each value alone.
ATTEMPTS = 16
#: Values that there may be.
MOST_VALUES = 1 << 11


class Places(NamedTuple):
    """Which value stands in each slot, -1 where there is none, and what sends values there."""

    values: NDArray[np.int64]  #: shape (slots,)
    pilots: NDArray[np.uint16]


def placed(codes: NDArray[np.uint64]) -> Places | None:
    """Return places of values by their hashes; None if these cannot be told apart."""
    order = _largest_buckets_first(codes >> kernels.perfect.BELOW_PILOT)
    pilots = np.zeros(1 << kernels.perfect.PILOT_BITS, np.uint16)
    places = np.full(1 << kernels.perfect.SLOT_BITS, -1, np.int16)
    if not kernels.perfect.place_codes(codes[order], pilots, places):
        return None
    return Places(np.where(places < 0, -1, order[places]), pilots)


def _largest_buckets_first(buckets: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return an order in which what is in one bucket follows each other."""
    _, bucket, counts = np.unique(buckets, return_inverse=True, return_counts=True)
    return np.lexsort((bucket, -counts[bucket]))
