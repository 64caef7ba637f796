"""Sums by independent unit of values of cells and of clusters; the whole table is one unit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.contingency import CELL_BLOCK, SIDES, Contingency, OneSided
from fastbcubed.cells.excerpts import chosen_of
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Floats


class Additive(NamedTuple):
    """Additive quantities by unit, and a function from their totals to the sums that scores need."""

    by_unit: list[Floats]  #: each of shape (n_units,)
    fields: Callable[..., Iterable[Any]]  #: takes the totals, and returns the arguments of scores


class CellsByUnit:
    """Cells with their units, by which values of cells and of clusters are summed.

    Entities without mentions on the other side are also units of coreference scores; `n_all` counts these. If items
    have no weights, then among the units numbered `n_joined` or higher, one unit that consists of a single exact
    cluster stands for all equal ones.
    """

    def __init__(
        self, table: Contingency, units: Codes, n: int, pool: Pool, n_joined: int | None = None
    ) -> None:
        self.whole, self.pool = table, pool
        self._equal = None if n_joined is None else merge_equal_units(table, units, n_joined, pool)
        if self._equal is None:
            self.table, self.units, self.n = table, units, n
        else:
            self.table, self.units, self.n = self._equal.table, self._equal.units, self._equal.times.size
        self._made: dict[Callable[..., Additive], Additive] = {}

    def once(self, make: Callable[[CellsByUnit], Additive]) -> Additive:
        """Return make(self), computed once and cached, so that several scores share it."""
        if make not in self._made:
            self._made[make] = make(self)
        return self._made[make]

    def cells(self, values: Any) -> Floats:
        """Sum values of cells by unit."""
        values = np.broadcast_to(np.asarray(values, np.float64), self.units.shape)
        return np.bincount(self.units, values, self.n).astype(np.float64, copy=False)

    def in_ranges(self, values: Callable[[slice], Sequence[Any]]) -> list[Floats]:
        """Sum several values of cells by unit; `values` takes a range of cells."""
        return [self.cells(each) for each in values(slice(None))]

    def clusters(self, side: str, values: NDArray[Any], *, every: bool = False) -> Floats:
        """Sum values of clusters by unit: of those with a scored item or, if `every`, of all that have items."""
        units = self._of_cluster[side] if every else self._of_scored[side]
        n = self.n_all if every else self.n
        if units.min(initial=0) < 0:
            there = units >= 0
            units, values = units[there], values[there]
        return np.bincount(units, values, n).astype(np.float64, copy=False)

    @cached_property
    def _of_scored(self) -> dict[str, Codes]:
        """The unit of each cluster, by side; -1 for a cluster without scored items."""
        found = {}
        for side in SIDES:
            codes, size, cells = self.table.memberships(side)
            units = np.full(size, -1)
            units[codes] = self.units if cells is None else self.units[cells]
            found[side] = units
        return found

    @cached_property
    def _of_cluster(self) -> dict[str, Codes]:
        """The unit of each cluster, by side; a cluster whose items all lack the other side is a unit of its own."""
        found, n = {}, self.n
        for side, units in self._of_scored.items():
            only = self.table.only(side)
            if only is not None:
                units = units.copy()
                alone = np.flatnonzero((units < 0) & (only[0] > 0))
                units[alone] = n + np.arange(alone.size)
                n += alone.size
            found[side] = units
        return found

    @cached_property
    def n_all(self) -> int:
        """The number of distinct units, including those without scored items."""
        return 1 + max(self.n - 1, *(int(units.max(initial=-1)) for units in self._of_cluster.values()))

    @cached_property
    def _times(self) -> Floats | None:
        """The number of equal units that each unit, scored or not, stands for; None if all are 1."""
        if self._equal is None:
            return None
        return np.append(self._equal.times, np.ones(self.n_all - self.n))

    def add(self, by_unit: NDArray[Any]) -> float:
        """Return the sum over all units of values by unit."""
        return float(np.sum(by_unit if self._times is None else by_unit * self._times[: by_unit.size]))

    def count(self, n: int) -> float:
        """Return the number of units that the first n units stand for."""
        return n - self.n + self._n_scored

    @cached_property
    def _n_scored(self) -> float:
        return float(self.n if self._equal is None else np.sum(self._equal.times))

    def of_whole(self, values: NDArray[Any], side: str | None = None) -> NDArray[Any]:
        """Return the values of these cells, or of these clusters of a side, given values for the whole table."""
        if self._equal is None:
            return values
        return values[self._equal.places if side is None else self._equal.in_whole[side]]


class OneUnit(CellsByUnit):
    """All cells as one unit, whose sums are those over the whole table."""

    def __init__(self, table: Contingency, pool: Pool) -> None:
        super().__init__(table, np.broadcast_to(np.int64(0), table.n_cells), 1, pool)

    def cells(self, values: Any) -> Floats:
        """Sum values of cells."""
        return np.array([_sum(np.broadcast_to(values, self.units.shape))])

    def in_ranges(self, values: Callable[[slice], Sequence[Any]]) -> list[Floats]:
        """Sum several values of cells, in ranges that stay in a core's cache, so that none is held for all cells."""

        def add_up(first: int, last: int) -> list[list[float]]:
            ranges = (slice(first + a, first + b) for a, b in blocks(last - first, CELL_BLOCK))
            return [[_sum(each) for each in values(cells)] for cells in ranges]

        sums = itertools.chain.from_iterable(self.table.map(add_up, self.pool, "sum cells"))
        return [np.array([math.fsum(each)]) for each in zip(*sums, strict=True)]

    def clusters(self, side: str, values: NDArray[Any], *, every: bool = False) -> Floats:
        """Sum values of clusters: of those with a scored item or, if `every`, of all that have items."""
        if self.table.is_complete:
            return np.array([_sum(values)])
        there = (self.table.true_n if side == "true" else self.table.pred_n) > 0
        if every and (only := self.table.only(side)) is not None:
            there |= only[0] > 0
        return np.array([_sum(values[there])])


def _sum(values: NDArray[Any]) -> float:
    return float(np.sum(values, dtype=np.float64))


class EqualUnits(NamedTuple):
    """The cells of a table with only one of each set of equal units, and how often each unit occurs."""

    table: Contingency  #: the kept cells, recoded; its totals are those of the whole table
    places: NDArray[np.int64]  #: the positions of its cells in the whole table
    in_whole: dict[str, Codes]  #: the codes of its clusters in the whole table, by side
    units: Codes  #: the unit of each of its cells
    times: Floats  #: the number of equal units that each unit stands for; shape (n_units,)


def merge_equal_units(table: Contingency, units: Codes, n_joined: int, pool: Pool) -> EqualUnits | None:
    """Keep one exact cluster of each size, among the units numbered `n_joined` or higher; None if items have weights.

    Clusters with items that only one side has are all kept. Shape of `units`: (n_cells,).
    """
    if table.weighted or table.overlapping:
        return None
    kept = units < n_joined
    for side in SIDES:
        if (alone := table.alone(side)) is not None:
            codes, size = table.codes(side)
            kept |= chosen_of(alone.codes, size)[codes]
    places, others = np.flatnonzero(kept), np.flatnonzero(~kept)
    places = places[np.argsort(units[places])]  # sums by unit read units in order
    sizes = number(np.ascontiguousarray(table.n[others], np.int64), pool)
    order = np.argsort(table.n[others[sizes.firsts]])
    times = np.ones(n_joined + np.count_nonzero(units[places] >= n_joined) + order.size)
    times[times.size - order.size :] = np.bincount(sizes.codes)[order]
    places = np.concatenate([places, others[sizes.firsts[order]]])
    own = units[places]
    own[own >= n_joined] = np.arange(n_joined, times.size)
    found, in_whole = _restrict(table, places)
    return EqualUnits(found, places, in_whole, own, times)


def _restrict(table: Contingency, places: NDArray[np.int64]) -> tuple[Contingency, dict[str, Codes]]:
    """Return a table of some cells and all one-sided items, recoded, and its clusters' codes in the whole table."""
    cells, pred = table.records(places)
    of_cells: dict[str, Codes] = {"true": cells["true"], "pred": pred}
    in_whole, one_sided = dict[str, Codes](), {}
    for side in SIDES:
        there = chosen_of(of_cells[side], table.n_codes[side])
        if (alone := table.alone(side)) is not None:
            there[alone.codes] = True
        in_whole[side], new = np.flatnonzero(there), np.cumsum(there) - 1
        of_cells[side] = new[of_cells[side]]
        if alone is not None:
            one_sided[side] = OneSided(new[alone.codes], alone.n, alone.mass)
    cells["true"] = of_cells["true"]
    found = Contingency(
        cells, lambda: of_cells["pred"], (in_whole["true"].size, in_whole["pred"].size),
        weighted=False, weighting=table.weighting, outside=table.outside, one_sided=one_sided,
    )  # fmt: skip
    for name in ("n_items", "total_weight", "n_true", "n_pred"):
        found.__dict__[name] = getattr(table, name)
    return found, in_whole
