"""Standard errors and replicates of all differences of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.comparison.differences import Differences
from fastbcubed.comparison.paired import (
    Shares,
    UnitSums,
    count_units,
    errors_of_differences,
    means_of,
    needed_by,
    same_where_exact,
)
from fastbcubed.comparison.resampling import content_of, keys_of_units, replicates
from fastbcubed.comparison.runs import Runs
from fastbcubed.comparison.units_of_runs import RunUnits, true_clusters_of_runs
from fastbcubed.results.estimates import COMPONENT, TRUE_CLUSTER
from fastbcubed.results.slices.slicing import slice_codes
from fastbcubed.runtime import buffers
from fastbcubed.runtime.grouping import number
from fastbcubed.runtime.pool import Pool


def estimated(comparison: Runs) -> Differences:
    """Work out the standard errors of the differences, and their replicates if these were asked for."""
    runs = comparison.runs
    if comparison.why_no_errors() is not None:
        return Differences(None, {})
    metrics, beta = comparison.metrics_with_errors(), comparison[comparison.baseline].beta
    tables = [ev.contingency for ev in runs.values()]
    needed = needed_by(metrics, beta)
    said: list[str] = []
    with Pool() as pool:
        means = [means_of(ev.contingency, needed, ev.metrics, ev.overall, pool) for ev in runs.values()]
        if comparison.unit in (COMPONENT, TRUE_CLUSTER):
            units = _units_of_clusters(comparison, tables, said)
            if comparison.n_bootstrap or not same_where_exact(metrics):
                units = units.every()
            shares = _shares(comparison, tables, units, pool)
            space = buffers.empty((len(tables), units.n, len(needed)), np.float64)  # used memory is as large
            sums = pool.map(
                lambda table, *own: UnitSums.of_cells(table, needed, *own),
                tables,
                means,
                units.of_true,
                shares,
                space,
                stage="standard errors",
            )
            keys = keys_of_units(list(runs.values()), units) if comparison.n_bootstrap else None
        else:
            codes, values = _units_of_column(comparison, said)
            sums = [
                UnitSums.of_rows(table, needed, mean, _padded(codes, table), len(values))
                for table, mean in zip(tables, means, strict=True)
            ]
            keys = content_of(values, "unit") if comparison.n_bootstrap else None
        counted, by_run = count_units([own.shares for own in sums]), dict(zip(runs, sums, strict=True))
        before = by_run[comparison.baseline]
        errors = {
            (name, score): error
            for name in comparison.experiments
            for score, error in errors_of_differences(
                metrics, beta, before, by_run[name], counted.n, pool
            ).items()
        }
    drawn = {}
    if keys is not None:
        n, seed = comparison.n_bootstrap, comparison.seed
        drawn = replicates(by_run, comparison.baseline, metrics, beta, keys, n, seed)
    return Differences(counted, errors, drawn, tuple(said))


def _shares(comparison: Runs, tables: Sequence[Contingency], units: RunUnits, pool: Pool) -> list[Shares]:
    """Return the shares of the units in each run; they are worked out once where all runs have the same rows."""
    own = list(zip(tables, units.of_true, strict=True))
    if comparison.true_numbers is None:
        own = own[:1]
    found = pool.map(lambda table, codes: Shares.of_cells(table, codes, units.n), *zip(*own, strict=True))
    return found if len(found) == len(tables) else found * len(tables)


def _units_of_clusters(comparison: Runs, tables: Sequence[Contingency], said: list[str]) -> RunUnits:
    """Return the units of the true clusters; note if they are too small."""
    if comparison.unit == COMPONENT:
        return comparison.components
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
