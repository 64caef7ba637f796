"""Drawing by weight, with replacement, such that what is drawn depends on the ids alone, not on the order of the rows.

Rows come with a key, the hash of their id. They lie side by side in the order of their keys, each as long as its
weight, and a draw is a point on that line. Only the parts of the line where points fall are ever put in order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
Keys = NDArray[np.uint64]

#: Draws from each stratum at least, so that it shows how its pairs differ.
LEAST = 2
#: Stretches of the line, over all strata, and rows of one that are not worth cutting up further.
STRETCHES, FEW_ROWS = 1 << 16, 1 << 8


def allot(sizes: Floats, n: int) -> Places:
    """Return the stratum of each of n draws: LEAST from each, then in proportion to the sizes.

    The next draw is where most is due (the divisors of Webster), so a longer list begins with a shorter one.

    >>> allot(np.array([3.0, 1.0]), 8).tolist()
    [0, 1, 0, 1, 0, 0, 0, 0]
    """
    n_strata = sizes.size
    first = np.tile(np.arange(n_strata), LEAST)
    due = [(-float(size) / (2 * LEAST + 1), stratum, LEAST) for stratum, size in enumerate(sizes)]
    heapq.heapify(due)
    more = []
    for _ in range(n - first.size):
        _, stratum, drawn = due[0]
        more.append(stratum)
        heapq.heapreplace(due, (-float(sizes[stratum]) / (2 * drawn + 3), stratum, drawn + 1))
    return np.append(first, np.array(more, np.int64))


def sums_by_stratum(mass: Floats, strata: Places, n_strata: int) -> Floats:
    """Add up the mass by stratum."""
    totals, errors = np.zeros(n_strata), np.zeros(n_strata)
    kernels.sums.add_by_code(strata, mass, np.ones(mass.size), None, totals, errors)
    return totals + errors


def draw_rows(mass: Floats, keys: Keys, strata: Places, points: Sequence[Floats]) -> list[Places]:
    """Return the row that each point falls on, stratum by stratum; points are shares of the line of their stratum.

    Shapes: (n_rows,) three times, (n_strata,) lists of points below 1. Masses are positive.
    """
    n_strata = len(points)
    bits = max(0, min(STRETCHES // n_strata, mass.size // FEW_ROWS).bit_length() - 1)
    stretch = strata << bits
    if bits:
        stretch = stretch | (keys >> np.uint64(64 - bits)).astype(np.int64)
    sizes = sums_by_stratum(mass, stretch, n_strata << bits).reshape(n_strata, -1)
    homes, rests = [], []
    for stratum, shares in enumerate(points):
        ends = np.cumsum(sizes[stratum])
        target = shares * ends[-1]
        home = _first_above(ends, target)
        rests.append(target - np.append(0.0, ends)[home])
        homes.append(home + (stratum << bits))
    drawn = np.zeros(sizes.size, np.bool_)
    drawn[np.concatenate(homes)] = True
    near = np.flatnonzero(drawn[stretch])
    near = near[np.lexsort((keys[near], stretch[near]))]
    rows_of = {own: near[a:b] for own, a, b in _runs(stretch[near])}
    found = []
    for home, rest in zip(homes, rests, strict=True):
        rows = np.empty(home.size, np.int64)
        for own, at in _grouped(home):
            here = rows_of[own]
            rows[at] = here[_first_above(np.cumsum(mass[here]), rest[at])]
        found.append(rows)
    return found


def draw_mates(
    groups: Places, blocks: Places, keys: Keys, mass: Floats, drawn: Places, shares: Floats
) -> Places:
    """Return for each drawn row another one of its group, but of another block, by mass.

    Shapes: (n_rows,) four times, (n_drawn,) twice. A block is in one group; each drawn row's group has another one.
    """
    near = np.flatnonzero(np.isin(groups, groups[drawn]))
    near = near[_block_by_block(groups[near], blocks[near], keys[near])]
    place = np.empty(groups.size, np.int64)
    place[near] = np.arange(near.size)
    bounds = np.append(_begins(blocks[near]), near.size)
    block = np.searchsorted(bounds, place[drawn], side="right") - 1
    begin, end = bounds[block], bounds[block + 1]
    mates = np.empty(drawn.size, np.int64)
    spans = {group: (a, b) for group, a, b in _runs(groups[near])}
    for group, at in _grouped(groups[drawn]):
        a, b = spans[group]
        mates[at] = near[a + _beside(mass[near[a:b]], begin[at] - a, end[at] - a, shares[at])]
    return mates


def _block_by_block(groups: Places, blocks: Places, keys: Keys) -> Places:
    """Return the order by group, in it by the block's least key, in that by key."""
    order = np.lexsort((keys, blocks))
    begins = _begins(blocks[order])
    least = np.repeat(keys[order][begins], np.diff(np.append(begins, order.size)))
    return order[np.lexsort((blocks[order], least, groups[order]))]


def _beside(mass: Floats, begin: Places, end: Places, shares: Floats) -> Places:
    """Return the row on which each point falls, on the line without its own rows `begin` to `end`.

    What lies before is added up from the front and what lies after from the back, so that the sums keep their digits
    however heavy the own rows are.
    """
    before = np.append(0.0, np.cumsum(mass))
    after = np.append(0.0, np.cumsum(mass[::-1]))
    left, right = before[begin], after[mass.size - end]
    target = shares * (left + right)
    in_front = (target < left) | (right == 0)
    found = np.where(
        in_front,
        np.minimum(_first_above(before[1:], target), begin - 1),
        np.maximum(mass.size - 1 - _first_above(after[1:], np.maximum(target - left, 0.0)), end),
    )
    return found.astype(np.int64)


def _first_above(ends: Floats, target: Floats) -> Places:
    """Return on which part of a line each point falls; on the last that has a length if rounding puts it beyond."""
    last = int(np.searchsorted(ends, ends[-1], side="left"))
    return np.minimum(np.searchsorted(ends, target, side="right"), last)


def _begins(values: NDArray[Any]) -> Places:
    """Return where runs of equal values begin."""
    return np.flatnonzero(np.append(values.size > 0, values[1:] != values[:-1]))


def _runs(values: Places) -> Iterator[tuple[int, int, int]]:
    """Yield each run of equal values: the value, where it begins and where it ends."""
    begins = _begins(values)
    ends = np.append(begins[1:], values.size)
    yield from zip(values[begins].tolist(), begins.tolist(), ends.tolist(), strict=False)


def _grouped(values: Places) -> Iterator[tuple[int, Places]]:
    """Yield each value, and where it stands."""
    order = np.argsort(values, kind="stable")
    for value, a, b in _runs(values[order]):
        yield value, order[a:b]
