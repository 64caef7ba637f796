"""Output files: written aside, then renamed, so that a file is there as a whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fastbcubed.errors import FileFormatError

if sys.platform != "win32":
    import fcntl


def require_writable(directory: Path) -> None:
    """Raise if no file can be written to a directory, which need not be there yet; leaves no trace."""
    try:
        there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise FileFormatError(
            f"cannot write to {directory}: {error.strerror}. Name a directory that can be written to"
        ) from error


def make_directory(path: Path) -> Path:
    """Make a directory if it is not there yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileFormatError(f"cannot make the directory {path}: {error.strerror}") from error
    return path


@contextmanager
def written_aside(file: Path) -> Iterator[str]:
    """Give the name of a file to write, which becomes `file` at the end, or is removed after an error."""
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
    """Add text to the end of a file, which others may have begun: as a whole, or not at all."""
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
    """Remove what killed processes left of their attempts to write this file.

    Whoever writes holds a lock, which ends with the process; so what is locked is left alone.
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
    """Make a file beside `file`, and lock it; return what holds the lock, and its name."""
    while True:
        handle, aside = tempfile.mkstemp(prefix=_prefix(file), dir=file.parent)
        if sys.platform == "win32":
            os.close(handle)
            return None, aside
        with suppress(OSError):  # a file system without locks, on which nothing is stale
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, aside
        os.close(handle)  # another process took it for stale before it was locked
