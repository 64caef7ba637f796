"""Some rows of the items of an evaluation, each column of which is read once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.cells.records import SIDES
from fastbcubed.results.items.items import AttributeTable, Items, TableItems
from fastbcubed.sources import selection


class PickedItems(TableItems):
    """Some rows of items, which have numbers of their own."""

    def __init__(self, items: Items, rows: NDArray[np.int64]) -> None:
        super().__init__(_PickedColumns(items, rows))
        self.rows = rows  #: in the whole

    def attribute(self, side: str, name: str, rows: NDArray[np.int64] | None = None) -> pa.ChunkedArray:
        """Return an attribute of some of these rows, or of all; it may be of any type."""
        own = f"{side}.{name}"
        return self._table[own] if rows is None else self._some(own, rows)


class PickedAttributes:
    """Attributes of some rows, which have numbers of their own."""

    def __init__(self, attributes: AttributeTable, rows: NDArray[np.int64]) -> None:
        self.names, self._attributes, self._rows = attributes.names, attributes, rows
        self._read: dict[str, pa.ChunkedArray] = {}

    def attribute(self, name: str, rows: NDArray[np.int64] | None = None) -> pa.ChunkedArray:
        """Return an attribute of some of these rows, or of all."""
        if name not in self._read:
            self._read[name] = self._attributes.attribute(name, self._rows)
        return self._read[name] if rows is None else selection.take_or_null(self._read[name], rows)


class _PickedColumns:
    """The columns of a table of items, read when they are asked for, and kept."""

    def __init__(self, items: Items, rows: NDArray[np.int64]) -> None:
        self._rows, self.num_rows = rows, rows.size
        self._columns: dict[str, Callable[[NDArray[np.int64]], Any]] = {"item": items.ids}
        for side in SIDES:
            self._columns[f"{side}_cluster"] = partial(items.labels, side)
        for side, names in items.attribute_sides().items():
            self._columns |= {f"{side}.{name}": partial(items.attribute, side, name) for name in names}
        self.column_names = list(self._columns)
        self._read: dict[str, pa.ChunkedArray] = {}

    def __getitem__(self, name: str) -> pa.ChunkedArray:
        if name not in self._read:
            found = self._columns[name](self._rows)
            self._read[name] = found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])
        return self._read[name]
