"""Every error that the library raises on purpose; all are `ValueError` as well."""

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
    """Base of all errors below: what was expected, what came, where, and what to do."""

    #: What a reader of blocks needs to tell the same of all of them, where rows are null; see `sources.nulls`.
    nulls: Any = None


class OptionError(FastBCubedError):
    """An argument has a value that is not among those it can have."""


class ColumnError(FastBCubedError):
    """A column is missing, ambiguous, or of another length than its neighbours."""


class IdTypeError(FastBCubedError):
    """Item ids or cluster labels are of a type that cannot name things, or differ between the sides."""


class NullError(FastBCubedError):
    """An item id or a cluster label is null."""


class WeightError(FastBCubedError):
    """A weight is missing, null, not finite, negative, or zero where it must be positive."""


class LinkError(FastBCubedError):
    """A link has a score that is no number, or an item that is not among those that there are."""


class DuplicateItemError(FastBCubedError):
    """A clustering has the same row, item and cluster, more than once."""


class OverlapError(FastBCubedError):
    """An item is in more than one cluster of a clustering that should be a partition."""


class AlignmentError(FastBCubedError):
    """The two sides cannot be put side by side: lengths, indexes or unmatched items."""


class EmptyInputError(FastBCubedError):
    """There is nothing to score: no rows, or no item that both sides have."""


class FileFormatError(FastBCubedError):
    """A file is absent, not of a known format, truncated or corrupt."""


class DiskSpaceError(FastBCubedError):
    """There is too little free disk for the files that a call would write."""


class SpillError(FastBCubedError):
    """What does not fit in memory cannot be written to the disk, or read back."""


class SparkJobError(FastBCubedError):
    """Spark could not do its part of the work, or a kernel failed on an executor."""


class MetricError(FastBCubedError):
    """A score is unknown, or not defined for this input."""


class PairingError(MetricError):
    """The search for the best one-to-one pairing of clusters takes too long."""


class SliceError(FastBCubedError):
    """A slice or an item that was asked for is not in the evaluation."""


class TooMuchWorkError(FastBCubedError):
    """More pairs would have to be compared than the caller allows; the message names the argument."""


class JudgementError(FastBCubedError):
    """Judged pairs are not those that were drawn, or have a verdict that is none."""


class NotKeptError(FastBCubedError):
    """The evaluation does not hold what was asked for; the message names the argument that keeps it."""


def first_few(values: Iterable[object], limit: int = 3) -> str:
    """Return the first few of `values` for an error message, such as ``'a', 'b', 'c', …``.

    Long ones are cut, and composite ids are shown as tuples.

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
    """A score does not reach what `Evaluation.check` was told; the message has a line for each gate that failed."""


class VerificationError(FastBCubedError):
    """A result is not what its rows give; the message says which items and scores differ."""


class MissingPackageError(FastBCubedError, ImportError):
    """A feature needs a package that is not installed; the message says which."""


class EvaluationWarning(UserWarning):
    """Something that a reader of the scores should know; also in `Evaluation.warnings`.

    Its text ends with its code in brackets, and `code` holds it, None where there is none.
    """

    def __init__(self, message: str = "", code: str | None = None) -> None:
        super().__init__(message if code is None else f"{message} [{code}]")
        self.code = code


#: What messages call what all runs have in common.
SHARED = (
    "the truth", "the weight table", "weight is", "weight has", "weight should", "the attributes", "attributes should",
    "memory_limit is", "cannot spill to",
)  # fmt: skip


@contextmanager
def naming(run: str | None, truth: str = "the truth", prediction: str = "the prediction") -> Iterator[None]:
    """Say of an error which of several runs it is of; None if there is one alone.

    Nothing is said where it is about the truth, weights or attributes, which all of them share. Sides go by these
    names.
    """
    try:
        yield
    except FastBCubedError as error:
        text = str(error)
        shared = _told(text, *SHARED, truth) and not _told(text, "the prediction", prediction)
        if run is not None and not shared:
            error.args = (f"run {run!r}: {error}", *error.args[1:])
        raise


def _told(text: str, *names: str) -> bool:
    """Tell whether a text has one of these names, and not as a part of another one."""
    return any(re.search(rf"(?<![\w./-]){re.escape(name)}(?!\w)", text) for name in names)


@contextmanager
def without_overlap() -> Iterator[None]:
    """Let errors of overlapping clusters not tell of an argument that is not there."""
    try:
        yield
    except OverlapError as error:
        asked = "if clusters may overlap, pass overlapping=True; else choose"
        raise OverlapError(str(error).replace(asked, "overlapping clusters are not served: choose")) from None
