"""A block of items.parquet as the disk engine writes it, and where the file goes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed.cells.row_blocks import RowBlock
from fastbcubed.errors import FileFormatError, SpillError
from fastbcubed.results.files.manifest import ITEMS, MANIFEST
from fastbcubed.runtime.staging import Staging
from fastbcubed.runtime.table_files import without_nulls
from fastbcubed.sources.arrays import from_numpy

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
            f"cannot write to {spill_directory}: {error.strerror}. Name a directory with spill_dir="
        ) from error
    try:
        yield Destination(file, None)
    except BaseException:
        file.close()
        raise
