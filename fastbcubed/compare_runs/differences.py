"""Contributions of units to the scores of runs, and the squared differences between runs.

What a unit adds to a score of one run and to that of another are taken from each other before they are squared:
where both runs treat a unit alike, it adds nothing to the error of their difference. True clusters that all runs find
exactly are units by themselves, and are only counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.compare_runs.units import (
    NONE_ALONE,
    Alone,
    CellsByUnit,
    RunUnits,
    beside_baseline,
    components_of_rows,
    components_of_runs,
    is_heavy,
    metrics_with_errors,
    of_all_rows,
    pieces_of_runs,
    require_rows,
    true_clusters_of_runs,
    why_no_errors,
)
from fastbcubed.errors import IdTypeError, NotKeptError, OptionError, arg
from fastbcubed.inputs.arrays import from_texts, table_of
from fastbcubed.inputs.id_columns import as_column
from fastbcubed.inputs.tables import readable
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.bcubed import COMPLEMENTS
from fastbcubed.metrics.metric import Metric, without_rounding
from fastbcubed.metrics.sums import CellSums
from fastbcubed.metrics.sums_by_unit import SumsByUnit
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.intervals import (
    LESS_VARIANCE_OF_SUMS,
    Interval,
    degrees_of_freedom,
    share_not_seen,
    t_quantile,
)
from fastbcubed.results.slices import slice_codes
from fastbcubed.results.standard_errors import (
    CELLS_AT_ONCE,
    COMPONENT,
    TRUE_CLUSTER,
    RowUnits,
    Units,
    carried_by_few,
    is_mean,
    needed_by,
    slopes,
    standard_error,
    too_small,
)
from fastbcubed.runtime.arguments import is_one_of
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Floats

if TYPE_CHECKING:
    from fastbcubed.compare_runs.comparison import Comparison

#: Ranges of units that are added up by one.
RANGES_AT_ONCE = 8


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

    def coefficients(self, metrics: Sequence[Metric], beta: float) -> Floats:
        """Return how much each score moves with the sum of each needed one. Shape (n_metrics, n_needed)."""
        found = np.zeros((len(metrics), len(self.needed)))
        for row, metric in zip(found, metrics, strict=True):
            for name, slope in slopes(metric, self.means, beta):
                row[self.needed.index(name)] += slope
        return found

    def of_share(self, coefficients: Floats) -> Floats:
        """Return the slope of each score by the share of exactly found clusters. Shape (n_metrics,)."""
        means = np.array([self.means[name] for name in self.needed])
        return np.asarray(coefficients @ (self.origins - means))


class Moves(NamedTuple):
    """The slopes of each score of each run by the sums of a unit, and the number of the baseline."""

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
    """The sums of the units of several runs."""

    shares: Floats  #: of the weight; shape (1, n_units), or (n_runs, n_units) where they are not the same in all runs
    sums: Floats  #: share * (score - origin) by unit; shape (n_runs, n_units, n_needed)


class Powers(NamedTuple):
    """Sums of second and fourth powers of contributions of units: to each run's scores less those to the baseline's."""

    by_run: Floats  #: shape (2, n_runs, n_metrics)
    units: Units

    @classmethod
    def of(
        cls, parts: Sequence[tuple[Floats, Floats]], moves: Moves, total: float, alone: Alone = NONE_ALONE
    ) -> Powers:
        """Add up the powers of parts of the units, as kernels return them, and of true clusters that are alone."""
        powers = np.sum([own for own, _ in parts], axis=0)
        n, of_shares, largest = zip(*(counted for _, counted in parts), strict=True)
        every = math.fsum([*of_shares, alone.squares / total**2])
        if alone.n:
            slopes = moves.of_shares - moves.of_shares[moves.baseline]
            powers[0] += slopes**2 * (alone.squares / total**2)
            powers[1] += slopes**4 * (alone.fourths / total**4)
        units = Units(int(sum(n)) + alone.n, 1.0 / every, float(max(*largest, alone.largest / total)))
        return cls(powers, units)


def powers_of_cells(
    tables: Sequence[Contingency],
    by_unit: CellsByUnit,
    units: Sequence[Codes],
    needed: Sequence[Metric],
    runs: Sequence[RunScores],
    moves: Moves,
    pool: Pool,
    *,
    kept: UnitSums,
) -> Powers:
    """Add up cells by unit, range by range, and the powers of differences; the sums stay in `kept` if that has room."""
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
        powers, counted = np.zeros((2, *moves.of_shares.shape)), np.zeros(3)
        with pool.workspace("ranges of units", lambda: _room(kept, per_range)) as room:
            compiled.square_ranges(
                by_unit.cells, by_unit.bounds, (first, last, by_unit.shift), by_unit.n_units, of_runs,
                of_formulas, (of_others, others), tuple(moves), room, powers, counted,
            )  # fmt: skip
        return powers, counted

    ranges = blocks(n_ranges, RANGES_AT_ONCE)
    found = pool.map(square, *zip(*ranges, strict=True), stage="standard errors")
    return Powers.of(found, moves, totals[0], by_unit.alone)


def _room(kept: UnitSums, n: int) -> tuple[Floats, Floats, tuple[Floats, Floats, Floats]]:
    """Return buffers for the sums of n units (or their kept part) and for a run of units."""
    (n_shares, n_kept), (n_runs, _, n_needed) = kept.shares.shape, kept.sums.shape
    rows = (
        np.empty((n_shares, kernels.partition.RUN)),
        np.empty((n_runs, n_needed, kernels.partition.RUN)),
        np.empty(kernels.partition.RUN),
    )
    if n_kept:
        return *kept, rows
    return np.empty((n_shares, n)), np.empty((n_runs, n, n_needed)), rows


def _compiled(needed: Sequence[Metric]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which scores are compiled, and the positions of their formulas."""
    from fastbcubed.metrics import compiled

    found = [None if m.leave_one_out or m.matrix else compiled.POSITIONS.get(id(m.formula)) for m in needed]
    fast = [(k, position) for k, position in enumerate(found) if position is not None]
    columns, formulas = np.array(fast, np.int64).reshape(-1, 2).T.copy()
    return columns, formulas


def same_where_exact(metrics: Sequence[Metric]) -> bool:
    """Return whether all exactly found clusters have the same scores, as with all scores of the registry."""
    return all(metric.family != "own" for metric in metrics)


def means_of(
    table: Contingency,
    needed: Sequence[Metric],
    metrics: Sequence[Metric],
    overall: Mapping[str, float],
    pool: Pool,
) -> Mapping[str, float]:
    """Return the means of the needed scores: `overall` has those of `metrics`, and others are computed."""
    known = {m.name: overall[m.name] for m in needed if any(m is each for each in metrics)}
    others = [m for m in needed if m.name not in known]
    return known | aggregation.item_means([aggregation.item_sums(table, others, pool, CellSums(table, pool))])


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
        kernels.units.add_scores(table.cells[start:stop], units, shares, deviations, sums)
    return sums


Keys = NDArray[np.int64]
#: Replicates that a thread draws at once.
AT_ONCE = 25
#: The hash function of what units hold; another one would draw other replicates.
SEED = 0


def content_of_values(values: pa.Array) -> Keys:
    """Return a hash of each value of an attribute, of those that cannot be ids as text; 0 for a null."""
    try:
        return content_of(values, "unit")
    except IdTypeError:
        return content_of(readable(values).cast(pa.string()), "unit")


def content_of(values: Any, name: str) -> Keys:
    """Return a hash of each value, whatever holds it; 0 for a null."""
    from fastbcubed.inputs.keys import write_both

    column = as_column(values, name)
    with Pool() as pool:
        found, _ = write_both(column.plain, SEED, pool)
    nulls = column.null_rows
    return found if nulls is None else np.where(nulls, 0, found)


def keys_of_units(runs: Sequence[Evaluation], units: RunUnits, numbers: Sequence[Keys] | None) -> Keys:
    """Return a key for each unit: the sum of the keys of its true clusters in any run.

    `numbers` are those of the true clusters of each run; None if their codes are the same in all runs.
    """
    if numbers is None:
        runs, numbers = runs[:1], [np.arange(runs[0].contingency.n_codes["true"])]
    keys = np.zeros(units.n, np.int64)
    known = np.zeros(1 + max(int(own.max(initial=-1)) for own in numbers), np.bool_)
    for r, ev in enumerate(runs):
        new = np.flatnonzero((ev.contingency.true_n > 0) & ~known[numbers[r]])
        np.add.at(keys, units.of_true[r][new], _keys_of_true_clusters(ev, new))
        known[numbers[r][new]] = True
    return keys


def _keys_of_true_clusters(ev: Evaluation, codes: Keys) -> Keys:
    """Return the hashes of the labels of true clusters, mixed.

    A true cluster that a policy has made has no label, and its item stands for it.
    """
    labels = ev.kept.cluster_labels("true", codes)
    keys = content_of(labels, "cluster")
    nameless = np.flatnonzero(labels.is_null())
    if nameless.size and not ev.has_items:
        raise NotKeptError(
            f"the bootstrap draws true clusters by their labels, and {nameless.size:,} that a policy has made have "
            f"none; compare with {arg('engine', 'memory')}, where their items stand for them"
        )
    if nameless.size:
        ids = ev.kept_items().ids(ev.kept.first_rows["true"][codes[nameless]])
        keys[nameless] = ~content_of(ids, "item")
    return np.asarray(kernels.partition.mix_all(keys))


def replicates(
    runs: Mapping[str, RunScores],
    sums: UnitSums,
    baseline: str,
    metrics: Sequence[Metric],
    beta: float,
    keys: Keys,
    n: int,
    seed: int,
) -> dict[tuple[str, str], Floats]:
    """Return the differences from the baseline in n replicates, by run and score; NaN where no unit was drawn."""
    totals = resampled(keys, np.concatenate([sums.shares.T, *sums.sums], axis=1), n, seed)
    n_shares = len(sums.shares)
    of_runs = np.split(totals[:, n_shares:], len(runs), axis=1)
    scores = {
        name: _scores(run, metrics, beta, totals[:, min(r, n_shares - 1)], of_runs[r])
        for r, (name, run) in enumerate(runs.items())
    }
    return {(name, m.name): scores[name][m.name] - scores[baseline][m.name] for name in runs for m in metrics}


def resampled(keys: Keys, values: Floats, n: int, seed: int) -> Floats:
    """Return sums of units, drawn by their keys, in n replicates. Shapes: (n_units,), (n_units, k) -> (n, k)."""
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


def _scores(
    run: RunScores, metrics: Sequence[Metric], beta: float, shares: Floats, totals: Floats
) -> dict[str, Floats]:
    """Return the scores of each replicate from the sums of its units."""
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {name: run.origins[k] + totals[:, k] / shares for k, name in enumerate(run.needed)}
        means |= {name: 1.0 - means[own] for name, own in COMPLEMENTS.items() if own in means}
        return {
            m.name: means[m.name] if m.combine is None else np.asarray(m.combine(means, beta), np.float64)
            for m in metrics
        }


#: How intervals account for several experiments.
ADJUSTMENTS = ("bonferroni", "none")


@dataclass(frozen=True)
class Differences:
    """The standard errors of differences, and replicates of these, by experiment and score."""

    units: Units | None  #: of all runs; None if there are no errors
    errors: Mapping[tuple[str, str], float]
    df: Mapping[tuple[str, str], float]  #: degrees of freedom of these, as in `Errors`
    units_of: Mapping[str, Units]  #: those that the errors of an experiment are by
    replicates: Mapping[tuple[str, str], NDArray[np.float64]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()  #: what makes the errors less than they seem

    def interval(self, experiment: str, metric: Metric, delta: float, level: float) -> Interval:
        """Return the interval of a difference: percentiles of its replicates, else by Student's t.

        Where no unit differs, units that were not drawn may: as many as their share of the weight allows.
        """
        key = experiment, metric.name
        error = self.errors.get(key, math.nan)
        if math.isnan(error):
            return Interval(math.nan, math.nan)
        if key in self.replicates:
            found = self.replicates[key]
            found = found[~np.isnan(found)]  # of replicates that draw a unit
            if not found.size:
                return Interval(math.nan, math.nan)
            low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
            return Interval(float(low), float(high))
        if error == delta == 0 and math.isfinite(metric.high):
            reach = share_not_seen(self.df[key], level)
        else:
            reach = t_quantile(level, self.df[key]) * error
        return Interval(delta - reach, delta + reach)

    def carried_by_few(self) -> dict[str, list[str]]:
        """Return, by experiment, the scores whose error few units carry."""
        found = {}
        for name, units in self.units_of.items():
            own = {score: error for (run, score), error in self.errors.items() if run == name}
            found[name] = carried_by_few(own, {score: self.df[name, score] for score in own}, units)
        return found


def with_units(deltas: pa.Table, found: Differences) -> pa.Table:
    """Return a table of differences with the units of each, and its replicates or null, from which errors come."""
    rows = deltas.select(["experiment", "score"]).to_pylist()
    keys = [(row["experiment"], row["score"]) for row in rows]
    for k, (name, kind) in enumerate(
        zip(Units._fields, (pa.int64(), pa.float64(), pa.float64()), strict=True)
    ):
        own = [found.units_of[run][k] if run in found.units_of else None for run, _ in keys]
        deltas = deltas.append_column(name, pa.array(own, kind))
    deltas = deltas.append_column("df", pa.array([found.df.get(key) for key in keys], pa.float64()))
    return deltas.append_column(
        "replicates", pa.array([found.replicates.get(key) for key in keys], pa.list_(pa.float64()))
    )


def differences_of(table: pa.Table, units: Units | None, cautions: Sequence[str]) -> Differences:
    """Return the differences that `with_units` has put into a table."""
    rows = {(row["experiment"], row["score"]): row for row in table.to_pylist()}
    units_of = {
        run: Units(*(row[name] for name in Units._fields)) for (run, _), row in rows.items() if row["n"]
    }
    errors = {key: row["se"] for key, row in rows.items()}
    df = {key: row.get("df") or max(1.0, (row["n"] or 0) - 1.0) for key, row in rows.items()}
    drawn = {key: np.array(row["replicates"]) for key, row in rows.items() if row["replicates"] is not None}
    return Differences(units, errors, df, units_of, drawn, tuple(cautions))


def adjusted(level: float, n_experiments: int, adjust: Any) -> float:
    """Return the confidence of each interval, so that all experiments together have `level`."""
    if not is_one_of(adjust, ADJUSTMENTS):
        raise OptionError(f"adjust is {' or '.join(map(repr, ADJUSTMENTS))}, not {adjust!r}")
    return level if adjust == "none" else 1 - (1 - level) / max(1, n_experiments)


def holds(interval: Interval) -> bool | None:
    """Return whether an interval excludes 0; None without an interval."""
    return None if math.isnan(interval.low + interval.high) else not interval.low <= 0.0 <= interval.high


#: Columns of the table of differences: texts, figures, and whether each holds.
TEXTS = ("baseline", "experiment", "score")
FIGURES = ("baseline_value", "experiment_value", "delta", "se", "low", "high")


def table_of_deltas(comparison: Comparison, level: float) -> pa.Table:
    """Return a row for each experiment and score."""
    found, baseline = comparison._differences, comparison.baseline
    rows = []
    for name in comparison.experiments:
        for metric in comparison.metrics:
            before, after = (comparison[run].overall[metric.name] for run in (baseline, name))
            delta = float(without_rounding(after - before, after))
            ends = found.interval(name, metric, delta, level)
            error = found.errors.get((name, metric.name), math.nan)
            rows.append((baseline, name, metric.name, before, after, delta, error, *ends, holds(ends)))
    names = (*TEXTS, *FIGURES, "holds")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(names, ())
    texts = {name: from_texts(columns[name]) for name in TEXTS}
    figures = {name: np.array(columns[name], np.float64) for name in FIGURES}
    return table_of({**texts, **figures, "holds": pa.array(columns["holds"], pa.bool_())})


def estimated(comparison: Comparison) -> Differences:
    """Compute the standard errors of the differences, and their replicates if requested.

    Where clusters of several runs connect much of the weight, those of an experiment are by the components of the
    truth, the baseline and that experiment.
    """
    if why_no_errors(comparison) is not None:
        return Differences(None, {}, {}, {})
    every, beta = metrics_with_errors(comparison), comparison[comparison.baseline].beta
    metrics, others = [m for m in every if is_mean(m)], [m for m in every if not is_mean(m)]
    needed = needed_by(metrics, beta)
    by_cluster = comparison.unit in (COMPONENT, TRUE_CLUSTER)
    said: list[str] = []
    with Pool() as pool:
        means = [
            means_of(ev.contingency, needed, ev.metrics, ev.overall, pool) for ev in comparison.runs.values()
        ]
        add_up = _of_clusters if by_cluster else _of_column
        scores, sums, keys, powers, single, of_cells = add_up(comparison, metrics, needed, means, said, pool)
    units = powers.units
    if comparison.unit == COMPONENT and len(comparison) > 2 and is_heavy(units.largest_share):
        return _by_pair(comparison, units)
    scores_of_runs = [[ev.overall[m.name] for m in metrics] for ev in comparison.runs.values()]
    errors = standard_error(powers.by_run[0], units.n, scores_of_runs)
    keys_of_scores = [(name, m.name) for name in comparison.runs for m in metrics]
    by_score = dict(zip(keys_of_scores, errors.ravel().tolist(), strict=True))
    df = degrees_of_freedom(powers.by_run[0], powers.by_run[1], units.n)
    df = np.where(errors == 0, units.effective, df)
    by_df = dict(zip(keys_of_scores, df.ravel().tolist(), strict=True))
    drawn = {}
    if keys is not None:
        n, seed, names = comparison.n_bootstrap, comparison.seed, list(comparison.runs)
        drawn = replicates(
            dict(zip(names, scores, strict=True)), sums, comparison.baseline, metrics, beta, keys, n, seed
        )
    if others and of_cells is not None:
        with Pool() as pool:
            of_sums = DifferencesOfSums(comparison, of_cells, pool)
            for metric in others:
                for key, (error, freedom) in of_sums.errors(metric, units.n).items():
                    by_score[key], by_df[key] = error, freedom
                drawn |= {} if keys is None else of_sums.replicates(metric, keys)
    unknown = dict(zip(comparison.runs, single | single[_place(comparison)], strict=True))
    by_score = {
        (run, score): math.nan if unknown[run] else error
        for (run, score), error in by_score.items()
        if run != comparison.baseline
    }
    return Differences(
        units, by_score, by_df, dict.fromkeys(comparison.experiments, units), drawn, tuple(said)
    )


class DifferencesOfSums:
    """Differences of scores that are functions of sums by unit: what each unit moves in one run less in another."""

    def __init__(self, comparison: Comparison, units: UnitsOfCells, pool: Pool) -> None:
        """Take the unit of each cell of each run; units are the same in all runs."""
        n = 1 + max(int(own.max(initial=-1)) for own in units.of_cells)
        tables = [ev.contingency for ev in comparison.runs.values()]
        complete = all(table.alone(side) is None for table in tables for side in SIDES)
        self._comparison = comparison
        self._runs = {
            name: SumsByUnit(ev.contingency, own, n, pool, units.n_joined if complete else None)
            for (name, ev), own in zip(comparison.runs.items(), units.of_cells, strict=True)
        }
        self._n = self._runs[comparison.baseline].n

    def errors(self, metric: Metric, n_units: int) -> dict[tuple[str, str], tuple[float, float]]:
        """Return standard errors and degrees of freedom by run and score; `n_units` have weight.

        Entities that have no scored item are units of one run.
        """
        moved = {name: by_unit.moved(metric) for name, by_unit in self._runs.items()}
        before, n = moved[self._comparison.baseline], self._n
        found = {}
        for name in self._comparison.experiments:
            after = moved[name]
            alone = [*after.by_unit[n:], *before.by_unit[n:]]
            changes = after.by_unit[:n] - before.by_unit[:n]
            add = self._runs[name].add
            squares, fourths = (
                add(changes**power) + float(np.sum(np.array(alone) ** power)) for power in (2, 4)
            )
            u = n_units + len(alone)
            error = float(standard_error(squares, u, max(after.size, before.size)))
            if error:
                freedom = float(degrees_of_freedom(squares, fourths, u, less=LESS_VARIANCE_OF_SUMS))
            else:
                runs = self._runs[name], self._runs[self._comparison.baseline]
                freedom = min(by_unit.effective(metric) for by_unit in runs)
            found[name, metric.name] = error, freedom
        return found

    def replicates(self, metric: Metric, keys: Keys) -> dict[tuple[str, str], Floats]:
        """Return the differences in replicates; none where entities without a scored item count, too."""
        parts = {name: by_unit.function(metric) for name, by_unit in self._runs.items()}
        if any(own.size > self._n for by_unit, _ in parts.values() for own in by_unit):
            return {}
        values = np.concatenate([np.array(by_unit) for by_unit, _ in parts.values()]).T
        counted = np.column_stack([values, np.ones(len(values))])
        totals = resampled(keys, counted, self._comparison.n_bootstrap, self._comparison.seed)
        totals = totals[:, :-1] * (
            len(values) / np.maximum(totals[:, -1:], 1.0)
        )  # of as many units as there are
        ends = np.cumsum([len(by_unit) for by_unit, _ in parts.values()])[:-1]
        scores = {
            name: np.array([function(row) if row.any() else math.nan for row in own])
            for (name, (_, function)), own in zip(parts.items(), np.split(totals, ends, axis=1), strict=True)
        }
        before = scores[self._comparison.baseline]
        return {(name, metric.name): scores[name] - before for name in self._comparison.experiments}


def _by_pair(comparison: Comparison, units: Units) -> Differences:
    """Return the differences of each experiment by the units of the baseline and that experiment."""
    found = {name: estimated(beside_baseline(comparison, name)) for name in comparison.experiments}
    return Differences(
        units,
        {key: error for each in found.values() for key, error in each.errors.items()},
        {key: df for each in found.values() for key, df in each.df.items()},
        {name: own for each in found.values() for name, own in each.units_of.items()},
        {key: drawn for each in found.values() for key, drawn in each.replicates.items()},
    )


class UnitsOfCells(NamedTuple):
    """The units of the cells of runs; those from `n_joined` on are true clusters that all runs find exactly."""

    of_cells: list[Codes]  #: by run
    n_joined: int


class _Found(NamedTuple):
    """The sums of the units of all runs."""

    scores: list[RunScores]
    sums: UnitSums  #: without units if they are not drawn
    keys: NDArray[np.int64] | None  #: what tells the units apart; None if they are not drawn
    powers: Powers
    #: runs whose items are one unit, so that the errors of their scores are unknown
    single: NDArray[np.bool_]
    #: None where units tear clusters apart
    of_cells: UnitsOfCells | None


def _of_clusters(
    comparison: Comparison,
    metrics: Sequence[Metric],
    needed: Sequence[Metric],
    means: Sequence[Mapping[str, float]],
    said: list[str],
    pool: Pool,
) -> _Found:
    """Add up the cells by the unit of their true cluster."""
    runs, numbers = list(comparison.runs.values()), comparison._true_numbers
    tables, drawn = [ev.contingency for ev in runs], comparison.n_bootstrap > 0
    connected = comparison.unit == COMPONENT
    every = drawn or numbers is not None or not connected or not same_where_exact(metrics)
    pieces = pieces_of_runs(tables, every, pool)
    if connected:
        units = components_of_runs(pieces, numbers)
    else:
        units = _true_clusters(comparison, tables, said)
    n_shares = 1 if numbers is None else len(runs)
    width = n_shares + len(runs) * len(needed)
    by_unit = CellsByUnit.of(pieces, units.of_true, units.n, width, pool)
    del pieces
    scores = [RunScores.of_cells(table, needed, mean) for table, mean in zip(tables, means, strict=True)]
    n_kept = units.n if drawn else 0
    sums = UnitSums(np.empty((n_shares, n_kept)), np.empty((len(runs), n_kept, len(needed))))
    moves = Moves.of(scores, metrics, comparison[comparison.baseline].beta, _place(comparison))
    powers = powers_of_cells(tables, by_unit, units.of_true, needed, scores, moves, pool, kept=sums)
    single = np.zeros(len(runs), np.bool_)
    if numbers is not None:
        of_cells = (
            own[table.true[table.weight > 0]] for own, table in zip(units.of_true, tables, strict=True)
        )
        single[:] = [codes.size > 0 and codes.min() == codes.max() for codes in of_cells]
    keys = keys_of_units(runs, units, numbers) if drawn else None
    return _Found(scores, sums, keys, powers, single, _units_of_cells(tables, units) if connected else None)


def _units_of_cells(tables: Sequence[Contingency], units: RunUnits) -> UnitsOfCells:
    """Return the unit of each cell of each run."""
    found = []
    for table, of_true in zip(tables, units.of_true, strict=True):
        alone = np.flatnonzero((of_true < 0) & (table.true_n > 0))
        every = of_true.astype(np.int64)
        every[alone] = units.n + np.arange(alone.size)
        found.append(every[table.true])
    return UnitsOfCells(found, units.n)


def _of_column(
    comparison: Comparison,
    metrics: Sequence[Metric],
    needed: Sequence[Metric],
    means: Sequence[Mapping[str, float]],
    said: list[str],
    pool: Pool,
) -> _Found:
    """Add up the rows by the column that is the unit."""
    units, values = _units_of_column(comparison, said)
    evs = list(comparison.runs.values())
    first = comparison[comparison.baseline].contingency
    rows = RowUnits.of(first, np.where(units < 0, -1, 0), 1, np.maximum(units, 0))
    names = tuple(m.name for m in needed)
    scores = [RunScores(names, mean, np.array([mean[name] for name in names])) for mean in means]
    moved = [rows.influences(ev.contingency, metrics, ev.beta) for ev in evs]
    before = moved[_place(comparison)]
    powers = np.array(
        [
            [[np.sum((own[m.name].moved - before[m.name].moved) ** power) for m in metrics] for own in moved]
            for power in (2, 4)
        ]
    )
    sums, keys = UnitSums(np.empty((1, 0)), np.empty((len(evs), 0, len(needed)))), None
    if comparison.n_bootstrap:
        by_run = np.zeros((len(evs), rows.group_of_code.size, len(needed)))
        for own, ev in zip(by_run, evs, strict=True):
            _, deviations = rows.deviations(ev.contingency, needed)
            for k, metric in enumerate(needed):
                own[:, k] = deviations[metric.name]
        sums = UnitSums(rows.share_of_unit[None], by_run)
        unit_of_code = np.empty(rows.group_of_code.size, np.int64)
        unit_of_code[rows.code] = units[rows.rows]
        keys = content_of_values(values)[unit_of_code]
    single = np.zeros(len(evs), np.bool_)  # all runs have the same rows
    of_cells = None
    if not said:
        codes = [np.zeros(ev.contingency.n_cells, np.int64) for ev in evs]
        for of_run, ev in zip(codes, evs, strict=True):
            assert ev.contingency.rows is not None
            of_run[ev.contingency.rows.cell[rows.rows]] = rows.code
        of_cells = UnitsOfCells(list(codes), rows.group_of_code.size)
    return _Found(scores, sums, keys, Powers(powers, rows.units(0)), single, of_cells)


def _place(comparison: Comparison) -> int:
    return list(comparison.runs).index(comparison.baseline)


def _true_clusters(comparison: Comparison, tables: Sequence[Contingency], said: list[str]) -> RunUnits:
    """Return the true clusters as units; note if they are too small."""
    if not tables[0].outside:
        shared = "true clusters that share a predicted cluster share its precision"
        said.append(too_small(comparison.unit, shared))
    return true_clusters_of_runs(tables, comparison._true_numbers)


def _units_of_column(comparison: Comparison, said: list[str]) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the unit of each row by a column, -1 for none, and its values; note if that tears components apart."""
    first = comparison[comparison.baseline]
    cut = slice_codes(comparison.unit, first.contingency, first.kept_items(), first.attributes)
    units = of_all_rows(comparison, cut.codes[: require_rows(comparison)], -1)
    component = of_all_rows(comparison, components_of_rows(comparison), -1)
    of_component = RowUnits.of(first.contingency, component, int(component.max()) + 1, units + 1)
    values_of = np.bincount(of_component.group_of_code)
    several = values_of[values_of > 0] > 1
    if several.any():
        torn = f"{np.count_nonzero(several)} of {several.size} components have items of several values"
        said.append(too_small(comparison.unit, torn))
    return units, next(iter(cut.values.values()))
