"""The shape of either side: how many clusters, and how large; of large inputs only as far as there is to warn of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.planning import frequent_keys
from fastbcubed.cells.records import SIDES
from fastbcubed.runtime.parts import sampled_rows

#: From so many scored items on it is worth looking: below, all clusters are counted in a millisecond or two.
LARGE = 1 << 17
#: Clusters with a smaller share of the sample do not have a tenth of all rows, which is some 1,600 rows of the sample.
SURELY_SMALL = 0.08
#: Fewer clusters than these are counted.
FEW_CLUSTERS = 100


class Shape(NamedTuple):
    """How many clusters a side has, and how many items the largest has."""

    clusters: int
    largest: int


def shape_of(ev: Any) -> dict[str, Shape]:
    """Return the shape of either side.

    Of large inputs the number of clusters is an upper bound, and the largest cluster is counted only on a side where a
    sample shows that it is large; elsewhere it is said to have two items.
    """
    if not is_sampled(ev):
        return {side: Shape(each["clusters"], each["largest"]) for side, each in ev._sides.items()}
    sides = zip(SIDES, ev._items.label_keys(), strict=True)
    return {
        side: _large_shape(ev.contingency, side, keys, ev.coverage.n_scored(ev.policies))
        for side, keys in sides
    }


def is_sampled(ev: Any) -> bool:
    """Tell whether the sides are so large that a sample of their rows is looked at before clusters are counted."""
    return (
        ev.coverage.n_scored(ev.policies) >= LARGE
        and hasattr(ev._items, "label_keys")
        and not ev._knows_sides
    )


def n_mixed(ev: Any) -> int:
    """Return how many true clusters a sample of the largest predicted one has items of."""
    true, pred = ev._items.label_keys()
    rows, key = sampled_rows(pred.size), _large_key(pred)
    return int(np.unique(true[rows[pred[rows] == key]]).size)


def _large_shape(table: Contingency, side: str, keys: NDArray[Any], n: int) -> Shape:
    n_clusters = table.n_codes[side]
    if table.is_complete and n_clusters == n:
        return Shape(n, 1)
    if FEW_CLUSTERS <= n_clusters < n:
        key = _large_key(keys)
        if key is None:
            return Shape(n_clusters, 2)
        if keys.size == n:
            return Shape(n_clusters, int(np.count_nonzero(keys == key)))
    counts = table.true_n if side == "true" else table.pred_n
    return Shape(int(np.count_nonzero(counts)), int(counts.max()))


def _large_key(keys: NDArray[Any]) -> int | None:
    """Return the most frequent key in a sample of the rows; None if it is surely that of a small cluster."""
    sample = keys[sampled_rows(keys.size)].astype(np.int64, copy=False)
    found, counts = frequent_keys(sample, SURELY_SMALL * sample.size)
    return int(found[np.argmax(counts)]) if found.size else None
