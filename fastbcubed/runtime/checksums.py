"""Files told from others: their size and checksum; only regular files are opened, since others may never end."""

from __future__ import annotations

import os
import stat
import zlib
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from fastbcubed.errors import FileFormatError

#: Bytes read at once.
CHUNK = 1 << 22


class Stamp(NamedTuple):
    """Size and CRC-32 of a file."""

    bytes: int
    crc32: int

    def and_then(self, data: Any) -> Stamp:
        """Return the stamp of the file with more bytes at its end."""
        return Stamp(self.bytes + memoryview(data).nbytes, zlib.crc32(data, self.crc32))


#: The stamp of an empty file.
NO_BYTES = Stamp(0, 0)


def open_regular(path: Path) -> BinaryIO:
    """Open a file to be read; raise FileFormatError for a pipe, a device, a directory, or what is not there."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileFormatError(f"{path} is no regular file")
        file = open(path, "rb", opener=_open_at_once)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # what was there may have been replaced
        return file
    file.close()
    raise FileFormatError(f"{path} is no regular file")


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for whoever is at the other end of it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def stamp_of(file: BinaryIO) -> Stamp:
    """Return the stamp of an open file, whose position is then its beginning."""
    stamp = NO_BYTES
    file.seek(0)
    while data := file.read(CHUNK):
        stamp = stamp.and_then(data)
    file.seek(0)
    return stamp


def copy_stamped(source: int, path: Path) -> Stamp:
    """Copy an open file, byte by byte, and leave its position where it is; return the stamp of the copy."""
    stamp = NO_BYTES
    with open(path, "wb") as to:
        while data := os.pread(source, CHUNK, stamp.bytes):
            to.write(data)
            stamp = stamp.and_then(data)
    return stamp
