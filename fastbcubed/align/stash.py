"""Columns of rows that are stored on disk by shard while the keys of these rows are processed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import ColumnError
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import combined, common_type, nulls_in_codes, plain
from fastbcubed.runtime.spill import Spill

#: Maximum number of distinct strings of an attribute that are stored as codes.
MOST_VALUES = 1 << 12
#: Pieces begin at multiples of this number of bytes, the alignment that Arrow recommends.
ALIGNED = 64


class Categories:
    """The values of an attribute that is a dictionary of few strings so far; their codes never change."""

    # Idea: a code takes one or two bytes where a string of ten takes fourteen. It is not the code in the input, each
    # batch of which may have a dictionary of its own. Ordered categories are stored as strings, because a value gets
    # its code when a thread first sees it, which would lose their order.

    def __init__(self, kind: pa.DictionaryType) -> None:
        self.kind, self._known = kind, pa.array([], kind.value_type)
        self.is_coded = True  # until a batch has another type, or there are too many values
        self._last = self._known, pa.array([], pa.int8())  # a dictionary, and the codes of its values

    @classmethod
    def of(cls, name: str, kind: pa.DataType) -> Categories | None:
        """Return the values of a column; None for a column that is stored plainly."""
        if "." not in name or not pa.types.is_dictionary(kind) or kind.ordered:
            return None
        is_text = pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type)
        return cls(kind) if is_text else None

    def codes(self, kind: pa.DataType, dictionary: pa.Array) -> pa.Array | None:
        """Return the codes of a batch's values, which become known; None if the batch is to be stored as strings."""
        self.is_coded = self.is_coded and kind == self.kind
        if self.is_coded and not dictionary.equals(self._last[0]):
            new = dictionary.filter(pc.invert(pc.is_in(dictionary, self._known))).unique()
            self.is_coded = len(self._known) + len(new) <= MOST_VALUES
            if self.is_coded:
                self._known = pa.concat_arrays([self._known, new])
                narrow = pa.int8() if len(self._known) <= 1 << 7 else pa.int16()
                self._last = dictionary, pc.index_in(dictionary, self._known).cast(narrow)
        return self._last[1] if self.is_coded else None

    def decoded(self, stored: pa.Array) -> pa.Array:
        """Return the strings of a batch that is stored as codes, or as strings."""
        return self._known.take(stored) if pa.types.is_integer(stored.type) else stored

    def read(self, pieces: Sequence[pa.Array]) -> pa.DictionaryArray:
        """Return batches, all of which are stored as codes, as a dictionary of ascending values."""
        order = pc.array_sort_indices(self._known)
        is_enough = len(order) <= 1 << self.kind.index_type.bit_width - 1
        rank = pc.array_sort_indices(order).cast(self.kind.index_type if is_enough else pa.int16())
        wide = pa.int16() if any(pa.types.is_int16(own.type) for own in pieces) else pa.int8()
        codes = pa.concat_arrays([pa.array([], wide), *(own.cast(wide) for own in pieces)])
        return pa.DictionaryArray.from_arrays(rank.take(codes), self._known.take(order))


class Stash:
    """Batches of a table, each divided into pieces by shard."""

    def __init__(self, spill: Spill) -> None:
        self._spill = spill
        self._lock = threading.Lock()
        self._schema: pa.Schema | None = None
        self._batches: dict[Any, tuple[int, NDArray[np.int64], pa.Schema]] = {}
        self._categories: dict[str, Categories | None] = {}

    def __bool__(self) -> bool:
        return bool(self._batches)

    def put(self, index: Any, table: pa.Table, bounds: NDArray[np.int64] | None = None) -> None:
        """Add a batch whose rows are sorted by shard; `bounds` is where each shard begins.

        Batches are read back in the order of their indexes, even if they were added in another order.
        """
        bounds = np.array([0, table.num_rows]) if bounds is None else bounds
        columns, kinds = {}, {}
        for name, column in zip(table.column_names, table.columns, strict=True):
            codes = self._codes(name, column)
            columns[name] = combined(plain(column)) if codes is None else codes
            kinds[name] = columns[name].type if codes is None else column.type.value_type
        whole, own = pa.RecordBatch.from_pydict(columns), pa.schema(kinds)
        with self._lock:
            self._schema = own if self._schema is None else _wider(self._schema, own)
        pieces = [whole.slice(a, b - a) for a, b in zip(bounds.tolist(), bounds[1:].tolist(), strict=False)]
        sizes = [-(-pa.ipc.get_record_batch_size(each) // ALIGNED) * ALIGNED * bool(each) for each in pieces]
        starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
        with self._spill.pages() as pages:
            room = pages.empty(int(starts[-1]), np.dtype(np.uint8))
            for start, each in zip(starts.tolist(), pieces, strict=False):
                if each:  # one piece at a time, as all of them take as much as the batch
                    piece = each.serialize()
                    room[start : start + len(piece)] = np.frombuffer(piece, np.uint8)
            at = self._spill.write(pages.first(room.size)) if room.size else 0
        with self._lock:
            self._batches[index] = (at, starts, whole.schema)

    def _codes(self, name: str, column: pa.ChunkedArray) -> pa.Array | None:
        """Return the stored codes of a column of a batch; None if it is stored plainly."""
        with self._lock:
            own = self._categories.setdefault(name, Categories.of(name, column.type))
        if own is None:
            return None
        whole = combined(nulls_in_codes(column)) if pa.types.is_dictionary(column.type) else None
        with self._lock:
            codes = own.codes(column.type, None if whole is None else whole.dictionary)
        return None if codes is None or whole is None else codes.take(whole.indices)

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
        batches = [
            pa.ipc.read_record_batch(pa.py_buffer(data), schema)
            for (_, data), schema in zip(pieces, schemas, strict=True)
        ]
        assert self._schema is not None
        try:
            return pa.table(
                {
                    field.name: self._column(field, [batch[field.name] for batch in batches])
                    for field in self._schema
                }
            )
        except pa.ArrowInvalid as error:
            raise ColumnError(
                f"A column has different types in different rows: {error}. Cast it to one type."
            ) from error

    def _column(self, field: pa.Field, pieces: Sequence[pa.Array]) -> pa.Array | pa.ChunkedArray:
        """Return a column of consecutive pieces from the form in which they are stored."""
        own = self._categories[field.name]
        if own is not None and own.is_coded:
            return own.read(pieces)
        plainly = pieces if own is None else map(own.decoded, pieces)
        return pa.chunked_array([each.cast(field.type) for each in plainly], field.type)


def _wider(a: pa.Schema, b: pa.Schema) -> pa.Schema:
    """Return the columns of types wide enough for two batches of one table; raise ColumnError if there are none."""
    if a == b:
        return a
    kinds = [
        common_type((own.type, other.type), f"Column {own.name!r}") for own, other in zip(a, b, strict=True)
    ]
    return pa.schema(list(zip(a.names, kinds, strict=True)))
