"""Items in a Parquet file: written block by block as they are scored, read column by column when asked for."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.contingency import Rows
from fastbcubed.errors import SpillError
from fastbcubed.items import TableItems
from fastbcubed.row_blocks import RowBlock
from fastbcubed.sources.arrays import from_numpy, to_numpy
from fastbcubed.written import make_directory, written_aside

__all__ = ["ItemWriter", "StoredItems", "StoredRows", "StoredTable", "destination"]

#: Columns that come first.
FIRST = ("item", "true_cluster", "pred_cluster", "weight", "cell")


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

    def __init__(self, file: StoredTable) -> None:
        super().__init__(file)
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


class ItemWriter:
    """Writes the rows of an evaluation, as `storage` does those in memory.

    Parameters
    ----------
    file : path or binary file
        Where they go.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._writer: Any = None

    def table(self, block: RowBlock) -> pa.Table:
        """Return the rows of a block: ids, labels, weight, cell (null: not scored), attributes."""
        cell = block.found["cell"]
        weight = np.ones(cell.size) if block.weight is None else block.weight
        columns = dict(zip(block.columns.column_names, block.columns.columns, strict=True))
        columns |= {"weight": from_numpy(weight), "cell": from_numpy(np.ascontiguousarray(cell), cell < 0)}
        rest = [name for name in columns if "." in name]
        return pa.table({name: columns[name] for name in (*FIRST, *rest)})

    def add(self, table: pa.Table) -> None:
        """Write the rows of a block."""
        import pyarrow.parquet as pq

        if self._writer is None:
            attributes = [name for name in table.column_names if name not in FIRST]
            self._writer = pq.ParquetWriter(
                self._file, table.schema, compression="zstd", compression_level=1, write_page_checksum=True,
                use_dictionary=attributes or False,
            )  # fmt: skip
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))

    def close(self) -> None:
        """Finish the file."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def destination(out: Path | None, spill_directory: Path) -> Iterator[Any]:
    """Give the file to write items to: one in `out` that is whole or not there, else one without a name."""
    if out is not None:
        with written_aside(make_directory(out) / "items.parquet") as aside:
            yield aside
        return
    try:
        file = tempfile.TemporaryFile(dir=spill_directory)
    except OSError as error:
        raise SpillError(
            f"cannot write to {spill_directory}: {error.strerror}. Name a directory with spill_dir="
        ) from error
    try:
        yield file
    except BaseException:
        file.close()
        raise
