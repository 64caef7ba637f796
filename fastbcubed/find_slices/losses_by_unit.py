"""Losses of rows, sorted by unit: their sums by slice on the searched half, and claims about slices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.find_slices.unit_order import UnitOrder
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Floats, Mask

#: Number of rows that are summed at a time, which bounds memory, and of slices, which stay in the CPU cache.
ROWS_AT_ONCE, SLICES_AT_ONCE = 1 << 20, 1 << 16
#: The part of each row of a range, and the mask of a slice's rows in it.
Parts = Callable[[slice], NDArray[np.uint8]]
Members = Callable[[slice], Mask]


class BinnedCodes(NamedTuple):
    """The code of each row, with rows sorted by unit, through bins that may be finer than the codes.

    Columns with coarse and with fine ranges of the same values share the bins, one byte per row.
    """

    bins: NDArray[np.uint8]  #: shape (n,)
    of_bin: NDArray[np.uint8]  #: shape (256,); empty if bins are codes
    n: int

    def of_rows(self, rows: slice) -> NDArray[np.uint8]:
        """Return the codes of a range of rows."""
        return self.of_bin[self.bins[rows]] if self.of_bin.size else self.bins[rows]

    def steps(self, stride: int) -> NDArray[np.int32]:
        """Return what each bin adds to the number of a slice. Shape (256,)."""
        codes = self.of_bin if self.of_bin.size else np.arange(256)
        return codes.astype(np.int32) * np.int32(stride)


class Claim(NamedTuple):
    """The sums of units' contributions to a claim about a slice, of their squares and of their fourth powers."""

    moved: float
    squares: float
    fourths: float

    @property
    def score(self) -> float:
        """The sum of the contributions, divided by the square root of the sum of their squares."""
        return self.moved / math.sqrt(self.squares) if self.squares > 0 else 0.0


@dataclass(frozen=True, eq=False)
class ValuedRows:
    """Rows, sorted by unit, with values that are summed by part or by unit.

    The values of a block are asked for once for all slices, as they may be looked up rather than stored.
    """

    order: UnitOrder
    values: Callable[[slice], Floats]  #: values times weights of consecutive rows; shape (k, n)
    weight: Floats  #: empty if all weights are 1

    def by_part(self, rows: slice, slices: Sequence[Parts], n_parts: int, pool: Pool) -> Floats:
        """Return for each slice the number of units, the weight and the sums of values by part.

        Shape (n_slices, n_parts, 2 + k).
        """

        def of_block(some: slice) -> Floats:
            unit, values, weight = self.order.unit[some], self.values(some), self.weight[some]
            sums = np.zeros((len(slices), n_parts, 2 + len(values)))
            for parts, own in zip(slices, sums, strict=True):
                last = np.full(n_parts, -1, np.int64)
                kernels.slices.add_parts(parts(some), unit, values, weight, last, own)
            return sums

        return self._added(of_block, rows, pool)

    def claims(
        self, rows: slice, slices: Sequence[tuple[Parts, Sequence[Floats]]], pool: Pool
    ) -> list[list[Claim]]:
        """Return claims, to which each row contributes its weight and values times the factors for its part.

        Each slice has one or more arrays of factors, of shape (n_parts, 1 + k).
        """

        def of_block(some: slice) -> Floats:
            unit, values, weight = self.order.unit[some], self.values(some), self.weight[some]
            powers = np.zeros((sum(len(each) for _, each in slices), 3))
            every = iter(powers)
            for parts, asked in slices:
                of_row = parts(some)
                for factors in asked:
                    kernels.slices.add_powers(of_row, unit, values, weight, factors, next(every))
            return powers

        found = iter(self._added(of_block, rows, pool).tolist())
        return [[Claim(*next(found)) for _ in asked] for _, asked in slices]

    def _added(self, of_block: Callable[[slice], Floats], rows: slice, pool: Pool) -> Floats:
        """Return the sum of what a function returns for the blocks of a range of rows, added in order."""
        found = pool.map(of_block, [*self.order.blocks(rows)] or [slice(0, 0)], stage="slices")
        return np.sum(found, axis=0)


@dataclass(frozen=True, eq=False)
class Losses:
    """The losses of rows, sorted by unit, beyond the mean of their half."""

    order: UnitOrder
    moved: Floats  #: weight * (loss - mean of the half)
    weight: Floats  #: empty if all weights are 1

    @classmethod
    def of(cls, order: UnitOrder, losses: Floats, weight: Floats) -> Losses:
        """Return the losses, given in the order of units and overwritten, relative to the mean of each half."""
        for half in order.halves:
            own, mass = losses[half], weight[half] if weight.size else None
            if own.size:
                own -= float(np.average(own, weights=mass))
            if mass is not None:
                own *= mass
        return cls(order, losses, weight)

    @property
    def rows(self) -> ValuedRows:
        """The rows, with their losses as the only value."""
        return ValuedRows(self.order, lambda some: self.moved[None, some], self.weight)

    @cached_property
    def of_unit(self) -> Floats:
        """The summed losses of each unit of the searched half. Shape (n_units of that half,)."""
        return self.by_unit(self.order.halves[0])

    def by_unit(self, rows: slice) -> Floats:
        """Return the summed losses of each unit in a range of rows. Shape (n_units of these,)."""
        return self.order.by_unit(rows, self.moved[rows])

    def mass(self, rows: slice) -> float:
        """Return the weight of a range of rows."""
        return float(self.weight[rows].sum()) if self.weight.size else float(rows.stop - rows.start)

    def products(self, rows: slice) -> Floats:
        """Return the product of each loss with that of its unit, for rows of the searched half. Shape (n,)."""
        found, unit = self.moved[rows].copy(), self.order.unit[rows]
        for start, stop in blocks(found.size, ROWS_AT_ONCE):
            found[start:stop] *= self.of_unit[unit[start:stop]]
        return found

    def slice_sums(
        self, first: Sequence[BinnedCodes], lasts: Sequence[BinnedCodes], products: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield the sums of the slices of the first columns crossed with each last one, on the searched half.

        The code of the first column is the lowest digit of a slice's number. Where many columns are crossed, `products`
        of all rows save a sixth of the time. Shape (n_slices, WIDTH) each; see `kernels.slices.add_slices`.
        """
        stride = math.prod(each.n for each in first)
        at = 0
        while at < len(lasts):
            end = at + 1
            while end < len(lasts) and stride * sum(each.n for each in lasts[at : end + 1]) <= SLICES_AT_ONCE:
                end += 1
            yield from self._sums_of(first, lasts[at:end], stride, products)
            at = end

    def _sums_of(
        self, first: Sequence[BinnedCodes], lasts: Sequence[BinnedCodes], stride: int, products: Floats | None
    ) -> list[Floats]:
        own = kernels.slices
        found = [np.zeros((stride * each.n, own.WIDTH)) for each in lasts]
        for sums in found:
            sums[:, own.LAST] = -1.0
        steps = [each.steps(stride) for each in lasts]
        for start, stop in blocks(self.order.n_search, ROWS_AT_ONCE):
            some = slice(start, stop)
            unit, moved, weight = self.order.unit[some], self.moved[some], self.weight[some]
            product = self.products(some) if products is None else products[some]
            base, step = np.zeros(stop - start, np.int32), 1
            for each in first:
                base += each.steps(step)[each.bins[some]]
                step *= each.n
            for each, of_bin, sums in zip(lasts, steps, found, strict=True):
                own.add_slices(base, of_bin, each.bins[some], unit, moved, product, weight, sums)
        if not self.weight.size:
            for sums in found:
                sums[:, own.WEIGHT] = sums[:, own.N]
        return found
