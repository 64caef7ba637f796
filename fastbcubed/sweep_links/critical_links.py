"""Where clusters tip: the merges that cost most, and the true clusters that hang by the weakest link."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import OptionError
from fastbcubed.inputs.arrays import from_numpy
from fastbcubed.metrics.score import f_measure
from fastbcubed.results.items import AlignedItems, without_noise
from fastbcubed.results.table import Table
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.threads import blocks
from fastbcubed.sweep_links.merge_tree import Effects
from fastbcubed.types import Floats

#: Merges that are put in order together, if only the first ones are listed.
MERGES_AT_ONCE = 1 << 18
#: What merges are ordered by, and the sign that has the most telling ones first.
ORDERS = {"f1_change": 1.0, "precision_change": 1.0, "recall_change": -1.0}


def list_merges(
    sweep: Any, effects: Effects, order_by: str | None, limit: int | None, point: int | None
) -> Table:
    """Return merges, the most telling first; those used at a point of the curve, or all."""
    order_by = "f1_change" if order_by is None else order_by
    if not is_one_of(order_by, ORDERS):
        raise OptionError(f"order_by is one of {', '.join(ORDERS)}, not {order_by!r}")
    rows = sweep._placed.rows
    first = len(sweep._curve) - sweep.tree.n_levels  # the point of the first level
    used = sweep.tree.n_levels if point is None else point - first + 1
    heads = np.flatnonzero(effects.merged & (rows.levels < used))

    def in_order(some: NDArray[np.int64]) -> tuple[NDArray[np.int64], dict[str, Floats]]:
        changes = _changes(sweep, effects, some, rows.levels[some] + first)
        chosen = np.lexsort((some, ORDERS[order_by] * changes[order_by]))[:limit]
        return some[chosen], {name: values[chosen] for name, values in changes.items()}

    cuts = blocks(heads.size, MERGES_AT_ONCE)  # what all merges do would take more memory than the curve
    heads, changes = in_order(np.concatenate([in_order(heads[start:stop])[0] for start, stop in cuts]))
    places = sweep._placed.places[heads]
    columns = _joined(sweep, places)
    sizes, parts = _sizes(sweep, places, sweep.tree.levels[places] + 1)
    columns |= {"n_clusters": from_numpy(parts), "n_items": from_numpy(sizes)}
    return Table(pa.table(columns | {name: from_numpy(values) for name, values in changes.items()}))


def _changes(
    sweep: Any, effects: Effects, heads: NDArray[np.int64], points: NDArray[np.integer]
) -> dict[str, Floats]:
    """Return the changes that merges make to the scores of all items, at the points of their levels."""
    rows, at = sweep._placed.rows, sweep._curve.kept.take(points)
    precision, recall = -effects.over[heads] / rows.total, effects.under[heads] / rows.total
    p, r = at.rest("over"), at.rest("under")
    before = f_measure(p - precision, r - recall)
    return {
        "precision_change": precision,
        "recall_change": recall,
        "f1_change": np.asarray(f_measure(p, r) - before),
    }


def list_weakest_links(sweep: Any, effects: Effects, limit: int | None) -> Table:
    """Return true clusters of several items, those whose weakest needed link is the weakest first."""
    placed, tree = sweep._placed, sweep.tree
    sizes, whole_at = placed.rows.true_sizes, effects.whole_at
    codes = np.flatnonzero(sizes > 1)
    levels = placed.rows.levels[whole_at[codes]]
    is_whole = levels < tree.n_levels
    chosen = np.lexsort((codes, -sizes[codes], -levels, ~is_whole))[:limit]
    codes, is_whole = codes[chosen], is_whole[chosen]
    firsts = np.full(sizes.size, -1)
    kernels.merge_tree.find_first_places(placed.rows.codes, firsts)
    joined = _joined(sweep, np.where(is_whole, placed.places[whole_at[codes]], -1))
    columns: dict[str, Any] = {
        "cluster": _labels(sweep, placed.aligned[firsts[codes]]),
        "n_items": from_numpy(sizes[codes]),
        **{name: joined[name] for name in ("threshold", "left", "right")},
    }
    return Table(pa.table(columns))


def _joined(sweep: Any, places: NDArray[np.integer]) -> dict[str, Any]:
    """Return the score, both items and the sizes of both clusters of the links at places of the tree; null for -1."""
    tree, missing = sweep.tree, places < 0
    joined = tree.links[np.where(missing, 0, places)]
    levels = np.where(missing, 0, tree.levels[places])
    known = sweep._level_thresholds[levels] if tree.n_levels else np.zeros(places.size)
    columns: dict[str, Any] = {"threshold": from_numpy(known, missing)}
    sizes = {}
    for side in ("left", "right"):
        items = np.where(missing, 0, joined[side])
        columns[side] = _ids(sweep, items, missing)
        sizes[f"n_{side}"] = from_numpy(_sizes(sweep, sweep._place_of_item[items], levels)[0], missing)
    return columns | sizes


def heap_of(levels: NDArray[np.integer], top: int) -> NDArray[np.integer]:
    """Return levels in the second half of a heap, filled up with `top`, and before them the higher of each pair."""
    size = 1 << (levels.size - 1).bit_length()
    heap = np.full(2 * size, top, levels.dtype)
    heap[size : size + levels.size] = levels
    while size > 1:
        np.maximum(heap[size : 2 * size : 2], heap[size + 1 : 2 * size : 2], out=heap[size // 2 : size])
        size //= 2
    return heap


def _sizes(
    sweep: Any, places: NDArray[np.integer], levels: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many items are in the clusters around places of the tree, when all levels below one are used.

    And how many clusters these were before the last of these levels.
    """
    sizes, parts = np.empty((2, places.size), np.int64)
    kernels.merge_tree.measure_stretches(sweep._highest, places, levels, sizes, parts)
    return sizes, parts


def _ids(sweep: Any, items: NDArray[np.integer], missing: NDArray[np.bool_]) -> pa.Array:
    """Return the ids of items, null where they are missing."""
    if sweep._alignment.truth.items is None:
        return from_numpy(items.astype(np.int64), missing)
    found = sweep.links.items.take(items)
    return found if not missing.any() else found.take(from_numpy(np.arange(items.size), missing))


def _labels(sweep: Any, rows: NDArray[np.integer]) -> pa.Array:
    """Return the labels of the true clusters of aligned rows, null for one that a policy has made."""
    return without_noise(
        AlignedItems(sweep._alignment).labels("true", rows.astype(np.int64)), sweep.policies.noise
    )
