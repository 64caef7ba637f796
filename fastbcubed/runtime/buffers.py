"""Large reusable buffers: fresh memory costs page faults, which may take longer than the work itself.

A buffer no longer in use is kept idle. Its pages, unless they are few, are offered to the system (MADV_FREE), which
takes them when it needs memory; until then, reusing them costs nothing. Idle and used buffers together never exceed
the peak use so far, so a process appears as large after a big call as during it: when more is needed, pages of the
longest idle buffers are returned to the system first, and no more of them than necessary.
"""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np

#: Smaller arrays are allocated by NumPy.
SMALLEST = 1 << 20
#: Smaller idle memory is not offered to the system, since that would take longer than the work on it.
LEAST_OFFERED = 4 << 20
_HUGE_PAGE = 2 << 20
#: Maximum ratio of the size of reused idle memory to the size requested. Stages need buffers of different sizes; with a
#: smaller ratio, the pages of each would be returned to make room for the next, in every call.
_LARGER = 3

#: Idle memory and the size of its resident pages by `id`, longest idle first; and the sizes of used memory by `id`.
#: Single operations on a dictionary, including its copy, are atomic, so no lock is needed, which might be held at a
#: fork or by the garbage collector.
_idle: dict[int, tuple[mmap.mmap, int]] = {}
_lent: dict[int, int] = {}
_most = 0  # peak of the bytes in use


class _Lease:
    """The memory of an array, which becomes idle when the last array that uses it is gone."""

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
        if _give_back is not None:  # it is None while the interpreter shuts down
            _give_back(self._memory)


def empty(shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an uninitialized array, in idle memory if there is some of similar size.

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
    """Return an array of whole pages with at least `size` bytes, in idle memory if there is some of similar size.

    Examples
    --------
    >>> pages(5000).size % mmap.PAGESIZE
    0
    """
    return np.asarray(_Lease(_take(size)))


def idle_bytes() -> int:
    """Return the number of bytes of idle memory, which can be reused, or taken by the system."""
    return sum(held for _, held in _idle.copy().values())


def release() -> None:
    """Return all idle buffers, and memory that the C allocator keeps although it was freed, to the system."""
    global _most
    _idle.clear()
    _most = _in_use()
    with suppress(AttributeError, OSError, TypeError):  # glibc only
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
        entry = _idle.pop(key, None)
        if entry is not None:  # it is None if another thread has taken the memory
            return entry[0]
    return None


def _map(size: int) -> mmap.mmap:
    unit = _HUGE_PAGE if size >= _HUGE_PAGE else mmap.PAGESIZE
    whole = -(-max(size, 1) // unit) * unit
    if not hasattr(mmap, "MAP_ANONYMOUS"):  # Windows
        return mmap.mmap(-1, whole)
    try:
        memory = mmap.mmap(-1, whole, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no room for {whole:,} bytes") from error
    if unit == _HUGE_PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # the kernel may not support huge pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory


def _give_back(memory: mmap.mmap) -> None:
    _lent.pop(id(memory), None)
    if not hasattr(mmap, "MADV_FREE"):
        return
    with suppress(OSError):
        if len(memory) >= LEAST_OFFERED:
            memory.madvise(mmap.MADV_FREE)
        _idle[id(memory)] = memory, len(memory)
    _drop_idle(0)


def _drop_idle(size: int) -> None:
    """Return idle memory, longest idle first, to the system until `size` more bytes stay within the peak."""
    while _idle:
        excess = idle_bytes() + _in_use() + size - max(_most, _in_use() + size)
        if excess <= 0:
            return
        with suppress(StopIteration, RuntimeError, KeyError):  # by another thread's changes
            key = next(iter(_idle))
            memory, held = _idle.pop(key)
            if excess < held:  # the mapping is kept: the next call refills these pages, and reuses the rest
                held -= _give_pages(memory, held, excess)
                _idle[key] = memory, held


def _give_pages(memory: mmap.mmap, held: int, size: int) -> int:
    """Return at least `size` bytes of the last resident pages of idle memory to the system."""
    unit = _HUGE_PAGE if len(memory) >= _HUGE_PAGE else mmap.PAGESIZE
    start = max(0, (held - size) // unit * unit)
    with suppress(OSError):
        memory.madvise(mmap.MADV_DONTNEED, start, held - start)
    return held - start
