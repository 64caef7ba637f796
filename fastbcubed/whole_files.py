"""Files that are there as a whole or not at all: written aside, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fastbcubed.errors import FileFormatError

__all__ = ["make_directory", "written_aside"]


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
        handle, aside = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        os.close(handle)
        try:
            yield aside
            os.chmod(aside, 0o644)
            os.replace(aside, file)
        except BaseException:
            with suppress(OSError):
                os.unlink(aside)
            raise
    except OSError as error:
        raise FileFormatError(f"cannot write {file}: {error.strerror or error}") from error
