"""Pairs of items that belong together → items, and the connected component of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastbcubed import kernels
from fastbcubed.runtime.grouping import number
from fastbcubed.runtime.pool import Pool
from fastbcubed.sources.arrays import join_pieces
from fastbcubed.sources.columns import Column
from fastbcubed.sources.keys import comparable_keys


def connect(columns: Sequence[Column]) -> tuple[Column, np.ndarray]:
    """Return the distinct items, in order of first appearance, and the component of each.

    The left and the right item of each pair are the last two columns; before them stand further items.
    """
    with Pool() as pool:
        codes, rows = number(np.concatenate(comparable_keys(columns, pool)), pool)
    ends = np.cumsum([len(column) for column in columns])
    parents = np.arange(rows.size, dtype=np.int64)
    kernels.components.find_components(
        codes[ends[-3] if len(ends) > 2 else 0 : ends[-2]], codes[ends[-2] :], parents
    )
    taken = np.split(rows, np.searchsorted(rows, ends[:-1]))
    pieces = [
        column.rows_of(which - (end - len(column)))
        for column, which, end in zip(columns, taken, ends, strict=True)
    ]
    parts = [join_pieces(list(part), columns[0].where) for part in zip(*pieces, strict=True)]
    return Column(columns[-1].names, parts, columns[-1].where), parents
