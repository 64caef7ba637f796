"""Blocks of rows for the disk engine: keys, payload columns, shards by item, policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.attributes import attributes
from fastbcubed.align.data_errors import (
    Report,
)
from fastbcubed.align.policies import Policies
from fastbcubed.align.rows import either_id, in_common, rows_or_null
from fastbcubed.align.sides import Matched, Side
from fastbcubed.align.stash import Stash
from fastbcubed.errors import IdTypeError
from fastbcubed.inputs.arrays import from_numpy, of_one_dictionary, read_only
from fastbcubed.inputs.clustering import Clustering
from fastbcubed.inputs.id_columns import Column, are_plain, as_column, check_kinds, proved_keys, seeded_keys
from fastbcubed.inputs.keys import find_collision
from fastbcubed.inputs.tables import Source
from fastbcubed.runtime import buffers
from fastbcubed.runtime.key_codes import number
from fastbcubed.runtime.key_partitions import MAX_BITS, ItemParts, offsets
from fastbcubed.runtime.spill import Spill, Spool
from fastbcubed.runtime.threads import Pool
from fastbcubed.types import Mask

PAIR = np.dtype([("first", "u8"), ("second", "u8")])


class Keys(NamedTuple):
    """Keys of items, and second hash words that prove equality; None for integers, which are their own keys."""

    first: NDArray[np.int64]
    second: NDArray[np.uint64] | None

    def take(self, rows: NDArray[np.int64]) -> Keys:
        """Return some of the rows."""
        return Keys(self.first[rows], None if self.second is None else self.second[rows])


class Retry(Exception):
    """Raised if two values have equal keys or a special key is taken; the caller retries with the next choice."""

    def __init__(self, *, seed: bool) -> None:
        self.seed = seed


class Labels:
    """Keys of one side's labels, block by block, and the proof that distinct labels have distinct keys.

    `first` are the labels of the first block; the seed selects the hash function unless labels are integers. The word
    pairs that prove the keys distinct are stored in 2**bits shards, at least two; up to `memory` bytes are not
    spilled.
    """

    def __init__(self, first: Column, seed: int, spill: Spill, memory: int, bits: int) -> None:
        self._kinds = first.kinds
        self.seed = None if are_plain([first]) else seed
        self._shift = np.uint64(64 - bits)
        self._pairs = Spool(PAIR, 1 << bits, spill, memory)

    def keys(self, column: Column, index: Any, pool: Pool) -> NDArray[np.int64]:
        """Return the keys of a block's labels."""
        require_kinds(column, self._kinds)
        keys, pairs = seeded_keys(column, self.seed, pool)
        for k, (first, second) in enumerate(pairs):
            put_pairs(self._pairs, (index, k), first, second, self._shift)
        return keys

    def check(self, pool: Pool) -> None:
        """Raise Retry if two different labels have the same key."""
        for _, found in self._pairs.read_ahead(range(self._pairs.n_shards), pool, "check labels"):
            halves = (np.ascontiguousarray(found["first"]), np.ascontiguousarray(found["second"]))
            if find_collision([halves], pool):
                raise Retry(seed=True)
        self._pairs.clear()


def put_pairs(spool: Spool, index: Any, first: np.ndarray, second: np.ndarray, shift: np.uint64) -> None:
    """Store pairs of words in shards, by the leading bits of the first word."""
    counts = np.zeros((1, spool.n_shards), np.int64)
    kernels.hashing.count_partitions(first, shift, counts[0])
    bounds, next_row = offsets(counts)
    with spool.pages() as pages:
        pairs = pages.empty(first.size, PAIR).view(np.uint64).reshape(-1, 2)
        kernels.hashing.scatter_pairs(first, second, shift, next_row[0], pairs)
        spool.put(index, pages, bounds)


def require_kinds(column: Column, kinds: tuple[str, ...]) -> None:
    """Raise IdTypeError if a block has ids of another kind than the first block; a block without rows has no kind."""
    if len(column) and column.kinds != kinds:
        raise IdTypeError(
            f"{column.where} has {' and '.join(column.kinds)} ids in some rows and {' and '.join(kinds)} ids "
            "in others. Cast the column to one type."
        )


class Items:
    """Keys of the items of both sides, and the proof that distinct items have distinct keys."""

    def __init__(self, columns: Sequence[Column], seed: int) -> None:
        check_kinds(columns)
        self._kinds = next((column.kinds for column in columns if len(column)), columns[0].kinds)
        self.seed = None if are_plain(columns) else seed

    def keys(self, column: Column, pool: Pool) -> Keys:
        """Return the keys of a block's items."""
        require_kinds(column, self._kinds)
        if self.seed is None:
            return Keys(seeded_keys(column, None, pool)[0], None)
        return Keys(*proved_keys(column, self.seed, pool))

    def check(self, shards: Sequence[dict[str, np.ndarray]], pool: Pool) -> None:
        """Raise Retry if two different items of a shard have the same key."""
        if self.seed is None:
            return
        pairs = [(rows["key"].view(np.uint64), rows["second"]) for rows in shards]
        if find_collision(pairs, pool):
            raise Retry(seed=True)


#: Names of the sides in column names and in attributes.
SIDES = (("true_cluster", "truth"), ("pred_cluster", "prediction"))


@dataclass(frozen=True)
class Carried:
    """The columns carried with the rows, named as in a saved evaluation's table of items."""

    ids: bool
    labels: bool  #: whether to carry the labels of both sides
    numbers: bool  #: whether to carry the truth's row numbers
    attributes: tuple[tuple[str, str], ...]  #: ("truth", "prediction" or "attributes", column name) of each
    #: types of integer ids and labels, by name: columns rebuilt from keys instead of carried
    from_keys: Mapping[str, pa.DataType] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.ids or self.labels or self.numbers or bool(self.attributes)

    @property
    def all_from_keys(self) -> bool:
        """Whether every column can be rebuilt from keys, so that none is carried with the rows."""
        labels = {"true_cluster", "pred_cluster"} if self.labels else set()
        rebuilt = (labels | ({"item"} if self.ids else set())) <= set(self.from_keys)
        return rebuilt and not self.numbers and all(side == "attributes" for side, _ in self.attributes)

    def of_block(self, sides: Sequence[Clustering], k: int, first_row: int) -> pa.Table:
        """Return the payload columns of a block of side k, or of both sides."""
        n = len(sides[0])
        columns: dict[str, pa.ChunkedArray | pa.Array] = {}
        if self.ids and "item" not in self.from_keys:
            items = sides[0].items
            positions = from_numpy(np.arange(first_row, first_row + n))
            columns["item"] = positions if items is None else items.slice(0, n)
        if self.numbers and k == 0:
            columns["row"] = from_numpy(np.arange(first_row, first_row + n))
        for side, (label, name) in zip(sides, SIDES[k:], strict=False):
            if self.labels and label not in self.from_keys:
                columns[label] = side.labels.slice(0, n)
            if side.attributes is not None:
                columns |= self._attributes(name, side.attributes)
        whole = {name: of_one_dictionary(values) for name, values in columns.items()}
        return pa.table(whole) if whole else no_columns(n)

    def of_attributes(self, table: Source) -> pa.Table:
        """Return the payload columns of a block of the table of attributes."""
        columns = self._attributes("attributes", table)
        return pa.table({name: of_one_dictionary(values) for name, values in columns.items()})

    def _attributes(self, side: str, table: Source) -> dict[str, pa.ChunkedArray]:
        names = [name for where, name in self.attributes if where == side]
        found = attributes(table, names)
        return {f"{side}.{name}": values for name, values in zip(names, found, strict=True)}

    def aligned(self, tables: Sequence[pa.Table], rows: Matched) -> pa.Table:
        """Return the columns of aligned rows from the payload of both sides, or of their common table."""
        taken = [rows_or_null(table, own) for table, own in zip(tables, rows, strict=False)]
        whole = taken[0]
        for other in taken[1:]:
            for name in other.column_names:
                if name not in whole.column_names:
                    whole = whole.append_column(name, other[name])
        if "item" in whole.column_names and len(tables) == 2 and rows[0] is not None and rows[1] is not None:
            items = [as_column(table["item"], "item") for table in tables]
            found = either_id(items[0], rows[0], items[1], rows[1])
            none = np.empty(0, np.int64)  # makes types equal in all blocks, even if both sides have all items
            found, _ = in_common(found, in_common(items[0].take(none), items[1].take(none))[0])
            whole = whole.set_column(whole.column_names.index("item"), "item", found)
        return whole


def number_type(*columns: Column) -> pa.DataType | None:
    """Return the common integer type of the ids in these columns; None if there is none."""
    kinds = {part.type for column in columns for part in column.parts}
    kind = kinds.pop()
    single = all(len(column.parts) == 1 for column in columns)
    return kind if not kinds and single and pa.types.is_integer(kind) else None


def numbers_of_keys(
    keys: NDArray[np.int64], kind: pa.DataType, null: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return the integers that have these keys, in their original type."""
    if pa.types.is_uint64(kind):
        return from_numpy(keys.view(np.uint64), null)
    return from_numpy(keys.astype(kind.to_pandas_dtype(), copy=False), null)


def no_columns(n_rows: int) -> pa.Table:
    """Return a table with `n_rows` rows and no columns."""
    return pa.table({"none": pa.nulls(n_rows)})


NO_KEYS = np.empty(0, np.int64)
ABSENT, ALONE = 1, 2  # flags of a row's first label; those of the second are shifted by two bits


class ItemRows(NamedTuple):
    """The item keys of a shard, by which messages look items up in the input."""

    keys: NDArray[np.int64]
    bounds: NDArray[np.int64]  #: where each part begins

    def first_of(self, rows: NDArray[np.int64]) -> list[Any]:
        """Return the keys of the first few of these rows within each part, whose rows are in input order."""
        rows = np.sort(rows)
        parts = np.searchsorted(self.bounds, rows, "right")
        few = rows[np.arange(rows.size) - np.searchsorted(parts, parts) < 4]
        return kernels.partition.unmix_all(self.keys[few]).tolist()


@dataclass(frozen=True)
class ShardRows:
    """The rows of a shard, sorted by part of the item key, so that lookups stay in the cache."""

    columns: dict[str, np.ndarray]  #: mixed item keys and the other words of each row; shape (n_rows,)
    bounds: NDArray[np.int64]  #: where each part begins; shape (n_parts + 1,)
    #: the position of each row in block order, which payload columns have; shape (n_rows,)
    order: NDArray[np.int64] | None

    @property
    def keys(self) -> NDArray[np.int64]:
        """The mixed keys of the items."""
        return self.columns["key"]

    @property
    def items(self) -> ItemRows:
        """The items, as messages name them."""
        return ItemRows(self.keys, self.bounds)

    @property
    def parts(self) -> ItemParts:
        """The items by part, with their rows numbered in this order."""
        return ItemParts(self.keys, None, self.bounds)

    def places(self, rows: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """Return the positions of rows in block order, -1 for row -1; None means all rows."""
        return rows if self.order is None else rows_of(rows, self.order)


class ItemShards:
    """The rows of one side, or of two sides with corresponding rows, in 2**bits shards by item.

    A row has `n_labels` labels: 1, 2, or 0 for items with weights only. Up to `memory` bytes are not spilled.
    Optional words of a row are: proof of its key, number, flags, weight.
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
        """Add a block of rows: item keys, labels by side, weights, row numbers and payload columns."""
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
        """Return the number of rows in each shard."""
        return self._spool.sizes()

    def columns(self, shard: int) -> pa.Table:
        """Return the payload columns of a shard's rows."""
        return self._columns.read(shard)

    def read(self, shard: int, bits: int, *, ordered: bool) -> ShardRows:
        """Return the rows of a shard in 2**bits parts, with their positions in block order if `ordered`."""
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
    """Return rows[chosen], -1 for -1; None means all."""
    return rows if chosen is None else np.where(chosen < 0, -1, np.append(rows, -1)[chosen])


def _words(column: np.ndarray) -> NDArray[np.int64]:
    """Return a column of any type as 64-bit words, so that only one kernel is compiled per number of columns."""
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
    """Return the sides of a shard's rows: one, or two that correspond; `reports` are callbacks for faults by side."""
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
    """Return the mask of rows with a flag; None if there are none."""
    found = None if flags is None else (flags & flag) != 0
    return found if found is not None and found.any() else None


def without_repeats(keys: Keys, sides: tuple[Side, ...], alone: Pool) -> NDArray[np.int64]:
    """Return the rows of a block without those that repeat an earlier row.

    If rows put an item into several clusters, or give it several weights, the first row of each is kept, so that the
    join detects the fault.
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
        if differ.any():
            rows = np.flatnonzero(differ)
            other[rows[np.unique(found.codes[rows], return_index=True)[1]]] = True
    for weight in weights:
        other |= ~moved & (weight != weight[first])
    return np.flatnonzero(~again | other)


def _without_arbitrary(side: Side) -> NDArray[Any]:
    """Return label keys in which the arbitrary keys of nulls are replaced by equal ones."""
    masks = [mask for mask in (side.absent, side.alone) if mask is not None]
    return np.where(np.logical_or.reduce(masks), 0, side.labels) if masks else side.labels


class AlignedBlock(NamedTuple):
    """A block of aligned rows; see `Alignment`. The blocks of an evaluation can be sorted by `index`.

    `columns` are those to slice by, or to write with the scores of the rows.
    """

    index: Any
    true_keys: NDArray[np.int64]
    pred_keys: NDArray[np.int64]
    weight: NDArray[np.float64] | None
    columns: pa.Table | None = None


@dataclass(frozen=True)
class Choice:
    """Parameters of one attempt at alignment: the seed of the hash function, and where special keys begin."""

    seed: int
    start: int
