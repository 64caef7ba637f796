"""The clusters of a saved result, read part by part from its two tables: the costliest, and what all come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fastbcubed.metrics.losses import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.items.stored_items import StoredTable
from fastbcubed.results.listings.concentration import LossCurve
from fastbcubed.results.listings.listing import LOSS, contenders, require_known, require_limit
from fastbcubed.results.listings.outcomes import outcome_code
from fastbcubed.results.listings.size_classes import SizeClasses
from fastbcubed.sources.arrays import from_numpy, to_numpy

#: What a listing has of a cluster besides its label and scores.
FIGURES = ("n_items", "weight", "n_parts", "exact", "outcome", *LOSSES)
#: What scored items of a cluster are, and those that the other side lacks.
ONLY_HERE = "n_items_only_here"


class AllClusters(NamedTuple):
    """What all clusters of a side come to."""

    classes: SizeClasses
    losses: NDArray[np.float64]  #: of those that cost anything
    n: int  #: those with a scored item


class SavedClusters:
    """The tables of clusters of a saved result, in which a row number is a code."""

    def __init__(self, files: Mapping[str, StoredTable], *, outer: bool) -> None:
        self.files, self._outer = files, outer
        self._all: dict[str, AllClusters] = {}

    def all_of(self, side: str) -> AllClusters:
        """Return what all clusters of a side come to, for which their table is gone through once."""
        if side not in self._all:
            classes, losses = SizeClasses.none(), [np.zeros(0)]
            for _, table in self.files[side].stretches(["n_items", "weight", *LOSSES]):
                n, weight, *lost = (to_numpy(column) for column in table.columns)
                classes += SizeClasses.of(n, weight, dict(zip(LOSSES, lost, strict=True)), outer=self._outer)
                own = to_numpy(table[LOSS_OF_SIDE[side]])
                losses.append(own[own > 0])
            self._all[side] = AllClusters(classes, np.concatenate(losses), int(classes.n_clusters.sum()))
        return self._all[side]

    def curve(self, side: str) -> LossCurve:
        """Return the curve of the loss that the clusters of a side are blamed for."""
        found = self.all_of(side)
        return LossCurve.of(found.n, found.losses)

    def take(self, side: str, name: str, codes: NDArray[np.int64]) -> pa.ChunkedArray:
        """Return a column of some clusters."""
        return self.files[side].take(name, codes)

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
        found = self.first(side, order_by, limit, metrics, outcome)
        chosen = self.files[side].take_columns(known, to_numpy(found["code"]))
        return chosen.add_column(0, "code", found["code"])

    def first(
        self, side: str, order_by: str, limit: int, metrics: list[Metric], outcome: str | None = None
    ) -> pa.Table:
        """Return the same clusters with code, items, weight, and what they are ordered by."""
        require_limit(limit)
        columns = dict.fromkeys([*(LOSSES if order_by == LOSS else (order_by,)), "weight", "n_items"])
        if outcome is not None:
            outcome_code(side, outcome)
            columns["outcome"] = None
        found: pa.Table | None = None
        for first, table in self.files[side].stretches(list(columns)):
            codes = np.arange(first, first + table.num_rows)
            table = table.add_column(0, "code", from_numpy(codes)).filter(_listed(table, outcome))
            table = table if outcome is None else table.drop_columns(["outcome"])
            found = table if found is None else pa.concat_tables([found, table])
            found = contenders(found, metrics, order_by, limit).combine_chunks()
        assert found is not None
        return found


def _listed(table: pa.Table, outcome: str | None) -> Any:
    """Return which clusters of a table have scored items, and an outcome."""
    there = pc.greater(table["n_items"], 0)
    return there if outcome is None else pc.and_(there, pc.equal(table["outcome"].cast(pa.string()), outcome))
