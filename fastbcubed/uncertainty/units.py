"""Units: what could have been drawn otherwise. All items of a unit come together, or none of them does.

Items that share a cluster on either side share scores, so the unit is the connected component of truth and
prediction. Most components are one cell, whose two clusters are the same; these are not numbered, and take no room.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import OptionError
from fastbcubed.overlap.covers import Cover
from fastbcubed.runtime.pool import blocks
from fastbcubed.runtime.spill import readable

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]
#: Cells that are handled at once: few enough for a core's cache.
CELLS_AT_ONCE = 1 << 14


class Units(NamedTuple):
    """How many independent units the scored items come in.

    Attributes
    ----------
    n : int
        Units that have weight.
    effective : float
        As many units of equal weight would tell as much: one over the sum of the squares of their shares.
    largest_share : float
        The share of the weight that the largest unit has.
    """

    n: int
    effective: float
    largest_share: float


@dataclass(frozen=True, eq=False)
class CellUnits:
    """Which unit each cell is in."""

    #: unit of the cells of each true cluster, or with `by_cell` of each cell; -1 for a cell that is a unit by itself
    known: Codes
    by_cell: bool
    n_numbered: int  #: units with a number, from 0 on
    n_alone: int  #: cells that are units by themselves

    @property
    def n(self) -> int:
        """Units, with or without weight."""
        return self.n_numbered + self.n_alone

    def of(self, table: Contingency, start: int, stop: int) -> Codes:
        """Return the units of a range of cells; -1 for a cell that is one by itself."""
        if self.by_cell:
            return self.known[start:stop]
        return self.known[table.true[start:stop]]

    def numbered(self, table: Contingency) -> Codes:
        """Return the unit of each cell, all of them numbered."""
        codes = self.of(table, 0, table.n_cells).astype(np.int64)
        alone = np.flatnonzero(codes < 0)
        codes[alone] = self.n_numbered + np.arange(alone.size)
        return codes


def components(table: Contingency, limit: int | None = None) -> CellUnits:
    """Return the connected components of truth and prediction, by cell; raise OptionError if they take too much."""
    if isinstance(table, Cover):
        return _components_of_cover(table)
    true, n_true = table.true, table.codes("true")[1]
    n_pred = table.codes("pred")[1]
    dtype = np.dtype(np.int32 if n_true < 2**31 else np.int64)
    require_room((n_true + n_pred) * dtype.itemsize, limit)
    firsts, parents = np.full(n_pred, -1, dtype), np.full(n_true, -1, dtype)
    n_exact = 0
    for start, stop in blocks(true.size, CELLS_AT_ONCE << 6):
        n_exact += kernels.components.join_cells(
            table.cells[start:stop], table.pred[start:stop], firsts, parents
        )
    del firsts
    return CellUnits(parents, False, kernels.components.number_components(parents), n_exact)


def _components_of_cover(cover: Cover) -> CellUnits:
    """Return those of items in several clusters; items outside the truth connect predicted clusters, too."""
    truth, prediction = cover.every[:2] if cover.outside else (cover.truth, cover.prediction)
    parents = np.arange(truth.n_clusters + prediction.n_clusters)
    nodes = np.full(len(truth), -1)
    kernels.components.join_sets(truth.offsets, truth.codes, 0, nodes, parents)
    kernels.components.join_sets(prediction.offsets, prediction.codes, truth.n_clusters, nodes, parents)
    kernels.components.number_components(parents)
    return _dense(parents[nodes[: cover.n_cells]])


def _dense(codes: Codes) -> CellUnits:
    """Return the units of cells by codes of which some are not used."""
    used = np.zeros(int(codes.max()) + 1, np.bool_)
    used[codes] = True
    return CellUnits((np.cumsum(used) - 1)[codes], True, int(np.count_nonzero(used)), 0)


def true_clusters(table: Contingency) -> CellUnits:
    """Return the true clusters as units."""
    if table.overlapping:
        raise OptionError(
            'unit="true_cluster" needs true clusters that share no item, and with overlapping=True they may; '
            'take unit="component"'
        )
    there = table.true_n > 0
    return CellUnits(np.cumsum(there) - 1, False, int(np.count_nonzero(there)), 0)


def require_room(needed: int, limit: int | None) -> None:
    """Raise OptionError if standard errors take more memory than the limit."""
    if limit is not None and needed > limit:
        raise OptionError(
            f"standard errors would take about {readable(needed)} of memory, for the clusters are held as a whole; "
            f"evaluate with memory_limit of at least {(needed >> 20) + 1} MiB"
        )


class Spread(NamedTuple):
    """What was added up by unit: the sum of the squares, the largest sum, and how many are not 0."""

    squares: float
    largest: float
    n_nonzero: int


def spread(units: CellUnits, terms: Iterable[tuple[Codes, Floats, Floats]]) -> Spread:
    """Add up weight * value by unit, and return what the sums come to.

    `terms` are units, weights and values of one block of cells after the other.
    """
    totals, errors = np.zeros(units.n_numbered), np.zeros(units.n_numbered)
    found = []
    for codes, weight, values in terms:
        kernels.sums.add_by_code(codes, weight, values, None, totals, errors)
        if units.n_alone:
            found.append(_spread_of(np.where(codes < 0, weight * values, 0.0)))
    found += [_spread_of(totals[a:b] + errors[a:b]) for a, b in blocks(totals.size, CELLS_AT_ONCE)]
    squares, largest, n_nonzero = zip(*found, strict=True)
    return Spread(math.fsum(squares), max(largest), sum(n_nonzero))


def _spread_of(sums: Floats) -> Spread:
    return Spread(float(np.sum(sums * sums)), float(sums.max(initial=0.0)), int(np.count_nonzero(sums)))


def count_units(table: Contingency, units: CellUnits) -> Units:
    """Return how many units there are, and how evenly the weight is spread over them."""
    total = table.total_weight
    ones = np.ones(CELLS_AT_ONCE)

    def terms() -> Iterator[tuple[Codes, Floats, Floats]]:
        for a, b in blocks(table.n_cells, CELLS_AT_ONCE):
            yield units.of(table, a, b), table.weight[a:b] / total, ones[: b - a]

    found = spread(units, terms())
    return Units(found.n_nonzero, 1.0 / found.squares, found.largest)
