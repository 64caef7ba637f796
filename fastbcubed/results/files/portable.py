"""What an evaluation is made of, as plain arrays: without files and threads, it can be written, pickled, copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.records import SIDES
from fastbcubed.metrics.extended_bcubed import cice
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS
from fastbcubed.results.items.items import RowNumbers, TableItems
from fastbcubed.sources.arrays import from_numpy, table_of
from fastbcubed.sources.selection import combined


class TableLabels:
    """The labels of clusters, by side and code."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def __call__(self, side: str, codes: RowNumbers) -> pa.Array:
        """Return the labels of clusters, null for one that a policy has made."""
        labels = self._columns[side].take(from_numpy(codes))
        return combined(labels) if isinstance(labels, pa.ChunkedArray) else labels


def labels_by_code(labels_of: Callable[[RowNumbers], Any], first: int, there: NDArray[np.bool_]) -> Any:
    """Return labels of clusters from a code on; null for those without scored items, which have no name."""
    labels = labels_of(first + np.flatnonzero(there))
    if there.all():
        return labels
    return labels.take(from_numpy(np.maximum(np.cumsum(there) - 1, 0), ~there))


def item_table(ev: Any) -> pa.Table:
    """Return the rows of an evaluation: ids, labels, weight, cell (null: not scored), attributes."""
    items, rows = ev.kept_items(), ev.contingency.rows
    assert rows is not None
    columns: dict[str, Any] = {
        "item": items.ids(),
        "true_cluster": items.labels("true"),
        "pred_cluster": items.labels("pred"),
        "weight": rows.weight,
        "cell": from_numpy(rows.cell, rows.cell < 0),
    }
    left_out = ev.left_out
    for side, names in items.attribute_sides().items():
        kept = [name for name in names if f"{side}.{name}" not in left_out]
        columns |= {f"{side}.{name}": items.attribute(side, name) for name in kept}
    if ev.attributes is not None:
        kept = [name for name in ev.attributes.names if f"attributes.{name}" not in left_out]
        columns |= {f"attributes.{name}": ev.attributes.attribute(name) for name in kept}
    return table_of(columns)


def metrics_by_name(names: Iterable[str], beta: float, options: Mapping[str, Any]) -> list[Metric]:
    """Return scores of the registry by name, those of CICE-BCubed in the reading that `options` say."""
    known = dict(METRICS)
    if "match" in options:
        known |= {m.name: m for m in cice(options["match"], options["similarity"])}
    return [known[name].at(beta) for name in names if name in known]


def state_of(ev: Any) -> dict[str, Any]:
    """Return what an evaluation is made of; scores of the registry go by name."""
    state: dict[str, Any] = {**ev.__dict__, "ranges": None, "attributes": None}
    for worked_out in ("_first_rows", "_components"):
        state.pop(worked_out, None)
    own = [m for m in ev.metrics if m.family == "own"]
    state["metrics"] = ([m.name for m in ev.metrics], own, ev.definition)
    if ev.has_clusters:
        state["_labels"] = TableLabels({side: _all_labels(ev, side) for side in SIDES})
    state["_origin"] = ev._origin.at_rest(ev.engine, ev._memory_limit)
    if ev.has_items:
        state["_items"] = TableItems(item_table(ev), ev.left_out)
    return state


def set_state(ev: Any, state: Mapping[str, Any]) -> None:
    """Make an evaluation of what `state_of` returned."""
    names, own, definition = state["metrics"]
    found = {m.name: m for m in (*metrics_by_name(names, state["beta"], definition), *own)}
    ev.__dict__.update(state, metrics=[found[name] for name in names])


def _all_labels(ev: Any, side: str) -> Any:
    n = ev.contingency.true_n if side == "true" else ev.contingency.pred_n
    with ev.all_cluster_labels(side) as labels_of:
        return labels_by_code(labels_of, 0, n > 0)
