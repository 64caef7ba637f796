"""Progress: what a callback is told, stage by stage, and what a terminal shows."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import textwrap
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastbcubed as fb
from fastbcubed.align import item_join
from fastbcubed.align import item_join as aligner
from fastbcubed.cells import shards as disk
from fastbcubed.engines import disk as sharded
from fastbcubed.engines import memory
from fastbcubed.kernels import jit
from fastbcubed.runtime import progress_bar
from fastbcubed.runtime.progress_bar import describe, reporting
from fastbcubed.runtime.threads import Pool, Progress


@pytest.mark.parametrize("threads", [1, 2])
def test_stages_tell_of_blocks_and_rows(threads: int) -> None:
    told: list[Progress] = []
    with Pool(threads, told.append) as pool:
        pool.map(abs, [1, 2, 3], stage="blocks")
        pool.map(abs, [1, 2, 3], stage="rows", rows=[10, 10, 5])
        list(pool.stream(abs, [(1,), (2,)], "stream", [4, 3]))
    assert [(p.stage, p.done, p.total) for p in told] == [
        *(("blocks", k, 3) for k in (1, 2, 3)),
        *(("rows", k, 3) for k in (1, 2, 3)),
        *(("stream", k, 2) for k in (1, 2)),
    ]
    assert {(p.rows, p.total_rows) for p in told[:3]} == {(0, 0)}
    assert told[5].rows == 25 and {p.total_rows for p in told[3:6]} == {25}
    assert [(p.rows, p.total_rows) for p in told[6:]] == [(4, 7), (7, 7)]


def test_a_stage_within_a_step_tells_of_the_outer_one() -> None:
    told: list[Progress] = []
    with Pool(1, told.append) as pool:
        with pool.stage("shards", 2, 30) as step:
            for rows in (10, 20):
                pool.map(abs, [1, 2], stage="within")
                step(rows)
        pool.map(abs, [1], stage="after")
    assert [(p.stage, p.done, p.rows) for p in told] == [
        ("shards", 0, 0), ("shards", 0, 0), ("shards", 1, 10),
        ("shards", 1, 10), ("shards", 1, 10), ("shards", 2, 30), ("after", 1, 0),
    ]  # fmt: skip


def test_pace() -> None:
    progress = Progress("read rows", 1, 10, seconds=4.0, rows=200, total_rows=1000)
    assert (progress.rows_per_second, progress.share, progress.seconds_left) == (50.0, 0.2, 16.0)
    assert Progress("close cells", 3, 4, 6.0).seconds_left == pytest.approx(2.0)
    first = Progress("plan", 0, 1, 0.0)
    assert first.rows_per_second == 0 and first.seconds_left == float("inf")
    assert describe(first) == ""
    assert describe(Progress("read", 1, 2, 3700.0, spilled=5 << 20)) == "1:01:40 left  spilled 5 MiB"


@pytest.mark.slow
@pytest.mark.parametrize("by_item", [False, True])
def test_the_disk_engine_tells_its_plan_and_every_row(by_item: bool, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(disk.Layout, "of", lambda *given: disk.Layout(2, 0, 0))
    monkeypatch.setattr(sharded, "block_rows", lambda *_: 100)
    monkeypatch.setattr(aligner, "kept_of", lambda limit: 0)
    monkeypatch.setattr(item_join, "JOIN_BYTES", 1 << 22)
    n, told = 1000, []
    labels, others = np.arange(n) // 3, np.arange(n) // 4
    sides: tuple[Any, Any] = (labels, others)
    if by_item:
        items = np.arange(n)
        sides = tuple(pa.table({"item": items, "cluster": side}) for side in sides)
        sides = (sides[0], sides[1].take(items[::-1]))
    fb.evaluate(*sides, engine="disk", spill_dir=tmp_path, memory_limit="64 MiB", progress=told.append)
    plan, *rest = told
    n_rows = 2 * n if by_item else n
    # rows: 16 bytes each, cells: 32; and 32 more to be joined
    expected = n_rows * (16 + 32 + 32 * by_item)
    assert (plan.stage, plan.done, plan.total, plan.total_rows) == ("plan", 0, 1, n_rows)
    assert plan.message.startswith(f"disk engine: {n_rows:,} rows, 4 shards, limit 64 MiB; up to ")
    assert f"up to {math.ceil(expected / 2**10)} KiB of spill to {tmp_path} (" in plan.message
    assert plan.message.endswith("GiB free), besides the cells that are kept")
    assert all(not progress.message for progress in rest)
    last = {stage: list(each)[-1] for stage, each in groupby(rest, key=lambda p: p.stage)}
    reading = ["read the truth", "read the prediction", "join by item"] if by_item else ["read rows"]
    assert [stage for stage in last if stage in {*reading, "build cells", "close cells"}] == [
        *reading, "build cells", "close cells",
    ]  # fmt: skip
    for progress in last.values():
        assert progress.done == progress.total and progress.rows == progress.total_rows
    assert all(last[stage].rows == n for stage in reading if stage != "join by item")
    assert last["build cells"].rows == n
    # 1 cell for each third of lcm(3, 4) = 12 items that begins anew: 0, 3, 4, 6, 8, 9
    assert last["close cells"].rows == n // 12 * 6 + 2
    spilled = [progress.spilled for progress in rest]
    assert spilled == sorted(spilled) and spilled[-1] > 0


def test_large_work_in_memory_has_a_plan(monkeypatch) -> None:
    told: list[Progress] = []
    fb.evaluate([0, 0, 1], [0, 1, 1], progress=told.append)
    assert all(progress.stage != "plan" for progress in told)
    monkeypatch.setattr(memory, "LARGE", 5)
    fb.evaluate([0, 0, 1], [0, 1, 1], progress=told.append, threads=1)
    (plan,) = [progress for progress in told if progress.stage == "plan"]
    assert plan.message.startswith("memory engine: 6 rows") and plan.total_rows == 6


def test_silent_where_nobody_looks(capsys) -> None:
    fb.evaluate([0, 0, 1], [0, 1, 1], engine="disk")
    assert capsys.readouterr().err == ""
    fb.evaluate([0, 0, 1], [0, 1, 1], engine="disk", progress=True)
    assert "fastbcubed: disk engine: 3 rows, 1 shard, limit " in capsys.readouterr().err
    with reporting(False) as report:
        assert report is None


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_bars_on_a_terminal_of_eighty_columns() -> None:
    import fcntl
    import pty
    import re
    import struct
    import termios

    code = """
        from fastbcubed.kernels import jit
        from fastbcubed.runtime import progress_bar
        from fastbcubed.runtime.threads import Progress
        progress_bar.QUIET_SECONDS, progress_bar._announced = 0, [True]
        with progress_bar.reporting(None) as report:
            report(Progress("plan", 0, 1, 0.0, message="disk engine: many rows"))
            report(Progress("build large clusters", 1, 4, 2.0, 5_000_000, 20_000_000, 7 << 28))
            report(Progress("close cells", 3, 3, 4.0, spilled=7 << 28))
            for listener in jit.listeners * 2:
                listener()
            report._bar.refresh()
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    environment = {**os.environ, "PYTHONPATH": str(Path(fb.__file__).parents[1]), "TERM": "xterm"}
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stderr=theirs, env=environment)
    assert process.wait(120) == 0
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r", "\n").split("\n")
    assert lines[0] == "fastbcubed: disk engine: many rows"
    bars = [line.rstrip() for line in lines]
    first, *_ = [line for line in bars if line.startswith("build large clusters")]
    assert first.endswith(" 25 % 2.5 M rows/s  0:06 left  spilled 1.8 GiB") and len(first) <= 80
    second, *_ = [line for line in bars if line.startswith("close cells")]
    assert second.endswith("100 % 0:04  spilled 1.8 GiB")
    *_, third = [line for line in bars if line.startswith("compile kernels")]
    assert third.endswith(" 2 so far")


def test_compilation_says_which_kernel_of_how_many(capsys, monkeypatch) -> None:
    monkeypatch.setattr(progress_bar, "_announced", [])
    with progress_bar.announcing_compilation(40):
        for _ in range(9):
            jit.listeners[-1]()
    first, *lines = capsys.readouterr().err.splitlines()
    assert first.startswith("fastbcubed: compiling kernels, which takes some seconds; they are kept in ")
    assert lines == [f"fastbcubed: compiling kernels, {k} of 40" for k in (4, 8)]
    shown: list[Progress] = []
    monkeypatch.setattr(progress_bar, "_Bar", lambda: Shown(shown))
    with progress_bar.announcing_compilation(40, shown=True):
        for _ in range(3):
            jit.listeners[-1]()
    assert [describe(each) for each in shown] == ["1 of 40", "2 of 40", "3 of 40"]
    shown.clear()
    with progress_bar.announcing_compilation(2, shown=True):
        for _ in range(3):  # one kernel by two processes at once
            jit.listeners[-1]()
    assert [describe(each) for each in shown] == ["1 of 2", "2 of 2", "2 of 2"]
    assert not capsys.readouterr().err


class Shown:
    """A bar that lists its progress."""

    def __init__(self, shown: list[Progress]) -> None:
        self.append, self.close = shown.append, lambda: None

    def __call__(self, progress: Progress) -> None:
        self.append(progress)
