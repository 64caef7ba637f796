"""Rows in the order of their independent units, half of which are searched and half of which are tested."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.types import Codes, Floats

#: Rows, rounded up to whole units, that decide what does not take all: cuts of numbers, what an id is, what is alike.
SAMPLED = 1 << 17
#: The odd constants of SplitMix64, by which the seed is mixed with what a unit is.
STEP, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return words of which every bit depends on every bit of the given ones."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(FIRST)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(SECOND)
    return words ^ (words >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class UnitOrder:
    """Rows in the order of their units, which is drawn from the seed and from what the units hold.

    Neither the order of rows nor the numbers of units matter, so that all engines search the same half.
    """

    rows: NDArray[np.int64]  #: positions of the rows in their order
    unit: NDArray[np.int32]  #: of each of these rows, ascending
    starts: NDArray[np.int64]  #: where each unit begins, and the end
    n_search: int  #: rows of the first half of the units, which are searched

    @classmethod
    def of(cls, units: Codes, words: NDArray[np.uint64], seed: int) -> UnitOrder:
        """Order rows by the sum of the words of the items of their unit. Shapes: (n,), (n,)."""
        n_units = int(units.max(initial=-1)) + 1
        sums = np.zeros(n_units, np.uint64)
        np.add.at(sums, units, words)
        start = mixed(np.array([(seed * STEP + STEP) % 2**64], np.uint64))
        place = np.empty(n_units, np.int32)
        place[np.argsort(mixed(sums ^ start), kind="stable")] = np.arange(n_units, dtype=np.int32)
        unit = place[units]
        starts = np.concatenate([[0], np.cumsum(np.bincount(unit, minlength=n_units))])
        rows = np.empty(unit.size, np.int64)
        kernels.slices.place_rows(unit, starts[:-1].copy(), rows)
        return cls(rows, unit[rows], starts, int(starts[(n_units + 1) // 2]))

    @property
    def n_units(self) -> int:
        """The number of units."""
        return self.starts.size - 1

    @property
    def halves(self) -> tuple[slice, slice]:
        """The rows that are searched, and those that are tested."""
        return slice(0, self.n_search), slice(self.n_search, self.rows.size)

    @property
    def sampled(self) -> int:
        """How many rows decide what does not take all: whole units of the half that is searched."""
        ends = self.starts[: (self.n_units + 1) // 2 + 1]
        return int(ends[min(int(np.searchsorted(ends, SAMPLED)), ends.size - 1)])

    def by_unit(self, rows: slice, values: Floats) -> Floats:
        """Add up values of some whole units. Shape (n_units of these,)."""
        first, last = (int(np.searchsorted(self.starts, at)) for at in (rows.start, rows.stop))
        if first == last:
            return np.zeros(0)
        return np.add.reduceat(values, self.starts[first:last] - rows.start)
