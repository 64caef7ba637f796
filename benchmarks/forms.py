"""The work that benchmarks measure, and its forms: one way to write it with one library.

The work is weighted precision, recall, F1 and Jaccard index, each the weighted mean over all
items. With cells (true, pred) of weight w, true clusters of weight a, predicted clusters of
weight b and N = sum of w:

    precision = sum(w * w / b) / N        recall = sum(w * w / a) / N
    jaccard_index = sum(w * w / (a + b - w)) / N        f1 = 2 PR / (P + R)

The work on Parquet files is the same, with weights if the files have them.
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
    """The resources that a rival may use: threads, bytes of memory, and a directory for spilled data."""

    threads: int
    memory: int
    directory: str


class NotPossible(Exception):
    """The library cannot do this work."""


@dataclass(frozen=True)
class Form:
    """One way to write the work with one library.

    `prepare(rows, limits)` converts the rows to the library's own form, which is not timed; if the form
    `reads` files, it gets their directory instead of `Rows`. `score(prepared)` does the work.
    `check(prepared)`, not timed either, returns the scores of the same items without weights;
    `clear(prepared)` removes files that `score` wrote. The form is not tried with more than `max_items`.
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
    bounded: bool = True  # whether the library keeps to a memory limit
    clear: Callable[[Any], None] | None = None

    @property
    def key(self) -> str:
        """The name of rival and form, as on the command line."""
        return f"{self.rival}/{self.name}"

    @property
    def installed(self) -> bool:
        """Whether all packages that the form needs are installed."""
        tops = (package.partition(".")[0] for package in self.packages)
        return all(importlib.util.find_spec(top) is not None for top in tops)


def with_f1(precision: float, recall: float, jaccard_index: float | None = None) -> dict[str, float]:
    """Return the scores by name, with the F1 of mean precision and recall."""
    scores = {
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(2 * precision * recall / (precision + recall)),
    }
    if jaccard_index is not None:
        scores["jaccard_index"] = float(jaccard_index)
    return scores


def means(w: Any, a: Any, b: Any) -> dict[str, float]:
    """Return the scores from arrays of the weights of cells and of their true and predicted clusters."""
    square = w * w
    total = w.sum()
    return with_f1(
        (square / b).sum() / total, (square / a).sum() / total, (square / (a + b - w)).sum() / total
    )
