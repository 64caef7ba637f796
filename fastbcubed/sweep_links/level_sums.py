"""The sums behind all scores at every level of the merge tree, from rows in the order of the tree.

The sums change only where clusters merge, so each change is added once, at its level: for a pair of rows of one true
cluster, at the lowest merge that joins them; for clusters, at each merge of two. Merges are found in blocks, in the
order of levels, while the pool adds the previous block to each sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.threads import Pool, ahead
from fastbcubed.sweep_links.merge_tree import (
    DOMINANT,
    MERGES_AT_ONCE,
    Meetings,
    TreeRows,
    find_meetings,
    merges_of,
    total_of,
)
from fastbcubed.types import Floats

#: The sums of each family of scores that can be updated from threshold to threshold.
SUMS = {
    "clusters": ("clusters", "singletons", "largest"),
    "bcubed": ("over", "under"),
    "elm": ("elm_over", "elm_under"),
    "pairs": ("tp", "fp", "fn", "tn", "all_right", "all_wrong"),
    "entropy": ("true", "pred", "pred_given_true", "true_given_pred"),
}

Sums = dict[str, NDArray[Any]]


def level_sums(rows: TreeRows, families: Collection[str], pool: Pool, *, run: Run | None = None) -> Sums:
    """Return the sums of families of scores: a value without links, and one for each level.

    `run` turns the changes at each level into sums; by default, these are cumulative, and `BY_LEVEL` keeps the changes.
    Counts are int64. Sums over items are not divided by the total weight:

    - clusters: the number of clusters, the number of singletons, and the largest size, of scored items
    - bcubed and elm: the losses of precision (over) and of recall (under)
    - pairs: with weights, tp, fp, fn and tn; without, the numbers tp and fp, and their totals if all levels are used
    - entropy, in nats: of the true clusters, of the predicted clusters, and of each given the other
    """
    chosen = [family for name, family in FAMILIES.items() if name in families]
    of_meetings, made = _add_meetings(rows, chosen, pool)
    begun = [family.begin(rows, found) for family, found in zip(chosen, of_meetings, strict=True)]
    adders = [add for each in begun for add in each.adders]
    with pool.stage("add up merges", rows.merges.size, rows.merges.size) as step:
        for merges in ahead(made) if pool.threads > 1 and rows.merges.size > MERGES_AT_ONCE else made:
            pool.map(lambda add, merges=merges: add(merges), adders)
            step(merges.size)
    ended = pool.map(lambda each: each.end(run or UP_TO), begun, stage="add up levels")
    return {name: values for each in ended for name, values in each.items()}


def _add_meetings(
    rows: TreeRows, families: list[Family], pool: Pool
) -> tuple[list[Any], Iterator[np.ndarray]]:
    """Return the sums of each family over meetings, and an iterator of blocks of merges; the meetings are freed."""
    meetings = find_meetings(rows, pool)
    found = pool.map(lambda family: family.add_meetings(rows, meetings), families, stage="add up meetings")
    return found, merges_of(rows, meetings.crosses, meetings.masses)


class SumsOnDemand(dict[str, NDArray[Any]]):
    """The result of `level_sums` for all families, each of which is computed on first access to one of its sums."""

    def __init__(self, rows: TreeRows, pool: Pool, run: Run | None = None) -> None:
        self._rows, self._pool, self._run = rows, pool, run

    def __missing__(self, name: str) -> NDArray[Any]:
        family = next(family for family, names in SUMS.items() if name in names)
        self.update(level_sums(self._rows, [family], self._pool, run=self._run))
        return self[name]


class Run(NamedTuple):
    """Functions that turn the changes at each level into a rising sum, a falling sum, or a count."""

    rise: Callable[[Floats], Floats]
    fall: Callable[[Floats], Floats]
    tally: Callable[[NDArray[Any]], NDArray[Any]]


class Begun(NamedTuple):
    """Sums in progress: functions that each add a block of merges, and one that returns the sums."""

    adders: list[Callable[[np.ndarray], None]]
    end: Callable[[Run], Sums]


class _MergeSum:
    """A sum over merges, by level, to which a kernel adds one block of merges after another."""

    def __init__(self, rows: TreeRows, kernel: Callable[..., Any], *given: Any) -> None:
        self._kernel, self._given = kernel, given
        self._state = -1, 0.0, 0.0
        self.by_level = _zeros(rows.n_levels + 1)

    def add(self, merges: np.ndarray) -> None:
        self._state = self._kernel(merges, *self._given, self._state, self.by_level)


# Number of clusters, number of singletons, and largest size
def _clusters(rows: TreeRows, _: Any) -> Begun:
    counts = [_zeros(rows.n_levels + 2, rows.levels.dtype) for _ in range(3)]
    fewer, alone, largest = (each[1:] for each in counts)

    def end(_: Run) -> Sums:
        for each in counts[:2]:
            np.subtract(rows.n_scored, np.cumsum(each, out=each, dtype=each.dtype), out=each)
        counts[2][0] = 1
        np.maximum.accumulate(counts[2], out=counts[2])
        return {name: each[:-1] for name, each in zip(SUMS["clusters"], counts, strict=True)}

    return Begun([lambda merges: kernels.merge_tree.count_clusters(merges, fewer, alone, largest)], end)


# Losses of precision and recall; ELM leaves the item itself out of its clusters (`less` is 1)
def _recall_lost(rows: TreeRows, meetings: Meetings, less: int = 0) -> Floats:
    return _meeting_sum(rows, meetings, kernels.merge_tree.add_recall, rows.true_masses, less)


def _losses(rows: TreeRows, under: Floats, less: int = 0, names: tuple[str, ...] = SUMS["bcubed"]) -> Begun:
    over = _MergeSum(rows, kernels.merge_tree.add_precision_loss, less)
    return Begun(
        [over.add], lambda run: dict(zip(names, (run.rise(over.by_level), run.fall(under)), strict=True))
    )


# Pairs of items
def _weight_together(rows: TreeRows, meetings: Meetings) -> Floats | None:
    if rows.weights is None:
        return None
    return _meeting_sum(rows, meetings, kernels.merge_tree.add_weight_together)


def _pairs(rows: TreeRows, together: Floats | None) -> Begun:
    return _counted_pairs(rows) if together is None else _weighed_pairs(rows, together)


def _counted_pairs(rows: TreeRows) -> Begun:
    counts = [_zeros(rows.n_levels + 2, np.int64) for _ in range(2)]
    right, wrong = (each[1:] for each in counts)

    def end(run: Run) -> Sums:
        tp, fp = map(run.tally, counts)
        return {"tp": tp[:-1], "fp": fp[:-1], "all_right": tp[-1], "all_wrong": fp[-1]}

    return Begun([lambda merges: kernels.merge_tree.count_pairs(merges, right, wrong)], end)


def _weighed_pairs(rows: TreeRows, together: Floats) -> Begun:
    apart = _MergeSum(rows, kernels.merge_tree.add_weight_apart)

    def end(run: Run) -> Sums:
        later = {"fn": run.fall(together.copy()), "tn": run.fall(apart.by_level.copy())}
        return {"tp": run.rise(together), "fp": run.rise(apart.by_level), **later}

    return Begun([apart.add], end)


# Entropies in nats, times the total weight
def _entropy_of_parts(rows: TreeRows, meetings: Meetings) -> tuple[Floats, Floats]:
    """Return the changes of entropy terms when parts of true clusters meet: sums by level, and by merge."""
    by_merge = _zeros((len(rows), 2))
    kernel = kernels.merge_tree.add_entropy_of_parts
    return _meeting_sum(rows, meetings, kernel, rows.dominant, by_merge), by_merge


def _entropies(rows: TreeRows, of_parts: tuple[Floats, Floats]) -> Begun:
    module, (parts, by_merge) = kernels.merge_tree, of_parts
    clusters = _MergeSum(rows, module.add_entropy)
    untold = _MergeSum(rows, module.add_untold_entropy, rows.scored is not None, by_merge)

    def end(run: Run) -> Sums:
        return {
            "true": np.array(_entropy(rows.true_masses)),
            "pred": run.fall(clusters.by_level),
            "pred_given_true": run.fall(parts),
            "true_given_pred": run.rise(untold.by_level),
        }

    return Begun([untold.add, clusters.add], end)


class Family(NamedTuple):
    """How a family of sums is computed: first over the meetings, then over the merges."""

    add_meetings: Callable[[TreeRows, Meetings], Any]
    begin: Callable[[TreeRows, Any], Begun]


#: The families in the order of computation: the slowest first, to keep all threads busy.
FAMILIES: dict[str, Family] = {
    "entropy": Family(_entropy_of_parts, _entropies),
    "bcubed": Family(_recall_lost, _losses),
    "elm": Family(partial(_recall_lost, less=1), partial(_losses, less=1, names=SUMS["elm"])),
    "pairs": Family(_weight_together, _pairs),
    "clusters": Family(lambda rows, meetings: None, _clusters),
}


def _zeros(shape: int | tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    sums = buffers.empty(shape, dtype)
    sums[...] = 0
    return sums


def _meeting_sum(rows: TreeRows, meetings: Meetings, kernel: Callable[..., None], *given: Any) -> Floats:
    """Return the sum over meetings of the values that a kernel adds, by level."""
    sums = _zeros((rows.n_levels + 1, 2))
    kernel(meetings.records, rows.levels, *given, sums)
    found: Floats = buffers.empty(len(sums), np.float64)
    return np.add(sums[:, 0], sums[:, 1], out=found)


def _before(sums: Floats) -> Floats:
    """Replace the value of each level by the sum over all levels before it, in place."""
    kernels.merge_tree.sum_before(sums)
    return sums


def _from(sums: Floats) -> Floats:
    """Replace the value of each level by the sum over this and all later levels, in place."""
    kernels.merge_tree.sum_from(sums)
    return sums


def _added_up(counts: NDArray[Any]) -> NDArray[Any]:
    return np.cumsum(counts, out=counts)


def _without_last(sums: Floats) -> Floats:
    return sums[:-1]


def _without_first(counts: NDArray[Any]) -> NDArray[Any]:
    return counts[1:]


#: Cumulative sums at each level; and the changes at each level alone. Named functions, so that sweeps can be pickled.
UP_TO = Run(_before, _from, _added_up)
BY_LEVEL = Run(_without_last, _without_last, _without_first)


def _entropy(masses: Floats) -> float:
    """Return the sum of a log(N / a) over clusters of weight a, where N is their total weight."""
    masses = masses[masses > 0]
    total = total_of(masses)
    logs = np.log(total / masses)
    for heavy in np.flatnonzero(masses > DOMINANT * total):
        logs[heavy] = math.log1p(total_of(np.delete(masses, heavy)) / masses[heavy])
    return total_of(masses * logs)
