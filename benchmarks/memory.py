"""Memory and disk use of a process, as Linux counts them or, on other systems, as `resource` reports them."""

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
SAMPLE = 0.05  # seconds between two readings of anonymous memory


def proc_field(path: Path, field: str) -> int | None:
    """Return in bytes a field of a /proc file that is in kB; None if there is none."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return None


def resident_memory(pid: int | None = None) -> int | None:
    """Return the resident bytes of a process (by default, of this one), or None if unknown."""
    return proc_field(PROC / str(pid or "self") / "status", "VmRSS")


def available_memory() -> int | None:
    """Return the bytes that processes can still allocate without swapping, or None if unknown."""
    return proc_field(PROC / "meminfo", "MemAvailable")


def total_memory() -> int | None:
    """Return the bytes of memory of the machine, or None if unknown."""
    return proc_field(PROC / "meminfo", "MemTotal")


def reset_peak() -> bool:
    """Reset the peak of this process's resident memory; return whether the system can do so."""
    try:
        (PROC / "self" / "clear_refs").write_text("5")
    except OSError:
        return False
    return True


def peak_memory() -> int:
    """Return the largest resident memory of this process, in bytes, since `reset_peak` or its start."""
    peak = proc_field(PROC / "self" / "status", "VmHWM")
    if peak is not None:
        return peak
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def disk_bytes() -> tuple[int, int]:
    """Return the bytes that this process read from and wrote to disks; zeros if unknown."""
    try:
        lines = (PROC / "self" / "io").read_text().splitlines()
    except OSError:
        return 0, 0
    counts = dict(line.split(": ") for line in lines)
    return int(counts["read_bytes"]), int(counts["write_bytes"])


class AnonymousGrowth:
    """The largest rise of this process's anonymous memory within a context, over its value at the start.

    Cached pages of files do not count, because the system can reclaim them. A thread reads the memory
    every `SAMPLE` seconds, so shorter peaks may be missed.

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
    """Write to newly allocated memory, and free it.

    On virtual machines, the first access to a page after the machine's start can cost far more than
    later ones, and would slow down whichever rival runs first.
    """
    block = 1 << 28
    held = [np.ones(min(block, n_bytes - start), np.uint8) for start in range(0, n_bytes, block)]
    del held
