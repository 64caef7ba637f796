"""Notes on how the truth and the prediction were read: columns, whole floats, links."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fastbcubed.errors import Message, Word
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.link_clusters import CODES as OF_LINKS
from fastbcubed.inputs.link_clusters import warnings_of

if TYPE_CHECKING:
    from fastbcubed.inputs.layouts import Reading
    from fastbcubed.inputs.link_clusters import Connected

#: The codes of all notes on reading.
CODES = ("columns-recognised", "whole-floats", "made-of-links", "attributes-match-none", *OF_LINKS)


def reading_of(side: Clustering) -> dict[str, Any] | None:
    """Return the columns of a side, why they were chosen, and their alternatives; None if not from a table."""
    read = side.reading if side.links is None else side.links.columns
    return None if read is None else read.to_dict()


def readings_of(sides: Iterable[Clustering]) -> dict[str, Any]:
    """Return the reading of the truth and of the prediction."""
    return dict(zip(("truth", "prediction"), map(reading_of, sides), strict=True))


def notes_of(sides: Iterable[Clustering]) -> list[dict[str, Any]]:
    """Return the notes on truth and prediction, without repetition: code, level "note", message and figures."""
    named = list(zip(("truth", "prediction"), sides, strict=True))
    found = [note for _, side in named for note in notes_of_side(side)]
    found += [_of_links(which, side, side.links) for which, side in named if side.links is not None]
    return list({note["message"]: note for note in found}.values())


def notes_of_side(side: Clustering) -> list[dict[str, Any]]:
    """Return the notes on one side: its links, its columns, and floats that were read as integers."""
    notes = [] if side.links is None else warnings_of(side.links)
    reading = side.reading
    if reading is not None and not reading.is_obvious:
        notes.append(
            {"code": "columns-recognised", "level": "note", "message": _read_as(side.name, reading)}
            | {"tool": reading.tool}
            | {part: list(getattr(reading, part).columns) for part in ("item", "cluster")}
            | {"reasons": {part: getattr(reading, part).reason for part in ("item", "cluster")}}
            | {"others": [name for (name,) in reading.cluster.others]}
        )
    columns = [side.labels] if side.items is None else [side.items, side.labels]
    return notes + [
        {
            "code": "whole-floats",
            "level": "note",
            "message": f"The values of {column.where} are whole floats or decimals, and are read as integers.",
            "column": column.name,
        }
        for column in columns
        if column.was_fractional
    ]


def unmatched_attributes(n_rows: int) -> dict[str, Any]:
    """Return the warning that no row of a table of attributes matches an item."""
    message = (
        f"None of the {n_rows:,} rows of the attributes match an item of the clusterings, so all attributes "
        "are null. Check that both write ids in the same way: type, prefixes, leading zeros, case."
    )
    return {"code": "attributes-match-none", "level": "warning", "message": message, "n_rows": n_rows}


def _read_as(name: str, reading: Reading) -> str:
    how = f"as {reading.tool} writes them" if reading.tool else "as follows"
    item, cluster = (" + ".join(part.columns) for part in (reading.item, reading.cluster))
    said = f"The columns of {name} are read {how}: item = {item}, cluster = {cluster}."
    if reading.cluster.others:
        said += f" Not read as clusters: {', '.join(name for (name,) in reading.cluster.others)}."
    return said


def _of_links(which: str, side: Clustering, made: Connected) -> dict[str, Any]:
    columns, n, total = made.columns, made.n_connecting, made.n_links
    connecting = f"{n:,} of {total:,}" if n < total else f"{n:,}"
    message = f"The {Word(which)} is built from {connecting} link{'s' * (total != 1)}"
    if made.threshold is not None:
        few = "less" if made.ascending else "more"
        message += f", those with a {columns.score} of {made.threshold:g} or {few}."
    elif columns.scores:
        message += f", whatever their {columns.scores[0]}: no threshold was given."
    else:
        message += "."
    if columns.verdict is not None:
        message += f" {made.n_apart:,} pairs judged not to match were kept apart"
        message += f"; {made.n_unsure:,} without a verdict join nothing." if made.n_unsure else "."
    if columns.recognised:
        how = f"as {columns.tool} writes them" if columns.tool else "as follows"
        left, right = " + ".join(columns.left), " + ".join(columns.right)
        message += f" Their columns are read {how}: left = {left}, right = {right}."
    return {
        "code": "made-of-links",
        "level": "note",
        "message": Message(message),
        "side": which,
        "n_links": total,
        "n_connecting": n,
        "score": columns.score,
        "threshold": made.threshold,
        "omits_singletons": side.omits_singletons,
        "verdict": columns.verdict,
        "n_judged_different": made.n_apart,
        "n_unsure": made.n_unsure,
    }
