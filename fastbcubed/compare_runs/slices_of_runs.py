"""Slices of all runs: their scores, and how these differ from the baseline's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.compare_runs.differences import needed_by, slopes_by
from fastbcubed.compare_runs.movers import rank_of
from fastbcubed.compare_runs.runs import Runs, is_heavy
from fastbcubed.errors import NotKeptError, arg
from fastbcubed.inputs import arrow_functions as pc
from fastbcubed.inputs.arrays import from_numpy, from_texts, to_numpy
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.pointwise import LOSSES
from fastbcubed.metrics.score import Metric, without_rounding
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.evaluation_scores import COMPONENT
from fastbcubed.results.slices import SliceKey, name_columns, slice_codes, subset_mask
from fastbcubed.results.standard_errors import RowUnits, standard_error
from fastbcubed.results.table import Table, require_limit
from fastbcubed.types import Codes, Floats

#: Columns that slices are put in order by: the place of the slice, and that of the run.
AT, RUN_AT = "\0slice", "\0run"


class PairedRows:
    """Standard errors of differences in groups of rows, which are the same in all runs."""

    def __init__(self, baseline: Evaluation, groups: Codes, n_groups: int, units: Codes) -> None:
        """Take over the group of each row, negative for none, and its unit."""
        table = baseline.contingency
        assert table.rows is not None
        self._found = RowUnits.of(table, groups, n_groups, units)
        weight = table.rows.weight[self._found.rows]
        whole = self._found.by_group(self._found.add(weight, np.ones(weight.size)))
        self._whole, of_row = whole, whole[self._found.group]
        self._share = np.divide(weight, of_row, out=np.full(weight.size, np.nan), where=of_row > 0)
        of_unit = self._found.add(self._share, np.ones(weight.size))
        self.n_units = np.bincount(self._found.group_of_code[of_unit > 0], minlength=n_groups)

    def influences(self, ev: Evaluation, metrics: Sequence[Metric]) -> dict[str, Floats]:
        """Return how much the scores of a run move with each unit of each group."""
        found, table = self._found, ev.contingency
        deviations, means = {}, {}
        for metric in needed_by(metrics, ev.beta):
            scores = aggregation.item_scores(table, metric)[found.rows]
            means[metric.name] = found.by_group(found.add(self._share, scores))
            deviations[metric.name] = found.add(self._share, scores - means[metric.name][found.group])
        moved = {}
        for metric in metrics:
            parts = slopes_by(metric, means, ev.beta)
            terms = [
                np.broadcast_to(slope, self._whole.shape)[found.group_of_code] * deviations[name]
                for name, slope in parts
            ]
            moved[metric.name] = np.sum(terms, axis=0)
        return moved

    def errors(self, a: Mapping[str, Floats], b: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the standard errors of the differences of two runs, by score and group."""
        return {
            name: np.asarray(standard_error(self._found.by_group((b[name] - moved) ** 2), self.n_units))
            for name, moved in a.items()
        }


def slices_of_runs(
    comparison: Runs, by: SliceKey, deltas: bool, order_by: str | None, limit: int | None
) -> Table:
    """Return the slices of all runs as `Comparison.slices` does."""
    runs, baseline = comparison.runs, comparison.baseline
    tables = {name: _beside_runs(_slices(ev, by)) for name, ev in runs.items()}
    names = name_columns(tables[baseline].column_names)
    order = _places(tables, names)
    errors = _errors(comparison, by) if deltas and len(runs) > 1 else None
    long = []
    for k, (name, table) in enumerate(tables.items()):
        columns = {"run": from_texts([name] * table.num_rows), **{c: table[c] for c in table.column_names}}
        if deltas:
            columns |= _differences(table, tables[baseline], names, runs[name], name == baseline)
            if errors is not None:
                n_units, of_run = errors
                columns["n_units"] = n_units[name]
                for score, own in of_run.get(name, {}).items():
                    columns[f"{score}_delta_se"] = without_rounding(own, to_numpy(table[score]))
        columns |= {AT: from_numpy(order[name]), RUN_AT: from_numpy(np.full(table.num_rows, k))}
        long.append(pa.table(columns))
    whole = pa.concat_tables(long, promote_options="default")
    if order_by is None:
        whole = whole.sort_by([(AT, "ascending"), (RUN_AT, "ascending")])
    else:
        whole = _by_change(whole.filter(pc.not_equal(whole["run"], baseline)), order_by)
    require_limit(limit)
    whole = whole.slice(0, None if limit is None else min(limit, whole.num_rows))
    shown = [name for name in whole.column_names if name not in (AT, RUN_AT)]
    return Table(whole.select(_in_order(shown, names)))


def _slices(ev: Evaluation, by: SliceKey) -> pa.Table:
    """Return the slices of a run; raise for slices that had to be requested earlier, as items are not kept."""
    try:
        return ev.slices(by).to_arrow()
    except NotKeptError as error:
        raise NotKeptError(
            "the disk engine keeps no items of several runs, by which to slice; name the attributes beforehand, as in "
            f"compare(..., {arg('slices', ['country'])}), or pass {arg('engine', 'memory')}"
        ) from error


def _beside_runs(table: pa.Table) -> pa.Table:
    """Return slices with another name for an attribute that is called as the column of runs."""
    return table.rename_columns(
        [f"attribute.{name}" if name == "run" else name for name in table.column_names]
    )


def slice_deltas(ev: Evaluation, baseline: Evaluation, by: str) -> dict[str, pa.Array]:
    """Return the differences of a run from the baseline in slices that were requested when they were compared."""
    table, before = (_beside_runs(each.sliced[by].to_arrow()) for each in (ev, baseline))
    return _differences(table, before, name_columns(before.column_names), ev, is_baseline=False)


def _by_change(table: pa.Table, order_by: str) -> pa.Table:
    """Return slices by how much their losses differ from the baseline's."""
    changes = [-to_numpy(table[f"{loss}_delta"].cast(pa.float64()).fill_null(0.0)) for loss in LOSSES]
    keys = {"rank": from_numpy(rank_of(order_by, changes)), AT: table[AT], RUN_AT: table[RUN_AT]}
    return table.take(pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys]))


def _keys(table: pa.Table, names: Sequence[str]) -> list[tuple[object, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def _places(tables: Mapping[str, pa.Table], names: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """Return for each slice of each run its place among the slices of all, those of the first run first."""
    places: dict[tuple[object, ...], int] = {}
    found = {}
    for run, table in tables.items():
        keys = _keys(table, names)
        found[run] = np.array([places.setdefault(key, len(places)) for key in keys], np.int64)
    return found


def _differences(
    table: pa.Table, before: pa.Table, names: Sequence[str], ev: Evaluation, is_baseline: bool
) -> dict[str, pa.Array]:
    """Return how scores and losses of slices differ from those of the same slices of the baseline."""
    at = {key: row for row, key in enumerate(_keys(before, names))}
    rows = pa.array([None if is_baseline else at.get(key) for key in _keys(table, names)], pa.int64())
    found = {f"{name}_delta": pc.subtract(table[name], before[name].take(rows)) for name in LOSSES}
    for name in (m.name for m in ev.metrics if m.name in table.column_names):
        delta = pc.subtract(table[name], before[name].take(rows))
        values = without_rounding(to_numpy(delta), to_numpy(table[name]))
        found[f"{name}_delta"] = pa.array(values, mask=delta.is_null().to_numpy())
    return found


def _errors(
    comparison: Runs, by: SliceKey
) -> tuple[dict[str, pa.Array], dict[str, dict[str, Floats]]] | None:
    """Return the units of each slice by run, and standard errors by run and score; None if they are not known.

    All runs have to have the same items in each slice. The units are those of `Comparison.deltas`; where they are not
    the same for all experiments, the baseline has none.
    """
    if not comparison.shares_rows or comparison.why_no_errors() is not None:
        return None
    groups = _groups(comparison, by)
    if groups is None:
        return None
    units = _padded_units(comparison)
    if comparison.unit == COMPONENT and len(comparison) > 2 and _is_one_heavy(comparison, units):
        n_units, errors = {}, {}
        for name in comparison.experiments:
            pair = comparison.beside_baseline(name)
            n_of_slices, own = _errors_by(pair, groups, _padded_units(pair))
            n_units[name], errors[name] = from_numpy(n_of_slices), own[name]
        n_units[comparison.baseline] = pa.nulls(len(n_units[name]), pa.int64())
        return n_units, errors
    n_of_slices, errors = _errors_by(comparison, groups, units)
    return dict.fromkeys(comparison, from_numpy(n_of_slices)), errors


def _padded_units(comparison: Runs) -> Codes:
    """Return the unit of each row of the baseline; 0 for rows that not all runs score."""
    rows, n = comparison[comparison.baseline].contingency.rows, comparison.require_rows()
    assert rows is not None
    units = np.zeros(rows.cell.size, np.int64)
    units[:n] = comparison.units_of_rows()
    return units


def _is_one_heavy(comparison: Runs, units: Codes) -> bool:
    """Return whether a unit has so much of the weight that errors are by the units of pairs of runs."""
    rows, n = comparison[comparison.baseline].contingency.rows, comparison.require_rows()
    assert rows is not None
    weight = rows.weight[:n]
    return is_heavy(np.bincount(units[:n], weight).max() / weight.sum())


def _errors_by(
    comparison: Runs, groups: Sequence[tuple[Codes, int]], units: Codes
) -> tuple[NDArray[np.int64], dict[str, dict[str, Floats]]]:
    """Return how many units each slice has, and the standard errors of the experiments by score."""
    first, metrics = comparison[comparison.baseline], comparison.metrics_with_errors()
    parts = []
    for codes, n_groups in groups:
        paired = PairedRows(first, codes, n_groups, units)
        before = paired.influences(first, metrics)
        errors = {
            name: paired.errors(before, paired.influences(comparison[name], metrics))
            for name in comparison.experiments
        }
        parts.append((paired.n_units, errors))
    return np.concatenate([n_units for n_units, _ in parts]), {
        name: {m.name: np.concatenate([errors[name][m.name] for _, errors in parts]) for m in metrics}
        for name in comparison.experiments
    }


def _groups(comparison: Runs, by: SliceKey) -> list[tuple[Codes, int]] | None:
    """Return the slice of each row and the number of slices, of subsets by name one by one; None if runs differ."""
    first, n = comparison[comparison.baseline], comparison.require_rows()
    if isinstance(by, Mapping):
        masks = [
            subset_mask(which, first.kept_items(), first.contingency, repr(name))
            for name, which in by.items()
        ]
        return [(np.where(mask, 0, -1), 1) for mask in masks]
    cut = [slice_codes(by, ev.contingency, ev.kept_items(), ev.attributes) for ev in comparison.runs.values()]
    own = slice_codes(by, first.contingency, first.kept_items(), first.attributes)
    same = (each.n_slices == own.n_slices and np.array_equal(each.codes[:n], own.codes[:n]) for each in cut)
    return [(own.codes, own.n_slices)] if all(same) else None


def _in_order(columns: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns: each score followed by its difference and the error of that, then the losses."""
    behind = ("_delta", "_delta_se")
    found = ["run", *names, "n_items", "weight", *(["n_units"] if "n_units" in columns else [])]
    scores = [name for name in columns if name not in (*found, *LOSSES) and not name.endswith(behind)]
    for name in (*scores, *LOSSES):
        found += [name, *(f"{name}{end}" for end in behind if f"{name}{end}" in columns)]
    return found
