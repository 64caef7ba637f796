"""Extended BCubed of overlapping clusterings: time and memory by number of items, overlap and cluster size."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks import memory
from benchmarks.harness import ROOT

__all__ = ["CASES", "QUICK_CASES", "Case", "make_tables", "measure_overlap"]

MOVED = 0.1  # share of items whose first cluster differs in the prediction
OTHER_SECOND = 0.3  # share of second clusters that differ in the prediction
WARM = 3  # calls after the first


@dataclass(frozen=True)
class Case:
    """Items in clusters of one size, a share of which are also in a second cluster.

    With `giant`, half of the items are in one cluster. With `rival`, the package `bcubed` is measured as well. With a
    memory `limit`, the disk engine reads Parquet files.
    """

    n_items: int
    size: int
    overlap: float
    giant: bool = False
    rival: bool = False
    limit: str | None = None


CASES = (
    Case(5_000, 10, 0.3, rival=True),
    Case(10**5, 10, 0.3),
    Case(10**6, 10, 0.0),
    Case(10**6, 10, 0.1),
    Case(10**6, 10, 0.3),
    Case(10**6, 10, 1.0),
    Case(10**6, 100, 0.3),
    Case(10**6, 1_000, 0.3),
    Case(2 * 10**6, 10, 0.0, giant=True),
    Case(2 * 10**6, 10, 0.01, giant=True),
    Case(10**7, 10, 0.3),
    Case(10**7, 10, 0.3, limit="512MiB"),
)
QUICK_CASES = (
    Case(200, 10, 0.3, rival=True),
    Case(2_000, 10, 0.01, giant=True),
    Case(2_000, 10, 0.3, limit="64MiB"),
)

Codes = NDArray[np.int64]


def make_tables(case: Case) -> tuple[pa.Table, pa.Table]:
    """Return both tables of memberships, with hashed item ids and shuffled rows."""
    rng = np.random.default_rng([0, case.n_items, *repr(case).encode()])
    n_clusters = max(2, case.n_items // case.size)
    first = rng.integers(0, n_clusters, case.n_items)
    if case.giant:
        first[: case.n_items // 2] = 0
    several = np.flatnonzero(rng.random(case.n_items) < case.overlap)
    second = rng.integers(0, n_clusters, several.size)

    def changed(codes: Codes, share: float) -> Codes:
        return np.where(rng.random(codes.size) < share, rng.integers(0, n_clusters, codes.size), codes)

    return (
        memberships(first, several, second, rng),
        memberships(changed(first, MOVED), several, changed(second, OTHER_SECOND), rng),
    )


def memberships(first: Codes, several: Codes, second: Codes, rng: np.random.Generator) -> pa.Table:
    """Return the table of the items' first and second clusters, without second clusters that equal the first."""
    other = second != first[several]
    items = np.concatenate([np.arange(first.size), several[other]])
    labels = np.concatenate([first, second[other]])
    order = rng.permutation(items.size)
    odd = np.uint64(0x9E3779B97F4A7C15)  # multiplying by it maps ids one to one to 64 bits
    hashed = ((items[order].astype(np.uint64) + np.uint64(1)) * odd).view(np.int64)
    return pa.table({"item": hashed, "cluster": labels[order]})


def measure_overlap(cases: tuple[Case, ...] = CASES, rounds: int = 3) -> Iterator[dict[str, Any]]:
    """Measure each case in fresh processes; yield result lines."""
    for case in cases:
        record: dict[str, Any] = {"kind": "overlap", **asdict(case)}
        command = [sys.executable, "-m", "benchmarks.overlap", json.dumps(asdict(case))]
        try:
            found = [
                json.loads(
                    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
                )
                for _ in range(rounds)
            ]
        except subprocess.CalledProcessError as error:
            record |= {"outcome": "error", "message": error.stderr[-500:], "seconds": None}
        else:
            middle = statistics.median(each["seconds"] for each in found)
            record |= next(each for each in found if each["seconds"] >= middle)
            record |= {"outcome": "ok", "seconds": middle, "all_seconds": [e["seconds"] for e in found]}
        yield record


def measure(case: Case) -> dict[str, Any]:
    """Measure one case in this process: the first call, warm calls, the growth of memory."""
    import fastbcubed as fb

    truth, prediction = make_tables(case)
    n_memberships = truth.num_rows + prediction.num_rows
    with TemporaryDirectory(dir="/var/tmp") as directory:
        options: dict[str, Any] = {"progress": False}
        given: tuple[Any, Any] = truth, prediction
        if case.limit is not None:
            options |= {"engine": "disk", "memory_limit": case.limit}
            given = Path(directory, "truth.parquet"), Path(directory, "prediction.parquet")
            for path, table in zip(given, (truth, prediction), strict=True):
                pq.write_table(table, path, row_group_size=1 << 20)
            del truth, prediction, table
        fb.extended_bcubed(*make_tables(Case(1_000, 10, 0.3)), **options)  # loads the compiled kernels
        found = time_calls(given, options, n_memberships)
    if case.rival:
        found |= measure_rival(truth, prediction)
        found["difference"] = max(
            abs(found[name] - found[f"rival_{name}"]) for name in ("precision", "recall")
        )
    return found


def time_calls(given: tuple[Any, Any], options: dict[str, Any], n_memberships: int) -> dict[str, Any]:
    """Return the times of the first call and of warm ones, and the growth of the process's memory."""
    import fastbcubed as fb

    if "engine" not in options:
        memory.touch_memory(150 * n_memberships)
    memory.reset_peak()
    before = memory.resident_memory() or 0
    seconds = []
    for _ in range(1 + WARM):
        start = time.perf_counter()
        ev = fb.extended_bcubed(*given, **options)
        seconds.append(time.perf_counter() - start)
    return {
        "seconds": statistics.median(seconds[1:]),
        "first_seconds": seconds[0],
        "memberships": n_memberships,
        "growth_bytes": memory.peak_memory() - before,
        "precision": ev.precision,
        "recall": ev.recall,
    }


def measure_rival(truth: pa.Table, prediction: pa.Table) -> dict[str, float]:
    """Measure the package `bcubed` on the dictionaries that it takes."""
    import bcubed

    sides = []
    for table in (truth, prediction):
        sets: dict[int, set[int]] = {}
        for item, cluster in zip(*(column.to_pylist() for column in table.columns), strict=True):
            sets.setdefault(item, set()).add(cluster)
        sides.append(sets)
    start = time.perf_counter()
    precision, recall = bcubed.precision(sides[1], sides[0]), bcubed.recall(sides[1], sides[0])
    return {
        "rival_seconds": time.perf_counter() - start,
        "rival_precision": float(precision),
        "rival_recall": float(recall),
    }


if __name__ == "__main__":
    print(json.dumps(measure(Case(**json.loads(sys.argv[1])))))
