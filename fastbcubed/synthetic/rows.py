"""The rows of a synthetic clustering, each computed from its own number.

Items lie one cluster after the other (`fastbcubed.synthetic.shapes`). A shuffle that is computed, not stored, says
which item a row holds, and hashes of the item's number or of its cluster's are its id, its labels, its
weight and its attributes. So a row depends on seed, shape, size and its own number alone, and each block
of rows is made on its own, by any thread, in memory that does not grow with the table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed import kernels
from fastbcubed.errors import OptionError
from fastbcubed.runtime.counts import whole_number
from fastbcubed.sources.arrays import from_numpy
from fastbcubed.synthetic.shapes import SHAPES, lay_out

IDS = ("int", "string")
MOST_ITEMS = 1 << 40
#: Rows whose codes are in a core's cache at a time.
CHUNK = 1 << 14

#: Names are hashes of a number; these are first numbers, so that no two kinds of things share a name.
FIRST = {"item": 0, "true": 1 << 60, "pred": 1 << 61}
LETTERS = {"item": "i", "true": "c", "pred": "c"}
NAME = 17  # characters of a name
#: The k-th country has a share of items proportional to 1 / k.
COUNTRIES = (
    "US CN JP DE KR FR GB TW CA IN NL CH IT SE IL AU FI ES BE AT DK SG NO BR IE RU PL CZ TR MX"
).split()
ELSEWHERE = 0.05  # share of items whose country is drawn anew, not that of their true cluster
UNKNOWN = 0.02  # share of items without a country
#: Every year has 1.05 times as many items as the year before.
YEARS = range(1990, 2025)
GROWTH = 1.05

KINDS: dict[str, pa.DataType] = {
    "weight": pa.float64(),
    "country": pa.dictionary(pa.int8(), pa.string()),
    "year": pa.int16(),
}
Words = NDArray[np.uint64]
Floats = NDArray[np.floating[Any]]


class Synthetic:
    """A synthetic truth and a prediction made from it, any block of whose rows can be made alone.

    The prediction splits 15 % of the true clusters in two, at a place drawn uniformly, and puts 10 % into
    another one, two at most together; both are drawn without regard to size, as far as a cluster has two
    items. Weights are uniform between 0.5 and 1.5. Items take the country of their true cluster, but
    for 5 %; 2 % have none.

    Examples
    --------
    >>> rows = Synthetic(1000).rows({"truth": "true", "prediction": "pred"}, 0, 1000, ids="string")
    >>> rows.num_rows, len(rows.column("truth").unique())
    (1000, 401)
    """

    def __init__(self, n_items: int, shape: str = "er", seed: int = 0) -> None:
        self.n_items = whole_number(n_items, "n_items", least=1, most=MOST_ITEMS)
        check_among("shape", shape, tuple(SHAPES))
        self.shape, self.seed = shape, whole_number(seed, "seed")
        self.layout = lay_out(shape, self.n_items)
        self._changes = [self._words(purpose) for purpose in ("merge", "split", "move")]

    def _words(self, purpose: str) -> Words:
        """Return the key for a purpose. Shape: (4,)."""
        text = f"{self.shape} {self.n_items} {self.seed} {purpose}".encode()
        return np.frombuffer(hashlib.blake2b(text, digest_size=32).digest(), "<u8").astype(np.uint64)

    def codes(self, start: int, stop: int, order: str = "truth") -> dict[str, Words]:
        """Return the numbers of the items in some rows, of their true and their predicted clusters."""
        codes = {kind: np.empty(stop - start, np.uint64) for kind in FIRST}
        keys = np.stack([self._words(f"order of {order}"), *self._changes])
        layout = self.layout
        kernels.generation.place_items(
            start, layout.figures, layout.guide, layout.runs, keys, *codes.values()
        )
        return codes

    def rows(
        self, columns: Mapping[str, str], start: int, stop: int, *, order: str = "truth", ids: str = "int"
    ) -> pa.RecordBatch:
        """Return some rows."""
        filled = {kind: _Column(kind, stop - start, ids) for kind in columns.values()}
        for first in range(start, stop, CHUNK):
            last = min(first + CHUNK, stop)
            codes = self.codes(first, last, order)
            for kind, column in filled.items():
                column.fill(first - start, self._values(kind, codes))
        schema = schema_of(columns, ids)
        return pa.record_batch([filled[kind].finish() for kind in columns.values()], schema=schema)

    def _values(self, kind: str, codes: dict[str, Words]) -> NDArray[Any]:
        """Return what a column of this kind holds: words for names, values for others."""
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
        kernels.generation.hash_codes(codes, np.uint64(first), self._words(purpose)[0], words)
        return words

    def _uniform(self, codes: Words, purpose: str) -> Floats:
        """Draw a number from [0, 1) for each code."""
        return (self._hash(codes, purpose) >> np.uint64(11)) * 2.0**-53


def _bounds(shares: Floats) -> Floats:
    """Return where one value ends and the next begins on [0, 1]."""
    return np.cumsum(shares)[:-1] / shares.sum()


_COUNTRY_BOUNDS = _bounds(1 / np.arange(1.0, len(COUNTRIES) + 1))
_YEAR_BOUNDS = _bounds(GROWTH ** np.arange(float(len(YEARS))))


class _Column:
    """A column that is filled from the front."""

    def __init__(self, kind: str, n: int, ids: str) -> None:
        self.kind, self.n = kind, n
        self.is_text = kind in FIRST and ids == "string"
        types: dict[str, Any] = {"weight": np.float64, "country": np.int8, "year": np.int16}
        self.data = np.empty(NAME * n, np.uint8) if self.is_text else np.empty(n, types.get(kind, np.int64))

    def fill(self, at: int, values: NDArray[Any]) -> None:
        if self.is_text:
            letter = ord(LETTERS[self.kind])
            kernels.generation.write_names(values, letter, self.data[NAME * at : NAME * (at + values.size)])
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
    """Return the types of columns; see `Synthetic.rows`."""
    name = pa.string() if ids == "string" else pa.int64()
    return pa.schema([(column, KINDS.get(kind, name)) for column, kind in columns.items()])


def check_among(name: str, value: object, known: tuple[str, ...]) -> None:
    """Raise OptionError for a value that is not one of a few."""
    if value not in known:
        raise OptionError(f"{name} is one of {', '.join(map(repr, known))}, not {value!r}")
