"""A document is the same as plain data and back, and its tables fit a line."""

from __future__ import annotations

import json

from fastbcubed.render.document import (
    ON_PAGE,
    Beside,
    Chart,
    Clusters,
    Document,
    Grid,
    Notice,
    Notices,
    Only,
    Opened,
    Prose,
    Section,
    as_data,
    of_data,
)
from fastbcubed.render.text import aligned, drawn

#: An id that looks like a block of a document.
ODD = {"block": "Grid", "header": 1}
GRID = Grid(
    ["id", "n", "±", "more"], [[ODD, 7, 0.5, "x"]], 1, ["name", "count", "error", "text"], ranks=[0, 0, 2, 9]
)


def document() -> Document:
    opened = Opened("a", ODD, ["split"], "2 items", [["", "50 %", "of the loss"]], 0.5, [Prose(["told"])])
    blocks = [
        Only("text", [Prose(["in texts alone"])]),
        Beside([[Prose(["left"])], [Chart("c", "sizes", ([ODD],), "said")]]),
        Notices([Notice("note", "message", "code")], "Notes", 3),
        Clusters("about", [opened], GRID),
    ]
    return Document("kind", "title", [Prose(["head"], "lead")], [Section("one", "One", blocks)])


def test_a_document_is_plain_data_and_back() -> None:
    data = json.loads(json.dumps(as_data(document())))
    assert json.loads(json.dumps(as_data(of_data(data)))) == data
    (section,) = of_data(data).sections
    assert [type(block).__name__ for block in section.blocks] == ["Beside", "Notices", "Clusters"]
    (cluster,) = section.blocks[-1].rows  # type: ignore[union-attr]
    assert cluster.name == ODD and section.blocks[-1].table.rows[0][0] == ODD  # type: ignore[union-attr]


def test_gates_stand_before_the_first_warnings() -> None:
    (section,) = document().with_gates([Notice("passed", "f1")]).sections
    titles = [block.title for block in section.blocks if isinstance(block, Notices)]
    assert titles == ["Gates", "Notes"]


def test_a_text_has_the_table_of_clusters_and_no_columns_of_pages() -> None:
    text = drawn(document().blocks)
    assert "in texts alone" in text and "more" not in text and ON_PAGE in GRID.ranks
    assert text.splitlines()[-1].split() == ["Grid,", "1", "7", "0.50"]


def test_columns_go_by_rank() -> None:
    """20, 10, 10 and 10 characters with gaps of 2: standard errors together, then the last of the others."""
    header = ["i" * 20, "a" * 10, "±", "b" * 10, "±", "c" * 10]
    grid = Grid(header, [["x", 1, 0.5, 1, 0.5, 1]], 1, ["name", "count", "error", "count", "error", "count"])
    assert aligned(grid, 70).splitlines()[0].split() == [each for each in header]
    assert aligned(grid, 60).splitlines()[0].split() == [header[k] for k in (0, 1, 3, 5)]
    assert aligned(grid, 60).endswith("(no room for ±)")
    assert aligned(grid, 50).splitlines()[0].split() == [header[k] for k in (0, 1, 3)]
