"""Kernels compiled by Numba, and the cache of their code.

Numba neither reads nor writes a cache in a read-only directory. In a container with read-only files, the
kernels compiled with the image are therefore linked into a writable directory.
"""

from __future__ import annotations

import errno
import hashlib
import os
import pickle
import stat
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import types
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    NullCache,
)
from numba.core.runtime.nrt import rtsys

from fastbcubed.kernels.jit import failures
from fastbcubed.kernels.libraries import OfParts, OfWholes, as_part

if sys.platform != "win32":
    import fcntl

config: Any = numba.config
#: The newest Numba with which the tests passed. This module and `libraries` change what is private in it; with a newer
#: one, kernels are compiled by its public interface alone, and not cached: it would not notice changed callees.
TRIED = (0, 68)
#: Whether compiled kernels are cached; fleets of processes that start together may turn this off.
WANTED = os.environ.get("FASTBCUBED_CACHE", "1") != "0"
#: Directories for temporary files, tried after those named by the environment.
PLACES = ("/tmp", "/var/tmp", "/dev/shm")

#: Files of source code, with the time of their last change and their size.
Stamps = Mapping[str, tuple[int, int] | None]
#: What finds Numba's directories for all packages: the one of NUMBA_CACHE_DIR, and the one of the user.
SHARED = ("UserProvidedCacheLocator", "UserWideCacheLocator")  # once with an underscore
#: The files that all kernels are compiled by: constants, instructions and options stand in others than their own.
COMMON = tuple(sorted(map(str, Path(__file__).parent.glob("*.py"))))

#: Numba's options that change compiled code; it would load what was compiled with others.
OPTIONS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")

#: The temporary directory in which kernels are cached, if any.
fallbacks: set[str] = set()

#: Bytes of a file's checksum.
CHECKSUM = 4
#: The file in each directory of the cache that is locked while an index is changed.
LOCK = "fastbcubed.lock"
#: Seconds to wait for that lock, which is held for milliseconds, and between two attempts to take it.
WAIT, BETWEEN = 2.0, 0.02
#: Directories whose lock was not released in that time; there is no further wait for it.
_held_too_long: set[str] = set()

_lock = threading.Lock()


class Sturdy:
    """A kernel cache that tolerates disk errors.

    An unreadable kernel is compiled again; an unwritable one is not cached. The cache is opened on the first call
    of the kernel, because Numba then tests whether it can write there: most loaded kernels are never called.
    """

    def __init__(self, opened: Callable[[], Any], missed: Callable[[], None]) -> None:
        self._opened, self._missed = opened, missed
        self._lacking: set[Any] = set()

    @cached_property
    def _cache(self) -> Any:
        return self._opened()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return a cached kernel; None if there is none or its file is damaged."""
        if signature not in self._lacking:
            found = self._load_undamaged(signature, context)
            if found is not None:
                return found
            self._lacking.add(signature)
        self._missed()
        return None

    def _load_undamaged(self, signature: Any, context: Any) -> Any:
        try:
            found = self._load(signature, context)
            if found is None or tuple(found.signature.args) == tuple(signature):
                return found
        except Exception:  # unpickling a damaged file may raise anything
            pass
        with suppress(OSError):  # damaged, or of another signature: two processes wrote at once
            self._cache.flush()
        return None

    def _load(self, signature: Any, context: Any) -> Any:
        """Load a kernel as Numba does, but without the tables of everything it can compile.

        Loading these takes longer than our kernels; a compilation loads them itself.
        """
        load = getattr(self._cache, "_load_overload", None)
        if load is None:  # a different version of Numba
            return self._cache.load_overload(signature, context)
        rtsys.initialize(context)
        with self._cache._guard_against_spurious_io_errors():
            return load(signature, context)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Cache a kernel, or record why it cannot be cached."""
        try:
            self._cache.save_overload(signature, compiled)
        except OSError as error:
            failures.append(f"{error.strerror or error}")


class CheckedFile(IndexDataCacheFile):
    """Numba's cache files of a kernel, each followed by a checksum, which pickle does not read.

    Machine code with flipped bits would crash the process.
    """

    def save(self, key: Any, data: Any) -> None:
        """Save a kernel, and then its name in the index, from which other processes load it at once."""
        with self._locked():
            names = self._load_index()
            free = (name for name in map(self._data_name, count(1)) if name not in names.values())
            name = names.get(key) or next(free)
            self._save_data(name, data)
            self._save_index(names | {key: name})

    def flush(self) -> None:
        """Empty the index."""
        with self._locked():
            super().flush()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the directory, where that is possible: of two indexes saved at once, one would be lost.

        Raises OSError if another process does not release it: it may have been stopped, and no signal is heard here.
        """
        with ExitStack() as stack:
            if sys.platform != "win32":
                path, taken = os.path.join(self._cache_path, LOCK), True
                with suppress(OSError):  # there are no locks, or the directory is read-only
                    lock = os.open(
                        path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666
                    )  # also where it is a pipe
                    stack.callback(os.close, lock)
                    taken = _taken(lock, self._cache_path)
                if not taken:
                    raise OSError(errno.EWOULDBLOCK, f"another process holds {path}")
            yield

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return data + _checksum(data)

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb", opener=_without_waiting) as file:
            data = memoryview(file.read())
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


def _without_waiting(path: str, flags: int) -> int:
    """Open a file, which must not be a pipe: that would wait for a writer, or for what it writes."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, f"{path} is no file")


def _taken(lock: int, directory: str) -> bool:
    """Lock a file; return whether that was done before the wait was over."""
    until = time.monotonic() + WAIT
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if directory in _held_too_long or time.monotonic() > until:
                _held_too_long.add(directory)
                return False
            time.sleep(BETWEEN)
        else:
            _held_too_long.discard(directory)
            return True


def _checksum(data: bytes | memoryview) -> bytes:
    return zlib.crc32(data).to_bytes(CHECKSUM, "little")


class CheckedCache(FunctionCache):
    """Numba's cache of a kernel, in files with checksums, for the content of all that it is compiled from.

    Numba goes by the path and the time of the kernel's file alone: another copy of the package would not find kernels
    of the same sources.
    """

    def __init__(self, function: Any, content: str) -> None:
        files: Any = partial(_Files, content=content)
        self._impl_class = files
        super().__init__(function)
        self._cache_file = CheckedFile(self._cache_path, self._impl.filename_base, content)


class _Files(CompileResultCacheImpl):
    """Where the files of a kernel are: in directories that others share, by content, not by path."""

    def __init__(self, function: Any, content: str) -> None:
        def named(locator: Any, file: str) -> str:
            return f"{Path(file).parent.name}_{content}"

        by_content = {"get_suitable_cache_subpath": classmethod(named)}
        locators: Any = [
            type(each.__name__, (each,), by_content) if each.__name__.lstrip("_") in SHARED else each
            for each in super()._locator_classes
        ]
        self._locator_classes = locators
        super().__init__(function)


@cache
def _content(sources: tuple[str, ...]) -> str:
    """Return a digest of files of source code, and of the versions and options of what compiles them."""
    options = [getattr(config, name, None) for name in OPTIONS]
    digest = hashlib.blake2b(
        repr((numba.__version__, llvmlite.__version__, np.__version__, options)).encode()
    )
    for source in sources:
        with suppress(OSError):
            digest.update(_digest(source))
    return digest.hexdigest()[:40]


@cache
def _digest(source: str) -> bytes:
    return hashlib.blake2b(Path(source).read_bytes()).digest()


def _opened(function: Any, loaded: Stamps) -> Any:
    """Return the cache of a kernel whose sources had the stamps `loaded`; Numba's null cache if there is none."""
    content = _content(tuple(loaded))  # read before it is asked whether it is still what was loaded
    if any(_stamp.__wrapped__(source) != stamp for source, stamp in loaded.items()):
        return NullCache()  # another version was installed since: our compiled code does not match it
    try:
        opened = CheckedCache(function, content)
    except RuntimeError:  # Numba found no writable directory
        opened = _opened_in(temporary(), function, content)
    if opened.cache_path is not None:
        _link_compiled(Path(function.__code__.co_filename), Path(opened.cache_path))
    return opened


def _opened_in(directory: str | None, function: Any, content: str) -> Any:
    if directory is None:
        return NullCache()
    with _lock:
        named, config.CACHE_DIR = config.CACHE_DIR, directory
        try:
            opened = CheckedCache(function, content)
        except RuntimeError:
            return NullCache()
        finally:
            config.CACHE_DIR = named
    fallbacks.add(directory)
    return opened


@cache
def _stamp(source: str) -> tuple[int, int] | None:
    """Return a file's modification time and size; None if it does not exist."""
    try:
        found = os.stat(source)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@cache
def temporary() -> str | None:
    """Return a directory for temporary files that only this user can write to; None if there is none."""
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
    """Link the compiled code of a source file into directories that are read-only now."""
    places = [source.parent / "__pycache__"]
    if config.CACHE_DIR:
        places.insert(0, Path(config.CACHE_DIR, directory.name))
    for place in places:
        if place != directory and place.is_dir() and not os.access(place, os.W_OK):
            for file in place.glob(f"{source.stem}.*.nb[ic]"):
                with suppress(OSError):  # it exists already, or links are not supported
                    (directory / file.name).symlink_to(file)


def kept_in(compiled: Any) -> str | None:
    """Return the root directory of the cache of a compiled kernel and others; None if they are not cached."""
    path = compiled.stats.cache_path
    return None if path is None else os.path.dirname(path)


def passed_over(directory: str) -> str:
    """Return the directory that NUMBA_CACHE_DIR names if kernels are kept in another; else an empty text."""
    named: str = config.CACHE_DIR
    return "" if os.path.abspath(directory) == os.path.abspath(named) else named


def load_without_scipy() -> None:
    """Load the part of Numba that loads SciPy to find out whether it has a BLAS, but without SciPy.

    SciPy takes longer than all of our kernels, which need no BLAS; code that does checks again when compiled.
    """
    linalg: Any = import_module("numba.np.linalg")
    if find_spec("scipy") is None or not hasattr(linalg, "ensure_blas"):
        return  # nothing to load, or another version of Numba
    original, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = original


if "numba.np.arraymath" not in sys.modules:
    with suppress(ImportError):  # of a module that another version of Numba lacks
        load_without_scipy()


def dispatcher(
    function: Any, names: dict[str, Any], missed: Callable[[], None], options: Any, sources: Iterable[str]
) -> Any:
    """Return Numba's function for a kernel with these global names; `missed` is called before it is compiled.

    `sources` are the files of the kernel and of those that it calls, whose code is part of its own.
    """
    if untried():
        compiled = _plainly_compiled(function, names, options)
        compiled._cache = Uncached(missed)
        return compiled
    compiled = _compiled(function, names, options | {"pipeline_class": OfWholes})
    loaded = {source: _stamp(source) for source in (*COMMON, *sorted({*sources} - {*COMMON}))}
    opened = partial(_opened, compiled.py_func, loaded) if WANTED else NullCache
    compiled._cache = Sturdy(opened, missed)
    return compiled


def part(function: Any, names: dict[str, Any], options: Any) -> Any:
    """Return Numba's function for a kernel that others call; see `libraries`."""
    if untried():
        return _plainly_compiled(function, names, options)
    compiled = _compiled(function, names, options | {"pipeline_class": OfParts})
    as_part(compiled)
    return compiled


def untried() -> str:
    """Return that Numba is newer than the newest that was tried, if it is; else an empty text."""
    if tuple(numba.version_info[:2]) <= TRIED:
        return ""
    newest = ".".join(map(str, TRIED))
    return (
        f"Numba {numba.__version__} is newer than {newest}, the newest that was tried; kernels are not kept"
    )


class Uncached(NullCache):
    """The cache of a kernel that is not cached; a compilation is announced."""

    def __init__(self, missed: Callable[[], None]) -> None:
        self._missed = missed

    def load_overload(self, *_: Any) -> None:
        """Announce that the kernel is going to be compiled."""
        self._missed()


def _plainly_compiled(function: Any, names: dict[str, Any], options: Any) -> Any:
    own = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    public = {name: value for name, value in options.items() if not name.startswith("_")}
    return numba.njit(nogil=True, error_model="numpy", **public)(own)


def _compiled(function: Any, names: dict[str, Any], options: Any) -> Any:
    own = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    options = options | {"no_cfunc_wrapper": True}  # code for callers in C, of which there are none
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(own)
    _take_constants_as_numbers(compiled)
    return compiled


def _take_constants_as_numbers(compiled: Any) -> None:
    """Compile a kernel that another calls with a constant only for the constant's plain type.

    Numba gives constants types of their own: where a loop begins with one, it compiles a kernel twice.
    """
    template_of = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template_of([*map(types.unliteral, args)], kws)
