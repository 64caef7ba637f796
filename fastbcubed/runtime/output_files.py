"""Output files: atomic writes, large files written in the background, Parquet table by table, checksums."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from fastbcubed.errors import FileFormatError, short
from fastbcubed.runtime.arguments import local_path
from fastbcubed.runtime.spill import Behind, Pages, write_all

if sys.platform != "win32":
    import fcntl


def require_writable(directory: Path) -> None:
    """Raise FileFormatError if files cannot be written to a directory, which need not exist yet; leaves no trace."""
    local_path(directory)
    try:
        there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise FileFormatError(
            f"cannot write to {directory}: {error.strerror}. Name a writable directory"
        ) from error


def make_directory(path: Path) -> Path:
    """Create a directory if it does not exist."""
    local_path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"cannot make the directory {short(str(path))}: {error.strerror}") from error
    return path


@contextmanager
def written_aside(file: Path) -> Iterator[str]:
    """Yield the name of a temporary file, which replaces `file` at the end, or is removed if an error is raised."""
    local_path(file)
    try:
        remove_stale(file)
        handle, aside = _open_aside(file)
        try:
            yield aside
            os.chmod(aside, 0o644)
            os.replace(aside, file)
        except BaseException:
            with suppress(OSError):
                os.unlink(aside)
            raise
        finally:
            if handle is not None:
                os.close(handle)
    except OSError as error:
        raise FileFormatError(f"cannot write {file}: {error.strerror or error}") from error


def append_text(file: str, text: str) -> None:
    """Append text to a file, which another process may have begun; either all of the text is written or none."""
    local_path(file)
    made = not os.path.lexists(file)
    try:
        with open(file, "ab", buffering=0) as out:
            before, rest = os.fstat(out.fileno()), memoryview(text.encode())
            try:
                while rest:
                    rest = rest[out.write(rest) :]
            except BaseException:
                if stat.S_ISREG(before.st_mode):
                    out.truncate(before.st_size)
                    if made:
                        os.unlink(file)
                raise
    except OSError as error:
        raise FileFormatError(f"cannot write {file}: {error.strerror or error}") from error


def remove_stale(file: Path) -> None:
    """Remove temporary files left by killed processes that were writing this file.

    A writer holds a lock, which ends with its process; locked files are not removed.
    """
    if sys.platform == "win32":
        return
    with suppress(OSError):
        for entry in file.parent.iterdir():
            if entry.name.startswith(_prefix(file)):
                with suppress(OSError), open(entry, "r+b") as held:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    entry.unlink()


def _prefix(file: Path) -> str:
    return f".{file.name}.fastbcubed-"


def _open_aside(file: Path) -> tuple[int | None, str]:
    """Create and lock a temporary file next to `file`; return the descriptor of the lock, and its name."""
    while True:
        handle, aside = tempfile.mkstemp(prefix=_prefix(file), dir=file.parent)
        if sys.platform == "win32":
            os.close(handle)
            return None, aside
        with suppress(OSError):  # the file system may not support locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, aside
        os.close(handle)  # another process removed the file as stale before it was locked


PREFIX = ".fastbcubed-new-"


def is_staging_name(name: object) -> bool:
    """Return whether a string is a valid name of a staging directory."""
    return isinstance(name, str) and name.startswith(PREFIX) and Path(name).name == name


class Staging:
    """Files written for a directory; a context manager that removes them at the end unless they were published.

    Parameters
    ----------
    directory : Path
        Created if it does not exist, and then removed again if nothing was published.
    manifest : str
        Name of the file whose rename publishes all others.
    """

    def __init__(self, directory: Path, manifest: str) -> None:
        made = [path for path in (directory, *directory.absolute().parents) if not os.path.exists(path)]
        self.directory = make_directory(directory).absolute()
        self.manifest = manifest
        try:
            settle(self.directory, manifest)
            self._lock, self._path = _make_hidden(self.directory)
        except OSError as error:
            _remove_empty(made)
            raise self._failed(error) from error
        own = (self._lock, self.directory, self._path, manifest)
        self._close = weakref.finalize(self, _end_if_own, os.getpid(), made, *own)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *exc: object) -> None:
        self.discard()

    def discard(self) -> None:
        """Remove the files that have not been published."""
        self._close()

    @property
    def name(self) -> str:
        """The name of the hidden directory in which files are written."""
        return self._path.name

    def path(self, name: str) -> Path:
        """Return the path to which the file of this name is to be written."""
        return self._path / name

    def is_for(self, directory: Path) -> bool:
        """Return whether the files are for this directory and not yet published."""
        return self._close.alive and directory.exists() and directory.samefile(self.directory)

    def publish(self, text: str, obsolete: Iterable[str]) -> None:
        """Publish the files: write the manifest, and move them to their places.

        Parameters
        ----------
        text : str
            The manifest: a JSON object whose "files" has the names of the other files as keys, and whose "staged_in"
            is the name of the hidden directory.
        obsolete : iterable of str
            Names of files of earlier outputs to remove.
        """
        try:
            self.path(self.manifest).write_text(text, encoding="utf-8")
            _require_room(self.directory, [staged.name for staged in self._path.iterdir()])
            with _alone(self.directory):
                os.replace(self.path(self.manifest), self.directory / self.manifest)
                _finish(self.directory, self._path, self.manifest)
                for name in obsolete:
                    (self.directory / name).unlink(missing_ok=True)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> FileFormatError:
        cause = f"{getattr(error, 'filename', None) or self.directory}: {error.strerror or error}"
        with suppress(AttributeError, OSError):  # there may be no hidden directory or no readable manifest
            if _is_published(self.directory, self._path, self.manifest):
                return FileFormatError(
                    f"the new result in {self.directory} is complete and can be loaded, but not all of its "
                    f"files could be moved into place: {cause}. Saving there again moves or replaces them"
                )
        return FileFormatError(f"cannot write to {self.directory}: {cause}")


def settle(directory: Path, manifest: str) -> None:
    """Finish publishing, or remove, files that killed processes left in a directory.

    A writer holds a lock, which ends with its process; locked directories are not touched.
    """
    for hidden in [entry for entry in directory.iterdir() if entry.name.startswith(PREFIX)]:
        with suppress(OSError), _alone(directory):
            lock = _lock(hidden)
            if lock is not None or _is_published(directory, hidden, manifest):
                _end(lock, directory, hidden, manifest)


def _end_if_own(process: int, made: Iterable[Path], *own: Any) -> None:
    """Finish an output of this process; in a forked child, do nothing."""
    if os.getpid() == process:
        _end(*own)
        _remove_empty(made)


def _remove_empty(made: Iterable[Path]) -> None:
    """Remove directories, innermost first, up to one that is not empty."""
    with suppress(OSError):
        for path in made:
            path.rmdir()


def _end(lock: int | None, directory: Path, hidden: Path, manifest: str) -> None:
    """Move published files to their places, or remove unpublished ones, and remove the hidden directory."""
    try:
        with suppress(OSError):
            _finish(directory, hidden, manifest)
    finally:
        if lock is not None:
            os.close(lock)


def _finish(directory: Path, hidden: Path, manifest: str) -> None:
    if hidden.exists() and _is_published(directory, hidden, manifest):
        for staged in list(hidden.iterdir()):
            os.replace(staged, directory / staged.name)
    shutil.rmtree(hidden, ignore_errors=True)


def _require_room(directory: Path, names: Iterable[str]) -> None:
    """Raise IsADirectoryError if a directory has the name of a file to be written."""
    for name in names:
        if (directory / name).is_dir():
            raise IsADirectoryError(errno.EISDIR, "a directory of this name exists", str(directory / name))


def _is_published(directory: Path, hidden: Path, manifest: str) -> bool:
    """Return whether the current manifest names this hidden directory."""
    if not (directory / manifest).is_file():
        return False
    try:
        content: Any = json.loads((directory / manifest).read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("staged_in") == hidden.name


def _make_hidden(directory: Path) -> tuple[int | None, Path]:
    """Create and lock a hidden directory; return the descriptor of the lock, and the path."""
    while True:
        path = directory / f"{PREFIX}{os.urandom(8).hex()}"
        try:
            path.mkdir()
            lock = _lock(path)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
        if path.exists():
            return lock, path
        if lock is not None:
            os.close(lock)  # another process removed it as stale


def _lock(directory: Path) -> int | None:
    """Lock a directory, and return the descriptor; None if it is already locked, or if locks are not supported."""
    if sys.platform == "win32":
        return None
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Where locks are supported, keep other processes from moving files in a directory inside this context."""
    if sys.platform == "win32":
        yield
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


#: Number of bytes read at once.
READ_CHUNK = 1 << 22


class Stamp(NamedTuple):
    """Size and CRC-32 checksum of a file."""

    bytes: int
    crc32: int

    def and_then(self, data: Any) -> Stamp:
        """Return the stamp of the file after appending more bytes."""
        return Stamp(self.bytes + memoryview(data).nbytes, zlib.crc32(data, self.crc32))


#: The stamp of an empty file.
NO_BYTES = Stamp(0, 0)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; raise FileFormatError for a pipe, a device, a directory or a missing file."""
    name = short(str(path))
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise FileFormatError(f"{name} is not a regular file")
        file = open(path, "rb", opener=_open_at_once)
    except (OSError, ValueError) as error:
        raise FileFormatError(f"cannot read {name}: {getattr(error, 'strerror', None) or error}") from error
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # checked again: the path may have been replaced
        return file
    file.close()
    raise FileFormatError(f"{name} is not a regular file")


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the other end if it is a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def stamp_of(file: BinaryIO) -> Stamp:
    """Return the stamp of an open file, and rewind the file."""
    stamp = NO_BYTES
    file.seek(0)
    while data := file.read(READ_CHUNK):
        stamp = stamp.and_then(data)
    file.seek(0)
    return stamp


def copy_stamped(source: int, path: Path) -> Stamp:
    """Copy the bytes of an open file without moving its position; return the stamp of the copy."""
    stamp = NO_BYTES
    with open(path, "wb") as to:
        while data := os.pread(source, READ_CHUNK, stamp.bytes):
            to.write(data)
            stamp = stamp.and_then(data)
    return stamp


#: Number of bytes written at once.
WRITE_CHUNK = 4 << 20


class LargeFile(io.RawIOBase):
    """A file that is written sequentially; a thread writes one chunk while the next is filled."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._file = os.open(path, os.O_WRONLY)
        self._behind = Behind(self._put)
        self._pages = self._behind.pages()
        self._filled = self._at = 0
        self.stamp = NO_BYTES

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written."""
        return self._at + self._filled

    def write(self, data: Any) -> int:
        """Append bytes."""
        rest = memoryview(data).cast("B")
        size = rest.nbytes
        while rest.nbytes:
            part = rest[: WRITE_CHUNK - self._filled]
            room = self._pages.empty(WRITE_CHUNK, np.dtype(np.uint8))
            room.data[self._filled : self._filled + part.nbytes] = part
            self._filled += part.nbytes
            rest = rest[part.nbytes :]
            if self._filled == WRITE_CHUNK:
                self._hand_over()
        return size

    def close(self) -> None:
        """Write the remaining bytes, and close the file."""
        if self.closed:
            return
        try:
            try:
                if self._filled:
                    self._hand_over()
            finally:
                self._behind.settle()
        finally:
            super().close()  # called first, so that Ctrl-C cannot cause the rest to run twice
            os.close(self._file)

    def _hand_over(self) -> None:
        """Pass the full chunk to the writing thread, after it has written the previous one."""
        self._behind.hand_over(self._at, self._pages, self._filled)
        self._pages = self._behind.pages()
        self._at, self._filled = self._at + self._filled, 0

    def _put(self, at: int, pages: Pages, size: int) -> None:
        data = pages.empty(size, np.dtype(np.uint8)).data
        write_all(self._file, data, at)
        self.stamp = self.stamp.and_then(data)


#: Number of rows in the sample that decides on encodings; share of distinct values below which values count as
#: repeating; compressed size, as a share of the plain size, below which compression is used.
SAMPLE, REPEATED, SMALL_ENOUGH = 1 << 14, 0.9, 0.6
#: Maximum number of values of a dictionary column, and maximum share of distinct numbers in a sample, for which a
#: column is written with a dictionary.
FEW_VALUES, FEW_NUMBERS = 1 << 8, 1 / 16
#: Maximum number of rows in a row group; looking up a row reads its whole group.
ROW_GROUP = 1 << 17
#: Number of values encoded at once.
BATCH = 1 << 14


def without_nulls(table: pa.Table, names: Collection[str]) -> pa.Table:
    """Return a table whose schema declares these columns non-null, so that files need no null flags."""
    return _declared(table, {name: False for name in names})


def maybe_with_nulls(table: pa.Table) -> pa.Table:
    """Return a table whose schema lets all columns have nulls, whatever the schema of its file declares."""
    return _declared(table, dict.fromkeys(table.column_names, True))


def _declared(table: pa.Table, nullable: dict[str, bool]) -> pa.Table:
    fields = [field.with_nullable(nullable.get(field.name, field.nullable)) for field in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields, table.schema.metadata))


class TableWriter:
    """Writes tables of one schema to a Parquet file, one after the other.

    A file given by its path must exist and be empty.

    Most output consists of numbers that hardly repeat. Dictionaries and strong compression would take longer than all
    previous work, and hashed ids cannot be compressed. Small integers shrink to a tenth if written as differences, and
    scores of small clusters shrink with a dictionary; both are read faster than compressed data.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._sink: Any = None
        self._writer: Any = None

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            if self._writer is not None:
                self._writer.close()
        finally:
            if self._sink is not self._file and self._sink is not None:
                self._sink.close()

    @property
    def stamp(self) -> Stamp | None:
        """Size and checksum of the file, once closed; None if the file was not given by its path."""
        return self._sink.stamp if isinstance(self._sink, LargeFile) else None

    def add(self, table: pa.Table) -> None:
        """Append a table."""
        import pyarrow.parquet as pq

        if self._writer is None:
            by_path = isinstance(self._file, str | os.PathLike)
            self._sink = LargeFile(os.fspath(self._file)) if by_path else self._file
            self._writer = pq.ParquetWriter(self._sink, table.schema, **_how_to_write(table.slice(0, SAMPLE)))
        self._writer.write_table(table, row_group_size=ROW_GROUP)


def _how_to_write(sample: pa.Table) -> dict[str, Any]:
    """Return the columns to write with a dictionary, as differences, and compressed, judged by a sample of rows.

    Integers are written as differences, and others compressed, if that makes them sufficiently smaller.
    """
    import pyarrow.parquet as pq

    names = sample.column_names
    repeat = [name for name in names if _repeats(sample[name], is_attribute="." in name)]
    differ = [name for name in names if pa.types.is_integer(sample[name].type) and name not in repeat]
    how = {"use_dictionary": repeat or False, "write_page_checksum": True, "write_batch_size": BATCH}
    options = _options(differ, [name for name in names if name not in differ])
    file = pa.BufferOutputStream()
    pq.write_table(sample, file, **how, **options)
    group = pq.read_metadata(pa.BufferReader(file.getvalue())).row_group(0)
    small = set[str]()
    for column in map(group.column, range(group.num_columns)):
        path = column.path_in_schema
        name = max((each for each in names if f"{path}.".startswith(f"{each}.")), key=len)
        plain = sample[name].nbytes if name in differ else column.total_uncompressed_size
        if column.total_compressed_size < SMALL_ENOUGH * plain:
            small.add(name)
    return how | _options(
        [n for n in differ if n in small], [n for n in names if n in small and n not in differ]
    )


def _options(differ: Sequence[str], compressed: Sequence[str]) -> dict[str, Any]:
    """Return Parquet options for columns written as differences and for compressed columns."""
    return {
        "column_encoding": dict.fromkeys(differ, "DELTA_BINARY_PACKED") or None,
        "compression": dict.fromkeys(compressed, "snappy") or "none",
    }


def _repeats(sample: pa.ChunkedArray, *, is_attribute: bool) -> bool:
    """Return whether a dictionary is worthwhile, because values are few or, for an attribute, repeat."""
    if pa.types.is_floating(sample.type) and not is_attribute:
        return len(sample.unique()) <= FEW_NUMBERS * len(sample)
    if pa.types.is_dictionary(sample.type):
        return is_attribute or all(len(chunk.dictionary) <= FEW_VALUES for chunk in sample.chunks)
    if not is_attribute:
        return False
    if pa.types.is_nested(sample.type):
        return True
    if isinstance(sample.type, pa.BaseExtensionType):
        sample = sample.cast(sample.type.storage_type)
    return len(sample.unique()) < REPEATED * len(sample)


class OwnPlace(io.RawIOBase):
    """A view of an open file with its own position; closing it leaves the file open."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file, self._at = file, 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor of the file."""
        number: int = self._file.fileno()
        return number

    def tell(self) -> int:
        """Return the position of the next byte to read."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Set the position, relative to the beginning, the current position, or the end."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: os.fstat(self.fileno()).st_size}
        self._at = base[whence] + offset
        return self._at

    def readinto(self, into: Any) -> int:
        """Read bytes until the buffer is full or the file ends; return their number."""
        room, done = memoryview(into).cast("B"), 0
        while done < room.nbytes and (got := os.preadv(self.fileno(), [room[done:]], self._at)):
            done, self._at = done + got, self._at + got
        return done
