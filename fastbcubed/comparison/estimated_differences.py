"""Standard errors and replicates of all differences of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.comparison.cells_by_unit import CellsByUnit, pieces_of_runs
from fastbcubed.comparison.differences import Differences
from fastbcubed.comparison.paired import (
    Moves,
    RunScores,
    Squares,
    UnitSums,
    means_of,
    needed_by,
    same_where_exact,
    squares_of_cells,
    squares_of_sums,
)
from fastbcubed.comparison.resampling import content_of_values, keys_of_units, replicates
from fastbcubed.comparison.runs import Runs
from fastbcubed.comparison.units_of_runs import RunUnits, components_of_runs, true_clusters_of_runs
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.estimates import COMPONENT, TRUE_CLUSTER
from fastbcubed.results.slices.slicing import slice_codes
from fastbcubed.runtime.grouping import number
from fastbcubed.runtime.pool import Pool
from fastbcubed.uncertainty.standard_errors import standard_error


def estimated(comparison: Runs) -> Differences:
    """Work out the standard errors of the differences, and their replicates if these were asked for."""
    if comparison.why_no_errors() is not None:
        return Differences(None, {})
    metrics, beta = comparison.metrics_with_errors(), comparison[comparison.baseline].beta
    needed = needed_by(metrics, beta)
    by_cluster = comparison.unit in (COMPONENT, TRUE_CLUSTER)
    said: list[str] = []
    with Pool() as pool:
        means = [
            means_of(ev.contingency, needed, ev.metrics, ev.overall, pool) for ev in comparison.runs.values()
        ]
        add_up = _of_clusters if by_cluster else _of_column
        scores, sums, keys, squares = add_up(comparison, metrics, needed, means, said, pool)
    scores_of_runs = [[ev.overall[m.name] for m in metrics] for ev in comparison.runs.values()]
    errors = standard_error(squares.by_run, squares.units.n, scores_of_runs)
    by_score = {
        (name, metric.name): float(error)
        for name, own in zip(comparison.runs, errors, strict=True)
        for metric, error in zip(metrics, own, strict=True)
        if name != comparison.baseline
    }
    drawn = {}
    if keys is not None:
        n, seed, names = comparison.n_bootstrap, comparison.seed, list(comparison.runs)
        drawn = replicates(
            dict(zip(names, scores, strict=True)), sums, comparison.baseline, metrics, beta, keys, n, seed
        )
    return Differences(squares.units, by_score, drawn, tuple(said))


class _Found(NamedTuple):
    """What the units of all runs add up to."""

    scores: list[RunScores]
    sums: UnitSums  #: without units if they are not drawn
    keys: NDArray[np.int64] | None  #: what tells the units apart; None if they are not drawn
    squares: Squares


def _of_clusters(
    comparison: Runs,
    metrics: Sequence[Metric],
    needed: Sequence[Metric],
    means: Sequence[Mapping[str, float]],
    said: list[str],
    pool: Pool,
) -> _Found:
    """Add up the cells by the unit of their true cluster."""
    runs, numbers = list(comparison.runs.values()), comparison.true_numbers
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
    squares = squares_of_cells(tables, by_unit, units.of_true, needed, scores, moves, pool, kept=sums)
    return _Found(scores, sums, keys_of_units(runs, units, numbers) if drawn else None, squares)


def _of_column(
    comparison: Runs,
    metrics: Sequence[Metric],
    needed: Sequence[Metric],
    means: Sequence[Mapping[str, float]],
    said: list[str],
    pool: Pool,
) -> _Found:
    """Add up the rows by the column that is the unit."""
    codes, values = _units_of_column(comparison, said)
    scores = [RunScores.of_rows(needed, mean) for mean in means]
    tables = [ev.contingency for ev in comparison.runs.values()]
    found = [
        UnitSums.of_rows(table, needed, own, _padded(codes, table), len(values))
        for table, own in zip(tables, scores, strict=True)
    ]
    sums = UnitSums(*(np.concatenate(each) for each in zip(*found, strict=True)))
    moves = Moves.of(scores, metrics, comparison[comparison.baseline].beta, _place(comparison))
    keys = content_of_values(values) if comparison.n_bootstrap else None
    return _Found(scores, sums, keys, squares_of_sums(sums, moves, pool))


def _place(comparison: Runs) -> int:
    """Return which of the runs is the baseline."""
    return list(comparison.runs).index(comparison.baseline)


def _true_clusters(comparison: Runs, tables: Sequence[Contingency], said: list[str]) -> RunUnits:
    """Return the true clusters as units; note if they are too small."""
    if not tables[0].outside:
        shared = "true clusters that share a predicted cluster share its precision"
        said.append(_TOO_SMALL.format(comparison.unit, shared))
    return true_clusters_of_runs(tables, comparison.true_numbers)


_TOO_SMALL = 'standard errors by {} are too small: {}. Take unit="component"'


def _units_of_column(comparison: Runs, said: list[str]) -> tuple[NDArray[np.int64], pa.Array]:
    """Return the units of the rows by a column, and their values; note if that tears components apart."""
    n_rows, first = comparison.require_rows(), comparison[comparison.baseline]
    cut = slice_codes(comparison.unit, first.contingency, first.kept_items(), first.attributes)
    codes = cut.codes[:n_rows]
    component = comparison.components_of_rows()
    with Pool() as pool:
        pairs = number(component * cut.n_slices + codes, pool)
        several = np.bincount(number(component[pairs.firsts], pool).codes) > 1
    if several.any():
        torn = f"{np.count_nonzero(several)} of {several.size} components have items of several values"
        said.append(_TOO_SMALL.format(comparison.unit, torn))
    return codes, next(iter(cut.values.values()))


def _padded(codes: NDArray[np.int64], table: Contingency) -> NDArray[np.int64]:
    """Return codes of the first rows with -1 for the others."""
    assert table.rows is not None
    found = np.full(table.rows.cell.size, -1)
    found[: codes.size] = codes
    return found
