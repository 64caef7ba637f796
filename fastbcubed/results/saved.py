"""Files of a saved evaluation: the manifest, checked tables, items, covers and arrays."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed._version import __version__
from fastbcubed.align.policies import Coverage
from fastbcubed.cells.cell_parts import RowBlock
from fastbcubed.cells.contingency import SIDES, ScoredRows
from fastbcubed.cells.validate import fault_of_weights
from fastbcubed.errors import FileFormatError, SpillError, arg
from fastbcubed.inputs import files
from fastbcubed.inputs.arrays import combined, from_numpy, no_rows, table_of, to_numpy
from fastbcubed.inputs.layouts import Memberships
from fastbcubed.metrics.overlap_scores import cice
from fastbcubed.metrics.registry import METRICS
from fastbcubed.metrics.score import Metric
from fastbcubed.overlap.cover import Cover
from fastbcubed.overlap.mates import Shares
from fastbcubed.results.items import Kept, TableItems
from fastbcubed.results.outcomes import COUNTS, OUTCOMES, SUMS
from fastbcubed.results.summary import Bounds
from fastbcubed.runtime.attributes import cached_property
from fastbcubed.runtime.output_files import (
    OwnPlace,
    Staging,
    Stamp,
    copy_stamped,
    is_staging_name,
    maybe_with_nulls,
    open_regular,
    without_nulls,
)
from fastbcubed.runtime.threads import Pool, ahead
from fastbcubed.types import RowNumbers

#: The file that is written last, and says which others go with it; the one that is streamed; that of slices.
MANIFEST, ITEMS, SLICES = files.MANIFEST, "items.parquet", "slices.parquet"
#: The content of the page of a large result.
PAGE = "page.json"
#: Version of the layout of the files.
LAYOUT = 3
#: More bytes than any manifest has.
TOO_LARGE = 1 << 30
#: The files that go with each level of `keep`, and those that may be there or not.
FILES = {
    "scores": set[str](),
    "cells": {"true_clusters.parquet", "pred_clusters.parquet", "cells.parquet"},
    "items": {"true_clusters.parquet", "pred_clusters.parquet", "cells.parquet", ITEMS},
}
#: Bytes of cells, and of items, from which a result is not loaded whole by default; and the mark of a diff's result.
LARGE, LARGE_ITEMS, DIFF_MARK = 6_000_000, 800_000_000, "diff"
ASKED_FOR = {SLICES, "repairs.parquet", PAGE}


def sealed(head: Mapping[str, Any], files: Mapping[str, Stamp], staged_in: str) -> str:
    """Return the manifest as text, with its checksum."""
    stamps = {name: stamp._asdict() for name, stamp in files.items()}
    whole = {"layout": LAYOUT, **head, "files": stamps, "staged_in": staged_in}
    return json.dumps({**whole, "crc32": _checksum(whole)}, indent=2, ensure_ascii=False) + "\n"


def _checksum(head: Mapping[str, Any]) -> int:
    """Return a checksum of JSON content, independent of spacing and order."""
    text = json.dumps(head, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return zlib.crc32(text.encode("utf-8"))


def read_manifest(directory: Path) -> dict[str, Any]:
    """Return the manifest of a saved evaluation."""
    path = directory / MANIFEST
    try:
        head = _parsed(path)
    except FileFormatError as error:
        raise FileFormatError(f"{directory} holds no saved evaluation: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{directory} holds no saved evaluation: {MANIFEST}: {error}") from error
    if head.get("layout") != LAYOUT:
        raise FileFormatError(_of_another_version(path, head))
    try:
        changed = _checksum({k: v for k, v in head.items() if k != "crc32"}) != head.get("crc32")
    except ValueError:  # text that is none
        changed = True
    if changed:
        raise FileFormatError(f"{path} is not as it was saved: its checksum differs. Evaluate and save anew")
    wanted = SCHEMA | (ERRORS if "errors" in head else {}) | (DIFF if "diff" in head else {})
    for fault in _faults(head, wanted, "it"):
        raise FileFormatError(f"{path} is no saved evaluation: {fault}")
    if set(head["files"]) - ASKED_FOR != FILES[head["keep"]]:
        raise FileFormatError(f"{path} names other files than keep={head['keep']!r} has")
    return head


def _of_another_version(path: Path, head: Mapping[str, Any]) -> str:
    """Return the message for a manifest of another layout, or for JSON that is no manifest."""
    if type(head.get("layout")) is not int or "overall" not in head:
        return (
            f"{path} is not the manifest of a saved evaluation. "
            f"Load a directory that `save` or {arg('out', ...)} wrote"
        )
    version = head.get("fastbcubed")
    by = f"fastbcubed {version}" if isinstance(version, str) else "another version of fastbcubed"
    return (
        f"{path} was saved by {by} in layout {head['layout']}; fastbcubed {__version__} reads layout {LAYOUT} only. "
        "Load it with the version that saved it, or evaluate and save anew"
    )


def may_be_read_in_parts(head: Mapping[str, Any]) -> bool:
    """Return whether a saved result is of a kind that its tables can answer part by part."""
    overlapping = head["definition"]["overlapping"]
    return not (head["keep"] == "scores" or overlapping or head["outcomes"] is None or DIFF_MARK in head)


def is_large(files: Mapping[str, Stamp]) -> bool:
    """Return whether files belong to a result that is not loaded whole by default."""
    return files["cells.parquet"].bytes >= LARGE or (ITEMS in files and files[ITEMS].bytes >= LARGE_ITEMS)


def fault_of_json(found: Any) -> str | None:
    """Return the fault in the JSON of a saved evaluation; None if it is valid."""
    parts = ("definition", "overall", "coverage", "manifest", "slices")
    return next(_faults(found, {part: SCHEMA[part] for part in parts}, "it"), None)


def _parsed(path: Path) -> dict[str, Any]:
    with open_regular(path) as file:
        text = file.read(TOO_LARGE)
    if len(text) == TOO_LARGE:
        raise ValueError("it is too large")
    head = json.loads(text.decode("utf-8"), parse_constant=_refuse)
    if not isinstance(head, dict):
        raise ValueError("it is no JSON object")
    return head


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


Check = Callable[[Any], bool]


def _faults(value: Any, wanted: Any, where: str) -> Iterator[str]:
    """Yield the faults of a value: by a check, or a dict of checks by key."""
    if not isinstance(wanted, Mapping):
        if not wanted(value):
            yield f"{where} cannot be {str(value)[:60]!r}"
        return
    if not isinstance(value, dict):
        yield f"{where} is no object"
        return
    for key, each in wanted.items():
        if key in value:
            yield from _faults(value[key], each, key)
        else:
            yield f"{where} lacks {key!r}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_name(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -sys.float_info.max <= value <= sys.float_info.max


def _is_score(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_scalar(value: Any) -> bool:
    if type(value) is int:
        return -(1 << 63) <= value < 1 << 64
    return value is None or isinstance(value, str | bool) or _is_number(value)


def _is_label(value: Any) -> bool:
    return _is_scalar(value) or all(map(_is_scalar, value if isinstance(value, list) else [value]))


def _one_of(*known: Any) -> Check:
    return lambda value: any(type(value) is type(each) and value == each for each in known)


def _list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _each(check: Check) -> Check:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _none_or(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _conforms(wanted: Any) -> Check:
    return lambda value: not any(_faults(value, wanted, ""))


def _is_slicing(rows: Any) -> bool:
    """Return whether this is a table of slices, row by row."""
    if not (_list_of(_each(_is_scalar))(rows) and rows and {"n_items", "weight"} <= rows[0].keys()):
        return False
    columns = list(rows[0])
    scores = columns[columns.index("n_items") + 1 :]
    each = _conforms({"n_items": _is_count, **dict.fromkeys(scores, _is_score)})
    return all(list(row) == columns and each(row) for row in rows)


def is_in_file(value: Any) -> bool:
    """Return whether this stands for slices that are only in their file, as they are many."""
    return _conforms({"n_slices": _is_count, "columns": _list_of(_is_text)})(value)


def _is_outcomes(rows: Any) -> bool:
    """Return whether this is a table of outcomes, row by row, or None."""
    if rows is None:
        return True
    each = _conforms(dict.fromkeys(COUNTS, _is_count) | dict.fromkeys(SUMS, _is_number))
    wanted = [(side, outcome) for side, outcomes in OUTCOMES.items() for outcome in outcomes]
    return _list_of(each)(rows) and [(row.get("side"), row.get("outcome")) for row in rows] == wanted


SIDE = {name: _is_count for name in ("items", "clusters", "singletons", "largest", "exact")} | {
    "size_quantiles": _each(_is_count)
}
BOUNDS = {field.name: _is_score for field in fields(Bounds)}
CONTENT = {
    "rows": lambda value: value is None or _is_count(value),
    "fingerprint": lambda value: (
        value is None or (_is_text(value) and re.fullmatch("[0-9a-f]{32}", value) is not None)
    ),
}
#: How far figures may be out of their range.
ROUNDING = 1e-9
#: What has to be there with standard errors, which may be there or not.
ERRORS = {
    "errors": _each(lambda value: value is None or (_is_number(value) and value >= 0)),
    "units": {
        "n": lambda value: _is_count(value) and value > 0,
        "effective": lambda value: _is_number(value) and 1 - ROUNDING <= value < 2**63,
        "largest_share": lambda value: _is_number(value) and 0 < value <= 1 + ROUNDING,
    },
}
WARNINGS = _list_of(_conforms({"code": _is_text, "level": _one_of("warning", "note"), "message": _is_text}))
_LEVELS = dict.fromkeys(("baseline", "experiment"), _each(_is_score))
#: What has to be there where the evaluation is that of a diff.
DIFF = {
    "diff": {
        "truth": _is_name,
        "changes": _none_or(
            _list_of(
                _conforms(
                    {"became": _is_text, "n_clusters": _is_count, "n_items": _is_count}
                    | dict.fromkeys(("weight", "share"), _is_score)
                )
            )
        ),
        "verdict": _none_or(
            _conforms(
                {"n_items": lambda value: _is_count(value) and value > 0, "n_unlabelled": _is_count}
                | {"unlabelled": _one_of("drop", "outside"), "scores": _each(_is_score), "levels": _LEVELS}
                | dict.fromkeys(("weight", "weight_unlabelled"), _is_number)
            )
        ),
        "errors": _each(_is_score),
        "judging": _list_of(_is_text),
        "warnings": WARNINGS,
        "not_computed": _each(_is_text),
    }
}
#: What has to be there; there may be more.
SCHEMA = {
    "keep": _one_of(*FILES),
    "metrics": _list_of(_is_text),
    "truth": _is_name,
    "prediction": _is_name,
    "definition": {
        "overlapping": _one_of(False, True),
        "weighted": _one_of(False, True),
        "weighting": _one_of("pointwise", "outer"),
        "beta": lambda value: _is_number(value) and value >= 0,
        "unmatched": {
            "truth": _one_of("drop", "raise", "singleton"),
            "prediction": _one_of("drop", "raise", "singleton", "outside"),
        },
        "nulls": _one_of("raise", "singleton", "drop"),
        "duplicates": _one_of("raise", "drop"),
        "noise": _is_label,
    },
    "manifest": {"arguments": _each(lambda value: True), "truth": CONTENT, "prediction": CONTENT},
    "overall": _each(_is_score),
    "coverage": {
        **{field.name: _is_count if field.name.startswith("n_") else _is_score for field in fields(Coverage)},
        "n_common": lambda value: _is_count(value) and value > 0,
        "bounds": lambda value: value is None or _conforms(BOUNDS)(value),
    },
    "summary": {"true": SIDE, "pred": SIDE},
    "outcomes": _is_outcomes,
    "pair_weight": _is_score,
    "recall_alone": _is_score,
    "left_out": _each(_is_text),
    "warnings": WARNINGS,
    "slices": _each(lambda value: _is_slicing(value) or is_in_file(value)),
    "not_computed": _each(_is_text),
    "files": _each(_conforms({"bytes": _is_count, "crc32": _is_count})),
    "staged_in": is_staging_name,
}


class SavedTable:
    """A table of a saved evaluation."""

    def __init__(self, table: pa.Table, path: Path) -> None:
        self.table = table
        self._path = path
        if len(set(table.column_names)) < table.num_columns:
            self.refuse("two columns have one name")

    @classmethod
    def read(cls, file: BinaryIO, path: Path) -> SavedTable:
        """Read a Parquet file."""
        import pyarrow.parquet as pq

        try:
            table = pq.ParquetFile(file).read()
            table.validate(full=True)
            table = maybe_with_nulls(table.combine_chunks())
        except Exception as error:  # of any kind: the file may hold anything
            raise FileFormatError(f"cannot read {path}: {str(error)[:200]}") from error
        return cls(table, path)

    def slice(self, start: int, n: int) -> SavedTable:
        """Return some rows."""
        return SavedTable(self.table.slice(start, n), self._path)

    def where(self, mask: Any) -> SavedTable:
        """Return the rows of a mask."""
        return SavedTable(self.table.filter(mask), self._path)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __contains__(self, name: str) -> bool:
        return name in self.table.column_names

    def refuse(self, fault: str | None) -> None:
        """Raise FileFormatError if there is a fault."""
        if fault is not None:
            raise FileFormatError(
                f"{self._path} is not as an evaluation is saved: {fault}. Evaluate and save anew"
            )

    def require(self, names: Iterable[str]) -> None:
        """Raise if a column is not there."""
        lacking = [name for name in names if name not in self]
        self.refuse(f"it has no column {lacking[0]!r}" if lacking else None)

    def require_type(self, name: str, kind: pa.DataType) -> None:
        """Raise if the values of a column, as they are or in a dictionary, are of another type."""
        found = self.table[name].type
        if (found.value_type if pa.types.is_dictionary(found) else found) != kind:
            self.refuse(f"{name} is {found}, not {kind}")

    def integers(self, name: str, nulls: int | None = None) -> NDArray[np.int64]:
        """Return a column of integers, with `nulls` in place of nulls, if there may be any."""
        column = self._column(name, nulls is not None)
        if not pa.types.is_integer(column.type):
            self.refuse(f"{name} is {column.type}, not integers")
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            self.refuse(f"{name} has integers that are too large")
        return _numpy(column if nulls is None else column.fill_null(nulls))

    def floats(self, name: str) -> NDArray[np.float64]:
        """Return a column of float64."""
        column = self._column(name, False)
        if not pa.types.is_float64(column.type):
            self.refuse(f"{name} is {column.type}, not double")
        return _numpy(column)

    def memberships(self, name: str, n_clusters: int) -> Memberships:
        """Return a column of lists of codes of clusters, ascending, as memberships."""
        column = self._column(name, False)
        if not (pa.types.is_large_list(column.type) and pa.types.is_integer(column.type.value_type)):
            self.refuse(f"{name} is {column.type}, not lists of codes")
        lists = column.combine_chunks()
        offsets = lists.offsets.to_numpy().astype(np.int64)
        offsets -= offsets[0]
        codes = SavedTable(pa.table({name: lists.flatten()}), self._path).integers(name)
        begins = np.zeros(codes.size, np.bool_)
        begins[offsets[:-1][np.diff(offsets) > 0]] = True
        in_order = (np.diff(codes) > 0) | begins[1:]
        if codes.size and (codes.min() < 0 or codes.max() >= n_clusters or not in_order.all()):
            self.refuse(f"{name} has a code that is not one of {n_clusters} clusters, or not in order")
        narrow = codes.astype(np.int32) if n_clusters < 2**31 else codes
        return Memberships(offsets, narrow, n_clusters)

    def _column(self, name: str, nulls: bool) -> pa.ChunkedArray:
        self.require([name])
        column = self.table[name]
        if column.null_count and not nulls:
            self.refuse(f"{name} has nulls")
        return column


def _numpy(column: pa.ChunkedArray) -> Any:
    return np.ascontiguousarray(column.to_numpy())


#: Columns of saved cells: hits and misses of an item among other cells, and its mates.
PARTS = ("pred_hits", "pred_misses", "true_hits", "true_misses")
MATES = ("pred_mates", "true_mates")


def as_table(cover: Cover) -> pa.Table:
    """Return all there is to know of the cells; those that only the prediction has come last, without shares."""
    truth, prediction, n, weight = cover.every
    lacking = np.arange(n.size) >= cover.n_cells
    columns: dict[str, Any] = {
        "true_clusters": pa.LargeListArray.from_arrays(truth.offsets, truth.codes),
        "pred_clusters": pa.LargeListArray.from_arrays(prediction.offsets, prediction.codes),
        "n": n,
        "weight": n.astype(np.float64) if weight is None else weight,
    }
    for name, values in zip((*PARTS, *MATES), (*cover.shares.parts.T, *cover.shares.mates.T), strict=True):
        whole = np.zeros(n.size, values.dtype)
        whole[: cover.n_cells] = values
        columns[name] = from_numpy(whole, lacking)
    return table_of(columns)


def from_table(
    cells: SavedTable,
    n_clusters: tuple[int, int],
    *,
    rows: ScoredRows | None,
    weighted: bool,
    weighting: str,
    outside: bool,
) -> Cover:
    """Make a cover from the result of `as_table` and the number of clusters of each side; raise if invalid."""
    cells.require((*PARTS, *MATES))
    n_scored = len(cells) - cells.table[PARTS[0]].null_count
    scored = cells.slice(0, n_scored)
    truth, prediction = (
        cells.memberships(name, size)
        for name, size in zip(("true_clusters", "pred_clusters"), n_clusters, strict=True)
    )
    parts = np.column_stack([scored.floats(name) for name in PARTS])
    mates = np.column_stack([scored.integers(name) for name in MATES])
    n, weight = cells.integers("n"), cells.floats("weight")
    cells.refuse(_fault(truth, prediction, n, parts, mates, n_scored))
    counted = slice(None) if outside else slice(n_scored)
    outer = weighting == "outer"
    cells.refuse(fault_of_weights(n[counted], weight[counted], weighted=weighted, outer=outer))
    return Cover(
        truth,
        prediction,
        n,
        weight if weighted else None,
        n_scored=n_scored,
        rows=rows,
        weighting=weighting,
        outside=outside,
        shares=Shares(parts, mates),
    )


def _fault(
    truth: Memberships,
    prediction: Memberships,
    n: NDArray[np.int64],
    parts: NDArray[np.float64],
    mates: NDArray[np.int64],
    n_scored: int,
) -> str | None:
    """Return the fault in the clusters and the shares of cells; None if there is none."""
    if (truth.counts[n_scored:] > 0).any() or not (truth.counts[:n_scored] > 0).all():
        return "a cell without shares has a true cluster, or another has none"
    if not (prediction.counts > 0).all():
        return "a cell has no predicted cluster"
    if (n < 1).any():
        return "a cell has no item"
    if not ((parts >= 0) & (parts < np.inf)).all():
        return "hits or misses are negative or not finite"
    if (mates < n[:n_scored, None]).any() or (mates > n.sum(dtype=np.float64)).any():
        return "mates are fewer than a cell has, or more than there are items"
    return None


class TableLabels:
    """The labels of clusters, by side and code."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = columns

    def __call__(self, side: str, codes: RowNumbers) -> pa.Array:
        """Return the labels of clusters, null for one that a policy has made."""
        labels = self._columns[side].take(from_numpy(codes))
        return combined(labels) if isinstance(labels, pa.ChunkedArray) else labels


def labels_by_code(labels_of: Callable[[RowNumbers], Any], first: int, there: NDArray[np.bool_]) -> Any:
    """Return labels of clusters from a code on; null for those without scored items, which have no name."""
    labels = labels_of(first + np.flatnonzero(there))
    if there.all():
        return labels
    return labels.take(from_numpy(np.maximum(np.cumsum(there) - 1, 0), ~there))


def item_table(kept: Kept) -> pa.Table:
    """Return the rows of an evaluation: ids, labels, weight, cell (null: not scored), attributes."""
    items, rows = kept.require_items(), kept.rows
    columns: dict[str, Any] = {
        "item": items.ids(),
        "true_cluster": items.labels("true"),
        "pred_cluster": items.labels("pred"),
        "weight": rows.weight,
        "cell": from_numpy(rows.cell, rows.cell < 0),
    }
    left_out = kept.left_out
    for side, names in items.attribute_sides().items():
        own = [name for name in names if f"{side}.{name}" not in left_out]
        columns |= {f"{side}.{name}": items.attribute(side, name) for name in own}
    if kept.attributes is not None:
        own = [name for name in kept.attributes.names if f"attributes.{name}" not in left_out]
        columns |= {f"attributes.{name}": kept.attributes.attribute(name) for name in own}
    return table_of(columns)


def metrics_by_name(names: Iterable[str], beta: float, options: Mapping[str, Any]) -> list[Metric]:
    """Return scores of the registry by name, those of CICE-BCubed in the reading of `options`."""
    known = dict(METRICS)
    if "match" in options:
        known |= {m.name: m for m in cice(options["match"], options["similarity"])}
    return [known[name].at(beta) for name in names if name in known]


def state_of(ev: Any) -> dict[str, Any]:
    """Return the state of an evaluation; scores of the registry go by name."""
    kept, figures = ev.kept, ev.figures
    if kept.lazy is not None:
        return state_of(kept.lazy.whole())
    state: dict[str, Any] = {k: v for k, v in ev.__dict__.items() if k not in ("standard_errors", "losses")}
    own = [m for m in ev.metrics if m.family == "own"]
    state["metrics"] = ([m.name for m in ev.metrics], own, ev.definition)
    state["figures"] = replace(figures, metrics=[], errors=ev.standard_errors.known)
    state["origin"] = ev.origin.at_rest(kept.memory_limit)
    state["kept"] = replace(
        kept,
        items=None if kept.items is None else TableItems(item_table(kept), kept.left_out),
        labels=TableLabels({side: _all_labels(kept, side) for side in SIDES}) if kept.has_clusters else None,
        attributes=None,
        ranges=None,
    )
    return state


def set_state(ev: Any, state: Mapping[str, Any]) -> None:
    """Make an evaluation from the result of `state_of`."""
    names, own, definition = state["metrics"]
    found = {m.name: m for m in (*metrics_by_name(names, state["beta"], definition), *own)}
    metrics = [found[name] for name in names]
    ev.__dict__.update(state, metrics=metrics, figures=replace(state["figures"], metrics=metrics))


def _all_labels(kept: Kept, side: str) -> Any:
    n = kept.cells.true_n if side == "true" else kept.cells.pred_n
    with kept.all_labels(side) as labels_of:
        return labels_by_code(labels_of, 0, n > 0)


#: Rows read at once in longer scans.
AT_ONCE = 1 << 20


class StoredTable:
    """A Parquet file whose columns are read on demand; altered pages are refused."""

    def __init__(
        self,
        file: Any,
        staging: Staging | None = None,
        stamp: Stamp | None = None,
    ) -> None:
        self._raw = open(file, "rb") if isinstance(file, str | os.PathLike) else file
        self._raw.flush()  # it may have been written just now
        weakref.finalize(self, self._raw.close)  # which holds the file until then, whatever else is collected
        self._metadata: Any = None
        opened = self._open()
        self._metadata, self._schema = opened.metadata, opened.schema_arrow
        self.column_names: list[str] = list(self._schema.names)
        sizes = [self._metadata.row_group(k).num_rows for k in range(opened.num_row_groups)]
        self._starts = np.append(0, np.cumsum(sizes, dtype=np.int64))
        self.num_rows = int(self._starts[-1])
        self.staging = staging
        self._stamp = stamp

    def _open(self) -> Any:
        """Return a reader of the file for one thread: Arrow readers crash when two threads share one."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(OwnPlace(self._raw), metadata=self._metadata, page_checksum_verification=True)

    def no_rows(self) -> pa.Table:
        """Return the columns without rows."""
        return no_rows(self._schema)

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        return self._read(range(self._starts.size - 1), [name])[name]

    def scan(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        """Yield the first of consecutive rows, and some columns of these."""
        return ahead(self._scan(names))

    def _scan(self, names: Sequence[str]) -> Iterator[tuple[int, pa.Table]]:
        n_parts, first = self._starts.size - 1, 0
        while first < n_parts:
            end = int(np.searchsorted(self._starts, self._starts[first] + AT_ONCE, side="right")) - 1
            end = min(max(end, first + 1), n_parts)
            yield int(self._starts[first]), self._read(range(first, end), names).combine_chunks()
            first = end

    def take(self, names: Sequence[str], rows: NDArray[np.int64]) -> pa.Table:
        """Return some rows of some columns, null for row -1; only the needed parts of the file are read."""
        home = np.searchsorted(self._starts, np.maximum(rows, 0), side="right") - 1
        order = np.argsort(home, kind="stable")
        parts, bounds = np.unique(home[order], return_index=True)
        none = maybe_with_nulls(pa.schema([self._schema.field(name) for name in names]).empty_table())

        def read(k: int, own: NDArray[np.int64]) -> pa.Table:
            at = rows[own]
            return self._read([k], names).take(from_numpy(at - self._starts[k], at < 0))

        with Pool().wider() as readers:  # which wait for the disk
            found = readers.map(read, parts.tolist(), np.split(order, bounds[1:])[: parts.size])
        back = np.empty(rows.size, np.int64)
        back[order] = np.arange(rows.size)
        return pa.concat_tables([none, *found]).unify_dictionaries().take(from_numpy(back))

    def _read(self, parts: Iterable[int], names: Sequence[str]) -> pa.Table:
        try:
            return maybe_with_nulls(self._open().read_row_groups(list(parts), list(names)))
        except (OSError, pa.ArrowException) as error:
            raise FileFormatError(f"cannot read {', '.join(names)}: {str(error)[:200]}") from error

    def put_at(self, staging: Staging, name: str) -> Stamp:
        """Copy or link the file to the staging place, unless it is there, under a name; return its stamp."""
        if self._stamp is not None and (self.staging is staging or self._link(staging, name)):
            return self._stamp
        try:
            return copy_stamped(self._raw.fileno(), staging.path(name))
        except OSError as error:
            place = staging.directory / name
            raise FileFormatError(f"cannot write {place}: {error.strerror or error}") from error

    def _link(self, staging: Staging, name: str) -> bool:
        """Link the file to a second name if it is the one to be replaced; return whether this was done."""
        try:
            os.link(staging.directory / name, staging.path(name))
        except OSError:  # there is none, or the file system has no links
            return False
        if os.path.samestat(os.fstat(self._raw.fileno()), staging.path(name).stat()):
            return True
        staging.path(name).unlink()
        return False


class StoredRows(ScoredRows):
    """The rows behind the cells of an evaluation whose items are in a file."""

    def __init__(self, table: StoredTable, *, weighted: bool) -> None:
        super().__init__(lambda: to_numpy(table["cell"].fill_null(-1).combine_chunks()), None, table.num_rows)
        self._table, self._weighted = table, weighted

    def __reduce__(self) -> tuple[Any, ...]:
        return ScoredRows.of, (self.cell, self.weight if self._weighted else None)

    def stretches(self) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the cells of consecutive rows, and the first of these rows."""
        for first, table in self._table.scan(["cell"]):
            yield first, to_numpy(table["cell"].fill_null(-1).combine_chunks())

    def weights_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weights of some rows."""
        return (
            to_numpy(self._table.take(["weight"], rows)["weight"]) if self._weighted else np.ones(rows.size)
        )

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        """The weight of each row. Shape (n_rows,)."""
        return to_numpy(self._table["weight"].combine_chunks()) if self._weighted else np.ones(self.n_rows)


#: Columns that come first.
FIRST = ("item", "true_cluster", "pred_cluster", "weight", "cell")


def items_of_block(block: RowBlock) -> pa.Table:
    """Return the rows of a block as `storage` writes them: ids, labels, weight, cell (null: not scored), attributes."""
    cell = block.found["cell"].astype(np.int64)
    weight = np.ones(cell.size) if block.weight is None else block.weight
    columns = dict(zip(block.columns.column_names, block.columns.columns, strict=True))
    columns |= {"weight": from_numpy(weight), "cell": from_numpy(cell, cell < 0)}
    rest = [name for name in columns if "." in name]
    return without_nulls(pa.table({name: columns[name] for name in (*FIRST, *rest)}), ["weight"])


class Destination(NamedTuple):
    """A file to write items to, and where it is staged; nowhere if it has no name."""

    file: Any
    staging: Staging | None


@contextmanager
def destination(out: Path | None, spill_directory: Path) -> Iterator[Destination]:
    """Give the file to write items to: one that will be published in `out`, else one without a name."""
    if out is not None:
        staging = Staging(out, MANIFEST)
        try:
            path = staging.path(ITEMS)
            path.touch()
            yield Destination(path, staging)
        except BaseException as error:
            staging.discard()
            if isinstance(error, OSError):
                raise FileFormatError(f"cannot write {out / ITEMS}: {error.strerror or error}") from error
            raise
        return
    try:
        file = tempfile.TemporaryFile(dir=spill_directory)
    except OSError as error:
        raise SpillError(
            f"cannot write to {spill_directory}: {error.strerror}. Name a directory with {arg('spill_dir', ...)}"
        ) from error
    try:
        yield Destination(file, None)
    except BaseException:
        file.close()
        raise
