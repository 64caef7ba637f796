"""What a benchmark runs: one way to write the work with one library.

The work is weighted precision, recall, F1 and Jaccard index, each the weighted mean over all
items. With cells (true, pred) of weight w, true clusters of weight a, predicted clusters of
weight b and N = sum of w:

    precision = sum(w * w / b) / N        recall = sum(w * w / a) / N
    jaccard_index = sum(w * w / (a + b - w)) / N        f1 = 2 PR / (P + R)

From Parquet files it is the same, with weights where the files have them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks.datasets import Layout

__all__ = ["SCORES", "Form", "Limits", "NotPossible", "means", "with_f1"]

SCORES = ("precision", "recall", "f1", "jaccard_index")


class Limits(NamedTuple):
    """What a rival may use: threads, bytes of memory, and a directory for what it spills."""

    threads: int
    memory: int
    directory: str


class NotPossible(Exception):
    """The library says that it does not do this work."""


@dataclass(frozen=True)
class Form:
    """One way to write the work with one library.

    `prepare(rows, limits)` brings the rows into the library's own form, which is not timed; where the
    layout that the form `reads` is one of files, it gets the directory that holds them instead of `Rows`.
    `score(prepared)` does the work. `check(prepared)`, not timed either, gives the scores of the
    same items without weights; `clear(prepared)` removes what `score` wrote. Above `max_items` the form is
    not tried.
    """

    rival: str
    name: str
    packages: tuple[str, ...]
    prepare: Callable[[Any, Limits], Any]
    score: Callable[[Any], dict[str, float]]
    check: Callable[[Any], dict[str, float]] | None = None
    weighted: bool = True
    max_items: int = 10**9
    note: str = ""
    reads: Layout = "arrays"
    bounded: bool = True  # whether the library keeps a limit of memory that it is told
    clear: Callable[[Any], None] | None = None

    @property
    def key(self) -> str:
        """Name of rival and form, as on the command line."""
        return f"{self.rival}/{self.name}"

    @property
    def installed(self) -> bool:
        """Whether all packages that the form needs can be found."""
        tops = (package.partition(".")[0] for package in self.packages)
        return all(importlib.util.find_spec(top) is not None for top in tops)


def with_f1(precision: float, recall: float, jaccard_index: float | None = None) -> dict[str, float]:
    """Name the scores and add the F1 of the two means."""
    scores = {
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(2 * precision * recall / (precision + recall)),
    }
    if jaccard_index is not None:
        scores["jaccard_index"] = float(jaccard_index)
    return scores


def means(w: Any, a: Any, b: Any) -> dict[str, float]:
    """Reduce cells given as arrays to the means."""
    square = w * w
    total = w.sum()
    return with_f1(
        (square / b).sum() / total, (square / a).sum() / total, (square / (a + b - w)).sum() / total
    )
