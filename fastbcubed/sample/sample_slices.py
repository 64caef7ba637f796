"""Slices of a sample of clusters: its items by the sample's own columns, and the estimates of each slice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed.align.attributes import attribute
from fastbcubed.engines.sampled_cells import Touched
from fastbcubed.errors import ColumnError, MetricError, SliceError, arg, quoted
from fastbcubed.inputs.arrays import from_numpy, take_or_null
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import Column
from fastbcubed.results.slices import Bins, Sliced, SliceKey, crossed, elements, named, slice_name, sliced_by
from fastbcubed.runtime.suggestions import did_you_mean
from fastbcubed.sample.cluster_estimators import ClusterSample, Drawn, Estimable, Estimate, Moved
from fastbcubed.types import Counts

#: The least number of draws with which a slice has estimates.
ENOUGH = 10


class Cut(NamedTuple):
    """A sample divided into parts, each within one cluster and one slice of every slicing. Arrays are by part."""

    clustering: Clustering  #: labels are the numbers of the parts
    cluster: Counts
    size: Counts  #: number of items
    slicings: dict[str, Slicing]


class Slicing(NamedTuple):
    """The slices of a sample by one or more of its columns."""

    codes: Counts  #: the slice of each part
    values: dict[str, pa.Array]  #: the values that name each slice, by column
    n_items: Counts  #: number of sampled items by slice
    n_draws: Counts  #: number of draws of clusters with items in the slice, by slice


def cut(sample: ClusterSample, side: Clustering, keys: Sequence[SliceKey]) -> Cut:
    """Divide a sample by its columns; raise ColumnError or SliceError if it does not have these slices."""
    clusters = np.asarray(sample.clustering.labels.keys())
    by_row = [_codes(side, sample.rows, key) for key in keys]
    _, first, parts = np.unique(
        np.column_stack([clusters, *(own.codes for own in by_row)]),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    parts = np.asarray(parts).ravel()
    size, cluster = np.bincount(parts), clusters[first]
    slicings = {}
    for key, own in zip(keys, by_row, strict=True):
        codes = own.codes[first]
        pairs = np.unique(np.column_stack([codes, cluster]), axis=0)
        draws = np.bincount(pairs[:, 0], sample.draws[pairs[:, 1]], own.n_slices).astype(np.int64)
        n_items = np.bincount(codes, size, own.n_slices).astype(np.int64)
        values = {str(each): named(each, own.values[str(each)]) for each in elements(key)}
        slicings[slice_name(key)] = Slicing(codes, values, n_items, draws)
    labels = Column(
        "cluster", [pa.chunked_array([from_numpy(parts)])], "the numbers of the parts of the sample"
    )
    items = sample.clustering.items
    return Cut(Clustering(labels, items, name=side.name), cluster, size, slicings)


def _codes(side: Clustering, rows: Counts, key: SliceKey) -> Sliced:
    """Return the slice of each of these rows of the sample."""
    if isinstance(key, Mapping):
        raise SliceError(
            f"{arg('slices')} of a sample must be its columns, not named subsets such as "
            f"{quoted(next(iter(key)))}"
        )
    columns = []
    for each in elements(key):
        name = each.name if isinstance(each, Bins) else each
        if side.attributes is None or name not in side.attribute_names:
            known = side.attribute_names
            there = ", ".join(known) or "which has no others"
            raise ColumnError(
                f"{arg('slices', name)} is not a column of {side.name} ({there}).{did_you_mean(name, known)}"
            )
        columns.append(sliced_by(each, take_or_null(attribute(side.attributes, name), rows)))
    return crossed(columns, np.ones(rows.size, np.bool_))


def whole_cells(touched: Touched, parts: Cut) -> tuple[tuple[Counts, Counts, Counts], Counts]:
    """Return the cells of whole clusters (true cluster, items, predicted size), and the items of each part's cell."""
    cluster = parts.cluster[touched.true]
    if not parts.slicings:
        return (cluster, touched.n, touched.pred_n), touched.n
    _, first, cell = np.unique(
        np.column_stack([cluster, touched.pred]), axis=0, return_index=True, return_inverse=True
    )
    cell = np.asarray(cell).ravel()
    n = np.bincount(cell, touched.n).astype(np.int64)
    return (cluster[first], n, touched.pred_n[first]), n[cell]


class OfSlice(NamedTuple):
    """The estimates of a slice, and the influences of sampled clusters on them; both empty if draws are few."""

    estimated: dict[str, Estimate]
    moved: dict[str, Moved]


def of_slices(
    drawn: Drawn, touched: Touched, parts: Cut, slicing: Slicing, chosen: Iterable[Estimable], *, drop: bool
) -> Iterator[OfSlice]:
    """Yield the estimates of each slice: means over its items, whose clusters also have their items outside it."""
    _, n = whole_cells(touched, parts)
    missing = np.zeros(parts.size.size, np.int64)
    if not drop:
        missing = parts.size - np.bincount(touched.true, touched.n, parts.size.size).astype(np.int64)
    chosen, n_clusters = list(chosen), int(parts.cluster.max()) + 1
    of_cell, cluster = slicing.codes[touched.true], parts.cluster[touched.true]
    for code, n_draws in enumerate(slicing.n_draws.tolist()):
        if n_draws < ENOUGH:
            yield OfSlice({}, {})
            continue
        here = of_cell == code
        alone = np.bincount(parts.cluster, missing * (slicing.codes == code), n_clusters).astype(np.int64)
        own = drawn.of_items(cluster[here], n[here], touched.pred_n[here], touched.n[here], alone)
        yield OfSlice(
            {each.name: each.estimate(own) for each in chosen},
            {each.name: each.moved(own, n_clusters) for each in chosen},
        )


def scores_in_slices(chosen: Sequence[Estimable]) -> list[Estimable]:
    """Return the scores that slices have, means over items and their F; raise MetricError if there are none."""
    found = [each for each in chosen if each.of_items]
    if not found:
        raise MetricError(
            f"{arg('slices')}: {', '.join(each.name for each in chosen)} are scores of clusters or pairs, "
            f"but slices have only means over items. Add one, as in {arg('metrics', 'f1')}"
        )
    return found
