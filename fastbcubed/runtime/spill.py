"""Spill: data that exceed memory are written to an unnamed file, in shards and batches that are read again later."""

from __future__ import annotations

import errno
import math
import mmap
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.errors import OptionError, SpillError, arg, short
from fastbcubed.runtime import buffers
from fastbcubed.runtime.arguments import local_path
from fastbcubed.runtime.threads import Pool, lend

#: Batches begin at multiples of this number of bytes in the file, so that mapped records are aligned.
PAGE = 4096
#: Number of reader threads, and number of bytes that each reads at a time; disks are slow at small reads.
READERS, READ_BYTES = 8, 4 << 20
#: Number of bytes always left free on the disk.
LEAVE_FREE = 1 << 30
#: File systems that are unsuitable for spill files because they keep files in memory.
IN_MEMORY = ("tmpfs", "ramfs")


class Pages:
    """Page-aligned, reusable memory for records, which can be written to a file in whole pages."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)

    def empty(self, size: int, dtype: np.dtype) -> np.ndarray:
        """Return an uninitialized array of records; the previously returned one must no longer be used."""
        needed = size * dtype.itemsize
        if needed > self._memory.size:
            self._memory = buffers.pages(needed * 5 // 4)
        return self._memory[:needed].view(dtype)

    def first(self, size: int) -> memoryview:
        """Return the first `size` bytes, rounded up to whole pages."""
        return self._memory.data[: -(-size // PAGE) * PAGE]


class Spill:
    """An unnamed file that exists for the duration of one evaluation.

    It is in `directory`, by default /var/tmp or, if that is missing, the directory for temporary files. A directory
    `named` by the user may be on a file system in memory.
    """

    def __init__(self, directory: Any = None, *, named: bool = False) -> None:
        self._file: int | None = None
        self._readers: ThreadPoolExecutor | None = None
        self.directory = spill_directory(directory)
        if not named and _is_in_memory(self.directory):
            raise OptionError(
                f"{self.directory} is in memory ({' or '.join(IN_MEMORY)}), so nothing is gained by spilling "
                f"there. Name a directory on a disk with {arg('spill_dir', ...)}, or name this one explicitly"
            )
        # guards opening the file and its readers, and `written`, so that each piece of the file has one writer
        self._lock = threading.Lock()
        self._idle: list[Pages] = []
        self.written = 0

    def has_room(self, expected: int) -> bool:
        """Return whether `expected` bytes fit on the disk and leave as many free, or at least LEAVE_FREE."""
        return self.free() >= expected + min(expected, LEAVE_FREE)

    def require_free(self, expected: int, alternatives: str = "") -> None:
        """Raise SpillError if the disk lacks room for `expected` bytes; called before they are written.

        `alternatives` are sentences on other ways to work that need less room.
        """
        free = self.free()
        if expected and free < expected + LEAVE_FREE:
            raise SpillError(
                f"about {readable(expected)} would be spilled to {self.directory}, which has "
                f"{readable(free)} free, of which {readable(LEAVE_FREE)} must remain free. "
                f"{alternatives}Name a larger disk with {arg('spill_dir', ...)}, or raise "
                f"{arg('memory_limit', ...)}"
            )

    def describe(self, expected: int) -> str:
        """Return a phrase that states the expected disk use."""
        if not expected:
            return "no spill"
        return f"up to {readable(expected)} of spill to {self.directory} ({readable(self.free())} free)"

    def free(self) -> int:
        """Return the number of free bytes on the disk."""
        try:
            return shutil.disk_usage(self.directory).free
        except OSError as error:
            raise self._error(error) from error

    def write(self, data: memoryview) -> int:
        """Append whole pages, and return their position in the file."""
        with self._lock:
            if self._file is None:
                self._file = self._open()
            at = self.written
            self.written += data.nbytes
        try:
            write_all(self._file, data, at)
        except OSError as error:
            raise self._error(error) from error
        return at

    def read(self, *pieces: tuple[int, np.ndarray]) -> None:
        """Fill arrays with the bytes at the given positions of the file; large arrays are read in parallel."""
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
        """Fill pieces of arrays one after the other."""
        for at, into in pieces:
            self._read(at, into.data)

    def _read(self, at: int, into: memoryview) -> None:
        assert self._file is not None
        done = 0
        while done < into.nbytes:
            try:
                got = os.preadv(self._file, [into[done:]], at + done)
            except OSError as error:
                raise self._error(error) from error
            if not got:
                raise SpillError(f"the spill file in {self.directory} ended early; is the disk damaged?")
            done += got

    def pages(self) -> AbstractContextManager[Pages]:
        """Lend memory for a batch; it is reused because fresh memory costs time."""
        return lend(self._idle, Pages)

    def map(self, at: int, size: int, dtype: np.dtype) -> np.ndarray:
        """Return bytes of the file as a read-only array of records that are read on access."""
        if not size:
            return np.empty(0, dtype)
        assert self._file is not None
        first = at - at % mmap.ALLOCATIONGRANULARITY
        end = at + size * dtype.itemsize
        memory = mmap.mmap(self._file, end - first, access=mmap.ACCESS_READ, offset=first)
        return np.frombuffer(memory, dtype, size, at - first)

    def close(self, *, wait: bool = True) -> None:
        """Close the file; mapped arrays remain valid until they are released."""
        if self._readers is not None:
            self._readers.shutdown(wait, cancel_futures=True)
            self._readers = None
        file, self._file = self._file, None  # so that Ctrl-C cannot cause a second close
        if file is not None:
            os.close(file)

    def __del__(self) -> None:
        self.close(wait=False)

    def __enter__(self) -> Spill:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _open(self) -> int:
        try:
            return _open_unnamed(self.directory)
        except OSError as error:
            raise self._error(error) from error

    def _error(self, error: OSError) -> SpillError:
        if error.errno == errno.ENOSPC:
            return SpillError(
                f"the disk of {self.directory} is full after {readable(self.written)} of spilled data, now "
                f"removed. Name a larger disk with {arg('spill_dir', ...)}, or raise "
                f"{arg('memory_limit', ...)}"
            )
        return SpillError(
            f"cannot spill to {short(str(self.directory))}: {error.strerror}. Name a directory with "
            f"{arg('spill_dir', ...)}"
        )


def _open_unnamed(directory: Path) -> int:
    """Create and open an unnamed file."""
    with suppress(AttributeError, OSError):  # O_TMPFILE exists only on Linux, and not on all file systems
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
    file, name = tempfile.mkstemp(prefix=".fastbcubed-spill-", dir=directory)
    os.unlink(name)
    return file


def write_all(file: int, data: memoryview, at: int) -> None:
    """Write all bytes to a file at a given position."""
    done = 0
    while done < data.nbytes:
        done += os.pwrite(file, data[done : done + (1 << 30)], at + done)


def spill_directory(given: Any) -> Path:
    """Return the directory to spill to: the given one or, by default, /var/tmp or the directory for temporary files."""
    if given is None:
        given = "/var/tmp" if os.path.isdir("/var/tmp") else tempfile.gettempdir()
    return Path(os.path.expanduser(local_path(given, f"{arg('spill_dir')} must be a directory")))


def readable(size: float) -> str:
    """Return a size in bytes as a string with a unit.

    Examples
    --------
    >>> readable(256 << 20), readable(3 << 29), readable(1025)
    ('256 MiB', '1.5 GiB', '2 KiB')
    """
    if size < 1 << 20:
        return f"{math.ceil(size / 2**10)} KiB"
    return f"{size / 2**30:.1f} GiB" if size >= 1 << 30 else f"{size / 2**20:.0f} MiB"


def _is_in_memory(directory: Path) -> bool:
    """Return whether the file system of a directory keeps its files in memory."""
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
    """Batches of records, each sorted by shard; up to `memory` bytes are kept in memory, the rest is spilled."""

    def __init__(self, dtype: np.dtype, n_shards: int, spill: Spill, memory: int) -> None:
        self.dtype = dtype
        self.n_shards = n_shards
        self._spill = spill
        self._memory = memory
        self._lock = threading.Lock()  # guards `_memory` and `_batches`; batches are written without it
        self._batches: dict[Any, tuple[NDArray[np.int64], NDArray[np.uint8] | int]] = {}

    def put(self, index: Any, pages: Pages, bounds: NDArray[np.int64]) -> None:
        """Store a batch from `pages`; `bounds` gives the start of each shard. Both may be reused afterwards.

        Batches are read back in the order of their indexes, even if they arrive in another order.
        """
        size = int(bounds[-1])
        if not size:
            return
        n_bytes = size * self.dtype.itemsize
        with self._lock:
            keep = n_bytes <= self._memory
            if keep:
                self._memory -= n_bytes
        place: NDArray[np.uint8] | int
        if keep:
            place = buffers.empty(n_bytes, np.uint8)
            np.copyto(place, pages.empty(n_bytes, place.dtype))
        else:
            place = self._spill.write(pages.first(n_bytes))
        with self._lock:
            self._batches[index] = (bounds.copy(), place)

    def pages(self) -> AbstractContextManager[Pages]:
        """Lend memory for a batch."""
        return self._spill.pages()

    @property
    def indexes(self) -> list[Any]:
        """The indexes of the batches, ascending."""
        return sorted(self._batches)

    def segments(self, shard: int) -> NDArray[np.int64]:
        """Return the number of records of a shard in each batch, in batch order. Shape (n_batches,)."""
        return np.array([self._batches[i][0][shard + 1] - self._batches[i][0][shard] for i in self.indexes])

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of records of each shard. Shape (n_shards,)."""
        total = np.zeros(self.n_shards, np.int64)
        for bounds, _ in self._batches.values():
            total += np.diff(bounds)
        return total

    def read(self, shard: int, batches: slice = slice(None)) -> np.ndarray:
        """Return the records of a shard in batch order, of all batches or of a slice of them by rank."""
        return self._bring(
            [(index, *self._batches[index][0][shard : shard + 2].tolist()) for index in self.indexes[batches]]
        )

    def read_batch(self, index: Any) -> np.ndarray:
        """Return all records of a batch, in the order of their shards."""
        return self._bring([(index, 0, int(self._batches[index][0][-1]))])

    def _bring(self, segments: list[tuple[Any, int, int]]) -> np.ndarray:
        """Return the concatenated segments of batches, each given by its first and last record."""
        size = self.dtype.itemsize
        into = buffers.empty(sum(last - first for _, first, last in segments), self.dtype)
        rest, spilled = into.view(np.uint8), []
        for index, first, last in segments:
            place = self._batches[index][1]
            own, rest = rest[: (last - first) * size], rest[(last - first) * size :]
            if isinstance(place, np.ndarray):
                np.copyto(own, place[first * size : last * size])
            elif own.size:
                spilled.append((place + first * size, own))
        self._spill.read(*spilled)
        return into

    def read_ahead(self, shards: Iterable[int], pool: Pool, stage: str) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each shard that has records, and these; the next shard is read at the same time.

        Processing the shards is reported as a stage of the pool.
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
                records = [coming.result()]
                coming = reader.submit(self.read, todo[k + 1]) if k + 1 < len(todo) else None
                yield shard, records.pop()  # keeps no reference, so that the caller can free them
                step(int(sizes[shard]))

    def clear(self) -> None:
        """Discard all batches."""
        self._batches.clear()


class Packed:
    """Records written without gaps to a separate file that can be mapped."""

    def __init__(self, dtype: np.dtype, directory: Path) -> None:
        self.dtype = dtype
        self._spill = Spill(directory, named=True)
        self._pages = Pages()
        self._size = 0
        self._left = b""  # the bytes of an incomplete page, not yet written

    def append(self, records: np.ndarray) -> None:
        """Append records."""
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
        """Return all records as an array mapped from the file."""
        if self._left:
            room = self._pages.empty(PAGE, np.dtype(np.uint8))
            room[: len(self._left)] = np.frombuffer(self._left, np.uint8)
            self._spill.write(self._pages.first(PAGE))
        found = self._spill.map(0, self._size, self.dtype)
        self._spill.close()
        return found


class Behind:
    """Passes batches to `put` on a separate thread, so that writing does not delay other work."""

    def __init__(self, put: Callable[[Any, Pages, Any], None]) -> None:
        self._put = put
        self._writer = ThreadPoolExecutor(1, "fastbcubed-write")
        self._last: Future[None] | None = None
        self._idle = [Pages(), Pages()]

    def pages(self) -> Pages:
        """Return memory for the next batch."""
        return self._idle.pop()

    def hand_over(self, index: Any, pages: Pages, bounds: Any) -> None:
        """Store a batch in the background, after the previous one has been stored."""
        self._wait()
        self._last = self._writer.submit(self._put, index, pages, bounds)
        self._idle.insert(0, pages)  # the other pages are free now

    def settle(self) -> None:
        """Wait until all batches are stored, and release the memory."""
        try:
            self._wait()
        finally:
            self._writer.shutdown()
            self._idle.clear()

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()
            self._last = None
