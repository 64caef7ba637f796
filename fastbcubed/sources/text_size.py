"""How much memory the text of files takes, which is held as a whole: a guess from its size and its first lines."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from fastbcubed.sources.files import files_of
from fastbcubed.sources.formats import COMPRESSED, PLAIN_TEXT, SUFFIXES, reading, sniff
from fastbcubed.sources.locations import Place
from fastbcubed.sources.tables import is_path
from fastbcubed.sources.text_files import DELIMITERS

#: Text below this size cannot take much.
SMALL = 2 << 20
#: Bytes of a field of CSV, and further ones of a field that is used, beside twice its text; how many are used.
FIELD, USED, COLUMNS_USED = 16, 48, 4
#: Bytes of compressed text that are decompressed to see how long it is; the rest is taken to be like them.
MEASURED, AT_ONCE = 1 << 30, 1 << 20


def bytes_of_text(source: Any) -> int:
    """Return what is held of a source that is in files of text, about; nothing of any other."""
    if not is_path(source):
        return 0
    endings = (*SUFFIXES["CSV"], *SUFFIXES["JSON lines"], *PLAIN_TEXT)
    found, _ = files_of(source)
    texts = (each for each in found if each.path.lower().endswith(endings) or each.place.unnamed)
    return sum(_of_file(*each) for each in texts if sniff(each.path, each.place) in ("CSV", "JSON lines"))


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
            size, rows = _measured(place, path, size)
    if size < SMALL:
        return 0
    columns = 1 + max(lines[0].count(mark.encode()) for mark in DELIMITERS)
    return int(2 * size + rows * (FIELD * columns + USED * min(columns, COLUMNS_USED)))


def _measured(place: Place, path: str, size: int) -> tuple[int, int]:
    """Return the bytes and lines of compressed text, of which some kilobytes may hold any number."""
    n_bytes, n_lines = 0, 1
    with place.open(path) as file, pa.CompressedInputStream(file, pa.Codec.detect(path).name) as text:
        while n_bytes < MEASURED and (part := text.read(AT_ONCE)):
            n_bytes, n_lines = n_bytes + len(part), n_lines + part.count(b"\n")
        share = file.tell() / max(1, size) if n_bytes >= MEASURED else 1.0
    return int(n_bytes / share), int(n_lines / share)
