"""Some rows of a tree, such as a slice, with all that their scores depend on."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.linkage.tree_rows import TreeRows
from fastbcubed.runtime.cached import cached_property


class Subset(NamedTuple):
    """Rows of which some are scored, and which levels of the whole tree theirs are."""

    rows: TreeRows
    levels: NDArray[np.integer]


class Subsets:
    """Rows of a tree of which one subset after the other is scored.

    The score of an item depends on its cluster at the weakest threshold and on its true cluster alone, so that only
    the rows of these are looked at.
    """

    def __init__(self, rows: TreeRows) -> None:
        self._rows = rows

    @cached_property
    def _ends(self) -> NDArray[np.integer]:
        """Where the clusters of the weakest threshold end."""
        return np.flatnonzero(self._rows.levels == self._rows.n_levels) + 1

    @cached_property
    def _by_code(self) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Places by true cluster, and where those of each begin."""
        order = np.argsort(self._rows.codes, kind="stable")
        n_none = int(np.count_nonzero(self._rows.codes < 0))
        return order[n_none:], np.concatenate([[0], np.cumsum(self._rows.true_sizes)])

    def take(self, members: NDArray[np.integer]) -> Subset:
        """Return what scores some rows, given by their places, which ascend; no others are scored."""
        rows, ends = self._rows, self._ends
        clusters = _once(np.searchsorted(ends, members, side="right"))
        begins = np.concatenate([[0], ends[:-1]])[clusters]
        if 2 * int((ends[clusters] - begins).sum()) > len(rows):  # to leave out the others would take longer
            scored = np.zeros(len(rows), np.bool_)
            scored[members] = True
            return Subset(replace(rows, scored=scored), np.arange(rows.n_levels))
        codes = np.unique(rows.codes[members])
        whole = _ranges(begins, ends[clusters])
        places, offsets = self._by_code
        others = places[_ranges(offsets[codes], offsets[codes + 1])]
        kept = np.union1d(whole, others)
        levels = np.full(kept.size, rows.n_levels, rows.levels.dtype)
        at = np.searchsorted(kept, whole)
        levels[at] = rows.levels[whole]
        used = np.unique(levels[levels < rows.n_levels])
        known, numbers = np.unique(rows.codes[kept], return_inverse=True)
        numbers = numbers.astype(rows.codes.dtype) - np.count_nonzero(known < 0)
        scored = np.zeros(kept.size, np.bool_)
        scored[np.searchsorted(kept, members)] = True
        weights = None if rows.weights is None else rows.weights[kept]
        own = np.searchsorted(used, levels).astype(rows.levels.dtype)
        return Subset(TreeRows(own, numbers, used.size, weights, scored), used)


def _once(numbers: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return each of some numbers that do not descend once."""
    return numbers[np.flatnonzero(np.diff(numbers, prepend=-1))]


def _ranges(starts: NDArray[np.integer], stops: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the numbers of several ranges, one after the other."""
    sizes = stops - starts
    before = np.concatenate([[0], np.cumsum(sizes)])
    return np.arange(before[-1]) + np.repeat(starts - before[:-1], sizes)
