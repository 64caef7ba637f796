"""Shards of items → covers, whose margins count mates in all shards: overlapping clusterings on the disk engine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.item_join import kept_of
from fastbcubed.align.policies import Policies
from fastbcubed.align.row_blocks import AlignedSets, GatheredSide
from fastbcubed.cells.contingency import SIDES, ScoredRows
from fastbcubed.cells.shards import SizeCounts
from fastbcubed.errors import EmptyInputError, TooMuchWorkError, arg
from fastbcubed.inputs.layouts import Memberships
from fastbcubed.inputs.pipes import Stash
from fastbcubed.overlap.cover import Cover, group_items
from fastbcubed.overlap.mates import (
    MEMBERSHIP_BYTES,
    Extent,
    FoundShares,
    NamedCells,
    SubsetSums,
    WideCells,
    n_pairs,
    name_clusters,
)
from fastbcubed.runtime.codes import take
from fastbcubed.runtime.spill import Spill, Spool
from fastbcubed.runtime.threads import Pool

CELL = np.dtype([("n", "i8"), ("weight", "f8"), ("n_true", "i4"), ("n_pred", "i4")])
NAME = np.dtype([("first", "i8"), ("second", "i8")])
#: The cell in which an item is scored, -1 if it is not, and its weight.
ROW = np.dtype([("cell", "i8"), ("weight", "f8")])
#: Cells of more clusters on both sides together are wide; the threshold rises if there are too many of these.
NARROW, MOST_NARROW = 8, 16
#: The part of the limit for wide cells (1 / n).
WIDE_SHARE = 6
#: Bytes of a pair of clusters of a wide cell while it is listed and receives its sums.
PAIR_BYTES = 80
#: Sets of clusters handled by a task: as many as bytes in this share of the limit (1 / n), within these bounds.
SHARE, LEAST_AT_ONCE, MOST_AT_ONCE = 1 << 9, 1 << 16, 1 << 20


@dataclass(frozen=True)
class How:
    """Options of covers: how weights count, the policies, and whether items are needed again."""

    weighted: bool
    weighting: str
    policies: Policies
    asks_rows: bool
    max_pairs: float

    @property
    def outside(self) -> bool:
        """Whether prediction-only items are false positives for the items they are clustered with."""
        return self.policies.prediction == "outside"

    @property
    def mates_weigh(self) -> bool:
        """Whether mates count by weight."""
        return self.weighted and self.weighting != "outer"


class CoverRows(NamedTuple):
    """The items of a shard for slices: the cell of each, and its columns."""

    found: np.ndarray  #: records like ROW; shape (n_rows,)
    columns: pa.Table


class _Sizes(NamedTuple):
    """The counts of a shard."""

    cells: int
    scored: int  #: scored cells
    rows: int


class CoverShards:
    """Takes aligned items shard by shard, and yields covers of them that count mates in all shards."""

    def __init__(self, how: How, limit: int, spill: Spill) -> None:
        self._how, self._limit, self._spill = how, limit, spill
        self._cells, self._names, self._rows = (
            Spool(kind, 1, spill, kept_of(limit) // 3) for kind in (CELL, NAME, ROW)
        )
        self._columns = Stash(spill)
        self._lock = threading.Lock()
        self._shards: dict[int, _Sizes] = {}
        #: number of cells by number of clusters on both sides, and of pairs of these with a cluster of either side
        self._widths, self._pairs = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._most_pairs = 0  #: pairs of one cell
        self._narrow = 0
        self.n_items = 0  #: scored items
        self.sizes = {"true": SizeCounts(), "pred": SizeCounts()}  #: sizes of the yielded clusters
        self.n_exact = {"true": 0, "pred": 0}  #: number of these that equal one of the other side

    def take(self, items: AlignedSets) -> None:
        """Take the items of a shard."""
        alone = Pool(1)
        true, pred = (
            take(side.side.labels, rows, alone)
            for side, rows in zip(items.sides, items.both.rows, strict=True)
        )
        sets = items.sides[0].sets, items.sides[1].sets
        grouped, made = group_items(sets, (true, pred), self._how.policies, alone)
        n, weight = grouped.n, grouped.mass(items.both.weight)
        true_names = _names(items.sides[0], "true", items.keys[made[0]], grouped.true_clusters)
        pred_names = _names(items.sides[1], "pred", items.keys[made[1]], grouped.pred_clusters)
        names = true_names[grouped.truth.codes], pred_names[grouped.prediction.codes]
        own = np.empty(n.size, CELL)
        own["n"], own["weight"] = n, n if weight is None else weight
        own["n_true"], own["n_pred"] = grouped.truth.counts, grouped.prediction.counts
        _store(self._cells, items.index, own)
        _store(self._names, items.index, np.concatenate(names).view(NAME)[:, 0])
        if self._how.asks_rows:
            self._put_rows(items, grouped.scored)
        self._count(items.index, own, _Sizes(n.size, grouped.n_scored, grouped.cell.size))

    def _put_rows(self, items: AlignedSets, scored: NDArray[np.int64]) -> None:
        """Store the items of a shard whose cells these are."""
        rows = np.empty(scored.size, ROW)
        rows["cell"], rows["weight"] = scored, 1.0 if items.both.weight is None else items.both.weight
        _store(self._rows, items.index, rows)
        if items.columns is not None:
            self._columns.put(items.index, items.columns)

    def _count(self, index: int, cells: np.ndarray, sizes: _Sizes) -> None:
        """Record the counts of a shard."""
        true, pred = cells["n_true"].astype(np.int64), cells["n_pred"].astype(np.int64)
        pairs = n_pairs(true, pred)
        with self._lock:
            self._shards[index] = sizes
            self.n_items += int(cells["n"][: sizes.scored].sum())
            self._widths = _added(self._widths, np.bincount(true + pred))
            self._pairs = _added(self._pairs, np.bincount(true + pred, pairs).astype(np.int64))
            self._most_pairs = max(self._most_pairs, int(pairs.max(initial=0)))

    def covers(self, pool: Pool) -> Iterator[tuple[Cover | None, CoverRows | None]]:
        """Yield a cover of each shard, None if none of its items is scored, and its items if requested."""
        if not self.n_items:
            raise EmptyInputError("there is no item to score: no item is on both sides")
        shards = sorted(self._shards)
        extent = self._measured()
        sums = SubsetSums(extent, subsets_at_once(self._limit), kept_of(self._limit), self._spill)
        wide = None
        if extent.wide:
            wide = WideCells(self._read, shards, pool, apart=extent.apart)
            self._refuse_too_much(
                wide.count_visits(pool), "pairs of cells with common clusters would have to be compared"
            )
            wide.meet(pool)
        pool.map(lambda shard: sums.put(shard, self._read(shard)), shards, stage="list shared clusters")
        sums.add_up(pool)

        def cover(rank: int, shard: int) -> tuple[Cover | None, FoundShares, CoverRows | None]:
            cells = self._read(shard)
            found = sums.take(shard, cells)
            if wide is not None:
                wide.share(shard, cells, found)
            rows = self._rows_of(rank, shard) if self._how.asks_rows else None
            return self._cover(shard, found, rows, extent.apart), found, rows

        for made, found, rows in pool.stream(cover, list(enumerate(shards)), stage="score cells"):
            for k, side in enumerate(SIDES):
                self.sizes[side].add(found.sizes[k, : found.n_clusters[k]])
                self.n_exact[side] += int(found.n_exact[k])
            yield made, rows

    def _cover(self, shard: int, found: FoundShares, rows: CoverRows | None, apart: bool) -> Cover | None:
        """Return the scored cells of a shard, with the shares of their items with mates in all shards."""
        n_scored = self._shards[shard].scored
        if not n_scored:
            return None
        how, cells = self._how, self._cells.read_batch(shard)[:n_scored]
        bounds = (np.append(0, np.cumsum(cells[field], dtype=np.int64)) for field in ("n_true", "n_pred"))
        truth, prediction = (  # covers do not know the cluster names used here
            Memberships(each, np.arange(each[-1]), int(each[-1])) for each in bounds
        )
        scored = None
        if rows is not None:
            weight = np.ascontiguousarray(rows.found["weight"]) if how.weighted else None
            scored = ScoredRows.of(np.ascontiguousarray(rows.found["cell"]), weight)
        return Cover(
            truth, prediction, np.ascontiguousarray(cells["n"]),
            np.ascontiguousarray(cells["weight"]) if how.weighted else None,
            n_scored=n_scored, rows=scored, weighting=how.weighting, outside=how.outside,
            shares=found.shares, alone=(found.n_alone, found.alone) if apart else None,
        )  # fmt: skip

    def _rows_of(self, rank: int, shard: int) -> CoverRows:
        """Return the items of a shard, whose columns were stored in the order of rank."""
        found = self._rows.read_batch(shard) if self._shards[shard].rows else np.empty(0, ROW)
        return CoverRows(found, self._columns.read_batch(rank) if self._columns else pa.table({}))

    def _read(self, shard: int) -> NamedCells:
        """Return the cells of a shard."""
        own = self._shards[shard]
        if not own.cells:
            return NamedCells.none()
        cells = self._cells.read_batch(shard)
        names = self._names.read_batch(shard).view(np.int64).reshape(-1, 2)
        true, pred = (np.append(0, np.cumsum(cells[field], dtype=np.int64)) for field in ("n_true", "n_pred"))
        weight = np.ascontiguousarray(cells["weight"]) if self._how.mates_weigh else np.empty(0)
        n = np.ascontiguousarray(cells["n"])
        return NamedCells(
            true, names[: true[-1]], pred, names[true[-1] :], n, weight, own.scored, self._narrow
        )

    def _measured(self) -> Extent:
        """Choose which cells are wide, and return the amount to be summed."""
        widths = np.arange(self._widths.size)
        memberships = np.cumsum((widths * self._widths)[::-1])[::-1]  # cells this wide or wider
        for self._narrow in range(NARROW, MOST_NARROW + 1):
            if not memberships[self._narrow + 1 :].any():
                break
            if memberships[self._narrow + 1] * MEMBERSHIP_BYTES <= self._limit // WIDE_SHARE:
                break
        else:
            enough = (MEMBERSHIP_BYTES * int(memberships[NARROW + 1]) * WIDE_SHARE >> 20) + 1
            raise TooMuchWorkError(
                f"{int(self._widths[MOST_NARROW + 1 :].sum()):,} sets of clusters that items are in have more than "
                f"{MOST_NARROW}, of both sides together, and take more memory than the limit has room for. Raise "
                f"memory_limit to {enough} MiB, leave these items out, or pass {arg('engine', 'memory')}"
            )
        self._refuse_wide()
        narrow = self._widths[: self._narrow + 1]
        n_subsets = sum(int(n) * ((1 << k) - 1) for k, n in enumerate(narrow))
        n_subsets += int(self._pairs[self._narrow + 1 :].sum())
        self._refuse_too_much(n_subsets, "sets of clusters that items share would have to be counted")
        widest, wide = narrow.size - 1, self._widths.size > narrow.size
        alone = any(own.scored < own.cells for own in self._shards.values())
        return Extent(
            n_subsets, widest, max((1 << widest) - 1, self._most_pairs if wide else 0), self._how.mates_weigh,
            alone, alone and not self._how.outside, wide,
        )  # fmt: skip

    def _refuse_wide(self) -> None:
        """Raise if the pairs of one cell's true and predicted clusters exceed the memory limit."""
        least = (PAIR_BYTES * self._most_pairs * WIDE_SHARE >> 20) + 1
        if self._widths.size > self._narrow + 1 and least > self._limit >> 20:
            raise TooMuchWorkError(
                f"an item is in so many clusters that there are {self._most_pairs:,} pairs of a true and a predicted "
                f"one, for which the limit has no room. Raise memory_limit to at least {least} MiB, leave such items "
                f"out, or pass {arg('engine', 'memory')}"
            )

    def _refuse_too_much(self, work: int, what: str) -> None:
        if work > self._how.max_pairs:
            raise TooMuchWorkError(
                f"{work:.2g} {what}, more than {arg('max_pairs', self._how.max_pairs)}. Leave items of many clusters "
                f"out, or pass {arg('max_pairs', 1.05 * work)} or more and wait"
            )


def _added(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Add counts, one of which may be shorter."""
    found = np.zeros(max(a.size, b.size), np.int64)
    found[: a.size] += a
    found[: b.size] += b
    return found


def subsets_at_once(limit: int) -> int:
    """Return the number of sets of clusters for each task, so that they take a small part of the limit."""
    return min(MOST_AT_ONCE, max(LEAST_AT_ONCE, limit // SHARE))


def _names(
    side: GatheredSide, kind: str, made: NDArray[np.int64], clusters: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the names of clusters by number; those after the side's own were `made` for these items."""
    keys = np.concatenate([side.cluster_keys, made])
    alone = np.concatenate([side.alone, np.ones(made.size, np.bool_)])
    return name_clusters(keys[clusters], kind, alone[clusters])


def _store(spool: Spool, index: int, records: np.ndarray) -> None:
    """Store a batch of one shard in a spool."""
    with spool.pages() as pages:
        room = pages.empty(records.size, spool.dtype)
        room[:] = records
        spool.put(index, pages, np.array([0, records.size]))
