"""Units: what could have been drawn otherwise. All items of a unit come together, or none of them does.

Items that share a cluster on either side share scores, so the unit is the connected component of truth and
prediction. Most components are one cell, whose two clusters are the same: these are alone, and only counted. The other
cells are put in the order of their units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
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
#: Cells of one task of a pool, unless one unit has more.
CELLS_OF_RANGE = 1 << 18
#: Bytes of a cluster while clusters are joined, and of a cell while it is ordered; where codes have 32 bits.
CLUSTER_BYTES, CELL_BYTES = 4, 16


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


class Alone(NamedTuple):
    """Cells that are units by themselves and have weight."""

    n: int = 0
    squares: float = 0.0  #: of their shares of the weight, added up
    largest: float = 0.0  #: the largest share
    heaviest: int = -1  #: the cell that has it


@dataclass(frozen=True, eq=False)
class CellUnits:
    """Cells in the order of their units, but for those that are units by themselves."""

    order: Codes  #: cells
    starts: NDArray[np.int64]  #: where the cells of each unit begin in `order`; shape (n_ordered + 1,)
    alone: Alone
    n: int  #: units, those by themselves, too, with or without weight

    @classmethod
    def of(cls, codes: Codes, n_codes: int, alone: Alone) -> CellUnits:
        """Put cells in the order of the codes of their units; -1 for a cell that is alone. All codes are used."""
        starts = np.zeros(n_codes + 1, np.int64)
        kernels.memberships.count_codes(codes, starts[1:])
        np.cumsum(starts, out=starts)
        order = np.empty(starts[-1], np.int32 if codes.size < 2**31 else np.int64)
        kernels.components.order_by_code(codes, starts[:-1].copy(), order)
        return cls(order, starts, alone, n_codes + codes.size - order.size)

    def ranges(self) -> list[tuple[int, int]]:
        """Return ranges of units that have about as many cells."""
        n_cells = self.order.size
        ends = np.searchsorted(self.starts, np.arange(0, n_cells + CELLS_OF_RANGE, CELLS_OF_RANGE))
        bounds = np.unique(np.minimum(ends, self.starts.size - 1)).tolist()
        return list(pairwise(bounds))

    def by_cell(self, n_cells: int) -> NDArray[np.int64]:
        """Return the unit of each cell."""
        n_ordered = self.starts.size - 1
        codes = np.full(n_cells, -1)
        codes[self.order] = np.repeat(np.arange(n_ordered), np.diff(self.starts))
        codes[codes < 0] = n_ordered + np.arange(n_cells - self.order.size)
        return codes


def components(table: Contingency, limit: int | None = None) -> CellUnits:
    """Return the connected components of truth and prediction, by cell; raise OptionError if they take too much."""
    if isinstance(table, Cover):
        return _components_of_cover(table)
    n_true, n_pred = (table.n_codes[side] for side in ("true", "pred"))
    _require_room((n_true + n_pred) * CLUSTER_BYTES + table.n_cells * CELL_BYTES, limit)
    dtype = np.int32 if n_true < 2**31 else np.int64
    firsts, parents = np.full(n_pred, -1, dtype), np.full(n_true, -1, dtype)
    pred, total, alone = table.pred, table.total_weight, [Alone()]
    ranges = blocks(table.n_cells, CELLS_OF_RANGE)
    for start, stop in ranges:
        counted, squares, largest, heaviest = kernels.components.join_cells(
            table.cells[start:stop], pred[start:stop], total, firsts, parents
        )
        alone.append(Alone(counted, squares, largest, start + heaviest))
    del firsts
    n = kernels.components.number_components(parents)
    codes: Codes = np.empty(table.n_cells, dtype)
    for start, stop in ranges:
        kernels.components.read_codes(table.cells[start:stop], parents, codes[start:stop])
    return CellUnits.of(codes, n, _all_of(alone))


def _all_of(alone: list[Alone]) -> Alone:
    counts, squares, largest, _ = zip(*alone, strict=True)
    return Alone(sum(counts), math.fsum(squares), max(largest), alone[int(np.argmax(largest))].heaviest)


def _components_of_cover(cover: Cover) -> CellUnits:
    """Return those of items in several clusters; items outside the truth connect predicted clusters, too."""
    truth, prediction = cover.every[:2] if cover.outside else (cover.truth, cover.prediction)
    parents = np.arange(truth.n_clusters + prediction.n_clusters)
    nodes = np.full(len(truth), -1)
    kernels.components.join_sets(truth.offsets, truth.codes, 0, nodes, parents)
    kernels.components.join_sets(prediction.offsets, prediction.codes, truth.n_clusters, nodes, parents)
    kernels.components.number_components(parents)
    return units_by_code(parents[nodes[: cover.n_cells]], parents.size)


def true_clusters(table: Contingency) -> CellUnits:
    """Return the true clusters as units."""
    if table.overlapping:
        raise OptionError(
            'unit="true_cluster" needs true clusters that share no item, and with overlapping=True they may; '
            'take unit="component"'
        )
    return units_by_code(*table.codes("true"))


def units_by_code(codes: Codes, n_codes: int) -> CellUnits:
    """Return the units of cells by their codes, of which some may not be used."""
    used = np.zeros(n_codes, np.bool_)
    used[codes] = True
    return CellUnits.of((np.cumsum(used) - 1)[codes], int(np.count_nonzero(used)), Alone())


def _require_room(needed: int, limit: int | None) -> None:
    """Raise OptionError if standard errors take more memory than the limit."""
    if limit is not None and needed > limit:
        raise OptionError(
            f"standard errors would take about {readable(needed)} of memory, as clusters and cells are held as a "
            f"whole; evaluate with memory_limit of at least {(needed >> 20) + 1} MiB"
        )


def count_units(table: Contingency, units: CellUnits) -> Units:
    """Return how many units there are, and how evenly the weight is spread over them."""
    total, alone = table.total_weight, units.alone
    squares, largest, n = [alone.squares], alone.largest, alone.n
    for first, last in units.ranges():
        begin, end = units.starts[first], units.starts[last]
        shares = table.weight[units.order[begin:end]] / total
        by_unit = np.add.reduceat(shares, units.starts[first:last] - begin)
        squares.append(float(np.sum(by_unit * by_unit)))
        largest, n = max(largest, float(by_unit.max())), n + int(np.count_nonzero(by_unit))
    return Units(n, 1.0 / math.fsum(squares), largest)
