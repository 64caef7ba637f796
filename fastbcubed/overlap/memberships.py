"""The clusters of each item, where items may be in several, in compressed-row format."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes


@dataclass(frozen=True, eq=False)
class Memberships:
    """The clusters of each item, in compressed-row format.

    Items and clusters are numbered from 0. The clusters of item `e` are ``codes[offsets[e]:offsets[e + 1]]``, ascending
    and distinct. A cluster that occurs twice has two codes.
    """

    offsets: NDArray[np.int64]  #: where each item's clusters begin; shape (n_items + 1,)
    codes: Codes  #: the cluster of each membership; shape (n_memberships,)
    n_clusters: int  #: number of clusters, including those without items

    @classmethod
    def from_rows(
        cls, items: NDArray[np.int64], clusters: NDArray[np.int64], n_items: int, n_clusters: int
    ) -> Memberships:
        """Create memberships from one (item, cluster) pair per row, in any order.

        Rows with negative items are dropped; repeated pairs are kept (see `without_repeats`). Shapes: `items`,
        `clusters` (n_rows,).
        """
        offsets = np.zeros(n_items + 1, np.int64)
        kernels.memberships.count_codes(items, offsets[1:])
        np.cumsum(offsets, out=offsets)
        codes = np.empty(offsets[-1], np.int32 if n_clusters < 2**31 else np.int64)
        kernels.memberships.fill_rows(items, clusters, offsets[:-1].copy(), codes)
        kernels.memberships.sort_rows(offsets, codes)
        return cls(offsets, codes, n_clusters)

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
        """Number of clusters per item. Shape (n_items,)."""
        return np.diff(self.offsets)

    @property
    def overlaps(self) -> bool:
        """Whether an item is in more than one cluster."""
        return bool((self.counts > 1).any())

    def rows(self) -> NDArray[np.int64]:
        """Return the item of each membership. Shape (n_memberships,)."""
        return np.repeat(np.arange(len(self)), self.counts)

    def take(self, items: ArrayLike, pool: Pool | None = None) -> Memberships:
        """Return the memberships of the given items, in this order."""
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
        """Return the memberships with each pair once; self if no pair is repeated."""
        keep = np.empty(self.codes.size, np.bool_)
        offsets = np.zeros_like(self.offsets)
        kernels.memberships.mark_repeats(self.offsets, self.codes, keep, offsets[1:])
        if keep.all():
            return self
        return Memberships(np.cumsum(offsets), self.codes[keep], self.n_clusters)
