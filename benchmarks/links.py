"""Thresholds of links: the time of the whole curve, of one evaluation, and of 20 thresholds one by one."""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import memory
from benchmarks.harness import ROOT

__all__ = ["CASES", "QUICK_CASES", "LinkCase", "make_links", "measure_links", "write_links"]

#: The thresholds at which rivals cluster, one by one.
THRESHOLDS = tuple(np.linspace(0.05, 0.95, 20).round(4).tolist())
WARM = 2  # calls after the first
LINKS_AT_ONCE = 10**7  # links that are generated and written at once


@dataclass(frozen=True)
class LinkCase:
    """Items in true clusters of mean size 2.5, with mostly strong links within clusters, and weak links anywhere."""

    n_items: int
    n_links: int
    decimals: int | None = None  # decimal digits of the scores; by default, all
    rivals: bool = False  # whether to measure also 20 thresholds one by one
    limit: str | None = None  # memory limit of a sweep of Parquet files; None for tables in memory


CASES = (
    LinkCase(10**5, 3 * 10**5, rivals=True),
    LinkCase(10**6, 3 * 10**6, rivals=True),
    LinkCase(10**6, 3 * 10**6, decimals=3),
)
#: Cases that need about 6 and 8 GiB of memory.
LARGE_CASES = (
    LinkCase(10**7, 3 * 10**7, rivals=True),
    LinkCase(10**7, 3 * 10**7, decimals=3),
    LinkCase(3 * 10**7, 10**8, limit="8GiB"),
)
QUICK_CASES = (
    LinkCase(300, 900, rivals=True),
    LinkCase(1_000, 3_000, decimals=2),
    LinkCase(2_000, 5_000, limit="1GiB"),
)


def make_links(case: LinkCase) -> tuple[pa.Table, pa.Table]:
    """Return the truth and the links, with hashed item ids and shuffled rows."""
    rng = np.random.default_rng([0, case.n_items, case.n_links])
    sizes = rng.geometric(0.4, case.n_items)
    truth = rng.permutation(np.repeat(np.arange(sizes.size), sizes)[: case.n_items])
    order = np.argsort(truth, kind="stable")
    n_near = int(0.6 * case.n_links)
    near = rng.integers(0, case.n_items - 1, n_near)
    left = np.concatenate([order[near], rng.integers(0, case.n_items, case.n_links - n_near)])
    right = np.concatenate([order[near + 1], rng.integers(0, case.n_items, case.n_links - n_near)])
    scores = np.where(truth[left] == truth[right], rng.beta(5, 2, left.size), rng.beta(1.2, 6, left.size))
    if case.decimals is not None:
        scores = scores.round(case.decimals)
    shuffled = rng.permutation(left.size)
    odd = np.uint64(0x9E3779B97F4A7C15)  # multiplying by it maps ids one to one to 64 bits
    ids = (np.arange(1, case.n_items + 1, dtype=np.uint64) * odd).view(np.int64)
    named = {"left": ids[left[shuffled]], "right": ids[right[shuffled]], "score": scores[shuffled]}
    return pa.table({"item": ids, "cluster": truth}), pa.table(named)


def write_links(case: LinkCase, folder: Path) -> tuple[Path, Path]:
    """Write a truth and links like those of `make_links`, links in parts, and return the paths of the files."""
    rng = np.random.default_rng([0, case.n_items, case.n_links])
    sizes = rng.geometric(0.4, case.n_items)
    truth = rng.permutation(np.repeat(np.arange(sizes.size), sizes)[: case.n_items])
    odd = np.uint64(0x9E3779B97F4A7C15)
    ids = (np.arange(1, case.n_items + 1, dtype=np.uint64) * odd).view(np.int64)
    paths = folder / "truth.parquet", folder / "links.parquet"
    pq.write_table(pa.table({"item": ids, "cluster": truth}), paths[0])
    order, schema = np.argsort(truth), pa.schema([("left", "i8"), ("right", "i8"), ("score", "f8")])
    with pq.ParquetWriter(paths[1], schema) as writer:
        for start in range(0, case.n_links, LINKS_AT_ONCE):
            n = min(LINKS_AT_ONCE, case.n_links - start)
            near, far = rng.integers(0, case.n_items - 1, n), rng.random(n) < 0.4
            left, right = order[near], order[near + 1]
            left[far], right[far] = rng.integers(0, case.n_items, (2, np.count_nonzero(far)))
            scores = np.where(truth[left] == truth[right], rng.beta(5, 2, n), rng.beta(1.2, 6, n))
            writer.write_table(pa.table([ids[left], ids[right], scores], schema=schema))
    return paths


def measure_links(cases: tuple[LinkCase, ...] = CASES, rounds: int = 1) -> Iterator[dict[str, Any]]:
    """Measure each case in fresh processes; yield result lines."""
    for case in cases:
        record: dict[str, Any] = {"kind": "links", **asdict(case)}
        command = [sys.executable, "-m", "benchmarks.links", "--case", json.dumps(asdict(case))]
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
            record |= next(each for each in found if each["seconds"] >= middle) | {"outcome": "ok"}
        yield record


def measure(case: LinkCase) -> dict[str, Any]:
    """Measure one case in this process: one evaluation, the whole curve, precision and recall alone, rivals."""
    import warnings

    import fastbcubed as fb

    warnings.simplefilter("ignore", fb.EvaluationWarning)  # warnings of giant clusters at low thresholds
    small = make_links(LinkCase(1_000, 3_000))  # loads the compiled kernels
    fb.sweep(*small, progress=False)
    fb.evaluate(small[0], fb.Clustering.from_links(small[1], threshold=0.5), progress=False)
    if case.limit is not None:
        return measure_files(case)
    truth, links = make_links(case)
    memory.touch_memory(120 * case.n_links)

    def evaluated() -> Any:
        return fb.evaluate(truth, fb.Clustering.from_links(links, threshold=0.5), progress=False)

    found: dict[str, Any] = {}
    (found["one_seconds"], found["one_cpu_seconds"]), ev = timed(evaluated)
    memory.reset_peak()
    before = memory.resident_memory() or 0
    (found["seconds"], found["cpu_seconds"]), sweep = timed(lambda: fb.sweep(truth, links, progress=False))
    found |= {"growth_bytes": memory.peak_memory() - before, "thresholds": sweep.tree.n_levels}
    found["difference"] = abs(sweep.evaluate(0.5).f1 - ev.f1)
    (found["f1_seconds"], found["f1_cpu_seconds"]), _ = timed(
        lambda: fb.sweep(truth, links, metrics="f1", progress=False)
    )
    if case.rivals:
        found |= measure_rivals(truth, links, sweep)
    return found


def measure_files(case: LinkCase) -> dict[str, Any]:
    """Measure one sweep of Parquet files under a limit, and one evaluation; another process writes the files."""
    import fastbcubed as fb

    with tempfile.TemporaryDirectory() as folder:
        writing = "from benchmarks.links import *; write_links(LinkCase(**json.loads(sys.argv[1])), Path(sys.argv[2]))"
        code = f"import json, sys; from pathlib import Path; {writing}"
        subprocess.run([sys.executable, "-c", code, json.dumps(asdict(case)), folder], cwd=ROOT, check=True)
        truth, links = Path(folder, "truth.parquet"), Path(folder, "links.parquet")
        found: dict[str, Any] = {}
        with memory.AnonymousGrowth() as growth:
            (found["seconds"], found["cpu_seconds"]), sweep = timed(
                lambda: fb.sweep(truth, links, memory_limit=case.limit, progress=False), warm=0
            )
            sweep.best("f1"), sweep.curve()
        found |= {"growth_bytes": growth.n_bytes, "thresholds": sweep.tree.n_levels}
        f1 = sweep.evaluate(0.5).f1
        del sweep
        (found["one_seconds"], found["one_cpu_seconds"]), ev = timed(
            lambda: fb.evaluate(truth, fb.Clustering.from_links(links, threshold=0.5), progress=False), warm=0
        )
        found["difference"] = abs(f1 - ev.f1)
    return found


def timed(call: Callable[[], Any], warm: int = WARM) -> tuple[tuple[float, float], Any]:
    """Return the median seconds and processor time of warm calls, or of a single one, and the last result."""
    taken: list[tuple[float, float]] = []
    answer = None
    for _ in range(1 + warm):
        del answer
        start = time.perf_counter(), time.process_time()
        answer = call()
        taken.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, cpu = zip(*(taken[1:] or taken), strict=True)
    return (statistics.median(wall), statistics.median(cpu)), answer


def measure_rivals(truth: pa.Table, links: pa.Table, sweep: Any) -> dict[str, Any]:
    """Measure clustering at 20 thresholds, one by one; clusterings made with SciPy are also evaluated."""
    found: dict[str, Any] = {}
    if importlib.util.find_spec("scipy"):
        took, scores = timed(lambda: list(scipy_scores(truth, links)), warm=0)
        found["scipy_seconds"], found["scipy_cpu_seconds"] = took
        mine = [sweep.evaluate(threshold).f1 for threshold in THRESHOLDS]
        found["rival_difference"] = max(abs(a - b) for a, b in zip(scores, mine, strict=True))
    if importlib.util.find_spec("splink"):
        (found["splink_seconds"], found["splink_cpu_seconds"]), _ = timed(
            lambda: splink_clusters(truth, links), warm=0
        )
    return found


def scipy_scores(truth: pa.Table, links: pa.Table) -> Iterator[float]:
    """Yield F1 at each threshold: components by SciPy, evaluated by position."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    import fastbcubed as fb

    ids, labels = (np.asarray(column) for column in truth.columns)
    order = np.argsort(ids)
    left, right = (
        order[np.searchsorted(ids, np.asarray(links[side]), sorter=order)] for side in ("left", "right")
    )
    scores = np.asarray(links["score"])
    for threshold in THRESHOLDS:
        used = scores >= threshold
        graph = coo_array(
            (np.ones(np.count_nonzero(used), bool), (left[used], right[used])), shape=(ids.size,) * 2
        )
        _, components = connected_components(graph, directed=False)
        yield fb.evaluate(labels, components, metrics="f1", progress=False).f1


def splink_clusters(truth: pa.Table, links: pa.Table) -> None:
    """Cluster at all thresholds with Splink's own function on DuckDB."""
    from splink import DuckDBAPI
    from splink.internals.clustering import cluster_pairwise_predictions_at_multiple_thresholds

    edges = links.rename_columns(["item_l", "item_r", "match_probability"])
    clusters = cluster_pairwise_predictions_at_multiple_thresholds(
        truth.select(["item"]), edges, DuckDBAPI(), "item", match_probability_thresholds=list(THRESHOLDS)
    )
    clusters.as_duckdbpyrelation().count("item").fetchall()


def main(arguments: list[str] | None = None) -> None:
    """Measure one case given as JSON, or the default ones, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.links", description=__doc__)
    parser.add_argument("--case", help="one case as JSON, measured in this process")
    parser.add_argument("--large", action="store_true", help="also 3e7 links, and 1e8 from Parquet")
    options = parser.parse_args(arguments)
    if options.case is not None:
        print(json.dumps(measure(LinkCase(**json.loads(options.case)))))
        return
    for record in measure_links(CASES + (LARGE_CASES if options.large else ())):
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
