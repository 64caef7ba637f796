"""Tables of large saved results, read on demand, and what is collected while these are written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import SIDES
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import from_numpy, to_numpy
from fastbcubed.metrics.bcubed import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.metric import gain_of_f1
from fastbcubed.results.concentration import LossCurve, SizeClasses
from fastbcubed.results.stored_tables import StoredTable
from fastbcubed.results.table import FIGURES, LOSS, Listing, NamedBy, Top, best, listed, require_known
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import Floats

#: Column with the number of a cluster's items that the other side lacks.
ONLY_HERE = "n_items_only_here"
#: Columns from which totals are computed.
SUMMED = ("n_items", "weight", *LOSSES)
#: Number of clusters of a table summed at a time.
AT_ONCE = 1 << 18


class Totals:
    """Totals of all clusters of a side, by size and by loss, collected from a table in parts."""

    def __init__(self, side: str, *, outer: bool) -> None:
        self.classes = SizeClasses.none()
        self._own, self._outer = LOSS_OF_SIDE[side], outer
        self._losses, self._counts = [np.zeros(0)], [np.zeros(0, np.int64)]

    def add(self, table: pa.Table) -> None:
        """Add consecutive clusters."""
        n, weight, *lost = (to_numpy(table[name]) for name in SUMMED)
        self.classes += SizeClasses.of(n, weight, dict(zip(LOSSES, lost, strict=True)), outer=self._outer)
        found = LossCurve.of(0, to_numpy(table[self._own]))
        self._losses.append(found.losses)
        self._counts.append(found.counts)

    @property
    def held(self) -> int:
        """Number of distinct losses held."""
        return sum(each.size for each in self._losses)

    @property
    def curve(self) -> LossCurve:
        """The Lorenz curve of the side's loss."""
        losses, counts = np.concatenate(self._losses), np.concatenate(self._counts)
        n_clusters = int(self.classes.n_clusters.sum())
        return LossCurve.of(n_clusters, losses, None if (counts == 1).all() else counts)


class MayGather:
    """Selects the true clusters whose gathering may be among the first `limit` repairs.

    Gathering a cluster gains its loss of recall and at most twice its loss of precision: once for its own items, and
    once for those they were clustered with. `lost` is 1 minus precision and 1 minus recall. Weights must count in the
    confusion matrices.
    """

    def __init__(self, lost: tuple[float, float], limit: int) -> None:
        self._lost, self.limit = lost, limit
        self.codes, self._most, self._least = np.empty(0, np.int64), np.empty(0), np.empty(0)
        self._floor = -np.inf  # lower bound of the gain of each of the first `limit`

    def add(self, first: int, table: pa.Table) -> None:
        """Add consecutive clusters, with codes counted from `first`; a policy created those with null labels."""
        precision, recall = (to_numpy(table[name]) for name in LOSSES)
        there = np.flatnonzero(precision + recall)
        if "cluster" in table.column_names and table["cluster"].null_count:
            there = there[to_numpy(table["cluster"].is_valid())[there]]
        if self.limit and there.size:
            self._take(there + first, precision[there], recall[there])

    def _take(self, codes: NDArray[np.int64], precision: Floats, recall: Floats) -> None:
        most = gain_of_f1(self._lost, 2 * precision, recall) * (1 + ROUNDING)
        own = np.flatnonzero(most >= self._floor)
        self.codes = np.concatenate([self.codes, codes[own]])
        self._most = np.concatenate([self._most, most[own]])
        self._least = np.concatenate([self._least, gain_of_f1(self._lost, precision[own], recall[own])])
        if self.codes.size > self.limit:
            self._floor = np.partition(self._least, -self.limit)[-self.limit]
            kept = self._most >= self._floor
            self.codes, self._most, self._least = self.codes[kept], self._most[kept], self._least[kept]


#: Tolerance of a bound, for rounding.
ROUNDING = 1e-9


class Passing:
    """Totals of both sides' clusters, and the costliest clusters, collected while tables are written.

    At most `room` bytes of losses are held; `too_many` is set if there were more.
    """

    def __init__(self, lost: tuple[float, float], limit: int, *, outer: bool, room: int | None) -> None:
        self.outer, self._room = outer, room
        self.totals = {side: Totals(side, outer=outer) for side in SIDES}
        names: NamedBy = ("code", "cluster", None)
        self.costliest = {side: Top((), LOSS_OF_SIDE[side], limit, names) for side in SIDES}
        self.gathers = MayGather(lost, limit)
        self.too_many = False

    def watched(self, side: str, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the tables of a side's clusters unchanged, collecting totals from them."""
        first = 0
        for table in tables:
            for start, stop in blocks(table.num_rows, AT_ONCE):
                if not self.too_many:
                    self._look(side, first + start, table.slice(start, stop - start))
            first += table.num_rows
            yield table

    def _look(self, side: str, first: int, table: pa.Table) -> None:
        self.totals[side].add(table)
        loss = LOSS_OF_SIDE[side]
        self.costliest[side].add(_some(first, table, to_numpy(table[loss]) > 0, ["cluster", *FIGURES]))
        if side == "true" and self.gathers.codes.size <= MOST_GATHERS:
            self.gathers.add(first, table)
        held = sum(each.held for each in self.totals.values())
        self.too_many |= self._room is not None and held * LOSS_BYTES > self._room


#: Bytes per loss that is held.
LOSS_BYTES = 48
#: Maximum number of true clusters whose gathering may be among the first repairs; for more, all cells are read.
MOST_GATHERS = 1 << 20


def _some(first: int, table: pa.Table, there: NDArray[np.bool_], names: Sequence[str]) -> pa.Table:
    """Return columns of selected clusters with their codes; the table's first cluster has code `first`."""
    rows = np.flatnonzero(there)
    return table.select(names).take(from_numpy(rows)).add_column(0, "code", from_numpy(rows + first))


@dataclass(eq=False)
class LazyTables:
    """The tables of a large saved result, read on demand; row numbers of clusters are codes."""

    clusters: Mapping[str, StoredTable]
    outer: bool  #: whether weights count only in means
    recall_alone: float | None = None  #: the recall if the prediction had only singletons, if saved
    #: reads and checks all files, and returns the evaluation
    whole: Callable[[], Any] = field(default=lambda: None, repr=False)
    #: returns the page that was saved with the result, as plain data; None if there is none
    page: Callable[[], Mapping[str, Any] | None] = field(default=lambda: None, repr=False)
    passed: Passing | None = None  #: what was collected while the tables were written
    _totals: dict[str, Totals] = field(default_factory=dict)

    def totals(self, side: str) -> Totals:
        """Return totals of all clusters of a side, computed in one pass over their table."""
        if self.passed is not None:
            return self.passed.totals[side]
        if side not in self._totals:
            found = Totals(side, outer=self.outer)
            for _, table in self.clusters[side].scan(SUMMED):
                found.add(table)
            self._totals[side] = found
        return self._totals[side]

    def labels(self, side: str, codes: NDArray[np.int64]) -> pa.Array:
        """Return the labels of clusters by code; null for clusters created by a policy."""
        return self.clusters[side].take(["cluster"], codes)["cluster"].combine_chunks()

    def sizes_of(self, side: str, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of scored items in these clusters."""
        return to_numpy(self.clusters[side].take(["n_items"], codes)["n_items"])

    def best(self, side: str, asked: Listing) -> pa.Table:
        """Return clusters that include the first `limit` in this order; see `ClusterRanges.best`."""
        metrics, _, order_by, limit, named_by, outcome = asked
        names = [*FIGURES, *(m.name for m in metrics if not m.overall_only)]
        require_known(order_by, names)
        found = None
        if outcome is None and order_by == LOSS_OF_SIDE[side]:
            found = self._known_costliest(side, limit)
        if found is None or found.num_rows < limit:
            ordered = tuple(LOSSES) if order_by == LOSS else (order_by,)
            some = self._some(side, ordered, "n_items", outcome)
            found = best(some, metrics, order_by, limit, named_by)
        codes = found["code"]
        return self.clusters[side].take(names, to_numpy(codes)).add_column(0, "code", codes)

    def costliest(self, side: str, limit: int, named_by: NamedBy) -> pa.Table:
        """Return figures of the first `limit` clusters of a side with a loss, the costliest first."""
        loss = LOSS_OF_SIDE[side]
        if (found := self._known_costliest(side, limit)) is not None:
            return found
        found = best(self._some(side, (loss,), loss), (), loss, limit, named_by)
        return listed(found, (), loss, limit, named_by=named_by).to_arrow().select(found.column_names)

    def _known_costliest(self, side: str, limit: int) -> pa.Table | None:
        """Return the first clusters with a loss, in order; None if the table would have to be read."""
        if self.passed is None or limit > self.passed.costliest[side].limit:
            return None
        return self.passed.costliest[side].in_order().slice(0, limit)

    def _some(
        self, side: str, ordered: Sequence[str], wanted: str, outcome: str | None = None
    ) -> Iterator[pa.Table]:
        """Yield codes and order columns of the clusters with a positive value in `wanted` and this outcome."""
        names = list(dict.fromkeys([*ordered, "weight", "n_items"]))
        for first, table in self.clusters[side].scan([*names, *([] if outcome is None else ["outcome"])]):
            there = to_numpy(table[wanted]) > 0
            if outcome is not None:
                there &= to_numpy(pc.equal(table["outcome"].cast(pa.string()), outcome))
            yield _some(first, table, there, names)

    def may_gather(self, lost: tuple[float, float], limit: int, *, named: bool) -> NDArray[np.int64]:
        """Return the codes of true clusters whose gathering may be among the first `limit` repairs.

        `named` says that clusters without a label, created by a policy, must be left out.
        """
        if self.passed is not None and limit <= self.passed.gathers.limit:
            return self.passed.gathers.codes
        found = MayGather(lost, limit)
        names = [*LOSSES, *(["cluster"] if named else [])]
        for first, table in self.clusters["true"].scan(names):
            found.add(first, table)
        return found.codes
