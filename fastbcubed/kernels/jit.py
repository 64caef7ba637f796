"""The options of every Numba kernel, and its index into an array, spelled once."""

from __future__ import annotations

from functools import partial
from typing import Any

import numba
import numpy as np

from fastbcubed.kernels import cache


def kernel(function: Any = None, **options: Any) -> Any:
    """Return a function that is compiled when it is called, and kept; with options alone, a decorator."""
    if function is None:
        return partial(kernel, **options)
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    if cache.WANTED:
        cache.keep(compiled)
    return compiled


#: A part of a kernel, which LLVM is told to write in its place: a call would pass every array on.
inlined = kernel(forceinline=True)


@kernel
def at(i):
    """Return an index as unsigned; of any other, Numba tests whether it counts from the end.

    In loops of a few instructions an item that test is a fifth of the time.
    """
    return np.uint64(i)
