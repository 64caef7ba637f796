"""Passes over the cells, each of which works something out for a range of the clusters of either side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastbcubed.cells.contingency import Contingency
from fastbcubed.cells.records import SIDES


def ranges_of_clusters(
    table: Contingency, dtype: type, most: int | None = None
) -> Iterator[tuple[tuple[int, ...], list[NDArray[Any]]]]:
    """Yield, for each pass, the first cluster of each side by code, and zeros for it and those that come after it.

    `most` is for how many clusters of both sides there may be zeros at once; for all when absent.
    """
    sizes = [table.n_codes[side] for side in SIDES]
    n_passes = 1 if most is None else max(1, -(-sum(sizes) // max(1, most)))
    for k in range(n_passes):
        firsts, ends = (tuple(at * size // n_passes for size in sizes) for at in (k, k + 1))
        yield firsts, [np.zeros(end - first, dtype) for first, end in zip(firsts, ends, strict=True)]
