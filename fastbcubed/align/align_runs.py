"""Alignment of several predictions with one truth, on the items that all of them score."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.apply_policies import Combination, starts_of_runs
from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.align.rows import Alignment, is_used, matched
from fastbcubed.align.sides import CheckedWeights, Rows, WeightTable
from fastbcubed.errors import EmptyInputError, WeightError, arg, naming
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import as_column, key_pair
from fastbcubed.runtime.key_partitions import OneToMany, match
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Mask

Pair = tuple[Clustering, Clustering]


@dataclass(frozen=True)
class Together:
    """Several runs, restricted to the items that all of them score.

    The rows of these items come first, in the same order and with the same true-cluster keys in all runs, followed by
    the other rows of the prediction.
    """

    runs: list[Alignment]
    n_common: int  #: number of items that all runs score
    n_scored: list[int]  #: number of items that each run scores when evaluated alone
    coverage: list[Coverage]  #: coverage of each run when evaluated alone
    complete: list[bool]  #: whether a run keeps all rows that it has when evaluated alone


def align_together(
    pairs: Sequence[Pair],
    names: Sequence[str],
    policies: Policies,
    pool: Pool,
    *,
    weight_table: WeightTable | None = None,
    outer: bool = False,
) -> Together:
    """Align runs with a common truth, apply the policies, and keep the items that all runs score."""
    how: dict[str, Any] = {"weight_table": weight_table, "outer": outer}
    join, checked = OneToMany().match, CheckedWeights()
    combined = []
    for pair, name in zip(pairs, names, strict=True):
        with naming(name, *(side.name for side in pair)):
            combined.append(matched(*pair, policies, pool, **how, join=join, checked=checked))
    truth = _scored_by_all(combined, len(pairs[0][0]))
    further = _further_items(combined, pairs, pool)
    n_truth = len(pairs[0][0]) if truth is None else int(np.count_nonzero(truth))
    n_common = n_truth + further[0].size
    n_scored = [both.true_keys.size if (own := both.scored) is None else int(own.sum()) for both in combined]
    require_some(n_truth, names, n_scored)
    start = _unused_by_all(combined)
    runs = [
        _restricted(pair, both, truth, own, start)
        for pair, both, own in zip(pairs, combined, further, strict=True)
    ]
    _require_same_weights(runs, names, n_common)
    complete = [len(run) == both.true_keys.size for run, both in zip(runs, combined, strict=True)]
    return Together(runs, n_common, n_scored, [both.coverage for both in combined], complete)


def require_some(n_truth: int, names: Sequence[str], n_scored: Sequence[int]) -> None:
    """Raise EmptyInputError if no item of the truth is scored by all runs; the message states how many each scores."""
    if not n_truth:
        counts = ", ".join(f"{name} {count:,}" for name, count in zip(names, n_scored, strict=True))
        raise EmptyInputError(
            f"no item of the truth is scored in every run (items scored: {counts}); check that the runs cluster the "
            f"same items, or pass {arg('align', 'each')}"
        )


def _scored_by_all(combined: Sequence[Combination], n_rows: int) -> Mask | None:
    """Return the mask of truth rows that all runs score; None if all runs trivially score all rows."""
    if all(both.scored is None and both.rows[0] is None for both in combined):
        return None
    every = np.ones(n_rows, np.bool_)
    for both in combined:
        scored, rows = both.scored, both.rows[0]
        if rows is None:
            every &= True if scored is None else scored
            continue
        mine = np.zeros(n_rows, np.bool_)
        mine[rows[(rows >= 0) if scored is None else (rows >= 0) & scored]] = True
        every &= mine
    return every


def _further_items(combined: Sequence[Combination], pairs: Sequence[Pair], pool: Pool) -> list[Rows]:
    """Return, for each run, the rows of items that all runs score and the truth lacks, in the first run's order.

    Such items exist if the policy for prediction-only items is "singleton".
    """
    found = [_scored_without_truth(both) for both in combined]
    if not all(rows.size for rows in found):
        return [rows[:0] for rows in found]
    ids = []
    for both, pair, rows in zip(combined, pairs, found, strict=True):
        items, of_pred = pair[1].items, both.rows[1]
        assert items is not None and of_pred is not None
        ids.append(as_column(items.take(of_pred[rows]), "item"))
    places = [np.arange(found[0].size)]
    places += [match(*key_pair(ids[0], own, pool), pool).pred_of_true for own in ids[1:]]
    in_all = np.all([own >= 0 for own in places], axis=0)
    return [rows[own[in_all]] for rows, own in zip(found, places, strict=True)]


def _scored_without_truth(both: Combination) -> Rows:
    rows, scored = both.rows[0], both.scored
    if rows is None or both.policies.prediction != "singleton":
        return np.empty(0, np.int64)
    return np.flatnonzero((rows < 0) if scored is None else (rows < 0) & scored)


def _unused_by_all(combined: Sequence[Combination]) -> int:
    """Return the start of a range of keys unused in all runs, for singletons and rows that a side lacks."""
    if not any(both.needs_special_keys for both in combined):
        return 0
    keys = [each for both in combined for each in (both.true_keys, both.pred_keys)]
    most = 2 * max(each.size for each in keys)
    return next(start for start in starts_of_runs() if not any(is_used(start, each, most) for each in keys))


def _restricted(pair: Pair, both: Combination, truth: Mask | None, further: Rows, start: int) -> Alignment:
    """Return a run with the rows of common items, followed by its unscored prediction-only rows.

    An item has the same number in all runs: its row in the truth or, if the truth lacks it, a later number.
    """
    true_rows = both.rows[0]
    if truth is None:
        return _alignment(pair, both, start, None)
    n_rows, n_truth = both.true_keys.size, truth.size
    rest = both.unscored_prediction
    if n_rows == n_truth and true_rows is None and rest is None and truth.all():
        return _alignment(pair, both, start, None)
    if true_rows is None:
        common, of_common = np.flatnonzero(truth), None
    else:
        common = np.flatnonzero((true_rows >= 0) & truth[np.maximum(true_rows, 0)])
        of_common = true_rows[common]
    kept = np.concatenate([common, further, np.flatnonzero(rest) if rest is not None else further[:0]])
    both = both.take(kept)
    numbers = np.arange(n_truth - common.size, n_truth - common.size + kept.size)
    numbers[: common.size] = common if of_common is None else of_common
    return _alignment(pair, both, start, numbers)


def _alignment(pair: Pair, both: Combination, start: int, numbers: Rows | None) -> Alignment:
    true_keys, pred_keys, no_true, no_pred = both.finished(start, numbers)
    return Alignment(*pair, true_keys, pred_keys, no_true, no_pred, *both.rows, both.weight, both.coverage)


def _require_same_weights(runs: Sequence[Alignment], names: Sequence[str], n_common: int) -> None:
    """Raise WeightError if an item's weight differs between runs, e.g. because only the predictions have weights."""
    first = runs[0].weight
    for run, name in zip(runs[1:], names[1:], strict=True):
        if first is run.weight:
            continue
        if first is None or run.weight is None:
            differ = n_common
        else:
            differ = int(np.count_nonzero(first[:n_common] != run.weight[:n_common]))
        if differ:
            raise WeightError(
                f"{differ:,} of {n_common:,} items have different weights in the runs {names[0]!r} and "
                f"{name!r}. An item must have the same weight in all runs: put weights into the truth, or "
                f"pass {arg('weight', ...)} a table with the columns item and weight"
            )


class CommonRows:
    """The rows of the truth that all runs so far score, as one bit each."""

    def __init__(self, n_rows: int) -> None:
        self._bits = np.full(-(-n_rows // 8), 255, np.uint8)
        self.n_kept = n_rows

    def next_run(self) -> RowsOfRun:
        """Return the restriction to these rows for the next run."""
        return RowsOfRun(self._bits)

    def narrow(self, run: RowsOfRun) -> None:
        """Drop the rows that an aligned run does not score."""
        self._bits, self.n_kept = run.scored, run.n_kept


class RowsOfRun:
    """Restricts a run to given rows of the truth during alignment, and records which of them it scores; thread-safe."""

    def __init__(self, among: NDArray[np.uint8]) -> None:
        self._among = among
        self._lock = threading.Lock()  # guards what follows, since two blocks may share a byte of `scored`
        self.scored = np.zeros_like(among)  #: one bit per row of the truth: whether it is kept and scored
        self.n_kept = 0  #: number of rows that are kept and scored
        self.n_scored = 0  #: number of items that the run scores when evaluated alone
        self.n_further = 0  #: number of those items that the truth lacks
        self.n_left_out = 0  #: number of rows dropped by the restriction
        #: a hash of the weights of the kept rows; None if there are no weights
        self.weights: int | None = None
        self.coverage: Coverage | None = None  #: coverage of the run alone, after its alignment

    def keep(self, both: Combination, numbers: Rows) -> Rows | None:
        """Return the rows of a block to keep: those still common to all runs, and prediction-only rows; None for all.

        `numbers` are the row numbers of the truth.
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
            kept, mixed = kernels.cells.keep_rows(numbers, there, weight, self._among, self.scored, stay)
            self.n_kept += kept
            self.n_scored += n_scored
            self.n_further += n_scored - n_known
            self.n_left_out += int(np.count_nonzero(~stay))
            if weight is not None:
                self.weights = ((self.weights or 0) + int(mixed)) % 2**64
        return None if stay.all() else np.flatnonzero(stay)
