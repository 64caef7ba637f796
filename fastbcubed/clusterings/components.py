"""Links → the clusters that they connect: the connected components, at one threshold of the score or at several."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.clusterings.links import Links
from fastbcubed.errors import EvaluationWarning, OptionError
from fastbcubed.runtime.choices import is_bare
from fastbcubed.runtime.pool import blocks
from fastbcubed.sources.arrays import from_numpy
from fastbcubed.sources.link_columns import LinkColumns


@dataclass(frozen=True)
class Connected:
    """How links became a clustering.

    Attributes
    ----------
    n_links, n_connecting : int
        How many links there were, and how many of them connect.
    columns : LinkColumns
        Where they were read from.
    threshold : float or None
        The score that links have to reach, if they have to.
    ascending : bool
        Whether they reach it from above.
    complete : bool
        Whether all items were given; else those without a link are not among its items, and are alone.
    """

    n_links: int
    n_connecting: int
    columns: LinkColumns
    threshold: float | None
    ascending: bool
    complete: bool


def connect(
    links: Links, threshold: float | None = None, *, ascending: bool = False
) -> tuple[NDArray[Any], Connected]:
    """Return the component of each item by the links that reach a threshold, or by all; and how that came."""
    if threshold is None:
        n_connecting = len(links)
        labels = np.arange(len(links.items), dtype=links.left.dtype)
        kernels.components.find_components(links.left, links.right, labels)
    else:
        n_connecting = int(np.count_nonzero(links.reaches(threshold, ascending=ascending)))
        (labels,) = connect_at(links, [threshold], ascending=ascending)
    return labels, Connected(len(links), n_connecting, links.columns, threshold, ascending, links.complete)


def connect_at(links: Links, thresholds: Sequence[float], *, ascending: bool = False) -> list[NDArray[Any]]:
    """Return the component of each item by the links that reach each threshold, in the order of the thresholds.

    Components are counted from 0 in the order of the items. They only grow as the threshold is relaxed, so each link
    is looked at once, at the strictest one that it reaches.
    """
    strictest_first = sorted(range(len(thresholds)), key=lambda k: thresholds[k], reverse=not ascending)
    found: list[Any] = [None] * len(thresholds)
    parents = np.arange(len(links.items), dtype=links.left.dtype)
    joined = np.zeros(len(links), bool)
    for k in strictest_first:
        for start, stop in blocks(len(links)):
            own = slice(start, stop)
            reached = links.reaches(thresholds[k], own, ascending=ascending)
            new = reached & ~joined[own]
            kernels.components.join_pairs(links.left[own][new], links.right[own][new], parents)
            joined[own] = reached
        found[k] = parents.copy()
        kernels.components.number_components(found[k])
    return found


def wide_table(links: Links, thresholds: Sequence[float], *, ascending: bool = False) -> pa.Table:
    """Return the items, and their cluster at each threshold, in columns that are named as Splink names them."""
    labels = connect_at(links, thresholds, ascending=ascending)
    names = [*links.items.names, *(column_at(threshold, links.columns.score) for threshold in thresholds)]
    return pa.table([*links.items.parts, *map(from_numpy, labels)], names=names)


def column_at(threshold: float, score: str | None) -> str:
    """Return the name of the column of clusters at a threshold.

    Examples
    --------
    >>> column_at(0.95, "match_probability"), column_at(1.0, "match_probability"), column_at(-2.0, "match_weight")
    ('cluster_p_0_95', 'cluster_p_1_0', 'cluster_mw_-2')
    """
    name = (score or "").lower()
    kind = "p_" if "probability" in name else "mw_" if name == "match_weight" else ""
    digits = np.format_float_positional(threshold, trim="0" if kind == "p_" else "-")
    return f"cluster_{kind}{digits.replace('.', '_')}"


def as_thresholds(thresholds: Any) -> list[float]:
    """Return several thresholds, or one, or raise OptionError."""
    if isinstance(thresholds, (int, float, np.number)):
        return [as_threshold(thresholds)]
    if isinstance(thresholds, (str, bytes)) or not isinstance(thresholds, Iterable) or is_bare(thresholds):
        raise OptionError(
            f"thresholds is a list of numbers, scores that links have to reach, not {thresholds!r}."
        )
    found = list(map(as_threshold, thresholds))
    if not found:
        raise OptionError("thresholds is empty. Name the scores that links have to reach.")
    return found


def as_threshold(threshold: Any) -> float:
    """Return a threshold, or raise OptionError."""
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.integer, np.floating)):
        raise OptionError(f"threshold is a number, the score that links have to reach, not {threshold!r}.")
    if math.isnan(threshold):
        raise OptionError(
            "threshold is NaN, which no score reaches; it is the score that links have to reach."
        )
    return float(threshold)


def warn_if_none_reaches(links: Links, threshold: float, *, ascending: bool, stacklevel: int) -> None:
    """Warn if there are links, and none of them reaches a threshold."""
    if not len(links) or links.reaches(threshold, ascending=ascending).any():
        return
    assert links.scores is not None
    least, most = links.scores.min(), links.scores.max()
    warnings.warn(
        f"No link of {links.name} has a score of {threshold:g} or {'less' if ascending else 'more'}: those in column "
        f"{links.columns.score!r} go from {least:g} to {most:g}. Every item is alone.",
        EvaluationWarning,
        stacklevel=stacklevel,
    )
