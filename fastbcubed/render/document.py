"""A result as a document: blocks that text, HTML, Markdown and pages draw, and how each form of value is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, Union

from fastbcubed.errors import visible
from fastbcubed.render.number_formats import (
    amount,
    count,
    fixed,
    label,
    percent,
    plus_minus,
    score_text,
    share,
    signed,
)


@dataclass(frozen=True)
class Heading:
    """A title above the blocks that follow; `side` marks it with the colour of a side."""

    text: Any
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
        return cls(rows, "To know before you believe it", n, none)


@dataclass(frozen=True)
class Grid:
    """A small table. The first `names` columns name a row, the others hold figures.

    Cells are texts, or values that are written as the `forms` of their columns say. `about` is the caption, or in a
    page without one the name for screen readers; `soft` are rows of little weight; `left` aligns figures to the left.
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

    @classmethod
    def of(
        cls,
        rows: Iterable[Mapping[str, Any]],
        columns: Sequence[tuple[str, str, str]],
        names: int = 1,
        **how: Any,
    ) -> Grid:
        """Return rows of values as a table; of each column, the header, the name of the value and its form."""
        header, keys, forms = zip(*columns, strict=True)
        return cls(header, [[row.get(key) for key in keys] for row in rows], names, forms, **how)

    def form(self, column: int) -> str:
        """Return how the values of a column are written."""
        return self.forms[column] if self.forms else "text" if column < self.names else "figure"

    def without(self, form: str) -> Grid:
        """Return the table without the columns whose values are written in a form."""
        kept = [at for at in range(len(self.header)) if self.form(at) != form]
        names, *rows = ([row[at] for at in kept] for row in (self.header, *self.rows))
        forms = [self.forms[at] for at in kept] if self.forms else ()
        return replace(self, header=names, rows=rows, forms=forms)

    @property
    def sortable(self) -> bool:
        """Whether there is something to sort, by values rather than by texts of figures."""
        return len(self.rows) > 2 and bool(self.forms) and "figure" not in self.forms

    @property
    def texts(self) -> Grid:
        """The same with cells as texts."""
        written = self.rows
        if self.forms:
            written = [[TEXT[self.form(at)](cell) for at, cell in enumerate(row)] for row in self.rows]
        rows = [[visible(str(cell), "\u00a0") for cell in row] for row in written]
        if not self.forms:
            return replace(self, header=[*map(label, self.header)], rows=rows)
        forms = ["figure" if form in NUMBERS else "text" for form in self.forms]
        return Grid([*map(label, self.header)], rows, self.names, forms, left=self.left)


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
class Fold:
    """Blocks that open on request."""

    summary: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Facts:
    """Names and values; `sides` are the sides whose colour marks a value."""

    rows: Sequence[tuple[str, str]]
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
    """Clusters that open, of which the first `printed` are open in print."""

    about: str
    rows: Sequence[Opened]
    printed: int = 5


Block: TypeAlias = Union[  # noqa: UP007 - a string within refers to what is defined later
    Heading, Prose, Notices, Grid, Chart, Beside, Fold, Facts, Code, Members, Clusters
]


@dataclass(frozen=True)
class Section:
    """A part of a page with a title."""

    id: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Document:
    """A page: blocks below its title, and sections."""

    head: Sequence[Block]
    sections: Sequence[Section]


def _known(write: Callable[[Any], str], missing: str = "n/a") -> Callable[[Any], str]:
    return lambda value: missing if value is None else write(value)


#: Forms that are numbers, to the right.
NUMBERS = ("count", "score", "any", "amount", "share", "percent", "delta", "error", "figure")
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
    "error": plus_minus,
    "yes": lambda value: {True: "yes", False: "no", None: ""}[value],
}
#: And in pages, where a column of scores or shares has one number of decimals.
PAGE = TEXT | {
    "score": _known(fixed),
    "share": _known(share),
    "delta": _known(lambda value: _change(fixed(value), value), ""),
    "error": lambda value: fixed(value) if plus_minus(value) else "",
}


def _change(text: str, value: float) -> str:
    """Return a difference with a sign."""
    return f"{'+' if value > 0 and not text.startswith('<') else ''}{text.replace('-', '−')}"
