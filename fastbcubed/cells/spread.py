"""Predicted clusters too large for a shard: spread over all shards, and added up before any is closed.

In the rows, a stand-in takes the place of such a cluster's key. It is one of several, which the true key chooses: so
rows of one cell keep one stand-in, each stand-in goes to a shard like any other key, and no cell is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells import stages
from fastbcubed.cells.one_sided import OneSided

#: Stand-ins of a cluster for each shard, so that all shards get about as much.
STAND_INS = 16


@dataclass(frozen=True)
class Spread:
    """The predicted clusters that are spread, and their stand-ins."""

    keys: NDArray[np.int64]  #: their keys, sorted; shape (n_heavy,)
    first: int  #: the first stand-in; those of a cluster follow one another
    ways: int  #: stand-ins of each cluster, a power of two

    @classmethod
    def of(cls, heavy: NDArray[np.int64], end: int, bits: int) -> Spread:
        """Choose stand-ins below the key `end`, counted modulo 2**64, for 2**bits shards; one shard needs none."""
        keys = np.sort(heavy) if bits else heavy[:0]
        ways = STAND_INS << bits
        first = np.array([end], np.int64).view(np.uint64) - np.uint64(keys.size * ways)
        return cls(keys, int(first.view(np.int64)[0]), ways)

    def __bool__(self) -> bool:
        return self.keys.size > 0

    def is_taken(self, pred_keys: NDArray[np.int64]) -> bool:
        """Tell whether a stand-in is in use as a key."""
        return bool(self) and bool(kernels.sums.find_run(pred_keys, self.first, self.keys.size * self.ways))

    def stand_ins(self, true_keys: NDArray[np.int64], pred_keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the pred keys, with stand-ins for the clusters that are spread. Shapes: (n,), (n,) -> (n,)."""
        if not self:
            return pred_keys
        at = np.minimum(np.searchsorted(self.keys, pred_keys), self.keys.size - 1)
        rows = np.flatnonzero(self.keys[at] == pred_keys)
        if not rows.size:
            return pred_keys
        way = kernels.partition.mix_all(np.ascontiguousarray(true_keys[rows])) & (self.ways - 1)
        found = pred_keys.copy()
        number = (at[rows] * self.ways + way).astype(np.uint64)
        found[rows] = (np.array([self.first], np.int64).view(np.uint64) + number).view(np.int64)
        return found

    def clusters(self, mixed: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the place among `keys` of the cluster that each mixed key stands in for, -1 if it does for none."""
        keys = kernels.partition.unmix_all(np.ascontiguousarray(mixed)).view(np.uint64)
        number = keys - np.array([self.first], np.int64).view(np.uint64)
        number = np.minimum(number, np.uint64(self.keys.size * self.ways)).astype(np.int64) // self.ways
        return np.where(number < self.keys.size, number, -1)


class HeavySums:
    """What the predicted clusters that are spread add up to, over the cells of all shards."""

    def __init__(self, spread: Spread) -> None:
        self._spread = spread
        self._mass: list[NDArray[np.float64]] = []
        self._only: list[NDArray[np.float64]] = []
        self.scored, self.strangers = np.zeros((2, spread.keys.size), np.int64)

    def add(self, arrived: np.ndarray, *, outer: bool) -> None:
        """Add cells that leave a shard of rows."""
        if not self._spread:
            return
        cluster = self._spread.clusters(arrived["pred"])
        there = np.flatnonzero(cluster >= 0)
        cells, cluster = arrived[there], cluster[there]
        own = cells["n"].astype(np.float64) if outer else cells["weight"]
        for side, counts, strange in ((self._mass, self.scored, False), (self._only, self.strangers, True)):
            code = np.where((cells["true"] < 0) == strange, cluster, -1)
            added = np.zeros((2, counts.size))
            kernels.sums.add_by_code(code, own, np.ones(code.size), None, *added)
            kernels.sums.count_by_code(code, cells["n"], counts)
            side.append(added)

    def close(self, built: stages.Built, *, outer: bool, outside: bool) -> stages.Built:
        """Give cells of these clusters their false positives, and say which of the shard's clusters they are."""
        if not self._spread:
            return built
        assert built.keys is not None
        heavy = self._spread.clusters(built.keys)
        if not (heavy >= 0).any():
            return replace(built, heavy=heavy)
        base = np.repeat(built.pred_base[:-1], np.diff(built.bounds))
        cluster = np.append(heavy, -1)[np.where(built.pred_in_part < 0, -1, built.pred_in_part + base)]
        del base
        there = np.flatnonzero(cluster >= 0)
        own, cluster = built.cells[there], cluster[there]
        mass, rest = stages.add_heavy_sums(self._mass)
        others = (mass[cluster] - (own["n"] if outer else own["weight"])) + rest[cluster]
        if outside:
            others += stages.add_heavy_sums(self._only).sum(axis=0)[cluster]
        built.cells["fp"][there] = others
        return replace(built, heavy=heavy)

    def one_sided(
        self, found: Mapping[str, OneSided], heavy: NDArray[np.int64] | None
    ) -> Mapping[str, OneSided]:
        """Return the items of one side alone of a shard, but of its heavy clusters those of all shards."""
        if heavy is None or not self.strangers.any():
            return found
        codes = np.flatnonzero(heavy >= 0)
        mass = stages.add_heavy_sums(self._only).sum(axis=0)[heavy[codes]]
        parts = [OneSided(codes, self.strangers[heavy[codes]], mass)]
        if "pred" in found:
            own = heavy[found["pred"].codes] < 0
            parts.append(OneSided(*(column[own] for column in found["pred"])))
        return {**found, "pred": OneSided(*(np.concatenate(column) for column in zip(*parts, strict=True)))}


def pred_codes(heavy: NDArray[np.int64], first: int) -> NDArray[np.int64]:
    """Return the codes of a shard's clusters: those spread come first of all, the others from `first` on.

    Examples
    --------
    >>> pred_codes(np.array([-1, 0, -1, 1, 0]), 7).tolist()
    [7, 0, 8, 1, 0]
    """
    return np.where(heavy >= 0, heavy, first + np.cumsum(heavy < 0) - 1)
