"""Standard errors of scores from the influences of independent units, such as connected components."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency, add_up
from fastbcubed.errors import (
    EvaluationWarning,
    Message,
    MetricError,
    NotKeptError,
    OptionError,
    Word,
    arg,
    first_few,
    quoted,
)
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric, without_rounding
from fastbcubed.metrics.sums import overall
from fastbcubed.metrics.sums_by_unit import (
    SumsByUnit,
    has_sums_by_unit,
    is_mean_of_clusters,
    is_share_of_pairs,
    scores_and_slopes,
    weight_of_cells,
)
from fastbcubed.results.clusters import known_by_unit, require_items
from fastbcubed.results.figures import resolved
from fastbcubed.results.influences import (
    Errors,
    is_mean,
    needed_by,
    powers_of_scores,
    share_of_one_mean,
    slopes,
)
from fastbcubed.results.intervals import (
    LESS_VARIANCE_OF_AMOUNTS,
    LESS_VARIANCE_OF_MEANS,
    LESS_VARIANCE_OF_SUMS,
    NOT_DRAWN_OF_MEANS,
    NOT_DRAWN_OF_PAIRS,
    Interval,
    check_level,
    degrees_of_freedom,
    share_of_another,
)
from fastbcubed.results.slices import slice_codes
from fastbcubed.results.table import Table
from fastbcubed.results.unit_cells import (
    CellUnits,
    Pieces,
    Units,
    components_of_tables,
    true_clusters_of_runs,
    units_of_shares,
)
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.memory_budget import require_within
from fastbcubed.runtime.object_attributes import cached_property
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Codes, Floats

if TYPE_CHECKING:
    from fastbcubed.results.figures import Figures
    from fastbcubed.results.items import Kept

#: Bytes per cluster while components are found, and per cell whose clusters differ, for 32-bit codes.
CLUSTER_BYTES, CELL_BYTES = 5, 48
#: Bytes per cell whose clusters differ, for the first sum and each further one, and per unit and sum, while scores that
#: are not means are summed by unit; measured, and rounded up. And bytes allowed beyond the limit.
FIRST_SUM_BYTES, SUM_BYTES, UNIT_BYTES, BESIDE = 140, 6, 40, 128 << 20
#: Bytes per row while rows are grouped by slice and unit.
ROW_BYTES = 300


def components_with_cells(
    table: Contingency, pool: Pool, limit: int | None = None
) -> tuple[CellUnits, Pieces]:
    """Return the connected components of truth and prediction, and the cells that were read to find them.

    Raise OptionError if this needs more memory than `limit`.
    """
    if limit is not None and not table.overlapping:
        n_clusters = table.n_codes["true"] + table.n_codes["pred"]
        needed = n_clusters * CLUSTER_BYTES + (table.n_cells - table.n_exact) * CELL_BYTES
        require_within(limit, needed, "standard errors", "clusters and cells")
    (units,), (pieces,) = components_of_tables([table], None, False, pool)
    return units, pieces


def components(table: Contingency, limit: int | None = None) -> CellUnits:
    """Return the connected components of truth and prediction as units; raise OptionError beyond `limit` bytes."""
    with Pool() as pool:
        return components_with_cells(table, pool, limit)[0]


def units_of_codes(table: Contingency, codes: Codes) -> CellUnits:
    """Return units of cells, given a code for the unit of each cell."""
    with Pool() as pool:
        found = number(codes.astype(np.int64, copy=False), pool)
    return CellUnits(table, np.empty(0, np.int64), found.firsts.size, found.codes)


def true_clusters(table: Contingency) -> CellUnits:
    """Return the true clusters as units."""
    if table.overlapping:
        raise OptionError(
            f"{arg('unit', 'true_cluster')} needs true clusters that share no items, but with "
            f"{arg('overlapping', True)} they may overlap; pass {arg('unit', 'component')}"
        )
    return true_clusters_of_runs([table])[0]


def check_unit(unit: Any) -> str:
    """Return the name of a unit, or raise OptionError if it is not text."""
    if not isinstance(unit, str):
        raise OptionError(f'unit must be "component", "true_cluster" or a column, not {quoted(unit)}')
    return unit


def too_small(unit: str, reason: str) -> Message:
    """Return a warning that standard errors by units that are not independent are too small."""
    return Message(f"standard errors by {unit} are too small: {reason}. Pass {arg('unit', 'component')}")


def why_none(metric: Metric, *, overlapping: bool = False) -> str | None:
    """Return why a score has no standard error; None if it has one."""
    if metric.saved:
        return (
            f"neither the standard error of {metric.name} nor its function was saved; access .errors before "
            "saving, or evaluate again"
        )
    if is_mean(metric) or has_sums_by_unit(metric, overlapping=overlapping):
        return None
    if not metric.overall_only:
        reason = "it needs the true negatives of overlapping clusters, or leaves out the item itself"
    else:
        reason = (
            "it depends on all cells at once and cannot be written in terms of sums over independent units"
        )
    instead = "evaluate samples of whole components to see how it varies"
    return f"{metric.name} has no standard error: {reason}; {instead}"


def standard_error(squares: Any, n_units: Any, score: Any = 1.0) -> Any:
    """Return the standard error of a score from the sum of the squared influences of its units.

    It is NaN for a single unit and for a score that is not finite, and 0 if influences are within rounding.
    """
    known = np.logical_and(np.greater(n_units, 1), np.isfinite(score))
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(known, n_units / np.subtract(n_units, 1.0), np.nan)
        return without_rounding(np.sqrt(squares * factor), score)


def powers_of(moved: Any, add: Callable[[Any], Any] = np.sum) -> Floats:
    """Return the sums of second and fourth powers of the units' influences; `add` sums over units."""
    squares = moved * moved
    return np.array([add(squares), add(squares * squares)])


def error_and_freedom(
    powers: Any, n_units: Any, score: Any = 1.0, *, less: Any = 0.0, fewest: float = 1.0
) -> Any:
    """Return the standard error of a score and its degrees of freedom, from powers of its units' influences.

    `less` and `fewest` are passed to `degrees_of_freedom`. If the error is 0, the effective number of units is used
    instead of the degrees of freedom.
    """
    return standard_error(powers[0], n_units, score), degrees_of_freedom(
        powers[0], powers[1], n_units, less=less, fewest=fewest
    )


def error_not_drawn(metric: Metric, largest: float | None, of_one: float = 1.0) -> float:
    """Return the error due to units that were not drawn, as a fraction of the score's range: `not_drawn` of `interval`.

    `largest` is the largest unit's share of what the score is a mean or share of, None if unknown, and `of_one` the
    share of the score that one unit can change. There is no such error of a score without an upper end, as nothing says
    how much a missing unit could contribute.
    """
    if largest is None or not math.isfinite(largest) or math.isinf(metric.high):
        return 0.0
    of_pairs = not is_mean(metric) and is_share_of_pairs(metric)
    fraction = NOT_DRAWN_OF_PAIRS if of_pairs else NOT_DRAWN_OF_MEANS
    return fraction * share_of_another(largest) * of_one


def freedom_of(metric: Metric) -> dict[str, float]:
    """Return the arguments of `degrees_of_freedom` for a score."""
    if is_mean(metric) or is_mean_of_clusters(metric):
        return {"less": LESS_VARIANCE_OF_AMOUNTS if math.isinf(metric.high) else LESS_VARIANCE_OF_MEANS}
    return {"less": LESS_VARIANCE_OF_SUMS, "fewest": FEW_DEGREES}


class Found(NamedTuple):
    """Standard errors by score, with degrees of freedom and errors of units that were not drawn; see `Errors`."""

    of: dict[str, float]
    df: dict[str, float]
    not_drawn: dict[str, float]

    @classmethod
    def by_name(
        cls,
        rows: Iterable[tuple[Metric, Floats, float, float, float]],
        effective: Callable[[Metric], float],
    ) -> Found:
        """Compute these from rows of score, powers of influences, number of units, size of means, error not drawn."""
        found = cls({}, {}, {})
        for metric, powers, n_units, size, not_drawn in rows:
            error, df = map(float, error_and_freedom(powers, n_units, size, **freedom_of(metric)))
            found.of[metric.name], found.not_drawn[metric.name] = error, not_drawn
            found.df[metric.name] = df if error else float(effective(metric))
        return found

    def with_others(self, others: Found) -> Found:
        """Return these together with those of other scores."""
        return Found(*(own | other for own, other in zip(self, others, strict=True)))


def errors_of_units(
    units: CellUnits,
    metrics: Iterable[Metric],
    beta: float,
    known: tuple[Sequence[Metric], Mapping[str, float]],
    pool: Pool,
    pieces: Pieces | None = None,
    limit: int | None = None,
) -> Errors:
    """Return the standard errors of scores over all items, by units of cells.

    Other parameters are those of `powers_of_scores`. Raise OptionError if scores that are not means need more memory
    than `limit`.
    """
    every = list(metrics)
    means, others = [m for m in every if is_mean(m)], [m for m in every if not is_mean(m)]
    if others:
        _require_room(units, others, limit)
    powers, run = powers_of_scores(units, means, beta, known, pool, pieces)
    counted, by_score = powers.units, powers.by_run[:, 0].T
    of_run = run.sizes()[0].tolist(), run.shares_of_one_mean()[0].tolist()
    rows = (
        (m, own, counted.n, size, error_not_drawn(m, counted.largest_share, of_one))
        for m, own, size, of_one in zip(means, by_score, *of_run, strict=True)
    )
    found = Found.by_name(rows, lambda _: counted.effective)
    if others:
        by_unit = SumsByUnit(units.table, units.by_cell(), units.n, pool, units.n_joined)
        found = found.with_others(errors_of_sums(by_unit, others, counted.n))
    of, df, not_drawn = ({m.name: each[m.name] for m in every} for each in found)
    return Errors(of, df, not_drawn, counted)


def _require_room(units: CellUnits, others: Iterable[Metric], limit: int | None) -> None:
    """Raise OptionError if sums by unit of scores that are not means would exceed the memory limit."""
    if limit is None:
        return
    n_sums = len({name for m in others for name in (m.sums if m.overall_only else (m.name,))})
    table = units.table
    n_cells = table.n_cells if table.weighted or table.overlapping else table.n_cells - table.n_exact
    needed = n_cells * (FIRST_SUM_BYTES + SUM_BYTES * n_sums) + UNIT_BYTES * units.n_joined * n_sums
    what = "standard errors of scores that are not means over items"
    require_within(limit, needed - BESIDE, what, "cells, and sums by component,", ", or request fewer scores")


def errors_of_sums(by_unit: SumsByUnit, metrics: Iterable[Metric], n_units: int) -> Found:
    """Return the standard errors of scores that are functions of sums by unit; `n_units` units have weight."""

    def rows() -> Iterator[tuple[Metric, Floats, float, float, float]]:
        for metric in metrics:
            moved, size, n = by_unit.moved(metric)
            n, not_drawn = max(n, n_units + moved.size - by_unit.n), by_unit.largest_share(metric)
            yield metric, powers_of(moved, by_unit.add), n, size, error_not_drawn(metric, not_drawn)

    return Found.by_name(rows(), by_unit.effective)


@dataclass(frozen=True, eq=False)
class RowUnits:
    """Scored rows of groups such as slices, by group and unit; the part of a unit in each group counts separately."""

    rows: NDArray[np.int64]  #: rows in a group, or one row for each set of equal ones
    weight: Floats  #: weight of each row
    group: NDArray[np.int64]  #: the group of each
    code: NDArray[np.int64]  #: code of its unit within the group, consecutive over all groups
    group_of_code: NDArray[np.int64]
    unit_of_code: NDArray[np.int64]
    n_groups: int
    weigh: Callable[[], Floats]  #: computes `weight_of_unit`

    @classmethod
    def of(
        cls, table: Contingency, groups: Codes, n_groups: int, units: Codes, *, by_cell: bool = False
    ) -> RowUnits:
        """Group the rows by group and unit; a negative group means none, and units are not negative.

        If `by_cell`, one row represents all rows of its cell and group, which must be in one unit and have equal
        scores.
        """
        assert table.rows is not None
        rows = np.flatnonzero((table.rows.cell >= 0) & (groups >= 0))
        group, weight = np.asarray(groups, np.int64)[rows], table.rows.weight[rows]
        with Pool() as pool:
            if by_cell:
                pair, first = number(group * table.n_cells + table.rows.cell[rows], pool)
                rows, group = rows[first], group[first]
                weight = np.bincount(pair, weight, first.size).astype(np.float64, copy=False)
            code, first = number(group * (int(units.max(initial=0)) + 1) + units[rows], pool)
        own = np.asarray(units, np.int64)[rows][first]
        return cls(rows, weight, group, code, group[first], own, n_groups, partial(_weigh, table, units))

    def add(self, weight: Floats, values: Floats) -> Floats:
        """Return the sum of weight * value over the rows of each unit of a group."""
        return np.add(*add_up(self.code, self.group_of_code.size, weight, values))

    def by_group(self, values: Floats) -> Floats:
        """Return the sum of values over the units of each group."""
        return np.add(*add_up(self.group_of_code, self.n_groups, values, np.ones(values.size)))

    @cached_property
    def share(self) -> Floats:
        """Each row's share of the weight of its group; NaN in a group without weight."""
        whole = self.by_group(self.add(self.weight, np.ones(self.rows.size)))[self.group]
        return np.divide(self.weight, whole, out=np.full(whole.size, np.nan), where=whole > 0)

    @cached_property
    def share_of_unit(self) -> Floats:
        """Each unit's share of the weight of its group."""
        return self.add(self.share, np.ones(self.rows.size))

    @cached_property
    def n_units(self) -> NDArray[np.int64]:
        """Number of units with weight in each group."""
        return np.bincount(self.group_of_code[self.share_of_unit > 0], minlength=self.n_groups)

    @cached_property
    def weight_of_unit(self) -> Floats:
        """Weight of all rows of each unit, in any group or none, as it enters true negatives."""
        return self.weigh()

    def units(self, group: int) -> Units:
        """Return the number of units in a group, and how uneven they are."""
        shares = self.share_of_unit[self.group_of_code == group]
        return units_of_shares(self.n_units[group], math.fsum(shares**2), shares.max())

    def deviations(
        self, table: Contingency, needed: Iterable[Metric]
    ) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Return the mean of each score by group, and the contribution of each unit to the deviations from it."""
        means, deviations = {}, {}
        for each in needed:
            scores = aggregation.item_scores(table, each)[self.rows]
            means[each.name] = self.by_group(self.add(self.share, scores))
            deviations[each.name] = self.add(self.share, scores - means[each.name][self.group])
        return means, deviations

    def influences(self, table: Contingency, metrics: Iterable[Metric], beta: float) -> dict[str, Influence]:
        """Return the influence of each unit of each group on each score of a table."""
        metrics = list(metrics)
        of_means = [m for m in metrics if is_mean(m)]
        means, deviations = self.deviations(table, needed_by(of_means, beta))
        found = {m.name: self._with_negatives(table, m) for m in metrics if not is_mean(m)}
        for metric in of_means:
            moved = np.zeros(self.group_of_code.size)
            parts = slopes(metric, means, beta)
            for name, slope in parts:
                moved += np.broadcast_to(slope, self.n_groups)[self.group_of_code] * deviations[name]
            size = np.max([np.abs(means[name]) for name, _ in parts], axis=0)
            found[metric.name] = Influence(moved, size, of_one=share_of_one_mean(parts, means))
        return found

    def _with_negatives(self, table: Contingency, metric: Metric) -> Influence:
        rows = table.rows
        assert rows is not None
        cells = rows.cell[self.rows]
        scores, slopes = (each[cells] for each in scores_and_slopes(table, metric))
        means, slope = (self.by_group(self.add(self.share, each)) for each in (scores, slopes))
        return Influence(self.add(self.share, scores - means[self.group]), np.abs(means), slope)

    def error(self, moves: Influence) -> Floats:
        """Return the standard error of a score for each group; NaN for a group with a single unit.

        A unit contributes its whole weight to the true negatives of items in every group.
        """
        moved, size, slope, _ = moves
        squares = self.by_group(moved**2)
        if np.any(slope):
            more = self.weight_of_unit - self.weight_of_unit.mean()
            both = self.by_group(moved * more[self.unit_of_code])
            squares = np.maximum(squares + 2 * slope * both + slope**2 * float(np.sum(more**2)), 0.0)
            size = np.maximum(size, np.abs(slope * self.weight_of_unit.sum()))
        return np.asarray(standard_error(squares, self.n_units, size))

    def errors(self, table: Contingency, metrics: Iterable[Metric], beta: float) -> dict[str, Floats]:
        """Return the standard errors of scores by name, for each group."""
        return {name: self.error(moves) for name, moves in self.influences(table, metrics, beta).items()}


def unit_of_cells(table: Contingency, rows: NDArray[Any], units: Codes) -> NDArray[np.int64]:
    """Return the unit of each cell, given the units of rows; 0 for a cell without any of the rows."""
    assert table.rows is not None
    found = np.zeros(table.n_cells, np.int64)
    found[table.rows.cell[rows]] = units
    return found


def _weigh(table: Contingency, units: Codes) -> Floats:
    assert table.rows is not None
    scored = np.flatnonzero(table.rows.cell >= 0)
    of_cell = unit_of_cells(table, scored, units[scored])
    return np.bincount(of_cell, weight_of_cells(table)).astype(np.float64)


class Influence(NamedTuple):
    """The influence of each unit on a score, by group, and the size of the means that the score depends on."""

    moved: Floats
    size: Floats
    slope: Floats | float = 0.0  #: derivative by the true negatives of all items of a group
    of_one: Floats | float = 1.0  #: share of the score that depends on one of the means it combines

    def less(self, other: Influence) -> Influence:
        """Return the influence on the difference between two scores."""
        size = np.maximum(self.size, other.size)
        return Influence(self.moved - other.moved, size, self.slope - other.slope)


#: Maximum number of cells for which slices, and overlapping clusterings, are shown and saved with standard errors;
#: beyond it, only if the errors are known.
ALWAYS = 1_000_000
#: Fewer units of equal size than this are few; and number of units at which the error of a score rests on few.
FEW, FEW_CARRY = 30, 2.0
#: Minimum degrees of freedom for scores that are not means.
FEW_DEGREES = 1.5
COMPONENT, TRUE_CLUSTER = "component", "true_cluster"
#: The columns of `Evaluation.scores`.
SCORES = pa.schema(
    [("score", pa.string())]
    + [(name, pa.float64()) for name in ("value", "se", "low", "high")]
    + [("n_units", pa.int64()), ("effective_units", pa.float64())]
)


class ScoreErrors:
    """The standard errors of an evaluation's scores, by component or other units."""

    def __init__(self, kept: Kept, figures: Figures) -> None:
        self._kept, self._figures = kept, figures
        self.shown = True  #: whether results show errors that were not requested
        self.no_room = ""  #: why errors are not shown, if memory is insufficient

    @property
    def metrics(self) -> list[Metric]:
        """The overall scores whose standard errors are known or can be computed."""
        figures = self._figures
        if figures.errors is not None:
            return [m for m in figures.metrics if m.name in figures.errors.of]
        smooth = [m for m in figures.metrics if self._why_none(m) is None]
        return known_by_unit(self._kept.cells, smooth, figures.beta)

    def _why_none(self, metric: Metric) -> str | None:
        """Return why a score has no standard error: no method, or cells were not kept; None if it has one."""
        if metric.of_mentions and isinstance(self._figures.of_mentions, str):
            return f"{metric.name} {self._figures.of_mentions}"
        return why_none(metric, overlapping=self._kept.cells.overlapping)

    def missing(self) -> dict[str, str]:
        """Return the overall scores that have no standard error, and why."""
        known = {m.name for m in self.metrics}
        not_kept = f"and the items were not kept; save with {arg('keep', 'items')} to have it"
        return {
            m.name: self._why_none(m)
            or Message(f"the standard error of {m.name} needs the weight of each item, {not_kept}")
            for m in self._figures.metrics
            if m.name not in known
        }

    @cached_property
    def components(self) -> CellUnits:
        """The component of each cell."""
        return components(self._cells, self._kept.memory_limit)

    @property
    def _cells(self) -> Contingency:
        table = self._kept.cells
        if not table.has_cells:
            raise NotKeptError(
                "neither standard errors nor the cells they are computed from were kept; access .errors "
                f"before saving with {arg('keep', 'scores')}, or evaluate and save with {arg('keep', 'cells')}"
            )
        return table

    @cached_property
    def units(self) -> Units:
        """The number of components, and how evenly weight is distributed among them."""
        return self._by_component([]).units if self.known is None else self.known.units

    def _by_component(self, metrics: list[Metric]) -> Errors:
        """Return the standard errors of scores by component; cells are read once for both components and errors."""
        figures, pieces = self._figures, None
        known = figures.metrics, figures.overall
        with Pool() as pool:
            if "components" not in vars(self):
                vars(self)["components"], pieces = components_with_cells(
                    self._cells, pool, self._kept.memory_limit
                )
            limit = self._kept.memory_limit
            return errors_of_units(self.components, metrics, figures.beta, known, pool, pieces, limit)

    @cached_property
    def by_component(self) -> Errors:
        """The standard errors of the overall scores, by component."""
        return self._found(self.metrics, COMPONENT)

    @property
    def can_be_known(self) -> bool:
        """Whether standard errors were saved, or cells to compute them from were kept."""
        return self._figures.errors is not None or self._kept.cells.has_cells

    @property
    def known(self) -> Errors | None:
        """The standard errors by component, if they were saved or have been computed."""
        return vars(self).get("by_component", self._figures.errors)

    @property
    def are_shown(self) -> bool:
        """Whether errors are shown without being requested: if cells are in memory and not too many of them overlap."""
        table = self._kept.cells
        at_hand = self.shown and self._kept.lazy is None and table.has_cells
        return at_hand and not (table.overlapping and table.n_cells > ALWAYS)

    @property
    def are_shown_by_slice(self) -> bool:
        """Whether errors are also shown by slice without being requested, which needs the rows, and time."""
        table = self._kept.cells
        if self._kept.items is None or not self.are_shown or table.n_cells > ALWAYS:
            return False
        try:
            self.require_rows()
        except OptionError:
            return False
        return True

    def require_rows(self) -> None:
        """Raise OptionError if errors that need the rows would exceed the run's memory limit."""
        self._kept.require_room(ROW_BYTES, "standard errors of slices, and by the values of a column,")

    def at_hand(self) -> Errors | None:
        """Return the standard errors by component if known, or if they are computed without being requested."""
        if not self.shown or (self.known is None and not self.are_shown):
            return None
        try:
            return self.by_component
        except OptionError as error:
            self.no_room = error.message
            return None

    def intervals_at_hand(self, level: float = 0.95) -> dict[str, Interval]:
        """Return the intervals of the overall scores if known, or if they are computed without being requested."""
        found, figures = self.at_hand(), self._figures
        if found is None:
            return {}
        return {
            m.name: found.interval(m, figures.overall[m.name], level)
            for m in figures.metrics
            if m.name in found.of
        }

    def carried_by_few(self, scores: Sequence[str]) -> dict[str, int]:
        """Return the scores whose error rests on a few of many units, with about how many; empty if unknown."""
        found = self.at_hand()
        if found is None:
            return {}
        chosen = [m for m in self._figures.metrics if m.name in scores and m.name in found.of]
        few = carried_by_few(chosen, found.of, found.df, found.units)
        return {m.name: carriers(found.df[m.name], **freedom_of(m)) for m in chosen if m.name in few}

    def by(self, metrics: list[Metric], unit: str, *, stacklevel: int) -> Errors:
        """Return the standard errors of scores by a unit, and warn if they are too small."""
        found = self._found(metrics, unit)
        if (reason := self._why_too_small(unit)) is not None:
            warnings.warn(too_small(unit, reason), EvaluationWarning, stacklevel=stacklevel + 1)
        warn_of_units(found.units, unit, stacklevel=stacklevel + 2)
        few = carried_by_few(metrics, found.of, found.df, found.units)
        warn_of_few(few, found.units, unit, stacklevel=stacklevel + 2)
        return found

    def _found(self, metrics: list[Metric], unit: str) -> Errors:
        figures = self._figures
        saved = figures.errors
        if unit == COMPONENT and saved is not None and all(m.name in saved.of for m in metrics):
            return saved
        apart = [m for m in metrics if m.of_mentions and figures.of_mentions]
        if apart:  # from other cells, and so with other units
            own = figures.elsewhere(apart[0]).standard_errors._found(apart, unit)
            rest = [m for m in metrics if m not in apart]
            here = self._found(rest, unit) if rest else own
            both = Found(*map(dict, here[:3])).with_others(Found(*map(dict, own[:3])))
            return Errors(*both, here.units, dict.fromkeys(own.of, own.units))
        table = self._cells
        require_items(table, metrics, figures.beta, by_unit=True)
        if unit == COMPONENT:
            return self._by_component(metrics)
        means, others = [m for m in metrics if is_mean(m)], [m for m in metrics if not is_mean(m)]
        if not is_one_of(unit, (COMPONENT, TRUE_CLUSTER)):
            codes = self._codes_of(unit)
            rows = RowUnits.of(table, np.zeros(codes.size, np.int64), 1, codes)
            named, counted = {m.name: m for m in means}, rows.units(0)
            moves = rows.influences(table, means, figures.beta)
            powers = (
                (
                    *(named[name], powers_of(own.moved, rows.by_group)[:, 0], counted.n, float(own.size[0])),
                    error_not_drawn(named[name], counted.largest_share, float(np.ravel(own.of_one)[0])),
                )
                for name, own in moves.items()
            )
            found = Found.by_name(powers, lambda _: counted.effective)
            if others and self._why_too_small(unit) is None:
                found = found.with_others(errors_of_sums(self._by_column(rows), others, counted.n))
            return Errors(*found, counted)
        known = figures.metrics, figures.overall
        with Pool() as pool:
            return errors_of_units(true_clusters(table), means, figures.beta, known, pool)

    def _by_column(self, rows: RowUnits) -> SumsByUnit:
        """Return sums of cells by the values of a column, each of which contains whole components."""
        table = self._kept.cells
        units = unit_of_cells(table, rows.rows, rows.code)
        return SumsByUnit(table, units, rows.group_of_code.size, Pool(1))

    def _codes_of(self, column: Any) -> NDArray[np.int64]:
        self.require_rows()
        return slice_codes(column, self._kept.cells, self._kept.require_items(), self._kept.attributes).codes

    def _why_too_small(self, unit: str) -> str | None:
        """Return why units of this kind are not independent; None if they are."""
        table = self._kept.cells
        if unit == COMPONENT or (unit == TRUE_CLUSTER and table.outside):
            return None
        if unit == TRUE_CLUSTER:
            return (
                f"{Word('true cluster')}s that share a {Word('predicted cluster')} share its precision (they are "
                f"units of their own only with {arg('unmatched', 'outside')})"
            )
        n = self.components.n
        rows = RowUnits.of(table, self.of_rows(), n, self._codes_of(unit))
        torn = int(np.count_nonzero(np.bincount(rows.group_of_code) > 1))
        return f"{torn} of {n} components have items of several values" if torn else None

    def of_rows(self) -> Codes:
        """Return the component of each row, -1 for rows that are not scored."""
        return self._kept.rows.numbers(self._kept.cells.n_cells, self.components.by_cell())

    def beside(self, columns: Mapping[str, Any], codes: NDArray[np.integer], n_groups: int) -> dict[str, Any]:
        """Return columns of scores of groups of rows, with n_units, and each score followed by its standard error."""
        self.require_rows()
        table, units = self._kept.cells, np.maximum(self.of_rows(), 0)
        metrics = [m for m in self.metrics if m.name in columns]
        needed = needed_by(metrics, self._figures.beta)
        differ = any(aggregation.differs_within_cells(table, each) for each in needed)
        rows = RowUnits.of(table, codes, n_groups, units, by_cell=not differ)
        errors = rows.errors(table, metrics, self._figures.beta)
        result: dict[str, Any] = {}
        for name, values in columns.items():
            result[name] = values
            if name == "weight":
                result["n_units"] = rows.n_units
            if name in errors:
                result[f"{name}_se"] = errors[name]
        return result

    def interval(self, which: Any, level: float, unit: str) -> Interval:
        """Implement `Evaluation.interval`."""
        figures, level, unit = self._figures, check_level(level), check_unit(unit)
        metric = resolved(self._kept.cells, which, figures.beta, figures.metrics)
        known = unit == COMPONENT and figures.errors is not None and metric.name in figures.errors.of
        reason = self._why_none(metric)
        if reason is not None and not known:
            raise MetricError(reason)
        if not known and (own := figures.elsewhere(metric)) is not None:
            return cast(Interval, own.standard_errors.interval(which, level, unit))
        found, value = self.by([metric], unit, stacklevel=3), figures.overall.get(metric.name)
        if metric.name not in found.of:
            raise MetricError(
                f"{metric.name} has no standard error by {unit}: clusters whose items are in several units "
                f"belong to no unit; pass {arg('unit', COMPONENT)}"
            )
        if value is None:
            value = overall(self._kept.cells, [metric], beta=figures.beta)[metric.name]
        return found.interval(metric, value, level)

    def listed(self, level: float, unit: str) -> Table:
        """Implement `Evaluation.scores`."""
        level, unit = check_level(level), check_unit(unit)
        metrics = [m for m in self.metrics if unit == COMPONENT or not m.saved]
        wanted = (metrics and self.can_be_known) or unit != COMPONENT
        found = self.by(metrics, unit, stacklevel=3) if wanted else None
        rows: list[dict[str, Any]] = []
        for metric in self._figures.metrics:
            value = self._figures.overall[metric.name]
            row: dict[str, Any] = {"score": metric.name, "value": float(value)}
            if found is not None and metric.name in found.of:
                low, high = found.interval(metric, value, level)
                row |= {"se": float(found.of[metric.name]), "low": float(low), "high": float(high)}
            if found is not None:
                units = (found.apart or {}).get(metric.name, found.units)
                row |= {"n_units": units.n, "effective_units": units.effective}
            rows.append(row)
        return Table(pa.Table.from_pylist(rows, SCORES))


def carried_by_few(
    metrics: Iterable[Metric],
    errors: Mapping[str, float],
    df: Mapping[str, float],
    units: Units,
) -> list[str]:
    """Return the scores whose error rests on a few of many units, of which another sample may have more, or none.

    These have no more degrees of freedom than an error that comes from two equal units.
    """
    if units.n < FEW or are_uneven(units):
        return []
    known = [m for m in metrics if errors.get(m.name, 0.0) > 0]
    return [m.name for m in known if df[m.name] <= freedom_of_few(**freedom_of(m))]


def freedom_of_few(less: float, fewest: float = 1.0) -> float:
    """Return the degrees of freedom of an error that comes equally from two of many units."""
    return max(fewest, 2.0 * FEW_CARRY / (1.0 + less / FEW_CARRY))


def carriers(df: float, less: float = 0.0, fewest: float = 1.0) -> int:
    """Return about how many equal units an error with these degrees of freedom comes from.

    >>> carriers(4.0), carriers(16.0), carriers(11.7302, less=3.0)  # 2 * 8 / (1 + 3 / 8)
    (2, 8, 8)
    """
    return max(1, round((df + math.sqrt(df * df + 8.0 * df * less)) / 4.0))


def warn_of_few(scores: Sequence[str], units: Units, unit: str, *, stacklevel: int, of: str = "") -> None:
    """Warn of scores whose error rests on few units; `of` is put before the message."""
    if scores:
        message = (
            f"{of}few of {units.n:,} units ({unit}) account for {first_few(scores)} or the error: "
            "intervals may be too narrow"
        )
        warnings.warn(EvaluationWarning(message, "few-carry-error"), stacklevel=stacklevel)


def are_uneven(units: Units) -> bool:
    """Return whether units are so uneven (few effective units) that standard errors by them are too small."""
    return units.effective < min(FEW, units.n / 2)


def warn_of_units(units: Units, unit: str, *, stacklevel: int, of: str = "") -> None:
    """Warn if there is a single unit, or units are very uneven; `of` is put before the message."""
    if units.n == 1:
        message = f"there is no standard error because all items are in one unit ({unit})"
    elif are_uneven(units):
        message = (
            f"standard errors and intervals are too small: one of {units.n:,} units ({unit}) has "
            f"{units.largest_share:.0%} of the weight, and their effective number is {units.effective:.1f}"
        )
    else:
        return
    warnings.warn(of + message, EvaluationWarning, stacklevel=stacklevel)
