"""Content → one HTML file: templates, a policy that forbids every request, the data inside, and a limit of size."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fastbcubed.results.report.asked import Asked, require_packages, require_place
from fastbcubed.results.report.palette import DARK, LIGHT, as_style
from fastbcubed.results.report.shortening import halved
from fastbcubed.results.text.wording import (
    amount,
    count,
    fixed,
    label,
    percent,
    plus_minus,
    score,
    share,
    visible,
    with_error,
)
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.choices import true_or_false
from fastbcubed.runtime.completion import documented
from fastbcubed.runtime.written import written_aside

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
    from fastbcubed.results.report.pictures import pictures_of

    fitting, pictures = {**content, "halved": 0}, pictures_of(content)
    for halvings in range(1, HALVINGS + 1):
        if not _is_far_too_large(fitting):
            text = rendered(fitting, pictures)
            if len(text.encode("utf-8")) < LARGEST:
                return text, fitting
        fitting = {**halved(fitting), "halved": halvings}
    return rendered(fitting, pictures), fitting


def _is_far_too_large(content: Mapping[str, Any]) -> bool:
    """Tell whether the data alone are so large that no page holds them, which also has them as text."""
    return len(_as_data(content).encode("utf-8")) > LARGEST // 2


def _as_data(content: Mapping[str, Any]) -> str:
    """Return content as JSON that ends no script."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    hidden = {ord(c): json.dumps(c)[1:-1] for c in set(text) if not c.isprintable()}
    return text.translate(UNSAFE | hidden)


def rendered(content: Mapping[str, Any], pictures: Mapping[str, Any]) -> str:
    """Return the page of some content, with these charts."""
    from markupsafe import Markup

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
    """Return what reads the templates; whatever they are given is escaped."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fastbcubed.results.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_seen,
    )
    environment.filters |= {
        "score": lambda value: "n/a" if value is None else score(value),
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
    """Return what an item, a cluster, a slice or a set of them is called, on one line."""
    if isinstance(value, list | tuple):
        return ", ".join(map(label, value))
    return label(value)


def _seen(value: Any) -> Any:
    """Return what a template shows, with nothing in it that cannot be seen; markup is made of such."""
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
    """Return how a policy names what may run, as the page has it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
