"""Which engine does the work: the disk engine where files would not fit in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastbcubed.errors import OptionError
from fastbcubed.sources.tables import is_path

__all__ = ["choose_engine"]

#: What the memory engine takes for a row, about: its keys, the row in its part, its share of a cell.
ROW_BYTES = 64


def choose_engine(
    engine: str | None, sources: tuple[Any, ...], limit: int, in_the_way: Mapping[str, bool]
) -> str:
    """Return the engine to use: the disk where files would not fit in memory.

    Parameters
    ----------
    engine : {"memory", "disk"} or None
        What the user asked for.
    sources : tuple
        What the sides are read from.
    limit : int
        Bytes of memory that may be used.
    in_the_way : dict of str to bool
        Arguments that only the memory engine can serve, and whether they are given.
    """
    if engine not in (None, "memory", "disk"):
        raise OptionError(f'engine is "memory" or "disk", not {engine!r}')
    given = [name for name, is_given in in_the_way.items() if is_given]
    if engine == "disk" and given:
        raise OptionError(
            f"the disk engine does not serve {' and '.join(given)}, for which all items are needed; leave "
            'them out, or pass engine="memory"'
        )
    if engine is not None or given or not all(is_path(source) for source in sources):
        return engine or "memory"
    from fastbcubed.sources.files import FileRows, open_files

    opened = [open_files(source) for source in sources]
    tables = [table for table in opened if isinstance(table, FileRows) and table.can_be_cut]
    if len(tables) < len(opened):
        return "memory"
    needed = sum(len(table) * ROW_BYTES + table.bytes_in_memory for table in tables)
    return "disk" if needed > limit else "memory"
