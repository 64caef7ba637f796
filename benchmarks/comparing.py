"""The cost of standard errors and comparisons: errors of one run, four runs against one, and a diff against SQL.

`python -m benchmarks.comparing --items 1e7 --diff-items 1e8` prints the tables, and `--tables benchmarks/README.md`
puts them into a page. Every figure comes from separate processes, run in turn. Times are of warm calls; the first call
is shown separately. Errors, and four runs and one, are compared by the processor time of all threads, which other work
on the machine affects less than wall time.
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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import ROOT
from benchmarks.machine import machine_facts, usable_cores
from benchmarks.markdown import count, markdown, ratio, rewrite_regions, seconds, size
from benchmarks.memory import AnonymousGrowth
from benchmarks.report import machine_text
from benchmarks.shapes import generate
from benchmarks.synthetic import Synthetic, schema_of
from fastbcubed.runtime.threads import blocks

__all__ = ["measure"]

TRUTH, RUNS = "truth", ("run0", "run1", "run2", "run3")
ROWS_AT_ONCE = 1 << 20
#: The share of items whose cluster differs in each further run.
MOVED = 0.02
#: Calls for one run: the scores, and whether their standard errors are computed.
ONE_RUN = {
    f"arrays {scores}{' with errors' * errors}": (metrics, errors)
    for scores, metrics in (("the default scores", None), ("all scores", "all"))
    for errors in (False, True)
}
LIMIT = "4GiB"
REPEAT = 5
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


def write_tables(directory: Path, n_items: int, names: Iterable[str]) -> None:
    """Write a truth with weights, and runs, of shape `er` as Parquet files, whose rows are in different orders.

    Rows are generated and written block by block, so memory does not limit their number.
    """
    rows = Synthetic(n_items, "er")
    for name in names:
        columns = {"item": "item", "cluster": "pred"}
        if name == TRUTH:
            columns = {"item": "item", "cluster": "true", "weight": "weight"}
        with pq.ParquetWriter(directory / f"{name}.parquet", schema_of(columns, "int")) as writer:
            for start, stop in blocks(n_items, ROWS_AT_ONCE):
                batch = rows.rows(columns, start, stop, order=name)
                writer.write_batch(moved(batch, RUNS.index(name)) if name in RUNS[1:] else batch)
    os.sync()  # otherwise, the process measured first would pay for these writes


def moved(batch: pa.RecordBatch, k: int) -> pa.RecordBatch:
    """Return rows in which a share of the items, a different one for each run k, became singletons."""
    items, labels = (np.array(column) for column in batch.columns)
    words = items.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15 + 2 * k)  # odd, so no two are alike
    elsewhere = words < np.uint64(MOVED * 2**64)
    labels[elsewhere] = words[elsewhere].view(np.int64)
    return pa.record_batch([batch.column(0), pa.array(labels)], schema=batch.schema)


def calls_of(what: str, directory: Path, n_items: int) -> Callable[[], Any]:
    """Return the call to measure, which does not include reading inputs that are passed in memory."""
    import fastbcubed as fb

    paths: dict[str, Any] = {name: str(directory / f"{name}.parquet") for name in (TRUTH, *RUNS)}
    runs = {name: paths[name] for name in RUNS}
    given: Any = {"weight": "weight"}
    if what.startswith("arrays"):
        rows = generate("er", n_items)
        rng = np.random.default_rng(0)
        runs = {"run0": rows.labels_pred}
        for name in RUNS[1:]:
            labels = np.array(rows.labels_pred)
            moved = rng.random(n_items) < MOVED
            labels[moved] = rng.integers(2**62, 2**63 - 1, int(moved.sum()))
            runs[name] = labels
        paths[TRUTH], given = rows.labels_true, {"weight": rows.weights}
    truth = paths[TRUTH]
    if what in ONE_RUN:
        metrics, errors = ONE_RUN[what]
        return lambda: getattr(
            fb.evaluate(truth, runs["run0"], metrics=metrics), "errors" if errors else "overall"
        )["f1"]
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
    """Print the seconds of the first call and of later calls, the growth of memory, and the result."""
    call, took, busy, found = calls_of(what, directory, n_items), [], [], None
    with AnonymousGrowth() as growth:
        for _ in range(1 + repeat):
            start = time.perf_counter(), time.process_time()
            found = call()
            took.append(time.perf_counter() - start[0])
            busy.append(time.process_time() - start[1])
    print(json.dumps({"seconds": took, "busy": busy, "bytes": growth.n_bytes, "found": found}))


def measure(what: str, directory: Path, n_items: int, *, rounds: int, repeat: int) -> dict[str, Any]:
    """Return the median times of first and of later calls over several processes, and the largest growth of memory."""
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

    def later(key: str) -> float:
        return statistics.median(s for each in found for s in (each[key][1:] or each[key]))

    return {
        "first": statistics.median(each["seconds"][0] for each in found),
        "later": later("seconds"),
        "busy": later("busy"),
        "bytes": max(each["bytes"] for each in found),
        "found": found[0]["found"],
    }


def comparison_table(directory: Path, n_items: int, rounds: int) -> str:
    """Return the table of the cost of comparing four runs, relative to evaluating one."""
    rows = []
    for given, name in (("arrays", "arrays of labels"), ("files", "Parquet, joined by item")):
        one, four, errors = (
            measure(f"{given} {what}", directory, n_items, rounds=rounds, repeat=REPEAT)["busy"]
            for what in ("evaluate", "compare", "deltas")
        )
        more = f"{errors / four - 1:+.0%}"
        rows.append((name, seconds(one), seconds(four), ratio(four, one), seconds(errors), more))
    head = ("given as", "one run", "four runs", "ratio", "with errors of differences", "more")
    return markdown(head, rows, 1)


def errors_table(directory: Path, n_items: int, rounds: int) -> str:
    """Return the table of one run with and without standard errors."""
    rows = []
    for plain in list(ONE_RUN)[::2]:
        without, added = (
            measure(what, directory, n_items, rounds=rounds, repeat=REPEAT)["busy"]
            for what in (plain, f"{plain} with errors")
        )
        rows.append(
            (plain.removeprefix("arrays "), seconds(without), seconds(added), f"{added / without - 1:+.0%}")
        )
    return markdown(("scores", "one run", "with errors", "more"), rows, 1)


def diff_table(directory: Path, n_items: int, rounds: int) -> str:
    """Return the table of the cost of a diff, in fastbcubed and in DuckDB; raise if the results differ."""
    found = {what: measure(what, directory, n_items, rounds=rounds, repeat=1) for what in ("diff", "duckdb")}
    ours, theirs = (found[what]["found"] for what in ("diff", "duckdb"))
    if not np.allclose(ours, theirs, rtol=0, atol=1e-9):
        raise SystemExit(f"the figures differ: {ours}, {theirs}")
    reference = found["diff"]["later"]
    rows = [
        (
            what, seconds(each["first"]), seconds(each["later"]), ratio(each["later"], reference),
            seconds(each["busy"]), size(each["bytes"]),
        )
        for what, each in found.items()
    ]  # fmt: skip
    return markdown(("", "first call", "time", "ratio", "processor time", "growth"), rows, 1)


def main() -> None:
    """Measure, print the tables, and put them between the markers of a page if one is given."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.comparing", description=__doc__)
    parser.add_argument("--items", type=float, default=1e7)
    parser.add_argument("--diff-items", type=float, default=1e8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, help="where the files go; a temporary one when absent")
    parser.add_argument("--tables", type=Path, help="page whose tables are rewritten: benchmarks/README.md")
    parser.add_argument("--process", help=argparse.SUPPRESS)
    parser.add_argument("--repeat", type=int, default=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.process:
        one_process(options.process, options.directory, int(options.items), options.repeat)
        return
    below = f"{machine_text(machine_facts(usable_cores()))} {time.strftime('%Y-%m-%d')}."
    tables = {}
    with tempfile.TemporaryDirectory(dir=options.directory) as work:
        for region, table, n_items, names in (
            ("errors", errors_table, int(options.items), ()),
            ("comparing", comparison_table, int(options.items), (TRUTH, *RUNS)),
            ("diff", diff_table, int(options.diff_items), RUNS[:2]),
        ):
            if n_items:
                write_tables(Path(work), n_items, names)
                text = table(Path(work), n_items, options.rounds)
                tables[region] = f"{count(n_items)} items:\n\n{text}\n\n{below}"
                print(f"## {region}\n\n{tables[region]}\n", flush=True)
    if options.tables is not None:
        options.tables.write_text(rewrite_regions(options.tables.read_text(), tables)[0])


if __name__ == "__main__":
    main()
