"""The memory that a call may take, looked at before each step that takes much: what does not fit is not begun."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from fastbcubed.errors import OptionError
from fastbcubed.runtime import buffers
from fastbcubed.runtime.limits import memory_limit
from fastbcubed.runtime.spill import readable

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
