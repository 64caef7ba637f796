"""Memory and disk of a process as Linux counts them; other systems give what `resource` knows."""

from __future__ import annotations

import resource
import sys
import threading
from pathlib import Path
from typing import Self

import numpy as np

__all__ = [
    "AnonymousGrowth",
    "available_memory",
    "disk_bytes",
    "peak_memory",
    "reset_peak",
    "resident_memory",
    "total_memory",
    "touch_memory",
]

PROC = Path("/proc")
SAMPLE = 0.05  # seconds between two looks at anonymous memory


def proc_field(path: Path, field: str) -> int | None:
    """Read a field of a /proc file that is given in kB, as bytes."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return None


def resident_memory(pid: int | None = None) -> int | None:
    """Resident bytes of a process (this one without `pid`), or None where that is not known."""
    return proc_field(PROC / str(pid or "self") / "status", "VmRSS")


def available_memory() -> int | None:
    """Bytes that processes can still take without swapping, or None where that is not known."""
    return proc_field(PROC / "meminfo", "MemAvailable")


def total_memory() -> int | None:
    """Bytes of memory of the machine, or None where that is not known."""
    return proc_field(PROC / "meminfo", "MemTotal")


def reset_peak() -> bool:
    """Start a new peak of this process's resident memory; say whether the system can do so."""
    try:
        (PROC / "self" / "clear_refs").write_text("5")
    except OSError:
        return False
    return True


def peak_memory() -> int:
    """Largest resident memory of this process, in bytes, since `reset_peak` or its start."""
    peak = proc_field(PROC / "self" / "status", "VmHWM")
    if peak is not None:
        return peak
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def disk_bytes() -> tuple[int, int]:
    """Bytes that disks were asked to read and to write for this process; zeros where that is not known."""
    try:
        lines = (PROC / "self" / "io").read_text().splitlines()
    except OSError:
        return 0, 0
    counts = dict(line.split(": ") for line in lines)
    return int(counts["read_bytes"]), int(counts["write_bytes"])


class AnonymousGrowth:
    """How far this process's anonymous memory rises, while the context lasts, over what it is at its start.

    Memory that holds pages of files does not count: the system takes it back when it is needed. A
    thread looks every `SAMPLE` seconds, so what lasts less may be missed.

    Attributes
    ----------
    n_bytes : int
        The largest rise seen.
    """

    def __init__(self) -> None:
        self.n_bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._before = self._anonymous()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        over = False
        while not over:
            over = self._over.wait(SAMPLE)
            self.n_bytes = max(self.n_bytes, self._anonymous() - self._before)

    @staticmethod
    def _anonymous() -> int:
        return proc_field(PROC / "self" / "status", "RssAnon") or 0


def touch_memory(n_bytes: int) -> None:
    """Write to fresh memory and give it back.

    On virtual machines the first touch of a page since the start of the machine can cost far
    more than later ones, and would fall on whichever rival comes first.
    """
    block = 1 << 28
    held = [np.ones(min(block, n_bytes - start), np.uint8) for start in range(0, n_bytes, block)]
    del held
