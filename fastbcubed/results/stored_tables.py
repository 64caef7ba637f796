"""Tables in Parquet files whose columns are read on demand."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import ScoredRows
from fastbcubed.errors import FileFormatError
from fastbcubed.inputs.arrays import from_numpy, to_numpy
from fastbcubed.inputs.file_formats import read_groups
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.output_files import OwnPlace, Staging, Stamp, copy_stamped, maybe_with_nulls
from fastbcubed.runtime.threads import Pool, ahead

#: Number of rows read at a time in scans.
AT_ONCE = 1 << 20


#: Bytes in which a Parquet file has the length of a string that is not in a dictionary.
LENGTH_BYTES = 4


class StoredTable:
    """A Parquet file whose columns are read on demand; damaged pages are detected by their checksums."""

    def __init__(self, file: Any, staging: Staging | None = None, stamp: Stamp | None = None) -> None:
        self._raw = open(file, "rb") if isinstance(file, str | os.PathLike) else file
        self._raw.flush()  # as it may have just been written
        # keeps the file open as long as this object exists, whatever else is collected
        weakref.finalize(self, self._raw.close)
        self._metadata: Any = None
        opened = self._open()
        self._metadata, self._schema = opened.metadata, opened.schema_arrow
        self.column_names: list[str] = list(self._schema.names)
        sizes = [self._metadata.row_group(k).num_rows for k in range(opened.num_row_groups)]
        self._starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
        self.num_rows = int(self._starts[-1])
        self.staging = staging
        self._stamp = stamp

    def _open(self, coded: Sequence[str] = ()) -> Any:
        """Return a reader of the file; each thread needs its own, as Arrow crashes if two threads share one."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(
            OwnPlace(self._raw),
            metadata=self._metadata,
            page_checksum_verification=True,
            read_dictionary=list(coded),
        )

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self._read(range(self._starts.size - 1), [name])[name]

    def coded(self, name: str) -> pa.ChunkedArray:
        """Return a column; strings stay dictionaries if stored as such: decoding takes several times as long."""
        kind, k = self._schema.field(name).type, self.column_names.index(name)
        groups = [self._metadata.row_group(part) for part in range(self._starts.size - 1)]
        n_bytes = sum(group.column(k).total_uncompressed_size for group in groups)
        is_coded = pa.types.is_string(kind) and n_bytes < LENGTH_BYTES * self.num_rows
        return self._read(range(self._starts.size - 1), [name], coded=[name] if is_coded else ())[name]

    def empty(self) -> pa.Table:
        """Return a table with the file's columns and no rows."""
        return maybe_with_nulls(self._schema.empty_table())

    def scan(
        self, names: Sequence[str], at_once: int = AT_ONCE, rows: tuple[int, int] | None = None
    ) -> Iterator[tuple[int, pa.Table]]:
        """Yield the number of the first row, and columns, for stretches of about `at_once` consecutive rows.

        With `rows`, read only the row groups that overlap the range from `rows[0]` up to `rows[1]`.
        """
        return ahead(self._scan(names, at_once, rows or (0, self.num_rows)))

    def _scan(
        self, names: Sequence[str], at_once: int, rows: tuple[int, int]
    ) -> Iterator[tuple[int, pa.Table]]:
        first = int(np.searchsorted(self._starts, rows[0], side="right")) - 1
        n_parts = int(np.searchsorted(self._starts, rows[1], side="left"))
        while first < n_parts:
            end = int(np.searchsorted(self._starts, self._starts[first] + at_once, side="right")) - 1
            end = min(max(end, first + 1), n_parts)
            yield int(self._starts[first]), self._read(range(first, end), names).combine_chunks()
            first = end

    def take(self, names: Sequence[str], rows: NDArray[np.int64]) -> pa.Table:
        """Return columns at these rows, null for row -1; only row groups that contain them are read."""
        if rows.size and 0 <= rows[0] == rows[-1] - rows.size + 1 and (rows[1:] > rows[:-1]).all():
            return self._consecutive(names, int(rows[0]), rows.size)
        home = np.searchsorted(self._starts, np.maximum(rows, 0), side="right") - 1
        order = np.argsort(home, kind="stable")
        parts, bounds = np.unique(home[order], return_index=True)
        none = maybe_with_nulls(pa.schema([self._schema.field(name) for name in names]).empty_table())

        def read(k: int, own: NDArray[np.int64]) -> pa.Table:
            at = rows[own]
            return self._read([k], names).take(from_numpy(at - self._starts[k], at < 0))

        with Pool().wider() as readers:  # more threads than cores, as they wait for the disk
            found = readers.map(read, parts.tolist(), np.split(order, bounds[1:])[: parts.size])
        back = np.empty(rows.size, np.int64)
        back[order] = np.arange(rows.size)
        return pa.concat_tables([none, *found]).unify_dictionaries().take(from_numpy(back))

    def _consecutive(self, names: Sequence[str], start: int, n_rows: int) -> pa.Table:
        """Return columns at consecutive rows, which are not sorted by row group and back, in a quarter of the time."""
        first, last = np.searchsorted(self._starts, [start, start + n_rows - 1], side="right") - 1
        found = self._read(range(first, last + 1), names).slice(start - int(self._starts[first]), n_rows)
        return found.unify_dictionaries().combine_chunks()

    def _read(self, parts: Iterable[int], names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
        try:
            return maybe_with_nulls(read_groups(self._open(coded), list(parts), names))
        except (OSError, pa.ArrowException) as error:
            raise FileFormatError(f"cannot read {', '.join(names)}: {str(error)[:200]}") from error

    def put_at(self, staging: Staging, name: str) -> Stamp:
        """Copy or link the file to a staging place, unless it is there already; return its stamp."""
        if self._stamp is not None and (self.staging is staging or self._link(staging, name)):
            return self._stamp
        try:
            return copy_stamped(self._raw.fileno(), staging.path(name))
        except OSError as error:
            place = staging.directory / name
            raise FileFormatError(f"cannot write {place}: {error.strerror or error}") from error

    def _link(self, staging: Staging, name: str) -> bool:
        """Link the staged name to this file if it is the one to be replaced; return whether this was possible."""
        try:
            os.link(staging.directory / name, staging.path(name))
        except OSError:  # no such file, or no links on this file system
            return False
        if os.path.samestat(os.fstat(self._raw.fileno()), staging.path(name).stat()):
            return True
        staging.path(name).unlink()
        return False


class StoredRows(ScoredRows):
    """The rows behind the cells of an evaluation whose items are in a file."""

    def __init__(self, table: StoredTable, *, weighted: bool) -> None:
        super().__init__(lambda: to_numpy(table["cell"].fill_null(-1).combine_chunks()), None, table.num_rows)
        self._table, self._weighted = table, weighted

    def __reduce__(self) -> tuple[Any, ...]:
        return ScoredRows.of, (self.cell, self.weight if self._weighted else None)

    def stretches(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the number of the first row and the cells, for stretches of consecutive rows."""
        for first, table in self._table.scan(["cell"]):
            yield first, to_numpy(table["cell"].fill_null(-1).combine_chunks())

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of these rows."""
        return (
            to_numpy(self._table.take(["weight"], rows)["weight"]) if self._weighted else np.ones(rows.size)
        )

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """The weight of each row. Shape (n_rows,)."""
        return to_numpy(self._table["weight"].combine_chunks()) if self._weighted else np.ones(self.n_rows)
