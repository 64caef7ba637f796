"""Files that may become large: what comes after their first part is written past the page cache.

The cache would only wait for the disk, and the memory that it takes for a file of many gigabytes costs more time
than making what is in it.
"""

from __future__ import annotations

import io
import os
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from fastbcubed.engines import buffers

__all__ = ["LargeFile"]

#: Bytes written at once; a multiple of what direct writes begin and end at.
CHUNK = 4 << 20
PAGE = 4096
#: So much goes through the page cache, where it may stay.
THROUGH_CACHE = 64 << 20


class LargeFile(io.RawIOBase):
    """A file to be written from its beginning to its end; a thread writes while the next part comes.

    Parameters
    ----------
    path : str
        A file that is there, and empty.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._cached = os.open(path, os.O_WRONLY)
        try:
            self._direct = os.open(path, os.O_WRONLY | getattr(os, "O_DIRECT", 0))
        except OSError:  # a file system without direct writes
            self._direct = os.dup(self._cached)
        self._writer = ThreadPoolExecutor(1, "fastbcubed-write")
        self._last: Future[None] | None = None
        self._chunks = [buffers.pages(CHUNK), buffers.pages(CHUNK)]
        self._filled = self._at = 0

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
            self._chunks[0].data[self._filled : self._filled + part.nbytes] = part
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
            self._hand_over()
            self._wait()
        finally:
            self._writer.shutdown()
            os.close(self._cached)
            os.close(self._direct)
            self._chunks.clear()
            super().close()

    def _hand_over(self) -> None:
        """Let the thread write the chunk that has been filled; waits for the one before."""
        self._wait()
        if self._filled:
            self._last = self._writer.submit(self._put, self._chunks[0].data[: self._filled], self._at)
            self._at, self._filled = self._at + self._filled, 0
            self._chunks.reverse()

    def _wait(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.result()

    def _put(self, data: memoryview, at: int) -> None:
        whole = data.nbytes - data.nbytes % PAGE if at >= THROUGH_CACHE else 0
        try:
            done = _write(self._direct, data[:whole], at)
        except OSError:  # for one that is real there will be another
            done = 0
        _write(self._cached, data[done:], at + done)


def _write(file: int, data: memoryview, at: int) -> int:
    done = 0
    while done < data.nbytes:
        done += os.pwrite(file, data[done:], at + done)
    return done
