"""Files that may become large: what comes after their first part is written past the page cache.

The cache would only wait for the disk, and the memory that it takes for a file of many gigabytes costs more time
than making what is in it.
"""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from fastbcubed.runtime.checksums import NO_BYTES
from fastbcubed.runtime.spill import PAGE, THROUGH_CACHE, Pages, write_all
from fastbcubed.runtime.spool import Behind

#: Bytes written at once; a multiple of what direct writes begin and end at.
CHUNK = 4 << 20


class LargeFile(io.RawIOBase):
    """A file to be written from its beginning to its end; a thread writes while the next part comes."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._cached = os.open(path, os.O_WRONLY)
        try:
            self._direct = os.open(path, os.O_WRONLY | getattr(os, "O_DIRECT", 0))
        except OSError:  # a file system without direct writes
            self._direct = os.dup(self._cached)
        self._behind = Behind(self._put)
        self._pages = self._behind.pages()
        self._filled = self._at = 0
        self.stamp = NO_BYTES

    def writable(self) -> bool:
        """Say that it is written to."""
        return True

    def tell(self) -> int:
        """Return how many bytes have been written."""
        return self._at + self._filled

    def write(self, data: Any) -> int:
        """Write bytes at the end."""
        rest = memoryview(data).cast("B")
        size = rest.nbytes
        while rest.nbytes:
            part = rest[: CHUNK - self._filled]
            room = self._pages.empty(CHUNK, np.dtype(np.uint8))
            room.data[self._filled : self._filled + part.nbytes] = part
            self._filled += part.nbytes
            rest = rest[part.nbytes :]
            if self._filled == CHUNK:
                self._hand_over()
        return size

    def close(self) -> None:
        """Write what is left, and close the file."""
        if self.closed:
            return
        try:
            try:
                if self._filled:
                    self._hand_over()
            finally:
                self._behind.settle()
        finally:
            super().close()  # first: what follows happens once, even if Ctrl-C comes between
            os.close(self._cached)
            os.close(self._direct)

    def _hand_over(self) -> None:
        """Let the thread write the chunk that has been filled; waits for the one before."""
        self._behind.hand_over(self._at, self._pages, self._filled)
        self._pages = self._behind.pages()
        self._at, self._filled = self._at + self._filled, 0

    def _put(self, at: int, pages: Pages, size: int) -> None:
        data = pages.empty(size, np.dtype(np.uint8)).data
        whole = size - size % PAGE if at >= THROUGH_CACHE else 0
        try:
            write_all(self._direct, data[:whole], at)
        except OSError:  # for one that is real there will be another
            whole = 0
        write_all(self._cached, data[whole:], at + whole)
        self.stamp = self.stamp.and_then(data)
