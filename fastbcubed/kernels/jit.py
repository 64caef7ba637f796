"""The options of every Numba kernel, and its array index, defined once."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial, wraps
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numba
import numpy as np
from numba.core import types

from fastbcubed.kernels import cache


def load_without_scipy() -> None:
    """Load the part of Numba that loads SciPy to find out whether it has a BLAS, but without SciPy.

    SciPy takes longer than all of our kernels, which need no BLAS; code that does checks again when compiled.
    """
    linalg: Any = import_module("numba.np.linalg")
    if find_spec("scipy") is None or not hasattr(linalg, "ensure_blas"):
        return  # nothing to load, or another version of Numba
    original, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = original


if "numba.np.arraymath" not in sys.modules:
    with suppress(ImportError):  # of a module that another version of Numba lacks
        load_without_scipy()


_numba_config: Any = numba.config


def _interpreted(function: Any) -> Any:
    """Return a kernel run by Python: record fields become attributes, and products of words wrap."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*map(_with_fields, arguments))

    return run


def _with_fields(argument: Any) -> Any:
    """Return an array of records with their fields as attributes; anything else unchanged."""
    if isinstance(argument, np.ndarray) and argument.dtype.names:
        return argument.view(np.recarray)
    if isinstance(argument, tuple) and any(isinstance(each, np.ndarray) for each in argument):
        made = map(_with_fields, argument)
        return type(argument)(*made) if hasattr(argument, "_fields") else tuple(made)
    return argument


def kernel(function: Any = None, **options: Any) -> Any:
    """Return a function that is compiled when called, and cached; with options alone, a decorator."""
    if function is None:
        return partial(kernel, **options)
    if _numba_config.DISABLE_JIT:
        return _interpreted(function)
    options |= {"no_cfunc_wrapper": True}  # code for callers in C, of which there are none
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    _take_constants_as_numbers(compiled)
    if cache.WANTED:
        cache.keep(compiled)
    return compiled


def _take_constants_as_numbers(compiled: Any) -> None:
    """Compile a kernel that another calls with a constant only for the constant's plain type.

    Numba gives constants types of their own: where a loop begins with one, it compiles a kernel twice.
    """
    template_of = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template_of([*map(types.unliteral, args)], kws)


#: A part of a kernel that LLVM must inline: a call would pass every array on.
inlined = kernel(forceinline=True)


@kernel
def at(i):
    """Return an index as unsigned; for any other, Numba tests whether it counts from the end.

    In loops of a few instructions per item that test is a fifth of the time.
    """
    return np.uint64(i)
