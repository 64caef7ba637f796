"""Items in a Parquet file, read column by column when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.errors import FileFormatError
from fastbcubed.results.items.items import TableItems
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.checksums import Stamp, copy_stamped
from fastbcubed.runtime.staging import Staging
from fastbcubed.sources.arrays import from_numpy, to_numpy


class StoredTable:
    """A Parquet file whose columns are read when they are asked for."""

    def __init__(self, file: Any, staging: Staging | None = None, stamp: Stamp | None = None) -> None:
        import pyarrow.parquet as pq

        self._raw = open(file, "rb") if isinstance(file, str | os.PathLike) else file
        self._file = pq.ParquetFile(self._raw)
        self.column_names: list[str] = list(self._file.schema_arrow.names)
        self.num_rows = int(self._file.metadata.num_rows)
        self.staging = staging
        self._stamp = stamp

    def __del__(self) -> None:
        self._raw.close()

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self._file.read([name])[name]

    def take(self, name: str, rows: NDArray[np.int64]) -> pa.ChunkedArray:
        """Return some rows of a column, null for row -1; only parts of the file that have them are read."""
        sizes = [self._file.metadata.row_group(k).num_rows for k in range(self._file.num_row_groups)]
        starts = np.append(0, np.cumsum(sizes))
        home = np.searchsorted(starts, np.maximum(rows, 0), side="right") - 1
        read = np.unique(home)
        if not read.size:
            return pa.chunked_array([], self._file.schema_arrow.field(name).type)
        first = np.zeros(starts.size, np.int64)  # of each part among those that are read
        first[read] = np.append(0, np.cumsum(np.diff(starts)[read]))[:-1]
        column = self._file.read_row_groups(read.tolist(), [name])[name]
        return column.take(from_numpy(rows - starts[home] + first[home], rows < 0))

    def put_at(self, staging: Staging, name: str) -> Stamp:
        """Bring the file to where others are staged, if it is not there, under a name; return its stamp."""
        if self._stamp is not None and (self.staging is staging or self._link(staging, name)):
            return self._stamp
        try:
            with open(os.dup(self._raw.fileno()), "rb") as source:
                return copy_stamped(source, staging.path(name))
        except OSError as error:
            place = staging.directory / name
            raise FileFormatError(f"cannot write {place}: {error.strerror or error}") from error

    def _link(self, staging: Staging, name: str) -> bool:
        """Give the file a second name if it is the one that is to be replaced; tell whether that was done."""
        try:
            os.link(staging.directory / name, staging.path(name))
        except OSError:  # there is none, or the file system has no links
            return False
        if os.path.samestat(os.fstat(self._raw.fileno()), staging.path(name).stat()):
            return True
        staging.path(name).unlink()
        return False


class StoredItems(TableItems):
    """Items in a file, whose columns are read when they are asked for."""

    def __init__(self, file: StoredTable, left_out: Mapping[str, str] = {}) -> None:
        super().__init__(file, left_out)
        self.file = file

    def _some(self, name: str, rows: NDArray[np.int64]) -> pa.ChunkedArray:
        """Return some rows of a column, null for row -1."""
        return self.file.take(name, rows)


class StoredRows(ScoredRows):
    """The rows behind the cells of an evaluation whose items are in a file."""

    def __init__(self, table: StoredTable, *, weighted: bool) -> None:
        super().__init__(lambda: to_numpy(table["cell"].fill_null(-1).combine_chunks()), None, table.num_rows)
        self._table, self._weighted = table, weighted

    def __reduce__(self) -> tuple[Any, ...]:
        return ScoredRows.of, (self.cell, self.weight if self._weighted else None)

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """The weight of each row. Shape (n_rows,)."""
        return to_numpy(self._table["weight"].combine_chunks()) if self._weighted else np.ones(self.n_rows)
