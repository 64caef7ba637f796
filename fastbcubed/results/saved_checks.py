"""Checks of the tables of a saved result, all made here before the tables are used.

Checksums show that files are unchanged, not that they were written by us: a forger would also compute the checksum.
Kernels do not check codes, so a code out of range would read foreign memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import FileFormatError, first_few
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import to_numpy
from fastbcubed.results.slices import name_columns

#: Exceeds the number of items of any result; sums of counts up to it are exact in int64 and float64.
MOST = 1 << 53
Kind = Callable[[pa.DataType], bool]


class Rule(NamedTuple):
    """The columns of a file by what they contain; columns not listed are figures."""

    needed: tuple[str, ...] = ()
    texts: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    #: ids, labels and attributes, of any type
    free: frozenset[str] = frozenset()
    #: figures that are never null; NaN means undefined
    known: frozenset[str] = frozenset()
    #: lists of figures
    lists: frozenset[str] = frozenset()
    #: whether no figure may be null
    all_known: bool = False


_CLUSTERS = Rule(
    ("cluster", "n_items", "weight"), frozenset({"outcome"}), frozenset({"exact"}), frozenset({"cluster"}),
    frozenset({"n_items", "weight"}),
)  # fmt: skip
_LINKS = frozenset({"cluster", "left", "right"})
_MERGES = Rule(("threshold", "left", "right", "n_clusters", "n_items", "f1_change"), free=_LINKS)
_CURVE = Rule(("threshold", "clusters"), all_known=True)
_ESTIMATES = frozenset({"estimate", "se", "low", "high"})
#: Rules by name of the file.
RULES: dict[str, Rule] = {
    "true_clusters": _CLUSTERS,
    "pred_clusters": _CLUSTERS,
    "slices": Rule(("by",), frozenset({"by", "slice", "run"})),
    "scores": Rule(("run",), frozenset({"run"}), all_known=True),
    "deltas": Rule(
        ("baseline", "experiment", "score", "delta"), frozenset({"baseline", "experiment", "score"}),
        frozenset({"holds"}), known=frozenset({"delta", "se"}), lists=frozenset({"replicates"}),
    ),
    "estimates": Rule(
        ("score", *sorted(_ESTIMATES)), frozenset({"score", "run", "stratum"}),
        known=_ESTIMATES | {"unadjusted", "n_clusters", "df", "effective", "ceiling"},
    ),
    "curve": _CURVE,
    "points": _CURVE,
    "merges": _MERGES,
    "merges_at_best": _MERGES,
    "weakest_links": Rule(("cluster", "n_items", "threshold", "left", "right"), free=_LINKS),
}  # fmt: skip


def require_names(files: Mapping[str, Any]) -> None:
    """Raise FileFormatError unless all files in a manifest have names without folders."""
    outside = [
        name for name in files if PurePath(name).name != name or name in ("", "..") or {*"\0\\:"} & {*name}
    ]
    if outside:
        raise FileFormatError(f"it names files outside its directory: {first_few(outside)}")


def require_sound(tables: Mapping[str, pa.Table], head: Mapping[str, Any]) -> None:
    """Raise FileFormatError if a table has columns, types, codes or counts that a saved result cannot have."""
    for name, table in tables.items():
        stem = name.removesuffix(".parquet")
        # large slicings are not read but stay in their file
        if stem in RULES and isinstance(table, pa.Table):
            _require_columns(name, table, RULES[stem], _slicing(head) if stem == "slices" else set())
    if "cells.parquet" in tables:
        _require_cells(tables, overlapping=head["definition"]["overlapping"])


def _slicing(head: Mapping[str, Any]) -> set[str]:
    """Return the name columns of slices, in the file of one evaluation or of several runs."""
    if "kind" in head:
        of_each = (head["saved"].get("sliced") or {}).values()
        return {"attribute.by"}.union(*(name_columns(names) for names in of_each))
    in_file = ((by, each["columns"]) for by, each in head["slices"].items() if isinstance(each, Mapping))
    return {f"{by}.{name}" for by, names in in_file for name in names}


def _require_columns(file: str, table: pa.Table, rule: Rule, slicing: set[str]) -> None:
    _require_there(file, table, rule.needed)
    names = table.column_names
    free = rule.free | slicing
    for name in names:
        column = table[name]
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if name in free:
            _require(not _is_list(kind), file, name, "single values", kind)
            continue
        if name in rule.lists:
            numbers = _is_list(kind) and pa.types.is_float64(kind.value_type)
            _require(numbers or pa.types.is_null(kind), file, name, "lists of numbers", kind)
            continue
        if name in rule.texts:
            _require(_is_text(kind), file, name, "text", kind)
        elif name in rule.flags:
            _require(pa.types.is_boolean(kind), file, name, "true or false", kind)
        elif column.null_count and (rule.all_known or name in rule.known):
            raise FileFormatError(f"{file}: column {name!r} has {column.null_count:,} nulls")
        elif not pa.types.is_null(kind):
            if name.startswith("n_") or name in ("n", "clusters", "largest", "singletons"):
                _whole(file, name, column, least=0, nulls=True)
            else:
                _require(pa.types.is_float64(kind), file, name, "float64", kind)
    if "largest_share" in names:
        shares = to_numpy(table["largest_share"].combine_chunks())
        _refuse_rows(file, "largest_share", (shares < 0) | (shares > 1), shares)
    if {"df", "se"} <= set(names):  # needed for intervals
        df, se = (to_numpy(table[name].combine_chunks()) for name in ("df", "se"))
        # otherwise errors were not computed for lack of memory
        there = ~(np.isnan(se) | to_numpy(pc.is_null(table["se"]).combine_chunks()))
        unlikely = (df < 1) | (
            ((df > MOST) | np.isnan(df)) & (se > 0)
        )  # unbounded if no other unit could differ
        _refuse_rows(file, "df", there & unlikely, df)


def _require_there(file: str, table: pa.Table, names: tuple[str, ...]) -> None:
    if missing := [name for name in names if name not in table.column_names]:
        raise FileFormatError(f"{file} has no column {missing[0]!r}")


def _require(is_so: bool, file: str, name: str, expected: str, kind: pa.DataType) -> None:
    if not is_so:
        raise FileFormatError(f"{file}: column {name!r} should be {expected}, not {str(kind)[:60]}")


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind))


def _refuse_rows(file: str, name: str, wrong: NDArray[np.bool_], values: NDArray[Any]) -> None:
    rows = np.flatnonzero(wrong)
    if rows.size:
        raise FileFormatError(
            f"{file}: column {name!r} has {rows.size:,} impossible values (rows {first_few(rows.tolist())}: "
            f"{first_few(values[rows[:4]].tolist())})"
        )


def _whole(
    file: str, name: str, column: pa.ChunkedArray, *, least: int, below: int = MOST, nulls: bool = False
) -> NDArray[np.int64]:
    """Return whole numbers from `least` to below `below`, -1 for null; raise FileFormatError for others."""
    kind = column.type
    _require(pa.types.is_integer(kind), file, name, "whole numbers", kind)
    if column.null_count and not nulls:
        raise FileFormatError(f"{file}: column {name!r} has {column.null_count:,} nulls")
    span = pc.min_max(column).as_py()
    if span["min"] is not None and (span["min"] < least or span["max"] >= below):
        raise FileFormatError(
            f"{file}: column {name!r} must range from {least:,} to {below - 1:,}, but ranges from "
            f"{span['min']:,} to {span['max']:,}"
        )
    return np.ascontiguousarray(column.cast(pa.int64()).fill_null(-1).to_numpy())


def _finite(
    file: str, name: str, column: pa.ChunkedArray, *, nulls: bool = False, undefined: bool = False
) -> None:
    _require(pa.types.is_float64(column.type), file, name, "float64", column.type)
    if column.null_count and not nulls:
        raise FileFormatError(f"{file}: column {name!r} has {column.null_count:,} nulls")
    values = to_numpy(column.drop_null().combine_chunks())
    _refuse_rows(file, name, ~np.isfinite(values) & ~(undefined & np.isnan(values)), values)


#: Columns of cells, for disjoint and for overlapping clusters, as written by `saved_files`.
_CELLS = ("true", "pred", "n", "weight", "fp", "fn")
_PARTS = ("pred_hits", "pred_misses", "true_hits", "true_misses", "pred_mates", "true_mates")
_COVER = ("true_clusters", "pred_clusters", "n", "weight", *_PARTS)


def _require_cells(tables: Mapping[str, pa.Table], *, overlapping: bool) -> None:
    """Raise FileFormatError unless all codes in cells are those of clusters, and counts match the items."""
    file, cells = "cells.parquet", tables["cells.parquet"]
    _require_there(file, cells, _COVER if overlapping else _CELLS)
    n_clusters = {side: len(tables[f"{side}_clusters.parquet"]) for side in ("true", "pred")}
    n = _whole(file, "n", cells["n"], least=1)
    if n.astype(np.float64).sum() > MOST:
        raise FileFormatError(f"{file} counts {n.astype(np.float64).sum():.3g} items")
    _finite(file, "weight", cells["weight"])
    if overlapping:
        _require_lists(file, cells, n_clusters)
    else:
        for side in ("true", "pred"):
            _whole(file, side, cells[side], least=0, below=n_clusters[side])
        for name in ("fp", "fn"):
            _finite(file, name, cells[name])
    if "items.parquet" in tables:
        _require_items(tables["items.parquet"], n, every=not overlapping)


def _require_items(items: pa.Table, n: NDArray[np.int64], *, every: bool) -> None:
    """Raise FileFormatError unless cells have as many rows as they count; unless `every`, unscored cells have none."""
    file = "items.parquet"
    _require_there(file, items, ("item", "true_cluster", "pred_cluster", "weight", "cell"))
    _finite(file, "weight", items["weight"], undefined=True)  # items that are not scored may have no weight
    cell = _whole(file, "cell", items["cell"], least=0, below=n.size, nulls=True)
    counted = np.bincount(cell[cell >= 0], minlength=n.size)
    other = (counted != n) & ((counted > 0) | every)
    if other.any():
        raise FileFormatError(
            f"{file} disagrees with the counts of cells.parquet in {np.count_nonzero(other):,} cells"
        )


def _require_lists(file: str, cells: pa.Table, n_clusters: Mapping[str, int]) -> None:
    """Raise FileFormatError unless each cell has sorted codes, and scored cells, which come first, have figures."""
    n_scored = len(cells) - cells[_PARTS[0]].null_count
    for name in _PARTS:
        column = cells[name]
        if column.null_count != len(cells) - n_scored or column.slice(0, n_scored).null_count:
            raise FileFormatError(f"{file}: column {name!r} does not cover the same cells as {_PARTS[0]!r}")
        if name.endswith("mates"):
            _whole(file, name, column, least=0, nulls=True)
        else:
            _finite(file, name, column, nulls=True)
    for side, below in n_clusters.items():
        name = f"{side}_clusters"
        lists = cells[name].combine_chunks()
        codes_of = lists.type.value_type if pa.types.is_large_list(lists.type) else pa.null()
        _require(pa.types.is_integer(codes_of), file, name, "lists of codes", lists.type)
        if lists.null_count:
            raise FileFormatError(f"{file}: column {name!r} has {lists.null_count:,} nulls")
        codes = _whole(file, name, pa.chunked_array([lists.flatten()]), least=0, below=below)
        lengths = np.diff(lists.offsets.to_numpy())
        _refuse_rows(file, name, lengths[:n_scored] < 1, lengths)
        row = np.repeat(np.arange(lengths.size), lengths)
        _refuse_rows(file, name, (np.diff(codes) <= 0) & (np.diff(row) == 0), codes)
