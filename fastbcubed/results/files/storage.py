"""Evaluations on disk: JSON and Parquet files, which take the place of earlier ones together."""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.cell_parts import NoCells, to_keep
from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import EvaluationWarning, FileFormatError, NotKeptError, OptionError
from fastbcubed.metrics.pair_counts import pair_counts
from fastbcubed.overlap.covers import Cover
from fastbcubed.results.by_cluster import ByCluster
from fastbcubed.results.evaluated import Evaluated
from fastbcubed.results.files.manifest import ITEMS, MANIFEST, is_large, may_be_read_in_parts, sealed
from fastbcubed.results.files.portable import item_table, labels_by_code
from fastbcubed.results.files.saved_covers import as_table
from fastbcubed.results.files.saved_digest import DIGEST, Passing, as_text, make_digest
from fastbcubed.results.items.stored_items import StoredItems, StoredTable
from fastbcubed.results.listings.drilldown import columns_by_code, known_by_cluster
from fastbcubed.results.listings.outcomes import named
from fastbcubed.results.listings.repairs import KINDS, list_repairs, require_repairable
from fastbcubed.results.listings.summary import as_json
from fastbcubed.results.slices.slicing import name_columns, rows_for_json
from fastbcubed.runtime import buffers
from fastbcubed.runtime.checksums import NO_BYTES, Stamp
from fastbcubed.runtime.pool import Pool, ahead, blocks
from fastbcubed.runtime.staging import Staging
from fastbcubed.runtime.table_files import TableWriter, without_nulls
from fastbcubed.sources.arrays import table_of
from fastbcubed.sources.locations import at_home

#: What each level of `keep` writes, on top of the level before.
KEEP = {
    "scores": ("slices",),
    "cells": ("true_clusters", "pred_clusters", "cells"),
    "items": ("items",),
}
#: Cells, and slices, that are written at once.
CELLS_AT_ONCE, SLICES_AT_ONCE = 1 << 20, 1 << 14
#: Slices of one kind that are in the manifest, too; more are in their file alone.
SLICES_IN_MANIFEST = 1 << 12


def save(
    ev: ByCluster,
    directory: Any,
    keep: str = "items",
    repairs: int = 0,
    more: Callable[[], Mapping[str, Any]] = dict,
) -> None:
    """Write an evaluation; see `Evaluation.save`. What `more` returns is added to the manifest."""
    require_repairable(repairs, keep="cells", overlapping=ev.contingency.overlapping)
    if keep not in tuple(KEEP):
        raise OptionError(f"keep is one of {', '.join(map(repr, KEEP))}, not {keep!r}")
    _require_kept(ev, keep)
    path = as_path(directory)
    best = list_repairs(ev, tuple(KINDS), repairs).to_arrow() if repairs else None
    levels = list(KEEP)[: list(KEEP).index(keep) + 1]
    wanted = [name for level in levels for name in KEEP[level] if name != "slices" or ev.sliced]
    wanted += ["repairs"] if best is not None else []
    head: dict[str, Any] = {"keep": keep, "metrics": [m.name for m in ev.metrics]}
    if keep != "scores":
        head["pair_weight"] = _pair_weight(ev.contingency)
        head["recall_alone"] = _recall_alone(ev)
    if keep == "items" and ev.left_out:
        head["left_out"] = ev.left_out
        warnings.warn(
            f"{len(ev.left_out)} columns were not written with the items: {'; '.join(ev.left_out.values())}",
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
            "slices": lambda: _slices(ev),
            "true_clusters": lambda: _clusters(ev, "true", passing),
            "pred_clusters": lambda: _clusters(ev, "pred", passing),
            "cells": lambda: _cells(ev),
            "items": lambda: [item_table(ev)],
            "repairs": lambda: [best],
        }
        tasks = {name: tables[name] for name in wanted if name not in stamps}
        stamps |= _write_all(tasks, staging)
        if passing is not None and "_outcomes" not in vars(ev):
            ev._outcomes = passing.outcomes  # before they are looked for in all cells
        head |= {**_described(ev), **extra}
        files = {f"{name}.parquet": stamps[name] for name in wanted}
        obsolete = [f"{name}.parquet" for name in tables if name not in wanted]
        digest = None
        if passing is not None and is_large(files):
            buffers.release()  # what writing took
            pa.default_memory_pool().release_unused()
            digest = make_digest(passing, ev, {name: staging.path(name) for name in files}, keep)
        if digest is None:
            obsolete.append(DIGEST)
        else:
            staging.path(DIGEST).write_text(as_text(digest, files), encoding="utf-8")
        staging.publish(sealed(head, files, staging.name), obsolete)


def _require_kept(ev: ByCluster, keep: str) -> None:
    """Raise NotKeptError if what is to be written was not kept, and say how to write what was."""
    kept = "scores" if isinstance(ev.contingency, NoCells) else "items" if ev.has_items else "cells"
    levels = list(KEEP)
    if levels.index(keep) > levels.index(kept):
        raise NotKeptError(
            f'the {keep} were not kept; pass keep="{kept}" to save what was, or evaluate with '
            f"{to_keep(keep, ev.contingency)}"
        )


def _stored_items(ev: Evaluated) -> StoredTable | None:
    """Return the file that the items are in, if they are in one."""
    items = ev.kept_items()
    return items.file if isinstance(items, StoredItems) else None


def _staging(stored: StoredTable | None, directory: Path) -> Staging:
    """Return where to write files for a directory: where the items of this evaluation have been written to, if so."""
    if stored is not None and stored.staging is not None and stored.staging.is_for(directory):
        return stored.staging
    return Staging(directory, MANIFEST)


def as_path(directory: Any) -> Path:
    """Return a path, or raise OptionError for what is none."""
    if not isinstance(directory, str | os.PathLike) or not str(directory) or "\0" in str(directory):
        raise OptionError(f"a directory is named by a path, not {directory!r}")
    return Path(at_home(os.fspath(directory)))


def _write_all(tasks: Mapping[str, Callable[[], Iterable[pa.Table]]], staging: Staging) -> dict[str, Stamp]:
    """Write files from tables that are made one after the other; return the stamp of each.

    The true clusters are about half of the work, and go beside the others.
    """
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


def _described(ev: Evaluated) -> dict[str, Any]:
    """Return what an evaluation says of itself, as JSON has it; many slices are in their file alone."""
    slices = {
        by: rows_for_json(table)
        if table.num_rows <= SLICES_IN_MANIFEST
        else {"n_slices": table.num_rows, "columns": name_columns(table.column_names)}
        for by, table in ev.sliced.items()
    }
    return dict(json.loads(as_json(ev._described(slices), None)))


def _slices(ev: Evaluated) -> Iterator[pa.Table]:
    """Yield the slices that were asked for: what it is sliced by, the slice as text, scores, the values of many."""
    tables = {by: listing.to_arrow() for by, listing in ev.sliced.items()}
    blank = pa.concat_tables(
        [_slices_by(by, table, 0, 0) for by, table in tables.items()], promote_options="default"
    )
    for by, table in tables.items():
        for start, stop in blocks(table.num_rows, SLICES_AT_ONCE):
            yield pa.concat_tables([blank, _slices_by(by, table, start, stop)], promote_options="default")


def _slices_by(by: str, table: pa.Table, start: int, stop: int) -> pa.Table:
    """Return some slices as they are written."""
    some, names = table.slice(start, stop - start), name_columns(table.column_names)
    texts = map(_slice_text, zip(*(some[name].to_pylist() for name in names), strict=True))
    found: dict[str, Any] = {"by": pa.array([by] * some.num_rows, pa.string())}
    found["slice"] = pa.array(texts, pa.string())
    found |= {name: some[name] for name in table.column_names[len(names) :]}
    if table.num_rows > SLICES_IN_MANIFEST:
        found |= {f"{by}.{name}": some[name] for name in names}
    return pa.table(found)


def _slice_text(values: tuple[Any, ...]) -> str | None:
    """Return a slice as text: its value, null for null, or a JSON list where several are crossed."""
    if len(values) > 1:
        return json.dumps(values, default=str, ensure_ascii=False)
    return None if values[0] is None else str(values[0])


def _passing(ev: ByCluster, keep: str, extra: Mapping[str, Any]) -> Passing | None:
    """Return what looks at the clusters while they are written; None for results that are read as a whole."""
    known = vars(ev).get("_outcomes", ())  # which are still to be counted, if they are not known
    if not may_be_read_in_parts({"keep": keep, "definition": ev.definition, "outcomes": known, **extra}):
        return None
    room = None if ev._memory_limit is None else ev._memory_limit // 8
    lost = ev.loss_of_all("pred"), ev.loss_of_all("true")
    return Passing(lost, outer=ev.contingency.weighting == "outer", room=room)


def _clusters(ev: Evaluated, side: str, passing: Passing | None) -> Iterator[pa.Table]:
    """Yield the clusters of one side in the order of their codes, so that a row number is a code."""
    tables = _clusters_by_code(ev, side)
    return tables if passing is None else passing.watched(side, tables)


def _clusters_by_code(ev: Evaluated, side: str) -> Iterator[pa.Table]:
    table = ev.contingency
    metrics = known_by_cluster(table, ev.metrics, ev.beta)
    ranges: Iterable[tuple[int, dict[str, NDArray[Any]]]]
    if ev.ranges is None:
        ranges = [(0, columns_by_code(table, side, metrics, ev.beta))]
    else:
        ranges = ev.ranges.to_be_named(side, metrics, ev.beta)
    only = table.only(side)
    with ev.all_cluster_labels(side) as labels_of:
        for first, columns in ranges:
            there = columns["n_items"] > 0
            found: dict[str, Any] = {"cluster": labels_by_code(labels_of, first, there)} | named(
                columns, side
            )
            if only is not None:
                here = slice(first, first + there.size)
                found |= {"n_items_only_here": only[0][here], "weight_only_here": only[1][here]}
            yield _numbers_full(found)


def _numbers_full(columns: Mapping[str, Any]) -> pa.Table:
    """Return a table that says of its NumPy columns that they have no nulls."""
    return without_nulls(
        table_of(columns), [name for name, each in columns.items() if isinstance(each, np.ndarray)]
    )


def _pair_weight(table: Contingency) -> float | None:
    """Return what scores of pairs need of the weights of items, in place of these."""
    known = not table.weighted or table.weighting == "outer" or table.rows is None
    if known or table.outside or table.overlapping or table.pair_weight is not None:
        return table.pair_weight
    with Pool() as pool:
        return float(pair_counts(table, pool).tp)


def _recall_alone(ev: ByCluster) -> float | None:
    """Return the recall if all items were alone, which takes the weights of items; None where these are in files."""
    table = ev.contingency
    by_weight = table.weighted and table.weighting != "outer" and not table.overlapping
    return ev.recall_alone() if by_weight and ev.ranges is None else None


def _cells(ev: Evaluated) -> Iterator[pa.Table]:
    table = ev.contingency
    if isinstance(table, Cover):
        yield as_table(table)
        return
    columns = {name: getattr(table, name) for name in ("true", "pred", "n", "weight", "fp", "fn")}
    for start, stop in blocks(table.n_cells, CELLS_AT_ONCE):
        yield _numbers_full({name: np.ascontiguousarray(each[start:stop]) for name, each in columns.items()})
