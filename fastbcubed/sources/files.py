"""Paths, URIs, pipes, globs, directories of files in any format → rows; a fault is a FileFormatError."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, FileFormatError, OptionError
from fastbcubed.runtime.limits import available_memory
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import from_numpy, from_texts, join_pieces
from fastbcubed.sources.formats import SUFFIXES, IpcFile, ParquetFile, sniff
from fastbcubed.sources.locations import LOCAL, Place, is_pattern, is_uri, locate, matches, split_pattern
from fastbcubed.sources.pipes import held, place_of
from fastbcubed.sources.selection import plain
from fastbcubed.sources.tables import BaseRows, PathList, Rows, is_path
from fastbcubed.sources.text_files import CsvFile, JsonFile, TextFile

#: Groups, and rows of each, that are looked at to see how long values are.
PROBED, PROBE_ROWS = 8, 1 << 10
#: The files of results, which a glob may match.
RESULTS = ("cells", "items", "pred_clusters", "repairs", "slices", "true_clusters")
#: Folders whose logs say which Parquet files beside them count: what made them, and what to pass instead.
LOGS = {
    "_delta_log": ("Delta Lake", "deltalake.DeltaTable({}).to_pyarrow_dataset()"),
    ".hoodie": ("Apache Hudi", "what a reader of Hudi returns for {}"),
}
ICEBERG = ("Apache Iceberg", "what pyiceberg returns for {}, as by .scan().to_arrow()")
#: Whole numbers as floats are written, which no two texts of this form share.
WHOLE = r"^(0|-?[1-9]\d{0,14})\.0$"


def open_files(source: Any) -> Rows:
    """Open the table that lies in one file, in the files of a glob or a list, or below a directory.

    Below a directory, files of Parquet, Arrow IPC, CSV or JSON lines are found by their names, which are to be of one
    format; names that begin with a dot or underscore are skipped, as they are in a glob; `key=value` folders become
    columns.

    Only the beginning and end of the files are read; columns are read when asked for.
    """
    source = held(source)
    files, root = files_of(source)
    name = os.fspath(source) if isinstance(source, PathList) else place_of(source)[1]
    formats = dict(zip((each.path for each in files), _each(files, sniff), strict=True))
    if len(set(formats.values())) > 1:
        found = ", ".join(f"{path} is {form}" for path, form in list(formats.items())[:3])
        raise FileFormatError(f"{name} mixes formats ({found}). Read one format at a time.")
    opener: Any = {"Parquet": ParquetFile, "CSV": CsvFile, "JSON lines": JsonFile}.get(
        formats[files[0].path], IpcFile
    )
    return FileRows(_each(files, opener), name, root)


class Found(NamedTuple):
    """A file that was found."""

    place: Place
    path: str


def _each(found: list[Found], do: Callable[[str, Place], Any]) -> list[Any]:
    """Do something with each file; where a request takes long, with several at a time."""
    paths, places = [each.path for each in found], [each.place for each in found]
    if places[0].at_once == 1:
        return list(map(do, paths, places))
    with ThreadPoolExecutor(places[0].at_once) as threads:
        return list(threads.map(do, paths, places))


def files_of(source: Any) -> tuple[list[Found], str]:
    """Return the files that a path or pipe stands for, or those of a list, and the folder that they are below."""
    source = held(source)
    if not isinstance(source, PathList):
        place, name = place_of(source)
        paths, root = find_files(place, name)
        return [Found(place, path) for path in paths], root
    parts = [files_of(path) for path in source.paths]
    common = takewhile(
        lambda names: len(set(names)) == 1, zip(*(root.split("/") for _, root in parts), strict=False)
    )
    return [each for found, _ in parts for each in found], "/".join(names[0] for names in common)


def find_files(place: Place, name: str) -> tuple[list[str], str]:
    """Return the files that a path, glob or directory stands for, sorted, and the folder that they are below."""
    if place.is_folder(name):
        below = {os.path.relpath(path, name): path for path in place.below(name)}
        refuse_logs(name, below)
        files = [path for path_there, path in below.items() if not _hidden(path_there)]
        by_form = [[path for path in files if path.lower().endswith(ends)] for ends in SUFFIXES.values()]
        known = list(filter(None, by_form))
        if len(known) > 1:
            shown = " and ".join(f"{os.path.relpath(some[0], name)} among {len(some)}" for some in known)
            raise FileFormatError(
                f"Directory {name} has files of several formats: {shown}. Name those of one by a glob, such as "
                f"{os.path.join(name, '**', '*' + os.path.splitext(known[0][0])[1])}"
            )
        if known:
            return known[0], name
        found = f"only {', '.join(map(os.path.basename, files[:3]))}" if files else "no files"
        raise FileFormatError(
            f"Directory {name} has {found}; expected files named *.parquet (or .arrow, .csv, .jsonl)."
        )
    if place.exists(name):
        return [name], os.path.dirname(name)
    if is_pattern(name):
        folder, pattern = split_pattern(name)
        matching = place.matching(name)
        chosen = [
            path for path in matching if not _passed_over(os.path.relpath(path, folder or "."), pattern)
        ]
        if not chosen:
            but = f" but {os.path.basename(matching[0])}, which is passed over" if matching else ""
            raise FileFormatError(f"No file matches {name}{but}. Check the pattern and the folder.")
        return chosen, folder
    if place is not LOCAL:
        raise FileFormatError(f"There is no file {name}. Check the address.")
    folder = os.path.dirname(name) or "."
    hint = (
        "Check the path; the name of a column of one table needs table=."
        if os.path.isdir(folder)
        else f"There is no folder {folder} either."
    )
    raise FileFormatError(f"There is no file {name or repr(name)}. {hint}")


def refuse_logs(name: str, below: Iterable[str]) -> None:
    """Raise if a directory has a log beside its Parquet files that says which of them count."""
    for path in below:
        first, *_, last = [*Path(path).parts, path]
        form = LOGS.get(first)
        if form is None and first == "metadata" and last.endswith(".metadata.json"):
            form = ICEBERG
        if form is not None:
            raise FileFormatError(
                f"Directory {name} is a table of {form[0]}: {first} says which of its files count, and all files "
                f"together may have rows that were removed. Pass {form[1].format(json.dumps(name))}; or, to read all, "
                f"{os.path.join(name, '**', '*.parquet')}"
            )


def require_outside(out: Any, sources: Iterable[Any]) -> None:
    """Raise if what is written to a directory would be read as input the next time: of a directory, or by a glob."""
    paths = [each.paths if isinstance(each, PathList) else [each] for each in filter(is_path, sources)]
    for source in chain.from_iterable(paths):
        text = os.fspath(source)
        if is_uri(text) and not text.startswith("file:"):
            continue
        _, name = locate(text)
        is_folder = os.path.isdir(name)
        if not is_folder and (os.path.exists(name) or not is_pattern(name)):
            continue
        folder, pattern = (name, []) if is_folder else split_pattern(name)
        inside = os.path.relpath(os.path.realpath(out), os.path.realpath(folder))
        written = [Path(inside, f"{each}.parquet").parts for each in RESULTS]
        read = not _passed_over(inside, pattern) and (
            is_folder or any(matches(parts, pattern) for parts in written)
        )
        if read and not inside.startswith(".."):
            every = "below" if is_folder else "that match"
            raise OptionError(
                f"out= is {out}, but all files {every} {source} are input: what is written there would be read the "
                "next time. Name another directory, or one that begins with an underscore"
            )


def _passed_over(path: str, pattern: Sequence[str]) -> bool:
    """Tell whether a file below a glob has no data: a checksum, or what is hidden, unless the glob asks for it."""
    asked = any(part[:1] in "._" for part in pattern)
    return path.endswith(".crc") or (not asked and _hidden(path))


def _hidden(path: str) -> bool:
    return any(part[:1] in "._" and part != "." and "=" not in part for part in Path(path).parts)


class FileRows(BaseRows):
    """The rows of one or more files of one format, one after the other.

    All `files` have the columns of the first; `root` is the folder below which `key=value` folders count as
    columns.
    """

    def __init__(self, files: Sequence[ParquetFile | IpcFile | TextFile], where: str, root: str) -> None:
        self._files = list(files)
        self.paths = [file.path for file in files]
        self._folders = [_folder_values(file.path, root) for file in files]
        own = files[0].names
        super().__init__([*own, *(key for key in self._folders[0] if key not in own)], where)
        typed = () if isinstance(files[0], CsvFile) else own
        self.untyped = frozenset(self._names).difference(typed)
        self.hint = getattr(files[0], "hint", "")

    def __len__(self) -> int:
        for file in self._files:
            if file.n_rows is None:
                file.n_rows = len(file.read(file.names[:1])[0]) if file.names else 0
        return sum(file.n_rows or 0 for file in self._files)

    def type_of(self, name: str) -> pa.DataType:
        """Return the type that a column has in the first file; folders give text."""
        schema = self._files[0].schema
        at = schema.get_field_index(name)
        return schema.field(at).type if at >= 0 else pa.string()

    @property
    def bytes_in_memory(self) -> int:
        """The bytes that all columns take when they are read, about."""
        return sum(file.bytes_in_memory for file in self._files)

    def row_bytes(self, names: Sequence[str]) -> float:
        """Return the bytes of these columns of a row, as the files say, or as the first rows of some groups show.

        Repeated text is in a file once, but in memory each time.
        """
        said = sum(file.bytes_of(names) for file in self._files if not isinstance(file, TextFile)) / len(self)
        varying = [name for name in names if not _has_width(self.type_of(name))]
        if not varying:
            return said
        groups = [group for group in self.groups() if group.n_rows]
        shown = [
            sum(plain(column).nbytes for column in columns) / len(columns[0])
            for group in groups[:: -(-len(groups) // PROBED)]
            for columns in islice(group.read(varying, PROBE_ROWS), 1)
        ]
        return max(said, *shown)

    @property
    def can_be_cut(self) -> bool:
        """Whether the files can be read group by group; text is read as a whole, to find its types."""
        return not any(isinstance(file, TextFile) for file in self._files)

    def groups(self) -> list[Group]:
        """Return the row groups of all files, in order.

        Those of Parquet are read past the page cache where there are too many of them for it.
        """
        found = []
        passing = self.bytes_in_memory > available_memory() // 2
        for file, folders in zip(self._files, self._folders, strict=True):
            assert not isinstance(file, TextFile)
            if isinstance(file, ParquetFile):
                file.passing = passing
            for k, n_rows in enumerate(file.group_sizes()):
                found.append(Group(self, file, k, n_rows, folders))
        return found

    def folder_column(self, name: str, value: str | None, n_rows: int) -> pa.ChunkedArray:
        """Return a column that is the same in all rows of a file, of the type that all files give it."""
        values = [folders.get(name) for folders in self._folders]
        every = pa.chunked_array(
            [
                pa.DictionaryArray.from_arrays(from_numpy(np.zeros(1, np.int8)), from_texts([v]))
                for v in values
            ]
        )
        column = _constant(value, n_rows)
        return read_integers(column) if read_integers(every).type != every.type else column

    def require(self, file: Any, folders: Mapping[str, Any], names: Sequence[str]) -> None:
        """Raise if one of the files lacks a column that the first one has."""
        own = [name for name in names if name in self._files[0].names]
        absent = [name for name in own if name not in file.names]
        absent += [name for name in names if name not in own and name not in folders]
        if absent:
            raise ColumnError(
                f"{file.path} has no column {absent[0]!r}, which {self.paths[0]} has; "
                f"its columns are {', '.join(file.names)}."
            )

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        own = [name for name in names if name in self._files[0].names]
        pieces: dict[str, list[pa.ChunkedArray]] = {name: [] for name in names}
        for file, folders in zip(self._files, self._folders, strict=True):
            self.require(file, folders, names)
            for name, data in zip(own, file.read(own) if own else [], strict=True):
                if file.n_rows not in (None, len(data)):
                    raise FileFormatError(
                        f"{file.path} had {file.n_rows} rows and now has {len(data)}: "
                        "it changed while it was read. Try again when it is complete."
                    )
                file.n_rows = len(data)
                pieces[name].append(data)
            for name in pieces.keys() - set(own):
                n_rows = file.n_rows if file.n_rows is not None else len(file.read(file.names[:1])[0])
                pieces[name].append(_constant(folders[name], n_rows))
        return [self._join(name, pieces[name]) for name in names]

    def _join(self, name: str, pieces: list[pa.ChunkedArray]) -> pa.ChunkedArray:
        joined = join_pieces(pieces, f"Column {name!r} in the files of {self.where}")
        return read_integers(joined) if name in self.untyped else joined


@dataclass(frozen=True)
class Group:
    """A row group of one of the files of a table."""

    table: FileRows  #: the table
    file: ParquetFile | IpcFile  #: the file
    #: which group of the file, and its rows
    number: int
    n_rows: int
    folders: Mapping[str, str | None]  #: columns that the folders of the file give

    def held(self, names: Sequence[str]) -> int:
        """Return the bytes that are held while it is read, besides the rows that are yielded."""
        return self.file.held_of(self.number, names)

    def read(self, names: Sequence[str], size: int) -> Iterator[list[pa.ChunkedArray]]:
        """Yield columns, `size` rows at a time."""
        self.table.require(self.file, self.folders, names)
        own = [name for name in names if name in self.file.names]
        rows = 0
        for batch in self.file.read_group(self.number, own or self.file.names[:1], size):
            n, rows = len(batch[0]), rows + len(batch[0])
            data = dict(zip(own, batch, strict=False))
            yield [
                data[name] if name in data else self.table.folder_column(name, self.folders[name], n)
                for name in names
            ]
        if rows != self.n_rows:
            raise FileFormatError(
                f"{self.file.path} had {self.n_rows} rows in group {self.number} and now has {rows}: it changed "
                "while it was read. Try again when it is complete."
            )


def _has_width(kind: pa.DataType) -> bool:
    """Say whether all values of a type take as many bytes."""
    return bool(pa.types.is_primitive(kind) or pa.types.is_fixed_size_binary(kind))


def _folder_values(path: str, root: str) -> dict[str, str | None]:
    parts = Path(os.path.relpath(path, root or ".")).parts[:-1]
    pairs = [part.split("=", 1) for part in parts if "=" in part]
    return {key: None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value) for key, value in pairs}


def _constant(value: str | None, n_rows: int) -> pa.ChunkedArray:
    codes = from_numpy(np.zeros(n_rows, dtype=np.int8))
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, from_texts([value]))])


def read_integers(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text as int64 if all are whole numbers in usual form, as float64 if all end in .0, else as it is.

    "007" keeps the column text, so that no two different texts become one id.
    """
    if pa.types.is_dictionary(data.type):
        values = [read_integers(pa.chunked_array([chunk.dictionary])) for chunk in data.chunks]
        if not values or any(v.type != pa.int64() for v in values):
            return data
        return pa.chunked_array(
            [
                pa.DictionaryArray.from_arrays(chunk.indices, value.combine_chunks())
                for chunk, value in zip(data.chunks, values, strict=True)
            ]
        )
    if data.null_count == len(data):
        return data
    for kind in (pa.int64(), pa.float64()):
        try:
            numbers = data.cast(kind)
        except pa.ArrowException:
            continue
        if kind == pa.int64():
            if numbers.cast(data.type).equals(data):
                return numbers
        elif not pc.any(pc.invert(pc.match_substring_regex(data, WHOLE))).as_py():
            return numbers
    return data
