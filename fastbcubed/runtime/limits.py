"""How much memory a call may use: as it is given, or half of what the process can still get."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Any

from fastbcubed.errors import OptionError

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
