"""Parquet files that are written table by table."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any

import pyarrow as pa

from fastbcubed.runtime.checksums import Stamp
from fastbcubed.runtime.large_files import LargeFile

#: Rows by which columns are judged: whether values repeat, and what compression must come down to to be worth its time.
SAMPLE, REPEATED, SMALL_ENOUGH = 1 << 14, 0.9, 0.6
#: A dictionary that has at most so many values is written as one; so are numbers, few for the rows of a sample.
FEW_VALUES, FEW_NUMBERS = 1 << 8, 1 / 16
#: Rows of a row group at most: who looks for a few rows reads a whole group for each.
ROW_GROUP = 1 << 17
#: Values that are encoded at once.
BATCH = 1 << 14


def without_nulls(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return a table which says that these columns have no nulls, so that files need not say it value by value."""
    return _declared(table, {name: False for name in names})


def maybe_with_nulls(table: pa.Table) -> pa.Table:
    """Return a table whose columns may have nulls, whatever the file says that it was read from."""
    return _declared(table, dict.fromkeys(table.column_names, True))


def _declared(table: pa.Table, nullable: dict[str, bool]) -> pa.Table:
    fields = [field.with_nullable(nullable.get(field.name, field.nullable)) for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, table.schema.metadata))


class TableWriter:
    """Writes tables of one schema to a Parquet file, one after the other.

    A file given by its path is there, and empty.

    Numbers that hardly repeat are most of what is written: dictionaries and strong compression would take
    longer than all the work before, and hashed ids cannot be compressed at all. Small integers are a tenth as long
    by their differences, and scores of small clusters by a dictionary; both are read faster than what is compressed.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._sink: Any = None
        self._writer: Any = None

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            if self._sink is not self._file and self._sink is not None:
                self._sink.close()

    @property
    def stamp(self) -> Stamp | None:
        """Size and checksum of the file, once it is closed; None for one that was not given by its path."""
        return self._sink.stamp if isinstance(self._sink, LargeFile) else None

    def add(self, table: pa.Table) -> None:
        """Write a table."""
        import pyarrow.parquet as pq

        if self._writer is None:
            by_path = isinstance(self._file, str | os.PathLike)
            self._sink = LargeFile(os.fspath(self._file)) if by_path else self._file
            self._writer = pq.ParquetWriter(self._sink, table.schema, **_how_to_write(table.slice(0, SAMPLE)))
        self._writer.write_table(table, row_group_size=ROW_GROUP)


def _how_to_write(sample: pa.Table) -> dict[str, Any]:
    """Return how to write columns, some of whose rows these are: by dictionaries, differences, or compressed.

    Integers are written as differences, others compressed, where that makes them small enough.
    """
    import pyarrow.parquet as pq

    names = sample.column_names
    repeat = [name for name in names if _repeats(sample[name], is_attribute="." in name)]
    differ = [name for name in names if pa.types.is_integer(sample[name].type) and name not in repeat]
    how = {"use_dictionary": repeat or False, "write_page_checksum": True, "write_batch_size": BATCH}
    made = _options(differ, [name for name in names if name not in differ])
    file = pa.BufferOutputStream()
    pq.write_table(sample, file, **how, **made)
    group = pq.read_metadata(pa.BufferReader(file.getvalue())).row_group(0)
    small = set[str]()
    for column in map(group.column, range(group.num_columns)):
        path = column.path_in_schema
        name = max((each for each in names if f"{path}.".startswith(f"{each}.")), key=len)
        plain = sample[name].nbytes if name in differ else column.total_uncompressed_size
        if column.total_compressed_size < SMALL_ENOUGH * plain:
            small.add(name)
    return how | _options(
        [n for n in differ if n in small], [n for n in names if n in small and n not in differ]
    )


def _options(differ: Sequence[str], compressed: Sequence[str]) -> dict[str, Any]:
    """Return the options for columns that are written as differences, and for some that are compressed."""
    return {
        "column_encoding": dict.fromkeys(differ, "DELTA_BINARY_PACKED") or None,
        "compression": dict.fromkeys(compressed, "snappy") or "none",
    }


def _repeats(sample: pa.ChunkedArray, *, is_attribute: bool) -> bool:
    """Tell whether a dictionary is worth while: there are few values, or those of an attribute repeat."""
    if pa.types.is_floating(sample.type) and not is_attribute:
        return len(sample.unique()) <= FEW_NUMBERS * len(sample)
    if pa.types.is_dictionary(sample.type):
        return is_attribute or all(len(chunk.dictionary) <= FEW_VALUES for chunk in sample.chunks)
    if not is_attribute:
        return False
    if pa.types.is_nested(sample.type):
        return True
    if isinstance(sample.type, pa.BaseExtensionType):
        sample = sample.cast(sample.type.storage_type)
    return len(sample.unique()) < REPEATED * len(sample)
