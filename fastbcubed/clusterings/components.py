"""Pairs of items that belong together → items, and the connected component of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastbcubed import kernels
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources.arrays import join_pieces
from fastbcubed.sources.columns import Column
from fastbcubed.sources.keys import comparable_keys


def connect(columns: Sequence[Column]) -> tuple[Column, np.ndarray]:
    """Return the distinct items, in order of first appearance, and the component of each.

    The left and the right item of each pair are the last two columns; before them stand further items.
    """
    with Pool() as pool:
        keys = np.concatenate(comparable_keys(columns, pool))
    table = np.full(1 << max(4, (2 * len(keys)).bit_length()), -1, dtype=np.int64)
    codes, rows = np.empty(len(keys), dtype=np.int64), np.empty(len(keys), dtype=np.int64)
    count = kernels.components.number_keys(keys, table, codes, rows)
    del table, keys
    ends = np.cumsum([len(column) for column in columns])
    parents = np.arange(count, dtype=np.int64)
    kernels.components.find_components(
        codes[ends[-3] if len(ends) > 2 else 0 : ends[-2]], codes[ends[-2] :], parents
    )
    taken = np.split(rows[:count], np.searchsorted(rows[:count], ends[:-1]))
    pieces = [
        column.rows_of(which - (end - len(column)))
        for column, which, end in zip(columns, taken, ends, strict=True)
    ]
    parts = [join_pieces(list(part), columns[0].where) for part in zip(*pieces, strict=True)]
    return Column(columns[-1].names, parts, columns[-1].where), parents
