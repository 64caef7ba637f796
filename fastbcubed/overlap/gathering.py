"""Gathering: rows of memberships → one row per item, with the set of clusters that it is in.

What is left is a partition of the items by their set of clusters, which is aligned like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.faults import RepeatedMemberships, UnevenWeights
from fastbcubed.alignment.policies import Policies
from fastbcubed.alignment.side import Side, either, require_known_type
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.clusterings.memberships import Memberships
from fastbcubed.errors import FastBCubedError
from fastbcubed.overlap.item_sets import ItemSets, item_sets
from fastbcubed.runtime.grouping import number
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources.arrays import from_numpy
from fastbcubed.sources.attributes import attributes
from fastbcubed.sources.columns import Column
from fastbcubed.sources.selection import take_rows
from fastbcubed.sources.tables import BaseRows, Rows

Keys = tuple[NDArray[np.int64], NDArray[np.int64] | None]


@dataclass(frozen=True, eq=False)
class Gathered:
    """One side of an evaluation of overlapping clusterings, item by item."""

    #: a row per item; its label is the code of the item's set of clusters, null for an item in none
    clustering: Clustering
    set_codes: NDArray[np.int64]  #: the same codes, -1 for an item in no cluster; shape (n_items,)
    sets: Memberships  #: the clusters of each set, by code
    labels: Column  #: cluster labels, row by row as they came
    label_rows: NDArray[np.int64]  #: a row of each cluster; shape (n_clusters,)
    #: rows with a null cluster, with the noise label, and left out since they repeat an earlier one
    n_null: int
    n_noise: int
    n_duplicates: int


def gather(
    sides: Sequence[Clustering], policies: Policies, pool: Pool, *, null_is_absent: bool
) -> list[Gathered]:
    """Gather the clusters of each item, of several sides at the same time.

    If `null_is_absent`, a null cluster says "not on that side" (the one-table form).
    """
    if policies.noise is not None:
        require_known_type(policies.noise, *(side.labels for side in sides))
    read = [_read(side, pool) for side in sides]
    threads = max(1, pool.threads // len(sides))

    def gather_one(clustering: Clustering, keys: Keys) -> Gathered | FastBCubedError:
        with Pool(threads) as mine:
            try:
                return _gather(clustering, keys, policies, mine, null_is_absent)
            except FastBCubedError as error:
                return error

    found = []
    for each in pool.map(gather_one, sides, read, stage="gather clusters"):
        if isinstance(each, FastBCubedError):  # the first side's, whichever came first
            raise each
        found.append(each)
    return found


def _read(clustering: Clustering, pool: Pool) -> Keys:
    """Return the keys of the labels and those of the items, None where items go by position."""
    items = clustering.items
    return clustering.labels.keys(pool), None if items is None else items.keys(pool)


def _gather(
    clustering: Clustering, keys: Keys, policies: Policies, pool: Pool, null_is_absent: bool
) -> Gathered:
    label_keys, item_keys = keys
    side = Side.of(clustering, policies, label_keys, null_is_absent)
    found, label_rows = gather_sets(side, item_keys, pool)
    codes = found.codes
    labels = Column("clusters", [pa.chunked_array([from_numpy(codes, codes < 0)])], clustering.labels.where)
    reduced = _take_items(clustering, labels, found.firsts)
    return Gathered(
        reduced, codes, found.sets, clustering.labels, label_rows, side.n_null, side.n_noise, found.n_repeated
    )


def gather_sets(
    side: Side, item_keys: NDArray[np.int64] | None, pool: Pool
) -> tuple[ItemSets, NDArray[np.int64]]:
    """Gather the clusters of each item of a side with a row per membership; report what may not be.

    Returns a row of each cluster, too. Shapes: `item_keys` (n_rows,); None where each row is an item.
    """
    clusters, label_rows = _clusters(side, item_keys, pool)
    found = item_sets(item_keys, clusters, label_rows.size, side.weight, pool)
    if item_keys is not None:
        if found.n_repeated and side.policies.duplicates == "raise":
            _report_repeats(side, item_keys, clusters, found.n_repeated, pool)
        if found.n_reweighted:
            _report_weights(side, item_keys, pool)
    return found, label_rows


def _clusters(
    side: Side, item_keys: NDArray[np.int64] | None, pool: Pool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the cluster of each row, -1 for none, and a row of each cluster; an item that is alone has its own."""
    special = either(side.absent, side.alone)
    if special is None:
        return number(side.labels, pool)
    usual = np.flatnonzero(~special)  # keys of nulls are arbitrary
    clusters = np.full(len(side), -1)
    clusters[usual], firsts = number(side.labels[usual], pool)
    label_rows = usual[firsts]
    if side.alone is not None:
        alone = np.flatnonzero(side.alone if side.absent is None else side.alone & ~side.absent)
        of_items, firsts = number(alone if item_keys is None else item_keys[alone], pool)
        clusters[alone] = label_rows.size + of_items
        label_rows = np.concatenate([label_rows, alone[firsts]])
    return clusters, label_rows


def _report_repeats(
    side: Side, item_keys: NDArray[np.int64], clusters: NDArray[np.int64], n: int, pool: Pool
) -> None:
    items, firsts = number(item_keys, pool)
    given = Memberships.from_rows(np.where(clusters < 0, -1, items), clusters, firsts.size, clusters.size)
    again = firsts[given.counts != given.without_repeats().counts]
    side.report(RepeatedMemberships(side.name, n, len(side), side.take_items(again)))


def _report_weights(side: Side, item_keys: NDArray[np.int64], pool: Pool) -> None:
    weight, (items, firsts) = side.weight, number(item_keys, pool)
    assert weight is not None
    first = weight[firsts][items]
    differ = np.flatnonzero((weight != first) & ~(np.isnan(weight) & np.isnan(first)))
    side.report(UnevenWeights(side.name, differ.size, len(side), side.take_items(differ)))


def _take_items(clustering: Clustering, labels: Column, firsts: NDArray[np.int64]) -> Clustering:
    """Return the clustering with a row per item: what its first row says of it."""
    if firsts.size == len(clustering):
        return replace(clustering, labels=labels)
    assert clustering.items is not None
    column = Column(clustering.items.names, clustering.items.rows_of(firsts), clustering.items.where)
    weight, attributes = clustering.weight, clustering.attributes
    if weight is not None:
        weight = weight[firsts]
    if attributes is not None:
        attributes = _FirstRows(attributes, firsts, clustering.labels.names)
    return Clustering(labels, column, weight, attributes, clustering.name)


class _FirstRows(BaseRows):
    """Some rows of a table, read when asked for; without the columns of clusters."""

    def __init__(self, rows: Rows, kept: NDArray[np.integer], without: Sequence[str]) -> None:
        super().__init__([name for name in rows.names if name not in without], rows.where, rows)
        self._rows, self._kept = rows, kept.astype(np.int32 if len(rows) < 2**31 else np.int64)

    def __len__(self) -> int:
        return self._kept.size

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        return [
            pa.chunked_array([take_rows(column, self._kept)])
            for column in attributes(self._rows, list(names))
        ]
