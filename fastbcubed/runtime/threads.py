"""A thread pool that maps kernels over fixed blocks, so that results do not depend on the number of threads."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

from fastbcubed.runtime.arguments import whole_number

T = TypeVar("T")


#: Number of rows per kernel call; fixed, so that blocks do not depend on the number of threads.
BLOCK = 1 << 20


@dataclass(frozen=True)
class Progress:
    """The state of a stage of the work, as passed to a progress callback.

    Attributes
    ----------
    stage : str
        Name of the stage; "plan" before the work begins.
    done, total : int
        Numbers of completed blocks and of all blocks of the stage.
    seconds : float
        Seconds since the stage began.
    rows, total_rows : int
        Numbers of completed rows and of all rows; both are 0 for a stage that does not count rows.
    spilled : int
        Number of bytes written to spill files so far.
    message : str
        In the plan, a line that says how the work will be done and what resources the work needs; empty in other
        stages.
    """

    stage: str
    done: int
    total: int
    seconds: float
    rows: int = 0
    total_rows: int = 0
    spilled: int = 0
    message: str = ""

    @property
    def rows_per_second(self) -> float:
        """Rows per second in this stage; 0 if the stage does not count rows."""
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def share(self) -> float:
        """The completed share of the stage, measured in rows if the stage counts rows."""
        return self.rows / self.total_rows if self.total_rows else self.done / max(1, self.total)

    @property
    def seconds_left(self) -> float:
        """Estimated seconds until the end of the stage; infinite before its first block."""
        return self.seconds * (1 / self.share - 1) if self.share else math.inf


def available_threads() -> int:
    """Return the number of cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def blocks(n: int, size: int = BLOCK) -> list[tuple[int, int]]:
    """Divide `range(n)` into consecutive blocks of `size`; if n is 0, there is one empty block.

    Examples
    --------
    >>> blocks(5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    return [(start, min(start + size, n)) for start in range(0, max(n, 1), size)]


def ahead(made: Iterator[T]) -> Iterator[T]:
    """Yield the values of an iterator, computing the next one on a separate thread at the same time.

    Examples
    --------
    >>> list(ahead(iter("ab")))
    ['a', 'b']
    """
    end: Any = object()
    try:
        with ThreadPoolExecutor(1, "fastbcubed-ahead") as maker:
            coming = maker.submit(next, made, end)
            while (each := coming.result()) is not end:
                coming = maker.submit(next, made, end)
                yield each
                del each
    finally:
        if isinstance(made, Generator):
            made.close()


@contextmanager
def lend(idle: list[T], make: Callable[[], T], fits: Callable[[T], bool] | None = None) -> Iterator[T]:
    """Lend a workspace to one block: an idle one that fits or else a new one, which is then idle."""
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
    """Threads for one call of the library; results are returned in the order of the blocks.

    `threads` defaults to all cores of the process; `progress` is called with a `Progress` after every block, from the
    thread that waits for it. The attribute `spilled` is a function that returns the number of bytes spilled so far.

    Threads are started on first use and end with the `with` block, so that none exists when a child is forked; later
    calls of `map` run in the calling thread. An exception or Ctrl-C cancels the blocks that have not started.
    """

    def __init__(
        self, threads: int | None = None, progress: Callable[[Progress], None] | None = None
    ) -> None:
        self.threads = available_threads()
        if threads is not None:
            self.threads = whole_number(threads, "threads", "threads", least=1)
        self._progress = progress
        self._executor: ThreadPoolExecutor | None = None
        self._workspaces: dict[Any, list[Any]] = {}
        self._stage: _Stage | None = None
        self._over = False
        self.spilled: Callable[[], int] = int  # returns 0 until data are spilled

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None
        self._workspaces.clear()
        self._over, self._progress = True, None

    def wider(self) -> Pool:
        """Return a pool with one more thread and the same progress callback, for stages that wait for the disk."""
        pool = Pool(self.threads + 1, self._progress)
        pool.spilled = self.spilled
        return pool

    def workspace(
        self, key: Any, make: Callable[[], T], fits: Callable[[T], bool] | None = None
    ) -> AbstractContextManager[T]:
        """Lend a workspace of a kind to one block; an idle one is reused if it fits.

        The key identifies all other properties of the workspace, such as its types and initial contents.
        """
        return lend(self._workspaces.setdefault(key, []), make, fits)

    def map(
        self,
        function: Callable[..., T],
        *iterables: Iterable[Any],
        stage: str = "",
        rows: Iterable[int] | None = None,
    ) -> list[T]:
        """Call `function` on every block, and return the results in block order; `rows` are the rows of each."""
        tasks = list(zip(*iterables, strict=True))
        in_turn = self.threads == 1 or len(tasks) == 1 or self._over
        if in_turn and self._progress is None:  # neither other threads nor a progress callback
            return [function(*task) for task in tasks]
        sizes = [0] * len(tasks) if rows is None else list(rows)
        with self.stage(stage, len(tasks), sum(sizes)) as step:
            if in_turn:
                results = []
                for task, size in zip(tasks, sizes, strict=True):
                    results.append(function(*task))
                    step(size)
                return results
            return self._shared(function, tasks, sizes, step)

    def _shared(
        self,
        function: Callable[..., T],
        tasks: list[tuple[Any, ...]],
        sizes: list[int],
        step: Callable[[int], None],
    ) -> list[T]:
        """Call `function` on all tasks; each thread takes the next one, which costs less than a future per task."""
        waiting = deque(enumerate(tasks))
        ended: SimpleQueue[tuple[int, T | None, BaseException | None]] = SimpleQueue()

        def work() -> None:
            with suppress(IndexError):  # raised when no tasks are left
                while True:
                    k, task = waiting.popleft()
                    ended.put(_outcome(k, function, task))

        for _ in range(min(self.threads, len(tasks)) - 1):  # the calling thread takes tasks as well
            self._started().submit(work)
        results: list[Any] = [None] * len(tasks)
        try:
            for _ in tasks:
                if waiting and ended.empty():
                    with suppress(IndexError):  # raised if another thread took the last task
                        k, task = waiting.popleft()
                        ended.put(_outcome(k, function, task))
                k, results[k], error = ended.get()
                if error is not None:
                    raise error
                step(sizes[k])
        except BaseException:
            waiting.clear()
            error = None  # its traceback would keep arrays in memory until garbage collection
            raise
        return results

    def stream(
        self,
        function: Callable[..., T],
        tasks: Sequence[Any],
        stage: str = "",
        rows: Sequence[int] | None = None,
    ) -> Iterator[T]:
        """Yield the result for each tuple of arguments, in order; only a few results are computed ahead."""
        executor = self._started()
        sizes = [0] * len(tasks) if rows is None else rows
        coming: deque[Future[T]] = deque()
        with self.stage(stage, len(tasks), sum(sizes)) as step:
            for done, size in enumerate(sizes):
                for task in tasks[done + len(coming) : done + 1 + self.threads]:
                    coming.append(executor.submit(function, *task))
                yield coming.popleft().result()
                step(size)

    def ahead(self, made: Iterator[T]) -> Iterator[T]:
        """Yield the values of an iterator that uses this pool; with several threads, the next is computed ahead."""
        if self.threads == 1:
            return made
        self._started()
        return ahead(made)

    def _started(self) -> ThreadPoolExecutor:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(self.threads, "fastbcubed")
        return self._executor

    @contextmanager
    def stage(self, name: str, total: int, total_rows: int = 0) -> Iterator[Callable[[int], None]]:
        """Report a stage of `total` steps; the yielded function must be called after each step with its number of rows.

        Steps of a nested stage report the outer stage, with the time taken so far.
        """
        outer, started = self._stage, time.perf_counter()
        mine = _Stage(name, total, total_rows, started) if outer is None else outer
        if outer is None:
            self._stage = mine

        def step(rows: int) -> None:
            if outer is None:
                mine.done += 1
                mine.rows += rows
            if self._progress is not None:
                seconds = time.perf_counter() - mine.started
                self._progress(
                    Progress(
                        mine.name, mine.done, mine.total, seconds, mine.rows, mine.total_rows, self.spilled()
                    )
                )

        try:
            yield step
        finally:
            if outer is None:
                self._stage = None

    def announce(self, message: str, rows: int) -> None:
        """Report a plan: a message on how `rows` rows will be processed, before the work begins."""
        if self._progress is not None:
            self._progress(Progress("plan", 0, 1, 0.0, total_rows=rows, message=message))


def _outcome(
    k: int, function: Callable[..., T], task: tuple[Any, ...]
) -> tuple[int, T | None, BaseException | None]:
    try:
        return k, function(*task), None
    except BaseException as error:
        return k, None, error


@dataclass
class _Stage:
    name: str
    total: int
    total_rows: int
    started: float
    done: int = 0
    rows: int = 0
