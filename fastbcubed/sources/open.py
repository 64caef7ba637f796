"""Whatever holds a table (a path, a frame, an Arrow exporter, a dict of arrays) → its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, IdTypeError
from fastbcubed.sources.arrays import from_stream, is_dataset, is_one_column, is_pandas
from fastbcubed.sources.columns import Column
from fastbcubed.sources.tables import (
    ArrayRows,
    ArrowRows,
    BaseRows,
    PandasRows,
    Rows,
    is_array,
    is_path,
    listed_paths,
    refuse_other_indexes,
)
from fastbcubed.sources.wrappers import arrow_table, unwrapped


def as_rows(source: Any, where: str) -> Rows | None:
    """Return the rows of a table: a path, a frame, an Arrow exporter or data set, a dict of arrays; else None.

    `where` says what the table is, for messages.
    """
    source = listed_paths(source)
    if is_path(source):
        from fastbcubed.sources.files import open_files

        return open_files(source)
    source = unwrapped(source)
    if isinstance(source, BaseRows):
        return source  # type: ignore[return-value]
    if isinstance(source, pa.Table):
        return ArrowRows(source, where)
    if is_pandas(source, "DataFrame"):
        return PandasRows(source.copy(deep=False), where)  # attributes are read later: as it was, then
    if isinstance(source, Mapping):
        return _mapping_rows(source, where)
    plain = isinstance(source, (pa.Array, pa.ChunkedArray, Column, np.ndarray))
    if plain or is_pandas(source, "Series", "Index") or is_one_column(source):
        return None
    if is_dataset(source):
        from fastbcubed.sources.readers import DatasetRows

        return DatasetRows(source, where)
    if isinstance(source, pa.RecordBatchReader):
        return ArrowRows(source.read_all(), where)
    try:
        streamed = from_stream(source)
    except pa.ArrowException as error:  # such as the integers of 128 bits of Polars
        raise IdTypeError(
            f"{where} cannot be read as Arrow: {error}. Cast what is of an unusual type to int64 or to string."
        ) from error
    if streamed is None and (table := arrow_table(source)) is not None:
        return ArrowRows(table, where)
    if streamed is None or not pa.types.is_struct(streamed.type):
        return None
    return ArrowRows(pa.Table.from_struct_array(streamed), where)


def _mapping_rows(source: Mapping[Any, Any], where: str) -> Rows:
    lengths = {}
    for name, values in source.items():
        if not is_array(values):
            raise ColumnError(
                f"A dict given as {where} has columns by name, each an array or a list; {name!r} is neither."
            )
        lengths[str(name)] = len(values)
    if len(set(lengths.values())) > 1:
        raise ColumnError(
            f"The columns of {where} differ in length: "
            + ", ".join(f"{name} has {length}" for name, length in lengths.items())
            + "."
        )
    refuse_other_indexes(source.values(), where)
    return ArrayRows(source, next(iter(lengths.values()), 0), where)
