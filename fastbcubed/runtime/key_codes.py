"""Codes of keys: keys numbered from 0, all at once or block by block; and few values placed by perfect hashing."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_partitions import PART_ROWS, part_bits, part_blocks, scatter_keys
from fastbcubed.runtime.threads import Pool, blocks

#: Integers are numbered by a lookup table if their range is at most this many times the number of rows.
SPREAD = 4


class Numbered(NamedTuple):
    """The code of each row, and the first row of each code."""

    codes: NDArray[np.int64]
    firsts: NDArray[np.int64]


def number(keys: NDArray[np.int64], pool: Pool) -> Numbered:
    """Assign numbers to keys in order of first appearance. Shapes: (n,) -> (n,), (n_codes,).

    Ascending keys cost one comparison each; other keys are hashed part by part, so that lookups stay in the cache.
    """
    n = keys.size
    if not n:
        return Numbered(np.empty(0, np.int64), np.empty(0, np.int64))
    cuts = blocks(n)
    if not any(kernels.memberships.find_unsorted(keys, a, b) for a, b in cuts):
        begins = np.empty(n, np.bool_)
        begins[0] = True
        np.not_equal(keys[1:], keys[:-1], out=begins[1:])
        return Numbered(np.cumsum(begins) - 1, np.flatnonzero(begins))
    codes: NDArray[np.int64] = buffers.empty(n, np.int64)
    lowest, highest = int(keys.min()), int(keys.max())
    if highest - lowest < SPREAD * n:
        numbers = np.full(highest - lowest + 1, -1, np.int32 if n < 2**31 else np.int64)
        firsts = np.empty(min(n, numbers.size), np.int64)
        found = kernels.memberships.number_small(keys, lowest, numbers, codes, firsts)
        return Numbered(codes, firsts[:found].copy())
    return _by_parts(keys, codes, pool)


def _by_parts(keys: NDArray[np.int64], codes: NDArray[np.int64], pool: Pool) -> Numbered:
    n = keys.size
    bits = part_bits(n, PART_ROWS)
    items = scatter_keys(keys, bits, pool)
    first: NDArray[np.int64] = buffers.empty(n, np.int64)
    usual = 2 * PART_ROWS

    def number_task(start: int, stop: int) -> None:
        with pool.workspace("number", lambda: np.empty(usual, np.int32)) as slots:
            kernels.memberships.number_parts(items.keys, items.rows, items.bounds, start, stop, slots, first)

    pool.map(number_task, *zip(*part_blocks(1 << bits), strict=True), stage="group rows")
    starts, stops = zip(*blocks(n), strict=True)
    counts = pool.map(
        lambda a, b: kernels.memberships.find_firsts(first, a, b, 0, None),
        starts,
        stops,
        stage="count groups",
    )
    *bases, total = accumulate(counts, initial=0)
    firsts = np.empty(total, np.int64)
    pool.map(
        lambda a, b, base: kernels.memberships.find_firsts(first, a, b, base, firsts),
        starts, stops, bases, stage="number groups",
    )  # fmt: skip
    pool.map(
        lambda a, b: kernels.memberships.find_others(first, a, b, codes), starts, stops, stage="number rows"
    )
    return Numbered(codes, firsts)


#: Initial capacity, in keys.
LEAST = 1 << 10


class Numbering:
    """The distinct keys so far, numbered by first appearance; they take 16 to 24 bytes each, and 8 more with proofs.

    Two keys are equal only if their proofs are equal as well. For hashes of values, the proof is the second word of
    the fingerprint; keys without proofs have the proof 0.
    """

    def __init__(self) -> None:
        self.n = 0  #: number of distinct keys
        self._keys: NDArray[np.int64] = np.empty(LEAST, np.int64)
        self._proofs: NDArray[np.uint64] | None = None
        self._slots: NDArray[Any] = np.full(2 * LEAST, -1, np.int32)

    def add(
        self, keys: NDArray[np.int64], proofs: NDArray[np.uint64] | None = None
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the code of each key of a block, and the rows of keys seen for the first time, in order.

        Codes are int32 as long as they fit.
        """
        self._make_room(keys.size)
        if proofs is not None and self._proofs is None:
            self._proofs = np.zeros(self._keys.size, np.uint64)
        if proofs is None and self._proofs is not None:
            proofs = np.zeros(keys.size, np.uint64)
        codes = np.empty(keys.size, self._slots.dtype)
        firsts = np.empty(keys.size, np.int64)
        known = self.n
        self.n = kernels.hashing.number_block(
            keys, proofs, self._slots, self._keys, self._proofs, known, codes, firsts
        )
        return codes, firsts[: self.n - known].copy()

    def growth(self, n: int) -> int:
        """Return the maximum number of bytes allocated for n more keys, before the arrays they replace are freed."""
        capacity = self._capacity(n)
        if capacity == self._keys.size:
            return 0
        return capacity * (8 + 2 * self._slots.itemsize + (0 if self._proofs is None else 8))

    def _capacity(self, n: int) -> int:
        capacity = self._keys.size
        while capacity < self.n + n:
            capacity *= 2
        return capacity

    def _make_room(self, n: int) -> None:
        """Allocate space for n more keys; at least half of the slots remain empty."""
        capacity = self._capacity(n)
        if capacity == self._keys.size:
            return
        self._keys = _longer(self._keys, self.n, capacity)
        if self._proofs is not None:
            self._proofs = _longer(self._proofs, self.n, capacity)
        del self._slots
        self._slots = buffers.empty(2 * capacity, np.int32 if capacity <= 2**31 else np.int64)
        self._slots.fill(-1)
        kernels.hashing.enter_keys(self._keys, self.n, self._slots)


def _longer(values: NDArray[Any], n: int, size: int) -> NDArray[Any]:
    """Return an array of the given size that begins with the first n values."""
    found = buffers.empty(size, values.dtype)
    found[:n] = values[:n]
    return found


#: Maximum number of hash functions that are tried to give each value its own slot.
ATTEMPTS = 16
#: Maximum number of values.
MOST_VALUES = 1 << 11


class Places(NamedTuple):
    """A perfect hash table: the index of each slot's value, -1 if empty, and the pilots that assign slots."""

    values: NDArray[np.int64]  #: shape (slots,)
    pilots: NDArray[np.uint16]


def placed(codes: NDArray[np.uint64]) -> Places | None:
    """Return a perfect hash table of values, given their hashes; None if none is found."""
    order = _largest_buckets_first(codes >> kernels.hashing.BELOW_PILOT)
    pilots = np.zeros(1 << kernels.hashing.PILOT_BITS, np.uint16)
    places = np.full(1 << kernels.hashing.SLOT_BITS, -1, np.int16)
    if not kernels.hashing.place_codes(codes[order], pilots, places):
        return None
    return Places(np.where(places < 0, -1, order[places]), pilots)


def _largest_buckets_first(buckets: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return an order of values by bucket, the largest bucket first."""
    _, bucket, counts = np.unique(buckets, return_inverse=True, return_counts=True)
    return np.lexsort((bucket, -counts[bucket]))
