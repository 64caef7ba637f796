"""Any table → rows, read column by column on demand; which column is the item or cluster."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    FastBCubedError,
    OptionError,
    WeightError,
    first_few,
)
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import (
    CONVERSION,
    convert,
    is_null,
    is_pandas,
    storage_of,
    to_arrow,
    to_numpy,
)
from fastbcubed.sources.columns import Column, as_column
from fastbcubed.sources.formats import ENDS
from fastbcubed.sources.nulls import Nulls
from fastbcubed.sources.selection import plain
from fastbcubed.sources.suggestions import did_you_mean
from fastbcubed.sources.validity import require_valid

#: A column, or the columns of a composite id.
ColumnName = str | list[str]

#: Text that Arrow reads as a number.
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])$"


class Rows(Protocol):
    """A table whose columns are converted or read when asked for; the attributes of a clustering.

    `where` says what it is, for messages: a path, or "the truth"; `untyped` names the columns that are
    text for want of a type (CSV, names of folders), in which numbers may be written in any way.
    """

    where: str
    untyped: frozenset[str]

    @property
    def hint(self) -> str:
        """What may be wrong if a column is not there, to end a message with; or nothing."""

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""

    def __len__(self) -> int: ...

    def columns(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Read columns, several at once where that is cheaper; unknown names raise ColumnError."""

    def column(self, name: str) -> pa.ChunkedArray:
        """Read one column."""

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column, unread where that is known."""


class BaseRows:
    """What all rows share: looking up names, and refusing unknown or repeated ones."""

    untyped: frozenset[str] = frozenset()
    hint = ""

    def __init__(self, names: Iterable[Any], where: str, like: Rows | None = None) -> None:
        """Take over the names of the columns; what is known of the text in them and of the header is as of `like`."""
        self._names = tuple(map(str, names))
        self.where = where
        if like is not None:
            self.untyped, self.hint = like.untyped, like.hint

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return self._names

    def column(self, name: str) -> pa.ChunkedArray:
        """Read one column; text that is not UTF-8 raises IdTypeError."""
        data = self.columns([name])[0]
        require_valid(data, f"column {name!r} of {self.where}")
        return data

    def columns(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Read columns, several at once where that is cheaper; unknown names raise ColumnError."""
        for name in names:
            count = self._names.count(name)
            if count != 1:
                fault = "is no column" if count == 0 else f"are {count} columns named"
                asked = did_you_mean(name, self._names) if count == 0 else ""
                raise ColumnError(
                    f"There {fault} {name!r} in {self.where} ({listed(self._names)}).{asked}{self.hint}"
                )
        return self._read(names)

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column; it is read if need be."""
        return self.columns([name])[0].type

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.where}: {', '.join(self._names)})"


class ArrowRows(BaseRows):
    """The rows of an Arrow table; nothing is copied."""

    def __init__(self, table: pa.Table, where: str, like: Rows | None = None) -> None:
        super().__init__(table.column_names, where, like)
        self._table = table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        return [self._table.column(name) for name in names]


class ArrayRows(BaseRows):
    """A dict of arrays, or a pandas DataFrame: columns are converted one by one, when asked for."""

    def __init__(self, arrays: Mapping[Any, Any], n_rows: int, where: str) -> None:
        super().__init__(arrays, where)
        self._arrays = {str(name): values for name, values in arrays.items()}
        self._n_rows = n_rows

    def __len__(self) -> int:
        return self._n_rows

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        return [to_arrow(self._arrays[name], f"column {name!r} of {self.where}") for name in names]


class PandasRows(BaseRows):
    """The rows of a pandas DataFrame; named index levels count as columns."""

    def __init__(self, frame: Any, where: str) -> None:
        columns = [str(name) for name in frame.columns]
        levels = [str(n) for n in frame.index.names if n is not None and str(n) not in columns]
        super().__init__([*columns, *levels], where)
        self._frame, self._n_columns = frame, len(columns)
        if frame.index.names == [None] and not is_pandas(frame.index, "RangeIndex"):
            self.hint = " If its index holds the items, give that a name: frame.rename_axis('item')."

    def __len__(self) -> int:
        return len(self._frame)

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        read = []
        for name in names:
            at = self._names.index(name)
            if at < self._n_columns:
                values = self._frame.iloc[:, at]
            else:
                levels = [str(level) for level in self._frame.index.names]
                values = self._frame.index.get_level_values(levels.index(name))
            read.append(to_arrow(values, f"column {name!r} of {self.where}"))
        return read


def listed(names: Sequence[str]) -> str:
    """Return the columns of a table, for a message."""
    return f"columns: {', '.join(names)}" if names else "which has none"


def is_array(values: object) -> bool:
    """Say whether `values` may be a column in a dict of columns: it has a length, and is no text or set."""
    sized = hasattr(values, "__len__") and getattr(values, "ndim", 1) > 0
    return sized and not isinstance(values, (str, bytes, set, frozenset, Mapping))


def refuse_other_indexes(values: Iterable[Any], where: str) -> None:
    """Raise if pandas Series that correspond by position have different indexes: pandas would match rows by these."""
    first, *others = [each.index for each in values if is_pandas(each, "Series", "DataFrame")] or [None]
    if not all(first.equals(other) for other in others):
        raise AlignmentError(
            f"Series of {where} have different indexes. If rows correspond by position, pass .to_numpy() of each; else "
            "pass a DataFrame of them, which matches their rows by index."
        )


def is_path(source: object) -> bool:
    """Say whether `source` names files."""
    return isinstance(source, str) or hasattr(source, "__fspath__")


class PathList:
    """The paths of files that are one table, one after the other; as a path, what messages call them."""

    def __init__(self, paths: Sequence[Any]) -> None:
        self.paths = [os.fspath(path) for path in paths]
        if twice := [path for path, times in Counter(self.paths).items() if times > 1]:
            raise OptionError(
                f"a list of files has {len(twice)} of them more than once (first: {first_few(twice)}). Leave one of "
                "each; if these are labels, pass Clustering.from_labels(...)."
            )

    def __fspath__(self) -> str:
        first, *_, last = 2 * self.paths
        several = f"{first}, …, {last} ({len(self.paths)} files)"
        return several if len(self.paths) > 3 else ", ".join(self.paths)

    __str__ = __fspath__


def listed_paths(source: Any) -> Any:
    """Return the files of a list as one path, anything else as it is: also texts that do not all look like files."""
    if isinstance(source, list | tuple) and source and all(map(_is_file, source)):
        return PathList(source)
    return source


def _is_file(given: Any) -> bool:
    """Tell whether this is the path of a table, and no label that looks like one: the file that a record came from."""
    if not isinstance(given, str):
        return isinstance(given, os.PathLike)
    return given.lower().endswith(ENDS) and ("/" in given or os.path.exists(given))


def column_names(names: Any, argument: str) -> list[str]:
    """Return the column, or the columns of a composite id, that an argument names.

    Anything but a name or a list of different names raises OptionError.
    """
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, list) or not listed or not all(isinstance(name, str) for name in listed):
        numbered = isinstance(names, int) and not isinstance(names, bool)
        raise OptionError(
            f"{argument} is the name of a column, or a list of names that make a composite id, not "
            f"{type(names).__name__} ({first_few([names])})."
            + (f' If that is what a column is called, pass "{names}".' if numbered else "")
        )
    if len(set(listed)) < len(listed):
        raise OptionError(f"{argument} names the same column twice: {first_few(listed)}.")
    return listed


def read_columns(
    rows: Rows, groups: Sequence[Sequence[str]], weight: str | None = None
) -> tuple[list[Column], np.ndarray | None]:
    """Read columns, composite where a group has several names, and the weights, all in one go."""
    needed = [name for group in groups for name in group] + ([weight] if weight else [])
    names = list(dict.fromkeys(needed))
    data = dict(zip(names, rows.columns(names), strict=True))
    columns = []
    for group in groups:
        where = f"column {', '.join(map(repr, group))} of {rows.where}"
        if len(group) == 1:
            columns.append(as_column(data[group[0]], group[0], where))
        else:
            columns.append(Column(group, [data[name] for name in group], where))
    if weight is None:
        return columns, None
    where = f"column {weight!r} of {rows.where}"
    values = data[weight]
    return columns, weight_array(values, where, text=weight in rows.untyped)


def weight_array(values: Any, where: str, *, text: bool = False) -> np.ndarray:
    """Return weights as float64; a float64 array without nulls is not copied. Nulls raise.

    The result is read-only. Weights that are `text` for want of a type are read as numbers.
    """
    data = float_column(values, where, WeightError, text=text)
    if data.null_count:
        raise Nulls(False, where, data.null_count, len(data), _first_nulls(data)).error()
    return to_numpy(data)


def float_column(
    values: Any, where: str, error: type[FastBCubedError], *, text: bool = False
) -> pa.ChunkedArray:
    """Return numbers as float64, with nulls as they are; anything else raises `error`."""
    try:
        data = plain(storage_of(convert(values, where)))
    except ColumnError as fault:
        raise error(str(fault)) from fault
    except CONVERSION as fault:
        raise error(f"{where} should be numbers, but cannot be read as such: {str(fault)[:200]}.") from fault
    if text:
        data = _numbers(data, where, error)
    numeric = pa.types.is_integer(data.type) or pa.types.is_floating(data.type)
    if not (numeric or pa.types.is_decimal(data.type)):
        raise error(f"{where} should be numbers, but the type is {data.type}.")
    return data if data.type == pa.float64() else data.cast(pa.float64(), safe=False)


def _numbers(text: pa.ChunkedArray, where: str, error: type[FastBCubedError]) -> pa.ChunkedArray:
    """Read numbers from text, in whichever way they are written there."""
    if not pa.types.is_string(text.type):
        return text
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid as fault:
        matches = pc.match_substring_regex(text, NUMBER).to_pylist()
        rows = np.flatnonzero([match is False for match in matches])
        shown = [text[row].as_py() for row in rows[:4].tolist()]
        raise error(
            f"{where} should be numbers, but {rows.size} of {len(text)} values are not (first: "
            f"{first_few(shown)} in rows {first_few(rows[:4].tolist())})."
        ) from fault


def _first_nulls(data: pa.ChunkedArray, limit: int = 4) -> list[int]:
    rows: list[int] = []
    start = 0
    for chunk in data.chunks:
        if chunk.null_count and len(rows) < limit:
            rows += (np.flatnonzero(is_null(chunk))[: limit - len(rows)] + start).tolist()
        start += len(chunk)
    return rows
