"""The tables of a saved evaluation, whose columns are checked: there, of their type, without nulls."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.errors import FileFormatError
from fastbcubed.runtime.table_files import maybe_with_nulls


class SavedTable:
    """A table of a saved evaluation."""

    def __init__(self, table: pa.Table, path: Path) -> None:
        self.table = table
        self._path = path
        if len(set(table.column_names)) < table.num_columns:
            self.refuse("two columns have one name")

    @classmethod
    def read(cls, file: BinaryIO, path: Path) -> SavedTable:
        """Read a Parquet file."""
        import pyarrow.parquet as pq

        try:
            table = pq.ParquetFile(file).read()
            table.validate(full=True)
            table = maybe_with_nulls(table.combine_chunks())
        except Exception as error:  # of any kind: the file may hold anything
            raise FileFormatError(f"cannot read {path}: {str(error)[:200]}") from error
        return cls(table, path)

    def slice(self, start: int, n: int) -> SavedTable:
        """Return some rows."""
        return SavedTable(self.table.slice(start, n), self._path)

    def where(self, mask: Any) -> SavedTable:
        """Return the rows that a mask says."""
        return SavedTable(self.table.filter(mask), self._path)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __contains__(self, name: str) -> bool:
        return name in self.table.column_names

    def refuse(self, fault: str | None) -> None:
        """Raise FileFormatError if there is a fault."""
        if fault is not None:
            raise FileFormatError(
                f"{self._path} is not as an evaluation is saved: {fault}. Evaluate and save anew"
            )

    def require(self, names: Iterable[str]) -> None:
        """Raise if a column is not there."""
        lacking = [name for name in names if name not in self]
        self.refuse(f"it has no column {lacking[0]!r}" if lacking else None)

    def require_type(self, name: str, kind: pa.DataType) -> None:
        """Raise if the values of a column, as they are or in a dictionary, are of another type."""
        found = self.table[name].type
        if (found.value_type if pa.types.is_dictionary(found) else found) != kind:
            self.refuse(f"{name} is {found}, not {kind}")

    def integers(self, name: str, nulls: int | None = None) -> NDArray[np.int64]:
        """Return a column of integers, with `nulls` in place of nulls, if there may be any."""
        column = self._column(name, nulls is not None)
        if not pa.types.is_integer(column.type):
            self.refuse(f"{name} is {column.type}, not integers")
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            self.refuse(f"{name} has integers that are too large")
        return _numpy(column if nulls is None else column.fill_null(nulls))

    def floats(self, name: str) -> NDArray[np.float64]:
        """Return a column of float64."""
        column = self._column(name, False)
        if not pa.types.is_float64(column.type):
            self.refuse(f"{name} is {column.type}, not double")
        return _numpy(column)

    def memberships(self, name: str, n_clusters: int) -> Memberships:
        """Return a column of lists of codes of clusters, ascending, as memberships."""
        column = self._column(name, False)
        if not (pa.types.is_large_list(column.type) and pa.types.is_integer(column.type.value_type)):
            self.refuse(f"{name} is {column.type}, not lists of codes")
        lists = column.combine_chunks()
        offsets = lists.offsets.to_numpy().astype(np.int64)
        offsets -= offsets[0]
        codes = SavedTable(pa.table({name: lists.flatten()}), self._path).integers(name)
        begins = np.zeros(codes.size, np.bool_)
        begins[offsets[:-1][np.diff(offsets) > 0]] = True
        in_order = (np.diff(codes) > 0) | begins[1:]
        if codes.size and (codes.min() < 0 or codes.max() >= n_clusters or not in_order.all()):
            self.refuse(f"{name} has a code that is not one of {n_clusters} clusters, or not in order")
        narrow = codes.astype(np.int32) if n_clusters < 2**31 else codes
        return Memberships(offsets, narrow, n_clusters)

    def _column(self, name: str, nulls: bool) -> pa.ChunkedArray:
        self.require([name])
        column = self.table[name]
        if column.null_count and not nulls:
            self.refuse(f"{name} has nulls")
        return column


def _numpy(column: pa.ChunkedArray) -> Any:
    return np.ascontiguousarray(column.to_numpy())
