"""Blocks of two clusterings → aligned blocks: rows that correspond at once, others joined by item in shards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.block_keys import Items, Labels
from fastbcubed.alignment.carried import Carried, number_type
from fastbcubed.alignment.combination import combine
from fastbcubed.alignment.common_rows import RowsOfRun
from fastbcubed.alignment.item_join import ItemJoin, join_bits, kept_of
from fastbcubed.alignment.policies import Coverage, Policies
from fastbcubed.alignment.row_aligner import AlignedBlock, Choice, Gather, RowAligner
from fastbcubed.alignment.side import Side, require_known_type
from fastbcubed.alignment.weights import own_weights
from fastbcubed.clusterings.content import BlocksSeen
from fastbcubed.clusterings.stretches import Block, Pair, Stretch
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill
from fastbcubed.sources.columns import as_column
from fastbcubed.sources.keys import are_plain, seeded_keys

#: Stretches, and rows of each, in which large clusters are looked for.
SAMPLED, SAMPLE_ROWS = 8, 1 << 12
#: How many times as much memory rows take where several are brought together to an item.
GATHERED = 2


class Aligner:
    """Aligns two clusterings block by block, with `limit` bytes of memory; what does not fit goes to the spill.

    `outer` tells whether weights serve the mean alone, `null_is_absent` whether a null cluster says "not on that
    side" (the one-table form), `carried` which columns go with the rows, `kept` which rows of the truth count.
    Rows of memberships, of which an item has several, are brought together by `gather`. What the blocks hold is
    added up in `seen`.
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
        kept: RowsOfRun | None = None,
        gather: Gather | None = None,
        seen: BlocksSeen | None = None,
    ) -> None:
        self.pair = pair
        self._numbered = policies.may_leave_alone or kept is not None
        self._policies, self._null_is_absent = policies, null_is_absent
        self._pool = pool
        self._memory = kept_of(limit)
        firsts = [next(side[0].blocks()) for side in pair.stretches]
        self.firsts = firsts[0].sides if len(firsts) == 1 else (firsts[0].sides[0], firsts[1].sides[0])
        if policies.noise is not None:
            require_known_type(policies.noise, *(side.labels for side in self.firsts))
        items = [side.items for side in self.firsts if side.items is not None]
        items += [table[0] for table in (pair.weight_table, pair.attribute_table) if table is not None]
        if items and carried and policies.nulls == "raise" and not null_is_absent:
            carried = replace(carried, from_keys=self._numbers(carried, number_type(*items)))
        words = self._words() * (GATHERED if gather is not None else 1)
        bits = join_bits(pair.n_rows, words, _carried_bytes(firsts, carried), limit)
        labels = [
            Labels(side.labels, choice.seed, spill, self._memory // 3, max(1, bits)) for side in self.firsts
        ]
        self.weighted = pair.weight_table is not None or any(s.weight is not None for s in self.firsts)
        self.by_item = self.firsts[0].items is not None or gather is not None
        self.rows = RowAligner(
            pair, self.firsts, labels, policies, choice, outer, null_is_absent, carried, kept, seen
        )
        if self.by_item:
            keys = Items(items, choice.seed)
            self._join = ItemJoin(self.rows, keys, spill, bits, self._memory, pool, gather)

    def _numbers(self, carried: Carried, item: pa.DataType | None) -> dict[str, pa.DataType]:
        """Return the columns that can be made of keys again, and their types; there are no nulls among them."""
        found = {"item": item} if carried.ids and item is not None else {}
        if carried.labels:
            for name, labels in zip(("true_cluster", "pred_cluster"), self.firsts, strict=True):
                if (kind := number_type(labels.labels)) is not None:
                    found[name] = kind
        return found

    def _words(self) -> int:
        """Return the words of a row that is to be joined: item, labels, what proves the item, weight, number, flags."""
        first = self.firsts[0]
        proved = first.items is not None and not are_plain([first.items])
        labels = 3 - len(self.pair.stretches)
        return 1 + labels + proved + (first.weight is not None) + 2 * self._numbered

    @property
    def may_lack(self) -> bool:
        """Whether a side may lack items of the other."""
        return len(self.pair.stretches) == 2 or self._null_is_absent or self._policies.nulls == "drop"

    @property
    def expected_spill(self) -> int:
        """The bytes that are spilled for the join, and to prove the keys of labels, about."""
        join = max(0, self.pair.n_rows * 32 - self._memory) if self.by_item else 0
        of_side = self.pair.n_rows // len(self.pair.stretches) * 16 - self._memory // 3
        return join + max(0, of_side) * sum(seed is not None for seed in self.seeds)

    @property
    def absent_key(self) -> int:
        """The key of items that a side lacks."""
        return int((np.array([self.rows.choice.start], np.int64) - 1)[0])

    @property
    def seeds(self) -> list[int | None]:
        """The hash function of each side's labels; None where integers are their own keys."""
        return [labels.seed for labels in self.rows.labels]

    @property
    def made_keys(self) -> tuple[int, int] | None:
        """The first key that policies have made, and how many they may be; None if they have made none."""
        return (self.rows.choice.start - 1, self.pair.n_rows + 1) if self.rows.has_special_keys else None

    def sample_of_keys(self) -> list[NDArray[np.int64]]:
        """Return keys of both sides' labels from a few stretches, spread over all, where rows come as they are."""
        side = self.pair.stretches[0]
        chosen = side[:: max(1, len(side) // SAMPLED)][:SAMPLED]

        def read(stretch: Stretch) -> list[NDArray[np.int64]]:
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
        """Align all rows, on the threads of `readers`, and hand each block on, as sets if these are gathered.

        Returns the coverage.

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
            self.rows.require_sound_rows()
        return self.rows.total(self._pool, self._join.named if self.by_item else lambda _, fault: fault)

    # Rows that correspond

    def _pass_on(self, stretch: Stretch, take: Callable[[AlignedBlock], None]) -> None:
        with Pool(1) as alone:
            for block in stretch.blocks():
                sides = self._sides(block, alone)
                both = combine(sides, None, partial(own_weights, sides), alone)
                numbers = np.arange(block.first_row, block.first_row + len(sides[0]))
                columns = self.rows.columns(block, 0)
                aligned = self.rows.finished(block.first_row, both, numbers, columns)
                if not self.rows.faults:  # which are counted to the end, but nothing else is done
                    take(aligned)

    def _sides(self, block: Block, alone: Pool) -> tuple[Side, Side]:
        true_side, pred_side = (
            self.rows.side(k, clustering, block.first_row, alone) for k, clustering in enumerate(block.sides)
        )
        return true_side, pred_side


def _carried_bytes(firsts: list[Block], carried: Carried | None) -> int:
    """Return the bytes of a row that are carried along, judged by the first blocks."""
    if not carried:
        return 0
    tables = [carried.of_block(block.sides, k, block.first_row) for k, block in enumerate(firsts)]
    return max(table.nbytes // max(1, table.num_rows) for table in tables)
