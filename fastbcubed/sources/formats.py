"""One file of a table: its format, its columns, its groups of rows (`files.open_files` chooses); faults are named."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any

import pyarrow as pa

from fastbcubed.errors import FastBCubedError, FileFormatError
from fastbcubed.sources.locations import LOCAL, Place

#: How text may be compressed, by the end of its name.
COMPRESSED = ("", ".gz", ".zst", ".bz2", ".lz4")
#: Suffixes by format, in the order in which a directory is searched.
SUFFIXES = {
    "Parquet": (".parquet", ".pq"),
    "Arrow IPC": (".arrow", ".feather", ".ipc", ".arrows"),
    "CSV": tuple(f"{name}{end}" for name in (".csv", ".tsv") for end in COMPRESSED),
    "JSON lines": tuple(f"{name}{end}" for name in (".jsonl", ".ndjson") for end in COMPRESSED),
}
#: Text of either kind, which its beginning tells; below a directory it may be a note.
PLAIN_TEXT = tuple(f".txt{end}" for end in COMPRESSED)
#: How the names of files end that hold tables.
ENDS = (*(end for ends in SUFFIXES.values() for end in ends), *PLAIN_TEXT)
#: Rows that a page of Parquet can have, and bytes that it takes at least.
PAGE_ROWS, PAGE_BYTES = 1 << 31, 16
_ERRORS = (
    pa.ArrowException,
    OSError,
    ValueError,
    ArithmeticError,
    MemoryError,
    LookupError,
    EOFError,
)


def sniff(path: str, place: Place = LOCAL) -> str:
    """Return the format of a file by its first and last bytes, that of text by its name."""
    if place is LOCAL:
        _refuse_pipe(path)
    with reading(path, "a table"), place.open(path) as file:
        size = file.size()
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
    elif place.unnamed or name.endswith(PLAIN_TEXT):
        return _form_of_text(path, place)
    elif form := next((form for form in ("CSV", "JSON lines") if name.endswith(SUFFIXES[form])), None):
        return form
    else:
        raise FileFormatError(
            f"{path} is not Parquet, Arrow IPC, CSV or JSON lines: it begins with {head[:4]!r}, Parquet with "
            f"b'PAR1'. Write it as Parquet; text files should be named *.csv, *.tsv, *.txt or *.jsonl."
        )
    raise FileFormatError(
        f"{path} is truncated: it begins with {expected} but ends with {tail[-len(expected) :]!r} "
        f"after {size:,} bytes. Write or copy it again."
    )


def _form_of_text(path: str, place: Place) -> str:
    """Return the format of text without a name: JSON lines begin with a brace."""
    with reading(path, "text"), place.open_text(path) as text:
        head = text.read(1 << 10).removeprefix(b"\xef\xbb\xbf").lstrip()
    return "JSON lines" if head[:1] == b"{" else "CSV"


def _refuse_pipe(path: str) -> None:
    """Raise for what can be read only once; opening it could wait for ever."""
    try:
        mode = os.stat(path).st_mode
    except OSError:  # whoever opens it says so
        return
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode):
        raise FileFormatError(
            f"{path} is a pipe or a device, but a table is read more than once, so it must be a file. "
            "Write it to a file first."
        )


@contextmanager
def reading(path: str, form: str) -> Iterator[None]:
    """Turn whatever a reader raises into one error that names the file."""
    try:
        yield
    except FastBCubedError:
        raise
    except _ERRORS as error:
        cause = str(error).strip().rstrip(".").splitlines()
        raise FileFormatError(
            f"{path} cannot be read as {form}: {cause[0] if cause else type(error).__name__}. {_advice(error)}"
        ) from error


def _advice(error: BaseException) -> str:
    """Return what to do about an error of a reader."""
    if isinstance(error, UnicodeEncodeError):
        return "The path has to be UTF-8: rename the file, or set the locale that it is typed in to one of UTF-8."
    if isinstance(error, FileNotFoundError):
        return "It was there before. A relative path is looked for where the process is now."
    if "invalid UTF8" in str(error):
        return "Text has to be UTF-8: write the file so, or convert it, as with iconv -f latin1 -t utf-8."
    return "If the file exists and may be read, it is damaged: write or copy it again."


class ParquetFile:
    """One Parquet file: names and row count at once, columns when asked for, checksums verified."""

    form = "Parquet"
    passing = False

    def __init__(self, path: str, place: Place = LOCAL) -> None:
        self.path, self._place = path, place
        self._state = place.state(path)
        with self._open() as file:
            self._metadata = file.metadata
            self.schema: pa.Schema = file.schema_arrow
            self.names = self.schema.names
            self.n_rows: int | None = file.metadata.num_rows
        self._require_possible(file.metadata.num_rows)

    def _require_possible(self, n_rows: int) -> None:
        """Raise for a number of rows that no file of this size has; whatever is made for each row would be endless."""
        sizes, n_bytes = self.group_sizes(), self._state[1]
        too_many = n_bytes and n_rows > n_bytes // PAGE_BYTES * PAGE_ROWS  # some places do not know sizes
        if too_many or min([n_rows, *sizes]) < 0 or sum(sizes) != n_rows:
            raise FileFormatError(
                f"{self.path} claims {n_rows:,} rows in {n_bytes:,} bytes, and {sum(sizes):,} in its row groups, which "
                "is impossible. It is damaged: write or copy it again."
            )

    @contextmanager
    def _open(self, *, passing: bool = False, **options: Any) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with (
            reading(self.path, self.form),
            self._place.open(self.path, passing=passing) as source,
            pq.ParquetFile(source, page_checksum_verification=True, **options) as file,
        ):
            yield file

    @property
    def bytes_in_memory(self) -> int:
        """The bytes that all columns take when they are read, about."""
        return sum(self._metadata.row_group(k).total_byte_size for k in range(self._metadata.num_row_groups))

    def bytes_of(self, names: Sequence[str]) -> int:
        """Return the bytes that some columns take in the file when they are not compressed."""
        groups = map(self._metadata.row_group, range(self._metadata.num_row_groups))
        chunks = (group.column(k) for group in groups for k in range(group.num_columns))
        return sum(c.total_uncompressed_size for c in chunks if c.path_in_schema.split(".")[0] in names)

    def group_sizes(self) -> list[int]:
        """Return the number of rows of each row group."""
        return [self._metadata.row_group(k).num_rows for k in range(self._metadata.num_row_groups)]

    def held_of(self, group: int, names: Sequence[str]) -> int:
        """Return the bytes that are held while a row group is read: dictionaries, compressed, not, and taken apart."""
        chunks = map(self._metadata.row_group(group).column, range(self._metadata.num_columns))
        return sum(
            (chunk.data_page_offset - chunk.dictionary_page_offset)
            * (1 + 2 * chunk.total_uncompressed_size // max(1, chunk.total_compressed_size))
            for chunk in chunks
            if chunk.path_in_schema.split(".")[0] in names and chunk.dictionary_page_offset
        )

    def read_group(self, group: int, names: Sequence[str], size: int) -> Iterator[list[pa.ChunkedArray]]:
        """Yield columns of a row group, `size` rows at a time; what is read ahead is bounded.

        Dictionaries are read as the values that they stand for, of which each batch gets its own: it would have all.
        """
        kinds = {name: self.schema.field(name).type for name in names}
        coded = [name for name, kind in kinds.items() if pa.types.is_dictionary(kind)]
        rest = [name for name in kinds if name not in coded]
        batches: list[Any] = []
        with ExitStack() as stack:
            for columns, metadata in ((rest, self._metadata), (coded, self._without_arrow)):
                if columns:
                    options = {"buffer_size": self._place.read_ahead, "pre_buffer": False}
                    file = stack.enter_context(self._open(passing=self.passing, metadata=metadata, **options))
                    batches.append(file.iter_batches(size, [group], columns, use_threads=False))
            for parts in zip(*batches, strict=True):
                found = {name: part.column(name) for part in parts for name in part.schema.names}
                for name in coded:
                    found[name] = _encoded(found[name], kinds[name])
                yield [pa.chunked_array([found[name]]) for name in names]
        _require_unchanged(self._place, self.path, self._state)

    @cached_property
    def _without_arrow(self) -> Any:
        """What the file says of itself, but not which types Arrow gave its columns."""
        import pyarrow.parquet as pq

        written = io.BytesIO()
        self._metadata.write_metadata_file(written)
        return pq.read_metadata(io.BytesIO(written.getvalue().replace(b"ARROW:schema", b"arrow.schema")))

    def read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Read columns."""
        with self._open() as file:
            table = file.read(columns=list(dict.fromkeys(names)))
        _require_unchanged(self._place, self.path, self._state)
        return [table.column(name) for name in names]


def _encoded(values: pa.Array, kind: pa.DictionaryType) -> pa.DictionaryArray:
    """Return values as a dictionary of this type, which has none but these."""
    found = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        found.indices.cast(kind.index_type), found.dictionary.cast(kind.value_type), ordered=kind.ordered
    )


class IpcFile:
    """One Arrow IPC file or stream; what is read is validated, as a damaged offset could crash."""

    form = "Arrow IPC"

    def __init__(self, path: str, place: Place = LOCAL) -> None:
        self.path, self._place = path, place
        self._state = place.state(path)
        self.n_rows: int | None = None
        with self._open() as reader:
            self.schema: pa.Schema = reader.schema
            self.names = self.schema.names

    @property
    def bytes_in_memory(self) -> int:
        """The bytes that all columns take when they are read, about."""
        return self._place.state(self.path)[1]

    def bytes_of(self, names: Sequence[str]) -> int:
        """Return the bytes that some columns take at most."""
        return self.bytes_in_memory

    def held_of(self, group: int, names: Sequence[str]) -> int:
        """Return the bytes that are held while the file is read, besides batches; it does not say."""
        return 0

    def group_sizes(self) -> list[int]:
        """Return the number of rows of the file, which is read as one group."""
        if not self.names:
            return []
        with self._open([0]) as reader:
            return [sum(batch.num_rows for batch in _batches(reader))]

    def read_group(self, group: int, names: Sequence[str], size: int) -> Iterator[list[pa.ChunkedArray]]:
        """Yield columns of the file, `size` rows at a time."""
        at = sorted({self.names.index(name) for name in names})
        with self._open(at) as reader:
            for table in in_blocks(_batches(reader), size):
                yield [table.column(name) for name in names]
        _require_unchanged(self._place, self.path, self._state)

    @contextmanager
    def _open(self, fields: list[int] | None = None) -> Iterator[Any]:
        import pyarrow.ipc

        options = pyarrow.ipc.IpcReadOptions(included_fields=fields or [], ensure_native_endian=True)
        with reading(self.path, self.form), self._place.open(self.path) as file:
            stream = sniff(self.path, self._place) == "Arrow IPC stream"
            opener = pyarrow.ipc.open_stream if stream else pyarrow.ipc.open_file
            yield opener(file, options=options)

    def read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Read columns."""
        with self._open([self.names.index(name) for name in names]) as reader:
            table = reader.read_all()
            table.validate(full=True)
        _require_unchanged(self._place, self.path, self._state)
        return [table.column(name) for name in names]


def _batches(reader: Any) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of an IPC file or stream."""
    if hasattr(reader, "num_record_batches"):
        batches = map(reader.get_batch, range(reader.num_record_batches))
    else:
        batches = iter(reader)
    for batch in batches:
        batch.validate(full=True)
        yield batch


def in_blocks(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """Yield the rows of record batches, `size` at a time."""
    waiting: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            n_rows += batch.num_rows
        while n_rows >= size:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, size)
            waiting = table.slice(size).to_batches()
            n_rows -= size
    if waiting:
        yield pa.Table.from_batches(waiting)


def _require_unchanged(place: Place, path: str, state: tuple[int, int, int]) -> None:
    if place.state(path) != state:
        raise FileFormatError(
            f"{path} changed since its first rows were read. When it is complete, evaluate what is there now."
        )
