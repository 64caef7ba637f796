"""Tables of any kind as rows with columns that are read on demand; list columns are expanded to one row per entry."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from fastbcubed.errors import (
    AlignmentError,
    ColumnError,
    FastBCubedError,
    IdTypeError,
    OptionError,
    WeightError,
    first_few,
)
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import (
    CONVERSION,
    Nulls,
    as_floats,
    convert,
    is_null,
    is_object,
    is_pandas,
    plain,
    require_valid,
    storage_of,
    take_or_null,
    take_rows,
    to_arrow,
    to_numpy,
    without_views,
)
from fastbcubed.inputs.file_formats import ENDS
from fastbcubed.inputs.id_columns import Column, as_column
from fastbcubed.inputs.typed_columns import Unnamed
from fastbcubed.runtime.arguments import DEEPEST, path_of
from fastbcubed.runtime.suggestions import did_you_mean
from fastbcubed.runtime.threads import blocks

#: The name of a column, or a list of those of a composite id.
ColumnName = str | list[str]

#: Default names of the columns of items and of clusters.
ITEM, CLUSTER = Unnamed("item"), Unnamed("cluster")
DEFAULTS = {"item": ITEM, "cluster": CLUSTER}

#: Why a column was chosen. Items without a column are identified by row number.
NAMED, DEFAULT, BY_TOOL, LEFT = "named", "default name", "name that a tool writes", "only column left"
ROW = "row number"

#: Text that Arrow parses as a number.
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])$"


#: Maximum number of rows in a block; each thread works on a few columns of a block at a time.
BLOCK_ROWS = 1 << 20

Read = Callable[[Sequence[str]], list[pa.ChunkedArray]]
B = TypeVar("B")


@dataclass(frozen=True)
class Stretch(Generic[B]):
    """Consecutive rows that one thread reads in order: first row, number of rows, and a function that yields blocks."""

    first_row: int
    n_rows: int
    blocks: Callable[[], Iterator[B]]


class ReadOnce:
    """Reads each column once, and returns it from memory after that."""

    def __init__(self, read: Read) -> None:
        self._read, self._lock = read, Lock()  # held while reading, so that no column is read twice
        self._found: dict[str, pa.ChunkedArray] = {}

    def __call__(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return columns, reading those that have not been read."""
        with self._lock:
            missing = [name for name in dict.fromkeys(names) if name not in self._found]
            self._found |= zip(missing, self._read(missing), strict=True)
        return [self._found[name] for name in names]


class Source:
    """A table whose columns are read on demand, whole or in blocks, any number of times.

    `where` is its name in messages: a path, or "the truth". `untyped` has the columns that are text because their
    source has no types (CSV, names of folders), where numbers may be written in any notation. `hint`, the likely reason
    for a missing column, ends messages and may be empty. `first_row` is the row number, in the original table, of its
    first row. `lacking` has the columns that some files of the table lack, with the error that reading them raises.
    """

    #: whether blocks can be read without reading the rest of the table
    can_be_cut = False

    def __init__(
        self,
        names: Iterable[Any],
        where: str,
        n_rows: int | Callable[[], int],
        read: Read,
        *,
        like: Source | None = None,
        type_of: Callable[[str], pa.DataType] | None = None,
        hint: str = "",
        first_row: int = 0,
    ) -> None:
        """Store the names of the columns; `read` is called only with names that exist once.

        `untyped`, `hint` and `lacking` are copied from `like`. `type_of` returns the type of a column if that is known
        without reading it. A source can be pickled only if its functions are defined at module level.
        """
        self.names = tuple(map(str, names))
        self.where, self.first_row = where, first_row
        self.untyped: frozenset[str] = frozenset() if like is None else like.untyped
        self.hint: str = hint if like is None else like.hint
        self.lacking: Mapping[str, str] = {} if like is None else like.lacking
        self._n_rows, self._read, self._type_of = n_rows, read, type_of

    def __len__(self) -> int:
        return self._n_rows() if callable(self._n_rows) else self._n_rows

    def columns(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Read columns, several at once where that is cheaper; unknown names raise ColumnError."""
        for name in names:
            count = self.names.count(name)
            if count != 1:
                fault = "is no column" if count == 0 else f"are {count} columns named"
                asked = did_you_mean(name, self.names) if count == 0 else " Rename all but one of them."
                raise ColumnError(
                    f"There {fault} {name!r} in {self.where} ({listed(self.names)}).{asked}{self.hint}"
                )
        return self._read(names)

    def column(self, name: str) -> pa.ChunkedArray:
        """Read one column; text that is not UTF-8 raises IdTypeError."""
        data = self.columns([name])[0]
        require_valid(data, f"column {name!r} of {self.where}")
        return data

    def type_of(self, name: str) -> pa.DataType:
        """Return the type of a column, reading the column if necessary."""
        return self._type_of(name) if self._type_of is not None else self.columns([name])[0].type

    def between(self, start: int, stop: int) -> Source:
        """Return consecutive rows, cut from columns that are read whole."""
        return self.block(start, stop - start, partial(_slices, self, start, stop))

    def block(self, first_row: int, n_rows: int, read: Read) -> Source:
        """Return consecutive rows whose columns are read by the function `read`."""
        kind = self.type_of
        return Source(self.names, self.where, n_rows, read, like=self, type_of=kind, first_row=first_row)

    def scan(self, size: int = BLOCK_ROWS, names: Sequence[str] | None = None) -> list[Stretch[Source]]:
        """Divide the table into stretches with blocks of at most `size` rows, or fewer if rows are wide.

        This default reads each column whole when its first block is needed.
        """
        whole = self.block(self.first_row, len(self), ReadOnce(self.columns))
        return [one_block(whole.between(start, stop)) for start, stop in blocks(len(self), size)]

    def __repr__(self) -> str:
        return f"Source({self.where}: {', '.join(self.names)})"


def one_block(block: Source) -> Stretch[Source]:
    """Return a stretch that consists of a single block."""
    return Stretch(block.first_row, len(block), lambda: iter((block,)))


def _slices(source: Source, start: int, stop: int, names: Sequence[str]) -> list[pa.ChunkedArray]:
    return [column.slice(start, stop - start) for column in source.columns(names)]


def refuse_deep(schema: pa.Schema, where: str) -> None:
    """Raise IdTypeError for columns nested so deep that Arrow would take minutes, or crash the process."""
    if deep := [field.name for field in schema if _is_deep(field.type)]:
        raise IdTypeError(
            f"{where} has columns nested more than {DEEPEST} levels deep (first: {first_few(deep)}). Remove "
            "them: ids and weights must be plain values."
        )


def _is_deep(kind: pa.DataType) -> bool:
    level, depth = [kind], 0
    while level and depth <= DEEPEST:
        level, depth = [inner for outer in level for inner in _inner(outer)], depth + 1
    return bool(level)


def _inner(kind: pa.DataType) -> list[pa.DataType]:
    if isinstance(kind, pa.BaseExtensionType):
        return [kind.storage_type]
    if pa.types.is_struct(kind) or pa.types.is_union(kind):
        return [kind.field(k).type for k in range(kind.num_fields)]
    if pa.types.is_map(kind):
        return [kind.key_type, kind.item_type]
    return [kind.value_type] if hasattr(kind, "value_type") else []


def of_arrow(table: pa.Table, where: str) -> Source:
    """Return an Arrow table as a source, without copying."""
    refuse_deep(table.schema, where)
    return Source(table.column_names, where, table.num_rows, partial(_of_arrow, table))


def _of_arrow(table: pa.Table, names: Sequence[str]) -> list[pa.ChunkedArray]:
    return [table.column(name) for name in names]


def of_arrays(arrays: Mapping[Any, Any], n_rows: int, where: str) -> Source:
    """Return a dict of arrays as a source; each column is converted when it is read."""
    by_name = {str(name): values for name, values in arrays.items()}
    return Source(arrays, where, n_rows, partial(_of_arrays, by_name, where))


def _of_arrays(arrays: Mapping[str, Any], where: str, names: Sequence[str]) -> list[pa.ChunkedArray]:
    return [to_arrow(arrays[name], f"column {name!r} of {where}") for name in names]


def of_pandas(frame: Any, where: str) -> Source:
    """Return a pandas DataFrame as a source, with named index levels as columns."""
    columns = [str(name) for name in frame.columns]
    levels = [str(n) for n in frame.index.names if n is not None and str(n) not in columns]
    hint = ""
    if frame.index.names == [None] and not is_pandas(frame.index, "RangeIndex"):
        hint = " If its index holds the items, name the index: frame.rename_axis('item')."
    return Source([*columns, *levels], where, len(frame), partial(_of_pandas, frame, where), hint=hint)


def _of_pandas(frame: Any, where: str, names: Sequence[str]) -> list[pa.ChunkedArray]:
    columns, levels = list(map(str, frame.columns)), list(map(str, frame.index.names))
    return [
        to_arrow(
            frame.iloc[:, columns.index(name)]
            if name in columns
            else frame.index.get_level_values(levels.index(name)),
            f"column {name!r} of {where}",
        )
        for name in names
    ]


def listed(names: Sequence[str]) -> str:
    """Return the names of a table's columns as text for a message."""
    return f"columns: {', '.join(names)}" if names else "which has none"


def is_array(values: object) -> bool:
    """Return whether `values` may be a column in a dict of columns: has a length and is neither string nor set."""
    sized = hasattr(values, "__len__") and getattr(values, "ndim", 1) > 0
    return sized and not isinstance(values, (str, bytes, set, frozenset, Mapping))


def refuse_other_indexes(values: Iterable[Any], where: str) -> None:
    """Raise if pandas Series that are matched by position have different indexes; pandas itself would match these."""
    first, *others = [each.index for each in values if is_pandas(each, "Series", "DataFrame")] or [None]
    if not all(first.equals(other) for other in others):
        raise AlignmentError(
            f"Series of {where} have different indexes. If rows correspond by position, pass .to_numpy() of "
            "each; otherwise combine them in a DataFrame, which matches rows by index."
        )


class PathList:
    """The paths of several files that form one table; converted to a path, their name in messages."""

    def __init__(self, paths: Sequence[Any]) -> None:
        self.paths = [path_of(path) for path in paths]
        if twice := [path for path, times in Counter(self.paths).items() if times > 1]:
            raise OptionError(
                f"a list of files names {len(twice)} of them more than once (first: {first_few(twice)}). "
                "Name each once; if these are labels, pass Clustering.from_labels(...)."
            )

    def __fspath__(self) -> str:
        first, *_, last = 2 * self.paths
        several = f"{first}, …, {last} ({len(self.paths)} files)"
        return several if len(self.paths) > 3 else ", ".join(self.paths)

    __str__ = __fspath__


def listed_paths(source: Any) -> Any:
    """Return a list of files as one path; other objects, and lists of strings that are not all files, unchanged."""
    if isinstance(source, list | tuple) and len(source) and all(map(_is_file, source)):
        return PathList(source)
    return source


def _is_file(given: Any) -> bool:
    """Return whether this is the path of a table rather than a label that resembles one, such as a source file."""
    if not isinstance(given, str):
        return isinstance(given, os.PathLike)
    return given.lower().endswith(ENDS) and ("/" in given or os.path.exists(given))


def column_names(names: Any, argument: str) -> list[str]:
    """Return the names of one column, or of the columns of a composite id, given by an argument.

    Raise OptionError for anything but a name or a list of distinct names.
    """
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, list) or not listed or not all(isinstance(name, str) for name in listed):
        numbered = isinstance(names, int) and not isinstance(names, bool)
        raise OptionError(
            f"{argument} must be the name of a column, or a list of names that form a composite id, not "
            f"{type(names).__name__} ({first_few([names])})."
            + (f' If a column has that name, pass "{names}".' if numbered else "")
        )
    if len(set(listed)) < len(listed):
        raise OptionError(f"{argument} names the same column twice: {first_few(listed)}.")
    return listed


def read_columns(
    rows: Source, groups: Sequence[Sequence[str]], weight: str | None = None
) -> tuple[list[Column], np.ndarray | None]:
    """Read the columns in each group, as a composite column if it has several, and the weights, all at once."""
    needed = [name for group in groups for name in group] + ([] if weight is None else [weight])
    names = list(dict.fromkeys(needed))
    data = dict(zip(names, rows.columns(names), strict=True))
    columns = [column_of(data, group, group, rows.where, rows.untyped) for group in groups]
    if weight is None:
        return columns, None
    where = f"column {weight!r} of {rows.where}"
    values = data[weight]
    return columns, weight_array(values, where, text=weight in rows.untyped)


def column_of(
    data: Mapping[str, pa.ChunkedArray],
    own: Sequence[str],
    names: Sequence[str],
    where: str,
    untyped: Collection[str],
) -> Column:
    """Make a column from the columns `own` of a table, one or several; `names` are the names of its parts.

    `untyped` has the columns of the table whose source has no types.
    """
    where = f"column {', '.join(map(repr, own))} of {where}"
    parts = [data[each] for each in own]
    found = as_column(parts[0], names[0], where) if len(parts) == 1 else Column(names, parts, where)
    found.untyped = frozenset(name for name, each in zip(names, own, strict=True) if each in untyped)
    return found


def weight_array(values: Any, where: str, *, text: bool = False) -> np.ndarray:
    """Return weights as float64 without copying a float64 array that has no nulls; raise WeightError for nulls.

    The result is read-only. If `text`, weights without type are read as numbers.
    """
    data = float_column(values, where, WeightError, text=text)
    if data.null_count:
        raise Nulls(False, where, data.null_count, len(data), _first_nulls(data)).error()
    return to_numpy(data)


def float_column(
    values: Any, where: str, error: type[FastBCubedError], *, text: bool = False
) -> pa.ChunkedArray:
    """Return numbers as float64 with nulls kept; raise `error` for values that are not numbers."""
    try:
        data = plain(storage_of(convert(values, where)))
    except (ColumnError, IdTypeError) as fault:
        raise error(str(fault)) from fault
    except CONVERSION as fault:
        raise error(
            f"{where} should be numbers, but cannot be read as numbers: {str(fault)[:200]}."
        ) from fault
    if text:
        data = _numbers(data, where, error)
    numeric = pa.types.is_integer(data.type) or pa.types.is_floating(data.type)
    if not (numeric or pa.types.is_decimal(data.type)):
        raise error(f"{where} should be numbers, but the type is {data.type}.")
    return data if data.type == pa.float64() else as_floats(data)


def _numbers(text: pa.ChunkedArray, where: str, error: type[FastBCubedError]) -> pa.ChunkedArray:
    """Return the numbers in text, which may be in any notation; raise `error` for other text."""
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


def _first_nulls(data: pa.ChunkedArray) -> list[int]:
    rows: list[int] = []
    start = 0
    for chunk in data.chunks:
        if chunk.null_count and len(rows) < 4:
            rows += (np.flatnonzero(is_null(chunk))[: 4 - len(rows)] + start).tolist()
        start += len(chunk)
    return rows


#: Methods of DuckDB relations and results that return Arrow data, newest first.
TO_TABLE = ("to_arrow_table", "fetch_arrow_table")
TO_READER = ("to_arrow_reader", "fetch_arrow_reader", "fetch_record_batch")


def unwrapped(source: Any) -> Any:
    """Return the table in a Polars LazyFrame, Splink frame, Hugging Face data set or similar; other objects unchanged.

    A Polars frame with Python objects becomes a dict of its columns. A frame that has only the dataframe interchange
    protocol becomes an Arrow table.
    """
    if isinstance(source, type):
        return source
    if hasattr(source, "collect_schema"):
        frame = _collected(source) if hasattr(source, "collect") else source
        if any(map(is_object, frame.schema.values())):
            return {name: frame[name] for name in frame.columns}
        return frame
    if hasattr(source, "physical_name") and hasattr(source, "as_pandas_dataframe"):
        return _of_splink(source)
    if is_hugging_face(source):
        return source.with_format("arrow")[:]  # not `.data`, which also has the rows that are not selected
    if hasattr(source, "__dataframe__") and not hasattr(source, "__arrow_c_stream__"):
        return _of_interchange(source)
    return source


def is_hugging_face(source: Any) -> bool:
    """Return whether an object is a Hugging Face data set; a dict of them is not, nor is one without a length."""
    return all(
        hasattr(source, name) for name in ("with_format", "column_names", "__len__")
    ) and not isinstance(source, dict)


def _of_interchange(frame: Any) -> Any:
    """Return a frame as an Arrow table by the interchange protocol; unchanged if from pandas or not convertible."""
    if is_pandas(frame, "DataFrame"):
        return frame
    from pyarrow.interchange import from_dataframe

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some libraries deprecate the protocol
            return from_dataframe(frame)
    except Exception:  # whatever that library raises: the frame is refused later, with advice on what to call
        return frame


def _collected(frame: Any) -> Any:
    """Return the rows of a lazy frame; raise ColumnError if one of its steps, written by its author, fails."""
    try:
        return frame.collect()
    except (FastBCubedError, MemoryError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())
        raise ColumnError(
            f"a lazy frame cannot be collected: {type(error).__name__}: {said[:300]}. Call its collect() to see all "
            "of it"
        ) from error


def _of_splink(frame: Any) -> Any:
    """Return a Splink frame as a DuckDB relation if it is in DuckDB, otherwise as a pandas frame."""
    try:
        return frame.as_duckdbpyrelation()
    except (AttributeError, NotImplementedError, TypeError):  # the frame is in another backend
        return frame.as_pandas_dataframe()


def is_result(source: Any) -> bool:
    """Return whether this is a DuckDB connection, which holds the result of its last query."""
    return type(source).__name__ == "DuckDBPyConnection"


def arrow_table(source: Any) -> Any:
    """Return a DuckDB relation or result as an Arrow table; None for anything else."""
    return _asked(source, TO_TABLE)


def relation_schema(source: Any) -> Any:
    """Return the schema of a DuckDB relation, from a query without rows; None for anything else."""
    if is_result(source) or not (hasattr(source, "limit") and hasattr(source, "fetchall")):
        return None
    found = arrow_table(source.limit(0))
    return None if found is None else found.schema


def arrow_reader(source: Any, size: int) -> Any:
    """Return a reader of the batches of a DuckDB relation or result; None for anything else."""
    # an ADBC cursor, which exports a stream itself
    if hasattr(source, "executemany") and not is_result(source):
        return None
    return _asked(source, TO_READER, size)


def _asked(source: Any, methods: tuple[str, ...], *arguments: int) -> Any:
    ask = next((getattr(source, name) for name in methods if hasattr(source, name)), None)
    if ask is None or not (is_result(source) or hasattr(source, "fetchall")):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # results have to be copied
            return ask(*arguments)
    except Exception as error:
        if not is_result(source):
            raise
        cause = str(error).splitlines()[0].rstrip(".")
        raise ColumnError(
            f"The DuckDB connection has no result to read: {cause}. It holds only the result of its last "
            "execute(), which can be read once; pass con.sql(...) instead."
        ) from error


def unlisted(source: Source, name: str) -> Source:
    """Return rows with a list column expanded to one row per entry; other rows unchanged.

    Values of other columns are repeated. An empty list, like a null, becomes one row with a null.
    """
    kind = source.type_of(name)
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        return source
    lists = source.column(name)
    lengths = to_numpy(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
    parents = np.repeat(np.arange(lengths.size), np.maximum(lengths, 1))
    places = np.full(parents.size, -1)
    places[lengths[parents] > 0] = np.arange(int(lengths.sum()))
    entries = take_or_null(without_views(pc.list_flatten(lists)), places)
    read = partial(_unlisted, source, name, entries, parents)
    return Source(source.names, source.where, parents.size, read, like=source)


def _unlisted(
    source: Source, name: str, entries: pa.ChunkedArray, parents: np.ndarray, names: Sequence[str]
) -> list[pa.ChunkedArray]:
    others = [other for other in names if other != name]
    read = source.columns(others) if others else []
    found = {
        other: pa.chunked_array([take_rows(values, parents)])
        for other, values in zip(others, read, strict=True)
    }
    return [entries if each == name else found[each] for each in names]
