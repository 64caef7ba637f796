"""Where compiled kernels are kept: where Numba keeps them, else in a temporary directory, else nowhere.

Numba neither keeps nor reads anything where it cannot write. In a container whose files cannot be written,
what was compiled with the image is therefore linked into a directory that can be.
"""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
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

_lock = threading.Lock()


class Sturdy:
    """The cache of a kernel on a disk that may fail.

    What cannot be read is compiled again; what cannot be written is not kept.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

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


def keep(kernel: Any) -> None:
    """Keep what is compiled of a kernel, where there is a directory for it."""
    if not hasattr(kernel, "enable_caching"):  # Numba is told not to compile
        return
    try:
        kernel.enable_caching()
    except RuntimeError:  # Numba has found no directory that it can write to
        if not _enable_in(temporary(), kernel):
            return
    kernel._cache = Sturdy(kernel._cache)
    _link_compiled(Path(kernel.py_func.__code__.co_filename), Path(kernel.stats.cache_path))


def _enable_in(directory: str | None, kernel: Any) -> bool:
    if directory is None:
        return False
    with _lock:
        named, config.CACHE_DIR = config.CACHE_DIR, directory
        try:
            kernel.enable_caching()
        except RuntimeError:
            return False
        finally:
            config.CACHE_DIR = named
    fallbacks.add(directory)
    return True


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
