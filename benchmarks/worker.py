"""The tasks of a separate process: generate a data set, touch memory, or time one form of one rival.

The process gets a JSON object as its only argument, and writes one JSON object per line to standard
output.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, TextIO

from benchmarks import memory
from benchmarks.datasets import Dataset, load_rows, read_files, write_rows
from benchmarks.forms import Form, Limits, NotPossible
from benchmarks.rivals import find_forms

__all__ = ["main"]

WARM_CALLS = 3  # of one process,
LONG = 30.0  # but only one if it takes more seconds than this


def main(argument: str) -> int:
    """Perform the task that the argument describes."""
    task = json.loads(argument)
    events = private_output()
    if task["task"] == "write":
        write_rows(Dataset(**task["dataset"]), Path(task["directory"]))
    elif task["task"] == "touch":
        memory.touch_memory(task["bytes"])
        os.sync()  # flushes files of earlier processes, which would slow this one
        if task["files"]:
            read_files(Path(task["files"]))
    else:
        (form,) = find_forms([task["form"]], task["layout"])
        limits = Limits(task["threads"], task["memory"], task["directory"])
        try:
            measure(form, Path(task["path"]), limits, events, check=task["check"])
        except Exception as error:
            outcome, message = outcome_of(error)
            send(events, event="failed", outcome=outcome, message=message[:500])
            return 1
    return 0


def outcome_of(error: Exception) -> tuple[str, str]:
    """Return the outcome and the message of a form that failed."""
    if isinstance(error, NotPossible):
        return "not possible", str(error)
    message = f"{type(error).__name__}: {error}"
    lacks_memory = isinstance(error, MemoryError) or "out of memory" in message.lower()
    return "memory" if lacks_memory else "error", message


def private_output() -> TextIO:
    """Return a stream to standard output for events only; output of libraries goes to standard error."""
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return events


def send(events: TextIO, **fields: Any) -> None:
    """Write one event."""
    events.write(json.dumps(fields) + "\n")
    events.flush()


def measure(form: Form, path: Path, limits: Limits, events: TextIO, *, check: bool) -> None:
    """Load the rows, prepare them, and time the first call and some warm ones."""
    for package in form.packages:
        importlib.import_module(package)
    rows = load_rows(path) if form.reads == "arrays" else path
    start = time.perf_counter()
    prepared = form.prepare(rows, limits)
    prepare_seconds = time.perf_counter() - start
    del rows
    gc.collect()
    resident = memory.resident_memory()
    send(events, event="ready", prepare_seconds=prepare_seconds, resident_bytes=resident)

    timed(form, prepared, events, "first")
    for _ in range(WARM_CALLS):
        if timed(form, prepared, events, "warm") > LONG:
            break
    if check and form.check is not None:
        try:
            scores, message = form.check(prepared), ""
        except Exception as error:  # timings are valid without the check
            scores, message = {}, f"check failed: {type(error).__name__}: {error}"[:500]
        send(events, event="check", scores=scores, message=message)
    send(events, event="done")


def timed(form: Form, prepared: Any, events: TextIO, call: str) -> float:
    """Time one call, and report its seconds, scores, memory, and bytes read and written."""
    gc.collect()
    memory.reset_peak()
    before = memory.disk_bytes()
    with memory.AnonymousGrowth() as anonymous:
        start = time.perf_counter()
        scores = form.score(prepared)
        seconds = time.perf_counter() - start
    read, written = (end - start for start, end in zip(before, memory.disk_bytes(), strict=True))
    send(
        events,
        event=call,
        seconds=seconds,
        scores=scores,
        peak_bytes=memory.peak_memory(),
        anonymous_bytes=anonymous.n_bytes,
        read_bytes=read,
        written_bytes=written,
    )
    if form.clear is not None:
        form.clear(prepared)
    return seconds


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
