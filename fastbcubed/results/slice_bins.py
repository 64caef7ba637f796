"""Bins: slices by ranges of numbers, of a common width or between edges, or by years, quarters or months of dates."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import Either, SliceError, first_few, quoted
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import as_floats, from_numpy, from_texts, is_null, to_numpy
from fastbcubed.runtime.arguments import as_float, is_bare
from fastbcubed.runtime.object_attributes import documented
from fastbcubed.runtime.suggestions import plain as unescaped
from fastbcubed.runtime.suggestions import similar, split

if TYPE_CHECKING:
    pass


#: Bin numbers above this can no longer be distinguished.
MOST = 2.0**53
#: Maximum distance from an edge, in widths of a bin, at which a value counts as on the edge.
ROUNDING = 1e-9

#: Parts of a year by which dates can be binned, with their number per year.
UNITS = {"year": 1, "quarter": 4, "month": 12}
#: One part of the year, or several, such as "quarter", "2 years" or "3mo".
CALENDAR = re.compile(
    r"(?P<width>[1-9]\d*)? ?(?:(?P<year>y|years?)|(?P<quarter>q|quarters?)|(?P<month>mo|months?))"
)
#: Dates as text: a year, possibly with a month, or a full date with any suffix.
DATE = r"^\d{4}(-(0[1-9]|1[0-2])(-\d\d([T ].*)?)?)?$"

Number = int | float


@dataclass(frozen=True, repr=False)
class Bins:
    """Ranges of an attribute, made by `fastbcubed.bins`."""

    name: str  #: the attribute
    width: Number | None = None  #: common width of the bins, one of which begins at 0
    edges: tuple[Number, ...] = ()  #: lower edges, for bins without a common width
    unit: str = ""  #: calendar unit of the width

    __dir__ = documented

    def __str__(self) -> str:
        """Return the name of the slicing in results: ``year:10``, ``day:quarter``."""
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
        """Return the number of each value's bin, null for null: int64 for integers, otherwise float64.

        From the type, `labels` knows whether both ends of a bin belong to it.
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
        if whole:  # of a width that 64 bits cannot hold, there are two bins
            return (
                np.floor_divide(figures, self.width)
                if self.width < 1 << 63
                else np.minimum(np.sign(figures), 0)
            )
        with np.errstate(all="ignore"):  # overflow is detected below
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
        """Return values as int64 or float64, dates as years, quarters or months; raise SliceError for other types."""
        kind, is_type = values.type, pa.types
        try:
            if is_type.is_date(kind) or is_type.is_timestamp(kind):
                return self._units(*_years_and_months(values))
            if self.unit and (is_type.is_string(kind) or is_type.is_large_string(kind)):
                return self._of_dates(values)
            if self.unit not in ("", "year"):
                raise SliceError(
                    f"{self.name!r} cannot be binned by {self.unit}: it has type {kind}, not dates"
                )
            if is_type.is_string(kind) or is_type.is_large_string(kind):
                return _of_text(values)
            if is_type.is_integer(kind) or (is_type.is_decimal(kind) and kind.scale == 0):
                return values.cast(pa.int64())
            if is_type.is_floating(kind) or is_type.is_decimal(kind):
                return as_floats(values)
        except pa.ArrowInvalid as error:
            if first := list(islice(_no_numbers(values), 3)):
                raise SliceError(
                    f"cannot make bins of {self.name!r}: some of its values are not numbers (first: "
                    f"{first_few(first)}). Slice by the attribute itself, or replace them by nulls"
                ) from None
            raise SliceError(f"cannot make bins of {self.name!r}: {str(error).splitlines()[0]}") from error
        raise SliceError(
            f"cannot make bins of {self.name!r}, which has type {kind}; bins need numbers or dates"
        )

    def _of_dates(self, values: pa.Array) -> pa.Array:
        """Return dates given as text, which begins with year and month, in calendar units."""
        is_date = pc.match_substring_regex(values, DATE if self.unit == "year" else DATE.replace("?$", "$"))
        if strange := values.filter(pc.invert(is_date)).drop_null()[:4].to_pylist():
            raise SliceError(
                f"cannot make bins of {self.name!r}: some of its values are not dates such as 2020-03-31 "
                f"(first: {first_few(strange)})"
            )
        months = pc.utf8_slice_codeunits(values, 5, 7)
        return self._units(
            pc.utf8_slice_codeunits(values, 0, 4).cast(pa.int64()), lambda: months.cast(pa.int64())
        )

    def _units(self, years: pa.Array, months: Callable[[], pa.Array]) -> pa.Array:
        """Return the number of years, quarters or months since year 0."""
        n = UNITS.get(self.unit, 1)
        if n == 1:
            return years
        part = pc.divide(pc.subtract(months(), 1), 12 // n)
        return pc.add(pc.multiply(years, n), part)

    def labels(self, numbers: pa.Array) -> pa.Array:
        """Return the names of bins from their numbers: "1990-1999" if integers, "[0.5, 1)" otherwise, or "1990-Q1"."""
        whole = pa.types.is_integer(numbers.type)
        return from_texts([None if k is None else self._label(int(k), whole) for k in numbers.to_pylist()])

    def holding(self, text: str) -> list[str]:
        """Return the possible names of the bin that contains a number, given as text."""
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


#: An attribute, or bins of an attribute.
Element = str | Bins
SliceKey = Element | tuple[Element, ...] | Mapping[str, Any]


def _years_and_months(values: pa.Array) -> tuple[pa.Array, Callable[[], pa.Array]]:
    """Return the years of dates, and a function that returns their months from 1; with a time zone, local dates.

    Arrow's own years have 16 bits and overflow beyond 32767.
    """
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        values = pc.local_timestamp(values)
    unit = kind.unit if pa.types.is_timestamp(kind) else "D" if pa.types.is_date32(kind) else "ms"
    raw = to_numpy(values.view(pa.int32() if unit == "D" else pa.int64())).astype(np.int64)
    nulls = is_null(values)
    months = np.where(nulls, 0, raw).view(f"datetime64[{unit}]").astype("datetime64[M]").astype(np.int64)
    years = months // 12
    return from_numpy(years + 1970, nulls), lambda: from_numpy(months - 12 * years + 1, nulls)


def bins(name: str, by: Number | Iterable[Number] | str) -> Bins:
    """Make slices by ranges of a numeric attribute, or by the years, quarters or months of a date.

    Parameters
    ----------
    name : str
        The attribute.
    by : number, list of numbers, or str
        The width of all bins, one of which begins at 0; or an ascending list of the lower edges of bins. A list also
        creates a bin of all values below the first edge. For dates, a number is a number of years. For dates, and for
        text such as 2020-03-31, `by` may also be "year", "quarter" or "month", or a multiple such as "5 years" or "6
        months" (also "5y", "1q", "6mo"). Times with a time zone are binned by their local date.

    Returns
    -------
    Bins
        The bins, to be passed in place of an attribute, or in a tuple to cross the bins with other attributes.

    Raises
    ------
    SliceError
        If `name` is not a non-empty string, or `by` does not define valid bins.

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
        raise SliceError(f"bins need the name of an attribute, not {quoted(name)}")
    if isinstance(by, str) and (found := CALENDAR.fullmatch(by)):
        return Bins(name, int(found["width"] or 1), unit=next(unit for unit in UNITS if found[unit]))
    if (
        isinstance(by, str | bytes)
        or is_bare(by)
        or not (isinstance(by, Iterable) or math.isfinite(as_float(by)))
    ):
        raise SliceError(
            f"bins of {name!r} must be a width (a number) or a list of edges, or, for dates, "
            f'"year", "quarter", "month" or a multiple such as "6 months", not {quoted(by)}'
        )
    if not isinstance(by, Iterable):
        if not by > 0:
            raise SliceError(f"the width of the bins of {name!r} must be above 0, not {quoted(by)}")
        return Bins(name, _plain(by))
    edges = list(by)
    if (
        not edges
        or not all(map(math.isfinite, map(as_float, edges)))
        or any(a >= b for a, b in pairwise(edges))
    ):
        raise SliceError(f"the edges of the bins of {name!r} must be ascending numbers, not {quoted(edges)}")
    return Bins(name, None, tuple(map(_plain, edges)))


def element_of(text: str) -> str | Bins:
    r"""Return the attribute that a text names, or bins of it if a width, edges or a calendar unit follow a colon.

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
    """Return the end of a message that advises `fb.bins` for a name such as ``year:10``; "" for other names."""
    try:
        element = element_of(name)
    except SliceError:
        return ""
    if not isinstance(element, Bins) or (meant := similar(element.name, known)) is None:
        return ""
    found = replace(element, name=meant)
    return f" To slice by bins, pass {Either(f'fb.{found!r}', str(found))}."


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
    """Return the numbers in text; raise pyarrow.ArrowInvalid for other text."""
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values.cast(pa.float64())
