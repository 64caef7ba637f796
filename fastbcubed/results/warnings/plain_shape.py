"""The shape of either side: how many clusters, and how large; of large inputs only as far as there is to warn of it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.records import SIDES

#: From so many scored items on it is worth looking: below, all clusters are counted in a few milliseconds.
LARGE = 1 << 20
#: Rows that are looked at, spread over all: a cluster with a tenth of them has about 1,600.
SAMPLE = 1 << 14
#: Clusters with a smaller share of the sample do not have a tenth of all rows.
SURELY_SMALL = 0.08
#: Fewer clusters than these are counted.
FEW_CLUSTERS = 100


def n_scored(ev: Any) -> int:
    """Return how many items are scored, from the coverage."""
    found, policies = ev.coverage, ev.policies
    alone = (found.n_truth_only, policies.truth), (found.n_prediction_only, policies.prediction)
    return int(found.n_common + sum(n for n, policy in alone if policy == "singleton"))


class Shape(NamedTuple):
    """How many clusters a side has, and how many items the largest has."""

    clusters: int
    largest: int


def shape_of(ev: Any) -> dict[str, Shape]:
    """Return the shape of either side.

    Clusters of large inputs are counted only on a side where a sample shows a large one. Otherwise their number is
    an upper bound, and the largest is said to have two items.
    """
    n, keys = n_scored(ev), getattr(ev._items, "label_keys", None)
    if n < LARGE or keys is None or ev.knows_sides:
        return {side: Shape(each["clusters"], each["largest"]) for side, each in ev._sides.items()}
    return {
        side: _large_shape(ev.contingency, side, of_side, n)
        for side, of_side in zip(SIDES, keys(), strict=True)
    }


def _large_shape(table: Contingency, side: str, keys: NDArray[np.int64], n: int) -> Shape:
    n_clusters = table.n_codes[side]
    if table.is_complete and n_clusters == n:
        return Shape(n, 1)
    if FEW_CLUSTERS <= n_clusters < n and _largest_share(keys) < SURELY_SMALL:
        return Shape(n_clusters, 2)
    counts = table.true_n if side == "true" else table.pred_n
    return Shape(int(np.count_nonzero(counts)), int(counts.max()))


def _largest_share(keys: NDArray[np.int64]) -> float:
    """Return the share of the most frequent key in a sample spread over all."""
    rows = np.random.default_rng(0).integers(0, keys.size, SAMPLE)
    return float(np.unique(keys[rows], return_counts=True)[1].max() / SAMPLE)
