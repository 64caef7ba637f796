"""Shards of items → covers, which know their mates in all shards: overlapping clusterings on the disk engine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.item_join import kept_of
from fastbcubed.alignment.policies import Policies
from fastbcubed.alignment.row_aligner import AlignedSets, GatheredSide
from fastbcubed.cells.records import SIDES
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.cells.shards import SizeCounts
from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.errors import EmptyInputError, TooMuchWorkError
from fastbcubed.overlap.covers import Cover
from fastbcubed.overlap.overlapping import group_items
from fastbcubed.overlap.subsets import (
    MOST_CLUSTERS,
    Found,
    NamedCells,
    SubsetSums,
    n_subsets,
    name_clusters,
)
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill
from fastbcubed.runtime.spool import Spool
from fastbcubed.sources.stash import Stash

CELL = np.dtype([("n", "i8"), ("weight", "f8"), ("n_true", "i4"), ("n_pred", "i4")])
NAME = np.dtype([("first", "i8"), ("second", "i8")])
#: Where an item is scored, -1 if it is not, and what it weighs.
ROW = np.dtype([("cell", "i8"), ("weight", "f8")])
#: Sets of clusters that are handled by a task: as many as bytes of this share of the limit, between these bounds.
SHARE, LEAST_AT_ONCE, MOST_AT_ONCE = 1 << 9, 1 << 16, 1 << 20


@dataclass(frozen=True)
class How:
    """What is asked of covers: how weights count, what policies say, and whether items are needed again."""

    weighted: bool
    weighting: str
    policies: Policies
    asks_rows: bool
    max_pairs: float

    @property
    def outside(self) -> bool:
        """Whether items that only the prediction has are false positives for the items they are clustered with."""
        return self.policies.prediction == "outside"

    @property
    def mates_weigh(self) -> bool:
        """Whether mates count by weight."""
        return self.weighted and self.weighting != "outer"


class CoverRows(NamedTuple):
    """The items of a shard as slices take them: the cell of each, and the columns that go with them."""

    found: np.ndarray  #: records like ROW; shape (n_rows,)
    columns: pa.Table


class _Sizes(NamedTuple):
    """What a shard holds."""

    cells: int
    scored: int  #: cells that are scored
    rows: int


class CoverShards:
    """Takes aligned items shard by shard, and yields covers of them, whose mates may be in any shard."""

    def __init__(self, how: How, limit: int, spill: Spill) -> None:
        self._how, self._limit, self._spill = how, limit, spill
        self._cells, self._names, self._rows = (
            Spool(kind, 1, spill, kept_of(limit) // 3) for kind in (CELL, NAME, ROW)
        )
        self._columns = Stash(spill)
        self._lock = threading.Lock()
        self._shards: dict[int, _Sizes] = {}
        self._n_subsets, self._widest, self._n_wide = 0, 1, 0
        self.n_items = 0  #: scored ones
        self.sizes = {"true": SizeCounts(), "pred": SizeCounts()}  #: of clusters that were yielded
        self.n_exact = {"true": 0, "pred": 0}  #: of these, how many are the same as one of the other side

    def take(self, items: AlignedSets) -> None:
        """Take the items of a shard."""
        true, pred = (_codes(side, rows) for side, rows in zip(items.sides, items.both.rows, strict=True))
        lonely = np.flatnonzero((true < 0) & (pred >= 0)), np.flatnonzero((pred < 0) & (true >= 0))
        sets = items.sides[0].sets, items.sides[1].sets
        grouped, _ = group_items(sets, (true, pred), self._how.policies, Pool(1))
        n, weight = grouped.counts(items.both.weight)
        names = [
            _names(side, kind, items.keys[alone], clusters)
            for side, kind, alone, clusters in zip(
                items.sides, SIDES, lonely, (grouped.true_clusters, grouped.pred_clusters), strict=True
            )
        ]
        own = np.empty(n.size, CELL)
        own["n"], own["weight"] = n, n if weight is None else weight
        own["n_true"], own["n_pred"] = grouped.truth.counts, grouped.prediction.counts
        _store(self._cells, items.index, own)
        members = zip(names, (grouped.truth, grouped.prediction), strict=True)
        _store(
            self._names,
            items.index,
            np.concatenate([each[side.codes] for each, side in members]).view(NAME)[:, 0],
        )
        scored = grouped.scored
        if self._how.asks_rows:
            rows = np.empty(scored.size, ROW)
            rows["cell"], rows["weight"] = scored, 1.0 if items.both.weight is None else items.both.weight
            _store(self._rows, items.index, rows)
            if items.columns is not None:
                self._columns.put(items.index, items.columns)
        self._count(items.index, own, _Sizes(n.size, grouped.n_scored, scored.size))

    def _count(self, index: int, cells: np.ndarray, sizes: _Sizes) -> None:
        """Note what a shard holds."""
        counts = cells["n_true"] + cells["n_pred"]
        wide = counts > MOST_CLUSTERS
        with self._lock:
            self._shards[index] = sizes
            self.n_items += int(cells["n"][: sizes.scored].sum())
            self._n_wide += int(cells["n"][wide].sum())
            self._n_subsets += n_subsets(counts[~wide])
            self._widest = max(self._widest, int(counts[~wide].max(initial=1)))

    def covers(self, pool: Pool) -> Iterator[tuple[Cover | None, CoverRows | None]]:
        """Yield a cover of each shard, None if none of its items is scored, and its items if they are asked for."""
        self._refuse_too_much()
        if not self.n_items:
            raise EmptyInputError("there is no item to score: no item is on both sides")
        shards = sorted(self._shards)
        alone = any(own.scored < own.cells for own in self._shards.values())
        apart = alone and not self._how.outside
        sums = SubsetSums(
            self._n_subsets, self._widest, subsets_at_once(self._limit), kept_of(self._limit), self._spill,
            weighted=self._how.mates_weigh, alone=alone, apart=apart,
        )  # fmt: skip
        pool.map(lambda shard: sums.put(shard, self._read(shard)), shards, stage="list shared clusters")
        sums.add_up(pool)

        def cover(rank: int, shard: int) -> tuple[Cover | None, Found, CoverRows | None]:
            found = sums.take(shard, self._read(shard))
            rows = self._rows_of(rank, shard) if self._how.asks_rows else None
            return self._cover(shard, found, rows, apart), found, rows

        for made, found, rows in pool.stream(cover, list(enumerate(shards)), stage="score cells"):
            for k, side in enumerate(SIDES):
                self.sizes[side].add(found.sizes[k, : found.n_clusters[k]])
                self.n_exact[side] += int(found.n_exact[k])
            yield made, rows

    def _cover(self, shard: int, found: Found, rows: CoverRows | None, apart: bool) -> Cover | None:
        """Return the cells of a shard that are scored, with what their items share with mates in all shards."""
        n_scored = self._shards[shard].scored
        if not n_scored:
            return None
        how, cells = self._how, self._cells.read_batch(shard)[:n_scored]
        bounds = (np.append(0, np.cumsum(cells[field], dtype=np.int64)) for field in ("n_true", "n_pred"))
        truth, prediction = (  # clusters go by name here, of which covers know nothing
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
        """Return the items of a shard, whose columns were put by as the rank says."""
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
        return NamedCells(true, names[: true[-1]], pred, names[true[-1] :], n, weight, own.scored)

    def _refuse_too_much(self) -> None:
        if self._n_wide:
            raise TooMuchWorkError(
                f"{self._n_wide:,} items are in more than {MOST_CLUSTERS} clusters, of both sides together, which are "
                'more than the disk engine can count mates by. Leave them out, or pass engine="memory"'
            )
        if self._n_subsets > self._how.max_pairs:
            raise TooMuchWorkError(
                f"{self._n_subsets:.2g} sets of clusters that items share would have to be counted, more than "
                f"max_pairs={self._how.max_pairs:.2g}. Leave items of many clusters out, or pass "
                f"max_pairs={1.05 * self._n_subsets:.2g} or more and wait"
            )


def subsets_at_once(limit: int) -> int:
    """Return how many sets of clusters are handled by a task, so that they take a small part of the limit."""
    return min(MOST_AT_ONCE, max(LEAST_AT_ONCE, limit // SHARE))


def _codes(side: GatheredSide, rows: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the set of each aligned item, -1 where the side lacks it."""
    codes = side.side.labels
    return codes.copy() if rows is None else np.where(rows < 0, -1, np.append(codes, -1)[rows])


def _names(
    side: GatheredSide, kind: str, made: NDArray[np.int64], clusters: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the names of clusters by their number; those after the ones of the side were `made` for these items."""
    keys = np.concatenate([side.cluster_keys, made])
    alone = np.concatenate([side.alone, np.ones(made.size, np.bool_)])
    return name_clusters(keys[clusters], kind, alone[clusters])


def _store(spool: Spool, index: int, records: np.ndarray) -> None:
    """Put a batch of one shard into a spool."""
    with spool.pages() as pages:
        room = pages.empty(records.size, spool.dtype)
        room[:] = records
        spool.put(index, pages, np.array([0, records.size]))
