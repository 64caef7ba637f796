"""Rows in the order of the merge tree → what they come to at every level: the sums behind all scores.

What changes only where clusters meet is added up once, by level: for a pair of rows of one true cluster, at the lowest
merge that joins them; for clusters, at each merge of two. Each family of sums is one task of a pool.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.linkage.tree_rows import (
    DOMINANT,
    Floats,
    Meetings,
    TreeRows,
    find_meetings,
    merges_of,
    total_of,
)
from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import Pool

#: What can be kept up: families of scores, and the sums that each is made of.
SUMS = {
    "clusters": ("clusters", "singletons", "largest"),
    "bcubed": ("over", "under"),
    "elm": ("elm_over", "elm_under"),
    "pairs": ("tp", "fp", "fn", "tn", "all_right", "all_wrong"),
    "entropy": ("true", "pred", "pred_given_true", "true_given_pred"),
}

Sums = dict[str, NDArray[Any]]


def level_sums(rows: TreeRows, families: Collection[str], pool: Pool) -> Sums:
    """Return what families of scores are made of: an entry for no link, and one for each level that is used, too.

    Counts are int64. Sums over items are not divided by the weight of all:

    - clusters: how many, singletons and the largest, of scored items
    - bcubed and elm: the losses of precision (over) and recall (under)
    - pairs: weights of pairs together or apart on either side; of numbers tp and fp, and what all levels come to
    - entropy, in nats: of the true clusters, of the clusters, and of either given the other
    """
    meetings = find_meetings(rows, pool)
    chosen = [add_up for name, add_up in ADD_UP.items() if name in families]
    found = pool.map(lambda add_up: add_up(rows, meetings), chosen, stage="add up by level")
    return {name: values for each in found for name, values in each.items()}


class SumsOnDemand(dict[str, NDArray[Any]]):
    """The same sums, each family of which is added up when one of them is asked for."""

    def __init__(self, rows: TreeRows, pool: Pool) -> None:
        self._rows, self._pool = rows, pool

    def __missing__(self, name: str) -> NDArray[Any]:
        family = next(family for family, names in SUMS.items() if name in names)
        self.update(level_sums(self._rows, [family], self._pool))
        return self[name]


def _clusters(rows: TreeRows, meetings: Meetings) -> Sums:
    """Count clusters and singletons, and the items of the largest."""
    counts = _zeros(rows, 3, rows.levels.dtype)
    for merges in merges_of(rows, meetings):
        kernels.threshold_sums.count_clusters(merges, rows.levels, counts)
    fewer, alone, largest = (np.concatenate([[0], column[:-1]]) for column in counts.T)
    return {
        "clusters": rows.n_scored - np.cumsum(fewer),
        "singletons": rows.n_scored - np.cumsum(alone),
        "largest": np.maximum(np.maximum.accumulate(largest), 1),
    }


def _losses(rows: TreeRows, meetings: Meetings) -> Sums:
    """Add up the losses of precision and recall."""
    return dict(zip(SUMS["bcubed"], _lost(rows, meetings, 0), strict=True))


def _losses_among_others(rows: TreeRows, meetings: Meetings) -> Sums:
    """Add up those of ELM, which are over all items of a cluster but one."""
    return dict(zip(SUMS["elm"], _lost(rows, meetings, 1), strict=True))


def _lost(rows: TreeRows, meetings: Meetings, less: int) -> tuple[Floats, Floats]:
    over, under = _zeros(rows), _zeros(rows)
    kernels.threshold_sums.add_recall(meetings.records, rows.levels, rows.true_masses, less, under)
    for merges in merges_of(rows, meetings):
        kernels.threshold_sums.add_precision_loss(merges, rows.levels, less, over)
    return _before(over), _from(under)


def _pairs(rows: TreeRows, meetings: Meetings) -> Sums:
    """Count or weigh the pairs of items that are together or apart."""
    module = kernels.threshold_sums
    if rows.weights is None:
        counts = _zeros(rows, 2, np.int64)
        for merges in merges_of(rows, meetings):
            module.count_pairs(merges, rows.levels, counts)
        right, wrong = counts[:, 0] - counts[:, 1], counts[:, 1]
        known = {"all_right": right.sum(), "all_wrong": wrong.sum()}
        return {"tp": np.cumsum(right) - right, "fp": np.cumsum(wrong) - wrong, **known}
    together, apart = _zeros(rows), _zeros(rows)
    module.add_weight_together(meetings.records, rows.levels, together)
    for merges in merges_of(rows, meetings):
        module.add_weight_apart(merges, rows.levels, apart)
    return {"tp": _before(together), "fp": _before(apart), "fn": _from(together), "tn": _from(apart)}


def _entropies(rows: TreeRows, meetings: Meetings) -> Sums:
    """Add up entropies in nats, times the weight of all items."""
    module, scored = kernels.threshold_sums, rows.scored is not None
    of_parts, of_merges, by_merge = _zeros(rows), _zeros(rows, 4), np.zeros((len(rows), 2))
    module.add_entropy_of_parts(meetings.records, rows.levels, rows.dominant, by_merge, of_parts)
    for merges in merges_of(rows, meetings):
        module.add_entropy(merges, rows.levels, scored, by_merge, of_merges)
    return {
        "true": np.array(_entropy(rows.true_masses)),
        "pred": _from(of_merges, 0),
        "pred_given_true": _from(of_parts),
        "true_given_pred": _before(of_merges, 2),
    }


#: What adds up each family; those that take long begin first.
ADD_UP: dict[str, Callable[[TreeRows, Meetings], Sums]] = {
    "entropy": _entropies, "bcubed": _losses, "elm": _losses_among_others, "pairs": _pairs, "clusters": _clusters,
}  # fmt: skip


def _zeros(rows: TreeRows, columns: int = 2, dtype: Any = np.float64) -> NDArray[Any]:
    """Return sums by level: usually one, with its error in the second column."""
    sums = buffers.empty((rows.n_levels + 1, columns), dtype)
    sums[:] = 0
    return sums


def _before(sums: Floats, column: int = 0) -> Floats:
    """Return the sum of the levels before each."""
    out = np.empty(len(sums))
    kernels.threshold_sums.sum_before(sums, column, out)
    return out


def _from(sums: Floats, column: int = 0) -> Floats:
    """Return the sum of each level and those after it."""
    out = np.empty(len(sums))
    kernels.threshold_sums.sum_from(sums, column, out)
    return out


def _entropy(masses: Floats) -> float:
    """Return the sum of a log(N / a) over clusters of weight a, N being that of all."""
    masses = masses[masses > 0]
    total = total_of(masses)
    logs = np.log(total / masses)
    for heavy in np.flatnonzero(masses > DOMINANT * total):
        logs[heavy] = math.log1p(total_of(np.delete(masses, heavy)) / masses[heavy])
    return total_of(masses * logs)
