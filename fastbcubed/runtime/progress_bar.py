"""Progress on stderr: stages that take more than a second, on a terminal; and compilation, announced once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from fastbcubed import kernels
from fastbcubed.errors import OptionError
from fastbcubed.runtime.spill import readable
from fastbcubed.runtime.threads import Progress

#: No bar is shown for shorter work.
QUIET_SECONDS = 1.0

Report = Callable[[Progress], None]

#: Not empty once this process has announced compilation.
_announced: list[bool] = []


def require_progress(progress: Any) -> None:
    """Raise OptionError for anything that cannot receive progress."""
    if progress is not None and not isinstance(progress, bool | np.bool_) and not callable(progress):
        raise OptionError(f"progress is True, False or a function, not {progress!r}")


@contextmanager
def reporting(progress: bool | Report | None) -> Iterator[Report | None]:
    """Yield the receiver of a pool's progress, and announce the compilation of kernels.

    `progress`: a bar on stderr if True, nothing if False, a callable, or if None a bar where stderr is a
    terminal.
    """
    require_progress(progress)
    if not (progress is None or callable(progress) or progress):
        yield None
        return
    with announcing_compilation():
        if callable(progress):
            yield progress
        elif progress or sys.stderr.isatty():
            bar = _Bar()
            try:
                yield bar
            finally:
                bar.close()
        else:
            yield None


class _Bar:
    """The plan in a line, and a bar per stage, shown once the work has taken a while."""

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
            self._tasks[stage] = self._bar.add_task(stage, total=1.0, **fields)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.stop()


def describe(progress: Progress) -> str:
    """Return the text next to a bar: rows per second, time left (at the end: taken), bytes spilled.

    Examples
    --------
    >>> describe(Progress("read rows", 1, 4, seconds=2.0, rows=5_000_000, total_rows=20_000_000))
    '2.5 M rows/s  0:06 left'
    >>> describe(Progress("close cells", 3, 3, seconds=72.0, spilled=3 << 29))
    '1:12  spilled 1.5 GiB'
    """
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


@contextmanager
def announcing_compilation() -> Iterator[None]:
    """Announce on stderr, once in a process, that kernels are being compiled, and where they are cached."""
    kernels.jit.listeners.append(_announce)
    try:
        yield
    finally:
        kernels.jit.listeners.remove(_announce)
        if kernels.jit.failures:
            _say(f"compiled kernels could not be kept: {kernels.jit.failures[0]}")
            kernels.jit.failures.clear()


def _announce() -> None:
    if not _announced:
        _announced.append(True)
        _say(f"compiling kernels, which takes some seconds; {kept()}")


def kept() -> str:
    """Return a clause on where compiled kernels are cached."""
    if kernels.jit.never_compiled():
        return "they are not compiled (NUMBA_DISABLE_JIT=1)"
    if not kernels.cache.WANTED:
        return "they are not kept (FASTBCUBED_CACHE=0)"
    directory = kernels.cache.kept_in(kernels.sums.add_up.dispatcher)
    if directory is None:
        return "they cannot be kept, as no directory can be written to. Name one with NUMBA_CACHE_DIR"
    if directory in kernels.cache.fallbacks:
        return (
            f"they are kept in {directory}, as neither the installation nor a home directory can be written to. "
            "Name a directory that stays with NUMBA_CACHE_DIR"
        )
    return f"they are kept in {directory} for later runs"


def _say(message: str) -> None:
    if sys.stderr is not None:
        with suppress(OSError):  # stderr may be closed
            print(f"fastbcubed: {message}", file=sys.stderr, flush=True)
