"""Means over slices, each slice once: how scores of several data sets are put together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.errors import MetricError, SliceError
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.listings.table import Table
from fastbcubed.runtime.counts import whole_number
from fastbcubed.sources.arrays import from_texts, table_of, to_numpy


def macro_of(
    slices: Table, name: str, metrics: Sequence[Metric], beta: float, min_items: int, f_of_means: bool
) -> Table:
    """Return mean and standard deviation of each score over the slices of at least so many items."""
    min_items = whole_number(min_items, "min_items", "items", least=1)
    n_items = to_numpy(slices["n_items"])
    large = n_items >= min_items
    if not large.any():
        raise SliceError(
            f"no slice of {name} has {min_items} items; the largest has {n_items.max(initial=0)}. Lower min_items="
        )
    chosen = [m for m in metrics if m.name in slices.column_names]
    found = {m.name: _mean_and_sd(to_numpy(slices[m.name])[large]) for m in chosen}
    if f_of_means:
        means = {score: mean for score, (mean, _, _) in found.items()}
        found |= {
            m.name: (_combined(m, means, beta), math.nan, found[m.name][2]) for m in chosen if m.combine
        }
    mean, sd, n = zip(*found.values(), strict=True) if found else ((), (), ())
    columns: dict[str, Any] = {
        "score": from_texts(list(found)),
        "mean": np.array(mean, np.float64),
        "sd": np.array(sd, np.float64),
        "n_slices": np.array(n, np.int64),
    }
    return Table(table_of(columns))


def _mean_and_sd(scores: NDArray[np.float64]) -> tuple[float, float, int]:
    """Return mean, standard deviation and number of the scores that there are; weights of 0 leave a slice none."""
    known = scores[~np.isnan(scores)]
    mean = math.fsum(known.tolist()) / known.size if known.size else math.nan
    sd = float(np.std(known, ddof=1)) if known.size > 1 else math.nan
    return mean, sd, int(known.size)


def _combined(metric: Metric, means: dict[str, float], beta: float) -> float:
    """Return a score of the means of those that it is combined from."""
    missing = [need.name for need in metric.needs if need.name not in means]
    if missing:
        raise MetricError(
            f"f_of_means works {metric.name} out from {' and '.join(missing)}, which the slices do not have; name "
            "them in metrics="
        )
    assert metric.combine is not None
    return float(metric.combine(means, beta))
