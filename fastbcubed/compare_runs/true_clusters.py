"""True clusters of several runs: those that changed most, and how many changed from one outcome to another.

If cells are in files, clusters are read range by range, so the memory limit holds for any number of clusters.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import OptionError, quoted
from fastbcubed.inputs.arrays import from_numpy, from_texts, table_of, to_numpy
from fastbcubed.metrics.bcubed import LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.results import clusters
from fastbcubed.results.cluster_outcomes import OUTCOMES
from fastbcubed.results.cluster_ranges import Columns, columns_by_code
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.table import TIES, Top, require_limit
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.memory_budget import require_within
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import Floats

#: Orders of listings: by absolute change, by loss, or by gain.
DELTA, WORSE, BETTER = "delta", "worse", "better"
#: The losses, and the column of the change in each.
CHANGES = {"precision_loss": "precision_delta", "recall_loss": "recall_delta"}
#: Clusters that are processed at once, and approximate bytes of a cluster per run, and per run and score.
AT_ONCE, CLUSTER_BYTES, SCORE_BYTES = 1 << 15, 160, 24

Numbers = Sequence[NDArray[np.int64]] | None
LOSS_SCORES = frozenset(metric.name for metric in LOSSES.values())
#: The temporary column by which clusters are ordered.
ORDER = "order"


def list_true_clusters(
    runs: Mapping[str, Evaluation],
    pair: tuple[str, str],
    numbers: Numbers,
    order_by: str | None,
    limit: int | None,
) -> pa.Table:
    """Return the true clusters: outcomes in each run, and contributions to the difference between two runs.

    `numbers` has the numbers of each run's true clusters by code; None if the codes are the same in all runs.
    """
    require_limit(limit)
    first, shown = runs[pair[0]], {name: _shown(ev) for name, ev in runs.items()}
    n = n_numbers(runs, numbers)
    if limit is None:
        _require_room(runs, n, "a listing of all true clusters", ", or pass a limit of rows")
    place = None if numbers is None else _code_of(numbers[list(runs).index(pair[0])])
    named_by = ("code", "cluster", partial(_labels, first, place))
    ties = TIES if first.kept.ranges is None else first.kept.ranges.named_at_once
    top = Top((), ORDER, n if limit is None else min(limit, n), named_by, ties)
    for start, by_run in _by_number(runs, numbers, shown):
        before, after = (by_run[name] for name in pair)
        changes = {CHANGES[loss]: before[loss] - after[loss] for loss in LOSSES}
        there = np.flatnonzero((before["n_items"] > 0) & (after["n_items"] > 0))
        columns: dict[str, Any] = {"code": there + start}
        columns |= {name: before[name][there] for name in ("n_items", "weight")}
        columns[DELTA] = np.sum(list(changes.values()), axis=0)[there]
        columns |= {name: each[there] for name, each in changes.items()}
        if order_by is None:
            columns[ORDER] = -columns["code"].astype(np.float64)
        else:
            columns[ORDER] = -rank_of(order_by, [columns[name] for name in changes])
        for name, own in by_run.items():
            columns |= {f"{name}.{key}": own[key][there] for key in ("outcome", "n_parts") if key in own}
        for name, own in by_run.items():
            scores = [m.name for m in shown[name] if m.name in own and m.name not in LOSS_SCORES]
            columns |= {f"{name}.{score}": own[score][there] for score in scores}
        top.add(table_of(columns))
    found = top.in_order()
    found = found.set_column(0, "cluster", _labels(first, place, to_numpy(found["code"])))
    for name in runs:
        if (column := f"{name}.outcome") in found.column_names:
            at = found.column_names.index(column)
            texts = from_texts(OUTCOMES["true"]).take(from_numpy(to_numpy(found[column])))
            found = found.set_column(at, column, texts)
    return found.drop_columns([ORDER])


def flow_of_runs(
    runs: Mapping[str, Evaluation], pair: tuple[str, str], numbers: Numbers
) -> tuple[int, list[tuple[str, str, int]]]:
    """Return the number of true clusters in both runs, and a list of (outcome, new outcome, number of clusters)."""
    two = {name: runs[name] for name in pair}
    if numbers is not None:
        numbers = [own for name in pair for run, own in zip(runs, numbers, strict=True) if run == name]
    kinds, n = OUTCOMES["true"], 0
    flow = np.zeros(len(kinds) ** 2, np.int64)
    for _, by_run in _by_number(two, numbers, {name: [] for name in two}):
        before, after = by_run[pair[0]], by_run[pair[-1]]
        there = (before["n_items"] > 0) & (after["n_items"] > 0)
        n += int(np.count_nonzero(there))
        if "outcome" in before and "outcome" in after:
            codes = before["outcome"][there].astype(np.int64) * len(kinds) + after["outcome"][there]
            flow += np.bincount(codes, minlength=flow.size)
    found = [
        (kinds[k // len(kinds)], kinds[k % len(kinds)], int(flow[k])) for k in np.flatnonzero(flow).tolist()
    ]
    return n, sorted(found, key=lambda row: (-row[2], *row[:2]))


def n_numbers(runs: Mapping[str, Evaluation], numbers: Numbers) -> int:
    """Return the number of distinct true clusters in all runs."""
    if numbers is not None:
        return 1 + max(int(own.max(initial=-1)) for own in numbers)
    return int(next(iter(runs.values())).contingency.n_codes["true"])


def _shown(ev: Evaluation) -> list[Metric]:
    return clusters.known_by_cluster(ev.contingency, ev.metrics, ev.beta)


def _by_number(
    runs: Mapping[str, Evaluation], numbers: Numbers, metrics: Mapping[str, list[Metric]]
) -> Iterator[tuple[int, dict[str, Columns]]]:
    """Yield blocks of clusters, as the number of the first cluster and columns by run."""
    n = n_numbers(runs, numbers)
    ranges = [ev.kept.ranges for ev in runs.values()]
    if numbers is None and None not in ranges:
        with ExitStack() as stack:
            taken = {}
            for (name, ev), own in zip(runs.items(), ranges, strict=True):
                share = copy.copy(own)
                assert share is not None
                share.limit //= len(runs)
                parts = share.by_code("true", metrics[name], ev.beta)
                stack.callback(parts.close)
                taken[name] = _Taken(parts)
            for start, stop in blocks(n, AT_ONCE):
                yield start, {name: own.take(stop - start) for name, own in taken.items()}
        return
    _require_room(runs, n, "a listing of true clusters of runs with different items")
    found = {}
    for k, (name, ev) in enumerate(runs.items()):
        columns = columns_by_code(ev.contingency, "true", metrics[name], ev.beta)
        placed = partial(_placed, numbers=None if numbers is None else numbers[k], n=n)
        found[name] = {key: placed(each) for key, each in columns.items()}
    yield 0, found


class _Taken:
    """Columns of clusters from ranges of varying size, returned in blocks of the requested size."""

    def __init__(self, parts: Iterator[tuple[int, Columns]]) -> None:
        self._parts, self._held = parts, list[Columns]()

    def take(self, n: int) -> Columns:
        """Return the columns of the next n clusters."""
        while sum(own["n_items"].size for own in self._held) < n:
            self._held.append(next(self._parts)[1])
        found = {key: np.concatenate([own[key] for own in self._held]) for key in self._held[0]}
        self._held = [{key: each[n:] for key, each in found.items()}]
        return {key: each[:n] for key, each in found.items()}


def _require_room(runs: Mapping[str, Evaluation], n: int, what: str, way_out: str = "") -> None:
    """Raise OptionError if the columns of n clusters in all runs exceed the smallest memory limit of a run."""
    limits = [ev.kept.memory_limit for ev in runs.values() if ev.kept.memory_limit is not None]
    needed = n * sum(CLUSTER_BYTES + SCORE_BYTES * len(ev.metrics) for ev in runs.values())
    require_within(min(limits, default=None), needed, what, "their columns", way_out)


def _labels(ev: Evaluation, place: NDArray[np.int64] | None, at: NDArray[np.integer]) -> pa.Array:
    return ev.kept.cluster_labels("true", np.asarray(at if place is None else place[at], np.int64))


def _placed(values: NDArray[Any], numbers: NDArray[np.int64] | None, n: int) -> NDArray[Any]:
    """Return values by number of the cluster, given values by code; 0 for numbers without a code."""
    if numbers is None:
        return values
    found = np.zeros(n, values.dtype)
    found[numbers] = values
    return found


def _code_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    found = np.full(int(numbers.max(initial=-1)) + 1, -1)
    found[numbers] = np.arange(numbers.size)
    return found


def rank_of(order_by: str, changes: Sequence[Floats]) -> Floats:
    """Return ranks in listing order from the contributions to precision and recall."""
    if not is_one_of(order_by, (DELTA, WORSE, BETTER)):
        raise OptionError(f"order_by must be {DELTA!r}, {WORSE!r} or {BETTER!r}, not {quoted(order_by)}")
    if order_by == DELTA:  # absolute values: a gain and a loss do not cancel out
        return np.asarray(-np.sum(np.abs(changes), axis=0))
    total = np.sum(changes, axis=0)
    return np.asarray(total if order_by == WORSE else -total)
