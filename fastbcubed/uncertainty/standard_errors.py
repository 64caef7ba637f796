"""Standard errors of scores that are means over items, and of F of such means, from sums by unit.

A score is a ratio of sums over units, score = S / W. To first order it moves with each unit by
(S_u - score W_u) / W, its influence, whose squares add up to the variance but for the factor U / (U - 1). An F of means
moves with those of its means, each times the derivative of F by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric
from fastbcubed.runtime.grouping import number
from fastbcubed.runtime.pool import Pool, blocks
from fastbcubed.uncertainty.intervals import without_rounding
from fastbcubed.uncertainty.units import CELLS_AT_ONCE, CellUnits, Codes, Floats, Units

#: What to do about a score that has no standard error.
INSTEAD = (
    "take a score that is a mean over items, or the F of two, such as f1; or evaluate samples of whole components "
    "one by one, and see how the score differs"
)


def why_none(metric: Metric) -> str | None:
    """Return why a score has no standard error, and what to do instead; None if it has one."""
    parts = metric.needs or (metric,)
    if any(part.score is not None for part in parts) or (metric.combine and metric.slopes is None):
        what = "it is no mean over items, but one figure of all clusters or pairs"
    elif any(part.uses_tn or (part.options or {}).get("similarity") == "rand" for part in parts):
        verb = "may need" if metric.family == "own" else "needs"
        what = f"it {verb} the true negatives, which are of all units at once"
    else:
        return None
    return f"{metric.name} has no standard error: {what}, so it is no ratio of sums over independent units; {INSTEAD}"


def slopes(metric: Metric, means: Mapping[str, Any], beta: float) -> list[tuple[str, Any]]:
    """Return the means that a score moves with, and how much it does: its derivative by each of them."""
    if metric.slopes is None:
        return [(metric.name, 1.0)]
    names = (need.name for need in metric.needs)
    return list(zip(names, metric.slopes(means, beta), strict=True))


def standard_error(squares: Any, n_units: Any, score: Any = 1.0) -> Any:
    """Return the standard error of a score from the sum of squared influences of its units.

    NaN for a single unit; 0 where influences are no more than rounding leaves.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(np.asarray(n_units) > 1, n_units / np.subtract(n_units, 1.0), np.nan)
        return without_rounding(np.sqrt(squares * factor), score)


def errors_of_cells(
    table: Contingency, metrics: Iterable[Metric], beta: float, units: CellUnits, n_units: int, pool: Pool
) -> dict[str, float]:
    """Return the standard errors of scores over all items, by name, where cells are in units."""
    wanted = list(metrics)
    if not wanted:
        return {}
    influences = _Influences(table, wanted, beta, pool)

    def squares_of(first: int, last: int) -> list[float]:
        unit, end = first, units.starts[last]
        sums = np.zeros((3, len(wanted)))
        for start in range(units.starts[first], end, CELLS_AT_ONCE):
            moved = influences(units.order[start : min(start + CELLS_AT_ONCE, end)])
            unit = kernels.components.square_sums(moved, start, units.starts, unit, sums)
        return list(sums[2].tolist())

    squares = [_squares_of_alone(table, units, influences)]
    if ranges := units.ranges():
        squares += pool.map(squares_of, *zip(*ranges, strict=True), stage="standard errors")
    found = zip(wanted, influences.sizes, zip(*squares, strict=True), strict=True)
    return {m.name: float(standard_error(math.fsum(column), n_units, size)) for m, size, column in found}


class _Influences:
    """How much scores move with each of some cells."""

    def __init__(self, table: Contingency, wanted: list[Metric], beta: float, pool: Pool) -> None:
        needed = [m for m in aggregation.with_needs(wanted, beta) if m.formula is not None]
        self._table, self.n_scores = table, len(wanted)
        self._means = aggregation.item_means([aggregation.item_sums(table, needed, pool)])
        self._parts = [slopes(metric, self._means, beta) for metric in wanted]
        #: how large the means are that each score is made of
        self.sizes = [max(abs(self._means[name]) for name, _ in parts) for parts in self._parts]
        #: those that need more than the cells at hand, worked out for all cells
        self._of_all = {
            m.name: aggregation.cell_scores(table, m)
            for m in needed
            if table.overlapping or m.matrix is not None or aggregation.differs_within_cells(table, m)
        }
        self._metrics = [m for m in needed if m.name not in self._of_all]
        #: whether all cells whose two clusters are the same have the same scores, as with all scores of the registry
        self.same_for_exact = all(m.family != "own" for m in needed)

    def __call__(self, cells: Codes) -> Floats:
        """Return what each cell moves. Shape (n_scores, cells.size)."""
        table = self._table
        how: dict[str, Any] = {"weighting": table.weighting, "outside": table.outside}
        part = Contingency(table.cells.take(cells), lambda: cells, (0, 0), weighted=table.weighted, **how)
        scores = {name: scores[cells] for name, scores in self._of_all.items()}
        if self._metrics:
            found = aggregation.block_scores(part, self._metrics, 0, cells.size, None)
            scores |= {m.name: own for m, own in zip(self._metrics, found, strict=True)}
        share = part.weight / table.total_weight
        deviations = {name: (own - self._means[name]) * share for name, own in scores.items()}
        moved = np.zeros((self.n_scores, cells.size))
        for row, parts in zip(moved, self._parts, strict=True):
            for name, slope in parts:
                row += deviations[name] if slope == 1 else slope * deviations[name]
        return moved


def _squares_of_alone(table: Contingency, units: CellUnits, influences: _Influences) -> list[float]:
    """Return the squared influences of cells that are units by themselves, added up."""
    alone = units.alone
    if alone.n and influences.same_for_exact:
        one = np.array([alone.heaviest])
        share = float(table.weight[alone.heaviest]) / table.total_weight
        return [float(moved[0] / share) ** 2 * alone.squares for moved in influences(one)]
    squares = [[0.0] * influences.n_scores]
    for start, stop in blocks(table.n_cells, CELLS_AT_ONCE) if alone.n else ():
        cells = start + np.flatnonzero((table.fp[start:stop] == 0) & (table.fn[start:stop] == 0))
        if cells.size:
            squares.append([float(np.sum(moved * moved)) for moved in influences(cells)])
    return [math.fsum(column) for column in zip(*squares, strict=True)]


@dataclass(frozen=True, eq=False)
class RowUnits:
    """Scored rows of some groups, by group and unit: a unit of a group is what of the unit is in the group."""

    rows: NDArray[np.int64]  #: those in a group
    group: NDArray[np.int64]  #: the group of each
    code: NDArray[np.int64]  #: its unit of that group, numbered through
    group_of_code: NDArray[np.int64]
    n_groups: int

    @classmethod
    def of(cls, table: Contingency, groups: Codes, n_groups: int, units: Codes) -> RowUnits:
        """Cross the groups and the units of the rows; a negative group is none, and a unit is 0 or more."""
        assert table.rows is not None
        rows = np.flatnonzero((table.rows.cell >= 0) & (groups >= 0))
        group = np.asarray(groups, np.int64)[rows]
        keys = group * (int(units.max(initial=0)) + 1) + units[rows]
        with Pool() as pool:
            code, first = number(keys, pool)
        return cls(rows, group, code, group[first], n_groups)

    def add(self, weight: Floats, values: Floats) -> Floats:
        """Add weight * value of the rows by unit of a group."""
        totals, errors = np.zeros(self.group_of_code.size), np.zeros(self.group_of_code.size)
        kernels.sums.add_by_code(self.code, weight, values, None, totals, errors)
        return totals + errors

    def by_group(self, values: Floats) -> Floats:
        """Add values of the units by group."""
        totals, errors = np.zeros(self.n_groups), np.zeros(self.n_groups)
        kernels.sums.add_by_code(self.group_of_code, values, np.ones(values.size), None, totals, errors)
        return totals + errors


class GroupErrors(NamedTuple):
    """The units of groups, of which each array has one entry per group, and the standard errors by score."""

    n_units: NDArray[np.int64]
    effective: Floats
    largest: Floats
    errors: dict[str, Floats]

    def units(self, group: int) -> Units:
        """Return the units of one group."""
        return Units(int(self.n_units[group]), float(self.effective[group]), float(self.largest[group]))


def errors_of_rows(
    table: Contingency, metrics: Iterable[Metric], beta: float, found: RowUnits
) -> GroupErrors:
    """Return the standard errors of scores of each group of rows; NaN for a group of a single unit."""
    wanted = list(metrics)
    needed = {m.name: m for m in aggregation.with_needs(wanted, beta) if m.formula is not None}
    assert table.rows is not None
    weight = table.rows.weight[found.rows]
    whole = found.by_group(found.add(weight, np.ones(weight.size)))
    share = np.divide(
        weight, whole[found.group], out=np.full(weight.size, np.nan), where=whole[found.group] > 0
    )
    of_unit = found.add(share, np.ones(weight.size))
    by_share, largest = found.by_group(of_unit**2), np.full(found.n_groups, np.nan)
    np.fmax.at(largest, found.group_of_code, of_unit)
    n_units = np.bincount(found.group_of_code[of_unit > 0], minlength=found.n_groups)
    scores = {name: aggregation.item_scores(table, m)[found.rows] for name, m in needed.items()}
    means = {name: found.by_group(found.add(share, each)) for name, each in scores.items()}

    def error(metric: Metric) -> Floats:
        moved = np.zeros(weight.size)
        for name, slope in slopes(metric, means, beta):
            moved += np.broadcast_to(slope, whole.shape)[found.group] * (
                scores[name] - means[name][found.group]
            )
        size = np.max([np.abs(means[name]) for name, _ in slopes(metric, means, beta)], axis=0)
        return np.asarray(standard_error(found.by_group(found.add(share, moved) ** 2), n_units, size))

    return GroupErrors(n_units, 1.0 / by_share, largest, {m.name: error(m) for m in wanted})
