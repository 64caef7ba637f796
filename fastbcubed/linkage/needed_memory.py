"""How much memory the steps of a sweep take beside what is held when they begin: a little more than was measured."""

from __future__ import annotations

from collections.abc import Collection

from fastbcubed.linkage.tree_rows import TreeRows

#: Bytes of a link while links are sorted, those of what is sorted among them.
TO_SORT = 32
#: Bytes of a row of the truth that is read from a file: item, cluster and their keys.
TO_READ = 32
#: Bytes of an item of either side while they are put side by side, and of a row while it gets its place in the tree.
TO_ALIGN, TO_PLACE = 36, 64
#: Bytes of a row while the clusters at the best threshold are evaluated.
TO_EVALUATE = 48
#: Bytes of a row that sums of all families hold: what is cached of true clusters, and what waits to be used again.
OF_ALL = 24
#: Bytes of a level that the sums of a family hold, and those of them that sums over meetings hold.
OF_LEVELS = {"clusters": (12, 0), "bcubed": (16, 8), "elm": (16, 8), "pairs": (32, 8), "entropy": (24, 8)}


def to_join(n_links: int, n_items: int) -> int:
    """Return what links that are held take further until they are a merge tree."""
    index = 4 if max(n_links, n_items) < 2**31 - 1 else 8
    sorting = n_links * (8 + 2 * index)
    laying_out = n_items * (8 + 13 * index) - n_links * 2 * index
    return max(sorting, n_items * (8 + 7 * index), laying_out)


def to_add_up(rows: TreeRows, families: Collection[str]) -> int:
    """Return what the sums of families take, and then the evaluation at the best threshold."""
    weighted, n = rows.weights is not None, len(rows)
    meetings = held = 0
    for family in families:
        by_level, by_meeting = OF_LEVELS[family]
        held, meetings = held + by_level * rows.n_levels, meetings + by_meeting * rows.n_levels
    of_meeting = 8 + 16 * weighted + 16 * ("entropy" in families)
    a_group, a_meeting, a_cluster, _ = (each.itemsize for each in rows.records)
    finding = n * (of_meeting + rows.levels.itemsize + a_group + a_meeting) + meetings + 16 * rows.n_levels
    return max(finding, n * (of_meeting + a_cluster + OF_ALL) + held, n * (OF_ALL + TO_EVALUATE) + held)
