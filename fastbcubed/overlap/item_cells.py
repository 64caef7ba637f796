"""Items by cell: those in the same set of clusters on each side are one cell."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.runtime import buffers
from fastbcubed.runtime.parts import PART_ROWS, offsets, part_bits, part_blocks, row_blocks, slots_for
from fastbcubed.runtime.pool import Pool

Codes = NDArray[np.int64]
Integers = NDArray[np.integer]


class ItemCells(NamedTuple):
    """Items by the sets of clusters that they are in on both sides."""

    cell: Codes  #: the cell of each item, -1 for one that a side lacks; shape (n_items,)
    true: Codes  #: the true set of each cell; shape (n_cells,), as of all that follow
    pred: Codes  #: its predicted set
    n: Codes  #: its items


def item_cells(sets: Memberships, true: Codes, pred: Codes, n_pred: int, pool: Pool) -> ItemCells:
    """Give numbers to the pairs of a true and a predicted set: by the first cluster of the true one, then by that.

    Items are brought into parts by their true set, each of which is sorted and numbered in the cache. `sets` are the
    true ones, and there are `n_pred` of the others. `true` and `pred` (n_items,) are -1 where a side lacks the item.
    """
    if not len(sets):
        none = np.empty(0, np.int64)
        return ItemCells(np.full(true.size, -1), none, none, none)
    wide = np.int32 if max(true.size, len(sets), n_pred) < 2**31 else np.int64
    ranks, by_rank = _ranked(sets, wide)
    shift = max(0, (len(sets) - 1).bit_length() - part_bits(true.size, PART_ROWS))
    records, bounds = _partitioned(true, pred, ranks, shift, pool)
    del ranks
    cells = buffers.empty((len(records), 3), wide)
    largest = int(np.diff(bounds).max())

    def group(first: int, last: int) -> int:
        with pool.workspace(
            ("group", wide, shift),
            lambda: (np.empty((1 << shift) + 1, wide), np.empty(largest, wide), slots_for(largest, wide)),
            lambda space: space[1].size >= largest,
        ) as space:
            return kernels.covers.group_parts(records, bounds, first, last, shift, space, cells)

    cuts = part_blocks(bounds.size - 1)
    counts = pool.map(group, *zip(*cuts, strict=True), stage="group items")
    *bases, n_cells = accumulate(counts, initial=0)
    found = ItemCells(
        buffers.empty(true.size, np.int64), *(buffers.empty(int(n_cells), np.int64) for _ in range(3))
    )
    if len(records) < true.size:
        found.cell.fill(-1)

    def write(cut: tuple[int, int], base: int, n: int) -> None:
        start, stop = bounds[cut[0]], bounds[cut[1]]
        kernels.covers.number_items(records[start:stop], base, found.cell)
        own = slice(base, base + n)
        kernels.covers.list_cells(
            cells[start : start + n], by_rank, found.true[own], found.pred[own], found.n[own]
        )

    pool.map(write, cuts, bases, counts, stage="number cells")
    return found


def _ranked(sets: Memberships, wide: type[np.integer]) -> tuple[Integers, Integers]:
    """Return the rank of each set, by its first cluster and then as it stands, and the sets by rank."""
    counts = np.zeros(sets.n_clusters, np.int64)
    kernels.covers.count_firsts(sets.offsets, sets.codes, counts)
    ranks, by_rank = buffers.empty(len(sets), wide), buffers.empty(len(sets), wide)
    kernels.covers.rank_sets(sets.offsets, sets.codes, np.cumsum(counts) - counts, ranks, by_rank)
    return ranks, by_rank


def _partitioned(true: Codes, pred: Codes, ranks: Integers, shift: int, pool: Pool) -> tuple[Integers, Codes]:
    """Bring the items of both sides into parts by rank: rank, predicted set, item; and return where parts begin."""
    starts, stops = zip(*row_blocks(true.size, 1 << 16), strict=True)
    counts = np.zeros((len(starts), (max(0, ranks.size - 1) >> shift) + 1), np.int64)
    keys = buffers.empty(true.size, ranks.dtype)
    pool.map(
        lambda a, b, out: kernels.covers.rank_items(true, pred, a, b, ranks, shift, keys, out),
        starts, stops, counts, stage="rank items",
    )  # fmt: skip
    bounds, places = offsets(counts)
    records = buffers.empty((int(bounds[-1]), 3), ranks.dtype)
    pool.map(
        lambda a, b, to: kernels.covers.scatter_items(keys, pred, a, b, shift, to, records),
        starts, stops, places, stage="partition items by clusters",
    )  # fmt: skip
    return records, bounds
