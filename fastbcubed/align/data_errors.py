"""Faults in rows: their kind, number and first few cases, summed over blocks and raised as errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

from fastbcubed import kernels
from fastbcubed.errors import (
    MAY_OVERLAP,
    OR_OUTER,
    AlignmentError,
    DuplicateItemError,
    FastBCubedError,
    NullError,
    OverlapError,
    WeightError,
    arg,
    first_few,
)


@dataclass(frozen=True)
class Fault:
    """A kind of fault: the number of faulty rows or items, and of all rows or items of a side or table."""

    #: Faults are raised in order of step of the alignment, then side, then severity.
    step: ClassVar[int]
    rank: ClassVar[int] = 0

    name: str
    count: int
    total: int
    #: the first few rows or items, one more than a message shows
    first: list[Any]

    @classmethod
    def sum(cls, parts: Sequence[Self]) -> Self:
        """Sum a fault over blocks, in the order of the blocks."""
        first = [each for part in parts for each in part.first]
        count, total = sum(part.count for part in parts), sum(part.total for part in parts)
        return replace(parts[0], count=count, total=total, first=first)

    def error(self) -> FastBCubedError:
        """Return the error that reports the fault."""
        raise NotImplementedError


Report = Callable[[Fault], None]


def enforce(fault: Fault) -> None:
    """Raise the error of a fault; the callback used when all rows are in memory."""
    raise fault.error()


class Faults:
    """Collects the faults of blocks, from any thread, so that messages describe the whole input."""

    def __init__(self) -> None:
        self._found: list[tuple[int, Any, Fault]] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def report(self, side: int, index: Any) -> Report:
        """Return a callback for the faults of one block of a side; blocks are summed in the order of their indexes."""
        return lambda fault: self._found.append((side, index, fault))

    def enforce(self, whole: Callable[[int, Fault], Fault], last_step: int) -> None:
        """Raise the first fault up to a step of the alignment; `whole` adds the total and the first few cases."""
        parts: dict[tuple[int, int, int], list[Fault]] = {}
        for side, _, fault in sorted(self._found, key=lambda each: each[1]):
            if fault.step <= last_step:
                parts.setdefault((fault.step, side, fault.rank), []).append(fault)
        if parts:
            first = min(parts)
            enforce(whole(first[1], type(parts[first][0]).sum(parts[first])))


@dataclass(frozen=True)
class NullLabels(Fault):
    """Rows with a null label; `column` names the label column, and `what` says whether `first` has rows or items."""

    step = 0
    column: str
    what: str

    def error(self) -> FastBCubedError:
        """Return the error that reports the fault."""
        return NullError(
            f"{self.count} of {self.total} rows of {self.name} have a null in {self.column!r} ({self.what} "
            f"{first_few(self.first)}). Pass {arg('nulls', 'singleton')} to treat each as a singleton, or "
            f"{arg('nulls', 'drop')} if a null means that the item is missing from this side."
        )


@dataclass(frozen=True)
class Repeated(Fault):
    """Items or rows that repeat others in an invalid way; each subclass states what is wrong and what to do."""

    step = 1
    raised: ClassVar[type[FastBCubedError]] = DuplicateItemError
    counted: ClassVar[str] = "rows"
    shown: ClassVar[str] = ""  #: the kind of the first few cases, if it differs from the kind counted
    wrong: ClassVar[str]
    advice: ClassVar[str]
    hint: str = ""  #: further advice, such as naming a second item column

    def error(self) -> FastBCubedError:
        """Return the error that reports the fault."""
        return self.raised(
            f"{self.count} of {self.total} {self.counted} of {self.name} {self.wrong} "
            f"({self.shown}{first_few(self.first)}). {self.hint}{self.advice}"
        )


class Overlap(Repeated):
    """Items in more than one cluster."""

    raised, counted = OverlapError, "items"
    wrong = "are in more than one cluster"
    advice = (
        f"In a partition every item is in exactly one cluster: {MAY_OVERLAP} one for each, or check that "
        "the item column is the right one."
    )


class Reweighted(Repeated):
    """Rows that repeat an earlier row with a different weight."""

    rank = 1
    wrong = "repeat an earlier row with a different weight"
    advice = "Give each item one weight."


class RepeatedRows(Repeated):
    """Rows that repeat an earlier row."""

    rank = 2
    wrong = "repeat an earlier row"
    advice = f"Pass {arg('duplicates', 'drop')} to count each item once."


class RepeatedMemberships(Repeated):
    """Rows that repeat both item and cluster of an earlier row, with overlapping clusters."""

    shown = "items "
    wrong = "repeat the item and cluster of an earlier row"
    advice = f"Pass {arg('duplicates', 'drop')} to count each membership once."


class UnevenWeights(Repeated):
    """Rows whose weight differs from that of their item in an earlier row, with overlapping clusters."""

    rank = 1
    wrong = "have a different weight from an earlier row for the same item"
    advice = "Give each item one weight."


@dataclass(frozen=True)
class WeightsOutOfRange(Fault):
    """Invalid weights; `first` are pairs of weight and row.

    `finite` states that all of them are positive and finite, `zero` that all are zero.
    """

    step = 2
    finite: bool
    zero: bool

    @classmethod
    def sum(cls, parts: Sequence[Self]) -> Self:
        """Sum the fault over blocks, in the order of the blocks."""
        finite, zero = all(part.finite for part in parts), all(part.zero for part in parts)
        return replace(super().sum(parts), finite=finite, zero=zero)

    def error(self) -> FastBCubedError:
        """Return the error that reports the fault."""
        least, most = kernels.sums.LEAST, kernels.sums.MOST
        if self.finite:
            hint = (
                f"Weights must lie between {least} and {most}: multiply all of them by one number, which "
                "changes no score."
            )
        elif self.zero:
            hint = f"Leave these items out{OR_OUTER}."
        else:
            hint = "Weights must be positive and finite: give these items other weights, or leave them out."
        weights, rows = zip(*self.first[:4], strict=True)
        return WeightError(
            f"{self.count} of {self.total} weights of {self.name} are out of range ({first_few(weights)} in "
            f"row{'' if self.count == 1 else 's'} {first_few(rows)}). {hint}"
        )


@dataclass(frozen=True)
class RepeatedTableRows(Fault):
    """Rows of a table of weights or attributes that repeat an item.

    The message asks to give each item `one`, for example "one weight".
    """

    step = 3
    one: str

    def error(self) -> FastBCubedError:
        """Return the error that reports the fault."""
        return DuplicateItemError(
            f"{self.count} of {self.total} rows of {self.name} repeat an item of an earlier row "
            f"({first_few(self.first)}); give each item {self.one}"
        )


@dataclass(frozen=True)
class Unmatched(Fault):
    """Items missing from the other side, which the policy forbids; `options` are the other policies."""

    step = 4
    other: str
    options: tuple[str, ...]

    def error(self) -> FastBCubedError:
        """Return the error that reports the fault."""
        return AlignmentError(
            f"{self.count} of {self.total} items of {self.name} are missing from {self.other} (first: "
            f"{first_few(self.first)}). Pass {arg('unmatched', *self.options)} to continue."
        )


@dataclass(frozen=True)
class Unweighted(Fault):
    """Items that are scored or counted but have no weight; `unmatched` says that some are missing from one side."""

    step = 5
    unmatched: bool

    @classmethod
    def sum(cls, parts: Sequence[Self]) -> Self:
        """Sum the fault over blocks, in the order of the blocks."""
        return replace(super().sum(parts), unmatched=any(part.unmatched for part in parts))

    def error(self) -> FastBCubedError:
        """Return the error that reports the fault."""
        left_out = f", or leave unmatched items out with {arg('unmatched', 'drop')}" if self.unmatched else ""
        return WeightError(
            f"{self.count} of {self.total} scored or counted items have no weight (first: "
            f"{first_few(self.first)}). Give every item a weight{left_out}."
        )
