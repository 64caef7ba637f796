"""Files of compiled kernels that several processes write at once."""

import errno
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from fastbcubed.kernels import cache

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
        with pytest.raises(OSError, match="is no file"):
            file.load(1)
