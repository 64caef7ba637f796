"""Labels of clusters whose keys alone were kept: integers are their own keys, others are looked for in the input."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.blockwise.carried import number_type, numbers_of_keys
from fastbcubed.blockwise.counting import ClusterKeys
from fastbcubed.blockwise.pairs import Pair, Stretch
from fastbcubed.engines.pool import Pool
from fastbcubed.errors import FileFormatError
from fastbcubed.kernels.partition import unmix_all
from fastbcubed.sources.arrays import from_numpy
from fastbcubed.sources.columns import Column
from fastbcubed.sources.keys import seeded_keys
from fastbcubed.sources.selection import combined

__all__ = ["NamesByKey"]


class NamesByKey:
    """The labels of clusters by code.

    Parameters
    ----------
    pair : Pair
        The two sides; held only as far as labels have to be looked for.
    labels : sequence of Column
        Some labels of each side.
    seeds : sequence of int or None
        The hash function of each side; None where integers are their own keys.
    made : (int, int) or None
        The first key that policies have made, and how many they may be; None if they have made none.
    keys : ClusterKeys
        The keys by code.
    threads : int
        Threads to read with.
    """

    def __init__(
        self,
        pair: Pair,
        labels: Sequence[Column],
        seeds: Sequence[int | None],
        made: tuple[int, int] | None,
        keys: ClusterKeys,
        threads: int,
    ) -> None:
        self._made = made
        self._threads = threads
        self._one_at_a_time = threading.Lock()  # what is read takes memory
        self._sides = {
            "true": _Labels(pair, 0, labels[0], seeds[0], keys.true),
            "pred": _Labels(pair, 1, labels[1], seeds[1], keys.pred),
        }

    def __call__(self, side: str, codes: NDArray[np.integer]) -> pa.Array:
        """Return the labels of clusters, null for one that a policy has made.

        Raises
        ------
        FileFormatError
            If the input has to be read again for them, and is not there any more or has changed.
        """
        own = self._sides[side]
        keys = unmix_all(np.ascontiguousarray(own.keys[codes]))
        made = np.zeros(keys.size, bool)
        if self._made is not None:
            start, n = self._made
            made = keys.view(np.uint64) - np.uint64(start % 2**64) < np.uint64(n)
        if own.kind is not None:
            return numbers_of_keys(keys, own.kind, made)
        wanted, at = np.unique(keys[~made], return_inverse=True)
        with self._one_at_a_time, Pool(self._threads) as pool:
            found, place = own.look_for(wanted, pool)
        rows = np.zeros(keys.size, np.int64)
        rows[~made] = place[at]
        return found.take(from_numpy(rows, made))


class _Labels:
    """The labels of one side."""

    def __init__(self, pair: Pair, k: int, first: Column, seed: int | None, keys: NDArray[np.int64]) -> None:
        self.keys = keys
        self._seed = seed
        self.kind = number_type(first)
        if self.kind is not None:
            return  # and hold on to nothing
        self._none = first.take(np.empty(0, np.int64))
        self._name = pair.names[k]
        self._stretches = pair.stretches[k if len(pair.stretches) == 2 else 0]
        self._at = 0 if len(pair.stretches) == 2 else k

    def look_for(self, wanted: NDArray[np.int64], pool: Pool) -> tuple[pa.Array, NDArray[np.int64]]:
        """Read the input until the label of every key is found; return these, and which is each key's.

        Parameters
        ----------
        wanted : ndarray of int64
            Keys, ascending.
        pool : Pool
            The threads.
        """
        place = np.full(wanted.size, -1)
        low = (8 << wanted.size.bit_length()) - 1  # these bits tell most other keys from those wanted
        likely = np.zeros(low + 1, bool)
        likely[wanted & low] = True
        pieces = [self._none]
        n_found = 0
        lock = threading.Lock()

        def look(stretch: Stretch) -> None:
            nonlocal n_found
            with Pool(1) as alone:
                blocks = stretch.blocks() if n_found < wanted.size else iter(())
                for block in blocks:
                    labels = block.sides[self._at].labels
                    keys, _ = seeded_keys(labels, self._seed, alone)
                    nulls = labels.null_rows  # their keys are arbitrary
                    there = likely[keys & low]
                    rows = np.flatnonzero(there if nulls is None else there & ~nulls)
                    at = np.minimum(np.searchsorted(wanted, keys[rows]), wanted.size - 1)
                    new = (wanted[at] == keys[rows]) & (place[at] < 0)
                    rows, at = rows[new], at[new]
                    with lock:
                        codes, first = np.unique(at, return_index=True)
                        fresh = place[codes] < 0
                        place[codes[fresh]] = n_found + np.arange(np.count_nonzero(fresh))
                        pieces.append(labels.take(rows[first[fresh]]))
                        n_found += len(pieces[-1])
                    if n_found == wanted.size:
                        return

        pool.map(look, self._stretches, stage="look for the names of clusters")
        if n_found < wanted.size:
            raise FileFormatError(
                f"{wanted.size - n_found} of {wanted.size} clusters of {self._name} were not found when it was "
                "read again for their names. Has it changed since it was evaluated? Evaluate it anew"
            )
        return combined(pa.chunked_array(pieces)), place
