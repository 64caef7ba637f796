"""Standard errors of scores that are means over items, and of F of such means, from sums by unit.

A score is a ratio of sums over units, score = S / W. To first order it moves with each unit by
(S_u - score W_u) / W, its influence, whose squares add up to the variance but for the factor U / (U - 1). An F of means
moves with those of its means, each times the derivative of F by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
from fastbcubed.uncertainty.units import CELLS_AT_ONCE, CellUnits, Codes, Floats, Units, spread

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


def standard_error(squares: Any, n_units: Any) -> Any:
    """Return the standard error from the sum of squared influences of so many units; NaN for a single one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(np.asarray(n_units) > 1, n_units / np.subtract(n_units, 1.0), np.nan)
        return np.sqrt(squares * factor)


def errors_of_cells(
    table: Contingency, metrics: Iterable[Metric], beta: float, units: CellUnits, n_units: int, pool: Pool
) -> dict[str, float]:
    """Return the standard errors of scores over all items, by name, where cells are in units."""
    wanted = list(metrics)
    needed = {m.name: m for m in aggregation.with_needs(wanted, beta) if m.formula is not None}
    means = aggregation.item_means([aggregation.item_sums(table, needed.values(), pool)])
    total = table.total_weight

    def squares(metric: Metric) -> float:
        parts = [(needed[name], slope) for name, slope in slopes(metric, means, beta)]
        scores = _BlockScores(table, [part for part, _ in parts])

        def terms() -> Iterator[tuple[Codes, Floats, Floats]]:
            for a, b in blocks(table.n_cells, CELLS_AT_ONCE):
                moved = np.zeros(b - a)
                for (part, slope), found in zip(parts, scores(a, b), strict=True):
                    moved += slope * (found - means[part.name])
                yield units.of(table, a, b), table.weight[a:b] / total, moved

        return spread(units, terms()).squares

    found = pool.map(squares, wanted, stage="standard errors")
    return {m.name: float(standard_error(each, n_units)) for m, each in zip(wanted, found, strict=True)}


class _BlockScores:
    """Scores of a range of cells, with those that differ within cells worked out once."""

    def __init__(self, table: Contingency, metrics: list[Metric]) -> None:
        self._table, self._metrics = table, metrics
        self._shared = [m for m in metrics if not aggregation.differs_within_cells(table, m)]
        self._of_cells = {m.name: aggregation.cell_scores(table, m) for m in metrics if m not in self._shared}

    def __call__(self, start: int, stop: int) -> list[Floats]:
        found = {name: scores[start:stop] for name, scores in self._of_cells.items()}
        shared = (
            aggregation.block_scores(self._table, self._shared, start, stop, None) if self._shared else []
        )
        found |= {m.name: scores for m, scores in zip(self._shared, shared, strict=True)}
        return [found[m.name] for m in self._metrics]


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
        return np.asarray(standard_error(found.by_group(found.add(share, moved) ** 2), n_units))

    return GroupErrors(n_units, 1.0 / by_share, largest, {m.name: error(m) for m in wanted})
