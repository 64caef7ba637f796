"""Keys of a side that are few, whatever they are: each has a number, which one look in a small table tells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.runtime.parts import table_slots
from fastbcubed.runtime.perfect_hash import ATTEMPTS, MOST_VALUES, placed

#: The first keys of a sample: where these are too many already, the others are not looked at.
FIRST = 2 * MOST_VALUES
#: Keys that are seen once stand for as many rows that have none of the known ones: one in so many at most.
RARE = 256

KNOWN = np.dtype([("key", "i8"), ("number", "i8")])


class KnownKeys(NamedTuple):
    """The keys of a side, for the kernels."""

    #: records of `KNOWN`; what stands in free slots is a key that is never looked for there
    slots: np.ndarray
    pilots: NDArray[np.uint16]
    seeds: NDArray[np.uint64]  #: of the hash function
    keys: NDArray[np.int64]  #: by number

    @classmethod
    def of(cls, sample: NDArray[np.int64]) -> KnownKeys | None:
        """Return the keys of a sample of a side; None if there are many, or too many rows have others for sure."""
        few = sample[:FIRST]
        if different(few, few)[0].size > MOST_VALUES:
            return None
        first, seen = different(sample, sample)
        if first.size > MOST_VALUES or np.count_nonzero(seen == 1) * RARE > sample.size:
            return None
        return cls.placed(sample[first])

    @classmethod
    def placed(cls, keys: NDArray[np.int64]) -> KnownKeys | None:
        """Return a table of keys, numbered as they stand; None if no hash function serves."""
        for seed in range(ATTEMPTS):
            seeds = kernels.hashing.seed_words(seed)[:2]
            places = placed(kernels.condensing.hash_keys(keys, seeds))
            if places is not None:
                numbers = np.maximum(places.values, 0)
                slots = np.empty(numbers.size, KNOWN)
                slots["key"], slots["number"] = keys[numbers], numbers
                return cls(slots, places.pilots, seeds, keys)
        return None


def different(
    true: NDArray[np.int64], pred: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of each pair of keys in a sample, as they come, and how often it is seen."""
    first, seen = np.empty(true.size, np.int64), np.empty(true.size, np.int64)
    slots = np.full(table_slots(true.size), -1, np.int32)
    n = kernels.condensing.count_pairs(true, pred, slots, first, seen)
    return first[:n], seen[:n]


#: The known keys of the truth and of the prediction: a slot for each two of them.
Grid = tuple[KnownKeys, KnownKeys]
