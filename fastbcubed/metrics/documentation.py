"""The documentation of the functions in `fastbcubed.metrics`, put together from the registry."""

from __future__ import annotations

from inspect import cleandoc
from math import inf
from textwrap import fill

from fastbcubed.metrics.metric import REFERENCES, Metric

_PAGE = """{summary}

Parameters
----------
labels_true, labels_pred : array-like of shape (n_items,)
    Cluster label of each item, both in the same item order.
{options}sample_weight : array-like of shape (n_items,), optional
    {weight}
contingency : Contingency, optional
    The cells, as `fastbcubed.contingency` makes them, in place of labels and weights.

Returns
-------
{returns}

Raises
------
FastBCubedError
    If there is no item, if the two sides differ in length, or if a label or a weight is missing
    or cannot be one. Every error below is one, too.
OptionError
    If there are neither labels nor a contingency, or both{or_option}.
{undefined}
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

BETA = """beta : float, default 1.0
    How many times as important recall is as precision: 0 gives precision, infinity recall.
"""

_MATRIX = (
    "For each item, tp, fp, fn and tn weigh the items that are with it on both sides (itself"
    " included), on the predicted side alone, on the true side alone, and on neither."
)


def document(
    metric: Metric, example: str, *, options: str = "", or_option: str = "", returns: str = ""
) -> str:
    """Return the docstring of the function for a score.

    Parameters
    ----------
    metric : Metric
        The score.
    example : str
        The doctest.
    options : str
        What parameters the function has besides, each with its description.
    or_option : str
        When these raise OptionError, such as ", or if beta is negative".
    returns : str
        What it returns, where that is not the score alone.
    """
    weight = "Positive weight of each item, inside the clusters and in the mean."
    reasons = []
    if metric.unweighted_only:
        weight = "Not for this score, in which all items count equally."
        reasons.append("there are weights")
    if metric.uses_tn or metric.labelled_only:
        reasons.append("the contingency counts items outside the truth")
    return _PAGE.format(
        summary=metric.summary,
        options=options,
        weight=weight,
        returns=returns or f"float\n    {_range(metric)}",
        or_option=or_option,
        undefined=f"MetricError\n    If {', or '.join(reasons)}.\n" if reasons else "",
        notes=_notes(metric),
        references=_wrap(f".. [1] {REFERENCES.get(metric.source, 'Defined by this library.')}"),
        example=cleandoc(example),
    )


def _range(metric: Metric) -> str:
    end = "." if metric.best == "neither" else f"; {metric.best} is better."
    if metric.high == inf:
        return f"At least {metric.low:g}{end}"
    if metric.low == -inf:
        return f"At most {metric.high:g}{end}"
    return f"From {metric.low:g} to {metric.high:g}{end}"


def _notes(metric: Metric) -> str:
    cost = "One pass over the items counts the cells; the rest is linear in the cells"
    cost += ", and with weights in the items." if metric.family == "elm" else "."
    notes = [f"Definition: {metric.definition}.", cost]
    if "tp" in metric.definition:
        notes.insert(1, _MATRIX)
    if metric.note:
        notes.append(metric.note)
    if metric.experimental:
        notes.append("Experimental: the definition was put together from summaries of [1]_.")
    return "\n\n".join(map(_wrap, notes))


def _wrap(text: str) -> str:
    indent = "   " if text.startswith("..") else ""
    return fill(text, 96, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
