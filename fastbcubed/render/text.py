"""Documents as text for a terminal of 80 columns or more."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable

from fastbcubed.render.document import Beside, Block, Code, Grid, Notice, Notices, Prose

WIDTH = 80
#: Characters of a line of a table.
LONGEST = 100
#: Spaces between columns, and the characters of a column that holds figures rather than text.
GAP, FIGURE = 2, 20


def drawn(blocks: Iterable[Block], say: Callable[[str], str] = str) -> str:
    """Return blocks with empty lines between them; `say` words notices for the reader. Charts have no text."""
    return "\n\n".join(filter(None, (_text(block, say) for block in blocks)))


def _text(block: Block, say: Callable[[str], str]) -> str:
    match block:
        case Prose(sentences, "title"):
            return "\n".join([*map(paragraph, sentences[:1]), *sentences[1:]])
        case Prose(sentences, "indented"):
            return "\n".join(paragraph(line, "  ", after="    ") for line in sentences)
        case Prose(sentences):
            return "\n".join(map(paragraph, sentences))
        case Notices(rows):
            return "\n".join(paragraph(sentence(row, say), after="  ") for row in rows) or block.none
        case Grid():
            return aligned(block) if block.rows else ""
        case Beside(columns):
            return "\n".join(filter(None, (_text(each, say) for column in columns for each in column)))
        case Code(text):
            return text
    return ""


def sentence(notice: Notice, say: Callable[[str], str] = str) -> str:
    """Return a notice with its level and code; `say` words its message for the reader."""
    return f"{notice.level.capitalize()}: {say(notice.message)} [{notice.code}]"


def aligned(grid: Grid) -> str:
    """Return a grid as lines: names to the left, figures to the right unless the grid has them to the left.

    Columns of figures that a line has no room for are named below; only a long text is cut.
    """
    grid = grid.texts
    widths = [max(map(len, column)) for column in zip(grid.header, *grid.rows, strict=True)]
    n = len(widths)
    while n > grid.names + 1 and sum(widths[:n]) + GAP * (n - 1) > LONGEST and widths[n - 1] <= FIGURE:
        n -= 1
    lines = []
    for row in (grid.header, *grid.rows):
        cells = [
            text.ljust(width) if at < grid.names or grid.left else text.rjust(width)
            for at, (text, width) in enumerate(zip(row[:n], widths[:n], strict=True))
        ]
        line = (" " * GAP).join(cells).rstrip()
        lines.append(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…")
    if n < len(widths):
        lines.append(f"(no room for {', '.join(filter(None, grid.header[n:]))})")
    return "\n".join(lines)


def paragraph(text: str, before: str = "", after: str = "") -> str:
    """Return a text in lines of a terminal; a number and its percent sign stay together."""
    together = (before + text).replace(" %", "\0%")
    return textwrap.fill(
        together, WIDTH, subsequent_indent=after, break_long_words=False, break_on_hyphens=False
    ).replace("\0", " ")
