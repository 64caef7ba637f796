"""Pages: options, titles, the command that reproduces a result, and writing."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any

from fastbcubed._version import install
from fastbcubed.errors import EvaluationWarning, MissingPackageError, OptionError, arg
from fastbcubed.inputs.locations import at_home
from fastbcubed.render.document import Block, Code, Document, Facts, Notice, Prose
from fastbcubed.render.html import Report
from fastbcubed.render.json import as_json, few_entries, plain, shortened
from fastbcubed.render.number_formats import counted
from fastbcubed.results.gates import Gate
from fastbcubed.results.slices import SliceKey, check_key, is_table, named_attributes
from fastbcubed.runtime.arguments import a_text, as_several, path_of, true_or_false, whole_number
from fastbcubed.runtime.output_files import require_writable

#: Maximum number of messages in a list, of attributes next to members, and of slicings on a page.
MESSAGES, MOST_COLUMNS, SLICINGS = 30, 12, 12
#: Slicings with at most this many slices are charted whole; and maximum number of slices listed, the costliest.
CHARTED, LISTED = 20, 100


def anchor(side: str, cluster: Any) -> str:
    """Return the id of a cluster's element on a page, which is the same in all results.

    Examples
    --------
    >>> anchor("pred", 7) == anchor("pred", 7), anchor("pred", 7) == anchor("pred", "7")
    (True, False)
    """
    text = json.dumps(plain(cluster), sort_keys=True, ensure_ascii=False)
    return f"{side}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


#: Arguments that may be data, and arguments whose flag has another name.
DATA = ("attributes", "table", "weight")
FLAGS = {"metrics": "metric", "slices": "slice"}
#: Names of sides that were not read from files.
UNNAMED = {"truth": "the truth", "prediction": "the prediction"}


def without_data(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest without data passed as arguments, as a page shows attributes only if they are named.

    Examples
    --------
    >>> without_data({"arguments": {"weight": "w", "attributes": {"a": [1]}, "slices": [{"few": [1, 2]}]}})
    {'arguments': {'weight': 'w', 'attributes': '(data)', 'slices': [['few']]}}
    """
    given = dict(manifest.get("arguments") or {})
    for name in DATA:
        if name in given and not isinstance(given[name], str):
            given[name] = "(data)"
    if isinstance(given.get("slices"), list):
        given["slices"] = [list(each) if isinstance(each, Mapping) else each for each in given["slices"]]
    return {**manifest, "arguments": given}


def command(
    names: Mapping[str, Any],
    arguments: Mapping[str, Any],
    verb: str = "evaluate",
    unnamed: Mapping[str, str] = UNNAMED,
) -> str | None:
    """Return the command that evaluates the same files again; None if data other than files were passed.

    `unnamed` has the names of sides that were not read from files.

    Examples
    --------
    >>> command({"truth": "a b.csv", "prediction": "p.csv"}, {"slices": ["x", ["x", "y"]], "overlapping": True})
    "fastbcubed evaluate 'a b.csv' p.csv --slice x --slice x,y --overlapping"
    >>> command({"truth": "the truth", "prediction": "the prediction"}, {})
    """
    told = list(arguments.items())
    if any(names.get(side) in (None, data) for side, data in unnamed.items()):
        return None
    if any(_is_data(value) for name, value in told if name in (*DATA, "slices")):
        return None
    words = ["fastbcubed", verb, *(str(names[side]) for side in unnamed)]
    for name, value in told:
        words += _flags(FLAGS.get(name, name), value)
    return shlex.join(words)


def _flags(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else []
    if name == "slice" and isinstance(value, list):
        each = [",".join(map(str, one)) if isinstance(one, list) else str(one) for one in value]
        return [word for one in each for word in (flag, one)]
    if isinstance(value, Mapping):
        return [flag, ",".join(f"{key}={one}" for key, one in value.items())]
    if isinstance(value, list):
        return [flag, ",".join(map(str, value))]
    return [] if value is None else [flag, str(value)]


def _is_data(value: Any) -> bool:
    """Return whether an argument was data, of which the manifest has only the type."""
    if isinstance(value, Mapping):
        return True
    if isinstance(value, list):
        return any(isinstance(each, Mapping) for each in value)
    libraries = ("numpy", "pandas", "polars", "pyarrow", "duckdb")
    return isinstance(value, str) and value.partition(".")[0] in libraries


def origin_of(manifest: Mapping[str, Any], again: str | None = None) -> list[Block]:
    """Return blocks with the command that reproduces a result, if there is one, and with the manifest."""
    manifest = shortened(few_entries(without_data(manifest)))
    rows = [(name, str(version)) for name, version in (manifest.get("versions") or {}).items()]
    rows += [("engine", manifest["engine"])] if "engine" in manifest else []
    for side in ("truth", "prediction", "baseline", "experiment"):
        if isinstance(own := manifest.get(side), Mapping):
            text = "rows not counted" if own["rows"] is None else counted(own["rows"], "row")
            rows.append(
                (side, text + (f", fingerprint {own['fingerprint']}" if own.get("fingerprint") else ""))
            )
    rows += [(name, as_json(value, None)) for name, value in (manifest.get("arguments") or {}).items()]
    return [*command_blocks(again), Facts(rows)]


def command_blocks(command: str | None) -> list[Block]:
    """Return blocks with the command that reproduces a result; none if there is no command."""
    if not command:
        return []
    return [Prose(["This command reproduces the result in the directory of its files:"]), Code(command)]


def title_of(names: Mapping[str, Any]) -> str:
    """Return the title of a page: the names of the evaluated files, without folders.

    Examples
    --------
    >>> title_of({"truth": "data/truth.parquet", "prediction": "runs/new.parquet"}), title_of({})
    ('new against truth', 'Evaluation')
    """
    stems = [stem(name) if (name := names.get(side)) else "" for side in ("prediction", "truth")]
    given = all(stems) and names["truth"] != "the truth" and names["prediction"] != "the prediction"
    return " against ".join(stems) if given else "Evaluation"


def stem(name: str) -> str:
    """Return the name of a file without folder and suffix, or of a column without its table.

    Examples
    --------
    >>> stem("runs/new.parquet"), stem("the truth ('true_id' of all.parquet)")
    ('new', 'true_id')
    """
    column = re.fullmatch(r"the \w+ \((['\"])(.*)\1 of .*\)", name, re.DOTALL)
    return PurePath(name).stem if column is None else column[2]


def gate_notices(gates: Sequence[Gate]) -> list[Notice]:
    """Return the outcomes of gates as notices."""
    return [Notice("passed" if gate.passed else "failed", gate.line.partition(": ")[2]) for gate in gates]


#: Packages of the report extra, by import name.
PACKAGES = {"altair": "altair", "jinja2": "Jinja2", "vl_convert": "vl-convert-python"}
#: Maximum number of clusters per side, and of members per cluster, as nobody reads more; members of an opened cluster.
MOST, OPENED = 1000, 20


@dataclass(frozen=True)
class Asked:
    """Options of a document: title, clusters per side, members per cluster, attributes shown, slicings to add.

    `explain` is the argument `attributes` of explanations: True for all attributes, None for no explanation. A slicing
    with more than `whole` slices shows at most `slices`. `page` says whether to make what only pages show; `order_by`
    is the order of clusters. `found` has further figures to show, by their names in JSON: opened, repairs,
    source_pairs; `flags` are the words of the command line that requested these.
    """

    title: str | None = None
    worst: int = 20
    members: int = 10
    columns: tuple[str, ...] = ()
    by: tuple[SliceKey, ...] = ()
    explain: Any = None
    page: bool = True
    slicings: int | None = SLICINGS
    whole: int = CHARTED
    slices: int = LISTED
    order_by: str | None = None
    found: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        *,
        title: Any = None,
        worst: Any = 20,
        members: Any = 10,
        columns: Any = (),
        by: Any = None,
        explain: Any = None,
    ) -> Asked:
        """Check the arguments of `Evaluation.report`."""
        title = None if title is None else a_text(title, "title")
        worst, members = whole_number(worst, "worst", most=MOST), whole_number(members, "members", most=MOST)
        names = as_several(columns)
        keys = [] if by is None else by if isinstance(by, list) else [by]
        explain = None if explain is False else explain
        if explain is not None and explain is not True and not is_table(explain):
            explain = named_attributes(explain, "explain", f"pass {arg('explain', True)}")
        return cls(title, worst, members, tuple(names), tuple(map(check_key, keys)), explain)

    def with_found(self, found: Mapping[str, Any], flags: Sequence[str] = ()) -> Asked:
        """Return the options with further figures to show, and listing at least as many clusters as were opened."""
        asked = replace(self, found=found, flags=tuple(flags))
        if not (opened := found.get("opened")):
            return asked
        return replace(asked, worst=max(self.worst, len(opened)), members=max(self.members, OPENED))

    def requested(self, command: str | None) -> str | None:
        """Return the command that reproduces a result, with the flags that requested its further figures."""
        return None if command is None else f"{command} {shlex.join(self.flags)}".rstrip()

    @property
    def is_usual(self) -> bool:
        """Whether all options except the title have their defaults."""
        return self.explain is None and replace(self, title=None) == Asked()

    @property
    def explained_by(self) -> Any:
        """The attributes to explain losses by; None for all."""
        return None if self.explain is True else self.explain


def opened_blocks(asked: Asked) -> Iterator[Block]:
    """Yield the opened clusters, except on a page, which lists clusters anyway."""
    for each in () if asked.page else asked.found.get("opened", ()):
        yield from each._document().blocks


#: Options for the brief text of a result.
IN_BRIEF = Asked(page=False, worst=0, slicings=0)


def require_packages(what: str) -> None:
    """Raise MissingPackageError if packages that reports need are not installed, without importing them."""
    missing = [name for module, name in PACKAGES.items() if find_spec(module) is None]
    if missing:
        raise MissingPackageError(
            f"{what} needs {' and '.join(missing)}, which the report extra installs: {install('report')}"
        )


def require_place(path: Any, *, overwrite: bool) -> Path:
    """Return the path of a page to write; raise if it cannot be made or written, or exists and must not be replaced."""
    from fastbcubed.render.vega import require_addresses

    file = Path(at_home(path_of(path, "path must be the file to write, such as 'report.html'")))
    if os.path.isdir(file):
        raise OptionError(f"{file} is a directory; name a file, such as {file / 'report.html'}")
    if file.suffix.lower() not in ("", ".html", ".htm"):
        raise OptionError(
            f"the page is HTML, so its name ends in .html, not in {file.suffix}; name it {file.with_suffix('.html')}"
        )
    if os.path.exists(file) and not overwrite:
        raise OptionError(
            f"{file} already exists; pass {arg('overwrite', True)} to replace it, or another path"
        )
    require_writable(file.parent)
    require_addresses()
    return file


def report_of(
    page: Callable[[Asked], Document], path: Any, asked: Mapping[str, Any], *, overwrite: bool
) -> Report:
    """Return a report, and write it to `path` if one is given; all checks precede the work."""
    require_packages("a report")
    found, overwrite = Asked.of(**asked), true_or_false(overwrite, "overwrite")
    file = None if path is None else require_place(path, overwrite=overwrite)
    report = Report(whole(lambda: page(found)))
    if file is not None:
        report.write(file)
    return report


def whole(document: Callable[[], Document]) -> Document:
    """Return a document with all of its sections made, ignoring warnings, which the document shows itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        found = document()
        return replace(found, sections=list(found.sections))
