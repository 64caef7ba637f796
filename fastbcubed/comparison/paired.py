"""What each unit adds to the scores of a run, and the standard errors of differences between runs.

What a unit adds to a score of one run and to that of another are taken from each other before they are squared:
where both runs treat a unit alike, it adds nothing to the error of their difference. True clusters that all runs find
exactly are units by themselves, and are only counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS
from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.uncertainty.standard_errors import slopes, standard_error
from fastbcubed.uncertainty.units import CELLS_AT_ONCE, Units

Floats = NDArray[np.float64]
Codes = NDArray[np.integer]
#: Scores that are 1 less another one, and move against it.
MIRRORED = {"over_merge_rate": ("precision", -1.0), "under_merge_rate": ("recall", -1.0)}
_MIRROR = {name: METRICS[own] for name, (own, _) in MIRRORED.items()}


@dataclass(frozen=True, eq=False)
class UnitSums:
    """The means that scores of a run come from, and deviations from them, as shares, added up by unit."""

    needed: tuple[str, ...]  #: the scores of items that the others come from
    means: Mapping[str, float]
    sums: Floats  #: shares of the weight, then share * deviation by score; shape (n_units, 1 + n_needed)
    exact: Mapping[str, float]  #: what the scores are of true clusters that all runs find exactly
    n_alone: int = 0  #: such clusters that have weight
    squares_alone: float = 0.0  #: of their shares, added up
    largest_alone: float = 0.0

    @classmethod
    def of_cells(
        cls,
        table: Contingency,
        metrics: Sequence[Metric],
        beta: float,
        units: Codes,
        n_units: int,
        pool: Pool,
    ) -> UnitSums:
        """Add up the cells by the unit of their true cluster, -1 for one that all runs find exactly."""
        from fastbcubed.metrics import compiled

        needed = needed_by(metrics, beta)
        means = aggregation.item_means([aggregation.item_sums(table, needed, pool)])
        sums = buffers.empty((n_units, 1 + len(needed)), np.float64)
        sums[:] = 0.0
        positions = [None if m.leave_one_out or m.matrix else compiled.position(m.formula) for m in needed]
        fast = [k for k, position in enumerate(positions) if position is not None]
        alone = compiled.add_by_unit(
            table.cells, units, table.total_weight, table.weighting == "outer",
            np.array([positions[k] for k in fast], np.int64),
            np.array([means[needed[k].name] for k in fast], np.float64),
            np.array([1 + k for k in fast], np.int64), sums,
        )  # fmt: skip
        _add_others(table, [(1 + k, m) for k, m in enumerate(needed) if k not in fast], means, units, sums)
        exact = _exact_scores(table, needed) if alone[0] else {}
        return cls(tuple(m.name for m in needed), means, sums, exact, *alone)

    @classmethod
    def of_rows(
        cls,
        table: Contingency,
        metrics: Sequence[Metric],
        beta: float,
        units: Codes,
        n_units: int,
        pool: Pool,
    ) -> UnitSums:
        """Add up the rows by their unit, negative for a row of none."""
        assert table.rows is not None
        needed = needed_by(metrics, beta)
        means = aggregation.item_means([aggregation.item_sums(table, needed, pool)])
        rows = np.flatnonzero((table.rows.cell >= 0) & (units >= 0))
        share = table.rows.weight[rows] / table.total_weight
        columns = [
            share,
            *((aggregation.item_scores(table, m)[rows] - means[m.name]) * share for m in needed),
        ]
        sums: Floats = np.stack([np.bincount(units[rows], each, n_units) for each in columns], axis=1)
        return cls(tuple(m.name for m in needed), means, sums, {})

    def coefficients(self, metrics: Sequence[Metric], beta: float) -> Floats:
        """Return how much each score moves with each column of the sums. Shape (n_metrics, 1 + n_needed)."""
        found = np.zeros((len(metrics), 1 + len(self.needed)))
        for row, metric in zip(found, metrics, strict=True):
            for name, slope in slopes_by(metric, self.means, beta):
                row[1 + self.needed.index(name)] += slope
        return found

    def of_exact(self, coefficients: Floats) -> Floats:
        """Return how much each score moves with a cluster that all runs find exactly, by share. Shape (n_metrics,)."""
        deviations = [self.exact[name] - self.means[name] for name in self.needed] if self.n_alone else 0.0
        return np.asarray(coefficients[:, 1:] @ np.broadcast_to(deviations, len(self.needed)))


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


def _exact_scores(table: Contingency, needed: Sequence[Metric]) -> dict[str, float]:
    """Return the scores of a cell whose two clusters are the same."""
    cell = int(np.argmax((table.fp == 0) & (table.fn == 0)))
    part = Contingency(
        table.cells[cell : cell + 1], lambda: np.zeros(1, np.int64), (0, 0),
        weighted=False, weighting=table.weighting, outside=table.outside,
    )  # fmt: skip
    return {m.name: float(aggregation.cell_scores(part, m)[0]) for m in needed}


def _add_others(
    table: Contingency,
    needed: Sequence[tuple[int, Metric]],
    means: Mapping[str, float],
    units: Codes,
    sums: Floats,
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
        deviations = np.array([scores[m.name] - means[m.name] for m in metrics])
        shares = table.weight[start:stop] / table.total_weight
        kernels.paired.add_scores(table.cells[start:stop], units, shares, deviations, columns, sums)


def errors_of_differences(
    metrics: Sequence[Metric], beta: float, before: UnitSums, after: UnitSums, n_units: int
) -> dict[str, float]:
    """Return the standard errors of the differences between two runs by score; NaN for a single unit."""
    of_before, of_after = (each.coefficients(metrics, beta) for each in (before, after))
    squares = (after.of_exact(of_after) - before.of_exact(of_before)) ** 2 * before.squares_alone
    kernels.paired.square_differences(before.sums, after.sums, of_before, of_after, squares)
    errors = standard_error(squares, n_units)
    return {metric.name: float(error) for metric, error in zip(metrics, errors, strict=True)}


def count_units(sums: Sequence[UnitSums]) -> Units:
    """Return how many units have weight in any run, and how evenly it is spread over them."""
    first = sums[0]
    shares = np.array(first.sums[:, 0])
    for each in sums[1:]:
        shares += each.sums[:, 0]
    shares /= len(sums)
    largest = max(float(shares.max(initial=0.0)), first.largest_alone)
    squares = float(np.sum(shares * shares)) + first.squares_alone
    return Units(int(np.count_nonzero(shares)) + first.n_alone, 1.0 / squares, largest)
