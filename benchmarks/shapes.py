"""Seeded clusterings, named by the shape of their cluster sizes, as arrays in blocks or as a whole.

Every shape is a truth, a prediction made from it by splitting and merging clusters, and a positive
weight per item, in shuffled rows; `fastbcubed generate` writes the same rows as Parquet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.runtime.pool import Pool
from fastbcubed.runtime.pool import blocks as cut
from fastbcubed.synthetic.rows import Synthetic
from fastbcubed.synthetic.shapes import SHAPES

__all__ = ["IDS", "SHAPES", "Ids", "Labels", "Rows", "blocks", "generate"]

Ids = Literal["int64", "string"]
Labels = Any  # NDArray[np.int64] or pyarrow.StringArray
IDS: tuple[Ids, ...] = ("int64", "string")

BLOCK = 1 << 20  # rows made at a time


class Rows(NamedTuple):
    """Labels of both clusterings and weights, one of each per item."""

    labels_true: Labels
    labels_pred: Labels
    weights: NDArray[np.float64]


def blocks(shape: str, n_items: int, ids: Ids = "int64", seed: int = 0) -> Iterator[pa.RecordBatch]:
    """Make the rows of a shape, in blocks with the columns of `Rows`."""
    synthetic = Synthetic(n_items, shape, seed)
    kinds = dict(zip(Rows._fields, ("true", "pred", "weight"), strict=True))

    def make(start: int, stop: int) -> pa.RecordBatch:
        return synthetic.rows(kinds, start, stop, ids="string" if ids == "string" else "int")

    with Pool() as pool:
        yield from pool.stream(make, cut(n_items, BLOCK))


def generate(shape: str, n_items: int, ids: Ids = "int64", seed: int = 0) -> Rows:
    """Make a shape in memory: NumPy int64 arrays or pyarrow string arrays, and float64 weights."""
    table = pa.Table.from_batches(blocks(shape, n_items, ids, seed)).combine_chunks()
    columns = [column.combine_chunks() for column in table.columns]
    return Rows(*(c if pa.types.is_string(c.type) else c.to_numpy() for c in columns))
