"""Synthetic clusterings: the number of clusters of each size, how many change, and the files of their rows.

Cluster sizes are not drawn at random but are quantiles of a law: a clustering of n items has the number of clusters of
each size that the law predicts, to within one. A seed determines the positions of items, and which clusters change.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks import synthetic_kernels
from fastbcubed.inputs.arrays import from_numpy
from fastbcubed.runtime.threads import Pool, blocks
from fastbcubed.types import Counts, Words

Floats = NDArray[np.floating[Any]]

SPLIT = 0.15  # share of true clusters that the prediction splits in two
MERGED = 0.10  # share of true clusters that the prediction merges into another one
MEAN_SIZE = 2.5  # of clusters of shape "er"
ZIPF = 1.9  # exponent of the cluster sizes of shape "heavy"
LARGEST = 0.05  # maximum share of all items in a cluster of shape "heavy"
#: Sizes up to this are handled by count; the few larger clusters are handled one by one.
COUNTED = 1 << 16
#: Leading bits of an item's number by which the guide finds its run of clusters.
GUIDE_BITS = 16


@dataclass(frozen=True)
class Shape:
    """A law of cluster sizes."""

    description: str  #: the true clusters, in words
    #: the share of clusters with more than k items: ``above(k, n_items)``, for an array of k ≥ 1
    above: Callable[[Counts, int], Floats]
    #: the share of all items in one additional cluster, which the prediction leaves unchanged
    giant: float = 0.0


def geometric_above(k: Counts, n_items: int) -> Floats:
    """Return P(size > k) = (1 - p)^k of the geometric law with mean 1 / p = 2.5."""
    return (1 - 1 / MEAN_SIZE) ** k.astype(np.float64)


def zipf_above(k: Counts, n_items: int) -> Floats:
    """Return P(size > k) of the law P(size = k) ~ k^-1.9, truncated at 5 % of all items."""
    largest = max(1, int(n_items * LARGEST))
    share = hurwitz(ZIPF, k + 1.0) / hurwitz(ZIPF, np.ones(1))
    return np.where(k < largest, share, 0.0)


def alone_above(k: Counts, n_items: int) -> Floats:
    """Return P(size > k) if every cluster has one item."""
    return np.zeros(k.size)


SHAPES = {
    "er": Shape("cluster sizes geometric with mean 2.5", geometric_above),
    "heavy": Shape("cluster sizes Zipf 1.9, at most 5 % of all items", zipf_above),
    "singletons": Shape("every true cluster has one item", alone_above),
    "one_giant": Shape("half of all items in one cluster, the rest as in er", geometric_above, giant=0.5),
}


def hurwitz(s: float, a: Floats) -> Floats:
    """Return the sum over i ≥ 0 of (a + i)^-s for a ≥ 1, by the Euler-Maclaurin formula from a + i ≥ 20 on.

    Examples
    --------
    >>> abs(hurwitz(2.0, np.ones(1)) - math.pi**2 / 6) < 1e-10
    array([ True])
    """
    total, b = np.zeros(a.size), a
    while b.min() < 20:
        total, b = total + b**-s, b + 1
    total += b ** (1 - s) / (s - 1) + b**-s / 2 + s * b ** (-s - 1) / 12
    return total - s * (s + 1) * (s + 2) * b ** (-s - 3) / 720


def size_histogram(shape: str, n_items: int) -> tuple[Counts, Counts]:
    """Return the distinct sizes of true clusters, ascending, and the number of clusters of each, without the giant.

    With C clusters, the j-th largest (from 0) has the largest size s with P(size ≥ s) > (j + 1/2) / C. C is the largest
    number of clusters with at most n items in total; one more cluster has the remaining items.

    Examples
    --------
    >>> size_histogram("er", 21)
    (array([1, 2, 3, 4, 6]), array([4, 2, 1, 1, 1]))
    """

    def at_quantiles(n_clusters: int) -> tuple[Counts, Counts]:
        """Return the sizes and counts of `n_clusters` clusters; several entries may have the same size."""
        more = np.ceil(n_clusters * share - 0.5).clip(0).astype(np.int64)  # clusters above each size
        exceeded = (np.arange(more[-1])[::-1] + 0.5) / n_clusters
        low, high = np.full(exceeded.size, head.size), np.full(exceeded.size, n_items)
        while np.any(high - low > 1):  # above(low) > exceeded >= above(high)
            middle = (low + high) // 2
            beyond = law.above(middle, n_items) > exceeded
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        counts = -np.diff(more, prepend=n_clusters)
        return np.concatenate([head, high]), np.concatenate([counts, np.ones(high.size, np.int64)])

    def total(n_clusters: int) -> int:
        sizes, counts = at_quantiles(n_clusters)
        return int(sizes @ counts)

    law = SHAPES[shape]
    head = np.arange(1, min(COUNTED, n_items) + 1)
    share = law.above(head, n_items)
    low, high = 0, 1  # numbers of clusters that fit, and do not fit
    while total(high) <= n_items:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if total(middle) <= n_items else (low, middle)
    sizes, counts = at_quantiles(low) if low else (np.empty(0, np.int64), np.empty(0, np.int64))
    rest = n_items - int(sizes @ counts)
    sizes, counts = np.append(sizes, rest), np.append(counts, 1)
    known, which = np.unique(sizes, return_inverse=True)
    summed = np.zeros(known.size, np.int64)
    np.add.at(summed, which, counts)
    kept = (known > 0) & (summed > 0)
    return known[kept], summed[kept]


@dataclass(frozen=True)
class Layout:
    """The positions of a shape's clusters, whose items are consecutive; see `place_items`."""

    #: items and true clusters
    n_items: int
    n_clusters: int
    #: true clusters that the prediction merges into another one, and those that it splits
    n_merged: int
    n_split: int
    #: the tables of the kernel
    figures: NDArray[np.uint64]
    guide: NDArray[np.int32]
    runs: NDArray[np.uint64]


def lay_out(shape: str, n_items: int) -> Layout:
    """Return the layout of a shape, which has a few thousand entries for any number of items.

    Examples
    --------
    >>> layout = lay_out("one_giant", 1000)
    >>> layout.n_clusters, layout.n_merged, layout.n_split
    (202, 20, 30)
    """
    giant = int(n_items * SHAPES[shape].giant)
    sizes, counts = size_histogram(shape, n_items - giant)
    n_free = int(counts.sum())
    n_alone = int(counts[sizes == 1].sum())
    n_large = n_free - n_alone
    if giant:
        sizes, counts = np.append(sizes, giant), np.append(counts, 1)
    runs = np.zeros((sizes.size + 1, 3), np.uint64)
    runs[1:, 0], runs[1:, 1], runs[:-1, 2] = np.cumsum(sizes * counts), np.cumsum(counts), sizes
    bits = max(0, (n_items - 1).bit_length() - GUIDE_BITS)
    begins = np.arange(((n_items - 1) >> bits) + 1, dtype=np.uint64) << np.uint64(bits)
    guide = np.searchsorted(runs[1:, 0], begins, side="right").astype(np.int32)
    n_merged = min(int(n_free * MERGED), n_free // 2)
    n_split = min(int(n_free * SPLIT), n_large)
    figures: list[Any] = [n_items, _side(n_items), counts.sum(), n_free, _side(n_free), n_merged]
    figures += [n_alone, n_large, _side(n_large), n_split, bits]
    return Layout(n_items, int(counts.sum()), n_merged, n_split, np.array(figures, np.uint64), guide, runs)


def _side(n: int) -> int:
    """Return the side of the smallest square table with room for `n` entries."""
    return math.isqrt(max(n, 1) - 1) + 1


#: Rows per chunk, whose codes fit a core's cache.
CHUNK = 1 << 14

#: Names are hashes of numbers; the numbers of each kind start elsewhere, so no two kinds share a name.
FIRST = {"item": 0, "true": 1 << 60, "pred": 1 << 61}
LETTERS = {"item": "i", "true": "c", "pred": "c"}
NAME = 17  # characters of a name
#: The k-th country has a share of items proportional to 1 / k.
COUNTRIES = (
    "US CN JP DE KR FR GB TW CA IN NL CH IT SE IL AU FI ES BE AT DK SG NO BR IE RU PL CZ TR MX"
).split()
ELSEWHERE = 0.05  # share of items whose country is drawn independently of their true cluster
UNKNOWN = 0.02  # share of items without a country
#: Every year has 1.05 times as many items as the year before.
YEARS = range(1990, 2025)
GROWTH = 1.05

KINDS: dict[str, pa.DataType] = {
    "weight": pa.float64(),
    "country": pa.dictionary(pa.int8(), pa.string()),
    "year": pa.int16(),
}


class Synthetic:
    """A synthetic truth and a prediction made from it; any block of rows can be generated independently.

    The prediction splits 15 % of the true clusters in two, at a uniformly drawn place, and merges 10 % into
    another one, at most two together; both are drawn regardless of size, except that split clusters have
    two or more items. Weights are uniform between 0.5 and 1.5. 5 % of the items do not take the country of
    their true cluster; 2 % have none.

    Examples
    --------
    >>> rows = Synthetic(1000).rows({"truth": "true", "prediction": "pred"}, 0, 1000, ids="string")
    >>> rows.num_rows, len(rows.column("truth").unique())
    (1000, 401)
    """

    def __init__(self, n_items: int, shape: str = "er", seed: int = 0) -> None:
        self.n_items, self.shape, self.seed = n_items, shape, seed
        self.layout = lay_out(shape, self.n_items)
        self._changes = [self._words(purpose) for purpose in ("merge", "split", "move")]

    def _words(self, purpose: str) -> Words:
        """Return the key for a purpose. Shape: (4,)."""
        text = f"{self.shape} {self.n_items} {self.seed} {purpose}".encode()
        return np.frombuffer(hashlib.blake2b(text, digest_size=32).digest(), "<u8").astype(np.uint64)

    def codes(self, start: int, stop: int, order: str = "truth") -> dict[str, Words]:
        """Return the numbers of the items in a range of rows, and of their true and predicted clusters."""
        codes = {kind: np.empty(stop - start, np.uint64) for kind in FIRST}
        keys = np.stack([self._words(f"order of {order}"), *self._changes])
        layout = self.layout
        synthetic_kernels.place_items(start, layout.figures, layout.guide, layout.runs, keys, *codes.values())
        return codes

    def rows(
        self, columns: Mapping[str, str], start: int, stop: int, *, order: str = "truth", ids: str = "int"
    ) -> pa.RecordBatch:
        """Return a range of rows."""
        filled = {kind: _Column(kind, stop - start, ids) for kind in columns.values()}
        for first in range(start, stop, CHUNK):
            last = min(first + CHUNK, stop)
            codes = self.codes(first, last, order)
            for kind, column in filled.items():
                column.fill(first - start, self._values(kind, codes))
        schema = schema_of(columns, ids)
        return pa.record_batch([filled[kind].finish() for kind in columns.values()], schema=schema)

    def _values(self, kind: str, codes: dict[str, Words]) -> NDArray[Any]:
        """Return the values of a column of this kind; names are returned as 64-bit words."""
        if kind in FIRST:
            return self._hash(codes[kind], "names", FIRST[kind])
        if kind == "weight":
            return self._uniform(codes["item"], kind) + 0.5
        if kind == "year":
            return np.searchsorted(_YEAR_BOUNDS, self._uniform(codes["item"], kind)) + YEARS[0]
        own = self._uniform(codes["item"], "country")
        elsewhere = self._uniform(codes["item"], "elsewhere") < ELSEWHERE
        shared = self._uniform(codes["true"], "country of a cluster")
        country = np.searchsorted(_COUNTRY_BOUNDS, np.where(elsewhere, own, shared))
        return np.where(self._uniform(codes["item"], "unknown") < UNKNOWN, -1, country)

    def _hash(self, codes: Words, purpose: str, first: int = 0) -> Words:
        words = np.empty_like(codes)
        synthetic_kernels.hash_codes(codes, np.uint64(first), self._words(purpose)[0], words)
        return words

    def _uniform(self, codes: Words, purpose: str) -> Floats:
        """Draw a number from [0, 1) for each code."""
        return (self._hash(codes, purpose) >> np.uint64(11)) * 2.0**-53


def _bounds(shares: Floats) -> Floats:
    """Return the boundaries of intervals on [0, 1] with these shares."""
    return np.cumsum(shares)[:-1] / shares.sum()


_COUNTRY_BOUNDS = _bounds(1 / np.arange(1.0, len(COUNTRIES) + 1))
_YEAR_BOUNDS = _bounds(GROWTH ** np.arange(float(len(YEARS))))


class _Column:
    """A column of an Arrow table that is filled chunk by chunk."""

    def __init__(self, kind: str, n: int, ids: str) -> None:
        self.kind, self.n = kind, n
        self.is_text = kind in FIRST and ids == "string"
        types: dict[str, Any] = {"weight": np.float64, "country": np.int8, "year": np.int16}
        self.data = np.empty(NAME * n, np.uint8) if self.is_text else np.empty(n, types.get(kind, np.int64))

    def fill(self, at: int, values: NDArray[Any]) -> None:
        if self.is_text:
            letter = ord(LETTERS[self.kind])
            synthetic_kernels.write_names(values, letter, self.data[NAME * at : NAME * (at + values.size)])
        else:
            self.data[at : at + values.size] = values.view(np.int64) if self.kind in FIRST else values

    def finish(self) -> pa.Array:
        if self.is_text:
            offsets = np.arange(0, NAME * self.n + 1, NAME, dtype=np.int32)
            return pa.StringArray.from_buffers(self.n, pa.py_buffer(offsets), pa.py_buffer(self.data))
        if self.kind == "country":
            return pa.DictionaryArray.from_arrays(from_numpy(self.data, self.data < 0), pa.array(COUNTRIES))
        return from_numpy(self.data)


def schema_of(columns: Mapping[str, str], ids: str) -> pa.Schema:
    """Return the Arrow schema of columns; see `Synthetic.rows`."""
    name = pa.string() if ids == "string" else pa.int64()
    return pa.schema([(column, KINDS.get(kind, name)) for column, kind in columns.items()])


#: Rows of a row group; names of more than 2**26 rows would need 64-bit offsets.
ROW_GROUP = 1 << 20
#: Columns that Parquet stores with a dictionary; the others hardly repeat values.
REPEATING = ["country", "year"]


def generate(
    path: str | os.PathLike[str],
    n_items: int,
    *,
    shape: str = "er",
    seed: int = 0,
    prediction_out: str | os.PathLike[str] | None = None,
    ids: str = "int",
    weights: bool = False,
    attributes: bool = False,
    row_group: int = ROW_GROUP,
    threads: int | None = None,
) -> None:
    """Write a truth and a prediction as Parquet: one table, or two with rows in different order.

    One table has the labels "truth" and "prediction"; each of two has "item" and "cluster". With `weights` and
    `attributes`, the first also has "weight", "country" and "year". Memory holds two row groups more than there are
    threads; the files do not depend on their number.

    Examples
    --------
    >>> import tempfile
    >>> import fastbcubed as fb
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = f"{directory}/items.parquet"
    ...     generate(path, 10_000)
    ...     ev = fb.evaluate("truth", "prediction", table=path)
    >>> [ev.summary[side]["clusters"] for side in ("true", "pred")]  # 15 % split, 10 % merged
    [4001, 4201]
    """
    synthetic = Synthetic(n_items, shape, seed)
    more = ["weight"] * weights + REPEATING * attributes
    extra = dict(zip(more, more, strict=True))
    files = {"truth": (path, {"truth": "true", "prediction": "pred", **extra})}
    if prediction_out is not None:
        files = {
            "truth": (path, {"item": "item", "cluster": "true", **extra}),
            "prediction": (prediction_out, {"item": "item", "cluster": "pred"}),
        }
    with Pool(threads) as pool:
        for order, (file, columns) in files.items():
            make = partial(synthetic.rows, columns, order=order, ids=ids)
            with pq.ParquetWriter(
                file, schema_of(columns, ids), compression="none", use_dictionary=REPEATING
            ) as writer:
                for batch in pool.stream(make, blocks(n_items, row_group)):
                    writer.write_table(pa.Table.from_batches([batch]), row_group_size=row_group)


def main() -> None:
    """Write the files that the command line requests."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthetic", description=generate.__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("path", help="the Parquet file to write")
    add("--prediction-out", metavar="PATH", help="write the prediction to a table of its own")
    add("--items", dest="n_items", type=lambda text: int(float(text)), default=1_000_000, help="such as 1e8")
    add("--shape", default="er", choices=SHAPES)
    add("--seed", type=int, default=0)
    add("--ids", default="int", choices=("int", "string"))
    add("--weights", action="store_true")
    add("--attributes", action="store_true")
    generate(**vars(parser.parse_args()))


if __name__ == "__main__":
    main()
