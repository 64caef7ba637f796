"""The memory that a call may use: its limit, the budget of each step, and a semaphore for work that holds memory."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from numbers import Integral
from pathlib import Path
from typing import Any

import pyarrow as pa

from fastbcubed.errors import OptionError
from fastbcubed.runtime import buffers
from fastbcubed.runtime.spill import readable

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNITS |= {f"{unit}i": 2 ** (10 * power) for power, unit in enumerate("kmgt", 1)}
#: Where a container's limit and use stand, in the two versions of control groups.
GROUPS = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))


def memory_limit(given: Any) -> int:
    """Return a limit in bytes; half of the memory available to the process where none is given.

    Examples
    --------
    >>> memory_limit("2GiB"), memory_limit("600 MB")
    (2147483648, 600000000)
    """
    if given is None:
        return available_memory() // 2
    if isinstance(given, Integral) and not isinstance(given, bool) and int(given) > 0:
        return int(given)
    found = (
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", given.lower())
        if isinstance(given, str)
        else None
    )
    limit = 0 if found is None else int(float(found[1]) * UNITS[found[2] or ""])
    if not limit:
        raise OptionError(
            f'memory_limit is a number of bytes, or a text such as "2GiB" or "600MB", not {given!r}'
        )
    return limit


def available_memory() -> int:
    """Return the bytes that the process can still get, whatever limits it: the machine, or its control group."""
    found = [_of_machine()]
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, kinds, path = line.split(":", 2)
            root = Path("/sys/fs/cgroup") / ("" if not kinds else "memory")
            if kinds and "memory" not in kinds.split(","):
                continue
            group = root / path.lstrip("/")
            found += [left for each in (group, *group.parents) if (left := _left_in(each)) is not None]
    return max(1, min(found))


def _of_machine() -> int:
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _left_in(group: Path) -> int | None:
    """Return what a control group leaves; the page cache in it can be taken back and does not count."""
    for most, used in GROUPS:
        try:
            limit = (group / most).read_text(encoding="ascii").strip()
            taken = int((group / used).read_text(encoding="ascii"))
            stat = dict(
                line.split() for line in (group / "memory.stat").read_text(encoding="ascii").splitlines()
            )
        except (OSError, ValueError):
            continue
        if limit.isdigit():
            return max(0, int(limit) - taken + int(stat.get("file", stat.get("cache", 0))))
    return None


#: What code and the blocks that are at work take, which may pass the limit.
BESIDE = 128 << 20
#: By how much more than what is needed a larger limit is told.
MARGIN = 1.02


class Allowance:
    """A limit by which the memory of the process may grow from now on; without a limit nothing is looked at.

    Where the system does not tell how large the process is, only what a step takes by itself is looked at.
    """

    def __init__(self, limit: Any = None) -> None:
        self.limit = None if limit is None else memory_limit(limit)
        if self.limit is not None:
            buffers.release()
            self._before = _resident()

    def require(self, more: int, what: str, way_out: str = "") -> None:
        """Raise OptionError if `more` bytes than are held now pass the limit.

        `what` takes them, as the message says, which `way_out` ends.
        """
        if self.limit is None or self._needed(more) <= self.limit:
            return
        release()  # what is only kept to be used again need not be there
        if (needed := self._needed(more)) <= self.limit:
            return
        least = int(MARGIN * needed / 2**20) + 1
        raise OptionError(
            f"memory_limit is {readable(self.limit)}, but {what} would take about {readable(MARGIN * needed)}. Pass "
            f'memory_limit="{least}MiB" or more{way_out}'
        )

    def _needed(self, more: int) -> int:
        return max(more, _resident() - self._before - BESIDE + more)

    def release(self) -> None:
        """Give what is only kept to be used again back to the system, if there is a limit."""
        if self.limit is not None:
            release()

    def block_rows(self, usual: int) -> int:
        """Return how many rows to read at once: fewer than is usual if there is a small limit."""
        return usual if self.limit is None else max(1, min(usual, self.limit >> 10))


def release() -> None:
    """Return memory that waits to be used again to the system."""
    buffers.release()
    pa.default_memory_pool().release_unused()


def _resident() -> int:
    """Return the bytes of the process that are in memory and of no file; 0 where the system does not tell."""
    with suppress(OSError):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem"))) << 10
    return 0


class Gate:
    """Lets work in as long as all that is inside holds no more than so many bytes; one is always let in.

    Parameters
    ----------
    most : int
        Bytes.

    Examples
    --------
    >>> gate = Gate(10)
    >>> with gate.holding(99):
    ...     "alone"
    'alone'
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = 0
        self._changed = threading.Condition()

    @contextmanager
    def holding(self, n_bytes: int) -> Iterator[None]:
        """Wait until there is room for these bytes, or nobody else is inside who holds any."""
        if not n_bytes:
            yield
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._held or self._held + n_bytes <= self._most)
            self._held += n_bytes
        try:
            yield
        finally:
            with self._changed:
                self._held -= n_bytes
                self._changed.notify_all()
