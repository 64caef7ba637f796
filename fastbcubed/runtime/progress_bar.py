"""Progress on stderr: stages that take more than a second, and the number of kernels compiled so far."""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np

from fastbcubed import kernels
from fastbcubed.errors import OptionError, quoted
from fastbcubed.runtime.spill import readable
from fastbcubed.runtime.threads import Progress

#: Seconds of work before a bar is shown.
QUIET_SECONDS = 1.0

Report = Callable[[Progress], None]

#: Name of the stage of compilation in a bar.
COMPILE = "compile kernels"

#: Not empty after this process has announced compilation.
_announced: list[bool] = []


def require_progress(progress: Any) -> None:
    """Raise OptionError unless `progress` is a boolean, None or a callable."""
    if progress is not None and not isinstance(progress, bool | np.bool_) and not callable(progress):
        raise OptionError(f"progress must be True, False or a function, not {quoted(progress)}")


def reporting(progress: bool | Report | None) -> AbstractContextManager[Report | None]:
    """Yield the callback for a pool's progress, and announce the compilation of kernels.

    `progress` is True for a bar on stderr, False for none, None for a bar if stderr is a terminal, or a callable.
    """
    require_progress(progress)
    if not (progress is None or callable(progress) or progress):
        return nullcontext()
    if callable(progress):
        return announcing_compilation(shown=False, report=progress)
    return announcing_compilation(shown=progress)


class _Bar:
    """A line with the plan, and a bar for each stage, shown after the work has taken a while."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}

    def __call__(self, progress: Progress) -> None:
        if progress.message:
            _say(progress.message)
            return
        if self._bar is None:
            if time.perf_counter() - self._started < QUIET_SECONDS:
                return
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bars

            columns = (
                TextColumn("{task.description:21}"), BarColumn(12), TextColumn("{task.percentage:3.0f} %"),
                TextColumn("{task.fields[facts]}"),
            )  # fmt: skip
            self._bar = Bars(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
        stage, fields = progress.stage, {"completed": progress.share, "facts": describe(progress)}
        if stage in self._tasks:
            self._bar.update(self._tasks[stage], **fields)
        else:
            total = 1.0 if progress.total else None
            self._tasks[stage] = self._bar.add_task(stage, total=total, **fields)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()


def describe(progress: Progress) -> str:
    """Return the text next to a bar: rows per second, time left (at the end, time taken) and bytes spilled.

    Examples
    --------
    >>> describe(Progress("read rows", 1, 4, seconds=2.0, rows=5_000_000, total_rows=20_000_000))
    '2.5 M rows/s  0:06 left'
    >>> describe(Progress("close cells", 3, 3, seconds=72.0, spilled=3 << 29))
    '1:12  spilled 1.5 GiB'
    """
    if progress.stage == COMPILE:
        return of_all(progress.done, progress.total)
    facts = [f"{progress.rows_per_second / 1e6:.1f} M rows/s"] if progress.rows else []
    if progress.share == 1:
        facts.append(_clock(progress.seconds))
    elif progress.share:
        facts.append(f"{_clock(progress.seconds_left)} left")
    if progress.spilled:
        facts.append(f"spilled {readable(progress.spilled)}")
    return "  ".join(facts)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def of_all(k: int, total: int) -> str:
    """Return "k of total", or k if the total is unknown."""
    return f"{k} of {total}" if total else f"{k} so far"


@contextmanager
def announcing_compilation(
    total: int = 0, shown: bool | None = None, report: Report | None = None
) -> Iterator[Report | None]:
    """Announce on stderr that kernels are being compiled and where they are cached; then count them.

    The announcement is made once per process. The count is shown in the bar that is yielded, if one is `shown` or
    stderr is a terminal; otherwise, if there are `total` kernels, it is printed on a line for each tenth of them. If
    `report` is given, it is yielded instead of a bar.
    """
    if shown is None:
        shown = sys.stderr is not None and sys.stderr.isatty()
    bar = _Bar() if shown else None
    started, compiled = time.perf_counter(), 0

    def announce() -> None:
        nonlocal compiled
        compiled += not total or compiled < total  # two processes may compile a kernel at once
        if not _announced:
            _announced.append(True)
            _say(f"compiling kernels, which takes some seconds; {kept()}")
            if newer := kernels.cache.untried():
                _say(newer)
        if bar is not None:
            bar(Progress(COMPILE, compiled, total, time.perf_counter() - started))
        elif total and compiled % max(1, total // 10) == 0:
            _say(f"compiling kernels, {of_all(compiled, total)}")

    kernels.jit.listeners.append(announce)
    try:
        yield bar if report is None else report
    finally:
        kernels.jit.listeners.remove(announce)
        if bar is not None:
            bar.close()
        if kernels.jit.failures:
            _say(f"compiled kernels could not be cached: {kernels.jit.failures[0]}")
            kernels.jit.failures.clear()


def kept() -> str:
    """Return a clause that states where compiled kernels are cached."""
    if kernels.jit.never_compiled():
        return "they are not compiled (NUMBA_DISABLE_JIT=1)"
    if not kernels.cache.WANTED:
        return "they are not kept (FASTBCUBED_CACHE=0)"
    directory = kernels.cache.kept_in(kernels.sums.add_up.dispatcher)
    if directory is None:
        return "they cannot be kept, as no directory can be written to. Name one with NUMBA_CACHE_DIR"
    if named := kernels.cache.passed_over(directory):
        return f"they are kept in {directory}, as {named}, named by NUMBA_CACHE_DIR, cannot be written to"
    if directory in kernels.cache.fallbacks:
        return (
            f"they are kept in {directory}, as neither the installation nor a home directory can be written to. "
            "Name a permanent directory with NUMBA_CACHE_DIR"
        )
    return f"they are kept in {directory} for later runs"


def _say(message: str) -> None:
    if sys.stderr is not None:
        with suppress(OSError):  # if stderr is closed
            text = f"fastbcubed: {message}"
            if sys.stderr.isatty():
                text = textwrap.fill(
                    text, 80, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
                )
            print(text, file=sys.stderr, flush=True)
