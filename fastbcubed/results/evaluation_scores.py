"""Scores of an evaluation by cluster and by slice, with standard errors and intervals."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import SIDES, Contingency, side_of
from fastbcubed.errors import (
    EvaluationWarning,
    Message,
    MetricError,
    NotKeptError,
    OptionError,
    SliceError,
    Word,
    arg,
)
from fastbcubed.inputs.arrays import from_texts, table_of
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.pointwise import LOSS_OF_SIDE, LOSSES
from fastbcubed.metrics.registry import lifted, resolve
from fastbcubed.metrics.score import Metric
from fastbcubed.metrics.sums import overall
from fastbcubed.results import clusters
from fastbcubed.results.concentration import (
    ROWS,
    LossCurve,
    SizeClasses,
    classes_of_cells,
    concentration,
    loss_curves,
    recall_alone,
)
from fastbcubed.results.evaluation_base import Evaluated
from fastbcubed.results.items import AttributeTable
from fastbcubed.results.outcomes import not_defined, outcome_code
from fastbcubed.results.slices import (
    SliceKey,
    beside,
    check_key,
    macro_of,
    slice_codes,
    slice_name,
    subset_mask,
)
from fastbcubed.results.standard_errors import (
    CellUnits,
    Interval,
    RowUnits,
    Units,
    check_level,
    components,
    count_units,
    errors_of_cells,
    interval,
    too_small,
    true_clusters,
    why_none,
)
from fastbcubed.results.summary import Scores
from fastbcubed.results.table import LOSS, Table, listed, require_limit, warn_renamed
from fastbcubed.runtime.arguments import is_one_of, true_or_false
from fastbcubed.runtime.attributes import cached_property
from fastbcubed.runtime.threads import Pool


class ByCluster(Evaluated):
    """An evaluation whose clusters can be listed and counted; see `Evaluation`."""

    def clusters(
        self, side: str, *, order_by: str | None = None, limit: int | None = None, outcome: str | None = None
    ) -> Table:
        """Return losses and scores by cluster, the costliest first.

        Parameters
        ----------
        side : {"true", "pred"}
            Which clusters.
        order_by : str, optional
            A score or column; when absent, or "loss", recall_loss for true clusters and precision_loss for predicted
            ones. Scores are listed worst first, all else largest first.
            Ties are broken by weight, largest first, then by label.
        limit : int, optional
            The number of clusters to return; all when absent.
        outcome : str, optional
            What became of the clusters to list, as `outcomes` calls it: "mixed", say; any when absent.

        Returns
        -------
        Table
            cluster, n_items, weight, n_parts (clusters of the other side that it meets), exact (the
            same cluster is on the other side), outcome (not where clusters overlap), precision_loss, recall_loss,
            and the scores over its items.

        Raises
        ------
        SliceError
            If there is no such side.
        MetricError
            If there is no such column to order by, or there are no outcomes, since clusters may overlap.
        OptionError
            If there is no such outcome, or `limit` is no number of rows.
        NotKeptError
            If the cells were not kept.

        Notes
        -----
        The losses of a cluster are what it costs of the precision and of the recall of all items: the sum over its
        items of weight * (1 - precision), or recall, divided by the weight of all items. So over all clusters of
        a side they add up to over_merge_rate and under_merge_rate.

        Where clusters overlap, this is so because losses are split, which is our definition. Two items that share
        g predicted clusters and c true ones lose (g - min(g, c)) / g of the precision of each other, divided by the
        mates of the item in question; each of the g clusters is charged an equal part. So it is with recall and true
        clusters. The recall that an item loses is split equally among its predicted clusters, and the precision
        among its true ones.

        Examples
        --------
        Of predicted cluster 0 two items have precision 2/3, and one 1/3: they lose 2 * 1/3 + 2/3 of 4 items.

        >>> import fastbcubed as fb
        >>> ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1], metrics="precision")
        >>> ev.clusters("pred").drop_columns(["weight", "exact"])
        cluster  n_items  n_parts   outcome  precision_loss  recall_loss  precision
        0              3        2     mixed         0.33333      0.12500    0.55556
        1              1        1  fragment               0      0.12500          1
        <BLANKLINE>
        2 rows
        """
        return self.coded_clusters(side, order_by, limit, outcome).drop_columns(["code"])

    def coded_clusters(
        self,
        side: str,
        order_by: str | None = None,
        limit: int | None = None,
        outcome: str | None = None,
    ) -> Table:
        """Return the table of `clusters`, and the code of each cluster."""
        side = side_of(side)
        clusters.require_items(
            self.contingency, [m for m in self.metrics if is_one_of(order_by, (m.name,))], self.beta
        )
        metrics = clusters.known_by_cluster(self.contingency, self.metrics, self.beta)
        order_by = LOSS_OF_SIDE[side] if order_by is None or is_one_of(order_by, (LOSS,)) else order_by
        named_by = ("code", "cluster", lambda found: self.cluster_labels(side, found))
        if outcome is not None:
            self._require_outcomes()
            outcome_code(side, outcome)
        ranges = self._lazy or self.ranges
        if ranges is None or limit is None:
            columns = clusters.columns_by_code(self.contingency, side, metrics, self.beta)
            table = clusters.listing_of(0, columns, side, outcome)
        else:
            table = ranges.best(side, metrics, self.beta, order_by, limit, named_by, outcome)
        return listed(table, metrics, order_by, limit, named_by=named_by)

    def outcomes(self) -> Table:
        """Return the outcomes of the clusters (exact, in parts, with others, both) and their losses.

        A true cluster is "exact" (the same cluster is on the other side), "split" (in several predicted clusters,
        which hold nothing else), "merged" (whole, together with other items) or "split and merged". A predicted one
        is "exact", a "fragment" (of one true cluster, not all of it), a "union" (of whole true clusters) or "mixed".
        Under "outside", items that only the prediction has are others, too, and a predicted cluster with any is mixed.

        Returns
        -------
        Table
            side, outcome, n_clusters, n_items, weight, precision_loss, recall_loss; all outcomes in this order, true
            clusters first. Each loss adds up to that of all items on either side.

        Raises
        ------
        MetricError
            If clusters may overlap.
        NotKeptError
            If the cells were not kept.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aabbcd"), [1, 1, 2, 3, 4, 4])
        >>> ev.outcomes()
        side  outcome           n_clusters  n_items  weight  precision_loss  recall_loss
        true  exact                      1        2       2               0            0
        true  split                      1        2       2               0      0.16667
        true  merged                     2        2       2         0.16667            0
        true  split and merged           0        0       0               0            0
        pred  exact                      1        2       2               0            0
        pred  fragment                   2        2       2               0      0.16667
        pred  union                      1        2       2         0.16667            0
        pred  mixed                      0        0       0               0            0
        <BLANKLINE>
        8 rows
        """
        self._require_outcomes()
        if self._outcomes is None:
            raise NotKeptError(
                f"the cells were not kept; evaluate with {arg('keep', 'cells')} to know the outcomes of clusters"
            )
        return Table(self._outcomes)

    def lorenz(self, side: str, *, limit: int | None = ROWS) -> Table:
        """Return how the loss is spread over clusters, the costliest first: in few of them, or in many.

        Parameters
        ----------
        side : {"true", "pred"}
            Which clusters: true ones lose recall, predicted ones precision.
        limit : int or None
            Rows of the curve at most. The first clusters are listed one by one, later ones ever farther apart; always
            the first, the last one that costs anything, and the last. None for all.

        Returns
        -------
        Table
            n_clusters, share_clusters, share_loss: how much of the loss is in so many clusters. The share is NaN if
            nothing is lost.

        Raises
        ------
        SliceError
            If there is no such side.
        OptionError
            If `limit` is no number of rows.
        NotKeptError
            If the cells were not kept.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aaabbcd"), [1, 1, 2, 3, 3, 3, 4])
        >>> ev.lorenz("pred")
        n_clusters  share_clusters  share_loss
                 1         0.25000           1
                 2         0.50000           1
                 3         0.75000           1
                 4               1           1
        <BLANKLINE>
        4 rows
        """
        require_limit(limit)
        return Table(self._loss_curves[side_of(side)].table(limit))

    @cached_property
    def _loss_curves(self) -> dict[str, LossCurve]:
        """The loss of clusters, by side."""
        if self._lazy is not None:
            return {side: self._lazy.totals(side).curve for side in SIDES}
        table = self.contingency
        if self._summary is None:
            n_clusters = {"true": table.n_true, "pred": table.n_pred}
        else:
            n_clusters = {side: figures["clusters"] for side, figures in self._summary.items()}
        if table.overlapping:
            losses = {
                side: clusters.columns_by_code(table, side, [], self.beta)[LOSS_OF_SIDE[side]]
                for side in SIDES
            }
            return {side: LossCurve.of(n_clusters[side], losses[side]) for side in SIDES}
        return loss_curves(table, n_clusters, None if self.ranges is None else self.ranges.limit)

    def size_classes(self, side: str) -> SizeClasses:
        """Return totals of the clusters of a side by size, in powers of two; not where they overlap."""
        if self._lazy is not None:
            return self._lazy.totals(side).classes
        return classes_of_cells(self.contingency, side)

    def recall_alone(self) -> float | None:
        """Return the recall if all items were predicted singletons; None if their weights are unavailable."""
        if self._lazy is not None and self.contingency.weighted and self.contingency.weighting != "outer":
            return self._lazy.recall_alone
        return recall_alone(self.contingency, self.size_classes("true"))

    def loss_of_all(self, side: str) -> float:
        """Return the loss of the clusters of a side: in recall for true, in precision for predicted ones."""
        name = LOSSES[LOSS_OF_SIDE[side]].name
        return self.overall[name] if name in self.overall else self._losses_of_all[side]

    @cached_property
    def _losses_of_all(self) -> dict[str, float]:
        """The results of `loss_of_all` for both sides, from one pass over all cells or clusters."""
        if self._lazy is not None:
            return {side: curve.loss for side, curve in self._loss_curves.items()}
        found = overall(self.contingency, LOSSES.values(), beta=self.beta)
        return {side: found[LOSSES[LOSS_OF_SIDE[side]].name] for side in SIDES}

    @cached_property
    def concentration(self) -> dict[str, dict[str, Any]]:
        """By side: "loss", "n_clusters", "n_lossy" (those that cost anything), "n_half" (so few have half of it)."""
        return concentration(self._loss_curves)

    def _require_outcomes(self) -> None:
        if self.contingency.overlapping:
            raise not_defined()


#: Results of no more cells than this are written and sent with their standard errors; larger ones if these are known.
ALWAYS = 1_000_000
#: Fewer equal units than this are few.
FEW = 30
COMPONENT, TRUE_CLUSTER = "component", "true_cluster"


#: The columns of `Evaluation.scores`.
SCORES = pa.schema(
    [("score", pa.string())]
    + [(name, pa.float64()) for name in ("value", "se", "low", "high")]
    + [("n_units", pa.int64()), ("effective_units", pa.float64())]
)


class Errors(NamedTuple):
    """Standard errors by name of the score, and the units that they come from."""

    of: Mapping[str, float]
    units: Units


class Estimated(ByCluster):
    """An evaluation with standard errors and intervals of its scores."""

    @cached_property
    def errors(self) -> Scores:
        """Standard errors of the overall scores, by connected component of truth and prediction.

        They say how far a score would differ on other components of the same kind. Scores that are no means over
        items have none, and asking for one raises a MetricError that says why. A single component gives NaN. An
        error of 0 means that all components have the same score: none of the faults that may be was seen.
        Computed on first access, at a cost in proportion to the cells.
        """
        found = self._component_errors
        warn_of_units(found.units, COMPONENT, stacklevel=4)
        return Scores(found.of, self._without_error())

    @cached_property
    def _component_errors(self) -> Errors:
        return self._errors_without_warning(self._with_error(), COMPONENT)

    @cached_property
    def units(self) -> Units:
        """Number of components, effective number of components, and the share of the largest."""
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

    def scores(self, *, level: float = 0.95, unit: str = COMPONENT) -> Table:
        """Return the overall scores, with standard errors and intervals where these are defined.

        `to_pandas`, `to_polars` and `to_arrow` of the evaluation convert this table.

        Parameters
        ----------
        level, unit
            As for `interval`.

        Returns
        -------
        Table
            score, value, se, low, high (null for scores without an error), n_units, effective_units (the
            effective number of units); the last two are null where no score has an error.

        Raises
        ------
        OptionError
            If there is no such level or unit.
        ColumnError
            If there is no such column.
        NotKeptError
            If errors by a unit other than the component are requested, and no items were kept.

        Examples
        --------
        The recall is that of the example of `interval`; all components have precision 1.

        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aabbccdd"), [1, 1, 2, 2, 3, 3, 4, 5], metrics=["precision", "recall"])
        >>> ev.scores()
        score        value       se      low     high  n_units  effective_units
        precision        1        0        1        1        4                4
        recall     0.87500  0.12500  0.15562  0.99625        4                4
        <BLANKLINE>
        2 rows
        """
        level, metrics = check_level(level), self._with_error()
        has_errors = bool(metrics) and (
            self._saved_errors is not None or isinstance(self.contingency, Contingency)
        )
        found = self._errors_by(metrics, unit, stacklevel=3) if has_errors or unit != COMPONENT else None
        rows: list[dict[str, Any]] = []
        for metric in self.metrics:
            value = self.overall[metric.name]
            row: dict[str, Any] = {"score": metric.name, "value": float(value)}
            if found is not None and metric.name in found.of:
                low, high = _interval(metric, value, found, level)
                row |= {"se": float(found.of[metric.name]), "low": float(low), "high": float(high)}
            if found is not None:
                row |= {"n_units": found.units.n, "effective_units": found.units.effective}
            rows.append(row)
        return Table(pa.Table.from_pylist(rows, SCORES))

    def _main_table(self) -> Table:
        return self.scores()

    def estimates(self, *, level: float = 0.95, unit: str = COMPONENT) -> Table:
        """Return `scores`, as this method was called before 0.2."""
        warn_renamed("estimates", "scores")
        return self.scores(level=level, unit=unit)

    def intervals_at_hand(self, level: float = 0.95) -> dict[str, dict[str, float]]:
        """Return standard error and interval of the overall scores, where known or quickly computed."""
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
        return overall(self.contingency, [metric], beta=self.beta)[metric.name]

    def _with_error(self) -> list[Metric]:
        """Return the overall scores whose standard error is known, or can be computed."""
        if self._saved_errors is not None:
            return [m for m in self.metrics if m.name in self._saved_errors.of]
        return clusters.known_by_cluster(
            self.contingency, [m for m in self.metrics if why_none(m) is None], self.beta
        )

    def _without_error(self) -> dict[str, str]:
        """Return the overall scores that have no standard error, and why."""
        known = {m.name for m in self._with_error()}
        not_kept = f"and the items were not kept; save with {arg('keep', 'items')} to have it"
        return {
            m.name: why_none(m)
            or Message(f"the standard error of {m.name} takes the weight of each item, {not_kept}")
            for m in self.metrics
            if m.name not in known
        }

    @cached_property
    def _components(self) -> CellUnits:
        """The component of each cell."""
        if not isinstance(self.contingency, Contingency):
            raise NotKeptError(
                "neither standard errors nor the cells that they come from were kept; ask for .errors before you save "
                f"with {arg('keep', 'scores')}, or evaluate and save with {arg('keep', 'cells')}"
            )
        return components(self.contingency, self._memory_limit)

    def _errors_by(self, metrics: list[Metric], unit: str, *, stacklevel: int) -> Errors:
        """Return the standard errors of scores by a unit; warn where they are too small."""
        found = self._errors_without_warning(metrics, unit)
        if (reason := self._why_too_small(unit)) is not None:
            warnings.warn(too_small(unit, reason), EvaluationWarning, stacklevel=stacklevel)
        warn_of_units(found.units, unit, stacklevel=stacklevel + 1)
        return found

    def _why_too_small(self, unit: str) -> str | None:
        """Return why units of this kind depend on each other, if they do."""
        if unit == COMPONENT or (unit == TRUE_CLUSTER and self.contingency.outside):
            return None
        if unit == TRUE_CLUSTER:
            return (
                f"{Word('true cluster')}s that share a {Word('predicted cluster')} share its precision (they are "
                f"units of their own only with {arg('unmatched', 'outside')})"
            )
        torn, n = self._torn(self._units_of_column(unit)), self._components.n
        return f"{torn} of {n} components have items of several values" if torn else None

    def _errors_without_warning(self, metrics: list[Metric], unit: str) -> Errors:
        saved = self._saved_errors
        if unit == COMPONENT and saved is not None and all(m.name in saved.of for m in metrics):
            return saved
        whole = self._components  # raises if there are no cells
        clusters.require_items(self.contingency, metrics, self.beta)
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
        found = rows.errors(self.contingency, metrics, self.beta)
        return Errors({name: float(each[0]) for name, each in found.items()}, rows.units(0))

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
        errors = rows.errors(self.contingency, metrics, self.beta)
        result: dict[str, Any] = {}
        for name, values in columns.items():
            result[name] = values
            if name == "weight":
                result["n_units"] = rows.n_units
            if name in errors:
                result[f"{name}_se"] = errors[name]
        return result

    def errors_at_hand(self) -> Errors | None:
        """Return the standard errors if known or quickly computed."""
        table = self.contingency
        known = self._saved_errors is not None or "_component_errors" in self.__dict__
        if not known and (
            self._lazy is not None or not (isinstance(table, Contingency) and table.n_cells <= ALWAYS)
        ):
            return None
        try:
            return self._component_errors
        except OptionError:  # there is no room
            return None


def are_uneven(units: Units) -> bool:
    """Return whether units are too uneven (few effective units), so that their standard errors are too small."""
    return units.effective < min(FEW, units.n / 2)


def warn_of_units(units: Units, unit: str, *, stacklevel: int, of: str = "") -> None:
    """Warn of a single unit, and of very uneven units; `of` says whose they are."""
    if units.n == 1:
        message = f"there is no standard error, as all items are in one unit ({unit})"
    elif are_uneven(units):
        message = (
            f"standard errors and intervals are too small: one of {units.n:,} units ({unit}) has "
            f"{units.largest_share:.0%} of the weight, and all carry no more information than "
            f"{units.effective:.1f} equal ones"
        )
    else:
        return
    warnings.warn(of + message, EvaluationWarning, stacklevel=stacklevel)


def _interval(metric: Metric, value: float, found: Errors, level: float) -> Interval:
    return interval(
        value, found.of[metric.name], n_units=found.units.n, level=level, low=metric.low, high=metric.high
    )


class BySlice(Estimated):
    """An evaluation that can be sliced; see `Evaluation`."""

    def subset(self, which: Any) -> Scores:
        """Return scores over some items: a list of ids, or a mask with one bool per item.

        Parameters
        ----------
        which : array-like
            Ids; or a mask in the order of `items`, or of the truth's rows. Of a saved result, or one of the
            disk engine, the rows are those of ``items.parquet``.

        Returns
        -------
        Scores

        Raises
        ------
        SliceError
            If an item is not in the evaluation, or none of them is scored.
        NotKeptError
            If the items were not kept.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> ev = fb.evaluate({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2})
        >>> ev.subset(["b", "c"]).recall, ev.subset([False, True, True]).recall  # (1/2 + 1) / 2
        (0.75, 0.75)
        """
        mask = subset_mask(which, self.kept_items(), self.contingency, "the subset")
        table = self._slice(np.where(mask, 0, -1), 1)
        if not table["weight"][0]:
            raise SliceError("all items of the subset have weight 0, so it has no score")
        return Scores({m.name: float(table[m.name][0]) for m in self.metrics if m.name in table})

    def slices(
        self,
        by: SliceKey,
        *,
        attributes: Any = None,
        errors: bool = False,
        order_by: str | None = None,
        limit: int | None = None,
    ) -> Table:
        """Return scores by slice.

        Parameters
        ----------
        by : str, Bins, tuple of these, or mapping
            An attribute, or a part of a composite id; bins of one (see `fastbcubed.bins`); several crossed; or names
            of subsets, each a mask or a list of items. "true_size" and "pred_size" are always there; where a column
            is called so, too, it is "truth.true_size", and the size "always.true_size"; of an item in several clusters,
            the items in any of them. A null is a slice of its own.
        attributes : table, optional
            Attributes by item, or row by row, to slice by; those given to `evaluate` by default.
        errors : bool
            Whether to work out standard errors, too, which takes about as long again: <score>_se behind each
            score, by the components that have items in the slice, and n_units, the number of these.
        order_by : str, optional
            A score or column to list worst first, or largest first, or "loss": by precision_loss and recall_loss
            together, largest first. Ties are broken by weight, then by slice. When absent, by slice, or by "loss"
            if there is a limit.
        limit : int, optional
            The number of slices to return; all when absent.

        Returns
        -------
        Table
            The slice, n_items, weight, precision_loss, recall_loss (what it costs of the precision and the
            recall of all items), and the scores; slices without a scored item are left out. An attribute called
            like one of these, such as weight, is attribute.weight here.

        Raises
        ------
        ColumnError
            If there is no such attribute.
        SliceError
            If a subset has no scored item, or an attribute cannot be sliced by.
        MetricError, OptionError
            If there is no such column to order by, `limit` is no number of rows, or `errors` neither True nor False.
        NotKeptError
            If the items were not kept.

        Examples
        --------
        >>> import fastbcubed as fb
        >>> countries = {"item": ["a", "b", "c"], "country": ["US", "DE", "DE"]}
        >>> ev = fb.evaluate({"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 2, "c": 2}, attributes=countries)
        >>> ev.slices("country").select(["country", "n_items", "precision", "recall"])
        country  n_items  precision   recall
        DE             2    0.50000  0.75000
        US             1          1  0.50000
        <BLANKLINE>
        2 rows
        >>> ev.slices({"first two": ["a", "b"]})["precision"].to_pylist()  # (1 + 1/2) / 2
        [0.75]
        """
        by, errors = check_key(by), true_or_false(errors, "errors")
        order_by = LOSS if order_by is None and limit is not None else order_by
        if not self.has_items and not errors and slice_name(by) in self.sliced:
            return listed(self.sliced[slice_name(by)], self.metrics, order_by, limit)
        items = self.kept_items()
        if isinstance(by, Mapping):
            masks = [subset_mask(w, items, self.contingency, repr(n)) for n, w in by.items()]
            rows = [self._slice(np.where(mask, 0, -1), 1, errors) for mask in masks]
            columns: dict[str, Any] = {"slice": from_texts(list(map(str, by)))}
            columns |= {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
        else:
            extra = self.attributes if attributes is None else AttributeTable.of(attributes, items)
            cut = slice_codes(by, self.contingency, items, extra)
            columns = beside(cut.values, self._slice(cut.codes, cut.n_slices, errors))
        return listed(table_of(columns), self.metrics, order_by, limit)

    def macro(
        self, by: SliceKey, *, min_items: int = 1, f_of_means: bool = False, attributes: Any = None
    ) -> Table:
        """Return the mean of each score over slices, each of which counts once, however many items it has.

        This combines scores of several data sets, where a column names the data set of an item.

        Parameters
        ----------
        by : str, Bins, tuple of these, or mapping
            As for `slices`; a null is a slice of its own.
        min_items : int
            Slices of fewer scored items are left out.
        f_of_means : bool
            Whether an F is computed from the mean precision and the mean recall. By default an F is averaged like
            any other score.
        attributes : table, optional
            As for `slices`.

        Returns
        -------
        Table
            score, mean, sd (the standard deviation over the slices, with one less than their number below; NaN for
            one slice, and for scores from `f_of_means`), n_slices. A slice whose items all have weight 0 has
            no score.

        Raises
        ------
        ColumnError
            If there is no such attribute.
        SliceError
            If no slice has as many items, or an attribute cannot be sliced by.
        MetricError, OptionError
            If `f_of_means` lacks a score that it takes, or is neither True nor False, or `min_items` is no number.
        NotKeptError
            If the items were not kept, and the slices are not those of the evaluation.

        Notes
        -----
        Of the scores of all items at once, such as `adjusted_rand`, slices have none; evaluate each data set by
        itself for those. Where clusters of either side reach over several data sets, their items are scored with all
        of their mates.

        References
        ----------
        R. van Heusden et al., BCubed Revisited: Elements Like Me, 2022, whose tables are means over data sets.

        Examples
        --------
        Of two data sets one is split and one is merged: precision and recall are 1 and 1/2, and F1 is 2/3 in both.

        >>> import fastbcubed as fb
        >>> ev = fb.evaluate(list("aabc"), [1, 2, 3, 3], attributes={"source": list("xxyy")})
        >>> ev.macro("source").slice(0, 3)
        score         mean       sd  n_slices
        precision  0.75000  0.35355         2
        recall     0.75000  0.35355         2
        f1         0.66667        0         2
        <BLANKLINE>
        3 rows
        >>> ev.macro("source", f_of_means=True)["mean"][2].as_py()
        0.75
        """
        f_of_means = true_or_false(f_of_means, "f_of_means")
        table = self.slices(by, attributes=attributes)
        return macro_of(
            table,
            "the subsets" if isinstance(by, Mapping) else repr(slice_name(by)),
            self.metrics,
            self.beta,
            min_items,
            f_of_means,
        )

    # Parts of the above

    def _slice(self, codes: NDArray[np.integer], n: int, errors: bool = False) -> dict[str, NDArray[Any]]:
        table = self.contingency
        columns = aggregation.group_means(
            table, codes, n, self.metrics, beta=self.beta, by_row=True, total=table.total_weight
        )
        return self._with_errors(columns, codes, n) if errors else columns
