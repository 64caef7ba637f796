"""The curve: every score at every threshold at which the clusters change, and what is worth showing of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.linkage.kept_scores import COUNTED, Kept, score_of
from fastbcubed.metrics.metric import Metric

Floats = NDArray[np.float64]
Points = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Curve:
    """Scores by point: that of no link first, then that of each level used, which is at its score."""

    thresholds: Floats  #: of each point; the first is infinite
    kept: Kept
    metrics: Sequence[Metric]
    _known: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.thresholds.size)

    @property
    def names(self) -> list[str]:
        """The figures of clusters, and the scores."""
        return [*COUNTED, *(metric.name for metric in self.metrics)]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return a score, or a figure of the clusters, at every point."""
        if name == "threshold":
            return self.thresholds
        if name not in self._known:
            found = {metric.name: metric for metric in self.metrics}
            self._known[name] = self.kept.sums[name] if name in COUNTED else score_of(found[name], self.kept)
        return self._known[name]

    def at(self, point: int) -> dict[str, Any]:
        """Return all of a point, as plain numbers."""
        return {name: self[name][point].item() for name in self.names}

    def thinned(self, limit: int | None) -> Points:
        """Return so many points at most: the ends, the best and the worst of each score, and others between them.

        The others are as far from each other as the scores change, so that no part of the curve is lost.
        """
        n = len(self)
        if limit is None or n <= limit:
            return np.arange(n)
        ends = {0, n - 1}
        for metric in self.metrics:
            ends |= {int(np.argmax(self[metric.name])), int(np.argmin(self[metric.name]))}
        must = np.array(sorted(ends))[: max(limit, 0)]
        way = self._way()
        for wanted in (limit - must.size, (limit - must.size) // 2, 0):
            even = np.searchsorted(way, np.linspace(0.0, way[-1], max(wanted, 0)))
            points = np.union1d(must, np.minimum(even, n - 1))
            if points.size <= limit:
                break
        return points.astype(np.int64)

    def _way(self) -> Floats:
        """Return how far the curve has come at each point: how much the scores have changed, and how many points."""
        way = np.arange(len(self)) / max(1, len(self) - 1)
        for metric in self.metrics:
            steps = np.abs(np.diff(self[metric.name]))
            whole = float(steps.sum())
            if whole > 0:
                way[1:] += np.cumsum(steps) / whole
        return way
