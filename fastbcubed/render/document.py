"""A result as a document: blocks that text, HTML, Markdown and pages draw, and how each form of value is written.

A kind of result has one function that returns its document; renderers draw any. What only a page has room for, or only
a text needs, stands in `Only`. A document is plain data, too: the JSON of a page, of which it is made again.
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
    """A title above the blocks that follow; `side` marks it with the colour of a side."""

    title: Any
    level: int = 3
    id: str = ""
    side: str = ""


@dataclass(frozen=True)
class Prose:
    """Sentences, a paragraph each. Style is one of "", "title", "lead", "indented", "note"."""

    sentences: Sequence[str]
    style: str = ""


@dataclass(frozen=True)
class Notice:
    """A warning or note, or a gate that passed or failed."""

    level: str
    message: str
    code: str = ""


@dataclass(frozen=True)
class Notices:
    """Notices, of `n` in all; `none` is the text where there are none."""

    rows: Sequence[Notice]
    title: str = ""
    n: int = 0
    none: str = ""

    @classmethod
    def of(cls, warnings: Sequence[Mapping[str, Any]], *, n: int = 0, none: str = "") -> Notices:
        """Return the warnings of a result, of `n` in all."""
        rows = [Notice(each["level"], each["message"], each["code"]) for each in warnings]
        return cls(rows, "Before you rely on this", n, none)


@dataclass(frozen=True)
class Grid:
    """A small table. The first `names` columns name a row, the others hold figures.

    Cells are texts, or values that are written as the `forms` of their columns say. `about` is the name for screen
    readers where there is no caption; `soft` are rows of little weight; `left` aligns figures to the left. Of columns
    for which a line has no room, those of the highest of `ranks` go first; 0 stays, and `ON_PAGE` is on pages alone.
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
        """Return rows of values as a table; of each column, the header, the name of the value, its form and rank."""
        header, keys, forms, ranks = zip(*((*column, 0)[:4] for column in columns), strict=True)
        cells = [
            [[*map(row.get, key)] if isinstance(key, tuple) else row.get(key) for key in keys] for row in rows
        ]
        return cls(header, cells, names, forms, ranks=ranks, **how)

    def form(self, column: int) -> str:
        """Return how the values of a column are written."""
        return self.forms[column] if self.forms else "text" if column < self.names else "figure"

    def only(self, kept: Sequence[int]) -> Grid:
        """Return the table of some columns."""
        header, *rows = ([row[at] for at in kept] for row in (self.header, *self.rows))
        names = sum(at < self.names for at in kept)
        forms = [self.forms[at] for at in kept] if self.forms else ()
        ranks = [self.ranks[at] for at in kept] if self.ranks else ()
        return replace(self, header=header, rows=rows, names=names, forms=forms, ranks=ranks)

    def without_intervals(self, column: int) -> Grid:
        """Return the table with the scores of a column alone, in the digits that their intervals support."""
        write = TEXT[self.form(column)]
        rows = [
            [*row[:column], write(row[column]).partition(" (")[0], *row[column + 1 :]] for row in self.rows
        ]
        return replace(self, rows=rows, forms=[*self.forms[:column], "figure", *self.forms[column + 1 :]])

    @property
    def named(self) -> list[Any]:
        """The header with a name for each column."""
        return [name or ("value" if at else "score") for at, name in enumerate(self.header)]

    @property
    def sortable(self) -> bool:
        """Whether there is something to sort, by values rather than by texts of figures."""
        return len(self.rows) > 2 and bool(self.forms) and "figure" not in self.forms

    @property
    def texts(self) -> Grid:
        """The same with cells as texts, without the columns of pages."""
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
    """A chart, drawn by the function of `plots` of this name from its data; `said` is its text for screen readers."""

    id: str
    draws: str
    data: tuple[Any, ...]
    said: str
    title: str = ""
    text: str = ""
    style: str = ""


@dataclass(frozen=True)
class Beside:
    """Columns of blocks side by side; in a text, blocks without empty lines between them."""

    columns: Sequence[Sequence[Block]]
    style: str = "two"


@dataclass(frozen=True)
class Only:
    """Blocks that pages alone have, or texts alone (in a terminal, a notebook, and Markdown)."""

    medium: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Fold:
    """Blocks that open on request; a text has them as they are."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Facts:
    """Names and values; `sides` are the sides whose colour marks a value."""

    facts: Sequence[tuple[str, str]]
    style: str = "plain"
    sides: Sequence[str] = ()


@dataclass(frozen=True)
class Code:
    """A command, or a call."""

    text: str


@dataclass(frozen=True)
class Group:
    """Members of a part of a cluster, of `n` in all: values, and the columns that differ from the commonest one."""

    title: str
    name: Any
    text: str
    rows: Sequence[tuple[Sequence[Any], Sequence[bool]]]
    n: int


@dataclass(frozen=True)
class Members:
    """The members of a cluster in groups; the columns have forms."""

    header: Sequence[str]
    forms: Sequence[str]
    groups: Sequence[Group]


@dataclass(frozen=True)
class Opened:
    """A cluster that opens to its blocks: name, outcomes, size, and its costs as (before, text, after)."""

    id: str
    name: Any
    outcomes: Sequence[str]
    text: str
    costs: Sequence[tuple[str, str, str]]
    share: float | None
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Clusters:
    """Clusters that open, of which the first `printed` are open in print; a text has their table."""

    about: str
    rows: Sequence[Opened]
    table: Grid | None = None
    printed: int = 5


Block: TypeAlias = Union[  # noqa: UP007 - a string within refers to what is defined later
    Heading, Prose, Notices, Grid, Chart, Beside, Only, Fold, Facts, Code, Members, Clusters
]


@dataclass(frozen=True)
class Section:
    """A part of a page with a title."""

    id: str
    title: str
    blocks: Sequence[Block]


def sections(
    parts: Mapping[tuple[str, str], Callable[..., Iterable[Block]]], *given: Any
) -> Iterator[Section]:
    """Yield the sections that have anything, by id and title, one after the other, as some take long."""
    for (name, title), part in parts.items():
        if blocks := list(part(*given)):
            yield Section(name, title, blocks)


@dataclass(frozen=True)
class Document:
    """A result: its kind and title, blocks below the title, and sections, which a text may take one by one."""

    kind: str
    title: str
    head: Sequence[Block]
    sections: Iterable[Section]

    @property
    def blocks(self) -> Iterator[Block]:
        """The blocks in their order, as they are made."""
        yield from self.head
        for section in self.sections:
            yield from section.blocks

    def with_gates(self, gates: Sequence[Notice]) -> Document:
        """Return the document with the results of gates, before the first warnings."""
        first, *rest = self.sections
        at = next(
            (k for k, block in enumerate(first.blocks) if isinstance(block, Notices)), len(first.blocks)
        )
        blocks = [*first.blocks[:at], Notices(gates, "Gates"), *first.blocks[at:]]
        return replace(self, sections=[replace(first, blocks=blocks), *rest])


def in_blocks(kind: str, blocks: Sequence[Block]) -> Document:
    """Return a document of blocks alone, such as a part of a result that shows itself."""
    return Document(kind, "", blocks, ())


#: Rank of columns for which only pages have room.
ON_PAGE = 9


# -- As plain data ---------------------------------------------------------------------------------

#: Version of the layout of documents as data.
LAYOUT = 2
#: Fields that hold blocks, or parts of blocks; all others hold values of results, of any form.
PARTS = {
    "Document": ("head", "sections"), "Section": ("blocks",), "Only": ("blocks",), "Beside": ("columns",),
    "Fold": ("blocks",), "Clusters": ("rows", "table"), "Opened": ("blocks",), "Members": ("groups",),
    "Notices": ("rows",),
}  # fmt: skip


def as_data(document: Document) -> dict[str, Any]:
    """Return a document as plain data; what texts alone have is left out, and so are fields with their default."""
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
    """Return the document of plain data."""
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


#: Parts of documents by name.
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


#: Forms of a value and the ends of its interval, and of a change and its.
INTERVALS = ("interval", "change")
#: Forms that are numbers, to the right.
NUMBERS = ("count", "score", "any", "amount", "share", "percent", "delta", *INTERVALS, "figure")
#: How values of a form are written in texts.
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
#: And in pages, where a column of scores or shares has one number of decimals.
PAGE = TEXT | {
    "score": _known(fixed),
    "share": _known(share),
    "delta": _known(lambda value: _change(fixed(value), value), ""),
}


def _change(text: str, value: float) -> str:
    """Return a difference with a sign."""
    return f"{'+' if value > 0 and not text.startswith('<') else ''}{text.replace('-', '−')}"
