"""The curve: every score at every threshold at which the clusters change, and what is worth showing of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.linkage.kept_scores import COUNTED, Kept, score_of
from fastbcubed.metrics.metric import Metric
from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import Pool, blocks

Floats = NDArray[np.float64]
Points = NDArray[np.int64]

#: Points that are scored at once: what a formula leaves on its way stays in a core's cache.
POINTS_AT_ONCE = 1 << 15


@dataclass(frozen=True, eq=False)
class Curve:
    """Scores by point: that of no link first, then that of each level used, which is at its score."""

    thresholds: Floats  #: of each point; the first is infinite
    kept: Kept
    metrics: Sequence[Metric]

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
        return self.kept.sums[name] if name in COUNTED else self.scores(self._metric(name))

    def scores(self, metric: Metric) -> Floats:
        """Return a score at every point, which is worked out anew: scores take more memory than what they are from."""
        found: Floats = buffers.empty(len(self), np.float64)

        def score(start: int, stop: int) -> None:
            found[start:stop] = score_of(metric, self.kept.take(slice(start, stop)))

        with Pool() as pool:
            pool.map(score, *zip(*blocks(len(self), POINTS_AT_ONCE), strict=True))
        return found

    def figures(self, name: str, points: Points) -> NDArray[Any]:
        """Return a score, or a figure of the clusters, at some points."""
        if name in COUNTED:
            return self.kept.sums[name][points].astype(np.int64)
        return score_of(self._metric(name), self.kept.take(points))

    def _metric(self, name: str) -> Metric:
        return next(metric for metric in self.metrics if metric.name == name)

    def at(self, point: int, *names: str) -> dict[str, Any]:
        """Return scores and figures of a point, all if none is named, as plain numbers."""
        return {name: self.figures(name, np.array([point])).item() for name in names or self.names}

    def thinned(self, limit: int | None) -> Points:
        """Return so many points at most: the ends, the best and the worst of each score, and others between them.

        The others are as far from each other as the scores change, so that no part of the curve is lost.
        """
        n = len(self)
        if limit is None or n <= limit:
            return np.arange(n)
        ends, way = {0, n - 1}, np.arange(n, dtype=np.float64)
        way /= max(1, n - 1)
        for metric in self.metrics:
            values = self[metric.name]
            ends |= {int(np.argmax(values)), int(np.argmin(values))}
            _go_on(way, values)
        must = np.array(sorted(ends))[: max(limit, 0)]
        for wanted in (limit - must.size, (limit - must.size) // 2, 0):
            even = np.searchsorted(way, np.linspace(0.0, way[-1], max(wanted, 0)))
            points = np.union1d(must, np.minimum(even, n - 1))
            if points.size <= limit:
                break
        return points.astype(np.int64)


def _go_on(way: Floats, values: Floats) -> None:
    """Add how much a score has changed up to each point, as a share of all that it changes."""
    cuts = blocks(values.size - 1, POINTS_AT_ONCE)
    steps = [float(np.abs(np.diff(values[start : stop + 1])).sum()) for start, stop in cuts]
    whole, before = sum(steps), 0.0
    for (start, stop), step in zip(cuts, steps, strict=True):
        if whole > 0:
            some = np.cumsum(np.abs(np.diff(values[start : stop + 1])))
            way[start + 1 : stop + 1] += (before + some) / whole
        before += step
