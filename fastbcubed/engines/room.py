"""What the disk engine holds as a whole beside its blocks, and whether the memory limit has room for it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from fastbcubed.cells.shards import require_limit
from fastbcubed.clusterings.inputs import per_side
from fastbcubed.engines.request import Request
from fastbcubed.errors import OptionError
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.slices.bins import Bins
from fastbcubed.results.slices.slicing import elements
from fastbcubed.runtime.spill import readable
from fastbcubed.sources.files import FileRows, open_files
from fastbcubed.sources.tables import column_names, is_path
from fastbcubed.sources.text_size import bytes_of_text

#: What may be held: so many bytes, and this part of the limit.
ROOM, SHARE = 128 << 20, 3
#: Bytes of a row of a table that is joined by item, beside its values.
JOINED = 16
#: Bytes an item that scores of all cells at once hold, measured by family; those of other families hold next to none.
OF_ALL_CELLS = {"overlap": 145, "matching": 52, "coreference": 52, "bcubed": 26, "pointwise": 10, "edit": 8}
#: What is held while the cells are counted: so many bytes an item, at most the limit, and others beside; and what
#: may be held beside the limit.
COUNTED, BESIDE, ALLOWED = 40, 80 << 20, 256 << 20


def scores_without_room(metrics: Iterable[Metric], n_rows: int, limit: int) -> dict[str, str]:
    """Return the scores that would pass the limit, as they take all cells at once, and why."""
    base = min(limit, COUNTED * n_rows) + BESIDE
    return {
        metric.name: f"it takes all cells at once, for which the memory limit has no room; raise memory_limit to at "
        f"least {((COUNTED + each) * n_rows + BESIDE - ALLOWED >> 20) + 1} MiB"
        for metric in metrics
        if (each := _held_by(metric)) * n_rows + base > limit + ALLOWED
    }


def _held_by(metric: Metric) -> int:
    """Return the bytes an item that a score holds beside those that are added up part by part."""
    whole = (m for m in (metric, *metric.needs) if m.score is not None or m.uses_tn)
    return max((OF_ALL_CELLS.get(m.family, 0) for m in whole), default=0)


def scores_of_whole_covers(metrics: Iterable[Metric]) -> dict[str, str]:
    """Return the scores of overlapping clusterings that take all cells at once, and why that is not done."""
    return {
        metric.name: "it takes all cells of overlapping clusterings at once, which the disk engine does not hold; "
        'leave it out, or pass engine="memory"'
        for metric in metrics
        if any(each.score is not None or each.matrix is not None for each in (metric, *metric.needs))
    }


def require_room(request: Request) -> None:
    """Raise, before anything is read, if the limit is too small, or files that are held as a whole take more of it."""
    require_limit(request.limit)
    given = request.given
    names = ("table",) if given.table is not None else ("truth", "prediction")
    what = dict(zip(names, given.sources, strict=True))
    held = {name: bytes_of_text(source) for name, source in what.items()}
    what |= {"weight": given.weight, "attributes": given.attributes}
    held["weight"] = 0 if isinstance(given.weight, str) else _of_joined(given.weight, None)
    held["attributes"] = _of_joined(given.attributes, None if request.keep == "items" else _used(request))
    total = sum(held.values())
    if total <= request.limit // SHARE + ROOM:
        return
    name = max(held, key=lambda name: held[name])
    path = f"{os.fspath(what[name])}, given as " if is_path(what[name]) else "the table given as "
    least = (SHARE * (total - ROOM) >> 20) + 1
    way_out = "" if name in ("weight", "attributes") else ", or write it as Parquet, which is read in blocks"
    raise OptionError(
        f"{path}{name}= would take about {readable(held[name])} of memory, as it is held as a whole. Raise "
        f"memory_limit to at least {least} MiB{way_out}"
    )


def _used(request: Request) -> set[str]:
    """Return the columns of a table of attributes that are used, unless items are kept."""
    keys = [each.name if isinstance(each, Bins) else each for key in request.slices for each in elements(key)]
    items = [name for names in per_side(request.given.item, "item") for name in column_names(names, "item")]
    return {*keys, *items}


def _of_joined(source: Any, used: set[str] | None) -> int:
    """Return what is held of a table that is joined by item, of the columns that are used or of all, about."""
    if not is_path(source):
        shape = getattr(source, "shape", (0,))
        return int(shape[0] * 2 * JOINED) if len(shape) == 2 else 0
    table = open_files(source)
    if not isinstance(table, FileRows) or not table.can_be_cut or not len(table):
        return bytes_of_text(source)
    names = [name for name in table.names if used is None or name in used]
    return int(len(table) * (JOINED + max(8 * len(names), table.row_bytes(names))))
