"""Large buffers that are used again: fresh memory costs page faults, which may cost more than the work.

A buffer that nobody holds any more is kept idle. Its pages are offered to the system (MADV_FREE), which takes
them when it needs memory; until then the next call finds them as they were and pays nothing. Idle buffers and
those in use together are never more than was in use at once before, so a process looks as large after a big call
as during it: pages of the longest idle are given back first, and no more of them than has to be.
"""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

#: Smaller arrays are left to NumPy.
SMALLEST = 1 << 20
_HUGE_PAGE = 2 << 20
#: How many times as large idle memory may be that is lent: stages need buffers of other sizes, and were it fewer times,
#: each would have its pages taken for the next one, call after call.
_LARGER = 3

#: Idle memory and how much of it has pages by its `id`, longest idle first, and how much is in use by the `id` of the
#: memory. Single operations on a dictionary, its copy among them, are atomic: no lock, which a fork or the garbage
#: collector might find held.
_idle: dict[int, tuple[mmap.mmap, int]] = {}
_lent: dict[int, int] = {}
_most = 0  # bytes in use at once so far


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
    sizes = shape if isinstance(shape, tuple) else (shape,)
    size = prod(sizes) * dtype.itemsize
    if size < SMALLEST or not hasattr(mmap, "MADV_FREE"):
        return np.empty(shape, dtype)
    return pages(size)[:size].view(dtype).reshape(sizes)


def pages(size: int) -> np.ndarray:
    """Return whole pages of at least so many bytes, on used memory if there is some of about that size.

    Examples
    --------
    >>> pages(5000).size % mmap.PAGESIZE
    0
    """
    return np.asarray(_Lease(_take(size)))


def idle_bytes() -> int:
    """Return how much memory waits to be used again, or to be taken by the system."""
    return sum(held for _, held in _idle.copy().values())


def release() -> None:
    """Return all idle buffers to the system now, and what the allocator of C keeps of freed memory."""
    global _most
    _idle.clear()
    _most = _in_use()
    with suppress(AttributeError, OSError, TypeError):  # glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _in_use() -> int:
    return sum(_lent.copy().values())


def _take(size: int) -> mmap.mmap:
    global _most
    memory = _take_idle(size)
    if memory is None:
        _drop_idle(size)
        memory = _map(size)
    _lent[id(memory)] = len(memory)
    _most = max(_most, _in_use())
    return memory


def _take_idle(size: int) -> mmap.mmap | None:
    """Take the smallest idle memory that fits and is not much larger."""
    fitting = sorted(
        (len(memory), key)
        for key, (memory, _) in _idle.copy().items()
        if size <= len(memory) <= _LARGER * size
    )
    for _, key in fitting:
        found = _idle.pop(key, None)
        if found is not None:  # no other thread was faster
            return found[0]
    return None


def _map(size: int) -> mmap.mmap:
    unit = _HUGE_PAGE if size >= _HUGE_PAGE else mmap.PAGESIZE
    whole = -(-max(size, 1) // unit) * unit
    if not hasattr(mmap, "MAP_ANONYMOUS"):  # Windows
        return mmap.mmap(-1, whole)
    memory = mmap.mmap(-1, whole, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if unit == _HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _give_back(memory: mmap.mmap) -> None:
    _lent.pop(id(memory), None)
    if not hasattr(mmap, "MADV_FREE"):
        return
    with suppress(OSError):
        memory.madvise(mmap.MADV_FREE)
        _idle[id(memory)] = memory, len(memory)
    _drop_idle(0)


def _drop_idle(size: int) -> None:
    """Return idle memory to the system, longest idle first, as far as with so many bytes more it would be too much."""
    while _idle:
        excess = idle_bytes() + _in_use() + size - max(_most, _in_use() + size)
        if excess <= 0:
            return
        with suppress(StopIteration, RuntimeError, KeyError):  # another thread was faster
            key = next(iter(_idle))
            memory, held = _idle.pop(key)
            if excess < held:  # the mapping stays: the next call fills what is given back, and finds the rest
                held -= _give_pages(memory, held, excess)
                _idle[key] = memory, held


def _give_pages(memory: mmap.mmap, held: int, size: int) -> int:
    """Return the last of the pages that some idle memory has to the system, at least so many bytes of them."""
    unit = _HUGE_PAGE if len(memory) >= _HUGE_PAGE else mmap.PAGESIZE
    start = max(0, (held - size) // unit * unit)
    with suppress(OSError):
        memory.madvise(mmap.MADV_DONTNEED, start, held - start)
    return held - start
