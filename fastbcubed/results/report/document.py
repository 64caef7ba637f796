"""A page of headings, sentences, charts and tables, as plain data that one template draws, whatever the result is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastbcubed.results.report.evaluation_content import MESSAGES, head
from fastbcubed.results.report.shortening import shortened
from fastbcubed.results.text.wording import Grid


def document(
    kind: str,
    title: str,
    facts: Mapping[str, str],
    sections: Sequence[Mapping[str, Any]],
    warnings: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the content of a page: facts below its title, and sections, the first of which has the warnings."""
    content = {
        **head(kind, title),
        "facts": [{"name": name, "message": text} for name, text in facts.items()],
        "warnings": {"n": len(warnings), "rows": list(warnings)[:MESSAGES]},
        "sections": [each for each in sections if each],
    }
    found: dict[str, Any] = shortened(content)
    return found


def section(
    title: str,
    sentences: Iterable[str] = (),
    *,
    charts: Sequence[Mapping[str, Any]] = (),
    grids: Iterable[Grid] = (),
    notes: Iterable[str] = (),
) -> dict[str, Any]:
    """Return a section: sentences, charts as `chart` returns them, tables, and notes below them."""
    return {
        "title": title, "sentences": list(sentences), "charts": list(charts), "lines": list(notes),
        "grids": [{"header": grid.header, "names": grid.names, "rows": [{"cells": row} for row in grid.rows]}
                  for grid in grids if grid.rows],
    }  # fmt: skip


def chart(draws: str, title: str, text: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chart as data; `draws` is what draws it, see `pictures`."""
    return {"draws": draws, "title": title, "text": text, "data": data}
