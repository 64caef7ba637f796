"""The clusters of a saved result, read part by part from its two tables: the costliest, and what all come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.metrics.losses import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.items.stored_items import StoredTable
from fastbcubed.results.listings.concentration import POINTS, LossCurve
from fastbcubed.results.listings.digest import Digest
from fastbcubed.results.listings.listing import require_known, require_limit
from fastbcubed.results.listings.outcomes import outcome_code
from fastbcubed.results.listings.passing_clusters import COLUMNS, Costliest, Totals
from fastbcubed.results.listings.size_classes import SizeClasses
from fastbcubed.sources.arrays import from_numpy, to_numpy

#: What a listing has of a cluster besides its label and scores.
FIGURES = ("n_items", "weight", "n_parts", "exact", "outcome", *LOSSES)
#: What scored items of a cluster are, and those that the other side lacks.
ONLY_HERE = "n_items_only_here"


class SavedClusters:
    """The tables of clusters of a saved result, in which a row number is a code; what is known of all is not read."""

    def __init__(
        self,
        files: Mapping[str, StoredTable],
        *,
        outer: bool,
        digest: Digest | None = None,
        totals: Mapping[str, Totals] = {},
    ) -> None:
        self.files, self.digest, self._outer = files, digest, outer
        self._totals = dict(totals)

    def totals(self, side: str) -> Totals:
        """Return what all clusters of a side come to, for which their table is gone through once."""
        if side not in self._totals:
            found = Totals(side, outer=self._outer)
            for _, table in self.files[side].stretches(COLUMNS):
                found.add(table)
            self._totals[side] = found
        return self._totals[side]

    def classes(self, side: str) -> SizeClasses:
        """Return what the clusters of a side come to by size."""
        return self.totals(side).classes if self.digest is None else self.digest.classes[side]

    def curve(self, side: str, limit: int | None = POINTS) -> LossCurve:
        """Return the curve of the loss that the clusters of a side are blamed for, for a table of so many rows."""
        known = None if self.digest is None else self.digest.curve(side, limit)
        return self.totals(side).curve if known is None else known

    def take(self, side: str, name: str, codes: NDArray[np.int64]) -> pa.ChunkedArray:
        """Return a column of some clusters."""
        return self.files[side].take(name, codes)

    def sizes_of(self, side: str, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many scored items some clusters have."""
        return to_numpy(self.take(side, "n_items", codes))

    def best(
        self,
        side: str,
        metrics: list[Metric],
        beta: float,
        order_by: str,
        limit: int,
        named_by: tuple[str, str, Callable[[NDArray[np.int64]], pa.Array]],
        outcome: str | None = None,
    ) -> pa.Table:
        """Return the clusters that may be among the first `limit`; see `ClusterRanges.best`."""
        known = [*FIGURES, *(m.name for m in metrics if not m.overall_only)]
        require_known(order_by, known)
        codes = None
        if self.digest is not None and outcome is None and order_by == LOSS_OF_SIDE[side]:
            codes = self.digest.first_codes(side, limit)
        if codes is None:
            codes = to_numpy(self.first(side, order_by, limit, metrics, outcome)["code"])
        return self.files[side].take_columns(known, codes).add_column(0, "code", from_numpy(codes))

    def first(
        self, side: str, order_by: str, limit: int, metrics: list[Metric], outcome: str | None = None
    ) -> pa.Table:
        """Return the same clusters with code, items, weight, and what they are ordered by."""
        require_limit(limit)
        if outcome is not None:
            outcome_code(side, outcome)
        return self.passed(side, Costliest(order_by, limit, metrics, outcome))

    def passed(self, side: str, costliest: Costliest) -> pa.Table:
        """Return what is picked of the clusters of a side, for which their table is gone through once."""
        for first, table in self.files[side].stretches(costliest.columns):
            costliest.add(first, table)
        assert costliest.found is not None
        return costliest.found
