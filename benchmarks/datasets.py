"""The files of a data set, from which the processes of all rivals read the same bytes.

Rows that rivals hold in memory are loaded from one Arrow file; rivals that read files themselves get Parquet files.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from benchmarks.shapes import Ids, Rows, blocks
from benchmarks.synthetic import generate

__all__ = ["DEFAULT_DIRECTORY", "Dataset", "Layout", "file_bytes", "load_rows", "read_files", "write_rows"]

DEFAULT_DIRECTORY = Path("/var/tmp/fastbcubed-benchmarks")
VERSION = 2  # to be raised if the same seed generates other rows

#: In memory; one Parquet file of both labels and a weight; two files of items and clusters; one file of labels only.
Layout = Literal["arrays", "table", "tables", "labels"]
FILES = {"table": ("items",), "tables": ("truth", "prediction"), "labels": ("items",)}


@dataclass(frozen=True)
class Dataset:
    """A data set: shape, size, type of ids, seed, and layout of the rows."""

    shape: str
    n_items: int
    ids: Ids = "int64"
    seed: int = 0
    layout: Layout = "arrays"

    @property
    def weighted(self) -> bool:
        """Whether items have weights."""
        return self.layout in ("arrays", "table")

    def path(self, directory: Path) -> Path:
        """Return where the rows are stored: an Arrow file, or a directory of Parquet files."""
        end = ".arrow" if self.layout == "arrays" else f"-{self.layout}"
        return directory / f"{self.shape}-{self.n_items}-{self.ids}-seed{self.seed}-v{VERSION}{end}"

    def fields(self) -> dict[str, Any]:
        """Return the fields as a dictionary."""
        return asdict(self)


def write_rows(dataset: Dataset, directory: Path) -> Path:
    """Generate the rows and write them, unless the files exist."""
    path = dataset.path(directory)
    if path.exists():
        return path
    directory.mkdir(parents=True, exist_ok=True)
    return write_arrow(dataset, path) if dataset.layout == "arrays" else write_parquet(dataset, path)


def write_parquet(dataset: Dataset, path: Path) -> Path:
    """Write the rows as `benchmarks.synthetic` does."""
    with TemporaryDirectory(dir=path.parent, prefix=f"{path.name}.") as aside:
        truth, *prediction = [Path(aside, f"{name}.parquet") for name in FILES[dataset.layout]]
        generate(
            truth,
            dataset.n_items,
            shape=dataset.shape,
            seed=dataset.seed,
            prediction_out=prediction[0] if prediction else None,
            ids="string" if dataset.ids == "string" else "int",
            weights=dataset.weighted,
        )
        path.mkdir()
        for file in Path(aside).iterdir():
            file.rename(path / file.name)
    return path


def read_files(path: Path) -> None:
    """Read whole files, so that the system caches as much of them as it can."""
    for file in path.iterdir():
        with file.open("rb", buffering=0) as stream:
            while stream.read(1 << 24):
                pass


def file_bytes(path: Path) -> int:
    """Return the size in bytes of a file, or of all files in a directory."""
    return sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))


def write_arrow(dataset: Dataset, path: Path) -> Path:
    """Write the rows as an uncompressed Arrow IPC file."""
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
    """Copy the rows from a memory-mapped file into the process's own memory."""
    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
        n_items = sum(batch.num_rows for batch in batches)
        return Rows(*(copy_column([b.column(i) for b in batches], n_items) for i in range(3)))


def copy_column(parts: list[pa.Array], n_items: int) -> Any:
    """Copy one column: numbers into a NumPy array, strings into one Arrow array."""
    if pa.types.is_string(parts[0].type):
        # With an empty part, strings are copied even if all are in one batch.
        return pa.concat_arrays([*parts, pa.array([], parts[0].type)])
    column = np.empty(n_items, parts[0].type.to_pandas_dtype())
    start = 0
    for part in parts:
        column[start : start + len(part)] = part.to_numpy()
        start += len(part)
    return column
