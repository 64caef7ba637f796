"""Rows of the truth that several runs score, where these are aligned one after the other, block by block.

Each run is kept to the rows that all runs before it score. A run that came before one that scores fewer is aligned
again.
"""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.alignment.combination import Combination
from fastbcubed.alignment.policies import Coverage
from fastbcubed.alignment.side import Rows


class CommonRows:
    """The rows of the truth that all runs so far score, a bit each."""

    def __init__(self, n_rows: int) -> None:
        self._bits = np.full(-(-n_rows // 8), 255, np.uint8)
        self.n_kept = n_rows

    def next_run(self) -> RowsOfRun:
        """Return what keeps the next run to these rows."""
        return RowsOfRun(self._bits)

    def narrow(self, run: RowsOfRun) -> None:
        """Leave out the rows that a run, which is aligned by now, does not score."""
        self._bits, self.n_kept = run.scored, run.n_kept


class RowsOfRun:
    """Keeps a run to rows of the truth while it is aligned, and notes which of them it scores; for any thread."""

    def __init__(self, among: NDArray[np.uint8]) -> None:
        self._among = among
        self._lock = threading.Lock()
        self.scored = np.zeros_like(among)  #: a bit for each row of the truth that is kept and scored
        self.n_kept = 0  #: how many these are
        self.n_scored = 0  #: items that the run scores by itself
        self.n_further = 0  #: those of them that the truth lacks
        #: a hash of the weights of the rows that are kept; None without weights
        self.weights: int | None = None
        self.coverage: Coverage | None = None  #: of the run by itself, once it is aligned

    def keep(self, both: Combination, numbers: Rows) -> Rows | None:
        """Return which rows stay of a block: those that are kept, and those of the prediction alone; None for all.

        `numbers` are those of their rows of the truth.
        """
        scored, rest, true_rows = both.scored, both.unscored_prediction, both.rows[0]
        stay = np.zeros(both.true_keys.size, np.bool_) if rest is None else rest.copy()
        there = None if true_rows is None else true_rows >= 0
        if scored is not None:
            there = scored if there is None else there & scored
        n_scored = stay.size if scored is None else int(np.count_nonzero(scored))
        n_known = stay.size if there is None else int(np.count_nonzero(there))
        weight = None if both.weight is None else both.weight.view(np.int64)
        with self._lock:
            kept, mixed = kernels.rows.keep_rows(numbers, there, weight, self._among, self.scored, stay)
            self.n_kept += kept
            self.n_scored += n_scored
            self.n_further += n_scored - n_known
            if weight is not None:
                self.weights = ((self.weights or 0) + int(mixed)) % 2**64
        return None if stay.all() else np.flatnonzero(stay)
