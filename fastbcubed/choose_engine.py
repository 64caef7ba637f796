"""Choice of the engine: the disk engine if files would not fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fastbcubed.engines import memory
from fastbcubed.engines.request import Answer, Request
from fastbcubed.engines.scoring import require_room
from fastbcubed.errors import OptionError, TooMuchWorkError, arg
from fastbcubed.inputs.files import bytes_of_text
from fastbcubed.inputs.tables import is_path
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.memory_budget import available_memory
from fastbcubed.runtime.threads import Pool
from fastbcubed.spark import frames

Run = Callable[[Request, Pool], Answer]

#: Approximate bytes of a row in the memory engine: its keys, the row in its part, its share of a cell.
ROW_BYTES = 64


def choose(engine: str | None, request: Request, *others: Request, compared: bool = False) -> Run:
    """Return the engine: the named one, or one with room for the rows.

    `others` differ from the request in their prediction, and are held at the same time; `compared` if all are compared.
    """
    if not is_one_of(engine, (None, "memory", "disk", "spark")):
        raise OptionError(f'{arg("engine")} is "memory", "disk" or "spark", not {engine!r}')
    if engine == "spark" or frames.is_any(request.given.sources):
        return _spark(engine)
    if compared and engine == "disk" and request.given.overlapping:
        raise OptionError(
            "the disk engine does not compare overlapping clusterings, for which all items are needed; evaluate them "
            f"one by one, or pass {arg('engine', 'memory')}"
        )
    if engine == "memory" or (compared and request.given.overlapping):
        return memory.run
    if engine is None and request.memory_limit is not None:
        for each in (request, *others):
            if any(map(bytes_of_text, each.given.sources)):  # held as a whole by either engine
                require_room(each)
    sources = [request.given.sources, *(other.given.sources[1:] for other in others)]
    files = [source for of_request in sources for source in of_request]
    if engine is None and ((needed := _bytes_in_memory(files)) is None or needed <= request.limit):
        return memory.run
    if request.given.overlapping:
        return _for_covers(engine, request)
    from fastbcubed.engines import disk

    return disk.run


def _for_covers(engine: str | None, request: Request) -> Run:
    """Return the engine for files of overlapping clusterings: the disk engine, if it is able to or was named."""
    from fastbcubed.engines import disk as covers_on_disk

    if engine == "disk":
        return covers_on_disk.run_covers
    return _covers_on_either if covers_on_disk.serves(request) else memory.run


def _covers_on_either(request: Request, pool: Pool) -> Answer:
    """Score files of overlapping clusterings on disk; in memory if that is too much work and there is no limit."""
    from fastbcubed.engines import disk as covers_on_disk

    try:
        return covers_on_disk.run_covers(request, pool)
    except TooMuchWorkError:
        if (
            request.memory_limit is not None
            or (_bytes_in_memory(request.given.sources) or 0) > available_memory()
        ):
            raise
    pool.announce(
        "too much work for the disk engine, which lists sets of clusters; the memory engine takes over", 0
    )
    return memory.run(request, pool)


def _spark(engine: str | None) -> Run:
    """Return the Spark engine, the only one for Spark DataFrames."""
    if engine not in (None, "spark"):
        raise OptionError(
            f"DataFrames of Spark are scored where they are, not with {arg('engine', engine)}; write them as Parquet "
            "files, and pass the path of these"
        )
    from fastbcubed.spark import driver

    return driver.run


def _bytes_in_memory(sources: Sequence[Any]) -> int | None:
    """Return the approximate memory of the memory engine for files; None if not all sources can be read in blocks."""
    if not all(is_path(source) for source in sources):
        return None
    from fastbcubed.inputs.files import open_files

    opened = [open_files(source) for source in sources]
    tables = [table for table in opened if table.can_be_cut]
    if len(tables) < len(opened):
        return None
    return sum(len(table) * ROW_BYTES + table.bytes_in_memory for table in tables)
