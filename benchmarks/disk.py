"""Scoring Parquet files under a memory limit: the data sets, and the disk space for their files."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.datasets import Dataset
from benchmarks.shapes import Ids

__all__ = ["BILLION", "BILLION_LIMIT", "LIMIT", "NoRoomError", "billion", "file_datasets", "stored"]

LIMIT = 2 << 30  # bytes that libraries may use
BILLION, BILLION_LIMIT = 10**9, 8 << 30
KEEP_FREE = 10 << 30  # bytes of disk
SPILL = 48  # bytes of disk per item besides the files: 16 for its row, 32 if it is a cell of its own
ITEM = 160  # bytes of disk per item if the scores of items are written, as for two tables
NAMES = {"table": 3, "tables": 4, "labels": 2}  # columns of each layout; a weight has the size of an integer
NAME_BYTES = {"int64": 8, "string": 21}


class NoRoomError(Exception):
    """The disk does not have enough space for a measurement."""


def file_datasets(
    sizes: Iterable[int], shapes: Iterable[str], ids: Iterable[Ids], seed: int
) -> Iterator[Dataset]:
    """Yield, for every size, one table of integer labels, and two tables to join for each type of ids."""
    for n_items in sizes:
        for shape in shapes:
            yield Dataset(shape, n_items, "int64", seed, "table")
            yield from (Dataset(shape, n_items, each, seed, "tables") for each in ids)


def billion(n_items: int, seed: int) -> Dataset:
    """Return the data set of one table with two columns of labels, without weights."""
    return Dataset("er", n_items, "int64", seed, "labels")


@contextmanager
def stored(dataset: Dataset, directory: Path) -> Iterator[None]:
    """Check the disk space before files are written, and remove them at the end; Arrow files are kept.

    Raises
    ------
    NoRoomError
        If the disk does not have enough space.
    """
    if dataset.layout == "arrays":
        yield
        return
    directory.mkdir(parents=True, exist_ok=True)
    per_item = NAMES[dataset.layout] * NAME_BYTES[dataset.ids] + SPILL + ITEM * (dataset.layout == "tables")
    needed = dataset.n_items * per_item + KEEP_FREE
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise NoRoomError(
            f"{dataset.n_items:,} items as {dataset.layout} take up to {needed / 2**30:.0f} GiB of disk with "
            f"what is spilled and written, and {KEEP_FREE >> 30} GiB left alone, but {directory} has "
            f"{free / 2**30:.0f} free; name another --data-dir"
        )
    try:
        yield
    finally:
        shutil.rmtree(dataset.path(directory), ignore_errors=True)
