"""List columns: a table with a list of clusters per item, read as one row per membership."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from fastbcubed.runtime.cached import cached_property
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import from_numpy, to_numpy
from fastbcubed.sources.selection import take_rows, without_views
from fastbcubed.sources.tables import BaseRows, Rows


def unlisted(rows: Rows, name: str) -> Rows:
    """Return rows with a single value in this column: themselves, or one row for each entry of its lists.

    Other columns are repeated. An empty list, like a null, becomes a null.
    """
    kind = rows.type_of(name)
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return _Unlisted(rows, name) if lists else rows


class _Unlisted(BaseRows):
    """The rows of a table, each once for every entry of the lists in one of its columns."""

    def __init__(self, rows: Rows, name: str) -> None:
        super().__init__(rows.names, rows.where, rows)
        self._rows, self._name = rows, name
        lists = rows.column(name)
        lengths = to_numpy(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
        self._counts = np.maximum(lengths, 1)
        self._values = without_views(pc.list_flatten(lists))
        self._places = np.full(int(self._counts.sum()), -1)
        self._places[np.repeat(lengths > 0, self._counts)] = np.arange(int(lengths.sum()))

    def __len__(self) -> int:
        return self._places.size

    @cached_property
    def _parents(self) -> np.ndarray:
        return np.repeat(np.arange(self._counts.size), self._counts)

    def _read(self, names: Sequence[str]) -> list[pa.ChunkedArray]:
        values = {}
        if others := [name for name in names if name != self._name]:
            values = dict(zip(others, self._rows.columns(others), strict=True))
        places = from_numpy(self._places, self._places < 0)
        return [
            self._values.take(places)
            if name == self._name
            else pa.chunked_array([take_rows(values[name], self._parents)])
            for name in names
        ]
