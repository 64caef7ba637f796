"""Output of the command line: messages on stderr, JSON on stdout, arguments named as flags."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from fastbcubed.errors import EvaluationWarning, IdTypeError


def print_json(text: str) -> None:
    """Write JSON; names that the encoding of stdout lacks are escaped."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        import json

        text = json.dumps(json.loads(text), indent=2)
    with to_stdout():
        print(text)


@contextmanager
def to_stdout() -> Iterator[None]:
    """Name standard output in the error of a full disk."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise


def say(message: str) -> None:
    """Write a message on stderr, which may be closed."""
    try:
        print(f"fastbcubed: {message}", file=sys.stderr, flush=True)
    except OSError:
        give_up(sys.stderr)


def give_up(stream: TextIO) -> None:
    """Discard a stream's further output, so that Python does not fail on it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_FLAGS = {
    "slices": "slice",
    "metrics": "metric",
    "thresholds": "threshold",
    "memory_limit": "memory-limit",
    "spill_dir": "spill-dir",
    "population_clusters": "population-clusters",
}
#: An argument at the beginning of a message.
_SUBJECT = re.compile(
    r"^(threshold|score|items|where|repairs|slices|metrics|beta|weighting|nulls|duplicates|keep|engine|memory_limit|spill_dir|"
    r"threads|max_pairs|sampling|draws|missing|level|population_clusters)(?= (?:is|are|must)\b)"
)
#: Columns in Python syntax: a list, and a pair of names or lists.
_LIST = r'\["[^"]*"(?:, "[^"]*")*\]'
_PAIR = rf'\((?:"[^"]*"|{_LIST}), (?:"[^"]*"|{_LIST})\)'
_KEYWORD = re.compile(
    r"\b(item|cluster|weight|slices|attributes|metrics|beta|weighting|unmatched|nulls|duplicates|noise|table|"
    r"left|right|score|items|thresholds|out|keep|repairs|engine|memory_limit|spill_dir|threads|progress|overwrite|overlapping|"
    r"max_pairs|sampling|draws|missing|align|ascending)="
    rf'(?:"([^"]*)"|\{{([^}}]*)\}}|True\b|(?<=max_pairs=)(\d[\d.]*(?:e[+-]?\d+)?)|({_LIST}|{_PAIR})|(?=[\s.,;)?]|$))'
)
#: A function that is also a command.
_FUNCTION = re.compile(r"\bfb\.estimate\b")
#: Bins in Python syntax.
_BINS = re.compile(r'fb\.bins\(("(?:[^"\\]|\\.)*"), \[?([^\])]*)\]?\)')


def _columns(names: str | list[str] | tuple[str | list[str], ...]) -> str:
    r"""Return columns in the syntax of a flag.

    Examples
    --------
    >>> _columns(("item", ["source", "no, or id"]))
    "'item,source+no\\, or id'"
    """
    sides = names if isinstance(names, tuple) else (names,)
    joined = ("+".join(map(_escaped, [side] if isinstance(side, str) else side)) for side in sides)
    return shlex.quote(",".join(joined))


def _escaped(name: str) -> str:
    return re.sub(r"([,+\\])", r"\\\1", name)


def in_flags(message: str) -> str:
    """Return a message of the library with keyword arguments written as flags.

    Examples
    --------
    >>> in_flags('Pass unmatched="drop" or unmatched={"prediction": "outside"}.')
    'Pass --unmatched drop or --unmatched prediction=outside.'
    >>> in_flags('Did you mean item=("item", ["DATA_SOURCE", "RECORD_ID"])?')
    'Did you mean --item item,DATA_SOURCE+RECORD_ID?'
    >>> in_flags('Say which: left="id_l" and right="id_r".')
    'Say which: --left id_l and --right id_r.'
    >>> in_flags('To slice by bins, pass fb.bins("year", [1990, 2000]).')
    'To slice by bins, pass year:1990:2000.'
    >>> in_flags('Pass unmatched={"prediction": "outside"}, or use fb.estimate.')
    'Pass --unmatched prediction=outside, or use fastbcubed estimate.'
    >>> in_flags("memory_limit is 1,000 bytes")
    '--memory-limit is 1,000 bytes'
    """

    def flag(found: re.Match[str]) -> str:
        name, value, several, number, columns = found.groups()
        if name in ("item", "cluster", "left", "right") and (columns or value):
            return f"--{name} {_columns(ast.literal_eval(columns) if columns else value)}"
        value = value or number
        if several is not None:
            value = re.sub(r'"(\w+)": "(\w+)"', r"\1=\2", several).replace(", ", ",")
        return f"--{_FLAGS.get(name, name).replace('_', '-')}{f' {value}' if value else ''}"

    def subject(found: re.Match[str]) -> str:
        return f"--{_FLAGS.get(found[1], found[1]).replace('_', '-')}"

    message = message.replace("pass Clustering.from_links(...)", "pass --links")
    message = _BINS.sub(
        lambda found: f"{json.loads(found[1])}:{found[2].replace(', ', ':').strip(chr(34))}", message
    )
    message = _FUNCTION.sub("fastbcubed estimate", message)
    message = _SUBJECT.sub(subject, _KEYWORD.sub(flag, message))
    return re.sub(r'(?<=--)(\w+ \w+) or "(\w+)"', r"\1 or \2", message)


def call_evaluate(arguments: dict[str, Any], noise: str | None) -> Any:
    """Return an evaluation, as `call` does."""
    import fastbcubed

    return call(fastbcubed.evaluate, arguments, noise)


def call(function: Callable[..., Any], arguments: dict[str, Any], noise: str | None) -> Any:
    """Return a function's result; a noise label that looks like a number becomes text if labels are text.

    Warnings that are not in the result are printed.
    """
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", EvaluationWarning)
        try:
            found = function(**arguments)
        except IdTypeError:
            if not isinstance(arguments["noise"], int):
                raise
            found = function(**{**arguments, "noise": noise})
    messages = [each.message for each in caught if getattr(each.message, "code", None) is None]
    for message in dict.fromkeys(map(str, messages)):  # warnings with a code are in the result
        say(f"warning: {in_flags(message)}")
    return found


def with_scores(arguments: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of `evaluate` with these scores added to its metrics."""
    from fastbcubed.metrics.registry import resolve

    chosen = arguments.get("metrics")
    computed = [metric.name for metric in resolve(chosen)[0]]
    more = [name for name in dict.fromkeys(names) if name not in computed]
    return {**arguments, "metrics": [*(computed if chosen is None else chosen), *more]} if more else arguments
