"""The rows of clusterings brought together by item, in shards: what the join of two sides reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.alignment.block_keys import Keys
from fastbcubed.alignment.faults import Report
from fastbcubed.alignment.policies import Policies
from fastbcubed.alignment.side import Mask, Side
from fastbcubed.runtime import buffers
from fastbcubed.runtime.grouping import number
from fastbcubed.runtime.joining import ItemParts
from fastbcubed.runtime.parts import MAX_BITS, offsets
from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.spill import Spill
from fastbcubed.runtime.spool import Spool
from fastbcubed.sources.arrays import from_numpy, read_only
from fastbcubed.sources.stash import Stash

NO_KEYS = np.empty(0, np.int64)
ABSENT, ALONE = 1, 2  # flags of a row; those of the second label are shifted by two bits


class ItemRows(NamedTuple):
    """What names the items of a shard: their keys, by which a message looks for them in the input again."""

    keys: NDArray[np.int64]
    bounds: NDArray[np.int64]  #: where each part begins

    def first_of(self, rows: NDArray[np.int64]) -> list[Any]:
        """Return the keys of the first few of these rows in each part, where they are in the order of the input."""
        rows = np.sort(rows)
        parts = np.searchsorted(self.bounds, rows, "right")
        few = rows[np.arange(rows.size) - np.searchsorted(parts, parts) < 4]
        return kernels.partition.unmix_all(self.keys[few]).tolist()


@dataclass(frozen=True)
class ShardRows:
    """The rows of a shard, part by part of their item key: what is looked up of a row is then in the cache."""

    columns: dict[str, np.ndarray]  #: keys of items, mixed, and what else rows have; shape (n_rows,)
    bounds: NDArray[np.int64]  #: where each part begins; shape (n_parts + 1,)
    #: the place of each row in the order of its block, in which columns are that go with the rows; shape (n_rows,)
    order: NDArray[np.int64] | None

    @property
    def keys(self) -> NDArray[np.int64]:
        """Mixed keys of the items."""
        return self.columns["key"]

    @property
    def items(self) -> ItemRows:
        """What names the items, for a message."""
        return ItemRows(self.keys, self.bounds)

    @property
    def parts(self) -> ItemParts:
        """The items by part; they are numbered as they stand."""
        return ItemParts(self.keys, None, self.bounds)

    def places(self, rows: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """Return the places, in the order of their blocks, of some of the rows, -1 staying -1; None means all."""
        return rows if self.order is None else rows_of(rows, self.order)


class ItemShards:
    """The rows of a side, or of two sides whose rows correspond, in 2**bits shards by item.

    A row has `n_labels` labels: 1, 2, or 0 where items come with weights alone. `memory` bytes may be kept; what does
    not fit is spilled. Rows may have a word that proves their key, a number, flags, a weight.
    """

    def __init__(
        self,
        n_labels: int,
        bits: int,
        spill: Spill,
        memory: int,
        *,
        proved: bool,
        numbered: bool,
        flagged: bool,
        weighted: bool,
    ) -> None:
        fields = [("key", "i8"), ("label", "i8")] if n_labels else [("key", "i8"), ("weight", "f8")]
        fields += [("other", "i8")] * (n_labels == 2)
        fields += [("second", "u8")] * proved + [("number", "i8")] * numbered + [("flags", "i8")] * flagged
        fields += [("weight", "f8")] * (weighted and n_labels > 0)
        self._bits = bits
        self._spool = Spool(np.dtype(fields), 1 << bits, spill, memory)
        self._columns = Stash(spill)

    def put(
        self,
        index: Any,
        keys: Keys,
        sides: tuple[Side, ...],
        weight: NDArray[np.float64] | None,
        numbers: NDArray[np.int64],
        columns: pa.Table | None = None,
    ) -> None:
        """Take a block of rows: item keys, the sides that have them, weights, numbers, columns that go with them."""
        n, names = keys.first.size, self._spool.dtype.names or ()
        given: dict[str, Any] = {
            "key": keys.first, "second": keys.second, "number": numbers, "weight": weight,
            **{name: side.labels for name, side in zip(("label", "other"), sides, strict=False)},
        }  # fmt: skip
        if "flags" in names:
            given["flags"] = _flags(sides, n)
        words = tuple(_words(given[name]) for name in names)
        counts = np.zeros((1, self._spool.n_shards), np.int64)
        kernels.partition.count_parts(
            words[0], None, 0, n, False, MAX_BITS, self._bits, NO_KEYS, 0, counts[0]
        )
        bounds, next_row = offsets(counts)
        if columns is not None:
            places = np.empty(n, np.int32)
            kernels.partition.place_rows(
                words[0], words[0], MAX_BITS, self._bits, NO_KEYS, 0, next_row[0].copy(), places
            )
            order = np.empty(n, np.int32)
            order[places] = np.arange(n, dtype=np.int32)
            self._columns.put(index, columns.take(from_numpy(order)), bounds)
        with self._spool.pages() as pages:
            rows = pages.empty(n, self._spool.dtype).view(np.int64).reshape(n, len(names))
            kernels.join.scatter_columns(words, MAX_BITS, self._bits, next_row[0], rows)
            self._spool.put(index, pages, bounds)

    def sizes(self) -> NDArray[np.int64]:
        """Return how many rows each shard has."""
        return self._spool.sizes()

    def columns(self, shard: int) -> pa.Table:
        """Return the columns that go with the rows of a shard."""
        return self._columns.read(shard)

    def read(self, shard: int, bits: int, *, ordered: bool) -> ShardRows:
        """Return the rows of a shard, in 2**bits parts; `ordered` tells whether columns go with them."""
        rows = self._spool.read(shard)
        fields: Mapping[str, Any] = rows.dtype.fields or {}
        words = rows.view(np.int64).reshape(rows.size, len(fields))
        counts = np.zeros((1, 1 << bits), np.int64)
        kernels.join.count_words(words, bits, counts[0])
        bounds, next_row = offsets(counts)
        columns = buffers.empty((len(fields), rows.size), np.int64)
        order = np.empty(rows.size, np.int64) if ordered else None
        kernels.join.scatter_words(words, bits, next_row[0], columns, order)
        found = {
            name: own.view(kind) for own, (name, (kind, *_)) in zip(columns, fields.items(), strict=True)
        }
        return ShardRows(found, bounds, order)


def rows_of(chosen: NDArray[np.int64] | None, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row of each that is chosen, -1 staying -1; None means all."""
    return rows if chosen is None else np.where(chosen < 0, -1, np.append(rows, -1)[chosen])


def _words(column: np.ndarray) -> NDArray[np.int64]:
    """Return a column of any type as words: one kernel is compiled for each number of columns."""
    return read_only(np.ascontiguousarray(column).view(np.int64))


def _flags(sides: tuple[Side, ...], n_rows: int) -> NDArray[np.int64]:
    flags = np.zeros(n_rows, np.int64)
    for k, side in enumerate(sides):
        for mask, flag in ((side.absent, ABSENT), (side.alone, ALONE)):
            if mask is not None:
                flags[mask] |= flag << 2 * k
    return flags


def sides_of(
    shard: ShardRows, names: tuple[str, ...], policies: Policies, reports: Sequence[Report]
) -> list[Side]:
    """Return the sides whose rows a shard holds, one or two that correspond, and what takes the faults of each."""
    found, rows = [], shard.columns
    for k, (name, column, report) in enumerate(zip(names, ("label", "other"), reports, strict=False)):
        flags = rows.get("flags")
        absent, alone = _flagged(flags, ABSENT << 2 * k), _flagged(flags, ALONE << 2 * k)
        side = Side(
            name, rows[column], policies, absent, alone, rows.get("weight"), shard.items, report=report
        )
        found.append(side)
    return found


def _flagged(flags: NDArray[np.int64] | None, flag: int) -> Mask | None:
    """Return the rows with a flag; None if none has it."""
    found = None if flags is None else (flags & flag) != 0
    return found if found is not None and found.any() else None


def without_repeats(keys: Keys, sides: tuple[Side, ...], alone: Pool, *, overlap: bool) -> NDArray[np.int64]:
    """Return the rows of a block but for those that repeat an earlier one: one item, however often, is one row.

    Of rows that put an item elsewhere, the first one stays, for the join to find, or all of them if clusters may
    `overlap`; so do those of another weight.
    """
    found = number(keys.first, alone)
    first = found.firsts[found.codes]
    again = first != np.arange(first.size)
    if not again.any():
        return np.arange(first.size)
    masks = [mask for side in sides for mask in (side.absent, side.alone) if mask is not None]
    weights = [side.weight for side in sides if side.weight is not None]
    columns = [_without_arbitrary(side) for side in sides] + masks
    columns += [] if keys.second is None else [keys.second]
    moved = np.zeros(first.size, np.bool_)
    other = np.zeros(first.size, np.bool_)
    for column in columns:
        differ = column != column[first]
        moved |= differ
        if not overlap and differ.any():
            rows = np.flatnonzero(differ)
            other[rows[np.unique(found.codes[rows], return_index=True)[1]]] = True
    for weight in weights:
        other |= ~moved & (weight != weight[first])
    return np.flatnonzero(~again | other | (moved if overlap else False))


def _without_arbitrary(side: Side) -> NDArray[Any]:
    """Return the keys of labels, those of nulls, which are arbitrary, made equal."""
    masks = [mask for mask in (side.absent, side.alone) if mask is not None]
    return np.where(np.logical_or.reduce(masks), 0, side.labels) if masks else side.labels
