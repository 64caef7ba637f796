"""Overlapping clusterings: two sides → memberships → aligned items → their cover."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.align import Alignment, align
from fastbcubed.alignment.policies import Coverage, Policies
from fastbcubed.alignment.row_values import take_or_null
from fastbcubed.cells.scored_rows import ScoredRows
from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.clusterings.stretches import Pair
from fastbcubed.overlap.covers import Cover, Grouped, group
from fastbcubed.overlap.gathering import Gathered, gather
from fastbcubed.runtime.pool import Pool, blocks


class Covered(NamedTuple):
    """Two overlapping clusterings as `build_cover` leaves them.

    `alignment` is that of items by their sets of clusters, `coverage` counts rows of memberships; `grouped` has the
    cell of each item, and `names` the labels of the clusters of each side.
    """

    alignment: Alignment
    coverage: Coverage
    cover: Cover
    grouped: Grouped
    names: dict[str, ClusterNames]


class ClusterNames:
    """The labels of the clusters of one side, as they came; null for clusters that a policy has made."""

    def __init__(self, gathered: Gathered, clusters: NDArray[np.int64], n_made: int) -> None:
        rows = np.concatenate([gathered.label_rows, np.full(n_made, -1)])
        self._rows, self._labels = rows[clusters], gathered.labels

    def __call__(self, codes: NDArray[np.int64]) -> pa.Array:
        """Return the labels of some clusters."""
        return take_or_null(self._labels, self._rows[codes])


def build_cover(
    pair: Pair, policies: Policies, pool: Pool, *, weighting: str, null_is_absent: bool, max_pairs: float
) -> Covered:
    """Gather, align and group the items of two overlapping clusterings, and score their cells.

    The pair has a row per membership; `null_is_absent` tells whether a null cluster says "not on that side".
    """
    true, pred = gather(pair.first, policies, pool, null_is_absent=null_is_absent)
    alignment = align(
        true.clustering,
        pred.clustering,
        replace(policies, noise=None, duplicates="raise"),
        pool,
        weight_table=pair.weight_table,
        outer=weighting == "outer",
        null_is_absent=True,
    )
    coverage = replace(
        alignment.coverage,
        n_null=true.n_null + pred.n_null,
        n_noise=true.n_noise + pred.n_noise,
        n_duplicates=true.n_duplicates + pred.n_duplicates,
    )
    codes = [
        _codes(side, rows, pool) for side, rows in ((true, alignment.true_rows), (pred, alignment.pred_rows))
    ]
    grouped, n_made = group_items((true.sets, pred.sets), (codes[0], codes[1]), policies, pool)
    names = {
        "true": ClusterNames(true, grouped.true_clusters, n_made[0]),
        "pred": ClusterNames(pred, grouped.pred_clusters, n_made[1]),
    }
    n, mass = grouped.counts(alignment.weight)
    scored = grouped.scored
    cover = Cover(
        grouped.truth,
        grouped.prediction,
        n,
        mass,
        n_scored=grouped.n_scored,
        rows=ScoredRows(lambda: scored, alignment.weight, scored.size),
        weighting=weighting,
        outside=policies.prediction == "outside",
        max_pairs=max_pairs,
        pool=pool,
        label=lambda side, codes: names[side](codes).to_pylist(),
    )
    if policies.prediction == "drop":
        cover.unlabelled_mates()  # while there are threads
    return Covered(alignment, coverage, cover, grouped, names)


def group_items(
    sets: tuple[Memberships, Memberships],
    codes: tuple[NDArray[np.int64], NDArray[np.int64]],
    policies: Policies,
    pool: Pool,
) -> tuple[Grouped, tuple[int, int]]:
    """Group aligned items by the sets of clusters that they are in; return how many clusters policies have made, too.

    `codes` has the set of each item, -1 where the side lacks it, and is written to. Clusters that were made are
    numbered after those of the sets, in the order of the items that are alone in them.
    """
    only_true, only_pred = (codes[1] < 0) & (codes[0] >= 0), (codes[0] < 0) & (codes[1] >= 0)
    true_sets, pred_sets = sets
    if policies.truth == "singleton":
        pred_sets = _made_alone(pred_sets, codes[1], only_true)
    if policies.prediction == "singleton":
        true_sets = _made_alone(true_sets, codes[0], only_pred)
    grouped = group(true_sets, pred_sets, codes[0], codes[1], pool)
    return grouped, (true_sets.n_clusters - sets[0].n_clusters, pred_sets.n_clusters - sets[1].n_clusters)


def _codes(side: Gathered, rows: NDArray[np.int64] | None, pool: Pool) -> NDArray[np.int64]:
    """Return the set of each aligned item, -1 where the side lacks it."""
    if rows is None:
        return side.set_codes
    codes = np.empty(rows.size, np.int64)

    def take(start: int, stop: int) -> None:
        some = rows[start:stop]
        codes[start:stop] = np.where(some < 0, -1, side.set_codes[some])

    pool.map(take, *zip(*blocks(rows.size), strict=True), stage="list clusters of items")
    return codes


def _made_alone(sets: Memberships, codes: NDArray[np.int64], which: NDArray[np.bool_]) -> Memberships:
    """Give each of some items a set and a cluster of its own; `codes` is written to."""
    items = np.flatnonzero(which)
    if not items.size:
        return sets
    codes[items] = len(sets) + np.arange(items.size)
    made = np.arange(sets.n_clusters, sets.n_clusters + items.size).astype(sets.codes.dtype)
    offsets = np.concatenate([sets.offsets, sets.codes.size + 1 + np.arange(items.size)])
    return Memberships(offsets, np.concatenate([sets.codes, made]), sets.n_clusters + items.size)
