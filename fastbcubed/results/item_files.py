"""Items in a Parquet file: written block by block as they are scored, read column by column when asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.cells.row_blocks import RowBlock
from fastbcubed.errors import SpillError
from fastbcubed.runtime.written import make_directory, written_aside
from fastbcubed.sources.arrays import from_numpy

__all__ = ["destination", "items_of_block"]

#: Columns that come first.
FIRST = ("item", "true_cluster", "pred_cluster", "weight", "cell")


def items_of_block(block: RowBlock) -> pa.Table:
    """Return the rows of a block as `storage` writes them: ids, labels, weight, cell (null: not scored), attributes."""
    cell = block.found["cell"]
    weight = np.ones(cell.size) if block.weight is None else block.weight
    columns = dict(zip(block.columns.column_names, block.columns.columns, strict=True))
    columns |= {"weight": from_numpy(weight), "cell": from_numpy(np.ascontiguousarray(cell), cell < 0)}
    rest = [name for name in columns if "." in name]
    return pa.table({name: columns[name] for name in (*FIRST, *rest)})


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
