"""`digest.json` beside the tables of a large result: what pages ask of all clusters, so that nobody reads them again.

It is made of the tables while they are written. It says which files it is of: of others, damaged, or not there, it is
as if it had not been written, and what it would tell is worked out from the tables.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.excerpts import Codes, few_cells
from fastbcubed.cells.records import SIDES
from fastbcubed.metrics.losses import LOSS_OF_SIDE
from fastbcubed.results.evaluated import Evaluated
from fastbcubed.results.files.manifest import FILES, ITEMS, TOO_LARGE
from fastbcubed.results.files.unread import InFiles, UnreadLabels
from fastbcubed.results.items.stored_items import StoredTable
from fastbcubed.results.listings.concentration import LossCurve
from fastbcubed.results.listings.digest import LIMITS, LISTED, MEMBERS, OPENED, Digest
from fastbcubed.results.listings.first_members import FirstMembers
from fastbcubed.results.listings.known_clusters import CODE, Keyed, KnownCluster, look_up, none_known
from fastbcubed.results.listings.outcomes import ListedOutcomes
from fastbcubed.results.listings.passing_clusters import Costliest, MayGather, Totals
from fastbcubed.results.listings.repairs import KINDS, Ranked, Repairs, rank_repairs
from fastbcubed.results.listings.repairs_in_files import rank_some
from fastbcubed.results.listings.saved_clusters import SavedClusters
from fastbcubed.results.listings.size_classes import SizeClasses
from fastbcubed.runtime.checksums import Stamp
from fastbcubed.runtime.pool import blocks
from fastbcubed.sources.arrays import table_of, to_numpy

#: The tables of clusters, by side.
TABLES = ("true_clusters.parquet", "pred_clusters.parquet")
#: The file, the version of its layout, and what is between its checksum and the rest.
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
    """What a digest, and a manifest, take of the clusters of both sides while their tables are written."""

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
        """What became of the clusters; see `count_outcomes`."""
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
    """Look the cells of some clusters up; tell whether they are not more than so many."""
    if any(own.size for own in codes.values()):
        sizes_of = written.saved_clusters.sizes_of
        written.cells_at_hand = few_cells(written.contingency, codes, sizes_of, most)
        return written.cells_at_hand is not None
    return True


def _in_files(passing: Passing, ev: Evaluated, files: Mapping[str, Path], keep: str) -> InFiles:
    """Return what the tables that were written of an evaluation tell of its clusters."""
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
    """Return a digest as JSON, which has its own checksum, and says of which files it is."""
    files = _made_of({name: stamp._asdict() for name, stamp in stamps.items()})
    whole = {"layout": LAYOUT, "files": files, **vars(digest)}
    text = json.dumps(whole, separators=(",", ":"), default=_plain)
    return f'{{"crc32":{zlib.crc32(text.encode())}{DIVIDER}{text}}}\n'


def _plain(value: Any) -> Any:
    """Return what JSON has no word for as lists and dicts."""
    if is_dataclass(value):
        return vars(value)
    return value.to_pydict() if isinstance(value, pa.Table) else value.tolist()


def _made_of(stamps: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stamps of those files that a digest tells of."""
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
    """Return a digest from what JSON says."""
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
    """Tell whether a digest names clusters and rows that there are."""
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
