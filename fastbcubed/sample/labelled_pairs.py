"""Precision, recall and F1 of pairs, estimated from labelled pairs, with errors by connected component."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed import kernels
from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    JudgementError,
    OptionError,
    OverlapError,
    WeightError,
    arg,
    first_few,
)
from fastbcubed.inputs.arrays import join_pieces
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.files import open_stream
from fastbcubed.inputs.id_columns import Column, comparable_keys, in_order_of
from fastbcubed.inputs.link_columns import TWO_TABLES, LinkRequest, choose_links
from fastbcubed.inputs.links import Faults, as_links, read_blocks, rows_of_links
from fastbcubed.inputs.pair import one_side
from fastbcubed.inputs.reading_notes import reading_of
from fastbcubed.inputs.side_columns import side_requests
from fastbcubed.inputs.tables import DEFAULT, NAMED, ColumnName, is_array, listed
from fastbcubed.inputs.verdicts import CODES, DIFFERENT, NAMES, SAME, UNJUDGED, UNSURE
from fastbcubed.results.intervals import interval
from fastbcubed.results.standard_errors import error_and_freedom, powers_of
from fastbcubed.sample.judged_pairs import Estimate, listed_estimates
from fastbcubed.types import Floats, Int64s

#: The name of the labelled pairs in messages.
WHERE = "the labelled pairs"


class Labelled(NamedTuple):
    """Distinct labelled pairs: both items, verdicts, weights, and the connected component of each pair."""

    left: Column
    right: Column
    verdicts: Int64s
    weights: Floats
    components: Int64s
    n_unjudged: int  #: rows without a verdict, which are left out
    where: str
    reading: dict[str, Any] | None = None  #: how the columns were read


def read_labelled(labelled: Any, asked: LinkRequest) -> Labelled:
    """Read and check labelled pairs from any form that links can have; the column of scores has the weights."""
    given = as_links(labelled, WHERE)
    stream = open_stream(given)
    rows = rows_of_links(given, WHERE) if stream is None else stream.without_rows(WHERE)
    why, weight = NAMED, asked.score
    if asked.verdict is None:
        why = DEFAULT
        named = [name for name in rows.names if name.lower() in NAMES]
        if len(named) != 1 and NAMES[0] not in named:
            raise ColumnError(
                f"{'Several columns' if named else 'No column'} of {rows.where} may hold the verdicts "
                f"({listed(named or rows.names)}). Name it with {arg('verdict', *named or (...,))}."
            )
        asked = replace(asked, verdict=NAMES[0] if NAMES[0] in named else named[0])
    columns = choose_links(rows, asked)
    columns = columns._replace(score=weight, scores=(), reasons={**columns.reasons, "verdict": why})
    source, faults = rows if stream is None else stream, Faults(rows.where)
    found = [
        each
        for each in read_blocks(source, columns, rows.where)
        if not faults.are_in(each._replace(scores=None))
    ]
    faults.refuse()
    ends = [_joined([getattr(each, side) for each in found]) for side in ("left", "right")]
    verdicts = np.concatenate([each.verdicts for each in found if each.verdicts is not None])
    weights = np.ones(verdicts.size)
    if weight is not None:
        weights = np.concatenate([each.scores for each in found if each.scores is not None])
        if (wrong := np.flatnonzero(~(np.isfinite(weights) & (weights > 0)))).size:
            raise WeightError(
                "Weights of pairs must be positive numbers, the inverse of their sampling probability, "
                f"but {wrong.size} of {weights.size} in column {weight!r} of {rows.where} are not (first "
                f"rows: {first_few(wrong.tolist())})."
            )
    right_ends = in_order_of(ends[0], ends[1], strict=False)
    return _each_once(ends[0], right_ends, verdicts, weights, rows.where)._replace(reading=columns.to_dict())


def _joined(columns: list[Column]) -> Column:
    """Return the concatenation of columns."""
    if len(columns) == 1:
        return columns[0]
    first = columns[0]
    parts = [
        join_pieces(list(pieces), first.where)
        for pieces in zip(*(each.parts for each in columns), strict=True)
    ]
    found = Column(first.names, parts, first.where)
    found.untyped = first.untyped
    return found


def _each_once(left: Column, right: Column, verdicts: Int64s, weights: Floats, where: str) -> Labelled:
    """Return the distinct judged pairs, in either order of items; raise if verdicts or weights of a pair differ."""
    judged = np.flatnonzero(verdicts != UNJUDGED)
    if not judged.size:
        raise JudgementError(
            f"No pair of {where} has a verdict, such as same or different, yes or no, 1 or 0."
        )

    def shown(pairs: Int64s) -> str:
        return first_few(list(zip(left.first_of(pairs), right.first_of(pairs), strict=True)))

    keys = comparable_keys([left, right])
    ids, codes = np.unique(np.concatenate([each[judged] for each in keys]), return_inverse=True)
    one, other = codes[: judged.size].astype(np.int64), codes[judged.size :].astype(np.int64)
    if (alone := judged[one == other]).size:
        raise JudgementError(
            f"{alone.size} of {judged.size} judged pairs of {where} pair an item with itself (first: "
            f"{shown(alone)}). Remove them; if two tables use the same ids, name the tables with "
            f"{TWO_TABLES}."
        )
    pairs = np.minimum(one, other) * ids.size + np.maximum(one, other)
    # within a pair, decided verdicts precede unsure ones
    order = np.lexsort((np.arange(judged.size), verdicts[judged] < 0, pairs))
    begins = np.flatnonzero(np.diff(pairs[order], prepend=-1))
    of_first = order[begins][np.cumsum(np.diff(pairs[order], prepend=-1) != 0) - 1]
    differ = (verdicts[judged][order] >= 0) & (verdicts[judged][order] != verdicts[judged][of_first])
    if (wrong := judged[order[differ]]).size:
        raise JudgementError(
            f"{wrong.size} rows of {where} have a verdict that contradicts another on the same two items (first: "
            f"{shown(wrong)}). Decide on one, or write unsure in all of them."
        )
    if (wrong := judged[order[weights[judged][order] != weights[judged][of_first]]]).size:
        raise WeightError(
            f"{wrong.size} rows of {where} have a different weight from another row of the same two items "
            f"(first: {shown(wrong)}). Give each pair one weight."
        )
    components = np.arange(ids.size)
    kernels.components.find_components(one, other, components)
    kept = np.sort(order[begins])
    rows = judged[kept]
    return Labelled(
        left.chosen(rows), right.chosen(rows), verdicts[rows], weights[rows], components[one[kept]],
        verdicts.size - judged.size, where,
    )  # fmt: skip


def runs_of(prediction: Any) -> dict[str | None, Any]:
    """Return the predictions by run name; a single prediction, which may be a dict from item to cluster, has None."""
    if isinstance(prediction, Mapping) and prediction and all(map(_is_clustering, prediction.values())):
        if strange := [name for name in prediction if not isinstance(name, str)]:
            raise OptionError(f"Run names must be strings, not {first_few(strange)}.")
        return dict(prediction)
    return {None: prediction}


def _is_clustering(value: Any) -> bool:
    """Return whether a value of a dict is a clustering rather than a label; a string is one if it is a table's path."""
    if isinstance(value, str):
        return (
            value.endswith((".parquet", ".csv", ".arrow", ".feather", ".jsonl", ".json", ".tsv"))
            or "://" in value
        )
    return isinstance(value, Clustering | Mapping) or is_array(value) or hasattr(value, "__fspath__")


def are_together(labelled: Labelled, side: Clustering) -> tuple[Any, int]:
    """Return whether the items of each pair share a cluster, (n_pairs,), and how many pairs have an item in none."""
    if side.items is None:
        raise ColumnError(
            f"{side.name} has labels without item ids, so pairs cannot be looked up in it. Give a table with "
            "items, a dict from item to cluster, or Clustering.from_labels(labels, items=ids)."
        )
    side.items.refuse_nulls()
    side.labels.refuse_nulls()
    items = in_order_of(labelled.left, side.items, strict=False)
    left, right, keys = comparable_keys([labelled.left, labelled.right, items])
    ids, codes = np.unique(np.concatenate([left, right]), return_inverse=True)
    at = np.minimum(np.searchsorted(ids, keys), ids.size - 1)
    rows = np.flatnonzero(ids[at] == keys)
    if not rows.size and not side.omits_singletons:
        there, here = (
            first_few(each.first_of(np.arange(min(3, len(each))))) for each in (labelled.left, items)
        )
        raise AlignmentError(
            f"No item of {labelled.where} is in {side.name} (items such as {there} there, {here} here). "
            "Write ids in the same way on both sides."
        )
    at, labels = at[rows], side.labels.keys()[rows]
    row_of = np.full(ids.size, -1)
    row_of[at[::-1]] = np.arange(rows.size)[::-1]
    if (twice := rows[labels != labels[row_of[at]]]).size:
        raise OverlapError(
            f"{twice.size} rows of {side.name} put an item of {labelled.where} into a second cluster (first: "
            f"{first_few(side.items.first_of(twice))}). Pair scores of overlapping clusters cannot be "
            "estimated."
        )
    one, other = row_of[codes[: left.size]], row_of[codes[left.size :]]
    known = (one >= 0) & (other >= 0)
    together = known.copy()
    together[known] = labels[one[known]] == labels[other[known]]
    return together, 0 if side.omits_singletons else int(np.count_nonzero(~known))


class Share(NamedTuple):
    """An estimated score of pairs."""

    estimate: Estimate
    n_components: int  #: number of connected components of the pairs that count
    n_outside: int  #: number of pairs with an item in no cluster


#: Coefficients of true positive, false positive and false negative pairs in the numerator and in the denominator.
SCORES = {
    "pair_precision": ((1, 0, 0), (1, 1, 0)),
    "pair_recall": ((1, 0, 0), (1, 0, 1)),
    "pair_f1": ((2, 0, 0), (2, 1, 1)),
}


def shares(labelled: Labelled, side: Clustering, level: float) -> dict[str, Share]:
    """Estimate pair precision, recall and F1 of a clustering."""
    together, n_outside = are_together(labelled, side)
    same, different, unsure = (labelled.verdicts == CODES[each] for each in (SAME, DIFFERENT, UNSURE))
    kinds = [together & same, together & different, ~together & same]
    mass = [
        math.fsum(labelled.weights[each].tolist()) for each in (*kinds, together & unsure, ~together & unsure)
    ]
    tp, fp, fn, more, others = mass
    found = {}
    for name, (counted, of) in SCORES.items():
        part, whole = (
            labelled.weights * sum(times * kind for times, kind in zip(each, kinds, strict=True))
            for each in (counted, of)
        )
        value, se, low, high, n_units = _ratio(part, whole, labelled.components, level)

        def share(tp: float, fp: float, fn: float, counted: Any = counted, of: Any = of) -> float:
            whole = of[0] * tp + of[1] * fp + of[2] * fn
            return counted[0] * tp / whole if whole else math.nan

        of_score = sum(each for each, times in zip(kinds, of, strict=True) if times)
        n_unsure = int(np.count_nonzero(together & unsure if name == "pair_precision" else unsure))
        own = Estimate(
            value, se, low, high, int(np.count_nonzero(of_score)), n_unsure, labelled.n_unjudged,
            share(tp, fp + more, fn + others), share(tp + more, fp, fn),
        )  # fmt: skip
        found[name] = Share(own, n_units, n_outside)
    return found


def _ratio(
    part: Floats, whole: Floats, components: Int64s, level: float
) -> tuple[float, float, float, float, int]:
    """Return a ratio of sums over pairs, its standard error and interval by component, and the number of components."""
    parts, wholes = (np.bincount(components, each) for each in (part, whole))
    own = wholes > 0
    parts, wholes = parts[own], wholes[own]
    m, total = int(own.sum()), math.fsum(wholes.tolist())
    if not m:
        return math.nan, math.nan, math.nan, math.nan, 0
    value = math.fsum(parts.tolist()) / total
    powers = powers_of((parts - value * wholes) / total, lambda each: math.fsum(each.tolist()))
    error, df = map(float, error_and_freedom(powers, m))
    effective = total * total / math.fsum((wholes**2).tolist())
    ends = interval(
        value, error, df=df if error else effective, level=level, low=0.0, high=1.0, effective=effective
    )
    return value, error, *ends, m


def estimate(
    labelled: Labelled, prediction: Any, level: float, item: ColumnName, cluster: ColumnName
) -> tuple[Any, dict[str, Any]]:
    """Return the table of estimates of all runs, and how the columns of pairs and predictions were read."""
    rows: list[tuple[str | None, str, Share]] = []
    readings: dict[str | None, Any] = {}
    for run, given in runs_of(prediction).items():
        name = "the prediction" if run is None else f"run {run!r}"
        asked = side_requests(item, cluster)[1]._replace(name=name)
        side = one_side(given, asked, None, False)
        readings[run] = reading_of(side)
        rows += [(run, *each) for each in shares(labelled, side, level).items()]
    table = listed_estimates(
        [(run, score, each.estimate) for run, score, each in rows], None if None in readings else "run"
    )
    for name in Share._fields[1:]:
        table = table.append_column(name, pa.array([getattr(each, name) for _, _, each in rows], pa.int64()))
    of_runs = readings[None] if None in readings else readings
    return table, {"labelled": labelled.reading, "prediction": of_runs}
