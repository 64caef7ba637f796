"""Types of arrays that signatures in several folders share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
Counts = NDArray[np.int64]
#: codes, numbers or positions of any integer type
Codes = NDArray[np.integer]
#: positions of rows in a clustering
RowNumbers = NDArray[np.int64]
#: hash values, sums of hash values, and random bits
Words = NDArray[np.uint64]
Mask = NDArray[np.bool_]
#: distinct numbers, and how often each occurs
Sizes = tuple[NDArray[np.int64], NDArray[np.int64]]
