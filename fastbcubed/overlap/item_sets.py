"""Rows of memberships → the set of clusters of each item; rows are gathered in parts that fit the cache."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.runtime import buffers
from fastbcubed.runtime.grouping import Numbered, number
from fastbcubed.runtime.joining import scatter_keys
from fastbcubed.runtime.parts import PART_ROWS, part_bits, part_blocks, slots_for
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.sources.arrays import read_only

Codes = NDArray[np.int64]
Integers = NDArray[np.integer]

#: Hash seeds that are tried before giving up; a second one is needed about never.
ATTEMPTS = 8


class ItemSets(NamedTuple):
    """The items of one side, in the order of their first rows, and the set of clusters of each."""

    firsts: Codes  #: the first row of each item; shape (n_items,)
    #: equal codes, equal sets; -1 for an item in no cluster. An item in one cluster has its code; shape (n_items,)
    codes: Codes
    #: the clusters of each set, by code: first every cluster alone, then the larger sets
    sets: Memberships
    n_repeated: int  #: rows that repeat an earlier one, its item and its cluster
    n_reweighted: int  #: rows with another weight than the first one of their item


class Signatures(NamedTuple):
    """Items by the set of clusters that they are in."""

    codes: Codes  #: as those of `ItemSets`; shape (n_items,)
    sets: Memberships  #: likewise


class Rows(NamedTuple):
    """Rows of memberships in parts, such that all rows of an item are in one."""

    keys: Codes  #: keys of items, or these keys mixed; shape (n_rows,), as of all but the bounds
    rows: Integers | None  #: the row of each, which ascend in a part; None where rows stand in their order
    codes: Integers  #: the cluster of each row, -1 for none
    bounds: Codes  #: where each part begins; shape (n_parts + 1,)


def item_sets(
    keys: Codes | None, clusters: Codes, n_clusters: int, weight: NDArray[np.float64] | None, pool: Pool
) -> ItemSets:
    """Gather the clusters of each item. Shapes: `keys`, `clusters`, `weight` (n_rows,).

    Without keys each row is an item. A row whose cluster is negative says that the item is there, and no more.
    """
    if keys is None or not keys.size:
        return ItemSets(np.arange(clusters.size), clusters, _with_large(n_clusters), 0, 0)
    wide = np.int32 if max(keys.size, n_clusters) < 2**31 - 2 else np.int64
    parts = _in_parts(keys, clusters, wide, pool)
    marks = buffers.empty(keys.size, wide)
    n_repeated, n_reweighted = _gather(parts, weight, marks, pool)
    codes = parts.codes
    del parts
    firsts, found, several, starts = _listed(marks, pool)
    del marks
    numbered = _numbered(codes, starts, pool)
    found[several] = n_clusters + numbered.codes
    sets = _with_large(n_clusters, codes, starts[numbered.firsts])
    return ItemSets(firsts, found, sets, n_repeated, n_reweighted)


def signatures(members: Memberships, pool: Pool) -> Signatures:
    """Give numbers to items by the set of clusters that they are in. Cost is linear in the memberships.

    Examples
    --------
    >>> tags = Memberships.from_sets([{1}, {0, 1}, {0}, {0, 1}])
    >>> signatures(tags, Pool(1)).codes.tolist()
    [1, 2, 0, 2]
    """
    begins, n_clusters = members.offsets[:-1], members.n_clusters
    alone, several = np.flatnonzero(members.counts == 1), np.flatnonzero(members.counts > 1)
    found = np.full(len(members), -1)
    found[alone] = members.codes[begins[alone]]
    codes, ends = members.codes.copy(), members.offsets[several + 1] - 1
    codes[ends] = -1 - codes[ends]
    numbered = _numbered(codes, begins[several], pool)
    found[several] = n_clusters + numbered.codes
    return Signatures(found, _with_large(n_clusters, codes, begins[several[numbered.firsts]]))


def _in_parts(keys: Codes, clusters: Codes, wide: type[np.integer], pool: Pool) -> Rows:
    """Bring the rows of each item into one part; those whose items ascend are there already."""
    codes = buffers.empty(keys.size, wide)
    if not any(kernels.memberships.find_unsorted(keys, a, b) for a, b in blocks(keys.size)):
        codes[:] = clusters
        near = np.arange(PART_ROWS, keys.size, PART_ROWS)
        cuts = np.unique(np.searchsorted(keys, keys[near]))  # the first row of an item
        return Rows(read_only(keys), None, codes, np.concatenate([[0], cuts[cuts > 0], [keys.size]]))
    bits = part_bits(keys.size, PART_ROWS)
    mixed, rows, bounds = scatter_keys(keys, bits, pool, (clusters, codes), wide)
    return Rows(read_only(mixed), rows, codes, bounds)


def _gather(parts: Rows, weight: NDArray[np.float64] | None, marks: Integers, pool: Pool) -> tuple[int, int]:
    """Mark the first row of each item; return repeated and reweighted rows. See `gather_parts`."""
    marks.fill(kernels.item_sets.REPEATED)
    weight = None if weight is None else read_only(weight)
    largest, wide = int(np.diff(parts.bounds).max()), marks.dtype

    def gather(first: int, last: int) -> tuple[int, int]:
        with pool.workspace(
            ("gather", wide.str),
            lambda: (slots_for(largest, wide), *(np.empty(largest + 1, wide) for _ in range(4))),
            lambda space: space[1].size > largest,
        ) as space:
            return kernels.item_sets.gather_parts(*parts, first, last, weight, space, marks)

    cuts = zip(*part_blocks(parts.bounds.size - 1), strict=True)
    counts = pool.map(gather, *cuts, stage="gather items")
    repeated, reweighted = (sum(each) for each in zip(*counts, strict=True))
    return repeated, reweighted


def _listed(marks: Integers, pool: Pool) -> tuple[Codes, Codes, Codes, Codes]:
    """Return the first row of each item and the code of its cluster; which are in several, and where these are."""
    starts, stops = zip(*blocks(marks.size), strict=True)
    counts = pool.map(
        lambda a, b: kernels.item_sets.count_marks(marks, a, b), starts, stops, stage="count items"
    )
    *bases, (n_items, n_several) = accumulate(counts, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(0, 0))
    listed = tuple(buffers.empty(int(n), np.int64) for n in (n_items, n_items, n_several, n_several))
    pool.map(
        lambda a, b, base: kernels.item_sets.list_items(marks, a, b, *base, *listed),
        starts, stops, bases, stage="list items",
    )  # fmt: skip
    return listed  # type: ignore[return-value]


def _numbered(codes: Integers, starts: Codes, pool: Pool) -> Numbered:
    """Give numbers to sets of several clusters, which are told apart by a 64-bit hash, and then compared.

    The codes of a set begin at its start and end with a negative one: the last, -1 - code.
    """
    keys, cuts = buffers.empty(starts.size, np.int64), list(zip(*blocks(starts.size), strict=True))
    for seed in range(ATTEMPTS):
        pool.map(
            lambda a, b, seed=seed: kernels.item_sets.hash_sets(codes, starts, a, b, seed, keys),
            *cuts, stage="hash sets of clusters",
        )  # fmt: skip
        numbered = number(keys, pool)
        unequal = pool.map(
            lambda a, b, numbers=numbered.codes, firsts=numbered.firsts: kernels.item_sets.is_unequal(
                codes, starts, firsts, numbers, a, b
            ),
            *cuts, stage="compare sets of clusters",
        )  # fmt: skip
        if not any(unequal):
            break
    return numbered


def _with_large(n_clusters: int, codes: Integers | None = None, starts: Codes | None = None) -> Memberships:
    """Return the sets of one cluster, and after them the larger ones, whose codes begin at `starts`."""
    wide: type[np.int32] | type[np.int64] = np.int32 if n_clusters < 2**31 else np.int64
    alone: NDArray[Any] = np.arange(n_clusters, dtype=wide)
    if codes is None or starts is None:
        return Memberships(np.arange(n_clusters + 1), alone, n_clusters)
    offsets = buffers.empty(n_clusters + 1 + starts.size, np.int64)
    offsets[: n_clusters + 1] = np.arange(n_clusters + 1)
    counts = offsets[n_clusters + 1 :]
    kernels.item_sets.count_sets(codes, starts, counts)
    np.cumsum(counts, out=counts)
    counts += n_clusters
    members = buffers.empty(int(offsets[-1]), wide)
    members[:n_clusters] = alone
    kernels.item_sets.take_sets(codes, starts, offsets[n_clusters:], members)
    return Memberships(offsets, members, n_clusters)
