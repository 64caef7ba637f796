"""Numbering of keys that come block by block: equal keys get one code, in the order in which they first appear."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.runtime import buffers

#: Keys that are made room for at first.
LEAST = 1 << 10


class Numbering:
    """The distinct keys so far: 16 to 24 bytes of each, and 8 more if keys have proofs.

    Keys are equal where their proofs are, too: hashes of values have the second word of the fingerprint. Keys without
    proofs have the proof 0.
    """

    def __init__(self) -> None:
        self.n = 0  #: how many there are
        self._keys: NDArray[np.int64] = np.empty(LEAST, np.int64)
        self._proofs: NDArray[np.uint64] | None = None
        self._slots: NDArray[Any] = np.full(2 * LEAST, -1, np.int32)

    def add(
        self, keys: NDArray[np.int64], proofs: NDArray[np.uint64] | None = None
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the code of each key of a block, and the rows of those that were not known, in order.

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
        self.n = kernels.numbering.number_block(
            keys, proofs, self._slots, self._keys, self._proofs, known, codes, firsts
        )
        return codes, firsts[: self.n - known].copy()

    def growth(self, n: int) -> int:
        """Return how many bytes further keys may take, at most, before what they replace is let go."""
        capacity = self._capacity(n)
        if capacity == self._keys.size:
            return 0
        return capacity * (8 + 2 * self._slots.itemsize + (0 if self._proofs is None else 8))

    def _capacity(self, n: int) -> int:
        """Return for how many keys there has to be room with n more."""
        capacity = self._keys.size
        while capacity < self.n + n:
            capacity *= 2
        return capacity

    def _make_room(self, n: int) -> None:
        """Make room for n more keys; half of the slots stay empty."""
        capacity = self._capacity(n)
        if capacity == self._keys.size:
            return
        self._keys = _longer(self._keys, self.n, capacity)
        if self._proofs is not None:
            self._proofs = _longer(self._proofs, self.n, capacity)
        del self._slots
        self._slots = buffers.empty(2 * capacity, np.int32 if capacity <= 2**31 else np.int64)
        self._slots.fill(-1)
        kernels.numbering.enter_keys(self._keys, self.n, self._slots)


def _longer(values: NDArray[Any], n: int, size: int) -> NDArray[Any]:
    """Return an array of another size with the first n values."""
    found = buffers.empty(size, values.dtype)
    found[:n] = values[:n]
    return found
