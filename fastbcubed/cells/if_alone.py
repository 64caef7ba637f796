"""Items that only the truth has, and are dropped: what recall would be if each were alone in the prediction.

With such items of mass t in it, a true cluster of scored mass a has a + t: its scored items, and those alone, find so
much less of it. All of this is known where cells have just got their false negatives, true cluster by true cluster.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels

#: Sums of a true cluster: weight * mass and mass of its scored cells; items, weight, mass of those left out.
N_SUMS = 5


class IfAlone:
    """What the sum of recall over items would gain or lose if items that only the truth has were alone.

    Where weights count inside the confusion matrices, those of one true cluster that are left out are taken to weigh
    the same, since a cell does not tell their weights apart.

    Parameters
    ----------
    absent_pred : ndarray of int64, shape (0,) or (1,)
        The mixed key that stands for "not in the prediction"; empty where the prediction lacks nothing.
    outer : bool
        Whether weights serve the mean alone.
    """

    def __init__(self, absent_pred: NDArray[np.int64], *, outer: bool) -> None:
        self._absent, self._outer = absent_pred, outer
        self._changes: list[float] = []
        self._heavy: NDArray[np.float64] | None = None

    def add(self, cells: np.ndarray, first: int, n_codes: int) -> None:
        """Add cells of records (pred, weight, fn, true, n), which have all cells of their true clusters."""
        found = self._left_out(cells)
        if found.size:
            codes, number = np.unique(cells["true"][found], return_inverse=True)
            place = np.full(n_codes, -1, np.int32)
            place[codes - first] = np.arange(codes.size)
            self._changes.append(_change(self._sums(cells, found, number, first, place, codes.size)))

    def add_heavy(self, cells: np.ndarray, n_codes: int) -> None:
        """Add cells of the first so many true clusters, of which others follow."""
        found = self._left_out(cells)
        number = cells["true"][found].astype(np.int64)
        sums = self._sums(cells, found, number, 0, np.arange(n_codes, dtype=np.int32), n_codes)
        self._heavy = sums if self._heavy is None else self._heavy + sums

    def change(self) -> float:
        """Return the change of the sum, when all cells have been added."""
        heavy = [] if self._heavy is None else [_change(self._heavy)]
        return math.fsum([*self._changes, *heavy])

    def _left_out(self, cells: np.ndarray) -> NDArray[np.int64]:
        """Return the cells of items that only the truth has."""
        found = np.empty(0, np.int64)
        if self._absent.size and (n := kernels.closing.find_left_out(cells, self._absent[0], found)):
            found = np.empty(n, np.int64)
            kernels.closing.find_left_out(cells, self._absent[0], found)
        return found

    def _sums(
        self,
        cells: np.ndarray,
        found: NDArray[np.int64],
        number: NDArray[np.int64],
        first: int,
        place: NDArray[np.int32],
        size: int,
    ) -> NDArray[np.float64]:
        """Return the sums of clusters that have a place. Shape (N_SUMS, size)."""
        sums = np.zeros((N_SUMS, size))
        if self._absent.size:
            kernels.closing.add_squares(cells, self._absent[0], self._outer, first, place, sums[0], sums[1])
        n, weight = cells["n"][found], cells["weight"][found]
        for k, values in enumerate((n, weight, n if self._outer else weight), 2):
            sums[k] = np.bincount(number, values, size)
        return sums


def _change(sums: NDArray[np.float64]) -> float:
    """Return what the sum of recall gains or loses by items that are left out.

    Examples
    --------
    A cluster of which two items are scored, together (they find 2 of 2 items each), and two are left out (all four
    would find 2, 2, 1, 1 of 4):

    >>> _change(np.array([[4.0], [2.0], [2.0], [2.0], [2.0]]))
    -0.5
    """
    squares, mass, n, weight, left_out = sums[:, sums[2] > 0]
    own = weight * (left_out / n)
    before = np.divide(squares, mass, out=np.zeros(mass.size), where=mass > 0)
    return math.fsum((squares + own) / (mass + left_out) - before)
