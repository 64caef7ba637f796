"""The options of every Numba kernel, and its index into an array, spelled once."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numba
import numpy as np

from fastbcubed.kernels import cache


def load_without_scipy() -> None:
    """Load the part of Numba that loads SciPy just to know whether it has a BLAS, without that.

    SciPy takes longer than all of our kernels, which need no BLAS; code that does asks again when it is compiled.
    """
    linalg: Any = import_module("numba.np.linalg")
    if find_spec("scipy") is None or not hasattr(linalg, "ensure_blas"):
        return  # there is nothing to load, or another Numba does it otherwise
    asked, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = asked


if "numba.np.arraymath" not in sys.modules:
    with suppress(ImportError):  # of a module that another Numba does not have
        load_without_scipy()


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
