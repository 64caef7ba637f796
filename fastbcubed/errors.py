"""The errors that the library raises deliberately; all are subclasses of `ValueError`."""

from __future__ import annotations

import ast
import errno
import json
import math
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = [
    "AlignmentError",
    "ColumnError",
    "DiskSpaceError",
    "DuplicateItemError",
    "EmptyInputError",
    "EvaluationWarning",
    "FastBCubedError",
    "FileFormatError",
    "GateError",
    "IdTypeError",
    "JudgementError",
    "LinkError",
    "MetricError",
    "MissingPackageError",
    "NotKeptError",
    "NullError",
    "OptionError",
    "OutOfMemoryError",
    "OverlapError",
    "PairingError",
    "SliceError",
    "SparkJobError",
    "SpillError",
    "TooMuchWorkError",
    "WeightError",
    "first_few",
]


def __dir__() -> list[str]:
    return __all__


class Part:
    """A part of a message that is worded differently in Python and on the command line.

    In an f-string it becomes a token, which `Message` reads.
    """

    def __format__(self, spec: str) -> str:
        return f"\0{type(self).__name__}{tuple(vars(self).values())}\0"


@dataclass(frozen=True)
class Argument(Part):
    """An argument of a function, which the command line shows as a flag. A value of None stands for any value."""

    name: str
    values: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}={alternatives(map(_in_python, self.values))}" if self.values else self.name


@dataclass(frozen=True)
class Either(Part):
    """Words for Python, and words for the command line."""

    python: str
    command: str

    def __str__(self) -> str:
        return self.python


def arg(name: str, *values: Any) -> Argument:
    """Return an argument for a message: its name, with alternative values if given; an ellipsis stands for any value.

    Examples
    --------
    >>> print(arg("nulls", "drop"), arg("item", ("id", ["source", "no"])), arg("unmatched", {"truth": "drop"}))
    nulls="drop" item=("id", ["source", "no"]) unmatched={"truth": "drop"}
    >>> print(arg("keep", "cells", "items"), arg("overlapping", True), arg("metrics", ...), arg("threshold"))
    keep="cells" or "items" overlapping=True metrics= threshold
    """
    return Argument(name, tuple(map(_literal, values)))


def _literal(value: Any) -> Any:
    """Return a value in a form that a token can contain: a literal, otherwise its representation."""
    if value is ...:
        return None
    value = float(value) if isinstance(value, float) else value  # NumPy's floats have another representation
    try:
        ast.literal_eval(repr(value))
    except (ValueError, SyntaxError):
        return repr(value)
    return value


def alternatives(written: Iterable[str]) -> str:
    """Return strings joined as alternatives, ``a, b or c``; empty if there are none.

    >>> alternatives(["drop", "singleton", "outside"]), alternatives(["drop"])
    ('drop, singleton or outside', 'drop')
    """
    *others, last = list(written) or [""]
    return f"{', '.join(others)} or {last}" if others else last


def _in_python(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return f"({', '.join('None' if each is None else _in_python(each) for each in value)})"
    if isinstance(value, float):
        return f"{value:.2g}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | list | dict) else str(value)


@dataclass(frozen=True)
class Word(Part):
    """A word of an evaluation, such as truth or true cluster, which a diff replaces by its own."""

    name: str

    def __str__(self) -> str:
        return self.name


TRUTH, PREDICTION = Word("truth"), Word("prediction")
ESTIMATE = Either("fb.estimate", "fastbcubed estimate")
#: Advice if an item is in several clusters.
MAY_OVERLAP = f"if clusters may overlap, pass {arg('overlapping', True)}; otherwise, choose"
#: Advice if weights are zero.
OR_OUTER = f", or pass {arg('weighting', 'outer')}, which allows zeros"


def visible(text: str, kept: str = "") -> str:
    r"""Return a string with escapes instead of invisible characters and those that reverse the text direction.

    Examples
    --------
    >>> print(visible("\x1b[1m \u202eabc\n", kept="\n"), end="")
    \x1b[1m \u202eabc
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else ascii(c)[1:-1] for c in text)


#: White space that messages may contain.
SPACES = "\n\t\u00a0"

#: Pattern of a token.
_TOKEN = re.compile(r"\0(Argument|Either|Word)(\(.*?\))\0", re.DOTALL)


class Message(str):
    """A message worded for Python: a string that also keeps its parts, which can be reworded.

    Examples
    --------
    >>> message = Message(f"Pass {arg('nulls', 'drop')} to leave them out.")
    >>> message
    'Pass nulls="drop" to leave them out.'
    >>> message.parts
    ('Pass ', Argument(name='nulls', values=('drop',)), ' to leave them out.')
    """

    parts: tuple[str | Part, ...]

    def __new__(cls, text: str) -> Message:
        """Create a message from a string with tokens, or from another message."""
        if isinstance(text, Message):
            return text
        kinds: dict[str, Callable[..., Part]] = {"Argument": Argument, "Either": Either, "Word": Word}
        before, *found = _TOKEN.split(str(text))
        parts: list[str | Part] = [before]
        for kind, values, after in zip(found[::3], found[1::3], found[2::3], strict=True):
            parts += [kinds[kind](*ast.literal_eval(values)), after]
        message = super().__new__(cls, visible("".join(map(str, parts)), SPACES))
        message.parts = tuple(parts)
        return message

    def __add__(self, other: str) -> Message:
        return Message(self.marked + other)

    @property
    def marked(self) -> str:
        """The message with tokens, to be included in another message."""
        return "".join(map(format, self.parts))

    def render(self, word: Callable[[Any], str]) -> str:
        """Return the message with each part replaced by what `word` returns for the part."""
        return visible("".join(map(word, self.parts)), SPACES)

    def replaced(self, change: Callable[[Any], Any]) -> Message:
        """Return the message with each part replaced by what `change` returns for the part."""
        return Message("".join(format(change(part)) for part in self.parts))


class FastBCubedError(ValueError):
    """Base class of the library's errors; messages say what was expected, what was passed, where, and what to do."""

    def __init__(self, message: str = "") -> None:
        super().__init__(Message(message))

    @property
    def message(self) -> Message:
        """The error's message, made of parts that can be reworded."""
        found: Message = self.args[0]
        return found

    #: Data of a reader of blocks for the same message over all blocks, where rows are null; see `sources.nulls`.
    nulls: Any = None


class OptionError(FastBCubedError):
    """An argument has a value that is not allowed."""


class ColumnError(FastBCubedError):
    """A column is missing or ambiguous, or differs in length from the others."""


class IdTypeError(FastBCubedError):
    """Item ids or cluster labels have a type that is unsuitable for ids, or types that differ between the sides."""


class NullError(FastBCubedError):
    """An item id or a cluster label is null."""


class WeightError(FastBCubedError):
    """A weight is missing, null, not finite, negative, or zero where it must be positive."""


class LinkError(FastBCubedError):
    """A link has a score that is not a number, or refers to an unknown item."""


class DuplicateItemError(FastBCubedError):
    """Rows repeat an item, an item and its cluster, an id, or a pair of items, although rows must be distinct."""


class OverlapError(FastBCubedError):
    """An item is in several clusters of a clustering that should be a partition."""


class AlignmentError(FastBCubedError):
    """The two sides cannot be aligned: their lengths or indexes differ, or items are unmatched."""


class EmptyInputError(FastBCubedError):
    """There is nothing to score: no rows, or no item common to both sides."""


class FileFormatError(FastBCubedError):
    """A file is missing, truncated, corrupt, or in an unknown format."""


class OutOfMemoryError(FastBCubedError, MemoryError):
    """A file cannot be read, or a chart cannot be drawn, in the memory that the process may use."""


class DiskSpaceError(FastBCubedError):
    """The free disk space is too small for the files that a call would write."""


class SpillError(FastBCubedError):
    """Data that do not fit in memory cannot be written to disk or read back."""


class SparkJobError(FastBCubedError):
    """A Spark job failed, or a kernel failed on an executor."""


class MetricError(FastBCubedError):
    """A score is unknown or not defined for this input."""


class PairingError(MetricError):
    """The search for the best one-to-one pairing of clusters takes too long."""


class SliceError(FastBCubedError):
    """A requested slice, side, cluster or item does not exist."""


class TooMuchWorkError(FastBCubedError):
    """More pairs would have to be compared than allowed; the message names the argument that sets the limit."""


class JudgementError(FastBCubedError):
    """Judged pairs differ from the pairs that were drawn, or have invalid or contradictory verdicts."""


class NotKeptError(FastBCubedError):
    """The result did not keep the requested data; the message names the argument that keeps such data."""


#: Advice in errors about lack of memory.
ALLOW_MORE = "Free some memory, or raise the limit of the process (ulimit -v) or of its container"
MORE_MEMORY = f"{ALLOW_MORE}. Evaluations of large files need less memory with {arg('engine', 'disk')}"
#: Phrases in messages of the system's loader, Python and Arrow if there is no memory for a library or a thread.
_NO_ROOM = (
    "failed to map segment", "cannot allocate memory", "cannot map zero-fill pages", "can't start new thread",
    "failed to launch worker thread",
)  # fmt: skip


def lacks_memory(error: BaseException | None) -> bool:
    """Return whether an error, or one that it was raised from, reports a lack of memory."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        if isinstance(error, FastBCubedError):  # states its own cause
            return False
        if any(each in str(error).lower() for each in _NO_ROOM):
            return True
        error = error.__cause__ or error.__context__
    return False


def first_few(values: Iterable[object], limit: int = 3) -> str:
    """Return the first few values for an error message, such as ``'a', 'b', 'c', …``.

    Long values are truncated, and composite ids are shown as tuples.

    Examples
    --------
    >>> first_few(["d17", "d52", "d90", "d91"])
    "'d17', 'd52', 'd90', …"
    >>> first_few([{"source": "a", "id": 1}])
    "('a', 1)"
    """
    listed = [tuple(v.values()) if isinstance(v, dict) else v for v in values]
    return ", ".join(map(_SHORT.repr, listed[:limit])) + (", …" if len(listed) > limit else "")


def quoted(value: object) -> str:
    """Return the representation of a value for an error message, truncated if it is long.

    Examples
    --------
    >>> quoted("nope"), quoted({"truth": 1}), len(quoted("x" * 10_000)), quoted(10**5000)
    ("'nope'", "{'truth': 1}", 200, 'an integer of about 5,000 digits')
    """
    return _ONE.repr(value)


def short(path: str) -> str:
    """Return a path for an error message, quoted if it is empty or truncated.

    Examples
    --------
    >>> short("runs/7.parquet"), short(""), len(short("x" * 10_000))
    ('runs/7.parquet', "''", 200)
    """
    return path if 0 < len(path) <= _ONE.maxstring else quoted(path)


class _Repr(reprlib.Repr):
    """Truncated representations of values that never fail: Python refuses to convert integers of 5,000 digits."""

    def repr_int(self, value: int, level: int) -> str:
        if value.bit_length() < 10_000:
            return super().repr_int(value, level)
        digits = int(value.bit_length() * math.log10(2))
        return f"an integer of about {digits:,} digits"

    def repr_instance(self, value: object, level: int) -> str:
        return " ".join(super().repr_instance(value, level).split())


_SHORT, _ONE = _Repr(), _Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = _ONE.maxlong = 60
_ONE.maxstring = _ONE.maxother = 200
_ONE.maxlist = _ONE.maxtuple = _ONE.maxset = _ONE.maxfrozenset = _ONE.maxdict = 20


class GateError(FastBCubedError, AssertionError):
    """A score fails a gate passed to a result's method `check`; the message has a line for each failed gate."""


class MissingPackageError(FastBCubedError, ImportError):
    """A feature needs a package that is not installed; the message names the package."""


class EvaluationWarning(UserWarning):
    """A warning about how to interpret the scores, which `Evaluation.warnings` also lists.

    The message ends with the warning's code in brackets; the attribute `code` is the code, or None for a warning
    without a code.
    """

    def __init__(self, message: str = "", code: str | None = None) -> None:
        super().__init__(Message(message) + ("" if code is None else f" [{code}]"))
        self.code = code


@contextmanager
def rewording(change: Callable[[Any], Any]) -> Iterator[None]:
    """Change the parts of the messages of errors raised in this context."""
    try:
        yield
    except FastBCubedError as error:
        error.args = (error.message.replaced(change),)
        raise


@contextmanager
def calling(function: str) -> Iterator[None]:
    """Convert exceptions of a function that may be the user's own to MetricError, which names the function."""
    try:
        yield
    except (FastBCubedError, MemoryError):
        raise
    except Exception as error:
        raise MetricError(f"{function} failed: {type(error).__name__}: {error}") from error


#: Names that messages use for inputs shared by all runs.
SHARED = (
    "the truth", "the weight table", "weight is", "weight has", "weight should", "the attributes", "attributes should",
    "memory_limit is", "cannot spill to",
)  # fmt: skip


@contextmanager
def naming(run: str | None, truth: str = "the truth", prediction: str = "the prediction") -> Iterator[None]:
    """Add the name of the run to the messages of errors raised in this context; None if there is only one run.

    Errors about the truth, weights or attributes, which all runs share, are not changed. `truth` and `prediction` are
    the names of the sides.
    """
    try:
        yield
    except FastBCubedError as error:
        text = str(error)
        shared = _mentions(text, *SHARED, truth) and not _mentions(text, "the prediction", prediction)
        if run is not None and not shared:
            error.args = (Message(f"run {run!r}: {error.message.marked}"),)
        raise


def _mentions(text: str, *names: str) -> bool:
    """Return whether a string contains one of these names as a whole word."""
    return any(re.search(rf"(?<![\w./-]){re.escape(name)}(?!\w)", text) for name in names)


@contextmanager
def without_advice(*, outer: bool = False) -> Iterator[None]:
    """Remove advice on `overlapping=True` and, unless `outer`, on `weighting="outer"`, which the caller lacks."""
    try:
        yield
    except (OverlapError, WeightError) as error:
        text = error.message.marked.replace(MAY_OVERLAP, "overlapping clusters are not supported: choose")
        raise type(error)(text if outer else text.replace(OR_OUTER, "")) from None
