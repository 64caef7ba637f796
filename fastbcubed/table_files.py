"""Parquet files that are written table by table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["TableWriter"]


class TableWriter:
    """Writes tables of one schema to a Parquet file, one after the other.

    Numbers that hardly repeat are most of what is written: dictionaries and strong compression would take
    longer than all the work before.

    Parameters
    ----------
    file : path or binary file
        Where they go.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._writer: Any = None

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def add(self, table: pa.Table) -> None:
        """Write a table."""
        import pyarrow.parquet as pq

        if self._writer is None:
            repeat = [field.name for field in table.schema if "." in field.name]  # attributes
            self._writer = pq.ParquetWriter(
                self._file, table.schema, compression="snappy", use_dictionary=repeat or False,
                write_page_checksum=True,
            )  # fmt: skip
        self._writer.write_table(table)
