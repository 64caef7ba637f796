"""Bins: slices by ranges of numbers, or of years, of one width or between edges."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import SliceError, first_few
from fastbcubed.runtime.choices import is_bare
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import from_numpy, from_texts, is_null, to_numpy
from fastbcubed.sources.marks import plain, split
from fastbcubed.sources.suggestions import similar

__all__ = ["Bins", "bins", "element_of"]

#: Numbers of bins beyond this are no longer told apart.
MOST = 2.0**53
#: Values this close to an edge, in widths of a bin, are on it.
ROUNDING = 1e-9

Number = int | float


@dataclass(frozen=True, repr=False)
class Bins:
    """Ranges of an attribute; made by `fastbcubed.bins`."""

    name: str  #: the attribute
    width: Number | None = None  #: of all bins, one of which begins at 0
    edges: tuple[Number, ...] = ()  #: where bins begin, if they have no common width

    def __str__(self) -> str:
        """Return the name by which results list them: ``year:10``."""
        return ":".join([self.name, *map(_figure, self.edges if self.width is None else [self.width])])

    def __repr__(self) -> str:
        by = repr(list(self.edges) if self.width is None else self.width)
        return f"bins({json.dumps(self.name, ensure_ascii=False)}, {by})"

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
        with np.errstate(all="ignore"):  # what is too large is told below
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
        """Return values as int64 or float64, dates as years; SliceError if they are neither."""
        kind, is_type = values.type, pa.types
        try:
            if is_type.is_date(kind) or is_type.is_timestamp(kind):
                return pc.year(values)
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

    def labels(self, numbers: pa.Array) -> pa.Array:
        """Return the names of bins from their numbers: "1990-1999" of integers, "[0.5, 1)" of others."""
        whole = pa.types.is_integer(numbers.type)
        return from_texts([None if k is None else self._label(int(k), whole) for k in numbers.to_pylist()])

    def holding(self, text: str) -> list[str]:
        """Return the names that the bin may have that holds a number, which is given as text."""
        try:
            figures = _of_text(pa.array([text]))
            found = [self.labels(self.numbers(figures.cast(kind))) for kind in {figures.type, pa.float64()}]
        except (pa.ArrowInvalid, SliceError):
            return []
        return [label[0].as_py() for label in found if label[0].is_valid]

    def _label(self, k: int, whole: bool) -> str:
        if self.width is not None:
            low, high = k * self.width, (k + 1) * self.width
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


def bins(name: str, by: Number | Iterable[Number]) -> Bins:
    """Slice by ranges of an attribute of numbers, or of dates, which go by their year.

    Parameters
    ----------
    name : str
        The attribute.
    by : number or list of numbers
        The width of all bins, one of which begins at 0; or the edges at which bins begin, ascending. The first of
        these is preceded by a bin of all that is less.

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
    """
    if not isinstance(name, str) or not name:
        raise SliceError(f"bins are of an attribute, by its name, not {name!r}")
    if isinstance(by, str | bytes) or is_bare(by) or not (isinstance(by, Iterable) or _is_number(by)):
        raise SliceError(f"bins of {name!r} have a width, a number, or a list of edges, not {by!r}")
    if not isinstance(by, Iterable):
        if not by > 0:
            raise SliceError(f"the width of the bins of {name!r} is above 0, not {by!r}")
        return Bins(name, _plain(by))
    edges = list(by)
    if not edges or not all(map(_is_number, edges)) or any(a >= b for a, b in pairwise(edges)):
        raise SliceError(f"the edges of the bins of {name!r} are numbers that ascend, not {edges!r}")
    return Bins(name, None, tuple(map(_plain, edges)))


def element_of(text: str) -> str | Bins:
    r"""Return an attribute, or bins of it where numbers stand behind a colon: a width, or edges.

    Examples
    --------
    >>> element_of("year"), element_of("year:10"), element_of("year:1990:2000"), element_of(r"year\:10")
    ('year', bins("year", 10), bins("year", [1990, 2000]), 'year:10')
    """
    name, *numbers = split(text, ":")
    if not numbers or not all(re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", number) for number in numbers):
        return plain(text)
    figures = [float(number) for number in numbers]
    return bins(plain(name), figures if len(figures) > 1 else figures[0])


def bins_meant(name: str, known: Iterable[str]) -> str:
    """Return how to have bins of an attribute, to end a message with, if this is how the command line writes them."""
    try:
        element = element_of(name)
    except SliceError:
        return ""
    if not isinstance(element, Bins) or (meant := similar(element.name, known)) is None:
        return ""
    return f" To slice by bins, pass fb.{replace(element, name=meant)!r}."


def _is_number(value: Any) -> bool:
    numeric = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return numeric and math.isfinite(value)


def _plain(value: Any) -> Number:
    return int(value) if float(value).is_integer() else float(value)


def _figure(value: Number) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


def _no_numbers(values: pa.Array) -> Iterator[str]:
    """Yield the texts that stand for no number."""
    for text in filter(lambda value: isinstance(value, str), values.to_pylist()):
        try:
            _of_text(pa.array([text]))
        except pa.ArrowInvalid:
            yield text


def _of_text(values: pa.Array) -> pa.Array:
    """Return the numbers that text stands for; pyarrow.ArrowInvalid if it stands for none."""
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values.cast(pa.float64())
