"""What sampled clusters show: their cells in the prediction, and sums over these cluster by cluster."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.metrics.metric import Formula
from fastbcubed.sampling.cluster_sample import ClusterSample

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class Cells(NamedTuple):
    """Cells of sampled clusters: `times` times n items of a true cluster that share a predicted one."""

    cluster: Counts  #: the number of the true cluster
    n: Floats
    true_n: Floats  #: items of the true cluster
    pred_n: Floats  #: items of the predicted cluster, sampled or not
    times: Floats


class Drawn(NamedTuple):
    """What sampled clusters show in a prediction. All arrays but those of `cells` are by cluster."""

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
