"""Blocks, rows and sentences of a document as plain data, as `Report.content` has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def of_section(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a section; an empty one if the document lacks it."""
    return next((each for each in content["sections"] if each["id"] == name), {"id": name, "blocks": []})


def parts(found: Any, kind: str) -> list[dict[str, Any]]:
    """Return all blocks of a kind, also those within others."""
    return list(_parts(found, kind))


def _parts(found: Any, kind: str) -> Iterator[dict[str, Any]]:
    if isinstance(found, Mapping):
        if found.get("block") == kind:
            yield dict(found)
        found = found.values()
    if not isinstance(found, str) and hasattr(found, "__iter__"):
        for each in found:
            yield from _parts(each, kind)


def rows(grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a table by the names of its columns; the ends of intervals as `f1_low` and `f1_high`."""
    forms, found = grid.get("forms") or [""] * len(grid["header"]), list[dict[str, Any]]()
    for row in grid["rows"]:
        own = dict[str, Any]()
        for name, form, value in zip(grid["header"], forms, row, strict=True):
            if form in ("interval", "change"):
                own |= dict(zip((name, f"{name}_low", f"{name}_high"), value, strict=False))
            else:
                own[name] = value
        found.append(own)
    return found


def table(found: Any, at: int = 0) -> list[dict[str, Any]]:
    """Return the rows of the first table, or of another one."""
    return rows(parts(found, "Grid")[at])


def lines(found: Any) -> list[str]:
    """Return all sentences."""
    return [line for each in parts(found, "Prose") for line in each["sentences"]]


def notices(content: Any, title: str) -> list[dict[str, Any]]:
    """Return the notices below a title."""
    return [row for each in parts(content, "Notices") if each.get("title") == title for row in each["rows"]]
