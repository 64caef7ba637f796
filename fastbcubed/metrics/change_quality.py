"""Scores that judge a change by the truth, worked out of joint cells: from there on they are means like any other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fastbcubed.cells.joint import Joint
from fastbcubed.metrics.metric import Floats, Metric


def judged(joint: Joint, metrics: Iterable[Metric]) -> list[Metric]:
    """Return scores of three clusterings as scores of the table of joint cells, which all that aggregates takes."""
    return [_of_table(joint, metric) for metric in metrics]


def _of_table(joint: Joint, metric: Metric) -> Metric:
    if metric.needs:
        return replace(metric, needs=tuple(judged(joint, metric.needs)))
    assert metric.of_sets is not None
    scores = metric.of_sets(joint.sets)
    return replace(metric, of_sets=None, formula=_itself, matrix=lambda _: (scores, scores, scores))


def _itself(scores: Floats, fp: Floats, fn: Floats, tn: Floats) -> Floats:
    return scores
