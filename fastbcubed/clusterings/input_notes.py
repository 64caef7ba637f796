"""What a reader of the scores should know of how the two clusterings were read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fastbcubed.clusterings.clustering import Clustering

__all__ = ["CODES", "notes_of"]

#: The codes of all notes.
CODES = ("columns-recognised", "whole-floats")


def notes_of(sides: Iterable[Clustering]) -> list[dict[str, Any]]:
    """Return the notes of both sides, each once: a code, the level "note", a message, and figures."""
    found = {note["message"]: note for side in sides for note in (*_columns(side), *_floats(side))}
    return list(found.values())


def _columns(side: Clustering) -> Iterator[dict[str, Any]]:
    if side.reading is None:
        return
    items, clusters, tool = list(side.reading.items), list(side.reading.clusters), side.reading.tool
    how = f"as {tool} writes them" if tool else "as follows"
    yield {
        "code": "columns-recognised",
        "level": "note",
        "message": f"The columns of {side.name} are read {how}: item = {' + '.join(items)}, cluster = "
        f"{' + '.join(clusters)}.",
        "tool": tool,
        "item": items,
        "cluster": clusters,
    }


def _floats(side: Clustering) -> Iterator[dict[str, Any]]:
    columns = [side.labels] if side.items is None else [side.items, side.labels]
    for column in columns:
        if column.was_fractional:
            yield {
                "code": "whole-floats",
                "level": "note",
                "message": f"The values of {column.where} are floats or decimals, all whole, and read as integers.",
                "column": column.name,
            }
