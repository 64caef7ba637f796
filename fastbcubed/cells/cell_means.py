"""Means of scores over the items of each cell, in the order of the cells: worked out in another one, and spilled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from fastbcubed.runtime.spill import Pages, Spill
from fastbcubed.runtime.spool import Packed, Spool

#: Cells of one bucket at least.
LEAST = 1 << 16


class CellMeans:
    """Takes the means of cells in any order, by their number; `memory` is for what waits, and for one bucket."""

    def __init__(self, names: Sequence[str], n_cells: int, memory: int, spill: Spill) -> None:
        self._kind = np.dtype([(name, "f8") for name in names])
        waiting = np.dtype([("cell", "i8"), *self._kind.descr])
        self._n_cells, self._directory = n_cells, spill.directory
        self._width = max(LEAST, memory // waiting.itemsize)
        self._waiting = Spool(waiting, -(-n_cells // self._width), spill, memory)
        self._pages, self._n_batches = Pages(), 0

    def add(self, number: NDArray[np.int64], weight: np.ndarray, sums: Iterable[np.ndarray]) -> None:
        """Take cells with these numbers, -1 for one that is not scored.

        `weight` and, score by score, weight * score are records (mass, rest). Shapes: (n,) each.
        """
        scored = np.flatnonzero(number >= 0)
        home = number[scored] // self._width
        order = scored[np.argsort(home.astype(np.int32), kind="stable")]
        out = self._pages.empty(order.size, self._waiting.dtype)
        out["cell"] = number[order]
        whole = _rounded(weight, order)
        for name, own in zip(self._kind.names or (), sums, strict=True):
            out[name] = _rounded(own, order) / whole
        bounds = np.cumsum(np.bincount(home, minlength=self._waiting.n_shards))
        self._waiting.put(self._n_batches, self._pages, np.append(0, bounds))
        self._n_batches += 1

    def finish(self) -> dict[str, NDArray[np.float64]]:
        """Return the means by name, mapped from a file. Shapes: (n_cells,)."""
        packed = Packed(self._kind, self._directory)
        for shard in range(self._waiting.n_shards):
            first = shard * self._width
            found = self._waiting.read(shard)
            here = np.empty(min(self._width, self._n_cells - first), self._kind)
            for name in self._kind.names or ():
                here[name][found["cell"] - first] = found[name]
            packed.append(here)
        means = packed.finish()
        return {name: means[name] for name in self._kind.names or ()}


def _rounded(sums: np.ndarray, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(sums["mass"][chosen] + sums["rest"][chosen], np.float64)
