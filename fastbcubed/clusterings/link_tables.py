"""Links in containers that are no tables (lists of tuples, arrays, a MultiIndex) → a table with left, right, score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fastbcubed.errors import ColumnError, first_few
from fastbcubed.sources.arrays import is_dataset, is_pandas
from fastbcubed.sources.columns import as_column
from fastbcubed.sources.selection import combined
from fastbcubed.sources.tables import is_path, listed_paths


def as_links(links: Any, name: str) -> Any:
    """Return pairs of items as a table; what is a table already stays as it is.

    dedupe gives an array of the fields "pairs" and "score", and lists of ((left, right), score); recordlinkage a
    MultiIndex, or a frame that is indexed by one.
    """
    links = listed_paths(links)
    if is_pandas(links, "MultiIndex"):
        return _table([links.get_level_values(level) for level in range(links.nlevels)], name)
    if is_pandas(links, "Series") and is_pandas(links.index, "MultiIndex"):
        return _table([*(links.index.get_level_values(k) for k in range(links.index.nlevels)), links], name)
    if isinstance(links, np.ndarray):
        return _of_array(links, name)
    exports = hasattr(links, "__arrow_c_stream__") or hasattr(links, "__arrow_c_array__")
    if exports or hasattr(links, "columns") or is_path(links) or is_dataset(links):
        return links
    if isinstance(links, (Mapping, bytes)) or not isinstance(links, Iterable):
        return links
    unordered = isinstance(links, (set, frozenset))  # the same order in every process
    return _of_tuples(sorted(links, key=repr) if unordered else list(links), name)


def _of_array(links: np.ndarray, name: str) -> pa.Table:
    if links.dtype.names == ("pairs", "score"):
        pairs = links["pairs"]
        return _table([pairs[:, 0], pairs[:, 1], links["score"]], name)
    if links.dtype.names:
        return {field: links[field] for field in links.dtype.names}
    if links.ndim == 2 and links.shape[1] in (2, 3):
        return _table(list(links.T), name)
    if links.ndim == 1 and links.dtype == object:
        return _of_tuples(links.tolist(), name)
    raise ColumnError(
        f"{name}: an array of links has two columns, or three with scores, but its shape is {links.shape}."
    )


def _of_tuples(links: list[Any], name: str) -> pa.Table:
    rows = [_flat(link) for link in links]
    wrong = [
        link for link, row in zip(links, rows, strict=True) if row is None or len(row) != len(rows[0] or ())
    ]
    if wrong:
        raise ColumnError(
            f"{name}: each link is a tuple of two items, or of two items and a score, as the first one, but "
            f"{len(wrong)} of {len(links)} are not (first: {first_few(wrong[:4])})."
        )
    return _table(list(zip(*rows, strict=True)) if rows else [(), (), ()], name)


def _flat(link: Any) -> tuple[Any, ...] | None:
    """Return the two items of a link, and its score if it has one; None if it is no link."""
    if not isinstance(link, (tuple, list)) or len(link) not in (2, 3):
        return None
    if len(link) == 2 and isinstance(link[0], (tuple, list)) and isinstance(link[1], (float, np.floating)):
        return (*link[0], link[1]) if len(link[0]) == 2 else None
    return tuple(link)


def _table(columns: list[Any], name: str) -> pa.Table:
    """Return a table of the left and the right items, and the scores if there are any."""
    if len(columns) not in (2, 3):
        raise ColumnError(
            f"{name}: a link has two items and perhaps a score, but there are {len(columns)} columns."
        )
    made: dict[str, Any] = {}
    for side, values in zip(("left", "right"), columns, strict=False):
        column = as_column(
            list(values) if isinstance(values, tuple) else values, "item", f"the {side} items of {name}"
        )
        parts = [combined(part) for part in column.parts]
        one = len(parts) == 1
        made[side] = parts[0] if one else pa.StructArray.from_arrays(parts, names=list(column.names))
    if len(columns) == 3:
        values = columns[2]
        made["score"] = (
            pa.array(list(values), pa.float64()) if isinstance(values, tuple) else pa.array(values)
        )
    return pa.table(made)
