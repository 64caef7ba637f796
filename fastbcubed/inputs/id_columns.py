"""Columns of ids or labels, simple or composite: their values, nulls, and keys comparable between columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from fastbcubed.errors import AlignmentError, ColumnError, IdTypeError, arg, first_few
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import (
    Nulls,
    combined,
    from_numpy,
    id_kind,
    is_fractional,
    is_null,
    is_pandas,
    is_view,
    mask_by_code,
    null_mask,
    nulls_in_codes,
    plain_type,
    read_only,
    require_valid,
    starts_as_integers,
    storage_of,
    take_rows,
    to_arrow,
    to_numpy,
    values_of_codes,
    whole_numbers,
    wide_type,
    without_views,
)
from fastbcubed.inputs.keys import (
    find_collision,
    integer_keys,
    number_codes,
    number_few,
    number_texts,
    write_both,
    write_pairs,
)
from fastbcubed.inputs.typed_columns import Typed
from fastbcubed.runtime.threads import Pool, blocks

#: Number of hash seeds tried; a second one is needed about once in 3,000 columns of 10**8 strings.
HASH_SEEDS = 8


class Order(Enum):
    """How the order of the parts of composite ids was determined."""

    OWN = "own"  #: by the data: levels of a MultiIndex, fields of a struct, or tuples
    LISTED = "listed"  #: by the list in which the columns were named
    PAIRED = "paired"  #: by lists of columns for both sides, so that parts correspond by position


class Column:
    """Ids or labels, one per row, of one part or several (a composite id).

    `kind` is "integer", "string", "binary" or "composite"; `kinds` has the kind of each part. `parts` are the original
    data with run-end encoding removed, and `plain` the same data as integers, strings, binary or dictionaries of these.
    `where` is the column's name in messages, and `order` says how the order of the parts was determined.

    The Arrow data are kept without copying.

    Examples
    --------
    >>> import pyarrow as pa
    >>> column = Column("item", [pa.chunked_array([["b", "a"], ["b"]])])
    >>> column.find("b").tolist()
    [0, 2]
    """

    def __init__(self, names: str | Sequence[str], parts: Sequence[pa.ChunkedArray], where: str = "") -> None:
        self.names = (names,) if isinstance(names, str) else tuple(names)
        self.name = ", ".join(self.names)
        self.where = where = where or f"column {self.name!r}"
        self.order = Order.LISTED
        if all(pa.types.is_integer(part.type) for part in parts):  # otherwise nothing needs decoding
            parts = plain = tuple(parts)
            kinds, was_fractional = ("integer",) * len(parts), False
        else:
            was_fractional = any(len(part) and is_fractional(part.type) for part in parts)
            parts = tuple(_decoded(part, where) for part in parts)
            kinds = tuple(id_kind(part.type, where) for part in parts)
            plain = tuple(storage_of(part) for part in parts)
        self.parts, self.plain, self.kinds = parts, plain, kinds
        #: whether the values were floats or decimals, all of them whole numbers
        self.was_fractional = was_fractional
        #: names of the parts from a source without types, where canonical integers may be text
        self.untyped: frozenset[str] = frozenset()
        self.kind = self.kinds[0] if len(self.kinds) == 1 else "composite"
        if not self.parts:
            raise ColumnError(f"An id needs at least one part, but {where} has none.")
        if len({len(part) for part in self.parts}) > 1:
            lengths = ", ".join(str(len(part)) for part in self.parts)
            raise ColumnError(f"The parts of {where} differ in length: {lengths} rows.")

    def __len__(self) -> int:
        return len(self.parts[0])

    def __repr__(self) -> str:
        types = ", ".join(str(part.type) for part in self.parts)
        return f"Column({self.name!r}, {len(self):,} rows of {types})"

    @property
    def null_rows(self) -> np.ndarray | None:
        """Mask of the rows with a null in any part; None if there are none."""
        nullable = [part for part in self.plain if part.null_count or pa.types.is_dictionary(part.type)]
        masks = [mask for mask in map(null_mask, nullable) if mask is not None]
        return np.logical_or.reduce(masks) if masks else None

    def refuse_nulls(self) -> None:
        """Raise NullError if this column of item ids has a null."""
        nulls = self.null_rows
        if nulls is not None:
            rows = np.flatnonzero(nulls)
            raise Nulls(True, self.where, rows.size, len(nulls), rows[:4].tolist()).error()

    def keys(self, pool: Pool | None = None, *, narrow: bool = False) -> np.ndarray:
        """Return an int64 key per row; two keys are equal if and only if the values are equal.

        Integers are their own keys, with uint64 reinterpreted: 64-bit integers in a contiguous NumPy array or an Arrow
        array of one chunk are not copied; other integers are copied once. Values of a small dictionary are numbered.
        Other values are hashed (8 bytes per row stay; 8 more and up to 256 MiB are temporary). Null rows get an
        arbitrary key. Keys of two columns are comparable only if they come from one call of `key_pair`.

        Keys of a column without nulls may be `narrow`: int32, for integers of at most 32 bits or numbered
        values. Shapes: returns (n_rows,).
        """
        return comparable_keys([self], pool, narrow=narrow)[0]

    def take(self, rows: np.ndarray) -> pa.Array:
        """Return the values of some rows, in their own type; composite ids as structs.

        Views (string_view, binary_view) are returned as large strings, which Arrow can sort.
        """
        taken = [combined(part) for part in self.rows_of(rows)]
        return taken[0] if self.kind != "composite" else self._struct(taken)

    def take_or_null(self, rows: np.ndarray) -> pa.Array:
        """Return the values of some rows, null for row -1."""
        missing = rows < 0
        if not missing.any():
            return self.take(rows)
        return self.take(rows[~missing]).take(from_numpy(np.cumsum(~missing) - 1, missing))

    def first_of(self, rows: np.ndarray) -> list[Any]:
        """Return the values at the first few of these rows, one more than a message shows."""
        return self.take(rows[:4]).to_pylist()

    def rows_of(self, rows: np.ndarray) -> list[pa.ChunkedArray]:
        """Return the values of some rows, part by part."""
        rows = np.asarray(rows, dtype=np.int64)
        return [pa.chunked_array([take_rows(part, rows)]) for part in self.parts]

    def slice(self, start: int, stop: int) -> pa.ChunkedArray:
        """Return the values of consecutive rows, like `take`; only composite ids and views are copied."""
        sliced = [without_views(part.slice(start, stop - start)) for part in self.parts]
        if self.kind != "composite":
            return sliced[0]
        return pa.chunked_array([self._struct([combined(part) for part in sliced])])

    def stretch(self, start: int, stop: int) -> Column:
        """Return the column restricted to consecutive rows; nothing is copied."""
        return self._of(self.names, [part.slice(start, stop - start) for part in self.parts])

    def chosen(self, rows: np.ndarray) -> Column:
        """Return the column restricted to these rows."""
        return self._of(self.names, self.rows_of(rows))

    def reordered(self, order: Sequence[int]) -> Column:
        """Return the column with its parts in another order, without copying."""
        return self._of([self.names[k] for k in order], [self.parts[k] for k in order])

    def _of(self, names: Sequence[str], parts: Sequence[pa.ChunkedArray]) -> Column:
        found = Column(names, parts, self.where)
        found.was_fractional, found.order = self.was_fractional, self.order
        found.untyped = self.untyped
        return found

    def with_text(self, texts: Sequence[bool]) -> Column:
        """Return the column with the parts marked in `texts` as text, if integers from a source without types."""
        chosen = [
            text and kind == "integer" and name in self.untyped
            for text, kind, name in zip(texts, self.kinds, self.names, strict=False)
        ]
        if self.was_fractional or not any(chosen):  # the text of a float, such as 1.0, would be lost
            return self
        parts = list(self.parts)
        for k in np.flatnonzero(chosen):
            plain = values_of_codes(parts[k]) if pa.types.is_dictionary(parts[k].type) else parts[k]
            parts[k] = plain.cast(pa.string())
        return self._of(self.names, parts)

    def find(self, value: Any) -> np.ndarray:
        """Return the rows with this value, in ascending order; for a composite id the value is a tuple.

        A value of another type than the column raises IdTypeError.
        """
        values = value if self.kind == "composite" else (value,)
        if not isinstance(values, (tuple, list)) or len(values) != len(self.parts):
            raise IdTypeError(
                f"ids of {self.where} have {len(self.parts)} parts ({self.name}): they are tuples of "
                f"{len(self.parts)} values, not {first_few([value])}."
            )
        scalars = [_as_scalar(one, part, self.where) for one, part in zip(values, self.plain, strict=True)]
        found = []
        for start, stop in blocks(len(self)):
            equal = np.ones(stop - start, dtype=bool)
            for part, scalar in zip(self.plain, scalars, strict=True):
                equal &= _equal_mask(part.slice(start, stop - start), scalar)
            found.append(np.flatnonzero(equal) + start)
        return np.concatenate(found)

    def _struct(self, arrays: list[pa.Array]) -> pa.Array:
        return pa.StructArray.from_arrays(arrays, names=list(self.names))


def as_column(values: Any, name: str, where: str = "") -> Column:
    """Make a column of an array-like of ids or labels; tuples, a MultiIndex and structs become composite ids.

    A Column is returned unchanged.
    """
    where = where or f"column {name!r}"
    if isinstance(values, Column):
        return values
    if starts_as_integers(values):
        return Column(name, [to_arrow(values, where)], where)
    parts: Any
    if is_pandas(values, "MultiIndex"):
        parts = [values.get_level_values(level) for level in range(values.nlevels)]
        names = [unnamed(name, i) if own is None else str(own) for i, own in enumerate(values.names)]
    else:
        parts = _split_tuples(values, where)
        names = [unnamed(name, i) for i in range(len(parts or ()))]
    if parts is not None:
        found = Column(names, [to_arrow(part, where) for part in parts], where)
    elif isinstance(values, (pa.Array, pa.ChunkedArray)) and pa.types.is_struct(values.type):
        data = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
        found = Column([field.name for field in data.type], data.flatten(), where)
    else:
        return Column(name, [to_arrow(values, where)], where)
    found.order = Order.OWN
    return found


def unnamed(name: str, part: int) -> str:
    """Return the name given to an unnamed part of composite ids."""
    return f"{name}_{part}"


def _is_id(kind: pa.DataType) -> bool:
    try:
        return bool(id_kind(kind, ""))
    except IdTypeError:
        return False


def _decoded(part: pa.ChunkedArray, where: str) -> pa.ChunkedArray:
    if len(part) and is_fractional(part.type):
        return whole_numbers(part, where)
    # NumPy and pandas store empty data as floats or objects by default
    if not len(part) and not _is_id(part.type):
        return pa.chunked_array([], pa.int64())
    if pa.types.is_run_end_encoded(part.type):
        return storage_of(part)
    inner = part.type.value_type if pa.types.is_dictionary(part.type) else None
    # few Arrow functions support extension types as dictionary values
    if isinstance(inner, pa.BaseExtensionType | pa.DictionaryType):
        return _decoded(values_of_codes(part), where)
    return nulls_in_codes(part)


def _split_tuples(values: Any, where: str) -> list[list[Any]] | None:
    """Return the parts of a list of tuples, one list per position; None for other lists.

    None instead of a tuple is a null in every part.
    """
    if isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1:
        values = values.tolist()
    if not isinstance(values, (list, tuple)):
        return None
    example = next((value for value in values if value is not None), None)
    if not isinstance(example, tuple):
        return None
    missing = (None,) * len(example)
    rows = [missing if value is None else value for value in values]
    others = [row for row in rows if not isinstance(row, tuple) or len(row) != len(example)]
    if others:
        raise IdTypeError(
            f"{where}: composite ids should all be tuples of {len(example)} values, like the first, but "
            f"{len(others)} of {len(rows)} are not (first: {first_few(others)})."
        )
    return [list(part) for part in zip(*rows, strict=True)]


def _is_whole(value: Any) -> bool:
    """Return whether this is a whole number stored as a float or Decimal."""
    if isinstance(value, Decimal):
        return value.is_finite() and value == value.to_integral_value()
    return isinstance(value, float) and value.is_integer()


def _as_scalar(value: Any, part: pa.ChunkedArray, where: str) -> pa.Scalar:
    """Return a value as a scalar of the column's type; null, which equals nothing, if the type cannot hold it."""
    plain = plain_type(part.type)
    value = value.item() if isinstance(value, np.generic) else value
    if pa.types.is_integer(plain) and _is_whole(value):
        value = int(value)
    expected: type = {"integer": int, "string": str, "binary": bytes}[id_kind(plain, where)]
    value = getattr(value, "bytes", value) if expected is bytes else value  # a uuid.UUID
    if not isinstance(value, expected) or isinstance(value, bool):
        raise IdTypeError(f"{first_few([value])} cannot be in {where}, which has type {part.type}.")
    try:
        return pa.scalar(value, type=plain)
    except UnicodeEncodeError as error:
        raise IdTypeError(f"{first_few([value])} is not in {where}: it is not valid text.") from error
    except (pa.ArrowException, OverflowError):
        return pa.scalar(None, type=plain)  # an integer that is too wide, or bytes of another length


def _equal_mask(data: pa.ChunkedArray, scalar: pa.Scalar) -> np.ndarray:
    """Return the mask of rows equal to the value, of shape (n,)."""
    if not scalar.is_valid or not len(data):
        return np.zeros(len(data), dtype=bool)
    masks = []
    for chunk in data.chunks:
        values = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
        values = storage_of(pa.chunked_array([values])).chunk(0)
        if is_view(values.type):
            wide = wide_type(values.type)
            values, scalar = values.cast(wide), pa.scalar(scalar.as_py(), wide)
        equal = pc.equal(values, scalar)
        mask = to_numpy(equal) & ~is_null(equal)
        masks.append(mask_by_code(mask, chunk) if pa.types.is_dictionary(chunk.type) else mask)
    return np.concatenate(masks)


T = TypeVar("T")


def joined_in_order(ids: Column | None, joined: tuple[Column, T] | None) -> tuple[Column, T] | None:
    """Return ids and the data joined on them, with the parts of the ids in the truth's order."""
    return joined if ids is None or joined is None else (in_order_of(ids, joined[0]), joined[1])


def in_order_of(ids: Column, column: Column, *, strict: bool = True) -> Column:
    """Return a column with its parts in the same order as those of `ids`.

    Parts are matched by name if both sides use the same names, otherwise by position. Columns that were listed for each
    side are matched by position. If `strict`, different names raise AlignmentError, except for listed columns.

    Examples
    --------
    >>> import pyarrow as pa
    >>> parts = [pa.chunked_array([["a"]]), pa.chunked_array([[1]])]
    >>> ids, column = Column(["source", "id"], parts), Column(["id", "source"], parts[::-1])
    >>> in_order_of(ids, column).names
    ('source', 'id')
    """
    names, own, orders = ids.names, column.names, {ids.order, column.order}
    if names == own or not len(names) == len(own) > 1 or orders == {Order.PAIRED}:
        return column
    if set(names) == set(own) and len(set(own)) == len(own):
        return column.reordered([own.index(name) for name in names])
    if strict and Order.OWN in orders and _differ(names, own):
        raise AlignmentError(
            f"The parts of ids have different names in {ids.where} ({first_few(names, 9)}) and in "
            f"{column.where} ({first_few(own, 9)}), so they cannot be matched. Give both the same names, in "
            f"any order (for the levels of a pandas index, use .rename_axis({list(names)!r})); parts without "
            "names are matched by position."
        )
    return column


def _differ(names: tuple[str, ...], own: tuple[str, ...]) -> bool:
    """Return whether the names forbid matching parts by position: two differ, or a name is at another position."""
    placed = enumerate(zip(names, own, strict=True))
    other = any(
        first != second and unnamed("item", k) not in (first, second) for k, (first, second) in placed
    )
    return other or any(name in own and own.index(name) != k for k, name in enumerate(names))


def key_pair(a: Column, b: Column, pool: Pool | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of two columns of item ids, comparable with each other; raise NullError for null ids."""
    for column in (a, b):
        column.refuse_nulls()
    keys = comparable_keys([a, b], pool)
    return keys[0], keys[1]


def comparable_keys(
    columns: Sequence[Column], pool: Pool | None = None, *, narrow: bool = False
) -> list[np.ndarray]:
    """Return the keys of columns, equal within and between columns exactly where the values are equal.

    Columns must be of one kind; empty and all-null ones match any kind, and integers from a source without types match
    text. Keys of a single column without nulls may be `narrow`: int32, if all fit.

    Raise IdTypeError for text that is not UTF-8 and for codes outside a dictionary.
    """
    if len(columns) > 1:
        texts = text_parts(columns)
        columns = [column.with_text(texts) for column in columns]
        check_kinds(columns)
    threads, plain = pool or Pool(threads=1), all(column.kind == "integer" for column in columns)
    with explaining_invalid(columns):
        if plain and (len(columns) == 1 or not _signs_clash(columns)):
            return [integer_keys(column.plain[0], threads, narrow) for column in columns]
        if len(columns) == len(columns[0].plain) == 1:
            for number in (number_codes, number_texts):
                numbers = number(columns[0].plain[0], threads, narrow=narrow)
                if numbers is not None:
                    return [read_only(numbers)]
        if (few := number_few([column.plain for column in columns])) is not None:
            return [read_only(keys) for keys in few]
        for seed in range(HASH_SEEDS):
            written = [write_pairs(column.plain, seed, threads) for column in columns]
            if not find_collision([pair for _, pairs in written for pair in pairs], threads):
                return [read_only(keys) for keys, _ in written]
    raise IdTypeError(  # practically impossible by chance
        f"{columns[0].where}: values collide under all {HASH_SEEDS} hash functions. Use integer ids."
    )


@contextmanager
def explaining_invalid(columns: Iterable[Column]) -> Iterator[None]:
    """Convert Arrow's error for invalid data of these columns to one that names the column and the rows."""
    try:
        yield
    except pa.ArrowInvalid:
        for column in columns:
            for part in column.plain:
                require_valid(part, column.where)
        raise


def are_plain(columns: Sequence[Column]) -> bool:
    """Return whether integers can be their own keys in all of these columns, judging by type."""
    kinds = [plain_type(part.type) for column in columns for part in column.plain]
    unsigned = [pa.types.is_uint64(kind) for kind in kinds]
    return all(column.kind == "integer" for column in columns) and (all(unsigned) or not any(unsigned))


def seeded_keys(
    column: Column, seed: int | None, pool: Pool
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """Return the keys of a block of a column, and the fingerprints to check once all blocks have been read.

    The same seed makes keys of several blocks or columns comparable. It is None if integers are their own keys.
    """
    with explaining_invalid([column]):
        if seed is None:
            return integer_keys(column.plain[0], pool), []
        return write_pairs(column.plain, seed, pool)


def proved_keys(column: Column, seed: int, pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of a block of a column, and the second word of each row's fingerprint, which verifies the key."""
    with explaining_invalid([column]):
        return write_both(column.plain, seed, pool)


def text_parts(columns: Sequence[Column]) -> list[bool]:
    """Return, for each part of ids, whether it is text in any of these columns."""
    return ["string" in kinds for kinds in zip(*(each.kinds for each in columns if len(each)), strict=False)]


def check_kinds(columns: Sequence[Column]) -> None:
    """Raise IdTypeError if columns that have values are of different kinds."""
    known = [c for c in columns if len(c) and not all(part.null_count == len(part) for part in c.plain)]
    for column in known[1:]:
        if column.kinds != known[0].kinds:
            found = [
                f"{' and '.join(str(part.type) for part in c.parts)} in {c.where}" for c in (known[0], column)
            ]
            raise IdTypeError(
                f"Ids of different types never match: {', but '.join(found)}. "
                f"To match them, {_kind_advice(known[0], column)}."
            )


def _kind_advice(first: Column, second: Column) -> str:
    """Return advice for ids of different kinds: cast them, or name equally many columns on both sides."""
    if len(first.parts) == len(second.parts):
        return "cast one side to the type of the other"
    longer, other = sorted((first, second), key=lambda column: -len(column.names))
    if common := [name for name in other.names if name in longer.names]:
        more = " and ".join(name for name in longer.names if name not in common)
        return (
            f"name the same columns on both sides: {Typed()({'item': list(longer.names)})} (for links, with "
            f"{arg('left', ...)} and {arg('right', ...)}). If ids are unique without {more}, omit it on both "
            f"sides instead: {Typed()({'item': common})}"
        )
    return (
        f"name the same number of columns on both sides with {arg('item', ...)} (for links, with "
        f"{arg('left', ...)} and {arg('right', ...)}), and cast one side to the type of the other if needed"
    )


def _signs_clash(columns: Sequence[Column]) -> bool:
    """Return whether two different integers would become equal if uint64 were reinterpreted as int64."""
    parts = [column.plain[0] for column in columns]
    unsigned = [part for part in parts if pa.types.is_uint64(plain_type(part.type))]
    if len(unsigned) in (0, len(parts)):
        return False
    signed = [part for part in parts if not pa.types.is_uint64(plain_type(part.type))]
    return any(_reaches(part, True) for part in unsigned) and any(_reaches(part, False) for part in signed)


def _reaches(part: pa.ChunkedArray, unsigned: bool) -> bool:
    for chunk in part.chunks:
        values = chunk.dictionary if pa.types.is_dictionary(part.type) else chunk
        bounds = pc.min_max(values).as_py()
        if unsigned and (bounds["max"] or 0) >= 2**63:
            return True
        if not unsigned and (bounds["min"] or 0) < 0:
            return True
    return False
