"""Options of a page, checked before the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastbcubed.errors import MissingPackageError, OptionError, arg
from fastbcubed.inputs.locations import at_home
from fastbcubed.inputs.tables import is_path
from fastbcubed.render.report import Page, Report
from fastbcubed.results.slices import SliceKey, check_key
from fastbcubed.runtime.arguments import as_several, true_or_false, whole_number
from fastbcubed.runtime.output_files import require_writable

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


def report_of(
    page: Callable[[Asked], Page], path: Any, asked: Mapping[str, Any], *, overwrite: bool
) -> Report:
    """Return a page, written to `path` unless that is None; all checks come before the work."""
    require_packages("a report")
    found, overwrite = Asked.of(**asked), true_or_false(overwrite, "overwrite")
    file = None if path is None else require_place(path, overwrite=overwrite)
    report = Report(page(found))
    if file is not None:
        report.write(file)
    return report
