"""Items in a Parquet file: written block by block, read column by column."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.cell_parts import RowBlock
from fastbcubed.cells.contingency import ScoredRows
from fastbcubed.errors import FileFormatError, SpillError, arg
from fastbcubed.inputs.arrays import from_numpy, no_rows, to_numpy
from fastbcubed.results.saved import ITEMS, MANIFEST
from fastbcubed.runtime.attributes import cached_property
from fastbcubed.runtime.output_files import (
    OwnPlace,
    Staging,
    Stamp,
    copy_stamped,
    maybe_with_nulls,
    without_nulls,
)
from fastbcubed.runtime.threads import Pool, ahead

#: Rows read at once in longer scans.
AT_ONCE = 1 << 20


class StoredTable:
    """A Parquet file whose columns are read on demand; altered pages are refused."""

    def __init__(
        self,
        file: Any,
        staging: Staging | None = None,
        stamp: Stamp | None = None,
    ) -> None:
        self._raw = open(file, "rb") if isinstance(file, str | os.PathLike) else file
        self._raw.flush()  # it may have been written just now
        weakref.finalize(self, self._raw.close)  # which holds the file until then, whatever else is collected
        self._metadata: Any = None
        opened = self._open()
        self._metadata, self._schema = opened.metadata, opened.schema_arrow
        self.column_names: list[str] = list(self._schema.names)
        sizes = [self._metadata.row_group(k).num_rows for k in range(opened.num_row_groups)]
        self._starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
        self.num_rows = int(self._starts[-1])
        self.staging = staging
        self._stamp = stamp

    def _open(self) -> Any:
        """Return a reader of the file for one thread: Arrow readers crash when two threads share one."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(OwnPlace(self._raw), metadata=self._metadata, page_checksum_verification=True)

    def no_rows(self) -> pa.Table:
        """Return the columns without rows."""
        return no_rows(self._schema)

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self._read(range(self._starts.size - 1), [name])[name]

    def scan(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Yield the first of consecutive rows, and some columns of these."""
        return ahead(self._scan(names))

    def _scan(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        n_parts, first = self._starts.size - 1, 0
        while first < n_parts:
            end = int(np.searchsorted(self._starts, self._starts[first] + AT_ONCE, side="right")) - 1
            end = min(max(end, first + 1), n_parts)
            yield int(self._starts[first]), self._read(range(first, end), names).combine_chunks()
            first = end

    def take(self, names: Sequence[str], rows: NDArray[np.int64]) -> pa.Table:
        """Return some rows of some columns, null for row -1; only the needed parts of the file are read."""
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
        """Copy or link the file to the staging place, unless it is there, under a name; return its stamp."""
        if self._stamp is not None and (self.staging is staging or self._link(staging, name)):
            return self._stamp
        try:
            return copy_stamped(self._raw.fileno(), staging.path(name))
        except OSError as error:
            place = staging.directory / name
            raise FileFormatError(f"cannot write {place}: {error.strerror or error}") from error

    def _link(self, staging: Staging, name: str) -> bool:
        """Link the file to a second name if it is the one to be replaced; return whether this was done."""
        try:
            os.link(staging.directory / name, staging.path(name))
        except OSError:  # there is none, or the file system has no links
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
        """Yield the cells of consecutive rows, and the first of these rows."""
        for first, table in self._table.scan(["cell"]):
            yield first, to_numpy(table["cell"].fill_null(-1).combine_chunks())

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of some rows."""
        return (
            to_numpy(self._table.take(["weight"], rows)["weight"]) if self._weighted else np.ones(rows.size)
        )

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """The weight of each row. Shape (n_rows,)."""
        return to_numpy(self._table["weight"].combine_chunks()) if self._weighted else np.ones(self.n_rows)


#: Columns that come first.
FIRST = ("item", "true_cluster", "pred_cluster", "weight", "cell")


def items_of_block(block: RowBlock) -> pa.Table:
    """Return the rows of a block as `storage` writes them: ids, labels, weight, cell (null: not scored), attributes."""
    cell = block.found["cell"].astype(np.int64)
    weight = np.ones(cell.size) if block.weight is None else block.weight
    columns = dict(zip(block.columns.column_names, block.columns.columns, strict=True))
    columns |= {"weight": from_numpy(weight), "cell": from_numpy(cell, cell < 0)}
    rest = [name for name in columns if "." in name]
    return without_nulls(pa.table({name: columns[name] for name in (*FIRST, *rest)}), ["weight"])


class Destination(NamedTuple):
    """A file to write items to, and where it is staged; nowhere if it has no name."""

    file: Any
    staging: Staging | None


@contextmanager
def destination(out: Path | None, spill_directory: Path) -> Iterator[Destination]:
    """Give the file to write items to: one that will be published in `out`, else one without a name."""
    if out is not None:
        staging = Staging(out, MANIFEST)
        try:
            path = staging.path(ITEMS)
            path.touch()
            yield Destination(path, staging)
        except BaseException as error:
            staging.discard()
            if isinstance(error, OSError):
                raise FileFormatError(f"cannot write {out / ITEMS}: {error.strerror or error}") from error
            raise
        return
    try:
        file = tempfile.TemporaryFile(dir=spill_directory)
    except OSError as error:
        raise SpillError(
            f"cannot write to {spill_directory}: {error.strerror}. Name a directory with {arg('spill_dir', ...)}"
        ) from error
    try:
        yield Destination(file, None)
    except BaseException:
        file.close()
        raise
