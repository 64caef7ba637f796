"""Influences of units (such as components) on means over items, and sums of their powers, for one or several runs.

For two runs, a unit's contributions to both scores are subtracted before they are squared: a unit that both runs treat
alike adds nothing to the error of the difference. True clusters that all runs find exactly are units of their own,
which are only counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.contingency import Contingency
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.bcubed import COMPLEMENTS
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS
from fastbcubed.metrics.sums import CellSums
from fastbcubed.metrics.sums_by_unit import is_mean_of_clusters
from fastbcubed.results.intervals import Interval, interval
from fastbcubed.results.unit_cells import Alone, CellsByUnit, CellUnits, Pieces, Units, units_of_shares
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Codes, Floats

#: Number of cells scored at a time, so that arrays stay in the CPU cache.
CELLS_AT_ONCE = 1 << 14
#: Number of ranges of units summed by one task.
RANGES_AT_ONCE = 8


def is_mean(metric: Metric) -> bool:
    """Return whether a score is a mean over items without true negatives, or a function of such means."""
    if metric.saved:
        return metric.saved == "mean"
    parts = metric.needs or (metric,)
    own = metric.combine is None or metric.slopes is not None
    of_matrix = not any(part.uses_tn or (part.options or {}).get("similarity") == "rand" for part in parts)
    return own and of_matrix and not any(part.overall_only for part in parts)


def needed_by(metrics: Iterable[Metric], beta: float) -> list[Metric]:
    """Return the item scores that these scores depend on; a score and its complement need only one."""
    found = [m for m in aggregation.with_needs(list(metrics), beta) if m.formula is not None]
    roots = (METRICS[COMPLEMENTS[m.name]] if m.name in COMPLEMENTS else m for m in found)
    return list({m.name: m for m in roots}.values())


def score_of_means(metric: Metric, means: Mapping[str, Any], beta: float) -> Any:
    """Return a score, given the means that it depends on (see `needed_by`)."""
    if metric.name in COMPLEMENTS:
        return 1.0 - means[COMPLEMENTS[metric.name]]
    return means[metric.name] if metric.combine is None else metric.combine(means, beta)


def slopes(metric: Metric, means: Mapping[str, Any], beta: float) -> list[tuple[str, Any]]:
    """Return the means that a score depends on, with the derivative of the score by each."""
    if metric.name in COMPLEMENTS:
        return [(COMPLEMENTS[metric.name], -1.0)]
    if metric.slopes is None:
        return [(metric.name, 1.0)]
    names = (need.name for need in metric.needs)
    return list(zip(names, metric.slopes(means, beta), strict=True))


def share_of_one_mean(parts: Iterable[tuple[str, Any]], means: Mapping[str, Any]) -> Any:
    """Return the share of a score that depends on the most important of its means, given what `slopes` returns.

    A wrong merge lowers only precision, and a wrong split only recall, so a single unit changes F by about half of what
    it changes precision or recall.
    """
    terms = [np.abs(slope * means[name]) for name, slope in parts]
    total = np.sum(terms, axis=0)
    known = np.isfinite(total) & (total > 0)
    return np.divide(np.max(terms, axis=0), total, out=np.ones(np.shape(total)), where=known)[()]


def _deviations(scores: Floats, origins: Floats) -> Floats:
    """Return the differences from the origins, or 0 if not finite, so that only the score concerned has no error."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(scores - origins, nan=0.0, posinf=0.0, neginf=0.0)


@dataclass(frozen=True, eq=False)
class RunScores:
    """The means that the scores of runs depend on, and the origins from which deviations are measured.

    The origin of a score is its value for exactly found true clusters, which therefore contribute nothing.
    """

    needed: Sequence[Metric]  #: the item scores that the other scores depend on
    means: Mapping[str, Floats]  #: by needed score; shape (n_runs,)
    slopes: Sequence[Sequence[tuple[str, Any]]]  #: of each score: its means, with the derivative by each
    origins: Floats  #: shape (n_runs, n_needed)
    compiled: tuple[NDArray[np.int64], NDArray[np.int64]]  #: as `_compiled` returns them

    @classmethod
    def of_cells(
        cls,
        tables: Sequence[Contingency],
        means: Sequence[Mapping[str, float]],
        needed: Sequence[Metric],
        metrics: Sequence[Metric],
        beta: float,
    ) -> RunScores:
        """Take the origins from formulas, or from a cell of an exactly found cluster; otherwise use the means."""
        from fastbcubed.metrics import compiled

        by_score = {m.name: np.array([own[m.name] for own in means]) for m in needed}
        origins = by_run([*by_score.values()], len(tables))
        fast, formulas = _compiled(tables[0], needed)
        origins[:, fast] = compiled.origins(formulas)
        others = np.setdiff1d(np.arange(len(needed)), fast, assume_unique=True)
        for table, own in zip(tables, origins, strict=True) if others.size else ():
            if (exact := np.flatnonzero((table.fp == 0) & (table.fn == 0))[:1]).size:
                of_exact = ScoresOfCells(table, [needed[k] for k in others])(exact)[:, 0]
                own[others] = np.where(np.isfinite(of_exact), of_exact, own[others])
        return cls(needed, by_score, [slopes(m, by_score, beta) for m in metrics], origins, (fast, formulas))

    def coefficients(self) -> Floats:
        """Return the derivative of each score by each needed mean. Shape (n_runs, n_metrics, n_needed)."""
        places = {name: k for k, name in enumerate(self.means)}
        found = np.zeros((len(self.origins), len(self.slopes), len(places)))
        for m, parts in enumerate(self.slopes):
            for name, slope in parts:
                found[:, m, places[name]] += slope
        return found

    def sizes(self) -> Floats:
        """Return the largest mean behind each score. Shape (n_runs, n_metrics)."""
        largest = [np.max([np.abs(self.means[name]) for name, _ in parts], axis=0) for parts in self.slopes]
        return by_run(largest, len(self.origins))

    def shares_of_one_mean(self) -> Floats:
        """Return `share_of_one_mean` of each score. Shape (n_runs, n_metrics)."""
        shares = [share_of_one_mean(parts, self.means) for parts in self.slopes]
        return by_run(shares, len(self.origins))


def by_run(by_score: Sequence[Floats], n_runs: int) -> Floats:
    """Return the values of each run, given those of each score."""
    return np.reshape(by_score, (-1, n_runs)).T.copy()


class Moves(NamedTuple):
    """The derivatives of each run's scores by the sums of a unit, and the index of the baseline.

    For a single run, derivatives of 0 are appended in place of a baseline, so that its scores are used unchanged.
    """

    baseline: int
    of_scores: Floats  #: shape (n_runs, n_metrics, n_needed)
    of_shares: Floats  #: by the share of exactly found clusters; shape (n_runs, n_metrics)

    @classmethod
    def of(cls, runs: RunScores, baseline: int | None = None) -> Moves:
        """Compute the derivatives for all runs; without a baseline, there must be one run."""
        of_scores = runs.coefficients()
        away = _deviations(runs.origins, by_run([*runs.means.values()], len(runs.origins)))
        of_shares = np.array([slopes @ own for slopes, own in zip(of_scores, away, strict=True)])
        if baseline is None:
            of_scores, of_shares = (
                np.append(own, np.zeros_like(own), axis=0) for own in (of_scores, of_shares)
            )
        return cls(len(runs.origins) if baseline is None else baseline, of_scores, of_shares)

    def distinct(self) -> tuple[Moves, NDArray[np.intp]]:
        """Return the derivatives of scores that differ in more than sign, and which of these each score has."""
        slopes = np.concatenate((self.of_scores, self.of_shares[:, :, None]), axis=2).swapaxes(0, 1)
        rows = slopes.reshape(slopes.shape[0], math.prod(slopes.shape[1:]))
        first = np.take_along_axis(rows, (rows != 0).argmax(axis=1)[:, None], axis=1)
        _, kept, own = np.unique(
            np.copysign(1.0, first) * rows, axis=0, return_index=True, return_inverse=True
        )
        return self._replace(
            of_scores=self.of_scores[:, kept], of_shares=self.of_shares[:, kept]
        ), own.ravel()


class Powers(NamedTuple):
    """Sums of second and fourth powers of the units' influences on differences between each run and the baseline."""

    by_run: Floats  #: shape (2, n_runs, n_metrics)
    units: Units

    @classmethod
    def of(cls, parts: Sequence[tuple[Floats, Floats]], moves: Moves, total: float, alone: Alone) -> Powers:
        """Combine the powers from parts of the units, as kernels return them, and from exactly found true clusters."""
        powers = np.sum([own for own, _ in parts], axis=0)
        n, of_shares, largest = zip(*(counted for _, counted in parts), strict=True)
        every = math.fsum([*of_shares, alone.squares / total**2])
        if alone.n:
            slopes = (moves.of_shares - moves.of_shares[moves.baseline])[: powers.shape[1]]
            powers[0] += slopes**2 * (alone.squares / total**2)
            powers[1] += slopes**4 * (alone.fourths / total**4)
        units = units_of_shares(sum(n) + alone.n, every, max(*largest, alone.largest / total))
        return cls(powers, units)


def powers_of_cells(
    tables: Sequence[Contingency],
    by_unit: CellsByUnit,
    units: Sequence[CellUnits],
    runs: RunScores,
    moves: Moves,
    pool: Pool,
    n_shares: int = 1,
) -> Powers:
    """Sum the cells of all runs by unit, and return sums of powers of the units' influences on differences.

    `n_shares` is 1 if the units' shares of the weight are the same in all runs, otherwise the number of runs.
    """
    from fastbcubed.metrics import compiled

    needed, (fast, formulas) = runs.needed, runs.compiled
    others = np.setdiff1d(np.arange(len(needed)), fast, assume_unique=True)
    of_others = np.array(
        [
            _other_sums(own, [needed[k] for k in others], origins[others], pool)
            for own, origins in zip(units, runs.origins, strict=True)
        ]
    )
    totals = np.resize([table.total_weight for table in tables[:n_shares]], len(tables))
    of_runs = totals, tables[0].weighting == "outer"
    of_formulas = formulas, runs.origins[0, fast], fast
    apart, of_metric = moves.distinct()
    n_ranges, per_range = by_unit.bounds.shape[1] - 1, min(1 << by_unit.shift, by_unit.n_units)
    shape = len(tables), len(needed)

    def square(first: int, last: int) -> tuple[Floats, Floats]:
        powers, counted = np.zeros((2, len(tables), apart.of_shares.shape[1])), np.zeros(3)
        with pool.workspace("ranges of units", lambda: _room(n_shares, *shape, per_range)) as room:
            compiled.square_ranges(
                by_unit.cells, by_unit.bounds, (first, last, by_unit.shift), by_unit.n_units, of_runs,
                of_formulas, (of_others, others), tuple(apart), room, powers, counted,
            )  # fmt: skip
        return powers[:, :, of_metric], counted

    ranges = blocks(n_ranges, RANGES_AT_ONCE)
    found = pool.map(square, *zip(*ranges, strict=True), stage="standard errors")
    return Powers.of(found, moves, totals[0], by_unit.alone)


def _room(
    n_shares: int, n_runs: int, n_needed: int, n: int
) -> tuple[Floats, Floats, tuple[Floats, Floats, Floats]]:
    """Return buffers for shares and sums of `n` units, and for a run of units."""
    run = kernels.partition.RUN
    rows = np.empty((n_shares, run)), np.empty((n_runs, n_needed, run)), np.empty(run)
    return np.empty((n_shares, n)), np.empty((n_runs, n, n_needed)), rows


def _compiled(table: Contingency, needed: Sequence[Metric]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the positions of the scores that have compiled formulas, and the positions of these formulas."""
    found = {} if table.overlapping else aggregation.compiled_formulas(needed)
    fast = [(k, found[m.name]) for k, m in enumerate(needed) if m.name in found]
    columns, formulas = np.array(fast, np.int64).reshape(-1, 2).T.copy()
    return columns, formulas


def same_where_exact(metrics: Sequence[Metric]) -> bool:
    """Return whether scores are the same in all exactly found clusters, as for all scores in the registry."""
    return all(metric.name in METRICS for metric in metrics)


def means_of(
    table: Contingency,
    needed: Sequence[Metric],
    metrics: Sequence[Metric],
    overall: Mapping[str, float],
    pool: Pool,
) -> Mapping[str, float]:
    """Return the means of the needed scores, taken from `overall` for scores in `metrics`, else computed."""
    known = {m.name: overall[m.name] for m in needed if any(m is each for each in metrics)}
    others = [m for m in needed if m.name not in known]
    if not others:
        return known
    return known | aggregation.item_means([aggregation.item_sums(table, others, pool, CellSums(table, pool))])


class ScoresOfCells:
    """Computes the mean scores of the items in chosen cells."""

    def __init__(self, table: Contingency, metrics: Sequence[Metric]) -> None:
        self._table, self._names = table, [m.name for m in metrics]
        #: scores that depend on other cells are computed for all cells
        self._of_all = {
            m.name: aggregation.cell_scores(table, m)
            for m in metrics
            if table.overlapping or m.matrix is not None or aggregation.differs_within_cells(table, m)
        }
        self._metrics = [m for m in metrics if m.name not in self._of_all]

    def __call__(self, cells: NDArray[np.int64]) -> Floats:
        """Return the scores of these cells. Shape (n_scores, cells.size)."""
        if not cells.size:
            return np.empty((len(self._names), 0))
        table = self._table
        scores = {name: scores[cells] for name, scores in self._of_all.items()}
        if self._metrics:
            how: dict[str, Any] = {"weighting": table.weighting, "outside": table.outside}
            part = Contingency(table.cells.take(cells), lambda: cells, (0, 0), weighted=table.weighted, **how)
            found = aggregation.block_scores(part, self._metrics, 0, cells.size, None)
            scores |= {m.name: own for m, own in zip(self._metrics, found, strict=True)}
        return np.array([scores[name] for name in self._names])


def _other_sums(units: CellUnits, metrics: Sequence[Metric], origins: Floats, pool: Pool) -> Floats:
    """Return sums by unit of the scores that are not compiled, read block by block. Shape (n_units, n_metrics)."""
    sums: Floats = np.zeros((units.n_joined if metrics else 0, len(metrics)))
    if not metrics:
        return sums
    table, scores = units.table, ScoresOfCells(units.table, metrics)

    def deviate(start: int, stop: int) -> tuple[Codes, Floats, Floats]:
        codes = units.of_range(start, stop)
        joined = np.flatnonzero(codes >= 0)
        shares = table.weight[start + joined] / table.total_weight
        return codes[joined], shares, _deviations(scores(start + joined), origins[:, None])

    for codes, shares, deviations in pool.stream(deviate, blocks(table.n_cells, CELLS_AT_ONCE)):
        kernels.units.add_scores(codes, shares, deviations, sums)
    return sums


def powers_of_scores(
    units: CellUnits,
    metrics: Sequence[Metric],
    beta: float,
    known: tuple[Sequence[Metric], Mapping[str, float]],
    pool: Pool,
    pieces: Pieces | None = None,
) -> tuple[Powers, RunScores]:
    """Return sums of powers of the units' influences on one run's scores, and the means behind these scores.

    `known` has scores with their values over all items; `pieces`, if given, saves a pass over the cells.
    """
    needed, every = needed_by(metrics, beta), not same_where_exact(metrics)
    means = means_of(units.table, needed, *known, pool)
    run = RunScores.of_cells([units.table], [means], needed, metrics, beta)
    if every:
        units, pieces = units.named(), None
    pieces = pieces or units.pieces(every, pool)
    by_unit = CellsByUnit.of([pieces], [units.of_codes], units.n_joined, 1 + len(needed), pool)
    return powers_of_cells([units.table], by_unit, [units], run, Moves.of(run), pool), run


class Errors(NamedTuple):
    """Standard errors by name of the score, and the units that they are based on."""

    of: Mapping[str, float]
    df: Mapping[str, float]  #: degrees of freedom; the effective number of units if the error is 0
    not_drawn: Mapping[str, float]  #: error of units that were not drawn, as in `interval`
    units: Units
    apart: Mapping[str, Units] | None = None  #: units of scores that are computed from other cells

    def interval(self, metric: Metric, value: float, level: float) -> Interval:
        """Return the confidence interval of a score."""
        return interval(value, self.of[metric.name], level=level, **self.scale(metric))

    def scale(self, metric: Metric) -> dict[str, Any]:
        """Return the arguments of `interval` other than score, error and level."""
        is_plain = is_mean(metric) and metric.combine is None  # F of means is not a mean of values
        effective = self.units.effective if is_plain else math.nan
        own: dict[str, Any] = {"df": self.df[metric.name], "not_drawn": self.not_drawn[metric.name]}
        own |= {"low": metric.low, "high": metric.high, "effective": effective}
        return {**own, "always": is_mean_of_clusters(metric)}
