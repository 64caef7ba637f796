"""How close the stages of an evaluation are to memory bandwidth: `python -m benchmarks.roofline [items] [shape …]`.

Each stage must read and write a certain number of bytes. Its efficiency is the time in which threads copy as many bytes
of a large array in the same run, divided by the time of the stage. The latencies of random reads, by size of the table,
show the cost of random access.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import fastbcubed as fb
from benchmarks.markdown import markdown
from benchmarks.markdown import seconds as time_text
from benchmarks.shapes import Rows, generate
from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.partitioned import NARROW_RECORDS, WIDE, WIDE_RECORDS
from fastbcubed.progress import Progress

RUNS = 5
SCORES = ["precision", "recall", "f1", "jaccard_index"]
#: Sizes of the tables for random reads: within the caches of a core, in the shared cache, and beyond.
TABLES = {"16 KiB": 1 << 14, "256 KiB": 1 << 18, "8 MiB": 1 << 23, "1 GiB": 1 << 30}
HEAD = ("stage", "bytes per item", "time", "ns per item", "GB/s", "of the copy's")


def copy_speed(threads: int, size: int = 1 << 29) -> float:
    """Return the bytes per second that threads read and write, each copying its own array: the best of five runs."""
    arrays = [(np.ones(size // 8), np.ones(size // 8)) for _ in range(threads)]
    best = 0.0
    with ThreadPoolExecutor(threads) as pool:
        for _ in range(RUNS):
            begun = time.perf_counter()
            list(pool.map(lambda pair: np.copyto(*pair), arrays))
            best = max(best, 2 * size * threads / (time.perf_counter() - begun))
    return best


@numba.njit
def follow(following: NDArray[np.int64], steps: int) -> int:
    """Follow a chain of random reads, each of which waits for the previous one."""
    at = 0
    for _ in range(steps):
        at = following[at]
    return at


@numba.njit
def gather(values: NDArray[np.int64], places: NDArray[np.int64]) -> int:
    """Return the sum of values at random positions, whose reads can overlap."""
    total = 0
    for place in places:
        total += values[place]
    return total


def latencies(steps: int = 1 << 22) -> Iterator[tuple[str, ...]]:
    """Yield for each table its size, and the nanoseconds of a dependent and of an independent random read."""
    rng = np.random.default_rng(0)
    for name, size in TABLES.items():
        n = size // 8
        order = rng.permutation(n)
        chain = np.empty(n, np.int64)
        chain[order] = np.roll(order, -1)
        places = rng.integers(0, n, steps)
        found = _warm_seconds(follow, chain, steps), _warm_seconds(gather, chain, places)
        yield name, *(f"{each / steps * 1e9:.1f}" for each in found)


def _warm_seconds(read: Any, *arguments: Any) -> float:
    read(*arguments)
    begun = time.perf_counter()
    read(*arguments)
    return time.perf_counter() - begun


def stage_times(rows: Rows) -> tuple[dict[str, float], float, Contingency]:
    """Return the median seconds of each stage and of the whole call over warm calls, and the cells."""
    runs: list[dict[str, float]] = []
    for _ in range(RUNS + 1):
        seen: dict[str, float] = {}
        begun = time.perf_counter()
        ev = fb.evaluate(
            rows.labels_true,
            rows.labels_pred,
            weight=rows.weights,
            metrics=SCORES,
            progress=partial(_note, seen),
        )
        seen["all"] = time.perf_counter() - begun
        runs.append(seen)
    medians = {name: float(np.median([run[name] for run in runs[1:]])) for name in runs[-1]}
    return medians, medians.pop("all"), ev.contingency


def _note(seen: dict[str, float], state: Progress) -> None:
    if state.stage != "plan":
        seen[state.stage] = state.seconds


def bytes_by_stage(n: int, cells: Contingency) -> dict[str, float]:
    """Return the bytes that each stage must read and write at least once."""
    records = WIDE_RECORDS if n >= WIDE else NARROW_RECORDS
    row, cell, arrived, final = (
        records[k].itemsize for k in ("weighted row", "weighted cell", "arrived", "final")
    )
    v = cells.n_cells
    labels, weights = 16 * n, 8 * n
    return {
        "check weights": weights,
        "count pairs of clusters": labels + weights,
        "count rows by part": labels / 2,
        "partition rows": labels + weights + row * n,
        "build cells": row * n + cell * v,
        "partition cells": (cell + arrived) * v,
        "close cells": (arrived + final) * v,
        "score cells": final * v,
    }


def main(n: int, shapes: list[str]) -> None:
    """Print the tables."""
    threads = len(os.sched_getaffinity(0))
    print(markdown(("table size", "dependent read, ns", "independent read, ns"), latencies(), 1))
    for shape in shapes:
        speed = copy_speed(threads)
        times, whole, cells = stage_times(generate(shape, n))
        moved = bytes_by_stage(n, cells)
        lines = []
        for stage, seconds in times.items():
            size = moved.get(stage)
            rate = "" if size is None else f"{size / seconds / 1e9:.1f}"
            share = "" if size is None else f"{size / seconds / speed:.0%}"
            each = "" if size is None else f"{size / n:.1f}"
            lines.append((stage, each, time_text(seconds), f"{seconds / n * 1e9:.2f}", rate, share))
        rest = whole - sum(times.values())
        lines.append(("outside the stages", "", time_text(rest), f"{rest / n * 1e9:.2f}", "", ""))
        lines.append(("all", "", time_text(whole), f"{whole / n * 1e9:.2f}", "", ""))
        print(
            f"\n{shape}, {n:,} items, {cells.n_cells:,} cells; {threads} threads copy {speed / 1e9:.1f} GB/s\n"
        )
        print(markdown(HEAD, lines, 1))


if __name__ == "__main__":
    main(int(float((sys.argv[1:] or ["1e7"])[0])), sys.argv[2:] or ["er", "heavy", "few_1000"])
