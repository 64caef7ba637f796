"""A thread pool that maps kernels over fixed blocks: same results for any number of threads."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

__all__ = ["BLOCK", "Pool", "Progress", "available_threads", "blocks"]

#: Rows handled by one kernel call; fixed, so that the split never depends on the number of threads.
BLOCK = 1 << 20


@dataclass(frozen=True)
class Progress:
    """What a progress callback is told: `done` of `total` blocks of a `stage`, after `seconds`."""

    stage: str
    done: int
    total: int
    seconds: float


def available_threads() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def blocks(n: int, size: int = BLOCK) -> list[tuple[int, int]]:
    """Cut `range(n)` into consecutive blocks of `size`; at least one block, which may be empty.

    Examples
    --------
    >>> blocks(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, n)) for start in range(0, max(n, 1), size)]


@contextmanager
def lend(idle: list[T], make: Callable[[], T], fits: Callable[[T], bool] | None = None) -> Iterator[T]:
    """Lend a workspace to one block: an idle one that fits, else a new one; it is idle afterwards."""
    try:
        space = idle.pop()
    except IndexError:
        space = make()
    if fits is not None and not fits(space):
        space = make()
    try:
        yield space
    finally:
        idle.append(space)


class Pool:
    """Threads for one call of the library; results come back in the order of the blocks.

    Threads are started on first use and end with the `with` block, so that nothing survives into a
    forked child; what is mapped later runs in the calling thread. An exception or Ctrl-C cancels the
    blocks that have not started.

    Parameters
    ----------
    threads : int, optional
        Number of threads; all cores of the process when absent.
    progress : callable, optional
        Called with a `Progress` after every block, from the calling thread.
    """

    def __init__(
        self, threads: int | None = None, progress: Callable[[Progress], None] | None = None
    ) -> None:
        self.threads = threads or available_threads()
        self._progress = progress
        self._executor: ThreadPoolExecutor | None = None
        self._workspaces: dict[Any, list[Any]] = {}
        self._over = False

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None
        self._workspaces.clear()
        self._over, self._progress = True, None

    def workspace(
        self, key: Any, make: Callable[[], T], fits: Callable[[T], bool] | None = None
    ) -> AbstractContextManager[T]:
        """Lend a workspace of this kind to one block; it is used again as long as it fits.

        The key says all else that matters of a workspace: its types, and what it holds at the start.
        """
        return lend(self._workspaces.setdefault(key, []), make, fits)

    def map(self, function: Callable[..., T], *iterables: Iterable[Any], stage: str = "") -> list[T]:
        """Call `function` on every block and return the results in the order of the blocks."""
        tasks = list(zip(*iterables, strict=True))
        started = time.perf_counter()
        if self.threads == 1 or len(tasks) == 1 or self._over:
            results = []
            for task in tasks:
                results.append(function(*task))
                self._report(stage, len(results), len(tasks), started)
            return results
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self.threads, "fastbcubed")
        futures: list[Future[T]] = [self._executor.submit(function, *task) for task in tasks]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                self._report(stage, done, len(tasks), started)
        except BaseException:
            for future in futures:
                future.cancel()
            raise
        return [future.result() for future in futures]

    def stream(self, function: Callable[..., T], tasks: Sequence[Any], stage: str = "") -> Iterator[T]:
        """Yield the result for every tuple of arguments, in their order; only a few are made ahead."""
        started = time.perf_counter()
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self.threads, "fastbcubed")
        ahead: deque[Future[T]] = deque()
        for done in range(len(tasks)):
            for task in tasks[done + len(ahead) : done + 1 + self.threads]:
                ahead.append(self._executor.submit(function, *task))
            yield ahead.popleft().result()
            self._report(stage, done + 1, len(tasks), started)

    def _report(self, stage: str, done: int, total: int, started: float) -> None:
        if self._progress is not None:
            self._progress(Progress(stage, done, total, time.perf_counter() - started))
