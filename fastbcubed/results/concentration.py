"""Concentration of the loss in few clusters, and totals of clusters by size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.errors import OptionError
from fastbcubed.inputs.arrays import read_only, table_of
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.bcubed import LOSS_OF_SIDE, LOSSES
from fastbcubed.render.number_formats import counted
from fastbcubed.results.cluster_outcomes import ranges_of_clusters
from fastbcubed.runtime.spill import readable
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import Floats

#: Number of clusters that can be inspected one by one; and the share of lossy clusters above which loss is not
#: concentrated.
FEW, SHARE = 50, 0.05
#: A side is mentioned if its loss is at least the first share of the other side's, and gets advice from the second.
TOLD, ADVISED = 0.05, 1 / 3
KINDS = {"true": "true cluster", "pred": "predicted cluster"}
#: Rows of a curve by default, and of a curve that is drawn, where more could not be seen.
ROWS, POINTS = 1000, 120
#: Bytes per cluster whose loss is summed, and per distinct loss.
CLUSTER_BYTES, LOSS_BYTES = 40, 48
ROUNDING = 1e-12


@dataclass(frozen=True)
class LossCurve:
    """The distinct losses of clusters, descending, with the number of clusters that have each; 0 is omitted."""

    n_clusters: int  #: number of clusters, with or without a loss
    losses: NDArray[np.float64]
    counts: NDArray[np.int64]

    @classmethod
    def of(
        cls, n_clusters: int, losses: NDArray[np.float64], counts: NDArray[np.int64] | None = None
    ) -> LossCurve:
        """Return the curve of losses, sorted, with equal ones merged."""
        there = losses > 0
        if counts is None:  # sorting values is much faster than np.unique with indices
            found = np.sort(losses[there])
            starts = np.flatnonzero(np.append(True, found[1:] != found[:-1])[: found.size])
            found, numbers = found[starts], np.diff(np.append(starts, found.size))
        else:
            found, which = np.unique(losses[there], return_inverse=True)
            numbers = np.bincount(which, counts[there], found.size)
        return cls(n_clusters, found[::-1], numbers.astype(np.int64)[::-1])

    @property
    def n_lossy(self) -> int:
        """Number of clusters with a loss."""
        return int(self.counts.sum())

    @property
    def loss(self) -> float:
        """Total loss of all clusters."""
        return float((self.losses * self.counts).sum())

    def share(self, n: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share of the loss in the `n` costliest clusters, for each `n`; NaN if there is no loss."""
        if not self.counts.size:
            return np.full(n.size, np.nan)
        ends, lost = self._upto()
        n = np.minimum(n, ends[-1])
        run = np.searchsorted(ends, n)
        shares: NDArray[np.float64] = (lost[run] - self.losses[run] * (ends[run] - n)) / lost[-1]
        return shares

    def first_with(self, share: float) -> int:
        """Return the smallest number of clusters that have this share of the loss, up to rounding."""
        if not self.counts.size:
            return 0
        ends, lost = self._upto()
        wanted = share * lost[-1] * (1 - ROUNDING)
        run = int(np.searchsorted(lost, wanted))
        spare = int((lost[run] - wanted) / self.losses[run])
        return int(ends[run]) - min(spare, int(self.counts[run]) - 1)

    def _upto(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the cumulative number of clusters, and their cumulative loss, for each distinct loss."""
        return np.cumsum(self.counts), np.cumsum(self.losses * self.counts)

    def table(self, limit: int | None) -> pa.Table:
        """Return the curve in at most `limit` rows, with the first, the last and the one where all loss is reached."""
        rows = self._rows(limit)
        return table_of(
            {"n_clusters": rows, "share_clusters": rows / self.n_clusters, "share_loss": self.share(rows)}
        )

    def _rows(self, limit: int | None) -> NDArray[np.int64]:
        """Return the numbers of clusters to list in a table of at most `limit` rows."""
        n, marks = self.n_clusters, {self.n_clusters, max(1, self.n_lossy), 1}
        if limit is None or limit >= n:
            return np.arange(1, n + 1)
        if limit < len(marks):
            return np.array(sorted(marks, reverse=True)[:limit][::-1], np.int64)
        spread = np.unique(np.geomspace(1, n, limit - len(marks) + 2).round().astype(np.int64))
        return np.union1d(spread, np.array(sorted(marks)))


def loss_curves(
    table: Contingency, n_clusters: dict[str, int], room: int | None = None
) -> dict[str, LossCurve]:
    """Return, for each side, the curve of the loss attributed to its clusters.

    `n_clusters` are the numbers of clusters with a scored item. `room` limits memory, in bytes; the cells are read in
    as many passes as this requires.
    """
    from fastbcubed.metrics import compiled

    most = None if room is None else room // 2 // CLUSTER_BYTES
    found = {side: LossCurve.of(n_clusters[side], np.zeros(0)) for side in SIDES}
    for firsts, losses in ranges_of_clusters(table, np.float64, most):
        for start, stop in blocks(table.n_cells):
            outer = table.weighting == "outer"
            compiled.add_losses(table.cells, table.pred, start, stop, outer, firsts, *losses)
        for side, own in zip(SIDES, losses, strict=True):
            found[side] = _with(found[side], own / table.total_weight)
        held = sum(curve.losses.size for curve in found.values()) * LOSS_BYTES
        if room is not None and held > room // 2:
            raise OptionError(
                f"the losses of all clusters need at least {readable(held)}, more than the memory limit; "
                "raise memory_limit"
            )
    return found


def _with(curve: LossCurve, losses: NDArray[np.float64]) -> LossCurve:
    """Return a curve with the losses of further clusters."""
    losses = losses[losses > 0]
    if not curve.counts.size:
        return LossCurve.of(curve.n_clusters, losses)
    counts = np.concatenate([curve.counts, np.ones(losses.size, np.int64)])
    return LossCurve.of(curve.n_clusters, np.concatenate([curve.losses, losses]), counts)


def concentration(curves: dict[str, LossCurve]) -> dict[str, dict[str, Any]]:
    """Return, for each side, its loss, clusters, clusters with a loss, and the fewest that have half of the loss."""
    return {
        side: {"loss": curve.loss, "n_clusters": curve.n_clusters, "n_lossy": curve.n_lossy,
               "n_half": curve.first_with(0.5)}
        for side, curve in curves.items()
    }  # fmt: skip


def concentration_sentence(figures: dict[str, dict[str, Any]]) -> str:
    """Return a sentence on where the loss is, with advice; "" if there is no loss.

    The side that loses more comes first. A side that loses little in comparison is omitted, or gets no advice.

    Examples
    --------
    >>> found = {
    ...     "true": {"loss": 0.26, "n_half": 1084, "n_lossy": 4000},
    ...     "pred": {"loss": 0.1, "n_half": 9, "n_lossy": 300},
    ... }
    >>> concentration_sentence(found)  # doctest: +NORMALIZE_WHITESPACE
    'Half of the recall loss is in 1,084 true clusters: look for a systematic cause. Half of the precision loss
    is in 9 predicted clusters: look at these first.'
    """
    lossy = [side for side in SIDES[::-1] if figures[side]["n_half"]]
    sides = sorted(lossy, key=lambda side: -figures[side]["loss"])
    largest = figures[sides[0]]["loss"] if sides else 0.0
    told = [side for side in sides if figures[side]["loss"] >= TOLD * largest]
    advice = {
        side: _advice(figures[side]) if figures[side]["loss"] >= ADVISED * largest else "" for side in told
    }
    if len(told) == 2 and len(set(advice.values())) == 1:
        first, second = told
        both = advice[first].replace("fix it", "fix these")
        other = counted(figures[second]["n_half"], KINDS[second].replace("cluster", "one"))
        return (
            f"Half of the {_lost(first)} loss is in {counted(figures[first]['n_half'], KINDS[first])}, half of the "
            f"{_lost(second)} loss in {other}{both}."
        )
    return " ".join(
        f"Half of the {_lost(side)} loss is in {counted(figures[side]['n_half'], KINDS[side])}{advice[side]}."
        for side in told
    )


def _lost(side: str) -> str:
    return LOSS_OF_SIDE[side].removesuffix("_loss")


def _advice(figures: dict[str, Any]) -> str:
    n = figures["n_half"]
    if n <= FEW:
        return ": fix it first" if n == 1 else ": look at these first"
    return ": look for a systematic cause" if n > SHARE * figures["n_lossy"] else ""


#: Number of size classes, one per power of two.
POWERS = 64
#: Number of clusters summed at a time.
AT_ONCE = 1 << 16


@dataclass(frozen=True)
class SizeClasses:
    """Totals of a side's clusters by size class k: from `1 << k` to below `2 << k` items. Shapes: (64,)."""

    n_clusters: NDArray[np.int64]
    n_items: NDArray[np.int64]
    weight: Floats
    per_item: Floats  #: sum of the clusters' weights, each divided by its number of items
    #: sum of the clusters' weights times their weights, or times their numbers of items if outer
    squares: Floats
    precision_loss: Floats
    recall_loss: Floats

    @classmethod
    def none(cls) -> SizeClasses:
        """Return totals of no clusters."""
        counts = np.zeros((2, POWERS), np.int64)
        return cls(*counts, *np.zeros((5, POWERS)))

    @classmethod
    def of(
        cls, n: NDArray[np.int64], weight: Floats, losses: Mapping[str, Floats], *, outer: bool
    ) -> SizeClasses:
        """Return totals of the clusters by size, from the item count, weight and losses of each; skip empty ones."""
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
        """Return the totals of the clusters of both."""
        return SizeClasses(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def smallest(self) -> NDArray[np.int64]:
        """The smallest size in each class, up to the largest class that has clusters."""
        return 2 ** np.arange(int(np.flatnonzero(self.n_clusters).max(initial=-1)) + 1, dtype=np.int64)


def powers_of(n: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the exponent of the largest power of two that does not exceed each size.

    Examples
    --------
    >>> powers_of(np.array([1, 2, 3, 4, 7, 8])).tolist()
    [0, 1, 1, 2, 2, 3]
    """
    return np.frexp(n.astype(np.float64))[1].astype(np.int64) - 1


def classes_of_cells(table: Contingency, side: str) -> SizeClasses:
    """Return totals of a side's clusters by size; without weights and losses if clusters overlap."""
    n = table.true_n if side == "true" else table.pred_n
    weight = none = np.zeros(n.size)
    if not table.overlapping:
        weight = table.true_weight if side == "true" else table.pred_weight
    found = SizeClasses.of(n, weight, dict.fromkeys(LOSSES, none), outer=table.weighting == "outer")
    if table.overlapping:
        return found
    power = powers_of(n[table.true if side == "true" else table.pred])
    lost = aggregation.group_means(table, power, POWERS, [], beta=1.0, total=table.total_weight)
    return SizeClasses(*(lost[f.name] if f.name in LOSSES else getattr(found, f.name) for f in fields(found)))


def recall_alone(table: Contingency, true: SizeClasses) -> float | None:
    """Return the recall if all items were predicted singletons: the mean share of an item in its true cluster.

    Return None if the weights of items are unavailable.
    """
    # an item is 1 of n items, whatever its weight in the mean
    if not table.weighted or table.weighting == "outer":
        return float(true.per_item.sum() / table.total_weight)
    if table.rows is None:
        return None
    total = 0.0
    for first, cell in table.rows.stretches():
        rows = np.flatnonzero(cell >= 0)
        own = table.rows.weights_of(rows + first)
        total += float(np.sum(own * (own / table.true_weight[table.true[cell[rows]]])))
    return total / table.total_weight
