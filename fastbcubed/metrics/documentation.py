"""The documentation of the functions in `fastbcubed.metrics`, put together from the registry."""

from __future__ import annotations

from functools import lru_cache
from inspect import cleandoc
from math import inf
from textwrap import fill
from typing import NamedTuple

from fastbcubed.metrics.metric import REFERENCES, Metric, Page

_PAGE = """{summary}

Parameters
----------
{labels}
{options}sample_weight : array-like of shape (n_items,), optional
    {weight}
{contingency}
Returns
-------
{returns}

Raises
------
FastBCubedError
    If there is no item, if the two sides differ in length, or if a label or a weight is missing
    or cannot be one. Every error below is one, too.
{in_place}{undefined}
Notes
-----
{notes}

References
----------
{references}

Examples
--------
{example}
"""


class Option(NamedTuple):
    """A parameter that a function has besides: its description, and when it raises OptionError."""

    text: str
    error: str


BETA = Option(
    "beta : float, default 1.0\n"
    "    How many times as important recall is as precision: 0 gives precision, infinity recall.\n",
    ", or if beta is negative",
)
WEIGHT_OF_COMPLETENESS = Option(
    "beta : float, default 1.0\n"
    "    Weight of completeness: 0 gives homogeneity, infinity completeness. It is not squared.\n",
    ", or if beta is negative",
)
SHARE_OF_CLUSTER_ENTROPY = Option(
    "beta : float, default 0.5\n    Share of the cluster entropy, from 0 to 1.\n",
    ", or if beta is not between 0 and 1",
)
BASE = Option(
    "base : float, default {}\n    Base of the logarithms: 2 for bits, `math.e` for nats.\n",
    ", or if there is no such base",
)
AVERAGE = Option(
    'average_method : {"arithmetic", "geometric", "min", "max", "joint"}\n'
    "    What stands in the place of the arithmetic mean of H(C) and H(K): another mean of them, the smaller,\n"
    "    the larger, or the joint entropy.\n",
    ", or if there is no such average",
)
ZERO_DIVISION = Option(
    "    A null says that the side lacks the item.\n"
    "zero_division : float, default 0.0\n"
    "    What 0 / 0 gives. Only MUC (entities of one mention) and BLANC (no link) ever come to that.\n",
    ", or if zero_division is no number",
)
NO_OPTION = Option("", "")

_LABELS = """labels_true, labels_pred : array-like of shape (n_items,)
    Cluster label of each item, both in the same item order."""

_LABELS_OF_DIFF = """labels_baseline, labels_experiment : array-like of shape (n_items,)
    Cluster label of each item before and after, both in the same item order."""

_LABELS_OF_THREE = """labels_baseline, labels_experiment, labels_true : array-like of shape (n_items,)
    Cluster label of each item before, after and in truth, all in the same item order."""

_CONTINGENCY = """contingency : Contingency, optional
    The cells, as `fastbcubed.contingency` makes them, in place of labels and weights.
"""

_IN_PLACE = """OptionError
    If there are neither labels nor a contingency, or both{or_option}.
"""

_LABELS_OF_COVERS = """labels_true, labels_pred : array-like of shape (n_items,), dict or Clustering
    Cluster label of each item, or a set of labels for each, both in the same item order; or a dict from
    item to cluster or set of clusters; or a clustering with a row per membership."""

_MATRIX = (
    "For each item, tp, fp, fn and tn weigh the items that are with it on both sides (itself"
    " included), on the predicted side alone, on the true side alone, and on neither."
)


def document(
    metric: Metric,
    called: str = "",
    *,
    option: Option = NO_OPTION,
    returns: str = "",
    on_covers: bool = False,
) -> str:
    """Return the docstring of the function of a score, `called` as the score or as one of its further names.

    `returns` says what it returns, where that is not the score alone; `on_covers` that it takes overlapping
    clusterings.
    """
    page = metric.also[called] if called else Page()
    example = page.example or metric.example.replace(f"{metric.name}(", f"{called or metric.name}(")
    weight = "Positive weight of each item, inside the clusters and in the mean."
    reasons = []
    if metric.unweighted_only:
        weight = "Not for this score, in which all items count equally."
        reasons.append("there are weights")
    if metric.uses_tn or metric.labelled_only:
        reasons.append("the contingency counts items outside the truth")
    return _PAGE.format(
        summary=metric.summary,
        labels=_labels(metric, on_covers),
        options=option.text,
        weight=weight,
        returns=returns or f"float\n    {_range(metric)}",
        contingency="" if metric.takes_three else _CONTINGENCY,
        in_place="" if metric.takes_three else _IN_PLACE.format(or_option=option.error),
        undefined=f"MetricError\n    If {', or '.join(reasons)}.\n" if reasons else "",
        notes=_notes(metric, page.note),
        references=_wrap(f".. [1] {REFERENCES.get(metric.source, 'Defined by this library.')}"),
        example=cleandoc(example),
    )


def _labels(metric: Metric, on_covers: bool) -> str:
    if metric.takes_three:
        return _LABELS_OF_THREE
    return _LABELS_OF_COVERS if on_covers else _LABELS_OF_DIFF if metric.family == "diff" else _LABELS


def _range(metric: Metric) -> str:
    end = "." if metric.best == "neither" else f"; {metric.best} is better."
    if metric.high == inf:
        return f"At least {metric.low:g}{end}"
    if metric.low == -inf:
        return f"At most {metric.high:g}{end}"
    return f"From {metric.low:g} to {metric.high:g}{end}"


def _notes(metric: Metric, note: str) -> str:
    cost = "One pass over the items counts the cells; the rest is linear in the cells"
    cost += ", and with weights in the items." if metric.family == "elm" else "."
    notes = [f"Definition: {metric.definition}.", cost]
    if "tp" in metric.definition:
        notes.insert(1, _MATRIX)
    if about := f"{metric.note} {note}".strip():
        notes.append(about)
    if metric.experimental:
        notes.append("Experimental: the definition was put together from summaries of [1]_.")
    return "\n\n".join(map(_wrap, notes))


@lru_cache
def _wrap(text: str) -> str:
    indent = "   " if text.startswith("..") else ""
    return fill(text, 96, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
