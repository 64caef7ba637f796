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
    ["id", "n", "f1", "more"],
    [[ODD, 7, [0.5, 0.25, 0.75], "x"]],
    1,
    ["name", "count", "interval", "text"],
    ranks=[0, 0, 2, 9],
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
    assert text.splitlines()[-1].split() == ["Grid,", "1", "7", "0.500", "(0.250", "to", "0.750)"]


def test_columns_go_by_rank() -> None:
    """20, 22, 22 and 10 characters with gaps of 2: the first interval, then what has a rank, then the last interval."""
    header, score = ["i" * 20, "a" * 10, "b" * 10, "c" * 10], [0.5, 0.25, 0.75]
    forms, ranks = ["name", "interval", "interval", "count"], [0, 0, 1, 2]
    grid = Grid(header, [["x", score, score, 1]], 1, forms, ranks=ranks)
    shown = {width: aligned(grid, width).splitlines() for width in (80, 70, 60, 50)}
    assert [lines[0].split() for lines in shown.values()] == [header, header, header[:3], header[:3]]
    assert [lines[1].count(" to ") for lines in shown.values()] == [2, 1, 1, 0]
    assert shown[70][-1] == "(no room for interval of aaaaaaaaaa)"
    assert shown[50][-1] == "(no room for cccccccccc, intervals of aaaaaaaaaa and bbbbbbbbbb)"
