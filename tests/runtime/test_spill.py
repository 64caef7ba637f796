"""Files that are closed once, whatever comes between, and spill directories that are none."""

from __future__ import annotations

import errno
import gc
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastbcubed as fb
from fastbcubed.errors import OptionError, SpillError
from fastbcubed.runtime.output_files import LargeFile
from fastbcubed.runtime.spill import LEAVE_FREE, PAGE, Spill


@pytest.fixture
def unraisable(monkeypatch) -> list[Any]:
    """Exceptions that Python could only print."""
    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: seen.append(args.exc_value))
    return seen


def a_spill(path: Path) -> Spill:
    spill = Spill(path, named=True)
    spill.write(memoryview(bytes(PAGE)))
    return spill


def a_large_file(path: Path) -> LargeFile:
    (path / "rows").touch()
    return LargeFile(str(path / "rows"))


@pytest.mark.cases(0)
@pytest.mark.parametrize("opened", [a_spill, a_large_file])
def test_ctrl_c_while_a_file_is_closed(opened: Any, tmp_path: Path, monkeypatch, unraisable) -> None:
    file = opened(tmp_path)
    close, closed = os.close, []

    def interrupted(file: int) -> None:
        close(file)
        closed.append(file)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        file.close()
    with suppress(KeyboardInterrupt):
        file.close()
    del file
    gc.collect()
    assert not unraisable and len(closed) == len(set(closed))


def test_a_spill_file_never_has_a_name(tmp_path: Path, monkeypatch) -> None:
    if not hasattr(os, "O_TMPFILE"):
        pytest.skip("Linux alone has files that never have a name")
    opened, listed = os.open, []

    def looked_at(*args: Any) -> int:
        file = opened(*args)
        listed.extend(tmp_path.iterdir())
        return file

    try:
        os.close(opened(tmp_path, os.O_TMPFILE | os.O_RDWR))
    except OSError:
        pytest.skip("not on this file system")
    monkeypatch.setattr(os, "open", looked_at)
    with a_spill(tmp_path):
        assert not listed


@pytest.mark.parametrize("errors", [AttributeError, OSError(errno.EOPNOTSUPP, "not supported")], ids=str)
def test_a_file_system_that_gives_every_file_a_name(errors: Any, tmp_path: Path, monkeypatch) -> None:
    opened = os.open

    def refusing(path: Any, flags: int, *rest: Any) -> int:
        if Path(path) == tmp_path:
            raise errors
        return opened(path, flags, *rest)

    monkeypatch.setattr(os, "open", refusing)
    data = np.arange(PAGE // 8)
    with Spill(tmp_path, named=True) as spill:
        spill.write(memoryview(data.tobytes()))
        assert not list(tmp_path.iterdir())
        spill.read((0, read := np.empty_like(data)))
    assert np.array_equal(read, data)


@pytest.mark.slow
def test_what_is_no_directory(unraisable) -> None:
    with pytest.raises(OptionError, match="spill_dir must be a directory, not 5"):
        fb.evaluate([0, 0], [0, 1], engine="disk", spill_dir=5)
    gc.collect()
    assert not unraisable


def test_as_much_as_must_stay_free_is_left(tmp_path: Path, monkeypatch) -> None:
    spill = Spill(tmp_path)
    monkeypatch.setattr(Spill, "free", lambda self: LEAVE_FREE + 100)
    spill.require_free(100)
    with pytest.raises(SpillError, match="must remain free"):
        spill.require_free(101)


def test_a_file_that_ends_early_is_an_error(tmp_path: Path) -> None:
    spill = a_spill(tmp_path)
    with pytest.raises(SpillError, match="ended early; is the disk damaged"):
        spill.read((0, np.empty(PAGE + 1, np.uint8)))
    spill.close()
