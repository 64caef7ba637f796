"""Errors that the library raises on purpose; all are `ValueError` as well."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
    "OverlapError",
    "PairingError",
    "SliceError",
    "SparkJobError",
    "SpillError",
    "TooMuchWorkError",
    "VerificationError",
    "WeightError",
    "first_few",
]


def __dir__() -> list[str]:
    return __all__


class FastBCubedError(ValueError):
    """Base of all errors below, which state the expectation, the value passed, its place, and the remedy."""

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


def first_few(values: Iterable[object], limit: int = 3) -> str:
    """Return the first few of `values` for an error message, such as ``'a', 'b', 'c', …``.

    Long values are cut, and composite ids are shown as tuples.

    Examples
    --------
    >>> first_few(["d17", "d52", "d90", "d91"])
    "'d17', 'd52', 'd90', …"
    >>> first_few([{"source": "a", "id": 1}])
    "('a', 1)"
    """
    listed = [tuple(v.values()) if isinstance(v, dict) else v for v in values]
    return ", ".join(map(_SHORT.repr, listed[:limit])) + (", …" if len(listed) > limit else "")


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


class GateError(FastBCubedError, AssertionError):
    """A score fails a gate of `Evaluation.check`; the message has a line for each failed gate."""


class VerificationError(FastBCubedError):
    """A result differs from a recomputation from its rows; the message names the items and scores."""


class MissingPackageError(FastBCubedError, ImportError):
    """A feature needs a package that is not installed; the message names it."""


class EvaluationWarning(UserWarning):
    """A warning for readers of the scores; also in `Evaluation.warnings`.

    The text ends with the code in brackets; `code` contains it, or None if there is none.
    """

    def __init__(self, message: str = "", code: str | None = None) -> None:
        super().__init__(message if code is None else f"{message} [{code}]")
        self.code = code


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
            error.args = (f"run {run!r}: {error}", *error.args[1:])
        raise


def _mentions(text: str, *names: str) -> bool:
    """Return whether a text contains one of these names as a whole word."""
    return any(re.search(rf"(?<![\w./-]){re.escape(name)}(?!\w)", text) for name in names)


@contextmanager
def without_overlap() -> Iterator[None]:
    """Remove advice to pass `overlapping=True` from errors where there is no such argument."""
    try:
        yield
    except OverlapError as error:
        asked = "if clusters may overlap, pass overlapping=True; else choose"
        raise OverlapError(str(error).replace(asked, "overlapping clusters are not served: choose")) from None
