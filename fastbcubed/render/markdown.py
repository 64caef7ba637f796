"""Documents as Markdown, such as for the summary of a CI job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from fastbcubed.errors import visible
from fastbcubed.render.document import (
    NUMBERS,
    Beside,
    Block,
    Clusters,
    Fold,
    Grid,
    Heading,
    Notices,
    Only,
    Prose,
)


def drawn(blocks: Iterable[Block], say: Callable[[str], str] = str) -> str:
    """Return blocks separated and followed by blank lines; `say` rewords sentences for the reader."""
    return "".join(f"{text}\n\n" for text in (_markdown(block, say) for block in blocks) if text)


def _markdown(block: Block, say: Callable[[str], str]) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {plain(text)}"
        case Prose(sentences):
            return plain(" ".join(map(say, sentences)))
        case Notices(rows):
            return "\n\n".join(f"> **{row.level}** `{row.code}`: {plain(say(row.message))}" for row in rows)
        case Grid():
            return _table(block) if block.rows else ""
        case Clusters(table=Grid() as table):
            return _markdown(table, say)
        case Beside(columns):
            return drawn((each for column in columns for each in column), say).rstrip()
        case Only("text", blocks) | Fold(_, blocks):
            return drawn(blocks, say).rstrip()
    return ""


def _table(grid: Grid) -> str:
    """Return a grid with names aligned left and figures right; failed gates are bold."""
    grid = grid.texts
    under = ["---:" if grid.form(at) in NUMBERS else "---" for at in range(len(grid.header))]
    header, *rows = ([plain(cell) for cell in row] for row in (grid.named, *grid.rows))
    lines = (f"| {' | '.join(row)} |" for row in (header, under, *rows))
    return "\n".join(lines).replace("\n| failed |", "\n| **failed** |")


def plain(text: str) -> str:
    r"""Return text on one line, escaped so that Markdown displays it unchanged.

    Examples
    --------
    >>> print(plain("a|b <x> f1_of_means &amp;"))
    a\|b \<x\> f1\_of\_means \&amp;
    """
    return re.sub(r"([\\`*_{}\[\]<>|~#&$])", r"\\\1", visible(" ".join(text.split())))
