"""Seeded clusterings, named by the shape of their cluster sizes.

Every shape is a truth, a prediction made from it by splitting and merging clusters, and a positive
weight per item, in shuffled rows. Rows are made in blocks, so that 1e8 of them need a few GB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["IDS", "SHAPES", "Ids", "Labels", "Rows", "blocks", "generate"]

Int64s = NDArray[np.int64]
Ids = Literal["int64", "string"]
Labels = Any  # NDArray[np.int64] or pyarrow.StringArray
IDS: tuple[Ids, ...] = ("int64", "string")

BLOCK = 1 << 22  # rows made at a time
SPLIT = 0.15  # share of true clusters that the prediction splits in two
MERGED = 0.10  # share of true clusters that the prediction puts into another one
MEAN_SIZE = 2.5  # of the clusters of shape "er"
ZIPF = 1.9  # exponent of the cluster sizes of shape "heavy"
LARGEST = 0.05  # share of all items that a cluster of shape "heavy" holds at most


class Rows(NamedTuple):
    """Labels of both clusterings and weights, one of each per item."""

    labels_true: Labels
    labels_pred: Labels
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Shape:
    """True cluster sizes, and how many of the first clusters the prediction leaves alone."""

    sizes: Callable[[np.random.Generator, int], Int64s]
    untouched: int
    description: str


def sizes_er(rng: np.random.Generator, n_items: int) -> Int64s:
    """Draw many small clusters: geometric sizes."""
    return fill(lambda count: rng.geometric(1 / MEAN_SIZE, count), n_items, MEAN_SIZE)


def sizes_heavy(rng: np.random.Generator, n_items: int) -> Int64s:
    """Draw power-law sizes, with a largest one, as there is no mean otherwise."""
    largest = max(1, int(n_items * LARGEST))
    return fill(lambda count: np.minimum(rng.zipf(ZIPF, count), largest), n_items, 32.0)


def sizes_singletons(rng: np.random.Generator, n_items: int) -> Int64s:
    """Give every item a cluster of its own."""
    return np.ones(n_items, np.int64)


def sizes_one_giant(rng: np.random.Generator, n_items: int) -> Int64s:
    """Put half of all items into the first cluster and draw the rest as "er" does."""
    giant = n_items // 2
    return np.concatenate([np.array([giant], np.int64), sizes_er(rng, n_items - giant)])


SHAPES: dict[str, Shape] = {
    "er": Shape(sizes_er, 0, "cluster sizes geometric with mean 2.5"),
    "heavy": Shape(sizes_heavy, 0, "cluster sizes Zipf 1.9, at most 5 % of all items"),
    "singletons": Shape(sizes_singletons, 0, "every true cluster has one item"),
    "one_giant": Shape(sizes_one_giant, 1, "half of all items in one cluster, the rest as in er"),
}


def fill(draw: Callable[[int], Int64s], n_items: int, mean: float) -> Int64s:
    """Draw sizes until they hold `n_items`; the last one is cut to fit."""
    drawn: list[Int64s] = []
    missing = n_items
    while missing > 0:
        sizes = draw(int(missing / mean * 1.01) + 16)
        ends = np.cumsum(sizes)
        used = int(np.searchsorted(ends, missing)) + 1
        sizes = sizes[:used]
        if used <= ends.size:  # enough: the last cluster takes what is left
            sizes[-1] -= ends[used - 1] - missing
            missing = 0
        else:
            missing -= int(ends[-1])
        drawn.append(sizes)
    return np.concatenate(drawn)


def shuffled_cells(shape: str, n_items: int, seed: int) -> Int64s:
    """Codes of each item, the true one in the upper and the predicted one in the lower 32 bits."""
    rng = generator(shape, n_items, seed, "cells")
    sizes = SHAPES[shape].sizes(rng, n_items)
    untouched = SHAPES[shape].untouched
    n_clusters = sizes.size
    eligible = n_clusters - untouched

    merged = rng.choice(eligible, 2 * min(int(eligible * MERGED), eligible // 2), replace=False)
    merged += untouched
    label = np.arange(n_clusters, dtype=np.int64)
    label[merged[: merged.size // 2]] = merged[merged.size // 2 :]

    splittable = np.flatnonzero(sizes[untouched:] > 1) + untouched
    split = rng.choice(splittable, min(int(eligible * SPLIT), splittable.size), replace=False)
    moved = rng.integers(1, sizes[split])  # 1 .. size - 1 of its items get a new label
    sizes[split] -= moved

    upper = np.concatenate([np.arange(n_clusters, dtype=np.int64), split])
    upper <<= 32
    upper |= np.concatenate([label, np.arange(n_clusters, n_clusters + split.size)])
    del label, merged, splittable, split
    cells = np.repeat(upper, np.concatenate([sizes, moved]))
    del upper, sizes, moved
    rng.shuffle(cells)
    return cells


def generator(shape: str, n_items: int, seed: int, purpose: str) -> np.random.Generator:
    """Return the random generator of one shape, size, seed and purpose."""
    return np.random.default_rng([seed, n_items, *f"{shape}/{purpose}".encode()])


def mix(codes: Int64s, salt: int) -> Int64s:
    """Hash codes to 64 bits, one to one (the finalizer of splitmix64)."""
    x = codes.astype(np.uint64)
    x += np.uint64(salt)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x.view(np.int64)


def hex_strings(ids: Int64s) -> pa.StringArray:
    """Write ids as "c" and 16 hexadecimal digits."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.empty((ids.size, 17), np.uint8)
    text[:, 0] = ord("c")
    unsigned = ids.view(np.uint64)
    for position in range(16):
        nibble = (unsigned >> np.uint64(60 - 4 * position)) & np.uint64(15)
        text[:, position + 1] = digits[nibble]
    offsets = np.arange(0, 17 * ids.size + 1, 17, dtype=np.int32)
    return pa.StringArray.from_buffers(ids.size, pa.py_buffer(offsets), pa.py_buffer(text))


def blocks(shape: str, n_items: int, ids: Ids = "int64", seed: int = 0) -> Iterator[Rows]:
    """Make the rows of a shape, in blocks."""
    cells = shuffled_cells(shape, n_items, seed)
    rng = generator(shape, n_items, seed, "weights")
    for start in range(0, n_items, BLOCK):
        block = cells[start : start + BLOCK]
        labels_true = mix(block >> 32, 0x9E3779B97F4A7C15)
        labels_pred = mix(block & 0xFFFFFFFF, 0xD1B54A32D192ED03)
        weights = rng.uniform(0.5, 1.5, block.size)
        if ids == "int64":
            yield Rows(labels_true, labels_pred, weights)
        else:
            yield Rows(hex_strings(labels_true), hex_strings(labels_pred), weights)


def generate(shape: str, n_items: int, ids: Ids = "int64", seed: int = 0) -> Rows:
    """Make a shape in memory: NumPy int64 arrays or pyarrow string arrays, and float64 weights."""
    columns = zip(*blocks(shape, n_items, ids, seed), strict=True)
    join = np.concatenate if ids == "int64" else pa.concat_arrays
    labels_true, labels_pred, weights = columns
    return Rows(join(labels_true), join(labels_pred), np.concatenate(weights))
