"""Spill: what does not fit in memory goes to one file that has no name, cut into shards to be read again.

The file is unlinked as soon as it is open, so that the system removes it however the process ends:
nothing is left behind by an error, by Ctrl-C or by a killed process.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.engines import buffers
from fastbcubed.engines.pool import Pool, lend
from fastbcubed.errors import OptionError, SpillError

__all__ = ["PAGE", "Behind", "Packed", "Pages", "Spill", "Spool", "readable", "spill_directory"]

#: Direct writes begin and end at multiples of this.
PAGE = 4096
#: So much is written through the page cache, where it may stay; more would only wait for the disk.
THROUGH_CACHE = 64 << 20
#: Left free on the disk, whatever happens.
LEAVE_FREE = 1 << 30
#: What a spill file should not be on: such a "disk" is memory.
IN_MEMORY = ("tmpfs", "ramfs")


class Pages:
    """Memory for records that begins at a page and is written by whole pages; used again and again."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, PAGE)

    def empty(self, size: int, dtype: np.dtype) -> np.ndarray:
        """Return an array of records; the one returned before must not be used any more."""
        needed = size * dtype.itemsize
        if needed > len(self._memory):
            self._memory = mmap.mmap(-1, -(-needed * 5 // 4 // PAGE) * PAGE)
        return np.frombuffer(self._memory, dtype, size)

    def first(self, size: int) -> memoryview:
        """Return the first bytes, up to the end of a page."""
        return memoryview(self._memory)[: -(-size // PAGE) * PAGE]

    def first_of(self, size: int) -> memoryview:
        """Return the first bytes, up to the end of a page, to be written to."""
        self.empty(size, np.dtype(np.uint8))
        return self.first(size)


class Spill:
    """A file without a name, for the time of one evaluation.

    Parameters
    ----------
    directory : path, optional
        Where the file goes; /var/tmp by default, or the directory for temporary files if there is none.
    named : bool
        Whether the user named the directory: it may then be on a file system in memory.

    Attributes
    ----------
    written : int
        Bytes in the file.
    """

    def __init__(self, directory: Any = None, *, named: bool = False) -> None:
        self.directory = spill_directory(directory)
        self._files: tuple[int, int] | None = None
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
            self._write(file, data, at)
        except OSError as error:
            if error.errno != errno.EINVAL or file == cached:
                raise self._error(error) from error
            self._direct = False  # a file system without direct writes
            try:
                self._write(cached, data, at)
            except OSError as again:
                raise self._error(again) from again
        return at

    @staticmethod
    def _write(file: int, data: memoryview, at: int) -> None:
        done = 0
        while done < data.nbytes:
            done += os.pwrite(file, data[done : done + (1 << 30)], at + done)

    def read(self, at: int, into: memoryview) -> None:
        """Read bytes back; those that were written directly are read so, too, past the page cache."""
        assert self._files is not None
        if not (self._direct and at >= THROUGH_CACHE):
            self._read(self._files[0], at, into)
            return
        skip = at % PAGE
        with self.pages() as pages:
            whole = pages.first_of(skip + into.nbytes)
            self._read(self._files[1], at - skip, whole)
            np.copyto(
                np.frombuffer(into, np.uint8), np.frombuffer(whole, np.uint8)[skip : skip + into.nbytes]
            )

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

    def close(self) -> None:
        """Close the file; what was mapped stays until nobody holds it."""
        if self._files is not None:
            for file in set(self._files):
                os.close(file)
            self._files = None

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _open(self) -> tuple[int, int]:
        try:
            cached, name = tempfile.mkstemp(prefix=".fastbcubed-spill-", dir=self.directory)
            try:
                direct = os.open(name, os.O_RDWR | getattr(os, "O_DIRECT", 0))
            except OSError:
                direct = cached
            os.unlink(name)
        except OSError as error:
            raise self._error(error) from error
        return cached, direct

    def _error(self, error: OSError) -> SpillError:
        if error.errno == errno.ENOSPC:
            return SpillError(
                f"the disk of {self.directory} is full after {readable(self.written)} of spill, which is removed "
                "now. Name a larger disk with spill_dir=, or raise memory_limit="
            )
        return SpillError(
            f"cannot spill to {self.directory}: {error.strerror}. Name a directory with spill_dir="
        )


def spill_directory(given: Any) -> Path:
    """Return the directory to spill to: the one given, else /var/tmp, else that for temporary files."""
    if given is None:
        given = "/var/tmp" if os.path.isdir("/var/tmp") else tempfile.gettempdir()
    return Path(given)


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


class Spool:
    """Batches of records, each sorted by shard: kept in memory as far as that goes, spilled from there on.

    Parameters
    ----------
    dtype : numpy.dtype
        The records.
    n_shards : int
        Shards of each batch.
    spill : Spill
        Where the rest goes.
    memory : int
        Bytes that may be kept.
    """

    def __init__(self, dtype: np.dtype, n_shards: int, spill: Spill, memory: int) -> None:
        self.dtype = dtype
        self.n_shards = n_shards
        self._spill = spill
        self._memory = memory
        self._lock = threading.Lock()
        self._batches: dict[Any, tuple[NDArray[np.int64], np.ndarray | int]] = {}

    def put(self, index: Any, pages: Pages, bounds: NDArray[np.int64]) -> None:
        """Take a batch from `pages`, and where each shard begins in it; both may be used again after.

        Batches are read back in the order of their indexes, whatever order they come in.
        """
        size = int(bounds[-1])
        if not size:
            return
        n_bytes = size * self.dtype.itemsize
        with self._lock:
            keep = n_bytes <= self._memory
            if keep:
                self._memory -= n_bytes
        place = pages.empty(size, self.dtype).copy() if keep else self._spill.write(pages.first(n_bytes))
        with self._lock:
            self._batches[index] = (bounds.copy(), place)

    def pages(self) -> AbstractContextManager[Pages]:
        """Lend memory to make a batch in."""
        return self._spill.pages()

    @property
    def indexes(self) -> list[Any]:
        """The indexes of the batches, in order."""
        return sorted(self._batches)

    def segments(self, shard: int) -> NDArray[np.int64]:
        """Return how many records of this shard each batch has, in their order. Shape (n_batches,)."""
        return np.array([self._batches[i][0][shard + 1] - self._batches[i][0][shard] for i in self.indexes])

    def sizes(self) -> NDArray[np.int64]:
        """Return how many records each shard has. Shape (n_shards,)."""
        total = np.zeros(self.n_shards, np.int64)
        for bounds, _ in self._batches.values():
            total += np.diff(bounds)
        return total

    def read(self, shard: int) -> np.ndarray:
        """Bring the records of a shard together, in the order of the batches."""
        into = buffers.empty(int(self.sizes()[shard]), self.dtype)
        at = 0
        for index in self.indexes:
            first, last = self._batches[index][0][shard : shard + 2].tolist()
            self._copy(index, first, into[at : at + last - first])
            at += last - first
        return into

    def read_batch(self, index: Any) -> np.ndarray:
        """Return a batch as it was put: the records of its shards, one after the other."""
        into = buffers.empty(int(self._batches[index][0][-1]), self.dtype)
        self._copy(index, 0, into)
        return into

    def _copy(self, index: Any, first: int, out: np.ndarray) -> None:
        """Copy records of a batch, from the first one given on."""
        place = self._batches[index][1]
        if isinstance(place, np.ndarray):
            np.copyto(out, place[first : first + out.size])
        elif out.size:
            self._spill.read(place + first * self.dtype.itemsize, out.view(np.uint8).data)

    def read_ahead(self, shards: Iterable[int], pool: Pool, stage: str) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the shards that have records, with them; the next one is read meanwhile.

        What is done with them is a stage of the pool.
        """
        sizes = self.sizes()
        todo = [shard for shard in shards if sizes[shard]]
        with (
            ThreadPoolExecutor(1, "fastbcubed-read") as reader,
            pool.stage(stage, len(todo), int(sizes[todo].sum())) as step,
        ):
            coming = reader.submit(self.read, todo[0]) if todo else None
            for k, shard in enumerate(todo):
                assert coming is not None
                records = coming.result()
                coming = reader.submit(self.read, todo[k + 1]) if k + 1 < len(todo) else None
                yield shard, records
                del records
                step(int(sizes[shard]))

    def clear(self) -> None:
        """Forget everything."""
        self._batches.clear()


class Packed:
    """Records written one after the other, without gaps, to a file of their own that can be mapped.

    Parameters
    ----------
    dtype : numpy.dtype
        The records.
    directory : path
        Where the file goes.
    """

    def __init__(self, dtype: np.dtype, directory: Path) -> None:
        self.dtype = dtype
        self._spill = Spill(directory, named=True)
        self._pages = Pages()
        self._size = 0
        self._left = b""  # less than a page, not yet written

    def append(self, records: np.ndarray) -> None:
        """Write records at the end."""
        data = np.ascontiguousarray(records.astype(self.dtype, copy=False)).view(np.uint8)
        self._size += records.size
        held = len(self._left) + data.size
        whole = held - held % PAGE
        if whole:
            room = self._pages.empty(held, np.dtype(np.uint8))
            room[: len(self._left)] = np.frombuffer(self._left, np.uint8)
            room[len(self._left) : held] = data
            self._spill.write(self._pages.first(whole))
            self._left = room[whole:held].tobytes()
        else:
            self._left += data.tobytes()

    def finish(self) -> np.ndarray:
        """Return all records, read from the file as they are used."""
        if self._left:
            room = self._pages.empty(PAGE, np.dtype(np.uint8))
            room[: len(self._left)] = np.frombuffer(self._left, np.uint8)
            self._spill.write(self._pages.first(PAGE))
        found = self._spill.map(0, self._size, self.dtype)
        self._spill.close()
        return found


class Behind:
    """Hands batches to `put` on a thread of its own, so that writing them does not hold up the work.

    Parameters
    ----------
    put : callable
        Takes an index, pages and bounds, as `Spool.put` does.
    """

    def __init__(self, put: Callable[[Any, Pages, NDArray[np.int64]], None]) -> None:
        self._put = put
        self._writer = ThreadPoolExecutor(1, "fastbcubed-write")
        self._last: Future[None] | None = None
        self._idle = [Pages(), Pages()]

    def pages(self) -> Pages:
        """Return pages to fill."""
        return self._idle.pop()

    def hand_over(self, index: Any, pages: Pages, bounds: NDArray[np.int64]) -> None:
        """Put a batch while the work goes on; waits for the one before."""
        self._wait()
        self._last = self._writer.submit(self._put, index, pages, bounds)
        self._idle.insert(0, pages)  # the other one is free

    def settle(self) -> None:
        """Wait for all batches, and give up the pages."""
        self._wait()
        self._writer.shutdown()
        self._idle.clear()

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()
            self._last = None
