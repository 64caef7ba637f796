"""The files that hold a shape's rows, so that the processes of all rivals read the same bytes."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.shapes import Ids, Rows, blocks

__all__ = ["DEFAULT_DIRECTORY", "Dataset", "load_rows", "write_rows"]

DEFAULT_DIRECTORY = Path("/var/tmp/fastbcubed-benchmarks")
VERSION = 2  # raise it when a seed makes other rows


@dataclass(frozen=True)
class Dataset:
    """A shape, a size, a type of ids and a seed."""

    shape: str
    n_items: int
    ids: Ids = "int64"
    seed: int = 0

    def path(self, directory: Path) -> Path:
        """Say where the rows are kept."""
        name = f"{self.shape}-{self.n_items}-{self.ids}-seed{self.seed}-v{VERSION}.arrow"
        return directory / name

    def fields(self) -> dict[str, Any]:
        """Give the fields as a dictionary."""
        return asdict(self)


def write_rows(dataset: Dataset, directory: Path) -> Path:
    """Make the rows and write them as an uncompressed Arrow IPC file, unless it is there."""
    path = dataset.path(directory)
    if path.exists():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}.part")
    batches = blocks(dataset.shape, dataset.n_items, dataset.ids, dataset.seed)
    first = next(batches)
    try:
        with pa.OSFile(str(aside), "wb") as sink, pa.ipc.new_file(sink, first.schema) as writer:
            for batch in chain([first], batches):
                writer.write_batch(batch)
        aside.rename(path)
    finally:
        aside.unlink(missing_ok=True)
    return path


def load_rows(path: Path) -> Rows:
    """Copy the rows from a mapped file into the process's own memory."""
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
        n_items = sum(batch.num_rows for batch in batches)
        return Rows(*(copy_column([b.column(i) for b in batches], n_items) for i in range(3)))


def copy_column(parts: list[pa.Array], n_items: int) -> Any:
    """Copy one column: numbers into a NumPy array, strings into one Arrow array."""
    if pa.types.is_string(parts[0].type):
        # An empty part makes sure that the strings are copied even if all came in one batch.
        return pa.concat_arrays([*parts, pa.array([], parts[0].type)])
    column = np.empty(n_items, parts[0].type.to_pandas_dtype())
    start = 0
    for part in parts:
        column[start : start + len(part)] = part.to_numpy()
        start += len(part)
    return column
