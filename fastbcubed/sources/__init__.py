"""What people have (files, frames, arrays) → columns; the only home of other libraries."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from fastbcubed.errors import ColumnError
from fastbcubed.sources.columns import Column, as_column
from fastbcubed.sources.keys import comparable_keys, key_pair
from fastbcubed.sources.open import as_rows
from fastbcubed.sources.tables import Rows

__all__ = [
    "Column",
    "Rows",
    "as_column",
    "as_rows",
    "comparable_keys",
    "key_pair",
    "read_table",
]


def read_table(source: Any, columns: list[str] | None = None) -> pa.Table:
    """Read a table, or some of its columns, whatever holds it.

    Parameters
    ----------
    source : path, glob, directory, data frame, Arrow stream exporter, or dict of columns
        The table. Arrow data are not copied.
    columns : list of str, optional
        Columns to read; all when absent.

    Examples
    --------
    >>> read_table({"item": ["a", "b"], "cluster": [1, 1]}, ["cluster"]).num_rows
    2
    """
    rows = as_rows(source, "the table")
    if rows is None:
        raise ColumnError(
            "Expected a table (a path, a data frame, an Arrow table or a dict of columns), not "
            f"{type(source).__name__}."
        )
    names = list(rows.names) if columns is None else columns
    return pa.table(rows.columns(names), names=names)
