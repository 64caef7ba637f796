"""Rows of the same two clusters become one row that stands for all of them, before rows are partitioned.

Where clusters are few or some pairs of them hold most of the rows, that is one pass over the rows with a table that
stays in the cache; nothing is written for a row whose pair is in the table. A look at a sample decides.

    rows --PairTable.condense--> fewer rows, each with a count --as all rows--> cells

Blocks of rows and the table depend on the input alone, so the number of threads never changes a bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.cells.planning import sampled_rows
from fastbcubed.runtime import buffers
from fastbcubed.runtime.parts import ROWS_AT_ONCE, row_blocks
from fastbcubed.runtime.pool import Pool

#: Below so many rows, a look at a sample would cost what it saves.
FEWEST_ROWS = 1 << 18
#: A box has a slot for each two keys; a block has so many rows for each slot, so that few rows are left of it.
MOST_SLOTS = 1 << 20
ROWS_PER_SLOT = 4
#: Frequent pairs are those seen so often in the sample; so many of them at most, for a block of so many rows for
#: each, with so many slots for each.
OFTEN = 4
MOST_PAIRS = 1 << 12
ROWS_PER_PAIR = 8
SLOTS_PER_PAIR = 4
#: The share of the rows that has to be in frequent pairs.
LEAST_SHARE = 0.75

PAIR = np.dtype([("true", "i8"), ("pred", "i8")])
COUNT = np.dtype([("n", "i4")])
SUM = np.dtype([("x", "f8"), ("n", "i8")])
Keys = NDArray[np.int64]
Weights = NDArray[np.float64] | None


class Condensed(NamedTuple):
    """Rows that stand for several. Shapes: (n_condensed,) each."""

    true_keys: Keys
    pred_keys: Keys
    weight: Weights
    n: NDArray[np.int64] | None  #: for how many rows each stands; None for one


@dataclass(frozen=True, eq=False)
class PairTable:
    """Pairs of keys with a slot for each: those of two ranges, or `pairs` that are known to be frequent."""

    n_rows: int
    n_slots: int
    #: lowest key and number of keys of the truth and of the prediction
    box: tuple[np.uint64, np.uint64, np.uint64, np.uint64]
    pairs: np.ndarray | None  #: records of `PAIR`, shape (n_slots,); None for a box

    @classmethod
    def of(cls, true_keys: Keys, pred_keys: Keys) -> PairTable | None:
        """Return the table that a sample of the rows calls for; None where few rows meet in a pair."""
        if true_keys.size < FEWEST_ROWS:
            return None
        rows = sampled_rows(true_keys.size)
        return cls.of_sample(true_keys.size, true_keys[rows], pred_keys[rows])

    @classmethod
    def of_sample(cls, n_rows: int, true_keys: Keys, pred_keys: Keys) -> PairTable | None:
        """Return the table that a sample of so many rows calls for; None where few rows meet in a pair."""
        if not true_keys.size == pred_keys.size > 0:  # rows without a cluster are left out of samples
            return None
        return cls._box(n_rows, true_keys, pred_keys) or cls._frequent(n_rows, true_keys, pred_keys)

    @classmethod
    def _box(cls, n_rows: int, true: Keys, pred: Keys) -> PairTable | None:
        """Return a slot for each two keys of the ranges in the sample, if rows are many for each."""
        ranges = [(int(keys.min()), int(keys.max()) - int(keys.min()) + 1) for keys in (true, pred)]
        (low_true, n_true), (low_pred, n_pred) = ranges
        n_slots = n_true * n_pred
        if n_slots > MOST_SLOTS or n_slots * ROWS_PER_SLOT > n_rows:
            return None
        return cls(n_rows, n_slots, _unsigned(low_true, n_true, low_pred, n_pred), None)

    @classmethod
    def _frequent(cls, n_rows: int, true: Keys, pred: Keys) -> PairTable | None:
        """Return slots for the pairs seen often, if most rows are theirs."""
        order = np.lexsort((pred, true))
        true, pred = true[order], pred[order]
        first = np.flatnonzero(np.append(True, (np.diff(true) != 0) | (np.diff(pred) != 0)))
        seen = np.diff(np.append(first, true.size))
        chosen = np.argsort(-seen, kind="stable")[: min(MOST_PAIRS, n_rows // ROWS_PER_PAIR)]
        chosen = chosen[seen[chosen] >= OFTEN]
        if seen[chosen].sum() < LEAST_SHARE * true.size:
            return None
        n_slots = SLOTS_PER_PAIR << int(chosen.size - 1).bit_length()
        pairs = np.empty(n_slots, PAIR)
        kernels.condensing.enter_pairs(true[first[chosen]], pred[first[chosen]], pairs)
        return cls(n_rows, n_slots, _unsigned(0, 0, 0, 1), pairs)

    def condense(self, true_keys: Keys, pred_keys: Keys, weight: Weights, pool: Pool) -> Condensed:
        """Return the rows of pairs in the table as one for each block, and all others as they are."""
        blocks = [block for block, _ in self._blocks((true_keys, pred_keys), weight, None, pool)]
        true, pred, weights, n = (_joined(parts) for parts in zip(*blocks, strict=True))
        return Condensed(true, pred, weights, n)

    def places(self, true_keys: Keys, pred_keys: Keys, pool: Pool) -> tuple[Condensed, NDArray[np.int64]]:
        """Return the rows as `condense` does, without weights, and which of them stands for each row."""
        places = np.empty(self.n_rows, np.int64)
        found = self._blocks((true_keys, pred_keys), None, places, pool)
        sizes = [block.true_keys.size for block, _ in found]
        bounds = [bounds for _, bounds in found]

        def shift(start: int, stop: int, by: int) -> None:
            places[start:stop] += by

        pool.map(shift, *zip(*bounds, strict=True), np.cumsum([0, *sizes[:-1]]), stage="locate pairs")
        true, pred, weights, n = (
            _joined(parts) for parts in zip(*(block for block, _ in found), strict=True)
        )
        return Condensed(true, pred, weights, n), places

    def _blocks(
        self, rows: tuple[Keys, Keys], weight: Weights, places: NDArray[np.int64] | None, pool: Pool
    ) -> list[tuple[Condensed, tuple[int, int]]]:
        """Condense the rows block by block; also return where each block begins and ends."""
        bounds = row_blocks(self.n_rows, max(ROWS_AT_ONCE, ROWS_PER_SLOT * self.n_slots))
        most = max(stop - start for start, stop in bounds)

        def condense_block(start: int, stop: int) -> Condensed:
            with pool.workspace(
                ("condense", weight is None, self.n_slots, most), lambda: self._space(most, weight)
            ) as space:
                return self._condensed(rows, weight, (start, stop), space, places)

        found = pool.map(condense_block, *zip(*bounds, strict=True), stage="count pairs of clusters")
        return list(zip(found, bounds, strict=True))

    def condense_block(self, true_keys: Keys, pred_keys: Keys, weight: Weights) -> Condensed:
        """Return the rows of one block as `condense` does, on this thread."""
        n = true_keys.size
        return self._condensed((true_keys, pred_keys), weight, (0, n), self._space(n, weight), None)

    def _condensed(
        self,
        rows: tuple[Keys, Keys],
        weight: Weights,
        bounds: tuple[int, int],
        space: tuple[Any, Any],
        places: NDArray[np.int64] | None,
    ) -> Condensed:
        table, out = space
        table[0][:] = 0  # of every field
        left = kernels.condensing.condense_rows(
            rows, weight, *bounds, self.box, self.pairs, table, out, places
        )
        end = kernels.condensing.write_pairs(self.box, self.pairs, weight, table, out, left)
        if places is not None:
            kernels.condensing.settle_places(places, *bounds, table[0])
        return Condensed(*(_joined([None if each is None else each[:end]]) for each in out))

    def _space(self, n_rows: int, weight: Weights) -> tuple[Any, Any]:
        """Return what one thread needs: the table, and room for the rows of a block."""
        weighted = weight is not None
        sums = buffers.empty(self.n_slots, SUM if weighted else COUNT)
        rest = [buffers.empty(self.n_slots, np.float64) if weighted else None for _ in range(2)]
        true, pred, n = (buffers.empty(n_rows, np.int64) for _ in range(3))
        return (sums, *rest), (true, pred, buffers.empty(n_rows, np.float64) if weighted else None, n)


def _joined(parts: Sequence[np.ndarray | None]) -> Any:
    """Copy parts of an array into one; None if there is no such array."""
    given = [part for part in parts if part is not None]
    if not given:
        return None
    return np.concatenate(given, out=buffers.empty(sum(part.size for part in given), given[0].dtype))


def _unsigned(*numbers: int) -> Any:
    return tuple(np.uint64(number % (1 << 64)) for number in numbers)
