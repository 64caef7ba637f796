"""Where compiled kernels are kept: where Numba keeps them, else in a temporary directory, else nowhere.

Numba neither keeps nor reads anything where it cannot write. In a container whose files cannot be written,
what was compiled with the image is therefore linked into a directory that can be.
"""

from __future__ import annotations

import os
import pickle
import signal
import stat
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property, partial, wraps
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.codegen import JitEngine
from numba.core.runtime.nrt import rtsys

config: Any = numba.config
#: Whether compiled kernels are kept; a fleet of processes that start together may turn that off.
WANTED = os.environ.get("FASTBCUBED_CACHE", "1") != "0"
#: Why compiled kernels could not be kept, though there was a directory for them.
failures: list[str] = []

#: Directories for temporary files, after those that the environment names.
PLACES = ("/tmp", "/var/tmp", "/dev/shm")

#: The directory for temporary files in which kernels are kept, if they are.
fallbacks: set[str] = set()

#: Bytes of the checksum of a file.
CHECKSUM = 4

_lock = threading.Lock()


class Sturdy:
    """The cache of a kernel on a disk that may fail.

    What cannot be read is compiled again; what cannot be written is not kept. It is opened when the kernel is first
    called, as Numba then tries whether it can write there: most kernels that are loaded are never called.
    """

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._opened = opened

    @cached_property
    def _cache(self) -> Any:
        return self._opened()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return a kernel that was kept; None if there is none, or if its file is damaged."""
        try:
            found = self._load(signature, context)
            if found is None or tuple(found.signature.args) == tuple(signature):
                return found
        except Exception:  # unpickling a damaged file may raise anything
            pass
        with suppress(OSError):  # it is damaged, or of another signature: two processes wrote at once
            self._cache.flush()
        return None

    def _load(self, signature: Any, context: Any) -> Any:
        """Load a kernel as Numba does, but not the tables of all that it can compile.

        These take longer than our kernels; a compilation asks for them itself.
        """
        load = getattr(self._cache, "_load_overload", None)
        if load is None:  # another Numba has another way
            return self._cache.load_overload(signature, context)
        rtsys.initialize(context)
        with self._cache._guard_against_spurious_io_errors():
            return load(signature, context)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a kernel, or note why that cannot be."""
        try:
            self._cache.save_overload(signature, compiled)
        except OSError as error:
            failures.append(f"{error.strerror or error}")


class CheckedFile(IndexDataCacheFile):
    """Numba's files of a kernel, each with its checksum at the end, where pickle reads no more.

    Machine code with flipped bits would be run, and end the process.
    """

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return data + _checksum(data)

    def _load_data(self, name: str) -> Any:
        data = memoryview(Path(self._data_path(name)).read_bytes())
        if _checksum(data[:-CHECKSUM]) != data[-CHECKSUM:]:
            raise ValueError(f"{name} is damaged")
        return pickle.loads(data)

    def _save_index(self, overloads: Any) -> None:
        self._save_data(self._index_name, (self._version, self._source_stamp, overloads))

    def _load_index(self) -> Any:
        try:
            *made_by, overloads = self._load_data(self._index_name)
        except FileNotFoundError:
            return {}
        return overloads if made_by == [self._version, self._source_stamp] else {}


def _checksum(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(CHECKSUM, "little")


class CheckedCache(FunctionCache):
    """Numba's cache of a kernel, in files with checksums."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = CheckedFile(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )


def keep(kernel: Any) -> None:
    """Keep what is compiled of a kernel, where there is a directory for it."""
    if hasattr(kernel, "enable_caching"):  # else Numba is told not to compile
        source = Path(kernel.py_func.__code__.co_filename)
        kernel._cache = Sturdy(partial(_opened, kernel.py_func, source, _stamp(source)))


def _opened(function: Any, source: Path, loaded: tuple[int, int] | None) -> Any:
    """Return where a kernel is kept, whose source was `loaded` as it then was; Numba's cache of nothing if nowhere."""
    if _stamp.__wrapped__(source) != loaded:
        return NullCache()  # another version was installed since: what we compile is not of that
    try:
        opened = CheckedCache(function)
    except RuntimeError:  # Numba has found no directory that it can write to
        opened = _opened_in(temporary(), function)
    if opened.cache_path is not None:
        _link_compiled(source, Path(opened.cache_path))
    return opened


def _opened_in(directory: str | None, function: Any) -> Any:
    if directory is None:
        return NullCache()
    with _lock:
        named, config.CACHE_DIR = config.CACHE_DIR, directory
        try:
            opened = CheckedCache(function)
        except RuntimeError:
            return NullCache()
        finally:
            config.CACHE_DIR = named
    fallbacks.add(directory)
    return opened


@cache
def _stamp(source: Path) -> tuple[int, int] | None:
    """Return when a file was written, and its size; None if it is not there."""
    try:
        found = source.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@cache
def temporary() -> str | None:
    """Return a directory for temporary files that nobody else can write to; None if there is none."""
    user = os.getuid() if hasattr(os, "getuid") else None
    named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    for parent in filter(None, [*named, *PLACES]):
        path = Path(parent, "fastbcubed" if user is None else f"fastbcubed-{user}")
        try:
            path.mkdir(0o700, exist_ok=True)
            found = path.lstat()
            tempfile.TemporaryFile(dir=path).close()
        except OSError:
            continue
        ours = user is None or (found.st_uid == user and not found.st_mode & 0o077)
        if stat.S_ISDIR(found.st_mode) and ours:
            return str(path)
    return None


@cache
def _link_compiled(source: Path, directory: Path) -> None:
    """Link what was compiled of a source file into directories that cannot be written now."""
    places = [source.parent / "__pycache__"]
    if config.CACHE_DIR:
        places.insert(0, Path(config.CACHE_DIR, directory.name))
    for place in places:
        if place != directory and place.is_dir() and not os.access(place, os.W_OK):
            for file in place.glob(f"{source.stem}.*.nb[ic]"):
                with suppress(OSError):  # it is there already, or links cannot be made
                    (directory / file.name).symlink_to(file)


def kept_in(kernel: Any) -> str | None:
    """Return the directory that a kernel and others are kept below; None if they are not kept."""
    path = kernel.stats.cache_path if hasattr(kernel, "stats") else None
    return None if path is None else os.path.dirname(path)


@contextmanager
def signal_waiting(number: int) -> Iterator[None]:
    """Let a signal wait for the end of work in which an exception that its handler raises would be lost."""
    handler = signal.getsignal(number)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield  # no handler of Python's, or none that runs here
        return
    came: list[Any] = []
    signal.signal(number, lambda _, frame: came.append(frame))
    try:
        yield
    finally:
        signal.signal(number, handler)
        if came:
            handler(number, came[0])


def _uninterrupted(finalize: Any) -> Any:
    @wraps(finalize)
    def finalized(engine: Any) -> Any:
        with signal_waiting(signal.SIGINT), signal_waiting(signal.SIGTERM):
            return finalize(engine)

    return finalized


# LLVM calls Numba back while it makes or loads machine code, and goes on whatever that raises, Ctrl-C as well.
JitEngine.finalize_object = _uninterrupted(JitEngine.finalize_object)
