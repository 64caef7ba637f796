"""File locations: local paths and URIs behind a common interface."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from io import BytesIO
from itertools import takewhile
from typing import Any, Protocol
from urllib.parse import quote, unquote

import pyarrow as pa

from fastbcubed.errors import FileFormatError

State = tuple[int, int, int]

_URI = re.compile(r"[A-Za-z][\w+.:-]+://")
#: The start of a URI's options; a question mark without a key is a wildcard.
_OPTIONS = re.compile(r"\?[A-Za-z_]\w*=")
#: A key with its secret, which must not appear in messages.
_SECRET = re.compile(r"//[^/@]*:[^/@]*@")
#: pyarrow's message about a scheme that it does not know or was built without.
_NOT_SERVED = re.compile(r"Unrecognized filesystem|(compiled|built) without")
#: Exceptions that requests may raise: from the network, Arrow, or the library for a scheme.
_REFUSALS = (OSError, ValueError, RuntimeError, ImportError, LookupError, TypeError, NotImplementedError)


class Place(Protocol):
    """Interface of a file system; by default it has no folders.

    Files are called by the names that messages show: paths, or URIs without secrets.
    """

    read_ahead: int = 1 << 20  #: bytes read at a time when a column is read piece by piece
    at_once: int = 1  #: number of files to open concurrently, so that requests overlap
    unnamed: bool = False  #: whether file names do not indicate the format

    def is_folder(self, name: str) -> bool:
        """Return whether the folder exists."""
        return False

    def exists(self, name: str) -> bool:
        """Return whether the file or folder exists."""

    def below(self, folder: str) -> list[str]:
        """Return all files below a folder, sorted."""
        return []

    def matching(self, pattern: str) -> list[str]:
        """Return the files that a glob matches, sorted."""
        return []

    def state(self, name: str) -> State:
        """Return values that change when the file changes; the second is its size."""

    def open(self, name: str) -> Any:
        """Open a file for random access."""

    def open_text(self, name: str) -> Any:
        """Open a file for sequential reading, decompressing it if its name says that it is compressed."""


class _Local(Place):
    """The file system of this machine, with files named by path."""

    def is_folder(self, name: str) -> bool:
        return os.path.isdir(name)

    def exists(self, name: str) -> bool:
        return os.path.exists(name)

    def below(self, folder: str) -> list[str]:
        return sorted(os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)

    def matching(self, pattern: str) -> list[str]:
        return sorted(filter(os.path.isfile, glob.glob(pattern, recursive=True)))

    def state(self, name: str) -> State:
        try:
            found = os.stat(name)
        except OSError:
            return (0, 0, 0)
        return (found.st_ino, found.st_size, found.st_mtime_ns)

    def open(self, name: str) -> pa.NativeFile:
        return pa.OSFile(name)

    def open_text(self, name: str) -> pa.NativeFile:
        return pa.input_stream(name, compression="detect")


#: The file system of this machine.
LOCAL: Place = _Local()


class _Remote(Place):
    """An Arrow file system, with files named by URI."""

    read_ahead = 4 << 20
    at_once = 16

    def __init__(self, system: Any, name: str, path: str) -> None:
        self._system = system
        pairs = zip(reversed(name), reversed(path), strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        self._shown, self._root = name[: len(name) - common], path[: len(path) - common]

    def is_folder(self, name: str) -> bool:
        return self._info(name).type.name == "Directory"

    def exists(self, name: str) -> bool:
        return self._info(name).type.name != "NotFound"

    def below(self, folder: str) -> list[str]:
        return self._listed(self._path(folder), True)

    def matching(self, pattern: str) -> list[str]:
        base, parts = split_pattern(self._path(pattern))
        cut = len(base.rstrip("/")) + 1
        found = self._listed(base, len(parts) > 1 or "**" in parts)
        return [name for name in found if matches(self._path(name)[cut:].split("/"), parts)]

    def state(self, name: str) -> State:
        found = self._info(name)
        return (0, found.size or 0, found.mtime_ns or 0)

    def open(self, name: str) -> pa.NativeFile:
        return self._system.open_input_file(self._path(name))

    def open_text(self, name: str) -> pa.NativeFile:
        return self._system.open_input_stream(self._path(name), compression="detect")

    def _path(self, name: str) -> str:
        return self._root + name.removeprefix(self._shown)

    def _info(self, name: str) -> Any:
        with _naming_file(name):
            return self._system.get_file_info(self._path(name))

    def _listed(self, folder: str, recursive: bool) -> list[str]:
        from pyarrow.fs import FileSelector

        with _naming_file(self._shown + folder.removeprefix(self._root)):
            selector = FileSelector(folder, allow_not_found=True, recursive=recursive)
            infos = self._system.get_file_info(selector)
        files = (info.path for info in infos if info.type.name == "File")
        return sorted(self._shown + path.removeprefix(self._root) for path in files)


def locate(text: str) -> tuple[Place, str]:
    """Return the file system of a path or URI, and the name of the file in it.

    pyarrow is tried first, then fsspec, an optional dependency, for schemes that pyarrow does not know.
    """
    if not is_uri(text):
        return LOCAL, at_home(text)
    options = _OPTIONS.search(text)
    uri, query = (text[: options.start()], text[options.start() :]) if options else (text, "")
    uri = re.sub(r"(?<=[^:/])/+$", "", uri)  # remove the slash after a folder
    name = _SECRET.sub("//", uri)
    base, parts = split_pattern(uri)
    from pyarrow.fs import FileSystem, LocalFileSystem

    try:
        with _naming_file(name):
            system, path = FileSystem.from_uri(quote(base, safe="%/:@&=+,;!$'()~") + query)
    except FileFormatError as error:
        if not _NOT_SERVED.search(str(error)):
            raise
        return _by_fsspec(uri + query)
    path = "/".join([path.rstrip("/"), *map(unquote, parts)]) if parts else path
    return (LOCAL, path) if isinstance(system, LocalFileSystem) else (_Remote(system, name, path), name)


def _by_fsspec(uri: str) -> tuple[Place, str]:
    scheme, name = uri.split("://")[0], _SECRET.sub("//", uri)
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise FileFormatError(
            f"{name} cannot be opened: pyarrow does not know {scheme}://. Install fsspec and, if the scheme "
            "needs one, its own package; or copy the data to a local disk."
        ) from error
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    class Handler(FSSpecHandler):  # type: ignore[misc]
        def open_input_file(self, path: str) -> Any:
            opened = self.fs.open(path, mode="rb")
            # fsspec's memory file system shares one object, and its position, among all readers
            if isinstance(opened, BytesIO):
                return pa.BufferReader(opened.getbuffer())
            return pa.PythonFile(opened, mode="r")

        open_input_stream = open_input_file

    with _naming_file(name):
        system, path = url_to_fs(uri)
    return _Remote(PyFileSystem(Handler(system)), name, path), name


def at_home(path: str) -> str:
    """Return a path with a leading tilde expanded, unless there is a file with this very name."""
    return path if not path.startswith("~") or os.path.lexists(path) else os.path.expanduser(path)


@contextmanager
def _naming_file(name: str) -> Iterator[None]:
    """Turn any error of a file system into an error that names the file."""
    try:
        yield
    except _REFUSALS as error:
        cause = _SECRET.sub("//", (str(error).strip() or type(error).__name__).splitlines()[0].rstrip("."))
        raise FileFormatError(
            f"{name} cannot be reached: {cause}. Check the address, its options and your access to it."
        ) from error


def is_uri(text: str) -> bool:
    """Return whether a string begins with a scheme and ``://``, like a URI."""
    return _URI.match(text) is not None


def is_pattern(name: str) -> bool:
    """Return whether a name has a glob's wildcards."""
    return any(letter in name for letter in "*?[")


def split_pattern(name: str) -> tuple[str, list[str]]:
    """Return the folder before the first part with a wildcard, and the list of remaining parts.

    Examples
    --------
    >>> split_pattern("d/year=*/*.parquet")
    ('d', ['year=*', '*.parquet'])
    """
    parts = name.split("/")
    first = next((at for at, part in enumerate(parts) if is_pattern(part)), len(parts))
    return "/".join(parts[:first]) or name[: name.startswith("/")], parts[first:]


def matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether the parts of a path match those of a glob, as in `glob.glob` with ``recursive=True``."""
    if not parts or not pattern:
        return not parts and all(each == "**" for each in pattern)
    hidden = parts[0].startswith(".") and not pattern[0].startswith(".")
    if pattern[0] == "**":
        return matches(parts, pattern[1:]) or (not hidden and matches(parts[1:], pattern))
    return not hidden and fnmatchcase(parts[0], pattern[0]) and matches(parts[1:], pattern[1:])
