"""Links with scores → which clusters become one at which score: the merge tree, for all thresholds at once.

    links --by score--> sorted --join_in_order--> forest --lay_out--> order of items, levels between neighbours

A level is a score at which clusters become one; links of equal scores join together. Levels count from 0, the
strongest score; `n_levels` stands between items that no link joins.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.parts import PARTS_AT_ONCE, offsets, part_bits, row_blocks
from fastbcubed.runtime.pool import Pool, blocks

Codes = NDArray[np.integer]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MergeTree:
    """All items in an order in which every cluster at every threshold is a stretch."""

    order: Codes  #: items; shape (n_items,), as of `levels` and `links`
    levels: Codes  #: the level at which the clusters of each item and the next become one
    links: np.ndarray  #: `left` and `right`, both items of a link that joins them, -1 for none
    merges: Codes  #: all places but the last, by level, those of a level ascending; shape (n_items - 1,)
    points: (
        Floats  #: the threshold of no link, which is infinite, then the score of each level, strongest first
    )
    scores: Floats  #: the score of each link, strongest first; shape (n_links,)
    ascending: bool  #: whether small scores are strong: distances

    @property
    def n_items(self) -> int:
        """All items, those without a link, too."""
        return int(self.order.size)

    @property
    def thresholds(self) -> Floats:
        """The score of each level, strongest first; shape (n_levels,)."""
        return self.points[1:]

    @property
    def n_levels(self) -> int:
        """Scores at which clusters become one."""
        return int(self.points.size - 1)

    def n_used(self, threshold: float) -> int:
        """Return how many levels a threshold uses: those whose scores are at least as strong."""
        return _n_reaching(self.thresholds, threshold, ascending=self.ascending)

    def n_links_used(self, threshold: float) -> int:
        """Return how many links a threshold uses."""
        return _n_reaching(self.scores, threshold, ascending=self.ascending)

    def labels(self, n_used: int) -> tuple[NDArray[np.int64], int]:
        """Return the cluster of each item, numbered by first items, when so many levels are used; and their number."""
        labels, numbers = np.empty(self.n_items, np.int64), np.empty(self.n_items, self.order.dtype)
        n = kernels.merge_tree.label_clusters(self.order, self.levels, n_used, labels, numbers)
        return labels, int(n)


def merge_tree(n_items: int, given: list[NDArray[Any]], pool: Pool, *, ascending: bool = False) -> MergeTree:
    """Join items by their links, the strongest first.

    `given` are the left and right items of links, by number, and scores, none of them NaN. The list is emptied, and the
    memory of the scores is used, so that what is no longer needed can go.
    """
    n_links = given[0].size
    dtype = np.dtype(np.int32 if max(n_items, n_links) < 2**31 - 1 else np.int64)
    pair = np.dtype([("left", dtype), ("right", dtype)])
    links, keys = _by_score(given, pair, pool, ascending=ascending)
    merged, points, parents = _join(n_items, links, keys, pool, ascending=ascending)
    del links
    cuts = blocks(n_links)
    pool.map(
        lambda a, b: kernels.merge_tree.write_scores(keys, a, b, ascending, keys), *zip(*cuts, strict=True)
    )
    places, order, levels = (buffers.empty(n_items, dtype) for _ in range(3))
    merges, between = buffers.empty(max(0, n_items - 1), dtype), buffers.empty(n_items, pair)
    kernels.merge_tree.lay_out(parents, merged, places)
    tasks: list[tuple[Any, ...]] = [
        (kernels.merge_tree.write_between, merged, points.size - 1, levels, between, merges),
        (kernels.merge_tree.write_order, places, order),
    ]
    pool.map(lambda task: task[0](*task[1:]), tasks)
    if points.size - 1 < merged.size:  # several merges of a level were written as they were joined
        merges = order_of_merges(levels, points.size - 1)
    return MergeTree(order, levels, between, merges, points, keys.view(np.float64), ascending)


def order_of_merges(levels: Codes, n_levels: int) -> Codes:
    """Return all places but the last by their levels, those of a level ascending, as meetings take them to be."""
    starts, order = (buffers.empty(size, levels.dtype) for size in (n_levels + 2, levels.size))
    kernels.merge_tree.order_by_level(levels, starts, order)
    return order[: levels.size - 1]


def _join(
    n_items: int, links: np.ndarray, keys: NDArray[np.uint64], pool: Pool, *, ascending: bool
) -> tuple[np.ndarray, Floats, Codes]:
    """Return the merges, the threshold of no link and the score of each level, and the forest of items."""
    dtype = links.dtype["left"]
    parents, points = buffers.empty(n_items, dtype), np.empty(1 + min(n_items, keys.size))
    parents[:], points[0] = -1, -np.inf if ascending else np.inf
    thresholds = points[1:].view(np.uint64)
    merge = [(name, dtype) for name in ("front", "back", "n_front", "level", "left", "right")]
    merged: np.ndarray = buffers.empty(n_items, np.dtype(merge))
    state, cuts = (0, 0, False), blocks(keys.size)
    with pool.stage("join items", len(cuts), keys.size) as step:
        for start, stop in cuts:
            state = kernels.merge_tree.join_in_order(
                links, keys, start, stop, ascending, parents, merged, thresholds, state
            )
            step(stop - start)
    n_levels, n_merged, _ = state
    return merged[:n_merged], points[: 1 + n_levels].copy(), parents


def _n_reaching(scores: Floats, threshold: float, *, ascending: bool) -> int:
    """Return how many of some scores, the strongest first, are at least as strong as a threshold."""
    sign = 1.0 if ascending else -1.0
    return bisect_right(scores, sign * threshold, key=lambda score: sign * score)


class Ranges(NamedTuple):
    """Links in ranges of keys, not sorted within these; keys ascend as links are weaker."""

    keys: NDArray[np.uint64]
    links: np.ndarray
    spare: NDArray[np.uint64]  #: memory of as many keys
    bounds: NDArray[np.int64]  #: where each range begins and ends
    least: np.uint64
    shift: int  #: bits of a key, less the least, within a range


def _by_score(
    given: list[NDArray[Any]], pair: np.dtype, pool: Pool, *, ascending: bool
) -> tuple[np.ndarray, NDArray[np.uint64]]:
    """Return the links by score, the strongest first and those of equal scores in their order; and keys that ascend.

    They are scattered into ranges of scores that fit a core's cache, and sorted there.
    """
    ranges = _in_ranges(given, pair, pool, ascending=ascending)
    keys, links, spare_keys, bounds, least, shift = ranges
    module = kernels.merge_tree

    def sort(first: int, last: int) -> None:
        digits = np.empty(1 << module.DIGIT, np.int64)
        spare = np.empty(int(np.diff(bounds[first : last + 1]).max()), pair)
        for start, stop in pairwise(bounds[first : last + 1].tolist()):
            if stop - start > 1:
                own = slice(start, stop)
                module.sort_range(
                    keys[own], links[own], least, shift, spare_keys[own], spare[: stop - start], digits
                )

    pool.map(sort, *zip(*blocks(bounds.size - 1, PARTS_AT_ONCE), strict=True), stage="sort links")
    return links, keys


def _in_ranges(given: list[NDArray[Any]], pair: np.dtype, pool: Pool, *, ascending: bool) -> Ranges:
    """Scatter links into ranges; what is given is let go."""
    left, right, scores = given
    given.clear()
    n, module, keys = scores.size, kernels.merge_tree, scores.view(np.uint64)
    cuts = list(zip(*row_blocks(n), strict=True))
    found = pool.map(lambda a, b: module.write_keys(scores, a, b, ascending, keys), *cuts, stage="sort links")
    least, most = min(int(low) for low, _ in found), max(int(high) for _, high in found)
    bits = max(1, part_bits(n))
    shift, low = max(0, (most - least).bit_length() - bits), np.uint64(min(least, most))
    width = np.uint64(shift)
    counts = np.zeros((len(cuts[0]), 1 << bits), np.int64)
    pool.map(
        lambda a, b, own: module.count_ranges(keys, a, b, low, width, own), *cuts, counts, stage="sort links"
    )
    bounds, places = offsets(counts)
    ranges = Ranges(buffers.empty(n, np.uint64), buffers.empty(n, pair), keys, bounds, low, shift)
    pool.map(
        lambda a, b, own: module.scatter_links(
            keys, left, right, a, b, low, width, own, ranges.keys, ranges.links
        ),
        *cuts, places, stage="sort links",
    )  # fmt: skip
    return ranges
