"""The clusters that links connect at one or several thresholds, and the warnings about them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import EvaluationWarning, Message, OptionError, arg, first_few, quoted
from fastbcubed.inputs.arrays import from_numpy
from fastbcubed.inputs.link_columns import LinkColumns
from fastbcubed.inputs.links import JoinedLinks, Links, Span
from fastbcubed.runtime.arguments import as_float, is_bare, is_whole, number
from fastbcubed.runtime.threads import blocks


@dataclass(frozen=True)
class Connected:
    """Summary of how links were connected into clusters."""

    n_links: int
    n_connecting: int
    columns: LinkColumns  #: the columns that the links were read from
    threshold: float | None  #: the score that a link needs to connect its items, if any
    ascending: bool  #: whether scores are distances, so that links at or below the threshold connect
    complete: (
        bool  #: whether all items were given; if not, items without a link are absent and count as singletons
    )
    name: str  #: name of the links in messages
    span: Span | None  #: the range of the scores, if there are any
    n_clusters: int
    n_singletons: int  #: number of clusters of one item
    largest: int  #: number of items in the largest cluster
    n_apart: int = 0  #: number of pairs judged not to match
    n_unsure: int = 0  #: number of pairs without a verdict, or judged unsure
    n_contradicted: int = 0  #: number of pairs judged not to match that are nevertheless in one cluster
    contradicted: tuple[Any, ...] = ()  #: the first few of these pairs


def connected(
    links: JoinedLinks,
    n_connecting: int,
    labels: NDArray[Any],
    threshold: float | None = None,
    *,
    ascending: bool = False,
    by_position: bool = False,
) -> Connected:
    """Return the summary of connected links, including pairs judged not to match that ended up in one cluster.

    If items are identified `by_position`, their codes are these positions.
    """
    sizes = np.bincount(labels) if labels.size else np.zeros(1, np.int64)
    made = Connected(
        len(links), n_connecting, links.columns, threshold, ascending, links.complete, links.name, links.span,
        int(np.count_nonzero(sizes)), int(np.count_nonzero(sizes == 1)), int(sizes.max()),
    )  # fmt: skip
    if (apart := links.apart) is None:
        return made
    rows = np.flatnonzero(labels[apart.left] == labels[apart.right])
    few: Any = [codes[rows[:3]] for codes in (apart.left, apart.right)]
    few = [codes.tolist() if by_position else links.items.take(codes).to_pylist() for codes in few]
    shown = tuple(zip(*few, strict=True))
    return replace(
        made, n_apart=len(apart), n_unsure=apart.n_unsure, n_contradicted=rows.size, contradicted=shown
    )


#: Range of thresholds that are probably percentages if scores are at most 1.
PERCENT = Span(2.0, 100.0)
#: Warnings about clusters made from links: code and condition.
CODES = {
    "all-links-joined": "Without a threshold, links with low scores join items, too.",
    "threshold-out-of-range": "The threshold is beyond all link scores.",
    "verdicts-contradicted": "Links connect items that were judged not to match.",
}


def warnings_of(made: Connected) -> list[dict[str, Any]]:
    """Return the warnings about connected links: code, level "warning", message and figures."""
    found = []
    for code, message, figures in (*_of_scores(made), *_of_verdicts(made)):
        found.append({"code": code, "level": "warning", "message": Message(message), **figures})
    return found


def warn_of(made: Connected, *, stacklevel: int) -> None:
    """Issue the warnings about connected links."""
    for each in warnings_of(made):
        warnings.warn(EvaluationWarning(each["message"], each["code"]), stacklevel=stacklevel + 1)


def _of_scores(made: Connected) -> Iterator[tuple[str, str, dict[str, Any]]]:
    span, threshold, columns = made.span, made.threshold, made.columns
    if span is None or not made.n_links:
        return
    least, most = as_typed(span.least), as_typed(span.most)
    ends = f"from {least} to {most}"
    figures: dict[str, Any] = {"least": span.least, "most": span.most, "threshold": threshold}
    if threshold is None:
        score = columns.score or columns.scores[0]
        # Match weights are log odds, of which 0 is neutral; of other scores the lower half is considered weak.
        weak = 0.0 if "weight" in score.lower() or span.least < 0 else span.most / 2
        if span.least < weak:
            said = (
                f"All {made.n_links:,} links of {made.name} were joined, whatever their {score}, which "
                f"ranges {ends}: {made.n_clusters:,} cluster{'s' * (made.n_clusters != 1)}, the largest of "
                f"{made.largest:,} items. Pass {arg('threshold', ...)} to set the minimum score of a link."
            )
            yield "all-links-joined", said, figures
        return
    said = _out_of_range(
        span, threshold, made.n_connecting, made.name, columns.score, ascending=made.ascending
    )
    if said:
        yield "threshold-out-of-range", said, figures


def _out_of_range(
    span: Span, threshold: float, n_connecting: int, name: str, score: str | None, *, ascending: bool
) -> str:
    """Return a warning about a threshold that no score reaches, or outside [0, 1] unlike all scores; else ""."""
    if math.isinf(threshold):
        return ""
    asked = as_typed(threshold)
    are_shares = 0 <= span.least and span.most <= 1
    is_percent = are_shares and PERCENT.least <= threshold <= PERCENT.most
    beyond = is_percent if ascending else are_shares and threshold < 0
    if n_connecting and not beyond:
        return ""
    ends = f"those in column {quoted(score)} range from {as_typed(span.least)} to {as_typed(span.most)}"
    hint = f" For scores up to 1, write {asked} % as {as_typed(threshold / 100)}." if is_percent else ""
    few = "less" if ascending else "more"
    if n_connecting:
        return f"All links of {name} have a score of {asked} or {few}: {ends}. All are joined.{hint}"
    return f"No link of {name} has a score of {asked} or {few}: {ends}. Every item is a singleton.{hint}"


def warn_if_out_of_range(
    links: Links, thresholds: Sequence[float], *, ascending: bool, stacklevel: int
) -> None:
    """Warn of thresholds that no score reaches, or that lie outside [0, 1] although all scores are within."""
    if links.span is None:
        return
    for threshold in thresholds:
        n = int(np.count_nonzero(links.reaches(threshold, ascending=ascending)))
        said = _out_of_range(links.span, threshold, n, links.name, links.columns.score, ascending=ascending)
        if said:
            warnings.warn(EvaluationWarning(said), stacklevel=stacklevel + 1)


def _of_verdicts(made: Connected) -> Iterator[tuple[str, str, dict[str, Any]]]:
    if made.n_contradicted:
        n, total = made.n_contradicted, made.n_apart
        said = (
            f"{n:,} of the {total:,} pairs of {made.name} that were judged not to match "
            f"{'is' if n == 1 else 'are'} nevertheless in one cluster, because matches connect them "
            f"through other items (first: {first_few(made.contradicted)}). In each case the verdict or one "
            "of these matches is wrong."
        )
        first = [list(pair) for pair in made.contradicted]
        yield (
            "verdicts-contradicted",
            said,
            {"n_contradicted": n, "n_judged_different": total, "first": first},
        )


def connect(
    links: Links, threshold: float | None = None, *, ascending: bool = False
) -> tuple[NDArray[Any], Connected]:
    """Return each item's component under the links that reach a threshold (all links if None), and a summary."""
    if threshold is None:
        n_connecting = len(links)
        labels = np.arange(len(links.items), dtype=links.left.dtype)
        kernels.components.find_components(links.left, links.right, labels)
    else:
        n_connecting = int(np.count_nonzero(links.reaches(threshold, ascending=ascending)))
        (labels,) = connect_at(links, [threshold], ascending=ascending)
    return labels, connected(links, n_connecting, labels, threshold, ascending=ascending)


def connect_at(links: Links, thresholds: Sequence[float], *, ascending: bool = False) -> list[NDArray[Any]]:
    """Return each item's component under the links that reach each threshold, in the order of the thresholds.

    Components are numbered from 0 in the order of the items. They only grow as the threshold is relaxed, so each link
    is processed once, at the strictest threshold that it reaches.
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
    """Return the items and their cluster at each threshold as a table, with columns named as in Splink."""
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
    """Return one or more thresholds as floats, or raise OptionError."""
    if isinstance(thresholds, float) or not math.isnan(as_float(thresholds)):
        return [as_threshold(thresholds)]
    if isinstance(thresholds, (str, bytes)) or not isinstance(thresholds, Iterable) or is_bare(thresholds):
        raise OptionError(
            f"thresholds must be a list of numbers, the minimum link scores, not {quoted(thresholds)}."
        )
    found = list(map(as_threshold, thresholds))
    if not found:
        raise OptionError("thresholds is empty. Give at least one minimum link score.")
    return found


def as_threshold(threshold: Any) -> float:
    """Return a threshold as a float, or raise OptionError."""
    found = number(threshold, "threshold", "a number, the minimum link score", lambda _: True)
    beyond = math.isinf(found) and not isinstance(threshold, float | np.floating)
    if beyond or (is_whole(threshold) and int(threshold) != found):
        raise OptionError(
            f"{arg('threshold')} is {quoted(threshold)}, but scores are floats, so it would be rounded to "
            f"{found:.0f}. Use smaller scores and a smaller threshold, or pass a float."
        )
    return found


def as_typed(number: Any) -> str:
    """Return a threshold or score as text with all its digits: 0.900000001, and 5 for 5.0."""
    return str(number).removesuffix(".0")
