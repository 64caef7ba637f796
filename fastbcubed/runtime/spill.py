"""Spill: what does not fit in memory goes to one file that has no name, cut into shards to be read again.

The system removes it however the process ends: nothing is left behind by an error, by Ctrl-C or by a killed process.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from fastbcubed.errors import OptionError, SpillError
from fastbcubed.runtime import buffers
from fastbcubed.runtime.pool import lend

#: Direct writes begin and end at multiples of this.
PAGE = 4096
#: So much is written through the page cache, where it may stay; more would only wait for the disk.
THROUGH_CACHE = 64 << 20
#: Threads that read at once, and the bytes that each reads at a time: a disk is slow if asked for little at once.
READERS, READ_BYTES = 8, 4 << 20
#: Left free on the disk, whatever happens.
LEAVE_FREE = 1 << 30
#: What a spill file should not be on: such a "disk" is memory.
IN_MEMORY = ("tmpfs", "ramfs")


class Pages:
    """Memory for records that begins at a page and is written by whole pages; used again and again."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def empty(self, size: int, dtype: np.dtype) -> np.ndarray:
        """Return an array of records; the one returned before must not be used any more."""
        needed = size * dtype.itemsize
        if needed > self._memory.size:
            self._memory = buffers.pages(needed * 5 // 4)
        return self._memory[:needed].view(dtype)

    def first(self, size: int) -> memoryview:
        """Return the first bytes, up to the end of a page."""
        return self._memory.data[: -(-size // PAGE) * PAGE]

    def whole(self, size: int) -> np.ndarray:
        """Return so many bytes, up to the end of a page, to be written to."""
        return self.empty(-(-size // PAGE) * PAGE, np.dtype(np.uint8))


class Spill:
    """A file without a name, for the time of one evaluation.

    It goes to `directory`, /var/tmp by default, or the directory for temporary files if there is none; a
    directory that the user `named` may be on a file system in memory.
    """

    def __init__(self, directory: Any = None, *, named: bool = False) -> None:
        self._files: tuple[int, int] | None = None
        self._readers: ThreadPoolExecutor | None = None
        self.directory = spill_directory(directory)
        if not named and _is_in_memory(self.directory):
            raise OptionError(
                f"{self.directory} is in memory ({' or '.join(IN_MEMORY)}), so nothing is gained by spilling "
                "there. Name a directory on a disk with spill_dir=, or this one if you mean it"
            )
        self._lock = threading.Lock()
        self._idle: list[Pages] = []
        self._direct = True
        self.written = 0

    def require_free(self, expected: int) -> None:
        """Raise if the disk lacks room for so many bytes, before the work begins."""
        free = self.free()
        if expected and free < expected + LEAVE_FREE:
            raise SpillError(
                f"about {readable(expected)} would be spilled to {self.directory}, which has {readable(free)} "
                f"free, of which {readable(LEAVE_FREE)} are left alone. Name a larger disk with spill_dir=, or "
                "raise memory_limit="
            )

    def describe(self, expected: int) -> str:
        """Return what is expected of the disk, for people."""
        if not expected:
            return "no spill"
        return f"up to {readable(expected)} of spill to {self.directory} ({readable(self.free())} free)"

    def free(self) -> int:
        """Return the free bytes of the disk."""
        try:
            return shutil.disk_usage(self.directory).free
        except OSError as error:
            raise self._error(error) from error

    def write(self, data: memoryview) -> int:
        """Write whole pages at the end and return where they begin."""
        with self._lock:
            if self._files is None:
                self._files = self._open()
            at = self.written
            self.written += data.nbytes
        cached, direct = self._files
        file = direct if at >= THROUGH_CACHE and self._direct else cached
        try:
            write_all(file, data, at)
        except OSError as error:
            if error.errno != errno.EINVAL or file == cached:
                raise self._error(error) from error
            self._direct = False  # a file system without direct writes
            try:
                write_all(cached, data, at)
            except OSError as again:
                raise self._error(again) from again
        return at

    def read(self, *pieces: tuple[int, np.ndarray]) -> None:
        """Fill arrays with what was written from some place on; those that are large are read side by side."""
        todo = [
            (at + start, into[start : start + READ_BYTES])
            for at, into in ((at, array.view(np.uint8)) for at, array in pieces)
            for start in range(0, into.size, READ_BYTES)
        ]
        if sum(into.size for _, into in todo) <= READ_BYTES:
            if todo:
                self._read_in_turn(todo)
            return
        with self._lock:
            if self._readers is None:
                self._readers = ThreadPoolExecutor(READERS, "fastbcubed-read")
        for _ in self._readers.map(self._read_in_turn, [todo[k::READERS] for k in range(READERS)]):
            pass

    def _read_in_turn(self, pieces: list[tuple[int, np.ndarray]]) -> None:
        """Read pieces back; what was written directly is read so, too, past the page cache."""
        assert self._files is not None
        cached, direct = self._files
        with self.pages() as pages:
            for at, into in pieces:
                if not (self._direct and at >= THROUGH_CACHE):
                    self._read(cached, at, into.data)
                    continue
                skip = at % PAGE
                whole = pages.whole(skip + into.size)
                self._read(direct, at - skip, whole.data)
                np.copyto(into, whole[skip : skip + into.size])

    def _read(self, file: int, at: int, into: memoryview) -> None:
        done = 0
        while done < into.nbytes:
            try:
                got = os.preadv(file, [into[done:]], at + done)
            except OSError as error:
                raise self._error(error) from error
            if not got:
                raise SpillError(f"the spill file in {self.directory} ended early; is the disk damaged?")
            done += got

    def pages(self) -> AbstractContextManager[Pages]:
        """Lend memory to make a batch in; it is lent again afterwards, since fresh memory costs time."""
        return lend(self._idle, Pages)

    def map(self, at: int, size: int, dtype: np.dtype) -> np.ndarray:
        """Return bytes of the file as an array of records, read as they are used, not to be written."""
        if not size:
            return np.empty(0, dtype)
        assert self._files is not None
        first = at - at % mmap.ALLOCATIONGRANULARITY
        end = at + size * dtype.itemsize
        memory = mmap.mmap(self._files[0], end - first, access=mmap.ACCESS_READ, offset=first)
        return np.frombuffer(memory, dtype, size, at - first)

    def close(self, *, wait: bool = True) -> None:
        """Close the file; what was mapped stays until nobody holds it."""
        if self._readers is not None:
            self._readers.shutdown(wait, cancel_futures=True)
            self._readers = None
        files, self._files = self._files, None  # once, even if Ctrl-C comes between
        for file in set(files or ()):
            os.close(file)

    def __del__(self) -> None:
        self.close(wait=False)

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _open(self) -> tuple[int, int]:
        try:
            return _open_unnamed(self.directory)
        except OSError as error:
            raise self._error(error) from error

    def _error(self, error: OSError) -> SpillError:
        if error.errno == errno.ENOSPC:
            return SpillError(
                f"the disk of {self.directory} is full after {readable(self.written)} of spill, which is removed "
                "now. Name a larger disk with spill_dir=, or raise memory_limit="
            )
        return SpillError(
            f"cannot spill to {self.directory}: {error.strerror}. Name a directory with spill_dir="
        )


def _open_unnamed(directory: Path) -> tuple[int, int]:
    """Return a new file without a name, opened to be written through the page cache and, where that can be, past it."""
    name = None
    try:
        cached = os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
    except (AttributeError, OSError):  # only Linux has such files, and not on all file systems
        cached, name = tempfile.mkstemp(prefix=".fastbcubed-spill-", dir=directory)
    try:
        direct = os.open(name or f"/proc/self/fd/{cached}", os.O_RDWR | getattr(os, "O_DIRECT", 0))
    except OSError:
        direct = cached
    finally:
        if name is not None:
            os.unlink(name)
    return cached, direct


def write_all(file: int, data: memoryview, at: int) -> None:
    """Write all of some bytes to a place of a file."""
    done = 0
    while done < data.nbytes:
        done += os.pwrite(file, data[done : done + (1 << 30)], at + done)


def spill_directory(given: Any) -> Path:
    """Return the directory to spill to: the one given, else /var/tmp, else that for temporary files."""
    if given is None:
        given = "/var/tmp" if os.path.isdir("/var/tmp") else tempfile.gettempdir()
    try:
        return Path(given).expanduser()
    except TypeError:
        raise OptionError(f"spill_dir is a directory, not {given!r}") from None


def readable(size: float) -> str:
    """Return a number of bytes as people read it.

    Examples
    --------
    >>> readable(256 << 20), readable(3 << 29)
    ('256 MiB', '1.5 GiB')
    """
    return f"{size / 2**30:.1f} GiB" if size >= 1 << 30 else f"{size / 2**20:.0f} MiB"


def _is_in_memory(directory: Path) -> bool:
    """Tell whether a directory is on a file system that keeps its files in memory."""
    path, kind = directory.resolve(), ""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    longest = -1
    for line in mounts:
        _, point, name, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        if len(point) >= longest and (path == Path(point) or Path(point) in path.parents):
            longest, kind = len(point), name
    return kind in IN_MEMORY
