"""Which engine does the work: the disk engine where files would not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastbcubed.engines import memory
from fastbcubed.engines.request import Answer, Request
from fastbcubed.engines.spark import frames
from fastbcubed.errors import OptionError
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources.tables import is_path

Run = Callable[[Request, Pool], Answer]

#: What the memory engine takes for a row, about: its keys, the row in its part, its share of a cell.
ROW_BYTES = 64


def choose(engine: str | None, request: Request, *others: Request, compared: bool = False) -> Run:
    """Return what does the work: the engine that was named, or the one that can hold the rows.

    `others` differ from the request in their prediction, and are held at once; `compared` tells that all are compared.
    """
    if engine not in (None, "memory", "disk", "spark"):
        raise OptionError(f'engine is "memory", "disk" or "spark", not {engine!r}')
    if engine == "spark" or frames.is_any(request.given.sources):
        return _spark(engine)
    if compared and engine == "disk" and request.given.overlapping:
        raise OptionError(
            "the disk engine does not compare overlapping clusterings, for which all items are needed; evaluate them "
            'one by one, or pass engine="memory"'
        )
    if engine == "memory" or (compared and request.given.overlapping):
        return memory.run
    sources = [request.given.sources, *(other.given.sources[1:] for other in others)]
    files = [source for of_request in sources for source in of_request]
    if engine is None and not _are_too_large(files, request):
        return memory.run
    if request.given.overlapping:
        return _for_covers(engine, request)
    from fastbcubed.engines import disk

    return disk.run


def _for_covers(engine: str | None, request: Request) -> Run:
    """Return what scores files of overlapping clusterings: the disk engine, if it can or was named."""
    from fastbcubed.engines import covers_on_disk

    return covers_on_disk.run if engine == "disk" or covers_on_disk.serves(request) else memory.run


def _spark(engine: str | None) -> Run:
    """Return the Spark engine, which alone takes DataFrames of Spark."""
    if engine not in (None, "spark"):
        raise OptionError(
            f"DataFrames of Spark are scored where they are, not with engine={engine!r}; write them as Parquet files, "
            "and pass the path of these"
        )
    from fastbcubed.engines.spark import driver

    return driver.run


def _are_too_large(sources: Sequence[Any], request: Request) -> bool:
    """Tell whether all sources are files that can be read in blocks, and would not fit in memory."""
    if not all(is_path(source) for source in sources):
        return False
    from fastbcubed.sources.files import FileRows, open_files

    opened = [open_files(source) for source in sources]
    tables = [table for table in opened if isinstance(table, FileRows) and table.can_be_cut]
    needed = sum(len(table) * ROW_BYTES + table.bytes_in_memory for table in tables)
    return len(tables) == len(opened) and needed > request.limit
