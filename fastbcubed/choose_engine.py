"""Choice of the engine: the disk engine if files do not fit in memory, or other rows within a given limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized

from fastbcubed.engines import memory
from fastbcubed.engines.request import Answer, Request
from fastbcubed.engines.scoring import require_room
from fastbcubed.errors import OptionError, arg, quoted
from fastbcubed.inputs.files import bytes_of_text
from fastbcubed.runtime.arguments import is_one_of, is_path, refuse_idle
from fastbcubed.runtime.memory_budget import available_memory
from fastbcubed.runtime.spill import readable
from fastbcubed.runtime.threads import Pool

Run = Callable[[Request, Pool], Answer]

#: Approximate bytes per row in the memory engine: its keys, its copy in a part, its share of a cell.
ROW_BYTES = 64
#: Approximate bytes per row of memberships in the memory engine, if clusters overlap: to score them, and to save the
#: result as well, for which a limit must have room.
MEMBERSHIP_BYTES, SAVED_BYTES = 160, 320


def choose(engine: str | None, request: Request, *others: Request) -> Run:
    """Return the engine to run: the named one or, by default, one with room for the rows.

    `others` are further requests with other predictions, which are in memory at the same time.
    """
    if not is_one_of(engine, (None, "memory", "disk", "spark")):
        raise OptionError(f'{arg("engine")} must be "memory", "disk" or "spark", not {quoted(engine)}')
    if engine == "spark" or request.given.on_spark:
        run = _spark(engine)
        for name in ("memory_limit", "spill_dir"):  # Spark has settings of its own
            refuse_idle(getattr(request, name) is not None, name, "the disk engine")
        return run
    if engine == "memory":
        require_in_memory(request, *others)
        return memory.run
    if engine is None and request.memory_limit is not None:
        for each in (request, *others):
            if any(map(bytes_of_text, each.given.sources)):  # both engines hold such files in memory
                require_room(each)
    if request.given.overlapping:
        return _overlapping(engine, request, others)
    if engine is None:
        needed = _bytes_in_memory(request, others)
        if needed is None or needed <= request.limit:
            return memory.run
    from fastbcubed.engines import disk

    return disk.run


def require_in_memory(request: Request, *others: Request) -> None:
    """Raise OptionError if the requested memory engine would exceed a given limit."""
    if request.memory_limit is None:
        return
    needed = _bytes_in_memory(request, others)
    if needed is not None and needed > request.limit:
        raise OptionError(
            f"scoring in memory would take about {readable(needed)}, more than the {arg('memory_limit', ...)} of "
            f"{readable(request.limit)}. Raise it to at least {(needed >> 20) + 1} MiB, or let the disk engine score "
            "what it can, by omitting the engine"
        )


def _overlapping(engine: str | None, request: Request, others: Sequence[Request]) -> Run:
    """Return the memory engine, the only one for overlapping clusterings; raise OptionError if they would not fit."""
    needed = _bytes_in_memory(request, others)
    takes = "" if needed is None else f", where these need about {readable(needed)}"
    if engine == "disk":
        raise OptionError(
            f"overlapping clusterings can only be scored in memory{takes}, since the items of a cluster may "
            f"also be in any other cluster; omit {arg('engine')}"
        )
    room = available_memory() if request.memory_limit is None else request.limit
    if needed is not None and needed > room:
        more = f"raise {arg('memory_limit')} to at least {(needed >> 20) + 1} MiB"
        if request.memory_limit is None:
            more = f"free some memory, or pass {arg('engine', 'memory')} to try anyway"
        raise OptionError(
            f"overlapping clusterings can only be scored in memory{takes}, but only {readable(room)} are "
            f"available. Score all rows of a sample of items, or {more}"
        )
    return memory.run


def _spark(engine: str | None) -> Run:
    """Return the Spark engine, the only one for Spark DataFrames."""
    if engine not in (None, "spark"):
        raise OptionError(
            f"Spark DataFrames are scored by Spark, not with {arg('engine', engine)}; to use that engine, "
            "write them as Parquet files and pass the path"
        )
    from fastbcubed.spark import driver

    return driver.run


def _bytes_in_memory(request: Request, others: Sequence[Request]) -> int | None:
    """Return the approximate memory that the memory engine needs for all runs; None if a source has to be read whole.

    Runs that are columns of one table share its bytes, but each has rows of its own.
    Text files, and sources without a length, such as streams, have to be read whole. Without a limit, the result is
    also None if a source is in memory already, so that it fits.
    """
    from fastbcubed.inputs.files import open_files

    sources = [*request.given.sources, *(source for other in others for source in other.given.sources[1:])]
    n_more = 0 if request.given.table is None else len(others)  # runs without a source of their own
    limited, row_bytes = request.memory_limit is not None, ROW_BYTES
    if not limited and not all(map(is_path, sources)):
        return None
    if request.given.overlapping:
        row_bytes = SAVED_BYTES if limited else MEMBERSHIP_BYTES
    opened = [open_files(source) if is_path(source) else source for source in sources]
    flat = any(
        getattr(each, "ndim", 1) == 0 for each in opened
    )  # arrays without dimensions, which have no length
    if flat or not all(getattr(each, "can_be_cut", isinstance(each, Sized)) for each in opened):
        return None
    held = sum(getattr(each, "bytes_in_memory", 0) for each in opened)
    return row_bytes * (sum(map(len, opened)) + n_more * len(opened[0])) + held
