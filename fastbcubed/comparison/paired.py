"""What each unit adds to the scores of a run, and the standard errors of differences between runs.

What a unit adds to a score of one run and to that of another are taken from each other before they are squared:
where both runs treat a unit alike, it adds nothing to the error of their difference. True clusters that all runs find
exactly are units by themselves, and are only counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.uncertainty.standard_errors import slopes, standard_error
from fastbcubed.uncertainty.units import CELLS_AT_ONCE, Units

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]
#: Units whose differences are squared by one kernel call.
UNITS_AT_ONCE = 1 << 17
#: Scores that are 1 less another one, and move against it.
MIRRORED = {"over_merge_rate": ("precision", -1.0), "under_merge_rate": ("recall", -1.0)}
_MIRROR = {name: METRICS[own] for name, (own, _) in MIRRORED.items()}


class Shares(NamedTuple):
    """The share of the weight that each unit has; true clusters that all runs find exactly are counted apart."""

    by_unit: Floats  #: shape (n_units,)
    n_alone: int = 0  #: such clusters that have weight
    squares_alone: float = 0.0  #: of their shares, added up
    largest_alone: float = 0.0

    @classmethod
    def of_cells(cls, table: Contingency, units: Codes, n_units: int) -> Shares:
        """Add up the cells by the unit of their true cluster, -1 for one that all runs find exactly."""
        found = np.zeros(n_units)
        return cls(found, *kernels.paired.add_shares(table.cells, units, table.total_weight, found))


@dataclass(frozen=True, eq=False)
class UnitSums:
    """The means that scores of a run come from, and what units add to them, from an origin on.

    The origin of a score is what it is for true clusters that are found exactly, so that these add nothing.
    """

    needed: tuple[str, ...]  #: the scores of items that the others come from
    means: Mapping[str, float]
    origins: Floats  #: shape (n_needed,)
    shares: Shares
    sums: Floats  #: share * (score - origin), added up by unit; shape (n_units, n_needed)

    @classmethod
    def of_cells(
        cls,
        table: Contingency,
        needed: Sequence[Metric],
        means: Mapping[str, float],
        units: Codes,
        shares: Shares,
        sums: Floats,
    ) -> UnitSums:
        """Add up the cells by the unit of their true cluster, -1 for one that all runs find exactly, into `sums`."""
        from fastbcubed.metrics import compiled

        sums[:] = 0.0
        positions = [None if m.leave_one_out or m.matrix else compiled.position(m.formula) for m in needed]
        fast = [k for k, position in enumerate(positions) if position is not None]
        others = [(k, m) for k, m in enumerate(needed) if k not in fast]
        formulas = np.array([positions[k] for k in fast], np.int64)
        origins = np.empty(len(needed))
        origins[fast] = compiled.origins(formulas)
        of_exact = _exact_scores(table, [m for _, m in others])
        of_mean = [means[m.name] for _, m in others]
        origins[[k for k, _ in others]] = np.where(np.isfinite(of_exact), of_exact, of_mean)
        compiled.add_by_unit(
            table.cells, units, table.total_weight, table.weighting == "outer",
            formulas, origins[fast], np.array(fast, np.int64), sums,
        )  # fmt: skip
        _add_others(table, others, origins, units, sums)
        return cls(tuple(m.name for m in needed), means, origins, shares, sums)

    @classmethod
    def of_rows(
        cls,
        table: Contingency,
        needed: Sequence[Metric],
        means: Mapping[str, float],
        units: Codes,
        n_units: int,
    ) -> UnitSums:
        """Add up the rows by their unit, negative for a row of none."""
        assert table.rows is not None
        rows = np.flatnonzero((table.rows.cell >= 0) & (units >= 0))
        codes, share = units[rows], table.rows.weight[rows] / table.total_weight
        origins = np.array([means[m.name] for m in needed])
        sums: Floats = np.zeros((n_units, len(needed)))
        for k, metric in enumerate(needed):
            deviations = aggregation.item_scores(table, metric)[rows] - origins[k]
            sums[:, k] = np.bincount(codes, deviations * share, n_units)
        shares = Shares(np.bincount(codes, share, n_units).astype(np.float64, copy=False))
        return cls(tuple(m.name for m in needed), means, origins, shares, sums)

    def coefficients(self, metrics: Sequence[Metric], beta: float) -> Floats:
        """Return how much each score moves with each column of the sums. Shape (n_metrics, n_needed)."""
        found = np.zeros((len(metrics), len(self.needed)))
        for row, metric in zip(found, metrics, strict=True):
            for name, slope in slopes_by(metric, self.means, beta):
                row[self.needed.index(name)] += slope
        return found

    def of_share(self, coefficients: Floats) -> Floats:
        """Return how much each score moves with the share of what is found exactly. Shape (n_metrics,)."""
        means = np.array([self.means[name] for name in self.needed])
        return np.asarray(coefficients @ (self.origins - means))


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


def _add_others(
    table: Contingency, needed: Sequence[tuple[int, Metric]], origins: Floats, units: Codes, sums: Floats
) -> None:
    """Add scores that are not compiled to their columns, block by block of the cells."""
    metrics = [metric for _, metric in needed]
    columns = np.array([column for column, _ in needed], np.int64)
    of_all = {
        m.name: aggregation.cell_scores(table, m)
        for m in metrics
        if aggregation.differs_within_cells(table, m)
    }
    by_block = [m for m in metrics if m.name not in of_all]
    for start, stop in blocks(table.n_cells, CELLS_AT_ONCE) if needed else ():
        found = aggregation.block_scores(table, by_block, start, stop, None) if by_block else []
        scores = dict(zip((m.name for m in by_block), found, strict=True))
        scores |= {name: each[start:stop] for name, each in of_all.items()}
        deviations = np.array([scores[m.name] for m in metrics]) - origins[columns, None]
        shares = table.weight[start:stop] / table.total_weight
        kernels.paired.add_scores(table.cells[start:stop], units, shares, deviations, columns, sums)


def errors_of_differences(
    metrics: Sequence[Metric], beta: float, before: UnitSums, after: UnitSums, n_units: int, pool: Pool
) -> dict[str, float]:
    """Return the standard errors of the differences between two runs by score; NaN for a single unit."""
    of_scores = before.coefficients(metrics, beta), after.coefficients(metrics, beta)
    of_shares = before.of_share(of_scores[0]), after.of_share(of_scores[1])

    def square(a: int, b: int) -> Floats:
        found = np.zeros(len(metrics))
        of_units = [each[a:b] for run in (before, after) for each in (run.shares.by_unit, run.sums)]
        kernels.paired.square_differences(tuple(of_units), of_scores, of_shares, found)
        return found

    ranges = blocks(len(before.sums), UNITS_AT_ONCE)
    squares = np.sum(pool.map(square, *zip(*ranges, strict=True), stage="standard errors"), axis=0)
    if before.shares.n_alone:
        squares += (of_shares[1] - of_shares[0]) ** 2 * before.shares.squares_alone
    errors = standard_error(squares, n_units)
    return {metric.name: float(error) for metric, error in zip(metrics, errors, strict=True)}


def count_units(runs: Sequence[Shares]) -> Units:
    """Return how many units have weight in any run, and how evenly it is spread over them."""
    first = runs[0]
    shares = first.by_unit
    if any(each is not first for each in runs):
        shares = np.sum([each.by_unit for each in runs], axis=0) / len(runs)
    largest = max(float(shares.max(initial=0.0)), first.largest_alone)
    squares = float(np.sum(shares * shares)) + first.squares_alone
    return Units(int(np.count_nonzero(shares)) + first.n_alone, 1.0 / squares, largest)
