"""Tables of results that are in files, read batch by batch, row by row, or whole if the memory limit permits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from fastbcubed.errors import FileFormatError, OptionError, arg
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.saved_files import beside_by
from fastbcubed.results.stored_tables import StoredTable
from fastbcubed.results.table import Table, best
from fastbcubed.runtime.spill import readable

#: Maximum rows of a batch, and the divisor of the memory limit that gives the maximum size of a table in memory.
ROWS_AT_ONCE, SHARE = 1 << 14, 2


class LargeTable(Table):
    """A table that is stored in a file.

    Its number of rows, its first rows, and the best rows in an order are found without reading it whole. Everything
    else reads the whole table or the requested columns, and raises OptionError if these need more than half of the
    run's memory limit.
    """

    is_large = True

    def __init__(
        self,
        file: StoredTable,
        what: str,
        n_bytes: int,
        limit: int | None,
        rows: tuple[int, int] | None = None,
        change: Callable[[pa.Table], pa.Table] | None = None,
        directory: Path | None = None,
    ) -> None:
        """Take consecutive rows of a file, from `rows[0]` up to `rows[1]`; `change` converts them to rows of the table.

        `what` names the table in messages; `n_bytes` is its size in memory; no `limit` means no maximum. `directory` is
        where the unnamed file is stored, and where further files made from the table should go.
        """
        self.directory = directory
        self._file, self._what, self._limit, self._change = file, what, limit, change
        self._rows = (0, file.num_rows) if rows is None else rows
        self.num_rows, self.nbytes = self._rows[1] - self._rows[0], n_bytes

    def _changed(self, change: Callable[[pa.Table], pa.Table]) -> Table:
        own = self._change
        both = change if own is None else lambda table: change(own(table))
        return LargeTable(self._file, self._what, self.nbytes, self._limit, self._rows, both, self.directory)

    @cached_property
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""
        none = self._file.empty()
        return (none if self._change is None else self._change(none)).schema

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def __len__(self) -> int:
        return self.num_rows

    def _batches(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        (first, last), own = self._rows, self._file.column_names
        read = own if self._change is not None or names is None else names
        for at, table in self._file.scan(read, ROWS_AT_ONCE, (first, last)):
            start, stop = max(first - at, 0), min(last - at, table.num_rows)
            if start < stop:
                found = table.slice(start, stop - start)
                found = found if self._change is None else self._change(found)
                yield found if names is None else found.select(names)

    def _first(self, metrics: Iterable[Metric], order_by: str | None, limit: int) -> pa.Table:
        if order_by is None:
            return self.slice(0, limit).to_arrow()
        return best(self._batches(), metrics, order_by, limit, ties=0)

    def slice(self, offset: int = 0, length: int | None = None) -> Table:
        """Return consecutive rows as a table."""
        stop = self.num_rows if length is None else min(offset + length, self.num_rows)
        first = self._rows[0]
        rows = first + min(offset, self.num_rows), first + stop
        n_bytes = self.nbytes * (rows[1] - rows[0]) // max(1, self.num_rows)
        part = LargeTable(self._file, self._what, n_bytes, self._limit, rows, self._change, self.directory)
        return Table(part._arrow)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._read([key]).column(key)
        return super().__getitem__(key)

    @property
    def _arrow(self) -> pa.Table:
        return self._read(None)

    def _read(self, names: Sequence[str] | None) -> pa.Table:
        """Return these columns, or all, or raise OptionError if they would exceed the memory limit."""
        kinds = [self.schema.field(name).type for name in names or ()]
        fixed = names is not None and all(map(pa.types.is_primitive, kinds))
        needed = self.num_rows * sum(kind.bit_width for kind in kinds) // 8 if fixed else self.nbytes
        if self._limit is not None and needed * SHARE > self._limit:
            least = (SHARE * needed >> 20) + 1
            raise OptionError(
                f"{self._what} would take {readable(needed)}, and {arg('memory_limit')} is "
                f"{readable(self._limit)}. Request only the costliest, as with {arg('limit', 100)}, write "
                f"them to files with {arg('out', ...)}, or raise memory_limit to at least {least} MiB"
            )
        none = self.schema.empty_table() if names is None else self.schema.empty_table().select(names)
        return pa.concat_tables([none, *self._batches(names)]).combine_chunks()

    def __repr__(self) -> str:
        return self._shown(repr)

    def _repr_html_(self) -> str:
        return self._shown(Table._repr_html_)

    def _shown(self, draw: Callable[[Table], str]) -> str:
        first = self.slice(0, 10)
        said = f"{first.num_rows:,} rows"
        return draw(first).replace(said, f"{self.num_rows:,} rows, the first {first.num_rows:,} shown")


def apart(
    whole: pa.Table | StoredTable | None,
    columns: Mapping[str, list[str]],
    numbers: Mapping[str, int] | None = None,
    large: Collection[str] = (),
) -> dict[str, Table]:
    """Return the tables that `in_one` combined, by name, given the columns of each; none if there are no tables.

    In a file, each consists of consecutive rows; `numbers` says how many, and the tables named in `large` are left in
    the file.
    """
    if whole is None:
        if columns:
            raise FileFormatError("it has no table of slices")
        return {}
    if isinstance(whole, pa.Table):
        return {
            name: Table(whole.filter(pc.equal(whole["by"], name)).select(beside_by(own)).rename_columns(own))
            for name, own in columns.items()
        }
    numbers = numbers or {}
    if sum(numbers.values()) != whole.num_rows or set(numbers) != set(columns):
        raise FileFormatError(f"it has {whole.num_rows} rows of slices, not {sum(numbers.values())}")
    found, first = dict[str, Table](), 0
    for name, own in columns.items():
        rows = first, first + numbers[name]
        part = LargeTable(
            whole, f"the {numbers[name]:,} rows of slices by {name!r}", 0, None, rows, partial(_named, own)
        )
        found[name] = part if name in large else Table(part.to_arrow())
        first = rows[1]
    return found


def _named(columns: Sequence[str], table: pa.Table) -> pa.Table:
    return table.select(beside_by(columns)).rename_columns(list(columns))
