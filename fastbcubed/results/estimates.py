"""Standard errors and intervals of the scores of an evaluation: what it answers when asked how sure they are."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.cell_parts import to_keep
from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import EvaluationWarning, MetricError, NotKeptError, OptionError
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import lifted, resolve
from fastbcubed.results.by_cluster import ByCluster
from fastbcubed.results.listings import drilldown
from fastbcubed.results.listings.table import Table
from fastbcubed.results.scores import Scores
from fastbcubed.results.slices.slicing import slice_codes
from fastbcubed.runtime.cached import cached_property
from fastbcubed.runtime.choices import is_one_of
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources.arrays import from_texts, table_of
from fastbcubed.uncertainty.intervals import Interval, check_level, interval
from fastbcubed.uncertainty.standard_errors import RowUnits, errors_of_cells, errors_of_rows, why_none
from fastbcubed.uncertainty.units import CellUnits, Units, components, count_units, true_clusters

#: Results of no more cells than this are written and sent with their standard errors; larger ones if these are known.
ALWAYS = 1_000_000
#: Fewer equal units than this are few.
FEW = 30
COMPONENT, TRUE_CLUSTER = "component", "true_cluster"


class Errors(NamedTuple):
    """Standard errors by name of the score, and the units that they come from."""

    of: Mapping[str, float]
    units: Units


class Estimated(ByCluster):
    """An evaluation that is asked how sure its scores are."""

    @cached_property
    def errors(self) -> Scores:
        """Standard errors of the overall scores, by connected component of truth and prediction.

        They say how far a score would differ on other components of the same kind. Scores that are no means over
        items have none, and asking for one raises a MetricError that says why. A single component gives NaN. An
        error of 0 means that all components have the same score: none of the faults that may be was seen.
        Worked out when first asked for, at a cost in proportion to the cells.
        """
        found = self._component_errors
        warn_of_units(found.units, COMPONENT, stacklevel=4)
        return Scores(found.of, self._without_error())

    @cached_property
    def _component_errors(self) -> Errors:
        return self._errors_without_warning(self._with_error(), COMPONENT)

    @cached_property
    def units(self) -> Units:
        """How many components the items come in, how many equal ones would tell as much, and the largest's share."""
        if self._saved_errors is not None:
            return self._saved_errors.units
        return count_units(self.contingency, self._components)

    def interval(self, which: str, *, level: float = 0.95, unit: str = COMPONENT) -> Interval:
        """Return the interval of an overall score.

        Parameters
        ----------
        which : str
            A score, such as "f1".
        level : float
            The confidence.
        unit : str
            What could have been drawn otherwise, as a whole: "component", a connected component of truth and
            prediction; "true_cluster", which is right only with ``unmatched="outside"``; or a column of the
            tables, whose values have to keep components whole. Where that does not hold, an
            `EvaluationWarning` says so: the interval is then too narrow.

        Returns
        -------
        Interval
            low and high, from the quantile of Student's t with one degree of freedom less than there are units. A
            score cannot leave its range: the interval is symmetric in the log odds of a rate. It is NaN
            where all items are one unit, and the score itself where all units have the same score: that is no
            certainty, for the data have no unit to show how scores differ.

        Raises
        ------
        MetricError
            If the score is unknown, or has no standard error.
        OptionError, ColumnError
            If there is no such level, unit or column.
        NotKeptError
            If neither standard errors nor cells were kept.

        Notes
        -----
        In 2,000 simulated samples of 300 components, one in ten of which merges 3 to 15 true clusters, intervals of
        95 % by component covered the precision, recall, F1 and mean F1 of the population in 95 to 96 % of the
        samples; those by true cluster covered precision, F1 and mean F1 in 62 to 64 %.

        Examples
        --------
        Of four components three have recall 1 and one 1/2. The error is sqrt(4/3 * (3 * 0.25**2 + 0.75**2)) / 8, and
        the interval the share that log(0.875 / 0.125) -+ 3.182 * 0.125 / (0.875 * 0.125) stands for.

        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 5])
        >>> low, high = ev.interval("recall")
        >>> ev.recall, ev.errors.recall, round(low, 3), round(high, 3)
        (0.875, 0.125, 0.156, 0.996)
        """
        metric, level = self._one_metric(which), check_level(level)
        found = self._errors_by([metric], unit, stacklevel=3)
        return _interval(metric, self._value(metric), found, level)

    def estimates(self, *, level: float = 0.95, unit: str = COMPONENT) -> Table:
        """Return the overall scores with standard errors and intervals, as far as they have any.

        Parameters
        ----------
        level, unit
            As for `interval`.

        Returns
        -------
        Table
            score, value, se, low, high, n_units, effective_units (the number of equal units that would tell as
            much).

        Raises
        ------
        OptionError
            If there is no such level or unit.
        ColumnError
            If there is no such column.
        NotKeptError
            If neither standard errors nor cells were kept.

        Examples
        --------
        The recall is that of the example of `interval`; all components have precision 1.

        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 5], metrics=["precision", "recall"])
        >>> ev.estimates()
        score        value       se      low     high  n_units  effective_units
        precision        1        0        1        1        4                4
        recall     0.87500  0.12500  0.15562  0.99625        4                4
        <BLANKLINE>
        2 rows
        """
        level, metrics = check_level(level), self._with_error()
        found = self._errors_by(metrics, unit, stacklevel=3)
        ends = [_interval(m, self.overall[m.name], found, level) for m in metrics]
        return Table(
            table_of(
                {
                    "score": from_texts([m.name for m in metrics]),
                    "value": np.array([self.overall[m.name] for m in metrics], np.float64),
                    "se": np.array([found.of[m.name] for m in metrics], np.float64),
                    "low": np.array([each.low for each in ends], np.float64),
                    "high": np.array([each.high for each in ends], np.float64),
                    "n_units": np.full(len(metrics), found.units.n),
                    "effective_units": np.full(len(metrics), found.units.effective),
                }
            )
        )

    def intervals_at_hand(self, level: float = 0.95) -> dict[str, dict[str, float]]:
        """Return standard error and interval of the overall scores, where they are known or soon worked out."""
        found = self.errors_at_hand()
        known: dict[str, dict[str, float]] = {}
        for metric in self.metrics if found is not None else ():
            if found is not None and metric.name in found.of:
                low, high = _interval(metric, self.overall[metric.name], found, level)
                known[metric.name] = {"se": found.of[metric.name], "low": low, "high": high}
        return known

    def _described(self, slices: Mapping[str, Any]) -> dict[str, Any]:
        found, described = self.errors_at_hand(), super()._described(slices)
        if found is None:
            return described
        return {**described, "errors": dict(found.of), "units": found.units._asdict()}

    # Parts of the above

    def _resolve(self, names: Iterable[Any]) -> list[Metric]:
        table = self.contingency
        own = [lifted(n, outside=table.outside) if callable(n) else n for n in names]
        found, _ = resolve(
            own,
            weighted=table.weighted,
            weighting=table.weighting,
            outside=table.outside,
            overlapping=table.overlapping,
        )
        return [metric.at(self.beta) for metric in found]

    def _one_metric(self, which: str) -> Metric:
        """Return the score of this name, which has a standard error."""
        known = {m.name: m for m in self.metrics}
        found = [known[which]] if isinstance(which, str) and which in known else self._resolve([which])
        if len(found) != 1:
            raise MetricError(f"{which!r} is a family of {len(found)} scores; name one of them")
        if (reason := why_none(found[0])) is not None:
            raise MetricError(reason)
        return found[0]

    def _value(self, metric: Metric) -> float:
        if metric.name in self.overall:
            return self.overall[metric.name]
        return aggregation.overall(self.contingency, [metric], beta=self.beta)[metric.name]

    def _with_error(self) -> list[Metric]:
        """Return the overall scores whose standard error is known, or can be worked out."""
        if self._saved_errors is not None:
            return [m for m in self.metrics if m.name in self._saved_errors.of]
        return drilldown.known_by_cluster(
            self.contingency, [m for m in self.metrics if why_none(m) is None], self.beta
        )

    def _without_error(self) -> dict[str, str]:
        """Return the overall scores that have no standard error, and why."""
        known = {m.name for m in self._with_error()}
        not_kept = (
            'takes the weight of each item, and the items were not kept; save with keep="items" to have it'
        )
        return {
            m.name: why_none(m) or f"the standard error of {m.name} {not_kept}"
            for m in self.metrics
            if m.name not in known
        }

    @cached_property
    def _components(self) -> CellUnits:
        """The component of each cell."""
        if not isinstance(self.contingency, Contingency):
            raise NotKeptError(
                "neither standard errors nor the cells that they come from were kept; ask for .errors before you save "
                f'with keep="scores", or evaluate and save with {to_keep("cells", self.contingency)}'
            )
        return components(self.contingency, self._memory_limit)

    def _errors_by(self, metrics: list[Metric], unit: str, *, stacklevel: int) -> Errors:
        """Return the standard errors of scores by a unit; warn of what makes them less than they seem."""
        found = self._errors_without_warning(metrics, unit)
        if (reason := self._why_too_small(unit)) is not None:
            message = f'standard errors by {unit} are too small: {reason}. Take unit="component"'
            warnings.warn(message, EvaluationWarning, stacklevel=stacklevel)
        warn_of_units(found.units, unit, stacklevel=stacklevel + 1)
        return found

    def _why_too_small(self, unit: str) -> str | None:
        """Return why units of this kind depend on each other, as far as they do."""
        if unit == COMPONENT or (unit == TRUE_CLUSTER and self.contingency.outside):
            return None
        if unit == TRUE_CLUSTER:
            return (
                "true clusters that share a predicted cluster share its precision (they are units of their own "
                'only with unmatched="outside")'
            )
        torn, n = self._torn(self._units_of_column(unit)), self._components.n
        return f"{torn} of {n} components have items of several values" if torn else None

    def _errors_without_warning(self, metrics: list[Metric], unit: str) -> Errors:
        saved = self._saved_errors
        if unit == COMPONENT and saved is not None and all(m.name in saved.of for m in metrics):
            return saved
        whole = self._components  # raises if there are no cells
        drilldown.require_items(self.contingency, metrics, self.beta)
        if not is_one_of(unit, (COMPONENT, TRUE_CLUSTER)):
            return self._errors_by_column(metrics, unit)
        units = whole if unit == COMPONENT else true_clusters(self.contingency)
        counted = self.units if unit == COMPONENT else count_units(self.contingency, units)
        with Pool() as pool:
            of = errors_of_cells(self.contingency, metrics, self.beta, units, counted.n, pool)
        return Errors(of, counted)

    def _errors_by_column(self, metrics: list[Metric], column: str) -> Errors:
        codes = self._units_of_column(column)
        rows = RowUnits.of(self.contingency, np.zeros(codes.size, np.int64), 1, codes)
        found = errors_of_rows(self.contingency, metrics, self.beta, rows)
        return Errors({name: float(each[0]) for name, each in found.errors.items()}, found.units(0))

    def _units_of_column(self, column: Any) -> NDArray[np.int64]:
        if not isinstance(column, str):
            raise OptionError(f'unit is "component", "true_cluster" or a column, not {column!r}')
        return slice_codes(column, self.contingency, self.kept_items(), self.attributes).codes

    def _torn(self, codes: NDArray[np.integer]) -> int:
        """Count the components whose items have several codes."""
        rows = RowUnits.of(self.contingency, self._component_of_rows(), self._components.n, codes)
        return int(np.count_nonzero(np.bincount(rows.group_of_code) > 1))

    def _component_of_rows(self) -> NDArray[np.int64]:
        """Return the component of each row, -1 for one that is not scored."""
        cell = self._rows().cell
        return np.where(cell < 0, -1, self._components.by_cell(self.contingency.n_cells)[cell])

    def _with_errors(
        self, columns: dict[str, Any], codes: NDArray[np.integer], n_groups: int
    ) -> dict[str, Any]:
        """Return scores of groups of rows with n_units, and behind each score its standard error."""
        units = np.maximum(self._component_of_rows(), 0)
        metrics = [m for m in self._with_error() if m.name in columns]
        rows = RowUnits.of(self.contingency, codes, n_groups, units)
        found = errors_of_rows(self.contingency, metrics, self.beta, rows)
        result: dict[str, Any] = {}
        for name, values in columns.items():
            result[name] = values
            if name == "weight":
                result["n_units"] = found.n_units
            if name in found.errors:
                result[f"{name}_se"] = found.errors[name]
        return result

    def errors_at_hand(self) -> Errors | None:
        """Return the standard errors if they are known, or soon worked out."""
        table = self.contingency
        known = self._saved_errors is not None or "_component_errors" in self.__dict__
        if not known and (self.in_files or not (isinstance(table, Contingency) and table.n_cells <= ALWAYS)):
            return None
        try:
            return self._component_errors
        except OptionError:  # there is no room
            return None


def are_uneven(units: Units) -> bool:
    """Tell whether units are so uneven that few equal ones would tell as much: errors from them are too small."""
    return units.effective < min(FEW, units.n / 2)


def warn_of_units(units: Units, unit: str, *, stacklevel: int) -> None:
    """Warn of a single unit, and of units so uneven that few of them tell all there is."""
    if units.n == 1:
        message = f"there is no standard error, as all items are in one unit ({unit})"
    elif are_uneven(units):
        message = (
            f"standard errors and intervals are too small: one of {units.n:,} units ({unit}) has "
            f"{units.largest_share:.0%} of the weight, and all of them tell as much as {units.effective:.1f} equal ones"
        )
    else:
        return
    warnings.warn(message, EvaluationWarning, stacklevel=stacklevel)


def _interval(metric: Metric, value: float, found: Errors, level: float) -> Interval:
    return interval(
        value, found.of[metric.name], n_units=found.units.n, level=level, low=metric.low, high=metric.high
    )
