"""The memory that a call may use: its limit, the check of each step, and a semaphore for work that holds memory."""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from typing import Any

import pyarrow as pa

from fastbcubed.errors import OptionError, arg, quoted
from fastbcubed.runtime import buffers
from fastbcubed.runtime.arguments import is_whole
from fastbcubed.runtime.spill import readable

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNITS |= {f"{unit}i": 2 ** (10 * power) for power, unit in enumerate("kmgt", 1)}
#: Names of the files with the memory limit and the memory in use of a control group, for both versions of these.
GROUPS = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))


def memory_limit(given: Any) -> int:
    """Return a memory limit in bytes; the default is half of the memory available to the process.

    Examples
    --------
    >>> memory_limit("2GiB"), memory_limit("600 MB")
    (2147483648, 600000000)
    """
    if given is None:
        return available_memory() // 2
    if is_whole(given) and given > 0:
        return int(min(given, sys.maxsize))
    found = (
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]i?)?b?\s*", given.lower())
        if isinstance(given, str)
        else None
    )
    limit = 0 if found is None else int(min(float(found[1]) * UNITS[found[2] or ""], sys.maxsize))
    if not limit:
        raise OptionError(
            f'{arg("memory_limit")} must be a number of bytes, or a string such as "2GiB" or "600MB", not '
            f"{quoted(given)}"
        )
    return limit


def require_within(limit: int | None, needed: int, what: str, held: str, instead: str = "") -> None:
    """Raise OptionError if work that holds all of its data in memory needs more bytes than the limit, if any."""
    if limit is not None and needed > limit:
        raise OptionError(
            f"{what} would take about {readable(needed)} of memory, because {held} are held as a whole; "
            f"a memory_limit of at least {(needed >> 20) + 1} MiB suffices{instead}"
        )


def available_memory() -> int:
    """Return the number of bytes still available to the process on the machine or in its control groups."""
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
    """Return the number of bytes left in a control group, counting page cache as free; None without a limit."""
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


#: Allowance in bytes, beyond the limit, for code and for the blocks being processed.
BESIDE = 128 << 20
#: Safety factor of reported memory needs and suggested limits.
MARGIN = 1.02


class Allowance:
    """A limit on the growth of the process's memory from now on; without a limit, nothing is checked.

    If the system does not report the size of the process, each step is checked on its own.
    """

    def __init__(self, limit: Any = None) -> None:
        self.limit = None if limit is None else memory_limit(limit)
        if self.limit is not None:
            buffers.release()
            self._before = _resident()
        self._held: int | None = None

    def require(self, more: int, what: str, way_out: str = "") -> None:
        """Raise OptionError if `more` bytes, in addition to those in use now, exceed the limit.

        `what` is the subject of the message, which ends with `way_out`.
        """
        if self.limit is None or self.has_room(more):
            return
        needed = self._needed(more)
        least = int(MARGIN * needed / 2**20) + 1
        raise OptionError(
            f"{arg('memory_limit')} is {readable(self.limit)}, but {what} would take about "
            f"{readable(MARGIN * needed)}. Pass {arg('memory_limit', f'{least}MiB')} or more{way_out}"
        )

    def has_room(self, more: int) -> bool:
        """Return whether `more` bytes, in addition to those in use now, are within the limit."""
        if self.limit is None or self._needed(more) <= self.limit:
            return True
        release()  # idle memory still counts as in use
        return self._needed(more) <= self.limit

    def at_rest(self) -> Allowance:
        """Return an allowance for later requests to a result; it assumes that the memory used now stays in use."""
        found = copy(self)
        if self.limit is not None:
            release()
            found._held = max(0, _resident() - self._before - BESIDE)
        return found

    def _needed(self, more: int) -> int:
        held = _resident() - self._before - BESIDE if self._held is None else self._held
        return max(more, held + more)

    def release(self) -> None:
        """Return idle memory to the system, if there is a limit."""
        if self.limit is not None:
            release()

    def block_rows(self, usual: int) -> int:
        """Return the number of rows to read at once, which is less than usual if the limit is small."""
        return usual if self.limit is None else max(1, min(usual, self.limit >> 10))


def release() -> None:
    """Return idle memory to the system."""
    buffers.release()
    pa.default_memory_pool().release_unused()


def _resident() -> int:
    """Return the number of resident bytes of the process that are not backed by files; 0 if unknown."""
    with suppress(OSError):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "RssShmem"))) << 10
    return 0


class Gate:
    """A semaphore that limits the total memory of concurrent work; a single piece of work is always admitted.

    Parameters
    ----------
    most : int
        The limit in bytes.

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
        """Wait until these bytes fit, or until no other work is inside; they count until the context ends."""
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
