"""Synthetic clusterings of any size, written as Parquet: what benchmarks and trials run on."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from fastbcubed.errors import DiskSpaceError, OptionError
from fastbcubed.runtime.choices import true_or_false
from fastbcubed.runtime.counts import whole_number
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.runtime.reporting import reporting
from fastbcubed.runtime.written import written_aside
from fastbcubed.synthetic.rows import IDS, NAME, Synthetic, check_among, schema_of

if TYPE_CHECKING:
    from fastbcubed.runtime.reporting import Report

#: How names end that tell of another format.
OTHER_FORMATS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".arrow", ".feather", ".ipc", ".gz", ".zst")
COMPRESSIONS = ("none", "snappy", "lz4", "zstd")
#: Rows of a row group by default, and at most: the text of so many names has 32-bit offsets.
ROW_GROUP, MOST_ROWS = 1 << 20, 1 << 26
#: Columns that Parquet stores as a dictionary; in the others no two rows are alike.
REPEATING = ["country", "year"]


def generate(
    path: str | os.PathLike[str],
    n_items: int,
    *,
    shape: str = "er",
    seed: int = 0,
    prediction_out: str | os.PathLike[str] | None = None,
    ids: str = "int",
    weights: bool = False,
    attributes: bool = False,
    row_group: int = ROW_GROUP,
    compression: str = "none",
    overwrite: bool = False,
    threads: int | None = None,
    progress: bool | Report | None = None,
) -> None:
    """Write a synthetic truth and prediction as Parquet: one table, or two with rows in different orders.

    Parameters
    ----------
    path : path
        The table, with the columns "truth" and "prediction", which are labels; or, with `prediction_out`,
        the truth, with "item" and "cluster".
    n_items, shape, seed
        As for `Synthetic`.
    prediction_out : path, optional
        A table of its own for the prediction, with "item" and "cluster".
    ids : {"int", "string"}
        The type of items and labels, as for `Synthetic.rows`.
    weights : bool
        Add a column "weight" to the first table: uniform between 0.5 and 1.5.
    attributes : bool
        Add "country" and "year" to the first table: the k-th of 30 countries has a share proportional
        to 1 / k; each year from 1990 to 2024 has 1.05 times as many items as the one before.
    row_group : int
        Rows of a row group, up to 2**26. Memory holds two row groups more than there are threads.
    compression : {"none", "snappy", "lz4", "zstd"}
        Of the pages.
    overwrite : bool
        Replace files that exist.
    threads : int, optional
        All cores when absent; the files do not depend on it.
    progress : bool or callable, optional
        As for `fastbcubed.evaluate`.

    Raises
    ------
    OptionError
        If an argument is none of these, a file exists, or its directory does not.
    DiskSpaceError
        If there is too little free disk; said before anything is written.
    FileFormatError
        If a file cannot be written. Then, and on Ctrl-C, nothing is left of it, and what was there before
        is still there. What a killed process leaves is removed by the next that writes the same file.

    Examples
    --------
    >>> import tempfile
    >>> import fastbcubed as fb
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = f"{directory}/items.parquet"
    ...     generate(path, 10_000)
    ...     ev = fb.evaluate("truth", "prediction", table=path)
    >>> [ev.summary[side]["clusters"] for side in ("true", "pred")]  # 15 % split, 10 % merged
    [4001, 4201]
    """
    synthetic = Synthetic(n_items, shape, seed)
    check_among("ids", ids, IDS)
    check_among("compression", compression, COMPRESSIONS)
    row_group = whole_number(row_group, "row_group", "rows", least=1, most=MOST_ROWS)
    if threads is not None:
        threads = whole_number(threads, "threads", "threads", least=1)
    flags = {"weights": weights, "attributes": attributes, "overwrite": overwrite}
    weights, attributes, overwrite = (true_or_false(value, name) for name, value in flags.items())
    more = ["weight"] * weights + REPEATING * attributes
    extra = dict(zip(more, more, strict=True))
    if prediction_out is None:
        columns = {"truth": {"truth": "true", "prediction": "pred", **extra}}
        files = {"truth": Path(path)}
    else:
        columns = {
            "truth": {"item": "item", "cluster": "true", **extra},
            "prediction": {"item": "item", "cluster": "pred"},
        }
        files = {"truth": Path(path), "prediction": Path(prediction_out)}
    _check_files(list(files.values()), overwrite=overwrite)
    _check_disk({file: n_items * _row_bytes(columns[order], ids) for order, file in files.items()})
    origin = json.dumps({"n_items": n_items, "shape": shape, "seed": seed})
    with ExitStack() as stack:
        report = stack.enter_context(reporting(progress))
        pool = stack.enter_context(Pool(threads, report))
        asides = {order: stack.enter_context(written_aside(file)) for order, file in files.items()}
        import pyarrow.parquet as pq

        for order, aside in asides.items():
            make = partial(synthetic.rows, columns[order], order=order, ids=ids)
            schema = schema_of(columns[order], ids).with_metadata({"fastbcubed.generate": origin})
            with pq.ParquetWriter(aside, schema, compression=compression, use_dictionary=REPEATING) as writer:
                groups = blocks(n_items, row_group)
                sizes = [stop - start for start, stop in groups]
                for batch in pool.stream(make, groups, f"writing the {order}", sizes):
                    writer.write_table(pa.Table.from_batches([batch]), row_group_size=row_group)


def _row_bytes(columns: Mapping[str, str], ids: str) -> int:
    """Return the bytes of a row, before compression."""
    known = {"weight": 8, "country": 1, "year": 1}
    name = 8 if ids == "int" else 4 + NAME
    return sum(known.get(kind, name) for kind in columns.values())


def _check_files(files: list[Path], *, overwrite: bool) -> None:
    if len({file.resolve() for file in files}) < len(files):
        raise OptionError(f"truth and prediction are two files, not both {files[0]}")
    for file in files:
        if file.suffix.lower() in OTHER_FORMATS:
            raise OptionError(f"{file} would be Parquet, whatever it is called; name it {file.stem}.parquet")
        if file.is_dir():
            raise OptionError(f"{file} is a directory; name a file in it")
        if not file.parent.is_dir():
            raise OptionError(f"there is no directory {file.parent} to write {file.name} to")
        if file.exists() and not overwrite:
            raise OptionError(f"{file} exists; pass overwrite=True to replace it")


def _check_disk(sizes: Mapping[Path, int]) -> None:
    """Refuse to write what does not fit; files that are to be replaced stay until the end."""
    for device in {file.parent.stat().st_dev for file in sizes}:
        here = [file for file in sizes if file.parent.stat().st_dev == device]
        needed = sum(sizes[file] for file in here)
        needed += needed // 50 + (1 << 20)  # headers and the footer
        free = shutil.disk_usage(here[0].parent).free
        if needed > free:
            raise DiskSpaceError(
                f"{' and '.join(map(str, here))} may take {needed:,} bytes, but {here[0].parent} has only "
                f"{free:,} free. Generate fewer items, or write them elsewhere"
            )
