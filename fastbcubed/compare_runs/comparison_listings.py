"""Listings of a comparison: a cluster in all runs, items and clusters that differ most, and slices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.compare_runs.true_clusters import CHANGES, DELTA, LOSS_SCORES, rank_of
from fastbcubed.compare_runs.units import (
    ComparisonData,
    beside_baseline,
    is_heavy,
    metrics_with_errors,
    of_all_rows,
    require_cells,
    require_rows,
    units_of_rows,
    why_no_errors,
)
from fastbcubed.errors import NotKeptError, OptionError, arg, quoted
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import from_numpy, from_texts, to_numpy
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.bcubed import LOSSES
from fastbcubed.metrics.metric import without_rounding
from fastbcubed.render.document import Document, Grid, Prose, in_blocks
from fastbcubed.render.html import Shown
from fastbcubed.render.number_formats import count, counted, label
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.influences import is_mean
from fastbcubed.results.members import chosen_columns, deal, rows_of_cluster, with_attributes
from fastbcubed.results.slice_sums import directory_of, in_file_if_many, side_by_side
from fastbcubed.results.slices import SliceKey, name_columns, slice_codes, slice_name, subset_mask
from fastbcubed.results.standard_errors import COMPONENT, RowUnits
from fastbcubed.results.table import Table, first_rows, order_of, require_limit, sortable
from fastbcubed.runtime.arguments import is_one_of, limit_of
from fastbcubed.runtime.memory_budget import memory_limit
from fastbcubed.runtime.object_attributes import documented
from fastbcubed.types import Codes, Floats


class ClusterInRuns(Shown, dict[str, Any]):
    """The result of `Comparison.cluster`: a dict with a readable text form.

    The keys are side, cluster, n_items, columns, and "runs", which gives for each run the number of clusters that
    contain the items.

    Attributes
    ----------
    table : Table
        All items, with the columns item, true_cluster, ``<run>.pred_cluster`` (the predicted cluster of the item in the
        run), the attributes, and part. Items that are in the same clusters in all runs form a part; the largest part
        comes first.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> truth = {"a": 1, "b": 1, "c": 1, "d": 2}
    >>> cmp = fb.compare(truth, {"old": {"a": 5, "b": 5, "c": 7, "d": 8}, "new": {"a": 5, "b": 5, "c": 5, "d": 8}})
    >>> cmp.cluster("true", 1)
    True cluster 1: 3 items; in old in 2 clusters, in new in 1
    <BLANKLINE>
    old  new  items  item
    5    5    2      a
                     b
    7    5    1      c
    """

    def __init__(self, figures: Mapping[str, Any], table: Table, members: int) -> None:
        super().__init__(figures)
        self.table = table
        self._members = members

    def __reduce__(self) -> tuple[Any, ...]:
        return ClusterInRuns, (dict(self), self.table, self._members)

    __dir__ = documented

    def _document(self) -> Document:
        return in_blocks("cluster", [Prose([self._heading()], "title"), self.grid(), Prose(self.notes())])

    def _heading(self) -> str:
        """Return the cluster's label, and the number of clusters its items have in each run."""
        where = [f"in {label(name)} in {count(n)}" for name, n in self["runs"].items()]
        first = next(iter(self["runs"].values()))
        where[0] += " cluster" if first == 1 else " clusters"
        kind = "True cluster" if self["side"] == "true" else f"Cluster of {label(self['side'])}"
        return f"{kind} {label(self['cluster'])}: {counted(self['n_items'], 'item')}; {', '.join(where)}"

    def grid(self) -> Grid:
        """Return the table of members by part; each part shows one member before any shows another."""
        sizes = self._sizes()
        clusters = [f"{name}.pred_cluster" for name in self["runs"]]
        clusters = [*(["true_cluster"] if self["side"] != "true" else []), *clusters]
        named = ["item", *self["columns"]]
        header = [
            name.removesuffix(".pred_cluster").replace("true_cluster", "true cluster") for name in clusters
        ]
        rows = []
        first = 0
        for size, shown in zip(sizes.tolist(), deal(sizes, self._members).tolist(), strict=True):
            for k, row in enumerate(self.table.slice(first, shown).to_pylist()):
                own = [label(row[name]) if k == 0 else "" for name in clusters]
                rows.append([*own, count(size) if k == 0 else "", *(label(row[name]) for name in named)])
            first += size
        header = [*map(label, header), "items", *map(label, named)]
        return Grid(header, rows, len(header))

    def notes(self) -> list[str]:
        """Return a note on the numbers of parts and members that are not shown."""
        sizes = self._sizes()
        shown = deal(sizes, self._members)
        left, unseen = int((sizes - shown).sum()), int(np.count_nonzero(shown == 0))
        parts = f", {counted(unseen, 'more part')}" if unseen else ""
        return [f"… {counted(left, 'more item')}{parts}"] if left > 0 else []

    def _sizes(self) -> NDArray[np.int64]:
        return np.bincount(self.table["part"].to_numpy())


def open_in_runs(
    comparison: ComparisonData, side: str, which: Any, columns: str | Iterable[str] | None, members: int
) -> ClusterInRuns:
    """Return a true cluster, or one of a run, and where each run has its items."""
    n_rows, runs, baseline = require_rows(comparison), comparison.runs, comparison.baseline
    members = limit_of(members, "members", "")
    if is_one_of(side, ("true", "truth")):
        rows = rows_of_cluster(runs[baseline].kept, "true", which)
        side = "true"
    elif is_one_of(side, runs):
        rows = rows_of_cluster(runs[side].kept, "pred", which)
    else:
        raise OptionError(
            f'side must be "true", or the run that the cluster belongs to ({", ".join(map(repr, runs))}), '
            f"not {quoted(side)}"
        )
    first = runs[baseline]
    names = [] if columns is None else chosen_columns(first.kept, columns)
    rows = rows[rows < n_rows]
    table = {"item": first.kept_items().ids(rows), "true_cluster": first.kept_items().labels("true", rows)}
    codes = {}
    for name, ev in runs.items():
        table[f"{name}.pred_cluster"] = ev.kept_items().labels("pred", rows)
        cells = ev.contingency.rows
        assert cells is not None
        codes[name] = ev.contingency.pred[cells.cell[rows]]
    part = _parts(list(codes.values()), rows.size)
    n_before = len(table)
    shown = with_attributes(pa.table({**table, "part": part}), first.kept, names, rows, n_before)
    order = np.argsort(part, kind="stable")
    label = first.kept_items().labels("true", rows[:1])[0].as_py() if side == "true" and rows.size else which
    figures = {
        "side": side,
        "cluster": label,
        "n_items": int(rows.size),
        "columns": shown.column_names[n_before:-1],
        "runs": {name: int(np.unique(own).size) for name, own in codes.items()},
    }
    return ClusterInRuns(figures, Table(shown.take(from_numpy(order))), members)


def _parts(codes: Sequence[NDArray[np.integer]], n: int) -> NDArray[np.int64]:
    """Return the part of each row: rows with the same codes, the largest part first, then the one that begins first."""
    group = np.zeros(n, np.int64)
    for own in codes:
        _, group = np.unique(np.stack([group, own]), axis=1, return_inverse=True)
        group = group.reshape(-1)
    if not n:
        return group
    _, first, sizes = np.unique(group, return_index=True, return_counts=True)
    rank = np.empty(sizes.size, np.int64)
    rank[np.lexsort((first, -sizes))] = np.arange(sizes.size)
    return rank[group]


def items_of_runs(
    runs: Mapping[str, Evaluation],
    pair: tuple[str, str],
    n_rows: int,
    columns: str | Iterable[str],
    order_by: str | None,
    limit: int | None,
) -> pa.Table:
    """Return the items that all runs score, with their contributions to the difference between two runs."""
    first = runs[pair[0]]
    names = chosen_columns(first.kept, columns)
    rows = first.contingency.rows
    assert rows is not None
    weight = rows.weight[:n_rows]
    changes = {}
    for loss, metric in LOSSES.items():
        before, after = (aggregation.item_scores(runs[name].contingency, metric)[:n_rows] for name in pair)
        changes[CHANGES[loss]] = (before - after) * weight / first.contingency.total_weight
    total = np.sum(list(changes.values()), axis=0)
    at = _first(order_by, list(changes.values()), weight, limit)
    table = {"item": first.kept_items().ids(at), "true_cluster": first.kept_items().labels("true", at)}
    table |= {"weight": weight[at], DELTA: total[at], **{name: each[at] for name, each in changes.items()}}
    table |= {f"{name}.pred_cluster": ev.kept_items().labels("pred", at) for name, ev in runs.items()}
    for name, ev in runs.items():
        for metric in ev.metrics:
            if metric.item_name and metric.name not in LOSS_SCORES:
                table[f"{name}.{metric.item_name}"] = aggregation.item_scores(ev.contingency, metric)[at]
    shown = with_attributes(pa.table(table), first.kept, names, at, 2)
    return _sorted(shown, order_by, limit, "item")


def _first(
    order_by: str | None, changes: Sequence[Floats], weight: Floats, limit: int | None
) -> NDArray[np.int64]:
    """Return rows that include the first ones in this order, and all rows tied with them."""
    limit = require_limit(limit)
    n = weight.size if limit is None else min(limit, weight.size)
    if order_by is None:
        return np.arange(n)
    return np.sort(first_rows(rank_of(order_by, changes), -weight, n))


def _sorted(table: pa.Table, order_by: str | None, limit: int | None, name: str) -> pa.Table:
    """Return the first rows in this order; ties are broken by weight, then by id."""
    if order_by is None:
        return table
    changes = [to_numpy(table[change]) for change in CHANGES.values()]
    keys = {"rank": from_numpy(rank_of(order_by, changes))}
    keys |= {"weight": from_numpy(-to_numpy(table["weight"]))} | sortable(table[name])
    order = pc.sort_indices(pa.table(keys), sort_keys=[(key, "ascending") for key in keys])
    return table.take(order[: limit if limit is not None else len(order)])


#: Temporary columns by which slices are sorted: the position of the slice, and that of the run.
AT, RUN_AT = "\0slice", "\0run"


def slices_of_runs(
    comparison: ComparisonData, by: SliceKey, deltas: bool, order_by: str | None, limit: int | None
) -> Table:
    """Return the slices of all runs, as `Comparison.slices` does."""
    limit, name = require_limit(limit), slice_name(by)
    saved = (comparison._saved_slices or {}).get(name) if deltas else None
    whole = beside_baseline_by(comparison, by, deltas=deltas) if saved is None else saved
    if order_by is not None:
        return Table(_first_by_change(whole, comparison.baseline, order_by, limit))
    return whole if limit is None else whole.slice(0, min(limit, whole.num_rows))


def beside_baseline_by(comparison: ComparisonData, by: SliceKey, *, deltas: bool) -> Table:
    """Return the slices of all runs, slice by slice, with their differences from the baseline if `deltas`.

    Large numbers of slices, which are in files, are merged into a file in ascending order.
    """
    runs, name = comparison.runs, slice_name(by)
    large = comparison._large_slices.get(name) if deltas and not isinstance(by, Mapping) else None
    if large is not None:
        return large
    tables = {run: _slices(comparison, ev, by) for run, ev in runs.items()}
    if not any(table.is_large for table in tables.values()):
        errors = _errors(comparison, by) if deltas and len(runs) > 1 else None
        whole = {run: _beside_runs(table.to_arrow()) for run, table in tables.items()}
        names = name_columns(whole[comparison.baseline].column_names)
        return Table(_slice_by_slice(comparison, whole, _places(whole, names), deltas, errors))
    renamed = {run: table._changed(_beside_runs) for run, table in tables.items()}
    limits = [ev.kept.memory_limit for ev in runs.values() if ev.kept.memory_limit is not None]
    limit = min(limits, default=memory_limit(None))
    names = name_columns(renamed[comparison.baseline].column_names)
    parts = side_by_side(renamed, names, limit)
    found = in_file_if_many(
        (_slice_by_slice(comparison, *part, deltas, None) for part in parts),
        f"rows of slices by {name!r}", directory_of(tables.values()), limit,
    )  # fmt: skip
    if deltas:
        comparison._large_slices[name] = found
    return found


def _slice_by_slice(
    comparison: ComparisonData,
    tables: Mapping[str, pa.Table],
    order: Mapping[str, NDArray[np.int64]],
    deltas: bool,
    errors: tuple[dict[str, pa.Array], dict[str, dict[str, Floats]]] | None,
) -> pa.Table:
    """Return the slices of all runs in this order, with differences and, if given, their standard errors."""
    runs, baseline = comparison.runs, comparison.baseline
    names = name_columns(tables[baseline].column_names)
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
    whole = whole.sort_by([(AT, "ascending"), (RUN_AT, "ascending")])
    shown = [name for name in whole.column_names if name not in (AT, RUN_AT)]
    return whole.select(_in_order(shown, names))


def _first_by_change(whole: Table, baseline: str, order_by: str, limit: int | None) -> pa.Table:
    """Return the first slices of the experiments, ordered by their differences from the baseline."""
    found: pa.Table | None = None
    for batch in whole._batches() if whole.is_large and limit is not None else [whole.to_arrow()]:
        others = batch.filter(pc.not_equal(batch["run"], baseline))
        found = others if found is None else pa.concat_tables([found, others])
        found = _by_change(found, order_by)[: found.num_rows if limit is None else limit]
    assert found is not None
    return found


def _slices(comparison: ComparisonData, ev: Evaluation, by: SliceKey) -> Table:
    """Return the slices of a run; raise NotKeptError if they were not requested and items are not kept."""
    known = ev.sliced.get(slice_name(by))
    if known is not None and known.is_large:
        return known
    try:
        return ev.slices(by)
    except NotKeptError as error:
        require_cells(comparison)
        raise NotKeptError(
            "the disk engine does not keep the items of several runs, so they cannot be sliced later; "
            f"name the attributes beforehand, as in compare(..., {arg('slices', ['country'])}), or pass "
            f"{arg('engine', 'memory')}"
        ) from error


def _beside_runs(table: pa.Table) -> pa.Table:
    """Return slices, with attributes renamed that have the name of a column that a comparison adds."""
    names, figures = name_columns(table.column_names), table.column_names
    added = {"run", "n_units"} | {f"{name}_{end}" for name in figures for end in ("delta", "delta_se")}
    own = [f"attribute.{name}" if name in added else name for name in names]
    return table.rename_columns(own + figures[len(names) :])


def deltas_by_slice(comparison: ComparisonData, run: str, by: str, score: str) -> Iterator[Floats]:
    """Yield blocks of a score's differences from the baseline in the requested slices; NaN if unknown."""
    ev, baseline, name = comparison[run], comparison[comparison.baseline], f"{score}_delta"
    if ev.sliced[by].is_large or baseline.sliced[by].is_large:
        for part in slices_of_runs(comparison, comparison._slicings[by], True, None, None)._batches():
            if name in part.column_names:
                yield to_numpy(
                    part.filter(pc.equal(part["run"], run))[name].fill_null(np.nan).combine_chunks()
                )
        return
    table, before = (_beside_runs(each.sliced[by].to_arrow()) for each in (ev, baseline))
    found = _differences(table, before, name_columns(before.column_names), ev, is_baseline=False)
    if name in found:
        yield to_numpy(found[name].fill_null(np.nan))


def _by_change(table: pa.Table, order_by: str) -> pa.Table:
    """Return slices ordered by how much their losses differ from the baseline's."""
    changes = [-to_numpy(table[f"{loss}_delta"].cast(pa.float64()).fill_null(0.0)) for loss in LOSSES]
    return table.take(order_of([rank_of(order_by, changes)]))


def _keys(table: pa.Table, names: Sequence[str]) -> list[tuple[object, ...]]:
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def _name_the_same(table: pa.Table, other: pa.Table, names: Sequence[str]) -> bool:
    """Return whether the rows of two tables are the same slices, in the same order."""
    return bool(table.select(names).equals(other.select(names)))


def _places(tables: Mapping[str, pa.Table], names: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """Return for each run the position of each slice among the slices of all runs, those of the first run first."""
    first, *others = tables.values()
    if all(_name_the_same(first, other, names) for other in others):
        return {run: np.arange(table.num_rows) for run, table in tables.items()}
    places: dict[tuple[object, ...], int] = {}
    found = {}
    for run, table in tables.items():
        keys = _keys(table, names)
        found[run] = np.array([places.setdefault(key, len(places)) for key in keys], np.int64)
    return found


def _differences(
    table: pa.Table, before: pa.Table, names: Sequence[str], ev: Evaluation, is_baseline: bool
) -> dict[str, pa.Array]:
    """Return columns of the differences in scores and losses from the same slices of the baseline."""
    if is_baseline:
        rows = pa.nulls(table.num_rows, pa.int64())
    elif _name_the_same(table, before, names):
        rows = from_numpy(np.arange(table.num_rows))
    else:
        at = {key: row for row, key in enumerate(_keys(before, names))}
        rows = pa.array([at.get(key) for key in _keys(table, names)], pa.int64())
    found = {f"{name}_delta": pc.subtract(table[name], before[name].take(rows)) for name in LOSSES}
    for name in (m.name for m in ev.metrics if m.name in table.column_names):
        delta = pc.subtract(table[name], before[name].take(rows))
        values = without_rounding(to_numpy(delta), to_numpy(table[name]))
        found[f"{name}_delta"] = pa.array(values, mask=delta.is_null().to_numpy())
    return found


def _errors(
    comparison: ComparisonData, by: SliceKey
) -> tuple[dict[str, pa.Array], dict[str, dict[str, Floats]]] | None:
    """Return the number of units of each slice by run, and standard errors by run and score; None if unknown.

    They are known if all runs have the same items in each slice. The units are those of `Comparison.deltas`; if these
    differ between experiments, the numbers of the baseline are null.
    """
    if why_no_errors(comparison) is not None or not comparison._shared:
        return None
    groups = _groups(comparison, by)
    if groups is None:
        return None
    units = of_all_rows(comparison, units_of_rows(comparison), 0)
    if comparison.unit == COMPONENT and len(comparison) > 2 and _is_one_heavy(comparison, units):
        n_units, errors = {}, {}
        for name in comparison.experiments:
            pair = beside_baseline(comparison, name)
            n_of_slices, own = _errors_by(pair, groups, of_all_rows(pair, units_of_rows(pair), 0))
            n_units[name], errors[name] = from_numpy(n_of_slices), own[name]
        n_units[comparison.baseline] = pa.nulls(len(n_units[name]), pa.int64())
        return n_units, errors
    n_of_slices, errors = _errors_by(comparison, groups, units)
    return dict.fromkeys(comparison, from_numpy(n_of_slices)), errors


def _is_one_heavy(comparison: ComparisonData, units: Codes) -> bool:
    """Return whether a unit is so heavy that errors use the units of the baseline and one experiment."""
    rows, n = comparison[comparison.baseline].contingency.rows, require_rows(comparison)
    assert rows is not None
    weight = rows.weight[:n]
    return is_heavy(np.bincount(units[:n], weight).max() / weight.sum())


def _errors_by(
    comparison: ComparisonData, groups: Sequence[tuple[Codes, int]], units: Codes
) -> tuple[NDArray[np.int64], dict[str, dict[str, Floats]]]:
    """Return the number of units of each slice, and the standard errors by experiment and score."""
    first = comparison[comparison.baseline]
    known = metrics_with_errors(comparison)
    others = comparison.unit == COMPONENT
    metrics = [m for m in known if is_mean(m) or (others and not m.overall_only)]
    parts = []
    for codes, n_groups in groups:
        rows = RowUnits.of(first.contingency, codes, n_groups, units)
        before = rows.influences(first.contingency, metrics, first.beta)
        errors = {}
        for name in comparison.experiments:
            after = rows.influences(comparison[name].contingency, metrics, first.beta)
            errors[name] = {m.name: rows.error(after[m.name].less(before[m.name])) for m in metrics}
        parts.append((rows.n_units, errors))
    return np.concatenate([n_units for n_units, _ in parts]), {
        name: {m.name: np.concatenate([errors[name][m.name] for _, errors in parts]) for m in metrics}
        for name in comparison.experiments
    }


def _groups(comparison: ComparisonData, by: SliceKey) -> list[tuple[Codes, int]] | None:
    """Return the slice of each row and the number of slices, for each subset separately; None if runs differ."""
    first, n = comparison[comparison.baseline], require_rows(comparison)
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
    """Return the columns in order: each score followed by its difference and standard error, then the losses."""
    behind = ("_delta", "_delta_se")
    found = ["run", *names, "n_items", "weight", *(["n_units"] if "n_units" in columns else [])]
    scores = [name for name in columns if name not in (*found, *LOSSES) and not name.endswith(behind)]
    for name in (*scores, *LOSSES):
        found += [name, *(f"{name}{end}" for end in behind if f"{name}{end}" in columns)]
    return found
