"""Columns of rows that are stored on disk by shard while the keys of these rows are processed."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import ColumnError
from fastbcubed.inputs.arrays import combined, common_type, plain
from fastbcubed.runtime.spill import Spill

#: Pieces begin at multiples of this number of bytes, the alignment that Arrow recommends.
ALIGNED = 64


class Stash:
    """Batches of a table, each divided into pieces by shard."""

    def __init__(self, spill: Spill) -> None:
        self._spill = spill
        self._lock = threading.Lock()
        self._schema: pa.Schema | None = None
        self._batches: dict[Any, tuple[int, NDArray[np.int64], pa.Schema]] = {}

    def __bool__(self) -> bool:
        return bool(self._batches)

    def put(self, index: Any, table: pa.Table, bounds: NDArray[np.int64] | None = None) -> None:
        """Add a batch whose rows are sorted by shard; `bounds` is where each shard begins.

        Batches are read back in the order of their indexes, even if they were added in another order.
        """
        bounds = np.array([0, table.num_rows]) if bounds is None else bounds
        whole = pa.RecordBatch.from_arrays(
            [combined(plain(column)) for column in table.columns], names=table.column_names
        )
        with self._lock:
            self._schema = whole.schema if self._schema is None else _wider(self._schema, whole.schema)
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
            self._batches[index] = (at, starts, whole.schema)

    def read(self, shard: int) -> pa.Table:
        """Return the concatenated pieces of a shard, in the order of the batches."""
        return self._bring(sorted(self._batches), shard)

    def read_batch(self, k: int) -> pa.Table:
        """Return a batch that has a single piece, by the rank of its index."""
        return self._bring([sorted(self._batches)[k]], 0)

    def _bring(self, indexes: list[Any], shard: int) -> pa.Table:
        pieces, schemas = [], []
        for index in indexes:
            at, starts, schema = self._batches[index]
            first, last = starts[shard : shard + 2].tolist()
            if first < last:
                pieces.append((at + first, np.empty(last - first, np.uint8)))
                schemas.append(schema)
        self._spill.read(*pieces)
        tables = [
            pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(data), schema)])
            for (_, data), schema in zip(pieces, schemas, strict=True)
        ]
        try:
            none = pa.Table.from_batches([], self._schema)
            return pa.concat_tables([none, *(table.cast(self._schema) for table in tables)])
        except pa.ArrowInvalid as error:
            raise ColumnError(
                f"A column has different types in different rows: {error}. Cast it to one type."
            ) from error


def _wider(a: pa.Schema, b: pa.Schema) -> pa.Schema:
    """Return the columns of types wide enough for two batches of one table; raise ColumnError if there are none."""
    if a == b:
        return a
    kinds = [
        common_type((own.type, other.type), f"Column {own.name!r}") for own, other in zip(a, b, strict=True)
    ]
    return pa.schema(list(zip(a.names, kinds, strict=True)))
