"""Reading of saved results: whole and checked, or, where they are large, part by part."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from fastbcubed._version import __version__
from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.cells.cell_parts import NoCells
from fastbcubed.cells.contingency import CELL, SIDES, Contingency, OneSided, ScoredRows
from fastbcubed.cells.validate import fault_of_margins, fault_of_rows, faults_of_cells
from fastbcubed.errors import FastBCubedError, FileFormatError, arg
from fastbcubed.inputs import arrow_functions as pc
from fastbcubed.inputs.arrays import table_of
from fastbcubed.inputs.columns import as_column
from fastbcubed.inputs.pair import CODES
from fastbcubed.metrics.pointwise import LOSSES
from fastbcubed.metrics.score import Metric
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.items import Items, Kept, TableItems
from fastbcubed.results.origin import Origin
from fastbcubed.results.outcomes import SCHEMA
from fastbcubed.results.save import as_path
from fastbcubed.results.saved import (
    ITEMS,
    MANIFEST,
    PAGE,
    SLICES,
    SavedTable,
    StoredRows,
    StoredTable,
    TableLabels,
    from_table,
    is_in_file,
    is_large,
    may_be_read_in_parts,
    metrics_by_name,
    read_manifest,
)
from fastbcubed.results.slices import name_columns
from fastbcubed.results.standard_errors import Errors, Units
from fastbcubed.results.summary import Bounds, Figures, Scores
from fastbcubed.results.table import FIGURES, LazyCells, LazyTables, Table
from fastbcubed.runtime.output_files import NO_BYTES, Stamp, open_regular, stamp_of
from fastbcubed.runtime.threads import Pool

#: How often another process may replace the files while they are opened.
ATTEMPTS = 8
#: How far a score may leave its range, since it was rounded.
ROUNDING = 1e-6

#: Makes a result of an evaluation and of the manifest that it was saved with.
Make = Callable[[Evaluation, Mapping[str, Any]], Any]


def read_saved(directory: Any, make: Make, *, check: bool = True) -> Any:
    """Return the result of `make` for a saved evaluation and its manifest; see `fastbcubed.load`.

    The files are checked first: that they are those of one evaluation, as they were saved, and that what
    they say is possible. So a directory that was damaged, or made up, is refused. Without `check`, those of a large
    result are checked when they are read.
    """
    path = as_path(directory)
    _require_directory(path)
    with ExitStack() as stack:
        head, files = _open_all(path, stack, whole=check)
        if not check and (found := _unread(path, head, files)) is not None:
            stack.pop_all()
            return make(found, head)
        tables = {name: SavedTable.read(file, path / name) for name, file in files.items()}
    with _told(path):
        return make(_assembled(head, tables), head)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Raise FileFormatError with the result's path for errors in its files."""
    try:
        yield
    except (FastBCubedError, pa.ArrowException, KeyError, OverflowError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path} holds no saved evaluation: {error}") from error


def _unread(path: Path, head: Mapping[str, Any], files: Mapping[str, BinaryIO]) -> Evaluation | None:
    """Return a result whose files are read on demand; None for one that is small enough to load whole."""
    stamps = {name: Stamp(**each) for name, each in head["files"].items()}
    if not may_be_read_in_parts(head) or not is_large(stamps):
        return None

    def whole() -> Evaluation:
        ev, now = read_saved(path, lambda *found: found)
        if now["crc32"] != head["crc32"]:
            raise FileFormatError(f"{path} holds another result than when it was opened; load it again")
        assert isinstance(ev, Evaluation)
        return ev

    with _told(path):
        how = _how(head)
        stored = {name: StoredTable(file) for name, file in files.items()}
        _require_columns(
            head, {name: SavedTable(file.no_rows(), path / name) for name, file in stored.items()}
        )
        tables = LazyTables(
            {side: stored[f"{side}_clusters.parquet"] for side in SIDES},
            how["weighting"] == "outer", head["recall_alone"], whole, lambda: _page(path, head),
        )  # fmt: skip
        items = stored.get(ITEMS)
        many = any(map(is_in_file, head["slices"].values())) and SLICES in files
        slices = SavedTable.read(files[SLICES], path / SLICES) if many else None
        known = {
            **how,
            "n_codes": {side: tables.clusters[side].num_rows for side in SIDES},
            "n_items": head["summary"]["true"]["items"],
            "total_weight": sum(row["weight"] for row in head["outcomes"] if row["side"] == "true"),
        }
        rows = None if items is None else StoredRows(items, weighted=how["weighted"])
        cells = LazyCells(stored["cells.parquet"], whole, rows, known)
        kept = None if items is None else TableItems(items, head["left_out"])
        return _of_manifest(head, cells, kept, tables.labels, slices, tables)


def _page(path: Path, head: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the content of the page that this version saved with a result; None if it is missing or was changed."""
    for place in (path / PAGE, path / head["staged_in"] / PAGE):
        with suppress(FileFormatError, OSError), open_regular(place) as file:
            text = file.read()
            if PAGE in head["files"] and NO_BYTES.and_then(text) == Stamp(**head["files"][PAGE]):
                content: dict[str, Any] = json.loads(text)
                return content if content["fastbcubed"] == __version__ else None
    return None


def _require_columns(head: Mapping[str, Any], tables: Mapping[str, SavedTable]) -> None:
    """Raise if a file lacks a column that is read before all are checked, or has it of another type."""
    cells = tables["cells.parquet"]
    for name in ("true", "pred", "n"):
        cells.integers(name)
    for name in ("weight", "fp", "fn"):
        cells.floats(name)
    metrics = metrics_by_name(head["metrics"], head["definition"]["beta"], head["definition"])
    scores = [metric.name for metric in metrics if not metric.overall_only]
    for side in SIDES:
        clusters = tables[f"{side}_clusters.parquet"]
        clusters.require(("cluster", *FIGURES))
        as_column(clusters.table["cluster"], f"{side}_cluster")
        for name in ("n_items", "n_parts"):
            clusters.integers(name)
        for name in ("weight", *LOSSES, *scores):
            clusters.floats(name)
        for name, kind in (("exact", pa.bool_()), ("outcome", pa.string())):
            clusters.require_type(name, kind)
    if ITEMS in tables:
        _checked_items(tables[ITEMS])
        _rows(tables[ITEMS], weighted=head["definition"]["weighted"])


def _require_directory(path: Path) -> None:
    """Raise unless this is a directory, with advice on loading."""
    if not os.path.exists(path) or path.is_dir():
        return
    if path.name == MANIFEST:
        raise FileFormatError(f"{path} is one file of a saved evaluation; load its directory, {path.parent}")
    raise FileFormatError(
        f"{path} is not a directory. A saved evaluation is a directory that `save` or {arg('out', ...)} wrote; what "
        "--json and `to_json` write cannot be loaded"
    )


def _open_all(
    directory: Path, stack: ExitStack, *, whole: bool
) -> tuple[dict[str, Any], dict[str, BinaryIO]]:
    """Return the manifest and its files, whose content is compared if `whole`."""
    for _ in range(ATTEMPTS):
        head = read_manifest(directory)
        try:
            files = {
                name: stack.enter_context(_open(directory, name, head, whole=whole))
                for name in head["files"]
                if name != PAGE
            }
        except FileFormatError:
            if read_manifest(directory)["staged_in"] == head["staged_in"]:
                raise
        else:
            return head, files
    raise FileFormatError(
        f"the files of {directory} are replaced again and again; load them when that is over"
    )


def _open(directory: Path, name: str, head: Mapping[str, Any], *, whole: bool) -> BinaryIO:
    """Open a file of a saved evaluation: in its place, or where it waits for whoever writes next to move it there."""
    stamp = Stamp(**{field: head["files"][name][field] for field in Stamp._fields})
    faults = []
    for path in (directory / name, directory / head["staged_in"] / name):
        try:
            file = open_regular(path)
        except FileFormatError as error:
            faults.append(str(error))
            continue
        size = os.fstat(file.fileno()).st_size
        if size == stamp.bytes and (not whole or stamp_of(file) == stamp):
            return file
        file.close()
        faults.append(f"{path} is not the file that {MANIFEST} was saved with, which had {stamp.bytes} bytes")
    raise FileFormatError(
        f"{faults[0]}. It is damaged, or the files are of several evaluations: evaluate and save anew"
    )


def _assembled(head: Mapping[str, Any], tables: Mapping[str, SavedTable]) -> Evaluation:
    """Assemble an evaluation from the saved parts."""
    stored = tables.get(ITEMS)
    clusters = {side: tables[f"{side}_clusters.parquet"] for side in SIDES if head["keep"] != "scores"}
    for side, table in clusters.items():
        table.require(["cluster"])
        as_column(table.table["cluster"], f"{side}_cluster")
    return _of_manifest(
        head,
        _contingency(head, tables, clusters),
        None if stored is None else TableItems(_checked_items(stored), head["left_out"]),
        TableLabels({side: table.table["cluster"] for side, table in clusters.items()}) if clusters else None,
        tables.get(SLICES),
    )


def _of_manifest(
    head: Mapping[str, Any],
    contingency: Any,
    items: Items | None,
    labels: Any,
    slices: SavedTable | None,
    lazy: LazyTables | None = None,
) -> Evaluation:
    """Return an evaluation with the scores of the manifest, and slices in a separate file."""
    definition = head["definition"]
    policies, bounds = _policies(definition), head["coverage"]["bounds"]
    figures = Figures(
        metrics_by_name(head["metrics"], definition["beta"], definition),
        definition["beta"],
        Scores(_with_nan(head["overall"])),
        Coverage.of(head["coverage"]),
        policies,
        head["not_computed"],
        _sliced(head["slices"], slices),
        errors=_errors(head),
        warnings=head["warnings"],
    )
    for metric in figures.metrics:
        _require_in_range(metric, figures.overall[metric.name])
    if lazy is not None or not isinstance(contingency, Contingency):  # else they are computed from the cells
        figures.summary = head["summary"]
        figures.bounds = None if bounds is None else Bounds(**_with_nan(bounds))
        if head["outcomes"] is not None:
            figures.outcomes = pa.Table.from_pylist(head["outcomes"], SCHEMA)
    names = {side: head[side] for side in ("truth", "prediction")}
    notes = [w for w in head["warnings"] if w["code"] in CODES]
    origin = Origin(names, notes=notes, saved=head["manifest"])
    return Evaluation(figures, Kept(contingency, policies, items, labels, lazy=lazy), origin)


def _policies(definition: Mapping[str, Any]) -> Policies:
    noise = definition["noise"]
    return Policies.of(
        definition["unmatched"], definition["nulls"], definition["duplicates"],
        tuple(noise) if isinstance(noise, list) else noise,
    )  # fmt: skip


def _how(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return how weights and items of the prediction alone count."""
    definition = head["definition"]
    outside = _policies(definition).prediction == "outside"
    return {
        "weighted": definition["weighted"],
        "weighting": definition["weighting"],
        "outside": outside,
    }


def _sliced(slices: Mapping[str, Any], stored: SavedTable | None) -> dict[str, Table]:
    """Return the slices by slicing, from the manifest or, if only there, from their file."""
    values = {f"{by}.{name}" for by, each in slices.items() if is_in_file(each) for name in each["columns"]}
    if values and stored is None:
        raise FileFormatError(f"{MANIFEST} names no file of its slices")
    return {
        by: _slices_in_file(by, each, stored, values)
        if stored is not None and is_in_file(each)
        else _slices(each)
        for by, each in slices.items()
    }


def _slices_in_file(by: str, told: Mapping[str, Any], stored: SavedTable, other: set[str]) -> Table:
    """Return the slices of one kind, whose values are in columns that are called like it."""
    names = {f"{by}.{name}": name for name in told["columns"]}
    stored.require(["by", "slice", "n_items", "weight", *names])
    own = stored.where(pc.equal(stored.table["by"], by).fill_null(False))
    if len(own) != told["n_slices"]:
        stored.refuse(f"it has {len(own)} slices by {by}, and {MANIFEST} says {told['n_slices']}")
    columns: dict[str, Any] = {name: own.table[column] for column, name in names.items()}
    columns["n_items"] = own.integers("n_items")
    scores = [name for name in own.table.column_names if name not in {"by", "slice", "n_items"} | other]
    return Table(table_of(columns | {name: own.floats(name) for name in scores}))


def _slices(rows: list[dict[str, Any]]) -> Table:
    """Return slices as a table; the naming columns have the type that JSON has kept."""
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    names = name_columns(columns)
    for name, values in columns.items():
        if name in names:
            if any(type(value) is float for value in values):  # NaN and infinities are texts in JSON
                values = [float(value) if isinstance(value, str) else value for value in values]
            large = any(type(value) is int and value >= 1 << 63 for value in values)
            columns[name] = pa.array(values, pa.uint64() if large else None)
        elif name != "n_items":
            columns[name] = np.array([np.nan if value is None else value for value in values], np.float64)
    return Table(pa.table(columns))


def _errors(head: Mapping[str, Any]) -> Errors | None:
    """Return the standard errors, if they were saved."""
    if "errors" not in head:
        return None
    units = Units(**{name: head["units"][name] for name in Units._fields})
    if units.effective > units.n * (1 + ROUNDING) or units.largest_share * units.n < 1 - ROUNDING:
        raise FileFormatError(
            f"no items come in units such as {units}, which are saved with the standard errors"
        )
    return Errors(_with_nan(head["errors"]), units)


def _require_in_range(metric: Metric, value: float) -> None:
    """Raise if a score has a value that it cannot have."""
    if value < metric.low - ROUNDING or value > metric.high + ROUNDING:
        raise FileFormatError(f"{metric.name} is {value}, and goes from {metric.low} to {metric.high}")


def _with_nan(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: np.nan if value is None else value for name, value in values.items()}


def _checked_items(stored: SavedTable) -> pa.Table:
    """Return the items, whose columns are checked."""
    stored.require(("item", "true_cluster", "pred_cluster"))
    for name in stored.table.column_names:
        side, dot, _ = name.partition(".")
        if name not in ("item", "true_cluster", "pred_cluster", "weight", "cell") and not (
            dot and side in ("truth", "prediction", "attributes")
        ):
            stored.refuse(f"it has a column {name!r}")
    as_column(stored.table["item"], "item")
    for name in ("true_cluster", "pred_cluster"):
        column = stored.table[name]
        as_column(column if not pa.types.is_large_list(column.type) else pc.list_flatten(column), name)
    return stored.table


def _contingency(
    head: Mapping[str, Any],
    tables: Mapping[str, SavedTable],
    clusters: Mapping[str, SavedTable],
) -> Any:
    """Return the cells, or a placeholder where they were not kept."""
    definition, how = head["definition"], _how(head)
    n_items = head["summary"]["true"]["items"]
    if not clusters:
        return NoCells(n_items, **how, overlapping=definition["overlapping"])
    cells, stored = tables["cells.parquet"], tables.get(ITEMS)
    make = _cover if definition["overlapping"] else _partition
    rows = None if stored is None else _rows(stored, weighted=how["weighted"])
    table = make(cells, clusters, rows, how, head["pair_weight"])
    if table.n_items != n_items:
        cells.refuse(f"its cells have {table.n_items} items, and {MANIFEST} says {n_items}")
    if stored is not None and rows is not None:
        weight = rows.weight if table.weighted else None
        weights = np.ascontiguousarray(table.weight)
        n = np.ascontiguousarray(table.n)
        stored.refuse(fault_of_rows(rows.cell, weight, n, weights, outer=table.weighting == "outer"))
    return table


def _rows(stored: SavedTable, *, weighted: bool) -> ScoredRows:
    cell = stored.integers("cell", nulls=-1)
    return ScoredRows(lambda: cell, stored.floats("weight") if weighted else None, cell.size)


def _cover(
    cells: SavedTable, clusters: Mapping[str, SavedTable], rows: ScoredRows | None, how: Any, _: float | None
) -> Contingency:
    cover = from_table(cells, (len(clusters["true"]), len(clusters["pred"])), rows=rows, **how)
    for side in SIDES:
        members = cover.members(side)
        columns = {"n_items": clusters[side].integers("n_items")}
        n = np.ascontiguousarray(cover.n)[members.rows()]
        clusters[side].refuse(fault_of_margins(members.codes, n, columns))
    return cover


def _partition(
    cells: SavedTable,
    clusters: Mapping[str, SavedTable],
    rows: ScoredRows | None,
    how: Any,
    pair_weight: float | None,
) -> Contingency:
    records = np.empty(len(cells), CELL)
    for name in ("true", "n"):
        records[name] = cells.integers(name)
    for name in ("weight", "fp", "fn"):
        records[name] = cells.floats(name)
    pred = cells.integers("pred")
    one_sided = {}
    for side, table in clusters.items():
        if "n_items_only_here" in table:
            n = table.integers("n_items_only_here")
            one_sided[side] = OneSided(np.arange(n.size), n, table.floats("weight_only_here"))
    sizes = {side: len(clusters[side]) for side in SIDES}
    with Pool() as pool:
        cells.refuse(next(faults_of_cells(records, pred, sizes, one_sided, **how, pool=pool), None))
    for side, codes in (("true", records["true"]), ("pred", pred)):
        columns = {name: clusters[side].integers(name) for name in ("n_items", "n_parts")}
        clusters[side].refuse(fault_of_margins(codes, records["n"], columns))
    return Contingency(
        records,
        lambda: pred,
        (sizes["true"], sizes["pred"]),
        **how,
        one_sided=one_sided,
        rows=rows,
        pair_weight=pair_weight,
    )
