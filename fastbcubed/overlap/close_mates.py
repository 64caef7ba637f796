"""Close mates: the cells with which each cell shares two clusters of a side or more, where clusters overlap."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.joining import scatter_keys
from fastbcubed.runtime.parts import part_bits, part_blocks, table_slots
from fastbcubed.runtime.pool import Pool, blocks

Counts = NDArray[np.int64]
Integers = NDArray[np.integer]

#: A cell in more clusters of a side than these has too many pairs of clusters to be found by them.
NARROW = 8


class CellRows(NamedTuple):
    """A row for each cell: its number, how many clusters it has, the true ones, the predicted ones from `n_true` on.

    Before its number stand the number of its first true membership and that of its items.
    """

    starts: Counts  #: where each row has its number; shape (n_cells,)
    codes: Integers
    n_true: int


class CloseMates(NamedTuple):
    """Where to look for the close mates of a cell: in pairs of clusters, or in the clusters of cells in many."""

    narrow: int  #: a cell in no more clusters of a side than these is found by pairs of them
    pair_bounds: Counts  #: where the pairs of each cell begin; shape (n_cells + 1,)
    groups: (
        Integers  #: the group of each pair of clusters, -1 for one that no other cell has; shape (n_pairs,)
    )
    group_bounds: Counts  #: where each group begins; shape (n_groups + 1,)
    members: Integers  #: the rows of the cells of each group
    wide: (
        bool  #: whether a cell is in more clusters of a side than `narrow`; what follows is empty without one
    )
    bounds: Counts  #: where the cells of each cluster begin that are in others of its side, too
    ends: Counts  #: where those of them end that are in more than `narrow`, which come first
    several: Integers  #: these cells


def row_type(rows: CellRows) -> type[np.integer]:
    """Return a type that holds where any row begins."""
    return np.int32 if rows.codes.size < 2**31 else np.int64


def close_mates(rows: CellRows, n_clusters: int, pool: Pool) -> CloseMates:
    """Index the cells by pairs of clusters, and where there are too many of these, by cluster."""
    n_cells = rows.starts.size
    starts, stops = zip(*blocks(n_cells), strict=True)
    bounds = np.zeros(n_cells + 1, np.int64)
    wide = any(
        pool.map(
            lambda a, b: kernels.close_mates.count_pairs(a, b, rows, NARROW, bounds[1:]),
            starts, stops, stage="count pairs of clusters",
        )
    )  # fmt: skip
    np.cumsum(bounds, out=bounds)
    keys = buffers.empty(int(bounds[-1]), np.int64)
    pool.map(
        lambda a, b: kernels.close_mates.list_pairs(a, b, rows, NARROW, n_clusters, bounds, keys),
        starts, stops, stage="list pairs of clusters",
    )  # fmt: skip
    groups, sizes = _groups(keys, pool)
    group_bounds = np.concatenate([[0], np.cumsum(sizes)])
    members = buffers.empty(int(group_bounds[-1]), row_type(rows))
    kernels.close_mates.fill_groups(rows.starts, bounds, groups, group_bounds[:-1].copy(), members)
    return CloseMates(
        NARROW, bounds, groups, group_bounds, members, wide, *_by_cluster(rows, n_clusters * wide)
    )


def _groups(keys: Counts, pool: Pool) -> tuple[Integers, Counts]:
    """Return the group of each key, -1 for one that occurs once, and the sizes of the groups."""
    groups = buffers.empty(keys.size, np.int32 if keys.size < 2**31 else np.int64)
    groups.fill(-1)
    bits = part_bits(keys.size)
    mixed, rows, bounds = scatter_keys(keys, bits, pool)
    assert rows is not None
    largest = int(np.diff(bounds).max())

    def room() -> tuple[Integers, Integers]:
        return np.empty(table_slots(largest), np.int32), np.empty((largest, 2), np.int32)

    def find(start: int, stop: int) -> tuple[int, int]:
        with pool.workspace("repeats", room, lambda space: len(space[1]) >= largest) as space:
            return kernels.close_mates.find_repeats(mixed, rows, bounds, start, stop, *space)

    cuts = part_blocks(1 << bits)
    counts = pool.map(find, *zip(*cuts, strict=True), stage="group pairs of clusters")
    *bases, n_groups = accumulate((n for _, n in counts), initial=0)
    sizes = np.zeros(n_groups, np.int64)

    def number(cut: tuple[int, int], n: int, base: int) -> None:
        some = slice(bounds[cut[0]], bounds[cut[0]] + n)
        kernels.close_mates.number_repeats(mixed[some], rows[some], base, groups, sizes)

    pool.map(number, cuts, (n for n, _ in counts), bases, stage="number pairs of clusters")
    return groups, sizes


def _by_cluster(rows: CellRows, n_clusters: int) -> tuple[Counts, Counts, Integers]:
    """Return the cells of each cluster that are in others of its side; nothing for no clusters."""
    if not n_clusters:
        return np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, row_type(rows))
    bounds, wide = np.zeros(n_clusters + 1, np.int64), np.zeros(n_clusters, np.int64)
    kernels.close_mates.count_several(rows, NARROW, wide, bounds[1:])
    np.cumsum(bounds, out=bounds)
    several = buffers.empty(int(bounds[-1]), row_type(rows))
    ends = bounds[:-1] + wide
    kernels.close_mates.fill_several(rows, NARROW, bounds[:-1].copy(), ends.copy(), several)
    return bounds, ends, several
