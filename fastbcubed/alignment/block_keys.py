"""Keys of labels and items, block by block, and the proof that different values have different keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.clusterings.stretches import Block
from fastbcubed.errors import IdTypeError
from fastbcubed.runtime.parts import offsets
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill
from fastbcubed.runtime.spool import Spool
from fastbcubed.sources.columns import Column
from fastbcubed.sources.fingerprints import find_collision
from fastbcubed.sources.keys import are_plain, check_kinds, proved_keys, seeded_keys

PAIR = np.dtype([("first", "u8"), ("second", "u8")])


class Keys(NamedTuple):
    """Keys of items, and the words that prove them; None where integers are their own keys."""

    first: NDArray[np.int64]
    second: NDArray[np.uint64] | None

    def take(self, rows: NDArray[np.int64]) -> Keys:
        """Choose rows."""
        return Keys(self.first[rows], None if self.second is None else self.second[rows])


class Retry(Exception):
    """Two values have equal keys, or a special key is in use: begin again with the next seed or start."""

    def __init__(self, *, seed: bool) -> None:
        self.seed = seed


class Labels:
    """Keys of the labels of one side, block by block, and the proof that different labels have different keys.

    `first` are those of the first block; the seed tells the hash function, if they are not integers. Pairs of words
    that prove the keys are in 2**bits shards, at least two; `memory` bytes of them may be kept.
    """

    def __init__(self, first: Column, seed: int, spill: Spill, memory: int, bits: int) -> None:
        self._kinds = first.kinds
        self.seed = None if are_plain([first]) else seed
        self._shift = np.uint64(64 - bits)
        self._pairs = Spool(PAIR, 1 << bits, spill, memory)

    def keys(self, column: Column, index: Any, pool: Pool) -> NDArray[np.int64]:
        """Return the keys of a block."""
        require_kinds(column, self._kinds)
        keys, pairs = seeded_keys(column, self.seed, pool)
        for k, (first, second) in enumerate(pairs):
            put_pairs(self._pairs, (index, k), first, second, self._shift)
        return keys

    def check(self, pool: Pool) -> None:
        """Raise Retry if two different labels have the same key."""
        for _, found in self._pairs.read_ahead(range(self._pairs.n_shards), pool, "check labels"):
            halves = (np.ascontiguousarray(found["first"]), np.ascontiguousarray(found["second"]))
            if find_collision([halves], pool):
                raise Retry(seed=True)
        self._pairs.clear()


def put_pairs(spool: Spool, index: Any, first: np.ndarray, second: np.ndarray, shift: np.uint64) -> None:
    """Put pairs of words into the shards that the leading bits of the first words say."""
    counts = np.zeros((1, spool.n_shards), np.int64)
    kernels.hashing.count_partitions(first, shift, counts[0])
    bounds, next_row = offsets(counts)
    with spool.pages() as pages:
        pairs = pages.empty(first.size, PAIR).view(np.uint64).reshape(-1, 2)
        kernels.hashing.scatter_pairs(first, second, shift, next_row[0], pairs)
        spool.put(index, pages, bounds)


def require_kinds(column: Column, kinds: tuple[str, ...]) -> None:
    """Raise if a block holds ids of another kind than the first."""
    if column.kinds != kinds:
        raise IdTypeError(
            f"{column.where} holds {' and '.join(column.kinds)} ids in some rows and {' and '.join(kinds)} ids "
            "in others. Cast the column to one type."
        )


class Items:
    """Keys of the items of both sides, and the proof that different items have different keys.

    Without columns, items go by their position, which is their key.
    """

    def __init__(self, columns: Sequence[Column], seed: int) -> None:
        check_kinds(columns)
        self.by_position = not columns
        self._kinds = () if self.by_position else columns[0].kinds
        self.seed = None if self.by_position or are_plain(columns) else seed

    def keys_of(self, block: Block, pool: Pool) -> Keys:
        """Return the keys of the rows of a block."""
        items = block.sides[0].items
        if items is None:
            return Keys(np.arange(block.first_row, block.first_row + len(block.sides[0])), None)
        return self.keys(items, pool)

    def keys(self, column: Column, pool: Pool) -> Keys:
        """Return the keys of a block."""
        require_kinds(column, self._kinds)
        if self.seed is None:
            return Keys(seeded_keys(column, None, pool)[0], None)
        return Keys(*proved_keys(column, self.seed, pool))

    def check(self, shards: Sequence[dict[str, np.ndarray]], pool: Pool) -> None:
        """Raise Retry if two different items of a shard have the same key."""
        if self.seed is None:
            return
        pairs = [(rows["key"].view(np.uint64), rows["second"]) for rows in shards]
        if find_collision(pairs, pool):
            raise Retry(seed=True)
