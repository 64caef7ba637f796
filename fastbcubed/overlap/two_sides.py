"""Overlapping clusterings: two sides → memberships → aligned items → their cover."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.align.rows import Alignment, align, take_or_null
from fastbcubed.cells.contingency import ScoredRows
from fastbcubed.inputs.memberships import Memberships
from fastbcubed.inputs.pair import Pair
from fastbcubed.overlap.cover import Cover, Grouped, group
from fastbcubed.overlap.item_sets import Gathered, gather
from fastbcubed.runtime.codes import NO_ROWS, take
from fastbcubed.runtime.threads import Pool


class Covered(NamedTuple):
    """Two overlapping clusterings as returned by `build_cover`.

    `alignment` is that of items by their sets of clusters, `coverage` counts rows of memberships; `grouped` has the
    cell of each item, and `names` the labels of the clusters of each side.
    """

    alignment: Alignment
    coverage: Coverage
    cover: Cover
    grouped: Grouped
    names: dict[str, ClusterNames]


class ClusterNames:
    """The original labels of the clusters of one side; null for clusters made by a policy."""

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

    The pair has a row per membership; `null_is_absent` says whether a null cluster means "not on that side".
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
    codes = _codes((true, pred), alignment, pool)
    grouped, made = group_items((true.sets, pred.sets), codes, policies, pool)
    names = {
        "true": ClusterNames(true, grouped.true_clusters, made[0].size),
        "pred": ClusterNames(pred, grouped.pred_clusters, made[1].size),
    }
    del true, pred, codes  # their contents are grouped
    mass = grouped.mass(alignment.weight)
    scored = grouped.scored
    cover = Cover(
        grouped.truth,
        grouped.prediction,
        grouped.n,
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
) -> tuple[Grouped, tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Group aligned items by their sets of clusters; return the items that policies make singletons, by side.

    `codes` has the set of each item, -1 where the side lacks it, and is modified. New clusters are numbered after those
    of the sets, in the order of their single items.
    """
    only_true, only_pred = (
        np.flatnonzero((codes[1 - k] < 0) & (codes[k] >= 0)) if policy == "singleton" else NO_ROWS
        for k, policy in enumerate((policies.truth, policies.prediction))
    )
    true_sets, pred_sets = (
        _made_alone(sets[0], codes[0], only_pred),
        _made_alone(sets[1], codes[1], only_true),
    )
    grouped = group(true_sets, pred_sets, codes[0], codes[1], pool)
    return grouped, (only_pred, only_true)


def _codes(
    sides: tuple[Gathered, Gathered], alignment: Alignment, pool: Pool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the set of each aligned item on both sides, -1 where the side lacks it."""
    if alignment.coverage.n_common == len(alignment):
        return alignment.true_keys, alignment.pred_keys
    return (
        take(sides[0].set_codes, alignment.true_rows, pool),
        take(sides[1].set_codes, alignment.pred_rows, pool),
    )


def _made_alone(sets: Memberships, codes: NDArray[np.int64], items: NDArray[np.int64]) -> Memberships:
    """Give each of some items its own set and cluster, in place in `codes`."""
    if not items.size:
        return sets
    codes[items] = len(sets) + np.arange(items.size)
    made = np.arange(sets.n_clusters, sets.n_clusters + items.size).astype(sets.codes.dtype)
    offsets = np.concatenate([sets.offsets, sets.codes.size + 1 + np.arange(items.size)])
    return Memberships(offsets, np.concatenate([sets.codes, made]), sets.n_clusters + items.size)
