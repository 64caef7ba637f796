"""Progress on stderr: stages that take more than a second, on a terminal; and compilation, said once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastbcubed.runtime.pool import Progress
from fastbcubed.runtime.spill import readable

__all__ = ["Progress", "describe", "reporting"]

#: Work shorter than this is not worth a bar.
QUIET_SECONDS = 1.0

Report = Callable[[Progress], None]


@contextmanager
def reporting(progress: bool | Report | None) -> Iterator[Report | None]:
    """Yield what a pool reports its progress to, and say so when kernels had to be compiled.

    Parameters
    ----------
    progress : bool, callable or None
        True: a bar on stderr; False: nothing; a callable: that; None: a bar if stderr is a terminal.
    """
    if progress is False:
        yield None
        return
    with _announcing_compilation():
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
            print(f"fastbcubed: {progress.message}", file=sys.stderr, flush=True)
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
        stage, told = progress.stage, {"completed": progress.share, "facts": describe(progress)}
        if stage in self._tasks:
            self._bar.update(self._tasks[stage], **told)
        else:
            self._tasks[stage] = self._bar.add_task(stage, total=1.0, **told)

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


def describe(progress: Progress) -> str:
    """Return what stands beside a bar: rows per second, time left (at the end: taken), bytes spilled.

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
def _announcing_compilation() -> Iterator[None]:
    """Say on stderr that kernels are compiled when that begins, and how long it took."""
    from numba.core import event

    listener = _make_listener(event)
    event.register("numba:compile", listener)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)  # type: ignore[no-untyped-call]
        if listener.seconds:
            print(
                f"fastbcubed: compiled in {listener.seconds:.1f} s; kept for the next start",
                file=sys.stderr,
            )


def _make_listener(event: Any) -> Any:
    class Listener(event.Listener):  # type: ignore[misc]
        """Adds up the time of compilations, which nest."""

        def __init__(self) -> None:
            self.depth = 0
            self.began = 0.0
            self.seconds = 0.0

        def on_start(self, happening: Any) -> None:
            if not self.depth:
                self.began = time.perf_counter()
                if not self.seconds:
                    print("fastbcubed: compiling its kernels, once ...", file=sys.stderr, flush=True)
            self.depth += 1

        def on_end(self, happening: Any) -> None:
            self.depth -= 1
            if not self.depth:
                self.seconds += time.perf_counter() - self.began

    return Listener()
