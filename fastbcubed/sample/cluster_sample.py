"""A sample of complete true clusters: the cluster of each item by number, how it was drawn, and how often."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed import kernels
from fastbcubed.align.policies import Policies
from fastbcubed.align.rows import Side
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    EmptyInputError,
    OptionError,
    WeightError,
    arg,
    first_few,
)
from fastbcubed.inputs.arrays import from_numpy
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.columns import Column
from fastbcubed.inputs.suggestions import did_you_mean
from fastbcubed.inputs.tables import read_columns
from fastbcubed.metrics.score import Formula
from fastbcubed.runtime.codes import number
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Counts, Floats

UNIFORM, CLUSTER_SIZE = "uniform", "cluster_size"


class ClusterSample(NamedTuple):
    """True clusters that were drawn, each complete. All arrays are by cluster."""

    clustering: Clustering  #: whose labels are the numbers of the clusters
    size: Counts  #: items
    weight: Floats  #: one over the chance to be drawn, or in proportion to that
    draws: Counts  #: how often it was drawn
    n_null: int  #: rows whose cluster is null
    n_duplicates: int  #: rows left out since they repeat an earlier one


def read_sample(side: Clustering, policies: Policies, sampling: Any, draws: Any, pool: Pool) -> ClusterSample:
    """Return the clusters of a sample by number, with their draws; raise for an impossible sample."""
    if side.items is None:
        raise AlignmentError(
            "the sample has labels without item ids, so it cannot be found in the prediction. Pass a table, a dict, "
            "or Clustering.from_labels(labels, items=ids)."
        )
    for name, value in (("sampling", sampling), ("draws", draws)):
        if not isinstance(value, str) and not (name == "draws" and value is None):
            known = '"uniform", "cluster_size" or ' if name == "sampling" else ""
            raise OptionError(f"{arg(name)} is {known}the name of a column of the sample, not {value!r}")
    rows = Side.of(side, policies, side.labels.keys(pool), False)
    items = side.items.keys(pool)
    kept = np.arange(len(side))
    if number(items, pool).firsts.size < len(side):
        kept = rows.without_repeats(items)
    if rows.absent is not None:
        kept = kept[~rows.absent[kept]]
    if not kept.size:
        raise EmptyInputError(f"{side.name} has no item in a cluster")
    codes = number(_keys_of(rows, kept), pool)
    size = np.bincount(codes.codes)
    by_cluster = _ByCluster(side, kept, codes.codes, codes.firsts)
    return ClusterSample(
        _numbered(side, kept, codes.codes),
        size,
        _weights(by_cluster, sampling, size),
        np.ones(size.size, np.int64) if draws is None else by_cluster.counts(draws),
        rows.n_null,
        rows.n_duplicates,
    )


def _keys_of(rows: Side, kept: Counts) -> Counts:
    """Return keys of the clusters of some rows, in which those that are alone have keys of their own."""
    keys = rows.labels[kept]
    if rows.alone is None or not rows.alone[kept].any():
        return keys
    alone = rows.alone[kept]
    codes = np.unique(keys, return_inverse=True)[1]
    return np.where(alone, codes.size + np.arange(codes.size), codes)


def _numbered(side: Clustering, kept: Counts, codes: Counts) -> Clustering:
    """Return the clustering of some rows by number of the cluster."""
    assert side.items is not None
    items = side.items
    if kept.size < len(side):
        items = items.chosen(kept)
    labels = pa.chunked_array([from_numpy(codes)])
    return Clustering(
        Column("cluster", [labels], "the numbers of the sampled clusters"), items, name=side.name
    )


def _weights(by_cluster: _ByCluster, sampling: str, size: Counts) -> Floats:
    """Return the weight of each cluster: one over the chance to be drawn, or in proportion to that."""
    if sampling == UNIFORM:
        return np.ones(size.size)
    if sampling == CLUSTER_SIZE:
        return 1.0 / size
    found = by_cluster.values(sampling, "sampling")
    least, most = kernels.sums.LEAST, kernels.sums.MOST
    if (bad := np.flatnonzero(~((found >= least) & (found <= most)))).size:
        range_of = (
            f" from {least} to {most}" if (found[bad] > 0).all() and np.isfinite(found[bad]).all() else ""
        )
        raise WeightError(
            f"{bad.size} of {found.size} sampled clusters have a weight in column {sampling!r} that is not a positive "
            f"number{range_of} ({by_cluster.first(bad, found)}). It is one over the chance of the cluster to be drawn."
        )
    return found


class _ByCluster(NamedTuple):
    """Reads columns of a sample that have one value for each cluster."""

    side: Clustering
    kept: Counts  #: the rows that count
    codes: Counts  #: the cluster of each
    firsts: Counts  #: which of these is the first of each cluster

    def values(self, name: str, argument: str) -> Floats:
        """Return the value of each cluster; raise where its items have different ones."""
        table = self.side.attributes
        if table is None or name not in table.names:
            known = (UNIFORM, CLUSTER_SIZE) if argument == "sampling" else ()
            names = () if table is None else self.side.attribute_names
            raise ColumnError(
                f"{arg(argument, name)} is no column of {self.side.name}"
                + (f" ({', '.join(names) or 'which has no other columns'})" if table is not None else "")
                + f"{''.join(f', nor {each!r}' for each in known)}.{did_you_mean(name, (*known, *names))}"
            )
        values = read_columns(table, [], name)[1]
        assert values is not None
        by_row = values[self.kept]
        by_cluster = by_row[self.firsts]
        differ = np.flatnonzero((by_row != by_cluster[self.codes]) & ~np.isnan(by_row))
        if differ.size:
            clusters = np.unique(self.codes[differ])
            raise WeightError(
                f"{clusters.size} of {by_cluster.size} sampled clusters have items with different values of "
                f"{name!r} (first: {first_few(self.labels(clusters[:4]))}). A cluster is drawn as a whole: give all "
                "of its items the same value."
            )
        return by_cluster

    def counts(self, name: str) -> Counts:
        """Return a number of draws of each cluster."""
        found = self.values(name, "draws")
        if (bad := np.flatnonzero(~((found >= 1) & (found == np.floor(found)) & (found < 2**31)))).size:
            raise WeightError(
                f"{bad.size} of {found.size} sampled clusters have a number of draws in column {name!r} that is not "
                f"1, 2, 3 and so on ({self.first(bad, found)})."
            )
        return found.astype(np.int64)

    def labels(self, clusters: Counts) -> list[Any]:
        """Return the labels of some clusters."""
        return self.side.labels.take(self.kept[self.firsts[clusters]]).to_pylist()

    def first(self, clusters: Counts, values: Floats) -> str:
        """Return the first few of some clusters with their values, for a message."""
        few = clusters[:3]
        named = zip(self.labels(few), values[few].tolist(), strict=True)
        shown = ", ".join(f"{first_few([label])}: {value:g}" for label, value in named)
        return f"first: {shown}{', …' if clusters.size > 3 else ''}"


class Cells(NamedTuple):
    """Cells of sampled clusters: `times` times n items of a true cluster that share a predicted one."""

    cluster: Counts  #: the number of the true cluster
    n: Floats
    true_n: Floats  #: items of the true cluster
    pred_n: Floats  #: items of the predicted cluster, sampled or not
    times: Floats


class Drawn(NamedTuple):
    """Sampled clusters in a prediction. All arrays but those of `cells` are by cluster."""

    draws: Counts  #: how often each was drawn
    weight: Floats  #: one over the chance to be drawn, or in proportion to that
    size: Counts  #: items
    missing: Counts  #: those of them that the prediction lacks, where these are alone; else 0
    cells: Cells
    n_items: int  #: items of the prediction
    n_clusters: int  #: its clusters
    left_to_draw: float = 1.0  #: the share of the population that is not in the sample, where that matters

    @classmethod
    def of(
        cls,
        sample: ClusterSample,
        cells: tuple[Counts, Counts, Counts],
        prediction: tuple[int, int],
        *,
        missing: str,
        left_to_draw: float = 1.0,
    ) -> Drawn:
        """Put together a sample and its cells in the prediction: cluster, items, items of the predicted cluster.

        The prediction has so many items and clusters. Items that it lacks are alone there if `missing` is "singleton",
        and no items if it is "drop".
        """
        true, n, pred_n = cells
        there = np.bincount(true, n, sample.size.size).astype(np.int64)
        size = there if missing == "drop" else sample.size
        kept = np.flatnonzero(size)
        place = np.full(size.size, -1)
        place[kept] = np.arange(kept.size)
        alone = np.flatnonzero(size - there)
        one = np.ones(alone.size)
        columns = (
            (place[true], place[alone]),
            (n, one),
            (size[true], size[alone]),
            (pred_n, one),
            (np.ones(n.size), (size - there)[alone]),
        )
        cluster, *counts = (np.concatenate(pair) for pair in columns)
        return cls(
            sample.draws[kept], sample.weight[kept], size[kept], (size - there)[kept],
            Cells(cluster, *(column.astype(np.float64) for column in counts)), *prediction, left_to_draw,
        )  # fmt: skip

    def add(self, by_cell: Floats) -> Floats:
        """Add up values of the items of each cell by cluster."""
        cells = self.cells
        return _add(cells, cells.n * by_cell, self.size.size)

    def sums(self, formula: Formula) -> Floats:
        """Add up a score of items by cluster."""
        c = self.cells
        return self.add(np.asarray(formula(c.n, c.pred_n - c.n, c.true_n - c.n, None)))  # type: ignore[arg-type]

    def sums_of_others(self, formula: Formula) -> Floats:
        """Add up a score that leaves the item itself out of its sets."""
        c = self.cells
        return self.add(np.asarray(formula(c.n - 1, c.pred_n - c.n, c.true_n - c.n, None)))  # type: ignore[arg-type]

    @property
    def found(self) -> Floats:
        """Ordered pairs of its items that are together in the prediction: |c| (|c| - 1 - miss)."""
        return self.add(self.cells.n - 1)

    @property
    def linked(self) -> Floats:
        """Ordered pairs of one of its items and another of the predicted cluster: |c| (|c| - 1 + extra - miss)."""
        return self.add(self.cells.pred_n - 1)

    @property
    def pairs(self) -> Floats:
        """Ordered pairs of its items: |c| (|c| - 1)."""
        return self.size * (self.size - 1.0)

    @property
    def hit(self) -> Floats:
        """Whether it is a predicted cluster: 1 or 0."""
        c = self.cells
        whole = (c.n == c.true_n) & (c.n == c.pred_n)
        return _add(c, whole.astype(np.float64), self.size.size)

    @property
    def pred_clusters(self) -> Floats:
        """Predicted clusters that as many items have, |c| M / n, and one for each that is missing there; times n.

        These are whole numbers, whose sum over all clusters is exact.
        """
        return (self.size - self.missing) * float(self.n_clusters) + self.missing * float(self.n_items)


def _add(cells: Cells, by_cell: Floats, n_clusters: int) -> Floats:
    return np.asarray(np.bincount(cells.cluster, cells.times * by_cell, n_clusters), np.float64)


def hill_numbers(drawn: Drawn) -> dict[str, float]:
    """Return the effective number of cluster sizes, by order 0, 1 and 2: (sum of p_s^q)^(1 / (1 - q)).

    p_s is the estimated share of clusters that have size s; sizes that no sampled cluster has are not there.

    >>> one = np.ones(3)
    >>> drawn = Drawn(one.astype(int), one, np.array([1, 1, 2]), one, None, 4, 3)
    >>> [round(number, 4) for number in hill_numbers(drawn).values()]  # shares 2/3 and 1/3
    [2.0, 1.8899, 1.8]
    """
    _, size = np.unique(drawn.size, return_inverse=True)
    weight = np.asarray(np.bincount(size, drawn.draws * drawn.weight), np.float64)
    share = weight / weight.sum()
    entropy = -math.fsum((share * np.log(share)).tolist())
    return {"0": float(share.size), "1": math.exp(entropy), "2": 1 / math.fsum((share**2).tolist())}
