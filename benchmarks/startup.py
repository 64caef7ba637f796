"""How long a user waits before any work is done: the import, and a warm run of the command line."""

from __future__ import annotations

import statistics
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import ROOT
from benchmarks.shapes import generate

__all__ = ["measure_startup"]

RUNS = 9
N_ITEMS = 10_000
BARS = {"import": 0.5, "command line": 1.5}  # seconds


def measure_startup(directory: Path, runs: int = RUNS) -> list[dict[str, Any]]:
    """Time fresh processes, after one that fills the compile cache; give result lines."""
    python = [sys.executable, "-c"]
    commands = {
        "interpreter alone": [*python, "pass"],
        "import": [*python, "import fastbcubed"],
        "command line": command_line(directory),
    }
    records = []
    for name, command in commands.items():
        record: dict[str, Any] = {"kind": "startup", "name": name, "bar_seconds": BARS.get(name)}
        try:
            run_once(command)
            seconds = [run_once(command) for _ in range(runs)]
        except subprocess.CalledProcessError as error:
            last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
            record |= {"outcome": "error", "message": "".join(last)[:500], "seconds": None}
        else:
            record |= {"seconds": statistics.median(seconds), "all_seconds": seconds}
        records.append(record)
    return records


def run_once(command: list[str]) -> float:
    """Run a command and return its seconds from start to end."""
    start = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.perf_counter() - start


def command_line(directory: Path) -> list[str]:
    """Write two tables of 10,000 items and return the command that evaluates them."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = generate("er", N_ITEMS)
    items = pa.array(range(N_ITEMS), pa.int64())
    paths = [directory / "startup-truth.parquet", directory / "startup-prediction.parquet"]
    for path, labels in zip(paths, rows[:2], strict=True):
        pq.write_table(pa.table({"item": items, "cluster": labels}), path)
    script = Path(sysconfig.get_path("scripts")) / "fastbcubed"
    start = [str(script)] if script.exists() else [sys.executable, "-m", "fastbcubed"]
    return [*start, "evaluate", *map(str, paths)]
