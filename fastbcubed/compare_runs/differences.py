"""Standard errors and intervals of the differences between runs, from the sums by unit of `results.influences`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.attributes import readable
from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.compare_runs.units import (
    ComparisonData,
    beside_baseline,
    components_of_rows,
    is_heavy,
    metrics_with_errors,
    of_all_rows,
    require_rows,
    why_no_errors,
)
from fastbcubed.errors import IdTypeError, NotKeptError, OptionError, arg, quoted
from fastbcubed.inputs.arrays import from_texts, from_values, table_of
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.aggregation import WEIGHT
from fastbcubed.metrics.metric import Metric, without_rounding
from fastbcubed.metrics.sums_by_unit import SumsByUnit
from fastbcubed.render.number_formats import counted, percent
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.influences import (
    Moves,
    Powers,
    RunScores,
    by_run,
    is_mean,
    means_of,
    needed_by,
    powers_of_cells,
    same_where_exact,
    score_of_means,
)
from fastbcubed.results.intervals import of_difference, t_quantile
from fastbcubed.results.slices import slice_codes
from fastbcubed.results.standard_errors import (
    COMPONENT,
    FEW_DEGREES,
    TRUE_CLUSTER,
    RowUnits,
    carried_by_few,
    error_and_freedom,
    error_not_drawn,
    freedom_of,
    powers_of,
    too_small,
    unit_of_cells,
)
from fastbcubed.results.unit_cells import (
    CellsByUnit,
    CellUnits,
    Units,
    components_of_tables,
    pieces_of_runs,
    true_clusters_of_runs,
)
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Floats

#: With a smaller effective number of units than this, degrees of freedom are limited (see `benchmarks/coverage.py`).
FEW_BEHIND = 6

Keys = NDArray[np.int64]
#: Replicates that a thread draws at once.
AT_ONCE = 25
#: The seed of the hash function for keys of units; another one would draw other replicates.
SEED = 0


def content_of_values(values: pa.Array) -> Keys:
    """Return a hash of each value of an attribute, as text if its type cannot be that of ids; 0 for null."""
    try:
        return content_of(values, "unit")
    except IdTypeError:
        return content_of(readable(values).cast(pa.string()), "unit")


def content_of(values: Any, name: str) -> Keys:
    """Return a hash of each value, which does not depend on the container; 0 for null."""
    from fastbcubed.inputs.keys import write_both

    column = as_column(values, name)
    with Pool() as pool:
        found, _ = write_both(column.plain, SEED, pool)
    nulls = column.null_rows
    return found if nulls is None else np.where(nulls, 0, found)


def keys_of_units(
    runs: Sequence[Evaluation], units: Sequence[CellUnits], numbers: Sequence[Keys] | None
) -> Keys:
    """Return a key for each unit: the sum of the keys of its true clusters in all runs.

    `numbers` has the numbers of each run's true clusters by code; None if the codes are the same in all runs.
    """
    if numbers is None:
        runs, numbers = runs[:1], [np.arange(runs[0].contingency.n_codes["true"])]
    keys = np.zeros(units[0].n_joined, np.int64)
    known = np.zeros(1 + max(int(own.max(initial=-1)) for own in numbers), np.bool_)
    for r, ev in enumerate(runs):
        new = np.flatnonzero((ev.contingency.true_n > 0) & ~known[numbers[r]])
        np.add.at(keys, units[r].of_true[new], _keys_of_true_clusters(ev, new))
        known[numbers[r][new]] = True
    return keys


def _keys_of_true_clusters(ev: Evaluation, codes: Keys) -> Keys:
    """Return mixed hashes of the labels of true clusters.

    A true cluster that a policy made has no label; its item's id is hashed instead.
    """
    labels = ev.kept.cluster_labels("true", codes)
    keys = content_of(labels, "cluster")
    nameless = np.flatnonzero(labels.is_null())
    if nameless.size and not ev.has_items:
        raise NotKeptError(
            f"the bootstrap draws true clusters by their labels, but {nameless.size:,} clusters created by a "
            f"policy have none; compare with {arg('engine', 'memory')}, which identifies these by their "
            "items"
        )
    if nameless.size:
        ids = ev.kept_items().ids(ev.kept.first_rows["true"][codes[nameless]])
        keys[nameless] = ~content_of(ids, "item")
    return np.asarray(kernels.partition.mix_all(keys))


def replicates(
    comparison: ComparisonData, drawing: Drawing, metrics: Sequence[Metric], beta: float
) -> dict[tuple[str, str], Floats]:
    """Return the differences from the baseline of means over items in each replicate; NaN if it has no unit."""
    needed, runs = needed_by(metrics, beta), comparison.runs.values()
    columns = []
    for ev, codes in zip(runs, drawing.codes, strict=True):
        sums = aggregation.group_sums(ev.contingency, codes, drawing.keys.size, needed, by_row=drawing.by_row)
        columns += [np.add(*sums[name]) for name in (WEIGHT, *(m.name for m in needed))]
    totals = resampled(drawing.keys, np.column_stack(columns), comparison.n_bootstrap, comparison.seed)
    scores = {
        name: _scores(own, needed, metrics, beta)
        for name, own in zip(comparison.runs, np.split(totals.T, len(runs)), strict=True)
    }
    before = scores[comparison.baseline]
    return {
        (name, m.name): without_rounding(scores[name][m.name] - before[m.name], before[m.name])
        for name in comparison.experiments
        for m in metrics
    }


def _scores(
    totals: Floats, needed: Sequence[Metric], metrics: Sequence[Metric], beta: float
) -> dict[str, Floats]:
    """Return the scores of each replicate, given its weight (first row) and its sums of scores over items."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = dict(zip((m.name for m in needed), totals[1:] / totals[0], strict=True))
        return {m.name: np.asarray(score_of_means(m, means, beta), np.float64) for m in metrics}


def resampled(keys: Keys, values: Floats, n: int, seed: int) -> Floats:
    """Return sums over the units drawn in n replicates. Shapes: (n_units,), (n_units, k) -> (n, k)."""
    there = np.flatnonzero(values.any(axis=1))
    order = there[np.argsort(keys[there], kind="stable")]
    keys, values = keys[order], values[order]
    totals = np.zeros((n, values.shape[1]))
    with Pool() as pool:
        pool.map(
            lambda a, b: kernels.units.resample(seed % 2**63, a, b, keys, values, totals[a:b]),
            *zip(*blocks(n, AT_ONCE), strict=True),
            stage="bootstrap",
        )
    return totals


#: Adjustments of intervals for several experiments.
ADJUSTMENTS = ("bonferroni", "none")


@dataclass(frozen=True)
class Differences:
    """The standard errors of the differences, and their replicates, by experiment and score."""

    units: Units | None  #: units of all runs; None if there are no standard errors
    errors: Mapping[tuple[str, str], float]
    df: Mapping[tuple[str, str], float]  #: degrees of freedom of the errors, as in `Errors`
    units_of: Mapping[str, Units]  #: by experiment: the units of its errors
    replicates: Mapping[tuple[str, str], NDArray[np.float64]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  #: reasons why the errors may be too small
    #: by experiment and score: the error due to units that were not drawn; 0 if unknown
    not_drawn: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def is_clear_if_drawn(self, key: tuple[str, str], delta: float, level: float) -> bool:
        """Return whether only units that were not drawn could reverse a difference."""
        if key in self.replicates or not self.not_drawn.get(key, 0.0) > 0:
            return False
        return abs(delta) > t_quantile(level, self.df[key]) * self.errors[key]

    def carried_by_few(self, metrics: Sequence[Metric]) -> dict[str, list[str]]:
        """Return the scores whose error is dominated by few units, by experiment."""
        found = {}
        for name, units in self.units_of.items():
            own, df = (
                {score: value for (run, score), value in known.items() if run == name}
                for known in (self.errors, self.df)
            )
            found[name] = carried_by_few(metrics, own, df, units)
        return found


def with_units(deltas: pa.Table, found: Differences) -> pa.Table:
    """Return the table of differences, with units and replicates, from which `differences_of` restores intervals."""
    rows = deltas.select(["experiment", "score"]).to_pylist()
    keys = [(row["experiment"], row["score"]) for row in rows]
    for k, (name, kind) in enumerate(
        zip(Units._fields, (pa.int64(), pa.float64(), pa.float64()), strict=True)
    ):
        own = [found.units_of[run][k] if run in found.units_of else None for run, _ in keys]
        deltas = deltas.append_column(name, pa.array(own, kind))
    for name, known in (("df", found.df), ("not_drawn", found.not_drawn)):
        deltas = deltas.append_column(name, pa.array([known.get(key) for key in keys], pa.float64()))
    return deltas.append_column(
        "replicates", pa.array([found.replicates.get(key) for key in keys], pa.list_(pa.float64()))
    )


def differences_of(table: pa.Table, units: Units | None, cautions: Sequence[str]) -> Differences:
    """Return the differences from a table that `with_units` extended."""
    rows = {(row["experiment"], row["score"]): row for row in table.to_pylist()}
    units_of = {
        run: Units(row["n"], *(math.nan if row[name] is None else row[name] for name in Units._fields[1:]))
        for (run, _), row in rows.items()
        if row["n"]
    }
    errors = {key: row["se"] for key, row in rows.items()}
    df = {key: row.get("df") or max(1.0, (row["n"] or 0) - 1.0) for key, row in rows.items()}
    drawn = {key: np.array(row["replicates"]) for key, row in rows.items() if row["replicates"] is not None}
    not_drawn = {key: row.get("not_drawn") or 0.0 for key, row in rows.items()}
    return Differences(units, errors, df, units_of, drawn, tuple(cautions), not_drawn)


def adjusted(level: float, n_experiments: int, adjust: Any) -> float:
    """Return the confidence of single intervals at which the intervals of all experiments hold jointly at `level`."""
    if not is_one_of(adjust, ADJUSTMENTS):
        raise OptionError(f"adjust must be {' or '.join(map(repr, ADJUSTMENTS))}, not {quoted(adjust)}")
    return level if adjust == "none" else 1 - (1 - level) / max(1, n_experiments)


def require_replicates(n: int, level: float, n_experiments: int) -> None:
    """Raise OptionError for too few replicates to leave one beyond each end of an interval; 0 means no bootstrap."""
    least = math.ceil(2 / (1 - adjusted(level, n_experiments, "bonferroni")) - 1e-6)
    if 0 < n < least:
        intervals = f"{percent(level)} intervals of {counted(max(1, n_experiments), 'difference')}"
        raise OptionError(
            f"{arg('bootstrap')} is {n:,}, but {intervals} need {least:,} replicates, at least one beyond "
            f"each end. Pass {arg('bootstrap', max(1000, least))}, or {arg('bootstrap', 0)} for intervals "
            "by Student's t"
        )


def table_of_deltas(comparison: ComparisonData, found: Differences, level: float) -> pa.Table:
    """Return the table of differences, with a row for each experiment and score."""
    experiments, metrics, place = comparison.experiments, comparison.metrics, _place(comparison)
    values = _by_run(comparison, metrics)
    before, after = np.tile(values[place], len(experiments)), np.delete(values, place, axis=0).ravel()
    with np.errstate(invalid="ignore"):
        deltas = without_rounding(after - before, after)
    rows = [((run, m.name), m) for run in experiments for m in metrics]
    errors = [found.errors.get(key, math.nan) for key, _ in rows]
    ends = [
        of_difference(
            *(m, delta, error),
            df=found.df.get(key, math.nan),
            level=level,
            not_drawn=found.not_drawn.get(key, 0.0),
            replicates=found.replicates.get(key),
        )
        for (key, m), delta, error in zip(rows, deltas.tolist(), errors, strict=True)
    ]
    low, high = np.reshape(ends, (-1, 2)).T.copy()
    holds = [None if math.isnan(low + high) else not low <= 0.0 <= high for low, high in ends]
    return table_of(
        {
            "baseline": from_texts([comparison.baseline] * len(rows)),
            "experiment": from_texts([run for (run, _), _ in rows]),
            "score": from_texts([m.name for _, m in rows]),
            "baseline_value": before,
            "experiment_value": after,
            "delta": deltas,
            "se": np.array(errors, np.float64),
            "low": low,
            "high": high,
            "holds": from_values(holds, pa.bool_()),
        }
    )


def _by_run(comparison: ComparisonData, metrics: Sequence[Metric]) -> Floats:
    """Return the values of scores in each run. Shape (n_runs, n_metrics)."""
    values = comparison._values
    return by_run([values[m.name] for m in metrics], len(comparison))


def estimated(comparison: ComparisonData) -> Differences:
    """Compute the standard errors of the differences, and their replicates if requested.

    If a component of the truth and all runs is heavy, the errors of an experiment use the components of the truth, the
    baseline and this experiment.
    """
    if why_no_errors(comparison) is not None:
        return Differences(None, {}, {}, {})
    place, beta = _place(comparison), comparison[comparison.baseline].beta
    every = metrics_with_errors(comparison)
    metrics, others = [m for m in every if is_mean(m)], [m for m in every if not is_mean(m)]
    said: list[str] = []
    add_up = _of_clusters if comparison.unit in (COMPONENT, TRUE_CLUSTER) else _of_column
    powers, drawing, single, of_cells, of_one = add_up(comparison, metrics, said)
    units, runs = powers.units, list(comparison)
    if comparison.unit == COMPONENT and len(runs) > 2 and is_heavy(units.largest_share):
        return _by_pair(comparison, units)
    values = _by_run(comparison, metrics + others)
    known = np.isfinite(values) & ~single[:, None]
    known &= known[place]
    less = np.array([freedom_of(m)["less"] for m in metrics])
    errors, df = error_and_freedom(powers.by_run, units.n, values[:, : len(metrics)], less=less)
    df = np.where(errors == 0, units.effective, freedom_of_difference(df, units.effective))
    shares = np.maximum(of_one, of_one[place]).tolist()
    missing = [
        [error_not_drawn(m, units.largest_share, share) for m, share in zip(metrics, own, strict=True)]
        for own in shares
    ]
    keys = list(product(runs, (m.name for m in metrics)))
    by_score, by_df, not_drawn = (
        dict(zip(keys, np.ravel(own).tolist(), strict=True)) for own in (errors, df, missing)
    )
    drawn = {} if drawing is None else replicates(comparison, drawing, metrics, beta)
    if others and of_cells is not None:
        with Pool() as pool:
            of_sums = DifferencesOfSums(comparison, of_cells, pool)
            for metric in others:
                for key, found in of_sums.errors(metric, units.n).items():
                    by_score[key], by_df[key], not_drawn[key] = found
                drawn |= {} if drawing is None else of_sums.replicates(metric, drawing.keys)
    is_known = dict(
        zip(product(runs, (m.name for m in metrics + others)), known.ravel().tolist(), strict=True)
    )
    by_score = {
        key: error if is_known[key] else math.nan
        for key, error in by_score.items()
        if key[0] != comparison.baseline
    }
    return Differences(
        units, by_score, by_df, dict.fromkeys(comparison.experiments, units), drawn, tuple(said), not_drawn
    )


def freedom_of_difference(df: Any, effective: float) -> Any:
    """Return the degrees of freedom of a difference, limited if the effective number of units is small.

    Such a sample may lack large units that make most of the difference, which its variance does not show. If one unit
    has most of the weight, its deviation from the mean is small, and there is 1 degree of freedom.
    """
    return np.minimum(df, np.clip(effective - 1.0, 1.0, FEW_DEGREES)) if effective < FEW_BEHIND else df


class DifferencesOfSums:
    """Differences of scores that are functions of sums by unit, from each unit's influences on two runs."""

    def __init__(self, comparison: ComparisonData, units: Sequence[CellUnits], pool: Pool) -> None:
        """Prepare the sums by unit of each run, given the units of its cells; all runs have the same units."""
        n = max(own.n for own in units)
        complete = all(own.table.alone(side) is None for own in units for side in SIDES)
        self._comparison = comparison
        self._runs = {
            name: SumsByUnit(own.table, own.by_cell(), n, pool, own.n_joined if complete else None)
            for name, own in zip(comparison.runs, units, strict=True)
        }
        self._n = self._runs[comparison.baseline].n

    def errors(self, metric: Metric, n_units: int) -> dict[tuple[str, str], tuple[float, float, float]]:
        """Return standard errors, degrees of freedom and errors of units that were not drawn, by run and score.

        `n_units` units have a positive weight.

        Each entity without a scored item is a unit of its own in one run.
        """
        moved = {name: by_unit.moved(metric) for name, by_unit in self._runs.items()}
        before, n = moved[self._comparison.baseline], self._n
        found = {}
        for name in self._comparison.experiments:
            after = moved[name]
            alone = [*after.by_unit[n:], *before.by_unit[n:]]
            changes = after.by_unit[:n] - before.by_unit[:n]
            powers = powers_of(changes, self._runs[name].add) + powers_of(np.array(alone))
            u, size = max(n_units + len(alone), before.n, after.n), max(after.size, before.size)
            less = freedom_of(metric)["less"]
            error, df = map(float, error_and_freedom(powers, u, size, less=less))
            runs = self._runs[name], self._runs[self._comparison.baseline]
            effective = min(by_unit.effective(metric) for by_unit in runs)
            not_drawn = max(error_not_drawn(metric, by_unit.largest_share(metric)) for by_unit in runs)
            freedom = freedom_of_difference(df, effective) if error else effective
            found[name, metric.name] = error, freedom, not_drawn
        return found

    def replicates(self, metric: Metric, keys: Keys) -> dict[tuple[str, str], Floats]:
        """Return the differences in each replicate; empty if entities without a scored item count."""
        parts = {name: by_unit.function(metric) for name, by_unit in self._runs.items()}
        if any(own.size > self._n for by_unit, _ in parts.values() for own in by_unit):
            return {}
        values = np.concatenate([np.array(by_unit) for by_unit, _ in parts.values()]).T
        counted = np.column_stack([values, np.ones(len(values))])
        totals = resampled(keys, counted, self._comparison.n_bootstrap, self._comparison.seed)
        totals = totals[:, :-1] * (
            len(values) / np.maximum(totals[:, -1:], 1.0)
        )  # scaled to the number of units
        ends = np.cumsum([len(by_unit) for by_unit, _ in parts.values()])[:-1]
        scores = {
            name: np.array([function(row) if row.any() else math.nan for row in own])
            for (name, (_, function)), own in zip(parts.items(), np.split(totals, ends, axis=1), strict=True)
        }
        before = scores[self._comparison.baseline]
        return {(name, metric.name): scores[name] - before for name in self._comparison.experiments}


def _by_pair(comparison: ComparisonData, units: Units) -> Differences:
    """Return the differences of each experiment, with the units of the truth, the baseline and that experiment."""
    found = {name: estimated(beside_baseline(comparison, name)) for name in comparison.experiments}
    return Differences(
        units,
        {key: error for each in found.values() for key, error in each.errors.items()},
        {key: df for each in found.values() for key, df in each.df.items()},
        {name: own for each in found.values() for name, own in each.units_of.items()},
        {key: drawn for each in found.values() for key, drawn in each.replicates.items()},
        not_drawn={key: error for each in found.values() for key, error in each.not_drawn.items()},
    )


class Drawing(NamedTuple):
    """The units that the bootstrap draws, with keys that do not depend on the order of rows."""

    keys: Keys
    codes: Sequence[Codes]  #: by run: the unit of each cell or, if `by_row`, of each row
    by_row: bool


class _Found(NamedTuple):
    """The units of all runs, and the sums of their influences on means over items."""

    powers: Powers
    drawing: Drawing | None  #: None without a bootstrap
    #: whether all items of a run are one unit, so that its errors are unknown
    single: NDArray[np.bool_]
    #: None if clusters have items in several units
    of_cells: Sequence[CellUnits] | None
    of_one: Floats  #: share of each score that depends on one of its means; shape (n_runs, n_metrics)


def _of_clusters(comparison: ComparisonData, metrics: Sequence[Metric], said: list[str]) -> _Found:
    """Sum the influences of cells by the unit of their true cluster."""
    runs, numbers, place = list(comparison.runs.values()), comparison._true_numbers, _place(comparison)
    tables, drawn = [ev.contingency for ev in runs], comparison.n_bootstrap > 0
    beta, connected = comparison[comparison.baseline].beta, comparison.unit == COMPONENT
    needed = needed_by(metrics, beta)
    every = drawn or numbers is not None or not connected or not same_where_exact(metrics)
    n_shares = 1 if numbers is None else len(runs)
    with Pool() as pool:
        means = [means_of(ev.contingency, needed, ev.metrics, ev.overall, pool) for ev in runs]
        scores = RunScores.of_cells(tables, means, needed, metrics, beta)
        if connected:
            units, pieces = components_of_tables(tables, numbers, every, pool)
        else:
            units, pieces = _true_clusters(comparison, tables, said), pieces_of_runs(tables, every, pool)
        width = n_shares + len(runs) * len(needed)
        by_unit = CellsByUnit.of(pieces, [own.of_codes for own in units], units[0].n_joined, width, pool)
        del pieces
        powers = powers_of_cells(tables, by_unit, units, scores, Moves.of(scores, place), pool, n_shares)
    single = np.zeros(len(runs), np.bool_)
    if numbers is not None:
        of_cells = (own.by_cell()[own.table.weight > 0] for own in units)
        single[:] = [codes.size > 0 and codes.min() == codes.max() for codes in of_cells]
    drawing = None
    if drawn:
        drawing = Drawing(keys_of_units(runs, units, numbers), [own.by_cell() for own in units], False)
    return _Found(powers, drawing, single, units if connected else None, scores.shares_of_one_mean())


def _of_column(comparison: ComparisonData, metrics: Sequence[Metric], said: list[str]) -> _Found:
    """Sum the influences of rows by the column that defines the units."""
    units, values = _units_of_column(comparison, said)
    evs = list(comparison.runs.values())
    first = comparison[comparison.baseline].contingency
    rows = RowUnits.of(first, np.where(units < 0, -1, 0), 1, np.maximum(units, 0))
    moved = [rows.influences(ev.contingency, metrics, ev.beta) for ev in evs]
    before = moved[_place(comparison)]
    powers = [[powers_of(own[m.name].moved - before[m.name].moved) for m in metrics] for own in moved]
    drawing = None
    if comparison.n_bootstrap:
        tables = (ev.contingency.rows for ev in evs)
        of_rows = [np.full(table.n_rows, -1, units.dtype) for table in tables if table is not None]
        # Scored rows have the same numbers in all runs, which may have other rows after these.
        for own in of_rows:
            own[rows.rows] = units[rows.rows]
        drawing = Drawing(content_of_values(values), of_rows, True)
    single = np.zeros(len(evs), np.bool_)  # all runs score the same rows
    of_cells = None
    if not said:
        codes = [unit_of_cells(ev.contingency, rows.rows, rows.code) for ev in evs]
        n_units = rows.group_of_code.size
        of_cells = [
            CellUnits(ev.contingency, own[:0], n_units, own) for ev, own in zip(evs, codes, strict=True)
        ]
    by_run = np.moveaxis(np.reshape(powers, (len(moved), len(metrics), 2)), -1, 0)
    of_one = np.array([[np.ravel(own[m.name].of_one)[0] for m in metrics] for own in moved])
    return _Found(Powers(by_run, rows.units(0)), drawing, single, of_cells, of_one)


def _place(comparison: ComparisonData) -> int:
    return list(comparison.runs).index(comparison.baseline)


def _true_clusters(
    comparison: ComparisonData, tables: Sequence[Contingency], said: list[str]
) -> list[CellUnits]:
    """Return the true clusters as units; append a caution to `said` if they are too small."""
    if not tables[0].outside:
        shared = "true clusters that share a predicted cluster share its precision"
        said.append(too_small(comparison.unit, shared))
    return true_clusters_of_runs(tables, comparison._true_numbers)


def _units_of_column(comparison: ComparisonData, said: list[str]) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the unit of each row by a column, -1 for none, and the values of units.

    Append a caution to `said` if components have items of several units.
    """
    first = comparison[comparison.baseline]
    cut = slice_codes(comparison.unit, first.contingency, first.kept_items(), first.attributes)
    units = of_all_rows(comparison, cut.codes[: require_rows(comparison)], -1)
    component = of_all_rows(comparison, components_of_rows(comparison), -1)
    of_component = RowUnits.of(first.contingency, component, int(component.max()) + 1, units + 1)
    values_of = np.bincount(of_component.group_of_code)
    several = values_of[values_of > 0] > 1
    if several.any():
        torn = f"{np.count_nonzero(several)} of {several.size} components contain items with different values"
        said.append(too_small(comparison.unit, torn))
    return units, next(iter(cut.values.values()))
