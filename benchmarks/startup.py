"""Startup times: the import, and each command on few items, with and without cached kernels."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT

__all__ = ["measure_startup"]

RUNS = 9
DATA = ROOT / "fastbcubed" / "data" / "patentsview"
TRUTH, OLD, NEW = (str(DATA / f"{name}.parquet") for name in ("truth", "pred_20200929", "pred_20211230"))
#: The measured processes: Python code, or the arguments of a command.
PROCESSES: dict[str, str | list[str]] = {
    'python -c "pass"': "pass",
    'python -c "import fastbcubed"': "import fastbcubed",
    "fastbcubed evaluate": ["evaluate", TRUTH, NEW],
    "fastbcubed evaluate --metric all": ["evaluate", TRUTH, NEW, "--metric", "all"],
    "fastbcubed evaluate --engine disk": ["evaluate", TRUTH, NEW, "--engine", "disk"],
    "fastbcubed compare": ["compare", TRUTH, OLD, NEW],
    "fastbcubed diff --truth": ["diff", OLD, NEW, "--truth", TRUTH],
    "fastbcubed estimate": ["estimate", TRUTH, NEW],
    "fastbcubed demo": ["demo"],
    "fastbcubed warm-up": ["warm-up"],
}
ONCE = "fastbcubed warm-up"
#: Modules that these processes load; without their bytecode, Python compiles their text in each process.
LOADED = "fastbcubed.cli.main, numba, pandas, pyarrow.compute, pyarrow.parquet, rich.table"


def measure_startup(runs: int = RUNS, names: Iterable[str] = PROCESSES) -> list[dict[str, Any]]:
    """Return result lines of the times of the first process, without cached kernels, and of later ones.

    The first process is timed twice: with the default settings, and with every kernel that it calls compiled.
    """
    return [_measure(name, runs) for name in names]


def _measure(name: str, runs: int) -> dict[str, Any]:
    process = PROCESSES[name]
    command = ["-c", process] if isinstance(process, str) else ["-m", "fastbcubed", *process]
    record: dict[str, Any] = {"kind": "startup", "name": name, "outcome": "ok", "seconds": None}
    try:
        with tempfile.TemporaryDirectory() as compiled, tempfile.TemporaryDirectory() as cache:
            _run(["-c", f"import {LOADED}"], cache)  # writes bytecode, as an installation does
            record["first_compiled"], _ = _run(command, compiled, "0")
            record["first"], _ = _run(command, cache)
            record["kernels"] = len(list(Path(cache).rglob("*.nbi")))
            later = [_run(command, cache) for _ in range(1 if name == ONCE else runs)]
    except subprocess.CalledProcessError as error:
        last = error.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return record | {"outcome": "error", "message": "".join(last)[:500]}
    record["later"], record["seconds"] = (statistics.median(each) for each in zip(*later, strict=True))
    return record


def _run(command: list[str], cache: str, interpret: str = "1") -> tuple[float, float]:
    """Run a command, and return its processor time and its wall time in seconds."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "FASTBCUBED_INTERPRET": interpret}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall
