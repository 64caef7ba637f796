"""Shards of rows and of cells on disk, and predicted clusters too large for one shard, which are spread over all.

The key of such a cluster is replaced in the rows by one of several stand-in keys, chosen by the true key. So all rows
of a cell have the same stand-in, which goes to a shard like any other key, and no cell is split.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells import partitioned
from fastbcubed.cells.contingency import OneSided
from fastbcubed.cells.dense import Condensed, PairTable
from fastbcubed.cells.partitioned import WIDE, IfAlone, Plan
from fastbcubed.errors import OptionError, arg
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_partitions import MAX_BITS, MAX_SHARD_BITS, offsets, part_bits
from fastbcubed.runtime.spill import Behind, Packed, Spill, Spool
from fastbcubed.runtime.threads import Pool, blocks

#: Number of stand-ins of a cluster per shard, so that all shards get about the same number of rows.
STAND_INS = 16


@dataclass(frozen=True)
class Spread:
    """The predicted clusters that are spread over all shards, and their stand-in keys."""

    keys: NDArray[np.int64]  #: the keys of these clusters, sorted; shape (n_heavy,)
    first: int  #: the first stand-in; the stand-ins of a cluster are consecutive
    ways: int  #: number of stand-ins of each cluster, a power of two

    @classmethod
    def of(cls, heavy: NDArray[np.int64], end: int, bits: int) -> Spread:
        """Choose stand-ins just below the key `end`, modulo 2**64, for 2**bits shards; one shard needs none."""
        keys = np.sort(heavy) if bits else heavy[:0]
        ways = STAND_INS << bits
        first = np.array([end], np.int64).view(np.uint64) - np.uint64(keys.size * ways)
        return cls(keys, int(first.view(np.int64)[0]), ways)

    def __bool__(self) -> bool:
        return self.keys.size > 0

    def is_taken(self, pred_keys: NDArray[np.int64]) -> bool:
        """Return whether a stand-in already occurs among the keys."""
        return bool(self) and bool(kernels.sums.find_run(pred_keys, self.first, self.keys.size * self.ways))

    def stand_ins(self, true_keys: NDArray[np.int64], pred_keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the predicted keys, those of spread clusters replaced by stand-ins. Shapes: (n,), (n,) -> (n,)."""
        if not self:
            return pred_keys
        at = np.minimum(np.searchsorted(self.keys, pred_keys), self.keys.size - 1)
        rows = np.flatnonzero(self.keys[at] == pred_keys)
        if not rows.size:
            return pred_keys
        way = kernels.partition.mix_all(np.ascontiguousarray(true_keys[rows])) & (self.ways - 1)
        found = pred_keys.copy()
        number = (at[rows] * self.ways + way).astype(np.uint64)
        found[rows] = (np.array([self.first], np.int64).view(np.uint64) + number).view(np.int64)
        return found

    def clusters(self, mixed: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index in `keys` of the cluster that each mixed key stands in for, or -1."""
        keys = kernels.partition.unmix_all(np.ascontiguousarray(mixed)).view(np.uint64)
        number = keys - np.array([self.first], np.int64).view(np.uint64)
        number = np.minimum(number, np.uint64(self.keys.size * self.ways)).astype(np.int64) // self.ways
        return np.where(number < self.keys.size, number, -1)


class HeavySums:
    """Sums of the spread predicted clusters over the cells of all shards."""

    def __init__(self, spread: Spread) -> None:
        self._spread = spread
        self._mass: list[NDArray[np.float64]] = []
        self._only: list[NDArray[np.float64]] = []
        self.scored, self.strangers = np.zeros((2, spread.keys.size), np.int64)

    def add(self, arrived: np.ndarray, *, outer: bool) -> None:
        """Add the cells that leave a shard of rows."""
        if not self._spread:
            return
        cluster = self._spread.clusters(arrived["pred"])
        there = np.flatnonzero(cluster >= 0)
        cells, cluster = arrived[there], cluster[there]
        own = cells["n"].astype(np.float64) if outer else cells["weight"]
        for side, counts, strange in ((self._mass, self.scored, False), (self._only, self.strangers, True)):
            code = np.where((cells["true"] < 0) == strange, cluster, -1)
            added = np.zeros((2, counts.size))
            kernels.sums.add_by_code(code, own, np.ones(code.size), None, *added)
            kernels.sums.count_by_code(code, cells["n"], counts)
            side.append(added)

    def close(self, built: partitioned.Built, *, outer: bool, outside: bool) -> partitioned.Built:
        """Add the false positives of cells of spread clusters, and record which clusters are parts of them."""
        if not self._spread:
            return built
        assert built.keys is not None
        heavy = self._spread.clusters(built.keys)
        if not (heavy >= 0).any():
            return replace(built, heavy=heavy)
        base = np.repeat(built.pred_base[:-1], np.diff(built.bounds))
        cluster = np.append(heavy, -1)[np.where(built.pred_in_part < 0, -1, built.pred_in_part + base)]
        del base
        there = np.flatnonzero(cluster >= 0)
        own, cluster = built.cells[there], cluster[there]
        mass, rest = partitioned.add_heavy_sums(self._mass)
        others = (mass[cluster] - (own["n"] if outer else own["weight"])) + rest[cluster]
        if outside:
            others += partitioned.add_heavy_sums(self._only).sum(axis=0)[cluster]
        built.cells["fp"][there] = others
        return replace(built, heavy=heavy)

    def one_sided(
        self, found: Mapping[str, OneSided], heavy: NDArray[np.int64] | None
    ) -> Mapping[str, OneSided]:
        """Return the one-sided items of a shard, those of spread clusters replaced by their sums over all shards."""
        if heavy is None or not self.strangers.any():
            return found
        codes = np.flatnonzero(heavy >= 0)
        mass = partitioned.add_heavy_sums(self._only).sum(axis=0)[heavy[codes]]
        parts = [OneSided(codes, self.strangers[heavy[codes]], mass)]
        if "pred" in found:
            own = heavy[found["pred"].codes] < 0
            parts.append(OneSided(*(column[own] for column in found["pred"])))
        return {**found, "pred": OneSided(*(np.concatenate(column) for column in zip(*parts, strict=True)))}


def pred_codes(heavy: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Return the codes of a shard's clusters: those of spread clusters, and new codes starting at `first` for others.

    Examples
    --------
    >>> pred_codes(np.array([-1, 0, -1, 1, 0]), 7).tolist()
    [7, 0, 8, 1, 0]
    """
    return np.where(heavy >= 0, heavy, first + np.cumsum(heavy < 0) - 1)


#: The smallest memory limit; a smaller one would leave no room for the blocks that are read.
SMALLEST_LIMIT = 64 << 20
#: Maximum bytes per row of a shard in progress: as spilled (twice, since the next shard is read ahead), in its part
#: (twice, since the next shard is built), and as a cell that leaves (twice, since the last shard's are being written).
WORK_BYTES = 24 + 24 + 24 + 24 + 40 + 40
#: Bytes of a cell on its way to the shard of its predicted key.
ARRIVED_BYTES = 32
#: The labels of a shard may take one part in this many of the limit; several copies exist while they are written.
LABEL_SHARE = 16
#: Clusters up to this size are counted in a table, larger ones one by one.
COUNTED = 1 << 12
#: Number of parts whose clusters are counted at once.
PARTS_COUNTED = 16


@dataclass(frozen=True)
class Layout:
    """The number of shards, and the memory for shards that are not spilled."""

    bits: int  #: there are 2**bits shards by true key, and as many by predicted key
    #: bytes of rows and of cells that are kept in memory
    rows_kept: int
    cells_kept: int

    @classmethod
    def of(cls, n_rows: int, limit: int, label_bytes: int = 0) -> Layout:
        """Divide the limit: two fifths for the shards in progress, half for the shards that are kept in memory.

        If clusters are named, a shard's labels, of `label_bytes` a row, must also be a small part of the limit.
        """
        shards = -(-n_rows * WORK_BYTES // (limit * 2 // 5))
        shards = max(shards, n_rows * label_bytes // (limit // LABEL_SHARE))
        return cls(min(max(shards - 1, 0).bit_length(), MAX_SHARD_BITS), limit * 3 // 10, limit // 5)

    def spill_of_rows(self, n_rows: int, row_bytes: int) -> int:
        """Return the number of bytes of rows that are spilled."""
        return max(0, n_rows * row_bytes - self.rows_kept)

    def spill_of_cells(self, n_cells: int) -> int:
        """Return the number of bytes of cells that are spilled on their way to the shards of their predicted keys."""
        return max(0, n_cells * ARRIVED_BYTES - self.cells_kept)


def require_limit(limit: int) -> None:
    """Raise OptionError for a limit that leaves no room for the blocks that are read."""
    if limit < SMALLEST_LIMIT:
        raise OptionError(
            f"{arg('memory_limit')} is {limit:,} bytes, but the disk engine needs at least "
            f"{SMALLEST_LIMIT >> 20} MiB"
        )


@dataclass
class SizeCounts:
    """The number of clusters of each size on one side."""

    small: NDArray[np.int64] = field(default_factory=lambda: np.zeros(COUNTED, np.int64))
    large: Counter[int] = field(default_factory=Counter)

    def add(self, sizes: NDArray[np.integer]) -> None:
        """Count clusters by size, ignoring empty ones."""
        if kernels.sums.count_sizes(sizes, self.small):
            self.large.update(sizes[sizes >= COUNTED].tolist())
        self.small[0] = 0

    def merge(self, other: SizeCounts) -> None:
        """Add the counts of another instance."""
        self.small += other.small
        self.large.update(other.large)

    def histogram(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sizes that occur, ascending, and the number of clusters of each size."""
        found = {int(size): int(self.small[size]) for size in np.flatnonzero(self.small)} | self.large
        sizes = np.array(sorted(found), np.int64)
        return sizes, np.array([found[int(size)] for size in sizes], np.int64)


class RowShards:
    """The rows of all blocks, sharded by true key, or by predicted key if the true cluster is heavy.

    `n_rows` may be an estimate. The key `absent` stands for "not on this side"; it is None if there are no such rows.
    Rows of the frequent `pairs`, if given, are preaggregated before they are stored: a stored row may stand for
    several. If `weighs_pairs`, the pairs of items within such a row are weighed at that point, since their weights
    are then lost.
    """

    def __init__(
        self,
        n_rows: int,
        heavy: NDArray[np.int64],
        absent: int | None,
        *,
        weighted: bool,
        layout: Layout,
        spill: Spill,
        spread: Spread,
        pairs: PairTable | None = None,
        weighs_pairs: bool = False,
    ) -> None:
        counted = pairs is not None
        self.plan = Plan.of(n_rows, 0, heavy, absent, absent, wide=n_rows >= WIDE, counted=counted)
        self._pairs, self._absent = pairs, absent
        self._within: list[float] | None = [] if weighs_pairs and weighted else None
        self.weighted = weighted
        self.layout = layout
        self.spill = spill
        self.spread = spread
        self._heavy = partitioned.HeavyKeys.of(self.plan.heavy)
        self.n_shards = (1 << layout.bits) * (2 if self.plan.heavy.size else 1)
        self.rows = Spool(self.plan.row_type(weighted), self.n_shards, spill, layout.rows_kept)

    def put(
        self,
        index: Any,
        true_keys: NDArray[np.int64],
        pred_keys: NDArray[np.int64],
        weight: NDArray[np.float64] | None,
        *,
        placed: bool = False,
    ) -> NDArray[np.int32] | None:
        """Store a block of rows; blocks are ordered by their indexes, even if they arrive in another order.

        If `placed`, returns the place of each row among the stored rows of the block, sorted by shard.
        """
        n_each = stored_as = None
        if self._pairs is not None:
            stored_as = np.empty(true_keys.size, np.int64) if placed or self._within is not None else None
            condensed = self._pairs.condense_block(true_keys, pred_keys, weight, stored_as)
            if weight is not None and stored_as is not None:
                self._weigh_within(weight, stored_as, condensed)
            true_keys, pred_keys, weight, n_each = condensed
        n, bits = true_keys.size, self.layout.bits
        pred_keys = self.spread.stand_ins(true_keys, pred_keys)
        counts = np.zeros((1, self.n_shards), np.int64)
        others = pred_keys if self.plan.heavy.size else None
        kernels.partition.count_parts(true_keys, others, 0, n, False, MAX_BITS, bits, *self._heavy, counts[0])
        bounds, next_row = offsets(counts)
        places = np.empty(n if placed else 0, np.int32)
        if placed:
            kernels.partition.place_rows(
                true_keys, pred_keys, MAX_BITS, bits, *self._heavy, next_row[0].copy(), places
            )
        with self.rows.pages() as pages:
            rows = pages.empty(n, self.rows.dtype)
            kernels.partition.scatter_pairs(
                (true_keys, pred_keys), weight, n_each, 0, n, False, MAX_BITS, bits, *self._heavy,
                next_row[0], rows,
            )  # fmt: skip
            self.rows.put(index, pages, bounds)
        if not placed:
            return None
        return places if stored_as is None else places[stored_as]

    def _weigh_within(
        self, weight: NDArray[np.float64], stored_as: NDArray[np.int64], rows: Condensed
    ) -> None:
        """Sum weight products over the pairs of items within each stored row, if requested."""
        if self._within is not None:
            scored = (rows.true_keys != self._absent) & (rows.pred_keys != self._absent)
            self._within.append(kernels.preaggregate.weigh_pairs(weight, stored_as, scored))

    @property
    def pair_weight_within(self) -> float:
        """The sum of weight products over pairs of scored items within one stored row."""
        return math.fsum(self._within or ())

    def cells(
        self, pool: Pool, *, outer: bool, again: bool = False, keys: Packed | None = None
    ) -> CellShards:
        """Build the cells of all shards and send them to the shards of their predicted keys.

        The rows are dropped unless they are needed `again`. `keys`, if given, receives the mixed keys of the true
        clusters in order of code.
        """
        found = CellShards(self.plan, self.layout, self.spill, self.spread, outer=outer)
        if keys is not None:
            keys.append(self.plan.heavy)
        apart = list(range(1 << self.layout.bits, self.n_shards))
        if apart:
            self._heavy_cells(found, apart, pool, outer)
        n_rows = None
        for shard, plan, parts in pool.ahead(self._built(pool, with_keys=keys is not None)):
            if n_rows is None:  # the first shard, a random sample of the true clusters, gives an estimate
                n_rows = int(self.rows.sizes()[: 1 << self.layout.bits].sum())
                n_cells = n_rows * int(parts.n_cells.sum()) // plan.n_rows
                self.spill.require_free(self.layout.spill_of_cells(n_cells))
            if keys is not None and parts.keys is not None:
                keys.append(parts.keys)
            base = found.n_true + np.cumsum(parts.n_clusters) - parts.n_clusters
            found.count_items(plan, parts, pool)
            found.put(shard, plan, parts, base, None, pool)
            found.n_true += int(parts.n_clusters[: 1 << plan.bits].sum())
        found.settle()
        if not again:
            self.rows.clear()
        return found

    def _built(self, pool: Pool, *, with_keys: bool) -> Iterator[tuple[int, Plan, partitioned.Parts]]:
        """Yield each shard without heavy clusters, and its cells."""
        for shard, raw in self.rows.read_ahead(range(1 << self.layout.bits), pool, "build cells"):
            yield shard, *self._build(raw, pool, with_keys=with_keys)

    def in_parts(
        self, raw: np.ndarray, payload: np.ndarray | None, dtype: np.dtype, pool: Pool
    ) -> tuple[Plan, np.ndarray, NDArray[np.int64]]:
        """Return the plan of a shard's parts, its rows sorted by part, and where each part begins."""
        plan = replace(self.plan, n_rows=raw.size, bits=part_bits(raw.size))
        piece = (raw["true"], raw["pred"], payload, raw["n"] if "n" in (dtype.names or ()) else None)
        return plan, *partitioned.partition_rows(plan, [piece], dtype, pool, mixed=True)

    def _build(
        self, raw: np.ndarray, pool: Pool, *, with_keys: bool = False
    ) -> tuple[Plan, partitioned.Parts]:
        plan, rows, bounds = self.in_parts(raw, raw["x"] if self.weighted else None, raw.dtype, pool)
        del raw
        return plan, partitioned.build_parts(
            plan, rows, bounds, pool, weighted=self.weighted, skip=MAX_BITS, bits=self.layout.bits,
            with_keys=with_keys,
        )  # fmt: skip

    def _heavy_cells(self, found: CellShards, shards: list[int], pool: Pool, outer: bool) -> None:
        """Build the cells of the heavy clusters, which are sent on only after all of them have been summed."""
        waiting, sums = [], []
        dtype = self.plan.records["weighted cell" if self.weighted else "cell"]
        cells = Spool(dtype, self.n_shards, self.spill, self.layout.cells_kept // 2)
        counts = np.zeros(self.plan.heavy.size, np.int64)
        for shard, raw in self.rows.read_ahead(shards, pool, "build large clusters"):
            plan, parts = self._build(raw, pool)
            sums.append(partitioned.heavy_sums(plan, parts, pool, outer=outer))
            for part in range(1 << plan.bits, plan.n_parts):
                first, n = parts.bounds[part], parts.n_cells[part]
                kernels.cells.count_items(parts.cells, first, n, plan.absent_pred, counts)
            bounds = np.concatenate([[0], np.cumsum(parts.n_cells)])
            with cells.pages() as pages:
                together = pages.empty(int(bounds[-1]), dtype)
                for a, b, first in zip(bounds, bounds[1:], parts.bounds, strict=False):
                    together[a:b] = parts.cells[first : first + b - a]
                ends = np.zeros(self.n_shards + 1, np.int64)
                ends[shard + 1 :] = bounds[-1]
                cells.put(shard, pages, ends)
            waiting.append((shard, plan, parts._replace(cells=np.empty(0, dtype), bounds=bounds)))
            del together, parts
        found.n_true = self.plan.heavy.size
        if self.plan.absent_true.size:
            counts[np.searchsorted(self.plan.heavy, self.plan.absent_true[0])] = 0
        found.heavy_sizes = counts
        found.true_sizes.add(counts)
        total = partitioned.add_heavy_sums(sums) if sums else None
        read_again = cells.read_ahead(shards, pool, "send large clusters")
        for (shard, plan, parts), (_, again) in zip(waiting, read_again, strict=True):
            base = np.zeros(plan.n_parts, np.int64)
            found.put(shard, plan, parts._replace(cells=again), base, total, pool)


class CellShards:
    """Cells with their false negatives, sharded by predicted key."""

    def __init__(self, plan: Plan, layout: Layout, spill: Spill, spread: Spread, *, outer: bool) -> None:
        self.plan, self._outer = plan, outer
        self.alone = IfAlone(outer=outer)
        self.heavy_preds = HeavySums(spread)
        self._spread = bool(spread)
        self.n_true = 0
        self.true_sizes, self.pred_sizes = SizeCounts(), SizeCounts()
        self.n_exact = 0
        self.heavy_sizes = np.zeros(0, np.int64)
        self.cells = Spool(plan.records["arrived"], 1 << layout.bits, spill, layout.cells_kept)
        self._leaving = Behind(self.cells.put)

    def put(
        self,
        shard: int,
        plan: Plan,
        parts: partitioned.Parts,
        base: NDArray[np.int64],
        sums: NDArray[np.float64] | None,
        pool: Pool,
    ) -> None:
        """Store the cells of a shard of rows."""
        pages, outer = self._leaving.pages(), self._outer
        self.alone.add(plan, parts, pool)
        arrived, bounds = partitioned.send_cells(
            plan, parts, base, sums, pool, outer=outer, empty=pages.empty
        )
        self.heavy_preds.add(arrived, outer=outer)
        self._leaving.hand_over((sums is None, shard), pages, bounds)

    def settle(self) -> None:
        """Wait until all cells are stored."""
        self._leaving.settle()

    def count_items(self, plan: Plan, parts: partitioned.Parts, pool: Pool) -> None:
        """Count the true clusters of a shard by size."""

        def count(first: int, last: int) -> SizeCounts:
            sizes = np.zeros(int(parts.n_clusters[first:last].sum()), np.int64)
            at = 0
            for part in range(first, last):
                n = int(parts.n_clusters[part])
                kernels.cells.count_items(
                    parts.cells, parts.bounds[part], parts.n_cells[part], plan.absent_pred, sizes[at : at + n]
                )
                at += n
            found = SizeCounts()
            found.add(sizes)
            return found

        tasks = zip(*blocks(1 << plan.bits, PARTS_COUNTED), strict=True)
        for sizes in pool.map(count, *tasks, stage="count clusters"):
            self.true_sizes.merge(sizes)

    def close(
        self, pool: Pool, *, outer: bool, outside: bool, placed: bool = False, with_keys: bool = False
    ) -> Iterator[tuple[int, partitioned.Built, NDArray[np.int64] | None]]:
        """Add false positives to the cells, shard by shard; codes of predicted clusters begin at 0 in each shard.

        Yields the shard, its cells and, if `placed`, the position among them of each cell that arrived.
        """
        self.pred_sizes.add(self.heavy_preds.scored)
        for shard, raw in self.cells.read_ahead(range(self.cells.n_shards), pool, "close cells"):
            plan = replace(self.plan, n_rows=raw.size, bits=part_bits(raw.size))
            places = buffers.empty(raw.size, np.int64) if placed else None
            arrived, bounds = partitioned.partition_cells(plan, raw, pool, places)
            del raw
            built = partitioned.close_parts(
                plan, arrived, bounds, self.n_true, pool, outer=outer, outside=outside,
                with_keys=with_keys or self._spread,
            )  # fmt: skip
            built = self.heavy_preds.close(built, outer=outer, outside=outside)
            yield shard, self._count_closed(built, pool), places

    def _count_closed(self, built: partitioned.Built, pool: Pool) -> partitioned.Built:
        """Count the predicted clusters of a shard by size; return whether any cell is one-sided."""

        def count(first: int, last: int) -> tuple[SizeCounts, int, int]:
            base = built.pred_base[first : last + 1] - built.pred_base[first]
            sizes = np.zeros(int(base[-1]), np.int64)
            scored = exact = 0
            for k, (start, stop) in enumerate(pairwise(built.bounds[first : last + 1].tolist())):
                found = kernels.cells.count_closed(
                    built.cells, built.pred_in_part, start, stop, sizes[base[k] : base[k + 1]]
                )
                scored, exact = scored + found[0], exact + found[1]
            if built.heavy is not None:  # parts of spread clusters are not counted here
                sizes[built.heavy[built.pred_base[first] : built.pred_base[last]] >= 0] = 0
            counted = SizeCounts()
            counted.add(sizes)
            return counted, scored, exact

        tasks = zip(*blocks(built.bounds.size - 1, PARTS_COUNTED), strict=True)
        n_scored = 0
        for sizes, scored, exact in pool.map(count, *tasks, stage="count clusters"):
            self.pred_sizes.merge(sizes)
            self.n_exact += exact
            n_scored += scored
        return replace(built, has_one_sided=n_scored < built.cells.size)
