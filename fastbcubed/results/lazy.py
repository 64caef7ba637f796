"""Large saved results: their tables stay in files, which are read part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import CELL, SIDES, Contingency, ScoredRows
from fastbcubed.inputs import arrow_functions as pc
from fastbcubed.inputs.arrays import from_numpy, to_numpy
from fastbcubed.metrics.pointwise import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.score import Metric
from fastbcubed.results.concentration import LossCurve, SizeClasses
from fastbcubed.results.stored_items import StoredTable
from fastbcubed.results.table import LOSS, NamedBy, Top, require_known
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import Floats

#: Figures of a cluster in its table, besides its label and scores.
FIGURES = ("n_items", "weight", "n_parts", "exact", "outcome", *LOSSES)
#: Items of a cluster that the other side lacks.
ONLY_HERE = "n_items_only_here"
#: Columns that totals are made of.
SUMMED = ("n_items", "weight", *LOSSES)
#: Clusters of a table that are added up at once.
AT_ONCE = 1 << 18


class Totals:
    """Totals of all clusters of a side, by size and by loss."""

    def __init__(self, side: str, *, outer: bool) -> None:
        self.classes = SizeClasses.none()
        self._own, self._outer = LOSS_OF_SIDE[side], outer
        self._losses, self._counts = [np.zeros(0)], [np.zeros(0, np.int64)]

    def add(self, table: pa.Table) -> None:
        """Take consecutive clusters."""
        n, weight, *lost = (to_numpy(table[name]) for name in SUMMED)
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


def f_gain(lost: tuple[float, float], precision: Floats, recall: Floats) -> Floats:
    """Return the F1 gain of gains in precision and recall, to the last digits however small.

    `lost` is 1 minus precision and recall.
    """
    p, r = 1 - lost[0], 1 - lost[1]
    above = p * p * recall + r * r * precision + precision * recall * (p + r)
    gain: Floats = 2 * above / ((p + r) * ((p + r) + (precision + recall)))
    return gain


class MayGather:
    """The true clusters whose gathering may be among the first `limit` repairs.

    Gathering one gains what its items lose of recall, and at most as much of precision as they lose, and once more for
    what they were clustered with. `lost` is 1 minus precision and recall. Weights have to count in the confusion
    matrices.
    """

    def __init__(self, lost: tuple[float, float], limit: int) -> None:
        self._lost, self.limit = lost, limit
        self.codes, self._most, self._least = np.empty(0, np.int64), np.empty(0), np.empty(0)
        self._floor = -np.inf  # lower bound of the gain of the first `limit`

    def add(self, first: int, table: pa.Table) -> None:
        """Take consecutive clusters from a code on; null labels are of clusters that a policy has made."""
        precision, recall = (to_numpy(table[name]) for name in LOSSES)
        there = np.flatnonzero(precision + recall)
        if "cluster" in table.column_names and table["cluster"].null_count:
            there = there[to_numpy(table["cluster"].is_valid())[there]]
        if self.limit and there.size:
            self._take(there + first, precision[there], recall[there])

    def _take(self, codes: NDArray[np.int64], precision: Floats, recall: Floats) -> None:
        most = f_gain(self._lost, 2 * precision, recall) * (1 + ROUNDING)
        own = np.flatnonzero(most >= self._floor)
        self.codes = np.concatenate([self.codes, codes[own]])
        self._most = np.concatenate([self._most, most[own]])
        self._least = np.concatenate([self._least, f_gain(self._lost, precision[own], recall[own])])
        if self.codes.size > self.limit:
            self._floor = np.partition(self._least, -self.limit)[-self.limit]
            kept = self._most >= self._floor
            self.codes, self._most, self._least = self.codes[kept], self._most[kept], self._least[kept]


#: The rounding allowance of a bound.
ROUNDING = 1e-9


class Passing:
    """Totals of the clusters of both sides, and the first of them, collected while their tables are written.

    At most `room` bytes of losses are held; `too_many` says that they were more.
    """

    def __init__(self, lost: tuple[float, float], limit: int, *, outer: bool, room: int | None) -> None:
        self.outer, self._room = outer, room
        self.totals = {side: Totals(side, outer=outer) for side in SIDES}
        names: NamedBy = ("code", "cluster", None)
        self.costliest = {side: Top((), LOSS_OF_SIDE[side], limit, names) for side in SIDES}
        self.gathers = MayGather(lost, limit)
        self.too_many = False

    def watched(self, side: str, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the tables of the clusters of a side, which are looked at on the way."""
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


#: Bytes of a loss that is held.
LOSS_BYTES = 48
#: True clusters of which gathering may be among the first repairs: of more, all cells are read.
MOST_GATHERS = 1 << 20


def _some(first: int, table: pa.Table, there: NDArray[np.bool_], names: Sequence[str]) -> pa.Table:
    """Return columns of chosen clusters of a table whose first cluster has a code, and their codes."""
    rows = np.flatnonzero(there)
    return table.select(names).take(from_numpy(rows)).add_column(0, "code", from_numpy(rows + first))


@dataclass(eq=False)
class LazyTables:
    """The tables of a large saved result; row numbers of clusters are codes."""

    clusters: Mapping[str, StoredTable]
    outer: bool  #: whether weights count in means alone
    recall_alone: float | None = None  #: the recall if all items were alone, where it was saved
    #: reads and checks all files, and returns the evaluation
    whole: Callable[[], Any] = field(default=lambda: None, repr=False)
    #: returns the content of the page that was saved with the result; None if there is none
    page: Callable[[], Mapping[str, Any] | None] = field(default=lambda: None, repr=False)
    passed: Passing | None = None  #: what was collected while the tables were written
    _totals: dict[str, Totals] = field(default_factory=dict)

    def totals(self, side: str) -> Totals:
        """Return totals of all clusters of a side, from one pass over their table."""
        if self.passed is not None:
            return self.passed.totals[side]
        if side not in self._totals:
            found = Totals(side, outer=self.outer)
            for _, table in self.clusters[side].scan(SUMMED):
                found.add(table)
            self._totals[side] = found
        return self._totals[side]

    def labels(self, side: str, codes: NDArray[np.int64]) -> pa.Array:
        """Return the labels of clusters, null for one that a policy has made."""
        return self.clusters[side].take(["cluster"], codes)["cluster"].combine_chunks()

    def sizes_of(self, side: str, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many scored items some clusters have."""
        return to_numpy(self.clusters[side].take(["n_items"], codes)["n_items"])

    def best(
        self,
        side: str,
        metrics: list[Metric],
        beta: float,
        order_by: str,
        limit: int,
        named_by: NamedBy,
        outcome: str | None = None,
    ) -> pa.Table:
        """Return the clusters that may be among the first `limit`; see `ClusterRanges.best`."""
        names = [*FIGURES, *(m.name for m in metrics if not m.overall_only)]
        require_known(order_by, names)
        found = None
        if outcome is None and order_by == LOSS_OF_SIDE[side]:
            found = self._known_costliest(side, limit)
        if found is None or found.num_rows < limit:
            ordered = tuple(LOSSES) if order_by == LOSS else (order_by,)
            found = self._top(side, ordered, Top(metrics, order_by, limit, named_by), "n_items", outcome)
        codes = found["code"]
        return self.clusters[side].take(names, to_numpy(codes)).add_column(0, "code", codes)

    def costliest(self, side: str, limit: int, named_by: NamedBy) -> pa.Table:
        """Return figures of the first clusters of a side that have a loss, the costliest first."""
        loss = LOSS_OF_SIDE[side]
        if (found := self._known_costliest(side, limit)) is not None:
            return found
        top = Top((), loss, limit, named_by)
        self._top(side, (loss,), top, loss)
        return top.in_order()

    def _known_costliest(self, side: str, limit: int) -> pa.Table | None:
        """Return the first clusters of a side that have a loss, in their order; None if that takes a scan."""
        if self.passed is None or limit > self.passed.costliest[side].limit:
            return None
        return self.passed.costliest[side].in_order().slice(0, limit)

    def _top(
        self, side: str, ordered: Sequence[str], top: Top, wanted: str, outcome: str | None = None
    ) -> pa.Table:
        """Give clusters whose column `wanted` is above 0, and that have an outcome, to `top`; return its rows."""
        names = list(dict.fromkeys([*ordered, "weight", "n_items"]))
        for first, table in self.clusters[side].scan([*names, *([] if outcome is None else ["outcome"])]):
            there = to_numpy(table[wanted]) > 0
            if outcome is not None:
                there &= to_numpy(pc.equal(table["outcome"].cast(pa.string()), outcome))
            top.add(_some(first, table, there, names))
        assert top.found is not None
        return top.found

    def may_gather(self, lost: tuple[float, float], limit: int, *, named: bool) -> NDArray[np.int64]:
        """Return the true clusters whose gathering may be among the first `limit` repairs.

        With `named`, some clusters were made by a policy, and have no label.
        """
        if self.passed is not None and limit <= self.passed.gathers.limit:
            return self.passed.gathers.codes
        found = MayGather(lost, limit)
        names = [*LOSSES, *(["cluster"] if named else [])]
        for first, table in self.clusters["true"].scan(names):
            found.add(first, table)
        return found.codes


class LazyCells(Contingency):
    """Cells in a file, of which parts are read; any other access reads and checks the whole result."""

    def __init__(
        self,
        file: StoredTable,
        whole: Callable[[], Any],
        rows: ScoredRows | None,
        known: Mapping[str, Any],
    ) -> None:
        """Take over a file of cells; `known` are attributes that take no reading."""
        self._file, self._whole, self.rows = file, whole, rows
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_whole" not in self.__dict__:
            raise AttributeError(name)
        found = self._whole().contingency
        self.__dict__.update({**found.__dict__, **self.__dict__})
        return getattr(found, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _same, (self._whole().contingency,)

    @property
    def n_cells(self) -> int:
        """Non-empty pairs of clusters."""
        return self._file.num_rows

    def codes_in_blocks(self) -> Iterator[tuple[int, NDArray[np.integer], NDArray[np.integer]]]:
        """Yield the first of consecutive cells, and the codes of their true and predicted clusters."""
        for first, table in self._file.scan(SIDES):
            yield first, to_numpy(table["true"]), to_numpy(table["pred"])

    def records(self, cells: NDArray[np.int64]) -> tuple[np.ndarray, NDArray[np.integer]]:
        """Return some cells, and the codes of their predicted clusters."""
        names = CELL.names or ()
        table = self._file.take([*names, "pred"], cells)
        found = np.empty(cells.size, CELL)
        for name in names:
            found[name] = to_numpy(table[name])
        return found, to_numpy(table["pred"])


def _same(found: Contingency) -> Contingency:
    """Return the argument: lazy cells are pickled as all cells."""
    return found
