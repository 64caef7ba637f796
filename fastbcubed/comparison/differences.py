"""Differences between the baseline and each experiment: standard errors, intervals, and whether they hold up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import OptionError
from fastbcubed.metrics.metric import Metric
from fastbcubed.runtime.choices import is_one_of
from fastbcubed.sources.arrays import from_texts, table_of
from fastbcubed.uncertainty.intervals import Interval, t_quantile, without_rounding
from fastbcubed.uncertainty.units import Units

#: How intervals account for several experiments.
ADJUSTMENTS = ("bonferroni", "none")


@dataclass(frozen=True)
class Differences:
    """The standard errors of differences, and replicates of these, by experiment and score."""

    units: Units | None  #: None if there are no errors
    errors: Mapping[tuple[str, str], float]
    replicates: Mapping[tuple[str, str], NDArray[np.float64]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  #: what makes the errors less than they seem

    def interval(self, experiment: str, score: str, delta: float, level: float) -> Interval:
        """Return the interval of a difference: percentiles of its replicates, else by Student's t."""
        error = self.errors.get((experiment, score), math.nan)
        if math.isnan(error) or self.units is None:
            return Interval(math.nan, math.nan)
        if (experiment, score) in self.replicates:
            found = self.replicates[experiment, score]
            found = found[~np.isnan(found)]  # of replicates that draw a unit
            if not found.size:
                return Interval(math.nan, math.nan)
            low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
            return Interval(float(low), float(high))
        reach = t_quantile(level, self.units.n - 1) * error
        return Interval(delta - reach, delta + reach)


def adjusted(level: float, n_experiments: int, adjust: Any) -> float:
    """Return the confidence of each interval, so that all experiments together have `level`."""
    if not is_one_of(adjust, ADJUSTMENTS):
        raise OptionError(f"adjust is {' or '.join(map(repr, ADJUSTMENTS))}, not {adjust!r}")
    return level if adjust == "none" else 1 - (1 - level) / max(1, n_experiments)


def holds(interval: Interval) -> bool | None:
    """Tell whether an interval excludes 0; None if there is none."""
    return None if math.isnan(interval.low + interval.high) else not interval.low <= 0.0 <= interval.high


def table_of_deltas(
    baseline: str,
    experiments: Sequence[str],
    metrics: Sequence[Metric],
    overall: Mapping[str, Mapping[str, float]],
    found: Differences,
    level: float,
) -> pa.Table:
    """Return a row for each experiment and score."""
    rows = []
    for name in experiments:
        for metric in metrics:
            before, after = overall[baseline][metric.name], overall[name][metric.name]
            delta = float(without_rounding(after - before, after))
            ends = found.interval(name, metric.name, delta, level)
            error = found.errors.get((name, metric.name), math.nan)
            rows.append((name, metric.name, before, after, delta, error, *ends, holds(ends)))
    names = (
        "experiment",
        "score",
        "baseline_value",
        "experiment_value",
        "delta",
        "se",
        "low",
        "high",
        "holds",
    )
    columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())
    texts = {name: from_texts(list(columns[name])) for name in names[:2]}
    figures = {name: np.array(columns[name], np.float64) for name in names[2:8]}
    return table_of(
        {
            "baseline": from_texts([baseline] * len(rows)),
            **texts,
            **figures,
            "holds": pa.array(columns["holds"], pa.bool_()),
        }
    )
