"""Seeded clusterings, named by the shape of their cluster sizes, as arrays in blocks or as a whole.

Every shape has a truth, a prediction made from it by splitting and merging clusters, and a positive weight per item, in
shuffled rows; `benchmarks.synthetic` writes the same rows as Parquet. `DRAWN` shapes, which are only made here and in
memory, have few clusters on a side, as from k-means or topics; in these, single items change their cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.synthetic import SHAPES, Synthetic
from fastbcubed.kernels.partition import mix_all
from fastbcubed.runtime.threads import Pool
from fastbcubed.runtime.threads import blocks as cut

__all__ = ["DRAWN", "IDS", "SHAPES", "Ids", "Labels", "Rows", "blocks", "generate"]

Ids = Literal["int64", "string"]
Labels = Any  # NDArray[np.int64] or pyarrow.StringArray
IDS: tuple[Ids, ...] = ("int64", "string")

BLOCK = 1 << 20  # rows generated at once

#: Numbers of true and predicted clusters; None means a third of the number of items.
DRAWN: dict[str, tuple[int | None, int]] = {
    "few_10": (10, 10),
    "few_1000": (1000, 1000),
    "few_100000": (100_000, 100_000),
    "few_ids": (100, 100),
    "lopsided": (None, 10),
}
#: Drawn shapes whose labels are not small numbers.
HASHED = ("few_ids",)
#: The share of items of a drawn shape whose predicted cluster is the one that corresponds to their true cluster.
KEPT = 0.8


class Rows(NamedTuple):
    """True label, predicted label and weight of each item."""

    labels_true: Labels
    labels_pred: Labels
    weights: NDArray[np.float64]


def blocks(shape: str, n_items: int, ids: Ids = "int64", seed: int = 0) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a shape in blocks with the columns of `Rows`."""
    if shape in DRAWN:
        yield from (draw(shape, n_items, ids, seed, *block) for block in cut(n_items, BLOCK))
        return
    synthetic = Synthetic(n_items, shape, seed)
    kinds = dict(zip(Rows._fields, ("true", "pred", "weight"), strict=True))

    def make(start: int, stop: int) -> pa.RecordBatch:
        return synthetic.rows(kinds, start, stop, ids="string" if ids == "string" else "int")

    with Pool() as pool:
        yield from pool.stream(make, cut(n_items, BLOCK))


def draw(shape: str, n_items: int, ids: Ids, seed: int, start: int, stop: int) -> pa.RecordBatch:
    """Draw the rows of a block of a drawn shape; labels are numbers from 0 up, or hashes of these."""
    random = np.random.default_rng([seed, start])
    n_true, n_pred = DRAWN[shape]
    true = random.integers(0, n_true or -(-n_items // 3), stop - start)
    pred = np.where(random.random(true.size) < KEPT, true % n_pred, random.integers(0, n_pred, true.size))
    if shape in HASHED:
        true, pred = mix_all(true), mix_all(pred)
    labels = [
        pa.array(side) if ids == "int64" else pa.array([f"c{k:016x}" for k in side.view(np.uint64).tolist()])
        for side in (true, pred)
    ]
    return pa.record_batch([*labels, random.uniform(0.5, 1.5, true.size)], names=list(Rows._fields))


def generate(shape: str, n_items: int, ids: Ids = "int64", seed: int = 0) -> Rows:
    """Return a shape in memory: NumPy int64 arrays or pyarrow string arrays of labels, and float64 weights."""
    table = pa.Table.from_batches(blocks(shape, n_items, ids, seed)).combine_chunks()
    columns = [column.combine_chunks() for column in table.columns]
    return Rows(*(c if pa.types.is_string(c.type) else c.to_numpy() for c in columns))
