"""Kills children that write a result over another, at given renames or at random times; run by test_replacing.

    python killing.py DIRECTORY ENGINE before,after N_RANDOM

Each child is forked off, so that what it needs is compiled and in memory. After each the result in the directory has
to be one of the two that are written, whole. Prints how many were killed at a rename, at random, and how often each
result was there.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import fastbcubed as fb

#: Calls that change what is in a directory; a child is killed before and after each.
CHANGING = ("mkdir", "replace", "rename", "link", "unlink", "rmdir")


def tables(seed: int, n: int = 3000) -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(seed)
    item = np.arange(n)
    truth = pa.table(
        {"item": item, "cluster": rng.integers(0, n // 4, n), "country": rng.choice(["a", "b"], n)}
    )
    return truth, pa.table({"item": item, "cluster": rng.integers(0, n // 3, n)})


def writer(engine: str, seed: int, keep: str) -> tuple[Callable[[Path], Any], fb.Evaluation]:
    """Return what writes a result, and the result."""
    pair = tables(seed)
    how: dict[str, Any] = {"slices": "country", "keep": keep, "threads": 1}
    ev = fb.evaluate(*pair, **how, engine=engine)
    if engine == "disk":
        return lambda path: fb.evaluate(*pair, **how, engine="disk", out=path), ev
    return lambda path: ev.save(path, keep=keep), ev


def fork(work: Callable[[], Any]) -> int:
    """Run something in a process of its own; return its id."""
    child = os.fork()
    if not child:
        try:
            work()
        finally:
            os._exit(0)
    return child


def killed(child: int) -> bool:
    """Wait for a process; tell whether it was killed."""
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def at_change(work: Callable[[], Any], k: int, when: str) -> Callable[[], Any]:
    """Return the work, which kills its process before or after its k-th change of a directory."""

    def run() -> None:
        left = k

        def hooked(call: Callable[..., Any]) -> Callable[..., Any]:
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0 and when == "before":
                    os.kill(os.getpid(), signal.SIGKILL)
                found = call(*args, **kwargs)
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return found

            return wrapped

        for name in CHANGING:
            setattr(os, name, hooked(getattr(os, name)))
        work()

    return run


def main(directory: Path, engine: str, moments: list[str], n_random: int) -> None:
    rng = random.Random(n_random)
    writers, results = zip(
        *(writer(engine, k, keep) for k, keep in enumerate(("items", "cells"))), strict=True
    )
    answers = [ev.to_json() for ev in results]
    begin = time.perf_counter()
    for write in writers:  # compiled, and timed
        write(directory)
    usual = (time.perf_counter() - begin) / 2
    there: Counter[int] = Counter()
    kills = {"change": 0, "random": 0}

    def look() -> None:
        loaded = fb.load(directory)
        which = answers.index(loaded.to_json())
        assert loaded.clusters("pred").equals(results[which].clusters("pred"))
        assert not loaded.has_items or loaded.items().equals(results[which].items())
        there[which] += 1

    for write in writers:
        for when in moments:
            k = 0
            while killed(fork(at_change(lambda write=write: write(directory), k, when))):
                kills["change"] += 1
                k += 1
                look()
    while kills["random"] < n_random:
        write = rng.choice(writers)
        child = fork(lambda write=write: write(directory))
        time.sleep(rng.random() * usual)
        os.kill(child, rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
        kills["random"] += killed(child)
        look()
    for write, answer in zip(
        writers, answers, strict=True
    ):  # and nothing is left after one that is not killed
        write(directory)
        assert fb.load(directory).to_json() == answer
        assert not [name for name in os.listdir(directory) if name.startswith(".")]
    print(kills["change"], kills["random"], there[0], there[1], flush=True)
    os._exit(0)  # a process that has forked may be aborted where Arrow ends its threads, when all is done


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(","), int(sys.argv[4]))
