"""What is kept of clusters that go by table after table, as they are written or read: totals, and the costliest."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.metrics.losses import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.listings.concentration import LossCurve
from fastbcubed.results.listings.listing import LOSS, contenders, listed, rank_of
from fastbcubed.results.listings.repairs import Floats, f_gain
from fastbcubed.results.listings.size_classes import SizeClasses
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import from_numpy, to_numpy

#: What is added up of a cluster, and the columns that it takes.
COLUMNS = ("n_items", "weight", *LOSSES)
#: Clusters that may tie before their labels decide; and what rounding may add to a bound.
TIES, ROUNDING = 1 << 16, 1e-9


class Totals:
    """What all clusters of a side come to, by size and by loss."""

    def __init__(self, side: str, *, outer: bool) -> None:
        self.classes = SizeClasses.none()
        self._own, self._outer = LOSS_OF_SIDE[side], outer
        self._losses, self._counts = [np.zeros(0)], [np.zeros(0, np.int64)]

    def add(self, table: pa.Table) -> None:
        """Take consecutive clusters."""
        n, weight, *lost = (to_numpy(table[name]) for name in COLUMNS)
        self.classes += SizeClasses.of(n, weight, dict(zip(LOSSES, lost, strict=True)), outer=self._outer)
        found = LossCurve.of(0, to_numpy(table[self._own]))
        self._losses.append(found.losses)
        self._counts.append(found.counts)

    @property
    def held(self) -> int:
        """How many losses are held."""
        return sum(each.size for each in self._losses)

    @property
    def curve(self) -> LossCurve:
        """The curve of the loss that the clusters are blamed for."""
        losses, counts = np.concatenate(self._losses), np.concatenate(self._counts)
        n_clusters = int(self.classes.n_clusters.sum())
        return LossCurve.of(n_clusters, losses, None if (counts == 1).all() else counts)


class Costliest:
    """The clusters that may be among the first of a listing: their codes, and what they are ordered by.

    With `lossy`, only clusters for which that is above 0.
    """

    def __init__(
        self,
        order_by: str,
        limit: int,
        metrics: Iterable[Metric] = (),
        outcome: str | None = None,
        *,
        lossy: bool = False,
    ) -> None:
        self._order_by, self._limit, self._metrics, self._outcome = order_by, limit, list(metrics), outcome
        self._lossy = lossy
        ordered = LOSSES if order_by == LOSS else (order_by,)
        self._figures = list(dict.fromkeys([*ordered, "weight", "n_items"]))
        self.columns = [*self._figures, *([] if outcome is None else ["outcome"])]
        self.found: pa.Table | None = None
        self._last = np.inf  # the rank of the last of those that are listed

    def add(self, first: int, table: pa.Table) -> None:
        """Take consecutive clusters from a code on; where labels are there, they tell apart what ties."""
        own = [name for name in ("cluster", *self._figures) if name in table.column_names]
        there = np.flatnonzero(self._listed(table))
        more = table.select(own).take(from_numpy(there)).add_column(0, "code", from_numpy(first + there))
        found = more if self.found is None else pa.concat_tables([self.found, more])
        found = contenders(found, self._metrics, self._order_by, self._limit)
        if found.num_rows > self._limit + TIES and "cluster" in own:
            found = self._first_of(found)
        self.found = found.combine_chunks()
        if found.num_rows >= self._limit > 0:
            self._last = float(rank_of(self.found, self._order_by, self._metrics).max())

    def in_order(self) -> pa.Table:
        """Return the first clusters in their order, where their labels are there."""
        assert self.found is not None
        return self._first_of(self.found)

    def _first_of(self, found: pa.Table) -> pa.Table:
        places = from_numpy(np.arange(found.num_rows))
        plain = found.drop_columns(["cluster"]).add_column(0, "place", places)
        named_by = ("place", "cluster", lambda rows: found["cluster"].take(from_numpy(rows)))
        listing = listed(plain, self._metrics, self._order_by, self._limit, named_by=named_by).to_arrow()
        return listing.select(found.column_names)

    def _listed(self, table: pa.Table) -> NDArray[np.bool_]:
        """Return which clusters of a table are what is asked for, have scored items, and may be among the first."""
        there: NDArray[np.bool_] = to_numpy(table[self._order_by if self._lossy else "n_items"]) > 0
        if self._outcome is not None:
            there &= to_numpy(pc.equal(table["outcome"].cast(pa.string()), self._outcome))
        if np.isfinite(self._last):
            there &= rank_of(table, self._order_by, self._metrics) <= self._last
        return there


class MayGather:
    """The true clusters of which gathering may be among the first `limit` repairs.

    Gathering one brings what its items lose, and at most as much again of precision, for what they were clustered
    with. `lost` is what precision and recall lack of 1. Weights have to count in the confusion matrices.
    """

    def __init__(self, lost: tuple[float, float], limit: int) -> None:
        self._lost, self._limit = lost, limit
        self.codes, self._most, self._least = np.empty(0, np.int64), np.empty(0), np.empty(0)
        self._floor = -np.inf  # what the first `limit` gain at least

    def add(self, first: int, table: pa.Table) -> None:
        """Take consecutive clusters from a code on."""
        precision, recall = (to_numpy(table[name]) for name in ("precision_loss", "recall_loss"))
        there = np.flatnonzero(precision + recall)
        if "cluster" in table.column_names and table["cluster"].null_count:
            # those without a label a policy has made: there is nothing to gather
            there = there[to_numpy(table["cluster"].is_valid())[there]]
        if self._limit and there.size:
            self._take(there + first, precision[there], recall[there])

    def _take(self, codes: NDArray[np.int64], precision: Floats, recall: Floats) -> None:
        most = f_gain(self._lost, 2 * precision, recall) * (1 + ROUNDING)
        own = np.flatnonzero(most >= self._floor)
        self.codes = np.concatenate([self.codes, codes[own]])
        self._most = np.concatenate([self._most, most[own]])
        self._least = np.concatenate([self._least, f_gain(self._lost, precision[own], recall[own])])
        if self.codes.size > self._limit:
            self._floor = np.partition(self._least, -self._limit)[-self._limit]
            kept = self._most >= self._floor
            self.codes, self._most, self._least = self.codes[kept], self._most[kept], self._least[kept]
