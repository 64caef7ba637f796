"""Parquet files that are written table by table."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

import pyarrow as pa

from fastbcubed.runtime.checksums import Stamp
from fastbcubed.runtime.large_files import LargeFile

#: Rows by which columns are judged: whether values repeat, and what compression must come down to to be worth its time.
SAMPLE, REPEATED, SMALL_ENOUGH = 1 << 14, 0.9, 0.6
#: A dictionary that has at most so many values is written as one.
FEW_VALUES = 1 << 8
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
    longer than all the work before, and hashed ids cannot be compressed at all.
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
            sample = table.slice(0, SAMPLE)
            repeat = [name for name in table.column_names if _repeats(sample[name], is_attribute="." in name)]
            how = {"use_dictionary": repeat or False, "write_page_checksum": True, "write_batch_size": BATCH}
            worth = _worth_compressing(sample, how)
            compression = {name: "snappy" if worth[name] else "none" for name in table.column_names}
            self._writer = pq.ParquetWriter(self._sink, table.schema, compression=compression, **how)
        self._writer.write_table(table, row_group_size=ROW_GROUP)


def _repeats(sample: pa.ChunkedArray, *, is_attribute: bool) -> bool:
    """Tell whether a dictionary is worth while: there are few values, or those of an attribute repeat."""
    if pa.types.is_dictionary(sample.type):
        return is_attribute or all(len(chunk.dictionary) <= FEW_VALUES for chunk in sample.chunks)
    if not is_attribute:
        return False
    if pa.types.is_nested(sample.type):
        return True
    if isinstance(sample.type, pa.BaseExtensionType):
        sample = sample.cast(sample.type.storage_type)
    return len(sample.unique()) < REPEATED * len(sample)


def _worth_compressing(sample: pa.Table, how: dict[str, Any]) -> dict[str, bool]:
    """Tell which columns become smaller, judged by some of their rows."""
    import pyarrow.parquet as pq

    file = pa.BufferOutputStream()
    pq.write_table(sample, file, compression="snappy", **how)
    group = pq.read_metadata(pa.BufferReader(file.getvalue())).row_group(0)
    found = dict.fromkeys(sample.column_names, False)
    for column in map(group.column, range(group.num_columns)):
        small = column.total_compressed_size < SMALL_ENOUGH * column.total_uncompressed_size
        for name in found:
            found[name] |= small and (
                column.path_in_schema == name or column.path_in_schema.startswith(f"{name}.")
            )
    return found
