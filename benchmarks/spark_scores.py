"""Two Parquet tables, joined and scored: by fastbcubed on Spark, by Spark SQL, and by the disk engine."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.memory import resident_memory

FORMS = ("fastbcubed", "Spark SQL", "disk engine")
SIZES, QUICK_SIZES = (10**6, 10**7, 3 * 10**7), (10_000,)
#: Shapes: clusters of 2.5 items, without and with a true and a predicted cluster of a tenth of all items each.
SHAPES = ("er", "one giant")
#: The size at which the second shape is measured.
GIANT_SIZE = 10**7
#: The number of calls after the first one.
WARM = 2
#: The time limit of a form in seconds, including its start.
LIMIT = 1_500
SAMPLE = 0.2
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class SparkCase:
    """A form on a shape with a number of items."""

    form: str
    n_items: int
    shape: str = "er"


def measure_spark(sizes: Iterable[int], directory: Path) -> Iterator[dict[str, Any]]:
    """Measure every form at each size, each in a separate process; yield result lines."""
    for n_items in sizes:
        for shape in SHAPES[: 2 if n_items in (GIANT_SIZE, *QUICK_SIZES) else 1]:
            with tempfile.TemporaryDirectory(dir=directory) as data:
                write(n_items, Path(data), shape)
                for form in FORMS:
                    case = SparkCase(form, n_items, shape)
                    yield {"kind": "spark", **asdict(case), **_measured(case, data)}


def _measured(case: SparkCase, data: str) -> dict[str, Any]:
    """Return the results of a separate process, or how it failed."""
    command = [sys.executable, "-m", "benchmarks.spark_scores", "--data", data]
    try:
        done = subprocess.run(
            [*command, "--case", json.dumps(asdict(case))], capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return {"outcome": f"more than {LIMIT} s"}
    lines = done.stdout.strip().splitlines()
    ok = done.returncode == 0 and bool(lines)
    return {"outcome": "ok", **json.loads(lines[-1])} if ok else {"outcome": done.stderr[-300:]}


def write(n_items: int, directory: Path, shape: str = "er") -> None:
    """Write the truth and a prediction: clusters of 2.5 items, 15 % of them split, 10 % merged, ids hashed."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    true = np.sort(rng.integers(0, max(1, int(n_items / 2.5)), n_items))
    pred = true + np.where(rng.random(true[-1] + 1) < 0.1, 1, 0)[true]
    split = (rng.random(int(pred.max()) + 1) < 0.15)[pred] & (rng.random(n_items) < 0.5)
    pred = 2 * pred + split
    if shape == "one giant":  # these two clusters share half of their items
        true[: n_items // 10] = -1
        pred[n_items // 20 : n_items // 20 + n_items // 10] = -1
    items = np.arange(n_items, dtype=np.int64) * np.int64(0x9E3779B97F4A7C15 - 2**64)
    for name, labels in (("truth", true), ("prediction", pred)):
        order = rng.permutation(n_items)
        labels = labels * np.int64(0x2545F4914F6CDD1D)
        pq.write_table(
            pa.table({"item": items[order], "cluster": labels[order]}), directory / f"{name}.parquet"
        )


def measure(case: SparkCase, data: Path) -> dict[str, Any]:
    """Measure the first call and warm calls of a form in this process."""
    with tempfile.TemporaryDirectory(dir=data) as log:
        call = prepared(case.form, data, Path(log))
        with Tree() as tree:
            seconds: list[float] = []
            cpu: list[float] = []
            since = 0.0
            for _ in range(1 + WARM):
                begun, busy = time.perf_counter(), tree.cpu()
                f1 = call()
                since = since if seconds else time.time()
                seconds.append(time.perf_counter() - begun)
                cpu.append(tree.cpu() - busy)
        found = {
            "first_seconds": seconds[0], "seconds": statistics.median(seconds[1:]),
            "cpu_seconds": statistics.median(cpu[1:]), "peak_bytes": tree.peak, "f1": f1,
        }  # fmt: skip
        return found | told_by(Path(log), since)


def prepared(form: str, data: Path, log: Path) -> Callable[[], float]:
    """Return a call that scores the tables, and returns F1."""
    import fastbcubed as fb

    paths = [str(data / f"{name}.parquet") for name in ("truth", "prediction")]
    if form == "disk engine":
        return lambda: fb.evaluate(*paths, engine="disk", memory_limit="2GiB", threads=2, progress=False).f1
    session = spark_session(data, log)
    frames = [session.read.parquet(path) for path in paths]
    if form == "fastbcubed":
        return lambda: fb.evaluate(*frames).f1
    return lambda: spark_sql(*frames)


def spark_session(data: Path, log: Path) -> Any:
    """Return a session on two cores that logs the events of its tasks."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.memory": "4g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "16", "spark.local.dir": str(data), "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(), "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.log.level": "ERROR",
    }  # fmt: skip
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def spark_sql(truth: Any, prediction: Any) -> float:
    """Compute precision, recall and their F, mean F1 and Jaccard distance, with windows over the cells."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    both = truth.withColumnRenamed("cluster", "t").join(prediction.withColumnRenamed("cluster", "p"), "item")
    cells = both.groupBy("t", "p").agg(sql.count(sql.lit(1)).alias("n"))
    cells = cells.withColumn("b", sql.sum("n").over(Window.partitionBy("p")))
    cells = cells.withColumn("a", sql.sum("n").over(Window.partitionBy("t")))
    n, a, b = sql.col("n"), sql.col("a"), sql.col("b")
    row = cells.agg(
        sql.sum("n").alias("all"), sql.sum(n * n / b).alias("p"), sql.sum(n * n / a).alias("r"),
        sql.sum(2 * n * n / (a + b)).alias("mean_f1"), sql.sum(n * (1 - n / (a + b - n))).alias("jaccard"),
    ).collect()[0]  # fmt: skip
    p, r = row["p"] / row["all"], row["r"] / row["all"]
    return float(2 * p * r / (p + r))


class Tree:
    """The processor time, and the largest total memory, of this process and its descendants."""

    def __enter__(self) -> Tree:
        self.peak = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE):
            self.peak = max(self.peak, sum(resident_memory(pid) or 0 for pid in self._pids()))

    def cpu(self) -> float:
        """Return the processor seconds so far, including those of ended children."""
        total = 0
        for pid in self._pids():
            total += sum(map(int, stat_of(pid)[11:15]))
        return total / TICKS

    @staticmethod
    def _pids() -> list[int]:
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        parents = {pid: int(fields[1]) for pid in pids if (fields := stat_of(pid))}
        found = [os.getpid()]
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found


def stat_of(pid: int) -> list[str]:
    """Return the fields of a process's stat file after its name; an empty list if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def told_by(log: Path, since: float) -> dict[str, Any]:
    """Return the longest task, and the spilled and shuffled bytes, from a session's events since a time."""
    found = {"longest_task_seconds": 0.0, "spilled_bytes": 0.0, "shuffled_bytes": 0.0}
    for file in (path for path in log.rglob("*") if path.is_file()):
        for event in map(json.loads, file.read_text().splitlines()):
            if (
                event.get("Event") != "SparkListenerTaskEnd"
                or event["Task Info"]["Launch Time"] < 1000 * since
            ):
                continue
            task, metrics = event["Task Info"], event.get("Task Metrics") or {}
            lasted = (task["Finish Time"] - task["Launch Time"]) / 1000
            found["longest_task_seconds"] = max(found["longest_task_seconds"], lasted)
            written = metrics.get("Shuffle Write Metrics", {})
            found["spilled_bytes"] += metrics.get("Disk Bytes Spilled", 0) / WARM
            found["shuffled_bytes"] += written.get("Shuffle Bytes Written", 0) / WARM
    return found


def main(arguments: list[str] | None = None) -> None:
    """Measure one case given as JSON, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_scores", description=__doc__)
    parser.add_argument("--case", required=True, help="as JSON")
    parser.add_argument("--data", required=True, type=Path, help="directory with both tables")
    options = parser.parse_args(arguments)
    print(json.dumps(measure(SparkCase(**json.loads(options.case)), options.data)))


if __name__ == "__main__":
    main()
