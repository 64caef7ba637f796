"""Pages of sections: sentences, charts and tables, as sweeps and estimates have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fastbcubed.render.document import (
    Beside,
    Block,
    Chart,
    Document,
    Facts,
    Grid,
    Heading,
    Notice,
    Notices,
    Prose,
    Section,
)
from fastbcubed.render.json import shortened
from fastbcubed.render.report import Page
from fastbcubed.render.wording import count, named
from fastbcubed.results.page_content import MESSAGES, Content, head


def page_of(
    kind: str,
    title: str,
    facts: Mapping[str, str],
    sections: Sequence[Mapping[str, Any]],
    warnings: Sequence[Mapping[str, Any]] = (),
) -> Page:
    """Return a page: facts below its title, and sections, the first of which has the warnings."""
    content = {
        **head(kind, title),
        "facts": [{"name": name, "message": text} for name, text in facts.items()],
        "warnings": {"n": len(warnings), "rows": list(warnings)[:MESSAGES]},
        "sections": [each for each in sections if each],
    }
    return Page(shortened(content), document_of_sections)


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
                  for grid in (each.texts for each in grids) if grid.rows],
    }  # fmt: skip


def chart(draws: str, title: str, text: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a chart as data; `draws` names its drawing function in `plots`."""
    return {"draws": draws, "title": title, "text": text, "data": data}


def document_of_sections(content: Content) -> Document:
    """Return the document of such a page, from its content."""
    sections = []
    for k, each in enumerate(content["sections"]):
        blocks: list[Block] = [Prose(each["sentences"], "" if k else "lead")]
        charts = [
            [
                Chart(
                    f"s{k}-{j}",
                    one["draws"],
                    (one["data"],),
                    f"{one['title']}. {one['text']}",
                    one["title"],
                    one["text"],
                )
            ]
            for j, one in enumerate(each["charts"])
        ]
        blocks += [Beside(charts)] if charts else []
        blocks += [grid_block(grid, each["title"]) for grid in each["grids"]]
        blocks += [Prose(each["lines"], "note"), *(() if k else notices(content))]
        sections.append(Section(f"s{k + 1}", each["title"], blocks))
    return Document(
        [Facts([(fact["name"], fact["message"]) for fact in content["facts"]], "sides")], sections
    )


def grid_block(grid: Content, about: str) -> Grid:
    """Return a table of texts that content has, the definitions in it to the left."""
    header, names = grid["header"], grid["names"]
    forms = ["text" if k < names or name == "definition" else "figure" for k, name in enumerate(header)]
    return Grid(header, [row["cells"] for row in grid["rows"]], names, forms, about=about)


def about_slicings(slices: Content, text: str) -> Prose:
    """Return the note above all slicings, which also says how many are shown if not all are."""
    shown, n = len(slices["rows"]), slices["n"]
    return Prose([f"{text} {shown} of {n} slicings are shown." if n > shown else text], "note")


def slicing_head(slicing: Content, things: str) -> Iterator[Block]:
    """Yield the heading of a slicing, and how many of its `things` are shown if not all are."""
    yield Heading(f"By {named(slicing['names'])}")
    shown, n = len(slicing["rows"]), slicing["n"]
    if shown < n:
        yield Prose([f"{shown} of {count(n)} {things}."], "note")


def notices(content: Content) -> list[Block]:
    """Return the gates and the warnings of any result."""
    gates = [
        Notice("passed" if gate["passed"] else "failed", gate["text"].partition(": ")[2])
        for gate in content.get("gates", {"rows": ()})["rows"]
    ]
    warnings = content["warnings"]
    return [Notices(gates, "Gates"), Notices.of(warnings["rows"], n=warnings["n"])]
