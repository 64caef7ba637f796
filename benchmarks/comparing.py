"""What comparing costs: four runs beside one, errors of differences, and a diff beside DuckDB's SQL.

`python -m benchmarks.comparing --items 1e7 --diff-items 1e8` prints the tables. Every figure comes from processes of
their own, in turn; what they print is the seconds of calls after a first one, which is shown apart.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import ROOT
from benchmarks.machine import machine_facts, usable_cores
from benchmarks.memory import AnonymousGrowth
from benchmarks.shapes import generate

__all__ = ["measure"]

N_RUNS = 4
#: Share of the items that each further run puts elsewhere.
MOVED = 0.02
LIMIT = "4GiB"
SCORES = ("split_rate", "merge_rate", "jaccard_distance")
SQL = """
with cells as (
  select a.cluster as b, e.cluster as e, count(*) as n
  from read_parquet('{old}') a join read_parquet('{new}') e using (item) group by all
), of_b as (select b, sum(n) as nb from cells group by b), of_e as (select e, sum(n) as ne from cells group by e)
select sum(n * (nb - n) / nb) / sum(n), sum(n * (ne - n) / ne) / sum(n),
  sum(n * (nb + ne - 2 * n) / (nb + ne - n)) / sum(n)
from cells join of_b using (b) join of_e using (e)
"""


def write_tables(directory: Path, n_items: int) -> None:
    """Write a truth with weights and four runs of shape `er` as Parquet, the rows of each in an order of its own."""
    rows = generate("er", n_items)
    rng = np.random.default_rng(0)
    items = rng.permutation(n_items) * 7919
    for name in ("truth", *(f"run{k}" for k in range(N_RUNS))):
        labels = rows.labels_true if name == "truth" else np.array(rows.labels_pred)
        if name != "truth" and name != "run0":
            moved = rng.random(n_items) < MOVED
            labels[moved] = rng.integers(2**62, 2**63 - 1, int(moved.sum()))
        order = rng.permutation(n_items)
        columns = {"item": items[order], "cluster": labels[order]}
        if name == "truth":
            columns["weight"] = rows.weights[order]
        pq.write_table(pa.table(columns), directory / f"{name}.parquet")
    os.sync()  # what is still to be written would fall on whoever is measured first


def calls_of(what: str, directory: Path, n_items: int) -> Callable[[], Any]:
    """Return the call that is measured; reading of what is given in memory is no part of it."""
    import fastbcubed as fb

    paths: dict[str, Any] = {
        name: str(directory / f"{name}.parquet") for name in ("truth", *(f"run{k}" for k in range(N_RUNS)))
    }
    runs = {name: path for name, path in paths.items() if name != "truth"}
    given: Any = {"weight": "weight"}
    if what.startswith("arrays"):
        rows = generate("er", n_items)
        rng = np.random.default_rng(0)
        runs = {"run0": rows.labels_pred}
        for k in range(1, N_RUNS):
            labels = np.array(rows.labels_pred)
            moved = rng.random(n_items) < MOVED
            labels[moved] = rng.integers(2**62, 2**63 - 1, int(moved.sum()))
            runs[f"run{k}"] = labels
        paths["truth"], given = rows.labels_true, {"weight": rows.weights}
    truth = paths["truth"]
    if what.endswith("evaluate"):
        return lambda: fb.evaluate(truth, runs["run0"], **given).f1
    if what.endswith("compare"):
        return lambda: fb.compare(truth, runs, **given)["run3"].f1
    if what.endswith("deltas"):
        return lambda: fb.compare(truth, runs, **given).deltas()["se"][0].as_py()
    if what == "diff":
        options: Any = {"metrics": SCORES, "engine": "disk", "memory_limit": LIMIT}

        def differ() -> list[float]:
            overall = fb.diff(paths["run0"], paths["run1"], **options).overall
            return [overall[name] for name in SCORES]

        return differ
    import duckdb

    def query() -> list[float]:
        with duckdb.connect() as connection:
            connection.execute(f"set memory_limit = '{LIMIT}'")
            connection.execute(f"set temp_directory = '{directory / 'duckdb'}'")
            return list(connection.sql(SQL.format(old=paths["run0"], new=paths["run1"])).fetchall()[0])

    return query


def one_process(what: str, directory: Path, n_items: int, repeat: int) -> None:
    """Print the seconds of the first call and of those after it, the growth of memory, and what came out."""
    call, seconds, found = calls_of(what, directory, n_items), [], None
    with AnonymousGrowth() as growth:
        for _ in range(1 + repeat):
            start = time.perf_counter()
            found = call()
            seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "bytes": growth.n_bytes, "found": found}))


def measure(what: str, directory: Path, n_items: int, *, rounds: int, repeat: int) -> dict[str, Any]:
    """Return the median of first and of later calls over so many processes, and the largest growth."""
    found = []
    for _ in range(rounds):
        command = [
            sys.executable,
            "-m",
            "benchmarks.comparing",
            "--process",
            what,
            "--directory",
            str(directory),
        ]
        command += ["--items", str(n_items), "--repeat", str(repeat)]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    later = [s for each in found for s in (each["seconds"][1:] or each["seconds"])]
    return {
        "first": statistics.median(each["seconds"][0] for each in found),
        "later": statistics.median(later),
        "bytes": max(each["bytes"] for each in found),
        "found": found[0]["found"],
    }


def comparison_table(directory: Path, n_items: int, rounds: int) -> list[str]:
    """Return the lines of the table of four runs beside one."""
    lines = [
        "| given as | one run | four runs | | with errors of differences | |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for given, name in (("arrays", "arrays of labels"), ("files", "Parquet, joined by item")):
        one, four, errors = (
            measure(f"{given} {what}", directory, n_items, rounds=rounds, repeat=3)["later"]
            for what in ("evaluate", "compare", "deltas")
        )
        more = errors / four - 1
        lines.append(
            f"| {name} | {one:.2f} s | {four:.2f} s | {four / one:.2f}× | {errors:.2f} s | {more:+.0%} |"
        )
    return lines


def diff_table(directory: Path, n_items: int, rounds: int) -> list[str]:
    """Return the lines of the table of a diff beside DuckDB; raise if the two do not agree."""
    found = {what: measure(what, directory, n_items, rounds=rounds, repeat=1) for what in ("diff", "duckdb")}
    ours, theirs = (found[what]["found"] for what in ("diff", "duckdb"))
    if not np.allclose(ours, theirs, rtol=0, atol=1e-9):
        raise SystemExit(f"the figures differ: {ours}, {theirs}")
    lines = ["| | first call | later | | memory |", "| --- | ---: | ---: | ---: | ---: |"]
    for what, each in found.items():
        ratio, memory = each["later"] / found["diff"]["later"], each["bytes"] / 2**30
        lines.append(
            f"| {what} | {each['first']:.1f} s | {each['later']:.1f} s | {ratio:.2f}× | {memory:.1f} GiB |"
        )
    return lines


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparing", description=__doc__)
    parser.add_argument("--items", type=float, default=1e7)
    parser.add_argument("--diff-items", type=float, default=1e8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="where the tables go; a temporary one when absent")
    parser.add_argument("--process", help=argparse.SUPPRESS)
    parser.add_argument("--repeat", type=int, default=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process:
        one_process(options.process, options.directory, int(options.items), options.repeat)
        return
    print(json.dumps(machine_facts(usable_cores())))
    with tempfile.TemporaryDirectory(dir=options.directory) as work:
        for table, n_items in ((comparison_table, int(options.items)), (diff_table, int(options.diff_items))):
            if n_items:
                write_tables(Path(work), n_items)
                print(
                    f"\n{n_items:,} items\n\n" + "\n".join(table(Path(work), n_items, options.rounds)),
                    flush=True,
                )


if __name__ == "__main__":
    main()
