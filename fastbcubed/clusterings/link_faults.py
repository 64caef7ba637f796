"""What is wrong with links: null ids, scores that are no numbers or no probabilities, items that there are not."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.clusterings.link_blocks import Block
from fastbcubed.errors import EvaluationWarning, LinkError, first_few
from fastbcubed.sources.columns import Column
from fastbcubed.sources.nulls import Nulls

#: What is in names of columns of distances.
DISTANCE = re.compile(r"distance|(^|_)dist($|_)", re.IGNORECASE)


class Faults:
    """What is wrong with links, block by block: null ids, and scores that are no numbers."""

    def __init__(self, name: str) -> None:
        self._name, self._n_rows, self._n_scores = name, 0, 0
        self._nulls: list[Nulls] = []
        self._rows: list[int] = []

    def are_in(self, block: Block) -> bool:
        """Note what is wrong with a block, and tell whether anything is, here or before."""
        n = len(block.left)
        for column in (block.left, block.right):
            if (mask := column.null_rows) is not None:
                rows = np.flatnonzero(mask)
                found = Nulls(True, column.where, rows.size, n, rows[:4].tolist())
                self._nulls.append(found.moved(block.first_row))
        if block.scores is not None and (rows := np.flatnonzero(np.isnan(block.scores))).size:
            self._n_scores += rows.size
            self._rows += (rows[: 4 - len(self._rows)] + block.first_row).tolist()
        self._n_rows += n
        return bool(self._nulls or self._n_scores)

    def refuse(self) -> None:
        """Raise if anything is wrong."""
        if self._nulls:
            raise Nulls.sum(self._nulls, self._n_rows).error()
        if self._n_scores:
            raise LinkError(
                f"{self._n_scores} of {self._n_rows} scores of {self._name} {_are(self._n_scores)} null or NaN (first "
                f"rows: {first_few(self._rows)}). Give each link a score, or drop these rows."
            )


def warn_if_distances(column: str | None, name: str, *, ascending: bool, stacklevel: int) -> None:
    """Warn if scores are called distances and are taken as if the large ones were strong."""
    if not ascending and column is not None and DISTANCE.search(column):
        warnings.warn(
            f"Scores in column {column!r} of {name} are called distances, and large ones are taken for strong. Pass "
            "ascending=True if small distances are.",
            EvaluationWarning,
            stacklevel=stacklevel,
        )


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def refuse_unknown(items: Column, n_known: int, left: NDArray[Any], right: NDArray[Any], name: str) -> None:
    """Raise if links, by the codes of their items, have items besides the first ones, which are all that there are."""
    n = len(items) - n_known
    if n:
        touching = int(np.count_nonzero((left >= n_known) | (right >= n_known)))
        first = items.first_of(np.arange(n_known, n_known + min(n, 4)))
        raise LinkError(
            f"{n} item{' of' if n == 1 else 's of'} {name} {_are(n)} not among the {n_known} that "
            f"were given with items= (first: {first_few(first)}). Links that have one: {touching} of {left.size}. Add "
            "such items, or drop these links."
        )


def warn_if_no_probabilities(scores: NDArray[np.float64], column: str, name: str, *, stacklevel: int) -> None:
    """Warn if scores in a column of probabilities are none."""
    if "probability" not in column.lower():
        return
    strange = scores[(scores < 0) | (scores > 1)]
    if strange.size:
        warnings.warn(
            f"{strange.size} of {scores.size} scores in column {column!r} of {name} {_are(strange.size)} not between 0 "
            f"and 1, as probabilities are (first: {first_few(strange[:4].tolist())}). If the column has weights, "
            "thresholds are weights, too.",
            EvaluationWarning,
            stacklevel=stacklevel,
        )
