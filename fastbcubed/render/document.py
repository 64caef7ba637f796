"""A result as a document: blocks to be rendered as text, HTML, Markdown or a page, and formats for values.

Each kind of result has one function that returns its document; renderers accept any document. Blocks for pages only or
for text only are wrapped in `Only`. A document can be converted to plain data, which pages contain as JSON, and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import Any, TypeAlias, Union

from fastbcubed._version import __version__
from fastbcubed.errors import visible
from fastbcubed.render.number_formats import (
    amount,
    count,
    fixed,
    label,
    percent,
    score_text,
    share,
    signed,
    with_interval,
)


@dataclass(frozen=True)
class Heading:
    """A title above the blocks that follow; `side` names the side whose colour marks it."""

    title: Any
    level: int = 3
    id: str = ""
    side: str = ""


@dataclass(frozen=True)
class Prose:
    """Sentences, one per paragraph. The style is one of "", "title", "lead", "indented" and "note"."""

    sentences: Sequence[str]
    style: str = ""


@dataclass(frozen=True)
class Notice:
    """A warning or note, or the outcome of a gate."""

    level: str
    message: str
    code: str = ""


@dataclass(frozen=True)
class Notices:
    """Some of a result's `n` notices; `none` is the text to show if there are none."""

    rows: Sequence[Notice]
    title: str = ""
    n: int = 0
    none: str = ""

    @classmethod
    def of(cls, warnings: Sequence[Mapping[str, Any]], *, n: int = 0, none: str = "") -> Notices:
        """Return warnings and notes as notices, where `n` is the number before any were left out."""
        rows = [Notice(each["level"], each["message"], each["code"]) for each in warnings]
        return cls(rows, "Before you rely on this", n, none)


@dataclass(frozen=True)
class Grid:
    """A small table, whose first `names` columns identify the row; the others hold figures.

    Cells are texts, or values formatted according to `forms`, one form per column. `about` is the name for screen
    readers if there is no caption. `soft` has the rows to print in grey. `left` aligns figures to the left. If a line
    is too narrow, columns with the highest of `ranks` are left out first; those of rank 0 stay, and those of rank
    `ON_PAGE` are shown on pages only.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    names: int = 1
    forms: Sequence[str] = ()
    caption: str = ""
    about: str = ""
    soft: Sequence[int] = ()
    left: bool = False
    style: str = ""
    ranks: Sequence[int] = ()

    @classmethod
    def of(
        cls,
        rows: Iterable[Mapping[str, Any]],
        columns: Iterable[tuple[Any, ...]],
        names: int = 1,
        **how: Any,
    ) -> Grid:
        """Return rows as a table; `columns` has the header, key (or keys), form and optionally rank of each."""
        header, keys, forms, ranks = zip(*((*column, 0)[:4] for column in columns), strict=True)
        cells = [
            [[*map(row.get, key)] if isinstance(key, tuple) else row.get(key) for key in keys] for row in rows
        ]
        return cls(header, cells, names, forms, ranks=ranks, **how)

    def form(self, column: int) -> str:
        """Return the form of the values in a column."""
        return self.forms[column] if self.forms else "text" if column < self.names else "figure"

    def only(self, kept: Sequence[int]) -> Grid:
        """Return the table restricted to these columns."""
        header, *rows = ([row[at] for at in kept] for row in (self.header, *self.rows))
        names = sum(at < self.names for at in kept)
        forms = [self.forms[at] for at in kept] if self.forms else ()
        ranks = [self.ranks[at] for at in kept] if self.ranks else ()
        return replace(self, header=header, rows=rows, names=names, forms=forms, ranks=ranks)

    def without_intervals(self, column: int) -> Grid:
        """Return the table with a column's intervals removed; its scores keep the digits that the intervals support."""
        write = TEXT[self.form(column)]
        rows = [
            [*row[:column], write(row[column]).partition(" (")[0], *row[column + 1 :]] for row in self.rows
        ]
        return replace(self, rows=rows, forms=[*self.forms[:column], "figure", *self.forms[column + 1 :]])

    @property
    def named(self) -> list[Any]:
        """The header with a name for each column, including those without a title."""
        return [name or ("value" if at else "score") for at, name in enumerate(self.header)]

    @property
    def sortable(self) -> bool:
        """Whether sorting makes sense: the table has several rows, and values rather than formatted figures."""
        return len(self.rows) > 2 and bool(self.forms) and "figure" not in self.forms

    @property
    def texts(self) -> Grid:
        """The table with all cells as text, without the columns that only pages show."""
        if ON_PAGE in self.ranks:
            return self.only([at for at, rank in enumerate(self.ranks) if rank != ON_PAGE]).texts
        written = self.rows
        if self.forms:
            written = [[TEXT[self.form(at)](cell) for at, cell in enumerate(row)] for row in self.rows]
        rows = [[visible(str(cell), "\u00a0") for cell in row] for row in written]
        if not self.forms:
            return replace(self, header=[*map(label, self.header)], rows=rows)
        forms = ["figure" if form in NUMBERS else "text" for form in self.forms]
        return Grid([*map(label, self.header)], rows, self.names, forms, left=self.left, ranks=self.ranks)


@dataclass(frozen=True)
class Chart:
    """A chart drawn by the function in `plots` named `draws` from `data`; `said` describes it to screen readers."""

    id: str
    draws: str
    data: tuple[Any, ...]
    said: str
    title: str = ""
    text: str = ""
    style: str = ""


@dataclass(frozen=True)
class Beside:
    """Columns of blocks, side by side; in text, one below the other without blank lines."""

    columns: Sequence[Sequence[Block]]
    style: str = "two"


@dataclass(frozen=True)
class Only:
    """Blocks for pages only, or for text only (in a terminal, in a notebook and in Markdown)."""

    medium: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Fold:
    """Blocks that a page shows when the summary is clicked; text shows them at once."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Facts:
    """Names and their values; `sides` gives the side whose colour marks each value."""

    facts: Sequence[tuple[str, str]]
    style: str = "plain"
    sides: Sequence[str] = ()


@dataclass(frozen=True)
class Code:
    """A command, or a call in Python."""

    text: str


@dataclass(frozen=True)
class Group:
    """Members of one part of a cluster, of `n` in all: values, and flags on those unlike the most common."""

    title: str
    name: Any
    text: str
    rows: Sequence[tuple[Sequence[Any], Sequence[bool]]]
    n: int


@dataclass(frozen=True)
class Members:
    """The members of a cluster in groups, with a form for each column."""

    header: Sequence[str]
    forms: Sequence[str]
    groups: Sequence[Group]


@dataclass(frozen=True)
class Opened:
    """A cluster that opens to show blocks: its name, outcomes and size, and its costs as (before, text, after)."""

    id: str
    name: Any
    outcomes: Sequence[str]
    text: str
    costs: Sequence[tuple[str, str, str]]
    share: float | None
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Clusters:
    """Clusters that can be opened, the first `printed` of them also in print; text shows `table` instead."""

    about: str
    rows: Sequence[Opened]
    table: Grid | None = None
    printed: int = 5


Block: TypeAlias = Union[  # noqa: UP007 - a string within refers to what is defined later
    Heading, Prose, Notices, Grid, Chart, Beside, Only, Fold, Facts, Code, Members, Clusters
]


@dataclass(frozen=True)
class Section:
    """A titled part of a page."""

    id: str
    title: str
    blocks: Sequence[Block]


def sections(
    parts: Mapping[tuple[str, str], Callable[..., Iterable[Block]]], *given: Any
) -> Iterator[Section]:
    """Yield the non-empty sections, given as functions by id and title; each is made when needed, as some take long."""
    for (name, title), part in parts.items():
        if blocks := list(part(*given)):
            yield Section(name, title, blocks)


@dataclass(frozen=True)
class Document:
    """A result as blocks: kind, title, the blocks below the title, and sections, which may be made one by one."""

    kind: str
    title: str
    head: Sequence[Block]
    sections: Iterable[Section]

    @property
    def blocks(self) -> Iterator[Block]:
        """All blocks, in order, as they are made."""
        yield from self.head
        for section in self.sections:
            yield from section.blocks

    def with_gates(self, gates: Sequence[Notice]) -> Document:
        """Return the document with the outcomes of gates before the first notices."""
        first, *rest = self.sections
        at = next(
            (k for k, block in enumerate(first.blocks) if isinstance(block, Notices)), len(first.blocks)
        )
        blocks = [*first.blocks[:at], Notices(gates, "Gates"), *first.blocks[at:]]
        return replace(self, sections=[replace(first, blocks=blocks), *rest])


def in_blocks(kind: str, blocks: Sequence[Block]) -> Document:
    """Return a document without sections, such as for a part of a result."""
    return Document(kind, "", blocks, ())


#: Rank of columns that only pages show.
ON_PAGE = 9


# -- As plain data ---------------------------------------------------------------------------------

#: Version of the layout of documents as plain data.
LAYOUT = 2
#: Fields, by type, that hold blocks or parts of blocks; all other fields hold plain values.
PARTS = {
    "Document": ("head", "sections"), "Section": ("blocks",), "Only": ("blocks",), "Beside": ("columns",),
    "Fold": ("blocks",), "Clusters": ("rows", "table"), "Opened": ("blocks",), "Members": ("groups",),
    "Notices": ("rows",),
}  # fmt: skip


def as_data(document: Document) -> dict[str, Any]:
    """Return a document as plain data without blocks for text only and without fields at their defaults."""
    head = {"format": "fastbcubed report", "layout": LAYOUT, "fastbcubed": __version__}
    return head | {key: value for key, value in _as_data(document).items() if key != "block"}


def _as_data(part: Any) -> Any:
    if is_dataclass(part):
        kind, own = type(part).__name__, {each.name: getattr(part, each.name) for each in fields(part)}
        usual = {each.name: each.default for each in fields(part) if each.default is not MISSING}
        nested = PARTS.get(kind, ())
        return {"block": kind} | {
            name: _as_data(value) if name in nested else value
            for name, value in own.items()
            if name not in usual or usual[name] != value
        }
    if part is None:
        return None
    return [_as_data(each) for each in part if not (isinstance(each, Only) and each.medium == "text")]


def of_data(data: Mapping[str, Any]) -> Document:
    """Return the document that `as_data` converted to plain data."""
    made: Document = _of_data(
        {"block": "Document"} | {name: data[name] for name in ("kind", "title", *PARTS["Document"])}
    )
    return made


def _of_data(data: Any) -> Any:
    if data is None or isinstance(data, list):
        return data and [*map(_of_data, data)]
    own = dict(data)
    kind = own.pop("block")
    return KINDS[kind](**own | {name: _of_data(own[name]) for name in PARTS.get(kind, ()) if name in own})


#: The types of blocks and their parts, by name.
KINDS: dict[str, Any] = {
    each.__name__: each
    for each in (
        Document, Section, Only, Heading, Prose, Notices, Notice, Grid, Chart, Beside, Fold, Facts, Code, Members,
        Group, Clusters, Opened,
    )
}  # fmt: skip


# -- How values are written ------------------------------------------------------------------------


def _known(write: Callable[[Any], str], missing: str = "n/a") -> Callable[[Any], str]:
    return lambda value: missing if value is None else write(value)


#: Forms of a value with its interval, and of a change with its interval.
INTERVALS = ("interval", "change")
#: Forms of numbers, which are aligned to the right.
NUMBERS = ("count", "score", "any", "amount", "share", "percent", "delta", *INTERVALS, "figure")
#: How text formats the values of each form.
TEXT: dict[str, Callable[[Any], str]] = {
    "name": label,
    "text": str,
    "figure": str,
    "count": _known(count),
    "score": _known(score_text),
    "any": _known(score_text),
    "amount": _known(amount),
    "share": _known(percent),
    "percent": _known(percent),
    "delta": _known(signed, ""),
    "interval": _known(lambda ends: "" if ends[0] is None else with_interval(*ends), ""),
    "change": _known(lambda ends: "" if ends[0] is None else with_interval(*ends, change=True), ""),
    "yes": lambda value: {True: "yes", False: "no", None: ""}[value],
}
#: How pages format them: the scores or shares of a column have the same number of decimals.
PAGE = TEXT | {
    "score": _known(fixed),
    "share": _known(share),
    "delta": _known(lambda value: _change(fixed(value), value), ""),
}


def _change(text: str, value: float) -> str:
    """Return a formatted difference with its sign."""
    return f"{'+' if value > 0 and not text.startswith('<') else ''}{text.replace('-', '−')}"
