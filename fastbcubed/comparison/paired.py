"""What each unit adds to the scores of runs, and the squares of how runs differ by that.

What a unit adds to a score of one run and to that of another are taken from each other before they are squared:
where both runs treat a unit alike, it adds nothing to the error of their difference. True clusters that all runs find
exactly are units by themselves, and are only counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.comparison.cells_by_unit import NONE_ALONE, Alone, CellsByUnit
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.uncertainty.standard_errors import slopes
from fastbcubed.uncertainty.units import CELLS_AT_ONCE, Units

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]
#: Units whose differences are squared by one kernel call.
UNITS_AT_ONCE = 1 << 17
#: Ranges of units that are added up by one.
RANGES_AT_ONCE = 8
#: Scores that are 1 less another one, and move against it.
MIRRORED = {"over_merge_rate": ("precision", -1.0), "under_merge_rate": ("recall", -1.0)}
_MIRROR = {name: METRICS[own] for name, (own, _) in MIRRORED.items()}


@dataclass(frozen=True, eq=False)
class RunScores:
    """The means that scores of a run come from, and the origins from which deviations are added up.

    The origin of a score is what it is for true clusters that are found exactly, so that these add nothing.
    """

    needed: tuple[str, ...]  #: the scores of items that the others come from
    means: Mapping[str, float]
    origins: Floats  #: shape (n_needed,)

    @classmethod
    def of_cells(cls, table: Contingency, needed: Sequence[Metric], means: Mapping[str, float]) -> RunScores:
        """Take the origins from the formulas, or from a cell whose clusters are the same; else the means."""
        from fastbcubed.metrics import compiled

        fast, formulas = _compiled(needed)
        origins = np.empty(len(needed))
        origins[fast] = compiled.origins(formulas)
        others = np.setdiff1d(np.arange(len(needed)), fast)
        of_exact = _exact_scores(table, [needed[k] for k in others])
        of_mean = [means[needed[k].name] for k in others]
        origins[others] = np.where(np.isfinite(of_exact), of_exact, of_mean)
        return cls(tuple(m.name for m in needed), means, origins)

    @classmethod
    def of_rows(cls, needed: Sequence[Metric], means: Mapping[str, float]) -> RunScores:
        """Take the means for origins."""
        names = tuple(m.name for m in needed)
        return cls(names, means, np.array([means[name] for name in names]))

    def coefficients(self, metrics: Sequence[Metric], beta: float) -> Floats:
        """Return how much each score moves with the sum of each needed one. Shape (n_metrics, n_needed)."""
        found = np.zeros((len(metrics), len(self.needed)))
        for row, metric in zip(found, metrics, strict=True):
            for name, slope in slopes_by(metric, self.means, beta):
                row[self.needed.index(name)] += slope
        return found

    def of_share(self, coefficients: Floats) -> Floats:
        """Return how much each score moves with the share of what is found exactly. Shape (n_metrics,)."""
        means = np.array([self.means[name] for name in self.needed])
        return np.asarray(coefficients @ (self.origins - means))


class Moves(NamedTuple):
    """How much each score of each run moves with what a unit adds up to, and which run is the baseline."""

    baseline: int
    of_scores: Floats  #: shape (n_runs, n_metrics, n_needed)
    of_shares: Floats  #: shape (n_runs, n_metrics)

    @classmethod
    def of(cls, runs: Sequence[RunScores], metrics: Sequence[Metric], beta: float, baseline: int) -> Moves:
        """Work out the slopes of all runs."""
        of_scores = [run.coefficients(metrics, beta) for run in runs]
        of_shares = [run.of_share(own) for run, own in zip(runs, of_scores, strict=True)]
        return cls(baseline, np.stack(of_scores), np.stack(of_shares))


class UnitSums(NamedTuple):
    """What the units of several runs add up to."""

    shares: Floats  #: of the weight; shape (1, n_units), or (n_runs, n_units) where they are not the same in all runs
    sums: Floats  #: share * (score - origin) by unit; shape (n_runs, n_units, n_needed)

    @classmethod
    def of_rows(
        cls,
        table: Contingency,
        needed: Sequence[Metric],
        scores: RunScores,
        units: Codes,
        n_units: int,
    ) -> UnitSums:
        """Add up the rows of a run by their unit, negative for a row of none."""
        assert table.rows is not None
        rows = np.flatnonzero((table.rows.cell >= 0) & (units >= 0))
        codes, share = units[rows], table.rows.weight[rows] / table.total_weight
        shares: Floats = np.bincount(codes, share, n_units).astype(np.float64, copy=False)
        found = cls(shares[None], np.zeros((1, n_units, len(needed))))
        for k, metric in enumerate(needed):
            deviations = aggregation.item_scores(table, metric)[rows] - scores.origins[k]
            found.sums[0, :, k] = np.bincount(codes, deviations * share, n_units)
        return found


class Squares(NamedTuple):
    """The squares, added up, of what units add to each run's scores, less what they add to the baseline's."""

    by_run: Floats  #: shape (n_runs, n_metrics)
    units: Units

    @classmethod
    def of(
        cls, parts: Sequence[tuple[Floats, Floats]], moves: Moves, total: float, alone: Alone = NONE_ALONE
    ) -> Squares:
        """Add up those of parts of the units, as kernels tell them, and of true clusters that are alone."""
        squares = np.sum([own for own, _ in parts], axis=0)
        n, of_shares, largest = zip(*(counted for _, counted in parts), strict=True)
        every = math.fsum([*of_shares, alone.squares / total**2])
        if alone.n:
            squares += (moves.of_shares - moves.of_shares[moves.baseline]) ** 2 * (alone.squares / total**2)
        units = Units(int(sum(n)) + alone.n, 1.0 / every, float(max(*largest, alone.largest / total)))
        return cls(squares, units)


def squares_of_cells(
    tables: Sequence[Contingency],
    by_unit: CellsByUnit,
    units: Sequence[Codes],
    needed: Sequence[Metric],
    runs: Sequence[RunScores],
    moves: Moves,
    pool: Pool,
    *,
    kept: UnitSums,
) -> Squares:
    """Add up cells by unit, range by range, and square the differences; the sums stay in `kept` if that has room."""
    from fastbcubed.metrics import compiled

    fast, formulas = _compiled(needed)
    others = np.setdiff1d(np.arange(len(needed)), fast)
    of_others = np.array(
        [
            _other_sums(table, [needed[k] for k in others], run.origins[others], codes, by_unit.n_units)
            for table, codes, run in zip(tables, units, runs, strict=True)
        ]
    )
    own_weights = tables[: kept.shares.shape[0]]  # the first one's are those of all runs
    totals = np.resize([table.total_weight for table in own_weights], len(tables))
    of_runs = totals, tables[0].weighting == "outer"
    of_formulas = formulas, runs[0].origins[fast], fast
    n_ranges, per_range = by_unit.bounds.shape[1] - 1, min(1 << by_unit.shift, by_unit.n_units)

    def square(first: int, last: int) -> tuple[Floats, Floats]:
        squares, counted = np.zeros(moves.of_shares.shape), np.zeros(3)
        with pool.workspace("ranges of units", lambda: _room(kept, per_range)) as room:
            compiled.square_ranges(
                by_unit.cells, by_unit.bounds, (first, last, by_unit.shift), by_unit.n_units, of_runs,
                of_formulas, (of_others, others), tuple(moves), room, squares, counted,
            )  # fmt: skip
        return squares, counted

    ranges = blocks(n_ranges, RANGES_AT_ONCE)
    found = pool.map(square, *zip(*ranges, strict=True), stage="standard errors")
    return Squares.of(found, moves, totals[0], by_unit.alone)


def squares_of_sums(found: UnitSums, moves: Moves, pool: Pool) -> Squares:
    """Square the differences of sums that are at hand."""

    def square(a: int, b: int) -> tuple[Floats, Floats]:
        squares, counted = np.zeros(moves.of_shares.shape), np.zeros(3)
        _, _, rows = _room(found, 0)
        kernels.paired.square_units(
            found.shares[:, a:b], found.sums[:, a:b], tuple(moves), rows, squares, counted
        )
        return squares, counted

    ranges = blocks(found.shares.shape[1], UNITS_AT_ONCE)
    return Squares.of(pool.map(square, *zip(*ranges, strict=True), stage="standard errors"), moves, 1.0)


def _room(kept: UnitSums, n: int) -> tuple[Floats, Floats, tuple[Floats, Floats, Floats]]:
    """Return room for the sums of n units, or what is kept of all of them, and for a run of units."""
    (n_shares, n_kept), (n_runs, _, n_needed) = kept.shares.shape, kept.sums.shape
    rows = (
        np.empty((n_shares, kernels.runs.RUN)),
        np.empty((n_runs, n_needed, kernels.runs.RUN)),
        np.empty(kernels.runs.RUN),
    )
    if n_kept:
        return *kept, rows
    return np.empty((n_shares, n)), np.empty((n_runs, n, n_needed)), rows


def _compiled(needed: Sequence[Metric]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which scores are compiled, and the positions of their formulas."""
    from fastbcubed.metrics import compiled

    found = [None if m.leave_one_out or m.matrix else compiled.position(m.formula) for m in needed]
    fast = [(k, position) for k, position in enumerate(found) if position is not None]
    columns, formulas = np.array(fast, np.int64).reshape(-1, 2).T.copy()
    return columns, formulas


def needed_by(metrics: Sequence[Metric], beta: float) -> list[Metric]:
    """Return the scores of items that scores come from; of two that are mirrored one."""
    found = (m for m in aggregation.with_needs(metrics, beta) if m.formula is not None)
    return list({m.name: m for m in (_MIRROR.get(each.name, each) for each in found)}.values())


def slopes_by(metric: Metric, means: Mapping[str, Any], beta: float) -> list[tuple[str, Any]]:
    """Return which of the needed scores a score moves with, and how much it does."""
    if metric.name in MIRRORED:
        return [MIRRORED[metric.name]]
    return slopes(metric, means, beta)


def same_where_exact(metrics: Sequence[Metric]) -> bool:
    """Tell whether all clusters that are found exactly have the same scores, as with all scores of the registry."""
    return all(metric.family != "own" for metric in metrics)


def means_of(
    table: Contingency,
    needed: Sequence[Metric],
    metrics: Sequence[Metric],
    overall: Mapping[str, float],
    pool: Pool,
) -> Mapping[str, float]:
    """Return the means of the needed scores: `overall` has those of `metrics`, and others are worked out."""
    known = {m.name: overall[m.name] for m in needed if any(m is each for each in metrics)}
    others = [m for m in needed if m.name not in known]
    return known | aggregation.item_means([aggregation.item_sums(table, others, pool)])


def _exact_scores(table: Contingency, needed: Sequence[Metric]) -> Floats:
    """Return the scores of a cell whose two clusters are the same; of any other cell if there is none."""
    cell = int(np.argmax((table.fp == 0) & (table.fn == 0))) if needed else 0
    part = Contingency(
        table.cells[cell : cell + 1], lambda: np.zeros(1, np.int64), (0, 0),
        weighted=False, weighting=table.weighting, outside=table.outside,
    )  # fmt: skip
    return np.array([aggregation.cell_scores(part, m)[0] for m in needed])


def _other_sums(
    table: Contingency, metrics: Sequence[Metric], origins: Floats, units: Codes, n_units: int
) -> Floats:
    """Add up scores that are not compiled by unit, block by block of the cells. Shape (n_units, n_metrics)."""
    sums: Floats = np.zeros((n_units if metrics else 0, len(metrics)))
    of_all = {
        m.name: aggregation.cell_scores(table, m)
        for m in metrics
        if aggregation.differs_within_cells(table, m)
    }
    by_block = [m for m in metrics if m.name not in of_all]
    for start, stop in blocks(table.n_cells, CELLS_AT_ONCE) if metrics else ():
        found = aggregation.block_scores(table, by_block, start, stop, None) if by_block else []
        scores = dict(zip((m.name for m in by_block), found, strict=True))
        scores |= {name: each[start:stop] for name, each in of_all.items()}
        deviations = np.array([scores[m.name] for m in metrics]) - origins[:, None]
        shares = table.weight[start:stop] / table.total_weight
        kernels.paired.add_scores(table.cells[start:stop], units, shares, deviations, sums)
    return sums
