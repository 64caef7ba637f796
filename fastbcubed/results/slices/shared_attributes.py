"""Attributes that both sides have: one attribute where their values are equal, two where they are not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fastbcubed.errors import first_few
from fastbcubed.results.items.items import Items
from fastbcubed.sources import arrow_functions as pc
from fastbcubed.sources.arrays import from_numpy, is_null, to_numpy
from fastbcubed.sources.attributes import UNABLE
from fastbcubed.sources.selection import combined, plain

#: What Arrow raises for values that it cannot compare.
INCOMPARABLE = (*UNABLE, pa.ArrowInvalid)


class Shared(NamedTuple):
    """An attribute of both sides: its values by row, or why they are not one."""

    values: pa.ChunkedArray | None
    fault: str = ""


def shared_attribute(items: Items, name: str) -> Shared:
    """Return the values of an attribute that both sides have, of the truth where it has the item.

    They are one attribute if they are equal, or both null, for every item that both sides have.
    """
    sides = [combined(plain(items.attribute(side, name))) for side in ("truth", "prediction")]
    lacking = [_nulls(items.labels(side)) for side in ("true", "pred")]
    try:
        first, second = sides[0], sides[1].cast(sides[0].type)
        equal = _equal(first, second)
    except INCOMPARABLE:
        return Shared(None, f"their types, {sides[0].type} and {sides[1].type}, cannot be compared")
    differ = np.flatnonzero(~(equal | lacking[0] | lacking[1]))
    if differ.size:
        named = items.ids(differ[:4]).to_pylist()
        return Shared(None, f"their values differ for {differ.size:,} items (first: {first_few(named)})")
    return Shared(pa.chunked_array([pc.if_else(from_numpy(lacking[0]), second, first)]))


def _equal(first: pa.Array, second: pa.Array) -> NDArray[np.bool_]:
    """Return where values are equal, NaN and nulls to each other."""
    nulls = [_nulls(values) for values in (first, second)]
    same = pc.fill_null(pc.equal(first, second), False)
    if pa.types.is_floating(first.type):
        nan = pc.and_(pc.is_nan(first), pc.is_nan(second))
        same = pc.or_(same, pc.fill_null(nan, False))
    return (to_numpy(same) & ~nulls[0] & ~nulls[1]) | (nulls[0] & nulls[1])


def _nulls(values: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    return is_null(combined(values) if isinstance(values, pa.ChunkedArray) else values)
