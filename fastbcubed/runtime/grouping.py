"""Numbering: equal keys get one code, counted from 0 in the order in which they first appear."""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.runtime import buffers
from fastbcubed.runtime.joining import scatter_keys
from fastbcubed.runtime.parts import PART_ROWS, part_bits, part_blocks
from fastbcubed.runtime.pool import Pool, blocks

#: A range of integers up to so many times the rows is numbered by a table.
SPREAD = 4


class Numbered(NamedTuple):
    """The code of each row, and the first row of each code."""

    codes: NDArray[np.int64]
    firsts: NDArray[np.int64]


def number(keys: NDArray[np.int64], pool: Pool) -> Numbered:
    """Give keys numbers by their first appearance. Shapes: (n,) -> (n,), (n_codes,).

    Keys that come in order cost one look each; other keys are hashed, part by part, so that each
    lookup stays in the cache.
    """
    n = keys.size
    if not n:
        return Numbered(np.empty(0, np.int64), np.empty(0, np.int64))
    cuts = blocks(n)
    if not any(kernels.memberships.find_unsorted(keys, a, b) for a, b in cuts):
        begins = np.empty(n, np.bool_)
        begins[0] = True
        np.not_equal(keys[1:], keys[:-1], out=begins[1:])
        return Numbered(np.cumsum(begins) - 1, np.flatnonzero(begins))
    codes: NDArray[np.int64] = buffers.empty(n, np.int64)
    lowest, highest = int(keys.min()), int(keys.max())
    if highest - lowest < SPREAD * n:
        numbers = np.full(highest - lowest + 1, -1, np.int32 if n < 2**31 else np.int64)
        firsts = np.empty(min(n, numbers.size), np.int64)
        found = kernels.memberships.number_small(keys, lowest, numbers, codes, firsts)
        return Numbered(codes, firsts[:found].copy())
    return _by_parts(keys, codes, pool)


def _by_parts(keys: NDArray[np.int64], codes: NDArray[np.int64], pool: Pool) -> Numbered:
    n = keys.size
    bits = part_bits(n, PART_ROWS)
    items = scatter_keys(keys, bits, pool)
    first: NDArray[np.int64] = buffers.empty(n, np.int64)
    usual = 2 * PART_ROWS

    def number_task(start: int, stop: int) -> None:
        with pool.workspace("number", lambda: np.empty(usual, np.int32)) as slots:
            kernels.memberships.number_parts(items.keys, items.rows, items.bounds, start, stop, slots, first)

    pool.map(number_task, *zip(*part_blocks(1 << bits), strict=True), stage="group rows")
    starts, stops = zip(*blocks(n), strict=True)
    counts = pool.map(
        lambda a, b: kernels.memberships.find_firsts(first, a, b, 0, None),
        starts,
        stops,
        stage="count groups",
    )
    *bases, total = accumulate(counts, initial=0)
    firsts = np.empty(total, np.int64)
    pool.map(
        lambda a, b, base: kernels.memberships.find_firsts(first, a, b, base, firsts),
        starts, stops, bases, stage="number groups",
    )  # fmt: skip
    pool.map(
        lambda a, b: kernels.memberships.find_others(first, a, b, codes), starts, stops, stage="number rows"
    )
    return Numbered(codes, firsts)
