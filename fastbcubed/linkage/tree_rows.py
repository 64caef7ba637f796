"""Rows in the order of the merge tree, the meetings of true clusters' parts in it, and the merges of clusters.

rows --find_meetings--> meetings of true clusters' parts --> pairs of each merge that belong together
rows --merges_of-----> merges of clusters, what either holds, and the pairs that they put together wrongly
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.linkage.merge_tree import order_of_merges
from fastbcubed.linkage.tree_records import Records, records
from fastbcubed.runtime import buffers
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.pool import Pool, blocks

Codes = NDArray[np.integer]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

#: Meetings that are found by one call of a kernel.
MEETINGS_AT_ONCE = 1 << 18
#: Merges that are found before they are added up: few enough for a core's cache, and enough for a task of their own.
MERGES_AT_ONCE = 1 << 15
#: Values that are added up plainly before their sum is added exactly.
SUMMED_AT_ONCE = 1 << 13
#: A true cluster above this share of the weight is dominant: what it leaves cannot be had by subtraction.
DOMINANT = 0.75
#: The code of no row.
NONE = -2


def total_of(values: Floats) -> float:
    """Return the sum of many values, by blocks."""
    return math.fsum(float(values[start:stop].sum()) for start, stop in blocks(values.size, SUMMED_AT_ONCE))


@dataclass(frozen=True, eq=False)
class TreeRows:
    """The rows that count, in the order of the tree; all arrays have one entry for each.

    A level is that at which the clusters of a row and the next become one; `n_levels` if no link joins them.
    """

    levels: Codes
    codes: Codes  #: true clusters, -1 for rows that are in none
    n_levels: int
    weights: Floats | None = None
    scored: NDArray[np.bool_] | None = None  #: which rows are scored; None for all
    known_merges: Codes | None = None  #: `merges`, if they are known

    def __len__(self) -> int:
        return int(self.levels.size)

    @cached_property
    def records(self) -> Records:
        """The records of the kernels for these rows."""
        return records(self.levels.dtype, weighted=self.weights is not None, scored=self.scored is not None)

    @cached_property
    def merges(self) -> Codes:
        """All rows but the last, by the level at which the clusters of each and the next become one, in their order."""
        if self.known_merges is not None:
            return self.known_merges
        return order_of_merges(self.levels, self.n_levels)

    @cached_property
    def true_sizes(self) -> Counts:
        """Rows of each true cluster."""
        return np.bincount(self.codes[self.codes >= 0] if (self.codes < 0).any() else self.codes)

    @cached_property
    def true_masses(self) -> Floats:
        """Weight of each true cluster."""
        if self.weights is None:
            return self.true_sizes.astype(np.float64)
        totals, errors = np.zeros(self.true_sizes.size), np.zeros(self.true_sizes.size)
        kernels.sums.add_by_code(self.codes, self.weights, np.ones(len(self)), None, totals, errors)
        return totals + errors

    @cached_property
    def n_scored(self) -> int:
        """How many rows are scored."""
        return len(self) if self.scored is None else int(np.count_nonzero(self.scored))

    @cached_property
    def total(self) -> float:
        """The weight of the rows that are scored."""
        if self.weights is None:
            return float(self.n_scored)
        return total_of(self.weights if self.scored is None else self.weights[self.scored])

    @cached_property
    def dominant(self) -> int:
        """The true cluster that has nearly all weight, `NONE` if none has, or not all rows are scored."""
        if self.scored is not None:
            return NONE
        heaviest = int(np.argmax(self.true_masses))
        return heaviest if self.true_masses[heaviest] > DOMINANT * self.total else NONE


@dataclass(frozen=True, eq=False)
class Meetings:
    """Where parts of true clusters come together."""

    records: np.ndarray  #: one for each
    crosses: Counts  #: by merge, ordered pairs of a scored row and one of its true cluster that come together there
    #: their weight and its error, without those of the dominant true cluster; shape (n, 2)
    masses: Floats | None


def find_meetings(rows: TreeRows, pool: Pool) -> Meetings:
    """Find where parts of true clusters come together: less often than there are rows."""
    n, index = len(rows), rows.levels.dtype
    bounds, groups = buffers.empty(n, index), buffers.empty(n, rows.records.group)
    last_of = np.full(rows.true_sizes.size, -1, index)
    given = rows.weights, rows.scored
    found: np.ndarray = buffers.empty(n, rows.records.meeting)
    place = depth = code = count = 0
    with pool.stage("find meetings", n) as step:
        while place < n:
            some, before = found[count : count + MEETINGS_AT_ONCE], place
            place, depth, n_found = kernels.meetings.find_meetings(
                place, depth, rows.levels, rows.codes, *given, bounds, last_of, groups, some
            )
            count += n_found
            step(place - before)
        while code < last_of.size:
            some = found[count : count + MEETINGS_AT_ONCE]
            code, n_found = kernels.meetings.find_last_meetings(code, *given, last_of, groups, some)
            count += n_found
    found, scored = found[:count], rows.scored is not None
    crosses, masses = buffers.empty(n, np.int64), None
    crosses[:] = 0
    kernels.merges.add_crosses(found, scored, crosses)
    if rows.weights is not None:
        masses = np.zeros((n, 2))
        kernels.merges.add_masses(found, scored, rows.dominant, masses)
    return Meetings(found, crosses, masses)


def merges_of(rows: TreeRows, crosses: Counts, masses: Floats | None) -> Iterator[np.ndarray]:
    """Yield the merges by level, in blocks; a block is valid until the next but one.

    `crosses` and `masses` are those of the meetings of these rows.
    """
    module, places = kernels.merges, rows.merges
    clusters = buffers.empty(len(rows), rows.records.cluster)
    module.start_clusters(rows.codes, rows.weights, rows.scored, rows.dominant, clusters)
    both = [np.empty(min(MERGES_AT_ONCE, max(1, places.size)), rows.records.merge) for _ in range(2)]
    for k, (start, _) in enumerate(blocks(places.size, MERGES_AT_ONCE)):
        found = both[k % 2]
        n_found = module.find_merges(
            start, places, rows.levels, rows.scored, crosses, masses, clusters, found
        )
        yield found[:n_found]
