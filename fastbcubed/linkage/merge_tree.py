"""Links with scores → which clusters become one at which score: the merge tree, for all thresholds at once.

    links --by score--> sorted --join_in_order--> forest --lay_out--> order of items, levels between neighbours

A level is a score at which clusters become one; links of equal scores join together. Levels count from 0, the
strongest score; `n_levels` stands between items that no link joins.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

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

    order: Codes  #: items; shape (n_items,), as of all arrays but the last
    levels: Codes  #: the level at which the clusters of each item and the next become one
    links: np.ndarray  #: `left` and `right`, both items of a link that joins them, -1 for none
    thresholds: Floats  #: the score of each level, strongest first; shape (n_levels,)
    ascending: bool  #: whether small scores are strong: distances

    @property
    def n_items(self) -> int:
        """All items, those without a link, too."""
        return int(self.order.size)

    @property
    def n_levels(self) -> int:
        """Scores at which clusters become one."""
        return int(self.thresholds.size)

    def n_used(self, threshold: float) -> int:
        """Return how many levels a threshold uses: those whose scores are at least as strong."""
        if self.ascending:
            return int(np.searchsorted(self.thresholds, threshold, side="right"))
        return int(self.n_levels - np.searchsorted(self.thresholds[::-1], threshold, side="left"))

    def labels(self, n_used: int) -> tuple[NDArray[np.int64], int]:
        """Return the cluster of each item, numbered by first items, when so many levels are used; and their number."""
        labels, numbers = np.empty(self.n_items, np.int64), np.empty(self.n_items, self.order.dtype)
        n = kernels.merge_tree.label_clusters(self.order, self.levels, n_used, labels, numbers)
        return labels, int(n)


def merge_tree(
    n_items: int, left: Codes, right: Codes, scores: Floats, pool: Pool, *, ascending: bool = False
) -> MergeTree:
    """Join items by their links, the strongest first. Scores are no NaN, and links name items by number."""
    dtype = np.dtype(np.int32 if max(n_items, scores.size) < 2**31 - 1 else np.int64)
    pair = [("left", dtype), ("right", dtype)]
    links, keys = _by_score(left, right, scores, np.dtype(pair), pool, ascending=ascending)
    parents, thresholds = np.full(n_items, -1, dtype), np.empty(min(n_items, scores.size), np.uint64)
    merge = [*((name, dtype) for name in ("front", "back", "size", "level")), *pair]
    merged: np.ndarray = buffers.empty(n_items, np.dtype(merge))
    state, cuts = (0, 0, False), blocks(scores.size)
    with pool.stage("join items", len(cuts), scores.size) as step:
        for start, stop in cuts:
            state = kernels.merge_tree.join_in_order(
                links, keys, start, stop, ascending, parents, merged, thresholds, state
            )
            step(stop - start)
    n_levels, n_merged, _ = state
    del links, keys
    places, order, levels = (np.empty(n_items, dtype) for _ in range(3))
    between = np.empty(n_items, np.dtype(pair))
    kernels.merge_tree.lay_out(parents, merged[:n_merged], n_levels, places, order, levels, between)
    return MergeTree(order, levels, between, thresholds[:n_levels].view(np.float64).copy(), ascending)


def _by_score(
    left: Codes, right: Codes, scores: Floats, pair: np.dtype, pool: Pool, *, ascending: bool
) -> tuple[np.ndarray, NDArray[np.uint64]]:
    """Return the links by score, the strongest first and those of equal scores in their order; and keys that ascend.

    They are scattered into ranges of scores that fit a core's cache, and sorted there.
    """
    n, module = scores.size, kernels.merge_tree
    keys: NDArray[np.uint64] = buffers.empty(n, np.uint64)
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
    sorted_keys: NDArray[np.uint64] = buffers.empty(n, np.uint64)
    links: np.ndarray = buffers.empty(n, pair)
    pool.map(
        lambda a, b, own: module.scatter_links(keys, left, right, a, b, low, width, own, sorted_keys, links),
        *cuts, places, stage="sort links",
    )  # fmt: skip

    def sort(first: int, last: int) -> None:
        digits = np.empty(1 << module.DIGIT, np.int64)
        spare = np.empty(int(np.diff(bounds[first : last + 1]).max()), pair)
        for start, stop in pairwise(bounds[first : last + 1].tolist()):
            if stop - start > 1:
                own = slice(start, stop)
                module.sort_range(
                    sorted_keys[own], links[own], low, shift, keys[own], spare[: stop - start], digits
                )

    pool.map(sort, *zip(*blocks(1 << bits, PARTS_AT_ONCE), strict=True), stage="sort links")
    return links, sorted_keys
