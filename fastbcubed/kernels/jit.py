"""The options of every Numba kernel, spelled once."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numba

#: Compiled kernels are kept on disk; a fleet of processes that start together may turn that off.
CACHE = os.environ.get("FASTBCUBED_CACHE", "1") != "0"

kernel: Any = partial(numba.njit, cache=CACHE, nogil=True, error_model="numpy")
