"""Kernels: functions that Numba compiles when their work is large, and Python interprets when it is small.

Compiling a kernel takes some tenths of a second, whatever the size of its arrays, so a kernel is interpreted until
that has taken as long. If its compiled code is cached, it is interpreted only until that has taken as long as loading
the code. Both give the same results, to the last bit. Importing Numba takes longer than evaluating a few items, so
Numba is imported only when a kernel is compiled or loaded.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fastbcubed.kernels import interpreter

#: Seconds needed to import Numba, to compile a kernel (excluding those it calls), and to load a cached kernel.
IMPORTING, COMPILING, LOADING = 0.6, 0.2, 0.02
#: Expected seconds per array element of a kernel that has not been timed yet: interpreted, and in its NumPy version.
PER_ELEMENT, PER_ELEMENT_BY_NUMPY = 5e-7, 2e-8
#: Names of functions and methods that create arrays in kernels.
MAKING = frozenset({"empty", "zeros", "ones", "full", "copy", "view"})
#: Number of elements below which a call's time says little about larger calls.
FEW = 1000
#: Seconds spent interpreting kernels so far, in total.
_interpreted = 0.0
#: Seconds that a kernel may be interpreted, as a multiple of its compile time: 0 for never, infinity for always.
_patience = 1.0
if os.environ.get("FASTBCUBED_INTERPRET", "1") == "0":
    _patience = 0.0
if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
    _patience = math.inf

#: Messages of errors that kept compiled kernels from being cached in an existing directory.
failures: list[str] = []
#: Functions called before a kernel is compiled.
listeners: list[Callable[[], None]] = []
#: Held while a kernel and those it calls are compiled, so that only one thread compiles at a time.
_lock = threading.RLock()
if hasattr(os, "register_at_fork"):  # a forked child lacks the thread that might hold the lock
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Postpone Ctrl-C and SIGTERM: LLVM may swallow an exception raised in it, or free memory twice afterwards."""
    in_main = threading.current_thread() is threading.main_thread()  # only the main thread handles signals
    found = {int(number): signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM) if in_main}
    handlers = {number: handler for number, handler in found.items() if callable(handler)}
    received: list[tuple[int, Any]] = []
    for number in handlers:
        signal.signal(number, lambda *signalled: received.append(signalled))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in received:
            handlers[number](number, frame)


class NotCompiled(Exception):
    """Raised if a kernel has no cached code for these types and too little work to be worth compiling."""


def never_compiled() -> bool:
    """Return whether kernels are never compiled (NUMBA_DISABLE_JIT=1)."""
    return _patience == math.inf


@contextmanager
def compiling() -> Iterator[None]:
    """Compile every kernel called in this context instead of interpreting it."""
    global _patience
    before, _patience = _patience, 0.0
    try:
        yield
    finally:
        _patience = before


class Kernel:
    """A function on arrays and numbers that is interpreted or compiled, whichever is expected to be faster.

    Attributes
    ----------
    py_func
        The original Python function.
    seconds
        Total time spent interpreting it.
    """

    def __init__(self, function: Any, words: bool, by_numpy: Any, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.seconds = 0.0
        self._per_element = PER_ELEMENT if by_numpy is None else PER_ELEMENT_BY_NUMPY
        self._words, self._by_numpy, self._options = words, by_numpy, options
        self._dispatcher: Any = None
        self._called_with: tuple[Any, ...] | None = None
        self._not_cached: set[tuple[Any, ...]] = set()
        self._meets_read_only = False

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel, compiled or interpreted, on positional arguments."""
        waits = self._dispatcher is None or (self._not_cached and types_of(arguments) in self._not_cached)
        if waits and self._is_small(arguments):
            return self._interpret(arguments)
        if self._meets_read_only:
            arguments = interpreter.writable(arguments)
        try:
            return (self._dispatcher or self.dispatcher)(*arguments)
        except NotCompiled:  # Numba takes 0.2 ms to find that out, as long as interpreting a few elements
            self._not_cached.add(types_of(arguments))
            return self._interpret(arguments)

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the kernel, created on first access."""
        if self._dispatcher is None:
            with _lock, uninterrupted():
                make = import_module("fastbcubed.kernels.cache").dispatcher
                sources = sorted({each.py_func.__code__.co_filename for each in self._needed})
                made = make(self.py_func, self._globals(), self._missed, self._compiled_with, sources)
                self._compile, made._compile_for_args = made._compile_for_args, self._compile_for
                self._dispatcher = made
        return self._dispatcher

    @cached_property
    def part(self) -> Any:
        """Numba's dispatcher of the kernel for calls from other kernels."""
        make = import_module("fastbcubed.kernels.cache").part
        return make(self.py_func, self._globals(), self._compiled_with)

    @property
    def _compiled_with(self) -> dict[str, Any]:
        """Numba's options for the kernel; references to arrays are counted only in kernels that create arrays."""
        made = {name for each in self._needed for name in each.py_func.__code__.co_names} & MAKING
        return self._options | {"_nrt": bool(made)}

    @property
    def signatures(self) -> list[Any]:
        """The argument types for which the kernel has been compiled."""
        return [] if self._dispatcher is None else self._dispatcher.nopython_signatures

    def _globals(self) -> dict[str, Any]:
        """Return the globals that the function uses, with other kernels replaced by their compiled parts."""
        names = {name: value for name, value in self.py_func.__globals__.items() if name.startswith("__")}
        for name in self.py_func.__code__.co_names:
            if name in self.py_func.__globals__:
                value = self.py_func.__globals__[name]
                names[name] = value.part if isinstance(value, Kernel | Intrinsic) else value
        return names

    def _compile_for(self, *arguments: Any) -> Any:
        """Load or compile the kernel for the types of these arguments, or raise `NotCompiled`.

        Numba gives read-only arrays types of their own. Kernels only read such arrays, so calls with them are
        repeated with writable views, and one compilation serves both.
        """
        if not all(array.flags.writeable for array in arrays_in(arguments)):
            self._meets_read_only = True
            return self  # Numba calls this instead
        with _lock, uninterrupted():
            self._called_with = arguments
            try:
                return self._compile(*arguments)
            finally:
                self._called_with = None

    def _missed(self) -> None:
        """Raise `NotCompiled` if a kernel that is not cached has little work; otherwise announce its compilation."""
        if self._called_with is not None and self._is_small(self._called_with):
            raise NotCompiled
        self._not_cached.clear()
        for listener in listeners:
            listener()

    def _is_small(self, arguments: tuple[Any, ...]) -> bool:
        """Return whether interpreting the kernel is expected to be faster than compiling or loading it."""
        if never_compiled():
            return True
        expected = self.seconds + self._per_element * sum(array.size for array in arrays_in(arguments))
        if expected >= self._patience:
            return False
        if "numba" not in sys.modules and _interpreted + expected <= IMPORTING:
            return True
        return expected <= LOADING or self._dispatcher is not None or not anything_cached()

    @property
    def _patience(self) -> float:
        """The maximum seconds of interpretation: the time it takes to compile the kernel and those it calls."""
        compiled = sum(each is self or "part" not in vars(each) for each in self._needed)
        return _patience * (COMPILING * compiled + IMPORTING * ("numba" not in sys.modules))

    def _interpret(self, arguments: tuple[Any, ...]) -> Any:
        global _interpreted
        arrays, start = list(arrays_in(arguments)), time.thread_time()
        try:
            interpreter.start(max(LOADING, self._patience - self.seconds))
            with np.errstate(all="ignore"):
                result: Any = NotImplemented
                if self._by_numpy is not None:  # no copies needed: it writes only after it can no longer fail
                    result = self._by_numpy(*arguments)
                if result is NotImplemented:
                    copies = interpreter.Copies(arrays)
                    result = interpreter.unviewed(self.loops(*map(copies.viewed, arguments)))
                    copies.write_back()
            return result
        except Exception:
            if never_compiled():
                raise
            self.seconds = math.inf
            return self.dispatcher(*arguments)
        finally:
            took, n = time.thread_time() - start, sum(array.size for array in arrays)
            self.seconds += took
            _interpreted += took
            if n >= FEW:
                self._per_element = took / n

    @cached_property
    def python(self) -> Any:
        """The function that other interpreted kernels call: the NumPy version where it applies, else `loops`."""
        return self.loops if self._by_numpy is None else self._whole

    def _whole(self, *arguments: Any) -> Any:
        result = self._by_numpy(*map(interpreter.unviewed, arguments))
        return self.loops(*arguments) if result is NotImplemented else result

    @cached_property
    def loops(self) -> Any:
        """The function rewritten to be interpreted."""
        slow = {name for name, each in self._called.items() if each.has_loops}
        return interpreter.rewritten(self.py_func, self._words, slow, python_of)

    @property
    def _called(self) -> dict[str, Kernel]:
        """The kernels that this one calls, by name."""
        names = self.py_func.__globals__
        found = {name: names.get(name) for name in self.py_func.__code__.co_names}
        return {name: value for name, value in found.items() if isinstance(value, Kernel)}

    @cached_property
    def _needed(self) -> frozenset[Kernel]:
        """The kernel and all kernels that it calls, directly or indirectly; they are compiled with it."""
        return frozenset({self}).union(*(each._needed for each in self._called.values()))

    @cached_property
    def has_loops(self) -> bool:
        """Whether the kernel, or a kernel that it calls, contains a loop."""
        return any(interpreter.has_loops(each.py_func.__code__) for each in self._needed)


class Intrinsic:
    """A CPU instruction: a Python equivalent, and the function of the same name in `intrinsics` for compiled code."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__name__, self.__doc__, self.python = function.__name__, function.__doc__, function

    @property
    def part(self) -> Any:
        """The function that compiled kernels call."""
        return getattr(import_module("fastbcubed.kernels.intrinsics"), self.__name__)


def python_of(value: Any) -> Any:
    """Return the object that a global value is replaced by in interpreted kernels."""
    return value.python if isinstance(value, Kernel | Intrinsic) else interpreter.viewed(value)


def arrays_in(arguments: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the arrays among arguments, including those in nested tuples."""
    for each in arguments:
        if isinstance(each, np.ndarray):
            yield each
        elif isinstance(each, tuple):
            yield from arrays_in(each)


def types_of(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what Numba compiles a kernel for: the type of each argument, and of an array's elements."""
    return tuple(
        (each.dtype, each.ndim)
        if isinstance(each, np.ndarray)
        else types_of(each)
        if isinstance(each, tuple)
        else type(each)
        for each in arguments
    )


@cache
def anything_cached() -> bool:
    """Return whether the cache may contain compiled kernels; False if Numba's usual directory is known to have none."""
    named, beside = os.environ.get("NUMBA_CACHE_DIR"), Path(__file__).parent / "__pycache__"
    if named:
        return any(Path(named).glob("kernels_*/*.nbi"))
    return any(beside.glob("*.nbi")) or not os.access(beside, os.W_OK)


def kernel(function: Any = None, *, words: bool = False, by_numpy: Any = None, **options: Any) -> Any:
    """Turn a function into a kernel; called with options only, return a decorator.

    If `words`, integers are unsigned and wrap at 64 bits. `by_numpy` is an equivalent function on whole arrays, which
    is called instead of interpreting the kernel unless it returns `NotImplemented`. Other options are Numba's.
    """
    if function is None:
        return partial(kernel, words=words, by_numpy=by_numpy, **options)
    return Kernel(function, words, by_numpy, options)


#: Decorator of functions that LLVM must inline into kernels, because a call would pass every field of every array.
inlined = kernel(forceinline=True)
intrinsic: Any = Intrinsic


@intrinsic
def at(i):
    """Convert an index to an unsigned integer, for which Numba does not test whether it counts from the end.

    In loops of a few instructions per item, that test takes a fifth of the time.
    """
    return i & ((1 << 64) - 1)
