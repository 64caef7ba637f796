"""Tables in paths, globs and directories, read whole, in blocks, or as a stream that can be read only once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, FileFormatError, IdTypeError, OptionError, arg, short
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.arrays import (
    as_type,
    combined,
    common_type,
    from_numpy,
    from_stream,
    from_texts,
    invalid_codes,
    is_dataset,
    is_one_column,
    is_pandas,
    is_sparse,
    join_pieces,
    no_rows,
    plain,
    refuse_unread,
    require_valid,
)
from fastbcubed.inputs.file_formats import (
    COMPRESSED,
    DELIMITERS,
    PLAIN_TEXT,
    SUFFIXES,
    TEXT,
    CsvFile,
    IpcFile,
    JsonFile,
    ParquetFile,
    TextFile,
    has_width,
    in_blocks,
    reading,
    sniff,
)
from fastbcubed.inputs.id_columns import Column
from fastbcubed.inputs.json_documents import open_json
from fastbcubed.inputs.locations import LOCAL, Place, is_pattern, is_uri, locate, matches, split_pattern
from fastbcubed.inputs.pipes import held, place_of
from fastbcubed.inputs.tables import (
    BLOCK_ROWS,
    PathList,
    Source,
    Stretch,
    arrow_reader,
    arrow_table,
    is_array,
    listed_paths,
    of_arrays,
    of_arrow,
    of_pandas,
    one_block,
    refuse_deep,
    refuse_other_indexes,
    relation_schema,
    unwrapped,
)
from fastbcubed.runtime.arguments import is_path, naming_faults_of, path_of
from fastbcubed.runtime.memory_budget import Gate
from fastbcubed.runtime.spill import Pages, Spill

#: Number of row groups, and of rows in each, sampled for the length of values.
PROBED, PROBE_ROWS = 8, 1 << 10
#: Names of the files of a result, which a glob may match.
RESULTS = (
    "cells", "clusters", "curve", "deltas", "estimates", "items", "merges", "points", "pred_clusters", "repairs",
    "scores", "slices", "true_clusters", "weakest_links",
)  # fmt: skip
#: The file that identifies a directory as a saved result.
MANIFEST = "overall.json"
#: Folders with table logs, which list the Parquet files that count: the writing tool, and what to pass instead.
LOGS = {
    "_delta_log": ("Delta Lake", "deltalake.DeltaTable({}).to_pyarrow_dataset()"),
    ".hoodie": ("Apache Hudi", "what a Hudi reader returns for {}"),
}
ICEBERG = ("Apache Iceberg", "what pyiceberg returns for {}, e.g. from .scan().to_arrow()")
#: Whole numbers as pandas writes them in a column with nulls; without the point, they equal those of other files.
WHOLE = r"^(0|-?[1-9][0-9]{0,17})\.0$"
#: Number of decimal digits that a float represents exactly.
EXACT_DIGITS = 15


def open_files(source: Any) -> Files:
    """Open the table in one file, in the files of a glob or list, or below a directory.

    Below a directory, files of Parquet, Arrow IPC, CSV or JSON lines are found by name; all must be of one format.
    Names that begin with a dot or underscore are skipped, as in a glob, and `key=value` folders become columns.

    Only the beginning and end of the files are read; columns are read on demand.
    """
    source = held(source)
    files, root = files_of(source)
    name = os.fspath(source) if isinstance(source, PathList) else place_of(source)[1]
    formats = dict(zip((each.path for each in files), _map_files(files, sniff), strict=True))
    if len(set(formats.values())) > 1:
        found = ", ".join(f"{path} is {form}" for path, form in list(formats.items())[:3])
        raise FileFormatError(f"{name} mixes formats ({found}). Read one format at a time.")
    opener: Any = {"Parquet": ParquetFile, "CSV": CsvFile, "JSON lines": JsonFile, "JSON": open_json}.get(
        formats[files[0].path], IpcFile
    )
    return Files(_map_files(files, opener), name, root)


class Found(NamedTuple):
    """A file: its path and where it is stored."""

    place: Place
    path: str


def _map_files(found: list[Found], do: Callable[[str, Place], Any]) -> list[Any]:
    """Apply a function to each file, several at a time where requests are slow."""
    paths, places = [each.path for each in found], [each.place for each in found]
    if places[0].at_once == 1:
        return list(map(do, paths, places))
    with ThreadPoolExecutor(places[0].at_once) as threads:
        return list(threads.map(do, paths, places))


def files_of(source: Any) -> tuple[list[Found], str]:
    """Return the files named by a path, pipe or list of paths, and their common root folder."""
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
    """Return the files at a path, glob or directory, sorted, and their root folder."""
    if place.is_folder(name):
        below = {os.path.relpath(path, name): path for path in place.below(name)}
        refuse_logs(name, below)
        refuse_result(name, below)
        files = [path for path_there, path in below.items() if not _hidden(path_there)]
        by_form = [[path for path in files if path.lower().endswith(ends)] for ends in SUFFIXES.values()]
        *others, documents = by_form  # JSON documents next to tables are probably metadata
        known = list(filter(None, others)) or list(filter(None, [documents]))
        if len(known) > 1:
            shown = " and ".join(f"{os.path.relpath(some[0], name)} among {len(some)}" for some in known)
            raise FileFormatError(
                f"Directory {name} has files of several formats: {shown}. Select one format with a glob, "
                f"such as {os.path.join(name, '**', '*' + os.path.splitext(known[0][0])[1])}"
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
        chosen = [path for path in matching if not _is_skipped(os.path.relpath(path, folder or "."), pattern)]
        if not chosen:
            every = os.path.join(name, "**")
            if not matching and place.matching(every):
                raise FileFormatError(
                    f"{name} matches only directories. Pass {every} for the files below them."
                )
            but = f" except {os.path.basename(matching[0])}, which is ignored" if matching else ""
            raise FileFormatError(f"No file matches {short(name)}{but}. Check the pattern and the folder.")
        return chosen, folder
    if place is not LOCAL:
        raise FileFormatError(f"There is no file {short(name)}. Check the address.")
    folder = os.path.dirname(name) or "."
    hint = "Check the path." if os.path.isdir(folder) else f"There is no folder {short(folder)} either."
    if not os.path.splitext(name)[1] and folder == ".":
        hint += f" To name a column instead, pass {arg('table', ...)} to evaluate, compare or diff."
    raise FileFormatError(f"There is no file {short(name)}. {hint}")


def refuse_logs(name: str, below: Iterable[str]) -> None:
    """Raise if a directory contains a table log, which determines which of its Parquet files count."""
    for path in below:
        first, *_, last = [*Path(path).parts, path]
        form = LOGS.get(first)
        if form is None and first == "metadata" and last.endswith(".metadata.json"):
            form = ICEBERG
        if form is not None:
            raise FileFormatError(
                f"Directory {name} is a table of {form[0]}: {first} lists which of its files are current; "
                f"the others may contain removed rows. Pass {form[1].format(json.dumps(name))}. To read all "
                f"files instead, pass {os.path.join(name, '**', '*.parquet')}"
            )


def refuse_result(name: str, below: Iterable[str]) -> None:
    """Raise if a directory is a saved result, which holds tables of scores rather than a clustering."""
    if MANIFEST in set(below):
        shown = json.dumps(name)
        raise FileFormatError(
            f"Directory {name} is a saved result, not a clustering. To compare with its scores, evaluate the new "
            f"clustering: fastbcubed evaluate TRUTH PREDICTION --baseline {name} --fail-worse f1=0.002. To compare "
            "item by item, pass the clustering that was scored to compare or diff. To open it: "
            f"fb.load({shown}), fastbcubed show {name}"
        )


def require_outside(out: Any, sources: Iterable[Any]) -> None:
    """Raise if output written to a directory would later be read as input, as part of a directory or glob."""
    paths = [each.paths if isinstance(each, PathList) else [each] for each in filter(is_path, sources)]
    for source in chain.from_iterable(paths):
        text = path_of(source)
        if is_uri(text) and not text.startswith("file:"):
            continue
        _, name = locate(text)
        is_folder = os.path.isdir(name)
        if not is_folder and (os.path.exists(name) or not is_pattern(name)):
            continue
        folder, pattern = (name, []) if is_folder else split_pattern(name)
        inside = os.path.relpath(os.path.realpath(out), os.path.realpath(folder))
        written = [Path(inside, f"{each}.parquet").parts for each in RESULTS]
        read = not _is_skipped(inside, pattern) and (
            is_folder or any(matches(parts, pattern) for parts in written)
        )
        if read and not inside.startswith(".."):
            every = "below" if is_folder else "that match"
            raise OptionError(
                f"{arg('out', ...)} is {out}, but all files {every} {source} are input: output written there "
                "would be read the next time. Name another directory, or one whose name begins with an "
                "underscore"
            )


def _is_skipped(path: str, pattern: Sequence[str]) -> bool:
    """Return whether a file found by a glob is a checksum, or hidden and not requested by name."""
    names_hidden = any(part[:1] in "._" for part in pattern)
    return path.endswith(".crc") or (not names_hidden and _hidden(path))


def _hidden(path: str) -> bool:
    return any(part[:1] in "._" and part != "." and "=" not in part for part in Path(path).parts)


class Files(Source):
    """The concatenated rows of one or more files of one format.

    All `files` have the columns of the first one; `key=value` folders below `root` become columns.
    """

    def __init__(self, files: Sequence[ParquetFile | IpcFile | TextFile], where: str, root: str) -> None:
        self._files = list(files)
        self.paths = [file.path for file in files]
        self._folders = [_folder_values(file.path, root) for file in files]
        own = files[0].names
        names = [*own, *(key for key in self._folders[0] if key not in own)]
        hint = getattr(files[0], "hint", "")
        super().__init__(names, where, self._count, self._columns, type_of=self._kind, hint=hint)
        typed = set(own).difference(getattr(files[0], "untyped", ()))
        self.untyped = frozenset(self.names).difference(typed)
        self._kinds: dict[str, pa.DataType] = {}
        #: text is read whole, as column types are known only at its end
        self.can_be_cut = not any(isinstance(file, TextFile) for file in files)
        if self.can_be_cut:
            self.lacking = self._lacking()

    def _count(self) -> int:
        for file in self._files:
            if file.n_rows is None:
                file.n_rows = len(file.read(file.names[:1])[0]) if file.names else 0
        return sum(file.n_rows or 0 for file in self._files)

    def _kind(self, name: str) -> pa.DataType:
        """Return the type of a column in the files that have rows; columns from folder names are text."""
        if name not in self._kinds:
            files = self._files if self.can_be_cut else self._files[:1]
            schemas = [file.schema for file in files if file.n_rows != 0] or [self._files[0].schema]
            found = [schema.field(name).type for schema in schemas if schema.get_field_index(name) >= 0]
            self._kinds[name] = common_type(found, self._where_of(name)) if found else pa.string()
        return self._kinds[name]

    def _where_of(self, name: str) -> str:
        return f"Column {name!r} in the files of {self.where}"

    def in_common_type(
        self, name: str, data: pa.ChunkedArray, file: ParquetFile | IpcFile
    ) -> pa.ChunkedArray:
        """Return rows of a file, cast to the common type of all files if necessary."""
        kind = self._kind(name)
        return data if file.schema.field(name).type == kind else as_type(data, kind, self._where_of(name))

    @property
    def bytes_in_memory(self) -> int:
        """The approximate number of bytes of all columns in memory."""
        return sum(file.bytes_in_memory for file in self._files)

    def row_bytes(self, names: Sequence[str]) -> float:
        """Return the bytes per row of these columns, from types, metadata, or the first rows of some row groups.

        Repeated values count every time, as in memory, although a file may store them once.
        """
        said = sum(file.bytes_of(names) for file in self._files if not isinstance(file, TextFile)) / len(self)
        kinds = {name: self.type_of(name) for name in names}
        varying = [name for name, kind in kinds.items() if not has_width(kind)]
        fixed = sum(kind.bit_width for kind in kinds.values() if has_width(kind)) / 8
        if not varying:
            return max(said, fixed)
        groups = [group for group in self.groups() if group.n_rows]
        shown = [
            sum(plain(column).nbytes for column in columns) / len(columns[0])
            for group in groups[:: -(-len(groups) // PROBED)]
            for columns in islice(group.read(varying, PROBE_ROWS), 1)
        ]
        return max(said, *(fixed + each for each in shown))

    def groups(self) -> list[Group]:
        """Return the row groups of all files, in order."""
        found = []
        for file, folders in zip(self._files, self._folders, strict=True):
            assert not isinstance(file, TextFile)
            for k, n_rows in enumerate(file.group_sizes()):
                found.append(Group(self, file, k, n_rows, folders))
        return found

    def folder_column(self, name: str, value: str | None, n_rows: int) -> pa.ChunkedArray:
        """Return a column that is constant within a file, in the common type of all files."""
        texts = [folders.get(name) for folders in self._folders]
        every = pa.chunked_array([_constant(text, 1).chunk(0) for text in texts])
        return pa.chunked_array(
            [_repeated(read_integers(every).chunk(texts.index(value)).dictionary, n_rows)]
        )

    def require(self, file: Any, folders: Mapping[str, Any], names: Sequence[str]) -> None:
        """Raise if a file lacks one of these columns of the first file."""
        if absent := self._absent(file, folders, names):
            raise ColumnError(self._says_absent(file, absent[0]))

    def _absent(self, file: Any, folders: Mapping[str, Any], names: Sequence[str]) -> list[str]:
        own = [name for name in names if name in self._files[0].names]
        absent = [name for name in own if name not in file.names]
        return absent + [name for name in names if name not in own and name not in folders]

    def _says_absent(self, file: Any, name: str) -> str:
        return (
            f"{file.path} lacks the column {name!r} of {self.paths[0]}; its columns are "
            f"{', '.join(file.names)}."
        )

    def _lacking(self) -> dict[str, str]:
        """Return the columns that some file lacks although the first one has them, each with a message that says so."""
        first, found = set(self.names), dict[str, str]()
        for file, folders in zip(self._files[1:], self._folders[1:], strict=True):
            if not first <= {*file.names, *folders}:
                absent = self._absent(file, folders, self.names)
                found = {name: self._says_absent(file, name) for name in absent} | found
        return found

    def _columns(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        own = [name for name in names if name in self._files[0].names]
        pieces: dict[str, list[pa.ChunkedArray]] = {name: [] for name in names}
        for file, folders in zip(self._files, self._folders, strict=True):
            self.require(file, folders, names)
            for name, data in zip(own, file.read(own) if own else [], strict=True):
                if file.n_rows not in (None, len(data)):
                    raise FileFormatError(
                        f"{file.path} had {file.n_rows} rows and now has {len(data)}: the file changed "
                        "while it was read. Try again when it is complete."
                    )
                file.n_rows = len(data)
                pieces[name].append(data)
            for name in pieces.keys() - set(own):
                n_rows = file.n_rows if file.n_rows is not None else len(file.read(file.names[:1])[0])
                pieces[name].append(_constant(folders[name], n_rows))
        return [self._join(name, pieces[name]) for name in names]

    def _join(self, name: str, pieces: list[pa.ChunkedArray]) -> pa.ChunkedArray:
        joined = join_pieces(pieces, self._where_of(name))
        return read_integers(joined) if name in self.untyped else joined

    def scan(self, size: int = BLOCK_ROWS, names: Sequence[str] | None = None) -> list[Stretch[Source]]:
        """Return a stretch for each row group; blocks have fewer rows if the columns are wide."""
        if not self.can_be_cut or not len(self):
            return super().scan(size, names)
        names = self.names if names is None else names
        usual, size = size, block_rows(size, self.row_bytes(names))
        found, first = [], 0
        gate = Gate(usual * HELD_WIDTH)
        for group in self.groups():
            if group.n_rows:
                held = {name: group.held([name]) for name in names}
                _require_room(group, held, usual)
                holding = partial(gate.holding, sum(held.values()))
                found.append(Stretch(first, group.n_rows, partial(_blocks_of, group, first, size, holding)))
            first += group.n_rows
        return found


@dataclass(frozen=True)
class Group:
    """A row group of one of a table's files."""

    table: Files  #: the table
    file: ParquetFile | IpcFile  #: the file
    #: number of the group in the file, and of its rows
    number: int
    n_rows: int
    folders: Mapping[str, str | None]  #: values of the columns that come from folder names

    def held(self, names: Sequence[str]) -> int:
        """Return the bytes held while the group is read, in addition to the rows yielded."""
        return self.file.held_of(self.number, names)

    def read(self, names: Sequence[str], size: int) -> Iterator[list[pa.ChunkedArray]]:
        """Yield some columns of the group, `size` rows at a time."""
        self.table.require(self.file, self.folders, names)
        own = [name for name in names if name in self.file.names]
        rows = 0
        for batch in self.file.read_group(self.number, own or self.file.names[:1], size):
            n, rows = len(batch[0]), rows + len(batch[0])
            data = dict(zip(own, batch, strict=False))
            yield [
                self.table.in_common_type(name, data[name], self.file)
                if name in data
                else self.table.folder_column(name, self.folders[name], n)
                for name in names
            ]
        if rows != self.n_rows:
            raise FileFormatError(
                f"{self.file.path} had {self.n_rows} rows in group {self.number} and now has {rows}: the "
                "file changed while it was read. Try again when it is complete."
            )


def _folder_values(path: str, root: str) -> dict[str, str | None]:
    parts = Path(os.path.relpath(path, root or ".")).parts[:-1]
    pairs = [part.split("=", 1) for part in parts if "=" in part]
    return {key: None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value) for key, value in pairs}


def _constant(value: str | None, n_rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([_repeated(from_texts([value]), n_rows)])


def _repeated(value: pa.Array, n_rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(from_numpy(np.zeros(n_rows, dtype=np.int8)), value)


def read_integers(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text as numbers if all are canonical integers, with or without a final .0; otherwise unchanged.

    The type is int64; if any value ends in .0, float64, or a decimal if float64 would not be exact, so that it can be
    reported. The codes of a dictionary stand for int64 in both cases. "007" is not canonical, and keeps the column
    text, so that different texts never become one id, except "7" and "7.0".
    """
    if pa.types.is_dictionary(data.type):
        values = pa.chunked_array([chunk.dictionary for chunk in data.chunks], data.type.value_type)
        numbers = read_integers(values)
        if numbers is values:
            return data
        found, starts = (
            numbers.cast(pa.int64()),
            accumulate((len(c.dictionary) for c in data.chunks), initial=0),
        )
        return pa.chunked_array(
            [
                pa.DictionaryArray.from_arrays(c.indices, combined(found.slice(start, len(c.dictionary))))
                for c, start in zip(data.chunks, starts, strict=False)
            ]
        )
    if data.null_count == len(data):
        return data
    if (numbers := _cast(data, pa.int64())) is not None:
        return numbers if numbers.cast(data.type).equals(data) else data
    if _cast(data, pa.float64()) is None:  # most texts fail this test in their first row
        return data
    texts = pc.replace_substring_regex(data, WHOLE, r"\1")
    numbers = _cast(texts, pa.int64())
    if numbers is None or not numbers.cast(data.type).equals(texts):
        return data
    digits = pc.max(pc.utf8_length(texts)).as_py()
    return numbers.cast(pa.float64() if digits <= EXACT_DIGITS else pa.decimal128(19, 0))


def _cast(data: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    try:
        return data.cast(kind)
    except pa.ArrowException:
        return None


#: Rows per batch, where the source lets us choose.
BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class Stream:
    """A table that can be read only once: its columns, and a function that yields batches of some of them."""

    schema: pa.Schema
    batches: Callable[[list[str]], Iterable[pa.RecordBatch]]

    def without_rows(self, where: str) -> Source:
        """Return a table with the stream's columns but no rows."""
        return of_arrow(no_rows(self.schema), where)


def open_stream(source: Any) -> Stream | None:
    """Return a table that can be streamed as a stream; None if it is in memory or not a table.

    Streams are record-batch readers, Arrow data sets, DuckDB relations, and any other object that exports an Arrow
    stream and has no length.
    """
    if is_dataset(source):
        return Stream(source.schema, partial(_scan, source))
    if isinstance(source, type):
        return None
    result = unwrapped(source)
    # DuckDB keeps one open result at a time, so it is opened only when read
    if (schema := relation_schema(result)) is not None:
        return Stream(
            schema, lambda names: (batch.select(names) for batch in arrow_reader(result, BATCH_ROWS))
        )
    # a DuckDB result has a length, but its rows are not fetched yet
    if (reader := arrow_reader(result, BATCH_ROWS)) is not None:
        source = reader
    if hasattr(source, "__len__") or not hasattr(source, "__arrow_c_stream__"):
        return None
    if not isinstance(source, pa.RecordBatchReader):
        try:
            with naming_faults_of(source):
                source = pa.RecordBatchReader.from_stream(source)
        except pa.ArrowInvalid:  # a column, not a table
            return None
    return Stream(source.schema, lambda names: (batch.select(names) for batch in source))


def _scan(dataset: Any, names: list[str]) -> Iterator[pa.RecordBatch]:
    with reading("An Arrow data set", "a table"):
        yield from dataset.to_batches(
            columns=names, batch_size=BATCH_ROWS, batch_readahead=1, fragment_readahead=1
        )


def _columns_of(dataset: Any, where: str, names: Sequence[str]) -> list[pa.ChunkedArray]:
    with reading(f"The Arrow data set of {where}", "a table"):
        return dataset.to_table(columns=list(dict.fromkeys(names))).select(names).columns


@dataclass(frozen=True)
class Piece:
    """Consecutive rows in the spill file: offset, number of bytes, and number of rows."""

    at: int
    n_bytes: int
    n_rows: int


class Spooled(Source):
    """The used columns of a stream, spilled to disk in pieces that are memory-mapped when read."""

    def __init__(self, schema: pa.Schema, where: str, spill: Spill) -> None:
        super().__init__(schema.names, where, self._count, self._columns, type_of=self._kind)
        self._schema, self._spill = schema, spill
        self.pieces: list[Piece] = []

    def _count(self) -> int:
        return sum(piece.n_rows for piece in self.pieces)

    def _kind(self, name: str) -> pa.DataType:
        return plain(self._empty([name]).column(0)).type

    def _read_piece(self, piece: Piece, names: Sequence[str]) -> list[pa.ChunkedArray]:
        data = self._spill.map(piece.at, piece.n_bytes, np.dtype(np.uint8))
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            return reader.read_all().select(names).columns

    def _empty(self, names: Sequence[str]) -> pa.Table:
        return no_rows(self._schema).select(names)

    def _columns(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        found = [self._read_piece(piece, names) for piece in self.pieces]
        found = found or [[plain(column) for column in self._empty(names).columns]]
        return [pa.chunked_array([c for part in parts for c in part.chunks], parts[0].type)
                for parts in zip(*found, strict=True)]  # fmt: skip

    def scan(self, size: int = BLOCK_ROWS, names: Sequence[str] | None = None) -> list[Stretch[Source]]:
        """Return a stretch for each spilled piece, which has the rows of one block."""
        starts = accumulate((piece.n_rows for piece in self.pieces), initial=0)
        found = [
            one_block(self.block(start, piece.n_rows, partial(self._read_piece, piece)))
            for start, piece in zip(starts, self.pieces, strict=False)
        ]
        return found or super().scan(size)


def columns_used(table: Source, use: Callable[[Source], Any], others: Iterable[str] = ()) -> list[str]:
    """Return the columns that a function uses of a table's blocks, and `others`; raise if one is missing."""
    used: dict[str, None] = {}

    def read(names: Sequence[str]) -> list[pa.ChunkedArray]:
        used.update(dict.fromkeys(names))
        return [pa.chunked_array([pa.nulls(0, table.type_of(name))]) for name in names]

    use(table.block(0, 0, read))
    return list(dict.fromkeys((*used, *others)))


def spool(
    stream: Stream, where: str, use: Callable[[Source], Any], spill: Spill, size: int, others: Iterable[str]
) -> Source:
    """Read a stream to its end, and write the columns that are used to disk.

    Errors of the stream propagate, with a note of the position. `use` will be applied to each block; it is first
    applied to an empty one, which shows the columns it uses besides `others`, and raises if the table lacks one. The
    spill file must not be shared.
    """
    names = columns_used(stream.without_rows(where), use, others)
    rows, pages = Spooled(stream.schema, where, spill), Pages()
    for table in in_blocks(_with_position(stream.batches(names), where), size, partial(block_rows, size)):
        for name, column in zip(table.column_names, table.columns, strict=True):
            if any(invalid_codes(chunk).any() for chunk in column.chunks):
                require_valid(column, f"column {name!r} of {where}")  # raises
        whole = pa.table([plain(column) for column in table.columns], names=table.column_names)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, whole.schema) as writer:
            writer.write_table(whole.combine_chunks())
        data = np.frombuffer(sink.getvalue(), np.uint8)
        spill.require_free(data.size)
        pages.empty(data.size, data.dtype)[:] = data
        rows.pieces.append(Piece(spill.write(pages.first(data.size)), data.size, table.num_rows))
    return rows


def _with_position(batches: Iterable[pa.RecordBatch], where: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a stream; errors get a note of how many rows were read."""
    n_rows = 0
    try:
        for batch in batches:
            yield batch
            n_rows += batch.num_rows
    except Exception as error:
        error.add_note(f"It was raised by the reader of {where}, after {n_rows:,} rows.")
        raise


#: Bytes per row that are usual. Wider rows, such as those with text, come in smaller blocks,
USUAL_WIDTH = 24
#: down to an eighth of the usual rows, and beyond that with this many bytes per row of a usual block.
MOST_WIDTH = 64


def block_rows(usual: int, width: float) -> int:
    """Return the number of rows in a block of rows of this width (in bytes); `usual` is the number for narrow rows."""
    least = min(usual // 8, int(usual * MOST_WIDTH / max(1.0, width)))
    return max(1, least, int(usual * min(1.0, USUAL_WIDTH / max(1.0, width))))


#: Bytes per row of a usual block that concurrently read row groups may hold besides blocks, e.g. in dictionaries.
HELD_WIDTH = 256
#: Memory limit of a single row group: this many bytes, plus this many per row of a usual block.
ROOM, ROOM_WIDTH = 64 << 20, 256


def _require_room(group: Group, held: dict[str, int], usual: int) -> None:
    """Raise if reading a row group would exceed the memory limit, which allows 1 KiB per row of a `usual` block."""
    most = ROOM + usual * ROOM_WIDTH
    if sum(held.values()) <= most or usual >= BLOCK_ROWS:
        return
    name = max(held, key=lambda name: held[name])
    least = ((sum(held.values()) - ROOM) // ROOM_WIDTH >> 10) + 1
    what, unit, smaller = group.file.held
    raise OptionError(
        f"column {name!r} of {group.table.where} has {what} of about {held[name] >> 20} MiB per {unit}, "
        f"which must be held in memory while reading. Raise memory_limit to at least {least} MiB, or write "
        f"the file in smaller {smaller}"
    )


def _blocks_of(
    group: Group, first_row: int, size: int, holding: Callable[[], AbstractContextManager[None]]
) -> Iterator[Source]:
    """Yield the blocks of a row group; each set of columns must be read from all blocks in turn, or from none."""
    batches: dict[tuple[str, ...], Iterator[list[pa.ChunkedArray]]] = {}

    def read(first: bool, last: bool, names: Sequence[str]) -> list[pa.ChunkedArray]:
        if tuple(names) not in batches:
            assert first, "a set of columns must be read from every block or from none"
            batches[tuple(names)] = group.read(names, size)
        found = next(batches[tuple(names)])
        if last:
            # resume the reader, which then checks that the file has not changed
            next(batches[tuple(names)], None)
        return found

    with holding():
        try:
            for start in range(0, group.n_rows, size):  # lazily: a damaged file may claim any number of rows
                stop = min(start + size, group.n_rows)
                reader = partial(read, start == 0, stop == group.n_rows)
                yield group.table.block(first_row + start, stop - start, reader)
        finally:
            batches.clear()  # a block that outlives the loop must not keep a file open


def as_rows(source: Any, where: str) -> Source | None:
    """Return a path, frame, Arrow exporter, data set or dict of arrays as the rows of a table; None for anything else.

    `where` is the table's name in messages.
    """
    if isinstance(source, (np.ndarray, pa.Array, pa.ChunkedArray, Column)):
        return None
    source = listed_paths(source)
    if type(source) is list:
        return None
    if is_path(source):
        return open_files(source)
    source = unwrapped(source)
    if isinstance(source, Source):
        return source
    if isinstance(source, type) or is_sparse(source):
        refuse_unread(source, where)
    if isinstance(source, pa.Table):
        return of_arrow(source, where)
    if is_pandas(source, "DataFrame"):
        # a shallow copy, as attributes are read later and the frame may change
        return of_pandas(source.copy(deep=False), where)
    if isinstance(source, Mapping):
        return _mapping_rows(source, where)
    if is_pandas(source, "Series", "Index") or is_one_column(source):
        return None
    if is_dataset(source):
        names, read = source.schema.names, partial(_columns_of, source, where)
        kinds = dict(zip(names, source.schema.types, strict=True))
        return Source(names, where, source.count_rows, read, type_of=kinds.__getitem__)
    if isinstance(source, pa.RecordBatchReader):
        refuse_deep(source.schema, where)
        return of_arrow(source.read_all(), where)
    try:
        streamed = from_stream(source)
    except pa.ArrowException as error:  # an unsupported type, such as 128-bit integers of Polars
        raise IdTypeError(
            f"{where} cannot be read as Arrow: {error}. Cast columns of unusual types to int64 or to string."
        ) from error
    if streamed is None and (table := arrow_table(source)) is not None:
        return of_arrow(table, where)
    if streamed is None:
        refuse_unread(source, where)
    if streamed is None or not pa.types.is_struct(streamed.type):
        return None
    return of_arrow(pa.Table.from_struct_array(streamed), where)


def _mapping_rows(source: Mapping[Any, Any], where: str) -> Source:
    lengths = {}
    for name, values in source.items():
        if not is_array(values):
            raise ColumnError(
                f"A dict given as {where} must map column names to arrays or lists, but {name!r} is neither."
            )
        lengths[str(name)] = len(values)
    if len(set(lengths.values())) > 1:
        raise ColumnError(
            f"The columns of {where} differ in length: "
            + ", ".join(f"{name} has {length}" for name, length in lengths.items())
            + "."
        )
    refuse_other_indexes(source.values(), where)
    return of_arrays(source, next(iter(lengths.values()), 0), where)


def read_table(source: Any, columns: list[str] | None = None) -> pa.Table:
    """Read a table, or some of its columns, from any source; Arrow data are not copied.

    Examples
    --------
    >>> read_table({"item": ["a", "b"], "cluster": [1, 1]}, ["cluster"]).num_rows
    2
    """
    rows = as_rows(source, "the table")
    if rows is None:
        raise ColumnError(
            "Expected a table (a path, a data frame, an Arrow table or a dict of columns), not "
            f"{type(source).__name__}."
        )
    names = list(rows.names) if columns is None else columns
    return pa.table(rows.columns(names), names=names)


#: Text files below this size need little memory.
SMALL = 2 << 20
#: Bytes per CSV field, further bytes per field used in addition to twice its text, and the number of columns used.
FIELD, USED, COLUMNS_USED = 16, 48, 4
#: Bytes of compressed text decompressed to estimate its full length, assuming that the rest compresses alike.
MEASURED, AT_ONCE = 1 << 30, 1 << 20


def bytes_of_text(source: Any) -> int:
    """Return the approximate number of bytes that a source in text files occupies in memory; 0 for other sources."""
    if not is_path(source):
        return 0
    endings = (*(end for form in TEXT for end in SUFFIXES[form]), *PLAIN_TEXT)
    found, _ = files_of(source)
    texts = (each for each in found if each.path.lower().endswith(endings) or each.place.unnamed)
    return sum(_of_file(*each) for each in texts if sniff(each.path, each.place) in TEXT)


def _of_file(place: Place, path: str) -> int:
    size = place.state(path)[1]
    packed = path.lower().endswith(COMPRESSED[1:])
    if size < SMALL and not packed:
        return 0
    with reading(path, "text"):
        with place.open_text(path) as text:
            head = text.read(1 << 16)
        lines = head.splitlines() or [b""]
        rows = size * len(lines) // max(1, len(head))
        if packed:
            size, rows = _text_size(place, path, size)
    if size < SMALL:
        return 0
    columns = 1 + max(lines[0].count(mark.encode()) for mark in DELIMITERS)
    return int(2 * size + rows * (FIELD * columns + USED * min(columns, COLUMNS_USED)))


def _text_size(place: Place, path: str, size: int) -> tuple[int, int]:
    """Return the estimated uncompressed bytes and lines of compressed text, which its file size does not bound."""
    n_bytes, n_lines = 0, 1
    with place.open(path) as file, pa.CompressedInputStream(file, pa.Codec.detect(path).name) as text:
        while n_bytes < MEASURED and (part := text.read(AT_ONCE)):
            n_bytes, n_lines = n_bytes + len(part), n_lines + part.count(b"\n")
        share = file.tell() / max(1, size) if n_bytes >= MEASURED else 1.0
    return int(n_bytes / share), int(n_lines / share)
