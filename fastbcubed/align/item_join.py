"""The join of two clusterings by item, in shards: the rows of each item are brought together, then aligned."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.align_runs import RowsOfRun
from fastbcubed.align.apply_policies import Combination, combine
from fastbcubed.align.data_errors import (
    Fault,
    Faults,
    Overlap,
    Repeated,
    RepeatedRows,
    RepeatedTableRows,
    Report,
    Unweighted,
    WeightsOutOfRange,
)
from fastbcubed.align.odd_labels import OddLabels
from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.align.row_blocks import (
    AlignedBlock,
    Carried,
    Choice,
    Items,
    ItemShards,
    Keys,
    Labels,
    Retry,
    ShardRows,
    no_columns,
    number_type,
    numbers_of_keys,
    sides_of,
    without_repeats,
)
from fastbcubed.align.rows import (
    Facts,
    aligned_keys,
    found_nothing,
    is_used,
    require_common,
    rows_or_null,
)
from fastbcubed.align.sides import (
    REPEATED_ATTRIBUTES,
    REPEATED_WEIGHTS,
    Matched,
    Side,
    Weights,
    check_weights,
    join_weights,
    match_table,
    own_weights,
    require_known_type,
    weights_by_key,
)
from fastbcubed.inputs.arrays import from_numpy
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.fingerprint import BlocksSeen
from fastbcubed.inputs.id_columns import Column, are_plain, as_column, seeded_keys
from fastbcubed.inputs.layouts import sources_hint
from fastbcubed.inputs.pair import Block, Pair
from fastbcubed.inputs.reading_notes import unmatched_attributes
from fastbcubed.inputs.tables import Stretch
from fastbcubed.runtime.key_partitions import MAX_SHARD_BITS, match_parts, part_bits
from fastbcubed.runtime.spill import Spill
from fastbcubed.runtime.threads import Pool, blocks

#: Maximum bytes per word of a row (at least three words) while its shard is joined and the next shard is read.
JOIN_BYTES = 40
#: Maximum number of shards joined at once; with more, memory would depend on the number of threads.
JOINED_AT_ONCE = 3
#: The number used instead of a side's in faults of a table of weights or of attributes, and these faults by number.
WEIGHTS, ATTRIBUTES = 0, 1
REPEATED = REPEATED_WEIGHTS, REPEATED_ATTRIBUTES


class _Shard(NamedTuple):
    """The rows of one shard of items, by side, with their payload columns."""

    number: int
    rows: list[ShardRows]
    weights: ShardRows | None
    attributes: ShardRows | None
    columns: list[pa.Table]
    attribute_columns: pa.Table | None

    @property
    def tables(self) -> list[dict[str, np.ndarray]]:
        """The item columns of all tables that are joined by item."""
        every = [*self.rows, *(table for table in (self.weights, self.attributes) if table is not None)]
        return [table.columns for table in every]


class ItemJoin:
    """The join of an aligner's two sides by item, in 2**bits shards; up to `memory` bytes of rows are not spilled."""

    def __init__(
        self,
        aligner: Aligner,
        items: Items,
        spill: Spill,
        bits: int,
        memory: int,
        pool: Pool,
    ) -> None:
        self._aligner = aligner
        self._pair, self._policies, self._carried = aligner.pair, aligner.policies, aligner.carried
        self._items = items
        self._spill, self._bits, self._memory, self._pool = spill, bits, memory, pool
        self._repeats: list[tuple[int, int, Fault]] = []

    def run(self, take: Callable[[Any], None], readers: Pool) -> None:
        """Distribute the rows to shards by item, and join the shards one by one."""
        spools = self._spool_sides(readers)
        self._aligner.require_sound_rows()
        for (
            side,
            index,
            fault,
        ) in self._repeats:  # reported only now, since joined rows may have worse faults
            self._aligner.faults.report(side, index)(fault)
        weights = None if self._pair.weight_table is None else self._spool_weights()
        attributes = None if self._pair.attribute_table is None else self._spool_attributes()
        sizes = np.sum([spool.sizes() for spool in spools], axis=0)
        shards = np.flatnonzero(sizes).tolist()

        # `gate` bounds the shards in memory; `lock` guards `ahead` and `coming`, and is never held while reading
        gate, lock = threading.BoundedSemaphore(JOINED_AT_ONCE), threading.Lock()
        at_once = min(self._pool.threads, JOINED_AT_ONCE)
        with ThreadPoolExecutor(self._pool.threads, "fastbcubed-read") as ahead_of_join:
            ahead = deque(shards)
            coming: dict[int, Future[_Shard]] = {}

            def read_until(rank: int) -> None:
                """Begin to read this shard, earlier ones whose threads may lag, and a few ahead."""
                with lock:
                    while ahead and len(shards) - len(ahead) <= rank + at_once:
                        shard = ahead.popleft()
                        coming[shard] = ahead_of_join.submit(
                            self._read, shard, part_bits(int(sizes[shard])), spools, weights, attributes
                        )

            def join(rank: int) -> None:
                read_until(rank)
                with gate, Pool(1) as alone:
                    aligned = self._join_shard(coming.pop(shards[rank]).result(), alone)
                    if not self._aligner.faults:
                        take(aligned)

            ranks, rows = range(len(shards)), sizes[shards].tolist()
            for some in (slice(1), slice(1, None)):  # large clusters are detected in the first
                readers.map(join, ranks[some], stage="join by item", rows=rows[some])
        for k, table in ((WEIGHTS, weights), (ATTRIBUTES, attributes)):
            if table is not None:
                self._check_rest(k, table, np.flatnonzero((sizes == 0) & (table.sizes() > 0)))

    def _spool_sides(self, readers: Pool) -> list[ItemShards]:
        policies = self._policies
        lonely = policies.may_leave_alone
        flagged = lonely or policies.nulls == "drop"
        found: list[ItemShards] = []
        first_of_side = 0
        for stretches in self._pair.stretches:
            first = next(stretches[0].blocks())
            numbered = lonely or (self._aligner.kept is not None and not found)
            shards = ItemShards(
                len(first.sides), self._bits, self._spill, self._memory // len(self._pair.stretches),
                proved=self._items.seed is not None, numbered=numbered, flagged=flagged,
                weighted=first.sides[0].weight is not None,
            )  # fmt: skip
            spool = partial(self._spool, shards, len(found), first_of_side)
            rows = [stretch.n_rows for stretch in stretches]
            side = ("the truth", "the prediction")[len(found)]
            stage = "read rows" if len(self._pair.stretches) == 1 else f"read {side}"
            readers.map(spool, stretches, stage=stage, rows=rows)
            found.append(shards)
            first_of_side += sum(rows)
        return found

    def _spool(self, shards: ItemShards, k: int, first_of_side: int, stretch: Stretch[Block]) -> None:
        """Read the blocks of a stretch into shards; the first side of a block is side k."""
        with Pool(1) as alone:
            for block in stretch.blocks():
                sides = tuple(
                    self._aligner.side(k + each, clustering, block.first_row, alone)
                    for each, clustering in enumerate(block.sides)
                )
                if self._aligner.faults:
                    continue  # only counts faults from here on
                keys = self._items.keys(items_of(block), alone)
                columns, rows = self._aligner.columns(block, k), np.arange(len(sides[0]))
                rows = without_repeats(keys, sides, alone)
                if rows.size < len(sides[0]):
                    if self._policies.duplicates == "raise":
                        n_rows, first = len(sides[0]), _dropped_keys(keys, rows)
                        fault = RepeatedRows(sides[0].name, n_rows - rows.size, n_rows, first)
                        self._repeats.append((k, block.first_row, fault))
                    keys, sides = keys.take(rows), tuple(side.take(rows) for side in sides)
                    columns = None if columns is None else columns.take(from_numpy(rows))
                self._aligner.count_special(k, sides)
                numbers = first_of_side + block.first_row + rows
                shards.put(block.first_row, keys, sides, sides[0].weight, numbers, columns)

    def _spool_weights(self) -> ItemShards:
        assert self._pair.weight_table is not None
        column, values = self._pair.weight_table
        check_weights(values, "the weight table", self._aligner.outer, self._pool)
        return self._spool_table(column, lambda start, stop: (values[start:stop], None), WEIGHTS)

    def _spool_attributes(self) -> ItemShards:
        assert self._pair.attribute_table is not None and self._carried is not None
        (column, table), carried = self._pair.attribute_table, self._carried

        def read(start: int, stop: int) -> tuple[NDArray[np.float64], pa.Table]:
            return np.ones(stop - start), carried.of_attributes(table.between(start, stop))

        return self._spool_table(column, read, ATTRIBUTES)

    def _spool_table(
        self,
        items: Column,
        read: Callable[[int, int], tuple[NDArray[np.float64], pa.Table | None]],
        k: int,
    ) -> ItemShards:
        """Read a table of items into shards without labels; `read` returns the weights and columns of a block.

        Rows that repeat an item within their block are dropped, and reported as a fault of table k.
        """
        shards = ItemShards(
            0, self._bits, self._spill, self._memory // 4,
            proved=self._items.seed is not None, numbered=False, flagged=False, weighted=True,
        )  # fmt: skip
        for start, stop in blocks(len(items)):
            keys = self._items.keys(items.stretch(start, stop), self._pool)
            weight, columns = read(start, stop)
            rows = without_repeats(keys, (), self._pool)
            if rows.size < stop - start:
                first = _dropped_keys(keys, rows)
                self._report(k, start)(REPEATED[k](stop - start - rows.size, stop - start, first))
                keys, weight = keys.take(rows), weight[rows]
                columns = None if columns is None else columns.take(from_numpy(rows))
            shards.put(start, keys, (), weight, start + rows, columns)
        return shards

    def _read(
        self,
        shard: int,
        bits: int,
        spools: list[ItemShards],
        weights: ItemShards | None,
        attributes: ItemShards | None,
    ) -> _Shard:
        moved = self._aligner.moved is not None
        return _Shard(
            shard,
            [spool.read(shard, bits, ordered=moved) for spool in spools],
            None if weights is None else weights.read(shard, bits, ordered=False),
            None if attributes is None else attributes.read(shard, bits, ordered=True),
            [spool.columns(shard) for spool in spools] if moved else [],
            None if attributes is None else attributes.columns(shard),
        )

    def _join_shard(self, shard: _Shard, alone: Pool) -> AlignedBlock:
        rows = shard.rows
        self._items.check(shard.tables, alone)
        sides = self._sides(shard)
        keys = [own.keys for own in rows] * (2 // len(rows))
        matches = match_parts(rows[0].parts, rows[1].parts, alone) if len(rows) == 2 else None
        weigh = self._weigh(sides, keys, shard, alone)
        both = combine(sides, lambda: (keys[0], keys[1]), weigh, alone, matches)
        items = cache(partial(aligned_keys, keys, both.rows))
        if (
            shard.attributes is not None and not self._aligner.attributes_match
        ):  # as a rule, the first shard says so
            self._aligner.attributes_match = bool(np.isin(shard.attributes.keys, items()).any())
        columns = (
            self._columns(self._carried, shard, items, both, both.rows, alone) if self._carried else None
        )
        numbers = self._numbers([own.columns for own in rows], both.rows, both.true_keys.size)
        return self._aligner.finished(shard.number, both, numbers, columns)

    def _sides(self, shard: _Shard) -> tuple[Side, Side]:
        """Return the two sides of a shard that has rows."""
        sides: list[Side] = []
        for k, own in enumerate(shard.rows):
            names = self._pair.names if len(shard.rows) == 1 else self._pair.names[k : k + 1]
            reports = [self._report(k + each, shard.number) for each in range(len(names))]
            sides += sides_of(own, names, self._policies, reports)
        return sides[0], sides[1]

    def _weigh(
        self, sides: tuple[Side, Side], keys: list[NDArray[np.int64]], shard: _Shard, alone: Pool
    ) -> Callable[[Matched], Weights]:
        """Return the weights of matched rows: their own, or those of the weight table."""
        given = shard.weights
        if given is None:
            return partial(own_weights, sides)

        def weigh(matched: Matched) -> Weights:
            reports = self._report(WEIGHTS, shard.number), _ignore_fault
            found = [
                weights_by_key(own, given.keys, given.columns["weight"], given.items.first_of, alone, report)
                for own, report in zip(keys, reports, strict=True)
            ]
            return join_weights(found, matched), math.nan

        return weigh

    def _columns(
        self,
        carried: Carried,
        shard: _Shard,
        items: Callable[[], NDArray[np.int64]],
        both: Combination,
        matched: Matched,
        alone: Pool,
    ) -> pa.Table:
        """Return the columns of aligned rows: payload columns, columns joined by item, and columns rebuilt from keys.

        `items` returns the item key of each aligned row; `matched` is the row of the shard of each aligned row, by
        side.
        """
        columns = no_columns(both.true_keys.size)
        if shard.columns:
            rows = shard.rows * (2 // len(shard.rows))
            placed = [own.places(taken) for own, taken in zip(rows, matched, strict=True)]
            columns = carried.aligned(shard.columns, (placed[0], placed[1]))
        given, table = shard.attributes, shard.attribute_columns
        if given is not None and table is not None:
            report = self._report(ATTRIBUTES, shard.number)
            matches = match_table(
                items(), given.keys, given.items.first_of, REPEATED_ATTRIBUTES, alone, report
            )
            found = rows_or_null(table, given.places(matches.pred_of_true))
            for name in found.column_names:
                columns = columns.append_column(name, found[name])
        for name, kind in carried.from_keys.items():
            if name == "item":
                values = numbers_of_keys(kernels.partition.unmix_all(items()), kind)
            elif name == "true_cluster":
                values = numbers_of_keys(both.true_keys, kind, both.lacks_true)
            else:
                values = numbers_of_keys(both.pred_keys, kind, both.lacks_pred)
            columns = columns.append_column(name, values)
        return columns

    @staticmethod
    def _numbers(rows: list[dict[str, np.ndarray]], matched: Matched, n_rows: int) -> NDArray[np.int64]:
        """Return the truth's row number of each aligned row, or the prediction's if the truth lacks the row."""
        if "number" not in rows[0]:
            return np.arange(n_rows)  # no row can be a singleton
        true_rows, pred_rows = matched
        if true_rows is None:
            return rows[0]["number"]
        numbers = np.append(rows[0]["number"], -1)[true_rows]
        if pred_rows is not None and "number" in rows[-1]:
            missing = true_rows < 0
            numbers[missing] = rows[-1]["number"][pred_rows[missing]]
        return numbers

    # Faults

    def _report(self, side: int, shard: int) -> Report:
        return self._aligner.faults.report(side, shard)

    def _check_rest(self, k: int, table: ItemShards, shards: NDArray[np.int64]) -> None:
        """Report items that a table repeats, in shards that have no rows of either side."""
        for shard in shards.tolist():
            rows = table.read(shard, 0, ordered=False)
            self._items.check([rows.columns], self._pool)
            none, report = rows.keys[:0], self._report(k, shard)
            match_table(none, rows.keys, rows.items.first_of, REPEATED[k], self._pool, report)

    def named(self, side: int, fault: Fault) -> Fault:
        """Return a fault whose first few item keys are replaced by the item ids, looked up in the input."""
        if isinstance(fault, RepeatedTableRows):
            table = (self._pair.weight_table, self._pair.attribute_table)[side]
            assert table is not None
            return replace(fault, total=len(table[0]), first=self._find([table[0]], fault.first))
        sides = self._pair.stretches
        if not isinstance(fault, Unweighted):
            sides = (sides[min(side, len(sides) - 1)],)
        blocks_of_items = (
            items_of(block) for stretches in sides for stretch in stretches for block in stretch.blocks()
        )
        return replace(fault, first=self._find(blocks_of_items, fault.first))

    def _find(self, columns: Iterable[Column], keys: list[int]) -> list[Any]:
        """Return the first few item ids with one of these keys, in input order."""
        found: dict[int, Any] = {}
        for column in columns:
            own = self._items.keys(column, self._pool).first
            rows = np.flatnonzero(np.isin(own, keys))
            _, firsts = np.unique(own[rows], return_index=True)
            rows = rows[np.sort(firsts)]
            rows = rows[~np.isin(own[rows], list(found))][:4]
            found |= dict(zip(own[rows].tolist(), column.first_of(rows), strict=True))
            if len(found) >= 4:
                break
        return list(found.values())


def _dropped_keys(keys: Keys, kept: NDArray[np.int64]) -> list[int]:
    left_out = np.ones(keys.first.size, np.bool_)
    left_out[kept] = False
    found, firsts = np.unique(keys.first[left_out], return_index=True)
    return found[np.argsort(firsts)][:4].tolist()


def _ignore_fault(fault: Fault) -> None:
    """Ignore a fault; used when a table is looked up again for the second side, after its faults were reported."""


def join_bits(n_rows: int, words: int, carried: int, limit: int) -> int:
    """Return the number of bits of the shard number in a join, given the words and payload bytes of each row."""
    shards = -(-n_rows * (JOIN_BYTES * max(3, words) + 4 * carried) * JOINED_AT_ONCE // (limit // 3))
    return min(max(shards - 1, 0).bit_length(), MAX_SHARD_BITS)


def kept_of(limit: int) -> int:
    """Return the number of bytes of rows to be joined that may be kept in memory."""
    return limit // 6


def items_of(block: Block) -> Column:
    """Return the item ids of a block."""
    items = block.sides[0].items
    assert items is not None
    return items


#: Number of stretches sampled to find large clusters, and number of sampled rows of each.
SAMPLED, SAMPLE_ROWS = 8, 1 << 12


class Aligner:
    """Aligns two clusterings block by block, with `limit` bytes of memory; rows beyond that are spilled.

    It makes sides of blocks, applies policies to their combinations, and sums the faults of all blocks. Rows of
    tables with item ids are first brought together by item; see `ItemJoin`.

    `outer` states that weights apply to the mean only; `carried` are the payload columns; `kept`, the rows of the
    truth to restrict to; `seen` collects the content of the blocks for the fingerprint.
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
        carried: Carried | None = None,
        kept: RowsOfRun | None = None,
        seen: BlocksSeen | None = None,
    ) -> None:
        self.pair, self.policies, self.kept = pair, policies, kept
        self.outer = outer
        self._choice, self._seen, self._pool = choice, seen, pool
        self._numbered = policies.may_leave_alone or kept is not None
        self._memory = kept_of(limit)
        firsts = [next(side[0].blocks()) for side in pair.stretches]
        self.firsts = firsts[0].sides if len(firsts) == 1 else (firsts[0].sides[0], firsts[1].sides[0])
        if policies.noise is not None:
            require_known_type(policies, *(side.labels for side in self.firsts))
        items = [side.items for side in self.firsts if side.items is not None]
        items += [table[0] for table in (pair.weight_table, pair.attribute_table) if table is not None]
        if items and carried and policies.nulls == "raise":
            carried = replace(carried, from_keys=self._numbers(carried, number_type(*items)))
        self.carried = carried
        bits = join_bits(pair.n_rows, self._words(), _carried_bytes(firsts, carried), limit)
        self._labels = [
            Labels(side.labels, choice.seed, spill, self._memory // 3, max(1, bits)) for side in self.firsts
        ]
        self.weighted = pair.weight_table is not None or any(s.weight is not None for s in self.firsts)
        self._spill, self._bits = spill, bits
        self._items = Items(items, choice.seed) if self.firsts[0].items is not None else None
        self.odd_labels = OddLabels(), OddLabels()  #: odd labels of the truth and of the prediction
        self.faults = Faults()
        self.attributes_match = False  #: whether the table of attributes has any of the items joined so far
        self._has_special_keys = self._is_taken = False
        self._coverage: list[Coverage] = []
        self._coverage_kept: list[Coverage] = []
        self._n_absent: tuple[list[int], list[int]] = ([], [])
        self._n_repeats: tuple[list[int], list[int]] = ([], [])
        self._n_aligned: list[int] = []

    def _numbers(self, carried: Carried, item: pa.DataType | None) -> dict[str, pa.DataType]:
        """Return the types of the columns that can be rebuilt from keys, by name; they have no nulls."""
        found = {"item": item} if carried.ids and item is not None else {}
        if carried.labels:
            for name, labels in zip(("true_cluster", "pred_cluster"), self.firsts, strict=True):
                if (kind := number_type(labels.labels)) is not None:
                    found[name] = kind
        return found

    def _words(self) -> int:
        """Return the number of words of a row to be joined: item, labels, the item's proof, weight, number, flags."""
        first = self.firsts[0]
        proved = first.items is not None and not are_plain([first.items])
        labels = 3 - len(self.pair.stretches)
        return 1 + labels + proved + (first.weight is not None) + 2 * self._numbered

    @property
    def by_item(self) -> bool:
        """Whether rows are joined by item."""
        return self._items is not None

    def attribute_notes(self) -> list[dict[str, Any]]:
        """Return a warning if no item is in the table of attributes; call it after all rows are joined."""
        table = self.pair.attribute_table
        if table is None or self.attributes_match or not len(table[0]):
            return []
        return [unmatched_attributes(len(table[0]))]

    @property
    def may_lack(self) -> bool:
        """Whether a side may lack items that the other side has."""
        return len(self.pair.stretches) == 2 or self.policies.nulls == "drop"

    @property
    def expected_spill(self) -> int:
        """The approximate number of bytes spilled for the join and for the proof of label keys."""
        join = max(0, self.pair.n_rows * 32 - self._memory) if self.by_item else 0
        of_side = self.pair.n_rows // len(self.pair.stretches) * 16 - self._memory // 3
        return join + max(0, of_side) * sum(seed is not None for seed in self.seeds)

    @property
    def absent_key(self) -> int:
        """The label key that stands for items a side lacks."""
        return int((np.array([self._choice.start], np.int64) - 1)[0])

    @property
    def seeds(self) -> list[int | None]:
        """The seed of each side's hash function of labels; None for integers, which are their own keys."""
        return [labels.seed for labels in self._labels]

    @property
    def made_keys(self) -> tuple[int, int] | None:
        """The first key that policies made, and an upper bound on their number; None if they made none."""
        return (self._choice.start - 1, self.pair.n_rows + 1) if self._has_special_keys else None

    def sample_of_keys(self) -> list[NDArray[np.int64]]:
        """Return label keys of both sides, sampled from a few stretches, for rows that correspond."""
        side = self.pair.stretches[0]
        chosen = side[:: max(1, len(side) // SAMPLED)][:SAMPLED]

        def read(stretch: Stretch[Block]) -> list[NDArray[np.int64]]:
            block = next(stretch.blocks())
            found = []
            for side, seed in zip(block.sides, self.seeds, strict=True):
                column, nulls = side.labels, side.labels.null_rows
                n_rows = SAMPLE_ROWS if len(column) else 0
                rows = np.unique(np.random.default_rng(0).integers(0, len(column), n_rows))
                rows = rows if nulls is None else rows[~nulls[rows]]
                found.append(seeded_keys(as_column(column.take(rows), "label"), seed, Pool(1))[0])
            return found

        every = self._pool.map(read, chosen, stage="look at the rows")
        return [np.concatenate(own) for own in zip(*every, strict=True)]

    def run(self, take: Callable[[Any], None], readers: Pool) -> Coverage:
        """Align all rows on the threads of `readers`, and pass each aligned block to `take`.

        Returns the coverage.

        Raises
        ------
        Retry
            If keys collide; blocks already passed to `take` are then invalid.
        """
        if self._items is not None:
            join = ItemJoin(self, self._items, self._spill, self._bits, self._memory, self._pool)
            join.run(take, readers)
            return self._total(join.named)
        stretches = self.pair.stretches[0]
        rows = [stretch.n_rows for stretch in stretches]
        readers.map(lambda s: self._pass_on(s, take), stretches, stage="read rows", rows=rows)
        self.require_sound_rows()
        return self._total(lambda _, fault: fault)

    def _pass_on(self, stretch: Stretch[Block], take: Callable[[AlignedBlock], None]) -> None:
        """Align a stretch whose rows correspond, and pass its blocks to `take`."""
        with Pool(1) as alone:
            for block in stretch.blocks():
                true, pred = (
                    self.side(k, each, block.first_row, alone) for k, each in enumerate(block.sides)
                )
                both = combine((true, pred), None, partial(own_weights, (true, pred)), alone)
                numbers = np.arange(block.first_row, block.first_row + len(true))
                aligned = self.finished(block.first_row, both, numbers, self.columns(block, 0))
                if not self.faults:  # only counts faults after the first
                    take(aligned)

    def side(self, k: int, clustering: Clustering, first_row: int, alone: Pool) -> Side:
        """Return the side made of a block of side k, and record faults of its rows."""
        report = self.faults.report(k, first_row)
        if self._seen is not None:
            self._seen.add(k, clustering, first_row, alone)
        self.odd_labels[k].add(clustering.labels)
        keys = self._labels[k].keys(clustering.labels, first_row, alone)
        nulls = clustering.labels.null_rows
        side = Side.of(clustering, self.policies.of_side(k), keys, nulls, first_row=first_row, report=report)
        if side.weight is not None:
            check_weights(side.weight, side.name, self.outer, alone, first_row=first_row, report=report)
        if side.absent is not None:
            self._n_absent[k].append(side.n_null)
        return side

    def count_special(self, k: int, sides: tuple[Side, ...]) -> None:
        """Count nulls, noise and repeated rows of a block that will be joined later; its first side is side k."""
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
        """The columns carried with the rows of the sides; None if there are none."""
        return self.carried if self.carried and not self.carried.all_from_keys else None

    def columns(self, block: Block, k: int) -> pa.Table | None:
        """Return the payload columns of a block; its first side is side k."""
        return self.moved.of_block(block.sides, k, block.first_row) if self.moved else None

    def _account_for(self, both: Combination) -> None:
        """Add the counts of a block of aligned rows, and report its faults."""
        self._coverage.append(both.coverage)
        self._count_repeats(0, both.sides)
        self._n_aligned.append(both.true_keys.size)
        both.report_faults()

    def finished(
        self, index: Any, both: Combination, numbers: NDArray[np.int64], columns: pa.Table | None
    ) -> AlignedBlock:
        """Apply the policies to a block of aligned rows, and drop rows that are not kept.

        `numbers` identify rows; in a run restricted to rows of the truth, they are the truth's row numbers.
        """
        self._account_for(both)
        start, n_rows = self._choice.start, self.pair.n_rows
        self._is_taken = self._is_taken or any(
            is_used(start, keys, n_rows) for keys in (both.true_keys, both.pred_keys)
        )
        rows = None if self.kept is None else self.kept.keep(both, numbers)
        if rows is not None:
            both, numbers = both.take(rows), numbers[rows]
            columns = None if columns is None else columns.take(from_numpy(rows))
        self._coverage_kept.append(both.coverage)
        self._has_special_keys = self._has_special_keys or both.needs_special_keys
        true_keys, pred_keys, _, _ = both.finished(start, numbers)
        return AlignedBlock(index, true_keys, pred_keys, both.weight, columns)

    def require_sound_rows(self) -> None:
        """Raise an error for faults of single rows; call it after all rows are read."""
        self.faults.enforce(self._whole, WeightsOutOfRange.step)

    def _total(self, named: Callable[[int, Fault], Fault]) -> Coverage:
        """Return the coverage of all kept rows; raise Retry, or the error of the first fault over all blocks.

        `named` replaces item keys in faults found after a join by item ids.
        """
        for labels in self._labels:
            labels.check(self._pool)
        if self._has_special_keys and self._is_taken:
            raise Retry(seed=False)
        coverage = Coverage.total(self._coverage)

        def whole(side: int, fault: Fault) -> Fault:
            return named(side, self._whole(side, fault))

        self.faults.enforce(whole, RepeatedTableRows.step)
        if not found_nothing(self.firsts[1], self.policies):
            require_common(coverage, *self._facts())
        self.faults.enforce(whole, Unweighted.step)
        if self.kept is None:
            return coverage
        self.kept.coverage = coverage
        return Coverage.total(self._coverage_kept)

    def _facts(self) -> tuple[Facts, Facts]:
        """Return the facts about both sides that messages show."""
        sides = self.pair.stretches if len(self.pair.stretches) == 2 else self.pair.stretches * 2
        found = []
        for k, (side, first) in enumerate(zip(sides, self.firsts, strict=True)):
            rows = sum(stretch.n_rows for stretch in side)
            found.append(Facts(self.pair.names[k], rows, sum(self._n_absent[k]), first.items, len(first)))
        return found[0], found[1]

    def _whole(self, side: int, fault: Fault) -> Fault:
        """Return a fault with the number of all rows or items, including those of blocks without the fault."""
        if isinstance(fault, RepeatedTableRows):
            return fault  # its total, the rows of the table, is already set
        total = sum(self._n_aligned)
        if not isinstance(fault, Unweighted):
            total = self._facts()[side].n_rows
        if isinstance(fault, Overlap):
            total -= sum(self._n_repeats[side])
        if isinstance(fault, Repeated):
            first = self.firsts[side]
            fault = replace(fault, hint=sources_hint(first.items, first.attribute_names))
        return replace(fault, total=total)


def _carried_bytes(firsts: list[Block], carried: Carried | None) -> int:
    """Return the payload bytes per row, estimated from the first blocks."""
    if not carried:
        return 0
    tables = [carried.of_block(block.sides, k, block.first_row) for k, block in enumerate(firsts)]
    return max(table.nbytes // max(1, table.num_rows) for table in tables)
