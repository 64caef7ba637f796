"""Columns → a few values each: categories, pooled rare ones, and ranges of numbers, dates and ordered strings.

Numbers are divided into ranges where the loss changes on the searched half. Columns whose values identify items,
rather than describe them, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.align.attributes import number_values
from fastbcubed.find_slices.losses_by_unit import BinnedCodes, Losses
from fastbcubed.find_slices.unit_order import UnitOrder
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import (
    as_floats,
    codes_of,
    combined,
    from_numpy,
    is_null,
    plain,
    read_only,
    storage_of,
    take_rows,
    to_numpy,
    without_views,
)
from fastbcubed.render.number_formats import counted, label
from fastbcubed.runtime.threads import blocks
from fastbcubed.types import Codes, Floats

#: Maximum number of values of a column that are examined; rarer ones are pooled.
MOST_VALUES = 200
#: Maximum number of values with codes of one byte, and of values in all dictionaries of such a column.
MOST_CODES, MOST_IN_DICTIONARIES = 256, 1 << 16
#: Maximum number of rare values that the name of their slice lists.
FEW_NAMED = 3
#: Numeric columns with at most this many distinct values are categories; for others, number of quantile bins from which
#: ranges are formed.
FEW_NUMBERS, EDGES = 12, 48
#: Minimum number of ranges of a column, and maximum number if the loss changes more often.
RANGES, MOST_RANGES = 4, 6
#: Minimum gain of a further cut, as a multiple of the gain expected by chance.
GAIN = 8.0
#: A column counts as an id if this share of items has a value that no other unit has, and if the number of distinct
#: values exceeds this share of the items.
OF_IDS, DIFFERENT = 0.9, 0.02
#: Minimum share of distinct strings that must be dates for the column to be divided into ranges.
ORDERED = 0.95
#: Integers beyond this are not all distinct as floats; pattern of a zero fraction of seconds.
EXACT, WHOLE_SECONDS = 2**53, re.compile(r"\.0+(?!\d)")
#: Stands for bins that are codes themselves.
NO_BINS = np.empty(0, np.uint8)
DATE, DIGITS = r"^\d{4}-\d\d(-\d\d.*)?$", r"^-?(0|[1-9]\d*)(\.\d+)?$"


class Value(NamedTuple):
    """One or more values of a column: their text, and the condition that rows must meet.

    The condition has the keys value, values, low and high, or null.
    """

    attribute: str
    text: str
    is_: dict[str, Any]


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column as a code for each row, with rows sorted by unit."""

    attribute: str
    codes: BinnedCodes
    values: list[Value]  #: the value of each code
    kind: str
    rare: tuple[Any, ...] = ()  #: values that are pooled


def code_column(
    name: str, values: pa.ChunkedArray, losses: Losses, min_items: int, *, named: bool
) -> list[CodedColumn] | str:
    """Return a column as codes, or the reason why it is left out; numbers are returned with coarse and fine ranges.

    The codes take one byte per row, and another one while they are computed; strings take a number per row as well.

    Parameters
    ----------
    name : str
        The name of the attribute.
    values : ChunkedArray
        The value of each row, in the original order of the rows.
    losses : Losses
        The losses of the rows, sorted by unit.
    min_items : int
        Minimum number of items of a value that is not rare.
    named : bool
        Whether the column was requested by name, and is therefore never taken for an id.
    """
    values = without_views(values)
    given = pa.types.is_dictionary(values.type) and not pa.types.is_nested(values.type.value_type)
    values = values if given else storage_of(plain(values))
    kind = values.type.value_type if given else values.type
    numbered = _Numbered.of_few(values, losses.order) if given else None
    if not given and values.null_count == len(values):
        return "it has no value"
    if pa.types.is_nested(kind):
        return f"it has type {kind}, which is not plain"
    if not named and not pa.types.is_floating(kind) and not pa.types.is_decimal(kind):
        many = numbered is None or len(numbered.known) > _most_without_ids(losses.order.sampled)
        if many and not pa.types.is_temporal(kind) and _is_id(values, losses.order):
            return "nearly every value occurs in one group of items only, as with ids"
    if not given and (number := _as_numbers(values)) is not None:
        return _ranges(name, number, _Plain(values, number, losses.order), losses, min_items)
    numbered = numbered or _Numbered.of(values, losses.order)
    known = numbered.known
    if known.null_count == len(known):
        return "it has no value"
    number = _as_numbers(pa.chunked_array([known])) if given else None
    if number is None and (pa.types.is_string(known.type) or pa.types.is_large_string(known.type)):
        number = _numbers_in_text(known)
    if number is None:
        return _categories(name, numbered, min_items)
    return _ranges(name, number, _ByValue(numbered, number), losses, min_items)


def _is_id(values: pa.ChunkedArray, order: UnitOrder) -> bool:
    """Return whether nearly all items have a value that no item of another unit has."""
    sample = pa.chunked_array([take_rows(values, order.rows[: order.sampled])])
    codes, known = number_values(storage_of(plain(sample)))
    if len(known) <= _most_without_ids(codes.size):
        return False
    first, crosses = np.full(len(known), -1), np.zeros(len(known), np.bool_)
    kernels.slices.find_spread(codes, order.unit[: codes.size], first, crosses)
    crosses |= is_null(known)
    return bool(np.count_nonzero(crosses[codes]) <= (1 - OF_IDS) * codes.size)


def _most_without_ids(n_rows: int) -> float:
    """Return the number of distinct values in a sample up to which a column is not taken for ids."""
    return max(2, DIFFERENT * n_rows)


class _Numbered(NamedTuple):
    """The code of each row's value, in the original order of the rows."""

    codes: Codes
    number: NDArray[np.int64]  #: the position in `known` of the value of each code that occurs
    known: pa.Array  #: the values that occur: ascending, null last
    counts: NDArray[np.int64]  #: number of rows of each of these values
    order: UnitOrder

    @classmethod
    def of(cls, values: pa.ChunkedArray, order: UnitOrder) -> _Numbered:
        """Return codes of values; a dictionary may contain others."""
        codes, known = number_values(values, small=True)
        counts = np.zeros(len(known), np.int64)
        for start, stop in blocks(codes.size):
            counts += np.bincount(codes[start:stop], minlength=counts.size)
        return cls._that_occur(codes, known, counts, order)

    @classmethod
    def of_few(cls, values: pa.ChunkedArray, order: UnitOrder) -> _Numbered | None:
        """Return codes of one byte for the values of a dictionary column; None if its dictionaries have too many."""
        # Idea: each chunk of a file has a dictionary of its own. To make one column of them writes four bytes a row,
        # which are then read three times. Here each code of a chunk is looked up and counted in one pass.
        every, starts, n_values = [pa.nulls(1, values.type.value_type)], list[int](), 1
        for chunk in values.chunks:
            if not chunk.dictionary.equals(every[-1]):
                every.append(chunk.dictionary)
                n_values += len(chunk.dictionary)
            starts.append(n_values - len(chunk.dictionary))
        if n_values > MOST_IN_DICTIONARIES:
            return None
        numbers, known = number_values(pa.chunked_array(every))
        if len(known) > MOST_CODES:
            return None
        of_value = numbers.astype(np.uint8)
        codes, counts, at = np.empty(len(values), np.uint8), np.zeros(len(known), np.int64), 0
        for chunk, first in zip(values.chunks, starts, strict=True):
            of_code = np.append(of_value[first : first + len(chunk.dictionary)], of_value[0])
            for start, stop in blocks(len(chunk)):
                rows = chunk.slice(start, stop - start)
                own = codes_of(rows).astype(np.int32, copy=False)
                if rows.indices.null_count:
                    own = np.where(is_null(rows.indices), np.int32(of_code.size - 1), own)
                kernels.slices.count_codes(of_code, read_only(own), codes[at : at + own.size], counts)
                at += own.size
        return cls._that_occur(codes, known, counts, order)

    @classmethod
    def _that_occur(
        cls, codes: Codes, known: pa.Array, counts: NDArray[np.int64], order: UnitOrder
    ) -> _Numbered:
        there = counts > 0
        known = known if there.all() else known.take(from_numpy(np.flatnonzero(there)))
        return cls(codes, np.cumsum(there) - 1, known, counts[there], order)

    def sample(self, values: Floats) -> Floats:
        """Return the values of the sampled rows, given that of each distinct value."""
        return values[self.number[self.codes[self.order.rows[: self.order.sampled]]]]

    def placed(self, place: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the place of each row's value, with rows sorted by unit."""
        found = np.empty(self.codes.size, np.uint8)
        kernels.slices.take_codes(place[self.number], self.codes, self.order.rows, found)
        return found


def _ordered(known: pa.Array) -> str | None:
    """Return the pattern of numbers or dates that nearly all strings match; None if none, or if there are few."""
    n = len(known) - known.null_count
    for pattern, least in ((DIGITS, 1.0), (DATE, ORDERED)):
        found = pc.sum(pc.match_substring_regex(known, pattern)).as_py() or 0
        if n > FEW_NUMBERS and found >= least * n:
            return pattern
    return None


# -- Categories ------------------------------------------------------------------------------------


def _categories(name: str, numbered: _Numbered, min_items: int) -> list[CodedColumn] | str:
    known, counts = numbered.known, numbered.counts
    null = is_null(known)
    common = np.flatnonzero((counts >= min_items) & ~null)
    common = np.sort(common[np.argsort(-counts[common], kind="stable")[:MOST_VALUES]])
    rest = np.setdiff1d(np.flatnonzero((counts > 0) & ~null), common)
    if common.size + (counts[null].sum() >= min_items) == 0:
        return f"none of its {counted(len(known), 'value')} has {counted(min_items, 'item')}"
    found, place = list[Value](), np.zeros(len(known), np.uint8)
    for at in common.tolist():
        place[at] = len(found)
        value = known[at].as_py()
        found.append(Value(name, f"{name}={label(value)}", {"value": value}))
    rare: tuple[Any, ...] = ()
    if rest.size:
        place[rest] = len(found)
        rare = tuple(known.take(from_numpy(rest[np.argsort(-counts[rest], kind="stable")])).to_pylist())
        few = ", ".join(map(label, rare)) if len(rare) <= FEW_NAMED else f"{len(rare):,} values"
        text = f"{name} is rare ({few})" if len(rare) > 1 else f"{name}={label(rare[0])}"
        found.append(Value(name, text, {"values": list(rare)}))
    if null.any():
        place[null] = len(found)
        found.append(Value(name, f"{name} is null", {"null": True}))
    if len(found) < 2:
        return "it has one value"
    codes = BinnedCodes(numbered.placed(place), NO_BINS, len(found))
    return [CodedColumn(name, codes, found, "categories", rare)]


# -- Numbers ---------------------------------------------------------------------------------------


class _Numbers(NamedTuple):
    """The functions that turn values into floats, NaN for null, and that format one."""

    read: Callable[[pa.Array], Floats]
    write: Callable[[float], str]
    kind: str
    beyond: int = 0  #: offset subtracted from integers that are too large for floats

    def plain(self, x: float) -> Any:
        """Return a value in the form used in conditions: numbers unchanged, other values as strings."""
        if self.beyond:
            return int(x) + self.beyond
        return x if self.kind.startswith("number") else self.write(x)


def _as_numbers(values: pa.ChunkedArray) -> _Numbers | None:
    """Return a column of numbers, dates or times as floats; None for other types."""
    kind, is_type = values.type, pa.types
    if is_type.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        if is_type.is_interval(kind):
            return None

        def write(x: float) -> str:
            one = pa.array([int(x)], width).view(kind)
            text = str(one[0].as_py()) if is_type.is_duration(kind) else one.cast(pa.string())[0].as_py()
            return WHOLE_SECONDS.sub("", text)

        of = "duration" if is_type.is_duration(kind) else "time" if is_type.is_time(kind) else "date"
        return _Numbers(lambda some: _floats(some.view(width).cast(pa.float64(), safe=False)), write, of)
    if is_type.is_integer(kind):
        ends = [int(end) for end in pc.min_max(values).as_py().values()]
        if ends[1] - ends[0] > EXACT:
            return None
        low = ends[0] if max(map(abs, ends)) > EXACT else 0

        def read(some: pa.Array) -> Floats:
            numbers = to_numpy(some.fill_null(ends[0]))
            floats = (numbers - numbers.dtype.type(low)).astype(np.float64)
            floats[is_null(some)] = np.nan
            return floats

        return _Numbers(read, lambda x: f"{int(x) + low}", "number", low)
    if is_type.is_floating(kind) or is_type.is_decimal(kind):
        if is_type.is_decimal(kind):
            ends = [abs(end) for end in pc.min_max(values).as_py().values() if end is not None]
            if max(ends, default=0) > EXACT:
                return None
        return _Numbers(lambda some: _floats(as_floats(some)), lambda x: f"{x:.6g}", "number")
    return None


def _floats(values: pa.Array) -> Floats:
    return to_numpy(values.fill_null(np.nan))


def _numbers_in_text(known: pa.Array) -> _Numbers | None:
    """Return how distinct strings are read if they are numbers or dates; None otherwise."""
    pattern = _ordered(known)
    if pattern == DIGITS:
        return _Numbers(
            lambda some: _floats(pc.cast(some, pa.float64())), lambda x: f"{x:g}", "number in text"
        )
    if pattern == DATE:
        ranks = np.where(is_null(known), np.nan, np.arange(len(known), dtype=np.float64))
        return _Numbers(lambda _: ranks, lambda x: known[int(x)].as_py(), "date in text")
    return None


class _Plain(NamedTuple):
    """Numbers by row, read in blocks because floats of all rows would take more memory than all codes."""

    values: pa.ChunkedArray
    number: _Numbers
    order: UnitOrder

    def sample(self) -> Floats:
        """Return the numbers of the sampled rows, the first ones by unit."""
        return self.number.read(take_rows(self.values, self.order.rows[: self.order.sampled]))

    def binned(self, edges: Floats, lows: Floats, highs: Floats) -> NDArray[np.uint8]:
        """Return the bin of each row, sorted by unit, and write the least and the largest value of each bin."""
        own, found = (np.empty(len(self.values), np.uint8) for _ in range(2))
        for start, stop in blocks(own.size):
            some = self.number.read(combined(self.values.slice(start, stop - start)))
            kernels.slices.bin_values(some, edges, own[start:stop], lows, highs)
        kernels.slices.take_codes(np.arange(256, dtype=np.uint8), own, self.order.rows, found)
        return found


class _ByValue(NamedTuple):
    """Numbers by row that are known by distinct value."""

    numbered: _Numbered
    number: _Numbers

    def sample(self) -> Floats:
        """Return the numbers of the sampled rows, the first ones by unit."""
        return self.numbered.sample(self.number.read(self.numbered.known))

    def binned(self, edges: Floats, lows: Floats, highs: Floats) -> NDArray[np.uint8]:
        """Return the bin of each row, sorted by unit, and write the least and the largest value of each bin."""
        known = self.number.read(self.numbered.known)
        bins = np.empty(known.size, np.uint8)
        kernels.slices.bin_values(known, edges, bins, lows, highs)
        return self.numbered.placed(bins)


def _ranges(
    name: str, number: _Numbers, rows: _Plain | _ByValue, losses: Losses, min_items: int
) -> list[CodedColumn] | str:
    sample = rows.sample()
    sample = np.sort(sample[sample == sample])
    if not sample.size:
        return "it has no value on the searched half"
    different = np.unique(sample)
    few = different.size <= FEW_NUMBERS
    if few:
        edges = different[1:]
    else:
        at = np.arange(1, EDGES) * sample.size // EDGES
        edges = np.unique(sample[at])
        edges = edges[edges > sample[0]]
    lows, highs = np.full(edges.size + 1, np.inf), np.full(edges.size + 1, -np.inf)
    bins = rows.binned(edges, lows, highs)
    null = edges.size + 1
    if few:
        cuts = [list(range(1, edges.size + 1))]
    else:
        cut = _cuts(BinnedCodes(bins, NO_BINS, null + 1), losses, min_items)
        cuts = [cut[:1], sorted(cut)] if len(cut) > 1 else [cut]
    has_null = any(bool((bins[start:stop] == null).any()) for start, stop in blocks(bins.size))
    found = []
    for own in cuts:
        place = np.searchsorted(own, np.arange(256), side="right").astype(np.uint8)
        place[null:] = len(own) + 1
        ends = [*zip([0, *own], [*own, edges.size + 1], strict=True)]
        named = [_range(name, number, lows, highs, *each, edges.size + 1) for each in ends]
        if has_null:
            named.append(Value(name, f"{name} is null", {"null": True}))
        if len(named) > 1:
            found.append(CodedColumn(name, BinnedCodes(bins, place, len(named)), named, number.kind))
    return found or "it has one value"


def _range(name: str, number: _Numbers, lows: Floats, highs: Floats, first: int, last: int, n: int) -> Value:
    """Return the value that covers some bins, described by the smallest and the largest number in them."""
    low, high = float(lows[first:last].min()), float(highs[first:last].max())
    texts, plain = ([write(x) for x in (low, high)] for write in (number.write, number.plain))
    if low == high:
        return Value(name, f"{name}={texts[0]}", {"value": plain[0]})
    if first == 0 and last < n:
        return Value(name, f"{name} ≤ {texts[1]}", {"high": plain[1]})
    if first > 0 and last == n:
        return Value(name, f"{name} ≥ {texts[0]}", {"low": plain[0]})
    return Value(name, f"{name} {texts[0]}–{texts[1]}", {"low": plain[0], "high": plain[1]})


def _cuts(codes: BinnedCodes, losses: Losses, min_items: int) -> list[int]:
    """Return the bins at which ranges begin, best cut first.

    Each cut maximizes the difference between the mean losses to its left and right, as in a regression tree. The
    first few cuts are made in any case, so that a number can be crossed with another attribute.
    """
    (sums,) = losses.slice_sums([], [codes])
    rows, mass, loss = sums[:-1, 0], sums[:-1, 1], sums[:-1, 3]
    by_chance = float(np.sum(losses.of_unit * losses.of_unit)) / max(float(mass.sum()), 1e-300)
    least, cuts = max(1, min_items // 2), list[int]()
    while len(cuts) + 1 < MOST_RANGES:
        ends = [0, *sorted(cuts), rows.size]
        best = max(
            (_best_cut(rows, mass, loss, a, b, least) for a, b in pairwise(ends)),
            default=(0.0, 0),
        )
        if best[0] <= (GAIN * by_chance if len(cuts) + 1 >= RANGES else 0.0):
            break
        cuts.append(best[1])
    return cuts


def _best_cut(rows: Floats, mass: Floats, loss: Floats, a: int, b: int, least: int) -> tuple[float, int]:
    """Return the gain of the best cut of the bins a..b, and the bin where the right part begins."""
    if b - a < 2:
        return 0.0, 0
    n, w, s = (np.cumsum(each[a:b]) for each in (rows, mass, loss))
    left, right = w[:-1], w[-1] - w[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = (s[:-1] / left - (s[-1] - s[:-1]) / right) ** 2 * left * right / w[-1]
    gain[(n[:-1] < least) | (n[-1] - n[:-1] < least) | ~np.isfinite(gain)] = 0.0
    at = int(np.argmax(np.round(gain, 9)))
    return float(gain[at]), a + 1 + at


def without_repeats(columns: Sequence[CodedColumn], sampled: int) -> tuple[list[CodedColumn], dict[str, str]]:
    """Drop columns that are equivalent to an earlier one; return the others, and what each dropped attribute repeats.

    Two columns are equivalent if each is a function of the other.
    """
    kept: list[CodedColumn] = []
    known: dict[tuple[int, bytes], CodedColumn] = {}
    same: dict[str, str] = {}
    for each in columns:
        codes = each.codes.of_rows(slice(0, sampled))
        first = np.full(256, codes.size)
        first[codes[::-1]] = np.arange(codes.size)[::-1]  # of equal codes, the one written last stays
        rank = np.empty(256, np.uint8)
        rank[np.argsort(first, kind="stable")] = np.arange(256)
        n = int(np.count_nonzero(first < codes.size))
        other = known.setdefault((n, rank[codes].tobytes()), each)
        if other is each or not _are_alike(each.codes, other.codes):
            kept.append(each)
        elif other.attribute != each.attribute:
            same[each.attribute] = other.attribute
    names = {each.attribute for each in kept}
    return kept, {name: other for name, other in same.items() if name not in names}


def _are_alike(codes: BinnedCodes, others: BinnedCodes) -> bool:
    """Return whether two arrays of codes are functions of each other."""
    there = np.zeros((256, 256), np.bool_)
    for start, stop in blocks(codes.bins.size):
        some = slice(start, stop)
        there[codes.of_rows(some), others.of_rows(some)] = True
    return bool((there.sum(axis=0) <= 1).all() and (there.sum(axis=1) <= 1).all())
