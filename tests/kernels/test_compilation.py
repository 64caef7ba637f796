"""How kernels are compiled: which of them count references to arrays."""

import numpy as np
import pytest

from fastbcubed.kernels import jit
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


@pytest.mark.skipif(jit.never_compiled(), reason="kernels are not compiled")
def test_kernels_that_return_arrays_make_them() -> None:
    """References to others are not counted, so that a caller would free them twice."""
    with jit.compiling():
        with pytest.raises(TypeError, match="makes no arrays"):
            first_of(np.ones(3), 2)
        assert sum_ones(5) == 5.0
