"""Blocks of two clusterings → aligned blocks: rows that correspond at once, others joined by item in shards."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment import Facts, is_used, match_rows, require_common
from fastbcubed.block_keys import Items, Labels, Retry
from fastbcubed.carried import Carried, take_or_null
from fastbcubed.cluster_names import NamesByKey
from fastbcubed.clustering import Clustering
from fastbcubed.combination import Combination, Unmatched, combine
from fastbcubed.engines.planning import MAX_BITS
from fastbcubed.engines.pool import Pool, blocks
from fastbcubed.engines.spill import Spill
from fastbcubed.errors import first_few
from fastbcubed.item_shards import ItemRows, ItemShards, sides_of
from fastbcubed.items import rows_of_attributes
from fastbcubed.ondisk import AlignedBlock, ClusterKeys
from fastbcubed.pairs import Block, Pair, Stretch
from fastbcubed.policies import Coverage, Policies
from fastbcubed.side import Side, require_known_type
from fastbcubed.sources.blocks import rows_between
from fastbcubed.sources.columns import Column
from fastbcubed.sources.keys import seeded_keys
from fastbcubed.weights import check_weights, join_weights, weights_by_key

__all__ = ["Aligner", "Choice"]

#: What an item takes at most while its shard is joined.
JOIN_BYTES = 400
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
        shards = -(-pair.n_rows * JOIN_BYTES * pool.threads // (limit // 3))
        self._bits = min(max(shards - 1, 0).bit_length(), MAX_BITS)
        self._memory = kept_of(limit)
        firsts = [_first_block(side) for side in pair.stretches]
        self._firsts = firsts[0].sides if len(firsts) == 1 else (firsts[0].sides[0], firsts[1].sides[0])
        if policies.noise is not None:
            require_known_type(policies.noise, *(side.labels for side in self._firsts))
        bits = max(1, self._bits)
        self._labels = [
            Labels(side.labels, choice.seed, spill, kept_of(limit) // 3, bits) for side in self._firsts
        ]
        self.weighted = pair.weight_table is not None or any(s.weight is not None for s in self._firsts)
        self.by_item = self._firsts[0].items is not None
        if self.by_item:
            items = [side.items for side in self._firsts if side.items is not None]
            tables = (pair.weight_table, pair.attribute_table)
            items += [table[0] for table in tables if table is not None]
            self._items = Items(items, choice.seed)
        self._coverage: list[Coverage] = []
        self._unmatched: list[tuple[Any, Unmatched]] = []
        self._special = self._taken = False
        self._n_absent = [0, 0]

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

    def names(self, keys: ClusterKeys) -> NamesByKey:
        """Return the labels of clusters with these keys, when all rows have been aligned."""
        made = (self.choice.start - 1, self.pair.n_rows + 1) if self._special else None
        first = [side.labels for side in self._firsts]
        seeds = [labels.seed for labels in self._labels]
        return NamesByKey(self.pair, first, seeds, made, keys, self._pool.threads)

    def sample_of_true_keys(self) -> list[NDArray[np.int64]]:
        """Return keys of true labels from a few stretches, spread over all, where rows come as they are."""
        side = self.pair.stretches[0]
        chosen = side[:: max(1, len(side) // SAMPLED)][:SAMPLED]

        def read(stretch: Stretch) -> NDArray[np.int64]:
            block = next(stretch.blocks())
            keys, _ = seeded_keys(block.sides[0].labels, self._labels[0].seed, Pool(1))
            return keys[:: max(1, keys.size // SAMPLE_ROWS)]

        return self._pool.map(read, chosen, stage="look at the rows")

    def run(self, take: Callable[[AlignedBlock], None]) -> Coverage:
        """Align all rows and hand each block on; return the coverage.

        Raises
        ------
        Retry
            If keys collide; `take` has then had blocks that do not count.
        """
        if self.by_item:
            self._join(take)
        else:
            stretches = self.pair.stretches[0]
            rows = [stretch.n_rows for stretch in stretches]
            self._pool.map(lambda s: self._pass_on(s, take), stretches, stage="read rows", rows=rows)
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
                columns = self._columns(block, 0)
                self._finish(block.first_row, both, numbers, columns, take)

    def _columns(self, block: Block, k: int) -> pa.Table | None:
        return self.carried.of_block(block.sides, k, block.first_row) if self.carried else None

    def _sides(self, block: Block, alone: Pool) -> tuple[Side, Side]:
        true_side, pred_side = (
            self._side(k, clustering, block.first_row, alone) for k, clustering in enumerate(block.sides)
        )
        return true_side, pred_side

    def _side(self, k: int, clustering: Clustering, first_row: int, alone: Pool) -> Side:
        keys = self._labels[k].keys(clustering.labels, first_row, alone)
        side = Side.of(clustering, self.policies, keys, self.null_is_absent)
        if side.weight is not None:
            check_weights(side.weight, f"{side.name} (from row {first_row:,} on)", self.outer, alone)
        if side.absent is not None:
            self._n_absent[k] += side.n_null
        return side

    def _finish(
        self,
        index: Any,
        both: Combination,
        numbers: NDArray[np.int64],
        columns: pa.Table | None,
        take: Callable[[AlignedBlock], None],
    ) -> None:
        """Apply the policies to a block of aligned rows, and hand it on."""
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
        take(AlignedBlock(index, true_keys, pred_keys, both.weight, columns))

    # Rows joined by item

    def _join(self, take: Callable[[AlignedBlock], None]) -> None:
        """Bring the rows of each item together in shards, and join these one by one."""
        spools = self._spool_sides()
        weights = None if self.pair.weight_table is None else self._spool_weights()
        attributes = None if self.pair.attribute_table is None else self._spool_attributes()
        sizes = np.sum([spool.sizes() for spool in spools], axis=0)
        shards = np.flatnonzero(sizes).tolist()

        def join(shard: int) -> None:
            with Pool(1) as alone:
                self._join_shard(shard, spools, weights, attributes, alone, take)

        for some in (shards[:1], shards[1:]):  # the large clusters are seen in the first
            self._pool.map(join, some, stage="join by item", rows=sizes[some].tolist())

    def _spool_sides(self) -> list[ItemShards]:
        policies = self.policies
        lonely = policies.noise is not None or "singleton" in (
            policies.truth, policies.prediction, policies.nulls,
        )  # fmt: skip
        flagged = lonely or policies.nulls == "drop" or self.null_is_absent
        found: list[ItemShards] = []
        first_of_side = 0
        for stretches in self.pair.stretches:
            first = _first_block(stretches)
            shards = ItemShards(
                len(first.sides), self._bits, self._spill, self._memory // len(self.pair.stretches),
                proved=self._items.seed is not None, numbered=lonely, flagged=flagged,
                weighted=first.sides[0].weight is not None,
            )  # fmt: skip
            spool = partial(self._spool, shards, len(found), first_of_side)
            rows = [stretch.n_rows for stretch in stretches]
            side = ("the truth", "the prediction")[len(found)]
            stage = "read rows" if len(self.pair.stretches) == 1 else f"read {side}"
            self._pool.map(spool, stretches, stage=stage, rows=rows)
            found.append(shards)
            first_of_side += sum(rows)
        return found

    def _spool(self, shards: ItemShards, k: int, first_of_side: int, stretch: Stretch) -> None:
        """Read the blocks of a stretch of side k, or of both from 0 on, into shards."""
        with Pool(1) as alone:
            for block in stretch.blocks():
                sides = tuple(
                    self._side(k + each, clustering, block.first_row, alone)
                    for each, clustering in enumerate(block.sides)
                )
                self._count_special(sides)
                keys = self._items.keys(items_of(block), alone)
                shards.put(
                    block.first_row, keys, sides, sides[0].weight, first_of_side + block.first_row,
                    self._columns(block, k),
                )  # fmt: skip

    def _count_special(self, sides: tuple[Side, ...]) -> None:
        n_null, n_noise = sum(side.n_null for side in sides), sum(side.n_noise for side in sides)
        self._coverage.append(Coverage(0, 0, 0, 0.0, 0.0, 0.0, n_null, n_noise, 0))

    def _spool_weights(self) -> ItemShards:
        assert self.pair.weight_table is not None
        column, values = self.pair.weight_table
        check_weights(values, "the weight table", self.outer, self._pool)
        shards = self._shards_of_table()
        for start, stop in blocks(len(column)):
            keys = self._items.keys(column.stretch(start, stop), self._pool)
            shards.put(start, keys, (), values[start:stop], start)
        return shards

    def _spool_attributes(self) -> ItemShards:
        assert self.pair.attribute_table is not None and self.carried is not None
        column, table = self.pair.attribute_table
        shards = self._shards_of_table()
        for start, stop in blocks(len(column)):
            keys = self._items.keys(column.stretch(start, stop), self._pool)
            columns = self.carried.of_attributes(rows_between(table, start, stop))
            shards.put(start, keys, (), np.ones(stop - start), start, columns)
        return shards

    def _shards_of_table(self) -> ItemShards:
        """Return shards for rows without labels, of weights or of attributes."""
        return ItemShards(
            0, self._bits, self._spill, self._memory // 4,
            proved=self._items.seed is not None, numbered=False, flagged=False, weighted=True,
        )  # fmt: skip

    def _join_shard(
        self,
        shard: int,
        spools: list[ItemShards],
        weights: ItemShards | None,
        attributes: ItemShards | None,
        alone: Pool,
        take: Callable[[AlignedBlock], None],
    ) -> None:
        rows = [spool.read(shard) for spool in spools]
        given = None if weights is None else weights.read(shard)
        others = None if attributes is None else attributes.read(shard)
        self._items.check([*rows, *(table for table in (given, others) if table is not None)], alone)
        sides: list[Side] = []
        for k, own in enumerate(rows):
            items = ItemRows(own["key"], partial(self._find_items, k))
            names = self.pair.names if len(rows) == 1 else self.pair.names[k : k + 1]
            sides += sides_of(own, names, self.policies, items)
        keys = [own["key"] for own in rows] * (2 // len(rows))
        matched = match_rows(sides[0], sides[1], keys[0], keys[1], alone)
        if given is not None:
            again = partial(self._repeated_weights, self.pair.weight_table)
            found = [weights_by_key(k, given["key"], given["weight"], again, alone) for k in keys]
            weight = join_weights(list(zip(found, matched, strict=True)))
        else:
            weight = join_weights(
                [(s.weight, r) for s, r in zip(sides, matched, strict=True) if s.weight is not None]
            )
        both = combine(sides[0], sides[1], *matched, weight, math.nan)
        columns = None
        if self.carried:
            columns = self.carried.aligned([spool.columns(shard) for spool in spools], matched)
        if columns is not None and attributes is not None and others is not None:
            columns = self._with_attributes(
                columns, keys, matched, others["key"], attributes.columns(shard), alone
            )
        self._finish(shard, both, self._numbers(rows, matched, both.true_keys.size), columns, take)

    @staticmethod
    def _with_attributes(
        columns: pa.Table,
        keys: list[NDArray[np.int64]],
        matched: tuple[Any, Any],
        given: NDArray[np.int64],
        table: pa.Table,
        alone: Pool,
    ) -> pa.Table:
        """Join the attributes of a shard to its aligned rows, by the keys of their items."""
        own = keys[0]
        if matched[0] is not None:
            own = np.where(
                matched[0] >= 0, np.append(keys[0], 0)[matched[0]], np.append(keys[1], 0)[matched[1]]
            )
        found = take_or_null(table, rows_of_attributes(own, given, alone))
        for name in found.column_names:
            columns = columns.append_column(name, found[name])
        return columns

    @staticmethod
    def _numbers(
        rows: list[dict[str, np.ndarray]], matched: tuple[Any, Any], n_rows: int
    ) -> NDArray[np.int64]:
        """Return a number for each aligned row, which no other row of any shard has."""
        if "number" not in rows[0]:
            return np.arange(n_rows)  # no row is alone
        own = [side["number"] for side in rows]
        true_rows, pred_rows = matched
        if true_rows is None:
            return own[0]
        numbers = np.append(own[0], 0)[true_rows]
        missing = true_rows < 0
        numbers[missing] = own[-1][pred_rows[missing]]
        return numbers

    def _find_items(self, k: int, keys: NDArray[np.int64]) -> list[Any]:
        """Look for the items with these keys in the input again, for a message."""
        found: dict[int, Any] = {}
        for stretch in self.pair.stretches[k]:
            for block in stretch.blocks():
                items = items_of(block)
                own = self._items.keys(items, self._pool).first
                at = np.flatnonzero(np.isin(own, keys))[:64]
                found |= dict(zip(own[at].tolist(), items.take(at).to_pylist(), strict=True))
                if all(key in found for key in keys.tolist()):
                    return [found[key] for key in keys.tolist()]
        return [found.get(key) for key in keys.tolist()]

    def _repeated_weights(self, table: Any, keys: NDArray[np.int64]) -> str:
        values, counts = np.unique(keys, return_counts=True)
        column = table[0]
        own = self._items.keys(column, self._pool).first
        at = np.flatnonzero(np.isin(own, values[counts > 1]))[1:5]
        return first_few(column.take(at).to_pylist())


def kept_of(limit: int) -> int:
    """Return how many bytes of the rows to be joined may be kept in memory."""
    return limit // 6


def items_of(block: Block) -> Column:
    """Return the item ids of a block."""
    items = block.sides[0].items
    assert items is not None
    return items


def _first_block(side: list[Stretch]) -> Block:
    return next(side[0].blocks())
