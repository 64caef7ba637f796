"""Documents as text for a terminal of 80 columns or more."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from fastbcubed.errors import SPACES, visible
from fastbcubed.render.document import (
    INTERVALS,
    NUMBERS,
    ON_PAGE,
    Beside,
    Block,
    Clusters,
    Code,
    Fold,
    Grid,
    Heading,
    Notice,
    Notices,
    Only,
    Prose,
)
from fastbcubed.render.number_formats import label, listed

#: Characters per line, spaces between columns, and minimum width to which a text column shrinks.
WIDTH, GAP, NARROWEST = 80, 2, 8
#: Minimum characters kept of a long text before columns are left out, and of a word or id, which the next command may
#: need in full; and maximum characters of a text if lines have no maximum length.
FOLDED, WHOLE, LONGEST = 20, 40, 400


@dataclass(frozen=True)
class Lines:
    """How lines are written: width of tables, bold headings; `say` rewords sentences for the reader."""

    width: int | None = WIDTH
    styled: bool = False
    say: Callable[[str], str] = str


def drawn(blocks: Iterable[Block], lines: Lines = Lines()) -> str:
    """Return blocks as text, separated by blank lines; charts are left out."""
    return "".join(pieces(blocks, lines))


def pieces(blocks: Iterable[Block], lines: Lines) -> Iterator[str]:
    """Yield the text of each block, preceded by a blank line except at the beginning and below a heading."""
    before = ""
    for block in blocks:
        if text := _text(block, lines):
            yield before + text
            before = "\n" if isinstance(block, Heading) else "\n\n"


def _text(block: Block, lines: Lines) -> str:
    match block:
        case Heading(text):
            title = label(text) if lines.width is None else paragraph(label(text))
            return f"\033[1m{title}\033[0m" if lines.styled else title
        case Prose(sentences, "title"):
            others = (visible(lines.say(each), SPACES) for each in sentences[1:])
            return "\n".join([*map(paragraph, map(lines.say, sentences[:1])), *others])
        case Prose(sentences, "indented"):
            return "\n".join(paragraph(lines.say(each), "  ", after="    ") for each in sentences)
        case Prose(sentences):
            return "\n".join(map(paragraph, map(lines.say, sentences)))
        case Notices(rows):
            return "\n".join(paragraph(sentence(row, lines.say), after="  ") for row in rows) or block.none
        case Clusters(table=Grid() as table):
            return _text(table, lines)
        case Grid():
            return aligned(block, lines.width, styled=lines.styled) if block.rows else ""
        case Beside(columns):
            return "\n".join(filter(None, (_text(each, lines) for column in columns for each in column)))
        case Only("text", blocks) | Fold(_, blocks):
            return drawn(blocks, lines)
        case Code(text):
            return text
    return ""


def sentence(notice: Notice, say: Callable[[str], str] = str) -> str:
    """Return a notice with its level and code; `say` rewords its message for the reader."""
    code = f" [{notice.code}]" if notice.code else ""
    return f"{notice.level.capitalize()}: {say(notice.message)}{code}"


def aligned(grid: Grid, width: int | None = WIDTH, *, styled: bool = False) -> str:
    """Return a grid as aligned lines: names to the left, figures to the right unless the grid says otherwise.

    Columns that do not fit are named below the table. Figures are never cut; long texts wrap.
    """
    grid, left_out = fitted(grid, width)
    text = _lines(grid, width, styled)
    named = f"(no room for {', '.join(left_out)})"
    return f"{text}\n{paragraph(named, after='  ')}" if left_out else text


def fitted(grid: Grid, width: int | None) -> tuple[Grid, list[str]]:
    """Return a grid as text without the columns that do not fit on a line, and the names of these.

    Columns of the highest rank are left out first, from right to left. Intervals are left out before columns of their
    rank, from left to right, but the last one not before figures. Long texts and ids wrap before columns are left out.
    """
    grid = grid.only([at for at in range(len(grid.header)) if ON_PAGE not in grid.ranks[at : at + 1]])
    ranks = [_rank(grid, at) for at in range(len(grid.header))]
    intervals = [at for at in range(len(ranks)) if grid.form(at) in INTERVALS]
    kept, without, left_out = [*range(len(ranks))], list[int](), list[int]()
    widths = _folded(grid)
    while width is not None and _length([widths[at] for at in kept]) > width:
        rank = max(ranks[at] for at in kept)
        if intervals and rank <= (OF_INTERVALS if len(intervals) > 1 else OF_FIGURES):
            without.append(intervals.pop(0))
            grid = grid.without_intervals(without[-1])
            widths = _folded(grid)
        elif rank == 0:
            break
        else:
            left_out.append([at for at in kept if ranks[at] == rank][-1])
            kept = [at for at in kept if at not in left_out]
            intervals = [at for at in intervals if at in kept]
    names = dict.fromkeys(grid.header[at] for at in sorted(left_out))
    intervals_of = [grid.header[at] for at in without if at in kept and grid.header[at]]
    if intervals_of:
        names[f"interval{'s' * (len(intervals_of) > 1)} of {listed(intervals_of)}"] = None
    return grid.texts.only(kept), [label(name) for name in names if name]


#: Rank of intervals, and of figures other than the first, in a grid without ranks; names and texts stay.
OF_INTERVALS, OF_FIGURES = 2, 1


def _rank(grid: Grid, at: int) -> int:
    if any(grid.ranks) or at <= grid.names or grid.form(at) in ("text", "name"):
        return grid.ranks[at] if grid.ranks else 0
    return OF_FIGURES


def _folded(grid: Grid) -> list[int]:
    """Return the width of each column if long texts wrap."""
    texts = grid.texts
    least = [
        max(FOLDED, *map(_longest_word, column)) for column in zip(texts.header, *texts.rows, strict=True)
    ]
    return [
        own if texts.form(at) in NUMBERS else min(own, least[at], WHOLE)
        for at, own in enumerate(_widths(texts))
    ]


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _widths(grid: Grid) -> list[int]:
    from rich.cells import cell_len

    return [max(map(cell_len, column)) for column in zip(grid.header, *grid.rows, strict=True)]


def _length(widths: Sequence[int]) -> int:
    """Return the number of characters in a line with columns of these widths."""
    return sum(widths) + GAP * (len(widths) - 1)


def _lines(grid: Grid, width: int | None, styled: bool) -> str:
    """Return a grid of texts as lines; if they do not fit, the widest text columns wrap."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    widths = _widths(grid)
    texts = [at for at in range(len(widths)) if grid.form(at) not in NUMBERS or at < grid.names]
    if width is None:
        widths = [min(own, LONGEST) if at in texts else own for at, own in enumerate(widths)]
    while width is not None and _length(widths) > width and texts:
        widest = max(texts, key=lambda at: widths[at])
        if widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
    table = Table(
        box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim", show_header=any(grid.header)
    )
    for at, (name, own) in enumerate(zip(grid.header, widths, strict=True)):
        left = at in texts or grid.left
        table.add_column(Text(name), justify="left" if left else "right", width=own, overflow="fold")
    for row in grid.rows:
        table.add_row(*map(Text, row))
    console = Console(
        width=_length(widths) + GAP, force_terminal=styled, color_system="auto" if styled else None,
        highlight=False, markup=False, emoji=False, legacy_windows=False, force_jupyter=False,
    )  # fmt: skip
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def paragraph(text: str, before: str = "", after: str = "") -> str:
    """Return text wrapped for a terminal; a number and its percent sign stay together."""
    together = (before + visible(text, SPACES)).replace(" %", "\0%")
    return textwrap.fill(
        together, WIDTH, subsequent_indent=after, break_long_words=False, break_on_hyphens=False
    ).replace("\0", " ")
