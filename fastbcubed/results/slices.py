"""Slices: groups of items by attributes, by ranges of numbers, or by parts of dates."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise, takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.errors import (
    TRUTH,
    ColumnError,
    Either,
    FastBCubedError,
    MetricError,
    SliceError,
    Word,
    arg,
    first_few,
)
from fastbcubed.inputs import arrow_functions as pc
from fastbcubed.inputs.arrays import (
    combined,
    from_numpy,
    from_texts,
    is_null,
    is_pandas,
    plain,
    table_of,
    take_or_null,
    to_arrow,
    to_numpy,
)
from fastbcubed.inputs.suggestions import did_you_mean, similar, split
from fastbcubed.inputs.suggestions import plain as unescaped
from fastbcubed.inputs.tables import UNABLE, number_values, readable
from fastbcubed.metrics import aggregation
from fastbcubed.metrics.score import Metric
from fastbcubed.results.items import AttributeTable, Items, Kept, named_sides
from fastbcubed.results.summary import Figures, Scores
from fastbcubed.results.table import LOSS, Table, listed
from fastbcubed.runtime.arguments import is_bare, whole_number

if TYPE_CHECKING:
    from fastbcubed.results.standard_errors import ScoreErrors

__all__ = ["Bins", "bins", "element_of"]

#: Numbers of bins beyond this are no longer distinct.
MOST = 2.0**53
#: Values this close to an edge, in widths of a bin, are on it.
ROUNDING = 1e-9

#: Parts of a year by which dates are binned, and how many of each a year has.
UNITS = {"year": 1, "quarter": 4, "month": 12}
#: One of them, or several, as "quarter", "2 years" or "3mo".
CALENDAR = re.compile(
    r"(?P<width>[1-9]\d*)? ?(?:(?P<year>y|years?)|(?P<quarter>q|quarters?)|(?P<month>mo|months?))"
)
#: Dates as text: a year, maybe with a month, or a full date with any suffix.
DATE = r"^\d{4}(-(0[1-9]|1[0-2])(-\d\d([T ].*)?)?)?$"

Number = int | float


@dataclass(frozen=True, repr=False)
class Bins:
    """Ranges of an attribute; made by `fastbcubed.bins`."""

    name: str  #: the attribute
    width: Number | None = None  #: of all bins, one of which begins at 0
    edges: tuple[Number, ...] = ()  #: where bins begin, if they have no common width
    unit: str = ""  #: of the width, by the calendar

    def __str__(self) -> str:
        """Return the name by which results list them: ``year:10``, ``day:quarter``."""
        by = (
            [self._by_calendar]
            if self.unit
            else map(_figure, self.edges if self.width is None else [self.width])
        )
        return ":".join([self.name, *by])

    def __repr__(self) -> str:
        by = (
            json.dumps(self._by_calendar)
            if self.unit
            else repr(list(self.edges) if self.width is None else self.width)
        )
        return f"bins({json.dumps(self.name, ensure_ascii=False)}, {by})"

    @property
    def _by_calendar(self) -> str:
        return self.unit if self.width == 1 else f"{self.width} {self.unit}s"

    def numbers(self, values: pa.Array) -> pa.Array:
        """Return the number of the bin of each value, null where there is none: int64 of integers, else float64.

        The type tells `labels` whether both ends belong to a bin.
        """
        found = self._figures(values)
        figures = to_numpy(found)
        null = is_null(found)
        if figures.dtype.kind == "f":
            null = null | np.isnan(figures)
            figures = np.where(null, 0.0, figures)
        whole = figures.dtype.kind == "i" and self._is_whole
        return from_numpy(self._numbered(figures, whole).astype(np.int64 if whole else np.float64), null)

    @property
    def _is_whole(self) -> bool:
        return all(isinstance(each, int) for each in (self.edges if self.width is None else [self.width]))

    def _numbered(self, figures: NDArray[Any], whole: bool) -> NDArray[Any]:
        if self.width is None:
            return np.searchsorted(np.array(self.edges), figures, side="right")
        if whole:
            return np.floor_divide(figures, self.width)
        with np.errstate(all="ignore"):  # overflow is reported below
            widths = figures / self.width
            near = np.rint(widths)
            on_edge = np.abs(widths - near) <= ROUNDING * np.maximum(1, np.abs(near))
            numbers = np.where(on_edge, near, np.floor(widths))
        if (strange := ~(np.abs(numbers) < MOST)).any():
            raise SliceError(
                f"some values of {self.name!r} are in no bin of width {_figure(self.width)} (first: "
                f"{first_few(figures[strange][:4].tolist())}); pass edges, or a larger width"
            )
        return numbers

    def _figures(self, values: pa.Array) -> pa.Array:
        """Return values as int64 or float64, dates as years, quarters or months; SliceError if they are neither."""
        kind, is_type = values.type, pa.types
        try:
            if is_type.is_date(kind) or is_type.is_timestamp(kind):
                return self._units(pc.year(values), lambda: pc.month(values))
            if self.unit and (is_type.is_string(kind) or is_type.is_large_string(kind)):
                return self._of_dates(values)
            if self.unit not in ("", "year"):
                raise SliceError(
                    f"{self.name!r} has no {self.unit}s: it is of type {kind}, and these are of dates"
                )
            if is_type.is_string(kind) or is_type.is_large_string(kind):
                return _of_text(values)
            if is_type.is_integer(kind) or (is_type.is_decimal(kind) and kind.scale == 0):
                return values.cast(pa.int64())
            if is_type.is_floating(kind) or is_type.is_decimal(kind):
                return values.cast(pa.float64())
        except pa.ArrowInvalid as error:
            if first := list(islice(_no_numbers(values), 3)):
                raise SliceError(
                    f"cannot make bins of {self.name!r}: some of its values are not numbers (first: "
                    f"{first_few(first)}). Slice by the attribute itself, or put nulls in their place"
                ) from None
            raise SliceError(f"cannot make bins of {self.name!r}: {str(error).splitlines()[0]}") from error
        raise SliceError(
            f"cannot make bins of {self.name!r}, which is of type {kind}; they are ranges of numbers, or of years of "
            "dates"
        )

    def _of_dates(self, values: pa.Array) -> pa.Array:
        """Return the parts of dates in text, which begins with year and month."""
        is_date = pc.match_substring_regex(values, DATE if self.unit == "year" else DATE.replace("?$", "$"))
        if strange := values.filter(pc.invert(is_date)).drop_null()[:4].to_pylist():
            raise SliceError(
                f"cannot make bins of {self.name!r}: some of its values are no dates such as 2020-03-31 (first: "
                f"{first_few(strange)})"
            )
        months = pc.utf8_slice_codeunits(values, 5, 7)
        return self._units(
            pc.utf8_slice_codeunits(values, 0, 4).cast(pa.int64()), lambda: months.cast(pa.int64())
        )

    def _units(self, years: pa.Array, months: Callable[[], pa.Array]) -> pa.Array:
        """Return years, or how many quarters or months there were before."""
        n = UNITS.get(self.unit, 1)
        if n == 1:
            return years
        part = pc.divide(pc.subtract(months(), 1), 12 // n)
        return pc.add(pc.multiply(years, n), part)

    def labels(self, numbers: pa.Array) -> pa.Array:
        """Return the names of bins from their numbers: "1990-1999" of integers, "[0.5, 1)" of others, or "1990-Q1"."""
        whole = pa.types.is_integer(numbers.type)
        return from_texts([None if k is None else self._label(int(k), whole) for k in numbers.to_pylist()])

    def holding(self, text: str) -> list[str]:
        """Return the possible names of the bin that holds a number, given as text."""
        try:
            if self.unit:
                return self.labels(self.numbers(pa.array([text]))).to_pylist()
            figures = _of_text(pa.array([text]))
            found = [self.labels(self.numbers(figures.cast(kind))) for kind in {figures.type, pa.float64()}]
        except (pa.ArrowInvalid, SliceError):
            return []
        return [label[0].as_py() for label in found if label[0].is_valid]

    def _label(self, k: int, whole: bool) -> str:
        if self.width is not None:
            low, high = k * self.width, (k + 1) * self.width
            if UNITS.get(self.unit, 1) > 1:
                return " to ".join(dict.fromkeys(map(self._unit_name, (int(low), int(high) - 1))))
        elif k == 0:
            return f"<{_figure(self.edges[0])}"
        elif k == len(self.edges):
            return f">={_figure(self.edges[-1])}"
        else:
            low, high = self.edges[k - 1], self.edges[k]
        if not whole:
            return f"[{_figure(low)}, {_figure(high)})"
        last = int(high) - 1
        if last == low:
            return _figure(low)
        return f"{_figure(low)}-{last}" if low >= 0 else f"{_figure(low)} to {last}"

    def _unit_name(self, number: int) -> str:
        year, part = divmod(number, UNITS[self.unit])
        return f"{year:04}-Q{part + 1}" if self.unit == "quarter" else f"{year:04}-{part + 1:02}"


def bins(name: str, by: Number | Iterable[Number] | str) -> Bins:
    """Slice by ranges of an attribute of numbers, or of dates, by their years, quarters or months.

    Parameters
    ----------
    name : str
        The attribute.
    by : number, list of numbers, or str
        The width of all bins, one of which begins at 0; or the edges at which bins begin, ascending. The first of
        these is preceded by a bin of all that is less. Numbers are years where the attribute has dates. Or "year",
        "quarter" or "month", or several of these, such as "5 years" or "6 months" (also "5y", "1q", "6mo"), of dates,
        or of text such as 2020-03-31; times with a zone use the local date.

    Returns
    -------
    Bins
        To be passed in the place of an attribute: alone, or in a tuple that crosses it with others.

    Raises
    ------
    SliceError
        If these are no bins.

    Examples
    --------
    >>> import fastbcubed as fb
    >>> years = {"item": [1, 2, 3, 4], "year": [1989, 1990, 1999, None]}
    >>> ev = fb.evaluate({1: 1, 2: 1, 3: 1, 4: 2}, {1: 1, 2: 1, 3: 2, 4: 2}, attributes=years)
    >>> ev.slices(fb.bins("year", 10))["year:10"].to_pylist()
    ['1980-1989', '1990-1999', None]
    >>> ev.slices(fb.bins("year", [1990, 1995]))["year:1990:1995"].to_pylist()
    ['<1990', '1990-1994', '>=1995', None]
    >>> days = {"item": [1, 2, 3, 4], "day": ["2019-12-31", "2020-01-01", "2020-05-31", None]}
    >>> ev = fb.evaluate({1: 1, 2: 1, 3: 1, 4: 2}, {1: 1, 2: 1, 3: 2, 4: 2}, attributes=days)
    >>> ev.slices(fb.bins("day", "quarter"))["day:quarter"].to_pylist()
    ['2019-Q4', '2020-Q1', '2020-Q2', None]
    """
    if not isinstance(name, str) or not name:
        raise SliceError(f"bins are of an attribute, by its name, not {name!r}")
    if isinstance(by, str) and (found := CALENDAR.fullmatch(by)):
        return Bins(name, int(found["width"] or 1), unit=next(unit for unit in UNITS if found[unit]))
    if isinstance(by, str | bytes) or is_bare(by) or not (isinstance(by, Iterable) or _is_number(by)):
        raise SliceError(
            f"bins of {name!r} have a width, a number, or a list of edges; of dates also "
            f'"year", "quarter" or "month", or several of them, such as "6 months"; not {by!r}'
        )
    if not isinstance(by, Iterable):
        if not by > 0:
            raise SliceError(f"the width of the bins of {name!r} is above 0, not {by!r}")
        return Bins(name, _plain(by))
    edges = list(by)
    if not edges or not all(map(_is_number, edges)) or any(a >= b for a, b in pairwise(edges)):
        raise SliceError(f"the edges of the bins of {name!r} are numbers that ascend, not {edges!r}")
    return Bins(name, None, tuple(map(_plain, edges)))


def element_of(text: str) -> str | Bins:
    r"""Return an attribute, or bins of it where a width, edges or a part of the calendar stand behind a colon.

    Examples
    --------
    >>> element_of("year"), element_of("year:10"), element_of("year:1990:2000"), element_of(r"year\:10")
    ('year', bins("year", 10), bins("year", [1990, 2000]), 'year:10')
    >>> element_of("day:month"), element_of("day:6mo"), element_of(r"day\:month")
    (bins("day", "month"), bins("day", "6 months"), 'day:month')
    """
    name, *numbers = split(text, ":")
    if len(numbers) == 1 and CALENDAR.fullmatch(numbers[0]):
        return bins(unescaped(name), numbers[0])
    if not numbers or not all(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", number) for number in numbers):
        return unescaped(text)
    figures = [float(number) for number in numbers]
    return bins(unescaped(name), figures if len(figures) > 1 else figures[0])


def bins_meant(name: str, known: Iterable[str]) -> str:
    """Return advice to pass `fb.bins` for a name such as ``year:10``, to end a message with; else an empty text."""
    try:
        element = element_of(name)
    except SliceError:
        return ""
    if not isinstance(element, Bins) or (meant := similar(element.name, known)) is None:
        return ""
    found = replace(element, name=meant)
    return f" To slice by bins, pass {Either(f'fb.{found!r}', str(found))}."


def _is_number(value: Any) -> bool:
    numeric = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return numeric and math.isfinite(value)


def _plain(value: Any) -> Number:
    return int(value) if float(value).is_integer() else float(value)


def _figure(value: Number) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _no_numbers(values: pa.Array) -> Iterator[str]:
    """Yield the texts that are not numbers."""
    for text in filter(lambda value: isinstance(value, str), values.to_pylist()):
        try:
            _of_text(pa.array([text]))
        except pa.ArrowInvalid:
            yield text


def _of_text(values: pa.Array) -> pa.Array:
    """Return the numbers in text; raise pyarrow.ArrowInvalid if there are none."""
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values.cast(pa.float64())


#: What Arrow raises for values that it cannot compare.
INCOMPARABLE = (*UNABLE, pa.ArrowInvalid)


class Shared(NamedTuple):
    """An attribute of both sides: its values by row, or why they are not one."""

    values: pa.ChunkedArray | None
    fault: str = ""


def shared_attribute(items: Items, name: str) -> Shared:
    """Return the values of an attribute that both sides have, of the truth where it has the item.

    They are one attribute if they are equal, or both null, for every item that both sides have.
    """
    sides = [combined(plain(items.attribute(side, name))) for side in ("truth", "prediction")]
    lacking = [_nulls(items.labels(side)) for side in ("true", "pred")]
    try:
        first, second = sides[0], sides[1].cast(sides[0].type)
        equal = _equal(first, second)
    except INCOMPARABLE:
        return Shared(None, f"their types, {sides[0].type} and {sides[1].type}, cannot be compared")
    differ = np.flatnonzero(~(equal | lacking[0] | lacking[1]))
    if differ.size:
        named = items.ids(differ[:4]).to_pylist()
        return Shared(None, f"their values differ for {differ.size:,} items (first: {first_few(named)})")
    return Shared(pa.chunked_array([pc.if_else(from_numpy(lacking[0]), second, first)]))


def _equal(first: pa.Array, second: pa.Array) -> NDArray[np.bool_]:
    """Return where values are equal, NaN and nulls to each other."""
    nulls = [_nulls(values) for values in (first, second)]
    same = pc.fill_null(pc.equal(first, second), False)
    if pa.types.is_floating(first.type):
        nan = pc.and_(pc.is_nan(first), pc.is_nan(second))
        same = pc.or_(same, pc.fill_null(nan, False))
    return (to_numpy(same) & ~nulls[0] & ~nulls[1]) | (nulls[0] & nulls[1])


def _nulls(values: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    return is_null(combined(values) if isinstance(values, pa.ChunkedArray) else values)


#: Slices that are always there: by the size of the cluster an item is in, in powers of two.
SIZES = ("true_size", "pred_size")
#: What the name of one begins with where an attribute has the same name.
OURS = "always."
#: An attribute, or bins of one.
Element = str | Bins
SliceKey = Element | tuple[Element, ...] | Mapping[str, Any]
#: What parts of a composite id are attributes of.
ID = "item"


@dataclass(frozen=True)
class Sliced:
    """One code per row, and the values that each code stands for."""

    codes: NDArray[np.int64]  #: slice of each row; shape (n_rows,)
    #: the columns that name the slices, in ascending order, nulls last; shape (n_slices,)
    values: dict[str, pa.Array]

    @property
    def n_slices(self) -> int:
        """The number of slices."""
        return len(next(iter(self.values.values())))


def slice_name(key: SliceKey) -> str:
    """Return the name by which results list a slicing: ``country``, ``country,year``."""
    return ",".join(map(str, [key] if isinstance(key, Element) else key))


def elements(key: SliceKey) -> tuple[Element, ...]:
    """Return the attributes, or bins of them, that make slices together; none for subsets by name."""
    return () if isinstance(key, Mapping) else key if isinstance(key, tuple) else (key,)


class Renamed(str):
    """A size with another name where it was requested."""

    def __new__(cls, size: str, asked: str) -> Renamed:
        """Return the name of a size here, which remembers the requested one."""
        found = super().__new__(cls, size)
        found.asked = asked
        return found

    asked: str


def size_named(
    element: Any, sides: Mapping[str, Sequence[str]] = MappingProxyType({}), extra: Sequence[str] = ()
) -> str | None:
    """Return the size that an element of a key names; None if it names none.

    If one of the `sides` or the table of attributes, whose names are `extra`, has an attribute of the same name,
    ColumnError says how to name each.
    """
    own = element.removeprefix(OURS) if isinstance(element, str) else None
    if own not in SIZES:
        return None
    asked = element.asked if isinstance(element, Renamed) else element
    require_clear(asked, "the size of clusters", {"attributes": extra, **sides})
    return own


def require_clear(name: str, what: str, sides: Mapping[str, Sequence[str]]) -> None:
    """Raise ColumnError if a side has an attribute of a name that something else has, too."""
    there = [side for side, names in sides.items() if name in names]
    if there:
        where, prefixed = (
            sep.join(f"{begin}{Word(side)}{end}" for side in there)
            for sep, begin, end in ((" and ", "the ", ""), (" or ", "'", f".{name}'"))
        )
        raise ColumnError(
            f"{name!r} is a column of {where}, and {what} is called so, too: write {prefixed} for the column, "
            f"'{OURS}{name}' for {what}"
        )


def check_key(key: Any) -> SliceKey:
    """Return the key if it names slices: an attribute or bins, a tuple of different ones, or subsets by name."""
    if isinstance(key, Mapping) and key:
        return key
    parts = key if isinstance(key, tuple) else (key,)
    if parts and all(isinstance(part, Element) and part for part in parts):
        if of_sizes := [part.name for part in parts if isinstance(part, Bins) and size_named(part.name)]:
            raise SliceError(
                f"{of_sizes[0]} is in powers of two; it has no bins of its own. An attribute of that name is "
                f"'truth.{of_sizes[0]}', 'prediction.{of_sizes[0]}' or 'attributes.{of_sizes[0]}'"
            )
        if len(set(map(str, parts))) == len(parts):
            return key
    raise SliceError(
        f"{arg('slices')} are by an attribute or bins of one, by a tuple of different ones (crossed), or a mapping "
        f"from names to masks or lists of items, not {key!r}"
    )


def slice_codes(
    key: SliceKey,
    contingency: Contingency,
    items: Items,
    attributes: AttributeTable | None,
    among: NDArray[np.bool_] | None = None,
) -> Sliced:
    """Return the slices by one attribute, or by several crossed; those without an item are left out.

    `among` is a mask of the rows that count as items; by default the scored ones.
    """
    cut = numbered_slices(key, contingency, items, attributes, among)
    return Sliced(cut.codes, {str(each): named(each, cut.values[str(each)]) for each in elements(key)})


def numbered_slices(
    key: SliceKey,
    contingency: Contingency,
    items: Items,
    attributes: AttributeTable | None,
    among: NDArray[np.bool_] | None = None,
) -> Sliced:
    """Return the slices as `slice_codes` does, but with numbers, which sort, in place of the names of bins."""
    rows = contingency.rows
    assert rows is not None
    extra = () if attributes is None else attributes.names

    def codes(each: Element) -> Sliced:
        if isinstance(each, Bins):
            return _binned(each, encoded(each.name, attribute_values(each.name, items, attributes)))
        if (size := size_named(each, items.attribute_sides(), extra)) is not None:
            return _size_codes(size, each, contingency)
        return encoded(each, attribute_values(each, items, attributes))

    return crossed(list(map(codes, elements(key))), rows.cell >= 0 if among is None else among)


def named(element: Element, values: pa.Array) -> pa.Array:
    """Return the names of slices: bins by their ranges, all else by the values themselves, or as text."""
    return element.labels(values) if isinstance(element, Bins) else readable(values)


def beside(names: Mapping[str, pa.Array], figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that name slices, and their figures; a name that a figure has becomes attribute.NAME."""
    return {f"attribute.{name}" if name in figures else name: own for name, own in names.items()} | dict(
        figures
    )


def name_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns that name slices, of all that a table of them has."""
    return list(takewhile(lambda column: column != "n_items", columns))


def rows_for_json(table: Any) -> list[dict[str, Any]]:
    """Return a table of slices row by row; the names NaN and infinity, which JSON does not have, are texts.

    Examples
    --------
    >>> rows_for_json(pa.table({"x": [float("inf"), None], "n_items": [3, 4]}))
    [{'x': 'inf', 'n_items': 3}, {'x': None, 'n_items': 4}]
    """
    rows = table.to_pylist()
    for name in name_columns(table.column_names):
        for row in rows:
            if isinstance(row[name], float) and not math.isfinite(row[name]):
                row[name] = str(row[name])
    return rows


def names_element(column: str, element: Element) -> bool:
    """Return whether a column of slices, as named by `beside`, is that of an attribute or of bins."""
    return column in (str(element), f"attribute.{element}")


def _binned(element: Bins, plain: Sliced) -> Sliced:
    """Return the slices by bins from those by the values, the bin of nulls last; a dictionary may hold others."""
    (values,) = plain.values.values()
    there = np.bincount(plain.codes, minlength=len(values)) > 0
    numbers = element.numbers(values.take(from_numpy(np.flatnonzero(there))))
    by_value, known = number_values(pa.chunked_array([numbers]))
    return Sliced(by_value[(np.cumsum(there) - 1)[plain.codes]], {str(element): known})


def crossed(columns: Sequence[Sliced], scored: NDArray[np.bool_]) -> Sliced:
    """Return the slices that several columns make together; those without a scored row are left out."""
    codes = np.zeros(scored.size, np.int64)
    for each in columns:
        codes *= each.n_slices
        codes += each.codes
    n_crossed = int(np.prod([float(each.n_slices) for each in columns]))
    if n_crossed <= 4 * scored.size + 1024:
        used = np.flatnonzero(np.bincount(codes[scored], minlength=n_crossed))
        position = np.full(n_crossed, -1)
        position[used] = np.arange(used.size)
        codes = position[codes]
    else:
        used = np.unique(codes[scored])
        at = np.minimum(np.searchsorted(used, codes), used.size - 1)
        codes = np.where(used[at] == codes, at, -1)
    values: dict[str, pa.Array] = {}
    left = used
    for each in reversed(columns):
        for name, own in each.values.items():
            values[name] = own.take(from_numpy(left % each.n_slices))
        left = left // each.n_slices
    return Sliced(codes, dict(reversed(values.items())))


def encoded(name: str, values: pa.ChunkedArray) -> Sliced:
    """Return the slices by the values of a column, ascending, nulls last."""
    kind = values.type
    try:
        if not pa.types.is_nested(kind):
            codes, known = number_values(values)
            return Sliced(codes, {name: known})
    except pa.ArrowNotImplementedError:
        pass
    raise SliceError(f"cannot slice by {name!r}, which is of type {kind}; use a plain column")


def attribute_values(
    name: str, items: Items, attributes: AttributeTable | None, rows: NDArray[np.int64] | None = None
) -> pa.ChunkedArray:
    """Return an attribute of some rows, or of all, by the name that users give it.

    One that both sides have with equal values needs no prefix.
    """
    sides, extra = (
        {**items.attribute_sides(), ID: id_parts(items)},
        () if attributes is None else attributes.names,
    )
    fault = ""
    if name not in (*extra, *sides[ID]) and name in sides["truth"] and name in sides["prediction"]:
        found, fault = shared_attribute(items, name)
        if found is not None:
            return found if rows is None else take_or_null(found, rows)
    try:
        side, own = attribute_home(name, sides, extra, fault)
    except ColumnError:
        for known, reason in items.left_out().items():
            if name in (known, known.partition(".")[2]):
                raise ColumnError(reason) from None
        raise
    if side == ID:
        return pa.chunked_array([items.ids(rows).field(own)])
    if side or attributes is None:
        return items.attribute(side, own, rows)
    return attributes.attribute(own, rows)


def id_parts(items: Items) -> tuple[str, ...]:
    """Return the parts of a composite id, which can be sliced by; none of a plain one."""
    return items.item_names if len(items.item_names) > 1 else ()


def attribute_home(
    name: str, sides: Mapping[str, Sequence[str]], extra: Sequence[str] = (), fault: str = ""
) -> tuple[str, str]:
    """Find an attribute by name; one that both sides have goes by ``truth.name``, for which `fault` is why."""
    if name in extra or (name.startswith("attributes.") and name.removeprefix("attributes.") in extra):
        return "", name if name in extra else name.removeprefix("attributes.")
    for side in sides:
        if name.startswith(f"{side}.") and name[len(side) + 1 :] in sides[side]:
            return side, name[len(side) + 1 :]
    found = [side for side in sides if name in sides[side]]
    if "attributes" in found:  # where they were saved: those of a table count first, as before
        return "attributes", name
    if len(found) > 1:
        where = "both sides have" if set(found) == {"truth", "prediction"} else f"{' and '.join(found)} have"
        prefixed = " or ".join(f"'{Word(side)}.{name}'" for side in found)
        raise ColumnError(
            f"{where} an attribute {name!r}{f', and {fault}' if fault else ''}; write {prefixed}"
        )
    if found:
        return found[0], name
    there = {**{side: names for side, names in sides.items() if names or side != ID}, "attributes": extra}
    known = [own for names in (*there.values(), SIZES) for own in names]
    there["always"] = [f"{Word(size)}" for size in SIZES]
    raise ColumnError(
        f"there is no attribute {_quoted(name, sides)}. There are: {named_sides(there)}."
        + (bins_meant(name, known) or _meant(name, known))
    )


def _quoted(name: str, sides: Mapping[str, Sequence[str]]) -> str:
    """Return a name for a message, in which the side that it may begin with has the name that a diff gives it."""
    side, dot, own = name.partition(".")
    return f"'{Word(side)}.{own}'" if dot and side in sides else repr(name)


def _meant(name: str, known: Sequence[str]) -> str:
    """Return a question to end a message with, in which sizes have the name that a diff gives them."""
    found = similar(name, known)
    return f" Did you mean '{Word(found)}'?" if found in SIZES else did_you_mean(name, known)


def _size_codes(size: str, name: str, contingency: Contingency) -> Sliced:
    """Slice by a cluster size: 1, 2-3, 4-7, and so on; of several clusters, by the items in any of them."""
    rows = contingency.rows
    assert rows is not None
    sizes = contingency.mates("true" if size == "true_size" else "pred")
    power = np.frexp(np.maximum(sizes, 1).astype(np.float64))[1] - 1
    by_row = power[np.maximum(rows.cell, 0)].astype(np.int64)
    sizes = 2 ** np.arange(int(by_row.max()) + 1, dtype=np.int64)
    return Sliced(by_row, {name: size_names(sizes)})


def size_names(sizes: NDArray[np.integer]) -> pa.Array:
    """Return the names of slices by size, from the smallest size in each: 1, 2-3, 4-7, and so on."""
    return from_texts([f"{size}-{2 * size - 1}" if size > 1 else "1" for size in sizes.tolist()])


def subset_mask(which: Any, items: Items, contingency: Contingency, name: str) -> NDArray[np.bool_]:
    """Return the rows of a subset that are scored, from a mask or a list of items."""
    rows = contingency.rows
    assert rows is not None
    scored = rows.cell >= 0
    mask, which = as_subset(which, name)
    if mask is not None:
        mask = _rows_of_mask(mask, items, scored, name)
    else:
        found = items.rows_of(which)
        if (missing := np.flatnonzero(found < 0)).size:
            column = list(which)
            raise missing_items(name, [column[k] for k in missing[:4]], missing.size, found.size)
        mask = np.zeros(scored.size, np.bool_)
        mask[found] = True
    if not (mask & scored).any():
        raise nothing_scored(name)
    return np.asarray(mask & scored)


def _rows_of_mask(
    mask: NDArray[np.bool_], items: Items, scored: NDArray[np.bool_], name: str
) -> NDArray[np.bool_]:
    """Return the scored rows that a mask means, which goes by the truth's rows, or by the scored items in order."""
    n_listed, found = int(np.count_nonzero(scored)), []
    if mask.shape == (items.n_given,):
        found.append(items.by_row(mask) & scored)
    if mask.shape == (n_listed,):
        listed = np.zeros(scored.size, np.bool_)
        listed[scored] = mask
        found.append(listed)
    if not found:
        rows = "" if n_listed == items.n_given else f", or of the {items.n_given} rows that were given"
        raise SliceError(
            f"the mask of {name} has {mask.size} values; it needs one for each of the {n_listed} items that "
            f"items() lists{rows}"
        )
    if not np.array_equal(found[0], found[-1]):
        raise SliceError(
            f"the mask of {name} has as many values as the {TRUTH} has rows, and as items() lists, which are other "
            "items, so it can be read in two ways; pass a list of items"
        )
    return found[0]


def as_subset(which: Any, name: str) -> tuple[NDArray[np.bool_] | None, Any]:
    """Return a mask, or None and a list of items."""
    if isinstance(which, set | frozenset):
        which = list(which)
    if isinstance(which, str | Mapping) or is_bare(which) or not hasattr(which, "__len__"):
        raise SliceError(f"{name} is a list of items or a mask, not {which!r}")
    if not len(which):
        raise nothing_scored(name)
    mask = _as_mask(which, name)
    if mask is not None and is_pandas(which, "Series"):
        if not np.array_equal(which.index, np.arange(len(which))):
            raise SliceError(
                f"the mask of {name} is a Series with an index of its own, but masks go by position; pass "
                "mask.to_numpy(), or a list of items"
            )
    return mask, which


def nothing_scored(name: str) -> SliceError:
    """Return the error for a subset that nothing scored is in."""
    return SliceError(f"{name} has no scored item, so it has no score")


def missing_items(name: str, first: list[Any], n_missing: int, of_items: int) -> SliceError:
    """Return the error for a subset that names items which are not there."""
    return SliceError(
        f"{n_missing} of {of_items} items of {name} are not in the evaluation (first: {first_few(first)})"
    )


def _as_mask(which: Any, name: str) -> NDArray[np.bool_] | None:
    """Return the argument if it is a mask; None for a list of items."""
    if isinstance(which, np.ndarray) and which.dtype == np.bool_:
        return which
    first = which[0] if isinstance(which, list | tuple) else None
    if first is not None and not isinstance(first, bool | np.bool_):
        return None
    try:
        values = to_arrow(which, name)
    except FastBCubedError:
        return None
    if not pa.types.is_boolean(values.type):
        return None
    if values.null_count:
        raise SliceError(f"{values.null_count} of {len(values)} values of the mask of {name} are null")
    return np.asarray(values.to_numpy())


def subset_scores(kept: Kept, figures: Figures, which: Any) -> Scores:
    """Return scores over some items as `Evaluation.subset` does."""
    mask = subset_mask(which, kept.require_items(), kept.cells, "the subset")
    found = means_of_groups(kept, figures, np.where(mask, 0, -1), 1)
    if not found["weight"][0]:
        raise SliceError("all items of the subset have weight 0, so it has no score")
    return Scores({m.name: float(found[m.name][0]) for m in figures.metrics if m.name in found})


def means_of_groups(
    kept: Kept, figures: Figures, codes: NDArray[np.integer], n: int, errors: ScoreErrors | None = None
) -> dict[str, Any]:
    """Return scores of groups of rows by code, with standard errors if the errors of the scores are given."""
    table = kept.cells
    columns = aggregation.group_means(
        table, codes, n, figures.metrics, beta=figures.beta, by_row=True, total=table.total_weight
    )
    return columns if errors is None else errors.beside(columns, codes, n)


def list_slices(
    kept: Kept,
    figures: Figures,
    by: SliceKey,
    attributes: Any,
    errors: ScoreErrors | None,
    order_by: str | None,
    limit: int | None,
) -> Table:
    """Return slices as `Evaluation.slices` does, with standard errors if the errors of the scores are given."""
    order_by = LOSS if order_by is None and limit is not None else order_by
    if kept.items is None and errors is None and slice_name(by) in figures.sliced:
        return listed(figures.sliced[slice_name(by)], figures.metrics, order_by, limit)
    items = kept.require_items()
    if isinstance(by, Mapping):
        masks = [subset_mask(w, items, kept.cells, repr(n)) for n, w in by.items()]
        rows = [means_of_groups(kept, figures, np.where(mask, 0, -1), 1, errors) for mask in masks]
        columns: dict[str, Any] = {"slice": from_texts(list(map(str, by)))}
        columns |= {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    else:
        cut = slice_codes(by, kept.cells, items, kept.attributes_or(attributes))
        columns = beside(cut.values, means_of_groups(kept, figures, cut.codes, cut.n_slices, errors))
    return listed(table_of(columns), figures.metrics, order_by, limit)


def macro_of(
    slices: Table, name: str, metrics: Sequence[Metric], beta: float, min_items: int, f_of_means: bool
) -> Table:
    """Return mean and standard deviation of each score over the slices of a minimum number of items."""
    min_items = whole_number(min_items, "min_items", "items", least=1)
    n_items = to_numpy(slices["n_items"])
    large = n_items >= min_items
    if not large.any():
        raise SliceError(
            f"no slice of {name} has {min_items} items; the largest has {n_items.max(initial=0)}. Lower min_items="
        )
    chosen = [m for m in metrics if m.name in slices.column_names]
    found = {m.name: _mean_and_sd(to_numpy(slices[m.name])[large]) for m in chosen}
    if f_of_means:
        means = {score: mean for score, (mean, _, _) in found.items()}
        found |= {
            m.name: (_combined(m, means, beta), math.nan, found[m.name][2]) for m in chosen if m.combine
        }
    mean, sd, n = zip(*found.values(), strict=True) if found else ((), (), ())
    columns: dict[str, Any] = {
        "score": from_texts(list(found)),
        "mean": np.array(mean, np.float64),
        "sd": np.array(sd, np.float64),
        "n_slices": np.array(n, np.int64),
    }
    return Table(table_of(columns))


def _mean_and_sd(scores: NDArray[np.float64]) -> tuple[float, float, int]:
    """Return mean, standard deviation and number of the scores that there are; weights of 0 leave a slice none."""
    known = scores[~np.isnan(scores)]
    mean = math.fsum(known.tolist()) / known.size if known.size else math.nan
    sd = float(np.std(known, ddof=1)) if known.size > 1 else math.nan
    return mean, sd, int(known.size)


def _combined(metric: Metric, means: dict[str, float], beta: float) -> float:
    """Return a score of the means of those that it is combined from."""
    missing = [need.name for need in metric.needs if need.name not in means]
    if missing:
        raise MetricError(
            f"f_of_means works {metric.name} out from {' and '.join(missing)}, which the slices do not have; name "
            f"them in {arg('metrics', ...)}"
        )
    assert metric.combine is not None
    return float(metric.combine(means, beta))
