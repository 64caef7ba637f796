"""Files of text that are read as a whole: CSV, whatever its delimiter, and JSON lines."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from fastbcubed.errors import FileFormatError
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.formats import reading
from fastbcubed.sources.locations import LOCAL, Place

#: What may stand between fields; the first of a file's name comes first, then the only one that fits.
DELIMITERS = (",", "\t", ";", "|")
#: Bytes, and rows in them, that are looked at to find the delimiter.
PROBED, PROBED_ROWS = 1 << 16, 50
#: Bytes of CSV that are parsed for the names of columns; the header may not be longer.
CSV_BLOCK = 1 << 20
#: How compressed text begins, by the end of the name that it should have.
MARKS = {".gz": b"\x1f\x8b", ".zst": b"\x28\xb5\x2f\xfd", ".lz4": b"\x04\x22\x4d\x18"}
#: Bytes of JSON lines that are parsed at once; a line may not be longer.
JSON_BLOCK = 1 << 24


#: How text begins that spreadsheets take for a formula, or that an apostrophe was put before.
FORMULA = "[=+@＝＋－＠\t\r\n-]"


def no_formulas(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return text for a spreadsheet: with an apostrophe before what it would take for a formula; else as it is."""
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return values
    return pc.replace_substring_regex(values, f"\\A('*{FORMULA})", r"'\1")


def as_it_was(text: str) -> str:
    """Return text as it was before `no_formulas`.

    Examples
    --------
    >>> as_it_was("'=A1"), as_it_was("''-5"), as_it_was("'n Sync"), as_it_was("+49")
    ('=A1', "'-5", "'n Sync", '+49')
    """
    return text[1:] if re.match(f"'+{FORMULA}", text) else text


class TextFile:
    """One file that is held as a table from the beginning, as its types are known at its end alone."""

    form = ""
    #: what may be wrong if a column is not there
    hint = ""

    def __init__(self, path: str, table: pa.Table) -> None:
        self.path, self._table = path, table
        self.schema: pa.Schema = table.schema
        self.names = self.schema.names
        self.bytes_in_memory = table.nbytes
        self.n_rows: int | None = table.num_rows

    def read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        """Return columns; those of CSV as text."""
        return [self._table.column(name) for name in names]


class CsvFile(TextFile):
    """One CSV file with a header, whose columns are text."""

    form = "CSV"

    def __init__(self, path: str, place: Place = LOCAL) -> None:
        import pyarrow.csv

        with reading(path, self.form):
            with place.open_text(path) as text:
                begin = text.read(2 * CSV_BLOCK)
            head = _decoded(begin[:PROBED], path)
            if not head.strip():
                raise FileFormatError(
                    f"{path} has no text, not even names of columns. Was it written to the end?"
                )
            # Arrow says of a header without an end that it is empty; zeros are no text
            alone = len(begin.splitlines()) == 1 and b"\0" not in begin
            if alone:
                begin += b"\n"
            parse = pyarrow.csv.ParseOptions(delimiter=delimiter_of(head, path))
            types = dict.fromkeys(_names(begin, parse), pa.string())
            convert = pyarrow.csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            )
            with pa.BufferReader(begin) if alone else place.open_text(path) as text:
                super().__init__(
                    path, pyarrow.csv.read_csv(text, parse_options=parse, convert_options=convert)
                )
        if any(not name or any(map(str.isdigit, name)) for name in self.names):
            self.hint = _no_header(head.splitlines()[0], path, len(self.names))


class JsonFile(TextFile):
    """One file with a JSON object in each line."""

    form = "JSON lines"

    def __init__(self, path: str, place: Place = LOCAL) -> None:
        import pyarrow.json

        blocks = pyarrow.json.ReadOptions(block_size=JSON_BLOCK)
        with reading(path, self.form):
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
            if dates:  # text that looks like a date is text all the same
                parse = pyarrow.json.ParseOptions(explicit_schema=pa.schema(dates))
                with place.open_text(path) as text:
                    found = pyarrow.json.read_json(text, read_options=blocks, parse_options=parse)
                table = found.select(table.column_names)
            super().__init__(path, table)


def _names(begin: bytes, parse: Any) -> list[str]:
    """Return the names of the columns of CSV from its first two blocks, the second of which may end within a row.

    A reader that streams reads ahead on a thread that closing it does not end. Of a file, that would go on where
    another one has been opened under the same number, whose beginning would be lost.
    """
    import pyarrow.csv

    first = pyarrow.csv.ReadOptions(block_size=CSV_BLOCK)
    with pyarrow.csv.open_csv(pa.BufferReader(begin), read_options=first, parse_options=parse) as reader:
        return list(reader.schema.names)


def delimiter_of(head: str, path: str) -> str:
    r"""Return what stands between the fields of a CSV file: what its name says, or the only mark that fits.

    A mark fits if it cuts all rows into as many fields, two or more.

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
            f"The fields of {path} may be apart by {' or by '.join(map(repr, fitting))}: its first line is "
            f"{head.splitlines()[0][:200]!r}. Write it with commas, or as Parquet."
        )
    return fitting[0]


def _fits(mark: str, head: str) -> bool:
    import csv

    if len(head) > PROBED // 4:  # where the last row may be cut
        head = head[: head.rfind("\n") + 1] or head
    try:
        rows = list(islice(filter(None, csv.reader(io.StringIO(head), delimiter=mark)), PROBED_ROWS))
    except csv.Error:
        return False
    return bool(rows) and len(rows[0]) > 1 and all(len(row) == len(rows[0]) for row in rows)


def _decoded(head: bytes, path: str) -> str:
    """Return the beginning of a file as text; raise if it is marked as compressed, or as UTF-16, as on Windows."""
    for end, mark in MARKS.items():
        if head.startswith(mark):
            raise FileFormatError(
                f"{path} is compressed, which its name does not say: call it {os.path.basename(path)}{end}, or "
                "decompress it."
            )
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FileFormatError(
            f"{path} is text in UTF-16. Text has to be UTF-8: write the file so, or convert it, as with iconv -f "
            "utf-16 -t utf-8."
        )
    return head.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")


def _no_header(line: str, path: str, n_columns: int) -> str:
    shown = line if len(line) <= 80 else f"{line[:79]}…"
    names = json.dumps(path)
    told = f" The first line of {path} is {shown!r}. If that is no header, name the columns: pass "
    if n_columns != 2:
        return (
            f"{told}pandas.read_csv({names}, header=None, names=[...]), with a name for each of the {n_columns}, "
            '"item" and "cluster" among them'
        )
    return (
        f'{told}pandas.read_csv({names}, header=None, names=["item", "cluster"]), or in a shell, of a prediction, '
        f"(echo item,cluster; cat {path}) | fastbcubed evaluate TRUTH -"
    )
