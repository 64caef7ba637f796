"""Scores by slice from sums that are collected block by block, and the rows of items.parquet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.attributes import refused
from fastbcubed.align.row_blocks import Carried
from fastbcubed.align.stash import Stash
from fastbcubed.cells.cell_parts import RowBlock
from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import TRUTH, SliceError
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import combined, from_numpy, from_texts, table_of, to_numpy
from fastbcubed.inputs.pair import Pair
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.items import TableItems, attribute_sides
from fastbcubed.results.large_tables import LargeTable
from fastbcubed.results.saved_files import destination, items_of_block
from fastbcubed.results.slice_bins import Bins
from fastbcubed.results.slices import (
    ID,
    Element,
    Sliced,
    SliceKey,
    as_subset,
    attribute_home,
    beside,
    crossed,
    elements,
    encoded,
    missing_items,
    named,
    names_in,
    nothing_scored,
    numbered_slices,
    size_named,
    size_names,
    slice_name,
)
from fastbcubed.results.stored_tables import StoredTable
from fastbcubed.results.table import Table
from fastbcubed.runtime.output_files import TableWriter
from fastbcubed.runtime.spill import Spill, spill_directory
from fastbcubed.runtime.threads import blocks

#: Bytes of slice sums that may always be held in memory, and the divisor of the memory limit for those of all slicings.
LEAST_WAITING, WAITING_SHARE = 1 << 20, 8
#: Bytes of sorted slices read at a time from each run, and number of runs merged at a time.
CHUNK, RUNS_AT_ONCE = 1 << 20, 16
#: Maximum number of slices of one slicing held in memory as a table; more go to a file.
FEW = 1 << 12
#: Types whose equal values are adjacent when sorted, unlike NaN, which does not equal itself.
SORTED_ALONE = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_temporal)

Sums = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Part:
    """Distinct slices in ascending order, nulls last, and their sums by name, each with its rounding error."""

    keys: pa.Table
    sums: Mapping[str, Sums]

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Number of bytes in memory."""
        return int(self.keys.nbytes) + sum(each.nbytes for both in self.sums.values() for each in both)

    def between(self, start: int, stop: int) -> Part:
        """Return consecutive slices."""
        some = {name: (added[start:stop], rest[start:stop]) for name, (added, rest) in self.sums.items()}
        return Part(self.keys.slice(start, stop - start), some)

    def in_chunks(self, most: int) -> Iterator[Part]:
        """Yield consecutive slices in parts of at most `most` bytes, but of at least one slice."""
        n = len(self)
        for start, stop in blocks(n, max(1, n * most // max(1, self.nbytes))):
            yield self.between(start, stop)

    def as_table(self) -> pa.Table:
        """Return slices and sums as a single table."""
        columns = {f"key {k}": column for k, column in enumerate(self.keys.columns)}
        for k, both in enumerate(self.sums.values()):
            for what, each in zip(WHAT, both, strict=True):
                columns[f"{what} {k}"] = from_numpy(np.ascontiguousarray(each))
        return pa.table(columns)

    @classmethod
    def of_table(cls, table: pa.Table, keys: Sequence[str], sums: Sequence[str]) -> Part:
        """Return the slices and sums in a table made by `as_table`."""
        found = pa.table({name: table[f"key {k}"] for k, name in enumerate(keys)})
        added, rest = (
            [to_numpy(table[f"{what} {k}"].combine_chunks()) for k in range(len(sums))] for what in WHAT
        )
        return cls(found, dict(zip(sums, zip(added, rest, strict=True), strict=True)))


#: The two columns of a sum: the sum and its rounding error.
WHAT = ("sum", "rest")


class Runs:
    """Sorted runs of slices on disk, of which only a small part is in memory at a time.

    Idea: an external merge sort. As runs are sorted, only the next slices of each need to be in memory. As soon as a
    level has `RUNS_AT_ONCE` runs, they are merged into one of the next level, so that memory does not grow with the
    number of runs. A hash table on disk would not list the slices in ascending order, as results do.
    """

    def __init__(self, keys: Sequence[str], sums: Sequence[str], spill: Spill) -> None:
        self._keys, self._sums = keys, sums
        self._stash = Stash(spill)
        self._levels: list[list[list[int]]] = [[]]
        self._n = 0

    def __bool__(self) -> bool:
        return any(self._levels)

    def put(self, parts: Iterable[Part], level: int = 0) -> None:
        """Add a run, given as consecutive parts."""
        run = []
        for part in parts:
            for chunk in part.in_chunks(CHUNK):
                self._stash.put(self._n, chunk.as_table())
                run.append(self._n)
                self._n += 1
        if level == len(self._levels):
            self._levels.append([])
        self._levels[level].append(run)
        if len(self._levels[level]) >= RUNS_AT_ONCE:
            runs, self._levels[level] = self._levels[level], []
            self.put(merged(map(self._read, runs)), level + 1)

    def _read(self, run: Sequence[int]) -> Iterator[Part]:
        for k in run:
            yield Part.of_table(self._stash.read_batch(k), self._keys, self._sums)

    def all(self) -> Iterator[Part]:
        """Yield all slices, each once, in ascending order."""
        runs = [run for level in reversed(self._levels) for run in level]
        while len(runs) > RUNS_AT_ONCE:  # the last runs are the shortest
            self._levels = [[]]
            few, runs = runs[-RUNS_AT_ONCE:], runs[:-RUNS_AT_ONCE]
            self.put(merged(map(self._read, few)))
            runs += self._levels[0]
        return merged(map(self._read, runs))


def merged(runs: Iterable[Iterator[Part]]) -> Iterator[Part]:
    """Merge sorted runs into one that has each slice once, with sums added in the order of the runs.

    At most two chunks of each run are held. A slice is complete once, in each unfinished run, the last slice read is
    not before it, since all later slices of that run come after.
    """
    left = [iter(run) for run in runs]
    heads: list[Part | None] = [None] * len(left)
    goes_on = [True] * len(left)
    while True:
        for k, run in enumerate(left):
            if goes_on[k] and ((head := heads[k]) is None or head.nbytes < CHUNK):
                coming = next(run, None)
                goes_on[k] = coming is not None
                if coming is not None:
                    heads[k] = coming if head is None else _joined([head, coming])
        there = [k for k, head in enumerate(heads) if head is not None]
        if not there:
            return
        parts = [part for part in heads if part is not None]
        if len(parts) == 1:
            yield parts[0]
            heads[there[0]] = None
            continue
        cut = _numbered(parts)
        codes = np.split(cut.codes, np.cumsum([len(part) for part in parts])[:-1])
        lasts = [int(own[-1]) for k, own in zip(there, codes, strict=True) if goes_on[k]]
        n_whole = min(lasts, default=cut.n_slices - 1) + 1
        ends = [int(np.searchsorted(own, n_whole)) for own in codes]
        keys = pa.table({name: values[:n_whole] for name, values in cut.values.items()})
        taken = [part.between(0, end) for part, end in zip(parts, ends, strict=True)]
        yield Part(keys, _added([own[:end] for own, end in zip(codes, ends, strict=True)], taken, n_whole))
        for k, part, end in zip(there, parts, ends, strict=True):
            heads[k] = part.between(end, len(part)) if end < len(part) else None


def _joined(parts: Sequence[Part]) -> Part:
    """Return consecutive slices of one run as one part."""
    keys = pa.concat_tables([part.keys for part in parts], promote_options="permissive").combine_chunks()
    sums = {
        name: tuple(np.concatenate([part.sums[name][k] for part in parts]) for k in range(2))
        for name in parts[0].sums
    }
    return Part(keys, sums)  # type: ignore[arg-type]


def _numbered(parts: Sequence[Part]) -> Sliced:
    """Return the slices of all parts numbered in ascending order, nulls last."""
    whole = pa.concat_tables([part.keys for part in parts], promote_options="permissive").combine_chunks()
    keys = [_encoded(name, whole[name]) for name in whole.column_names]
    return keys[0] if len(keys) == 1 else crossed(keys, np.ones(whole.num_rows, np.bool_))


def _added(codes: Sequence[NDArray[np.int64]], parts: Sequence[Part], n_slices: int) -> dict[str, Sums]:
    """Return the sums of slices by number, added in the order of parts, with their rounding errors."""
    found: dict[str, Sums] = {}
    for name, (first, _) in parts[0].sums.items():
        added, rest = (np.zeros(n_slices, first.dtype) for _ in range(2))  # counts of items are exact
        for own, part in zip(codes, parts, strict=True):
            if first.dtype.kind == "i":
                kernels.sums.count_by_code(own, part.sums[name][0], added)
                continue
            for each in part.sums[name]:
                kernels.sums.add_by_code(own, each, np.ones(own.size), None, added, rest)
        found[name] = added, rest
    return found


class SortedSums:
    """Sums by slice, held in memory if there are few slices, otherwise on disk.

    Parameters
    ----------
    names : iterable of str
        The columns that name a slice.
    spill : Spill or None
        Where the sums of many slices are stored; if None, all are held in memory.
    limit : int
        Maximum bytes of results, part of which these sums may take.
    """

    def __init__(self, names: Iterable[str], spill: Spill | None, limit: int = 0) -> None:
        self._columns, self._spill, self._limit = list(names), spill, limit
        self._runs: Runs | None = None
        self._parts: list[Part] = []
        self._waiting = self._least = 0

    @property
    def held(self) -> int:
        """Number of bytes of the sums held in memory."""
        return sum(part.nbytes for part in self._parts)

    def add(self, part: Part) -> None:
        """Add slices; equal slices are combined whenever memory has doubled, and many slices go to disk."""
        self._parts.append(part)
        self._waiting += part.nbytes
        if self._waiting <= max(self._room, 2 * self._least):
            return
        whole = self.in_one()
        self._waiting = self._least = whole.nbytes
        if self._spill is not None and 2 * whole.nbytes > self._room:
            self._to_disk(whole)
        else:
            self._parts = [whole]

    @property
    def _room(self) -> int:
        return max(LEAST_WAITING, self._limit // WAITING_SHARE)

    def _to_disk(self, whole: Part) -> None:
        assert self._spill is not None
        if self._runs is None:
            self._runs = Runs(self._columns, list(whole.sums), self._spill)
        self._parts, self._waiting, self._least = [], 0, 0
        self._runs.put([whole])

    def in_one(self) -> Part:
        """Return the parts in memory as one, and empty the list."""
        parts, self._parts = self._parts, []
        if len(parts) == 1:
            return parts[0]
        cut = _numbered(parts)
        codes = np.split(cut.codes, np.cumsum([len(part) for part in parts])[:-1])
        return Part(pa.table(dict(cut.values)), _added(codes, parts, cut.n_slices))

    def all(self) -> Iterator[Part]:
        """Yield all slices in ascending order, in parts."""
        if self._runs is None:
            return self.in_one().in_chunks(CHUNK)
        if self._parts:
            self._to_disk(self.in_one())
        return self._runs.all()


class SliceSums(SortedSums):
    """The sums from which scores of the slices by one or more attributes are computed.

    Parameters
    ----------
    names : dict of str to str or Bins
        For each attribute, by its name in results: its column in blocks of rows, or bins of that column.
    metrics : sequence of Metric
        The scores; those that are undefined for groups of items are left out.
    beta : float
        Weight of recall in F.
    spill, limit
        As for `SortedSums`.
    """

    def __init__(
        self,
        names: Mapping[str, Element],
        metrics: Sequence[Metric],
        beta: float,
        spill: Spill | None,
        limit: int = 0,
    ) -> None:
        super().__init__(names, spill, limit)
        self._names = names
        self._metrics = aggregation.grouped(metrics)
        self._beta = beta
        self._needed = aggregation.summed(self._metrics, beta, losses=True)

    def add_block(self, block: RowBlock, cells: Contingency | None) -> None:
        """Add the rows of a block, in block order; `cells` is None if no row is scored."""
        if cells is not None:
            self.add(self.of_rows(block.columns, cells))

    def of_rows(self, columns: pa.Table, cells: Contingency) -> Part:
        """Return the sums by slice of rows whose attributes are in `columns`."""
        cut = numbered_slices(tuple(self._names.values()), cells, TableItems(columns), None)
        sums = aggregation.group_sums(cells, cut.codes, cut.n_slices, self._needed, by_row=True)
        keys = {
            name: _lower_bounds(cut.values[str(own)]) if size_named(own) else cut.values[str(own)]
            for name, own in self._names.items()
        }
        return Part(pa.table(keys), sums)

    def result(self, total: float) -> Table:
        """Return the table of `Evaluation.slices`; `total` is the weight of all items."""
        by = ",".join(self._names)
        directory = None if self._spill is None else self._spill.directory
        tables = (self._listed(part, total) for part in self.all())
        return in_file_if_many(tables, f"slices by {by!r}", directory, self._limit)

    def _listed(self, part: Part, total: float) -> pa.Table:
        """Return slices as a table with losses and scores."""
        columns: dict[str, Any] = {}
        for name, own in self._names.items():
            values = combined(part.keys[name])
            columns[name] = size_names(to_numpy(values)) if size_named(own) else named(own, values)
        sums = {name: np.add(*both) for name, both in part.sums.items()}
        found = aggregation.means_of_groups(sums, self._metrics, self._beta, total)
        return table_of(beside(columns, found))


def side_by_side(
    tables: Mapping[str, Table], names: Sequence[str], limit: int
) -> Iterator[tuple[dict[str, pa.Table], dict[str, NDArray[np.int64]]]]:
    """Yield the slices of several results in ascending order, in parts: the rows of each result, and their positions.

    A slice is in at most one row of each table; `names` are the columns that identify it. Idea: to combine rows of
    different results, a result's figures are treated as sums to which the other results add 0, so that they are merged
    like blocks of rows, on disk. Figures are added as 64-bit words, which preserves infinities and NaN exactly.
    """
    figures = [[name for name in table.column_names if name not in names] for table in tables.values()]
    kinds = {name: table.schema.field(name).type for table in tables.values() for name in table.column_names}
    with Spill(directory_of(tables.values()), named=True) as spill:
        sums = SortedSums(names, spill, limit)
        for k, table in enumerate(tables.values()):
            for batch in table._batches():
                order = np.argsort(_numbered([Part(batch.select(names), {})]).codes)
                sums.add(_of_one_result(batch.take(from_numpy(order)), names, k, figures))
        for part in sums.all():
            places = {run: np.flatnonzero(part.sums[f"{k} "][0]) for k, run in enumerate(tables)}
            rows = {
                run: _rows_of_result(part, k, places[run], figures[k], kinds) for k, run in enumerate(tables)
            }
            yield rows, places


def directory_of(tables: Iterable[Table]) -> Path:
    """Return the directory of the first file-backed table, or the default spill directory."""
    homes = (table.directory for table in tables if isinstance(table, LargeTable))
    return next(filter(None, homes), None) or spill_directory(None)


def _of_one_result(batch: pa.Table, names: Sequence[str], own: int, figures: Sequence[Sequence[str]]) -> Part:
    """Return slices of one result, with zeros for the figures of all other results."""
    nothing = np.zeros(batch.num_rows, np.int64)
    sums: dict[str, Sums] = {}
    for k, columns in enumerate(figures):
        sums[f"{k} "] = nothing + (k == own), nothing
        for name in columns:
            values = to_numpy(batch[name].combine_chunks()).view(np.int64) if k == own else nothing
            sums[f"{k} {name}"] = values, nothing
    return Part(batch.select(names), sums)


def _rows_of_result(
    part: Part, own: int, there: NDArray[np.int64], figures: Sequence[str], kinds: Mapping[str, pa.DataType]
) -> pa.Table:
    """Return the rows that a result has for these slices."""
    table = part.keys.take(from_numpy(there))
    for name in figures:
        words = part.sums[f"{own} {name}"][0][there]
        values = words if pa.types.is_integer(kinds[name]) else words.view(np.float64)
        table = table.append_column(name, from_numpy(values))
    return table


def in_file_if_many(tables: Iterable[pa.Table], what: str, directory: Path | None, limit: int) -> Table:
    """Return consecutive slices as one table, stored in a file in `directory` if there are many."""
    waiting, n, rest = list[pa.Table](), 0, iter(tables)
    for table in rest:
        waiting.append(table)
        n += table.num_rows
        if directory is not None and n > FEW:
            break
    else:
        return Table(pa.concat_tables(waiting, promote_options="permissive"))
    schema = waiting[0].schema
    assert directory is not None
    with destination(None, directory) as to:
        n_bytes = n = 0
        with TableWriter(to.file) as writer:
            for table in chain(waiting, rest):
                writer.add(table.cast(schema))
                n, n_bytes = n + table.num_rows, n_bytes + table.nbytes
            waiting.clear()
        return LargeTable(StoredTable(to.file), f"the {n:,} {what}", n_bytes, limit, directory=directory)


class SubsetSums(SliceSums):
    """The sums from which scores of named subsets are computed.

    Parameters
    ----------
    subsets : mapping
        For each name, a mask of the truth's rows or a list of items.
    n_rows : int
        Rows of the truth.
    metrics, beta
        As for `SliceSums`.
    """

    def __init__(
        self, subsets: Mapping[str, Any], n_rows: int, metrics: Sequence[Metric], beta: float
    ) -> None:
        super().__init__({"slice": "slice"}, metrics, beta, None)
        self._subsets = {str(name): as_subset(which, repr(name)) for name, which in subsets.items()}
        self._seen = {
            name: np.zeros(len(which), np.bool_)
            for name, (mask, which) in self._subsets.items()
            if mask is None
        }
        for name, (mask, _) in self._subsets.items():
            if mask is not None and mask.size != n_rows:
                raise SliceError(
                    f"the mask of {name!r} has {mask.size} values; it needs one for each of the {n_rows} rows of "
                    f"the {TRUTH}"
                )

    def add_block(self, block: RowBlock, cells: Contingency | None) -> None:
        """Add the rows of a block, and mark the items that occur."""
        parts = []
        for k, (name, (mask, which)) in enumerate(self._subsets.items()):
            if mask is None:
                rows = TableItems(block.columns).rows_of(which)
                self._seen[name][rows >= 0] = True
                here = np.zeros(block.found.size, np.bool_)
                here[rows[rows >= 0]] = True
            else:
                here = np.append(mask, False)[to_numpy(block.columns["row"].fill_null(-1).combine_chunks())]
            if cells is not None:
                sums = aggregation.group_sums(cells, np.where(here, 0, -1), 1, self._needed, by_row=True)
                parts.append(Part(pa.table({"slice": from_numpy(np.array([k]))}), sums))
        for part in parts:
            self.add(part)

    def result(self, total: float) -> Table:
        """Return the subsets in the given order, with losses and scores."""
        for name, seen in self._seen.items():
            if (missing := np.flatnonzero(~seen)).size:
                which = list(self._subsets[name][1])
                raise missing_items(repr(name), [which[k] for k in missing[:4]], missing.size, seen.size)
        table = super().result(total)
        for name, n_items in zip(self._subsets, table["n_items"].to_pylist(), strict=True):
            if not n_items:
                raise nothing_scored(repr(name))
        return Table(table.to_arrow().set_column(0, "slice", from_texts(list(self._subsets))))


def _encoded(name: str, values: pa.ChunkedArray) -> Sliced:
    """Return the result of `encoded`, found by sorting rather than hashing, as most values occur once."""
    if not any(is_kind(values.type) for is_kind in SORTED_ALONE):
        return encoded(name, values)
    whole = combined(values)
    order = to_numpy(pc.array_sort_indices(whole))
    whole = whole.take(from_numpy(order))
    begins = np.ones(order.size, np.bool_)
    begins[1:] = to_numpy(pc.fill_null(pc.not_equal(whole[1:], whole[:-1]), False))
    begins[order.size - whole.null_count :] = False
    begins[order.size - whole.null_count : order.size - whole.null_count + 1] = True
    codes = np.empty(order.size, np.int64)
    codes[order] = np.cumsum(begins) - 1
    return Sliced(codes, {name: whole.filter(pa.array(begins))})


def _lower_bounds(texts: pa.Array) -> pa.Array:
    """Return the smallest size in each slice by size, as a number, which sorts correctly."""
    return pa.array([int(text.partition("-")[0]) for text in texts.to_pylist()], pa.int64())


#: Why an attribute of both sides needs a prefix for the disk engine.
NOT_COMPARED = "the disk engine does not check whether they are equal"


@dataclass(frozen=True)
class RowQuestions:
    """The requests that need each row: slices, and writing items.

    Attributes
    ----------
    slices : sequence
        The keys to slice by.
    columns : dict of str to str
        For each attribute, the name of the column in which rows carry it along.
    carried : Carried
        The columns that rows must carry along.
    n_rows : int
        Rows of the truth.
    items : bool
        Whether to write the items.
    left_out : dict of str to str
        The attributes that cannot be written with the items, and why.
    """

    slices: Sequence[SliceKey]
    columns: Mapping[str, str]
    carried: Carried
    n_rows: int
    items: bool
    left_out: Mapping[str, str]

    @classmethod
    def of(cls, pair: Pair, slices: Sequence[SliceKey], keep: str) -> RowQuestions:
        """Find the requested attributes, and raise for unknown ones before the work starts."""
        truth, prediction = pair.first
        sides = attribute_sides(truth, prediction)
        extra: tuple[str, ...] = ()
        if pair.attribute_table is not None:
            column, table = pair.attribute_table
            extra = tuple(name for name in table.names if name not in column.names)
        parts = () if truth.items is None or truth.items.kind != "composite" else truth.items.names
        homes = {
            name: attribute_home(name, {**sides, ID: parts}, extra, NOT_COMPARED)
            for name in names_in(slices)
            if size_named(name, sides, extra) is None
        }
        wanted = {(side or "attributes", own) for side, own in homes.values() if side != ID}
        every = {**sides, "attributes": extra}
        items, left_out = keep == "items", dict[str, str]()
        if items:
            tables = {"truth": truth.attributes, "prediction": prediction.attributes}
            if pair.attribute_table is not None:
                tables["attributes"] = pair.attribute_table[1]
            for side, names in every.items():
                reasons = refused(rows, names) if names and (rows := tables[side]) is not None else {}
                left_out |= {f"{side}.{own}": reason for own, reason in reasons.items()}
                wanted |= {(side, own) for own in names if own not in reasons}
        subsets = [subset for key in slices if isinstance(key, Mapping) for subset in key.items()]
        masks = [as_subset(which, repr(name))[0] for name, which in subsets]
        carried = Carried(
            ids=items or any(mask is None for mask in masks) or any(side == ID for side, _ in homes.values()),
            labels=items,
            numbers=any(mask is not None for mask in masks),
            attributes=tuple(
                (side, own) for side, names in every.items() for own in names if (side, own) in wanted
            ),
        )
        columns = {name: f"{side or 'attributes'}.{own}" for name, (side, own) in homes.items()}
        n_rows = sum(stretch.n_rows for stretch in pair.stretches[0])
        return cls(slices, columns, carried, n_rows, items, left_out)

    def __bool__(self) -> bool:
        return bool(self.slices) or self.items

    @property
    def told(self) -> str | None:
        """Which data of rows are needed; see `cell_parts.Question`."""
        return "matrix" if self.slices else "cell" if self.items else None

    def answer(
        self,
        blocks: Iterable[RowBlock],
        kind: Mapping[str, Any],
        metrics: Sequence[Metric],
        beta: float,
        out: Path | None,
        spill: Spill,
        limit: int,
    ) -> tuple[dict[str, Table], StoredTable | None]:
        """Return the slices by name, and the file of items.

        Parameters
        ----------
        blocks : iterable of RowBlock
            All rows.
        kind : dict
            `weighted`, `weighting` and `outside`, as of a contingency.
        metrics : sequence of Metric
            The scores.
        beta : float
            Weight of recall in F.
        out : Path or None
            Directory to write the items to; if None, they go to an unnamed file next to `spill`.
        spill : Spill
            Where the sums of many slices are stored.
        limit : int
            Maximum bytes to use.
        """
        sums = self.sums(metrics, beta, spill, limit)
        if not self.items:
            total = _add(blocks, sums, kind)
            return {name: each.result(total) for name, each in sums.items()}, None
        with destination(out, spill.directory) as to:
            with TableWriter(to.file) as writer:
                total = _add(blocks, sums, kind, writer)
            stored = StoredTable(to.file, to.staging, writer.stamp)
            sliced = {name: each.result(total) for name, each in sums.items()}
        return sliced, stored

    def sums(self, metrics: Sequence[Metric], beta: float, spill: Spill, limit: int) -> dict[str, SliceSums]:
        """Return an accumulator for each slicing, by name, to which blocks of rows and their cells can be added."""
        own = limit // max(1, len(self.slices))  # together they hold no more than a single one may
        return {slice_name(key): self._sums(key, metrics, beta, spill, own) for key in self.slices}

    def _sums(
        self, key: SliceKey, metrics: Sequence[Metric], beta: float, spill: Spill, limit: int
    ) -> SliceSums:
        if isinstance(key, Mapping):
            return SubsetSums(key, self.n_rows, metrics, beta)
        names = {str(each): self._located(each) for each in elements(key)}
        return SliceSums(names, metrics, beta, spill, limit)

    def _located(self, element: Element) -> Element:
        """Return an attribute, or bins of it, by the name of its column."""
        if isinstance(element, Bins):
            return replace(element, name=self.columns[element.name])
        return self.columns.get(element, element)


def _add(
    blocks: Iterable[RowBlock],
    sums: Mapping[str, SliceSums],
    kind: Mapping[str, Any],
    writer: TableWriter | None = None,
) -> float:
    """Add blocks to the sums, and write their items; return the scored weight, or 0 if there are no sums."""
    weights = [0.0]
    for block in blocks:
        if writer is not None:
            writer.add(items_of_block(block))
        if sums:
            scored = block.scored
            cells = block.cells(**kind) if scored.any() else None
            weights.append(float(np.sum(scored if block.weight is None else block.weight[scored])))
            for each in sums.values():
                each.add_block(block, cells)
    return math.fsum(weights)
