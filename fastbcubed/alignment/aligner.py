"""Blocks of two clusterings → aligned blocks: rows that correspond at once, others joined by item in shards."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.align import Facts, is_used, require_common
from fastbcubed.alignment.block_keys import Items, Labels, Retry
from fastbcubed.alignment.carried import Carried, number_type
from fastbcubed.alignment.combination import Combination, Unmatched, combine
from fastbcubed.alignment.item_join import ItemJoin, join_bits, kept_of
from fastbcubed.alignment.policies import Coverage, Policies
from fastbcubed.alignment.side import Side, require_known_type
from fastbcubed.alignment.weights import check_weights, join_weights
from fastbcubed.cells.counting import AlignedBlock, ClusterKeys
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.stretches import Block, Pair, Stretch
from fastbcubed.results.cluster_names import NamesByKey
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill
from fastbcubed.sources.keys import are_plain, seeded_keys

__all__ = ["Aligner", "Choice"]

#: Stretches, and rows of each, in which large clusters are looked for.
SAMPLED, SAMPLE_ROWS = 8, 1 << 12


@dataclass(frozen=True)
class Choice:
    """What one attempt works with: the hash function, and where special keys begin."""

    seed: int
    start: int


class Aligner:
    """Aligns two clusterings block by block.

    Parameters
    ----------
    pair : Pair
        The two sides.
    policies : Policies
        What to do about unmatched items, nulls, duplicates and noise.
    choice : Choice
        Hash function and special keys.
    spill : Spill
        Where to what does not fit goes.
    limit : int
        Bytes of memory that may be used.
    outer : bool
        Whether weights serve the mean alone.
    null_is_absent : bool
        Whether a null cluster says "not on that side" (the one-table form).
    carried : Carried or None
        Columns that go with the rows.
    """

    def __init__(
        self,
        pair: Pair,
        policies: Policies,
        choice: Choice,
        spill: Spill,
        limit: int,
        pool: Pool,
        *,
        outer: bool,
        null_is_absent: bool,
        carried: Carried | None = None,
    ) -> None:
        self.pair = pair
        self.carried = carried
        self.policies = policies
        self.choice = choice
        self.outer = outer
        self.null_is_absent = null_is_absent
        self._spill = spill
        self._pool = pool
        self._memory = kept_of(limit)
        firsts = [_first_block(side) for side in pair.stretches]
        self._firsts = firsts[0].sides if len(firsts) == 1 else (firsts[0].sides[0], firsts[1].sides[0])
        if policies.noise is not None:
            require_known_type(policies.noise, *(side.labels for side in self._firsts))
        bits = join_bits(pair.n_rows, self._words(), self._carried_bytes(firsts), limit)
        self._labels = [
            Labels(side.labels, choice.seed, spill, self._memory // 3, max(1, bits)) for side in self._firsts
        ]
        self.weighted = pair.weight_table is not None or any(s.weight is not None for s in self._firsts)
        self.by_item = self._firsts[0].items is not None
        if self.by_item:
            items = [side.items for side in self._firsts if side.items is not None]
            tables = (pair.weight_table, pair.attribute_table)
            items += [table[0] for table in tables if table is not None]
            if carried and policies.nulls == "raise" and not null_is_absent:
                self.carried = replace(carried, from_keys=self._numbers(carried, number_type(*items)))
            self._join = ItemJoin(self, Items(items, choice.seed), spill, bits, self._memory, pool)
        self._coverage: list[Coverage] = []
        self._unmatched: list[tuple[Any, Unmatched]] = []
        self._special = self._taken = False
        self._n_absent = [0, 0]

    def _numbers(self, carried: Carried, item: pa.DataType | None) -> dict[str, pa.DataType]:
        """Return the columns that can be made of keys again, and their types; there are no nulls among them."""
        found = {"item": item} if carried.ids and item is not None else {}
        if carried.labels:
            for name, labels in zip(("true_cluster", "pred_cluster"), self._firsts, strict=True):
                if (kind := number_type(labels.labels)) is not None:
                    found[name] = kind
        return found

    def _words(self) -> int:
        """Return the words of a row that is to be joined: item, labels, what proves the item, weight, number, flags."""
        first = self._firsts[0]
        proved = first.items is not None and not are_plain([first.items])
        labels = 3 - len(self.pair.stretches)
        return 1 + labels + proved + (first.weight is not None) + 2 * self.policies.may_leave_alone

    def _carried_bytes(self, firsts: list[Block]) -> int:
        """Return the bytes of a row that are carried along, judged by the first blocks."""
        tables = [table for k, block in enumerate(firsts) if (table := self.columns(block, k)) is not None]
        return max((table.nbytes // max(1, table.num_rows) for table in tables), default=0)

    @property
    def may_lack(self) -> bool:
        """Whether a side may lack items of the other."""
        return len(self.pair.stretches) == 2 or self.null_is_absent or self.policies.nulls == "drop"

    @property
    def expected_spill(self) -> int:
        """The bytes that are spilled for the join, and to prove the keys of labels, about."""
        join = max(0, self.pair.n_rows * 32 - self._memory) if self.by_item else 0
        of_side = self.pair.n_rows // len(self.pair.stretches) * 16 - self._memory // 3
        return join + max(0, of_side) * sum(labels.seed is not None for labels in self._labels)

    @property
    def absent_key(self) -> int:
        """The key of items that a side lacks."""
        return int((np.array([self.choice.start], np.int64) - 1)[0])

    def names(self, keys: ClusterKeys, bits: int) -> NamesByKey:
        """Return the labels of clusters with these keys, when all rows have been aligned and sharded by these bits."""
        made = (self.choice.start - 1, self.pair.n_rows + 1) if self._special else None
        first = [side.labels for side in self._firsts]
        seeds = [labels.seed for labels in self._labels]
        directory = self._spill.directory
        return NamesByKey(self.pair, first, seeds, made, keys, bits, directory, self._pool.threads)

    def sample_of_true_keys(self) -> list[NDArray[np.int64]]:
        """Return keys of true labels from a few stretches, spread over all, where rows come as they are."""
        side = self.pair.stretches[0]
        chosen = side[:: max(1, len(side) // SAMPLED)][:SAMPLED]

        def read(stretch: Stretch) -> NDArray[np.int64]:
            block = next(stretch.blocks())
            keys, _ = seeded_keys(block.sides[0].labels, self._labels[0].seed, Pool(1))
            return keys[:: max(1, keys.size // SAMPLE_ROWS)]

        return self._pool.map(read, chosen, stage="look at the rows")

    def run(self, take: Callable[[AlignedBlock], None], readers: Pool) -> Coverage:
        """Align all rows, on the threads of `readers`, and hand each block on; return the coverage.

        Raises
        ------
        Retry
            If keys collide; `take` has then had blocks that do not count.
        """
        if self.by_item:
            self._join.run(take, readers)
        else:
            stretches = self.pair.stretches[0]
            rows = [stretch.n_rows for stretch in stretches]
            readers.map(lambda s: self._pass_on(s, take), stretches, stage="read rows", rows=rows)
        for labels in self._labels:
            labels.check(self._pool)
        if self._special and self._taken:
            raise Retry(seed=False)
        coverage = Coverage.total(self._coverage)
        require_common(coverage, *self._facts())
        self._enforce()
        return coverage

    def _facts(self) -> tuple[Facts, Facts]:
        sides = self.pair.stretches if len(self.pair.stretches) == 2 else self.pair.stretches * 2
        found = []
        for k, (side, first) in enumerate(zip(sides, self._firsts, strict=True)):
            rows = sum(stretch.n_rows for stretch in side)
            few = np.arange(min(3, len(first)))
            items = first.items
            example = few.tolist if items is None else items.take(few).to_pylist
            found.append(Facts(self.pair.names[k], rows, self._n_absent[k], example))
        return found[0], found[1]

    def _enforce(self) -> None:
        """Raise for items that are unmatched where the policy does not allow them, over all blocks."""
        found = [unmatched for _, unmatched in sorted(self._unmatched, key=lambda each: each[0])]
        for name in self.pair.names:
            mine = [unmatched for unmatched in found if unmatched.name == name]
            if mine:
                replace(
                    mine[0],
                    n_items=sum(each.n_items for each in mine),
                    of_items=self._facts()[self.pair.names.index(name)].n_rows,
                    first=[item for each in mine for item in each.first][:4],
                ).enforce()

    # Rows that correspond

    def _pass_on(self, stretch: Stretch, take: Callable[[AlignedBlock], None]) -> None:
        with Pool(1) as alone:
            for block in stretch.blocks():
                sides = self._sides(block, alone)
                found = [(side.weight, None) for side in sides if side.weight is not None][:1]
                weight = join_weights(found)
                both = combine(*sides, None, None, weight, math.nan)
                numbers = np.arange(block.first_row, block.first_row + len(sides[0]))
                columns = self.columns(block, 0)
                take(self.finished(block.first_row, both, numbers, columns))

    def columns(self, block: Block, k: int) -> pa.Table | None:
        """Return the columns that go with the rows of a block, whose first side is side k."""
        return self.carried.of_block(block.sides, k, block.first_row) if self.carried else None

    def _sides(self, block: Block, alone: Pool) -> tuple[Side, Side]:
        true_side, pred_side = (
            self.side(k, clustering, block.first_row, alone) for k, clustering in enumerate(block.sides)
        )
        return true_side, pred_side

    def side(self, k: int, clustering: Clustering, first_row: int, alone: Pool) -> Side:
        """Take a block of side k, and raise for what its rows alone show to be wrong."""
        keys = self._labels[k].keys(clustering.labels, first_row, alone)
        side = Side.of(clustering, self.policies, keys, self.null_is_absent)
        if side.weight is not None:
            check_weights(side.weight, f"{side.name} (from row {first_row:,} on)", self.outer, alone)
        if side.absent is not None:
            self._n_absent[k] += side.n_null
        return side

    def count_special(self, sides: tuple[Side, ...]) -> None:
        """Count the nulls and the noise of a block that is joined later."""
        n_null, n_noise = sum(side.n_null for side in sides), sum(side.n_noise for side in sides)
        self._coverage.append(Coverage(0, 0, 0, 0.0, 0.0, 0.0, n_null, n_noise, 0))

    def finished(
        self, index: Any, both: Combination, numbers: NDArray[np.int64], columns: pa.Table | None
    ) -> AlignedBlock:
        """Apply the policies to a block of aligned rows."""
        self._coverage.append(both.coverage)
        self._unmatched += [(index, unmatched) for unmatched in both.unmatched(self.policies)]
        if both.weight is not None and self.by_item:
            both.require_weights(self.policies)
        start, n_rows = self.choice.start, self.pair.n_rows
        self._taken = self._taken or any(
            is_used(start, keys, n_rows) for keys in (both.true_keys, both.pred_keys)
        )
        self._special = self._special or both.needs_special_keys(self.policies)
        true_keys, pred_keys, _, _ = both.finished(self.policies, start, numbers)
        return AlignedBlock(index, true_keys, pred_keys, both.weight, columns)


def _first_block(side: list[Stretch]) -> Block:
    return next(side[0].blocks())
