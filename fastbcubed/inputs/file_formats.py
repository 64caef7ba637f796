"""One file of a table (Parquet, Arrow IPC, CSV or JSON): its columns and row groups."""

from __future__ import annotations

import io
import json
import math
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from itertools import islice
from typing import Any

import pyarrow as pa

from fastbcubed.errors import (
    MORE_MEMORY,
    FastBCubedError,
    FileFormatError,
    OutOfMemoryError,
    first_few,
    lacks_memory,
)
from fastbcubed.inputs import arrow_compute as pc
from fastbcubed.inputs.json_depth import BLOCK, Nesting
from fastbcubed.inputs.locations import LOCAL, Place

#: Suffixes of compressed text; the first is that of uncompressed text.
COMPRESSED = ("", ".gz", ".zst", ".bz2", ".lz4")
#: Suffixes by format, in the order in which formats are looked for in a directory.
SUFFIXES = {
    "Parquet": (".parquet", ".pq"),
    "Arrow IPC": (".arrow", ".feather", ".ipc", ".arrows"),
    "CSV": tuple(f"{name}{end}" for name in (".csv", ".tsv") for end in COMPRESSED),
    "JSON lines": tuple(f"{name}{end}" for name in (".jsonl", ".ndjson") for end in COMPRESSED),
    "JSON": tuple(f".json{end}" for end in COMPRESSED),
}
#: The formats of text.
TEXT = ("CSV", "JSON lines", "JSON")
#: Suffixes of CSV or JSON recognised by content; below a directory such files may be notes and are not read.
PLAIN_TEXT = tuple(f".txt{end}" for end in COMPRESSED)
#: Suffixes of table files.
ENDS = (*(end for ends in SUFFIXES.values() for end in ends), *PLAIN_TEXT)
#: Maximum rows and minimum bytes of a Parquet page.
PAGE_ROWS, PAGE_BYTES = 1 << 31, 16
#: Maximum bytes, as compressed, of a small dictionary in Parquet, and of each code of such a column.
SMALL_DICTIONARY, CODE_BYTES = 1 << 16, 4
#: Maximum number of row groups of Parquet that one call reads.
GROUPS_AT_ONCE = 64
#: Bytes per row from which files are read in batches, bytes per batch, and rows sampled for the width of rows.
WIDE, BYTES_AT_ONCE, FIRST_ROWS = 1 << 12, 1 << 26, 64
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
    """Return the format of a file from its first and last bytes, or of text from its name."""
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
    elif form := next((form for form in TEXT if name.endswith(SUFFIXES[form])), None):
        return form
    else:
        raise FileFormatError(
            f"{path} is not Parquet, Arrow IPC, CSV or JSON: it begins with {head[:4]!r}, but Parquet begins "
            f"with b'PAR1'. Write it as Parquet; text files should be named *.csv, *.tsv, *.txt, *.jsonl or *.json."
        )
    raise FileFormatError(
        f"{path} is truncated: it begins with {expected} but ends with {tail[-len(expected) :]!r} "
        f"after {size:,} bytes. Write or copy it again."
    )


def _form_of_text(path: str, place: Place) -> str:
    """Return the format of text whose name does not say it: JSON begins with a brace, or a bracket and a value."""
    with reading(path, "text"), place.open_text(path) as text:
        head = text.read(1 << 10).removeprefix(b"\xef\xbb\xbf").lstrip()
    return "JSON" if re.match(rb'\{|\[\s*[\[{"\d\]-]', head) else "CSV"


def _refuse_pipe(path: str) -> None:
    """Raise for a pipe or device, which can be read only once; opening it could block forever."""
    try:
        mode = os.stat(path).st_mode
    except OSError:  # reported when it is opened
        return
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode):
        raise FileFormatError(
            f"{path} is a pipe or a device, but a table is read more than once and must be a file. Write it "
            "to a file first."
        )


@contextmanager
def reading(path: str, form: str) -> Iterator[None]:
    """Turn any error of a reader into an error that names the file."""
    try:
        yield
    except FastBCubedError:
        raise
    except _ERRORS as error:
        cause = [*str(error).strip().rstrip(".").splitlines(), type(error).__name__][0]
        if lacks_memory(error):  # a damaged file may also claim to be large
            raise OutOfMemoryError(
                f"{path} cannot be read as {form} for lack of memory: {cause}. {MORE_MEMORY}. If the file is small, it "
                "is damaged: write or copy it again"
            ) from error
        raise FileFormatError(f"{path} cannot be read as {form}: {cause}. {_advice(error)}") from error


def _advice(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return "It existed before. A relative path is resolved against the current directory of the process."
    if "invalid UTF8" in str(error):
        return "Text must be UTF-8: write the file in UTF-8, or convert it, as with iconv -f latin1 -t utf-8."
    if "deeply nested" in str(error):
        return "Write the file without these columns: ids and weights must be plain values."
    return "If the file exists and is readable, it is damaged: write or copy it again."


class ParquetFile:
    """One Parquet file: names and row count are read at once, columns on demand, with checksums verified."""

    form = "Parquet"
    #: wording for messages: what reading holds in memory, per what unit of the file, and what to make smaller
    held = "dictionaries", "row group", "row groups, or the column as plain text"

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
        """Raise for a row count that a file of this size cannot have; looping over the rows would never end."""
        sizes, n_bytes = self.group_sizes(), self._state[1]
        # some file systems do not report sizes
        too_many = n_bytes and n_rows > n_bytes // PAGE_BYTES * PAGE_ROWS
        if too_many or min([n_rows, *sizes]) < 0 or sum(sizes) != n_rows:
            raise FileFormatError(
                f"{self.path} claims {n_rows:,} rows in {n_bytes:,} bytes, and {sum(sizes):,} in its row "
                "groups, which is impossible. The file is damaged: write or copy it again."
            )

    @contextmanager
    def _open(self, **options: Any) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with (
            reading(self.path, self.form),
            self._place.open(self.path) as source,
            pq.ParquetFile(source, page_checksum_verification=True, **options) as file,
        ):
            yield file

    @property
    def bytes_in_memory(self) -> int:
        """The approximate number of bytes of all columns in memory."""
        return sum(self._metadata.row_group(k).total_byte_size for k in range(self._metadata.num_row_groups))

    def bytes_of(self, names: Sequence[str]) -> int:
        """Return the number of uncompressed bytes of some columns in the file."""
        groups = map(self._metadata.row_group, range(self._metadata.num_row_groups))
        chunks = (group.column(k) for group in groups for k in range(group.num_columns))
        return sum(c.total_uncompressed_size for c in chunks if c.path_in_schema.split(".")[0] in names)

    def group_sizes(self) -> list[int]:
        """Return the number of rows of each row group."""
        return [self._metadata.row_group(k).num_rows for k in range(self._metadata.num_row_groups)]

    def held_of(self, group: int, names: Sequence[str]) -> int:
        """Return the bytes that a row group's dictionaries, compressed, plain and decoded, occupy while it is read."""
        return sum(
            size * (1 + 2 * chunk.total_uncompressed_size // max(1, chunk.total_compressed_size))
            for chunk, size in self._dictionaries(group, names)
        )

    def _dictionaries(self, group: int, names: Sequence[str]) -> Iterator[tuple[Any, int]]:
        """Yield the chunks of these columns in a row group that have a dictionary, and its compressed bytes."""
        for chunk in map(self._metadata.row_group(group).column, range(self._metadata.num_columns)):
            if chunk.path_in_schema.split(".")[0] in names and chunk.dictionary_page_offset:
                yield chunk, chunk.data_page_offset - chunk.dictionary_page_offset

    def read_group(self, group: int, names: Sequence[str], size: int) -> Iterator[list[pa.ChunkedArray]]:
        """Yield columns of a row group, `size` rows at a time, with bounded read-ahead.

        Dictionaries that are not small are decoded and rebuilt per batch; otherwise each batch would hold all of one.
        """
        kinds = {name: self.schema.field(name).type for name in names}
        coded = [name for name, kind in kinds.items() if pa.types.is_dictionary(kind)]
        if coded:  # rebuilding a small one takes eight times as long as reading it
            small = self._small_dictionaries(group, coded)
            coded = [name for name in coded if name not in small]
        rest = [name for name in kinds if name not in coded]
        batches: list[Any] = []
        with ExitStack() as stack:
            for columns, metadata in ((rest, self._metadata), (coded, self._without_arrow)):
                if columns:
                    options = {"buffer_size": self._place.read_ahead, "pre_buffer": False}
                    file = stack.enter_context(self._open(metadata=metadata, **options))
                    batches.append(file.iter_batches(size, [group], columns, use_threads=False))
            for parts in zip(*batches, strict=True):
                found = {name: part.column(name) for part in parts for name in part.schema.names}
                for name in coded:
                    found[name] = _encoded(found[name], kinds[name])
                yield [pa.chunked_array([found[name]]) for name in names]
        _require_unchanged(self._place, self.path, self._state)

    def _small_dictionaries(self, group: int, names: Sequence[str]) -> set[str]:
        """Return those of these columns that have a small dictionary in a row group, and little but codes otherwise."""
        return {
            chunk.path_in_schema
            for chunk, size in self._dictionaries(group, names)
            if 0 < size <= SMALL_DICTIONARY and chunk.total_uncompressed_size <= CODE_BYTES * chunk.num_values
        }

    @cached_property
    def _without_arrow(self) -> Any:
        """The file's metadata without its Arrow schema."""
        import pyarrow.parquet as pq

        written = io.BytesIO()
        self._metadata.write_metadata_file(written)
        return pq.read_metadata(io.BytesIO(written.getvalue().replace(b"ARROW:schema", b"arrow.schema")))

    def _shown_width(self, names: Sequence[str]) -> int:
        """Return the bytes per row of some columns, from the first rows: the file stores repeated values only once."""
        varying = [name for name in names if not has_width(self.schema.field(name).type)]
        if not (varying and self._metadata.num_row_groups):
            return 0
        _require_unchanged(
            self._place, self.path, self._state
        )  # with metadata of another version the file would seem damaged
        with self._open(
            metadata=self._metadata, buffer_size=self._place.read_ahead, pre_buffer=False
        ) as file:
            first = next(file.iter_batches(FIRST_ROWS, [0], varying, use_threads=False), None)
        return int(first.nbytes) // max(1, first.num_rows) if first is not None else 0

    def read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Read some columns, in batches if rows are wide."""
        with self._open() as file:
            columns, n_rows = list(dict.fromkeys(names)), max(1, self._metadata.num_rows)
            # averaged over all columns: a single column's metadata may be damaged, and crash the process
            width = max(self.bytes_in_memory // n_rows, self._shown_width(columns))
            if width < WIDE:
                table = read_groups(file, range(self._metadata.num_row_groups), columns)
            else:  # signals are handled between batches, unlike within list()
                parts = file.iter_batches(max(1, BYTES_AT_ONCE // width), columns=columns)
                table = pa.Table.from_batches([part for part in parts])
        _require_unchanged(self._place, self.path, self._state)
        return [table.column(name) for name in names]


def read_groups(file: Any, groups: Sequence[int], names: Sequence[str] | None) -> pa.Table:
    """Return columns, or all, of some row groups of a Parquet file.

    The time that Arrow takes for a row group grows with the number of row groups in the call: 800 row groups of
    numbers or dictionaries take four to nine times as long as in calls for 64 each, strings twice as long.
    """
    starts = range(0, max(1, len(groups)), GROUPS_AT_ONCE)
    columns = None if names is None else list(names)
    return pa.concat_tables(
        [file.read_row_groups(list(groups[k : k + GROUPS_AT_ONCE]), columns) for k in starts]
    )


def _encoded(values: pa.Array, kind: pa.DictionaryType) -> pa.DictionaryArray:
    """Return values encoded as this dictionary type; the dictionary has no unused values."""
    found = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        found.indices.cast(kind.index_type), found.dictionary.cast(kind.value_type), ordered=kind.ordered
    )


def has_width(kind: pa.DataType) -> bool:
    """Return whether all values of a type take the same number of bytes."""
    return bool(pa.types.is_primitive(kind) or pa.types.is_fixed_size_binary(kind))


class IpcFile:
    """One Arrow IPC file or stream; data are validated, as a damaged offset could crash the process."""

    form = "Arrow IPC"
    #: wording for messages: what reading holds in memory, per what unit of the file, and what to make smaller
    held = "values", "record batch", "record batches"

    def __init__(self, path: str, place: Place = LOCAL) -> None:
        self.path, self._place = path, place
        self._state = place.state(path)
        self.n_rows: int | None = None
        with self._open() as reader:
            self.schema: pa.Schema = reader.schema
            self.names = self.schema.names

    @property
    def bytes_in_memory(self) -> int:
        """The approximate number of bytes of all columns in memory."""
        return self._place.state(self.path)[1]

    def bytes_of(self, names: Sequence[str]) -> int:
        """Return an upper bound on the number of bytes of some columns."""
        return self.bytes_in_memory

    def held_of(self, group: int, names: Sequence[str]) -> int:
        """Return the approximate number of bytes held while the file is read: those of its largest record batch."""
        n_rows, most = sum(self._batch_rows), max(self._batch_rows, default=0)
        kinds = [self.schema.field(name).type for name in names if name in self.names]
        return sum(
            most * kind.bit_width // 8 if has_width(kind) else self.bytes_in_memory * most // max(1, n_rows)
            for kind in kinds
        )

    def group_sizes(self) -> list[int]:
        """Return the row count of the file as a list of one: it is read as a single group."""
        return [sum(self._batch_rows)] if self.names else []

    @cached_property
    def _batch_rows(self) -> list[int]:
        """The number of rows in each record batch, found by reading the narrowest column."""
        widths = [field.type.bit_width if has_width(field.type) else math.inf for field in self.schema]
        with self._open([widths.index(min(widths))]) as reader:
            return [batch.num_rows for batch in _batches(reader)]

    def read_group(self, group: int, names: Sequence[str], size: int) -> Iterator[list[pa.ChunkedArray]]:
        """Yield columns of the file, `size` rows at a time."""
        at = sorted({self.names.index(name) for name in names})
        with self._open(at) as reader:
            for table in in_blocks(_batches(reader), size):
                yield [_apart(table.column(name)) for name in names]
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
        """Read some columns, and validate them."""
        with self._open([self.names.index(name) for name in names]) as reader:
            table = reader.read_all()
            table.validate(full=True)
        _require_unchanged(self._place, self.path, self._state)
        return [table.column(name) for name in names]


def _batches(reader: Any) -> Iterator[pa.RecordBatch]:
    if hasattr(reader, "num_record_batches"):
        batches = map(reader.get_batch, range(reader.num_record_batches))
    else:
        batches = iter(reader)
    for batch in batches:
        batch.validate(full=True)
        yield batch


def _apart(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose chunks do not keep alive the large batches that they are slices of."""
    chunks = [
        pa.concat_arrays([chunk]) if chunk.get_total_buffer_size() > 2 * _bytes_of(chunk) else chunk
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, column.type)


def in_blocks(
    batches: Iterable[pa.RecordBatch], size: int, rows_of: Callable[[float], int] | None = None
) -> Iterator[pa.Table]:
    """Yield the rows of record batches, `size` at a time, or as many as `rows_of` returns for the bytes per row."""
    waiting: list[pa.RecordBatch] = []
    n_rows = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            n_rows += batch.num_rows
            size = size if rows_of is None else rows_of(sum(map(_bytes_of, waiting)) / n_rows)
        while n_rows >= size:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, size)
            waiting = table.slice(size).to_batches()
            n_rows -= size
    if waiting:
        yield pa.Table.from_batches(waiting)


def _bytes_of(values: pa.RecordBatch | pa.Array) -> int:
    try:
        return int(values.nbytes)
    except pa.ArrowTypeError:  # raised for views before pyarrow 20
        return int(values.get_total_buffer_size())


def _require_unchanged(place: Place, path: str, state: tuple[int, int, int]) -> None:
    if place.state(path) != state:
        raise FileFormatError(
            f"{path} changed after its first rows were read. Evaluate it again when it is complete."
        )


#: Possible delimiters; the one implied by the file's name has precedence, then the only one that fits.
DELIMITERS = (",", "\t", ";", "|")
#: Number of bytes, and of rows within them, examined to find the delimiter.
PROBED, PROBED_ROWS = 1 << 16, 50
#: Number of bytes of CSV parsed for the column names; the header must fit into them.
CSV_BLOCK = 1 << 20
#: Magic bytes of compressed text, by the suffix that its name should have.
MARKS = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".lz4": b"\x04\x22\x4d\x18"}
#: Number of bytes of JSON lines parsed at once; no line may be longer.
JSON_BLOCK = 1 << 24


class TextFile:
    """One text file, held in memory as a table, as column types are known only at its end."""

    form = ""
    #: the likely reason for a missing column
    hint = ""
    #: columns that are text because the format has no types
    untyped: Sequence[str] = ()

    def __init__(self, path: str, table: pa.Table) -> None:
        self.path, self._table = path, table
        self.schema: pa.Schema = table.schema
        self.names = self.schema.names
        self.bytes_in_memory = table.nbytes
        self.n_rows: int | None = table.num_rows

    def read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return some columns; those of CSV are text."""
        return [self._table.column(name) for name in names]


class CsvFile(TextFile):
    """One CSV file with a header; all columns are text."""

    form = "CSV"

    def __init__(self, path: str, place: Place = LOCAL) -> None:
        import pyarrow.csv

        with reading(path, self.form):
            with place.open_text(path) as text:
                begin = text.read(2 * CSV_BLOCK)
            head = _decoded(begin[:PROBED], path)
            if not head.strip():
                raise FileFormatError(
                    f"{path} contains no text, not even column names. Was it written to the end?"
                )
            # Arrow reports an unterminated header as empty; zero bytes are not text
            alone = len(begin.splitlines()) == 1 and b"\0" not in begin
            if alone:
                begin += b"\n"
            parse = pyarrow.csv.ParseOptions(delimiter=delimiter_of(head, path))
            try:
                convert = pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(_names(begin, parse), pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                )
                with pa.BufferReader(begin) if alone else place.open_text(path) as text:
                    table = pyarrow.csv.read_csv(text, parse_options=parse, convert_options=convert)
            except pa.ArrowInvalid as error:
                _require_even(path, place, parse.delimiter, error)
                raise
            super().__init__(path, table)
        self.untyped = self.names
        if self.names[0].startswith("#"):
            self.hint = (
                " The first line begins with #: remove the line if it is a comment, or the # if the line "
                "holds column names."
            )
        elif any(not name or any(map(str.isdigit, name)) for name in self.names):
            self.hint = _no_header(head.splitlines()[0], path, len(self.names))
        _refuse_comments(path, table.column(0))


class JsonFile(TextFile):
    """One JSON lines file: an object per line."""

    form = "JSON lines"

    def __init__(self, path: str, place: Place = LOCAL) -> None:
        import pyarrow.json

        blocks = pyarrow.json.ReadOptions(block_size=JSON_BLOCK)
        with reading(path, self.form):
            nesting = Nesting(path)
            # too deep nesting would crash Arrow before it could report an error
            with place.open_text(path) as text:
                while block := text.read(BLOCK):
                    nesting.add(block)
            try:
                with place.open_text(path) as text:
                    table = pyarrow.json.read_json(text, read_options=blocks)
            except pa.ArrowInvalid:
                with place.open_text(path) as text:
                    _decoded(text.read(4), path)
                raise
            dates = [
                field.with_type(pa.string()) for field in table.schema if pa.types.is_timestamp(field.type)
            ]
            if dates:  # texts that look like dates remain texts
                parse = pyarrow.json.ParseOptions(explicit_schema=pa.schema(dates))
                with place.open_text(path) as text:
                    found = pyarrow.json.read_json(text, read_options=blocks, parse_options=parse)
                table = found.select(table.column_names)
            super().__init__(path, table)


def _refuse_comments(path: str, first: pa.ChunkedArray) -> None:
    """Raise if some but not all rows begin with "# ": these are probably comments that contain delimiters."""
    if not len(first):
        return
    begin = pc.starts_with(first, "# ")
    rows = pc.indices_nonzero(begin).to_pylist()  # nulls are not comments
    if 0 < len(rows) < len(first):
        raise FileFormatError(
            f"{len(rows):,} of {len(first):,} rows of {path} begin with '# ' (first: row {rows[0]:,}, "
            f"{first_few([first[rows[0]].as_py()])}) like comments, which CSV does not have. Remove these "
            "lines."
        )


def _require_even(path: str, place: Place, delimiter: str, error: Exception) -> None:
    """Raise for the first row of a CSV file whose number of fields differs from that of the header, if there is one."""
    import csv

    if "columns, got" not in str(error):
        return
    with place.open_text(path) as file, suppress(csv.Error):
        rows = csv.reader(io.TextIOWrapper(file, "utf-8-sig", "replace", newline=""), delimiter=delimiter)
        names = next(row for row in rows if row)
        begins = rows.line_num + 1
        for row in rows:
            if row and len(row) != len(names):
                break
            begins = rows.line_num + 1
        else:
            return
        if not any("\n" in field for field in row):  # otherwise a quotation mark was left open
            raise _uneven(path, begins, row, names, delimiter) from error


def _uneven(path: str, line: int, row: list[str], names: list[str], delimiter: str) -> FileFormatError:
    n_names = len(names)
    fields = f"{len(row)} field{'s' * (len(row) != 1)}"
    if names[0].startswith("#"):
        advice = (
            "The first line is a comment: remove such lines, so that the file begins with the column names."
        )
    elif row[0].startswith("#"):
        advice = "It looks like a comment, which CSV does not have: remove such lines."
    elif len(row) > n_names:
        mark = "a tab" if delimiter == "\t" else repr(delimiter)
        advice = f"Quote values that contain {mark}, or remove the extra fields."
    else:
        advice = "Add the missing fields, which may be empty, or remove the line."
    return FileFormatError(
        f"line {line:,} of {path} has {fields} ({first_few(row)}), but there are {n_names} column names. "
        f"{advice}"
    )


def _names(begin: bytes, parse: Any) -> list[str]:
    """Return the CSV column names from the first two blocks of a file, of which the second may end within a row.

    A streaming reader reads ahead on a thread that outlives the reader. That thread could read from another file opened
    later under the same descriptor, and lose its beginning.
    """
    import pyarrow.csv

    first = pyarrow.csv.ReadOptions(block_size=CSV_BLOCK)
    with pyarrow.csv.open_csv(pa.BufferReader(begin), read_options=first, parse_options=parse) as reader:
        return list(reader.schema.names)


def delimiter_of(head: str, path: str) -> str:
    r"""Return the delimiter of a CSV file: the one its name implies, else the only one that fits.

    A delimiter fits if it splits all rows into the same number of fields, at least two.

    Examples
    --------
    >>> delimiter_of("item;price\na;1,50\n", "list.csv"), delimiter_of("item\n", "list.tsv")
    (';', '\t')
    """
    usual = "\t" if ".tsv" in path.lower() else ","
    fitting = [mark for mark in DELIMITERS if _fits(mark, head)]
    if usual in fitting or not fitting:
        return usual
    if len(fitting) > 1:
        raise FileFormatError(
            f"The fields of {path} may be separated by {' or by '.join(map(repr, fitting))}: its first line is "
            f"{head.splitlines()[0][:200]!r}. Write it with commas, or as Parquet."
        )
    return fitting[0]


def _fits(mark: str, head: str) -> bool:
    import csv

    if len(head) > PROBED // 4:  # the last row may be truncated
        head = head[: head.rfind("\n") + 1] or head
    try:
        rows = list(islice(filter(None, csv.reader(io.StringIO(head), delimiter=mark)), PROBED_ROWS))
    except csv.Error:
        return False
    return bool(rows) and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)


def _decoded(head: bytes, path: str) -> str:
    """Return the beginning of a file as text; raise if its first bytes mark it as compressed or as UTF-16."""
    for end, mark in MARKS.items():
        if head.startswith(mark):
            raise FileFormatError(
                f"{path} is compressed, but its name does not show it: rename it to "
                f"{os.path.basename(path)}{end}, or decompress it."
            )
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FileFormatError(
            f"{path} is text in UTF-16. Text must be UTF-8: write the file in UTF-8, or convert it, as "
            "with iconv -f utf-16 -t utf-8."
        )
    return head.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")


def _no_header(line: str, path: str, n_columns: int) -> str:
    shown = line if len(line) <= 80 else f"{line[:79]}…"
    names = json.dumps(path)
    intro = f" The first line of {path} is {shown!r}. If that is not a header, name the columns: pass "
    if n_columns != 2:
        return (
            f"{intro}pandas.read_csv({names}, header=None, names=[...]), with a name for each of the {n_columns}, "
            'including "item" and "cluster"'
        )
    return (
        f'{intro}pandas.read_csv({names}, header=None, names=["item", "cluster"]), or, for a prediction, use a '
        f"shell: (echo item,cluster; cat {path}) | fastbcubed evaluate TRUTH -"
    )
