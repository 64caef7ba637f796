"""Compilation of kernels by Numba, and the on-disk cache of their machine code.

Numba neither reads nor writes a cache in a read-only directory. Kernels that were compiled into a read-only
container image are therefore linked into a writable directory.
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
#: The newest Numba version with which the tests passed. This module and `libraries` patch its private parts; with a
#: newer version, kernels use its public interface only and are not cached, because it would miss changed callees.
TRIED = (0, 68)
#: Whether compiled kernels are cached; FASTBCUBED_CACHE=0 suits fleets of processes that start together.
WANTED = os.environ.get("FASTBCUBED_CACHE", "1") != "0"
#: Directories for temporary files, tried after those named by the environment.
PLACES = ("/tmp", "/var/tmp", "/dev/shm")

#: Source files, each with its modification time and size.
Stamps = Mapping[str, tuple[int, int] | None]
#: Numba's locators of directories that packages share: NUMBA_CACHE_DIR, and the user's cache directory.
SHARED = ("UserProvidedCacheLocator", "UserWideCacheLocator")  # once with an underscore
#: Source files that every kernel depends on: constants, instructions and options are in files other than its own.
COMMON = tuple(sorted(map(str, Path(__file__).parent.glob("*.py"))))

#: Numba's options that change compiled code. Numba ignores them in its cache, and would load code of other options.
OPTIONS = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")

#: Temporary directories in which kernels are cached.
fallbacks: set[str] = set()

#: Length of a file's checksum in bytes.
CHECKSUM = 4
#: The file in each directory of the cache that is locked while an index is changed.
LOCK = "fastbcubed.lock"
#: Seconds to wait for that lock, which is normally held for milliseconds, and seconds between attempts.
WAIT, BETWEEN = 2.0, 0.02
#: Directories whose lock was not released in time; later attempts do not wait.
_held_too_long: set[str] = set()

_lock = threading.Lock()  # held while Numba's setting of a directory, which is global, names ours


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
        """Load a kernel without first loading Numba's tables of everything it can compile.

        Loading those tables takes longer than loading our kernels; a compilation loads them itself.
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
    """Numba's cache files of a kernel, each followed by a checksum, which pickle ignores.

    Without it, machine code with flipped bits would crash the process.
    """

    def save(self, key: Any, data: Any) -> None:
        """Save a kernel, then add it to the index, from which other processes may load it at once."""
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
        """Lock the directory where locks are supported: of two indexes saved at once, one would be lost.

        Raises OSError if another process, perhaps a stopped one, does not release the lock in time. The wait is limited
        because Ctrl-C has no effect during it.
        """
        with ExitStack() as stack:
            if sys.platform != "win32":
                path, taken = os.path.join(self._cache_path, LOCK), True
                with suppress(OSError):  # locks are not supported, or the directory is read-only
                    lock = os.open(
                        path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o666
                    )  # non-blocking, in case the path is a pipe
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
    """Open a regular file; raise OSError for a pipe, which would block until another process writes to it."""
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, f"{path} is not a file")


def _taken(lock: int, directory: str) -> bool:
    """Try to lock a file for up to WAIT seconds; return whether this succeeded."""
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
    """Numba's cache of a kernel, with checksummed files, found by the content of all sources that it is compiled from.

    Numba itself uses the path and modification time of the kernel's file, so another copy of the package with equal
    sources would compile again.
    """

    def __init__(self, function: Any, content: str) -> None:
        files: Any = partial(_Files, content=content)
        self._impl_class = files
        super().__init__(function)
        self._cache_file = CheckedFile(self._cache_path, self._impl.filename_base, content)


class _Files(CompileResultCacheImpl):
    """Numba's locators of a kernel's files; directories that packages share are named by content instead of by path."""

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
    """Return a digest of source files and of the versions and options of the compiler."""
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
    """Return the cache of a kernel whose source files had the stamps `loaded`; a null cache if none can be used."""
    content = _content(tuple(loaded))  # read first; the stamps are then checked for changes since loading
    if any(_stamp.__wrapped__(source) != stamp for source, stamp in loaded.items()):
        # the sources on disk have changed: code compiled from the loaded ones must not be saved
        return NullCache()
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
    """Return a temporary directory that only this user can access; None if there is none."""
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
    """Link a source file's compiled kernels from read-only directories into a writable one."""
    places = [source.parent / "__pycache__"]
    if config.CACHE_DIR:
        places.insert(0, Path(config.CACHE_DIR, directory.name))
    for place in places:
        if place != directory and place.is_dir() and not os.access(place, os.W_OK):
            for file in place.glob(f"{source.stem}.*.nb[ic]"):
                with suppress(OSError):  # it exists already, or links are not supported
                    (directory / file.name).symlink_to(file)


def kept_in(compiled: Any) -> str | None:
    """Return the root directory of the cache that holds a compiled kernel; None if it is not cached."""
    path = compiled.stats.cache_path
    return None if path is None else os.path.dirname(path)


def passed_over(directory: str) -> str:
    """Return the directory that NUMBA_CACHE_DIR names if kernels are cached elsewhere, else an empty string."""
    named: str = config.CACHE_DIR
    return "" if os.path.abspath(directory) == os.path.abspath(named) else named


def load_without_scipy() -> None:
    """Load the part of Numba that imports SciPy to look for a BLAS library, without importing SciPy.

    Importing SciPy takes longer than loading all of our kernels, none of which needs BLAS. Code that uses BLAS is
    still checked when it is compiled.
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
    with suppress(ImportError):  # other versions of Numba may not have these modules
        load_without_scipy()


def dispatcher(
    function: Any, names: dict[str, Any], missed: Callable[[], None], options: Any, sources: Iterable[str]
) -> Any:
    """Return Numba's dispatcher of a kernel whose globals are `names`; `missed` is called before each compilation.

    `sources` are the files of the kernel and of its callees, whose code is compiled into its own.
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
    """Return Numba's dispatcher of a kernel that only other kernels call; see `libraries`."""
    if untried():
        return _plainly_compiled(function, names, options)
    compiled = _compiled(function, names, options | {"pipeline_class": OfParts})
    as_part(compiled)
    return compiled


def untried() -> str:
    """Return a message if Numba is newer than the newest tested version, else an empty string."""
    if tuple(numba.version_info[:2]) <= TRIED:
        return ""
    newest = ".".join(map(str, TRIED))
    return (
        f"Numba {numba.__version__} is newer than {newest}, the newest version tested; kernels are not cached"
    )


class Uncached(NullCache):
    """A null cache that announces each compilation."""

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
    options = options | {"no_cfunc_wrapper": True}  # nothing calls our kernels from C
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(own)
    _take_constants_as_numbers(compiled)
    return compiled


def _take_constants_as_numbers(compiled: Any) -> None:
    """Make a kernel that is called with a constant compile for the constant's plain type only.

    Numba gives constants literal types of their own; a kernel called with a constant first and a variable later, as in
    some loops, would be compiled twice.
    """
    template_of = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template_of([*map(types.unliteral, args)], kws)
