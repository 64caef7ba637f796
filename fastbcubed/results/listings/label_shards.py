"""The labels of all clusters of a side, in shards by their keys, as codes of clusters are: one scan names them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.clusterings.stretches import Stretch
from fastbcubed.runtime.grouping import number
from fastbcubed.runtime.joining import match
from fastbcubed.runtime.parts import MAX_BITS
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill
from fastbcubed.sources.arrays import from_numpy, to_numpy
from fastbcubed.sources.columns import Column
from fastbcubed.sources.keys import seeded_keys
from fastbcubed.sources.selection import combined
from fastbcubed.sources.stash import Stash


class LabelShards:
    """Labels by their keys, in shards; of a shard, all labels are read when one of them is asked for."""

    def __init__(
        self,
        stretches: Sequence[Stretch],
        labels_of: Callable[[Sequence[Any]], Column],
        seed: int | None,
        bits: int,
        spill: Spill,
        pool: Pool,
    ) -> None:
        self._stash = Stash(spill)
        self._bits = bits
        self._read: tuple[int, NDArray[np.int64], pa.Array] | None = None

        def put(stretch: Stretch) -> None:
            with Pool(1) as alone:
                for block in stretch.blocks():
                    self._put(block.first_row, labels_of(block.sides), seed, alone)

        pool.map(put, stretches, stage="bring the names of clusters together")

    def _put(self, index: int, labels: Column, seed: int | None, alone: Pool) -> None:
        """Take the labels of a block, each once."""
        keys, _ = seeded_keys(labels, seed, alone)
        nulls = labels.null_rows
        if nulls is None:
            rows = number(keys, alone).firsts
        else:  # their keys are arbitrary
            known = np.flatnonzero(~nulls)
            rows = known[number(keys[known], alone).firsts]
        mixed = kernels.partition.mix_all(keys[rows])
        home = self._home(mixed)
        order = np.argsort(home, kind="stable")
        bounds = np.append(0, np.cumsum(np.bincount(home, minlength=1 << self._bits)))
        table = pa.table({"key": from_numpy(mixed[order]), "label": labels.take(rows[order])})
        self._stash.put(index, table, bounds)

    def _home(self, mixed: NDArray[np.int64]) -> NDArray[np.int16]:
        """Return the shard of each key, which the bits say that send rows and cells to their shards."""
        bits_of = kernels.partition.bits_of
        bits_of = getattr(bits_of, "py_func", bits_of)  # for arrays, whether it is compiled or not
        home: NDArray[np.int64] = bits_of(mixed, MAX_BITS, self._bits)
        return home.astype(np.int16)

    def find(self, mixed: NDArray[np.int64], pool: Pool) -> tuple[pa.Array, NDArray[np.bool_]]:
        """Return the label of each mixed key, and which of them have one. Shape (n,)."""
        home = self._home(mixed)
        pieces, at = [], np.full(mixed.size, -1)
        n_labels = 0
        for shard in np.unique(home).tolist():
            keys, labels = self._shard(shard)
            rows = np.flatnonzero(home == shard)
            found = match(mixed[rows], keys, pool).pred_of_true
            known = rows[found >= 0]
            pieces.append(labels.take(from_numpy(found[found >= 0])))
            at[known] = n_labels + np.arange(known.size)
            n_labels += known.size
        if not pieces:
            pieces = [self._shard(0)[1].slice(0, 0)]
        return combined(pa.chunked_array(pieces)).take(from_numpy(at, at < 0)), at >= 0

    def _shard(self, shard: int) -> tuple[NDArray[np.int64], pa.Array]:
        if self._read is None or self._read[0] != shard:
            self._read = None  # before the next one is there
            table = self._stash.read(shard)
            self._read = (shard, to_numpy(table["key"].combine_chunks()), combined(table["label"]))
        return self._read[1:]
