"""The options of every Numba kernel, and its index into an array, spelled once."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numba
import numpy as np

#: Compiled kernels are kept on disk; a fleet of processes that start together may turn that off.
CACHE = os.environ.get("FASTBCUBED_CACHE", "1") != "0"

kernel: Any = partial(numba.njit, cache=CACHE, nogil=True, error_model="numpy")


@kernel
def at(i):
    """Return an index as unsigned; of any other, Numba tests whether it counts from the end.

    In loops of a few instructions an item that test is a fifth of the time.
    """
    return np.uint64(i)
