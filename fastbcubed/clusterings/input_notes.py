"""What a reader of the scores should know of how the two clusterings were read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fastbcubed.clusterings.clustering import Clustering

__all__ = ["CODES", "notes_of"]

#: The codes of all notes.
CODES = ("columns-recognised", "whole-floats", "made-of-links")


def notes_of(sides: Iterable[Clustering]) -> list[dict[str, Any]]:
    """Return the notes of the truth and the prediction, each once: a code, the level "note", a message, and figures."""
    named = list(zip(("truth", "prediction"), sides, strict=True))
    found = [note for _, side in named for note in notes_of_side(side)]
    found += [note for which, side in named for note in _links(which, side)]
    return list({note["message"]: note for note in found}.values())


def notes_of_side(side: Clustering) -> list[dict[str, Any]]:
    """Return the notes of one side, whichever it is."""
    return [*_columns(side), *_floats(side)]


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


def _links(which: str, side: Clustering) -> Iterator[dict[str, Any]]:
    made = side.links
    if made is None:
        return
    columns, n, total = made.columns, made.n_connecting, made.n_links
    message = (
        f"The {which} is made of {f'{n:,} of {total:,}' if n < total else f'{n:,}'} link{'s' * (total != 1)}"
    )
    if made.threshold is not None:
        few = "less" if made.ascending else "more"
        message += f", those with a {columns.score} of {made.threshold:g} or {few}."
    elif columns.scores:
        message += f", whatever their {columns.scores[0]}: no threshold was given."
    else:
        message += "."
    if columns.recognised:
        how = f"as {columns.tool} writes them" if columns.tool else "as follows"
        left, right = " + ".join(columns.left), " + ".join(columns.right)
        message += f" Their columns are read {how}: left = {left}, right = {right}."
    yield {
        "code": "made-of-links",
        "level": "note",
        "message": message,
        "side": which,
        "n_links": total,
        "n_connecting": n,
        "score": columns.score,
        "threshold": made.threshold,
        "omits_singletons": side.omits_singletons,
    }
