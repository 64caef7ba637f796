"""Columns that go with the rows to where these get their scores: ids and labels, attributes to slice by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.alignment.row_values import either_id, in_common, rows_or_null
from fastbcubed.alignment.weights import Matched
from fastbcubed.clusterings.clustering import Clustering
from fastbcubed.sources.arrays import from_numpy
from fastbcubed.sources.attributes import attributes
from fastbcubed.sources.columns import Column, as_column
from fastbcubed.sources.selection import of_one_dictionary
from fastbcubed.sources.tables import Rows as TableRows

#: What the sides are called, in the names of columns and of their attributes.
SIDES = (("true_cluster", "truth"), ("pred_cluster", "prediction"))


@dataclass(frozen=True)
class Carried:
    """Which columns go with the rows; they are called as those of a saved evaluation's items."""

    ids: bool
    labels: bool  #: of both sides
    numbers: bool  #: of the truth's rows
    attributes: frozenset[tuple[str, str]]  #: "truth", "prediction" or "attributes", and the name there
    #: ids and labels that are integers, and so their own keys: columns that need not be carried
    from_keys: Mapping[str, pa.DataType] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.ids or self.labels or self.numbers or bool(self.attributes)

    @property
    def all_from_keys(self) -> bool:
        """Whether every column can be made of keys, so that none has to go with the rows of the sides."""
        labels = {"true_cluster", "pred_cluster"} if self.labels else set()
        made = (labels | ({"item"} if self.ids else set())) <= set(self.from_keys)
        return made and not self.numbers and all(side == "attributes" for side, _ in self.attributes)

    def of_block(self, sides: Sequence[Clustering], k: int, first_row: int) -> pa.Table:
        """Return the columns of a block that has one side, side `k`, or both."""
        n = len(sides[0])
        columns: dict[str, pa.ChunkedArray | pa.Array] = {}
        if self.ids and "item" not in self.from_keys:
            items = sides[0].items
            positions = from_numpy(np.arange(first_row, first_row + n))
            columns["item"] = positions if items is None else items.slice(0, n)
        if self.numbers and k == 0:
            columns["row"] = from_numpy(np.arange(first_row, first_row + n))
        for side, (label, name) in zip(sides, SIDES[k:], strict=False):
            if self.labels and label not in self.from_keys:
                columns[label] = side.labels.slice(0, n)
            if side.attributes is not None:
                columns |= self._attributes(name, side.attributes)
        whole = {name: of_one_dictionary(values) for name, values in columns.items()}
        return pa.table(whole) if whole else no_columns(n)

    def of_attributes(self, table: TableRows) -> pa.Table:
        """Return the columns of a block of the table of attributes."""
        columns = self._attributes("attributes", table)
        return pa.table({name: of_one_dictionary(values) for name, values in columns.items()})

    def _attributes(self, side: str, table: TableRows) -> dict[str, pa.ChunkedArray]:
        names = sorted(name for where, name in self.attributes if where == side)
        found = attributes(table, names)
        return {f"{side}.{name}": values for name, values in zip(names, found, strict=True)}

    def aligned(self, tables: Sequence[pa.Table], rows: Matched) -> pa.Table:
        """Return the columns of aligned rows from those of both sides, or of one table that both are in."""
        taken = [rows_or_null(table, own) for table, own in zip(tables, rows, strict=False)]
        whole = taken[0]
        for other in taken[1:]:
            for name in other.column_names:
                if name not in whole.column_names:
                    whole = whole.append_column(name, other[name])
        if "item" in whole.column_names and len(tables) == 2 and rows[0] is not None and rows[1] is not None:
            items = [as_column(table["item"], "item") for table in tables]
            found = either_id(items[0], rows[0], items[1], rows[1])
            none = np.empty(0, np.int64)  # one type for all blocks, also where both sides have all items
            found, _ = in_common(found, in_common(items[0].take(none), items[1].take(none))[0])
            whole = whole.set_column(whole.column_names.index("item"), "item", found)
        return whole


def number_type(*columns: Column) -> pa.DataType | None:
    """Return the type of ids that are integers of one type in all of these columns; None if they are not."""
    kinds = {part.type for column in columns for part in column.parts}
    kind = kinds.pop()
    single = all(len(column.parts) == 1 for column in columns)
    return kind if not kinds and single and pa.types.is_integer(kind) else None


def numbers_of_keys(
    keys: NDArray[np.int64], kind: pa.DataType, null: NDArray[np.bool_] | None = None
) -> pa.Array:
    """Return integers whose keys these are, in their own type."""
    if pa.types.is_uint64(kind):
        return from_numpy(keys.view(np.uint64), null)
    return from_numpy(keys.astype(kind.to_pandas_dtype()), null)


def no_columns(n_rows: int) -> pa.Table:
    """Return a table of so many rows that has nothing in it."""
    return pa.table({"none": pa.nulls(n_rows)})
