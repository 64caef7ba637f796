"""Documents as HTML for a notebook: plain tables, styled only by alignment."""

from __future__ import annotations

from collections.abc import Iterable

from fastbcubed.render.document import NUMBERS, Beside, Block, Code, Grid, Notices, Prose
from fastbcubed.render.text import drawn as as_text
from fastbcubed.render.text import sentence


class Shown:
    """A result that shows itself as its document, in a terminal and in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return as_text(self._document())

    def _repr_html_(self) -> str:
        return drawn(self._document())

    def _document(self) -> Iterable[Block]:
        raise NotImplementedError


def drawn(blocks: Iterable[Block]) -> str:
    """Return blocks as an element; charts are left to pages."""
    return f"<div>{''.join(map(_html, blocks))}</div>"


def _html(block: Block) -> str:
    match block:
        case Prose(sentences, style) if sentences:
            first, *others = map(escaped, sentences)
            return f"<p>{'<br>'.join([f'<b>{first}</b>' if style == 'title' else first, *others])}</p>"
        case Notices(rows):
            return _html(Prose([sentence(row) for row in rows] or [block.none] * bool(block.none)))
        case Grid():
            return html_table(block) if block.rows else ""
        case Beside(columns):
            return "".join(_html(each) for column in columns for each in column)
        case Code(text):
            return f"<pre>{escaped(text)}</pre>"
    return ""


def escaped(text: str) -> str:
    """Return a text for HTML."""
    import html

    return html.escape(text.strip())


def html_table(grid: Grid) -> str:
    """Return a grid as a table."""
    grid = grid.texts
    right = [grid.form(at) in NUMBERS for at in range(len(grid.header))]

    def row(cells: Iterable[str], tag: str) -> str:
        aligned = ("right" if each else "left" for each in right)
        shown = zip(cells, aligned, strict=True)
        cell = "".join(f'<{tag} style="text-align:{side}">{escaped(text)}</{tag}>' for text, side in shown)
        return f"<tr>{cell}</tr>"

    body = "".join(row(cells, "td") for cells in grid.rows)
    return f"<table><thead>{row(grid.header, 'th')}</thead><tbody>{body}</tbody></table>"
