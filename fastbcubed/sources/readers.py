"""Tables that pass by once, batch by batch → rows in a spill file, which can be read in blocks and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.runtime.spill import Pages, Spill
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import is_dataset, no_rows
from fastbcubed.sources.formats import in_blocks, reading
from fastbcubed.sources.selection import plain
from fastbcubed.sources.tables import ArrowRows, BaseRows, Rows
from fastbcubed.sources.validity import require_valid
from fastbcubed.sources.wrappers import arrow_reader, relation_schema, unwrapped

#: Rows of the batches that are asked for, where the source lets us choose.
BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class Stream:
    """A table that passes by: its columns, and what yields the batches of some of them, once."""

    schema: pa.Schema
    batches: Callable[[list[str]], Iterable[pa.RecordBatch]]


def open_stream(source: Any) -> Stream | None:
    """Return the batches of what need not be held in memory; None for what lies there, or is no table.

    A record-batch reader, an Arrow data set, a relation of DuckDB, or anything else that exports an Arrow
    stream and has no length.
    """
    if is_dataset(source):
        return Stream(source.schema, partial(_scan, source))
    result = unwrapped(source)
    if (schema := relation_schema(result)) is not None:  # one result at a time: it is opened when it is read
        return Stream(
            schema, lambda names: (batch.select(names) for batch in arrow_reader(result, BATCH_ROWS))
        )
    if (reader := arrow_reader(result, BATCH_ROWS)) is not None:  # DuckDB has a length, but no rows yet
        source = reader
    if hasattr(source, "__len__") or not hasattr(source, "__arrow_c_stream__"):
        return None
    if not isinstance(source, pa.RecordBatchReader):
        try:
            source = pa.RecordBatchReader.from_stream(source)
        except pa.ArrowInvalid:  # a column, not a table
            return None
    return Stream(source.schema, lambda names: (batch.select(names) for batch in source))


def _scan(dataset: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
    with reading("An Arrow data set", "a table"):
        yield from dataset.to_batches(
            columns=names, batch_size=BATCH_ROWS, batch_readahead=1, fragment_readahead=1
        )


class DatasetRows(BaseRows):
    """The rows of an Arrow data set; columns are read when asked for."""

    def __init__(self, dataset: Any, where: str) -> None:
        super().__init__(dataset.schema.names, where)
        self._dataset = dataset

    def __len__(self) -> int:
        return int(self._dataset.count_rows())

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column."""
        return self._dataset.schema.field(name).type

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        with reading(f"The Arrow data set of {self.where}", "a table"):
            return self._dataset.to_table(columns=list(dict.fromkeys(names))).select(names).columns


@dataclass(frozen=True)
class Piece:
    """Consecutive rows in the spill file: where they begin, their bytes, their number."""

    at: int
    n_bytes: int
    n_rows: int


class SpooledRows(BaseRows):
    """The rows of a stream, of the columns that are used, in pieces that are mapped and not held."""

    def __init__(self, schema: pa.Schema, where: str, spill: Spill) -> None:
        super().__init__(schema.names, where)
        self._schema, self._spill = schema, spill
        self.pieces: list[Piece] = []

    def __len__(self) -> int:
        return sum(piece.n_rows for piece in self.pieces)

    def type_of(self, name: str) -> pa.DataType:
        """Return the type that a column has in the file."""
        return plain(self._empty([name]).column(0)).type

    def read_piece(self, piece: Piece, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return columns of a piece."""
        data = self._spill.map(piece.at, piece.n_bytes, np.dtype(np.uint8))
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            return reader.read_all().select(names).columns

    def _empty(self, names: Sequence[str]) -> pa.Table:
        return no_rows(self._schema).select(names)

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        found = [self.read_piece(piece, names) for piece in self.pieces]
        found = found or [[plain(column) for column in self._empty(names).columns]]
        return [pa.chunked_array([c for part in parts for c in part.chunks], parts[0].type)
                for parts in zip(*found, strict=True)]  # fmt: skip


class _Asked(ArrowRows):
    """No rows, but all columns, which note that they are asked for."""

    def __init__(self, schema: pa.Schema, where: str, like: Rows | None = None) -> None:
        super().__init__(no_rows(schema), where, like)
        self.asked: dict[str, None] = {}

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        self.asked.update(dict.fromkeys(names))
        return super()._read(names)


def columns_used(table: Rows, use: Callable[[Rows], Any]) -> list[str]:
    """Return which columns are used by what will be done with each block of a table; it raises if one is missing."""
    asked = _Asked(pa.schema([(name, table.type_of(name)) for name in table.names]), table.where, table)
    use(asked)
    return list(asked.asked)


def spool(
    stream: Stream, where: str, use: Callable[[Rows], Any], spill: Spill, size: int, *, every: bool = False
) -> SpooledRows:
    """Read a stream to its end, and write the columns that are used to the disk.

    An error that the stream raises passes, with a note of where. `use` says what will be done with each block
    of rows: it shows which columns are used, all if `every`, and raises if the table lacks one. The spill
    file must be of no other use.
    """
    asked = _Asked(stream.schema, where)
    use(asked)
    names = list(asked.asked)
    if every:
        names = [name for name in stream.schema.names if stream.schema.names.count(name) == 1]
    rows, pages = SpooledRows(stream.schema, where, spill), Pages()
    for table in in_blocks(_noting(stream.batches(names), where), size):
        for name, column in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_dictionary(column.type) and any(map(_has_strange_codes, column.chunks)):
                require_valid(column, f"column {name!r} of {where}")  # raises
        whole = pa.table([plain(column) for column in table.columns], names=table.column_names)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, whole.schema) as writer:
            writer.write_table(whole.combine_chunks())
        data = np.frombuffer(sink.getvalue(), np.uint8)
        spill.require_free(data.size)
        pages.empty(data.size, data.dtype)[:] = data
        rows.pieces.append(Piece(spill.write(pages.first(data.size)), data.size, table.num_rows))
    return rows


def _noting(batches: Iterable[pa.RecordBatch], where: str) -> Iterator[pa.RecordBatch]:
    """Yield batches; an error notes how far it came."""
    n_rows = 0
    try:
        for batch in batches:
            yield batch
            n_rows += batch.num_rows
    except Exception as error:
        error.add_note(f"It was raised by the reader of {where}, after {n_rows:,} rows.")
        raise


def _has_strange_codes(chunk: pa.DictionaryArray) -> bool:
    """Say whether codes are not in the dictionary, which may be long and is not looked through."""
    least, most = pc.min_max(chunk.indices).as_py().values()
    return most is not None and (least < 0 or most >= len(chunk.dictionary))
