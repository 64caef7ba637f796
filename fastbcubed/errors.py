"""Errors that the library raises on purpose; all are `ValueError` as well."""

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
    """A part of a message that is worded for its readers: in Python, or on the command line.

    An f-string takes it as a token, which `Message` reads.
    """

    def __format__(self, spec: str) -> str:
        return f"\0{type(self).__name__}{tuple(vars(self).values())}\0"


@dataclass(frozen=True)
class Argument(Part):
    """An argument of a function; the command line shows its flag. A value of None is yet to be chosen."""

    name: str
    values: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}={alternatives(map(_in_python, self.values))}" if self.values else self.name


@dataclass(frozen=True)
class Either(Part):
    """Words for Python and for the command line."""

    python: str
    command: str

    def __str__(self) -> str:
        return self.python


def arg(name: str, *values: Any) -> Argument:
    """Return an argument for a message: its name, or with values, which are alternatives; an ellipsis is any value.

    Examples
    --------
    >>> print(arg("nulls", "drop"), arg("item", ("id", ["source", "no"])), arg("unmatched", {"truth": "drop"}))
    nulls="drop" item=("id", ["source", "no"]) unmatched={"truth": "drop"}
    >>> print(arg("keep", "cells", "items"), arg("overlapping", True), arg("metrics", ...), arg("threshold"))
    keep="cells" or "items" overlapping=True metrics= threshold
    """
    return Argument(name, tuple(map(_literal, values)))


def _literal(value: Any) -> Any:
    """Return a value as a token can hold it: a literal, else its representation."""
    if value is ...:
        return None
    value = float(value) if isinstance(value, float) else value  # NumPy's are written in another way
    try:
        ast.literal_eval(repr(value))
    except (ValueError, SyntaxError):
        return repr(value)
    return value


def alternatives(written: Iterable[str]) -> str:
    """Return texts as alternatives: ``a, b or c``; nothing if there is none.

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
    """A word of an evaluation, such as truth or true cluster, for which a diff has one of its own."""

    name: str

    def __str__(self) -> str:
        return self.name


TRUTH, PREDICTION = Word("truth"), Word("prediction")
ESTIMATE = Either("fb.estimate", "fastbcubed estimate")
#: Advice where an item is in several clusters.
MAY_OVERLAP = f"if clusters may overlap, pass {arg('overlapping', True)}; else choose"
#: Advice where weights are zero.
OR_OUTER = f", or pass {arg('weighting', 'outer')}, which allows zeros"


def visible(text: str, kept: str = "") -> str:
    r"""Return a text with characters that cannot be seen, or that turn others around, as their escapes.

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

#: A token of a part.
_TOKEN = re.compile(r"\0(Argument|Either|Word)(\(.*?\))\0", re.DOTALL)


class Message(str):
    """A text in the words of Python that also has its parts, for other words.

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
        """Read a text with tokens, or another message."""
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
        """The text with tokens, to be a part of another message."""
        return "".join(map(format, self.parts))

    def render(self, word: Callable[[Any], str]) -> str:
        """Return the text with each part in other words."""
        return visible("".join(map(word, self.parts)), SPACES)

    def replaced(self, change: Callable[[Any], Any]) -> Message:
        """Return the message with other parts."""
        return Message("".join(format(change(part)) for part in self.parts))


class FastBCubedError(ValueError):
    """Base of all errors below, which state the expectation, the value passed, its place, and the remedy."""

    def __init__(self, message: str = "") -> None:
        super().__init__(Message(message))

    @property
    def message(self) -> Message:
        """The message with its parts."""
        found: Message = self.args[0]
        return found

    #: Data of a reader of blocks for the same message over all blocks, where rows are null; see `sources.nulls`.
    nulls: Any = None


class OptionError(FastBCubedError):
    """An argument has a value outside its allowed values."""


class ColumnError(FastBCubedError):
    """A column is missing, ambiguous, or differs in length from the others."""


class IdTypeError(FastBCubedError):
    """Item ids or cluster labels have a type unsuitable for ids, or different types on the two sides."""


class NullError(FastBCubedError):
    """An item id or a cluster label is null."""


class WeightError(FastBCubedError):
    """A weight is missing, null, not finite, negative, or zero where it must be positive."""


class LinkError(FastBCubedError):
    """A link has a score that is not a number, or an unknown item."""


class DuplicateItemError(FastBCubedError):
    """A clustering repeats the same row, item and cluster."""


class OverlapError(FastBCubedError):
    """An item is in several clusters of a clustering that should be a partition."""


class AlignmentError(FastBCubedError):
    """The two sides cannot be aligned: lengths, indexes or unmatched items."""


class EmptyInputError(FastBCubedError):
    """There is nothing to score: no rows, or no item common to both sides."""


class FileFormatError(FastBCubedError):
    """A file is absent, not of a known format, truncated or corrupt."""


class OutOfMemoryError(FastBCubedError, MemoryError):
    """A file cannot be read with the memory that the process may take."""


class DiskSpaceError(FastBCubedError):
    """There is too little free disk for the files that a call would write."""


class SpillError(FastBCubedError):
    """Data that does not fit in memory cannot be written to disk, or read back."""


class SparkJobError(FastBCubedError):
    """A Spark job failed, or a kernel failed on an executor."""


class MetricError(FastBCubedError):
    """A score is unknown, or not defined for this input."""


class PairingError(MetricError):
    """The search for the best one-to-one pairing of clusters takes too long."""


class SliceError(FastBCubedError):
    """A requested slice or item is not in the evaluation."""


class TooMuchWorkError(FastBCubedError):
    """More pairs would have to be compared than the caller allows; the message names the argument."""


class JudgementError(FastBCubedError):
    """Judged pairs differ from the drawn ones, or have an invalid verdict."""


class NotKeptError(FastBCubedError):
    """The evaluation did not keep the requested data; the message names the argument that keeps it."""


#: The advice of errors for lack of memory.
ALLOW_MORE = "Free some, or allow the process more: see ulimit -v, and the limit of its container"
MORE_MEMORY = f"{ALLOW_MORE}. Evaluations of large files take less with {arg('engine', 'disk')}"
#: What is said, by the system's loader, Python and Arrow, where there is no memory for a library or a thread.
_NO_ROOM = (
    "failed to map segment", "cannot allocate memory", "cannot map zero-fill pages", "can't start new thread",
    "failed to launch worker thread",
)  # fmt: skip


def lacks_memory(error: BaseException | None) -> bool:
    """Return whether this is an error for lack of memory, or was raised while one was handled, whoever raises it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        if isinstance(error, FastBCubedError):  # which names what it found
            return False
        if any(each in str(error).lower() for each in _NO_ROOM):
            return True
        error = error.__cause__ or error.__context__
    return False


def first_few(values: Iterable[object], limit: int = 3) -> str:
    """Return the first few of `values` for an error message, such as ``'a', 'b', 'c', …``.

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
    """Return one value as an error message quotes it: as it is written in Python, cut if it is long.

    Examples
    --------
    >>> quoted("nope"), quoted({"truth": 1}), len(quoted("x" * 10_000)), quoted(10**5000)
    ("'nope'", "{'truth': 1}", 200, 'an integer of about 5,000 digits')
    """
    return _ONE.repr(value)


class _Repr(reprlib.Repr):
    """Representations of values that are cut, and never fail: Python refuses to write integers of 5,000 digits."""

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
    """A score fails a gate of `Evaluation.check`; the message has a line for each failed gate."""


class MissingPackageError(FastBCubedError, ImportError):
    """A feature needs a package that is not installed; the message names it."""


class EvaluationWarning(UserWarning):
    """A warning for readers of the scores; also in `Evaluation.warnings`.

    The text ends with the code in brackets; `code` contains it, or None if there is none.
    """

    def __init__(self, message: str = "", code: str | None = None) -> None:
        super().__init__(Message(message) + ("" if code is None else f" [{code}]"))
        self.code = code


@contextmanager
def rewording(change: Callable[[Any], Any]) -> Iterator[None]:
    """Change the parts of the messages of errors."""
    try:
        yield
    except FastBCubedError as error:
        error.args = (error.message.replaced(change),)
        raise


@contextmanager
def calling(function: str) -> Iterator[None]:
    """Raise MetricError if a function that may be the user's own fails, by its name."""
    try:
        yield
    except (FastBCubedError, MemoryError):
        raise
    except Exception as error:
        raise MetricError(f"{function} failed: {type(error).__name__}: {error}") from error


#: Names, in messages, of inputs shared by all runs.
SHARED = (
    "the truth", "the weight table", "weight is", "weight has", "weight should", "the attributes", "attributes should",
    "memory_limit is", "cannot spill to",
)  # fmt: skip


@contextmanager
def naming(run: str | None, truth: str = "the truth", prediction: str = "the prediction") -> Iterator[None]:
    """Add the name of the run to an error, one of several; None if there is only one run.

    Errors about the truth, weights or attributes, which all runs share, are left unchanged. Sides have the given names.
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
    """Return whether a text contains one of these names as a whole word."""
    return any(re.search(rf"(?<![\w./-]){re.escape(name)}(?!\w)", text) for name in names)


@contextmanager
def without_advice(*, outer: bool = False) -> Iterator[None]:
    """Remove advice on `overlapping=True`, and unless `outer` on `weighting="outer"`, where no such argument is."""
    try:
        yield
    except (OverlapError, WeightError) as error:
        text = error.message.marked.replace(MAY_OVERLAP, "overlapping clusters are not served: choose")
        raise type(error)(text if outer else text.replace(OR_OUTER, "")) from None
