"""The timing of rivals: each in fresh processes, in turn, under limits of time and memory."""

from __future__ import annotations

import json
import os
import selectors
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import memory
from benchmarks.datasets import Dataset, file_bytes
from benchmarks.forms import Form
from benchmarks.rivals import REFERENCE

__all__ = ["TOLERANCE", "Measurement", "Protocol", "measure_all"]

ROOT = Path(__file__).parent.parent
TOLERANCE = 1e-9  # a larger difference in scores means that rivals did not do the same work
TOUCHED_PER_ITEM = 160  # bytes of memory per item touched before a process is timed
SPARE = 512 << 20  # bytes that the machine keeps free; a rival that would need them is killed
WATCH = 0.05  # seconds between two checks of a process


@dataclass(frozen=True)
class Protocol:
    """The settings of measurements: rounds, limits and directories."""

    directory: Path
    rounds: int = 3
    threads: int = 1
    seconds: float = 600.0  # of one call
    memory: int = 20 << 30  # bytes resident
    limit: int | None = None  # memory limit in bytes that libraries are given; by default, `memory`

    @property
    def told(self) -> int:
        """The memory limit in bytes that libraries are given."""
        return self.memory if self.limit is None else self.limit


@dataclass
class Measurement:
    """The results of one form on one data set, over all rounds.

    Each round is a process with one of the `first_seconds` and three of the `warm_seconds` (one, if a
    call takes more than half a minute). Tables show the median of the latter over all rounds.
    """

    form: Form
    dataset: Dataset
    outcome: str = "ok"
    message: str = ""
    first_seconds: list[float] = field(default_factory=list)
    warm_seconds: list[float] = field(default_factory=list)
    prepare_seconds: list[float] = field(default_factory=list)
    peak_bytes: int = 0
    growth_bytes: int = 0
    anonymous_bytes: int = 0  # largest rise of anonymous memory in a call
    read_bytes: int = 0  # from disk, by the last call
    written_bytes: int = 0
    file_bytes: int = 0  # of the data set
    limit_bytes: int | None = None  # that the library was told
    scores: dict[str, float] = field(default_factory=dict)
    check_scores: dict[str, float] = field(default_factory=dict)
    difference: float | None = None  # largest difference from the reference's scores

    def record(self) -> dict[str, Any]:
        """Return the line of the result file as a dictionary."""
        fields = {k: v for k, v in vars(self).items() if k not in ("form", "dataset")}
        seconds = statistics.median(self.warm_seconds) if self.warm_seconds else None
        return {
            "kind": "scores",
            "rival": self.form.rival,
            "form": self.form.name,
            "note": self.form.note,
            "weighted": self.form.weighted and self.dataset.weighted,
            **self.dataset.fields(),
            "seconds": seconds,
            **fields,
        }


def measure_all(dataset: Dataset, forms: Iterable[Form], protocol: Protocol) -> list[Measurement]:
    """Measure the forms in turn, round by round; a form that did not finish is not run again."""
    run_task({"task": "write", "dataset": dataset.fields(), "directory": str(protocol.directory)})
    forms = [form for form in forms if form.max_items >= dataset.n_items]
    size = file_bytes(dataset.path(protocol.directory))
    measurements = [
        Measurement(
            form,
            dataset,
            file_bytes=size,
            limit_bytes=protocol.limit if form.bounded else protocol.memory,
        )
        for form in forms
    ]
    with tempfile.TemporaryDirectory(dir=protocol.directory, prefix="caches-") as caches:
        for round_number in range(protocol.rounds):
            for measurement in measurements:
                if measurement.outcome == "ok":
                    touch_memory(dataset, protocol)
                    measure_once(measurement, protocol, Path(caches), check=round_number == 0)
                    announce(measurement, round_number)
    compare_scores(measurements)
    return measurements


def announce(measurement: Measurement, round_number: int) -> None:
    """Log the result of one process on standard error."""
    dataset = measurement.dataset
    what = f"{dataset.shape} {dataset.n_items:.0e} {dataset.ids} {dataset.layout} {measurement.form.key}"
    if measurement.outcome == "ok":
        first, warm = measurement.first_seconds[-1], measurement.warm_seconds[-1]
        peak = measurement.peak_bytes / 2**30
        result = f"first {first:.3g} s, warm {warm:.3g} s, peak {peak:.2f} GiB"
    else:
        result = f"{measurement.outcome}: {measurement.message}"
    print(f"round {round_number + 1}: {what}: {result}", file=sys.stderr, flush=True)


def compare_scores(measurements: list[Measurement]) -> None:
    """Record how much each form's scores differ from those of fastbcubed or, without it, of the first form."""
    finished = [m for m in measurements if m.outcome == "ok" and m.form.weighted]
    finished.sort(key=lambda m: m.form.rival != REFERENCE)
    if not finished:
        return
    reference = finished[0]
    for measurement in measurements:
        weighted = measurement.form.weighted
        expected = reference.scores if weighted else reference.check_scores
        shared = expected.keys() & measurement.scores.keys()
        if shared:
            differences = [abs(expected[name] - measurement.scores[name]) for name in shared]
            measurement.difference = max(differences)


def touch_memory(dataset: Dataset, protocol: Protocol) -> None:
    """Touch and free the memory that the next process needs, in a separate process; then read its files."""
    available = memory.available_memory()
    n_bytes = min(dataset.n_items * TOUCHED_PER_ITEM, protocol.told)
    if available is not None:
        n_bytes = min(n_bytes, available - 2 * SPARE)
    files = None if dataset.layout == "arrays" else str(dataset.path(protocol.directory))
    run_task({"task": "touch", "bytes": max(0, n_bytes), "files": files})


def run_task(task: dict[str, Any]) -> None:
    """Run a task that must not fail."""
    subprocess.run(worker_command(task), cwd=ROOT, check=True)


def worker_command(task: dict[str, Any]) -> list[str]:
    """Return the command that runs a task in a fresh process."""
    return [sys.executable, "-m", "benchmarks.worker", json.dumps(task)]


def worker_environment(threads: int, cache: Path) -> dict[str, str]:
    """Return an environment with the same number of threads for all libraries, and an empty cache for Numba."""
    names = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    own = {
        "NUMBA_CACHE_DIR": str(cache),
        "FASTBCUBED_INTERPRET": "0",
    }  # warm calls use compiled kernels
    return os.environ | dict.fromkeys(names, str(threads)) | own


def measure_once(measurement: Measurement, protocol: Protocol, caches: Path, *, check: bool) -> None:
    """Run one process under the limits, and add its results to the measurement."""
    task = {
        "task": "measure",
        "form": measurement.form.key,
        "layout": measurement.dataset.layout,
        "path": str(measurement.dataset.path(protocol.directory)),
        "threads": protocol.threads,
        "memory": protocol.told,
        "directory": str(caches),
        "check": check,
    }
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            worker_command(task),
            cwd=ROOT,
            env=worker_environment(protocol.threads, caches / "numba"),
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        try:
            ended = watch(process, measurement, protocol)
        finally:
            process.kill()
            status = process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if ended:
            measurement.outcome, measurement.message = ended
        elif measurement.outcome == "ok" and status == -signal.SIGKILL:
            measurement.outcome, measurement.message = "memory", "ended by the system"
        elif measurement.outcome == "ok" and status != 0:
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            measurement.outcome = "error"
            measurement.message = f"exit status {status}: {''.join(last)[:500]}"


def watch(
    process: subprocess.Popen[bytes], measurement: Measurement, protocol: Protocol
) -> tuple[str, str] | None:
    """Collect events until the process ends; return outcome and message if it exceeded a limit."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    waiting_since = time.monotonic()
    received = b""
    resident = 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if selector.select(WATCH):
                chunk = process.stdout.read()
                if not chunk:
                    process.wait()
                    return None
                *lines, received = (received + chunk).split(b"\n")
                for line in lines:
                    resident = add_event(measurement, json.loads(line), resident)
                    waiting_since = time.monotonic()
            if time.monotonic() - waiting_since > protocol.seconds:
                return "time", f"more than {protocol.seconds:.0f} s"
            if (memory.resident_memory(process.pid) or 0) > protocol.memory:
                return "memory", f"more than {protocol.memory / 2**30:.3g} GiB"
            available = memory.available_memory()
            if available is not None and available < SPARE:
                return "memory", "more than the machine had left"


def add_event(measurement: Measurement, event: dict[str, Any], resident: int) -> int:
    """Add one event; return the resident memory before the first call, once it is known."""
    match event["event"]:
        case "ready":
            measurement.prepare_seconds.append(event["prepare_seconds"])
            return event["resident_bytes"] or 0
        case "first" | "warm" as call:
            seconds = measurement.first_seconds if call == "first" else measurement.warm_seconds
            seconds.append(event["seconds"])
            measurement.scores = event["scores"]
            measurement.peak_bytes = max(measurement.peak_bytes, event["peak_bytes"])
            growth = event["peak_bytes"] - resident
            measurement.growth_bytes = max(measurement.growth_bytes, growth)
            measurement.anonymous_bytes = max(measurement.anonymous_bytes, event["anonymous_bytes"])
            measurement.read_bytes, measurement.written_bytes = event["read_bytes"], event["written_bytes"]
        case "check":
            measurement.check_scores = event["scores"]
            measurement.message = event["message"]
        case "failed":
            measurement.outcome = event["outcome"]
            measurement.message = event["message"]
    return resident
