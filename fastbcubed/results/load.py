"""Loading of saved results: read whole and checked or, if large, read part by part."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa

from fastbcubed._version import __version__
from fastbcubed.align.policies import Coverage, Policies
from fastbcubed.cells.contingency import CELL, SIDES, Contingency, OneSided, ScoredRows
from fastbcubed.cells.excerpts import UnreadCells
from fastbcubed.errors import FileFormatError, NotKeptError, arg, first_few, quoted
from fastbcubed.inputs.arrays import table_of
from fastbcubed.inputs.reading_notes import CODES
from fastbcubed.metrics.metric import Metric
from fastbcubed.render.document import LAYOUT
from fastbcubed.results.cluster_outcomes import SCHEMA
from fastbcubed.results.evaluation import Evaluation
from fastbcubed.results.figures import NOT_ALL_MENTIONS, Bounds, Figures, Scores
from fastbcubed.results.influences import Errors
from fastbcubed.results.items import Items, Kept, TableItems
from fastbcubed.results.large_tables import LargeTable
from fastbcubed.results.lazy_tables import ONLY_HERE, LazyTables
from fastbcubed.results.origin import Origin
from fastbcubed.results.save import as_path
from fastbcubed.results.saved_checks import require_sound
from fastbcubed.results.saved_files import (
    ITEMS,
    MANIFEST,
    PAGE,
    SLICES,
    TableLabels,
    bytes_of_table,
    floats,
    from_table,
    integers,
    is_in_file,
    is_large,
    may_be_read_in_parts,
    metrics_by_name,
    read_manifest,
    read_table,
)
from fastbcubed.results.slices import name_columns, without_errors
from fastbcubed.results.stored_tables import StoredRows, StoredTable
from fastbcubed.results.table import Table
from fastbcubed.results.unit_cells import Units
from fastbcubed.results.warnings import from_saved
from fastbcubed.runtime.memory_budget import release, require_within
from fastbcubed.runtime.output_files import NO_BYTES, Stamp, open_regular, stamp_of
from fastbcubed.runtime.saved_figures import NUMBER, NUMBERS, numbers_in, require_shape, texts_in, with_nan

#: Maximum number of attempts to open the files if another process is replacing them.
ATTEMPTS = 8

#: Memory needed to load a result whole, as a multiple of its tables, and bytes allowed beyond the limit.
WHOLE, BESIDE = 3, 128 << 20

#: Function that makes a result from an evaluation, or from tables by name, and from the manifest.
Make = Callable[[Any, Mapping[str, Any]], Any]


def read_saved(directory: Any, make: Make, *, check: bool = True, limit: int | None = None) -> Any:
    """Return the result that `make` makes of the saved parts and the manifest; see `fastbcubed.load`.

    The files are first checked to be those of one result, as saved, so that a damaged directory is refused. Without
    `check`, the files of a large evaluation are checked when they are read. An evaluation that needs more memory than
    `limit` is also read on demand; any other result that does is refused.
    """
    path = as_path(directory)
    _require_directory(path)
    if limit is not None:
        release()
    with ExitStack() as stack:
        head, files = _open_all(path, stack, whole=check)
        of_tables = "kind" in head
        needed = 0 if limit is None else WHOLE * sum(map(bytes_of_table, files.values())) - BESIDE
        wide = limit is not None and needed > limit
        with _told(path):
            found = None if of_tables or (check and not wide) else _unread(path, head, files, limit, needed)
            if found is not None:
                stack.pop_all()
                return make(found, head)
        require_within(limit, needed, f"{path}", "its tables")
        with _told(path):
            many = _has_many_slices(head)
        tables: dict[str, Any] = {
            name: StoredTable(os.fdopen(os.dup(file.fileno()), "rb"))
            if many and name == SLICES
            else read_table(file, path / name, frugal=limit is not None)
            for name, file in files.items()
        }
    with _told(path):
        require_sound(tables, head)
        if of_tables:
            return make({name.removesuffix(".parquet"): table for name, table in tables.items()}, head)
        return make(_assembled(head, tables), head)


def _has_many_slices(head: Mapping[str, Any]) -> bool:
    """Return whether a manifest refers to slices, of one result or of several runs, that are only in their file."""
    return "n_rows" in head or any(map(is_in_file, head.get("slices", {}).values()))


def evaluation_of(content: Mapping[str, Any]) -> Evaluation:
    """Return an evaluation, without clusters and items, from the content that `save.scores_to_save` returned."""
    return _assembled({**content, "keep": "scores", "metrics": list(content["overall"])}, {})


def beta_in(definition: Mapping[str, Any]) -> float:
    """Return the beta in a manifest, where null is infinite."""
    return math.inf if definition["beta"] is None else float(definition["beta"])


def _metrics(head: Mapping[str, Any]) -> list[Metric]:
    """Return the scores in a manifest; user-defined ones have no function."""
    definition, own = head["definition"], head.get("own_scores", {})
    known = {each.name: each for each in metrics_by_name(head["metrics"], beta_in(definition), definition)}
    return [known.get(name) or _own_score(name, own.get(name, {})) for name in head["metrics"]]


def _own_score(name: str, about: Mapping[str, Any]) -> Metric:
    """Return a user-defined score, without its function, from its entry in a manifest."""
    texts = {"family": "own", "best": "neither", "summary": "", "definition": "", "source": "", **about}
    ends = {"low": -np.inf, "high": np.inf}
    ends |= {end: about[end] for end in ends if about.get(end) is not None}
    saved: Literal["mean", "other"] = "mean" if texts.pop("mean", False) else "other"
    return Metric(name, **{**texts, **ends}, saved=saved, score=partial(_not_saved, name))


def _not_saved(name: str, *_: Any) -> float:
    """Raise NotKeptError; replaces the function of a loaded user-defined score."""
    raise NotKeptError(f"results are saved without the function of {name}; evaluate again")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Convert errors in the content of files to a FileFormatError that names the result."""
    try:
        yield
    except (pa.ArrowException, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path} contains no saved evaluation: {str(error)[:1000]}") from error


def _unread(
    path: Path, head: Mapping[str, Any], files: Mapping[str, BinaryIO], limit: int | None, needed: int
) -> Evaluation | None:
    """Return an evaluation whose files are read on demand; None if it is to be loaded whole.

    An evaluation is loaded whole if it is small, and needs no more bytes than the limit.
    """
    stamps = {name: Stamp(**each) for name, each in head["files"].items()}
    is_wide = limit is not None and needed > limit
    if not may_be_read_in_parts(head) or not (is_wide or is_large(stamps)):
        return None

    def whole() -> Evaluation:
        require_within(limit, needed, f"all cells and clusters of {path}", "they")
        ev, now = read_saved(path, lambda *found: found)
        if now["crc32"] != head["crc32"]:
            raise FileFormatError(
                f"{path} contains a different result from when it was opened; load it again"
            )
        assert isinstance(ev, Evaluation)
        return ev

    how = _how(head)
    stored = {name: StoredTable(file) for name, file in files.items()}
    tables = LazyTables(
        {side: stored[f"{side}_clusters.parquet"] for side in SIDES},
        how["weighting"] == "outer", head["recall_alone"], whole, lambda: _page(path, head),
    )  # fmt: skip
    items = stored.get(ITEMS)
    slices = stored[SLICES] if _has_many_slices(head) and SLICES in files else None
    file = stored["cells.parquet"]
    rows = None if items is None else StoredRows(items, weighted=how["weighted"])
    cells = UnreadCells(
        file, lambda: whole().contingency, rows, **how,
        n_cells=file.num_rows, n_codes={side: tables.clusters[side].num_rows for side in SIDES},
        n_items=head["summary"]["true"]["items"],
        total_weight=sum(row["weight"] for row in head["outcomes"] if row["side"] == "true"),
    )  # fmt: skip
    kept = None if items is None else TableItems(items, head["left_out"])
    return _of_manifest(head, cells, kept, tables.labels, slices, tables, limit)


def _page(path: Path, head: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the saved page of a result as plain data; None if missing, changed, or written by another version."""
    for place in (path / PAGE, path / head["staged_in"] / PAGE):
        with suppress(FileFormatError, OSError), open_regular(place) as file:
            text = file.read()
            if PAGE in head["files"] and NO_BYTES.and_then(text) == Stamp(**head["files"][PAGE]):
                data: dict[str, Any] = json.loads(text)
                return data if (data["fastbcubed"], data["layout"]) == (__version__, LAYOUT) else None
    return None


def _require_directory(path: Path) -> None:
    """Raise FileFormatError if this is a file, with advice on what to load instead."""
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
    """Return the manifest and the files that it lists; if `whole`, compare their content with its checksums."""
    for _ in range(ATTEMPTS):
        head = read_manifest(directory)
        try:
            files = {
                name: stack.enter_context(_open(directory, name, head, whole=whole or "kind" in head))
                for name in head["files"]
                if name != PAGE
            }
        except FileFormatError:
            if read_manifest(directory)["staged_in"] == head["staged_in"]:
                raise
        else:
            return head, files
    raise FileFormatError(
        f"the files of {directory} keep being replaced; load them when the writer has finished"
    )


def _open(directory: Path, name: str, head: Mapping[str, Any], *, whole: bool) -> BinaryIO:
    """Open a file of a saved evaluation, in its place or where it was staged, if it has not been moved yet."""
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
        f"{faults[0]}. It is damaged, or its files belong to several evaluations: evaluate and save again"
    )


def _assembled(head: Mapping[str, Any], tables: Mapping[str, Any]) -> Evaluation:
    stored = tables.get(ITEMS)
    clusters = {side: tables[f"{side}_clusters.parquet"] for side in SIDES if head["keep"] != "scores"}
    return _of_manifest(
        head,
        _contingency(head, tables, clusters),
        None if stored is None else TableItems(stored, head["left_out"]),
        TableLabels({side: table["cluster"] for side, table in clusters.items()}) if clusters else None,
        tables[SLICES] if _has_many_slices(head) and SLICES in tables else None,
    )


def _of_manifest(
    head: Mapping[str, Any],
    contingency: Contingency,
    items: Items | None,
    labels: Any,
    slices: StoredTable | None,
    lazy: LazyTables | None = None,
    limit: int | None = None,
) -> Evaluation:
    """Return an evaluation with the scores in a manifest, and with slices from their file."""
    definition = head["definition"]
    require_shape(definition, {"overlapping": bool, "weighted": bool, "weighting": str}, "definition")
    require_shape(head["manifest"], {}, "manifest")
    policies, bounds = _policies(definition), head["coverage"]["bounds"]
    sliced, told = _sliced(head["slices"], slices), from_saved(head["warnings"])
    figures = Figures(
        _metrics(head),
        beta_in(definition),
        Scores(numbers_in(head["overall"])),
        Coverage.of(head["coverage"]),
        policies,
        texts_in(head["not_computed"]),
        {by: without_errors(table) for by, table in sliced.items()},
        sliced_with_errors=sliced,
        errors=_errors(head) if "errors" in head else None,
        warnings=told,
        change_if_alone=head.get("change_if_alone"),
        of_mentions=None if head.get("all_mentions", True) else NOT_ALL_MENTIONS,
    )
    if lazy is not None or not contingency.has_cells:  # otherwise they are computed from the cells
        require_shape(head["summary"], (_SUMMARY, None), "summary")
        require_shape(head["outcomes"], (_OUTCOMES, None), "outcomes")
        for own in (head["summary"] or {}).values():
            require_shape(own.get("outcomes"), ({str: int}, None), "outcomes")
        figures.summary = head["summary"]
        figures.bounds = None if bounds is None else Bounds(**with_nan(bounds))
        if head["outcomes"] is not None:
            if wrong := {row["side"] for row in head["outcomes"]} - {*SIDES}:
                raise ValueError(f"outcomes of {first_few(wrong)}, which is no side")
            figures.outcomes = pa.Table.from_pylist(head["outcomes"], SCHEMA)
    names = {side: head[side] for side in ("truth", "prediction")}
    require_shape(names, {str: str}, "names")
    notes = [w for w in told if w["code"] in CODES]
    reading = head.get("reading", dict.fromkeys(names))  # earlier versions did not save it
    origin = Origin(names, notes=notes, reading=reading, saved=head["manifest"])
    return Evaluation(
        figures, Kept(contingency, policies, items, labels, lazy=lazy, memory_limit=limit), origin
    )


def _errors(head: Mapping[str, Any]) -> Errors:
    """Return the standard errors in a manifest; degrees of freedom not saved are the number of units minus one.

    Where the manifest does not say how far the ends of intervals move, they do not move.
    """
    require_shape(head["units"], {"n": int}, "units")
    of, units = numbers_in(head["errors"]), Units(**numbers_in(head["units"]))
    df = numbers_in(head.get("degrees_of_freedom") or dict.fromkeys(of, max(1, units.n - 1)), of)
    if unknown := [name for name, error in of.items() if error > 0 and not df[name] >= 1]:
        raise ValueError(f"the degrees of freedom of {quoted(unknown[0])} are not a number from 1")
    return Errors(of, df, numbers_in(head.get("not_drawn") or dict.fromkeys(of, 0.0), of), units)


#: The summary of both sides in a manifest, and the outcomes of clusters.
_SUMMARY = {
    side: {
        **dict.fromkeys(("items", "clusters", "singletons", "largest", "exact"), (int, None)),
        "size_quantiles": NUMBERS,
    }
    for side in SIDES
}
_OUTCOMES = [
    {
        **dict.fromkeys(("side", "outcome"), str),
        **dict.fromkeys(("n_clusters", "n_items"), int),
        **dict.fromkeys(("weight", "precision_loss", "recall_loss"), NUMBER),
    }
]


def _policies(definition: Mapping[str, Any]) -> Policies:
    noise = definition["noise"]
    if isinstance(noise, Mapping):
        noise = {side: tuple(of) if isinstance(of, list) else of for side, of in noise.items()}
    return Policies.of(
        definition["unmatched"], definition["nulls"], definition["duplicates"],
        tuple(noise) if isinstance(noise, list) else noise,
    )  # fmt: skip


def _how(head: Mapping[str, Any]) -> dict[str, Any]:
    """Return how weights and prediction-only items count."""
    definition = head["definition"]
    outside = _policies(definition).prediction == "outside"
    return {"weighted": definition["weighted"], "weighting": definition["weighting"], "outside": outside}


def _sliced(slices: Mapping[str, Any], stored: StoredTable | None) -> dict[str, Table]:
    """Return the slices by slicing, from the manifest or, if there are many, from their file."""
    values = {f"{by}.{name}" for by, each in slices.items() if is_in_file(each) for name in each["columns"]}
    found, first = dict[str, Table](), 0
    for by, each in slices.items():
        n = each["n_slices"] if is_in_file(each) else len(each)
        found[by] = _slices_in_file(by, each, first, stored, values) if is_in_file(each) else _slices(each)
        first += n
    if stored is not None and first != stored.num_rows:
        raise FileFormatError(f"{SLICES} has {stored.num_rows} slices, and {MANIFEST} says {first}")
    return found


def _slices_in_file(
    by: str, about: Mapping[str, Any], first: int, stored: StoredTable | None, other: set[str]
) -> Table:
    """Return the slices of one slicing from their file, in which its values have columns of their own."""
    if stored is None:
        raise FileFormatError(f"{SLICES} is missing")
    columns, n = about["columns"], about["n_slices"]
    scores = [name for name in stored.column_names if name not in {"by", "slice", "n_items"} | other]

    def change(table: pa.Table) -> pa.Table:
        found: dict[str, Any] = {name: table[f"{by}.{name}"] for name in columns}
        return table_of(found | {name: table[name] for name in ("n_items", *scores)})

    what = f"the {n:,} slices by {by!r}"
    return LargeTable(stored, what, 0, None, (first, first + n), change)


def _slices(rows: list[dict[str, Any]]) -> Table:
    """Return slices as a table, with name columns of the types that JSON preserved."""
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    names = name_columns(columns)
    for name, values in columns.items():
        if name in names:
            if any(type(value) is float for value in values):  # NaN and infinities are text in JSON
                values = [float(value) if isinstance(value, str) else value for value in values]
            large = any(type(value) is int and value >= 1 << 63 for value in values)
            columns[name] = pa.array(values, pa.uint64() if large else None)
        elif any(type(value) is not int for value in values):
            columns[name] = np.array([np.nan if value is None else value for value in values], np.float64)
    return Table(pa.table(columns))


def _contingency(
    head: Mapping[str, Any], tables: Mapping[str, pa.Table], clusters: Mapping[str, pa.Table]
) -> Contingency:
    """Return the cells, or what is known of them if they were not kept."""
    how, overlapping = _how(head), head["definition"]["overlapping"]
    if not clusters:
        return UnreadCells(n_items=head["summary"]["true"]["items"], **how, overlapping=overlapping)
    cells, rows = tables["cells.parquet"], None
    if (stored := tables.get(ITEMS)) is not None:
        cell = integers(stored, "cell")
        rows = ScoredRows(lambda: cell, floats(stored, "weight") if how["weighted"] else None, cell.size)
    sizes = (len(clusters["true"]), len(clusters["pred"]))
    if overlapping:
        return from_table(cells, sizes, rows=rows, **how)
    records, pred = np.empty(len(cells), CELL), integers(cells, "pred")
    for name in ("true", "n"):
        records[name] = integers(cells, name)
    for name in ("weight", "fp", "fn"):
        records[name] = floats(cells, name)
    one_sided = {}
    for side, table in clusters.items():
        if ONLY_HERE in table.column_names:
            n = integers(table, ONLY_HERE)
            one_sided[side] = OneSided(np.arange(n.size), n, floats(table, "weight_only_here"))
    return Contingency(
        records, lambda: pred, sizes, **how, one_sided=one_sided, rows=rows, pair_weight=head["pair_weight"]
    )
