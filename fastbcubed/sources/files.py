"""Paths, globs, directories of Parquet, Arrow IPC, CSV → rows; a fault is a FileFormatError."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, FastBCubedError, FileFormatError
from fastbcubed.sources.arrays import from_numpy, from_texts, join_pieces
from fastbcubed.sources.tables import BaseRows, Rows

__all__ = ["FileRows", "find_files", "open_files"]

#: Suffixes by format, in the order in which a directory is searched.
SUFFIXES = {
    "Parquet": (".parquet", ".pq"),
    "Arrow IPC": (".arrow", ".feather", ".ipc", ".arrows"),
    "CSV": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
}
_ERRORS = (
    pa.ArrowException,
    OSError,
    ValueError,
    ArithmeticError,
    MemoryError,
    LookupError,
    EOFError,
)


def open_files(source: Any) -> Rows:
    """Open the table that lies in one file, in the files of a glob, or below a directory.

    Only the beginning and end of the files are read; columns are read when asked for.

    Parameters
    ----------
    source : str or os.PathLike
        A path or a glob. Directories are searched for Parquet, then Arrow IPC, then CSV; names that
        begin with a dot or underscore are skipped; `key=value` folders become columns.
    """
    text = os.fspath(source)
    paths = find_files(text)
    formats = {path: sniff(path) for path in paths}
    if len(set(formats.values())) > 1:
        found = ", ".join(f"{path} is {name}" for path, name in list(formats.items())[:3])
        raise FileFormatError(f"{text} mixes formats ({found}). Read one format at a time.")
    form = formats[paths[0]]
    files: list[ParquetFile | IpcFile | CsvFile] = [
        ParquetFile(path) if form == "Parquet" else CsvFile(path) if form == "CSV" else IpcFile(path)
        for path in paths
    ]
    root = text
    while not os.path.isdir(root):  # the folder before the file name or the pattern
        root = os.path.dirname(root) or "."
    return FileRows(files, text, root)


def find_files(text: str) -> list[str]:
    """Return the files that a path, glob or directory stands for, sorted.

    Parameters
    ----------
    text : str
        Path, glob or directory.
    """
    if os.path.isdir(text):
        files = sorted(
            os.path.join(folder, name)
            for folder, folders, names in os.walk(text)
            if not _hidden(os.path.relpath(folder, text))
            for name in names
            if not _hidden(name)
        )
        for suffixes in SUFFIXES.values():
            chosen = [path for path in files if path.lower().endswith(suffixes)]
            if chosen:
                return chosen
        found = f"only {', '.join(map(os.path.basename, files[:3]))}" if files else "no files"
        raise FileFormatError(
            f"Directory {text} has {found}; expected files named *.parquet (or .arrow, .csv)."
        )
    if os.path.exists(text):
        return [text]
    if any(letter in text for letter in "*?["):
        chosen = sorted(filter(os.path.isfile, glob.glob(text, recursive=True)))
        if not chosen:
            raise FileFormatError(f"No file matches {text}. Check the pattern and the folder.")
        return chosen
    if "://" in text:
        raise FileFormatError(f"{text} is a URL; only local files are read. Download it first.")
    folder = os.path.dirname(text) or "."
    hint = (
        "Check the path; the name of a column of one table needs table=."
        if os.path.isdir(folder)
        else f"There is no folder {folder} either."
    )
    raise FileFormatError(f"There is no file {text}. {hint}")


def _hidden(path: str) -> bool:
    return any(part[:1] in "._" and part != "." and "=" not in part for part in Path(path).parts)


def sniff(path: str) -> str:
    """Return the format of a file by its first and last bytes, CSV by its name.

    Parameters
    ----------
    path : str
        The file.
    """
    with _reading(path, "a table"):
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            head = file.read(8)
            file.seek(max(0, size - 6))
            tail = file.read()
    name = path.lower()
    if size == 0:
        raise FileFormatError(f"{path} is empty (0 bytes). Was it written to the end?")
    expected = "PAR1"
    if head[:4] == b"PAR1":
        if tail[-4:] == b"PAR1" and size >= 12:
            return "Parquet"
    elif head[:6] == b"ARROW1":
        expected = "ARROW1"
        if tail == b"ARROW1" and size >= 24:
            return "Arrow IPC"
    elif head[:4] == b"\xff\xff\xff\xff":
        return "Arrow IPC stream"
    elif name.endswith(SUFFIXES["CSV"]):
        return "CSV"
    else:
        raise FileFormatError(
            f"{path} is not Parquet, Arrow IPC or CSV: it begins with {head[:4]!r}, Parquet with "
            f"b'PAR1'. Write it as Parquet; text files should be named *.csv or *.tsv."
        )
    raise FileFormatError(
        f"{path} is truncated: it begins with {expected} but ends with {tail[-len(expected) :]!r} "
        f"after {size:,} bytes. Write or copy it again."
    )


@contextmanager
def _reading(path: str, form: str) -> Iterator[None]:
    """Turn whatever a reader raises into one error that names the file."""
    try:
        yield
    except FastBCubedError:
        raise
    except _ERRORS as error:
        cause = str(error).strip().rstrip(".").splitlines()
        raise FileFormatError(
            f"{path} cannot be read as {form}: {cause[0] if cause else type(error).__name__}. "
            "If the file exists and may be read, it is damaged: write or copy it again."
        ) from error


class ParquetFile:
    """One Parquet file: names and row count at once, columns when asked for, checksums verified."""

    form = "Parquet"

    def __init__(self, path: str) -> None:
        self.path = path
        with self._open() as file:
            self.names = file.schema_arrow.names
            self.n_rows: int | None = file.metadata.num_rows

    @contextmanager
    def _open(self) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with (
            _reading(self.path, self.form),
            pq.ParquetFile(self.path, page_checksum_verification=True) as file,
        ):
            yield file

    def read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Read columns."""
        with self._open() as file:
            table = file.read(columns=list(dict.fromkeys(names)))
            return [table.column(name) for name in names]


class IpcFile:
    """One Arrow IPC file or stream; what is read is validated, as a damaged offset could crash."""

    form = "Arrow IPC"

    def __init__(self, path: str) -> None:
        self.path = path
        self.n_rows: int | None = None
        with self._open() as reader:
            self.names = reader.schema.names

    @contextmanager
    def _open(self, fields: list[int] | None = None) -> Iterator[Any]:
        import pyarrow.ipc

        options = pyarrow.ipc.IpcReadOptions(included_fields=fields or [], ensure_native_endian=True)
        with _reading(self.path, self.form), pa.OSFile(self.path) as file:
            stream = sniff(self.path) == "Arrow IPC stream"
            opener = pyarrow.ipc.open_stream if stream else pyarrow.ipc.open_file
            yield opener(file, options=options)

    def read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Read columns."""
        with self._open([self.names.index(name) for name in names]) as reader:
            table = reader.read_all()
            table.validate(full=True)
            return [table.column(name) for name in names]


class CsvFile:
    """One CSV file with a header, read as text at once."""

    form = "CSV"

    def __init__(self, path: str) -> None:
        import pyarrow.csv

        self.path = path
        delimiter = "\t" if ".tsv" in path.lower() else ","
        parse = pyarrow.csv.ParseOptions(delimiter=delimiter)
        with _reading(path, self.form):
            with pyarrow.csv.open_csv(path, parse_options=parse) as reader:
                types = dict.fromkeys(reader.schema.names, pa.string())
            convert = pyarrow.csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            self._table = pyarrow.csv.read_csv(path, parse_options=parse, convert_options=convert)
        self.names = self._table.column_names
        self.n_rows: int | None = self._table.num_rows

    def read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return columns as text."""
        return [self._table.column(name) for name in names]


class FileRows(BaseRows):
    """The rows of one or more files of one format, one after the other.

    Parameters
    ----------
    files : sequence of ParquetFile, IpcFile or CsvFile
        The files; all have the columns of the first.
    where : str
        The path as it was given.
    root : str
        The folder below which `key=value` folders count as columns.

    Attributes
    ----------
    paths : list of str
        The files, in the order of the rows.
    """

    def __init__(self, files: Sequence[ParquetFile | IpcFile | CsvFile], where: str, root: str) -> None:
        self._files = list(files)
        self.paths = [file.path for file in files]
        self._folders = [_folder_values(file.path, root) for file in files]
        own = files[0].names
        super().__init__([*own, *(key for key in self._folders[0] if key not in own)], where)
        typed = () if isinstance(files[0], CsvFile) else own
        self.untyped = frozenset(self._names).difference(typed)

    def __len__(self) -> int:
        for file in self._files:
            if file.n_rows is None:
                file.n_rows = len(file.read(file.names[:1])[0]) if file.names else 0
        return sum(file.n_rows or 0 for file in self._files)

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        own = [name for name in names if name in self._files[0].names]
        pieces: dict[str, list[pa.ChunkedArray]] = {name: [] for name in names}
        for file, folders in zip(self._files, self._folders, strict=True):
            absent = [name for name in own if name not in file.names]
            absent += [name for name in names if name not in own and name not in folders]
            if absent:
                raise ColumnError(
                    f"{file.path} has no column {absent[0]!r}, which {self.paths[0]} has; "
                    f"its columns are {', '.join(file.names)}."
                )
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


def _folder_values(path: str, root: str) -> dict[str, str | None]:
    parts = Path(os.path.relpath(path, root or ".")).parts[:-1]
    pairs = [part.split("=", 1) for part in parts if "=" in part]
    return {key: None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value) for key, value in pairs}


def _constant(value: str | None, n_rows: int) -> pa.ChunkedArray:
    codes = from_numpy(np.zeros(n_rows, dtype=np.int8))
    return pa.chunked_array([pa.DictionaryArray.from_arrays(codes, from_texts([value]))])


def read_integers(data: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text as int64 if all are whole numbers in usual form, else as it is.

    "007" keeps the column text, so that no two different texts become one id.

    Parameters
    ----------
    data : pyarrow.ChunkedArray of strings
        Column of a CSV file, or of folder names.
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
    try:
        numbers = data.cast(pa.int64())
    except pa.ArrowException:
        return data
    return numbers if numbers.cast(data.type).equals(data) else data
