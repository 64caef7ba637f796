"""The options of every Numba kernel, and its index into an array, spelled once."""

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


_numba_config: Any = numba.config


def _interpreted(function: Any) -> Any:
    """Return a kernel that Python runs: fields of records have names there, too, and products of words wrap."""

    @wraps(function)
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*map(_with_fields, arguments))

    return run


def _with_fields(argument: Any) -> Any:
    """Return an array of records, whose fields are attributes of each; anything else as it is."""
    if isinstance(argument, np.ndarray) and argument.dtype.names:
        return argument.view(np.recarray)
    if isinstance(argument, tuple) and any(isinstance(each, np.ndarray) for each in argument):
        made = map(_with_fields, argument)
        return type(argument)(*made) if hasattr(argument, "_fields") else tuple(made)
    return argument


def kernel(function: Any = None, **options: Any) -> Any:
    """Return a function that is compiled when it is called, and kept; with options alone, a decorator."""
    if function is None:
        return partial(kernel, **options)
    if _numba_config.DISABLE_JIT:
        return _interpreted(function)
    options |= {"no_cfunc_wrapper": True}  # code for callers in C, of whom there are none
    compiled = numba.njit(nogil=True, error_model="numpy", **options)(function)
    _take_constants_as_numbers(compiled)
    if cache.WANTED:
        cache.keep(compiled)
    return compiled


def _take_constants_as_numbers(compiled: Any) -> None:
    """Let a kernel that another calls with a constant be compiled for its type alone.

    Numba takes a constant for a type of its own: where a loop begins with one, it compiles a kernel twice.
    """
    template_of = compiled.get_call_template
    compiled.get_call_template = lambda args, kws: template_of([*map(types.unliteral, args)], kws)


#: A part of a kernel, which LLVM is told to write in its place: a call would pass every array on.
inlined = kernel(forceinline=True)


@kernel
def at(i):
    """Return an index as unsigned; of any other, Numba tests whether it counts from the end.

    In loops of a few instructions an item that test is a fifth of the time.
    """
    return np.uint64(i)
