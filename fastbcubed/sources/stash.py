"""Arrow tables that wait on disk, in pieces, until the rows that they belong to come round again."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.runtime.spill import Spill
from fastbcubed.sources.selection import combined, plain

__all__ = ["Stash"]

#: Pieces begin at multiples of this, as Arrow likes its buffers.
ALIGNED = 64


class Stash:
    """Batches of a table, each in pieces by shard.

    Parameters
    ----------
    spill : Spill
        Where they go.
    n_shards : int
        Pieces of each batch.
    """

    def __init__(self, spill: Spill, n_shards: int = 1) -> None:
        self._spill = spill
        self._n_shards = n_shards
        self._lock = threading.Lock()
        self._schema: pa.Schema | None = None
        self._batches: dict[Any, tuple[int, NDArray[np.int64]]] = {}

    def put(self, index: Any, table: pa.Table, bounds: NDArray[np.int64] | None = None) -> None:
        """Take a batch whose rows are sorted by shard, and where each shard begins in it.

        Batches are read back in the order of their indexes, whatever order they come in.
        """
        bounds = np.array([0, table.num_rows]) if bounds is None else bounds
        whole = pa.RecordBatch.from_arrays(
            [combined(plain(column)) for column in table.columns], names=table.column_names
        )
        with self._lock:
            if self._schema is None:
                self._schema = whole.schema
        if whole.schema != self._schema:
            whole = whole.cast(self._schema)
        pieces = [
            whole.slice(a, b - a).serialize() if b > a else b""
            for a, b in zip(bounds.tolist(), bounds[1:].tolist(), strict=False)
        ]
        sizes = [-(-len(piece) // ALIGNED) * ALIGNED for piece in pieces]
        starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
        with self._spill.pages() as pages:
            room = pages.empty(int(starts[-1]), np.dtype(np.uint8))
            for start, piece in zip(starts.tolist(), pieces, strict=False):
                room[start : start + len(piece)] = np.frombuffer(piece, np.uint8)
            at = self._spill.write(pages.first(room.size)) if room.size else 0
        with self._lock:
            self._batches[index] = (at, starts)

    def read(self, shard: int) -> pa.Table:
        """Bring the pieces of a shard together, in the order of the batches."""
        return self._bring(sorted(self._batches), shard)

    def read_batch(self, k: int) -> pa.Table:
        """Return a batch of one piece, by the rank of its index."""
        return self._bring([sorted(self._batches)[k]], 0)

    def _bring(self, indexes: list[Any], shard: int) -> pa.Table:
        pieces = []
        for index in indexes:
            at, starts = self._batches[index]
            first, last = starts[shard : shard + 2].tolist()
            if first < last:
                pieces.append((at + first, np.empty(last - first, np.uint8)))
        self._spill.read(*pieces)
        batches = [pa.ipc.read_record_batch(pa.py_buffer(data), self._schema) for _, data in pieces]
        return pa.Table.from_batches(batches, self._schema)
