"""Outputs of several files, which take the place of earlier ones together: one rename decides.

They are written in a hidden directory within the one that they are for. One of them, the manifest, is JSON
that names the hidden directory. Its rename is what decides: until then the earlier files count, all of
them, and from then on the new ones, whether they have been moved to their places or wait in the hidden
directory. So a process may be killed at any moment: whoever writes to the directory next finishes what had
been decided, and removes what had not.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fastbcubed.errors import FileFormatError
from fastbcubed.runtime.written import make_directory

if sys.platform != "win32":
    import fcntl

PREFIX = ".fastbcubed-new-"


def is_staging_name(name: object) -> bool:
    """Tell whether a hidden directory may have this name."""
    return isinstance(name, str) and name.startswith(PREFIX) and Path(name).name == name


class Staging:
    """Files that are written for a directory; a context manager, which removes them unless they were published.

    Parameters
    ----------
    directory : Path
        Made if need be.
    manifest : str
        The file whose rename decides.
    """

    def __init__(self, directory: Path, manifest: str) -> None:
        self.directory = make_directory(directory).absolute()
        self.manifest = manifest
        try:
            settle(self.directory, manifest)
            self._lock, self._path = _make_hidden(self.directory)
        except OSError as error:
            raise self._failed(error) from error
        own = (self._lock, self.directory, self._path, manifest)
        self._close = weakref.finalize(self, _end_if_own, os.getpid(), *own)

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *exc: object) -> None:
        self.discard()

    def discard(self) -> None:
        """Remove what has not been published."""
        self._close()

    @property
    def name(self) -> str:
        """The name of the hidden directory."""
        return self._path.name

    def path(self, name: str) -> Path:
        """Return where to write the file that will have this name."""
        return self._path / name

    def is_for(self, directory: Path) -> bool:
        """Tell whether the files are for this directory, and still to be published."""
        return self._close.alive and directory.exists() and directory.samefile(self.directory)

    def publish(self, text: str, obsolete: Iterable[str]) -> None:
        """Put the files in place.

        Parameters
        ----------
        text : str
            The manifest: a JSON object whose "files" has the names of the others as keys, and whose
            "staged_in" is the name of the hidden directory.
        obsolete : iterable of str
            Files of earlier outputs that are to go.
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
        with suppress(AttributeError, OSError):  # there is no hidden directory yet, or nothing can be read
            if _is_published(self.directory, self._path, self.manifest):
                return FileFormatError(
                    f"the new result in {self.directory} is complete and can be loaded, but not all of its files could "
                    f"be moved to their places: {cause}. The next one that is saved there, or this one saved again, "
                    "moves or replaces them"
                )
        return FileFormatError(f"cannot write to {self.directory}: {cause}")


def settle(directory: Path, manifest: str) -> None:
    """Finish or remove what processes that were killed have left in a directory.

    Whoever writes holds a lock, which ends with the process; so what is locked is left alone.
    """
    for hidden in [entry for entry in directory.iterdir() if entry.name.startswith(PREFIX)]:
        with suppress(OSError), _alone(directory):
            lock = _lock(hidden)
            if lock is not None or _is_published(directory, hidden, manifest):
                _end(lock, directory, hidden, manifest)


def _end_if_own(process: int, *own: Any) -> None:
    """End what this process has begun; one that was forked off leaves it alone."""
    if os.getpid() == process:
        _end(*own)


def _end(lock: int | None, directory: Path, hidden: Path, manifest: str) -> None:
    """Move published files to their places, and remove others; then there is no hidden directory any more."""
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
    """Raise if a file cannot have its place."""
    for name in names:
        if (directory / name).is_dir():
            raise IsADirectoryError(errno.EISDIR, "there is a directory of this name", str(directory / name))


def _is_published(directory: Path, hidden: Path, manifest: str) -> bool:
    """Tell whether the manifest that is in force names this hidden directory."""
    if not (directory / manifest).is_file():
        return False
    try:
        found: Any = json.loads((directory / manifest).read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("staged_in") == hidden.name


def _make_hidden(directory: Path) -> tuple[int | None, Path]:
    """Make a hidden directory, and lock it; return what holds the lock, and its path."""
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
            os.close(lock)  # another process took it for one that was left


def _lock(directory: Path) -> int | None:
    """Lock a directory; None where it is locked already, or on a system without locks."""
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
    """Keep others from moving files of a directory meanwhile, on systems with locks."""
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
