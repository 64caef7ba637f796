"""Statistically independent units (components, true clusters) of cells, and cells sorted by unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.overlap.cover import Cover
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_partitions import offsets
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Codes

#: Number of cells processed at a time, unless a part has more.
CELLS_OF_PIECE = 1 << 18
#: Bytes of the sums of a range of units, and maximum number of ranges.
ROOM, MOST_RANGES = 1 << 19, 1 << 12


class Units(NamedTuple):
    """The number of independent units that contain the scored items, and how uneven the units are.

    Attributes
    ----------
    n : int
        Number of units that have weight.
    effective : float
        The effective number of units: one divided by the sum of the squares of the units' weight shares.
    largest_share : float
        The share of the total weight that the largest unit has.
    """

    n: int
    effective: float
    largest_share: float


def units_of_shares(n: int, squares: float, largest: float) -> Units:
    """Return units from the sum of their squared shares and the largest share, both limited to 1 despite rounding."""
    return Units(int(n), 1.0 / float(np.minimum(squares, 1.0)), float(np.minimum(largest, 1.0)))


class Alone(NamedTuple):
    """True clusters with weight that all runs find exactly: their number, and sums of powers of their weights."""

    n: int = 0
    squares: float = 0.0  #: sum of squared weights
    fourths: float = 0.0  #: sum of fourth powers of weights
    largest: float = 0.0  #: the largest weight


class Piece(NamedTuple):
    """The cells in one part of a table, divided into those that matter and those of exactly found clusters."""

    cells: np.ndarray  #: all cells of the part
    places: Codes  #: positions of the cells whose two clusters differ, or whose true cluster is wanted
    codes: Codes  #: true clusters of these cells, or their units
    left: Codes  #: first and second true clusters of pairs that share a predicted cluster
    right: Codes
    alone: Alone  #: totals of the exactly found clusters, whose cells are left out


class Pieces(NamedTuple):
    """The cells of a table in pieces."""

    every: list[Piece]
    linked: NDArray[np.bool_]  #: mask of true clusters whose cells are not left out; shape (n_true,)


def pieces_of_runs(tables: Sequence[Contingency], every: bool, pool: Pool) -> list[Pieces]:
    """Return the pieces of each run: cells of true clusters that some run does not find exactly, or all if `every`.

    Unless `every`, true clusters must have the same codes in all runs. The pieces of the first run, whose cells give
    the weights, include the true clusters that only other runs do not find exactly.
    """
    pool.map(lambda table: table.pred, tables, stage="units")
    others = _pieces(tables[1:], every, None, pool)
    wanted = reduce(np.logical_or, (run.linked for run in others)) if others and not every else None
    return _pieces(tables[:1], every, wanted, pool) + others


def _pieces(
    tables: Sequence[Contingency], every: bool, wanted: NDArray[np.bool_] | None, pool: Pool
) -> list[Pieces]:
    """Return the pieces of each run; `wanted` marks true clusters to include although a run finds them exactly."""
    none = np.ones(0, np.bool_) if wanted is None else wanted
    asked = [np.ones(table.n_codes["true"], np.bool_) if every else none for table in tables]
    linked = [np.zeros(table.n_codes["true"], np.bool_) for table in tables]
    of_tables = list(zip(tables, asked, linked, strict=True))
    stretches = [_stretches(table) for table in tables]
    tasks = [(*of_table, *ends) for of_table, own in zip(of_tables, stretches, strict=True) for ends in own]
    most = max(sum(table.n_codes["true"] for table in tables), *(table.n_cells for table in tables), 0)
    dtype: np.dtype = np.dtype(np.int32 if most < 2**31 else np.int64)
    found = iter(pool.map(partial(_piece, pool, dtype), *zip(*tasks, strict=True), stage="units"))
    return [Pieces([next(found) for _ in own], marks) for own, marks in zip(stretches, linked, strict=True)]


def _piece(
    pool: Pool,
    dtype: np.dtype,
    table: Contingency,
    wanted: NDArray[np.bool_],
    linked: NDArray[np.bool_],
    start: int,
    stop: int,
) -> Piece:
    """Return the piece of a stretch of cells, and mark its true clusters in `linked`, which threads share."""
    cells, pred = table.cells[start:stop], table.pred[start:stop]
    first, last = (int(pred.min()), int(pred.max())) if pred.size else (0, 0)
    n_room = max(cells.size, 1 + last - first)
    with pool.workspace(
        ("cells of a piece", dtype),
        lambda: np.empty((6, max(n_room, CELLS_OF_PIECE)), dtype),
        lambda room: room.shape[1] >= n_room,
    ) as room:
        places, codes, merged, left, right, firsts = room[
            :, :n_room
        ]  # interpreted kernels copy what they are given
        n, n_merged, *of_alone = kernels.components.find_cells(cells, wanted, linked, places, codes, merged)
        firsts[: 1 + last - first] = -1
        n_pairs = kernels.components.pair_clusters(
            places, codes, pred, merged[:n_merged], first, firsts, left, right
        )
        pairs = left[:n_pairs].copy(), right[:n_pairs].copy()
        return Piece(cells, places[:n].copy(), codes[:n].copy(), *pairs, Alone(*of_alone))


def _stretches(table: Contingency) -> list[tuple[int, int]]:
    """Return ranges of a run's cells such that no predicted cluster is in two of them."""
    n = -(-table.n_cells // CELLS_OF_PIECE)
    ends = np.searchsorted(table.parts, np.arange(n + 1) * table.n_cells // n)
    return list(pairwise(sorted({*table.parts[ends].tolist()})))


@dataclass(frozen=True, eq=False)
class CellsByUnit:
    """Cells by run and, within runs, by range of units; their field `true` is the unit."""

    cells: np.ndarray
    bounds: NDArray[np.int64]  #: start of the cells of each range; shape (n_runs, n_ranges + 1)
    shift: int  #: a range has 2**shift units
    n_units: int
    alone: Alone  #: totals of true clusters that are units of their own, whose cells are left out

    @classmethod
    def of(
        cls, runs: Sequence[Pieces], units: Sequence[Codes], n_units: int, width: int, pool: Pool
    ) -> CellsByUnit:
        """Sort the cells of pieces, overwriting these; each unit needs `width` sums over all runs."""
        per_range = max(kernels.partition.RUN, ROOM // (8 * width), n_units // MOST_RANGES)
        shift = int(per_range - 1).bit_length()
        pieces = [(piece, codes) for run, codes in zip(runs, units, strict=True) for piece in run.every]
        # a saved run has wider codes than a new one, but kernels need records of one type
        wide = max((piece.cells.dtype for piece, _ in pieces), key=lambda each: each.itemsize)
        pieces = [(piece._replace(cells=piece.cells.astype(wide, copy=False)), own) for piece, own in pieces]
        counts = np.zeros((len(pieces), 1 + ((n_units - 1) >> shift)), np.int64)
        pool.map(
            lambda piece, own: kernels.units.name_units(piece[0].codes, piece[1], shift, own),
            pieces, counts, stage="units",
        )  # fmt: skip
        of_run = np.repeat(np.arange(len(runs)), [len(run.every) for run in runs])
        by_run = [offsets(counts[of_run == r]) for r in range(len(runs))]
        bases = np.cumsum([0] + [int(bounds[-1]) for bounds, _ in by_run])
        next_cell = np.concatenate([own + base for (_, own), base in zip(by_run, bases, strict=False)])
        out = buffers.empty(int(bases[-1]), wide)
        pool.map(
            lambda piece, to: kernels.units.scatter_units(*piece[0][:3], shift, to, out),
            pieces, next_cell, stage="units",
        )  # fmt: skip
        bounds = np.array([own + base for (own, _), base in zip(by_run, bases, strict=False)])
        n, squares, fourths, largest = zip(*(piece.alone for piece in runs[0].every), strict=True)
        alone = Alone(sum(n), math.fsum(squares), math.fsum(fourths), max(largest))
        return cls(out, bounds, shift, n_units, alone)


@dataclass(frozen=True, eq=False)
class CellUnits:
    """The unit of each cell of a table."""

    table: Contingency
    #: unit of each true cluster; -1 for exactly found clusters, which are units of their own
    of_true: Codes
    n_joined: int  #: number of units that have a number
    of_cell: Codes | None = None  #: unit of each cell, if not determined by its true cluster

    @cached_property
    def n(self) -> int:
        """The number of units, with or without weight."""
        return self.n_joined + self._alone.size

    @property
    def _alone(self) -> NDArray[np.int64]:
        """The codes of true clusters that are units of their own."""
        if self.of_cell is not None:
            return np.empty(0, np.int64)
        return np.flatnonzero((self.of_true < 0) & (self.table.true_n > 0))

    def named(self) -> CellUnits:
        """Return all units numbered; those that consist of one exactly found cluster come last."""
        alone, of_true = self._alone, self.of_true.astype(np.int64)
        of_true[alone] = self.n_joined + np.arange(alone.size)
        return CellUnits(self.table, of_true, self.n_joined + alone.size, self.of_cell)

    def by_cell(self) -> Codes:
        """Return the unit of each cell."""
        return self.named().of_range(0, self.table.n_cells)

    def of_range(self, start: int, stop: int) -> Codes:
        """Return the units of consecutive cells, -1 for cells of exactly found clusters."""
        if self.of_cell is not None:
            return self.of_cell[start:stop]
        return self.of_true[self.table.true[start:stop]]

    def pieces(self, every: bool, pool: Pool) -> Pieces:
        """Return the cells in pieces; unless `every`, those of exactly found clusters are left out."""
        if self.of_cell is None:
            return pieces_of_runs([self.table], every, pool)[0]
        none, places = np.empty(0, np.int64), np.arange(self.table.n_cells)
        piece = Piece(self.table.cells, places, self.of_cell.astype(np.int64), none, none, Alone())
        return Pieces([piece], np.empty(0, np.bool_))

    @property
    def of_codes(self) -> Codes:
        """The unit for each code in pieces."""
        return self.of_true if self.of_cell is None else np.arange(self.n_joined)


def components_of_tables(
    tables: Sequence[Contingency], numbers: Sequence[Codes] | None, every: bool, pool: Pool
) -> tuple[list[CellUnits], list[Pieces]]:
    """Return the connected components of the truth and all predictions, and the cells of each run.

    `numbers` has the numbers of each run's true clusters; None if their codes are the same in all runs. `every` is
    passed to `pieces_of_runs`.
    """
    if covers := [table for table in tables if isinstance(table, Cover)]:
        units = _components_of_covers(covers, numbers)
        return units, [own.pieces(every, pool) for own in units]
    pieces = pieces_of_runs(tables, every, pool)
    return _components_of_partitions(tables, pieces, numbers), pieces


def _components_of_partitions(
    tables: Sequence[Contingency], runs: Sequence[Pieces], numbers: Sequence[Codes] | None
) -> list[CellUnits]:
    """Return the components of partitions; if codes are common to all runs, true clusters in no piece get -1."""
    if numbers is None:
        linked = reduce(np.logical_or, (run.linked for run in runs))
        parents: Codes = buffers.empty(linked.size, runs[0].every[0].left.dtype)
        kernels.components.start_components(linked, parents)
    else:
        parents = np.arange(1 + max(int(own.max(initial=-1)) for own in numbers))
    for r, run in enumerate(runs):
        for piece in run.every:
            pairs = piece.left, piece.right
            if numbers is not None:
                pairs = numbers[r][piece.left], numbers[r][piece.right]
            kernels.components.join_pairs(*pairs, parents)
    n = int(kernels.components.number_components(parents))
    of_true = [parents] * len(runs) if numbers is None else [parents[own] for own in numbers]
    return [CellUnits(table, own, n) for table, own in zip(tables, of_true, strict=True)]


def _components_of_covers(covers: Sequence[Cover], numbers: Sequence[Codes] | None) -> list[CellUnits]:
    """Return the components of overlapping clusterings; items outside the truth also connect predicted clusters."""
    numbers = numbers or [np.arange(cover.truth.n_clusters) for cover in covers]
    n_true = 1 + max(int(own.max(initial=-1)) for own in numbers)
    bases = np.cumsum([n_true] + [cover.prediction.n_clusters for cover in covers])
    parents, nodes = np.arange(bases[-1]), []
    for cover, own, base in zip(covers, numbers, bases, strict=False):
        truth, prediction = cover.every[:2] if cover.outside else (cover.truth, cover.prediction)
        of_row = np.full(len(truth), -1)
        kernels.components.join_sets(truth.offsets, own[truth.codes], 0, of_row, parents)
        kernels.components.join_sets(prediction.offsets, prediction.codes, base, of_row, parents)
        nodes.append(of_row[: cover.n_cells])
    kernels.components.number_components(parents)
    used = np.zeros(parents.size, np.bool_)
    for own in nodes:
        used[parents[own]] = True
    unit = np.where(used, np.cumsum(used) - 1, -1)[parents]
    n = int(np.count_nonzero(used))
    return [
        CellUnits(cover, unit[own], n, unit[of_row])
        for cover, own, of_row in zip(covers, numbers, nodes, strict=True)
    ]


def true_clusters_of_runs(
    tables: Sequence[Contingency], numbers: Sequence[Codes] | None = None
) -> list[CellUnits]:
    """Return the true clusters as units; parameters are as in `components_of_tables`."""
    if numbers is None:
        numbers = [np.arange(tables[0].n_codes["true"])] * len(tables)
    n = 1 + max(int(own.max(initial=-1)) for own in numbers)
    return [
        CellUnits(table, np.asarray(own, np.int64), n) for table, own in zip(tables, numbers, strict=True)
    ]
