"""Scores by slice, added up block by block of rows; and the rows of items.parquet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.row_blocks import Carried
from fastbcubed.cells.cell_parts import RowBlock, RowCells
from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import TRUTH, OptionError, SliceError, arg
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import combined, from_numpy, from_texts, table_of, to_numpy
from fastbcubed.inputs.pair import Pair
from fastbcubed.inputs.tables import refused
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.aggregation import WEIGHT
from fastbcubed.metrics.metric import Metric
from fastbcubed.results.items import TableItems, attribute_sides
from fastbcubed.results.saved_files import StoredTable, destination, items_of_block
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
from fastbcubed.results.table import listed
from fastbcubed.runtime import buffers
from fastbcubed.runtime.output_files import TableWriter
from fastbcubed.runtime.spill import Spill, readable
from fastbcubed.runtime.threads import blocks

#: So many slices wait at least before the sums of equal ones are added up.
MANY = 1 << 17
#: The sums of this many slices stay in memory.
FEW = 1 << 12
#: Types of which equal values are next to each other when they are sorted; NaN is not equal to itself.
SORTED_ALONE = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_temporal)

Sums = tuple[NDArray[Any], NDArray[Any]]

#: Bytes of a figure of a slice, and the copies of its names; what slices may take besides half of the limit.
FIGURE, NAMES, BESIDE = 8, 2, 224 << 20


def require_slices_fit(sums: Mapping[str, SliceSums], limit: int) -> None:
    """Raise OptionError if the slices that have been found by now would take more than the limit has room for."""
    held = {by: each.held for by, each in sums.items()}
    if (needed := sum(held.values())) <= limit // 2 + BESIDE:
        return
    by = max(held, key=lambda by: held[by])
    raise OptionError(
        f"{arg('memory_limit')} is {readable(limit)}, but the slices would take more than {readable(needed)}: there "
        f"are {sums[by].n_slices:,} or more by {by!r}. Raise memory_limit to at least {2 * (needed - BESIDE) >> 20} "
        "MiB, or slice by something of fewer values, such as bins"
    )


class Part:
    """Slices, and their sums by name, which are given one after the other; those of many slices are spilled."""

    def __init__(self, keys: pa.Table, sums: Iterable[tuple[str, Sums]], spill: Spill | None) -> None:
        self.keys, self._n = keys, len(keys)
        self._spill = spill
        spilled = spill is not None and len(keys) > FEW
        self._sums = {name: self._put(*own) if spilled else own for name, own in sums}

    def __len__(self) -> int:
        return self._n

    def _put(self, total: NDArray[Any], error: NDArray[Any]) -> tuple[list[int], np.dtype]:
        """Spill sums, a number of slices at once; return where they are."""
        assert self._spill is not None
        places = []
        for start, stop in blocks(self._n, MANY):
            with self._spill.pages() as pages:
                room = pages.empty(2 * (stop - start), total.dtype)
                np.concatenate([total[start:stop], error[start:stop]], out=room)
                places.append(self._spill.write(pages.first(room.nbytes)))
        return places, total.dtype

    def names(self) -> list[str]:
        """Return the names of the sums."""
        return list(self._sums)

    def some(self, name: str, k: int) -> Sums:
        """Return the sums of a name, and their errors, of the slices of a block."""
        own: tuple[Any, Any] = self._sums[name]
        start, stop = blocks(self._n, MANY)[k]
        if isinstance(own[0], np.ndarray):
            return own[0][start:stop], own[1][start:stop]
        (places, kind), spill = own, self._spill
        assert spill is not None
        found = np.empty((2, stop - start), kind)
        spill.read((places[k], found.reshape(-1)))
        return found[0], found[1]

    def drop(self, name: str) -> None:
        """Forget the sums of a name."""
        del self._sums[name]


class SliceSums:
    """The sums behind the scores of the slices by some attributes.

    Parameters
    ----------
    names : dict of str to str or Bins
        The attributes as results name them, and as the columns of the blocks are called, or bins of these.
    metrics : sequence of Metric
        Scores that groups of items have.
    beta : float
        Weight of recall in F.
    spill : Spill or None
        Where sums go that are many; nowhere, if None.
    """

    def __init__(
        self, names: Mapping[str, Element], metrics: Sequence[Metric], beta: float, spill: Spill | None
    ) -> None:
        self._names, self._spill = names, spill
        self._metrics = aggregation.grouped(metrics)
        self._beta = beta
        self._needed = aggregation.summed(self._metrics, beta, losses=True)
        self._parts: list[Part] = []
        self._waiting = 0

    @property
    def n_slices(self) -> int:
        """Lower bound of the number of slices, from the sums so far."""
        return len(self._parts[0]) if self._parts else 0

    @property
    def held(self) -> int:
        """Approximate bytes of these slices when returned."""
        figures = len(self._metrics) + 4  # and their number of items, weight and losses
        names = self._parts[0].keys.nbytes if self._parts else 0
        return FIGURE * figures * self.n_slices + NAMES * names

    def add_block(self, block: RowBlock, cells: Contingency | None) -> None:
        """Add the rows of a block, in the order of blocks; `cells` is None if none of them is scored."""
        if cells is not None:
            self.add(self.of_rows(block.columns, cells))

    def of_rows(self, columns: pa.Table, cells: Contingency) -> Part:
        """Return the sums of rows by slice, with the columns that the attributes are in."""
        cut = numbered_slices(tuple(self._names.values()), cells, TableItems(columns), None)
        sums = aggregation.group_sums(cells, cut.codes, cut.n_slices, self._needed, by_row=True)
        keys = {
            name: _lower_bounds(cut.values[str(own)]) if size_named(own) else cut.values[str(own)]
            for name, own in self._names.items()
        }
        return Part(pa.table(keys), sums.items(), self._spill)

    def add(self, part: Part) -> None:
        """Take the sums of a block; they wait until they reach half the size of the total."""
        self._parts.append(part)
        self._waiting += len(part)
        if self._waiting > max(MANY, len(self._parts[0]) // 2):
            self._parts, self._waiting = [Part(*self._added_up(), self._spill)], 0

    def added_up(self) -> Part:
        """Return all sums as one part, and empty this object."""
        return self._parts.pop() if len(self._parts) == 1 else Part(*self._added_up(), self._spill)

    def _added_up(self) -> tuple[pa.Table, Iterator[tuple[str, Sums]]]:
        """Add up the sums of equal slices; slices come out in ascending order, nulls last.

        The parts are used up, one kind of sums after the other, of which one is held at a time.
        """
        cut = self._crossed()
        _release()
        parts, self._parts = self._parts, []
        codes = np.split(cut.codes, np.cumsum([len(part) for part in parts])[:-1])
        names = ("n_items", WEIGHT, *(m.name for m in self._needed))
        return pa.table(dict(cut.values)), (
            (name, _sums_by_code(codes, parts, name, cut.n_slices)) for name in names
        )

    def _crossed(self) -> Sliced:
        """Return the slices of all parts, which then forget their names."""
        whole = pa.concat_tables([part.keys for part in self._parts], promote_options="permissive")
        for part in self._parts:
            part.keys = None
        whole = whole.combine_chunks()
        _release()
        keys = [_encoded(name, whole[name]) for name in self._names]
        return keys[0] if len(keys) == 1 else crossed(keys, np.ones(whole.num_rows, np.bool_))

    def result(self, total: float) -> pa.Table:
        """Return the slices with their losses and scores, as `Evaluation.slices` does; `total` is all items' weight."""
        part = self.added_up()
        _release()
        columns: dict[str, Any] = {}
        for name, own in self._names.items():
            values = part.keys[name]
            columns[name] = (
                size_names(to_numpy(values.combine_chunks())) if size_named(own) else named(own, values)
            )
        figures: dict[str, NDArray[Any]] = {}
        for k, (start, stop) in enumerate(blocks(len(part), MANY)):
            sums = {name: np.add(*part.some(name, k)) for name in part.names()}
            found = aggregation.means_of_groups(sums, self._metrics, self._beta, total)
            for name, some in found.items():
                if not start:
                    figures[name] = np.empty(len(part), some.dtype)
                figures[name][start:stop] = some
        return listed(table_of(beside(columns, figures)), self._metrics, None, None)


class SubsetSums(SliceSums):
    """The same for subsets by name.

    Parameters
    ----------
    subsets : mapping
        Names, and for each a mask of the truth's rows or a list of items.
    n_rows : int
        Rows of the truth.
    metrics, beta, spill
        As for `SliceSums`.
    """

    def __init__(
        self, subsets: Mapping[str, Any], n_rows: int, metrics: Sequence[Metric], beta: float, spill: Spill
    ) -> None:
        super().__init__({"slice": "slice"}, metrics, beta, spill)
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
        """Add the rows of a block, and note which items are seen."""
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
                parts.append(Part(pa.table({"slice": from_numpy(np.array([k]))}), sums.items(), self._spill))
        for part in parts:
            self.add(part)

    def result(self, total: float) -> pa.Table:
        """Return the subsets in the order given, with their losses and scores."""
        for name, seen in self._seen.items():
            if (missing := np.flatnonzero(~seen)).size:
                which = list(self._subsets[name][1])
                raise missing_items(repr(name), [which[k] for k in missing[:4]], missing.size, seen.size)
        table = super().result(total)
        for name, n_items in zip(self._subsets, table["n_items"].to_pylist(), strict=True):
            if not n_items:
                raise nothing_scored(repr(name))
        return table.set_column(0, "slice", from_texts(list(self._subsets)))


def _release() -> None:
    pa.default_memory_pool().release_unused()
    buffers.release()


def _encoded(name: str, values: pa.ChunkedArray) -> Sliced:
    """Return the result of `encoded` without a hash table, as most values occur once."""
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


def _sums_by_code(codes: list[NDArray[np.int64]], parts: list[Part], name: str, n_slices: int) -> Sums:
    """Add up the sums of a name with their errors, in the order of parts, which then forget them."""
    kind = parts[0].some(name, 0)[0].dtype
    added, rest = (np.zeros(n_slices, kind) for _ in range(2))  # numbers of items have no errors
    ones = np.ones(MANY)
    for own, part in zip(codes, parts, strict=True):
        for k, (start, stop) in enumerate(blocks(len(part), MANY)):
            some = own[start:stop]
            if kind.kind == "i":
                kernels.sums.count_by_code(some, part.some(name, k)[0], added)
                continue
            for each in part.some(name, k):
                kernels.sums.add_by_code(some, each, ones[: some.size], None, added, rest)
        part.drop(name)
    return added, rest


def _lower_bounds(texts: pa.Array) -> pa.Array:
    """Return the smallest size of each slice by size, which sorts as a number."""
    return pa.array([int(text.partition("-")[0]) for text in texts.to_pylist()], pa.int64())


#: Why an attribute of both sides needs a prefix here.
NOT_COMPARED = "the disk engine does not look whether they are equal"


@dataclass(frozen=True)
class RowQuestions:
    """Queries answered row by row.

    Attributes
    ----------
    slices : sequence
        What to slice by.
    columns : dict of str to str
        The column of each attribute among those that are carried along.
    carried : Carried
        The columns that have to go with the rows.
    n_rows : int
        Rows of the truth.
    items : bool
        Whether to write the items.
    left_out : dict of str to str
        The attributes that cannot be kept with them, and why.
    """

    slices: Sequence[SliceKey]
    columns: Mapping[str, str]
    carried: Carried
    n_rows: int
    items: bool
    left_out: Mapping[str, str]

    @classmethod
    def of(cls, pair: Pair, slices: Sequence[SliceKey], keep: str) -> RowQuestions:
        """Find the requested attributes; unknown ones raise before the work."""
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
        """The row data needed: see `cell_parts.Question`."""
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
    ) -> tuple[dict[str, pa.Table], StoredTable | None]:
        """Return the slices by name, and the items.

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
            Where the items go; to a file without a name beside `spill` if None.
        spill : Spill
            Where the sums of many slices go.
        limit : int
            The bytes that may be used.
        """
        sums = self.sums(metrics, beta, spill)
        if not self.items:
            total = _add(blocks, sums, kind, limit)
            return {name: each.result(total) for name, each in sums.items()}, None
        with destination(out, spill.directory) as to:
            with TableWriter(to.file) as writer:
                total = _add(blocks, sums, kind, limit, writer)
            stored = StoredTable(to.file, to.staging, writer.stamp)
            sliced = {name: each.result(total) for name, each in sums.items()}
        return sliced, stored

    def sums(self, metrics: Sequence[Metric], beta: float, spill: Spill) -> dict[str, SliceSums]:
        """Return the accumulators of the slices, by name; they take blocks of rows with their cells."""
        return {slice_name(key): self._sums(key, metrics, beta, spill) for key in self.slices}

    def _sums(self, key: SliceKey, metrics: Sequence[Metric], beta: float, spill: Spill) -> SliceSums:
        if isinstance(key, Mapping):
            return SubsetSums(key, self.n_rows, metrics, beta, spill)
        return SliceSums({str(each): self._located(each) for each in elements(key)}, metrics, beta, spill)

    def _located(self, element: Element) -> Element:
        """Return an attribute, or bins of it, under the name of its column."""
        if isinstance(element, Bins):
            return replace(element, name=self.columns[element.name])
        return self.columns.get(element, element)


def _add(
    blocks: Iterable[RowBlock],
    sums: Mapping[str, SliceSums],
    kind: Mapping[str, Any],
    limit: int,
    writer: TableWriter | None = None,
) -> float:
    """Add the blocks to the sums, and write the items; return the weight that is scored, if there are sums."""
    weights = [0.0]
    for block in blocks:
        if writer is not None:
            writer.add(items_of_block(block))
        if sums:
            scored = block.found["cell"] >= 0
            cells = RowCells(block.found, block.weight, **kind) if scored.any() else None
            weights.append(float(np.sum(scored if block.weight is None else block.weight[scored])))
            for each in sums.values():
                each.add_block(block, cells)
            require_slices_fit(sums, limit)
    return math.fsum(weights)
