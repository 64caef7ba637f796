"""What all blocks of rows go through: labels become keys, policies are applied, coverage is added up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.align import Facts, is_used, require_common
from fastbcubed.alignment.block_keys import Labels, Retry
from fastbcubed.alignment.carried import Carried
from fastbcubed.alignment.combination import Combination
from fastbcubed.alignment.common_rows import RowsOfRun
from fastbcubed.alignment.faults import (
    Fault,
    Faults,
    Overlap,
    RepeatedTableRows,
    Unmatched,
    Unweighted,
    WeightsOutOfRange,
)
from fastbcubed.alignment.item_shards import ItemRows
from fastbcubed.alignment.policies import Coverage, Policies
from fastbcubed.alignment.side import Side
from fastbcubed.alignment.weights import check_weights
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.content import BlocksSeen
from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.clusterings.stretches import Block, Pair
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources.arrays import from_numpy


class AlignedBlock(NamedTuple):
    """Aligned rows; see `Alignment`. Blocks of one evaluation can be sorted by `index`.

    `columns` are those that are to be sliced by, or written, with the scores of the rows.
    """

    index: Any
    true_keys: NDArray[np.int64]
    pred_keys: NDArray[np.int64]
    weight: NDArray[np.float64] | None
    columns: pa.Table | None = None


class GatheredSide(NamedTuple):
    """Rows of memberships of a side, brought together by item: a row per item, whose label is its set of clusters."""

    side: Side  #: the items; the side lacks those that are in no cluster
    keys: NDArray[np.int64]  #: of the items; shape (n_items,)
    firsts: NDArray[np.int64]  #: the first row of each item; shape (n_items,)
    sets: Memberships  #: the clusters of each set, by code
    #: the key of each cluster: of its label or, where it is of one item that is alone, of that; shape (n_clusters,)
    cluster_keys: NDArray[np.int64]
    alone: NDArray[np.bool_]  #: which clusters are of one item that is alone; shape (n_clusters,)


#: Brings the rows of memberships of a shard together by the keys of their items; these come part by part.
Gather = Callable[[Side, ItemRows, Pool], GatheredSide]


class AlignedSets(NamedTuple):
    """Aligned items and the set of clusters of each, of which policies have made nothing yet."""

    index: Any
    both: Combination
    sides: tuple[GatheredSide, GatheredSide]
    keys: NDArray[np.int64]  #: of the item of each row; shape (n_rows,), as of `both`
    columns: pa.Table | None


@dataclass(frozen=True)
class Choice:
    """What one attempt works with: the hash function, and where special keys begin."""

    seed: int
    start: int


@dataclass(eq=False)
class RowAligner:
    """Makes sides of blocks, finishes what has been combined of them, and adds up what all blocks show."""

    pair: Pair
    firsts: tuple[Clustering, ...]  #: the first blocks of both sides
    labels: list[Labels]  #: make the keys of each side's clusters
    policies: Policies
    choice: Choice
    outer: bool  #: whether weights serve the mean alone
    null_is_absent: bool  #: whether a null cluster says "not on that side"
    carried: Carried | None  #: the columns that go with the rows
    kept: RowsOfRun | None = None  #: keeps the run to rows of the truth that other runs score, too
    seen: BlocksSeen | None = None  #: adds up what blocks hold, if that is asked for

    def __post_init__(self) -> None:
        self.faults = Faults()
        self.has_special_keys = self._is_taken = False
        self._coverage: list[Coverage] = []
        self._coverage_kept: list[Coverage] = []
        self._n_absent: tuple[list[int], list[int]] = ([], [])
        self._n_repeats: tuple[list[int], list[int]] = ([], [])
        self._n_aligned: list[int] = []
        self._n_items: tuple[list[int], list[int]] = ([], [])

    def side(self, k: int, clustering: Clustering, first_row: int, alone: Pool) -> Side:
        """Take a block of side k, and note what its rows alone show to be wrong."""
        report = self.faults.report(k, first_row)
        if self.seen is not None:
            self.seen.add(k, clustering, first_row, alone)
        keys = self.labels[k].keys(clustering.labels, first_row, alone)
        side = Side.of(
            clustering, self.policies, keys, self.null_is_absent, first_row=first_row, report=report
        )
        if side.weight is not None:
            check_weights(side.weight, side.name, self.outer, alone, first_row=first_row, report=report)
        if side.absent is not None:
            self._n_absent[k].append(side.n_null)
        return side

    def count_special(self, k: int, sides: tuple[Side, ...]) -> None:
        """Count the nulls, the noise and the repeated rows of a block that is joined later, from side k on."""
        self._count_repeats(k, sides)
        columns = ([getattr(side, name) for side in sides] for name in ("n_null", "n_noise", "n_duplicates"))
        found = Coverage(0, 0, 0, 0.0, 0.0, 0.0, *map(sum, columns))
        self._coverage.append(found)
        self._coverage_kept.append(found)

    def _count_repeats(self, k: int, sides: tuple[Side, ...]) -> None:
        for counts, side in zip(self._n_repeats[k:], sides, strict=False):
            counts.append(side.n_duplicates)

    @property
    def moved(self) -> Carried | None:
        """The columns that go with the rows of the sides, None if none do."""
        return self.carried if self.carried and not self.carried.all_from_keys else None

    def columns(self, block: Block, k: int) -> pa.Table | None:
        """Return the columns that go with the rows of a block, whose first side is side k."""
        return self.moved.of_block(block.sides, k, block.first_row) if self.moved else None

    def account_for_items(self, both: Combination) -> None:
        """Add up what a shard of aligned items shows, whose rows are memberships, and report what is wrong with it."""
        for counts, side in zip(self._n_items, both.sides, strict=True):
            counts.append(len(side))
        self._account_for(both)

    def _account_for(self, both: Combination) -> None:
        """Add up what a block of aligned rows shows, and report what is wrong with it."""
        self._coverage.append(both.coverage)
        self._count_repeats(0, both.sides)
        self._n_aligned.append(both.true_keys.size)
        both.report_faults()

    def finished(
        self, index: Any, both: Combination, numbers: NDArray[np.int64], columns: pa.Table | None
    ) -> AlignedBlock:
        """Apply the policies to a block of aligned rows, and leave out those that are not kept.

        `numbers` tell rows apart; where runs are kept to rows of the truth, they are those of these.
        """
        self._account_for(both)
        start, n_rows = self.choice.start, self.pair.n_rows
        self._is_taken = self._is_taken or any(
            is_used(start, keys, n_rows) for keys in (both.true_keys, both.pred_keys)
        )
        rows = None if self.kept is None else self.kept.keep(both, numbers)
        if rows is not None:
            both, numbers = both.take(rows), numbers[rows]
            columns = None if columns is None else columns.take(from_numpy(rows))
        self._coverage_kept.append(both.coverage)
        self.has_special_keys = self.has_special_keys or both.needs_special_keys
        true_keys, pred_keys, _, _ = both.finished(start, numbers)
        return AlignedBlock(index, true_keys, pred_keys, both.weight, columns)

    def require_sound_rows(self) -> None:
        """Raise for what rows alone show to be wrong, when all of them have been read."""
        self.faults.enforce(self._whole, WeightsOutOfRange.step)

    def total(self, pool: Pool, named: Callable[[int, Fault], Fault]) -> Coverage:
        """Return the coverage of all rows that are kept; raise for what all blocks show to be wrong, or Retry.

        `named` replaces keys by the first few items that have them, in what was found wrong after a join.
        """
        for labels in self.labels:
            labels.check(pool)
        if self.has_special_keys and self._is_taken:
            raise Retry(seed=False)
        coverage = Coverage.total(self._coverage)

        def whole(side: int, fault: Fault) -> Fault:
            return named(side, self._whole(side, fault))

        self.faults.enforce(whole, RepeatedTableRows.step)
        require_common(coverage, *self._facts())
        self.faults.enforce(whole, Unweighted.step)
        if self.kept is None:
            return coverage
        self.kept.coverage = coverage
        return Coverage.total(self._coverage_kept)

    def _facts(self) -> tuple[Facts, Facts]:
        """Return what messages say of both sides."""
        sides = self.pair.stretches if len(self.pair.stretches) == 2 else self.pair.stretches * 2
        found = []
        for k, (side, first) in enumerate(zip(sides, self.firsts, strict=True)):
            rows = sum(stretch.n_rows for stretch in side)
            found.append(Facts(self.pair.names[k], rows, sum(self._n_absent[k]), first.items, len(first)))
        return found[0], found[1]

    def _whole(self, side: int, fault: Fault) -> Fault:
        """Return a fault with the number of all rows or items, also of blocks without it."""
        if isinstance(fault, RepeatedTableRows):
            return fault  # which knows its table
        total = sum(self._n_aligned)
        if not isinstance(fault, Unweighted):
            total = self._facts()[side].n_rows
        if isinstance(fault, Unmatched) and self._n_items[side]:
            total = sum(self._n_items[side])
        if isinstance(fault, Overlap):
            total -= sum(self._n_repeats[side])
        return replace(fault, total=total)
