"""The pool of threads: whatever is mapped comes back in order, each task once, and an error is raised as it was."""

from __future__ import annotations

import threading

import pytest

from fastbcubed.runtime.threads import Pool, Progress


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 100])
def test_results_come_in_the_order_of_the_tasks(n: int, threads: int) -> None:
    called: list[int] = []
    second = threading.Event()

    def block(k: int, twice: int) -> int:
        if threads > 1 and n > 1 and k < 2:  # the first ends after the second
            second.set() if k else second.wait(30)
        called.append(k)
        return k + twice

    with Pool(threads) as pool:
        assert pool.map(block, range(n), range(0, 2 * n, 2)) == [3 * k for k in range(n)]
    assert sorted(called) == list(range(n))


def test_threads_share_the_tasks() -> None:
    """Two tasks that wait for each other end, so they run at once; a slow one holds up no other."""
    met = threading.Barrier(2, timeout=30)
    with Pool(2) as pool:
        pool.map(lambda _: met.wait(), range(6))
    first = threading.Event()
    with Pool(2) as pool:
        done = pool.map(lambda k: first.wait(30) if k == 0 else first.set() if k == 19 else True, range(20))
    assert done == [True] * 19 + [None]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_is_raised_as_it_was_and_ends_the_stage(threads: int) -> None:
    here, called = threading.get_ident(), []
    over = threading.Event()

    def block(k: int) -> None:
        called.append(k)
        if threading.get_ident() != here:
            over.wait(30)  # so that the thread that calls comes to the fourth block
        elif k >= 4:
            raise IndexError("of block 4")

    with Pool(threads) as pool:
        with pytest.raises(IndexError, match="of block 4"):
            pool.map(block, range(1000))
        over.set()
        assert len(called) <= 4 + threads
        assert pool.map(str, [1, 2, 3]) == ["1", "2", "3"], "the pool works on"


def test_an_error_of_another_thread_is_raised_as_it_was() -> None:
    here, failed = threading.get_ident(), threading.Event()

    def block(k: int) -> None:
        if threading.get_ident() == here:
            failed.wait(30)
        else:
            failed.set()
            raise IndexError("of another thread")

    with Pool(2) as pool, pytest.raises(IndexError, match="of another thread"):
        pool.map(block, range(2))


def test_progress_is_told_by_the_thread_that_waits() -> None:
    told: list[tuple[int, int]] = []

    def tell(progress: Progress) -> None:
        told.append((threading.get_ident(), progress.rows))

    with Pool(3, tell) as pool:
        pool.map(abs, range(50), rows=[2] * 50)
    assert told == [(threading.get_ident(), 2 * k) for k in range(1, 51)]
