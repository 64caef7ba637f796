"""A result in the place of an earlier one: whole or not at all, however the process that writes it ends."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.errors import FastBCubedError, FileFormatError
from fastbcubed.results import save
from fastbcubed.runtime import output_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs fork and signals")

KILLING = Path(__file__).with_name("killing.py")
SAVED = {"overall.json", "cells.parquet", "true_clusters.parquet", "pred_clusters.parquet", "items.parquet"}
CHANGING = ("mkdir", "replace", "link", "unlink", "rmdir")


def an_evaluation(n_items: int, engine: str = "memory", **how: Any) -> fb.Evaluation:
    rows = pa.table({"t": [k // 3 for k in range(n_items)], "p": [k // 2 for k in range(n_items)]})
    return fb.evaluate("t", "p", table=rows, keep="items", engine=engine, **how)


def files(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def kill(directory: Path, engine: str, moments: str, n_random: int) -> list[int]:
    command = [sys.executable, "-W", "ignore", str(KILLING), str(directory), engine, moments, str(n_random)]
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return list(map(int, done.stdout.split()))


@pytest.mark.process
def test_kills_at_each_rename(tmp_path: Path) -> None:
    at_changes, _, first, second = kill(tmp_path, "memory", "before", 0)
    assert at_changes >= 18 and min(first, second) > 6


@pytest.mark.process
@pytest.mark.cases(0, 1)
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_kills_before_and_after_each_rename_and_at_random_times(engine: str, tmp_path: Path) -> None:
    at_changes, at_random, first, second = kill(tmp_path, engine, "before,after", 30)
    assert at_changes >= 36 and at_random == 30 and min(first, second) > 10


@pytest.mark.cases(0, 3)
@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(5, "Input/output error")])
def test_interrupts_at_each_rename(engine: str, when: str, error: Any, tmp_path: Path, monkeypatch) -> None:
    """Ctrl-C and errors of the disk leave one of the two results, and no trace of another."""
    old, new = an_evaluation(12), an_evaluation(18)
    write: dict[str, Callable[[], Any]] = {
        "memory": lambda: new.save(tmp_path),
        "disk": lambda: an_evaluation(18, "disk", out=tmp_path),
    }
    ended: list[int] = []
    reached = True
    while reached:
        old.save(tmp_path)
        assert files(tmp_path) == SAVED  # whatever the last one has left
        with monkeypatch.context() as patches, suppress(KeyboardInterrupt, FastBCubedError):
            calls = fail_at(len(ended), tmp_path, when, error, patches)
            write[engine]()
        ended.append(fb.load(tmp_path).coverage.n_common)
        assert isinstance(error, OSError) or files(tmp_path) == SAVED
        reached = len(calls) == len(ended)
    assert len(ended) > 6 and set(ended) == {12, 18}


def fail_at(k: int, directory: Path, when: str, error: Any, patches: pytest.MonkeyPatch) -> list[str]:
    """Let the k-th change of a directory raise before or after it is made; tells which were made so far.

    A kernel that has run often enough to be loaded makes the directory of its cache, which is none of them.
    """
    calls: list[str] = []

    def hooked(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if len(calls) > k or not Path(args[0]).is_relative_to(directory):
                return call(*args, **kwargs)
            calls.append(name)
            if len(calls) <= k or when == "after":
                found = call(*args, **kwargs)
                if len(calls) <= k:
                    return found
            raise error

        return wrapped

    for name in CHANGING:
        patches.setattr(os, name, hooked(name, getattr(os, name)))
    return calls


def test_a_mixture_is_refused(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    an_evaluation(12).save(a)
    an_evaluation(18).save(b)
    for name in SAVED:
        mixed = tmp_path / "mixed"
        shutil.copytree(a, mixed)
        shutil.copy(b / name, mixed / name)
        with pytest.raises(FileFormatError, match="is damaged, or its files belong to several evaluations"):
            fb.load(mixed)
        shutil.rmtree(mixed)


def test_what_was_decided_is_loaded_before_it_is_finished_and_finished_by_the_next(
    tmp_path: Path, monkeypatch
) -> None:
    an_evaluation(12).save(tmp_path)
    (tmp_path / "mine.txt").write_text("of the user")
    with monkeypatch.context() as patches:
        patches.setattr(output_files, "_finish", lambda *_: None)  # as if killed
        an_evaluation(18).save(tmp_path)
    assert len(files(tmp_path) - SAVED) == 2
    assert fb.load(tmp_path).items().num_rows == 18
    before = {name: (tmp_path / name).read_bytes() for name in SAVED}
    output_files.settle(tmp_path, "overall.json")
    assert files(tmp_path) == SAVED | {"mine.txt"}
    assert {name for name in SAVED if (tmp_path / name).read_bytes() != before[name]} == SAVED - {
        "overall.json"
    }
    assert fb.load(tmp_path).items().num_rows == 18


def test_two_that_write_at_once_do_not_remove_what_the_other_writes(tmp_path: Path) -> None:
    with output_files.Staging(tmp_path, "overall.json") as first:
        first.path("cells.parquet").touch()
        an_evaluation(12).save(tmp_path)
        assert files(tmp_path) == SAVED | {first.name}
    assert files(tmp_path) == SAVED


def test_an_evaluation_on_disk_that_fails_late_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    an_evaluation(12).save(tmp_path)
    monkeypatch.setattr(save, "described", lambda ev, slices: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        an_evaluation(18, "disk", out=tmp_path)
    assert files(tmp_path) == SAVED
    assert fb.load(tmp_path).items().num_rows == 12


@pytest.mark.parametrize("engine", ["memory", "disk", "sweep"])
def test_a_full_disk_leaves_no_directory(engine: str, tmp_path: Path, monkeypatch) -> None:
    """Nor those above it that were made for it; what was there before stays."""
    (tmp_path / "there").mkdir()
    sweep = fb.sweep([0, 0, 1], [(0, 1, 0.9), (1, 2, 0.4)])

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output_files.TableWriter, "add", full)
    for place in (tmp_path / "there" / "a" / "b", tmp_path / "there"):
        with pytest.raises(FileFormatError, match="No space left on device"):
            sweep.save(place) if engine == "sweep" else an_evaluation(12, engine, out=place)
        assert files(tmp_path) == {"there"} and not files(tmp_path / "there")


def test_items_on_disk_are_saved_where_they_are_and_elsewhere(tmp_path: Path) -> None:
    ev = an_evaluation(12, "disk", out=tmp_path / "a")
    expected = ev.items()
    for place in ("a", "b", "a"):
        ev.save(tmp_path / place)
        assert files(tmp_path / place) == SAVED
        assert fb.load(tmp_path / place).items().equals(expected)
    an_evaluation(18).save(tmp_path / "a")
    ev.save(tmp_path / "a")
    assert fb.load(tmp_path / "a").items().equals(expected)


@pytest.mark.process
@pytest.mark.parametrize("by", ["saving", "a forked process"])
def test_items_on_disk_are_read_wherever_the_place_of_their_file_is_left(by: str, tmp_path: Path) -> None:
    ev = an_evaluation(3000, "disk")
    file = ev.kept_items().table
    expected = {name: file[name] for name in file.column_names}
    for name, values in expected.items():
        if by == "saving":
            ev.save(tmp_path / name)
        elif not (child := os.fork()):
            os.lseek(file._raw.fileno(), 0, os.SEEK_END)
            os._exit(0)
        else:
            os.waitpid(child, 0)
        assert file[name].equals(values)


def test_a_directory_in_the_place_of_a_file_is_said_before_anything_is_replaced(tmp_path: Path) -> None:
    an_evaluation(12).save(tmp_path, keep="scores")
    (tmp_path / "cells.parquet").mkdir()
    with pytest.raises(FileFormatError, match=r"cells\.parquet.*directory of this name"):
        an_evaluation(18).save(tmp_path)
    assert fb.load(tmp_path).overall == an_evaluation(12).overall


def test_a_reader_that_comes_between_two_writers_begins_again(tmp_path: Path, monkeypatch) -> None:
    from fastbcubed.results import load

    an_evaluation(12).save(tmp_path)
    read, told = load.read_manifest, []

    def late(directory: Path) -> dict[str, Any]:
        head = read(directory)
        if not told:
            told.append(json.loads((tmp_path / "overall.json").read_text())["staged_in"])
            an_evaluation(18).save(tmp_path)
        return head

    monkeypatch.setattr(load, "read_manifest", late)
    assert fb.load(tmp_path).items().num_rows == 18


def test_a_file_that_ctrl_c_interrupts_is_not_left_behind(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), output_files.written_aside(tmp_path / "page.html") as aside:
        Path(aside).write_text("half")
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="there a file has no such permissions")
def test_a_file_that_was_written_aside_may_be_read_by_all(tmp_path: Path) -> None:
    with output_files.written_aside(tmp_path / "page.html") as aside:
        Path(aside).write_text("whole")
    assert (tmp_path / "page.html").stat().st_mode & 0o777 == 0o644
