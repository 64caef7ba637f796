"""Files of compiled kernels that several processes write at once."""

import errno
import importlib.util
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from types import ModuleType

import numpy as np
import pytest

from fastbcubed.kernels import cache, jit

WRITERS, SIGNATURES = 8, 20


@pytest.mark.skipif(
    sys.platform == "win32", reason="there no files are locked, and one process compiles ahead"
)
def test_kernels_that_are_saved_at_once_are_all_kept(tmp_path) -> None:
    """Threads lock each other out as processes do: each opens the locked file anew."""
    together = Barrier(WRITERS)

    def save(writer: int) -> None:
        file = cache.CheckedFile(str(tmp_path), "kernel", "stamp")
        for k in range(SIGNATURES):
            together.wait(60)
            file.save((writer, k), f"code {writer} {k}")

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(save, range(WRITERS)))
    file = cache.CheckedFile(str(tmp_path), "kernel", "stamp")
    for writer in range(WRITERS):
        for k in range(SIGNATURES):
            assert file.load((writer, k)) == f"code {writer} {k}"
    assert len(list(tmp_path.glob("*.nbc"))) == WRITERS * SIGNATURES


def test_a_kernel_is_in_the_index_only_once_its_code_is(tmp_path, monkeypatch) -> None:
    """Another process would load the code of another version, which had the same name, or none."""
    file = cache.CheckedFile(str(tmp_path), "kernel", "stamp")
    file.save("signature", "code")
    new = cache.CheckedFile(str(tmp_path), "kernel", "new stamp")
    loaded = []
    save_index = cache.CheckedFile._save_index
    monkeypatch.setattr(
        cache.CheckedFile,
        "_save_index",
        lambda self, names: (
            [loaded.append(self._load_data(name)) for name in names.values()] and save_index(self, names)
        ),
    )
    new.save("signature", "new code")
    assert loaded == ["new code"] and new.load("signature") == "new code"
    new.save("signature", "newer code")
    assert new.load("signature") == "newer code" and len(list(tmp_path.glob("*.nbc"))) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="there no files are locked")
def test_kernels_are_kept_where_files_cannot_be_locked(tmp_path, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    file = cache.CheckedFile(str(tmp_path), "kernel", "stamp")
    monkeypatch.setattr(cache.fcntl, "flock", refuse)
    file.save(1, "one")
    (tmp_path / cache.LOCK).unlink()
    (tmp_path / cache.LOCK).mkdir()  # which cannot be opened
    file.save(2, "two")
    assert (file.load(1), file.load(2)) == ("one", "two")


@pytest.mark.skipif(sys.platform == "win32", reason="there no files are locked")
def test_a_lock_that_is_not_released_is_waited_for_once(tmp_path, monkeypatch) -> None:
    """Whoever holds it may have been stopped, and the wait hears neither Ctrl-C nor SIGTERM."""
    monkeypatch.setattr(cache, "WAIT", 0.05)
    waits: list[float] = []
    sleep = cache.time.sleep
    monkeypatch.setattr(cache.time, "sleep", lambda seconds: waits.append(seconds) or sleep(seconds))
    file = cache.CheckedFile(str(tmp_path), "kernel", "stamp")
    file.save(1, "one")
    with open(tmp_path / cache.LOCK, "ab") as held:
        cache.fcntl.flock(held, cache.fcntl.LOCK_EX)
        with pytest.raises(OSError, match=f"another process holds .*{cache.LOCK}"):
            file.save(2, "two")
        assert waits
        waits.clear()
        for change in (lambda: file.save(3, "three"), file.flush):  # one wait for all kernels
            with pytest.raises(OSError, match="another process holds"):
                change()
        assert not waits and file.load(1) == "one"
    file.save(2, "two")
    assert (file.load(1), file.load(2)) == ("one", "two")


def test_a_kernel_that_cannot_be_kept_runs_and_is_told(monkeypatch) -> None:
    class Locked:
        def save_overload(self, *_: object) -> None:
            raise OSError(errno.EWOULDBLOCK, "another process holds fastbcubed.lock")

    told: list[str] = []
    monkeypatch.setattr(cache, "failures", told)
    cache.Sturdy(Locked, lambda: None).save_overload("signature", "compiled")
    assert told == ["another process holds fastbcubed.lock"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
@pytest.mark.parametrize("name", [cache.LOCK, "kernel.nbi", "kernel.1.nbc"])
def test_pipes_in_the_place_of_files_are_not_waited_for(tmp_path, name: str) -> None:
    file = cache.CheckedFile(str(tmp_path), "kernel", "stamp")
    if name != cache.LOCK:
        file.save(1, "one")
        (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    if name == cache.LOCK:
        file.save(1, "one")
        assert file.load(1) == "one"
    elif name.endswith(".nbc"):
        assert file.load(1) is None  # it is compiled again
    else:
        with pytest.raises(OSError, match="is not a file"):
            file.load(1)


KERNEL = """
from fastbcubed.kernels.jit import kernel

@kernel
def add_one(values):
    for i in range(values.size):
        values[i] += 1
"""


def loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Load a file as the module of one name, as another process with another copy of it would."""
    spec = importlib.util.spec_from_file_location("own_kernels", path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "own_kernels", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(jit.never_compiled(), reason="kernels are not compiled")
def test_another_copy_of_the_same_sources_finds_their_kernels(tmp_path, monkeypatch) -> None:
    """As a new environment or checkout does; a changed byte is another kernel, at whatever time it was written."""
    monkeypatch.setattr(cache.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "WANTED", True)
    found = []
    for place, text in (("a", KERNEL), ("b", KERNEL), ("c", KERNEL.replace("+= 1", "+= 2")), ("d", KERNEL)):
        path = tmp_path / place / "kernels" / "own_kernels.py"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        os.utime(path, (1, 1))
        kernel, values = loaded(path, monkeypatch).add_one, np.zeros(2, np.int64)
        with jit.compiling():
            kernel(values)
        found.append((values.tolist(), sum(kernel.dispatcher.stats.cache_hits.values())))
    assert found == [([1, 1], 0), ([1, 1], 1), ([2, 2], 0), ([1, 1], 1)]
    assert len(list((tmp_path / "cache").glob("kernels_*/*.nbi"))) == 2


def test_kernels_are_kept_by_all_they_are_compiled_from(tmp_path, monkeypatch) -> None:
    """Instructions, options and constants stand in other files than the kernel's own, and versions in none."""
    named = {Path(path).name for path in cache.COMMON}
    assert {"cache.py", "cells.py", "intrinsics.py", "jit.py", "libraries.py"} <= named
    for place in "ab":
        (tmp_path / place).mkdir()
        for name in ("one.py", "two.py"):
            (tmp_path / place / name).write_text(f"{name} = 1")

    def content(place: str) -> str:
        return cache._content.__wrapped__(
            tuple(str(tmp_path / place / name) for name in ("one.py", "two.py"))
        )

    assert content("a") == content("b")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "one.py").write_text("one.py = 1")
    (tmp_path / "c" / "two.py").write_text("two.py = 2")
    assert content("c") != content("a")
    before = content("a")
    for library in (cache.numba, cache.llvmlite, cache.np):
        with monkeypatch.context() as patch:
            patch.setattr(library, "__version__", "0.0.1")
            assert content("a") != before
    for option, other in {
        "BOUNDSCHECK": 1,
        "OPT": 0,
        "LOOP_VECTORIZE": 0,
    }.items():  # a check that is not compiled is none
        with monkeypatch.context() as patch:
            patch.setattr(cache.config, option, other)
            assert content("a") != before
