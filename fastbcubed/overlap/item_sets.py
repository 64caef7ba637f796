"""Rows of memberships → the set of clusters of each item, in memory or shard by shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.attributes import attributes, number_values
from fastbcubed.align.data_errors import RepeatedMemberships, UnevenWeights
from fastbcubed.align.policies import Policies
from fastbcubed.align.sides import Side, either, require_known_type
from fastbcubed.errors import ColumnError, FastBCubedError, arg, first_few
from fastbcubed.inputs.arrays import from_numpy, read_only, take_rows
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import Column
from fastbcubed.inputs.tables import Source
from fastbcubed.overlap.memberships import Memberships
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_codes import Numbered, number
from fastbcubed.runtime.key_partitions import PART_ROWS, part_bits, part_blocks, scatter_keys, slots_for
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Floats, Int64s

#: Maximum number of hash seeds tried; a second one is almost never needed.
ATTEMPTS = 8


class ItemSets(NamedTuple):
    """The items of one side, in order of their first rows, and the set of clusters of each."""

    firsts: Int64s  #: the first row of each item; shape (n_items,)
    #: code of each item's set, -1 for an item in no cluster; the set of a single cluster has the cluster's code;
    #: shape (n_items,)
    codes: Int64s
    #: the clusters of each set by code: first the sets of one cluster, then the larger sets
    sets: Memberships
    n_repeated: int  #: number of rows that repeat the item and cluster of an earlier row
    n_reweighted: int  #: number of rows whose weight differs from that of their item's first row


class Signatures(NamedTuple):
    """The set of clusters of each item, as a code."""

    codes: Int64s  #: code of each item's set, as in `ItemSets`; shape (n_items,)
    sets: Memberships  #: the clusters of each set by code


class MembershipRows(NamedTuple):
    """Rows of memberships sorted by part; all rows of an item are in one part."""

    keys: Int64s  #: keys of items, mixed if `rows` is given; shape (n_rows,), like `rows` and `codes`
    rows: Codes | None  #: row numbers, ascending within a part; None if rows are in order
    codes: Codes  #: the cluster of each row, -1 for none
    bounds: Int64s  #: where each part begins; shape (n_parts + 1,)


def item_sets(
    keys: Int64s | None, clusters: Int64s, n_clusters: int, weight: Floats | None, pool: Pool
) -> ItemSets:
    """Gather the clusters of each item. Shapes: `keys`, `clusters`, `weight` (n_rows,).

    Without keys, each row is an item. A row with a negative cluster only declares that the item exists.
    """
    if keys is None or not keys.size:
        return ItemSets(np.arange(clusters.size), clusters, _with_large(n_clusters), 0, 0)
    wide = np.int32 if max(keys.size, n_clusters) < 2**31 - 2 else np.int64
    parts = _in_parts(keys, clusters, wide, pool)
    marks = buffers.empty(keys.size, wide)
    n_repeated, n_reweighted = _mark_first_rows(parts, weight, marks, pool)
    codes = parts.codes
    del parts
    firsts, found, several, starts = _listed(marks, pool)
    del marks
    numbered = _numbered(codes, starts, pool)
    found[several] = n_clusters + numbered.codes
    sets = _with_large(n_clusters, codes, starts[numbered.firsts])
    return ItemSets(firsts, found, sets, n_repeated, n_reweighted)


def signatures(members: Memberships, pool: Pool) -> Signatures:
    """Return a code for each item's set of clusters; the run time is linear in the number of memberships."""
    begins, n_clusters = members.offsets[:-1], members.n_clusters
    alone, several = np.flatnonzero(members.counts == 1), np.flatnonzero(members.counts > 1)
    found = np.full(len(members), -1)
    found[alone] = members.codes[begins[alone]]
    codes, ends = members.codes.copy(), members.offsets[several + 1] - 1
    codes[ends] = -1 - codes[ends]
    numbered = _numbered(codes, begins[several], pool)
    found[several] = n_clusters + numbered.codes
    return Signatures(found, _with_large(n_clusters, codes, begins[several[numbered.firsts]]))


def _in_parts(keys: Int64s, clusters: Int64s, wide: type[np.integer], pool: Pool) -> MembershipRows:
    """Sort the rows by part of their item; ascending items are already in place."""
    codes = buffers.empty(keys.size, wide)
    if not any(kernels.memberships.find_unsorted(keys, a, b) for a, b in blocks(keys.size)):
        codes[:] = clusters
        near = np.arange(PART_ROWS, keys.size, PART_ROWS)
        cuts = np.unique(np.searchsorted(keys, keys[near]))  # moves each cut to the first row of an item
        return MembershipRows(
            read_only(keys), None, codes, np.concatenate([[0], cuts[cuts > 0], [keys.size]])
        )
    bits = part_bits(keys.size, PART_ROWS)
    mixed, rows, bounds = scatter_keys(keys, bits, pool, (clusters, codes), wide)
    return MembershipRows(read_only(mixed), rows, codes, bounds)


def _mark_first_rows(
    parts: MembershipRows, weight: Floats | None, marks: Codes, pool: Pool
) -> tuple[int, int]:
    """Mark the first row of each item; return the numbers of repeated and reweighted rows. See `gather_parts`."""
    marks.fill(kernels.memberships.REPEATED)
    weight = np.empty(0) if weight is None else read_only(weight)
    largest, wide = int(np.diff(parts.bounds).max()), marks.dtype

    def gather(first: int, last: int) -> tuple[int, int]:
        with pool.workspace(
            ("gather", wide.str),
            lambda: (slots_for(largest, wide), *(np.empty(largest + 1, wide) for _ in range(4))),
            lambda space: space[1].size > largest,
        ) as space:
            return kernels.memberships.gather_parts(*parts, first, last, weight, space, marks)

    cuts = zip(*part_blocks(parts.bounds.size - 1), strict=True)
    counts = pool.map(gather, *cuts, stage="gather items")
    repeated, reweighted = (sum(each) for each in zip(*counts, strict=True))
    return repeated, reweighted


def _listed(marks: Codes, pool: Pool) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Return each item's first row and cluster code, the items in several clusters, and where their codes begin."""
    starts, stops = zip(*blocks(marks.size), strict=True)
    counts = pool.map(
        lambda a, b: kernels.memberships.count_marks(marks, a, b), starts, stops, stage="count items"
    )
    *bases, (n_items, n_several) = accumulate(counts, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(0, 0))
    listed = tuple(buffers.empty(int(n), np.int64) for n in (n_items, n_items, n_several, n_several))
    pool.map(
        lambda a, b, base: kernels.memberships.list_items(marks, a, b, *base, *listed),
        starts, stops, bases, stage="list items",
    )  # fmt: skip
    return listed  # type: ignore[return-value]


def _numbered(codes: Codes, starts: Int64s, pool: Pool) -> Numbered:
    """Assign numbers to sets of several clusters, by comparing 64-bit hashes and then the sets.

    The codes of a set begin at its entry in `starts`; its last code is stored as -1 - code.
    """
    keys, cuts = buffers.empty(starts.size, np.int64), list(zip(*blocks(starts.size), strict=True))
    for seed in range(ATTEMPTS):
        pool.map(
            lambda a, b, seed=seed: kernels.memberships.hash_sets(codes, starts, a, b, seed, keys),
            *cuts, stage="hash sets of clusters",
        )  # fmt: skip
        numbered = number(keys, pool)
        unequal = pool.map(
            lambda a, b, numbers=numbered.codes, firsts=numbered.firsts: kernels.memberships.is_unequal(
                codes, starts, firsts, numbers, a, b
            ),
            *cuts, stage="compare sets of clusters",
        )  # fmt: skip
        if not any(unequal):
            break
    return numbered


def _with_large(n_clusters: int, codes: Codes | None = None, starts: Int64s | None = None) -> Memberships:
    """Return the sets of one cluster each, followed by the larger sets, whose codes begin at `starts`."""
    wide: type[np.int32] | type[np.int64] = np.int32 if n_clusters < 2**31 else np.int64
    alone: NDArray[Any] = np.arange(n_clusters, dtype=wide)
    if codes is None or starts is None:
        return Memberships(np.arange(n_clusters + 1), alone, n_clusters)
    offsets = buffers.empty(n_clusters + 1 + starts.size, np.int64)
    offsets[: n_clusters + 1] = np.arange(n_clusters + 1)
    counts = offsets[n_clusters + 1 :]
    kernels.memberships.count_sets(codes, starts, counts)
    np.cumsum(counts, out=counts)
    counts += n_clusters
    members = buffers.empty(int(offsets[-1]), wide)
    members[:n_clusters] = alone
    kernels.memberships.take_sets(codes, starts, offsets[n_clusters:], members)
    return Memberships(offsets, members, n_clusters)


@dataclass(frozen=True, eq=False)
class Gathered:
    """One side of an evaluation of overlapping clusterings, with one row per item."""

    #: one row per item, whose label is the code of the item's set of clusters, null for an item in no cluster
    clustering: Clustering
    set_codes: Int64s  #: code of each item's set, -1 for an item in no cluster; shape (n_items,)
    sets: Memberships  #: the clusters of each set by code
    labels: Column  #: the original cluster label of each row of memberships
    label_rows: Int64s  #: a row with the label of each cluster; shape (n_clusters,)
    #: numbers of rows with a null cluster, with the noise label, and dropped because they repeat an earlier row
    n_null: int
    n_noise: int
    n_duplicates: int


def gather(sides: Sequence[Clustering], policies: Policies, pool: Pool) -> list[Gathered]:
    """Gather the clusters of each item on both sides at the same time."""
    if policies.noise is not None:
        require_known_type(policies, *(side.labels for side in sides))
    labels = [side.labels.keys(pool) for side in sides]
    items = [None if side.items is None else side.items.keys(pool) for side in sides]
    threads = max(1, pool.threads // len(sides))

    def gather_one(
        k: int, clustering: Clustering, labels: Int64s, items: Int64s | None
    ) -> Gathered | FastBCubedError:
        with Pool(threads) as mine:
            try:
                side = Side.of(clustering, policies.of_side(k), labels, clustering.labels.null_rows)
                return _gather(clustering, side, items, mine)
            except FastBCubedError as error:
                return error

    found = []
    for each in pool.map(gather_one, range(len(sides)), sides, labels, items, stage="gather clusters"):
        if isinstance(each, FastBCubedError):  # raises the first side's error, whichever came first
            raise each
        found.append(each)
    return found


def _gather(clustering: Clustering, side: Side, item_keys: Int64s | None, pool: Pool) -> Gathered:
    """Gather the clusters of each item of a side with a row per membership; report repeated and invalid rows."""
    clusters, label_rows = _clusters(side, item_keys, pool)
    found = item_sets(item_keys, clusters, label_rows.size, side.weight, pool)
    if item_keys is not None:
        if found.n_repeated and side.policies.duplicates == "raise":
            _report_repeats(side, item_keys, clusters, found.n_repeated, pool)
        if found.n_reweighted:
            _report_weights(side, item_keys, pool)
    codes = found.codes
    labels = Column("clusters", [pa.chunked_array([from_numpy(codes, codes < 0)])], clustering.labels.where)
    reduced = _take_items(clustering, labels, found.firsts)
    return Gathered(
        reduced, codes, found.sets, clustering.labels, label_rows, side.n_null, side.n_noise, found.n_repeated
    )


def _clusters(side: Side, item_keys: Int64s | None, pool: Pool) -> tuple[Int64s, Int64s]:
    """Return the cluster of each row, -1 for none, and a row of each cluster; singletons of policies get new ones."""
    special = either(side.absent, side.alone)
    if special is None:
        return number(side.labels, pool)
    usual = np.flatnonzero(~special)  # the keys of nulls are arbitrary
    clusters = np.full(len(side), -1)
    clusters[usual], firsts = number(side.labels[usual], pool)
    label_rows = usual[firsts]
    if side.alone is not None:
        alone = np.flatnonzero(side.alone if side.absent is None else side.alone & ~side.absent)
        of_items, firsts = number(alone if item_keys is None else item_keys[alone], pool)
        clusters[alone] = label_rows.size + of_items
        label_rows = np.concatenate([label_rows, alone[firsts]])
    return clusters, label_rows


def _report_repeats(side: Side, item_keys: Int64s, clusters: Int64s, n: int, pool: Pool) -> None:
    items, firsts = number(item_keys, pool)
    given = Memberships.from_rows(np.where(clusters < 0, -1, items), clusters, firsts.size, clusters.size)
    again = firsts[given.counts != given.without_repeats().counts]
    side.report(RepeatedMemberships(side.name, n, len(side), side.take_items(again)))


def _report_weights(side: Side, item_keys: Int64s, pool: Pool) -> None:
    weight, (items, firsts) = side.weight, number(item_keys, pool)
    assert weight is not None
    first = weight[firsts][items]
    differ = np.flatnonzero((weight != first) & ~(np.isnan(weight) & np.isnan(first)))
    side.report(UnevenWeights(side.name, differ.size, len(side), side.take_items(differ)))


def _take_items(clustering: Clustering, labels: Column, firsts: Int64s) -> Clustering:
    """Return the clustering with one row per item, with the values of the item's first row."""
    weight, attributes = clustering.weight, clustering.attributes
    own, named = () if attributes is None else attributes.names, clustering.labels.names
    names = [name for name in own if name not in named]
    if firsts.size == len(clustering):
        if attributes is not None:  # the label column no longer exists, and cannot be an attribute
            attributes = Source(names, attributes.where, len(attributes), attributes.columns, like=attributes)
        return replace(clustering, labels=labels, attributes=attributes)
    assert clustering.items is not None
    column = Column(clustering.items.names, clustering.items.rows_of(firsts), clustering.items.where)
    if weight is not None:
        weight = weight[firsts]
    if attributes is not None:
        rows = firsts.astype(np.int32 if len(attributes) < 2**31 else np.int64)
        read = ByItem(attributes, clustering.items, rows)
        attributes = Source(names, attributes.where, rows.size, read, like=attributes)
    return Clustering(labels, column, weight, attributes, clustering.name)


class ByItem:
    """The attributes of items with several rows, read from the first row; rows that differ raise an error."""

    def __init__(self, source: Source, items: Column, firsts: NDArray[Any]) -> None:
        self._source, self._items, self._firsts = source, items, firsts

    def __call__(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return columns with one row per item; raise ColumnError if an item has several values."""
        found = []
        for name, values in zip(names, attributes(self._source, list(names)), strict=True):
            self._require_one(name, values)
            found.append(pa.chunked_array([take_rows(values, self._firsts)]))
        return found

    @cached_property
    def _later(self) -> tuple[Int64s, Int64s]:
        """The rows that are not the first of their item, and the first row of each one's item."""
        with Pool() as pool:
            codes, firsts = number(self._items.keys(pool), pool)
        first = firsts[codes]
        rows = np.flatnonzero(first != np.arange(first.size))
        return rows, first[rows]

    def _require_one(self, name: str, values: pa.ChunkedArray) -> None:
        rows, firsts = self._later
        if pa.types.is_nested(values.type):
            codes = np.unique(list(map(repr, values.to_pylist())), return_inverse=True)[1]
        else:
            codes, _ = number_values(values)
        differ = np.unique(firsts[codes[rows] != codes[firsts]])
        if differ.size:
            raise ColumnError(
                f"column {name!r} of {self._source.where} has several values for {differ.size} of "
                f"{self._firsts.size} items, whose rows differ (first: "
                f"{first_few(self._items.first_of(differ))}). To slice by this column or list it, give "
                f"each item one value in {arg('attributes', ...)}."
            )
