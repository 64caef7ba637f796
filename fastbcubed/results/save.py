"""Saving of results: the manifest, tables of clusters, cells and items, and the page of a large result."""

from __future__ import annotations

import json
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed._version import __version__
from fastbcubed.cells.contingency import SIDES, Contingency
from fastbcubed.errors import EvaluationWarning, FileFormatError, NotKeptError, OptionError, arg, quoted
from fastbcubed.inputs.arrays import from_numpy, table_of, to_numpy
from fastbcubed.inputs.locations import at_home
from fastbcubed.metrics.fast_sums import pair_counts
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.registry import METRICS
from fastbcubed.render.json import plain
from fastbcubed.render.number_formats import counted
from fastbcubed.results.cluster_outcomes import named
from fastbcubed.results.cluster_ranges import columns_by_code
from fastbcubed.results.clusters import known_by_cluster
from fastbcubed.results.evaluation_data import EvaluationData
from fastbcubed.results.figures import coverage_for_json
from fastbcubed.results.influences import is_mean
from fastbcubed.results.lazy_tables import MOST_GATHERS, ONLY_HERE, LazyTables, Passing
from fastbcubed.results.repairs import KINDS, list_repairs, require_repairable
from fastbcubed.results.saved_files import (
    ITEMS,
    MANIFEST,
    PAGE,
    in_one,
    is_large,
    item_table,
    labels_by_code,
    may_be_read_in_parts,
    sealed,
    tables_of,
)
from fastbcubed.results.slices import IN_JSON, name_columns, numbers_of_cut, rows_for_json
from fastbcubed.results.stored_tables import StoredTable
from fastbcubed.results.table import Table, require_limit
from fastbcubed.results.warnings import to_saved
from fastbcubed.runtime.arguments import is_one_of, local_path
from fastbcubed.runtime.memory_budget import BESIDE, release, require_within
from fastbcubed.runtime.output_files import NO_BYTES, Staging, Stamp, TableWriter, without_nulls
from fastbcubed.runtime.threads import Pool, ahead, blocks

#: Files that each level of `keep` adds to those of the previous level.
KEEP = {
    "scores": ("slices",),
    "cells": ("true_clusters", "pred_clusters", "cells"),
    "items": ("items",),
}
#: Number of slices written at a time.
SLICES_AT_ONCE = 1 << 14
#: Slicings with at most this many slices are in the manifest, too; others only in their file.
SLICES_IN_MANIFEST = 1 << 12
#: Bytes of a value of a slice as Python object and as JSON, measured (410 to 480) and rounded up.
VALUE_BYTES = 500


def save(
    ev: EvaluationData,
    directory: Any,
    keep: str = "items",
    repairs: int = 0,
    more: Callable[[], Mapping[str, Any]] = dict,
    sliced: Mapping[str, Table] | None = None,
) -> None:
    """Write an evaluation; see `Evaluation.save`.

    The entries that `more` returns are added to the manifest. `sliced`, if given, replaces the evaluation's slices.
    """
    require_repairable(repairs, keep="cells", overlapping=ev.contingency.overlapping)
    if not is_one_of(keep, KEEP):
        raise OptionError(f"{arg('keep')} must be one of {', '.join(map(repr, KEEP))}, not {quoted(keep)}")
    _require_kept(ev, keep)
    path = as_path(directory)
    sliced = ev._sliced if sliced is None else sliced
    best = list_repairs(ev.kept, ev.losses.of_all, list(KINDS), repairs).to_arrow() if repairs else None
    levels = list(KEEP)[: list(KEEP).index(keep) + 1]
    wanted = [name for level in levels for name in KEEP[level] if name != "slices" or sliced]
    wanted += ["repairs"] if best is not None else []
    known = keep != "scores"
    head: dict[str, Any] = {
        "keep": keep,
        "metrics": [m.name for m in ev.metrics],
        "pair_weight": _pair_weight(ev.contingency) if known else None,
        "recall_alone": _recall_alone(ev) if known else None,
        "left_out": ev.kept.left_out if keep == "items" else {},
        "change_if_alone": ev.figures.change_if_alone,
        "all_mentions": ev.figures.of_mentions is None,
    }
    if head["left_out"]:
        n = len(ev.kept.left_out)
        warnings.warn(
            f"{counted(n, 'column')} {'was' if n == 1 else 'were'} not written with the items: "
            f"{'; '.join(ev.kept.left_out.values())}",
            EvaluationWarning,
            stacklevel=3,
        )
    stored = _stored_items(ev) if keep == "items" else None
    extra = more()
    passing = _passing(ev, keep, extra)
    with _staging(stored, path) as staging:
        stamps: dict[str, Stamp] = {}
        if stored is not None:
            stamps["items"] = stored.put_at(staging, ITEMS)
        tables: dict[str, Callable[[], Iterable[pa.Table]]] = {
            "slices": lambda: _slices(sliced),
            "true_clusters": lambda: _clusters(ev, "true", passing),
            "pred_clusters": lambda: _clusters(ev, "pred", passing),
            "cells": lambda: map(_numbers_full, ev.contingency.batches()),
            "items": lambda: [item_table(ev.kept)],
            "repairs": lambda: [best],
        }
        tasks = {name: tables[name] for name in wanted if name not in stamps}
        stamps |= _write_all(tasks, staging)
        head |= {**_described(ev, sliced), **extra}
        files = {f"{name}.parquet": stamps[name] for name in wanted}
        obsolete = [f"{name}.parquet" for name in tables if name not in wanted]
        page = None
        if passing is not None and is_large(files):
            release()  # frees the memory used for writing
            page = _page(ev, passing, staging, keep)
        if page is None:
            obsolete.append(PAGE)
        else:
            staging.path(PAGE).write_bytes(page)
            files[PAGE] = NO_BYTES.and_then(page)
        _publish(staging, head, files, obsolete)


def save_tables(
    directory: Any,
    kind: str,
    content: Mapping[str, Any],
    tables: Mapping[str, Any],
    sliced: Mapping[str, Table] | None = None,
) -> None:
    """Write a result other than an evaluation: its kind and content as the manifest, and tables by name.

    NaN and infinities become null in the manifest; tables keep all values exactly. A table may be a function that
    yields its parts. The requested slices `sliced` become one table, which `apart` divides again.
    """
    if sliced is not None:
        columns = {by: table.column_names for by, table in sliced.items()}
        content = {**content, "saved": {**content.get("saved", {}), "sliced": columns}}
        tables = {**tables, "slices": lambda: in_one(sliced)} if sliced else tables
    made = {
        name: table if callable(table) else lambda table=table: [pa.table(table)]
        for name, table in tables.items()
    }
    if "warnings" in content:
        content = {**content, "warnings": to_saved(content["warnings"])}
    with Staging(as_path(directory), MANIFEST) as staging:
        files = {f"{name}.parquet": stamp for name, stamp in _write_all(made, staging).items()}
        _publish(staging, plain({"fastbcubed": __version__, **content, "kind": kind}), files, [PAGE])


def _publish(
    staging: Staging, head: Mapping[str, Any], files: Mapping[str, Stamp], obsolete: Iterable[str]
) -> None:
    """Move files to their final places, and remove obsolete ones and tables of an earlier result."""
    obsolete = {*obsolete, *tables_of(staging.directory)} - files.keys()
    staging.publish(sealed(head, files, staging.name), obsolete)


#: Number of clusters per side, and of repairs, on a default page.
LISTED = 20
#: Maximum numbers of cells and of items of the clusters on a page that is saved; larger pages are made on demand.
MOST_CELLS, MOST_MEMBERS = 1 << 21, 1 << 19
#: Bytes per cell read for a page.
CELL_BYTES = 256


def _page(ev: EvaluationData, passing: Passing, staging: Staging, keep: str) -> bytes | None:
    """Return the page of a result, whose tables have been written, as JSON; None if it needs too many of them."""
    from fastbcubed.render.document import as_data
    from fastbcubed.render.json import shortened
    from fastbcubed.results.evaluation_document import document
    from fastbcubed.results.page import Asked, whole

    clusters = {side: StoredTable(staging.path(f"{side}_clusters.parquet")) for side in SIDES}
    tables = LazyTables(clusters, passing.outer, _recall_alone(ev), passed=passing)
    if passing.too_many or not _takes_little(tables, passing, ev.kept.memory_limit):
        return None
    figures = replace(
        ev.figures, summary=ev._sides, outcomes=ev._outcomes, bounds=ev.bounds, warnings=ev.warnings,
        errors=ev.standard_errors.known,
    )  # fmt: skip
    items = ev.kept.items if keep == "items" else None
    kept = replace(ev.kept, lazy=tables, labels=tables.labels, items=items)
    as_loaded = type(ev)(figures, kept, ev.origin)
    data = shortened(as_data(whole(lambda: document(as_loaded, Asked()))))
    return json.dumps(data, ensure_ascii=False, allow_nan=False).encode()


def _takes_little(tables: LazyTables, passing: Passing, limit: int | None) -> bool:
    """Return whether the clusters and repairs on a default page involve few cells and items."""
    gathers = passing.gathers.codes
    most_cells = MOST_CELLS if limit is None else min(MOST_CELLS, limit // 4 // CELL_BYTES)
    if gathers.size > min(MOST_GATHERS, most_cells):
        return False
    n_cells = int(np.sum(to_numpy(tables.clusters["true"].take(["n_parts"], gathers)["n_parts"])))
    n_items = 0
    for side, top in passing.costliest.items():
        listed, file = top.in_order(), tables.clusters[side]
        n_cells += int(np.sum(to_numpy(listed["n_parts"])))
        n_items += int(np.sum(to_numpy(listed["n_items"])))
        if ONLY_HERE in file.column_names:
            n_items += int(np.sum(to_numpy(file.take([ONLY_HERE], to_numpy(listed["code"]))[ONLY_HERE])))
    return n_cells <= most_cells and n_items <= MOST_MEMBERS


def _require_kept(ev: EvaluationData, keep: str) -> None:
    """Raise NotKeptError if data to be saved were not kept, with advice on saving the rest."""
    kept = "scores" if not ev.contingency.has_cells else "items" if ev.has_items else "cells"
    levels = list(KEEP)
    if levels.index(keep) > levels.index(kept):
        raise NotKeptError(
            f"the {keep} were not kept; pass {arg('keep', kept)} to save what was, or evaluate with "
            f"{arg('keep', keep)}"
        )


def _stored_items(ev: EvaluationData) -> StoredTable | None:
    """Return the file in which the items are stored; None if they are in memory."""
    table = getattr(ev.kept_items(), "table", None)
    return table if isinstance(table, StoredTable) else None


def _staging(stored: StoredTable | None, directory: Path) -> Staging:
    """Return where to stage files: in the place where this evaluation's items were staged, or in a new one."""
    if stored is not None and stored.staging is not None and stored.staging.is_for(directory):
        return stored.staging
    return Staging(directory, MANIFEST)


def as_path(directory: Any) -> Path:
    """Return a path, or raise OptionError if this is not one."""
    return Path(at_home(local_path(directory, "the directory must be a path")))


def _write_all(tasks: Mapping[str, Callable[[], Iterable[pa.Table]]], staging: Staging) -> dict[str, Stamp]:
    """Write files from tables that are made one after the other, and return the stamp of each file.

    The table of true clusters is about half of the work, and is written in parallel to the others. Memory that earlier
    work left idle is returned to the system first, as it would count besides that of writing.
    """
    release()
    over = threading.Event()
    stamps: dict[str, Stamp] = {}

    def write(lane: Sequence[str]) -> None:
        for name in lane:
            file = staging.path(f"{name}.parquet")
            try:
                file.touch()
                with TableWriter(file) as writer:
                    for table in ahead(iter(tasks[name]())):
                        if over.is_set():
                            return
                        writer.add(table)
            except OSError as error:
                place = staging.directory / file.name
                raise FileFormatError(f"cannot write {place}: {error.strerror or error}") from error
            stamps[name] = writer.stamp or NO_BYTES

    first = [name for name in tasks if name == "true_clusters"]
    rest = [name for name in tasks if name != "true_clusters"]
    with Pool(2) as pool:
        try:
            pool.map(write, [first, rest])
        finally:
            over.set()
    return stamps


def described(ev: EvaluationData, slices: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of `Evaluation.to_json` with these slices."""
    found, outcomes = ev.standard_errors.at_hand(), ev._outcomes
    content = {
        "fastbcubed": __version__,
        "truth": ev.names.get("truth"),
        "prediction": ev.names.get("prediction"),
        "definition": ev.definition,
        "overall": dict(ev.overall),
        "coverage": coverage_for_json(ev.coverage, ev.bounds),
        "summary": ev.summary,
        "outcomes": None if outcomes is None else outcomes.to_pylist(),
        "slices": dict(slices),
        "warnings": ev.warnings,
        "not_computed": ev.not_computed,
        "reading": ev.reading,
        "manifest": ev.manifest,
    }
    if own := {m.name: _declaration(m) for m in ev.metrics if m.name not in METRICS}:
        content["own_scores"] = own
    if found is None:
        return content
    of_errors = {
        "errors": dict(found.of),
        "degrees_of_freedom": dict(found.df),
        "not_drawn": dict(found.not_drawn),
        "intervals": {name: ends._asdict() for name, ends in ev.standard_errors.intervals_at_hand().items()},
        "units": found.units._asdict(),
    }
    return content | of_errors


def content_of(ev: EvaluationData, limit: int | None) -> dict[str, Any]:
    """Return the content of `Evaluation.to_json`, with at most `limit` slices per slicing.

    Raise OptionError if the slices as dicts and text would exceed the memory limit.
    """
    limit = require_limit(limit)
    if limit is None:
        tables = ev._sliced.values()
        values = sum(each.num_rows * len(each.column_names) for each in tables)
        needed = values * VALUE_BYTES + 3 * sum(each.nbytes for each in tables) - BESIDE
        what = f"JSON of {counted(sum(each.num_rows for each in tables), 'slice')}"
        require_within(ev.kept.memory_limit, needed, what, "they", f", or pass {arg('limit', IN_JSON)}")
    sliced = {name: rows_for_json(table, limit) for name, table in ev._sliced.items()}
    return described(ev, sliced) | numbers_of_cut(ev._sliced, limit)


def scores_to_save(ev: EvaluationData) -> dict[str, Any]:
    """Return an evaluation that is part of another result, without clusters, in the form `load.evaluation_of` reads."""
    of_page = {"change_if_alone": ev.figures.change_if_alone}
    return {**content_of(ev, IN_JSON), "warnings": to_saved(ev.warnings), **of_page}


def _declaration(metric: Metric) -> dict[str, Any]:
    """Return a user-defined score without its function, and whether it is a mean over items."""
    fields = ("family", "low", "high", "best", "summary", "definition", "source")
    return {name: getattr(metric, name) for name in fields} | {"mean": is_mean(metric)}


def _described(ev: EvaluationData, sliced: Mapping[str, Table]) -> dict[str, Any]:
    """Return the evaluation's content as JSON types; slicings with many slices are represented by a reference."""
    slices = {
        by: rows_for_json(table)
        if table.num_rows <= SLICES_IN_MANIFEST
        else {"n_slices": table.num_rows, "columns": name_columns(table.column_names)}
        for by, table in sliced.items()
    }
    return dict(plain(described(ev, slices) | {"warnings": to_saved(ev.warnings)}))


def _slices(sliced: Mapping[str, Table]) -> Iterator[pa.Table]:
    """Yield the requested slices in parts: slicing, slice as text, scores and, for large slicings, values by column."""
    many = {by: table.num_rows > SLICES_IN_MANIFEST for by, table in sliced.items()}
    none = [_slices_by(by, table.schema.empty_table(), many[by]) for by, table in sliced.items()]
    blank = pa.concat_tables(none, promote_options="default")
    for by, listing in sliced.items():
        for table in listing._batches():
            for start, stop in blocks(table.num_rows, SLICES_AT_ONCE):
                some = _slices_by(by, table.slice(start, stop - start), many[by])
                yield pa.concat_tables([blank, some], promote_options="default")


def _slices_by(by: str, some: pa.Table, many: bool) -> pa.Table:
    names = name_columns(some.column_names)
    texts = map(_slice_text, zip(*(some[name].to_pylist() for name in names), strict=True))
    found: dict[str, Any] = {"by": pa.array([by] * some.num_rows, pa.string())}
    found["slice"] = pa.array(texts, pa.string())
    found |= {name: some[name] for name in some.column_names[len(names) :]}
    if many:
        found |= {f"{by}.{name}": some[name] for name in names}
    return pa.table(found)


def _slice_text(values: tuple[Any, ...]) -> str | None:
    """Return a slice as text: its value, None for null, or a JSON list if attributes are crossed."""
    if len(values) > 1:
        return json.dumps(values, default=str, ensure_ascii=False)
    return None if values[0] is None else str(values[0])


def _passing(ev: EvaluationData, keep: str, extra: Mapping[str, Any]) -> Passing | None:
    """Return a collector of totals while clusters are written; None for results that are always loaded whole."""
    if not may_be_read_in_parts({"keep": keep, "definition": ev.definition, "outcomes": (), **extra}):
        return None
    limit = ev.kept.memory_limit
    room = None if limit is None else limit // 8
    lost = ev.losses.of_all("pred"), ev.losses.of_all("true")
    return Passing(lost, LISTED, outer=ev.contingency.weighting == "outer", room=room)


def _clusters(ev: EvaluationData, side: str, passing: Passing | None) -> Iterable[pa.Table]:
    """Return the clusters of a side in the order of their codes, so that the row number is the code.

    Clusters without scored items have null for their label and for whether they are exact.
    """
    tables = _clusters_by_code(ev, side)
    return tables if passing is None else passing.watched(side, tables)


def _clusters_by_code(ev: EvaluationData, side: str) -> Iterator[pa.Table]:
    table = ev.contingency
    metrics = known_by_cluster(table, ev.metrics, ev.beta)
    ranges: Iterable[tuple[int, dict[str, NDArray[Any]]]]
    if ev.kept.ranges is None:
        ranges = [(0, columns_by_code(table, side, metrics, ev.beta))]
    else:
        ranges = ev.kept.ranges.to_be_named(side, metrics, ev.beta)
    only = table.only(side)
    with ev.kept.all_labels(side) as labels_of:
        for first, columns in ranges:
            there = columns["n_items"] > 0
            found: dict[str, Any] = {"cluster": labels_by_code(labels_of, first, there)}
            found |= named(columns, side, ~there) | {"exact": from_numpy(columns["exact"], ~there)}
            if only is not None:
                here = slice(first, first + there.size)
                found |= {ONLY_HERE: only[0][here], "weight_only_here": only[1][here]}
            yield _numbers_full(found)


def _numbers_full(columns: Mapping[str, Any]) -> pa.Table:
    """Return a table in which NumPy columns are declared to have no nulls."""
    return without_nulls(
        table_of(columns), [name for name, each in columns.items() if isinstance(each, np.ndarray)]
    )


def _pair_weight(table: Contingency) -> float | None:
    """Return the pair weight, from which scores of pairs can be computed without the items' weights."""
    known = not table.weighted or table.weighting == "outer" or table.rows is None
    if known or table.outside or table.overlapping or table.pair_weight is not None:
        return table.pair_weight
    with Pool() as pool:
        return float(pair_counts(table, pool).tp)


def _recall_alone(ev: EvaluationData) -> float | None:
    """Return the recall of singletons if it needs the items' weights; None if it does not or weights are in files."""
    table = ev.contingency
    by_weight = table.weighted and table.weighting != "outer" and not table.overlapping
    return ev.losses.recall_alone() if by_weight and ev.kept.ranges is None else None
