"""Open files that are read from a place of one's own: a forked process shares the place that the system keeps."""

from __future__ import annotations

import io
import os
from typing import Any


class OwnPlace(io.RawIOBase):
    """An open file, read from a place of its own and not from the file's; closing it leaves the file open."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file, self._at = file, 0

    def readable(self) -> bool:
        """Say that it is read."""
        return True

    def seekable(self) -> bool:
        """Say that it has places."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the file."""
        number: int = self._file.fileno()
        return number

    def tell(self) -> int:
        """Return from where the next bytes are read."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Go to a place, told from the beginning, from here, or from the end."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: os.fstat(self.fileno()).st_size}
        self._at = base[whence] + offset
        return self._at

    def readinto(self, into: Any) -> int:
        """Read bytes until there is no room, or no more of them; return how many."""
        room, done = memoryview(into).cast("B"), 0
        while done < room.nbytes and (got := os.preadv(self.fileno(), [room[done:]], self._at)):
            done, self._at = done + got, self._at + got
        return done
