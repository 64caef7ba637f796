"""Items in a Parquet file, read column by column when they are asked for."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Rows
from fastbcubed.results.items import TableItems
from fastbcubed.runtime.cached import cached_property
from fastbcubed.sources.arrays import to_numpy

__all__ = ["StoredItems", "StoredRows", "StoredTable"]


class StoredTable:
    """A Parquet file whose columns are read when they are asked for.

    Parameters
    ----------
    file : path or binary file
        The file; it stays open.
    """

    def __init__(self, file: Any) -> None:
        import pyarrow.parquet as pq

        self._raw = open(file, "rb") if isinstance(file, str | os.PathLike) else file
        self._file = pq.ParquetFile(self._raw)
        self.column_names: list[str] = list(self._file.schema_arrow.names)
        self.num_rows = int(self._file.metadata.num_rows)

    def __del__(self) -> None:
        self._raw.close()

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self._file.read([name])[name]

    def is_at(self, path: Path) -> bool:
        """Tell whether this is the file at a path."""
        return path.exists() and os.path.samestat(os.fstat(self._raw.fileno()), path.stat())

    def copy_to(self, path: str) -> None:
        """Copy the file, byte by byte."""
        with open(path, "wb") as to, open(os.dup(self._raw.fileno()), "rb") as source:
            source.seek(0)
            shutil.copyfileobj(source, to, 1 << 20)


class StoredItems(TableItems):
    """Items in a file, whose columns are read when they are asked for."""

    def __init__(self, file: StoredTable, left_out: Mapping[str, str] = {}) -> None:
        super().__init__(file, left_out)
        self.file = file


class StoredRows(Rows):
    """The rows behind the cells of an evaluation whose items are in a file."""

    def __init__(self, table: StoredTable, *, weighted: bool) -> None:
        super().__init__(lambda: to_numpy(table["cell"].fill_null(-1).combine_chunks()), None, table.num_rows)
        self._table, self._weighted = table, weighted

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """The weight of each row. Shape (n_rows,)."""
        return to_numpy(self._table["weight"].combine_chunks()) if self._weighted else np.ones(self.n_rows)
