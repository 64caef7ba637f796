"""Movers: items and true clusters by their contribution to the difference between two runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import OptionError
from fastbcubed.inputs import arrow_functions as pc
from fastbcubed.inputs.arrays import from_numpy, from_texts, to_numpy
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.pointwise import LOSSES
from fastbcubed.results import clusters
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.members import chosen_columns, with_attributes
from fastbcubed.results.outcomes import OUTCOMES
from fastbcubed.results.table import first_rows, require_limit, sortable
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.types import Floats

#: What listings are ordered by: the size of the change, or what got worse, or better.
DELTA, WORSE, BETTER = "delta", "worse", "better"
#: Losses, and what the change of each is called.
CHANGES = {"precision_loss": "precision_delta", "recall_loss": "recall_delta"}


def items_of_runs(
    runs: Mapping[str, Evaluation],
    pair: tuple[str, str],
    n_rows: int,
    columns: str | Iterable[str],
    order_by: str | None,
    limit: int | None,
) -> pa.Table:
    """Return the items that all runs score, with their contribution to the difference of two runs."""
    first = runs[pair[0]]
    names = chosen_columns(first, columns)
    rows = first.contingency.rows
    assert rows is not None
    weight = rows.weight[:n_rows]
    changes = {}
    for loss, metric in LOSSES.items():
        before, after = (aggregation.item_scores(runs[name].contingency, metric)[:n_rows] for name in pair)
        changes[CHANGES[loss]] = (before - after) * weight / first.contingency.total_weight
    total = np.sum(list(changes.values()), axis=0)
    at = _first(order_by, list(changes.values()), weight, limit)
    table = {"item": first.kept_items().ids(at), "true_cluster": first.kept_items().labels("true", at)}
    table |= {"weight": weight[at], DELTA: total[at], **{name: each[at] for name, each in changes.items()}}
    table |= {f"{name}.pred_cluster": ev.kept_items().labels("pred", at) for name, ev in runs.items()}
    for name, ev in runs.items():
        for metric in ev.metrics:
            if metric.item_name and metric.name not in _LOSS_SCORES:
                table[f"{name}.{metric.item_name}"] = aggregation.item_scores(ev.contingency, metric)[at]
    shown = with_attributes(pa.table(table), first, names, at, 2)
    return _sorted(shown, order_by, limit, "item")


_LOSS_SCORES = frozenset(metric.name for metric in LOSSES.values())


def true_clusters_of_runs(
    runs: Mapping[str, Evaluation],
    pair: tuple[str, str],
    numbers: Sequence[NDArray[np.int64]] | None,
    order_by: str | None,
    limit: int | None,
) -> pa.Table:
    """Return the true clusters: outcomes in each run, and contributions to the difference of two runs.

    `numbers` are those of the true clusters of each run; None if their codes are the same in all runs.
    """
    by_code: dict[str, dict[str, NDArray[Any]]] = {}
    own: dict[str, NDArray[np.int64] | None] = dict.fromkeys(runs)
    if numbers is not None:
        own |= dict(zip(runs, numbers, strict=True))
    n = None if numbers is None else 1 + max(int(each.max(initial=-1)) for each in numbers)
    for name, ev in runs.items():
        metrics = clusters.known_by_cluster(ev.contingency, ev.metrics, ev.beta)
        found = clusters.columns_by_code(ev.contingency, "true", metrics, ev.beta)
        by_code[name] = {key: _placed(each, own[name], n) for key, each in found.items()}
    before, after = (by_code[name] for name in pair)
    changes = {CHANGES[loss]: before[loss] - after[loss] for loss in LOSSES}
    total = np.sum(list(changes.values()), axis=0)
    there = np.flatnonzero((before["n_items"] > 0) & (after["n_items"] > 0))
    weight = before["weight"][there]
    at = there[_first(order_by, [each[there] for each in changes.values()], weight, limit)]
    first = runs[pair[0]]
    of_first = own[pair[0]]
    codes = at if of_first is None else _code_of(of_first)[at]
    table: dict[str, Any] = {"cluster": first.cluster_labels("true", codes)}
    table |= {name: before[name][at] for name in ("n_items", "weight")}
    table |= {DELTA: total[at], **{name: each[at] for name, each in changes.items()}}
    for name, columns in by_code.items():
        if "outcome" in columns:
            table[f"{name}.outcome"] = from_texts(OUTCOMES["true"]).take(from_numpy(columns["outcome"][at]))
        table[f"{name}.n_parts"] = columns["n_parts"][at]
    for name, columns in by_code.items():
        for metric in runs[name].metrics:
            if metric.name in columns and metric.name not in _LOSS_SCORES:
                table[f"{name}.{metric.name}"] = columns[metric.name][at]
    return _sorted(pa.table(table), order_by, limit, "cluster")


def _placed(values: NDArray[Any], numbers: NDArray[np.int64] | None, n: int | None) -> NDArray[Any]:
    """Return values by number from those by code; 0 where there is none."""
    if numbers is None or n is None:
        return values
    found = np.zeros(n, values.dtype)
    found[numbers] = values
    return found


def _code_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the code of each number."""
    found = np.full(int(numbers.max(initial=-1)) + 1, -1)
    found[numbers] = np.arange(numbers.size)
    return found


def rank_of(order_by: str, changes: Sequence[Floats]) -> Floats:
    """Return ranks in listing order from the contributions to precision and recall."""
    if not is_one_of(order_by, (DELTA, WORSE, BETTER)):
        raise OptionError(f"order_by is {DELTA!r}, {WORSE!r} or {BETTER!r}, not {order_by!r}")
    if order_by == DELTA:  # what one gains and the other loses does not cancel out
        return np.asarray(-np.sum(np.abs(changes), axis=0))
    total = np.sum(changes, axis=0)
    return np.asarray(total if order_by == WORSE else -total)


def _first(
    order_by: str | None, changes: Sequence[Floats], weight: Floats, limit: int | None
) -> NDArray[np.int64]:
    """Return rows that are sure to hold the first ones in this order."""
    require_limit(limit)
    n = weight.size if limit is None else min(limit, weight.size)
    if order_by is None:
        return np.arange(n)
    return np.sort(first_rows(rank_of(order_by, changes), -weight, n))


def _sorted(table: pa.Table, order_by: str | None, limit: int | None, name: str) -> pa.Table:
    """Return the first rows in this order; ties are broken by weight, then by id."""
    if order_by is None:
        return table
    changes = [to_numpy(table[change]) for change in CHANGES.values()]
    keys = {"rank": from_numpy(rank_of(order_by, changes))}
    keys |= {"weight": from_numpy(-to_numpy(table["weight"]))} | sortable(table[name])
    order = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])
    return table.take(order[: limit if limit is not None else len(order)])
