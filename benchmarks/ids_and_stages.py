"""The cost of ids and of the stages of recall, relative to the diff and the sweep behind them.

`python -m benchmarks.ids_and_stages --items 1e6,1e7 --links 3e6` prints two tables, and `--files 1e8 --limit 819MiB` a
third one: ids of clusters in a file, under a memory limit. Each row is measured in a separate process, after a small
input, with all kernels compiled; seconds are processor time of all threads.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import memory
from benchmarks.datasets import DEFAULT_DIRECTORY, Dataset, write_rows
from benchmarks.harness import ROOT
from benchmarks.links import LinkCase, make_links
from benchmarks.markdown import count, markdown, ratio, seconds, size
from benchmarks.synthetic import Synthetic

#: Items, or links, of the small input.
FEW = 200_000
THRESHOLD = 0.5


def busy(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor time of a call, and its result."""
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


def ids(n_items: int, kind: str) -> dict[str, Any]:
    """Measure a diff of shape `er` with renamed labels, its ids, and its registry."""
    import fastbcubed as fb

    rows = Synthetic(n_items, "er").rows({"old": "true", "new": "pred"}, 0, n_items, ids=kind)
    sides = rows.column("old"), rows.column("new")
    found: dict[str, Any] = {}
    found["diff"], diff = busy(lambda: fb.diff(*sides, metrics=["split_rate", "merge_rate"]))
    found["cells"], before = diff.evaluation.contingency.n_cells, memory.peak_memory()
    mint = "new-" if kind == "string" else None
    found["ids"], table = busy(lambda: diff.ids(mint=mint))
    found["more"] = memory.peak_memory() - before
    found["registry"], _ = busy(lambda: diff.registry(release="now", mint=mint))
    return found | {"clusters": len(table), "peak": memory.peak_memory()}


def stages(n_links: int, kind: str) -> dict[str, Any]:
    """Measure a sweep, an evaluation at one threshold, and the stages of recall there."""
    import fastbcubed as fb

    truth, links = make_links(LinkCase(n_links // 3, n_links))
    found: dict[str, Any] = {}
    found["sweep"], sweep = busy(lambda: fb.sweep(truth, links, progress=False))
    clusters = fb.Clustering.from_links(links, threshold=THRESHOLD)
    found["evaluate"], _ = busy(lambda: fb.evaluate(truth, clusters, progress=False).recall)
    found["stages"], _ = busy(lambda: sweep.stages(THRESHOLD))
    return found | {"peak": memory.peak_memory()}


def files(n_items: int, limit: str) -> dict[str, Any]:
    """Measure a diff of clusters in a Parquet file, and its ids, made in parts, under a memory limit.

    Memory grows at most by `growth` while all this is done, without cached pages of files.
    """
    import fastbcubed as fb
    from fastbcubed.diff_runs.identity import tables_of_ids

    (path,) = write_rows(Dataset("er", n_items, layout="labels"), DEFAULT_DIRECTORY).glob("*.parquet")
    how: dict[str, Any] = {"engine": "disk", "memory_limit": limit, "metrics": ["split_rate", "merge_rate"]}
    found: dict[str, Any] = {}
    with memory.AnonymousGrowth() as grown:
        found["diff"], diff = busy(lambda: fb.diff("truth", "prediction", table=path, progress=False, **how))
        found["matching"], _ = busy(lambda: diff._carried)
        found["stability"], _ = busy(lambda: diff.id_stability)
        made = tables_of_ids(diff, None, None, revive=False)
        found["tables"], n_tables = busy(lambda: sum(1 for _ in made))
    return found | {"n_tables": n_tables, "growth": grown.n_bytes}


MEASURED: dict[str, Callable[[int, str], dict[str, Any]]] = {"ids": ids, "stages": stages, "files": files}


def measure(what: str, n: int, kind: str) -> dict[str, Any]:
    """Return the result of a measurement in a separate process."""
    command = [sys.executable, "-m", "benchmarks.ids_and_stages", "--process", what, str(n), kind]
    compiled = os.environ | {"FASTBCUBED_INTERPRET": "0"}
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=compiled)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def ids_table(sizes: list[int]) -> str:
    """Return the table of the cost of ids and of the diff."""
    rows = []
    for n in sizes:
        for kind in ("int", "string"):
            found = measure("ids", n, kind)
            rows.append(
                (
                    count(n), kind, count(found["cells"]), seconds(found["diff"]), seconds(found["ids"]),
                    ratio(found["ids"], found["diff"]), seconds(found["registry"]), size(found["more"]),
                    size(found["peak"]),
                )
            )  # fmt: skip
            print(rows[-1], file=sys.stderr, flush=True)
    head = (
        "items",
        "labels",
        "cells",
        "diff",
        "ids",
        "ratio",
        "registry, with ids again",
        "more memory",
        "peak",
    )
    return markdown(head, rows, 2)


def stages_table(sizes: list[int]) -> str:
    """Return the table of the cost of stages, of an evaluation, and of the sweep."""
    rows = []
    for n in sizes:
        found = measure("stages", n, "int")
        figures = (found["sweep"], found["evaluate"], found["stages"])
        rows.append(
            (count(n), *map(seconds, figures), ratio(found["stages"], found["evaluate"]), size(found["peak"]))
        )
        print(rows[-1], file=sys.stderr, flush=True)
    return markdown(("links", "sweep", "one evaluation", "stages", "ratio", "peak"), rows, 1)


def files_table(sizes: list[int], limit: str) -> str:
    """Return the table of the cost of ids of clusters in a file, under a memory limit."""
    steps, rows = ("diff", "matching", "stability", "tables"), []
    for n in sizes:
        found = measure("files", n, limit)
        times = [seconds(found[step]) for step in steps]
        rows.append((count(n), limit, *times, str(found["n_tables"]), size(found["growth"])))
        print(rows[-1], file=sys.stderr, flush=True)
    return markdown(("items", "limit", *steps, "number of tables", "growth"), rows, 2)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ids_and_stages", description=__doc__)
    parser.add_argument("--items", default="1e6,1e7")
    parser.add_argument("--links", default="3e6")
    parser.add_argument("--files", default="", help="items of clusters in a file; no such table by default")
    parser.add_argument("--limit", default="1GiB", help="memory limit of clusters in a file")
    parser.add_argument("--process", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process:
        what, n, kind = options.process
        warnings.simplefilter("ignore")
        MEASURED[what](min(FEW, int(n)), kind)
        print(json.dumps(MEASURED[what](int(n), kind)))
        return
    of_files = partial(files_table, limit=options.limit)
    for table, sizes in (
        (ids_table, options.items),
        (stages_table, options.links),
        (of_files, options.files),
    ):
        if wanted := [int(float(each)) for each in sizes.split(",") if each]:
            print(f"{table(wanted)}\n", flush=True)


if __name__ == "__main__":
    main()
