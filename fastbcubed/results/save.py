"""`digest.json` next to the tables of a large result: cluster data for pages, so that tables are not read again.

It is made of the tables while they are written. It says which files it is of: of others, damaged, or not there, it is
as if it had not been written, and its figures are computed from the tables.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.cell_parts import NoCells, to_keep
from fastbcubed.cells.contingency import SIDES, Codes, Contingency, few_cells
from fastbcubed.errors import EvaluationWarning, FileFormatError, NotKeptError, OptionError
from fastbcubed.inputs.arrays import table_of, to_numpy
from fastbcubed.inputs.locations import at_home
from fastbcubed.metrics.pairs import pair_counts
from fastbcubed.metrics.pointwise import LOSS_OF_SIDE
from fastbcubed.overlap.cover import Cover
from fastbcubed.results.clusters import columns_by_code, known_by_cluster
from fastbcubed.results.concentration import LossCurve, SizeClasses
from fastbcubed.results.evaluation_base import Evaluated
from fastbcubed.results.evaluation_scores import ByCluster
from fastbcubed.results.members import FirstMembers
from fastbcubed.results.outcomes import ListedOutcomes, named
from fastbcubed.results.repairs import KINDS, Ranked, Repairs, list_repairs, rank_repairs, require_repairable
from fastbcubed.results.saved import (
    FILES,
    ITEMS,
    MANIFEST,
    TOO_LARGE,
    as_table,
    is_large,
    item_table,
    labels_by_code,
    may_be_read_in_parts,
    sealed,
)
from fastbcubed.results.saved_clusters import (
    CODE,
    LIMITS,
    LISTED,
    MEMBERS,
    OPENED,
    Costliest,
    Digest,
    InFiles,
    Keyed,
    KnownCluster,
    MayGather,
    SavedClusters,
    Totals,
    UnreadLabels,
    look_up,
    none_known,
    rank_some,
)
from fastbcubed.results.slices import name_columns, rows_for_json
from fastbcubed.results.stored_items import StoredItems, StoredTable
from fastbcubed.results.summary import as_json
from fastbcubed.runtime import buffers
from fastbcubed.runtime.output_files import NO_BYTES, Staging, Stamp, TableWriter, without_nulls
from fastbcubed.runtime.threads import Pool, ahead, blocks

#: The tables of clusters, by side.
TABLES = ("true_clusters.parquet", "pred_clusters.parquet")
#: The file, the version of its layout, and the separator between its checksum and the rest.
DIGEST, LAYOUT, DIVIDER = "digest.json", 1, ',"digest":'
#: Columns that are no float64.
TYPES: dict[str, type] = {"splits": np.bool_} | dict.fromkeys(
    ("true", "pred", "codes", "counts", "n_clusters", "n_items", "n_items_of_cluster", CODE), np.int64
)
#: True clusters of which gathering may be among the first repairs, their cells, and members of clusters to open: more
#: are not looked at.
MOST_GATHERS, MOST_CELLS, MOST_MEMBERS = 1 << 17, 1 << 21, 1 << 19
#: Clusters that are looked at at once, and bytes that take a loss that is held, and a cell that is looked at.
AT_ONCE, LOSS_BYTES, CELL_BYTES = 1 << 18, 48, 256


class Passing:
    """Cluster data of both sides for digest and manifest, collected while the tables are written."""

    def __init__(self, lost: tuple[float, float], *, outer: bool, room: int | None) -> None:
        self.lost, self._room = lost, room
        self.totals = {side: Totals(side, outer=outer) for side in SIDES}
        self.costliest = {side: Costliest(LOSS_OF_SIDE[side], LISTED, lossy=True) for side in SIDES}
        self.gathers = MayGather(lost, LISTED)
        self._outcomes = {side: ListedOutcomes() for side in SIDES}
        self.too_many = False

    @property
    def most_cells(self) -> int:
        """How many cells may be looked at together."""
        return MOST_CELLS if self._room is None else min(MOST_CELLS, 2 * self._room // CELL_BYTES)

    def watched(self, side: str, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the tables of the clusters of a side, which are looked at on the way."""
        first = 0
        for table in tables:
            self._outcomes[side].add(table)
            for start, stop in blocks(table.num_rows, AT_ONCE):
                if not self.too_many:
                    self._look(side, first + start, table.slice(start, stop - start))
            first += table.num_rows
            yield table

    @property
    def outcomes(self) -> pa.Table:
        """Outcomes of the clusters; see `count_outcomes`."""
        return ListedOutcomes.of_sides(**self._outcomes)

    def _look(self, side: str, first: int, table: pa.Table) -> None:
        self.totals[side].add(table)
        self.costliest[side].add(first, table)
        if side == "true" and self.gathers.codes.size <= MOST_GATHERS:
            self.gathers.add(first, table)
        held = sum(each.held for each in self.totals.values())
        self.too_many |= self._room is not None and held * LOSS_BYTES > self._room


def make_digest(passing: Passing, ev: Evaluated, files: Mapping[str, Path], keep: str) -> Digest | None:
    """Return the digest of clusters that have passed by, and of their cells and items; None if they have no room."""
    if passing.too_many:
        return None
    found = {side: passing.costliest[side].in_order() for side in SIDES}
    written = _in_files(passing, ev, files, keep)
    return Digest(
        {side: totals.classes for side, totals in passing.totals.items()},
        {side: totals.curve.in_few_steps(LIMITS) for side, totals in passing.totals.items()},
        {side: to_numpy(table["code"]) for side, table in found.items()},
        *_looked_up(passing, ev, written, found),
    )


def _looked_up(
    passing: Passing, ev: Evaluated, written: InFiles, found: Mapping[str, pa.Table]
) -> tuple[Ranked | None, Keyed]:
    """Return the first repairs, and clusters to open; none where they have more cells or rows than should be read."""
    to_open = {side: _of_few_members(table) for side, table in found.items()}
    gathers, splits, clusters = passing.gathers.codes, found["pred"], written.saved_clusters
    ranked, opened = None, none_known()
    wanted = {"true": np.union1d(gathers, to_open["true"]), "pred": to_numpy(splits["code"])}
    if ev.contingency.weighting == "outer" or gathers.size > MOST_GATHERS:
        ranked = rank_repairs(ev, list(KINDS), LISTED) if ev.ranges is None else None
    elif _take(written, wanted, passing.most_cells):
        ranked = rank_some(written, clusters, written.cell_excerpt, passing.lost, splits, gathers, LISTED)
    if written.has_items and (
        written.cells_at_hand is not None or _take(written, to_open, passing.most_cells)
    ):
        opened = look_up(written, to_open, MEMBERS, MOST_MEMBERS)
    return ranked, opened


def _take(written: InFiles, codes: Codes, most: int) -> bool:
    """Look the cells of some clusters up; return whether they are within the limit."""
    if any(own.size for own in codes.values()):
        sizes_of = written.saved_clusters.sizes_of
        written.cells_at_hand = few_cells(written.contingency, codes, sizes_of, most)
        return written.cells_at_hand is not None
    return True


def _in_files(passing: Passing, ev: Evaluated, files: Mapping[str, Path], keep: str) -> InFiles:
    """Return the cluster data from the written tables of an evaluation."""
    tables, outer = [StoredTable(files[name]) for name in TABLES], ev.contingency.weighting == "outer"
    clusters = SavedClusters(dict(zip(SIDES, tables, strict=True)), outer=outer, totals=passing.totals)
    found = InFiles(
        ev.contingency, ev.metrics, ev.beta, ev.coverage, ev.policies, ev.overall,
        ev.kept_items() if keep == "items" else None, UnreadLabels(clusters), attributes=ev.attributes,
    )  # fmt: skip
    found.saved_clusters = clusters
    return found


def _of_few_members(table: pa.Table) -> NDArray[np.int64]:
    """Return the codes of the first clusters of a side that have no more members together than should be read."""
    chosen, left = np.empty(0, np.int64), MOST_MEMBERS // len(SIDES)
    for code, n in zip(*(table[name].to_pylist()[:OPENED] for name in ("code", "n_items")), strict=True):
        if n <= left:
            chosen, left = np.append(chosen, code), left - n
    return chosen


def as_text(digest: Digest, stamps: Mapping[str, Stamp]) -> str:
    """Return a digest as JSON with its checksum and the stamps of its files."""
    files = _made_of({name: stamp._asdict() for name, stamp in stamps.items()})
    whole = {"layout": LAYOUT, "files": files, **vars(digest)}
    text = json.dumps(whole, separators=(",", ":"), default=_plain)
    return f'{{"crc32":{zlib.crc32(text.encode())}{DIVIDER}{text}}}\n'


def _plain(value: Any) -> Any:
    """Return values that JSON lacks as lists and dicts."""
    if is_dataclass(value):
        return vars(value)
    return value.to_pydict() if isinstance(value, pa.Table) else value.tolist()


def _made_of(stamps: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stamps of the files that a digest covers."""
    return {name: stamps[name] for name in sorted(FILES["items"]) if name in stamps}


def read_digest(file: BinaryIO, head: Mapping[str, Any], sizes: Mapping[str, int]) -> Digest | None:
    """Return the digest of the files that a manifest names; None if it is of others, or not as it was written.

    `sizes` are the rows of these files.
    """
    begin, _, rest = file.read(TOO_LARGE).partition(DIVIDER.encode())
    text = rest.removesuffix(b"}\n")
    if begin != f'{{"crc32":{zlib.crc32(text)}'.encode():
        return None
    try:
        found = json.loads(text)
        if found["layout"] != LAYOUT or found["files"] != _made_of(head["files"]):
            return None
        digest = _digest(found)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, pa.ArrowException):
        return None
    return digest if _is_possible(digest, sizes) else None


def _digest(found: Mapping[str, Any]) -> Digest:
    """Return a digest from JSON."""
    ranked = found["repairs"]
    if ranked is not None:
        running = np.array(ranked["running"], np.float64).reshape(-1, 2)
        ranked = Ranked(Repairs(**_arrays(ranked["repairs"])), running)
    return Digest(
        {side: SizeClasses(**_arrays(each)) for side, each in found["classes"].items()},
        {side: _curve(**each) for side, each in found["curves"].items()},
        _arrays(found["codes"]),
        ranked,
        {
            side: {int(code): _known(**each) for code, each in own.items()}
            for side, own in found["opened"].items()
        },
    )


def _arrays(columns: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return columns of numbers, those that may be empty as of the type that they have."""
    return {name: np.array(values, TYPES.get(name, np.float64)) for name, values in columns.items()}


def _curve(n_clusters: int, losses: list[float], counts: list[int]) -> LossCurve:
    return LossCurve(n_clusters, **_arrays({"losses": losses, "counts": counts}))


def _known(figures: Mapping[str, Any], first: Mapping[str, Any]) -> KnownCluster:
    rows = [np.array(own, np.int64) for own in first["rows"]]
    parts = table_of(_arrays(first["parts"]))
    alone = np.array(first["alone"], np.int64)
    return KnownCluster(figures, FirstMembers(first["side"], parts, rows, first["n_alone"], alone))


def _is_possible(digest: Digest, sizes: Mapping[str, int]) -> bool:
    """Return whether the clusters and rows of a digest exist."""
    n = {side: sizes[f"{side}_clusters.parquet"] for side in SIDES}
    named = [(own, n[side]) for side, own in digest.codes.items()]
    for side, opened in digest.opened.items():
        for each in opened.values():
            named.append((to_numpy(each.first.parts[CODE]), n[SIDES[side == "true"]]))
            named.append((each.first.every_row(), sizes.get(ITEMS, 0)))
    if digest.repairs is not None:
        repairs = digest.repairs.repairs
        named += [(repairs.codes[repairs.splits], n["pred"]), (repairs.codes[~repairs.splits], n["true"])]
    return all(((own >= 0) & (own < most)).all() for own, most in named)


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
    """Write an evaluation; see `Evaluation.save`. The result of `more` is added to the manifest."""
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
            buffers.release()  # the memory of writing
            pa.default_memory_pool().release_unused()
            digest = make_digest(passing, ev, {name: staging.path(name) for name in files}, keep)
        if digest is None:
            obsolete.append(DIGEST)
        else:
            staging.path(DIGEST).write_text(as_text(digest, files), encoding="utf-8")
        staging.publish(sealed(head, files, staging.name), obsolete)


def _require_kept(ev: ByCluster, keep: str) -> None:
    """Raise NotKeptError if data to be written were not kept, with advice on writing the rest."""
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
    """Return a path, or raise OptionError if it is none."""
    if not isinstance(directory, str | os.PathLike) or not str(directory) or "\0" in str(directory):
        raise OptionError(f"a directory is named by a path, not {directory!r}")
    return Path(at_home(os.fspath(directory)))


def _write_all(tasks: Mapping[str, Callable[[], Iterable[pa.Table]]], staging: Staging) -> dict[str, Stamp]:
    """Write files from tables that are made one after the other; return the stamp of each.

    The true clusters are about half of the work, and are written in parallel to the others.
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
    """Return the description of an evaluation as JSON has it; many slices are only in their file."""
    slices = {
        by: rows_for_json(table)
        if table.num_rows <= SLICES_IN_MANIFEST
        else {"n_slices": table.num_rows, "columns": name_columns(table.column_names)}
        for by, table in ev.sliced.items()
    }
    return dict(json.loads(as_json(ev._described(slices), None)))


def _slices(ev: Evaluated) -> Iterator[pa.Table]:
    """Yield the requested slices: slicing, slice as text, scores, the values of many."""
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
    """Return a collector of clusters while they are written; None for results that are read whole."""
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
    """Return a table whose NumPy columns are marked as free of nulls."""
    return without_nulls(
        table_of(columns), [name for name, each in columns.items() if isinstance(each, np.ndarray)]
    )


def _pair_weight(table: Contingency) -> float | None:
    """Return the pair weight, which scores of pairs need in place of the weights of items."""
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
