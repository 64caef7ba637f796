"""Evaluations on disk: JSON and Parquet files, written aside and then renamed together, and read back."""

from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.policies import Coverage, Policies
from fastbcubed.cells.contingency import CELL, Contingency, Rows
from fastbcubed.cells.one_sided import OneSided
from fastbcubed.errors import EvaluationWarning, FileFormatError, NotKeptError, OptionError
from fastbcubed.metrics.extended_bcubed import cice
from fastbcubed.metrics.metric import Metric
from fastbcubed.metrics.pair_counts import pair_counts
from fastbcubed.metrics.registry import METRICS
from fastbcubed.overlap import covers
from fastbcubed.overlap.covers import Cover
from fastbcubed.results.drilldown import by_code
from fastbcubed.results.evaluation import Evaluation, Scores
from fastbcubed.results.items import TableItems
from fastbcubed.results.stored_items import StoredItems
from fastbcubed.results.table import Table
from fastbcubed.runtime.pool import Pool, ahead, blocks
from fastbcubed.runtime.table_files import TableWriter
from fastbcubed.runtime.written import make_directory, remove_stale, written_aside
from fastbcubed.sources.arrays import from_numpy, table_of

__all__ = ["KEEP", "as_path", "load", "save"]

#: What each level of `keep` writes, on top of the level before.
KEEP = {
    "scores": ("slices",),
    "cells": ("true_clusters", "pred_clusters", "cells"),
    "items": ("items",),
}
#: What makes the tables of a file, where that is written, and what it becomes.
Task = tuple[Callable[[], Iterable[pa.Table]], str, Path]
#: Cells that are written at once.
CELLS_AT_ONCE = 1 << 20
#: Version of the layout of the files.
LAYOUT = 1


def save(ev: Evaluation, directory: Any, keep: str = "items") -> None:
    """Write an evaluation; see `Evaluation.save`."""
    if keep not in KEEP:
        raise OptionError(f"keep is one of {', '.join(map(repr, KEEP))}, not {keep!r}")
    path = make_directory(as_path(directory))
    levels = list(KEEP)[: list(KEEP).index(keep) + 1]
    wanted = [name for level in levels for name in KEEP[level]]
    tables: dict[str, Callable[[], Iterable[pa.Table]]] = {
        "slices": lambda: _slices(ev),
        "true_clusters": lambda: _clusters(ev, "true"),
        "pred_clusters": lambda: _clusters(ev, "pred"),
        "cells": lambda: _cells(ev),
        "items": lambda: _items(ev),
    }
    head = {"layout": LAYOUT, "keep": keep, "metrics": [m.name for m in ev.metrics]}
    if "cells" in wanted:
        head["pair_weight"] = _pair_weight(ev.contingency)
    if "items" in wanted and ev.left_out:
        head["left_out"] = ev.left_out
        warnings.warn(
            f"{len(ev.left_out)} columns were not written with the items: {'; '.join(ev.left_out.values())}",
            EvaluationWarning,
            stacklevel=3,
        )
    text = json.dumps({**head, **json.loads(ev.to_json())}, indent=2, ensure_ascii=False) + "\n"
    others = []
    with ExitStack() as asides:  # what was there before stays until all is written
        aside = asides.enter_context(written_aside(path / "overall.json"))
        Path(aside).write_text(text, encoding="utf-8")
        first: list[Task] = []  # about half of the work
        rest: list[Task] = []
        for name, make in tables.items():
            file = path / f"{name}.parquet"
            if name == "items" and name in wanted and _is_in_file(ev, file, asides):
                continue
            if name in wanted and (name != "slices" or ev.sliced):
                aside = asides.enter_context(written_aside(file))
                (first if name == "true_clusters" else rest).append((make, aside, file))
            else:
                others.append(file)
        _write_all(first, rest)
    for file in others:
        file.unlink(missing_ok=True)  # of an earlier evaluation
        remove_stale(file)


def as_path(directory: Any) -> Path:
    """Return a path, or raise OptionError for what is none."""
    if not isinstance(directory, str | os.PathLike) or not str(directory) or "\0" in str(directory):
        raise OptionError(f"a directory is named by a path, not {directory!r}")
    return Path(directory)


def _write_all(*lanes: Sequence[Task]) -> None:
    """Write files, those of a lane one after the other, each from tables that are made one after the other."""
    over = threading.Event()

    def write(lane: Sequence[Task]) -> None:
        for make, aside, file in lane:
            try:
                with TableWriter(aside) as writer:
                    for table in ahead(iter(make())):
                        if over.is_set():
                            return
                        writer.add(table)
            except OSError as error:
                raise FileFormatError(f"cannot write {file}: {error.strerror or error}") from error

    with Pool(len(lanes)) as pool:
        try:
            pool.map(write, lanes)
        finally:
            over.set()


def _slices(ev: Evaluation) -> list[pa.Table]:
    """Return the slices that were asked for in one table: what it is sliced by, the slice, scores."""
    tables = []
    for name, listing in ev.sliced.items():
        table = listing.to_arrow()
        at = table.column_names.index("n_items")
        rows = list(zip(*(table.column(k).to_pylist() for k in range(at)), strict=True))
        slices = [_slice_text(row) for row in rows]
        scores = table.drop_columns(table.column_names[:at])
        scores = scores.add_column(0, "by", pa.array([name] * len(rows), pa.string()))
        tables.append(scores.add_column(1, "slice", pa.array(slices, pa.string())))
    return [pa.concat_tables(tables)] if tables else []


def _slice_text(values: tuple[Any, ...]) -> str | None:
    """Return a slice as text: its value, null for null, or a JSON list where several are crossed."""
    if len(values) > 1:
        return json.dumps(values, default=str, ensure_ascii=False)
    return None if values[0] is None else str(values[0])


def _clusters(ev: Evaluation, side: str) -> Iterator[pa.Table]:
    """Yield the clusters of one side in the order of their codes, so that a row number is a code."""
    table = ev.contingency
    ranges: Iterable[tuple[int, dict[str, NDArray[Any]]]]
    if ev.ranges is None:
        ranges = [(0, by_code(table, side, ev.metrics, ev.beta))]
    else:
        ranges = ev.ranges.to_be_named(side, ev.metrics, ev.beta)
    only = table.only(side)
    with ev.all_cluster_labels(side) as labels_of:
        for first, columns in ranges:
            there = columns["n_items"] > 0
            labels = labels_of(first + np.flatnonzero(there))
            if not there.all():  # clusters that only items of this side are in have no name
                labels = labels.take(from_numpy(np.maximum(np.cumsum(there) - 1, 0), ~there))
            found: dict[str, Any] = {"cluster": labels} | columns
            if only is not None:
                here = slice(first, first + there.size)
                found |= {"n_items_only_here": only[0][here], "weight_only_here": only[1][here]}
            yield table_of(found)


def _pair_weight(table: Contingency) -> float | None:
    """Return what scores of pairs need of the weights of items, in place of these."""
    known = not table.weighted or table.weighting == "outer" or table.rows is None
    if known or table.outside or table.overlapping:
        return table.pair_weight
    with Pool() as pool:
        return float(pair_counts(table, pool).tp)


def _cells(ev: Evaluation) -> Iterator[pa.Table]:
    table = ev.contingency
    if isinstance(table, Cover):
        yield covers.as_table(table)
        return
    columns = {name: getattr(table, name) for name in ("true", "pred", "n", "weight", "fp", "fn")}
    for start, stop in blocks(table.n_cells, CELLS_AT_ONCE):
        yield table_of({name: np.ascontiguousarray(each[start:stop]) for name, each in columns.items()})


def _is_in_file(ev: Evaluation, file: Path, asides: ExitStack) -> bool:
    """Tell whether the items are in a file already, which is copied unless it is this one."""
    items = ev.kept_items()
    if not isinstance(items, StoredItems):
        return False
    if not items.file.is_at(file):
        items.file.copy_to(asides.enter_context(written_aside(file)))
    return True


def _items(ev: Evaluation) -> list[pa.Table]:
    """Return the rows of the evaluation: ids, labels, weight, cell (null: not scored), attributes."""
    items, rows = ev.kept_items(), ev.contingency.rows
    assert rows is not None
    columns: dict[str, Any] = {
        "item": items.ids(),
        "true_cluster": items.labels("true"),
        "pred_cluster": items.labels("pred"),
        "weight": rows.weight,
        "cell": from_numpy(rows.cell, rows.cell < 0),
    }
    left_out = ev.left_out
    for side, names in items.attribute_sides().items():
        kept = [name for name in names if f"{side}.{name}" not in left_out]
        columns |= {f"{side}.{name}": items.attribute(side, name) for name in kept}
    if ev.attributes is not None:
        kept = [name for name in ev.attributes.names if f"attributes.{name}" not in left_out]
        columns |= {f"attributes.{name}": ev.attributes.attribute(name) for name in kept}
    return [table_of(columns)]


def load(directory: Any) -> Evaluation:
    """Read an evaluation that `Evaluation.save`, or `out=`, has written.

    Parameters
    ----------
    directory : path
        Where it was saved.

    Returns
    -------
    Evaluation
        With all that was kept: saved with keep="items", it can be sliced by any attribute that the
        tables had, or by those of another table; with "cells", listed by cluster.

    Raises
    ------
    FileFormatError
        If the directory holds no evaluation, or one of its files is damaged.
    NotKeptError
        If it was saved with keep="scores", so that there are no cells.

    Examples
    --------
    >>> import tempfile
    >>> import fastbcubed as fb
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     fb.evaluate([0, 0, 1], [0, 1, 1]).save(directory)
    ...     fb.load(directory).f1
    0.6666666666666666
    """
    path = as_path(directory)
    try:
        text = (path / "overall.json").read_text(encoding="utf-8")
        head = json.loads(text)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path} holds no saved evaluation: overall.json: {error}") from error
    if not isinstance(head, dict) or head.get("layout") != LAYOUT:
        raise FileFormatError(
            f"{path / 'overall.json'} is not an evaluation of layout {LAYOUT}, which this version reads"
        )
    if head["keep"] == "scores":
        raise NotKeptError(
            f'{path} was saved with keep="scores": overall.json and slices.parquet are all there is. Save '
            'with keep="cells" or "items" to load an evaluation'
        )
    cells = _read(path / "cells.parquet")
    sides = {side: _read(path / f"{side}_clusters.parquet") for side in ("true", "pred")}
    stored = _read(path / "items.parquet") if head["keep"] == "items" else None
    definition = head["definition"]
    policies = Policies(
        **definition["unmatched"], **{k: definition[k] for k in ("nulls", "duplicates", "noise")}
    )
    table: Contingency
    if definition.get("overlapping", False):
        table = _cover(cells, sides, stored, definition, policies)
    else:
        table = _contingency(cells, sides, stored, definition, policies, head.get("pair_weight"))
    known = {field.name for field in fields(Coverage)}
    figures: dict[str, Any] = {
        k: np.nan if v is None else v for k, v in head["coverage"].items() if k in known
    }
    return Evaluation(
        table,
        _metrics(head["metrics"], definition),
        definition["beta"],
        Coverage(**figures),
        policies,
        Scores({k: np.nan if v is None else v for k, v in head["overall"].items()}),
        None if stored is None else TableItems(stored, head.get("left_out", {})),
        lambda side, codes: sides[side]["cluster"].take(from_numpy(codes)),
        not_computed=head["not_computed"],
        names={side: head[side] for side in ("truth", "prediction")},
        sliced={name: Table(pa.Table.from_pylist(rows)) for name, rows in head["slices"].items()},
    )


def _metrics(names: list[str], definition: dict[str, Any]) -> list[Metric]:
    """Return the scores by name, those of CICE-BCubed in the reading that was saved."""
    known = dict(METRICS)
    if "match" in definition:
        known |= {m.name: m for m in cice(definition["match"], definition["similarity"])}
    return [known[name].at(definition["beta"]) for name in names if name in known]


def _read(file: Path) -> pa.Table:
    from fastbcubed.sources import read_table

    return read_table(file).combine_chunks()


def _numpy(table: pa.Table, name: str) -> NDArray[Any]:
    return np.asarray(table[name].to_numpy())


def _cover(
    cells: pa.Table,
    sides: dict[str, pa.Table],
    stored: pa.Table | None,
    definition: dict[str, Any],
    policies: Policies,
) -> Contingency:
    return covers.from_table(
        cells,
        (sides["true"].num_rows, sides["pred"].num_rows),
        rows=_rows(stored, definition),
        weighted=definition["weighted"],
        weighting=definition["weighting"],
        outside=policies.prediction == "outside",
    )


def _rows(stored: pa.Table | None, definition: dict[str, Any]) -> Rows | None:
    if stored is None:
        return None
    cell = stored["cell"].fill_null(-1).to_numpy()
    return Rows(lambda: cell, _numpy(stored, "weight") if definition["weighted"] else None, cell.size)


def _contingency(
    cells: pa.Table,
    sides: dict[str, pa.Table],
    stored: pa.Table | None,
    definition: dict[str, Any],
    policies: Policies,
    pair_weight: float | None,
) -> Contingency:
    records = np.empty(cells.num_rows, CELL)
    for name in ("true", "n", "weight", "fp", "fn"):
        records[name] = _numpy(cells, name)
    one_sided = {}
    for side, clusters in sides.items():
        if "n_items_only_here" in clusters.column_names:
            n, mass = _numpy(clusters, "n_items_only_here"), _numpy(clusters, "weight_only_here")
            one_sided[side] = OneSided(np.arange(n.size), n, mass)
    return Contingency(
        records,
        lambda: _numpy(cells, "pred"),
        (sides["true"].num_rows, sides["pred"].num_rows),
        weighted=definition["weighted"],
        weighting=definition["weighting"],
        outside=policies.prediction == "outside",
        one_sided=one_sided,
        rows=_rows(stored, definition),
        pair_weight=pair_weight,
    )
