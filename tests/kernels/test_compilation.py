"""How kernels are compiled: which of them count references to arrays, and when signals are heard."""

import signal

import numpy as np
import pytest

from fastbcubed.kernels import cache, jit
from fastbcubed.kernels.jit import kernel


@kernel
def first_of(values, n):
    """Return some values, but make no array."""
    return values[:n], n


@kernel
def make_ones(n):
    """Make an array."""
    return np.ones(n)


@kernel
def sum_ones(n):
    """Add up an array that another kernel makes."""
    total, values = 0.0, make_ones(n)
    for i in range(values.size):
        total += values[i]
    return total


@kernel
def first_value(values):
    """Return the first value."""
    return values[0]


@pytest.mark.skipif(jit.never_compiled(), reason="kernels are not compiled")
def test_kernels_that_return_arrays_make_them() -> None:
    """References to others are not counted, so that a caller would free them twice."""
    with jit.compiling():
        with pytest.raises(TypeError, match="makes no arrays"):
            first_of(np.ones(3), 2)
        assert sum_ones(5) == 5.0


@pytest.mark.skipif(jit.never_compiled(), reason="kernels are not compiled")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_wait_for_the_compiler(number, monkeypatch) -> None:
    """Interrupted, it would free memory twice, or ignore the signal."""

    @jit.kernel
    def doubled(n):
        return 2 * n

    class Stopped(Exception):
        pass

    def stop(*_) -> None:
        raise Stopped

    monkeypatch.setattr(cache, "WANTED", False)
    monkeypatch.setattr(jit, "listeners", [lambda: signal.raise_signal(number)])
    before = signal.signal(number, stop)
    try:
        with jit.compiling(), pytest.raises(Stopped):
            doubled(2)
        assert len(doubled.signatures) == 1 and signal.getsignal(number) is stop
        assert doubled(2) == 4
    finally:
        signal.signal(number, before)


@pytest.mark.skipif(jit.never_compiled(), reason="kernels are not compiled")
def test_kernels_that_are_not_cached_are_looked_for_once(monkeypatch, tmp_path) -> None:
    """Numba takes longer to find that out than a small call; compiled after all, they are no longer interpreted."""
    looked, missed = [], jit.Kernel._missed
    monkeypatch.setattr(jit.Kernel, "_missed", lambda kernel: (looked.append(kernel), missed(kernel)))
    monkeypatch.setattr(cache.config, "CACHE_DIR", str(tmp_path))  # an earlier run has left it elsewhere
    monkeypatch.setattr(jit, "anything_cached", lambda: True)
    monkeypatch.setattr(jit, "_patience", 1000.0)  # a busy machine is no reason to compile
    values = np.arange(100_000)
    assert [first_value(values) for _ in range(3)] == [0, 0, 0]
    assert looked == [first_value] and not first_value.signatures
    assert first_value(values.astype(np.float64)) == 0.0 and looked == 2 * [first_value]
    with jit.compiling():
        assert first_value(values) == 0
    interpreted = first_value.seconds
    assert first_value(values) == 0 and first_value.seconds == interpreted
