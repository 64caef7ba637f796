"""Rows sorted by their independent units, half of which are searched and half of which are tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.inputs.id_order import order_of_words
from fastbcubed.runtime.threads import BLOCK, blocks
from fastbcubed.types import Codes, Floats

#: Number of rows, rounded up to whole units, by which cuts of numbers, ids and alike slices are determined.
SAMPLED = 1 << 17
#: The odd constants of SplitMix64, by which the seed is mixed with the content of a unit.
STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return words scrambled so that every bit depends on every bit of the given word (the finalizer of SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(FIRST)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(SECOND)
    return words ^ (words >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class UnitOrder:
    """Rows sorted by unit, where units are in a random order that depends on the seed and their content only.

    The order does not depend on the order of rows or on the numbers of units, so all engines search the same half.
    """

    rows: Codes  #: the original positions of the sorted rows; shape (n,)
    unit: NDArray[np.int32]  #: the unit of each of these rows, ascending; shape (n,)
    starts: NDArray[np.int64]  #: where each unit begins, and the end; shape (n_units + 1,)
    n_search: int  #: number of rows of the first half of the units, which is searched

    @classmethod
    def of(cls, units: Codes, words: Callable[[slice], NDArray[np.uint64]], seed: int) -> UnitOrder:
        """Sort rows by unit; a unit's place depends on the sum of its items' hash words.

        Parameters
        ----------
        units : array of shape (n,)
            The unit of each row.
        words : callable
            Returns the hash words of consecutive rows; those of all rows would take eight bytes each.
        seed : int
            Seed of the order of units.
        """
        n_units = int(units.max(initial=-1)) + 1
        sums = np.zeros(n_units, np.uint64)
        for start, stop in blocks(units.size):
            np.add.at(sums, units[start:stop], words(slice(start, stop)))
        first = mixed(np.array([(seed * STEP + STEP) % 2**64], np.uint64))
        place = np.empty(n_units, np.int32)
        own = mixed(sums ^ first)
        place[order_of_words([lambda some: own[some]], n_units)] = np.arange(n_units, dtype=np.int32)
        unit = place[units]
        starts = np.concatenate([[0], np.cumsum(np.bincount(unit, minlength=n_units))])
        rows: Codes = np.empty(unit.size, np.int32 if unit.size < 2**31 else np.int64)
        kernels.slices.place_rows(unit, starts[:-1].copy(), rows)
        for start, stop in blocks(n_units):  # what unit[rows] is, without as many positions of 64 bits
            counts = np.diff(starts[start : stop + 1])
            unit[starts[start] : starts[stop]] = np.repeat(np.arange(start, stop, dtype=np.int32), counts)
        return cls(rows, unit, starts, int(starts[(n_units + 1) // 2]))

    @property
    def n_units(self) -> int:
        """The number of units."""
        return self.starts.size - 1

    @property
    def halves(self) -> tuple[slice, slice]:
        """The ranges of searched and of tested rows."""
        return slice(0, self.n_search), slice(self.n_search, self.rows.size)

    @property
    def sampled(self) -> int:
        """The number of rows in the sample: whole units at the front of the searched half."""
        ends = self.starts[: (self.n_units + 1) // 2 + 1]
        return int(ends[min(int(np.searchsorted(ends, SAMPLED)), ends.size - 1)])

    def blocks(self, rows: slice) -> Iterator[slice]:
        """Yield the blocks of whole units that rows of whole units consist of."""
        at = rows.start
        while at < rows.stop:
            end = int(self.starts[np.searchsorted(self.starts, min(at + BLOCK, rows.stop))])
            yield slice(at, end)
            at = end

    def by_unit(self, rows: slice, values: Floats) -> Floats:
        """Sum values over each unit in a range of whole units. Shape (number of these units,)."""
        first, last = (int(np.searchsorted(self.starts, at)) for at in (rows.start, rows.stop))
        if first == last:
            return np.zeros(0)
        return np.add.reduceat(values, self.starts[first:last] - rows.start)
