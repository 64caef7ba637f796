"""A table of links → blocks of them: the two items of each link, and its score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import LinkError
from fastbcubed.runtime.pool import blocks
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import no_rows, to_numpy
from fastbcubed.sources.blocks import BLOCK_ROWS, sources_of
from fastbcubed.sources.columns import Column, as_column
from fastbcubed.sources.formats import in_blocks
from fastbcubed.sources.link_columns import LinkColumns
from fastbcubed.sources.readers import Stream
from fastbcubed.sources.tables import ArrowRows, Rows, float_column

#: Types of floats, the widest and the narrowest.
DOUBLE: np.dtype[Any] = np.dtype(np.float64)
HALF: np.dtype[Any] = np.dtype(np.float16)


class Block(NamedTuple):
    """Consecutive links: the number of the first one, both items, scores with NaN for null, and their own type."""

    first_row: int
    left: Column
    right: Column
    scores: NDArray[np.float64] | None = None
    precision: np.dtype[Any] = HALF


def read_blocks(
    source: Rows | Stream, columns: LinkColumns, where: str, size: int = BLOCK_ROWS
) -> Iterator[Block]:
    """Yield the links of a table or stream, `size` at a time at most."""
    needed = [*columns.left, *columns.right, *([] if columns.score is None else [columns.score])]
    names = list(dict.fromkeys(needed))
    first_row = 0
    for found in _blocks(source, names, columns.score, size):
        data = dict(zip(names, found, strict=True))
        left, right = (_item(data, own, columns.items, where) for own in (columns.left, columns.right))
        scores, precision = None, HALF
        if columns.score is not None:
            values = data[columns.score]
            scores = _floats(values, f"column {columns.score!r} of {where}")
            short = pa.types.is_float16(values.type) or pa.types.is_float32(values.type)
            precision = np.dtype(values.type.to_pandas_dtype()) if short else DOUBLE
        yield Block(first_row, left, right, scores, precision)
        first_row += len(left)


def cut_columns(left: Column, right: Column) -> Iterator[Block]:
    """Yield the links between corresponding rows of two columns."""
    for start, stop in blocks(len(left), BLOCK_ROWS):
        yield Block(start, left.stretch(start, stop), right.stretch(start, stop))


def _blocks(
    source: Rows | Stream, names: list[str], score: str | None, size: int
) -> Iterator[list[pa.ChunkedArray]]:
    """Yield columns block by block, at least one block; what is no file of row groups is read at once."""
    if isinstance(source, Stream):
        none = no_rows(source.schema).select(names)
        for table in chain(in_blocks(source.batches(names), size), [none]):
            yield table.columns
        return
    if not getattr(source, "can_be_cut", False):
        whole = dict(zip(names, source.columns(names), strict=True))
        if score in source.untyped:
            whole[score] = float_column(
                whole[score], f"column {score!r} of {source.where}", LinkError, text=True
            )
        source = ArrowRows(pa.table(whole), source.where)
    for part in sources_of(source, size, names):
        for block in part.blocks():
            yield block.columns(names)


def _item(data: Mapping[str, pa.ChunkedArray], own: list[str], names: list[str], where: str) -> Column:
    where = f"column {', '.join(map(repr, own))} of {where}"
    if len(own) == 1:
        return as_column(data[own[0]], names[0], where)
    return Column(names, [data[each] for each in own], where)


def _floats(values: pa.ChunkedArray, where: str) -> NDArray[np.float64]:
    """Return scores, NaN where they are null."""
    try:
        data = float_column(values, where, LinkError)
    except LinkError as error:
        raise LinkError(f"{error} Name the column of scores with score=, or cast it.") from error
    return to_numpy(pc.fill_null(data, np.nan) if data.null_count else data)
