"""Options of a page, checked before the work."""

from __future__ import annotations

import base64
import datetime
import hashlib
import html
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastbcubed.errors import MissingPackageError, OptionError, arg
from fastbcubed.inputs.locations import at_home
from fastbcubed.inputs.tables import is_path
from fastbcubed.render.wording import (
    amount,
    count,
    fixed,
    label,
    percent,
    plus_minus,
    score_text,
    share,
    visible,
    with_error,
)
from fastbcubed.results.slices import SliceKey, check_key
from fastbcubed.results.summary import plain
from fastbcubed.runtime.arguments import as_several, true_or_false, whole_number
from fastbcubed.runtime.attributes import cached_property, documented
from fastbcubed.runtime.output_files import require_writable, written_aside

#: Packages of the extra, by the name that they are imported by.
PACKAGES = {"altair": "altair", "jinja2": "Jinja2", "vl_convert": "vl-convert-python"}
#: Clusters of a side, and members of each, beyond which nobody reads on.
MOST = 1000


@dataclass(frozen=True)
class Asked:
    """Options of a page: title, clusters of each side, members of each, attributes shown, slicings added."""

    title: str | None = None
    worst: int = 20
    members: int = 10
    columns: tuple[str, ...] = ()
    by: tuple[SliceKey, ...] = ()

    @classmethod
    def of(
        cls, *, title: Any = None, worst: Any = 20, members: Any = 10, columns: Any = (), by: Any = None
    ) -> Asked:
        """Check arguments as `Evaluation.report` takes them."""
        if title is not None and not isinstance(title, str):
            raise OptionError(f"title is a text, not {title!r}")
        worst, members = whole_number(worst, "worst", most=MOST), whole_number(members, "members", most=MOST)
        names = as_several(columns)
        keys = [] if by is None else by if isinstance(by, list) else [by]
        return cls(title, worst, members, tuple(names), tuple(map(check_key, keys)))

    @property
    def is_usual(self) -> bool:
        """Whether all options but the title have their defaults."""
        return replace(self, title=None) == Asked()


def require_packages(what: str) -> None:
    """Raise MissingPackageError if a package is not installed that pages and charts need; import none."""
    missing = [name for module, name in PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise MissingPackageError(
            f"{what} needs {' and '.join(missing)}, which the extra report brings: pip install 'fastbcubed[report]'"
        )


def require_place(path: Any, *, overwrite: bool) -> Path:
    """Return where a page is to be written; raise if that cannot be, or if a file is there that is to stay."""
    if not is_path(path):
        raise OptionError(f"path is where to write the page, such as 'report.html', not {path!r}")
    file = Path(at_home(os.fspath(path)))
    if file.is_dir():
        raise OptionError(f"{file} is a directory; name a file, such as {file / 'report.html'}")
    if file.suffix.lower() not in ("", ".html", ".htm"):
        raise OptionError(
            f"the page is HTML, so its name ends in .html, not in {file.suffix}; name it {file.with_suffix('.html')}"
        )
    if file.exists() and not overwrite:
        raise OptionError(
            f"{file} is there already; pass {arg('overwrite', True)} to replace it, or another path"
        )
    require_writable(file.parent)
    return file


#: Characters of a name that are kept.
LONGEST = 200
#: Characters of a message, which may quote several names.
LONGEST_TEXT = 1200
#: Keys of texts that are sentences.
SENTENCES = frozenset({"message", "command", "text", "sentences", "lines"})
#: Entries of a list or mapping of a manifest.
MOST_ENTRIES = 20


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text, or its beginning and how much is left out.

    Examples
    --------
    >>> cut("abc", 5), cut("a" * 12, 5)
    ('abc', 'aaaaa… (7 more characters)')
    """
    left = len(text) - longest
    return text if left <= 0 else f"{text[:longest]}… ({left:,} more character{'' if left == 1 else 's'})"


def shortened(value: Any, longest: int = LONGEST) -> Any:
    """Return content as plain values whose texts are not longer than a page has room for."""
    if isinstance(value, Mapping):
        return {
            cut(str(key)): shortened(each, LONGEST_TEXT if key in SENTENCES else longest)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [shortened(each, longest) for each in value]
    if isinstance(value, bytes):
        value = value.hex()
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        value = str(value)
    value = plain(value)
    return cut(value, longest) if isinstance(value, str) else value


def few_entries(value: Any, most: int = MOST_ENTRIES) -> Any:
    """Return a value without the entries of its lists and mappings beyond a number, which is said in their place."""
    if isinstance(value, Mapping):
        kept = {key: few_entries(each, most) for key, each in list(value.items())[:most]}
        return kept if len(value) <= most else kept | {"…": f"{len(value) - most:,} more"}
    if isinstance(value, list | tuple):
        kept_list = [few_entries(each, most) for each in value[:most]]
        return kept_list if len(value) <= most else [*kept_list, f"… {len(value) - most:,} more"]
    return value


def halved(content: Any) -> Any:
    """Return content with half as many rows of every listing, at least one; how many there are stays as it was."""
    if isinstance(content, Mapping):
        return {
            key: each[: max(1, len(each) // 2)]
            if key in ("rows", "members", "parts", "sentences", "lines") and isinstance(each, list)
            else each
            for key, each in ((key, halved(each)) for key, each in content.items())
        }
    return [halved(each) for each in content] if isinstance(content, list) else content


#: Bytes that no page reaches; and how often its listings are halved to stay below them.
LARGEST, HALVINGS = 1_900_000, 12
#: What JSON may not hold within a page, though JSON itself does not mind.
UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&"}


class Report:
    """A page about a result: one HTML file that makes no request, and reads without scripts.

    Attributes
    ----------
    html : str
        The page.
    content : dict
        All that is on it as plain data, which the page holds as JSON, too.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> report = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1]).report(title="A trial")
    >>> report.content["overall"]["recall"], report.html[:15]
    (0.75, '<!doctype html>')
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._asked = content
        self._file: Path | None = None

    @cached_property
    def _made(self) -> tuple[str, dict[str, Any]]:
        return made(self._asked)

    @property
    def html(self) -> str:
        """The page."""
        return self._made[0]

    @property
    def content(self) -> dict[str, Any]:
        """All that is on the page, as plain data."""
        return self._made[1]

    def write(self, file: Path) -> None:
        """Write the page to a file, which is there as a whole or not at all."""
        with written_aside(file) as aside:
            Path(aside).write_text(self.html, encoding="utf-8", newline="\n")
        self._file = file

    __dir__ = documented

    def __repr__(self) -> str:
        size = f"{len(self.html.encode('utf-8')) / 1e3:,.0f} kB of HTML"
        where = "give report() a path to write it" if self._file is None else f"in {self._file}"
        return f"Report {label(self.content['title'])!r}, {size}; {where}"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html, quote=True)}" sandbox="allow-scripts allow-downloads" '
            f'title="{html.escape(label(self.content["title"]), quote=True)}" width="100%" height="700"></iframe>'
        )


def report_of(
    content: Callable[[Asked], Mapping[str, Any]], path: Any, asked: Mapping[str, Any], *, overwrite: bool
) -> Report:
    """Return the page of some content, written to `path` unless that is None; all checks come before the work."""
    require_packages("a report")
    found, overwrite = Asked.of(**asked), true_or_false(overwrite, "overwrite")
    file = None if path is None else require_place(path, overwrite=overwrite)
    report = Report(content(found))
    if file is not None:
        report.write(file)
    return report


def made(content: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a page and its content, of which listings are halved until the page is below its largest size."""
    from fastbcubed.render.plots import pictures_of

    fitting, pictures = {**content, "halved": 0}, pictures_of(content)
    for halvings in range(1, HALVINGS + 1):
        if not _is_far_too_large(fitting):
            text = rendered(fitting, pictures)
            if len(text.encode("utf-8")) < LARGEST:
                return text, fitting
        fitting = {**halved(fitting), "halved": halvings}
    return rendered(fitting, pictures), fitting


def _is_far_too_large(content: Mapping[str, Any]) -> bool:
    """Return whether the data alone exceed any page, which also has them as text."""
    return len(_as_data(content).encode("utf-8")) > LARGEST // 2


def _as_data(content: Mapping[str, Any]) -> str:
    """Return content as JSON that ends no script."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    hidden = {ord(c): json.dumps(c)[1:-1] for c in set(text) if not c.isprintable()}
    return text.translate(UNSAFE | hidden)


def rendered(content: Mapping[str, Any], pictures: Mapping[str, Any]) -> str:
    """Return the page of some content, with these charts."""
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
    return template.render(
        content=content, pictures=pictures, policy=Markup(policy), style=Markup(style),
        script=Markup(script), data=Markup(_as_data(content)),
    )  # fmt: skip


def _environment() -> Any:
    """Return the template environment; it escapes all values."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fastbcubed.render"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    environment.filters |= {
        "score": lambda value: "n/a" if value is None else score_text(value),
        "fixed": lambda value: "n/a" if value is None else fixed(value),
        "share": lambda value: "n/a" if value is None else share(value),
        "percent": lambda value: "n/a" if value is None else percent(value),
        "count": count,
        "amount": amount,
        "label": named,
        "plus_minus": plus_minus,
        "with_error": with_error,
        "prose": _prose,
        "svg": _svg,
    }
    return environment


def named(value: Any) -> str:
    """Return the name of an item, a cluster, a slice or a set of them, on one line."""
    if isinstance(value, list | tuple):
        return ", ".join(map(label, value))
    return label(value)


def _seen(value: Any) -> Any:
    """Return a value for a template, with invisible characters escaped; markup is made of such."""
    return visible(value, kept="\n\u00a0") if type(value) is str else value


def _prose(text: str) -> str:
    """Return a sentence in which figures and their signs stay on one line."""
    return text.replace(" %", "\u00a0%").replace(" ± ", "\u00a0±\u00a0")


def _svg(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)


def _source(environment: Any, name: str) -> str:
    text: str = environment.loader.get_source(environment, name)[0]
    return text.strip()


def _hash(text: str) -> str:
    """Return the hash by which a content security policy allows a script or style of the page."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
