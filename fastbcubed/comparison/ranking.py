"""Ranks of runs by each score, and how far two scores rank runs alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pyarrow as pa

from fastbcubed.metrics.metric import Metric
from fastbcubed.sources.arrays import from_texts, table_of
from fastbcubed.uncertainty.intervals import without_rounding


def directed(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the scores of which more, or less, is better."""
    return [metric for metric in metrics if metric.best != "neither"]


def lead_score(metrics: Sequence[Metric]) -> str | None:
    """Return the score that runs are ranked by: F1, else the first of which more, or less, is better."""
    known = [metric.name for metric in directed(metrics)]
    return "f1" if "f1" in known else next(iter(known), None)


def _goodness(metric: Metric, overall: Mapping[str, Mapping[str, float]]) -> list[float]:
    """Return the score of each run, turned so that more is better."""
    sign = 1.0 if metric.best == "higher" else -1.0
    return [sign * own[metric.name] for own in overall.values()]


def ranks(metrics: Sequence[Metric], overall: Mapping[str, Mapping[str, float]]) -> pa.Table:
    """Return the rank of each run by each score; runs that are equal share the best of their ranks."""
    columns: dict[str, pa.Array] = {"run": from_texts(list(overall))}
    for metric in directed(metrics):
        values = _goodness(metric, overall)
        own = [
            None if math.isnan(value) else 1 + sum(_order(other, value) > 0 for other in values)
            for value in values
        ]
        columns[metric.name] = pa.array(own, pa.int64())
    return table_of(columns)


def agreement(metrics: Sequence[Metric], overall: Mapping[str, Mapping[str, float]]) -> pa.Table:
    """Return Kendall's tau-b between the scores, over all pairs of runs."""
    chosen = directed(metrics)
    orders = {
        metric.name: [_order(a, b) for a, b in combinations(_goodness(metric, overall), 2)]
        for metric in chosen
    }
    columns: dict[str, pa.Array] = {"score": from_texts(list(orders))}
    for name, own in orders.items():
        columns[name] = np.array([_tau(own, other) for other in orders.values()], np.float64)
    return table_of(columns)


def _order(a: float, b: float) -> int:
    """Return 1, 0 or -1 as a is better than b, the same, or worse; 0 if one is not defined."""
    delta = without_rounding(a - b, max(abs(a), abs(b)))
    return int(delta > 0) - int(delta < 0)


def _tau(a: Sequence[int], b: Sequence[int]) -> float:
    """Return tau-b from the orders of pairs; NaN where a score has no two different runs.

    >>> round(_tau([1, 1, 0], [1, -1, 1]), 6), _tau([0, 0], [1, 1])
    (0.0, nan)
    """
    both = math.sqrt(sum(map(abs, a)) * sum(map(abs, b)))
    return sum(x * y for x, y in zip(a, b, strict=True)) / both if both else math.nan
