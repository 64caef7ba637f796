"""Large buffers that are used again: fresh memory costs page faults, which may cost more than the work.

A buffer that nobody holds any more goes back to a short list. Its pages are offered to the system
(MADV_FREE), which takes them when it needs memory; until then the next call finds them as they were
and pays nothing. So a process looks larger after a big call than what it needs.
"""

from __future__ import annotations

import ctypes
import mmap
from collections import deque
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

__all__ = ["IDLE_BUFFERS", "SMALLEST", "empty", "idle_bytes", "release"]

#: Smaller arrays are left to NumPy.
SMALLEST = 32 << 20
#: So many idle buffers are kept at most.
IDLE_BUFFERS = 4
_HUGE_PAGE = 2 << 20

#: Appending and popping are atomic: no lock, which a fork or the garbage collector might find held.
_idle: deque[mmap.mmap] = deque(maxlen=IDLE_BUFFERS)


class _Lease:
    """The memory behind some array; it goes back when the last array on it is gone."""

    def __init__(self, memory: mmap.mmap) -> None:
        self._memory = memory
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": (len(memory),),
            "typestr": "|u1",
        }

    def __del__(self) -> None:
        if _give_back is not None:  # it is when the interpreter shuts down
            _give_back(self._memory)


def empty(shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array like `numpy.empty`, on used memory if there is some of about that size.

    Examples
    --------
    >>> empty(3, np.int64).shape
    (3,)
    """
    dtype = np.dtype(dtype)
    sizes = (shape,) if isinstance(shape, int) else shape
    size = prod(sizes) * dtype.itemsize
    if size < SMALLEST or not hasattr(mmap, "MADV_FREE"):
        return np.empty(shape, dtype)
    memory = _take(size)
    whole = np.asarray(_Lease(memory))
    return whole[:size].view(dtype).reshape(sizes)


def idle_bytes() -> int:
    """Return how much memory waits to be used again, or to be taken by the system."""
    return sum(map(len, tuple(_idle)))


def release() -> None:
    """Return all idle buffers to the system now, and what the allocator of C keeps of freed memory."""
    _idle.clear()
    with suppress(AttributeError, OSError, TypeError):  # glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _take(size: int) -> mmap.mmap:
    for _ in range(len(_idle)):
        try:
            memory = _idle.popleft()
        except IndexError:  # another thread was faster
            break
        if size <= len(memory) <= 2 * size:
            return memory
        _idle.append(memory)
    whole = -(-size // _HUGE_PAGE) * _HUGE_PAGE
    memory = mmap.mmap(-1, whole, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _give_back(memory: mmap.mmap) -> None:
    with suppress(OSError):
        memory.madvise(mmap.MADV_FREE)
        _idle.append(memory)
