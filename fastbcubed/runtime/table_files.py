"""Parquet files that are written table by table."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa

from fastbcubed.runtime.checksums import Stamp
from fastbcubed.runtime.large_files import LargeFile

#: Rows by which it is judged whether a column is worth compressing, and what it must come down to.
SAMPLE, SMALL_ENOUGH = 1 << 14, 0.9
#: Rows of a row group at most: who looks for a few rows reads a whole group for each.
ROW_GROUP = 1 << 17


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
            attributes = [name for name in table.column_names if "." in name]
            repeat = [name for name in attributes if _repeats(sample[name])]
            how = {"use_dictionary": repeat or False, "write_page_checksum": True}
            worth = _worth_compressing(sample, how)
            compression = {name: "snappy" if worth[name] else "none" for name in table.column_names}
            self._writer = pq.ParquetWriter(self._sink, table.schema, compression=compression, **how)
        self._writer.write_table(table, row_group_size=ROW_GROUP)


def _repeats(sample: pa.ChunkedArray) -> bool:
    """Tell whether values repeat, judged by some of them."""
    if pa.types.is_nested(sample.type) or pa.types.is_dictionary(sample.type):
        return True
    return len(sample.unique()) < SMALL_ENOUGH * len(sample)


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
