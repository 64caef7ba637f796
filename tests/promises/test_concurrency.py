"""After a fork, from several threads at once, and interrupted: no hang, no crash, the same scores."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import fastbcubed as fb
from fastbcubed.errors import FastBCubedError, OutOfMemoryError
from fastbcubed.render import vega
from fastbcubed.runtime import buffers
from fastbcubed.runtime.threads import Pool

ROOT = Path(fb.__file__).parent.parent
#: Seconds after which a child counts as hanging; on a busy machine it may compile kernels first.
PATIENCE = 120
fork_only = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")


def labels(n=60_000, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.integers(0, n // 4, n)
    return true, np.where(rng.random(n) < 0.1, rng.integers(0, n, n), true)


def scores(seed=0, threads=2, n=60_000):
    true, pred = labels(n, seed)
    weight = np.random.default_rng(seed).uniform(1, 2, true.size)
    ev = fb.evaluate(true, pred, weight=weight, metrics="all", threads=threads)
    return {**ev.overall, "first": ev.item(0)["precision"]}


def run(code, *args):
    """Start a child that runs `code`; its own Python, so that nothing of this process is in it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), *map(str, args)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )


def finish(child, seconds=PATIENCE):
    """Return what the child wrote and its exit status; kill it and all it started, and fail, if it hangs."""
    try:
        out, err = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        child.kill()
        child.communicate()
        pytest.fail(f"the child did not end within {seconds} seconds")
    return out, err, child.returncode


# -- Fork ------------------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.slow
@fork_only
def test_after_a_fork():
    """Evaluate with threads, fork, evaluate in the child: the threads of the parent are not needed.

    In a child of its own, for this process has threads of other libraries, which a fork may upset.
    """
    code = """
        import os, sys, warnings
        import numpy as np
        import fastbcubed as fb

        rng = np.random.default_rng(0)
        true, pred = rng.integers(0, 9000, 70_000), rng.integers(0, 9000, 70_000)
        weight = rng.uniform(1, 2, 70_000)

        def scores():
            return dict(fb.evaluate(true, pred, weight=weight, metrics="all", threads=4).overall)

        before = scores()
        warnings.simplefilter("ignore")  # newer versions of Python warn of forks in threaded processes
        for _ in range(3):
            child = os.fork()
            if child == 0:
                os._exit(0 if scores() == before else 3)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert scores() == before
        print("done")
    """
    out, err, status = finish(run(code))
    assert (out, status) == ("done\n", 0), err


@pytest.mark.process
@fork_only
def test_in_a_pool_of_forked_processes():
    code = """
        import multiprocessing, warnings
        import numpy as np
        import fastbcubed as fb

        def score(seed):
            rng = np.random.default_rng(seed)
            true, pred = rng.integers(0, 3000, 20_000), rng.integers(0, 3000, 20_000)
            return fb.evaluate(true, pred, metrics="pointwise", threads=2).overall["f1"]

        here = [score(seed) for seed in range(6)]
        warnings.simplefilter("ignore")
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(score, range(6)) == here
        print("done")
    """
    out, err, status = finish(run(code))
    assert (out, status) == ("done\n", 0), err


@pytest.mark.process
@fork_only
def test_forking_while_another_thread_evaluates():
    """The child has a copy of every lock, taken or not; it must not wait for a thread it lacks."""
    code = """
        import os, threading, warnings
        import numpy as np
        import fastbcubed as fb
        from fastbcubed.runtime import buffers

        buffers.SMALLEST = 1 << 10  # so that every evaluation goes through the list of idle buffers
        rng = np.random.default_rng(0)
        true, pred = rng.integers(0, 900, 5_000), rng.integers(0, 900, 5_000)

        def score():
            return fb.evaluate(true, pred, threads=1).overall["f1"]

        expected, stop = score(), threading.Event()

        def keep_busy():
            while not stop.is_set():
                assert score() == expected

        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=keep_busy) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(40):
            child = os.fork()
            if child == 0:
                os._exit(0 if score() == expected else 3)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        for thread in threads:
            thread.join()
        print("done")
    """
    out, err, status = finish(run(code))
    assert (out, status) == ("done\n", 0), err


@pytest.mark.process
@pytest.mark.pictures
@fork_only
def test_a_page_in_a_forked_child_of_a_process_that_made_one():
    """The converter's threads are lost in the child, which would wait for them for ever."""
    pytest.importorskip("vl_convert")
    code = """
        import os, warnings
        import fastbcubed as fb

        ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1], attributes={"part": list("xxyy")}, slices=["part"])
        before = str(ev.report())
        warnings.simplefilter("ignore")
        child = os.fork()
        if child == 0:
            os._exit(0 if str(ev.report()) == before == str(ev.report()) else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert str(ev.report()) == before
        print("done")
    """
    out, err, status = finish(run(code), 120)
    assert (out, status) == ("done\n", 0), err


@fork_only
def test_charts_of_a_forked_child_fail_by_name(monkeypatch):
    monkeypatch.setattr(vega, "_state", vega._State(lost=True))
    monkeypatch.setattr(vega.sys, "executable", "/no/such/python")
    with pytest.raises(FastBCubedError, match="drawn in a process forked from one that has"):
        vega.svg_of("{}")


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "import os; os.abort()"])
def test_too_few_addresses_for_charts_are_named(code, monkeypatch, tmp_path):
    """The converter would abort this process, and does abort the other one, before any work is done."""
    monkeypatch.setattr(vega, "_state", vega._State())
    monkeypatch.setattr(vega, "limit_of_addresses", lambda: 3 << 30)
    monkeypatch.setattr(vega, "CODE", code)
    for _ in range(2):
        with pytest.raises(
            OutOfMemoryError, match=r"may use 3,072 MiB of address space, but charts need .*ulimit -v"
        ):
            fb.evaluate([0, 0, 1], [0, 1, 1]).report(tmp_path / "page.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.process
@pytest.mark.pictures
def test_charts_of_another_process_are_the_same(monkeypatch, tmp_path):
    """Whatever modules are in the current directory."""
    pytest.importorskip("vl_convert")
    ev = fb.evaluate([0, 0, 1, 1], [0, 0, 0, 1], attributes={"part": list("xxyy")}, slices=["part"])
    before = str(ev.report())
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(vega, "_state", vega._State(lost=True))
    assert str(ev.report()) == before
    vega._end_other()


@pytest.mark.process
@fork_only
def test_forking_while_another_thread_works_out_an_attribute():
    code = """
        import os, threading, warnings
        from fastbcubed.runtime.object_attributes import cached_property

        class Lazy:
            def __init__(self, work):
                self.work = work

            @cached_property
            def value(self):
                return self.work()

        begun, end = threading.Event(), threading.Event()
        waits = Lazy(lambda: begun.set() or end.wait())
        thread = threading.Thread(target=lambda: waits.value)
        thread.start()
        begun.wait()
        warnings.simplefilter("ignore")
        child = os.fork()
        if child == 0:
            os._exit(Lazy(lambda: 3).value)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        end.set()
        thread.join()
        assert waits.value is True and "value" in vars(waits)
        print("done")
    """
    out, err, status = finish(run(code), 60)
    assert (out, status) == ("done\n", 0), err


@pytest.mark.process
def test_in_spawned_processes():
    """Results travel as plain values; kernels are loaded from the cache."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply_async(scores, (1, 1)).get(PATIENCE) == scores(1)


# -- Threads ---------------------------------------------------------------------------------------


@pytest.mark.process
def test_from_several_threads_at_once():
    expected = [scores(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as executor:
        found = list(executor.map(scores, [*range(4)] * 3, timeout=PATIENCE))
    assert found == expected * 3


@pytest.mark.slow
def test_one_evaluation_read_by_several_threads():
    """What is worked out when first asked for may be asked for twice at once."""
    true, pred = labels(8000)
    for _ in range(5):
        ev = fb.evaluate(true, pred, metrics="all", threads=2)
        barrier = threading.Barrier(4)

        def read(ev=ev, barrier=barrier):
            barrier.wait(PATIENCE)
            return ev.items().num_rows, ev.summary, ev.clusters("pred", limit=3).to_pylist()

        with ThreadPoolExecutor(4) as executor:
            found = [future.result(PATIENCE) for future in [executor.submit(read) for _ in range(4)]]
        assert all(each == found[0] for each in found)


@pytest.mark.process
def test_one_evaluation_whose_items_are_on_disk_is_read_by_several_threads():
    """In a child, which a crash would end."""
    child = run(
        """
        from concurrent.futures import ThreadPoolExecutor
        import fastbcubed as fb
        import pyarrow as pa

        labels = [f"cluster {k}" for k in range(90)] * 6
        rows = {"item": range(540), "cluster": labels, "part": [1, 2, 3] * 180}
        ev = fb.evaluate(pa.table(rows), dict(enumerate(sorted(labels))), engine="disk", keep="items")

        def ask(_):
            shown = ev.slices("part"), ev.items(columns=["part"]), ev.cluster("pred", "cluster 3"), ev.item(3)
            return list(map(repr, shown))

        with ThreadPoolExecutor(8) as pool:
            first, *others = pool.map(ask, range(120))
        assert all(found == first for found in others)
        """
    )
    _, err, status = finish(child)
    assert status == 0, err


def test_no_thread_is_left():
    before = set(threading.enumerate())
    scores(threads=4, n=2_000)
    with pytest.raises(ZeroDivisionError), Pool(3) as pool:
        pool.map(lambda k: 1 // k, range(-5, 5))
    assert set(threading.enumerate()) <= before


# -- Buffers that are used again -------------------------------------------------------------------


def test_a_buffer_is_not_given_away_while_it_is_held(monkeypatch):
    monkeypatch.setattr(buffers, "SMALLEST", 1 << 12)
    held = [buffers.empty(4096 + k, np.int64) for k in range(8)]
    for k, array in enumerate(held):
        array[:] = k
    views = [array[::7] for array in held]
    del held, array
    gc.collect()
    others = [buffers.empty(4096, np.int64) for _ in range(8)]
    for other in others:
        other[:] = -1
    for k, view in enumerate(views):
        assert (view == k).all()


@pytest.mark.slow
def test_scores_of_many_evaluations_that_share_buffers(monkeypatch):
    """Results outlive the next call: what they hold is not on a buffer that was given back."""
    expected = [scores(seed) for seed in range(3)]
    monkeypatch.setattr(buffers, "SMALLEST", 1 << 12)
    kept = []
    for _ in range(2):
        for seed in range(3):
            true, pred = labels(seed=seed)
            weight = np.random.default_rng(seed).uniform(1, 2, true.size)
            kept.append(fb.evaluate(true, pred, weight=weight, metrics="all", threads=2))
    for k, ev in enumerate(kept):
        overall = {name: ev.metric(name) for name in ev.overall}
        for name, score in overall.items():
            assert score == pytest.approx(expected[k % 3][name], rel=0, abs=1e-12 * max(1, abs(score))), name
        assert ev.item(0)["precision"] == expected[k % 3]["first"]


@pytest.mark.process
def test_buffers_given_back_by_the_garbage_collector():
    """The collector may run at any time, also where a buffer is being taken."""
    code = """
        import gc
        import numpy as np
        from fastbcubed.runtime import buffers

        buffers.SMALLEST = 1 << 12

        class Node:
            pass

        gc.set_threshold(1, 1, 1)
        for k in range(3000):
            node = Node()
            node.array, node.itself = buffers.empty(1024 + k % 7 * 512, np.int64), node
            del node
            buffers.idle_bytes()
        print("done")
    """
    out, err, status = finish(run(code), 60)
    assert (out, status) == ("done\n", 0), err


# -- Ctrl-C ----------------------------------------------------------------------------------------

ENDLESS = """
    import sys
    import numpy as np
    import fastbcubed as fb

    rng = np.random.default_rng(0)
    n = 3_000_000
    true, pred = rng.integers(0, n // 3, n), rng.integers(0, n // 3, n)
    fb.evaluate(true[:1000] // 9000, pred[:1000] // 9000)
    def tell(progress):
        print(progress.stage, flush=True)

    while True:
        fb.evaluate(true, pred, threads=int(sys.argv[1]), metrics="pointwise", progress=tell)
"""


@pytest.mark.process
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to a child there")
@pytest.mark.parametrize(
    ("threads", "blocks"),
    [
        (1, 1),
        (2, 9),
        pytest.param(1, 9, marks=pytest.mark.slow),
        pytest.param(2, 1, marks=pytest.mark.slow),
    ],
)
def test_interrupt(threads, blocks):
    """Ctrl-C ends the work between two blocks, with a KeyboardInterrupt, and leaves no process."""
    child = run(ENDLESS, threads)
    try:
        for _ in range(blocks):
            assert child.stdout.readline().strip(), child.stderr.read()
        child.send_signal(signal.SIGINT)
        _, err, status = finish(child)
    finally:
        child.kill()
        child.wait()
    assert status != 0
    assert err.rstrip().endswith("KeyboardInterrupt"), err


def test_interrupt_cancels_what_has_not_started():
    """An exception in one block, or in the progress callback, ends the call and later blocks."""
    here, ours, theirs, over = threading.get_ident(), [], [], threading.Event()

    def block(k):
        if threading.get_ident() == here:
            ours.append(k)
            if len(ours) == 3:
                raise KeyboardInterrupt
        else:  # the other thread is in a block until then
            theirs.append(k)
            over.wait(PATIENCE)

    for threads in (1, 2):
        ours.clear(), theirs.clear(), over.clear()
        with Pool(threads) as pool:
            with pytest.raises(KeyboardInterrupt):
                pool.map(block, range(200))
            over.set()
        assert len(ours) == 3 and len(theirs) < threads

    def stop(progress):
        raise KeyboardInterrupt

    true, pred = labels()
    with pytest.raises(KeyboardInterrupt):
        fb.evaluate(true, pred, progress=stop, threads=2)
    assert fb.evaluate(true, pred, threads=2).overall == fb.evaluate(true, pred, threads=1).overall
