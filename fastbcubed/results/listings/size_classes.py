"""Clusters by size, in powers of two: how many there are, and what their items weigh and lose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.metrics import groups
from fastbcubed.metrics.losses import LOSSES
from fastbcubed.runtime.pool import blocks
from fastbcubed.sources.arrays import read_only

Floats = NDArray[np.float64]
#: Powers of two that sizes may have.
POWERS = 64
#: Clusters that are added up at once.
AT_ONCE = 1 << 16


@dataclass(frozen=True)
class SizeClasses:
    """What clusters of a side come to by size: of `1 << k` items and more, fewer than twice as many. Shapes: (64,)."""

    n_clusters: NDArray[np.int64]
    n_items: NDArray[np.int64]
    weight: Floats
    per_item: Floats  #: weight of each cluster by its items, added up
    squares: (
        Floats  #: weight of each cluster times what it is for its items: its weight, or their number if outer
    )
    precision_loss: Floats
    recall_loss: Floats

    @classmethod
    def none(cls) -> SizeClasses:
        """Return those of no clusters."""
        counts = np.zeros((2, POWERS), np.int64)
        return cls(*counts, *np.zeros((5, POWERS)))

    @classmethod
    def of(
        cls, n: NDArray[np.int64], weight: Floats, losses: Mapping[str, Floats], *, outer: bool
    ) -> SizeClasses:
        """Add clusters up, from items, weight and losses of each; those without scored items are left out."""
        found, columns = cls.none(), [weight, *(losses[name] for name in LOSSES)]
        for start, stop in blocks(n.size, AT_ONCE):
            sizes, *figures = (
                read_only(np.ascontiguousarray(each[start:stop]))
                for each in (n.astype(np.int64, copy=False), *columns)
            )
            counts, sums = np.zeros((2, POWERS), np.int64), np.zeros((5, POWERS))
            kernels.sums.add_by_power(sizes, *figures, outer, counts, sums)
            found += cls(*counts, *sums)
        return found

    def __add__(self, other: SizeClasses) -> SizeClasses:
        """Return those of the clusters of both."""
        return SizeClasses(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def smallest(self) -> NDArray[np.int64]:
        """The smallest size of each class up to the largest one that has clusters."""
        return 2 ** np.arange(int(np.flatnonzero(self.n_clusters).max(initial=-1)) + 1, dtype=np.int64)


def powers_of(n: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the power of two that each size reaches.

    Examples
    --------
    >>> powers_of(np.array([1, 2, 3, 4, 7, 8])).tolist()
    [0, 1, 1, 2, 2, 3]
    """
    return np.frexp(n.astype(np.float64))[1].astype(np.int64) - 1


def classes_of_cells(table: Contingency, side: str) -> SizeClasses:
    """Return the clusters of a side by size; without weights and losses where clusters overlap."""
    n = table.true_n if side == "true" else table.pred_n
    weight = none = np.zeros(n.size)
    if not table.overlapping:
        weight = table.true_weight if side == "true" else table.pred_weight
    found = SizeClasses.of(n, weight, dict.fromkeys(LOSSES, none), outer=table.weighting == "outer")
    if table.overlapping:
        return found
    power = powers_of(n[table.true if side == "true" else table.pred])
    lost = groups.group_means(table, power, POWERS, [], beta=1.0, total=table.total_weight)
    return SizeClasses(*(lost[f.name] if f.name in LOSSES else getattr(found, f.name) for f in fields(found)))


def recall_alone(table: Contingency, true: SizeClasses) -> float | None:
    """Return the mean over items of what each is of its true cluster; None if their weights are not at hand."""
    if not table.weighted or table.weighting == "outer":  # an item is 1 of n, whatever it weighs in the mean
        return float(true.per_item.sum() / table.total_weight)
    if table.rows is None:
        return None
    total = 0.0
    for first, cell in table.rows.stretches():
        rows = np.flatnonzero(cell >= 0)
        own = table.rows.weights_of(rows + first)
        total += float(np.sum(own * (own / table.true_weight[table.true[cell[rows]]])))
    return total / table.total_weight
