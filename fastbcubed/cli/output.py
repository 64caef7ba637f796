"""Output of a command, to a terminal and elsewhere: tables, progress, messages, JSON and Markdown."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from fastbcubed.errors import (
    SPACES,
    Argument,
    Either,
    EvaluationWarning,
    IdTypeError,
    Message,
    OptionError,
    Part,
    alternatives,
    quoted,
    visible,
)
from fastbcubed.render import markdown
from fastbcubed.render.document import Block, Grid, Heading, Prose
from fastbcubed.render.number_formats import label
from fastbcubed.render.text import Lines, aligned, paragraph, pieces
from fastbcubed.results.gates import Gate
from fastbcubed.runtime.arguments import path_of

#: Slicings with at most this many slices are shown completely.
FEW_SLICES = 12


class Terminal:
    """Writes lines and tables to stdout, tables at most `most` characters wide; without colours in a pipe."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self.to_people = sys.stdout.isatty()
        reconfigure = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:  # a name that the encoding cannot represent must not raise
            reconfigure(errors="backslashreplace")

    def line(self, text: str = "") -> None:
        """Write one or several lines, with control characters escaped."""
        self._write(self._fitted(visible(text, SPACES)))

    def _write(self, text: str, end: str = "\n") -> None:
        with to_stdout():
            sys.stdout.write(f"{text}{end}")

    def title(self, text: str) -> None:
        """Write a heading after a blank line."""
        text = self._fitted(visible(text, SPACES))
        self._write(f"\n\033[1m{text}\033[0m" if self._styled else f"\n{text}")

    def _fitted(self, text: str) -> str:
        """Return text with lines that are too long for the terminal wrapped at their own indentation."""
        if not self.to_people or (width := self.width) is None:
            return text
        return "\n".join(
            paragraph(line.strip(), *[line[: len(line) - len(line.lstrip())]] * 2)
            if len(line) > width
            else line
            for line in text.split("\n")
        )

    def show(self, blocks: Iterable[Block]) -> None:
        """Write the blocks of a document as they are made, with arguments in notices written as flags."""
        for piece in pieces(blocks, Lines(self.width, self._styled, in_flags)):
            self._write(piece, "")
            self.flush()
        self.line()

    def flush(self) -> None:
        """Flush the output."""
        with to_stdout():
            sys.stdout.flush()

    @property
    def width(self) -> int | None:
        """The number of columns of the terminal; None if unbounded."""
        if not self.to_people:
            return self._most
        import shutil

        return min(shutil.get_terminal_size().columns, self._most or sys.maxsize)

    def grid(self, grid: Grid) -> None:
        """Write a table fitted to the terminal."""
        self._write(self._table(grid))

    def _table(self, grid: Grid) -> str:
        return aligned(grid, self.width, styled=self._styled)

    def gates(self, gates: Sequence[Gate]) -> None:
        """Write the outcomes of gates, if there are any."""
        if gates:
            self.line("\n" + "\n".join(gate.line for gate in gates))

    @property
    def _styled(self) -> bool:
        return self.to_people and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_document(
    result: Any, terminal: Terminal, worst: int, found: Mapping[str, Any] | None = None, **how: Any
) -> None:
    """Print a result with `found`, slices, and the clusters that cost or changed most."""
    from fastbcubed.results.page import Asked

    how |= {"slicings": None, "whole": max(worst, FEW_SLICES), "slices": worst, "found": found or {}}
    terminal.show(result._document(Asked(page=False, worst=worst, **how)).blocks)


#: Number of slices per slicing, and of clusters per side, in a Markdown summary: the costliest.
SLICES, CLUSTERS = 10, 3


def as_markdown(
    result: Any,
    title: str,
    lead: Sequence[str],
    gates: Sequence[Gate] = (),
    found: Mapping[str, Any] | None = None,
) -> str:
    """Return a result as Markdown, including `found` and gates, below a title and an introduction.

    The text ends with a blank line.
    """
    from fastbcubed.results.page import Asked

    failed = any(not gate.passed for gate in gates)
    mark = "" if not gates else " ✗" if failed else " ✓"
    how: dict[str, Any] = {"slicings": None, "whole": SLICES, "slices": SLICES, "found": found or {}}
    asked = Asked(page=False, worst=CLUSTERS, **how)
    _, *blocks = result._document(asked).blocks  # without the title that text output has
    heading = Heading(f"fastbcubed: {title}{mark}", 2)
    return markdown.drawn([heading, Prose(lead), *_gates(gates), *blocks], in_flags)


def _gates(gates: Sequence[Gate]) -> Iterator[Block]:
    """Yield a table of the gates' wanted and found values, and the reasons of failures not shown in it."""
    of_runs = any("run" in gate.figures for gate in gates)
    rows = [
        (
            "passed" if gate.passed else "failed",
            *[label(gate.figures.get("run", ""))] * of_runs,
            gate.figures.get("score", gate.subject),
            ",".join(f"{name}={value}" for name, value in (gate.figures.get("slice") or {}).items()),
            gate.found.removeprefix("is "),
            gate.wanted.removeprefix("wanted ") or "none",
        )
        for gate in gates
    ]
    columns = ("gate", *["run"] * of_runs, "score", "slice", "value", "wanted")
    yield Grid(columns, rows, len(columns))
    yield from (Prose([f"{reason}."]) for reason in dict.fromkeys(gate.reason for gate in gates) if reason)


def print_json(text: str) -> None:
    """Print JSON; names that the encoding of stdout cannot represent are escaped."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        import json

        text = json.dumps(json.loads(text), indent=2)
    with to_stdout():
        print(text)


@contextmanager
def to_stdout() -> Iterator[None]:
    """Name standard output as the file in an OSError, such as for a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise


@contextmanager
def then(write: Callable[[], Any]) -> Iterator[None]:
    """Write files after the output is printed, even if its reader, such as head, closed the pipe."""
    try:
        yield
    except BrokenPipeError:
        write()
        raise
    write()


def for_stderr(text: str) -> str:
    """Return a message wrapped to 80 columns for a terminal; unchanged for a file, which may be searched by line."""
    if not sys.stderr.isatty():
        return text
    return "\n".join(paragraph(line, after="  ") for line in text.splitlines())


def say(message: str) -> None:
    """Print a message on stderr, which may be closed."""
    try:
        print(for_stderr(f"fastbcubed: {visible(message, SPACES)}"), file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def say_warnings(notices: Iterable[Mapping[str, Any]]) -> None:
    """Print the warnings and notes of a result on stderr."""
    for each in notices:
        say(f"{each['level']}: {in_flags(each['message'])} [{each['code']}]")


def print_result(found: Mapping[str, Any], gates: Sequence[Gate] = (), **asked: Any) -> None:
    """Print a result as JSON, with gates and further entries that are not None."""
    from fastbcubed.render.json import as_json

    asked["gates"] = [gate.to_dict() for gate in gates] or None
    print_json(as_json({**found, **{name: each for name, each in asked.items() if each is not None}}))
    for gate in gates:
        if not gate.passed:
            say(gate.line)


def give_up(stream: TextIO) -> None:
    """Discard a stream's further output, so that Python does not fail when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def in_flags(message: str) -> str:
    """Return a message of the library with its arguments written as flags.

    Examples
    --------
    >>> from fastbcubed.errors import arg
    >>> in_flags(Message(f"Pass {arg('unmatched', 'drop')} or {arg('unmatched', {'prediction': 'outside'})}."))
    'Pass --unmatched drop or --unmatched prediction=outside.'
    >>> in_flags(Message(f"Did you mean {arg('item', ('item', ['DATA_SOURCE', 'RECORD_ID']))}?"))
    'Did you mean --item item,DATA_SOURCE+RECORD_ID?'
    """
    return Message(message).render(_in_flags)


def _in_flags(part: str | Part) -> str:
    if isinstance(part, Either):
        return part.command
    from fastbcubed.cli.options import OPTIONS

    if not isinstance(part, Argument) or part.name not in OPTIONS:
        return str(part)
    flag = OPTIONS[part.name].flags[0]
    if by_run := [value[1] for value in part.values if _is_by_run(value)]:
        ((run, column),) = by_run[0].items()
        return f"--run-{part.name} {shlex.quote(f'{run}={_escaped(column)}')}"
    value = alternatives(_value(part.name, value) for value in part.values)
    return f"{flag} {value}".rstrip()


def _value(name: str, value: Any) -> str:
    """Return a value as a flag takes it; "" for True (the flag alone) and for None (any value)."""
    if value is None or value is True:
        return ""
    if name in ("item", "cluster", "left", "right", "link_left", "link_right", "item_column"):
        return _columns(value)
    if isinstance(value, dict):
        return ",".join(f"{side}={policy}" for side, policy in value.items())
    if isinstance(value, float):
        return f"{value:.2g}"
    return ",".join(value) if isinstance(value, list) else str(value)


def _is_by_run(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict)


def _escaped(names: str | list[str] | None) -> str:
    each = [names or ""] if isinstance(names, str | None) else names
    return "+".join(re.sub(r"([,+\\])", r"\\\1", name) for name in each)


def _columns(names: str | list[str] | tuple[str | list[str] | None, ...]) -> str:
    r"""Return columns in the syntax of a flag; sides without a column are left empty.

    Examples
    --------
    >>> _columns(("item", ["source", "no, or id"]))
    "'item,source+no\\, or id'"
    """
    sides = names if isinstance(names, tuple) else (names,)
    return shlex.quote(",".join(map(_escaped, sides)))


@contextmanager
def warnings_said() -> Iterator[None]:
    """Print warnings that have no code, each once; those with a code are part of a result."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", EvaluationWarning)
        yield
    messages = [each.message.args[0] for each in caught if getattr(each.message, "code", None) is None]  # type: ignore
    for message in dict.fromkeys(messages):
        say(f"warning: {in_flags(message)}")


def call(function: Callable[..., Any], arguments: dict[str, Any], noise: str | None) -> Any:
    """Return a function's result; retry with the noise label as text if it looks like a number but labels are text."""
    with warnings_said():
        try:
            return function(**arguments)
        except IdTypeError:
            text: Any = noise
            given = arguments["noise"]
            if isinstance(given, dict):
                given, text = next(iter(given.values())), {side: str(of) for side, of in given.items()}
            if not isinstance(given, int):
                raise
            return function(**{**arguments, "noise": text})


def with_scores(
    arguments: dict[str, Any], names: Iterable[str], usual: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the arguments of `evaluate` with these scores added; `usual` are other default scores, if any."""
    from fastbcubed.metrics.registry import DEFAULT, known_as, members

    chosen = usual if arguments.get("metrics") is None else arguments["metrics"]
    listed = DEFAULT if chosen is None else chosen
    computed = [metric.name for each in map(known_as, listed) for metric in members(each)]
    more = [name for name in dict.fromkeys(names) if name not in computed]
    return {**arguments, "metrics": [*listed, *more]} if more else arguments


# Output files


def parquet_file(path: str, flag: str) -> Path:
    """Return the path of a Parquet file to write, or raise if the flag's value is not one or not writable."""
    from fastbcubed.runtime.output_files import require_writable

    if not path.lower().endswith((".parquet", ".pq")):
        flag = f"--{flag.replace('_', '-')}"
        raise OptionError(f"{flag} must name a Parquet file ending in .parquet, not {quoted(path)}")
    place = Path(path_of(path))
    require_writable(place.parent)
    return place


def write_parquet(tables: Iterable[Any], out: Path) -> None:
    """Write tables of the same columns as a Parquet file, entirely or not at all."""
    from fastbcubed.runtime.output_files import TableWriter, make_directory, written_aside

    make_directory(out.parent)
    with written_aside(out) as aside, TableWriter(aside) as writer:
        for table in tables:
            writer.add(table)
