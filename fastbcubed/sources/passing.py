"""Files that are read without being left in the page cache, where they would not stay until they are read again."""

from __future__ import annotations

import errno
import os

import numpy as np
from numpy.typing import NDArray

#: Linux since 6.14: what is in the cache is taken from there; what is not leaves it once it has been read.
RWF_DONTCACHE = 0x80


class PassingFile:
    """A file to be read anywhere, as pyarrow takes it; fresh memory for the cache may cost more than reading.

    Where the system does not know the like, it is read as any other.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self._size = os.fstat(self._file).st_size
        self._at = 0
        self._flags = RWF_DONTCACHE if hasattr(os, "preadv") else 0
        self.closed = False

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def seekable(self) -> bool:
        """Say that it can be read anywhere."""
        return True

    def tell(self) -> int:
        """Return where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place, and return it."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> NDArray[np.uint8]:
        """Return the next bytes, fewer at the end."""
        left = max(0, self._size - self._at)
        data = np.empty(left if size < 0 else min(size, left), np.uint8)
        done = 0
        while done < data.size:
            got = self._read(data[done:], self._at + done)
            if not got:  # it has become shorter
                break
            done += got
        self._at += done
        return data[:done]

    def _read(self, into: NDArray[np.uint8], at: int) -> int:
        if self._flags:
            try:
                return os.preadv(self._file, [into.data], at, self._flags)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS):
                    raise
                self._flags = 0
        found = os.pread(self._file, into.size, at)
        into[: len(found)] = np.frombuffer(found, np.uint8)
        return len(found)

    def close(self) -> None:
        """Close it."""
        if not self.closed:
            self.closed = True
            os.close(self._file)
