"""Documents as HTML: a fragment for a notebook, or a page of its own."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from fastbcubed.errors import visible
from fastbcubed.render.document import (
    INTERVALS,
    NUMBERS,
    PAGE,
    Beside,
    Block,
    Chart,
    Clusters,
    Code,
    Document,
    Fold,
    Grid,
    Heading,
    Notices,
    Only,
    Prose,
    as_data,
    of_data,
)
from fastbcubed.render.json import halved, shortened
from fastbcubed.render.number_formats import count, label
from fastbcubed.render.text import drawn as as_text
from fastbcubed.render.text import sentence
from fastbcubed.runtime.arguments import path_of
from fastbcubed.runtime.memory_budget import release
from fastbcubed.runtime.object_attributes import cached_property, documented
from fastbcubed.runtime.output_files import written_aside


class Shown:
    """Base of results that are displayed as their document, in a terminal and in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        return as_text(self._document().blocks)

    def _repr_html_(self) -> str:
        return drawn(self._document().blocks)

    def _document(self) -> Document:
        raise NotImplementedError


def drawn(blocks: Iterable[Block]) -> str:
    """Return blocks as an HTML element, without charts, which only pages show."""
    return f"<div>{''.join(map(_html, blocks))}</div>"


def _html(block: Block) -> str:
    match block:
        case Prose(sentences, style) if sentences:
            first, *others = map(escaped, sentences)
            return f"<p>{'<br>'.join([f'<b>{first}</b>' if style == 'title' else first, *others])}</p>"
        case Notices(rows):
            return _html(Prose([sentence(row) for row in rows] or [block.none] * bool(block.none)))
        case Heading(text):
            return f"<p><b>{escaped(label(text))}</b></p>"
        case Grid():
            return html_table(block) if block.rows else ""
        case Clusters(table=Grid() as table):
            return _html(table)
        case Beside(columns):
            return "".join(_html(each) for column in columns for each in column)
        case Only("text", blocks) | Fold(_, blocks):
            return "".join(map(_html, blocks))
        case Code(text):
            return f"<pre>{escaped(text)}</pre>"
    return ""


def escaped(text: str) -> str:
    """Return text escaped for HTML."""
    import html

    return html.escape(text.strip())


#: Style of a cell in a page without styles of its own; the alignment is appended.
PADDED = "padding:.15em .6em;text-align:"


def html_table(grid: Grid) -> str:
    """Return a grid as an HTML table."""
    grid = grid.texts
    right = [grid.form(at) in NUMBERS for at in range(len(grid.header))]

    def row(cells: Iterable[str], tag: str) -> str:
        aligned = ("right" if each else "left" for each in right)
        shown = zip(cells, aligned, strict=True)
        cell = "".join(f'<{tag} style="{PADDED}{side}">{escaped(text)}</{tag}>' for text, side in shown)
        return f"<tr>{cell}</tr>"

    head = f"<thead>{row(grid.header, 'th')}</thead>" if any(grid.header) else ""
    body = "".join(row(cells, "td") for cells in grid.rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"


#: Maximum bytes of a page, and how often its listings may be halved to stay below.
LARGEST, HALVINGS = 1_900_000, 12
#: Characters to escape in JSON within a page: they could end the script element.
UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&"}
#: A flag of the command line.
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


class Report:
    """A report on a result: a single HTML page that makes no network requests and is readable without scripts.

    Attributes
    ----------
    html : str
        The page.
    content : dict
        The whole content of the page as plain data, which the page also contains as JSON. The ``sections`` of the
        content consist of blocks such as sentences and tables, whose figures are not rounded.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> report = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1]).report(title="A trial")
    >>> report.content["title"], [section["title"] for section in report.content["sections"]][0], report.html[:15]
    ('A trial', 'Verdict', '<!doctype html>')
    """

    def __init__(self, document: Document) -> None:
        self._asked = document
        self._file: Path | None = None

    @cached_property
    def _made(self) -> tuple[str, dict[str, Any]]:
        return made(shortened(as_data(self._asked)))

    @property
    def html(self) -> str:
        """The page as HTML."""
        return self._made[0]

    @property
    def content(self) -> dict[str, Any]:
        """The whole content of the page as plain data."""
        return self._made[1]

    def write(self, file: str | PathLike[str]) -> None:
        """Write the page to a file, either completely or not at all.

        Raises
        ------
        OptionError, FileFormatError
            If `file` is not a path or cannot be written.
        """
        place = Path(path_of(file, "file must be the path of the page, such as 'report.html'"))
        with written_aside(place) as aside:
            Path(aside).write_text(self.html, encoding="utf-8", newline="\n")
        self._file = place

    __dir__ = documented

    def __repr__(self) -> str:
        size = f"{len(self.html.encode('utf-8')) / 1e3:,.0f} kB of HTML"
        where = "give report() a path to write it" if self._file is None else f"in {self._file}"
        return f"Report {label(self.content['title'])!r}, {size}; {where}"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{escaped(self.html)}" sandbox="allow-scripts allow-downloads" '
            f'title="{escaped(label(self.content["title"]))}" width="100%" height="700"></iframe>'
        )


def made(content: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a document's page and its data, with listings halved until the page is small enough."""
    from fastbcubed.render.plots import drawn as as_picture

    fitting = {**content, "halved": 0}
    release()  # drawing takes up to 150 MiB, for the engine that draws
    pictures = {chart.id: as_picture(chart) for chart in charts_of(of_data(content).blocks)}
    for halvings in range(1, HALVINGS + 1):
        # the page contains each row also as text, so the JSON may take half of it
        if len(_as_data(fitting).encode("utf-8")) <= LARGEST // 2:
            text = rendered(fitting, pictures)
            if len(text.encode("utf-8")) < LARGEST:
                return text, fitting
        fitting = {**halved(fitting), "halved": halvings}
    return rendered(fitting, pictures), fitting


def charts_of(blocks: Iterator[Block]) -> Iterator[Chart]:
    """Yield the charts among blocks, including those in columns and in blocks for pages only."""
    for block in blocks:
        match block:
            case Chart():
                yield block
            case Only(_, within):
                yield from charts_of(iter(within))
            case Beside(columns):
                yield from charts_of(each for column in columns for each in column)


def _as_data(content: Mapping[str, Any]) -> str:
    """Return content as JSON that is safe within a script element."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    hidden = {ord(c): json.dumps(c)[1:-1] for c in set(text) if not c.isprintable()}
    return text.translate(UNSAFE | hidden)


def rendered(content: Mapping[str, Any], pictures: Mapping[str, str]) -> str:
    """Return the page of a document given as data, with these charts as SVG."""
    from markupsafe import Markup

    from fastbcubed.render.plots import DARK, LIGHT, as_style

    environment = _environment()
    style, script = (_source(environment, name) for name in ("style.css", "script.js"))
    style = style.replace("/*light*/", as_style(LIGHT)).replace("/*dark*/", as_style(DARK))
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    template = environment.get_template("page.html.j2")
    text: str = template.render(
        content=content, document=of_data(content), pictures=pictures, policy=Markup(policy), style=Markup(style),
        script=Markup(script), data=Markup(_as_data(content)),
    )  # fmt: skip
    return text.lstrip()


def _environment() -> Any:
    """Return the template environment, in which all values are escaped."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fastbcubed.render"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    environment.filters |= {
        "count": count,
        "kind": lambda block: type(block).__name__,
        "label": label,
        "flags": _with_whole_flags,
        # a number and its percent sign stay on one line
        "prose": lambda text: _with_whole_flags(text.replace(" %", "\u00a0%")),
        "svg": Markup,
        "written": lambda value, form: PAGE[form](value),
    }
    environment.tests["figures"] = lambda form: form in NUMBERS
    environment.tests["intervals"] = lambda form: form in INTERVALS
    return environment


def _with_whole_flags(text: str) -> Any:
    """Return a text as markup in which no line breaks within a flag: browsers break lines after any hyphen.

    >>> print(_with_whole_flags("see --order-by, not a--b or <--x>"))
    see <span class="flag">--order-by</span>, not a--b or &lt;<span class="flag">--x</span>&gt;
    """
    from markupsafe import Markup, escape

    return Markup(FLAG.sub(r'<span class="flag">\g<0></span>', str(escape(_seen(text)))))


def _seen(value: Any) -> Any:
    """Return a value for a template, with invisible characters of text escaped; markup is returned unchanged."""
    return visible(value, kept="\n\u00a0") if type(value) is str else value


def _source(environment: Any, name: str) -> str:
    text: str = environment.loader.get_source(environment, name)[0]
    return text.strip()


def _hash(text: str) -> str:
    """Return the hash by which the page's content security policy allows a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
