"""Memberships: which clusters each item is in, for clusterings whose clusters overlap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.pool import Pool, blocks

if TYPE_CHECKING:
    from fastbcubed.runtime.grouping import Numbered


#: Codes of clusters, in 32 bits where they fit.
Codes = NDArray[np.int32] | NDArray[np.int64]
#: Hash seeds that are tried before giving up; a second one is needed about never.
ATTEMPTS = 8
#: Threads that look at all rows at the same time, each for a range of items, and how many items make that pay.
MOST_RANGES = 4
SMALL = 1 << 14


def ranges(n: int, pool: Pool | None) -> tuple[list[int], list[int]]:
    """Cut `range(n)` into a few parts, one a thread: where they begin and end."""
    parts = min(MOST_RANGES, pool.threads if pool is not None and n >= SMALL else 1)
    cuts = [n * k // parts for k in range(parts + 1)]
    return cuts[:-1], cuts[1:]


class Signatures(NamedTuple):
    """Items by the set of clusters that they are in."""

    #: equal codes, equal sets; -1 for an item in no cluster. An item in one cluster has its code; shape
    #: (n_items,)
    codes: NDArray[np.int64]
    #: the clusters of each signature, by code: first every cluster alone, then the larger sets
    sets: Memberships


@dataclass(frozen=True, eq=False)
class Memberships:
    """Which clusters each item is in, as compressed rows.

    Items and clusters are numbered from 0. The clusters of item `e` are
    ``codes[offsets[e]:offsets[e + 1]]``, ascending and each once. Turned round by `by_cluster`, items and
    clusters change places. A clustering that has the same cluster twice has two codes for it.

    Examples
    --------
    >>> tags = Memberships.from_sets([{0, 2}, {1}, {2, 1}])
    >>> tags.of(0).tolist(), tags.sizes.tolist(), tags.by_cluster().of(1).tolist()
    ([0, 2], [1, 2, 2], [1, 2])
    """

    offsets: NDArray[np.int64]  #: where the clusters of each item begin; shape (n_items + 1,)
    codes: Codes  #: cluster of each membership; shape (n_memberships,)
    n_clusters: int  #: clusters, with or without items

    @classmethod
    def from_rows(
        cls,
        items: NDArray[np.int64],
        clusters: NDArray[np.int64],
        n_items: int,
        n_clusters: int,
        pool: Pool | None = None,
    ) -> Memberships:
        """Make memberships of one (item, cluster) pair per row, in any order.

        A row whose item is negative is left out. A duplicate pair stays in; see `without_repeats`. With a pool, each
        thread looks at all rows and takes those of a range of items. Shapes: `items`, `clusters` (n_rows,).
        """
        offsets = np.zeros(n_items + 1, np.int64)
        lows, highs = ranges(n_items, pool)
        tasks = pool or Pool(1)
        tasks.map(
            lambda low, high: kernels.memberships.count_in_range(items, low, high, offsets[1:]),
            lows, highs, stage="count memberships",
        )  # fmt: skip
        np.cumsum(offsets, out=offsets)
        codes = np.empty(offsets[-1], np.int32 if n_clusters < 2**31 else np.int64)
        places = offsets[:-1].copy()
        tasks.map(
            lambda low, high: kernels.memberships.fill_rows(items, clusters, low, high, places, codes),
            lows, highs, stage="group memberships",
        )  # fmt: skip
        kernels.memberships.sort_rows(offsets, codes)
        return cls(offsets, codes, n_clusters)

    @classmethod
    def from_sets(cls, sets: Iterable[Iterable[int]], n_clusters: int | None = None) -> Memberships:
        """Make memberships of the cluster codes of each item in turn."""
        listed = [sorted(set(each)) for each in sets]
        clusters = np.array([code for each in listed for code in each], np.int64)
        items = np.repeat(np.arange(len(listed)), [len(each) for each in listed])
        if n_clusters is None:
            n_clusters = int(clusters.max(initial=-1)) + 1
        return cls.from_rows(items, clusters, len(listed), n_clusters)

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __repr__(self) -> str:
        return (
            f"Memberships({len(self):,} items, {self.n_clusters:,} clusters, {self.codes.size:,} memberships)"
        )

    def of(self, item: int) -> Codes:
        """Return the clusters of one item."""
        return self.codes[self.offsets[item] : self.offsets[item + 1]]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """How many clusters each item is in. Shape (n_items,)."""
        return np.diff(self.offsets)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many items each cluster has. Shape (n_clusters,)."""
        sizes = np.zeros(self.n_clusters, np.int64)
        kernels.memberships.count_codes(self.codes, sizes)
        return sizes

    @property
    def overlaps(self) -> bool:
        """Whether an item is in more than one cluster."""
        return bool((self.counts > 1).any())

    def rows(self) -> NDArray[np.int64]:
        """Return the item of each membership. Shape (n_memberships,)."""
        return np.repeat(np.arange(len(self)), self.counts)

    def by_cluster(self) -> Memberships:
        """Return the items of each cluster, ascending: the memberships turned round."""
        offsets = np.zeros(self.n_clusters + 1, np.int64)
        np.cumsum(self.sizes, out=offsets[1:])
        items = buffers.empty(self.codes.size, np.int32 if len(self) < 2**31 else np.int64)
        kernels.memberships.turn_rows(self.offsets, self.codes, offsets[:-1].copy(), items)
        return Memberships(offsets, items, len(self))

    def take(self, items: ArrayLike, pool: Pool | None = None) -> Memberships:
        """Return the memberships of some items, in the order given."""
        rows = np.ascontiguousarray(items, np.int64)
        tasks, cuts = pool or Pool(1), list(zip(*blocks(rows.size), strict=True))
        offsets = buffers.empty(rows.size + 1, np.int64)
        offsets[0] = 0
        tasks.map(
            lambda a, b: kernels.memberships.count_taken(self.offsets, rows, a, b, offsets[1:]),
            *cuts, stage="count clusters",
        )  # fmt: skip
        np.cumsum(offsets, out=offsets)
        codes = buffers.empty(int(offsets[-1]), self.codes.dtype)
        tasks.map(
            lambda a, b: kernels.memberships.take_codes(self.offsets, self.codes, rows, a, b, offsets, codes),
            *cuts, stage="list clusters",
        )  # fmt: skip
        return Memberships(offsets, codes, self.n_clusters)

    def without_repeats(self) -> Memberships:
        """Return the memberships with each pair once; themselves if none is a duplicate."""
        keep = np.empty(self.codes.size, np.bool_)
        offsets = np.zeros_like(self.offsets)
        kernels.memberships.mark_repeats(self.offsets, self.codes, keep, offsets[1:])
        if keep.all():
            return self
        return Memberships(np.cumsum(offsets), self.codes[keep], self.n_clusters)

    def signatures(self, pool: Pool) -> Signatures:
        """Give numbers to the items by the set of clusters that they are in.

        Notes
        -----
        Sets are told apart by a 64-bit hash, and then compared. Cost is linear in the memberships.

        Examples
        --------
        >>> tags = Memberships.from_sets([{1}, {0, 1}, {0}, {0, 1}])
        >>> tags.signatures(Pool(1)).codes.tolist()
        [1, 2, 0, 2]
        """
        codes = np.empty(len(self), np.int64)
        several = np.flatnonzero(self.counts > 1)
        kernels.memberships.take_single(self.offsets, self.codes, codes)
        numbered = self._number(several, pool)
        codes[several] = self.n_clusters + numbered.codes
        large = self.take(several[numbered.firsts])
        alone = np.arange(self.n_clusters, dtype=self.codes.dtype)
        offsets = np.concatenate([np.arange(self.n_clusters), self.n_clusters + large.offsets])
        return Signatures(codes, Memberships(offsets, np.concatenate([alone, large.codes]), self.n_clusters))

    def _number(self, items: NDArray[np.int64], pool: Pool) -> Numbered:
        from fastbcubed.runtime.grouping import number

        keys = np.empty(items.size, np.int64)
        for seed in range(ATTEMPTS):
            kernels.memberships.hash_rows(self.offsets, self.codes, items, seed, keys)
            numbered = number(keys, pool)
            firsts = items[numbered.firsts][numbered.codes]
            if kernels.memberships.find_unequal(self.offsets, self.codes, items, firsts) < 0:
                break
        return numbered
