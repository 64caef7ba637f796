"""Items in a Parquet file, read column by column when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.errors import FileFormatError
from fastbcubed.results.items.held_rows import RowsAtHand
from fastbcubed.results.items.items import TableItems
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.checksums import Stamp, copy_stamped
from fastbcubed.runtime.own_place import OwnPlace
from fastbcubed.runtime.pool import Pool, ahead
from fastbcubed.runtime.staging import Staging
from fastbcubed.runtime.table_files import maybe_with_nulls
from fastbcubed.sources.arrays import from_numpy, no_rows, to_numpy

#: Rows that are read at once, if more are gone through.
AT_ONCE = 1 << 20


class StoredTable:
    """A Parquet file whose columns are read when they are asked for; pages that are not as written are refused."""

    def __init__(
        self,
        file: Any,
        staging: Staging | None = None,
        stamp: Stamp | None = None,
        at_hand: RowsAtHand | None = None,
    ) -> None:
        """Open a file; `at_hand` are some of its rows, which are not read."""
        self.at_hand = at_hand
        self._raw = open(file, "rb") if isinstance(file, str | os.PathLike) else file
        self._raw.flush()  # it may have been written just now
        self._metadata: Any = None
        opened = self._open()
        self._metadata, self._schema = opened.metadata, opened.schema_arrow
        self.column_names: list[str] = list(self._schema.names)
        sizes = [self._metadata.row_group(k).num_rows for k in range(opened.num_row_groups)]
        self._starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
        self.num_rows = int(self._starts[-1])
        self.staging = staging
        self._stamp = stamp

    def __del__(self) -> None:
        self._raw.close()

    def _open(self) -> Any:
        """Return a reader of the file, for one thread: Arrow's own crash where two threads read at once."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(OwnPlace(self._raw), metadata=self._metadata, page_checksum_verification=True)

    def no_rows(self) -> pa.Table:
        """Return the columns without rows."""
        return no_rows(self._schema)

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self._read(range(self._starts.size - 1), [name])[name]

    def stretches(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Yield some columns of consecutive rows, and the first of these rows: one stretch of parts after the other."""
        return ahead(self._stretches(names))

    def _stretches(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        n_parts, first = self._starts.size - 1, 0
        while first < n_parts:
            end = int(np.searchsorted(self._starts, self._starts[first] + AT_ONCE, side="right")) - 1
            end = min(max(end, first + 1), n_parts)
            yield int(self._starts[first]), self._read(range(first, end), names).combine_chunks()
            first = end

    def take(self, name: str, rows: NDArray[np.int64]) -> pa.ChunkedArray:
        """Return some rows of a column, null for row -1."""
        return self.take_columns([name], rows)[name]

    def take_columns(self, names: Sequence[str], rows: NDArray[np.int64]) -> pa.Table:
        """Return some rows of some columns, null for row -1; parts of the file that have any are read by themselves."""
        if self.at_hand is not None and (known := self.at_hand.columns(names, rows)) is not None:
            return known
        home = np.searchsorted(self._starts, np.maximum(rows, 0), side="right") - 1
        order = np.argsort(home, kind="stable")
        parts, bounds = np.unique(home[order], return_index=True)
        none = maybe_with_nulls(pa.schema([self._schema.field(name) for name in names]).empty_table())

        def read(k: int, own: NDArray[np.int64]) -> pa.Table:
            at = rows[own]
            return self._read([k], names).take(from_numpy(at - self._starts[k], at < 0))

        with Pool().wider() as readers:  # which wait for the disk
            found = readers.map(read, parts.tolist(), np.split(order, bounds[1:])[: parts.size])
        back = np.empty(rows.size, np.int64)
        back[order] = np.arange(rows.size)
        return pa.concat_tables([none, *found]).unify_dictionaries().take(from_numpy(back))

    def _read(self, parts: Iterable[int], names: Sequence[str]) -> pa.Table:
        try:
            return maybe_with_nulls(self._open().read_row_groups(list(parts), list(names)))
        except (OSError, pa.ArrowException) as error:
            raise FileFormatError(f"cannot read {', '.join(names)}: {str(error)[:200]}") from error

    def put_at(self, staging: Staging, name: str) -> Stamp:
        """Bring the file to where others are staged, if it is not there, under a name; return its stamp."""
        if self._stamp is not None and (self.staging is staging or self._link(staging, name)):
            return self._stamp
        try:
            return copy_stamped(self._raw.fileno(), staging.path(name))
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

    def stretches(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the cells of consecutive rows, and the first of these rows."""
        for first, table in self._table.stretches(["cell"]):
            yield first, to_numpy(table["cell"].fill_null(-1).combine_chunks())

    def in_cells(self, chosen: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows that are in chosen cells, ascending, and the cell of each. Shape of `chosen`: (n_cells,)."""
        at_hand = self._table.at_hand
        found = None if at_hand is None else at_hand.in_cells(chosen)
        return super().in_cells(chosen) if found is None else found

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of some rows."""
        return to_numpy(self._table.take("weight", rows)) if self._weighted else np.ones(rows.size)

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """The weight of each row. Shape (n_rows,)."""
        return to_numpy(self._table["weight"].combine_chunks()) if self._weighted else np.ones(self.n_rows)
